"""What public tables hold, found when a data version is registered: their rows, and values of columns that have few.

The values are public groups, and row counts bound what a join may do. They are read through the very SQL that
statements scan the table with, so that both sanitise alike; and they are part of the version, like the files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

from dpsql.compiler.plan.relations import PublicScan, ScanColumn
from dpsql.compiler.render.expressions import quote_identifier
from dpsql.compiler.render.relations import render_rows
from dpsql.compiler.rewrite.scan_tables import make_public_scan
from dpsql.errors import InternalError
from dpsql.schema.literals import read_value
from dpsql.schema.model import PublicFacts, Scalar, Schema, Source, Table
from dpsql.types import Kind, Type

MAX_VALUES = 1_000
"""A column with more distinct values than this is not remembered value by value."""

MAX_TEXT_LENGTH = 100_000
"""Nor is one whose values have more characters than this, together: they are read whenever the schema is opened."""

_UNLISTED_KINDS = (Kind.TIME, Kind.INTERVAL, Kind.UUID)
"""Types that cannot be declared value by value either."""

RunQuery = Callable[[str], list[tuple[Any, ...]]]


def find_facts(table: Table, source: Source, physical: Mapping[str, Type | None], ask: RunQuery) -> PublicFacts:
    scan = make_public_scan(table, source, physical)
    rows = render_rows(scan)
    ((count,),) = ask(f"SELECT COUNT(*) FROM ({rows})")
    values_by_column = {column.name: _distinct_values(column, rows, ask) for column in scan.columns}
    values = {name: distinct for name, distinct in values_by_column.items() if distinct is not None}
    return PublicFacts(int(count), values, _find_unique_keys(scan, rows, int(count), ask))


MAX_KEYED_ROWS = 1_000_000
"""Of larger tables only declared keys are known: each pair of columns is a pass over the rows."""

MAX_KEY_CANDIDATES = 8
"""Columns of which pairs are looked at, the first ones of a type that keys have."""

_KEY_KINDS = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.TEXT, Kind.DATE, Kind.UUID, Kind.DECIMAL)


def _find_unique_keys(scan: PublicScan, rows: str, count: int, ask: RunQuery) -> tuple[tuple[str, ...], ...]:
    """Single columns and pairs that no two rows share, of what statements read; rows with NULL in them have no key."""
    names = [column.name for column in scan.columns if column.domain.type.kind in _KEY_KINDS]
    if not 1 < count <= MAX_KEYED_ROWS:
        return ()
    single = [name for name in names if _is_unique((name,), rows, ask)]
    rest = [name for name in names if name not in single][:MAX_KEY_CANDIDATES]
    pairs = [pair for pair in combinations(rest, 2) if _is_unique(pair, rows, ask)]
    return (*((name,) for name in single), *pairs)


def _is_unique(key: tuple[str, ...], rows: str, ask: RunQuery) -> bool:
    columns = [quote_identifier(name) for name in key]
    present = " AND ".join(f"{column} IS NOT NULL" for column in columns)
    grouped = f"SELECT 1 FROM ({rows}) WHERE {present} GROUP BY {', '.join(columns)} HAVING COUNT(*) > 1"
    ((shared,),) = ask(f"SELECT EXISTS ({grouped})")
    return not shared


def _distinct_values(column: ScanColumn, rows: str, ask: RunQuery) -> tuple[Scalar | None, ...] | None:
    """The distinct sanitised values in their order, NULL last; None where there are too many."""
    if column.domain.type.kind in _UNLISTED_KINDS:
        return None
    name = quote_identifier(column.name)
    distinct = f"SELECT DISTINCT {name} FROM ({rows}) LIMIT {MAX_VALUES + 1}"
    values = tuple(value for (value,) in ask(f"SELECT * FROM ({distinct}) ORDER BY ALL NULLS LAST"))
    if len(values) > MAX_VALUES or sum(len(value) for value in values if isinstance(value, str)) > MAX_TEXT_LENGTH:
        return None
    return values


# --- as JSON, and back -----------------------------------------------------------------------------------------------


def write_facts(facts: Mapping[str, PublicFacts]) -> dict[str, object]:
    return {
        table: {
            "rows": table_facts.rows,
            "values": {c: [_format_value(v) for v in vs] for c, vs in table_facts.values.items()},
            "unique": [list(key) for key in table_facts.unique],
        }
        for table, table_facts in facts.items()
    }


def read_facts(written: Mapping[str, Any], schema: Schema) -> dict[str, PublicFacts]:
    """The facts of the schema's public tables, as `write_facts` wrote them."""
    return {table.name: _read_table(written[table.name], table) for table in schema.tables if table.public}


def _read_table(written: Mapping[str, Any], table: Table) -> PublicFacts:
    types = {column.name: column.type for column in table.columns}
    values = {
        name: tuple(_parse_value(text, types[name]) for text in texts) for name, texts in written["values"].items()
    }
    # Versions that were registered before have none.
    return PublicFacts(int(written["rows"]), values, tuple(tuple(key) for key in written.get("unique", ())))


def _format_value(value: Scalar | None) -> str | None:
    """As an owner would write it in the schema; `repr` of a float and `str` of all else lose nothing."""
    if value is None:
        return None
    return repr(value) if isinstance(value, float) else str(value)


def _parse_value(text: str | None, type_: Type) -> Scalar | None:
    if text is None:
        return None
    value = read_value(text, type_)
    if value is None:
        raise InternalError("a registered value is not one of its column")
    return value
