"""A synthetic table out of its definition and its release: columns for the catalog, rows for post-processing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dpsql.errors import IntegrityError
from dpsql.ledger.base import Made
from dpsql.objects.within import Within, array_within, read_within, small
from dpsql.option_names import MADE_BY
from dpsql.plain import tell, told
from dpsql.plan.stages import Axis, Bins
from dpsql.post.arrays import Coded, Numbered
from dpsql.post.tables import bin_value
from dpsql.privacy.release import from_bytes
from dpsql.privacy.synthesis import ROW
from dpsql.schema.domain import Domain, to_number
from dpsql.schema.model import Column, MadeTable
from dpsql.types import parse_type

Arrays = tuple[Coded | Numbered, ...]


def write_axes(axes: Sequence[Axis]) -> list[dict[str, Any]]:
    return [_write(axis) for axis in axes]


def _write(axis: Axis) -> dict[str, Any]:
    part: dict[str, Any] = {"name": axis.name, "type": str(axis.type), "null": axis.null}
    if axis.values is not None:
        part["values"] = [tell(value) for value in axis.values]
    if axis.bins is not None:
        bins = axis.bins
        part["bins"] = {"lower": bins.lower, "upper": bins.upper, "grid": str(bins.grid), "discrete": bins.discrete}
    return part


def read_axes(parts: Sequence[dict[str, Any]]) -> tuple[Axis, ...]:
    """What `write_axes` wrote."""
    return tuple(_read(part) for part in parts)


def _read(part: dict[str, Any]) -> Axis:
    type_ = parse_type(part["type"])
    if type_ is None:
        raise IntegrityError("the definition of a synthetic table is damaged")
    values, bins = None, None
    if "values" in part:
        values = tuple(told(value) for value in part["values"])
    if "bins" in part:
        found = part["bins"]
        bins = Bins(found["lower"], found["upper"], Fraction(found["grid"]), type_, found["discrete"])
    return Axis(part["name"], type_, values, bins, part["null"])


def read_definition(made: Made) -> tuple[Axis, ...]:
    return read_axes(json.loads(made.definition)["axes"])


def table_of(made: Made, key: str) -> MadeTable:
    """As the catalog shows it."""
    definition = json.loads(made.definition)
    axes = zip(read_axes(definition["axes"]), definition["within"], strict=True)
    columns = tuple(Column(axis.name, _domain(axis, read_within(within))) for axis, within in axes)
    return MadeTable(made.name, key, columns, MADE_BY + definition["statement"])


def _domain(axis: Axis, within: Within | None) -> Domain:
    """What its rows can have, by the definition alone: bounds and values of what it was made of, or released ones."""
    domain = Domain(axis.type, values=axis.values)
    if axis.bins is None:
        if not axis.values or not (axis.type.is_number or axis.type.is_time):
            return domain
        numbers = [to_number(value) for value in axis.values]
        return domain.with_bounds(min(numbers), max(numbers))
    lower, upper = (axis.bins.lower, axis.bins.upper) if within is None else within.ends(axis)
    step = axis.bins.grid if within is None else within.step
    low, high = axis.bins.origin + lower * step, axis.bins.origin + upper * step
    whole = axis.type.is_integer or axis.type.is_time  # a value is the nearest whole number
    return domain.with_bounds(Fraction(round(low)), Fraction(round(high))) if whole else domain.with_bounds(low, high)


def arrays_of(made: Made, body: bytes) -> Arrays:
    """The columns of the table: its release has codes for each, and places within bins for those that have bins."""
    definition = json.loads(made.definition)
    axes = read_axes(definition["axes"])
    parts, _, *cells = from_bytes(body).cells
    rows = parts == ROW
    offsets = iter(cells[len(axes) :])
    columns: list[Coded | Numbered] = []
    for axis, codes, part in zip(axes, cells, definition["within"], strict=False):
        within = read_within(part)
        if within is None:
            columns.append(Coded(small(codes[rows], axis.size), tuple(values_of(axis, range(axis.size)))))
        else:
            columns.append(array_within(axis, within, codes[rows], next(offsets)[rows]))
    return tuple(columns)


def values_of(axis: Axis, codes: Sequence[int]) -> list[Any]:
    """The values that codes from 0 on stand for."""

    def value(code: int) -> Any:
        if is_null(axis, code):
            return None
        if axis.values is not None:
            return axis.values[code]
        assert axis.bins is not None
        return bin_value(code + axis.bins.lower, axis.bins)

    return [value(code) for code in codes]


def is_null(axis: Axis, code: int) -> bool:
    return axis.null and code == axis.size - 1
