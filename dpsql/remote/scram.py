"""The client's side of SCRAM-SHA-256, with and without channel binding (RFC 5802, 7677, 5929): text in, text out.

Law: the password itself is never sent; and a server that does not know it is found out, for it cannot sign.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass

from dpsql.errors import OperationalError
from dpsql.passwords import prepared

PLAIN, BOUND = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
MOST_ITERATIONS = 1_000_000
"""About a second of work: a server that asks for more would only keep us busy."""


class NotProven(OperationalError):
    """The other side is no server that knows the password."""

    default_sqlstate = "08006"


@dataclass(frozen=True)
class Channel:
    """`end_point` is the hash of the server's certificate; None without TLS, or where it has no such hash."""

    end_point: bytes | None = None
    binding: str = "prefer"

    def choose(self, offered: tuple[str, ...]) -> str:
        """Of the mechanisms that a server offers."""
        able = self.end_point is not None and self.binding != "disable"
        if BOUND in offered and able:
            return BOUND
        if self.binding == "require":
            raise NotProven("channel binding is required, and the server does not offer it")
        if PLAIN in offered:
            return PLAIN
        raise NotProven("the server offers no way to log in that is spoken here", detail="That is SCRAM-SHA-256.")

    def header(self, mechanism: str) -> bytes:
        """`p`: bound. `y`: it could be, but the server did not offer it: where it did, someone took it out of the list,
        and the server tells. `n`: it could not be."""
        if mechanism == BOUND:
            return b"p=tls-server-end-point,,"
        return b"y,," if self.end_point is not None and self.binding != "disable" else b"n,,"

    def bound(self, mechanism: str) -> bytes:
        return self.header(mechanism) + (self.end_point or b"" if mechanism == BOUND else b"")


class Login:
    """One exchange: `first`, then `final` for the server's challenge, then `check` for its last message."""

    def __init__(self, password: str, channel: Channel, mechanism: str, nonce: str) -> None:
        self._password = password
        self._channel = channel
        self._mechanism = mechanism
        self._nonce = nonce
        self._bare = f"n=,r={nonce}"  # the name is that of the startup message
        self._signature: bytes | None = None

    @property
    def first(self) -> bytes:
        return self._channel.header(self._mechanism) + self._bare.encode()

    def final(self, challenge: bytes) -> bytes:
        """Once: each challenge costs work, and a proof that says something of the password."""
        if self._signature is not None:
            raise NotProven("the server asks for a second proof")
        text = _ascii(challenge)
        fields = _fields(text)
        nonce, salt, iterations = fields.get("r", ""), _octets(fields.get("s", "")), _number(fields.get("i", ""))
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise NotProven("the server's challenge is not an answer to this login")
        binding = base64.b64encode(self._channel.bound(self._mechanism)).decode("ascii")
        without_proof = f"c={binding},r={nonce}"
        message = f"{self._bare},{text},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac("sha256", prepared(self._password).encode(), salt, iterations)
        key = _keyed(salted, b"Client Key")
        signature = _keyed(hashlib.sha256(key).digest(), message)
        proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
        self._signature = _keyed(_keyed(salted, b"Server Key"), message)
        return f"{without_proof},p={base64.b64encode(proof).decode('ascii')}".encode()

    def check(self, last: bytes) -> None:
        """NotProven unless the server has signed, which it can only if it knows the password too."""
        signed = _octets(_fields(_ascii(last)).get("v", ""))
        if self._signature is None or not hmac.compare_digest(signed, self._signature):
            raise NotProven("the server does not know the password: it may be another one in its place")


def _fields(text: str) -> dict[str, str]:
    return {part[:1]: part[2:] for part in text.split(",") if part[1:2] == "="}


def _ascii(data: bytes) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError:
        raise NotProven("the server's challenge cannot be read") from None


def _octets(text: str) -> bytes:
    try:
        found = base64.b64decode(text, validate=True)
    except ValueError:
        found = b""
    if not found:
        raise NotProven("the server's challenge cannot be read")
    return found


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 9 and 0 < int(text) <= MOST_ITERATIONS):
        raise NotProven("the server's challenge cannot be read")
    return int(text)


def _keyed(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, "sha256").digest()
