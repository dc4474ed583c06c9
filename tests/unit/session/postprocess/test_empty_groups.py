"""Listed groups in whose counts nothing but noise is seen are left out; which ones is told by released cells alone."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import dpsql
from dpsql.privacy.loss import epsilon_to_rho
from dpsql.privacy.sampling import Integers
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.postprocess import empty_groups
from dpsql.session.session import Session, StatementResult
from tests.support.shop import Silence

SHOPS = ("a", "b", "c")
SCHEMA: Mapping[str, Any] = {
    "dpsql": 1,
    "engine": "duckdb:///sales.duckdb",
    "ledger": "sqlite:///sales.ledger",
    "privacy": {
        "unit": "row",
        "budget": {"epsilon": 100000, "delta": 0.1},
        "query": {"epsilon": 1, "delta": 1e-6},
    },
    "tables": {
        "sales": {
            "unit": "row",
            "columns": {
                "shop": {"type": "text", "values": list(SHOPS)},
                "kind": {"type": "text", "values": ["x", "y"]},
                "day": {"type": "date", "bounds": ["2024-01-01", "2024-12-31"]},
                "price": {"type": "integer", "bounds": [0, 10], "nullable": True},
                "gain": {"type": "integer", "bounds": [-10, 10], "nullable": True},
            },
        },
        "shops": {"public": True, "columns": {"name": {"type": "text"}, "town": {"type": "text"}}},
        "places": {"public": True, "columns": {"name": {"type": "text"}}},
    },
}

ROWS = """
CREATE OR REPLACE TABLE sales AS
  SELECT 'a' AS shop, 'x' AS kind, DATE '2024-03-01' AS day, 2 AS price, 1 AS gain FROM range({a})
  UNION ALL SELECT 'b', 'y', DATE '2024-05-01', 3, -1 FROM range({b});
CREATE OR REPLACE TABLE shops AS SELECT * FROM (VALUES ('a', 'Oslo'), ('b', 'Rome'), ('c', 'Rome')) t(name, town);
CREATE OR REPLACE TABLE places AS SELECT * FROM (VALUES ('a'), ('z')) t(name);
"""


def open_sales(folder: Path, sampler: Any, a: int = 4000, b: int = 4000) -> Session:
    folder.mkdir(exist_ok=True)
    with duckdb.connect(str(folder / "sales.duckdb")) as connection:
        connection.execute(ROWS.format(a=a, b=b))
    (folder / "sales.yaml").write_text(json.dumps(SCHEMA), encoding="utf-8")  # JSON is YAML
    return Session(open_dataset(folder / "sales.yaml"), sampler=sampler)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    opened = open_sales(tmp_path, Silence())
    yield opened
    opened.dataset.close()


def groups_of(answer: StatementResult) -> list[Any]:
    return [row[0] for row in answer.rows]


HIDDEN = "of 3 groups is left out"

STATEMENTS = [
    "SELECT shop, COUNT(*) FROM sales GROUP BY shop ORDER BY shop",
    "SELECT shop, SUM(price) FROM sales GROUP BY shop ORDER BY shop",
    "SELECT shop, SUM(gain) FROM sales GROUP BY shop ORDER BY shop",
    "SELECT shop, AVG(price) FROM sales GROUP BY shop ORDER BY shop",
    "SELECT shop, COUNT(price) FROM sales GROUP BY shop ORDER BY shop",
    "SELECT shop, STDDEV(price), SUM(gain) FROM sales GROUP BY shop ORDER BY shop",
    "SELECT shop, COUNT(DISTINCT kind) FROM sales GROUP BY shop ORDER BY shop",
    "SELECT shop, MEDIAN(price) FROM sales GROUP BY shop ORDER BY shop",
    "SELECT shop, MAX(price) FROM sales GROUP BY shop ORDER BY shop",
    "SELECT shop, MODE(kind) FROM sales GROUP BY shop ORDER BY shop",
    "SELECT shop, 1 FROM sales GROUP BY shop HAVING COUNT(*) < 9999999 ORDER BY shop",
]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_group_without_rows_is_left_out_whatever_is_asked_of_it(session: Session, sql: str) -> None:
    answer = session.execute(sql)
    assert groups_of(answer) == ["a", "b"] and len(answer.errors) == 2
    assert any(HIDDEN in notice for notice in answer.notices)
    again = session.execute(sql)
    assert again.rows == answer.rows and again.errors == answer.errors and not again.loss.rho
    assert set(again.notices) <= set(answer.notices) and any(HIDDEN in notice for notice in again.notices)
    session.execute("SET empty_groups = show")
    shown = session.execute(sql)
    assert groups_of(shown) == list(SHOPS) and not any("left out" in notice for notice in shown.notices)


def test_what_stands_above_reads_the_groups_that_are_left(session: Session) -> None:
    above = "WITH s AS (SELECT shop AS k, SUM(price) AS q FROM sales GROUP BY 1) SELECT COUNT(*), AVG(q) FROM s"
    assert session.execute(above).rows == [(2, 10000.0)]
    lowest = "SELECT shop, SUM(price) AS q FROM sales GROUP BY 1 ORDER BY q LIMIT 1"
    assert session.execute(lowest).rows == [("a", 8000)]
    joined = (
        "SELECT n.shop, n.n, s.s FROM (SELECT shop, COUNT(*) AS n FROM sales GROUP BY 1) n "
        "JOIN (SELECT shop, SUM(price) AS s FROM sales GROUP BY 1) s USING (shop) ORDER BY 1"
    )
    assert session.execute(joined).rows == [("a", 4000, 8000), ("b", 4000, 12000)]


def test_a_filter_by_what_is_left_is_another_release_than_one_by_all(session: Session) -> None:
    sql = "SELECT COUNT(*) FROM sales WHERE shop IN (SELECT shop FROM sales GROUP BY shop HAVING COUNT(*) < 99999)"
    first = session.execute(sql)
    session.execute("SET empty_groups = show")
    assert first.loss.rho and session.execute(sql).loss.rho


def test_what_lists_no_groups_is_as_it_was(session: Session) -> None:
    free = session.execute("SELECT DISTINCT shop FROM sales ORDER BY 1")
    assert groups_of(free) == list(SHOPS) and not free.loss.rho
    for sql in (
        "SELECT COUNT(*), SUM(gain) FROM sales WHERE shop = 'c'",
        "SELECT MEDIAN(price) FROM sales",
        "SELECT PRIVATE_ARGMAX(shop, COUNT(*)) FROM sales",
    ):
        answer = session.execute(sql)
        assert len(answer.rows) == 1 and not any("left out" in notice for notice in answer.notices)


@pytest.mark.parametrize("join", ["LEFT JOIN sales v ON v.shop = p.name", "LEFT JOIN sales v ON p.name = v.shop"])
def test_public_rows_that_no_declared_value_equals_keep_their_groups(session: Session, join: str) -> None:
    """The declared values of sales.shop do not hold z."""
    for count in ("COUNT(v.shop)", "COUNT(v.price)"):
        rows = session.execute(f"SELECT p.name, {count} FROM places p {join} GROUP BY 1 ORDER BY 1").rows
        assert rows == [("a", 4000), ("z", 0)]
    inner = session.execute(f"SELECT p.name, COUNT(*) FROM places p {join[5:]} GROUP BY 1 ORDER BY 1")
    assert inner.rows == [("a", 4000)]


def test_public_rows_that_a_join_keeps_keep_their_groups(session: Session) -> None:
    inner = "SELECT s.name, COUNT(v.price) FROM shops s JOIN sales v ON v.shop = s.name GROUP BY 1 ORDER BY 1"
    assert session.execute(inner).rows == [("a", 4000), ("b", 4000)]
    kept = inner.replace("JOIN", "LEFT JOIN")
    assert session.execute(kept).rows == [("a", 4000), ("b", 4000), ("c", 0)]
    met = kept.replace("GROUP BY", "WHERE v.price > 0 GROUP BY")
    assert session.execute(met).rows == [("a", 4000), ("b", 4000)]
    above = (
        "SELECT s.name, q.n FROM shops s LEFT JOIN (SELECT shop, COUNT(*) AS n FROM sales GROUP BY 1) q "
        "ON q.shop = s.name ORDER BY 1"
    )
    assert session.execute(above).rows == [("a", 4000), ("b", 4000), ("c", None)]
    looked_up = "SELECT s.name, (SELECT SUM(v.price) FROM sales v WHERE v.shop = s.name) FROM shops s ORDER BY 1"
    assert session.execute(looked_up).rows == [("a", 8000), ("b", 12000), ("c", 0)]


MONTHS = "SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n, SUM(gain) AS gain FROM sales GROUP BY 1"


@pytest.mark.parametrize(
    "sql",
    [
        MONTHS,
        f"SELECT * FROM ({MONTHS}) t ORDER BY m LIMIT 1000",
        f"WITH t AS ({MONTHS}) SELECT m, n * 2 FROM t WHERE m > DATE '2000-01-01' ORDER BY 2",
        f"{MONTHS} LIMIT 12",
    ],
)
def test_a_chart_keeps_the_points_of_its_axis(session: Session, sql: str) -> None:
    answer = session.execute(sql)
    assert len(answer.rows) == 12 and not any("left out" in notice for notice in answer.notices)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (f"SELECT COUNT(*), MIN(n), MEDIAN(n) FROM ({MONTHS}) t", [(2, 4000, 4000.0)]),
        (f"WITH t AS ({MONTHS}) SELECT AVG(n) FROM t", [(4000.0,)]),
        (f"{MONTHS} ORDER BY n LIMIT 1 OFFSET 2", []),
        ("SELECT EXTRACT(month FROM day), COUNT(*) FROM sales GROUP BY 1 ORDER BY 2, 1 LIMIT 2",
         [(3, 4000), (5, 4000)]),
        (f"SELECT EXTRACT(month FROM m), LAG(n) OVER (ORDER BY m) FROM ({MONTHS}) t ORDER BY m",
         [(3, None), (5, 4000)]),
        ("SELECT EXTRACT(month FROM day), RANK() OVER (ORDER BY SUM(gain)) FROM sales GROUP BY 1 ORDER BY 2",
         [(5, 1), (3, 2)]),
        (f"SELECT COUNT(*) FROM ({MONTHS}) a JOIN ({MONTHS.replace('gain', 'price')}) b USING (m)", [(2,)]),
        (f"WITH t AS ({MONTHS}) SELECT COUNT(*) FROM (SELECT * FROM t UNION ALL SELECT * FROM t) u", [(4,)]),
        (f"SELECT DISTINCT n FROM ({MONTHS}) t", [(4000,)]),
    ],
)  # fmt: skip
def test_what_is_made_of_a_series_is_made_of_the_groups_that_are_there(
    session: Session, sql: str, rows: list[Any]
) -> None:
    answer = session.execute(sql)
    assert answer.rows == rows
    assert any("groups are left out" in notice for notice in answer.notices)


def test_a_series_keeps_its_points_or_goes_as_a_whole(session: Session) -> None:
    months = session.execute("SELECT DATE_TRUNC('month', day) AS m, SUM(price) FROM sales GROUP BY 1 ORDER BY 1")
    assert len(months.rows) == 12 and not any("left out" in notice for notice in months.notices)
    for key in ("DATE_TRUNC('month', day)", "EXTRACT(month FROM day)", "m"):
        source = "(SELECT *, EXTRACT(month FROM day) AS m FROM sales)" if key == "m" else "sales"
        series = session.execute(f"SELECT {key} AS p, shop, COUNT(*) FROM {source} t GROUP BY 1, 2 ORDER BY 2, 1")
        assert [row[1] for row in series.rows] == ["a"] * 12 + ["b"] * 12, key
        assert any("12 of 36 groups are left out" in notice for notice in series.notices)


def test_a_total_stays_with_its_parts(session: Session) -> None:
    rows = session.execute("SELECT shop, kind, COUNT(*) FROM sales GROUP BY ROLLUP (shop, kind) ORDER BY 1, 2").rows
    assert rows == [("a", "x", 4000), ("a", None, 4000), ("b", "y", 4000), ("b", None, 4000), (None, None, 8000)]
    rows = session.execute("SELECT shop, SUM(price) FROM sales WHERE price > 99 GROUP BY ROLLUP (shop)").rows
    assert rows == [(None, 0)]  # GROUP BY () has a row without any


# --- only noisy cells decide -----------------------------------------------------------------------------------------


class Shifted(Silence):
    """Noise that makes the same cells of two databases: `by` are the rows that this one lacks, group by group."""

    def __init__(self, by: Sequence[int]) -> None:
        self._by = by

    def gaussian(self, n: int, sigma: Fraction) -> Integers:
        return np.array(self._by, np.int64) if n == len(self._by) else np.zeros(n, np.int64)


@pytest.mark.parametrize(("rows", "others"), [((4000, 0), (0, 4000)), ((30, 1), (1, 0)), ((0, 0), (7, 9))])
def test_equal_noisy_counts_hide_the_same_groups_whatever_the_rows(
    tmp_path: Path, rows: tuple[int, int], others: tuple[int, int]
) -> None:
    """Where a count is really 0, and where noise has made it so, the answer is the same to the last letter."""
    noisy = (3000, 2)
    answers = []
    for name, exact in (("one", rows), ("other", others)):
        sampler = Shifted([*(seen - there for seen, there in zip(noisy, exact, strict=True)), 0])
        opened = open_sales(tmp_path / name, sampler, *exact)
        answer = opened.execute(STATEMENTS[0])
        answers.append((answer.rows, answer.errors, answer.notices, answer.loss, answer.columns))
        opened.dataset.close()
    assert answers[0] == answers[1]
    assert [row[0] for row in answers[0][0]] == ["a"]


def test_nothing_exact_comes_near_the_decision() -> None:
    assert set(inspect.signature(empty_groups.find_seen_groups).parameters) == {
        "table", "names", "groups", "steps", "releases",
    }  # fmt: skip
    assert "exact_value" not in inspect.getsource(empty_groups) and "Exact(" not in inspect.getsource(empty_groups)


def test_a_group_is_seen_above_half_of_its_interval_and_never_below(tmp_path: Path) -> None:
    opened = open_sales(tmp_path, Silence(), 4000, 4000)
    (error,) = {bars[1] for bars in opened.execute(STATEMENTS[0]).errors}
    opened.dataset.close()
    assert error is not None
    half = (error.high - error.low) / 2
    seen = {}
    for name, b in (("below", int(half)), ("above", int(half) + 1)):
        opened = open_sales(tmp_path / name, Silence(), 4000, b)
        seen[name] = groups_of(opened.execute(STATEMENTS[0]))
        opened.dataset.close()
    assert seen == {"below": ["a"], "above": ["a", "b"]}


# --- what it costs ---------------------------------------------------------------------------------------------------


def test_a_count_that_is_there_costs_nothing_and_another_a_tenth(session: Session) -> None:
    def explained(sql: str) -> Any:
        return session.explain(sql)

    counted = explained("SELECT shop, COUNT(*) FROM sales GROUP BY shop")
    assert len(counted.releases) == 1 and "cost nothing more" in str(counted)
    joined = explained("SELECT shop, SUM(price) FROM sales GROUP BY shop")
    assert len(joined.releases) == 1 and "cost nothing more" in str(joined)
    apart = explained("SELECT shop, MEDIAN(price) FROM sales GROUP BY shop")
    losing = [release.rho for release in apart.releases if release.rho]
    assert "have a tenth of the loss (release" in str(apart) and len(losing) == 2
    assert min(losing) * 10 == pytest.approx(sum(losing), rel=1e-6)
    session.execute("SET empty_groups = show")
    shown = explained("SELECT shop, MEDIAN(price) FROM sales GROUP BY shop")
    assert sum(losing) <= epsilon_to_rho(Fraction(1), Fraction(1, 10**6)) + Fraction(2, 2**80)
    assert "left out" not in str(shown)
    assert explained("SELECT shop, SUM(price) FROM sales GROUP BY shop").expected == joined.expected


def test_releases_of_the_same_rows_have_one_count(session: Session) -> None:
    sql = (
        "SELECT a.shop, a.m, b.m FROM (SELECT shop, MEDIAN(price) AS m FROM sales GROUP BY 1) a "
        "JOIN (SELECT shop, MEDIAN(gain) AS m FROM sales GROUP BY 1) b USING (shop)"
    )
    explained = session.explain(sql)
    assert sum("rows" in release.columns[0].name for release in explained.releases if release.columns) == 3
    assert len(explained.releases) == 5  # of each block its list and its median, and one count


def test_an_error_that_is_asked_for_is_that_of_the_answers(session: Session) -> None:
    session.execute("SET max_error = 50")
    assert groups_of(session.execute("SELECT shop, SUM(gain) FROM sales GROUP BY shop ORDER BY 1")) == ["a", "b"]


def test_the_setting_is_one_of_all(session: Session) -> None:
    assert session.execute("SHOW empty_groups").rows == [("hide",)]
    session.execute("SET empty_groups = show")
    assert session.execute("SHOW empty_groups").rows == [("show",)]
    session.execute("RESET empty_groups")
    assert session.execute("SHOW empty_groups").rows == [("hide",)]
    with pytest.raises(dpsql.Error, match="empty_groups must be hide or show"):
        session.execute("SET empty_groups = maybe")
    session.execute("SET empty_groups TO 'Hide'")
    assert session.execute("SHOW empty_groups").rows == [("hide",)]
