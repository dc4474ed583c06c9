"""For whoever asked for single private rows: a statement over the same table that is answered.

Law: what a hint proposes is never refused itself. So it groups by no column that holds a unit's id, leads to one, or
is unique, and names no CTE or sub-select that stands in the refused statement only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres

from dpsql.lex import Kind, tokens
from dpsql.schema.model import Column, MadeTable, Schema, Table
from dpsql.sql.literals import identifier
from dpsql.sql.names import BoundColumn, is_star
from dpsql.sql.sources import known_table
from dpsql.types import Kind as Type

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_SHOWN = 4
"""Columns of a synthetic table that is proposed."""
_FEW = 100
_WORDS = {word.lower() for word in Postgres.Tokenizer.KEYWORDS}


def aggregate_hint(
    select: exp.Select, columns: Sequence[BoundColumn], schema: Schema, named: Mapping[str, exp.Query], some: bool
) -> str:
    """`columns` are what it would have given out; `named` are the CTEs, and views, over private rows; `some` says that
    it had a LIMIT."""
    stars = any(is_star(item) for item in select.expressions)
    found = [found for column in columns if (found := _declared(schema, column))]
    keys = [(table, column) for table, column in found if _may_group(schema, table, column)]
    if stars:  # she has not said what she is after: what is surely an answer
        keys = [(table, column) for table, column in keys if column.domain.values is not None]
    keys.sort(key=lambda key: (key[1].domain.values is None, key[1].type.is_number, key[1].type.is_time))
    like = _rows_like(found, schema) if stars and some else ""
    if keys:
        return f"Aggregate, for example: {_example(*keys[0])}.{like}"
    counted = _read(select, schema, named)
    if counted is None:
        return f"Aggregate, for example with COUNT(*).{like}"
    return f"Aggregate, for example: SELECT COUNT(*) FROM {_name(counted)}.{like}"


def _rows_like(found: Sequence[tuple[Table, Column]], schema: Schema) -> str:
    """For whoever wants to see some rows: a synthetic table of columns whose values the schema tells."""
    tables = {table.name for table, _ in found}
    columns = [column for table, column in found if _may_group(schema, table, column) and _has_codes(column)]
    if len(tables) != 1:
        return ""
    source = tables.pop()
    made = next((one.name for one in reversed(schema.made) if _reads(one, source)), None)
    if made is not None:
        return f" For rows like them: SELECT * FROM {_name(made)} LIMIT 10."
    if not columns or schema.privacy.contributions.rows is None:
        return ""
    taken = {one.name.lower() for one in schema.relations}
    names = (f"{source}_like{number}" for number in ("", *range(2, len(taken) + 3)))
    name = next(one for one in names if one.lower() not in taken)
    listed = ", ".join(_name(column.name) for column in columns[:_SHOWN])
    return f" For rows like them: CREATE SYNTHETIC TABLE {_name(name)} AS SELECT {listed} FROM {_name(source)}."


def _reads(made: MadeTable, table: str) -> bool:
    """Whether its statement names the table. Tokens tell: it may have been written with parameters."""
    words = (token for token in tokens(made.statement) if token.kind in (Kind.WORD, Kind.QUOTED))
    return any(token.text.strip('"').lower() == table.lower() for token in words)


def is_id(schema: Schema, column: BoundColumn) -> bool:
    """Whether nothing is known of a column but that it names units or rows."""
    found = _declared(schema, column)
    return found is not None and not _may_group(schema, *found) and not _has_codes(found[1])


def without_ids(query: exp.Query, columns: Sequence[BoundColumn], schema: Schema) -> str:
    """What else of the same rows can be made something of."""
    found = [found for column in columns if (found := _declared(schema, column))]
    tables = dict.fromkeys(table.name for table, _ in found)
    if len(tables) != 1:
        return "Leave it out."
    table, star = found[0][0], any(is_star(item) for item in query.selects)
    fit = [one for one in table.columns if _may_group(schema, table, one) and _has_codes(one)]
    listed = ", ".join(_name(one.name) for one in fit if star or not one.type.is_time)  # no model takes times
    if not listed:
        return "Leave it out."
    if star:
        return f"Leave it out, for example: SELECT {listed} FROM {_name(table.name)}."
    return f"Leave it out. Of {_name(table.name)}, these will do: {listed}."


def _has_codes(column: Column) -> bool:
    domain = column.domain
    ordered = column.type.is_number or (column.type.is_time and column.type.kind is not Type.TIME)
    few = domain.values is not None and len(domain.values) <= _FEW
    return few or (ordered and domain.bounded) or column.type.kind is Type.BOOLEAN


def _declared(schema: Schema, column: BoundColumn) -> tuple[Table, Column] | None:
    """The private table, and its column, that a column is of."""
    for table in schema.tables:
        for declared in table.columns if not table.public else ():
            if column.column.origin == f"{table.name}.{declared.name}":
                return table, declared
    return None


def _example(table: Table, column: Column) -> str:
    """Values by their counts; measured ones, of which hardly two are the same, by periods or by their mean."""
    name, rows = _name(column.name), _name(table.name)
    if column.domain.values is None and column.domain.bounded and column.type.is_time:
        return f"SELECT DATE_TRUNC('month', {name}), COUNT(*) FROM {rows} GROUP BY 1"
    if column.domain.values is None and column.domain.bounded and column.type.is_number:
        return f"SELECT AVG({name}), COUNT(*) FROM {rows}"
    return f"SELECT {name}, COUNT(*) FROM {rows} GROUP BY {name}"


def _may_group(schema: Schema, table: Table, column: Column) -> bool:
    return column.name not in schema.id_columns(table) and not table.is_unique(column.name)


def _read(query: exp.Expr, schema: Schema, named: Mapping[str, exp.Query]) -> str | None:
    """A private table, or a view, that the statement reads, or that a CTE reads."""
    for source in query.find_all(exp.Table):
        name = source.name.lower()
        view, table = schema.view(name), known_table(schema, source)
        if view is not None:
            return view.name
        if name in named:
            return _read(named[name], schema, {other: cte for other, cte in named.items() if other != name})
        if table is not None and not table.public:
            return table.name
    return None


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name not in _WORDS else identifier(name)
