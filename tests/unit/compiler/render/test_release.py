"""The SQL of a release, run on DuckDB: what it sums fits 64 bits also where values lie far from zero."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpsql

FAR = 2**44
WIDE = 2**20
"""The narrow column is scaled to the width of the other: FAR times that, and doubled, does not fit 64 bits."""


@pytest.mark.parametrize("start", [0, FAR, -FAR])
def test_a_product_of_a_narrow_column_far_from_zero_and_a_wide_one(tmp_path: Path, start: int) -> None:
    """Half of the rows are at both lower ends, half at both upper ends."""
    with duckdb.connect(str(tmp_path / "far.duckdb")) as db:
        values = f"{start} + i % 2 AS x, {WIDE} * (i % 2) AS y"
        db.execute(f"CREATE TABLE t AS SELECT i AS id, {values} FROM range(20000) r(i)")
    columns = {
        "id": {"type": "bigint"},
        "x": {"type": "bigint", "bounds": [start, start + 1]},
        "y": {"type": "bigint", "bounds": [0, WIDE]},
    }
    schema = {
        "dpsql": 1,
        "engine": "duckdb:///far.duckdb",
        "ledger": "sqlite:///far.ledger",
        "privacy": {"unit": "t.id", "budget": {"epsilon": 1000, "delta": 1e-6}, "contributions": {"rows": 1}},
        "tables": {"t": {"unit": "id", "unique": ["id"], "columns": columns}},
    }
    with dpsql.connect(schema, folder=str(tmp_path), epsilon=100) as connection:
        ((found,),) = connection.sql("SELECT COVAR_POP(x, y) FROM t").rows
    assert found == pytest.approx(WIDE / 4, rel=0.02)
