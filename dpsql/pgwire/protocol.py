"""From bytes as they come to messages, one by one.

Law: what is held is never more than one message may be, and a message that is too long is refused by its length
alone, before any of it is kept. Before the login that is 10 kB.

>>> protocol = FrontendDecoder()
>>> protocol.receive_data((8).to_bytes(4, "big") + (80877103).to_bytes(4, "big"))
>>> protocol.next_startup()
SSLRequest()
"""

from __future__ import annotations

from dpsql.pgwire.frames import ProtocolViolation
from dpsql.pgwire.messages import MESSAGE_TYPES, FrontendMessage, StartupPacket, read_message, read_startup_packet

MAX_STARTUP_BYTES = 10_000
"""A startup packet; PostgreSQL's own limit."""

MAX_LOGIN_BYTES = 10_000
"""A message before the login has ended."""

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""A message after the login."""

_HEADER_BYTES = 5


class FrontendDecoder:
    """The bytes of one client.

    Feed it with `receive`, then take messages until there is None. `room` is how many bytes more it will hold: a server
    that reads no more than that at once keeps its memory bounded.
    """

    def __init__(self, max_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._most_after_login = max_bytes
        self._most = MAX_LOGIN_BYTES
        self._buffer = bytearray()

    def allow_long_messages(self) -> None:
        """From here on messages may be as long as statements are."""
        self._most = self._most_after_login

    @property
    def buffered_bytes(self) -> int:
        """Bytes that are here and not yet read."""
        return len(self._buffer)

    @property
    def free_bytes(self) -> int:
        return self._most + _HEADER_BYTES - len(self._buffer)

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
        if not 4 <= length <= self._most:
            raise ProtocolViolation("invalid message length", detail=f"A message may have {self._most} bytes.")
        body = self._take_body(1, length)
        return None if body is None else read_message(kind, body)

    def _take_body(self, start: int, length: int) -> bytes | None:
        """The body of a message whose length stands at `start`, once it is all here; it is gone from the buffer."""
        end = start + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[start + 4 : end])
        del self._buffer[:end]
        return body
