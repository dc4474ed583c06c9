"""Figures for people, in three digits. They round against the reader: losses up, what is left down."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

_UP = Context(prec=3, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)
_DOWN = Context(prec=3, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN)


def short_up(value: Fraction) -> str:
    """
    >>> short_up(Fraction(1, 3))
    '0.334'
    """
    return _text(_UP.divide(Decimal(value.numerator), Decimal(value.denominator)))


def short_down(value: Fraction) -> str:
    """
    >>> short_down(Fraction(2, 3)), short_down(Fraction(1, 10**9)), short_down(Fraction(8))
    ('0.666', '1e-9', '8')
    """
    return _text(_DOWN.divide(Decimal(value.numerator), Decimal(value.denominator)))


def _text(value: Decimal) -> str:
    value = value.normalize()
    plain = value == 0 or -4 <= value.adjusted() <= 6
    return f"{value:f}" if plain else f"{value:e}"
