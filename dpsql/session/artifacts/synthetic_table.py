"""A synthetic table out of its definition and its release: columns for the catalog, rows for post-processing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.base.option_names import SYNTHETIC_PREFIX
from dpsql.base.serialization import dumps, loads
from dpsql.compiler.plan.steps import Axis, Bins
from dpsql.errors import IntegrityError
from dpsql.ledger.base import CreatedObject
from dpsql.privacy.release import release_from_bytes
from dpsql.privacy.synthetic.synthesis import ROW
from dpsql.schema.model import Column, Domain, MadeTable, to_number
from dpsql.session.postprocess.release_tables import bin_to_value
from dpsql.session.postprocess.sandbox import MAX_DECIMAL_SCALE, DictionaryColumn, NumericColumn
from dpsql.types import Kind, Type, parse_type

# The values within a bin: a synthetic number or time lies anywhere in its bin, on the column's own grid.

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
    """The values in the bin of each code: the first of them and how many there are, in steps of `step`."""

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
    bounds = bounds[0] - bins.origin, bounds[1] - bins.origin
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


def sample_to_array(
    axis: Axis, within: BinSampler, codes: IntArray, offsets: IntArray
) -> DictionaryColumn | NumericColumn:
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


def _dictionary_column(
    within: BinSampler, bins: Bins, codes: IntArray, offsets: IntArray, null: npt.NDArray[np.bool_]
) -> DictionaryColumn:
    """By the values that differ, of which NULL is the last."""
    pairs, indexes = np.unique(np.stack([codes, offsets]), axis=1, return_inverse=True)
    values = [within.value_at(code, offset, bins) for code, offset in pairs.T.tolist()]
    return DictionaryColumn(
        shrink_codes(np.where(null, len(values), indexes.reshape(-1)), len(values)), (*values, None)
    )


TableArrays = tuple[DictionaryColumn | NumericColumn, ...]


def axes_to_json(axes: Sequence[Axis]) -> list[dict[str, Any]]:
    return [_axis_to_json(axis) for axis in axes]


def _axis_to_json(axis: Axis) -> dict[str, Any]:
    part: dict[str, Any] = {"name": axis.name, "type": str(axis.type), "null": axis.null}
    if axis.values is not None:
        part["values"] = [dumps(value) for value in axis.values]
    if axis.bins is not None:
        bins = axis.bins
        part["bins"] = {"lower": bins.lower, "upper": bins.upper, "grid": str(bins.grid), "discrete": bins.discrete}
        if bins.origin:
            part["bins"]["origin"] = str(bins.origin)
    return part


def axes_from_json(parts: Sequence[dict[str, Any]]) -> tuple[Axis, ...]:
    """Read what `axes_to_json` wrote."""
    return tuple(_axis_from_json(part) for part in parts)


def _axis_from_json(part: dict[str, Any]) -> Axis:
    type_ = parse_type(part["type"])
    if type_ is None:
        raise IntegrityError("the definition of a synthetic table is damaged")
    values, bins = None, None
    if "values" in part:
        values = tuple(loads(value) for value in part["values"])
    if "bins" in part:
        bin_part = part["bins"]
        grid, origin = Fraction(bin_part["grid"]), Fraction(bin_part.get("origin", 0))
        bins = Bins(bin_part["lower"], bin_part["upper"], grid, type_, bin_part["discrete"], origin)
    return Axis(part["name"], type_, values, bins, part["null"])


def definition_axes(stored: CreatedObject) -> tuple[Axis, ...]:
    return axes_from_json(json.loads(stored.definition)["axes"])


def build_catalog_table(stored: CreatedObject, key: str) -> MadeTable:
    """The table as the catalog shows it."""
    definition = json.loads(stored.definition)
    axes = zip(axes_from_json(definition["axes"]), definition["within"], strict=True)
    columns = tuple(Column(axis.name, _axis_domain(axis, read_bin_sampler(within))) for axis, within in axes)
    return MadeTable(stored.name, key, columns, SYNTHETIC_PREFIX + definition["statement"])


def _axis_domain(axis: Axis, within: BinSampler | None) -> Domain:
    """What its rows can have, by the definition alone: bounds and values of what it was made of, or released ones."""
    domain = Domain(axis.type, values=axis.values)
    if axis.bins is None:
        if not axis.values or not (axis.type.is_number or axis.type.is_time):
            return domain
        numbers = [to_number(value) for value in axis.values]
        return domain.with_bounds(min(numbers), max(numbers))
    lower, upper = (axis.bins.lower, axis.bins.upper) if within is None else within.value_range(axis)
    step = axis.bins.grid if within is None else within.step
    low, high = axis.bins.origin + lower * step, axis.bins.origin + upper * step
    integral = axis.type.is_integer or axis.type.is_time  # a value is the nearest whole number
    return (
        domain.with_bounds(Fraction(round(low)), Fraction(round(high))) if integral else domain.with_bounds(low, high)
    )


def build_arrays(stored: CreatedObject, body: bytes) -> TableArrays:
    """The columns of the table: its release has codes for each, and places within bins for those that have bins."""
    definition = json.loads(stored.definition)
    axes = axes_from_json(definition["axes"])
    parts, _, *cells = release_from_bytes(body).cells
    rows = parts == ROW
    offsets = iter(cells[len(axes) :])
    columns: list[DictionaryColumn | NumericColumn] = []
    for axis, codes, part in zip(axes, cells, definition["within"], strict=False):
        within = read_bin_sampler(part)
        if within is None:
            columns.append(
                DictionaryColumn(shrink_codes(codes[rows], axis.size), tuple(decode_values(axis, range(axis.size))))
            )
        else:
            columns.append(sample_to_array(axis, within, codes[rows], next(offsets)[rows]))
    return tuple(columns)


def decode_values(axis: Axis, codes: Sequence[int]) -> list[Any]:
    """The values that codes from 0 on stand for."""

    def decode_value(code: int) -> Any:
        if is_null_code(axis, code):
            return None
        if axis.values is not None:
            return axis.values[code]
        assert axis.bins is not None
        return bin_to_value(code + axis.bins.lower, axis.bins)

    return [decode_value(code) for code in codes]


def is_null_code(axis: Axis, code: int) -> bool:
    return axis.null and code == axis.size - 1
