"""Who works how much at once: of one account a few, and the others in the order in which they came."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOOKING = 0.05
"""Seconds between two looks whether the one who waits is to go on waiting."""


class Turns:
    """At most `most` of one name are within `of` at a time. Nobody waits for another name."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._lines: dict[str, deque[object]] = {}  # those within, then those who wait

    @contextmanager
    def of(self, name: str, check: Callable[[], object]) -> Iterator[None]:
        """`check` raises where the wait is over without a turn."""
        one = object()
        with self._changed:
            line = self._lines.setdefault(name, deque())
            line.append(one)
        try:
            with self._changed:
                while line.index(one) >= self._most:
                    check()
                    self._changed.wait(LOOKING)
            yield
        finally:
            with self._changed:
                line.remove(one)
                if not line:
                    del self._lines[name]
                self._changed.notify_all()
