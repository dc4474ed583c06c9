"""Passwords as PostgreSQL stores them: SCRAM-SHA-256 verifiers (RFC 5802, RFC 7677), from which nobody can log in.

Law: a password is in no text, no file and no log; what is kept tells only whether someone knows it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import stringprep
import unicodedata

ITERATIONS = 4096
"""As PostgreSQL's scram_iterations: clients work it out at each login."""
SALT = 16
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


def verifier(password: str, salt: bytes, iterations: int = ITERATIONS) -> str:
    """`SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`. The salt is random, and new for each password."""
    salted = hashlib.pbkdf2_hmac("sha256", prepared(password).encode(), salt, iterations)
    stored = hashlib.sha256(_keyed(salted, b"Client Key")).digest()
    return f"SCRAM-SHA-256${iterations}:{_text(salt)}${_text(stored)}:{_text(_keyed(salted, b'Server Key'))}"


def prepared(password: str) -> str:
    """SASLprep (RFC 4013); what it forbids is taken as it stands, as PostgreSQL does.

    >>> prepared("I\\u00adX"), prepared("\\u00aa"), prepared("\\u2168"), prepared("\\u0007")
    ('IX', 'a', 'IX', '\\x07')
    """
    mapped = "".join(
        " " if stringprep.in_table_c12(one) else one for one in password if not stringprep.in_table_b1(one)
    )
    normal = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    return normal if normal and _is_allowed(normal) else password


def _is_allowed(text: str) -> bool:
    if any(prohibited(one) for one in text for prohibited in _PROHIBITED):
        return False
    if not any(stringprep.in_table_d1(one) for one in text):
        return True
    # Of text from right to left, all is, and it begins and ends with such.
    ends = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    return ends and not any(stringprep.in_table_d2(one) for one in text)


def _keyed(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, "sha256").digest()


def _text(octets: bytes) -> str:
    return base64.b64encode(octets).decode("ascii")
