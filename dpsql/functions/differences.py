"""Differences of moments, which are intervals: whole microseconds, in which a comparison of intervals is exact.

PostgreSQL compares intervals as days of 24 hours and months of 30 days, so their order is that of these numbers.
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.functions.calendar import FIXED, MICROSECONDS
from dpsql.functions.record import Domains, Fit, Function, Types, text_of
from dpsql.functions.rules import nullable
from dpsql.plan.expr import Call
from dpsql.schema.domain import Domain
from dpsql.types import BIGINT, DATE, DOUBLE, SPAN, TIMESTAMP

MONTH = 30 * MICROSECONDS

PARTS = ("day", "hour", "minute", "second")
_WITHIN = {"hour": 24, "minute": 60, "second": 60}


def _times(types: Types) -> Fit | None:
    if not all(type_.is_time for type_ in types) or all(type_ == DATE for type_ in types):
        return None
    return Fit((TIMESTAMP, TIMESTAMP), SPAN)


def _difference_domain(call: Call, args: Domains) -> Domain:
    end, start = args
    if not (end.bounded and start.bounded):
        return Domain(SPAN, nullable(args))
    return Domain(SPAN, nullable(args), end.bounds[0] - start.bounds[1], end.bounds[1] - start.bounds[0])


def _difference_form(call: Call, args: list[str]) -> str:
    return f"date_diff('microsecond', {args[1]}, {args[0]})"


# --- ages ------------------------------------------------------------------------------------------------------------


def _age_fit(types: Types) -> Fit | None:
    return Fit((TIMESTAMP, TIMESTAMP), SPAN) if all(type_.is_time for type_ in types) else None


def _age_domain(call: Call, args: Domains) -> Domain:
    return Domain(SPAN, nullable(args))


def _age_form(call: Call, args: list[str]) -> str:
    """Part by part: the engine's own sum of them takes a year for 365.25 days."""
    age = f"age({args[0]}, {args[1]})"
    sizes = (("year", 12 * MONTH), ("month", MONTH), ("day", MICROSECONDS), ("hour", FIXED["hour"]),
             ("minute", FIXED["minute"]), ("microsecond", 1))  # fmt: skip
    return "(" + " + ".join(f"CAST(date_part('{part}', {age}) AS BIGINT) * {size}" for part, size in sizes) + ")"


# --- parts -----------------------------------------------------------------------------------------------------------


def _seconds_fit(types: Types) -> Fit | None:
    return Fit(types, DOUBLE) if types[0].is_span else None


def _seconds_domain(call: Call, args: Domains) -> Domain:
    if not args[0].bounded:
        return Domain(DOUBLE, args[0].nullable)
    lower, upper = args[0].bounds
    return Domain(DOUBLE, args[0].nullable, lower / 1_000_000, upper / 1_000_000)


def _seconds_form(call: Call, args: list[str]) -> str:
    return f"(CAST({args[0]} AS DOUBLE) / CAST('1000000.0' AS DOUBLE))"


def _part_fit(types: Types) -> Fit | None:
    return Fit(types, BIGINT) if types[1].is_span else None


def _check_part(call: Call) -> str | None:
    return None if text_of(call, 0) in PARTS else f'"{text_of(call, 0)}" is no part of a difference'


def _part_form(call: Call, args: list[str]) -> str:
    """Toward zero, so that all parts have the sign of the difference."""
    part = text_of(call, 0)
    whole = f"({args[1]} // CAST({FIXED[part]} AS BIGINT))"
    return f"({whole} % CAST({_WITHIN[part]} AS BIGINT))" if part in _WITHIN else whole


def _part_domain(call: Call, args: Domains) -> Domain:
    part, span = text_of(call, 0), args[1]
    lower, upper = (None if b is None else Fraction(int(b / FIXED[part])) for b in (span.lower, span.upper))
    if part in _WITHIN:
        most = Fraction(_WITHIN[part] - 1)
        lower = -most if lower is None else max(min(lower, Fraction(0)), -most)
        upper = most if upper is None else min(max(upper, Fraction(0)), most)
    return Domain(BIGINT, span.nullable, lower, upper)


DIFFERENCES = (
    Function("difference", "now() - at", _times, _difference_domain, _difference_form, 2, 2, written=False),
    Function("age_span", "age(CURRENT_DATE, at) > INTERVAL '1 year'", _age_fit, _age_domain, _age_form, 2, 2,
             written=False),
    Function("span_seconds", "", _seconds_fit, _seconds_domain, _seconds_form, written=False),
    Function("span_part", "extract(hour FROM (now() - at))", _part_fit, _part_domain, _part_form, 2, 2, frozenset({0}),
             _check_part, written=False),
)  # fmt: skip
