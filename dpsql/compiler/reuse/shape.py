"""What a stored release holds, as text that the ledger keeps beside it: which rows, keys and cells, no value of any.

Two releases with the same `rows` aggregate the same relation under the same declarations and caps; they differ in the
conditions that rows must meet, in their keys and in their cells.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Any

from dpsql.errors import IntegrityError

SHAPE_FORMAT = 1

CellForm = tuple[tuple[str, Fraction], ...]
"""What a cell adds up to, in the units of its values: sums over a group's rows, by their text, with coefficients."""


class CellKind(Enum):
    """How a unit's rows enter a cell, and so which groups of cells may be added up."""

    ROWS = "rows"  # every row counts as it is
    WEIGHED = "weighed"  # all rows of a unit are scaled by one weight
    UNITS = "units"  # a unit counts once in each group
    DISTINCT = "distinct"  # equal values count once in each group


@dataclass(frozen=True)
class KeyShape:
    """`text` is its canonical expression. `listing` says by which public rows it is listed, if by any.

    `present` is the condition, as text, that keeps rows out where the key is NULL and NULL is no group. `complete`:
    every other row is in a listed group. `by_unit`: all rows of a unit have the same value.
    """

    text: str
    selected: bool
    listing: str | None
    complete: bool
    by_unit: bool
    present: str | None


@dataclass(frozen=True)
class CellShape:
    """A column of the release. `capped`: a unit is in a limited number of groups, which depend on all of its rows.

    `spread`: a unit's rows are weighed by the L2 norm of their numbers in several groups.
    """

    name: str
    kind: CellKind
    capped: bool
    spread: bool
    form: CellForm


@dataclass(frozen=True)
class ReleaseShape:
    """`conditions` are the canonical texts of what every row meets; `cells` are in the order of the release's columns,
    with None for the one that a selection counts in; `selection` is the text of how groups are selected."""

    rows: str
    conditions: tuple[str, ...]
    keys: tuple[KeyShape, ...]
    cells: tuple[CellShape | None, ...]
    selection: str | None

    @cached_property
    def text(self) -> str:
        return shape_to_text(self)


def shape_to_text(shape: ReleaseShape) -> str:
    keys = [[k.text, k.selected, k.listing, k.complete, k.by_unit, k.present] for k in shape.keys]
    cells = [None if cell is None else _write_cell(cell) for cell in shape.cells]
    document = {"dpsql_shape": SHAPE_FORMAT, "rows": shape.rows, "conditions": list(shape.conditions), "keys": keys,
                "cells": cells, "selection": shape.selection}  # fmt: skip
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


def shape_from_text(text: str) -> ReleaseShape | None:
    """The shape that `shape_to_text` wrote; None where another version of dpsql did, which knew other shapes."""
    try:
        document = json.loads(text)
        if document["dpsql_shape"] != SHAPE_FORMAT:
            return None
        return ReleaseShape(
            rows=document["rows"],
            conditions=tuple(document["conditions"]),
            keys=tuple(KeyShape(*key) for key in document["keys"]),
            cells=tuple(None if cell is None else _read_cell(cell) for cell in document["cells"]),
            selection=document["selection"],
        )
    except (ValueError, KeyError, TypeError, ArithmeticError) as error:
        raise IntegrityError("the stored description of a release is damaged") from error


def _write_cell(cell: CellShape) -> list[Any]:
    form = [[atom, str(number)] for atom, number in cell.form]
    return [cell.name, cell.kind.value, cell.capped, cell.spread, form]


def _read_cell(stored: list[Any]) -> CellShape:
    name, kind, capped, spread, form = stored
    return CellShape(name, CellKind(kind), capped, spread, tuple((atom, Fraction(number)) for atom, number in form))
