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
from dpsql.sql.dialect import refuse_other_args, span_of, sql_name_of
from dpsql.sql.names import ColumnNamer
from dpsql.sql.relation import BoundRelation, nesting_level_error
from dpsql.types import BIGINT, DOUBLE, Type

WHOLE_FRAME = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_PICK_FUNCTIONS = (exp.ArgMax, exp.ArgMin, exp.Mode, exp.First, exp.Last)


@dataclass(frozen=True)
class UnitPickBinder:
    """The rows that are grouped by their unit and by `keys`; windows that a pick needs are added to them."""

    namer: ColumnNamer
    rows: BoundRelation
    keys: tuple[Expr, ...]

    def bind_measure(self, node: exp.Expr, name: str) -> UnitMeasure | None:
        """The pick as an aggregate of the rows with their windows; None where the node is no pick."""
        aggregate = node.this if isinstance(node, exp.Filter) else node
        if not isinstance(aggregate, _PICK_FUNCTIONS):
            return None
        if isinstance(aggregate, exp.First | exp.Last):
            return self._bind_first_or_last(node, name)
        where = None
        if isinstance(node, exp.Filter):
            refuse_other_args(node, "this", "expression")
            refuse_other_args(node.expression, "this")
            where = bind_condition(node.expression.this, self.rows.scope)
        pick = self._bind_mode if isinstance(aggregate, exp.Mode) else self._bind_arg_extreme
        return pick(aggregate, name, where)

    def _bind_arg_extreme(self, node: exp.Expr, name: str, where: Expr | None) -> UnitMeasure:
        """Rows where the value or what it is compared by is NULL do not count, as in DuckDB."""
        refuse_other_args(node, "this", "expression")
        value, by = (self._bind_part(part, node) for part in (node.this, node.expression))
        function, by = "max" if isinstance(node, exp.ArgMax) else "min", make_comparable(by)
        counts: Expr = Not(IsNull(value))
        counts = counts if where is None else And((counts, where))
        top = self._add_window(function, (_null_unless(counts, by),), self.keys, (), None, by.type)
        return UnitMeasure(name, function, _null_unless(And((counts, Compare("=", by, top))), value), value.type)

    def _bind_mode(self, node: exp.Expr, name: str, where: Expr | None) -> UnitMeasure:
        refuse_other_args(node, "this")
        value = self._bind_part(node.this, node)
        value = value if where is None else _null_unless(where, value)
        count = self._add_window("count", (value,), (*self.keys, make_comparable(value)), (), None, BIGINT)
        max_count = self._add_window("max", (count,), self.keys, (), None, BIGINT)
        return UnitMeasure(name, "min", _null_unless(Compare("=", count, max_count), value), value.type)

    def _bind_first_or_last(self, node: exp.Expr, name: str) -> UnitMeasure:
        if isinstance(node, exp.Filter):
            raise Unsupported(
                f"{sql_name_of(node.this)} of each unit's rows takes no FILTER",
                hint="Write CASE WHEN … THEN x END in its place, or the condition in WHERE.",
                span=span_of(node),
            )
        if not isinstance(node.this, exp.Order):
            raise Unsupported(
                f"{sql_name_of(node)} of each unit's rows needs ORDER BY",
                hint=f"For example: {node.key.upper()}(kind ORDER BY day); ANY_VALUE(x) gives the least value.",
                span=span_of(node),
            )
        refuse_other_args(node, "this")
        refuse_other_args(node.this, "this", "expressions")
        value = self._bind_part(node.this.this, node)
        order = tuple(self._bind_ordering(ordered) for ordered in node.this.expressions)
        function = "first_value" if isinstance(node, exp.First) else "last_value"
        picked = self._add_window(function, (value,), self.keys, order, WHOLE_FRAME, value.type)
        return UnitMeasure(name, "min", picked, value.type)  # all rows of the group have the same

    def _bind_ordering(self, node: exp.Expr) -> Ordering:
        refuse_other_args(node, "this", "desc", "nulls_first")
        by = make_comparable(self._bind_part(node.this, node))
        return Ordering(by, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    def _bind_part(self, part: exp.Expr, node: exp.Expr) -> Expr:
        bound = bind_expr(part, self.rows.scope)
        if not columns_of(bound) <= self.rows.names:
            raise nesting_level_error(node)
        return bound

    def _add_window(
        self, function: str, args: tuple[Expr, ...], partition: tuple[Expr, ...], order: tuple[Ordering, ...],
        frame: str | None, type_: Type,
    ) -> Column:  # fmt: skip
        parts = tuple(make_comparable(key) for key in partition)
        name = self.namer.reserve_name(function)
        return self.rows.add_window(UnitWindow(self.rows.node, name, function, args, parts, order, frame, type_))


def make_comparable(arg: Expr) -> Expr:
    """NaN and infinities are no values, and -0.0 is 0.0, as they are for the grouping above."""
    return Call("finite", (arg,), DOUBLE) if arg.type.is_float else arg


def _null_unless(condition: Expr, arg: Expr) -> Expr:
    return Case(((condition, arg),), Literal(None, arg.type), arg.type)
