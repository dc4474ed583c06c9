"""A DuckDB that holds the catalog and nothing else: where statements about it are answered.

Law: it is filled from the schema before it is locked, has never seen a row of the data, reaches no file and cannot be
reconfigured. It runs one SELECT at a time, as `compiler/catalog/query.py` has written it, and nothing changes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import duckdb

from dpsql.compiler.catalog import oids
from dpsql.compiler.catalog.builtin import find_relation, load_relations, load_rows
from dpsql.compiler.catalog.macros import MACROS
from dpsql.compiler.catalog.tables import CatalogRow, is_session_relation, rows_of_schema
from dpsql.engines.duckdb import (
    has_intervals,
    intervals_from_parts,
    quote_identifier,
    select_interval_parts,
)
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
from dpsql.session.postprocess.duckdb_errors import invalid_value_error
from dpsql.session.postprocess.locked_duckdb import LockedDatabases
from dpsql.types import Type, parse_type

MAX_ROWS = 100_000
MEMORY_LIMIT = "256MB"


class CatalogStatement(Protocol):
    """A catalog query as `compiler/catalog/query.py` has rewritten it."""

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
    rows: list[CatalogRow]


@dataclass(frozen=True)
class CatalogRequest:
    """A query without what wrote it, for another process."""

    sql: str
    columns: tuple[tuple[str, str | None], ...]


class CatalogExecutor(Protocol):
    """Where statements about the catalog are answered instead of here, for a server: types as DuckDB tells them, and
    rows."""

    def run_catalog(
        self, schema: Schema, request: CatalogRequest, timeout: float
    ) -> tuple[list[str], list[CatalogRow]]: ...
    def describe_catalog(self, schema: Schema, request: CatalogRequest) -> list[str]: ...


_executor: CatalogExecutor | None = None


def set_catalog_executor(executor: CatalogExecutor | None) -> None:
    """From now on, in this process; None: here again."""
    global _executor
    _executor = executor


def run_catalog_query(schema: Schema, query: CatalogStatement, timeout: float) -> CatalogRows:
    """Answer one statement; `schema` has the columns of its views. Numbers of objects that print as names do so."""
    request = CatalogRequest(query.sql, query.columns)
    types, result_rows = (run_catalog_in_process if _executor is None else _executor.run_catalog)(
        schema, request, timeout
    )
    return CatalogRows(_result_columns(query, types), result_rows)


def describe_catalog_query(schema: Schema, query: CatalogStatement) -> tuple[CatalogColumn, ...]:
    """The columns that `run_catalog_query` would give."""
    request = CatalogRequest(query.sql, query.columns)
    return _result_columns(
        query, (describe_catalog_in_process if _executor is None else _executor.describe_catalog)(schema, request)
    )


def run_catalog_in_process(schema: Schema, query: CatalogRequest, timeout: float) -> tuple[list[str], list[CatalogRow]]:
    with _DATABASES.open_cursor(schema, timeout) as cursor:
        result = cursor.execute(_DATABASES.require_single_select(query.sql))
        types = [str(type_) for _, type_, *_ in result.description or ()]
        columns = _result_columns(query, types)
        result_rows = result.fetchmany(MAX_ROWS + 1)
        if has_intervals(types):
            result_rows = intervals_from_parts(
                cursor.execute(select_interval_parts(query.sql, types)).fetchmany(MAX_ROWS + 1), types
            )
    if len(result_rows) > MAX_ROWS:
        raise LimitExceeded(f"the answer has more than {MAX_ROWS:,} rows", hint="Add a LIMIT.")
    return types, _print_object_names(schema, columns, result_rows)


def describe_catalog_in_process(schema: Schema, query: CatalogRequest) -> list[str]:
    _DATABASES.require_single_select(query.sql)
    with _DATABASES.open_cursor(schema, timeout=10) as cursor:
        described = cursor.execute(f"DESCRIBE {query.sql}").fetchall()
        return [str(type_) for _, type_, *_ in described]


def _result_columns(query: CatalogStatement, types: Sequence[str]) -> tuple[CatalogColumn, ...]:
    if len(types) != len(query.columns):
        raise InternalError("a statement about the catalog has other columns than it says")
    return tuple(
        _result_column(name, declared_type, engine_type)
        for (name, declared_type), engine_type in zip(query.columns, types, strict=True)
    )


_POSTGRES_TYPES = {"VARCHAR": "text", "UINTEGER": "oid", "BIGINT": "int8", "INTEGER": "int4", "SMALLINT": "int2",
            "HUGEINT": "numeric", "BOOLEAN": "bool", "DOUBLE": "float8", "FLOAT": "float4", "JSON": "json",
            "TIMESTAMP WITH TIME ZONE": "timestamptz", '"NULL"': "text", "UBIGINT": "numeric"}  # fmt: skip


def _result_column(name: str, declared_type: str | None, engine_type: str) -> CatalogColumn:
    spelling = "text" if declared_type == "unknown" else declared_type or _postgres_type_name(engine_type)
    plain = {"oid": "bigint", "name": "text", "numeric": engine_type}.get(spelling, spelling)
    return CatalogColumn(name, None if spelling == "char" else parse_type(plain), spelling)


def _postgres_type_name(engine_type: str) -> str:
    if engine_type.endswith("[]"):
        return _postgres_type_name(engine_type[:-2]) + "[]"
    return "numeric" if engine_type.startswith("DECIMAL") else _POSTGRES_TYPES.get(engine_type, engine_type.lower())


def _print_object_names(
    schema: Schema, columns: Sequence[CatalogColumn], result_rows: list[CatalogRow]
) -> list[CatalogRow]:
    printers = [_object_names(schema, column.spelling) for column in columns]
    if not any(printers):
        return result_rows
    return [
        tuple(
            value if names is None else _print_value(names, value) for names, value in zip(printers, row, strict=True)
        )
        for row in result_rows
    ]


def _print_value(names: dict[int, str], value: object) -> object:
    if isinstance(value, list):
        return [_print_value(names, item) for item in value]
    if not isinstance(value, int):
        return value
    return names.get(value) or ("-" if value == 0 else str(value))


def _object_names(schema: Schema, spelling: str) -> dict[int, str] | None:
    """The names of the objects that a column of numbers is about."""
    match spelling.removesuffix("[]"):
        case "regclass":
            return {oid: name_text for oid, _, name_text, _, _ in oids.relation_rows(schema)}
        case "regtype":
            return {oid: name_text for oid, name_text, *_ in oids.type_rows(schema)}
        case "regproc":
            return {oid: name for oid, name, *_ in oids.procedure_rows()}
        case "regprocedure":
            return {row[0]: row[5] for row in oids.procedure_rows()}
        case "regnamespace":
            return dict(oids.namespace_rows())
        case _:
            return None


# --- the database ----------------------------------------------------------------------------------------------------


_UNKNOWN_COLUMN = re.compile(
    r'Referenced column "([^"]+)" (?:was )?not found|Table "[^"]*" does not have a column named "([^"]+)"'
)
_UNKNOWN_TABLE = re.compile(r'Referenced table "([^"]+)" not found')
_ERROR_PREFIX = re.compile(r"^[A-Z][A-Za-z-]*( [A-Za-z-]+)* Error: ")


def _translate_error(error: duckdb.Error) -> Error:
    """In PostgreSQL's words. DuckDB points into a text that the reader has not written."""
    text = str(error)
    column, source = _UNKNOWN_COLUMN.search(text), _UNKNOWN_TABLE.search(text)
    if column is not None:
        return UnknownColumn(f'column "{column[1] or column[2]}" does not exist')
    if source is not None:
        return ProgrammingError(f'missing FROM-clause entry for table "{source[1]}"', sqlstate="42P01")
    if isinstance(error, duckdb.OutOfMemoryException):
        return OperationalError(f"the statement needs more than {MEMORY_LIMIT} of memory", sqlstate="53200")
    if isinstance(error, duckdb.ConversionException):
        known = invalid_value_error(_ERROR_PREFIX.sub("", text.split("\n")[0]))
        return known or DataError(
            "a value of the statement does not have the type that it is read as", sqlstate="22P02"
        )
    if "Division by zero" in text:
        return DataError("division by zero", sqlstate="22012")
    first = next((line for line in text.split("\n\nLINE ")[0].splitlines() if line.strip()), type(error).__name__)
    return DataError(f"the statement about the catalog failed: {_ERROR_PREFIX.sub('', first).rstrip('.!')}")


def _timeout_error(timeout: float) -> Error:
    return OperationalError(f"the statement took longer than {timeout:g} s", sqlstate="57014")


def _fill_database(connection: duckdb.DuckDBPyConnection, schema: Schema) -> None:
    for catalog_relation in load_relations().values():
        if not is_session_relation(catalog_relation):
            name = (
                catalog_relation.name
                if catalog_relation.namespace == "pg_catalog"
                else f"{catalog_relation.namespace}.{catalog_relation.name}"
            )
            columns = [
                (attribute.name, oids.duckdb_type_of(attribute.type)) for attribute in catalog_relation.attributes
            ]
            _create_table(connection, name, columns, rows_of_schema(schema, catalog_relation))
    for name, column_list, table_rows in _lookup_tables(schema):
        columns = [(part.split()[0], part.split()[1]) for part in column_list.split(", ")]
        _create_table(connection, name, columns, list(table_rows))
    for macro in MACROS:
        connection.execute(f"CREATE MACRO {macro}")


def _lookup_tables(schema: Schema) -> Iterator[tuple[str, str, Iterable[CatalogRow]]]:
    described = find_relation("pg_catalog", "pg_description")
    assert described is not None
    yield "lookup__none", "nothing__ INTEGER", ()
    yield ("lookup__relations", "oid__ UINTEGER, name__ VARCHAR, shown__ VARCHAR, visible__ BOOLEAN, "
           "publishable__ BOOLEAN", oids.relation_rows(schema))  # fmt: skip
    yield "lookup__relation_names", "name__ VARCHAR, oid__ UINTEGER", oids.relation_names(schema)
    yield ("lookup__types", "oid__ UINTEGER, name__ VARCHAR, visible__ BOOLEAN, before__ VARCHAR, after__ VARCHAR, "
           "numeric__ BOOLEAN, length__ BOOLEAN", oids.type_rows(schema))  # fmt: skip
    yield "lookup__type_names", "name__ VARCHAR, oid__ UINTEGER", oids.type_names(schema)
    yield ("lookup__comments", "object__ UINTEGER, class__ VARCHAR, place__ INTEGER, text__ VARCHAR",
           oids.comment_rows(schema, rows_of_schema(schema, described)))  # fmt: skip
    yield "lookup__constraints", "oid__ UINTEGER, text__ VARCHAR", oids.constraint_rows(schema)
    yield ("lookup__indexes", "oid__ UINTEGER, place__ INTEGER, text__ VARCHAR, pretty__ VARCHAR",
           oids.index_rows(schema))  # fmt: skip
    yield "lookup__roles", "oid__ UINTEGER, name__ VARCHAR", oids.role_rows()
    yield "lookup__views", "oid__ UINTEGER, text__ VARCHAR", oids.view_rows(schema)
    yield ("lookup__procedures", "oid__ UINTEGER, name__ VARCHAR, arguments__ VARCHAR, identity__ VARCHAR, "
           "result__ VARCHAR, signature__ VARCHAR", oids.procedure_rows())  # fmt: skip
    yield "lookup__spaces", "oid__ UINTEGER, name__ VARCHAR", oids.namespace_rows()
    yield ("lookup__keywords", "word VARCHAR, catcode VARCHAR, barelabel BOOLEAN, catdesc VARCHAR, baredesc VARCHAR",
           [(word, code, bare == "t", *texts) for word, code, bare, *texts in load_rows("keywords")])  # fmt: skip


def _create_table(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    columns: Sequence[tuple[str, str]],
    table_rows: Sequence[CatalogRow],
) -> None:
    column_list = ", ".join(f"{quote_identifier(column)} {type_}" for column, type_ in columns)
    connection.execute(f"CREATE TABLE main.{quote_identifier(name)} ({column_list})")
    if not table_rows:
        return
    values = [list(column) for column in zip(*table_rows, strict=True)]
    lists = ", ".join(f"unnest(${number}::{type_}[])" for number, (_, type_) in enumerate(columns, 1))
    connection.execute(f"INSERT INTO main.{quote_identifier(name)} SELECT {lists}", values)


_DATABASES: LockedDatabases[Schema] = LockedDatabases(
    "catalog",
    settings=(
        ("memory_limit", MEMORY_LIMIT),
        ("threads", 1),  # small tables: more would only wait for each other
        ("scalar_subquery_error_on_multiple_rows", True),
    ),
    fill=_fill_database,
    translate_error=_translate_error,
    timeout_error=_timeout_error,
)
"""Those of the process, one for each schema."""
