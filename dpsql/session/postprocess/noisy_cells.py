"""A release's cells by name, with their noise; and numbers made of them, with their derivatives.

Errors of all answers come from these derivatives by the noisy cells (forward differentiation, the delta method), and so
do the covariances of any two answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dpsql.compiler.plan.estimators import Terms
from dpsql.privacy.noise import Laplace, Mechanism, interval_factor, scale_of, standard_error
from dpsql.privacy.release import Release
from dpsql.session.postprocess.latent_sums import Floats, SumNoise


@dataclass(frozen=True)
class Dual:
    """`value` in every group, and its derivative by each cell that it depends on."""

    value: Floats
    gradient: Mapping[str, Floats]

    def __add__(self, other: Dual) -> Dual:
        ones = np.ones_like(self.value)
        return Dual(self.value + other.value, _combine_gradients(self, other, ones, ones))

    def __sub__(self, other: Dual) -> Dual:
        return self + other.scale_by(-1.0)

    def __mul__(self, other: Dual) -> Dual:
        return Dual(self.value * other.value, _combine_gradients(self, other, other.value, self.value))

    def __truediv__(self, other: Dual) -> Dual:
        quotient = self.value / other.value
        return Dual(quotient, _combine_gradients(self, other, 1.0 / other.value, -quotient / other.value))

    def add_constant(self, number: float) -> Dual:
        return Dual(self.value + number, self.gradient)

    def scale_by(self, number: float) -> Dual:
        return Dual(self.value * number, {cell: part * number for cell, part in self.gradient.items()})

    def square_root(self, min_value: Floats) -> Dual:
        """The square root. Near 0 its derivative has no bound; there the one at `min_value` stands for it."""
        slope = 0.5 / np.sqrt(np.maximum(self.value, min_value))
        return Dual(np.sqrt(np.maximum(self.value, 0.0)), {c: part * slope for c, part in self.gradient.items()})

    def clip_value(self, lower: Floats | float, upper: Floats | float) -> Dual:
        """Moved into what is possible; the error is still that of the number before."""
        return Dual(np.clip(self.value, lower, upper), self.gradient)

    def covariance_with(self, other: Dual, noise: Mapping[str, float | Floats]) -> Floats:
        """To first order, from the standard errors of the cells, which are independent."""
        shared = [cell for cell in self.gradient if cell in other.gradient]
        parts = (self.gradient[cell] * other.gradient[cell] * noise[cell] ** 2 for cell in shared)
        return sum(parts, np.zeros_like(self.value))

    def stderr(self, noise: Mapping[str, float | Floats]) -> Floats:
        return np.sqrt(self.covariance_with(self, noise))


def _combine_gradients(first: Dual, second: Dual, weight: Floats, other_weight: Floats) -> dict[str, Floats]:
    result = {cell: part * weight for cell, part in first.gradient.items()}
    for cell, part in second.gradient.items():
        result[cell] = result[cell] + part * other_weight if cell in result else part * other_weight
    return result


@dataclass(frozen=True)
class NoisyCells:
    """A release's columns by name, with the standard error of each in the units of its values."""

    release: Release
    cell_indexes: Mapping[str, int]
    mechanisms: dict[str, Mechanism] = field(default_factory=dict)
    noise: dict[str, float | Floats] = field(default_factory=dict)
    factors: dict[str, float] = field(default_factory=dict)  # half of the 95 % interval, in standard errors

    def __post_init__(self) -> None:
        spec = self.release.spec
        mechanisms = {index: bundle.mechanism for bundle in spec.bundles for index in bundle.columns}
        for cell, index in self.cell_indexes.items():
            if index in mechanisms:
                self.mechanisms[cell] = mechanisms[index]
                self.noise[cell] = standard_error(mechanisms[index]) * float(spec.grids[index])
                self.factors[cell] = interval_factor(mechanisms[index])

    def to_dual(self, terms: Terms) -> Dual:
        groups = len(self.release.keys)
        value, gradient = np.zeros(groups), {}
        for cell, coefficient in terms:
            index = self.cell_indexes[cell]
            value = value + self.release.cells[index] * float(coefficient * self.release.spec.grids[index])
            gradient[cell] = np.full(groups, float(coefficient))
        return Dual(value, gradient)

    def exact_sums(self, terms: Terms) -> list[Fraction]:
        indexes = [self.cell_indexes[cell] for cell, _ in terms]
        grids = self.release.spec.grids
        weights = [coefficient * grids[p] for (_, coefficient), p in zip(terms, indexes, strict=True)]
        rows = zip(*(self.release.cells[index].tolist() for index in indexes), strict=True) if indexes else None
        if rows is None:
            return [Fraction(0)] * len(self.release.keys)
        return [sum((w * c for w, c in zip(weights, row, strict=True)), Fraction(0)) for row in rows]

    def widest_factor(self, dual: Dual) -> float:
        return max((self.factors[cell] for cell in dual.gradient), default=0.0)

    def noise_of(self, terms: Terms) -> SumNoise:
        """That of the only cell; of several, a Gaussian of the same variance."""
        if len(terms) == 1:
            cell, coefficient = terms[0]
            mechanism, grid = self.mechanisms[cell], self.release.spec.grids[self.cell_indexes[cell]]
            return SumNoise(isinstance(mechanism, Laplace), float(abs(coefficient) * grid * scale_of(mechanism)))
        grids = self.release.spec.grids
        parts = (float(coefficient * grids[self.cell_indexes[c]]) * standard_error(self.mechanisms[c])
                 for c, coefficient in terms)  # fmt: skip
        return SumNoise(False, math.hypot(*parts))

    def half_width(self, dual: Dual) -> Floats:
        return self.widest_factor(dual) * dual.stderr(self.noise)


def noisy_cells_of(release: Release, columns: tuple[str, ...]) -> NoisyCells:
    return NoisyCells(release, {name: index for index, name in enumerate(columns)})
