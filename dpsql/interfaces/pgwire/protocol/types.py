"""Types by their numbers on the wire: of a result's columns, and of parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from dpsql.base.lexer import TokenKind, split_tokens
from dpsql.base.pg_types import pg_type_of, type_modifier
from dpsql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Type,
    parse_type,
)


@dataclass(frozen=True)
class WireType:
    """`name` is pg_type's, `spelled` as messages say it; `element` is what an array holds."""

    oid: int
    name: str
    size: int
    spelled: str
    type: Type | None = None  # ours, for what is inferred of a parameter
    element: WireType | None = None


_NUMERIC = parse_type("numeric")  # a number whose digits nobody told

_BASE_TYPES = (
    (WireType(16, "bool", 1, "boolean", BOOLEAN), 1000),
    (WireType(17, "bytea", -1, "bytea"), 1001),
    (WireType(18, "char", 1, '"char"', TEXT), 1002),
    (WireType(19, "name", 64, "name", TEXT), 1003),
    (WireType(20, "int8", 8, "bigint", BIGINT), 1016),
    (WireType(21, "int2", 2, "smallint", SMALLINT), 1005),
    (WireType(23, "int4", 4, "integer", INTEGER), 1007),
    (WireType(24, "regproc", 4, "regproc"), 1008),
    (WireType(25, "text", -1, "text", TEXT), 1009),
    (WireType(26, "oid", 4, "oid", BIGINT), 1028),
    (WireType(28, "xid", 4, "xid", BIGINT), 1011),
    (WireType(114, "json", -1, "json", TEXT), 199),
    (WireType(194, "pg_node_tree", -1, "pg_node_tree"), 0),
    (WireType(700, "float4", 4, "real", REAL), 1021),
    (WireType(701, "float8", 8, "double precision", DOUBLE), 1022),
    (WireType(705, "unknown", -2, "unknown"), 0),
    (WireType(1033, "aclitem", 16, "aclitem"), 1034),
    (WireType(1042, "bpchar", -1, "character", TEXT), 1014),
    (WireType(1043, "varchar", -1, "character varying", TEXT), 1015),
    (WireType(1082, "date", 4, "date", DATE), 1182),
    (WireType(1083, "time", 8, "time without time zone", TIME), 1183),
    (WireType(1114, "timestamp", 8, "timestamp without time zone", TIMESTAMP), 1115),
    (WireType(1184, "timestamptz", 8, "timestamp with time zone", TIMESTAMPTZ), 1185),
    (WireType(1186, "interval", 16, "interval", INTERVAL), 1187),
    (WireType(1266, "timetz", 12, "time with time zone"), 1270),
    (WireType(1700, "numeric", -1, "numeric", _NUMERIC), 1231),
    (WireType(2205, "regclass", 4, "regclass"), 2210),
    (WireType(2206, "regtype", 4, "regtype"), 2211),
    (WireType(2950, "uuid", 16, "uuid", UUID), 2951),
    (WireType(3802, "jsonb", -1, "jsonb", TEXT), 3807),
    (WireType(4089, "regnamespace", 4, "regnamespace"), 4090),
)
_ARRAY_TYPES = tuple(
    WireType(oid, f"_{base_type.name}", -1, f"{base_type.spelled}[]", None, base_type)
    for base_type, oid in _BASE_TYPES
    if oid
)
TYPES_BY_OID = {wire_type.oid: wire_type for wire_type in (*(base for base, _ in _BASE_TYPES), *_ARRAY_TYPES)}
TYPES_BY_OID[22] = WireType(22, "int2vector", -1, "int2vector", None, TYPES_BY_OID[21])
TYPES_BY_OID[30] = WireType(30, "oidvector", -1, "oidvector", None, TYPES_BY_OID[26])
TYPES_BY_NAME = {wire_type.name: wire_type for wire_type in TYPES_BY_OID.values()}
VECTOR_NAMES = frozenset({"int2vector", "oidvector"})

TEXT_TYPE, JSON_TYPE = TYPES_BY_NAME["text"], TYPES_BY_NAME["json"]

# What the catalog says that PostgreSQL has and dpsql's own types have not.
_CATALOG_NAMES = frozenset(
    {
        "name",
        "oid",
        "char",
        "xid",
        "regproc",
        "regclass",
        "regtype",
        "regnamespace",
        "int2vector",
        "oidvector",
        "pg_node_tree",
        "aclitem",
        "json",
        "jsonb",
        "bytea",
        "timetz",
    }
)
# DuckDB's words for types that are another one's on the wire.
_DUCKDB_NAMES = {
    "blob": "bytea", "uhugeint": "numeric", "bignum": "numeric", "varint": "numeric",
    "timestamp_s": "timestamp", "timestamp_ms": "timestamp", "timestamp_ns": "timestamp",
    "time with time zone": "timetz", "time_ns": "time",
}  # fmt: skip


class SpelledColumn(Protocol):
    """A column of a result, with its type as DuckDB spells it."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> Type | None: ...
    @property
    def spelling(self) -> str: ...


def column_wire_type(column: SpelledColumn) -> tuple[WireType, int]:
    """The type of a column, and its modifier."""
    spelling = column.spelling.lower()
    if spelling in _CATALOG_NAMES or (spelling.endswith("[]") and spelling[:-2] in _CATALOG_NAMES):
        return TYPES_BY_NAME[f"_{spelling[:-2]}" if spelling.endswith("[]") else spelling], -1
    if column.type is not None:
        return TYPES_BY_OID[pg_type_of(column.type).oid], type_modifier(column.type)
    return wire_type_of_spelling(column.spelling), -1


def wire_type_of_spelling(spelling: str) -> WireType:
    """The type that DuckDB, or the catalog, spells so. Lists of plain values are arrays; what has more inside is JSON;
    of the rest only the text is told.

    >>> [wire_type_of_spelling(spelling).name for spelling in ("DOUBLE[]", "INTEGER[][]", "MAP(VARCHAR, BIGINT)")]
    ['_float8', 'json', 'json']
    """
    folded = " ".join(spelling.strip('"').lower().split())
    inner = re.fullmatch(r"(.+?)\[\d*\]", folded)
    if inner is not None:
        element = wire_type_of_spelling(inner[1])
        arrays = {array.element.oid: array for array in _ARRAY_TYPES if array.element is not None}
        return JSON_TYPE if element.element is not None or element is JSON_TYPE else arrays.get(element.oid, TEXT_TYPE)
    if folded.startswith(("struct(", "tuple(", "map(", "union(", "row(")) or folded.endswith("]"):
        return JSON_TYPE
    session_type = parse_type(folded)
    if session_type is not None:
        return TYPES_BY_OID[pg_type_of(session_type).oid]
    return TYPES_BY_NAME.get(_DUCKDB_NAMES.get(folded, folded), TEXT_TYPE)


def parameter_wire_type(oid: int) -> WireType | None:
    """What a client says that a parameter is; None where it leaves that to us."""
    return None if oid in (0, 705) else TYPES_BY_OID.get(oid) or WireType(oid, "other", -1, f"with the number {oid}")


def to_session_type(wire: WireType | None) -> Type | None:
    """For a session that infers types: None where nothing is told."""
    return None if wire is None else wire.type


def find_cast_types(sql: str) -> dict[int, WireType]:
    """Types of parameters that are cast by a name of PostgreSQL's, by their numbers: what we have no type for is told
    as it was asked.

    >>> casts = find_cast_types("SELECT $1::oid[], $2 :: pg_catalog.name, '$3::oid'")
    >>> {number: wire.name for number, wire in casts.items()}
    {1: '_oid', 2: 'name'}
    >>> {number: wire.name for number, wire in find_cast_types('SELECT $1::CHAR, $2::"char"').items()}
    {1: 'bpchar', 2: 'char'}
    >>> find_cast_types('SELECT $1::"pg_catalog"."float8"')[1].name
    'float8'
    >>> # more words may follow, which the session reads
    >>> find_cast_types("SELECT $1::timestamp with time zone, $2::time(3)")
    {}
    """
    if "::" not in sql:
        return {}
    words = [token for token in split_tokens(sql) if token.kind not in (TokenKind.SPACE, TokenKind.COMMENT)]
    types: dict[int, WireType] = {}
    for index, token in enumerate(words):
        texts = [_bare_name(following.text) for following in words[index + 1 : index + 7]]
        if token.kind is TokenKind.PARAMETER and token.text[1:].isdigit() and texts[:1] == ["::"]:
            type_tokens = texts[3:] if texts[1:3] == ["pg_catalog", "."] else texts[1:]
            word = {"char": "bpchar", '"char"': "char"}.get("".join(type_tokens[:1]), "".join(type_tokens[:1]))
            name = f"_{word}" if type_tokens[1:3] == ["[", "]"] else word
            if name in TYPES_BY_NAME and word not in ("timestamp", "time"):
                types.setdefault(int(token.text[1:]), TYPES_BY_NAME[name])
    return types


def _bare_name(word: str) -> str:
    """A name of small letters needs no quotes; "char" is another type than char."""
    return word[1:-1] if re.fullmatch(r'"[a-z_][a-z0-9_]*"', word) and word != '"char"' else word.lower()


def to_wire_type(type_: Type, array: bool = False) -> WireType:
    """
    >>> to_wire_type(BIGINT).name, to_wire_type(BIGINT, array=True).name
    ('int8', '_int8')
    """
    scalar = TYPES_BY_OID[pg_type_of(type_).oid]
    return TYPES_BY_NAME[f"_{scalar.name}"] if array else scalar
