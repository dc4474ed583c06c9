"""Medians by their local sensitivity, on a pair of neighbors: what their proofs rest on, exactly."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpsql.privacy.choice import LocalSensitivityMechanism
from dpsql.privacy.ptr import ProposeTestRelease, distance_to_instability
from dpsql.privacy.smooth import LocalSensitivity, SmoothMedian, local_sensitivity, smooth_sensitivity

_MIN_SENSITIVITY = Fraction(1, 10**30)
Counts = npt.NDArray[np.int64]


def check_local_median(mechanism: LocalSensitivityMechanism, first: Counts, second: Counts) -> list[str]:
    """What is wrong with two neighbors' counts, a row for each block."""
    moved = np.abs(first - second).sum(axis=1)
    problems = []
    if np.count_nonzero(moved) > mechanism.reached.blocks:
        problems.append(f"neighbors differ in {np.count_nonzero(moved)} groups, claimed {mechanism.reached.blocks}")
    if moved.max(initial=0) > mechanism.reached.steps:
        problems.append(f"neighbors differ by {moved.max()} values in a group, claimed {mechanism.reached.steps}")
    for ours, theirs in zip(first[moved > 0], second[moved > 0], strict=True):
        pair = local_sensitivity(ours, mechanism.reached.steps), local_sensitivity(theirs, mechanism.reached.steps)
        problems += _check_smooth_median(mechanism, *pair) if isinstance(mechanism, SmoothMedian) else _check_proposed_median(mechanism, *pair)
    return problems


def _check_smooth_median(mechanism: SmoothMedian, first: LocalSensitivity, second: LocalSensitivity) -> list[str]:
    ours, theirs = (smooth_sensitivity(side, mechanism.rate, _MIN_SENSITIVITY) for side in (first, second))
    problems = []
    if abs(first.median - second.median) > min(ours, theirs):
        problems.append("the median moves further than its smooth sensitivity")
    if max(ours, theirs) > min(ours, theirs) * max_noise_growth(mechanism):
        problems.append("the smooth sensitivity is not smooth")
    return problems


def max_noise_growth(mechanism: SmoothMedian) -> Fraction:
    """1 + epsilon / (2 ln(2/delta)), the most by which noise may grow, from the delta that is charged."""
    with localcontext(Context(prec=60)):
        block_delta = mechanism.loss.delta / mechanism.reached.blocks
        log = (2 * Decimal(block_delta.denominator) / Decimal(block_delta.numerator)).ln()
        return 1 + mechanism.epsilon / (2 * Fraction(log)) * (1 + Fraction(1, 10**9))


def _check_proposed_median(mechanism: ProposeTestRelease, first: LocalSensitivity, second: LocalSensitivity) -> list[str]:
    distances = [distance_to_instability(side, mechanism.proposal) for side in (first, second)]
    problems = []
    if abs(distances[0] - distances[1]) > mechanism.reached.steps:
        problems.append(f"the distance moves by {abs(distances[0] - distances[1])}, claimed {mechanism.reached.steps}")
    if abs(first.median - second.median) > mechanism.proposal and max(distances) > 0:
        problems.append("the median moves further than proposed, at a distance")
    return problems
