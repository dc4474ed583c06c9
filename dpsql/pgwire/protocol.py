"""From bytes as they come to messages, one by one.

Law: what is held is never more than one message may be, and a message that is too long is refused by its length
alone, before any of it is kept. Before the login that is 10 kB.

>>> protocol = Protocol()
>>> protocol.receive((8).to_bytes(4, "big") + (80877103).to_bytes(4, "big"))
>>> protocol.next_startup()
SSLRequest()
"""

from __future__ import annotations

from dpsql.pgwire.frames import ProtocolViolation
from dpsql.pgwire.messages import KINDS, Message, Startup, read_message, read_startup

STARTUP_BYTES = 10_000
"""A startup packet; PostgreSQL's own limit."""

LOGIN_BYTES = 10_000
"""A message before the login has ended."""

MESSAGE_BYTES = 16 * 1024 * 1024
"""A message after the login."""

_HEAD = 5


class Protocol:
    """The bytes of one client.

    Feed it with `receive`, then take messages until there is None. `room` is how many bytes more it will hold: a server
    that reads no more than that at once keeps its memory bounded.
    """

    def __init__(self, most_bytes: int = MESSAGE_BYTES) -> None:
        self._most_after_login = most_bytes
        self._most = LOGIN_BYTES
        self._buffer = bytearray()

    def login_is_over(self) -> None:
        """From here on messages may be as long as statements are."""
        self._most = self._most_after_login

    @property
    def waiting(self) -> int:
        """Bytes that are here and not yet read."""
        return len(self._buffer)

    @property
    def room(self) -> int:
        return self._most + _HEAD - len(self._buffer)

    def receive(self, data: bytes) -> None:
        if len(data) > self.room:
            raise ProtocolViolation("more was sent at once than a message may hold")
        self._buffer += data

    def next_startup(self) -> Startup | None:
        """The next message as long as none has started the connection; None: it is not all here."""
        if len(self._buffer) < 4:
            return None
        length = int.from_bytes(self._buffer[:4], "big")
        if not 8 <= length <= STARTUP_BYTES:
            raise ProtocolViolation("invalid length of startup packet")
        body = self._taken(0, length)
        return None if body is None else read_startup(body)

    def next_message(self) -> Message | None:
        """The next message of a connection that has started; None: it is not all here."""
        if not self._buffer:
            return None
        kind = bytes(self._buffer[:1])
        if kind not in KINDS:
            raise ProtocolViolation(f"invalid frontend message type {kind[0]}")
        if len(self._buffer) < _HEAD:
            return None
        length = int.from_bytes(self._buffer[1:_HEAD], "big")
        if not 4 <= length <= self._most:
            raise ProtocolViolation("invalid message length", detail=f"A message may have {self._most} bytes.")
        body = self._taken(1, length)
        return None if body is None else read_message(kind, body)

    def _taken(self, start: int, length: int) -> bytes | None:
        """The body of a message whose length stands at `start`, once it is all here; it is gone from the buffer."""
        end = start + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[start + 4 : end])
        del self._buffer[:end]
        return body
