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
from dpsql.ledger.answers import unpaid
from dpsql.ledger.base import Made
from dpsql.ledger.database import Transaction, one

Opening = Callable[[], AbstractContextManager[Transaction]]


@dataclass(frozen=True)
class ObjectBooks:
    """See `base.Objects`."""

    read: Opening
    write: Opening

    def of(self, account: str) -> tuple[Made, ...]:
        """By name."""
        with self.read() as db:
            rows = db.rows("SELECT kind, name, release, definition, at FROM object WHERE account = ? ORDER BY folded",
                           account)  # fmt: skip
        return tuple(Made(kind, name, release, text, datetime.fromisoformat(at))
                     for kind, name, release, text, at in rows)  # fmt: skip

    def keep(self, account: str, made: Made, *, instead: bool = False) -> None:
        """Give the release its name; `instead` of what had it, if that is of the same kind."""
        with self.write() as db:
            if unpaid(db, made.release, [account]):
                raise InternalError(f'"{account}" has not paid for release {made.release}')
            known = one(db, "SELECT kind FROM object WHERE account = ? AND folded = ?", account, made.name.lower())
            if known is not None and (not instead or known[0] != made.kind):
                raise taken(known[0], made.name)
            db.rows("DELETE FROM object WHERE account = ? AND folded = ?", account, made.name.lower())
            db.rows(
                "INSERT INTO object (account, folded, kind, name, release, definition, at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                *(account, made.name.lower(), made.kind, made.name, made.release, made.definition, made.at.isoformat()),
            )

    def drop(self, account: str, kind: str, name: str) -> bool:
        """Whether there was one."""
        with self.write() as db:
            found = one(db, "SELECT 1 FROM object WHERE account = ? AND folded = ? AND kind = ?", account, name.lower(),
                        kind)  # fmt: skip
            db.rows("DELETE FROM object WHERE account = ? AND folded = ? AND kind = ?", account, name.lower(), kind)
            return found is not None


def taken(kind: str, name: str) -> ProgrammingError:
    return ProgrammingError(
        f'{kind} "{name}" already exists', hint=f"DROP {kind.upper()} {name}, or take another name.", sqlstate="42P07"
    )
