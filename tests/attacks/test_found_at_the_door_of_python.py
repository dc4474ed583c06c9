"""What reviewers found at the doors of Python, notebooks and SQLAlchemy."""

from __future__ import annotations

import datetime as dt
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpsql
from dpsql.errors import BudgetExceeded, QueryCanceled

SCHEMAS = Path(__file__).parents[2] / "schemas"
COUNT = "SELECT COUNT(*) FROM visits"
UNTIL_TODAY = "SELECT COUNT(*) FROM visits WHERE at < current_date"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SCHEMAS, tmp_path / "s", ignore=shutil.ignore_patterns("*.ledger*")))


@pytest.fixture
def connection(folder: Path) -> Iterator[dpsql.Connection]:
    with dpsql.connect(folder / "clinic.yaml", user="ana") as connection:
        yield connection


# --- what is free ----------------------------------------------------------------------------------------------------


def test_what_would_be_charged_is_refused_where_only_what_is_free_was_asked_for(connection: dpsql.Connection) -> None:
    with pytest.raises(BudgetExceeded, match="only what is free") as caught:
        connection.sql(COUNT, free=True)
    assert not caught.value.charge and connection.budget().charges == 0
    paid = connection.sql(COUNT)
    again = connection.sql(COUNT, free=True)
    assert paid.loss and not again.loss and again.rows == paid.rows
    assert connection.sql("SELECT 1", free=True).rows == [(1,)]


def test_what_is_derived_is_free(connection: dpsql.Connection) -> None:
    connection.sql("SELECT sex, COUNT(*) FROM patients GROUP BY sex", settings={"epsilon": 2})
    answer = connection.sql("SELECT COUNT(*) FROM patients WHERE sex = 'f'", free=True)
    assert not answer.loss and any("derived" in notice for notice in answer.notices)


def test_a_statement_that_was_free_before_midnight_is_not_bought_after_it(connection: dpsql.Connection) -> None:
    now = dt.datetime(2026, 1, 1, 23, 59, 59, tzinfo=dt.UTC)
    connection._session.clock = lambda: now
    connection.sql(UNTIL_TODAY)
    assert all(connection.explain(UNTIL_TODAY).paid)
    now += dt.timedelta(seconds=1)
    with pytest.raises(BudgetExceeded):
        connection.sql(UNTIL_TODAY, free=True)
    assert connection.budget().charges == 1


def test_a_pilot_that_is_paid_for_buys_nothing_more_for_free(connection: dpsql.Connection) -> None:
    wanted = {"max_relative_error": "0.001", "epsilon": "0.01"}
    with pytest.raises(BudgetExceeded):
        connection.sql(COUNT, settings=wanted, free=True)
    assert connection.budget().charges == 0


# --- a statement that waits for its turn -----------------------------------------------------------------------------


def test_a_statement_that_waits_for_its_turn_is_canceled_and_not_charged(connection: dpsql.Connection) -> None:
    ended: list[BaseException] = []
    cursor = connection.cursor()

    def ask() -> None:
        try:
            cursor.execute(COUNT)
        except QueryCanceled as error:
            ended.append(error)

    with connection._lock:  # as the line beneath the prompt has it, while it works out a price
        waiting = threading.Thread(target=ask)
        waiting.start()
        deadline = time.monotonic() + 10
        while not connection._waiting and time.monotonic() < deadline:
            time.sleep(0.01)
        connection.cancel()
    waiting.join(30)
    assert len(ended) == 1 and not cursor.loss and connection.budget().charges == 0
    assert connection.sql(COUNT).loss  # the next one is not canceled
