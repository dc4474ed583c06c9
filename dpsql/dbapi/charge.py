"""What a statement was charged, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

_CUT = Context(prec=12, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN)
_DOWN = Context(prec=3, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN)
_UP = Context(prec=3, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)


@dataclass(frozen=True)
class Charge:
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

    def __str__(self) -> str:
        if not self:
            return "nothing"
        if self.pure_epsilon is not None:
            return f"epsilon {figure(self.pure_epsilon)}"
        selection = f", selection delta {figure(self.selection_delta)}" if self.selection_delta else ""
        return f"epsilon ≤ {figure(self.epsilon)} at delta {figure(self.delta)} (rho {figure(self.rho)}{selection})"


NOTHING = Charge(Fraction(0), Fraction(0), Fraction(0), Fraction(0), Fraction(0))


def figure(loss: Fraction) -> str:
    """A loss in three digits, rounded up; cut after twelve first, since 0.1 is charged as 0.1 + 2^-80.

    >>> figure(Fraction(1, 3)), figure(Fraction(1, 10) + Fraction(1, 2**80)), figure(Fraction(1, 10**9))
    ('0.334', '0.1', '1e-9')
    """
    return _text(_UP.plus(_CUT.divide(Decimal(loss.numerator), Decimal(loss.denominator))))


def figure_left(left: Fraction, whole: Fraction) -> str:
    """What is left of a whole, in three digits, rounded down; less than a millionth of it is nothing.

    >>> figure_left(Fraction(2, 3), Fraction(1)), figure_left(Fraction(1, 10**9), Fraction(1))
    ('0.666', '0')
    """
    return _text(_DOWN.divide(Decimal(left.numerator), Decimal(left.denominator))) if left * 10**6 >= whole else "0"


def _text(figure: Decimal) -> str:
    rounded = figure.normalize()
    plain = rounded == 0 or -4 <= rounded.adjusted() <= 6
    return f"{rounded:f}" if plain else f"{rounded:e}"
