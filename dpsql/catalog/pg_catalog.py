"""A small pg_catalog: what simple clients read. Sizes and row estimates are constants, whatever the data holds."""

from __future__ import annotations

from collections.abc import Callable

from dpsql.catalog.describe import column_comment, table_comment
from dpsql.catalog.identity import SCHEMA, Identity
from dpsql.catalog.information import NAMESPACES
from dpsql.catalog.pg_types import PG_TYPES, pg_type, type_modifier
from dpsql.catalog.rows import CatalogTable, Row
from dpsql.schema.model import Schema, View
from dpsql.types import BIGINT, BOOLEAN, INTEGER, REAL, TEXT, Type

OWNER = 10
FIRST_TABLE = 16384
NAMESPACE_OIDS = dict(zip(NAMESPACES, (2200, 13000, 11), strict=True))
NAMESPACE_CLASS_OID = 2615
CLASS_OID = 1259
"""pg_class as it numbers itself: what pg_description refers to."""


def relation_oids(schema: Schema) -> dict[str, int]:
    return {relation.name: FIRST_TABLE + place for place, relation in enumerate(schema.relations)}


def pg_namespace(schema: Schema, who: Identity) -> CatalogTable:
    rows = tuple((oid, name, OWNER) for name, oid in NAMESPACE_OIDS.items())
    return CatalogTable((("oid", BIGINT), ("nspname", TEXT), ("nspowner", BIGINT)), rows)


def pg_class(schema: Schema, who: Identity) -> CatalogTable:
    columns: tuple[tuple[str, Type], ...] = (
        ("oid", BIGINT), ("relname", TEXT), ("relnamespace", BIGINT), ("relowner", BIGINT), ("relam", BIGINT),
        ("relpages", INTEGER), ("reltuples", REAL), ("relhasindex", BOOLEAN), ("relpersistence", TEXT),
        ("relkind", TEXT), ("relnatts", INTEGER), ("relhasrules", BOOLEAN), ("relhastriggers", BOOLEAN),
        ("relispartition", BOOLEAN),
    )  # fmt: skip
    space, oids = NAMESPACE_OIDS[SCHEMA], relation_oids(schema)
    rows: list[Row] = []
    for relation in schema.relations:
        method, kind = (0, "v") if isinstance(relation, View) else (2, "r")
        start = (oids[relation.name], relation.name, space, OWNER, method)
        rows.append((*start, 0, -1.0, False, "p", kind, len(relation.columns), False, False, False))
    return CatalogTable(columns, tuple(rows))


def pg_attribute(schema: Schema, who: Identity) -> CatalogTable:
    columns: tuple[tuple[str, Type], ...] = (
        ("attrelid", BIGINT), ("attname", TEXT), ("atttypid", BIGINT), ("attlen", INTEGER), ("attnum", INTEGER),
        ("atttypmod", INTEGER), ("attnotnull", BOOLEAN), ("atthasdef", BOOLEAN), ("attidentity", TEXT),
        ("attgenerated", TEXT), ("attisdropped", BOOLEAN),
    )  # fmt: skip
    oids = relation_oids(schema)
    rows: list[Row] = []
    for relation in schema.relations:
        for place, column in enumerate(relation.columns, 1):
            type_ = pg_type(column.type)
            start = (oids[relation.name], column.name, type_.oid, type_.length, place, type_modifier(column.type))
            rows.append((*start, False, False, "", "", False))
    return CatalogTable(columns, tuple(rows))


def pg_type_rows(schema: Schema, who: Identity) -> CatalogTable:
    columns: tuple[tuple[str, Type], ...] = (
        ("oid", BIGINT), ("typname", TEXT), ("typnamespace", BIGINT), ("typowner", BIGINT), ("typlen", INTEGER),
        ("typtype", TEXT), ("typcategory", TEXT), ("typisdefined", BOOLEAN), ("typrelid", BIGINT),
        ("typelem", BIGINT), ("typbasetype", BIGINT), ("typtypmod", INTEGER), ("typnotnull", BOOLEAN),
    )  # fmt: skip
    rest = (True, 0, 0, 0, -1, False)
    types = {type_.oid: type_ for type_ in PG_TYPES.values()}
    rows = tuple(
        (type_.oid, type_.name, NAMESPACE_OIDS["pg_catalog"], OWNER, type_.length, "b", type_.category, *rest)
        for _, type_ in sorted(types.items())
    )
    return CatalogTable(columns, rows)


def pg_tables(schema: Schema, who: Identity) -> CatalogTable:
    columns: tuple[tuple[str, Type], ...] = (
        ("schemaname", TEXT), ("tablename", TEXT), ("tableowner", TEXT), ("tablespace", TEXT),
        ("hasindexes", BOOLEAN), ("hasrules", BOOLEAN), ("hastriggers", BOOLEAN), ("rowsecurity", BOOLEAN),
    )  # fmt: skip
    rows = tuple((SCHEMA, table.name, "owner", None, False, False, False, False) for table in schema.tables)
    return CatalogTable(columns, rows)


def pg_views(schema: Schema, who: Identity) -> CatalogTable:
    columns = (("schemaname", TEXT), ("viewname", TEXT), ("viewowner", TEXT), ("definition", TEXT))
    return CatalogTable(columns, tuple((SCHEMA, view.name, "owner", view.sql) for view in schema.views))


def pg_description(schema: Schema, who: Identity) -> CatalogTable:
    columns = (("objoid", BIGINT), ("classoid", BIGINT), ("objsubid", INTEGER), ("description", TEXT))
    oids = relation_oids(schema)
    rows: list[Row] = []
    if schema.description is not None:
        rows.append((NAMESPACE_OIDS[SCHEMA], NAMESPACE_CLASS_OID, 0, schema.description))
    for relation in schema.relations:
        rows.append((oids[relation.name], CLASS_OID, 0, table_comment(schema, relation)))
        for place, column in enumerate(relation.columns, 1):
            comment = column_comment(relation, column)
            if comment is not None:
                rows.append((oids[relation.name], CLASS_OID, place, comment))
    return CatalogTable(columns, tuple(rows))


def pg_database(schema: Schema, who: Identity) -> CatalogTable:
    columns: tuple[tuple[str, Type], ...] = (
        ("oid", BIGINT), ("datname", TEXT), ("datdba", BIGINT), ("encoding", INTEGER), ("datistemplate", BOOLEAN),
        ("datallowconn", BOOLEAN), ("datcollate", TEXT), ("datctype", TEXT),
    )  # fmt: skip
    return CatalogTable(columns, ((1, who.database, OWNER, 6, False, True, "C", "C"),))


def pg_settings(schema: Schema, who: Identity) -> CatalogTable:
    return CatalogTable((("name", TEXT), ("setting", TEXT)), who.variables)


TABLES: dict[str, Callable[[Schema, Identity], CatalogTable]] = {
    "pg_attribute": pg_attribute,
    "pg_class": pg_class,
    "pg_database": pg_database,
    "pg_description": pg_description,
    "pg_namespace": pg_namespace,
    "pg_settings": pg_settings,
    "pg_tables": pg_tables,
    "pg_type": pg_type_rows,
    "pg_views": pg_views,
}
