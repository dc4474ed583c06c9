"""The client's direction: what a client says, to bytes; and what a server says, from bytes, one message at a time.

>>> replies = Replies()
>>> replies.receive(replies_of("Z", b"I"))
>>> replies.next_reply()
ReadyForQuery(status='I')
>>> query("SELECT 1")
b'Q\\x00\\x00\\x00\\rSELECT 1\\x00'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dpsql.pgwire.frames import ProtocolViolation, Reader, framed, int16, int32, sized, text, uint32
from dpsql.pgwire.messages import CANCEL, SSL
from dpsql.pgwire.replies import Field

MOST_BYTES = 64 * 1024 * 1024
"""Of one message of a server."""

VERSION_3_0 = 3 << 16

# --- what a client says ----------------------------------------------------------------------------------------------

SSL_REQUEST = int32(8) + int32(SSL)
FLUSH, SYNC, TERMINATE, COPY_DONE = (framed(kind, b"") for kind in (b"H", b"S", b"X", b"c"))


def startup(parameters: Mapping[str, str]) -> bytes:
    pairs = b"".join(text(name) + text(value) for name, value in parameters.items())
    body = int32(VERSION_3_0) + pairs + b"\0"
    return int32(len(body) + 4) + body


def cancel_request(process: int, secret: bytes) -> bytes:
    body = int32(CANCEL) + uint32(process) + secret
    return int32(len(body) + 4) + body


def query(sql: str) -> bytes:
    return framed(b"Q", text(sql))


def parse(name: str, sql: str, types: Sequence[int] = ()) -> bytes:
    return framed(b"P", text(name) + text(sql) + _count(types) + b"".join(uint32(one) for one in types))


def bind(
    portal: str,
    statement: str,
    values: Sequence[bytes | None] = (),
    formats: Sequence[int] = (),
    result_formats: Sequence[int] = (),
) -> bytes:
    body = [text(portal), text(statement), _count(formats), *map(int16, formats)]
    body += [_count(values), *map(sized, values), _count(result_formats), *map(int16, result_formats)]
    return framed(b"B", b"".join(body))


def describe(kind: str, name: str = "") -> bytes:
    """`kind` is "S" for a statement, "P" for a portal."""
    return framed(b"D", kind.encode("ascii") + text(name))


def execute(portal: str = "", limit: int = 0) -> bytes:
    return framed(b"E", text(portal) + int32(limit))


def close(kind: str, name: str = "") -> bytes:
    return framed(b"C", kind.encode("ascii") + text(name))


def sasl_initial(mechanism: str, data: bytes) -> bytes:
    return framed(b"p", text(mechanism) + sized(data))


def sasl_response(data: bytes) -> bytes:
    return framed(b"p", data)


def copy_fail(reason: str) -> bytes:
    return framed(b"f", text(reason))


def _count(things: Sequence[object]) -> bytes:
    if len(things) > 0xFFFF:
        raise ProtocolViolation("a statement has at most 65,535 parameters")
    return len(things).to_bytes(2, "big")


# --- what a server says ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Authentication:
    """`code` 0: logged in; 10, 11 and 12: steps of SASL, with its data; others are not spoken here."""

    code: int
    data: bytes = b""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Of SASL's first step."""
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
    fields: tuple[Field, ...]


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
class CopyData:
    data: bytes


@dataclass(frozen=True)
class NotificationResponse:
    process: int
    channel: str
    payload: str


@dataclass(frozen=True)
class Said:
    """A message that says nothing more than what it is: `name` tells which."""

    name: str


Reply = (
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
    | CopyData
    | NotificationResponse
    | Said
)

PARSE_COMPLETE, BIND_COMPLETE, CLOSE_COMPLETE = Said("ParseComplete"), Said("BindComplete"), Said("CloseComplete")
NO_DATA, PORTAL_SUSPENDED, EMPTY_QUERY = Said("NoData"), Said("PortalSuspended"), Said("EmptyQueryResponse")
COPY_IS_DONE = Said("CopyDone")
_SAID = {b"1": PARSE_COMPLETE, b"2": BIND_COMPLETE, b"3": CLOSE_COMPLETE, b"n": NO_DATA, b"s": PORTAL_SUSPENDED,
         b"I": EMPTY_QUERY, b"c": COPY_IS_DONE}  # fmt: skip


def read_reply(kind: bytes, body: bytes) -> Reply:
    reader = Reader(body)
    if kind in _SAID:
        reader.end()
        return _SAID[kind]
    read = _READERS.get(kind)
    if read is None:
        raise ProtocolViolation(f"the server sent a message of an unknown type, {kind[0]}")
    reply = read(reader)
    reader.end()
    return reply


class Replies:
    """The bytes of one server: `receive` them, then take replies until there is None."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._buffer = bytearray()
        self._at = 0

    def receive(self, data: bytes) -> None:
        del self._buffer[: self._at]
        self._at = 0
        self._buffer += data

    def next_reply(self) -> Reply | None:
        """The next message; None: it is not all here."""
        head = self._buffer[self._at : self._at + 5]
        if len(head) < 5:
            return None
        length = int.from_bytes(head[1:], "big")
        if not 4 <= length <= self._most:
            raise ProtocolViolation("the server sent a message of an invalid length")
        end = self._at + 1 + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[self._at + 5 : end])
        self._at = end
        return read_reply(bytes(head[:1]), body)

    @property
    def waiting(self) -> int:
        return len(self._buffer) - self._at


def replies_of(kind: str, body: bytes) -> bytes:
    """One message of a server, as its bytes."""
    return framed(kind.encode("ascii"), body)


def _authentication(reader: Reader) -> Authentication:
    return Authentication(reader.int32(), reader.rest())


def _negotiate(reader: Reader) -> NegotiateProtocolVersion:
    minor = reader.int32()
    return NegotiateProtocolVersion(minor, tuple(reader.text() for _ in range(_counted(reader.int32(), reader))))


def _row_description(reader: Reader) -> RowDescription:
    return RowDescription(tuple(_field(reader) for _ in range(reader.int16())))


def _field(reader: Reader) -> Field:
    name, _table, _column = reader.text(), reader.uint32(), reader.int16()
    return Field(name, reader.uint32(), reader.int16(), reader.int32(), reader.int16())


def _parameter_description(reader: Reader) -> ParameterDescription:
    return ParameterDescription(tuple(reader.uint32() for _ in range(reader.int16() & 0xFFFF)))


def _data_row(reader: Reader) -> DataRow:
    return DataRow(tuple([reader.sized() for _ in range(reader.int16())]))


def _fields(reader: Reader) -> dict[str, str]:
    fields: dict[str, str] = {}
    while (letter := reader.byte()) != b"\0":
        fields[letter.decode("latin-1")] = reader.text()
    return fields


def _copy_out(reader: Reader) -> CopyOutResponse:
    return CopyOutResponse(reader.byte() != b"\0", tuple(reader.int16() for _ in range(reader.int16())))


def _counted(number: int, reader: Reader) -> int:
    """Things of a byte at least: more than there are bytes cannot be meant."""
    if not 0 <= number <= reader.left:
        raise ProtocolViolation("insufficient data left in message")
    return number


_READERS: dict[bytes, Callable[[Reader], Reply]] = {
    b"R": _authentication,
    b"K": lambda reader: BackendKeyData(reader.uint32(), reader.rest()),
    b"v": _negotiate,
    b"S": lambda reader: ParameterStatus(reader.text(), reader.text()),
    b"Z": lambda reader: ReadyForQuery(reader.byte().decode("latin-1")),
    b"T": _row_description,
    b"t": _parameter_description,
    b"D": _data_row,
    b"C": lambda reader: CommandComplete(reader.text()),
    b"E": lambda reader: ErrorResponse(_fields(reader)),
    b"N": lambda reader: NoticeResponse(_fields(reader)),
    b"H": _copy_out,
    b"d": lambda reader: CopyData(reader.rest()),
    b"A": lambda reader: NotificationResponse(reader.uint32(), reader.text(), reader.text()),
}
