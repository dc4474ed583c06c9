"""Who asked may leave, and the run goes on: once for a charge, stored, and seen to end on the owner's grid."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.shop import Silence, open_shop

from dpsql.dataset import Dataset, open_dataset
from dpsql.engines import duckdb as duckdb_engine
from dpsql.engines.base import FAILED, FAILED_HINT
from dpsql.errors import AccountSuspended, EngineFailed, Error, OperationalError, QueryCanceled, StaleData
from dpsql.exact import Exact
from dpsql.ledger.base import Account
from dpsql.privacy.mechanisms import Laplace
from dpsql.privacy.release import Bundle, Spec, from_bytes
from dpsql.runs import CLOSED, DETACHED, SECOND, Clock, Job, Runs, Ticket
from dpsql.session import Session

SECRET = "Ms Rossi, ward 4"
ANA, BOB = (Account(name, Fraction(1), Fraction(0)) for name in ("ana", "bob"))
SPEC = Spec((Fraction(1),), (Bundle((0,), Laplace(Fraction(1))),))
COUNT = "SELECT COUNT(*) AS n FROM orders"
PATIENCE = 20  # seconds that a test waits for what must happen


@dataclass
class Time:
    """A clock that moves by what is done."""

    now: int = 10**15
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += round(seconds * SECOND)

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, self.sleep)


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

    def check_unchanged(self) -> None:
        self.check()

    def stored(self, release: int) -> bytes | None:
        return self.bodies.get(release)

    def store(self, release: int, body: bytes, errors: object = None) -> bytes:
        if self.full is not None:
            raise self.full
        return self.bodies.setdefault(release, body)

    def failed(self, account: Account, release: int) -> None:
        self.failures.append(account.name)


def job(release: int = 1) -> Job:
    return Job(release, "SELECT 1", 1, {}, SPEC, (), Silence())


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


# --- the grid --------------------------------------------------------------------------------------------------------

OUTCOMES: list[Callable[[FakeData], None]] = [
    lambda data: None,
    lambda data: data.bodies.update({1: b"stored"}),
    lambda data: setattr(data, "fails", EngineFailed("x")),
    lambda data: setattr(data, "fails", MemoryError(SECRET)),
    lambda data: setattr(data, "fails", KeyboardInterrupt()),
    lambda data: setattr(data, "check", raises(StaleData("the data changed"))),
    lambda data: setattr(data, "check", raises(RuntimeError(SECRET))),
    lambda data: setattr(data, "full", OperationalError("the disk is full")),
]


@settings(max_examples=200, deadline=None)
@given(
    took=st.one_of(st.integers(0, 20 * SECOND), st.integers(0, 40).map(lambda n: n * SECOND // 2)),
    grid=st.sampled_from([Fraction(1, 2), Fraction(1, 10), Fraction(1, 3), Fraction(7)]),
    outcome=st.integers(0, len(OUTCOMES) - 1),
)
def test_a_run_takes_a_multiple_of_the_grid_whatever_it_took_and_however_it_ended(
    took: int, grid: Fraction, outcome: int
) -> None:
    world, data = Time(), FakeData()
    OUTCOMES[outcome](data)

    def act() -> None:
        world.now += took
        if (error := getattr(data, "fails", None)) is not None:
            raise error

    data.act = act
    start, step = world.now, -(-grid.numerator * SECOND // grid.denominator)
    runs = Runs(grid, world.clock)
    with suppress(Error):
        runs.run(data, job(), ANA, runs.ticket(0))
    elapsed = world.now - start
    assert elapsed % step == 0 and elapsed >= max(step, took if data.runs else 0) and elapsed < took + 2 * step


def test_without_a_grid_nobody_sleeps() -> None:
    world, data = Time(), FakeData()
    Runs(Fraction(0), world.clock).run(data, job(), ANA, Ticket())
    assert world.slept == []


def test_who_asks_again_and_again_sees_the_end_no_sooner(request: pytest.FixtureRequest) -> None:
    """The release is stored; that it is so must not show before the next multiple of the grid."""
    held, data = threading.Event(), FakeData()
    request.addfinalizer(held.set)
    runs = Runs(Fraction(1), Clock(sleep=lambda seconds: held.wait(PATIENCE) and None))
    first, got = in_thread(lambda: runs.run(data, job(), ANA, Ticket()))
    until(lambda: data.bodies)
    for _ in range(3):
        with pytest.raises(QueryCanceled):
            runs.join(1, ANA, runs.ticket(20))
        with pytest.raises(QueryCanceled):
            runs.run(data, job(), BOB, runs.ticket(20))
    assert got == []
    held.set()
    first.join(PATIENCE)
    assert got == [data.bodies[1]] and data.runs == 1
    assert runs.join(1, ANA, Ticket()) is None


# --- one run for a charge --------------------------------------------------------------------------------------------


def test_who_asks_meanwhile_waits_for_the_same_run() -> None:
    gate, data, runs = threading.Event(), FakeData(), Runs()
    data.act = lambda: gate.wait(PATIENCE)
    asked = [in_thread(lambda: runs.run(data, job(), ANA, Ticket())) for _ in range(4)]
    until(lambda: data.runs)
    asked.append(in_thread(lambda: runs.join(1, BOB, Ticket())))
    other = in_thread(lambda: runs.run(data, job(2), ANA, Ticket()))
    until(lambda: data.runs == 2)
    gate.set()
    for thread, _ in [*asked, other]:
        thread.join(PATIENCE)
    assert [got for _, got in asked] == [[data.bodies[1]]] * 5
    assert data.runs == 2, "one for each release"


def test_what_was_stored_since_the_charge_is_not_run_again() -> None:
    data, runs = FakeData(bodies={1: b"by another run"}), Runs()
    assert runs.run(data, job(), ANA, Ticket()) == b"by another run"
    assert data.runs == 0


def test_after_a_failure_it_is_run_again() -> None:
    data, runs = FakeData(raises(EngineFailed("x"))), Runs()
    with pytest.raises(EngineFailed):
        runs.run(data, job(), ANA, Ticket())
    data.act = lambda: None
    assert from_bytes(runs.run(data, job(), ANA, Ticket())).cells[0].tolist() == [41]
    assert data.runs == 2


# --- who leaves ------------------------------------------------------------------------------------------------------


@dataclass
class Gated:
    """A run that has begun and cannot end yet."""

    runs: Runs
    data: FakeData
    gate: threading.Event


@pytest.fixture
def gated(request: pytest.FixtureRequest) -> Gated:
    gate, data = threading.Event(), FakeData()
    request.addfinalizer(gate.set)
    data.act = lambda: gate.wait(PATIENCE)
    return Gated(Runs(), data, gate)


def test_a_cancel_lets_go_the_one_statement_and_the_run_goes_on(gated: Gated) -> None:
    ticket, runs, data = Ticket(), gated.runs, gated.data
    thread, got = in_thread(lambda: runs.run(data, job(), ANA, ticket))
    other, other_got = in_thread(lambda: runs.run(data, job(), ANA, Ticket()))
    until(lambda: data.runs)
    runs.cancel(ticket)
    thread.join(PATIENCE)
    (error,) = got
    assert isinstance(error, QueryCanceled) and error.sqlstate == "57014"
    assert error.message == "canceling statement due to user request" and error.hint == DETACHED
    assert other_got == [] and data.bodies == {}
    gated.gate.set()
    other.join(PATIENCE)
    assert other_got == [data.bodies[1]] and data.runs == 1 and data.failures == []


def test_a_timeout_lets_go_too(gated: Gated) -> None:
    with pytest.raises(QueryCanceled, match="due to statement timeout") as caught:
        gated.runs.run(gated.data, job(), ANA, gated.runs.ticket(30))
    assert caught.value.hint == DETACHED
    gated.gate.set()
    assert gated.runs.run(gated.data, job(), ANA, gated.runs.ticket(30_000)) == gated.data.bodies[1]
    assert gated.data.runs == 1 and gated.data.failures == []


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


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads here")
def test_ctrl_c_lets_go_at_once(gated: Gated) -> None:
    pressing = press_ctrl_c(lambda: gated.data.runs)
    with pytest.raises(KeyboardInterrupt):
        gated.runs.run(gated.data, job(), ANA, Ticket())
    pressing.join(PATIENCE)
    assert gated.data.bodies == {}
    gated.gate.set()
    assert gated.runs.run(gated.data, job(), ANA, Ticket()) == gated.data.bodies[1]
    assert gated.data.runs == 1 and gated.data.failures == []


# --- failures --------------------------------------------------------------------------------------------------------


def test_a_failure_counts_once_for_everyone_who_asked(gated: Gated) -> None:
    def act() -> None:
        gated.gate.wait(PATIENCE)
        raise MemoryError(SECRET)

    gated.data.act = act
    for _ in range(3):  # and leaves
        with pytest.raises(QueryCanceled):
            gated.runs.run(gated.data, job(), ANA, gated.runs.ticket(10))
    asked = [in_thread(lambda who=who: gated.runs.run(gated.data, job(), who, Ticket())) for who in (ANA, BOB, BOB)]
    until(lambda: len(next(iter(gated.runs._under_way.values())).asked) == 2)
    assert gated.data.failures == []
    gated.gate.set()
    for thread, _ in asked:
        thread.join(PATIENCE)
    assert gated.data.failures == ["ana", "bob"] and gated.data.runs == 1
    errors = [got[0] for _, got in asked]
    assert {str(error) for error in errors} == {f"{FAILED}\nHINT:  {FAILED_HINT}"}
    assert len({id(error) for error in errors}) == 3, "each has an error of its own"


def test_who_comes_between_a_failure_and_its_end_is_counted_too(request: pytest.FixtureRequest) -> None:
    held, data = threading.Event(), FakeData(raises(EngineFailed("x")))
    request.addfinalizer(held.set)
    runs = Runs(Fraction(1), Clock(sleep=lambda seconds: held.wait(PATIENCE) and None))
    first, _ = in_thread(lambda: runs.run(data, job(), ANA, Ticket()))
    until(lambda: data.failures == ["ana"])
    second, got = in_thread(lambda: runs.run(data, job(), BOB, Ticket()))
    until(lambda: len(next(iter(runs._under_way.values())).asked) == 2)
    held.set()
    for thread in (first, second):
        thread.join(PATIENCE)
    assert isinstance(got[0], EngineFailed) and data.failures == ["ana", "bob"] and data.runs == 1


def values_of(error: BaseException) -> Iterator[object]:
    """All that the frames of an exception hold, and what they hold."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals["__name__"].startswith("dpsql"):
            for value in trace.tb_frame.f_locals.values():
                yield value
                yield from vars(value).values() if hasattr(value, "__dict__") else ()
        trace = trace.tb_next


@pytest.mark.parametrize("fails", [MemoryError(SECRET), EngineFailed(SECRET), ValueError(SECRET), Error(SECRET)])
@pytest.mark.parametrize("where", ["act", "check"])
def test_an_error_has_one_text_and_carries_no_rows(
    fails: Exception, where: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda args: pytest.fail("the thread's hook prints"))
    data, runs = FakeData(), Runs()
    setattr(data, where, raises(fails))
    try:
        try:
            raise LookupError("what the caller does is no context either")
        except LookupError:
            pass
        runs.run(data, job(), ANA, Ticket())
    except Error as error:
        assert str(error) == f"{FAILED}\nHINT:  {FAILED_HINT}" and type(error) is EngineFailed
        assert error.__cause__ is None and error.__context__ is None
        assert not any(isinstance(value, Exact) or SECRET in repr(value) for value in values_of(error))
    else:
        raise AssertionError("no error")
    assert data.failures == ["ana"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("error", [StaleData("it changed", hint="Wait."), OperationalError("the disk is full")])
def test_what_is_no_failure_is_told_and_not_counted(error: Error) -> None:
    data, runs = FakeData(), Runs()
    if isinstance(error, StaleData):
        data.check = raises(error)
    else:
        data.full = error
    with pytest.raises(type(error), match=error.message) as caught:
        runs.run(data, job(), ANA, Ticket())
    assert caught.value is not error and str(caught.value) == str(error)
    assert caught.value.__context__ is None and data.failures == []


def test_a_run_whose_engine_was_closed_is_nobodys_failure(capfd: pytest.CaptureFixture[str]) -> None:
    data, runs = FakeData(raises(KeyboardInterrupt())), Runs()
    with pytest.raises(QueryCanceled, match=CLOSED):
        runs.run(data, job(), ANA, Ticket())
    assert data.failures == [] and capfd.readouterr() == ("", "")


def test_a_store_that_breaks_in_an_unforeseen_way_leaves_nobody_waiting(capfd: pytest.CaptureFixture[str]) -> None:
    data, runs = FakeData(full=RuntimeError(SECRET)), Runs()
    with pytest.raises(EngineFailed) as caught:
        runs.run(data, job(), ANA, Ticket())
    assert caught.value.__context__ is None and capfd.readouterr() == ("", "")
    runs.finish()


# --- a session and its dataset ---------------------------------------------------------------------------------------


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
class House:
    session: Session
    engine: GatedEngine

    @property
    def dataset(self) -> Dataset:
        return self.session.dataset


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    session, reference = open_shop(tmp_path)
    reference.close()
    engine = GatedEngine(session.dataset.engine, threading.Event())
    dataset = replace(session.dataset, engine=engine)
    session = Session(dataset, sampler=Silence())
    session.explain(COUNT)  # compiled once, so that a short timeout passes while the engine runs
    yield House(session, engine)
    engine.gate.set()
    dataset.close()


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
        assert caught.value.hint == DETACHED
    house.engine.gate.set()
    house.session.execute("SET statement_timeout = 0")
    assert house.session.execute(COUNT).rows == [(2400,)]
    assert house.engine.began == 1


def test_a_statement_that_is_canceled_before_its_charge_is_not_charged(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dataset, "check_unchanged", lambda self: house.session.cancel())
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
    house.dataset.runs.finish()
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
    assert house.dataset.ledger.stored(1) is not None


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
    dataset.runs.finish()
    assert dataset.ledger.stored(1) is None
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


# --- what an exception carries ---------------------------------------------------------------------------------------

_SKIPPED = (ModuleType, type, FunctionType, BuiltinFunctionType, str, bytes, int, float, Fraction)


def reached(error: BaseException) -> Iterator[object]:
    """All that can be got at from an exception: its fields, causes, frames and, through them, everything they hold."""
    seen: set[int] = set()
    todo: list[object] = [error]
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, TracebackType):
            # The frames of the test itself hold the rows on purpose.
            here = one.tb_frame.f_code.co_filename.startswith(str(Path(__file__).parent))
            todo += [one.tb_next, *([] if here else one.tb_frame.f_locals.values())]
        elif isinstance(one, BaseException):
            todo += [*one.args, *vars(one).values(), one.__cause__, one.__context__, one.__traceback__]
        elif not isinstance(one, (*_SKIPPED, FrameType)):
            todo += gc.get_referents(one)


def assert_no_rows(error: BaseException) -> None:
    for one in reached(error):
        assert not isinstance(one, Exact | np.ndarray), type(one)
        assert not (isinstance(one, str) and SECRET in one), one


@pytest.mark.parametrize("fails", ["in the driver", "in reading", "in the noise", "in the store"])
def test_from_an_error_no_row_can_be_reached(
    fails: str, house: House, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """With the real engine, whose frames hold rows when it fails."""
    house.engine.gate.set()

    def fail(rows: object = None, *_: object) -> None:
        held = [SECRET, rows]
        try:
            raise KeyError(SECRET, held)
        except KeyError as error:
            raise ValueError(SECRET, rows) from error

    match fails:
        case "in the driver":
            monkeypatch.setattr(duckdb_engine, "types_of", fail)
        case "in reading":
            monkeypatch.setattr(duckdb_engine, "_cells", fail)
        case "in the noise":
            house.session.sampler = type("Broken", (Silence,), {"gaussian": lambda self, n, sigma: fail(n)})()
        case "in the store":
            monkeypatch.setattr(type(house.dataset.ledger), "store", lambda self, release, body, errors: fail(body))
    with pytest.raises(EngineFailed) as caught:
        house.session.execute(COUNT)
    assert str(caught.value) == f"{FAILED}\nHINT:  {FAILED_HINT}"
    assert_no_rows(caught.value)
    assert capfd.readouterr() == ("", "")


def test_from_a_cancel_no_row_can_be_reached(house: House, request: pytest.FixtureRequest) -> None:
    held, perturbing = threading.Event(), threading.Event()
    request.addfinalizer(held.set)

    class Slow(Silence):
        def gaussian(self, n: int, sigma: Fraction) -> Any:
            perturbing.set()
            assert held.wait(PATIENCE)
            return super().gaussian(n, sigma)

    house.engine.gate.set()
    house.session.sampler = Slow()
    thread, got = in_thread(lambda: house.session.execute(COUNT))
    assert perturbing.wait(PATIENCE)  # the rows are open on the run's thread
    house.session.cancel()
    thread.join(PATIENCE)
    assert isinstance(got[0], QueryCanceled)
    assert_no_rows(got[0])


def test_the_walk_finds_rows_where_there_are_some() -> None:
    def run() -> None:
        exact = Exact([(SECRET,)], [np.array([1], np.int64)])
        raise ValueError from LookupError([exact])

    with pytest.raises(ValueError) as caught:
        run()
    assert any(isinstance(one, Exact) for one in reached(caught.value))
    with pytest.raises(AssertionError):
        assert_no_rows(caught.value)
