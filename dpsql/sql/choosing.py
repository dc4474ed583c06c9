"""Clauses that choose rows by looking at all of them: one unit would move another's rows (SOUNDNESS 2)."""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import NotPrivate
from dpsql.sql.aggregates import has_aggregate
from dpsql.sql.dialect import span_of

PER_UNIT_ROW_NUMBER = "ROW_NUMBER() OVER (PARTITION BY the unit ORDER BY …)"


DISTINCT_ON_KEY = "distinct on"
"""The note by which a window is known to have been written so."""


def rewrite_distinct_on(select: exp.Select) -> None:
    """DISTINCT ON over rows, as the row that ROW_NUMBER() numbers 1: the binder then asks that the unit be in its list.

    SELECT DISTINCT ON (a) a, b … ORDER BY a, c
    →  SELECT a, b … QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY a, c) = 1
    """
    distinct = select.args.get("distinct")
    on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
    parts = [*select.expressions, select.args.get("having"), select.args.get("order")]
    over_groups = any(part is not None and has_aggregate(part) for part in parts)
    if on is None or over_groups or any(select.args.get(clause) is not None for clause in ("group", "qualify")):
        return
    order = select.args.get("order")
    keys = [_resolve_output_reference(node, select) for node in (on.expressions if isinstance(on, exp.Tuple) else [on])]
    ordered = [] if order is None else [node.copy() for node in order.expressions]
    for node in ordered:
        node.set("this", _resolve_output_reference(node.this, select))
    number = exp.Window(this=exp.RowNumber(), partition_by=keys)
    number.set("order", exp.Order(expressions=ordered) if ordered else None)
    number.meta[DISTINCT_ON_KEY] = True
    select.set("qualify", exp.Qualify(this=exp.EQ(this=number, expression=exp.Literal.number(1))))
    select.set("distinct", None)


def _resolve_output_reference(node: exp.Expr, select: exp.Select) -> exp.Expr:
    """What a position or an output column's name stands for, as in ORDER BY."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Literal) and str(node.this).isdigit() and 1 <= int(node.this) <= len(select.expressions):
        selected: exp.Expr = select.expressions[int(node.this) - 1].unalias().copy()
        return selected
    for item in select.expressions:
        bare = isinstance(node, exp.Column) and not node.table
        if bare and isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower():
            return item.this.copy()  # type: ignore[no-any-return]
    return node.copy()


def refuse_row_selection(query: exp.Expr) -> None:
    for clause in ("limit", "offset"):
        if query.args.get(clause) is not None:
            raise NotPrivate(
                f"{clause.upper()} over private rows lets one unit move another's rows",
                hint=f"Aggregate first, then use LIMIT in the outer SELECT; or number each unit's rows: {PER_UNIT_ROW_NUMBER}.",
                span=span_of(query.args[clause]),
            )
    distinct = query.args.get("distinct")
    if isinstance(distinct, exp.Distinct) and distinct.args.get("on") is not None:
        raise NotPrivate(
            "DISTINCT ON over private rows lets one unit move another's rows",
            hint=f"Number each unit's rows, and keep those with 1: {PER_UNIT_ROW_NUMBER}.",
            span=span_of(distinct),
        )
