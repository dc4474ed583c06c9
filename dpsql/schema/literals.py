"""Numbers, dates and column values, read exactly from the text that the owner wrote.

Law: nothing passes through a float on the way to a bound or a budget; 0.1 is one tenth.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from decimal import Decimal, localcontext
from fractions import Fraction

from dpsql.schema.model import Scalar, to_number
from dpsql.types import Kind, Type, integer_range

NUMBER_PATTERN = r"[+-]?(0|[1-9][0-9]*(_[0-9]+)*)?(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?"
"""Leading zeros are refused: YAML reads 010 as eight, people as ten."""

_NUMBER = re.compile(rf"(?=[+-]?\.?[0-9]){NUMBER_PATTERN}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"(?P<naive>[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?)"
    r" ?(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?"
)
MAX_NUMBER_TEXT = 100
MAX_EXPONENT = 400  # beyond what a double holds; a larger one only serves to fill the memory


def read_number(text: str) -> Fraction | None:
    if len(text) > MAX_NUMBER_TEXT or not _NUMBER.fullmatch(text):
        return None
    _, _, exponent = text.lower().partition("e")
    if abs(int(exponent or 0)) > MAX_EXPONENT:
        return None
    return Fraction(text.replace("_", ""))


def read_integer(text: str) -> int | None:
    number = read_number(text)
    return int(number) if number is not None and number.denominator == 1 else None


def show_number(number: Fraction) -> str:
    """A number as its owner would write it."""
    if number.denominator == 1 and abs(number) < 10**15:
        return str(number.numerator)
    return f"{float(number):g}" if abs(number) < Fraction(10) ** 300 else "a number of over 300 digits"


def _read_date(text: str) -> dt.date | None:
    if not _DATE.fullmatch(text):
        return None
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def _read_timestamp(text: str, zoned: bool) -> dt.datetime | None:
    """A naive timestamp; or, where `zoned`, an aware one, in UTC unless the text says otherwise."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None or (match["zone"] and not zoned):
        return None
    try:
        naive = dt.datetime.fromisoformat(match["naive"])
        if not zoned:
            return naive
        zone = (match["zone"] or "Z").replace("Z", "+00:00")
        zoned_timestamp = dt.datetime.fromisoformat(f"{naive.isoformat()}{zone}")
        return zoned_timestamp.astimezone(dt.UTC)
    except (ValueError, OverflowError):  # no such day; or a zone that leads out of the years 1 to 9999
        return None


def read_value(text: str, type_: Type) -> Scalar | None:
    """The value of this type that the text stands for exactly (floats: the nearest); None where there is none."""
    match type_.kind:
        case Kind.TEXT:
            return text
        case Kind.BOOLEAN:
            return {"true": True, "false": False}.get(text.lower())
        case Kind.DATE:
            return _read_date(text)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return _read_timestamp(text, zoned=type_.kind is Kind.TIMESTAMPTZ)
        case _ if type_.is_number:
            number = read_number(text)
            return None if number is None or not fits_type(number, type_) else _to_scalar(number, type_)
        case _:
            return None


def read_bound(text: str, type_: Type) -> Fraction | None:
    """A bound in the scale of `to_number`. Those of floats stay exact: they need not be floats themselves."""
    if type_.is_number:
        number = read_number(text)
        return number if number is not None and fits_type(number, type_) else None
    value = read_value(text, type_) if type_.is_time else None
    return None if value is None else to_number(value)


def fits_type(number: Fraction, type_: Type) -> bool:
    """Whether the type holds the number: exactly, or, for floats, within its range."""
    match type_.kind:
        case Kind.DECIMAL:
            assert type_.precision is not None and type_.scale is not None
            scaled = number * _power_of_ten(type_.scale)
            return scaled.denominator == 1 and abs(scaled) < _power_of_ten(type_.precision)
        case Kind.REAL:
            return abs(number) <= Fraction(_LARGEST_REAL)
        case Kind.DOUBLE:
            return abs(number) <= Fraction(_LARGEST_DOUBLE)
        case _:
            low, high = integer_range(type_)
            return number.denominator == 1 and low <= number <= high


def _power_of_ten(exponent: int) -> Fraction:
    return Fraction(10) ** exponent


_LARGEST_REAL = (2 - 2**-23) * 2.0**127
_LARGEST_DOUBLE = (2 - 2**-52) * 2.0**1023


def _to_scalar(number: Fraction, type_: Type) -> Scalar:
    match type_.kind:
        case Kind.DECIMAL:
            assert type_.scale is not None
            with localcontext() as context:
                context.prec = 40
                return Decimal(int(number * 10**type_.scale)).scaleb(-type_.scale)
        case Kind.REAL:
            return float(struct.unpack("<f", struct.pack("<f", float(number)))[0]) + 0.0
        case Kind.DOUBLE:
            value = float(number)
            assert math.isfinite(value)
            return value + 0.0  # no -0.0: the scan has none either
        case _:
            return int(number)


EXPECTED_VALUES = {
    Kind.BOOLEAN: "true or false",
    Kind.DATE: "a date like 2024-01-31",
    Kind.TIMESTAMP: "a timestamp like 2024-01-31 08:00:00, without a zone",
    Kind.TIMESTAMPTZ: "a timestamp like 2024-01-31T08:00:00Z",
    Kind.REAL: "a number that a real holds",
    Kind.DOUBLE: "a number that a double holds",
    Kind.TEXT: "text",
}


def describe_expected(type_: Type) -> str:
    """What a value of the type looks like, for messages."""
    if type_.kind is Kind.DECIMAL:
        return f"a number that {type_} holds"
    if type_.is_integer:
        low, high = integer_range(type_)
        return f"a whole number from {low} to {high}" if type_.kind is not Kind.HUGEINT else "a whole number"
    return EXPECTED_VALUES[type_.kind]
