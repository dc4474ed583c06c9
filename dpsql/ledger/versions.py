"""Data versions as the ledger remembers them. What they are is told in `dpsql/versions.py`."""

from __future__ import annotations

from datetime import UTC, datetime

from dpsql.ledger.base import DataVersion
from dpsql.ledger.database import Transaction, fetch_one


def append_version(db: Transaction, identity: str, facts: str, after: int | None, at: datetime | None) -> int:
    """Append a version; its number. With `after`, only where that one is the last, 0 none: else the last one's."""
    latest = read_current_version(db)
    last = 0 if latest is None else latest.number
    if after is not None and after != last:
        return last
    number = last + 1
    when = "" if at is None else at.astimezone(UTC).isoformat()
    db.execute("INSERT INTO version (number, identity, facts, at) VALUES (?, ?, ?, ?)", number, identity, facts, when)
    return number


def read_current_version(db: Transaction) -> DataVersion | None:
    row = fetch_one(db, "SELECT number, identity, facts, at FROM version ORDER BY number DESC LIMIT 1")
    if row is None:
        return None
    number, identity, facts, at = row
    return DataVersion(number, identity, facts, datetime.fromisoformat(at) if at else None)
