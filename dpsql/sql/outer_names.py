"""Whether a sub-select reads the block that it stands in, told by names alone, before anything is bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.errors import Error
from dpsql.sql.names import Scope
from dpsql.sql.parentheses import is_join_tree
from dpsql.sql.sources import Ctes, lookup_table

if TYPE_CHECKING:
    from dpsql.sql.bind import Binder

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
    if any(_has_outer_reference(binder, source, around, outer) for source in sources if not isinstance(source, exp.Table)):
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
