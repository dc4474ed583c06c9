"""Where the owner allows made-up rows, every preview that tools send is answered with some, typed as the table is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.compiler.parse.parser import parse_query
from dpsql.errors import Error, NotPrivate
from dpsql.schema.dummy_rows import MAX_ROWS
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session
from tests.corpus.environment import HERE, script
from tests.corpus.reader import Case, all_cases

ROWS = "this would return single private rows"
PREVIEWS = [case for case in all_cases() if ROWS in (case.section("error") or "") and case.schema == "hospital"]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder: Path = tmp_path_factory.mktemp("previews")
    text = (HERE / "hospital.yaml").read_text(encoding="utf-8")
    (folder / "hospital.yaml").write_text(text.replace("\nprivacy:", "\npreview: dummy\nprivacy:"), encoding="utf-8")
    with duckdb.connect(str(folder / "hospital.duckdb")) as connection:
        connection.execute(script("hospital"))
    opened = Session(open_dataset(folder / "hospital.yaml"))
    yield opened
    opened.dataset.close()


@pytest.mark.parametrize("case", PREVIEWS, ids=lambda case: f"{case.file}: {case.title}")
def test_every_preview_is_answered_with_made_up_rows(case: Case, session: Session) -> None:
    aggregates = any(word in case.sql.lower() for word in ("count(", "avg(", "sum(", " over ", "max(", "min("))
    if aggregates:
        with pytest.raises(NotPrivate, match=ROWS):
            session.execute(case.sql)
        return
    answer = session.execute(case.sql)
    assert len(answer.rows) <= MAX_ROWS and not answer.receipts
    assert answer.rows or " WHERE " in case.sql.upper()
    assert any("made up" in notice for notice in answer.warnings) and set(answer.warnings) <= set(answer.notices)
    none = parse_query(case.sql)
    for clause in ("limit", "offset"):
        none.set(clause, None)
    typed = session.describe(f"SELECT * FROM ({none.sql(dialect='postgres')}) AS t LIMIT 0")
    assert [(c.name, c.type) for c in answer.columns] == [(c.name, c.type) for c in typed]


def test_there_are_previews() -> None:
    assert len(PREVIEWS) >= 20


def test_rows_of_tables_that_refer_to_each_other_meet(session: Session) -> None:
    answer = session.execute(
        "SELECT p.patient_id, v.visit_id, r.drug FROM patients p JOIN visits v ON v.patient_id = p.patient_id "
        "JOIN prescriptions r ON r.visit_id = v.visit_id LIMIT 50"
    )
    assert len(answer.rows) == 50


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM (SELECT * FROM visits LIMIT 100) AS t",
        "SELECT * FROM (SELECT * FROM visits) AS inner_qry LIMIT 1001",
        "SELECT * FROM visits v CROSS JOIN patients p",
        "SELECT kind FROM visits WHERE patient_id IN (SELECT patient_id FROM patients WHERE risk > 5) LIMIT 10",
        "SELECT v.*, (SELECT p.sex FROM patients p WHERE p.patient_id = v.patient_id) AS sex FROM visits v LIMIT 5",
    ],
)
def test_other_ways_to_select_rows(sql: str, session: Session) -> None:
    answer = session.execute(sql)
    assert 0 < len(answer.rows) <= MAX_ROWS and any("made up" in warning for warning in answer.warnings)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT w.ward FROM wards w WHERE EXISTS (SELECT 1 FROM visits v WHERE v.ward = w.ward)",
        "SELECT ward FROM wards WHERE ward IN (SELECT ward FROM visits)",
        "SELECT * FROM (SELECT ward FROM wards WHERE ward IN (SELECT ward FROM visits)) AS t",
        "WITH t AS (SELECT ward FROM wards WHERE ward IN (SELECT ward FROM visits)) SELECT ward FROM t",
        "WITH t AS (SELECT ward FROM visits) SELECT w.ward FROM wards w WHERE w.ward IN (SELECT ward FROM t)",
        "SELECT ward FROM wards EXCEPT ALL SELECT ward FROM visits",
        "SELECT ward, (SELECT v.kind FROM visits v WHERE v.ward = w.ward LIMIT 1) FROM wards w",
    ],
)
def test_made_up_rows_do_not_choose_true_ones(sql: str, session: Session) -> None:
    with pytest.raises(Error):
        session.execute(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH t AS (SELECT ward FROM visits) SELECT ward FROM t",
        "SELECT v.ward, w.ward FROM wards w JOIN visits v ON v.ward = w.ward",
        "SELECT ward FROM visits UNION ALL SELECT ward FROM visits",
    ],
)
def test_made_up_rows_are_given_beside_true_ones(sql: str, session: Session) -> None:
    assert any("made up" in warning for warning in session.execute(sql).warnings)


def test_what_is_wrong_with_a_statement_is_said_first(session: Session) -> None:
    with pytest.raises(Exception, match='column "nosuch" does not exist'):
        session.execute("SELECT nosuch FROM visits LIMIT 5")
