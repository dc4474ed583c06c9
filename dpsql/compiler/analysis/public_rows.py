"""Public rows beside private ones: how many there are, and how often one private row may meet them.

A unit's rows are multiplied by joins with public rows. Facts come from row counts and unique keys that were registered
with the data version, from counts of public rows (`rewrite/count_matches.py`), or from the most that a hole may hold
(SOUNDNESS 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from dpsql.compiler.plan.expressions import Cast, Column, Compare, Expr, split_conjuncts
from dpsql.compiler.plan.relations import (
    Expand,
    Filter,
    Join,
    JoinKind,
    Mark,
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
    is_public,
    row_fields,
)
from dpsql.compiler.plan.walk import columns_of
from dpsql.errors import InternalError


def max_public_rows(node: Rows) -> int:
    """How many rows a public relation has at most."""
    match node:
        case PublicScan():
            return node.rows
        case RowsHole():
            return node.most
        case Filter() | Project():
            return max_public_rows(node.input)
        case Join():
            matched = max_public_rows(node.left) * max_join_matches(node)
            return matched if node.kind is JoinKind.INNER else max(matched, max_public_rows(node.left))
        case Table() | Scan() | PublicTable() | Mark() | PerUnit() | UnitWindow() | SetOperation() | Expand():
            raise InternalError("these rows are not public")
        case _:
            assert_never(node)


def max_join_matches(join: Join) -> int:
    """How many public rows of the right one row of the left may meet: one, where the condition names a unique key."""
    named = columns_equated_to_left(join.condition, join.left, join.right)
    if any(key <= named for key in unique_keys_of(join.right)):
        return 1
    return max_public_rows(join.right) if join.matches is None else join.matches


def columns_equated_to_left(condition: Expr, left: Rows, right: Rows) -> frozenset[str]:
    """Columns of the right that the condition equates to something of the left, or to a constant.

    Casts between whole numbers keep values apart, NULL aside: of a key's values one is equal at most.
    """
    theirs = {f.name for f in row_fields(right)}
    ours = {f.name for f in row_fields(left)}
    equated: set[str] = set()
    for part in split_conjuncts(condition):
        if isinstance(part, Compare) and part.op == "=":
            for side, other in ((part.left, part.right), (part.right, part.left)):
                column = _strip_integer_cast(side)
                if isinstance(column, Column) and column.name in theirs and columns_of(other) <= ours:
                    equated.add(column.name)
    return frozenset(equated)


def _strip_integer_cast(expr: Expr) -> Expr:
    while isinstance(expr, Cast) and expr.type.is_integer and expr.arg.type.is_integer:
        expr = expr.arg
    return expr


def unique_keys_of(node: Rows) -> tuple[frozenset[str], ...]:
    """The accepted unique keys of public rows, under the names that they have here."""
    match node:
        case PublicScan():
            return node.unique
        case Filter():
            return unique_keys_of(node.input)
        case Project():
            names = {c.expr.name: c.name for c in node.columns if isinstance(c.expr, Column)}
            keys = (key for key in unique_keys_of(node.input) if key <= names.keys())
            return tuple(frozenset(names[name] for name in key) for key in keys)
        case Join() if is_public(node) and max_join_matches(node) == 1:
            return unique_keys_of(node.left)
        case Join() if is_public(node) and node.kind is JoinKind.INNER:  # a pair of rows by a key of each
            return tuple(
                left_key | right_key
                for left_key in unique_keys_of(node.left)
                for right_key in unique_keys_of(node.right)
            )
        case RowsHole():
            return (node.unique,) if node.unique else ()
        case Join() | Table() | Scan() | PublicTable():
            return ()
        case Mark() | PerUnit() | UnitWindow() | SetOperation() | Expand():
            return ()
        case _:
            assert_never(node)


def max_row_multiplication(node: Rows) -> int:
    """By how much public rows multiply private ones while the engine works, at most: the largest of any step."""
    return _row_growth(node).most


@dataclass(frozen=True)
class _RowGrowth:
    """Public rows that one row has met when it leaves a step, and the most that any step up to it has looked at."""

    now: int
    most: int


def _row_growth(node: Rows) -> _RowGrowth:
    match node:
        case Join() if is_public(node.right):
            left, right = _row_growth(node.left), _row_growth(node.right)
            return _growth_after_step(left.now * max(1, max_join_matches(node)), left.most, right.most)
        case Join():
            left, right = _row_growth(node.left), _row_growth(node.right)
            return _growth_after_step(left.now * right.now, left.most, right.most)
        case Mark():
            left, right = _row_growth(node.left), _row_growth(node.right)
            probed = left.now * (_max_rows_probed(node) if is_public(node.right) else right.now)
            return _RowGrowth(left.now, max(probed, left.most, right.most))
        case PerUnit():
            inner = _row_growth(node.input)
            return _RowGrowth(inner.now if node.keys else 1, inner.most)
        case SetOperation():
            left, right = _row_growth(node.left), _row_growth(node.right)
            return _growth_after_step(max(left.now, right.now), left.most, right.most)
        case Filter() | Project() | UnitWindow() | Expand():
            return _row_growth(node.input)
        case Table() | Scan() | PublicTable() | PublicScan() | RowsHole():
            return _RowGrowth(1, 1)
        case _:
            assert_never(node)


def _growth_after_step(now: int, *below: int) -> _RowGrowth:
    return _RowGrowth(now, max(now, *below))


def _max_rows_probed(mark: Mark) -> int:
    """How many rows of the right are tried for one of the left.

    One, where a unique key is named, or where there is nothing but equalities to look up: the first match decides. What
    else compares a row of the left with one of the right is tried on all that the equalities find.
    """
    ours = {f.name for f in row_fields(mark.left)}
    if not columns_of(mark.condition) & ours:
        return 1
    named = columns_equated_to_left(mark.condition, mark.left, mark.right)
    if any(key <= named for key in unique_keys_of(mark.right)):
        return 1
    if mark.test is None and named and has_only_equalities(mark):
        return 1
    return max(1, max_public_rows(mark.right))


def has_only_equalities(mark: Mark) -> bool:
    """Whether equalities are all that a row of the left meets those of the right by: so engines look it up.

    Not of IN, whose third answer is NULL: with NULLs on both sides DuckDB tries all pairs. Nor where a condition reads
    the left alone, which it may try on all that the equalities find. [Both took n^4 and n^5 of a unit's n rows.]
    """
    ours = {f.name for f in row_fields(mark.left)}
    reading = [part for part in split_conjuncts(mark.condition) if columns_of(part) & ours]
    return mark.test is None and all(columns_equated_to_left(part, mark.left, mark.right) for part in reading)
