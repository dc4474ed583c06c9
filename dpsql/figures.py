"""Figures for people, in three digits. They round against the reader: losses up, what is left down.

A loss is first cut after twelve digits: a charge of 0.1 is 0.1 rounded up to a multiple of 2^-80, and is to be told
as 0.1, not as 0.101. What is left is never told larger than it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

_UP = Context(prec=3, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)
_CUT = Context(prec=12, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN)
_DOWN = Context(prec=3, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN)


@dataclass(frozen=True)
class CellError:
    """The noise of one cell: its standard error and a 95 % interval; clipping is not in it."""

    stderr: float
    low: float
    high: float


def short_up(value: Fraction) -> str:
    """
    >>> short_up(Fraction(1, 3)), short_up(Fraction(1, 10) + Fraction(1, 2**80))
    ('0.334', '0.1')
    """
    return _text(_UP.plus(_CUT.divide(Decimal(value.numerator), Decimal(value.denominator))))


def short_down(value: Fraction) -> str:
    """
    >>> short_down(Fraction(2, 3)), short_down(Fraction(1, 10**9)), short_down(Fraction(8))
    ('0.666', '1e-9', '8')
    """
    return _text(_DOWN.divide(Decimal(value.numerator), Decimal(value.denominator)))


def short_left(left: Fraction, whole: Fraction) -> str:
    """What is left of a budget; less than a millionth of it is nothing.

    >>> short_left(Fraction(1, 3), Fraction(2)), short_left(Fraction(1, 10**16), Fraction(2))
    ('0.333', '0')
    """
    return short_down(left) if left * 10**6 >= whole else "0"


def _text(value: Decimal) -> str:
    value = value.normalize()
    plain = value == 0 or -4 <= value.adjusted() <= 6
    return f"{value:f}" if plain else f"{value:e}"
