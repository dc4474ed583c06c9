"""Logging in, without a socket: what a server says, as replies; what the client sends, as bytes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import dpsql
from dpsql.base import scram
from dpsql.base.scram import ClientChannelBinding, ScramClient, ServerNotProven, make_verifier
from dpsql.errors import AccessDenied
from dpsql.interfaces.pgwire.protocol import backend, client_codec, extension
from dpsql.interfaces.pgwire.protocol.client_codec import (
    Authentication,
    BackendReply,
    ErrorResponse,
    ParameterStatus,
    ReadyForQuery,
)
from dpsql.interfaces.pgwire.protocol.frontend import FrontendDecoder
from dpsql.interfaces.remote.login import LoginResult, log_in_to_server
from dpsql.interfaces.remote.url import ServerAddress

ADDRESS = ServerAddress("h", 5433, "clinic", "ana", "pencil", settings={"epsilon": "0.5", "user": "eve"})
HELLO = ParameterStatus(
    extension.SERVER_STATUS, extension.encode_server_info(extension.ServerInfo("1.0", "clinic", "ana"))
)
READY = (HELLO, client_codec.BackendKeyData(7, b"keys"), ReadyForQuery("I"))


def told(script: Sequence[BackendReply], address: ServerAddress = ADDRESS) -> tuple[LoginResult, list[bytes]]:
    """What becomes of a login whose server says this, whatever it hears."""
    sent: list[bytes] = []
    said = iter(script)
    return log_in_to_server(address, ClientChannelBinding(), sent.append, lambda: next(said)), sent


class Real:
    """A server's side of SCRAM, as our own has it."""

    def __init__(
        self, password: str = "pencil", lie: bytes | None = None, behind: Sequence[BackendReply] = READY
    ) -> None:
        self.sent: list[bytes] = []
        self._password, self._lie, self._behind = password, lie, iter(behind)
        self._steps = iter((self._offer, self._challenge, self._final, lambda: Authentication(0)))

    def receive(self) -> BackendReply:
        step = next(self._steps, None)
        return next(self._behind) if step is None else step()

    def _offer(self) -> BackendReply:
        return Authentication(10, b"SCRAM-SHA-256\0\0")

    def _body(self) -> bytes:
        protocol = FrontendDecoder()
        protocol.receive_data(self.sent[-1])
        message = protocol.next_message()
        assert message is not None
        return message.body

    def _challenge(self) -> BackendReply:
        _, _, first = self._body().partition(b"\0")
        verifier = make_verifier(self._password, b"salt salt")
        self._made = scram.create_challenge(
            "SCRAM-SHA-256", first[4:].decode(), scram.ChannelBinding(), verifier, True, "more"
        )
        return Authentication(11, self._made.text.encode())

    def _final(self) -> BackendReply:
        last = self._made.finish_login(self._body().decode()).encode()
        return Authentication(12, self._lie or last)


def log_in(real: Real) -> LoginResult:
    return log_in_to_server(ADDRESS, ClientChannelBinding(), real.sent.append, real.receive)


def test_a_login() -> None:
    real = Real()
    login = log_in(real)
    assert login == LoginResult(extension.ServerInfo("1.0", "clinic", "ana"), 7, b"keys")
    assert b"pencil" not in b"".join(real.sent)


def test_what_the_client_says_first() -> None:
    real = Real()
    log_in(real)
    protocol = FrontendDecoder()
    protocol.receive_data(real.sent[0])
    message = protocol.next_startup()
    assert message.parameters == {
        "epsilon": "0.5", "user": "ana", "database": "clinic", "client_encoding": "UTF8", "_dpsql.client": "on",
    }  # fmt: skip


def test_a_server_that_lies_about_its_signature() -> None:
    with pytest.raises(ServerNotProven):
        log_in(Real(lie=b"v=AAAA"))


def test_a_server_that_needs_no_password() -> None:
    """It would be told all that is asked, and has proven nothing."""
    with pytest.raises(ServerNotProven, match="did not prove"):
        told([Authentication(0), *READY])


def test_a_server_that_ends_the_login_early() -> None:
    challenge = Authentication(11, b"r=x,s=c2FsdA==,i=1")
    for script in (
        [Authentication(10, b"SCRAM-SHA-256\0\0"), Authentication(0), *READY],
        [Authentication(10, b"SCRAM-SHA-256\0\0"), challenge],
        [ReadyForQuery("I")],
        [Authentication(12, b"v=AAAA")],
    ):
        with pytest.raises(ServerNotProven):
            told(script)


def test_one_challenge_is_answered() -> None:
    """Each is work, and a proof to guess the password by; none is answered after the server was proven either."""
    for again in ("_challenge", "_final"):
        real = Real()
        steps = [real._offer, real._challenge, *([real._final] if again == "_final" else [])]
        real._steps = iter((*steps, lambda real=real: Authentication(11, real._made.text.encode())))
        with pytest.raises(ServerNotProven, match="second"):
            log_in(real)
        assert len(real.sent) == 3


@pytest.mark.parametrize("iterations", ["0", "-1", "1000001", "99999999", "1e3", "\u0661"])
def test_work_that_no_server_asks_for(iterations: str) -> None:
    login = ScramClient("pencil", ClientChannelBinding(), "SCRAM-SHA-256", "nonce")
    with pytest.raises(ServerNotProven):
        login.answer_challenge(f"r=nonce+,s=c2FsdA==,i={iterations}".encode())


@pytest.mark.parametrize("code", [3, 5, 7, 9])
def test_the_password_itself_is_never_sent(code: int) -> None:
    sent: list[bytes] = []
    with pytest.raises(ServerNotProven, match="itself"):
        log_in_to_server(ADDRESS, ClientChannelBinding(), sent.append, lambda: Authentication(code, b"salt"))
    assert len(sent) == 1 and b"pencil" not in sent[0]


def test_a_wrong_password() -> None:
    refused = ErrorResponse({"C": "28P01", "M": 'password authentication failed for user "ana"'})
    with pytest.raises(AccessDenied, match="password authentication failed") as caught:
        told([refused])
    assert caught.value.sqlstate == "28P01"


@pytest.mark.parametrize(
    "behind",
    [
        (ParameterStatus("server_version", "16.2"), ReadyForQuery("I")),
        (ParameterStatus(extension.SERVER_STATUS, "{}"), ParameterStatus("server_version", "16.2"), ReadyForQuery("I")),
    ],
)
def test_a_server_that_is_none_of_ours(behind: Sequence[BackendReply]) -> None:
    with pytest.raises(dpsql.OperationalError, match="no dpsql server at h:5433") as caught:
        log_in(Real(behind=behind))
    assert caught.value.detail == "It is PostgreSQL 16.2."


def test_what_is_wrong_after_the_login() -> None:
    wrong = ErrorResponse({"C": "22023", "M": "epsilon must be above 0", "H": "Write 0.5."})
    with pytest.raises(dpsql.ProgrammingError, match="above 0"):
        log_in(Real(behind=(wrong,)))


def test_replies_of_our_own_server_are_read() -> None:
    found = client_codec.BackendDecoder()
    found.receive_data(backend.parameter_status(extension.SERVER_STATUS, HELLO.value))
    assert found.next_reply() == HELLO
