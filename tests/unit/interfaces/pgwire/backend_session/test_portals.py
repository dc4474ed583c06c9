"""What a client holds by name ends when it must, and COPY writes lines that are read back as they were."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpsql.errors import OperationalError
from dpsql.interfaces.pgwire.backend_session import portals
from dpsql.interfaces.pgwire.backend_session.copy import make_line_writer
from dpsql.interfaces.pgwire.backend_session.portals import Portal, PortalStore, WireStatement
from dpsql.interfaces.pgwire.backend_session.results import ResultColumns
from dpsql.interfaces.pgwire.protocol import client_codec
from dpsql.interfaces.pgwire.protocol.frontend import Bind, Close, Execute, FrontendMessage, Parse, SimpleQuery, Sync
from dpsql.interfaces.pgwire.server.monitored_session import ClientSession
from dpsql.session.session import OutputColumn
from dpsql.types import parse_type
from tests.support.shop import open_shop


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[ClientSession]:
    session, reference = open_shop(tmp_path)
    yield ClientSession(session, lambda told: None, lambda bug: None, structured=False)
    session.close()
    reference.close()


def say(talk: ClientSession, *messages: FrontendMessage) -> list[client_codec.BackendReply]:
    found = client_codec.BackendDecoder()
    for message in messages:
        for data in talk.handle_message(message):
            found.receive_data(data)
    return list(iter(found.next_reply, None))


def states(replies: list[client_codec.BackendReply]) -> list[str]:
    return [one.fields["C"] for one in replies if isinstance(one, client_codec.ErrorResponse)]


def copied(replies: list[client_codec.BackendReply]) -> int:
    return sum(isinstance(one, client_codec.CopyOutData) for one in replies)


BOUND = (SimpleQuery("BEGIN"), Parse("s", "SELECT 1"), Bind("p", "s"), Sync())


def test_a_copy_runs_once(talk: ClientSession) -> None:
    asked = (Parse("", "COPY (SELECT 1) TO STDOUT"), Bind("", ""), Execute(""), Execute(""), Sync())
    assert copied(say(talk, *asked)) == 1


@pytest.mark.parametrize(
    "between",
    [
        (Close("S", "s"), Sync()),
        (SimpleQuery("SELECT nope"), SimpleQuery("ROLLBACK"), SimpleQuery("BEGIN")),
        (SimpleQuery("COMMIT"), SimpleQuery("DISCARD ALL"), SimpleQuery("BEGIN")),
    ],
)
def test_portals_end_with_their_statement_and_their_transaction(
    talk: ClientSession, between: tuple[FrontendMessage, ...]
) -> None:
    say(talk, *BOUND, *between)
    assert states(say(talk, Execute("p"), Sync())) == ["34000"]


def test_portals_last_as_long_as_their_transaction(talk: ClientSession) -> None:
    assert states(say(talk, *BOUND, Execute("p"), Sync())) == []


def test_a_transaction_that_failed_does_not_begin_again(talk: ClientSession) -> None:
    for begin in ("BEGIN", "START TRANSACTION"):
        assert states(
            say(talk, SimpleQuery("BEGIN"), SimpleQuery("SELECT nope"), SimpleQuery(begin), SimpleQuery("ROLLBACK"))
        ) == [
            "42703",
            "25P02",
        ]


def test_portals_are_counted_with_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portals, "MAX_STORED_BYTES", 1_000)
    one, statement = PortalStore(), WireStatement("SELECT 1", 0)
    for number in range(2):
        one.add_portal(str(number), Portal(statement, (), ResultColumns((), (), (), ()), 400))
    with pytest.raises(OperationalError, match="hold too much"):
        one.add_portal("2", Portal(statement, (), ResultColumns((), (), (), ()), 400))


@dataclass(frozen=True)
class Form:
    csv: bool = False
    header: bool = False
    delimiter: str = "\t"
    null: str = "\\N"
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[str, ...] = ()


def line(form: Form, *values: str | None) -> str:
    return make_line_writer([OutputColumn("c", parse_type("text"), "VARCHAR")] * len(values), form)(values)


def test_texts_that_end_lines_are_escaped() -> None:
    assert line(Form(), "a\vb\bc\fd\ne\rf\tg\\h") == r"a\vb\bc\fd\ne\rf\tg\\h"


def test_texts_that_would_be_read_otherwise_are_quoted() -> None:
    csv = Form(csv=True, delimiter=",", null="nil")
    assert line(csv, None, "nil", "x") == 'nil,"nil",x'
    assert (line(csv, "\\."), line(csv, "\\.", "x")) == ('"\\."', "\\.,x")


def test_only_our_own_client_has_names_that_name_nothing(talk: ClientSession) -> None:
    twice = (Parse("dpsql:{}", "SELECT 1"), Parse("dpsql:{}", "SELECT 1"), Sync())
    assert states(say(talk, *twice)) == ["42P05"]
    ours = ClientSession(talk._monitored_session._session, lambda told: None, lambda bug: None, structured=True)
    assert states(say(ours, *twice)) == []
