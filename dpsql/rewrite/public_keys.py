"""Find keys that come from public rows, and the relation that lists them.

    visits JOIN wards ON visits.ward = wards.ward GROUP BY floor, wards.ward   →  the pairs that stand in wards
    … WHERE floor = 2 GROUP BY visits.ward                                     →  the wards of the second floor

A key comes from public rows where it is a column of theirs, or is equated to one by an inner join or a filter. The list
meets the conditions that read public columns only, so that groups which no row could have are not in the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import assert_never

from dpsql.analysis.public import most_rows
from dpsql.plan.expr import Call, Column, Compare, Expr, IsNull, Not, conjunction, conjuncts
from dpsql.plan.nodes import ListedHole
from dpsql.plan.relations import (
    Expand,
    Field,
    Filter,
    Join,
    JoinKind,
    Mark,
    Named,
    PerUnit,
    Project,
    PublicScan,
    PublicTable,
    Rows,
    RowsHole,
    Scan,
    SetKind,
    SetOperation,
    Table,
    UnitWindow,
    row_fields,
)
from dpsql.plan.walk import columns_of, map_expr, walk_rows

Leaf = RowsHole | PublicScan


@dataclass(frozen=True)
class Origin:
    """The column of public rows that a column equals; `optional`: or NULL, where an outer join found no row."""

    leaf: Leaf
    column: Column
    optional: bool = False


@dataclass(frozen=True)
class Origins:
    """By the names of a relation's columns; and the conditions on public columns alone that all its rows meet."""

    columns: dict[str, Origin] = field(default_factory=dict)
    conditions: tuple[Expr, ...] = ()


def origins(node: Rows) -> Origins:
    match node:
        case RowsHole() | PublicScan():
            return Origins({f.name: Origin(node, Column(f.name, f.type)) for f in row_fields(node)})
        case Filter():
            return _where(origins(node.input), node.condition)
        case Project():
            below = origins(node.input)
            return Origins(_renamed(node.columns, below), below.conditions)
        case PerUnit():
            below = origins(node.input)
            return Origins(_renamed(node.keys, below), below.conditions)
        case Join():
            return _join(node, origins(node.left), origins(node.right))
        case Mark():
            return origins(node.left)
        case UnitWindow() | Expand():
            return origins(node.input)
        case SetOperation():
            return origins(node.left) if node.kind in (SetKind.INTERSECT, SetKind.EXCEPT) else Origins()
        case Table() | Scan() | PublicTable():
            return Origins()
        case _:
            assert_never(node)


def _renamed(columns: tuple[Named, ...], below: Origins) -> dict[str, Origin]:
    return {c.name: found for c in columns if (found := origin_of(c.expr, below)) is not None}


def origin_of(expr: Expr, known: Origins) -> Origin | None:
    if isinstance(expr, Call) and expr.function == "finite":
        return origin_of(expr.args[0], known)
    return known.columns.get(expr.name) if isinstance(expr, Column) else None


def _join(join: Join, left: Origins, right: Origins) -> Origins:
    def optional(side: Origins) -> dict[str, Origin]:
        return {name: replace(origin, optional=True) for name, origin in side.columns.items()}

    conditions = left.conditions + right.conditions
    match join.kind:
        case JoinKind.INNER:
            return _where(Origins(left.columns | right.columns, conditions), join.condition)
        case JoinKind.LEFT:
            return Origins(left.columns | optional(right), conditions)
        case JoinKind.FULL:
            return Origins(optional(left) | optional(right), conditions)
        case _:
            assert_never(join.kind)


def _where(known: Origins, condition: Expr) -> Origins:
    parts = conjuncts(condition)
    columns = dict(known.columns)
    while found := _equated(parts, columns):
        columns |= found
    public = tuple(part for part in parts if columns_of(part) and columns_of(part) <= _sure(columns))
    said = (_as_public(part, columns) for part in public)
    return Origins(columns, known.conditions + tuple(part for part in said if not _is_trivial(part, columns)))


def _equated(parts: tuple[Expr, ...], known: dict[str, Origin]) -> dict[str, Origin]:
    """Columns that were not known to be public and equal one that is, in every row."""
    for part in parts:
        match part:
            case Compare("=", Column() as one, Column() as other) if one.type == other.type:
                for new, public in ((one.name, other.name), (other.name, one.name)):
                    if new not in known and public in _sure(known):
                        return {new: known[public]}
            case _:
                pass
    return {}


def _sure(columns: dict[str, Origin]) -> frozenset[str]:
    return frozenset(name for name, origin in columns.items() if not origin.optional)


def _as_public(part: Expr, columns: dict[str, Origin]) -> Expr:
    return map_expr(part, lambda e: columns[e.name].column if isinstance(e, Column) else e)


def _is_trivial(part: Expr, columns: dict[str, Origin]) -> bool:
    """x = x, where x is never NULL: what is left of an equality by which a private column is public."""
    if not isinstance(part, Compare) or part.op != "=" or part.left != part.right or not isinstance(part.left, Column):
        return False
    column = part.left
    leaves = {origin.leaf for origin in columns.values() if origin.column == column}
    return all(isinstance(leaf, PublicScan) and not _nullable(leaf, column) for leaf in leaves)


def _nullable(scan: PublicScan, column: Column) -> bool:
    return next(c.values.nullable for c in scan.columns if c.name == column.name)


# --- lists -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PublicKeys:
    """Keys whose values stand together in public rows, and the factor that lists them."""

    keys: tuple[Named, ...]
    factor: ListedHole
    by_value: bool  # one key, and no condition but on the key itself: its values, which are registered, say the same
    decided_by: frozenset[str] = frozenset()  # columns by which an outer join looks these up


def public_keys(keys: tuple[Named, ...], node: Rows, nullable: Mapping[str, bool]) -> list[PublicKeys]:
    """`nullable` says which keys may be NULL.

    Privacy: the lists are made of public rows and released values alone (SOUNDNESS 3).
    """
    found = origins(node)
    together: dict[tuple[tuple[Leaf, ...], bool], list[tuple[Named, Origin]]] = {}
    for key in keys:
        origin = origin_of(key.expr, found)
        if origin is not None:
            leaves = (origin.leaf,) if origin.optional else _connected(origin.leaf, node, found.conditions)
            together.setdefault((leaves, origin.optional), []).append((key, origin))
    return [
        replace(
            _listed(leaves, optional, members, found.conditions, nullable),
            decided_by=_looked_up(leaves[0], node) if optional else frozenset(),
        )
        for (leaves, optional), members in together.items()
    ]


def _looked_up(leaf: Leaf, node: Rows) -> frozenset[str]:
    """The columns of the left by which an outer join finds its public rows: they decide which ones it finds."""
    for join in walk_rows(node):
        if isinstance(join, Join) and join.kind is JoinKind.LEFT and leaf in walk_rows(join.right):
            return columns_of(join.condition) - _names(join.right)
    return frozenset()


def _connected(leaf: Leaf, node: Rows, conditions: tuple[Expr, ...]) -> tuple[Leaf, ...]:
    """The public rows that conditions tie to these, in the order of the plan: for all of them the same."""
    leaves = [part for part in walk_rows(node) if isinstance(part, RowsHole | PublicScan)]
    tied: set[Leaf] = set()
    more = {leaf}
    while more - tied:
        tied |= more
        read = [columns_of(condition) for condition in conditions if columns_of(condition) & _names(*tied)]
        more = {other for other in leaves for names in read if names & _names(other)}
    return tuple(other for other in leaves if other in tied)


def _names(*nodes: Rows) -> frozenset[str]:
    return frozenset(f.name for node in nodes for f in row_fields(node))


def _listed(
    leaves: tuple[Leaf, ...],
    optional: bool,
    members: list[tuple[Named, Origin]],
    conditions: tuple[Expr, ...],
    nullable: Mapping[str, bool],
) -> PublicKeys:
    about = tuple(condition for condition in conditions if columns_of(condition) <= _names(*leaves))
    present = tuple(Not(IsNull(o.column)) for key, o in members if not optional and not nullable[key.name])
    rows = _tied_rows(leaves, about + present)
    registered = [_values(origin) for _, origin in members]
    most = min(most_rows(rows), prod(most_rows(rows) if number is None else number for number in registered))
    fields = tuple(Field(key.name, key.expr.type) for key, _ in members)
    missing = optional and all(nullable[key.name] for key, _ in members)
    factor = ListedHole(fields, rows, tuple(o.column.name for _, o in members), most, missing)
    own = {o.column.name for _, o in members}
    alone = len(members) == 1 and len(leaves) == 1 and all(columns_of(condition) <= own for condition in about)
    return PublicKeys(tuple(key for key, _ in members), factor, alone and registered[0] is not None)


def _values(origin: Origin) -> int | None:
    """How many values the public column has, where they are registered: those of a hole are known when it is bound."""
    if not isinstance(origin.leaf, PublicScan):
        return None
    domain = next(c.values for c in origin.leaf.columns if c.name == origin.column.name)
    return None if domain.values is None else len(domain.values) + 1  # and NULL


def _tied_rows(leaves: tuple[Leaf, ...], conditions: tuple[Expr, ...]) -> Rows:
    """The rows joined to each other; started with those that bound their number best."""
    return min((_chain(start, leaves, conditions) for start in leaves), key=most_rows)


def _chain(start: Leaf, leaves: tuple[Leaf, ...], conditions: tuple[Expr, ...]) -> Rows:
    rows: Rows = _filtered(start, conditions)
    used = [condition for condition in conditions if columns_of(condition) <= _names(start)]
    rest = [leaf for leaf in leaves if leaf != start]
    while rest:
        leaf = next((one for one in rest if _ties(rows, one, conditions, used)), rest[0])
        rest.remove(leaf)
        used += [condition for condition in conditions if columns_of(condition) <= _names(leaf)]
        ties = _ties(rows, leaf, conditions, used)
        rows = Join(rows, _filtered(leaf, conditions), JoinKind.INNER, conjunction(ties))
        used += ties
    return rows


def _ties(rows: Rows, leaf: Leaf, conditions: tuple[Expr, ...], used: list[Expr]) -> tuple[Expr, ...]:
    return tuple(c for c in conditions if c not in used and columns_of(c) <= _names(rows, leaf))


def _filtered(leaf: Leaf, conditions: tuple[Expr, ...]) -> Rows:
    own = tuple(condition for condition in conditions if columns_of(condition) <= _names(leaf))
    return Filter(leaf, conjunction(own)) if own else leaf
