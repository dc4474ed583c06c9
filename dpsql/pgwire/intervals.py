"""Intervals: months, days and microseconds, each on its own, as PostgreSQL keeps, writes and reads them."""

from __future__ import annotations

import datetime as dt
import re
import struct
from fractions import Fraction
from typing import NamedTuple

from dpsql.intervals import interval, interval_text
from dpsql.pgwire.moments import MICROSECONDS

_WIRE = struct.Struct("!qii")


class Interval(NamedTuple):
    months: int
    days: int
    microseconds: int

    def __str__(self) -> str:
        """
        >>> str(Interval(14, -3, -1_500_000)), str(Interval(0, 0, 0)), str(Interval(0, 1, 0))
        ('1 year 2 mons -3 days -00:00:01.5', '00:00:00', '1 day')
        """
        return interval_text(*self)

    @property
    def value(self) -> dt.timedelta | str:
        """As sessions give it."""
        return interval(*self)

    def to_bytes(self) -> bytes:
        return _WIRE.pack(self.microseconds, self.days, self.months)


def interval_from_bytes(data: bytes) -> Interval:
    """ValueError where there are not sixteen bytes."""
    if len(data) != _WIRE.size:
        raise ValueError("not an interval")
    microseconds, days, months = _WIRE.unpack(data)
    return Interval(months, days, microseconds)


_MONTHS = {"year": 12, "yr": 12, "y": 12, "month": 1, "mon": 1, "decade": 120, "century": 1200, "millennium": 12_000}
_DAYS = {"week": 7, "w": 7, "day": 1, "d": 1}
_TIMES = {"hour": 3_600_000_000, "hr": 3_600_000_000, "h": 3_600_000_000, "minute": 60_000_000, "min": 60_000_000,
          "m": 60_000_000, "second": 1_000_000, "sec": 1_000_000, "s": 1_000_000, "millisecond": 1_000, "msec": 1_000,
          "ms": 1_000, "microsecond": 1, "usec": 1, "us": 1}  # fmt: skip
_PLURALS = {"centuries": "century", "millennia": "millennium", "mils": "millennium", "secs": "second", "us": "us"}
_PART = re.compile(
    r"\s*(?:([+-]?)(\d{1,9}):(\d\d?)(?::(\d\d?(?:\.\d*)?))?|([+-]?(?:\d{1,18}(?:\.\d*)?|\.\d+))\s*([a-z]+))", re.ASCII
)
_ISO = re.compile(r"p(?=[\d+-]|t)((?:[+-]?\d+(?:\.\d+)?[ymwd])*)(?:t((?:[+-]?\d+(?:\.\d+)?[hms])+))?", re.ASCII)
_ISO_PART = re.compile(r"([+-]?\d{1,18}(?:\.\d+)?)([ymwdhs])")


def read_interval(text: str) -> Interval:
    """From units and times, as in `1 day 02:00`, or ISO 8601, as in `P1DT2H`; ValueError where it is neither.

    >>> read_interval("1 year 2 mons -3 days 04:05:06.5 ago"), read_interval("P1DT2H")
    (Interval(months=-14, days=3, microseconds=-14706500000), Interval(months=0, days=1, microseconds=7200000000))
    """
    folded = text.strip().lower()
    iso = _ISO.fullmatch(folded)
    if iso is not None:
        parts = [(Fraction(number), "mon" if unit == "m" else unit) for number, unit in _ISO_PART.findall(iso[1])]
        return _sum(parts + [(Fraction(number), unit) for number, unit in _ISO_PART.findall(iso[2] or "")])
    before = folded.removesuffix("ago")
    ago = before != folded
    parts, at = [], 0
    before = before.strip().removeprefix("@")
    while at < len(before):
        found = _PART.match(before, at)
        if found is None:
            raise ValueError("not an interval")
        parts += _read(found)
        at = found.end()
    if not parts:
        raise ValueError("not an interval")
    return _sum([(-number, unit) if ago else (number, unit) for number, unit in parts])


def _read(found: re.Match[str]) -> list[tuple[Fraction, str]]:
    if found[5] is not None:
        return [(Fraction(found[5].rstrip(".")), found[6])]
    if int(found[3]) > 59 or Fraction((found[4] or "0").rstrip(".")) > 60:
        raise ValueError("not a time")
    sign = -1 if found[1] == "-" else 1
    return [(Fraction(sign * int(found[2])), "hour"), (Fraction(sign * int(found[3])), "minute"),
            (sign * Fraction((found[4] or "0").rstrip(".")), "second")]  # fmt: skip


def _sum(parts: list[tuple[Fraction, str]]) -> Interval:
    """What is a part of a month is days, and what is a part of a day is time."""
    months, days, time = Fraction(0), Fraction(0), Fraction(0)
    for number, unit in parts:
        word = _unit(unit)
        if word in _MONTHS:
            months += number * _MONTHS[word]
        elif word in _DAYS:
            days += number * _DAYS[word]
        else:
            time += number * _TIMES[word]
    whole_months = int(months)
    days += (months - whole_months) * 30
    whole_days = int(days)
    microseconds = round(time + (days - whole_days) * MICROSECONDS)
    if max(abs(whole_months), abs(whole_days)) >= 2**31 or abs(microseconds) >= 2**63:
        raise ValueError("too long an interval")
    return Interval(whole_months, whole_days, microseconds)


def _unit(word: str) -> str:
    for name in (word, _PLURALS.get(word, word), word.removesuffix("s")):
        if name in _MONTHS or name in _DAYS or name in _TIMES:
            return name
    raise ValueError("not a unit of time")
