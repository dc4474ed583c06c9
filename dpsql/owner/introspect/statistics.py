"""What the rows of a table are like, in exact figures: for the owner alone, who has them.

Law: nothing here is reachable from an analyst's statement; only the package `owner` asks. A figure that leaves by way
of a schema (a bound, a list of values) is not private, and whoever proposes it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from dpsql.engines.duckdb import duckdb_type_name, quote_identifier, quote_literal, render_source
from dpsql.engines.duckdb_admin import sanitized_sql
from dpsql.engines.text_files import text_files_sql
from dpsql.schema.model import EPOCH, Column, Files, ForeignUnit, OwnUnit, Schema, Source, Table, unit_columns_of
from dpsql.types import DATE, TIMESTAMP, TIMESTAMPTZ, Kind, Type

RunQuery = Callable[[str], list[tuple[object, ...]]]

BOUND_QUANTILES = (0.005, 0.995)
"""Half of a percent of the values is beyond each: what bounds are proposed from."""
COLUMNS_PER_SCAN = 40
"""Columns that one scan looks at: a query of hundreds takes long to plan, and much memory."""


@dataclass(frozen=True)
class ColumnFacts:
    """Rows of a column by what becomes of them in the sanitising scan.

    `low` and `high` are QUANTILES, `least` and `largest` the ends: of values as they are, before they are clipped, as
    numbers (a date in days, a time in microseconds). `distinct` is a little off: a sketch counts it.
    """

    present: int
    fit: int
    below: int = 0
    above: int = 0
    unlisted: int = 0
    too_long: int = 0
    distinct: int = 0
    low: float | None = None
    high: float | None = None
    least: float | None = None
    largest: float | None = None
    longest: int | None = None
    cents: int = 0  # of a float, values that are whole hundredths
    commas: int = 0  # of a number in a text file, fields such as 1,5
    day_first: int = 0  # of a time in a text file, fields such as 24.12.2023

    @property
    def unfit_count(self) -> int:
        """Fields that hold something, but no value of the type."""
        return self.present - self.fit - self.too_long


def measure_columns(ask: RunQuery, source: Source, columns: Sequence[Column]) -> tuple[int, dict[str, ColumnFacts]]:
    """The number of rows, and the facts of each column, in one scan for each COLUMNS_PER_SCAN of them."""
    rows, facts = 0, {}
    for start in range(0, max(1, len(columns)), COLUMNS_PER_SCAN):
        part = columns[start : start + COLUMNS_PER_SCAN]
        expressions = [figure for column in part for figure in _column_figures_sql(column)]
        (row,) = ask(f"SELECT {', '.join(['count(*)', *expressions])} FROM {render_source(source)}")
        rows, values = _to_integer(row[0]), iter(row[1:])
        for column in part:
            facts[column.name] = _read_column_facts([next(values) for _ in _column_figures_sql(column)])
    return rows, facts


COMMA_NUMBER_PATTERN = "[+-]?[0-9][0-9. ]*,[0-9]+"
DAY_FIRST_PATTERN = "[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4}.*"


def add_field_counts(
    ask: RunQuery, files: Files, columns: Sequence[Column], facts: Mapping[str, ColumnFacts]
) -> dict[str, ColumnFacts]:
    """The facts of text files, whose copy has NULL both for what is empty and for what is no value of the type.

    The fields are counted as they are written, in a scan of their own; one of blanks alone is empty.
    """
    updated = dict(facts)
    for start in range(0, len(columns), COLUMNS_PER_SCAN):
        part = [column for column in columns[start : start + COLUMNS_PER_SCAN] if column.type.kind is not Kind.TEXT]
        expressions = [figure for column in part for figure in _field_counts_sql(column, files)]
        if not expressions:
            continue
        (row,) = ask(f"SELECT {', '.join(expressions)} FROM {text_files_sql(files, columns)}")
        values = (_to_integer(value) for value in row)
        for column in part:
            column_facts = updated[column.name]
            present, commas, day_first = next(values), next(values), next(values)
            # Not below what the copy has: the files may have changed since.
            updated[column.name] = replace(
                column_facts, present=max(present, column_facts.present), commas=commas, day_first=day_first
            )
    return updated


def _field_counts_sql(column: Column, files: Files) -> tuple[str, str, str]:
    field = f"trim({quote_identifier(column.name)})"
    commas = dates = "0"
    if column.type.is_number and not files.decimal:
        commas = f"count_if(regexp_full_match({field}, {quote_literal(COMMA_NUMBER_PATTERN)}))"
    if column.type.is_time and not column.format:
        dates = f"count_if(regexp_full_match({field}, {quote_literal(DAY_FIRST_PATTERN)}))"
    return f"count_if({field} <> '')", commas, dates


def _column_figures_sql(column: Column) -> list[str]:
    """Twelve figures, in the order of `_read_column_facts`."""
    raw, typed = quote_identifier(column.name), _typed_sql(column)
    domain = column.domain
    number = _number_sql(typed, domain.type)
    below = f"count_if({typed} < {_bound_sql(column, 'lower')})" if domain.lower is not None else "0"
    above = f"count_if({typed} > {_bound_sql(column, 'upper')})" if domain.upper is not None else "0"
    unlisted = "0"
    if domain.values is not None:
        below = above = "0"
        unlisted = f"count_if({typed} NOT IN ({_listed_values_sql(column)}))"
    text = domain.type.kind is Kind.TEXT
    return [
        f"count({raw})",
        f"count({typed})",
        below,
        above,
        unlisted,
        f"count_if(length({_cast_sql(column)}) > {column.max_length})" if text else "0",
        f"approx_count_distinct({typed})",
        f"approx_quantile({number}, {number_list_sql(BOUND_QUANTILES)})" if number else "NULL",
        f"min({number})" if number else "NULL",
        f"max({number})" if number else "NULL",
        f"max(length({_cast_sql(column)}))" if text else "NULL",
        f"count_if(abs({typed} * 100 - round({typed} * 100)) < 1e-6)" if domain.type.is_float else "0",
    ]


def _read_column_facts(row: Sequence[object]) -> ColumnFacts:
    present, fit, below, above, unlisted, too_long, distinct = (_to_integer(value) for value in row[:7])
    low, high = row[7] if isinstance(row[7], list) else (None, None)
    least, largest, longest, cents = row[8:]
    return ColumnFacts(
        present,
        fit,
        below,
        above,
        unlisted,
        too_long,
        distinct,
        _to_float(low),
        _to_float(high),
        _to_float(least),
        _to_float(largest),
        None if longest is None else _to_integer(longest),
        _to_integer(cents),
    )


def _to_integer(value: object) -> int:
    """Over no rows DuckDB's count_if is NULL."""
    if value is None:
        return 0
    assert isinstance(value, int)
    return value


def _to_float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def number_list_sql(numbers: Sequence[float]) -> str:
    return f"[{', '.join(repr(number) for number in numbers)}]"


def _cast_sql(column: Column) -> str:
    return f"TRY_CAST({quote_identifier(column.name)} AS {duckdb_type_name(column.type)})"


def _typed_sql(column: Column) -> str:
    """The value as the scan reads it before it is clipped: what is no finite value of the type is NULL."""
    value = _cast_sql(column)
    if column.type.is_float or column.type.is_time:
        return f"CASE WHEN isfinite({value}) THEN {value} END"
    if column.type.kind is Kind.TEXT:
        return f"CASE WHEN length({value}) <= {column.max_length} THEN {value} END"
    return value


def _number_sql(typed: str, type_: Type) -> str | None:
    """The value as a number: a date in days since 1970, a time in microseconds."""
    if type_.is_number:
        return f"CAST({typed} AS DOUBLE)"
    if type_.kind is Kind.DATE:
        return f"CAST({typed} - DATE '{EPOCH.date()}' AS DOUBLE)"
    return f"CAST(epoch_us({typed}) AS DOUBLE)" if type_.is_time else None


def _bound_sql(column: Column, side: str) -> str:
    bound = getattr(column.domain, side)
    match column.type.kind:
        case Kind.DATE:
            return f"(DATE '{EPOCH.date()}' + ({int(bound)}))"
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return f"CAST(make_timestamp({int(bound)}) AS {duckdb_type_name(column.type)})"
        case _:
            # A figure for people: a bound that is no double is as near as one.
            return f"CAST({quote_literal(repr(float(bound)))} AS DOUBLE)"


def _listed_values_sql(column: Column) -> str:
    values = column.domain.values or ()
    return ", ".join(f"CAST({quote_literal(str(value))} AS {duckdb_type_name(column.type)})" for value in values)


def find_common_values(
    ask: RunQuery, source: Source, column: Column, unit: str | None, min_units: int, max_values: int
) -> tuple[tuple[str, ...], int] | None:
    """The values that `min_units` or more have, and how many others there are; None if all are more than `max_values`.

    `unit` is the column that leads to it; None: each row is one.
    """
    value = _typed_sql(column)
    counted = "count(*)" if unit is None else f"count(DISTINCT {quote_identifier(unit)})"
    rows = ask(
        f"SELECT CAST(v AS VARCHAR), n FROM (SELECT {value} AS v, {counted} AS n FROM "
        f"{render_source(source)} GROUP BY ALL) "
        f"WHERE v IS NOT NULL ORDER BY v LIMIT {max_values + 1}"
    )
    if len(rows) > max_values:
        return None
    common = tuple(str(value) for value, count in rows if _to_integer(count) >= min_units)
    return common, len(rows) - len(common)


def find_time_of_texts(ask: RunQuery, source: Source, column: Column) -> Type | None:
    """The type of which all texts of a column are, written as ISO 8601 says; None where one is not."""
    text = f"trim({quote_identifier(column.name)})"
    patterns = [f"count_if(regexp_full_match({text}, {quote_literal(pattern)}))" for pattern, _ in _ISO_TIMES]
    casts = [f"count(TRY_CAST({text} AS {duckdb_type_name(type_)}))" for _, type_ in _ISO_TIMES]
    ((present, *counts),) = ask(f"SELECT count({text}), {', '.join([*patterns, *casts])} FROM {render_source(source)}")
    for (_, type_), matching, cast in zip(_ISO_TIMES, counts[: len(patterns)], counts[len(patterns) :], strict=True):
        if present == matching == cast and present:
            return type_
    return None


_ISO_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_ISO_CLOCK = r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
_ISO_TIMES = (
    (_ISO_DAY, DATE),
    (_ISO_DAY + _ISO_CLOCK, TIMESTAMP),
    (_ISO_DAY + _ISO_CLOCK + "(Z|[+-][0-9]{2}(:?[0-9]{2})?)", TIMESTAMPTZ),
)


# --- units -----------------------------------------------------------------------------------------------------------


def owned_rows_sql(schema: Schema, table: Table, relations: Mapping[str, Source], fields: Mapping[str, str]) -> str:
    """A SELECT of each row's `fields` (name to SQL over the table) with its unit's id as `uid`, NULL if it has none.

    Where each row is its own unit, there is no uid. The keys along the way are unique: else rows would multiply.
    """
    field_list = "".join(f", {sql} AS {quote_identifier(name)}" for name, sql in fields.items())
    if not isinstance(table.unit, OwnUnit | ForeignUnit):
        return f"SELECT 0{field_list} FROM {render_source(relations[table.name])}"
    links = ", ".join(_links_sql(table))
    sql = f"SELECT {links}{field_list} FROM {render_source(relations[table.name])}"
    for hop in _joined_hops(schema, table):
        target = schema.table(hop.table)
        assert target is not None
        keys = [f"{_id_sql(target, key)} AS k{at}" for at, key in enumerate(hop.keys)]
        referenced_sql = (
            f"SELECT {', '.join((*keys, *_links_sql(target)))} FROM {render_source(relations[target.name])}"
        )
        on = " AND ".join(f"here.u{at} = there.k{at}" for at in range(len(keys)))
        sql = (
            f"SELECT there.* EXCLUDE ({', '.join(f'k{at}' for at in range(len(keys)))}), "
            f"here.* EXCLUDE ({', '.join(f'u{at}' for at in range(len(keys)))}) FROM ({sql}) here"
            f" LEFT JOIN ({referenced_sql}) there ON {on}"
        )
    return f"SELECT u0 AS uid, * EXCLUDE (u0) FROM ({sql})"


def _links_sql(table: Table) -> list[str]:
    """What says whose a row is, as u0, u1, …: the unit's id, or a reference."""
    return [f"{_id_sql(table, column)} AS u{at}" for at, column in enumerate(unit_columns_of(table))]


def _joined_hops(schema: Schema, table: Table) -> list[ForeignUnit]:
    """The hops that need a join: a reference to the unit's own column has its id already."""
    owner, _, column = schema.privacy.unit.partition(".")
    return [hop for hop in schema.find_unit_path(table) if hop.table != owner or hop.keys != (column,)]


def _id_sql(table: Table, name: str) -> str:
    column = table.column(name)
    assert column is not None
    return sanitized_sql(column, True)


def count_rows_per_unit(ask: RunQuery, schema: Schema, table: Table, relations: Mapping[str, Source]) -> dict[int, int]:
    """How many units have so many rows."""
    owned = owned_rows_sql(schema, table, relations, {})
    if isinstance(table.unit, OwnUnit | ForeignUnit):
        each = f"SELECT uid, count(*) AS n FROM ({owned}) WHERE uid IS NOT NULL GROUP BY uid"
        return _read_histogram(ask(f"SELECT n, count(*) FROM ({each}) GROUP BY n ORDER BY n"))
    ((rows,),) = ask(f"SELECT count(*) FROM ({owned})")
    return {1: _to_integer(rows)} if rows else {}


def count_keys_per_unit(
    ask: RunQuery, schema: Schema, table: Table, relations: Mapping[str, Source], column: Column
) -> dict[int, int]:
    """How many units have so many different keys of a column."""
    if not isinstance(table.unit, OwnUnit | ForeignUnit):
        return {}
    owned = owned_rows_sql(schema, table, relations, {"v": _typed_sql(column)})
    each = f"SELECT uid, count(DISTINCT v) AS n FROM ({owned}) WHERE uid IS NOT NULL AND v IS NOT NULL GROUP BY uid"
    return _read_histogram(ask(f"SELECT n, count(*) FROM ({each}) GROUP BY n ORDER BY n"))


def _read_histogram(rows: list[tuple[object, ...]]) -> dict[int, int]:
    return {_to_integer(n): _to_integer(count) for n, count in rows}


def count_orphans(ask: RunQuery, schema: Schema, table: Table, relations: Mapping[str, Source]) -> int:
    """Rows that name a row of the next table which is not there."""
    hop = table.unit
    assert isinstance(hop, ForeignUnit)
    target = schema.table(hop.table)
    assert target is not None
    names = [f"k{at}" for at in range(len(hop.pairs))]
    referencing, referenced = (
        ", ".join(f"{_id_sql(of, column)} AS {name}" for name, column in zip(names, columns, strict=True))
        for of, columns in ((table, hop.columns), (target, hop.keys))
    )
    ((count,),) = ask(
        f"SELECT count(*) FROM (SELECT {referencing} FROM {render_source(relations[table.name])}) here"
        f" ANTI JOIN (SELECT {referenced} FROM {render_source(relations[target.name])}) there"
        f" USING ({', '.join(names)}) WHERE {' AND '.join(f'{name} IS NOT NULL' for name in names)}"
    )
    return _to_integer(count)


# --- exact figures ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExactFigures:
    """A group (as text; None without a key, or where it is NULL), its rows, and the sum and mean of a column, which
    has a value in `present` of them."""

    group: str | None
    count: int
    sum: float | None
    mean: float | None
    present: int = 0


def measure_exact_figures(
    ask: RunQuery,
    schema: Schema,
    table: Table,
    relations: Mapping[str, Source],
    key: Column | None,
    value: Column | None,
) -> list[ExactFigures]:
    """Exact figures of the rows that belong to a unit, before clipping: by the key, or over all rows."""
    fields = {"k": f"CAST({_typed_sql(key)} AS VARCHAR)" if key else "NULL", "v": "NULL"}
    if value is not None:
        fields["v"] = _number_sql(_typed_sql(value), value.type) or "NULL"
    owned = owned_rows_sql(schema, table, relations, fields)
    unit_condition = " WHERE uid IS NOT NULL" if isinstance(table.unit, OwnUnit | ForeignUnit) else ""
    grouped = " GROUP BY k" if key else ""
    rows = ask(
        f"SELECT {'k' if key else 'NULL'}, count(*), sum(v), avg(v), count(v) FROM ({owned}){unit_condition}{grouped}"
    )
    return [
        ExactFigures(
            _group_text(row[0]), _to_integer(row[1]), _to_float(row[2]), _to_float(row[3]), _to_integer(row[4])
        )
        for row in rows
    ]


def _group_text(value: object) -> str | None:
    return None if value is None else str(value)
