"""Mark integer arithmetic that cannot overflow, and keep infinities out of keys.

    a + b  (both within 10^6)   →  64-bit addition
    a + b  (no bounds known)    →  128-bit addition, NULL past 64 bits
    GROUP BY x * 2 (a double)   →  GROUP BY x * 2 where finite, else NULL; 0.0 for -0.0, which are one group

Everything is total without this rule too: it only finds where the cheap form is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from dpsql.analysis.domains import domain_of, node_domains
from dpsql.analysis.narrow import Environment
from dpsql.errors import LimitExceeded
from dpsql.plan.expr import Arithmetic, Call, Expr
from dpsql.plan.measures import CountValues, MeanValues, Measure, SumValues
from dpsql.plan.nodes import Aggregate, CountUnits, Filter, Gather, Join, Named, Node, Project, Scan, Sum, Table, Weigh
from dpsql.plan.walk import map_expr, map_rows
from dpsql.types import DOUBLE, TEXT

MOST_CHARACTERS = 100_000
"""Of one text that an expression may make."""


def make_total(aggregate: Aggregate) -> Aggregate:
    rows = map_rows(aggregate.input, _total_node)
    env = node_domains(rows)

    def measure(asked: Measure) -> Measure:
        if isinstance(asked, CountValues | SumValues | MeanValues):
            return replace(asked, arg=_total(asked.arg, env))
        return asked

    keys = tuple(Named(key.name, _finite(_total(key.expr, env))) for key in aggregate.keys)
    return Aggregate(rows, keys, tuple(measure(asked) for asked in aggregate.measures))


def _total_node(node: Node) -> Node:
    match node:
        case Filter(rows, condition):
            return Filter(rows, _total(condition, node_domains(rows)))
        case Project(rows, columns):
            env = node_domains(rows)
            return Project(rows, tuple(Named(column.name, _total(column.expr, env)) for column in columns))
        case Join(left, right):
            env = node_domains(left) | node_domains(right)
            return replace(node, condition=_total(node.condition, env))
        case Table() | Scan() | Aggregate() | Weigh() | Sum() | CountUnits() | Gather():
            return node
        case _:
            assert_never(node)


def _total(expr: Expr, env: Environment) -> Expr:
    def change(part: Expr) -> Expr:
        if isinstance(part, Call) and part.type == TEXT:
            _check_length(part, env)
        if isinstance(part, Arithmetic) and part.type.is_integer and _fits(part, env):
            return replace(part, fits=True)
        return part

    return map_expr(expr, change)


def _check_length(part: Call, env: Environment) -> None:
    """Text that doubles in every sub-select would exhaust memory, for rows that have any: an error that tells."""
    length = domain_of(part, env).length
    if length is None or length > MOST_CHARACTERS:
        raise LimitExceeded(f"{part.function} could make text of more than {MOST_CHARACTERS} characters")


def _fits(part: Arithmetic, env: Environment) -> bool:
    """The result's bounds hold for every value that the operands can have, NULL aside."""
    operands = (domain_of(part.left, env), domain_of(part.right, env))
    return all(operand.bounded for operand in operands) and domain_of(part, env).bounded


def _finite(expr: Expr) -> Expr:
    return Call("finite", (expr,), DOUBLE) if expr.type.is_float else expr
