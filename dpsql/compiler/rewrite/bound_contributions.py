"""Bound what each privacy unit contributes: it counts like at most `rows` rows, and is in at most `groups` groups.

Where a cap is not declared, a placeholder stands in its place until a histogram of units chooses one
(`automatic_norms`).

Sum(rows)  →  Sum(Weigh(rows))          where a unit may have more rows than it may count for
Sum(rows)  →  Sum(rows)                 where the plan proves that it cannot
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt

from dpsql.compiler.analysis.units import (
    count_sets,
    derive_unit_facts,
    has_one_row_per_group,
    rows_are_groups,
    rows_of_each_set,
)
from dpsql.compiler.plan.aggregate import CountUnits, Distinct, Gather, Listed, Sum, Weigh, count_set_groups
from dpsql.compiler.plan.bundles import Bundle
from dpsql.compiler.plan.clipped_sums import Norm
from dpsql.compiler.plan.relations import SET_COLUMN, Rows, has_uid
from dpsql.errors import UnboundedContribution


@dataclass(frozen=True)
class ContributionPolicy:
    """What rewriting may use: the caps of this statement, never above the owner's."""

    rows: int | None
    groups: int | None
    norm: Norm
    automatic: bool = False  # whether caps that are not declared are chosen from histograms; else they are missed
    units: int | None = None  # about how many there are, if the owner said so
    own_norms: bool = True  # whether a sum may have a norm of its own, instead of a cap of rows


PLACEHOLDER = 1
"""Of a cap that is not chosen yet: nothing is run with it."""


def cap_groups(rows: Rows, keys: tuple[str, ...], policy: ContributionPolicy) -> ContributionPolicy:
    """Where each row is what a unit adds to one group, the cap on groups is one on rows, too.

    Units in at most so many groups count in full: for an L2 norm the root of their number is enough.
    """
    if policy.groups is None or not has_uid(rows) or not rows_are_groups(rows, keys):
        return policy
    cap = policy.groups if policy.norm is Norm.L1 else isqrt(policy.groups - 1) + 1
    return replace(policy, rows=cap if policy.rows is None else min(policy.rows, cap))


def weigh_units(rows: Rows, keys: tuple[str, ...], bundles: tuple[Bundle, ...], policy: ContributionPolicy) -> Sum:
    """With grouping sets, a unit counts like at most so many rows in each of them: none scales another down."""
    facts, per_set, policy = derive_unit_facts(rows), SET_COLUMN in keys, cap_groups(rows, keys, policy)
    # Where each row is its own unit there is no id to weigh it by: its copies all count.
    if _has_few_rows(rows, keys, policy):
        return Sum(rows, keys, bundles)
    # A key that depends on the unit alone cannot spread its rows over several groups.
    spread = tuple(key for key in keys if key not in facts.determined)
    if policy.rows is None:
        _require_automatic(policy, "have any number of rows here", "norm for them", "rows")
        return Sum(Weigh(rows, spread, PLACEHOLDER, policy.norm, automatic=True, per_set=per_set), keys, bundles)
    return Sum(Weigh(rows, spread, policy.rows, policy.norm, per_set=per_set), keys, bundles)


def _has_few_rows(rows: Rows, keys: tuple[str, ...], policy: ContributionPolicy) -> bool:
    """Whether the plan proves that a unit has no more rows than it may count for, in each grouping set."""
    facts = derive_unit_facts(rows)
    if facts.rows is None:
        return False
    if policy.rows is None or not has_uid(rows):
        return True
    # Rows in groups of their own have an L2 norm that is the root of their number.
    apart = policy.norm is Norm.L2 and SET_COLUMN not in keys and has_one_row_per_group(rows, keys)
    return rows_of_each_set(facts.rows, _set_count(rows, keys)) <= (policy.rows**2 if apart else policy.rows)


def _set_count(rows: Rows, keys: tuple[str, ...]) -> int:
    return count_sets(rows) if SET_COLUMN in keys else 1


# Let each privacy unit bring at most `rows` distinct values, over all groups.
#
#     COUNT(DISTINCT x)  →  rows of Distinct(group, x), each unit's first pairs by hash, then distinct over units


FEW_PAIRS = 4
"""Distinct values of which a unit may bring all without choosing how many: the choice would cost more than it saves."""


def cap_by_domain(policy: ContributionPolicy, pairs: int | None) -> ContributionPolicy:
    """No unit brings more distinct values than there can be: a larger cap would only add noise."""
    if pairs is None or (policy.rows is None and pairs > FEW_PAIRS):
        return policy
    return replace(policy, rows=max(1, pairs if policy.rows is None else min(policy.rows, pairs)))


def cap_distinct_values(
    rows: Rows, keys: tuple[str, ...], columns: tuple[str, ...], policy: ContributionPolicy
) -> Distinct:
    per_set = SET_COLUMN in keys
    # Where each row is its own unit there is no id to rank it by: its copies all count.
    if _has_few_rows(rows, keys, policy):
        return Distinct(rows, keys, columns, None)
    if policy.rows is None:
        _require_automatic(policy, "bring any number of distinct values here", "norm for them", "rows")
        return Distinct(rows, keys, columns, PLACEHOLDER, automatic=True, per_set=per_set)
    return Distinct(rows, keys, columns, policy.rows, per_set=per_set)


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


FEW_LISTED_GROUPS = 32
"""Listed groups in all of which a unit is counted without choosing in how many: the noise is at most 6 times wider."""


def count_units(
    rows: Rows, keys: tuple[str, ...], cell: str, listed: Listed | None, policy: ContributionPolicy
) -> CountUnits:
    """COUNT(DISTINCT unit): a unit counts in no more groups than it may have rows, or reach, whichever is less, where
    the list is longer than that; with grouping sets, in as many of each."""
    groups, per_set = None, SET_COLUMN in keys
    if listed is not None and len(listed.keys) == len(keys):
        groups = max_groups_of_set(listed) if per_set else listed.count
    max_groups = policy.groups
    if policy.rows is not None:  # selected keys, of which a unit has so many, are crossed with those that are listed
        crossed = listed.count if listed is not None and groups is None else 1
        max_groups = policy.rows if policy.groups is None else min(policy.rows, policy.groups * crossed)
    all_of_them = max_groups if max_groups is not None else FEW_LISTED_GROUPS if policy.automatic else groups
    if _has_few_groups(rows, keys, max_groups, _set_count(rows, keys)) or (
        groups is not None and all_of_them is not None and groups <= all_of_them
    ):
        return _count_units_uncapped(rows, keys, cell)
    _require_unit_ids(rows)
    if max_groups is None:
        _require_automatic(policy, "be counted in any number of groups", "cap for them", "rows")
        return CountUnits(rows, keys, cell, PLACEHOLDER, one_row=False, automatic=True, per_set=per_set)
    return CountUnits(rows, keys, cell, max_groups, one_row=False, per_set=per_set)


def capped_units_form(gather: Gather, policy: ContributionPolicy) -> tuple[str, ...]:
    """What distinguishes counts of units from those of older versions, which capped groups by rows alone."""
    limits = [part.limit for part in gather.parts if isinstance(part, CountUnits) and part.limit is not None]
    return ("units capped by groups",) if policy.rows is not None and any(n < policy.rows for n in limits) else ()


def max_groups_of_set(listed: Listed) -> int:
    """The most groups that a grouping set lists."""
    counts = count_set_groups(listed)
    return max(counts.values()) if counts else listed.count


def _require_automatic(policy: ContributionPolicy, may: str, cap: str, key: str) -> None:
    if not policy.automatic:
        raise UnboundedContribution(
            f"a privacy unit may {may}, and the schema sets no {cap}",
            hint=f"The owner sets privacy.contributions.{key} in the schema, or the analyst SET contributions.{key}.",
        )


def _has_few_groups(rows: Rows, keys: tuple[str, ...], max_groups: int | None, sets: int = 1) -> bool:
    """Whether the plan proves that a unit is in one group, or in no more than it may be, once in each; where the cap is
    that of a grouping set, of `sets`."""
    facts = derive_unit_facts(rows)
    if facts.rows == 1 or set(keys) <= facts.determined:
        return True
    within = facts.rows is not None and max_groups is not None and rows_of_each_set(facts.rows, sets) <= max_groups
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
