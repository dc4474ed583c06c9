"""Figures for people, in three digits. They round against the reader: losses up, what is left down.

A loss is first cut after twelve digits: a charge of 0.1 is 0.1 rounded up to a multiple of 2^-80, and is to be told
as 0.1, not as 0.101. What is left is never told larger than it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from html import escape
from typing import Any

_UP = Context(prec=3, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)
_CUT = Context(prec=12, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN)
_DOWN = Context(prec=3, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN)


class Printed:
    """What reads best as its text: notebooks show that, and not its fields."""

    def _repr_html_(self) -> str:
        return f'<pre class="tex2jax_ignore mathjax_ignore">{escape(str(self))}</pre>'

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def __init_subclass__(cls) -> None:
        setattr(cls, "_repr_pretty_", Printed._repr_pretty_)  # noqa: B010  (IPython prefers a class's own __repr__)


@dataclass(frozen=True)
class CellError:
    """The noise of one cell: its standard error and a 95 % interval; clipping is not in it."""

    stderr: float
    low: float
    high: float


@dataclass(frozen=True)
class Charge(Printed):
    """The loss of one statement; all zero, and false, where its releases were paid for before.

    In total it is (`epsilon`, `delta`) differential privacy at most. The ledger adds up `rho` and
    `selection_delta`, or `pure_epsilon` where the noise was pure (None elsewhere).
    """

    epsilon: Fraction
    delta: Fraction
    rho: Fraction
    selection_delta: Fraction
    pure_epsilon: Fraction | None

    def __bool__(self) -> bool:
        return bool(self.rho or self.selection_delta or self.pure_epsilon)

    def __repr__(self) -> str:
        """In figures for people; the fields are exact."""
        pure = "None" if self.pure_epsilon is None else short_up(self.pure_epsilon)
        return (
            f"Charge(epsilon={short_up(self.epsilon)}, delta={short_up(self.delta)}, rho={short_up(self.rho)}, "
            f"selection_delta={short_up(self.selection_delta)}, pure_epsilon={pure})"
        )

    def __str__(self) -> str:
        if not self:
            return "nothing"
        if self.pure_epsilon is not None:
            return f"epsilon {short_up(self.pure_epsilon)}"
        selection = f", selection delta {short_up(self.selection_delta)}" if self.selection_delta else ""
        rho = f"(rho {short_up(self.rho)}{selection})"
        return f"epsilon ≤ {short_up(self.epsilon)} at delta {short_up(self.delta)} {rho}"


NOTHING = Charge(Fraction(0), Fraction(0), Fraction(0), Fraction(0), Fraction(0))


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
