"""How often something more would be granted."""

from __future__ import annotations

from collections.abc import Callable

MAX_COUNTED = 1_000_000
"""No more than so many are counted."""


def count_admitted(admits: Callable[[int], bool]) -> int:
    """The largest number, up to MANY, that is admitted; of those below it, all are.

    >>> count_admitted(lambda number: 3 * number <= 100), count_admitted(lambda number: False), count_admitted(lambda number: True)
    (33, 0, 1000000)
    """
    low, high = 0, 1
    while high <= MAX_COUNTED and admits(high):
        low, high = high, 2 * high
    high = min(high, MAX_COUNTED + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if admits(middle) else (low, middle)
    return low
