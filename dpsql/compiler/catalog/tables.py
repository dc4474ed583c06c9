"""The rows of every relation of the catalogs, and the relation that a name in a statement means.

Law: from the schema and from who asks, never from the data; and a user never sees another user.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from dpsql.compiler.catalog import information_schema, pg_catalog
from dpsql.compiler.catalog.builtin import (
    CATALOG_SCHEMAS,
    Attribute,
    CatalogRelation,
    find_relation,
    load_relations,
    load_rows,
    parse_array_text,
)
from dpsql.compiler.catalog.objects import OWNER_NAME
from dpsql.compiler.catalog.pg_catalog import RowValues, pg_proc_rows
from dpsql.compiler.catalog.session_rows import SESSION_ROWS
from dpsql.compiler.catalog.variables import Identity
from dpsql.schema.model import Schema
from dpsql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, REAL, SMALLINT, TEXT, TIMESTAMPTZ, Type

CatalogRow = tuple[object, ...]


@dataclass(frozen=True)
class CatalogTable:
    columns: tuple[tuple[str, Type], ...]
    rows: tuple[CatalogRow, ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("a catalog's row has one value for each column")

    def column_values(self) -> list[list[object]]:
        """The same, one list for each column."""
        return [[row[index] for row in self.rows] for index in range(len(self.columns))]


BUILTIN_RELATIONS = (
    "pg_am",
    "pg_authid",
    "pg_collation",
    "pg_description",
    "pg_language",
    "pg_namespace",
    "pg_opclass",
    "pg_opfamily",
    "pg_proc",
    "pg_range",
    "pg_tablespace",
    "pg_type",
)
"""Relations that have rows in every PostgreSQL."""


def rows_of_schema(schema: Schema, relation: CatalogRelation) -> list[CatalogRow]:
    """What it has for everyone who asks this schema."""
    result: list[CatalogRow] = []
    if relation.namespace == "pg_catalog" and relation.name in BUILTIN_RELATIONS:
        result += [
            _parse_row(relation, row) for row in load_rows(relation.name) if not _is_replaced(schema, relation, row)
        ]
    built = (information_schema if relation.namespace == "information_schema" else pg_catalog).SCHEMA_ROWS.get(
        relation.name
    )
    values: Iterator[RowValues] = iter(()) if built is None else built(schema)
    result += [_complete_row(relation, row) for row in values]
    if relation.name == "pg_proc":
        result += [_complete_row(relation, row) for row in pg_proc_rows()]
    return result


def _is_replaced(schema: Schema, relation: CatalogRelation, row: tuple[str | None, ...]) -> bool:
    """The comment on `public`, where the schema has one of its own."""
    public = relation.name == "pg_description" and row[:2] == ("2200", str(pg_catalog.NAMESPACE_OID))
    return public and schema.description is not None


def _parse_row(relation: CatalogRelation, row: tuple[str | None, ...]) -> CatalogRow:
    return tuple(
        _parse_value(attribute, None if cell is None else cell)
        for attribute, cell in zip(relation.attributes, row, strict=True)
    )


def _parse_value(attribute: Attribute, text: str | None) -> object:
    if text is None:
        return None
    kind = attribute.type
    if kind.endswith("[]"):
        element = Attribute("", kind.removesuffix("[]"), False)
        return [_parse_value(element, part) for part in parse_array_text(text)]
    if kind in ("int2vector", "oidvector"):
        return [int(part) for part in text.split()]
    if kind == "boolean":
        return text == "t"
    if kind in ("integer", "smallint", "bigint", "oid"):
        return int(text)
    if kind in ("real", "double precision"):
        return float(text)
    if kind == "aclitem":  # the data is that of a PostgreSQL whose owner has another name
        return re.sub(r"\bpostgres\b", OWNER_NAME, text)
    if kind == "regproc":
        return 0 if text == "-" else _procedure_oids().get(text.removeprefix("pg_catalog."), 0)
    return text


@cache
def _procedure_oids() -> dict[str, int]:
    return {str(row[1]): int(str(row[0])) for row in load_rows("pg_proc")}


_DEFAULT_VALUES: Mapping[str, object] = {
    "boolean": False, "integer": 0, "smallint": 0, "bigint": 0, "oid": 0, "regproc": 0, "xid": 0, "real": 0.0,
    "double precision": 0.0,
}  # fmt: skip


def _complete_row(relation: CatalogRelation, values: RowValues) -> CatalogRow:
    """The other columns hold nothing: NULL where that may be."""
    return tuple(values[a.name] if a.name in values else _default_value(a) for a in relation.attributes)


def _default_value(attribute: Attribute) -> object:
    if not attribute.required:
        return None
    if attribute.type.endswith(("[]", "vector")):
        return []
    return _DEFAULT_VALUES.get(attribute.type, "")


def rows_of_session(identity: Identity, relation: CatalogRelation) -> list[CatalogRow]:
    return [_complete_row(relation, row) for row in SESSION_ROWS[relation.namespace, relation.name](identity)]


def is_session_relation(relation: CatalogRelation) -> bool:
    return (relation.namespace, relation.name) in SESSION_ROWS


def rows_of_relation(schema: Schema, identity: Identity, namespace: str, name: str) -> list[CatalogRow]:
    catalog_relation = find_relation(namespace, name)
    if catalog_relation is None:
        return []
    return (
        rows_of_session(identity, catalog_relation)
        if is_session_relation(catalog_relation)
        else rows_of_schema(schema, catalog_relation)
    )


# --- the relation that a name means ---------------------------------------------------------------------------------

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
    rows = rows_of_relation(schema, identity, catalog_relation.namespace, catalog_relation.name)
    return CatalogTable(
        _column_types(catalog_relation), tuple(tuple(_list_to_text(value) for value in row) for row in rows)
    )


def _column_types(relation: CatalogRelation) -> tuple[tuple[str, Type], ...]:
    words = [(a.name, a.type.removeprefix("information_schema.")) for a in relation.attributes]
    return tuple((name, _COLUMN_TYPES.get(word, TEXT)) for name, word in words)


def _list_to_text(value: object) -> object:
    return "{" + ",".join(str(part) for part in value) + "}" if isinstance(value, list) else value
