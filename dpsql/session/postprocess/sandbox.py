"""The sandbox of post-processing: all of SQL, over released values only.

Law: this DuckDB has never seen a private row, holds no table, reaches no file and cannot be reconfigured. So what it
says, errors included, is a function of the statement and of releases, and may be shown in full.

One instance serves the whole process, one cursor each statement; a server has it in processes of their own
(`worker_pool.py`), since DuckDB's own limit of memory does not count all. Releases come in as parameters:

    WITH r1 AS MATERIALIZED (SELECT unnest($1::BIGINT[]) AS "n") SELECT … FROM r1

Those of many rows come in as arrays (`ArrayTable`), which the statement's own cursor, and nobody else's, has as a
temporary view; it is gone with the cursor.

A statement that has a WITH of its own gets ours put in front of its first part: `WITH x AS (…) SELECT …` becomes
`WITH r1 AS MATERIALIZED (…), x AS (…) SELECT …`. (Around it as a sub-select, its ORDER BY would bind nobody; before it
in parentheses, DuckDB 2.0 forgets the inner WITH.) So a release must not be named like a CTE of the statement.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import duckdb
import numpy as np

from dpsql.base.intervals import format_interval_words
from dpsql.engines.duckdb import (
    duckdb_type_name,
    has_intervals,
    intervals_from_parts,
    quote_identifier,
    rows_to_utc,
    select_interval_parts,
    select_utc_times,
)
from dpsql.errors import Error, InternalError, LimitExceeded, OperationalError
from dpsql.privacy.exact import Row
from dpsql.session.postprocess.duckdb_errors import translate_duckdb_error
from dpsql.session.postprocess.locked_duckdb import LockedDatabases
from dpsql.types import Kind, Type, parse_type

# --- tables of many rows, as arrays ----------------------------------------------------------------------------------
# The sandbox scans arrays, where it copies lists of Python's values one by one. A column is either places in a list of
# values, or numbers that its type is made of: days and microseconds since 1970 for times, units of the last digit for
# decimals. What is masked is NULL.

MAX_DECIMAL_SCALE = 18
"""Digits behind the point of a decimal that is made of numbers of 64 bits: times 10**-18 is exact in DECIMAL(38)."""


@dataclass(frozen=True, eq=False)
class DictionaryColumn:
    """Places in `values`, from 0 on; None among these is NULL."""

    codes: np.ndarray[Any, Any]
    values: tuple[Any, ...]

    @property
    def raw_array(self) -> np.ndarray[Any, Any]:
        return self.codes


@dataclass(frozen=True, eq=False)
class NumericColumn:
    """Numbers of 64 bits, with a mask."""

    numbers: np.ma.MaskedArray[Any, Any]

    @property
    def raw_array(self) -> np.ndarray[Any, Any]:
        return self.numbers


@dataclass(frozen=True, eq=False)
class ArrayTable:
    """By the name under which the statement reads it."""

    name: str
    columns: tuple[tuple[str, Type], ...]
    arrays: tuple[DictionaryColumn | NumericColumn, ...]

    def __post_init__(self) -> None:
        if len(self.arrays) != len(self.columns) or len({len(array.raw_array) for array in self.arrays}) != 1:
            raise ValueError("a table of arrays has one value for each row and column, and a column")

    @property
    def view_name(self) -> str:
        """What a statement's cursor scans the arrays by."""
        return f"arrays of {self.name}"

    @property
    def raw_arrays(self) -> Mapping[str, np.ndarray[Any, Any]]:
        return {f"a{index}": array.raw_array for index, array in enumerate(self.arrays)}

    @property
    def parameters(self) -> list[Sequence[Any]]:
        return [array.values for array in self.arrays if isinstance(array, DictionaryColumn)]

    def render_select(self, first: int) -> str:
        """Its columns in their types; parameters are counted from `first` on."""
        columns = []
        for index, ((name, type_), column) in enumerate(zip(self.columns, self.arrays, strict=True)):
            array = quote_identifier(f"a{index}")
            if isinstance(column, DictionaryColumn):
                columns.append(f"{render_dictionary_lookup(array, type_, first)} AS {quote_identifier(name)}")
                first += 1
            else:
                columns.append(f"{render_numeric(array, type_)} AS {quote_identifier(name)}")
        # With its place: no part of a statement has such a name for something else.
        return f"SELECT {', '.join(columns)} FROM temp.main.{quote_identifier(self.view_name)}"


def render_dictionary_lookup(array: str, type_: Type, parameter: int) -> str:
    return f"(${parameter}::{list_type_of(type_)})[{array}::BIGINT + 1]"


def render_numeric(array: str, type_: Type) -> str:
    match type_.kind:
        case Kind.DATE:
            return f"(DATE '1970-01-01' + {array}::INTEGER)"
        case Kind.TIMESTAMP:
            return f"make_timestamp({array})"
        case Kind.TIMESTAMPTZ:
            return f"make_timestamptz({array})"
        case Kind.DECIMAL if type_.scale:
            digit = f"CAST('{'0.'.ljust(type_.scale + 1, '0')}1' AS DECIMAL({MAX_DECIMAL_SCALE}, {type_.scale}))"
            return f"({array}::DECIMAL(19, 0) * {digit})::{duckdb_type_name(type_)}"
        case _:
            return f"{array}::{duckdb_type_name(type_)}"


def list_type_of(type_: Type | str) -> str:
    """The type of a parameter that has the values of a column; text spells a type of DuckDB's own."""
    if isinstance(type_, str):
        return f"{type_}[]"
    return "VARCHAR[]::INTERVAL[]" if type_.kind is Kind.INTERVAL else f"{duckdb_type_name(type_)}[]"


# --- statements ------------------------------------------------------------------------------------------------------


MAX_ROWS = 1_000_000
MEMORY_LIMIT = "1GB"


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


SandboxTable = ReleasedTable | ArrayTable


@dataclass(frozen=True)
class OutputColumn:
    """`type` is None where dpsql has no such type, as for lists; `spelling` is DuckDB's word for it."""

    name: str
    type: Type | None
    spelling: str


@dataclass(frozen=True)
class QueryRows:
    columns: tuple[OutputColumn, ...]
    rows: list[Row]


class SandboxExecutor(Protocol):
    """Where statements are post-processed instead of here: `worker_pool.py`, for a server."""

    def run_query(
        self, sql: str, tables: Sequence[SandboxTable], timeout: float, time_zone: str = "UTC"
    ) -> QueryRows: ...
    def describe_query(self, sql: str, tables: Sequence[SandboxTable]) -> tuple[OutputColumn, ...]: ...


_executor: SandboxExecutor | None = None


def set_executor(executor: SandboxExecutor | None) -> None:
    """From now on, in this process; None: here again."""
    global _executor
    _executor = executor


def run_query(sql: str, tables: Sequence[SandboxTable], timeout: float, time_zone: str = "UTC") -> QueryRows:
    """Run one SELECT over releases; at most `timeout` seconds and MAX_ROWS rows. `time_zone` is an engine's name of
    one: local times in the statement are those of its clocks."""
    run = run_in_process if _executor is None else _executor.run_query
    try:
        return run(sql, tables, timeout, time_zone)
    except OperationalError as error:
        if tables and error.sqlstate in ("53200", "57014"):
            error.hint = "Ask for less at a time; the releases are paid for, and asking again is free."
        raise


def describe_query(sql: str, tables: Sequence[SandboxTable]) -> tuple[OutputColumn, ...]:
    """The columns that `run_query` would give, whatever the rows: they are not looked at, and may be empty."""
    return describe_in_process(sql, tables) if _executor is None else _executor.describe_query(sql, tables)


def run_in_process(sql: str, tables: Sequence[SandboxTable], timeout: float, time_zone: str = "UTC") -> QueryRows:
    text, parameters = (
        _prepend_releases(sql, tables),
        [parameter for table in tables for parameter in _table_parameters(table)],
    )
    with _DATABASE.open_cursor(time_zone, timeout) as cursor:
        for table in tables:
            if isinstance(table, ArrayTable):
                cursor.register(table.view_name, dict(table.raw_arrays))
        statement = _DATABASE.require_single_select(text)
        columns: tuple[OutputColumn, ...] | None = None
        if time_zone != "UTC":
            described = cursor.execute(f"DESCRIBE {text}", parameters or None).fetchall()
            columns = tuple(output_column_of(name, type_name) for name, type_name, *_ in described)
            text = select_utc_times(text, [column.spelling for column in columns])
            statement = _DATABASE.require_single_select(text)
        result = cursor.execute(statement, parameters or None)
        if columns is None:
            columns = tuple(output_column_of(str(name), str(type_)) for name, type_, *_ in result.description or ())
        rows = result.fetchmany(MAX_ROWS + 1)
        if len(rows) > MAX_ROWS:
            raise LimitExceeded(f"the answer has more than {MAX_ROWS:,} rows", hint="Add a LIMIT.")
        types = [column.spelling for column in columns]
        if has_intervals(types):
            parts = cursor.execute(
                _DATABASE.require_single_select(select_interval_parts(text, types)), parameters or None
            )
            rows = intervals_from_parts(parts.fetchall(), types)
        return QueryRows(columns, rows_to_utc(rows, types))


def describe_in_process(sql: str, tables: Sequence[SandboxTable]) -> tuple[OutputColumn, ...]:
    tables = [ReleasedTable(table.name, table.columns, [[] for _ in table.columns]) for table in tables]
    text = _prepend_releases(sql, tables)
    _DATABASE.require_single_select(text)
    with _DATABASE.open_cursor("UTC", timeout=10) as cursor:
        described = cursor.execute(f"DESCRIBE {text}", [[] for table in tables for _ in table.columns] or None)
        return tuple(output_column_of(name, type_) for name, type_, *_ in described.fetchall())


def without_overflow(result: QueryRows) -> QueryRows:
    """NULL in the place of infinities and NaN, which arithmetic on doubles gives where there is no number."""
    places = [index for index, column in enumerate(result.columns) if _has_doubles(column)]
    if not places:
        return result
    rows = result.rows
    for index in places:
        if any(_is_overflow(row[index]) for row in rows):
            rows = [(*row[:index], _finite_or_null(row[index]), *row[index + 1 :]) for row in rows]
    return QueryRows(result.columns, rows)


def _has_doubles(column: OutputColumn) -> bool:
    return any(word in column.spelling for word in ("DOUBLE", "FLOAT"))


def _is_overflow(value: Any) -> bool:
    match value:
        case float():
            return not math.isfinite(value)
        case list() | tuple():
            return any(map(_is_overflow, value))
        case dict():
            return any(map(_is_overflow, value.values()))
        case _:
            return False


def _finite_or_null(value: Any) -> Any:
    match value:
        case list():
            return [_finite_or_null(item) for item in value]
        case dict():
            return {key: _finite_or_null(item) for key, item in value.items()}
        case _:
            return None if _is_overflow(value) else value


def output_column_of(name: str, type_name: str) -> OutputColumn:
    return OutputColumn(name, parse_type(type_name), type_name)


def _prepend_releases(sql: str, tables: Sequence[SandboxTable]) -> str:
    with_clause = re.match(r"\s*WITH\s+(RECURSIVE\s+)?", sql, re.IGNORECASE)
    rest = sql[with_clause.end() :] if with_clause else sql
    if re.match(r"\s*\(\s*WITH\b", sql, re.IGNORECASE):
        raise InternalError("a post-processing statement must not begin with WITH in parentheses")
    ctes, first = [], 1
    for table in tables:
        ctes.append(f"{quote_identifier(table.name)} AS {_render_cte(table, first)}")
        first += len(table.parameters) if isinstance(table, ArrayTable) else len(table.columns)
    if not ctes:
        return sql
    recursive = "RECURSIVE " if with_clause and with_clause[1] else ""
    return f"WITH {recursive}{', '.join(ctes)}{', ' if with_clause else ' '}{rest}"


def _render_cte(table: SandboxTable, first: int) -> str:
    if isinstance(table, ArrayTable):  # not materialized: what a statement does not use is not scanned
        return f"({table.render_select(first)})"
    columns = [
        f"unnest(${parameter}::{list_type_of(type_)}) AS {quote_identifier(name)}"
        for parameter, (name, type_) in enumerate(table.columns, start=first)
    ]
    return f"MATERIALIZED (SELECT {', '.join(columns) or '1'})"


def _table_parameters(table: SandboxTable) -> list[list[Any]]:
    """Intervals are told in words: the driver takes days and seconds of them."""
    columns = table.parameters if isinstance(table, ArrayTable) else table.rows
    return [
        [format_interval_words(value) if isinstance(value, dt.timedelta) else value for value in column]
        for column in columns
    ]


def _timeout_error(timeout: float) -> Error:
    return OperationalError(
        f"post-processing took longer than {timeout:g} s",
        hint="Ask for less at a time.",
        sqlstate="57014",
    )


def _translate_error(error: duckdb.Error) -> Error:
    if isinstance(error, duckdb.OutOfMemoryException):
        return OperationalError(f"post-processing needs more than {MEMORY_LIMIT} of memory", sqlstate="53200")
    return translate_duckdb_error(type(error).__name__, str(error))


_DATABASE: LockedDatabases[str] = LockedDatabases(
    "sandbox",
    settings=(
        ("memory_limit", MEMORY_LIMIT),
        ("threads", 1),  # else rows without ORDER BY come in an order that the scheduler decides; it is no slower
        # Noisy counts are 0 now and then: a ratio is NULL there, neither an error nor an infinity.
        ("error_on_division_by_zero", False),
        ("ieee_floating_point_ops", False),
        ("integer_division", False),
    ),
    fill=lambda connection, _: None,
    translate_error=_translate_error,
    timeout_error=_timeout_error,
    time_zone=lambda zone: zone,
)
"""Those of the process, one for each time zone: an instance holds nothing."""
