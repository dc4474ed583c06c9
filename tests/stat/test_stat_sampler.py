"""Draws follow the exact distribution, agree with OpenDP's, and take a time that says nothing about them.

Each test accepts the true distribution with an error rate of at most 1e-7 and must reject a wrong one.
"""

import math
import time
from collections.abc import Callable
from fractions import Fraction as F

import numpy as np
import pytest
from scipy.stats import chi2, norm, spearmanr

from dpsql.privacy.loss import rho_to_epsilon
from dpsql.privacy.sampling import ExactSampler
from tests.support.optional_dependencies import package

pytestmark = pytest.mark.stat

ALPHA = 1e-7
SAMPLES = 2_000_000
Survival = Callable[[int], float]


def laplace_survival(scale: float) -> Survival:
    """P(X >= m), exactly."""
    q = math.exp(-1 / scale)
    return lambda m: math.exp(-m / scale) / (1 + q) if m >= 1 else 1 - math.exp((m - 1) / scale) / (1 + q)


def gaussian_survival(sigma: float) -> Survival:
    if sigma > 1000:  # the half-step correction is then exact to 1e-7 of each bin
        return lambda m: float(norm.sf((m - 0.5) / sigma))
    reach = int(40 * sigma) + 5
    weights = np.exp(-((np.arange(-reach, reach + 1) / sigma) ** 2) / 2)
    above = np.append(np.cumsum(weights[::-1])[::-1], 0.0) / weights.sum()
    return lambda m: float(above[min(max(m + reach, 0), 2 * reach + 1)])


def edges(values: np.ndarray, bins: int = 64) -> np.ndarray:
    """Borders of about equally filled bins, from a sample that is not tested."""
    borders = np.unique(np.quantile(values, np.linspace(0, 1, bins + 1)[1:-1]).astype(np.int64))
    return borders[borders > values.min()]


def between(borders: np.ndarray, survival: Survival) -> np.ndarray:
    """The probabilities of the intervals that the borders make."""
    above = np.array([1.0, *(survival(int(b)) for b in borders), 0.0])
    return above[:-1] - above[1:]


def fit(values: np.ndarray, borders: np.ndarray, survival: Survival) -> float:
    """The chi-square p-value of the counts between the borders, without those that leave too little between them."""
    expected = between(borders, survival) * len(values)
    while expected.min() <= 10 and len(borders) > 1:
        least = int(expected.argmin())
        borders = np.delete(borders, min(least, len(borders) - 1))
        expected = between(borders, survival) * len(values)
    observed = np.bincount(np.searchsorted(borders, values, side="right"), minlength=len(expected))
    assert expected.min() > 10
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


LAPLACE = [F(3, 10), F(1), F(11, 2), F(40), F(2**20) + F(1, 7), F(2**30)]
GAUSSIAN = [F(4, 10), F(1), F(37, 10), F(25), F(2**20) + F(1, 7), F(2**30)]


@pytest.mark.parametrize("scale", LAPLACE, ids=str)
def test_laplace_fits(scale: F) -> None:
    sampler = ExactSampler()
    borders, values = edges(sampler.laplace(20_000, scale)), sampler.laplace(SAMPLES, scale)
    assert fit(values, borders, laplace_survival(float(scale))) > ALPHA
    for wrong in (0.99, 1.01):
        assert fit(values, borders, laplace_survival(wrong * float(scale))) < ALPHA


@pytest.mark.parametrize("sigma", GAUSSIAN, ids=str)
def test_gaussian_fits(sigma: F) -> None:
    sampler = ExactSampler()
    borders, values = edges(sampler.gaussian(20_000, sigma)), sampler.gaussian(SAMPLES, sigma)
    assert fit(values, borders, gaussian_survival(float(sigma))) > ALPHA
    for wrong in (0.99, 1.01):
        assert fit(values, borders, gaussian_survival(wrong * float(sigma))) < ALPHA


@pytest.mark.parametrize("draw", ["laplace", "gaussian"])
def test_neighboring_draws_are_independent(draw: str) -> None:
    values = getattr(ExactSampler(), draw)(SAMPLES, F(1000)).astype(float)
    for lag in (1, 2, 32768):
        correlation = float(np.corrcoef(values[:-lag], values[lag:])[0, 1])
        assert abs(correlation) * math.sqrt(SAMPLES) < 6
    assert abs(np.corrcoef(values[:-1], values[:-1] + values[1:] / 50)[0, 1]) * math.sqrt(SAMPLES) > 6


def same(one: np.ndarray, other: np.ndarray, borders: np.ndarray) -> float:
    """The p-value of the hypothesis that two samples have one distribution."""
    counts = np.array(
        [np.bincount(np.searchsorted(borders, x, side="right"), minlength=len(borders) + 1) for x in (one, other)]
    )
    expected = counts.sum(axis=0) * counts.sum(axis=1, keepdims=True) / counts.sum()
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), len(borders)))


@pytest.mark.parametrize("scale", [F(1, 2), F(3), F(200)], ids=str)
@pytest.mark.parametrize("draw", ["laplace", "gaussian"])
def test_agrees_with_opendp(draw: str, scale: F) -> None:
    dp = package("opendp.prelude")
    dp.enable_features("contrib")
    n = 60_000
    metric = dp.l1_distance(T="i64") if draw == "laplace" else dp.l2_distance(T="f64")
    noise = dp.m.then_laplace if draw == "laplace" else dp.m.then_gaussian
    oracle = (dp.vector_domain(dp.atom_domain(T="i64")), metric) >> noise(scale=float(scale))
    theirs = np.array(oracle([0] * n))
    ours = getattr(ExactSampler(), draw)
    borders = edges(ours(20_000, scale), 24)
    assert same(ours(n, scale), theirs, borders) > ALPHA
    assert same(ours(n, scale * F(11, 10)), theirs, borders) < ALPHA


@pytest.mark.parametrize(("sigma", "delta"), [(4.5, 1e-6), (50.0, 1e-9), (1.0, 1e-3)])
def test_conversion_agrees_with_opendp(sigma: float, delta: float) -> None:
    dp = package("opendp.prelude")
    dp.enable_features("contrib")
    gaussian = (dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")) >> dp.m.then_gaussian(scale=sigma)
    theirs = dp.c.make_zCDP_to_approxDP(gaussian).map(1.0).epsilon(delta)
    ours = float(rho_to_epsilon(1 / (2 * F(sigma) ** 2), F(delta)))
    assert ours == pytest.approx(theirs, rel=1e-3)
    assert ours <= theirs * (1 + 1e-9)


def timing(draw: Callable[[], int], calls: int) -> float:
    """The p-value of no correlation between the size of a draw and its time, the slowest twentieth left out."""
    sizes, times = np.empty(calls), np.empty(calls)
    for i in range(calls):
        start = time.perf_counter_ns()
        value = draw()
        times[i] = time.perf_counter_ns() - start
        sizes[i] = abs(value)
    usual = times <= np.quantile(times, 0.95)
    return float(spearmanr(sizes[usual], times[usual]).pvalue)


@pytest.mark.parametrize("scale", [F(10), F(1000)], ids=str)
def test_time_says_nothing(scale: F) -> None:
    sampler = ExactSampler()
    for draw in (sampler.laplace, sampler.gaussian):
        assert timing(lambda draw=draw: int(draw(1, scale)[0]), 15_000) > ALPHA


def test_a_sampler_that_counts_up_is_caught() -> None:
    generator = np.random.default_rng(1)

    def geometric() -> int:
        flips = 0
        while generator.random() > 0.1:
            flips += 1
        return flips

    assert timing(geometric, 2_000) < ALPHA
