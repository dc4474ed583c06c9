"""Values on their way: parameters to bytes, and cells to what a local session gives for them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from dpsql.pgwire.decode import decode
from dpsql.pgwire.encode import TEXT
from dpsql.pgwire.intervals import Interval
from dpsql.pgwire.wire_types import Spelled, WireType, column_type
from dpsql.remote.exchange import Bound, Row
from dpsql.session import Parameter, literals
from dpsql.types import Kind

_UNKNOWN, _BOOL, _INT8, _FLOAT8, _INTERVAL, _NUMERIC = 0, 16, 20, 701, 1186, 1700
_LARGEST = 2**63


def bound(parameters: Sequence[Parameter]) -> list[Bound]:
    """As the protocol takes them. They are read as a local session reads them, so what cannot be one is told the same;
    and the server makes of each the literal that it is here.

    Of texts, and of dates, which are texts in a statement, the server finds out the type from where they stand.
    """
    return [_bound(literal.kind.name, literal.text) for literal in literals(parameters)]


def _bound(kind: str, text: str) -> Bound:
    match kind:
        case "NULL":
            return _UNKNOWN, None
        case "TRUE" | "FALSE":
            return _BOOL, b"t" if kind == "TRUE" else b"f"
        case "NUMBER":
            return _number(text), text.encode()
        case "INTERVAL":
            return _INTERVAL, text.encode()
        case _:
            return _UNKNOWN, text.encode()


def _number(text: str) -> int:
    """
    >>> [_number(text) for text in ("12", "1.50", "1e-07", "92233720368547758080")]
    [20, 1700, 701, 1700]
    """
    if "e" in text.lower():
        return _FLOAT8
    whole = text.removeprefix("-").isdigit()
    return _INT8 if whole and -_LARGEST <= int(text) < _LARGEST else _NUMERIC


Read = Callable[[bytes], Any]


def reader(columns: Sequence[Spelled]) -> Callable[[Row], tuple[Any, ...]]:
    """Makes a row of an answer of the bytes of a row."""
    reads = [_read(column) for column in columns]

    def row(cells: Row) -> tuple[Any, ...]:
        return tuple([None if cell is None else read(cell) for read, cell in zip(reads, cells, strict=True)])

    return row


_QUICK: dict[str, Read] = {"int2": int, "int4": int, "int8": int, "float8": float, "text": bytes.decode}


def _read(column: Spelled) -> Read:
    wire, _ = column_type(column)
    quick = _QUICK.get(wire.name)
    return quick if quick is not None else _slow(wire, None if column.type is None else column.type.kind)


def _slow(wire: WireType, kind: Kind | None) -> Read:
    def read(cell: bytes) -> Any:
        value = decode(cell, wire, TEXT)
        if isinstance(value, Interval):
            return value.value
        if kind is Kind.HUGEINT:
            return int(value)
        if kind is Kind.REAL:  # the text is the shortest that reads back as this single
            return struct.unpack("f", struct.pack("f", value))[0]
        return value

    return read
