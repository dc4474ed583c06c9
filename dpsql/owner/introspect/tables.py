"""What tables there are, by their structure: names, types, keys and constraints. For the owner who drafts a schema.

Law: no value of a row is in what comes back, nor in an error. Labels of an ENUM of DuckDB are values: a type can be
made of rows, as a categorical of pandas is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dpsql.engines.duckdb_admin import DuckDBAdmin
from dpsql.errors import OperationalError
from dpsql.schema.model import EngineTable, Files, Source
from dpsql.types import TEXT, TIMESTAMP, Kind, Type, outer_type_name, parse_type


@dataclass(frozen=True)
class IntrospectedColumn:
    """`type` is None where dpsql has no such type; `values` are those of a type that a person has written.

    `length` is VARCHAR's; `spelling` names the type without what is in it, see `outer_type_name`.

    `guess` says what is not certain about the type; `format` is how times are written in a text file.
    """

    name: str
    spelling: str
    type: Type | None
    values: tuple[str, ...] = ()
    length: int | None = None
    comment: str | None = None
    guess: str | None = None
    format: str = ""


@dataclass(frozen=True)
class ForeignKeyReference:
    """A declared foreign key; `table` is a name among the tables that were found together."""

    columns: tuple[str, ...]
    table: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class IntrospectedTable:
    name: str
    source: Source
    columns: tuple[IntrospectedColumn, ...]
    unique: tuple[tuple[str, ...], ...] = ()  # the primary key first
    references: tuple[ForeignKeyReference, ...] = ()
    checks: tuple[str, ...] = ()  # the expressions of CHECK constraints
    comment: str | None = None
    server_path: tuple[str, ...] = ()  # of a table on a server: its schema and name there

    def find_column(self, name: str) -> IntrospectedColumn | None:
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True)
class IntrospectedSource:
    """The tables of one source; `left_out` says what else is there, and why it is no table here."""

    tables: tuple[IntrospectedTable, ...]
    left_out: tuple[str, ...] = field(default=())


def declarable_type(spelling: str) -> Type | None:
    """The type to declare for an engine's: the closest that holds all its values.

    >>> [str(declarable_type(s)) for s in ("UINTEGER", "TIMESTAMP_NS", "ENUM('a')", "INTEGER[]", "INTERVAL")]
    ['bigint', 'timestamp', 'text', 'None', 'None']
    """
    if spelling.startswith("ENUM(") and spelling.endswith(")"):
        return TEXT
    if re.fullmatch(r"TIMESTAMP_(S|MS|NS)", spelling):
        return TIMESTAMP
    type_ = parse_type(spelling)
    return None if type_ is not None and type_.kind is Kind.INTERVAL else type_  # no statement may name such a column


def _introspect_column(name: str, spelling: str, comment: str | None = None) -> IntrospectedColumn:
    return IntrospectedColumn(name, outer_type_name(spelling), declarable_type(spelling), comment=comment)


# --- DuckDB ----------------------------------------------------------------------------------------------------------

_COLUMNS = """
SELECT schema_name, table_name, column_name, data_type, comment FROM duckdb_columns()
WHERE database_name = current_database() AND NOT internal ORDER BY schema_name, table_name, column_index
"""
_TABLES = """
SELECT schema_name, table_name, comment FROM duckdb_tables()
WHERE database_name = current_database() AND NOT internal ORDER BY schema_name <> 'main', schema_name, table_oid
"""
_COLLATED_TABLES = """
SELECT schema_name, table_name FROM duckdb_tables()
WHERE database_name = current_database() AND NOT internal AND contains(lower(sql), 'collate')
"""
_VIEWS = """
SELECT view_name FROM duckdb_views()
WHERE database_name = current_database() AND NOT internal ORDER BY view_name
"""
_CONSTRAINTS = """
SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names,
       expression
FROM duckdb_constraints() WHERE database_name = current_database()
ORDER BY constraint_type <> 'PRIMARY KEY', constraint_index
"""


def introspect_duckdb(owner: DuckDBAdmin) -> IntrospectedSource:
    """The tables of the attached database; what constraints say of them is enforced by it."""
    names = {(str(s), str(t)): _plain_table_name(str(s), str(t), "main") for s, t, _ in owner.query_rows(_TABLES)}
    columns = owner.query_rows(_COLUMNS)
    constraints = owner.query_rows(_CONSTRAINTS)
    collated = {(row[0], row[1]) for row in owner.query_rows(_COLLATED_TABLES)}
    tables = []
    for schema, table, comment in owner.query_rows(_TABLES):
        qualified_name = (str(schema), str(table))
        own = [row for row in constraints if (row[0], row[1]) == qualified_name]
        source = EngineTable((qualified_name[1],) if qualified_name[0] == "main" else qualified_name)
        tables.append(
            IntrospectedTable(
                names[qualified_name],
                source,
                tuple(
                    _without_collation(owner, source, column) if qualified_name in collated else column
                    for column in (_introspect_duckdb_column(row) for row in columns if row[:2] == qualified_name)
                ),
                tuple(_to_strings(row[3]) for row in own if row[2] in ("PRIMARY KEY", "UNIQUE")),
                tuple(
                    ForeignKeyReference(_to_strings(row[3]), names[qualified_name[0], str(row[4])], _to_strings(row[5]))
                    for row in own
                    if row[2] == "FOREIGN KEY" and (qualified_name[0], str(row[4])) in names
                ),
                tuple(str(row[6]) for row in own if row[2] == "CHECK"),
                None if comment is None else str(comment),
            )
        )
    return IntrospectedSource(tuple(tables), tuple(f'the view "{view}"' for (view,) in owner.query_rows(_VIEWS)))


def _plain_table_name(schema: str, table: str, usual: str) -> str:
    return table if schema == usual else f"{schema}_{table}"


def _to_strings(value: object) -> tuple[str, ...]:
    assert isinstance(value, list)
    return tuple(str(item) for item in value)


def _without_collation(owner: DuckDBAdmin, source: EngineTable, column: IntrospectedColumn) -> IntrospectedColumn:
    """The column without a type, if it has a collation other than bytes: registering refuses it."""
    if column.type is None or column.type.kind is not Kind.TEXT or owner.is_compared_by_bytes(source, column.name):
        return column
    return replace(column, type=None, spelling=f"{column.spelling} with a collation")


def _introspect_duckdb_column(row: Sequence[object]) -> IntrospectedColumn:
    return _introspect_column(str(row[2]), str(row[3]), None if row[4] is None else str(row[4]))


# --- files -----------------------------------------------------------------------------------------------------------


def introspect_parquet(owner: DuckDBAdmin, name: str, files: Files, first: str) -> IntrospectedTable:
    """By the footer of the first file: all files of a source have the same columns."""
    try:
        described = owner.describe(replace(files, patterns=(first,)))
    except OperationalError:
        raise OperationalError(f'"{Path(first).name}" cannot be read as Parquet', hint="Write the file anew.") from None
    return IntrospectedTable(
        name, files, tuple(_introspect_column(column, spelling) for column, spelling in described.items())
    )
