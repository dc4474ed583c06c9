"""Who asked may leave, and the run goes on: once for a charge, stored, and seen to end on the owner's grid."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.engines.base import ENGINE_FAILED, ENGINE_FAILED_HINT
from dpsql.errors import EngineFailed, Error, OperationalError, QueryCanceled, StaleData
from dpsql.privacy.exact import Exact
from dpsql.privacy.release import release_from_bytes
from dpsql.session.dataset.runs import (
    CLOSED_MESSAGE,
    DETACHED_HINT,
    NANOSECONDS_PER_SECOND,
    QUEUED_HINT,
    Clock,
    Runs,
    StatementHandle,
)
from tests.support.controlled_runs import (
    ANA,
    BOB,
    PATIENCE,
    SECRET,
    FakeData,
    Gated,
    Time,
    askers,
    gated_run,
    handle_ending_after,
    in_thread,
    job,
    press_ctrl_c,
    raises,
    until,
)


@pytest.fixture
def gated() -> Iterator[Gated]:
    with gated_run() as opened:
        yield opened


# --- the grid ---------------------------------------------------------------------------------------------------------

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
    took=st.one_of(
        st.integers(0, 20 * NANOSECONDS_PER_SECOND), st.integers(0, 40).map(lambda n: n * NANOSECONDS_PER_SECOND // 2)
    ),
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
    start, step = world.now, -(-grid.numerator * NANOSECONDS_PER_SECOND // grid.denominator)
    runs = Runs(grid, world.clock)
    with suppress(Error):
        runs.run_release(data, job(), ANA, handle_ending_after(runs, 0))
    elapsed = world.now - start
    assert elapsed % step == 0 and elapsed >= max(step, took if data.runs else 0) and elapsed < took + 2 * step


def test_without_a_grid_nobody_sleeps() -> None:
    world, data = Time(), FakeData()
    Runs(Fraction(0), world.clock).run_release(data, job(), ANA, StatementHandle())
    assert world.slept == []


def test_repeated_requests_see_the_end_no_sooner(request: pytest.FixtureRequest) -> None:
    """The release is stored; that it is so must not show before the next multiple of the grid."""
    held, data = threading.Event(), FakeData()
    request.addfinalizer(held.set)
    runs = Runs(Fraction(1), Clock(sleep=lambda seconds: held.wait(PATIENCE) and None))
    first, got = in_thread(lambda: runs.run_release(data, job(), ANA, StatementHandle()))
    until(lambda: data.bodies)
    for _ in range(3):
        with pytest.raises(QueryCanceled):
            runs.join_run(data, 1, ANA, handle_ending_after(runs, 20))
        with pytest.raises(QueryCanceled):
            runs.run_release(data, job(), BOB, handle_ending_after(runs, 20))
    assert got == []
    held.set()
    first.join(PATIENCE)
    assert got == [data.bodies[1]] and data.runs == 1
    assert runs.join_run(data, 1, ANA, StatementHandle()) is None


# --- one run for a charge ---------------------------------------------------------------------------------------------


def test_requests_meanwhile_wait_for_the_same_run() -> None:
    gate, data, runs = threading.Event(), FakeData(), Runs()
    data.act = lambda: gate.wait(PATIENCE)
    asked = [in_thread(lambda: runs.run_release(data, job(), ANA, StatementHandle())) for _ in range(4)]
    until(lambda: data.runs)
    asked.append(in_thread(lambda: runs.join_run(data, 1, BOB, StatementHandle())))
    other = in_thread(lambda: runs.run_release(data, job(2), ANA, StatementHandle()))
    until(lambda: data.runs == 2)
    gate.set()
    for thread, _ in [*asked, other]:
        thread.join(PATIENCE)
    assert [got for _, got in asked] == [[data.bodies[1]]] * 5
    assert data.runs == 2, "one for each release"


def test_what_was_stored_since_the_charge_is_not_run_again() -> None:
    data, runs = FakeData(bodies={1: b"by another run"}), Runs()
    assert runs.run_release(data, job(), ANA, StatementHandle()) == b"by another run"
    assert data.runs == 0


def test_after_a_failure_it_is_run_again() -> None:
    data, runs = FakeData(raises(EngineFailed("x"))), Runs()
    with pytest.raises(EngineFailed):
        runs.run_release(data, job(), ANA, StatementHandle())
    data.act = lambda: None
    assert release_from_bytes(runs.run_release(data, job(), ANA, StatementHandle())).cells[0].tolist() == [41]
    assert data.runs == 2


# --- who leaves -------------------------------------------------------------------------------------------------------


def test_a_cancel_lets_go_the_one_statement_and_the_run_goes_on(gated: Gated) -> None:
    handle, runs, data = StatementHandle(), gated.runs, gated.data
    thread, got = in_thread(lambda: runs.run_release(data, job(), ANA, handle))
    other, other_got = in_thread(lambda: runs.run_release(data, job(), ANA, StatementHandle()))
    until(lambda: data.runs)
    runs.cancel_statement(handle)
    thread.join(PATIENCE)
    (error,) = got
    assert isinstance(error, QueryCanceled) and error.sqlstate == "57014"
    assert error.message == "canceling statement due to user request" and error.hint == DETACHED_HINT
    assert other_got == [] and data.bodies == {}
    gated.gate.set()
    other.join(PATIENCE)
    assert other_got == [data.bodies[1]] and data.runs == 1 and data.failures == []


def test_a_timeout_lets_go_too(gated: Gated) -> None:
    with pytest.raises(QueryCanceled, match="due to statement timeout") as caught:
        gated.runs.run_release(gated.data, job(), ANA, handle_ending_after(gated.runs, 30))
    assert caught.value.hint == DETACHED_HINT
    gated.gate.set()
    assert (
        gated.runs.run_release(gated.data, job(), ANA, handle_ending_after(gated.runs, 30_000)) == gated.data.bodies[1]
    )
    assert gated.data.runs == 1 and gated.data.failures == []


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads here")
def test_ctrl_c_lets_go_at_once(gated: Gated) -> None:
    pressing = press_ctrl_c(lambda: gated.data.runs)
    with pytest.raises(KeyboardInterrupt):
        gated.runs.run_release(gated.data, job(), ANA, StatementHandle())
    pressing.join(PATIENCE)
    assert gated.data.bodies == {}
    gated.gate.set()
    assert gated.runs.run_release(gated.data, job(), ANA, StatementHandle()) == gated.data.bodies[1]
    assert gated.data.runs == 1 and gated.data.failures == []


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_failure_counts_once_for_all_waiting_statements(gated: Gated) -> None:
    def act() -> None:
        gated.gate.wait(PATIENCE)
        raise MemoryError(SECRET)

    gated.data.act = act
    for _ in range(3):  # and leaves
        with pytest.raises(QueryCanceled):
            gated.runs.run_release(gated.data, job(), ANA, handle_ending_after(gated.runs, 10))
    asked = [
        in_thread(lambda who=who: gated.runs.run_release(gated.data, job(), who, StatementHandle()))
        for who in (ANA, BOB, BOB)
    ]
    until(lambda: askers(gated.runs) == 2)
    assert gated.data.failures == []
    gated.gate.set()
    for thread, _ in asked:
        thread.join(PATIENCE)
    assert gated.data.failures == ["ana", "bob"] and gated.data.runs == 1
    errors = [got[0] for _, got in asked]
    assert {str(error) for error in errors} == {f"{ENGINE_FAILED}\nHINT:  {ENGINE_FAILED_HINT}"}
    assert len({id(error) for error in errors}) == 3, "each has an error of its own"


def test_a_request_between_a_failure_and_its_end_is_counted_too(request: pytest.FixtureRequest) -> None:
    held, data = threading.Event(), FakeData(raises(EngineFailed("x")))
    request.addfinalizer(held.set)
    runs = Runs(Fraction(1), Clock(sleep=lambda seconds: held.wait(PATIENCE) and None))
    first, _ = in_thread(lambda: runs.run_release(data, job(), ANA, StatementHandle()))
    until(lambda: data.failures == ["ana"])
    second, got = in_thread(lambda: runs.run_release(data, job(), BOB, StatementHandle()))
    until(lambda: askers(runs) == 2)
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
        runs.run_release(data, job(), ANA, StatementHandle())
    except Error as error:
        assert str(error) == f"{ENGINE_FAILED}\nHINT:  {ENGINE_FAILED_HINT}" and type(error) is EngineFailed
        assert error.__cause__ is None and error.__context__ is None
        assert not any(isinstance(value, Exact) or SECRET in repr(value) for value in values_of(error))
    else:
        raise AssertionError("no error")
    assert data.failures == ["ana"]
    assert capfd.readouterr() == ("", "")


def test_what_comes_after_the_engine_has_its_limit_of_time_too() -> None:
    data = FakeData(seconds=-1)
    with pytest.raises(EngineFailed, match=ENGINE_FAILED):
        Runs().run_release(data, job(), ANA, StatementHandle())
    assert data.failures == ["ana"] and not data.bodies


@pytest.mark.parametrize("error", [StaleData("it changed", hint="Wait."), OperationalError("the disk is full")])
def test_what_is_no_failure_is_reported_and_not_counted(error: Error) -> None:
    data, runs = FakeData(), Runs()
    if isinstance(error, StaleData):
        data.check = raises(error)
    else:
        data.full = error
    with pytest.raises(type(error), match=error.message) as caught:
        runs.run_release(data, job(), ANA, StatementHandle())
    assert caught.value is not error and str(caught.value) == str(error)
    assert caught.value.__context__ is None and data.failures == []


def test_a_run_whose_engine_was_closed_is_no_failure(capfd: pytest.CaptureFixture[str]) -> None:
    data, runs = FakeData(raises(KeyboardInterrupt())), Runs()
    with pytest.raises(QueryCanceled, match=CLOSED_MESSAGE):
        runs.run_release(data, job(), ANA, StatementHandle())
    assert data.failures == [] and capfd.readouterr() == ("", "")


def test_a_store_that_breaks_in_an_unforeseen_way_leaves_nobody_waiting(capfd: pytest.CaptureFixture[str]) -> None:
    data, runs = FakeData(full=RuntimeError(SECRET)), Runs()
    with pytest.raises(EngineFailed) as caught:
        runs.run_release(data, job(), ANA, StatementHandle())
    assert caught.value.__context__ is None and capfd.readouterr() == ("", "")
    runs.wait_until_idle()


# --- no account takes all ---------------------------------------------------------------------------------------------


def test_an_account_has_so_many_runs_under_way_and_others_do_not_wait_for_it() -> None:
    """Those that it left count: leaving by a cancel makes no room for another run."""
    gate, data, runs = threading.Event(), FakeData(), Runs(max_runs_per_account=2)
    data.act = lambda: gate.wait(PATIENCE)
    for release in (1, 2):
        with pytest.raises(QueryCanceled) as caught:
            runs.run_release(data, job(release), ANA, handle_ending_after(runs, 20))
        assert caught.value.hint == DETACHED_HINT
    with pytest.raises(QueryCanceled) as caught:
        runs.run_release(data, job(3), ANA, handle_ending_after(runs, 20))
    assert caught.value.hint == QUEUED_HINT and data.runs == 2
    third, got = in_thread(lambda: runs.run_release(data, job(3), ANA, StatementHandle()))
    other, got_by_another = in_thread(lambda: runs.run_release(data, job(4), BOB, StatementHandle()))
    until(lambda: data.runs == 3)
    gate.set()
    third.join(PATIENCE)
    other.join(PATIENCE)
    assert got == [data.bodies[3]] and got_by_another == [data.bodies[4]] and data.runs == 4
