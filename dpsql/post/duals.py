"""Numbers with their derivatives by the noisy cells, one of each in every group: forward differentiation.

Errors of all answers come from these derivatives (the delta method), and so do the covariances of any two answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Dual:
    """`value` in every group, and its derivative by each cell that it depends on."""

    value: Floats
    gradient: Mapping[str, Floats]

    def __add__(self, other: Dual) -> Dual:
        one = np.ones_like(self.value)
        return Dual(self.value + other.value, _combined(self, other, one, one))

    def __sub__(self, other: Dual) -> Dual:
        return self + other.times(-1.0)

    def __mul__(self, other: Dual) -> Dual:
        return Dual(self.value * other.value, _combined(self, other, other.value, self.value))

    def __truediv__(self, other: Dual) -> Dual:
        quotient = self.value / other.value
        return Dual(quotient, _combined(self, other, 1.0 / other.value, -quotient / other.value))

    def plus(self, number: float) -> Dual:
        return Dual(self.value + number, self.gradient)

    def times(self, number: float) -> Dual:
        return Dual(self.value * number, {cell: part * number for cell, part in self.gradient.items()})

    def root(self, least: Floats) -> Dual:
        """The square root. Near 0 its derivative has no bound; there the one at `least` stands for it."""
        slope = 0.5 / np.sqrt(np.maximum(self.value, least))
        return Dual(np.sqrt(np.maximum(self.value, 0.0)), {c: part * slope for c, part in self.gradient.items()})

    def clipped(self, lower: Floats | float, upper: Floats | float) -> Dual:
        """Moved into what is possible; the error is still that of the number before."""
        return Dual(np.clip(self.value, lower, upper), self.gradient)

    def covariance(self, other: Dual, noise: Mapping[str, float | Floats]) -> Floats:
        """To first order, from the standard errors of the cells, which are independent."""
        shared = [cell for cell in self.gradient if cell in other.gradient]
        parts = (self.gradient[cell] * other.gradient[cell] * noise[cell] ** 2 for cell in shared)
        return sum(parts, np.zeros_like(self.value))

    def stderr(self, noise: Mapping[str, float | Floats]) -> Floats:
        return np.sqrt(self.covariance(self, noise))


def _combined(one: Dual, other: Dual, weight: Floats, other_weight: Floats) -> dict[str, Floats]:
    result = {cell: part * weight for cell, part in one.gradient.items()}
    for cell, part in other.gradient.items():
        result[cell] = result[cell] + part * other_weight if cell in result else part * other_weight
    return result
