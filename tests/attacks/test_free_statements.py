"""What is answered for free: neighbors are told the same, the engine is never asked, the ledger is not written.

Filter pickers over declared values, ranges from declared bounds, and previews of made-up rows.
"""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from dpsql.errors import NotPrivate
from dpsql.session.session import Session
from tests.support.attack_hospital import TABLES, Pair, build_pair

pytestmark = pytest.mark.slow

DUMMIES = (
    "preview: dummy\n"
    + TABLES
    + """
views:
  late: SELECT pid, kind, day FROM visits WHERE day >= DATE '2024-06-01'
"""
)

PICKERS = [
    "SELECT DISTINCT kind FROM visits",
    "SELECT DISTINCT kind AS k, day > DATE '2024-06-01' AS late FROM visits",
    'SELECT "kind" FROM "public"."visits" GROUP BY "kind" ORDER BY "kind" ASC LIMIT 1000',
    "SELECT kind AS kind FROM visits WHERE kind IS NOT NULL GROUP BY kind",
    "SELECT kind FROM visits WHERE kind ILIKE '%A%' GROUP BY kind LIMIT 10",
    "SELECT kind FROM (SELECT v.kind, v.n FROM visits v) AS virtual_table GROUP BY kind",
    "SELECT COALESCE(sex, '?') AS s FROM people GROUP BY 1",
    "SELECT sex FROM people GROUP BY sex",
    "SELECT v.kind FROM visits v LEFT JOIN wards w ON w.ward = v.ward GROUP BY v.kind",
    "SELECT kind, GROUPING(kind) FROM visits GROUP BY ROLLUP (kind)",
    "SELECT DATE_TRUNC('month', day) AS m FROM visits GROUP BY 1 ORDER BY 1",
    "SELECT COUNT(*) FROM (SELECT DISTINCT kind FROM visits) AS t",
    "WITH k AS (SELECT DISTINCT kind FROM visits) SELECT UPPER(kind) FROM k",
    "WITH spare AS (SELECT AVG(n) AS m FROM visits) SELECT DISTINCT kind FROM visits",
]
RANGES = [
    "SELECT MIN(day), MAX(day) FROM visits",
    "SELECT MIN(day) AS lo, CAST(MAX(day) AS TEXT) AS hi FROM visits WHERE day IS NOT NULL",
    'select "_"."a" from (select max("_"."day") as "a" from (select * from "public"."visits" "$T") "_") "_" limit 5',
]
PREVIEWS = [
    "SELECT * FROM visits LIMIT 100",
    "SELECT * FROM people",
    "SELECT kind, n * 2 AS double FROM visits WHERE n > 50 ORDER BY n DESC, day LIMIT 7",
    "SELECT p.sex, v.kind FROM people p JOIN visits v ON v.pid = p.pid LIMIT 5",
    "WITH visits AS (SELECT ward FROM public.visits) SELECT * FROM visits LIMIT 3",
    "SELECT * FROM late LIMIT 4",
    "SELECT ward FROM visits UNION ALL SELECT city FROM people LIMIT 9",
    "SELECT kind FROM visits WHERE pid IN (SELECT pid FROM people WHERE age > 30) LIMIT 3",
]
RELEASES = [
    "SELECT DISTINCT ward FROM visits",
    "SELECT city FROM people GROUP BY city LIMIT 1000",
    "SELECT kind FROM visits GROUP BY kind HAVING COUNT(*) > 3",
    "SELECT kind FROM visits GROUP BY kind ORDER BY COUNT(*) DESC",
    "SELECT DISTINCT kind, ward FROM visits",
    "SELECT kind FROM visits WHERE n > 90 AND ward = 'own1' GROUP BY kind",  # which kinds there are, rows decide
    "SELECT kind FROM visits WHERE n > (SELECT AVG(n) FROM visits) GROUP BY kind",
    "SELECT COUNT(*) FROM (SELECT DISTINCT kind FROM visits WHERE n > 90) AS t",
    "SELECT DISTINCT w.ward FROM visits v JOIN wards w ON w.ward = v.ward",
    "SELECT kind FROM visits WHERE pid IN (SELECT pid FROM people WHERE age > 90) GROUP BY kind",
    "SELECT v.kind FROM visits v JOIN people p ON p.pid = v.pid GROUP BY v.kind",
    "SELECT kind FROM visits WHERE kind IN (SELECT kind FROM visits GROUP BY kind HAVING COUNT(*) > 3) GROUP BY kind",
    "SELECT COUNT(*) FROM visits WHERE kind IN (SELECT DISTINCT kind FROM visits)",
    "SELECT MIN(n) FROM visits",
    "SELECT MIN(day) FROM visits WHERE kind = 'a'",
    "SELECT MIN(day) FROM visits WHERE day IS NOT NULL AND n IS NOT NULL",
    "SELECT kind, MIN(day) FROM visits GROUP BY kind",
    "SELECT MAX(day) - MIN(day) FROM visits",
    "SELECT MIN(v.day) FROM visits v JOIN people p ON p.pid = v.pid",
    "SELECT MIN(v.day) FROM visits v JOIN wards w ON w.ward = v.ward",
    "SELECT MIN(day) FILTER (WHERE n > 3) FROM visits",
    "SELECT MIN(d) FROM (SELECT pid, MIN(day) AS d FROM visits GROUP BY pid) AS t",
    "SELECT COUNT(*) FROM visits WHERE day > (SELECT MAX(day) - 30 FROM visits)",
    "SELECT t.n FROM (SELECT day, COUNT(*) AS n FROM visits GROUP BY day) t, (SELECT MAX(day) AS m FROM visits) l "
    "WHERE t.day > l.m - 30",
    "SELECT COUNT(*) FROM visits",
]  # fmt: skip
NO_PREVIEWS = [
    "SELECT v.kind, t.n FROM visits v JOIN (SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind) t USING (kind)",
    "SELECT kind FROM visits WHERE n > (SELECT AVG(n) FROM visits) LIMIT 2",
    "SELECT pid, COUNT(*) FROM visits GROUP BY pid",
    "SELECT *, SUM(n) OVER (PARTITION BY pid) FROM visits LIMIT 2",
    "SELECT DISTINCT pid FROM visits",
]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    found = build_pair(tmp_path_factory.mktemp("free"), DUMMIES)
    yield found
    found.close()


@pytest.fixture()
def deaf(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """Both sides with an engine that fails the test if it is asked anything."""

    def asked(*_: object, **__: object) -> object:
        raise AssertionError("the engine was asked")

    for session in pair:
        monkeypatch.setattr(session.dataset.engine, "execute", asked)
        monkeypatch.setattr(session.dataset.engine, "execute_public", asked)
    return pair


def books(session: Session) -> list[str]:
    """All that stands in the ledger."""
    path = session.dataset.schema.path.with_suffix(".ledger")
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as ledger:
        return list(ledger.iterdump())


@pytest.mark.parametrize("sql", PICKERS + RANGES + PREVIEWS)
def test_neighbors_get_the_same_reply_and_nothing_is_charged(sql: str, deaf: Pair) -> None:
    told = []
    for session in deaf:
        before = books(session)
        answer = session.execute(sql)
        assert books(session) == before, "something was written"
        assert not session.compile_statement(sql).steps and not answer.receipts
        told.append(repr((answer.columns, answer.rows, answer.notices, answer.loss, session.explain(sql).epsilon)))
    assert told[0] == told[1]
    assert answer.rows


@pytest.mark.parametrize("sql", PREVIEWS)
def test_made_up_rows_are_marked(sql: str, deaf: Pair) -> None:
    assert any("made up" in notice for notice in deaf.with_.execute(sql).notices)


@pytest.mark.parametrize("sql", RELEASES)
def test_what_the_rows_decide_is_released(sql: str, pair: Pair) -> None:
    plain, asked = pair.with_.explain(sql), pair.with_.explain(sql, settings={"ranges": "release"})
    assert plain.releases and len(plain.releases) == len(asked.releases), "a bound stands for what rows decide"


def test_the_ends_of_the_rows_can_be_asked_for(pair: Pair) -> None:
    for ranges, sql, releases in (
        ("release", "SELECT MIN(day), MAX(day) FROM visits", 2),
        ("declared", "SELECT MIN(day), MAX(n) FROM visits", 1),
        ("all", "SELECT MIN(day), MAX(n), MIN(x) FROM visits", 0),
        ("all", "SELECT MAX(n), COUNT(*) FROM visits", 1),
    ):
        assert len(pair.with_.explain(sql, settings={"ranges": ranges}).releases) == releases, (ranges, sql)
    answer = pair.with_.execute("SELECT MIN(n), MAX(x), MIN(day) FROM visits", settings={"ranges": "all"})
    assert answer.rows == [(0, 5.0, dt.date(2024, 1, 1))]


@pytest.mark.parametrize("sql", NO_PREVIEWS)
def test_no_aggregate_is_made_of_made_up_rows(sql: str, deaf: Pair) -> None:
    for session in deaf:
        with pytest.raises(NotPrivate):
            session.execute(sql)


def test_null_is_a_value_where_it_is_declared_alone(deaf: Pair) -> None:
    assert {row[0] for row in deaf.with_.execute("SELECT DISTINCT sex FROM people").rows} == {"f", "m", None}
    assert {row[0] for row in deaf.with_.execute("SELECT DISTINCT kind FROM visits").rows} == {"a", "b", "c"}


def heard(session: Session, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the engine is asked of public tables from now on."""
    asked: list[str] = []
    public = session.dataset.engine.execute_public

    def listen(sql: str, holes: Mapping[str, object]) -> object:
        asked.append(sql)
        return public(sql, holes)

    monkeypatch.setattr(session.dataset.engine, "execute_public", listen)
    return asked


def test_public_tables_alone_are_read_for_what_they_list(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT DISTINCT w.floor, w.ward FROM visits v LEFT JOIN wards w ON w.ward = v.ward WHERE w.ward IS NOT NULL"
    for session in pair:
        asked, before = heard(session, monkeypatch), books(session)
        assert sorted(session.execute(sql).rows) == [(0, "w0"), (1, "w1"), (2, "w2"), (3, "w3")]
        assert books(session) == before and not session.compile_statement(sql).steps
        assert len(asked) == 1 and "visits" not in asked[0] and "people" not in asked[0]


def test_a_preview_beside_a_public_table_reads_that_table_alone(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT v.kind, w.floor FROM visits v CROSS JOIN wards w LIMIT 2"
    for session in pair:
        asked = heard(session, monkeypatch)
        assert len(session.execute(sql).rows) == 2
        assert len(asked) == 1 and "visits" not in asked[0]


def test_without_the_owners_word_there_is_no_preview(tmp_path: Path) -> None:
    plain = build_pair(tmp_path, TABLES)
    for sql in ("SELECT * FROM visits LIMIT 100", "SELECT * FROM people"):
        for session in plain:
            with pytest.raises(NotPrivate, match="single private rows"):
                session.execute(sql)
    plain.close()


def test_a_table_may_have_none_where_the_others_have_one(tmp_path: Path) -> None:
    tables = DUMMIES.replace("  visits:\n", "  visits:\n    preview: refuse\n")
    one = build_pair(tmp_path, tables)
    assert one.with_.execute("SELECT * FROM people LIMIT 2").rows
    for sql in ("SELECT * FROM visits LIMIT 2", "SELECT p.sex FROM people p JOIN visits v ON v.pid = p.pid",
                "SELECT * FROM late LIMIT 1"):  # fmt: skip
        with pytest.raises(NotPrivate):
            one.with_.execute(sql)
    one.close()
