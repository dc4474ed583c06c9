"""PEP 249's type objects and constructors."""

from __future__ import annotations

import datetime as dt
import time

from dpsql.types import Kind, Type

apilevel = "2.0"
threadsafety = 2  # threads may share the module and connections; each uses its own cursors
paramstyle = "qmark"

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> dt.date:
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> dt.time:
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> dt.datetime:
    return Timestamp(*time.localtime(ticks)[:6])


class TypeObject:
    """Equal to every type of its kinds: `cursor.description[0][1] == dpsql.NUMBER`."""

    def __init__(self, name: str, *kinds: Kind) -> None:
        self.name = name
        self.kinds = frozenset(kinds)

    def __eq__(self, other: object) -> bool:
        match other:
            case TypeObject():
                return self.name == other.name
            case Type():
                return other.kind in self.kinds
            case _:
                return NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"dpsql.{self.name}"


STRING = TypeObject("STRING", Kind.TEXT, Kind.UUID)
BINARY = TypeObject("BINARY")
NUMBER = TypeObject(
    "NUMBER", Kind.BOOLEAN, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.HUGEINT, Kind.DECIMAL, Kind.REAL, Kind.DOUBLE
)
DATETIME = TypeObject("DATETIME", Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL)
ROWID = TypeObject("ROWID")
