"""A synthetic table out of its definition and its release: columns for the catalog, rows for post-processing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dpsql.errors import IntegrityError
from dpsql.ledger.base import Made
from dpsql.objects.within import Within, read_within
from dpsql.option_names import MADE_BY
from dpsql.plain import tell, told
from dpsql.plan.stages import Axis, Bins
from dpsql.post.tables import bin_value
from dpsql.privacy.release import from_bytes
from dpsql.privacy.synthesis import ROW
from dpsql.schema.domain import Domain
from dpsql.schema.model import Column, MadeTable
from dpsql.types import parse_type


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
    columns = tuple(Column(axis.name, Domain(axis.type)) for axis in read_axes(definition["axes"]))
    return MadeTable(made.name, key, columns, MADE_BY + definition["statement"])


def rows_of(made: Made, body: bytes) -> list[list[Any]]:
    """The columns of the table: its release has codes for each, and places within bins for those that have bins."""
    definition = json.loads(made.definition)
    axes = read_axes(definition["axes"])
    parts, _, *cells = from_bytes(body).cells
    rows = parts == ROW
    offsets = iter(cells[len(axes) :])
    columns = []
    for axis, codes, part in zip(axes, cells, definition["within"], strict=False):
        within = read_within(part)
        if within is None:
            columns.append(values_of(axis, codes[rows].tolist()))
        else:
            columns.append(values_within(axis, within, codes[rows].tolist(), next(offsets)[rows].tolist()))
    return columns


def values_of(axis: Axis, codes: Sequence[int]) -> list[Any]:
    """The values that codes from 0 on stand for."""
    known: dict[int, Any] = {}

    def value(code: int) -> Any:
        if is_null(axis, code):
            return None
        if axis.values is not None:
            return axis.values[code]
        assert axis.bins is not None
        return bin_value(code + axis.bins.lower, axis.bins)

    return [known[code] if code in known else known.setdefault(code, value(code)) for code in codes]


def values_within(axis: Axis, within: Within, codes: Sequence[int], offsets: Sequence[int]) -> list[Any]:
    """The values at places within the bins of codes."""
    bins = axis.bins
    assert bins is not None
    pairs = zip(codes, offsets, strict=True)
    return [None if is_null(axis, code) else within.value(code, offset, bins) for code, offset in pairs]


def is_null(axis: Axis, code: int) -> bool:
    return axis.null and code == axis.size - 1
