"""Turn measures into bundles of integer cells, and say how each measure is worked out from them.

Measures of one argument share its bundle (`ArgumentSums`), those of one pair of arguments theirs, equal sums are
computed and paid once, and COUNT(*) joins the first bundle that can tell it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import assert_never

from dpsql.compiler.analysis.domains import Domains, derive_domains, domain_of
from dpsql.compiler.analysis.units import derive_unit_facts
from dpsql.compiler.plan.bundles import (
    MAX_WIDTH,
    Bundle,
    CountBundle,
    CovarianceBundle,
    MomentBundle,
    SumBundle,
    VarianceBundle,
    step_width,
)
from dpsql.compiler.plan.clipped_sums import EXACT_DOUBLES, ClippedCell
from dpsql.compiler.plan.estimators import (
    BetaPosterior,
    Evidence,
    Linear,
    Mean,
    Moments,
    NormalPosterior,
    Paired,
    Recipe,
    Terms,
    Variance,
)
from dpsql.compiler.plan.expressions import And, Case, Column, Expr, IsNull, Literal, Not, Quantise
from dpsql.compiler.plan.measures import (
    Best,
    Blockwise,
    ConjugatePosterior,
    CountDistinctUnits,
    CountRows,
    CountValues,
    DistinctValues,
    Extreme,
    Frequent,
    MeanValues,
    Measure,
    PairFunction,
    PairValues,
    Posterior,
    Quantile,
    SharesPosterior,
    SumValues,
    Truth,
    VarianceValues,
)
from dpsql.compiler.plan.relations import Rows
from dpsql.compiler.rewrite.grids import (
    MAX_MAGNITUDE,
    declared_grids,
    quantize_about_center,
    quantize_arg,
    unbounded_values_error,
)
from dpsql.compiler.rewrite.linear_arguments import LinearArgument, LinearMeasure, read_off, share_arguments
from dpsql.errors import InternalError, Span, TypeMismatch
from dpsql.schema.model import Domain
from dpsql.types import BIGINT, sum_type

# The bundle of one argument, and how its cells give the argument's count, sum, mean and variance.
#
#     SUM(x) alone              →  one cell, v
#     COUNT(x) alone            →  one cell, 1 where x is not NULL
#     COUNT(*), SUM(x), AVG(x)  →  three cells: v - lower, upper - v, and upper - lower where x is NULL
#     VAR(x), and all of those  →  three cells of z = 2v - (lower + upper): W^2 - z^2, z^2, W z
#
# Where units have norms of their own, COUNT(*) beside COUNT(x) or AVG(x) is the sum of two cells with one norm: the
# rows with a value, and those without.
#
# Every argument gets one bundle, whatever is asked of it, so that it is paid once.

ROWS_CELL = "rows"

ClippedCells = tuple[ClippedCell, ...]
"""Cells that share one weight for each unit."""

WIDEST_BOUNDS = (-MAX_MAGNITUDE, MAX_MAGNITUDE)
"""Of the mean of values without bounds."""


@dataclass(frozen=True)
class ArgumentSums:
    """What the cells of one argument add up to; `first` and `second` are about `center`."""

    bundle: Bundle | None  # None where its cells are `clipped`
    count: Terms  # of its values
    first: Terms | None = None
    second: Terms | None = None
    center: Fraction = Fraction(0)
    lower: Fraction = Fraction(0)
    upper: Fraction = Fraction(0)
    rows: Terms | None = None  # of all rows, where the cells tell
    clipped: ClippedCells = ()

    @property
    def total(self) -> Terms:
        assert self.first is not None
        return combine_terms((self.first, Fraction(1)), (self.count, self.center))

    def map_values(self, argument: LinearArgument) -> ArgumentSums:
        """Of an argument whose base these are the sums of."""
        factor, offset = argument.factor, argument.offset
        lower, upper = sorted((self.lower * factor + offset, self.upper * factor + offset))
        return replace(
            self,
            first=None if self.first is None else combine_terms((self.first, factor)),
            second=None if self.second is None else combine_terms((self.second, factor**2)),
            center=self.center * factor + offset,
            lower=lower,
            upper=upper,
        )

    def move_values(self, center: Fraction) -> ArgumentSums:
        """Of values whose steps are counted from `center`."""
        return (
            replace(self, center=self.center + center, lower=self.lower + center, upper=self.upper + center)
            if center
            else self
        )

    @property
    def mean(self) -> Mean:
        assert self.first is not None
        return Mean(self.count, self.first, self.center, self.lower, self.upper)

    def make_variance(self, sample: bool, root: bool) -> Variance:
        assert self.first is not None and self.second is not None
        half = (self.upper - self.lower) / 2
        return Variance(self.count, self.first, self.second, half**2, sample, root)


def combine_terms(*parts: tuple[Terms, Fraction]) -> Terms:
    """The sum of terms, each times a number; a cell stands there once."""
    result: dict[str, Fraction] = {}
    for terms, factor in parts:
        for cell, coefficient in terms:
            result[cell] = result.get(cell, Fraction(0)) + coefficient * factor
    return tuple((cell, coefficient) for cell, coefficient in result.items() if coefficient)


def cell_term(cell: str) -> Terms:
    return ((cell, Fraction(1)),)


def make_count_sums(arg: Expr, nullable: bool, cell: str) -> ArgumentSums:
    """COUNT of something that is never NULL counts rows."""
    if not nullable:
        return ArgumentSums(CountBundle(ROWS_CELL, None), cell_term(ROWS_CELL), rows=cell_term(ROWS_CELL))
    return ArgumentSums(CountBundle(cell, arg), cell_term(cell))


def make_total_sums(value: Quantise, cell: str) -> ArgumentSums:
    return ArgumentSums(
        SumBundle(cell, value), (), cell_term(cell), lower=value.lower * value.grid, upper=value.upper * value.grid
    )


def make_constant_sums(value: Quantise, count: ArgumentSums) -> ArgumentSums:
    """Every value is the same: its sum is a multiple of the count, and it has no variance."""
    number = value.lower * value.grid
    return ArgumentSums(count.bundle, count.count, (), (), number, number, number, count.rows)


def make_mean_sums(
    value: Quantise, nullable: bool, cell: str, with_rows: bool, null_as: int | None = None
) -> ArgumentSums:
    """With `with_rows`, rows without a value are counted too: in a cell of their own, or as `null_as` steps."""
    missing = f"{cell}_missing" if with_rows and nullable and null_as is None else None
    bundle = MomentBundle(f"{cell}_above", f"{cell}_below", missing, value, null_as=null_as)
    lower, upper = value.lower * value.grid, value.upper * value.grid
    count = combine_terms((cell_term(bundle.above) + cell_term(bundle.below), 1 / (upper - lower)))
    rows = combine_terms((count, Fraction(1)), (cell_term(missing) if missing else (), 1 / (upper - lower)))
    return ArgumentSums(bundle, count, cell_term(bundle.above), None, lower, lower, upper,
                rows if with_rows or not nullable else None)  # fmt: skip


def make_variance_sums(value: Quantise, nullable: bool, cell: str) -> ArgumentSums:
    bundle = VarianceBundle(f"{cell}_rest", f"{cell}_square", f"{cell}_linear", value)
    lower, upper = value.lower * value.grid, value.upper * value.grid
    half = (upper - lower) / 2
    count = cell_term(bundle.rest) + cell_term(bundle.square)
    return ArgumentSums(
        bundle,
        count,
        combine_terms((cell_term(bundle.linear), half)),
        combine_terms((cell_term(bundle.square), half**2)),
        (lower + upper) / 2,
        lower,
        upper,
        None if nullable else count,
    )


@dataclass(frozen=True)
class PairSums:
    """What the cells of two arguments add up to, over the rows where both are there."""

    bundle: Bundle
    count: Terms
    moments: tuple[Moments, Moments] | None  # in the order of the bundle; None where only the count is asked
    product: Terms
    rows: Terms | None


def make_pair_count_sums(first: Expr, second: Expr, nullable: bool, cell: str) -> PairSums:
    both = And((Not(IsNull(first)), Not(IsNull(second))))
    count = make_count_sums(Case(((both, Literal(1, BIGINT)),), Literal(None, BIGINT), BIGINT), nullable, cell)
    assert count.bundle is not None
    return PairSums(count.bundle, count.count, None, (), count.rows)


def make_pair_product_sums(
    first: Quantise, second: Quantise, nullable: bool, cell: str, centers: tuple[Fraction, Fraction]
) -> PairSums:
    """`centers` are where the steps of the values are counted from."""
    scales = (MAX_WIDTH // max(1, step_width(first)), MAX_WIDTH // max(1, step_width(second)))
    names = (f"{cell}_rest", f"{cell}_aa", f"{cell}_a", f"{cell}_b", f"{cell}_bb", f"{cell}_ab")
    bundle = CovarianceBundle(names, first, second, scales)
    rest, aa, a, b, bb, ab = names
    # A cell of a constant holds nothing but noise, and is not read.
    unit_a, unit_b = (
        bundle.max_width * value.grid / (2 * scale) if step_width(value) else Fraction(0)
        for value, scale in zip(bundle.values, scales, strict=True)
    )
    count = cell_term(rest) + cell_term(aa)
    return PairSums(
        bundle,
        count,
        (_make_moments(first, a, aa, unit_a, centers[0]), _make_moments(second, b, bb, unit_b, centers[1])),
        combine_terms((cell_term(ab), unit_a * unit_b)),
        None if nullable else count,
    )


def _make_moments(value: Quantise, linear: str, square: str, unit: Fraction, from_: Fraction) -> Moments:
    center = from_ + (value.lower + value.upper) * value.grid / 2
    return Moments(
        combine_terms((cell_term(linear), unit)),
        combine_terms((cell_term(square), unit**2)),
        center,
        step_width(value) * value.grid / 2,
    )


# What counts as true or false: truth values, and whole numbers that are known to be 0 or 1.


def require_flag(
    function_name: str, lower: Fraction | None, upper: Fraction | None, text: str, span: Span | None
) -> None:
    """Refuse numbers that may be others: they would be moved to 0 or 1, and counted for what they are not."""
    if lower is None or upper is None or not 0 <= lower <= upper <= 1:
        raise TypeMismatch(f"{function_name} needs truth values, or whole numbers that are 0 or 1",
                           hint=f"For example: {function_name}({text} > 0).", span=span)  # fmt: skip


# Posteriors as recipes over the cells of one argument: the sums that AVG and VAR have, and no others.
#
# Privacy: nothing else is asked of the rows, so the loss is that of AVG, or of VAR, of the same argument. How many rows
# there are comes from the noisy cells too.

ONE = Fraction(1)


def make_posterior(measure: ConjugatePosterior, sums: ArgumentSums) -> BetaPosterior | NormalPosterior:
    match measure.family:
        case "beta":
            return _make_beta_posterior(measure, sums)
        case "normal":
            return _make_normal_posterior(measure, sums)
        case _:
            assert_never(measure.family)


def _make_beta_posterior(measure: ConjugatePosterior, sums: ArgumentSums) -> BetaPosterior:
    require_flag("BETA_POSTERIOR", sums.lower, sums.upper, measure.text, measure.span)
    prior = dict(measure.prior)
    zeros = combine_terms((sums.count, ONE), (sums.total, -ONE))
    return BetaPosterior(sums.total, zeros, prior.get("alpha", ONE), prior.get("beta", ONE), measure.confidence,
                         measure.part)  # fmt: skip


def _make_normal_posterior(measure: ConjugatePosterior, sums: ArgumentSums) -> NormalPosterior:
    """Without a prior of one's own, every mean within the bounds and every variance is as likely as any other."""
    assert sums.first is not None and sums.second is not None
    prior, center, half = dict(measure.prior), (sums.lower + sums.upper) / 2, (sums.upper - sums.lower) / 2
    square = combine_terms((sums.second, 1 / half**2)) if half else ()
    return NormalPosterior(
        rest=combine_terms((sums.count, ONE), (square, -ONE)),
        square=square,
        linear=combine_terms((sums.first, 1 / half)) if half else (),
        center=center,
        half=half,
        prior_mean=prior.get("prior_mean", center),
        prior_n=prior.get("prior_n", Fraction(0)),
        prior_sd=prior.get("prior_sd"),
        sigma=prior.get("sigma"),
        confidence=measure.confidence,
        part=measure.part,
    )


UNITS_CELL = "units"


@dataclass(frozen=True)
class UnitCount:
    """Units to be counted in a cell: those with a row, or with one for which `where` holds."""

    cell: str
    where: Expr | None


@dataclass(frozen=True)
class DistinctSums:
    """Bundles over the distinct values of some columns."""

    columns: tuple[str, ...]
    bundles: tuple[Bundle, ...]


@dataclass(frozen=True)
class FormedBundles:
    bundles: tuple[Bundle, ...]
    recipes: tuple[Recipe, ...]  # one per measure, in order
    units: tuple[UnitCount, ...]
    distinct: tuple[DistinctSums, ...]
    clipped: tuple[ClippedCells, ...] = ()
    shared: Mapping[Expr, LinearArgument] = field(default_factory=dict)  # arguments that are read off others
    centers: Mapping[Expr, Fraction] = field(default_factory=dict)  # where steps are not counted from 0

    @property
    def form(self) -> tuple[str, ...]:
        """What distinguishes these cells from those that older versions made of the same measures."""
        centers = (f"{arg!r} about {center}" for arg, center in self.centers.items())
        shared = (f"{arg!r} is {of.factor} times {of.base!r} and {of.offset}" for arg, of in self.shared.items())
        return (*centers, *shared)


def form_bundles(
    measures: tuple[Measure, ...], node: Rows, assume: int | None, *, automatic: bool = False, capped: bool = False
) -> FormedBundles:
    """`node` is the relation of the release's input rows, sanitised; `assume` the rows that a unit counts for.

    With `automatic`, each cell of COUNT, SUM and AVG may have a norm of its own: where a unit's rows have no bound, and
    where the values that are added up have none. `capped` says that its rows have another bound than `assume`.
    """
    return _BundleFormer(measures, node, assume, automatic, capped).form_all()


_SingleArgument = CountValues | SumValues | MeanValues | VarianceValues | Truth | ConjugatePosterior
_PairKey = tuple[Expr, Expr]


class _BundleFormer:
    def __init__(
        self, measures: tuple[Measure, ...], node: Rows, assume: int | None, automatic: bool, capped: bool
    ) -> None:
        self._asked, self._node, self._assume = measures, node, assume
        self._automatic = automatic
        self._clips_rows = automatic and assume is None and not capped and derive_unit_facts(node).rows is None
        self._env: Domains = derive_domains(node, assume)
        # Counts and sums of one unit's rows have norms of their own, not the rows that a unit may count for.
        self._own_env: Domains = derive_domains(node) if automatic and assume is not None else self._env
        self._grids = declared_grids(node)
        self._wants_rows = any(isinstance(m, CountRows) for m in measures)
        self._rows: Terms | None = None
        several = len({measure.arg for measure in measures if isinstance(measure, LinearMeasure)}) > 1
        self._shared = share_arguments(measures, node, self._count_cells) if several else {}
        self._measures = tuple(part for measure in measures for part in self._read_off(measure))
        self._single = {m.arg: None for m in self._measures if isinstance(m, _SingleArgument)}
        self._centers: dict[Expr, Fraction] = {}
        self._sums: dict[Expr, ArgumentSums] = {}
        self._pairs: dict[_PairKey, PairSums] = {}
        self._distinct: dict[tuple[Expr, ...], ArgumentSums] = {}
        self._units: dict[Expr | None, str] = {}

    def form_all(self) -> FormedBundles:
        for number, arg in enumerate(self._single, 1):
            self._sums[arg] = self._bundle_argument(arg, f"c{number}")
            self._rows = self._rows or self._sums[arg].rows
        for arg, argument in self._shared.items():
            self._sums[arg] = self._sums[argument.base].map_values(argument)
        for number, pair in enumerate({_pair_key(m): None for m in self._measures if isinstance(m, PairValues)}, 1):
            self._pairs[pair] = self._bundle_pair(pair, f"p{number}")
            self._rows = self._rows or self._pairs[pair].rows
        for number, args in enumerate({m.args: None for m in self._measures if isinstance(m, DistinctValues)}, 1):
            self._distinct[args] = self._bundle_distinct(args, f"d{number}")
        for measure in self._measures:
            if isinstance(measure, CountDistinctUnits) and measure.where not in self._units:
                number = len(self._units) + 1
                self._units[measure.where] = UNITS_CELL if measure.where is None else f"{UNITS_CELL}{number}"
        bundles = [s.bundle for s in self._sums.values() if s.bundle is not None]
        bundles += [pair.bundle for pair in self._pairs.values()]
        clipped = [s.clipped for s in self._sums.values() if s.clipped]
        if self._wants_rows and self._rows is None:
            if self._clips_rows:
                clipped.append((ClippedCell(ROWS_CELL),))
            else:
                bundles.append(CountBundle(ROWS_CELL, None))
            self._rows = cell_term(ROWS_CELL)
        return FormedBundles(
            bundles=tuple(dict.fromkeys(bundles)),
            recipes=tuple(self._make_recipe(measure) for measure in self._asked),
            units=tuple(UnitCount(cell, where) for where, cell in self._units.items()),
            distinct=tuple(
                DistinctSums(_column_names(args), (sums.bundle,))
                for args, sums in self._distinct.items()
                if sums.bundle is not None
            ),
            clipped=_join_shared_cells(clipped),
            shared=self._shared,
            centers=self._centers,
        )

    # --- arguments that are read off others --------------------------------------------------------------------------

    def _read_off(self, measure: Measure) -> tuple[Measure, ...]:
        if not isinstance(measure, LinearMeasure) or measure.arg not in self._shared:
            return (measure,)
        return tuple(read_off(measure, self._shared[measure.arg]))

    def _count_cells(self, arg: Expr, measures: list[LinearMeasure]) -> int:
        """How many cells the measures of one argument have to be paid for; 0 where they cannot be asked.

        Cells of bounded values are one bundle together, whatever is asked of them: shared by two arguments or more it
        costs less than one bundle each. With v the larger of the values at the bounds, a SUM has noise for |v|, and
        one read off a bundle for at most √2 |v|; two bundles have 2 |v| each, or √2 |v| with Gaussian noise.
        """
        domain = domain_of(arg, self._env)
        if not domain.type.is_number or domain.values == ():
            return 0
        if not self._may_clip(arg, list(measures)):
            return int(domain.is_bounded or all(isinstance(m, CountValues) for m in measures))
        counts = any(not isinstance(m, SumValues) for m in measures)
        sums = any(not isinstance(m, CountValues) for m in measures)
        return counts + sums + any(isinstance(m, VarianceValues) for m in measures)

    # --- bundles -----------------------------------------------------------------------------------------------------

    def _bundle_argument(self, arg: Expr, cell: str) -> ArgumentSums:
        own_measures = [m for m in self._measures if isinstance(m, _SingleArgument) and m.arg == arg]
        nullable = domain_of(arg, self._env).nullable
        if self._may_clip(arg, own_measures):
            return self._clip_argument(arg, own_measures, nullable, cell)
        if all(isinstance(m, CountValues) for m in own_measures):
            return make_count_sums(arg, nullable, cell)
        squares = any(_needs_squares(m) for m in own_measures)
        measure = next(m for m in own_measures if not isinstance(m, CountValues))
        with_rows = self._wants_rows and self._rows is None
        if all(isinstance(m, SumValues) for m in own_measures):
            value = self._quantize_arg(arg, measure)
            if value.lower < value.upper and not with_rows:
                return make_total_sums(value, cell)
            if value.lower < value.upper and nullable and value.lower <= 0 <= value.upper:
                # A row without a value adds nothing to the sum, and is counted.
                return make_mean_sums(value, nullable, cell, with_rows, null_as=0)
        value, center = self._quantize_about_center(arg, measure, squares)
        if value.lower == value.upper:
            return make_constant_sums(value, make_count_sums(arg, nullable, cell)).move_values(center)
        if squares:
            return make_variance_sums(value, nullable, cell).move_values(center)
        return make_mean_sums(value, nullable, cell, with_rows).move_values(center)

    def _may_clip(self, arg: Expr, own_measures: list[_SingleArgument]) -> bool:
        """Whether the argument's cells have norms of their own: of COUNT, SUM and AVG, and of variances where values
        have no bounds."""
        if not self._automatic or any(not isinstance(m, LinearMeasure) for m in own_measures):
            return False
        domain = domain_of(arg, self._own_env)
        adds = any(not isinstance(m, CountValues) for m in own_measures)
        if adds and domain.values == ():  # NULL in every row
            return False
        squares = any(isinstance(m, VarianceValues) for m in own_measures)
        return (self._clips_rows and not squares) or (adds and domain.type.is_number and not domain.is_bounded)

    def _clip_argument(self, arg: Expr, own_measures: list[_SingleArgument], nullable: bool, cell: str) -> ArgumentSums:
        """COUNT is a cell of its own; so is SUM; AVG is both, with one weight: sums are about a centre near the mean,
        once that is chosen, and before it about the middle of bounds. A variance has squares about the same centre as
        well: of sums that one weight has scaled, the square of a mean stays below the mean of squares."""
        domain = domain_of(arg, self._own_env)
        counts_rows = self._clips_rows and not nullable
        counted = ClippedCell(ROWS_CELL) if counts_rows else ClippedCell(f"{cell}_count", arg)
        count = cell_term(counted.cell)
        rows = count if counts_rows else None
        counts: ClippedCells = (counted,)
        if not counts_rows and self._clips_rows and self._wants_rows and self._rows is None:
            # Rows with a value and those without have one norm together, that of all rows: COUNT(*) is their sum.
            without = Case(((IsNull(arg), Literal(1, BIGINT)),), Literal(None, BIGINT), BIGINT)
            counts = (counted, ClippedCell(f"{cell}_missing", without, beside=counted.cell))
            rows = count + cell_term(f"{cell}_missing")
        if all(isinstance(m, CountValues) for m in own_measures):
            return ArgumentSums(None, count, rows=rows, clipped=counts)
        if not domain.type.is_number:
            raise unbounded_values_error(arg, own_measures[0], self._node, self._assume)
        bounds = domain.bounds if domain.is_bounded else None
        if bounds is not None and max(map(abs, bounds)) > MAX_MAGNITUDE:
            bounds = None
        if bounds is not None and bounds[0] == bounds[1]:
            number = bounds[0]
            return ArgumentSums(None, count, (), (), number, number, number, rows, counts)
        lower, upper = bounds or WIDEST_BOUNDS
        if all(isinstance(m, SumValues) for m in own_measures):
            summed = ClippedCell(f"{cell}_sum", arg, False, bounds)
            return ArgumentSums(None, (), cell_term(summed.cell), lower=lower, upper=upper, clipped=(summed,))
        center = Fraction(0) if bounds is None else (lower + upper) / 2
        if domain.type.is_integer and abs(center) > EXACT_DOUBLES:
            center = Fraction(math.floor(center))
        summed = ClippedCell(f"{cell}_sum", arg, False, bounds, center, count=counted.cell)
        cells: ClippedCells = (*counts, summed)
        second = None
        if any(isinstance(m, VarianceValues) for m in own_measures):
            cells = (*cells, replace(summed, cell=f"{cell}_square", squared=True))
            second = cell_term(f"{cell}_square")
        return ArgumentSums(None, count, cell_term(summed.cell), second, center, lower, upper, rows, cells)

    def _bundle_pair(self, pair: _PairKey, cell: str) -> PairSums:
        own_measures = [m for m in self._measures if isinstance(m, PairValues) and _pair_key(m) == pair]
        nullable = any(domain_of(arg, self._env).nullable for arg in pair)
        if all(m.function is PairFunction.COUNT for m in own_measures):
            return make_pair_count_sums(*pair, nullable, cell)
        (first, first_center), (second, second_center) = (
            self._quantize_about_center(arg, own_measures[0], squares=True) for arg in pair
        )
        return make_pair_product_sums(first, second, nullable, cell, (first_center, second_center))

    def _bundle_distinct(self, args: tuple[Expr, ...], cell: str) -> ArgumentSums:
        """Distinct rows hold no NULL in their first column."""
        own_measures = [m for m in self._measures if isinstance(m, DistinctValues) and m.args == args]
        count = ArgumentSums(CountBundle(cell, None), cell_term(cell))
        if all(m.function == "count" for m in own_measures):
            return count
        measure = next(m for m in own_measures if m.function != "count")
        if all(m.function == "sum" for m in own_measures):
            value = self._quantize_arg(args[0], measure)
            return make_constant_sums(value, count) if value.lower == value.upper else make_total_sums(value, cell)
        value, center = self._quantize_about_center(args[0], measure, squares=False)
        if value.lower == value.upper:
            return make_constant_sums(value, count).move_values(center)
        return make_mean_sums(value, False, cell, with_rows=False).move_values(center)

    def _quantize_arg(self, arg: Expr, measure: Measure) -> Quantise:
        return quantize_arg(arg, self._bounded_domain(arg, measure), self._declared_grid(arg))

    def _quantize_about_center(self, arg: Expr, measure: Measure, squares: bool) -> tuple[Quantise, Fraction]:
        domain = self._bounded_domain(arg, measure)
        value, center = quantize_about_center(arg, domain, self._declared_grid(arg), MAX_WIDTH if squares else None)
        if center:
            self._centers[arg] = center
        return value, center

    def _bounded_domain(self, arg: Expr, measure: Measure) -> Domain:
        domain = domain_of(arg, self._env)
        if not (domain.is_bounded and domain.type.is_number):
            raise unbounded_values_error(arg, measure, self._node, self._assume)
        return domain

    def _declared_grid(self, arg: Expr) -> Fraction | None:
        return self._grids.get(arg.name) if isinstance(arg, Column) else None

    # --- recipes -----------------------------------------------------------------------------------------------------

    def _make_recipe(self, measure: Measure) -> Recipe:
        match measure:
            case CountRows():
                assert self._rows is not None
                return Linear(self._rows, BIGINT)
            case CountDistinctUnits(where):
                return Linear(cell_term(self._units[where]), BIGINT)
            case CountValues(arg):
                return Linear(self._sums[arg].count, BIGINT)
            case SumValues(arg):
                return Linear(self._sums[arg].total, sum_type(arg.type))
            case MeanValues(arg):
                return self._sums[arg].mean
            case VarianceValues(arg, sample, root):
                return self._sums[arg].make_variance(sample, root)
            case Truth(arg, every):
                return _make_evidence(self._sums[arg], every)
            case PairValues():
                return self._make_pair_recipe(measure)
            case DistinctValues(function, args):
                sums = self._distinct[args]
                if function == "mean":
                    return sums.mean
                return Linear(sums.count, BIGINT) if function == "count" else Linear(sums.total, sum_type(args[0].type))
            case ConjugatePosterior(arg):
                return make_posterior(measure, self._sums[arg])
            case Quantile() | Extreme() | Frequent() | Blockwise() | Best() | Posterior() | SharesPosterior():
                raise InternalError("this aggregate is a release or a part of its own")
            case _:
                assert_never(measure)

    def _make_pair_recipe(self, measure: PairValues) -> Recipe:
        sums = self._pairs[_pair_key(measure)]
        if measure.function is PairFunction.COUNT or sums.moments is None:
            return Linear(sums.count, BIGINT)
        first, second = sums.moments
        y, x = (first, second) if _pair_key(measure)[0] == measure.y else (second, first)
        return Paired(measure.function, sums.count, y, x, sums.product)


def _join_shared_cells(groups: list[ClippedCells]) -> tuple[ClippedCells, ...]:
    """Groups of cells that have one in common become one: a cell has one weight for each unit."""
    joined: list[dict[str, ClippedCell]] = []
    for group in groups:
        cells = {cell.cell: cell for cell in group}
        for other in [other for other in joined if other.keys() & cells.keys()]:
            joined.remove(other)
            cells = other | cells
        joined.append(cells)
    return tuple(tuple(cells.values()) for cells in joined)


def _needs_squares(measure: Measure) -> bool:
    if isinstance(measure, ConjugatePosterior):
        return measure.family == "normal"
    return isinstance(measure, VarianceValues)


def _make_evidence(sums: ArgumentSums, every: bool) -> Evidence:
    """BOOL_AND is false where there are zeros, BOOL_OR is true where there are ones."""
    zeros = combine_terms((sums.count, Fraction(1)), (sums.total, Fraction(-1)))
    return Evidence(zeros if every else sums.total, sums.count, found=not every)


def _pair_key(measure: PairValues) -> _PairKey:
    """One bundle for CORR(a, b) and CORR(b, a)."""
    first, second = sorted((measure.y, measure.x), key=repr)
    return first, second


def _column_names(args: tuple[Expr, ...]) -> tuple[str, ...]:
    if not all(isinstance(arg, Column) for arg in args):
        raise InternalError("distinct values are those of columns")
    return tuple(arg.name for arg in args if isinstance(arg, Column))
