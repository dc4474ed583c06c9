"""Medians by their local sensitivity, on a pair of neighbors: what their proofs rest on, exactly."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpsql.privacy.choice import Local
from dpsql.privacy.ptr import Proposed, distance
from dpsql.privacy.smooth import Gaps, Smooth, gaps, smooth_sensitivity

_LEAST = Fraction(1, 10**30)
Counts = npt.NDArray[np.int64]


def breaks(mechanism: Local, one: Counts, other: Counts) -> list[str]:
    """What is wrong with two neighbors' counts, a row for each block."""
    moved = np.abs(one - other).sum(axis=1)
    found = []
    if np.count_nonzero(moved) > mechanism.reached.blocks:
        found.append(f"neighbors differ in {np.count_nonzero(moved)} groups, claimed {mechanism.reached.blocks}")
    if moved.max(initial=0) > mechanism.reached.steps:
        found.append(f"neighbors differ by {moved.max()} values in a group, claimed {mechanism.reached.steps}")
    for ours, theirs in zip(one[moved > 0], other[moved > 0], strict=True):
        pair = gaps(ours, mechanism.reached.steps), gaps(theirs, mechanism.reached.steps)
        found += _smoothed(mechanism, *pair) if isinstance(mechanism, Smooth) else _tested(mechanism, *pair)
    return found


def _smoothed(mechanism: Smooth, one: Gaps, other: Gaps) -> list[str]:
    ours, theirs = (smooth_sensitivity(side, mechanism.rate, _LEAST) for side in (one, other))
    found = []
    if abs(one.median - other.median) > min(ours, theirs):
        found.append("the median moves further than its smooth sensitivity")
    if max(ours, theirs) > min(ours, theirs) * growth(mechanism):
        found.append("the smooth sensitivity is not smooth")
    return found


def growth(mechanism: Smooth) -> Fraction:
    """1 + epsilon / (2 ln(2/delta)), the most by which noise may grow, from the delta that is charged."""
    with localcontext(Context(prec=60)):
        each = mechanism.loss.delta / mechanism.reached.blocks
        log = (2 * Decimal(each.denominator) / Decimal(each.numerator)).ln()
        return 1 + mechanism.epsilon / (2 * Fraction(log)) * (1 + Fraction(1, 10**9))


def _tested(mechanism: Proposed, one: Gaps, other: Gaps) -> list[str]:
    far = [distance(side, mechanism.proposal) for side in (one, other)]
    found = []
    if abs(far[0] - far[1]) > mechanism.reached.steps:
        found.append(f"the distance moves by {abs(far[0] - far[1])}, claimed {mechanism.reached.steps}")
    if abs(one.median - other.median) > mechanism.proposal and max(far) > 0:
        found.append("the median moves further than proposed, at a distance")
    return found
