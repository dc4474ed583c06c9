"""What attackers found beyond aggregates: each was mended, and stays mended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.errors import Error

pytestmark = pytest.mark.slow

SCHEMA = """
dpsql: 1
engine: duckdb:///{folder}/shop.duckdb
ledger: sqlite:///{folder}/shop.ledger
privacy:
  unit: people.id
  budget: {{epsilon: 1000, delta: 1e-3}}
  query: {{epsilon: 4, delta: 1e-4}}
  contributions: {{rows: 3, groups: 2}}
analysts:
  ana: {{budget: {{epsilon: 400, delta: 1e-4}}}}
  bob: {{budget: {{epsilon: 400, delta: 1e-4}}}}
tables:
  people:
    unit: id
    unique: [id]
    columns:
      id: {{type: bigint}}
      ok: {{type: boolean}}
      age: {{type: integer, bounds: [0, 99]}}
      answer: {{type: text, randomized: {{epsilon: 1, values: [yes, no]}}}}
      town: {{type: text}}
      side: {{type: text}}
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half of the people have a town of their own, which no selection shows; all have answered yes."""
    folder = tmp_path_factory.mktemp("shop")
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT i AS id, i % 2 = 1 AS ok, (i % 100)::INTEGER AS age, 'yes' AS answer,"
            " CASE WHEN i % 2 = 1 THEN 'f' ELSE 'u' || i END AS town,"
            " CASE WHEN i % 2 = 1 THEN 'a' ELSE 'b' END AS side FROM range(800) AS t(i)"
        )
    path = folder / "shop.yaml"
    path.write_text(SCHEMA.format(folder=folder), encoding="utf-8")
    return path


def rows(shop: Path, user: str, sql: str) -> list[tuple[object, ...]]:
    with dpsql.connect(str(shop), user=user) as connection:
        cursor = connection.cursor()
        cursor.execute(sql)
        return cursor.fetchall()


@pytest.mark.parametrize("by", ["ROLLUP (answer, town)", "CUBE (answer, town)", "GROUPING SETS ((answer, town))"])
def test_a_randomized_key_that_is_selected_is_answered_as_recorded(shop: Path, by: str) -> None:
    """Debiasing looked for answers that were not selected, and failed after the charge."""
    found = rows(shop, "ana", f"SELECT answer, town, COUNT(*) FROM people GROUP BY {by}")
    assert any(answer == "yes" and town == "f" for answer, town, _ in found)


@pytest.mark.parametrize("asked", ["HISTOGRAM(town)", "DIRICHLET_POSTERIOR_MEAN(town)"])
def test_a_map_that_is_empty_in_one_group_is_null(shop: Path, asked: str) -> None:
    found = dict(rows(shop, "ana", f"SELECT side, {asked} FROM people GROUP BY side"))
    assert found["b"] is None and found["a"] is not None


def test_no_number_of_a_release_is_shown(shop: Path) -> None:
    """It would count others' releases, and tell that somebody had made the same table before."""
    create = "CREATE SYNTHETIC TABLE {} AS SELECT ok, age FROM people WITH (epsilon = 2, bins = 4)"
    told = {}
    for user, name in (("bob", "first"), ("ana", "second"), ("ana", "third")):
        rows(shop, user, create.format(name))
        ((definition,),) = rows(shop, user, f"SELECT definition FROM pg_views WHERE viewname = '{name}'")
        told[name] = definition
    assert told["second"] == told["third"] != told["first"]  # one release: of each account's own key
    assert all(len(text.split('"')[3]) == 24 and not text.split('"')[3].isdigit() for text in told.values())
    key = told["first"].split('"')[3]
    with pytest.raises(Error, match="does not exist"):
        rows(shop, "ana", f'SELECT * FROM dpsql_made."{key}"')


def test_a_synthetic_table_is_in_the_schema_that_catalogs_name(shop: Path) -> None:
    rows(shop, "bob", "CREATE SYNTHETIC TABLE own AS SELECT ok, age FROM people WITH (epsilon = 2, bins = 4)")
    for sql in ("SELECT * FROM public.own LIMIT 1", 'SELECT "own"."age", 1 FROM "public"."own" AS "own" LIMIT 1',
                "SELECT MAX(public.own.age), 1 FROM public.own"):  # fmt: skip
        assert len(rows(shop, "bob", sql)[0]) == 2


def test_rows_that_are_left_out_and_answers_as_recorded_are_reported(shop: Path) -> None:
    create = "CREATE SYNTHETIC TABLE said AS SELECT answer, age FROM people WITH (epsilon = 2, bins = 4)"
    with dpsql.connect(str(shop), user="bob") as connection:
        notices = " ".join(map(str, connection.sql(create).notices))
    assert "rows without a known value in answer, age are left out" in notices
    assert "people.answer holds randomized answers" in notices


def test_explaining_what_is_made_takes_parameters(shop: Path) -> None:
    from dpsql.session.dataset.dataset import open_dataset
    from dpsql.session.session import Session

    session = Session(open_dataset(str(shop)), user="ana")
    try:
        sql = "EXPLAIN CREATE SYNTHETIC TABLE z AS SELECT ok FROM people WHERE age > $1"
        assert len(session.prepare(sql).parameters) == 1
        assert session.execute(sql, [3]).rows
    finally:
        session.close()


ROWS = """
dpsql: 1
engine: duckdb:///{folder}/rows.duckdb
ledger: sqlite:///{folder}/rows.ledger
privacy:
  unit: row
  budget: {{epsilon: 10, delta: 1e-6}}
  query: {{epsilon: 1, delta: 1e-8}}
tables:
  events:
    unit: row
    columns:
      v: {{type: integer, bounds: [0, 9]}}
  days:
    public: true
    columns:
      d: {{type: integer}}
"""


def test_copies_of_a_row_that_a_join_makes_are_in_one_block(tmp_path: Path) -> None:
    """Whether a block's count is odd jumps with every copy: those of one row must not turn over several blocks."""
    file = tmp_path / "rows.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE events AS SELECT (i % 10)::INTEGER AS v FROM range(40) AS t(i)")
        connection.execute("CREATE TABLE days AS SELECT i::INTEGER AS d FROM range(21) AS t(i)")
    (tmp_path / "rows.yaml").write_text(ROWS.format(folder=tmp_path), encoding="utf-8")
    odd = "count(*) - 2 * floor(count(*) / 2)"
    sql = f"SELECT BLOCKWISE({odd}, 0, 1, blocks => 50) FROM events JOIN days ON v + d >= 0"
    with dpsql.connect(str(tmp_path / "rows.yaml")) as dpsql_connection:
        (release,) = dpsql_connection.explain(sql).releases
    (bundle,) = release.bundles
    with duckdb.connect(str(file)) as connection:
        ((before,),) = connection.execute(release.sql).fetchall()
        moved = []
        for value in range(10):
            connection.execute("INSERT INTO events VALUES (?)", [value])
            ((after,),) = connection.execute(release.sql).fetchall()
            moved.append(abs(after - before))
            before = after
    assert 0 < max(moved) <= bundle.l1


WIDE = """
dpsql: 1
engine: duckdb:///{folder}/wide.duckdb
ledger: sqlite:///{folder}/wide.ledger
privacy:
  unit: coins.id
  budget: {{epsilon: 100, delta: 1e-5}}
  query: {{epsilon: 1, delta: 1e-8}}
  contributions: {{rows: 1, groups: 1}}
tables:
  coins:
    unit: id
    unique: [id]
    columns:
      id: {{type: bigint}}
      sick: {{type: boolean}}
      amount: {{type: "decimal(38,18)", bounds: [0, 1000]}}
      wide: {{type: "decimal(38,10)", bounds: [-1e17, 1e17]}}
      whole: {{type: bigint, bounds: [-9223372036854775808, 9223372036854775807]}}
"""


@pytest.fixture
def wide(tmp_path: Path) -> Iterator[dpsql.Connection]:
    with duckdb.connect(str(tmp_path / "wide.duckdb")) as connection:
        connection.execute("CREATE TABLE coins AS SELECT i::BIGINT AS id, i = 1 AS sick, 3::DECIMAL(38,18) AS amount, "
                           "3::DECIMAL(38,10) AS wide, i::BIGINT AS whole FROM range(5) t(i)")  # fmt: skip
    (tmp_path / "wide.yaml").write_text(WIDE.format(folder=tmp_path), encoding="utf-8")
    with dpsql.connect(str(tmp_path / "wide.yaml")) as connection:
        yield connection


@pytest.mark.parametrize("who", ["id = 1 AND sick", "id = 2 AND sick", "id = 77"])
def test_no_row_makes_the_engine_fail_at_a_declared_bound(wide: dpsql.Connection, who: str) -> None:
    """A bound of 22 digits could not be read as DECIMAL(38,18): the engine failed where a row was compared with it."""
    assert wide.sql(f"SELECT COUNT(*) FROM coins WHERE {who} AND amount >= 0").scalar() is not None


@pytest.mark.parametrize(("column", "bins"), [("whole", 2), ("whole", 16), ("wide", 16), ("amount", 16)])
def test_a_synthetic_table_of_the_widest_columns_is_made(wide: dpsql.Connection, column: str, bins: int) -> None:
    """Bins of 2^63 values and more were charged, and then could not be drawn from."""
    wide.sql(f"CREATE SYNTHETIC TABLE t AS SELECT sick, {column} FROM coins WITH (bins = {bins}, epsilon = 20)")
    found = wide.sql(f"SELECT MIN({column}), MAX({column}) FROM t").rows
    lower, upper = {"whole": (-(2**63), 2**63 - 1), "wide": (-(10**17), 10**17), "amount": (0, 1000)}[column]
    assert all(lower <= value <= upper for row in found for value in row if value is not None)


def test_a_schema_that_cannot_be_opened_is_not_called_well(shop: Path, tmp_path: Path) -> None:
    from dpsql.owner.check.check import check_schema

    text = shop.read_text(encoding="utf-8") + 'statistics:\n  spread: {of: [x], sql: "foo(x)"}\n'
    (tmp_path / "wrong.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(Error, match="spread"):
        check_schema(tmp_path / "wrong.yaml", data=False)
