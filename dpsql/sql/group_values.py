"""A sub-select that gives one value of a group which the outer row names, of all units: a release of its own.

    SELECT COUNT(*) FROM visits v WHERE v.cost > (SELECT AVG(x.cost) FROM visits x WHERE x.ward = v.ward)
    →  LEFT JOIN with the rows of SELECT AVG(x.cost) AS v, x.ward AS _c1 FROM visits x GROUP BY x.ward, a hole

Stability: a row meets released rows, which are public by then; what a unit has depends on its own rows and on those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.plan.expr import Case, Column, Compare, Expr, IsNull, Literal, join_conjuncts
from dpsql.sql.aggregates import has_aggregate, is_aggregate
from dpsql.sql.bind_expr import bind_expr
from dpsql.sql.coerce import coerce, unify_types
from dpsql.sql.names import ColumnNamer, Scope, is_star
from dpsql.sql.per_unit import rebuild_node
from dpsql.sql.relation import BoundRelation, equates_unit

if TYPE_CHECKING:
    from dpsql.sql.bind import Binder

BindInnerRows = Callable[["Binder"], BoundRelation]
"""FROM and WHERE of the sub-select, bound by a binder."""


def bind_group_value(binder: Binder, relation: BoundRelation, select: exp.Select, rows: BindInnerRows) -> Expr | None:
    """None where the sub-select looks at rows of the outer row's unit, or is no aggregate found by equalities."""
    if binder.outside is None or not _is_single_aggregate(select):
        return None
    inner = rows(replace(binder, namer=_scratch_namer(binder.namer), told=[], outside=binder.outside.scratch_copy()))
    if inner.is_public or equates_unit(relation, inner, ()):
        return None
    release = binder.outside.add_grouped_release(select, _inner_column_test(inner.scope))
    if release is None:
        return None
    grouped, outer = release
    hole, _ = binder.outside.add_table(grouped, binder.namer, keys=len(outer))
    value, *keys = (Column(field.name, field.type) for field in hole.columns)
    parts: list[Expr] = []
    for key, node in zip(keys, outer, strict=True):
        (left, right), _ = unify_types([key, bind_expr(node, relation.scope)], [node, node], "comparison")
        parts.append(Compare("=", left, right))
    relation.add_left_join(hole, join_conjuncts(tuple(parts)))
    item = select.expressions[0].unalias()
    missing = coerce(bind_expr(_value_without_group(item, value), Scope(())), value.type, item)
    if missing == Literal(None, value.type):
        return value
    return Case(((IsNull(keys[0]), missing),), value, value.type)


def _is_single_aggregate(select: exp.Select) -> bool:
    clauses = {"expressions", "from_", "joins", "where", "order"}
    if any(value for key, value in select.args.items() if key not in clauses) or len(select.expressions) != 1:
        return False
    return not is_star(select.expressions[0]) and has_aggregate(select.expressions[0])


def _scratch_namer(namer: ColumnNamer) -> ColumnNamer:
    """Names for what is bound to be looked at only, beside those that are taken."""
    return ColumnNamer(set(namer.taken), namer.sources)


def _inner_column_test(scope: Scope) -> Callable[[exp.Column], bool]:
    alone = replace(scope, outer=None)

    def is_inner(column: exp.Column) -> bool:
        return alone.has_source(column.args["table"]) if column.table else alone.find_column(column) is not None

    return is_inner


def _value_without_group(item: exp.Expr, value: Column) -> exp.Expr:
    """What the sub-select gives where there is no such group: counts are 0, other aggregates NULL."""
    if is_aggregate(item):
        counts = isinstance(item.this if isinstance(item, exp.Filter) else item, exp.Count | exp.CountIf)
        return exp.Literal.number(0) if counts else exp.cast(exp.Null(), str(value.type))
    return rebuild_node(item, lambda part: _value_without_group(part, value))
