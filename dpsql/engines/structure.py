"""What tables there are, by their structure: names, types, keys and constraints. For the owner who drafts a schema.

Law: no value of a row is in what comes back, nor in an error. The types of a CSV file are guessed from its rows; its
first line is taken for names only where it cannot be one of the rows, or the owner says so.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dpsql.engines.duckdb import literal
from dpsql.engines.owner import DuckDBOwner
from dpsql.errors import InterfaceError, OperationalError
from dpsql.schema.model import EngineTable, Files, Source
from dpsql.types import DATE, TEXT, TIMESTAMP, TIMESTAMPTZ, Kind, Type, parse_type

SNIFFED = 1_000_000
"""Lines of a CSV file that its types are guessed from."""


@dataclass(frozen=True)
class FoundColumn:
    """`type` is None where dpsql has no such type; `values` are those of an ENUM type, `length` is VARCHAR's.

    `guess` says what is not certain about the type.
    """

    name: str
    spelling: str
    type: Type | None
    values: tuple[str, ...] = ()
    length: int | None = None
    comment: str | None = None
    guess: str | None = None


@dataclass(frozen=True)
class Reference:
    """A declared foreign key; `table` is a name among the tables that were found together."""

    columns: tuple[str, ...]
    table: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class FoundTable:
    name: str
    source: Source
    columns: tuple[FoundColumn, ...]
    unique: tuple[tuple[str, ...], ...] = ()  # the primary key first
    references: tuple[Reference, ...] = ()
    checks: tuple[str, ...] = ()  # the expressions of CHECK constraints
    comment: str | None = None
    place: tuple[str, ...] = ()  # of a table on a server: its schema and name there

    def column(self, name: str) -> FoundColumn | None:
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True)
class Found:
    """The tables of one source; `left_out` says what else is there, and why it is no table here."""

    tables: tuple[FoundTable, ...]
    left_out: tuple[str, ...] = field(default=())


def found_type(spelling: str) -> Type | None:
    """The type to declare for an engine's: the closest that holds all its values.

    >>> [str(found_type(s)) for s in ("UINTEGER", "TIMESTAMP_NS", "ENUM('a')", "INTEGER[]")]
    ['bigint', 'timestamp', 'text', 'None']
    """
    if spelling.startswith("ENUM(") and spelling.endswith(")"):
        return TEXT
    if re.fullmatch(r"TIMESTAMP_(S|MS|NS)", spelling):
        return TIMESTAMP
    return parse_type(spelling)


# --- DuckDB ----------------------------------------------------------------------------------------------------------

_COLUMNS = """
SELECT schema_name, table_name, column_name, data_type, comment FROM duckdb_columns()
WHERE database_name = current_database() AND NOT internal ORDER BY schema_name, table_name, column_index
"""
_TABLES = """
SELECT schema_name, table_name, comment FROM duckdb_tables()
WHERE database_name = current_database() AND NOT internal ORDER BY schema_name <> 'main', schema_name, table_oid
"""
_VIEWS = """
SELECT view_name FROM duckdb_views()
WHERE database_name = current_database() AND NOT internal ORDER BY view_name
"""
_CONSTRAINTS = """
SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names,
       expression
FROM duckdb_constraints() WHERE database_name = current_database()
ORDER BY constraint_type <> 'PRIMARY KEY', constraint_index
"""


def duckdb_tables(owner: DuckDBOwner) -> Found:
    """The tables of the attached database; what constraints say of them is enforced by it."""
    names = {(str(s), str(t)): _plain(str(s), str(t), "main") for s, t, _ in owner.ask(_TABLES)}
    columns = owner.ask(_COLUMNS)
    constraints = owner.ask(_CONSTRAINTS)
    tables = []
    for schema, table, comment in owner.ask(_TABLES):
        place = (str(schema), str(table))
        own = [row for row in constraints if (row[0], row[1]) == place]
        tables.append(
            FoundTable(
                names[place],
                EngineTable((place[1],) if place[0] == "main" else place),
                tuple(_duckdb_column(owner, row) for row in columns if (row[0], row[1]) == place),
                tuple(_texts(row[3]) for row in own if row[2] in ("PRIMARY KEY", "UNIQUE")),
                tuple(
                    Reference(_texts(row[3]), names[place[0], str(row[4])], _texts(row[5]))
                    for row in own
                    if row[2] == "FOREIGN KEY" and (place[0], str(row[4])) in names
                ),
                tuple(str(row[6]) for row in own if row[2] == "CHECK"),
                None if comment is None else str(comment),
            )
        )
    return Found(tuple(tables), tuple(f'the view "{view}"' for (view,) in owner.ask(_VIEWS)))


def _plain(schema: str, table: str, usual: str) -> str:
    return table if schema == usual else f"{schema}_{table}"


def _texts(value: object) -> tuple[str, ...]:
    assert isinstance(value, list)
    return tuple(str(item) for item in value)


def _duckdb_column(owner: DuckDBOwner, row: Sequence[object]) -> FoundColumn:
    spelling = str(row[3])
    values: tuple[str, ...] = ()
    if spelling.startswith("ENUM("):
        # The spelling is DuckDB's own, with its quotes doubled.
        values = tuple(str(value) for (value,) in owner.ask(f"SELECT unnest(enum_range(NULL::{spelling}))"))
    comment = None if row[4] is None else str(row[4])
    return FoundColumn(str(row[2]), spelling, found_type(spelling), values, None, comment)


# --- files -----------------------------------------------------------------------------------------------------------


def parquet_table(owner: DuckDBOwner, name: str, files: Files, first: str) -> FoundTable:
    """By the footer of the first file: all files of a source have the same columns."""
    described = owner.describe(replace(files, patterns=(first,)))
    columns = (FoundColumn(column, spelling, found_type(spelling)) for column, spelling in described.items())
    return FoundTable(name, files, tuple(columns))


def csv_table(owner: DuckDBOwner, name: str, files: Files, first: str, header: bool | None) -> FoundTable:
    """By the first file. `header` is the owner's word on its first line; None: it must be told from the others."""
    try:
        dialect = _sniff(owner, first, header)
    except OperationalError:  # the driver's text may quote lines
        raise OperationalError(
            f'"{Path(first).name}" cannot be read as CSV',
            hint="Save it as UTF-8 with one delimiter and one header line, or write its table by hand.",
        ) from None
    if dialect.names and not dialect.has_header:
        dialect = replace(dialect, names=tuple(f"column{at}" for at in range(1, len(dialect.names) + 1)))
    if header is None and not _is_certain(dialect):
        raise InterfaceError(
            f'whether the first line of "{Path(first).name}" names its columns cannot be told',
            detail="If it were a row, its values would stand in the schema as names.",
            hint="Say it with --header or --no-header.",
        )
    columns = (
        _csv_column(column, spelling, dialect) for column, spelling in zip(dialect.names, dialect.types, strict=True)
    )
    source = replace(files, header=dialect.has_header, delimiter=dialect.delimiter, quote=dialect.quote)
    return FoundTable(name, source, tuple(columns))


@dataclass(frozen=True)
class _Dialect:
    delimiter: str
    quote: str
    has_header: bool
    names: tuple[str, ...]
    types: tuple[str, ...]
    dates: str | None
    times: str | None


def _sniff(owner: DuckDBOwner, path: str, header: bool | None) -> _Dialect:
    given = "" if header is None else f", header = {literal(header)}"
    ((delimiter, quote, has_header, columns, dates, times),) = owner.ask(
        "SELECT Delimiter, Quote, HasHeader, Columns, DateFormat, TimestampFormat"
        f" FROM sniff_csv({literal(path)}, sample_size = {SNIFFED}{given})"
    )
    assert isinstance(columns, list)
    names = tuple(str(column["name"]) for column in columns)
    types = tuple(str(column["type"]) for column in columns)
    quote = '"' if quote == "(empty)" else str(quote)
    delimiter = "," if delimiter == "(empty)" else str(delimiter)
    if has_header:
        names = tuple(_header(path, delimiter, quote)) or names
    if len(names) != len(types):
        raise OperationalError("the header has another number of fields than the rows")
    dialect = _Dialect(delimiter, quote, bool(has_header), names, types, _text(dates), _text(times))
    return replace(dialect, types=_with_zeros(owner, path, dialect))


def _with_zeros(owner: DuckDBOwner, path: str, dialect: _Dialect) -> tuple[str, ...]:
    """Numbers of which some begin with a zero are text: a code, or an id that 7 and 007 would make one of two."""
    numbers = [place for place, spelling in enumerate(dialect.types) if spelling == "BIGINT"]
    if not numbers:
        return dialect.types
    fields = [f"c{place}" for place in range(len(dialect.types))]
    asked = ", ".join(f"bool_or(regexp_matches({fields[place]}, '^[+-]?0[0-9]'))" for place in numbers)
    columns = ", ".join(f"{literal(field)}: 'VARCHAR'" for field in fields)
    quote = literal(dialect.quote)
    read = (
        f"read_csv({literal(path)}, auto_detect = false, header = {literal(dialect.has_header)},"
        f" delim = {literal(dialect.delimiter)}, quote = {quote}, escape = {quote}, columns = {{{columns}}})"
    )
    (found,) = owner.ask(f"SELECT {asked} FROM (SELECT * FROM {read} LIMIT {SNIFFED})")
    zeros = {place for place, zero in zip(numbers, found, strict=True) if zero}
    return tuple("VARCHAR" if place in zeros else spelling for place, spelling in enumerate(dialect.types))


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _header(path: str, delimiter: str, quote: str) -> list[str]:
    """As registering reads it; DuckDB's sniffer gives other names to what is empty or there twice."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            return next(csv.reader(stream, delimiter=delimiter, quotechar=quote), [])
    except (OSError, csv.Error, UnicodeDecodeError):
        raise OperationalError("the header cannot be read") from None


_NAME = re.compile(r"[^\W\d][\w .-]*")
_NO_NAMES = {"na", "n.a.", "nan", "null", "none", "nil", "true", "false", "inf", "infinity", "unknown"}


def _is_certain(dialect: _Dialect) -> bool:
    """The first line is no row: some column holds no text and the line does, and all its fields look like names."""
    if not dialect.has_header:
        return any(spelling != "VARCHAR" for spelling in dialect.types)
    named = all(_NAME.fullmatch(name) and name.lower() not in _NO_NAMES for name in dialect.names)
    distinct = len({name.casefold() for name in dialect.names}) == len(dialect.names)
    return named and distinct and any(spelling != "VARCHAR" for spelling in dialect.types)


_ISO = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f")


def _csv_column(name: str, spelling: str, dialect: _Dialect) -> FoundColumn:
    """Text is cast as the engine casts it, so dates in a form of their own stay text."""
    type_ = found_type(spelling) or TEXT
    form = dialect.dates if type_ == DATE else dialect.times if type_ in (TIMESTAMP, TIMESTAMPTZ) else None
    if form is not None and form not in _ISO:
        guess = f"dates written {form} are not read; as text, or write them anew"
        return FoundColumn(name, spelling, TEXT, guess=guess)
    return FoundColumn(name, spelling, type_, guess=None if type_.kind is Kind.TEXT else "guessed from the file")
