"""COPY (query) TO STDOUT: rows as lines, in PostgreSQL's text format or as CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from dpsql.base.client_encodings import UTF8, ClientEncoding
from dpsql.base.time_zones import UTC, TimeZone
from dpsql.errors import UnknownColumn
from dpsql.interfaces.pgwire.protocol import backend
from dpsql.interfaces.pgwire.protocol.encode import make_text_writer
from dpsql.interfaces.pgwire.protocol.types import SpelledColumn, column_wire_type

_ESCAPES = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\"}


class CopyFormat(Protocol):
    """How the command wants its lines."""

    @property
    def csv(self) -> bool: ...
    @property
    def header(self) -> bool: ...
    @property
    def delimiter(self) -> str: ...
    @property
    def null(self) -> str: ...
    @property
    def quote(self) -> str: ...
    @property
    def escape(self) -> str: ...
    @property
    def force_quote(self) -> tuple[str, ...]: ...


def encode_copy_rows(
    columns: Sequence[SpelledColumn],
    rows: Sequence[Sequence[Any]],
    format_: CopyFormat,
    encoding: ClientEncoding = UTF8,
    time_zone: TimeZone = UTC,
) -> Iterator[bytes]:
    """CopyData, one for each line; and before them, what is to come."""
    write_line = make_line_writer(columns, format_, time_zone)
    yield backend.copy_out_response(len(columns))
    if format_.header:
        names = (
            _make_csv_line_writer(columns, format_, force=False)
            if format_.csv
            else _make_text_line_writer(columns, format_)
        )
        yield _encode_line(names([column.name for column in columns]), encoding)
    for row in rows:
        yield _encode_line(write_line(row), encoding)
    yield backend.COPY_DONE


def _encode_line(line: str, encoding: ClientEncoding) -> bytes:
    return backend.copy_data(encoding.encode(line) + b"\n")


def make_line_writer(
    columns: Sequence[SpelledColumn], format_: CopyFormat, time_zone: TimeZone = UTC
) -> Callable[[Sequence[Any]], str]:
    writers = [make_text_writer(column_wire_type(column)[0], time_zone) for column in columns]
    write = (
        _make_csv_line_writer(columns, format_, force=True) if format_.csv else _make_text_line_writer(columns, format_)
    )

    def write_line(row: Sequence[Any]) -> str:
        values = zip(row, writers, strict=True)
        return write([None if value is None else text(value) for value, text in values])

    return write_line


def _make_text_line_writer(
    columns: Sequence[SpelledColumn], format_: CopyFormat
) -> Callable[[Sequence[str | None]], str]:
    delimiter, null = format_.delimiter, format_.null
    escapes = str.maketrans({delimiter: "\\" + delimiter, **_ESCAPES} if delimiter not in _ESCAPES else _ESCAPES)

    def write_line(texts: Sequence[str | None]) -> str:
        return delimiter.join(null if text is None else text.translate(escapes) for text in texts)

    return write_line


def _make_csv_line_writer(
    columns: Sequence[SpelledColumn], format_: CopyFormat, force: bool
) -> Callable[[Sequence[str | None]], str]:
    """A text is quoted where it would be read as another, or as NULL."""
    forced = _find_forced_quotes(columns, format_.force_quote) if force else [False] * len(columns)
    special = {format_.delimiter, format_.quote, "\n", "\r"}
    alone = len(columns) == 1

    def write_cell(text: str | None, quoted: bool) -> str:
        if text is None:
            return format_.null
        ends_copy = alone and text == "\\."
        if (
            not quoted
            and text != format_.null
            and not ends_copy
            and not any(character in special for character in text)
        ):
            return text
        escaped = text.replace(format_.escape, format_.escape * 2)
        if format_.quote != format_.escape:
            escaped = escaped.replace(format_.quote, format_.escape + format_.quote)
        return format_.quote + escaped + format_.quote

    return lambda texts: format_.delimiter.join(map(write_cell, texts, forced))


def _find_forced_quotes(columns: Sequence[SpelledColumn], named: tuple[str, ...]) -> list[bool]:
    if named == ("*",):
        return [True] * len(columns)
    names = [column.name for column in columns]
    for required in named:
        if required not in names:
            raise UnknownColumn(f'column "{required}" does not exist')
    return [name in named for name in names]
