"""The client's side of SCRAM-SHA-256, with and without channel binding (RFC 5802, 7677, 5929): text in, text out.

Law: the password itself is never sent; and a server that does not know it is found out, for it cannot sign.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass

from dpsql.errors import OperationalError
from dpsql.passwords import saslprep

PLAIN, BOUND = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
MAX_ITERATIONS = 1_000_000
"""About a second of work: a server that asks for more would only keep us busy."""


class ServerNotProven(OperationalError):
    """The other side is no server that knows the password."""

    default_sqlstate = "08006"


@dataclass(frozen=True)
class ClientChannelBinding:
    """`end_point` is the hash of the server's certificate; None without TLS, or where it has no such hash."""

    end_point: bytes | None = None
    binding: str = "prefer"

    def choose_mechanism(self, offered: tuple[str, ...]) -> str:
        """Of the mechanisms that a server offers."""
        able = self.end_point is not None and self.binding != "disable"
        if BOUND in offered and able:
            return BOUND
        if self.binding == "require":
            raise ServerNotProven("channel binding is required, and the server does not offer it")
        if PLAIN in offered:
            return PLAIN
        raise ServerNotProven("the server offers no way to log in that is spoken here", detail="That is SCRAM-SHA-256.")

    def binding_header(self, mechanism: str) -> bytes:
        """`p`: bound. `y`: it could be, but the server did not offer it: where it did, someone took it out of the list,
        and the server tells. `n`: it could not be."""
        if mechanism == BOUND:
            return b"p=tls-server-end-point,,"
        return b"y,," if self.end_point is not None and self.binding != "disable" else b"n,,"

    def binding_data(self, mechanism: str) -> bytes:
        return self.binding_header(mechanism) + (self.end_point or b"" if mechanism == BOUND else b"")


class ScramClient:
    """One exchange: `first`, then `final` for the server's challenge, then `check` for its last message."""

    def __init__(self, password: str, channel: ClientChannelBinding, mechanism: str, nonce: str) -> None:
        self._password = password
        self._channel = channel
        self._mechanism = mechanism
        self._nonce = nonce
        self._bare = f"n=,r={nonce}"  # the name is that of the startup message
        self._signature: bytes | None = None

    @property
    def first_message(self) -> bytes:
        return self._channel.binding_header(self._mechanism) + self._bare.encode()

    def answer_challenge(self, challenge: bytes) -> bytes:
        """Once: each challenge costs work, and a proof that says something of the password."""
        if self._signature is not None:
            raise ServerNotProven("the server asks for a second proof")
        text = _decode_ascii(challenge)
        fields = _split_fields(text)
        nonce, salt, iterations = fields.get("r", ""), _decode_base64(fields.get("s", "")), _parse_iterations(fields.get("i", ""))
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ServerNotProven("the server's challenge is not an answer to this login")
        binding = base64.b64encode(self._channel.binding_data(self._mechanism)).decode("ascii")
        without_proof = f"c={binding},r={nonce}"
        message = f"{self._bare},{text},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac("sha256", saslprep(self._password).encode(), salt, iterations)
        key = _client_hmac(salted, b"Client Key")
        signature = _client_hmac(hashlib.sha256(key).digest(), message)
        proof = bytes(left ^ right for left, right in zip(key, signature, strict=True))
        self._signature = _client_hmac(_client_hmac(salted, b"Server Key"), message)
        return f"{without_proof},p={base64.b64encode(proof).decode('ascii')}".encode()

    def check_server_signature(self, last: bytes) -> None:
        """NotProven unless the server has signed, which it can only if it knows the password too."""
        signed = _decode_base64(_split_fields(_decode_ascii(last)).get("v", ""))
        if self._signature is None or not hmac.compare_digest(signed, self._signature):
            raise ServerNotProven("the server does not know the password: it may be another one in its place")


def _split_fields(text: str) -> dict[str, str]:
    return {part[:1]: part[2:] for part in text.split(",") if part[1:2] == "="}


def _decode_ascii(data: bytes) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError:
        raise ServerNotProven("the server's challenge cannot be read") from None


def _decode_base64(text: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        data = b""
    if not data:
        raise ServerNotProven("the server's challenge cannot be read")
    return data


def _parse_iterations(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 9 and 0 < int(text) <= MAX_ITERATIONS):
        raise ServerNotProven("the server's challenge cannot be read")
    return int(text)


def _client_hmac(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, "sha256").digest()
