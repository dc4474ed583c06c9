"""Tallies that are made up for models, and a sampler without noise."""

from __future__ import annotations

from fractions import Fraction as F
from random import Random
from typing import Any

import numpy as np

from dpsql.privacy.regression.features import CategoricalAxis, FeatureDesign, NumericAxis
from dpsql.privacy.sampling import Integers
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRows

DESIGN = FeatureDesign((NumericAxis(5), CategoricalAxis(3)))
AXES = Axes((0, 0, 0), (2, 5, 3))
LINEAR_AXES = Axes((0, 0, 0), (9, 5, 3))
Unit = dict[tuple[int, ...], int]


class Silent:
    """Draws nothing but zeros."""

    def laplace(self, n: int, scale: F) -> Integers:
        return np.zeros(n, np.int64)

    def gaussian(self, n: int, sigma: F) -> Integers:
        return np.zeros(n, np.int64)

    def choose(self, penalties: Any, scale: F) -> Integers:
        raise AssertionError("a model chooses nothing")


class Wrong(Silent):
    """Its slope is what it is told; other noise is zero."""

    def __init__(self, slope: list[int]) -> None:
        self._slope: list[int] | None = slope

    def laplace(self, n: int, scale: F) -> Integers:
        if scale == 1 << 30 and self._slope is not None:
            slope, self._slope = np.array(self._slope, np.int64), None
            return slope
        return np.zeros(n, np.int64)


def tally(*units: Unit, axes: Axes = AXES) -> WeightedRows:
    """What several units add up to."""
    sums: Unit = {}
    for unit in units:
        for code, weight in unit.items():
            sums[code] = sums.get(code, 0) + weight
    codes = sorted(code for code, weight in sums.items() if weight)
    width = len(codes[0]) if codes else len(axes.sizes)
    return WeightedRows(np.array(codes, np.int64).reshape(-1, width), np.array([sums[c] for c in codes], np.int64))


def unit(rng: Random, mass: UnitMass, axes: Axes = AXES) -> Unit:
    """One unit: all it may add to one tuple, at the corners more often than not; or spread; sometimes nothing."""

    def code() -> tuple[int, ...]:
        return tuple(rng.choice((0, size - 1)) if rng.random() < 0.7 else rng.randrange(size) for size in axes.sizes)

    shape = rng.random()
    if mass.one_row:
        return {} if shape < 0.1 else {code(): mass.whole}
    if shape < 0.1:
        return {}
    if shape < 0.6:
        return {code(): mass.norm}
    parts = {code(): 0 for _ in range(4)}
    return {key: mass.norm // len(parts) for key in parts}


def crowd(rng: Random, whole: int = 1, axes: Axes = AXES) -> Unit:
    """Nobody, a few, or a crowd that is all of one mind: then the minimiser is far out, and one more pulls hardest."""
    shape = rng.random()
    if shape < 0.2:
        return {}
    if shape < 0.6:
        code = tuple(rng.choice((0, size - 1)) for size in axes.sizes)
        return {code: whole * rng.choice((1, 10, 1000, 10**6))}
    return {
        tuple(rng.randrange(size) for size in axes.sizes): whole * rng.randrange(1, 50)
        for _ in range(rng.randrange(1, 12))
    }
