"""The datasets that are open on one ledger know of each other's runs; a process has room for so many of them."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.engines.duckdb import DuckDBEngine
from dpsql.errors import AccountSuspended, EngineFailed, OperationalError, QueryCanceled
from dpsql.ledger.base import Account, Binding, Entitlement, Receipt
from dpsql.ledger.open import open_ledger
from dpsql.privacy.exact import Exact
from dpsql.privacy.loss import NO_LOSS
from dpsql.session.dataset import runs as runs_module
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.dataset.runs import DETACHED_HINT, MAX_RUNS, QUEUED_HINT, Clock, Runs, StatementHandle
from dpsql.session.session import Session
from tests.support.controlled_runs import (
    ANA,
    BOB,
    COUNT,
    PATIENCE,
    FakeData,
    askers,
    handle_ending_after,
    in_thread,
    job,
    raises,
    until,
)
from tests.support.shop import Silence, open_shop

# --- one registry for a ledger ---------------------------------------------------------------------------------------


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


PAID = Receipt("ana", 1, "hash")


def test_runs_of_one_ledger_are_joined_and_others_are_not(gate: threading.Event) -> None:
    data, other = FakeData(lambda: gate.wait(PATIENCE)), FakeData(lambda: gate.wait(PATIENCE))
    one, same, else_ = Runs(ledger="a"), Runs(ledger="a"), Runs(ledger="b")
    asked = [in_thread(lambda: one.run_release(data, job(), ANA, StatementHandle()))]
    until(lambda: data.runs)
    asked.append(in_thread(lambda: same.run_release(other, job(), BOB, StatementHandle())))
    asked.append(in_thread(lambda: same.join_run(other, 1, BOB, StatementHandle())))
    assert (
        else_.join_run(other, 1, BOB, StatementHandle()) is None
        and Runs().join_run(other, 1, BOB, StatementHandle()) is None
    )
    until(lambda: askers(one) == 2)
    gate.set()
    for thread, _ in asked:
        thread.join(PATIENCE)
    assert [got for _, got in asked] == [[data.bodies[1]]] * 3 and other.runs == 0


def test_a_failure_is_counted_in_the_ledger_of_whom_it_is_reported(gate: threading.Event) -> None:
    """Two datasets may have been opened with other budgets of one account, by which a ledger knows it."""
    data, other = FakeData(), FakeData()
    data.act = lambda: gate.wait(PATIENCE) and raises(EngineFailed("x"))()
    one, same = Runs(ledger="a"), Runs(ledger="a")
    asked = [in_thread(lambda: one.run_release(data, job(), ANA, StatementHandle()))]
    until(lambda: data.runs)
    asked.append(in_thread(lambda: same.run_release(other, job(), BOB, StatementHandle())))
    until(lambda: askers(one) == 2)
    gate.set()
    for thread, _ in asked:
        thread.join(PATIENCE)
    assert (data.failures, other.failures) == (["ana"], ["bob"])


def test_a_ledger_is_the_same_by_any_path_and_its_copy_is_another(tmp_path: Path) -> None:
    binding, owner = Binding("t.id", "add_remove", 1), Account("dataset", Fraction(1), Fraction(0))

    def identity(name: str) -> object:
        return open_ledger(f"sqlite://{tmp_path / name}", binding, owner).identity

    first = identity("a.ledger")
    (tmp_path / "soft.ledger").symlink_to(tmp_path / "a.ledger")
    os.link(tmp_path / "a.ledger", tmp_path / "hard.ledger")
    shutil.copy(tmp_path / "a.ledger", tmp_path / "copy.ledger")
    assert first == identity("a.ledger") == identity("soft.ledger") == identity("hard.ledger")
    assert first != identity("copy.ledger") and first != identity("new.ledger")


# --- several connections ---------------------------------------------------------------------------------------------


@dataclass
class Shop:
    """A schema's file; every engine that is opened on it waits for the gate."""

    path: Path
    gate: threading.Event
    began: list[DuckDBEngine] = field(default_factory=list)
    failing: bool = False

    def session(self) -> Session:
        session = Session(open_dataset(self.path), sampler=Silence())
        session.explain(COUNT)  # compiled once, so that a short timeout passes while the engine runs
        return session

    def leave(self, session: Session) -> None:
        """Ask, and be gone when the run has begun."""
        thread, got = in_thread(lambda: session.execute(COUNT))
        until(lambda: self.began)
        session.cancel()
        thread.join(PATIENCE)
        assert isinstance(got[0], QueryCanceled) and got[0].hint == DETACHED_HINT


@pytest.fixture
def shop(tmp_path: Path, gate: threading.Event, monkeypatch: pytest.MonkeyPatch) -> Shop:
    session, reference = open_shop(tmp_path)
    reference.close()
    session.dataset.close()
    made, real = Shop(tmp_path / "shop.yaml", gate), DuckDBEngine.execute

    def execute(self: DuckDBEngine, sql: str, keys: int, holes: Mapping[str, object]) -> Exact:
        made.began.append(self)
        assert gate.wait(PATIENCE)
        if made.failing:
            raise EngineFailed("x")
        return real(self, sql, keys, holes)

    monkeypatch.setattr(DuckDBEngine, "execute", execute)
    return made


def test_cancels_and_polls_from_fresh_connections_start_no_other_run(shop: Shop) -> None:
    first = shop.session()
    shop.leave(first)
    for _ in range(3):
        polling = shop.session()
        polling.execute("SET statement_timeout = '250ms'")
        with pytest.raises(QueryCanceled):
            polling.execute(COUNT)
        assert len(shop.began) == 1
        closing, _ = in_thread(polling.dataset.close)  # it waits for what it joined
    shop.gate.set()
    last = shop.session()
    assert last.execute(COUNT).rows == [(2400,)] and last.budget().charges == 1
    assert len(shop.began) == 1
    closing.join(PATIENCE)
    for session in (first, last):
        session.dataset.close()


def test_a_stored_release_is_held_back_from_other_connections_too(shop: Shop) -> None:
    shop.path.write_text(shop.path.read_text() + "limits: {min_latency: 1.5}\n")
    shop.gate.set()
    with dpsql.connect(shop.path) as one, dpsql.connect(shop.path) as other:
        thread, _ = in_thread(lambda: one.cursor().execute(COUNT))
        until(lambda: shop.began)
        start = time.monotonic()
        until(lambda: one._session.dataset.ledger.read_body(1))
        stored = time.monotonic() - start
        other.cursor().execute(COUNT)
        seen = time.monotonic() - start
        thread.join(PATIENCE)
    assert len(shop.began) == 1
    assert seen > 1.3 or stored > 1.3, "seen before the next multiple of the grid"


def test_failures_of_a_run_that_two_connections_joined_are_counted_once(shop: Shop) -> None:
    shop.failing = True
    one, other = shop.session(), shop.session()
    for _ in range(3):
        shop.gate.clear()
        shop.began.clear()
        asked = [in_thread(lambda: one.execute(COUNT))]
        until(lambda: shop.began)
        asked.append(in_thread(lambda: other.execute(COUNT)))
        until(lambda: len(next(iter(runs_module._registry.runs.values())).followed) == 2)
        shop.gate.set()
        for thread, got in asked:
            thread.join(PATIENCE)
            assert isinstance(got[0], EngineFailed)
    for session in (one, other):
        with pytest.raises(AccountSuspended):
            session.execute(COUNT)
        session.dataset.close()


# --- closing ---------------------------------------------------------------------------------------------------------


def test_closing_waits_for_ones_own_runs_and_not_for_those_of_others(shop: Shop) -> None:
    began, joined, stranger = shop.session(), shop.session(), shop.session()
    shop.leave(began)
    joined.execute("SET statement_timeout = '250ms'")
    with pytest.raises(QueryCanceled):
        joined.execute(COUNT)
    stranger.dataset.close()  # at once
    closing = [in_thread(session.dataset.close) for session in (began, joined)]
    time.sleep(0.1)
    assert all(thread.is_alive() for thread, _ in closing)
    late = shop.session()
    asking, rows = in_thread(lambda: late.execute(COUNT).rows)
    shop.gate.set()
    for thread, _ in [*closing, (asking, rows)]:
        thread.join(PATIENCE)
    assert [got for _, got in closing] == [[None], [None]]
    assert rows == [[(2400,)]] and len(shop.began) == 1, "the engine was not closed under the run that others joined"
    assert late.execute("SELECT SUM(qty) AS s FROM orders").rows, "the others go on"
    late.dataset.close()


def test_nothing_is_kept_of_runs_that_have_ended(shop: Shop) -> None:
    shop.gate.set()
    session = shop.session()
    session.execute(COUNT)
    session.dataset.close()
    assert not any(session.dataset.runs in run.followed for run in runs_module._registry.runs.values())


# --- a forked child --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("locked", [False, True])
def test_a_forked_child_waits_for_no_run_of_its_parent(
    shop: Shop, locked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    session = shop.session()
    spills = list(tmp_path.glob("dpsql-spill-*"))
    shop.leave(session)
    if locked:
        runs_module._registry.changed.acquire()
    child = os.fork()
    if child == 0:  # nothing of pytest may run here
        status = 1
        try:
            session.dataset.close()
            status = 0 if session.dataset.runs.join_run(FakeData(), 1, ANA, StatementHandle()) is None else 2
        finally:
            os._exit(status)
    if locked:
        runs_module._registry.changed.release()
    ended: list[Any] = []

    def has_ended() -> bool:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            ended.append(os.waitstatus_to_exitcode(status))
        return bool(ended)

    try:
        until(has_ended)
    finally:
        if not ended:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    assert ended == [0]
    assert spills and all(folder.exists() for folder in spills), "the parent still spills there"
    shop.gate.set()
    assert session.execute(COUNT).rows == [(2400,)] and len(shop.began) == 1
    session.dataset.close()


# --- room for so many ------------------------------------------------------------------------------------------------


@dataclass
class Crowd:
    """As many runs as there may be, which began on another ledger and cannot end yet."""

    data: FakeData
    end: Callable[[], None]


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Crowd]:
    gate = threading.Event()
    data, runs = FakeData(lambda: gate.wait(PATIENCE)), Runs()

    def end() -> None:
        gate.set()
        runs.wait_until_idle(PATIENCE)

    for release in range(MAX_RUNS):
        with pytest.raises(QueryCanceled):  # who leaves leaves a thread behind
            runs.run_release(data, job(release), ANA, handle_ending_after(runs, 1))
    yield Crowd(data, end)
    end()


def threads() -> int:
    return sum(thread.name.startswith("dpsql-run-") for thread in threading.enumerate())


def test_a_query_that_needs_one_run_too_many_is_refused_before_the_charge(shop: Shop, crowd: Crowd) -> None:
    session = shop.session()
    with pytest.raises(OperationalError, match="too many queries are running: 32") as caught:
        session.execute(COUNT)
    assert type(caught.value) is OperationalError and caught.value.sqlstate == "53300"
    assert session.budget().charges == 0 and shop.began == [] and threads() == MAX_RUNS
    crowd.end()
    shop.gate.set()
    assert session.execute(COUNT).rows == [(2400,)] and session.budget().charges == 1
    session.dataset.close()


def test_what_is_stored_or_under_way_needs_no_quota(crowd: Crowd) -> None:
    runs, data = Runs(ledger="a"), FakeData(bodies={1: b"stored"})
    runs.admit_runs([Entitlement(1, b"stored", False, NO_LOSS, (), PAID)])
    with pytest.raises(OperationalError):
        runs.admit_runs(
            [Entitlement(1, b"stored", False, NO_LOSS, (), PAID), Entitlement(2, None, True, NO_LOSS, (), PAID)]
        )
    runs_module._registry.runs["a", 2] = runs_module._Run(0)
    try:
        runs.admit_runs([Entitlement(2, None, True, NO_LOSS, (), PAID)])
    finally:
        del runs_module._registry.runs["a", 2]
    assert data.runs == 0


def test_what_was_paid_for_waits_for_room(crowd: Crowd) -> None:
    """Two charges may have been admitted to the last place."""
    runs, data = Runs(), FakeData()
    with pytest.raises(QueryCanceled) as caught:
        runs.run_release(data, job(), ANA, handle_ending_after(runs, 30))
    assert caught.value.hint == QUEUED_HINT and data.runs == 0 and threads() == MAX_RUNS
    thread, got = in_thread(lambda: runs.run_release(data, job(), ANA, StatementHandle()))
    crowd.end()
    thread.join(PATIENCE)
    assert got == [data.bodies[1]] and data.runs == 1


def test_the_visible_number_of_runs_follows_the_grid() -> None:
    """Else how many may still run would tell that a run has ended, before that is shown."""
    held, data = threading.Event(), FakeData()
    runs = Runs(Fraction(1), Clock(sleep=lambda seconds: held.wait(PATIENCE) and None))
    before = len(runs_module._registry.runs)
    thread, _ = in_thread(lambda: runs.run_release(data, job(), ANA, StatementHandle()))
    until(lambda: data.bodies)
    assert len(runs_module._registry.runs) == before + 1
    held.set()
    thread.join(PATIENCE)
    runs.wait_until_idle(PATIENCE)
    assert len(runs_module._registry.runs) == before
