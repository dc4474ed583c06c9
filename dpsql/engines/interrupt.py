"""Ends statements whose time is over, and those that are canceled where no private row is read.

One thread watches all of them, since starting one for each cost more than most statements take.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dpsql.base.cancellation import current_handle


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
