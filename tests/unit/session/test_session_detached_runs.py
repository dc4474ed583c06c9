"""Sessions whose runs go on without them, and closing a dataset meanwhile."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from dpsql.errors import AccountSuspended, EngineFailed, Error, QueryCanceled
from dpsql.privacy.exact import Exact
from dpsql.session.dataset.dataset import Dataset, open_dataset
from dpsql.session.dataset.runs import DETACHED_HINT
from dpsql.session.query import NORMS_CANCELED_HINT
from dpsql.session.session import Session
from tests.support.controlled_runs import (
    COUNT,
    PATIENCE,
    SECRET,
    GatedEngine,
    GatedShop,
    gated_shop,
    in_thread,
    press_ctrl_c,
    until,
)
from tests.support.shop import Silence, open_shop, opened_with

AUTOMATIC = """
  query: {epsilon: 1, delta: 1e-7}
  contributions: auto
tables:
"""


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[GatedShop]:
    with gated_shop(tmp_path) as opened:
        yield opened


def test_cancel_and_repeat(gated: GatedShop) -> None:
    thread, got = in_thread(lambda: gated.session.execute(COUNT))
    until(lambda: gated.engine.began)
    gated.session.cancel()
    thread.join(PATIENCE)
    assert isinstance(got[0], QueryCanceled) and got[0].statement == COUNT
    charges = gated.session.budget().charges
    gated.engine.gate.set()
    answer = gated.session.execute(COUNT)
    assert answer.rows == [(2400,)] and answer.loss.rho == 0
    assert gated.engine.began == 1 and gated.session.budget().charges == charges == 1
    gated.session.cancel()  # nothing waits
    assert gated.session.execute(COUNT).rows == [(2400,)]


def test_a_cancel_while_norms_are_bought_leaves_the_question_uncharged(tmp_path: Path) -> None:
    """No hint says that asking again is free: the histogram of units is kept, the question is charged then."""
    with opened_with(tmp_path, AUTOMATIC) as opened:
        engine = GatedEngine(opened.engine, threading.Event())
        session = Session(replace(opened, engine=engine), sampler=Silence())
        thread, got = in_thread(lambda: session.execute(COUNT))
        until(lambda: engine.began)
        session.cancel()
        thread.join(PATIENCE)
        assert isinstance(got[0], QueryCanceled) and got[0].hint == NORMS_CANCELED_HINT
        assert got[0].charge and session.budget().charges == 1
        engine.gate.set()
        answer = session.execute(COUNT)
        assert engine.began == 2 and session.budget().charges == 2
        assert 0 < got[0].charge.rho < answer.loss.rho  # the question's alone: a histogram is a small part of it
        assert session.execute(COUNT).loss.rho == 0


def test_statement_timeout(gated: GatedShop) -> None:
    gated.session.execute("SET statement_timeout = '250ms'")
    for _ in range(4):  # more than the failures that suspend
        with pytest.raises(QueryCanceled, match="due to statement timeout") as caught:
            gated.session.execute(COUNT)
        assert caught.value.hint == DETACHED_HINT
    gated.engine.gate.set()
    gated.session.execute("SET statement_timeout = 0")
    assert gated.session.execute(COUNT).rows == [(2400,)]
    assert gated.engine.began == 1


def test_a_statement_that_is_canceled_before_its_charge_is_not_charged(
    gated: GatedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dataset, "check_current", lambda self: gated.session.cancel())
    with pytest.raises(QueryCanceled) as caught:
        gated.session.execute(COUNT)
    assert caught.value.hint is None
    assert gated.session.budget().charges == 0 and gated.engine.began == 0


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads here")
def test_ctrl_c_four_times_and_no_account_is_suspended(gated: GatedShop) -> None:
    for _ in range(4):
        pressing = press_ctrl_c(lambda: gated.engine.began)
        with pytest.raises(KeyboardInterrupt):
            gated.session.execute(COUNT)
        pressing.join(PATIENCE)
    gated.engine.gate.set()
    assert gated.session.execute(COUNT).rows == [(2400,)]
    assert gated.engine.began == 1


def test_failures_of_runs_that_were_left_are_counted_once_each(gated: GatedShop) -> None:
    gated.engine.fails = MemoryError(SECRET)
    gated.session.execute("SET statement_timeout = '250ms'")
    for _ in range(4):
        with pytest.raises(QueryCanceled):
            gated.session.execute(COUNT)
    gated.engine.gate.set()
    gated.dataset.runs.wait_until_idle()
    gated.session.execute("SET statement_timeout = 0")
    for _ in range(2):
        with pytest.raises(EngineFailed):
            gated.session.execute(COUNT)
    with pytest.raises(AccountSuspended):
        gated.session.execute(COUNT)
    assert gated.engine.began == 3


def test_closing_waits_for_what_runs(gated: GatedShop) -> None:
    gated.session.execute("SET statement_timeout = '250ms'")
    with pytest.raises(QueryCanceled):
        gated.session.execute(COUNT)
    closing, got = in_thread(gated.dataset.close)
    time.sleep(0.1)
    assert got == [] and closing.is_alive()
    gated.engine.gate.set()
    closing.join(PATIENCE)
    assert got == [None]
    assert gated.dataset.ledger.read_body(1) is not None


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads here")
def test_ctrl_c_while_closing_gives_up(tmp_path: Path) -> None:
    session, reference = open_shop(tmp_path)
    reference.close()
    forever = "SELECT 'a', count(*) FROM range(1000000000) a, range(1000000000) b"
    inner = session.dataset.engine
    began: list[str] = []

    class Slow(GatedEngine):
        def execute(self, sql: str, keys: int, holes: Mapping[str, object]) -> Exact:
            began.append(sql)
            return inner.execute(forever, 1, {})

    dataset = replace(session.dataset, engine=Slow(inner, threading.Event()))
    slow = Session(dataset, sampler=Silence())
    slow.explain(COUNT)
    slow.execute("SET statement_timeout = '250ms'")
    with pytest.raises(QueryCanceled):
        slow.execute(COUNT)
    pressing = press_ctrl_c(lambda: began)
    with pytest.raises(KeyboardInterrupt):
        dataset.close()
    pressing.join(PATIENCE)
    dataset.runs.wait_until_idle()
    assert dataset.ledger.read_body(1) is None
    again = Session(open_dataset(tmp_path / "shop.yaml"), sampler=Silence())
    assert again.execute(COUNT).rows == [(2400,)] and again.budget().charges == 1
    again.dataset.close()


def test_a_dataset_that_is_collected_on_a_runs_own_thread_does_not_wait_for_itself(gated: GatedShop) -> None:
    thread = threading.Event()
    inner = gated.engine.inner

    class Collects(GatedEngine):
        def execute(self, sql: str, keys: int, holes: Mapping[str, object]) -> Exact:
            exact: Exact = inner.execute(sql, keys, holes)
            dataset.close()
            thread.set()
            return exact

    dataset = replace(gated.dataset, engine=Collects(inner, gated.engine.gate))
    assert Session(dataset, sampler=Silence()).execute(COUNT).rows == [(2400,)]
    assert thread.is_set()


def test_the_owners_limits_reach_runs_and_ledger(tmp_path: Path) -> None:
    session, reference = open_shop(tmp_path)
    reference.close()
    session.dataset.close()
    path = tmp_path / "shop.yaml"
    path.write_text(path.read_text() + "limits: {failures: 2, min_latency: 0.2}\n")
    dataset = open_dataset(tmp_path / "shop.yaml")
    session = Session(dataset, sampler=Silence())
    assert (dataset.ledger.failures, dataset.ledger.dataset_failures) == (2, 20)  # type: ignore[attr-defined]
    start = time.monotonic()
    session.execute(COUNT)
    assert time.monotonic() - start >= 0.2
    start = time.monotonic()
    session.execute(COUNT)
    session.explain(COUNT + " WHERE qty > 3")
    with pytest.raises(Error):
        session.execute("SELECT nosuch FROM orders")
    assert time.monotonic() - start < 0.2, "what is stored, explained or refused does not wait"
    dataset.close()


def test_changed_limits_change_no_price_and_no_stored_answer(gated: GatedShop, tmp_path: Path) -> None:
    gated.engine.gate.set()
    gated.session.execute(COUNT)
    path = tmp_path / "shop.yaml"
    path.write_text(path.read_text() + "limits: {memory: 1GB, threads: 1, seconds: 5, failures: 9, min_latency: 0.1}\n")
    dataset = open_dataset(tmp_path / "shop.yaml")
    session = Session(dataset, sampler=Silence())
    assert session.execute(COUNT).loss.rho == 0 and session.budget().charges == 1
    assert dataset.resolved.hash == gated.dataset.resolved.hash
    dataset.close()
