"""What the server says: one function for each message, to bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpsql.pgwire.frames import framed, int16, int32, sized, text, uint32

PARSE_COMPLETE = framed(b"1", b"")
BIND_COMPLETE = framed(b"2", b"")
CLOSE_COMPLETE = framed(b"3", b"")
NO_DATA = framed(b"n", b"")
PORTAL_SUSPENDED = framed(b"s", b"")
EMPTY_QUERY = framed(b"I", b"")
COPY_DONE = framed(b"c", b"")
AUTHENTICATION_OK = framed(b"R", int32(0))

MOST_TEXT = 60_000
"""Characters of one field of an error or notice: a client keeps them in memory."""


@dataclass(frozen=True)
class Field:
    """A column of a result. `size` is its type's, -1 where values differ; `format` is 0 for text, 1 for binary."""

    name: str
    type: int
    size: int
    modifier: int = -1
    format: int = 0


def authentication_sasl(mechanisms: Sequence[str]) -> bytes:
    return framed(b"R", int32(10) + b"".join(text(name) for name in mechanisms) + b"\0")


def authentication_sasl_continue(data: bytes) -> bytes:
    return framed(b"R", int32(11) + data)


def authentication_sasl_final(data: bytes) -> bytes:
    return framed(b"R", int32(12) + data)


def backend_key_data(process: int, secret: bytes) -> bytes:
    return framed(b"K", uint32(process) + secret)


def negotiate_protocol_version(minor: int, unknown: Sequence[str]) -> bytes:
    """The newest minor version of 3 that is spoken here, and the options that are not known."""
    return framed(b"v", int32(minor) + int32(len(unknown)) + b"".join(text(name) for name in unknown))


def parameter_status(name: str, value: str) -> bytes:
    return framed(b"S", text(name) + text(value))


def ready_for_query(status: str) -> bytes:
    """`I` idle, `T` in a transaction, `E` in one that failed."""
    return framed(b"Z", status.encode("ascii"))


def row_description(fields: Sequence[Field]) -> bytes:
    body = [int16(len(fields))]
    for field in fields:
        body.append(text(field.name) + uint32(0) + int16(0) + uint32(field.type) + int16(field.size)
                    + int32(field.modifier) + int16(field.format))  # fmt: skip
    return framed(b"T", b"".join(body))


def parameter_description(types: Sequence[int]) -> bytes:
    return framed(b"t", (len(types)).to_bytes(2, "big") + b"".join(uint32(one) for one in types))


def data_row(values: Sequence[bytes | None]) -> bytes:
    return framed(b"D", int16(len(values)) + b"".join([sized(value) for value in values]))


def command_complete(tag: str) -> bytes:
    return framed(b"C", text(tag))


def copy_out_response(columns: int, binary: bool = False) -> bytes:
    one = int16(1 if binary else 0)
    return framed(b"H", bytes([binary]) + int16(columns) + one * columns)


def copy_data(data: bytes) -> bytes:
    return framed(b"d", data)


def error_response(fields: Mapping[str, str]) -> bytes:
    """`fields` by their letters: S V C M, and D H P p q W s t c d n F L R where there are any."""
    return framed(b"E", _fields(fields))


def notice_response(fields: Mapping[str, str]) -> bytes:
    return framed(b"N", _fields(fields))


def _fields(fields: Mapping[str, str]) -> bytes:
    given = (letter.encode("ascii") + text(value) for letter, value in fields.items() if value)
    return b"".join(given) + b"\0"
