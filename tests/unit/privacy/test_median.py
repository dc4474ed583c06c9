"""Noise by the local sensitivity as it is drawn and stored: the scale that is asked of the sampler, and releases."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction as F
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dpsql.ledger.loss_checker import selections
from dpsql.privacy.exact import Exact
from dpsql.privacy.exponential import MEDIAN, Pick
from dpsql.privacy.median import (
    NO_ANSWER,
    BlockReach,
    ProposeTestRelease,
    SmoothMedian,
    calibrate_propose_test_release,
    calibrate_smooth_median,
    local_sensitivity,
    release_noisy_medians,
    smooth_sensitivity,
)
from dpsql.privacy.median import release_tested_medians as medians_tested
from dpsql.privacy.release import perturb, release_from_bytes, release_to_bytes
from dpsql.privacy.release_spec import BinPicks, ReleaseSpec
from dpsql.privacy.sampling import ExactSampler, Integers

ONE = BlockReach(1, 1)
MECHANISMS = [
    calibrate_smooth_median(F(1), F(1, 1000), ONE, 9),
    calibrate_propose_test_release(F(1), F(1, 1000), 2, ONE),
]


@dataclass
class Asked:
    """A sampler that draws nothing, or all the same, and remembers the scales."""

    noise: int = 0
    scales: list[F] = field(default_factory=list)

    def laplace(self, n: int, scale: F) -> Integers:
        self.scales.append(scale)
        return np.full(n, self.noise, np.int64)

    def gaussian(self, n: int, sigma: F) -> Integers:
        raise AssertionError("no gaussian noise here")

    def choose(self, penalties: npt.NDArray[Any], scale: F) -> Integers:
        raise AssertionError("nothing is chosen here")

    def flip(self, penalties: npt.NDArray[Any], scale: F) -> Integers:
        raise AssertionError("nothing is chosen here")


def test_the_scale_is_twice_the_smooth_sensitivity_over_epsilon() -> None:
    mechanism = calibrate_smooth_median(F(1, 2), F(1, 1000), ONE, 9)
    counts = np.array([[3, 0, 1, 0, 0, 0, 2, 0, 1], [0, 0, 0, 0, 0, 0, 0, 0, 0]])
    asked = Asked()
    assert release_noisy_medians(mechanism, counts, asked).tolist() == [2, 0]
    bounds = [smooth_sensitivity(local_sensitivity(row, 1), mechanism.rate, F(1, 10**9)) for row in counts]
    assert asked.scales == [4 * bound for bound in bounds] and bounds[1] == 8


def test_the_checker_counts_every_block_that_neighbors_reach() -> None:
    """What one unit may do in each of three groups costs three times as much; the records know it as `blocks`."""
    reached = BlockReach(2, 3)
    smooth, tested = (
        calibrate_smooth_median(F(1), F(1, 1000), reached, 9),
        calibrate_propose_test_release(F(1), F(1, 1000), 5, reached),
    )
    checked = [
        (smooth, [selections.SmoothMedianRecord(smooth.epsilon, smooth.rate, 2, blocks) for blocks in (1, 3)]),
        (tested, [selections.PtrMedianRecord(tested.epsilon, 5, tested.limit, 2, blocks) for blocks in (1, 3)]),
    ]
    for mechanism, (one, three) in checked:
        assert three.loss_figures == tuple(3 * figure for figure in one.loss_figures)
        assert mechanism.loss.rho == three.loss_figures[0]


def test_a_test_has_its_scale_and_the_release_its_own() -> None:
    mechanism = calibrate_propose_test_release(F(1, 2), F(1, 1000), 2, BlockReach(3, 1))
    asked, counts = Asked(), np.array([[0, 0, 0, 500, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0, 0]])
    assert medians_tested(mechanism, counts, asked).tolist() == [3, NO_ANSWER]
    assert asked.scales == [6, 4]


@pytest.mark.parametrize("noise", [-(10**6), 10**6])
def test_answers_stay_in_the_range(noise: int) -> None:
    counts = np.array([[0, 0, 0, 500, 0, 0, 0, 0, 0]])
    smooth, tested = MECHANISMS
    assert isinstance(smooth, SmoothMedian) and isinstance(tested, ProposeTestRelease)
    assert release_noisy_medians(smooth, counts, Asked(noise)).tolist() == [0 if noise < 0 else 8]
    assert medians_tested(tested, counts, Asked(noise)).tolist() == [NO_ANSWER if noise < 0 else 8]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=["smooth", "ptr"])
def test_a_release_is_stored_and_read_back(mechanism: SmoothMedian | ProposeTestRelease) -> None:
    choice = BinPicks((Pick(MEDIAN, mechanism),), -4, 4, 1)
    keys = [(kind, place) for kind in "ab" for place in range(-4, 5)]
    exact = Exact(keys, [np.array([0, 0, 0, 900, 0, 0, 0, 0, 0, *[0] * 9])])
    release = perturb(exact, ReleaseSpec((F(1),), (), None, choice), ExactSampler())
    assert release_from_bytes(release_to_bytes(release)) == release and all(
        -5 <= bin_ <= 4 for bin_ in release.cells[0]
    )


def test_weighted_rows_are_no_units() -> None:
    with pytest.raises(ValueError, match="one by one"):
        BinPicks((Pick(MEDIAN, MECHANISMS[0]),), 0, 8, 1 << 16)
