"""A cancel ends what reads no private row: post-processing, here and in children, and statements about the catalog."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpsql.base.cancellation import StatementHandle, statement_scope, stop_on_cancel
from dpsql.errors import QueryCanceled
from dpsql.session.postprocess import sandbox
from dpsql.session.postprocess.worker_pool import WorkerPool
from dpsql.session.session import Session
from tests.support.controlled_runs import until
from tests.support.shop import open_shop

SLOW = "SELECT SUM(a.x * b.x) FROM generate_series(1, 400000) a(x), generate_series(1, 400000) b(x)"
CHARGED = f"SELECT (SELECT COUNT(*) FROM orders), ({SLOW})"
CATALOG = "SELECT COUNT(*) FROM " + ", ".join(f"pg_catalog.pg_class AS a{n}" for n in range(5))


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    opened = open_shop(tmp_path)[0]
    yield opened
    opened.close()


@pytest.fixture(params=["here", "children"])
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "here":
        yield "here"
        return
    children = WorkerPool(max_workers=2)
    sandbox.set_executor(children)
    yield "children"
    children.close()


def canceled(session: Session, sql: str, end: Callable[[StatementHandle], None]) -> float:
    """The seconds from the cancel to its end; post-processing alone would take its whole minute."""
    handle, ended = StatementHandle(), []

    def soon() -> None:
        until(lambda: handle.interrupt is not None and (sql != CHARGED or handle.delivered))
        time.sleep(0.3)
        ended.append(time.monotonic())
        end(handle)

    thread = threading.Thread(target=soon)
    thread.start()
    with pytest.raises(QueryCanceled, match="due to user request"):
        session.execute(sql, handle=handle)
    thread.join()
    return time.monotonic() - ended[0]


@pytest.mark.parametrize("sql", [SLOW, CHARGED, CATALOG])
def test_a_cancel_ends_post_processing(session: Session, place: str, sql: str) -> None:
    assert canceled(session, sql, session.cancel) < 15
    assert session.execute("SELECT 1").rows == [(1,)]
    if sql == CHARGED:  # it stands, and is told
        assert session.execute("SELECT (SELECT COUNT(*) FROM orders)").loss.rho == 0


def test_a_timeout_ends_post_processing(session: Session, place: str) -> None:
    session.execute("SET statement_timeout = '700ms'")
    started = time.monotonic()
    with pytest.raises(QueryCanceled, match="due to statement timeout") as caught:
        session.execute(SLOW)
    assert caught.value.sqlstate == "57014" and time.monotonic() - started < 8


def test_what_has_ended_is_not_stopped() -> None:
    handle, stopped = StatementHandle(), []
    with statement_scope("ana", handle):
        with stop_on_cancel(lambda: stopped.append(1)):
            late = handle.interrupt
        assert handle.interrupt is None and late is not None
        late()
        assert stopped == []
        handle.canceled = True
        with stop_on_cancel(lambda: stopped.append(2)):
            assert stopped == [2]
