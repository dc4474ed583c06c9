"""Turn measures into bundles of integer cells, and say how each measure is worked out from them.

Measures of one argument share its bundle (`sums`), those of one pair of arguments theirs, equal sums are computed and
paid once, and COUNT(*) joins the first bundle that can tell it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from dpsql.analysis.domains import Domains, derive_domains
from dpsql.analysis.values import domain_of
from dpsql.errors import InternalError
from dpsql.plan.bundles import MAX_WIDTH, Bundle, CountBundle
from dpsql.plan.expr import Column, Expr, Quantise
from dpsql.plan.measures import (
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
from dpsql.plan.recipes import Evidence, Linear, Paired, Recipe, Terms
from dpsql.plan.relations import Rows
from dpsql.rewrite.grids import declared_grids, quantize_arg
from dpsql.rewrite.need_bounds import unbounded_values_error
from dpsql.rewrite.posteriors import make_posterior
from dpsql.rewrite.sums import (
    ROWS_CELL,
    PairSums,
    ArgumentSums,
    make_mean_sums,
    combine_terms,
    make_constant_sums,
    make_count_sums,
    make_pair_count_sums,
    make_pair_product_sums,
    cell_term,
    make_variance_sums,
    make_total_sums,
)
from dpsql.types import BIGINT, sum_type

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


def form_bundles(measures: tuple[Measure, ...], node: Rows, assume: int | None) -> FormedBundles:
    """`node` is the relation of the release's input rows, sanitised; `assume` the rows that a unit counts for."""
    return _BundleFormer(measures, node, assume).form_all()


_SingleArgument = CountValues | SumValues | MeanValues | VarianceValues | Truth | ConjugatePosterior
_PairKey = tuple[Expr, Expr]


class _BundleFormer:
    def __init__(self, measures: tuple[Measure, ...], node: Rows, assume: int | None) -> None:
        self._measures, self._node, self._assume = measures, node, assume
        self._env: Domains = derive_domains(node, assume)
        self._grids = declared_grids(node)
        self._wants_rows = any(isinstance(m, CountRows) for m in measures)
        self._rows: Terms | None = None
        self._single = {m.arg: None for m in measures if isinstance(m, _SingleArgument)}
        self._sums: dict[Expr, ArgumentSums] = {}
        self._pairs: dict[_PairKey, PairSums] = {}
        self._distinct: dict[tuple[Expr, ...], ArgumentSums] = {}
        self._units: dict[Expr | None, str] = {}

    def form_all(self) -> FormedBundles:
        for number, arg in enumerate(self._single, 1):
            self._sums[arg] = self._bundle_argument(arg, f"c{number}")
            self._rows = self._rows or self._sums[arg].rows
        for number, pair in enumerate({_pair_key(m): None for m in self._measures if isinstance(m, PairValues)}, 1):
            self._pairs[pair] = self._bundle_pair(pair, f"p{number}")
            self._rows = self._rows or self._pairs[pair].rows
        for number, args in enumerate({m.args: None for m in self._measures if isinstance(m, DistinctValues)}, 1):
            self._distinct[args] = self._bundle_distinct(args, f"d{number}")
        for measure in self._measures:
            if isinstance(measure, CountDistinctUnits) and measure.where not in self._units:
                number = len(self._units) + 1
                self._units[measure.where] = UNITS_CELL if measure.where is None else f"{UNITS_CELL}{number}"
        bundles = [s.bundle for s in self._sums.values()] + [pair.bundle for pair in self._pairs.values()]
        if self._wants_rows and self._rows is None:
            bundles.append(CountBundle(ROWS_CELL, None))
            self._rows = cell_term(ROWS_CELL)
        return FormedBundles(
            bundles=tuple(dict.fromkeys(bundles)),
            recipes=tuple(self._make_recipe(measure) for measure in self._measures),
            units=tuple(UnitCount(cell, where) for where, cell in self._units.items()),
            distinct=tuple(DistinctSums(_column_names(args), (sums.bundle,)) for args, sums in self._distinct.items()),
        )

    # --- bundles -----------------------------------------------------------------------------------------------------

    def _bundle_argument(self, arg: Expr, cell: str) -> ArgumentSums:
        own_measures = [m for m in self._measures if isinstance(m, _SingleArgument) and m.arg == arg]
        nullable = domain_of(arg, self._env).nullable
        if all(isinstance(m, CountValues) for m in own_measures):
            return make_count_sums(arg, nullable, cell)
        squares = any(_needs_squares(m) for m in own_measures)
        value = self._quantize_arg(arg, next(m for m in own_measures if not isinstance(m, CountValues)), squares)
        if value.lower == value.upper:
            return make_constant_sums(value, make_count_sums(arg, nullable, cell))
        if squares:
            return make_variance_sums(value, nullable, cell)
        with_rows = self._wants_rows and self._rows is None
        if all(isinstance(m, SumValues) for m in own_measures):
            if not with_rows:
                return make_total_sums(value, cell)
            if nullable and value.lower <= 0 <= value.upper:
                # A row without a value adds nothing to the sum, and is counted.
                return make_mean_sums(value, nullable, cell, with_rows, null_as=0)
        return make_mean_sums(value, nullable, cell, with_rows)

    def _bundle_pair(self, pair: _PairKey, cell: str) -> PairSums:
        own_measures = [m for m in self._measures if isinstance(m, PairValues) and _pair_key(m) == pair]
        nullable = any(domain_of(arg, self._env).nullable for arg in pair)
        if all(m.function is PairFunction.COUNT for m in own_measures):
            return make_pair_count_sums(*pair, nullable, cell)
        first, second = (self._quantize_arg(arg, own_measures[0], squares=True) for arg in pair)
        return make_pair_product_sums(first, second, nullable, cell)

    def _bundle_distinct(self, args: tuple[Expr, ...], cell: str) -> ArgumentSums:
        """Distinct rows hold no NULL in their first column."""
        own_measures = [m for m in self._measures if isinstance(m, DistinctValues) and m.args == args]
        count = ArgumentSums(CountBundle(cell, None), cell_term(cell))
        if all(m.function == "count" for m in own_measures):
            return count
        value = self._quantize_arg(args[0], next(m for m in own_measures if m.function != "count"), squares=False)
        if value.lower == value.upper:
            return make_constant_sums(value, count)
        if all(m.function == "sum" for m in own_measures):
            return make_total_sums(value, cell)
        return make_mean_sums(value, False, cell, with_rows=False)

    def _quantize_arg(self, arg: Expr, measure: Measure, squares: bool) -> Quantise:
        domain = domain_of(arg, self._env)
        if not (domain.is_bounded and domain.type.is_number):
            raise unbounded_values_error(arg, measure, self._node, self._assume)
        grid = self._grids.get(arg.name) if isinstance(arg, Column) else None
        return quantize_arg(arg, domain, grid, MAX_WIDTH if squares else None)

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
