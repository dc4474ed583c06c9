"""Norms that nobody declared: which histograms of units choose them, and the plan with the norms that were chosen.

A slot is a place in a plan that takes such a norm: a cell of a `ClippedSum`, the rows of a `Weigh`, the groups of a
selection, the distinct values of a unit. It is known by the cell that it is for. Until its histogram is released the
slot holds a placeholder, with which nothing is run.

Privacy: a histogram is a release of its own, charged and stored before a norm is read from it. A slot's value changes
no sensitivity in steps that the schema does not bound anyway: whatever it is, the plan's own nodes enforce it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.compiler.analysis.units import derive_unit_facts
from dpsql.compiler.plan.aggregate import CountUnits, Distinct, Gather, Listed, ListedRange, Part, Sum, Weigh, cells_of
from dpsql.compiler.plan.clipped_sums import ClippedCell, ClippedSum, CountNorms, Norm, NormBinning
from dpsql.compiler.plan.expressions import Column
from dpsql.compiler.plan.relations import (
    Field,
    Filter,
    Join,
    Named,
    Project,
    PublicScan,
    Rows,
    Scan,
    has_uid,
    row_fields,
)
from dpsql.compiler.plan.walk import columns_of
from dpsql.types import BIGINT

NORM_BIN, NORM_CELL, NORM_VALUE = "norm_bin", "norm_units", "norm_value"
"""The names of a histogram's columns, and of the argument in its rows."""

MAX_ROWS_POWER = 40
"""A unit has at most 2^40 rows in any bin but the last."""

VALUE_POWERS = (-60, 130)
VALUE_GRIDS = tuple(Fraction(2) ** power for power in (-80, -55, -30, -5, 20, 45, 70, 95))
"""Of values, whatever their type and bounds: the bins, and public grids that are 2^25 apart. The largest decimal lies
within them; bounds may be far wider than the values, or far from the centre."""

FINE_BINS, COARSE_BINS, MANY_UNITS = 4, 1, 50_000
"""Bins to a doubling, and from how many units on there are more: finer ones hold fewer units each."""

UNKNOWN_GROUPS = 5
"""Groups that lost mass spreads over, where they are not listed. Too few only means that less is clipped."""

MAX_AUTOMATIC_CAP = 1 << 20
"""Of rows, groups and values that are capped one by one."""


@dataclass(frozen=True)
class NormRequest:
    """The histogram that a slot's norm is read from."""

    slot: str
    part: CountNorms
    groups: int
    whole: bool  # whether norms are whole numbers
    signed: bool = False  # whether sums may be negative

    @property
    def gather(self) -> Gather:
        """All bins are listed, so that empty ones have noise, too (CONTRIBUTIONS 5, rule 7)."""
        key = Field(NORM_BIN, BIGINT)
        listed = Listed((ListedRange(key, self.part.binning.first, self.part.binning.last),))
        return Gather((key,), listed, None, (self.part,))

    @property
    def is_l2(self) -> bool:
        return self.part.norm is Norm.L2 and bool(self.part.spread)


def find_norm_requests(gather: Gather, unfiltered: Rows, units: int | None) -> tuple[NormRequest, ...]:
    """`unfiltered` are the rows before those without a listed group were left out: a histogram of these serves every
    grouping. `units` is about how many units there are, if the owner said so."""
    per_doubling = FINE_BINS if units is not None and units >= MANY_UNITS else COARSE_BINS
    groups = gather.listed.count if gather.listed is not None and gather.selection is None else UNKNOWN_GROUPS
    if not gather.keys:
        groups = 1
    maker = _RequestMaker(unfiltered, per_doubling, max(1, groups))
    return tuple(request for part in gather.all_parts for request in maker.requests_of(part))


@dataclass(frozen=True)
class _RequestMaker:
    unfiltered: Rows
    per_doubling: int
    groups: int

    def requests_of(self, part: Part) -> list[NormRequest]:
        slot = cells_of(part)[0]
        if isinstance(part, ClippedSum):
            return [self._cell_request(part, cell) for cell in part.cells]
        if isinstance(part, CountUnits) and part.automatic:
            return [self._pair_request(slot, part.input, part.keys)]
        if isinstance(part, Sum) and isinstance(part.input, Weigh) and part.input.automatic:
            weigh = part.input
            return [self._row_request(slot, weigh.input, weigh.keys, weigh.norm, None)]
        if isinstance(part, Sum) and isinstance(part.input, Distinct) and part.input.automatic:
            pairs = part.input
            return [self._pair_request(slot, pairs.input, (*pairs.keys, *pairs.columns))]
        return []

    def _cell_request(self, part: ClippedSum, cell: ClippedCell) -> NormRequest:
        if cell.counts or (cell.arg is not None and _is_flag(cell)):
            # COUNT(x), COUNT with FILTER and sums of 0 and 1 have the norm of COUNT(*): one histogram for all of them.
            return self._row_request(cell.cell, part.input, part.spread, part.norm, part.copies)
        assert isinstance(cell.arg, Column)
        grouped = part.norm is Norm.L2 or not cell.non_negative
        spread = part.spread if grouped else ()
        rows, (arg, *keys) = self._project(part.input, (cell.arg.name, *spread))
        histogram = CountNorms(
            rows, tuple(key.name for key in keys), part.norm, self._bins(*VALUE_POWERS), NORM_BIN, NORM_CELL, arg,
            cell.center, cell.bounds, VALUE_GRIDS, copies=part.copies,
        )  # fmt: skip
        return NormRequest(cell.cell, histogram, self.groups, False, not cell.non_negative)

    def _row_request(
        self, slot: str, rows: Rows, spread: tuple[str, ...], norm: Norm, copies: int | None
    ) -> NormRequest:
        rows, keys = self._project(rows, spread if norm is Norm.L2 else ())
        names = tuple(key.name for key in keys)
        histogram = CountNorms(
            rows, names, norm, self._bins(0, MAX_ROWS_POWER), NORM_BIN, NORM_CELL, copies=copies
        )  # fmt: skip
        return NormRequest(slot, histogram, self.groups, norm is Norm.L1 or not names)

    def _pair_request(self, slot: str, rows: Rows, columns: tuple[str, ...]) -> NormRequest:
        rows, keys = self._project(rows, tuple(dict.fromkeys(columns)))  # a value may be asked for twice
        names = tuple(key.name for key in keys)
        histogram = CountNorms(
            rows, (), Norm.L1, self._bins(0, MAX_ROWS_POWER), NORM_BIN, NORM_CELL, distinct=names
        )  # fmt: skip
        return NormRequest(slot, histogram, self.groups, True)

    def _bins(self, first: int, last: int) -> NormBinning:
        return NormBinning(first * self.per_doubling, last * self.per_doubling, self.per_doubling)

    def _project(self, rows: Rows, names: tuple[str, ...]) -> tuple[Rows, tuple[Column, ...]]:
        """The rows with these columns alone, under names that are the same in every statement; of rows that are only
        narrowed, those that were there before groups were listed."""
        fields = {f.name: f.type for f in row_fields(rows)}
        renamed = {name: f"{NORM_VALUE}{number}" for number, name in enumerate(names, 1)}
        columns = tuple(Column(renamed[name], fields[name]) for name in names)
        if isinstance(rows, Project) and has_uid(rows) == has_uid(self.unfiltered):
            exprs = {column.name: column.expr for column in rows.columns}
            chosen: tuple[Named, ...] = tuple(Named(renamed[name], exprs[name]) for name in names)
            return _prune_columns(Project(self.unfiltered, chosen), frozenset(renamed.values())), columns
        passed: tuple[Named, ...] = tuple(Named(renamed[name], Column(name, fields[name])) for name in names)
        return Project(rows, passed), columns


def _prune_columns(node: Rows, needed: frozenset[str]) -> Rows:
    """The same rows without columns that nothing reads: so statements with other keys ask for the same histogram."""
    if isinstance(node, Scan | PublicScan):
        return replace(node, columns=tuple(column for column in node.columns if column.name in needed))
    if isinstance(node, Filter):
        return replace(node, input=_prune_columns(node.input, needed | columns_of(node.condition)))
    if isinstance(node, Project):
        read = frozenset(name for column in node.columns for name in columns_of(column.expr))
        return replace(node, input=_prune_columns(node.input, read))
    if isinstance(node, Join):
        read = needed | columns_of(node.condition)
        return replace(node, left=_prune_columns(node.left, read), right=_prune_columns(node.right, read))
    return node


def _is_flag(cell: ClippedCell) -> bool:
    return (
        cell.bounds is not None
        and not cell.center
        and 0 <= cell.bounds[0] <= cell.bounds[1] <= 1
        and (cell.arg is not None and cell.arg.type.is_integer)
    )


def apply_norms(gather: Gather, norms: Mapping[str, Fraction]) -> Gather:
    """The plan with these norms in its slots; others keep their placeholders."""
    selection = gather.selection
    if selection is not None and selection.cell in norms:
        selection = replace(selection, limit=_cap(norms[selection.cell]))
    return replace(gather, selection=selection, parts=tuple(_apply_to_part(part, norms) for part in gather.parts))


def _apply_to_part(part: Part, norms: Mapping[str, Fraction]) -> Part:
    if isinstance(part, ClippedSum):
        cells = (replace(cell, norm=norms.get(cell.cell, cell.norm)) for cell in part.cells)
        return replace(part, cells=tuple(cells))
    norm = norms.get(cells_of(part)[0])
    if norm is None:
        return part
    if isinstance(part, Sum) and isinstance(part.input, Weigh):
        return replace(part, input=replace(part.input, rows=_cap(norm)))
    if isinstance(part, Sum) and isinstance(part.input, Distinct):
        return replace(part, input=replace(part.input, limit=_cap(norm)))
    return replace(part, limit=_cap(norm)) if isinstance(part, CountUnits) else part


def _cap(norm: Fraction) -> int:
    return max(1, min(MAX_AUTOMATIC_CAP, math.ceil(norm)))


def clip_units(
    rows: Rows, keys: tuple[str, ...], groups: tuple[tuple[ClippedCell, ...], ...], norm: Norm
) -> tuple[ClippedSum, ...]:
    """A part for each group of cells that share a weight."""
    facts = derive_unit_facts(rows)
    spread = tuple(key for key in keys if key not in facts.determined)
    copies = None if has_uid(rows) else facts.rows
    return tuple(ClippedSum(rows, keys, spread, cells, norm, copies) for cells in groups)
