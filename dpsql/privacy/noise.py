"""Laplace and Gaussian noise for a bundle of columns: its scale, and its loss.

Law: a figure that is charged is an exact rational, rounded up to a multiple of 2^-80; a calibration makes the least
noise, on the grid of scales that are multiples of 2^-20, of which the *charged* loss is at most what was asked,
rounded down to a multiple of 2^-80. So shares of a budget, however often divided, add up to no more than it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from statistics import NormalDist

from dpsql.privacy.loss import Loss, LossTooSmall, round_down
from dpsql.privacy.sampling import MAX_SCALE, MIN_SCALE, Integers, Sampler
from dpsql.privacy.tails import find_least_integer, gaussian_tail, laplace_tail

SCALE_GRID = 1 << 20
"""Noise scales are multiples of 1/SCALE_GRID: fine beside any noise, and short to print and to store."""
_SMOOTH_SCALE = 1 << 12
"""From this scale on, the steps of discrete noise are below 0.1 % of an interval's half-width."""


@dataclass(frozen=True)
class Sensitivity:
    """How far neighbors differ in a bundle, in grid units, with neighboring relation and group size counted in."""

    l1: int
    l2_squared: int
    linf: int

    def __post_init__(self) -> None:
        # A bundle that no unit can move needs no noise, but then it holds no private value either: such a plan is
        # a mistake, and zero noise on it would be the worst answer.
        if self.l1 < 1 or self.l2_squared < 1 or self.linf < 1:
            raise ValueError("a sensitivity must be positive")


@dataclass(frozen=True)
class Laplace:
    """Discrete Laplace noise: P(x) proportional to exp(-|x| / scale), independent in each cell."""

    scale: Fraction

    def __post_init__(self) -> None:
        _check_noise_scale(self.scale)


@dataclass(frozen=True)
class Gaussian:
    """Discrete Gaussian noise: P(x) proportional to exp(-x^2 / (2 sigma^2)), independent in each cell."""

    sigma: Fraction

    def __post_init__(self) -> None:
        _check_noise_scale(self.sigma)


Mechanism = Laplace | Gaussian


def _check_noise_scale(scale: Fraction) -> None:
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise LossTooSmall("a noise scale must lie between 2^-10 and 2^40 grid units")


def round_up_scale(value: Fraction) -> Fraction:
    """The least scale on the grid that is at least `value` (and that the sampler draws)."""
    return max(MIN_SCALE, Fraction(-(-value.numerator * SCALE_GRID // value.denominator), SCALE_GRID))


def scale_from_square(square: Fraction) -> Fraction:
    """The least scale on the grid of which the square is at least `square`."""
    grid_square = -(-square.numerator * SCALE_GRID**2 // square.denominator)
    root = math.isqrt(grid_square)
    return max(MIN_SCALE, Fraction(root if root * root == grid_square else root + 1, SCALE_GRID))


def require_positive_share(value: Fraction) -> Fraction:
    """`value` rounded down to what can be charged."""
    share = round_down(value)
    if share <= 0:
        raise LossTooSmall("the share of the budget is too small")
    return share


def calibrate_laplace(sensitivity: Sensitivity, epsilon: Fraction) -> Laplace:
    """The least Laplace noise that is charged at most `epsilon`."""
    return Laplace(round_up_scale(sensitivity.l1 / require_positive_share(epsilon)))


def calibrate_gaussian(sensitivity: Sensitivity, rho: Fraction) -> Gaussian:
    """The least Gaussian noise that is charged at most `rho`."""
    return Gaussian(scale_from_square(sensitivity.l2_squared / (2 * require_positive_share(rho))))


def noise_loss(mechanism: Mechanism, sensitivity: Sensitivity) -> Loss:
    """What one draw of noise in each cell costs.

    Privacy: discrete Laplace is (l1/scale)-DP (Ghosh, Roughgarden, Sundararajan 2012). A cell that moves by d is
    (d/scale)-DP, so d^2/(2 scale^2)-zCDP (Bun, Steinke 2016, Proposition 3.3); cells are independent, so these
    add up to l2^2/(2 scale^2), never more than (l1/scale)^2/2. Discrete Gaussian is l2^2/(2 sigma^2)-zCDP in any
    number of cells (Canonne, Kamath, Steinke 2020), and not pure.
    """
    match mechanism:
        case Laplace(scale):
            square = min(sensitivity.l1**2, sensitivity.l2_squared)
            return Loss(sensitivity.l1 / scale, square / (2 * scale**2), Fraction(0))
        case Gaussian(sigma):
            return Loss(None, sensitivity.l2_squared / (2 * sigma**2), Fraction(0))


def draw_noise(mechanism: Mechanism, n: int, sampler: Sampler) -> Integers:
    """Noise for `n` cells. Privacy: of the very scale that `noise_loss` charges, a draw of its own for each cell."""
    match mechanism:
        case Laplace(scale):
            return sampler.laplace(n, scale)
        case Gaussian(sigma):
            return sampler.gaussian(n, sigma)


def scale_of(mechanism: Mechanism) -> Fraction:
    return mechanism.sigma if isinstance(mechanism, Gaussian) else mechanism.scale


def standard_error(mechanism: Mechanism) -> float:
    """The standard deviation of one cell's noise, in grid units; for a small Gaussian an upper bound."""
    match mechanism:
        case Laplace(scale):
            # The variance of the discrete distribution, 2q/(1-q)^2 with q = exp(-1/scale).
            return 1.0 / (math.sqrt(2.0) * math.sinh(0.5 / float(scale)))
        case Gaussian(sigma):
            return float(sigma)


def interval_factor(mechanism: Mechanism, confidence: float = 0.95) -> float:
    """The half-width of a cell's confidence interval, in standard errors.

    1.96 for Gaussian; for Laplace ln 20 / sqrt 2 = 2.1184, which also covers sums of several Laplace cells, whose
    tails are lighter. Noise of a few grid units moves in visible steps; there the half-width is a whole number.
    """
    miss = 1.0 - confidence
    if not 0.0 < miss < 1.0:
        raise ValueError("a confidence must lie between 0 and 1")
    match mechanism:
        case Laplace(scale):
            smooth, tail = -math.log(miss) / math.sqrt(2.0), partial(laplace_tail, scale)
        case Gaussian(scale):
            smooth, tail = NormalDist().inv_cdf(1.0 - miss / 2.0), partial(gaussian_tail, scale)
    if scale >= _SMOOTH_SCALE:
        return smooth
    half_width = find_least_integer(lambda h: 2 * tail(h + 1) <= Fraction(miss), 0)
    return max(smooth, half_width / standard_error(mechanism))
