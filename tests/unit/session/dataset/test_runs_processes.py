"""Processes that share a ledger share its runs: one runs, the others wait; a killed one is followed by the next."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql.engines.duckdb import DuckDBEngine
from dpsql.errors import EngineFailed, QueryCanceled
from dpsql.ledger.base import Account, Binding, ChargedStatement, ReleaseRequest
from dpsql.ledger.ledger import SqlLedger
from dpsql.privacy.loss import Loss
from dpsql.session.dataset import runs as runs_module
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.dataset.runs import Runs, StatementHandle
from dpsql.session.session import Session
from tests.support.controlled_runs import (
    ANA,
    BOB,
    COUNT,
    PATIENCE,
    FakeData,
    handle_ending_after,
    in_thread,
    job,
    raises,
    until,
)
from tests.support.ledgers import Shelf, in_schema
from tests.support.shop import open_shop

pytestmark = pytest.mark.slow

OWNER = Account("dataset", Fraction(8), Fraction(0))
TESTS = Path(__file__).resolve().parents[3]


@dataclass
class Data(FakeData):
    """An engine of a test's own beside a real ledger. Its `Runs` know of no others: as if in a process of its own."""

    books: Any = None

    @property
    def ledger(self) -> SqlLedger:
        books: SqlLedger = self.books
        return books


@pytest.fixture
def books(shelf: Shelf) -> SqlLedger:
    """A release that ana and bob have paid for, whose number is 1."""
    ledger = shelf.open(Binding("row", "add_remove", 1), OWNER)
    ledger.register_version("files", "facts")
    loss = Loss(Fraction(1, 2), Fraction(1, 8), Fraction(0))
    for account in (ANA, BOB):
        ledger.purchase(
            account, [ReleaseRequest("p", 1, loss, (Fraction(1),))], ChargedStatement("SELECT"), datetime.now(UTC)
        )
    return ledger


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_module, "LEASE_SECONDS", 0.5)
    monkeypatch.setattr(runs_module, "HEARTBEAT_SECONDS", 0.1)
    monkeypatch.setattr(runs_module, "POLL_SECONDS", 0.02)


def test_one_runs_and_the_other_waits_for_it(books: SqlLedger, gate: threading.Event, brief: None) -> None:
    """For longer than a lease, which the one keeps."""
    one, other = Data(lambda: gate.wait(PATIENCE), books=books), Data(books=books)
    asked = [in_thread(lambda: Runs().run_release(one, job(), ANA, StatementHandle()))]
    until(lambda: one.runs)
    asked.append(in_thread(lambda: Runs().run_release(other, job(), BOB, StatementHandle())))
    time.sleep(3 * runs_module.LEASE_SECONDS)
    assert other.runs == 0 and not asked[1][1]
    gate.set()
    for thread, _ in asked:
        thread.join(PATIENCE)
    assert [got for _, got in asked] == [[books.read_body(1)]] * 2 and (one.runs, other.runs) == (1, 0)


def test_a_wait_for_another_process_may_be_canceled(books: SqlLedger, brief: None) -> None:
    books.begin_run(1, "elsewhere", 60)
    data, runs = Data(books=books), Runs()
    with pytest.raises(QueryCanceled):
        runs.run_release(data, job(), ANA, handle_ending_after(runs, 50))
    books.end_run(1, "elsewhere")
    until(lambda: books.read_body(1))
    assert data.runs == 1, "the run went on, and was ours when the other had failed"
    runs.wait_until_idle()


def test_one_that_was_killed_is_followed_when_its_time_is_over_and_not_before(books: SqlLedger, brief: None) -> None:
    books.begin_run(1, "killed", 0.4)
    data, start = Data(books=books), time.monotonic()
    assert Runs().run_release(data, job(), ANA, StatementHandle()) == books.read_body(1)
    assert data.runs == 1 and time.monotonic() - start > 0.3


def test_a_failure_is_reported_where_it_happened_and_the_other_runs_itself(
    books: SqlLedger, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once: a lease that was ended is not waited for."""
    monkeypatch.setattr(runs_module, "LEASE_SECONDS", 10 * PATIENCE)
    one, other = Data(lambda: gate.wait(PATIENCE) and raises(EngineFailed("x"))(), books=books), Data(books=books)
    asked = [in_thread(lambda: Runs().run_release(one, job(), ANA, StatementHandle()))]
    until(lambda: one.runs)
    asked.append(in_thread(lambda: Runs().run_release(other, job(), BOB, StatementHandle())))
    time.sleep(0.1)
    gate.set()
    for thread, _ in asked:
        thread.join(PATIENCE)
    (failed,), (body,) = (got for _, got in asked)
    assert isinstance(failed, EngineFailed) and body == books.read_body(1) and (one.runs, other.runs) == (1, 1)
    assert (books.failures_of(ANA).counted, books.failures_of(BOB).counted) == (1, 0)


class TestGrid:
    """A run of 0.1 s, whose end is to be seen after one second."""

    GRID = Fraction(1)

    def began(self, books: SqlLedger) -> float:
        start = time.monotonic()
        books.begin_run(1, "elsewhere", 60)
        time.sleep(0.1)
        books.store_body(1, b"rows")
        return start

    def test_a_body_that_another_process_has_stored_is_shown_on_the_grid(self, books: SqlLedger) -> None:
        start = self.began(books)
        runs = Runs(self.GRID)
        with pytest.raises(QueryCanceled):
            runs.join_run(Data(books=books), 1, ANA, handle_ending_after(runs, 50))
        assert runs.join_run(Data(books=books), 1, ANA, StatementHandle()) is None  # now its claim's body may be used
        assert 0.95 < time.monotonic() - start < 5
        again = time.monotonic()
        runs.join_run(Data(books=books), 1, ANA, StatementHandle())
        assert time.monotonic() - again < 0.5, "what was seen once is seen"

    def test_the_end_is_reported_on_the_grid(self, books: SqlLedger) -> None:
        start = self.began(books)
        data = Data(books=books)
        assert Runs(self.GRID).run_release(data, job(), ANA, StatementHandle()) == b"rows" and data.runs == 0
        assert time.monotonic() - start > 0.95

    def test_the_end_is_reported_on_the_grid_to_other_processes_too(
        self, books: SqlLedger, gate: threading.Event, brief: None
    ) -> None:
        one, other = Data(lambda: gate.wait(PATIENCE), books=books), Data(books=books)
        start = time.monotonic()
        asked = [in_thread(lambda: (Runs(self.GRID).run_release(one, job(), ANA, StatementHandle()), time.monotonic()))]
        until(lambda: one.runs)
        asked.append(
            in_thread(lambda: (Runs(self.GRID).run_release(other, job(), BOB, StatementHandle()), time.monotonic()))
        )
        time.sleep(0.2)
        gate.set()
        for thread, _ in asked:
            thread.join(PATIENCE)
        ends = [got[0][1] - start for _, got in asked]
        assert all(0.95 < end < 10 for end in ends) and abs(ends[0] - ends[1]) < 0.9 and other.runs == 0

    def test_a_failure_elsewhere_is_not_seen_before_either(self, books: SqlLedger, brief: None) -> None:
        start = time.monotonic()
        books.begin_run(1, "elsewhere", 60)
        books.end_run(1, "elsewhere")
        began: list[float] = []
        data = Data(lambda: began.append(time.monotonic()), books=books)
        Runs(self.GRID).run_release(data, job(), ANA, StatementHandle())
        assert began[0] - start > 0.95


# --- real ones -------------------------------------------------------------------------------------------------------

ASKING = """
import sys, time
from pathlib import Path
from dpsql.session.dataset import runs
from dpsql.session.dataset.dataset import open_dataset
from dpsql.engines.duckdb import DuckDBEngine
from dpsql.session.session import Session

schema, seconds = Path(sys.argv[1]), float(sys.argv[2])
runs.LEASE_SECONDS, runs.HEARTBEAT_SECONDS = 1.5, 0.3
real = DuckDBEngine.execute
def execute(self, *args):
    print("running", flush=True)
    time.sleep(seconds)
    return real(self, *args)
DuckDBEngine.execute = execute
session = Session(open_dataset(schema))
print(session.execute("SELECT COUNT(*) AS n FROM orders").rows, flush=True)
session.dataset.close()
"""


@pytest.fixture
def schema(shelf: Shelf, tmp_path: Path) -> Path:
    session, reference = open_shop(tmp_path)
    reference.close()
    session.dataset.close()
    path = tmp_path / "shop.yaml"
    path.write_text(in_schema(path.read_text(), shelf.url()))
    return path


@pytest.mark.parametrize("killed", [False, True])
def test_in_processes(schema: Path, monkeypatch: pytest.MonkeyPatch, killed: bool) -> None:
    ran: list[str] = []
    real = DuckDBEngine.execute
    monkeypatch.setattr(DuckDBEngine, "execute", lambda self, *args: ran.append("here") or real(self, *args))
    command = [sys.executable, "-c", ASKING, str(schema), "60" if killed else "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=TESTS.parent, env=os.environ) as there:
        assert there.stdout is not None and there.stdout.readline() == "running\n"
        if killed:
            there.send_signal(signal.SIGKILL)
        session = Session(open_dataset(schema))
        rows = session.execute(COUNT).rows
        said = there.stdout.read()
    assert ran == (["here"] if killed else []), "one run for a charge, unless it was lost"
    assert said == ("" if killed else f"{rows}\n") and session.budget().charges == 1
    session.dataset.close()
