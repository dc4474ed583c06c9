"""Attacks that reviewers found through Python, notebooks and SQLAlchemy."""

from __future__ import annotations

import datetime as dt
import shutil
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy.pool import StaticPool

import dpsql
from dpsql.errors import BudgetExceeded, QueryCanceled
from dpsql.interfaces.dbapi.notebook import DpsqlMagic
from dpsql.interfaces.dbapi.result import Answer
from dpsql.interfaces.sqlalchemy import told

pytestmark = pytest.mark.slow

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


def test_a_charge_is_refused_where_only_free_answers_were_requested(connection: dpsql.Connection) -> None:
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


def test_a_statement_that_was_free_before_midnight_is_not_charged_after_it(connection: dpsql.Connection) -> None:
    now = dt.datetime(2026, 1, 1, 23, 59, 59, tzinfo=dt.UTC)
    connection._session.clock = lambda: now
    connection.sql(UNTIL_TODAY)
    assert all(connection.explain(UNTIL_TODAY).paid)
    now += dt.timedelta(seconds=1)
    with pytest.raises(BudgetExceeded):
        connection.sql(UNTIL_TODAY, free=True)
    assert connection.budget().charges == 1


def test_a_pilot_that_is_charged_gives_nothing_more_for_free(connection: dpsql.Connection) -> None:
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


# --- settings of one statement ---------------------------------------------------------------------------------------


def test_settings_of_a_statement_hold_for_it_alone(connection: dpsql.Connection) -> None:
    connection.sql("BEGIN")
    connection.sql("SET LOCAL epsilon = 0.25")
    assert connection.sql("SHOW epsilon", settings={"epsilon": 0.5}).scalar() == "0.5"
    with pytest.raises(dpsql.Error):
        connection.sql("SELECT nothing", settings={"epsilon": 0.5})
    assert connection.sql("SHOW epsilon").scalar() == "0.25"
    connection.sql("COMMIT")
    assert connection.sql("SHOW epsilon").scalar() == "1"
    connection.sql("SET epsilon = 0.75", settings={"epsilon": 0.5})  # asks nothing, and is to stay
    assert connection.sql("SHOW epsilon").scalar() == "0.75"


def test_an_epsilon_of_a_statement_overrides_an_error_target_of_the_session(connection: dpsql.Connection) -> None:
    connection.sql("SET max_error = 3")
    assert connection.sql(COUNT, settings={"epsilon": 0.125}).loss.epsilon == Fraction(1, 8)
    with pytest.raises(dpsql.ProgrammingError, match="not both"):
        connection.sql(COUNT, settings={"epsilon": 1, "max_error": 3})


def test_threads_that_share_a_connection_of_sqlalchemy_keep_their_epsilons(folder: Path) -> None:
    engine = sqlalchemy.create_engine(f"dpsql:///{folder}/clinic.yaml?user=ana", poolclass=StaticPool)
    over = threading.Event()

    def disturb() -> None:
        while not over.is_set():
            with engine.connect() as connection:
                connection.exec_driver_sql("SELECT 1")

    losses = []
    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for number in range(40):
            with engine.connect().execution_options(epsilon=0.01) as careful:
                asked = careful.exec_driver_sql(f"SELECT COUNT(*) FROM patients WHERE patient_id <> {number}")
                losses.append(told(asked).loss.epsilon)
    finally:
        over.set()
        thread.join()
    assert set(losses) == {Fraction(1, 100)}
    engine.dispose()


def test_sqlalchemy_moves_no_savepoint_for_its_settings(folder: Path) -> None:
    """Another thread may end the transaction that both are in."""
    engine = sqlalchemy.create_engine(f"dpsql:///{folder}/clinic.yaml?user=ana", poolclass=StaticPool)
    with engine.connect() as connection:
        asked: list[str] = []
        session: Any = connection.connection.dbapi_connection._session  # type: ignore[union-attr]
        real = session.execute
        session.execute = lambda sql, *rest, **more: (asked.append(sql), real(sql, *rest, **more))[1]
        connection.execution_options(epsilon=0.5).exec_driver_sql("SHOW epsilon")
        assert asked == ["BEGIN", "SHOW epsilon"]
    engine.dispose()


@pytest.mark.parametrize("before", ["", "/* why */ ", "-- why\n"])
def test_explain_behind_a_comment_shows_the_same_price(folder: Path, before: str) -> None:
    engine = sqlalchemy.create_engine(f"dpsql:///{folder}/clinic.yaml?user=ana")
    with engine.connect().execution_options(epsilon=0.5) as connection:
        plan = "\n".join(line for (line,) in connection.exec_driver_sql(f"{before}EXPLAIN {COUNT}"))
        assert "epsilon 0.5" in plan.lower() or "epsilon ≤ 0.5" in plan
    engine.dispose()


# --- notebooks -------------------------------------------------------------------------------------------------------


class Notebook:
    """As much of an IPython shell as the magic asks of it."""

    def __init__(self, **names: object) -> None:
        self.user_ns = dict(names)


@pytest.fixture
def magic(connection: dpsql.Connection) -> DpsqlMagic:
    magic = DpsqlMagic(Notebook(c=connection))
    magic.run("c")
    return magic


def test_the_epsilon_of_a_cell_overrides_an_error_target_of_the_session(magic: DpsqlMagic) -> None:
    magic.run("", "SET max_error = 3")
    answer = magic.run("--epsilon 0.125", COUNT)
    assert isinstance(answer, Answer) and answer.loss.epsilon == Fraction(1, 8)
    explained = magic.run("--epsilon 0.25 --explain", COUNT)
    assert isinstance(explained, dpsql.Explanation) and explained.epsilon == Fraction(1, 4)


def test_the_epsilon_of_a_cell_leaves_a_transaction_as_it_was(magic: DpsqlMagic, connection: dpsql.Connection) -> None:
    magic.run("", "BEGIN")
    magic.run("", "SET LOCAL epsilon = 0.01")
    magic.run("--epsilon 0.1", "SELECT 1")
    magic.run("", "COMMIT")
    assert connection.sql("SHOW epsilon").scalar() == "1"


@pytest.mark.parametrize("line", ["c --user bob", "c --epsilon 0.1", "c --delta 1e-9"])
def test_a_connection_that_is_open_takes_no_user_and_no_settings(magic: DpsqlMagic, line: str) -> None:
    with pytest.raises(dpsql.InterfaceError, match="open"):
        magic.run(line)
    with pytest.raises(dpsql.InterfaceError, match="open"):
        magic.run("c --user bob", COUNT)
    magic.run("c --user ana")


def test_an_interrupt_right_after_the_charge_is_reported_as_charged(
    magic: DpsqlMagic, connection: dpsql.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = type(connection._session.dataset.ledger)
    real = ledger.purchase

    def interrupted(*given: Any) -> None:
        real(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(ledger, "purchase", interrupted)
    with pytest.raises(QueryCanceled) as caught:
        magic.run("", COUNT)
    assert caught.value.charge and connection.budget().charges == 1
    assert "charged: epsilon" in "\n".join(caught.value._render_traceback_())  # type: ignore[attr-defined]
    assert "Nothing was charged" not in str(caught.value)


def test_an_interrupt_right_before_the_charge_is_reported_as_free(
    magic: DpsqlMagic, connection: dpsql.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(connection._session.dataset.runs), "admit_runs", interrupted)
    with pytest.raises(QueryCanceled, match="Nothing was charged") as caught:
        magic.run("", COUNT)
    assert not caught.value.charge and connection.budget().charges == 0


def test_an_error_of_a_cell_steers_no_terminal(magic: DpsqlMagic) -> None:
    with pytest.raises(dpsql.Error) as caught:
        magic.run("", "SELECT CAST(? AS INTEGER) AS x FROM wards".replace("?", "'a\x1b[2Jb\x07'"))
    lines = caught.value._render_traceback_()  # type: ignore[attr-defined]
    assert not any("\x1b" in line or "\x07" in line or "\n" in line for line in lines)


# --- parameters ------------------------------------------------------------------------------------------------------


class Changing:
    """Says another value each time that it is asked."""

    ndim = 0

    def __init__(self) -> None:
        self.said = 0

    def item(self) -> int:
        self.said += 1
        return self.said


def test_a_parameter_is_read_once(connection: dpsql.Connection) -> None:
    changing: Any = Changing()
    assert connection.sql("SELECT ?", [changing]).scalar() == 1 and changing.said == 1
    assert connection.sql("SELECT ?", [1]).scalar() == 1
    connection.explain("SELECT ?", [changing])
    connection.cursor().executemany("SET epsilon = ?", [[changing]])
    assert changing.said == 3 and connection.sql("SHOW epsilon").scalar() == "3"


@pytest.mark.parametrize("sql", ["SELECT $1.5", "SELECT .?", "SELECT 1.?", "SELECT ?.5", "SELECT 1?", "SELECT .$1"])
def test_a_placeholder_is_no_part_of_a_number(connection: dpsql.Connection, sql: str) -> None:
    with pytest.raises(dpsql.ProgrammingError):
        connection.sql(sql, [-5])
    with pytest.raises(dpsql.ProgrammingError):
        connection.sql(sql, [7])


@pytest.mark.parametrize("parameters", ["f", {"a": 1}, b"f"])
def test_explain_takes_the_parameters_that_execute_takes(connection: dpsql.Connection, parameters: Any) -> None:
    with pytest.raises(dpsql.InterfaceError, match="sequence"):
        connection.explain("SELECT ?", parameters)
