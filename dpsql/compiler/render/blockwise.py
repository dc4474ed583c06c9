"""Blocks of units as DuckDB SQL: a row for each group and block that has rows, with the block's number in whole steps.

    rows  →  each row's block, and its values on their grids
          →  what needs all of a block's rows first: its median, its mean, how often a value is there
          →  per group and block: aggregates of integers
          →  the statistic, once for each block, rounded and clipped in integers

Law: up to the finished aggregates everything is an integer, or a double that holds one (or a half) exactly, so that no
order of rows and no number of threads changes it. What follows is one expression of these, which cannot raise.
"""

from __future__ import annotations

from typing import assert_never

from dpsql.compiler.plan.aggregate import CountBlocks, SumBlocks
from dpsql.compiler.plan.expressions import ROW, UID, Quantise
from dpsql.compiler.plan.measures import CENTRED_FUNCTIONS, BlockAggregate, Blocks
from dpsql.compiler.plan.relations import has_uid
from dpsql.compiler.render.expressions import quote_identifier, render_cast, render_double, render_expr, render_text
from dpsql.compiler.render.relations import scale_steps
from dpsql.types import BIGINT, DOUBLE

BLOCK, STEP = '"_block"', '"_step"'

BLOCK_SALT = "blocks"
"""It need not be secret: a unit's block must not depend on other units, and need not be hidden."""

LOG_STEPS = 1 << 20
"""Of a logarithm, rounded so that a sum of them is one of integers."""


def render_sum_blocks(part: SumBlocks, rows: str) -> str:
    """How far the blocks of each group lie from the middle, together."""
    cell = f"SUM({STEP} - {part.blocks.middle}) AS {quote_identifier(part.cell)}"
    return _select_grouped(part.keys, [cell], _render_block_steps(part, part.keys, rows), part.keys)


def render_count_blocks(part: CountBlocks, rows: str) -> str:
    """The blocks of each group by their number; those without rows are added where all bins are listed."""
    columns = [f"{STEP} AS {quote_identifier(part.bin)}", f"COUNT(*) AS {quote_identifier(part.cell)}"]
    numbers = _render_block_steps(part, part.groups, rows)
    keys = ", ".join(map(quote_identifier, part.groups))
    grouped = f"{keys}, {STEP}" if keys else STEP
    return f"SELECT {', '.join([*([keys] if keys else []), *columns])} FROM {numbers} GROUP BY {grouped}"


def fill_empty_blocks(part: CountBlocks, name: str, owner: dict[str, str]) -> str:
    """The count of a bin, over all listed groups and bins; in the middle, the blocks that have no rows with it."""
    count = f"COALESCE({name}.{quote_identifier(part.cell)}, 0)"
    groups = ", ".join(f"{owner[key]}.{quote_identifier(key)}" for key in part.groups)
    over = f"(PARTITION BY {groups})" if groups else "()"
    without = f"{part.blocks.count} - SUM({count}) OVER {over}"
    is_middle = f"{owner[part.bin]}.{quote_identifier(part.bin)} = {part.blocks.middle}"
    return f"({count} + CASE WHEN {is_middle} THEN {without} ELSE 0 END)"


def _select_grouped(keys: tuple[str, ...], columns: list[str], source: str, by: tuple[str, ...]) -> str:
    names = [quote_identifier(key) for key in keys]
    group = f" GROUP BY {', '.join(map(quote_identifier, by))}" if by else ""
    return f"SELECT {', '.join([*names, *columns])} FROM {source}{group}"


def _render_block_steps(part: SumBlocks | CountBlocks, keys: tuple[str, ...], rows: str) -> str:
    """One row for each group and block with rows: its keys and its number of steps."""
    blocks, names = part.blocks, [quote_identifier(key) for key in keys]
    aggregates = list(enumerate(blocks.statistic.aggregates))
    unit = (
        f"hash({UID}, {render_text(BLOCK_SALT)})"
        if has_uid(part.input)
        else f"hash({quote_identifier(ROW)}, {render_text(BLOCK_SALT)})"
    )
    values = [
        f"{render_expr(aggregate.arg)} AS {_value_column(index)}"
        for index, aggregate in aggregates
        if aggregate.arg is not None
    ]
    block = f"CAST({unit} % {blocks.count} AS BIGINT) AS {BLOCK}"
    source = f"(SELECT {', '.join([*names, block, *values])} FROM {rows})"
    over = ", ".join([*names, BLOCK])
    before = [sql for index, aggregate in aggregates for sql in _render_window_columns(aggregate, index, over)]
    if before:
        source = f"(SELECT *, {', '.join(before)} FROM {source})"
    columns = [
        f"{_render_block_aggregate(aggregate, index)} AS {quote_identifier(aggregate.name)}"
        for index, aggregate in aggregates
    ]
    per_block = f"(SELECT {', '.join([*names, *columns])} FROM {source} GROUP BY {over})"
    result = render_cast(render_expr(blocks.statistic.result), DOUBLE)
    named = f"(SELECT {', '.join([*names, f'{result} AS r'])} FROM {per_block})"
    return f"(SELECT {', '.join([*names, f'{_render_step(blocks)} AS {STEP}'])} FROM {named})"


def _value_column(index: int) -> str:
    return f'"_v{index}"'


def _center_column(index: int) -> str:
    return f'"_m{index}"'


def _render_step(blocks: Blocks) -> str:
    """Rounded to a step and clipped in integers, which alone decides; the middle where there is no number."""
    lower, upper, scale = render_double(blocks.lower), render_double(blocks.upper), render_double(1 / blocks.grid)
    within = f"LEAST(GREATEST(r, {lower}), {upper})"
    steps = render_cast(f"round(({within} - {lower}) * {scale})", BIGINT)
    clipped = f"LEAST(GREATEST(COALESCE({steps}, {blocks.middle}), 0), {blocks.steps})"
    return f"CASE WHEN isfinite(r) THEN {clipped} ELSE CAST({blocks.middle} AS BIGINT) END"


def _render_window_columns(aggregate: BlockAggregate, index: int, over: str) -> list[str]:
    """What a row is compared with, worked out from all rows of its block."""
    value, window = _value_column(index), f"OVER (PARTITION BY {over})"
    if aggregate.function == "mad":
        # Between whole numbers below 2^46 a median is a whole number or a half: twice that is exact.
        return [f"CAST(2 * median({value}) {window} AS BIGINT) AS {_center_column(index)}"]
    if aggregate.function in CENTRED_FUNCTIONS:
        mean = f"SUM({value}) {window} // NULLIF(COUNT({value}) {window}, 0)"
        return [f"{value} - CAST({mean} AS BIGINT) AS {_center_column(index)}"]
    if aggregate.function == "entropy":
        times = f"CAST(GREATEST(COUNT({value}) OVER (PARTITION BY {over}, {value}), 1) AS DOUBLE)"
        return [f"CAST(round(log2({times}) * {LOG_STEPS}) AS BIGINT) AS {_center_column(index)}"]
    return []


def _render_block_aggregate(aggregate: BlockAggregate, index: int) -> str:
    """As a double; NULL where there is nothing to aggregate."""
    value, arg = _value_column(index), aggregate.arg
    match aggregate.function:
        case "count_rows":
            return "CAST(COUNT(*) AS DOUBLE)"
        case "count":
            return f"CAST(COUNT({value}) AS DOUBLE)"
        case "count_distinct":
            return f"CAST(COUNT(DISTINCT {value}) AS DOUBLE)"
        case "entropy":
            return _render_entropy(value, _center_column(index))
        case _ if not isinstance(arg, Quantise):
            raise TypeError(f"{aggregate.function} of a block is of whole steps")
        case "sum":
            return scale_steps(f"CAST(SUM({value}) AS DOUBLE)", arg.grid)
        case "mean":
            return scale_steps(f"(CAST(SUM({value}) AS DOUBLE) / NULLIF(COUNT({value}), 0))", arg.grid)
        case "min" | "max":
            return scale_steps(f"CAST({aggregate.function.upper()}({value}) AS DOUBLE)", arg.grid)
        case "median":
            return scale_steps(f"median({value})", arg.grid)
        case "quantile_cont" | "quantile_disc":
            assert aggregate.fraction is not None
            return scale_steps(
                f"CAST({aggregate.function}({value}, {render_double(aggregate.fraction)}) AS DOUBLE)", arg.grid
            )
        case "mad":
            return scale_steps(f"median(abs(2 * {value} - {_center_column(index)}))", arg.grid / 2)
        case "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp":
            return _render_spread(aggregate.function, arg, _center_column(index))
        case "skewness" | "kurtosis" | "kurtosis_pop":
            return _render_shape(aggregate.function, _center_column(index))
        case _:
            assert_never(aggregate.function)


def _render_entropy(value: str, logarithm: str) -> str:
    """In bits: log2 n less the mean, over rows, of log2 of how often the row's value is there."""
    count = f"CAST(COUNT({value}) AS DOUBLE)"
    mean = f"CAST(SUM({logarithm}) FILTER (WHERE {value} IS NOT NULL) AS DOUBLE) / {LOG_STEPS} / {count}"
    return f"(CASE WHEN {count} > 0 THEN GREATEST(log2(GREATEST({count}, 1)) - {mean}, 0) END)"


def _sum_of_powers(centred: str, power: int) -> str:
    """The sum of a power of whole steps, exactly, as a double: of at most 2^20 steps, fourth powers need 128 bits."""
    terms = {1: centred, 2: f"{centred} * {centred}", 3: f"{centred} * {centred} * {centred}",
             4: f"CAST({centred} * {centred} AS HUGEINT) * ({centred} * {centred})"}  # fmt: skip
    return f"CAST(SUM({terms[power]}) AS DOUBLE)"


def _central_moment(centred: str, power: int) -> str:
    """A central moment in steps, from sums around a whole step that is less than one step from the mean."""
    n = f"CAST(COUNT({centred}) AS DOUBLE)"
    mean = f"({_sum_of_powers(centred, 1)} / {n})"
    second, third, fourth = (f"{_sum_of_powers(centred, k)} / {n}" for k in (2, 3, 4))
    match power:
        case 2:
            return f"GREATEST({second} - {mean} * {mean}, 0)"
        case 3:
            return f"({third} - 3 * {mean} * {second} + 2 * {mean} * {mean} * {mean})"
        case _:
            square = f"{mean} * {mean}"
            return f"({fourth} - 4 * {mean} * {third} + 6 * {square} * {second} - 3 * {square} * {square})"


def _render_spread(function: str, arg: Quantise, centred: str) -> str:
    n, free = f"CAST(COUNT({centred}) AS DOUBLE)", 1 if function.endswith("samp") else 0
    variance = f"({_central_moment(centred, 2)} * {n} / ({n} - {free}) * {render_double(arg.grid**2)})"
    statistic = f"sqrt({variance})" if function.startswith("stddev") else variance
    return f"(CASE WHEN {n} > {free} THEN {statistic} END)"


def _render_shape(function: str, centred: str) -> str:
    """As DuckDB has them: skewness and kurtosis of a sample, the latter less that of a normal distribution."""
    n, square = f"CAST(COUNT({centred}) AS DOUBLE)", _central_moment(centred, 2)
    if function == "skewness":
        min_rows, statistic = (
            2,
            f"sqrt({n} * ({n} - 1)) / ({n} - 2) * {_central_moment(centred, 3)} / ({square} * sqrt({square}))",
        )
    elif function == "kurtosis":
        ratio = f"{_central_moment(centred, 4)} / ({square} * {square})"
        min_rows, statistic = 3, f"({n} - 1) * (({n} + 1) * {ratio} - 3 * ({n} - 1)) / (({n} - 2) * ({n} - 3))"
    else:
        min_rows, statistic = 1, f"{_central_moment(centred, 4)} / ({square} * {square}) - 3"
    return f"(CASE WHEN {n} > {min_rows} AND {square} > 0 THEN {statistic} END)"
