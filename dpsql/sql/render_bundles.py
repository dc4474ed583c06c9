"""The cells of bundles as DuckDB SQL: components are formed, weighted and divided per row, then summed."""

from __future__ import annotations

from typing import assert_never

from dpsql.plan.bundles import (
    Bundle,
    CountBundle,
    CovarianceBundle,
    MomentBundle,
    SumBundle,
    VarianceBundle,
    step_width,
)
from dpsql.plan.expr import Quantise
from dpsql.sql.literals import quote_identifier
from dpsql.sql.render_expr import render_expr


def render_bundles(bundles: tuple[Bundle, ...], weight: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns to compute for each row (the values on their grids), and the sums over them, both with their names."""
    computed: list[str] = []
    cells: list[str] = []
    for number, bundle in enumerate(bundles, 1):
        names = tuple(f"v{number}" + "_" * index for index in range(len(bundle.values)))
        computed += [f"{sql} AS {name}" for sql, name in zip(_render_row_values(bundle), names, strict=True)]
        sums = _render_sums(bundle, weight, names)
        cells += [f"{sql} AS {quote_identifier(cell)}" for cell, sql in zip(bundle.cells, sums, strict=True)]
    return tuple(computed), tuple(cells)


def is_row_count(bundle: Bundle) -> bool:
    return isinstance(bundle, CountBundle) and bundle.present is None


def render_component(value: str, weight: str | None, shift: int, non_negative: bool) -> str:
    """Toward zero: `//` truncates, and `>>` does the same, cheaper, where nothing is negative."""
    product = value if weight is None else weight if value == "1" else f"({value} * {weight})"
    if shift == 0:
        return product
    return f"({product} >> {shift})" if non_negative else f"({product} // {1 << shift})"


def _render_row_values(bundle: Bundle) -> tuple[str, ...]:
    """What is computed for each row: values on their grid, or centred, z = 2v - (lower + upper)."""
    match bundle:
        case CountBundle() | SumBundle():
            return tuple(render_expr(value) for value in bundle.values)
        case MomentBundle():
            value = render_expr(bundle.value)
            return (value if bundle.null_as is None else f"COALESCE({value}, CAST({bundle.null_as} AS BIGINT))",)
        case VarianceBundle():
            return (_render_centered(bundle.value, 1),)
        case CovarianceBundle():
            return _render_centered(bundle.first, bundle.scales[0]), _render_centered(bundle.second, bundle.scales[1])
        case _:
            assert_never(bundle)


def _render_centered(value: Quantise, scale: int) -> str:
    # The distance from the lower bound first: far from 0, twice the value times the scale would not fit 64 bits.
    above = f"({render_expr(value)} - CAST({value.lower} AS BIGINT))"
    return f"({scale} * (2 * {above} - {step_width(value)}))"


def _render_sums(bundle: Bundle, weight: str | None, names: tuple[str, ...]) -> tuple[str, ...]:
    match bundle:
        case CountBundle():
            return (_render_count(bundle, weight),)
        case SumBundle():
            return (f"SUM({render_component(names[0], weight, bundle.shift, bundle.value.lower >= 0)})",)
        case MomentBundle():
            return _render_moments(bundle, weight, names[0])
        case VarianceBundle():
            (z,) = names
            return _sum_components(bundle, weight, ((_square_rest(bundle.max_width, z), True), (f"({z} * {z})", True),
                                                 (_scaled_value(bundle.max_width, z), False)))  # fmt: skip
        case CovarianceBundle():
            # Only rows where both are there: a component of one alone would count what the others do not.
            a, b = (f"(CASE WHEN {other} IS NOT NULL THEN {value} END)" for value, other in (names, names[::-1]))
            return _sum_components(bundle, weight, (
                (_square_rest(bundle.max_width, a), True), (f"({a} * {a})", True), (_scaled_value(bundle.max_width, a), False),
                (_scaled_value(bundle.max_width, b), False), (f"({b} * {b})", True), (f"({a} * {b})", False),
            ))  # fmt: skip
        case _:
            assert_never(bundle)


def _square_rest(wide: int, z: str) -> str:
    return f"(CAST({wide**2} AS BIGINT) - {z} * {z})"


def _scaled_value(wide: int, z: str) -> str:
    return f"(CAST({wide} AS BIGINT) * {z})"


def _sum_components(
    bundle: Bundle, weight: str | None, components: tuple[tuple[str, bool], ...]
) -> tuple[str, ...]:
    """The sum of each component, which is never negative where its mark says so."""
    return tuple(f"SUM({render_component(sql, weight, bundle.shift, positive)})" for sql, positive in components)


def _render_count(bundle: CountBundle, weight: str | None) -> str:
    present = None if bundle.present is None else render_expr(bundle.present)
    if weight is None and bundle.shift == 0:
        return f"COUNT({present or '*'})"
    term = render_component("1", weight, bundle.shift, True)
    return f"SUM({term})" if present is None else f"SUM({term}) FILTER (WHERE {present} IS NOT NULL)"


def _render_moments(bundle: MomentBundle, weight: str | None, value: str) -> tuple[str, ...]:
    lower, upper = bundle.value.lower, bundle.value.upper
    if weight is None and bundle.shift == 0:
        # The same integers as the row-wise form below, at the price of one sum and one count.
        above = f"(SUM({value}) - COUNT({value}) * CAST({lower} AS HUGEINT))"
        below = f"(COUNT({value}) * CAST({upper} AS HUGEINT) - SUM({value}))"
        missing = f"((COUNT(*) - COUNT({value})) * CAST({upper - lower} AS HUGEINT))"
    else:
        above = f"SUM({render_component(f'({value} - {lower})', weight, bundle.shift, True)})"
        below = f"SUM({render_component(f'({upper} - {value})', weight, bundle.shift, True)})"
        whole = render_component(f"CAST({upper - lower} AS BIGINT)", weight, bundle.shift, True)
        missing = f"SUM({whole}) FILTER (WHERE {value} IS NULL)"
    return (above, below) if bundle.missing is None else (above, below, missing)
