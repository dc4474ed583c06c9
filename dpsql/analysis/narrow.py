"""What a condition says about the columns of the rows for which it is true."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import assert_never

from dpsql.analysis.preimage import TEXTS, Range, compared_range, listed_range, preimage, printed_range
from dpsql.functions.rules import union
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
    conjuncts,
)
from dpsql.plan.walk import columns_of
from dpsql.schema.domain import Domain, Scalar, to_number
from dpsql.types import DOUBLE, INTEGER_BITS, TEXT, Kind, Type

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
        if isinstance(part, Or):
            result = _either(result, part)
            continue
        found = _says(part, env) or _through(part, env)
        if found is not None:
            column, change = found
            result[column.name] = change(result[column.name].with_nullable(False))
    return result


def _either(env: dict[str, Domain], condition: Or) -> dict[str, Domain]:
    """What the rows of all branches can be; a branch that no row can meet has none."""
    names = columns_of(condition) & env.keys()
    branches = [_branch(env, part) for part in disjuncts(condition) if not _is_never(part)]
    possible = [b for b in branches if not any(b[name].values == () and not b[name].nullable for name in names)]
    if len(possible) < 2:
        return (possible or branches or [env])[0]
    return env | {name: union(tuple(branch[name] for branch in possible), env[name].type) for name in names}


def _branch(env: dict[str, Domain], part: Expr) -> dict[str, Domain]:
    if isinstance(part, IsNull) and isinstance(part.arg, Column):
        return env | {part.arg.name: replace(env[part.arg.name], values=())}
    return narrow(env, part)


def _is_never(part: Expr) -> bool:
    return isinstance(part, Literal) and part.value is not True


def narrow_unless(env: Environment, condition: Expr) -> dict[str, Domain]:
    """The domains of the rows for which the condition is not true: false, or NULL because the column is."""
    if isinstance(env, Enforced):
        return env
    result = dict(env)
    for part in disjuncts(condition):
        negation = part.arg if isinstance(part, Not) else opposite(part)
        found = _says(negation, env)
        if found is not None:
            column, change = found
            before = result[column.name]
            keeps_null = before.nullable and not isinstance(part, IsNull)
            result[column.name] = change(before).with_nullable(keeps_null)
    return result


def disjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The parts of a condition of which none is true where it is not."""
    if isinstance(condition, Or):
        return tuple(part for arg in condition.args for part in disjuncts(arg))
    return (condition,)


def opposite(condition: Expr) -> Expr:
    if isinstance(condition, Compare):
        return Compare(_OPPOSITE[condition.op], condition.left, condition.right)
    return Not(condition)


Change = Callable[[Domain], Domain]


def _says(part: Expr, env: Environment) -> tuple[Column, Change] | None:
    """The column that a condition is about, and what it leaves of the column's domain."""
    match part:
        case Compare(op, left, Literal() as literal) if (column := _compared(left, env)) is not None:
            return None if literal.value is None else (column, lambda domain: narrow_domain(domain, op, literal))
        case Compare(op, Literal() as literal, right) if (column := _compared(right, env)) is not None:
            flipped = FLIPPED[op]
            return None if literal.value is None else (column, lambda domain: narrow_domain(domain, flipped, literal))
        case Not(InList(arg, values)) if (column := _compared(arg, env)) is not None:
            return column, lambda domain: _without(domain, tuple(v.value for v in values if v.value is not None))
        case InList(Column() as column, values):
            return column, lambda domain: _only(domain, tuple(v.value for v in values if v.value is not None))
        case Not(IsNull(Column() as column)):
            return column, lambda domain: domain
        case Column() as column:
            return column, lambda domain: _only(domain, (True,))
        case Not(Column() as column):
            return column, lambda domain: _only(domain, (False,))
        case Literal() | Compare() | And() | Or() | Not() | IsNull() | InList() | Arithmetic() | Case() | Cast():
            return None
        case Call() | Clip() | Quantise() | HoleValue() | InHole():
            return None
        case _:
            assert_never(part)


def _through(part: Expr, env: Environment) -> tuple[Column, Change] | None:
    """The same where functions that never decrease stand around the column.

    Only for rows for which the condition is true: where it is not, the function may be NULL though its column is not.
    """
    match part:
        case Compare(op, Call(args=(Column() as printed, Literal())) as call, Literal(str() as text)):
            return _said(printed, printed_range(call, env[printed.name], lambda value: TEXTS[op](value, text)))
        case InList(Call(args=(Column() as printed, Literal())) as call, values) if call.type == TEXT:
            texts = [value.value for value in values]
            return _said(printed, printed_range(call, env[printed.name], lambda value: value in texts))
        case Not(InList(Call(args=(Column() as printed, Literal())) as call, values)) if call.type == TEXT:
            excluded = [value.value for value in values]
            return _said(printed, printed_range(call, env[printed.name], lambda value: value not in excluded))
        case Compare(op, left, Literal(value)) if value is not None:
            return _below(left, compared_range(op, value, left.type), env)
        case Compare(op, Literal(value), right) if value is not None:
            return _below(right, compared_range(FLIPPED[op], value, right.type), env)
        case InList(arg, values):
            return _below(arg, listed_range(values, arg.type), env)
        case Column() | Literal() | Compare() | And() | Or() | Not() | IsNull() | Arithmetic() | Case() | Cast():
            return None
        case Call() | Clip() | Quantise() | HoleValue() | InHole():
            return None
        case _:
            assert_never(part)


def _below(expr: Expr, within: Range | None, env: Environment) -> tuple[Column, Change] | None:
    column = _compared(expr, env)
    while within is not None and column is None:
        below = preimage(expr, within)
        if below is None:
            return None
        expr, within = below
        column = _compared(expr, env)
    return None if column is None else _said(column, within)


def _said(column: Column, within: Range | None) -> tuple[Column, Change] | None:
    return None if within is None else (column, lambda domain: _within(domain, within))


def _within(domain: Domain, within: Range) -> Domain:
    for op, bound in ((">=", within.lower), ("<=", within.upper)):
        domain = domain if bound is None else _narrowed(domain, op, bound)
    return domain


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


FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}

_HOLDS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _without(domain: Domain, values: tuple[Scalar, ...]) -> Domain:
    if domain.values is None:
        return domain
    excluded = frozenset(values)
    return replace(domain, values=tuple(value for value in domain.values if value not in excluded))


def narrow_domain(domain: Domain, op: str, literal: Literal) -> Domain:
    """What a comparison with a literal leaves of a domain, NULL aside."""
    if literal.value is None:
        return domain
    if op == "=":
        return _only(domain, (literal.value,))
    if op == "<>":
        return _without(domain, (literal.value,))
    if not (domain.type.is_number or domain.type.is_time):
        return domain
    return _narrowed(domain, op, to_number(literal.value))


def _narrowed(domain: Domain, op: str, number: Fraction) -> Domain:
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
    return replace(domain, lower=lower, upper=upper, values=values)


def _whole(bound: Fraction | None, strict: bool, inward: int) -> Fraction | None:
    """The bound of whole numbers that are past it (or strictly past it)."""
    if bound is None:
        return None
    whole = Fraction(bound.__ceil__() if inward > 0 else bound.__floor__())
    return whole + inward if strict and whole == bound else whole


def _only(domain: Domain, values: tuple[Scalar, ...]) -> Domain:
    # As values of the column's type: 0.1 and 1e-1 are one double, and must be one group.
    kept = tuple(dict.fromkeys(as_type(value, domain.type) for value in values if _possible(domain, value)))
    lower, upper = domain.lower, domain.upper
    if kept and (domain.type.is_number or domain.type.is_time):
        numbers = [to_number(value) for value in kept]
        lower, upper = min(numbers), max(numbers)
    return replace(domain, values=kept, lower=lower, upper=upper)


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
