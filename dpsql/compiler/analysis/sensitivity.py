"""How far one unit (or a group of units) moves the cells of the plan that runs.

Constants are those of SOUNDNESS 4. Nothing here looks at what the analyst asked: only at the nodes that are
rendered and executed. A node without a bound gives `UnboundedContribution`, never a guess.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt, prod
from typing import assert_never

from dpsql.compiler.analysis.units import count_sets, derive_unit_facts, has_one_row_per_group, rows_of_each_set
from dpsql.compiler.plan.aggregate import (
    CountBlocks,
    CountUnits,
    Distinct,
    Factor,
    Gather,
    Listed,
    ListedRows,
    Sum,
    SumBlocks,
    Tally,
    Weigh,
    count_set_groups,
)
from dpsql.compiler.plan.bundles import Bundle
from dpsql.compiler.plan.clipped_sums import NORM_STEPS, ClippedSum, CountMeans, CountNorms, Norm
from dpsql.compiler.plan.expressions import ROW_WEIGHT
from dpsql.compiler.plan.relations import SET_COLUMN, Rows
from dpsql.errors import InternalError, UnboundedContribution
from dpsql.privacy.noise import Sensitivity
from dpsql.privacy.weighted_rows import UnitMass
from dpsql.schema.model import Neighbors, Resolved


@dataclass(frozen=True)
class Neighboring:
    """The relation that sensitivities are derived for."""

    change_one: bool
    group_size: int


def neighboring_of(resolved: Resolved) -> Neighboring:
    privacy = resolved.schema.privacy
    return Neighboring(privacy.neighbors is Neighbors.CHANGE_ONE, privacy.group_size)


@dataclass(frozen=True)
class SensitivityBound:
    """The joint sensitivity of some cells, in grid units. `weight` is its part of a loss that bundles share."""

    cells: tuple[str, ...]
    sensitivity: Sensitivity
    weight: int = 1


@dataclass(frozen=True)
class _Norms:
    """The norms of what one unit contributes to the cells of a bundle."""

    l1: int
    l2_squared: int
    linf: int


def derive_sensitivity_bounds(gather: Gather, relation: Neighboring) -> tuple[SensitivityBound, ...]:
    """One claim per bundle, in the order of the parts; the selection's own column is not among them."""
    bounds: list[SensitivityBound] = []
    for part in gather.parts:
        match part:
            case Sum():
                for bundle in part.bundles:
                    norms = _bundle_norms(part, bundle, gather)
                    single = not gather.keys and len(bundle.cells) == 1
                    bounds.append(
                        SensitivityBound(
                            bundle.cells, _neighbor_sensitivity(norms, relation, bundle.non_negative, single)
                        )
                    )
            case ClippedSum():
                for cells in part.bundles:
                    norms = _clipped_norms(part, len(cells), _count_listed_groups(gather))
                    non_negative = all(cell.non_negative for cell in cells)
                    single = not gather.keys and len(cells) == 1
                    moved_by = _neighbor_sensitivity(norms, relation, non_negative, single)
                    names = tuple(cell.cell for cell in cells)
                    bounds.append(SensitivityBound(names, moved_by, len(cells)))
            case CountNorms() | CountMeans():
                # A unit is in one bin; where rows are units, each copy is, and all may be in the same.
                moved = part.copies or 1
                norms = _Norms(moved, moved**2, moved)
                bounds.append(SensitivityBound(part.cells, _neighbor_sensitivity(norms, relation, True, False)))
            case CountUnits():
                norms = _unit_norms(part, gather)
                bounds.append(
                    SensitivityBound(part.cells, _neighbor_sensitivity(norms, relation, True, not gather.keys))
                )
            case SumBlocks():
                moved = _blocks_changed(relation) * relation.group_size * part.blocks.steps
                groups = max_groups_reached(part, gather)
                bounds.append(SensitivityBound(part.cells, Sensitivity(groups * moved, groups * moved**2, moved)))
            case CountBlocks():
                # A block leaves one bin and enters another: of those that change in a group, all may meet in either.
                moved = _blocks_changed(relation) * relation.group_size
                groups = max_groups_reached(part, gather)
                bounds.append(
                    SensitivityBound(part.cells, Sensitivity(2 * groups * moved, 2 * groups * moved**2, moved))
                )
            case _:
                assert_never(part)
    return tuple(bounds)


def derive_unit_mass(tally: Tally, relation: Neighboring) -> UnitMass:
    """What one unit adds to a tally: its weighted rows, wherever they lie."""
    k, change_one, part = relation.group_size, relation.change_one, tally.part
    if isinstance(part.input, Weigh):
        return UnitMass(part.input.rows * ROW_WEIGHT, ROW_WEIGHT, False, k, change_one)
    rows = _rows_per_unit(part.input)
    return UnitMass(rows, 1, rows == 1, k, change_one)


def _blocks_changed(relation: Neighboring) -> int:
    """In one group, by one unit: that of its rows; where others take their place, that of those too, which may be the
    block of another id."""
    return 2 if relation.change_one else 1


def max_groups_reached(part: SumBlocks | CountBlocks, gather: Gather) -> int:
    """In how many groups one unit may have rows, and so change a block. No cap holds it to fewer.

    Of keys that depend on the unit alone it has one value; of listed others at most as many combinations as there are
    in the lists. Under `change_one`, two blocks of one group move its cell as far as one each of two groups together,
    and further in squares: so the groups are still those of one unit.
    """
    facts = derive_unit_facts(part.input)
    keys = part.keys if isinstance(part, SumBlocks) else part.groups
    spread = set(keys) - facts.determined
    bounds = [] if facts.rows is None else [facts.rows]
    factors = gather.listed.factors if gather.listed is not None else ()
    if spread <= {f.name for factor in factors for f in factor.keys}:
        bounds.append(prod(_count_key_combinations(factor, spread) for factor in factors))
    if not bounds:
        raise UnboundedContribution(
            "a privacy unit may be in any number of the groups asked for, and changes a block in each of them",
            hint="Group by keys that depend on the unit alone, or whose values are declared: BLOCKWISE has no cap.",
        )
    return max(1, min(bounds))


def _count_key_combinations(factor: Factor, names: set[str]) -> int:
    """How many combinations of the values of these keys a list has, at most."""
    indices = [index for index, f in enumerate(factor.keys) if f.name in names]
    if not indices:
        return 1
    if isinstance(factor, ListedRows):  # by their text, because 1 == True == 1.0 in Python
        return max(1, len({repr([row[index] for index in indices]) for row in factor.rows}))
    return factor.count


def max_selection_keys(gather: Gather) -> int:
    """Most keys that one unit may have in the selection's column."""
    part = gather.selection
    if part is None:
        raise InternalError("nothing is selected")
    return _groups_per_unit(part, gather)


def _count_listed_groups(gather: Gather) -> int | None:
    """How many groups there are, where all keys are listed; cells of other groups never leave."""
    return gather.listed.count if gather.listed is not None and gather.selection is None else None


def _bundle_norms(part: Sum, bundle: Bundle, gather: Gather) -> _Norms:
    """Rows are weighted, then each component is divided by 2^shift toward zero: no norm grows by it."""
    if isinstance(part.input, Weigh):
        norms = _weighted_norms(part.input, part.keys, bundle, _count_listed_groups(gather))
    else:
        # Wherever a unit's rows lie, their norms add up at most. Those of two grouping sets are in no group together.
        rows = _rows_per_unit(part.input)
        in_group = rows_of_each_set(rows, _sets_apart(part.input, part.keys))
        if not isinstance(part.input, Distinct) and has_one_row_per_group(part.input, part.keys):
            in_group = 1  # then no two of them are added up
        norms = _Norms(
            rows * bundle.row_l1,
            rows * in_group * bundle.row_l2_squared,
            in_group * bundle.row_linf,
        )
    scale = 1 << bundle.shift
    return _Norms(norms.l1 // scale, norms.l2_squared // scale**2, norms.linf // scale)


def _sets_apart(node: Rows | Distinct, keys: tuple[str, ...]) -> int:
    """How many grouping sets a unit's rows are in, as many in each, where the set's number is a key; else 1."""
    rows = node.input if isinstance(node, Distinct) else node
    if SET_COLUMN not in keys or (isinstance(node, Distinct) and node.limit is not None and not node.per_set):
        return 1
    return count_sets(rows)


def _rows_per_unit(node: Rows | Distinct) -> int:
    """How many rows of a unit count: of distinct pairs that only this unit has, at most those that it keeps."""
    if isinstance(node, Distinct) and node.limit is not None:
        return node.limit * (count_sets(node.input) if node.per_set else 1)
    rows = derive_unit_facts(node.input if isinstance(node, Distinct) else node).rows
    if rows is None:
        raise UnboundedContribution("the rows that one privacy unit adds have no bound")
    return rows


def _weighted_norms(weigh: Weigh, keys: tuple[str, ...], bundle: Bundle, groups: int | None) -> _Norms:
    """From the norm of the unit's weighted rows per group, w n_g, to that of its cells: in each group the norm of a sum
    of rows is at most w n_g times the largest row's.

    With a weight in each grouping set this holds in each of them, and groups of two sets are two: L1 norms and squares
    of L2 norms add up over the sets.
    """
    if weigh.per_set:
        if SET_COLUMN not in keys:
            raise UnboundedContribution("the weights were made for each grouping set")
        one, sets = _weighted_norms(replace(weigh, per_set=False), keys, bundle, groups), count_sets(weigh.input)
        return _Norms(sets * one.l1, sets * one.l2_squared, one.linf)
    max_weight = weigh.rows * ROW_WEIGHT
    norms = _Norms(max_weight * bundle.row_l1, max_weight**2 * bundle.row_l2_squared, max_weight * bundle.row_linf)
    match weigh.norm:
        case Norm.L1:
            return norms
        case Norm.L2:
            # Groups finer than the weights' only lower the norm; coarser ones could raise it.
            if not set(weigh.keys) <= set(keys):
                raise UnboundedContribution("the weights were made for other groups")
            if not weigh.keys:
                return norms
            # Whole numbers n_g: sum(w n_g) <= sum(w n_g^2) = (w |n|)^2 / w <= most^2, as w >= 1 or nothing is added.
            # Over G groups the L1 norm is at most the root of G times the L2 norm.
            spread = max_weight if groups is None else min(max_weight, isqrt(max(1, groups)) + 1)
            return _Norms(norms.l1 * spread, norms.l2_squared, norms.linf)
        case _:
            assert_never(weigh.norm)


def _clipped_norms(part: ClippedSum, cells: int, groups: int | None) -> _Norms:
    """In each bundle of cells a unit's sums have the norm `NORM_STEPS` at most, of the kind that they were scaled by.

    No sum is larger than the norm, of either kind. From L2 to L1: over G sums the root of G times as much; of whole
    numbers the sum is also at most the sum of the squares. A unit that is in one group has a sum for each cell there.
    """
    one_group = not part.spread
    if part.norm is Norm.L1 or (one_group and cells == 1) or part.copies is not None:
        return _Norms(NORM_STEPS, NORM_STEPS**2, NORM_STEPS)
    sums = cells if one_group else None if groups is None else cells * max(1, groups)
    spread = NORM_STEPS if sums is None else min(NORM_STEPS, isqrt(sums) + 1)
    return _Norms(NORM_STEPS * spread, NORM_STEPS**2, NORM_STEPS)


def _unit_norms(part: CountUnits, gather: Gather) -> _Norms:
    if part.weighted:
        raise InternalError("weighted unit counts are for selection only")
    groups = _groups_per_unit(part, gather)
    return _Norms(groups, groups, 1)


def _groups_per_unit(part: CountUnits, gather: Gather) -> int:
    """In how many groups one unit can be counted, from the plan's own facts, limit and list."""
    facts = derive_unit_facts(part.input)
    bounds: list[int] = []
    if part.one_row and not has_one_row_per_group(part.input, part.keys):
        raise UnboundedContribution("rows are counted as units, but a unit may have several")
    if facts.rows is not None:
        bounds.append(facts.rows)
    if set(part.keys) <= facts.determined:
        bounds.append(1)
    if part.limit is not None:
        bounds.append(part.limit * (count_sets(part.input) if part.per_set else 1))
    listed = {f.name for f in gather.listed.keys} if gather.listed is not None else set()
    if gather.listed is not None and set(part.keys) <= listed:
        bounds.append(max(1, _count_reached(part, gather.listed)))
    if not bounds:
        raise UnboundedContribution("the groups that one privacy unit reaches have no bound")
    return min(bounds)


def _count_reached(part: CountUnits, listed: Listed) -> int:
    """How many listed groups a unit can be counted in: all, or with a limit in each grouping set no more of each."""
    if not part.per_set or part.limit is None:
        return listed.count
    counts = count_set_groups(listed) if len(listed.factors) == 1 else {}
    return sum(min(part.limit, count) for count in counts.values()) if counts else listed.count


def _neighbor_sensitivity(norms: _Norms, relation: Neighboring, non_negative: bool, single: bool) -> Sensitivity:
    """From what one unit contributes to how far neighbors are apart.

    `change_one` puts one contribution in the place of another: twice the norm in general, the root of two
    where no component is negative (the cross term only helps), once for a single non-negative cell.
    """
    k = relation.group_size
    l1_factor, l2_factor, linf_factor = 1, 1, 1
    if relation.change_one and not (single and non_negative):
        l1_factor, l2_factor, linf_factor = 2, 2 if non_negative else 4, 1 if non_negative else 2
    l1, l2_squared, linf = norms.l1 * l1_factor * k, norms.l2_squared * l2_factor * k * k, norms.linf * linf_factor * k
    return Sensitivity(max(1, l1), max(1, l2_squared), max(1, linf))
