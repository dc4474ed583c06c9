"""Bytes of one message, read from left to right; whatever does not fit is a violation of the protocol.

    Message:  type (1 byte, not at startup) · length (4 bytes, itself included) · body
"""

from __future__ import annotations

import struct

from dpsql.errors import Error

_INT16, _INT32, _UINT32 = struct.Struct("!h"), struct.Struct("!i"), struct.Struct("!I")


class ProtocolViolation(Error):
    """The other side does not speak the protocol: nothing that it sends later can be understood."""

    default_sqlstate = "08P01"


class Reader:
    """The body of a message. Each part is taken once; `end` holds that nothing is left."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._body):
            raise ProtocolViolation("insufficient data left in message")
        taken, self._at = self._body[self._at : end], end
        return taken

    def byte(self) -> bytes:
        return self.take(1)

    def int16(self) -> int:
        return int(_INT16.unpack(self.take(2))[0])

    def int32(self) -> int:
        return int(_INT32.unpack(self.take(4))[0])

    def uint32(self) -> int:
        """As object identifiers are written."""
        return int(_UINT32.unpack(self.take(4))[0])

    def text(self) -> str:
        """Up to a zero byte, which it must have."""
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise ProtocolViolation("invalid string in message")
        taken = self._body[self._at : end]
        self._at = end + 1
        return utf8(taken)

    def sized(self) -> bytes | None:
        """A value with its length before it; None for NULL, whose length is -1."""
        size = self.int32()
        return None if size == -1 else self.take(size)

    def rest(self) -> bytes:
        return self.take(len(self._body) - self._at)

    @property
    def left(self) -> int:
        return len(self._body) - self._at

    def end(self) -> None:
        if self.left:
            raise ProtocolViolation("invalid message format")


def utf8(text: bytes) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        raise ProtocolViolation('invalid byte sequence for encoding "UTF8"') from None


def framed(kind: bytes, body: bytes) -> bytes:
    return kind + _INT32.pack(len(body) + 4) + body


def int16(value: int) -> bytes:
    return _INT16.pack(value)


def int32(value: int) -> bytes:
    return _INT32.pack(value)


def uint32(value: int) -> bytes:
    return _UINT32.pack(value)


def text(value: str) -> bytes:
    """Ended by a zero byte. A zero byte in it would end it early, and half of a character cannot be sent."""
    return value.replace("\0", "�").encode("utf-8", "replace") + b"\0"


def sized(value: bytes | None) -> bytes:
    return _INT32.pack(-1) if value is None else _INT32.pack(len(value)) + value
