"""From a release's noisy cells to answers and their errors: post-processing, so nothing here costs anything.

Sums are worked out in exact rationals, all else in doubles. Errors come from noise scales and released values only
(SOUNDNESS 11), to first order; they do not include what clipping took away.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from dpsql.plan.measures import PairFunction
from dpsql.plan.recipes import (
    BetaPosterior,
    BlockMean,
    Debiased,
    DebiasedMean,
    Evidence,
    Linear,
    Mean,
    NormalPosterior,
    Paired,
    Recipe,
    Terms,
    Variance,
)
from dpsql.post.cells import NoisyCells, noisy_cells
from dpsql.post.duals import Dual, Floats
from dpsql.post.posterior_columns import posterior, told
from dpsql.post.randomized import undoing
from dpsql.privacy.mechanisms import interval_factor
from dpsql.privacy.release import Release
from dpsql.types import BIGINT, Kind, Type

Values = list[Any]
Mask = npt.NDArray[np.bool_]
_DIGITS = Context(prec=60)
"""More than a DECIMAL has: the usual 28 would round."""


@dataclass(frozen=True)
class Estimates:
    """One measure in every group: the answer, its standard error and a 95 % interval; None where there is no answer."""

    values: Values
    stderr: Values
    low: Values
    high: Values


@dataclass(frozen=True)
class _Answer:
    """A recipe's result: `known` where there is one, within [lower, upper] whatever the noise."""

    dual: Dual
    known: Mask
    lower: Floats | float = -np.inf
    upper: Floats | float = np.inf


def estimate(recipe: Recipe, release: Release, columns: tuple[str, ...], nonnegative: bool = False) -> Estimates:
    cells = noisy_cells(release, columns)
    if isinstance(recipe, Evidence):
        return _evidence(recipe, cells)
    if isinstance(recipe, Debiased):
        return _debiased(recipe, cells, nonnegative)
    if isinstance(recipe, DebiasedMean):
        return _debiased_mean(recipe, cells)
    if isinstance(recipe, BetaPosterior | NormalPosterior):
        nothing: Values = [None] * len(release.keys)
        return Estimates(told(recipe, posterior(recipe, release, columns)), nothing, nothing, nothing)
    answer = _answer(recipe, cells)
    if isinstance(recipe, Variance) and recipe.root:
        return _deviation(recipe, answer, cells)
    half = cells.half_width(answer.dual)
    low, high = _interval(answer.dual.value, half)
    if isinstance(recipe, Linear):
        values = [max(value, Fraction(0)) if nonnegative else value for value in cells.exact(recipe.terms)]
        typed: Values = [_typed(value, recipe.type) for value in values]
        if nonnegative:
            shown = np.maximum(answer.dual.value, 0.0)
            low, high = _interval(shown, half)
        return Estimates(typed, answer.dual.stderr(cells.noise).tolist(), low.tolist(), high.tolist())
    bounded = (np.clip(bound, answer.lower, answer.upper) for bound in (low, high))
    return Estimates(*(_listed(c, answer.known)
                       for c in (answer.dual.value, answer.dual.stderr(cells.noise), *bounded)))  # fmt: skip


def _interval(value: Floats, half: Floats) -> tuple[Floats, Floats]:
    """Where a value and its error are past all numbers, nothing is known: the interval is everything."""
    with np.errstate(invalid="ignore"):
        low, high = value - half, value + half
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def covariance(one: Recipe, other: Recipe, release: Release, columns: tuple[str, ...]) -> list[float | None]:
    """How the noise moves two answers together, in every group; None where one of them has no answer or no error."""
    groups = len(release.keys)
    without = Evidence | BetaPosterior | NormalPosterior
    if isinstance(one, without) or isinstance(other, without):
        return [None] * groups
    if isinstance(one, Debiased | DebiasedMean) or isinstance(other, Debiased | DebiasedMean):
        # How chance moves two debiased answers together depends on the rows that they share.
        errors = estimate(one, release, columns).stderr if one == other else [None] * groups
        return [None if error is None else error**2 for error in errors]
    cells = noisy_cells(release, columns)
    first, second = _answer(one, cells), _answer(other, cells)
    return _listed(first.dual.covariance(second.dual, cells.noise), first.known & second.known)


def interval(release: Release) -> float:
    """Half of a 95 % interval in standard errors, for anything that is worked out from this release's cells.

    The widest of its mechanisms': a sum of independent noises has lighter tails than the heaviest of them.
    """
    return max((interval_factor(bundle.mechanism) for bundle in release.spec.bundles), default=0.0)


def _listed(values: Floats, known: Mask) -> list[float | None]:
    return [value if is_known else None for value, is_known in zip(values.tolist(), known.tolist(), strict=True)]


def _typed(value: Fraction, type_: Type) -> Any:
    if type_ == BIGINT:
        return max(-(2**63), min(2**63 - 1, round(value)))
    if type_.kind is Kind.DECIMAL:
        scale, most = type_.scale or 0, 10 ** (type_.precision or 0) - 1
        return Decimal(max(-most, min(most, round(value * 10**scale)))).scaleb(-scale, _DIGITS)
    return float(value)


# --- each recipe as a function of its cells --------------------------------------------------------------------------


def _answer(recipe: Linear | Mean | Variance | Paired | BlockMean, cells: NoisyCells) -> _Answer:
    with np.errstate(all="ignore"):  # groups where nothing is left to divide by are masked
        match recipe:
            case Linear(terms):
                dual = cells.dual(terms)
                return _Answer(dual, np.ones(len(dual.value), np.bool_))
            case BlockMean():
                return _block_mean(recipe, cells)
            case Mean():
                return _mean(recipe, cells)
            case Variance():
                return _variance(recipe, cells)
            case Paired():
                return _paired(recipe, cells)
            case _:
                assert_never(recipe)


def _block_mean(recipe: BlockMean, cells: NoisyCells) -> _Answer:
    mean = cells.dual(recipe.terms).plus(float(recipe.center))
    return _within(mean, np.ones(len(mean.value), np.bool_), float(recipe.lower), float(recipe.upper))


def _mean(recipe: Mean, cells: NoisyCells) -> _Answer:
    count, lower, upper = cells.dual(recipe.count), float(recipe.lower), float(recipe.upper)
    mean = (cells.dual(recipe.first) / count).plus(float(recipe.center)).clipped(lower, upper)
    return _Answer(mean, count.value > 0, lower, upper)


def _variance(recipe: Variance, cells: NoisyCells) -> _Answer:
    count = cells.dual(recipe.count)
    mean = cells.dual(recipe.first) / count
    spread = (cells.dual(recipe.second) / count - mean * mean).clipped(0.0, float(recipe.most))
    most: Floats | float = float(recipe.most)
    known = count.value > (1 if recipe.sample else 0)
    if recipe.sample:
        correction = count / count.plus(-1.0)
        spread, most = spread * correction, most * correction.value
    if recipe.root:
        # Below its own error a variance is not told from 0, and the root's derivative is taken there.
        spread, most = spread.root(spread.stderr(cells.noise)), np.sqrt(most)
    return _Answer(spread, known, 0.0, most)


def _deviation(recipe: Variance, answer: _Answer, cells: NoisyCells) -> Estimates:
    """The interval of a standard deviation is the root of the variance's, which holds near 0 too."""
    square = _answer(Variance(recipe.count, recipe.first, recipe.second, recipe.most, recipe.sample, False), cells)
    half = cells.half_width(square.dual)
    with np.errstate(all="ignore"):
        ends = (square.dual.value - half, square.dual.value + half)
        low, high = (np.sqrt(np.clip(end, square.lower, square.upper)) for end in ends)
    columns = (answer.dual.value, answer.dual.stderr(cells.noise), low, high)
    return Estimates(*(_listed(column, answer.known) for column in columns))


def _paired(recipe: Paired, cells: NoisyCells) -> _Answer:
    n = cells.dual(recipe.count)
    y_mean, x_mean = cells.dual(recipe.y.first) / n, cells.dual(recipe.x.first) / n
    y_half, x_half = float(recipe.y.half), float(recipe.x.half)
    y_spread = (cells.dual(recipe.y.second) / n - y_mean * y_mean).clipped(0.0, y_half**2)
    x_spread = (cells.dual(recipe.x.second) / n - x_mean * x_mean).clipped(0.0, x_half**2)
    together = (cells.dual(recipe.product) / n - y_mean * x_mean).clipped(-y_half * x_half, y_half * x_half)
    known = n.value > 0
    sloped = known & (x_spread.value > 0)
    y_center, x_center = float(recipe.y.center), float(recipe.x.center)
    # A covariance is at most the product of the deviations, and y's is at most half of its range.
    steepest = y_half / np.sqrt(x_spread.value)
    match recipe.function:
        case PairFunction.COUNT:
            return _Answer(n, np.ones(len(n.value), np.bool_))
        case PairFunction.AVGY:
            return _within(y_mean.plus(y_center), known, y_center - y_half, y_center + y_half)
        case PairFunction.AVGX:
            return _within(x_mean.plus(x_center), known, x_center - x_half, x_center + x_half)
        case PairFunction.SYY:
            return _Answer(y_spread * n, known, 0.0)
        case PairFunction.SXX:
            return _Answer(x_spread * n, known, 0.0)
        case PairFunction.SXY:
            return _Answer(together * n, known)
        case PairFunction.COVAR_POP:
            return _within(together, known, -y_half * x_half, y_half * x_half)
        case PairFunction.COVAR_SAMP:
            return _Answer(together * (n / n.plus(-1.0)), n.value > 1)
        case PairFunction.CORR:
            return _within(_correlation(together, y_spread, x_spread), sloped & (y_spread.value > 0), -1.0, 1.0)
        case PairFunction.R2:
            r = _correlation(together, y_spread, x_spread)
            return _within(r * r, sloped & (y_spread.value > 0), 0.0, 1.0)
        case PairFunction.SLOPE:
            return _within(together / x_spread, sloped, -steepest, steepest)
        case PairFunction.INTERCEPT:
            slope = (together / x_spread).clipped(-steepest, steepest)
            return _Answer(y_mean.plus(y_center) - slope * x_mean.plus(x_center), sloped)
        case _:
            assert_never(recipe.function)


def _correlation(together: Dual, y_spread: Dual, x_spread: Dual) -> Dual:
    none = np.zeros_like(together.value)
    return (together / (y_spread.root(none) * x_spread.root(none))).clipped(-1.0, 1.0)


def _within(dual: Dual, known: Mask, lower: Floats | float, upper: Floats | float) -> _Answer:
    return _Answer(dual.clipped(lower, upper), known, lower, upper)


def _evidence(recipe: Evidence, cells: NoisyCells) -> Estimates:
    witnesses, count = cells.dual(recipe.witnesses), cells.dual(recipe.count)
    beyond = witnesses.value > cells.half_width(witnesses)
    answers: Values = [recipe.found if is_beyond else not recipe.found for is_beyond in beyond.tolist()]
    values = [answer if known else None for answer, known in zip(answers, (count.value > 0).tolist(), strict=True)]
    nothing: Values = [None] * len(values)
    return Estimates(values, nothing, nothing, nothing)


# --- randomized answers ----------------------------------------------------------------------------------------------


def _debiased(recipe: Debiased, cells: NoisyCells, nonnegative: bool) -> Estimates:
    """Noise and chance are independent: their variances add up. Chance is that of the randomizing of the answers."""
    undo = undoing(cells.release.keys, recipe.keys)
    spread = np.sqrt(undo.squares(np.ones(len(cells.release.keys))))
    noise: dict[str, float | Floats] = {cell: error * spread for cell, error in cells.noise.items()}

    def undone(terms: Terms) -> Dual:
        dual = cells.dual(terms)
        return Dual(undo.sums(dual.value), dual.gradient)

    match recipe.recipe:
        case Linear(terms, type_):
            dual, chance = undone(terms), undo.chance(cells.dual(terms).value)
            if nonnegative:
                dual = dual.clipped(0.0, np.inf)
            stderr = np.sqrt(dual.covariance(dual, noise) + chance)
            ends = _interval(dual.value, cells.factor(dual) * stderr)
            values = [_typed(Fraction(value), type_) for value in dual.value.tolist()]
            return Estimates(values, stderr.tolist(), *(end.tolist() for end in ends))
        case Mean() as mean:
            count, lower, upper = undone(mean.count), float(mean.lower), float(mean.upper)
            chance = undo.chance(cells.dual(mean.count).value)
            with np.errstate(all="ignore"):
                dual = (undone(mean.first) / count).plus(float(mean.center)).clipped(lower, upper)
                # A row that comes or goes moves the mean by its distance from it: at most that to the further bound.
                reach = np.maximum(upper - dual.value, dual.value - lower) / count.value
                variance = dual.covariance(dual, noise) + chance * reach**2
            return _with_error(_Answer(dual, count.value > 0, lower, upper), variance, cells)
        case _:
            assert_never(recipe.recipe)


def _debiased_mean(recipe: DebiasedMean, cells: NoisyCells) -> Estimates:
    """A row whose answer has the value f is recorded with the variance qS + df^2 - (qT + df)^2, d = p - q, T and S the
    sums of all values and of their squares; f^2 is on average at most (a + b)m - ab, between the bounds a and b."""
    mean, how = recipe.mean, recipe.randomized
    count, lower, upper = cells.dual(mean.count), float(mean.lower), float(mean.upper)
    d, q, total, squares = how.told, how.other, float(recipe.total), float(recipe.squares)
    with np.errstate(all="ignore"):
        told = (cells.dual(mean.first) / count).plus(float(mean.center))
        dual = told.plus(-q * total).times(1.0 / d).clipped(lower, upper)
        second = (lower + upper) * dual.value - lower * upper
        each = q * squares - (q * total) ** 2 + d * (1.0 - d) * second - 2.0 * q * d * total * dual.value
        chance = np.maximum(each, 0.0) / (count.value * d * d)
        variance = dual.covariance(dual, cells.noise) + chance
    return _with_error(_Answer(dual, count.value > 0, lower, upper), variance, cells)


def _with_error(answer: _Answer, variance: Floats, cells: NoisyCells) -> Estimates:
    with np.errstate(all="ignore"):
        stderr = np.sqrt(variance)
        ends = _interval(answer.dual.value, cells.factor(answer.dual) * stderr)
        bounded = (np.clip(end, answer.lower, answer.upper) for end in ends)
    return Estimates(*(_listed(column, answer.known) for column in (answer.dual.value, stderr, *bounded)))
