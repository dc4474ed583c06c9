"""The distribution of exact sums given noisy ones: nodes that stand for all of them, and quantiles of a density.

Everything is one row for each group. Noise is taken for continuous: its scale is thousands of the cells' own steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_REACH_IN_SCALES = {"laplace": 8.0, "gaussian": 5.0}
"""How far nodes go, in scales: what lies beyond has a probability below 4e-4 and 1e-6."""


@dataclass(frozen=True)
class SumNoise:
    """The noise of a sum, in the units of its values. Scale 0: the sum is exact, as it follows from the statement."""

    heavy: bool  # Laplace; else Gaussian, as is a sum of several noises
    scale: float

    @property
    def stderr(self) -> float:
        return self.scale * math.sqrt(2.0) if self.heavy else self.scale

    def log_density(self, x: Floats) -> Floats:
        """The logarithm of the density, up to a constant."""
        if not self.scale:
            return np.zeros_like(x)
        return -np.abs(x) / self.scale if self.heavy else -0.5 * (x / self.scale) ** 2

    def node_reach(self, apart: Floats) -> Floats:
        """How far from the nearest possible value others matter, where the noisy one lies `apart` from it."""
        if self.heavy:
            return np.full_like(apart, _REACH_IN_SCALES["laplace"] * self.scale)
        far = _REACH_IN_SCALES["gaussian"] * self.scale
        return np.hypot(apart, far) - apart


@dataclass(frozen=True)
class QuadratureNodes:
    """Possible values, the logarithm of the weight of each, and how wide the stretch is that it stands for."""

    values: Floats
    log_weights: Floats
    widths: Floats


def three_point_nodes(noisy: Floats, noise: SumNoise) -> QuadratureNodes:
    """Three values with the noise's mean and variance: for noise that is small beside what it is added to."""
    step = math.sqrt(3.0) * noise.stderr
    values = np.stack([noisy - step, noisy, noisy + step], axis=-1)
    weights = np.broadcast_to(np.log([1 / 6, 2 / 3, 1 / 6]), values.shape)
    return QuadratureNodes(values, weights, np.zeros_like(values))


def gauss_legendre_nodes(noisy: Floats, noise: SumNoise, low: Floats, high: Floats, each_side: int) -> QuadratureNodes:
    """Gauss-Legendre nodes on both sides of the likeliest value between `low` and `high`, where a density may bend."""
    peak = np.clip(noisy, low, high)
    reach = noise.node_reach(np.abs(noisy - peak))
    x, weights = np.polynomial.legendre.leggauss(each_side)
    values, widths = [], []
    for start, end in ((np.maximum(low, peak - reach), peak), (peak, np.minimum(high, peak + reach))):
        half = ((end - start) / 2)[..., None]
        values.append(start[..., None] + half * (x + 1.0))
        widths.append(half * weights)
    where, wide = np.concatenate(values, axis=-1), np.concatenate(widths, axis=-1)
    if not noise.scale:
        return QuadratureNodes(where, np.zeros_like(where), np.zeros_like(where))
    return QuadratureNodes(where, noise.log_density(where - noisy[..., None]) + _safe_log(wide), wide)


def normalize_weights(log_weights: Floats) -> Floats:
    """Weights of a group's components, which add up to 1; all axes but the first are components."""
    axes = tuple(range(1, log_weights.ndim))
    shifted = log_weights - np.max(log_weights, axis=axes, keepdims=True)
    weights = np.exp(shifted)
    result: Floats = weights / np.sum(weights, axis=axes, keepdims=True)
    return result


@dataclass(frozen=True)
class GridDensity:
    """A density on evenly spaced points of each group, not yet normalised."""

    points: Floats
    density: Floats

    @property
    def step(self) -> Floats:
        return (self.points[:, 1] - self.points[:, 0])[:, None]

    def point_masses(self) -> Floats:
        """The masses of the points, by the trapezoid rule; they add up to 1."""
        masses = self.density.copy()
        masses[:, [0, -1]] *= 0.5
        result: Floats = masses / np.sum(masses, axis=1, keepdims=True)
        return result

    def quantile(self, probability: float) -> Floats:
        """By the trapezoid rule with its first correction, and a density that is straight between two points."""
        step, density = self.step, self.density
        slope = np.gradient(density, axis=1) / step
        area = np.cumsum((density[:, 1:] + density[:, :-1]) / 2, axis=1) * step
        area = np.concatenate([np.zeros_like(step), area], axis=1) - step**2 / 12 * (slope - slope[:, :1])
        area = np.maximum.accumulate(area, axis=1)
        target = probability * area[:, -1]
        indexes = np.clip(np.sum(area <= target[:, None], axis=1) - 1, 0, density.shape[1] - 2)
        rows = np.arange(len(indexes))
        area_before, area_after = area[rows, indexes], area[rows, indexes + 1]
        left, right = density[rows, indexes], density[rows, indexes + 1]
        straight = (left + right) / 2 * step[:, 0]
        gap = np.where(area_after > area_before, (target - area_before) / (area_after - area_before), 0.0) * straight
        root = np.sqrt(np.maximum(left**2 + 2 * (right - left) / step[:, 0] * gap, 0.0))
        part = np.where(left + root > 0, 2 * gap / (left + root), 0.0)
        result: Floats = self.points[rows, indexes] + np.clip(part, 0.0, step[:, 0])
        return result


def _safe_log(x: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(x)


def log_gamma(x: Floats) -> Floats:
    """The logarithm of the gamma function of positive numbers, within 1e-11 times the larger of itself and 1.

    By Stirling's series from 8 on.
    """
    small = x < 8.0
    y = np.where(small, x + 8.0, x)
    inverse = 1.0 / (y * y)
    series = ((-1.0 / 1680 * inverse + 1.0 / 1260) * inverse - 1.0 / 360) * inverse + 1.0 / 12
    value = (y - 0.5) * np.log(y) - y + 0.5 * math.log(2 * math.pi) + series / y
    if not small.any():
        return value
    low = np.where(small, x, 1.0)
    product = low.copy()
    for number in range(1, 8):
        product = product * (low + number)
    return np.where(small, value - _safe_log(product), value)


def digamma(x: Floats) -> Floats:
    shifted, y = np.zeros_like(x), x
    for _ in range(6):
        shifted, y = shifted - np.where(y < 6.0, 1.0 / y, 0.0), np.where(y < 6.0, y + 1.0, y)
    inverse = 1.0 / (y * y)
    return shifted + np.log(y) - 0.5 / y - inverse * (1.0 / 12 - inverse * (1.0 / 120 - inverse / 252))


def trigamma(x: Floats) -> Floats:
    shifted, y = np.zeros_like(x), x
    for _ in range(6):
        shifted, y = shifted + np.where(y < 6.0, 1.0 / (y * y), 0.0), np.where(y < 6.0, y + 1.0, y)
    inverse = 1.0 / (y * y)
    return shifted + 1.0 / y + inverse / 2 + inverse / y * (1.0 / 6 - inverse * (1.0 / 30 - inverse / 42))
