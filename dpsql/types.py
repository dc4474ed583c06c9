"""The SQL types that dpsql knows, one spelling each, whatever the engine calls them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    BOOLEAN = "boolean"
    SMALLINT = "smallint"
    INTEGER = "integer"
    BIGINT = "bigint"
    HUGEINT = "hugeint"
    DECIMAL = "decimal"
    REAL = "real"
    DOUBLE = "double"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    TIME = "time"
    INTERVAL = "interval"
    UUID = "uuid"


@dataclass(frozen=True)
class Type:
    kind: Kind
    precision: int | None = None
    scale: int | None = None

    def __post_init__(self) -> None:
        if self.kind is Kind.DECIMAL:
            precision, scale = self.precision, self.scale
            if precision is None or scale is None or not 1 <= precision <= 38 or not 0 <= scale <= precision:
                raise ValueError(f"decimal({precision},{scale}) is not a type")

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"decimal({self.precision},{self.scale})"
        return str(self.kind.value)

    @property
    def is_integer(self) -> bool:
        return self.kind in INTEGER_BITS

    @property
    def is_float(self) -> bool:
        return self.kind in (Kind.REAL, Kind.DOUBLE)

    @property
    def is_number(self) -> bool:
        return self.is_integer or self.is_float or self.kind is Kind.DECIMAL

    @property
    def is_microsecond_interval(self) -> bool:
        return self == MICROSECOND_INTERVAL

    @property
    def is_time(self) -> bool:
        return self.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


INTEGER_BITS = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64, Kind.HUGEINT: 128}

BOOLEAN = Type(Kind.BOOLEAN)
SMALLINT = Type(Kind.SMALLINT)
INTEGER = Type(Kind.INTEGER)
BIGINT = Type(Kind.BIGINT)
HUGEINT = Type(Kind.HUGEINT)
REAL = Type(Kind.REAL)
DOUBLE = Type(Kind.DOUBLE)
TEXT = Type(Kind.TEXT)
DATE = Type(Kind.DATE)
TIMESTAMP = Type(Kind.TIMESTAMP)
TIMESTAMPTZ = Type(Kind.TIMESTAMPTZ)
TIME = Type(Kind.TIME)
INTERVAL = Type(Kind.INTERVAL)
MICROSECOND_INTERVAL = Type(Kind.INTERVAL, 6)
"""An interval that was worked out over private rows: whole microseconds, kept in 64 bits. A month is 30 days in it, as
in comparisons of intervals."""
UUID = Type(Kind.UUID)

_TYPE_NAMES = {
    "boolean": BOOLEAN, "bool": BOOLEAN, "logical": BOOLEAN,
    "smallint": SMALLINT, "int2": SMALLINT, "short": SMALLINT, "tinyint": SMALLINT, "utinyint": SMALLINT,
    "integer": INTEGER, "int": INTEGER, "int4": INTEGER, "usmallint": INTEGER,
    "bigint": BIGINT, "int8": BIGINT, "long": BIGINT, "uinteger": BIGINT,
    "hugeint": HUGEINT, "ubigint": HUGEINT, "uhugeint": HUGEINT,
    "real": REAL, "float4": REAL, "float": REAL,
    "double": DOUBLE, "float8": DOUBLE, "double precision": DOUBLE,
    "text": TEXT, "varchar": TEXT, "char": TEXT, "bpchar": TEXT, "string": TEXT, "character varying": TEXT,
    "date": DATE,
    "timestamp": TIMESTAMP, "datetime": TIMESTAMP, "timestamp without time zone": TIMESTAMP,
    "timestamptz": TIMESTAMPTZ, "timestamp with time zone": TIMESTAMPTZ,
    "time": TIME, "time without time zone": TIME,
    "interval": INTERVAL,
    "uuid": UUID,
}  # fmt: skip


def decimal_type(precision: int, scale: int) -> Type:
    return Type(Kind.DECIMAL, precision, scale)


def parse_type(text: str) -> Type | None:
    """The type that a schema or an engine spells so; None where there is no such type."""
    folded = " ".join(text.lower().split())
    match = re.fullmatch(r"(?:decimal|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", folded)
    if match:
        try:
            return decimal_type(int(match[1]), int(match[2] or 0))
        except ValueError:
            return None
    if folded in ("decimal", "numeric"):
        return decimal_type(18, 3)
    match = re.fullmatch(r"(varchar|char|character varying)\s*\(\s*\d+\s*\)", folded)
    return _TYPE_NAMES.get(match[1] if match else folded)


def outer_type_name(spelling: str) -> str:
    """An engine's type by its first word, for messages: what is inside may be labels of an ENUM, which may be values.

    >>> outer_type_name("ENUM('flu', 'cold')"), outer_type_name("STRUCT(k ENUM('flu'))[]"), outer_type_name("BIGINT")
    ('ENUM', 'STRUCT[]', 'BIGINT')
    """
    word = re.match(r"\w+", spelling)
    return (word[0] if word else "?") + ("[]" if spelling.endswith("]") else "")


def integer_range(type_: Type) -> tuple[int, int]:
    bits = INTEGER_BITS[type_.kind]
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def sum_type(type_: Type) -> Type:
    """The type of a SUM over values of this type."""
    if type_.is_integer:
        return BIGINT
    if type_.kind is Kind.DECIMAL:
        return decimal_type(38, type_.scale or 0)
    return DOUBLE
