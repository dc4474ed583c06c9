"""DuckDB, the default engine: embedded, read-only, and locked before the first query.

Law: of the engines, only this module, `duckdb_admin.py` and `in_memory.py` know the driver.

Each engine is an in-memory instance of its own that attaches the owner's database file read-only. (Opening
the file itself would share one instance, and its locked settings, with whoever else opens it in this process.)
The settings are global ones: DuckDB's cursors do not inherit those of a session.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import duckdb
import numpy as np

from dpsql.base.intervals import make_interval
from dpsql.base.private_files import make_private_folder
from dpsql.engines.base import log, run_guarded
from dpsql.errors import InternalError, OperationalError
from dpsql.privacy.exact import Cells, Exact, Row
from dpsql.schema.locations import database_path
from dpsql.schema.model import EngineTable, Files, Source
from dpsql.types import Kind, Type

# Intervals as DuckDB has them, month for month: its driver gives each as days and seconds.
#
# A statement whose columns hold intervals is asked again with their parts in their place, as numbers.

_INTERVAL_TYPES = ("INTERVAL", "INTERVAL[]")


def has_intervals(types: Sequence[str]) -> bool:
    return any(spelled in _INTERVAL_TYPES for spelled in types)


def select_interval_parts(sql: str, types: Sequence[str]) -> str:
    """The statement with months, days and microseconds as a list in the place of each interval.

    Its rows stay in their order: DuckDB keeps that of a sub-select which is only projected, as
    `preserve_insertion_order` says.
    """
    columns = [f'"c{index}"' for index in range(len(types))]
    items = [_interval_parts_sql(column, spelled) for column, spelled in zip(columns, types, strict=True)]
    return f"SELECT {', '.join(items)} FROM ({sql}\n) AS asked({', '.join(columns)})"


def _interval_parts_sql(column: str, spelled: str) -> str:
    if spelled == "INTERVAL":
        return f"CASE WHEN {column} IS NOT NULL THEN {_parts_list_sql(column)} END"
    if spelled == "INTERVAL[]":
        return f"list_transform({column}, lambda x: CASE WHEN x IS NOT NULL THEN {_parts_list_sql('x')} END)"
    return column


_ZONED, _ZONED_LIST = "TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE[]"


def select_utc_times(sql: str, types: Sequence[str]) -> str:
    """The statement with times of UTC, without their zone, in the place of moments and lists of them: of a moment the
    driver makes a local time of the connection's zone, which it may not know. Rows stay in their order, as above."""
    columns = [f'"c{index}"' for index in range(len(types))]
    items = {_ZONED: "timezone('UTC', {})", _ZONED_LIST: "list_transform({}, lambda x: timezone('UTC', x))"}
    shown = [items.get(spelled, "{}").format(column) for column, spelled in zip(columns, types, strict=True)]
    return f"SELECT {', '.join(shown)} FROM ({sql}\n) AS asked({', '.join(columns)})"


def _parts_list_sql(value: str) -> str:
    months = f"date_part('year', {value}) * 12 + date_part('month', {value})"
    time = f"date_part('hour', {value}) * 3600000000 + date_part('minute', {value}) * 60000000"
    return f"[{months}, date_part('day', {value}), {time} + date_part('microsecond', {value})]"


def intervals_from_parts(rows: list[Row], types: Sequence[str]) -> list[Row]:
    """The rows that `select_interval_parts` gives, with intervals again."""
    readers: list[Callable[[Any], Any] | None] = [_INTERVAL_READERS.get(spelled) for spelled in types]
    return [
        tuple(
            value if reader is None or value is None else reader(value)
            for reader, value in zip(readers, row, strict=True)
        )
        for row in rows
    ]


_INTERVAL_READERS: dict[str, Callable[[Any], Any]] = {
    "INTERVAL": lambda parts: make_interval(*parts),
    "INTERVAL[]": lambda items: [None if parts is None else make_interval(*parts) for parts in items],
}

T = TypeVar("T")

# What makes a result depend on something besides statement and data, or lets a query reach beyond them.
_PINNED_SETTINGS: tuple[tuple[str, object], ...] = (
    ("autoload_known_extensions", False),
    ("autoinstall_known_extensions", False),
    ("allow_community_extensions", False),
    ("allow_persistent_secrets", False),
    ("python_enable_replacements", False),  # else an unknown table name is looked up among Python's variables
    # The first turns a TRY_CAST over a CSV file into one that raises. The second makes plans of outer joins in which
    # DuckDB 2.0.0 fails by an internal error ("dict-surviving cache"), on some rows and with several threads.
    ("disabled_optimizers", "type_pushdown,projection_pullup"),
    ("error_on_division_by_zero", False),
    ("ieee_floating_point_ops", True),
    ("integer_division", False),
    ("default_collation", ""),
    ("default_order", "ASC"),
    ("default_null_order", "NULLS_LAST"),
    ("TimeZone", "UTC"),
    ("Calendar", "gregorian"),
    ("preserve_insertion_order", False),  # no release has an order; keeping one costs memory
)

# Types whose numpy form has the same values. Others go through Python objects: numpy's form of DECIMAL and HUGEINT
# is a float, that of DATE a timestamp, that of TIMESTAMPTZ loses its zone.
_NUMPY_TYPES = frozenset(
    ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "VARCHAR")
)
_PYTHON_TYPES: dict[str, type] = {
    "BOOLEAN": bool, "TINYINT": int, "SMALLINT": int, "INTEGER": int, "BIGINT": int, "HUGEINT": int,
    "UTINYINT": int, "USMALLINT": int, "UINTEGER": int, "UBIGINT": int, "UHUGEINT": int,
    "FLOAT": float, "DOUBLE": float, "VARCHAR": str, "UUID": UUID, "INTERVAL": dt.timedelta,
    "DATE": dt.date, "TIME": dt.time, "TIMESTAMP": dt.datetime, "TIMESTAMP WITH TIME ZONE": dt.datetime,
}  # fmt: skip


class DuckDBEngine:
    """Reads one DuckDB file (`duckdb:////path`), or none (`duckdb:///:memory:`), and exactly the files in `allowed`.

    `threads`, `memory` (such as "4GB"), `spill` (a folder for what does not fit in memory) and `seconds` (the most that
    one run may take) are the owner's. Closing it stops what runs.
    """

    name = "duckdb"

    def __init__(
        self,
        url: str,
        allowed: Sequence[str] = (),
        *,
        threads: int | None = None,
        memory: str | None = None,
        spill: Path | None = None,
        seconds: float | None = None,
    ) -> None:
        self._path = database_path(url)
        if spill is not None:
            make_private_folder(spill, "the spill folder")
        own_spill = None if spill else tempfile.mkdtemp(prefix="dpsql-spill-")
        settings = [("temp_directory", str(spill or own_spill)), ("allowed_paths", list(allowed)), *_PINNED_SETTINGS]
        if threads is not None:
            settings.append(("threads", threads))
        if memory is not None:
            settings.append(("memory_limit", memory))
        self._settings, self._seconds, self._renewing = settings, seconds, threading.Lock()
        self._instances: list[duckdb.DuckDBPyConnection] = []
        self._running: set[duckdb.DuckDBPyConnection] = set()
        self._finalizer = weakref.finalize(
            self, _close_instances, self._instances, self._running, own_spill, os.getpid()
        )
        try:
            self._connection, self._schema = self._open_instance()
        except BaseException:
            self.close()
            raise

    def _open_instance(self) -> tuple[duckdb.DuckDBPyConnection, str | None]:
        """With the schema in which plain table names are found."""
        connection = duckdb.connect(":memory:")
        try:
            schema = None if self._path is None else attach_database(connection, self._path)
            lock_configuration(connection, self._settings)
        except BaseException:
            connection.close()
            raise
        self._instances.append(connection)
        return connection, schema

    def _replace_instance(self, broken: duckdb.DuckDBPyConnection) -> None:
        """After an internal error of its own, DuckDB answers nothing any more: what one statement met would fail those
        of all others, and be counted against them. Where there is none to be had, the next one that fails tries again.
        """
        with self._renewing:
            if self._connection is broken:
                try:
                    self._connection, self._schema = self._open_instance()
                except Exception:
                    log.error("the engine could not be opened again", exc_info=True)

    def execute(self, sql: str, key_columns: int, holes: Mapping[str, object]) -> Exact:
        return run_guarded(lambda: self._run_select(sql, holes, lambda result: fetch_exact_cells(result, key_columns)))

    def execute_public(self, sql: str, holes: Mapping[str, object]) -> list[Row]:
        return run_guarded(lambda: self._run_public(sql, holes))

    def _run_public(self, sql: str, holes: Mapping[str, object]) -> list[Row]:
        rows, types = self._run_select(sql, holes, lambda result: (result.fetchall(), column_types_of(result)))
        if has_intervals(types):
            parts_sql = select_interval_parts(sql, types)
            rows = intervals_from_parts(self._run_select(parts_sql, holes, lambda result: result.fetchall()), types)
        return rows_to_utc(rows, types)

    def describe(self, source: Source) -> dict[str, str]:
        cursor = self._open_cursor()
        try:
            rows = cursor.execute(f"DESCRIBE SELECT * FROM {render_source(source)}").fetchall()
        except duckdb.Error as error:
            raise OperationalError(
                "the engine cannot read a source", detail=first_error_line(error), hint="Check source in the schema."
            ) from None
        return {name: spelling for name, spelling, *_ in rows}

    def close(self) -> None:
        self._finalizer()

    def _open_cursor(self, of: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyConnection:
        cursor = (of or self._connection).cursor()
        if self._schema is not None:
            cursor.execute(f"USE {self._schema}")
        return cursor

    def _run_select(self, sql: str, holes: Mapping[str, object], read: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        """One SELECT on a cursor of its own, so that several threads may ask at once and one alone is stopped."""
        statements = duckdb.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InternalError("the engine was given something else than one SELECT")
        instance = self._connection
        try:
            return self._run_on_instance(instance, statements[0], holes, read)
        except (duckdb.InternalException, duckdb.FatalException):
            self._replace_instance(instance)  # its cursor is closed: nobody waits for it
            raise

    def _run_on_instance(
        self,
        instance: duckdb.DuckDBPyConnection,
        statement: duckdb.Statement,
        holes: Mapping[str, object],
        read: Callable[[duckdb.DuckDBPyConnection], T],
    ) -> T:
        cursor = self._open_cursor(instance)
        self._running.add(cursor)
        try:
            with _interrupt_after(self._seconds, cursor) as late:
                try:
                    return read(cursor.execute(statement, dict(holes) if holes else None))
                except (duckdb.InterruptException, RuntimeError) as error:
                    # DuckDB's two words for it: of `interrupt`, and of Ctrl-C where the main thread runs the query.
                    if not isinstance(error, duckdb.InterruptException) and str(error) != "Query interrupted":
                        raise
        finally:
            cursor.close()
            self._running.discard(cursor)
        # Outside of the except block, where Python would attach the driver's error.
        if late.is_set():
            raise _RunTimeout(f"a run took longer than {self._seconds:g} s")
        raise KeyboardInterrupt  # the caller's choice, or `close`; not the rows'


@contextmanager
def _interrupt_after(seconds: float | None, cursor: duckdb.DuckDBPyConnection) -> Iterator[threading.Event]:
    """Interrupts the cursor when its time is over, and says so by the event."""
    late, done = threading.Event(), threading.Event()

    def watch() -> None:
        if not done.wait(seconds):
            late.set()
            cursor.interrupt()
            while not done.wait(0.1):
                cursor.interrupt()  # one that comes before the query begins is lost

    watcher = threading.Thread(target=watch, name="dpsql-limit", daemon=True)
    if seconds is not None:
        watcher.start()
    try:
        yield late
    finally:
        done.set()
        if seconds is not None:
            watcher.join()  # an interrupt must not meet a closed cursor


def lock_configuration(connection: duckdb.DuckDBPyConnection, settings: Sequence[tuple[str, object]]) -> None:
    """Apply settings, then close the instance to the world and its settings to everyone."""
    for name, value in (*settings, ("enable_external_access", False), ("lock_configuration", True)):
        connection.execute(f"SET GLOBAL {name} = {quote_literal(value)}")


def attach_database(connection: duckdb.DuckDBPyConnection, path: Path) -> str:
    """Attach a database file read-only; the schema in which its plain table names are found."""
    if not path.is_file():
        raise OperationalError(
            f'there is no database file "{path}"', hint='Check engine in the schema, such as "duckdb:///clinic.duckdb".'
        )
    reserved = path.stem.lower() in ("main", "memory", "system", "temp")  # names of DuckDB's own
    catalog = quote_identifier(path.stem + "_file" if reserved else path.stem)
    try:
        connection.execute(f"ATTACH {quote_literal(str(path))} AS {catalog} (READ_ONLY)")
    except duckdb.Error as error:
        raise OperationalError(
            f'the database file "{path}" cannot be opened for reading',
            detail=first_error_line(error),
            hint="If another program has it open for writing, close it there; many readers are fine.",
        ) from None
    return f"{catalog}.main"


def render_source(source: Source) -> str:
    """A source in FROM. Hive folders add no columns: only what the files hold was declared."""
    match source:
        case EngineTable(name):
            return ".".join(quote_identifier(part) for part in name)
        case Files(patterns, "parquet"):
            return f"read_parquet({quote_literal(list(patterns))}, hive_partitioning = false)"
        case Files():
            raise InternalError("only Parquet files are read in place")


def quote_identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def quote_literal(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case list():
            return "[" + ", ".join(quote_literal(item) for item in value) + "]"
        case _:
            raise TypeError(f"no literal for {type(value).__name__}")


def duckdb_type_name(type_: Type) -> str:
    return "VARCHAR" if type_.kind is Kind.TEXT else str(type_).upper()


def first_error_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _close_instances(
    instances: list[duckdb.DuckDBPyConnection],
    running: set[duckdb.DuckDBPyConnection],
    spill: str | None,
    process: int,
) -> None:
    if os.getpid() != process:  # a forked child: the queries, the threads and the spill folder are its parent's
        return
    # DuckDB refuses to close a connection whose cursors are at work.
    while running:
        for cursor in tuple(running):
            with suppress(duckdb.Error):  # it may have ended by itself
                cursor.interrupt()
        time.sleep(0.01)
    for instance in instances:
        instance.close()
    if spill is not None:
        shutil.rmtree(spill, ignore_errors=True)


def column_types_of(result: duckdb.DuckDBPyConnection) -> list[str]:
    return [str(column[1]) for column in result.description or ()]


def rows_to_utc(rows: list[Row], types: Sequence[str]) -> list[Row]:
    """Give TIMESTAMPTZ values, also those in lists, the standard library's UTC; the driver speaks of pytz's zones."""
    zoned = {at for at, spelling in enumerate(types) if spelling in (_ZONED, _ZONED_LIST)}
    if not zoned:
        return rows
    return [tuple(_to_utc(value) if at in zoned else value for at, value in enumerate(row)) for row in rows]


def _to_utc(value: object) -> object:
    match value:
        case dt.datetime():
            return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)
        case list() | tuple():
            return type(value)(map(_to_utc, value))
        case dict():
            return {key: _to_utc(item) for key, item in value.items()}
        case _:
            return value


def fetch_exact_cells(result: duckdb.DuckDBPyConnection, key_columns: int) -> Exact:
    types = column_types_of(result)
    if any(spelling != "BIGINT" for spelling in types[key_columns:]):
        # numpy would round a HUGEINT to a float; the plan must clamp and cast its cells itself.
        raise InternalError("a cell of a release is not BIGINT")
    expected = [_python_type_of(spelling) for spelling in types[:key_columns]]
    if all(spelling in _NUMPY_TYPES for spelling in types):
        columns: list[Any] = list(result.fetchnumpy().values())
        keys = [column.tolist() for column in columns[:key_columns]]  # a masked array gives None for NULL
    else:
        rows = rows_to_utc(result.fetchall(), types)
        columns = [[row[at] for row in rows] for at in range(len(types))]
        keys = [_check_key_values(column, type_) for column, type_ in zip(columns, expected, strict=False)]
    cells = [_to_cells(column) for column in columns[key_columns:]]
    return Exact(list(zip(*keys, strict=True)) if keys else [()] * len(columns[0]), cells)


def _python_type_of(spelling: str) -> type:
    python_type = Decimal if spelling.startswith("DECIMAL(") else _PYTHON_TYPES.get(spelling)
    if python_type is None:
        raise InternalError(f"a key of a release has the type {spelling}")
    return python_type


def _to_cells(column: Any) -> Cells:
    if None in column if isinstance(column, list) else np.ma.is_masked(column):
        raise _UnsanitizedValue("a cell is NULL")
    return np.array(column, dtype=np.int64)


def _check_key_values(column: list[Any], expected: type) -> list[Any]:
    """Refuse what the driver cannot say in Python: for years beyond 1 to 9999 it gives text."""
    if any(value is not None and not isinstance(value, expected) for value in column):
        raise _UnsanitizedValue(f"a key is not a {expected.__name__} of Python")
    if expected is float and any(value != value for value in column):
        raise _UnsanitizedValue("a key is NaN")
    return column


class _RunTimeout(Exception):
    """A run past the owner's limit. It becomes `EngineFailed`; the log says which."""


class _UnsanitizedValue(Exception):
    """A value that the sanitising scan should have removed. It becomes `EngineFailed`; the log says which."""
