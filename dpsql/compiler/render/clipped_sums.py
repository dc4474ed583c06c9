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
    steps = [render_expr(value) for value in part.values] or ["CAST(1 AS BIGINT)"]
    unit = [] if part.copies is not None else [UID]
    spread = [quote_identifier(name) for name in part.spread]
    named = [f"COALESCE({sql}, CAST(0 AS BIGINT)) AS x{index}" for index, sql in enumerate(steps)]
    source = f"(SELECT {', '.join([*unit, *spread, *named])} FROM {rows})"
    grids = range(len(steps))
    norms = _row_norms(part.copies, grids) if part.copies is not None else _unit_norms(part.norm, grids)
    if part.copies is None:
        grouped = ", ".join([UID, *spread])
        sums = ", ".join(_partial_sum(index) for index in grids)
        source = f"(SELECT {grouped}, {sums} FROM {source} GROUP BY {grouped})"
    group = "" if part.copies is not None else f" GROUP BY {UID}"
    return f"SELECT {_render_bin(part, grids)} AS bin FROM (SELECT {norms} FROM {source}{group})"


def _row_norms(copies: int, grids: range) -> str:
    """Rows are units: all copies of a row are its unit's."""
    return ", ".join(
        f"CAST(abs(x{index}) AS HUGEINT) * {copies} AS n{index}, abs(x{index}) < {MAX_VALUE_STEPS} AS fits{index}"
        for index in grids
    )


def _partial_sum(index: int) -> str:
    """A unit's sum in a group on one grid, and whether the grid holds it: no row is cut off, nor the sum."""
    fits = f"MAX(abs(x{index})) < {MAX_VALUE_STEPS} AND abs(SUM(x{index})) < {MAX_PARTIAL}"
    return f"{_limit_partial(f'SUM(x{index})')} AS s{index}, {fits} AS fits{index}"


def _unit_norms(norm: Norm, grids: range) -> str:
    """The L1 norm of a unit's sums, or the square of the L2 norm."""
    term = "abs(s{0})" if norm is Norm.L1 else "s{0} * s{0}"
    return ", ".join(f"SUM({term.format(index)}) AS n{index}, bool_and(fits{index}) AS fits{index}" for index in grids)


def _render_bin(part: CountNorms, grids: range) -> str:
    """On the finest grid that holds the unit; on the last one all are held."""
    per_doubling, squared = part.binning.per_doubling, part.norm is Norm.L2 and part.copies is None
    factor = render_double(Fraction(per_doubling, 2 if squared else 1))
    bins: list[str] = []
    for index in grids:
        offset = render_double(Fraction.from_float(per_doubling * math.log2(part.grids[index])))
        bins.append(f"CASE WHEN n{index} > 0 THEN floor(log2(CAST(n{index} AS DOUBLE)) * {factor} + {offset}) END")
    if len(bins) == 1:
        return bins[0]
    branches = " ".join(f"WHEN fits{index} THEN {sql}" for index, sql in enumerate(bins[:-1]))
    return f"CASE {branches} ELSE {bins[-1]} END"
