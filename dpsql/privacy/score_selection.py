"""Choosing by scores that are linear in cells: the best candidates, and draws from a posterior.

A block holds whole numbers, a_1 to a_m, and each of some public candidates z has a penalty, linear in them:

    ranking     a candidate for each cell, its penalty is minus the cell: the highest sum or count is the best
    drawing     cells (a_1, a_0), the weight of rows that are true and false; candidates are shares theta = j/1000 on a
                grid within [t, 1 - t]. With T(j) = ceil(2^24 (-ln (j/1000))), the penalty a_1 T(j) + a_0 T(1000 - j) is
                minus the log-likelihood of Bernoulli's, and a public prior adds a constant to each

Stability: let neighbors move the cells of block g by d_g, and let R_g be the range of what that moves the penalties by,
the greatest minus the least over the candidates. With w = 1 for a ranking, and w = T at one end of the grid minus T
at the other for a drawing, R_g <= w |d_g|_1, since each cell's coefficients span w: of a ranking they are -1 and 0, and
the greatest and the least move are those of two cells. So, over all blocks, by the joint norms of the cells:

    sum of R_g <= w l1,        sum of R_g^2 <= w^2 min(2 l2^2, l1^2)      [(x + y)^2 <= 2 (x^2 + y^2)]
    one block in all           R <= 2 w linf, as well

One-sided: where rows add nothing negative and a unit comes or leaves as a whole (add_remove), no component of d_g has
another sign than the others, and R_g <= w |d_g|_inf. Of a ranking, all moves lie between 0 and the largest. Of a
drawing, let a >= a' >= 0 be the moves of the two cells: T is convex and falling (`_is_falling_convex` checks that), so
that the penalty's move a T(j) + a' T(1000 - j) is largest at an end of the grid, hence at most a T_high + a' T_low, and
at least (a + a') T_low: the range is at most a (T_high - T_low). So 2 becomes 1 in the lines above. A group of k units
may come and go both, but a range is at most the sum of theirs, and l1, l2, linf have the factor k.

Privacy: the exponential mechanism has P(z) ~ exp(-penalty / b). ln P(z)/P'(z) lies, over all z, in an interval as long
as R_g / b around 0: it is (R_g/b)-DP and, having that range, (R_g/b)^2/8-zCDP (Dong, Durfee, Rogers 2020).

Permute-and-flip (McKenna, Sheldon 2020) walks through the candidates in random order and stops at z with probability
p_z = exp(-(penalty_z - the least) / b): P(z) = p_z * integral over t from 0 to 1 of prod over y other than z of (1 - t
p_y). It is (R_g/b)-DP. It depends on differences alone, falls in z's penalty and grows in those of others, so that the
worst move is that of one penalty, by R_g, up. While z is not the only best, that changes p_z alone, by exp(-R_g/b) at
most. While it is, p_z is 1 and others' p_y grow by a factor f = exp(r/b), f p_y <= 1: with s = f t the integral is 1/f
times that of prod (1 - s p_y) from 0 to f, no less than 1/f times that from 0 to 1. Its range may be twice as long as
the exponential mechanism's, so it is (R_g/b)^2/2-zCDP and no better: it is for losses that are charged as epsilon
(SOUNDNESS 6).

Rounds are drawn independently, given what earlier ones chose, from the candidates that are left, and blocks are too:
losses add up. Penalties are whole numbers, never rounded, and draws have exactly these distributions (`sampling.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.privacy.exact import Cells
from dpsql.privacy.loss import Loss
from dpsql.privacy.noise import Sensitivity, require_positive_share, round_up_scale, scale_from_square
from dpsql.privacy.sampling import Integers, Sampler, to_decimal

Penalties = npt.NDArray[Any]
"""64-bit integers or, where those might overflow, Python's."""

SHARE_STEPS = 1_000
"""The grid of shares: theta is a multiple of 1/STEPS."""
LIKELIHOOD_STEPS = 1 << 24
"""Steps of a log-likelihood: what rounding adds is 2^-24 for each row."""

_CHUNK_CANDIDATES = 1 << 18
"""Candidates worked on at once, so that memory stays flat."""
_MAX_CELL = (1 << 62) - 1
_MAX_SAFE = float(1 << 60)
_DIGITS = Context(prec=50)


@dataclass(frozen=True)
class CellMoves:
    """How far neighbors move the cells of all blocks, by joint norms with neighbors and group size counted in.

    `non_negative` says that no row adds anything negative, `single` that there is one block whatever the data.
    """

    norms: Sensitivity
    non_negative: bool
    single: bool = False
    group_size: int = 1
    change_one: bool = False

    @property
    def is_one_sided(self) -> bool:
        return self.non_negative and not self.change_one

    @property
    def l1(self) -> int:
        """At least the sum over blocks of R_g / w."""
        sides = 1 if self.is_one_sided else 2
        return min(self.norms.l1, sides * self.norms.linf) if self.single else self.norms.l1

    @property
    def l2_squared(self) -> int:
        """At least the sum over blocks of (R_g / w)^2."""
        return min(self.norms.l2_squared * (1 if self.is_one_sided else 2), self.l1**2)


@dataclass(frozen=True)
class Ranking:
    """The `most` best candidates of each block, best first, chosen one after the other.

    A block's rows share all keys but that at `place`, the candidate. With `flips` by permute-and-flip.
    """

    scale: Fraction
    most: int
    flips: bool
    place: int

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.most < 1 or self.place < 0:
            raise ValueError("a ranking has a scale, rounds, and a key for its candidates")

    @property
    def rounds(self) -> int:
        return self.most

    @property
    def width(self) -> int:
        return 1

    @property
    def columns(self) -> int:
        return 1


@dataclass(frozen=True)
class PosteriorDraws:
    """`draws` shares theta from a tempered posterior, on the grid from `first` to STEPS - `first`.

    `alpha` and `beta` are the prior's, `whole` what a row weighs.
    """

    scale: Fraction
    draws: int
    first: int
    alpha: Fraction
    beta: Fraction
    whole: int

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.draws < 1 or self.whole < 1 or min(self.alpha, self.beta) <= 0:
            raise ValueError("a posterior has a scale, draws, and a prior")
        if not 1 <= self.first < SHARE_STEPS // 2:
            # At 0 one row makes a share impossible: the ratio of two posteriors has no bound there.
            raise ValueError("shares stay away from 0 and 1")

    @property
    def rounds(self) -> int:
        return self.draws

    @property
    def width(self) -> int:
        return penalty_span(self.first)

    @property
    def columns(self) -> int:
        return 2

    @property
    def likelihood_power(self) -> Fraction:
        """The power of the likelihood that is drawn from: 1 is the posterior itself."""
        return LIKELIHOOD_STEPS * self.whole / self.scale


Scores = Ranking | PosteriorDraws


def score_loss(scores: Scores, moves: CellMoves) -> Loss:
    """What all rounds in every block cost.

    Privacy: the module's docstring.
    """
    parts = 2 if isinstance(scores, Ranking) and scores.flips else 8
    epsilon = moves.l1 * scores.width / scores.scale
    rho = moves.l2_squared * scores.width**2 / (parts * scores.scale**2)
    return Loss(scores.rounds * epsilon, scores.rounds * rho, Fraction(0))


def calibrate_scale_by_epsilon(rounds: int, width: int, moves: CellMoves, epsilon: Fraction) -> Fraction:
    """The sharpest choice that costs at most `epsilon` in all rounds."""
    return round_up_scale(moves.l1 * width / require_positive_share(epsilon / rounds))


def calibrate_scale_by_rho(rounds: int, width: int, moves: CellMoves, rho: Fraction) -> Fraction:
    """The sharpest exponential mechanism that costs at most `rho` in all rounds."""
    return scale_from_square(moves.l2_squared * width**2 / (8 * require_positive_share(rho / rounds)))


def score_error(ranking: Ranking, candidates: int, confidence: float = 0.95) -> float:
    """How far below the best one left the cell of a candidate chosen is at most, with this confidence, on any data.

    P(best - s >= t) <= n exp(-t / scale) (McSherry, Talwar 2007), and permute-and-flip is never worse; a miss is
    divided over the rounds.
    """
    miss = 1.0 - confidence
    if not 0.0 < miss < 1.0:
        raise ValueError("a confidence must lie between 0 and 1")
    return float(ranking.scale) * (math.log(max(1, candidates)) + math.log(ranking.most) - math.log(miss))


# --- rankings --------------------------------------------------------------------------------------------------------


def rank_candidates(ranking: Ranking, cells: Cells, sampler: Sampler) -> Integers:
    """The places of the candidates chosen, one row for each block; `cells` has a column for each candidate.

    Privacy: `score_loss`. Clipping cells moves no two of them further apart.
    """
    blocks, candidates = cells.shape
    rounds = min(ranking.most, candidates)
    chosen = np.empty((blocks, rounds), np.int64)
    step = max(1, _CHUNK_CANDIDATES // max(1, candidates))
    for start in range(0, blocks, step):
        part = slice(start, start + step)
        chosen[part] = _choose_in_rounds(ranking, rounds, -np.clip(cells[part], -_MAX_CELL, _MAX_CELL), sampler)
    return chosen


def _choose_in_rounds(ranking: Ranking, rounds: int, penalties: Penalties, sampler: Sampler) -> Integers:
    """One candidate after the other, each from those that are left."""
    blocks = len(penalties)
    remaining: Integers = np.tile(np.arange(penalties.shape[1], dtype=np.int64), (blocks, 1))
    chosen = np.empty((blocks, rounds), np.int64)
    for round_number in range(rounds):
        draw = sampler.flip if ranking.flips else sampler.choose
        indices = draw(np.take_along_axis(penalties, remaining, axis=1), ranking.scale)[:, None]
        chosen[:, round_number] = np.take_along_axis(remaining, indices, axis=1)[:, 0]
        others = np.arange(remaining.shape[1]) != indices
        remaining = remaining[others].reshape(blocks, -1)
    return chosen


# --- posteriors ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def negative_logs() -> tuple[Decimal, ...]:
    """-ln(j / STEPS) for j from 1 to STEPS, to 48 digits."""
    with localcontext(_DIGITS):
        return tuple(Decimal(SHARE_STEPS).ln() - Decimal(j).ln() for j in range(1, SHARE_STEPS + 1))


@lru_cache(maxsize=1)
def log_penalties() -> tuple[int, ...]:
    """T(j) = ceil(2^24 (-ln (j / STEPS))) for j from 1 to STEPS: public, and the same on every machine."""
    with localcontext(_DIGITS):
        penalties = tuple(int((LIKELIHOOD_STEPS * log).to_integral_value(ROUND_CEILING)) for log in negative_logs())
    if not _is_falling_convex(penalties):
        raise ArithmeticError("the logarithms are not convex")
    return penalties


def _is_falling_convex(values: tuple[int, ...]) -> bool:
    """Falling and convex: at a step of 2^-24 the rounding is far below the curvature, which is at least 16 steps."""
    falls = [current - following for current, following in pairwise(values)]
    return all(fall > 0 for fall in falls) and all(current >= following for current, following in pairwise(falls))


def penalty_span(first: int) -> int:
    """w: how far apart the log-likelihoods of one row are, over the grid."""
    return log_penalties()[first - 1] - log_penalties()[SHARE_STEPS - first - 1]


def draw_shares(drawing: PosteriorDraws, weights: Cells, sampler: Sampler) -> tuple[Integers, ...]:
    """One array for each draw: the share in every block, in steps; `weights` has a row for each block, and two columns.

    Privacy: `score_loss`. Negative weights, which no engine returns, count as 0.
    """
    candidates = SHARE_STEPS - 2 * drawing.first + 1
    step = max(1, _CHUNK_CANDIDATES // candidates)
    drawn = [np.empty(len(weights), np.int64) for _ in range(drawing.draws)]
    for start in range(0, len(weights), step):
        part = slice(start, start + step)
        penalties = posterior_penalties(drawing, np.clip(weights[part], 0, _MAX_CELL))
        for shares in drawn:
            shares[part] = drawing.first + sampler.choose(penalties, drawing.scale)
    return tuple(drawn)


def posterior_penalties(drawing: PosteriorDraws, weights: Cells) -> Penalties:
    """The penalty of each share; `weights` has two columns, of rows that are true and false."""
    first, last = drawing.first, SHARE_STEPS - drawing.first
    table = log_penalties()
    largest = float(np.max(np.sum(weights, axis=1, dtype=np.float64), initial=0.0)) * table[0]
    constants = _prior_penalties(drawing)
    exact = largest < _MAX_SAFE and max(map(abs, constants)) < _MAX_SAFE
    kind: Any = np.int64 if exact else object
    coefficients = np.array(table[first - 1 : last], dtype=kind)
    wide = weights.astype(kind)
    result: Penalties = wide[:, :1] * coefficients + wide[:, 1:] * coefficients[::-1] + np.array(constants, dtype=kind)
    return result


@lru_cache(maxsize=64)
def _prior_penalties(drawing: PosteriorDraws) -> tuple[int, ...]:
    """Minus the logarithm of the prior's density at each share, in steps of the scale: it is not tempered."""
    with localcontext(_DIGITS):
        scale, log_values = to_decimal(drawing.scale), negative_logs()
        a, b = to_decimal(drawing.alpha - 1), to_decimal(drawing.beta - 1)
        grid = range(drawing.first, SHARE_STEPS - drawing.first + 1)
        values = (scale * (a * log_values[j - 1] + b * log_values[SHARE_STEPS - j - 1]) for j in grid)
        return tuple(int(value.to_integral_value(ROUND_HALF_EVEN)) for value in values)
