"""The catalog's table of a name."""

from __future__ import annotations

from dpsql.catalog import information, pg_catalog
from dpsql.catalog.identity import Identity
from dpsql.catalog.rows import CatalogTable
from dpsql.schema.model import Schema

_BY_SCHEMA = {"information_schema": information.TABLES, "pg_catalog": pg_catalog.TABLES}


def is_catalog(schema_name: str) -> bool:
    return schema_name.lower() in _BY_SCHEMA


def names(schema_name: str) -> tuple[str, ...]:
    return tuple(_BY_SCHEMA[schema_name.lower()])


def find(schema: Schema, who: Identity, schema_name: str, table_name: str) -> CatalogTable | None:
    """The rows of a catalog's table; pg_catalog's need no qualifier, unless the schema has such a table."""
    if not schema_name:
        own = any(table.name.lower() == table_name.lower() for table in schema.tables)
        return None if own else find(schema, who, "pg_catalog", table_name)
    build = _BY_SCHEMA.get(schema_name.lower(), {}).get(table_name.lower())
    return None if build is None else build(schema, who)


def tables(schema: Schema, who: Identity) -> dict[tuple[str, str], CatalogTable]:
    return {
        (space, name): build(schema, who) for space, builders in _BY_SCHEMA.items() for name, build in builders.items()
    }
