"""The sources of a canonical plan: in one order, under one set of names, with their conditions in one place.

    FROM people p JOIN orders o ON o.uid = p.uid AND p.vip
        →  FROM orders JOIN people ON orders.uid = people.uid WHERE people.vip

Inner joins only. They give the same rows in either order, and a condition of theirs keeps the rows that WHERE would
keep. Equalities that span a join stay its condition, as the binder has it: they tell how many rows may meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import assert_never

from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.expressions import TRUE, Column, Compare, Expr, join_conjuncts, split_conjuncts
from dpsql.compiler.plan.relations import (
    Expand,
    Field,
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
    is_public,
    row_fields,
)
from dpsql.compiler.plan.walk import columns_of, map_expr, map_measure, map_node_exprs, map_rows, walk_rows

# --- conditions ------------------------------------------------------------------------------------------------------


def normalize_conditions(node: Rows) -> Rows:
    """One node whose inputs are settled: filters stand above inner joins, and equalities across one within it."""
    if isinstance(node, Join) and node.is_inner:
        (left, ours), (right, theirs) = _strip_filters(node.left), _strip_filters(node.right)
        bare = replace(node, left=left, right=right, condition=TRUE)
        return _attach_conditions(bare, (*ours, *theirs, *split_conjuncts(node.condition)))
    if isinstance(node, Filter):
        rows, below = _strip_filters(node.input)
        return _attach_conditions(rows, (*below, *split_conjuncts(node.condition)))
    return node


def _strip_filters(node: Rows) -> tuple[Rows, tuple[Expr, ...]]:
    parts: tuple[Expr, ...] = ()
    while isinstance(node, Filter):
        parts = (*split_conjuncts(node.condition), *parts)
        node = node.input
    return node, parts


def _attach_conditions(rows: Rows, parts: Iterable[Expr]) -> Rows:
    remaining: list[Expr] = []
    for part in parts:
        spanned = _add_to_join(rows, part) if isinstance(part, Compare) and part.op == "=" else None
        if spanned is not None:
            rows = spanned
        elif part != TRUE:
            remaining.append(part)
    return Filter(rows, join_conjuncts(tuple(remaining))) if remaining else rows


def _add_to_join(node: Rows, part: Expr) -> Rows | None:
    """The rows with the condition in the inner join that it spans; None where it spans none."""
    if not isinstance(node, Join) or not node.is_inner:
        return None
    read = columns_of(part)
    left, right = ({f.name for f in row_fields(side)} for side in (node.left, node.right))
    if read <= left:
        inner = _add_to_join(node.left, part)
        return None if inner is None else replace(node, left=inner)
    if read <= right:
        inner = _add_to_join(node.right, part)
        return None if inner is None else replace(node, right=inner)
    condition = tuple(condition for condition in split_conjuncts(node.condition) if condition != TRUE)
    return replace(node, condition=join_conjuncts((*condition, part)))


# --- order -----------------------------------------------------------------------------------------------------------


def order_join_sides(node: Rows, text: Callable[[Rows], str]) -> Rows:
    """The two private sides of an inner join in the order of their texts, below joins with public rows and filters.

    Stability: the ids of both sides are equated in the SQL that runs, so either side's is the result's. Three sides and
    more stay as they are: how many rows of a unit meet is worked out from left to right.
    """
    if isinstance(node, Filter):
        return replace(node, input=order_join_sides(node.input, text))
    if not isinstance(node, Join) or not node.is_inner or is_public(node.left):
        return node
    if is_public(node.right):
        return replace(node, left=order_join_sides(node.left, text))
    if any(isinstance(side, Join) and side.is_inner for side in (node.left, node.right)):
        return node
    if text(rename_row_columns(node.right)) < text(rename_row_columns(node.left)):
        return replace(node, left=node.right, right=node.left)
    return node


# --- names -----------------------------------------------------------------------------------------------------------


def rename_columns(aggregate: Aggregate) -> Aggregate:
    """The columns of tables by their own names, numbered in the order of the plan where several have one name."""
    names = _assign_names(aggregate.input)

    def rename_expr(expr: Expr) -> Expr:
        return _rename_in_expr(expr, names)

    keys = tuple(Named(key.name, rename_expr(key.expr)) for key in aggregate.keys)
    measures = tuple(map_measure(measure, rename_expr) for measure in aggregate.measures)
    return replace(aggregate, input=_rename_in_rows(aggregate.input, names), keys=keys, measures=measures)


def rename_row_columns(node: Rows) -> Rows:
    return _rename_in_rows(node, _assign_names(node))


def _assign_names(rows: Rows) -> dict[str, str]:
    """New names of the columns of tables; all other names, those of holes among them, stay and are not given twice."""
    nodes = list(walk_rows(rows))
    tables = [node for node in nodes if isinstance(node, Table | PublicTable)]
    columns = [(declared, field.name) for table in tables for declared, field in table.columns]
    old = {name for _, name in columns}
    taken = {f.name.lower() for node in nodes for f in row_fields(node) if f.name not in old}
    names: dict[str, str] = {}
    for declared, name in columns:
        base = "column" + declared if declared.startswith("_") else declared
        new_name, number = base, 1
        while new_name.lower() in taken:
            number += 1
            new_name = f"{base}_{number}"
        taken.add(new_name.lower())
        names[name] = new_name
    return names


def _rename_in_expr(expr: Expr, names: dict[str, str]) -> Expr:
    def change(part: Expr) -> Expr:
        return replace(part, name=names.get(part.name, part.name)) if isinstance(part, Column) else part

    return map_expr(expr, change)


def _rename_in_rows(rows: Rows, names: dict[str, str]) -> Rows:
    def name(old: str) -> str:
        return names.get(old, old)

    def change(node: Rows) -> Rows:
        node = map_node_exprs(node, lambda expr: _rename_in_expr(expr, names))
        match node:
            case Table() | PublicTable():
                fields = tuple((declared, Field(name(f.name), f.type)) for declared, f in node.columns)
                return replace(node, columns=fields)
            case Project():
                return replace(node, columns=tuple(Named(name(c.name), c.expr) for c in node.columns))
            case PerUnit():
                keys = tuple(Named(name(key.name), key.expr) for key in node.keys)
                return replace(node, keys=keys, measures=tuple(replace(m, name=name(m.name)) for m in node.measures))
            case Mark() | UnitWindow():
                return replace(node, name=name(node.name))
            case Filter() | Join() | SetOperation() | Expand() | RowsHole() | Scan() | PublicScan():
                return node
            case _:
                assert_never(node)

    return map_rows(rows, change)
