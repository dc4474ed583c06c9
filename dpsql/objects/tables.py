"""A synthetic table out of its definition and its release: columns for the catalog, rows for post-processing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dpsql.errors import IntegrityError
from dpsql.ledger.base import CreatedObject
from dpsql.objects.within import BinSampler, sample_to_array, read_bin_sampler, shrink_codes
from dpsql.option_names import SYNTHETIC_PREFIX
from dpsql.plain import dumps, loads
from dpsql.plan.stages import Axis, Bins
from dpsql.post.arrays import DictionaryColumn, NumericColumn
from dpsql.post.tables import bin_to_value
from dpsql.privacy.release import release_from_bytes
from dpsql.privacy.synthesis import ROW
from dpsql.schema.domain import Domain, to_number
from dpsql.schema.model import Column, MadeTable
from dpsql.types import parse_type

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
    return part


def axes_from_json(parts: Sequence[dict[str, Any]]) -> tuple[Axis, ...]:
    """What `axes_to_json` wrote."""
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
        bins = Bins(bin_part["lower"], bin_part["upper"], Fraction(bin_part["grid"]), type_, bin_part["discrete"])
    return Axis(part["name"], type_, values, bins, part["null"])


def definition_axes(stored: CreatedObject) -> tuple[Axis, ...]:
    return axes_from_json(json.loads(stored.definition)["axes"])


def build_catalog_table(stored: CreatedObject, key: str) -> MadeTable:
    """As the catalog shows it."""
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
    return domain.with_bounds(Fraction(round(low)), Fraction(round(high))) if integral else domain.with_bounds(low, high)


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
            columns.append(DictionaryColumn(shrink_codes(codes[rows], axis.size), tuple(decode_values(axis, range(axis.size)))))
        else:
            columns.append(sample_to_array(axis, within, codes[rows], next(offsets)[rows]))
    return tuple(columns)


def decode_values(axis: Axis, codes: Sequence[int]) -> list[Any]:
    """The values that codes from 0 on stand for."""

    def value(code: int) -> Any:
        if is_null_code(axis, code):
            return None
        if axis.values is not None:
            return axis.values[code]
        assert axis.bins is not None
        return bin_to_value(code + axis.bins.lower, axis.bins)

    return [value(code) for code in codes]


def is_null_code(axis: Axis, code: int) -> bool:
    return axis.null and code == axis.size - 1
