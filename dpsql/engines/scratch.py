"""A DuckDB of made-up rows, with the engine's own settings: what `verify` tries statements on.

Law: nothing but what `fill` was given is ever in it. So what it says of rows, errors included, may be shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from dpsql.engines.duckdb import DuckDBEngine, exact_cells, first_line, identifier, in_utc, types_of
from dpsql.exact import Exact, Row
from dpsql.schema.places import MEMORY


class ScratchFailed(Exception):
    """The engine's own words about rows that are nobody's."""


class ScratchEngine(DuckDBEngine):
    """An empty instance in memory."""

    def __init__(self, threads: int) -> None:
        super().__init__(MEMORY, threads=threads)
        self._threads = threads
        self._filled: dict[str, tuple[str, ...]] = {}

    def fill(self, table: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]) -> None:
        """Make the table anew; columns are names and the engine's types, values are literals."""
        declared = ", ".join(f"{identifier(name)} {type_}" for name, type_ in columns)
        self._filled[table] = (f"CREATE OR REPLACE TABLE {identifier(table)} ({declared})",)
        if rows:
            values = ", ".join(f"({', '.join(row)})" for row in rows)
            self._filled[table] += (f"INSERT INTO {identifier(table)} VALUES {values}",)
        for sql in self._filled[table]:
            self._connection.execute(sql)

    def release(self, sql: str, key_columns: int, holes: Mapping[str, object]) -> Exact:
        """As `execute`, but a failure says what happened."""
        try:
            return self._run(sql, holes, lambda result: exact_cells(result, key_columns))
        except Exception as error:
            raise self._failed(error) from None

    def ask(self, sql: str, holes: Mapping[str, object] | None = None) -> list[Row]:
        try:
            return self._run(sql, holes or {}, lambda result: in_utc(result.fetchall(), types_of(result)))
        except duckdb.Error as error:
            raise self._failed(error) from None

    def _failed(self, error: Exception) -> ScratchFailed:
        if isinstance(error, duckdb.InternalException | duckdb.FatalException):
            # After an internal error of its own an instance answers nothing any more: another one has the same rows.
            self.close()
            super().__init__(MEMORY, threads=self._threads)
            for sql in (sql for made in self._filled.values() for sql in made):
                self._connection.execute(sql)
        return ScratchFailed(f"{type(error).__name__}: {first_line(error)}")
