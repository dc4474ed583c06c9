"""Passwords as PostgreSQL stores them: SCRAM-SHA-256 verifiers (RFC 5802, RFC 7677), from which nobody can log in.

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
        client_key = bytes(left ^ right for left, right in zip(signature, proof.ljust(len(signature)), strict=False))
        proven = hmac.compare_digest(hashlib.sha256(client_key).digest(), self.stored_key)
        return proven and len(proof) == len(signature)

    def sign_message(self, message: bytes) -> bytes:
        """By which the client sees that the server, too, knows of the password."""
        return _hmac_sha256(self.server_key, message)


def make_verifier(password: str, salt: bytes, iterations: int = ITERATIONS) -> Verifier:
    salted = hashlib.pbkdf2_hmac("sha256", saslprep(password).encode(), salt, iterations)
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
        salt, stored, server = (base64.b64decode(part, validate=True) for part in match.groups()[1:])
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
        " " if stringprep.in_table_c12(character) else character for character in password if not stringprep.in_table_b1(character)
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


def _hmac_sha256(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, "sha256").digest()


def _base64_text(octets: bytes) -> str:
    return base64.b64encode(octets).decode("ascii")
