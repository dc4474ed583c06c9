"""Intervals over private rows compare as DuckDB's do, and their aggregates come out as intervals."""

from __future__ import annotations

import datetime as dt

import duckdb
import pytest
import sqlglot

from dpsql.compiler.bind.datetime import seconds_to_interval
from dpsql.errors import Error
from tests.support.expressions import bound, computed, load

COMPARED = (
    "age(p, q) > INTERVAL '1 year'", "age(q, p) <= INTERVAL '1 month 3 days'", "age(p, q) = INTERVAL '0 days'",
    "p - q > INTERVAL '30 days'", "q - p < INTERVAL '1 month'", "q - q = INTERVAL '0 days'",
    "p - q BETWEEN INTERVAL '-9 years' AND INTERVAL '10 years 2 hours'", "extract(hour FROM q - p)",
    "extract(minute FROM p - q)", "extract(day FROM p - q)",
)  # fmt: skip


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    load(connection)
    return connection


@pytest.mark.parametrize("sql", COMPARED)
def test_the_engine_compares_intervals_in_the_same_way(sql: str, database: duckdb.DuckDBPyConnection) -> None:
    ours = [value for (value,) in computed([bound(sql)], database)]
    theirs = [value for (value,) in database.execute(f"SELECT {sql} FROM worst ORDER BY rowid").fetchall()]
    assert ours == theirs


@pytest.mark.parametrize("seconds", [0, 1.5, -1.5, 86_400, -90_061.25, 6.3e9, 123_456.789012])
def test_released_seconds_become_an_interval(seconds: float) -> None:
    sql = seconds_to_interval(sqlglot.exp.column("x")).sql(dialect="duckdb")
    ((found,),) = duckdb.execute(f"SELECT {sql} FROM (SELECT $1::DOUBLE AS x)", [seconds]).fetchall()
    assert abs(found - dt.timedelta(seconds=seconds)) <= dt.timedelta(microseconds=2)


@pytest.mark.parametrize(("sql", "hint"), [
    ("e - f > INTERVAL '1 day'", "Compare it with a number: day - birth_date > 30."),
    ("extract(year FROM p - q)", "EXTRACT(epoch FROM to - from) gives all seconds"),
])  # fmt: skip
def test_what_has_no_such_meaning_says_what_to_write(sql: str, hint: str) -> None:
    with pytest.raises(Error) as caught:
        bound(sql)
    assert caught.value.hint is not None and caught.value.hint.startswith(hint)
