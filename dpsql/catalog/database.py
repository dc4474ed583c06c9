"""A DuckDB that holds the catalog and nothing else: where statements about it are answered.

Law: it is filled from the schema before it is locked, has never seen a row of the data, reaches no file and cannot be
reconfigured. It runs one SELECT at a time, as `sql/catalog_query.py` has written it, and nothing changes it.
"""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import duckdb

from dpsql.catalog import lookups
from dpsql.catalog.builtin import relation, relations, rows
from dpsql.catalog.contents import is_of_session, schema_rows
from dpsql.catalog.macros import MACROS
from dpsql.catalog.rows import Row
from dpsql.engines.duckdb import identifier, lock
from dpsql.engines.intervals import from_parts, holds_intervals, parts_asked
from dpsql.engines.watch import Watch
from dpsql.errors import (
    DataError,
    Error,
    InternalError,
    LimitExceeded,
    OperationalError,
    ProgrammingError,
    UnknownColumn,
)
from dpsql.schema.model import Schema
from dpsql.types import Type, parse_type

MAX_ROWS = 100_000
MEMORY = "256MB"
KEPT = 8
"""Schemas whose databases are kept."""

_SETTINGS: tuple[tuple[str, object], ...] = (
    ("memory_limit", MEMORY),
    ("threads", 1),  # small tables: more would only wait for each other
    ("temp_directory", ""),
    ("autoload_known_extensions", False),
    ("autoinstall_known_extensions", False),
    ("allow_community_extensions", False),
    ("allow_persistent_secrets", False),
    ("python_enable_replacements", False),
    ("scalar_subquery_error_on_multiple_rows", True),
    ("default_collation", ""),
    ("default_order", "ASC"),
    ("default_null_order", "NULLS_LAST"),
    ("TimeZone", "UTC"),
    ("Calendar", "gregorian"),
    ("preserve_insertion_order", True),
)


class Query(Protocol):
    """What `sql/catalog_query.py` has written."""

    @property
    def sql(self) -> str: ...

    @property
    def columns(self) -> tuple[tuple[str, str | None], ...]: ...


@dataclass(frozen=True)
class CatalogColumn:
    """`spelling` is PostgreSQL's word, such as oid, name, char or text[]; `type` is dpsql's, where it has one."""

    name: str
    type: Type | None
    spelling: str


@dataclass(frozen=True)
class CatalogRows:
    columns: tuple[CatalogColumn, ...]
    rows: list[Row]


@dataclass(frozen=True)
class Asked:
    """A query without what wrote it, for another process."""

    sql: str
    columns: tuple[tuple[str, str | None], ...]


class Place(Protocol):
    """Where statements about the catalog are answered instead of here, for a server: types as DuckDB tells them, and
    rows."""

    def run_catalog(self, schema: Schema, asked: Asked, timeout: float) -> tuple[list[str], list[Row]]: ...
    def describe_catalog(self, schema: Schema, asked: Asked) -> list[str]: ...


_elsewhere: Place | None = None


def run_elsewhere(place: Place | None) -> None:
    """From now on, in this process; None: here again."""
    global _elsewhere
    _elsewhere = place


def run(schema: Schema, query: Query, timeout: float) -> CatalogRows:
    """Answer one statement; `schema` has the columns of its views. Numbers of objects that print as names do so."""
    asked = Asked(query.sql, query.columns)
    types, found = (run_here if _elsewhere is None else _elsewhere.run_catalog)(schema, asked, timeout)
    return CatalogRows(_columns(query, types), found)


def describe(schema: Schema, query: Query) -> tuple[CatalogColumn, ...]:
    """The columns that `run` would give."""
    asked = Asked(query.sql, query.columns)
    return _columns(query, (describe_here if _elsewhere is None else _elsewhere.describe_catalog)(schema, asked))


def run_here(schema: Schema, query: Asked, timeout: float) -> tuple[list[str], list[Row]]:
    with _cursor(schema, timeout) as cursor:
        result = cursor.execute(_single_select(query.sql))
        types = [str(type_) for _, type_, *_ in result.description or ()]
        columns = _columns(query, types)
        found = result.fetchmany(MAX_ROWS + 1)
        if holds_intervals(types):
            found = from_parts(cursor.execute(parts_asked(query.sql, types)).fetchmany(MAX_ROWS + 1), types)
    if len(found) > MAX_ROWS:
        raise LimitExceeded(f"the answer has more than {MAX_ROWS:,} rows", hint="Add a LIMIT.")
    return types, _printed(schema, columns, found)


def describe_here(schema: Schema, query: Asked) -> list[str]:
    _single_select(query.sql)
    with _cursor(schema, timeout=10) as cursor:
        described = cursor.execute(f"DESCRIBE {query.sql}").fetchall()
        return [str(type_) for _, type_, *_ in described]


def _columns(query: Query, types: Sequence[str]) -> tuple[CatalogColumn, ...]:
    if len(types) != len(query.columns):
        raise InternalError("a statement about the catalog has other columns than it says")
    return tuple(_column(name, known, told) for (name, known), told in zip(query.columns, types, strict=True))


_SPELLED = {"VARCHAR": "text", "UINTEGER": "oid", "BIGINT": "int8", "INTEGER": "int4", "SMALLINT": "int2",
            "HUGEINT": "numeric", "BOOLEAN": "bool", "DOUBLE": "float8", "FLOAT": "float4", "JSON": "json",
            "TIMESTAMP WITH TIME ZONE": "timestamptz", '"NULL"': "text", "UBIGINT": "numeric"}  # fmt: skip


def _column(name: str, known: str | None, told: str) -> CatalogColumn:
    spelling = "text" if known == "unknown" else known or _spelled(told)
    plain = {"oid": "bigint", "name": "text", "numeric": told}.get(spelling, spelling)
    return CatalogColumn(name, None if spelling == "char" else parse_type(plain), spelling)


def _spelled(told: str) -> str:
    if told.endswith("[]"):
        return _spelled(told[:-2]) + "[]"
    return "numeric" if told.startswith("DECIMAL") else _SPELLED.get(told, told.lower())


def _printed(schema: Schema, columns: Sequence[CatalogColumn], found: list[Row]) -> list[Row]:
    printers = [_printer(schema, column.spelling) for column in columns]
    if not any(printers):
        return found
    return [
        tuple(value if names is None else _shown(names, value) for names, value in zip(printers, row, strict=True))
        for row in found
    ]


def _shown(names: dict[int, str], value: object) -> object:
    if isinstance(value, list):
        return [_shown(names, one) for one in value]
    if not isinstance(value, int):
        return value
    return names.get(value) or ("-" if value == 0 else str(value))


def _printer(schema: Schema, spelling: str) -> dict[int, str] | None:
    """The names of the objects that a column of numbers is about."""
    match spelling.removesuffix("[]"):
        case "regclass":
            return {oid: shown for oid, _, shown, _, _ in lookups.relation_rows(schema)}
        case "regtype":
            return {oid: shown for oid, shown, *_ in lookups.type_rows(schema)}
        case "regproc":
            return {oid: name for oid, name, *_ in lookups.procedure_rows()}
        case "regprocedure":
            return {row[0]: row[5] for row in lookups.procedure_rows()}
        case "regnamespace":
            return dict(lookups.space_rows())
        case _:
            return None


# --- the database ----------------------------------------------------------------------------------------------------


def _single_select(sql: str) -> duckdb.Statement:
    """Nothing but one SELECT runs, so nothing outlives a statement."""
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise _failed(error) from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise InternalError("the catalog was given something else than one SELECT")
    return statements[0]


@contextmanager
def _cursor(schema: Schema, timeout: float) -> Iterator[duckdb.DuckDBPyConnection]:
    cursor = _database(schema).cursor()
    try:
        with _watch.limit(timeout, cursor.interrupt):
            yield cursor
    except duckdb.InterruptException:
        raise OperationalError(f"the statement took longer than {timeout:g} s", sqlstate="57014") from None
    except duckdb.Error as error:
        raise _failed(error) from None
    finally:
        cursor.close()


_COLUMN = re.compile(
    r'Referenced column "([^"]+)" (?:was )?not found|Table "[^"]*" does not have a column named "([^"]+)"'
)
_SOURCE = re.compile(r'Referenced table "([^"]+)" not found')
_MOMENT = re.compile(r"^[A-Z][A-Za-z-]*( [A-Za-z-]+)* Error: ")


def _failed(error: duckdb.Error) -> Error:
    """In PostgreSQL's words. DuckDB points into a text that the reader has not written."""
    text = str(error)
    column, source = _COLUMN.search(text), _SOURCE.search(text)
    if column is not None:
        return UnknownColumn(f'column "{column[1] or column[2]}" does not exist')
    if source is not None:
        return ProgrammingError(f'missing FROM-clause entry for table "{source[1]}"', sqlstate="42P01")
    if isinstance(error, duckdb.OutOfMemoryException):
        return OperationalError(f"the statement needs more than {MEMORY} of memory", sqlstate="53200")
    if isinstance(error, duckdb.ConversionException):
        return DataError("a value of the statement does not have the type that it is read as", sqlstate="22P02")
    if "Division by zero" in text:
        return DataError("division by zero", sqlstate="22012")
    first = next((line for line in text.split("\n\nLINE ")[0].splitlines() if line.strip()), type(error).__name__)
    return DataError(f"the statement about the catalog failed: {_MOMENT.sub('', first).rstrip('.!')}")


_watch = Watch()
_guard = threading.Lock()
_instances: OrderedDict[tuple[int, Schema], duckdb.DuckDBPyConnection] = OrderedDict()


def _database(schema: Schema) -> duckdb.DuckDBPyConnection:
    """The locked instance of a schema. A forked child makes its own: DuckDB's threads do not survive a fork."""
    key = os.getpid(), schema
    with _guard:
        if key not in _instances:
            _instances[key] = _filled(schema)
            while len(_instances) > KEPT:
                _instances.popitem(last=False)
        _instances.move_to_end(key)
        return _instances[key]


def _filled(schema: Schema) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    for one in relations().values():
        if not is_of_session(one):
            name = one.name if one.place == "pg_catalog" else f"{one.place}.{one.name}"
            columns = [(attribute.name, lookups.storage(attribute.type)) for attribute in one.attributes]
            _create(connection, name, columns, schema_rows(schema, one))
    for name, spelled, found in _lookups(schema):
        columns = [(part.split()[0], part.split()[1]) for part in spelled.split(", ")]
        _create(connection, name, columns, list(found))
    for macro in MACROS:
        connection.execute(f"CREATE MACRO {macro}")
    lock(connection, _SETTINGS)
    return connection


def _lookups(schema: Schema) -> Iterator[tuple[str, str, Iterable[Row]]]:
    described = relation("pg_catalog", "pg_description")
    assert described is not None
    yield "lookup__none", "nothing__ INTEGER", ()
    yield ("lookup__relations", "oid__ UINTEGER, name__ VARCHAR, shown__ VARCHAR, visible__ BOOLEAN, "
           "publishable__ BOOLEAN", lookups.relation_rows(schema))  # fmt: skip
    yield "lookup__relation_names", "name__ VARCHAR, oid__ UINTEGER", lookups.relation_names(schema)
    yield ("lookup__types", "oid__ UINTEGER, name__ VARCHAR, visible__ BOOLEAN, before__ VARCHAR, after__ VARCHAR, "
           "numeric__ BOOLEAN, length__ BOOLEAN", lookups.type_rows(schema))  # fmt: skip
    yield "lookup__type_names", "name__ VARCHAR, oid__ UINTEGER", lookups.type_names(schema)
    yield ("lookup__comments", "object__ UINTEGER, class__ VARCHAR, place__ INTEGER, text__ VARCHAR",
           lookups.comment_rows(schema, schema_rows(schema, described)))  # fmt: skip
    yield "lookup__constraints", "oid__ UINTEGER, text__ VARCHAR", lookups.constraint_rows(schema)
    yield ("lookup__indexes", "oid__ UINTEGER, place__ INTEGER, text__ VARCHAR, pretty__ VARCHAR",
           lookups.index_rows(schema))  # fmt: skip
    yield "lookup__roles", "oid__ UINTEGER, name__ VARCHAR", lookups.role_rows()
    yield "lookup__views", "oid__ UINTEGER, text__ VARCHAR", lookups.view_rows(schema)
    yield ("lookup__procedures", "oid__ UINTEGER, name__ VARCHAR, arguments__ VARCHAR, identity__ VARCHAR, "
           "result__ VARCHAR, signature__ VARCHAR", lookups.procedure_rows())  # fmt: skip
    yield "lookup__spaces", "oid__ UINTEGER, name__ VARCHAR", lookups.space_rows()
    yield ("lookup__keywords", "word VARCHAR, catcode VARCHAR, barelabel BOOLEAN, catdesc VARCHAR, baredesc VARCHAR",
           [(word, code, bare == "t", *texts) for word, code, bare, *texts in rows("keywords")])  # fmt: skip


def _create(
    connection: duckdb.DuckDBPyConnection, name: str, columns: Sequence[tuple[str, str]], found: Sequence[Row]
) -> None:
    spelled = ", ".join(f"{identifier(column)} {type_}" for column, type_ in columns)
    connection.execute(f"CREATE TABLE main.{identifier(name)} ({spelled})")
    if not found:
        return
    values = [list(column) for column in zip(*found, strict=True)]
    lists = ", ".join(f"unnest(${place}::{type_}[])" for place, (_, type_) in enumerate(columns, 1))
    connection.execute(f"INSERT INTO main.{identifier(name)} SELECT {lists}", values)
