"""What is counted, and told to the owner's log, is what the client sent: not the transactions around it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.interfaces.pgwire.protocol.frontend import Bind, Execute, FrontendMessage, Parse, SimpleQuery, Sync
from dpsql.interfaces.pgwire.server.monitored_session import ClientSession, StatementReport
from tests.support.shop import open_shop


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[tuple[ClientSession, list[StatementReport]]]:
    session, reference = open_shop(tmp_path)
    told: list[StatementReport] = []
    yield ClientSession(session, told.append, lambda bug: None, structured=False), told
    session.close()
    reference.close()


SEVERAL = "SET application_name = 'x'; SELECT 1; SHOW application_name"
PIPELINE = (
    Parse("", "SELECT 1"), Bind("", ""), Execute(""), Parse("", "SET application_name = 'x'"), Bind("", ""),
    Execute(""), Sync(),
)  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "due"),
    [
        ((SimpleQuery("SELECT 1"),), ["SELECT"]),
        ((SimpleQuery(SEVERAL),), ["SET", "SELECT", "SHOW"]),
        ((SimpleQuery(f"BEGIN; {SEVERAL}; COMMIT"),), ["BEGIN", "SET", "SELECT", "SHOW", "COMMIT"]),
        ((SimpleQuery("SELECT 1; SELECT nope; SELECT 2"),), ["SELECT", "42703"]),
        ((SimpleQuery("BEGIN"), SimpleQuery("SELECT nope"), SimpleQuery("ROLLBACK")), ["BEGIN", "42703", "ROLLBACK"]),
        ((SimpleQuery(""), SimpleQuery(";")), []),
        (PIPELINE, ["SELECT", "SET"]),
    ],
)
def test_what_the_client_sent_is_counted(
    sent: tuple[FrontendMessage, ...], due: list[str], counted: tuple[ClientSession, list[StatementReport]]
) -> None:
    talk, told = counted
    for message in sent:
        for _ in talk.handle_message(message):
            pass
    assert [one.kind or one.sqlstate for one in told] == due
    assert {one.outcome for one in told} <= {"free", "refused"}
