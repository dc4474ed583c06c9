"""Aggregates of one unit's rows: order-independent and exact, so that they are a function of the bag of its rows."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dpsql.compiler.bind.coercion import coerce_number_literal, narrow_integer, null_unless
from dpsql.compiler.bind.expressions import bind_condition, bind_expr
from dpsql.compiler.bind.relation import BoundRelation, nesting_level_error
from dpsql.compiler.bind.scope import ColumnNamer, Scope
from dpsql.compiler.parse.dialect import refuse_other_args, span_of, sql_name_of
from dpsql.compiler.parse.googlesql import PER_GROUP
from dpsql.compiler.plan.expressions import And, Call, Case, Cast, Column, Compare, Expr, IsNull, Literal, Not
from dpsql.compiler.plan.relations import Ordering, UnitMeasure, UnitWindow
from dpsql.compiler.plan.walk import columns_of
from dpsql.errors import TypeMismatch, Unsupported
from dpsql.types import BIGINT, BOOLEAN, DOUBLE, Type

SUPPORTED_AGGREGATES = (
    "COUNT, COUNT(DISTINCT x), SUM, AVG, MIN, MAX, MEDIAN, MODE, VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP, "
    "ARG_MIN, ARG_MAX, FIRST and LAST with ORDER BY, ANY_VALUE, BOOL_AND, BOOL_OR and COUNT_IF"
)
SPREAD_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.VariancePop: "var_pop", exp.Variance: "var_samp", exp.StddevPop: "stddev_pop", exp.StddevSamp: "stddev_samp",
    exp.Stddev: "stddev_samp",
}  # fmt: skip


def bind_unit_measure(node: exp.Expr, name: str, scope: Scope) -> UnitMeasure:
    if isinstance(node, exp.Filter):
        refuse_other_args(node, "this", "expression")
        refuse_other_args(node.expression, "this")
        measure = bind_unit_measure(node.this, name, scope)
        condition = bind_condition(node.expression.this, scope)
        if measure.arg is None:
            return UnitMeasure(name, "count", _filter_argument(condition, Literal(1, BIGINT)), BIGINT)
        return UnitMeasure(name, measure.function, _filter_argument(condition, measure.arg), measure.type)
    function, arg = bind_function_and_argument(node, scope)
    return UnitMeasure(name, function, arg, unit_measure_type(function, arg))


def bind_function_and_argument(node: exp.Expr, scope: Scope) -> tuple[str, Expr | None]:
    """The plan's name of an aggregate, and its argument; None where rows are counted."""
    _refuse_group_bounds(node)
    match node:
        case exp.Count():
            return _bind_count(node, scope)
        case exp.CountIf():
            refuse_other_args(node, "this")
            return "count", _filter_argument(bind_condition(node.this, scope), Literal(1, BIGINT))
        case exp.Sum() | exp.Avg():
            refuse_other_args(node, "this")
            return "sum" if isinstance(node, exp.Sum) else "mean", _bind_number(node, scope)
        case exp.Min() | exp.Max():
            refuse_other_args(node, "this")
            return node.key, _bind_ordered(node, scope)
        case exp.AnyValue():  # the least: which row comes first means nothing
            refuse_other_args(node, "this")
            arg = bind_expr(_require_plain_argument(node), scope)
            return "all" if arg.type == BOOLEAN else "min", arg
        case exp.Median():
            refuse_other_args(node, "this")
            return "median", _cast_to_double(_bind_number(node, scope))
        case _ if type(node) in SPREAD_FUNCTIONS:
            refuse_other_args(node, "this")
            return SPREAD_FUNCTIONS[type(node)], _bind_number(node, scope)
        case exp.LogicalAnd() | exp.LogicalOr():
            refuse_other_args(node, "this")
            return "all" if isinstance(node, exp.LogicalAnd) else "any", bind_condition(node.this, scope)
        case _:
            raise Unsupported(
                f"{sql_name_of(node)} of each unit's rows is not supported",
                hint=f"These are: {SUPPORTED_AGGREGATES}.",
                span=span_of(node),
            )


def _refuse_group_bounds(node: exp.Expr) -> None:
    argument = node.args.get("this")
    if isinstance(argument, exp.Anonymous) and str(argument.this).lower() == PER_GROUP:
        raise Unsupported(
            f"{PER_GROUP} does not go with groups of single units",
            hint=f"Clip the unit's result: CLIP({sql_name_of(node).replace('()', '(x)')}, 0, 10).",
            span=span_of(node),
        )


def unit_measure_type(function: str, arg: Expr | None) -> Type:
    match function:
        case "sum":
            return BIGINT if arg is not None and arg.type.is_integer else DOUBLE
        case "mean" | "median" | "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp":
            return DOUBLE
        case "min" | "max":
            assert arg is not None
            return arg.type
        case "all" | "any":
            return BOOLEAN
        case _:
            return BIGINT


def _bind_count(node: exp.Count, scope: Scope) -> tuple[str, Expr | None]:
    refuse_other_args(node, "this")
    arg = node.this
    if arg is None or isinstance(arg, exp.Star):
        return "count_rows", None
    if isinstance(arg, exp.Distinct):
        refuse_other_args(arg, "expressions")
        if len(arg.expressions) != 1:
            raise Unsupported("COUNT(DISTINCT …) of several columns is not supported here",
                              hint="Concatenate them as text.", span=span_of(arg))  # fmt: skip
        return "count_distinct", bind_expr(arg.expressions[0], scope)
    bound = bind_expr(arg, scope)
    if isinstance(bound, Literal) and bound.value is not None:
        return "count_rows", None
    return "count", bound


def _bind_number(node: exp.Expr, scope: Scope) -> Expr:
    arg = coerce_number_literal(bind_expr(_require_plain_argument(node), scope), node.this)
    if not arg.type.is_number:
        seconds = f"{sql_name_of(node)[:-2]}(EXTRACT(epoch FROM {node.this.sql(dialect='postgres')})) is in seconds."
        raise TypeMismatch(
            f"{sql_name_of(node)} needs numbers, not {arg.type}",
            hint=seconds if arg.type.is_microsecond_interval else None,
            span=span_of(node.this),
        )
    return narrow_integer(arg)


def _cast_to_double(arg: Expr) -> Expr:
    """Between two whole numbers, or decimals, a median would have to be rounded."""
    return arg if arg.type == DOUBLE else Cast(arg, DOUBLE)


def _bind_ordered(node: exp.Expr, scope: Scope) -> Expr:
    inner = node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this  # DISTINCT changes nothing
    arg = bind_expr(inner, scope)
    if arg.type == BOOLEAN:
        raise TypeMismatch(f"{sql_name_of(node)} does not take boolean", hint="BOOL_AND and BOOL_OR do.",
                           span=span_of(node.this))  # fmt: skip
    return arg


def _require_plain_argument(node: exp.Expr) -> exp.Expr:
    if isinstance(node.this, exp.Distinct | exp.Order):
        raise Unsupported(
            f"DISTINCT and ORDER BY within {sql_name_of(node)} of each unit's rows are not supported",
            hint="SELECT DISTINCT the unit and the column in a sub-select first.",
            span=span_of(node.this),
        )
    inner: exp.Expr = node.this
    return inner


def _filter_argument(condition: Expr, arg: Expr) -> Expr:
    """FILTER (WHERE c): the argument where c holds, NULL elsewhere, which no aggregate counts."""
    return Case(((condition, arg),), Literal(None, arg.type), arg.type)


# Aggregates that pick one of a unit's values: ties are broken by value, so that the pick is a function of the rows.
#
#     ARG_MAX(kind, day)        the greatest kind of the rows with the greatest day:
#                               Window top = max(day) · Each by the unit: max(kind where day = top)
#     MODE(kind)                the least of the most frequent:
#                               Window n = count by kind, most = max(n) · Each by the unit: min(kind where n = most)
#     FIRST(kind ORDER BY day)  Window first_value(kind) in that order, completed with all columns
#
# Stability: the windows are over one unit's rows of one group, and order-independent or completely ordered (SOUNDNESS
# 2).

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
        top = self._add_window(function, (null_unless(counts, by),), self.keys, (), None, by.type)
        return UnitMeasure(name, function, null_unless(And((counts, Compare("=", by, top))), value), value.type)

    def _bind_mode(self, node: exp.Expr, name: str, where: Expr | None) -> UnitMeasure:
        refuse_other_args(node, "this")
        value = self._bind_part(node.this, node)
        value = value if where is None else null_unless(where, value)
        count = self._add_window("count", (value,), (*self.keys, make_comparable(value)), (), None, BIGINT)
        max_count = self._add_window("max", (count,), self.keys, (), None, BIGINT)
        return UnitMeasure(name, "min", null_unless(Compare("=", count, max_count), value), value.type)

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
