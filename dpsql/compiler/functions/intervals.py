"""Intervals: adding them to times, and counting them between two times.

An interval is three whole numbers: months, days, microseconds. They are added in that order, as engines do.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from fractions import Fraction

from dpsql.base.intervals import MICROSECONDS_PER_DAY, IntervalParts
from dpsql.compiler.functions.calendar import (
    FIRST_MODERN_YEAR,
    FIXED_UNITS,
    MONTHS_PER_UNIT,
    TRUNCATIONS,
    add_months,
    datetime_bounds,
    extract_part,
    truncate_datetime,
)
from dpsql.compiler.functions.datetime import null_outside_calendar
from dpsql.compiler.functions.function import (
    MAX_VALUES,
    Domains,
    NotEvaluable,
    ScalarFunction,
    Signature,
    Types,
    Value,
    has_nullable,
    integer_argument,
    literal_argument,
    replace_values,
    text_argument,
)
from dpsql.compiler.plan.expressions import Call
from dpsql.schema.model import EPOCH, FIRST_DAY, LAST_DAY, Domain, Scalar, to_number
from dpsql.types import BIGINT, DATE, DOUBLE, INTEGER, TIMESTAMP, TIMESTAMPTZ

MAX_YEARS = 10_000
MAX_DAYS = 4_000_000  # more than the calendar has

_MONDAY, _NEW_YEAR = dt.datetime(2000, 1, 3), dt.datetime(2000, 1, 1)  # where engines start to count buckets


def is_interval_in_range(interval: IntervalParts) -> bool:
    return (
        abs(interval.months) <= 12 * MAX_YEARS
        and abs(interval.days) <= MAX_DAYS
        and abs(interval.microseconds) <= MAX_DAYS * MICROSECONDS_PER_DAY
    )


def _interval_argument(call: Call, first: int) -> IntervalParts:
    return IntervalParts(*(integer_argument(call, first + offset) for offset in range(3)))


def _check_interval(first: int) -> Callable[[Call], str | None]:
    too_long = f"the interval is longer than {MAX_YEARS} years"
    return lambda call: None if is_interval_in_range(_interval_argument(call, first)) else too_long


def _render_interval(interval: IntervalParts) -> str:
    parts = ((interval.months, "to_months"), (interval.days, "to_days"), (interval.microseconds, "to_microseconds"))
    terms = [f"{name}(CAST({number} AS {'BIGINT' if name == 'to_microseconds' else 'INTEGER'}))"
             for number, name in parts if number]  # fmt: skip
    return " + ".join(terms) or "to_days(CAST(0 AS INTEGER))"


# --- adding ----------------------------------------------------------------------------------------------------------


def _add_interval_signature(types: Types) -> Signature | None:
    if not types[0].is_time:
        return None
    return Signature((types[0], INTEGER, INTEGER, BIGINT), TIMESTAMPTZ if types[0] == TIMESTAMPTZ else TIMESTAMP)


def _render_add_interval(call: Call, args: list[str]) -> str:
    name = "TIMESTAMPTZ" if call.type == TIMESTAMPTZ else "TIMESTAMP"
    return null_outside_calendar(
        f"(CAST({args[0]} AS {name}) + ({_render_interval(_interval_argument(call, 1))}))", call.type
    )


def _add_interval_domain(call: Call, args: Domains) -> Domain:
    bounds, interval = datetime_bounds(args[0]), _interval_argument(call, 1)
    unknown = Domain(call.type, True)
    if args[0].values is not None and call.type == TIMESTAMP:
        return _add_to_values(args[0], interval)
    if bounds is None:
        return unknown
    first, last = bounds
    if interval.months:  # 31 January 01:00 and 30 January 23:00 change places a month later
        first, last = (
            truncate_datetime("day", first),
            truncate_datetime("day", last) + dt.timedelta(microseconds=MICROSECONDS_PER_DAY - 1),
        )
    try:
        lower, upper = (_add_to_datetime(at, interval) for at in (first, last))
    except OverflowError:
        return unknown
    return Domain(call.type, args[0].nullable, to_number(lower), to_number(upper))


def _add_to_values(arg: Domain, interval: IntervalParts) -> Domain:
    """The domain of a sum where the times are listed, such as the starts of weeks: each is moved."""
    timestamps = [dt.datetime(v.year, v.month, v.day) if not isinstance(v, dt.datetime) else v
               for v in arg.values or () if isinstance(v, dt.date)]  # fmt: skip
    try:
        moved = tuple(dict.fromkeys(_add_to_datetime(at, interval) for at in timestamps))
    except OverflowError:
        return Domain(TIMESTAMP, True)
    return replace_values(Domain(TIMESTAMP, arg.nullable), (*moved, *((None,) if arg.nullable else ())))


def _add_to_datetime(at: dt.datetime, interval: IntervalParts) -> dt.datetime:
    moved = add_months(at, interval.months) if interval.months else at
    return moved + dt.timedelta(days=interval.days, microseconds=interval.microseconds)


def _evaluate_add_interval(call: Call, values: list[Value]) -> Value:
    at, interval = values[0], _interval_argument(call, 1)
    if at is None:
        return None
    assert isinstance(at, dt.date)
    timestamp = at if isinstance(at, dt.datetime) else dt.datetime(at.year, at.month, at.day)
    zone = timestamp.tzinfo
    if zone is not None:
        timestamp = timestamp.astimezone(dt.UTC).replace(tzinfo=None)
        # With a zone, engines add the parts in another order, and by a calendar that changed in 1582.
        if timestamp.year < FIRST_MODERN_YEAR or [interval.months, interval.days, interval.microseconds].count(0) < 2:
            raise NotEvaluable
    try:
        moved = _add_to_datetime(timestamp, interval)
    except OverflowError:
        raise NotEvaluable from None
    if zone is not None and moved.year < FIRST_MODERN_YEAR:
        raise NotEvaluable
    return moved if zone is None else moved.replace(tzinfo=dt.UTC)


def _add_days_signature(types: Types) -> Signature | None:
    return Signature((types[0], BIGINT), types[0]) if types[0].is_time and types[1].is_integer else None


def _render_add_days(call: Call, args: list[str]) -> str:
    """The remainder keeps the sum within what an engine can hold, for any number."""
    day, days = args
    number = f"CAST({days} % {MAX_DAYS + 1} AS INTEGER)"
    moved = f"({day} + {number if call.type == DATE else f'to_days({number})'})"
    return f"CASE WHEN {days} BETWEEN -{MAX_DAYS} AND {MAX_DAYS} THEN {null_outside_calendar(moved, call.type)} END"


def _add_days_domain(call: Call, args: Domains) -> Domain:
    day, days = args
    if not (day.is_bounded and days.is_bounded):
        return Domain(call.type, True)
    day_steps = 1 if call.type == DATE else MICROSECONDS_PER_DAY
    first, last = Fraction(FIRST_DAY * day_steps), Fraction((LAST_DAY + 1) * day_steps - 1)
    lower, upper = day.bounds[0] + days.bounds[0] * day_steps, day.bounds[1] + days.bounds[1] * day_steps
    if lower > last or upper < first:
        return Domain(call.type, True, values=())
    inside = lower >= first and upper <= last
    return Domain(call.type, has_nullable(args) or not inside, max(lower, first), min(upper, last))


def _evaluate_add_days(call: Call, values: list[Value]) -> Value:
    day, days = values
    if day is None or days is None:
        return None
    assert isinstance(day, dt.date) and isinstance(days, int)
    try:
        return day + dt.timedelta(days=days)
    except OverflowError:
        return None


# --- between two moments ---------------------------------------------------------------------------------------------


def _date_diff_signature(types: Types) -> Signature | None:
    _, start, end = types
    if not (start.is_time and end.is_time):
        return None
    operand_type = DATE if start == end == DATE else TIMESTAMP
    return Signature((types[0], operand_type, operand_type), BIGINT)


def _check_unit(call: Call) -> str | None:
    return None if text_argument(call, 0) in TRUNCATIONS else f'there is no unit "{text_argument(call, 0)}"'


def _render_date_diff(call: Call, args: list[str]) -> str:
    return f"{call.function}({', '.join(args)})"


def _date_diff_domain(call: Call, args: Domains) -> Domain:
    """Boundaries crossed, or whole units: at most one more than the time between."""
    _, start, end = args
    start_bounds, end_bounds = datetime_bounds(start), datetime_bounds(end)
    if start_bounds is None or end_bounds is None:
        return Domain(BIGINT, has_nullable(args))
    unit = text_argument(call, 0)
    if unit in MONTHS_PER_UNIT:
        numbers = [extract_part("year", at) * 12 + at.month for at in (*start_bounds, *end_bounds)]
        size = MONTHS_PER_UNIT[unit]
    else:
        numbers = [(at - EPOCH) // dt.timedelta(microseconds=1) for at in (*start_bounds, *end_bounds)]
        size = FIXED_UNITS[unit]
    lowest, highest = numbers[2] - numbers[1], numbers[3] - numbers[0]
    return Domain(BIGINT, has_nullable(args), Fraction(lowest // size - 1), Fraction(-(-highest // size) + 1))


def _seconds_between_signature(types: Types) -> Signature | None:
    return Signature((TIMESTAMP, TIMESTAMP), DOUBLE) if all(type_.is_time for type_ in types) else None


def _render_seconds_between(call: Call, args: list[str]) -> str:
    return f"(CAST(date_diff('microsecond', {args[1]}, {args[0]}) AS DOUBLE) / CAST('1000000.0' AS DOUBLE))"


def _seconds_between_domain(call: Call, args: Domains) -> Domain:
    end, start = args
    if not (end.is_bounded and start.is_bounded):
        return Domain(DOUBLE, has_nullable(args))
    bounds = end.bounds[0] - start.bounds[1], end.bounds[1] - start.bounds[0]
    return Domain(DOUBLE, has_nullable(args), bounds[0] / 1_000_000, bounds[1] / 1_000_000)


def _age_part_signature(types: Types) -> Signature | None:
    return Signature((types[0], TIMESTAMP, TIMESTAMP), BIGINT) if types[1].is_time and types[2].is_time else None


def _check_age_part(call: Call) -> str | None:
    return None if text_argument(call, 0) in ("year", "month") else "only the year and the month of an age are answered"


def _render_age_part(call: Call, args: list[str]) -> str:
    return f"CAST(date_part({args[0]}, age({args[1]}, {args[2]})) AS BIGINT)"


def _age_part_domain(call: Call, args: Domains) -> Domain:
    _, end, start = args
    if text_argument(call, 0) == "month":
        return Domain(BIGINT, has_nullable(args), Fraction(-11), Fraction(11))
    start_bounds, end_bounds = datetime_bounds(start), datetime_bounds(end)
    if start_bounds is None or end_bounds is None:
        return Domain(BIGINT, has_nullable(args))
    lowest, highest = end_bounds[0].year - start_bounds[1].year, end_bounds[1].year - start_bounds[0].year
    return Domain(BIGINT, has_nullable(args), Fraction(lowest - 1 if lowest > 0 else lowest), Fraction(max(highest, 0)))


# --- buckets ---------------------------------------------------------------------------------------------------------


def _time_bucket_signature(types: Types) -> Signature | None:
    if not all(type_.is_time for type_ in types[3:]):
        return None
    return Signature((INTEGER, INTEGER, BIGINT, *(TIMESTAMP,) * len(types[3:])), TIMESTAMP)


def _check_time_bucket(call: Call) -> str | None:
    interval = _interval_argument(call, 0)
    width = interval.days * MICROSECONDS_PER_DAY + interval.microseconds
    if not is_interval_in_range(interval) or min(interval.months, width) < 0 or bool(interval.months) == bool(width):
        return "the width of time_bucket is in months, or in days and less, and above 0"
    if len(call.args) == 5 and (interval.months or literal_argument(call, 4) is None):
        return "buckets that begin at a moment are days or less wide"
    return None


def _render_time_bucket(call: Call, args: list[str]) -> str:
    return null_outside_calendar(
        f"time_bucket({_render_interval(_interval_argument(call, 0))}, {', '.join(args[3:])})", TIMESTAMP
    )


def _time_bucket_domain(call: Call, args: Domains) -> Domain:
    bounds, interval = datetime_bounds(args[3]), _interval_argument(call, 0)
    unknown = Domain(TIMESTAMP, True)
    if bounds is None:
        return unknown
    values: list[Scalar] = []
    try:
        origin = literal_argument(call, 4)
        at = _bucket_start(bounds[0], interval, origin if isinstance(origin, dt.datetime) else _MONDAY)
        while at <= bounds[1]:
            values.append(at)
            if len(values) > MAX_VALUES:
                return unknown
            at = _add_to_datetime(at, interval)
    except OverflowError:
        return unknown
    return replace_values(Domain(TIMESTAMP), (*values, *((None,) if args[3].nullable else ())))


def _bucket_start(at: dt.datetime, interval: IntervalParts, origin: dt.datetime) -> dt.datetime:
    if interval.months:
        months = (at.year - _NEW_YEAR.year) * 12 + at.month - 1
        return add_months(_NEW_YEAR, months // interval.months * interval.months)
    width = dt.timedelta(days=interval.days, microseconds=interval.microseconds)
    return origin + (at - origin) // width * width


INTERVAL_FUNCTIONS = (
    ScalarFunction(
        "add_interval",
        "at + INTERVAL '1 month'",
        _add_interval_signature,
        _add_interval_domain,
        _render_add_interval,
        4,
        4,
        frozenset({1, 2, 3}),
        _check_interval(1),
        _evaluate_add_interval,
        written=False,
    ),
    ScalarFunction(
        "add_days",
        "born + 7",
        _add_days_signature,
        _add_days_domain,
        _render_add_days,
        2,
        2,
        evaluate=_evaluate_add_days,
        written=False,
    ),
    ScalarFunction(
        "date_diff",
        "date_diff('day', at, CURRENT_DATE)",
        _date_diff_signature,
        _date_diff_domain,
        _render_date_diff,
        3,
        3,
        frozenset({0}),
        _check_unit,
    ),
    ScalarFunction(
        "date_sub",
        "date_sub('month', at, CURRENT_DATE)",
        _date_diff_signature,
        _date_diff_domain,
        _render_date_diff,
        3,
        3,
        frozenset({0}),
        _check_unit,
    ),
    ScalarFunction(
        "seconds_between",
        "extract(epoch FROM (now() - at))",
        _seconds_between_signature,
        _seconds_between_domain,
        _render_seconds_between,
        2,
        2,
        written=False,
    ),
    ScalarFunction(
        "age",
        "extract(year FROM age(CURRENT_DATE, at))",
        _age_part_signature,
        _age_part_domain,
        _render_age_part,
        3,
        3,
        frozenset({0}),
        _check_age_part,
        written=False,
    ),
    ScalarFunction(
        "time_bucket",
        "time_bucket(INTERVAL '15 minutes', at)",
        _time_bucket_signature,
        _time_bucket_domain,
        _render_time_bucket,
        4,
        5,
        frozenset({0, 1, 2, 4}),
        _check_time_bucket,
    ),
)
