"""PEP 249's type objects and constructors."""

from __future__ import annotations

import datetime as dt
import time

from dpsql.types import Kind, Type, parse_type

apilevel = "2.0"
threadsafety = 2  # threads may share the module and connections; each uses its own cursors
paramstyle = "qmark"

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> dt.date:
    """The day of so many seconds since 1970, in local time."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> dt.time:
    """The time of day of so many seconds since 1970, in local time."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> dt.datetime:
    """The moment of so many seconds since 1970, in local time."""
    return Timestamp(*time.localtime(ticks)[:6])


class TypeObject:
    """Equal to the type codes of its kinds: `cursor.description[0][1] == dpsql.NUMBER`."""

    def __init__(self, name: str, *kinds: Kind, spellings: tuple[str, ...] = ()) -> None:
        self.name = name
        self.kinds = frozenset(kinds)
        self.spellings = frozenset(spellings)

    def __eq__(self, other: object) -> bool:
        match other:
            case TypeObject():
                return self.name == other.name
            case TypeCode(type=None):
                return other.spelling in self.spellings
            case TypeCode(type=Type(kind)) | Type(kind):
                return kind in self.kinds
            case _:
                return NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"dpsql.{self.name}"


class TypeCode:
    """The type of a column. It equals the names of its type, in any case, and the type objects that it belongs to:

        code == "BIGINT", code == "int8", code == dpsql.NUMBER

    Its hash is that of one of them, str(code): by the others it is not found in a dict or a set.

    `type` is None where dpsql has no such type, as for lists; `spelling` is DuckDB's word for it then.
    """

    __match_args__ = ("type",)

    def __init__(self, type_: Type | None, spelling: str) -> None:
        self.type = type_
        self.spelling = spelling.strip('"').lower()

    def __eq__(self, other: object) -> bool:
        match other:
            case str():
                return self._has_name(other)
            case TypeCode():
                return str(self) == str(other)
            case Type():
                return self.type == other
            case _:
                return NotImplemented

    def _has_name(self, name: str) -> bool:
        if self.type is None:
            return name.lower() == self.spelling
        if self.type.kind is Kind.DECIMAL and name.lower() in ("decimal", "numeric"):
            return True  # whatever its digits
        return parse_type(name) == (Type(self.type.kind) if self.type.kind is Kind.INTERVAL else self.type)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return self.spelling if self.type is None else str(self.type)

    def __repr__(self) -> str:
        return f"<dpsql type {self}>"


STRING = TypeObject("STRING", Kind.TEXT, Kind.UUID)
BINARY = TypeObject("BINARY", spellings=("blob",))
NUMBER = TypeObject(
    "NUMBER", Kind.BOOLEAN, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.HUGEINT, Kind.DECIMAL, Kind.REAL, Kind.DOUBLE
)
DATETIME = TypeObject("DATETIME", Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL)
ROWID = TypeObject("ROWID")
