"""The catalog's table of a name."""

from __future__ import annotations

from dpsql.catalog.builtin import PLACES, Relation, relation, relations
from dpsql.catalog.contents import all_rows
from dpsql.catalog.identity import Identity
from dpsql.catalog.rows import CatalogTable
from dpsql.schema.model import Schema
from dpsql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, REAL, SMALLINT, TEXT, TIMESTAMPTZ, Type

_TYPES = {
    "boolean": BOOLEAN, "smallint": SMALLINT, "integer": INTEGER, "bigint": BIGINT, "oid": BIGINT, "xid": BIGINT,
    "regproc": BIGINT, "real": REAL, "double precision": DOUBLE, "timestamp with time zone": TIMESTAMPTZ,
    "cardinal_number": INTEGER, "time_stamp": TIMESTAMPTZ,
}  # fmt: skip


def is_catalog(schema_name: str) -> bool:
    return schema_name.lower() in PLACES


def place_of(schema: Schema, schema_name: str, table_name: str) -> str | None:
    """The catalog's schema in which a table is looked up; pg_catalog's need no qualifier."""
    if schema_name:
        return schema_name.lower() if is_catalog(schema_name) else None
    own = any(one.name.lower() == table_name.lower() for one in schema.relations)
    return "pg_catalog" if not own and relation("pg_catalog", table_name.lower()) is not None else None


def names(schema_name: str) -> tuple[str, ...]:
    return tuple(name for place, name in relations() if place == schema_name.lower())


def find(schema: Schema, who: Identity, schema_name: str, table_name: str) -> CatalogTable | None:
    """The rows of a catalog's table; lists in it as PostgreSQL writes them."""
    place = place_of(schema, schema_name, table_name)
    one = None if place is None else relation(place, table_name.lower())
    if one is None:
        return None
    rows = all_rows(schema, who, one.place, one.name)
    return CatalogTable(_columns(one), tuple(tuple(_plain(value) for value in row) for row in rows))


def _columns(one: Relation) -> tuple[tuple[str, Type], ...]:
    words = [(one.name, one.type.removeprefix("information_schema.")) for one in one.attributes]
    return tuple((name, _TYPES.get(word, TEXT)) for name, word in words)


def _plain(value: object) -> object:
    return "{" + ",".join(str(part) for part in value) + "}" if isinstance(value, list) else value


def tables(schema: Schema, who: Identity) -> dict[tuple[str, str], CatalogTable]:
    found = {(place, name): find(schema, who, place, name) for place, name in relations()}
    return {key: table for key, table in found.items() if table is not None}
