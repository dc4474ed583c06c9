"""After the noise: all of SQL, over released values only.

Law: this DuckDB has never seen a private row, holds no table, reaches no file and cannot be reconfigured. So what it
says, errors included, is a function of the statement and of releases, and may be shown in full.

One instance serves the whole process, one cursor each statement; a server has it in processes of their own
(`children`), since DuckDB's own limit of memory does not count all. Releases come in as parameters:

    WITH r1 AS MATERIALIZED (SELECT unnest($1::BIGINT[]) AS "n") SELECT … FROM r1

Those of many rows come in as arrays (`arrays`), which the statement's own cursor, and nobody else's, has as a temporary
view; it is gone with the cursor.

A statement that has a WITH of its own gets ours put in front of its first part: `WITH x AS (…) SELECT …` becomes
`WITH r1 AS MATERIALIZED (…), x AS (…) SELECT …`. (Around it as a sub-select, its ORDER BY would bind nobody; before it
in parentheses, DuckDB 2.0 forgets the inner WITH.) So a release must not be named like a CTE of the statement.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import duckdb

from dpsql.engines.duckdb import identifier, in_utc, lock, types_of
from dpsql.engines.intervals import from_parts, holds_intervals, parts_asked
from dpsql.engines.watch import Watch
from dpsql.errors import Error, InternalError, LimitExceeded, OperationalError
from dpsql.exact import Row
from dpsql.intervals import interval_words
from dpsql.post.arrays import ArrayTable, list_of
from dpsql.post.failures import read_failure
from dpsql.types import Type, parse_type

MAX_ROWS = 1_000_000
MEMORY = "1GB"

_SETTINGS: tuple[tuple[str, object], ...] = (
    ("memory_limit", MEMORY),
    ("temp_directory", ""),  # nothing is written, not even for want of memory
    ("autoload_known_extensions", False),
    ("autoinstall_known_extensions", False),
    ("allow_community_extensions", False),
    ("allow_persistent_secrets", False),
    ("python_enable_replacements", False),  # else an unknown table name is looked up among Python's variables
    ("error_on_division_by_zero", False),  # noisy counts are 0 now and then: a ratio is NULL there, not an error
    ("ieee_floating_point_ops", True),
    ("integer_division", False),
    ("default_collation", ""),
    ("default_order", "ASC"),
    ("default_null_order", "NULLS_LAST"),
    ("TimeZone", "UTC"),
    ("Calendar", "gregorian"),
    ("preserve_insertion_order", True),
)


@dataclass(frozen=True)
class ReleasedTable:
    """A release, or rows of public tables, by the name under which the statement reads it.

    `rows` holds one sequence of Python values for each column. Without columns it is one row.
    """

    name: str
    columns: tuple[tuple[str, Type | str], ...]  # text spells a type of DuckDB's own, as of a list
    rows: Sequence[Sequence[Any]]

    def __post_init__(self) -> None:
        if len(self.rows) != len(self.columns) or len({len(column) for column in self.rows}) > 1:
            raise ValueError("a released table has one value for each row and column")


Table = ReleasedTable | ArrayTable


@dataclass(frozen=True)
class OutputColumn:
    """`type` is None where dpsql has no such type, as for lists; `spelling` is DuckDB's word for it."""

    name: str
    type: Type | None
    spelling: str


@dataclass(frozen=True)
class Rows:
    columns: tuple[OutputColumn, ...]
    rows: list[Row]


class Place(Protocol):
    """Where statements are post-processed instead of here: `children`, for a server."""

    def run(self, sql: str, tables: Sequence[Table], timeout: float) -> Rows: ...
    def describe(self, sql: str, tables: Sequence[Table]) -> tuple[OutputColumn, ...]: ...


_elsewhere: Place | None = None
_asker: ContextVar[str] = ContextVar("asker", default="")


@contextmanager
def on_behalf_of(account: str) -> Iterator[None]:
    """Whose statements are post-processed within: who waits for a place waits behind her own."""
    before = _asker.set(account)
    try:
        yield
    finally:
        _asker.reset(before)


def asker() -> str:
    return _asker.get()


def run_elsewhere(place: Place | None) -> None:
    """From now on, in this process; None: here again."""
    global _elsewhere
    _elsewhere = place


def run(sql: str, tables: Sequence[Table], timeout: float) -> Rows:
    """Run one SELECT over releases; at most `timeout` seconds and MAX_ROWS rows."""
    return run_here(sql, tables, timeout) if _elsewhere is None else _elsewhere.run(sql, tables, timeout)


def describe(sql: str, tables: Sequence[Table]) -> tuple[OutputColumn, ...]:
    """The columns that `run` would give, whatever the rows: they are not looked at, and may be empty."""
    return describe_here(sql, tables) if _elsewhere is None else _elsewhere.describe(sql, tables)


def run_here(sql: str, tables: Sequence[Table], timeout: float) -> Rows:
    text, parameters = _with_releases(sql, tables), [one for table in tables for one in _parameters(table)]
    with _cursor(timeout) as cursor:
        for table in tables:
            if isinstance(table, ArrayTable):
                cursor.register(table.view, dict(table.scanned))
        result = cursor.execute(_single_select(text), parameters or None)
        columns = tuple(column_of(str(name), str(type_)) for name, type_, *_ in result.description or ())
        rows = result.fetchmany(MAX_ROWS + 1)
        if len(rows) > MAX_ROWS:
            raise LimitExceeded(f"the answer has more than {MAX_ROWS:,} rows", hint="Add a LIMIT.")
        types = types_of(result)
        if holds_intervals(types):
            again = cursor.execute(_single_select(parts_asked(text, types)), parameters or None)
            rows = from_parts(again.fetchall(), types)
        return Rows(columns, in_utc(rows, types))


def describe_here(sql: str, tables: Sequence[Table]) -> tuple[OutputColumn, ...]:
    tables = [ReleasedTable(table.name, table.columns, [[] for _ in table.columns]) for table in tables]
    text = _with_releases(sql, tables)
    _single_select(text)
    with _cursor(timeout=10) as cursor:
        described = cursor.execute(f"DESCRIBE {text}", [[] for table in tables for _ in table.columns] or None)
        return tuple(column_of(name, type_) for name, type_, *_ in described.fetchall())


def column_of(name: str, spelled: str) -> OutputColumn:
    return OutputColumn(name, parse_type(spelled), spelled)


def _with_releases(sql: str, tables: Sequence[Table]) -> str:
    own = re.match(r"\s*WITH\s+(RECURSIVE\s+)?", sql, re.IGNORECASE)
    rest = sql[own.end() :] if own else sql
    if re.match(r"\s*\(\s*WITH\b", sql, re.IGNORECASE):
        raise InternalError("a post-processing statement must not begin with WITH in parentheses")
    ctes, first = [], 1
    for table in tables:
        ctes.append(f"{identifier(table.name)} AS {_select(table, first)}")
        first += len(table.parameters) if isinstance(table, ArrayTable) else len(table.columns)
    if not ctes:
        return sql
    recursive = "RECURSIVE " if own and own[1] else ""
    return f"WITH {recursive}{', '.join(ctes)}{', ' if own else ' '}{rest}"


def _select(table: Table, first: int) -> str:
    if isinstance(table, ArrayTable):  # not materialized: what a statement does not use is not scanned
        return f"({table.select(first)})"
    columns = [
        f"unnest(${at}::{list_of(type_)}) AS {identifier(name)}"
        for at, (name, type_) in enumerate(table.columns, start=first)
    ]
    return f"MATERIALIZED (SELECT {', '.join(columns) or '1'})"


def _parameters(table: Table) -> list[list[Any]]:
    """Intervals are told in words: the driver takes days and seconds of them."""
    columns = table.parameters if isinstance(table, ArrayTable) else table.rows
    return [[interval_words(one) if isinstance(one, dt.timedelta) else one for one in column] for column in columns]


def _single_select(sql: str) -> duckdb.Statement:
    """Nothing but one SELECT runs, so nothing outlives a statement."""
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise _failed(error) from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise InternalError("the sandbox was given something else than one SELECT")
    return statements[0]


@contextmanager
def _cursor(timeout: float) -> Iterator[duckdb.DuckDBPyConnection]:
    """A cursor of the process's sandbox, interrupted when its time is over."""
    cursor = _sandbox().cursor()
    try:
        with _watch.limit(timeout, cursor.interrupt):  # left before the cursor is closed
            yield cursor
    except duckdb.InterruptException:
        raise OperationalError(
            f"post-processing took longer than {timeout:g} s",
            hint="Ask for less at a time; the releases are paid for, and asking again is free.",
            sqlstate="57014",
        ) from None
    except duckdb.Error as error:
        raise _failed(error) from None
    finally:
        cursor.close()


def _failed(error: duckdb.Error) -> Error:
    if isinstance(error, duckdb.OutOfMemoryException):
        return OperationalError(f"post-processing needs more than {MEMORY} of memory", sqlstate="53200")
    return read_failure(type(error).__name__, str(error))


_watch = Watch()
_guard = threading.Lock()
_instances: dict[int, duckdb.DuckDBPyConnection] = {}


def _sandbox() -> duckdb.DuckDBPyConnection:
    """The process's locked instance. A forked child makes its own: DuckDB's threads do not survive a fork."""
    process = os.getpid()
    with _guard:
        if process not in _instances:
            connection = duckdb.connect(":memory:")
            lock(connection, _SETTINGS)
            _instances[process] = connection
        return _instances[process]
