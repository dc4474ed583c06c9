"""What is counted, and told to the owner's log, is what the client sent: not the transactions around it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.pgwire.messages import Bind, Execute, Message, Parse, Query, Sync
from dpsql.pgwire.talk import Talk, Told
from tests.support.shop import open_shop


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[tuple[Talk, list[Told]]]:
    session, reference = open_shop(tmp_path)
    told: list[Told] = []
    yield Talk(session, told.append, lambda bug: None, structured=False), told
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
        ((Query("SELECT 1"),), ["SELECT"]),
        ((Query(SEVERAL),), ["SET", "SELECT", "SHOW"]),
        ((Query(f"BEGIN; {SEVERAL}; COMMIT"),), ["BEGIN", "SET", "SELECT", "SHOW", "COMMIT"]),
        ((Query("SELECT 1; SELECT nope; SELECT 2"),), ["SELECT", "42703"]),
        ((Query("BEGIN"), Query("SELECT nope"), Query("ROLLBACK")), ["BEGIN", "42703", "ROLLBACK"]),
        ((Query(""), Query(";")), []),
        (PIPELINE, ["SELECT", "SET"]),
    ],
)
def test_what_the_client_sent_is_counted(
    sent: tuple[Message, ...], due: list[str], counted: tuple[Talk, list[Told]]
) -> None:
    talk, told = counted
    for message in sent:
        for _ in talk.answer(message):
            pass
    assert [one.kind or one.sqlstate for one in told] == due
    assert {one.outcome for one in told} <= {"free", "refused"}
