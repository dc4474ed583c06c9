"""A DuckDB in memory with the engine's own settings, and tables of literal rows."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import numpy as np
from support.worlds import Row, Rows, World

from dpsql.engines import duckdb as engine

Key = tuple[object, ...]


@dataclass(frozen=True)
class Cells:
    """What a release's SQL returns: keys in order, and one list of integers per column."""

    keys: tuple[Key, ...]
    columns: tuple[tuple[int, ...], ...]

    @property
    def spelled(self) -> tuple[str, ...]:
        """Keys as they print: 0.0 and -0.0, or 1 and True, are not the same answer."""
        return tuple(repr(key) for key in self.keys)


def connect(threads: int = 1) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    for name, value in engine._PINNED:
        connection.execute(f"SET GLOBAL {name} = {engine.literal(value)}")
    connection.execute(f"SET GLOBAL threads = {threads}")
    return connection


def load(connection: duckdb.DuckDBPyConnection, world: World, rows: Rows) -> None:
    for spec in world.tables:
        declared = ", ".join(f'"{c.name}" {c.stored}' for c in spec.all_columns)
        connection.execute(f'CREATE OR REPLACE TABLE "{spec.name}" ({declared})')
        insert(connection, spec.name, rows[spec.name])


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: tuple[Row, ...]) -> None:
    if rows:
        values = ", ".join(f"({', '.join(row)})" for row in rows)
        connection.execute(f'INSERT INTO "{table}" VALUES {values}')


def run(connection: duckdb.DuckDBPyConnection, sql: str, keys: int) -> Cells:
    """The exact cells, read just as the engine reads them."""
    revealed = engine._exact(connection.execute(sql), keys).reveal()
    assert all(column.dtype == np.int64 for column in revealed.cells)
    return Cells(revealed.keys, tuple(tuple(column.tolist()) for column in revealed.cells))
