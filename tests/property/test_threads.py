"""Rows enough for several threads: the exact cells are the same, however many there are and however the rows lie.

`dpsql verify` tries thousands of statements on some hundred rows, which one thread reads; here are few statements and
many rows. Sums of doubles would differ in their last digits.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpsql.compiler.compile import compile_query
from dpsql.engines.duckdb import fetch_exact_cells
from dpsql.verify.audit import TEMPLATES
from tests.support import duckdb_tables

pytestmark = pytest.mark.slow

ROWS = 400_000
STATEMENTS = [
    *(template.sql for template in TEMPLATES if "visits" in template.sql),
    "SELECT SUM(x / 3), AVG(x * n), VAR_POP(x) FROM visits",
    "SELECT SUM(s) FROM (SELECT uid, SUM(x / 7) AS s FROM visits GROUP BY uid) t WHERE s > 9.25",
    "SELECT COUNT(*) FROM (SELECT uid, AVG(x) AS m, STDDEV(x) AS d FROM visits GROUP BY uid) t WHERE m + d > 6.6",
    "SELECT note, SUM(r) FROM"
    " (SELECT note, ROW_NUMBER() OVER (PARTITION BY uid ORDER BY x) AS r FROM visits) t GROUP BY note",
]
MADE = f"""
CREATE TABLE visits AS SELECT (i * 7919 % 30011)::BIGINT AS uid, ['a', 'b', 'c'][1 + i % 3] AS ward,
    'n' || (i % 17) AS note, (i * 0.1 + sin(i)) % 11 AS x, (i % 9 - 3)::INTEGER AS n
FROM range({ROWS}) t(i) ORDER BY {{order}};
CREATE TABLE people AS SELECT i::BIGINT AS uid, 't' || (i % 5) AS town, (i % 13) * 0.7 AS x FROM range(30011) t(i);
"""
LAYOUTS = [(1, "i"), (2, "i DESC"), (4, "hash(i)")]


@pytest.fixture(scope="module")
def engines() -> Iterator[list[duckdb_tables.duckdb.DuckDBPyConnection]]:
    made = []
    for threads, order in LAYOUTS:
        made.append(duckdb_tables.connect(threads))
        made[-1].execute(MADE.format(order=order))
    yield made
    for connection in made:
        connection.close()


@pytest.mark.parametrize("sql", STATEMENTS)
def test_cells_do_not_depend_on_threads_or_order(
    sql: str, engines: list[duckdb_tables.duckdb.DuckDBPyConnection]
) -> None:
    template = TEMPLATES[1]
    for step in compile_query(sql, template.resolved_schema, template.settings).steps:
        found = []
        for connection in engines:
            revealed = fetch_exact_cells(connection.execute(step.sql), len(step.keys)).reveal()
            found.append((revealed.keys, [column.tolist() for column in revealed.cells]))
        assert found[0] == found[1] == found[2]
        assert not found[0][1] or any(any(column) for column in found[0][1]), "a test of nothing"
