"""SHOW TABLES and DESCRIBE: the schema in short."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.compiler.catalog.objects import format_bounds, format_values
from dpsql.compiler.catalog.tables import CatalogTable
from dpsql.compiler.catalog.variables import DEFAULT_SCHEMA
from dpsql.errors import UnknownTable
from dpsql.schema.model import Schema, Table, View
from dpsql.types import TEXT


def show_tables(schema: Schema) -> CatalogTable:
    rows = [(table.name, "public" if table.public else "private") for table in schema.tables]
    synthetic_names = {table.name for table in schema.made}
    rows += [(view.name, "synthetic" if view.name in synthetic_names else "view") for view in schema.views]
    return CatalogTable((("table", TEXT), ("rows", TEXT)), tuple(rows))


def show_schemas() -> CatalogTable:
    return CatalogTable((("schema", TEXT),), ((DEFAULT_SCHEMA,), ("information_schema",), ("pg_catalog",)))


def describe_outputs(columns: Sequence[tuple[str, str]]) -> CatalogTable:
    """DESCRIBE SELECT …: what it would give, by name and type."""
    return CatalogTable((("column", TEXT), ("type", TEXT)), tuple(columns))


def describe_table(schema: Schema, name: str) -> CatalogTable:
    by_name = {relation.name.lower(): relation for relation in schema.relations}
    relation = by_name.get(name.lower())
    if relation is None:
        raise UnknownTable(f'relation "{name}" does not exist', hint=f"Tables: {', '.join(by_name)}.")
    titles = (("column", TEXT), ("type", TEXT), ("bounds", TEXT), ("values", TEXT), ("description", TEXT))
    return CatalogTable(titles, tuple(_column_rows(relation)))


def _column_rows(relation: Table | View) -> list[tuple[str, ...]]:
    return [
        (c.name, str(c.type), format_bounds(c.domain), format_values(c.domain), c.description or "")
        for c in relation.columns
    ]
