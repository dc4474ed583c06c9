"""Public rows that one private row meets are counted in the registered version of the data, and in no other."""

from pathlib import Path

import duckdb
import pytest

from dpsql.errors import StaleData
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session

SCHEMA = """
dpsql: 1
engine: duckdb://
ledger: sqlite:///shop.ledger
privacy:
  unit: people.uid
  budget: {epsilon: 100, delta: 1e-3}
  query: {epsilon: 1, delta: 1e-6}
tables:
  people:
    source: people.parquet
    unit: uid
    unique: [uid]
    columns: {uid: {type: bigint}, place: {type: bigint}}
  stock:
    source: stock.parquet
    public: true
    columns: {place: {type: bigint}, price: {type: double, bounds: [0, 10]}}
"""
SQL = "SELECT COUNT(*) FROM people JOIN stock ON stock.place = people.place"


def write_stock(folder: Path, rows: int) -> None:
    """So many rows in each place."""
    stock = f"SELECT n // {rows} AS place, 1.5 AS price FROM range(3000) t(n)"
    duckdb.sql(f"COPY ({stock}) TO '{folder / 'stock.parquet'}'")


def test_a_count_of_other_rows_is_not_remembered(tmp_path: Path) -> None:
    """Restored, the registered file would be asked with the noise for the fewer rows of another one."""
    (tmp_path / "shop.yaml").write_text(SCHEMA)
    people = "SELECT n AS uid, n % 9 AS place FROM range(100) t(n)"
    duckdb.sql(f"COPY ({people}) TO '{tmp_path / 'people.parquet'}'")
    write_stock(tmp_path, 30)
    dataset = open_dataset(tmp_path / "shop.yaml")
    session = Session(dataset)
    kept = (tmp_path / "stock.parquet").rename(tmp_path / "kept.parquet")
    write_stock(tmp_path, 2)
    with pytest.raises(StaleData):
        session.explain(SQL)
    assert len(session.cache.match_counts) == 0
    kept.rename(tmp_path / "stock.parquet")
    session.explain(SQL)
    (step,) = session.compile_statement(SQL).steps
    assert len(session.cache.match_counts) == 1 and step.calibrated.bundles[0].claim.sensitivity.l1 >= 30
    dataset.close()


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE SYNTHETIC TABLE copy AS SELECT p.place, s.price FROM people p JOIN stock s ON s.place = p.place",
        "CREATE MODEL m AS LINEAR REGRESSION ON price USING spot FROM (SELECT s.price, p.place AS spot FROM people p"
        " JOIN stock s ON s.place = p.place) t",
    ],
)
def test_rows_of_a_study_are_counted_as_those_of_a_question(tmp_path: Path, sql: str) -> None:
    schema = SCHEMA.replace(
        "uid: {type: bigint}, place: {type: bigint}", "uid: {type: bigint}, place: {type: bigint, bounds: [0, 9]}"
    )
    (tmp_path / "shop.yaml").write_text(schema)
    people = "SELECT n AS uid, n % 9 AS place FROM range(100) t(n)"
    duckdb.sql(f"COPY ({people}) TO '{tmp_path / 'people.parquet'}'")
    write_stock(tmp_path, 30)
    session = Session(open_dataset(tmp_path / "shop.yaml"))
    assert session.explain(sql).epsilon
    session.execute(sql)
    session.dataset.close()
