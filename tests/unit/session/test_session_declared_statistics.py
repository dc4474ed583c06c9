"""Statistics that the owner declares, from the schema to an answer through Python's interface."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.errors import Error, SchemaError

SCHEMA = """
dpsql: 1
engine: duckdb:///made.duckdb
privacy:
  unit: visits.pid
  budget: {{epsilon: 1000000, delta: 0}}
  query: {{epsilon: 1000, delta: 0}}
statistics:
  spread: {{of: [x], sql: "{sql}"}}
tables:
  visits:
    unit: pid
    columns: {{pid: {{type: bigint}}, cost: {{type: double, bounds: [0, 100]}}}}
"""
SPREAD = "quantile_disc(x, 0.9) - quantile_disc(x, 0.1)"


def connect(folder: Path, sql: str = SPREAD) -> dpsql.Connection:
    (folder / "made.yaml").write_text(SCHEMA.format(sql=sql))
    with duckdb.connect(str(folder / "made.duckdb")) as db:
        made = "SELECT i AS pid, (i * 37 % 100)::DOUBLE AS cost FROM range(4000) r(i)"
        db.execute(f"CREATE OR REPLACE TABLE visits AS {made}")
    return dpsql.connect(folder / "made.yaml")


def test_a_declared_statistic_is_what_it_stands_for(tmp_path: Path) -> None:
    with connect(tmp_path) as connection:
        cursor = connection.cursor()
        asked = ["spread(cost)", "SPREAD(cost + 0)", "quantile_disc(cost, 0.9) - quantile_disc(cost, 0.1)"]
        found = [cursor.execute(f"SELECT BLOCKWISE({one}, 0, 100, blocks => 20) FROM visits").fetchone()[0]
                 for one in asked]  # fmt: skip
        assert found[0] == found[2]  # one question, one release
        assert all(75 < value < 85 for value in found)
        row = cursor.execute(
            "SELECT BLOCKWISE(spread(cost) / median(cost), 0, 10, combine => 'median') AS m, "
            "BLOCKWISE(mad(cost), 0, 100) AS d, DP_STDERR(BLOCKWISE(mad(cost), 0, 100)) AS e FROM visits"
        ).fetchone()
        assert row is not None and 1 < row[0] < 2.5 and 20 < row[1] < 30 and 0 < row[2] < 0.1


def test_arguments_are_counted_and_the_position_is_that_of_the_statement(tmp_path: Path) -> None:
    with connect(tmp_path) as connection:
        for sql, message in (
            ("SELECT BLOCKWISE(spread(cost, 1), 0, 1) FROM visits", "spread(x) takes 1 arguments"),
            ("SELECT BLOCKWISE(spread(pid), 0, 1) FROM visits", "has no bounds"),
            ("SELECT BLOCKWISE(spread(nothing), 0, 1) FROM visits", 'column "nothing" does not exist'),
        ):
            with pytest.raises(Error) as refused:
                connection.cursor().execute(sql)
            assert message in str(refused.value)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("x + 1", "must appear in an aggregate"),
        ("max(x) - min(y)", 'column "y" does not exist'),
        ("corr(x, x)", "of a block's rows is not supported"),
        ("max(x) AS m", "without a name"),
        ("max(x), min(x)", "one expression"),
        ("max(x) FROM visits", "no FROM"),
        ("first(x)", "of a block's rows is not supported"),
        ("getenv(max(x))", "GETENV()"),
        ("max(x", "made.yaml:"),
        ("(SELECT max(x))", "made.yaml:"),
        ("max(x); DROP TABLE visits", "made.yaml:"),
    ],
)
def test_a_wrong_statistic_is_found_when_the_schema_is_opened(sql: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaError) as refused:
        connect(tmp_path, sql)
    assert "made.yaml:9: statistics.spread.sql" in str(refused.value) and message in str(refused.value)


def test_a_near_name_is_proposed(tmp_path: Path) -> None:
    with connect(tmp_path) as connection:
        for written, hint in (
            ("sprad(cost)", "Perhaps you meant spread."),
            ("kurtsis(cost)", "Perhaps you meant KURTOSIS."),
            ("nothing_like(cost) * 2", "The owner's statistics: spread."),
        ):
            with pytest.raises(Error) as refused:
                connection.cursor().execute(f"SELECT BLOCKWISE({written}, 0, 1) FROM visits")
            assert refused.value.sqlstate == "42883" and str(refused.value.hint).endswith(hint)
