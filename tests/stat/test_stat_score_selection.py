"""Choices by scores follow the exact distributions of the exponential mechanism, permute-and-flip and posteriors.

Each test accepts the true distribution with an error rate of at most 1e-7 and must reject a wrong one.
"""

from __future__ import annotations

import math
from fractions import Fraction as F
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2

from dpsql.privacy.sampling import ExactSampler
from dpsql.privacy.score_selection import (
    LIKELIHOOD_STEPS,
    SHARE_STEPS,
    PosteriorDraws,
    Ranking,
    draw_shares,
    posterior_penalties,
    rank_candidates,
)

pytestmark = pytest.mark.stat

ALPHA = 1e-7
DRAWS = 400_000
SCORES = {"known": [0, 1, 2], "ties": [5, 5, 3, 0], "far": [0, 7, 30, 31], "one": [4]}


def fits(places: np.ndarray, expected: np.ndarray) -> float:
    """The chi-square p-value; places that are too rare are counted together."""
    counts, wanted = np.bincount(places, minlength=len(expected)), expected * len(places)
    rare = wanted < 20
    if rare.any():
        counts, wanted = (np.append(x[~rare], x[rare].sum()) for x in (counts, wanted))
        keep = wanted > 0
        assert counts[~keep].sum() == 0
        counts, wanted = counts[keep], wanted[keep]
    if len(counts) == 1:
        return 1.0
    return float(chi2.sf(((counts - wanted) ** 2 / wanted).sum(), len(counts) - 1))


def exponential(scores: list[int], scale: float) -> np.ndarray:
    weights = np.exp((np.array(scores) - max(scores)) / scale)
    return np.asarray(weights / weights.sum())


def permuted(scores: list[int], scale: float) -> np.ndarray:
    passes = [math.exp((score - max(scores)) / scale) for score in scores]
    result = np.zeros(len(scores))
    for order in permutations(range(len(scores))):
        left = 1.0
        for place in order:
            result[place] += left * passes[place]
            left *= 1 - passes[place]
    return result / math.factorial(len(scores))


@pytest.mark.parametrize("scale", [F(1, 2), F(1), F(7, 3)], ids=str)
@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("flips", [False, True], ids=["exponential", "flips"])
def test_the_best_fits(flips: bool, name: str, scale: F) -> None:
    scores = SCORES[name]
    cells = np.tile(np.array(scores, np.int64), (DRAWS, 1))
    places = rank_candidates(Ranking(scale, 1, flips, 0), cells, ExactSampler())[:, 0]
    true, other = (permuted, exponential) if flips else (exponential, permuted)
    assert fits(places, true(scores, float(scale))) > ALPHA
    if len(scores) > 1:
        assert fits(places, true(scores, float(scale) * 1.2)) < ALPHA
        assert fits(places, other(scores, float(scale))) < ALPHA


@pytest.mark.parametrize("flips", [False, True], ids=["exponential", "flips"])
def test_the_second_is_chosen_from_those_that_are_left(flips: bool) -> None:
    """Pairs of the first two: the product of the two distributions; drawing twice from all of them is rejected."""
    scores, scale = [0, 1, 2], 1.5
    chosen = rank_candidates(
        Ranking(F(3, 2), 2, flips, 0), np.tile(np.array(scores, np.int64), (DRAWS, 1)), ExactSampler()
    )
    draw = permuted if flips else exponential
    first, pairs, again = draw(scores, scale), np.zeros((3, 3)), np.zeros((3, 3))
    for one in range(3):
        left = [place for place in range(3) if place != one]
        pairs[one, left] = first[one] * draw([scores[place] for place in left], scale)
        again[one, left] = first[one] * first[left] / first[left].sum()
    places = chosen[:, 0] * 3 + chosen[:, 1]
    assert fits(places, pairs.ravel()) > ALPHA
    if flips:  # of the exponential mechanism, leaving one out and drawing again are the same
        assert fits(places, again.ravel()) < ALPHA


@pytest.mark.parametrize("temper", [F(1), F(1, 5)], ids=str)
def test_posterior_draws_fit(temper: F) -> None:
    drawing = PosteriorDraws(LIKELIHOOD_STEPS / temper, 1, 50, F(2), F(3), 1)
    weights = np.tile(np.array([[30, 70]], np.int64), (200_000, 1))
    (shares,) = draw_shares(drawing, weights, ExactSampler())
    places = shares - drawing.first
    theta = np.arange(drawing.first, SHARE_STEPS - drawing.first + 1) / SHARE_STEPS

    def density(power: float, a: float, b: float) -> np.ndarray:
        logs = (power * 30 + a - 1) * np.log(theta) + (power * 70 + b - 1) * np.log(1 - theta)
        chances = np.exp(logs - logs.max())
        return np.asarray(chances / chances.sum())

    power = float(temper)
    assert fits(places, density(power, 2, 3)) > ALPHA
    assert fits(places, density(power * 1.15, 2, 3)) < ALPHA  # a wrong power
    assert fits(places, density(power, 2 * power, 3 * power)) < ALPHA if power < 1 else True  # a tempered prior
    scores = posterior_penalties(drawing, weights[:1])[0] / float(drawing.scale)
    assert np.allclose(density(power, 2, 3), exponential((-scores).tolist(), 1.0), atol=1e-6)
