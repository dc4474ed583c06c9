"""How far noise may move an answer, and the least epsilon that meets an accuracy goal. Pure.

Claim: `miss_probability` is never below the probability that the noise of an answer is beyond a bound, so an epsilon
that is picked by it keeps its promise. Only answers that are sums of noisy cells have such a figure: their noise does
not depend on rows (SOUNDNESS 11).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from dpsql.amounts import format_rounded_up
from dpsql.compiler.analysis.domains import count_distinct_domain
from dpsql.compiler.calibrate.calibrate import CalibratedPlan
from dpsql.compiler.compiled import (
    Compiled,
    CountedValues,
    RandomizedResponses,
    RankedValues,
    ReleaseStep,
    SelectedBins,
    TableStep,
)
from dpsql.compiler.plan.aggregate import Distinct, Gather, Sum, cells_of
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
    Variance,
)
from dpsql.compiler.plan.expressions import Column
from dpsql.compiler.plan.measures import DistinctValues, Frequent, Measure, SharesPosterior
from dpsql.compiler.settings import Settings
from dpsql.compiler.split.release_block import ErrorBar
from dpsql.errors import InvalidParameter, Unsupported
from dpsql.privacy.noise import Gaussian, Laplace, Mechanism, scale_of, standard_error
from dpsql.privacy.release_spec import ReleaseSpec
from dpsql.privacy.tails import find_least_integer, gaussian_tail, laplace_tail
from dpsql.schema.model import Schema, Table, unit_columns_of
from dpsql.types import Kind, Type

NoiseTerms = tuple[tuple[Fraction, Mechanism], ...]
"""The noise of an answer: independent draws, each times what one of its steps is worth in the answer's units."""

FloatArray = npt.NDArray[np.float64]


def calibrated_noise(recipe: Linear, calibrated: CalibratedPlan) -> NoiseTerms:
    return release_noise(recipe, calibrated.columns, calibrated.spec)


def release_noise(recipe: Linear | BlockMean, columns: Sequence[str], spec: ReleaseSpec) -> NoiseTerms:
    """The noise of an answer that is worked out from a release with these columns."""
    grids = dict(zip(columns, spec.grids, strict=True))
    mechanisms = {columns[index]: bundle.mechanism for bundle in spec.bundles for index in bundle.columns}
    return tuple((abs(c * grids[cell]), mechanisms[cell]) for cell, c in recipe.terms)


def noise_stderr(noise: NoiseTerms) -> float:
    """The standard error of an answer."""
    return math.hypot(*(float(worth) * standard_error(mechanism) for worth, mechanism in noise))


# --- tails -----------------------------------------------------------------------------------------------------------


def miss_probability(noise: NoiseTerms, max_error: Fraction) -> Fraction:
    """At least the probability that the noise is beyond `most`, in the units of the answer."""
    if not noise:
        return Fraction(0)
    if len(noise) == 1:
        ((worth, mechanism),) = noise
        return min(Fraction(1), 2 * _mechanism_tail(mechanism, int(max_error / worth) + 1))
    return _sum_noise(noise).miss_probability(max_error)


def interval_half_width(noise: NoiseTerms, miss: Fraction) -> Fraction:
    """A bound that the noise is beyond with a probability of at most `miss`."""
    if not noise:
        return Fraction(0)
    if len(noise) == 1:
        ((worth, mechanism),) = noise
        return worth * (find_least_integer(lambda m: 2 * _mechanism_tail(mechanism, m) <= miss, 1) - 1)
    return _sum_noise(noise).interval_half_width(miss)


def _mechanism_tail(mechanism: Mechanism, m: int) -> Fraction:
    if m > 800 * scale_of(mechanism):
        return Fraction(1, 10**300)  # exp(-800) is less, and takes long to work out
    match mechanism:
        case Laplace(scale):
            return laplace_tail(scale, m)
        case Gaussian(sigma):
            return gaussian_tail(sigma, m)


LATTICE_POINTS = 1 << 9
"""Of the lattice on which draws are added up, per standard error: what rounding to it may hide is counted as error."""
LATTICE_REACH = 20
"""Standard errors that the lattice reaches to each side: beyond are less than 1e-9 of any draw."""
CONTINUOUS_STEPS = 1 << 10
"""Noise of more steps is as good as continuous: its steps are counted as error too."""
_LATTICE_ERROR = Fraction(1, 10**9)
"""Covers what is beyond the lattice, and the rounding of the convolution."""


class _NoiseSum:
    """The distribution of a sum of draws, on a lattice.

    Claim: each draw is moved by at most half a point of the lattice, and noise of more than FINE steps by one of its
    steps more; so the sum is moved by no more than `slack`.
    """

    def __init__(self, noise: NoiseTerms) -> None:
        self.point = noise_stderr(noise) / LATTICE_POINTS
        self.size = LATTICE_REACH * LATTICE_POINTS
        steps = (float(worth) if scale_of(mechanism) > CONTINUOUS_STEPS else 0.0 for worth, mechanism in noise)
        self.slack = sum(steps) + len(noise) * self.point / 2
        length = 1 << (2 * len(noise) * self.size).bit_length()
        product = np.ones(length // 2 + 1, np.complex128)
        for worth, mechanism in noise:
            product = product * np.fft.rfft(self._draw_weights(float(worth), mechanism), length)
        weights = np.clip(np.fft.irfft(product, length)[: 2 * len(noise) * self.size + 1], 0.0, None)
        center = len(noise) * self.size
        beyond = weights[center:] + weights[center::-1]
        self.tails = np.cumsum(beyond[::-1])[::-1]  # from each point on, to both sides

    def _draw_weights(self, worth: float, mechanism: Mechanism) -> FloatArray:
        scale = float(scale_of(mechanism))
        if scale > CONTINUOUS_STEPS:
            edges: FloatArray = (np.arange(2 * self.size + 2) - self.size - 0.5) * np.float64(
                self.point / (worth * scale)
            )
            return np.diff(_normal_cdf(edges) if isinstance(mechanism, Gaussian) else _laplace_cdf(edges))
        steps = np.arange(-int(40 * scale) - 40, int(40 * scale) + 41, dtype=np.float64)
        sizes = 0.5 * (steps / scale) ** 2 if isinstance(mechanism, Gaussian) else np.abs(steps) / scale
        weights = np.exp(-sizes)
        points = np.rint(np.clip(steps * worth / self.point, -self.size, self.size)).astype(np.int64) + self.size
        return np.bincount(points, weights / weights.sum(), 2 * self.size + 1).astype(np.float64)

    def miss_probability(self, max_error: Fraction) -> Fraction:
        first = math.floor((float(max_error) - self.slack) / self.point) + 1
        if first <= 0:
            return Fraction(1)
        tail = Fraction(float(self.tails[first])) if first < len(self.tails) else Fraction(0)
        return min(Fraction(1), tail + _LATTICE_ERROR)

    def interval_half_width(self, miss: Fraction) -> Fraction:
        within = np.flatnonzero(self.tails <= float(miss - _LATTICE_ERROR))
        first = int(within[0]) if len(within) else len(self.tails)
        return Fraction(self.slack + first * self.point)


@lru_cache(maxsize=64)
def _sum_noise(noise: NoiseTerms) -> _NoiseSum:
    return _NoiseSum(noise)


def _normal_cdf(edges: FloatArray) -> FloatArray:
    return np.array([0.5 * math.erfc(-edge / math.sqrt(2.0)) for edge in edges.tolist()])


def _laplace_cdf(edges: FloatArray) -> FloatArray:
    tails = 0.5 * np.exp(-np.abs(edges))
    return np.where(edges < 0, tails, 1.0 - tails)


# --- kinds of noise --------------------------------------------------------------------------------------------------


def compare_errors(laplace: Compiled, gaussian: Compiled) -> float | None:
    """How large the errors of a statement are with Laplace noise beside those that it has with Gaussian noise: the
    geometric mean over all that gets noise. None where they cannot be compared.

    Where an error was asked for, the two are compared by what they cost for it. Both are compiled without norms, so
    that what is said is the same before and after norms are chosen.
    """
    has_max_error = laplace.settings.max_error is not None
    if has_max_error and laplace.settings.epsilon != gaussian.settings.epsilon:
        return float(laplace.settings.epsilon / gaussian.settings.epsilon)
    steps, others = _steps_without_histograms(laplace), _steps_without_histograms(gaussian)
    if len(steps) != len(others):
        return None
    ratios: list[float] = []
    for ours, theirs in zip(steps, others, strict=True):
        sizes, other_sizes = _error_sizes(ours), _error_sizes(theirs)
        if len(sizes) != len(other_sizes):
            return None
        # In how many groups a unit is, is not known yet: somewhere between one and all. Of that middle, Laplace noise
        # hides the sum, and Gaussian noise the root.
        factor = theirs.spread**0.25
        ratios += [factor * size / other for size, other in zip(sizes, other_sizes, strict=True) if size and other]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def _steps_without_histograms(compiled: Compiled) -> list[ReleaseStep]:
    histograms = {norm.step.plan_hash for norm in compiled.norm_steps}
    return [step for step in compiled.steps if step.plan_hash not in histograms]


def _error_sizes(step: ReleaseStep) -> tuple[float, ...]:
    """What is compared between two kinds: standard errors of cells, units that a group needs, errors of choices."""
    calibrated = step.calibrated
    if calibrated.study is not None:
        return calibrated.study.noise_sizes
    if not calibrated.bundles:
        return tuple(map(float, calibrated.errors))
    grids = dict(zip(calibrated.columns, calibrated.grids, strict=True))
    sizes = [standard_error(b.mechanism) * float(grids[b.claim.cells[0]]) for b in calibrated.bundles]
    return (*sizes, *map(float, calibrated.errors[len(sizes) :]))


# --- the least epsilon -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ErrorGoal:
    """An answer's noise, and how far it may move it."""

    noise: NoiseTerms
    most: Fraction


# --- counts of distinct values ---------------------------------------------------------------------------------------
# One unit may bring many values, and noise hides all that it may bring: so a count of few values may be nothing but
# noise. How wide it is, and how many values there can be, is public, and told before the charge.

WIDE_ERROR = 20
"""Half of a 95 % interval, from which on a count of distinct values is warned of: fewer values than that are common."""


def distinct_count_warnings(
    measures: Sequence[Measure], recipes: Sequence[Recipe], calibrated: CalibratedPlan
) -> list[str]:
    """Warnings of counts whose error is wide, or wider than all values that there can be.

    Privacy: from the plan and its noise alone.
    """
    warnings: list[str] = []
    for measure, recipe in zip(measures, recipes, strict=True):
        if isinstance(measure, DistinctValues) and measure.function == "count" and isinstance(recipe, Linear):
            half = interval_half_width(calibrated_noise(recipe, calibrated), Fraction(1, 20))
            values, limit = _distinct_values_of(recipe, calibrated.gather)
            if values is not None and half >= values:
                warnings.append(_noisy_distinct_warning(measure, values, half))
            elif half >= WIDE_ERROR:
                warnings.append(_wide_distinct_warning(measure, half, limit))
    return warnings


_ID_WORDS = frozenset({"id", "sk", "key", "no", "nr", "number", "code", "fk", "uid", "uuid"})


def second_unit_notices(measures: Sequence[Measure], schema: Schema) -> list[str]:
    """Said of the statement and the schema: where a column is counted that by its name holds units, but not those that
    its rows belong to.

        COUNT(DISTINCT ship_customer), where rows belong to their bill_customer
    """
    args = [m.args for m in measures if isinstance(m, DistinctValues) and m.function == "count"]
    origins = {a[0].origin.partition(".") for a in args if isinstance(a[0], Column) and len(a) == 1 and a[0].origin}
    return [
        f'COUNT(DISTINCT {name}) does not count privacy units: a row of "{table.name}" belongs to that of '
        f'"{own[0]}", whomever else it names, and one unit may bring many values'
        for table_name, _, name in sorted(origins)
        if (table := schema.table(table_name)) is not None and (own := unit_columns_of(table))
        if _names_another_unit(table, name, own)
    ]


def _names_another_unit(table: Table, name: str, own: tuple[str, ...]) -> bool:
    """Whether it is an id of the unit's type, and of the same by its name: ship_customer beside bill_customer."""
    column, unit = table.column(name), table.column(own[0])
    if column is None or unit is None or len(own) > 1 or name in own or column.type != unit.type:
        return False
    subjects = [[word for word in n.lower().split("_") if word not in _ID_WORDS] for n in (name, own[0])]
    return all(subjects) and subjects[0][-1] == subjects[1][-1]


def _distinct_values_of(recipe: Linear, gather: Gather) -> tuple[int | None, int | None]:
    """How many values the domain has, and how many one unit may bring; None: not known, or any number."""
    cells = {cell for cell, _ in recipe.terms}
    for part in gather.parts:
        if isinstance(part, Sum) and isinstance(part.input, Distinct) and cells & set(cells_of(part)):
            return count_distinct_domain(part.input.input, part.input.columns), part.input.limit
    return None, None


def _noisy_distinct_warning(measure: DistinctValues, values: int, half: Fraction) -> str:
    return (
        f"COUNT(DISTINCT {measure.text}) is nothing but noise: it is at most {values}, and off by up to"
        f" {format_rounded_up(half)} (95 %); SELECT {measure.text}, COUNT(*) … GROUP BY {measure.text} shows which"
        " values are common"
    )


def _wide_distinct_warning(measure: DistinctValues, half: Fraction, limit: int | None) -> str:
    brings = f", since one unit may bring {limit:,} values" if limit is not None and limit > 1 else ""
    fewer = ", SET contributions.rows = 1 to let each unit bring one," if limit is not None and limit > 1 else ""
    return (
        f"COUNT(DISTINCT {measure.text}) is off by up to {format_rounded_up(half)} (95 %), however few values there are"
        f"{brings}; for few values{fewer} or count those that enough units have: SELECT COUNT(*) FROM (SELECT … GROUP"
        f" BY {measure.text}) AS t"
    )


def rounding_error(type_: Type) -> Fraction:
    """The most that an answer is moved by when it is put in its type."""
    if type_.is_integer:
        return Fraction(1, 2)
    return Fraction(1, 2 * 10 ** (type_.scale or 0)) if type_.kind is Kind.DECIMAL else Fraction(0)


def error_before_rounding(max_error: Fraction, type_: Type) -> Fraction:
    """How far noise may move an answer that is then rounded to its type, for it to be off by at most `most`.

    Whole numbers that are off by at most 5.7 are off by at most 5, so noise may move them by 5.5.
    """
    half = rounding_error(type_)
    return max_error if half == 0 else min(max_error, (max_error // (2 * half)) * 2 * half + half)


EPSILON_STEPS = 12 * 900
"""Of the grid of epsilons: all numbers of three digits from 0.000001 to 1000000."""


def epsilon_at(step: int) -> Fraction:
    """
    >>> [str(epsilon_at(place)) for place in (0, 1, 900 * 6, 900 * 6 + 1, EPSILON_STEPS)]
    ['1/1000000', '101/100000000', '1', '101/100', '1000000']
    """
    return (100 + step % 900) * Fraction(10) ** (step // 900 - 8)


def least_epsilon(goals_at: Callable[[Fraction], Sequence[ErrorGoal]], miss: Fraction) -> Fraction | None:
    """The least epsilon of the grid at which each goal is missed with a probability of at most `miss`; None: no one.

    Noise falls as epsilon grows. A rough figure says where to look, so that tails are worked out a few times only.
    """
    if not _meets_goals(
        goals_at(epsilon_at(EPSILON_STEPS)), miss
    ):  # what is wrong with the statement at any epsilon is told here
        return None

    def holds(position: int, test: Callable[[Sequence[ErrorGoal], Fraction], bool]) -> bool:
        try:
            return test(goals_at(epsilon_at(position)), miss)
        except InvalidParameter:
            return False  # an epsilon that is too small for the noise to be drawn

    rough = _bisect_least(lambda position: holds(position, _roughly_meets_goals), -1, EPSILON_STEPS)
    low, high, step = rough - 1, rough, 1
    while high < EPSILON_STEPS and not holds(high, _meets_goals):
        low, high, step = high, min(EPSILON_STEPS, high + step), 2 * step
    step = 1
    while low >= 0 and holds(low, _meets_goals):
        low, high, step = max(-1, low - step), low, 2 * step
    return epsilon_at(_bisect_least(lambda position: holds(position, _meets_goals), low, high))


def _bisect_least(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The least place above `low` for which a monotone condition holds, which it does at `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _meets_goals(goals: Sequence[ErrorGoal], miss: Fraction) -> bool:
    return all(miss_probability(goal.noise, goal.most) <= miss for goal in goals)


def _roughly_meets_goals(goals: Sequence[ErrorGoal], miss: Fraction) -> bool:
    factor = NormalDist().inv_cdf(1.0 - float(miss) / 2.0)
    return all(factor * noise_stderr(goal.noise) <= goal.most for goal in goals)


# --- what was asked for ----------------------------------------------------------------------------------------------

MeasureKey = tuple[str, int]
"""An answer: its release, and its place among the release's measures."""


@dataclass(frozen=True)
class ErrorAims:
    """How far answers may be off, each with this confidence."""

    errors: tuple[tuple[MeasureKey, Fraction], ...]
    confidence: Fraction


@dataclass(frozen=True)
class LinearAnswer:
    """An answer that is a sum of noisy cells of a step; of grouping sets, of other cells in each."""

    step: int
    recipes: tuple[Linear, ...]

    def error_goals(self, calibrated: CalibratedPlan, max_error: Fraction) -> list[ErrorGoal]:
        return [
            ErrorGoal(calibrated_noise(recipe, calibrated), error_before_rounding(max_error, recipe.type))
            for recipe in self.recipes
        ]


def find_linear_answers(
    tables: Sequence[TableStep], bars: tuple[ErrorBar | None, ...], settings: Settings
) -> dict[MeasureKey, LinearAnswer]:
    """All answers of a statement; refused where the error of one of them would depend on values."""
    setting = "max_error" if settings.max_error is not None else "max_relative_error"
    if any(bar is not None and bar.measure is None for bar in bars):
        raise _value_dependent_error(
            setting, "what is computed from them", "Ask for the aggregates, and compute from the answers."
        )
    linear_answers: dict[MeasureKey, LinearAnswer] = {}
    for table in tables:
        for index, answer in enumerate(table.measures):
            if table.counted is not None and not table.counted.asked and index == table.counted.measure:
                continue
            linear_answers[table.name, index] = LinearAnswer(answer.step, require_linear(answer.recipe, setting))
    if setting == "max_relative_error" and not any(bars):
        raise Unsupported(
            "max_relative_error is for COUNT and SUM in the outermost SELECT",
            hint="Write SELECT COUNT(*) … without a SELECT around it, or use max_error.",
        )
    return linear_answers


def even_aims(answers: dict[MeasureKey, LinearAnswer], settings: Settings) -> ErrorAims:
    """Every answer may be off by `max_error`."""
    assert settings.max_error is not None
    return ErrorAims(tuple((name, settings.max_error) for name in answers), settings.confidence)


def require_linear(
    recipe: Recipe | SelectedBins | CountedValues | RankedValues | RandomizedResponses, setting: str
) -> tuple[Linear, ...]:
    divide = "Ask for SUM and COUNT, and divide what is answered."
    match recipe:
        case Linear():
            return (recipe,)
        case BySet(recipes):
            return tuple(linear for of_set in recipes for linear in require_linear(of_set, setting))
        case CountedValues(SharesPosterior()) | BetaPosterior() | NormalPosterior():
            raise _value_dependent_error(setting, "posteriors", "SET epsilon instead.")
        case CountedValues(Frequent(shape="histogram"), Linear() as counts) if setting == "max_error":
            return (counts,)
        case Mean():
            raise _value_dependent_error(setting, "averages", divide)
        case Variance() | Paired():
            raise _value_dependent_error(setting, "variances, correlations and their like", divide)
        case Evidence():
            raise _value_dependent_error(setting, "BOOL_AND and BOOL_OR", "Ask for COUNT(*) FILTER (WHERE …).")
        case Debiased() | DebiasedMean():
            raise _value_dependent_error(setting, "debiased answers", "SET epsilon instead.")
        case BlockMean():
            raise _value_dependent_error(
                setting, "BLOCKWISE", "SET epsilon instead; EXPLAIN shows the error that is noise's."
            )
        case RandomizedResponses():
            raise _value_dependent_error(setting, "randomized answers", "RANDOMIZED has an epsilon of its own.")
        case SelectedBins():
            hint = "SET epsilon instead; EXPLAIN shows the error in ranks."
            raise _value_dependent_error(setting, "quantiles, MIN, MAX and draws", hint)
        case CountedValues():
            raise _value_dependent_error(setting, "the most frequent values", "Ask for COUNT(*) with GROUP BY.")
        case RankedValues():
            raise _value_dependent_error(setting, "the best values", "Ask for their scores with GROUP BY.")


def _value_dependent_error(setting: str, what: str, hint: str) -> Unsupported:
    return Unsupported(f"{setting} is for COUNT and SUM; the error of {what} depends on the values", hint=hint)


def unreachable_error(settings: Settings) -> InvalidParameter:
    return InvalidParameter(
        "no epsilon makes the error that small",
        hint="SET max_error to a larger value."
        if settings.max_error is not None
        else "SET max_relative_error to a larger value.",
    )
