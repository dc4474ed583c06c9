"""Spans of time: adding them, and counting them between two moments.

An interval is three whole numbers: months, days, microseconds. They are added in that order, as engines do.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dpsql.functions.calendar import (
    FIRST_DAY,
    FIRST_MODERN,
    FIXED,
    LAST_DAY,
    MICROSECONDS,
    MONTHS,
    TRUNCATIONS,
    add_months,
    ends,
    extract,
    truncate,
)
from dpsql.functions.dates import in_calendar
from dpsql.functions.record import (
    Domains,
    Fit,
    Function,
    NotWorkedOut,
    Types,
    Value,
    literal_of,
    text_of,
    whole_of,
)
from dpsql.functions.rules import MOST_VALUES, nullable, replace_values
from dpsql.plan.expr import Call
from dpsql.schema.domain import EPOCH, Domain, Scalar, to_number
from dpsql.types import BIGINT, DATE, DOUBLE, INTEGER, TIMESTAMP, TIMESTAMPTZ

MOST_YEARS = 10_000
MOST_DAYS = 4_000_000  # more than the calendar has

_MONDAY, _NEW_YEAR = dt.datetime(2000, 1, 3), dt.datetime(2000, 1, 1)  # where engines start to count buckets


@dataclass(frozen=True)
class Interval:
    months: int = 0
    days: int = 0
    microseconds: int = 0

    @property
    def fits(self) -> bool:
        return (
            abs(self.months) <= 12 * MOST_YEARS
            and abs(self.days) <= MOST_DAYS
            and abs(self.microseconds) <= MOST_DAYS * MICROSECONDS
        )


def _interval(call: Call, first: int) -> Interval:
    return Interval(*(whole_of(call, first + place) for place in range(3)))


def _check_interval(first: int) -> Callable[[Call], str | None]:
    return lambda call: None if _interval(call, first).fits else f"the interval is longer than {MOST_YEARS} years"


def _span_form(interval: Interval) -> str:
    parts = ((interval.months, "to_months"), (interval.days, "to_days"), (interval.microseconds, "to_microseconds"))
    terms = [f"{name}(CAST({number} AS {'BIGINT' if name == 'to_microseconds' else 'INTEGER'}))"
             for number, name in parts if number]  # fmt: skip
    return " + ".join(terms) or "to_days(CAST(0 AS INTEGER))"


# --- adding ----------------------------------------------------------------------------------------------------------


def _add_fit(types: Types) -> Fit | None:
    if not types[0].is_time:
        return None
    return Fit((types[0], INTEGER, INTEGER, BIGINT), TIMESTAMPTZ if types[0] == TIMESTAMPTZ else TIMESTAMP)


def _add_form(call: Call, args: list[str]) -> str:
    name = "TIMESTAMPTZ" if call.type == TIMESTAMPTZ else "TIMESTAMP"
    return in_calendar(f"(CAST({args[0]} AS {name}) + ({_span_form(_interval(call, 1))}))", call.type)


def _add_domain(call: Call, args: Domains) -> Domain:
    found, interval = ends(args[0]), _interval(call, 1)
    unknown = Domain(call.type, True)
    if args[0].values is not None and call.type == TIMESTAMP:
        return _added_values(args[0], interval)
    if found is None:
        return unknown
    first, last = found
    if interval.months:  # 31 January 01:00 and 30 January 23:00 change places a month later
        first, last = truncate("day", first), truncate("day", last) + dt.timedelta(microseconds=MICROSECONDS - 1)
    try:
        lower, upper = (_added(at, interval) for at in (first, last))
    except OverflowError:
        return unknown
    return Domain(call.type, args[0].nullable, to_number(lower), to_number(upper))


def _added_values(arg: Domain, interval: Interval) -> Domain:
    """Of few moments, such as the starts of weeks, each is known."""
    moments = [dt.datetime(v.year, v.month, v.day) if not isinstance(v, dt.datetime) else v
               for v in arg.values or () if isinstance(v, dt.date)]  # fmt: skip
    try:
        moved = tuple(dict.fromkeys(_added(at, interval) for at in moments))
    except OverflowError:
        return Domain(TIMESTAMP, True)
    return replace_values(Domain(TIMESTAMP, arg.nullable), (*moved, *((None,) if arg.nullable else ())))


def _added(at: dt.datetime, interval: Interval) -> dt.datetime:
    moved = add_months(at, interval.months) if interval.months else at
    return moved + dt.timedelta(days=interval.days, microseconds=interval.microseconds)


def _evaluate_add(call: Call, values: list[Value]) -> Value:
    at, interval = values[0], _interval(call, 1)
    if at is None:
        return None
    assert isinstance(at, dt.date)
    moment = at if isinstance(at, dt.datetime) else dt.datetime(at.year, at.month, at.day)
    zone = moment.tzinfo
    if zone is not None:
        moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
        # With a zone, engines add the parts in another order, and by a calendar that changed in 1582.
        if moment.year < FIRST_MODERN or [interval.months, interval.days, interval.microseconds].count(0) < 2:
            raise NotWorkedOut
    try:
        moved = _added(moment, interval)
    except OverflowError:
        raise NotWorkedOut from None
    if zone is not None and moved.year < FIRST_MODERN:
        raise NotWorkedOut
    return moved if zone is None else moved.replace(tzinfo=dt.UTC)


def _days_fit(types: Types) -> Fit | None:
    return Fit((types[0], BIGINT), types[0]) if types[0].is_time and types[1].is_integer else None


def _days_form(call: Call, args: list[str]) -> str:
    """The remainder keeps the sum within what an engine can hold, for any number."""
    day, days = args
    number = f"CAST({days} % {MOST_DAYS + 1} AS INTEGER)"
    moved = f"({day} + {number if call.type == DATE else f'to_days({number})'})"
    return f"CASE WHEN {days} BETWEEN -{MOST_DAYS} AND {MOST_DAYS} THEN {in_calendar(moved, call.type)} END"


def _days_domain(call: Call, args: Domains) -> Domain:
    day, days = args
    if not (day.bounded and days.bounded):
        return Domain(call.type, True)
    one = 1 if call.type == DATE else MICROSECONDS
    first, last = Fraction(FIRST_DAY * one), Fraction((LAST_DAY + 1) * one - 1)
    lower, upper = day.bounds[0] + days.bounds[0] * one, day.bounds[1] + days.bounds[1] * one
    if lower > last or upper < first:
        return Domain(call.type, True, values=())
    inside = lower >= first and upper <= last
    return Domain(call.type, nullable(args) or not inside, max(lower, first), min(upper, last))


def _evaluate_days(call: Call, values: list[Value]) -> Value:
    day, days = values
    if day is None or days is None:
        return None
    assert isinstance(day, dt.date) and isinstance(days, int)
    try:
        return day + dt.timedelta(days=days)
    except OverflowError:
        return None


# --- between two moments ---------------------------------------------------------------------------------------------


def _between_fit(types: Types) -> Fit | None:
    _, start, end = types
    if not (start.is_time and end.is_time):
        return None
    read = DATE if start == end == DATE else TIMESTAMP
    return Fit((types[0], read, read), BIGINT)


def _check_unit(call: Call) -> str | None:
    return None if text_of(call, 0) in TRUNCATIONS else f'there is no unit "{text_of(call, 0)}"'


def _between_form(call: Call, args: list[str]) -> str:
    return f"{call.function}({', '.join(args)})"


def _between_domain(call: Call, args: Domains) -> Domain:
    """Boundaries crossed, or whole units: at most one more than the time between."""
    _, start, end = args
    one, other = ends(start), ends(end)
    if one is None or other is None:
        return Domain(BIGINT, nullable(args))
    unit = text_of(call, 0)
    if unit in MONTHS:
        numbers = [extract("year", at) * 12 + at.month for at in (*one, *other)]
        size = MONTHS[unit]
    else:
        numbers = [(at - EPOCH) // dt.timedelta(microseconds=1) for at in (*one, *other)]
        size = FIXED[unit]
    least, most = numbers[2] - numbers[1], numbers[3] - numbers[0]
    return Domain(BIGINT, nullable(args), Fraction(least // size - 1), Fraction(-(-most // size) + 1))


def _seconds_fit(types: Types) -> Fit | None:
    return Fit((TIMESTAMP, TIMESTAMP), DOUBLE) if all(type_.is_time for type_ in types) else None


def _seconds_form(call: Call, args: list[str]) -> str:
    return f"(CAST(date_diff('microsecond', {args[1]}, {args[0]}) AS DOUBLE) / CAST('1000000.0' AS DOUBLE))"


def _seconds_domain(call: Call, args: Domains) -> Domain:
    end, start = args
    if not (end.bounded and start.bounded):
        return Domain(DOUBLE, nullable(args))
    bounds = end.bounds[0] - start.bounds[1], end.bounds[1] - start.bounds[0]
    return Domain(DOUBLE, nullable(args), bounds[0] / 1_000_000, bounds[1] / 1_000_000)


def _age_fit(types: Types) -> Fit | None:
    return Fit((types[0], TIMESTAMP, TIMESTAMP), BIGINT) if types[1].is_time and types[2].is_time else None


def _check_age(call: Call) -> str | None:
    return None if text_of(call, 0) in ("year", "month") else "only the year and the month of an age are answered"


def _age_form(call: Call, args: list[str]) -> str:
    return f"CAST(date_part({args[0]}, age({args[1]}, {args[2]})) AS BIGINT)"


def _age_domain(call: Call, args: Domains) -> Domain:
    _, end, start = args
    if text_of(call, 0) == "month":
        return Domain(BIGINT, nullable(args), Fraction(-11), Fraction(11))
    one, other = ends(start), ends(end)
    if one is None or other is None:
        return Domain(BIGINT, nullable(args))
    least, most = other[0].year - one[1].year, other[1].year - one[0].year
    return Domain(BIGINT, nullable(args), Fraction(least - 1 if least > 0 else least), Fraction(max(most, 0)))


# --- buckets ---------------------------------------------------------------------------------------------------------


def _bucket_fit(types: Types) -> Fit | None:
    if not all(type_.is_time for type_ in types[3:]):
        return None
    return Fit((INTEGER, INTEGER, BIGINT, *(TIMESTAMP,) * len(types[3:])), TIMESTAMP)


def _check_bucket(call: Call) -> str | None:
    interval = _interval(call, 0)
    width = interval.days * MICROSECONDS + interval.microseconds
    if not interval.fits or min(interval.months, width) < 0 or bool(interval.months) == bool(width):
        return "the width of time_bucket is in months, or in days and less, and above 0"
    if len(call.args) == 5 and (interval.months or literal_of(call, 4) is None):
        return "buckets that begin at a moment are days or less wide"
    return None


def _bucket_form(call: Call, args: list[str]) -> str:
    return in_calendar(f"time_bucket({_span_form(_interval(call, 0))}, {', '.join(args[3:])})", TIMESTAMP)


def _bucket_domain(call: Call, args: Domains) -> Domain:
    found, interval = ends(args[3]), _interval(call, 0)
    unknown = Domain(TIMESTAMP, True)
    if found is None:
        return unknown
    values: list[Scalar] = []
    try:
        origin = literal_of(call, 4)
        at = _bucket(found[0], interval, origin if isinstance(origin, dt.datetime) else _MONDAY)
        while at <= found[1]:
            values.append(at)
            if len(values) > MOST_VALUES:
                return unknown
            at = _added(at, interval)
    except OverflowError:
        return unknown
    return replace_values(Domain(TIMESTAMP), (*values, *((None,) if args[3].nullable else ())))


def _bucket(at: dt.datetime, interval: Interval, origin: dt.datetime) -> dt.datetime:
    if interval.months:
        months = (at.year - _NEW_YEAR.year) * 12 + at.month - 1
        return add_months(_NEW_YEAR, months // interval.months * interval.months)
    width = dt.timedelta(days=interval.days, microseconds=interval.microseconds)
    return origin + (at - origin) // width * width


SPANS = (
    Function("add_interval", "at + INTERVAL '1 month'", _add_fit, _add_domain, _add_form, 4, 4,
             frozenset({1, 2, 3}), _check_interval(1), _evaluate_add, written=False),
    Function("add_days", "born + 7", _days_fit, _days_domain, _days_form, 2, 2, evaluate=_evaluate_days,
             written=False),
    Function("date_diff", "date_diff('day', at, CURRENT_DATE)", _between_fit, _between_domain, _between_form, 3, 3,
             frozenset({0}), _check_unit),
    Function("date_sub", "date_sub('month', at, CURRENT_DATE)", _between_fit, _between_domain, _between_form, 3, 3,
             frozenset({0}), _check_unit),
    Function("seconds_between", "extract(epoch FROM (now() - at))", _seconds_fit, _seconds_domain, _seconds_form, 2, 2,
             written=False),
    Function("age", "extract(year FROM age(CURRENT_DATE, at))", _age_fit, _age_domain, _age_form, 3, 3,
             frozenset({0}), _check_age, written=False),
    Function("time_bucket", "time_bucket(INTERVAL '15 minutes', at)", _bucket_fit, _bucket_domain, _bucket_form, 4, 5,
             frozenset({0, 1, 2, 4}), _check_bucket),
)  # fmt: skip
