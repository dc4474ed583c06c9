"""What the accounts of one process share: turns, and the memory of results that nobody has read yet.

Turns: a few tasks of one account at a time, the others in the order in which they came.

Memory: of results that a server's clients have not read yet, or keep in portals and cursors. Law: an account holds at
most half of what the others leave free; who would hold more is refused before its rows are given out, and asking again
is free. Rows are let go where nobody has them any more, whoever had them.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from dpsql.errors import OperationalError

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


UNCOUNTED_BYTES = 64 * 1024
"""Bytes of an answer that is not counted."""
CELL_BYTES, ROW_BYTES = 40, 64
"""Bytes of a value and of a row beside its texts, about."""


class CountedRows(list[tuple[Any, ...]]):
    """Rows that are counted as long as somebody has them."""


class MemoryQuota:
    """The bytes of rows that a process may keep; without a limit, as for a single analyst, nothing is counted."""

    def __init__(self, max_bytes: int | None = None) -> None:
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._used_by_account: Counter[str] = Counter()

    @property
    def used_bytes(self) -> int:
        return self._used_by_account.total()

    def count_rows(self, account: str, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        if self.max_bytes is None:
            return rows
        size = estimate_size(rows)
        if size <= UNCOUNTED_BYTES:
            return rows
        with self._lock:
            if (
                size
                > (self.max_bytes - (self.used_bytes - self._used_by_account[account])) // 2
                - self._used_by_account[account]
            ):
                raise OperationalError(
                    "the answers that you have asked for, and not read to their end, take too much memory",
                    hint="Read or close those first, or ask for less at a time; what was paid for is free.",
                    sqlstate="53200",
                )
            self._used_by_account[account] += size
        counted = CountedRows(rows)
        weakref.finalize(counted, self._release_rows, account, size).atexit = False
        return counted

    def _release_rows(self, account: str, size: int) -> None:
        with self._lock:
            self._used_by_account[account] -= size
            self._used_by_account += Counter()  # without those that hold nothing


def estimate_size(rows: Iterable[tuple[Any, ...]]) -> int:
    """
    >>> estimate_size([]), estimate_size([(1, "x" * 1000)]), estimate_size([([1, 2, 3],)] * 2)
    (0, 1144, 448)
    """
    return sum(ROW_BYTES + sum(_estimate_value_size(value) for value in row) for row in rows)


def _estimate_value_size(value: object) -> int:
    if isinstance(value, str | bytes):
        return CELL_BYTES + len(value)
    if isinstance(value, list | tuple):
        return CELL_BYTES + sum(_estimate_value_size(item) for item in value)
    if isinstance(value, dict):
        return CELL_BYTES + sum(_estimate_value_size(item) for pair in value.items() for item in pair)
    return CELL_BYTES


RESULT_QUOTA = MemoryQuota()
"""That of this process."""
