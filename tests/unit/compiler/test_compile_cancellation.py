"""Compiling ends with its statement: at its deadline, by a cancel; and one account does not take all of it."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.base import cancellation
from dpsql.base.fair_sharing import FairSemaphore
from dpsql.compiler.compile import compile_query
from dpsql.compiler.settings import default_settings
from dpsql.errors import LimitExceeded, QueryCanceled
from dpsql.schema.model import Resolved
from dpsql.session.session import Session
from tests.support.controlled_runs import until
from tests.support.shop import open_shop

pytestmark = pytest.mark.slow


def cases(count: int) -> str:
    return f"SELECT SUM(CASE {' '.join(f'WHEN qty = {i} THEN {i % 7}' for i in range(count))} ELSE 0 END) FROM orders"


BOMBS = {
    "whens": cases(900),
    "conditions": f"SELECT COUNT(*) FROM orders WHERE {' OR '.join(f'qty = {i}' for i in range(5000))}",
    "a list": f"SELECT COUNT(*) FROM orders WHERE qty IN ({', '.join(map(str, range(10_000)))})",
    "columns": f"SELECT {', '.join(f'SUM(qty) + {i}' for i in range(1500))} FROM orders",
    "after the noise": f"SELECT {', '.join(f'COUNT(*) + {i}' for i in range(1000))} FROM orders ORDER BY 1",
}  # fmt: skip


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    opened = open_shop(tmp_path)[0]
    yield opened
    opened.close()


@pytest.mark.parametrize("bomb", BOMBS)
def test_it_ends_at_its_deadline_and_nothing_is_charged(bomb: str, session: Session) -> None:
    session.execute("SET statement_timeout = 20")
    before = session.budget()
    with pytest.raises(QueryCanceled, match="statement timeout"):
        session.execute(BOMBS[bomb])
    assert session.budget() == before
    with pytest.raises(QueryCanceled, match="statement timeout"):
        session.prepare(BOMBS[bomb])
    session.execute("RESET statement_timeout")
    session.prepare("SELECT COUNT(*) FROM orders")  # what was late before is not late now


@pytest.mark.parametrize("bomb", ["whens", "conditions", "a list"])
def test_it_checks_often_for_a_cancel(bomb: str, session: Session) -> None:
    looks = [time.thread_time()]
    resolved = session.dataset.resolved
    with cancellation.cancel_scope(lambda: looks.append(time.thread_time())), contextlib.suppress(LimitExceeded):
        compile_query(BOMBS[bomb], resolved, default_settings(resolved.schema.privacy).statement)
    looks.append(time.thread_time())
    assert max(after - before for before, after in itertools.pairwise(looks)) < 1.5


def test_a_cancel_ends_it(session: Session) -> None:
    ended: list[BaseException] = []

    def ask() -> None:
        try:
            session.execute(BOMBS["whens"])
        except BaseException as error:
            ended.append(error)

    held = threading.Event()
    with session.cache.compile_slots.acquire(session._account.name, lambda: None), \
            session.cache.compile_slots.acquire(session._account.name, lambda: None):  # fmt: skip
        thread = threading.Thread(target=ask)
        thread.start()
        held.wait(0.1)
        session.cancel()
        thread.join(20)
    assert [type(error) for error in ended] == [QueryCanceled]


def test_many_conditions_take_time_as_their_number(clinic: Resolved) -> None:
    def seconds(count: int) -> float:
        sql = f"SELECT COUNT(*) FROM visits WHERE {' OR '.join(f'cost = {i}' for i in range(count))}"
        started = time.thread_time()
        compile_query(sql, clinic, default_settings(clinic.schema.privacy).statement)
        return time.thread_time() - started

    seconds(10)
    assert seconds(4000) < 8 * max(seconds(1000), 0.05)


def test_a_case_of_very_many_branches_is_refused(session: Session) -> None:
    with pytest.raises(LimitExceeded, match="branches") as caught:
        session.execute(cases(3000))
    assert caught.value.sqlstate == "54000"


class TestTurns:
    def test_two_of_a_name_are_within_and_others_do_not_wait(self) -> None:
        turns, within, most, leave = FairSemaphore(2), [0], [0], threading.Event()
        lock = threading.Lock()

        def work() -> None:
            with turns.acquire("ana", lambda: None):
                with lock:
                    within[0] += 1
                    most[0] = max(most[0], within[0])
                leave.wait(20)
                with lock:
                    within[0] -= 1

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        until(lambda: within[0] == 2)
        with turns.acquire("bob", lambda: None):
            assert within[0] == 2
        leave.set()
        for thread in threads:
            thread.join(20)
        assert (most[0], within[0], turns._queues) == (2, 0, {})

    def test_a_waiting_statement_can_be_canceled(self) -> None:
        turns = FairSemaphore(1)

        def over() -> None:
            raise QueryCanceled("over")

        with turns.acquire("ana", lambda: None), pytest.raises(QueryCanceled), turns.acquire("ana", over):
            pass
        with turns.acquire("ana", over):  # there is a turn at once
            pass
