"""What a median by its local sensitivity loses, from the record of it: a part of `checker`, and as independent.

Neighbors differ in at most `blocks` blocks, in each by at most `steps` values that come or go.

    smooth      Noise of scale 2S/epsilon, S a bound on the local sensitivity that falls off by e^-rate for each step:
                scales of neighbors are within a factor 1 + h, h = e^(steps rate) - 1. Shifting costs e^(epsilon/2).
                Stretching costs e^(epsilon/2) but where |x| > y = b epsilon/(2h), which the wider of both exceeds with
                probability 2 q^(floor(y) + 1)/(1 + q) < 2 e^(-y/b) = 2 e^(-epsilon/(2h)). So (epsilon, delta)-DP, which
                is delta-approximate (epsilon^2/2)-zCDP: with probability 1 - delta a pure epsilon.
    ptr         Two Laplace draws of epsilon each, if the median moves by at most what was proposed: rho = epsilon^2.
                Else the distance is 0 on both sides, and both are silent unless Y > limit, Y of scale steps/epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

_DECIMAL_CONTEXT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)


@dataclass(frozen=True)
class SmoothMedianRecord:
    epsilon: Fraction
    rate: Fraction
    steps: int
    blocks: int

    @property
    def loss_figures(self) -> tuple[Fraction, Fraction]:
        """rho and delta."""
        with localcontext(_DECIMAL_CONTEXT):
            grown = _to_decimal(self.steps * self.rate).exp() - 1
            delta = 2 * (-_to_decimal(self.epsilon) / (2 * grown)).exp()
        return self.blocks * self.epsilon**2 / 2, min(Fraction(1), self.blocks * Fraction(delta))


@dataclass(frozen=True)
class PtrMedianRecord:
    epsilon: Fraction
    proposal: int
    limit: int
    steps: int
    blocks: int

    @property
    def loss_figures(self) -> tuple[Fraction, Fraction]:
        """rho and delta."""
        with localcontext(_DECIMAL_CONTEXT):  # q^(limit + 1) / (1 + q): a geometric series over another
            rate = _to_decimal(-self.epsilon / self.steps)
            delta = ((self.limit + 1) * rate).exp() / (1 + rate.exp())
        return self.blocks * self.epsilon**2, min(Fraction(1), self.blocks * Fraction(delta))


LocalMedianRecord = SmoothMedianRecord | PtrMedianRecord


def read_median(part: dict[str, Any], weights: dict[str, Any]) -> LocalMedianRecord:
    """ValueError, KeyError or TypeError if it is not understood to the last name, or says that neighbors differ by less
    than units with these weights, one value in each of `norm` groups, can make them."""
    steps = _read_median_figure(weights["group_size"]) * (2 if weights["change_one"] else 1)
    blocks = Fraction(1) if weights["single"] else max(steps, _read_median_figure(weights["norm"]))
    names = {"smooth": ("rate",), "ptr": ("proposal", "limit")}[part["kind"]]
    if part.keys() != {"kind", "epsilon", "steps", "blocks", *names}:
        raise ValueError("a median has other names")
    figures = {name: _read_median_figure(part[name]) for name in ("epsilon", "steps", "blocks", *names)}
    if any(figures[name].denominator != 1 for name in figures if name not in ("epsilon", "rate")):
        raise ValueError("a median has a fraction where it needs a whole number")
    if figures["steps"] < steps or figures["blocks"] < blocks:
        raise ValueError("a median is said to move less than its neighbors do")
    epsilon, moved = figures["epsilon"], (int(figures["steps"]), int(figures["blocks"]))
    if part["kind"] == "smooth":
        return SmoothMedianRecord(epsilon, figures["rate"], *moved)
    return PtrMedianRecord(epsilon, int(figures["proposal"]), int(figures["limit"]), *moved)


def _read_median_figure(text: Any) -> Fraction:
    if not isinstance(text, str) or (value := Fraction(text)) <= 0:
        raise ValueError("a median has a figure that is no positive number")
    return value


def _to_decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
