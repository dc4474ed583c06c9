"""Threshold queries and the holdout through a server: by psql, by psycopg, and by dpsql's own client as on a schema.

What is asked loses so much (epsilon 100) that the noise decides nothing. The servers are of this file alone: others
have their own use for the budget.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest

import dpsql
from tests.support.server import serving
from tests.support.wire.hospital import PASSWORD, Place, fill_duckdb

pytestmark = pytest.mark.slow

BUSY = "DECLARE busy THRESHOLD 250 WITH (epsilon = 100, answers = 3)"
HOLDOUT = "DECLARE h HOLDOUT WITH (n = 300, threshold = 0.1, epsilon = 100, budget = 3)"
COUNT = "SELECT COUNT(*) FROM visits WHERE ward = 'surgery'"  # 300 of 900
INSURED = "CASE WHEN insured THEN 1 ELSE 0 END"  # 100 of 300


@contextmanager
def server(folder: Path, more: str = "") -> Iterator[Place]:
    schema = fill_duckdb(folder)
    schema.write_text(schema.read_text() + more)
    with serving(schema, passwords={"ana": PASSWORD, "bo": PASSWORD}) as running:
        yield Place(running.host, running.port, private=True)
        assert "Traceback" not in running.log()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with server(tmp_path_factory.mktemp("mechanisms")) as place:
        yield place


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A run is seen to end after a second, and can be left before."""
    with server(tmp_path_factory.mktemp("slow"), "\nlimits: {min_latency: 1}\n") as place:
        yield place


@pytest.fixture
def ana(served: Place) -> Iterator[psycopg.Connection]:
    with psycopg.connect(served.url(), autocommit=True) as connection:
        yield connection


@pytest.fixture
def remote(served: Place) -> Iterator[dpsql.Connection]:
    with dpsql.connect(served.url("dpsql", sslmode="disable")) as connection:
        yield connection


def spent(connection: psycopg.Connection) -> str:
    return str(connection.execute("SHOW BUDGET").fetchall())


# --- psycopg ---------------------------------------------------------------------------------------------------------


def test_by_simple_statements(ana: psycopg.Connection) -> None:
    told: list[str] = []
    ana.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
    cursor = ana.execute(BUSY)
    assert cursor.statusmessage == "DECLARE THRESHOLD" and cursor.description is None
    before = spent(ana)
    assert "charged up front: epsilon 100 " in ana.execute(f"EXPLAIN ASK busy {COUNT}").fetchall()[0][0]
    assert spent(ana) == before and not told
    cursor = ana.execute(f"ASK busy {COUNT}")
    assert [(one.name, one.type_code) for one in cursor.description or ()] == [("above", 16), ("left", 23)]
    assert cursor.fetchall() == [(True, 2)] and cursor.statusmessage == "ASK"
    assert told[-1].startswith("charged: epsilon 1") and spent(ana) != before
    before = spent(ana)
    assert ana.execute(f"ASK busy {COUNT} AND nights > 6").fetchall() == [(False, 2)] and spent(ana) == before
    assert told[-1].startswith("charged: nothing")
    assert ana.execute("SHOW THRESHOLDS").fetchall() == [("busy", 2, 2, "epsilon 100", None)]
    assert ana.execute("CLOSE busy").statusmessage == "CLOSE THRESHOLD"


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("prepare", [False, True])
def test_by_parameters(ana: psycopg.Connection, binary: bool, prepare: bool) -> None:
    """What is parsed and described is neither asked nor charged; each Execute is one question."""
    ana.execute(BUSY)
    where = "SELECT COUNT(*) FROM visits WHERE ward = %s AND nights > %s"
    for nights, answer in ((7, (False, 3)), (-1, (True, 2)), (7, (False, 2)), (-1, (True, 1))):
        cursor = ana.execute(f"ASK busy {where}", ("surgery", nights), binary=binary, prepare=prepare)
        assert cursor.fetchall() == [answer]
    assert ana.execute("SHOW THRESHOLDS").fetchall()[0][1] == 4
    ana.execute(HOLDOUT)
    ask = "ASK h SELECT SUM(CASE WHEN sex = %s THEN 1 ELSE 0 END) FROM patients AGAINST "  # 75 of 300
    assert ana.execute(ask + "%s", ("f", 0.26), binary=binary, prepare=prepare).fetchall() == [(0.26, False, 3)]
    ((value, overfit, left),) = ana.execute(ask + "%s", ("f", Decimal("0.9")), binary=binary).fetchall()
    assert overfit and left == 2 and value == pytest.approx(0.25, abs=0.05)
    query = "(SELECT AVG(CASE WHEN open THEN 0.5 ELSE 0.0 END) FROM wards WHERE ward <> %s)"
    assert ana.execute(ask + query, ("f", "emergency"), binary=binary).fetchall() == [(0.25, False, 2)]
    explained = ana.execute(f"EXPLAIN ASK busy {where}", ("surgery", 3)).fetchall()
    assert explained[0][0].startswith("paid for up front")


def test_what_would_be_charged_is_no_mean(ana: psycopg.Connection) -> None:
    ana.execute(HOLDOUT)
    before = spent(ana)
    with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="only what is free"):
        ana.execute(f"ASK h SELECT SUM({INSURED}) FROM patients AGAINST (SELECT AVG(weight * 1.5) FROM patients)")
    assert spent(ana) == before and ana.execute("SHOW HOLDOUTS").fetchall() == [("h", 0, 3, "nothing", None)]


def test_transactions_undo_nothing(served: Place) -> None:
    with psycopg.connect(served.url()) as connection:
        connection.execute(BUSY)
        connection.execute(f"ASK busy {COUNT}")
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute("SELECT nope FROM visits")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute(f"ASK busy {COUNT}")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("ASK busy SELECT COUNT(*) FROM visits WHERE ward = %s", ("surgery",))
        connection.rollback()
        assert connection.execute("SHOW THRESHOLDS").fetchall() == [("busy", 1, 2, "epsilon 100", None)]
        connection.rollback()
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute(f"ASK busy {COUNT}; SELECT nope FROM visits")
        connection.rollback()
        assert connection.execute(f"ASK busy {COUNT}").fetchall() == [(True, 0)]
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="has given its 3 answers"):
            connection.execute(f"ASK busy {COUNT}")


def test_it_is_the_connections_own(served: Place, ana: psycopg.Connection) -> None:
    ana.execute(BUSY)
    ana.execute(f"ASK busy {COUNT}")
    for user in ("ana", "bo"):
        with psycopg.connect(replace(served, user=user).url(), autocommit=True) as other:
            with pytest.raises(psycopg.errors.InvalidCursorName, match="does not exist"):
                other.execute(f"ASK busy {COUNT}")
            assert other.execute("SHOW THRESHOLDS").fetchall() == []
    ana.execute("DISCARD ALL")
    with pytest.raises(psycopg.errors.InvalidCursorName):
        ana.execute(f"ASK busy {COUNT}")


# --- psql ------------------------------------------------------------------------------------------------------------


def test_by_psql(served: Place) -> None:
    typed = f"{BUSY};\nASK busy {COUNT};\nASK busy SELECT COUNT(*) FROM vistis;\nCLOSE ALL;\n"
    words = ["psql", "-X", "-A", "-t"]
    run = subprocess.run(words, input=typed, env=served.environment(), capture_output=True, text=True, timeout=60)
    assert run.stdout.splitlines() == ["DECLARE THRESHOLD", "t|2", "CLOSE CURSOR ALL"]
    assert 'relation "vistis" does not exist' in run.stderr and "Perhaps you meant" in run.stderr


# --- dpsql's own client ----------------------------------------------------------------------------------------------


def test_above_threshold_as_on_a_schema(remote: dpsql.Connection) -> None:
    asked = remote.above_threshold(250, epsilon=Fraction(200, 3), answers=2)
    before = remote.budget().charges
    told = asked.explain(COUNT, questions=7, confidence=0.9)
    assert told.questions == 7 and told.confidence == 0.9 and told.sensitivity == 4 and not told.paid
    assert not asked.loss and asked.receipt is None and remote.budget().charges == before
    assert not asked.ask(f"{COUNT} AND nights > ?", [7]) and asked.left == 2
    assert asked.ask(COUNT) and asked.left == 1 and remote.budget().charges == before + 1
    assert told.epsilon == asked.loss.pure_epsilon and asked.receipt is not None
    transcript = [(one.question, one.above) for one in asked.transcript]
    assert transcript == [(f"{COUNT} AND nights > ?", False), (COUNT, True)]
    with pytest.raises(dpsql.ProgrammingError) as caught:
        asked.ask("SELECT COUNT(*) FROM vistis")
    assert caught.value.statement == "SELECT COUNT(*) FROM vistis" and caught.value.position == 22
    assert asked.ask(COUNT) and asked.left == 0
    with pytest.raises(dpsql.OperationalError, match="has given its 2 answers"):
        asked.ask(COUNT)
    assert repr(asked) == "AboveThreshold(asked=3, left=0)"


def test_a_list_of_questions(remote: dpsql.Connection) -> None:
    sums = "SELECT SUM(nights) FROM visits WHERE nights > ?"
    asked = remote.above_threshold(10**6, [COUNT, (sums, [2])], epsilon=100, answers=2)
    wide = asked.explain().sensitivity
    assert wide is not None and wide > 4
    assert list(asked) == [(COUNT, False), (sums, False)] and asked.explain(COUNT).sensitivity == wide


def test_a_holdout_as_on_a_schema(remote: dpsql.Connection) -> None:
    means = {INSURED: Fraction(1, 3), "CASE WHEN sex = 'f' THEN 1 ELSE 0 END": 0.9}
    held = remote.holdout(means, "SELECT SUM({q}) FROM patients", n=300, threshold=0.1, epsilon=100, budget=2)
    near, far = (held.ask(question) for question in means)
    assert (near.value, near.overfit) == (1 / 3, False)
    assert far.overfit and far.value == pytest.approx(0.25, abs=0.05) and held.left == 1
    assert isinstance(held.transcript[1].value, Fraction) and float(held.transcript[1].value) == far.value
    train = "SELECT AVG({q}) FROM (VALUES (true), (false)) t(insured)"
    public = remote.holdout(train, "SELECT SUM({q}) FROM patients;", n=300, threshold=0.1, epsilon=100)
    assert public.ask(INSURED).overfit
    with pytest.raises(dpsql.OperationalError, match="only what is free"):
        train = "SELECT AVG({q}) FROM patients"
        private = remote.holdout(train, "SELECT SUM({q}) FROM patients", n=300, threshold=0.1, epsilon=1)
        private.ask("CASE WHEN born < DATE '1950-01-01' THEN 1 ELSE 0 END")


def test_objects_that_are_dropped_free_their_slots(remote: dpsql.Connection) -> None:
    for _ in range(105):  # more than a connection holds
        remote.above_threshold(1, epsilon=1)
    assert len(remote.sql("SHOW THRESHOLDS").rows) <= 2


# --- questions that were left ----------------------------------------------------------------------------------------


def test_a_canceled_question_is_judged_once(slow: Place) -> None:
    told: list[str] = []
    with psycopg.connect(slow.url(), autocommit=True) as connection:
        connection.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        connection.execute(BUSY)
        for _ in range(2):
            timer = threading.Timer(0.2, connection.cancel)
            timer.start()
            with pytest.raises(psycopg.errors.QueryCanceled):
                connection.execute(f"ASK busy {COUNT}")
            timer.join()
        assert connection.execute(f"ASK busy {COUNT}").fetchall() == [(True, 2)]
        assert connection.execute("SHOW THRESHOLDS").fetchall() == [("busy", 1, 2, "epsilon 100", None)]
        connection.execute("SET statement_timeout = 200")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(f"ASK busy {COUNT} AND nights > 6")
        connection.execute("SET statement_timeout = 0")
        assert connection.execute(f"ASK busy {COUNT}").fetchall() == [(True, 1)]
        assert "the question that was left before was answered: below" in told
        assert connection.execute("SHOW THRESHOLDS").fetchall()[0][1] == 3


def test_a_client_knows_what_it_left(slow: Place) -> None:
    with dpsql.connect(slow.url("dpsql", sslmode="disable")) as remote:
        asked = remote.above_threshold(250, epsilon=100, answers=3)
        timer = threading.Timer(0.2, remote.cancel)
        timer.start()
        with pytest.raises(dpsql.OperationalError, match="due to user request") as caught:
            asked.ask(COUNT)
        timer.join()
        assert caught.value.charge.pure_epsilon == asked.loss.pure_epsilon and asked.transcript == ()
        assert not asked.ask(f"{COUNT} AND nights > 7") and asked.left == 2
        first, second = asked.transcript
        assert (first.question, first.above, second.above) == (COUNT, True, False) and asked.receipt is not None
