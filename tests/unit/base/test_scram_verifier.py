"""SCRAM-SHA-256 verifiers: by the RFC's example, and by logging in to a real PostgreSQL with one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import time

import psycopg
import pytest

from dpsql.base.scram import make_verifier_text, saslprep
from dpsql.schema.keys import VERIFIER
from tests.support.postgres import Server

# RFC 7677, 3: an exchange of the user "user" with the password "pencil".
SALT = "W22ZaJ0SNY7soEsUEjb6gQ=="
MESSAGE = (
    "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,"
    "i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
)
PROOF, SIGNATURE = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_the_exchange_of_the_rfc_is_the_verifiers() -> None:
    kept = make_verifier_text("pencil", base64.b64decode(SALT))
    found = re.fullmatch(r"SCRAM-SHA-256\$4096:(.*)\$(.*):(.*)", kept)
    assert found is not None and found[1] == SALT
    stored, server = base64.b64decode(found[2]), base64.b64decode(found[3])
    signed = hmac.new(stored, MESSAGE.encode(), "sha256").digest()
    client = bytes(a ^ b for a, b in zip(base64.b64decode(PROOF), signed, strict=True))
    assert hashlib.sha256(client).digest() == stored, "the client proves that it knows the password"
    assert base64.b64encode(hmac.new(server, MESSAGE.encode(), "sha256").digest()).decode() == SIGNATURE


def test_the_schema_takes_it_and_the_password_is_not_in_it() -> None:
    kept = make_verifier_text("correct horse", b"0123456789abcdef")
    assert re.fullmatch(VERIFIER, kept) and "horse" not in kept
    assert (
        kept
        != make_verifier_text("correct horse", b"0123456789abcdeg")
        != make_verifier_text("correct hors", b"0123456789abcdeg")
    )


# RFC 4013, 3, and what PostgreSQL does where SASLprep has no answer: the password as it stands.
@pytest.mark.parametrize(
    ("password", "is_"),
    [("I\u00adX", "IX"), ("user", "user"), ("USER", "USER"), ("\u00aa", "a"), ("\u2168", "IX"), ("\u0007", "\u0007"),
     ("\u0627\u0031", "\u0627\u0031"), ("a\u00a0b", "a b"), ("\u1e9b\u0323", "\u1e69"),
     ("\u0627a\u0627", "\u0627a\u0627"), ("\u00ad", "\u00ad"), ("\U0001f511", "\U0001f511")],
)  # fmt: skip
def test_saslprep(password: str, is_: str) -> None:
    assert saslprep(password) == is_


# RFC 3454, 6: text with letters from right to left begins and ends with one, and has none from left to right. What
# keeps to it loses its soft hyphen (U+00AD), and U+00AA becomes "a"; what does not stays as it is.
RIGHT_TO_LEFT = {
    "\u0627\u00ad1\u0628": "\u06271\u0628",
    "\u0627\u00ad\u0628": "\u0627\u0628",
    "\u0627\u00ad": "\u0627",
    "x\u00ad1": "x1",
    "\u0627\u00ad1": None,
    "1\u00ad\u0627": None,
    "1\u00ad\u06272": None,
    "\u0627\u00aa\u0627": None,
    "\u0627\u00aa": None,
    "\u00ad\u0627x\u0627": None,
}


@pytest.mark.parametrize("password", RIGHT_TO_LEFT)
def test_saslprep_of_text_from_right_to_left(password: str) -> None:
    assert saslprep(password) == (RIGHT_TO_LEFT[password] or password)


ROLE = "asked_for_a_password"


@pytest.fixture(scope="module")
def asking(postgres: Server) -> Server:
    """A server that trusts everyone, but one role, whom it asks by SCRAM."""
    rules = postgres.folder / "data" / "pg_hba.conf"
    text = rules.read_text()
    with rules.open("w") as file:  # in place: it belongs to whom the server runs as
        file.write(f"local all {ROLE} scram-sha-256\n{text}")
    postgres.execute("SELECT pg_reload_conf()")
    end = time.monotonic() + 10
    while time.monotonic() < end:
        with psycopg.connect(postgres.database()) as db:
            if db.execute(f"SELECT 1 FROM pg_hba_file_rules WHERE user_name = '{{{ROLE}}}'").fetchone():
                return postgres
        time.sleep(0.05)
    raise AssertionError("the server did not read its rules again")


@pytest.mark.parametrize(
    "password",
    ["pencil", "with space", "I\u00adX", "\u2168\u00aa", "schlüssel", "\U0001f511", "quote'\"\\$%", "x" * 200,
     *RIGHT_TO_LEFT],
)  # fmt: skip
def test_a_real_server_accepts_the_password_of_a_verifier(asking: Server, password: str) -> None:
    kept = make_verifier_text(password, b"\x00\xff" * 8)
    asking.execute(f"DROP ROLE IF EXISTS {ROLE}")
    asking.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{kept}'")
    with psycopg.connect(asking.database()) as db:
        row = db.execute(f"SELECT rolpassword FROM pg_authid WHERE rolname = '{ROLE}'").fetchone()
    assert row == (kept,), "PostgreSQL sees a verifier, not a password to make one of"
    address = asking.database().replace("postgres@", f"{ROLE}@")
    with psycopg.connect(address, password=password) as db:
        assert db.execute("SELECT current_user").fetchone() == (ROLE,)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(address, password=password + "x")
