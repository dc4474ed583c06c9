"""The server's side of SCRAM-SHA-256, with and without channel binding (RFC 5802, 7677, 5929): text in, text out.

Law: whether a name is known, a password is right or a proof is malformed by one bit, the exchange has the same messages
and does the same work up to its last word. Passwords never pass, in clear or as a hash that could be used again.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass

from dpsql.passwords import Verifier

SCRAM_SHA_256, SCRAM_SHA_256_PLUS = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
BINDING_TYPE = "tls-server-end-point"
_PRINTABLE = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
_MAX_NONCE_LENGTH = 1024
"""Characters of a client's nonce: it is sent back twice."""


class ScramMessageError(Exception):
    """The client does not keep to SCRAM: a fault of the protocol, whatever the password. Holds nothing of it."""


class WrongPassword(Exception):
    """The proof is not of this password, or there is no such user."""


@dataclass(frozen=True)
class ChannelBinding:
    """What a client may bind a login to; without `end_point`, there is no TLS, or it has nothing to bind to."""

    end_point: bytes | None = None

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """As they are offered, the best first."""
        return (SCRAM_SHA_256_PLUS, SCRAM_SHA_256) if self.end_point is not None else (SCRAM_SHA_256,)


@dataclass(frozen=True)
class ScramChallenge:
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

    def finish_login(self, final: str) -> str:
        """The server's last message, for a client's last message with a right proof."""
        fields, without_proof, proof = _split_final_message(final)
        if base64.b64encode(self.binding).decode("ascii") != fields["c"]:
            raise ScramMessageError("SCRAM channel binding check failed")
        if fields["r"] != self.nonce:
            raise ScramMessageError("nonce does not match")
        message = f"{self.bare},{self.text},{without_proof}".encode()
        proven = self.verifier.is_proven(message, proof)
        signature = base64.b64encode(self.verifier.sign_message(message)).decode("ascii")
        if not (proven and self.known):
            raise WrongPassword
        return f"v={signature}"


def create_challenge(
    mechanism: str, first: str, channel: ChannelBinding, verifier: Verifier, user_exists: bool, server_nonce: str
) -> ScramChallenge:
    """Answer to the client's first message: `flag,[a=name],n=…,r=nonce`. The name in it is not looked at: as in
    PostgreSQL, that of the startup message counts."""
    flag, authority, bare = _split_first_message(first)
    _check_binding_flag(flag, mechanism, channel)
    if authority:
        raise ScramMessageError("client uses authorization identity, but it is not supported")
    if bare.startswith("m="):
        raise ScramMessageError("client requires an unsupported SCRAM extension")
    match = re.fullmatch(r"n=([^,]*),r=([^,]*)(,.*)?", bare, re.DOTALL)
    if match is None or _PRINTABLE.fullmatch(match[2]) is None or len(match[2]) > _MAX_NONCE_LENGTH:
        raise ScramMessageError("malformed SCRAM message")
    header = f"{flag},,".encode()
    binding = header + (channel.end_point or b"") if flag.startswith("p=") else header
    return ScramChallenge(verifier, user_exists, match[2] + server_nonce, bare, binding)


def _split_first_message(text: str) -> tuple[str, str, str]:
    parts = text.split(",", 2)
    if len(parts) != 3:
        raise ScramMessageError("malformed SCRAM message")
    return parts[0], parts[1], parts[2]


def _check_binding_flag(flag: str, mechanism: str, channel: ChannelBinding) -> None:
    """`n`: the client cannot bind. `y`: it could, and thinks that we cannot: where we offered it, someone between us
    took it out of the list. `p=…`: it binds."""
    if flag == "y" and channel.end_point is not None and mechanism == SCRAM_SHA_256:
        raise ScramMessageError("SCRAM channel binding negotiation error")
    if mechanism == SCRAM_SHA_256_PLUS:
        if flag != f"p={BINDING_TYPE}":
            kind = "unsupported SCRAM channel-binding type" if flag.startswith("p=") else "malformed SCRAM message"
            raise ScramMessageError(kind)
    elif flag.startswith("p="):
        raise ScramMessageError("client selected SCRAM-SHA-256 without channel binding, but sent it")
    elif flag not in ("n", "y"):
        raise ScramMessageError("malformed SCRAM message")


def _split_final_message(text: str) -> tuple[dict[str, str], str, bytes]:
    """`c=…,r=…[,extensions],p=proof`."""
    without_proof, comma, last = text.rpartition(",")
    fields = without_proof.split(",")
    if not comma or not last.startswith("p=") or len(fields) < 2:
        raise ScramMessageError("malformed SCRAM message")
    if not fields[0].startswith("c=") or not fields[1].startswith("r="):
        raise ScramMessageError("malformed SCRAM message")
    try:
        proof = base64.b64decode(last[2:], validate=True)
    except ValueError:
        raise ScramMessageError("malformed SCRAM message") from None
    return {"c": fields[0][2:], "r": fields[1][2:]}, without_proof, proof
