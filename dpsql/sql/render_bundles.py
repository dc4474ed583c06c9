"""The cells of bundles as DuckDB SQL: components are formed, weighted and divided per row, then summed."""

from __future__ import annotations

from typing import assert_never

from dpsql.plan.measures import Bundle, CountBundle, MomentBundle, SumBundle
from dpsql.sql.literals import identifier
from dpsql.sql.render_expr import render_expr


def render_bundles(bundles: tuple[Bundle, ...], weight: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns to compute for each row (the values on their grids), and the sums over them, both with their names."""
    values = {b.cells: f"v{number}" for number, b in enumerate(bundles, 1) if not isinstance(b, CountBundle)}
    summed = [bundle for bundle in bundles if not isinstance(bundle, CountBundle)]
    computed = tuple(f"{_value(bundle)} AS {values[bundle.cells]}" for bundle in summed)
    cells = tuple(
        f"{sql} AS {identifier(cell)}"
        for bundle in bundles
        for cell, sql in zip(bundle.cells, _bundle(bundle, weight, values), strict=True)
    )
    return computed, cells


def counts_rows(bundle: Bundle) -> bool:
    return isinstance(bundle, CountBundle) and bundle.present is None


def component(value: str, weight: str | None, shift: int, non_negative: bool) -> str:
    """Toward zero: `//` truncates, and `>>` does the same, cheaper, where nothing is negative."""
    product = value if weight is None else weight if value == "1" else f"({value} * {weight})"
    if shift == 0:
        return product
    return f"({product} >> {shift})" if non_negative else f"({product} // {1 << shift})"


def _value(bundle: SumBundle | MomentBundle) -> str:
    value = render_expr(bundle.value)
    null_as = bundle.null_as if isinstance(bundle, MomentBundle) else None
    return value if null_as is None else f"COALESCE({value}, CAST({null_as} AS BIGINT))"


def _bundle(bundle: Bundle, weight: str | None, values: dict[tuple[str, ...], str]) -> tuple[str, ...]:
    match bundle:
        case CountBundle():
            return (_count(bundle, weight),)
        case SumBundle():
            return (f"SUM({component(values[bundle.cells], weight, bundle.shift, bundle.value.lower >= 0)})",)
        case MomentBundle():
            return _moments(bundle, weight, values[bundle.cells])
        case _:
            assert_never(bundle)


def _count(bundle: CountBundle, weight: str | None) -> str:
    present = None if bundle.present is None else render_expr(bundle.present)
    if weight is None and bundle.shift == 0:
        return f"COUNT({present or '*'})"
    one = component("1", weight, bundle.shift, True)
    return f"SUM({one})" if present is None else f"SUM({one}) FILTER (WHERE {present} IS NOT NULL)"


def _moments(bundle: MomentBundle, weight: str | None, value: str) -> tuple[str, ...]:
    lower, upper = bundle.value.lower, bundle.value.upper
    if weight is None and bundle.shift == 0:
        # The same integers as the row-wise form below, at the price of one sum and one count.
        above = f"(SUM({value}) - COUNT({value}) * CAST({lower} AS HUGEINT))"
        below = f"(COUNT({value}) * CAST({upper} AS HUGEINT) - SUM({value}))"
        missing = f"((COUNT(*) - COUNT({value})) * CAST({upper - lower} AS HUGEINT))"
    else:
        above = f"SUM({component(f'({value} - {lower})', weight, bundle.shift, True)})"
        below = f"SUM({component(f'({upper} - {value})', weight, bundle.shift, True)})"
        whole = component(f"CAST({upper - lower} AS BIGINT)", weight, bundle.shift, True)
        missing = f"SUM({whole}) FILTER (WHERE {value} IS NULL)"
    return (above, below) if bundle.missing is None else (above, below, missing)
