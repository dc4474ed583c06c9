"""The catalog's table of a name."""

from __future__ import annotations

from dpsql.catalog import information, pg_catalog
from dpsql.catalog.identity import Identity
from dpsql.catalog.rows import CatalogTable
from dpsql.schema.model import Schema

_BY_SCHEMA = {"information_schema": information.TABLES, "pg_catalog": pg_catalog.TABLES}


def is_catalog(schema_name: str) -> bool:
    return schema_name.lower() in _BY_SCHEMA


def place_of(schema: Schema, schema_name: str, table_name: str) -> str | None:
    """The catalog's schema in which a table is looked up; pg_catalog's need no qualifier."""
    if schema_name:
        return schema_name.lower() if is_catalog(schema_name) else None
    own = any(relation.name.lower() == table_name.lower() for relation in schema.relations)
    return "pg_catalog" if not own and table_name.lower() in pg_catalog.TABLES else None


def names(schema_name: str) -> tuple[str, ...]:
    return tuple(_BY_SCHEMA[schema_name.lower()])


def find(schema: Schema, who: Identity, schema_name: str, table_name: str) -> CatalogTable | None:
    """The rows of a catalog's table."""
    place = place_of(schema, schema_name, table_name)
    build = None if place is None else _BY_SCHEMA[place].get(table_name.lower())
    return None if build is None else build(schema, who)


def tables(schema: Schema, who: Identity) -> dict[tuple[str, str], CatalogTable]:
    return {
        (space, name): build(schema, who) for space, builders in _BY_SCHEMA.items() for name, build in builders.items()
    }
