"""The catalog's table of a name."""

from __future__ import annotations

from dpsql.catalog.builtin import CATALOG_SCHEMAS, CatalogRelation, find_relation, load_relations
from dpsql.catalog.contents import rows_of_relation
from dpsql.catalog.identity import Identity
from dpsql.catalog.rows import CatalogTable
from dpsql.schema.model import Schema
from dpsql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, REAL, SMALLINT, TEXT, TIMESTAMPTZ, Type

_COLUMN_TYPES = {
    "boolean": BOOLEAN, "smallint": SMALLINT, "integer": INTEGER, "bigint": BIGINT, "oid": BIGINT, "xid": BIGINT,
    "regproc": BIGINT, "real": REAL, "double precision": DOUBLE, "timestamp with time zone": TIMESTAMPTZ,
    "cardinal_number": INTEGER, "time_stamp": TIMESTAMPTZ,
}  # fmt: skip


def is_catalog_schema(schema_name: str) -> bool:
    return schema_name.lower() in CATALOG_SCHEMAS


def catalog_schema_of(schema: Schema, schema_name: str, table_name: str) -> str | None:
    """The catalog's schema in which a table is looked up; pg_catalog's need no qualifier."""
    if schema_name:
        return schema_name.lower() if is_catalog_schema(schema_name) else None
    is_declared = any(declared.name.lower() == table_name.lower() for declared in schema.relations)
    return "pg_catalog" if not is_declared and find_relation("pg_catalog", table_name.lower()) is not None else None


def catalog_table_names(schema_name: str) -> tuple[str, ...]:
    return tuple(name for namespace, name in load_relations() if namespace == schema_name.lower())


def find_catalog_table(schema: Schema, identity: Identity, schema_name: str, table_name: str) -> CatalogTable | None:
    """The rows of a catalog's table; lists in it as PostgreSQL writes them."""
    namespace = catalog_schema_of(schema, schema_name, table_name)
    catalog_relation = None if namespace is None else find_relation(namespace, table_name.lower())
    if catalog_relation is None:
        return None
    rows = rows_of_relation(schema, identity, catalog_relation.place, catalog_relation.name)
    return CatalogTable(_column_types(catalog_relation), tuple(tuple(_list_to_text(value) for value in row) for row in rows))


def _column_types(one: CatalogRelation) -> tuple[tuple[str, Type], ...]:
    words = [(one.name, one.type.removeprefix("information_schema.")) for one in one.attributes]
    return tuple((name, _COLUMN_TYPES.get(word, TEXT)) for name, word in words)


def _list_to_text(value: object) -> object:
    return "{" + ",".join(str(part) for part in value) + "}" if isinstance(value, list) else value


def all_catalog_tables(schema: Schema, identity: Identity) -> dict[tuple[str, str], CatalogTable]:
    by_name = {(namespace, name): find_catalog_table(schema, identity, namespace, name) for namespace, name in load_relations()}
    return {key: table for key, table in by_name.items() if table is not None}
