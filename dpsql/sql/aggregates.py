"""Aggregate functions of the statement to measures of the plan."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from sqlglot import exp

from dpsql.errors import TypeMismatch, Unsupported
from dpsql.plan.expr import Case, Expr, Literal
from dpsql.plan.measures import CountDistinctUnits, CountRows, CountValues, MeanValues, Measure, SumValues
from dpsql.sql.bind_expr import bind_condition, bind_expr
from dpsql.sql.coerce import number_literal
from dpsql.sql.dialect import only, span_of, spelled
from dpsql.sql.names import Scope
from dpsql.types import BIGINT, DOUBLE, Type, sum_type

ANSWERED = "COUNT(*), COUNT(x), COUNT(DISTINCT unit), SUM and AVG"


def is_aggregate(node: exp.Expr) -> bool:
    """Aggregates of the statement; a windowed function is none, though its arguments may hold some."""
    if isinstance(node, exp.Filter | exp.WithinGroup):
        return True
    return isinstance(node, exp.AggFunc) and not isinstance(node, _WINDOW_ONLY)


_WINDOW_ONLY = (exp.FirstValue, exp.LastValue, exp.NthValue, exp.Lag, exp.Lead, exp.Rank, exp.DenseRank, exp.Ntile)


def holds_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate of this block is in the expression; sub-selects are blocks of their own."""
    if isinstance(node, exp.Query | exp.Subquery):
        return False
    if isinstance(node, exp.Window):
        parts = [child for key, child in _children(node) if key != "this"]
        parts += [child for _, child in _children(node.this)]
        return any(holds_aggregate(part) for part in parts)
    return is_aggregate(node) or any(holds_aggregate(child) for _, child in _children(node))


def _children(node: exp.Expr) -> list[tuple[str, exp.Expr]]:
    result: list[tuple[str, exp.Expr]] = []
    for key, value in node.args.items():
        values = value if isinstance(value, list) else [value]
        result += [(key, item) for item in values if isinstance(item, exp.Expr)]
    return result


def bind_measure(node: exp.Expr, scope: Scope) -> Measure:
    if isinstance(node, exp.Filter):
        only(node, "this", "expression")
        only(node.expression, "this")
        return _filtered(bind_measure(node.this, scope), bind_condition(node.expression.this, scope), node)
    span = span_of(node)
    if isinstance(node, exp.Count):
        return _count(node, scope)
    if isinstance(node, exp.CountIf):
        only(node, "this")
        return CountValues(_one_where(bind_condition(node.this, scope)), span)
    if isinstance(node, exp.Sum | exp.Avg):
        only(node, "this")
        arg = _number(node.this, scope, spelled(node))
        text = str(node.this.sql(dialect="postgres"))
        return SumValues(arg, span, text) if isinstance(node, exp.Sum) else MeanValues(arg, span, text)
    raise Unsupported(f"{spelled(node)} is not supported yet", hint=f"These are: {ANSWERED}.", span=span)


def measure_type(measure: Measure) -> Type:
    match measure:
        case SumValues(arg):
            return sum_type(arg.type)
        case MeanValues():
            return DOUBLE
        case CountRows() | CountValues() | CountDistinctUnits():
            return BIGINT
        case _:
            assert_never(measure)


def _count(node: exp.Count, scope: Scope) -> Measure:
    only(node, "this")
    span = span_of(node)
    arg = node.this
    if arg is None or isinstance(arg, exp.Star):
        if arg is not None:
            only(arg)
        return CountRows(span)
    if isinstance(arg, exp.Distinct):
        return _count_distinct(arg, scope)
    bound = bind_expr(arg, scope)
    if isinstance(bound, Literal) and bound.value is not None:
        return CountRows(span)
    return CountValues(bound, span)


def _count_distinct(node: exp.Distinct, scope: Scope) -> Measure:
    only(node, "expressions")
    column = node.expressions[0] if len(node.expressions) == 1 else None
    if isinstance(column, exp.Column) and scope.resolve(column).is_unit:
        return CountDistinctUnits(span_of(node))
    units = [f"{s.alias}.{c.name}" for s in scope.sources for c in s.columns if c.is_unit]
    raise Unsupported(
        "COUNT(DISTINCT …) is supported for the privacy unit only, so far",
        hint=f"For example: COUNT(DISTINCT {units[0]})." if units else "Here each row is its own unit: COUNT(*).",
        span=span_of(node),
    )


def _number(node: exp.Expr, scope: Scope, what: str) -> Expr:
    if isinstance(node, exp.Distinct | exp.Order):
        raise Unsupported(f"DISTINCT and ORDER BY within {what} are not supported yet", span=span_of(node))
    arg = number_literal(bind_expr(node, scope), node)
    if not arg.type.is_number:
        raise TypeMismatch(f"{what} needs numbers, not {arg.type}", span=span_of(node))
    return arg


def _filtered(measure: Measure, condition: Expr, node: exp.Expr) -> Measure:
    """FILTER (WHERE c): the argument where c holds, NULL elsewhere, which no aggregate counts."""
    span = span_of(node)
    match measure:
        case CountRows():
            return CountValues(_one_where(condition), span)
        case CountValues(arg) | SumValues(arg) | MeanValues(arg):
            where = Case(((condition, arg),), Literal(None, arg.type), arg.type)
            return replace(measure, arg=where, span=span)
        case CountDistinctUnits():
            raise Unsupported("FILTER with COUNT(DISTINCT …) is not supported yet", span=span)
        case _:
            assert_never(measure)


def _one_where(condition: Expr) -> Expr:
    return Case(((condition, Literal(1, BIGINT)),), Literal(None, BIGINT), BIGINT)
