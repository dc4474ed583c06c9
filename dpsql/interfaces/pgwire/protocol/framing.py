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


class MessageReader:
    """The body of a message. Each part is taken once; `end` holds that nothing is left."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def read_bytes(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._body):
            raise ProtocolViolation("insufficient data left in message")
        data, self._at = self._body[self._at : end], end
        return data

    def read_byte(self) -> bytes:
        return self.read_bytes(1)

    def read_int16(self) -> int:
        return int(_INT16.unpack(self.read_bytes(2))[0])

    def read_int32(self) -> int:
        return int(_INT32.unpack(self.read_bytes(4))[0])

    def read_uint32(self) -> int:
        """Read an unsigned 32-bit number, as object identifiers are sent."""
        return int(_UINT32.unpack(self.read_bytes(4))[0])

    def read_text(self) -> str:
        """Up to a zero byte, which it must have."""
        return decode_utf8(self._read_string())

    def read_client_text(self) -> str:
        """As `read_text`, of a client that may write in another encoding: bytes that are no UTF-8 are kept as halves of
        surrogates, so that whoever knows the encoding can have the bytes back."""
        return self._read_string().decode("utf-8", "surrogateescape")

    def _read_string(self) -> bytes:
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise ProtocolViolation("invalid string in message")
        data = self._body[self._at : end]
        self._at = end + 1
        return data

    def read_sized(self) -> bytes | None:
        """A value with its length before it; None for NULL, whose length is -1."""
        size = self.read_int32()
        return None if size == -1 else self.read_bytes(size)

    def read_rest(self) -> bytes:
        return self.read_bytes(len(self._body) - self._at)

    @property
    def remaining_bytes(self) -> int:
        return len(self._body) - self._at

    def check_end(self) -> None:
        if self.remaining_bytes:
            raise ProtocolViolation("invalid message format")


def decode_utf8(text: bytes) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        raise ProtocolViolation('invalid byte sequence for encoding "UTF8"') from None


def frame_message(kind: bytes, body: bytes) -> bytes:
    return kind + _INT32.pack(len(body) + 4) + body


def pack_int16(value: int) -> bytes:
    return _INT16.pack(value)


def pack_int32(value: int) -> bytes:
    return _INT32.pack(value)


def pack_uint32(value: int) -> bytes:
    return _UINT32.pack(value)


def pack_text(value: str) -> bytes:
    """Ended by a zero byte. A zero byte in it would end it early, and half of a character cannot be sent."""
    return value.replace("\0", "�").encode("utf-8", "replace") + b"\0"


def pack_sized(value: bytes | None) -> bytes:
    return _INT32.pack(-1) if value is None else _INT32.pack(len(value)) + value
