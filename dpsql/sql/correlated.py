"""A sub-select over private rows that looks at a row of a released or public block around it (rule 9 of the split).

    SELECT w.ward, (SELECT COUNT(*) FROM visits v WHERE v.ward = w.ward) FROM wards w

It becomes one release grouped by what is equated to the outer row, and is looked up there:

    SELECT w.ward, COALESCE((SELECT q.v FROM (SELECT COUNT(*) AS v, v.ward AS _c1 … GROUP BY v.ward) AS q
                             WHERE q._c1 = w.ward), 0) FROM wards w
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from dpsql.errors import Unsupported
from dpsql.sql.dialect import span_of


@dataclass(frozen=True)
class DecorrelatedSelect:
    """The sub-select without its outer columns, and the outer expressions that its columns `_c1` … are equated to."""

    select: exp.Select
    outer: tuple[exp.Expr, ...]
    counts: bool  # the answer is a count: 0 where there is no group


def decorrelate(select: exp.Select, is_inner: Callable[[exp.Column], bool]) -> DecorrelatedSelect | None:
    """None where the sub-select reads nothing of the block around it."""
    outer_columns = [column for column in _columns_of_block(select) if not is_inner(column)]
    if not outer_columns:
        return None
    correlated = split_correlation(select, is_inner)
    more = any(select.args.get(clause) for clause in ("group", "having", "limit", "distinct"))
    if correlated is None or more or len(select.expressions) != 1:
        raise Unsupported(
            "a sub-select over private rows may look at the row around it by equalities only",
            hint="For example: (SELECT COUNT(*) FROM visits v WHERE v.ward = w.ward).",
            span=span_of(outer_columns[0]),
        )
    return _group_by_correlation(select, *correlated)


def split_correlation(
    select: exp.Select, is_inner: Callable[[exp.Column], bool]
) -> tuple[list[exp.Expr], list[tuple[exp.Expr, exp.Expr]]] | None:
    """The conditions of the sub-select alone, and what it equates with the block around it, inner side first.

    None where it reads that block in any other way.
    """
    where = select.args.get("where")
    conditions: list[exp.Expr] = []
    pairs: list[tuple[exp.Expr, exp.Expr]] = []
    for part in where.this.flatten() if where is not None and isinstance(where.this, exp.And) else _where_conditions(where):
        sides = _equality_sides(part, is_inner)
        if sides is not None:
            pairs.append(sides)
        else:
            conditions.append(part)
    read = {id(column) for column in _columns_of_block(select) if not is_inner(column)}
    return None if read - {id(c) for _, outer in pairs for c in _columns_in(outer)} else (conditions, pairs)


def _group_by_correlation(select: exp.Select, conditions: list[exp.Expr], pairs: list[tuple[exp.Expr, exp.Expr]]) -> DecorrelatedSelect:
    item = select.expressions[0].unalias()
    changed = select.copy()
    changed.set("where", exp.Where(this=exp.and_(*(part.copy() for part in conditions))) if conditions else None)
    keys = [exp.alias_(inner.copy(), f"_c{number}", quoted=True) for number, (inner, _) in enumerate(pairs, 1)]
    changed.set("expressions", [exp.alias_(item.copy(), "v", quoted=True), *keys])
    changed.set("group", exp.Group(expressions=[inner.copy() for inner, _ in pairs]))
    changed.set("order", None)
    return DecorrelatedSelect(changed, tuple(outer for _, outer in pairs), isinstance(item, exp.Count | exp.CountIf))


def look_up_group(post: exp.Query, outer: tuple[exp.Expr, ...], counts: bool) -> exp.Expr:
    conditions = [
        exp.EQ(this=exp.column(f"_c{number}", table="q", quoted=True), expression=expr.copy())
        for number, expr in enumerate(outer, 1)
    ]
    source = exp.Subquery(this=post, alias=exp.TableAlias(this=exp.to_identifier("q", quoted=True)))
    lookup = exp.Select(expressions=[exp.column("v", table="q", quoted=True)])
    lookup.set("from_", exp.From(this=source))
    lookup.set("where", exp.Where(this=exp.and_(*conditions)))
    value = exp.Subquery(this=lookup)
    return exp.Coalesce(this=value, expressions=[exp.Literal.number(0)]) if counts else value


def _where_conditions(where: exp.Expr | None) -> list[exp.Expr]:
    return [] if where is None else [where.this]


def _equality_sides(part: exp.Expr, is_inner: Callable[[exp.Column], bool]) -> tuple[exp.Expr, exp.Expr] | None:
    """The inner and the outer side of an equality between the two blocks."""
    while isinstance(part, exp.Paren):
        part = part.this
    if not isinstance(part, exp.EQ):
        return None
    for inner, outer in ((part.this, part.expression), (part.expression, part.this)):
        ours, theirs = _columns_in(inner), _columns_in(outer)
        if ours and theirs and all(map(is_inner, ours)) and not any(map(is_inner, theirs)):
            return inner, outer
    return None


def _columns_in(node: exp.Expr) -> list[exp.Column]:
    return list(node.find_all(exp.Column))


def _columns_of_block(select: exp.Select) -> list[exp.Column]:
    """Columns of the block itself: what is in its FROM, or in a sub-select of its own, is not asked here."""
    columns: list[exp.Column] = []
    waiting: list[exp.Expr] = [part for key, part in _clause_nodes(select) if key not in ("from_", "joins", "with_")]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Column):
            if not isinstance(node.this, exp.Star):
                columns.append(node)
        elif not isinstance(node, exp.Query):
            waiting += list(node.iter_expressions())
    return columns


def _clause_nodes(select: exp.Select) -> list[tuple[str, exp.Expr]]:
    nodes: list[tuple[str, exp.Expr]] = []
    for key, value in select.args.items():
        nodes += [(key, item) for item in (value if isinstance(value, list) else [value]) if isinstance(item, exp.Expr)]
    return nodes
