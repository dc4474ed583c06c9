"""Posteriors of a release's groups, all columns at once."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpsql.plan.recipes import BetaPosterior, NormalPosterior, Terms
from dpsql.post.cells import NoisyCells, noisy_cells
from dpsql.post.duals import Floats
from dpsql.post.latent import Noise
from dpsql.post.posteriors import Level, NormalPrior, Share, level, share
from dpsql.privacy.release import Release


def posterior(recipe: BetaPosterior | NormalPosterior, release: Release, columns: tuple[str, ...]) -> Share | Level:
    """All columns of a posterior, in every group; NaN where there is no number."""
    cells = noisy_cells(release, columns)
    if isinstance(recipe, NormalPosterior):
        return _level(recipe, cells)
    ones, zeros = cells.dual(recipe.ones).value, cells.dual(recipe.zeros).value
    noises = (cells.noise_of(recipe.ones), cells.noise_of(recipe.zeros))
    prior = (np.full_like(ones, float(recipe.alpha)), np.full_like(ones, float(recipe.beta)))
    return share(ones, zeros, noises, *prior, float(recipe.confidence))


def told(recipe: BetaPosterior | NormalPosterior, found: Share | Level) -> list[float | None]:
    column: Floats = getattr(found, recipe.part)
    return [number if math.isfinite(number) else None for number in column.tolist()]


def _level(recipe: NormalPosterior, cells: NoisyCells) -> Level:
    rest, square, linear = (cells.dual(terms).value for terms in (recipe.rest, recipe.square, recipe.linear))
    center, half = float(recipe.center), float(recipe.half)
    if not half:  # every value is the same, by the statement
        same, none = np.full_like(rest, center), np.zeros_like(rest)
        return Level(same, none, none, np.maximum(rest, 0.0) + float(recipe.prior_n), same, same)
    noises = (cells.noise_of(recipe.rest), cells.noise_of(recipe.square), cells.noise_of(recipe.linear))
    sd, sigma = (None if one is None else float(one) / half for one in (recipe.prior_sd, recipe.sigma))
    prior = NormalPrior(float(recipe.prior_n), (float(recipe.prior_mean) - center) / half, sd, sigma)
    found = level(rest, square, linear, noises, prior, float(recipe.confidence))
    middle, low, high = (center + half * column for column in (found.mean, found.low, found.high))
    return Level(middle, half * found.sd, half * found.sigma, found.n, low, high)


def shares(
    counts: Terms, release: Release, columns: tuple[str, ...], among: npt.NDArray[np.int64], concentration: float,
    confidence: float,
) -> Share:  # fmt: skip
    """Of the rows of a release of counts, each beside the others of its set: `among` tells which set a row is of.

    A share is told by its own count and that of all others, whose noise is the sum of theirs.
    """
    cells = noisy_cells(release, columns)
    own, noise = cells.dual(counts).value, cells.noise_of(counts)
    sizes = np.bincount(among) if len(among) else np.zeros(0, np.int64)
    totals = np.bincount(among, weights=own) if len(among) else np.zeros(0)
    found = Share(*(np.full(len(own), np.nan) for _ in range(5)))
    for size in np.unique(sizes[among]):
        rows = np.flatnonzero(sizes[among] == size)
        rest = noise if size == 2 else Noise(False, noise.stderr * math.sqrt(size - 1.0))
        alpha = np.full(len(rows), concentration)
        if size == 1:  # the only value has all rows
            one = np.ones(len(rows))
            some = Share(np.maximum(own[rows], 0.0) + concentration, 0 * one, one, one, one)
        else:
            some = share(own[rows], (totals[among] - own)[rows], (noise, rest), alpha, alpha * (size - 1), confidence)
        for part in ("alpha", "beta", "mean", "low", "high"):
            getattr(found, part)[rows] = getattr(some, part)
    return found
