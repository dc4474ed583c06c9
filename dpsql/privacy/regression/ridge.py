"""How strongly a logistic model is held: ridge = strength * rows, where the rows are public or counted with noise.

The loss is a sum over rows, so the ridge grows with their number; and how many there are is private. Either the analyst
says a number, right or wrong, or a part of the budget is spent on a noisy count, from which the ridge follows. What a
minimiser's noise costs does not depend on the ridge: noise is given in steps of 1/ridge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpsql.privacy.loss import NO_LOSS, Loss
from dpsql.privacy.noise import (
    Gaussian,
    Laplace,
    Mechanism,
    calibrate_gaussian,
    calibrate_laplace,
    draw_noise,
    noise_loss,
    scale_of,
)
from dpsql.privacy.sampling import Sampler
from dpsql.privacy.weighted_rows import UnitMass, total_sensitivity

COUNT_SHARE = Fraction(1, 20)
"""Of a model's loss, where the rows are counted: the ridge needs no more than their order of magnitude."""
MIN_RIDGE = Fraction(1, 64)
"""In whole rows. Below it a minimiser moves by more than 64 times what a row weighs, and solving gets hard."""
MAX_ROWS = 1 << 40


@dataclass(frozen=True)
class RidgePenalty:
    """`strength` for each row, of so many `rows`, or of as many as are counted with the noise of `counting`."""

    strength: Fraction
    rows: int | None
    counting: Mechanism | None
    least: Fraction = MIN_RIDGE

    def __post_init__(self) -> None:
        if (self.rows is None) == (self.counting is None):
            raise ValueError("rows are public, or else they are counted")
        if self.strength <= 0 or self.least < MIN_RIDGE or (self.rows is not None and self.rows < 1):
            raise ValueError("a ridge is positive")

    def count_rows(self, weight: int, mass: UnitMass, sampler: Sampler) -> int:
        """The noisy weight of all rows; 0 where nobody asks.

        Privacy: the weight of all is one sum, which neighbors move by `mass.moved` at most.
        """
        if self.counting is None:
            return 0
        return max(-(1 << 62), min(1 << 62, weight)) + int(draw_noise(self.counting, 1, sampler)[0])

    def ridge_at(self, noisy_count: int, mass: UnitMass) -> Fraction:
        """The ridge, in whole rows, from what `count` gave."""
        rows = Fraction(noisy_count, mass.whole) if self.rows is None else Fraction(self.rows)
        return max(self.least, self.strength * max(Fraction(1), min(rows, Fraction(MAX_ROWS))))

    def explain_line(self, error: float) -> str:
        """What EXPLAIN says, of coefficients that err by `error` at a ridge of 1."""
        if self.rows is None:
            # At most: a ridge is never below `least`, however few rows are counted.
            each, most = error / float(self.strength), error / float(self.least)
            bound = f", and {most:.3g}" if self.least > MIN_RIDGE else ""
            return f"a noisy count of rows, n, comes first: coefficients err by at most {each:.3g} / n{bound}"
        ridge = max(self.least, self.strength * self.rows)
        return f"coefficients err by {error / float(ridge):.3g}, which does not depend on the rows"

    def count_loss(self, mass: UnitMass) -> Loss:
        return NO_LOSS if self.counting is None else noise_loss(self.counting, total_sensitivity(mass))

    def to_audit_record(self) -> dict[str, Any]:
        """The audit record of the count; nothing where the rows are public."""
        return {} if self.counting is None else {"count": noise_to_json(self.counting)}

    def to_json(self) -> dict[str, Any]:
        return {
            "strength": str(self.strength),
            "rows": None if self.rows is None else str(self.rows),
            "counting": None if self.counting is None else noise_to_json(self.counting),
            "least": str(self.least),
        }

    @classmethod
    def from_json(cls, part: dict[str, Any]) -> RidgePenalty:
        rows = None if part["rows"] is None else int(part["rows"])
        counting = None if part["counting"] is None else noise_from_json(part["counting"])
        return cls(Fraction(part["strength"]), rows, counting, Fraction(part["least"]))


def calibrate_ridge_by_epsilon(strength: Fraction, rows: int | None, mass: UnitMass, epsilon: Fraction) -> RidgePenalty:
    counting = None if rows is not None else calibrate_laplace(total_sensitivity(mass), epsilon)
    return RidgePenalty(strength, rows, counting)


def calibrate_ridge_by_rho(strength: Fraction, rows: int | None, mass: UnitMass, rho: Fraction) -> RidgePenalty:
    counting = None if rows is not None else calibrate_gaussian(total_sensitivity(mass), rho)
    return RidgePenalty(strength, rows, counting)


def noise_to_json(mechanism: Mechanism) -> dict[str, str]:
    return {"kind": "laplace" if isinstance(mechanism, Laplace) else "gaussian", "scale": str(scale_of(mechanism))}


def noise_from_json(part: dict[str, Any]) -> Mechanism:
    kinds: dict[str, Callable[[Fraction], Mechanism]] = {"laplace": Laplace, "gaussian": Gaussian}
    return kinds[part["kind"]](Fraction(part["scale"]))
