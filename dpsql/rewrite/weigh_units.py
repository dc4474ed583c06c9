"""Let each privacy unit count like at most `rows` rows.

    Sum(rows)  →  Sum(Weigh(rows))          where a unit may have more rows than it may count for
    Sum(rows)  →  Sum(rows)                 where the plan proves that it cannot
"""

from __future__ import annotations

from dpsql.analysis.units import derive_unit_facts
from dpsql.errors import UnboundedContribution
from dpsql.plan.bundles import Bundle
from dpsql.plan.nodes import Sum, Weigh
from dpsql.plan.relations import Rows, has_uid
from dpsql.rewrite.policy import ContributionPolicy


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
