"""An account's entries as a chain of hashes, so that tampering shows; and the owner's chain through all of them.

Each entry hashes its content, which has a 256-bit nonce and the hash of the one before; the account's row holds the
number and the hash of the last. So an entry that is edited, dropped, moved or cut off at the end does not fit. The
journal is the owner's chain: one line for each entry of any account, in the order in which they were made, each with
the hash of the line before; an account that is gone with all its entries is missed there. Someone who can write to the
database and knows the format can make new chains: receipts that the analysts hold (number, hash) show that. The sum of
what was spent stands in the entries only, under their hashes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from fractions import Fraction
from typing import Any

from dpsql.errors import IntegrityError, InternalError
from dpsql.ledger.backend import Row, Transaction, fetch_one
from dpsql.ledger.base import AccountTerms, Binding, ChargedStatement, EntryKind, LedgerEntry, RecordedCharge
from dpsql.privacy.filters import NO_CUMULATIVE_LOSS, Composition, Cost, CumulativeLoss
from dpsql.privacy.loss import LOSS_DENOMINATOR, Loss

BODY_ACCOUNT = ""
"""In the place of an account, in the owner's chain: a release's body was stored."""


@dataclass(frozen=True)
class ChainHead:
    """The end of an account's chain; `terms` are None where it has no entry."""

    number: int
    hash: str
    spent: CumulativeLoss
    terms: AccountTerms | None = None


def genesis_hash(ledger: str, account: str) -> str:
    """What the first entry follows: a chain cannot be moved to another account or ledger."""
    return _sha256_hex(json.dumps(["dpsql ledger", ledger, account]))


def _sha256_hex(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# --- entries as text -------------------------------------------------------------------------------------------------


def write_entry(entry: LedgerEntry) -> str:
    """All of an entry but its hash, as the text that is hashed."""
    statement, terms = entry.statement, entry.terms
    return json.dumps(
        {
            "account": entry.account,
            "number": entry.number,
            "kind": entry.kind.value,
            "at": entry.at.isoformat(),
            "by": entry.by,
            "statement": {
                "text": statement.text,
                "sha256": _sha256_hex(statement.text),
                "epsilon": str(statement.epsilon),
                "delta": str(statement.delta),
                "conversion": str(statement.conversion),
                "schema": statement.schema,
            },
            "binding": asdict(entry.binding),
            "terms": [str(terms.epsilon), str(terms.delta), terms.composition.value, terms.parent],
            "charges": [[c.plan, c.version, *encode_loss(c.loss), json.loads(c.mechanisms)] for c in entry.charges],
            "cost": encode_cost(entry.cost),
            "spent": encode_spent(entry.spent),
            "nonce": entry.nonce.hex(),
            "previous": entry.previous,
        },
        sort_keys=True,
        separators=(",", ":"),
    )


def read_entry(row: Row) -> LedgerEntry:
    account, number, kind, content, hashed = row
    try:
        entry = _parse_entry(json.loads(content), hashed)
    except (TypeError, ValueError, KeyError, ArithmeticError) as error:
        raise altered_chain_error(account) from error
    if (entry.account, entry.number, entry.kind.value) != (account, number, kind):
        raise altered_chain_error(account)
    return entry


def _parse_entry(content: dict[str, Any], hashed: str) -> LedgerEntry:
    statement = content["statement"]
    epsilon, delta, conversion = (Fraction(statement[name]) for name in ("epsilon", "delta", "conversion"))
    most_epsilon, most_delta, composition, parent = content["terms"]
    return LedgerEntry(
        account=content["account"],
        number=content["number"],
        kind=EntryKind(content["kind"]),
        at=datetime.fromisoformat(content["at"]),
        by=content["by"],
        statement=ChargedStatement(statement["text"], epsilon, delta, conversion, statement["schema"]),
        binding=Binding(**content["binding"]),
        terms=AccountTerms(Fraction(most_epsilon), Fraction(most_delta), Composition(composition), parent),
        charges=tuple(
            RecordedCharge(plan, version, decode_loss(*loss), canonical_mechanisms(mechanisms))
            for plan, version, *loss, mechanisms in content["charges"]
        ),
        cost=decode_cost(content["cost"]),
        spent=decode_spent(content["spent"]),
        nonce=bytes.fromhex(content["nonce"]),
        previous=content["previous"],
        hash=hashed,
    )


def altered_chain_error(account: str) -> IntegrityError:
    return IntegrityError(
        f'the entries of "{account}" were altered',
        hint="Restore the ledger from its last backup, and compare with the receipts given out since.",
    )


# --- reading and appending -------------------------------------------------------------------------------------------


def read_entries(db: Transaction, account: str) -> Iterator[LedgerEntry]:
    return map(read_entry, db.execute("SELECT * FROM entry WHERE account = ? ORDER BY number", account))


def list_chain_accounts(db: Transaction) -> tuple[str, ...]:
    """All that have or had an entry."""
    rows = db.execute("SELECT name FROM account UNION SELECT account FROM entry UNION SELECT account FROM journal")
    return tuple(sorted(name for (name,) in rows if name != BODY_ACCOUNT))


def read_head(db: Transaction, ledger: str, account: str) -> ChainHead:
    """The end of the chain, after checking that the account's row and the last entry agree."""
    return head_of(read_end(db, account), ledger, account)


ChainEnd = tuple[Row | None, Row | None]
"""The account's row and its last entry, as they stand."""


def read_end(db: Transaction, account: str) -> ChainEnd:
    row = fetch_one(db, "SELECT entries, head FROM account WHERE name = ?", account)
    return row, fetch_one(db, "SELECT * FROM entry WHERE account = ? ORDER BY number DESC LIMIT 1", account)


def head_of(end: ChainEnd, ledger: str, account: str) -> ChainHead:
    row, last = end
    if last is None:
        if row is not None and row != (0, genesis_hash(ledger, account)):
            raise altered_chain_error(account)
        return ChainHead(0, genesis_hash(ledger, account), NO_CUMULATIVE_LOSS)
    entry = read_entry(last)
    if row != (entry.number, entry.hash) or _sha256_hex(last[3]) != entry.hash:
        raise altered_chain_error(account)
    return ChainHead(entry.number, entry.hash, entry.spent, entry.terms)


def append_entry(db: Transaction, entry: LedgerEntry) -> LedgerEntry:
    """Add an entry to its account's chain and to the owner's; its hash is computed here."""
    content = write_entry(entry)
    entry = replace(entry, hash=_sha256_hex(content))
    values = (entry.account, entry.number, entry.kind.value, content, entry.hash)
    db.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?)", *values)
    db.execute(
        "INSERT INTO account (name, entries, head) VALUES (?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET entries = excluded.entries, head = excluded.head",
        *(entry.account, entry.number, entry.hash),
    )
    _append_journal_line(db, entry.account, entry.number, entry.hash)
    return entry


def journal_body(db: Transaction, release: int, digest: str) -> None:
    """The owner's chain has a line for each body that was stored."""
    _append_journal_line(db, BODY_ACCOUNT, release, digest)


def _append_journal_line(db: Transaction, account: str, number: int, hashed: str) -> None:
    position, previous = fetch_one(db, "SELECT place, hash FROM journal ORDER BY place DESC LIMIT 1") or (0, "")
    line = hash_journal_line(previous, account, number, hashed)
    db.execute("INSERT INTO journal VALUES (?, ?, ?, ?)", position + 1, account, number, line)


def body_digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def hash_journal_line(previous: str, account: str, number: int, hashed: str) -> str:
    """The hash of a line of the journal."""
    return _sha256_hex(json.dumps([previous, account, number, hashed]))


def content_hash(db: Transaction, entry: LedgerEntry) -> str:
    """What the entry's hash should be."""
    row = fetch_one(db, "SELECT content FROM entry WHERE account = ? AND number = ?", entry.account, entry.number)
    return "" if row is None else _sha256_hex(row[0])


def read_journal(db: Transaction) -> list[Row]:
    return db.execute("SELECT place, account, number, hash FROM journal ORDER BY place")


EncodedFigures = list[str | None]


# --- losses as text --------------------------------------------------------------------------------------------------
# Whole numbers of 2^-80; those of basic composition are exact fractions. Sums are exact, and no database's integers are
# that wide.


def canonical_mechanisms(mechanisms: object) -> str:
    """A list of mechanisms as JSON."""
    return json.dumps(mechanisms, sort_keys=True, separators=(",", ":"))


def to_units(value: Fraction) -> str:
    """A loss in units of 2^-80."""
    units = value * LOSS_DENOMINATOR
    if units.denominator != 1:
        raise InternalError("a loss is not a multiple of the ledger's unit")
    return str(units.numerator)


def from_units(text: str) -> Fraction:
    return Fraction(int(text), LOSS_DENOMINATOR)


def encode_loss(loss: Loss) -> EncodedFigures:
    return [_encode_optional(loss.epsilon), to_units(loss.rho), to_units(loss.delta)]


def decode_loss(epsilon: str | None, rho: str, delta: str) -> Loss:
    return Loss(_decode_optional(epsilon), from_units(rho), from_units(delta))


def encode_cost(cost: Cost) -> EncodedFigures:
    return [*encode_loss(cost.loss), *_encode_basic(cost.epsilon, cost.delta, cost.squares)]


def decode_cost(stored: EncodedFigures) -> Cost:
    pure, rho, delta, epsilon, whole_delta, squares = stored
    loss = Loss(_decode_optional(pure), _decode_required(rho), _decode_required(delta))
    return Cost(loss, *_decode_basic(epsilon, whole_delta, squares))


def encode_spent(spent: CumulativeLoss) -> EncodedFigures:
    loss = [_encode_optional(spent.epsilon), to_units(spent.rho), to_units(spent.delta)]
    return [*loss, *_encode_basic(spent.basic_epsilon, spent.basic_delta, spent.squares)]


def decode_spent(stored: EncodedFigures) -> CumulativeLoss:
    epsilon, rho, delta, basic, basic_delta, squares = stored
    sums = (_decode_optional(epsilon), _decode_required(rho), _decode_required(delta))
    return CumulativeLoss(*sums, *_decode_basic(basic, basic_delta, squares))


def _encode_basic(epsilon: Fraction | None, delta: Fraction, squares: Fraction) -> EncodedFigures:
    return [None if epsilon is None else str(epsilon), str(delta), str(squares)]


def _decode_basic(
    epsilon: str | None, delta: str | None, squares: str | None
) -> tuple[Fraction | None, Fraction, Fraction]:
    if delta is None or squares is None:
        raise ValueError("a figure is missing")
    return None if epsilon is None else Fraction(epsilon), Fraction(delta), Fraction(squares)


def _encode_optional(value: Fraction | None) -> str | None:
    return None if value is None else to_units(value)


def _decode_optional(text: str | None) -> Fraction | None:
    return None if text is None else from_units(text)


def _decode_required(text: str | None) -> Fraction:
    if text is None:
        raise ValueError("a figure is missing")
    return from_units(text)
