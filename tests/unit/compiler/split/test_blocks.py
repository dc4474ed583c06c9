"""Blocks: common tables that nothing reads are left out; numbers of keys that must be selected are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlglot import exp, parse_one

from dpsql.compiler.split.blocks import drop_unread_ctes
from dpsql.errors import UnknownFunction, Unsupported
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


LATE, EARLY = "SELECT DISTINCT note FROM orders WHERE qty > 3", "SELECT DISTINCT note FROM orders WHERE qty < 9"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*) FROM ({LATE} EXCEPT {EARLY}) t",
        f"SELECT COUNT(*) FROM (SELECT * FROM ({LATE} EXCEPT {EARLY}) y) t",
        f"WITH a AS ({LATE}), b AS ({EARLY}) SELECT COUNT(*) FROM (SELECT * FROM a INTERSECT SELECT * FROM b) t",
        f"WITH a AS ({LATE}), b AS (SELECT note FROM a), c AS (SELECT note FROM b EXCEPT {EARLY}) "
        "SELECT COUNT(*) + 1 FROM c x JOIN c y USING (note)",
        f"SELECT MAX(note) FROM ({LATE} UNION ALL SELECT note FROM ({EARLY} INTERSECT {LATE}) i) t",
    ],
)
def test_numbers_of_keys_that_must_be_selected_are_refused(sql: str, tmp_path: Path) -> None:
    session = open_shop(tmp_path)[0]
    with pytest.raises(Unsupported, match="of keys that must be selected cannot be counted"):
        session.compile_statement(sql)
    listed = sql.replace("note", "kind")
    assert session.compile_statement(listed)
    session.close()


def test_ctes_that_read_each_other_twice_are_searched_once(tmp_path: Path) -> None:
    session = open_shop(tmp_path)[0]
    ctes = [f"c0 AS ({LATE.replace('note', 'kind')})"]
    ctes += [f"c{n} AS (SELECT x.kind FROM c{n - 1} x JOIN c{n - 1} y USING (kind))" for n in range(1, 40)]
    assert session.compile_statement(f"WITH {', '.join(ctes)} SELECT COUNT(*) FROM c39")
    session.close()
