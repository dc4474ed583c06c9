"""What a CSV file is, read for the owner who drafts a schema: its dialect, names of columns, types and formats.

Law: no value of a row is in what comes back, nor in an error. Types and formats are guessed from rows; the first line
is taken for names only where it can hardly be one of the rows, or the owner says so.
"""

from __future__ import annotations

import codecs
import glob
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from dpsql.engines.duckdb import quote_literal
from dpsql.engines.duckdb_admin import DuckDBAdmin
from dpsql.engines.text_files import (
    DECIMAL_COMMA_PATTERN,
    LINE_OPTIONS,
    csv_relation_sql,
    find_encoding,
    find_uneven_line,
    name_columns,
    open_bytes,
    read_header_fields,
)
from dpsql.errors import InterfaceError, OperationalError
from dpsql.owner.introspect.tables import IntrospectedColumn, IntrospectedTable, declarable_type
from dpsql.schema.model import Column, Domain, Files
from dpsql.types import DATE, DOUBLE, TEXT, TIMESTAMP, TIMESTAMPTZ, Kind, Type

MAX_SNIFFED_LINES = 1_000_000
"""Lines of a CSV file that its types are guessed from."""


_BLANK_BYTES = 4096  # what a file of nothing but line ends may have


def _is_blank(path: str) -> bool:
    with open_bytes(path) as stream:
        text = stream.read(_BLANK_BYTES + 1)
    return len(text) <= _BLANK_BYTES and not text.removeprefix(codecs.BOM_UTF8).strip()


def introspect_csv(owner: DuckDBAdmin, name: str, files: Files, first: str, header: bool | None) -> IntrospectedTable:
    """By the first file. `header` is the owner's word on its first line; None: it must be told from the others."""
    try:
        if _is_blank(first):
            raise InterfaceError(f'"{Path(first).name}" is empty', hint="Give a file with a header line and rows.")
        encoding = find_encoding(first)
        # Without a header nothing is known of its columns: where lines end in several ways, it is copied.
        sample = owner.make_readable(Files((first,), "csv", header=False, encoding=encoding), ())
    except (OSError, EOFError):
        raise OperationalError(f'"{Path(first).name}" cannot be read', hint="Check that the file is whole.") from None
    (path,) = sample.patterns
    dialect = _sniff_dialect(owner, path, header)
    try:
        if header is None and _is_one_line(owner, path, dialect):
            dialect = _sniff_dialect(owner, path, True)
        is_certain = header is not None or (
            _has_certain_header(dialect, _find_codes(owner, path, dialect), _count_rows(owner, path, dialect))
            and not _is_header_repeated(owner, path, dialect)
        )
        readings = _find_readings(owner, path, dialect)
    except OperationalError:  # the driver's text may quote lines
        raise _unreadable_error(path) from None
    if not is_certain:
        raise InterfaceError(
            f'whether the first line of "{Path(first).name}" names its columns cannot be told',
            detail="If it were a row, its values would stand in the schema as names.",
            hint="Say it with --header or --no-header.",
        )
    columns = tuple(
        _introspect_csv_column(column, spelling, dialect, readings.columns.get(index, _Reading()))
        for index, (column, spelling) in enumerate(zip(dialect.column_names, dialect.types, strict=True))
    )
    source = replace(dialect.describe(files), encoding=encoding, decimal="," if readings.decimal_comma else "")
    _check_all_files(owner, source, columns)
    return IntrospectedTable(name, source, columns)


def _check_all_files(owner: DuckDBAdmin, source: Files, columns: Sequence[IntrospectedColumn]) -> None:
    """Whether registering can read all files of the pattern: better refused here than later."""
    paths = tuple(path for pattern in source.patterns for path in sorted(glob.glob(pattern, recursive=True)))
    declared = [Column(column.name, Domain(column.type or TEXT, True), format=column.format) for column in columns]
    owner.check_text_files(replace(source, patterns=paths), declared)


@dataclass(frozen=True)
class _CsvDialect:
    """`fields` are those of the header as they stand there, `types` those of DuckDB's sniffer."""

    delimiter: str
    quote: str
    escape: str
    skip: int
    has_header: bool
    fields: tuple[str, ...]
    types: tuple[str, ...]
    dates: str | None
    times: str | None

    @property
    def column_names(self) -> tuple[str, ...]:
        if self.has_header:
            return tuple(name_columns(self.fields))
        return tuple(f"column{number}" for number in range(1, len(self.types) + 1))

    def describe(self, files: Files) -> Files:
        """The files in this dialect."""
        return replace(
            files,
            header=self.has_header,
            delimiter=self.delimiter,
            quote=self.quote,
            escape=self.escape,
            skip=self.skip,
        )


def _sniff_dialect(owner: DuckDBAdmin, path: str, header: bool | None) -> _CsvDialect:
    """Where the sniffer sees no quotes, those of the usual kind are declared, unless the lines cannot be read so."""
    sniffed = _run_sniffer(owner, path, "" if header is None else f", header = {quote_literal(header)}")
    if len(sniffed.types) == 1 and _is_uneven(owner, path):
        raise _uneven_error(path, sniffed.skip)
    dialects = [sniffed] if sniffed.quote else [replace(sniffed, quote='"'), sniffed]
    for dialect in dialects:
        if dialect.has_header:
            fields = tuple(read_header_fields(path, dialect.describe(Files((path,), "csv"))))
            dialect = replace(dialect, fields=fields)
            if len(fields) != len(dialect.types):
                continue
        with suppress(OperationalError):
            return replace(dialect, types=_types_with_zero_codes(owner, path, dialect))
    raise _unreadable_error(path)


def _run_sniffer(owner: DuckDBAdmin, path: str, options: str) -> _CsvDialect:
    try:
        ((delimiter, quote, escape, skip, has_header, columns, dates, times),) = owner.query_rows(
            "SELECT Delimiter, Quote, Escape, SkipRows, HasHeader, Columns, DateFormat, TimestampFormat"
            f" FROM sniff_csv({quote_literal(path)}, sample_size = {MAX_SNIFFED_LINES}, {LINE_OPTIONS}{options})"
        )
    except OperationalError:  # the driver's text may quote lines
        raise _unreadable_error(path) from None
    assert isinstance(columns, list)
    delimiter, quote, escape = ("" if text == "(empty)" else str(text) for text in (delimiter, quote, escape))
    return _CsvDialect(
        delimiter or ",",
        quote,
        "" if escape == quote else escape,
        int(str(skip)),
        bool(has_header),
        (),
        tuple(str(column["type"]) for column in columns),
        _optional_text(dates),
        _optional_text(times),
    )


def _unreadable_error(path: str) -> OperationalError:
    return OperationalError(
        f'"{Path(path).name}" cannot be read as CSV',
        hint="Save it as UTF-8 with one delimiter and one header line, or write its table by hand.",
    )


def _is_uneven(owner: DuckDBAdmin, path: str) -> bool:
    """Whether what looks like one column is several, of which some lines have more or fewer."""
    with suppress(OperationalError):
        return len(_run_sniffer(owner, path, ", null_padding = true").types) > 1
    return False


def _uneven_error(path: str, skip: int) -> OperationalError:
    uneven = (find_uneven_line(path, Files((path,), "csv", delimiter=mark, skip=skip)) for mark in ",;\t|")
    lines = sorted(line for line in uneven if line is not None)
    where = f"; look at record {lines[0]}" if lines else ""
    return OperationalError(
        f'the lines of "{Path(path).name}" have different numbers of fields{where}',
        hint="Give every line as many fields as the header: which are missing is not guessed.",
    )


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
_EITHER_HINT = 'text, since its dates fit several formats: write type: date, and format: "{}" or "{}"'


@dataclass(frozen=True)
class _Reading:
    """How a column is read that DuckDB's sniffer does not read as it will be: as another type, by a format of times,
    or as text, with a hint."""

    type: Type | None = None
    format: str = ""
    hint: str | None = None


@dataclass(frozen=True)
class _Readings:
    columns: Mapping[int, _Reading]
    decimal_comma: bool = False


def _find_readings(owner: DuckDBAdmin, path: str, dialect: _CsvDialect) -> _Readings:
    """Of text columns, by their places: which hold numbers with commas, or times in a form of their own; no field is
    told."""
    rows = _csv_rows_sql(path, dialect)
    odd_times = {index for index, spelling in enumerate(dialect.types) if _has_odd_times(dialect, spelling)}
    texts = sorted({index for index, spelling in enumerate(dialect.types) if spelling == "VARCHAR"} | odd_times)
    fractions = [index for index, spelling in enumerate(dialect.types) if spelling == "DOUBLE"]
    if not texts:
        return _Readings({})
    figures = [f"[{', '.join(_number_figures_sql(f'c{index}'))}]" for index in (*texts, *fractions)]
    (row,) = owner.query_rows(f"SELECT {', '.join(figures)} FROM {rows}")
    counts = {index: _NumberCounts(*counted) for index, counted in zip((*texts, *fractions), row, strict=True)}  # type: ignore[misc]
    comma = any(counts[index].are_comma_numbers for index in texts) and all(
        counts[index].comma_like == counts[index].present for index in fractions
    )
    columns: dict[int, _Reading] = {}
    for index in texts:
        counted = counts[index]
        if (comma and counted.are_comma_numbers) or (counted.infinite and counted.numbers == counted.present):
            columns[index] = _Reading(DOUBLE)
        elif 2 * counted.commas > counted.present:
            columns[index] = _Reading(hint=_COMMA_HINT)
        elif 2 * (counted.numbers + counted.commas) > counted.present > counted.numbers:
            columns[index] = _Reading(hint=_WORDS_HINT)
        elif counted.present and counted.time_like == counted.present:
            columns[index] = _find_time_reading(owner, rows, f"c{index}")
        elif index in odd_times:
            columns[index] = _Reading(hint="dates in a form that is not read; as text, or write them anew")
    return _Readings(columns, comma)


@dataclass(frozen=True)
class _NumberCounts:
    """Fields that hold something; numbers; such as 1,5; such as 1.000,5 or 15; such as 1,5 and not 1,000; inf and nan;
    what may be a time."""

    present: int
    numbers: int
    commas: int
    comma_like: int
    fractions: int
    infinite: int
    time_like: int

    @property
    def are_comma_numbers(self) -> bool:
        """1,234 could be a thousand: one number at least must have another number of digits behind its comma."""
        return 0 < self.present == self.comma_like and self.fractions > 0


def _number_figures_sql(field: str) -> tuple[str, ...]:
    patterns = (
        "[+-]?[0-9][0-9. ]*,[0-9]+",
        DECIMAL_COMMA_PATTERN,
        ".*,([0-9]{1,2}|[0-9]{4,})",
        "(?i)[+-]?(inf|infinity|nan)",
        _TIME_LIKE_PATTERN,
    )
    matches = (_count_matches_sql(field, item) for item in patterns)
    return (f"count({field})", f"count(TRY_CAST({field} AS DOUBLE))", *matches)


_TIME_LIKE_PATTERN = "([0-9]{1,4}[./ -]|[A-Za-z]{3,9} )[0-9A-Za-z./:, -]{3,30}"
_DATE_FORMATS = (
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%y", "%d/%m/%y",
    "%m/%d/%y", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y",
)  # fmt: skip
_CLOCK_FORMATS = ("%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p")
_FIRST_ROWS = 1000
"""Rows that are tried with every format; what reads them all is tried on the others."""


def _find_time_reading(owner: DuckDBAdmin, rows: str, field: str) -> _Reading:
    """By the one format that reads all fields. Where the day could be the month, the owner must say it."""
    formats = [*_DATE_FORMATS, *(f"{date} {clock}" for date in _DATE_FORMATS for clock in _CLOCK_FORMATS)]
    first = f"(SELECT {field} FROM {rows} LIMIT {_FIRST_ROWS})"
    fitting = _fitting_formats(owner, rows, field, _fitting_formats(owner, first, field, formats))
    if len(fitting) == 1:
        return _Reading(DATE if fitting[0] in _DATE_FORMATS else TIMESTAMP, fitting[0])
    if fitting:
        return _Reading(hint=_EITHER_HINT.format(*fitting[:2]))
    return _Reading()


def _fitting_formats(owner: DuckDBAdmin, rows: str, field: str, formats: Sequence[str]) -> list[str]:
    """A year of two digits is none of four."""
    if not formats:
        return []
    times = (f"try_strptime(trim({field}), {quote_literal(form)})" for form in formats)
    counts = (f"coalesce(count_if({time} >= TIMESTAMP '1000-01-01'), 0)" for time in times)
    ((present, *counted),) = owner.query_rows(f"SELECT count({field}), {', '.join(counts)} FROM {rows}")
    return [form for form, count in zip(formats, counted, strict=True) if count == present]


def _has_odd_times(dialect: _CsvDialect, spelling: str) -> bool:
    """Whether DuckDB's sniffer reads times in a form that no cast reads."""
    type_ = declarable_type(spelling)
    form = dialect.dates if type_ == DATE else dialect.times if type_ in (TIMESTAMP, TIMESTAMPTZ) else None
    return form is not None and form not in _ISO_FORMATS


def _csv_rows_sql(path: str, dialect: _CsvDialect) -> str:
    """The first rows, as text in columns c0, c1, …"""
    names = [f"c{index}" for index in range(len(dialect.types))]
    relation = csv_relation_sql(path, dialect.describe(Files((path,), "csv")), names)
    return f"(SELECT * FROM {relation} LIMIT {MAX_SNIFFED_LINES})"


def _optional_text(value: object) -> str | None:
    return None if value is None else str(value)


_NAME = re.compile(r".*[^\W\d_].*", re.DOTALL)
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


_QUANTITY_WORDS = {
    "amount", "price", "cost", "quantity", "score", "value", "salary", "income", "weight", "height", "length",
    "width", "size", "year", "month", "rate", "temperature", "distance", "duration", "count", "latitude", "longitude",
    "percent", "balance", "revenue", "beds", "floor", "population", "area", "speed", "volume", "budget", "rating",
}  # fmt: skip
"""Words of names that never stand for a missing number; a text may hold them."""
_CODE_PATTERNS = (
    "[^@ ]+@[^@ ]+",
    "[0-9]+",
    "[0-9a-f]{16,}",
    "[0-9A-F]{16,}",
    "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "[A-Z0-9]*[0-9][A-Z0-9]*([-._/][A-Z0-9]+)*",
)
"""Texts that are codes: no word, and nobody's name, stands among them."""
_MIN_CODES = 20
"""Rows below the first line that must hold a code, and no other text, for a column of codes."""


def _has_certain_header(dialect: _CsvDialect, codes: Collection[int] = (), rows: int | None = None) -> bool:
    """Whether the first line can hardly be a row: no field of it looks like a value, and two things speak for it.

    A word above numbers, dates, booleans or `codes` speaks for it; so does a word that only names have, or one of a
    quantity above numbers. One alone does not: a row may have a word for a missing number, also in several columns.
    Where there is one column, it is enough, and so it is where all fields are single letters: as a row, these would
    tell of nobody. A field may be empty, as above the row names of R and pandas. In a file of no `rows`, which has no
    types, a word that only names have must be there.
    """
    typed = [spelling != "VARCHAR" for spelling in dialect.types]
    if not dialect.has_header:
        return any(typed)
    fields = [field.strip() for field in dialect.fields]
    named = all(_NAME.fullmatch(field) and field.lower() not in _MISSING_VALUE_WORDS for field in fields if field)
    known_headers = sum(1 for field in fields if _HEADER_WORDS & set(_split_words(field)))
    if rows == 0:
        return known_headers > 0 and len(set(fields)) == len(fields) and all(map(_PLAIN_NAME.fullmatch, fields))
    typed_fields = [field for field, is_typed in zip(fields, typed, strict=True) if is_typed]
    above = {field.casefold() for field in typed_fields if _PLAIN_NAME.fullmatch(field)}
    above |= {fields[index].casefold() for index in codes if _PLAIN_NAME.fullmatch(fields[index])}
    quantities = sum(1 for field in typed_fields if _QUANTITY_WORDS & set(_split_words(field)))
    enough = len(above) + known_headers + quantities >= min(2, len(typed))
    letters = bool(above) and all(re.fullmatch(r"[^\W\d_]", field) for field in fields)
    # Of numbers alone, odd words stand in no row: what they were next to would have to be a number, too.
    all_named = all(typed) and len({field.casefold() for field in typed_fields}) == len(typed) > 1 and all(fields)
    return named and (any(typed) or len(codes) > 1) and (enough or letters or all_named)


def _find_codes(owner: DuckDBAdmin, path: str, dialect: _CsvDialect) -> frozenset[int]:
    """Text columns that hold codes in all rows, such as hashes, addresses of mail or 01234, by their places."""
    texts = [index for index, spelling in enumerate(dialect.types) if spelling == "VARCHAR"]
    if not texts or not dialect.has_header:
        return frozenset()
    figures = [
        f"[count(c{index}), {', '.join(_count_matches_sql(f'c{index}', item) for item in _CODE_PATTERNS)}]"
        for index in texts
    ]
    (row,) = owner.query_rows(f"SELECT {', '.join(figures)} FROM {_csv_rows_sql(path, dialect)}")
    found: set[int] = set()
    for index, counted in zip(texts, row, strict=True):
        assert isinstance(counted, list)
        present, *matched = counted
        if present >= _MIN_CODES and present in matched:
            found.add(index)
    return frozenset(found)


def _count_matches_sql(field: str, pattern: str) -> str:
    return f"coalesce(count_if(regexp_full_match(trim({field}), {quote_literal(pattern)})), 0)"


def _split_words(name: str) -> list[str]:
    """
    >>> _split_words("PatientID"), _split_words("birth_date"), _split_words("Order Date")
    (['patient', 'id'], ['birth', 'date'], ['order', 'date'])
    """
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def _count_rows(owner: DuckDBAdmin, path: str, dialect: _CsvDialect) -> int:
    """Below the header."""
    ((count,),) = owner.query_rows(f"SELECT count(*) FROM (SELECT 1 FROM {_csv_rows_sql(path, dialect)} LIMIT 2)")
    assert isinstance(count, int)
    return count


def _is_one_line(owner: DuckDBAdmin, path: str, dialect: _CsvDialect) -> bool:
    """A file of one line, which the sniffer takes for a row."""
    return not dialect.has_header and _count_rows(owner, path, dialect) == 1


def _is_header_repeated(owner: DuckDBAdmin, path: str, dialect: _CsvDialect) -> bool:
    """Whether a word of the header is a value below it: then it may be a row."""
    if not dialect.has_header:
        return False
    same = (
        f"lower(trim(c{at})) = {quote_literal(name.strip().lower())}"
        for at, name in enumerate(dialect.fields)
        if name.strip()
    )
    ((is_repeated,),) = owner.query_rows(f"SELECT bool_or({' OR '.join(same)}) FROM {_csv_rows_sql(path, dialect)}")
    return bool(is_repeated)


_ISO_FORMATS = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f")


def _introspect_csv_column(name: str, spelling: str, dialect: _CsvDialect, reading: _Reading) -> IntrospectedColumn:
    type_ = reading.type or declarable_type(spelling) or TEXT
    if reading.type is None and _has_odd_times(dialect, spelling):
        type_ = TEXT
    guess = reading.hint if type_.kind is Kind.TEXT else "guessed from the file"
    return IntrospectedColumn(name, spelling, type_, guess=guess, format=reading.format)
