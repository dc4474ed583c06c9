"""The client's side of SCRAM: RFC 7677's example, our own server's side, and servers that lie."""

from __future__ import annotations

import base64

import pytest

from dpsql.base import scram
from dpsql.base.scram import (
    SCRAM_SHA_256,
    SCRAM_SHA_256_PLUS,
    ClientChannelBinding,
    ScramClient,
    ServerNotProven,
    make_verifier,
)

PASSWORD = "pencil"
END_POINT = b"\x01" * 32


def test_the_example_of_the_rfc() -> None:
    """RFC 7677, 3; its client names the user in the first message too, as ours need not."""
    login = ScramClient(PASSWORD, ClientChannelBinding(), SCRAM_SHA_256, "rOprNGfwEbeRWgbNEkqO")
    login._bare = "n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert login.first_message == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    final = login.answer_challenge(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    assert final == f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    login.check_server_signature(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def exchange(
    password: str, client: ClientChannelBinding, there: scram.ChannelBinding, mechanism: str | None = None
) -> None:
    chosen = mechanism or client.choose_mechanism(there.mechanisms)
    login = ScramClient(password, client, chosen, "clientnonce")
    verifier = make_verifier(PASSWORD, b"salt salt salt")
    challenge = scram.create_challenge(chosen, login.first_message.decode(), there, verifier, True, "servernonce")
    login.check_server_signature(
        challenge.finish_login(login.answer_challenge(challenge.text.encode()).decode()).encode()
    )


@pytest.mark.parametrize(
    ("client", "there"),
    [
        (ClientChannelBinding(), scram.ChannelBinding()),
        (ClientChannelBinding(END_POINT), scram.ChannelBinding(END_POINT)),
        (ClientChannelBinding(END_POINT, "require"), scram.ChannelBinding(END_POINT)),
        (ClientChannelBinding(END_POINT, "disable"), scram.ChannelBinding(END_POINT)),
        (ClientChannelBinding(END_POINT), scram.ChannelBinding()),  # TLS ends before the server
    ],
)
def test_with_our_own_server(client: ClientChannelBinding, there: scram.ChannelBinding) -> None:
    exchange(PASSWORD, client, there)
    with pytest.raises(scram.WrongPassword):
        exchange("Pencil", client, there)


def test_another_certificate_is_found_out() -> None:
    """Someone between has a TLS of his own on either side."""
    with pytest.raises(scram.ScramMessageError):
        exchange(PASSWORD, ClientChannelBinding(b"\x02" * 32), scram.ChannelBinding(END_POINT))


def test_a_binding_that_was_taken_out_of_the_list_is_found_out() -> None:
    with pytest.raises(scram.ScramMessageError, match="negotiation"):
        exchange(PASSWORD, ClientChannelBinding(END_POINT), scram.ChannelBinding(END_POINT), SCRAM_SHA_256)


def test_what_is_chosen() -> None:
    assert ClientChannelBinding(END_POINT).choose_mechanism((SCRAM_SHA_256_PLUS, SCRAM_SHA_256)) == SCRAM_SHA_256_PLUS
    assert (
        ClientChannelBinding(END_POINT, "disable").choose_mechanism((SCRAM_SHA_256_PLUS, SCRAM_SHA_256))
        == SCRAM_SHA_256
    )
    assert ClientChannelBinding().choose_mechanism((SCRAM_SHA_256,)) == SCRAM_SHA_256
    for channel, offered in (
        (ClientChannelBinding(END_POINT, "require"), (SCRAM_SHA_256,)),
        (ClientChannelBinding(None, "require"), (SCRAM_SHA_256_PLUS, SCRAM_SHA_256)),
        (ClientChannelBinding(), ("OAUTHBEARER",)),
        (ClientChannelBinding(), (SCRAM_SHA_256_PLUS,)),
    ):
        with pytest.raises(ServerNotProven):
            channel.choose_mechanism(offered)


def challenged() -> ScramClient:
    login = ScramClient(PASSWORD, ClientChannelBinding(), SCRAM_SHA_256, "abc")
    login.answer_challenge(b"r=abcdef,s=c2FsdA==,i=4096")
    return login


@pytest.mark.parametrize(
    "last",
    [b"v=" + base64.b64encode(b"\0" * 32), b"v=", b"", b"e=other-error", b"v=!!", b"v=\xff", b"x=1"],
)
def test_a_server_that_does_not_know_the_password_is_found_out(last: bytes) -> None:
    with pytest.raises(ServerNotProven):
        challenged().check_server_signature(last)


def test_a_server_that_signs_before_it_challenged_is_found_out() -> None:
    with pytest.raises(ServerNotProven):
        ScramClient(PASSWORD, ClientChannelBinding(), SCRAM_SHA_256, "abc").check_server_signature(
            b"v=" + base64.b64encode(b"\0" * 32)
        )


@pytest.mark.parametrize(
    "challenge",
    [
        b"r=xyz,s=c2FsdA==,i=4096",  # not our nonce
        b"r=abc,s=c2FsdA==,i=4096",  # nothing of the server's
        b"r=abcd,s=c2FsdA==,i=0", b"r=abcd,s=c2FsdA==,i=-1", b"r=abcd,s=c2FsdA==,i=99999999999",
        b"r=abcd,s=c2FsdA==,i=20000000", b"r=abcd,s=,i=4096", b"r=abcd,s=?,i=4096", b"", b"\xff",
        "r=abcd,s=c2FsdA==,i=٤".encode(),
    ],
)  # fmt: skip
def test_a_challenge_that_is_none(challenge: bytes) -> None:
    with pytest.raises(ServerNotProven):
        ScramClient(PASSWORD, ClientChannelBinding(), SCRAM_SHA_256, "abc").answer_challenge(challenge)


def test_the_password_is_never_sent() -> None:
    login = ScramClient("sehr geheim", ClientChannelBinding(), SCRAM_SHA_256, "abc")
    sent = login.first_message + login.answer_challenge(b"r=abcd,s=c2FsdA==,i=4096")
    assert b"sehr geheim" not in sent and base64.b64encode(b"sehr geheim")[:10] not in sent
