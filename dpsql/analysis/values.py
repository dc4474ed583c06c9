"""What values an expression can have, by interval arithmetic and finite sets.

A domain is a *claim about values that the scan has sanitised*. Sensitivity does not rest on it: what a sum's noise is
computed from is clipped again by `Quantise`, and public groups are a list that the engine's rows are joined to.
Totality does: 64-bit arithmetic and the length of text are allowed by these bounds; a slip could make an engine raise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from dpsql.analysis.calendar import extract_bounds, truncated_values
from dpsql.analysis.narrow import Environment, narrow
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
    InList,
    IsNull,
    Literal,
    Not,
    Or,
    Quantise,
)
from dpsql.schema.domain import Domain, Scalar, boolean_domain, to_number
from dpsql.types import BIGINT, INTEGER_BITS, TEXT, Kind, Type, integer_range

MOST_VALUES = 10_000
"""Finite sets larger than this are kept as bounds only."""

MICROSECONDS_OF_DAY = 86_400_000_000

MOST_DOUBLE = 2**1000

MOST_PRINTED = 400
"""Characters of a number, date or boolean as text (a double has at most 309 digits before its point)."""

GROWTH = 3
"""A character becomes at most three when letters change case."""


def domain_of(expr: Expr, env: Environment) -> Domain:
    match expr:
        case Column():
            return _inexact(env[expr.name]) if expr.type.is_float else env[expr.name]
        case Literal():
            return _literal(expr)
        case Compare() | InList():
            return boolean_domain(any(domain_of(arg, env).nullable for arg in _operands(expr)))
        case And() | Or():
            return boolean_domain(any(domain_of(arg, env).nullable for arg in expr.args))
        case Not():
            return boolean_domain(domain_of(expr.arg, env).nullable)
        case IsNull():
            return boolean_domain(False)
        case Arithmetic():
            left, right = domain_of(expr.left, env), domain_of(expr.right, env)
            return _exact_if(_arithmetic(expr, left, right), left, right)
        case Case():
            return _case(expr, env)
        case Cast():
            inner = domain_of(expr.arg, env)
            return _exact_if(_cast(inner, expr.type), inner)
        case Call():
            args = tuple(domain_of(arg, env) for arg in expr.args)
            return _exact_if(_call(expr, args), *args)
        case Clip():
            inner = domain_of(expr.arg, env)
            lower, upper = expr.lower, expr.upper
            if expr.type.is_integer:  # the whole numbers between the bounds
                lower, upper = Fraction(lower.__ceil__()), Fraction(upper.__floor__())
            if inner.exact:  # what a double may have moved past its bounds is held by the clip's own only
                lower, upper = _intersect(inner, lower, upper)
            return Domain(expr.type, True, min(lower, upper), max(lower, upper))
        case Quantise():
            return Domain(BIGINT, True, Fraction(expr.lower), Fraction(expr.upper))
        case _:
            assert_never(expr)


def _exact_if(domain: Domain, *parts: Domain) -> Domain:
    """Bounds prove nothing about integers once a double is on the way: its rounding may pass them."""
    exact = all(part.exact for part in parts) and not domain.type.is_float
    return domain if exact == domain.exact else replace(domain, exact=exact)


def _inexact(domain: Domain) -> Domain:
    return replace(domain, exact=False)


def _operands(expr: Compare | InList) -> tuple[Expr, ...]:
    return (expr.left, expr.right) if isinstance(expr, Compare) else (expr.arg,)


def _literal(literal: Literal) -> Domain:
    if literal.value is None:
        return Domain(literal.type, True, values=())
    if literal.type.is_number or literal.type.is_time:
        number = to_number(literal.value)
        return Domain(literal.type, False, number, number, (literal.value,), exact=not literal.type.is_float)
    length = len(literal.value) if isinstance(literal.value, str) else None
    return Domain(literal.type, False, values=(literal.value,), length=length)


def _intersect(domain: Domain, lower: Fraction, upper: Fraction) -> tuple[Fraction, Fraction]:
    """Where [lower, upper] moves the domain's values: its bounds clipped."""

    def clip(number: Fraction) -> Fraction:
        return min(max(number, lower), upper)

    return (
        lower if domain.lower is None else clip(domain.lower),
        upper if domain.upper is None else clip(domain.upper),
    )


def hull(domains: tuple[Domain, ...], type_: Type) -> Domain:
    """The domain of "one of these"."""
    nullable = any(domain.nullable for domain in domains)
    some = tuple(domain for domain in domains if domain.values != ())
    lowers, uppers = [d.lower for d in some], [d.upper for d in some]
    lower = None if None in lowers or not some else min(x for x in lowers if x is not None)
    upper = None if None in uppers or not some else max(x for x in uppers if x is not None)
    values: tuple[Scalar, ...] | None = ()
    for domain in some:
        values = None if values is None or domain.values is None else merge_values(values, domain.values)
    lengths = [domain.length for domain in some]
    length = None if None in lengths or not some else max(x for x in lengths if x is not None)
    exact = all(domain.exact for domain in domains)
    return Domain(type_, nullable, lower, upper, values, length, exact)


def merge_values(first: tuple[Scalar, ...], second: tuple[Scalar, ...]) -> tuple[Scalar, ...] | None:
    merged = tuple(dict.fromkeys(first + second))
    return merged if len(merged) <= MOST_VALUES else None


def _case(expr: Case, env: Environment) -> Domain:
    branches = [domain_of(then, narrow(env, when)) for when, then in expr.branches]
    return hull((*branches, domain_of(expr.otherwise, env)), expr.type)


def _cast(inner: Domain, type_: Type) -> Domain:
    nullable = inner.nullable or not _widens(inner, type_)
    if inner.type == type_:
        return inner
    if inner.type.kind is Kind.BOOLEAN and type_.is_integer:
        return Domain(type_, inner.nullable, Fraction(0), Fraction(1), (0, 1))
    if inner.type.is_integer and type_.is_integer:
        return _within_type(replace(inner, type=type_, nullable=nullable))
    if inner.type.is_number and type_.is_number:
        if type_.is_integer and inner.bounded:  # rounds to a neighbor
            lower, upper = inner.bounds
            return Domain(type_, nullable, Fraction(lower.__floor__()), Fraction(upper.__ceil__()))
        if type_.kind is Kind.DECIMAL and inner.bounded:  # rounds to a neighbor on its grid
            step = Fraction(1, 10 ** (type_.scale or 0))
            lower, upper = inner.bounds
            return Domain(type_, True, (lower / step).__floor__() * step, (upper / step).__ceil__() * step)
        widened = (_single(inner.lower, -1), _single(inner.upper, 1)) if type_.kind is Kind.REAL else None
        return Domain(type_, nullable, *(widened or (inner.lower, inner.upper)))
    if inner.bounded and {inner.type.kind, type_.kind} == {Kind.DATE, Kind.TIMESTAMP}:
        lower, upper = (_date_cast(bound, type_.kind) for bound in inner.bounds)
        return Domain(type_, inner.nullable, lower, upper)
    return Domain(type_, nullable, length=MOST_PRINTED if type_ == TEXT else None)


def _within_type(domain: Domain) -> Domain:
    """What a narrower whole number cannot hold becomes NULL."""
    least, most = integer_range(domain.type)
    values = domain.values
    if values is not None:
        values = tuple(value for value in values if least <= to_number(value) <= most)
    if domain.bounded and (domain.bounds[1] < least or domain.bounds[0] > most):
        return replace(domain, lower=Fraction(0), upper=Fraction(0), values=())
    lower = None if domain.lower is None else max(domain.lower, Fraction(least))
    upper = None if domain.upper is None else min(domain.upper, Fraction(most))
    return replace(domain, lower=lower, upper=upper, values=values)


def _single(bound: Fraction | None, outward: int) -> Fraction | None:
    """A bound of numbers that were rounded to 24 bits."""
    return None if bound is None else bound + outward * abs(bound) / (1 << 23)


def _date_cast(bound: Fraction, kind: Kind) -> Fraction:
    return Fraction((bound / MICROSECONDS_OF_DAY).__floor__()) if kind is Kind.DATE else bound * MICROSECONDS_OF_DAY


def _widens(inner: Domain, type_: Type) -> bool:
    """Whether no value can fail the cast."""
    if type_.kind in (Kind.TEXT, Kind.DOUBLE):
        return inner.type.kind is not Kind.TEXT or type_.kind is Kind.TEXT
    if type_.is_integer and inner.type.is_number and inner.bounded:
        least, most = integer_range(type_)
        return least <= inner.bounds[0] and inner.bounds[1] <= most
    return inner.type.is_integer and type_.is_integer and INTEGER_BITS[inner.type.kind] <= INTEGER_BITS[type_.kind]


def _arithmetic(expr: Arithmetic, left: Domain, right: Domain) -> Domain:
    by_zero = expr.op in ("/", "//", "%") and not (right.bounded and not right.bounds[0] <= 0 <= right.bounds[1])
    nullable = left.nullable or right.nullable or by_zero
    result = Domain(expr.type, nullable)
    if not (left.bounded and right.bounded):
        return _type_bounded(replace(result, nullable=True))
    corners = _corners(expr.op, left.bounds, right.bounds)
    if corners is None:
        return _type_bounded(replace(result, nullable=True))
    return _type_bounded(result.with_bounds(min(corners), max(corners)))


def _type_bounded(domain: Domain) -> Domain:
    """Integers that may pass their type's range become NULL there; such bounds are of no use to a sum.

    Neither are those past the largest double.
    """
    if not domain.type.is_integer:
        wide = domain.bounded and max(abs(bound) for bound in domain.bounds) >= MOST_DOUBLE
        return Domain(domain.type, True) if wide else domain
    least, most = integer_range(domain.type)
    if domain.bounded and least <= domain.bounds[0] and domain.bounds[1] <= most:
        return domain
    return Domain(domain.type, True)


def _corners(
    op: str, left: tuple[Fraction, Fraction], right: tuple[Fraction, Fraction]
) -> tuple[Fraction, ...] | None:
    pairs = [(a, b) for a in left for b in right]
    match op:
        case "+":
            return tuple(a + b for a, b in pairs)
        case "-":
            return tuple(a - b for a, b in pairs)
        case "*":
            return tuple(a * b for a, b in pairs)
        case "%":
            most = max(abs(right[0]), abs(right[1])) - 1  # whole numbers only
            return (min(Fraction(0), max(left[0], -most)), max(Fraction(0), min(left[1], most)))
        case "/" | "//":
            if right[0] <= 0 <= right[1]:
                return None
            quotients = tuple(a / b for a, b in pairs)
            return tuple(Fraction(int(q)) for q in quotients) if op == "//" else quotients
    raise ValueError(f"no such operator: {op}")


def _call(expr: Call, args: tuple[Domain, ...]) -> Domain:
    nullable = any(arg.nullable for arg in args)
    match expr.function:
        case "coalesce":
            return replace(hull(args, expr.type), nullable=all(arg.nullable for arg in args))
        case "nullif":
            return replace(args[0], nullable=True)
        case "greatest" | "least":
            return _extreme(expr, args)
        case "finite":
            return replace(args[0], type=expr.type, nullable=args[0].nullable or not args[0].bounded)
        case "abs":
            return _monotone(args[0], expr.type, abs, around_zero=True)
        case "floor" | "ceil":
            return _monotone(args[0], expr.type, _ROUNDINGS[expr.function])
        case "round":
            return _round(expr, args)
        case "length":
            most = args[0].length
            return Domain(expr.type, nullable, Fraction(0), None if most is None else Fraction(most))
        case "extract":
            assert isinstance(expr.args[0], Literal)
            lower, upper = extract_bounds(str(expr.args[0].value), args[1])
            return Domain(expr.type, nullable, lower, upper)
        case "date_trunc":
            assert isinstance(expr.args[0], Literal)
            return truncated_values(str(expr.args[0].value), args[1], expr.type, MOST_VALUES)
        case "lower" | "upper" | "trim":
            return _mapped(args[0], _TEXT[expr.function])
        case _:
            return Domain(expr.type, nullable or expr.function == "substring", length=_length(args))


_ROUNDINGS: dict[str, Callable[[Fraction], Fraction]] = {
    "floor": lambda x: Fraction(x.__floor__()),
    "ceil": lambda x: Fraction(x.__ceil__()),
}
_TEXT: dict[str, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper, "trim": lambda s: s.strip(" ")}


def _mapped(arg: Domain, function: Callable[[str], str]) -> Domain:
    """Finite sets of ASCII text only: there Python's letters and every engine's agree."""
    length = None if arg.length is None else GROWTH * arg.length
    if arg.values is None or not all(isinstance(value, str) and value.isascii() for value in arg.values):
        return Domain(arg.type, arg.nullable, length=length)
    values = tuple(dict.fromkeys(function(str(value)) for value in arg.values))
    return Domain(arg.type, arg.nullable, values=values, length=length)


def _length(args: tuple[Domain, ...]) -> int | None:
    """Characters of all text arguments together: concatenation is the only function that adds up."""
    lengths = [arg.length for arg in args if arg.type == TEXT]
    return None if None in lengths else sum(length for length in lengths if length is not None)


def _monotone(
    arg: Domain, type_: Type, function: Callable[[Fraction], Fraction], around_zero: bool = False
) -> Domain:
    if not arg.bounded:
        return _type_bounded(Domain(type_, arg.nullable, Fraction(0) if around_zero else None))
    corners = [function(bound) for bound in arg.bounds]
    if around_zero and arg.bounds[0] <= 0 <= arg.bounds[1]:
        corners.append(Fraction(0))
    return Domain(type_, arg.nullable, min(corners), max(corners))


def _round(expr: Call, args: tuple[Domain, ...]) -> Domain:
    digits = 0
    if len(expr.args) == 2:
        assert isinstance(expr.args[1], Literal)
        digits = int(str(expr.args[1].value))
    step = Fraction(1, 10**digits) if digits >= 0 else Fraction(10**-digits)
    if not args[0].bounded:
        return Domain(expr.type, args[0].nullable)
    lower, upper = args[0].bounds
    return Domain(expr.type, args[0].nullable, (lower / step).__floor__() * step, (upper / step).__ceil__() * step)


def _extreme(expr: Call, args: tuple[Domain, ...]) -> Domain:
    """GREATEST and LEAST skip NULL, so the result may be any argument; those that are never NULL bound it."""
    union = replace(hull(args, expr.type), values=None, nullable=all(arg.nullable for arg in args))
    sure = tuple(arg for arg in args if not arg.nullable)
    if expr.function == "greatest":
        lowers = [arg.lower for arg in sure if arg.lower is not None]
        return union.with_bounds(max(lowers) if lowers else union.lower, union.upper)
    uppers = [arg.upper for arg in sure if arg.upper is not None]
    return union.with_bounds(union.lower, min(uppers) if uppers else union.upper)
