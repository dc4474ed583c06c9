"""What a condition says about the columns of the rows for which it is true."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from dpsql.plan.expr import Cast, Column, Compare, Expr, InList, IsNull, Literal, Not, conjuncts
from dpsql.schema.domain import Domain, Scalar, to_number
from dpsql.types import DOUBLE, INTEGER_BITS, Kind, Type

Environment = Mapping[str, Domain]


class Enforced(dict[str, Domain]):
    """Domains that hold for every row that an engine may look at, also those that a condition drops.

    Engines reorder conditions, so an expression may meet rows that another condition is about to drop.
    """


def narrow(env: Environment, condition: Expr) -> dict[str, Domain]:
    """The domains of the rows for which the condition is true."""
    if isinstance(env, Enforced):
        return env
    result = dict(env)
    for part in conjuncts(condition):
        match part:
            case Compare(op, left, Literal() as literal) if (column := _compared(left, env)) is not None:
                _narrow_column(result, column, op, literal)
            case Compare(op, Literal() as literal, right) if (column := _compared(right, env)) is not None:
                _narrow_column(result, column, _FLIPPED[op], literal)
            case Not(InList(Column() as column, values)):
                _narrow_without(result, column, tuple(v.value for v in values if v.value is not None))
            case InList(Column() as column, values):
                _narrow_to(result, column, tuple(v.value for v in values if v.value is not None))
            case Not(IsNull(Column() as column)):
                result[column.name] = result[column.name].with_nullable(False)
            case Column() as column:
                _narrow_to(result, column, (True,))
            case Not(Column() as column):
                _narrow_to(result, column, (False,))
            case _:
                pass
    return result


def _compared(expr: Expr, env: Environment) -> Column | None:
    """The column that a comparison is about; also where it is read as a wider type that holds it exactly."""
    if isinstance(expr, Column):
        return expr
    if not isinstance(expr, Cast) or not isinstance(expr.arg, Column) or not expr.arg.type.is_integer:
        return None
    if expr.type.is_integer and INTEGER_BITS[expr.type.kind] >= INTEGER_BITS[expr.arg.type.kind]:
        return expr.arg
    if expr.type == DOUBLE:
        domain = env[expr.arg.name]
        narrow_type = INTEGER_BITS[expr.arg.type.kind] <= 32
        if narrow_type or (domain.bounded and max(abs(bound) for bound in domain.bounds) <= 2**53):
            return expr.arg
    return None


def _narrow_without(env: dict[str, Domain], column: Column, values: tuple[Scalar, ...]) -> None:
    domain = env[column.name].with_nullable(False)
    if domain.values is not None:
        domain = replace(domain, values=tuple(value for value in domain.values if value not in values))
    env[column.name] = domain


_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_HOLDS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _narrow_column(env: dict[str, Domain], column: Column, op: str, literal: Literal) -> None:
    domain = env[column.name]
    if literal.value is None:
        return
    env[column.name] = domain = domain.with_nullable(False)
    if op == "=":
        _narrow_to(env, column, (literal.value,))
        return
    if op == "<>":
        _narrow_without(env, column, (literal.value,))
        return
    if not (domain.type.is_number or domain.type.is_time):
        return
    number = to_number(literal.value)
    lower, upper = domain.lower, domain.upper
    if op in (">", ">="):
        lower = number if lower is None else max(lower, number)
    else:
        upper = number if upper is None else min(upper, number)
    if domain.type.is_integer or domain.type.is_time:  # days and microseconds are whole too
        lower = _whole(lower, op == ">" and lower == number, 1)
        upper = _whole(upper, op == "<" and upper == number, -1)
    values = domain.values
    if values is not None:
        values = tuple(value for value in values if _HOLDS[op](to_number(value), number))
    if lower is not None and upper is not None and lower > upper:  # no row is left; any bounds hold
        lower = upper = next((bound for bound in (domain.lower, domain.upper) if bound is not None), Fraction(0))
        values = ()
    env[column.name] = replace(domain, lower=lower, upper=upper, values=values)


def _whole(bound: Fraction | None, strict: bool, inward: int) -> Fraction | None:
    """The bound of whole numbers that are past it (or strictly past it)."""
    if bound is None:
        return None
    whole = Fraction(bound.__ceil__() if inward > 0 else bound.__floor__())
    return whole + inward if strict and whole == bound else whole


def _narrow_to(env: dict[str, Domain], column: Column, values: tuple[Scalar, ...]) -> None:
    domain = env[column.name].with_nullable(False)
    # As values of the column's type: 0.1 and 1e-1 are one double, and must be one group.
    kept = tuple(dict.fromkeys(as_type(value, domain.type) for value in values if _possible(domain, value)))
    lower, upper = domain.lower, domain.upper
    if kept and (domain.type.is_number or domain.type.is_time):
        numbers = [to_number(value) for value in kept]
        lower, upper = min(numbers), max(numbers)
    env[column.name] = replace(domain, values=kept, lower=lower, upper=upper)


def as_type(value: Scalar, type_: Type) -> Scalar:
    if type_.is_float and isinstance(value, int | float | Decimal):
        return float(value) + 0.0
    if type_.is_integer and isinstance(value, int | float | Decimal):
        return int(value)
    return value


def _possible(domain: Domain, value: Scalar) -> bool:
    if domain.values is not None:
        return value in domain.values
    if domain.type.is_number or domain.type.is_time:
        number = to_number(value)
        steps = number * 10 ** (domain.type.scale or 0)
        if (domain.type.is_integer or domain.type.kind is Kind.DECIMAL) and steps.denominator != 1:
            return False
        if domain.type.is_float:  # rows are clipped to the doubles nearest to the bounds
            lower, upper = (None if b is None else Fraction(float(b)) for b in (domain.lower, domain.upper))
            number = Fraction(float(number))
        else:
            lower, upper = domain.lower, domain.upper
        return (lower is None or lower <= number) and (upper is None or number <= upper)
    return True
