"""What tables there are, by their structure: names, types, keys and constraints. For the owner who drafts a schema.

Law: no value of a row is in what comes back, nor in an error. Labels of an ENUM of DuckDB are values: a type can be
made of rows, as a categorical of pandas is. The types of a CSV file are guessed from its rows; its first line is taken
for names only where it can hardly be one of the rows, or the owner says so.
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
from dpsql.types import DATE, TEXT, TIMESTAMP, TIMESTAMPTZ, Kind, Type, outermost, parse_type

SNIFFED = 1_000_000
"""Lines of a CSV file that its types are guessed from."""


@dataclass(frozen=True)
class FoundColumn:
    """`type` is None where dpsql has no such type; `values` are those of a type that a person has written.

    `length` is VARCHAR's; `spelling` names the type without what is in it, see `outermost`.

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

    >>> [str(found_type(s)) for s in ("UINTEGER", "TIMESTAMP_NS", "ENUM('a')", "INTEGER[]", "ENUM('a')[]")]
    ['bigint', 'timestamp', 'text', 'None', 'None']
    """
    if spelling.startswith("ENUM(") and spelling.endswith(")"):
        return TEXT
    if re.fullmatch(r"TIMESTAMP_(S|MS|NS)", spelling):
        return TIMESTAMP
    return parse_type(spelling)


def _found(name: str, spelling: str, comment: str | None = None) -> FoundColumn:
    return FoundColumn(name, outermost(spelling), found_type(spelling), comment=comment)


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
                tuple(_duckdb_column(row) for row in columns if (row[0], row[1]) == place),
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


def _duckdb_column(row: Sequence[object]) -> FoundColumn:
    return _found(str(row[2]), str(row[3]), None if row[4] is None else str(row[4]))


# --- files -----------------------------------------------------------------------------------------------------------


def parquet_table(owner: DuckDBOwner, name: str, files: Files, first: str) -> FoundTable:
    """By the footer of the first file: all files of a source have the same columns."""
    described = owner.describe(replace(files, patterns=(first,)))
    return FoundTable(name, files, tuple(_found(column, spelling) for column, spelling in described.items()))


def csv_table(owner: DuckDBOwner, name: str, files: Files, first: str, header: bool | None) -> FoundTable:
    """By the first file. `header` is the owner's word on its first line; None: it must be told from the others."""
    try:
        dialect = _sniff(owner, first, header)
        told = header is not None or (_is_certain(dialect) and not _comes_again(owner, first, dialect))
    except OperationalError:  # the driver's text may quote lines
        raise OperationalError(
            f'"{Path(first).name}" cannot be read as CSV',
            hint="Save it as UTF-8 with one delimiter and one header line, or write its table by hand.",
        ) from None
    if dialect.names and not dialect.has_header:
        dialect = replace(dialect, names=tuple(f"column{at}" for at in range(1, len(dialect.names) + 1)))
    if not told:
        raise InterfaceError(
            f'whether the first line of "{Path(first).name}" names its columns cannot be told',
            detail="If it were a row, its values would stand in the schema as names.",
            hint="Say it with --header or --no-header.",
        )
    hints = _nearly_numbers(owner, first, dialect)
    columns = (
        _csv_column(column, spelling, dialect, hints.get(place))
        for place, (column, spelling) in enumerate(zip(dialect.names, dialect.types, strict=True))
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
    asked = ", ".join(f"bool_or(regexp_matches(c{place}, '^[+-]?0[0-9]'))" for place in numbers)
    (found,) = owner.ask(f"SELECT {asked} FROM {_lines(path, dialect)}")
    zeros = {place for place, zero in zip(numbers, found, strict=True) if zero}
    return tuple("VARCHAR" if place in zeros else spelling for place, spelling in enumerate(dialect.types))


_COMMA = "text, since its numbers have commas: write them with a point for SUM and AVG"
_WORDS = "text, though most of it are numbers: leave the words among them empty for SUM and AVG"


def _nearly_numbers(owner: DuckDBOwner, path: str, dialect: _Dialect) -> dict[int, str]:
    """Why columns by their places are text although most of their fields are meant as numbers; no field is told."""
    texts = [place for place, spelling in enumerate(dialect.types) if spelling == "VARCHAR"]
    asked = [
        figure
        for place in texts
        for figure in (
            f"count(c{place})",
            f"count(TRY_CAST(c{place} AS DOUBLE))",
            f"coalesce(count_if(regexp_full_match(trim(c{place}), '[+-]?[0-9][0-9. ]*,[0-9]+')), 0)",
        )
    ]
    if not asked:
        return {}
    (row,) = owner.ask(f"SELECT {', '.join(asked)} FROM {_lines(path, dialect)}")
    counts, found = iter(row), dict[int, str]()
    for place in texts:
        present, numbers, commas = (int(str(next(counts))) for _ in range(3))
        if 2 * commas > present:
            found[place] = _COMMA
        elif 2 * (numbers + commas) > present > numbers:
            found[place] = _WORDS
    return found


def _lines(path: str, dialect: _Dialect) -> str:
    """The first rows, as text in columns c0, c1, …"""
    columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(dialect.types)))
    quote = literal(dialect.quote)
    return (
        f"(SELECT * FROM read_csv({literal(path)}, auto_detect = false, header = {literal(dialect.has_header)},"
        f" delim = {literal(dialect.delimiter)}, quote = {quote}, escape = {quote}, columns = {{{columns}}})"
        f" LIMIT {SNIFFED})"
    )


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
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_NO_NAMES = {
    "na", "n.a.", "nan", "null", "none", "nil", "true", "false", "yes", "no", "inf", "infinity", "unknown", "missing",
    "empty", "blank", "unavailable", "not available", "not applicable", "no answer", "not asked", "no data", "void",
    "invalid", "pending", "refused", "declined", "withdrawn", "other", "tbd", "tba", "unspecified", "undefined",
}  # fmt: skip
_TELLING = {
    "id", "uid", "uuid", "age", "sex", "gender", "date", "datetime", "timestamp", "zip", "zipcode", "city", "country",
    "firstname", "lastname", "surname", "birthdate", "dob",
}  # fmt: skip
"""Words of names that hardly ever stand in a row."""


def _is_certain(dialect: _Dialect) -> bool:
    """Whether the first line can hardly be a row: all its fields look like names, and two things speak for it.

    A word above numbers, dates or booleans speaks for it, and so does a word that only names have. One alone does not:
    a row may have a word for a missing number. Where there is one column, it is enough.
    """
    typed = [spelling != "VARCHAR" for spelling in dialect.types]
    if not dialect.has_header:
        return any(typed)
    named = all(_NAME.fullmatch(name) and name.lower() not in _NO_NAMES for name in dialect.names)
    distinct = len({name.casefold() for name in dialect.names}) == len(dialect.names)
    above = sum(1 for name, one in zip(dialect.names, typed, strict=True) if one and _PLAIN_NAME.fullmatch(name))
    telling = sum(1 for name in dialect.names if _TELLING & set(_words(name)))
    return named and distinct and any(typed) and above + telling >= min(2, len(typed))


def _words(name: str) -> list[str]:
    """
    >>> _words("PatientID"), _words("birth_date"), _words("Order Date")
    (['patient', 'id'], ['birth', 'date'], ['order', 'date'])
    """
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def _comes_again(owner: DuckDBOwner, path: str, dialect: _Dialect) -> bool:
    """Whether a word of the header is a value below it: then it may be a row."""
    if not dialect.has_header:
        return False
    same = (f"lower(trim(c{at})) = {literal(name.strip().lower())}" for at, name in enumerate(dialect.names))
    ((found,),) = owner.ask(f"SELECT bool_or({' OR '.join(same)}) FROM {_lines(path, dialect)}")
    return bool(found)


_ISO = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f")


def _csv_column(name: str, spelling: str, dialect: _Dialect, hint: str | None = None) -> FoundColumn:
    """Text is cast as the engine casts it, so dates in a form of their own stay text."""
    type_ = found_type(spelling) or TEXT
    form = dialect.dates if type_ == DATE else dialect.times if type_ in (TIMESTAMP, TIMESTAMPTZ) else None
    if form is not None and form not in _ISO:
        guess = f"dates written {form} are not read; as text, or write them anew"
        return FoundColumn(name, spelling, TEXT, guess=guess)
    return FoundColumn(name, spelling, type_, guess=hint if type_.kind is Kind.TEXT else "guessed from the file")
