"""Count units per group: for keys that are not public (partition selection), and for COUNT(DISTINCT unit).

    GROUP BY ward  →  units per ward, each unit in at most `groups` wards
"""

from __future__ import annotations

from dpsql.analysis.units import has_one_row_per_group, derive_unit_facts
from dpsql.errors import UnboundedContribution
from dpsql.plan.nodes import CountUnits, Listed
from dpsql.plan.relations import Rows, has_uid
from dpsql.rewrite.policy import ContributionPolicy

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


def count_units(rows: Rows, keys: tuple[str, ...], cell: str, listed: Listed | None, policy: ContributionPolicy) -> CountUnits:
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
