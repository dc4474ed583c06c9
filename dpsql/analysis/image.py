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
from dpsql.functions.calendar import time_as
from dpsql.functions.record import NotWorkedOut
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
from dpsql.plan.walk import children
from dpsql.schema.domain import Scalar
from dpsql.types import BIGINT, DOUBLE, Kind, Type, integer_range

Value = Scalar | None


def image(expr: Expr, column: str, values: tuple[Value, ...]) -> tuple[Value, ...] | None:
    """The distinct values of the expression for these values of its one column; None where it cannot be told."""
    try:
        return tuple(dict.fromkeys(_value(expr, {column: value}) for value in values))
    except NotWorkedOut:
        return None


EXACT_DIGITS = 15
"""Digits of a decimal that a double holds."""

MOST_CHARACTERS = 10_000
"""Of a text that is worked out when it is bound."""


def constant(expr: Expr) -> Expr:
    """A literal for arithmetic or a function of literals: conditions on it narrow, and patterns may be made of it."""
    if not isinstance(expr, Call | Arithmetic) or not all(isinstance(child, Literal) for child in children(expr)):
        return expr
    if expr.type.kind is Kind.BOOLEAN or (isinstance(expr, Call) and _is_long(expr)):
        return expr
    try:
        return Literal(_value(expr, {}), expr.type)
    except NotWorkedOut:
        return expr


def _is_long(call: Call) -> bool:
    """Whether the text could be long; a few functions within each other can make it longer than memory."""
    if call.type.kind is not Kind.TEXT:
        return False
    claimed = FUNCTIONS[call.function].domain(call, tuple(domain_of(arg, {}) for arg in call.args))
    return claimed.length is None or claimed.length > MOST_CHARACTERS


def _value(expr: Expr, row: Mapping[str, Value]) -> Value:
    match expr:
        case Column():
            return row[expr.name]
        case Literal():
            return expr.value
        case Compare():
            return _compare(expr, row)
        case And():
            return _all([_value(arg, row) for arg in expr.args])
        case Or():
            return _negated(_all([_negated(_value(arg, row)) for arg in expr.args]))
        case Not():
            return _negated(_value(expr.arg, row))
        case IsNull():
            return _value(expr.arg, row) is None
        case InList():
            found = _value(expr.arg, row)
            return None if found is None else found in [value.value for value in expr.values]
        case Arithmetic():
            return _arithmetic(expr, row)
        case Case():
            for when, then in expr.branches:
                if _value(when, row) is True:
                    return _value(then, row)
            return _value(expr.otherwise, row)
        case Cast():
            return _cast(expr, row)
        case Call():
            return _call(expr, row)
        case Clip() | Quantise() | HoleValue() | InHole():
            raise NotWorkedOut
        case _:
            assert_never(expr)


def _all(values: list[Value]) -> Value:
    if False in values:
        return False
    return None if None in values else True


def _negated(value: Value) -> Value:
    return None if value is None else not value


def _compare(expr: Compare, row: Mapping[str, Value]) -> Value:
    left, right = _value(expr.left, row), _value(expr.right, row)
    if left is None or right is None:
        return None
    if not (isinstance(left, int) and isinstance(right, int)) and expr.op not in ("=", "<>"):
        raise NotWorkedOut
    match expr.op:
        case "=":
            return left == right
        case "<>":
            return left != right
        case "<" | "<=" | ">" | ">=":
            difference = int(left) - int(right)  # type: ignore[arg-type]
            return {"<": difference < 0, "<=": difference <= 0, ">": difference > 0, ">=": difference >= 0}[expr.op]
    raise NotWorkedOut


def _arithmetic(expr: Arithmetic, row: Mapping[str, Value]) -> Value:
    left, right = _value(expr.left, row), _value(expr.right, row)
    if left is None or right is None:
        return None
    if not expr.type.is_integer:
        return _doubles(expr.op, _double(left), _double(right))
    if not isinstance(left, int) or not isinstance(right, int):
        raise NotWorkedOut
    if expr.op in ("//", "%") and right == 0:
        return None
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1) if right else 0  # toward zero
    result = {"+": left + right, "-": left - right, "*": left * right, "//": quotient,
              "%": left - quotient * right}[expr.op]  # fmt: skip
    return _within(result, BIGINT)


def _double(value: Value) -> float:
    """As an engine casts to double; a decimal of few digits is a quotient of two exact doubles."""
    if isinstance(value, Decimal) and (len(value.as_tuple().digits) > EXACT_DIGITS or abs(value) > 10**EXACT_DIGITS):
        raise NotWorkedOut
    if not isinstance(value, int | float | Decimal):
        raise NotWorkedOut
    return float(value)


def _doubles(op: str, left: float, right: float) -> Value:
    """Each step is rounded to the nearest double, here and in every engine."""
    if op == "/" and right == 0:
        return None
    work: Callable[[float, float], float] = {"+": add, "-": sub, "*": mul, "/": truediv}[op]
    try:
        result = work(left, right)
    except OverflowError:
        raise NotWorkedOut from None
    if not isfinite(result):
        raise NotWorkedOut
    return result


def _within(number: int, type_: Type) -> Value:
    least, most = integer_range(type_)
    return number if least <= number <= most else None


def _cast(expr: Cast, row: Mapping[str, Value]) -> Value:
    value = _value(expr.arg, row)
    if value is None:
        return None
    if expr.type == DOUBLE and expr.arg.type.is_integer:
        return _double(value)
    if expr.type.is_integer and isinstance(value, float) and value.is_integer():
        return _within(int(value), expr.type)
    if expr.type.is_integer and (expr.arg.type.is_integer or expr.arg.type.kind is Kind.BOOLEAN):
        return _within(int(value), expr.type)  # type: ignore[arg-type]
    if isinstance(value, dt.date) and expr.type.is_time:
        return time_as(value, expr.type)
    if expr.type.kind is Kind.TEXT and isinstance(value, bool):
        return "true" if value else "false"
    if expr.type.kind is Kind.TEXT and expr.arg.type.is_integer:
        return str(value)
    raise NotWorkedOut


def _call(expr: Call, row: Mapping[str, Value]) -> Value:
    function = FUNCTIONS[expr.function]
    if function.evaluate is None or not function.agrees(tuple(arg.type for arg in expr.args)):
        raise NotWorkedOut
    return function.evaluate(expr, [_value(arg, row) for arg in expr.args])
