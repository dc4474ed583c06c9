"""Multiplicative weights with the exponential mechanism (Hardt, Ligett, McSherry 2012), over an enumerated domain.

Round by round the marginal is chosen on which the current estimate is furthest off (`looks.Contest`), measured with
noise, and the estimate is multiplied towards it. As in practice, and unlike the paper, whole marginals are measured and
not single counting queries (a marginal's cells are disjoint: one unit moves one of them, or as much in several); every
round learns from all measurements so far; and the last estimate is used, not the average. The total is a noisy one.

The estimate A is a table of floats. That is sound: it is worked out from noisy values alone. For a measurement m of the
queries q, the paper's step is A(x) <- A(x) exp(sum of q(x) (m_q - q(A)) / (2n)), normalised to n. That is a step of
length 1/(2n) of mirror descent on the squared residuals, so `fit` takes such steps over all measurements together,
longer or shorter as the residuals allow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from dpsql.exact import Cells
from dpsql.privacy.looks import Floats, Marginal
from dpsql.pulse import look

MOST_CELLS = 1 << 17
"""Of a domain that is enumerated: a fit takes some seconds then."""

_STEPS = 100
_ENOUGH = 1e-4
"""Fitting ends when a step improves the residuals by less than this part of them."""


@dataclass(frozen=True)
class Measured:
    """A noisy marginal and the variance of its cells."""

    marginal: Marginal
    noisy: Cells
    variance: float


def workload(sizes: tuple[int, ...]) -> tuple[Marginal, ...]:
    """All one- and two-way marginals."""
    axes = range(len(sizes))
    return (*((axis,) for axis in axes), *combinations(axes, 2))


def uniform(sizes: tuple[int, ...], total: float) -> Floats:
    return np.full(sizes, total / prod(sizes))


def marginal_of(estimate: Floats, marginal: Marginal) -> Floats:
    others = tuple(axis for axis in range(estimate.ndim) if axis not in marginal)
    result: Floats = estimate.sum(axis=others) if others else estimate
    return result


def multiply(estimate: Floats, pulls: Iterable[tuple[Marginal, Floats]], step: float, total: float) -> Floats:
    """Every cell times exp(step * what its marginals are pulled by), normalised to the total."""
    exponents = np.zeros_like(estimate)
    for marginal, pull in pulls:
        shape = [size if axis in marginal else 1 for axis, size in enumerate(estimate.shape)]
        exponents += pull.reshape(shape)
    exponents *= step
    exponents -= exponents.max()
    np.exp(exponents, out=exponents)
    exponents *= estimate
    whole = exponents.sum()
    if not whole > 0:  # every cell that may have weight has lost it to rounding
        return uniform(estimate.shape, total)
    exponents *= total / whole
    return exponents


def fit(estimate: Floats, measured: list[Measured], total: float) -> Floats:
    """An estimate that is nearer to all measurements, each counted by how exact it is."""
    least = min(one.variance for one in measured)
    step = 1.0 / (2.0 * total)
    residuals = _residuals(estimate, measured)
    badness = _badness(residuals, measured, least)
    for _ in range(_STEPS):
        look()
        pulls = [
            (one.marginal, residual * (least / one.variance)) for one, residual in zip(measured, residuals, strict=True)
        ]
        moved = multiply(estimate, pulls, step, total)
        found = _residuals(moved, measured)
        now = _badness(found, measured, least)
        if now <= badness:
            gained = badness - now
            estimate, residuals, badness = moved, found, now
            if gained <= _ENOUGH * badness and step * total >= 0.5:
                break
            step *= 2.0
        else:
            step /= 4.0
            if step * total < 1e-6:
                break
    return estimate


def _residuals(estimate: Floats, measured: list[Measured]) -> list[Floats]:
    return [one.noisy - marginal_of(estimate, one.marginal) for one in measured]


def _badness(residuals: list[Floats], measured: list[Measured], least: float) -> float:
    return sum(
        float(np.square(residual).sum()) * (least / one.variance)
        for one, residual in zip(measured, residuals, strict=True)
    )
