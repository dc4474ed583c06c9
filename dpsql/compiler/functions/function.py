"""The record of a scalar function: arguments, types, result domain, and a form per engine that cannot raise.

A form is total for every value of its arguments' types, also where an engine works it out for rows that a guard around
it is about to drop: no part of it raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import prod

from dpsql.compiler.plan.expressions import Call, Expr, Literal
from dpsql.schema.model import Domain, Scalar, to_number
from dpsql.types import Kind, Type, integer_range

# Domains of results, as the functions' records share them.

MAX_VALUES = 10_000
"""Finite sets larger than this are kept as bounds only."""

MAX_UNITED_VALUES = 1_000
"""Whole numbers or days of a range that is united with others value by value."""

MAX_DOUBLE = 2**1000


def hull_of_domains(domains: tuple[Domain, ...], type_: Type) -> Domain:
    """The domain of "one of these"."""
    nullable = any(domain.nullable for domain in domains)
    non_empty = tuple(domain for domain in domains if domain.values != ())
    lowers, uppers = [d.lower for d in non_empty], [d.upper for d in non_empty]
    lower = None if None in lowers or not non_empty else min(x for x in lowers if x is not None)
    upper = None if None in uppers or not non_empty else max(x for x in uppers if x is not None)
    values: tuple[Scalar, ...] | None = ()
    for domain in non_empty:
        values = None if values is None or domain.values is None else merge_values(values, domain.values)
    lengths = [domain.length for domain in non_empty]
    length = None if None in lengths or not non_empty else max(x for x in lengths if x is not None)
    exact = all(domain.exact for domain in domains)
    return Domain(type_, nullable, lower, upper, values, length, exact)


def union_of_domains(domains: tuple[Domain, ...], type_: Type) -> Domain:
    """The same for rows that a condition keeps: the values themselves, where that says more than the bounds around."""
    combined = hull_of_domains(domains, type_)
    listed = [domain.list_values(MAX_UNITED_VALUES) for domain in domains]
    if combined.values is not None or None in listed:
        return combined
    values = tuple(
        dict.fromkeys(
            value for values_of_domain in listed if values_of_domain is not None for value in values_of_domain
        )
    )
    lower, upper = combined.bounds
    return replace(combined, values=values) if len(values) < upper - lower + 1 else combined


def merge_values(first: tuple[Scalar, ...], second: tuple[Scalar, ...]) -> tuple[Scalar, ...] | None:
    merged = tuple(dict.fromkeys(first + second))
    return merged if len(merged) <= MAX_VALUES else None


def replace_values(domain: Domain, results: tuple[Scalar | None, ...]) -> Domain:
    """The domain with exactly these values; NULL among them makes it nullable."""
    values = tuple(value for value in results if value is not None)
    nullable = None in results
    if not values or not (domain.type.is_number or domain.type.is_time):
        return replace(domain, nullable=nullable, values=values)
    numbers = [to_number(value) for value in values]
    return replace(domain, nullable=nullable, values=values, lower=min(numbers), upper=max(numbers))


def has_nullable(args: tuple[Domain, ...]) -> bool:
    return any(arg.nullable for arg in args)


def limit_to_type(domain: Domain) -> Domain:
    """Integers that may pass their type's range become NULL there; such bounds are of no use to a sum.

    Neither are those past the largest double.
    """
    if not domain.type.is_integer:
        wide = domain.is_bounded and max(abs(bound) for bound in domain.bounds) >= MAX_DOUBLE
        return Domain(domain.type, True) if wide else domain
    lowest, highest = integer_range(domain.type)
    if domain.is_bounded and lowest <= domain.bounds[0] and domain.bounds[1] <= highest:
        return domain
    return Domain(domain.type, True)


def widen_bounds(lower: float, upper: float) -> tuple[Fraction, Fraction] | None:
    """Bounds around results that a library computed; a few units in the last place are its to err."""
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return None
    low, high = Fraction(lower), Fraction(upper)
    tiny = Fraction(1, 2**1000)
    return low - abs(low) / 2**45 - tiny, high + abs(high) / 2**45 + tiny


def map_increasing(
    arg: Domain, function: Callable[[float], float], lowest: float, highest: float, type_: Type
) -> Domain:
    """What an increasing function makes of [least, most]; what lies outside is NULL.

    Never without NULL: a double may have been rounded past its bounds on the way.
    """
    unknown = Domain(type_, True)
    if not arg.is_bounded:
        return unknown
    low, high = max(arg.bounds[0], Fraction(lowest)), min(arg.bounds[1], Fraction(highest))
    if low > high:
        return Domain(type_, True, values=())
    try:
        bounds = widen_bounds(function(float(low)), function(float(high)))
    except (OverflowError, ValueError):
        return unknown
    return unknown if bounds is None else Domain(type_, True, *bounds)


Types = tuple[Type, ...]
Domains = tuple[Domain, ...]
Value = Scalar | None
SqlRenderer = Callable[[Call, list[str]], str]

MAX_EVALUATED = 1_000
"""Combinations of argument values for which a result is worked out one by one."""


class NotEvaluable(Exception):
    """Python and the engines may differ here, so the value is left to the engine."""


@dataclass(frozen=True)
class Signature:
    """The types as which arguments are read, and the type of the result."""

    args: Types
    result: Type


@dataclass(frozen=True)
class ScalarFunction:
    name: str
    example: str
    fit: Callable[[Types], Signature | None]  # None: these arguments do not fit
    domain: Callable[[Call, Domains], Domain]
    duckdb: SqlRenderer
    least: int = 1
    most: int = 1
    # Arguments that must be literals: patterns, lengths and parts, which would raise or run away on some values.
    literals: frozenset[int] = frozenset()
    check: Callable[[Call], str | None] = lambda call: None  # what is wrong with the literals
    evaluate: Callable[[Call, list[Value]], Value] | None = None  # only where Python and every engine agree
    doubles: bool = False  # whether that holds for doubles too
    meets: bool = False  # arguments become one type first
    shorter: Callable[[Call], Expr] = lambda call: call  # the same without the call, where it does nothing
    written: bool = True  # whether analysts may write it by this name

    def can_evaluate(self, types: Types) -> bool:
        """Whether Python may work out results of such arguments."""
        inexact = any(type_.kind is Kind.DECIMAL or (type_.is_float and not self.doubles) for type_ in types)
        return self.evaluate is not None and not inexact


def literal_argument(call: Call, index: int) -> Value:
    """The value of a literal argument; None where it is left out."""
    if index >= len(call.args):
        return None
    argument = call.args[index]
    assert isinstance(argument, Literal)
    return argument.value


def text_argument(call: Call, index: int) -> str:
    return str(literal_argument(call, index))


def integer_argument(call: Call, index: int) -> int:
    value = literal_argument(call, index)
    assert isinstance(value, int)
    return value


def quote_text(value: str) -> str:
    """Text that a form writes itself."""
    return "'" + value.replace("'", "''") + "'"


def domain_of_call(function: ScalarFunction, call: Call, args: Domains) -> Domain:
    """What the function claims; where all arguments have few values, the results themselves."""
    claimed = function.domain(call, args)
    options = [(*arg.values, *((None,) if arg.nullable else ())) for arg in args if arg.values is not None]
    if function.evaluate is None or len(options) < len(args) or prod(map(len, options)) > MAX_EVALUATED:
        return claimed
    if not function.can_evaluate(tuple(arg.type for arg in args)):
        return claimed
    try:
        results = tuple(dict.fromkeys(function.evaluate(call, list(row)) for row in product(*options)))
    except NotEvaluable:
        return claimed
    return replace_values(claimed, results)
