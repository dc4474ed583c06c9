"""Messages of the server, encoded: one function for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpsql.interfaces.pgwire.protocol.framing import (
    frame_message,
    pack_int16,
    pack_int32,
    pack_sized,
    pack_text,
    pack_uint32,
)

PARSE_COMPLETE = frame_message(b"1", b"")
BIND_COMPLETE = frame_message(b"2", b"")
CLOSE_COMPLETE = frame_message(b"3", b"")
NO_DATA = frame_message(b"n", b"")
PORTAL_SUSPENDED = frame_message(b"s", b"")
EMPTY_QUERY = frame_message(b"I", b"")
COPY_DONE = frame_message(b"c", b"")
AUTHENTICATION_OK = frame_message(b"R", pack_int32(0))

MAX_TEXT_LENGTH = 60_000
"""Characters of one field of an error or notice: a client keeps them in memory."""


@dataclass(frozen=True)
class FieldDescription:
    """A column of a result. `size` is its type's, -1 where values differ; `format` is 0 for text, 1 for binary."""

    name: str
    type: int
    size: int
    modifier: int = -1
    format: int = 0


def authentication_sasl(mechanisms: Sequence[str]) -> bytes:
    return frame_message(b"R", pack_int32(10) + b"".join(pack_text(name) for name in mechanisms) + b"\0")


def authentication_sasl_continue(data: bytes) -> bytes:
    return frame_message(b"R", pack_int32(11) + data)


def authentication_sasl_final(data: bytes) -> bytes:
    return frame_message(b"R", pack_int32(12) + data)


def backend_key_data(process: int, secret: bytes) -> bytes:
    return frame_message(b"K", pack_uint32(process) + secret)


def negotiate_protocol_version(minor: int, unknown: Sequence[str]) -> bytes:
    """The newest minor version of 3 that is spoken here, and the options that are not known."""
    return frame_message(
        b"v", pack_int32(minor) + pack_int32(len(unknown)) + b"".join(pack_text(name) for name in unknown)
    )


def parameter_status(name: str, value: str) -> bytes:
    return frame_message(b"S", pack_text(name) + pack_text(value))


def ready_for_query(status: str) -> bytes:
    """`I` idle, `T` in a transaction, `E` in one that failed."""
    return frame_message(b"Z", status.encode("ascii"))


def row_description(fields: Sequence[FieldDescription]) -> bytes:
    body = [pack_int16(len(fields))]
    for field in fields:
        body.append(
            pack_text(field.name)
            + pack_uint32(0)
            + pack_int16(0)
            + pack_uint32(field.type)
            + pack_int16(field.size)
            + pack_int32(field.modifier)
            + pack_int16(field.format)
        )
    return frame_message(b"T", b"".join(body))


def parameter_description(types: Sequence[int]) -> bytes:
    return frame_message(b"t", (len(types)).to_bytes(2, "big") + b"".join(pack_uint32(type_oid) for type_oid in types))


def data_row(values: Sequence[bytes | None]) -> bytes:
    return frame_message(b"D", pack_int16(len(values)) + b"".join([pack_sized(value) for value in values]))


def command_complete(tag: str) -> bytes:
    return frame_message(b"C", pack_text(tag))


def copy_out_response(columns: int, binary: bool = False) -> bytes:
    column_format = pack_int16(1 if binary else 0)
    return frame_message(b"H", bytes([binary]) + pack_int16(columns) + column_format * columns)


def copy_data(data: bytes) -> bytes:
    return frame_message(b"d", data)


def error_response(fields: Mapping[str, str]) -> bytes:
    """`fields` by their letters: S V C M, and D H P p q W s t c d n F L R where there are any."""
    return frame_message(b"E", _pack_fields(fields))


def notice_response(fields: Mapping[str, str]) -> bytes:
    return frame_message(b"N", _pack_fields(fields))


def _pack_fields(fields: Mapping[str, str]) -> bytes:
    parts = (letter.encode("ascii") + pack_text(value) for letter, value in fields.items() if value)
    return b"".join(parts) + b"\0"
