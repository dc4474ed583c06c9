"""Runs of releases: each on a thread of its own, so that whoever asked may leave and the run goes on.

Law: one run of the engine for a charge, unless it failed. Who asks for a release that is being run waits for that run.
A cancel, a timeout and Ctrl-C let the one go who waits and touch nothing else: a run that they stopped, asked for
again, would be a free clock of the rows (SOUNDNESS 10).

Privacy: that a run has ended is seen at its start plus a multiple of the owner's `min_latency`, whatever it took and
however it ended, by everyone who asks for the release in this process. So who leaves and asks again, as often as she
likes, learns no more of its time than who waits.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from dpsql.engines.base import FAILED, FAILED_HINT, Engine, log
from dpsql.errors import EngineFailed, Error, QueryCanceled, StaleData
from dpsql.ledger.base import Account, Ledger
from dpsql.privacy.release import Spec, perturb, to_bytes
from dpsql.privacy.sampling import Sampler

SECOND = 10**9
DETACHED = "The run goes on and its charge stands; asking again waits for it, and is free."
CLOSED = "the dataset was closed while the query ran"


@dataclass(frozen=True)
class Clock:
    """Monotonic nanoseconds, and sleeping for seconds."""

    now: Callable[[], int] = time.monotonic_ns
    sleep: Callable[[float], None] = time.sleep


@dataclass(eq=False)
class Ticket:
    """One statement: until when it may wait, and whether its client has canceled it."""

    deadline: int | None = None
    canceled: bool = False

    def check(self, now: int, hint: str | None = None) -> None:
        if self.canceled:
            raise QueryCanceled("canceling statement due to user request", hint=hint)
        if self.deadline is not None and now >= self.deadline:
            raise QueryCanceled("canceling statement due to statement timeout", hint=hint)


@dataclass(frozen=True)
class Job:
    """A release that was paid for, with all that its run needs: nothing of whoever asked."""

    release: int
    sql: str
    keys: int
    holes: Mapping[str, object]
    spec: Spec
    errors: tuple[Fraction, ...]
    sampler: Sampler  # drawn from by several runs at once


class Data(Protocol):
    """What a run reads and writes: a `Dataset`."""

    @property
    def engine(self) -> Engine: ...
    @property
    def ledger(self) -> Ledger: ...
    def check_unchanged(self) -> None: ...


@dataclass(frozen=True)
class Outcome:
    """The body that was read back from the store, or an error, and whether it counts against those who asked."""

    body: bytes = b""
    error: Error | None = None
    failure: bool = False


@dataclass(eq=False)
class _Run:
    start: int
    thread: threading.Thread | None = None
    asked: list[Account] = field(default_factory=list)
    counted: int = 0  # so many of them have had its failure counted
    outcome: Outcome | None = None


class Runs:
    """The runs under way in this process, by release."""

    def __init__(self, min_latency: Fraction = Fraction(0), clock: Clock | None = None) -> None:
        self._grid = math.ceil(min_latency * SECOND)
        self._clock = clock or Clock()
        self._changed = threading.Condition()
        self._under_way: dict[int, _Run] = {}

    def ticket(self, milliseconds: int) -> Ticket:
        """For a statement that begins now; 0: it may wait for ever."""
        return Ticket(self._clock.now() + milliseconds * (SECOND // 1000) if milliseconds else None)

    def check(self, ticket: Ticket) -> None:
        """Raise QueryCanceled if the statement is to end here, where nothing was charged yet."""
        ticket.check(self._clock.now())

    def cancel(self, ticket: Ticket) -> None:
        with self._changed:
            ticket.canceled = True
            self._changed.notify_all()

    def join(self, release: int, account: Account, ticket: Ticket) -> bytes | None:
        """The body of the run that is under way, once it is seen to end; None: there is none."""
        with self._changed:
            run = self._under_way.get(release)
            if run is None:
                return None
            _note(run, account)
        return self._wait(run, ticket)

    def run(self, data: Data, job: Job, account: Account, ticket: Ticket) -> bytes:
        """The body of the release: of the run under way, or of one that is begun."""
        with self._changed:
            run = self._under_way.get(job.release) or self._begin(data, job)
            _note(run, account)
        return self._wait(run, ticket)

    def finish(self, patience: float | None = None) -> None:
        """Wait until nothing runs, or for so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way, patience)

    def is_own_thread(self) -> bool:
        with self._changed:
            return any(run.thread is threading.current_thread() for run in self._under_way.values())

    # --- inside ------------------------------------------------------------------------------------------------------

    def _begin(self, data: Data, job: Job) -> _Run:
        run = _Run(self._clock.now())
        # A daemon: the process ends by `Dataset.close`, which waits, or by a second Ctrl-C, which does not.
        run.thread = threading.Thread(
            target=self._perform, args=(data, job, run), name=f"dpsql-run-{job.release}", daemon=True
        )
        self._under_way[job.release] = run
        try:
            run.thread.start()
        except BaseException:
            if run.thread.ident is None:
                del self._under_way[job.release]
            raise
        return run

    def _wait(self, run: _Run, ticket: Ticket) -> bytes:
        with self._changed:
            while run.outcome is None:
                now = self._clock.now()
                ticket.check(now, DETACHED)
                self._changed.wait(None if ticket.deadline is None else (ticket.deadline - now) / SECOND)
            outcome = run.outcome
        if outcome.error is not None:
            raise _bare(outcome.error)  # one for each who waits
        return outcome.body

    def _perform(self, data: Data, job: Job, run: _Run) -> None:
        outcome = Outcome(error=EngineFailed(FAILED, hint=FAILED_HINT), failure=True)
        try:
            outcome = attempt(data, job)
            self._count(data, job, run, outcome)  # before the rest is slept, so that no crash forgets it
            self._hold(run.start)
        except BaseException:  # the thread's own hook would print it
            log.error("a run ended in an unforeseen way", exc_info=True)
        finally:
            while not self._end(job, run, outcome):
                self._count(data, job, run, outcome)

    def _hold(self, start: int) -> None:
        """Sleep until the next multiple of the grid."""
        if self._grid:
            elapsed = self._clock.now() - start
            due = max(1, -(-elapsed // self._grid)) * self._grid
            self._clock.sleep((due - elapsed) / SECOND)

    def _count(self, data: Data, job: Job, run: _Run, outcome: Outcome) -> None:
        """Privacy: everyone who is told of a failure has it counted, once, however often she asked (SOUNDNESS 10)."""
        with self._changed:
            told, run.counted = run.asked[run.counted :], len(run.asked)
        for account in told if outcome.failure else ():
            try:
                data.ledger.failed(account, job.release)
            except Exception:  # without its ledger nobody is charged or answered
                log.error("a failed run could not be counted", exc_info=True)

    def _end(self, job: Job, run: _Run, outcome: Outcome) -> bool:
        """Show the outcome, unless someone has come whose failure is not counted."""
        with self._changed:
            if run.counted < len(run.asked) and outcome.failure:
                return False
            run.outcome = outcome
            if self._under_way.get(job.release) is run:
                del self._under_way[job.release]
            self._changed.notify_all()
            return True


def attempt(data: Data, job: Job) -> Outcome:
    """Run, perturb, store: the body that was read back, or why there is none.

    Privacy: whatever fails once the engine was asked has one text, and its error is made here, not raised: it has no
    cause, context or traceback, whose frames would hold rows.
    """
    try:
        body = data.ledger.stored(job.release)  # by a run that has ended since the charge
        if body is not None:
            return Outcome(body)
    except Error as error:
        return Outcome(error=_bare(error))
    try:
        released = _released(data, job)
    except StaleData as error:
        return Outcome(error=_bare(error))
    except Exception as error:
        if not isinstance(error, EngineFailed):  # those are in the log
            log.error("a release failed after its engine had run", exc_info=True)
        return Outcome(error=EngineFailed(FAILED, hint=FAILED_HINT), failure=True)
    except BaseException:  # the engine was closed, which is nobody's failure
        return Outcome(error=QueryCanceled(CLOSED, hint="Its charge stands; asking again is free."))
    try:
        body = data.ledger.store(job.release, released, job.errors)
    except Error as error:
        return Outcome(error=_bare(error))
    return Outcome(body)


def _released(data: Data, job: Job) -> bytes:
    """Exact rows live between these lines only."""
    exact = data.engine.execute(job.sql, job.keys, job.holes)
    data.check_unchanged()  # the files may have been replaced while they were read
    return to_bytes(perturb(exact, job.spec, job.sampler))


def _note(run: _Run, account: Account) -> None:
    if account not in run.asked:
        run.asked.append(account)


def _bare(error: Error) -> Error:
    """The same error without what happened before it."""
    return type(error)(error.message, detail=error.detail, hint=error.hint, sqlstate=error.sqlstate)
