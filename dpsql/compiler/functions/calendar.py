"""Parts, periods and steps of the calendar, as PostgreSQL and the engines count them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from dpsql.base.intervals import MICROSECONDS_PER_DAY
from dpsql.compiler.functions.function import replace_values
from dpsql.schema.model import EPOCH, LAST_DAY, Domain, Scalar, to_number
from dpsql.types import Kind, Type

FIRST_MODERN_YEAR = 1600  # the first year of which calendars with and without a change in 1582 agree
LAST_TIMESTAMP = (LAST_DAY + 1) * MICROSECONDS_PER_DAY - 1

PART_RANGES = {
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "doy": (1, 366),
    "dow": (0, 6),
    "isodow": (1, 7),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
    "millisecond": (0, 59_999),
    "microsecond": (0, 59_999_999),
}
YEARS_PER_PART = {"year": 1, "isoyear": 1, "decade": 10, "century": 100, "millennium": 1000}
TIME_PARTS = ("hour", "minute", "second", "millisecond", "microsecond", "epoch")
EXTRACTIONS = (*YEARS_PER_PART, *PART_RANGES, "epoch")
TRUNCATIONS = ("millennium", "century", "decade", "year", "quarter", "month", "week", "day", "hour", "minute", "second",
               "millisecond", "microsecond")  # fmt: skip
FIXED_UNITS = {"week": 7 * MICROSECONDS_PER_DAY, "day": MICROSECONDS_PER_DAY, "hour": 3_600_000_000,
         "minute": 60_000_000, "second": 1_000_000, "millisecond": 1_000, "microsecond": 1}  # fmt: skip
MONTHS_PER_UNIT = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1_200, "millennium": 12_000}

_SPELLINGS = {"dayofweek": "dow", "weekday": "dow", "dayofyear": "doy", "dayofmonth": "day", "weekofyear": "week",
              "centuries": "century", "millennia": "millennium", "millenniums": "millennium", "msec": "millisecond",
              "usec": "microsecond", "ms": "millisecond", "us": "microsecond", "sec": "second", "min": "minute",
              "mon": "month", "yr": "year", "hr": "hour"}  # fmt: skip

DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTH_NAMES = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
               "November", "December")  # fmt: skip

_DAY = dt.timedelta(days=1)


def canonical_part(spelling: str) -> str:
    """The one name of a part that may be spelled in several ways."""
    name = spelling.lower()
    singular = name[:-1] if name.endswith("s") and name not in ("ms", "us", "centuries") else name
    return _SPELLINGS.get(name) or _SPELLINGS.get(singular, singular)


def bound_to_datetime(number: Fraction, kind: Kind) -> dt.datetime | None:
    """The moment that a bound stands for; None outside of Python's calendar."""
    try:
        if kind is Kind.DATE:
            return EPOCH + dt.timedelta(days=int(number))
        return EPOCH + dt.timedelta(microseconds=int(number))
    except OverflowError:
        return None


def convert_time(value: dt.date, type_: Type) -> dt.date:
    """A date or timestamp as another of these types; zones are UTC's."""
    at = value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)
    at = at.astimezone(dt.UTC).replace(tzinfo=None) if at.tzinfo is not None else at
    if type_.kind is Kind.DATE:
        return at.date()
    return at.replace(tzinfo=dt.UTC) if type_.kind is Kind.TIMESTAMPTZ else at


def datetime_bounds(domain: Domain) -> tuple[dt.datetime, dt.datetime] | None:
    """The first and the last moment of a bounded domain of dates or timestamps."""
    if not domain.is_bounded:
        return None
    first, last = (bound_to_datetime(bound, domain.type.kind) for bound in domain.bounds)
    return None if first is None or last is None else (first, last)


def extract_part(part: str, at: dt.datetime) -> int:
    """A part of a date or timestamp, such as its month."""
    within = at.second * 1_000_000 + at.microsecond
    iso = at.isocalendar()
    return {
        "year": at.year, "isoyear": iso.year, "decade": at.year // 10, "century": (at.year - 1) // 100 + 1,
        "millennium": (at.year - 1) // 1000 + 1, "quarter": (at.month - 1) // 3 + 1, "month": at.month,
        "week": iso.week, "day": at.day, "doy": at.timetuple().tm_yday, "dow": iso.weekday % 7, "isodow": iso.weekday,
        "hour": at.hour, "minute": at.minute, "second": at.second, "millisecond": within // 1000,
        "microsecond": within,
    }[part]  # fmt: skip


DAY_PARTS = ("quarter", "month", "week", "day", "doy", "dow", "isodow")
"""Parts that a day decides."""
MAX_DAYS = 1_500
"""Between the bounds, for what they leave of a part to be looked at day by day; of more years all of it is there."""


def possible_parts(part: str, domain: Domain) -> tuple[int, ...] | None:
    """The values of a part between the bounds, in order; None where they do not rule out any.

    EXTRACT(month FROM at), at in [2024-03-05, 2024-04-20]   →  3, 4
    """
    bounds = datetime_bounds(domain)
    if bounds is None or domain.type.kind is Kind.TIMESTAMPTZ or part not in (*DAY_PARTS, "hour"):
        return None
    first, last = bounds
    if part == "hour":
        values = frozenset(range(first.hour, last.hour + 1)) if first.date() == last.date() else None
    else:
        values = _parts_of_days(part, first.date(), last.date()) if (last - first).days <= MAX_DAYS else None
    lowest, highest = PART_RANGES[part]
    return tuple(sorted(values)) if values and len(values) <= highest - lowest else None


@lru_cache(maxsize=256)
def _parts_of_days(part: str, first: dt.date, last: dt.date) -> frozenset[int]:
    midnight = dt.time()
    days = (first + dt.timedelta(days=number) for number in range((last - first).days + 1))
    return frozenset(extract_part(part, dt.datetime.combine(day, midnight)) for day in days)


def part_bounds(part: str, domain: Domain) -> tuple[Fraction | None, Fraction | None]:
    if part in PART_RANGES:
        lowest, highest = PART_RANGES[part]
        return Fraction(lowest), Fraction(highest)
    bounds = datetime_bounds(domain)
    if bounds is None:
        return None, None
    if part == "epoch":
        first, last = ((at - EPOCH) // dt.timedelta(microseconds=1) for at in bounds)
        return Fraction(first, 1_000_000), Fraction(last, 1_000_000)
    return Fraction(extract_part(part, bounds[0])), Fraction(extract_part(part, bounds[1]))


def truncate_datetime(part: str, at: dt.datetime) -> dt.datetime:
    """The start of the period; ValueError where that is before the year 1."""
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    match part:
        case "microsecond":
            return at
        case "millisecond":
            return at.replace(microsecond=at.microsecond // 1000 * 1000)
        case "second":
            return at.replace(microsecond=0)
        case "minute":
            return at.replace(second=0, microsecond=0)
        case "hour":
            return at.replace(minute=0, second=0, microsecond=0)
        case "day":
            return day
        case "week":
            return day - _DAY * day.weekday()
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "year":
            return day.replace(month=1, day=1)
        case "decade":
            return day.replace(year=at.year // 10 * 10, month=1, day=1)
        case "century" | "millennium":
            years = YEARS_PER_PART[part]
            return day.replace(year=(at.year - 1) // years * years + 1, month=1, day=1)
    raise ValueError(f"no such part: {part}")


def add_months(at: dt.datetime, months: int) -> dt.datetime:
    """The same day of another month, or its last day; OverflowError outside of the calendar."""
    year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
    if not dt.MINYEAR <= year <= dt.MAXYEAR:
        raise OverflowError
    return at.replace(year=year, month=month + 1, day=min(at.day, days_in_month(year, month + 1)))


def days_in_month(year: int, month: int) -> int:
    following = dt.date(year + month // 12, month % 12 + 1, 1) if (year, month) != (dt.MAXYEAR, 12) else None
    return 31 if following is None else (following - _DAY).day


def next_period(part: str, at: dt.datetime) -> dt.datetime:
    """The start of the period after the one that starts at `at`."""
    if part in FIXED_UNITS:
        return at + dt.timedelta(microseconds=FIXED_UNITS[part])
    return add_months(at, MONTHS_PER_UNIT[part])


def list_periods(part: str, domain: Domain, max_periods: int) -> list[dt.datetime] | None:
    """The starts of all periods between the bounds; None where there are too many, or no bounds."""
    bounds = datetime_bounds(domain)
    if bounds is None or domain.type.kind is Kind.TIMESTAMPTZ:
        return None  # with a time zone, periods depend on the zone's rules
    first, last = bounds
    if first.year < 10 or last.year >= 9000:
        return None
    starts: list[dt.datetime] = []
    for at in _period_starts(part, truncate_datetime(part, first)):
        if at > last:
            break
        starts.append(at)
        if len(starts) > max_periods:
            return None
    return starts


def _period_starts(part: str, at: dt.datetime) -> Iterator[dt.datetime]:
    while True:
        yield at
        at = next_period(part, at)


def truncated_domain(part: str, domain: Domain, type_: Type, max_periods: int) -> Domain:
    """Every period between the bounds, as the values of the truncated column."""
    starts, bounds = list_periods(part, domain, max_periods), datetime_bounds(domain)
    if starts is not None:
        values: tuple[Scalar, ...] = tuple(at.date() if type_.kind is Kind.DATE else at for at in starts)
        return replace_values(Domain(type_, domain.nullable), (*values, *((None,) if domain.nullable else ())))
    # The decade of the year 9 began before the year 1.
    unknown = Domain(type_, domain.nullable or part == "decade")
    if bounds is None or bounds[0].year < FIRST_MODERN_YEAR:
        return unknown
    return unknown.with_bounds(*(to_number(convert_time(truncate_datetime(part, at), type_)) for at in bounds))
