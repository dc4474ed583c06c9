"""Keys and measures in the order of their texts in the canonical plan, where aliases and the order of sources are gone.

    SELECT a, b … FROM (SELECT region AS a, kind AS b …)  →  kind, region: as for  SELECT region, kind …

A stored release is read by the names of its keys (k1, k2, …) and the places of its measures, so spellings of one
question must agree on them; where they do not, the text of the plan tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpsql.analysis.canon import canonical_expr_text, canonical_measure_text, canonicalize
from dpsql.plan.expr import Expr
from dpsql.plan.measures import Measure
from dpsql.plan.nodes import Aggregate
from dpsql.plan.relations import Named, Rows


def canonical_order(
    rows: Rows, keys: list[Expr], measures: Iterable[Measure], of_rows: bool
) -> tuple[list[Expr], list[Measure]]:
    """`of_rows`: the measures read these rows, and not what is still to be made of them."""
    sorted_measures = sorted(measures, key=canonical_measure_text)
    named = tuple(Named(f"k{number}", key) for number, key in enumerate(keys, 1))
    plan = canonicalize(Aggregate(rows, named, tuple(sorted_measures) if of_rows else ()))
    key_order = sorted(range(len(keys)), key=lambda index: canonical_expr_text(plan.keys[index].expr))
    if of_rows:
        order = sorted(range(len(sorted_measures)), key=lambda index: canonical_measure_text(plan.measures[index]))
        sorted_measures = [sorted_measures[index] for index in order]
    return [keys[index] for index in key_order], sorted_measures
