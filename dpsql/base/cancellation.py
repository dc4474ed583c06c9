"""Cancellation and deadlines: handles of statements, and checkpoints at which long work in Python ends.

Compiling reads no clock and stays a function of its arguments (law 6): it passes checkpoints, at which
the check of who called it may end it by raising. Nothing that it would have made is kept, and nothing was charged. A
study of rows that were paid for has checkpoints too, for the owner's limit of time (`session/dataset/runs.py`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from dpsql.errors import QueryCanceled

CHECK_INTERVAL = 100
"""Checkpoints between two checks: some tenths of a millisecond."""


class _CancelScope:
    def __init__(self, check: Callable[[], object], handle: StatementHandle | None = None, account: str = "") -> None:
        self.check = check
        self.handle = handle
        self.account = account
        self._ticks = 0

    def _tick(self) -> None:
        self._ticks += 1
        if self._ticks % CHECK_INTERVAL == 0:
            self.check()


_current_scope: ContextVar[_CancelScope | None] = ContextVar("cancel_scope", default=None)


def checkpoint() -> None:
    """A point at which long work may end: every `CHECK_INTERVAL`-th one runs the scope's check."""
    scope = _current_scope.get()
    if scope is not None:
        scope._tick()


def check_now() -> None:
    """Check for a cancel or a deadline at once, without waiting for the next `CHECK_INTERVAL`."""
    scope = _current_scope.get()
    if scope is not None:
        scope.check()


def current_handle() -> StatementHandle | None:
    """The handle of the statement that runs in this thread, or None."""
    scope = _current_scope.get()
    return None if scope is None else scope.handle


def current_account() -> str:
    """That of the statement that runs in this thread; empty where none does."""
    scope = _current_scope.get()
    return "" if scope is None else scope.account


@contextmanager
def _enter_scope(scope: _CancelScope) -> Iterator[None]:
    scope.check()
    before = _current_scope.set(scope)
    try:
        yield
    finally:
        _current_scope.reset(before)


def cancel_scope(check: Callable[[], object]) -> AbstractContextManager[None]:
    """Work within ends at a checkpoint where the check raises."""
    return _enter_scope(_CancelScope(check, current_handle(), current_account()))


# One statement under way, as its client sees it: until when it may wait, whether it was canceled, how far it is.


@dataclass(eq=False)
class StatementHandle:
    """`delivered` of its `releases` are there. What is `free` may be served only what is charged to nobody.

    Privacy: a release is delivered when its run is seen to have ended, and so on the grid of `min_latency`. How far the
    engine is with a run is told nowhere: it would be a clock of the rows.
    """

    deadline: int | None = None
    canceled: bool = False
    releases: int = 0
    delivered: int = 0
    free: bool = False
    interrupt: Callable[[], None] | None = None  # ends post-processing, which reads no private row

    def check_cancellation(self, now: int, hint: str | None = None) -> None:
        if self.canceled:
            raise QueryCanceled("canceling statement due to user request", hint=hint)
        if self.deadline is not None and now >= self.deadline:
            raise QueryCanceled("canceling statement due to statement timeout", hint=hint)


def statement_scope(
    account: str, handle: StatementHandle, check: Callable[[], object] = lambda: None
) -> AbstractContextManager[None]:
    """What runs within is the account's statement: it ends when the check raises, and a cancel calls what `handle` has
    for `interrupt`."""
    return _enter_scope(_CancelScope(check, handle, account))


# --- what is ended ---------------------------------------------------------------------------------------------------
# Statements whose time is over, and those that are canceled where no private row is read. One thread watches all of
# them, since starting one for each cost more than most statements take.


@contextmanager
def stop_on_cancel(stop: Callable[[], object]) -> Iterator[None]:
    """While the block runs, a cancel of the statement calls `stop`; never after it.

    A cancel sets `canceled`, then calls `interrupt`. Runs of private rows are on threads of their own, and go on.
    """
    statement, lock, under_way = current_handle(), threading.Lock(), [True]

    def interrupt() -> None:
        with lock:
            if under_way[0]:
                stop()

    if statement is not None:
        statement.interrupt = interrupt
        if statement.canceled:
            interrupt()
    try:
        yield
    finally:
        if statement is not None:
            statement.interrupt = None
        with lock:
            under_way[0] = False


class DeadlineWatcher:
    """Calls `stop` of what is still under way at its deadline; never of what has ended."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._reset_state()
        if os.name == "posix":  # a forked child has none of its threads, and perhaps a lock that nobody will open
            os.register_at_fork(after_in_child=self._reset_state)

    def _reset_state(self) -> None:
        self._changed = threading.Condition()
        self._under_way: dict[object, tuple[float, Callable[[], object]]] = {}
        self._wakes: float | None = None  # when the thread looks again; None: not before it is told
        self._thread: threading.Thread | None = None

    @contextmanager
    def enforce_deadline(self, seconds: float, stop: Callable[[], object]) -> Iterator[None]:
        """While the block runs, and `seconds` have passed or it is canceled, `stop` is called."""
        key, deadline = object(), self._now() + seconds
        with self._changed:
            self._under_way[key] = deadline, stop
            self._wake_thread(deadline)
        try:
            with stop_on_cancel(stop):
                yield
        finally:
            with self._changed:
                self._under_way.pop(key, None)

    def _wake_thread(self, deadline: float) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run_loop, name="dpsql-watch", daemon=True)
            self._thread.start()
        elif self._wakes is None or deadline < self._wakes:
            self._changed.notify()

    def _run_loop(self) -> None:
        with self._changed:
            while True:
                for key in [key for key, (deadline, _) in self._under_way.items() if deadline <= self._now()]:
                    _, stop = self._under_way.pop(key)
                    stop()
                self._wakes = min((deadline for deadline, _ in self._under_way.values()), default=None)
                self._changed.wait(None if self._wakes is None else max(0.0, self._wakes - self._now()))
