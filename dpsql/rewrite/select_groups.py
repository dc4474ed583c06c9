"""Count units per group: for keys that are not public (partition selection), and for COUNT(DISTINCT unit).

    GROUP BY ward  →  units per ward, each unit in at most `groups` wards
"""

from __future__ import annotations

from dpsql.analysis.units import UnitFacts, unit_facts
from dpsql.errors import UnboundedContribution
from dpsql.plan.nodes import CountUnits, Listed
from dpsql.plan.relations import Rows
from dpsql.rewrite.policy import Policy

SELECTION_CELL = "selection_units"


def select_groups(rows: Rows, selected: tuple[str, ...], policy: Policy) -> CountUnits | None:
    """The selection's own column (SOUNDNESS 5), never one that answers something else."""
    if not selected:
        return None
    facts = unit_facts(rows)
    limit = None if _one_group(facts, selected) else policy.groups
    if limit is None and not _one_group(facts, selected):
        raise UnboundedContribution(
            "a privacy unit may reach any number of the groups asked for, and the schema sets no cap for them",
            hint="The owner sets privacy.contributions.groups in the schema, or declares the key's values.",
        )
    return CountUnits(rows, selected, SELECTION_CELL, limit, one_row=facts.rows == 1)


def count_units(rows: Rows, keys: tuple[str, ...], cell: str, listed: Listed | None, policy: Policy) -> CountUnits:
    """COUNT(DISTINCT unit): a unit counts in at most `rows` groups, where the list is longer than that."""
    facts = unit_facts(rows)
    groups = listed.count if listed is not None and len(listed.keys) == len(keys) else None
    most = policy.rows if policy.rows is not None else policy.groups
    if _one_group(facts, keys) or (groups is not None and (most is None or groups <= most)):
        limit = None
    elif most is None:
        raise UnboundedContribution(
            "a privacy unit may be counted in any number of groups, and the schema sets no cap for them",
            hint="The owner sets privacy.contributions.rows in the schema, or declares the key's values.",
        )
    else:
        limit = most
    return CountUnits(rows, keys, cell, limit, one_row=facts.rows == 1)


def _one_group(facts: UnitFacts, keys: tuple[str, ...]) -> bool:
    return facts.rows == 1 or set(keys) <= facts.determined
