"""The children of expressions and nodes, and rebuilding them: the only place that lists both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

from dpsql.plan.expr import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Clip,
    Column,
    Compare,
    Expr,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
    Quantise,
)
from dpsql.plan.measures import CountDistinctUnits, CountRows, CountValues, MeanValues, Measure, SumValues
from dpsql.plan.nodes import Aggregate, CountUnits, Filter, Gather, Join, Node, Project, Scan, Sum, Table, Weigh


def children(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Column() | Literal():
            return ()
        case Compare() | Arithmetic():
            return (expr.left, expr.right)
        case And() | Or() | Call():
            return expr.args
        case Not() | IsNull() | InList() | Cast() | Clip() | Quantise():
            return (expr.arg,)
        case Case():
            return (*(part for branch in expr.branches for part in branch), expr.otherwise)
        case _:
            assert_never(expr)


def walk(expr: Expr) -> Iterator[Expr]:
    yield expr
    for child in children(expr):
        yield from walk(child)


def columns_of(expr: Expr) -> frozenset[str]:
    return frozenset(part.name for part in walk(expr) if isinstance(part, Column))


def map_expr(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with `change` applied to every part, children first."""
    match expr:
        case Column() | Literal():
            return change(expr)
        case Compare() | Arithmetic():
            return change(replace(expr, left=map_expr(expr.left, change), right=map_expr(expr.right, change)))
        case And() | Or() | Call():
            return change(replace(expr, args=tuple(map_expr(arg, change) for arg in expr.args)))
        case Not() | IsNull() | InList() | Cast() | Clip() | Quantise():
            return change(replace(expr, arg=map_expr(expr.arg, change)))
        case Case():
            branches = tuple((map_expr(when, change), map_expr(then, change)) for when, then in expr.branches)
            return change(replace(expr, branches=branches, otherwise=map_expr(expr.otherwise, change)))
        case _:
            assert_never(expr)


def measure_args(measure: Measure) -> tuple[Expr, ...]:
    match measure:
        case CountRows() | CountDistinctUnits():
            return ()
        case CountValues(arg) | SumValues(arg) | MeanValues(arg):
            return (arg,)
        case _:
            assert_never(measure)


def map_measure(measure: Measure, change: Callable[[Expr], Expr]) -> Measure:
    match measure:
        case CountRows() | CountDistinctUnits():
            return measure
        case CountValues(arg) | SumValues(arg) | MeanValues(arg):
            return replace(measure, arg=change(arg))
        case _:
            assert_never(measure)


def inputs(node: Node) -> tuple[Node, ...]:
    match node:
        case Table() | Scan():
            return ()
        case Filter() | Project() | Aggregate() | Weigh() | Sum() | CountUnits():
            return (node.input,)
        case Join():
            return (node.left, node.right)
        case Gather():
            return node.all_parts
        case _:
            assert_never(node)


def walk_nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in inputs(node):
        yield from walk_nodes(child)


def map_rows(node: Node, change: Callable[[Node], Node]) -> Node:
    """A relation over private rows (no aggregate in it) with `change` applied to every node, inputs first."""
    match node:
        case Table() | Scan():
            return change(node)
        case Filter() | Project():
            return change(replace(node, input=map_rows(node.input, change)))
        case Join():
            return change(replace(node, left=map_rows(node.left, change), right=map_rows(node.right, change)))
        case Aggregate() | Weigh() | Sum() | CountUnits() | Gather():
            raise TypeError("not a relation over private rows")
        case _:
            assert_never(node)
