"""The values within a bin: a synthetic number or time lies anywhere in its bin, on the column's own grid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from dpsql.plan.stages import Axis, Bins
from dpsql.post.tables import bin_value
from dpsql.types import Kind, Type

FINE = 1024
"""Steps of a bin where the column has no grid of its own."""

MOST = 1 << 52
"""Steps between the bounds, as a draw of 53 bits reaches them all; of wider columns only some values are made."""


@dataclass(frozen=True)
class Within:
    """Of each code, the first value of its bin and how many there are, in steps of `step`."""

    step: Fraction
    firsts: tuple[int, ...]
    widths: tuple[int, ...]

    def value(self, code: int, offset: int, bins: Bins) -> Any:
        return bin_value(self.firsts[code] + offset, replace(bins, grid=self.step))

    def written(self) -> dict[str, Any]:
        return {"step": str(self.step), "firsts": list(self.firsts), "widths": list(self.widths)}


def read_within(part: dict[str, Any] | None) -> Within | None:
    if part is None:
        return None
    return Within(Fraction(part["step"]), tuple(part["firsts"]), tuple(part["widths"]))


def within_bins(axis: Axis, bounds: tuple[Fraction, Fraction], declared: Fraction | None) -> Within | None:
    """None where every code is one value. A bin reaches half-way to its neighbors, the outer ones to the bounds."""
    bins = axis.bins
    if bins is None:
        return None
    step = declared or _natural(bins.type) or bins.grid / FINE
    step *= max(1, ((bounds[1] - bounds[0]) / (step * MOST)).__ceil__())
    borders = [(2 * code + 1) * bins.grid / 2 for code in range(bins.lower, bins.upper)]
    ends = [bounds[0], *borders]
    firsts = [(end / step).__ceil__() for end in ends]
    firsts.append((bounds[1] / step).__floor__() + 1)
    widths = [max(1, after - first) for first, after in pairwise(firsts)]
    if all(width == 1 for width in widths):
        return None
    null = [1] if axis.null else []
    return Within(step, (*firsts[:-1], *(0 for _ in null)), (*widths, *null))


def _natural(type_: Type) -> Fraction | None:
    if type_.kind is Kind.DECIMAL:
        return Fraction(1, 10 ** (type_.scale or 0))
    return Fraction(1) if type_.is_integer or type_.is_time else None
