"""Numbers that a statement or a setting writes, read exactly. Law: every text becomes a Fraction here alone.

1e-20000000 is eleven characters, and as a fraction twenty million digits, which no cancel and no timer interrupts. So
how many digits it has, and where they begin, is looked at first.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction

from dpsql.errors import DataError
from dpsql.span import Span

MAX_DIGITS = 400
"""Before or behind the point: beyond what a double holds."""


def parse_exact_number(text: str, span: Span | None = None) -> Fraction | None:
    """What the text writes; None: no finite number. Raises where it is out of range.

    >>> parse_exact_number("2.5e-1")
    Fraction(1, 4)
    >>> parse_exact_number("one")
    """
    number = parse_decimal_number(text, span)
    return None if number is None else Fraction(number)


def parse_decimal_number(text: str, span: Span | None = None) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite():
        return None
    if not fits_digit_limit(number):
        raise DataError("a number is out of range", sqlstate="22003", span=span,
                        hint=f"A number has at most {MAX_DIGITS} digits on each side of its point.")  # fmt: skip
    return number


def fits_digit_limit(number: Decimal) -> bool:
    """Whether it takes no more than so many digits to write it out: 0e-20000000 has its point far behind too."""
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -MAX_DIGITS and number.adjusted() < MAX_DIGITS
