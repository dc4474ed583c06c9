"""What EXTRACT and DATE_TRUNC can give for dates within bounds."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

from dpsql.schema.domain import EPOCH, Domain, Scalar
from dpsql.types import Kind, Type

CYCLES = {
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "doy": (1, 366),
    "dow": (0, 6),
    "isodow": (1, 7),
    "hour": (0, 23),
    "minute": (0, 59),
}
TRUNCATIONS = ("year", "quarter", "month", "week", "day", "hour", "minute")
EXTRACTIONS = ("year", *CYCLES)

_DAY = dt.timedelta(days=1)


def moment(number: Fraction, kind: Kind) -> dt.datetime | None:
    """The moment that a bound stands for; None outside of Python's calendar."""
    try:
        if kind is Kind.DATE:
            return EPOCH + dt.timedelta(days=int(number))
        return EPOCH + dt.timedelta(microseconds=int(number))
    except OverflowError:
        return None


def extract_bounds(part: str, domain: Domain) -> tuple[Fraction | None, Fraction | None]:
    if part in CYCLES:
        least, most = CYCLES[part]
        return Fraction(least), Fraction(most)
    if not domain.bounded:
        return None, None
    first, last = (moment(bound, domain.type.kind) for bound in domain.bounds)
    if first is None or last is None:
        return None, None
    return Fraction(first.year), Fraction(last.year)


def truncate(part: str, at: dt.datetime) -> dt.datetime:
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    match part:
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
    raise ValueError(f"no such part: {part}")


def _next(part: str, at: dt.datetime) -> dt.datetime:
    """The start of the period after the one that starts at `at`."""
    step = {"minute": 1 / 1440, "hour": 1 / 24, "day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}[part]
    return truncate(part, at + dt.timedelta(days=step))


def truncated_values(part: str, domain: Domain, type_: Type, most: int) -> Domain:
    """Every period between the bounds, as the values of the truncated column."""
    unknown = Domain(type_, domain.nullable)
    if not domain.bounded or domain.type.kind is Kind.TIMESTAMPTZ:
        return unknown  # with a time zone, periods depend on the zone's rules
    first, last = (moment(bound, domain.type.kind) for bound in domain.bounds)
    if first is None or last is None or last.year >= 9998:
        return unknown
    values: list[Scalar] = []
    at = truncate(part, first)
    while at <= last:
        values.append(at.date() if type_.kind is Kind.DATE else at)
        if len(values) > most:
            return unknown
        at = _next(part, at)
    return Domain(type_, domain.nullable, values=tuple(values))
