"""What a client says: bytes of one message to a frozen value.

>>> read_message(b"Q", b"SELECT 1\\0")
Query(sql='SELECT 1')
>>> read_startup((80877102).to_bytes(4, "big") + (7).to_bytes(4, "big") + b"keys")
CancelRequest(process=7, secret=b'keys')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dpsql.pgwire.frames import ProtocolViolation, Reader

CANCEL, SSL, GSSENC = 80877102, 80877103, 80877104
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


Startup = StartupMessage | SSLRequest | GSSENCRequest | CancelRequest


@dataclass(frozen=True)
class Query:
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


Message = (
    Query
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
)


def read_startup(body: bytes) -> Startup:
    """The first message of a connection, which has no type."""
    reader = Reader(body)
    code = reader.uint32()
    match code:
        case 80877103:
            reader.end()
            return SSLRequest()
        case 80877104:
            reader.end()
            return GSSENCRequest()
        case 80877102:
            return _cancel(reader)
        case _ if code >> 16 == 3:
            return StartupMessage((3, code & 0xFFFF), _pairs(reader))
        case _:
            major, minor = code >> 16, code & 0xFFFF
            why = f"unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0"
            raise ProtocolViolation(why, sqlstate="0A000")


def _cancel(reader: Reader) -> CancelRequest:
    process, secret = reader.uint32(), reader.rest()
    if not 4 <= len(secret) <= 256:
        raise ProtocolViolation("invalid length of cancel key")
    return CancelRequest(process, secret)


def _pairs(reader: Reader) -> dict[str, str]:
    """Names and values, and a zero byte behind the last; a name that comes again counts the last time."""
    pairs: dict[str, str] = {}
    while name := reader.text():
        pairs[name] = reader.text()
    reader.end()
    return pairs


def read_message(kind: bytes, body: bytes) -> Message:
    """A message of a client that has started."""
    parse = _PARSERS.get(kind)
    if parse is None:
        raise ProtocolViolation(f"invalid frontend message type {kind[0]}")
    reader = Reader(body)
    message = parse(reader)
    reader.end()
    return message


def _counted(reader: Reader) -> int:
    """A number of things: two bytes, without a sign."""
    return reader.int16() & 0xFFFF


def _parse(reader: Reader) -> Parse:
    name, sql = reader.text(), reader.text()
    return Parse(name, sql, tuple(reader.uint32() for _ in range(_counted(reader))))


def _bind(reader: Reader) -> Bind:
    portal, statement = reader.text(), reader.text()
    formats = tuple(reader.int16() for _ in range(_counted(reader)))
    values = tuple(reader.sized() for _ in range(_counted(reader)))
    return Bind(portal, statement, formats, values, tuple(reader.int16() for _ in range(_counted(reader))))


def _named(reader: Reader, message: str) -> tuple[str, str]:
    kind = reader.byte()
    if kind not in (b"S", b"P"):
        raise ProtocolViolation(f"invalid {message} message subtype {kind[0]}")
    return kind.decode("ascii"), reader.text()


def _function_call(reader: Reader) -> FunctionCall:
    reader.rest()
    return FunctionCall()


_PARSERS: dict[bytes, Callable[[Reader], Message]] = {
    b"Q": lambda reader: Query(reader.text()),
    b"P": _parse,
    b"B": _bind,
    b"D": lambda reader: Describe(*_named(reader, "DESCRIBE")),
    b"E": lambda reader: Execute(reader.text(), reader.int32()),
    b"C": lambda reader: Close(*_named(reader, "CLOSE")),
    b"H": lambda reader: Flush(),
    b"S": lambda reader: Sync(),
    b"X": lambda reader: Terminate(),
    b"p": lambda reader: Password(reader.rest()),
    b"d": lambda reader: CopyData(reader.rest()),
    b"c": lambda reader: CopyDone(),
    b"f": lambda reader: CopyFail(reader.text()),
    b"F": _function_call,
}
KINDS = frozenset(_PARSERS)
