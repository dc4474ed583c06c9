"""The tables of a schema in a real PostgreSQL: what the catalog is compared with."""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.base.pg_types import pg_type_of
from dpsql.compiler.catalog.objects import column_comment, table_comment
from dpsql.schema.model import ForeignUnit, OwnUnit, Schema, Table, View
from dpsql.types import Kind, Type


def statements(schema: Schema) -> Iterator[str]:
    """`schema` has the columns of its views. What the owner would have written, had the data been PostgreSQL's."""
    for table in schema.tables:
        columns = ", ".join(f"{_quoted(c.name)} {_type(c.type)}" for c in table.columns)
        yield f"CREATE TABLE {_quoted(table.name)} ({', '.join((columns, *_keys(table)))})"
    for table in schema.tables:
        if isinstance(table.unit, ForeignUnit):
            own, keys = (", ".join(map(_quoted, names)) for names in (table.unit.columns, table.unit.keys))
            yield (
                f"ALTER TABLE {_quoted(table.name)} ADD FOREIGN KEY ({own}) "
                f"REFERENCES {_quoted(table.unit.table)} ({keys})"
            )
    for view in schema.views:
        yield f"CREATE VIEW {_quoted(view.name)} AS {view.sql}"
    if schema.description is not None:
        yield f"COMMENT ON SCHEMA public IS {_text(schema.description)}"
    for relation in schema.relations:
        yield from _comments(schema, relation)


def _comments(schema: Schema, relation: Table | View) -> Iterator[str]:
    kind = "VIEW" if isinstance(relation, View) else "TABLE"
    yield f"COMMENT ON {kind} {_quoted(relation.name)} IS {_text(table_comment(schema, relation))}"
    for column in relation.columns:
        comment = column_comment(relation, column)
        if comment is not None:
            yield f"COMMENT ON COLUMN {_quoted(relation.name)}.{_quoted(column.name)} IS {_text(comment)}"


def _keys(table: Table) -> Iterator[str]:
    for key in table.unique:
        own = isinstance(table.unit, OwnUnit) and key == (table.unit.column,)
        yield f"{'PRIMARY KEY' if own else 'UNIQUE'} ({', '.join(_quoted(column) for column in key)})"


def _type(type_: Type) -> str:
    if type_.kind is Kind.DECIMAL:
        return f"numeric({type_.precision},{type_.scale})"
    return pg_type_of(type_).spelled


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
