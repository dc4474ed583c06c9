"""The order of inner joins: private rows first, then public rows by their keys.

    FROM nation, supplier, lineitem WHERE s_suppkey = l_suppkey AND s_nationkey = n_nationkey
    →  (lineitem JOIN supplier ON s_suppkey = l_suppkey) JOIN nation ON s_nationkey = n_nationkey

Inner joins give the same rows in any order. In this one a private row meets one public row at a time wherever a
condition names a unique key, so that nothing is multiplied that the statement does not multiply.
"""

from __future__ import annotations

from dpsql.plan.expr import TRUE, Column, Compare, Expr, conjunction, conjuncts
from dpsql.plan.relations import Filter, Join, JoinKind, Project, PublicTable, Rows, is_public, row_fields
from dpsql.plan.walk import columns_of
from dpsql.schema.model import Schema


def arranged(node: Rows, schema: Schema) -> Rows:
    if isinstance(node, Filter):
        return Filter(arranged(node.input, schema), node.condition)
    leaves, conditions = _parts(node)
    if sum(map(is_public, leaves)) == 0 or len(leaves) < 3:
        return node
    private = [leaf for leaf in leaves if not is_public(leaf)]
    waiting = private[1:] + [leaf for leaf in leaves if is_public(leaf)] if private else leaves[1:]
    result = private[0] if private else leaves[0]
    while waiting:
        chosen = min(waiting, key=lambda leaf: _rank(leaf, result, conditions, schema))  # the first of equals
        waiting.remove(chosen)
        known = _names(result) | _names(chosen)
        now = tuple(part for part in conditions if columns_of(part) <= known)
        conditions = tuple(part for part in conditions if part not in now)
        result = Join(result, chosen, JoinKind.INNER, conjunction(now))
    return result


def _parts(node: Rows) -> tuple[list[Rows], tuple[Expr, ...]]:
    """What a tree of inner joins joins, in order, and all its conditions."""
    if not isinstance(node, Join) or not node.is_inner:
        return [node], ()
    (left, one), (right, other) = _parts(node.left), _parts(node.right)
    own = () if node.condition == TRUE else conjuncts(node.condition)
    return left + right, one + other + own


def _rank(leaf: Rows, joined: Rows, conditions: tuple[Expr, ...], schema: Schema) -> int:
    """Private rows in their order; then public rows found by a unique key, by another equality, by none."""
    if not is_public(leaf):
        return 0
    equated = _equated(leaf, _names(joined), conditions)
    if any(key <= equated for key in _unique(leaf, schema)):
        return 1
    return 2 if equated else 3


def _equated(leaf: Rows, known: frozenset[str], conditions: tuple[Expr, ...]) -> frozenset[str]:
    own = _names(leaf)
    found: set[str] = set()
    for part in conditions:
        if isinstance(part, Compare) and part.op == "=":
            for column, other in ((part.left, part.right), (part.right, part.left)):
                if isinstance(column, Column) and column.name in own and columns_of(other) <= known:
                    found.add(column.name)
    return frozenset(found)


def _unique(node: Rows, schema: Schema) -> list[frozenset[str]]:
    """Declared unique keys of public rows, by the plan's names."""
    if isinstance(node, PublicTable):
        table = schema.table(node.table)
        names = {declared: field.name for declared, field in node.columns}
        return [frozenset(names[name] for name in key) for key in (table.unique if table is not None else ())]
    if isinstance(node, Filter):
        return _unique(node.input, schema)
    if isinstance(node, Project):
        renamed = {c.expr.name: c.name for c in node.columns if isinstance(c.expr, Column)}
        return [frozenset(renamed[n] for n in key) for key in _unique(node.input, schema) if key <= renamed.keys()]
    return []  # unknown is right, only slower: what multiplies is counted on the plan that runs


def _names(node: Rows) -> frozenset[str]:
    return frozenset(field.name for field in row_fields(node))
