"""LATERAL beside private rows: a sub-select in FROM that reads the sources before it.

    patients p CROSS JOIN LATERAL (SELECT COUNT(*) AS n FROM visits v WHERE v.patient_id = p.patient_id) x
    →  x.n is the value of that sub-select: what scalar sub-selects are, column by column

    patients p JOIN LATERAL (SELECT v.cost FROM visits v WHERE v.patient_id = p.patient_id ORDER BY v.day LIMIT 1) x
    →  JOIN (SELECT v.cost, v.patient_id AS _c1 FROM visits v
             QUALIFY ROW_NUMBER() OVER (PARTITION BY v.patient_id ORDER BY v.day) <= 1) x ON x._c1 = p.patient_id

Both say what could be said without LATERAL, and are bound as that: a unit's rows meet its own (SOUNDNESS 2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.compiler.bind.aggregates import has_aggregate
from dpsql.compiler.bind.correlation import reads_outer_block, split_correlation
from dpsql.compiler.bind.expressions import bind_condition, bind_expr
from dpsql.compiler.bind.joins import bind_join, check_distinct_aliases
from dpsql.compiler.bind.outputs import output_name
from dpsql.compiler.bind.relation import BoundRelation, equates_unit
from dpsql.compiler.bind.scalar_subqueries import bind_group_value, bind_unit_aggregates, check_single_row
from dpsql.compiler.bind.scope import BoundColumn, Scope, SourceScope, is_star
from dpsql.compiler.bind.sources import apply_column_aliases
from dpsql.compiler.bind.subqueries import bind_from_and_where, unwrap_subquery
from dpsql.compiler.parse.dialect import refuse_other_args, span_of
from dpsql.compiler.plan.expressions import Expr
from dpsql.errors import Unsupported

if TYPE_CHECKING:
    from dpsql.compiler.bind.binder import Binder
    from dpsql.compiler.bind.sources import Ctes


def bind_lateral(binder: Binder, left: BoundRelation, join: exp.Join, ctes: Ctes) -> BoundRelation:
    lateral = join.this
    refuse_other_args(lateral, "this", "alias", "view", "outer")
    query = unwrap_subquery(lateral.this)
    if isinstance(query, exp.Values) and not left.is_public:
        return _bind_lateral_values(binder, left, join, query, ctes)
    if left.is_public or not isinstance(query, exp.Select) or not reads_outer_block(binder, query, left.scope):
        raise _unsupported_lateral_error(lateral)
    if query.args.get("from_") is None:
        return _bind_computed_columns(binder, left, join, query)
    if any(map(has_aggregate, query.expressions)) and query.args.get("group") is None:
        return _bind_lateral_aggregates(binder, left, join, query)
    return _bind_lateral_rows(binder, left, join, query, ctes)


# --- aggregates ------------------------------------------------------------------------------------------------------


def _bind_lateral_aggregates(binder: Binder, left: BoundRelation, join: exp.Join, select: exp.Select) -> BoundRelation:
    """An aggregate gives one row, whatever it finds, so every row of the left meets one."""
    check_single_row(select)
    if any(map(is_star, select.expressions)):
        raise Unsupported("* cannot stand beside aggregates", span=span_of(select))
    return _add_lateral_columns(binder, left, join, select, _bind_aggregate_items(binder, left, select, join))


def _bind_computed_columns(binder: Binder, left: BoundRelation, join: exp.Join, select: exp.Select) -> BoundRelation:
    """LATERAL (SELECT v.nights * 2 AS double): columns worked out of the row."""
    more = any(value for key, value in select.args.items() if key != "expressions")
    if more or any(map(is_star, select.expressions)):
        raise _unsupported_lateral_error(join.this)
    return _add_lateral_columns(
        binder, left, join, select, [bind_expr(item.unalias(), left.scope) for item in select.expressions]
    )


def _add_lateral_columns(
    binder: Binder, left: BoundRelation, join: exp.Join, select: exp.Select, exprs: list[Expr]
) -> BoundRelation:
    """The one row that each row of the left meets, as columns under the sub-select's name."""
    on = join.args.get("on")
    if join.args.get("using") or (on is not None and join.args.get("side") and not _is_true_literal(on)):
        raise _unsupported_lateral_error(join.this)
    columns = []
    for item, expr in zip(select.expressions, exprs, strict=True):
        name = item.alias or output_name(item)
        columns.append(BoundColumn(name, left.add_column(binder.namer.reserve_name(name), expr)))
    source = SourceScope(join.this.alias or "lateral", apply_column_aliases(join.this, tuple(columns)))
    check_distinct_aliases(left.scope, Scope((source,)), join)
    left.scope = replace(left.scope, sources=(*left.scope.sources, source))
    if on is not None and not _is_true_literal(on):
        left.filter([bind_condition(on, left.scope)])
    return left


def _bind_aggregate_items(binder: Binder, left: BoundRelation, select: exp.Select, node: exp.Expr) -> list[Expr]:
    if len(select.expressions) == 1:
        value = bind_group_value(binder, left, select, lambda other: bind_from_and_where(other, left, select, node))
        if value is not None:
            return [value]
    inner = bind_from_and_where(binder, left, select, node)
    if not equates_unit(left, inner, ()):
        raise Unsupported(
            "LATERAL gives several aggregates of one unit's rows, or one of a group's",
            hint="Join with the grouped rows: JOIN (SELECT ward, AVG(cost) AS a, COUNT(*) AS n FROM visits"
            " GROUP BY ward) AS x ON x.ward = v.ward.",
            span=span_of(select),
        )
    return bind_unit_aggregates(binder, left, select, inner)


def _is_true_literal(on: exp.Expr) -> bool:
    while isinstance(on, exp.Paren):
        on = on.this
    return isinstance(on, exp.Boolean) and bool(on.this)


# --- values ----------------------------------------------------------------------------------------------------------


def _bind_lateral_values(
    binder: Binder, left: BoundRelation, join: exp.Join, values: exp.Values, ctes: Ctes
) -> BoundRelation:
    """LATERAL (VALUES ('price', v.price), ('profit', v.profit)) AS x(k, y): each row once for each row of VALUES.

    A list of their numbers is joined, and each column is chosen by the number from what the row has in it.

    Stability: a unit's rows are multiplied by as many as are written, each worked out of the row alone.
    """
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in values.expressions]
    if len({len(row) for row in rows}) != 1:
        raise Unsupported("the rows of VALUES have different lengths", span=span_of(join.this))
    name = f"{join.this.alias or 'lateral'} rows"
    numbers = exp.Values(
        expressions=[exp.Tuple(expressions=[exp.Literal.number(number)]) for number in range(len(rows))],
        alias=exp.TableAlias(
            this=exp.to_identifier(name, quoted=True), columns=[exp.to_identifier("row", quoted=True)]
        ),
    )
    plain = exp.Join(this=numbers, kind="CROSS")
    plain.parent = join.parent
    left = bind_join(binder, left, plain, ctes)
    items = []
    for place, column in enumerate(zip(*rows, strict=True)):
        chosen = exp.Case(this=exp.column("row", table=name, quoted=True))
        for number, value in enumerate(column[:-1]):
            chosen = chosen.when(exp.Literal.number(number), value.copy())
        item = chosen.else_(column[-1].copy()) if len(column) > 1 else column[0].copy()
        items.append(exp.alias_(item, f"col{place}", quoted=True))
    select = exp.Select(expressions=items)
    select.parent = join.parent
    exprs = [bind_expr(item.unalias(), left.scope) for item in items]
    result = _add_lateral_columns(binder, left, join, select, exprs)
    result.scope = replace(result.scope, sources=tuple(s for s in result.scope.sources if s.alias != name))
    return result


# --- rows ------------------------------------------------------------------------------------------------------------


def _bind_lateral_rows(
    binder: Binder, left: BoundRelation, join: exp.Join, select: exp.Select, ctes: Ctes
) -> BoundRelation:
    """Rows that the left finds by equalities: an ordinary join; with LIMIT, of the first rows for each value found."""
    clauses = {"expressions", "from_", "joins", "where", "order", "limit"}
    correlated = (
        None if any(v for k, v in select.args.items() if k not in clauses) else _find_correlation(binder, select)
    )
    if correlated is None:
        raise _unsupported_lateral_error(join.this)
    conditions, pairs = correlated
    keys = [exp.alias_(inner.copy(), f"_c{number}", quoted=True) for number, (inner, _) in enumerate(pairs, 1)]
    changed = select.copy()
    changed.set("expressions", [*changed.expressions, *keys])
    changed.set("where", exp.Where(this=exp.and_(*(part.copy() for part in conditions))) if conditions else None)
    if select.args.get("limit") is not None:
        _number_rows(changed, [inner for inner, _ in pairs])
    source = exp.Subquery(this=changed, alias=_lateral_alias(join.this))
    name = source.alias
    on = [exp.EQ(this=exp.column(key.alias, table=name, quoted=True), expression=outer.copy())
          for key, (_, outer) in zip(keys, pairs, strict=True)]  # fmt: skip
    if join.args.get("on") is not None and not _is_true_literal(join.args["on"]):
        on.append(join.args["on"].copy())
    side = join.args.get("side")
    plain = exp.Join(this=source, on=exp.and_(*on), side=side)
    plain.parent = join.parent
    hidden = {key.alias for key in keys}
    result = bind_join(binder, left, plain, ctes)
    result.scope = _hide_columns(result.scope, name, hidden)
    return result


def _number_rows(select: exp.Select, keys: list[exp.Expr]) -> None:
    """ORDER BY … LIMIT k for each value of the keys."""
    order, limit = select.args.get("order"), select.args["limit"]
    if not isinstance(limit, exp.Limit):
        raise Unsupported("LIMIT takes a number here", span=span_of(limit))
    window = exp.Window(this=exp.RowNumber(), partition_by=[key.copy() for key in keys],
                        order=None if order is None else order.copy())  # fmt: skip
    select.set("qualify", exp.Qualify(this=exp.LTE(this=window, expression=limit.expression.copy())))
    select.set("order", None)
    select.set("limit", None)


def _find_correlation(
    binder: Binder, select: exp.Select
) -> tuple[list[exp.Expr], list[tuple[exp.Expr, exp.Expr]]] | None:
    return split_correlation(select, _inner_column_test(binder, select))


def _inner_column_test(binder: Binder, select: exp.Select) -> Callable[[exp.Column], bool]:
    assert binder.outside is not None
    scope = replace(binder, outside=binder.outside.scratch_copy(), told=[]).bind_from(select).scope

    def is_inner(column: exp.Column) -> bool:
        return scope.has_source(column.args["table"]) if column.table else scope.find_column(column) is not None

    return is_inner


def _lateral_alias(lateral: exp.Expr) -> exp.TableAlias:
    alias = lateral.args.get("alias")
    return alias.copy() if isinstance(alias, exp.TableAlias) else exp.TableAlias(this=exp.to_identifier("lateral"))


def _hide_columns(scope: Scope, alias: str, hidden: set[str]) -> Scope:
    """The scope without the columns that were only there to be equated."""
    sources = tuple(
        SourceScope(s.alias, tuple(c for c in s.columns if c.name not in hidden)) if s.alias == alias else s
        for s in scope.sources
    )
    return replace(scope, sources=sources)


def _unsupported_lateral_error(lateral: exp.Expr) -> Unsupported:
    return Unsupported(
        "this form of LATERAL over private rows is not supported",
        hint="It finds rows by =, for example: JOIN LATERAL (SELECT v.cost FROM visits v WHERE v.patient_id ="
        " p.patient_id ORDER BY v.day LIMIT 1) AS x ON TRUE.",
        span=span_of(lateral),
    )
