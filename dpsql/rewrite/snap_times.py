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

from dpsql.plan.expr import And, Column, Compare, Expr, Literal, Or
from dpsql.plan.nodes import Aggregate
from dpsql.plan.relations import (
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
from dpsql.plan.walk import map_expr, map_measure, map_node_exprs, map_rows, row_inputs, walk
from dpsql.schema.model import Schema
from dpsql.schema.snap import Snap
from dpsql.types import DATE

Origins = Mapping[str, Mapping[str, Snap]]
"""The grids behind each column of a relation: by its name in the plan, `table.column` as declared and its grid."""

_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Snapped:
    aggregate: Aggregate
    notices: tuple[str, ...]


def snap_times(aggregate: Aggregate, schema: Schema) -> Snapped:
    """The aggregate with its times on the grids, and what to say about it. It expects the canonical spelling."""
    if not any(column.snap for table in schema.tables for column in table.columns):
        return Snapped(aggregate, ())
    seen: dict[str, Snap] = {}

    def change(node: Rows) -> Rows:
        below = [origins(child, schema) for child in row_inputs(node)]
        return map_node_exprs(node, _Rounding({k: v for one in below for k, v in one.items()}, seen).of)

    rows = map_rows(aggregate.input, change)
    rounded = _Rounding(origins(rows, schema), seen).of
    keys = tuple(Named(key.name, rounded(key.expr)) for key in aggregate.keys)
    measures = tuple(map_measure(measure, rounded) for measure in aggregate.measures)
    notices = (f"times compared with {name} were rounded to {seen[name]}" for name in sorted(seen))
    return Snapped(Aggregate(rows, keys, measures, aggregate.sets), tuple(notices))


# --- where a column comes from ---------------------------------------------------------------------------------------


def origins(node: Rows, schema: Schema) -> Origins:
    """The columns of a relation that are times computed from columns with a grid, through all that is below."""
    match node:
        case Table():
            return _declared(node, schema)
        case PublicTable() | PublicScan() | RowsHole() | Scan():
            return {}
        case Filter() | Expand() | Mark():
            return origins(row_inputs(node)[0], schema)
        case Join():
            return {**origins(node.left, schema), **origins(node.right, schema)}
        case Project():
            below = origins(node.input, schema)
            return _kept({column.name: _behind(column.expr, below) for column in node.columns})
        case PerUnit():
            below = origins(node.input, schema)
            keys = {key.name: _behind(key.expr, below) for key in node.keys}
            picked = {m.name: _behind(m.arg, below) for m in node.measures if m.arg is not None and m.type.is_time}
            return _kept({**keys, **picked})
        case UnitWindow():
            below = origins(node.input, schema)
            found = {name: snap for arg in node.args for name, snap in _behind(arg, below).items()}
            return {**below, **_kept({node.name: found if node.type.is_time else {}})}
        case SetOperation():
            return _by_position(node, schema)
        case _:
            assert_never(node)


def _declared(node: Table, schema: Schema) -> Origins:
    table = schema.table(node.table)
    snaps = {column.name: column.snap for column in table.columns if column.snap} if table else {}
    return {used.name: {f"{node.table}.{name}": snaps[name]} for name, used in node.columns if name in snaps}


def _by_position(node: SetOperation, schema: Schema) -> Origins:
    left, right = origins(node.left, schema), origins(node.right, schema)
    pairs = zip(row_fields(node.left), row_fields(node.right), strict=True)
    return _kept({ours.name: {**left.get(ours.name, {}), **right.get(theirs.name, {})} for ours, theirs in pairs})


def _behind(expr: Expr, below: Origins) -> Mapping[str, Snap]:
    """Of a time, the grids of all columns that it is computed from."""
    if not expr.type.is_time:
        return {}
    found = [below.get(part.name, {}) for part in walk(expr) if isinstance(part, Column)]
    return {name: snap for one in found for name, snap in one.items()}


def _kept(found: Mapping[str, Mapping[str, Snap]]) -> Origins:
    return {name: snaps for name, snaps in found.items() if snaps}


# --- rounding --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _End:
    """A comparison of a time with a literal: `lower` where the literal is the lower end, `strict` where it is out."""

    expr: Expr
    value: dt.date
    lower: bool
    strict: bool
    snap: Snap

    def compare(self, value: dt.date, strict: bool) -> Compare:
        literal, op = Literal(value, self.expr.type), "<" if strict else "<="
        return Compare(op, literal, self.expr) if self.lower else Compare(op, self.expr, literal)


@dataclass(frozen=True)
class _Rounding:
    below: Origins
    seen: dict[str, Snap] = field(compare=False)  # columns of which a time was changed

    def of(self, expr: Expr) -> Expr:
        changes: tuple[Callable[[Expr], Expr], ...] = (self._half_open, self._kept_open, self._rounded)
        for change in changes:
            expr = map_expr(expr, change)
        return expr

    def _end(self, expr: Expr) -> _End | None:
        if not isinstance(expr, Compare) or expr.op not in ("<", "<=", ">", ">="):
            return None
        for lower, literal, other in ((True, expr.left, expr.right), (False, expr.right, expr.left)):
            if isinstance(literal, Literal) and isinstance(literal.value, dt.date):
                behind = _behind(other, self.below)
                if behind:
                    # Of several grids the coarsest: rounding to one after another would not end on any of them.
                    snap = max(behind.values(), key=lambda snap: (snap.step, snap.unit))
                    return _End(other, literal.value, lower == (expr.op in ("<", "<=")), expr.op in ("<", ">"), snap)
        return None

    def _half_open(self, expr: Expr) -> Expr:
        """`<=` a day as `<` the next one, and `>` a day as `>=` the next one, where steps are of several days."""
        end = self._end(expr)
        if end is None or end.expr.type != DATE or end.snap.step <= _DAY or end.strict != end.lower:
            return expr
        return expr if end.value == dt.date.max else end.compare(end.value + _DAY, not end.strict)

    def _kept_open(self, expr: Expr) -> Expr:
        """Of a range within one step, the end moved to that of the step; of a range that is left out, too."""
        if not isinstance(expr, And | Or):
            return expr
        ends = [self._end(arg) for arg in expr.args]
        starts = [end for end in ends if end is not None and end.lower == isinstance(expr, And)]

        def moved(arg: Expr, end: _End | None) -> Expr:
            is_end = end is not None and end.lower != isinstance(expr, And)
            if end is None or not is_end or not any(_within_one_step(start, end) for start in starts):
                return arg
            self._note(end)
            return end.compare(end.snap.next(end.value), end.strict)

        args = tuple(moved(arg, end) for arg, end in zip(expr.args, ends, strict=True))
        return And(args) if isinstance(expr, And) else Or(args)

    def _rounded(self, expr: Expr) -> Expr:
        end = self._end(expr)
        if end is None:
            return expr
        value = end.snap.down(end.value)
        if value == end.value:
            return expr
        self._note(end)
        return end.compare(value, end.strict)

    def _note(self, end: _End) -> None:
        self.seen.update(dict.fromkeys(_behind(end.expr, self.below), end.snap))


def _within_one_step(start: _End, end: _End) -> bool:
    if start.expr != end.expr or start.value >= end.value:
        return False
    return start.snap.down(start.value) == end.snap.down(end.value)
