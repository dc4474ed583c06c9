"""All values that a key can have, where they are few enough to list.

age(DATE '2025-01-01', born) in years / 10 * 10   →  the years first, 10 to 94; then 10, 20, … 90
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from math import isfinite
from operator import add, mul, sub, truediv
from typing import assert_never

from dpsql.compiler.analysis.domains import domain_of
from dpsql.compiler.analysis.narrowing import Environment
from dpsql.compiler.functions.calendar import convert_time, datetime_bounds
from dpsql.compiler.functions.function import NotEvaluable
from dpsql.compiler.functions.table import FUNCTIONS
from dpsql.compiler.plan.expressions import (
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
from dpsql.compiler.plan.walk import child_exprs, columns_of, map_expr, walk_exprs
from dpsql.schema.model import Domain, Scalar
from dpsql.types import BIGINT, DOUBLE, Kind, Type, integer_range

# The values that a key can have when the column below it has finitely many: the expression, worked out for each.
#
#     age // 10 * 10, age in [0, 120]   →  0, 10, 20, … 120
#
# Only what is the same in Python and in every engine is worked out: whole numbers, single steps of doubles (which IEEE
# 754 rounds alike everywhere), comparisons, CASE, the calendar in UTC, ASCII text. A value
# that an engine works out otherwise is in no listed group, and so not in the answer: it cannot leak.

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


MAX_LISTED_KEYS = 10_000
"""More public groups than this, and the keys are selected instead."""

MAX_EVALUATED_VALUES = 2_000
"""Values of a part of a key for which the key is worked out one by one, while the analyst waits."""

MAX_PARTS = 200
"""Of an expression in which a deciding part is looked for."""

_PART = "part"

KeyValues = tuple[Value, ...]


def list_key_values(expr: Expr, env: Environment) -> KeyValues | None:
    """Worked out value by value where one listed part decides the key, else its domain."""
    if isinstance(expr, Column):
        return _list_domain_values(domain_of(expr, env))
    for part in _deciding_parts(expr):
        key_values = _evaluate_by_part(expr, part, env)
        if key_values is not None:
            return key_values
    steps = _list_time_steps(expr, env)
    return _list_domain_values(domain_of(expr, env)) if steps is None else steps


def _list_time_steps(expr: Expr, env: Environment) -> KeyValues | None:
    """floor(extract(epoch FROM at) / 3600): every whole number from what its first moment gives to its last's.

    Doubles are divided and rounded alike everywhere, and later moments never give less, so the ends are exact.
    """
    at = _counted_timestamp(expr)
    domain = None if at is None else domain_of(at, env)
    timestamps = None if domain is None else datetime_bounds(domain)
    if at is None or domain is None or timestamps is None:
        return None
    step_numbers = evaluate_for_values(
        _substitute_part(at, expr), _PART, tuple(convert_time(timestamp, domain.type) for timestamp in timestamps)
    )
    if step_numbers is None:
        return None
    first, last = (int(number) for number in (step_numbers[0], step_numbers[-1]) if isinstance(number, float))
    if last - first >= MAX_LISTED_KEYS:
        return None
    return (*(float(number) for number in range(first, last + 1)), *((None,) if domain.nullable else ()))


def _counted_timestamp(expr: Expr) -> Expr | None:
    """The moment whose seconds, or whose seconds by a number above 0, are rounded down."""
    if not isinstance(expr, Call) or expr.function != "floor":
        return None
    seconds = expr.args[0]
    if isinstance(seconds, Arithmetic) and seconds.op == "/" and isinstance(seconds.right, Literal):
        width = seconds.right.value
        seconds = seconds.left if isinstance(width, int | float | Decimal) and width > 0 else seconds
    counts = isinstance(seconds, Call) and seconds.function == "epoch"
    return seconds.args[0] if isinstance(seconds, Call) and counts and seconds.args[0].type.is_time else None


def _deciding_parts(expr: Expr) -> tuple[Expr, ...]:
    """Parts that the key reads its columns through: its one column, then the largest such part."""
    names = columns_of(expr)
    if not names:
        return ()
    every = tuple(walk_exprs(expr))
    columns = [part for part in every if isinstance(part, Column)][:1] if len(names) == 1 else []
    parts = (part for part in every[1:] if not isinstance(part, Column | Literal) and len(every) <= MAX_PARTS)
    largest = next((part for part in parts if columns_of(part) == names and _is_deciding_part(part, expr)), None)
    return (*columns, *(() if largest is None else (largest,)))


def _is_deciding_part(part: Expr, expr: Expr) -> bool:
    return columns_of(_substitute_part(part, expr)) == {_PART}


def _substitute_part(part: Expr, expr: Expr) -> Expr:
    """The expression over a column that stands for its part."""
    column = Column(_PART, part.type)
    return column if expr == part else map_expr(expr, lambda inner: column if inner == part else inner)


def _evaluate_by_part(expr: Expr, part: Expr, env: Environment) -> KeyValues | None:
    below = list_key_values(part, env)
    if below is None or len(below) > MAX_EVALUATED_VALUES:
        return None
    above = _substitute_part(part, expr)
    # A NULL below is possible whatever is declared; it is no group of its own, but what a key makes of it is one.
    evaluated, of_null = evaluate_for_values(above, _PART, below), evaluate_for_values(above, _PART, (None,))
    if evaluated is None or of_null is None:
        return None
    values = dict.fromkeys(value for value in (*evaluated, *of_null) if value is not None)
    return (*values, None) if None in evaluated else tuple(values)


def list_few_values(domain: Domain) -> KeyValues | None:
    """The values of a column, where there are few enough to work out something of each."""
    values = _list_domain_values(domain)
    return None if values is None or len(values) > MAX_EVALUATED_VALUES else values


def _list_domain_values(domain: Domain) -> KeyValues | None:
    values = domain.list_values(MAX_LISTED_KEYS)
    if values is None:
        return None
    return (*values, None) if domain.nullable else values
