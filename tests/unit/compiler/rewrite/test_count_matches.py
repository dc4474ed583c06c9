"""Public rows are counted where one private row could meet too many, and nothing else is read for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from dpsql.errors import LimitExceeded
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session, SessionCache
from tests.support.shop import Silence

SCHEMA = """
dpsql: 1
engine: duckdb:///{name}.duckdb
privacy:
  unit: people.pid
  budget: {{epsilon: 1000000, delta: 0.5}}
  query: {{epsilon: 10000, delta: 1e-6}}
  contributions: {{rows: 1000000, groups: 100}}
tables:
  people:
    unit: pid
    unique: [pid]
    columns: {{pid: {{type: integer}}, town: {{type: text, values: [a, b]}}}}
  sales:
    unit: {{pid: people.pid}}
    columns:
      pid: {{type: integer}}
      item: {{type: integer}}
      day: {{type: integer}}
      n: {{type: integer, bounds: [0, 100]}}
  returned:
    unit: {{pid: people.pid}}
    columns: {{pid: {{type: integer}}, item: {{type: integer}}}}
  stock: {{public: true, columns: {{item: {{type: integer}}, day: {{type: integer}}, n: {{type: integer}}}}}}
  days:
    public: true
    unique: [day]
    columns: {{day: {{type: integer}}, week: {{type: integer}}, year: {{type: integer}}}}
"""
DATA = """
CREATE TABLE people AS SELECT i::INTEGER AS pid, ['a', 'b'][1 + i % 2] AS town FROM range(1, 61) t(i);
CREATE TABLE sales AS SELECT (1 + i % 60)::INTEGER AS pid, (i * 7 % 30)::INTEGER AS item,
  (i * 11 % 700)::INTEGER AS day, (i % 101)::INTEGER AS n FROM range(900) t(i);
CREATE TABLE returned AS SELECT pid, item FROM sales WHERE n % 9 = 0;
CREATE TABLE stock AS SELECT (i % 25)::INTEGER AS item, (i // 25 % 700)::INTEGER AS day, (i * 13 % 200)::INTEGER AS n
FROM range(17500) t(i) UNION ALL SELECT 29, 5, i::INTEGER FROM range(1500) t(i);
CREATE TABLE days AS SELECT i::INTEGER AS day, (i // 7)::INTEGER AS week, (i // 350)::INTEGER AS year
FROM range(700) t(i);
"""
ANSWERED = [
    "SELECT COUNT(*) AS n FROM sales v JOIN stock s ON s.item = v.item WHERE s.item < 25",
    "SELECT town, COUNT(*) AS n FROM people p, sales v, stock s "
    "WHERE p.pid = v.pid AND s.item = v.item AND s.n < 20 AND s.day <> 5 GROUP BY town ORDER BY town",
    "SELECT COUNT(*) AS n FROM sales v, stock s, days d WHERE s.item = v.item AND d.day = s.day AND d.week = 40",
    "SELECT COUNT(*) AS n FROM sales v, stock s, days d, days e "
    "WHERE s.item = v.item AND d.day = s.day AND e.day = v.day AND d.week = e.week AND s.n < 5 * v.n AND s.item < 25",
    "SELECT COUNT(*) AS n, COUNT(r.item) AS m FROM sales v "
    "JOIN stock s ON s.item = v.item JOIN days d ON d.day = s.day JOIN days e ON e.day = v.day "
    "LEFT JOIN returned r ON r.pid = v.pid AND r.item = v.item WHERE d.week = e.week AND d.year = 1",
    "SELECT d.year, COUNT(*) AS n FROM sales v JOIN stock s ON s.day = v.day JOIN days d ON d.day = s.day "
    "WHERE s.item < 25 GROUP BY d.year ORDER BY d.year",
    "SELECT COUNT(*) AS n FROM sales v JOIN stock s ON s.day < v.day WHERE s.n = 7 AND s.item < 10",
]
REFUSED = [
    "SELECT COUNT(*) FROM sales v JOIN stock s ON s.item = v.item",
    "SELECT COUNT(*) FROM sales v JOIN stock s ON s.day < v.day",
    "SELECT COUNT(*) FROM sales v JOIN stock s ON v.item = 7 JOIN stock t ON t.item = v.item AND t.item < 25",
    "SELECT COUNT(*) FROM sales v JOIN stock s ON s.item = v.item JOIN stock t ON t.item = v.item "
    "WHERE s.item < 25 AND t.item < 25",
    "SELECT COUNT(*) FROM sales v JOIN stock s ON s.item = v.item AND s.n < v.n",  # v.n is no public condition
]


def open_session(folder: Path, name: str, more: str = "") -> Session:
    (folder / f"{name}.yaml").write_text(SCHEMA.format(name=name), encoding="utf-8")
    with duckdb.connect(str(folder / f"{name}.duckdb")) as connection:
        connection.execute(DATA + more)
    return Session(open_dataset(folder / f"{name}.yaml"), sampler=Silence())


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Session, Session]]:
    folder = tmp_path_factory.mktemp("matches")
    pair = open_session(folder, "one"), open_session(folder, "other", "DELETE FROM sales WHERE pid = 7;")
    yield pair
    for session in pair:
        session.dataset.close()


@pytest.fixture(scope="module")
def reference() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        connection.execute(DATA)
        yield connection


@pytest.mark.usefixtures("silent_groups")
@pytest.mark.parametrize("sql", ANSWERED)
def test_what_meets_few_rows_is_answered_as_by_duckdb(
    sql: str, sessions: tuple[Session, Session], reference: duckdb.DuckDBPyConnection
) -> None:
    assert list(map(tuple, sessions[0].execute(sql).rows)) == reference.execute(sql).fetchall()


@pytest.mark.parametrize("sql", REFUSED)
def test_what_meets_many_is_refused_with_one_text(sql: str, sessions: tuple[Session, Session]) -> None:
    texts = []
    for session in sessions:
        with pytest.raises(LimitExceeded, match="one private row could meet") as refused:
            session.execute(sql)
        texts.append(str(refused.value))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("sql", ANSWERED + REFUSED)
def test_counting_reads_public_tables_alone(
    sql: str, sessions: tuple[Session, Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []
    for session in (replace(session, cache=SessionCache()) for session in sessions):
        engine, asked = session.dataset.engine, []
        run = engine.execute_public

        def listen(text: str, holes: object, asked: list[object] = asked, run: object = run) -> object:
            rows = run(text, holes)  # type: ignore[operator]
            asked.append((text, rows))
            return rows

        def fail(*_: object, **__: object) -> object:
            raise AssertionError("private rows were read")

        monkeypatch.setattr(engine, "execute_public", listen)
        monkeypatch.setattr(engine, "execute", fail)
        with suppress(LimitExceeded):
            session.compile_statement(sql)
        assert not any(f'"{table}"' in str(text) for text, _ in asked for table in ("people", "sales", "returned"))
        counts.append(asked)
    assert counts[0] == counts[1]


def test_public_rows_are_counted_once(sessions: tuple[Session, Session], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    engine = sessions[0].dataset.engine
    run = engine.execute_public
    monkeypatch.setattr(engine, "execute_public", lambda text, holes: asked.append(text) or run(text, holes))
    for aggregate in ("COUNT(*)", "SUM(v.n)", "AVG(v.n)"):
        sessions[0].explain(f"SELECT {aggregate} FROM sales v JOIN stock s ON s.item = v.item WHERE s.n = 3")
    assert len(asked) == 1
