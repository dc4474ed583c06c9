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
Whole = npt.NDArray[np.int64]

STEPS = 15
"""Features are whole multiples of 2^-STEPS."""
ONE = 1 << STEPS
_ROOTS = 1 << 20


@dataclass(frozen=True)
class Scale:
    """Places in ascending order, evenly spaced: the first becomes -1, the last 1."""

    size: int

    @property
    def width(self) -> int:
        return 1

    def numerators(self, codes: Whole) -> Whole:
        last = max(1, self.size - 1)
        twice = (2 * codes - last) * ONE if self.size > 1 else np.zeros_like(codes)
        places: Whole = np.sign(twice) * (np.abs(twice) // last)
        return places[:, None]


@dataclass(frozen=True)
class Categories:
    """Places without an order."""

    size: int

    @property
    def width(self) -> int:
        return self.size

    def numerators(self, codes: Whole) -> Whole:
        return np.where(codes[:, None] == np.arange(self.size), ONE, 0)


Axis = Scale | Categories


@dataclass(frozen=True)
class Design:
    """The features of a model, before which the label is one more axis of its tally."""

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        if not self.axes or any(not 1 <= axis.size < 1 << 31 for axis in self.axes):
            raise ValueError("a model has features, and each has places")

    @property
    def width(self) -> int:
        """How many coefficients there are, the intercept among them."""
        return 1 + sum(axis.width for axis in self.axes)

    @property
    def scale(self) -> Fraction:
        return root_above(1 + len(self.axes))

    def numerators(self, codes: Whole) -> Whole:
        """z in units of 2^-15, one row for each tuple."""
        parts = [axis.numerators(codes[:, place]) for place, axis in enumerate(self.axes)]
        return np.concatenate([np.full((len(codes), 1), ONE, np.int64), *parts], axis=1)

    def vectors(self, codes: Whole) -> Floats:
        """x, each component within 2^-52 of itself."""
        return self.numerators(codes) / (ONE * float(self.scale))

    def written(self) -> list[list[Any]]:
        return [["scale" if isinstance(axis, Scale) else "categories", axis.size] for axis in self.axes]

    @classmethod
    def read(cls, part: list[list[Any]]) -> Design:
        kinds: dict[str, Callable[[int], Axis]] = {"scale": Scale, "categories": Categories}
        return cls(tuple(kinds[kind](size) for kind, size in part))


def root_above(value: int) -> Fraction:
    """The square root of a whole number, rounded up to a multiple of 2^-20."""
    square = value * _ROOTS**2
    root = math.isqrt(square)
    return Fraction(root if root * root == square else root + 1, _ROOTS)
