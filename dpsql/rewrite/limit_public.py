"""Refuse joins with public rows that would multiply private ones beyond a limit, before anything is charged.

    visits JOIN wards ON visits.ward = wards.ward  (ward is unique)  →  a visit meets one ward
    visits JOIN days ON visits.at < days.day       (2,000 days)      →  refused

Privacy: what an engine fails on, or how long it takes, may depend on rows (SOUNDNESS 2, 10).
"""

from __future__ import annotations

from dpsql.analysis.public import max_row_multiplication
from dpsql.errors import LimitExceeded
from dpsql.plan.nodes import Aggregate
from dpsql.plan.relations import PublicScan
from dpsql.plan.walk import walk_rows

MAX_MATCHED_ROWS = 1_000
"""Public rows that one private row may meet, over all joins."""


def limit_public_joins(aggregate: Aggregate) -> Aggregate:
    multiplication = max_row_multiplication(aggregate.input)
    if multiplication <= MAX_MATCHED_ROWS:
        return aggregate
    scans = [node for node in walk_rows(aggregate.input) if isinstance(node, PublicScan)]
    largest = max(scans, key=lambda scan: scan.rows, default=None)
    hint = "Join on a column that is unique among the public rows, or filter or aggregate them in a sub-select first."
    if largest is not None:
        hint = (
            f'Join on a key of "{largest.table}" that the schema declares unique, '
            "or filter or aggregate its rows in a sub-select first."
        )
    raise LimitExceeded(
        f"one private row could meet {multiplication} public rows; at most {MAX_MATCHED_ROWS} are allowed", hint=hint
    )
