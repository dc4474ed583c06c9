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
from types import MappingProxyType

from dpsql.compiler.analysis.units import derive_unit_facts
from dpsql.compiler.plan.aggregate import (
    CountUnits,
    Distinct,
    Gather,
    Listed,
    ListedRange,
    Part,
    Sum,
    Weigh,
    cells_of,
    count_set_groups,
    needs_norm,
)
from dpsql.compiler.plan.clipped_sums import ClippedCell, ClippedSum, CountMeans, CountNorms, Norm, NormBinning
from dpsql.compiler.plan.expressions import Column
from dpsql.compiler.plan.relations import (
    SET_COLUMN,
    Expand,
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
    rows_before_sets,
)
from dpsql.compiler.plan.walk import columns_of, walk_nodes
from dpsql.types import BIGINT

NORM_BIN, NORM_CELL, NORM_VALUE = "norm_bin", "norm_units", "norm_value"
"""The names of a histogram's columns, and of the argument in its rows."""

MAX_ROWS_POWER = 40
"""A unit has at most 2^40 rows in any bin but the last."""

VALUE_POWERS = (-60, 130)
"""The bins of values, whatever their type and bounds. The largest decimal lies within them; bounds may be far wider
than the values, or far from the centre."""

FINE_BINS, COARSE_BINS, MANY_UNITS = 4, 1, 50_000
"""Bins to a doubling, and from how many units on there are more: finer ones hold fewer units each."""

UNKNOWN_GROUPS = 5
"""Groups that lost mass spreads over, where they are not listed. Too few only means that less is clipped."""

MEAN_BINS = ((50_000, 8), (5_000, 4), (0, 1))
"""Bins of means to a doubling, from so many units on: the more units, the nearer to the mean a centre can be."""

MAX_AUTOMATIC_CAP = 1 << 20
"""Of rows, groups and values that are capped one by one."""


@dataclass(frozen=True)
class CenterRequest:
    """The histogram that the centre of a sum is read from; without one that tells, it stays where it is."""

    part: CountMeans
    bounds: tuple[Fraction, Fraction] | None

    @property
    def gather(self) -> Gather:
        return _gather_bins(self.part, -self.part.last, self.part.last)

    def limit(self, center: Fraction) -> Fraction:
        return center if self.bounds is None else min(max(center, self.bounds[0]), self.bounds[1])


@dataclass(frozen=True)
class NormRequest:
    """The histogram that a slot's norm is read from. Where the slot has a centre to be chosen, that comes first."""

    slot: str
    part: CountNorms
    groups: int
    whole: bool  # whether norms are whole numbers
    signed: bool = False  # whether sums may be negative
    sets: int = 1  # grouping sets of which each has this norm, in the same cell
    center: CenterRequest | None = None

    @property
    def gather(self) -> Gather:
        return _gather_bins(self.part, self.part.binning.first, self.part.binning.last)

    def about(self, center: Fraction) -> NormRequest:
        """The histogram about a centre that was chosen: on either side of it there may be values."""
        return replace(self, part=replace(self.part, center=center), center=None)

    @property
    def is_l2(self) -> bool:
        return self.part.norm is Norm.L2 and bool(self.part.spread)


def _gather_bins(part: CountNorms | CountMeans, first: int, last: int) -> Gather:
    """All bins are listed, so that empty ones have noise, too (docs/soundness.md 4)."""
    key = Field(NORM_BIN, BIGINT)
    return Gather((key,), Listed((ListedRange(key, first, last),)), None, (part,))


def find_norm_requests(gather: Gather, unfiltered: Rows, units: int | None) -> tuple[NormRequest, ...]:
    """`unfiltered` are the rows before those without a listed group were left out: a histogram of these serves every
    grouping. `units` is about how many units there are, if the owner said so."""
    per_doubling = FINE_BINS if units is not None and units >= MANY_UNITS else COARSE_BINS
    per_mean = next(bins for least, bins in MEAN_BINS if (units or 0) >= least)
    maker = _RequestMaker(unfiltered, per_doubling, per_mean)
    return tuple(
        replace(request, groups=_count_groups(part, gather))
        for part in gather.all_parts
        for request in maker.requests_of(part)
    )


def _count_groups(part: Part, gather: Gather) -> int:
    """The groups that what is lost of a cell spreads over: of a grouping set with cells of its own, those of the
    set."""
    one_set = part.input if isinstance(part, ClippedSum) and isinstance(part.input, Expand) else None
    if not gather.keys or (one_set is not None and one_set.sets == (frozenset(),)):
        return 1
    if gather.listed is None or gather.selection is not None:
        return UNKNOWN_GROUPS
    counts = count_set_groups(gather.listed)
    return max(1, gather.listed.count if one_set is None else counts.get(one_set.first, 0))


@dataclass(frozen=True)
class _RequestMaker:
    unfiltered: Rows
    per_doubling: int
    per_mean: int

    def requests_of(self, part: Part) -> list[NormRequest]:
        if not needs_norm(part):
            return []
        slot = cells_of(part)[0]
        if isinstance(part, ClippedSum):
            return [self._cell_request(part, cells[0]) for cells in part.bundles]
        if isinstance(part, CountUnits):
            return [self._pair_request(slot, part.input, part.keys, part.per_set)]
        assert isinstance(part, Sum)
        if isinstance(part.input, Weigh):
            weigh = part.input
            spread, sets = _coarsest_keys(weigh)
            request = self._row_request(slot, rows_before_sets(weigh.input), spread, weigh.norm, None)
            return [replace(request, sets=sets)]
        pairs = part.input
        assert isinstance(pairs, Distinct)
        return [self._pair_request(slot, pairs.input, (*pairs.keys, *pairs.columns), pairs.per_set)]

    def _cell_request(self, part: ClippedSum, cell: ClippedCell) -> NormRequest:
        if cell.counts or (cell.arg is not None and _is_flag(cell)):
            # COUNT(x), COUNT with FILTER and sums of 0 and 1 have the norm of COUNT(*): one histogram for all of them.
            return self._row_request(cell.cell, rows_before_sets(part.input), part.spread, part.norm, part.copies)
        assert isinstance(cell.arg, Column)
        signed = not cell.squared and (not cell.non_negative or cell.count is not None)
        grouped = part.norm is Norm.L2 or signed
        spread = part.spread if grouped else ()
        rows, (arg, *keys) = self._project(rows_before_sets(part.input), (cell.arg.name, *spread), bool(spread))
        histogram = CountNorms(
            rows, tuple(key.name for key in keys), part.norm, self._bins(*VALUE_POWERS), NORM_BIN, NORM_CELL, arg,
            cell.center, cell.bounds, copies=part.copies, squared=cell.squared,
        )  # fmt: skip
        center = None if cell.count is None else self._center_request(part, cell, cell.arg)
        return NormRequest(cell.cell, histogram, 1, False, signed, center=center)

    def _center_request(self, part: ClippedSum, cell: ClippedCell, arg: Column) -> CenterRequest:
        """Of all rows, whatever they are grouped by: one centre serves every grouping."""
        rows, (value,) = self._project(rows_before_sets(part.input), (arg.name,), False)
        means = CountMeans(rows, value, self.per_mean, NORM_BIN, NORM_CELL, part.copies)
        return CenterRequest(means, cell.bounds)

    def _row_request(
        self, slot: str, rows: Rows, spread: tuple[str, ...], norm: Norm, copies: int | None
    ) -> NormRequest:
        spread = spread if norm is Norm.L2 else ()
        rows, keys = self._project(rows, spread, bool(spread))
        names = tuple(key.name for key in keys)
        histogram = CountNorms(
            rows, names, norm, self._bins(0, MAX_ROWS_POWER), NORM_BIN, NORM_CELL, copies=copies
        )  # fmt: skip
        return NormRequest(slot, histogram, 1, norm is Norm.L1 or not names)

    def _pair_request(self, slot: str, rows: Rows, columns: tuple[str, ...], per_set: bool) -> NormRequest:
        """A limit of each grouping set is that of the finest groups."""
        if per_set:
            rows, columns = rows_before_sets(rows), tuple(name for name in columns if name != SET_COLUMN)
        rows, keys = self._project(rows, tuple(dict.fromkeys(columns)), False)  # a value may be asked for twice
        names = tuple(key.name for key in keys)
        histogram = CountNorms(
            rows, (), Norm.L1, self._bins(0, MAX_ROWS_POWER), NORM_BIN, NORM_CELL, distinct=names
        )  # fmt: skip
        return NormRequest(slot, histogram, 1, True)

    def _bins(self, first: int, last: int) -> NormBinning:
        return NormBinning(first * self.per_doubling, last * self.per_doubling, self.per_doubling)

    def _project(self, rows: Rows, names: tuple[str, ...], grouped: bool) -> tuple[Rows, tuple[Column, ...]]:
        """The rows with these columns alone, under names that are the same in every statement. Rows that are only
        narrowed are those that were there before groups were listed; but norms of one grouping serve no other, and
        leave out what the question leaves out."""
        fields = {f.name: f.type for f in row_fields(rows)}
        renamed = {name: f"{NORM_VALUE}{number}" for number, name in enumerate(names, 1)}
        columns = tuple(Column(renamed[name], fields[name]) for name in names)
        if isinstance(rows, Project) and has_uid(rows) == has_uid(self.unfiltered):
            exprs = {column.name: column.expr for column in rows.columns}
            chosen: tuple[Named, ...] = tuple(Named(renamed[name], exprs[name]) for name in names)
            below = rows.input if grouped else self.unfiltered
            return _prune_columns(Project(below, chosen), frozenset(renamed.values())), columns
        passed: tuple[Named, ...] = tuple(Named(renamed[name], Column(name, fields[name])) for name in names)
        return Project(rows, passed), columns


def _coarsest_keys(weigh: Weigh) -> tuple[tuple[str, ...], int]:
    """The keys that are in all grouping sets, so that no set has a larger norm; and how many sets have this one."""
    expands = [node for node in walk_nodes(weigh.input) if isinstance(node, Expand)]
    if not weigh.per_set or not expands:
        return weigh.keys, 1
    sets = expands[0].sets
    return tuple(key for key in weigh.keys if all(key in names for names in sets)), len(sets)


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


def apply_norms(
    gather: Gather, norms: Mapping[str, Fraction], centers: Mapping[str, Fraction] = MappingProxyType({})
) -> Gather:
    """The plan with these norms in its slots; others keep their placeholders. `centers` are those that have moved."""
    selection = gather.selection
    if selection is not None and selection.cell in norms:
        selection = replace(selection, limit=_cap(norms[selection.cell]))
    parts = tuple(_apply_to_part(part, norms, centers) for part in gather.parts)
    return replace(gather, selection=selection, parts=parts)


def _apply_to_part(part: Part, norms: Mapping[str, Fraction], centers: Mapping[str, Fraction]) -> Part:
    if isinstance(part, ClippedSum):
        return replace(part, cells=tuple(_apply_to_cell(cell, norms, centers) for cell in part.cells))
    norm = norms.get(cells_of(part)[0])
    if norm is None:
        return part
    if isinstance(part, Sum) and isinstance(part.input, Weigh):
        return replace(part, input=replace(part.input, rows=_cap(norm)))
    if isinstance(part, Sum) and isinstance(part.input, Distinct):
        return replace(part, input=replace(part.input, limit=_cap(norm)))
    return replace(part, limit=_cap(norm)) if isinstance(part, CountUnits) else part


def _apply_to_cell(cell: ClippedCell, norms: Mapping[str, Fraction], centers: Mapping[str, Fraction]) -> ClippedCell:
    norm = norms.get(cell.beside or cell.cell, cell.norm)
    return replace(cell, norm=norm, center=centers.get(cell.cell, cell.center))


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
