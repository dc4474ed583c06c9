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

SMALL = 64 * 1024
"""Bytes of an answer that is not counted."""
CELL, ROW = 40, 64
"""Bytes of a value and of a row beside its texts, about."""


class HeldRows(list[tuple[Any, ...]]):
    """Rows that are counted as long as somebody has them."""


class Holding:
    """Of a process; without a limit, as in a process of one analyst, nothing is counted."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()

    @property
    def held(self) -> int:
        return self._held.total()

    def counted(self, account: str, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        if self.most is None:
            return rows
        size = size_of(rows)
        if size <= SMALL:
            return rows
        with self._lock:
            if size > (self.most - (self.held - self._held[account])) // 2 - self._held[account]:
                raise OperationalError(
                    "the answers that you have asked for, and not read to their end, take too much memory",
                    hint="Read or close those first, or ask for less at a time; what was paid for is free.",
                    sqlstate="53200",
                )
            self._held[account] += size
        held = HeldRows(rows)
        weakref.finalize(held, self._let_go, account, size).atexit = False
        return held

    def _let_go(self, account: str, size: int) -> None:
        with self._lock:
            self._held[account] -= size
            self._held += Counter()  # without those that hold nothing


def size_of(rows: Iterable[tuple[Any, ...]]) -> int:
    """
    >>> size_of([]), size_of([(1, "x" * 1000)]), size_of([([1, 2, 3],)] * 2)
    (0, 1144, 448)
    """
    return sum(ROW + sum(_size(value) for value in row) for row in rows)


def _size(value: object) -> int:
    if isinstance(value, str | bytes):
        return CELL + len(value)
    if isinstance(value, list | tuple):
        return CELL + sum(_size(one) for one in value)
    if isinstance(value, dict):
        return CELL + sum(_size(one) for pair in value.items() for one in pair)
    return CELL


HOLDING = Holding()
"""That of this process."""
