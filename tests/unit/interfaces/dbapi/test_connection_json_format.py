"""EXPLAIN (FORMAT JSON) and SHOW … (FORMAT JSON): for programs, exactly what Python is told."""

from __future__ import annotations

import json

import pytest

import dpsql
from dpsql.base.serialization import from_json
from dpsql.session.session import Balance, Explanation, NamedFunction, NamedSetting, NamedTable


@pytest.fixture
def connection(folder):
    with dpsql.connect(folder / "clinic.yaml", user="ana") as connection:
        yield connection


def told(connection, sql, parameters=()):
    answer = connection.sql(sql, parameters)
    assert not answer.loss and not answer.receipts
    return json.loads(answer.scalar())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visits",
        "SELECT ward, COUNT(*), AVG(cost) FROM visits GROUP BY ward",
        "SELECT MEDIAN(cost) FROM visits",
        "SELECT 1",
    ],
)
@pytest.mark.parametrize("head", ["EXPLAIN (FORMAT JSON)", "explain (costs off, format json) (verbose)"])
def test_explain(connection, head, sql):
    explained = connection.explain(sql)
    assert from_json(Explanation, told(connection, f"{head} {sql}")) == explained
    connection.sql(sql)  # what is paid for is told too
    assert from_json(Explanation, told(connection, f"{head} {sql}")) == connection.explain(sql)
    assert (connection.explain(sql) != explained) is bool(explained.releases)


def test_explain_with_parameters(connection):
    sql = "SELECT COUNT(*) FROM visits WHERE cost > ?"
    found = from_json(Explanation, told(connection, f"EXPLAIN (FORMAT JSON) {sql}", [5]))
    assert found == connection.explain(sql, [5])


def test_shows(connection):
    connection.sql("SELECT COUNT(*) FROM visits")
    assert from_json(Balance, told(connection, "SHOW BUDGET (FORMAT JSON)")) == connection.budget()
    assert from_json(tuple[NamedTable, ...], told(connection, "SHOW TABLES (FORMAT JSON)")) == connection.tables()
    assert from_json(tuple[NamedFunction, ...], told(connection, "show functions (format json)")) == (
        connection.functions()
    )
    assert from_json(tuple[NamedSetting, ...], told(connection, "SHOW SETTINGS (FORMAT JSON);")) == (
        connection.settings()
    )


@pytest.mark.parametrize("sql", ["SHOW epsilon (FORMAT JSON)", "SHOW BUDGET (FORMAT XML)", "SHOW ALL (FORMAT JSON)"])
def test_others_have_no_json(connection, sql):
    with pytest.raises(dpsql.Error):
        connection.sql(sql)
