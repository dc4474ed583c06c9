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

from dpsql.engines.duckdb import quote_literal
from dpsql.engines.duckdb_admin import DuckDBAdmin
from dpsql.errors import InterfaceError, OperationalError
from dpsql.schema.model import EngineTable, Files, Source
from dpsql.types import DATE, TEXT, TIMESTAMP, TIMESTAMPTZ, Kind, Type, outer_type_name, parse_type

MAX_SNIFFED_LINES = 1_000_000
"""Lines of a CSV file that its types are guessed from."""


@dataclass(frozen=True)
class IntrospectedColumn:
    """`type` is None where dpsql has no such type; `values` are those of a type that a person has written.

    `length` is VARCHAR's; `spelling` names the type without what is in it, see `outer_type_name`.

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
class ForeignKeyReference:
    """A declared foreign key; `table` is a name among the tables that were found together."""

    columns: tuple[str, ...]
    table: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class IntrospectedTable:
    name: str
    source: Source
    columns: tuple[IntrospectedColumn, ...]
    unique: tuple[tuple[str, ...], ...] = ()  # the primary key first
    references: tuple[ForeignKeyReference, ...] = ()
    checks: tuple[str, ...] = ()  # the expressions of CHECK constraints
    comment: str | None = None
    server_path: tuple[str, ...] = ()  # of a table on a server: its schema and name there

    def find_column(self, name: str) -> IntrospectedColumn | None:
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True)
class IntrospectedSource:
    """The tables of one source; `left_out` says what else is there, and why it is no table here."""

    tables: tuple[IntrospectedTable, ...]
    left_out: tuple[str, ...] = field(default=())


def declarable_type(spelling: str) -> Type | None:
    """The type to declare for an engine's: the closest that holds all its values.

    >>> [str(declarable_type(s)) for s in ("UINTEGER", "TIMESTAMP_NS", "ENUM('a')", "INTEGER[]", "ENUM('a')[]")]
    ['bigint', 'timestamp', 'text', 'None', 'None']
    """
    if spelling.startswith("ENUM(") and spelling.endswith(")"):
        return TEXT
    if re.fullmatch(r"TIMESTAMP_(S|MS|NS)", spelling):
        return TIMESTAMP
    return parse_type(spelling)


def _introspect_column(name: str, spelling: str, comment: str | None = None) -> IntrospectedColumn:
    return IntrospectedColumn(name, outer_type_name(spelling), declarable_type(spelling), comment=comment)


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


def introspect_duckdb(owner: DuckDBAdmin) -> IntrospectedSource:
    """The tables of the attached database; what constraints say of them is enforced by it."""
    names = {(str(s), str(t)): _plain_table_name(str(s), str(t), "main") for s, t, _ in owner.query_rows(_TABLES)}
    columns = owner.query_rows(_COLUMNS)
    constraints = owner.query_rows(_CONSTRAINTS)
    tables = []
    for schema, table, comment in owner.query_rows(_TABLES):
        qualified_name = (str(schema), str(table))
        own = [row for row in constraints if (row[0], row[1]) == qualified_name]
        tables.append(
            IntrospectedTable(
                names[qualified_name],
                EngineTable((qualified_name[1],) if qualified_name[0] == "main" else qualified_name),
                tuple(_introspect_duckdb_column(row) for row in columns if (row[0], row[1]) == qualified_name),
                tuple(_to_strings(row[3]) for row in own if row[2] in ("PRIMARY KEY", "UNIQUE")),
                tuple(
                    ForeignKeyReference(_to_strings(row[3]), names[qualified_name[0], str(row[4])], _to_strings(row[5]))
                    for row in own
                    if row[2] == "FOREIGN KEY" and (qualified_name[0], str(row[4])) in names
                ),
                tuple(str(row[6]) for row in own if row[2] == "CHECK"),
                None if comment is None else str(comment),
            )
        )
    return IntrospectedSource(tuple(tables), tuple(f'the view "{view}"' for (view,) in owner.query_rows(_VIEWS)))


def _plain_table_name(schema: str, table: str, usual: str) -> str:
    return table if schema == usual else f"{schema}_{table}"


def _to_strings(value: object) -> tuple[str, ...]:
    assert isinstance(value, list)
    return tuple(str(item) for item in value)


def _introspect_duckdb_column(row: Sequence[object]) -> IntrospectedColumn:
    return _introspect_column(str(row[2]), str(row[3]), None if row[4] is None else str(row[4]))


# --- files -----------------------------------------------------------------------------------------------------------


def introspect_parquet(owner: DuckDBAdmin, name: str, files: Files, first: str) -> IntrospectedTable:
    """By the footer of the first file: all files of a source have the same columns."""
    described = owner.describe(replace(files, patterns=(first,)))
    return IntrospectedTable(
        name, files, tuple(_introspect_column(column, spelling) for column, spelling in described.items())
    )


_BLANK_BYTES = 4096  # what a file of nothing but line ends may have


def _is_blank(file: str) -> bool:
    path = Path(file)
    return path.stat().st_size <= _BLANK_BYTES and not path.read_bytes().strip()


def introspect_csv(owner: DuckDBAdmin, name: str, files: Files, first: str, header: bool | None) -> IntrospectedTable:
    """By the first file. `header` is the owner's word on its first line; None: it must be told from the others."""
    if _is_blank(first):
        raise InterfaceError(f'"{Path(first).name}" is empty', hint="Give a file with a header line and rows.")
    try:
        dialect = _sniff_dialect(owner, first, header)
        is_certain = header is not None or (
            _has_certain_header(dialect) and not _is_header_repeated(owner, first, dialect)
        )
    except OperationalError:  # the driver's text may quote lines
        raise OperationalError(
            f'"{Path(first).name}" cannot be read as CSV',
            hint="Save it as UTF-8 with one delimiter and one header line, or write its table by hand.",
        ) from None
    if dialect.names and not dialect.has_header:
        dialect = replace(dialect, names=tuple(f"column{at}" for at in range(1, len(dialect.names) + 1)))
    if not is_certain:
        raise InterfaceError(
            f'whether the first line of "{Path(first).name}" names its columns cannot be told',
            detail="If it were a row, its values would stand in the schema as names.",
            hint="Say it with --header or --no-header.",
        )
    hints = _find_near_numbers(owner, first, dialect)
    columns = (
        _introspect_csv_column(column, spelling, dialect, hints.get(index))
        for index, (column, spelling) in enumerate(zip(dialect.names, dialect.types, strict=True))
    )
    source = replace(files, header=dialect.has_header, delimiter=dialect.delimiter, quote=dialect.quote)
    return IntrospectedTable(name, source, tuple(columns))


@dataclass(frozen=True)
class _CsvDialect:
    delimiter: str
    quote: str
    has_header: bool
    names: tuple[str, ...]
    types: tuple[str, ...]
    dates: str | None
    times: str | None


def _sniff_dialect(owner: DuckDBAdmin, path: str, header: bool | None) -> _CsvDialect:
    header_option = "" if header is None else f", header = {quote_literal(header)}"
    ((delimiter, quote, has_header, columns, dates, times),) = owner.query_rows(
        "SELECT Delimiter, Quote, HasHeader, Columns, DateFormat, TimestampFormat"
        f" FROM sniff_csv({quote_literal(path)}, sample_size = {MAX_SNIFFED_LINES}{header_option})"
    )
    assert isinstance(columns, list)
    names = tuple(str(column["name"]) for column in columns)
    types = tuple(str(column["type"]) for column in columns)
    quote = '"' if quote == "(empty)" else str(quote)
    delimiter = "," if delimiter == "(empty)" else str(delimiter)
    if has_header:
        names = tuple(_read_header(path, delimiter, quote)) or names
    if len(names) != len(types):
        raise OperationalError("the header has another number of fields than the rows")
    dialect = _CsvDialect(
        delimiter, quote, bool(has_header), names, types, _optional_text(dates), _optional_text(times)
    )
    return replace(dialect, types=_types_with_zero_codes(owner, path, dialect))


def _types_with_zero_codes(owner: DuckDBAdmin, path: str, dialect: _CsvDialect) -> tuple[str, ...]:
    """Numbers of which some begin with a zero are text: a code, or an id that 7 and 007 would make one of two."""
    numbers = [index for index, spelling in enumerate(dialect.types) if spelling == "BIGINT"]
    if not numbers:
        return dialect.types
    expressions = ", ".join(f"bool_or(regexp_matches(c{index}, '^[+-]?0[0-9]'))" for index in numbers)
    (has_zeros,) = owner.query_rows(f"SELECT {expressions} FROM {_csv_rows_sql(path, dialect)}")
    zeros = {index for index, zero in zip(numbers, has_zeros, strict=True) if zero}
    return tuple("VARCHAR" if index in zeros else spelling for index, spelling in enumerate(dialect.types))


_COMMA_HINT = "text, since its numbers have commas: write them with a point for SUM and AVG"
_WORDS_HINT = "text, though most of it are numbers: leave the words among them empty for SUM and AVG"


def _find_near_numbers(owner: DuckDBAdmin, path: str, dialect: _CsvDialect) -> dict[int, str]:
    """Why columns by their places are text although most of their fields are meant as numbers; no field is told."""
    texts = [index for index, spelling in enumerate(dialect.types) if spelling == "VARCHAR"]
    expressions = [
        figure
        for index in texts
        for figure in (
            f"count(c{index})",
            f"count(TRY_CAST(c{index} AS DOUBLE))",
            f"coalesce(count_if(regexp_full_match(trim(c{index}), '[+-]?[0-9][0-9. ]*,[0-9]+')), 0)",
        )
    ]
    if not expressions:
        return {}
    (row,) = owner.query_rows(f"SELECT {', '.join(expressions)} FROM {_csv_rows_sql(path, dialect)}")
    counts, hints = iter(row), dict[int, str]()
    for index in texts:
        present, numbers, commas = (int(str(next(counts))) for _ in range(3))
        if 2 * commas > present:
            hints[index] = _COMMA_HINT
        elif 2 * (numbers + commas) > present > numbers:
            hints[index] = _WORDS_HINT
    return hints


def _csv_rows_sql(path: str, dialect: _CsvDialect) -> str:
    """The first rows, as text in columns c0, c1, …"""
    columns = ", ".join(f"'c{index}': 'VARCHAR'" for index in range(len(dialect.types)))
    quote = quote_literal(dialect.quote)
    return (
        f"(SELECT * FROM read_csv({quote_literal(path)}, auto_detect = false, header = "
        f"{quote_literal(dialect.has_header)},"
        f" delim = {quote_literal(dialect.delimiter)}, quote = {quote}, escape = {quote}, columns = {{{columns}}})"
        f" LIMIT {MAX_SNIFFED_LINES})"
    )


def _optional_text(value: object) -> str | None:
    return None if value is None else str(value)


def _read_header(path: str, delimiter: str, quote: str) -> list[str]:
    """As registering reads it; DuckDB's sniffer gives other names to what is empty or there twice."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            return next(csv.reader(stream, delimiter=delimiter, quotechar=quote), [])
    except (OSError, csv.Error, UnicodeDecodeError):
        raise OperationalError("the header cannot be read") from None


_NAME = re.compile(r"[^\W\d][\w .-]*")
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_MISSING_VALUE_WORDS = {
    "na", "n.a.", "nan", "null", "none", "nil", "true", "false", "yes", "no", "inf", "infinity", "unknown", "missing",
    "empty", "blank", "unavailable", "not available", "not applicable", "no answer", "not asked", "no data", "void",
    "invalid", "pending", "refused", "declined", "withdrawn", "other", "tbd", "tba", "unspecified", "undefined",
}  # fmt: skip
_HEADER_WORDS = {
    "id", "uid", "uuid", "age", "sex", "gender", "date", "datetime", "timestamp", "zip", "zipcode", "city", "country",
    "firstname", "lastname", "surname", "birthdate", "dob",
}  # fmt: skip
"""Words of names that hardly ever stand in a row."""


def _has_certain_header(dialect: _CsvDialect) -> bool:
    """Whether the first line can hardly be a row: all its fields look like names, and two things speak for it.

    A word above numbers, dates or booleans speaks for it, and so does a word that only names have. One alone does not:
    a row may have a word for a missing number. Where there is one column, it is enough.
    """
    typed = [spelling != "VARCHAR" for spelling in dialect.types]
    if not dialect.has_header:
        return any(typed)
    named = all(_NAME.fullmatch(name) and name.lower() not in _MISSING_VALUE_WORDS for name in dialect.names)
    distinct = len({name.casefold() for name in dialect.names}) == len(dialect.names)
    above = sum(
        1 for name, is_typed in zip(dialect.names, typed, strict=True) if is_typed and _PLAIN_NAME.fullmatch(name)
    )
    known_headers = sum(1 for name in dialect.names if _HEADER_WORDS & set(_split_words(name)))
    return named and distinct and any(typed) and above + known_headers >= min(2, len(typed))


def _split_words(name: str) -> list[str]:
    """
    >>> _split_words("PatientID"), _split_words("birth_date"), _split_words("Order Date")
    (['patient', 'id'], ['birth', 'date'], ['order', 'date'])
    """
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def _is_header_repeated(owner: DuckDBAdmin, path: str, dialect: _CsvDialect) -> bool:
    """Whether a word of the header is a value below it: then it may be a row."""
    if not dialect.has_header:
        return False
    same = (f"lower(trim(c{at})) = {quote_literal(name.strip().lower())}" for at, name in enumerate(dialect.names))
    ((is_repeated,),) = owner.query_rows(f"SELECT bool_or({' OR '.join(same)}) FROM {_csv_rows_sql(path, dialect)}")
    return bool(is_repeated)


_ISO_FORMATS = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f")


def _introspect_csv_column(
    name: str, spelling: str, dialect: _CsvDialect, hint: str | None = None
) -> IntrospectedColumn:
    """Text is cast as the engine casts it, so dates in a form of their own stay text."""
    type_ = declarable_type(spelling) or TEXT
    form = dialect.dates if type_ == DATE else dialect.times if type_ in (TIMESTAMP, TIMESTAMPTZ) else None
    if form is not None and form not in _ISO_FORMATS:
        guess = f"dates written {form} are not read; as text, or write them anew"
        return IntrospectedColumn(name, spelling, TEXT, guess=guess)
    return IntrospectedColumn(name, spelling, type_, guess=hint if type_.kind is Kind.TEXT else "guessed from the file")
