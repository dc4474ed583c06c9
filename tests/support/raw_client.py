"""A client of bytes: it says what a test wants, well-formed or not, and hears what the server says.

with Raw(server.host, server.port) as raw:
    raw.log_in("ana", "secret", "hospital")
    raw.send(client.query("SELECT 1"))
    raw.until_ready()
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import ssl
from contextlib import suppress
from functools import cache
from types import TracebackType
from typing import Self

from dpsql.interfaces.pgwire.protocol import client_codec
from dpsql.interfaces.pgwire.protocol.client_codec import (
    Authentication,
    BackendDecoder,
    BackendKeyData,
    BackendReply,
    ErrorResponse,
    ReadyForQuery,
)
from tests.support.wire_messages import encode_query

NONCE = "fyko+d2lbbFgONRv9qkxdawL"
SSL_REQUEST, GSS_REQUEST = b"\0\0\0\x08\x04\xd2\x16\x2f", b"\0\0\0\x08\x04\xd2\x16\x30"


class Refused(Exception):
    """The server's error, of which `state` is the SQLSTATE."""

    def __init__(self, fields: dict[str, str]) -> None:
        super().__init__(fields.get("M"))
        self.fields, self.state = fields, fields.get("C", "")


class Closed(Exception):
    """The server has closed the connection."""


class Raw:
    def __init__(self, host: str, port: int, seconds: float = 30.0) -> None:
        self.socket = socket.create_connection((host, port), seconds)
        self._replies = BackendDecoder()
        self.key: BackendKeyData | None = None
        self.parameters: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read(self, size: int = 65536) -> bytes:
        """Bytes as they come; none at the end."""
        try:
            return self.socket.recv(size)
        except ConnectionError:
            return b""

    def rest(self) -> bytes:
        """All until the server closes."""
        found = b""
        while data := self.read():
            found += data
        return found

    def remaining_replies(self) -> list[BackendReply]:
        """All replies until the server closes."""
        replies: list[BackendReply] = []
        with suppress(Closed):
            while True:
                replies.append(self.reply())
        return replies

    def reply(self) -> BackendReply:
        while (found := self._replies.next_reply()) is None:
            data = self.read()
            if not data:
                raise Closed
            self._replies.receive_data(data)
        return found

    def until_ready(self) -> list[BackendReply]:
        """All replies up to ReadyForQuery, which is the last."""
        found: list[BackendReply] = []
        while not found or not isinstance(found[-1], ReadyForQuery):
            found.append(self.reply())
        return found

    def ask(self, sql: str) -> list[BackendReply]:
        self.send(encode_query(sql))
        return self.until_ready()

    def states(self, sql: str) -> list[str]:
        """The SQLSTATEs of the errors that a text gets."""
        return [one.fields["C"] for one in self.ask(sql) if isinstance(one, ErrorResponse)]

    def start_tls(self, context: ssl.SSLContext, name: str = "localhost") -> bytes:
        """What the server answers to the request; S: TLS has begun."""
        self.send(SSL_REQUEST)
        answer = self.read(1)
        if answer == b"S":
            self.socket = context.wrap_socket(self.socket, server_hostname=name)
        return answer

    # --- logging in --------------------------------------------------------------------------------------------------

    def begin(self, user: str, database: str, **parameters: str) -> Authentication:
        """The startup message; what the server offers."""
        self.send(client_codec.encode_startup({"user": user, "database": database, **parameters}))
        return self._authentication()

    def log_in(self, user: str, password: str, database: str, **parameters: str) -> list[BackendReply]:
        """By SCRAM-SHA-256 without binding; raises Refused."""
        self.begin(user, database, **parameters)
        self.prove(user, password)
        found: list[BackendReply] = []
        while not found or not isinstance(found[-1], ReadyForQuery):
            found.append(self._checked())
            if isinstance(found[-1], BackendKeyData):
                self.key = found[-1]
            if isinstance(found[-1], client_codec.ParameterStatus):
                self.parameters[found[-1].name] = found[-1].value
        return found

    def challenge(self, user: str) -> str:
        self.send(client_codec.encode_sasl_initial("SCRAM-SHA-256", f"n,,n=,r={NONCE}".encode()))
        return self._authentication().data.decode()

    def prove(self, user: str, password: str) -> Authentication:
        """Up to what says that the proof is right."""
        challenge = self.challenge(user)
        self.send(client_codec.encode_sasl_response(proof(password, challenge).encode()))
        return self._authentication()

    def _authentication(self) -> Authentication:
        found = self._checked()
        assert isinstance(found, Authentication), found
        return found

    def _checked(self) -> BackendReply:
        found = self.reply()
        if isinstance(found, ErrorResponse):
            raise Refused(dict(found.fields))
        return found


def proof(password: str, challenge: str) -> str:
    """The client's last message (RFC 5802)."""
    fields = dict(part.split("=", 1) for part in challenge.split(","))
    key, stored = _keys(password, base64.b64decode(fields["s"]), int(fields["i"]))
    without = f"c=biws,r={fields['r']}"
    signature = hmac.digest(stored, f"n=,r={NONCE},{challenge},{without}".encode(), "sha256")
    proven = bytes(one ^ other for one, other in zip(key, signature, strict=True))
    return f"{without},p={base64.b64encode(proven).decode()}"


@cache
def _keys(password: str, salt: bytes, iterations: int) -> tuple[bytes, bytes]:
    """Kept, since tests log in some hundred times."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    key = hmac.digest(salted, b"Client Key", "sha256")
    return key, hashlib.sha256(key).digest()
