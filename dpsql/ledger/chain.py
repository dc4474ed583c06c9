"""An account's entries as a chain of hashes, so that tampering shows.

Each entry hashes its content, a 256-bit nonce and the hash of the one before; the account's row holds the number
and the hash of the last. So an entry that is edited, dropped, moved or cut off at the end does not fit. Someone
who can write the file and knows the format can make a new chain: receipts that the analysts hold (number, hash)
show that. The sum of what was spent stands in the entries only, under their hashes.

Losses are integers in units of 2^-80, as text: sums are exact, and SQLite's 64-bit integers would not hold them.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from typing import Any

from dpsql.errors import IntegrityError, InternalError
from dpsql.ledger.base import Account, Charge, Entry
from dpsql.ledger.budget import limits_of
from dpsql.privacy.accounting import NOTHING, Spent, admit
from dpsql.privacy.loss import UNIT, Loss, total


@dataclass(frozen=True)
class Head:
    """The end of an account's chain."""

    number: int
    hash: str
    spent: Spent


def to_units(value: Fraction) -> str:
    """A loss in units of 2^-80."""
    units = value * UNIT
    if units.denominator != 1:
        raise InternalError("a loss is not a multiple of the ledger's unit")
    return str(units.numerator)


def from_units(text: str) -> Fraction:
    return Fraction(int(text), UNIT)


def figures(amount: Loss | Spent) -> list[str | None]:
    epsilon = None if amount.epsilon is None else to_units(amount.epsilon)
    return [epsilon, to_units(amount.rho), to_units(amount.delta)]


def read_loss(epsilon: str | None, rho: str, delta: str) -> Loss:
    return Loss(None if epsilon is None else from_units(epsilon), from_units(rho), from_units(delta))


def _read_spent(epsilon: str | None, rho: str, delta: str) -> Spent:
    return Spent(None if epsilon is None else from_units(epsilon), from_units(rho), from_units(delta))


def genesis(ledger: str, account: str) -> str:
    """What the first entry follows: a chain cannot be moved to another account or ledger."""
    return _sha256(["dpsql ledger", ledger, account])


def _sha256(content: list[Any]) -> str:
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()


def _charges_json(charges: Sequence[Charge]) -> str:
    return json.dumps([[charge.plan, charge.version, *figures(charge.loss)] for charge in charges])


def digest(entry: Entry) -> str:
    return _sha256(list(_columns(entry)[:-1]))


def _columns(entry: Entry) -> tuple[Any, ...]:
    return (
        entry.account,
        entry.number,
        entry.at.isoformat(),
        entry.by,
        entry.statement,
        str(entry.budget.epsilon),
        str(entry.budget.delta),
        _charges_json(entry.charges),
        *figures(entry.spent),
        entry.nonce.hex(),
        entry.previous,
        entry.hash,
    )


def _read_entry(row: tuple[Any, ...]) -> Entry:
    account, number, at, by, statement, epsilon, delta, charges, *spent, nonce, previous, hashed = row
    try:
        return Entry(
            account,
            number,
            datetime.fromisoformat(at),
            by,
            statement,
            Account(account, Fraction(epsilon), Fraction(delta)),
            tuple(Charge(plan, version, read_loss(*loss)) for plan, version, *loss in json.loads(charges)),
            _read_spent(*spent),
            bytes.fromhex(nonce),
            previous,
            hashed,
        )
    except (TypeError, ValueError) as error:
        raise broken(account) from error


def broken(account: str) -> IntegrityError:
    return IntegrityError(
        f'the entries of "{account}" were altered',
        hint="Restore the ledger from its last backup, and compare with the receipts given out since.",
    )


def read_entries(db: sqlite3.Connection, account: str) -> Iterator[Entry]:
    rows = db.execute("SELECT * FROM entry WHERE account = ? ORDER BY number", (account,))
    return (_read_entry(row) for row in rows)


def read_head(db: sqlite3.Connection, ledger: str, account: str) -> Head:
    """The end of the chain, after checking that the account's row and the last entry agree."""
    row = db.execute("SELECT entries, head FROM account WHERE name = ?", (account,)).fetchone()
    last = db.execute("SELECT * FROM entry WHERE account = ? ORDER BY number DESC LIMIT 1", (account,)).fetchone()
    if last is None:
        if row is not None and row != (0, genesis(ledger, account)):
            raise broken(account)
        return Head(0, genesis(ledger, account), NOTHING)
    entry = _read_entry(last)
    if row != (entry.number, entry.hash) or digest(entry) != entry.hash:
        raise broken(account)
    return Head(entry.number, entry.hash, entry.spent)


def append(db: sqlite3.Connection, entry: Entry) -> None:
    """Add an entry; its hash is computed here."""
    entry = replace(entry, hash=digest(entry))
    db.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _columns(entry))
    db.execute(
        "INSERT INTO account (name, entries, head) VALUES (?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET entries = excluded.entries, head = excluded.head",
        (entry.account, entry.number, entry.hash),
    )


def verify(db: sqlite3.Connection, ledger: str, account: str) -> None:
    """Raise IntegrityError unless the chain is whole, every entry passes the filter, and payments match.

    Privacy: recomputes each admission from the entries, so a ledger that passes never let this account
    lose more than the budget it had at that time.
    """
    end = Head(0, genesis(ledger, account), NOTHING)
    for entry in read_entries(db, account):
        spent = admit(limits_of(entry.budget), end.spent, total(entry.losses))
        follows = entry.number == end.number + 1 and entry.previous == end.hash
        if not follows or digest(entry) != entry.hash or spent != entry.spent:
            raise broken(account)
        _verify_payments(db, entry)
        end = Head(entry.number, entry.hash, entry.spent)
    paying = db.execute("SELECT count(DISTINCT entry) FROM payment WHERE account = ?", (account,)).fetchone()
    if read_head(db, ledger, account) != end or paying != (end.number,):
        raise broken(account)


def _verify_payments(db: sqlite3.Connection, entry: Entry) -> None:
    """The entry's charges are the releases that it paid for; and who asked has paid for them too."""
    rows = db.execute(
        "SELECT plan, version, epsilon, rho, delta,"
        " EXISTS (SELECT 1 FROM payment AS other WHERE other.release = id AND other.account = ?)"
        " FROM payment JOIN release ON release = id WHERE account = ? AND entry = ? ORDER BY id",
        (entry.by, entry.account, entry.number),
    ).fetchall()
    paid = [Charge(plan, version, read_loss(*loss)) for plan, version, *loss, _ in rows]
    if sorted(paid, key=repr) != sorted(entry.charges, key=repr) or not all(row[-1] for row in rows):
        raise broken(entry.account)
