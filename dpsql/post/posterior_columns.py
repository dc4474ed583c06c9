"""Posteriors of a release's groups, all columns at once."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpsql.plan.recipes import BetaPosterior, NormalPosterior, Terms
from dpsql.post.cells import NoisyCells, noisy_cells_of
from dpsql.post.duals import Floats
from dpsql.post.latent import SumNoise
from dpsql.post.posteriors import MeanPosterior, NormalPrior, ProportionPosterior, infer_mean, infer_proportion
from dpsql.privacy.release import Release


def infer_posterior(recipe: BetaPosterior | NormalPosterior, release: Release, columns: tuple[str, ...]) -> ProportionPosterior | MeanPosterior:
    """All columns of a posterior, in every group; NaN where there is no number."""
    cells = noisy_cells_of(release, columns)
    if isinstance(recipe, NormalPosterior):
        return _infer_scaled_mean(recipe, cells)
    ones, zeros = cells.to_dual(recipe.ones).value, cells.to_dual(recipe.zeros).value
    noises = (cells.noise_of(recipe.ones), cells.noise_of(recipe.zeros))
    prior = (np.full_like(ones, float(recipe.alpha)), np.full_like(ones, float(recipe.beta)))
    return infer_proportion(ones, zeros, noises, *prior, float(recipe.confidence))


def posterior_column(recipe: BetaPosterior | NormalPosterior, estimates: ProportionPosterior | MeanPosterior) -> list[float | None]:
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
            part_posterior = ProportionPosterior(np.maximum(own_counts[rows], 0.0) + concentration, 0 * ones, ones, ones, ones)
        else:
            part_posterior = infer_proportion(own_counts[rows], (totals[among] - own_counts)[rows], (noise, rest), alpha, alpha * (size - 1), confidence)
        for part in ("alpha", "beta", "mean", "low", "high"):
            getattr(posterior_of_rows, part)[rows] = getattr(part_posterior, part)
    return posterior_of_rows
