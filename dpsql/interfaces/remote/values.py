"""Parameters to bytes, and cells to the values that a local session gives for them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from dpsql.base.intervals import IntervalParts, make_interval
from dpsql.interfaces.pgwire.protocol.decode import decode_value
from dpsql.interfaces.pgwire.protocol.encode import TEXT_FORMAT
from dpsql.interfaces.pgwire.protocol.types import SpelledColumn, WireType, column_wire_type
from dpsql.interfaces.remote.exchange import BoundParameter, Row
from dpsql.session.session import Parameter, to_literals
from dpsql.types import Kind

_UNKNOWN, _BOOL, _INT8, _FLOAT8, _INTERVAL, _NUMERIC = 0, 16, 20, 701, 1186, 1700
_INT8_LIMIT = 2**63


def bind_parameters(parameters: Sequence[Parameter]) -> list[BoundParameter]:
    """As the protocol takes them. They are read as a local session reads them, so what cannot be one is told the same;
    and the server makes of each the literal that it is here.

    Of texts, and of dates, which are texts in a statement, the server finds out the type from where they stand.
    """
    return [_bind_literal(literal.kind.name, literal.text) for literal in to_literals(parameters)]


def _bind_literal(kind: str, text: str) -> BoundParameter:
    match kind:
        case "NULL":
            return _UNKNOWN, None
        case "TRUE" | "FALSE":
            return _BOOL, b"t" if kind == "TRUE" else b"f"
        case "NUMBER":
            return _number_oid(text), text.encode()
        case "INTERVAL":
            return _INTERVAL, text.encode()
        case _:
            return _UNKNOWN, text.encode()


def _number_oid(text: str) -> int:
    """
    >>> [_number_oid(text) for text in ("12", "1.50", "1e-07", "92233720368547758080")]
    [20, 1700, 701, 1700]
    """
    if "e" in text.lower():
        return _FLOAT8
    is_integer = text.removeprefix("-").isdigit()
    return _INT8 if is_integer and -_INT8_LIMIT <= int(text) < _INT8_LIMIT else _NUMERIC


CellReader = Callable[[bytes], Any]


def make_row_reader(columns: Sequence[SpelledColumn]) -> Callable[[Row], tuple[Any, ...]]:
    """A function that decodes the cells of a row as they were received."""
    reads = [_make_cell_reader(column) for column in columns]

    def decode_row(cells: Row) -> tuple[Any, ...]:
        return tuple([None if cell is None else read(cell) for read, cell in zip(reads, cells, strict=True)])

    return decode_row


_FAST_READERS: dict[str, CellReader] = {"int2": int, "int4": int, "int8": int, "float8": float, "text": bytes.decode}


def _make_cell_reader(column: SpelledColumn) -> CellReader:
    wire, _ = column_wire_type(column)
    quick = _FAST_READERS.get(wire.name)
    return (
        quick if quick is not None else _make_decoding_reader(wire, None if column.type is None else column.type.kind)
    )


def _make_decoding_reader(wire: WireType, kind: Kind | None) -> CellReader:
    def read(cell: bytes) -> Any:
        value = decode_value(cell, wire, TEXT_FORMAT)
        if isinstance(value, IntervalParts):
            return make_interval(*value)
        if kind is Kind.HUGEINT:
            return int(value)
        if kind is Kind.REAL:  # the text is the shortest that reads back as this single
            return struct.unpack("f", struct.pack("f", value))[0]
        return value

    return read
