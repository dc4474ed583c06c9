"""Posteriors of a share and of a mean, given noisy sums and how they were made noisy: pure functions of a release.

The exact sums are not known: every one that they may have been makes a conjugate posterior, and the answer is the
mixture of these by how likely each is, given the noise and the prior (Bernstein and Sheldon 2018, by sums over nodes
instead of a Gibbs sampler, so that the same release has the same answer). How many rows there are is not known either:
all numbers are as likely before the noisy ones are seen. The prior is what a group says that is all noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsql.compiler.plan.estimators import BetaPosterior, NormalPosterior, Terms
from dpsql.privacy.release import Release
from dpsql.session.postprocess.latent_sums import (
    Floats,
    GridDensity,
    Mask,
    QuadratureNodes,
    SumNoise,
    digamma,
    gauss_legendre_nodes,
    log_gamma,
    normalize_weights,
    three_point_nodes,
    trigamma,
)
from dpsql.session.postprocess.noisy_cells import NoisyCells, noisy_cells_of

GRID_POINTS = 128
"""Of the grid on which a mixture's density is added up."""
_GRID_DEVIATIONS = 9.0
"""How many standard deviations to each side it goes."""
_PROPORTION_NODES = 6
_REST_NODES, _MEAN_NODES = 3, 4
"""Nodes on each side of a noisy sum."""
_MAX_BATCH_CELLS = 2_000_000
"""Components times points that are worked on together, 16 MB of them."""
_EXACT_FREEDOM = 1e9
"""Degrees of freedom of a variance that is known."""


@dataclass(frozen=True)
class ProportionPosterior:
    """The probability of a one, in each group: the Beta distribution of its mean and variance, and its interval."""

    alpha: Floats
    beta: Floats
    mean: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class MeanPosterior:
    """The mean of a normal distribution; `sigma` is the distribution's own deviation, `n` the rows that the posterior
    is worth: sigma^2 / sd^2."""

    mean: Floats
    sd: Floats
    sigma: Floats
    n: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class NormalPrior:
    """As if `n` rows had been seen with this `mean`, and with `sd`, if it is given; or `sigma` is known.

    With n = 0 every mean within the bounds is as likely, and without `sd` and `sigma` every variance: a prior that
    names a deviation would outweigh what noise leaves of the sum of squares.
    """

    n: float = 0.0
    mean: float = 0.0
    sd: float | None = None
    sigma: float | None = None


# --- shares ----------------------------------------------------------------------------------------------------------


def infer_proportion(
    ones: Floats, zeros: Floats, noises: tuple[SumNoise, SumNoise], alpha: Floats, beta: Floats, confidence: float
) -> ProportionPosterior:
    """The posterior of a share with prior Beta(alpha, beta), from noisy counts of `ones` and `zeros`."""
    spread = np.sqrt(np.maximum(ones * zeros / np.maximum(ones + zeros, 1.0), 1.0))
    wide = max(noise.stderr for noise in noises)
    light = (wide < 0.25 * spread) & (np.minimum(ones, zeros) > 6.0 * wide)
    columns = (ones, zeros, alpha, beta)

    def evaluate_with_three_points(count_ones: Floats, zero: Floats, a: Floats, b: Floats) -> tuple[Floats, ...]:
        return _mix_proportions(
            three_point_nodes(count_ones, noises[0]), three_point_nodes(zero, noises[1]), a, b, confidence
        )

    def evaluate_with_quadrature(count_ones: Floats, zero: Floats, a: Floats, b: Floats) -> tuple[Floats, ...]:
        # A sum over whole numbers from 0 is an integral from -1/2.
        low, high = np.full_like(count_ones, -0.5), np.full_like(count_ones, np.inf)
        first, second = (gauss_legendre_nodes(n, noise, low, high, _PROPORTION_NODES)
                         for n, noise in zip((count_ones, zero), noises, strict=True))  # fmt: skip
        return _mix_proportions(first, second, a, b, confidence)

    return ProportionPosterior(
        *_evaluate_in_batches(
            columns, light, evaluate_with_three_points, evaluate_with_quadrature, 9, (2 * _PROPORTION_NODES) ** 2, 5
        )
    )


def _mix_proportions(
    ones: QuadratureNodes, zeros: QuadratureNodes, alpha: Floats, beta: Floats, confidence: float
) -> tuple[Floats, ...]:
    k, m = np.maximum(ones.values, 0.0)[:, :, None], np.maximum(zeros.values, 0.0)[:, None, :]
    a, b = alpha[:, None, None] + k, beta[:, None, None] + m
    n, total = k + m, a + b
    # The noise's density, times the beta-binomial probability of k ones in n rows.
    chance = log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(m + 1) + log_gamma(a) + log_gamma(b) - log_gamma(total)
    weights = normalize_weights(ones.log_weights[:, :, None] + zeros.log_weights[:, None, :] + chance)
    mean = a / total
    variance = mean * (1 - mean) / (total + 1)
    # A node stands for a stretch of counts: its component is as wide as its share moves within it.
    moved = ((1 - mean) * ones.widths[:, :, None]) ** 2 + (mean * zeros.widths[:, None, :]) ** 2
    variance = np.minimum(variance + moved / (12 * total**2), 0.5 * mean * (1 - mean))
    size = mean * (1 - mean) / variance - 1
    middle = _weighted_sum(weights, mean)
    around = _weighted_sum(weights, variance + (mean - middle[:, None, None]) ** 2)
    beta_parameters = _fit_beta(middle, around)
    grid = _logit_grid(*beta_parameters)
    groups = len(grid)
    mixed = _beta_mixture((mean * size).reshape(groups, -1), ((1 - mean) * size).reshape(groups, -1),
                          weights.reshape(groups, -1), grid)  # fmt: skip
    ends = (1 - confidence) / 2
    low, high = (_logit_to_proportion(mixed.quantile(q)) for q in (ends, 1 - ends))
    return (*beta_parameters, middle, low, high)


def _fit_beta(mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    size = mean * (1 - mean) / variance - 1
    return mean * size, (1 - mean) * size


def _logit_grid(a: Floats, b: Floats) -> Floats:
    a, b = np.maximum(a, 1e-6), np.maximum(b, 1e-6)
    center, spread = digamma(a) - digamma(b), np.sqrt(trigamma(a) + trigamma(b))
    return center[:, None] + spread[:, None] * np.linspace(-_GRID_DEVIATIONS, _GRID_DEVIATIONS, GRID_POINTS)


def _beta_mixture(a: Floats, b: Floats, weights: Floats, grid: Floats) -> GridDensity:
    """The density of the logit: there it falls to 0 on both sides, whatever the parameters."""
    below, above = -np.logaddexp(0.0, -grid), -np.logaddexp(0.0, grid)
    with np.errstate(divide="ignore"):
        constant = np.log(weights) + log_gamma(a + b) - log_gamma(a) - log_gamma(b)
    # Large numbers that cancel: about the middle of each group's grid they are small.
    center = grid.shape[1] // 2
    constant = constant + a * below[:, center, None] + b * above[:, center, None]
    away = np.stack([below - below[:, center, None], above - above[:, center, None]], axis=1)
    exponents = np.stack([a, b], axis=2) @ away + constant[:, :, None]
    return GridDensity(grid, np.sum(np.exp(np.minimum(exponents, 700.0)), axis=1))


def _logit_to_proportion(logit: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, -logit))


# --- means -----------------------------------------------------------------------------------------------------------


def infer_mean(
    rest: Floats, square: Floats, linear: Floats, noises: tuple[SumNoise, SumNoise, SumNoise], prior: NormalPrior,
    confidence: float,
) -> MeanPosterior:  # fmt: skip
    """The posterior of the mean of a value within [-1, 1], from noisy sums of 1 - v^2, v^2 and v."""
    wide = max(noise.stderr for noise in noises)
    n = np.maximum(rest + square, 1e-9)
    variance = square / n - (linear / n) ** 2
    deviation = np.sqrt(np.maximum(variance, 0.0))
    light = (wide < 0.02 * n) & (wide < 0.25 * deviation * np.sqrt(n)) & (wide < 0.1 * variance * n) & (rest > 4 * wide)
    light &= square > 4 * wide

    def evaluate_with_three_points(r: Floats, q: Floats, s: Floats) -> tuple[Floats, ...]:
        first, second, third = (three_point_nodes(noisy, noise) for noisy, noise in zip((r, q, s), noises, strict=True))
        logs = (first.log_weights[:, :, None] + second.log_weights[:, None, :])[..., None]
        logs = logs + third.log_weights[:, None, None, :]
        return _mix_means(first.values[:, :, None, None], second.values[:, None, :, None],
                             third.values[:, None, None, :], logs, np.zeros_like(logs), prior, confidence)  # fmt: skip

    def evaluate_with_quadrature(r: Floats, q: Floats, s: Floats) -> tuple[Floats, ...]:
        lower, upper = np.full_like(r, 1e-9), np.full_like(r, np.inf)
        first = gauss_legendre_nodes(r, noises[0], lower, upper, _REST_NODES)
        second = gauss_legendre_nodes(q, noises[1], lower, upper, _MEAN_NODES)
        rs, qs = np.maximum(first.values, 1e-9)[:, :, None], np.maximum(second.values, 1e-9)[:, None, :]
        bound = np.sqrt((rs + qs) * qs)  # |sum of v| is at most the root of rows times squares
        third = gauss_legendre_nodes(
            np.broadcast_to(s[:, None, None], bound.shape), noises[2], -bound, bound, _MEAN_NODES
        )
        total = (rs + qs)[..., None]
        mean = third.values / total
        moved = third.widths**2 + mean**2 * (first.widths[:, :, None] ** 2 + second.widths[:, None, :] ** 2)[..., None]
        logs = (first.log_weights[:, :, None] + second.log_weights[:, None, :])[..., None] + third.log_weights
        return _mix_means(rs[..., None], qs[..., None], third.values, logs, moved / (12 * total**2),
                             prior, confidence)  # fmt: skip

    return MeanPosterior(
        *_evaluate_in_batches(
            (rest, square, linear),
            light,
            evaluate_with_three_points,
            evaluate_with_quadrature,
            27,
            8 * _REST_NODES * _MEAN_NODES**2,
            6,
        )
    )


def _mix_means(
    rest: Floats, squared: Floats, linear: Floats, log_weights: Floats, moved: Floats, prior: NormalPrior,
    confidence: float,
) -> tuple[Floats, ...]:  # fmt: skip
    n = np.maximum(rest + squared, 1e-9)
    mean = np.clip(linear / n, -1.0, 1.0)
    squares = np.maximum(squared - n * mean**2, 1e-12 * n)  # about the mean
    rows = prior.n + n
    center = (prior.n * prior.mean + n * mean) / rows
    between = prior.n * n / rows * (mean - prior.mean) ** 2
    if prior.sigma is None:
        # The prior of the variance is (sigma^2)^-(weight / 2 + 1), times exp(-seen / (2 sigma^2)).
        weight, seen = (-2.0, 0.0) if prior.sd is None else (prior.n, prior.n * prior.sd**2)
        degrees = np.maximum(n - 1, 3.0)  # fewer rows have no deviation to tell
        freedom, total = degrees + weight + (prior.n > 0), seen + squares + between
        chance = (degrees / 2 - 1) * np.log(squares) - degrees / 2 * np.log(2.0) - log_gamma(degrees / 2)
        chance = chance + log_gamma(freedom / 2) - freedom / 2 * np.log(total / 2)
        variance = total / freedom
        own_variance = np.minimum(np.where(freedom > 2, total / np.maximum(freedom - 2, 1e-9), 1.0), 1.0)
    else:
        freedom = np.full_like(rows * mean, _EXACT_FREEDOM)
        chance = -between / (2 * prior.sigma**2)
        variance = own_variance = np.full_like(rows * mean, prior.sigma**2)
    chance = chance - np.log(n) + (0.5 * np.log(n / rows) if prior.n else 0.0)
    weights = normalize_weights(
        np.broadcast_to(log_weights + chance, np.broadcast_shapes(log_weights.shape, mean.shape))
    )
    full = weights.shape
    centers, square, freedom = (
        np.broadcast_to(x, full).reshape(full[0], -1) for x in (center, variance / rows + moved, freedom)
    )
    flat = weights.reshape(full[0], -1)
    grid = _mean_grid(centers, square, freedom, flat)
    mixed = _t_mixture(centers, square, freedom, flat, grid)
    masses = mixed.point_masses()
    middle = np.sum(masses * grid, axis=1)
    spread = np.sqrt(np.sum(masses * (grid - middle[:, None]) ** 2, axis=1))
    deviation = np.sqrt(_weighted_sum(weights, np.broadcast_to(own_variance, full)))
    ends = (1 - confidence) / 2
    return middle, spread, deviation, deviation**2 / spread**2, mixed.quantile(ends), mixed.quantile(1 - ends)


def _mean_grid(center: Floats, square: Floats, freedom: Floats, weights: Floats) -> Floats:
    """Points around the mixture's mean, within what a mean can be."""
    heavy = np.where(freedom > 4, freedom / np.maximum(freedom - 2, 1.0), 3.0)
    center = np.clip(center, -1.0, 1.0)
    middle = np.sum(weights * center, axis=1)
    spread = np.sqrt(np.sum(weights * (square * heavy + (center - middle[:, None]) ** 2), axis=1))
    spread = np.clip(spread, 1e-9, 1.0)
    low, high = (
        np.maximum(middle - _GRID_DEVIATIONS * spread, -1.0),
        np.minimum(middle + _GRID_DEVIATIONS * spread, 1.0),
    )
    points: Floats = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, GRID_POINTS)
    return points


def _t_mixture(center: Floats, square: Floats, freedom: Floats, weights: Floats, grid: Floats) -> GridDensity:
    half = (freedom + 1) / 2
    with np.errstate(divide="ignore"):
        constant = np.log(weights) + log_gamma(half) - log_gamma(freedom / 2) - 0.5 * np.log(freedom * square)
    away = (grid[:, None, :] - center[:, :, None]) ** 2 / (freedom * square)[:, :, None]
    exponents = constant[:, :, None] - half[:, :, None] * np.log1p(away)
    exponents -= np.max(exponents, axis=(1, 2), keepdims=True)
    return GridDensity(grid, np.sum(np.exp(exponents), axis=1))


# --- groups at a time ------------------------------------------------------------------------------------------------

MixtureFunction = Callable[..., tuple[Floats, ...]]


def _evaluate_in_batches(
    columns: Sequence[Floats],
    light: Mask,
    evaluate_with_three_points: MixtureFunction,
    evaluate_with_quadrature: MixtureFunction,
    three_points_size: int,
    quadrature_size: int,
    results: int,
) -> list[Floats]:
    """Three points for the groups with little noise, quadrature for the others; NaN where a result is no number."""
    answers = [np.full(len(columns[0]), np.nan) for _ in range(results)]
    finite = np.all([np.isfinite(column) for column in columns], axis=0)
    with np.errstate(all="ignore"):
        for chosen, work, size in (
            (light & finite, evaluate_with_three_points, three_points_size),
            (~light & finite, evaluate_with_quadrature, quadrature_size),
        ):
            indexes, length = np.flatnonzero(chosen), max(1, _MAX_BATCH_CELLS // (size * GRID_POINTS))
            for start in range(0, len(indexes), length):
                batch = indexes[start : start + length]
                for answer, part in zip(answers, work(*(column[batch] for column in columns)), strict=True):
                    answer[batch] = part
    sound = np.all([np.isfinite(answer) for answer in answers], axis=0)
    return [np.where(sound, answer, np.nan) for answer in answers]


def _weighted_sum(weights: Floats, values: Floats) -> Floats:
    total: Floats = np.sum(weights * values, axis=tuple(range(1, weights.ndim)))
    return total


# Posteriors of a release's groups, all columns at once.


def infer_posterior(
    recipe: BetaPosterior | NormalPosterior, release: Release, columns: tuple[str, ...]
) -> ProportionPosterior | MeanPosterior:
    """All columns of a posterior, in every group; NaN where there is no number."""
    cells = noisy_cells_of(release, columns)
    if isinstance(recipe, NormalPosterior):
        return _infer_scaled_mean(recipe, cells)
    ones, zeros = cells.to_dual(recipe.ones).value, cells.to_dual(recipe.zeros).value
    noises = (cells.noise_of(recipe.ones), cells.noise_of(recipe.zeros))
    prior = (np.full_like(ones, float(recipe.alpha)), np.full_like(ones, float(recipe.beta)))
    return infer_proportion(ones, zeros, noises, *prior, float(recipe.confidence))


def posterior_column(
    recipe: BetaPosterior | NormalPosterior, estimates: ProportionPosterior | MeanPosterior
) -> list[float | None]:
    column: Floats = getattr(estimates, recipe.part)
    return [number if math.isfinite(number) else None for number in column.tolist()]


def _infer_scaled_mean(recipe: NormalPosterior, cells: NoisyCells) -> MeanPosterior:
    rest, square, linear = (cells.to_dual(terms).value for terms in (recipe.rest, recipe.square, recipe.linear))
    center, half = float(recipe.center), float(recipe.half)
    if not half:  # every value is the same, by the statement
        same, none = np.full_like(rest, center), np.zeros_like(rest)
        return MeanPosterior(same, none, none, np.maximum(rest, 0.0) + float(recipe.prior_n), same, same)
    noises = (cells.noise_of(recipe.rest), cells.noise_of(recipe.square), cells.noise_of(recipe.linear))
    sd, sigma = (None if value is None else float(value) / half for value in (recipe.prior_sd, recipe.sigma))
    prior = NormalPrior(float(recipe.prior_n), (float(recipe.prior_mean) - center) / half, sd, sigma)
    scaled = infer_mean(rest, square, linear, noises, prior, float(recipe.confidence))
    middle, low, high = (center + half * column for column in (scaled.mean, scaled.low, scaled.high))
    return MeanPosterior(middle, half * scaled.sd, half * scaled.sigma, scaled.n, low, high)


def infer_proportions(
    counts: Terms, release: Release, columns: tuple[str, ...], among: npt.NDArray[np.int64], concentration: float,
    confidence: float,
) -> ProportionPosterior:  # fmt: skip
    """Of the rows of a release of counts, each beside the others of its set: `among` tells which set a row is of.

    A share is told by its own count and that of all others, whose noise is the sum of theirs.
    """
    cells = noisy_cells_of(release, columns)
    own_counts, noise = cells.to_dual(counts).value, cells.noise_of(counts)
    sizes = np.bincount(among) if len(among) else np.zeros(0, np.int64)
    totals = np.bincount(among, weights=own_counts) if len(among) else np.zeros(0)
    posterior_of_rows = ProportionPosterior(*(np.full(len(own_counts), np.nan) for _ in range(5)))
    for size in np.unique(sizes[among]):
        rows = np.flatnonzero(sizes[among] == size)
        rest = noise if size == 2 else SumNoise(False, noise.stderr * math.sqrt(size - 1.0))
        alpha = np.full(len(rows), concentration)
        if size == 1:  # the only value has all rows
            ones = np.ones(len(rows))
            part_posterior = ProportionPosterior(
                np.maximum(own_counts[rows], 0.0) + concentration, 0 * ones, ones, ones, ones
            )
        else:
            part_posterior = infer_proportion(
                own_counts[rows],
                (totals[among] - own_counts)[rows],
                (noise, rest),
                alpha,
                alpha * (size - 1),
                confidence,
            )
        for part in ("alpha", "beta", "mean", "low", "high"):
            getattr(posterior_of_rows, part)[rows] = getattr(part_posterior, part)
    return posterior_of_rows
