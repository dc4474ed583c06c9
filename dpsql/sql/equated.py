"""Which rows a condition proves to be of one privacy unit.

A join of private rows must equate the units, directly or along declared foreign keys; what the conditions do not say is
refused, because adding it silently would change the answer (SOUNDNESS 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpsql.plan.expr import Cast, Column, Compare, Expr, Literal, split_conjuncts
from dpsql.sql.names import BoundColumn, UnitLink

UnitColumns = tuple[BoundColumn, ...]
"""Columns of rows that are known to belong to one unit."""


def units_equated(pieces: Sequence[UnitColumns], conditions: Iterable[Expr]) -> list[set[int]]:
    """The pieces (by place) that are of one unit in every row in which all of `known` is true.

    Stability: equal values of columns with a link in common lead to one unit (BoundColumn), and equality is transitive.
    """
    classes = _UnionFind()
    for condition in conditions:
        for part in split_conjuncts(condition):
            match part:
                case Compare("=", left, right):
                    left_term, right_term = _equality_term(left), _equality_term(right)
                    if left_term is not None and right_term is not None:
                        classes.union(left_term, right_term)
                case _:
                    pass
    together = _UnionFind()
    first_seen: dict[tuple[object, UnitLink], int] = {}
    for index, piece in enumerate(pieces):
        for column in piece:
            for link in column.links:
                first = first_seen.setdefault((classes.find_root(column.column.name), link), index)
                together.union(first, index)
    unit_groups: dict[object, set[int]] = {}
    for index in range(len(pieces)):
        unit_groups.setdefault(together.find_root(index), set()).add(index)
    return list(unit_groups.values())


def _equality_term(expr: Expr) -> object | None:
    """A column's name, or a literal; casts between whole numbers keep values apart, NULL aside."""
    if isinstance(expr, Column):
        return expr.name
    if isinstance(expr, Cast) and expr.type.is_integer and expr.arg.type.is_integer:
        return _equality_term(expr.arg)
    return expr if isinstance(expr, Literal) and expr.value is not None else None


class _UnionFind:
    """Union-find."""

    def __init__(self) -> None:
        self._parent: dict[object, object] = {}

    def find_root(self, member: object) -> object:
        parent = self._parent.setdefault(member, member)
        while parent != member:
            member, parent = parent, self._parent[parent]
        return member

    def union(self, first: object, second: object) -> None:
        self._parent[self.find_root(first)] = self.find_root(second)
