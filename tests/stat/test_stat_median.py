"""Medians by their local sensitivity, drawn many times on neighbors: they follow their law, and keep the claim.

Every share is judged by Hoeffding's inequality, wrong with a chance of 1e-12, for all 2^10 events at once 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction as F

import numpy as np
import numpy.typing as npt
import pytest

from dpsql.privacy.exact import Exact
from dpsql.privacy.exponential import MEDIAN, Pick
from dpsql.privacy.median import (
    NO_ANSWER,
    BlockReach,
    ProposeTestRelease,
    SmoothMedian,
    calibrate_propose_test_release,
    calibrate_smooth_median,
    distance_to_instability,
    local_sensitivity,
    smooth_sensitivity,
)
from dpsql.privacy.release import perturb
from dpsql.privacy.release_spec import BinPicks, ReleaseSpec
from dpsql.privacy.sampling import MIN_SCALE, ExactSampler

pytestmark = pytest.mark.stat

RUNS, BINS, STEPS = 20_000, 9, BlockReach(1, 1)
WIDE = math.sqrt(math.log(2e12) / (2 * RUNS))
"""How far a share of so many runs may be from its probability."""

# Of three the median stays, whoever leaves or comes; of two it can move from end to end.
ONE, OTHER = np.array([2, 0, 0, 0, 0, 0, 0, 0, 1]), np.array([1, 0, 0, 0, 0, 0, 0, 0, 1])
Shares = dict[int, float]


def shares(mechanism: SmoothMedian | ProposeTestRelease, counts: npt.NDArray[np.int64]) -> Shares:
    """How often each place leaves, through the very code that makes releases."""
    choice = BinPicks((Pick(MEDIAN, mechanism),), 0, BINS - 1, 1)
    keys = [(run, place) for run in range(RUNS) for place in range(BINS)]
    release = perturb(Exact(keys, [np.tile(counts, RUNS)]), ReleaseSpec((F(1),), (), None, choice), ExactSampler())
    places, found = np.unique(release.cells[0], return_counts=True)
    return {int(place): count / RUNS for place, count in zip(places, found, strict=True)}


def noisy(at: int, scale: float) -> Callable[[int], float]:
    """The law of a place with noise, moved into the range."""
    q = math.exp(-1 / scale)

    def mass(place: int) -> float:
        if 0 < place < BINS - 1:
            return (1 - q) / (1 + q) * q ** abs(place - at)
        away = abs(place - at)
        return q**away / (1 + q) if away else 1 / (1 + q)

    return mass


def breaks(one: Shares, other: Shares, epsilon: float, delta: float) -> bool:
    """Whether an event, of those that the likelihoods order, is too likely on one side."""
    for p, q in ((one, other), (other, one)):
        event = [place for place in p if p[place] > math.exp(epsilon) * q.get(place, 0.0)]
        ours, theirs = (sum(side.get(place, 0.0) for place in event) for side in (p, q))
        if ours - WIDE > math.exp(epsilon) * (theirs + WIDE) + delta:
            return True
    return False


@pytest.mark.parametrize("epsilon", [F(1, 2), F(2)])
def test_smooth_noise_follows_its_law_and_keeps_the_claim(epsilon: F) -> None:
    mechanism = calibrate_smooth_median(epsilon, F(1, 1000), STEPS, BINS)
    drawn = []
    for counts in (ONE, OTHER):
        found = local_sensitivity(counts, 1)
        scale = 2 * smooth_sensitivity(found, mechanism.rate, MIN_SCALE * epsilon / 2) / epsilon
        drawn.append(shares(mechanism, counts))
        law = noisy(found.median, float(scale))
        assert all(abs(drawn[-1].get(place, 0.0) - law(place)) < WIDE for place in range(BINS))
        halved = noisy(found.median, float(scale) / 2)
        assert any(abs(drawn[-1].get(place, 0.0) - halved(place)) > WIDE for place in range(BINS))
    assert not breaks(drawn[0], drawn[1], float(epsilon), 1e-3)


def test_noise_by_the_local_sensitivity_is_found_out() -> None:
    """A rate so large that nothing but the database itself counts."""
    local = calibrate_smooth_median(F(2), F(1, 1000), STEPS, BINS)
    object.__setattr__(local, "rate", F(40))
    assert breaks(shares(local, ONE), shares(local, OTHER), 2.0, 1e-3)


@pytest.mark.parametrize("epsilon", [F(1, 2), F(2)])
def test_ptr_follows_its_law_and_keeps_the_claim(epsilon: F) -> None:
    mechanism = calibrate_propose_test_release(epsilon, F(1, 1000), 2, STEPS)
    drawn = [shares(mechanism, counts) for counts in (ONE, OTHER)]
    assert all(side[NO_ANSWER] > 1 - 0.2 for side in drawn) and not breaks(*drawn, 2 * float(epsilon), 1e-3)
    many = np.array([0, 0, 0, 500, 0, 0, 0, 0, 0])
    law = noisy(3, float(mechanism.noise_scale))
    passed = shares(mechanism, many)
    assert NO_ANSWER not in passed and all(abs(passed.get(place, 0.0) - law(place)) < WIDE for place in range(BINS))


def test_the_test_is_passed_as_often_as_its_law_says() -> None:
    mechanism = calibrate_propose_test_release(F(1), F(1, 10), 2, STEPS)
    q = math.exp(-1)
    for units in (1, 3, 5, 9):
        counts = np.array([0, 0, 0, units, 0, 0, 0, 0, 0])
        beyond = mechanism.limit - distance_to_instability(local_sensitivity(counts, 1), mechanism.proposal)
        passes = q ** (beyond + 1) / (1 + q) if beyond >= 0 else 1 - q**-beyond / (1 + q)
        assert abs(1 - shares(mechanism, counts).get(NO_ANSWER, 0.0) - passes) < WIDE


def test_a_proposal_without_its_test_is_found_out() -> None:
    """Everybody passes: the pair's medians are as far apart as the range."""
    one, other = np.array([1, 0, 0, 0, 0, 0, 0, 0, 1]), np.array([0, 0, 0, 0, 0, 0, 0, 0, 1])
    careless = calibrate_propose_test_release(F(1), F(1, 1000), 1, STEPS)
    object.__setattr__(careless, "limit", -100)
    assert breaks(shares(careless, one), shares(careless, other), 2.0, 1e-3)
