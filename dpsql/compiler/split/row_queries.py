"""Queries for private rows: refused with a proposal, described without rows, or answered with dummy rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres

from dpsql.base.lexer import TokenKind, split_tokens
from dpsql.compiler.bind.aggregates import is_aggregate
from dpsql.compiler.bind.binder import Binder
from dpsql.compiler.bind.coercion import bind_literal
from dpsql.compiler.bind.scope import BoundColumn, is_star
from dpsql.compiler.bind.sources import lookup_table
from dpsql.compiler.parse.dialect import span_of
from dpsql.compiler.render.expressions import quote_identifier
from dpsql.compiler.split.blocks import Block, Ownership, SplitState
from dpsql.errors import InternalError, NotPrivate
from dpsql.schema.dummy_rows import MAX_ROWS
from dpsql.schema.model import Column, MadeTable, Schema, Table
from dpsql.types import Kind, Type


def describe_or_refuse_rows(select: exp.Select, binder: Binder, state: SplitState) -> Block:
    """LIMIT 0 and WHERE FALSE ask for types only; everything else without an aggregate asks for rows."""
    only_types = _needs_types_only(select)
    select.set("limit", None)
    select.set("offset", None)
    _, columns = binder.bind_owned_select(select)  # a misspelt name or function is said first
    if not only_types:
        hint = aggregate_hint(select, columns, state.schema, state.scopes[id(select)])
        first = span_of(select.expressions[0]) if select.expressions else None
        raise NotPrivate("this would return single private rows", hint=hint, span=first)
    return Block(Ownership.PUBLIC, _empty_select((c.name, c.column.type) for c in columns))


def _needs_types_only(select: exp.Select) -> bool:
    limit, where = select.args.get("limit"), select.args.get("where")
    if limit is not None and isinstance(limit.expression, exp.Literal) and str(limit.expression.this) == "0":
        return True
    return where is not None and _is_false_condition(where.this)


def _empty_select(columns: Iterable[tuple[str, Type]]) -> exp.Select:
    """No row, with columns of these names and types."""
    items = [exp.alias_(exp.cast(exp.Null(), str(type_)), name, quoted=True) for name, type_ in columns]
    return exp.select(*items).where(exp.false())


def _is_false_condition(node: exp.Expr) -> bool:
    """WHERE FALSE, 1 = 0, 1 <> 1, NOT TRUE: also in parentheses, and beside other conditions."""
    match node:
        case exp.Paren():
            return _is_false_condition(node.this)
        case exp.And():
            return _is_false_condition(node.this) or _is_false_condition(node.expression)
        case exp.Boolean():
            return not node.this
        case exp.Not() if isinstance(node.this, exp.Boolean):
            return bool(node.this.this)
        case exp.EQ() | exp.NEQ():
            sides = [bind_literal(side) for side in (node.this, node.expression) if isinstance(side, exp.Literal)]
            if len(sides) != 2 or not all(side.type.is_number for side in sides):
                return False
            return (sides[0].value == sides[1].value) == isinstance(node, exp.NEQ)
        case _:
            return False


# Single private rows that are asked for, where the owner allows made-up ones: SELECT * FROM visits LIMIT 100.
#
# Law: before anything else is made of the statement, every private table in it, and in the views that it reads, is
# replaced by rows that are made up from the schema; then nothing in it is private, and all of it is post-processing.
# What aggregates is never answered so, nor what numbers rows by windows: made-up figures could be taken for an answer.
# Nor is what gives rows of public tables alone, which made-up ones would only choose: they are true, and the choice is
# not.

PREVIEW_NOTICE = "these rows are made up from the schema: none of them is in the data, and no row of it was read"


class NoPreview(Exception):
    """The statement has no preview: it aggregates, or reads a table that has none."""


def check_previewable(tree: exp.Expr) -> None:
    """Refuse what aggregates, numbers or windows in a statement, or in a view's."""
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


# For whoever asked for single private rows: a statement over the same table that is answered.
#
# Law: what a hint proposes is never refused itself. So it groups by no column that holds a unit's id, leads to one, or
# is unique, and names no CTE or sub-select that stands in the refused statement only.

_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_MAX_SHOWN_COLUMNS = 4
"""Columns of a synthetic table that is proposed."""
_MAX_LISTED_VALUES = 100
_KEYWORDS = {word.lower() for word in Postgres.Tokenizer.KEYWORDS}


def aggregate_hint(
    select: exp.Select, columns: Sequence[BoundColumn], schema: Schema, named: Mapping[str, exp.Query]
) -> str:
    """`columns` are what it would have given out; `named` are the CTEs, and views, over private rows."""
    stars = any(is_star(item) for item in select.expressions)
    declared = [declared for column in columns if (declared := _declared_column(schema, column))]
    keys = [(table, column) for table, column in declared if _can_group_by(schema, table, column)]
    if stars:  # she has not said what she is after: what is surely an answer
        keys = [(table, column) for table, column in keys if column.domain.values is not None]
    keys.sort(key=lambda key: (key[1].domain.values is None, key[1].type.is_number, key[1].type.is_time))
    like = _synthetic_table_hint(declared, schema) if stars else ""
    if keys:
        return f"Aggregate, for example: {_example_aggregate(*keys[0])}.{like}"
    counted = _find_read_table(select, schema, named)
    if counted is None:
        return f"Aggregate, for example with COUNT(*).{like}"
    return f"Aggregate, for example: SELECT COUNT(*) FROM {_quote_if_needed(counted)}.{like}"


def _synthetic_table_hint(declared: Sequence[tuple[Table, Column]], schema: Schema) -> str:
    """For whoever wants to see some rows: a synthetic table of columns whose values the schema tells."""
    tables = {table.name for table, _ in declared}
    columns = [
        column for table, column in declared if _can_group_by(schema, table, column) and _has_encodable_values(column)
    ]
    if len(tables) != 1:
        return ""
    source = tables.pop()
    synthetic = next((candidate.name for candidate in reversed(schema.made) if _reads_table(candidate, source)), None)
    if synthetic is not None:
        return f" For rows like them: SELECT * FROM {_quote_if_needed(synthetic)} LIMIT 10."
    if not columns:
        return ""
    taken = {candidate.name.lower() for candidate in schema.relations}
    names = (f"{source}_like{number}" for number in ("", *range(2, len(taken) + 3)))
    name = next(candidate for candidate in names if candidate.lower() not in taken)
    listed = ", ".join(_quote_if_needed(column.name) for column in columns[:_MAX_SHOWN_COLUMNS])
    select = f"SELECT {listed} FROM {_quote_if_needed(source)}"
    return f" For rows like them: CREATE SYNTHETIC TABLE {_quote_if_needed(name)} AS {select}."


def _reads_table(synthetic: MadeTable, table: str) -> bool:
    """Whether its statement names the table. Tokens tell: it may have been written with parameters."""
    words = (token for token in split_tokens(synthetic.statement) if token.kind in (TokenKind.WORD, TokenKind.QUOTED))
    return any(token.text.strip('"').lower() == table.lower() for token in words)


def is_id_column(schema: Schema, column: BoundColumn) -> bool:
    """Whether nothing is known of a column but that it names units or rows."""
    declared = _declared_column(schema, column)
    return declared is not None and not _can_group_by(schema, *declared) and not _has_encodable_values(declared[1])


def suggest_without_ids(query: exp.Query, columns: Sequence[BoundColumn], schema: Schema) -> str:
    """What else of the same rows can be made something of."""
    declared = [declared for column in columns if (declared := _declared_column(schema, column))]
    tables = dict.fromkeys(table.name for table, _ in declared)
    if len(tables) != 1:
        return "Leave it out."
    table, star = declared[0][0], any(is_star(item) for item in query.selects)
    fit = [
        candidate
        for candidate in table.columns
        if _can_group_by(schema, table, candidate) and _has_encodable_values(candidate)
    ]
    listed = ", ".join(
        _quote_if_needed(candidate.name) for candidate in fit if star or not candidate.type.is_time
    )  # no model takes times
    if not listed:
        return "Leave it out."
    if star:
        return f"Leave it out, for example: SELECT {listed} FROM {_quote_if_needed(table.name)}."
    return f"Leave it out. Of {_quote_if_needed(table.name)}, these will do: {listed}."


def _has_encodable_values(column: Column) -> bool:
    domain = column.domain
    ordered = column.type.is_number or (column.type.is_time and column.type.kind is not Kind.TIME)
    few = domain.values is not None and len(domain.values) <= _MAX_LISTED_VALUES
    return few or (ordered and domain.is_bounded) or column.type.kind is Kind.BOOLEAN


def _declared_column(schema: Schema, column: BoundColumn) -> tuple[Table, Column] | None:
    """The private table, and its column, that a column is of."""
    for table in schema.tables:
        for declared in table.columns if not table.public else ():
            if column.column.origin == f"{table.name}.{declared.name}":
                return table, declared
    return None


def _example_aggregate(table: Table, column: Column) -> str:
    """Values by their counts; measured ones, of which hardly two are the same, by periods or by their mean."""
    name, rows = _quote_if_needed(column.name), _quote_if_needed(table.name)
    if column.domain.values is None and column.domain.is_bounded and column.type.is_time:
        return f"SELECT DATE_TRUNC('month', {name}), COUNT(*) FROM {rows} GROUP BY 1"
    if column.domain.values is None and column.domain.is_bounded and column.type.is_number:
        return f"SELECT AVG({name}), COUNT(*) FROM {rows}"
    return f"SELECT {name}, COUNT(*) FROM {rows} GROUP BY {name}"


def _can_group_by(schema: Schema, table: Table, column: Column) -> bool:
    return column.name not in schema.find_id_columns(table) and not table.is_unique(column.name)


def _find_read_table(query: exp.Expr, schema: Schema, named: Mapping[str, exp.Query]) -> str | None:
    """A private table, or a view, that the statement reads, or that a CTE reads."""
    for source in query.find_all(exp.Table):
        name = source.name.lower()
        view, table = schema.view(name), lookup_table(schema, source)
        if view is not None:
            return view.name
        if name in named:
            return _find_read_table(named[name], schema, {other: cte for other, cte in named.items() if other != name})
        if table is not None and not table.public:
            return table.name
    return None


def _quote_if_needed(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) and name not in _KEYWORDS else quote_identifier(name)
