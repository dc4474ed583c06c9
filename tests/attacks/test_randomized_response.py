"""RANDOMIZED gives a row for each unit: whatever makes their number, or which they are, depend on rows is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.errors import (
    BudgetExceeded,
    Error,
    InvalidParameter,
    NotPrivate,
    UnboundedValues,
    UnknownFunction,
    Unsupported,
)
from dpsql.privacy.sampling import ExactSampler, Sampler
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session
from tests.support.shop import Silence

pytestmark = pytest.mark.slow

SCHEMA = """\
dpsql: 1
engine: duckdb:///people.duckdb
privacy:
  neighbors: change_one
  unit: people.pid
  budget: {epsilon: 100, delta: 1e-3}
  query: {epsilon: 1, delta: 1e-6}
  largest_query: {epsilon: 8}
  contributions: {rows: 1, groups: 1}
tables:
  people:
    unit: pid
    unique: [pid]
    columns:
      pid: {type: bigint}
      answer: {type: text, values: ["yes", "no", maybe]}
      flag: {type: boolean}
      level: {type: integer, values: [1, 2, 3]}
      age: {type: integer, bounds: [0, 1000000]}
      note: {type: text}
  regions: {public: true, columns: {region: {type: text}}}
views:
  old: SELECT * FROM people WHERE age > 50
"""
CALLS = """\
  calls:
    unit: {pid: people.pid}
    columns: {pid: {type: bigint}, kind: {type: text, values: [in, out]}}
"""
DATA = """
CREATE TABLE people AS SELECT i AS pid, CASE WHEN i < 60 THEN 'yes' WHEN i < 90 THEN 'no' WHEN i < 97 THEN 'other' END
  AS answer, i % 2 = 0 AS flag, (i % 3 + 1)::INTEGER AS level, i::INTEGER AS age, 'n' || i AS note FROM range(100) t(i);
INSERT INTO people SELECT NULL, 'yes', true, 1, 5, 'nobody' FROM range(3);
CREATE TABLE calls AS SELECT i % 5 AS pid, 'in' AS kind FROM range(20) t(i);
CREATE TABLE regions AS SELECT 'n' AS region;
"""


@contextmanager
def opened(folder: Path, schema: str = SCHEMA, sampler: Sampler | None = None) -> Iterator[Session]:
    (folder / "people.yaml").write_text(schema, encoding="utf-8")
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.execute(DATA)
    dataset = open_dataset(folder / "people.yaml")
    try:
        yield Session(dataset, sampler=sampler or Silence(), opened_with={"empty_groups": "show"})
    finally:
        dataset.close()


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with opened(tmp_path_factory.mktemp("people")) as one:
        yield one


def test_there_is_an_answer_for_each_unit_and_null_is_one(session: Session) -> None:
    """A value that is not declared is NULL; rows of nobody are no unit's. Without noise each says what it is."""
    answer = session.execute("SELECT RANDOMIZED(answer, 2) FROM people")
    assert Counter(row[0] for row in answer.rows) == {"yes": 60, "no": 30, None: 10}
    assert (answer.loss.epsilon, answer.loss.rho, answer.loss.delta) == (2, 2, 0)
    assert [column.name for column in answer.columns] == ["randomized"]
    told = [row[0] for row in answer.rows]
    assert told != sorted(told, key=str) and told[:60] != ["yes"] * 60  # in no order of the rows
    assert session.execute("SELECT RANDOMIZED(answer, 2) AS a FROM people").loss.rho == 0  # the same answers, once paid


def test_no_row_is_left_out_whatever_the_owner_says_of_null(tmp_path: Path) -> None:
    with opened(tmp_path, SCHEMA.replace('"no", maybe]', '"no", maybe], nullable: false')) as session:
        answer = session.execute("SELECT RANDOMIZED(answer, 2) FROM people")
        assert Counter(row[0] for row in answer.rows) == {"yes": 60, "no": 30, None: 10}


@pytest.mark.parametrize(("column", "values"), [("flag", {True, False}), ("level", {1, 2, 3})])
def test_other_types(session: Session, column: str, values: set[object]) -> None:
    answer = session.execute(f"SELECT RANDOMIZED({column}, 1) AS said FROM people")
    assert {row[0] for row in answer.rows} == values and len(answer.rows) == 100


def test_draws_are_made(tmp_path: Path) -> None:
    with opened(tmp_path, sampler=ExactSampler()) as session:
        counts = Counter(row[0] for row in session.execute("SELECT RANDOMIZED(answer, 0.001) FROM people").rows)
        assert sum(counts.values()) == 100 and counts.keys() == {"yes", "no", "maybe", None}
        assert max(counts.values()) < 55  # each is told by a quarter or so: with 60 of "yes" by a chance of 1e-12


def test_what_is_made_of_the_answers_is_free(session: Session) -> None:
    session.execute("SELECT RANDOMIZED(answer, 2) FROM people")
    block = "(SELECT RANDOMIZED(answer, 2) AS a FROM people) AS t"
    for sql in (f"SELECT a, COUNT(*) FROM {block} GROUP BY a ORDER BY 2 DESC LIMIT 1", f"SELECT a FROM {block} LIMIT 3",
                "WITH t AS (SELECT RANDOMIZED(answer, 2) AS a FROM people) SELECT COUNT(*) FROM t WHERE a = 'yes'",
                f"SELECT UPPER(a) FROM {block} UNION SELECT 'X'"):  # fmt: skip
        assert session.execute(sql).loss.rho == 0


def test_each_is_its_own_charge(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        union = "SELECT RANDOMIZED(answer, 1) AS a FROM people UNION ALL SELECT RANDOMIZED(answer, 0.5) FROM people"
        assert session.explain(union).epsilon == Fraction(3, 2)
        answer = session.execute(union)
        assert answer.loss.epsilon == Fraction(3, 2) and len(answer.rows) == 200
        same = "SELECT RANDOMIZED(level, 1) AS a FROM people UNION ALL SELECT RANDOMIZED(level, 1) FROM people"
        assert session.execute(same).loss.epsilon == 1  # one release, read twice: the draws are the same


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT RANDOMIZED(answer, 1) FROM people WHERE age > 50", "WHERE cannot stand"),
        ("SELECT RANDOMIZED(answer, 1) FROM people WHERE answer IS NOT NULL", "WHERE cannot stand"),
        ("SELECT RANDOMIZED(answer, 1) FROM people LIMIT 5", "LIMIT cannot stand"),
        ("SELECT RANDOMIZED(answer, 1) FROM people ORDER BY age", "ORDER BY cannot stand"),
        ("SELECT RANDOMIZED(answer, 1) FROM people ORDER BY 1 OFFSET 99", "cannot stand"),
        ("SELECT RANDOMIZED(answer, 1) FROM people CLUSTER BY age", "CLUSTER BY cannot stand"),
        ("SELECT DISTINCT RANDOMIZED(answer, 1) FROM people", "DISTINCT cannot stand"),
        ("SELECT RANDOMIZED(answer, 1) FROM people GROUP BY answer", "GROUP BY cannot stand"),
        ("SELECT RANDOMIZED(answer, 1) FROM people HAVING TRUE", "HAVING cannot stand"),
        ("SELECT RANDOMIZED(answer, 1) FROM people QUALIFY ROW_NUMBER() OVER () = 1", "QUALIFY cannot stand"),
        ("SELECT RANDOMIZED(a.answer, 1) FROM people a JOIN people b ON a.pid = b.pid", "a join cannot stand"),
        ("SELECT RANDOMIZED(answer, 1) FROM people, regions", "a join cannot stand"),
        ("SELECT RANDOMIZED(answer, 1) FROM people CROSS JOIN regions", "a join cannot stand"),
        ("SELECT RANDOMIZED(answer, 1) FROM (SELECT * FROM people WHERE age > 50) AS t", "of all its rows"),
        ("SELECT RANDOMIZED(answer, 1) FROM (SELECT * FROM people LIMIT 5) AS t", "LIMIT"),
        ("WITH people AS (SELECT * FROM people WHERE age > 50) SELECT RANDOMIZED(answer, 1) FROM people",
         "of all its rows"),
        ("SELECT RANDOMIZED(answer, 1) FROM old", "of all its rows"),
        ("SELECT RANDOMIZED(answer, 1) FROM (SELECT * FROM people UNION ALL SELECT * FROM people) AS t",
         "of all its rows"),
        ("SELECT RANDOMIZED(CASE WHEN age > 50 THEN answer END, 1) FROM people", "as it is"),
        ("SELECT RANDOMIZED(answer, 1), RANDOMIZED(level, 1) FROM people", "stands alone"),
        ("SELECT RANDOMIZED(answer, 1), age FROM people", "stands alone"),
        ("SELECT pid, RANDOMIZED(answer, 1) FROM people", "stands alone"),
        ("SELECT RANDOMIZED(answer, 1) || note FROM people", "stands alone"),
        ("SELECT COUNT(RANDOMIZED(answer, 1)) FROM people", "stands alone"),
        ("SELECT RANDOMIZED(answer, 1) OVER () FROM people", "stands alone"),
        ("SELECT COUNT(*) FROM people WHERE RANDOMIZED(answer, 1) = 'yes'", "not supported over private rows"),
        ("SELECT COUNT(*) FROM people WHERE answer IN (SELECT RANDOMIZED(answer, 1) FROM people)",
         "without other releases"),
        ("SELECT RANDOMIZED(answer, 1) FROM people UNION ALL SELECT CAST(COUNT(*) AS text) FROM people",
         "without other releases"),
        ("SELECT RANDOMIZED(answer) FROM people", "a column and an epsilon"),
        ("SELECT RANDOMIZED(answer, 1, 2) FROM people", "a column and an epsilon"),
        ("SELECT RANDOMIZED(answer, age) FROM people", "a literal above 0"),
        ("SELECT RANDOMIZED(answer, 0) FROM people", "a literal above 0"),
        ("SELECT RANDOMIZED(answer, -1) FROM people", "a literal above 0"),
        ("SELECT RANDOMIZED(answer, 1e300) FROM people", "a literal above 0"),
        ("SELECT RANDOMIZED(note, 1) FROM people", "declared values"),
        ("SELECT RANDOMIZED(age, 1) FROM people", "declared values"),
        ("SELECT RANDOMIZED(pid, 1) FROM people", "declared values"),
    ],
)  # fmt: skip
def test_more_revealing_responses_are_refused_before_a_charge(session: Session, sql: str, told: str) -> None:
    before = session.budget().charges
    refusals = (Unsupported, InvalidParameter, UnboundedValues, NotPrivate, UnknownFunction)
    with pytest.raises(refusals) as caught:
        session.execute(sql)
    assert told in str(caught.value) and session.budget().charges == before


def test_a_tablesample_is_no_table_as_it_is(session: Session) -> None:
    with pytest.raises(Error):
        session.execute("SELECT RANDOMIZED(answer, 1) FROM people TABLESAMPLE 10 PERCENT")


def test_the_largest_query_is_that_of_its_epsilon(session: Session) -> None:
    """The setting epsilon has no part in it, and does not hide it."""
    with pytest.raises(BudgetExceeded):
        session.execute("SELECT RANDOMIZED(answer, 9) FROM people")
    with pytest.raises(BudgetExceeded):
        session.execute("SELECT RANDOMIZED(answer, 5) FROM people UNION ALL SELECT RANDOMIZED(level, 5) FROM people")


def test_an_error_cannot_be_aimed_at(session: Session) -> None:
    session.execute("SET max_error = 5")
    with pytest.raises(Unsupported, match="randomized answers"):
        session.execute("SELECT RANDOMIZED(answer, 1) FROM people")
    session.execute("RESET max_error")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("neighbors: change_one", "neighbors: add_remove", "needs neighbors: change_one"),
        ("    unique: [pid]\n", "", "several rows"),
        ("  regions:", CALLS + "  regions:", "in another table"),
    ],
)
def test_where_the_number_of_rows_is_not_public(tmp_path: Path, old: str, new: str, told: str) -> None:
    """The hint's statement gives the histogram instead."""
    assert old in SCHEMA
    with opened(tmp_path, SCHEMA.replace(old, new)) as session:
        with pytest.raises(Unsupported, match=told) as caught:
            session.execute("SELECT RANDOMIZED(answer, 1) FROM people")
        assert session.budget().charges == 0 and caught.value.hint is not None
        assert len(session.execute(caught.value.hint.split(" counts the")[0]).rows) == 3


def test_a_table_that_leads_to_the_unit_is_not_the_units_own(tmp_path: Path) -> None:
    schema = SCHEMA.replace("  regions:", CALLS + "  regions:")
    with opened(tmp_path, schema) as session, pytest.raises(Unsupported, match="several rows"):
        session.execute("SELECT RANDOMIZED(kind, 1) FROM calls")


def test_a_group_of_units_loses_as_often(tmp_path: Path) -> None:
    with opened(tmp_path, SCHEMA.replace("  contributions:", "  group_size: 3\n  contributions:")) as session:
        loss = session.execute("SELECT RANDOMIZED(answer, 2) FROM people").loss
        assert (loss.epsilon, loss.rho) == (6, 6)


def test_rows_that_are_units_of_their_own(tmp_path: Path) -> None:
    schema = SCHEMA.replace("unit: people.pid", "unit: row").replace("unit: pid\n    unique: [pid]", "unit: row")
    with opened(tmp_path, schema) as session:
        assert len(session.execute("SELECT RANDOMIZED(answer, 1) FROM people").rows) == 103
