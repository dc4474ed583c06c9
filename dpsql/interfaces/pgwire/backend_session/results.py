"""Released rows to messages: descriptions of columns, rows in the formats that were asked for, and tags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dpsql.base.client_encodings import UTF8, ClientEncoding
from dpsql.base.time_zones import UTC, TimeZone
from dpsql.errors import DataError, ProgrammingError
from dpsql.interfaces.pgwire.protocol import backend
from dpsql.interfaces.pgwire.protocol.encode import TEXT_FORMAT, Encoder, make_encoder
from dpsql.interfaces.pgwire.protocol.types import SpelledColumn, WireType, column_wire_type

CHUNK_BYTES = 64 * 1024
"""Bytes that are made at a time: who reads slowly has so many waiting, and no thread."""

_COUNTED_COMMANDS = frozenset({"SELECT", "FETCH", "COPY"})
_INTEGER_TYPES, _FRACTIONAL_TYPES = frozenset({"int2", "int4", "int8"}), frozenset({"float4", "float8", "numeric"})
_TEXT_TYPES = frozenset({"text", "varchar", "bpchar", "name"})


@dataclass(frozen=True)
class ResultColumns:
    """The columns of a result, as they were described to the client."""

    names: tuple[str, ...]
    types: tuple[WireType, ...]
    modifiers: tuple[int, ...]
    formats: tuple[int, ...]

    @property
    def description(self) -> bytes:
        described = zip(self.names, self.types, self.modifiers, self.formats, strict=True)
        return backend.row_description([backend.FieldDescription(n, t.oid, t.size, m, f) for n, t, m, f in described])

    def can_represent(self, actual_columns: Sequence[SpelledColumn]) -> bool:
        """Whether values of those types can be told in these: no fraction can as a whole number."""
        types = [column_wire_type(actual)[0] for actual in actual_columns]
        pairs = zip(self.types, types, strict=True)
        return not any(
            described.name in _INTEGER_TYPES and actual.name in _FRACTIONAL_TYPES for described, actual in pairs
        )

    def make_row_encoder(
        self,
        actual_columns: Sequence[SpelledColumn] | None = None,
        encoding: ClientEncoding = UTF8,
        time_zone: TimeZone = UTC,
    ) -> Callable[[Sequence[Any]], bytes]:
        """One DataRow. The columns that were answered may be of other types than those that were described: values
        decide types where a parameter stands. The client reads what was described."""
        types = self.types
        if actual_columns is not None:
            types = tuple(map(_encoding_type, self.types, (column_wire_type(column)[0] for column in actual_columns)))
        pairs = zip(types, self.formats, strict=True)
        return _make_data_row_encoder([make_encoder(type_, form, encoding, time_zone) for type_, form in pairs])


def _encoding_type(described: WireType, actual: WireType) -> WireType:
    """Any value can be told as text, and then as its own type writes it."""
    return actual if described.name in _TEXT_TYPES and actual.name not in _TEXT_TYPES else described


def _make_data_row_encoder(encoders: Sequence[Encoder]) -> Callable[[Sequence[Any]], bytes]:
    def encode_row(values: Sequence[Any]) -> bytes:
        pairs = zip(encoders, values, strict=True)
        return backend.data_row([None if value is None else encode(value) for encode, value in pairs])

    return encode_row


def result_columns_of(
    outputs: Sequence[SpelledColumn], formats: Sequence[int] = (), digits_vary: bool = False
) -> ResultColumns:
    """`digits_vary`: values that are not known yet decide how many digits numerics have, so nothing is told of them."""
    wire_types = [column_wire_type(column) for column in outputs]
    return ResultColumns(
        tuple(column.name for column in outputs),
        tuple(type_ for type_, _ in wire_types),
        tuple(-1 if digits_vary else modifier for _, modifier in wire_types),
        expand_formats(formats, len(outputs), "result formats", "query has {} columns"),
    )


def expand_formats(formats: Sequence[int], count: int, what: str, has: str) -> tuple[int, ...]:
    """Formats for each of so many: none means text for all, one means it for all."""
    for code in formats:
        if code not in (0, 1):
            raise DataError(f"unsupported format code: {code}", sqlstate="22023")
    if len(formats) > 1 and len(formats) != count:
        raise ProgrammingError(f"bind message has {len(formats)} {what} but {has.format(count)}", sqlstate="08P01")
    return tuple(formats) if len(formats) == count else (formats[0] if formats else TEXT_FORMAT,) * count


def command_tag(command: str, rows: int) -> str:
    """As PostgreSQL spells it.

    >>> command_tag("SELECT", 3), command_tag("SET", 0), command_tag("DECLARE CURSOR", 0)
    ('SELECT 3', 'SET', 'DECLARE CURSOR')
    """
    return f"{command} {rows}" if command in _COUNTED_COMMANDS else command


def join_into_chunks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in chunks of CHUNK and a little more; the last may be shorter."""
    pending: list[bytes] = []
    size = 0
    for part in parts:
        pending.append(part)
        size += len(part)
        if size >= CHUNK_BYTES:
            yield b"".join(pending)
            pending, size = [], 0
    if pending:
        yield b"".join(pending)
