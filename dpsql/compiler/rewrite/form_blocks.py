"""Turn BLOCKWISE into a cell per group, and say how the mean of the blocks is worked out from it.

    BLOCKWISE(mad(cost), 0, 5000, blocks => 100)  →  SumBlocks: 100 blocks, 0 to 5000 in 2^20 steps
                                                     answer: 2500 + cell * grid / 100

Arguments go to their integer grid first; rewriting of keys and rows is as for any other measure. A unit's weight plays
no part: however many rows it has, it changes one block (`SumBlocks`), which it may fill alone.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from dpsql.compiler.analysis.domains import Domains, derive_domains, domain_of
from dpsql.compiler.analysis.sensitivity import max_groups_reached
from dpsql.compiler.plan.aggregate import Aggregate, CountBlocks, Gather, SumBlocks
from dpsql.compiler.plan.estimators import BlockMean
from dpsql.compiler.plan.expressions import ROW, Arithmetic, Call, Column, Expr, Literal
from dpsql.compiler.plan.measures import (
    CUBED_FUNCTIONS,
    MAX_CUBED_WIDTH,
    MAX_SQUARED_WIDTH,
    SQUARED_FUNCTIONS,
    VALUE_FUNCTIONS,
    BlockAggregate,
    Blocks,
    Blockwise,
    Measure,
    Statistic,
)
from dpsql.compiler.plan.relations import (
    Expand,
    Filter,
    Join,
    Mark,
    Named,
    PerUnit,
    Project,
    PublicScan,
    PublicTable,
    Rows,
    RowsHole,
    Scan,
    SetOperation,
    Table,
    UnitWindow,
    has_uid,
    row_fields,
)
from dpsql.compiler.plan.walk import map_expr, map_rows
from dpsql.compiler.rewrite.grids import (
    declared_grids,
    quantize_about_center,
    quantize_arg,
    unbounded_values_error,
)
from dpsql.compiler.rewrite.make_total import make_finite
from dpsql.compiler.rewrite.release_plan import RuleContext
from dpsql.errors import UnboundedContribution, Unsupported
from dpsql.types import BIGINT, DOUBLE

BLOCK_STEPS = 1 << 20
"""Between the bounds of a block's number: each is rounded by at most 2^-21 of the range, and so is their mean."""

LOCATIONS = frozenset({"mean", "min", "max", "median", "quantile_cont", "quantile_disc"})
"""Statistics that move as far as all values do; of others but sums, it makes no difference where values lie."""

BLOCK_STEP_BITS = 40
"""A range of arguments has about 2^40 steps: they are compared and added up, not multiplied by a weight."""


def refuse_grouping_sets(aggregate: Aggregate, _context: RuleContext | None = None) -> Aggregate:
    """Grouping sets put a unit into several groups of keys that depend on it alone."""
    blockwise = _find_blockwise(aggregate)
    if blockwise is not None and aggregate.sets:
        raise Unsupported(
            "BLOCKWISE does not go with ROLLUP, CUBE and GROUPING SETS",
            hint="Ask for each grouping set in a SELECT of its own.",
            span=blockwise.span,
        )
    return aggregate


def _find_blockwise(aggregate: Aggregate) -> Blockwise | None:
    return next((measure for measure in aggregate.measures if isinstance(measure, Blockwise)), None)


# Where each row is its own unit, and blocks are made of units: carry a hash of the row up to where blocks are made.
#
#     Table(events)  →  Project(events, all columns and _row = hash of all of them); every Project above passes _row on
#
# Stability: the hash is taken where the table is scanned, of its columns as sanitised, before anything is joined to
# them. So it is a function of the row alone; copies of a row, which a join with public rows makes, have the same, and
# are in one block. Equal rows share a block, too.


def carry_row_hash(aggregate: Aggregate, _context: RuleContext | None = None) -> Aggregate:
    blockwise = _find_blockwise(aggregate)
    if blockwise is None or has_uid(aggregate.input):
        return aggregate

    def change(node: Rows) -> Rows:
        match node:
            case Table():
                columns = tuple(Column(f.name, f.type) for _, f in node.columns)
                hashed = Named(ROW, Call("row_hash", columns, BIGINT))
                return Project(node, (*(Named(column.name, column) for column in columns), hashed))
            case Project():
                carried = any(f.name == ROW for f in row_fields(node.input))  # public rows have none
                return replace(node, columns=(*node.columns, Named(ROW, Column(ROW, BIGINT)))) if carried else node
            case Filter() | Join() | Mark() | PublicTable() | RowsHole():
                return node  # what they give out, of private rows, is what they are given
            case SetOperation():
                raise Unsupported(
                    "BLOCKWISE of a UNION ALL is not supported where each row is a privacy unit",
                    hint="Ask for each of its parts in a SELECT of its own.",
                    span=blockwise.span,
                )
            case PerUnit() | UnitWindow() | Expand() | Scan() | PublicScan():
                raise TypeError("rows that are units have no ids to group by, and are not scanned yet")
            case _:
                assert_never(node)

    return replace(aggregate, input=map_rows(aggregate.input, change))


# The blocks themselves, and the answer that is made of them.


def check_groups_reached(measure: Blockwise, part: SumBlocks | CountBlocks, gather: Gather) -> None:
    """Refuses, with its place, what sensitivity would have no bound for."""
    try:
        max_groups_reached(part, gather)
    except UnboundedContribution as error:
        raise UnboundedContribution(error.message, hint=error.hint, span=measure.span) from None


def sum_blocks(
    measure: Blockwise, rows: Rows, keys: tuple[str, ...], cell: str, assume: int | None
) -> tuple[SumBlocks, BlockMean]:
    """The part that runs, over the release's input rows, and its answer."""
    blocks = blocks_of(measure, rows, BLOCK_STEPS, assume)
    lower, upper = measure.lower, measure.upper
    part = SumBlocks(rows, keys, blocks, cell)
    return part, BlockMean(((cell, Fraction(1, blocks.count)),), (lower + upper) / 2, lower, upper)


def blocks_of(measure: Blockwise, rows: Rows, steps: int, assume: int | None) -> Blocks:
    return Blocks(measure.blocks, _make_statistic_exact(measure, rows, assume), measure.lower, measure.upper, steps)


def _make_statistic_exact(measure: Blockwise, rows: Rows, assume: int | None) -> Statistic:
    """The statistic of numbers in whole steps, and of values that are told apart alike in every order of rows."""
    env, grids = derive_domains(rows, assume), declared_grids(rows)

    centers: dict[str, Fraction] = {}

    def make_exact(aggregate: BlockAggregate) -> BlockAggregate:
        if aggregate.arg is None:
            return aggregate
        if aggregate.function in VALUE_FUNCTIONS:
            return replace(aggregate, arg=make_finite(aggregate.arg))
        grid = grids.get(aggregate.arg.name) if isinstance(aggregate.arg, Column) else None
        _check_bounds(aggregate.arg, measure, rows, env, assume)
        domain, widest = domain_of(aggregate.arg, env), _max_steps_for(aggregate.function)
        if aggregate.function == "sum":
            return replace(aggregate, arg=quantize_arg(aggregate.arg, domain, grid, widest, BLOCK_STEP_BITS))
        value, center = quantize_about_center(aggregate.arg, domain, grid, widest, BLOCK_STEP_BITS)
        if aggregate.function in LOCATIONS:
            centers[aggregate.name] = center
        return replace(aggregate, arg=value)

    def add_center(expr: Expr) -> Expr:
        center = centers.get(expr.name) if isinstance(expr, Column) else None
        return Arithmetic("+", expr, Literal(float(center), DOUBLE), DOUBLE) if center else expr

    aggregates = tuple(map(make_exact, measure.statistic.aggregates))
    return Statistic(aggregates, map_expr(measure.statistic.result, add_center))


def _check_bounds(arg: Expr, measure: Measure, rows: Rows, env: Domains, assume: int | None) -> None:
    if not domain_of(arg, env).is_bounded:
        raise unbounded_values_error(arg, measure, rows, assume)


def _max_steps_for(function: str) -> int | None:
    return (
        MAX_SQUARED_WIDTH if function in SQUARED_FUNCTIONS else MAX_CUBED_WIDTH if function in CUBED_FUNCTIONS else None
    )
