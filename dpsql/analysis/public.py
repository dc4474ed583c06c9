"""Public rows beside private ones: how many there are, and how often one private row may meet them.

A unit's rows are multiplied by joins with public rows. Facts come from row counts and unique keys that were registered
with the data version, or from the most that a hole may hold (SOUNDNESS 2).
"""

from __future__ import annotations

from dpsql.errors import InternalError
from dpsql.plan.expr import Column, Compare, Expr, conjuncts
from dpsql.plan.relations import (
    Filter,
    Join,
    JoinKind,
    Mark,
    Project,
    PublicScan,
    Rows,
    RowsHole,
    is_public,
    row_fields,
)
from dpsql.plan.walk import columns_of


def most_rows(node: Rows) -> int:
    """How many rows a public relation has at most."""
    match node:
        case PublicScan():
            return node.rows
        case RowsHole():
            return node.most
        case Filter() | Project():
            return most_rows(node.input)
        case Join():
            matched = most_rows(node.left) * matches(node)
            return matched if node.kind is JoinKind.INNER else max(matched, most_rows(node.left))
        case _:
            raise InternalError("these rows are not public")


def matches(join: Join) -> int:
    """How many public rows of the right one row of the left may meet: one, where the condition names a unique key."""
    named = equated_to_left(join.condition, join.left, join.right)
    if any(key <= named for key in unique_keys(join.right)):
        return 1
    return most_rows(join.right)


def equated_to_left(condition: Expr, left: Rows, right: Rows) -> frozenset[str]:
    """Columns of the right that the condition equates to something of the left, or to a constant."""
    theirs = {f.name for f in row_fields(right)}
    ours = {f.name for f in row_fields(left)}
    found: set[str] = set()
    for part in conjuncts(condition):
        if isinstance(part, Compare) and part.op == "=":
            for column, other in ((part.left, part.right), (part.right, part.left)):
                if isinstance(column, Column) and column.name in theirs and columns_of(other) <= ours:
                    found.add(column.name)
    return frozenset(found)


def unique_keys(node: Rows) -> tuple[frozenset[str], ...]:
    """The accepted unique keys of public rows, under the names that they have here."""
    match node:
        case PublicScan():
            return node.unique
        case Filter():
            return unique_keys(node.input)
        case Project():
            names = {c.expr.name: c.name for c in node.columns if isinstance(c.expr, Column)}
            keys = (key for key in unique_keys(node.input) if key <= names.keys())
            return tuple(frozenset(names[name] for name in key) for key in keys)
        case Join() if is_public(node) and matches(node) == 1:
            return unique_keys(node.left)
        case _:
            return ()


def multiplied(node: Rows) -> int:
    """By how much joins with public rows may multiply a private row, at most."""
    match node:
        case Join() if is_public(node.right) and not is_public(node.left):
            return multiplied(node.left) * max(1, matches(node))
        case Join():
            return multiplied(node.left) * multiplied(node.right)
        case Mark() if is_public(node.right):
            meets = bool(equated_to_left(node.condition, node.left, node.right)) or node.test is not None
            return multiplied(node.left) * (1 if meets else max(1, most_rows(node.right)))
        case _:
            inputs = [getattr(node, place) for place in ("input", "left", "right") if hasattr(node, place)]
            return max((multiplied(rows) for rows in inputs), default=1)
