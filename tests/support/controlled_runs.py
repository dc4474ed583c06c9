"""Runs that can be looked at: clocks, engines and ledgers of a test's own, and threads that ask."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dpsql.ledger.base import Account, RunLease
from dpsql.privacy.exact import Exact
from dpsql.privacy.noise import Laplace
from dpsql.privacy.release import NoiseBundle, ReleaseSpec
from dpsql.session.dataset import runs as runs_module
from dpsql.session.dataset.dataset import Dataset
from dpsql.session.dataset.runs import NANOSECONDS_PER_SECOND, Clock, ReleaseJob, Runs
from dpsql.session.session import Session, StatementHandle
from tests.support.shop import Silence, open_shop

SECRET = "Ms Rossi, ward 4"
ANA, BOB = (Account(name, Fraction(1), Fraction(0)) for name in ("ana", "bob"))
SPEC = ReleaseSpec((Fraction(1),), (NoiseBundle((0,), Laplace(Fraction(1))),))
COUNT = "SELECT COUNT(*) AS n FROM orders"
PATIENCE = 20  # seconds that a test waits for what must happen


@dataclass
class Time:
    """A clock that moves by what is done."""

    now: int = 10**15
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += round(seconds * NANOSECONDS_PER_SECOND)

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, self.sleep)


def handle_ending_after(runs: Runs, milliseconds: int) -> StatementHandle:
    """For a statement that begins now; 0: it may wait for ever."""
    return StatementHandle(runs.deadline_after(milliseconds))


@dataclass
class FakeData:
    """Engine, ledger and files in one; `act` is what the engine does before it answers."""

    act: Callable[[], object] = lambda: None
    bodies: dict[int, bytes] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    runs: int = 0
    name: str = "fake"
    check: Callable[[], object] = lambda: None
    full: Exception | None = None
    seconds: float = 600

    @property
    def engine(self) -> Any:
        return self

    @property
    def ledger(self) -> Any:
        return self

    def execute(self, sql: str, key_columns: int, holes: Mapping[str, object]) -> Exact:
        self.runs += 1
        self.act()
        return Exact([(SECRET,)], [np.array([41], np.int64)])

    def check_read(self) -> None:
        self.check()

    def read_body(self, release: int) -> bytes | None:
        return self.bodies.get(release)

    def store_body(self, release: int, body: bytes, errors: object = None) -> bytes:
        if self.full is not None:
            raise self.full
        return self.bodies.setdefault(release, body)

    def begin_run(self, release: int, holder: str, seconds: float) -> RunLease:
        if self.read_body(release) is not None:
            return RunLease("", 0, 0, 0)
        return RunLease(holder, 0, None, round(seconds * 10**6))

    def find_run(self, release: int) -> RunLease | None:
        return None

    def renew_run(self, release: int, holder: str, seconds: float) -> None: ...

    def end_run(self, release: int, holder: str) -> None: ...

    def count_failure(self, account: Account, release: int) -> None:
        self.failures.append(account.name)


def job(release: int = 1) -> ReleaseJob:
    return ReleaseJob(release, "SELECT 1", 1, {}, SPEC, (), Silence())


def raises(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def in_thread(ask: Callable[[], object]) -> tuple[threading.Thread, list[Any]]:
    """Start asking; the list holds what came of it."""
    got: list[Any] = []

    def run() -> None:
        try:
            got.append(ask())
        except BaseException as error:
            got.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, got


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


def press_ctrl_c(after: Callable[[], object]) -> threading.Thread:
    assert threading.current_thread() is threading.main_thread()
    main = threading.main_thread().ident
    assert main is not None

    def press() -> None:
        until(after)
        time.sleep(0.05)  # until the main thread waits
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    return thread


def askers(runs: Runs, release: int = 1) -> int:
    """How many have asked for the run that is under way."""
    return len(runs_module._registry.runs[runs._ledger, release].requesters)


@dataclass
class Gated:
    """A run that has begun and cannot end yet."""

    runs: Runs
    data: FakeData
    gate: threading.Event


@contextmanager
def gated_run() -> Iterator[Gated]:
    gate, data = threading.Event(), FakeData()
    data.act = lambda: gate.wait(PATIENCE)
    yield Gated(Runs(), data, gate)
    gate.set()


@dataclass
class GatedEngine:
    inner: Any
    gate: threading.Event
    began: int = 0
    fails: Exception | None = None

    def execute(self, sql: str, keys: int, holes: Mapping[str, object]) -> Exact:
        self.began += 1
        assert self.gate.wait(PATIENCE)
        if self.fails is not None:
            raise self.fails
        exact: Exact = self.inner.execute(sql, keys, holes)
        return exact

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@dataclass
class GatedShop:
    session: Session
    engine: GatedEngine

    @property
    def dataset(self) -> Dataset:
        return self.session.dataset


@contextmanager
def gated_shop(folder: Path) -> Iterator[GatedShop]:
    """A shop whose engine waits for its gate."""
    session, reference = open_shop(folder)
    reference.close()
    engine = GatedEngine(session.dataset.engine, threading.Event())
    dataset = replace(session.dataset, engine=engine)
    session = Session(dataset, sampler=Silence())
    session.explain(COUNT)  # compiled once, so that a short timeout passes while the engine runs
    yield GatedShop(session, engine)
    engine.gate.set()
    dataset.close()
