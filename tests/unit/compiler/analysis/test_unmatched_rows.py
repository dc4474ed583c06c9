"""Public rows that a LEFT JOIN keeps without a private one: an answer is DuckDB's, or it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import duckdb
import pytest

from dpsql.compiler.analysis.unmatched_rows import UNMATCHED_ROWS_NOTICE, _simplify
from dpsql.compiler.plan.expressions import Literal
from dpsql.compiler.plan.walk import columns_of
from dpsql.errors import Unsupported
from tests.corpus.compare import difference
from tests.corpus.environment import Ground
from tests.support.expressions import bound, computed, load
from tests.support.function_calls import EXPRESSIONS

JOIN = "wards w LEFT JOIN visits v ON v.ward = w.ward AND v.nights > 12"


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    opened = Ground("hospital")
    yield opened
    opened.close()


REFUSED = (
    f"SELECT w.floor, COUNT(*) FROM {JOIN} WHERE v.visit_id IS NULL GROUP BY 1",
    f"SELECT COUNT(*) FROM {JOIN} WHERE v.nights > 13 OR v.nights IS NULL",
    f"SELECT COUNT(*) FROM {JOIN} WHERE COALESCE(v.nights, 0) = 0",
    f"SELECT COUNT(*) FROM {JOIN} WHERE COALESCE(v.doctor_id, 1) = w.floor",
    f"SELECT COUNT(*) FROM {JOIN} WHERE NOT (v.visit_id IS NOT NULL)",
    f"SELECT COUNT(*) FROM {JOIN} WHERE CONCAT_WS('-', 'x', v.kind) = 'x'",
    f"SELECT SUM(CASE WHEN v.visit_id IS NULL THEN 1 ELSE 0 END) FROM {JOIN}",
    f"SELECT COUNT(*) FILTER (WHERE v.visit_id IS NULL) FROM {JOIN}",
    f"SELECT AVG(COALESCE(v.nights, 0)) FROM {JOIN}",
    f"SELECT AVG(CASE WHEN v.urgent THEN 1 ELSE 0 END) FROM {JOIN}",
    f"SELECT SUM(w.beds) FROM {JOIN}",
    f"SELECT COUNT(DISTINCT w.ward) FROM {JOIN}",
    f"SELECT COUNT(*) - COUNT(v.visit_id) FROM {JOIN}",
    f"SELECT v.visit_id IS NULL, COUNT(*) FROM {JOIN} GROUP BY 1",
    f"SELECT DISTINCT w.ward FROM {JOIN} WHERE v.visit_id IS NULL",
    f"SELECT COUNT(*) FROM (SELECT w.ward, v.visit_id AS id FROM {JOIN}) t WHERE t.id IS NULL",
    f"SELECT COUNT(*) FROM (SELECT w.ward, COALESCE(v.visit_id, -1) AS id FROM {JOIN}) t WHERE t.id = -1",
    f"SELECT COUNT(*) FROM {JOIN} LEFT JOIN patients p ON p.patient_id = v.patient_id WHERE p.patient_id IS NULL",
    f"SELECT COUNT(*) FROM {JOIN} LEFT JOIN doctors d ON d.doctor_id = v.doctor_id WHERE d.name IS NULL",
    "SELECT COUNT(*) FROM visits v RIGHT JOIN wards w ON v.ward = w.ward AND v.nights > 12 WHERE v.visit_id IS NULL",
    "SELECT COUNT(*) FROM (VALUES (1), (99)) AS t(n) LEFT JOIN visits v ON v.nights = t.n WHERE v.visit_id IS NULL",
)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_unmatched_rows_would_change_is_refused_before_the_charge(ground: Ground, sql: str) -> None:
    spent = ground.session.execute("SHOW budget").rows
    with pytest.raises(Unsupported, match="match no private row") as refused:
        ground.execute(sql)
    assert "COUNT(DISTINCT" in str(refused.value.hint)
    assert ground.session.execute("SHOW budget").rows == spent


ANSWERED = (
    f"SELECT w.ward, COUNT(v.visit_id) AS n FROM {JOIN} GROUP BY w.ward",
    f"SELECT w.ward, SUM(COALESCE(v.nights, 0)) AS n FROM {JOIN} GROUP BY w.ward",
    f"SELECT w.ward, SUM(CASE WHEN v.nights > 13 THEN 1 ELSE 0 END) AS n FROM {JOIN} GROUP BY w.ward",
    f"SELECT AVG(v.nights) AS n, COUNT(DISTINCT v.patient_id) AS m FROM {JOIN}",
    f"SELECT COUNT(*) FILTER (WHERE v.visit_id IS NOT NULL) AS n FROM {JOIN}",
    f"SELECT COUNT(*) AS n, COUNT(DISTINCT w.ward) AS m, SUM(w.beds) AS b FROM {JOIN} WHERE v.nights > 13",
    f"SELECT COUNT(*) AS n FROM {JOIN} WHERE v.kind || '!' = 'emergency!'",
    f"SELECT COUNT(*) AS n FROM {JOIN} JOIN patients p ON p.patient_id = v.patient_id",
    f"SELECT SUM(w.beds) AS n FROM {JOIN} JOIN doctors d ON d.doctor_id = v.doctor_id",
    f"SELECT COUNT(*) AS n FROM {JOIN} WHERE COALESCE(v.nights, w.floor) > 3 AND v.visit_id IS NOT NULL",
    f"SELECT DISTINCT w.ward FROM {JOIN}",
    "SELECT (SELECT COUNT(*) FROM wards) - COUNT(DISTINCT w.ward) AS n FROM wards w JOIN visits v ON v.ward = w.ward"
    " AND v.nights > 12",
)


@pytest.mark.parametrize("sql", ANSWERED)
def test_what_they_would_not_change_is_answered_as_by_duckdb(ground: Ground, sql: str) -> None:
    answer, theirs = ground.execute(sql), ground.reference.execute(sql).fetchall()
    assert difference(answer.rows, theirs, [column.name for column in answer.columns]) is None
    assert UNMATCHED_ROWS_NOTICE not in answer.notices


def test_counting_rows_says_that_they_are_not_among_them(ground: Ground) -> None:
    answer = ground.execute(f"SELECT w.floor, COUNT(*) AS n FROM {JOIN} GROUP BY 1")
    assert UNMATCHED_ROWS_NOTICE in answer.notices


def test_a_literal_is_what_the_engine_works_out_where_some_columns_are_null() -> None:
    """The rules for NULL, tried on calls of every function: what they decide, the engine finds in every row."""
    rng, decided, kept = Random(11), 0, 0
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        load(connection, 40)
        for sql in rng.sample(EXPRESSIONS, 250):
            for text in (sql, f"coalesce({sql}, NULL) IS NULL", f"CASE WHEN ({sql}) IS NULL THEN 1 ELSE 0 END"):
                expr = bound(text)
                names = sorted(columns_of(expr))
                if not names:
                    continue
                missing = rng.sample(names, rng.randint(1, len(names)))
                value = _simplify(expr, {name: Literal(None, bound(name).type) for name in missing})
                if not isinstance(value, Literal):
                    kept += 1
                    continue
                decided += 1
                connection.begin()
                connection.execute(f"UPDATE worst SET {', '.join(f'{name} = NULL' for name in missing)}")
                assert {row[0] for row in computed([expr], connection)} == {value.value}, (text, missing)
                connection.rollback()
    assert decided > 300 and kept > 5
