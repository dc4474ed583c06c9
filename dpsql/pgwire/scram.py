"""The server's side of SCRAM-SHA-256, with and without channel binding (RFC 5802, 7677, 5929): text in, text out.

Law: whether a name is known, a password is right or a proof is malformed by one bit, the exchange has the same messages
and does the same work up to its last word. Passwords never pass, in clear or as a hash that could be used again.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass

from dpsql.passwords import Verifier

PLAIN, BOUND = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
BINDING = "tls-server-end-point"
_PRINTABLE = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
_MOST = 1024
"""Characters of a client's nonce: it is sent back twice."""


class WrongMessage(Exception):
    """The client does not keep to SCRAM: a fault of the protocol, whatever the password. Holds nothing of it."""


class WrongPassword(Exception):
    """The proof is not of this password, or there is no such user."""


@dataclass(frozen=True)
class Channel:
    """What a client may bind a login to; without `end_point`, there is no TLS, or it has nothing to bind to."""

    end_point: bytes | None = None

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """As they are offered, the best first."""
        return (BOUND, PLAIN) if self.end_point is not None else (PLAIN,)


@dataclass(frozen=True)
class Challenge:
    """The server's first message, and what the exchange is held to from here."""

    verifier: Verifier
    known: bool
    nonce: str
    bare: str  # the client's first message without its flags
    binding: bytes  # what the last message must repeat

    @property
    def text(self) -> str:
        salt = base64.b64encode(self.verifier.salt).decode("ascii")
        return f"r={self.nonce},s={salt},i={self.verifier.iterations}"

    def finish(self, final: str) -> str:
        """The server's last message, for a client's last message with a right proof."""
        fields, without_proof, proof = _final(final)
        if base64.b64encode(self.binding).decode("ascii") != fields["c"]:
            raise WrongMessage("SCRAM channel binding check failed")
        if fields["r"] != self.nonce:
            raise WrongMessage("nonce does not match")
        message = f"{self.bare},{self.text},{without_proof}".encode()
        proven = self.verifier.is_proven(message, proof)
        signature = base64.b64encode(self.verifier.signature(message)).decode("ascii")
        if not (proven and self.known):
            raise WrongPassword
        return f"v={signature}"


def challenge(
    mechanism: str, first: str, channel: Channel, verifier: Verifier, known: bool, server_nonce: str
) -> Challenge:
    """Answer to the client's first message: `flag,[a=name],n=…,r=nonce`. The name in it is not looked at: as in
    PostgreSQL, that of the startup message counts."""
    flag, authority, bare = _first(first)
    _check_flag(flag, mechanism, channel)
    if authority:
        raise WrongMessage("client uses authorization identity, but it is not supported")
    if bare.startswith("m="):
        raise WrongMessage("client requires an unsupported SCRAM extension")
    found = re.fullmatch(r"n=([^,]*),r=([^,]*)(,.*)?", bare, re.DOTALL)
    if found is None or _PRINTABLE.fullmatch(found[2]) is None or len(found[2]) > _MOST:
        raise WrongMessage("malformed SCRAM message")
    header = f"{flag},,".encode()
    binding = header + (channel.end_point or b"") if flag.startswith("p=") else header
    return Challenge(verifier, known, found[2] + server_nonce, bare, binding)


def _first(text: str) -> tuple[str, str, str]:
    parts = text.split(",", 2)
    if len(parts) != 3:
        raise WrongMessage("malformed SCRAM message")
    return parts[0], parts[1], parts[2]


def _check_flag(flag: str, mechanism: str, channel: Channel) -> None:
    """`n`: the client cannot bind. `y`: it could, and thinks that we cannot: where we offered it, someone between us
    took it out of the list. `p=…`: it binds."""
    if flag == "y" and channel.end_point is not None and mechanism == PLAIN:
        raise WrongMessage("SCRAM channel binding negotiation error")
    if mechanism == BOUND:
        if flag != f"p={BINDING}":
            kind = "unsupported SCRAM channel-binding type" if flag.startswith("p=") else "malformed SCRAM message"
            raise WrongMessage(kind)
    elif flag.startswith("p="):
        raise WrongMessage("client selected SCRAM-SHA-256 without channel binding, but sent it")
    elif flag not in ("n", "y"):
        raise WrongMessage("malformed SCRAM message")


def _final(text: str) -> tuple[dict[str, str], str, bytes]:
    """`c=…,r=…[,extensions],p=proof`."""
    without_proof, comma, last = text.rpartition(",")
    fields = without_proof.split(",")
    if not comma or not last.startswith("p=") or len(fields) < 2:
        raise WrongMessage("malformed SCRAM message")
    if not fields[0].startswith("c=") or not fields[1].startswith("r="):
        raise WrongMessage("malformed SCRAM message")
    try:
        proof = base64.b64decode(last[2:], validate=True)
    except ValueError:
        raise WrongMessage("malformed SCRAM message") from None
    return {"c": fields[0][2:], "r": fields[1][2:]}, without_proof, proof
