"""Choosing a bin: quantiles, MIN and MAX by the exponential mechanism, exactly.

A block holds one whole number for each bin, in ascending order: the weight of the rows in it. With W the sum of all,
W_<z and W_<=z that of the bins below z and up to z, the bin that holds the level L is wanted: L = aW for the quantile
at the fraction a; for MIN, L = r + 1/2 for a public whole number r; for MAX the same, counted from above. The score is
how far from the level a bin lies or, where negative, how deep the level lies within it:

    s(z) = max(W_<z - L, L - W_<=z),        the least is the best.

In an empty bin that is |(1 - a) W_<z - a W_>z|. (This older form is not used for the others: of rows that are 10 in
60 and 90 in 40 of 100 cases it puts the median between them, however many rows there are.) The bins with a score of at
most v always stand side by side.

Stability: let rows of weight c enter a block. W_<z - L moves by between -a c and (1 - a) c, and so does W_<=z - L, thus
s(z) by at most m c, m = max(a, 1 - a); for MIN and MAX both move by between 0 and c, and m = 1. Let n be the smaller
of a and 1 - a, or 0. Where rows of weight c leave and others of weight c' enter, s(z) moves by at most
max(m c' + n c, n c' + m c). Let D_g be that move in block g. A unit's weights over all blocks have norm C, so, in C:

                                     sum of D_g       sum of D_g^2
    add_remove                       m                m^2
    change_one, one block in all     m + n            (m + n)^2
    change_one                       2 m              2 (m^2 + n^2)    [(m x + n y)^2 <= (m^2 + n^2)(x^2 + y^2)]

(the sum where C bounds the sum of weights, L1, which bounds L2 as well). A group of k units moves k times as far.

Where elements of weight 1 take other values and their number stays (`ChangedElements`: the blocks of BLOCKWISE), each
of them leaves and enters with c = c' = 1, under either relation, and D_g is at most (m + n) times the elements that
move. In each of at most G groups that is one of them, e = 1, or under change_one one for the rows that leave and one
for those that enter, e = 2: the sum of D_g is (m + n) e G, that of D_g^2 is (m + n)^2 e^2 G.

Privacy: P(z) is proportional to exp(-s(z) / b). If s moves by at most D, ln P(z)/P'(z) stays, over all z, within an
interval of length 2 D/b, which holds 0. So a block is (2 D/b)-DP and, having that range, (2 D/b)^2/8-zCDP (Dong,
Durfee, Rogers 2020; Cesar, Rogers 2021). The draws of blocks are independent: over all of them

    epsilon = 2 sum D_g / b,        rho = sum D_g^2 / (2 b^2).

The two sides of the score do move in opposite directions at once, so the factor 2 cannot be dropped.

Scores are whole numbers and never rounded, and the draw has exactly this distribution (`sampling.py`). Rounding scores
to steps, as tables of weights need it, would let a unit with a weight of 1 in many blocks move each by a whole step.

A median may have noise by its local sensitivity instead: `smooth`, `ptr`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.privacy.exact import Cells
from dpsql.privacy.loss import Loss, sum_losses
from dpsql.privacy.median import ProposeTestRelease, SmoothMedian, release_noisy_medians, release_tested_medians
from dpsql.privacy.noise import require_positive_share, round_up_scale, scale_from_square
from dpsql.privacy.sampling import Integers, Sampler, to_decimal

Penalties = npt.NDArray[Any]
"""64-bit integers or, where those might overflow, Python's."""

_CHUNK_BINS = 1 << 18
"""Bins worked on at once, so that memory stays flat."""
_MAX_SAFE = float(1 << 60)
_DIGITS = Context(prec=50)


@dataclass(frozen=True)
class Rank:
    """The quantile at a fraction of the rows, strictly between 0 and 1: 1/2 is the median."""

    fraction: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.fraction < 1:
            raise ValueError("a rank lies strictly between 0 and 1; at the ends it is MIN or MAX")


@dataclass(frozen=True)
class ExtremeTarget:
    """MAX if `high`, else MIN: the bin of the outermost row after rows of weight `rank`, which calibration picks.

    At a rank of 0 the best bin is that of the outermost row itself. But all bins beyond it are then as good as equal
    to it, and noise would choose among them: at scale b, a rank of b ln(bins / t) makes them, all together, at most t
    times as likely as the one bin that is best. That t is the `overshoot`, public like the scale and the bins.
    """

    high: bool
    rank: int = 0

    def __post_init__(self) -> None:
        if self.rank < 0:
            raise ValueError("a rank is not negative")


Target = Rank | ExtremeTarget

OVERSHOOT = Fraction(1, 20)
"""Of MIN and MAX, unless another is set: how likely a bin beyond all rows is, beside the best one."""


@dataclass(frozen=True)
class UnitContribution:
    """What one unit may add: weights per block, of which the sum (`summed`), or else the L2 norm, is at most `norm`.

    `single` says that the release has one block in all, whatever the data; then both norms are one.
    """

    norm: int
    summed: bool
    single: bool = False
    group_size: int = 1
    change_one: bool = False

    def __post_init__(self) -> None:
        if self.norm < 1 or self.group_size < 1:
            raise ValueError("a norm and a group size are positive")

    def score_l1(self, target: Target) -> Fraction | None:
        """How far neighbors move a score, over all blocks, in units of weight; None if nothing bounds the sum."""
        larger, smaller = _score_moves(target)
        if not (self.summed or self.single):
            return None
        factor = larger if not self.change_one else larger + smaller if self.single else 2 * larger
        return self.group_size * self.norm * factor

    def score_l2_squared(self, target: Target) -> Fraction:
        """The sum over blocks of the squares of what neighbors move a score by."""
        larger, smaller = _score_moves(target)
        factor = larger**2
        if self.change_one:
            factor = (larger + smaller) ** 2 if self.single else 2 * (larger**2 + smaller**2)
        return (self.group_size * self.norm) ** 2 * factor


@dataclass(frozen=True)
class ChangedElements:
    """What one unit may change: the value of one element of weight 1 in each of `groups` groups, none added.

    Under change_one two of them; if they lie in two groups, the sum moves as far and the sum of squares less.
    """

    groups: int
    group_size: int = 1
    change_one: bool = False

    def __post_init__(self) -> None:
        if min(self.groups, self.group_size) < 1:
            raise ValueError("a unit changes at least one element of one group")

    @property
    def elements_per_group(self) -> int:
        return 2 if self.change_one else 1

    def score_l1(self, target: Target) -> Fraction:
        """How far neighbors move a score, over all groups."""
        return self.group_size * self.elements_per_group * self.groups * sum(_score_moves(target), Fraction(0))

    def score_l2_squared(self, target: Target) -> Fraction:
        """The sum over groups of the squares of what neighbors move a score by."""
        return (self.group_size * self.elements_per_group * sum(_score_moves(target), Fraction(0))) ** 2 * self.groups


UnitWeights = UnitContribution | ChangedElements


def _score_moves(target: Target) -> tuple[Fraction, Fraction]:
    """m and n of the module's docstring."""
    match target:
        case Rank(fraction):
            return max(fraction, 1 - fraction), min(fraction, 1 - fraction)
        case ExtremeTarget():
            return Fraction(1), Fraction(0)


@dataclass(frozen=True)
class Exponential:
    """P(bin) proportional to exp(-score / scale), the score in units of weight, independent in each block."""

    scale: Fraction

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise ValueError("a scale is positive")


LocalSensitivityMechanism = SmoothMedian | ProposeTestRelease
"""Noise by the local sensitivity, of a median of one value for each unit."""

MEDIAN = Rank(Fraction(1, 2))


@dataclass(frozen=True)
class Pick:
    """One answer for each block: the bin that is chosen for a target."""

    target: Target
    mechanism: Exponential | LocalSensitivityMechanism

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Exponential) and self.target != MEDIAN:
            raise ValueError("the local sensitivity is that of a median")


def calibrate_picks_by_epsilon(
    targets: tuple[Target, ...], contribution: UnitWeights, bins: int, epsilon: Fraction,
    overshoot: Fraction = OVERSHOOT,
) -> tuple[Pick, ...]:  # fmt: skip
    """For each target the sharpest choice, all of them charged at most `epsilon` together."""
    share = require_positive_share(epsilon / len(targets))
    return tuple(
        _build_pick(target, round_up_scale(2 * _require_l1(contribution, target) / share), bins, overshoot)
        for target in targets
    )


def calibrate_picks_by_rho(
    targets: tuple[Target, ...], contribution: UnitWeights, bins: int, rho: Fraction, overshoot: Fraction = OVERSHOOT
) -> tuple[Pick, ...]:
    """For each target the sharpest choice, all of them charged at most `rho` together."""
    share = require_positive_share(rho / len(targets))
    return tuple(
        _build_pick(t, scale_from_square(contribution.score_l2_squared(t) / (2 * share)), bins, overshoot)
        for t in targets
    )


def _require_l1(contribution: UnitWeights, target: Target) -> Fraction:
    l1 = contribution.score_l1(target)
    if l1 is None:
        raise ValueError("a pure loss needs a bound on the sum of a unit's weights")
    return l1


def _build_pick(target: Target, scale: Fraction, bins: int, overshoot: Fraction) -> Pick:
    if isinstance(target, ExtremeTarget):
        target = replace(target, rank=_skipped_rank(scale, bins, overshoot))
    return Pick(target, Exponential(scale))


def _skipped_rank(scale: Fraction, bins: int, overshoot: Fraction) -> int:
    """floor(scale * ln(bins / overshoot)): public, and the same on every machine."""
    with localcontext(_DIGITS):
        return int((to_decimal(scale) * to_decimal(Fraction(bins) / overshoot).ln()).to_integral_value(ROUND_FLOOR))


def picks_loss(picks: tuple[Pick, ...], contribution: UnitWeights) -> Loss:
    """What one choice in every block costs, for all picks together.

    Privacy: the module's docstring; picks are drawn independently of each other, so their losses add up.
    """
    return sum_losses([_pick_loss(pick, contribution) for pick in picks])


def _pick_loss(pick: Pick, contribution: UnitWeights) -> Loss:
    if not isinstance(pick.mechanism, Exponential):
        return pick.mechanism.loss
    scale = pick.mechanism.scale
    l1, l2_squared = contribution.score_l1(pick.target), contribution.score_l2_squared(pick.target)
    return Loss(None if l1 is None else 2 * l1 / scale, l2_squared / (2 * scale**2), Fraction(0))


def rank_error(pick: Pick, bins: int, confidence: float = 0.95) -> float:
    """How far from its level, in units of weight, the bin chosen lies at most with this confidence, on any data.

    P(s(z) >= best + t) <= bins exp(-t / scale) (McSherry, Talwar 2007), and the best score is at most 0 (for MIN and
    MAX, if the rows weigh more than what is skipped, which is counted in). Where rows are dense the error is about
    `scale`. How far off the *value* is depends on the data, so no public figure tells it.
    """
    miss = 1.0 - confidence
    if not 0.0 < miss < 1.0:
        raise ValueError("a confidence must lie between 0 and 1")
    if not isinstance(pick.mechanism, Exponential):
        raise ValueError("noise by the local sensitivity has no bound by rank")
    skipped = pick.target.rank if isinstance(pick.target, ExtremeTarget) else 0
    return skipped + float(pick.mechanism.scale) * (math.log(bins) - math.log(miss))


def choose_bins(pick: Pick, weights: Cells, sampler: Sampler) -> Integers:
    """The place of the bin chosen in each block; `weights` has one row for each block and one column for each bin.

    Privacy: `picks_loss`, for weights that neighbors move as the contribution says. Negative weights, which no
    engine returns, count as 0; that moves no two of them further apart. `ptr` may choose NOTHING.
    """
    match pick.mechanism:
        case SmoothMedian():
            return release_noisy_medians(pick.mechanism, weights, sampler)
        case ProposeTestRelease():
            return release_tested_medians(pick.mechanism, weights, sampler)
        case Exponential(scale):
            return _draw_bins(pick.target, scale, weights, sampler)


def _draw_bins(target: Target, scale: Fraction, weights: Cells, sampler: Sampler) -> Integers:
    blocks, bins = weights.shape
    step = max(1, _CHUNK_BINS // bins)
    scale = scale * _penalty_steps(target)
    chosen = np.empty(blocks, np.int64)
    for start in range(0, blocks, step):
        part = slice(start, start + step)
        chosen[part] = sampler.choose(bin_penalties(target, np.maximum(weights[part], 0)), scale)
    return chosen


def _penalty_steps(target: Target) -> int:
    """How many steps of a penalty a unit of weight is."""
    match target:
        case Rank(fraction):
            return fraction.denominator
        case ExtremeTarget():
            return 2


def bin_penalties(target: Target, weights: Cells) -> Penalties:
    """The scores of each block's bins, times what makes them whole numbers."""
    upto: Penalties = np.cumsum(_widen_weights(target, weights), axis=1)
    before, total_weight, step = upto - weights, upto[:, -1:], _penalty_steps(target)
    match target:
        case Rank(fraction):
            level = fraction.numerator * total_weight
        case ExtremeTarget(high, rank):
            level = np.full_like(total_weight, 2 * rank + 1)
            if high:
                before, upto = total_weight - upto, total_weight - before
    result: Penalties = np.maximum(step * before - level, level - step * upto)
    return result


def _widen_weights(target: Target, weights: Cells) -> Penalties:
    """The weights in a type that holds every term of a score."""
    largest = float(np.max(np.sum(weights, axis=1, dtype=np.float64), initial=0.0)) * _penalty_steps(target)
    if isinstance(target, ExtremeTarget):
        largest = max(largest, 2.0 * target.rank)
    return weights if largest < _MAX_SAFE else weights.astype(object)
