"""Bound what each privacy unit contributes: it counts like at most `rows` rows, and is in at most `groups` groups.

Where a cap is not declared, a placeholder stands in its place until a histogram of units chooses one
(`automatic_norms`).

Sum(rows)  →  Sum(Weigh(rows))          where a unit may have more rows than it may count for
Sum(rows)  →  Sum(rows)                 where the plan proves that it cannot
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.compiler.analysis.units import derive_unit_facts, has_one_row_per_group
from dpsql.compiler.plan.aggregate import CountUnits, Distinct, Listed, Sum, Weigh
from dpsql.compiler.plan.bundles import Bundle
from dpsql.compiler.plan.clipped_sums import Norm
from dpsql.compiler.plan.relations import Rows, has_uid
from dpsql.errors import UnboundedContribution


@dataclass(frozen=True)
class ContributionPolicy:
    """What rewriting may use: the caps of this statement, never above the owner's."""

    rows: int | None
    groups: int | None
    norm: Norm
    automatic: bool = False  # whether caps that are not declared are chosen from histograms; else they are missed
    units: int | None = None  # about how many there are, if the owner said so


PLACEHOLDER = 1
"""Of a cap that is not chosen yet: nothing is run with it."""


def weigh_units(rows: Rows, keys: tuple[str, ...], bundles: tuple[Bundle, ...], policy: ContributionPolicy) -> Sum:
    facts = derive_unit_facts(rows)
    # Where each row is its own unit there is no id to weigh it by: its copies all count.
    if facts.rows is not None and (policy.rows is None or facts.rows <= policy.rows or not has_uid(rows)):
        return Sum(rows, keys, bundles)
    # A key that depends on the unit alone cannot spread its rows over several groups.
    spread = tuple(key for key in keys if key not in facts.determined)
    if policy.rows is None:
        _require_automatic(policy, "have any number of rows here", "norm for them", "rows")
        return Sum(Weigh(rows, spread, PLACEHOLDER, policy.norm, automatic=True), keys, bundles)
    return Sum(Weigh(rows, spread, policy.rows, policy.norm), keys, bundles)


# Let each privacy unit bring at most `rows` distinct values, over all groups.
#
#     COUNT(DISTINCT x)  →  rows of Distinct(group, x), each unit's first pairs by hash, then distinct over units


def cap_distinct_values(
    rows: Rows, keys: tuple[str, ...], columns: tuple[str, ...], policy: ContributionPolicy
) -> Distinct:
    facts = derive_unit_facts(rows)
    # Where each row is its own unit there is no id to rank it by: its copies all count.
    if facts.rows is not None and (policy.rows is None or facts.rows <= policy.rows or not has_uid(rows)):
        return Distinct(rows, keys, columns, None)
    if policy.rows is None:
        _require_automatic(policy, "bring any number of distinct values here", "norm for them", "rows")
        return Distinct(rows, keys, columns, PLACEHOLDER, automatic=True)
    return Distinct(rows, keys, columns, policy.rows)


# Count units per group: for keys that are not public (partition selection), and for COUNT(DISTINCT unit).
#
#     GROUP BY ward  →  units per ward, each unit in at most `groups` wards

SELECTION_CELL = "selection_units"


def select_groups(rows: Rows, selected: tuple[str, ...], policy: ContributionPolicy) -> CountUnits | None:
    """The selection's own column (SOUNDNESS 5), never one that answers something else."""
    if not selected:
        return None
    if _has_few_groups(rows, selected, policy.groups):
        return _count_units_uncapped(rows, selected, SELECTION_CELL)
    _require_unit_ids(rows)
    if policy.groups is None:
        _require_automatic(policy, "reach any number of the groups asked for", "cap for them", "groups")
        return CountUnits(rows, selected, SELECTION_CELL, PLACEHOLDER, one_row=False, automatic=True)
    return CountUnits(rows, selected, SELECTION_CELL, policy.groups, one_row=False)


def count_units(
    rows: Rows, keys: tuple[str, ...], cell: str, listed: Listed | None, policy: ContributionPolicy
) -> CountUnits:
    """COUNT(DISTINCT unit): a unit counts in at most `rows` groups, where the list is longer than that."""
    groups = listed.count if listed is not None and len(listed.keys) == len(keys) else None
    max_groups = policy.rows if policy.rows is not None else policy.groups
    if _has_few_groups(rows, keys, max_groups) or (groups is not None and (max_groups is None or groups <= max_groups)):
        return _count_units_uncapped(rows, keys, cell)
    _require_unit_ids(rows)
    if max_groups is None:
        _require_automatic(policy, "be counted in any number of groups", "cap for them", "rows")
        return CountUnits(rows, keys, cell, PLACEHOLDER, one_row=False, automatic=True)
    return CountUnits(rows, keys, cell, max_groups, one_row=False)


def _require_automatic(policy: ContributionPolicy, may: str, cap: str, key: str) -> None:
    if not policy.automatic:
        raise UnboundedContribution(
            f"a privacy unit may {may}, and the schema sets no {cap}",
            hint=f"The owner sets privacy.contributions.{key} in the schema, or the analyst SET contributions.{key}.",
        )


def _has_few_groups(rows: Rows, keys: tuple[str, ...], max_groups: int | None) -> bool:
    """Whether the plan proves that a unit is in one group, or in no more than it may be, once in each."""
    facts = derive_unit_facts(rows)
    if facts.rows == 1 or set(keys) <= facts.determined:
        return True
    within = facts.rows is not None and max_groups is not None and facts.rows <= max_groups
    return has_one_row_per_group(rows, keys) and (within or not has_uid(rows))


def _count_units_uncapped(rows: Rows, keys: tuple[str, ...], cell: str) -> CountUnits:
    one_row = has_one_row_per_group(rows, keys)
    if not one_row:
        _require_unit_ids(rows)
    return CountUnits(rows, keys, cell, None, one_row)


def _require_unit_ids(rows: Rows) -> None:
    if not has_uid(rows):
        raise UnboundedContribution(
            "each row is its own privacy unit, and a join with public rows gives it several",
            hint="Join on a key that is unique in the public table.",
        )
