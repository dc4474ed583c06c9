"""What a statement was charged, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsql.figures import short_up


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
            return f"epsilon {short_up(self.pure_epsilon)}"
        selection = f", selection delta {short_up(self.selection_delta)}" if self.selection_delta else ""
        rho = f"(rho {short_up(self.rho)}{selection})"
        return f"epsilon ≤ {short_up(self.epsilon)} at delta {short_up(self.delta)} {rho}"


NOTHING = Charge(Fraction(0), Fraction(0), Fraction(0), Fraction(0), Fraction(0))
