"""Turn BLOCKWISE into a cell per group, and say how the mean of the blocks is worked out from it.

    BLOCKWISE(mad(cost), 0, 5000, blocks => 100)  →  SumBlocks: 100 blocks, 0 to 5000 in 2^20 steps
                                                     answer: 2500 + cell * grid / 100

Arguments go to their integer grid first; rewriting of keys and rows is as for any other measure. A unit's weight plays
no part: however many rows it has, it changes one block (`SumBlocks`), which it may fill alone.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpsql.analysis.domains import Domains, node_domains
from dpsql.analysis.sensitivity import groups_reached
from dpsql.analysis.values import domain_of
from dpsql.errors import UnboundedContribution, Unsupported
from dpsql.plan.expr import Column, Expr
from dpsql.plan.measures import Blockwise, Measure
from dpsql.plan.nodes import Aggregate, CountBlocks, Gather, SumBlocks
from dpsql.plan.recipes import BlockMean
from dpsql.plan.relations import Rows
from dpsql.plan.statistics import (
    CUBED,
    OF_VALUES,
    SQUARED,
    WIDEST_CUBED,
    WIDEST_SQUARED,
    BlockAggregate,
    Blocks,
    Statistic,
)
from dpsql.rewrite.grids import declared_grids, quantise
from dpsql.rewrite.make_total import finite
from dpsql.rewrite.need_bounds import need_bounds

STEPS = 1 << 20
"""Between the bounds of a block's number: each is rounded by at most 2^-21 of the range, and so is their mean."""

FINE = 40
"""A range of arguments has about 2^40 steps: they are compared and added up, not multiplied by a weight."""


def refuse_sets(aggregate: Aggregate) -> None:
    """Grouping sets put a unit into several groups of keys that depend on it alone."""
    asked = next((measure for measure in aggregate.measures if isinstance(measure, Blockwise)), None)
    if asked is not None and aggregate.sets:
        raise Unsupported(
            "BLOCKWISE does not go with ROLLUP, CUBE and GROUPING SETS",
            hint="Ask for each grouping set in a SELECT of its own.",
            span=asked.span,
        )


def check_reach(measure: Blockwise, part: SumBlocks | CountBlocks, gather: Gather) -> None:
    """Refuses, with its place, what sensitivity would have no bound for."""
    try:
        groups_reached(part, gather)
    except UnboundedContribution as error:
        raise UnboundedContribution(error.message, hint=error.hint, span=measure.span) from None


def sum_blocks(
    measure: Blockwise, rows: Rows, keys: tuple[str, ...], cell: str, assume: int | None
) -> tuple[SumBlocks, BlockMean]:
    """The part that runs, over the release's input rows, and its answer."""
    blocks = blocks_of(measure, rows, STEPS, assume)
    lower, upper = measure.lower, measure.upper
    part = SumBlocks(rows, keys, blocks, cell)
    return part, BlockMean(((cell, Fraction(1, blocks.count)),), (lower + upper) / 2, lower, upper)


def blocks_of(measure: Blockwise, rows: Rows, steps: int, assume: int | None) -> Blocks:
    return Blocks(measure.blocks, _exact(measure, rows, assume), measure.lower, measure.upper, steps)


def _exact(measure: Blockwise, rows: Rows, assume: int | None) -> Statistic:
    """The statistic of numbers in whole steps, and of values that are told apart alike in every order of rows."""
    env, grids = node_domains(rows, assume), declared_grids(rows)

    def exact(one: BlockAggregate) -> BlockAggregate:
        if one.arg is None:
            return one
        if one.function in OF_VALUES:
            return replace(one, arg=finite(one.arg))
        grid = grids.get(one.arg.name) if isinstance(one.arg, Column) else None
        _check_bounds(one.arg, measure, rows, env, assume)
        domain = domain_of(one.arg, env)
        return replace(one, arg=quantise(one.arg, domain, grid, _widest(one.function), fine=FINE))

    return replace(measure.statistic, aggregates=tuple(map(exact, measure.statistic.aggregates)))


def _check_bounds(arg: Expr, asked: Measure, rows: Rows, env: Domains, assume: int | None) -> None:
    if not domain_of(arg, env).bounded:
        raise need_bounds(arg, asked, rows, assume)


def _widest(function: str) -> int | None:
    return WIDEST_SQUARED if function in SQUARED else WIDEST_CUBED if function in CUBED else None
