"""A DuckDB of generated rows, with the engine's own settings: what `verify` tries statements on.

Law: nothing but what `fill` was given is ever in it. So what it says of rows, errors included, may be shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from dpsql.engines.duckdb import (
    DuckDBEngine,
    column_types_of,
    fetch_exact_cells,
    first_error_line,
    quote_identifier,
    rows_to_utc,
)
from dpsql.privacy.exact import Exact, Row
from dpsql.schema.locations import MEMORY_URL


class InMemoryEngineError(Exception):
    """The engine's own words about rows that are nobody's."""


class InMemoryEngine(DuckDBEngine):
    """An empty instance in memory."""

    def __init__(self, threads: int) -> None:
        super().__init__(MEMORY_URL, threads=threads)
        self._threads = threads
        self._filled: dict[str, tuple[str, ...]] = {}

    def fill_table(self, table: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]) -> None:
        """Make the table anew; columns are names and the engine's types, values are literals."""
        declared = ", ".join(f"{quote_identifier(name)} {type_}" for name, type_ in columns)
        self._filled[table] = (f"CREATE OR REPLACE TABLE {quote_identifier(table)} ({declared})",)
        if rows:
            values = ", ".join(f"({', '.join(row)})" for row in rows)
            self._filled[table] += (f"INSERT INTO {quote_identifier(table)} VALUES {values}",)
        for sql in self._filled[table]:
            self._connection.execute(sql)

    def run_release(self, sql: str, key_columns: int, holes: Mapping[str, object]) -> Exact:
        """As `execute`, but a failure says what happened."""
        try:
            return self._run_select(sql, holes, lambda result: fetch_exact_cells(result, key_columns))
        except Exception as error:
            raise self._describe_failure(error) from None

    def query_rows(self, sql: str, holes: Mapping[str, object] | None = None) -> list[Row]:
        try:
            return self._run_select(
                sql, holes or {}, lambda result: rows_to_utc(result.fetchall(), column_types_of(result))
            )
        except duckdb.Error as error:
            raise self._describe_failure(error) from None

    def _describe_failure(self, error: Exception) -> InMemoryEngineError:
        if isinstance(error, duckdb.InternalException | duckdb.FatalException):
            # After an internal error of its own an instance answers nothing any more: another one has the same rows.
            self.close()
            super().__init__(MEMORY_URL, threads=self._threads)
            for sql in (sql for statements in self._filled.values() for sql in statements):
                self._connection.execute(sql)
        return InMemoryEngineError(f"{type(error).__name__}: {first_error_line(error)}")
