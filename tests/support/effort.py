"""How much the random tests draw: an eighth in `make test`, a quarter in `make test-slow`, everything in `make stat`.

Tests marked `thorough` run in all three. `DPSQL_THOROUGH` is the share, such as 1 or 1/4; `DPSQL_TRIALS` sets the
number of trials for one run by hand.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

QUICK_SHARE = Fraction(1, 8)
SHARE = Fraction(os.environ.get("DPSQL_THOROUGH", "0")) or QUICK_SHARE
T = TypeVar("T")


def trial_count(full: int) -> int:
    """The number of trials of a test that wants `full` of them."""
    chosen = os.environ.get("DPSQL_TRIALS")
    return int(chosen) if chosen else example_count(full)


def example_count(full: int) -> int:
    """The number of examples that Hypothesis draws where a test wants `full` of them."""
    return max(1, int(full * SHARE))


def draw_some(cases: Sequence[T]) -> Sequence[T]:
    """The share of a list of cases that this run tries, evenly spread."""
    return cases[:: max(1, int(1 / SHARE))]
