"""How much memory the answers take that a server's clients have not read yet, or keep in portals and cursors.

Law: an account holds at most half of what the others leave free; who would hold more is refused before its rows are
given out, and asking again is free. Rows are let go where nobody has them any more, whoever had them.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from collections.abc import Iterable
from typing import Any

from dpsql.errors import OperationalError

UNCOUNTED_BYTES = 64 * 1024
"""Bytes of an answer that is not counted."""
CELL_BYTES, ROW_BYTES = 40, 64
"""Bytes of a value and of a row beside its texts, about."""


class CountedRows(list[tuple[Any, ...]]):
    """Rows that are counted as long as somebody has them."""


class MemoryQuota:
    """The bytes of rows that a process may keep; without a limit, as for a single analyst, nothing is counted."""

    def __init__(self, max_bytes: int | None = None) -> None:
        self.most = max_bytes
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()

    @property
    def used_bytes(self) -> int:
        return self._held.total()

    def count_rows(self, account: str, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        if self.most is None:
            return rows
        size = estimate_size(rows)
        if size <= UNCOUNTED_BYTES:
            return rows
        with self._lock:
            if size > (self.most - (self.used_bytes - self._held[account])) // 2 - self._held[account]:
                raise OperationalError(
                    "the answers that you have asked for, and not read to their end, take too much memory",
                    hint="Read or close those first, or ask for less at a time; what was paid for is free.",
                    sqlstate="53200",
                )
            self._held[account] += size
        counted = CountedRows(rows)
        weakref.finalize(counted, self._release_rows, account, size).atexit = False
        return counted

    def _release_rows(self, account: str, size: int) -> None:
        with self._lock:
            self._held[account] -= size
            self._held += Counter()  # without those that hold nothing


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
