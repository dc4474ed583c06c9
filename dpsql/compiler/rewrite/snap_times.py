"""Round the times that a question compares with a column that has a `snap`: sliding windows become the same question.

    at >= 12:34 AND at < 13:34, snap: 1 hour    ->    at >= 12:00 AND at < 13:00

Every literal that is compared by <, <=, >, >= with a time computed from the column is rounded down, so a window that is
a multiple of the grid keeps its width; equality is left alone. Where both ends of a range fall into one step, its end
becomes the end of that step: what was not empty does not become so. A date compared with a grid of several days is
first put as a half-open end (`<= Sunday` is `< Monday`), so a whole week stays one. Rounding twice changes nothing.
What is compared decides nothing about privacy: the plan that runs is the rounded one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.expressions import And, Column, Compare, Expr, Literal, Or
from dpsql.compiler.plan.relations import (
    Expand,
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
    row_fields,
)
from dpsql.compiler.plan.walk import map_expr, map_measure, map_node_exprs, map_rows, row_inputs, walk_exprs
from dpsql.schema.model import Schema, Snap
from dpsql.types import DATE

GridOrigins = Mapping[str, Mapping[str, Snap]]
"""The grids behind each column of a relation: by its name in the plan, `table.column` as declared and its grid."""

_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class SnappedPlan:
    aggregate: Aggregate
    notices: tuple[str, ...]


def snap_times(aggregate: Aggregate, schema: Schema) -> SnappedPlan:
    """The aggregate with its times on the grids, and what to say about it. It expects the canonical spelling."""
    seen: dict[str, Snap] = {}

    def change(node: Rows) -> Rows:
        below = [find_grid_origins(child, schema) for child in row_inputs(node)]
        return map_node_exprs(
            node, _TimeRounding({k: v for child_origins in below for k, v in child_origins.items()}, seen).round_expr
        )

    rows = map_rows(aggregate.input, change)
    rounded = _TimeRounding(find_grid_origins(rows, schema), seen).round_expr
    keys = tuple(Named(key.name, rounded(key.expr)) for key in aggregate.keys)
    measures = tuple(map_measure(measure, rounded) for measure in aggregate.measures)
    notices = (f"times compared with {name} were rounded to {seen[name]}" for name in sorted(seen))
    return SnappedPlan(Aggregate(rows, keys, measures, aggregate.sets), tuple(notices))


# --- where a column comes from ---------------------------------------------------------------------------------------


def find_grid_origins(node: Rows, schema: Schema) -> GridOrigins:
    """The columns of a relation that are times computed from columns with a grid, through all that is below."""
    match node:
        case Table():
            return _declared_origins(node, schema)
        case PublicTable() | PublicScan() | RowsHole() | Scan():
            return {}
        case Filter() | Expand() | Mark():
            return find_grid_origins(row_inputs(node)[0], schema)
        case Join():
            return {**find_grid_origins(node.left, schema), **find_grid_origins(node.right, schema)}
        case Project():
            below = find_grid_origins(node.input, schema)
            return _without_empty({column.name: _grids_behind(column.expr, below) for column in node.columns})
        case PerUnit():
            below = find_grid_origins(node.input, schema)
            keys = {key.name: _grids_behind(key.expr, below) for key in node.keys}
            picked = {
                m.name: _grids_behind(m.arg, below) for m in node.measures if m.arg is not None and m.type.is_time
            }
            return _without_empty({**keys, **picked})
        case UnitWindow():
            below = find_grid_origins(node.input, schema)
            grids = {name: snap for arg in node.args for name, snap in _grids_behind(arg, below).items()}
            return {**below, **_without_empty({node.name: grids if node.type.is_time else {}})}
        case SetOperation():
            return _set_operation_origins(node, schema)
        case _:
            assert_never(node)


def _declared_origins(node: Table, schema: Schema) -> GridOrigins:
    table = schema.table(node.table)
    snaps = {column.name: column.snap for column in table.columns if column.snap} if table else {}
    return {used.name: {f"{node.table}.{name}": snaps[name]} for name, used in node.columns if name in snaps}


def _set_operation_origins(node: SetOperation, schema: Schema) -> GridOrigins:
    left, right = find_grid_origins(node.left, schema), find_grid_origins(node.right, schema)
    pairs = zip(row_fields(node.left), row_fields(node.right), strict=True)
    return _without_empty(
        {ours.name: {**left.get(ours.name, {}), **right.get(theirs.name, {})} for ours, theirs in pairs}
    )


def _grids_behind(expr: Expr, below: GridOrigins) -> Mapping[str, Snap]:
    """The grids of all columns that a time is computed from."""
    if not expr.type.is_time:
        return {}
    origin_grids = [below.get(part.name, {}) for part in walk_exprs(expr) if isinstance(part, Column)]
    return {name: snap for grids in origin_grids for name, snap in grids.items()}


def _without_empty(grids_by_column: Mapping[str, Mapping[str, Snap]]) -> GridOrigins:
    return {name: snaps for name, snaps in grids_by_column.items() if snaps}


# --- rounding --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _RangeEnd:
    """A comparison of a time with a literal: `lower` where the literal is the lower end, `strict` where it is out."""

    expr: Expr
    value: dt.date
    lower: bool
    strict: bool
    snap: Snap

    def make_comparison(self, value: dt.date, strict: bool) -> Compare:
        literal, op = Literal(value, self.expr.type), "<" if strict else "<="
        return Compare(op, literal, self.expr) if self.lower else Compare(op, self.expr, literal)


@dataclass(frozen=True)
class _TimeRounding:
    below: GridOrigins
    seen: dict[str, Snap] = field(compare=False)  # columns of which a time was changed

    def round_expr(self, expr: Expr) -> Expr:
        changes: tuple[Callable[[Expr], Expr], ...] = (self._make_half_open, self._keep_nonempty, self._round_end)
        for change in changes:
            expr = map_expr(expr, change)
        return expr

    def _range_end_of(self, expr: Expr) -> _RangeEnd | None:
        if not isinstance(expr, Compare) or expr.op not in ("<", "<=", ">", ">="):
            return None
        for lower, literal, other in ((True, expr.left, expr.right), (False, expr.right, expr.left)):
            if isinstance(literal, Literal) and isinstance(literal.value, dt.date):
                behind = _grids_behind(other, self.below)
                if behind:
                    # Of several grids the coarsest: rounding to one after another would not end on any of them.
                    snap = max(behind.values(), key=lambda snap: (snap.step, snap.unit))
                    return _RangeEnd(
                        other, literal.value, lower == (expr.op in ("<", "<=")), expr.op in ("<", ">"), snap
                    )
        return None

    def _make_half_open(self, expr: Expr) -> Expr:
        """`<=` a day as `<` the next one, and `>` a day as `>=` the next one, where steps are of several days."""
        end = self._range_end_of(expr)
        if end is None or end.expr.type != DATE or end.snap.step <= _DAY or end.strict != end.lower:
            return expr
        return expr if end.value == dt.date.max else end.make_comparison(end.value + _DAY, not end.strict)

    def _keep_nonempty(self, expr: Expr) -> Expr:
        """Move the end of a range within one step to the end of the step; also of a range that is left out."""
        if not isinstance(expr, And | Or):
            return expr
        ends = [self._range_end_of(arg) for arg in expr.args]
        starts = [end for end in ends if end is not None and end.lower == isinstance(expr, And)]

        def move_end(arg: Expr, end: _RangeEnd | None) -> Expr:
            is_end = end is not None and end.lower != isinstance(expr, And)
            if end is None or not is_end or not any(_is_within_one_step(start, end) for start in starts):
                return arg
            self._record_change(end)
            return end.make_comparison(end.snap.next_step(end.value), end.strict)

        args = tuple(move_end(arg, end) for arg, end in zip(expr.args, ends, strict=True))
        return And(args) if isinstance(expr, And) else Or(args)

    def _round_end(self, expr: Expr) -> Expr:
        end = self._range_end_of(expr)
        if end is None:
            return expr
        value = end.snap.round_down(end.value)
        if value == end.value:
            return expr
        self._record_change(end)
        return end.make_comparison(value, end.strict)

    def _record_change(self, end: _RangeEnd) -> None:
        self.seen.update(dict.fromkeys(_grids_behind(end.expr, self.below), end.snap))


def _is_within_one_step(start: _RangeEnd, end: _RangeEnd) -> bool:
    if start.expr != end.expr or start.value >= end.value:
        return False
    return start.snap.round_down(start.value) == end.snap.round_down(end.value)
