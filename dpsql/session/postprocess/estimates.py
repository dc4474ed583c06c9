"""From a release's noisy cells to answers and their errors: post-processing, so nothing here costs anything.

Sums are worked out in exact rationals, all else in doubles. Errors come from noise scales and released values only
(SOUNDNESS 11), to first order. What clipping may have moved is in the intervals, and beside them, where norms were
chosen from a histogram; where norms were declared it is not known, and not in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from dpsql.compiler.clipping import ScaledCells
from dpsql.compiler.plan.estimators import (
    BetaPosterior,
    BlockMean,
    BySet,
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
from dpsql.compiler.plan.measures import PairFunction
from dpsql.errors import InternalError
from dpsql.privacy.exact import Row
from dpsql.privacy.noise import interval_factor
from dpsql.privacy.release import Release
from dpsql.schema.model import Randomized
from dpsql.session.postprocess.clipping_reach import ClippingReach, clipping_reach
from dpsql.session.postprocess.latent_sums import Floats
from dpsql.session.postprocess.noisy_cells import Dual, NoisyCells, noisy_cells_of
from dpsql.session.postprocess.posteriors import infer_posterior, posterior_column
from dpsql.types import BIGINT, Kind, Type

# Undoing randomized response in released figures: linear, so its noise and its own chance are known.
#
# An answer v was recorded as r with probability P(r | v): p where r = v, else q. The inverse of that matrix has
# (1 - q)/(p - q) on its diagonal and -q/(p - q) elsewhere. Of several randomized keys it is the product of theirs.

AnswerBlocks = npt.NDArray[np.intp]
"""Places of groups: in each row those of all answers to one question, the other keys being equal."""


@dataclass(frozen=True)
class ResponseInverse:
    """The inverse of the randomizing of some keys of a release's groups."""

    parts: tuple[tuple[Randomized, AnswerBlocks], ...]

    def debias_sums(self, recorded: Floats) -> Floats:
        """Figures that add up over rows, of true answers; unbiased."""
        for response, blocks in self.parts:
            diagonal, others = _inverse_entries(response)
            recorded = _apply_inverse(recorded, blocks, diagonal, others)
        return recorded

    def propagate_variance(self, recorded: Floats) -> Floats:
        """The same with the squares of the inverse's entries: what it makes of variances of independent figures."""
        for response, blocks in self.parts:
            diagonal, others = _inverse_entries(response)
            recorded = _apply_inverse(recorded, blocks, diagonal * diagonal, others * others)
        return recorded

    def response_variance(self, counts: Floats) -> Floats:
        """The variance that the randomizing itself gives to each debiased count.

        A row adds the entry A of the inverse at its recorded answer, whose mean is 1 in the group of its true answer
        and 0 in others: together a variance of E(sum of A^2) less the count, and recorded counts estimate both. For one
        key that is Y p(1 - p) + (n - Y) q(1 - q), over (p - q)^2, with Y of n rows in the group.
        """
        seen = np.maximum(counts, 0.0)
        return np.maximum(self.propagate_variance(seen) - self.debias_sums(seen), 0.0)


def invert_response(groups: Sequence[Row], keys: Sequence[tuple[int, Randomized]]) -> ResponseInverse:
    return ResponseInverse(
        tuple((response, _group_blocks(groups, index, len(response.values))) for index, response in keys)
    )


def _group_blocks(groups: Sequence[Row], index: int, answers: int) -> AnswerBlocks:
    """NULL was not randomized; nor is there an answer in the rows of a grouping set without the key."""
    blocks: dict[Row, list[int]] = {}
    for number, group in enumerate(groups):
        if group[index] is not None:
            blocks.setdefault((*group[:index], *group[index + 1 :]), []).append(number)
    if any(len(block) != answers for block in blocks.values()):
        raise InternalError("the groups of a randomized key are not all there")
    return np.array(list(blocks.values()), np.intp).reshape(-1, answers)


def _inverse_entries(response: Randomized) -> tuple[float, float]:
    return (
        1.0 - response.other_probability
    ) / response.signal_weight, -response.other_probability / response.signal_weight


def _apply_inverse(values: Floats, blocks: AnswerBlocks, diagonal: float, others: float) -> Floats:
    result, parts = values.copy(), values[blocks]
    result[blocks] = (diagonal - others) * parts + others * parts.sum(axis=1, keepdims=True)
    return result


EstimateValues = list[Any]
Mask = npt.NDArray[np.bool_]
_DECIMAL_CONTEXT = Context(prec=60)
"""More than a DECIMAL has: the usual 28 would round."""


@dataclass(frozen=True)
class Estimates:
    """One measure in every group: the answer, its standard error and a 95 % interval; None where there is no answer.

    For what was scaled down the truth may lie within `clip_half` of `clip_mid` from the answer, so at most `clipped`
    from it, which the interval has in it; None where that is not known, and not in it.
    """

    values: EstimateValues
    stderr: EstimateValues
    low: EstimateValues
    high: EstimateValues
    clip_half: EstimateValues | None = None
    clip_mid: EstimateValues | None = None
    clipped: EstimateValues | None = None

    def column(self, kind: str) -> EstimateValues:
        """One of the fields, by its name; of what is not known None for every group."""
        found: EstimateValues | None = getattr(self, kind)
        return [None] * len(self.values) if found is None else found


_FIELDS = ("values", "stderr", "low", "high", "clip_half", "clip_mid", "clipped")


@dataclass(frozen=True)
class _GroupEstimate:
    """A recipe's result: `has_value` where there is one, within [lower, upper] whatever the noise."""

    dual: Dual
    has_value: Mask
    lower: Floats | float = -np.inf
    upper: Floats | float = np.inf


def estimate_measure(
    recipe: Recipe,
    release: Release,
    columns: tuple[str, ...],
    nonnegative: bool = False,
    scaled: ScaledCells | None = None,
) -> Estimates:
    """`scaled` says which cells were scaled down, and what is known of it; None where they hold all that there is."""
    if isinstance(recipe, BySet):
        return _estimate_by_set(recipe, release, columns, nonnegative, scaled)
    found = _estimate(recipe, release, columns, nonnegative)
    reach = clipping_reach(recipe, noisy_cells_of(release, columns), scaled or ScaledCells())
    return found if reach is None else _widen_intervals(found, reach, recipe)


def _widen_intervals(found: Estimates, reach: ClippingReach, recipe: Recipe) -> Estimates:
    """The ends moved by what was scaled down; those of a mean stay within its bounds."""
    lower, upper = (float(recipe.lower), float(recipe.upper)) if isinstance(recipe, Mean) else (-np.inf, np.inf)
    ends = zip(found.low, found.high, reach.below.tolist(), reach.above.tolist(), strict=True)
    moved = [
        (None, None) if low is None else (max(low - below, lower), min(high + above, upper))
        for low, high, below, above in ends
    ]
    answered = np.array([low is not None for low in found.low], np.bool_)
    return replace(
        found,
        low=[low for low, _ in moved],
        high=[high for _, high in moved],
        clip_half=_mask_to_none(reach.half, answered),
        clip_mid=_mask_to_none(reach.middle, answered),
        clipped=_mask_to_none(np.maximum(reach.below, reach.above), answered),
    )


def _estimate(recipe: Recipe, release: Release, columns: tuple[str, ...], nonnegative: bool) -> Estimates:
    """Answers with the error that noise alone gives them, of one grouping set."""
    assert not isinstance(recipe, BySet)
    cells = noisy_cells_of(release, columns)
    if isinstance(recipe, Evidence):
        return _estimate_evidence(recipe, cells)
    if isinstance(recipe, Debiased):
        return _estimate_debiased(recipe, cells, nonnegative)
    if isinstance(recipe, DebiasedMean):
        return _estimate_debiased_mean(recipe, cells)
    if isinstance(recipe, BetaPosterior | NormalPosterior):
        nothing: EstimateValues = [None] * len(release.keys)
        return Estimates(posterior_column(recipe, infer_posterior(recipe, release, columns)), nothing, nothing, nothing)
    answer = _evaluate_estimator(recipe, cells)
    if isinstance(recipe, Variance) and recipe.root:
        return _estimate_deviation(recipe, answer, cells)
    half = cells.half_width(answer.dual)
    low, high = _interval_around(answer.dual.value, half)
    if isinstance(recipe, Linear):
        values = [max(value, Fraction(0)) if nonnegative else value for value in cells.exact_sums(recipe.terms)]
        typed: EstimateValues = [_cast_value(value, recipe.type) for value in values]
        if nonnegative:
            clipped = np.maximum(answer.dual.value, 0.0)
            low, high = _interval_around(clipped, half)
        return Estimates(typed, answer.dual.stderr(cells.noise).tolist(), low.tolist(), high.tolist())
    bounded = (np.clip(bound, answer.lower, answer.upper) for bound in (low, high))
    return Estimates(*(_mask_to_none(c, answer.has_value)
                       for c in (answer.dual.value, answer.dual.stderr(cells.noise), *bounded)))  # fmt: skip


def _estimate_by_set(
    recipe: BySet,
    release: Release,
    columns: tuple[str, ...],
    nonnegative: bool,
    scaled: ScaledCells | None,
) -> Estimates:
    """Each grouping set from its own groups alone: in the cells of other sets they have nothing but noise."""
    nothing: EstimateValues = [None] * len(release.keys)
    merged = Estimates(*(list(nothing) for _ in _FIELDS))
    for number, of_set in enumerate(recipe.recipes):
        places, part = _groups_of_set(release, number)
        own = estimate_measure(of_set, part, columns, nonnegative, scaled)
        for field in _FIELDS:
            whole = merged.column(field)
            for place, value in zip(places, own.column(field), strict=True):
                whole[place] = value
    return merged


def _groups_of_set(release: Release, number: int) -> tuple[list[int], Release]:
    places = [place for place, key in enumerate(release.keys) if key[-1] == number]
    keys = tuple(release.keys[place] for place in places)
    return places, Release(keys, tuple(cells[places] for cells in release.cells), release.spec)


def _interval_around(value: Floats, half: Floats) -> tuple[Floats, Floats]:
    """Where a value and its error are past all numbers, nothing is known: the interval is everything."""
    with np.errstate(invalid="ignore"):
        low, high = value - half, value + half
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def estimate_covariance(
    first_estimator: Recipe, second_estimator: Recipe, release: Release, columns: tuple[str, ...]
) -> list[float | None]:
    """How the noise moves two answers together, in every group; None where one of them has no answer or no error."""
    groups = len(release.keys)
    if isinstance(first_estimator, BySet) or isinstance(second_estimator, BySet):
        covariances: list[float | None] = [None] * groups
        for number in sorted({key[-1] for key in release.keys}):
            first_of_set, second_of_set = (
                r.recipes[number] if isinstance(r, BySet) else r for r in (first_estimator, second_estimator)
            )
            places, part = _groups_of_set(release, number)
            values = estimate_covariance(first_of_set, second_of_set, part, columns)
            for place, value in zip(places, values, strict=True):
                covariances[place] = value
        return covariances
    without = Evidence | BetaPosterior | NormalPosterior
    if isinstance(first_estimator, without) or isinstance(second_estimator, without):
        return [None] * groups
    if isinstance(first_estimator, Debiased | DebiasedMean) or isinstance(second_estimator, Debiased | DebiasedMean):
        # How chance moves two debiased answers together depends on the rows that they share.
        errors = (
            estimate_measure(first_estimator, release, columns).stderr
            if first_estimator == second_estimator
            else [None] * groups
        )
        return [None if error is None else error**2 for error in errors]
    cells = noisy_cells_of(release, columns)
    first, second = _evaluate_estimator(first_estimator, cells), _evaluate_estimator(second_estimator, cells)
    return _mask_to_none(first.dual.covariance_with(second.dual, cells.noise), first.has_value & second.has_value)


@dataclass(frozen=True)
class NoisyCounts:
    """Counts of groups, the standard errors that noise gives them, and half of a 95 % interval in these."""

    values: Floats
    stderr: Floats
    factors: Floats

    def at(self, places: npt.NDArray[np.intp]) -> NoisyCounts:
        return NoisyCounts(self.values[places], self.stderr[places], self.factors[places])

    def exceed_half_width(self, series: Sequence[Row]) -> Mask:
        """Of each group, whether the counts of all groups of its series together are above half of the width of the
        sum's 95 % interval. Their noises are independent."""
        numbers: dict[Row, int] = {}
        of = np.array([numbers.setdefault(row, len(numbers)) for row in series], np.intp)
        totals = np.bincount(of, self.values, len(numbers))
        variances = np.bincount(of, self.stderr**2, len(numbers))
        factors = np.zeros(len(numbers))
        np.maximum.at(factors, of, self.factors)
        seen: Mask = (totals > factors * np.sqrt(variances))[of]
        return seen


def estimate_counts(recipe: object, release: Release, columns: tuple[str, ...]) -> NoisyCounts:
    """A count in every group with the error of its noise alone: what clipping takes away makes no group emptier."""
    match recipe:
        case Linear(terms):
            cells = noisy_cells_of(release, columns)
            dual = cells.to_dual(terms)
            widest = np.full(len(dual.value), cells.widest_factor(dual))
            return NoisyCounts(dual.value, dual.stderr(cells.noise), widest)
        case BySet():
            values, stderr, factors = (np.zeros(len(release.keys)) for _ in range(3))
            for number, of_set in enumerate(recipe.recipes):
                places, part = _groups_of_set(release, number)
                own = estimate_counts(of_set, part, columns)
                values[places], stderr[places], factors[places] = own.values, own.stderr, own.factors
            return NoisyCounts(values, stderr, factors)
        case Debiased(Linear(terms)):
            cells = noisy_cells_of(release, columns)
            found = _estimate_debiased(recipe, cells, nonnegative=False)
            widest = np.full(len(found.values), cells.widest_factor(cells.to_dual(terms)))
            return NoisyCounts(np.array(found.values, np.float64), np.array(found.stderr, np.float64), widest)
        case _:
            raise InternalError("groups are judged by counts")


def widest_interval_factor(release: Release) -> float:
    """Half of a 95 % interval in standard errors, for anything that is worked out from this release's cells.

    The widest of its mechanisms': a sum of independent noises has lighter tails than the heaviest of them.
    """
    return max((interval_factor(bundle.mechanism) for bundle in release.spec.bundles), default=0.0)


def _mask_to_none(values: Floats, mask: Mask) -> list[float | None]:
    return [value if is_known else None for value, is_known in zip(values.tolist(), mask.tolist(), strict=True)]


def _cast_value(value: Fraction, type_: Type) -> Any:
    if type_ == BIGINT:
        return max(-(2**63), min(2**63 - 1, round(value)))
    if type_.kind is Kind.DECIMAL:
        scale, largest = type_.scale or 0, 10 ** (type_.precision or 0) - 1
        return Decimal(max(-largest, min(largest, round(value * 10**scale)))).scaleb(-scale, _DECIMAL_CONTEXT)
    return float(value)


# --- each recipe as a function of its cells --------------------------------------------------------------------------


def _evaluate_estimator(recipe: Linear | Mean | Variance | Paired | BlockMean, cells: NoisyCells) -> _GroupEstimate:
    with np.errstate(all="ignore"):  # groups where nothing is left to divide by are masked
        match recipe:
            case Linear(terms):
                dual = cells.to_dual(terms)
                return _GroupEstimate(dual, np.ones(len(dual.value), np.bool_))
            case BlockMean():
                return _evaluate_block_mean(recipe, cells)
            case Mean():
                return _evaluate_mean(recipe, cells)
            case Variance():
                return _evaluate_variance(recipe, cells)
            case Paired():
                return _evaluate_pair(recipe, cells)
            case _:
                assert_never(recipe)


def _evaluate_block_mean(recipe: BlockMean, cells: NoisyCells) -> _GroupEstimate:
    mean = cells.to_dual(recipe.terms).add_constant(float(recipe.center))
    return _clip_to_bounds(mean, np.ones(len(mean.value), np.bool_), float(recipe.lower), float(recipe.upper))


def _evaluate_mean(recipe: Mean, cells: NoisyCells) -> _GroupEstimate:
    count, lower, upper = cells.to_dual(recipe.count), float(recipe.lower), float(recipe.upper)
    mean = (cells.to_dual(recipe.first) / count).add_constant(float(recipe.center)).clip_value(lower, upper)
    return _GroupEstimate(mean, count.value > 0, lower, upper)


def _evaluate_variance(recipe: Variance, cells: NoisyCells) -> _GroupEstimate:
    count = cells.to_dual(recipe.count)
    mean = cells.to_dual(recipe.first) / count
    spread = (cells.to_dual(recipe.second) / count - mean * mean).clip_value(0.0, float(recipe.most))
    upper: Floats | float = float(recipe.most)
    mask = count.value > (1 if recipe.sample else 0)
    if recipe.sample:
        correction = count / count.add_constant(-1.0)
        spread, upper = spread * correction, upper * correction.value
    if recipe.root:
        # Below its own error a variance is not told from 0, and the root's derivative is taken there.
        spread, upper = spread.square_root(spread.stderr(cells.noise)), np.sqrt(upper)
    return _GroupEstimate(spread, mask, 0.0, upper)


def _estimate_deviation(recipe: Variance, answer: _GroupEstimate, cells: NoisyCells) -> Estimates:
    """The interval of a standard deviation is the root of the variance's, which holds near 0 too."""
    square = _evaluate_estimator(
        Variance(recipe.count, recipe.first, recipe.second, recipe.most, recipe.sample, False), cells
    )
    half = cells.half_width(square.dual)
    with np.errstate(all="ignore"):
        ends = (square.dual.value - half, square.dual.value + half)
        low, high = (np.sqrt(np.clip(end, square.lower, square.upper)) for end in ends)
    columns = (answer.dual.value, answer.dual.stderr(cells.noise), low, high)
    return Estimates(*(_mask_to_none(column, answer.has_value) for column in columns))


def _evaluate_pair(recipe: Paired, cells: NoisyCells) -> _GroupEstimate:
    n = cells.to_dual(recipe.count)
    y_mean, x_mean = cells.to_dual(recipe.y.first) / n, cells.to_dual(recipe.x.first) / n
    y_half, x_half = float(recipe.y.half), float(recipe.x.half)
    y_spread = (cells.to_dual(recipe.y.second) / n - y_mean * y_mean).clip_value(0.0, y_half**2)
    x_spread = (cells.to_dual(recipe.x.second) / n - x_mean * x_mean).clip_value(0.0, x_half**2)
    together = (cells.to_dual(recipe.product) / n - y_mean * x_mean).clip_value(-y_half * x_half, y_half * x_half)
    mask = n.value > 0
    sloped = mask & (x_spread.value > 0)
    y_center, x_center = float(recipe.y.center), float(recipe.x.center)
    # A covariance is at most the product of the deviations, and y's is at most half of its range.
    steepest = y_half / np.sqrt(x_spread.value)
    match recipe.function:
        case PairFunction.COUNT:
            return _GroupEstimate(n, np.ones(len(n.value), np.bool_))
        case PairFunction.AVGY:
            return _clip_to_bounds(y_mean.add_constant(y_center), mask, y_center - y_half, y_center + y_half)
        case PairFunction.AVGX:
            return _clip_to_bounds(x_mean.add_constant(x_center), mask, x_center - x_half, x_center + x_half)
        case PairFunction.SYY:
            return _GroupEstimate(y_spread * n, mask, 0.0)
        case PairFunction.SXX:
            return _GroupEstimate(x_spread * n, mask, 0.0)
        case PairFunction.SXY:
            return _GroupEstimate(together * n, mask)
        case PairFunction.COVAR_POP:
            return _clip_to_bounds(together, mask, -y_half * x_half, y_half * x_half)
        case PairFunction.COVAR_SAMP:
            return _GroupEstimate(together * (n / n.add_constant(-1.0)), n.value > 1)
        case PairFunction.CORR:
            return _clip_to_bounds(
                _correlation_of(together, y_spread, x_spread), sloped & (y_spread.value > 0), -1.0, 1.0
            )
        case PairFunction.R2:
            r = _correlation_of(together, y_spread, x_spread)
            return _clip_to_bounds(r * r, sloped & (y_spread.value > 0), 0.0, 1.0)
        case PairFunction.SLOPE:
            return _clip_to_bounds(together / x_spread, sloped, -steepest, steepest)
        case PairFunction.INTERCEPT:
            slope = (together / x_spread).clip_value(-steepest, steepest)
            return _GroupEstimate(y_mean.add_constant(y_center) - slope * x_mean.add_constant(x_center), sloped)
        case _:
            assert_never(recipe.function)


def _correlation_of(together: Dual, y_spread: Dual, x_spread: Dual) -> Dual:
    none = np.zeros_like(together.value)
    return (together / (y_spread.square_root(none) * x_spread.square_root(none))).clip_value(-1.0, 1.0)


def _clip_to_bounds(dual: Dual, mask: Mask, lower: Floats | float, upper: Floats | float) -> _GroupEstimate:
    return _GroupEstimate(dual.clip_value(lower, upper), mask, lower, upper)


def _estimate_evidence(recipe: Evidence, cells: NoisyCells) -> Estimates:
    witnesses, count = cells.to_dual(recipe.witnesses), cells.to_dual(recipe.count)
    beyond = witnesses.value > cells.half_width(witnesses)
    answers: EstimateValues = [recipe.found if is_beyond else not recipe.found for is_beyond in beyond.tolist()]
    values = [
        answer if has_rows else None for answer, has_rows in zip(answers, (count.value > 0).tolist(), strict=True)
    ]
    nothing: EstimateValues = [None] * len(values)
    return Estimates(values, nothing, nothing, nothing)


# --- randomized answers ----------------------------------------------------------------------------------------------


def _estimate_debiased(recipe: Debiased, cells: NoisyCells, nonnegative: bool) -> Estimates:
    """Noise and chance are independent: their variances add up. Chance is that of the randomizing of the answers."""
    undo = invert_response(cells.release.keys, recipe.keys)
    spread = np.sqrt(undo.propagate_variance(np.ones(len(cells.release.keys))))
    noise: dict[str, float | Floats] = {cell: error * spread for cell, error in cells.noise.items()}

    def debias_terms(terms: Terms) -> Dual:
        dual = cells.to_dual(terms)
        return Dual(undo.debias_sums(dual.value), dual.gradient)

    match recipe.recipe:
        case Linear(terms, type_):
            dual, chance = debias_terms(terms), undo.response_variance(cells.to_dual(terms).value)
            if nonnegative:
                dual = dual.clip_value(0.0, np.inf)
            stderr = np.sqrt(dual.covariance_with(dual, noise) + chance)
            ends = _interval_around(dual.value, cells.widest_factor(dual) * stderr)
            values = [_cast_value(Fraction(value), type_) for value in dual.value.tolist()]
            return Estimates(values, stderr.tolist(), *(end.tolist() for end in ends))
        case Mean() as mean:
            count, lower, upper = debias_terms(mean.count), float(mean.lower), float(mean.upper)
            chance = undo.response_variance(cells.to_dual(mean.count).value)
            with np.errstate(all="ignore"):
                dual = (debias_terms(mean.first) / count).add_constant(float(mean.center)).clip_value(lower, upper)
                # A row that comes or goes moves the mean by its distance from it: at most that to the further bound.
                reach = np.maximum(upper - dual.value, dual.value - lower) / count.value
                variance = dual.covariance_with(dual, noise) + chance * reach**2
            return _estimate_with_variance(_GroupEstimate(dual, count.value > 0, lower, upper), variance, cells)
        case _:
            assert_never(recipe.recipe)


def _estimate_debiased_mean(recipe: DebiasedMean, cells: NoisyCells) -> Estimates:
    """A row whose answer has the value f is recorded with the variance qS + df^2 - (qT + df)^2, d = p - q, T and S the
    sums of all values and of their squares; f^2 is on average at most (a + b)m - ab, between the bounds a and b."""
    mean, randomized = recipe.mean, recipe.randomized
    count, lower, upper = cells.to_dual(mean.count), float(mean.lower), float(mean.upper)
    d, q, total, squares = (
        randomized.signal_weight,
        randomized.other_probability,
        float(recipe.total),
        float(recipe.squares),
    )
    with np.errstate(all="ignore"):
        recorded = (cells.to_dual(mean.first) / count).add_constant(float(mean.center))
        dual = recorded.add_constant(-q * total).scale_by(1.0 / d).clip_value(lower, upper)
        second = (lower + upper) * dual.value - lower * upper
        row_variance = q * squares - (q * total) ** 2 + d * (1.0 - d) * second - 2.0 * q * d * total * dual.value
        chance = np.maximum(row_variance, 0.0) / (count.value * d * d)
        variance = dual.covariance_with(dual, cells.noise) + chance
    return _estimate_with_variance(_GroupEstimate(dual, count.value > 0, lower, upper), variance, cells)


def _estimate_with_variance(answer: _GroupEstimate, variance: Floats, cells: NoisyCells) -> Estimates:
    with np.errstate(all="ignore"):
        stderr = np.sqrt(variance)
        ends = _interval_around(answer.dual.value, cells.widest_factor(answer.dual) * stderr)
        bounded = (np.clip(end, answer.lower, answer.upper) for end in ends)
    return Estimates(*(_mask_to_none(column, answer.has_value) for column in (answer.dual.value, stderr, *bounded)))
