"""Draws of BLOCKWISE on two neighbors differ by no more than its epsilon; broken forms of it are found out.

Each form is run on both databases and its noise drawn many times. What an adversary can tell is bounded from below by
exact binomial intervals on the event "above the threshold"; all conclusions together are wrong with at most 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from dpsql.engines.in_memory import InMemoryEngine
from dpsql.privacy.noise import Laplace
from dpsql.privacy.sampling import ExactSampler
from dpsql.verify.epsilon_bound import probability_lower_bound, probability_upper_bound
from tests.support.blockwise import Row, cells, compiled, fill, world

pytestmark = pytest.mark.stat

DRAWS, MISS, EPSILON = 100_000, 1e-8, 1
SQL = "SELECT BLOCKWISE(max(x), 0, 100, blocks => 20) AS b FROM events"

CROWD: tuple[Row, ...] = tuple((20 + i, "a", 0.0) for i in range(400))
HEAVY: tuple[Row, ...] = tuple((7, "a", 100.0 - i / 8) for i in range(300))
ALONE: tuple[Row, ...] = ((7, "a", 100.0),)


def loss_seen(sql: str, rows: tuple[Row, ...], fewer: tuple[Row, ...], change: Callable[[int, int], float]) -> float:
    """At least the epsilon that tells the two apart, by the best of some thresholds."""
    engine, made = InMemoryEngine(1), world()
    (step,) = compiled(SQL, made, EPSILON).steps
    mechanism = step.calibrated.bundles[0].mechanism
    assert isinstance(mechanism, Laplace)
    drawn = []
    for database in (rows, fewer):
        fill(engine, made, database)
        (cell,) = cells(engine, sql or step.sql, 0).values()
        blocks = engine.query_rows("SELECT count(DISTINCT hash(uid, 'blocks') % 20) FROM events")[0][0]
        drawn.append(change(cell, int(blocks)) + ExactSampler().laplace(DRAWS, mechanism.scale))
    engine.close()
    found = 0.0
    for threshold in np.quantile(np.concatenate(drawn), (0.25, 0.5, 0.75)):
        for sign in (1, -1):
            high, low = (int(np.sum(sign * part > sign * threshold)) for part in drawn)
            p, q = probability_lower_bound(high, DRAWS, MISS), probability_upper_bound(low, DRAWS, MISS)
            found = max(found, math.log(p / q) if p > 0 else 0.0)
            p, q = probability_lower_bound(low, DRAWS, MISS), probability_upper_bound(high, DRAWS, MISS)
            found = max(found, math.log(p / q) if p > 0 else 0.0)
    return found


def as_it_is(cell: int, blocks: int) -> float:
    return cell


def by_blocks_with_rows(cell: int, blocks: int) -> float:
    """The mean over the blocks that have rows, in the units of a sum over twenty."""
    return cell * 20 / max(1, blocks)


# Beside a crowd a heavy unit moves its block all the way; alone it moves it from where blocks without rows are put, the
# middle: half of the way, and half of epsilon.
NEIGHBORS = [((*HEAVY, *CROWD), CROWD, 0.8), (ALONE, (), 0.4)]


@pytest.mark.parametrize(("rows", "fewer", "power"), NEIGHBORS, ids=["a heavy unit", "a unit alone"])
def test_no_more_than_epsilon_is_seen(rows: tuple[Row, ...], fewer: tuple[Row, ...], power: float) -> None:
    """And nearly all of what there is to see is seen."""
    assert power < loss_seen("", rows, fewer, as_it_is) <= EPSILON


def test_a_divisor_that_counts_the_blocks_with_rows_is_found_out() -> None:
    assert loss_seen("", ALONE, (), by_blocks_with_rows) > EPSILON


def test_blocks_of_rows_instead_of_units_are_found_out() -> None:
    (step,) = compiled(SQL, world(), EPSILON).steps
    by_row = step.sql.replace("hash(_uid, 'blocks')", "hash(_uid, \"x1\", 'blocks')")
    assert by_row != step.sql
    assert loss_seen(by_row, (*HEAVY, *CROWD), CROWD, as_it_is) > EPSILON
