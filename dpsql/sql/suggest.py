"""For whoever asked for single private rows: a statement over the same table that is answered.

Law: what a hint proposes is never refused itself. So it groups by no column that holds a unit's id, leads to one, or
is unique, and names no CTE or sub-select that stands in the refused statement only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres

from dpsql.lex import TokenKind, split_tokens
from dpsql.schema.model import Column, MadeTable, Schema, Table
from dpsql.sql.literals import quote_identifier
from dpsql.sql.names import BoundColumn, is_star
from dpsql.sql.sources import lookup_table
from dpsql.types import Kind as Type

_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_MAX_SHOWN_COLUMNS = 4
"""Columns of a synthetic table that is proposed."""
_MAX_LISTED_VALUES = 100
_KEYWORDS = {word.lower() for word in Postgres.Tokenizer.KEYWORDS}


def aggregate_hint(
    select: exp.Select, columns: Sequence[BoundColumn], schema: Schema, named: Mapping[str, exp.Query], some: bool
) -> str:
    """`columns` are what it would have given out; `named` are the CTEs, and views, over private rows; `some` says that
    it had a LIMIT."""
    stars = any(is_star(item) for item in select.expressions)
    declared = [declared for column in columns if (declared := _declared_column(schema, column))]
    keys = [(table, column) for table, column in declared if _can_group_by(schema, table, column)]
    if stars:  # she has not said what she is after: what is surely an answer
        keys = [(table, column) for table, column in keys if column.domain.values is not None]
    keys.sort(key=lambda key: (key[1].domain.values is None, key[1].type.is_number, key[1].type.is_time))
    like = _synthetic_table_hint(declared, schema) if stars and some else ""
    if keys:
        return f"Aggregate, for example: {_example_aggregate(*keys[0])}.{like}"
    counted = _find_read_table(select, schema, named)
    if counted is None:
        return f"Aggregate, for example with COUNT(*).{like}"
    return f"Aggregate, for example: SELECT COUNT(*) FROM {_quote_if_needed(counted)}.{like}"


def _synthetic_table_hint(declared: Sequence[tuple[Table, Column]], schema: Schema) -> str:
    """For whoever wants to see some rows: a synthetic table of columns whose values the schema tells."""
    tables = {table.name for table, _ in declared}
    columns = [column for table, column in declared if _can_group_by(schema, table, column) and _has_encodable_values(column)]
    if len(tables) != 1:
        return ""
    source = tables.pop()
    synthetic = next((candidate.name for candidate in reversed(schema.made) if _reads_table(candidate, source)), None)
    if synthetic is not None:
        return f" For rows like them: SELECT * FROM {_quote_if_needed(synthetic)} LIMIT 10."
    if not columns or schema.privacy.contributions.rows is None:
        return ""
    taken = {candidate.name.lower() for candidate in schema.relations}
    names = (f"{source}_like{number}" for number in ("", *range(2, len(taken) + 3)))
    name = next(candidate for candidate in names if candidate.lower() not in taken)
    listed = ", ".join(_quote_if_needed(column.name) for column in columns[:_MAX_SHOWN_COLUMNS])
    return f" For rows like them: CREATE SYNTHETIC TABLE {_quote_if_needed(name)} AS SELECT {listed} FROM {_quote_if_needed(source)}."


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
    fit = [candidate for candidate in table.columns if _can_group_by(schema, table, candidate) and _has_encodable_values(candidate)]
    listed = ", ".join(_quote_if_needed(candidate.name) for candidate in fit if star or not candidate.type.is_time)  # no model takes times
    if not listed:
        return "Leave it out."
    if star:
        return f"Leave it out, for example: SELECT {listed} FROM {_quote_if_needed(table.name)}."
    return f"Leave it out. Of {_quote_if_needed(table.name)}, these will do: {listed}."


def _has_encodable_values(column: Column) -> bool:
    domain = column.domain
    ordered = column.type.is_number or (column.type.is_time and column.type.kind is not Type.TIME)
    few = domain.values is not None and len(domain.values) <= _MAX_LISTED_VALUES
    return few or (ordered and domain.is_bounded) or column.type.kind is Type.BOOLEAN


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
