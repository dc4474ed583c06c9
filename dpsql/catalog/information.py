"""information_schema, as the SQL standard names it and PostgreSQL fills it."""

from __future__ import annotations

from collections.abc import Callable

from dpsql.catalog.identity import SCHEMA, Identity
from dpsql.catalog.pg_types import pg_type
from dpsql.catalog.rows import CatalogTable, Row
from dpsql.schema.model import Column, ForeignUnit, Schema, Table, View
from dpsql.types import INTEGER, TEXT, Kind, Type

NAMESPACES = (SCHEMA, "information_schema", "pg_catalog")


def schemata(schema: Schema, who: Identity) -> CatalogTable:
    columns = _texts("catalog_name", "schema_name", "schema_owner", "default_character_set_catalog",
                     "default_character_set_schema", "default_character_set_name", "sql_path")  # fmt: skip
    rows = tuple((who.database, name, "owner", None, None, None, None) for name in NAMESPACES)
    return CatalogTable(columns, rows)


def tables(schema: Schema, who: Identity) -> CatalogTable:
    columns = _texts("table_catalog", "table_schema", "table_name", "table_type", "self_referencing_column_name",
                     "reference_generation", "user_defined_type_catalog", "user_defined_type_schema",
                     "user_defined_type_name", "is_insertable_into", "is_typed", "commit_action")  # fmt: skip
    rest = (None, None, None, None, None, "NO", "NO", None)
    kinds = ((relation.name, "VIEW" if isinstance(relation, View) else "BASE TABLE") for relation in schema.relations)
    rows = tuple((who.database, SCHEMA, name, kind, *rest) for name, kind in kinds)
    return CatalogTable(columns, rows)


def views(schema: Schema, who: Identity) -> CatalogTable:
    """Those of the schema; a view of the engine is a table here."""
    columns = _texts("table_catalog", "table_schema", "table_name", "view_definition", "check_option", "is_updatable",
                     "is_insertable_into", "is_trigger_updatable", "is_trigger_deletable",
                     "is_trigger_insertable_into")  # fmt: skip
    rows = tuple((who.database, SCHEMA, view.name, view.sql, "NONE", *("NO",) * 5) for view in schema.views)
    return CatalogTable(columns, rows)


_COLUMNS: tuple[tuple[str, Type], ...] = (
    ("table_catalog", TEXT), ("table_schema", TEXT), ("table_name", TEXT), ("column_name", TEXT),
    ("ordinal_position", INTEGER), ("column_default", TEXT), ("is_nullable", TEXT), ("data_type", TEXT),
    ("character_maximum_length", INTEGER), ("character_octet_length", INTEGER), ("numeric_precision", INTEGER),
    ("numeric_precision_radix", INTEGER), ("numeric_scale", INTEGER), ("datetime_precision", INTEGER),
    ("interval_type", TEXT), ("interval_precision", INTEGER), ("character_set_catalog", TEXT),
    ("character_set_schema", TEXT), ("character_set_name", TEXT), ("collation_catalog", TEXT),
    ("collation_schema", TEXT), ("collation_name", TEXT), ("domain_catalog", TEXT), ("domain_schema", TEXT),
    ("domain_name", TEXT), ("udt_catalog", TEXT), ("udt_schema", TEXT), ("udt_name", TEXT), ("dtd_identifier", TEXT),
    ("is_self_referencing", TEXT), ("is_identity", TEXT), ("is_generated", TEXT), ("is_updatable", TEXT),
)  # fmt: skip


def columns(schema: Schema, who: Identity) -> CatalogTable:
    rows = tuple(
        _column(who.database, relation.name, column, place)
        for relation in schema.relations
        for place, column in enumerate(relation.columns, 1)
    )
    return CatalogTable(_COLUMNS, rows)


def _column(database: str, relation: str, column: Column, place: int) -> Row:
    type_ = pg_type(column.type)
    known: dict[str, object] = {
        "table_catalog": database, "table_schema": SCHEMA, "table_name": relation, "column_name": column.name,
        "ordinal_position": place, "is_nullable": "YES", "data_type": type_.spelled, "udt_catalog": database,
        "udt_schema": "pg_catalog", "udt_name": type_.name, "dtd_identifier": str(place), "is_self_referencing": "NO",
        "is_identity": "NO", "is_generated": "NEVER", "is_updatable": "NO", **_precision(column.type),
    }  # fmt: skip
    return tuple(known.get(name) for name, _ in _COLUMNS)


def _precision(type_: Type) -> dict[str, object]:
    match type_.kind:
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            return {"numeric_precision": pg_type(type_).bits, "numeric_precision_radix": 2, "numeric_scale": 0}
        case Kind.REAL | Kind.DOUBLE:
            return {"numeric_precision": pg_type(type_).bits, "numeric_precision_radix": 2}
        case Kind.DECIMAL:
            return {"numeric_precision": type_.precision, "numeric_precision_radix": 10, "numeric_scale": type_.scale}
        case Kind.DATE:
            return {"datetime_precision": 0}
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ | Kind.TIME:
            return {"datetime_precision": 6}
        case _:
            return {}


# --- keys ------------------------------------------------------------------------------------------------------------


def unique_name(table: Table, key: tuple[str, ...]) -> str:
    return "_".join((table.name, *key, "key"))


def foreign_name(table: Table, unit: ForeignUnit) -> str:
    return f"{table.name}_{unit.column}_fkey"


def table_constraints(schema: Schema, who: Identity) -> CatalogTable:
    titles = _texts("constraint_catalog", "constraint_schema", "constraint_name", "table_catalog", "table_schema",
                    "table_name", "constraint_type", "is_deferrable", "initially_deferred", "enforced",
                    "nulls_distinct")  # fmt: skip
    rows: list[Row] = []
    for table in schema.tables:
        named: list[tuple[str, str, str | None]] = [(unique_name(table, key), "UNIQUE", "YES") for key in table.unique]
        if isinstance(table.unit, ForeignUnit):
            named.append((foreign_name(table, table.unit), "FOREIGN KEY", None))
        rows += [
            (who.database, SCHEMA, name, who.database, SCHEMA, table.name, kind, "NO", "NO", "YES", distinct)
            for name, kind, distinct in named
        ]
    return CatalogTable(titles, tuple(rows))


def key_column_usage(schema: Schema, who: Identity) -> CatalogTable:
    titles = (*_texts("constraint_catalog", "constraint_schema", "constraint_name", "table_catalog", "table_schema",
                      "table_name", "column_name"),
              ("ordinal_position", INTEGER), ("position_in_unique_constraint", INTEGER))  # fmt: skip
    rows: list[Row] = []
    for table in schema.tables:
        start = (who.database, SCHEMA)
        for key in table.unique:
            name = unique_name(table, key)
            rows += [(*start, name, *start, table.name, column, place, None) for place, column in enumerate(key, 1)]
        if isinstance(table.unit, ForeignUnit):
            rows.append((*start, foreign_name(table, table.unit), *start, table.name, table.unit.column, 1, 1))
    return CatalogTable(titles, tuple(rows))


def constraint_column_usage(schema: Schema, who: Identity) -> CatalogTable:
    """The columns that a constraint is about: for a foreign key, those that it refers to."""
    titles = _texts("table_catalog", "table_schema", "table_name", "column_name", "constraint_catalog",
                    "constraint_schema", "constraint_name")  # fmt: skip
    rows: list[Row] = []
    for table in schema.tables:
        start = (who.database, SCHEMA)
        for key in table.unique:
            rows += [(*start, table.name, column, *start, unique_name(table, key)) for column in key]
        if isinstance(table.unit, ForeignUnit):
            unit = table.unit
            rows.append((*start, unit.table, unit.key, *start, foreign_name(table, unit)))
    return CatalogTable(titles, tuple(rows))


def referential_constraints(schema: Schema, who: Identity) -> CatalogTable:
    titles = _texts("constraint_catalog", "constraint_schema", "constraint_name", "unique_constraint_catalog",
                    "unique_constraint_schema", "unique_constraint_name", "match_option", "update_rule",
                    "delete_rule")  # fmt: skip
    rows: list[Row] = []
    for table in schema.tables:
        if isinstance(table.unit, ForeignUnit):
            unit, start = table.unit, (who.database, SCHEMA)
            target = schema.table(unit.table)
            unique = unique_name(target, (unit.key,)) if target is not None and target.is_unique(unit.key) else None
            rules = ("NONE", "NO ACTION", "NO ACTION")
            rows.append((*start, foreign_name(table, unit), *start, unique, *rules))
    return CatalogTable(titles, tuple(rows))


def _texts(*names: str) -> tuple[tuple[str, Type], ...]:
    return tuple((name, TEXT) for name in names)


TABLES: dict[str, Callable[[Schema, Identity], CatalogTable]] = {
    "columns": columns,
    "constraint_column_usage": constraint_column_usage,
    "key_column_usage": key_column_usage,
    "referential_constraints": referential_constraints,
    "schemata": schemata,
    "table_constraints": table_constraints,
    "tables": tables,
    "views": views,
}
