"""Domains of results, as the functions' records share them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from dpsql.schema.domain import EPOCH, Domain, Scalar, to_number
from dpsql.types import Kind, Type, integer_range

MAX_VALUES = 10_000
"""Finite sets larger than this are kept as bounds only."""

MAX_UNITED_VALUES = 1_000
"""Whole numbers or days of a range that is united with others value by value."""

FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31

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
    listed = [enumerate_values(domain, MAX_UNITED_VALUES) for domain in domains]
    if combined.values is not None or None in listed:
        return combined
    values = tuple(dict.fromkeys(value for values_of_domain in listed if values_of_domain is not None for value in values_of_domain))
    lower, upper = combined.bounds
    return replace(combined, values=values) if len(values) < upper - lower + 1 else combined


def enumerate_values(domain: Domain, max_values: int) -> tuple[Scalar, ...] | None:
    """The values of a domain, or the whole numbers or days between its bounds; None where there are more, or no end."""
    if domain.values is not None:
        return domain.values if len(domain.values) <= max_values else None
    if not domain.is_bounded or not (domain.type.is_integer or domain.type.kind is Kind.DATE):
        return None
    first, last = domain.bounds[0].__ceil__(), domain.bounds[1].__floor__()
    if last - first >= max_values:
        return None
    if domain.type.is_integer:
        return tuple(range(first, last + 1))
    if not FIRST_DAY <= first <= last <= LAST_DAY:
        return None
    return tuple(EPOCH.date() + dt.timedelta(days=number) for number in range(first, last + 1))


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


def map_increasing(arg: Domain, function: Callable[[float], float], lowest: float, highest: float, type_: Type) -> Domain:
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
