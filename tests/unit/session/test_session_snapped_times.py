"""A dashboard that sends the current time pays once for each step of the column's grid."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session
from tests.support import shop
from tests.support.shop import Silence

NOON = dt.datetime(2023, 6, 1, 12, 0, tzinfo=dt.UTC)
LAST_DAY = "SELECT COUNT(*) FROM orders WHERE made >= now() - INTERVAL '24 hours'"


class Clock:
    now = NOON

    def __call__(self) -> dt.datetime:
        return self.now


@pytest.fixture()
def clock() -> Clock:
    return Clock()


@pytest.fixture()
def session(tmp_path: Path, clock: Clock) -> Iterator[Session]:
    made = "made: {type: timestamp, bounds: [2021-01-01, 2023-12-31]"
    assert made in shop.SCHEMA
    (tmp_path / "shop.yaml").write_text(shop.SCHEMA.replace(made, made + ", snap: 1 hour"), encoding="utf-8")
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute(shop.DATA)
    dataset = open_dataset(tmp_path / "shop.yaml")
    yield Session(dataset, sampler=Silence(), clock=clock)
    dataset.close()


@pytest.mark.parametrize(
    "sql",
    [
        LAST_DAY,
        "SELECT kind, SUM(qty) FROM orders WHERE made BETWEEN now() - INTERVAL '1 hour' AND now() GROUP BY kind",
        "SELECT date_trunc('hour', made) AS h, COUNT(*) FROM orders "
        "WHERE made >= current_timestamp - INTERVAL '6 hours' AND made < now() GROUP BY h ORDER BY h",
    ],
)
def test_sixty_refreshes_cost_one_charge_per_hour(sql: str, session: Session, clock: Clock) -> None:
    charged = []
    for minute in range(0, 120, 2):
        clock.now = NOON + dt.timedelta(minutes=minute, seconds=7)
        answer = session.execute(sql)
        if answer.loss.rho > 0:
            charged.append(minute)
        assert any("rounded to 1 hour" in notice for notice in answer.notices)
    assert charged == [0, 60] and session.budget().charges == 2


def test_the_times_that_a_program_sends_are_rounded_too(session: Session) -> None:
    sql = "SELECT COUNT(*) FROM orders WHERE made >= ? AND made < ?"
    answers = [session.execute(sql, [f"2023-05-01 10:{m}:11", f"2023-05-03 10:{m}:11"]) for m in (10, 20, 59)]
    assert len({tuple(answer.rows) for answer in answers}) == 1 and session.budget().charges == 1


def test_what_is_answered_is_the_rounded_window(session: Session, clock: Clock, tmp_path: Path) -> None:
    clock.now = NOON + dt.timedelta(minutes=34)
    with duckdb.connect(":memory:") as reference:
        reference.execute(shop.DATA)
        expected = reference.execute("SELECT COUNT(*) FROM orders WHERE made >= '2023-05-31 12:00'").fetchall()
    assert session.execute(LAST_DAY).rows == expected


def test_a_statement_that_rounds_the_time_itself_is_the_same_question(session: Session, clock: Clock) -> None:
    clock.now = NOON + dt.timedelta(minutes=34)
    session.execute("SELECT COUNT(*) FROM orders WHERE made < now()")
    again = session.execute("SELECT COUNT(*) FROM orders WHERE made < date_trunc('hour', now())")
    assert again.loss.rho == 0 and again.notices == () and session.budget().charges == 1


@pytest.mark.parametrize("first", [0, 1])
def test_a_remembered_answer_has_the_notices_of_its_own_statement(first: int, session: Session) -> None:
    """The same releases make the same rows; which times were rounded is said of the statement that was asked."""
    sql = "SELECT COUNT(*) FROM orders WHERE made < TIMESTAMP '2023-05-01 10:{:02}:00'"
    spellings = [(sql.format(0), False), (sql.format(20), True)]
    for statement, rounded in (*[spellings[first]] * 3, spellings[1 - first]):
        answer = session.execute(statement)
        assert any("rounded to 1 hour" in notice for notice in answer.notices) == rounded
    assert session.budget().charges == 1
