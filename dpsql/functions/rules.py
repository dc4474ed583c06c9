"""Domains of results, as the functions' records share them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from dpsql.schema.domain import EPOCH, Domain, Scalar, to_number
from dpsql.types import Kind, Type, integer_range

MOST_VALUES = 10_000
"""Finite sets larger than this are kept as bounds only."""

MOST_UNITED = 1_000
"""Whole numbers or days of a range that is united with others value by value."""

FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31

MOST_DOUBLE = 2**1000


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


def union(domains: tuple[Domain, ...], type_: Type) -> Domain:
    """The same for rows that a condition keeps: the values themselves, where that says more than the bounds around."""
    together = hull(domains, type_)
    listed = [every_value(domain, MOST_UNITED) for domain in domains]
    if together.values is not None or None in listed:
        return together
    values = tuple(dict.fromkeys(value for some in listed if some is not None for value in some))
    lower, upper = together.bounds
    return replace(together, values=values) if len(values) < upper - lower + 1 else together


def every_value(domain: Domain, most: int) -> tuple[Scalar, ...] | None:
    """The values of a domain, or the whole numbers or days between its bounds; None where there are more, or no end."""
    if domain.values is not None:
        return domain.values if len(domain.values) <= most else None
    if not domain.bounded or not (domain.type.is_integer or domain.type.kind is Kind.DATE):
        return None
    first, last = domain.bounds[0].__ceil__(), domain.bounds[1].__floor__()
    if last - first >= most:
        return None
    if domain.type.is_integer:
        return tuple(range(first, last + 1))
    if not FIRST_DAY <= first <= last <= LAST_DAY:
        return None
    return tuple(EPOCH.date() + dt.timedelta(days=number) for number in range(first, last + 1))


def merge_values(first: tuple[Scalar, ...], second: tuple[Scalar, ...]) -> tuple[Scalar, ...] | None:
    merged = tuple(dict.fromkeys(first + second))
    return merged if len(merged) <= MOST_VALUES else None


def replace_values(domain: Domain, found: tuple[Scalar | None, ...]) -> Domain:
    """The domain with exactly these values; NULL among them makes it nullable."""
    values = tuple(value for value in found if value is not None)
    nullable = None in found
    if not values or not (domain.type.is_number or domain.type.is_time):
        return replace(domain, nullable=nullable, values=values)
    numbers = [to_number(value) for value in values]
    return replace(domain, nullable=nullable, values=values, lower=min(numbers), upper=max(numbers))


def nullable(args: tuple[Domain, ...]) -> bool:
    return any(arg.nullable for arg in args)


def type_bounded(domain: Domain) -> Domain:
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


def outward(lower: float, upper: float) -> tuple[Fraction, Fraction] | None:
    """Bounds around results that a library computed; a few units in the last place are its to err."""
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return None
    low, high = Fraction(lower), Fraction(upper)
    tiny = Fraction(1, 2**1000)
    return low - abs(low) / 2**45 - tiny, high + abs(high) / 2**45 + tiny


def through(arg: Domain, function: Callable[[float], float], least: float, most: float, type_: Type) -> Domain:
    """What an increasing function makes of [least, most]; what lies outside is NULL.

    Never without NULL: a double may have been rounded past its bounds on the way.
    """
    unknown = Domain(type_, True)
    if not arg.bounded:
        return unknown
    low, high = max(arg.bounds[0], Fraction(least)), min(arg.bounds[1], Fraction(most))
    if low > high:
        return Domain(type_, True, values=())
    try:
        bounds = outward(function(float(low)), function(float(high)))
    except (OverflowError, ValueError):
        return unknown
    return unknown if bounds is None else Domain(type_, True, *bounds)
