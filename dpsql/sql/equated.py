"""Which rows a condition proves to be of one privacy unit.

A join of private rows must equate the units, directly or along declared foreign keys; what the conditions do not say is
refused, because adding it silently would change the answer (SOUNDNESS 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpsql.plan.expr import Cast, Column, Compare, Expr, Literal, conjuncts
from dpsql.sql.names import BoundColumn, Link

Piece = tuple[BoundColumn, ...]
"""Columns of rows that are known to belong to one unit."""


def groups(pieces: Sequence[Piece], known: Iterable[Expr]) -> list[set[int]]:
    """The pieces (by place) that are of one unit in every row in which all of `known` is true.

    Stability: equal values of columns with a link in common lead to one unit (BoundColumn), and equality is transitive.
    """
    classes = _Classes()
    for condition in known:
        for part in conjuncts(condition):
            match part:
                case Compare("=", left, right):
                    one, other = _plain(left), _plain(right)
                    if one is not None and other is not None:
                        classes.join(one, other)
                case _:
                    pass
    together = _Classes()
    met: dict[tuple[object, Link], int] = {}
    for place, piece in enumerate(pieces):
        for column in piece:
            for link in column.links:
                first = met.setdefault((classes.root(column.column.name), link), place)
                together.join(first, place)
    found: dict[object, set[int]] = {}
    for place in range(len(pieces)):
        found.setdefault(together.root(place), set()).add(place)
    return list(found.values())


def _plain(expr: Expr) -> object | None:
    """A column's name, or a literal; casts between whole numbers keep values apart, NULL aside."""
    if isinstance(expr, Column):
        return expr.name
    if isinstance(expr, Cast) and expr.type.is_integer and expr.arg.type.is_integer:
        return _plain(expr.arg)
    return expr if isinstance(expr, Literal) and expr.value is not None else None


class _Classes:
    """Union-find."""

    def __init__(self) -> None:
        self._parent: dict[object, object] = {}

    def root(self, member: object) -> object:
        parent = self._parent.setdefault(member, member)
        while parent != member:
            member, parent = parent, self._parent[parent]
        return member

    def join(self, one: object, other: object) -> None:
        self._parent[self.root(one)] = self.root(other)
