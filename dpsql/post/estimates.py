"""From a release's noisy cells to answers and their errors: post-processing, so nothing here costs anything.

Values are worked out in exact rationals where the type is exact. Errors come from noise scales and released values
only (SOUNDNESS 11); they do not include what clipping took away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from dpsql.plan.recipes import Linear, Mean, Recipe
from dpsql.privacy.mechanisms import interval_factor, standard_error
from dpsql.privacy.release import Release
from dpsql.types import BIGINT, Kind, Type

Values = list[Any]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Estimates:
    """One measure in every group: the answer, its standard error and a 95 % interval; None where there is no answer."""

    values: Values
    stderr: Values
    low: Values
    high: Values


def estimate(recipe: Recipe, release: Release, columns: tuple[str, ...], nonnegative: bool = False) -> Estimates:
    match recipe:
        case Linear():
            return _linear(recipe, release, columns, nonnegative)
        case Mean():
            return _mean(recipe, release, columns)
        case _:
            assert_never(recipe)


def _noise(release: Release, place: int) -> tuple[float, float]:
    """The standard error of a cell in the units of its values, and its interval's half-width in standard errors."""
    mechanism = next(b.mechanism for b in release.spec.bundles if place in b.columns)
    return standard_error(mechanism) * float(release.spec.grids[place]), interval_factor(mechanism)


def _linear(recipe: Linear, release: Release, columns: tuple[str, ...], nonnegative: bool) -> Estimates:
    places = [columns.index(cell) for cell, _ in recipe.terms]
    weights = [coefficient * release.spec.grids[p] for (_, coefficient), p in zip(recipe.terms, places, strict=True)]
    variance, factor = 0.0, 0.0
    for (_, coefficient), place in zip(recipe.terms, places, strict=True):
        error, factor_here = _noise(release, place)
        variance += (float(coefficient) * error) ** 2
        factor = max(factor, factor_here)
    stderr = math.sqrt(variance)
    cells = [release.cells[place].tolist() for place in places]
    exact = [sum((w * c for w, c in zip(weights, row, strict=True)), Fraction(0)) for row in zip(*cells, strict=True)]
    if nonnegative:
        exact = [max(value, Fraction(0)) for value in exact]
    low = [float(value) - factor * stderr for value in exact]
    high = [float(value) + factor * stderr for value in exact]
    return Estimates([_typed(value, recipe.type) for value in exact], [stderr] * len(exact), low, high)


def _typed(value: Fraction, type_: Type) -> Any:
    if type_ == BIGINT:
        return max(-(2**63), min(2**63 - 1, round(value)))
    if type_.kind is Kind.DECIMAL:
        scale = type_.scale or 0
        return Decimal(round(value * 10**scale)).scaleb(-scale)
    return float(value)


def _mean(recipe: Mean, release: Release, columns: tuple[str, ...]) -> Estimates:
    """The delta method: var(avg) = spread^2 * noise^2 * ((1 - p)^2 + p^2) / total^2, with p where avg stands."""
    above, below = columns.index(recipe.above), columns.index(recipe.below)
    lower, upper = float(recipe.lower), float(recipe.upper)
    grid = float(release.spec.grids[above])
    up, down = (release.cells[place].astype(np.float64) * grid for place in (above, below))
    noise, factor = _noise(release, above)
    result = Estimates([], [], [], [])
    for one, other in zip(up.tolist(), down.tolist(), strict=True):
        total = one + other
        if total <= 0:
            for column in (result.values, result.stderr, result.low, result.high):
                column.append(None)
            continue
        share = min(1.0, max(0.0, one / total))
        mean = lower + (upper - lower) * share
        stderr = (upper - lower) * noise * math.sqrt((1 - share) ** 2 + share**2) / total
        result.values.append(mean)
        result.stderr.append(stderr)
        result.low.append(max(lower, mean - factor * stderr))
        result.high.append(min(upper, mean + factor * stderr))
    return result
