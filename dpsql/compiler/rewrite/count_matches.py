"""Let public rows be counted where one private row could meet too many of them by what is known without counting.

    sales JOIN stock ON so_item = sa_item               an item's rows in stock, not all rows of stock
    … JOIN calendar ON ca_day = so_day AND ca_year = 2  …of that year: stock and calendar are joined first

Privacy: what is counted is public: rows of public tables that meet the statement's conditions on public columns. The
counts are an input of compiling. Whether the statement is refused depends on them, and the norm of a unit that has one
row, which meets as many: so they are counts of the registered version of the data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dpsql.compiler.analysis.public_rows import (
    columns_equated_to_left,
    max_join_matches,
    max_row_multiplication,
    unique_keys_of,
)
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.expressions import TRUE, Expr, HoleValue, InHole, join_conjuncts, split_conjuncts
from dpsql.compiler.plan.relations import Filter, Join, JoinKind, Rows, RowsHole, is_public, row_fields
from dpsql.compiler.plan.walk import columns_of, map_rows, node_exprs, walk_exprs, walk_rows
from dpsql.compiler.rewrite.limit_joins import MAX_MATCHED_ROWS
from dpsql.compiler.rewrite.make_total import make_total
from dpsql.compiler.rewrite.release_plan import RuleContext
from dpsql.compiler.rewrite.scan_tables import push_conditions


@dataclass(frozen=True)
class MatchCount:
    """The most rows of public `rows` that agree on `columns`."""

    rows: Rows
    columns: tuple[str, ...]

    @property
    def text(self) -> str:
        return repr(self)


class CountsNeeded(Exception):
    """A statement can be compiled once these are counted."""

    def __init__(self, counts: Iterable[MatchCount]) -> None:
        super().__init__("public rows must be counted first")
        self.counts = tuple(dict.fromkeys(counts))


def count_matches(aggregate: Aggregate, context: RuleContext) -> Aggregate:
    """The plan whose joins know how many public rows a row meets; as it was, where that is known to be few."""
    if max_row_multiplication(aggregate.input) <= MAX_MATCHED_ROWS:
        return aggregate
    regrouped = replace(aggregate, input=map_rows(aggregate.input, _push_below_left_join))
    regrouped = push_conditions(regrouped)
    regrouped = replace(regrouped, input=_join_public_rows_first(regrouped.input))
    needed: list[MatchCount] = []

    def change(node: Rows) -> Rows:
        if not isinstance(node, Join) or is_public(node.left) or not is_public(node.right):
            return node
        if max_join_matches(node) <= 1 or not _can_be_counted(node.right):
            return node
        columns = tuple(sorted(columns_equated_to_left(node.condition, node.left, node.right)))
        count = MatchCount(make_total(Aggregate(node.right, (), ())).input, columns)
        matches = context.resolved.counted.get(count.text)
        if matches is None:
            needed.append(count)
            return node
        return replace(node, matches=matches)

    counted = replace(regrouped, input=map_rows(regrouped.input, change))
    if needed:
        raise CountsNeeded(needed)
    return counted


def _can_be_counted(rows: Rows) -> bool:
    """Whether it reads nothing but public tables, each row of one of them once: so counting is no more than a scan."""
    nodes = [*walk_rows(rows)]
    exprs = [part for node in nodes for expr in node_exprs(node) for part in walk_exprs(expr)]
    reads_hole = any(isinstance(node, RowsHole) for node in nodes) or any(
        isinstance(part, HoleValue | InHole) for part in exprs
    )
    return not reads_hole and all(max_join_matches(node) <= 1 for node in nodes if isinstance(node, Join))


# --- the order of joins ----------------------------------------------------------------------------------------------
# Inner joins give the same rows in any order, and a condition on the rows of the left alone may be met before a LEFT
# JOIN as well as behind it.


def _push_below_left_join(node: Rows) -> Rows:
    if not isinstance(node, Filter) or not isinstance(node.input, Join) or node.input.kind is not JoinKind.LEFT:
        return node
    join, parts = node.input, split_conjuncts(node.condition)
    names = _names_of(join.left)
    on_left = tuple(part for part in parts if columns_of(part) <= names)
    rest = tuple(part for part in parts if part not in on_left)
    if not on_left:
        return node
    left = _push_below_left_join(Filter(join.left, join_conjuncts(on_left)))
    pushed = replace(join, left=left)
    return Filter(pushed, join_conjuncts(rest)) if rest else pushed


def _join_public_rows_first(node: Rows) -> Rows:
    """Public rows that others find by a key are joined with those first, so that they are counted together."""
    if isinstance(node, Filter):
        return replace(node, input=_join_public_rows_first(node.input))
    if isinstance(node, Join) and not node.is_inner:
        return replace(node, left=_join_public_rows_first(node.left))
    base, leaves, conditions = _flatten_public_joins(node)
    if len(leaves) < 2:
        return node
    leaves, conditions = _merge_leaves(base, leaves, conditions)
    result = base
    while leaves:
        ranked = [(_join_rank(leaf, result, conditions), index) for index, leaf in enumerate(leaves)]
        chosen = leaves.pop(min(ranked)[1])
        names = _names_of(result) | _names_of(chosen)
        ready = tuple(part for part in conditions if columns_of(part) <= names)
        conditions = tuple(part for part in conditions if part not in ready)
        result = Join(result, chosen, JoinKind.INNER, join_conjuncts(ready))
    return Filter(result, join_conjuncts(conditions)) if conditions else result


def _flatten_public_joins(node: Rows) -> tuple[Rows, list[Rows], tuple[Expr, ...]]:
    """The rows that public ones are joined to, those in order, and all conditions."""
    if not isinstance(node, Join) or not node.is_inner or not is_public(node.right) or node.unmatched is not None:
        return node, [], ()
    base, leaves, conditions = _flatten_public_joins(node.left)
    return base, [*leaves, node.right], (*conditions, *(p for p in split_conjuncts(node.condition) if p != TRUE))


def _merge_leaves(base: Rows, leaves: list[Rows], conditions: tuple[Expr, ...]) -> tuple[list[Rows], tuple[Expr, ...]]:
    """Each public relation that another one finds by a unique key, and the base does not, joined to that one."""
    for other in leaves:
        if _join_rank(other, base, conditions) == 0:
            continue
        for leaf in leaves:
            theirs, ours = _names_of(other), _names_of(leaf)
            between = tuple(
                p
                for p in conditions
                if columns_of(p) <= ours | theirs and columns_of(p) & ours and columns_of(p) & theirs
            )
            if leaf is not other and between and _join_rank(other, leaf, between) == 0:
                merged = Join(leaf, other, JoinKind.INNER, join_conjuncts(between))
                rest = [merged if inner is leaf else inner for inner in leaves if inner is not other]
                return _merge_leaves(base, rest, tuple(p for p in conditions if p not in between))
    return leaves, conditions


def _join_rank(leaf: Rows, joined: Rows, conditions: tuple[Expr, ...]) -> int:
    """Rows that are found by a unique key come first, then those found by another equality."""
    names = _names_of(leaf) | _names_of(joined)
    ready = tuple(part for part in conditions if columns_of(part) <= names)
    equated = columns_equated_to_left(join_conjuncts(ready), joined, leaf)
    if any(key <= equated for key in unique_keys_of(leaf)):
        return 0
    return 1 if equated else 2


def _names_of(rows: Rows) -> frozenset[str]:
    return frozenset(f.name for f in row_fields(rows))
