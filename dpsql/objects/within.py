"""The values within a bin: a synthetic number or time lies anywhere in its bin, on the column's own grid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.plan.stages import Axis, Bins
from dpsql.post.arrays import MOST_SCALE, Coded, Numbered
from dpsql.post.tables import bin_value
from dpsql.types import Kind, Type

FINE = 1024
"""Steps of a bin where the column has no grid of its own."""
EXACT = 1 << 53
"""Whole numbers up to here are doubles, and of two such doubles the quotient is the nearest to that of the numbers."""

WHOLE = 1 << 61
"""Numbers of 64 bits that can be doubled."""

Ints = npt.NDArray[np.integer[Any]]

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

    def ends(self, axis: Axis) -> tuple[int, int]:
        """The first and the last value, in steps."""
        last = axis.size - 1 - axis.null
        return self.firsts[0], self.firsts[last] + self.widths[last] - 1

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


# --- all rows at once ------------------------------------------------------------------------------------------------


def array_within(axis: Axis, within: Within, codes: Ints, offsets: Ints) -> Coded | Numbered:
    """`Within.value` of each row, or NULL."""
    bins = axis.bins
    assert bins is not None
    null = codes == axis.size - 1 if axis.null else np.zeros(len(codes), dtype=bool)
    scale = _scale_of(within, bins)
    if scale is None:
        return _listed(within, bins, codes, np.where(null, 0, offsets), null)
    numerators = scale.first + scale.each * (np.array(within.firsts, dtype=np.int64)[codes] + offsets)
    numbers = _halves_to_even(numerators, scale.below) if _is_whole(bins) else numerators / scale.below
    return Numbered(np.ma.MaskedArray(numbers, mask=null))


def small(codes: Ints, size: int) -> Ints:
    return codes.astype(np.min_scalar_type(size))


@dataclass(frozen=True)
class _Scale:
    """Place p is at (first + p * each) / below."""

    first: int
    each: int
    below: int


def _scale_of(within: Within, bins: Bins) -> _Scale | None:
    """In units of the type's last digit. None where numbers of 64 bits, or doubles, do not hold the values exactly."""
    digits = bins.type.scale or 0 if bins.type.kind is Kind.DECIMAL else 0
    if digits > MOST_SCALE or not (_is_whole(bins) or bins.type.is_float):
        return None
    origin, step = bins.origin * 10**digits, within.step * 10**digits
    below = lcm(origin.denominator, step.denominator)
    scale = _Scale(int(origin * below), int(step * below), below)
    farthest = max(abs(first) + width for first, width in zip(within.firsts, within.widths, strict=True))
    most = WHOLE if _is_whole(bins) else EXACT
    return scale if max(abs(scale.first) + abs(scale.each) * farthest, below) <= most else None


def _is_whole(bins: Bins) -> bool:
    """Whether a value is a number of days, of microseconds or of last digits."""
    type_ = bins.type
    return bins.discrete and (type_.is_integer or type_.is_time or type_.kind is Kind.DECIMAL)


def _halves_to_even(numerators: Ints, below: int) -> Ints:
    """As `round` does with a Fraction."""
    whole, rest = np.divmod(numerators, below)
    up = (2 * rest > below) | ((2 * rest == below) & (whole % 2 == 1))
    found: Ints = whole + up
    return found


def _listed(within: Within, bins: Bins, codes: Ints, offsets: Ints, null: npt.NDArray[np.bool_]) -> Coded:
    """By the values that differ, of which NULL is the last."""
    pairs, places = np.unique(np.stack([codes, offsets]), axis=1, return_inverse=True)
    values = [within.value(code, offset, bins) for code, offset in pairs.T.tolist()]
    return Coded(small(np.where(null, len(values), places.reshape(-1)), len(values)), (*values, None))
