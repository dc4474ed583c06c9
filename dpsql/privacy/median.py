"""MEDIAN with noise by its smooth sensitivity, and the local sensitivity that this and `ptr` rest on.

A block holds how many units have their one value in each bin, in ascending order. With n units, sorted places
x_1 <= ... <= x_n in 0 to H (H + 1 bins), x_i = 0 for i <= 0 and x_i = H for i > n, the median is the lower one,

    f = x_r,    r = floor((n + 1)/2),    and of nobody x_0 = 0.

A step adds one value or takes one away. Neighbors are within m steps in each block: m = k under add_remove and 2k under
change_one, for groups of k units (a change may also move the value to another group, or out of all of them).

Local sensitivity. Within j steps the median can be pushed up to x at floor((n + 1 + j)/2), by adding H or taking away
the lowest, and down to x at floor((n + 1 - j)/2). To make it as sensitive as possible within j steps, take away e <= j
values next to it and use the others for a shift t, |t| <= j - e: m more steps then move it between

    x at floor((n + 1 + t - e)/2)        and    x at floor((n + 1 + t + e + m)/2),     or
    x at floor((n + 1 + t - e - m)/2)    and    x at floor((n + 1 + t + e)/2).

Each end is furthest out at e = j, t = 0 (a shift outward costs as much as a value taken away, which moves both). So
the largest local sensitivity within j steps is

    A_j = max(x at floor((n+1+j+m)/2) - x at floor((n+1-j)/2),  x at floor((n+1+j)/2) - x at floor((n+1-j-m)/2)).

Stability: A_j(D) <= A_{j+1}(D') one step away, for the ends lie further out there and one value moves places by one.
The textbook's A_k = max over t of x_{r+t} - x_{r+t-k-1} (Nissim, Raskhodnikova, Smith 2007) is for changes at a fixed
n: with n private it is no bound. `tests/property/test_local_sensitivity.py` goes through all small databases.

Smooth sensitivity. S = max over j of w_j A_j with w_j = exp(-rate j) rounded to 50 digits, w_0 = 1. Hence S is at least
the local sensitivity, and S(D) <= g S(D') for neighbors, g = e^(m rate) (1 + 10^-45), which `rate` leaves room for.
The maximum with a constant keeps both.

Privacy: f + X in whole steps, X discrete Laplace of scale b = 2S/epsilon, is (epsilon, delta)-DP in its block if
g <= 1 + epsilon / (2 ln(2/delta)) and delta <= 1/2. Proof, for P on D with (f, b) and Q on D' with (f', b').
  dilation   From (f, b) to (f, b'), with p_b(x) = tanh(1/2b) e^(-|x|/b). If b <= b', p_b(x)/p_b'(x) is at most
             tanh(1/2b)/tanh(1/2b') <= b'/b <= g <= e^(epsilon/2), for tanh(u)/u falls and ln(2/delta) >= 1. If b > b',
             the tanhs only help, and the ratio is at most exp(|x| (1/b' - 1/b)) <= exp(|x| (g - 1)/b). That is at
             most e^(epsilon/2) where |x| <= y = b epsilon / (2 (g - 1)), and p_b has beyond y the mass
             2 q^(floor(y)+1)/(1 + q) <= 2 e^(-y/b) <= delta, q = e^(-1/b).
  shift      From (f, b') to (f', b'): a factor of at most e^(|f - f'|/b') <= e^(epsilon/2), as |f - f'| <= S'.
So P(T) <= e^(epsilon/2) (f, b')(T) + delta <= e^epsilon Q(T) + delta. This is the admissible noise of the same paper
with its steps in the other order, which saves a factor e^(epsilon/2) of delta, and e^rate - 1 in the place of rate,
which makes it hold for every epsilon; nothing in it needs noise that is continuous. What leaves is moved into 0 to H.

In the ledger. An (epsilon, delta)-DP pair is P = (1 - delta) P1 + delta P2, Q = (1 - delta) Q1 + delta Q2 with P1, Q1
epsilon-DP (Kairouz, Oh, Viswanath 2015, by which every such pair comes from one coin), so D_a(P1 | Q1) <= a epsilon^2/2
(Bun, Steinke 2016, Prop. 3.3): delta-approximate (epsilon^2/2)-zCDP, in the sense in which losses add up here
(Whitehouse et al. 2023; Bun, Steinke 2016, Def. 8.1). Never pure. `blocks` of them that neighbors change add up.

S is private: it tells how the values lie. Neither it nor the noise's scale leaves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_DOWN, Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpsql.privacy.exact import Cells
from dpsql.privacy.loss import Loss, LossTooSmall
from dpsql.privacy.noise import require_positive_share
from dpsql.privacy.sampling import MAX_SCALE, MIN_SCALE, Integers, Sampler, to_decimal
from dpsql.privacy.tails import find_least_integer, laplace_tail

Values = npt.NDArray[np.int64]

_MEDIAN_DIGITS = Context(prec=50, Emax=MAX_EMAX, Emin=MIN_EMIN)
_RATE_DIGITS = Context(prec=24, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=ROUND_DOWN)
_MAX_UNITS = 1 << 40
"""In one bin, so that sums and twice of them stay within 64 bits; clipping moves no two counts further apart."""
_RATE_MARGIN = 1 - Fraction(1, 1 << 40)
"""Of the rate: far more than 50 digits take, for rates above 10^-30."""
_MIN_RATE = Fraction(1, 10**12)
_OUTWARD = 1 + Fraction(1, 10**20)
"""Covers the digits that g - 1 loses, twelve of fifty, times the exponent, below 10^6 for a delta that is charged."""
_NEAR = 1e-6
"""Candidates whose float score is this close to the best, relative to its size, are compared exactly."""


@dataclass(frozen=True)
class BlockReach:
    """Where neighbors differ: in at most `blocks` blocks, in each by at most `steps` values that come or go."""

    steps: int
    blocks: int

    def __post_init__(self) -> None:
        if self.steps < 1 or self.blocks < 1:
            raise ValueError("neighbors differ by at least one value in one block")


@dataclass(frozen=True)
class SmoothMedian:
    """Noise of scale 2S/epsilon, S falling off by e^-rate for each step away."""

    epsilon: Fraction
    rate: Fraction
    reached: BlockReach

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.rate < _MIN_RATE:
            raise ValueError("epsilon and the rate are positive")
        if smooth_delta(self) > Fraction(1, 2):
            raise ValueError("the rate is too large: delta would be above 1/2")

    @property
    def total_epsilon(self) -> Fraction:
        """The epsilon of all blocks, by adding up; the delta is that of `loss`."""
        return self.reached.blocks * self.epsilon

    @property
    def loss(self) -> Loss:
        """Privacy: the module's docstring, for values of which neighbors move as `reached` says."""
        return Loss(None, self.reached.blocks * self.epsilon**2 / 2, self.reached.blocks * smooth_delta(self))


def smooth_delta(mechanism: SmoothMedian) -> Fraction:
    """At least 2 exp(-epsilon / (2 (g - 1))), for one block."""
    with localcontext(_MEDIAN_DIGITS):
        growth = to_decimal(mechanism.rate * mechanism.reached.steps / _RATE_MARGIN).exp() - 1
        tail = 2 * (to_decimal(-mechanism.epsilon) / (2 * growth)).exp()
        return Fraction(tail) * _OUTWARD


def calibrate_smooth_median(epsilon: Fraction, delta: Fraction, reached: BlockReach, bins: int) -> SmoothMedian:
    """The least noise of which one block is (epsilon, delta)-DP."""
    epsilon = require_positive_share(epsilon)
    if delta <= 0:
        raise ValueError("smooth sensitivity needs a delta")
    delta = min(delta, Fraction(1, 2))
    with localcontext(_MEDIAN_DIGITS):
        # ln(1 + x)/m, x = epsilon / (2 ln(2/delta)), with some room for rounding; then 24 digits of it.
        grows = 1 + to_decimal(epsilon) / (2 * to_decimal(2 / delta).ln())
        rate = grows.ln() / reached.steps * (1 - Decimal(10) ** -12)
    with localcontext(_RATE_DIGITS):
        rate = +rate
    if Fraction(rate) < _MIN_RATE or worst_scale(epsilon, bins) > MAX_SCALE:
        raise LossTooSmall("the noise asked for is too large")
    return SmoothMedian(epsilon, Fraction(rate), reached)


def worst_scale(epsilon: Fraction, bins: int) -> Fraction:
    """The noise where one unit can move the median from end to end, in bins."""
    return max(2 * (bins - 1) / epsilon, MIN_SCALE)


# --- local sensitivity -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LocalSensitivity:
    """The local sensitivity of one block: `largest[i]` is A_j from j = `steps[i]` on, both rising."""

    median: int
    steps: Values
    largest: Values


def local_sensitivity(counts: Cells, steps: int) -> LocalSensitivity:
    """A_j of one block, `counts` in its bins, for all j: where it grows."""
    cumulative = np.cumsum(np.clip(counts, 0, _MAX_UNITS).astype(np.int64))
    n = int(cumulative[-1])
    above, below = 2 * (cumulative + 1) - (n + 1), n - 2 * np.append(cumulative, 0)
    starts = np.concatenate(([0], above, above - steps, below, below - steps))
    starts = np.unique(starts[starts >= 0])

    def at(twice: Values) -> Values:
        """The places of x at floor(twice / 2)."""
        index: Values = np.searchsorted(cumulative, np.maximum(twice // 2, 0))
        return np.where(twice // 2 <= 0, 0, np.minimum(index, len(cumulative) - 1))

    upward = at(n + 1 + starts + steps) - at(n + 1 - starts)
    downward = at(n + 1 + starts) - at(n + 1 - starts - steps)
    return LocalSensitivity(int(at(np.array([n + 1]))[0]), starts, np.maximum(upward, downward))


def smooth_sensitivity(sensitivity: LocalSensitivity, rate: Fraction, least: Fraction) -> Fraction:
    """S, or `least` where that is larger.

    Privacy: floats only leave out what is smaller for certain: they err by less than 10^-12 of a score's two parts.
    Between two steps of `LocalSensitivity` A_j stays and w_j, correctly rounded, never grows: the maximum is at one of
    them.
    """
    wide = sensitivity.largest > 0
    starts, largest = sensitivity.steps[wide], sensitivity.largest[wide]
    if not len(starts):
        return least
    falls = starts * float(rate)
    scores = np.log(largest) - falls
    best = scores.max()
    near = scores >= best - _NEAR * (1 + falls[scores.argmax()])
    result = least
    for start, gap, score in zip(starts[near].tolist(), largest[near].tolist(), scores[near].tolist(), strict=True):
        if score > math.log(least) - 1:
            with localcontext(_MEDIAN_DIGITS):
                result = max(result, Fraction(to_decimal(-rate * start).exp()) * gap)
    return result


def release_noisy_medians(mechanism: SmoothMedian, counts: Cells, sampler: Sampler) -> Integers:
    """A place in each block; `counts` has one row for each block and one column for each bin.

    Privacy: `SmoothMedian.loss`.
    """
    last_bin = counts.shape[1] - 1
    min_sensitivity = MIN_SCALE * mechanism.epsilon / 2
    answers = np.empty(len(counts), np.int64)
    for block, row in enumerate(counts):
        sensitivity = local_sensitivity(row, mechanism.reached.steps)
        scale = 2 * smooth_sensitivity(sensitivity, mechanism.rate, min_sensitivity) / mechanism.epsilon
        answers[block] = sensitivity.median + int(sampler.laplace(1, scale)[0])
    return np.clip(answers, 0, last_bin)


def units_for_precision(mechanism: SmoothMedian, part: Fraction) -> int:
    """How many units a block has at least, wherever their values lie, if 95 % of noise is within `part` of the range.

    Taking all n away leaves a median that one value moves from end to end: S >= e^(-rate n) H.
    """
    needed = part * mechanism.epsilon / 2
    with localcontext(_MEDIAN_DIGITS):
        return max(1, math.ceil((Decimal(20).ln() / to_decimal(needed)).ln() / to_decimal(mechanism.rate)))


# MEDIAN by propose-test-release (Dwork, Lei 2009): noise for a sensitivity that was proposed, if the data pass a test.
#
# The block, its median f, its steps and A_j are those of `smooth`. Somebody proposes a sensitivity s, in bins, without
# looking at the data. The distance d is the least j with A_j > s: so many values must come or go before m more steps
# can
# move the median further than s.
#
# Stability: one step moves d by at most one, since A_j(D) <= A_{j+1}(D'); neighbors, m steps apart, by at most m.
#
#     test       d + Y > limit, Y discrete Laplace of scale m/epsilon; else no answer
#     release    f + X, X discrete Laplace of scale s/epsilon, moved into the range
#
# Privacy: for one block, delta-approximate epsilon^2-zCDP, and (2 epsilon, delta)-DP, delta = P(Y > limit). Let D and
# D'
# be neighbors. If |f - f'| <= s, the test is epsilon-DP, and so is the release: (epsilon^2/2)-zCDP each (Bun, Steinke
# 2016). Else both local sensitivities are above s, so d = d' = 0, and each side passes with probability delta; given
# that
# it does not, both say nothing. The events are of the draws alone, as approximate zCDP has them. `blocks` of them add
# up.
#
# The limit is from the exact discrete tail. The textbook's ln(1/delta)/epsilon gives half of delta for continuous
# noise.

NO_ANSWER = -1
"""The place that stands for no answer."""


@dataclass(frozen=True)
class ProposeTestRelease:
    """Test and release at `epsilon` each, for a sensitivity of `proposal` bins; passed above `limit`."""

    epsilon: Fraction
    proposal: int
    limit: int
    reached: BlockReach

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.proposal < 1 or self.limit < 1:
            raise ValueError("epsilon and a proposal are positive")

    @property
    def test_scale(self) -> Fraction:
        return self.reached.steps / self.epsilon

    @property
    def noise_scale(self) -> Fraction:
        return max(self.proposal / self.epsilon, MIN_SCALE)

    @property
    def total_epsilon(self) -> Fraction:
        """The epsilon of all blocks, by adding up; the delta is that of `loss`."""
        return 2 * self.reached.blocks * self.epsilon

    @property
    def loss(self) -> Loss:
        """Privacy: the module's docstring, for values of which neighbors move as `reached` says."""
        delta = laplace_tail(self.test_scale, self.limit + 1)
        return Loss(None, self.reached.blocks * self.epsilon**2, self.reached.blocks * delta)


def calibrate_propose_test_release(
    epsilon: Fraction, delta: Fraction, proposal: int, reached: BlockReach
) -> ProposeTestRelease:
    """The least test and noise that are (2 epsilon, delta)-DP in one block."""
    epsilon = min(require_positive_share(epsilon), reached.steps / MIN_SCALE)
    scale = reached.steps / epsilon
    if scale > MAX_SCALE or proposal / epsilon > MAX_SCALE:
        raise LossTooSmall("the noise asked for is too large")
    limit = find_least_integer(lambda at: laplace_tail(scale, at + 1) <= delta, 1)
    return ProposeTestRelease(epsilon, proposal, limit, reached)


def distance_to_instability(sensitivity: LocalSensitivity, proposal: int) -> int:
    """The steps after which neighbors may move the median by more than `proposal`, which is less than the range."""
    return int(sensitivity.steps[np.argmax(sensitivity.largest > proposal)])


def release_tested_medians(mechanism: ProposeTestRelease, counts: Cells, sampler: Sampler) -> Integers:
    """A place in each block, or NOTHING; `counts` has one row for each block and one column for each bin.

    Privacy: `ProposeTestRelease.loss`. All draws are made whether the test is passed or not.
    """
    blocks, bins = counts.shape
    if mechanism.proposal >= bins - 1:
        raise ValueError("a proposal is less than the range")
    sensitivities = [local_sensitivity(row, mechanism.reached.steps) for row in counts]
    distances = np.array(
        [distance_to_instability(sensitivity, mechanism.proposal) for sensitivity in sensitivities], np.int64
    )
    medians = np.array([sensitivity.median for sensitivity in sensitivities], np.int64)
    passed = distances + sampler.laplace(blocks, mechanism.test_scale) > mechanism.limit
    noisy = np.clip(medians + sampler.laplace(blocks, mechanism.noise_scale), 0, bins - 1)
    return np.where(passed, noisy, NO_ANSWER)


def units_to_pass_test(mechanism: ProposeTestRelease) -> int:
    """How many units a block has at least, wherever their values lie, if the test is passed in 19 of 20 runs.

    Taking all n away leaves a median that one value moves from end to end: d <= n.
    """
    return max(1, math.ceil(mechanism.limit + float(mechanism.test_scale) * math.log(10)))
