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

from dpsql.compiler.analysis.public_rows import max_public_rows
from dpsql.compiler.plan.aggregate import ListedHole
from dpsql.compiler.plan.expressions import Call, Column, Compare, Expr, IsNull, Not, join_conjuncts, split_conjuncts
from dpsql.compiler.plan.relations import (
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
from dpsql.compiler.plan.walk import columns_of, map_expr, walk_rows

PublicLeaf = RowsHole | PublicScan


@dataclass(frozen=True)
class PublicOrigin:
    """The column of public rows that a column equals; `optional`: or NULL, where an outer join found no row."""

    leaf: PublicLeaf
    column: Column
    optional: bool = False


@dataclass(frozen=True)
class PublicOrigins:
    """By the names of a relation's columns; and the conditions on public columns alone that all its rows meet."""

    columns: dict[str, PublicOrigin] = field(default_factory=dict)
    conditions: tuple[Expr, ...] = ()


def find_public_origins(node: Rows) -> PublicOrigins:
    match node:
        case RowsHole() | PublicScan():
            return PublicOrigins({f.name: PublicOrigin(node, Column(f.name, f.type)) for f in row_fields(node)})
        case Filter():
            return _filter_origins(find_public_origins(node.input), node.condition)
        case Project():
            below = find_public_origins(node.input)
            return PublicOrigins(_rename_origins(node.columns, below), below.conditions)
        case PerUnit():
            below = find_public_origins(node.input)
            return PublicOrigins(_rename_origins(node.keys, below), below.conditions)
        case Join():
            return _join_origins(node, find_public_origins(node.left), find_public_origins(node.right))
        case Mark():
            return find_public_origins(node.left)
        case UnitWindow() | Expand():
            return find_public_origins(node.input)
        case SetOperation():
            return (
                find_public_origins(node.left) if node.kind in (SetKind.INTERSECT, SetKind.EXCEPT) else PublicOrigins()
            )
        case Table() | Scan() | PublicTable():
            return PublicOrigins()
        case _:
            assert_never(node)


def _rename_origins(columns: tuple[Named, ...], below: PublicOrigins) -> dict[str, PublicOrigin]:
    return {c.name: origin for c in columns if (origin := public_origin_of(c.expr, below)) is not None}


def public_origin_of(expr: Expr, below: PublicOrigins) -> PublicOrigin | None:
    if isinstance(expr, Call) and expr.function == "finite":
        return public_origin_of(expr.args[0], below)
    return below.columns.get(expr.name) if isinstance(expr, Column) else None


def _join_origins(join: Join, left: PublicOrigins, right: PublicOrigins) -> PublicOrigins:
    def optional(side: PublicOrigins) -> dict[str, PublicOrigin]:
        return {name: replace(origin, optional=True) for name, origin in side.columns.items()}

    conditions = left.conditions + right.conditions
    match join.kind:
        case JoinKind.INNER:
            return _filter_origins(PublicOrigins(left.columns | right.columns, conditions), join.condition)
        case JoinKind.LEFT:
            return PublicOrigins(left.columns | optional(right), conditions)
        case JoinKind.FULL:
            return PublicOrigins(optional(left) | optional(right), conditions)
        case _:
            assert_never(join.kind)


def _filter_origins(below: PublicOrigins, condition: Expr) -> PublicOrigins:
    parts = split_conjuncts(condition)
    columns = dict(below.columns)
    while equated := _find_equated_columns(parts, columns):
        columns |= equated
    public = tuple(part for part in parts if columns_of(part) and columns_of(part) <= _certain_columns(columns))
    rewritten = (_to_public_columns(part, columns) for part in public)
    return PublicOrigins(
        columns, below.conditions + tuple(part for part in rewritten if not _is_trivial(part, columns))
    )


def _find_equated_columns(parts: tuple[Expr, ...], columns: dict[str, PublicOrigin]) -> dict[str, PublicOrigin]:
    """Columns that were not known to be public and equal one that is, in every row."""
    for part in parts:
        match part:
            case Compare("=", Column() as one, Column() as other) if one.type == other.type:
                for new, public in ((one.name, other.name), (other.name, one.name)):
                    if new not in columns and public in _certain_columns(columns):
                        return {new: columns[public]}
            case _:
                pass
    return {}


def _certain_columns(columns: dict[str, PublicOrigin]) -> frozenset[str]:
    return frozenset(name for name, origin in columns.items() if not origin.optional)


def _to_public_columns(part: Expr, columns: dict[str, PublicOrigin]) -> Expr:
    return map_expr(part, lambda e: columns[e.name].column if isinstance(e, Column) else e)


def _is_trivial(part: Expr, columns: dict[str, PublicOrigin]) -> bool:
    """x = x, where x is never NULL: what is left of an equality by which a private column is public."""
    if not isinstance(part, Compare) or part.op != "=" or part.left != part.right or not isinstance(part.left, Column):
        return False
    column = part.left
    leaves = {origin.leaf for origin in columns.values() if origin.column == column}
    return all(isinstance(leaf, PublicScan) and not _is_nullable(leaf, column) for leaf in leaves)


def _is_nullable(scan: PublicScan, column: Column) -> bool:
    return next(c.values.nullable for c in scan.columns if c.name == column.name)


# --- lists -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PublicKeys:
    """Keys whose values stand together in public rows, and the factor that lists them."""

    keys: tuple[Named, ...]
    factor: ListedHole
    by_value: bool  # one key, and no condition but on the key itself: its values, which are registered, say the same
    decided_by: frozenset[str] = frozenset()  # columns by which an outer join looks these up


def find_public_keys(keys: tuple[Named, ...], node: Rows, nullable: Mapping[str, bool]) -> list[PublicKeys]:
    """`nullable` says which keys may be NULL.

    Privacy: the lists are made of public rows and released values alone (SOUNDNESS 3).
    """
    node_origins = find_public_origins(node)
    together: dict[tuple[tuple[PublicLeaf, ...], bool], list[tuple[Named, PublicOrigin]]] = {}
    for key in keys:
        origin = public_origin_of(key.expr, node_origins)
        if origin is not None:
            leaves = (
                (origin.leaf,) if origin.optional else _connected_leaves(origin.leaf, node, node_origins.conditions)
            )
            together.setdefault((leaves, origin.optional), []).append((key, origin))
    return [
        replace(
            _list_from_leaves(leaves, optional, members, node_origins.conditions, nullable),
            decided_by=_lookup_columns(leaves[0], node) if optional else frozenset(),
        )
        for (leaves, optional), members in together.items()
    ]


def _lookup_columns(leaf: PublicLeaf, node: Rows) -> frozenset[str]:
    """The columns of the left by which an outer join finds its public rows: they decide which ones it finds."""
    for join in walk_rows(node):
        if isinstance(join, Join) and join.kind is JoinKind.LEFT and leaf in walk_rows(join.right):
            return columns_of(join.condition) - _column_names(join.right)
    return frozenset()


def _connected_leaves(leaf: PublicLeaf, node: Rows, conditions: tuple[Expr, ...]) -> tuple[PublicLeaf, ...]:
    """The public rows that conditions tie to these, in the order of the plan: for all of them the same."""
    leaves = [part for part in walk_rows(node) if isinstance(part, RowsHole | PublicScan)]
    tied: set[PublicLeaf] = set()
    more = {leaf}
    while more - tied:
        tied |= more
        read = [columns_of(condition) for condition in conditions if columns_of(condition) & _column_names(*tied)]
        more = {other for other in leaves for names in read if names & _column_names(other)}
    return tuple(other for other in leaves if other in tied)


def _column_names(*nodes: Rows) -> frozenset[str]:
    return frozenset(f.name for node in nodes for f in row_fields(node))


def _list_from_leaves(
    leaves: tuple[PublicLeaf, ...],
    optional: bool,
    members: list[tuple[Named, PublicOrigin]],
    conditions: tuple[Expr, ...],
    nullable: Mapping[str, bool],
) -> PublicKeys:
    about = tuple(condition for condition in conditions if columns_of(condition) <= _column_names(*leaves))
    present = tuple(Not(IsNull(o.column)) for key, o in members if not optional and not nullable[key.name])
    rows = _join_leaves(leaves, about + present)
    registered = [_count_registered_values(origin) for _, origin in members]
    max_keys = min(
        max_public_rows(rows), prod(max_public_rows(rows) if number is None else number for number in registered)
    )
    fields = tuple(Field(key.name, key.expr.type) for key, _ in members)
    missing = optional and all(nullable[key.name] for key, _ in members)
    factor = ListedHole(fields, rows, tuple(o.column.name for _, o in members), max_keys, missing)
    own = {o.column.name for _, o in members}
    alone = len(members) == 1 and len(leaves) == 1 and all(columns_of(condition) <= own for condition in about)
    return PublicKeys(tuple(key for key, _ in members), factor, alone and registered[0] is not None)


def _count_registered_values(origin: PublicOrigin) -> int | None:
    """How many values the public column has, where they are registered: those of a hole are known when it is bound."""
    if not isinstance(origin.leaf, PublicScan):
        return None
    domain = next(c.values for c in origin.leaf.columns if c.name == origin.column.name)
    return None if domain.values is None else len(domain.values) + 1  # and NULL


def _join_leaves(leaves: tuple[PublicLeaf, ...], conditions: tuple[Expr, ...]) -> Rows:
    """The rows joined to each other; started with those that bound their number best."""
    return min((_join_leaves_from(start, leaves, conditions) for start in leaves), key=max_public_rows)


def _join_leaves_from(start: PublicLeaf, leaves: tuple[PublicLeaf, ...], conditions: tuple[Expr, ...]) -> Rows:
    rows: Rows = _filter_leaf(start, conditions)
    used = [condition for condition in conditions if columns_of(condition) <= _column_names(start)]
    rest = [leaf for leaf in leaves if leaf != start]
    while rest:
        leaf = next((candidate for candidate in rest if _tying_conditions(rows, candidate, conditions, used)), rest[0])
        rest.remove(leaf)
        used += [condition for condition in conditions if columns_of(condition) <= _column_names(leaf)]
        ties = _tying_conditions(rows, leaf, conditions, used)
        rows = Join(rows, _filter_leaf(leaf, conditions), JoinKind.INNER, join_conjuncts(ties))
        used += ties
    return rows


def _tying_conditions(rows: Rows, leaf: PublicLeaf, conditions: tuple[Expr, ...], used: list[Expr]) -> tuple[Expr, ...]:
    return tuple(c for c in conditions if c not in used and columns_of(c) <= _column_names(rows, leaf))


def _filter_leaf(leaf: PublicLeaf, conditions: tuple[Expr, ...]) -> Rows:
    own = tuple(condition for condition in conditions if columns_of(condition) <= _column_names(leaf))
    return Filter(leaf, join_conjuncts(own)) if own else leaf
