"""Multiplicative weights with the exponential mechanism (Hardt, Ligett, McSherry 2012), over an enumerated domain.

Round by round the marginal is chosen on which the current estimate is furthest off (`measure.MarginalSelector`),
measured with noise, and the estimate is multiplied towards it. As in practice, and unlike the paper, whole marginals
are measured and not single counting queries (a marginal's cells are disjoint: one unit moves one of them, or as much in
several); every round learns from all measurements so far; and the last estimate is used, not the average. The total is
a noisy one.

The estimate A is a table of floats. That is sound: it is worked out from noisy values alone. For a measurement m of the
queries q, the paper's step is A(x) <- A(x) exp(sum of q(x) (m_q - q(A)) / (2n)), normalised to n. That is a step of
length 1/(2n) of mirror descent on the squared residuals, so `fit_estimate` takes such steps over all measurements
together, longer or shorter as the residuals allow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from dpsql.base.cancellation import check_now
from dpsql.privacy.exact import Cells
from dpsql.privacy.synthetic.measure import Floats, Marginal

MAX_CELLS = 1 << 17
"""Of a domain that is enumerated: a fit takes some seconds then."""

_MAX_STEPS = 100
_MIN_IMPROVEMENT = 1e-4
"""Fitting ends when a step improves the residuals by less than this part of them."""


@dataclass(frozen=True)
class MarginalMeasurement:
    """A noisy marginal and the variance of its cells."""

    marginal: Marginal
    noisy: Cells
    variance: float


def marginal_workload(sizes: tuple[int, ...]) -> tuple[Marginal, ...]:
    """All one- and two-way marginals."""
    axes = range(len(sizes))
    return (*((axis,) for axis in axes), *combinations(axes, 2))


def uniform_estimate(sizes: tuple[int, ...], total: float) -> Floats:
    return np.full(sizes, total / prod(sizes))


def marginal_of(estimate: Floats, marginal: Marginal) -> Floats:
    others = tuple(axis for axis in range(estimate.ndim) if axis not in marginal)
    result: Floats = estimate.sum(axis=others) if others else estimate
    return result


def multiply_weights(estimate: Floats, pulls: Iterable[tuple[Marginal, Floats]], step: float, total: float) -> Floats:
    """Every cell times exp(step * what its marginals are pulled by), normalised to the total."""
    exponents = np.zeros_like(estimate)
    for marginal, pull in pulls:
        shape = [size if axis in marginal else 1 for axis, size in enumerate(estimate.shape)]
        exponents += pull.reshape(shape)
    exponents *= step
    exponents -= exponents.max()
    np.exp(exponents, out=exponents)
    exponents *= estimate
    weight_sum = exponents.sum()
    if not weight_sum > total * np.finfo(np.float64).tiny:  # every cell that may have weight has lost it to rounding
        return uniform_estimate(estimate.shape, total)
    exponents *= total / weight_sum
    return exponents


def fit_estimate(estimate: Floats, measured: list[MarginalMeasurement], total: float) -> Floats:
    """An estimate that is nearer to all measurements, each counted by how exact it is."""
    min_variance = min(measurement.variance for measurement in measured)
    step = 1.0 / (2.0 * total)
    residuals = _marginal_residuals(estimate, measured)
    error = _weighted_error(residuals, measured, min_variance)
    for _ in range(_MAX_STEPS):
        check_now()
        pulls = [
            (measurement.marginal, residual * (min_variance / measurement.variance))
            for measurement, residual in zip(measured, residuals, strict=True)
        ]
        moved = multiply_weights(estimate, pulls, step, total)
        moved_residuals = _marginal_residuals(moved, measured)
        moved_error = _weighted_error(moved_residuals, measured, min_variance)
        if moved_error <= error:
            gained = error - moved_error
            estimate, residuals, error = moved, moved_residuals, moved_error
            if gained <= _MIN_IMPROVEMENT * error and step * total >= 0.5:
                break
            step *= 2.0
        else:
            step /= 4.0
            if step * total < 1e-6:
                break
    return estimate


def _marginal_residuals(estimate: Floats, measured: list[MarginalMeasurement]) -> list[Floats]:
    return [measurement.noisy - marginal_of(estimate, measurement.marginal) for measurement in measured]


def _weighted_error(residuals: list[Floats], measured: list[MarginalMeasurement], min_variance: float) -> float:
    return sum(
        float(np.square(residual).sum()) * (min_variance / measurement.variance)
        for measurement, residual in zip(measured, residuals, strict=True)
    )
