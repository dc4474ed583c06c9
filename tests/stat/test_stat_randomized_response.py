"""Randomized response keeps an answer as often as it says: too often would be a loss that is not told."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from dpsql.privacy.randomized_response import randomize_responses
from dpsql.privacy.sampling import ExactSampler

pytestmark = pytest.mark.stat

ALPHA = 1e-7
SAMPLES = 1_000_000


def fit(told: np.ndarray, own: int, answers: int, epsilon: float) -> float:
    """The chi-square p-value of what was told by rows that all have the same answer."""
    rare = math.exp(-epsilon)
    chances = np.array([1.0 if place == own else rare for place in range(answers)])
    expected = chances / chances.sum() * len(told)
    seen = np.bincount(told, minlength=answers)
    return float(chi2.sf(((seen - expected) ** 2 / expected).sum(), answers - 1))


@pytest.mark.parametrize(("answers", "epsilon"), [(2, Fraction(math.log(3.0))), (4, Fraction(1)), (7, Fraction(1, 10))])
@pytest.mark.parametrize("own", [0, 1])
def test_answers_are_kept_as_often_as_epsilon_says(answers: int, epsilon: Fraction, own: int) -> None:
    told = randomize_responses(np.full(SAMPLES, own, np.int64), answers, epsilon, ExactSampler())
    assert fit(told, own, answers, float(epsilon)) > ALPHA


@pytest.mark.parametrize(("answers", "epsilon"), [(2, Fraction(math.log(3.0))), (4, Fraction(1)), (7, Fraction(1, 10))])
def test_an_answer_that_is_kept_too_often_is_found(answers: int, epsilon: Fraction) -> None:
    """The negative control: a twentieth more of epsilon than is claimed."""
    told = randomize_responses(
        np.zeros(SAMPLES, np.int64), answers, epsilon * Fraction(21, 20) + Fraction(1, 50), ExactSampler()
    )
    assert fit(told, 0, answers, float(epsilon)) < ALPHA
