"""MEDIAN by propose-test-release (Dwork, Lei 2009): noise for a sensitivity that was proposed, if the data pass a test.

The block, its median f, its steps and A_j are those of `smooth`. Somebody proposes a sensitivity s, in bins, without
looking at the data. The distance d is the least j with A_j > s: so many values must come or go before m more steps can
move the median further than s.

Stability: one step moves d by at most one, since A_j(D) <= A_{j+1}(D'); neighbors, m steps apart, by at most m.

    test       d + Y > limit, Y discrete Laplace of scale m/epsilon; else no answer
    release    f + X, X discrete Laplace of scale s/epsilon, moved into the range

Privacy: for one block, delta-approximate epsilon^2-zCDP, and (2 epsilon, delta)-DP, delta = P(Y > limit). Let D and D'
be neighbors. If |f - f'| <= s, the test is epsilon-DP, and so is the release: (epsilon^2/2)-zCDP each (Bun, Steinke
2016). Else both local sensitivities are above s, so d = d' = 0, and each side passes with probability delta; given that
it does not, both say nothing. The events are of the draws alone, as approximate zCDP has them. `blocks` of them add up.

The limit is from the exact discrete tail. The textbook's ln(1/delta)/epsilon gives half of delta for continuous noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsql.exact import Cells
from dpsql.privacy.loss import Loss, LossTooSmall
from dpsql.privacy.mechanisms import require_positive_share
from dpsql.privacy.sampling import MIN_SCALE, MAX_SCALE, Integers, Sampler
from dpsql.privacy.smooth import LocalSensitivity, BlockReach, local_sensitivity
from dpsql.privacy.tails import laplace_tail, find_least_integer

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
        """Of all blocks, by adding up; the delta is that of `loss`."""
        return 2 * self.reached.blocks * self.epsilon

    @property
    def loss(self) -> Loss:
        """Privacy: the module's docstring, for values of which neighbors move as `reached` says."""
        delta = laplace_tail(self.test_scale, self.limit + 1)
        return Loss(None, self.reached.blocks * self.epsilon**2, self.reached.blocks * delta)


def calibrate_propose_test_release(epsilon: Fraction, delta: Fraction, proposal: int, reached: BlockReach) -> ProposeTestRelease:
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
    distances = np.array([distance_to_instability(sensitivity, mechanism.proposal) for sensitivity in sensitivities], np.int64)
    medians = np.array([sensitivity.median for sensitivity in sensitivities], np.int64)
    passed = distances + sampler.laplace(blocks, mechanism.test_scale) > mechanism.limit
    noisy = np.clip(medians + sampler.laplace(blocks, mechanism.noise_scale), 0, bins - 1)
    return np.where(passed, noisy, NO_ANSWER)


def units_to_pass_test(mechanism: ProposeTestRelease) -> int:
    """How many units a block has at least, wherever their values lie, if the test is passed in 19 of 20 runs.

    Taking all n away leaves a median that one value moves from end to end: d <= n.
    """
    return max(1, math.ceil(mechanism.limit + float(mechanism.test_scale) * math.log(10)))
