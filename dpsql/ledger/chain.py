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

from dpsql.errors import IntegrityError
from dpsql.ledger.base import Binding, Charge, Entry, Kind, Statement, Terms
from dpsql.ledger.database import Row, Transaction, one
from dpsql.ledger.units import cost_figures, figures, one_spelling, read_cost, read_loss, read_spent, spent_figures
from dpsql.privacy.filters import NOTHING, Composition, Spent

BODY = ""
"""In the place of an account, in the owner's chain: a release's body was stored."""


@dataclass(frozen=True)
class Head:
    """The end of an account's chain; `terms` are None where it has no entry."""

    number: int
    hash: str
    spent: Spent
    terms: Terms | None = None


def genesis(ledger: str, account: str) -> str:
    """What the first entry follows: a chain cannot be moved to another account or ledger."""
    return _sha256(json.dumps(["dpsql ledger", ledger, account]))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# --- entries as text -------------------------------------------------------------------------------------------------


def write_entry(entry: Entry) -> str:
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
                "sha256": _sha256(statement.text),
                "epsilon": str(statement.epsilon),
                "delta": str(statement.delta),
                "conversion": str(statement.conversion),
                "schema": statement.schema,
            },
            "binding": asdict(entry.binding),
            "terms": [str(terms.epsilon), str(terms.delta), terms.composition.value, terms.parent],
            "charges": [[c.plan, c.version, *figures(c.loss), json.loads(c.mechanisms)] for c in entry.charges],
            "cost": cost_figures(entry.cost),
            "spent": spent_figures(entry.spent),
            "nonce": entry.nonce.hex(),
            "previous": entry.previous,
        },
        sort_keys=True,
        separators=(",", ":"),
    )


def read_entry(row: Row) -> Entry:
    account, number, kind, content, hashed = row
    try:
        entry = _parse(json.loads(content), hashed)
    except (TypeError, ValueError, KeyError, ArithmeticError) as error:
        raise broken(account) from error
    if (entry.account, entry.number, entry.kind.value) != (account, number, kind):
        raise broken(account)
    return entry


def _parse(content: dict[str, Any], hashed: str) -> Entry:
    asked = content["statement"]
    epsilon, delta, conversion = (Fraction(asked[name]) for name in ("epsilon", "delta", "conversion"))
    most_epsilon, most_delta, composition, parent = content["terms"]
    return Entry(
        account=content["account"],
        number=content["number"],
        kind=Kind(content["kind"]),
        at=datetime.fromisoformat(content["at"]),
        by=content["by"],
        statement=Statement(asked["text"], epsilon, delta, conversion, asked["schema"]),
        binding=Binding(**content["binding"]),
        terms=Terms(Fraction(most_epsilon), Fraction(most_delta), Composition(composition), parent),
        charges=tuple(
            Charge(plan, version, read_loss(*loss), one_spelling(mechanisms))
            for plan, version, *loss, mechanisms in content["charges"]
        ),
        cost=read_cost(content["cost"]),
        spent=read_spent(content["spent"]),
        nonce=bytes.fromhex(content["nonce"]),
        previous=content["previous"],
        hash=hashed,
    )


def broken(account: str) -> IntegrityError:
    return IntegrityError(
        f'the entries of "{account}" were altered',
        hint="Restore the ledger from its last backup, and compare with the receipts given out since.",
    )


# --- reading and appending -------------------------------------------------------------------------------------------


def read_entries(db: Transaction, account: str) -> Iterator[Entry]:
    return map(read_entry, db.rows("SELECT * FROM entry WHERE account = ? ORDER BY number", account))


def accounts(db: Transaction) -> tuple[str, ...]:
    """All that have or had an entry."""
    found = db.rows("SELECT name FROM account UNION SELECT account FROM entry UNION SELECT account FROM journal")
    return tuple(sorted(name for (name,) in found if name != BODY))


def read_head(db: Transaction, ledger: str, account: str) -> Head:
    """The end of the chain, after checking that the account's row and the last entry agree."""
    return head_of(read_end(db, account), ledger, account)


End = tuple[Row | None, Row | None]
"""The account's row and its last entry, as they stand."""


def read_end(db: Transaction, account: str) -> End:
    row = one(db, "SELECT entries, head FROM account WHERE name = ?", account)
    return row, one(db, "SELECT * FROM entry WHERE account = ? ORDER BY number DESC LIMIT 1", account)


def head_of(end: End, ledger: str, account: str) -> Head:
    row, last = end
    if last is None:
        if row is not None and row != (0, genesis(ledger, account)):
            raise broken(account)
        return Head(0, genesis(ledger, account), NOTHING)
    entry = read_entry(last)
    if row != (entry.number, entry.hash) or _sha256(last[3]) != entry.hash:
        raise broken(account)
    return Head(entry.number, entry.hash, entry.spent, entry.terms)


def append(db: Transaction, entry: Entry) -> Entry:
    """Add an entry to its account's chain and to the owner's; its hash is computed here."""
    content = write_entry(entry)
    entry = replace(entry, hash=_sha256(content))
    values = (entry.account, entry.number, entry.kind.value, content, entry.hash)
    db.rows("INSERT INTO entry VALUES (?, ?, ?, ?, ?)", *values)
    db.rows(
        "INSERT INTO account (name, entries, head) VALUES (?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET entries = excluded.entries, head = excluded.head",
        *(entry.account, entry.number, entry.hash),
    )
    _note(db, entry.account, entry.number, entry.hash)
    return entry


def note_body(db: Transaction, release: int, digest: str) -> None:
    """The owner's chain has a line for each body that was stored."""
    _note(db, BODY, release, digest)


def _note(db: Transaction, account: str, number: int, hashed: str) -> None:
    place, previous = one(db, "SELECT place, hash FROM journal ORDER BY place DESC LIMIT 1") or (0, "")
    line = link(previous, account, number, hashed)
    db.rows("INSERT INTO journal VALUES (?, ?, ?, ?)", place + 1, account, number, line)


def body_digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def link(previous: str, account: str, number: int, hashed: str) -> str:
    """A line of the journal."""
    return _sha256(json.dumps([previous, account, number, hashed]))


def content_hash(db: Transaction, entry: Entry) -> str:
    """What the entry's hash should be."""
    row = one(db, "SELECT content FROM entry WHERE account = ? AND number = ?", entry.account, entry.number)
    return "" if row is None else _sha256(row[0])


def read_journal(db: Transaction) -> list[Row]:
    return db.rows("SELECT place, account, number, hash FROM journal ORDER BY place")
