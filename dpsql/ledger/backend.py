"""What a ledger needs of a database, and the tables in which it is stored.

Law: a write transaction is serialisable and durable when its block is left, or it did not happen. The SQL is what
SQLite and PostgreSQL have in common; values stand as `?`.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from dpsql.errors import IntegrityError, OperationalError
from dpsql.ledger.base import Binding

LEDGER_FORMAT = 3
"""Of the tables. A ledger of format 2 is given the tables that it lacks; one of another is not opened."""
EARLIER_FORMAT = 2
POSTGRES_SCHEMES = ("postgresql", "postgres")
"""Of the URL of a ledger in PostgreSQL; here, so that who has none needs no driver."""

TABLES_SQL = """
CREATE TABLE ledger (
    id TEXT PRIMARY KEY, unit TEXT NOT NULL, neighbors TEXT NOT NULL, group_size INTEGER NOT NULL
);
CREATE TABLE account (
    name TEXT PRIMARY KEY, entries INTEGER NOT NULL, head TEXT NOT NULL, failures INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE version (
    number INTEGER PRIMARY KEY, identity TEXT NOT NULL, facts TEXT NOT NULL,
    at TEXT NOT NULL DEFAULT ''
);
CREATE TABLE release (
    id {serial}, plan TEXT NOT NULL, version INTEGER NOT NULL REFERENCES version,
    epsilon TEXT, rho TEXT NOT NULL, delta TEXT NOT NULL, mechanisms TEXT NOT NULL, errors TEXT NOT NULL,
    rows_of TEXT NOT NULL, shape TEXT NOT NULL, at TEXT NOT NULL, holes {blob}, body {blob}, digest TEXT,
    state TEXT NOT NULL DEFAULT 'paid' CHECK (state IN ('paid', 'bound', 'stored', 'void')),
    CHECK ((state = 'stored') = (body IS NOT NULL))
);
CREATE INDEX release_of_plan ON release (plan, version);
CREATE INDEX release_of_rows ON release (rows_of, version);
CREATE TABLE entry (
    account TEXT NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL, content TEXT NOT NULL, hash TEXT NOT NULL,
    PRIMARY KEY (account, number)
);
CREATE TABLE journal (
    place INTEGER PRIMARY KEY, account TEXT NOT NULL, number INTEGER NOT NULL, hash TEXT NOT NULL,
    UNIQUE (account, number)
);
CREATE TABLE payment (
    release BIGINT NOT NULL REFERENCES release, account TEXT NOT NULL, entry INTEGER NOT NULL,
    PRIMARY KEY (release, account)
);
CREATE INDEX payment_of_account ON payment (account, entry);
CREATE TABLE run (
    release BIGINT PRIMARY KEY REFERENCES release, holder TEXT NOT NULL, started BIGINT NOT NULL,
    until BIGINT NOT NULL, ended BIGINT
);
"""
OBJECTS_SQL = """
CREATE TABLE object (
    account TEXT NOT NULL, folded TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
    release BIGINT NOT NULL REFERENCES release, definition TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (account, folded)
);
"""
"""Since format 3: what accounts made, by name."""
APPEND_ONLY_TABLES = ("entry", "journal", "payment")
"""Rows of these tables are never changed or deleted: each database has triggers against a slip of the hand."""

Row = tuple[Any, ...]


class Transaction(Protocol):
    def execute(self, sql: str, *values: object) -> list[Row]:
        """Run one statement; what it returns."""
        ...

    def now_microseconds(self) -> int:
        """Microseconds since 1970, by one clock for all who use this database."""
        ...


class LedgerDatabase(Protocol):
    """An existing, checked ledger; `id` tells it from any other."""

    @property
    def id(self) -> str: ...

    @property
    def identity(self) -> Hashable:
        """Equal where two are one and the same database: a copy has the same `id`, and goes on with other releases."""
        ...

    def write(self) -> AbstractContextManager[Transaction]:
        """One serialisable transaction: durable when the block is left, undone if it raises.

        Privacy: the lock is taken before anything is read, so no other charge can come between the filter's check
        and the entry. If the commit's outcome is unknown, it raises.
        """
        ...

    def read(self) -> AbstractContextManager[Transaction]:
        """A read transaction on one snapshot."""
        ...

    def check_writable(self) -> None:
        """Raise what a charge would meet, such as a disk that is full or read-only. Changes nothing."""
        ...

    def close(self) -> None: ...


def check_binding(rows: list[Row], name: str, binding: Binding) -> str:
    """The ledger's id, if it was made for what the schema protects."""
    if len(rows) != 1:
        raise damaged_ledger_error(name)
    made_for = Binding(*rows[0][1:])
    if made_for != binding:
        raise IntegrityError(
            f'the ledger "{name}" was made for {_describe_binding(made_for)}, not for {_describe_binding(binding)}',
            hint="Losses of different units do not add up: name a new ledger in the schema.",
        )
    return str(rows[0][0])


BINDING_SQL = "SELECT id, unit, neighbors, group_size FROM ledger"


def _describe_binding(binding: Binding) -> str:
    return f'unit "{binding.unit}", neighbors "{binding.neighbors}", group_size {binding.group_size}'


def ledger_name(name: object) -> str:
    """As errors call it: by its name to who opens it; analysts are not told where it is.

    >>> ledger_name("/srv/clinic.ledger"), ledger_name(None)
    ('the ledger "/srv/clinic.ledger"', 'the ledger')
    """
    return "the ledger" if name is None else f'the ledger "{name}"'


def damaged_ledger_error(name: object) -> IntegrityError:
    return IntegrityError(
        f"{ledger_name(name)} is damaged",
        hint="Restore it from its last backup, and collect the receipts given out since (docs/budget.md).",
    )


def missing_ledger_error(name: str) -> OperationalError:
    return OperationalError(
        f'there is no ledger at "{name}"',
        hint="It is made when the schema is first asked. If it was there before, restore it: a new one has all of its"
        " budget (docs/budget.md).",
    )


def fetch_one(transaction: Transaction, sql: str, *values: object) -> Row | None:
    """The first row, if there is one."""
    rows = transaction.execute(sql, *values)
    return rows[0] if rows else None
