"""PIVOT with a list of values is conditional aggregates, and written so before anything else is made of it.

FROM (SELECT ward, kind, nights FROM visits) PIVOT (SUM(nights) FOR kind IN ('a', 'b'))
→  FROM (SELECT ward, SUM(nights) FILTER (WHERE kind = 'a') AS "a", … FROM (…) AS p GROUP BY ward)
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.compiler.bind.outputs import output_name
from dpsql.compiler.parse.dialect import span_of
from dpsql.errors import Unsupported
from dpsql.schema.model import Schema

PIVOT_SOURCE = "pivoted"


def rewrite_pivots(tree: exp.Query, schema: Schema) -> exp.Query:
    for pivot in list(tree.find_all(exp.Pivot)):
        holder = pivot.parent
        if isinstance(holder, exp.Table | exp.Subquery) and holder.this is not pivot:
            _rewrite_pivot_clause(pivot, holder, schema)
        elif isinstance(holder, exp.Subquery):
            _rewrite_pivot_statement(pivot, holder, schema)
        else:
            raise _unsupported_pivot_error(pivot)
    return tree


def _rewrite_pivot_clause(pivot: exp.Pivot, holder: exp.Table | exp.Subquery, schema: Schema) -> None:
    """FROM source PIVOT (aggregates FOR column IN (values))."""
    fields = pivot.args.get("fields") or []
    if pivot.args.get("unpivot"):
        _rewrite_unpivot_clause(pivot, holder, fields, schema)
        return
    if len(holder.args["pivots"]) != 1 or len(fields) != 1:
        raise _unsupported_pivot_error(pivot)
    source = holder.copy()
    source.set("pivots", None)
    source.set("alias", None)
    alias = pivot.args.get("alias") or holder.args.get("alias")
    select = _build_pivot_select(source, pivot.expressions, fields[0], pivot.args.get("group"), holder, schema)
    if isinstance(alias, exp.TableAlias) and alias.args.get("columns"):
        raise _unsupported_pivot_error(pivot)
    named = exp.Subquery(this=select, alias=alias.copy() if alias is not None else None)
    if isinstance(holder, exp.Table) and holder.args.get("joins"):
        raise _unsupported_pivot_error(pivot)
    holder.replace(named)


def _rewrite_unpivot_clause(pivot: exp.Pivot, holder: exp.Expr, fields: list[exp.Expr], schema: Schema) -> None:
    """FROM source UNPIVOT (value FOR name IN (columns)): a row for each column, of those that are not NULL."""
    chosen = fields[0] if len(fields) == 1 else None
    columns = [node.unalias() for node in chosen.expressions] if isinstance(chosen, exp.In) else []
    single = len(pivot.expressions) == 1 and all(isinstance(column, exp.Column) for column in columns)
    if chosen is None or not columns or not single or len(holder.args["pivots"]) != 1 or holder.args.get("joins"):
        raise _unsupported_pivot_error(pivot)
    source = holder.copy()
    source.set("pivots", None)
    source.set("alias", None)
    select = _build_unpivot_select(
        source, chosen.expressions, chosen.this.name, pivot.expressions[0].name, holder, schema
    )
    alias = pivot.args.get("alias") or holder.args.get("alias")
    holder.replace(exp.Subquery(this=select, alias=alias.copy() if alias is not None else None))


def _build_unpivot_select(
    source: exp.Expr, items: list[exp.Expr], name: str, value: str, context: exp.Expr, schema: Schema
) -> exp.Select:
    columns = [item.unalias() for item in items]
    used = {column.name.lower() for column in columns}
    remaining = [
        exp.column(own, quoted=True) for own in _source_columns(source, context, schema) if own.lower() not in used
    ]
    names = exp.Array(expressions=[exp.Literal.string(item.alias_or_name) for item in items])
    values = exp.Array(expressions=[column.copy() for column in columns])
    rows = exp.Select(expressions=[
        *remaining, exp.alias_(exp.Explode(this=names), name), exp.alias_(exp.Explode(this=values), value)
    ])  # fmt: skip
    rows.set("from_", exp.From(this=_to_from_source(source)))
    select = exp.Select(expressions=[exp.Star()])
    named = exp.TableAlias(this=exp.to_identifier("unpivoted"))
    select.set("from_", exp.From(this=exp.Subquery(this=rows, alias=named)))
    select.set("where", exp.Where(this=exp.Not(this=exp.Is(this=exp.column(value), expression=exp.Null()))))
    return select


def _to_from_source(source: exp.Expr) -> exp.Expr:
    if isinstance(source, exp.Table):
        return source
    inner = source.this if isinstance(source, exp.Subquery) else source
    return exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(PIVOT_SOURCE)))


def _rewrite_pivot_statement(pivot: exp.Pivot, holder: exp.Subquery, schema: Schema) -> None:
    """(PIVOT source ON column IN (values) USING aggregates [GROUP BY …]), (UNPIVOT source ON columns [INTO …])."""
    if pivot.args.get("unpivot"):
        _rewrite_unpivot_statement(pivot, holder, schema)
        return
    if len(pivot.expressions) != 1 or not pivot.args.get("using"):
        raise _unsupported_pivot_error(pivot)
    group, chosen = pivot.args.get("group"), pivot.expressions[0]
    holder.set("this", _build_pivot_select(pivot.this.copy(), pivot.args["using"], chosen, group, pivot, schema))


def _rewrite_unpivot_statement(pivot: exp.Pivot, holder: exp.Subquery, schema: Schema) -> None:
    into = pivot.args.get("into")
    values = into.expressions if into is not None else []
    if len(values) > 1 or not all(isinstance(item.unalias(), exp.Column) for item in pivot.expressions):
        raise _unsupported_pivot_error(pivot)
    name, value = into.this.name if into is not None else "name", values[0].name if values else "value"
    holder.set("this", _build_unpivot_select(pivot.this.copy(), pivot.expressions, name, value, pivot, schema))


def _build_pivot_select(
    source: exp.Expr,
    aggregates: list[exp.Expr],
    chosen: exp.Expr,
    group: exp.Group | None,
    context: exp.Expr,
    schema: Schema,
) -> exp.Select:
    if not isinstance(chosen, exp.In) or not isinstance(chosen.this, exp.Column) or not chosen.expressions:
        raise Unsupported(
            "PIVOT needs the list of values that become columns",
            hint="For example: PIVOT (SUM(cost) FOR sex IN ('f', 'm')).",
            span=span_of(context),
        )
    read = {column.name.lower() for aggregate in aggregates for column in aggregate.find_all(exp.Column)}
    others = read | {chosen.this.name.lower()}
    if group is not None:
        keys = [node.copy() for node in group.expressions]
    else:
        keys = [
            exp.column(name, quoted=True)
            for name in _source_columns(source, context, schema)
            if name.lower() not in others
        ]
    items: list[exp.Expr] = [key.copy() for key in keys]
    for value in chosen.expressions:
        for aggregate in aggregates:
            items.append(_build_pivot_item(aggregate, chosen.this, value, len(aggregates) > 1))
    select = exp.Select(expressions=items)
    select.set("from_", exp.From(this=_to_from_source(source)))
    if keys:
        select.set("group", exp.Group(expressions=keys))
    return select


def _build_pivot_item(aggregate: exp.Expr, column: exp.Column, value: exp.Expr, several: bool) -> exp.Alias:
    inner, literal = aggregate.unalias(), value.unalias()
    name = value.alias if isinstance(value, exp.Alias) else literal.name
    if isinstance(aggregate, exp.Alias):
        name = f"{name}_{aggregate.alias}"
    elif several:
        name = f"{name}_{output_name(inner)}"
    where = exp.Where(this=exp.EQ(this=column.copy(), expression=literal.copy()))
    counted = exp.Filter(this=inner.copy(), expression=where)
    return exp.Alias(this=counted, alias=exp.to_identifier(name, quoted=True))


def _source_columns(source: exp.Expr, context: exp.Expr, schema: Schema) -> list[str]:
    """The names of the source's columns, which are grouped by unless they are used otherwise."""
    query = source.this if isinstance(source, exp.Subquery) else source
    if isinstance(query, exp.Table):
        for cte in (cte for with_ in context.root().find_all(exp.With) for cte in with_.expressions):
            if cte.alias.lower() == query.name.lower():
                return _source_columns(cte.this, context, schema)
        table = next((t for t in schema.tables if t.name.lower() == query.name.lower()), None)
        if table is not None:
            return [column.name for column in table.columns]
    if isinstance(query, exp.Select) and not any(item.is_star for item in query.selects):
        return [item.alias_or_name for item in query.selects]
    raise Unsupported(
        "the columns that PIVOT groups by are not known",
        hint="Name the columns in a sub-select: FROM (SELECT ward, sex, cost FROM visits) PIVOT (…).",
        span=span_of(context),
    )


def _unsupported_pivot_error(pivot: exp.Pivot) -> Unsupported:
    return Unsupported(
        "this form of PIVOT is not supported",
        hint="For example: SELECT * FROM (SELECT ward, sex, cost FROM visits) PIVOT (SUM(cost) FOR sex IN ('f', 'm')).",
        span=span_of(pivot),
    )
