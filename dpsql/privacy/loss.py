"""The privacy loss of a release, in exact rationals."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


class LossTooSmall(ValueError):
    """A loss or a probability is asked for that no noise we can draw, and no charge, is fine enough for."""


LOSS_DENOMINATOR = 1 << 80
"""Charges are whole multiples of 1/UNIT, so that sums of any length stay short (SOUNDNESS 7)."""


def round_up(value: Fraction) -> Fraction:
    return Fraction(-(-value.numerator * LOSS_DENOMINATOR // value.denominator), LOSS_DENOMINATOR)


def round_down(value: Fraction) -> Fraction:
    return Fraction(value.numerator * LOSS_DENOMINATOR // value.denominator, LOSS_DENOMINATOR)


@dataclass(frozen=True)
class Loss:
    """A `delta`-approximate `rho`-zCDP loss, and also a pure one where `epsilon` is not None.

    Privacy: losses add up under fully adaptive composition (Whitehouse et al. 2023); every
    figure is rounded up to a multiple of 2^-80 when the loss is made.
    """

    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if self.rho < 0 or self.delta < 0 or (self.epsilon is not None and self.epsilon < 0):
            raise ValueError("a loss is never negative")
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", round_up(self.epsilon))
        object.__setattr__(self, "rho", round_up(self.rho))
        object.__setattr__(self, "delta", round_up(self.delta))

    def __add__(self, other: Loss) -> Loss:
        epsilon = None if self.epsilon is None or other.epsilon is None else self.epsilon + other.epsilon
        return Loss(epsilon, self.rho + other.rho, self.delta + other.delta)


NO_LOSS = Loss(Fraction(0), Fraction(0), Fraction(0))


def sum_losses(losses: list[Loss] | tuple[Loss, ...]) -> Loss:
    result = NO_LOSS
    for loss in losses:
        result = result + loss
    return result
