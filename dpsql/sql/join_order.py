"""The order of inner joins: private rows first, then public rows by their keys.

    FROM nation, supplier, lineitem WHERE s_suppkey = l_suppkey AND s_nationkey = n_nationkey
    →  (lineitem JOIN supplier ON s_suppkey = l_suppkey) JOIN nation ON s_nationkey = n_nationkey

Inner joins give the same rows in any order. In this one a private row meets one public row at a time wherever a
condition names a unique key, so that nothing is multiplied that the statement does not multiply.
"""

from __future__ import annotations

from dpsql.plan.expr import TRUE, Column, Compare, Expr, join_conjuncts, split_conjuncts
from dpsql.plan.relations import Filter, Join, JoinKind, Project, PublicTable, Rows, is_public, row_fields
from dpsql.plan.walk import columns_of
from dpsql.schema.model import Schema


def order_inner_joins(node: Rows, schema: Schema) -> Rows:
    if isinstance(node, Filter):
        return Filter(order_inner_joins(node.input, schema), node.condition)
    leaves, conditions = _flatten_inner_joins(node)
    if sum(map(is_public, leaves)) == 0 or len(leaves) < 3:
        return node
    private = [leaf for leaf in leaves if not is_public(leaf)]
    waiting = private[1:] + [leaf for leaf in leaves if is_public(leaf)] if private else leaves[1:]
    result = private[0] if private else leaves[0]
    while waiting:
        chosen = min(waiting, key=lambda leaf: _join_rank(leaf, result, conditions, schema))  # the first of equals
        waiting.remove(chosen)
        names = _column_names(result) | _column_names(chosen)
        ready = tuple(part for part in conditions if columns_of(part) <= names)
        conditions = tuple(part for part in conditions if part not in ready)
        result = Join(result, chosen, JoinKind.INNER, join_conjuncts(ready))
    return result


def _flatten_inner_joins(node: Rows) -> tuple[list[Rows], tuple[Expr, ...]]:
    """What a tree of inner joins joins, in order, and all its conditions."""
    if not isinstance(node, Join) or not node.is_inner:
        return [node], ()
    (left, left_conditions), (right, right_conditions) = _flatten_inner_joins(node.left), _flatten_inner_joins(node.right)
    own = () if node.condition == TRUE else split_conjuncts(node.condition)
    return left + right, left_conditions + right_conditions + own


def _join_rank(leaf: Rows, joined: Rows, conditions: tuple[Expr, ...], schema: Schema) -> int:
    """Private rows in their order; then public rows found by a unique key, by another equality, by none."""
    if not is_public(leaf):
        return 0
    equated = _equated_columns(leaf, _column_names(joined), conditions)
    if any(key <= equated for key in _unique_keys(leaf, schema)):
        return 1
    return 2 if equated else 3


def _equated_columns(leaf: Rows, available: frozenset[str], conditions: tuple[Expr, ...]) -> frozenset[str]:
    own = _column_names(leaf)
    equated: set[str] = set()
    for part in conditions:
        if isinstance(part, Compare) and part.op == "=":
            for column, other in ((part.left, part.right), (part.right, part.left)):
                if isinstance(column, Column) and column.name in own and columns_of(other) <= available:
                    equated.add(column.name)
    return frozenset(equated)


def _unique_keys(node: Rows, schema: Schema) -> list[frozenset[str]]:
    """Declared unique keys of public rows, by the plan's names."""
    if isinstance(node, PublicTable):
        table = schema.table(node.table)
        names = {declared: field.name for declared, field in node.columns}
        return [frozenset(names[name] for name in key) for key in (table.unique if table is not None else ())]
    if isinstance(node, Filter):
        return _unique_keys(node.input, schema)
    if isinstance(node, Project):
        renamed = {c.expr.name: c.name for c in node.columns if isinstance(c.expr, Column)}
        return [frozenset(renamed[n] for n in key) for key in _unique_keys(node.input, schema) if key <= renamed.keys()]
    return []  # unknown is right, only slower: what multiplies is counted on the plan that runs


def _column_names(node: Rows) -> frozenset[str]:
    return frozenset(field.name for field in row_fields(node))
