"""Post-processing: released values in, rows out, nothing kept, nothing reached."""

import datetime as dt
import threading
import time
from decimal import Decimal
from uuid import UUID

import pytest

from dpsql import types as t
from dpsql.errors import (
    DataError,
    InternalError,
    InvalidSyntax,
    LimitExceeded,
    OperationalError,
    UnknownColumn,
    UnknownTable,
)
from dpsql.session.postprocess import sandbox
from dpsql.session.postprocess.sandbox import OutputColumn, ReleasedTable, describe_query, run_query

BY_WARD = ReleasedTable("r1", (("ward", t.TEXT), ("n", t.BIGINT)), [["a", "b", None], [3, -1, 7]])


def one(type_, values):
    return ReleasedTable("r1", (("x", type_),), [values])


def test_a_statement_reads_releases():
    sql = "SELECT ward, n * 2 AS twice FROM r1 WHERE n > 0 ORDER BY n DESC"
    found = run_query(sql, [BY_WARD], 5)
    assert found.rows == [(None, 14), ("a", 6)]
    assert found.columns == (OutputColumn("ward", t.TEXT, "VARCHAR"), OutputColumn("twice", t.BIGINT, "BIGINT"))
    assert describe_query(sql, [BY_WARD]) == found.columns


def test_one_thread_runs_a_statement():
    """Several deliver rows without ORDER BY as the scheduler has it: plain DuckDB does, now and then."""
    assert run_query("SELECT current_setting('threads') AS n", [], 5).rows == [(1,)]


def test_two_releases_join():
    other = ReleasedTable("r 2", (("ward", t.TEXT), ("s", t.DOUBLE)), [["a", "c"], [1.5, 2.5]])
    sql = 'SELECT ward, s / n AS mean FROM r1 JOIN "r 2" USING (ward)'
    assert run_query(sql, [BY_WARD, other], 5).rows == [("a", 0.5)]


@pytest.mark.parametrize(
    "sql",
    [
        "WITH x AS (SELECT n FROM r1) SELECT n FROM x ORDER BY n DESC LIMIT 2",
        "  with\n x AS (SELECT n FROM r1), y AS (SELECT n FROM x) SELECT n FROM y ORDER BY n DESC LIMIT 2",
        "WITH RECURSIVE x(n) AS (SELECT max(n) FROM r1 UNION ALL SELECT n - 4 FROM x WHERE n > 3) SELECT n FROM x",
        "SELECT n FROM r1 UNION ALL SELECT 0 ORDER BY n DESC LIMIT 2",
        "(SELECT n FROM r1) UNION ALL (WITH x AS (SELECT 0 AS z) SELECT z FROM x) ORDER BY n DESC LIMIT 2",
    ],
)
def test_the_statement_keeps_its_own_with_and_order(sql):
    assert run_query(sql, [BY_WARD], 5).rows == [(7,), (3,)]
    assert describe_query(sql, [BY_WARD]) == (OutputColumn("n", t.BIGINT, "BIGINT"),)


def test_a_parenthesised_with_is_not_lost_silently():
    with pytest.raises(InternalError):
        run_query("(WITH x AS (SELECT n FROM r1) SELECT n FROM x)", [BY_WARD], 5)


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (t.BOOLEAN, [True, False, None]),
        (t.BIGINT, [2**63 - 1, -(2**63), 9007199254740993]),
        (t.HUGEINT, [2**100, 1, None]),
        (t.decimal_type(38, 3), [Decimal("1.500"), Decimal("12345678901234567890123456789012345.678"), None]),
        (t.decimal_type(9, 2), [Decimal("1"), Decimal("100.25"), Decimal("0.1")]),
        (t.DOUBLE, [0.1, 1e308, 5e-324, -0.0, float("inf")]),
        (t.TEXT, ["", "it's", 'quo"te', "é\n\\", None]),
        (t.DATE, [dt.date.min, dt.date.max, None]),
        (t.TIMESTAMP, [dt.datetime.min, dt.datetime(2020, 1, 1, 0, 0, 0, 1), None]),
        (t.TIMESTAMPTZ, [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None]),
        (t.TIME, [dt.time(1, 2, 3), None]),
        (t.UUID, [UUID(int=5), None]),
        (t.INTERVAL, [dt.timedelta(days=40, microseconds=3), None]),
        (t.BIGINT, [None, None]),
        (t.DATE, []),
    ],
)
def test_values_pass_unchanged(type_, values):
    found = run_query("SELECT x FROM r1", [one(type_, values)], 5)
    assert [row[0] for row in found.rows] == values
    assert found.columns[0].type == type_ == describe_query("SELECT x FROM r1", [one(type_, [])])[0].type
    assert all(value.tzinfo is dt.UTC for (value,) in found.rows if isinstance(value, dt.datetime) and value.tzinfo)


def test_a_release_without_columns_is_one_row():
    assert run_query("SELECT 'yes' AS a FROM r1", [ReleasedTable("r1", (), [])], 5).rows == [("yes",)]


def test_types_without_a_word_of_ours():
    assert describe_query("SELECT [n] AS l, sum(n) AS s, NULL AS u FROM r1 GROUP BY n", [BY_WARD]) == (
        OutputColumn("l", None, "BIGINT[]"),
        OutputColumn("s", t.HUGEINT, "HUGEINT"),
        OutputColumn("u", None, '"NULL"'),
    )


def test_ragged_columns_are_refused():
    with pytest.raises(ValueError, match="one value"):
        ReleasedTable("r1", (("a", t.TEXT), ("b", t.TEXT)), [["x"], []])


def test_errors_are_shown_in_full():
    with pytest.raises(DataError, match='invalid input syntax for type bigint: "b"'):
        run_query("SELECT CAST(ward AS BIGINT) FROM r1 WHERE n < 0", [BY_WARD], 5)
    with pytest.raises(UnknownColumn, match='"nope" does not exist') as caught:
        describe_query("SELECT nope FROM r1", [BY_WARD])
    assert "unnest" not in str(caught.value)


def test_division_by_a_noisy_zero_is_null():
    assert run_query("SELECT 1 // 0, 1 % 0", [], 5).rows == [(None, None)]


def test_time_is_limited():
    start = time.monotonic()
    with pytest.raises(OperationalError, match=r"longer than 0\.2 s") as caught:
        run_query("SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = 7", [], 0.2)
    assert caught.value.sqlstate == "57014" and time.monotonic() - start < 3
    assert run_query("SELECT 1", [], 5).rows == [(1,)]


def test_time_is_limited_while_a_query_reads_itself():
    with pytest.raises(OperationalError, match=r"longer than 0\.2 s"):
        run_query("WITH RECURSIVE d AS (SELECT 1 AS x UNION ALL SELECT x FROM d) SELECT COUNT(*) FROM d", [], 0.2)


def test_rows_are_limited(monkeypatch):
    monkeypatch.setattr(sandbox, "MAX_ROWS", 10)
    assert len(run_query("SELECT * FROM range(10)", [], 5).rows) == 10
    with pytest.raises(LimitExceeded):
        run_query("SELECT * FROM range(11)", [], 5)


def test_memory_is_limited():
    with pytest.raises(OperationalError, match="memory"):
        run_query("SELECT length(string_agg(repeat('x', 1000000), '')) FROM range(3000)", [], 20)


@pytest.mark.parametrize(
    "sql",
    ["SELECT 1; SELECT 2", "CREATE TABLE t (x INTEGER)", "SET threads = 1", "COPY (SELECT 1) TO 'x'", "ATTACH 'x'", ""],
)
def test_only_one_select_runs(sql):
    with pytest.raises(InternalError, match="one SELECT"):
        run_query(sql, [], 5)
    with pytest.raises((InternalError, InvalidSyntax)):  # with our WITH in front most of them are no SQL at all
        run_query(sql, [BY_WARD], 5)
    with pytest.raises((InternalError, InvalidSyntax)):
        describe_query(sql, [BY_WARD])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM variable",
    ],
)
def test_nothing_else_can_be_reached(tmp_path, sql):
    variable = [1]  # DuckDB would look for an unknown table among the caller's variables
    file = tmp_path / "secret.csv"
    file.write_text("a\n1\n")
    with pytest.raises((DataError, UnknownTable)):
        run_query(sql.format(file=file, folder=tmp_path), [], 5)
    assert variable


@pytest.mark.parametrize("sql", ["SET threads = 1", "SET SESSION TimeZone = 'UTC'", "LOAD httpfs", "INSTALL httpfs"])
def test_the_instance_is_locked(sql):
    with pytest.raises(sandbox.duckdb.Error):
        sandbox._DATABASE.get_instance("UTC").cursor().execute(sql)


def test_threads_share_the_instance_and_nothing_else():
    found: dict[int, object] = {}

    def ask(number):
        found[number] = run_query("SELECT sum(x)::BIGINT FROM r1", [one(t.BIGINT, [number] * 100)], 5).rows

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [(number * 100,)] for number in range(8)}
    assert len([key for key in sandbox._DATABASE.instances if key[1] == "UTC"]) == 1


@pytest.mark.parametrize("zone", ["Europe/Berlin", "GMT+05:30", "UTC"])
def test_local_times_are_those_of_the_zone_and_moments_come_in_utc(zone: str) -> None:
    sql = ("SELECT TIMESTAMPTZ '9999-12-31 23:30:00+00' AS late, [TIMESTAMPTZ '2024-07-01 12:00:00+00'] AS several, "
           "date_part('hour', TIMESTAMPTZ '2024-07-01 12:00:00+00') AS hour")  # fmt: skip
    found = run_query(sql, [], 5, zone)
    noon = dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC)
    hour = {"Europe/Berlin": 14, "GMT+05:30": 17, "UTC": 12}[zone]
    assert found.rows == [(dt.datetime(9999, 12, 31, 23, 30, tzinfo=dt.UTC), [noon], hour)]
    assert [column.spelling for column in found.columns[:2]] == [
        "TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE[]"
    ]  # fmt: skip
