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
from dpsql.session.session import Session
from tests.support.controlled_runs import (
    COUNT,
    PATIENCE,
    SECRET,
    GatedEngine,
    House,
    gated_house,
    in_thread,
    press_ctrl_c,
    until,
)
from tests.support.shop import Silence, open_shop


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with gated_house(tmp_path) as opened:
        yield opened


def test_cancel_and_ask_again(house: House) -> None:
    thread, got = in_thread(lambda: house.session.execute(COUNT))
    until(lambda: house.engine.began)
    house.session.cancel()
    thread.join(PATIENCE)
    assert isinstance(got[0], QueryCanceled) and got[0].statement == COUNT
    charges = house.session.budget().charges
    house.engine.gate.set()
    answer = house.session.execute(COUNT)
    assert answer.rows == [(2400,)] and answer.loss.rho == 0
    assert house.engine.began == 1 and house.session.budget().charges == charges == 1
    house.session.cancel()  # nothing waits
    assert house.session.execute(COUNT).rows == [(2400,)]


def test_statement_timeout(house: House) -> None:
    house.session.execute("SET statement_timeout = '250ms'")
    for _ in range(4):  # more than the failures that suspend
        with pytest.raises(QueryCanceled, match="due to statement timeout") as caught:
            house.session.execute(COUNT)
        assert caught.value.hint == DETACHED_HINT
    house.engine.gate.set()
    house.session.execute("SET statement_timeout = 0")
    assert house.session.execute(COUNT).rows == [(2400,)]
    assert house.engine.began == 1


def test_a_statement_that_is_canceled_before_its_charge_is_not_charged(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dataset, "check_current", lambda self: house.session.cancel())
    with pytest.raises(QueryCanceled) as caught:
        house.session.execute(COUNT)
    assert caught.value.hint is None
    assert house.session.budget().charges == 0 and house.engine.began == 0


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads here")
def test_ctrl_c_four_times_and_no_account_is_suspended(house: House) -> None:
    for _ in range(4):
        pressing = press_ctrl_c(lambda: house.engine.began)
        with pytest.raises(KeyboardInterrupt):
            house.session.execute(COUNT)
        pressing.join(PATIENCE)
    house.engine.gate.set()
    assert house.session.execute(COUNT).rows == [(2400,)]
    assert house.engine.began == 1


def test_failures_of_runs_that_were_left_are_counted_once_each(house: House) -> None:
    house.engine.fails = MemoryError(SECRET)
    house.session.execute("SET statement_timeout = '250ms'")
    for _ in range(4):
        with pytest.raises(QueryCanceled):
            house.session.execute(COUNT)
    house.engine.gate.set()
    house.dataset.runs.wait_until_idle()
    house.session.execute("SET statement_timeout = 0")
    for _ in range(2):
        with pytest.raises(EngineFailed):
            house.session.execute(COUNT)
    with pytest.raises(AccountSuspended):
        house.session.execute(COUNT)
    assert house.engine.began == 3


def test_closing_waits_for_what_runs(house: House) -> None:
    house.session.execute("SET statement_timeout = '250ms'")
    with pytest.raises(QueryCanceled):
        house.session.execute(COUNT)
    closing, got = in_thread(house.dataset.close)
    time.sleep(0.1)
    assert got == [] and closing.is_alive()
    house.engine.gate.set()
    closing.join(PATIENCE)
    assert got == [None]
    assert house.dataset.ledger.read_body(1) is not None


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


def test_a_dataset_that_is_collected_on_a_runs_own_thread_does_not_wait_for_itself(house: House) -> None:
    thread = threading.Event()
    inner = house.engine.inner

    class Collects(GatedEngine):
        def execute(self, sql: str, keys: int, holes: Mapping[str, object]) -> Exact:
            exact: Exact = inner.execute(sql, keys, holes)
            dataset.close()
            thread.set()
            return exact

    dataset = replace(house.dataset, engine=Collects(inner, house.engine.gate))
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


def test_changed_limits_change_no_price_and_no_stored_answer(house: House, tmp_path: Path) -> None:
    house.engine.gate.set()
    house.session.execute(COUNT)
    path = tmp_path / "shop.yaml"
    path.write_text(path.read_text() + "limits: {memory: 1GB, threads: 1, seconds: 5, failures: 9, min_latency: 0.1}\n")
    dataset = open_dataset(tmp_path / "shop.yaml")
    session = Session(dataset, sampler=Silence())
    assert session.execute(COUNT).loss.rho == 0 and session.budget().charges == 1
    assert dataset.resolved.hash == house.dataset.resolved.hash
    dataset.close()
