"""Bound what each privacy unit contributes: it counts like at most `rows` rows, and is in at most `groups` groups.

Sum(rows)  →  Sum(Weigh(rows))          where a unit may have more rows than it may count for
Sum(rows)  →  Sum(rows)                 where the plan proves that it cannot
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.compiler.analysis.units import derive_unit_facts, has_one_row_per_group
from dpsql.compiler.plan.aggregate import CountUnits, Distinct, Listed, Norm, Sum, Weigh
from dpsql.compiler.plan.bundles import Bundle
from dpsql.compiler.plan.relations import Rows, has_uid
from dpsql.errors import UnboundedContribution


@dataclass(frozen=True)
class ContributionPolicy:
    """What rewriting may use: the caps of this statement, never above the owner's."""

    rows: int | None
    groups: int | None
    norm: Norm


def weigh_units(rows: Rows, keys: tuple[str, ...], bundles: tuple[Bundle, ...], policy: ContributionPolicy) -> Sum:
    facts = derive_unit_facts(rows)
    # Where each row is its own unit there is no id to weigh it by: its copies all count.
    if facts.rows is not None and (policy.rows is None or facts.rows <= policy.rows or not has_uid(rows)):
        return Sum(rows, keys, bundles)
    if policy.rows is None:
        raise UnboundedContribution(
            "a privacy unit may have any number of rows here, and the schema sets no norm for them",
            hint="The owner sets privacy.contributions.rows in the schema, the rows that one unit may count for.",
        )
    # A key that depends on the unit alone cannot spread its rows over several groups.
    spread = tuple(key for key in keys if key not in facts.determined)
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
        raise UnboundedContribution(
            "a privacy unit may bring any number of distinct values here, and the schema sets no norm for them",
            hint="The owner sets privacy.contributions.rows in the schema, the rows that one unit may count for.",
        )
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
        raise UnboundedContribution(
            "a privacy unit may reach any number of the groups asked for, and the schema sets no cap for them",
            hint="The owner sets privacy.contributions.groups in the schema, or declares the key's values.",
        )
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
        raise UnboundedContribution(
            "a privacy unit may be counted in any number of groups, and the schema sets no cap for them",
            hint="The owner sets privacy.contributions.rows in the schema, or declares the key's values.",
        )
    return CountUnits(rows, keys, cell, max_groups, one_row=False)


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
