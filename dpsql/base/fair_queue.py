"""A fair queue: a few tasks of one account at a time, the others in the order in which they came."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

CHECK_SECONDS = 0.05
"""Seconds between two looks whether the one who waits is to go on waiting."""


class FairSemaphore:
    """At most `max_active` of one name are within `acquire` at a time. Nobody waits for another name."""

    def __init__(self, max_active: int) -> None:
        self._max_active = max_active
        self._changed = threading.Condition()
        self._queues: dict[str, deque[object]] = {}  # those within, then those who wait

    @contextmanager
    def acquire(self, name: str, check: Callable[[], object]) -> Iterator[None]:
        """`check` raises where the wait is over without a turn."""
        token = object()
        with self._changed:
            line = self._queues.setdefault(name, deque())
            line.append(token)
        try:
            with self._changed:
                while line.index(token) >= self._max_active:
                    check()
                    self._changed.wait(CHECK_SECONDS)
            yield
        finally:
            with self._changed:
                line.remove(token)
                if not line:
                    del self._queues[name]
                self._changed.notify_all()
