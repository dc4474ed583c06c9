"""A dataset of tables in one DuckDB file, and sessions that ask it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from dpsql.session.dataset.dataset import Dataset, open_dataset
from dpsql.session.session import Session

HEADER = """
dpsql: 1
engine: duckdb:///store.duckdb
ledger: sqlite:///store.ledger
"""


def write_store(folder: Path, schema: str, tables: str) -> Path:
    """The path of the schema; `schema` is what it says below the engine and the ledger, `tables` the SQL that makes
    the tables."""
    with duckdb.connect(str(folder / "store.duckdb")) as connection:
        connection.execute(tables)
    path = folder / "store.yaml"
    path.write_text(HEADER + schema, encoding="utf-8")
    return path


@contextmanager
def open_store(folder: Path, schema: str, tables: str) -> Iterator[Dataset]:
    dataset = open_dataset(write_store(folder, schema, tables))
    try:
        yield dataset
    finally:
        dataset.close()


def session_of(dataset: Dataset, user: str = "ana", noise: str | None = None) -> Session:
    session = Session(dataset, user=user)
    if noise is not None:
        session.execute(f"SET noise = {noise}")
    return session


def explain_text(session: Session, sql: str) -> str:
    return "\n".join(row[0] for row in session.execute(f"EXPLAIN {sql}").rows)
