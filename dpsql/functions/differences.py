"""Differences of moments, which are intervals: whole microseconds, in which a comparison of intervals is exact.

PostgreSQL compares intervals as days of 24 hours and months of 30 days, so their order is that of these numbers.
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.functions.calendar import FIXED_UNITS, DAY_MICROSECONDS
from dpsql.functions.record import Domains, Signature, ScalarFunction, Types, text_argument
from dpsql.functions.rules import has_nullable
from dpsql.plan.expr import Call
from dpsql.schema.domain import Domain
from dpsql.types import BIGINT, DATE, DOUBLE, MICROSECOND_INTERVAL, TIMESTAMP

MONTH_MICROSECONDS = 30 * DAY_MICROSECONDS

DIFFERENCE_PARTS = ("day", "hour", "minute", "second")
_PARTS_PER_UNIT = {"hour": 24, "minute": 60, "second": 60}


def _difference_signature(types: Types) -> Signature | None:
    if not all(type_.is_time for type_ in types) or all(type_ == DATE for type_ in types):
        return None
    return Signature((TIMESTAMP, TIMESTAMP), MICROSECOND_INTERVAL)


def _difference_domain(call: Call, args: Domains) -> Domain:
    end, start = args
    if not (end.is_bounded and start.is_bounded):
        return Domain(MICROSECOND_INTERVAL, has_nullable(args))
    return Domain(MICROSECOND_INTERVAL, has_nullable(args), end.bounds[0] - start.bounds[1], end.bounds[1] - start.bounds[0])


def _render_difference(call: Call, args: list[str]) -> str:
    return f"date_diff('microsecond', {args[1]}, {args[0]})"


# --- ages ------------------------------------------------------------------------------------------------------------


def _age_signature(types: Types) -> Signature | None:
    return Signature((TIMESTAMP, TIMESTAMP), MICROSECOND_INTERVAL) if all(type_.is_time for type_ in types) else None


def _age_domain(call: Call, args: Domains) -> Domain:
    return Domain(MICROSECOND_INTERVAL, has_nullable(args))


def _render_age(call: Call, args: list[str]) -> str:
    """Part by part: the engine's own sum of them takes a year for 365.25 days."""
    age = f"age({args[0]}, {args[1]})"
    sizes = (("year", 12 * MONTH_MICROSECONDS), ("month", MONTH_MICROSECONDS), ("day", DAY_MICROSECONDS), ("hour", FIXED_UNITS["hour"]),
             ("minute", FIXED_UNITS["minute"]), ("microsecond", 1))  # fmt: skip
    return "(" + " + ".join(f"CAST(date_part('{part}', {age}) AS BIGINT) * {size}" for part, size in sizes) + ")"


# --- parts -----------------------------------------------------------------------------------------------------------


def _span_seconds_signature(types: Types) -> Signature | None:
    return Signature(types, DOUBLE) if types[0].is_microsecond_interval else None


def _span_seconds_domain(call: Call, args: Domains) -> Domain:
    if not args[0].is_bounded:
        return Domain(DOUBLE, args[0].nullable)
    lower, upper = args[0].bounds
    return Domain(DOUBLE, args[0].nullable, lower / 1_000_000, upper / 1_000_000)


def _render_span_seconds(call: Call, args: list[str]) -> str:
    return f"(CAST({args[0]} AS DOUBLE) / CAST('1000000.0' AS DOUBLE))"


def _span_part_signature(types: Types) -> Signature | None:
    return Signature(types, BIGINT) if types[1].is_microsecond_interval else None


def _check_span_part(call: Call) -> str | None:
    return None if text_argument(call, 0) in DIFFERENCE_PARTS else f'"{text_argument(call, 0)}" is no part of a difference'


def _render_span_part(call: Call, args: list[str]) -> str:
    """Toward zero, so that all parts have the sign of the difference."""
    part = text_argument(call, 0)
    units = f"({args[1]} // CAST({FIXED_UNITS[part]} AS BIGINT))"
    return f"({units} % CAST({_PARTS_PER_UNIT[part]} AS BIGINT))" if part in _PARTS_PER_UNIT else units


def _span_part_domain(call: Call, args: Domains) -> Domain:
    part, span = text_argument(call, 0), args[1]
    lower, upper = (None if b is None else Fraction(int(b / FIXED_UNITS[part])) for b in (span.lower, span.upper))
    if part in _PARTS_PER_UNIT:
        largest = Fraction(_PARTS_PER_UNIT[part] - 1)
        lower = -largest if lower is None else max(min(lower, Fraction(0)), -largest)
        upper = largest if upper is None else min(max(upper, Fraction(0)), largest)
    return Domain(BIGINT, span.nullable, lower, upper)


DIFFERENCE_FUNCTIONS = (
    ScalarFunction("difference", "now() - at", _difference_signature, _difference_domain, _render_difference, 2, 2, written=False),
    ScalarFunction("age_span", "age(CURRENT_DATE, at) > INTERVAL '1 year'", _age_signature, _age_domain, _render_age, 2, 2,
             written=False),
    ScalarFunction("span_seconds", "", _span_seconds_signature, _span_seconds_domain, _render_span_seconds, written=False),
    ScalarFunction("span_part", "extract(hour FROM (now() - at))", _span_part_signature, _span_part_domain, _render_span_part, 2, 2, frozenset({0}),
             _check_span_part, written=False),
)  # fmt: skip
