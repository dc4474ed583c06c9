"""Correlated sub-selects: found by names alone, before anything is bound, and equated to the block around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.compiler.analysis.key_values import list_few_values
from dpsql.compiler.bind.scope import Scope
from dpsql.compiler.bind.sources import Ctes, lookup_table
from dpsql.compiler.parse.dialect import span_of
from dpsql.compiler.parse.parser import is_join_tree
from dpsql.errors import Error, Unsupported
from dpsql.schema.model import Column as DeclaredColumn
from dpsql.schema.model import Schema, Table

if TYPE_CHECKING:
    from dpsql.compiler.bind.binder import Binder

LOOKUP_KEY = "lookup"
"""The note of a query that became grouped, since a row of the block around it looks up one group."""

ColumnsBySource = dict[str, set[str] | None]
"""Of each source its columns, folded; None where they are not known."""


def reads_outer_block(binder: Binder, query: exp.Expr, outer: Scope) -> bool:
    return _has_outer_reference(binder, query, [], outer)


def _has_outer_reference(binder: Binder, query: exp.Expr, around: list[ColumnsBySource], outer: Scope) -> bool:
    if isinstance(query, exp.Subquery):
        return _has_outer_reference(binder, query.this, around, outer)
    if isinstance(query, exp.SetOperation):
        return any(_has_outer_reference(binder, side, around, outer) for side in (query.left, query.right))
    if not isinstance(query, exp.Select):
        return False
    sources = list(iter_sources(query))
    if any(
        _has_outer_reference(binder, source, around, outer) for source in sources if not isinstance(source, exp.Table)
    ):
        return True
    inside = [*around, _source_columns_of(binder, query)]
    outputs = {item.alias.lower() for item in query.expressions if isinstance(item, exp.Alias)}
    for part in _iter_own_parts(query):
        if isinstance(part, exp.Query):
            if _has_outer_reference(binder, part, inside, outer):
                return True
        elif isinstance(part, exp.Column) and not _is_inner_column(part, inside):
            is_output = not part.table and part.name.lower() in outputs
            if not is_output and _is_outer_column(part, outer):
                return True
    return False


def _iter_own_parts(select: exp.Select) -> Iterator[exp.Expr]:
    """Columns and nested queries of the block's own clauses; what stands in FROM is a block of its own."""
    for key, value in select.args.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, exp.Join):
                item = item.args.get("on")
            if isinstance(item, exp.Expr) and key not in ("from_", "with_"):
                yield from item.walk(prune=lambda part: isinstance(part, exp.Query))


def iter_sources(select: exp.Select) -> Iterator[exp.Expr]:
    """The sources of a block, those of joins in parentheses too."""
    from_ = select.args.get("from_")
    waiting = [from_.this] if from_ is not None else []
    waiting += [join.this for join in select.args.get("joins") or ()]
    while waiting:
        source = waiting.pop(0)
        waiting += [join.this for join in source.args.get("joins") or ()]
        if is_join_tree(source):
            waiting.insert(0, source.this)
        else:
            yield source


def _is_inner_column(column: exp.Column, inside: list[ColumnsBySource]) -> bool:
    if column.table:
        return any(column.table.lower() in names for names in inside)
    return any(columns is None or column.name.lower() in columns for names in inside for columns in names.values())


def _is_outer_column(column: exp.Column, outer: Scope) -> bool:
    if isinstance(column.this, exp.Star):
        return False
    try:
        return outer.find_column(column) is not None
    except Error:  # ambiguous, or no such table
        return False


def _source_columns_of(binder: Binder, select: exp.Select) -> ColumnsBySource:
    ctes = binder.ctes_of(select)
    columns_by_source: ColumnsBySource = {}
    for source in iter_sources(select):
        names = _column_names_of(binder, source, ctes)
        alias = source.args.get("alias")
        aliases = [c.name.lower() for c in alias.args.get("columns") or ()] if isinstance(alias, exp.TableAlias) else []
        if aliases:
            names = set(aliases) | (names or set())
        columns_by_source[source.alias_or_name.lower()] = names
    return columns_by_source


def _column_names_of(binder: Binder, source: exp.Expr, ctes: Ctes) -> set[str] | None:
    if isinstance(source, exp.Subquery):
        return _output_names_of(binder, source.this)
    if not isinstance(source, exp.Table) or isinstance(source.this, exp.Func):
        return None
    if not source.db and source.name.lower() in ctes:
        return _output_names_of(binder, ctes[source.name.lower()])
    if binder.outside is not None and binder.outside.is_cte_or_view(source):
        return None
    table = lookup_table(binder.schema, source)
    return None if table is None else {column.name.lower() for column in table.columns}


def _output_names_of(binder: Binder, query: exp.Expr) -> set[str] | None:
    while isinstance(query, exp.Subquery | exp.SetOperation):
        query = query.this
    if not isinstance(query, exp.Select) or any(item.is_star for item in query.expressions):
        return None
    return {item.alias_or_name.lower() for item in query.expressions}


# A sub-select over private rows that looks at a row of a released or public block around it (rule 9 of the split).
#
#     SELECT w.ward, (SELECT COUNT(*) FROM visits v WHERE v.ward = w.ward) FROM wards w
#
# It becomes one release grouped by what is equated to the outer row, and is looked up there:
#
#     SELECT w.ward, COALESCE((SELECT q.v FROM (SELECT COUNT(*) AS v, v.ward AS _c1 … GROUP BY v.ward) AS q
#                              WHERE q._c1 = w.ward), 0) FROM wards w
#
# Where the outer side is a unique column of a public table, only its values are looked up: they are joined, so that the
# groups are listed. Else a group with few units would be left out, and its row would find nothing.
#
#     … FROM visits v, wards _l1 WHERE v.ward = _l1.ward GROUP BY _l1.ward

PublicKey = tuple[str, str]
"""A public table, and a column of it that is declared unique."""

FindPublicKey = Callable[[exp.Expr, exp.Expr], PublicKey | None]
"""Which public key the outer side of an equality is, where the inner side has no list of values of its own."""


@dataclass(frozen=True)
class DecorrelatedSelect:
    """The sub-select without its outer columns, and the outer expressions that its columns `_c1` … are equated to."""

    select: exp.Select
    outer: tuple[exp.Expr, ...]
    counts: bool  # the answer is a count: 0 where there is no group


def decorrelate(
    select: exp.Select, is_inner: Callable[[exp.Column], bool], find_key: FindPublicKey
) -> DecorrelatedSelect | None:
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
    return _group_by_correlation(select, *correlated, find_key)


def split_correlation(
    select: exp.Select, is_inner: Callable[[exp.Column], bool]
) -> tuple[list[exp.Expr], list[tuple[exp.Expr, exp.Expr]]] | None:
    """The conditions of the sub-select alone, and what it equates with the block around it, inner side first.

    None where it reads that block in any other way.
    """
    where = select.args.get("where")
    conditions: list[exp.Expr] = []
    pairs: list[tuple[exp.Expr, exp.Expr]] = []
    for part in (
        where.this.flatten() if where is not None and isinstance(where.this, exp.And) else _where_conditions(where)
    ):
        sides = _equality_sides(part, is_inner)
        if sides is not None:
            pairs.append(sides)
        else:
            conditions.append(part)
    read = {id(column) for column in _columns_of_block(select) if not is_inner(column)}
    return None if read - {id(c) for _, outer in pairs for c in _columns_in(outer)} else (conditions, pairs)


def _group_by_correlation(
    select: exp.Select, conditions: list[exp.Expr], pairs: list[tuple[exp.Expr, exp.Expr]], find_key: FindPublicKey
) -> DecorrelatedSelect:
    item = select.expressions[0].unalias()
    changed = select.copy()
    keys = []
    for number, (inner, outer) in enumerate(pairs, 1):
        key, public = inner, find_key(inner, outer)
        if public is not None:
            table, column = public
            key = exp.column(column, table=f"_l{number}", quoted=True)
            conditions = [*conditions, exp.EQ(this=inner.copy(), expression=key.copy())]
            alias = exp.TableAlias(this=exp.to_identifier(f"_l{number}", quoted=True))
            listed = exp.Table(this=exp.to_identifier(table, quoted=True), alias=alias)
            changed.append("joins", exp.Join(this=listed))
        keys.append(key)
    changed.set("where", exp.Where(this=exp.and_(*(part.copy() for part in conditions))) if conditions else None)
    named = [exp.alias_(key.copy(), f"_c{number}", quoted=True) for number, key in enumerate(keys, 1)]
    changed.set("expressions", [exp.alias_(item.copy(), "v", quoted=True), *named])
    changed.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    changed.set("order", None)
    changed.meta[LOOKUP_KEY] = True
    return DecorrelatedSelect(changed, tuple(outer for _, outer in pairs), isinstance(item, exp.Count | exp.CountIf))


def inner_column_test(scope: Scope) -> Callable[[exp.Column], bool]:
    alone = replace(scope, outer=None)

    def is_inner(column: exp.Column) -> bool:
        return alone.has_source(column.args["table"]) if column.table else alone.find_column(column) is not None

    return is_inner


def find_declared_column(origin: str | None, schema: Schema) -> tuple[Table, DeclaredColumn] | None:
    """The table and the column that bound columns are of, by their origin."""
    return next(
        (
            (table, column)
            for table in schema.tables
            for column in table.columns
            if origin == f"{table.name}.{column.name}"
        ),
        None,
    )


def has_own_list(inner: exp.Expr, scope: Scope, schema: Schema) -> bool:
    """Whether the values of a sub-select's column are listed, or found, without those of the block around it."""
    column = scope.find_column(inner) if isinstance(inner, exp.Column) else None
    declared = None if column is None else find_declared_column(column.column.origin, schema)
    return declared is None or declared[0].public or list_few_values(declared[1].domain) is not None


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
