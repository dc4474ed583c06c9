"""Charges and errors as figures of three digits, rounded against the reader: losses up, what is left down.

A loss is first cut after twelve digits: a charge of 0.1 is 0.1 rounded up to a multiple of 2^-80, and is to be told
as 0.1, not as 0.101. What is left is never told larger than it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from html import escape
from typing import Any

_ROUND_UP = Context(prec=3, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)
_TRUNCATE = Context(prec=12, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN)
_ROUND_DOWN = Context(prec=3, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN)


class TextRepr:
    """What reads best as its text: notebooks show that, and not its fields."""

    def _repr_html_(self) -> str:
        return f'<pre class="tex2jax_ignore mathjax_ignore">{escape(str(self))}</pre>'

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def __init_subclass__(cls) -> None:
        setattr(cls, "_repr_pretty_", TextRepr._repr_pretty_)  # noqa: B010  (IPython prefers a class's own __repr__)


@dataclass(frozen=True)
class CellError:
    """How far one cell may be off: the standard error of its noise, and a 95 % interval of noise and clipping together.

    `clipped` is the part of the interval that is for units which were scaled down: how far that may have moved the
    answer, but for units too few to be seen. It is 0 where the statement scales none, and None where it is not known.
    """

    stderr: float
    low: float
    high: float
    clipped: float | None = None


@dataclass(frozen=True)
class Charge(TextRepr):
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
        pure = "None" if self.pure_epsilon is None else format_rounded_up(self.pure_epsilon)
        return (
            f"Charge(epsilon={format_rounded_up(self.epsilon)}, delta={format_rounded_up(self.delta)}, "
            f"rho={format_rounded_up(self.rho)}, "
            f"selection_delta={format_rounded_up(self.selection_delta)}, pure_epsilon={pure})"
        )

    def __str__(self) -> str:
        if not self:
            return "nothing"
        if self.pure_epsilon is not None:
            return f"epsilon {format_rounded_up(self.pure_epsilon)}"
        selection = f", selection delta {format_rounded_up(self.selection_delta)}" if self.selection_delta else ""
        rho = f"(rho {format_rounded_up(self.rho)}{selection})"
        return f"epsilon ≤ {format_rounded_up(self.epsilon)} at delta {format_rounded_up(self.delta)} {rho}"


NO_CHARGE = Charge(Fraction(0), Fraction(0), Fraction(0), Fraction(0), Fraction(0))


def format_rounded_up(value: Fraction) -> str:
    """
    >>> format_rounded_up(Fraction(1, 3)), format_rounded_up(Fraction(1, 10) + Fraction(1, 2**80))
    ('0.334', '0.1')
    """
    return _format_decimal(_ROUND_UP.plus(_TRUNCATE.divide(Decimal(value.numerator), Decimal(value.denominator))))


def format_rounded_down(value: Fraction) -> str:
    """
    >>> format_rounded_down(Fraction(2, 3)), format_rounded_down(Fraction(1, 10**9)), format_rounded_down(Fraction(8))
    ('0.666', '1e-9', '8')
    """
    return _format_decimal(_ROUND_DOWN.divide(Decimal(value.numerator), Decimal(value.denominator)))


def format_remaining(remaining: Fraction, total: Fraction) -> str:
    """What is left of a budget; less than a millionth of it is nothing.

    >>> format_remaining(Fraction(1, 3), Fraction(2)), format_remaining(Fraction(1, 10**16), Fraction(2))
    ('0.333', '0')
    """
    return format_rounded_down(remaining) if remaining * 10**6 >= total else "0"


def _format_decimal(value: Decimal) -> str:
    value = value.normalize()
    plain = value == 0 or -4 <= value.adjusted() <= 6
    return f"{value:f}" if plain else f"{value:e}"
