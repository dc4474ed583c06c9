"""Clauses that choose rows by looking at all of them: one unit would move another's rows (SOUNDNESS 2)."""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import NotPrivate
from dpsql.sql.dialect import span_of

PER_UNIT = "ROW_NUMBER() OVER (PARTITION BY the unit ORDER BY …)"


def refuse_choice(query: exp.Expr) -> None:
    for clause in ("limit", "offset"):
        if query.args.get(clause) is not None:
            raise NotPrivate(
                f"{clause.upper()} over private rows lets one unit move another's rows",
                hint=f"Aggregate first, then use LIMIT in the outer SELECT; or number each unit's rows: {PER_UNIT}.",
                span=span_of(query.args[clause]),
            )
    distinct = query.args.get("distinct")
    if isinstance(distinct, exp.Distinct) and distinct.args.get("on") is not None:
        raise NotPrivate(
            "DISTINCT ON over private rows lets one unit move another's rows",
            hint=f"Number each unit's rows, and keep those with 1: {PER_UNIT}.",
            span=span_of(distinct),
        )
