"""SCRAM-SHA-256 (RFC 5802, RFC 7677): stored verifiers, and the login of both server and client.

Law: a password is in no text, no file and no log; what is kept tells only whether someone knows it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import stringprep
import unicodedata
from dataclasses import dataclass, field

from dpsql.errors import OperationalError

ITERATIONS = 4096
"""As PostgreSQL's scram_iterations: clients work it out at each login."""
SALT_BYTES = 16
"""Bytes."""

_PROHIBITED = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
    stringprep.in_table_a1,  # unassigned in Unicode 3.2
)


@dataclass(frozen=True)
class Verifier:
    """What a server needs to know of a password: enough to check who knows it, too little to be taken for her."""

    iterations: int
    salt: bytes
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    def __str__(self) -> str:
        """`SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`."""
        keys = f"{_base64_text(self.stored_key)}:{_base64_text(self.server_key)}"
        return f"SCRAM-SHA-256${self.iterations}:{_base64_text(self.salt)}${keys}"

    def is_proven(self, message: bytes, proof: bytes) -> bool:
        """Whether the proof was made of the password, for this exchange; takes as long either way (RFC 5802, 3)."""
        signature = _hmac_sha256(self.stored_key, message)
        client_key = _xor(signature, proof.ljust(len(signature)))
        proven = hmac.compare_digest(hashlib.sha256(client_key).digest(), self.stored_key)
        return proven and len(proof) == len(signature)

    def sign_message(self, message: bytes) -> bytes:
        """By which the client sees that the server, too, knows of the password."""
        return _hmac_sha256(self.server_key, message)


def make_verifier(password: str, salt: bytes, iterations: int = ITERATIONS) -> Verifier:
    salted = _salt_password(password, salt, iterations)
    stored = hashlib.sha256(_hmac_sha256(salted, b"Client Key")).digest()
    return Verifier(iterations, salt, stored, _hmac_sha256(salted, b"Server Key"))


def read_verifier(text: str) -> Verifier | None:
    """What `str` of a verifier wrote; None: it is none, or one that no client could use.

    >>> kept = make_verifier("pencil", b"0123456789abcdef")
    >>> read_verifier(str(kept)) == kept, read_verifier("SCRAM-SHA-256$4096:eA==$eA==:eA==")
    (True, None)
    """
    match = re.fullmatch(r"scram-sha-256\$([0-9]{1,9}):([^$:]+)\$([^$:]+):([^$:]+)", text.strip(), re.IGNORECASE)
    if match is None:
        return None
    try:
        salt, stored, server = (_decode_base64(part) for part in match.groups()[1:])
    except ValueError:
        return None
    if not salt or not len(stored) == len(server) == hashlib.sha256().digest_size or int(match[1]) < 1:
        return None
    return Verifier(int(match[1]), salt, stored, server)


def make_verifier_text(password: str, salt: bytes, iterations: int = ITERATIONS) -> str:
    """`SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`. The salt is random, and new for each password."""
    return str(make_verifier(password, salt, iterations))


def saslprep(password: str) -> str:
    """SASLprep (RFC 4013); what it forbids is taken as it stands, as PostgreSQL does.

    >>> saslprep("I\\u00adX"), saslprep("\\u00aa"), saslprep("\\u2168"), saslprep("\\u0007")
    ('IX', 'a', 'IX', '\\x07')
    """
    mapped = "".join(
        " " if stringprep.in_table_c12(character) else character
        for character in password
        if not stringprep.in_table_b1(character)
    )
    normal = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    return normal if normal and _is_allowed_password(normal) else password


def _is_allowed_password(text: str) -> bool:
    if any(prohibited(character) for character in text for prohibited in _PROHIBITED):
        return False
    if not any(stringprep.in_table_d1(character) for character in text):
        return True
    # Of text from right to left, all is, and it begins and ends with such.
    ends = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    return ends and not any(stringprep.in_table_d2(character) for character in text)


def _salt_password(password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", saslprep(password).encode(), salt, iterations)


def _hmac_sha256(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, "sha256").digest()


def _xor(left: bytes, right: bytes) -> bytes:
    """As long as the left one; the right one is no shorter."""
    return bytes(a ^ b for a, b in zip(left, right, strict=False))


def _base64_text(octets: bytes) -> str:
    return base64.b64encode(octets).decode("ascii")


def _decode_base64(text: str) -> bytes:
    """ValueError where it is none."""
    return base64.b64decode(text, validate=True)


# --- the server's side -----------------------------------------------------------------------------------------------
# SCRAM-SHA-256 with and without channel binding (RFC 5802, 7677, 5929): text in, text out.
#
# Law: whether a name is known, a password is right or a proof is malformed by one bit, the exchange has the same
# messages and does the same work up to its last word. Passwords never pass, in clear or as a hash that could be used
# again.

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
        return f"r={self.nonce},s={_base64_text(self.verifier.salt)},i={self.verifier.iterations}"

    def finish_login(self, final: str) -> str:
        """The server's last message, for a client's last message with a right proof."""
        fields, without_proof, proof = _split_final_message(final)
        if _base64_text(self.binding) != fields["c"]:
            raise ScramMessageError("SCRAM channel binding check failed")
        if fields["r"] != self.nonce:
            raise ScramMessageError("nonce does not match")
        message = f"{self.bare},{self.text},{without_proof}".encode()
        proven = self.verifier.is_proven(message, proof)
        signature = _base64_text(self.verifier.sign_message(message))
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
        proof = _decode_base64(last[2:])
    except ValueError:
        raise ScramMessageError("malformed SCRAM message") from None
    return {"c": fields[0][2:], "r": fields[1][2:]}, without_proof, proof


# --- the client's side -----------------------------------------------------------------------------------------------
# Law: the password itself is never sent; and a server that does not know it is found out, for it cannot sign.

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
        """The SASL mechanism to use, of those that a server offers."""
        able = self.end_point is not None and self.binding != "disable"
        if SCRAM_SHA_256_PLUS in offered and able:
            return SCRAM_SHA_256_PLUS
        if self.binding == "require":
            raise ServerNotProven("channel binding is required, and the server does not offer it")
        if SCRAM_SHA_256 in offered:
            return SCRAM_SHA_256
        raise ServerNotProven("the server offers no way to log in that is spoken here", detail="That is SCRAM-SHA-256.")

    def binding_header(self, mechanism: str) -> bytes:
        """`p`: bound. `y`: it could be, but the server did not offer it: where it did, someone took it out of the list,
        and the server tells. `n`: it could not be."""
        if mechanism == SCRAM_SHA_256_PLUS:
            return f"p={BINDING_TYPE},,".encode()
        return b"y,," if self.end_point is not None and self.binding != "disable" else b"n,,"

    def binding_data(self, mechanism: str) -> bytes:
        return self.binding_header(mechanism) + (self.end_point or b"" if mechanism == SCRAM_SHA_256_PLUS else b"")


class ScramClient:
    """One exchange: `first_message`, `answer_challenge`, and `check_server_signature` on the server's last message."""

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
        nonce = fields.get("r", "")
        salt, iterations = _decode_field(fields.get("s", "")), _parse_iterations(fields.get("i", ""))
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ServerNotProven("the server's challenge is not an answer to this login")
        without_proof = f"c={_base64_text(self._channel.binding_data(self._mechanism))},r={nonce}"
        message = f"{self._bare},{text},{without_proof}".encode()
        salted = _salt_password(self._password, salt, iterations)
        key = _hmac_sha256(salted, b"Client Key")
        proof = _xor(key, _hmac_sha256(hashlib.sha256(key).digest(), message))
        self._signature = _hmac_sha256(_hmac_sha256(salted, b"Server Key"), message)
        return f"{without_proof},p={_base64_text(proof)}".encode()

    def check_server_signature(self, last: bytes) -> None:
        """ServerNotProven unless the server has signed, which it can only if it knows the password too."""
        signed = _decode_field(_split_fields(_decode_ascii(last)).get("v", ""))
        if self._signature is None or not hmac.compare_digest(signed, self._signature):
            raise ServerNotProven("the server does not know the password: it may be another one in its place")


def _split_fields(text: str) -> dict[str, str]:
    return {part[:1]: part[2:] for part in text.split(",") if part[1:2] == "="}


def _decode_ascii(data: bytes) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError:
        raise ServerNotProven("the server's challenge cannot be read") from None


def _decode_field(text: str) -> bytes:
    try:
        data = _decode_base64(text)
    except ValueError:
        data = b""
    if not data:
        raise ServerNotProven("the server's challenge cannot be read")
    return data


def _parse_iterations(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 9 and 0 < int(text) <= MAX_ITERATIONS):
        raise ServerNotProven("the server's challenge cannot be read")
    return int(text)
