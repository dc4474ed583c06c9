"""Dates, timestamps and intervals as PostgreSQL counts them: from 2000-01-01, in days or microseconds.

Python's own dates end with the years 1 and 9999; what is beyond them comes as DuckDB's text.

>>> date_to_days(2000, 1, 1), date_to_days(-43, 3, 15), days_to_date(-1)
(0, -746117, (1999, 12, 31))
"""

from __future__ import annotations

import datetime as dt
import re
import struct
from fractions import Fraction

from dpsql.base.intervals import MICROSECONDS_PER_DAY, IntervalParts, format_time

EPOCH_ORDINAL = dt.date(2000, 1, 1).toordinal()
_DUCKDB_TIMESTAMP = re.compile(r"(\d{4,})-(\d\d)-(\d\d)( \(BC\))?(?: (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?"
                               r"(?:([+-])(\d\d)(?::(\d\d))?)?")  # fmt: skip


def date_to_days(year: int, month: int, day: int) -> int:
    """Year 0 is 1 BC, of the Gregorian calendar throughout."""
    cycles, within = divmod(year - 1, 400)
    return dt.date(within + 1, month, day).toordinal() + cycles * 146_097 - EPOCH_ORDINAL


def days_to_date(days: int) -> tuple[int, int, int]:
    cycles, within = divmod(days + EPOCH_ORDINAL - 1, 146_097)
    date = dt.date.fromordinal(within + 1)
    return date.year + cycles * 400, date.month, date.day


def to_days(value: object) -> int | None:
    """None: the text of no day, such as infinity."""
    if isinstance(value, dt.date):
        return value.toordinal() - EPOCH_ORDINAL
    match = _DUCKDB_TIMESTAMP.fullmatch(str(value))
    return None if match is None else _match_to_days(match)


def to_microseconds(value: object) -> int | None:
    """Microseconds of a timestamp in UTC since 2000; None where the text is no timestamp."""
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(dt.UTC)
        return (value.toordinal() - EPOCH_ORDINAL) * MICROSECONDS_PER_DAY + time_to_microseconds(value)
    if isinstance(value, dt.date):
        return (value.toordinal() - EPOCH_ORDINAL) * MICROSECONDS_PER_DAY
    match = _DUCKDB_TIMESTAMP.fullmatch(str(value))
    if match is None:
        return None
    hours, minutes, seconds = (int(match[group] or 0) for group in (5, 6, 7))
    part = int((match[8] or "").ljust(6, "0"))
    ahead = (int(match[10] or 0) * 60 + int(match[11] or 0)) * (-60 if match[9] == "-" else 60)
    within = (hours * 60 + minutes) * 60 + seconds - ahead
    return _match_to_days(match) * MICROSECONDS_PER_DAY + within * 1_000_000 + part


def _match_to_days(match: re.Match[str]) -> int:
    year = int(match[1])
    return date_to_days(1 - year if match[4] else year, int(match[2]), int(match[3]))


def time_to_microseconds(value: dt.datetime | dt.time) -> int:
    """Microseconds since midnight."""
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def format_date(days: int) -> str:
    """
    >>> format_date(0), format_date(-746117)
    ('2000-01-01', '0044-03-15 BC')
    """
    year, month, day = days_to_date(days)
    return f"{_format_year(year)}-{month:02}-{day:02}{' BC' if year <= 0 else ''}"


def format_datetime(value: dt.datetime) -> str:
    """Of one without a zone, or in UTC.

    >>> format_datetime(dt.datetime(2020, 1, 2, 3, 4, 5, 600_000))
    '2020-01-02 03:04:05.6'
    """
    text = value.replace(tzinfo=None).isoformat(" ")
    return text.rstrip("0") if value.microsecond else text


def format_timestamp(microseconds: int, zone: str = "") -> str:
    """`zone` stands behind the time: +00, or nothing.

    >>> format_timestamp(1_500_000, "+00")
    '2000-01-01 00:00:01.5+00'
    """
    days, time_of_day = divmod(microseconds, MICROSECONDS_PER_DAY)
    year, month, day = days_to_date(days)
    return f"{_format_year(year)}-{month:02}-{day:02} {format_time(time_of_day)}{zone}{' BC' if year <= 0 else ''}"


def _format_year(year: int) -> str:
    return f"{year if year > 0 else 1 - year:04}"


# --- intervals, as PostgreSQL writes and reads them ------------------------------------------------------------------

_WIRE_FORMAT = struct.Struct("!qii")


def interval_to_bytes(interval: IntervalParts) -> bytes:
    return _WIRE_FORMAT.pack(interval.microseconds, interval.days, interval.months)


def interval_from_bytes(data: bytes) -> IntervalParts:
    """ValueError where there are not sixteen bytes."""
    if len(data) != _WIRE_FORMAT.size:
        raise ValueError("not an interval")
    microseconds, days, months = _WIRE_FORMAT.unpack(data)
    return IntervalParts(months, days, microseconds)


_MONTH_UNITS = {
    "year": 12,
    "yr": 12,
    "y": 12,
    "month": 1,
    "mon": 1,
    "decade": 120,
    "century": 1200,
    "millennium": 12_000,
}
_DAY_UNITS = {"week": 7, "w": 7, "day": 1, "d": 1}
_TIME_UNITS = {"hour": 3_600_000_000, "hr": 3_600_000_000, "h": 3_600_000_000, "minute": 60_000_000, "min": 60_000_000,
          "m": 60_000_000, "second": 1_000_000, "sec": 1_000_000, "s": 1_000_000, "millisecond": 1_000, "msec": 1_000,
          "ms": 1_000, "microsecond": 1, "usec": 1, "us": 1}  # fmt: skip
_IRREGULAR_PLURALS = {
    "centuries": "century",
    "millennia": "millennium",
    "mils": "millennium",
    "secs": "second",
    "us": "us",
}
_INTERVAL_PART = re.compile(
    r"\s*(?:([+-]?)(\d{1,9}):(\d\d?)(?::(\d\d?(?:\.\d*)?))?|([+-]?(?:\d{1,18}(?:\.\d*)?|\.\d+))\s*([a-z]+))", re.ASCII
)
_ISO_INTERVAL = re.compile(
    r"p(?=[\d+-]|t)((?:[+-]?\d+(?:\.\d+)?[ymwd])*)(?:t((?:[+-]?\d+(?:\.\d+)?[hms])+))?", re.ASCII
)
_ISO_PART = re.compile(r"([+-]?\d{1,18}(?:\.\d+)?)([ymwdhs])")


def parse_interval(text: str) -> IntervalParts:
    """From units and times, as in `1 day 02:00`, or ISO 8601, as in `P1DT2H`; ValueError where it is neither.

    >>> parse_interval("1 year 2 mons -3 days 04:05:06.5 ago")
    IntervalParts(months=-14, days=3, microseconds=-14706500000)
    >>> parse_interval("P1DT2H")
    IntervalParts(months=0, days=1, microseconds=7200000000)
    """
    folded = text.strip().lower()
    iso = _ISO_INTERVAL.fullmatch(folded)
    if iso is not None:
        parts = [(Fraction(number), "mon" if unit == "m" else unit) for number, unit in _ISO_PART.findall(iso[1])]
        return _sum_parts(parts + [(Fraction(number), unit) for number, unit in _ISO_PART.findall(iso[2] or "")])
    before = folded.removesuffix("ago")
    ago = before != folded
    parts, at = [], 0
    before = before.strip().removeprefix("@")
    while at < len(before):
        match = _INTERVAL_PART.match(before, at)
        if match is None:
            raise ValueError("not an interval")
        parts += _read_part(match)
        at = match.end()
    if not parts:
        raise ValueError("not an interval")
    return _sum_parts([(-number, unit) if ago else (number, unit) for number, unit in parts])


def _read_part(match: re.Match[str]) -> list[tuple[Fraction, str]]:
    if match[5] is not None:
        return [(Fraction(match[5].rstrip(".")), match[6])]
    if int(match[3]) > 59 or Fraction((match[4] or "0").rstrip(".")) > 60:
        raise ValueError("not a time")
    sign = -1 if match[1] == "-" else 1
    return [(Fraction(sign * int(match[2])), "hour"), (Fraction(sign * int(match[3])), "minute"),
            (sign * Fraction((match[4] or "0").rstrip(".")), "second")]  # fmt: skip


def _sum_parts(parts: list[tuple[Fraction, str]]) -> IntervalParts:
    """The sum of an interval's parts: fractions of a month become days, fractions of a day time."""
    months, days, time = Fraction(0), Fraction(0), Fraction(0)
    for number, unit in parts:
        word = _normalize_unit(unit)
        if word in _MONTH_UNITS:
            months += number * _MONTH_UNITS[word]
        elif word in _DAY_UNITS:
            days += number * _DAY_UNITS[word]
        else:
            time += number * _TIME_UNITS[word]
    integer_months = int(months)
    days += (months - integer_months) * 30
    integer_days = int(days)
    microseconds = round(time + (days - integer_days) * MICROSECONDS_PER_DAY)
    if max(abs(integer_months), abs(integer_days)) >= 2**31 or abs(microseconds) >= 2**63:
        raise ValueError("too long an interval")
    return IntervalParts(integer_months, integer_days, microseconds)


def _normalize_unit(word: str) -> str:
    for name in (word, _IRREGULAR_PLURALS.get(word, word), word.removesuffix("s")):
        if name in _MONTH_UNITS or name in _DAY_UNITS or name in _TIME_UNITS:
            return name
    raise ValueError("not a unit of time")
