"""dpsql's types as PostgreSQL names and numbers them; the numbers are those of its pg_type."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.types import Kind, Type


@dataclass(frozen=True)
class PgType:
    """`spelled` as format_type() says it, `name` as pg_type has it."""

    oid: int
    name: str
    spelled: str
    length: int  # bytes; -1: varies
    category: str
    bits: int | None = None  # of numbers that have them, as information_schema counts precision


PG_TYPES = {
    Kind.BOOLEAN: PgType(16, "bool", "boolean", 1, "B"),
    Kind.SMALLINT: PgType(21, "int2", "smallint", 2, "N", 16),
    Kind.INTEGER: PgType(23, "int4", "integer", 4, "N", 32),
    Kind.BIGINT: PgType(20, "int8", "bigint", 8, "N", 64),
    Kind.HUGEINT: PgType(1700, "numeric", "numeric", -1, "N"),
    Kind.DECIMAL: PgType(1700, "numeric", "numeric", -1, "N"),
    Kind.REAL: PgType(700, "float4", "real", 4, "N", 24),
    Kind.DOUBLE: PgType(701, "float8", "double precision", 8, "N", 53),
    Kind.TEXT: PgType(25, "text", "text", -1, "S"),
    Kind.DATE: PgType(1082, "date", "date", 4, "D"),
    Kind.TIMESTAMP: PgType(1114, "timestamp", "timestamp without time zone", 8, "D"),
    Kind.TIMESTAMPTZ: PgType(1184, "timestamptz", "timestamp with time zone", 8, "D"),
    Kind.TIME: PgType(1083, "time", "time without time zone", 8, "D"),
    Kind.INTERVAL: PgType(1186, "interval", "interval", 16, "T"),
    Kind.UUID: PgType(2950, "uuid", "uuid", 16, "U"),
}


def pg_type_of(type_: Type) -> PgType:
    return PG_TYPES[type_.kind]


def type_modifier(type_: Type) -> int:
    """PostgreSQL's atttypmod: precision and scale of a numeric, -1 for all others."""
    if type_.kind is not Kind.DECIMAL or type_.precision is None:
        return -1
    return ((type_.precision << 16) | (type_.scale or 0)) + 4
