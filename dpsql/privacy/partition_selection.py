"""Partition selection: which groups with unknown keys appear in an answer.

A selection sees one integer per key: how many units have it, each unit counting in at most `l0` keys of a release
(SOUNDNESS 5). It keeps a key if the noisy count is above an integer threshold; a key that no unit has never leaves.
Charged: a `delta`-approximate `rho`-zCDP loss; with Laplace noise also (epsilon, delta)-DP, epsilon = l1/scale.

Notation: k = group size, c = 1 under add_remove and 2 under change_one. A group of k units moves a key's count by an
integer v <= k, over all keys by at most k * l0; under change_one, once up and once down.

Thresholds. Call a key *exclusive* if its count is 0 in one of two neighbors. Given that no exclusive key leaves,
which has probability >= 1 - delta on each side, both answers are the noisy counts of the common keys (independent
draws, so the condition does not touch them), post-processed. That is delta-approximate zCDP as Bun and Steinke
(2016, section 8) define it, with the rho of the noise. Each side counts its own exclusive keys only, so delta
does not double under change_one. The same holds for (epsilon, delta): that no exclusive key leaves has probability
1 - p on one side and 1 - p' on the other, and none of those that may leave on one side can on the other, so exclusive
keys are (0, max(p, p'))-DP; the common keys are (epsilon, 0)-DP and independent of them. The norms of the noise are
l1 = c k l0 and l2^2 = c k^2 l0 (sum v^2 <= k sum v).
With p(v) = P(v + X > T), the exclusive keys leave with probability at most sum p(v_i) <= k l0 max_v p(v)/v; p is
convex for v <= T (its differences are the pmf at T - v), so p(v)/v is largest at v = 1 or v = k:

    delta = max(k l0 p(1), l0 p(k)),     T >= k.

Weighted Gaussian (Gopi et al. 2020). A unit with t <= l0 keys adds at most 2^16/sqrt(t) to each of them, so 2^16 in
L2, k 2^16 for a group and sqrt(2) k 2^16 under change_one (non-negative vectors). If exclusive key i has mass m_i,
sum m_i^2 <= (k 2^16)^2 =: M^2, hence sum p(m_i) <= M^2 max_m p(m)/m^2, which is max t p(M/sqrt(t)) over real t in
[1, k^2 l0] (the least mass is 2^16/sqrt(l0); for k = 1 this is exactly t keys of 2^16/sqrt(t)). For the Gaussian
bound of `tails`, ln p(m) - 2 ln m falls, then rises, as m grows to T/2 (m times the hazard rate at T - m grows
there, by hazard(x) - x < 1/x); so the maximum is at an end, where we evaluate it:

    delta = max(p(k 2^16), k^2 l0 p(2^16/sqrt(l0))),     T >= 2 k 2^16 and T >= k 2^16 + sigma.

Masses are rounded down in SQL, and p grows with m, so the unrounded ones bound them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpsql.privacy.exact import Cells
from dpsql.privacy.loss import Loss, epsilon_to_rho
from dpsql.privacy.noise import require_positive_share, round_up_scale, scale_from_square
from dpsql.privacy.sampling import Integers, Sampler
from dpsql.privacy.tails import find_least_integer, gaussian_tail, laplace_tail, truncated_tail

WEIGHT_ONE = 1 << 16
"""What a unit with a single key adds to it in a weighted column."""
_MAX_COUNT = 1 << 62


def key_weight(keys: int) -> int:
    """What a unit that keeps this many keys adds to each of them in a weighted column: floor(2^16/sqrt(keys))."""
    return math.isqrt(WEIGHT_ONE**2 // keys)


@dataclass(frozen=True)
class KeyReach:
    """How far neighbors may differ: a unit has at most `l0` keys, `group_size` units at once are protected."""

    l0: int
    group_size: int = 1
    change_one: bool = False

    def __post_init__(self) -> None:
        if self.l0 < 1 or self.group_size < 1:
            raise ValueError("a unit reaches at least one key, and a group has at least one unit")

    @property
    def sides(self) -> int:
        return 2 if self.change_one else 1

    @property
    def l1(self) -> int:
        return self.sides * self.group_size * self.l0

    @property
    def l2_squared(self) -> int:
        return self.sides * self.group_size**2 * self.l0


def _unweighted_rho(scale: Fraction, reach: KeyReach) -> Fraction:
    return reach.l2_squared / (2 * scale**2)


@dataclass(frozen=True)
class OptimalSelection:
    """Counts plus discrete Laplace noise conditioned on |X| <= bound, kept if above `bound`.

    This truncated geometric equals the optimal primitive (Desfontaines, Voss, Gipson, Mandayam 2022) at the delta
    that it attains, and needs at most one unit more than the optimum at the delta asked for.

    Privacy: counts n and n + v: where both densities are positive their ratio is at most exp(v/scale), and only
    the v topmost values of n + v have none at n (by symmetry the lowest of n): mass delta(v). So one key is
    (v/scale, delta(v))-DP, hence delta(v)-approximate v^2/(2 scale^2)-zCDP (Bun, Steinke 2016, section 8).
    delta(0) = 0 and delta is convex, so over all keys sum delta(v_i) <= c l0 delta(k), sum v_i^2 <= c l0 k^2 and
    sum v_i <= c l0 k = l1: by basic composition all of it is (l1/scale, delta)-DP.
    """

    scale: Fraction
    bound: int
    reach: KeyReach
    weighted: ClassVar[bool] = False
    name: ClassVar[str] = "truncated geometric"

    @cached_property
    def loss(self) -> Loss:
        delta = _truncated_delta(self.scale, self.bound, self.reach)
        return Loss(self.reach.l1 / self.scale, _unweighted_rho(self.scale, self.reach), delta)


@dataclass(frozen=True)
class LaplaceThreshold:
    """Counts plus discrete Laplace noise, kept if above `threshold`.

    Privacy: approximate zCDP, as the module docstring shows; also (l1/scale, delta)-DP.
    """

    scale: Fraction
    threshold: int
    reach: KeyReach
    weighted: ClassVar[bool] = False
    name: ClassVar[str] = "Laplace threshold"

    @cached_property
    def loss(self) -> Loss:
        delta = _laplace_delta(self.scale, self.threshold, self.reach)
        return Loss(self.reach.l1 / self.scale, _unweighted_rho(self.scale, self.reach), delta)


@dataclass(frozen=True)
class GaussianThreshold:
    """Counts plus discrete Gaussian noise, kept if above `threshold`.

    Privacy: approximate zCDP, as the module docstring shows.
    """

    sigma: Fraction
    threshold: int
    reach: KeyReach
    weighted: ClassVar[bool] = False
    name: ClassVar[str] = "Gaussian threshold"

    @cached_property
    def loss(self) -> Loss:
        return Loss(
            None, _unweighted_rho(self.sigma, self.reach), _gaussian_delta(self.sigma, self.threshold, self.reach)
        )


@dataclass(frozen=True)
class WeightedGaussian:
    """Weighted counts (see `key_weight`) plus discrete Gaussian noise, kept if above `threshold`.

    Privacy: approximate zCDP, as the module docstring shows.
    """

    sigma: Fraction
    threshold: int
    reach: KeyReach
    weighted: ClassVar[bool] = True
    name: ClassVar[str] = "weighted Gaussian threshold"

    @cached_property
    def loss(self) -> Loss:
        rho = _weighted_l2_squared(self.reach) / (2 * self.sigma**2)
        return Loss(None, rho, _weighted_delta(self.sigma, self.threshold, self.reach))


Selection = OptimalSelection | LaplaceThreshold | GaussianThreshold | WeightedGaussian


def _truncated_delta(scale: Fraction, bound: int, reach: KeyReach) -> Fraction:
    return reach.sides * reach.l0 * truncated_tail(scale, bound, reach.group_size)


def _laplace_delta(scale: Fraction, threshold: int, reach: KeyReach) -> Fraction:
    k, l0 = reach.group_size, reach.l0
    if threshold < k:
        return Fraction(1)
    return l0 * max(k * laplace_tail(scale, threshold), laplace_tail(scale, threshold + 1 - k))


def _gaussian_delta(sigma: Fraction, threshold: int, reach: KeyReach) -> Fraction:
    k, l0 = reach.group_size, reach.l0
    if threshold < k:
        return Fraction(1)
    return l0 * max(k * gaussian_tail(sigma, threshold), gaussian_tail(sigma, threshold + 1 - k))


def _weighted_l2_squared(reach: KeyReach) -> int:
    return reach.sides * (reach.group_size * WEIGHT_ONE) ** 2


def _weighted_delta(sigma: Fraction, threshold: int, reach: KeyReach) -> Fraction:
    k, l0 = reach.group_size, reach.l0
    if threshold < 2 * k * WEIGHT_ONE or threshold < k * WEIGHT_ONE + sigma:
        return Fraction(1)
    # The least mass is rounded up, to an integer, which moves the tail outward.
    min_mass = key_weight(l0) + 1
    spread = k**2 * l0 * gaussian_tail(sigma, threshold + 1 - min_mass)
    return max(gaussian_tail(sigma, threshold + 1 - k * WEIGHT_ONE), spread)


def keep_keys(selection: Selection, counts: Cells, sampler: Sampler) -> npt.NDArray[np.bool_]:
    """Which keys appear, given the count (or weighted count) of units of each.

    Privacy: the selection's own claim; a key with a count below 1 never leaves, so a unit cannot make keys appear
    that it does not have.
    """
    n = len(counts)
    match selection:
        case OptimalSelection(scale, bound):
            limit, noise = bound, _draw_truncated_laplace(n, scale, bound, sampler)
        case LaplaceThreshold(scale, threshold):
            limit, noise = threshold, sampler.laplace(n, scale)
        case GaussianThreshold(sigma, threshold) | WeightedGaussian(sigma, threshold):
            limit, noise = threshold, sampler.gaussian(n, sigma)
    appears: npt.NDArray[np.bool_] = (counts >= 1) & (np.minimum(counts, _MAX_COUNT) + noise > limit)
    return appears


def _draw_truncated_laplace(n: int, scale: Fraction, bound: int, sampler: Sampler) -> Integers:
    """Discrete Laplace noise conditioned on |X| <= bound, by drawing again what lies outside."""
    noise = sampler.laplace(n, scale)
    outside = np.flatnonzero(np.abs(noise) > bound)
    while len(outside):
        noise[outside] = sampler.laplace(len(outside), scale)
        outside = outside[np.abs(noise[outside]) > bound]
    return noise


def units_needed(selection: Selection, l0: int) -> int:
    """The units that a key needs to appear with a chance of one half, each unit with `l0` keys."""
    match selection:
        case OptimalSelection(_, limit) | LaplaceThreshold(_, limit) | GaussianThreshold(_, limit):
            # Symmetric noise is >= 0 with more than an even chance, and >= 1 with less.
            return limit + 1
        case WeightedGaussian(_, limit):
            return limit // key_weight(l0) + 1


def _calibrate_optimal(scale: Fraction, delta: Fraction, reach: KeyReach) -> OptimalSelection:
    bound = find_least_integer(lambda b: _truncated_delta(scale, b, reach) <= delta, reach.group_size)
    return OptimalSelection(scale, bound, reach)


def _calibrate_laplace(scale: Fraction, delta: Fraction, reach: KeyReach) -> LaplaceThreshold:
    threshold = find_least_integer(lambda t: _laplace_delta(scale, t, reach) <= delta, reach.group_size)
    return LaplaceThreshold(scale, threshold, reach)


def _calibrate_gaussian(rho: Fraction, delta: Fraction, reach: KeyReach) -> GaussianThreshold:
    sigma = scale_from_square(reach.l2_squared / (2 * rho))
    threshold = find_least_integer(lambda t: _gaussian_delta(sigma, t, reach) <= delta, reach.group_size)
    return GaussianThreshold(sigma, threshold, reach)


def _calibrate_weighted(rho: Fraction, delta: Fraction, reach: KeyReach) -> WeightedGaussian:
    sigma = scale_from_square(_weighted_l2_squared(reach) / (2 * rho))
    start = 2 * reach.group_size * WEIGHT_ONE
    threshold = find_least_integer(lambda t: _weighted_delta(sigma, t, reach) <= delta, start)
    return WeightedGaussian(sigma, threshold, reach)


def _pick_fewest_units(candidates: list[Selection], l0: int) -> Selection:
    """The candidate with the fewest units needed; the weighted one also if it needs up to 1 % more.

    That is for units with all of their l0 keys; units with fewer keys count more in a weighted column, in no other.
    """
    return min(candidates, key=lambda selection: units_needed(selection, l0) * (99 if selection.weighted else 100))


@lru_cache(maxsize=1024)
def calibrate_selection_by_rho(
    rho: Fraction, delta: Fraction, *, l0: int, group_size: int = 1, change_one: bool = False, weights: bool = True
) -> Selection:
    """The selection, charged at most (rho, delta), that needs the fewest units per key; `weights`: they can be had."""
    reach = KeyReach(l0, group_size, change_one)
    rho, delta = require_positive_share(rho), require_positive_share(delta)
    scale = scale_from_square(reach.l2_squared / (2 * rho))
    candidates: list[Selection] = [_calibrate_optimal(scale, delta, reach), _calibrate_gaussian(rho, delta, reach)]
    if l0 > 1 and weights:
        # With one key per unit the weights are all equal: the plain column is the same and costs less.
        candidates.append(_calibrate_weighted(rho, delta, reach))
    return _pick_fewest_units(candidates, l0)


@lru_cache(maxsize=1024)
def calibrate_selection_by_epsilon(
    epsilon: Fraction,
    delta: Fraction,
    delta_conv: Fraction,
    *,
    l0: int,
    group_size: int = 1,
    change_one: bool = False,
    weights: bool = True,
    unconverted: Fraction | None = None,
) -> Selection:
    """The (epsilon, delta + delta_conv)-DP selection that needs the fewest units per key.

    Privacy: truncated geometric and Laplace threshold are (l1/scale, delta)-DP by basic composition over keys and
    need no delta_conv; a Gaussian's rho is that of (epsilon, delta_conv). Each is charged at most `delta`, or those
    that need no delta_conv `unconverted`.
    """
    reach = KeyReach(l0, group_size, change_one)
    epsilon, delta = require_positive_share(epsilon), require_positive_share(delta)
    scale = round_up_scale(reach.l1 / epsilon)
    alone = delta if unconverted is None else require_positive_share(unconverted)
    candidates: list[Selection] = [_calibrate_optimal(scale, alone, reach), _calibrate_laplace(scale, alone, reach)]
    rho = epsilon_to_rho(epsilon, delta_conv)
    if rho > 0 and l0 > 1:  # of a single key, Laplace noise is the better one
        candidates.append(_calibrate_gaussian(rho, delta, reach))
        candidates += [_calibrate_weighted(rho, delta, reach)] if weights else []
    return _pick_fewest_units(candidates, l0)
