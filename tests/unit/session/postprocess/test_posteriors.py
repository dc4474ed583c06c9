"""Posteriors of noisy sums: conjugate ones without noise, the exact mixture with it, and never an exception."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from dpsql.compiler.plan.estimators import BetaPosterior, NormalPosterior
from dpsql.privacy.noise import Gaussian, Laplace
from dpsql.privacy.release import NoiseBundle, Release, ReleaseSpec
from dpsql.session.postprocess.latent_sums import (
    GridDensity,
    SumNoise,
    digamma,
    gauss_legendre_nodes,
    log_gamma,
    trigamma,
)
from dpsql.session.postprocess.posteriors import (
    NormalPrior,
    ProportionPosterior,
    infer_mean,
    infer_posterior,
    infer_proportion,
    infer_proportions,
    posterior_column,
)

NONE = SumNoise(False, 1e-9)
F = Fraction


def numbers(*values: float) -> Any:
    return np.array(values, np.float64)


def told_share(
    ones: float, zeros: float, noise: SumNoise, alpha: float = 1, beta: float = 1, confidence: float = 0.95
) -> ProportionPosterior:
    return infer_proportion(numbers(ones), numbers(zeros), (noise, noise), numbers(alpha), numbers(beta), confidence)


# --- functions -------------------------------------------------------------------------------------------------------


def test_gamma_functions_are_scipys():
    x = np.concatenate([np.logspace(-3, 9, 200), np.linspace(0.1, 20, 200)])
    assert log_gamma(x) == pytest.approx(special.gammaln(x), rel=1e-11, abs=1e-11)
    fine = np.concatenate([np.geomspace(1e-6, 1e12, 20_000), np.linspace(0.5, 9, 20_000)])
    exact = special.gammaln(fine)
    off = np.abs(log_gamma(fine) - exact) / np.maximum(1.0, np.abs(exact))
    assert 1e-12 < off.max() < 1e-11  # what is said of it, and not 1e-13
    assert digamma(x) == pytest.approx(special.digamma(x), rel=1e-6, abs=1e-6)
    assert trigamma(x) == pytest.approx(special.polygamma(1, x), rel=1e-5)


def test_quantiles_of_a_gridded_density():
    points = np.linspace(-9, 9, 128)[None, :]
    grid = GridDensity(points, stats.norm.pdf(points))
    for q in (0.001, 0.025, 0.5, 0.9995):
        assert grid.quantile(q)[0] == pytest.approx(stats.norm.ppf(q), abs=1e-3)


@pytest.mark.parametrize("noise", [SumNoise(True, 3.0), SumNoise(False, 3.0)], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("noisy", [20.0, 1.0, -4.0])
def test_nodes_have_the_moments_of_the_remaining_noise(noise: SumNoise, noisy: float) -> None:
    nodes = gauss_legendre_nodes(numbers(noisy), noise, numbers(0.0), numbers(np.inf), 6)
    weights = np.exp(nodes.log_weights[0])
    x = np.linspace(0, 120, 600_001)
    density = np.exp(noise.log_density(x - noisy))
    for power in (1, 2):
        found = np.sum(weights * nodes.values[0] ** power) / np.sum(weights)
        assert found == pytest.approx(np.sum(density * x**power) / np.sum(density), rel=0.02)


# --- shares ----------------------------------------------------------------------------------------------------------


def test_without_noise_it_is_the_conjugate_posterior():
    """Beta(1, 1), 30 of 100: mean .303922."""
    found = told_share(30, 70, NONE)
    assert found.mean[0] == pytest.approx(0.303922, abs=1e-6)
    assert (found.alpha[0], found.beta[0]) == pytest.approx((31, 71))
    assert (found.low[0], found.high[0]) == pytest.approx(stats.beta.interval(0.95, 31, 71), abs=1e-5)


def exact_mixture(ones: float, zeros: float, noise: SumNoise, confidence: float) -> tuple[float, float, float]:
    """All whole counts that there may be, each with its Beta(1, 1) posterior."""
    k, m = np.arange(200)[:, None], np.arange(200)[None, :]
    weights = np.exp(noise.log_density(k - ones)) * np.exp(noise.log_density(m - zeros)) / (k + m + 1)
    weights /= weights.sum()
    x = np.linspace(0, 1, 201)
    cdf = np.zeros_like(x)
    for one, zero in zip(*np.nonzero(weights > 2e-6), strict=True):
        cdf += weights[one, zero] * special.betainc(one + 1, zero + 1, x)
    ends = (1 - confidence) / 2
    low, high = (float(np.interp(q, cdf / cdf[-1], x)) for q in (ends, 1 - ends))
    return float(np.sum(weights * (k + 1) / (k + m + 2))), low, high


CASES = [(0, 50, 1, True), (10, 20, 1, True), (10, 20, 10, True), (-15, -20, 10, True), (40, 30, 15, False),
         (-30, 40, 10, False), (3, 90, 5, True), (60, 90, 8, False)]  # fmt: skip


@pytest.mark.parametrize(("ones", "zeros", "scale", "heavy"), CASES)
def test_with_noise_it_is_the_mixture(ones: float, zeros: float, scale: float, heavy: bool) -> None:
    """The errors that docs/mechanisms.md states: 0.01 of a mean, 0.02 of an end."""
    noise, confidence = SumNoise(heavy, scale), 0.95 if heavy else 0.8
    found = told_share(ones, zeros, noise, confidence=confidence)
    mean, low, high = exact_mixture(ones, zeros, noise, confidence)
    assert found.mean[0] == pytest.approx(mean, abs=0.01)
    assert (found.low[0], found.high[0]) == pytest.approx((low, high), abs=0.02)


def test_noise_widens_and_nothing_but_noise_is_near_the_prior():
    widths = [
        float((s.high - s.low)[0]) for s in (told_share(30, 70, SumNoise(True, b)) for b in (1e-3, 1, 5, 20, 100))
    ]
    assert widths == sorted(widths)
    nothing = told_share(-300, -400, SumNoise(True, 20), alpha=3, beta=5)
    assert nothing.mean[0] == pytest.approx(3 / 8, abs=0.05)


def test_few_and_many_nodes_agree_where_one_takes_over_from_the_other():
    b = np.linspace(0.5, 4.0, 60)
    found = [told_share(400, 600, SumNoise(True, float(scale))) for scale in b]
    lows = np.array([s.low[0] for s in found])
    assert np.max(np.abs(np.diff(lows))) < 0.002


# --- means -----------------------------------------------------------------------------------------------------------


def sums(values: Any) -> tuple[Any, Any, Any]:
    square = float(np.sum(values**2))
    return numbers(len(values) - square), numbers(square), numbers(float(np.sum(values)))


def test_a_mean_without_noise_is_students():
    values = np.random.default_rng(1).normal(0.2, 0.15, 50)
    n, around = len(values), float(np.sum((values - values.mean()) ** 2))
    found = infer_mean(*sums(values), (NONE,) * 3, NormalPrior(), 0.95)
    ends = stats.t.interval(0.95, n - 3, values.mean(), math.sqrt(around / (n - 3) / n))
    assert (found.low[0], found.high[0]) == pytest.approx(ends, abs=1e-4)
    assert found.mean[0] == pytest.approx(values.mean(), abs=1e-6)
    assert found.n[0] == pytest.approx(n, rel=1e-3)


def test_a_prior_is_so_many_rows_seen_before():
    values = np.random.default_rng(2).normal(0.1, 0.2, 80)
    n, k, before, sd = len(values), 20.0, -0.3, 0.25
    found = infer_mean(*sums(values), (NONE,) * 3, NormalPrior(k, before, sd), 0.9)
    total = k * sd**2 + np.sum((values - values.mean()) ** 2) + k * n / (k + n) * (values.mean() - before) ** 2
    center = (k * before + n * values.mean()) / (k + n)
    ends = stats.t.interval(0.9, n + k, center, math.sqrt(total / (n + k) / (n + k)))
    assert (found.low[0], found.high[0]) == pytest.approx(ends, abs=2e-4)
    known = infer_mean(*sums(values), (NONE,) * 3, NormalPrior(k, before, None, 0.2), 0.9)
    ends = stats.norm.interval(0.9, center, 0.2 / math.sqrt(n + k))
    assert (known.low[0], known.high[0]) == pytest.approx(ends, abs=2e-4)


def test_more_noise_is_a_wider_interval_within_the_bounds():
    values = np.random.default_rng(3).normal(0.3, 0.1, 200)
    widths = []
    for scale in (1e-4, 0.5, 3.0, 20.0, 500.0):
        found = infer_mean(*sums(values), (SumNoise(True, scale),) * 3, NormalPrior(), 0.95)
        widths.append(float(found.high[0] - found.low[0]))
        assert -1 <= found.low[0] <= found.mean[0] <= found.high[0] <= 1
    assert widths == sorted(widths)


# --- releases --------------------------------------------------------------------------------------------------------


def release(mechanism: Laplace | Gaussian, *columns: list[int]) -> Release:
    spec = ReleaseSpec((F(1, 65536),) * len(columns), (NoiseBundle(tuple(range(len(columns))), mechanism),))
    cells = tuple(np.array(column, np.int64) * 65536 for column in columns)
    return Release(tuple((number,) for number in range(len(columns[0]))), cells, spec)


def test_the_noise_is_that_of_the_release():
    one = release(Laplace(F(65536 * 5)), [30, -2], [70, 40])
    recipe = BetaPosterior((("a", F(1)),), (("b", F(1)),), F(1), F(1), F(95, 100), "low")
    found = infer_posterior(recipe, one, ("a", "b"))
    assert isinstance(found, ProportionPosterior)
    assert found.low[0] == pytest.approx(told_share(30, 70, SumNoise(True, 5.0)).low[0])
    wide = infer_posterior(recipe, release(Gaussian(F(65536 * 5)), [30, -2], [70, 40]), ("a", "b"))
    assert isinstance(wide, ProportionPosterior) and wide.low[0] == pytest.approx(
        told_share(30, 70, SumNoise(False, 5.0)).low[0]
    )
    assert posterior_column(recipe, found) == pytest.approx(found.low.tolist())


def test_shares_of_one_value_of_two_and_of_many():
    counts = release(Laplace(F(1)), [40, 30, 30, 50, 50, 7])
    found = infer_proportions((("n", F(1)),), counts, ("n",), np.array([0, 0, 0, 1, 1, 2]), 1.0, 0.95)
    assert found.mean.tolist() == pytest.approx([41 / 103, 31 / 103, 31 / 103, 0.5, 0.5, 1.0], abs=1e-3)
    assert found.alpha.tolist() == pytest.approx([41, 31, 31, 51, 51, 8], rel=1e-2)
    nobody = infer_proportions((("n", F(1)),), release(Laplace(F(1)), []), ("n",), np.zeros(0, np.int64), 1.0, 0.95)
    assert len(nobody.mean) == 0


EXTREME = [0.0, 1.0, -1.0, 2.0**62, -(2.0**62), 1e-300]


@pytest.mark.parametrize("scale", [1e-12, 1.0, 2.0**40])
@pytest.mark.parametrize("prior", [(1e-3, 1e9), (1e9, 1e-3), (1e9, 1e9), (1.0, 1.0)])
def test_whatever_comes_is_a_number_or_none(scale: float, prior: tuple[float, float]) -> None:
    ones, zeros = (column.ravel() for column in np.meshgrid(EXTREME, EXTREME))
    for heavy in (True, False):
        noise = SumNoise(heavy, scale)
        found = infer_proportion(ones, zeros, (noise, noise), *(np.full_like(ones, p) for p in prior), 0.999)
        known = np.isfinite(found.mean)
        assert np.all((found.low[known] >= 0) & (found.low[known] <= found.high[known]) & (found.high[known] <= 1))
        some = infer_mean(ones, zeros, ones - zeros, (noise,) * 3, NormalPrior(prior[0], -1e15, prior[1]), 0.999)
        assert np.all(~np.isfinite(some.mean) | (np.abs(some.mean) <= 1 + 1e-9))


def test_a_number_that_is_none_is_null():
    recipe = NormalPosterior((("r", F(1)),), (("q", F(1)),), (("l", F(1)),), F(0), F(1), F(10**15), F(10**9),
                             F(1, 10**15), None, F(999, 1000), "mean")  # fmt: skip
    one = release(Gaussian(F(65536)), [0, 10], [0, 10], [0, 5])
    found = infer_posterior(recipe, one, ("r", "q", "l"))
    assert all(number is None or math.isfinite(number) for number in posterior_column(recipe, found))


def test_the_same_release_has_the_same_answer():
    one, other = (told_share(12, 30, SumNoise(True, 4.0)) for _ in range(2))
    assert (one.low[0], one.high[0]) == (other.low[0], other.high[0])
