"""SCRAM on the server's side, held against the RFC's example, a client of our own, and what an attacker may send."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from dataclasses import replace

import pytest

from dpsql.base.scram import (
    SCRAM_SHA_256,
    SCRAM_SHA_256_PLUS,
    ChannelBinding,
    ScramChallenge,
    ScramMessageError,
    Verifier,
    WrongPassword,
    create_challenge,
    make_verifier,
    read_verifier,
)
from dpsql.interfaces.pgwire.server.login import generate_cancel_key, generate_login_nonce, generate_process_id

# RFC 7677, 3.
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT, SERVER = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FINAL = f"c=biws,r={CLIENT}{SERVER},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
PENCIL = make_verifier("pencil", SALT)
NO_TLS, TLS = ChannelBinding(), ChannelBinding(b"\x01" * 32)


def begun(
    first: str = f"n,,n=user,r={CLIENT}", mechanism: str = SCRAM_SHA_256, channel: ChannelBinding = NO_TLS
) -> ScramChallenge:
    return create_challenge(mechanism, first, channel, PENCIL, True, SERVER)


def final_for(one: ScramChallenge, password: str, binding: bytes | None = None, nonce: str | None = None) -> str:
    """What a client that follows the RFC sends."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), one.verifier.salt, one.verifier.iterations)
    key = hmac.digest(salted, b"Client Key", "sha256")
    bound = base64.b64encode(one.binding if binding is None else binding).decode()
    without = f"c={bound},r={one.nonce if nonce is None else nonce}"
    signature = hmac.digest(hashlib.sha256(key).digest(), f"{one.bare},{one.text},{without}".encode(), "sha256")
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    return f"{without},p={base64.b64encode(proof).decode()}"


def test_the_exchange_of_the_rfc() -> None:
    one = begun()
    assert one.text == f"r={CLIENT}{SERVER},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert one.finish_login(FINAL) == SIGNATURE


def test_a_verifier_is_read_as_it_was_written() -> None:
    assert read_verifier(str(PENCIL)) == PENCIL and "pencil" not in repr(PENCIL)
    lower = str(PENCIL).replace("SCRAM-SHA-256", "scram-sha-256")
    assert read_verifier(lower) == PENCIL
    assert repr(PENCIL.stored_key) not in repr(PENCIL) and repr(PENCIL.server_key) not in repr(PENCIL)


@pytest.mark.parametrize(
    "text",
    ["", "md5abc", "SCRAM-SHA-256$0:eA==$eA==:eA==", "SCRAM-SHA-256$4096:!$!:!", f"{PENCIL}=", f"x{PENCIL}"],
)
def test_what_is_no_verifier_is_none(text: str) -> None:
    assert read_verifier(text) is None


@pytest.mark.parametrize("password", ["Pencil", "pencil ", "", "pencil\n"])
def test_another_password_is_wrong(password: str) -> None:
    one = begun()
    with pytest.raises(WrongPassword):
        one.finish_login(final_for(one, password))


def test_every_bit_of_a_proof_counts() -> None:
    without, proof = FINAL.rsplit("p=", 1)
    right = base64.b64decode(proof)
    for place in range(len(right) * 8):
        wrong = bytearray(right)
        wrong[place // 8] ^= 1 << place % 8
        with pytest.raises(WrongPassword):
            begun().finish_login(f"{without}p={base64.b64encode(bytes(wrong)).decode()}")


def test_every_byte_of_the_stored_key_counts() -> None:
    """The right key for a verifier that differs in one byte, proven with that verifier, is a wrong one."""
    for place in range(32):
        stored = bytearray(PENCIL.stored_key)
        stored[place] ^= 1
        other = replace(PENCIL, stored_key=bytes(stored))
        one = create_challenge(SCRAM_SHA_256, f"n,,n=user,r={CLIENT}", NO_TLS, other, True, SERVER)
        salted = hashlib.pbkdf2_hmac("sha256", b"pencil", other.salt, other.iterations)
        key, without = hmac.digest(salted, b"Client Key", "sha256"), f"c=biws,r={one.nonce}"
        signed = hmac.digest(bytes(stored), f"{one.bare},{one.text},{without}".encode(), "sha256")
        proof = bytes(a ^ b for a, b in zip(key, signed, strict=True))
        with pytest.raises(WrongPassword):
            one.finish_login(f"{without},p={base64.b64encode(proof).decode()}")


def test_no_two_nonces_and_keys_are_the_same() -> None:
    assert (
        len({generate_login_nonce() for _ in range(100)}) == 100 and len(base64.b64decode(generate_login_nonce())) >= 18
    )
    assert (
        len({generate_cancel_key() for _ in range(100)}) > 95 and len({generate_process_id() for _ in range(100)}) > 95
    )


@pytest.mark.parametrize("size", [0, 1, 31, 33, 64])
def test_a_proof_of_another_length_is_wrong(size: int) -> None:
    without, proof = FINAL.rsplit("p=", 1)
    given = (base64.b64decode(proof) * 2)[:size]
    with pytest.raises(WrongPassword):
        begun().finish_login(f"{without}p={base64.b64encode(given).decode()}")


def test_an_unknown_name_never_logs_in_even_with_a_right_proof() -> None:
    one = create_challenge(SCRAM_SHA_256, f"n,,n=user,r={CLIENT}", NO_TLS, PENCIL, False, SERVER)
    with pytest.raises(WrongPassword):
        one.finish_login(FINAL)


def test_stored_keys_of_zeros_admit_no_login() -> None:
    made_up = Verifier(4096, SALT, bytes(32), bytes(32))
    one = create_challenge(SCRAM_SHA_256, f"n,,n=user,r={CLIENT}", NO_TLS, made_up, True, SERVER)
    with pytest.raises(WrongPassword):
        one.finish_login(FINAL)


# --- channel binding -------------------------------------------------------------------------------------------------


def test_what_is_offered() -> None:
    assert NO_TLS.mechanisms == (SCRAM_SHA_256,) and TLS.mechanisms == (SCRAM_SHA_256_PLUS, SCRAM_SHA_256)


def test_a_bound_login_is_to_this_certificate() -> None:
    first = f"p=tls-server-end-point,,n=,r={CLIENT}"
    one = begun(first, SCRAM_SHA_256_PLUS, TLS)
    assert one.finish_login(final_for(one, "pencil")).startswith("v=")
    assert one.binding == b"p=tls-server-end-point,," + b"\x01" * 32
    with pytest.raises(ScramMessageError, match="channel binding"):
        one.finish_login(final_for(one, "pencil", b"p=tls-server-end-point,," + b"\x02" * 32))


def test_a_client_that_could_bind_and_was_not_offered_it_reports_a_man_in_the_middle() -> None:
    with pytest.raises(ScramMessageError, match="negotiation"):
        begun(f"y,,n=,r={CLIENT}", SCRAM_SHA_256, TLS)
    one = begun(f"y,,n=,r={CLIENT}", SCRAM_SHA_256, NO_TLS)
    assert one.finish_login(final_for(one, "pencil")).startswith("v=")


def test_a_client_that_cannot_bind_is_let_in_with_tls() -> None:
    one = begun(f"n,,n=,r={CLIENT}", SCRAM_SHA_256, TLS)
    assert one.finish_login(final_for(one, "pencil")).startswith("v=")


def test_the_flag_is_compared_with_what_was_sent_first() -> None:
    """Someone between who changes `y` to `n` in the first message changes what the proof is about."""
    one = begun(f"n,,n=,r={CLIENT}", SCRAM_SHA_256, TLS)
    with pytest.raises(ScramMessageError, match="channel binding"):
        one.finish_login(final_for(one, "pencil", b"y,,"))


@pytest.mark.parametrize(
    ("mechanism", "first"),
    [
        (SCRAM_SHA_256_PLUS, "n,,n=,r=abc"),
        (SCRAM_SHA_256_PLUS, "y,,n=,r=abc"),
        (SCRAM_SHA_256_PLUS, "p=tls-unique,,n=,r=abc"),
        (SCRAM_SHA_256_PLUS, "p=,,n=,r=abc"),
        (SCRAM_SHA_256, "p=tls-server-end-point,,n=,r=abc"),
        (SCRAM_SHA_256, "x,,n=,r=abc"),
        (SCRAM_SHA_256, "n,a=root,n=,r=abc"),
        (SCRAM_SHA_256, "n,,m=ext,n=,r=abc"),
        (SCRAM_SHA_256, "n,,n=,r="),
        (SCRAM_SHA_256, "n,,r=abc"),
        (SCRAM_SHA_256, "n,"),
        (SCRAM_SHA_256, ""),
        (SCRAM_SHA_256, "n,,n=,r=\x01"),
        (SCRAM_SHA_256, "n,,n=,r=ä"),
        (SCRAM_SHA_256, "n,,n=,r=" + "x" * 5000),
    ],
)
def test_first_messages_that_are_refused(mechanism: str, first: str) -> None:
    with pytest.raises(ScramMessageError):
        begun(first, mechanism, TLS)


def test_the_nonce_is_this_exchanges() -> None:
    one = begun()
    with pytest.raises(ScramMessageError, match="nonce"):
        one.finish_login(final_for(one, "pencil", nonce=CLIENT))


@pytest.mark.parametrize("final", ["", "p=x", "c=biws,p=eA==", "r=a,c=biws,p=eA==", f"c=biws,r={CLIENT}{SERVER},p=%%%"])
def test_last_messages_that_are_refused(final: str) -> None:
    with pytest.raises(ScramMessageError):
        begun().finish_login(final)


def test_random_text_is_a_wrong_message_or_password_and_nothing_else() -> None:
    for number in range(300):
        text = os.urandom(number % 60).decode("latin-1")
        for make in (lambda text=text: begun(text), lambda text=text: begun().finish_login(text)):
            with pytest.raises((ScramMessageError, WrongPassword)):
                make()
