"""Days and moments, of any year, as PostgreSQL counts them: from 2000-01-01, in days or microseconds.

Python's own dates end with the years 1 and 9999; what is beyond them comes as DuckDB's text.

>>> day_number(2000, 1, 1), day_number(-43, 3, 15), civil(-1)
(0, -746117, (1999, 12, 31))
"""

from __future__ import annotations

import datetime as dt
import re

EPOCH = dt.date(2000, 1, 1).toordinal()
MICROSECONDS = 86_400_000_000
_DUCKDB = re.compile(r"(\d{4,})-(\d\d)-(\d\d)( \(BC\))?(?: (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?(?:\+00)?")


def day_number(year: int, month: int, day: int) -> int:
    """Year 0 is 1 BC, of the Gregorian calendar throughout."""
    cycles, within = divmod(year - 1, 400)
    return dt.date(within + 1, month, day).toordinal() + cycles * 146_097 - EPOCH


def civil(days: int) -> tuple[int, int, int]:
    cycles, within = divmod(days + EPOCH - 1, 146_097)
    date = dt.date.fromordinal(within + 1)
    return date.year + cycles * 400, date.month, date.day


def days_of(value: object) -> int | None:
    """None: the text of no day, such as infinity."""
    if isinstance(value, dt.date):
        return value.toordinal() - EPOCH
    found = _DUCKDB.fullmatch(str(value))
    return None if found is None else _day(found)


def microseconds_of(value: object) -> int | None:
    """Of a moment, in UTC; None: the text of none."""
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(dt.UTC)
        return (value.toordinal() - EPOCH) * MICROSECONDS + time_of(value)
    if isinstance(value, dt.date):
        return (value.toordinal() - EPOCH) * MICROSECONDS
    found = _DUCKDB.fullmatch(str(value))
    if found is None:
        return None
    hours, minutes, seconds = (int(found[at] or 0) for at in (5, 6, 7))
    part = int((found[8] or "").ljust(6, "0"))
    return _day(found) * MICROSECONDS + ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + part


def _day(found: re.Match[str]) -> int:
    year = int(found[1])
    return day_number(1 - year if found[4] else year, int(found[2]), int(found[3]))


def time_of(value: dt.datetime | dt.time) -> int:
    """Microseconds since midnight."""
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def date_text(days: int) -> str:
    """
    >>> date_text(0), date_text(-746117)
    ('2000-01-01', '0044-03-15 BC')
    """
    year, month, day = civil(days)
    return f"{_year(year)}-{month:02}-{day:02}{' BC' if year <= 0 else ''}"


def datetime_text(value: dt.datetime) -> str:
    """Of one without a zone, or in UTC.

    >>> datetime_text(dt.datetime(2020, 1, 2, 3, 4, 5, 600_000))
    '2020-01-02 03:04:05.6'
    """
    text = value.replace(tzinfo=None).isoformat(" ")
    return text.rstrip("0") if value.microsecond else text


def moment_text(microseconds: int, zone: str = "") -> str:
    """`zone` stands behind the time: +00, or nothing.

    >>> moment_text(1_500_000, "+00")
    '2000-01-01 00:00:01.5+00'
    """
    days, within = divmod(microseconds, MICROSECONDS)
    year, month, day = civil(days)
    return f"{_year(year)}-{month:02}-{day:02} {time_text(within)}{zone}{' BC' if year <= 0 else ''}"


def _year(year: int) -> str:
    return f"{year if year > 0 else 1 - year:04}"


def time_text(microseconds: int) -> str:
    """
    >>> time_text(3_723_000_000), time_text(250_000)
    ('01:02:03', '00:00:00.25')
    """
    seconds, part = divmod(microseconds, 1_000_000)
    fraction = f".{part:06}".rstrip("0") if part else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"
