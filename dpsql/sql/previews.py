"""Single private rows that are asked for, where the owner allows made-up ones: SELECT * FROM visits LIMIT 100.

Law: before anything else is made of the statement, every private table in it, and in the views that it reads, is
replaced by rows that are made up from the schema; then nothing in it is private, and all of it is post-processing. What
aggregates is never answered so, nor what numbers rows by windows: made-up figures could be taken for an answer. Nor is
what gives rows of public tables alone, which made-up ones would only choose: they are true, and the choice is not.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import InternalError
from dpsql.schema.made_up import MAX_ROWS
from dpsql.schema.model import Schema, Table
from dpsql.sql.aggregates import is_aggregate
from dpsql.sql.blocks import Block, Ownership, SplitState

PREVIEW_NOTICE = "these rows are made up from the schema: none of them is in the data, and no row of it was read"


class NoPreview(Exception):
    """The statement has no preview: it aggregates, or reads a table that has none."""


def has_previews(schema: Schema) -> bool:
    return any(table.preview for table in schema.tables)


def check_previewable(tree: exp.Expr) -> None:
    """Of a statement, or of a view's."""
    for node in tree.walk():
        clauses = ("group", "distinct", "having") if isinstance(node, exp.Select) else ()
        groups = any(node.args.get(clause) for clause in clauses)
        if groups or isinstance(node, exp.Window | exp.Pivot) or is_aggregate(node):
            raise NoPreview


def dummy_table_name(table: Table, state: SplitState) -> str:
    """The name of the rows that stand for a private table."""
    if not state.preview or not table.preview:
        raise NoPreview
    return state.made_up.setdefault(table.name, f"_d{len(state.made_up) + 1}")


def finish_preview(block: Block, state: SplitState) -> None:
    """No preview is longer than the rows of one table, whatever is joined."""
    ctes: dict[str, list[exp.Expr]] = {}
    for cte in (*block.post.find_all(exp.CTE), *state.kept_views):
        ctes.setdefault(cte.alias, []).append(cte.this)
    if not _returns_dummy_rows(block.post, frozenset(state.made_up.values()), ctes):
        raise NoPreview
    if state.releases or block.ownership is not Ownership.PUBLIC:
        raise InternalError("a preview reads private rows")
    limit = block.post.args.get("limit")
    number = None if limit is None else limit.args.get("count" if isinstance(limit, exp.Fetch) else "expression")
    few = isinstance(number, exp.Literal) and str(number.this).isdigit() and int(number.this) <= MAX_ROWS
    if not few:
        block.post.set("limit", exp.Limit(expression=exp.Literal.number(MAX_ROWS)))


def _returns_dummy_rows(query: exp.Expr, dummy_tables: frozenset[str], ctes: dict[str, list[exp.Expr]]) -> bool:
    """Whether made-up rows stand in its FROM, and not only in conditions; of a UNION, in that of every part."""
    match query:
        case exp.Subquery():
            return _returns_dummy_rows(query.this, dummy_tables, ctes)
        case exp.SetOperation():
            return all(_returns_dummy_rows(part, dummy_tables, ctes) for part in (query.this, query.expression))
        case exp.Select():
            first = query.args.get("from_")
            sources = [first.this] if first is not None else []
            sources += [join.this for join in query.args.get("joins") or ()]
            return any(_returns_dummy_rows(source, dummy_tables, ctes) for source in sources)
        case exp.Table() if query.name in dummy_tables:
            return True
        case exp.Table() if query.name in ctes:
            others = {name: bodies for name, bodies in ctes.items() if name != query.name}
            return all(_returns_dummy_rows(body, dummy_tables, others) for body in ctes[query.name])
        case _:
            return False
