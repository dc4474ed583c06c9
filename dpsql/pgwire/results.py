"""Released rows to messages: descriptions of columns, rows in the formats that were asked for, and tags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dpsql.errors import DataError, ProgrammingError
from dpsql.pgwire import replies
from dpsql.pgwire.encode import TEXT, Encoder, encoder
from dpsql.pgwire.wire_types import Spelled, WireType, column_type

CHUNK = 64 * 1024
"""Bytes that are made at a time: who reads slowly has so many waiting, and no thread."""

_COUNTED = frozenset({"SELECT", "FETCH", "COPY"})
_WHOLE, _FRACTIONS = frozenset({"int2", "int4", "int8"}), frozenset({"float4", "float8", "numeric"})
_TEXTS = frozenset({"text", "varchar", "bpchar", "name"})


@dataclass(frozen=True)
class Columns:
    """The columns of a result, as they were described to the client."""

    names: tuple[str, ...]
    types: tuple[WireType, ...]
    modifiers: tuple[int, ...]
    formats: tuple[int, ...]

    @property
    def description(self) -> bytes:
        described = zip(self.names, self.types, self.modifiers, self.formats, strict=True)
        return replies.row_description([replies.Field(n, t.oid, t.size, m, f) for n, t, m, f in described])

    def can_tell(self, answered: Sequence[Spelled]) -> bool:
        """Whether values of those types can be told in these: no fraction can as a whole number."""
        types = [column_type(one)[0] for one in answered]
        pairs = zip(self.types, types, strict=True)
        return not any(told.name in _WHOLE and one.name in _FRACTIONS for told, one in pairs)

    def row_encoder(self, answered: Sequence[Spelled] | None = None) -> Callable[[Sequence[Any]], bytes]:
        """One DataRow. The columns that were answered may be of other types than those that were described: values
        decide types where a parameter stands. The client reads what was described."""
        types = self.types
        if answered is not None:
            types = tuple(map(_read_as, self.types, (column_type(one)[0] for one in answered)))
        return _row_encoder([encoder(type_, format_) for type_, format_ in zip(types, self.formats, strict=True)])


def _read_as(described: WireType, answered: WireType) -> WireType:
    """Any value can be told as text, and then as its own type writes it."""
    return answered if described.name in _TEXTS and answered.name not in _TEXTS else described


def _row_encoder(encoders: Sequence[Encoder]) -> Callable[[Sequence[Any]], bytes]:
    def row(values: Sequence[Any]) -> bytes:
        pairs = zip(encoders, values, strict=True)
        return replies.data_row([None if value is None else encode(value) for encode, value in pairs])

    return row


def columns_of(outputs: Sequence[Spelled], formats: Sequence[int] = (), digits_vary: bool = False) -> Columns:
    """`digits_vary`: values that are not known yet decide how many digits numerics have, so nothing is told of them."""
    found = [column_type(one) for one in outputs]
    return Columns(
        tuple(one.name for one in outputs),
        tuple(type_ for type_, _ in found),
        tuple(-1 if digits_vary else modifier for _, modifier in found),
        spread(formats, len(outputs), "result formats", "query has {} columns"),
    )


def spread(formats: Sequence[int], count: int, what: str, has: str) -> tuple[int, ...]:
    """Formats for each of so many: none means text for all, one means it for all."""
    for one in formats:
        if one not in (0, 1):
            raise DataError(f"unsupported format code: {one}", sqlstate="22023")
    if len(formats) > 1 and len(formats) != count:
        raise ProgrammingError(f"bind message has {len(formats)} {what} but {has.format(count)}", sqlstate="08P01")
    return tuple(formats) if len(formats) == count else (formats[0] if formats else TEXT,) * count


def tag(command: str, rows: int) -> str:
    """As PostgreSQL spells it.

    >>> tag("SELECT", 3), tag("SET", 0), tag("DECLARE CURSOR", 0)
    ('SELECT 3', 'SET', 'DECLARE CURSOR')
    """
    return f"{command} {rows}" if command in _COUNTED else command


def chunked(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in chunks of CHUNK and a little more; the last may be shorter."""
    waiting: list[bytes] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += len(part)
        if size >= CHUNK:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


