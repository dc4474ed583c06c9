"""Data versions as the ledger remembers them. What they are is told in `dpsql/versions.py`."""

from __future__ import annotations

from dpsql.ledger.base import Version
from dpsql.ledger.database import Transaction, one


def register(db: Transaction, identity: str, facts: str, first: bool) -> int:
    """Append a version; its number. With `first`, only where there is none: else the current one's."""
    known = current(db)
    if first and known is not None:
        return known.number
    number = 1 if known is None else known.number + 1
    db.rows("INSERT INTO version (number, identity, facts) VALUES (?, ?, ?)", number, identity, facts)
    return number


def current(db: Transaction) -> Version | None:
    row = one(db, "SELECT number, identity, facts FROM version ORDER BY number DESC LIMIT 1")
    return None if row is None else Version(*row)
