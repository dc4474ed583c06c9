"""How much the random tests draw: an eighth in `make test`, everything in `make test-slow`.

Tests marked `thorough` run in both. `DPSQL_TRIALS` sets the number for one run by hand.
"""

from __future__ import annotations

import os

THOROUGH = os.environ.get("DPSQL_THOROUGH", "0") != "0"
QUICK_SHARE = 8


def trial_count(full: int) -> int:
    """The number of trials of a test that wants `full` of them."""
    chosen = os.environ.get("DPSQL_TRIALS")
    return int(chosen) if chosen else example_count(full)


def example_count(full: int) -> int:
    """The number of examples that Hypothesis draws where a test wants `full` of them."""
    return full if THOROUGH else max(1, full // QUICK_SHARE)
