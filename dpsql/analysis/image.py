"""The values that a key can have when the column below it has finitely many: the expression, worked out for each.

    age // 10 * 10, age in [0, 120]   →  0, 10, 20, … 120

Only what is the same in Python and in every engine is worked out: whole numbers, single steps of doubles (which IEEE
754 rounds alike everywhere), comparisons, CASE, the calendar in UTC, ASCII text. A value
that an engine works out otherwise is in no listed group, and so not in the answer: it cannot leak.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from math import isfinite
from operator import add, mul, sub, truediv
from typing import assert_never

from dpsql.analysis.values import domain_of
from dpsql.functions.calendar import convert_time
from dpsql.functions.record import NotEvaluable
from dpsql.functions.table import FUNCTIONS
from dpsql.plan.expr import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Clip,
    Column,
    Compare,
    Expr,
    HoleValue,
    InHole,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
    Quantise,
)
from dpsql.plan.walk import child_exprs
from dpsql.schema.domain import Scalar
from dpsql.types import BIGINT, DOUBLE, Kind, Type, integer_range

Value = Scalar | None


def evaluate_for_values(expr: Expr, column: str, values: tuple[Value, ...]) -> tuple[Value, ...] | None:
    """The distinct values of the expression for these values of its one column; None where it cannot be told."""
    try:
        return tuple(dict.fromkeys(_evaluate_expr(expr, {column: value}) for value in values))
    except NotEvaluable:
        return None


EXACT_DIGITS = 15
"""Digits of a decimal that a double holds."""

MAX_TEXT_LENGTH = 10_000
"""Of a text that is worked out when it is bound."""


def fold_constant_expr(expr: Expr) -> Expr:
    """A literal for arithmetic or a function of literals: conditions on it narrow, and patterns may be made of it."""
    if not isinstance(expr, Call | Arithmetic) or not all(isinstance(child, Literal) for child in child_exprs(expr)):
        return expr
    if expr.type.kind is Kind.BOOLEAN or (isinstance(expr, Call) and _has_long_text(expr)):
        return expr
    try:
        return Literal(_evaluate_expr(expr, {}), expr.type)
    except NotEvaluable:
        return expr


def _has_long_text(call: Call) -> bool:
    """Whether the text could be long; a few functions within each other can make it longer than memory."""
    if call.type.kind is not Kind.TEXT:
        return False
    claimed = FUNCTIONS[call.function].domain(call, tuple(domain_of(arg, {}) for arg in call.args))
    return claimed.length is None or claimed.length > MAX_TEXT_LENGTH


def _evaluate_expr(expr: Expr, row: Mapping[str, Value]) -> Value:
    match expr:
        case Column():
            return row[expr.name]
        case Literal():
            return expr.value
        case Compare():
            return _evaluate_comparison(expr, row)
        case And():
            return _and_values([_evaluate_expr(arg, row) for arg in expr.args])
        case Or():
            return _not_value(_and_values([_not_value(_evaluate_expr(arg, row)) for arg in expr.args]))
        case Not():
            return _not_value(_evaluate_expr(expr.arg, row))
        case IsNull():
            return _evaluate_expr(expr.arg, row) is None
        case InList():
            value_searched = _evaluate_expr(expr.arg, row)
            return None if value_searched is None else value_searched in [value.value for value in expr.values]
        case Arithmetic():
            return _evaluate_arithmetic(expr, row)
        case Case():
            for when, then in expr.branches:
                if _evaluate_expr(when, row) is True:
                    return _evaluate_expr(then, row)
            return _evaluate_expr(expr.otherwise, row)
        case Cast():
            return _evaluate_cast(expr, row)
        case Call():
            return _evaluate_call(expr, row)
        case Clip() | Quantise() | HoleValue() | InHole():
            raise NotEvaluable
        case _:
            assert_never(expr)


def _and_values(values: list[Value]) -> Value:
    if False in values:
        return False
    return None if None in values else True


def _not_value(value: Value) -> Value:
    return None if value is None else not value


def _evaluate_comparison(expr: Compare, row: Mapping[str, Value]) -> Value:
    left, right = _evaluate_expr(expr.left, row), _evaluate_expr(expr.right, row)
    if left is None or right is None:
        return None
    if not (isinstance(left, int) and isinstance(right, int)) and expr.op not in ("=", "<>"):
        raise NotEvaluable
    match expr.op:
        case "=":
            return left == right
        case "<>":
            return left != right
        case "<" | "<=" | ">" | ">=":
            difference = int(left) - int(right)  # type: ignore[arg-type]
            return {"<": difference < 0, "<=": difference <= 0, ">": difference > 0, ">=": difference >= 0}[expr.op]
    raise NotEvaluable


def _evaluate_arithmetic(expr: Arithmetic, row: Mapping[str, Value]) -> Value:
    left, right = _evaluate_expr(expr.left, row), _evaluate_expr(expr.right, row)
    if left is None or right is None:
        return None
    if not expr.type.is_integer:
        return _evaluate_double_arithmetic(expr.op, _to_double(left), _to_double(right))
    if not isinstance(left, int) or not isinstance(right, int):
        raise NotEvaluable
    if expr.op in ("//", "%") and right == 0:
        return None
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1) if right else 0  # toward zero
    result = {"+": left + right, "-": left - right, "*": left * right, "//": quotient,
              "%": left - quotient * right}[expr.op]  # fmt: skip
    return _null_if_overflow(result, BIGINT)


def _to_double(value: Value) -> float:
    """As an engine casts to double; a decimal of few digits is a quotient of two exact doubles."""
    if isinstance(value, Decimal) and (len(value.as_tuple().digits) > EXACT_DIGITS or abs(value) > 10**EXACT_DIGITS):
        raise NotEvaluable
    if not isinstance(value, int | float | Decimal):
        raise NotEvaluable
    return float(value)


def _evaluate_double_arithmetic(op: str, left: float, right: float) -> Value:
    """Each step is rounded to the nearest double, here and in every engine."""
    if op == "/" and right == 0:
        return None
    operation: Callable[[float, float], float] = {"+": add, "-": sub, "*": mul, "/": truediv}[op]
    try:
        result = operation(left, right)
    except OverflowError:
        raise NotEvaluable from None
    if not isfinite(result):
        raise NotEvaluable
    return result


def _null_if_overflow(number: int, type_: Type) -> Value:
    min_value, max_value = integer_range(type_)
    return number if min_value <= number <= max_value else None


def _evaluate_cast(expr: Cast, row: Mapping[str, Value]) -> Value:
    value = _evaluate_expr(expr.arg, row)
    if value is None:
        return None
    if expr.type == DOUBLE and expr.arg.type.is_integer:
        return _to_double(value)
    if expr.type.is_integer and isinstance(value, float) and value.is_integer():
        return _null_if_overflow(int(value), expr.type)
    if expr.type.is_integer and (expr.arg.type.is_integer or expr.arg.type.kind is Kind.BOOLEAN):
        return _null_if_overflow(int(value), expr.type)  # type: ignore[arg-type]
    if isinstance(value, dt.date) and expr.type.is_time:
        return convert_time(value, expr.type)
    if expr.type.kind is Kind.TEXT and isinstance(value, bool):
        return "true" if value else "false"
    if expr.type.kind is Kind.TEXT and expr.arg.type.is_integer:
        return str(value)
    raise NotEvaluable


def _evaluate_call(expr: Call, row: Mapping[str, Value]) -> Value:
    function = FUNCTIONS[expr.function]
    if function.evaluate is None or not function.can_evaluate(tuple(arg.type for arg in expr.args)):
        raise NotEvaluable
    return function.evaluate(expr, [_evaluate_expr(arg, row) for arg in expr.args])
