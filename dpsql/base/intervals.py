"""Intervals that a timedelta alone cannot tell: those with months, and with days and hours of two signs.

PostgreSQL and DuckDB keep months, days and microseconds apart: a month later is another day than 30 days later. A
timedelta has days and seconds only. So where the parts say more than their sum, a value is an `Interval`: a timedelta
in which a month is 30 days, as in comparisons of intervals, that knows its parts.
"""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

MICROSECONDS_PER_DAY = 86_400_000_000
"""Microseconds of a day."""


class IntervalParts(NamedTuple):
    """Months, days and microseconds, each on its own.

    >>> str(IntervalParts(14, -3, -1_500_000)), str(IntervalParts()), str(IntervalParts(days=1))
    ('1 year 2 mons -3 days -00:00:01.5', '00:00:00', '1 day')
    """

    months: int = 0
    days: int = 0
    microseconds: int = 0

    def __str__(self) -> str:
        return format_interval(*self)


class Interval(dt.timedelta):
    """
    >>> one = Interval.of(14, 3, 14_400_000_000)
    >>> one == dt.timedelta(days=423, hours=4), tuple(one.parts), str(one)
    (True, (14, 3, 14400000000), '1 year 2 mons 3 days 04:00:00')
    """

    parts: IntervalParts

    @classmethod
    def of(cls, months: int, days: int, microseconds: int) -> Interval:
        """OverflowError where a timedelta cannot be so long."""
        result = cls(days=30 * months + days, microseconds=microseconds)
        result.parts = IntervalParts(months, days, microseconds)
        return result

    def __str__(self) -> str:
        return str(self.parts)

    def __repr__(self) -> str:
        return f"Interval.of{tuple(self.parts)!r}"

    def __reduce__(self) -> tuple[object, ...]:
        return make_interval, tuple(self.parts)


def make_interval(months: int, days: int, microseconds: int) -> dt.timedelta | str:
    """The plainest value that tells all of it: text where it is longer than Python counts.

    >>> make_interval(0, 1, 7_200_000_000), make_interval(0, 0, 97_200_000_000)
    (datetime.timedelta(days=1, seconds=7200), Interval.of(0, 0, 97200000000))
    """
    try:
        plain = dt.timedelta(days=days, microseconds=microseconds)
        if not months and interval_parts(plain) == (0, days, microseconds):
            return plain
        return Interval.of(months, days, microseconds)
    except OverflowError:
        return format_interval(months, days, microseconds)


def interval_parts(value: dt.timedelta) -> IntervalParts:
    """The parts of an interval; of a plain timedelta, days and time of one sign.

    >>> tuple(interval_parts(dt.timedelta(hours=-26))), tuple(interval_parts(Interval.of(1, -1, 0)))
    ((0, -1, -7200000000), (1, -1, 0))
    """
    if isinstance(value, Interval):
        return value.parts
    total = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    days, rest = divmod(abs(total), MICROSECONDS_PER_DAY)
    return IntervalParts(0, days, rest) if total >= 0 else IntervalParts(0, -days, -rest)


def format_interval_words(value: dt.timedelta) -> str:
    """In words that every engine reads."""
    return "{} months {} days {} microseconds".format(*interval_parts(value))


def format_interval(months: int, days: int, microseconds: int) -> str:
    """As PostgreSQL writes it.

    >>> format_interval(14, -3, -1_500_000), format_interval(0, 0, 0), format_interval(0, 1, 0)
    ('1 year 2 mons -3 days -00:00:01.5', '00:00:00', '1 day')
    """
    sign = -1 if months < 0 else 1
    parts: list[str] = []
    negative_before = False
    years, rest = divmod(abs(months), 12)
    for number, unit in ((sign * years, "year"), (sign * rest, "mon"), (days, "day")):
        if number:
            plus = "+" if negative_before and number > 0 else ""
            parts.append(f"{plus}{number} {unit}{'' if number == 1 else 's'}")
            negative_before = number < 0
    if microseconds or not parts:
        plus = "-" if microseconds < 0 else "+" if negative_before else ""
        parts.append(plus + format_time(abs(microseconds)))
    return " ".join(parts)


def format_time(microseconds: int) -> str:
    """
    >>> format_time(3_723_000_000), format_time(250_000)
    ('01:02:03', '00:00:00.25')
    """
    seconds, fraction = divmod(microseconds, 1_000_000)
    fraction_text = f".{fraction:06}".rstrip("0") if fraction else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction_text}"
