"""information_schema, as the SQL standard names it and PostgreSQL fills it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dpsql.base.pg_types import pg_type_of
from dpsql.compiler.catalog.builtin import load_relations
from dpsql.compiler.catalog.objects import OWNER_NAME, objects_of
from dpsql.compiler.catalog.pg_catalog import RowValues, load_types, type_oid_of, view_definition
from dpsql.compiler.catalog.variables import DEFAULT_SCHEMA
from dpsql.schema.model import Column, Schema
from dpsql.types import Kind, Type

SCHEMA_NAMES = ("pg_catalog", DEFAULT_SCHEMA, "information_schema")


def catalog_name_rows(schema: Schema) -> Iterator[RowValues]:
    yield {"catalog_name": schema.database}


def schemata_rows(schema: Schema) -> Iterator[RowValues]:
    for name in SCHEMA_NAMES:
        yield {"catalog_name": schema.database, "schema_name": name, "schema_owner": OWNER_NAME}


def character_sets_rows(schema: Schema) -> Iterator[RowValues]:
    yield {
        "character_set_name": "UTF8", "character_repertoire": "UCS", "form_of_use": "UTF8",
        "default_collate_catalog": schema.database, "default_collate_schema": "pg_catalog",
    }  # fmt: skip


def tables_rows(schema: Schema) -> Iterator[RowValues]:
    for relation in objects_of(schema).relations:
        yield _table_row(schema, DEFAULT_SCHEMA, relation.name, relation.kind)
    for catalog in load_relations().values():
        yield _table_row(schema, catalog.namespace, catalog.name, catalog.kind)


def _table_row(schema: Schema, namespace: str, name: str, kind: str) -> RowValues:
    return {
        "table_catalog": schema.database, "table_schema": namespace, "table_name": name,
        "table_type": "VIEW" if kind == "v" else "BASE TABLE", "is_insertable_into": "NO", "is_typed": "NO",
    }  # fmt: skip


def views_rows(schema: Schema) -> Iterator[RowValues]:
    """Those of the schema; a view of the engine is a table here."""
    refused = ("is_updatable", "is_insertable_into", "is_trigger_updatable", "is_trigger_deletable",
               "is_trigger_insertable_into")  # fmt: skip
    for view in schema.views:
        yield {
            "table_catalog": schema.database, "table_schema": DEFAULT_SCHEMA, "table_name": view.name,
            "view_definition": view_definition(view), "check_option": "NONE", **dict.fromkeys(refused, "NO"),
        }  # fmt: skip


def columns_rows(schema: Schema) -> Iterator[RowValues]:
    objects = objects_of(schema)
    for relation in objects.relations:
        for position, column in enumerate(relation.declared.columns, 1):
            required = objects.is_not_null(relation, column.name)
            yield {
                **_column_row(schema, DEFAULT_SCHEMA, relation.name, column, position, required),
                **_precision_values(column.type),
            }
    for catalog in load_relations().values():
        for position, attribute in enumerate(catalog.attributes, 1):
            base = _base_column_row(
                schema, catalog.namespace, catalog.name, attribute.name, position, attribute.required
            )
            yield {**base, **_catalog_type_values(schema, attribute.type)}


_DOMAINS = {"sql_identifier": "name", "character_data": "varchar", "cardinal_number": "int4", "yes_or_no": "varchar",
            "time_stamp": "timestamptz"}  # fmt: skip
_STANDARD_TYPE_NAMES = {"varchar": "character varying", "int4": "integer", "timestamptz": "timestamp with time zone"}


def _catalog_type_values(schema: Schema, type_name: str) -> RowValues:
    domain = type_name.removeprefix("information_schema.")
    if domain == type_name:
        data_type = "ARRAY" if type_name.endswith("[]") else type_name
        return {"data_type": data_type, "udt_name": load_types()[type_oid_of(type_name)]["typname"]}
    base = _DOMAINS[domain]
    named = {"domain_catalog": schema.database, "domain_schema": "information_schema", "domain_name": domain}
    return {"data_type": _STANDARD_TYPE_NAMES.get(base, base), "udt_name": base, **named}


def _column_row(schema: Schema, namespace: str, table: str, column: Column, number: int, required: bool) -> RowValues:
    type_ = pg_type_of(column.type)
    base = _base_column_row(schema, namespace, table, column.name, number, required)
    return {**base, "data_type": type_.spelled, "udt_name": type_.name}


def _base_column_row(schema: Schema, namespace: str, table: str, column: str, number: int, required: bool) -> RowValues:
    return {
        "table_catalog": schema.database, "table_schema": namespace, "table_name": table, "column_name": column,
        "ordinal_position": number, "is_nullable": "NO" if required else "YES", "udt_catalog": schema.database,
        "udt_schema": "pg_catalog", "dtd_identifier": str(number), "is_self_referencing": "NO", "is_identity": "NO",
        "identity_cycle": "NO", "is_generated": "NEVER", "is_updatable": "NO",
    }  # fmt: skip


def _precision_values(type_: Type) -> dict[str, object]:
    match type_.kind:
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            return {"numeric_precision": pg_type_of(type_).bits, "numeric_precision_radix": 2, "numeric_scale": 0}
        case Kind.REAL | Kind.DOUBLE:
            return {"numeric_precision": pg_type_of(type_).bits, "numeric_precision_radix": 2}
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


def table_constraints_rows(schema: Schema) -> Iterator[RowValues]:
    objects = objects_of(schema)
    for key in objects.keys:
        kind = "PRIMARY KEY" if key.primary else "UNIQUE"
        yield {**_constraint_row(schema, key.name, key.table.name), "constraint_type": kind, "nulls_distinct": "YES"}
    for foreign in objects.foreign:
        yield {**_constraint_row(schema, foreign.name, foreign.table.name), "constraint_type": "FOREIGN KEY"}


def _constraint_row(schema: Schema, name: str, table: str) -> RowValues:
    return {
        "constraint_catalog": schema.database, "constraint_schema": DEFAULT_SCHEMA, "constraint_name": name,
        "table_catalog": schema.database, "table_schema": DEFAULT_SCHEMA, "table_name": table, "is_deferrable": "NO",
        "initially_deferred": "NO", "enforced": "YES",
    }  # fmt: skip


def key_column_usage_rows(schema: Schema) -> Iterator[RowValues]:
    objects = objects_of(schema)
    for key in objects.keys:
        for position, column in enumerate(key.columns, 1):
            yield {**_usage_row(schema, key.name, key.table.name, column), "ordinal_position": position}
    for foreign in objects.foreign:
        for position, column in enumerate(foreign.columns, 1):
            keys = foreign.key.columns if foreign.key else foreign.target_columns
            positions = {
                "ordinal_position": position,
                "position_in_unique_constraint": keys.index(foreign.target_columns[position - 1]) + 1,
            }
            yield {**_usage_row(schema, foreign.name, foreign.table.name, column), **positions}


def constraint_column_usage_rows(schema: Schema) -> Iterator[RowValues]:
    """The columns that a constraint is about: for a foreign key, those that it refers to."""
    objects = objects_of(schema)
    for key in objects.keys:
        for column in key.columns:
            yield _usage_row(schema, key.name, key.table.name, column)
    for foreign in objects.foreign:
        for column in foreign.target_columns:
            yield _usage_row(schema, foreign.name, foreign.target.name, column)


def constraint_table_usage_rows(schema: Schema) -> Iterator[RowValues]:
    objects = objects_of(schema)
    for key in objects.keys:
        yield _constraint_row(schema, key.name, key.table.name)
    for foreign in objects.foreign:
        yield _constraint_row(schema, foreign.name, foreign.target.name)


def _usage_row(schema: Schema, constraint: str, table: str, column: str) -> RowValues:
    return {
        "constraint_catalog": schema.database, "constraint_schema": DEFAULT_SCHEMA, "constraint_name": constraint,
        "table_catalog": schema.database, "table_schema": DEFAULT_SCHEMA, "table_name": table, "column_name": column,
    }  # fmt: skip


def referential_constraints_rows(schema: Schema) -> Iterator[RowValues]:
    for foreign in objects_of(schema).foreign:
        unique = {} if foreign.key is None else {
            "unique_constraint_catalog": schema.database, "unique_constraint_schema": DEFAULT_SCHEMA,
            "unique_constraint_name": foreign.key.name,
        }  # fmt: skip
        yield {
            "constraint_catalog": schema.database,
            "constraint_schema": DEFAULT_SCHEMA,
            "constraint_name": foreign.name,
            **unique,
            "match_option": "NONE",
            "update_rule": "NO ACTION",
            "delete_rule": "NO ACTION",
        }


# --- who may read: everyone who may log in, and nobody may write -----------------------------------------------------


def table_privileges_rows(schema: Schema) -> Iterator[RowValues]:
    for relation in objects_of(schema).relations:
        yield {**_privilege_row(schema, relation.name), "with_hierarchy": "YES"}


def column_privileges_rows(schema: Schema) -> Iterator[RowValues]:
    for relation in objects_of(schema).relations:
        for column in relation.declared.columns:
            yield {**_privilege_row(schema, relation.name), "column_name": column.name}


def _privilege_row(schema: Schema, table: str) -> RowValues:
    return {
        "grantor": OWNER_NAME, "grantee": "PUBLIC", "table_catalog": schema.database, "table_schema": DEFAULT_SCHEMA,
        "table_name": table, "privilege_type": "SELECT", "is_grantable": "NO",
    }  # fmt: skip


SCHEMA_ROWS: Mapping[str, Callable[[Schema], Iterator[RowValues]]] = {
    "character_sets": character_sets_rows,
    "column_privileges": column_privileges_rows,
    "columns": columns_rows,
    "constraint_column_usage": constraint_column_usage_rows,
    "constraint_table_usage": constraint_table_usage_rows,
    "information_schema_catalog_name": catalog_name_rows,
    "key_column_usage": key_column_usage_rows,
    "referential_constraints": referential_constraints_rows,
    "schemata": schemata_rows,
    "table_constraints": table_constraints_rows,
    "table_privileges": table_privileges_rows,
    "tables": tables_rows,
    "views": views_rows,
}
