"""Sums of units that are scaled down to a norm, and histograms of units by norm, as DuckDB SQL.

A heavy unit is one whose rows add up to more than a norm in absolute value: only heavy units have their sums formed
group by group, and their weights worked out. All other rows are summed as they stand.

    steps      the rows, with each cell's whole number of steps
    heavy      the ids of heavy units
    partials   the sums of each heavy unit, group by group
    weights    the weight of each heavy unit, from the norms of its own sums
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpsql.compiler.plan.clipped_sums import (
    MAX_PARTIAL,
    MAX_VALUE_STEPS,
    NORM_STEPS,
    WEIGHT_STEPS,
    ClippedCell,
    ClippedSum,
    CountNorms,
    Norm,
)
from dpsql.compiler.plan.expressions import UID
from dpsql.compiler.render.expressions import quote_identifier, render_double, render_expr

ROOT_MARGIN = "(1 + pow(2, -50))"
"""A root is rounded up by this and by one more: it is never below the true one (rule 4)."""


def render_clipped_sum(part: ClippedSum, rows: str, number: int, ctes: dict[str, str]) -> str:
    """The cells of the part by its keys; `rows` is where its input stands."""
    names = [f"x{index}" for index in range(1, len(part.cells) + 1)]
    keys = [quote_identifier(key) for key in part.keys]
    unit = [] if part.copies is not None else [UID]
    steps = f"steps{number}"
    columns = [f"{_render_cell_steps(cell)} AS {name}" for cell, name in zip(part.cells, names, strict=True)]
    ctes[steps] = f"NOT MATERIALIZED (SELECT {', '.join([*unit, *keys, *columns])} FROM {rows})"
    if part.copies is not None:
        source = _scale_rows(part, steps, names)
    else:
        source = _scale_units(part, steps, names, number, ctes)
    sums = [f"SUM({name}) AS {quote_identifier(cell.cell)}" for cell, name in zip(part.cells, names, strict=True)]
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join([*keys, *sums])} FROM {source}{group}"


def _render_cell_steps(cell: ClippedCell) -> str:
    if cell.value is not None:
        return f"COALESCE({render_expr(cell.value)}, CAST(0 AS BIGINT))"
    one = f"CAST({cell.row_steps} AS BIGINT)"
    return (
        one if cell.arg is None else f"CASE WHEN {render_expr(cell.arg)} IS NULL THEN CAST(0 AS BIGINT) ELSE {one} END"
    )


def _scale_units(part: ClippedSum, steps: str, names: list[str], number: int, ctes: dict[str, str]) -> str:
    heavy, partials, weights = f"heavy{number}", f"partials{number}", f"weights{number}"
    keys = [quote_identifier(key) for key in part.keys]
    beyond = " OR ".join(f"SUM(abs({name})) > {NORM_STEPS}" for name in names)
    ctes[heavy] = f"MATERIALIZED (SELECT {UID} FROM {steps} GROUP BY {UID} HAVING {beyond})"
    sums = [f"{_limit_partial(f'SUM({name})')} AS {name}" for name in names]
    grouped = ", ".join([UID, *keys])
    ctes[partials] = (
        f"MATERIALIZED (SELECT {', '.join([grouped, *sums])} FROM {steps} SEMI JOIN {heavy} USING ({UID}) "
        f"GROUP BY {grouped})"
    )
    shares = (f"{WEIGHT_STEPS * NORM_STEPS} // GREATEST({_render_norm(part.norm, name)}, 1)" for name in names)
    ctes[weights] = (
        f"MATERIALIZED (SELECT {UID}, LEAST({WEIGHT_STEPS}, {', '.join(shares)}) AS w FROM {partials} GROUP BY {UID})"
    )
    light = ", ".join([*keys, *names])
    # Toward zero, and after the unit's sum: `//` truncates.
    scaled = ", ".join([*keys, *(f"({name} * w) // {WEIGHT_STEPS} AS {name}" for name in names)])
    return (
        f"(SELECT {light} FROM {steps} ANTI JOIN {heavy} USING ({UID}) UNION ALL "
        f"SELECT {scaled} FROM {partials} JOIN {weights} USING ({UID}))"
    )


def _scale_rows(part: ClippedSum, steps: str, names: list[str]) -> str:
    """Each copy of a row on its own, to its part of the norm: together the copies are within it."""
    assert part.copies is not None
    keys = [quote_identifier(key) for key in part.keys]
    bound = WEIGHT_STEPS * (NORM_STEPS // part.copies)
    shares = ", ".join(f"{bound} // GREATEST(CAST(abs({name}) AS HUGEINT), 1)" for name in names)
    weighted = f"(SELECT *, LEAST({WEIGHT_STEPS}, {shares}) AS w FROM {steps})"
    scaled = ", ".join([*keys, *(f"(CAST({name} AS HUGEINT) * w) // {WEIGHT_STEPS} AS {name}" for name in names)])
    return f"(SELECT {scaled} FROM {weighted})"


def _limit_partial(total: str) -> str:
    return f"CAST(GREATEST(LEAST({total}, {MAX_PARTIAL}), {-MAX_PARTIAL}) AS HUGEINT)"


def _render_norm(norm: Norm, name: str) -> str:
    """Of a unit's sums, at least: roots are rounded up."""
    if norm is Norm.L1:
        return f"SUM(abs({name}))"
    return f"CAST(ceil(sqrt(CAST(SUM({name} * {name}) AS DOUBLE)) * {ROOT_MARGIN}) AS HUGEINT) + 1"


# --- histograms ------------------------------------------------------------------------------------------------------


def render_count_norms(part: CountNorms, rows: str) -> str:
    """Units by the bin of their norm. Empty bins are added by the list of all bins."""
    bins = _render_unit_bins(part, rows)
    name, cell = quote_identifier(part.bin), quote_identifier(part.cell)
    first, last = part.binning.first, part.binning.last
    limited = f"CAST(GREATEST(LEAST(bin, {last}), {first}) AS BIGINT)"
    return f"SELECT {limited} AS {name}, COUNT(*) AS {cell} FROM ({bins}) WHERE bin IS NOT NULL GROUP BY {limited}"


def _render_unit_bins(part: CountNorms, rows: str) -> str:
    """One row per unit with its bin, NULL where its norm is 0."""
    if part.distinct is not None:
        columns = ", ".join([UID, *(quote_identifier(name) for name in part.distinct)])
        rows = f"(SELECT DISTINCT {columns} FROM {rows})"
    spread = [quote_identifier(name) for name in part.spread]
    if part.copies is not None:
        return _render_row_bins(part, part.copies, rows)
    if part.arg is not None:
        partials = _sum_on_own_grids(part, spread, rows)
    else:
        source = f"(SELECT {', '.join([UID, *spread, 'CAST(1 AS BIGINT) AS x'])} FROM {rows})"
        partials = _sum_steps(spread, source, f"{_bin_offset(part, part.grids[0])} AS bin_offset")
    term = "abs(s)" if part.norm is Norm.L1 else "s * s"
    norms = f"SELECT SUM({term}) AS n, MAX(bin_offset) AS bin_offset FROM {partials} GROUP BY {UID}"
    return f"SELECT {_render_bin(part, 'n', 'bin_offset')} AS bin FROM ({norms})"


def _sum_steps(spread: list[str], source: str, offset: str) -> str:
    """A unit's sum in each group."""
    grouped = ", ".join([UID, *spread])
    return f"(SELECT {grouped}, {_limit_partial('SUM(x)')} AS s, {offset} FROM {source} GROUP BY {grouped})"


def _sum_on_own_grids(part: CountNorms, spread: list[str], rows: str) -> str:
    """Sums of a column whose size is not known: each unit is on the finest of the public grids that holds it.

    A unit is held where its largest value times the number of its values is: then no row is cut off, nor any sum. Both
    are functions of the bag of its rows. On the last grid all are held, and rows beyond it are moved to its end.
    """
    assert part.arg is not None
    value = f"(CAST({render_expr(part.arg)} AS DOUBLE) - {render_double(part.center)})"
    values = f"(SELECT {', '.join([UID, *spread, f'CASE WHEN isfinite({value}) THEN {value} END AS v'])} FROM {rows})"
    reach = f"(SELECT {UID}, MAX(abs(v)) * COUNT(v) AS reach FROM {values} GROUP BY {UID})"
    inverse = _by_reach(part, lambda grid: render_double(1 / grid))
    offset = _by_reach(part, lambda grid: _bin_offset(part, grid))
    levels = f"(SELECT {UID}, {inverse} AS inverse, {offset} AS bin_offset FROM {reach})"
    steps = f"LEAST(GREATEST(round(v * inverse), -{MAX_VALUE_STEPS}.0), {MAX_VALUE_STEPS}.0)"
    columns = ", ".join([UID, *spread, f"COALESCE(CAST({steps} AS BIGINT), 0) AS x", "bin_offset"])
    return _sum_steps(
        spread, f"(SELECT {columns} FROM {values} JOIN {levels} USING ({UID}))", "MAX(bin_offset) AS bin_offset"
    )


def _by_reach(part: CountNorms, render: Callable[[Fraction], str]) -> str:
    """What belongs to a unit's grid: twice as far as any of its sums reaches, so that rounding cannot pass the end."""
    held = (f"WHEN reach < {render_double(grid * (MAX_PARTIAL // 2))} THEN {render(grid)}" for grid in part.grids[:-1])
    return f"CASE {' '.join(held)} ELSE {render(part.grids[-1])} END"


def _render_row_bins(part: CountNorms, copies: int, rows: str) -> str:
    """Rows are units: the norm of a row is its size, and that of all copies of it."""
    steps = [render_expr(value) for value in part.values] or ["CAST(1 AS BIGINT)"]
    named = ", ".join(f"CAST(abs(COALESCE({sql}, 0)) AS HUGEINT) AS x{index}" for index, sql in enumerate(steps))
    bins = [
        _render_bin(part, f"(x{index} * {copies})", _bin_offset(part, part.grids[index])) for index in range(len(steps))
    ]
    held = " ".join(f"WHEN x{index} < {MAX_VALUE_STEPS} THEN {sql}" for index, sql in enumerate(bins[:-1]))
    chosen = f"CASE {held} ELSE {bins[-1]} END" if held else bins[-1]
    return f"SELECT {chosen} AS bin FROM (SELECT {named} FROM {rows})"


def _bin_offset(part: CountNorms, grid: Fraction) -> str:
    return render_double(Fraction.from_float(part.binning.per_doubling * math.log2(grid)))


def _render_bin(part: CountNorms, norm: str, offset: str) -> str:
    """From a whole number of steps, or the square of it, to its bin."""
    squared = part.norm is Norm.L2 and part.copies is None
    factor = render_double(Fraction(part.binning.per_doubling, 2 if squared else 1))
    return f"CASE WHEN {norm} > 0 THEN floor(log2(CAST({norm} AS DOUBLE)) * {factor} + {offset}) END"
