"""Intervals are what PostgreSQL and DuckDB keep: months, days and time each on its own."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.base.intervals import Interval, format_interval_words, interval_parts, make_interval
from dpsql.base.serialization import dumps, loads
from dpsql.engines.duckdb import DuckDBEngine
from dpsql.session.postprocess import sandbox
from dpsql.session.postprocess.sandbox import ReleasedTable
from dpsql.session.postprocess.worker_pool import WorkerPool
from dpsql.types import INTEGER, INTERVAL

PARTS = st.tuples(st.integers(-1200, 1200), st.integers(-9999, 9999), st.integers(-(10**12), 10**12))


@pytest.fixture(scope="module")
def children() -> Iterator[WorkerPool]:
    made = WorkerPool(max_workers=2, max_idle=1)
    yield made
    made.close()


@given(PARTS)
def test_parts_are_kept(parts: tuple[int, int, int]) -> None:
    made = make_interval(*parts)
    assert isinstance(made, dt.timedelta) and interval_parts(made) == parts
    for other in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), loads(dumps([made]))[0]):
        assert interval_parts(other) == parts and type(other) is type(made)


@given(PARTS)
def test_compares_as_a_timedelta_whose_months_are_30_days(parts: tuple[int, int, int]) -> None:
    months, days, microseconds = parts
    assert make_interval(*parts) == dt.timedelta(days=30 * months + days, microseconds=microseconds)


def test_what_a_timedelta_can_hold_is_one() -> None:
    assert type(make_interval(0, 1, 5)) is type(make_interval(0, -1, -5)) is dt.timedelta
    assert (
        type(make_interval(1, 0, 0))
        is type(make_interval(0, 1, -5))
        is type(make_interval(0, 0, 86_400_000_000))
        is Interval
    )
    assert make_interval(0, 2**31 - 1, 0) == "2147483647 days"


@given(PARTS)
def test_engines_read_its_words(parts: tuple[int, int, int]) -> None:
    table = ReleasedTable("r1", (("x", INTERVAL),), [[make_interval(*parts), None]])
    rows = sandbox.run_query("SELECT x, [x, NULL] AS y FROM r1", [table], 10).rows
    assert rows[1] == (None, [None, None])
    assert interval_parts(rows[0][0]) == interval_parts(rows[0][1][0]) == parts
    assert interval_parts(duckdb_interval(format_interval_words(rows[0][0]))) == parts


def duckdb_interval(words: str) -> dt.timedelta:
    return sandbox.run_query(f"SELECT INTERVAL '{words}'", (), 10).rows[0][0]  # type: ignore[no-any-return]


def test_through_a_process_of_its_own(children: WorkerPool) -> None:
    table = ReleasedTable("r1", (("x", INTERVAL),), [[Interval.of(14, 3, 0)]])
    (row,) = children.run_query("SELECT x, x + INTERVAL '1 month', 1 FROM r1", [table], 10).rows
    assert [interval_parts(value) for value in row[:2]] == [(14, 3, 0), (15, 3, 0)]


def test_rows_stay_in_their_order() -> None:
    sql = "SELECT i, i * INTERVAL '1 month' AS x FROM range(200000) AS t(i) ORDER BY (i * 7919) % 200003"
    rows = sandbox.run_query(sql, (), 60).rows
    assert [i for i, _ in rows] == sorted(range(200_000), key=lambda i: i * 7919 % 200_003)
    assert all(interval_parts(value) == (i, 0, 0) for i, value in rows[:1000])


def test_columns_of_one_name_and_a_comment_at_the_end() -> None:
    sql = "SELECT INTERVAL '1 month' AS x, 2 AS x, DATE '2024-01-01' AS \"c0\" -- the end"
    found = sandbox.run_query(sql, (), 10)
    assert [column.name for column in found.columns] == ["x", "x", "c0"]
    assert (interval_parts(found.rows[0][0]), *found.rows[0][1:]) == ((1, 0, 0), 2, dt.date(2024, 1, 1))


def test_public_tables_keep_their_months(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "x.duckdb")) as db:
        db.execute("CREATE TABLE t AS SELECT INTERVAL '1 year 2 months 3 days' AS x, 1.50 AS y")
    engine = DuckDBEngine(f"duckdb:///{tmp_path / 'x.duckdb'}")
    (row,) = engine.execute_public("SELECT x, y FROM t", {})
    assert (interval_parts(row[0]), row[1]) == ((14, 3, 0), Decimal("1.50"))
    engine.close()


@pytest.mark.parametrize("parts", [["1", 0, 0], [1, 2], [None, 0, 0]])
def test_what_is_no_interval_is_refused(parts: list[Any]) -> None:
    with pytest.raises(ValueError):
        loads({"interval": parts})


def test_other_columns_are_untouched() -> None:
    table = ReleasedTable("r1", (("n", INTEGER),), [[1, 2]])
    assert sandbox.run_query("SELECT n, TIMESTAMPTZ '2024-01-01 00:00:00+00' AS t FROM r1", [table], 10).rows[0] == (
        1,
        dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    )
