"""Whether a sub-select reads the block that it stands in, told by names alone, before anything is bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.errors import Error
from dpsql.sql.names import Scope
from dpsql.sql.parentheses import is_tree
from dpsql.sql.sources import Ctes, known_table

if TYPE_CHECKING:
    from dpsql.sql.bind import Binder

Names = dict[str, set[str] | None]
"""Of each source its columns, folded; None where they are not known."""


def reads_outer(binder: Binder, query: exp.Expr, outer: Scope) -> bool:
    return _free(binder, query, [], outer)


def _free(binder: Binder, query: exp.Expr, around: list[Names], outer: Scope) -> bool:
    if isinstance(query, exp.Subquery):
        return _free(binder, query.this, around, outer)
    if isinstance(query, exp.SetOperation):
        return any(_free(binder, side, around, outer) for side in (query.left, query.right))
    if not isinstance(query, exp.Select):
        return False
    sources = list(sources_in(query))
    if any(_free(binder, source, around, outer) for source in sources if not isinstance(source, exp.Table)):
        return True
    inside = [*around, _names(binder, query)]
    outputs = {item.alias.lower() for item in query.expressions if isinstance(item, exp.Alias)}
    for part in _own_parts(query):
        if isinstance(part, exp.Query):
            if _free(binder, part, inside, outer):
                return True
        elif isinstance(part, exp.Column) and not _is_inside(part, inside):
            is_output = not part.table and part.name.lower() in outputs
            if not is_output and _is_outer(part, outer):
                return True
    return False


def _own_parts(select: exp.Select) -> Iterator[exp.Expr]:
    """Columns and nested queries of the block's own clauses; what stands in FROM is a block of its own."""
    for key, value in select.args.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, exp.Join):
                item = item.args.get("on")
            if isinstance(item, exp.Expr) and key not in ("from_", "with_"):
                yield from item.walk(prune=lambda part: isinstance(part, exp.Query))


def sources_in(select: exp.Select) -> Iterator[exp.Expr]:
    """The sources of a block, those of joins in parentheses too."""
    from_ = select.args.get("from_")
    waiting = [from_.this] if from_ is not None else []
    waiting += [join.this for join in select.args.get("joins") or ()]
    while waiting:
        source = waiting.pop(0)
        waiting += [join.this for join in source.args.get("joins") or ()]
        if is_tree(source):
            waiting.insert(0, source.this)
        else:
            yield source


def _is_inside(column: exp.Column, inside: list[Names]) -> bool:
    if column.table:
        return any(column.table.lower() in names for names in inside)
    return any(known is None or column.name.lower() in known for names in inside for known in names.values())


def _is_outer(column: exp.Column, outer: Scope) -> bool:
    if isinstance(column.this, exp.Star):
        return False
    try:
        return outer.lookup(column) is not None
    except Error:  # ambiguous, or no such table
        return False


def _names(binder: Binder, select: exp.Select) -> Names:
    ctes = binder.ctes_of(select)
    found: Names = {}
    for source in sources_in(select):
        names = _source_names(binder, source, ctes)
        alias = source.args.get("alias")
        given = [c.name.lower() for c in alias.args.get("columns") or ()] if isinstance(alias, exp.TableAlias) else []
        if given:
            names = set(given) | (names or set())
        found[source.alias_or_name.lower()] = names
    return found


def _source_names(binder: Binder, source: exp.Expr, ctes: Ctes) -> set[str] | None:
    if isinstance(source, exp.Subquery):
        return _outputs(binder, source.this)
    if not isinstance(source, exp.Table) or isinstance(source.this, exp.Func):
        return None
    if not source.db and source.name.lower() in ctes:
        return _outputs(binder, ctes[source.name.lower()])
    if binder.outside is not None and binder.outside.is_named(source):
        return None
    table = known_table(binder.schema, source)
    return None if table is None else {column.name.lower() for column in table.columns}


def _outputs(binder: Binder, query: exp.Expr) -> set[str] | None:
    while isinstance(query, exp.Subquery | exp.SetOperation):
        query = query.this
    if not isinstance(query, exp.Select) or any(item.is_star for item in query.expressions):
        return None
    return {item.alias_or_name.lower() for item in query.expressions}
