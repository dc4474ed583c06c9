"""A DuckDB in memory with the engine's own settings, and tables of literal rows."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from dpsql.engines import duckdb as engine


def connect(threads: int = 1) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    for name, value in engine._PINNED_SETTINGS:
        connection.execute(f"SET GLOBAL {name} = {engine.quote_literal(value)}")
    connection.execute(f"SET GLOBAL threads = {threads}")
    return connection


def fill(
    connection: duckdb.DuckDBPyConnection, table: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]
) -> None:
    """Make the table anew; columns are names and types, values are literals."""
    declared = ", ".join(f'"{name}" {type_}' for name, type_ in columns)
    connection.execute(f'CREATE OR REPLACE TABLE "{table}" ({declared})')
    if rows:
        values = ", ".join(f"({', '.join(row)})" for row in rows)
        connection.execute(f'INSERT INTO "{table}" VALUES {values}')
