"""The client's side of the protocol: its messages encoded, and the server's replies decoded one at a time.

>>> replies = BackendDecoder()
>>> replies.receive_data(frame_message(b"Z", b"I"))
>>> replies.next_reply()
ReadyForQuery(status='I')
>>> encode_execute("c", limit=10)
b'E\\x00\\x00\\x00\\nc\\x00\\x00\\x00\\x00\\n'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dpsql.interfaces.pgwire.protocol.backend import FieldDescription
from dpsql.interfaces.pgwire.protocol.framing import (
    MessageReader,
    ProtocolViolation,
    frame_message,
    pack_int16,
    pack_int32,
    pack_sized,
    pack_text,
    pack_uint32,
)
from dpsql.interfaces.pgwire.protocol.frontend import CANCEL_REQUEST_CODE, SSL_REQUEST_CODE

MAX_REPLY_BYTES = 64 * 1024 * 1024
"""Of one message of a server."""

VERSION_3_0 = 3 << 16

# --- what a client says ----------------------------------------------------------------------------------------------

SSL_REQUEST = pack_int32(8) + pack_int32(SSL_REQUEST_CODE)
FLUSH, SYNC, TERMINATE, COPY_DONE = (frame_message(kind, b"") for kind in (b"H", b"S", b"X", b"c"))


def encode_startup(parameters: Mapping[str, str]) -> bytes:
    pairs = b"".join(pack_text(name) + pack_text(value) for name, value in parameters.items())
    body = pack_int32(VERSION_3_0) + pairs + b"\0"
    return pack_int32(len(body) + 4) + body


def encode_cancel_request(process: int, secret: bytes) -> bytes:
    body = pack_int32(CANCEL_REQUEST_CODE) + pack_uint32(process) + secret
    return pack_int32(len(body) + 4) + body


def encode_parse(name: str, sql: str, types: Sequence[int] = ()) -> bytes:
    return frame_message(
        b"P",
        pack_text(name) + pack_text(sql) + _pack_count(types) + b"".join(pack_uint32(type_oid) for type_oid in types),
    )


def encode_bind(
    portal: str,
    statement: str,
    values: Sequence[bytes | None] = (),
    formats: Sequence[int] = (),
    result_formats: Sequence[int] = (),
) -> bytes:
    body = [pack_text(portal), pack_text(statement), _pack_count(formats), *map(pack_int16, formats)]
    body += [
        _pack_count(values),
        *map(pack_sized, values),
        _pack_count(result_formats),
        *map(pack_int16, result_formats),
    ]
    return frame_message(b"B", b"".join(body))


def encode_execute(portal: str = "", limit: int = 0) -> bytes:
    return frame_message(b"E", pack_text(portal) + pack_int32(limit))


def encode_close(kind: str, name: str = "") -> bytes:
    return frame_message(b"C", kind.encode("ascii") + pack_text(name))


def encode_sasl_initial(mechanism: str, data: bytes) -> bytes:
    return frame_message(b"p", pack_text(mechanism) + pack_sized(data))


def encode_sasl_response(data: bytes) -> bytes:
    return frame_message(b"p", data)


def _pack_count(items: Sequence[object]) -> bytes:
    if len(items) > 0xFFFF:
        raise ProtocolViolation("a statement has at most 65,535 parameters")
    return len(items).to_bytes(2, "big")


# --- what a server says ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Authentication:
    """`code` 0: logged in; 10, 11 and 12: steps of SASL, with its data; others are not spoken here."""

    code: int
    data: bytes = b""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that the server offers in SASL's first step."""
        return tuple(name.decode("utf-8", "replace") for name in self.data.split(b"\0") if name)


@dataclass(frozen=True)
class BackendKeyData:
    process: int
    secret: bytes


@dataclass(frozen=True)
class NegotiateProtocolVersion:
    minor: int
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class ParameterStatus:
    name: str
    value: str


@dataclass(frozen=True)
class ReadyForQuery:
    status: str


@dataclass(frozen=True)
class RowDescription:
    fields: tuple[FieldDescription, ...]


@dataclass(frozen=True)
class ParameterDescription:
    types: tuple[int, ...]


@dataclass(frozen=True)
class DataRow:
    values: tuple[bytes | None, ...]


@dataclass(frozen=True)
class CommandComplete:
    tag: str


@dataclass(frozen=True)
class ErrorResponse:
    """Fields by their letters: `C` is the SQLSTATE, `M` the message, `D` the detail, `H` the hint, `P` the position."""

    fields: Mapping[str, str]


@dataclass(frozen=True)
class NoticeResponse:
    fields: Mapping[str, str]


@dataclass(frozen=True)
class CopyOutResponse:
    binary: bool
    formats: tuple[int, ...]


@dataclass(frozen=True)
class CopyOutData:
    data: bytes


@dataclass(frozen=True)
class NotificationResponse:
    process: int
    channel: str
    payload: str


@dataclass(frozen=True)
class SimpleReply:
    """A message that says nothing more than what it is: `name` tells which."""

    name: str


BackendReply = (
    Authentication
    | BackendKeyData
    | NegotiateProtocolVersion
    | ParameterStatus
    | ReadyForQuery
    | RowDescription
    | ParameterDescription
    | DataRow
    | CommandComplete
    | ErrorResponse
    | NoticeResponse
    | CopyOutResponse
    | CopyOutData
    | NotificationResponse
    | SimpleReply
)

PARSE_COMPLETE, BIND_COMPLETE, CLOSE_COMPLETE = (
    SimpleReply("ParseComplete"),
    SimpleReply("BindComplete"),
    SimpleReply("CloseComplete"),
)
NO_DATA, PORTAL_SUSPENDED, EMPTY_QUERY = (
    SimpleReply("NoData"),
    SimpleReply("PortalSuspended"),
    SimpleReply("EmptyQueryResponse"),
)
COPY_DONE_REPLY = SimpleReply("CopyDone")
_SIMPLE_REPLIES = {
    b"1": PARSE_COMPLETE,
    b"2": BIND_COMPLETE,
    b"3": CLOSE_COMPLETE,
    b"n": NO_DATA,
    b"s": PORTAL_SUSPENDED,
    b"I": EMPTY_QUERY,
    b"c": COPY_DONE_REPLY,
}


def read_reply(kind: bytes, body: bytes) -> BackendReply:
    reader = MessageReader(body)
    if kind in _SIMPLE_REPLIES:
        reader.check_end()
        return _SIMPLE_REPLIES[kind]
    read = _REPLY_READERS.get(kind)
    if read is None:
        raise ProtocolViolation(f"the server sent a message of an unknown type, {kind[0]}")
    reply = read(reader)
    reader.check_end()
    return reply


class BackendDecoder:
    """The bytes of one server: `receive_data`, then `next_reply` until it is None."""

    def __init__(self, max_bytes: int = MAX_REPLY_BYTES) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._at = 0

    def receive_data(self, data: bytes) -> None:
        del self._buffer[: self._at]
        self._at = 0
        self._buffer += data

    def next_reply(self) -> BackendReply | None:
        """The next message; None: it is not all here."""
        head = self._buffer[self._at : self._at + 5]
        if len(head) < 5:
            return None
        length = int.from_bytes(head[1:], "big")
        if not 4 <= length <= self._max_bytes:
            raise ProtocolViolation("the server sent a message of an invalid length")
        end = self._at + 1 + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[self._at + 5 : end])
        self._at = end
        return read_reply(bytes(head[:1]), body)

    @property
    def buffered_bytes(self) -> int:
        return len(self._buffer) - self._at


def _read_authentication(reader: MessageReader) -> Authentication:
    return Authentication(reader.read_int32(), reader.read_rest())


def _read_negotiate_version(reader: MessageReader) -> NegotiateProtocolVersion:
    minor = reader.read_int32()
    return NegotiateProtocolVersion(
        minor, tuple(reader.read_text() for _ in range(_check_count(reader.read_int32(), reader)))
    )


def _read_row_description(reader: MessageReader) -> RowDescription:
    return RowDescription(tuple(_read_field(reader) for _ in range(reader.read_int16())))


def _read_field(reader: MessageReader) -> FieldDescription:
    name, _table, _column = reader.read_text(), reader.read_uint32(), reader.read_int16()
    return FieldDescription(name, reader.read_uint32(), reader.read_int16(), reader.read_int32(), reader.read_int16())


def _read_parameter_description(reader: MessageReader) -> ParameterDescription:
    return ParameterDescription(tuple(reader.read_uint32() for _ in range(reader.read_int16() & 0xFFFF)))


def _read_data_row(reader: MessageReader) -> DataRow:
    return DataRow(tuple([reader.read_sized() for _ in range(reader.read_int16())]))


def _read_fields(reader: MessageReader) -> dict[str, str]:
    fields: dict[str, str] = {}
    while (letter := reader.read_byte()) != b"\0":
        fields[letter.decode("latin-1")] = reader.read_text()
    return fields


def _read_copy_out(reader: MessageReader) -> CopyOutResponse:
    return CopyOutResponse(reader.read_byte() != b"\0", tuple(reader.read_int16() for _ in range(reader.read_int16())))


def _check_count(number: int, reader: MessageReader) -> int:
    """Things of a byte at least: more than there are bytes cannot be meant."""
    if not 0 <= number <= reader.remaining_bytes:
        raise ProtocolViolation("insufficient data left in message")
    return number


_REPLY_READERS: dict[bytes, Callable[[MessageReader], BackendReply]] = {
    b"R": _read_authentication,
    b"K": lambda reader: BackendKeyData(reader.read_uint32(), reader.read_rest()),
    b"v": _read_negotiate_version,
    b"S": lambda reader: ParameterStatus(reader.read_text(), reader.read_text()),
    b"Z": lambda reader: ReadyForQuery(reader.read_byte().decode("latin-1")),
    b"T": _read_row_description,
    b"t": _read_parameter_description,
    b"D": _read_data_row,
    b"C": lambda reader: CommandComplete(reader.read_text()),
    b"E": lambda reader: ErrorResponse(_read_fields(reader)),
    b"N": lambda reader: NoticeResponse(_read_fields(reader)),
    b"H": _read_copy_out,
    b"d": lambda reader: CopyOutData(reader.read_rest()),
    b"A": lambda reader: NotificationResponse(reader.read_uint32(), reader.read_text(), reader.read_text()),
}
