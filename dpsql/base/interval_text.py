"""Intervals as PostgreSQL reads them from text. Law: every text becomes an interval here alone.

1 day 02:00:00      1 02:03:04      -1-2      @ 1 day ago      P1DT2H      P0001-02-03T04:05:06      '1-2' YEAR TO MONTH

A text is read from right to left, as PostgreSQL does: a number has the unit behind it; where there is none, a time
behind it makes it days, and at the end it has the unit of the fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from dpsql.base.intervals import MICROSECONDS_PER_DAY, IntervalParts

SYNTAX_SQLSTATE, RANGE_SQLSTATE, FIELD_SQLSTATE = "22007", "22008", "22015"
MAX_CHARACTERS = 1_000
MAX_DIGITS = 50

MONTHS_PER_UNIT = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1_200, "millennium": 12_000}
DAYS_PER_UNIT = {"day": 1, "week": 7}
MICROSECONDS_PER_UNIT = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000, "millisecond": 1_000,
                         "microsecond": 1}  # fmt: skip
_DAYS_PER_MONTH = 30
_UNIT_WORDS = {
    "millennium": "mil mils millennia millennium millenniums",
    "century": "c cent century centuries",
    "decade": "dec decs decade decades",
    "year": "y yr yrs year years",
    "quarter": "quarter quarters",  # not PostgreSQL's, but DuckDB's
    "month": "mon mons month months",
    "week": "w week weeks",
    "day": "d day days",
    "hour": "h hr hrs hour hours",
    "minute": "m min mins minute minutes",
    "second": "s sec secs second seconds",
    "millisecond": "ms msec msecs msecond mseconds millisecond milliseconds",
    "microsecond": "us usec usecs usecond useconds microsecond microseconds",
}
UNIT_OF_WORD = {word: unit for unit, words in _UNIT_WORDS.items() for word in words.split()}

_FIELDS = ("year", "month", "day", "hour", "minute", "second")
FIELD_RANGES = frozenset({(name, name) for name in _FIELDS} | {("year", "month")} | {
    (first, last) for at, first in enumerate(_FIELDS[2:], 2) for last in _FIELDS[at + 1 :]})  # fmt: skip
"""The fields that a type INTERVAL can have: YEAR, YEAR TO MONTH, DAY TO SECOND, …"""


class IntervalTextError(ValueError):
    """What PostgreSQL would say of the text, and its SQLSTATE."""

    def __init__(self, message: str, sqlstate: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


@dataclass(frozen=True)
class IntervalFields:
    """`YEAR TO MONTH`, or one field; how many digits of a second are kept."""

    first: str | None = None
    last: str | None = None
    precision: int | None = None


ALL_FIELDS = IntervalFields()


def read_interval_text(text: str, fields: IntervalFields = ALL_FIELDS) -> IntervalParts:
    """
    >>> str(read_interval_text("1 year 2 mons -3 days 04:05:06.5 ago")), str(read_interval_text("P1DT2H"))
    ('-1 years -2 mons +3 days -04:05:06.5', '1 day 02:00:00')
    >>> str(read_interval_text("1-2", IntervalFields("year", "year"))), str(read_interval_text("1 02:03"))
    ('1 year', '1 day 02:03:00')
    """
    try:
        if len(text) > MAX_CHARACTERS:
            raise _Malformed
        try:
            total = _read_fields(_split_fields(text), fields)
        except _Malformed:
            total = _read_iso(text)
        return _keep_fields(total.to_parts(), fields)
    except _Malformed:
        raise IntervalTextError(f'invalid input syntax for type interval: "{text}"', SYNTAX_SQLSTATE) from None
    except _TooLong:
        raise IntervalTextError("interval out of range", RANGE_SQLSTATE) from None
    except _FieldOverflow:
        raise IntervalTextError(f'interval field value out of range: "{text}"', FIELD_SQLSTATE) from None


class _Malformed(Exception):
    """Not of this form."""


class _FieldOverflow(Exception):
    """A field is larger than its place, such as 13 months in '1-13'."""


class _TooLong(Exception):
    """More months than PostgreSQL counts."""


class _Total:
    """What was read so far. Fractions of a year become months, those of a month days, those of a day time."""

    def __init__(self) -> None:
        self.months = self.days = self.microseconds = 0

    def add(self, whole: int, fraction: Fraction, unit: str) -> None:
        if unit in MONTHS_PER_UNIT:
            self.months += whole * MONTHS_PER_UNIT[unit]
            if unit == "month":
                self._add_days(fraction * _DAYS_PER_MONTH)
            else:
                self.months += round(fraction * MONTHS_PER_UNIT[unit])
        elif unit in DAYS_PER_UNIT:
            self.days += whole * DAYS_PER_UNIT[unit]
            self._add_days(fraction * DAYS_PER_UNIT[unit])
        else:
            self.microseconds += whole * MICROSECONDS_PER_UNIT[unit]
            self.microseconds += _round_half_down(fraction * MICROSECONDS_PER_UNIT[unit])

    def _add_days(self, days: Fraction) -> None:
        self.days += int(days)
        self.microseconds += _round_half_down((days - int(days)) * MICROSECONDS_PER_DAY)

    def negate(self) -> None:
        self.months, self.days, self.microseconds = -self.months, -self.days, -self.microseconds

    def to_parts(self) -> IntervalParts:
        if not -(2**31) <= self.days < 2**31 or not -(2**63) <= self.microseconds < 2**63:
            raise _FieldOverflow
        if not -(2**31) <= self.months < 2**31:
            raise _FieldOverflow if abs(self.months) >= 12 * 2**31 else _TooLong
        return IntervalParts(self.months, self.days, self.microseconds)


def _round_half_down(number: Fraction) -> int:
    """To the nearest; a half goes towards zero, as PostgreSQL does here."""
    whole = int(number)
    rest = abs(number - whole)
    return whole + (0 if rest <= Fraction(1, 2) else 1 if number > 0 else -1)


# --- units and times -------------------------------------------------------------------------------------------------

_FIELD = re.compile(
    r"(?P<time>\d+:[\d:.]*)|(?P<signed>[+-]\s*\d[\d:.-]*)|(?P<date>\d+-\d+(?![\d-]))|(?P<number>\d+(?:\.\d*)?|\.\d+)"
    r"|(?P<word>[a-z]+)|(?P<ignored>[\s!-*,/:-@\[-`{-~])",
    re.ASCII,
)
_TIME = re.compile(r"(\d+):(\d*)(?::(\d*)(\.\d*)?|(\.\d*))?", re.ASCII)
_NUMBER = re.compile(r"([+-]?)(?:(\d+)-(\d+)|(\d*)(\.\d*)?)", re.ASCII)


def _split_fields(text: str) -> list[tuple[str, str]]:
    """Its fields and their kinds. Other marks stand for blanks, as in '@ 1 day, 2 hours'."""
    folded, at, fields = text.lower(), 0, list[tuple[str, str]]()
    while at < len(folded):
        field = _FIELD.match(folded, at)
        if field is None:
            raise _Malformed
        at = field.end()
        kind = str(field.lastgroup)
        glued = folded[at : at + 1]
        if kind == "word" and (glued in ("-", "/", ".", "+") or glued.isdigit()) and glued:
            raise _Malformed  # a date with a word, as 1-jan-2000
        if glued and (glued in "-/." or (glued.isalpha() and field[0].endswith("."))) and kind in ("number", "date"):
            raise _Malformed
        if kind != "ignored":
            fields.append((kind, re.sub(r"\s", "", field[0])))
    return fields


def _read_fields(fields: list[tuple[str, str]], kept: IntervalFields) -> _Total:
    total, seen = _Total(), set[str]()
    unit: str | None = kept.last or "second"
    waiting = ago = False
    for at, (kind, field) in reversed(list(enumerate(fields))):
        if kind == "word":
            if field == "ago" and at == len(fields) - 1:
                ago, unit = True, None
                continue
            if waiting or field not in UNIT_OF_WORD:
                raise _Malformed
            unit, waiting = UNIT_OF_WORD[field], True
            continue
        parts = {"hour", "minute", "second", "millisecond", "microsecond"}
        if ":" in field:
            if waiting:
                raise _Malformed
            total.add(0, Fraction(_read_time(field, kept), 1_000_000), "second")
            unit = "day"
        else:
            whole, fraction, unit = _read_number(field, unit)
            total.add(whole, fraction, unit)
            parts = {"second", "millisecond", "microsecond"} if unit == "second" and fraction else {unit}
            waiting = False
            if unit == "hour":
                unit = "day"
        if parts & seen:
            raise _Malformed
        seen |= parts
    if not seen or waiting:
        raise _Malformed
    if ago:
        total.negate()
    return total


def _read_number(field: str, unit: str | None) -> tuple[int, Fraction, str]:
    """A number of units, or years and months as in -1-2."""
    number = _NUMBER.fullmatch(field)
    if number is None or len(field) > MAX_DIGITS:
        raise _Malformed
    sign = -1 if number[1] == "-" else 1
    if number[2] is not None:
        months = int(number[3])
        if months >= 12:
            raise _FieldOverflow
        return sign * (int(number[2]) * 12 + months), Fraction(0), "month"
    if unit is None:
        raise _Malformed
    return sign * int(number[4] or 0), sign * _read_fraction(number[5]), unit


def _read_fraction(digits: str | None) -> Fraction:
    return Fraction(f"0{digits}") if digits and digits != "." else Fraction(0)


def _read_time(field: str, fields: IntervalFields) -> int:
    """Microseconds. Two places are hours and minutes; with a fraction, or of MINUTE TO SECOND, minutes and seconds."""
    sign = -1 if field[0] == "-" else 1
    time = _TIME.fullmatch(field.lstrip("+-"))
    if time is None or len(field) > MAX_DIGITS:
        raise _Malformed
    hour, minute, second = int(time[1]), int(time[2] or 0), int(time[3] or 0)
    if time[5] or (time[3] is None and (fields.first, fields.last) == ("minute", "second")):
        hour, minute, second = 0, hour, minute
    if minute > 59 or second > 60:
        raise _Malformed if field[0] in "+-" else _FieldOverflow
    fraction = round(_read_fraction(time[4] or time[5]) * 1_000_000)
    return sign * (((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction)


# --- ISO 8601 --------------------------------------------------------------------------------------------------------

_AMOUNT = r"(-?\d+(?:\.\d*)?|-?\.\d+)"
_ISO_DATE_UNITS = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_ISO_TIME_UNITS = {"H": "hour", "M": "minute", "S": "second"}
_ISO_BASIC_DATE = re.compile(r"-?\d{8}(?:\.\d*)?", re.ASCII)
_ISO_BASIC_TIME = re.compile(r"-?\d{6}(?:\.\d*)?", re.ASCII)
_ISO_DATE = re.compile(rf"{_AMOUNT}(?:-{_AMOUNT}(?:-{_AMOUNT})?)?", re.ASCII)
_ISO_TIME = re.compile(rf"{_AMOUNT}(?::{_AMOUNT}(?::{_AMOUNT})?)?", re.ASCII)


def _read_iso(text: str) -> _Total:
    """P1Y2M3DT4H5M6S, P0001-02-03T04:05:06, P00010203T040506, and each half in a form of its own."""
    if len(text) < 2 or text[0] != "P":
        raise _Malformed
    total = _Total()
    date, _, time = text[1:].partition("T")
    _read_iso_half(total, date, _ISO_DATE_UNITS, _ISO_BASIC_DATE, _ISO_DATE, ("year", "month", "day"))
    _read_iso_half(total, time, _ISO_TIME_UNITS, _ISO_BASIC_TIME, _ISO_TIME, ("hour", "minute", "second"))
    return total


def _read_iso_half(
    total: _Total, text: str, units: dict[str, str], basic: re.Pattern[str], extended: re.Pattern[str],
    names: tuple[str, str, str],
) -> None:  # fmt: skip
    if not text:
        return
    if re.fullmatch(rf"(?:{_AMOUNT}[{''.join(units)}])+", text, re.ASCII):
        for amount, letter in re.findall(rf"{_AMOUNT}([{''.join(units)}])", text, re.ASCII):
            total.add(*_read_iso_number(amount), units[letter])
    elif basic.fullmatch(text):
        whole, fraction = _read_iso_number(text)
        sign, digits = (-1 if whole < 0 else 1), abs(whole)
        for number, name in zip((digits // 10_000, digits // 100 % 100, digits % 100), names, strict=True):
            total.add(sign * number, Fraction(0), name)
        total.add(0, fraction, names[2])
    elif (places := extended.fullmatch(text)) is not None:
        for amount, name in zip(places.groups(), names, strict=True):
            if amount is not None:
                total.add(*_read_iso_number(amount), name)
    else:
        raise _Malformed


def _read_iso_number(text: str) -> tuple[int, Fraction]:
    if len(text) > MAX_DIGITS:
        raise _Malformed
    number = Fraction(text.rstrip("."))
    return int(number), number - int(number)


# --- fields of the type ----------------------------------------------------------------------------------------------


def _keep_fields(parts: IntervalParts, fields: IntervalFields) -> IntervalParts:
    """What stands behind the last field is cut off, as PostgreSQL does; what stands before the first is kept."""
    months, days, microseconds = parts
    if fields.last == "year":
        months = _cut(months, 12)
    if fields.last in ("year", "month"):
        days = 0
    if fields.last in ("year", "month", "day"):
        microseconds = 0
    elif fields.last in ("hour", "minute"):
        microseconds = _cut(microseconds, MICROSECONDS_PER_UNIT[fields.last])
    if fields.precision is not None and fields.precision < 6:
        step = 10 ** (6 - fields.precision)
        microseconds = (abs(microseconds) + step // 2) // step * step * (-1 if microseconds < 0 else 1)
    return IntervalParts(months, days, microseconds)


def _cut(number: int, step: int) -> int:
    return abs(number) // step * step * (-1 if number < 0 else 1)
