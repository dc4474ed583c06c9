"""Single private rows that are asked for, where the owner allows made-up ones: SELECT * FROM visits LIMIT 100.

Law: before anything else is made of the statement, every private table in it, and in the views that it reads, is
replaced by rows that are made up from the schema; then nothing in it is private, and all of it is post-processing. What
aggregates is never answered so, nor what numbers rows by windows: made-up figures could be taken for an answer.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import InternalError
from dpsql.schema.made_up import MOST
from dpsql.schema.model import Schema, Table
from dpsql.sql.aggregates import is_aggregate
from dpsql.sql.blocks import Block, Ownership, State

NOTICE = "these rows are made up from the schema: none of them is in the data, and no row of it was read"


class NoPreview(Exception):
    """The statement has no preview: it aggregates, or reads a table that has none."""


def has_previews(schema: Schema) -> bool:
    return any(table.preview for table in schema.tables)


def check_preview(tree: exp.Expr) -> None:
    """Of a statement, or of a view's."""
    for node in tree.walk():
        clauses = ("group", "distinct", "having") if isinstance(node, exp.Select) else ()
        groups = any(node.args.get(clause) for clause in clauses)
        if groups or isinstance(node, exp.Window | exp.Pivot) or is_aggregate(node):
            raise NoPreview


def made_up_name(table: Table, state: State) -> str:
    """The name of the rows that stand for a private table."""
    if not state.preview or not table.preview:
        raise NoPreview
    return state.made_up.setdefault(table.name, f"_d{len(state.made_up) + 1}")


def finish_preview(block: Block, state: State) -> None:
    """No preview is longer than the rows of one table, whatever is joined."""
    if state.releases or block.ownership is not Ownership.PUBLIC:
        raise InternalError("a preview reads private rows")
    limit = block.post.args.get("limit")
    number = None if limit is None else limit.args.get("count" if isinstance(limit, exp.Fetch) else "expression")
    few = isinstance(number, exp.Literal) and str(number.this).isdigit() and int(number.this) <= MOST
    if not few:
        block.post.set("limit", exp.Limit(expression=exp.Literal.number(MOST)))
