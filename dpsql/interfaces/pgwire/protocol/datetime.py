"""Dates, timestamps and intervals as PostgreSQL counts them: from 2000-01-01, in days or microseconds.

Python's own dates end with the years 1 and 9999; what is beyond them comes as DuckDB's text.

>>> date_to_days(2000, 1, 1), date_to_days(-43, 3, 15), days_to_date(-1)
(0, -746117, (1999, 12, 31))
"""

from __future__ import annotations

import datetime as dt
import re
import struct

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
