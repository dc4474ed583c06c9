"""CSV and JSON files as relations of text columns, in the dialect that the schema states.

Law: nothing is guessed from rows here. What a header names is made fit for a schema by rules that look at the header
alone.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Literal, TextIO, cast

from dpsql.engines.duckdb import quote_identifier, quote_literal
from dpsql.errors import OperationalError
from dpsql.schema.keys import MAX_NAME
from dpsql.schema.model import Column, Files

_CHUNK = 1 << 20
LINE_OPTIONS = "max_line_size = 16777216, buffer_size = 33554432"
"""A line may have 16 MB; the buffer is DuckDB's own for lines of 2 MB."""


def open_bytes(path: str | Path) -> BinaryIO:
    """The file's bytes, unpacked if it is packed by gzip."""
    return cast(BinaryIO, gzip.open(path)) if str(path).lower().endswith(".gz") else open(path, "rb")


def _open_text(path: str, files: Files) -> TextIO:
    encoding = {"": "utf-8-sig", "utf-8": "utf-8-sig"}.get(files.encoding, files.encoding)
    return io.TextIOWrapper(open_bytes(path), encoding=encoding, errors="surrogateescape", newline="")


def read_csv_header(path: str, files: Files) -> list[str]:
    """The column names in a CSV file's first line, as a schema can hold them."""
    return name_columns(read_header_fields(path, files))


def read_header_fields(path: str, files: Files) -> list[str]:
    try:
        with _open_text(path, files) as stream:
            lines = itertools.islice(stream, files.skip, None)
            quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if files.quote else csv.QUOTE_NONE
            escape = files.escape if files.escape not in ("", files.quote) else None
            return next(
                csv.reader(lines, delimiter=files.delimiter, quotechar=files.quote or None, quoting=quoting,
                           escapechar=escape, doublequote=escape is None),
                [],
            )  # fmt: skip
    except (OSError, EOFError, csv.Error) as error:
        raise OperationalError(
            f'the header of "{Path(path).name}" cannot be read', detail=str(error), hint="Save the file as UTF-8 CSV."
        ) from None


def name_columns(fields: Sequence[str]) -> list[str]:
    """Names for the fields of a header: one without a name is called by its place, as the row names of R and pandas
    are; of several that differ by case only, the later ones are numbered.

    >>> name_columns(["", "age", "Age", 'the "n"', " n ", ""])
    ['column1', 'age', 'Age_1', 'the _n_', 'n', 'column6']
    """
    names = [_clean_name(field) or f"column{number}" for number, field in enumerate(fields, 1)]
    used, result = {name.casefold() for name in names}, list[str]()
    seen: set[str] = set()
    for name in names:
        fresh = name
        if name.casefold() in seen:
            numbered = (f"{name[: MAX_NAME - 10]}_{number}" for number in itertools.count(1))
            fresh = next(other for other in numbered if other.casefold() not in used)
            used.add(fresh.casefold())
        seen.add(fresh.casefold())
        result.append(fresh)
    return result


def _clean_name(field: str) -> str:
    printable = "".join(c if c.isprintable() and not 0xDC80 <= ord(c) <= 0xDCFF else "_" for c in field.strip())
    return re.sub(r'["\s]', lambda match: " " if match[0] == " " else "_", printable)[:MAX_NAME].strip()


def text_relation_sql(path: str, files: Files, columns: Sequence[Column]) -> str:
    """One file as a relation of VARCHAR columns; all that its header names, with `columns` among them."""
    if files.format == "json":
        # A file of JSON is an array, or one object on each line.
        with open(path, encoding="utf-8-sig", errors="replace") as stream:
            layout = "array" if stream.read(4096).lstrip()[:1] == "[" else "newline_delimited"
        names = [column.name for column in columns]
        return (
            f"read_json({quote_literal(path)}, auto_detect = false, format = '{layout}', columns = "
            f"{_varchar_columns_sql(names)})"
        )
    names = read_csv_header(path, files) if files.header else [column.name for column in columns]
    header_names = {name.casefold() for name in names}
    for column in columns:
        if column.name.casefold() not in header_names:
            raise OperationalError(
                f'"{Path(path).name}" has no column "{column.name}"',
                hint=f"Its header names {', '.join(names)}." if names else "The file has no header line.",
            )
    return csv_relation_sql(path, files, names)


def csv_relation_sql(path: str, files: Files, names: Sequence[str]) -> str:
    """A CSV file in FROM; a line with more or fewer fields than there are names raises."""
    options = (
        f"header = {quote_literal(files.header)}, delim = {quote_literal(files.delimiter)}, quote = "
        f"{quote_literal(files.quote)}, escape = {quote_literal(files.escape or files.quote)}, nullstr = "
        f"{quote_literal(files.null)}, skip = {files.skip}, strict_mode = true, null_padding = false, "
        f"ignore_errors = false, {LINE_OPTIONS}"
    )
    return f"read_csv({quote_literal(path)}, auto_detect = false, {options}, columns = {_varchar_columns_sql(names)})"


def text_files_sql(files: Files, columns: Sequence[Column]) -> str:
    """Text files in FROM, with the fields of all declared columns as they stand there."""
    names = ", ".join(quote_identifier(column.name) for column in columns)
    parts = (f"SELECT {names} FROM {text_relation_sql(path, files, columns)}" for path in files.patterns)
    return f"({' UNION ALL '.join(parts)})"


def _varchar_columns_sql(names: Sequence[str]) -> str:
    return "{" + ", ".join(f"{quote_literal(name)}: 'VARCHAR'" for name in names) + "}"


DECIMAL_COMMA_PATTERN = "[+-]?([0-9]+|[0-9]{1,3}([. ][0-9]{3})+)?(,[0-9]*)?([eE][+-]?[0-9]+)?"


def read_field_sql(name: str, column: Column, decimal: str = "") -> str:
    """A field of text as what is cast to the column's type: in the declared form of its times, and with its decimals
    behind a point."""
    if column.format:
        return f"try_strptime(trim({name}), {quote_literal(column.format)})"
    if decimal == "," and column.type.is_number:
        digits = f"replace(replace(replace(trim({name}), '.', ''), ' ', ''), ',', '.')"
        return f"CASE WHEN regexp_full_match(trim({name}), {quote_literal(DECIMAL_COMMA_PATTERN)}) THEN {digits} END"
    return name


def mixes_line_ends(path: str) -> bool:
    """Whether lines end in more than one way, in quotes or not: DuckDB cannot read some such files."""
    pairs = feeds = returns = 0
    with open_bytes(path) as stream:
        while chunk := stream.read(_CHUNK):
            if chunk.endswith(b"\r"):
                chunk += stream.read(1)
            both = chunk.count(b"\r\n")
            pairs, feeds = pairs + both, feeds + chunk.count(b"\n") - both
            returns += chunk.count(b"\r") - both
    return sum(count > 0 for count in (pairs, feeds, returns)) > 1


_LINE_END = re.compile(r"\r\n?|\n")


class _LineEnds:
    """Makes one of the ways to end a line that a CSV file has, piece by piece; within quotes all stay as they are."""

    def __init__(self, files: Files) -> None:
        self._quote, self._is_quoted = files.quote, False
        # Where it is the quote that escapes, one that is written twice ends a field and begins it again.
        escaped = re.escape(files.escape) + r"[\s\S]|" if files.escape not in ("", files.quote) else ""
        self._within_quotes = re.compile(escaped + re.escape(files.quote))

    def unify(self, text: str) -> str:
        parts, at = list[str](), 0
        while at < len(text):
            end = self._find_quote(text, at)
            part = text[at : len(text) if end is None else end]
            parts.append(part if self._is_quoted else _LINE_END.sub("\n", part))
            self._is_quoted ^= end is not None
            at += len(part)
        return "".join(parts)

    def _find_quote(self, text: str, at: int) -> int | None:
        """Where the next quote ends that begins a field or ends one."""
        if not self._is_quoted:
            found = text.find(self._quote, at) if self._quote else -1
            return None if found < 0 else found + 1
        tokens = self._within_quotes.finditer(text, at)
        return next((token.end() for token in tokens if token[0] == self._quote), None)


def write_utf8_copy(path: str, files: Files, target: Path, *, line_ends: bool = False) -> None:
    """The file as DuckDB reads it: in UTF-8, and with one way to end a line if `line_ends` are to be made one.

    Privacy: fields keep what they hold. Where the ends of lines within quotes are made one too, a row that ends in
    another way than the rest changes the texts of all others.
    """
    encoding = files.encoding or "utf-8"
    unify = _LineEnds(files).unify if line_ends else None
    try:
        with (
            io.TextIOWrapper(open_bytes(path), encoding=encoding, newline="") as source,
            open(target, "w", encoding="utf-8", newline="") as copy,
        ):
            while chunk := source.read(_CHUNK):
                while unify and chunk[-1] in ("\r", files.escape) and (more := source.read(1)):
                    chunk += more
                copy.write(chunk if unify is None else unify(chunk))
    except (UnicodeError, EOFError):
        raise OperationalError(
            f'"{Path(path).name}" is not in the encoding {encoding}',
            hint="Write its encoding in the schema, or save the file as UTF-8.",
        ) from None


def find_encoding(path: str) -> str:
    """The encoding that a file seems to have: "" where it is UTF-8. One of 8 bits cannot be told from others."""
    with open_bytes(path) as stream:
        if stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
    return next((name for name in ("utf-8", "windows-1252") if _decodes(path, name)), "latin-1").removeprefix("utf-8")


def _decodes(path: str, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with open_bytes(path) as stream:
            while chunk := stream.read(_CHUNK):
                decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def find_uneven_line(path: str, files: Files) -> int | None:
    """The number of the first record that has another number of fields than the first one; None if there is none."""
    with _open_text(path, files) as stream:
        lines = itertools.islice(stream, files.skip, None)
        width = None
        try:
            for number, fields in enumerate(csv.reader(lines, delimiter=files.delimiter), files.skip + 1):
                if width is not None and fields and len(fields) != width:
                    return number
                width = len(fields) if width is None else width
        except csv.Error:
            return None
    return None
