"""Credible intervals hold what they should as often as they say, for epsilon from 0.1 to 10 and 30 to 10,000 rows.

Parameters are drawn from the prior, and noise from the sampler of releases. The negative control is the plug-in
posterior, which takes noisy sums for exact ones: it holds the parameter far too seldom where the noise is large. An
interval that holds it in 93 % of all cases, which is all that is asked of ours, is accused with probability ALPHA.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from dpsql.privacy.sampling import ExactSampler
from dpsql.session.postprocess.latent_sums import SumNoise
from dpsql.session.postprocess.posteriors import NormalPrior, infer_mean, infer_proportion

pytestmark = pytest.mark.stat

ALPHA, RUNS, LEAST = 1e-7, 4_000, 0.93
STEP = 1 << 16
"""What a row weighs in a cell."""
EPSILONS, ROWS = (0.1, 0.5, 1.0, 10.0), (30, 300, 10_000)
Floats = npt.NDArray[np.float64]


def draws(heavy: bool, scale: float, columns: int) -> Floats:
    sampler, step = ExactSampler(), Fraction(scale).limit_denominator(1000) * STEP
    count = RUNS * columns
    noise = sampler.laplace(count, step) if heavy else sampler.gaussian(count, step)
    return noise.reshape(columns, RUNS) / STEP


def holds(low: Floats, high: Floats, truth: Floats) -> int:
    return int(np.sum((low <= truth) & (truth <= high)))


def too_seldom(hits: int, least: float = LEAST) -> bool:
    """Whether so few hits would be a wonder if `least` were kept."""
    return bool(stats.binom.cdf(hits, RUNS, least) < ALPHA)


def shares(heavy: bool, epsilon: float, rows: int) -> tuple[int, int]:
    """How often the interval holds, and the plug-in's."""
    random = np.random.default_rng(7)
    truth = random.uniform(size=RUNS)
    ones = random.binomial(rows, truth)
    noisy = np.stack([ones, rows - ones]) + draws(heavy, 1 / epsilon, 2)
    noise, prior = SumNoise(heavy, 1 / epsilon), np.ones(RUNS)
    found = infer_proportion(noisy[0], noisy[1], (noise, noise), prior, prior, 0.95)
    plugged = stats.beta.interval(0.95, *(1 + np.maximum(noisy, 0)))
    return holds(found.low, found.high, truth), holds(*plugged, truth)


def means(heavy: bool, epsilon: float, rows: int) -> tuple[int, int]:
    random = np.random.default_rng(8)
    truth, sigma = random.uniform(-0.5, 0.5, RUNS), random.uniform(0.03, 0.14, RUNS)
    mean = random.normal(truth, sigma / np.sqrt(rows))
    square = sigma**2 * random.chisquare(rows - 1, RUNS) + rows * mean**2
    scale = (2.0 if heavy else 2.0**0.5) / epsilon
    noisy = np.stack([rows - square, square, rows * mean]) + draws(heavy, scale, 3)
    found = infer_mean(noisy[0], noisy[1], noisy[2], (SumNoise(heavy, scale),) * 3, NormalPrior(), 0.95)
    n = np.maximum(noisy[0] + noisy[1], 5.0)
    middle = np.clip(noisy[2] / n, -1, 1)
    around = np.maximum(noisy[1] - n * middle**2, 1e-6)
    plugged = stats.t.interval(0.95, n - 3, middle, np.sqrt(around / (n - 3) / n))
    return holds(found.low, found.high, truth), holds(*plugged, truth)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("heavy", [True, False], ids=["laplace", "gaussian"])
def test_a_share_is_within_its_interval(heavy: bool, epsilon: float, rows: int) -> None:
    ours, plugged = shares(heavy, epsilon, rows)
    assert not too_seldom(ours)
    if epsilon == 0.1 and rows <= 300:
        assert too_seldom(plugged)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("heavy", [True, False], ids=["laplace", "gaussian"])
def test_a_mean_is_within_its_interval(heavy: bool, epsilon: float, rows: int) -> None:
    """Deviations are drawn below those that the prior thinks likely, which is the harder case."""
    ours, plugged = means(heavy, epsilon, rows)
    assert not too_seldom(ours, 0.9)
    if epsilon == 0.1:
        assert too_seldom(plugged, 0.9)
