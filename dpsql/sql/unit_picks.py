"""Aggregates that pick one of a unit's values: ties are broken by value, so that the pick is a function of the rows.

    ARG_MAX(kind, day)        the greatest kind of the rows with the greatest day:
                              Window top = max(day) · Each by the unit: max(kind where day = top)
    MODE(kind)                the least of the most frequent:
                              Window n = count by kind, most = max(n) · Each by the unit: min(kind where n = most)
    FIRST(kind ORDER BY day)  Window first_value(kind) in that order, completed with all columns

Stability: the windows are over one unit's rows of one group, and order-independent or completely ordered (SOUNDNESS 2).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dpsql.errors import Unsupported
from dpsql.plan.expr import And, Call, Case, Column, Compare, Expr, IsNull, Literal, Not
from dpsql.plan.relations import Ordering, UnitMeasure, UnitWindow
from dpsql.plan.walk import columns_of
from dpsql.sql.bind_expr import bind_condition, bind_expr
from dpsql.sql.dialect import only, span_of, spelled
from dpsql.sql.names import Namer
from dpsql.sql.relation import Relation, two_levels
from dpsql.types import BIGINT, DOUBLE, Type

WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_PICKS = (exp.ArgMax, exp.ArgMin, exp.Mode, exp.First, exp.Last)


@dataclass(frozen=True)
class Picked:
    """The rows that are grouped by their unit and by `keys`; windows that a pick needs are added to them."""

    namer: Namer
    rows: Relation
    keys: tuple[Expr, ...]

    def measure(self, node: exp.Expr, name: str) -> UnitMeasure | None:
        """The pick as an aggregate of the rows with their windows; None where the node is no pick."""
        aggregate = node.this if isinstance(node, exp.Filter) else node
        if not isinstance(aggregate, _PICKS):
            return None
        if isinstance(aggregate, exp.First | exp.Last):
            return self._ordered(node, name)
        where = None
        if isinstance(node, exp.Filter):
            only(node, "this", "expression")
            only(node.expression, "this")
            where = bind_condition(node.expression.this, self.rows.scope)
        pick = self._mode if isinstance(aggregate, exp.Mode) else self._top
        return pick(aggregate, name, where)

    def _top(self, node: exp.Expr, name: str, where: Expr | None) -> UnitMeasure:
        """Rows where the value or what it is compared by is NULL do not count, as in DuckDB."""
        only(node, "this", "expression")
        value, by = (self._bound(part, node) for part in (node.this, node.expression))
        function, by = "max" if isinstance(node, exp.ArgMax) else "min", comparable(by)
        counts: Expr = Not(IsNull(value))
        counts = counts if where is None else And((counts, where))
        top = self._window(function, (_where(counts, by),), self.keys, (), None, by.type)
        return UnitMeasure(name, function, _where(And((counts, Compare("=", by, top))), value), value.type)

    def _mode(self, node: exp.Expr, name: str, where: Expr | None) -> UnitMeasure:
        only(node, "this")
        value = self._bound(node.this, node)
        value = value if where is None else _where(where, value)
        count = self._window("count", (value,), (*self.keys, comparable(value)), (), None, BIGINT)
        most = self._window("max", (count,), self.keys, (), None, BIGINT)
        return UnitMeasure(name, "min", _where(Compare("=", count, most), value), value.type)

    def _ordered(self, node: exp.Expr, name: str) -> UnitMeasure:
        if isinstance(node, exp.Filter):
            raise Unsupported(
                f"{spelled(node.this)} of each unit's rows takes no FILTER",
                hint="Write CASE WHEN … THEN x END in its place, or the condition in WHERE.",
                span=span_of(node),
            )
        if not isinstance(node.this, exp.Order):
            raise Unsupported(
                f"{spelled(node)} of each unit's rows needs ORDER BY",
                hint=f"For example: {node.key.upper()}(kind ORDER BY day); ANY_VALUE(x) gives the least value.",
                span=span_of(node),
            )
        only(node, "this")
        only(node.this, "this", "expressions")
        value = self._bound(node.this.this, node)
        order = tuple(self._ordering(ordered) for ordered in node.this.expressions)
        function = "first_value" if isinstance(node, exp.First) else "last_value"
        picked = self._window(function, (value,), self.keys, order, WHOLE, value.type)
        return UnitMeasure(name, "min", picked, value.type)  # all rows of the group have the same

    def _ordering(self, node: exp.Expr) -> Ordering:
        only(node, "this", "desc", "nulls_first")
        by = comparable(self._bound(node.this, node))
        return Ordering(by, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    def _bound(self, part: exp.Expr, node: exp.Expr) -> Expr:
        bound = bind_expr(part, self.rows.scope)
        if not columns_of(bound) <= self.rows.names:
            raise two_levels(node)
        return bound

    def _window(
        self, function: str, args: tuple[Expr, ...], partition: tuple[Expr, ...], order: tuple[Ordering, ...],
        frame: str | None, type_: Type,
    ) -> Column:  # fmt: skip
        parts = tuple(comparable(key) for key in partition)
        name = self.namer.name(function)
        return self.rows.add_window(UnitWindow(self.rows.node, name, function, args, parts, order, frame, type_))


def comparable(arg: Expr) -> Expr:
    """NaN and infinities are no values, and -0.0 is 0.0, as they are for the grouping above."""
    return Call("finite", (arg,), DOUBLE) if arg.type.is_float else arg


def _where(condition: Expr, arg: Expr) -> Expr:
    return Case(((condition, arg),), Literal(None, arg.type), arg.type)
