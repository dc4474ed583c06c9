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
from dpsql.post.arrays import MAX_DECIMAL_SCALE, DictionaryColumn, NumericColumn
from dpsql.post.tables import bin_to_value
from dpsql.types import Kind, Type

STEPS_PER_BIN = 1024
"""Steps of a bin where the column has no grid of its own."""
MAX_EXACT_DOUBLE = 1 << 53
"""Whole numbers up to here are doubles, and of two such doubles the quotient is the nearest to that of the numbers."""

MAX_DOUBLED_INTEGER = 1 << 61
"""Numbers of 64 bits that can be doubled."""

IntArray = npt.NDArray[np.integer[Any]]

MAX_STEPS = 1 << 52
"""Steps between the bounds, as a draw of 53 bits reaches them all; of wider columns only some values are made."""


@dataclass(frozen=True)
class BinSampler:
    """Of each code, the first value of its bin and how many there are, in steps of `step`."""

    step: Fraction
    firsts: tuple[int, ...]
    widths: tuple[int, ...]

    def value_at(self, code: int, offset: int, bins: Bins) -> Any:
        return bin_to_value(self.firsts[code] + offset, replace(bins, grid=self.step))

    def value_range(self, axis: Axis) -> tuple[int, int]:
        """The first and the last value, in steps."""
        last = axis.size - 1 - axis.null
        return self.firsts[0], self.firsts[last] + self.widths[last] - 1

    def to_json(self) -> dict[str, Any]:
        return {"step": str(self.step), "firsts": list(self.firsts), "widths": list(self.widths)}


def read_bin_sampler(part: dict[str, Any] | None) -> BinSampler | None:
    if part is None:
        return None
    return BinSampler(Fraction(part["step"]), tuple(part["firsts"]), tuple(part["widths"]))


def build_bin_sampler(axis: Axis, bounds: tuple[Fraction, Fraction], declared: Fraction | None) -> BinSampler | None:
    """None where every code is one value. A bin reaches half-way to its neighbors, the outer ones to the bounds."""
    bins = axis.bins
    if bins is None:
        return None
    step = declared or _natural_step(bins.type) or bins.grid / STEPS_PER_BIN
    step *= max(1, ((bounds[1] - bounds[0]) / (step * MAX_STEPS)).__ceil__())
    borders = [(2 * code + 1) * bins.grid / 2 for code in range(bins.lower, bins.upper)]
    ends = [bounds[0], *borders]
    firsts = [(end / step).__ceil__() for end in ends]
    firsts.append((bounds[1] / step).__floor__() + 1)
    widths = [max(1, after - first) for first, after in pairwise(firsts)]
    if all(width == 1 for width in widths):
        return None
    null = [1] if axis.null else []
    return BinSampler(step, (*firsts[:-1], *(0 for _ in null)), (*widths, *null))


def _natural_step(type_: Type) -> Fraction | None:
    if type_.kind is Kind.DECIMAL:
        return Fraction(1, 10 ** (type_.scale or 0))
    return Fraction(1) if type_.is_integer or type_.is_time else None


# --- all rows at once ------------------------------------------------------------------------------------------------


def sample_to_array(axis: Axis, within: BinSampler, codes: IntArray, offsets: IntArray) -> DictionaryColumn | NumericColumn:
    """`BinSampler.value_at` of each row, or NULL."""
    bins = axis.bins
    assert bins is not None
    null = codes == axis.size - 1 if axis.null else np.zeros(len(codes), dtype=bool)
    scale = _step_scale_of(within, bins)
    if scale is None:
        return _dictionary_column(within, bins, codes, np.where(null, 0, offsets), null)
    numerators = scale.first + scale.each * (np.array(within.firsts, dtype=np.int64)[codes] + offsets)
    numbers = _divide_half_even(numerators, scale.below) if _is_integral(bins) else numerators / scale.below
    return NumericColumn(np.ma.MaskedArray(numbers, mask=null))


def shrink_codes(codes: IntArray, size: int) -> IntArray:
    return codes.astype(np.min_scalar_type(size))


@dataclass(frozen=True)
class _StepScale:
    """Place p is at (first + p * each) / below."""

    first: int
    each: int
    below: int


def _step_scale_of(within: BinSampler, bins: Bins) -> _StepScale | None:
    """In units of the type's last digit. None where numbers of 64 bits, or doubles, do not hold the values exactly."""
    digits = bins.type.scale or 0 if bins.type.kind is Kind.DECIMAL else 0
    if digits > MAX_DECIMAL_SCALE or not (_is_integral(bins) or bins.type.is_float):
        return None
    origin, step = bins.origin * 10**digits, within.step * 10**digits
    below = lcm(origin.denominator, step.denominator)
    scale = _StepScale(int(origin * below), int(step * below), below)
    farthest = max(abs(first) + width for first, width in zip(within.firsts, within.widths, strict=True))
    limit = MAX_DOUBLED_INTEGER if _is_integral(bins) else MAX_EXACT_DOUBLE
    return scale if max(abs(scale.first) + abs(scale.each) * farthest, below) <= limit else None


def _is_integral(bins: Bins) -> bool:
    """Whether a value is a number of days, of microseconds or of last digits."""
    type_ = bins.type
    return bins.discrete and (type_.is_integer or type_.is_time or type_.kind is Kind.DECIMAL)


def _divide_half_even(numerators: IntArray, below: int) -> IntArray:
    """As `round` does with a Fraction."""
    quotient, rest = np.divmod(numerators, below)
    up = (2 * rest > below) | ((2 * rest == below) & (quotient % 2 == 1))
    rounded: IntArray = quotient + up
    return rounded


def _dictionary_column(within: BinSampler, bins: Bins, codes: IntArray, offsets: IntArray, null: npt.NDArray[np.bool_]) -> DictionaryColumn:
    """By the values that differ, of which NULL is the last."""
    pairs, indexes = np.unique(np.stack([codes, offsets]), axis=1, return_inverse=True)
    values = [within.value_at(code, offset, bins) for code, offset in pairs.T.tolist()]
    return DictionaryColumn(shrink_codes(np.where(null, len(values), indexes.reshape(-1)), len(values)), (*values, None))
