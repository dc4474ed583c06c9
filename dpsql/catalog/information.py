"""information_schema, as the SQL standard names it and PostgreSQL fills it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dpsql.catalog.builtin import relations
from dpsql.catalog.identity import SCHEMA
from dpsql.catalog.objects import OWNER_NAME, objects_of
from dpsql.catalog.pg_types import pg_type
from dpsql.catalog.relations import Known, number_of, types, view_text
from dpsql.schema.model import Column, Schema
from dpsql.types import Kind, Type

NAMESPACES = ("pg_catalog", SCHEMA, "information_schema")


def information_schema_catalog_name(schema: Schema) -> Iterator[Known]:
    yield {"catalog_name": schema.database}


def schemata(schema: Schema) -> Iterator[Known]:
    for name in NAMESPACES:
        yield {"catalog_name": schema.database, "schema_name": name, "schema_owner": OWNER_NAME}


def character_sets(schema: Schema) -> Iterator[Known]:
    yield {
        "character_set_name": "UTF8", "character_repertoire": "UCS", "form_of_use": "UTF8",
        "default_collate_catalog": schema.database, "default_collate_schema": "pg_catalog",
    }  # fmt: skip


def tables(schema: Schema) -> Iterator[Known]:
    for one in objects_of(schema).relations:
        yield _table(schema, SCHEMA, one.name, one.kind)
    for catalog in relations().values():
        yield _table(schema, catalog.place, catalog.name, catalog.kind)


def _table(schema: Schema, place: str, name: str, kind: str) -> Known:
    return {
        "table_catalog": schema.database, "table_schema": place, "table_name": name,
        "table_type": "VIEW" if kind == "v" else "BASE TABLE", "is_insertable_into": "NO", "is_typed": "NO",
    }  # fmt: skip


def views(schema: Schema) -> Iterator[Known]:
    """Those of the schema; a view of the engine is a table here."""
    refused = ("is_updatable", "is_insertable_into", "is_trigger_updatable", "is_trigger_deletable",
               "is_trigger_insertable_into")  # fmt: skip
    for view in schema.views:
        yield {
            "table_catalog": schema.database, "table_schema": SCHEMA, "table_name": view.name,
            "view_definition": view_text(view), "check_option": "NONE", **dict.fromkeys(refused, "NO"),
        }  # fmt: skip


def columns(schema: Schema) -> Iterator[Known]:
    objects = objects_of(schema)
    for one in objects.relations:
        for place, column in enumerate(one.declared.columns, 1):
            required = objects.not_null(one, column.name)
            yield {**_column(schema, SCHEMA, one.name, column, place, required), **_precision(column.type)}
    for catalog in relations().values():
        for place, attribute in enumerate(catalog.attributes, 1):
            base = _base(schema, catalog.place, catalog.name, attribute.name, place, attribute.required)
            yield {**base, **_catalog_type(schema, attribute.type)}


_DOMAINS = {"sql_identifier": "name", "character_data": "varchar", "cardinal_number": "int4", "yes_or_no": "varchar",
            "time_stamp": "timestamptz"}  # fmt: skip
_SPELLED = {"varchar": "character varying", "int4": "integer", "timestamptz": "timestamp with time zone"}


def _catalog_type(schema: Schema, spelled: str) -> Known:
    domain = spelled.removeprefix("information_schema.")
    if domain == spelled:
        told = "ARRAY" if spelled.endswith("[]") else spelled
        return {"data_type": told, "udt_name": types()[number_of(spelled)]["typname"]}
    base = _DOMAINS[domain]
    named = {"domain_catalog": schema.database, "domain_schema": "information_schema", "domain_name": domain}
    return {"data_type": _SPELLED.get(base, base), "udt_name": base, **named}


def _column(schema: Schema, place: str, table: str, column: Column, number: int, required: bool) -> Known:
    type_ = pg_type(column.type)
    base = _base(schema, place, table, column.name, number, required)
    return {**base, "data_type": type_.spelled, "udt_name": type_.name}


def _base(schema: Schema, place: str, table: str, column: str, number: int, required: bool) -> Known:
    return {
        "table_catalog": schema.database, "table_schema": place, "table_name": table, "column_name": column,
        "ordinal_position": number, "is_nullable": "NO" if required else "YES", "udt_catalog": schema.database,
        "udt_schema": "pg_catalog", "dtd_identifier": str(number), "is_self_referencing": "NO", "is_identity": "NO",
        "identity_cycle": "NO", "is_generated": "NEVER", "is_updatable": "NO",
    }  # fmt: skip


def _precision(type_: Type) -> dict[str, object]:
    match type_.kind:
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            return {"numeric_precision": pg_type(type_).bits, "numeric_precision_radix": 2, "numeric_scale": 0}
        case Kind.REAL | Kind.DOUBLE:
            return {"numeric_precision": pg_type(type_).bits, "numeric_precision_radix": 2}
        case Kind.DECIMAL:
            return {"numeric_precision": type_.precision, "numeric_precision_radix": 10, "numeric_scale": type_.scale}
        case Kind.HUGEINT:
            return {"numeric_precision_radix": 10}
        case Kind.DATE:
            return {"datetime_precision": 0}
        case Kind.TEXT:
            return {"character_octet_length": 1 << 30}
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ | Kind.TIME | Kind.INTERVAL:
            return {"datetime_precision": 6}
        case _:
            return {}


# --- keys ------------------------------------------------------------------------------------------------------------


def table_constraints(schema: Schema) -> Iterator[Known]:
    objects = objects_of(schema)
    for key in objects.keys:
        kind = "PRIMARY KEY" if key.primary else "UNIQUE"
        yield {**_constraint(schema, key.name, key.table.name), "constraint_type": kind, "nulls_distinct": "YES"}
    for foreign in objects.foreign:
        yield {**_constraint(schema, foreign.name, foreign.table.name), "constraint_type": "FOREIGN KEY"}


def _constraint(schema: Schema, name: str, table: str) -> Known:
    return {
        "constraint_catalog": schema.database, "constraint_schema": SCHEMA, "constraint_name": name,
        "table_catalog": schema.database, "table_schema": SCHEMA, "table_name": table, "is_deferrable": "NO",
        "initially_deferred": "NO", "enforced": "YES",
    }  # fmt: skip


def key_column_usage(schema: Schema) -> Iterator[Known]:
    objects = objects_of(schema)
    for key in objects.keys:
        for place, column in enumerate(key.columns, 1):
            yield {**_used(schema, key.name, key.table.name, column), "ordinal_position": place}
    for one in objects.foreign:
        places = {"ordinal_position": 1, "position_in_unique_constraint": 1}
        yield {**_used(schema, one.name, one.table.name, one.column), **places}


def constraint_column_usage(schema: Schema) -> Iterator[Known]:
    """The columns that a constraint is about: for a foreign key, those that it refers to."""
    objects = objects_of(schema)
    for key in objects.keys:
        for column in key.columns:
            yield _used(schema, key.name, key.table.name, column)
    for one in objects.foreign:
        yield _used(schema, one.name, one.target.name, one.target_column)


def constraint_table_usage(schema: Schema) -> Iterator[Known]:
    objects = objects_of(schema)
    for key in objects.keys:
        yield _constraint(schema, key.name, key.table.name)
    for one in objects.foreign:
        yield _constraint(schema, one.name, one.target.name)


def _used(schema: Schema, constraint: str, table: str, column: str) -> Known:
    return {
        "constraint_catalog": schema.database, "constraint_schema": SCHEMA, "constraint_name": constraint,
        "table_catalog": schema.database, "table_schema": SCHEMA, "table_name": table, "column_name": column,
    }  # fmt: skip


def referential_constraints(schema: Schema) -> Iterator[Known]:
    for one in objects_of(schema).foreign:
        unique = {} if one.key is None else {
            "unique_constraint_catalog": schema.database, "unique_constraint_schema": SCHEMA,
            "unique_constraint_name": one.key.name,
        }  # fmt: skip
        yield {
            "constraint_catalog": schema.database, "constraint_schema": SCHEMA, "constraint_name": one.name, **unique,
            "match_option": "NONE", "update_rule": "NO ACTION", "delete_rule": "NO ACTION",
        }  # fmt: skip


# --- who may read: everyone who may log in, and nobody may write -----------------------------------------------------


def table_privileges(schema: Schema) -> Iterator[Known]:
    for one in objects_of(schema).relations:
        yield {**_granted(schema, one.name), "with_hierarchy": "YES"}


def column_privileges(schema: Schema) -> Iterator[Known]:
    for one in objects_of(schema).relations:
        for column in one.declared.columns:
            yield {**_granted(schema, one.name), "column_name": column.name}


def _granted(schema: Schema, table: str) -> Known:
    return {
        "grantor": OWNER_NAME, "grantee": "PUBLIC", "table_catalog": schema.database, "table_schema": SCHEMA,
        "table_name": table, "privilege_type": "SELECT", "is_grantable": "NO",
    }  # fmt: skip


SCHEMA_ROWS: Mapping[str, Callable[[Schema], Iterator[Known]]] = {
    "character_sets": character_sets,
    "column_privileges": column_privileges,
    "columns": columns,
    "constraint_column_usage": constraint_column_usage,
    "constraint_table_usage": constraint_table_usage,
    "information_schema_catalog_name": information_schema_catalog_name,
    "key_column_usage": key_column_usage,
    "referential_constraints": referential_constraints,
    "schemata": schemata,
    "table_constraints": table_constraints,
    "table_privileges": table_privileges,
    "tables": tables,
    "views": views,
}
