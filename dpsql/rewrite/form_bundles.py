"""Turn measures into bundles of integer cells, and say how each measure is worked out from them.

    COUNT(*), SUM(x), AVG(x)  →  one bundle (v - lower, upper - v, upper - lower where x is NULL)
    SUM(x) alone              →  one cell, v
    COUNT(x) alone            →  one cell, 1 where x is not NULL

Measures of one argument share their cells, equal sums are computed and paid once, and COUNT(*) joins the
first pair: a row has norm upper - lower in all of its cells, so the third part costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from dpsql.analysis.domains import node_domains
from dpsql.analysis.values import domain_of
from dpsql.errors import UnboundedValues
from dpsql.plan.expr import Column, Expr, Quantise
from dpsql.plan.measures import (
    Bundle,
    CountBundle,
    CountDistinctUnits,
    CountRows,
    CountValues,
    MeanValues,
    Measure,
    MomentBundle,
    SumBundle,
    SumValues,
)
from dpsql.plan.recipes import Linear, Mean, Recipe
from dpsql.plan.relations import Rows
from dpsql.plan.walk import measure_args
from dpsql.rewrite.grids import declared_grids, quantise
from dpsql.schema.domain import Domain
from dpsql.types import BIGINT, DOUBLE, sum_type

UNITS_CELL = "units"


@dataclass(frozen=True)
class Bundled:
    bundles: tuple[Bundle, ...]
    recipes: tuple[Recipe, ...]  # one per measure, in order
    counts_units: bool


@dataclass(frozen=True)
class _Parts:
    """How the cells of one argument give its count of values and of all rows, and its sum."""

    bundle: Bundle
    values: tuple[tuple[str, Fraction], ...]
    rows: tuple[tuple[str, Fraction], ...] | None
    total: tuple[tuple[str, Fraction], ...] | None


def form_bundles(measures: tuple[Measure, ...], node: Rows) -> Bundled:
    """`node` is the relation of the release's input rows, sanitised."""
    env, grids = node_domains(node), declared_grids(node)
    parts: dict[Expr, _Parts] = {}
    args = list(dict.fromkeys(arg for measure in measures for arg in measure_args(measure)))
    summed = [arg for arg in args if any(m.arg == arg for m in measures if isinstance(m, SumValues | MeanValues))]
    wants_rows = any(isinstance(m, CountRows) for m in measures)
    for number, arg in enumerate(args, 1):
        domain = domain_of(arg, env)
        if arg in summed:
            _check_bounds(arg, domain, measures)
            with_rows = wants_rows and not any(p.rows for p in parts.values())
            grid = grids.get(arg.name) if isinstance(arg, Column) else None
            parts[arg] = _sum_parts(arg, domain, grid, measures, f"c{number}", with_rows)
        else:
            parts[arg] = _count_parts(arg, domain, f"c{number}")
    rows = next((p.rows for p in parts.values() if p.rows), None)
    bundles = [p.bundle for p in parts.values()]
    if wants_rows and rows is None:
        bundles.append(CountBundle("rows", None))
        rows = (("rows", Fraction(1)),)
    recipes = tuple(_recipe(measure, parts, rows) for measure in measures)
    return Bundled(_unique(bundles), recipes, any(isinstance(m, CountDistinctUnits) for m in measures))


def _unique(bundles: list[Bundle]) -> tuple[Bundle, ...]:
    return tuple(dict.fromkeys(bundles))


def _count_parts(arg: Expr, domain: Domain, cell: str) -> _Parts:
    """COUNT of something that is never NULL counts rows."""
    if not domain.nullable:
        one = (("rows", Fraction(1)),)
        return _Parts(CountBundle("rows", None), one, one, None)
    return _Parts(CountBundle(cell, arg), ((cell, Fraction(1)),), None, None)


def _sum_parts(
    arg: Expr, domain: Domain, grid: Fraction | None, measures: tuple[Measure, ...], cell: str, with_rows: bool
) -> _Parts:
    value = quantise(arg, domain, grid)
    if value.lower == value.upper:
        return _constant_parts(value, _count_parts(arg, domain, cell))
    only_sums = all(isinstance(m, SumValues) for m in measures if arg in measure_args(m))
    if only_sums and not with_rows:
        return _Parts(SumBundle(cell, value), (), None, ((cell, Fraction(1)),))
    missing, null_as = None, None
    if with_rows and domain.nullable:
        if only_sums and value.lower <= 0 <= value.upper:
            null_as = 0  # a row without a value adds nothing to the sum, and is counted
        else:
            missing = f"{cell}_missing"
    bundle = MomentBundle(f"{cell}_above", f"{cell}_below", missing, value, null_as=null_as)
    lower, upper = value.lower * value.grid, value.upper * value.grid
    one = 1 / (upper - lower)
    values = ((bundle.above, one), (bundle.below, one))
    rows = values + (((missing, one),) if missing else ())
    total = ((bundle.above, 1 + lower * one), (bundle.below, lower * one))
    return _Parts(bundle, values, rows if with_rows or not domain.nullable else None, total)


def _constant_parts(value: Quantise, counted: _Parts) -> _Parts:
    """Every value is the same: the sum is a multiple of the count."""
    constant = value.lower * value.grid
    total = tuple((cell, coefficient * constant) for cell, coefficient in counted.values)
    return _Parts(counted.bundle, counted.values, counted.rows, total)


def _check_bounds(arg: Expr, domain: Domain, measures: tuple[Measure, ...]) -> None:
    if domain.bounded and domain.type.is_number:
        return
    asked = next(m for m in measures if isinstance(m, SumValues | MeanValues) and m.arg == arg)
    function = "SUM" if isinstance(asked, SumValues) else "AVG"
    hint = f"Write {function}(CLIP({asked.text}, 0, 100)) with bounds of your own."
    if isinstance(arg, Column) and arg.origin and arg.origin.endswith(f".{asked.text}"):
        hint = f"Declare bounds for {arg.origin} in the schema. Or: {hint[0].lower()}{hint[1:]}"
    raise UnboundedValues("the values summed here have no bounds", hint=hint, span=asked.span)


def _recipe(measure: Measure, parts: dict[Expr, _Parts], rows: tuple[tuple[str, Fraction], ...] | None) -> Recipe:
    match measure:
        case CountRows():
            assert rows is not None
            return Linear(rows, BIGINT)
        case CountDistinctUnits():
            return Linear(((UNITS_CELL, Fraction(1)),), BIGINT)
        case CountValues(arg):
            return Linear(parts[arg].values, BIGINT)
        case SumValues(arg):
            total = parts[arg].total
            assert total is not None
            return Linear(total, sum_type(arg.type))
        case MeanValues(arg):
            return _mean(parts[arg])
        case _:
            assert_never(measure)


def _mean(parts: _Parts) -> Recipe:
    match parts.bundle:
        case MomentBundle(above, below, _, value):
            return Mean(above, below, value.lower * value.grid, value.upper * value.grid, DOUBLE)
        case _:  # every value is the same
            assert parts.total is not None
            (cell, count), (_, total) = parts.values[0], parts.total[0]
            return Mean(cell, cell, total / count, total / count, DOUBLE)
