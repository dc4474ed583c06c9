"""Exact queries of DuckDB when the owner registers a data version.

Law: nothing here is reachable from an analyst's statement; registering a version and the package `owner` are the only
callers. Errors may speak of lines of the owner's files.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from decimal import Context, Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from dpsql.base.private_files import make_private_folder, open_private_file
from dpsql.engines.duckdb import (
    attach_database,
    column_types_of,
    duckdb_type_name,
    first_error_line,
    quote_identifier,
    quote_literal,
    render_source,
    rows_to_utc,
)
from dpsql.engines.text_files import mixes_line_ends, read_field_sql, text_relation_sql, write_utf8_copy
from dpsql.errors import OperationalError
from dpsql.schema.locations import database_path
from dpsql.schema.model import EPOCH, Column, Domain, Files, Source
from dpsql.types import Kind, Type, decimal_type

_EXACT_CONTEXT = Context(prec=100)

# Spellings that a collation other than bytes would find equal or put in another order: case, accents, and one
# letter composed and decomposed.
_COLLATION_PROBES = ("A", "Z", "a", "b", "e\u0301", "z", "\u00e4", "\u00e9")


class DuckDBAdmin:
    """A connection that may read and write files. It lives for one registration, or for one look of the owner's."""

    def __init__(self, url: str, *, threads: int | None = None, memory: str | None = None) -> None:
        path = database_path(url)
        self._copies: TemporaryDirectory[str] | None = None
        self._connection = duckdb.connect(":memory:")
        try:
            for setting in ("autoload_known_extensions", "autoinstall_known_extensions", "python_enable_replacements"):
                self._connection.execute(f"SET GLOBAL {setting} = false")
            self._connection.execute("SET GLOBAL TimeZone = 'UTC'")
            for limit, value in (("threads", threads), ("memory_limit", memory)):
                if value is not None:
                    self._connection.execute(f"SET GLOBAL {limit} = {quote_literal(value)}")
            # It moves a TRY_CAST into the CSV reader, where it raises (seen in DuckDB 2.0).
            self._connection.execute("SET GLOBAL disabled_optimizers = 'type_pushdown,projection_pullup'")
            if path is not None:
                self._connection.execute(f"USE {attach_database(self._connection, path)}")
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> DuckDBAdmin:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        if self._copies is not None:
            self._copies.cleanup()

    def describe(self, source: Source) -> dict[str, str]:
        rows = self._fetch_rows(f"DESCRIBE SELECT * FROM {render_source(source)}")
        return {str(name): str(spelling) for name, spelling, *_ in rows}

    def check_readable(self, source: Source, columns: Sequence[Column]) -> None:
        """Read every declared value once; the owner is told what cannot be read.

        Privacy: a file can hold values that a reader raises on (text that is not UTF-8, a moment past its type's
        range), below every sanitising cast. Met in a query, one such row would be told from its absence.
        """
        names = [quote_identifier(column.name) for column in columns]
        cast = [f"TRY_CAST({quote_identifier(column.name)} AS {duckdb_type_name(column.type)})" for column in columns]
        self._fetch_rows(
            f"SELECT bit_xor(hash({', '.join(names)})), bit_xor(hash({', '.join(cast)})) FROM {render_source(source)}"
        )

    def has_duplicates(self, source: Source, columns: Sequence[Column], ids: Collection[str] = ()) -> bool:
        """Whether two sanitised rows have the same key. A key that is NULL, or becomes NULL, is no key."""
        names = [f"k{at}" for at in range(len(columns))]
        keys = [f"{sanitized_sql(key, key.name in ids)} AS {name}" for name, key in zip(names, columns, strict=True)]
        rows = self._fetch_rows(
            f"SELECT EXISTS (SELECT 1 FROM (SELECT {', '.join(keys)} FROM {render_source(source)}) "
            f"WHERE {' AND '.join(f'{name} IS NOT NULL' for name in names)} "
            f"GROUP BY {', '.join(names)} HAVING count(*) > 1)"
        )
        return bool(rows[0][0])

    def is_compared_by_bytes(self, source: Source, column: str) -> bool:
        """Whether a text column has DuckDB's own order; asked of its type, not of its rows."""
        spelled = " UNION ALL ".join(f"SELECT {quote_literal(text)}" for text in _COLLATION_PROBES)
        rows = self._fetch_rows(
            f"WITH t(x) AS (SELECT {quote_identifier(column)} FROM {render_source(source)} WHERE false UNION "
            f"ALL {spelled}) "
            "SELECT x FROM t GROUP BY x ORDER BY x"
        )
        return tuple(row[0] for row in rows) == tuple(sorted(_COLLATION_PROBES, key=str.encode))

    def query_rows(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of a SELECT over the owner's sources, in the values of Python's own."""
        return self._fetch_rows(sql)

    def make_readable(self, files: Files, columns: Sequence[Column]) -> Files:
        """CSV files as DuckDB reads them: where it cannot read an encoding, or lines that end in several ways, a copy,
        which is gone when the connection closes."""
        if files.format != "csv":
            return files
        paths = tuple(self._readable_path(path, files, columns) for path in files.patterns)
        return replace(files, patterns=paths, encoding="")

    def _readable_path(self, path: str, files: Files, columns: Sequence[Column]) -> str:
        if files.encoding not in ("", "utf-8"):
            path = self._write_copy(path, files)
        files = replace(files, encoding="")
        if mixes_line_ends(path) and not self._can_scan(text_relation_sql(path, files, columns)):
            return self._write_copy(path, files, line_ends=True)
        return path

    def _write_copy(self, path: str, files: Files, *, line_ends: bool = False) -> str:
        if self._copies is None:
            # By this name the owner's next command removes it, if the process is killed.
            self._copies = TemporaryDirectory(prefix=f"dpsql-look-{os.getpid()}-")
        folder = Path(self._copies.name) / str(len(os.listdir(self._copies.name)))
        folder.mkdir()
        copy = folder / re.sub(r"\.gz$", "", Path(path).name, flags=re.IGNORECASE)  # errors name the file
        write_utf8_copy(path, files, copy, line_ends=line_ends)
        return str(copy)

    def _can_scan(self, relation: str) -> bool:
        try:
            self._connection.execute(f"SELECT count(*) FROM {relation}").fetchall()
        except duckdb.Error:
            return False
        return True

    def check_text_files(self, files: Files, columns: Sequence[Column]) -> None:
        """Read every field of text files once, as registering will; raises where it would."""
        files = self.make_readable(files, columns)
        for path in files.patterns:
            self._execute_copy(f"SELECT bit_xor(hash(t)) FROM {text_relation_sql(path, files, columns)} t")

    def write_snapshot(self, files: Files, columns: Sequence[Column], target: Path, ids: Collection[str] = ()) -> None:
        """Load text files into one Parquet file of the declared types.

        Every field is read as text in the declared dialect and cast totally, row by row: nothing is guessed from
        other rows [one added row would flip every date of the file]. The file appears under its name only when
        it is whole.
        """
        fields = ", ".join(_typed_field_sql(column, column.name in ids, files.decimal) for column in columns)
        files = self.make_readable(files, columns)
        parts = " UNION ALL ".join(
            f"SELECT {fields} FROM {text_relation_sql(path, files, columns)}" for path in files.patterns
        )
        make_private_folder(target.parent, "the folder of snapshots")
        partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
        try:
            self._execute_copy(f"COPY ({parts}) TO {quote_literal(str(partial))} (FORMAT parquet)")
            os.close(open_private_file(partial, os.O_WRONLY))
            _sync_file(partial)
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)

    def replace_column(
        self, files: Files, column: str, change: Callable[[Sequence[str | None]], list[str]], target: Path, text: bool
    ) -> None:
        """One file written again with other values in a column, given and taken as text; all else stays as it is.

        The column keeps its type, unless it shall be `text`. The file appears under its name only when it is whole.
        """
        files = self.make_readable(files, ())
        (path,) = files.patterns
        source = render_source(files) if files.format == "parquet" else text_relation_sql(path, files, ())
        self._execute_copy(f"CREATE TEMP TABLE held AS SELECT * FROM {source}")
        types = {str(name): str(type_) for name, type_, *_ in self._fetch_rows("DESCRIBE held")}
        if column not in types:
            raise OperationalError(f'"{Path(path).name}" has no column "{column}"', hint=f"It has {', '.join(types)}.")
        name, type_ = quote_identifier(column), "VARCHAR" if text else types[column]
        values = change([row[0] for row in self._fetch_rows(f"SELECT CAST({name} AS VARCHAR) FROM held")])  # type: ignore[misc]
        copy_options = (
            f"FORMAT csv, HEADER, DELIMITER {quote_literal(files.delimiter)}"
            if files.format == "csv"
            else "FORMAT parquet"
        )
        with TemporaryDirectory(dir=target.parent) as folder:  # its owner's alone, as the file will be
            partial = Path(folder) / target.name
            self._execute_copy(
                f"COPY (SELECT held.* REPLACE (CAST(told.answer AS {type_}) AS {name}) FROM held POSITIONAL JOIN "
                f"(SELECT unnest(?::VARCHAR[]) AS answer) AS told) TO {quote_literal(str(partial))} ({copy_options})",
                [values],
            )
            os.close(open_private_file(partial, os.O_WRONLY))
            os.replace(partial, target)

    def _execute_copy(self, sql: str, parameters: Sequence[object] = ()) -> None:
        try:
            self._connection.execute(sql, list(parameters))
        except duckdb.Error as error:
            raise _unreadable_error(error) from None

    def _fetch_rows(self, sql: str) -> list[tuple[object, ...]]:
        try:
            result = self._connection.execute(sql)
            return rows_to_utc(result.fetchall(), column_types_of(result))
        except duckdb.Error as error:
            raise OperationalError(
                "the engine cannot read a source",
                detail=first_error_line(error),
                hint="Check engine and source in the schema, and that the files are whole.",
            ) from None


def sanitized_sql(column: Column, is_id: bool) -> str:
    """The column as the sanitising scan gives it; an id is not moved: what does not fit is NULL (SOUNDNESS 3)."""
    domain = column.domain
    value = f"TRY_CAST({quote_identifier(column.name)} AS {duckdb_type_name(domain.type)})"
    if domain.type.is_float or domain.type.is_time:
        value = f"CASE WHEN isfinite({value}) THEN {value} END"
    if domain.type.kind is Kind.TEXT:
        value = f"CASE WHEN length({value}) <= {column.max_length} THEN {value} END"
    if domain.values is not None:
        listed = ", ".join(
            f"CAST({quote_literal(str(item))} AS {duckdb_type_name(domain.type)})" for item in domain.values
        )
        return f"CASE WHEN {value} IN ({listed}) THEN {value} END"
    return _clipped_sql(value, domain, is_id)


def _clipped_sql(value: str, domain: Domain, is_id: bool) -> str:
    for bound, beyond, inward in ((domain.lower, "<", math.ceil), (domain.upper, ">", math.floor)):
        if bound is not None:
            edge = _bound_sql(domain.type, inward(bound * 10 ** (domain.type.scale or 0)))
            value = f"CASE WHEN {value} {beyond} {edge} THEN {'NULL' if is_id else edge} ELSE {value} END"
    return value


def _bound_sql(type_: Type, units: int) -> str:
    """A bound, given in days, microseconds or units of the last place."""
    match type_.kind:
        case Kind.DATE:
            return f"(DATE '{EPOCH.date()}' + ({units}))"
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return f"CAST(make_timestamp({units}) AS {duckdb_type_name(type_)})"
        case Kind.REAL | Kind.DOUBLE:
            # The check must not tell apart what the scan's own rounding of a bound moves to one place.
            raise OperationalError(
                f'a "unique" key of type {type_} cannot have bounds', hint="Declare no bounds, or a decimal type."
            )
        case _:
            return (
                f"TRY_CAST('{Decimal(units).scaleb(-(type_.scale or 0), _EXACT_CONTEXT):f}' AS "
                f"{duckdb_type_name(type_)})"
            )


def _typed_field_sql(column: Column, is_id: bool, decimal: str) -> str:
    """A field cast to its declared type.

    Privacy: an id keeps its spelling. TRY_CAST makes 7 of '007', ' 7' and '7.4', and would merge three units; so
    an id whose text is not what its value prints as becomes NULL (SOUNDNESS 3).
    """
    name = quote_identifier(column.name)
    # Parquet has no 128-bit integers: DuckDB writes them as doubles, which would round.
    target = duckdb_type_name(decimal_type(38, 0) if column.type.kind is Kind.HUGEINT else column.type)
    value = f"TRY_CAST({read_field_sql(name, column, decimal)} AS {target})"
    if is_id and column.type.kind is not Kind.TEXT:
        value = f"CASE WHEN CAST({value} AS VARCHAR) = {name} THEN {value} END"
    return f"{value} AS {name}"


def _unreadable_error(error: duckdb.Error) -> OperationalError:
    text = str(error)
    file, line = re.search(r'file (?:= |")([^"\n]+)', text), re.search(r"[Ll]ine:? (\d+)", text)
    where = (f'"{Path(file[1].strip()).name}"' if file else "a source") + (f", line {line[1]}" if line else "")
    return OperationalError(
        f"{where} cannot be read in the declared dialect",
        detail=_error_reason(text),
        hint="Correct the line, or the dialect in the schema; no row is left out silently.",
    )


def _error_reason(text: str) -> str:
    """DuckDB's reason without the line's own text."""
    for line in text.splitlines():
        if line.startswith(("Expected Number", "Invalid unicode", "Value with unterminated", "Maximum line")):
            return line
    return text.partition("\n")[0].partition(" at byte ")[0]


def _sync_file(path: Path) -> None:
    with open(path, "rb+") as stream:
        os.fsync(stream.fileno())
