"""The children of expressions and nodes, and rebuilding them: the only place that lists both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import assert_never

from dpsql.base.cancellation import checkpoint
from dpsql.compiler.plan.aggregate import (
    Aggregate,
    Distinct,
    Gather,
    Node,
    Part,
    Tally,
    Weigh,
)
from dpsql.compiler.plan.expressions import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Clip,
    Column,
    Compare,
    Expr,
    HoleValue,
    InHole,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
    Quantise,
)
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
    PairValues,
    Posterior,
    Quantile,
    Score,
    SharesPosterior,
    Statistic,
    SumValues,
    Truth,
    VarianceValues,
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
)
from dpsql.types import BIGINT, HUGEINT


def child_exprs(expr: Expr) -> tuple[Expr, ...]:
    checkpoint()
    match expr:
        case Column() | Literal() | HoleValue():
            return ()
        case Compare() | Arithmetic():
            return (expr.left, expr.right)
        case And() | Or() | Call():
            return expr.args
        case Not() | IsNull() | InList() | InHole() | Cast() | Clip() | Quantise():
            return (expr.arg,)
        case Case():
            return (*(part for branch in expr.branches for part in branch), expr.otherwise)
        case _:
            assert_never(expr)


def walk_exprs(expr: Expr) -> Iterator[Expr]:
    yield expr
    for child in child_exprs(expr):
        yield from walk_exprs(child)


def columns_of(expr: Expr) -> frozenset[str]:
    return frozenset(part.name for part in walk_exprs(expr) if isinstance(part, Column))


def origin_of(expr: Expr) -> str | None:
    """The first declared column that an expression reads, as `table.column`."""
    return next((part.origin for part in walk_exprs(expr) if isinstance(part, Column) and part.origin), None)


def map_expr(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with `change` applied to every part, children first."""
    checkpoint()
    match expr:
        case Column() | Literal() | HoleValue():
            return change(expr)
        case Compare() | Arithmetic():
            return change(replace(expr, left=map_expr(expr.left, change), right=map_expr(expr.right, change)))
        case And() | Or() | Call():
            return change(replace(expr, args=tuple(map_expr(arg, change) for arg in expr.args)))
        case Not() | IsNull() | InList() | InHole() | Cast() | Clip() | Quantise():
            return change(replace(expr, arg=map_expr(expr.arg, change)))
        case Case():
            branches = tuple((map_expr(when, change), map_expr(then, change)) for when, then in expr.branches)
            return change(replace(expr, branches=branches, otherwise=map_expr(expr.otherwise, change)))
        case _:
            assert_never(expr)


def measure_args(measure: Measure) -> tuple[Expr, ...]:
    match measure:
        case CountRows():
            return ()
        case CountDistinctUnits(where):
            return () if where is None else (where,)
        case DistinctValues():
            return measure.args
        case PairValues():
            return (measure.y, measure.x)
        case CountValues() | SumValues() | MeanValues() | VarianceValues() | Truth() | ConjugatePosterior():
            return (measure.arg,)
        case Quantile() | Extreme() | Frequent() | Posterior() | SharesPosterior():
            return (measure.arg,)
        case Blockwise():
            return tuple(aggregate.arg for aggregate in measure.statistic.aggregates if aggregate.arg is not None)
        case Best():
            return (measure.arg, *measure_args(measure.score))
        case _:
            assert_never(measure)


def aggregate_exprs(aggregate: Aggregate) -> list[Expr]:
    """The keys and the arguments of all measures; not what is below them."""
    args = (arg for measure in aggregate.measures for arg in measure_args(measure))
    return [*(key.expr for key in aggregate.keys), *args]


def narrows_integers(aggregate: Aggregate) -> bool:
    """Whether anything takes a whole number of 128 bits as one of 64."""
    nodes = walk_rows(aggregate.input)
    exprs = chain(aggregate_exprs(aggregate), (expr for node in nodes for expr in node_exprs(node)))
    return any(is_narrowing_cast(part) for expr in exprs for part in walk_exprs(expr))


def is_narrowing_cast(expr: Expr) -> bool:
    return isinstance(expr, Cast) and expr.type == BIGINT and expr.arg.type == HUGEINT


def map_measure(measure: Measure, change: Callable[[Expr], Expr]) -> Measure:
    match measure:
        case CountRows():
            return measure
        case CountDistinctUnits(where):
            return measure if where is None else replace(measure, where=change(where))
        case DistinctValues():
            return replace(measure, args=tuple(map(change, measure.args)))
        case PairValues():
            return replace(measure, y=change(measure.y), x=change(measure.x))
        case CountValues() | SumValues() | MeanValues() | VarianceValues() | Truth() | ConjugatePosterior():
            return replace(measure, arg=change(measure.arg))
        case Quantile() | Extreme() | Frequent() | Posterior() | SharesPosterior():
            return replace(measure, arg=change(measure.arg))
        case Blockwise(statistic):
            return replace(measure, statistic=map_statistic(statistic, change))
        case Best():
            return replace(measure, arg=change(measure.arg), score=map_score(measure.score, change))
        case _:
            assert_never(measure)


def map_statistic(statistic: Statistic, change: Callable[[Expr], Expr]) -> Statistic:
    """The statistic of other arguments; its result reads the aggregates, and stays."""
    changed = (
        aggregate if aggregate.arg is None else replace(aggregate, arg=change(aggregate.arg))
        for aggregate in statistic.aggregates
    )
    return replace(statistic, aggregates=tuple(changed))


def map_score(score: Score, change: Callable[[Expr], Expr]) -> Score:
    changed = map_measure(score, change)
    assert isinstance(changed, Score)
    return changed


def row_inputs(node: Rows) -> tuple[Rows, ...]:
    match node:
        case Table() | Scan() | PublicTable() | PublicScan() | RowsHole():
            return ()
        case Filter() | Project() | PerUnit() | UnitWindow() | Expand():
            return (node.input,)
        case Join() | Mark() | SetOperation():
            return (node.left, node.right)
        case _:
            assert_never(node)


def node_inputs(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Gather):
        return node.all_parts
    if isinstance(node, Tally):
        return (node.part,)
    if isinstance(node, Aggregate | Weigh | Distinct | Part):
        return (node.input,)
    return row_inputs(node)


def walk_nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node_inputs(node):
        yield from walk_nodes(child)


def walk_rows(node: Rows) -> Iterator[Rows]:
    yield node
    for child in row_inputs(node):
        yield from walk_rows(child)


def has_joins(node: Rows) -> bool:
    """Whether any row meets rows of another relation: joins, and sub-selects that are looked into."""
    return any(isinstance(part, Join | Mark) for part in walk_rows(node))


def map_rows(node: Rows, change: Callable[[Rows], Rows]) -> Rows:
    """A relation over private rows with `change` applied to every node, inputs first."""
    match node:
        case Table() | Scan() | PublicTable() | PublicScan() | RowsHole():
            return change(node)
        case Filter() | Project() | PerUnit() | UnitWindow() | Expand():
            return change(replace(node, input=map_rows(node.input, change)))
        case Join() | Mark() | SetOperation():
            return change(replace(node, left=map_rows(node.left, change), right=map_rows(node.right, change)))
        case _:
            assert_never(node)


def node_exprs(node: Rows) -> tuple[Expr, ...]:
    """The expressions that a relation's own operator reads, not those of its inputs."""
    match node:
        case Table() | Scan() | PublicTable() | PublicScan() | RowsHole() | SetOperation() | Expand():
            return ()
        case Filter() | Join():
            return (node.condition,)
        case Project():
            return tuple(column.expr for column in node.columns)
        case Mark():
            return (node.condition, *(node.test or ()))
        case PerUnit():
            args = tuple(measure.arg for measure in node.measures if measure.arg is not None)
            return (*(key.expr for key in node.keys), *args)
        case UnitWindow():
            return (*node.args, *node.partition, *(ordering.expr for ordering in node.order))
        case _:
            assert_never(node)


def map_node_exprs(node: Rows, change: Callable[[Expr], Expr]) -> Rows:
    """The same operator with `change` applied to each expression that `node_exprs` gives."""
    match node:
        case Table() | Scan() | PublicTable() | PublicScan() | RowsHole() | SetOperation() | Expand():
            return node
        case Filter() | Join():
            return replace(node, condition=change(node.condition))
        case Project():
            return replace(node, columns=tuple(Named(c.name, change(c.expr)) for c in node.columns))
        case Mark():
            test = None if node.test is None else (change(node.test[0]), change(node.test[1]))
            return replace(node, condition=change(node.condition), test=test)
        case PerUnit():
            keys = tuple(Named(key.name, change(key.expr)) for key in node.keys)
            measures = tuple(m if m.arg is None else replace(m, arg=change(m.arg)) for m in node.measures)
            return replace(node, keys=keys, measures=measures)
        case UnitWindow():
            order = tuple(replace(ordering, expr=change(ordering.expr)) for ordering in node.order)
            args, partition = tuple(map(change, node.args)), tuple(map(change, node.partition))
            return replace(node, args=args, partition=partition, order=order)
        case _:
            assert_never(node)
