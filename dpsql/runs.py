"""Runs of releases: each on a thread of its own, so that whoever asked may leave and the run goes on.

Law: one run of the engine for a charge, unless it failed. Who asks for a release that is being run waits for that run,
whichever process it is in: each takes the release's lease in the ledger first (`ledger/leases.py`).
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
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction

from dpsql.engines.base import FAILED, FAILED_HINT, log
from dpsql.errors import EngineFailed, Error, OperationalError, QueryCanceled, StaleData
from dpsql.jobs import Asking as Asking
from dpsql.jobs import Clock as Clock
from dpsql.jobs import Data, Outcome
from dpsql.jobs import Job as Job
from dpsql.ledger.base import Account, Claim, Ledger, Running
from dpsql.ledger.leases import due
from dpsql.privacy.release import judge, perturb, to_bytes
from dpsql.privacy.threshold import verdict_to_bytes
from dpsql.pulse import ended_by
from dpsql.ticket import Ticket as Ticket

SECOND = 10**9
MICROSECOND = 10**3
MOST = 32
"""Runs under way in a process. Who leaves by a timeout leaves a thread behind, and could leave any number of them."""
LEASE = 6.0
"""Seconds for which a process has a release's run unless it says again that it is there."""
KEEPING = 1.5
"""Seconds between two times that it says so."""
POLLING = 0.1
"""Seconds between two looks at another process's run."""
LONG = 3600.0
"""Seconds of a wait that has no end of its own. With a time it can be interrupted: polars has the system begin a wait
without one again, and Ctrl-C would be seen after it."""
DETACHED = "The run goes on and its charge stands; asking again waits for it, and is free."
QUEUED = "The run has yet to begin and its charge stands; asking again is free."
CLOSED = "the dataset was closed while the query ran"


@dataclass(eq=False)
class _Run:
    start: int
    holder: str = ""
    account: str = ""  # that began it
    thread: threading.Thread | None = None
    asked: dict[str, tuple[Account, Ledger]] = field(default_factory=dict)
    counted: int = 0  # so many of them have had its failure counted
    followed: set[Runs] = field(default_factory=set)  # by these, which began or joined it
    outcome: Outcome | None = None


class _Thread(threading.Thread):
    """Of a run. A daemon: the process ends by `Dataset.close`, which waits, or by a second Ctrl-C, which does not."""


class _UnderWay:
    """The runs of this process, by ledger and release."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.changed = threading.Condition()
        self.runs: dict[tuple[Hashable, int], _Run] = {}
        self.numbers = itertools.count()
        self.name = f"{platform.node()} {os.getpid()} {time.time_ns()}"  # of this process, among all that there were


_here = _UnderWay()
if os.name == "posix":  # a forked child has none of their threads, and perhaps a lock that nobody will open
    os.register_at_fork(after_in_child=_here.forget)


class Runs:
    """The runs that a dataset began or joined, among those of its ledger in this process.

    `ledger` is its identity; without one, nobody else's runs are joined. The grid is that of the dataset that began.
    An account has at most `most_of_one` of them under way, also of those that it left by a cancel; further ones wait.
    """

    def __init__(
        self,
        min_latency: Fraction = Fraction(0),
        clock: Clock | None = None,
        ledger: Hashable | None = None,
        most_of_one: int = MOST,
    ) -> None:
        self._grid = math.ceil(min_latency * SECOND)
        self._clock = clock or Clock()
        self._ledger = object() if ledger is None else ledger
        self._most_of_one = most_of_one

    def ticket(self, milliseconds: int) -> Ticket:
        """For a statement that begins now; 0: it may wait for ever."""
        return Ticket(self._clock.now() + milliseconds * (SECOND // 1000) if milliseconds else None)

    def check(self, ticket: Ticket) -> None:
        """Raise QueryCanceled if the statement is to end here, where nothing was charged yet."""
        ticket.check(self._clock.now())

    def cancel(self, ticket: Ticket) -> None:
        with _here.changed:
            ticket.canceled = True
            _here.changed.notify_all()
        interrupt = ticket.interrupt
        if interrupt is not None:
            interrupt()

    def seconds_left(self, ticket: Ticket) -> float | None:
        """Until its deadline, if it has one."""
        return None if ticket.deadline is None else max(0.0, (ticket.deadline - self._clock.now()) / SECOND)

    def admit(self, claims: Sequence[Claim]) -> None:
        """Refuse, before the charge is made, what needs a run where too many are under way.

        Privacy: how many there are is seen to change where a run begins and where it is seen to end, nowhere else.
        """
        with _here.changed:
            new = [one for one in claims if one.body is None and (self._ledger, one.release) not in _here.runs]
            if new and len(_here.runs) >= MOST:
                raise OperationalError(
                    f"too many queries are running: {MOST}",
                    detail="Nothing was charged.",
                    hint="Ask again when some have ended; those that were canceled or timed out still run.",
                    sqlstate="53300",
                )

    def join(self, data: Data, release: int, account: Account, ticket: Ticket) -> bytes | None:
        """The body of this process's run that is under way, once it is seen to end; None: there is none.

        Where a run of another process has ended and is not yet to be seen, it is waited for too.
        """
        with _here.changed:
            run = _here.runs.get((self._ledger, release))
            if run is not None:
                self._follow(run, data, account)
        if run is not None:
            return self._wait(run, ticket)
        if self._grid:
            self._wait_until_shown(data, release, ticket)
        return None

    def run(self, data: Data, job: Job | Asking, account: Account, ticket: Ticket) -> bytes:
        """The body of the release: of the run under way, or of one that is begun as soon as there is room for it."""
        with _here.changed:
            while (run := _here.runs.get((self._ledger, job.release))) is None and self._is_full(account):
                self._pause(ticket, QUEUED)
            run = run or self._begin(data, job, account)
            self._follow(run, data, account)
        return self._wait(run, ticket)

    def finish(self, patience: float | None = None) -> None:
        """Wait until none of these runs is under way, or for so many seconds."""
        with _here.changed:
            while not _here.changed.wait_for(self._is_idle, LONG if patience is None else patience):
                if patience is not None:
                    return

    # --- inside ------------------------------------------------------------------------------------------------------

    def _is_full(self, account: Account) -> bool:
        own = sum(ledger == self._ledger and run.account == account.name for (ledger, _), run in _here.runs.items())
        return len(_here.runs) >= MOST or own >= self._most_of_one

    def _begin(self, data: Data, job: Job | Asking, account: Account) -> _Run:
        run = _Run(self._clock.now(), f"{_here.name} {next(_here.numbers)}", account.name)
        run.thread = _Thread(target=self._perform, args=(data, job, run), name=f"dpsql-run-{job.release}", daemon=True)
        _here.runs[self._ledger, job.release] = run
        try:
            run.thread.start()
        except BaseException:
            if run.thread.ident is None:
                del _here.runs[self._ledger, job.release]
            raise
        return run

    def _is_idle(self) -> bool:
        return not any(self in run.followed for run in _here.runs.values())

    def _follow(self, run: _Run, data: Data, account: Account) -> None:
        run.followed.add(self)
        run.asked.setdefault(account.name, (account, data.ledger))

    def _pause(self, ticket: Ticket, hint: str) -> None:
        """Until something has changed, or the statement is to end."""
        now = self._clock.now()
        ticket.check(now, hint)
        _here.changed.wait(LONG if ticket.deadline is None else (ticket.deadline - now) / SECOND)

    def _wait(self, run: _Run, ticket: Ticket) -> bytes:
        with _here.changed:
            while run.outcome is None:
                self._pause(ticket, DETACHED)
            outcome = run.outcome
        if outcome.error is not None:
            raise _bare(outcome.error)  # one for each who waits
        return outcome.body

    def _perform(self, data: Data, job: Job | Asking, run: _Run) -> None:
        outcome = Outcome(error=EngineFailed(FAILED, hint=FAILED_HINT), failure=True)
        try:
            outcome = self._of_another(data, job, run) or self._own(data, job, run)
        except BaseException:  # the thread's own hook would print it
            log.error("a run ended in an unforeseen way", exc_info=True)
        finally:
            while not self._end(job, run, outcome):
                _count(job, run, outcome)

    def _of_another(self, data: Data, job: Job | Asking, run: _Run) -> Outcome | None:
        """What another process's run has come to, once that is to be seen; None: the release is ours to run."""
        try:
            while True:
                seen = self._watch(data, job.release)
                body = data.ledger.stored(job.release)
                if body is not None:
                    self._hold(seen, run.start)
                    return Outcome(body)
                run.start = self._clock.now()
                if data.ledger.begin_run(job.release, run.holder, LEASE).holder == run.holder:
                    return None
        except Error as error:
            return Outcome(error=_bare(error))

    def _watch(self, data: Data, release: int) -> Running | None:
        """Until the run of another process, if there is one, is over and its end is to be seen."""
        while (running := data.ledger.run_of(release)) is not None and not running.over:
            self._clock.sleep(POLLING)
        self._sleep(self._unseen(running))
        return None if running is None else data.ledger.run_of(release)

    def _own(self, data: Data, job: Job | Asking, run: _Run) -> Outcome:
        with _kept(data.ledger, job.release, run.holder):
            outcome = attempt(data, job)
        _count(job, run, outcome)  # before the rest is slept, so that no crash forgets it
        try:
            if outcome.error is not None:
                data.ledger.end_run(job.release, run.holder)
            if self._grid:
                self._hold(data.ledger.run_of(job.release), run.start)
        except Exception:
            log.error("the end of a run could not be told to other processes", exc_info=True)
            self._hold(None, run.start)
        return outcome

    def _hold(self, running: Running | None, start: int) -> None:
        """Sleep until the end of the run is to be seen, here and in all processes."""
        elapsed = self._clock.now() - start
        told = running is not None and running.ended is not None
        self._sleep(self._unseen(running) if told else self._until_due(elapsed, elapsed))

    def _sleep(self, nanoseconds: int) -> None:
        if nanoseconds:
            self._clock.sleep(nanoseconds / SECOND)

    def _unseen(self, running: Running | None) -> int:
        """Nanoseconds until the end of a run is to be seen."""
        if running is None or running.ended is None:
            return 0
        return self._until_due(running.ended * MICROSECOND, running.elapsed * MICROSECOND)

    def _until_due(self, ended: int, elapsed: int) -> int:
        return max(0, due(ended, self._grid) - elapsed) if self._grid else 0

    def _wait_until_shown(self, data: Data, release: int, ticket: Ticket) -> None:
        shown = self._clock.now() + self._unseen(data.ledger.run_of(release))
        with _here.changed:
            while (now := self._clock.now()) < shown:
                ticket.check(now, DETACHED)
                rest = shown if ticket.deadline is None else min(shown, ticket.deadline)
                _here.changed.wait((rest - now) / SECOND)

    def _end(self, job: Job | Asking, run: _Run, outcome: Outcome) -> bool:
        """Show the outcome, unless someone has come whose failure is not counted."""
        with _here.changed:
            if run.counted < len(run.asked) and outcome.failure:
                return False
            run.outcome = outcome
            if _here.runs.get((self._ledger, job.release)) is run:
                del _here.runs[self._ledger, job.release]
            _here.changed.notify_all()
            return True


def is_runs_thread() -> bool:
    """Whether it is a run that asks: it cannot wait for itself, and others must not wait for it."""
    return isinstance(threading.current_thread(), _Thread)


def _count(job: Job | Asking, run: _Run, outcome: Outcome) -> None:
    """Privacy: everyone who is told of a failure has it counted, once, however often she asked (SOUNDNESS 10)."""
    with _here.changed:
        told, run.counted = list(run.asked.values())[run.counted :], len(run.asked)
    for account, ledger in told if outcome.failure else ():
        try:
            ledger.failed(account, job.release)
        except Exception:  # without its ledger nobody is charged or answered
            log.error("a failed run could not be counted", exc_info=True)


@contextmanager
def _kept(ledger: Ledger, release: int, holder: str) -> Iterator[None]:
    """Say again and again, meanwhile, that the run is under way."""
    over = threading.Event()

    def keep() -> None:
        while not over.wait(KEEPING):
            try:
                ledger.keep_run(release, holder, LEASE)
            except Exception:  # another may take over then, which costs a run and no privacy
                log.error("a run could not keep its lease", exc_info=True)

    keeper = threading.Thread(target=keep, name=f"dpsql-keep-{release}", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join()


def attempt(data: Data, job: Job | Asking) -> Outcome:
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
        return Outcome(_stored(data, job, released))
    except Error as error:
        return Outcome(error=_bare(error))


def _released(data: Data, job: Job | Asking) -> bytes:
    """Exact rows live between these lines only."""
    exact = data.engine.execute(job.sql, job.keys, job.holes)
    data.check_read()  # the files may have been replaced while they were read
    if isinstance(job, Asking):
        return verdict_to_bytes(judge(exact, job.question, job.watch, job.number), job.number)
    with ended_by(_in_time(data.seconds)):
        return to_bytes(perturb(exact, job.spec, job.sampler))


def _in_time(seconds: float) -> Callable[[], None]:
    """The limit that the engine has holds for a study too: how long that takes depends on the rows, as the engine's
    time does, and that it is over counts as a failure of the engine (SOUNDNESS 10)."""
    end = time.monotonic() + seconds

    def check() -> None:
        if time.monotonic() > end:
            raise TimeoutError(f"a study took longer than {seconds:g} s")

    return check


def _stored(data: Data, job: Job | Asking, body: bytes) -> bytes:
    """What was read back: it alone is delivered."""
    if isinstance(job, Asking):
        return data.ledger.tell(job.release, job.number, body)
    return data.ledger.store(job.release, body, job.errors)


def _bare(error: Error) -> Error:
    """The same error without what happened before it."""
    return type(error)(error.message, detail=error.detail, hint=error.hint, sqlstate=error.sqlstate)
