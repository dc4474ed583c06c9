"""Runs of releases: each on a thread of its own, so that whoever asked may leave and the run goes on.

Law: one run of the engine for a charge, unless it failed. Who asks for a release that is being run waits for that run,
whichever process it is in: each takes the release's lease in the ledger first (`ledger/release_store.py`).
A cancel, a timeout and Ctrl-C let the one go who waits and touch nothing else: a run that they stopped, asked for
again, would be a free clock of the rows (SOUNDNESS 10).

Privacy: that a run has ended is seen at its start plus a multiple of the owner's `min_latency`, whatever it took and
however it ended, by everyone who asks for the release: the datasets that are open on one ledger know of each other's
runs, in one process by their threads, in others by the times in the ledger. So who leaves and asks again, as often and
on as many connections as she likes, learns no more of its time than who waits.
"""

from __future__ import annotations

import itertools
import math
import os
import platform
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from dpsql.base.cancellation import StatementHandle as StatementHandle
from dpsql.base.cancellation import cancel_scope
from dpsql.engines.base import ENGINE_FAILED, ENGINE_FAILED_HINT, Engine, log
from dpsql.errors import EngineFailed, Error, OperationalError, QueryCanceled, StaleData
from dpsql.ledger.base import Account, Entitlement, Ledger, RunLease
from dpsql.ledger.release_store import visible_after
from dpsql.privacy.release import ReleaseSpec, evaluate_threshold_query, perturb, release_to_bytes
from dpsql.privacy.sampling import Sampler
from dpsql.privacy.sparse_vector import SparseVectorState, ThresholdQuery, threshold_answer_to_bytes

# A run of the engine before it begins and after it has ended: what it needs, and what came of it.


@dataclass(frozen=True)
class Clock:
    """Monotonic nanoseconds, and sleeping for seconds."""

    now: Callable[[], int] = time.monotonic_ns
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class ReleaseJob:
    """A release that was paid for, with all that its run needs: nothing of whoever asked."""

    release: int
    sql: str
    keys: int
    holes: Mapping[str, object]
    spec: ReleaseSpec
    errors: tuple[Fraction, ...]
    sampler: Sampler  # drawn from by several runs at once


@dataclass(frozen=True)
class InteractiveJob:
    """A question to an interactive mechanism that was paid for: it has one cell, and a number of its own."""

    release: int
    sql: str
    number: int
    question: ThresholdQuery
    watch: SparseVectorState
    keys: int = 0
    holes: Mapping[str, object] = field(default_factory=dict)


class RunContext(Protocol):
    """What a run reads and writes: a `Dataset`."""

    @property
    def engine(self) -> Engine: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def seconds(self) -> float: ...
    def check_read(self) -> None: ...


@dataclass(frozen=True)
class RunOutcome:
    """The body that was read back from the store, or an error, and whether it counts against those who asked."""

    body: bytes = b""
    error: Error | None = None
    failure: bool = False


NANOSECONDS_PER_SECOND = 10**9
NANOSECONDS_PER_MICROSECOND = 10**3
MAX_RUNS = 32
"""Runs under way in a process. Who leaves by a timeout leaves a thread behind, and could leave any number of them."""
LEASE_SECONDS = 6.0
"""Seconds for which a process has a release's run unless it says again that it is there."""
HEARTBEAT_SECONDS = 1.5
"""Seconds between two times that it says so."""
POLL_SECONDS = 0.1
"""Seconds between two looks at another process's run."""
LONG_WAIT_SECONDS = 3600.0
"""Seconds of a wait that has no end of its own. With a time it can be interrupted: polars has the system begin a wait
without one again, and Ctrl-C would be seen after it."""
DETACHED_HINT = "The run goes on and its charge stands; asking again waits for it, and is free."
QUEUED_HINT = "The run has yet to begin and its charge stands; asking again is free."
CLOSED_MESSAGE = "the dataset was closed while the query ran"


@dataclass(eq=False)
class _Run:
    start: int
    holder: str = ""
    account: str = ""  # that began it
    thread: threading.Thread | None = None
    requesters: dict[str, tuple[Account, Ledger]] = field(default_factory=dict)
    counted: int = 0  # so many of them have had its failure counted
    followed: set[Runs] = field(default_factory=set)  # by these, which began or joined it
    outcome: RunOutcome | None = None


class _RunThread(threading.Thread):
    """A run's daemon thread: the process ends by `Dataset.close`, which waits, or by a second Ctrl-C, which doesn't."""


class _RunRegistry:
    """The runs of this process, by ledger and release."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.changed = threading.Condition()
        self.runs: dict[tuple[Hashable, int], _Run] = {}
        self.numbers = itertools.count()
        self.name = f"{platform.node()} {os.getpid()} {time.time_ns()}"  # of this process, among all that there were


_registry = _RunRegistry()
if os.name == "posix":  # a forked child has none of their threads, and perhaps a lock that nobody will open
    os.register_at_fork(after_in_child=_registry.reset)


class Runs:
    """The runs that a dataset began or joined, among those of its ledger in this process.

    `ledger` is its identity; without one, nobody else's runs are joined. The grid is that of the dataset that began.
    An account has at most `max_runs_per_account` of them under way, also of those that it left by a cancel; further
    ones wait.
    """

    def __init__(
        self,
        min_latency: Fraction = Fraction(0),
        clock: Clock | None = None,
        ledger: Hashable | None = None,
        max_runs_per_account: int = MAX_RUNS,
    ) -> None:
        self._grid = math.ceil(min_latency * NANOSECONDS_PER_SECOND)
        self._clock = clock or Clock()
        self._ledger = object() if ledger is None else ledger
        self._max_runs_per_account = max_runs_per_account

    def deadline_after(self, milliseconds: int) -> int | None:
        """The deadline of a statement that begins now; 0: it may wait for ever."""
        return self._clock.now() + milliseconds * (NANOSECONDS_PER_SECOND // 1000) if milliseconds else None

    def check_cancellation(self, handle: StatementHandle) -> None:
        """Raise QueryCanceled if the statement is to end here, where nothing was charged yet."""
        handle.check_cancellation(self._clock.now())

    def cancel_statement(self, handle: StatementHandle) -> None:
        with _registry.changed:
            handle.canceled = True
            _registry.changed.notify_all()
        interrupt = handle.interrupt
        if interrupt is not None:
            interrupt()

    def seconds_left(self, handle: StatementHandle) -> float | None:
        """Until its deadline, if it has one."""
        return (
            None
            if handle.deadline is None
            else max(0.0, (handle.deadline - self._clock.now()) / NANOSECONDS_PER_SECOND)
        )

    def admit_runs(self, entitlements: Sequence[Entitlement]) -> None:
        """Refuse, before the charge is made, what needs a run where too many are under way.

        Privacy: how many there are is seen to change where a run begins and where it is seen to end, nowhere else.
        """
        with _registry.changed:
            new = [
                entitlement
                for entitlement in entitlements
                if entitlement.body is None and (self._ledger, entitlement.release) not in _registry.runs
            ]
            if new and len(_registry.runs) >= MAX_RUNS:
                raise OperationalError(
                    f"too many queries are running: {MAX_RUNS}",
                    detail="Nothing was charged.",
                    hint="Ask again when some have ended; those that were canceled or timed out still run.",
                    sqlstate="53300",
                )

    def join_run(self, data: RunContext, release: int, account: Account, handle: StatementHandle) -> bytes | None:
        """The body of this process's run that is under way, once it is seen to end; None: there is none.

        Where a run of another process has ended and is not yet to be seen, it is waited for too.
        """
        with _registry.changed:
            run = _registry.runs.get((self._ledger, release))
            if run is not None:
                self._follow_run(run, data, account)
        if run is not None:
            return self._wait_for_outcome(run, handle)
        if self._grid:
            self._wait_until_visible(data, release, handle)
        return None

    def run_release(
        self, data: RunContext, job: ReleaseJob | InteractiveJob, account: Account, handle: StatementHandle
    ) -> bytes:
        """The body of the release: of the run under way, or of one that is begun as soon as there is room for it."""
        with _registry.changed:
            while (run := _registry.runs.get((self._ledger, job.release))) is None and self._is_full(account):
                self._wait_for_change(handle, QUEUED_HINT)
            run = run or self._begin_run(data, job, account)
            self._follow_run(run, data, account)
        return self._wait_for_outcome(run, handle)

    def wait_until_idle(self, patience: float | None = None) -> None:
        """Wait until none of these runs is under way, or for so many seconds."""
        with _registry.changed:
            while not _registry.changed.wait_for(self._is_idle, LONG_WAIT_SECONDS if patience is None else patience):
                if patience is not None:
                    return

    # --- inside ------------------------------------------------------------------------------------------------------

    def _is_full(self, account: Account) -> bool:
        own = sum(ledger == self._ledger and run.account == account.name for (ledger, _), run in _registry.runs.items())
        return len(_registry.runs) >= MAX_RUNS or own >= self._max_runs_per_account

    def _begin_run(self, data: RunContext, job: ReleaseJob | InteractiveJob, account: Account) -> _Run:
        run = _Run(self._clock.now(), f"{_registry.name} {next(_registry.numbers)}", account.name)
        run.thread = _RunThread(
            target=self._perform_run, args=(data, job, run), name=f"dpsql-run-{job.release}", daemon=True
        )
        _registry.runs[self._ledger, job.release] = run
        try:
            run.thread.start()
        except BaseException:
            if run.thread.ident is None:
                del _registry.runs[self._ledger, job.release]
            raise
        return run

    def _is_idle(self) -> bool:
        return not any(self in run.followed for run in _registry.runs.values())

    def _follow_run(self, run: _Run, data: RunContext, account: Account) -> None:
        run.followed.add(self)
        run.requesters.setdefault(account.name, (account, data.ledger))

    def _wait_for_change(self, handle: StatementHandle, hint: str) -> None:
        """Until something has changed, or the statement is to end."""
        now = self._clock.now()
        handle.check_cancellation(now, hint)
        _registry.changed.wait(
            LONG_WAIT_SECONDS if handle.deadline is None else (handle.deadline - now) / NANOSECONDS_PER_SECOND
        )

    def _wait_for_outcome(self, run: _Run, handle: StatementHandle) -> bytes:
        with _registry.changed:
            while run.outcome is None:
                self._wait_for_change(handle, DETACHED_HINT)
            outcome = run.outcome
        if outcome.error is not None:
            raise _without_context(outcome.error)  # one for each who waits
        return outcome.body

    def _perform_run(self, data: RunContext, job: ReleaseJob | InteractiveJob, run: _Run) -> None:
        outcome = RunOutcome(error=EngineFailed(ENGINE_FAILED, hint=ENGINE_FAILED_HINT), failure=True)
        try:
            outcome = self._wait_for_other_process(data, job, run) or self._run_here(data, job, run)
        except BaseException:  # the thread's own hook would print it
            log.error("a run ended in an unforeseen way", exc_info=True)
        finally:
            while not self._publish_outcome(job, run, outcome):
                _count_failures(job, run, outcome)

    def _wait_for_other_process(
        self, data: RunContext, job: ReleaseJob | InteractiveJob, run: _Run
    ) -> RunOutcome | None:
        """What another process's run has come to, once that is to be seen; None: the release is ours to run.

        Where ends are not on a grid, its lease is asked for at once: it is refused where there is a run or a body.
        """
        try:
            if not self._grid and self._take_lease(data, job, run):
                return None
            while True:
                seen = self._poll_until_over(data, job.release)
                body = data.ledger.read_body(job.release)
                if body is not None:
                    self._delay_until_visible(seen, run.start)
                    return RunOutcome(body)
                if self._take_lease(data, job, run):
                    return None
        except Error as error:
            return RunOutcome(error=_without_context(error))

    def _take_lease(self, data: RunContext, job: ReleaseJob | InteractiveJob, run: _Run) -> bool:
        """Whether the release is ours to run: nobody else runs it, and it is not stored."""
        run.start = self._clock.now()
        return data.ledger.begin_run(job.release, run.holder, LEASE_SECONDS).holder == run.holder

    def _poll_until_over(self, data: RunContext, release: int) -> RunLease | None:
        """Until the run of another process, if there is one, is over and its end is to be seen."""
        while (running := data.ledger.find_run(release)) is not None and not running.is_over:
            self._clock.sleep(POLL_SECONDS)
        self._sleep_nanoseconds(self._time_until_visible(running))
        return None if running is None else data.ledger.find_run(release)

    def _run_here(self, data: RunContext, job: ReleaseJob | InteractiveJob, run: _Run) -> RunOutcome:
        with _lease_heartbeat(data.ledger, job.release, run.holder):
            outcome = attempt_run(data, job)
        _count_failures(job, run, outcome)  # before the rest is slept, so that no crash forgets it
        try:
            if outcome.error is not None:
                data.ledger.end_run(job.release, run.holder)
            if self._grid:
                self._delay_until_visible(data.ledger.find_run(job.release), run.start)
        except Exception:
            log.error("the end of a run could not be told to other processes", exc_info=True)
            self._delay_until_visible(None, run.start)
        return outcome

    def _delay_until_visible(self, running: RunLease | None, start: int) -> None:
        """Sleep until the end of the run is to be seen, here and in all processes."""
        elapsed = self._clock.now() - start
        ended = running is not None and running.ended is not None
        self._sleep_nanoseconds(self._time_until_visible(running) if ended else self._time_until_due(elapsed, elapsed))

    def _sleep_nanoseconds(self, nanoseconds: int) -> None:
        if nanoseconds:
            self._clock.sleep(nanoseconds / NANOSECONDS_PER_SECOND)

    def _time_until_visible(self, running: RunLease | None) -> int:
        """Nanoseconds until the end of a run is to be seen."""
        if running is None or running.ended is None:
            return 0
        return self._time_until_due(
            running.ended * NANOSECONDS_PER_MICROSECOND, running.elapsed * NANOSECONDS_PER_MICROSECOND
        )

    def _time_until_due(self, ended: int, elapsed: int) -> int:
        return max(0, visible_after(ended, self._grid) - elapsed) if self._grid else 0

    def _wait_until_visible(self, data: RunContext, release: int, handle: StatementHandle) -> None:
        visible_at = self._clock.now() + self._time_until_visible(data.ledger.find_run(release))
        with _registry.changed:
            while (now := self._clock.now()) < visible_at:
                handle.check_cancellation(now, DETACHED_HINT)
                rest = visible_at if handle.deadline is None else min(visible_at, handle.deadline)
                _registry.changed.wait((rest - now) / NANOSECONDS_PER_SECOND)

    def _publish_outcome(self, job: ReleaseJob | InteractiveJob, run: _Run, outcome: RunOutcome) -> bool:
        """Show the outcome, unless someone has come whose failure is not counted."""
        with _registry.changed:
            if run.counted < len(run.requesters) and outcome.failure:
                return False
            run.outcome = outcome
            if _registry.runs.get((self._ledger, job.release)) is run:
                del _registry.runs[self._ledger, job.release]
            _registry.changed.notify_all()
            return True


def is_run_thread() -> bool:
    """Whether it is a run that asks: it cannot wait for itself, and others must not wait for it."""
    return isinstance(threading.current_thread(), _RunThread)


def _count_failures(job: ReleaseJob | InteractiveJob, run: _Run, outcome: RunOutcome) -> None:
    """Privacy: everyone who is told of a failure has it counted, once, however often she asked (SOUNDNESS 10)."""
    with _registry.changed:
        uncounted, run.counted = list(run.requesters.values())[run.counted :], len(run.requesters)
    for account, ledger in uncounted if outcome.failure else ():
        try:
            ledger.count_failure(account, job.release)
        except Exception:  # without its ledger nobody is charged or answered
            log.error("a failed run could not be counted", exc_info=True)


@contextmanager
def _lease_heartbeat(ledger: Ledger, release: int, holder: str) -> Iterator[None]:
    """Renew the lease of a run as long as the block runs."""
    over = threading.Event()

    def renew_lease() -> None:
        while not over.wait(HEARTBEAT_SECONDS):
            try:
                ledger.renew_run(release, holder, LEASE_SECONDS)
            except Exception:  # another may take over then, which costs a run and no privacy
                log.error("a run could not keep its lease", exc_info=True)

    renewal_thread = threading.Thread(target=renew_lease, name=f"dpsql-keep-{release}", daemon=True)
    renewal_thread.start()
    try:
        yield
    finally:
        over.set()
        renewal_thread.join()


def attempt_run(data: RunContext, job: ReleaseJob | InteractiveJob) -> RunOutcome:
    """Run, perturb, store: the body that was read back, or why there is none.

    Who calls it has the release's lease, which is given for one that is not stored.

    Privacy: whatever fails once the engine was asked has one text, and its error is made here, not raised: it has no
    cause, context or traceback, whose frames would hold rows.
    """
    try:
        released = _run_and_perturb(data, job)
    except StaleData as error:
        return RunOutcome(error=_without_context(error))
    except Exception as error:
        if not isinstance(error, EngineFailed):  # those are in the log
            log.error("a release failed after its engine had run", exc_info=True)
        return RunOutcome(error=EngineFailed(ENGINE_FAILED, hint=ENGINE_FAILED_HINT), failure=True)
    except BaseException:  # the engine was closed, which is nobody's failure
        return RunOutcome(error=QueryCanceled(CLOSED_MESSAGE, hint="Its charge stands; asking again is free."))
    try:
        return RunOutcome(_store_and_read_back(data, job, released))
    except Error as error:
        return RunOutcome(error=_without_context(error))


def _run_and_perturb(data: RunContext, job: ReleaseJob | InteractiveJob) -> bytes:
    """Exact rows live between these lines only."""
    exact = data.engine.execute(job.sql, job.keys, job.holes)
    data.check_read()  # the files may have been replaced while they were read
    if isinstance(job, InteractiveJob):
        return threshold_answer_to_bytes(
            evaluate_threshold_query(exact, job.question, job.watch, job.number), job.number
        )
    with cancel_scope(_time_limit_check(data.seconds)):
        return release_to_bytes(perturb(exact, job.spec, job.sampler))


def _time_limit_check(seconds: float) -> Callable[[], None]:
    """The limit that the engine has holds for a study too: how long that takes depends on the rows, as the engine's
    time does, and that it is over counts as a failure of the engine (SOUNDNESS 10)."""
    end = time.monotonic() + seconds

    def check_time_limit() -> None:
        if time.monotonic() > end:
            raise TimeoutError(f"a study took longer than {seconds:g} s")

    return check_time_limit


def _store_and_read_back(data: RunContext, job: ReleaseJob | InteractiveJob, body: bytes) -> bytes:
    """What was read back: it alone is delivered."""
    if isinstance(job, InteractiveJob):
        return data.ledger.store_answer(job.release, job.number, body)
    return data.ledger.store_body(job.release, body, job.errors)


def _without_context(error: Error) -> Error:
    """The same error without what happened before it."""
    return type(error)(error.message, detail=error.detail, hint=error.hint, sqlstate=error.sqlstate)
