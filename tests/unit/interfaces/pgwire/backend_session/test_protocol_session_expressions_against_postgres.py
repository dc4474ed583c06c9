"""Statements without tables are answered as PostgreSQL answers them: `tests/corpus/likeness.sql` has them, and says of
each that differs why it does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpsql.interfaces.pgwire.backend_session.protocol_session import ProtocolSession
from dpsql.interfaces.pgwire.protocol import client_codec
from dpsql.interfaces.pgwire.protocol.frontend import Bind, Describe, Execute, Parse, SimpleQuery, Sync
from tests.support.postgres import Server
from tests.support.shop import open_shop
from tests.support.wire_messages import Real, say

CORPUS = Path(__file__).parents[4] / "corpus" / "likeness.sql"
DIFFERS = "-- differs: "


@dataclass(frozen=True)
class Case:
    sql: str
    differs: str | None


def read_cases() -> list[Case]:
    """A reason holds for all statements below it, up to the next."""
    cases, reason = [], None
    for line in CORPUS.read_text(encoding="utf-8").splitlines():
        if line.startswith(DIFFERS):
            reason = line.removeprefix(DIFFERS)
        elif line.startswith("-- "):
            reason = None
        elif line:
            cases.append(Case(line, reason))
    return cases


CASES = read_cases()


@pytest.fixture(scope="module")
def conversation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProtocolSession]:
    session, reference = open_shop(tmp_path_factory.mktemp("shop"))
    made = ProtocolSession(session)
    made.make_greeting()
    yield made
    session.close()
    reference.close()


@pytest.fixture(scope="module")
def real(postgres: Server) -> Iterator[Real]:
    connection = Real(postgres.folder)
    connection.say(SimpleQuery("SET TimeZone = 'UTC'"))
    yield connection
    connection.close()


def shown(replies: list[client_codec.BackendReply]) -> tuple[list[object], str | None]:
    """Names and types of columns, rows and the tag; or the SQLSTATE of an error and its place. What comes before an
    error does not count: PostgreSQL finds some when it runs a statement, and we before that."""
    found: list[object] = []
    for reply in replies:
        match reply:
            case client_codec.ErrorResponse(fields):
                return [("error", fields["C"])], fields.get("P")
            case client_codec.RowDescription(fields=columns):
                found.append([(one.name, one.type) for one in columns])
            case client_codec.DataRow(values):
                found.append(values)
            case client_codec.CommandComplete(tag):
                found.append(tag)
    return found, None


@pytest.mark.parametrize("case", CASES, ids=[case.sql[:60] for case in CASES])
def test_the_same_is_seen(case: Case, conversation: ProtocolSession, real: Real) -> None:
    due, place = shown(real.say(SimpleQuery(case.sql)))
    got, ours = shown(say(conversation, SimpleQuery(case.sql)))
    if case.differs is not None:
        assert (got, ours) != (due, place), "it is the same by now: take its reason away"
        return
    assert got == due
    assert ours == place or None in (ours, place)


def test_there_are_many_and_most_are_the_same() -> None:
    assert len(CASES) >= 300 and sum(case.differs is None for case in CASES) >= 230


def test_a_difference_would_be_seen(conversation: ProtocolSession, real: Real) -> None:
    for one, other in (("SELECT 1", "SELECT 2"), ("SELECT 1 AS a", "SELECT 1 AS b"), ("SELECT 1", "SELECT 1::int8"),
                       ("SELECT nope", "SELEC 1"), ("BEGIN", "COMMIT")):  # fmt: skip
        assert shown(real.say(SimpleQuery(one))) != shown(say(conversation, SimpleQuery(other)))
    say(conversation, SimpleQuery("ROLLBACK"))
    real.say(SimpleQuery("ROLLBACK"))


NUMERIC = 1700
DIGITS = [
    ("SELECT $1 AS a", (NUMERIC,), b"2.50"), ("SELECT $1 AS a", (NUMERIC,), b"2.123456789012"),
    ("SELECT $1::numeric AS a", (), b"2.50"), ("SELECT $1::numeric * 2 AS a", (), b"1.25"),
    ("SELECT $1 + 1 AS a", (NUMERIC,), b"12345678901234567890.5"), ("SELECT abs($1) AS a", (NUMERIC,), b"-0.00001"),
    ("SELECT coalesce($1, 0) AS a", (NUMERIC,), b"7.25"), ("SELECT $1::interval + interval '1 day' AS a", (), b"1 mon"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "types", "value"), DIGITS)
@pytest.mark.parametrize("format_", [0, 1])
def test_parameters_keep_their_digits(
    sql: str, types: tuple[int, ...], value: bytes, format_: int, conversation: ProtocolSession, real: Real
) -> None:
    """Also the type that is described before the value is known is the same, and promises no digits."""
    asked = (Parse("", sql, types), Describe("S", ""), Bind("", "", (), (value,), (format_,)), Describe("P", ""),
             Execute(""), Sync())  # fmt: skip
    assert say(conversation, *asked) == real.say(*asked)
