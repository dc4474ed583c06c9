"""Common tables that nothing reads are taken out of post-processing, and only these."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlglot import exp, parse_one

from dpsql.compiler.split.blocks import drop_unread_ctes
from dpsql.errors import UnknownFunction
from tests.support.shop import open_shop


@pytest.mark.parametrize(
    ("post", "kept"),
    [
        ("WITH a AS (SELECT 1 AS x) SELECT 2", "SELECT 2"),
        ("WITH a AS (SELECT 1 AS x), b AS (SELECT x FROM a) SELECT 2", "SELECT 2"),
        ("WITH a AS (SELECT 1 AS x), b AS (SELECT x FROM a) SELECT * FROM b", None),
        ("WITH a AS (SELECT 1 AS x), b AS (SELECT 2 AS x) SELECT x FROM A",
         "WITH a AS (SELECT 1 AS x) SELECT x FROM A"),
        ("WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r WHERE x < 3) SELECT 2", "SELECT 2"),
        ("WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r WHERE x < 3) SELECT * FROM r", None),
        ("WITH a AS (SELECT 1 AS x) SELECT * FROM (WITH b AS (SELECT x FROM a), c AS (SELECT 1) SELECT * FROM b) AS t",
         "WITH a AS (SELECT 1 AS x) SELECT * FROM (WITH b AS (SELECT x FROM a) SELECT * FROM b) AS t"),
        ("WITH a AS (SELECT 1 AS x), b AS (WITH a AS (SELECT x FROM c) SELECT * FROM a) SELECT * FROM b", None),
        ("WITH a AS (SELECT 1 AS x) SELECT (SELECT MAX(x) FROM a) UNION ALL SELECT 2", None),
    ],
)  # fmt: skip
def test_what_nothing_reads_is_left_out(post: str, kept: str | None) -> None:
    tree = parse_one(post, dialect="duckdb")
    assert isinstance(tree, exp.Query)
    drop_unread_ctes(tree)
    assert tree == parse_one(post if kept is None else kept, dialect="duckdb")


@pytest.mark.parametrize(
    "sql",
    [
        "WITH spare AS (SELECT SUM(amount) AS total FROM orders) SELECT COUNT(*) FROM orders",
        "WITH spare AS (SELECT SUM(amount) AS total FROM orders), other AS (SELECT total + 1 FROM spare) "
        "SELECT COUNT(*) FROM orders",
    ],
)
def test_a_common_table_that_nothing_reads_is_not_paid_for(sql: str, tmp_path: Path) -> None:
    session = open_shop(tmp_path)[0]
    plain = session.compile_statement("SELECT COUNT(*) FROM orders")
    assert [step.plan_hash for step in session.compile_statement(sql).steps] == [s.plan_hash for s in plain.steps]
    session.execute(sql)
    assert not session.execute("SELECT COUNT(*) FROM orders").loss.rho
    session.close()


def test_what_is_wrong_in_a_common_table_that_nothing_reads_is_refused(tmp_path: Path) -> None:
    session = open_shop(tmp_path)[0]
    with pytest.raises(UnknownFunction, match="NO_SUCH_FUNCTION"):
        session.compile_statement("WITH spare AS (SELECT SUM(no_such_function(amount)) FROM orders) SELECT 1")
    session.close()
