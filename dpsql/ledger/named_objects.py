"""What an account made of releases that it paid for, by name: synthetic tables and models.

Privacy: an object names one release, which its account has paid for, and says how to read it; another account sees
neither. Dropping it forgets the name, not the charge.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

from dpsql.errors import InternalError, ProgrammingError
from dpsql.ledger.backend import Transaction, fetch_one
from dpsql.ledger.base import CreatedObject
from dpsql.ledger.release_store import accounts_unpaid

OpenTransaction = Callable[[], AbstractContextManager[Transaction]]


@dataclass(frozen=True)
class SqlObjectStore:
    """See `base.ObjectStore`."""

    read: OpenTransaction
    write: OpenTransaction

    def list_objects(self, account: str) -> tuple[CreatedObject, ...]:
        """The account's objects, by name."""
        with self.read() as db:
            rows = db.execute(
                "SELECT kind, name, release, definition, at FROM object WHERE account = ? ORDER BY folded", account
            )
        return tuple(CreatedObject(kind, name, release, text, datetime.fromisoformat(at))
                     for kind, name, release, text, at in rows)  # fmt: skip

    def save_object(self, account: str, created: CreatedObject, *, instead: bool = False) -> None:
        """Give the release its name; `instead` of what had it, if that is of the same kind."""
        with self.write() as db:
            if accounts_unpaid(db, created.release, [account]):
                raise InternalError(f'"{account}" has not paid for release {created.release}')
            existing = fetch_one(
                db, "SELECT kind FROM object WHERE account = ? AND folded = ?", account, created.name.lower()
            )
            if existing is not None and (not instead or existing[0] != created.kind):
                raise name_taken_error(existing[0], created.name)
            db.execute("DELETE FROM object WHERE account = ? AND folded = ?", account, created.name.lower())
            db.execute(
                "INSERT INTO object (account, folded, kind, name, release, definition, at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                *(
                    account,
                    created.name.lower(),
                    created.kind,
                    created.name,
                    created.release,
                    created.definition,
                    created.at.isoformat(),
                ),
            )

    def drop_object(self, account: str, kind: str, name: str) -> bool:
        """Drop an object; whether there was one."""
        with self.write() as db:
            existing = fetch_one(
                db, "SELECT 1 FROM object WHERE account = ? AND folded = ? AND kind = ?", account, name.lower(), kind
            )
            db.execute("DELETE FROM object WHERE account = ? AND folded = ? AND kind = ?", account, name.lower(), kind)
            return existing is not None


def name_taken_error(kind: str, name: str) -> ProgrammingError:
    return ProgrammingError(
        f'{kind} "{name}" already exists', hint=f"DROP {kind.upper()} {name}, or take another name.", sqlstate="42P07"
    )
