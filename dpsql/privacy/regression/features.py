"""The features of a model: from the codes of a tuple to a vector in the unit ball, by public tables.

An axis of n places is either a scale, of which place k becomes z = -1 + 2k/(n - 1), or a list of categories, of which
each has a column of its own that is 1 where the row has it. A constant feature of 1 stands in front: the intercept is
a coefficient like any other, and held by the ridge like any other (a minimiser whose intercept is free moves without
bound, whatever the ridge of the others).

Stability: with m axes, z has at most m + 1 components other than 0 at a time, none beyond 1; so |z|^2 <= m + 1, and
x = z / scale lies in the unit ball for every scale with scale^2 >= m + 1. z is a whole multiple of 2^-15, rounded
toward zero, so all this holds of numbers that are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]
IntegerArray = npt.NDArray[np.int64]

FEATURE_BITS = 15
"""Features are whole multiples of 2^-STEPS."""
FEATURE_ONE = 1 << FEATURE_BITS
_ROOT_STEPS = 1 << 20


@dataclass(frozen=True)
class NumericAxis:
    """Places in ascending order, evenly spaced: the first becomes -1, the last 1."""

    size: int

    @property
    def width(self) -> int:
        return 1

    def feature_numerators(self, codes: IntegerArray) -> IntegerArray:
        last = max(1, self.size - 1)
        twice = (2 * codes - last) * FEATURE_ONE if self.size > 1 else np.zeros_like(codes)
        steps: IntegerArray = np.sign(twice) * (np.abs(twice) // last)
        return steps[:, None]


@dataclass(frozen=True)
class CategoricalAxis:
    """A feature or label of values without an order."""

    size: int

    @property
    def width(self) -> int:
        return self.size

    def feature_numerators(self, codes: IntegerArray) -> IntegerArray:
        return np.where(codes[:, None] == np.arange(self.size), FEATURE_ONE, 0)


FeatureAxis = NumericAxis | CategoricalAxis


@dataclass(frozen=True)
class FeatureDesign:
    """The features of a model, before which the label is one more axis of its tally."""

    axes: tuple[FeatureAxis, ...]

    def __post_init__(self) -> None:
        if not self.axes or any(not 1 <= axis.size < 1 << 31 for axis in self.axes):
            raise ValueError("a model has features, and each has places")

    @property
    def width(self) -> int:
        """How many coefficients there are, the intercept among them."""
        return 1 + sum(axis.width for axis in self.axes)

    @property
    def scale(self) -> Fraction:
        return sqrt_rounded_up(1 + len(self.axes))

    def feature_numerators(self, codes: IntegerArray) -> IntegerArray:
        """z in units of 2^-15, one row for each tuple."""
        parts = [axis.feature_numerators(codes[:, index]) for index, axis in enumerate(self.axes)]
        return np.concatenate([np.full((len(codes), 1), FEATURE_ONE, np.int64), *parts], axis=1)

    def feature_vectors(self, codes: IntegerArray) -> Floats:
        """x, each component within 2^-52 of itself."""
        return self.feature_numerators(codes) / (FEATURE_ONE * float(self.scale))

    def to_json(self) -> list[list[Any]]:
        return [["scale" if isinstance(axis, NumericAxis) else "categories", axis.size] for axis in self.axes]

    @classmethod
    def from_json(cls, part: list[list[Any]]) -> FeatureDesign:
        kinds: dict[str, Callable[[int], FeatureAxis]] = {"scale": NumericAxis, "categories": CategoricalAxis}
        return cls(tuple(kinds[kind](size) for kind, size in part))


def sqrt_rounded_up(value: int) -> Fraction:
    """The square root of a whole number, rounded up to a multiple of 2^-20."""
    square = value * _ROOT_STEPS**2
    root = math.isqrt(square)
    return Fraction(root if root * root == square else root + 1, _ROOT_STEPS)
