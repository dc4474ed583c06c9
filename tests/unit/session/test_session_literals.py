"""A text that is no value of its type is told before anything is charged, and an origin of DATE_BIN may be a text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpsql.compiler.parse.parser import parse_query
from dpsql.errors import DataError, InvalidSyntax, LimitExceeded
from dpsql.session.session import Session
from tests.support.shop import open_shop


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    session, reference = open_shop(tmp_path_factory.mktemp("shop"))
    yield session
    session.close()
    reference.close()


@pytest.mark.parametrize(
    ("written", "state", "words"),
    [
        ("'a'::int", "22P02", 'invalid input syntax for type integer: "a"'),
        ("'1.5'::bigint", "22P02", 'invalid input syntax for type bigint: "1.5"'),
        ("'99999999999'::int", "22003", 'value "99999999999" is out of range for type integer'),
        ("'web'::uuid", "22P02", 'invalid input syntax for type uuid: "web"'),
    ],
)
def test_a_wrong_text_costs_nothing(written: str, state: str, words: str, session: Session) -> None:
    with pytest.raises(DataError) as caught:
        session.execute(f"SELECT count(*) + 7001, {written} FROM orders")
    assert (caught.value.sqlstate, caught.value.message) == (state, words)
    assert not session.charged
    assert caught.value.position == 25


def test_right_texts_are_read(session: Session) -> None:
    answer = session.execute("SELECT ' 12 '::int, '-32768'::smallint, '6dbd1b5e1b2c4a359d0b0c1f6ae6c0de'::uuid::text")
    assert list(answer.rows) == [(12, -32768, "6dbd1b5e-1b2c-4a35-9d0b-0c1f6ae6c0de")]


def test_an_origin_may_be_a_text(session: Session) -> None:
    ask = "SELECT date_bin('30 days', made, {}) AS d, count(*) FROM orders GROUP BY d ORDER BY d"
    assert session.execute(ask.format("'2001-01-01'")).rows == session.execute(ask.format("DATE '2001-01-01'")).rows


@pytest.mark.parametrize("written", ["1_", "1__0", "1_a", "0o8"])
def test_a_number_with_something_behind_is_none(written: str) -> None:
    with pytest.raises(InvalidSyntax, match="trailing junk after numeric literal"):
        parse_query(f"SELECT {written}")


def test_a_long_number_is_not_worked_out() -> None:
    with pytest.raises(LimitExceeded):
        parse_query(f"SELECT 0x{'f' * 200_000}")
