"""Move what WHERE says of a join's rows into the join, where it was written with a comma.

    Filter(a.k = b.k and a.x > 1) over Join(a, b on true)  →  Join(Filter(a.x > 1) over a, b on a.k = b.k)

The rows are the same. But a condition within the join tells how many public rows a private one may meet, and engines
need not find it again.
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.plan.expr import TRUE, Expr, join_conjuncts, split_conjuncts
from dpsql.plan.nodes import Aggregate
from dpsql.plan.relations import Filter, Join, JoinKind, Rows, row_fields
from dpsql.plan.walk import columns_of, map_rows


def push_conditions(aggregate: Aggregate) -> Aggregate:
    return replace(aggregate, input=map_rows(aggregate.input, _push_into_join))


def _push_into_join(node: Rows) -> Rows:
    if not isinstance(node, Filter) or not _can_take_conditions(node.input):
        return node
    parts = [part for part in split_conjuncts(node.condition) if part != TRUE]
    rows, remaining = _push_parts(node.input, parts)
    return Filter(rows, join_conjuncts(tuple(remaining))) if remaining else rows


def _can_take_conditions(node: Rows) -> bool:
    return isinstance(node, Join) and node.kind is JoinKind.INNER


def _push_parts(node: Rows, parts: list[Expr]) -> tuple[Rows, list[Expr]]:
    """The relation with all conditions that it can take, and those that it cannot."""
    if not isinstance(node, Join) or node.kind is not JoinKind.INNER or not parts:
        return node, parts
    ours, theirs = ({f.name for f in row_fields(side)} for side in (node.left, node.right))
    on_left = [part for part in parts if columns_of(part) and columns_of(part) <= ours]
    on_right = [part for part in parts if columns_of(part) and columns_of(part) <= theirs]
    both = [p for p in parts if p not in on_left and p not in on_right and columns_of(p) & theirs]
    rest = [part for part in parts if part not in on_left and part not in on_right and part not in both]
    left, right = _push_into_side(node.left, on_left), _push_into_side(node.right, on_right)
    own_conditions = tuple(part for part in split_conjuncts(node.condition) if part != TRUE)
    return replace(node, left=left, right=right, condition=join_conjuncts((*own_conditions, *both))), rest


def _push_into_side(rows: Rows, parts: list[Expr]) -> Rows:
    inner, remaining = _push_parts(rows, parts)
    return Filter(inner, join_conjuncts(tuple(remaining))) if remaining else inner
