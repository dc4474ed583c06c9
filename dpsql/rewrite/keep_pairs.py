"""Let each privacy unit bring at most `rows` distinct values, over all groups.

    COUNT(DISTINCT x)  →  rows of Distinct(group, x), each unit's first pairs by hash, then distinct over units
"""

from __future__ import annotations

from dpsql.analysis.units import derive_unit_facts
from dpsql.errors import UnboundedContribution
from dpsql.plan.nodes import Distinct
from dpsql.plan.relations import Rows, has_uid
from dpsql.rewrite.policy import ContributionPolicy


def cap_distinct_values(rows: Rows, keys: tuple[str, ...], columns: tuple[str, ...], policy: ContributionPolicy) -> Distinct:
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
