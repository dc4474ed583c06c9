"""Exact numbers as text, and as analysts give them."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from dpsql.errors import InvalidParameter

Number = int | float | str | Decimal | Fraction

_NUMBER_TEXT = re.compile(
    r"[+-]?(?:\d{1,1000}(?:\.\d{0,1000})?|\.\d{1,1000})(?:[eE][+-]?\d{1,3})?|[+-]?\d{1,4000}/\d{1,4000}", re.ASCII
)
"""Not what Fraction reads: that "1e999999999" has a billion digits, and a server would write them down."""


def format_fraction(value: Fraction) -> str:
    """As a decimal where it is one, else as a fraction.

    >>> format_fraction(Fraction(1, 25)), format_fraction(Fraction(1000)), format_fraction(Fraction(1, 3))
    ('0.04', '1000', '1/3')
    """
    twos_and_fives = value.denominator
    for prime in (2, 5):
        while twos_and_fives % prime == 0:
            twos_and_fives //= prime
    if twos_and_fives != 1 or value.denominator > 10**15:
        return str(value)
    return f"{Decimal(value.numerator) / Decimal(value.denominator):f}"


def parse_fraction(name: str, value: Number) -> Fraction:
    """The number that Python prints: 0.1 is a tenth.

    >>> parse_fraction("epsilon", 0.1), parse_fraction("epsilon", "1e-3")
    (Fraction(1, 10), Fraction(1, 1000))
    """
    try:
        if isinstance(value, bool):
            raise ValueError
        if isinstance(value, int | Fraction | Decimal):
            return Fraction(value)
        text = str(value).strip()
        if not _NUMBER_TEXT.fullmatch(text):
            raise ValueError
        return Fraction(text)
    except (ValueError, OverflowError, ZeroDivisionError):
        raise InvalidParameter(f"{name} must be a number", hint="For example: 0.5") from None
