"""The client's side of SCRAM: RFC 7677's example, our own server's side, and servers that lie."""

from __future__ import annotations

import base64

import pytest

from dpsql.passwords import make_verifier
from dpsql.pgwire import scram as server
from dpsql.remote.scram import BOUND, PLAIN, Channel, Login, NotProven

PASSWORD = "pencil"
END_POINT = b"\x01" * 32


def test_the_example_of_the_rfc() -> None:
    """RFC 7677, 3; its client names the user in the first message too, as ours need not."""
    login = Login(PASSWORD, Channel(), PLAIN, "rOprNGfwEbeRWgbNEkqO")
    login._bare = "n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert login.first == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    final = login.final(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    assert final == f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    login.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def exchange(password: str, client: Channel, there: server.Channel, mechanism: str | None = None) -> None:
    chosen = mechanism or client.choose(there.mechanisms)
    login = Login(password, client, chosen, "clientnonce")
    verifier = make_verifier(PASSWORD, b"salt salt salt")
    challenge = server.challenge(chosen, login.first.decode(), there, verifier, True, "servernonce")
    login.check(challenge.finish(login.final(challenge.text.encode()).decode()).encode())


@pytest.mark.parametrize(
    ("client", "there"),
    [
        (Channel(), server.Channel()),
        (Channel(END_POINT), server.Channel(END_POINT)),
        (Channel(END_POINT, "require"), server.Channel(END_POINT)),
        (Channel(END_POINT, "disable"), server.Channel(END_POINT)),
        (Channel(END_POINT), server.Channel()),  # TLS ends before the server
    ],
)
def test_with_our_own_server(client: Channel, there: server.Channel) -> None:
    exchange(PASSWORD, client, there)
    with pytest.raises(server.WrongPassword):
        exchange("Pencil", client, there)


def test_another_certificate_is_found_out() -> None:
    """Someone between has a TLS of his own on either side."""
    with pytest.raises(server.WrongMessage):
        exchange(PASSWORD, Channel(b"\x02" * 32), server.Channel(END_POINT))


def test_a_binding_that_was_taken_out_of_the_list_is_found_out() -> None:
    with pytest.raises(server.WrongMessage, match="negotiation"):
        exchange(PASSWORD, Channel(END_POINT), server.Channel(END_POINT), PLAIN)


def test_what_is_chosen() -> None:
    assert Channel(END_POINT).choose((BOUND, PLAIN)) == BOUND
    assert Channel(END_POINT, "disable").choose((BOUND, PLAIN)) == PLAIN
    assert Channel().choose((PLAIN,)) == PLAIN
    for channel, offered in (
        (Channel(END_POINT, "require"), (PLAIN,)),
        (Channel(None, "require"), (BOUND, PLAIN)),
        (Channel(), ("OAUTHBEARER",)),
        (Channel(), (BOUND,)),
    ):
        with pytest.raises(NotProven):
            channel.choose(offered)


def challenged() -> Login:
    login = Login(PASSWORD, Channel(), PLAIN, "abc")
    login.final(b"r=abcdef,s=c2FsdA==,i=4096")
    return login


@pytest.mark.parametrize(
    "last",
    [b"v=" + base64.b64encode(b"\0" * 32), b"v=", b"", b"e=other-error", b"v=!!", b"v=\xff", b"x=1"],
)
def test_a_server_that_does_not_know_the_password_is_found_out(last: bytes) -> None:
    with pytest.raises(NotProven):
        challenged().check(last)


def test_a_server_that_signs_before_it_challenged_is_found_out() -> None:
    with pytest.raises(NotProven):
        Login(PASSWORD, Channel(), PLAIN, "abc").check(b"v=" + base64.b64encode(b"\0" * 32))


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
    with pytest.raises(NotProven):
        Login(PASSWORD, Channel(), PLAIN, "abc").final(challenge)


def test_the_password_is_never_sent() -> None:
    login = Login("sehr geheim", Channel(), PLAIN, "abc")
    sent = login.first + login.final(b"r=abcd,s=c2FsdA==,i=4096")
    assert b"sehr geheim" not in sent and base64.b64encode(b"sehr geheim")[:10] not in sent
