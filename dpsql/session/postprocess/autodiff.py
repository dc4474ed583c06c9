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
