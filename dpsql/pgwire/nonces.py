"""What a server draws at random and no noise: the nonces of logins, and the keys by which a statement is canceled."""

from __future__ import annotations

import base64
import hmac
import secrets

NONCE_BYTES = 18
"""Bytes of a login's nonce, as PostgreSQL has."""


def generate_login_nonce() -> str:
    """Printable, and without the comma that divides SCRAM's messages."""
    return base64.b64encode(secrets.token_bytes(NONCE_BYTES)).decode("ascii")


def generate_process_id() -> int:
    """Of a connection, in place of a process: a positive 31-bit number that tells nothing of how many there were."""
    return secrets.randbelow((1 << 31) - 1) + 1


def generate_cancel_key() -> bytes:
    return secrets.token_bytes(4)  # protocol 3.0 has no more room


def are_equal(left: bytes, right: bytes) -> bool:
    """In a time that does not tell how far they agree."""
    return hmac.compare_digest(left, right)
