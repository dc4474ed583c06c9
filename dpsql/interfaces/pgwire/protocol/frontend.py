"""Messages of a client, decoded: the bytes of one message to a frozen value.

>>> read_message(b"Q", b"SELECT 1\\0")
SimpleQuery(sql='SELECT 1')
>>> read_startup_packet((80877102).to_bytes(4, "big") + (7).to_bytes(4, "big") + b"keys")
CancelRequest(process=7, secret=b'keys')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dpsql.interfaces.pgwire.protocol.framing import MessageReader, ProtocolViolation

CANCEL_REQUEST_CODE, SSL_REQUEST_CODE, GSSENC_REQUEST_CODE = 80877102, 80877103, 80877104
"""Codes in the place of a version."""


@dataclass(frozen=True)
class StartupMessage:
    """`version` is (3, 0), or a later minor one that is to be negotiated down."""

    version: tuple[int, int]
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class SSLRequest:
    pass


@dataclass(frozen=True)
class GSSENCRequest:
    pass


@dataclass(frozen=True)
class CancelRequest:
    process: int
    secret: bytes


StartupPacket = StartupMessage | SSLRequest | GSSENCRequest | CancelRequest


@dataclass(frozen=True)
class SimpleQuery:
    sql: str


@dataclass(frozen=True)
class Parse:
    """`types` are object identifiers; 0 where the client leaves it to us."""

    name: str
    sql: str
    types: tuple[int, ...] = ()


@dataclass(frozen=True)
class Bind:
    """Formats: 0 text, 1 binary; none: all text; one: it holds for all."""

    portal: str
    statement: str
    formats: tuple[int, ...] = ()
    values: tuple[bytes | None, ...] = ()
    result_formats: tuple[int, ...] = ()


@dataclass(frozen=True)
class Describe:
    """`kind` is "S" for a statement, "P" for a portal."""

    kind: str
    name: str


@dataclass(frozen=True)
class Execute:
    portal: str
    limit: int = 0  # rows; 0 or less: all


@dataclass(frozen=True)
class Close:
    kind: str
    name: str


@dataclass(frozen=True)
class Flush:
    pass


@dataclass(frozen=True)
class Sync:
    pass


@dataclass(frozen=True)
class Terminate:
    pass


@dataclass(frozen=True, repr=False)
class Password:
    """A part of a login, SASL's messages included; what it says depends on what was asked."""

    body: bytes

    def __repr__(self) -> str:
        return "Password(…)"  # never in a log


@dataclass(frozen=True)
class CopyData:
    data: bytes


@dataclass(frozen=True)
class CopyDone:
    pass


@dataclass(frozen=True)
class CopyFail:
    reason: str


@dataclass(frozen=True)
class FunctionCall:
    """Refused: a function is called in a SELECT."""


@dataclass(frozen=True)
class MalformedMessage:
    """A message of a known type and length whose content is wrong: the next one can still be read."""

    kind: str
    reason: str

    @property
    def is_extended(self) -> bool:
        """Whether what follows is skipped up to Sync, as after any error of the extended protocol."""
        return self.kind in _EXTENDED_TYPES


FrontendMessage = (
    SimpleQuery
    | Parse
    | Bind
    | Describe
    | Execute
    | Close
    | Flush
    | Sync
    | Terminate
    | Password
    | CopyData
    | CopyDone
    | CopyFail
    | FunctionCall
    | MalformedMessage
)


def read_startup_packet(body: bytes) -> StartupPacket:
    """The first message of a connection, which has no type."""
    reader = MessageReader(body)
    code = reader.read_uint32()
    match code:
        case 80877103:
            reader.check_end()
            return SSLRequest()
        case 80877104:
            reader.check_end()
            return GSSENCRequest()
        case 80877102:
            return _read_cancel_request(reader)
        case _ if code >> 16 == 3:
            return StartupMessage((3, code & 0xFFFF), _read_parameters(reader))
        case _:
            major, minor = code >> 16, code & 0xFFFF
            reason = f"unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0"
            raise ProtocolViolation(reason, sqlstate="0A000")


def _read_cancel_request(reader: MessageReader) -> CancelRequest:
    process, secret = reader.read_uint32(), reader.read_rest()
    if not 4 <= len(secret) <= 256:
        raise ProtocolViolation("invalid length of cancel key")
    return CancelRequest(process, secret)


def _read_parameters(reader: MessageReader) -> dict[str, str]:
    """Names and values, and a zero byte behind the last; a name that comes again counts the last time."""
    pairs: dict[str, str] = {}
    while name := reader.read_text():
        pairs[name] = reader.read_text()
    reader.check_end()
    return pairs


def read_message(kind: bytes, body: bytes) -> FrontendMessage:
    """A message of a client that has started.

    What a client writes as text may be in an encoding that is not known here: `restore_bytes` has its bytes.
    """
    parse = _MESSAGE_READERS.get(kind)
    if parse is None:
        raise ProtocolViolation(f"invalid frontend message type {kind[0]}")
    reader = MessageReader(body)
    message = parse(reader)
    reader.check_end()
    return message


def restore_bytes(text: str) -> bytes:
    """The bytes of a text as they were sent."""
    return text.encode("utf-8", "surrogateescape")


def _read_count(reader: MessageReader) -> int:
    """A number of things: two bytes, without a sign."""
    return reader.read_int16() & 0xFFFF


def _read_parse(reader: MessageReader) -> Parse:
    name, sql = reader.read_client_text(), reader.read_client_text()
    return Parse(name, sql, tuple(reader.read_uint32() for _ in range(_read_count(reader))))


def _read_bind(reader: MessageReader) -> Bind:
    portal, statement = reader.read_client_text(), reader.read_client_text()
    formats = tuple(reader.read_int16() for _ in range(_read_count(reader)))
    values = tuple(reader.read_sized() for _ in range(_read_count(reader)))
    return Bind(portal, statement, formats, values, tuple(reader.read_int16() for _ in range(_read_count(reader))))


def _read_target(reader: MessageReader, message: str) -> tuple[str, str]:
    kind = reader.read_byte()
    if kind not in (b"S", b"P"):
        raise ProtocolViolation(f"invalid {message} message subtype {kind[0]}")
    return kind.decode("ascii"), reader.read_client_text()


def _read_terminate(reader: MessageReader) -> Terminate:
    reader.read_rest()  # a client that says more leaves all the same
    return Terminate()


def _read_function_call(reader: MessageReader) -> FunctionCall:
    reader.read_rest()
    return FunctionCall()


_MESSAGE_READERS: dict[bytes, Callable[[MessageReader], FrontendMessage]] = {
    b"Q": lambda reader: SimpleQuery(reader.read_client_text()),
    b"P": _read_parse,
    b"B": _read_bind,
    b"D": lambda reader: Describe(*_read_target(reader, "DESCRIBE")),
    b"E": lambda reader: Execute(reader.read_client_text(), reader.read_int32()),
    b"C": lambda reader: Close(*_read_target(reader, "CLOSE")),
    b"H": lambda reader: Flush(),
    b"S": lambda reader: Sync(),
    b"X": _read_terminate,
    b"p": lambda reader: Password(reader.read_rest()),
    b"d": lambda reader: CopyData(reader.read_rest()),
    b"c": lambda reader: CopyDone(),
    b"f": lambda reader: CopyFail(reader.read_client_text()),
    b"F": _read_function_call,
}
MESSAGE_TYPES = frozenset(_MESSAGE_READERS)
_EXTENDED_TYPES = frozenset("PBDECH")

# From bytes as they come to messages, one by one.
#
# Law: what is held is never more than one message may be, and a message that is too long is refused by its length
# alone, before any of it is kept. Before the login that is 10 kB.
#
# >>> protocol = FrontendDecoder()
# >>> protocol.receive_data((8).to_bytes(4, "big") + (80877103).to_bytes(4, "big"))
# >>> protocol.next_startup()
# SSLRequest()

MAX_STARTUP_BYTES = 10_000
"""A startup packet; PostgreSQL's own limit."""

MAX_LOGIN_BYTES = 10_000
"""A message before the login has ended."""

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""A message after the login."""

_HEADER_BYTES = 5


class FrontendDecoder:
    """The bytes of one client.

    Feed it with `receive_data`, then take messages until there is None. `free_bytes` is how many bytes more it will
    hold: a server that reads no more than that at once keeps its memory bounded.
    """

    def __init__(self, max_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._max_bytes_after_login = max_bytes
        self._max_message_bytes = MAX_LOGIN_BYTES
        self._buffer = bytearray()

    def allow_long_messages(self) -> None:
        """From here on messages may be as long as statements are."""
        self._max_message_bytes = self._max_bytes_after_login

    @property
    def buffered_bytes(self) -> int:
        """Bytes that are here and not yet read."""
        return len(self._buffer)

    @property
    def free_bytes(self) -> int:
        return self._max_message_bytes + _HEADER_BYTES - len(self._buffer)

    def receive_data(self, data: bytes) -> None:
        if len(data) > self.free_bytes:
            raise ProtocolViolation("more was sent at once than a message may hold")
        self._buffer += data

    def next_startup(self) -> StartupPacket | None:
        """The next message as long as none has started the connection; None: it is not all here."""
        if len(self._buffer) < 4:
            return None
        length = int.from_bytes(self._buffer[:4], "big")
        if not 8 <= length <= MAX_STARTUP_BYTES:
            raise ProtocolViolation("invalid length of startup packet")
        body = self._take_body(0, length)
        return None if body is None else read_startup_packet(body)

    def next_message(self) -> FrontendMessage | None:
        """The next message of a connection that has started; None: it is not all here."""
        if not self._buffer:
            return None
        kind = bytes(self._buffer[:1])
        if kind not in MESSAGE_TYPES:
            raise ProtocolViolation(f"invalid frontend message type {kind[0]}")
        if len(self._buffer) < _HEADER_BYTES:
            return None
        length = int.from_bytes(self._buffer[1:_HEADER_BYTES], "big")
        if not 4 <= length <= self._max_message_bytes:
            raise ProtocolViolation(
                "invalid message length", detail=f"A message may have {self._max_message_bytes} bytes."
            )
        body = self._take_body(1, length)
        if body is None:
            return None
        try:
            return read_message(kind, body)
        except ProtocolViolation as error:
            return MalformedMessage(kind.decode("ascii"), error.message)

    def _take_body(self, start: int, length: int) -> bytes | None:
        """The body of a message whose length stands at `start`, once it is all here; it is gone from the buffer."""
        end = start + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[start + 4 : end])
        del self._buffer[:end]
        return body
