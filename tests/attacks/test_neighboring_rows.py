"""Attacks that once told neighbors apart, or could have: each must find the same on both sides, or be refused.

The victim is unit 7. Every statement makes something overflow, raise or look different for rows of that unit only.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from dpsql.compiler.plan.expressions import ROW_WEIGHT
from dpsql.errors import Error, LimitExceeded, OperationalError, SchemaError
from dpsql.privacy.partition_selection import WEIGHT_ONE, key_weight
from dpsql.schema.load import load_schema
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session

pytestmark = pytest.mark.slow

SCHEMA = """
dpsql: 1
engine: duckdb:///{name}.duckdb
privacy:
  unit: people.pid
  budget: {{epsilon: 1000000, delta: 0.5}}
  query: {{epsilon: 1, delta: 1e-6}}
  contributions: {{rows: 3, groups: 3}}
tables:
  people:
    unit: pid
    unique: [pid]
    columns: {{pid: {{type: bigint}}, code: {{type: integer}}}}
  visits:
    unit: {{pid: people.pid}}
    columns:
      pid: {{type: bigint}}
      ward: {{type: text}}
      code: {{type: text}}
      n: {{type: bigint, bounds: [0, 1000]}}
      big: {{type: bigint}}
      huge: {{type: hugeint}}
      x: {{type: double, bounds: [-5, 5]}}
      t: {{type: time}}
"""


def session(folder: Path, name: str, victim: bool) -> Session:
    folder.joinpath(f"{name}.yaml").write_text(SCHEMA.format(name=name))
    with duckdb.connect(str(folder / f"{name}.duckdb")) as db:
        db.execute("CREATE TABLE people (pid BIGINT, code INTEGER)")
        db.execute("CREATE TABLE visits (pid BIGINT, ward VARCHAR, code VARCHAR, n BIGINT, big BIGINT, huge HUGEINT, "
                   "x DOUBLE, t TIME)")  # fmt: skip
        db.execute("INSERT INTO people SELECT i, i FROM range(20, 2020) r(i)")
        db.execute("INSERT INTO visits SELECT i, 'w', i::VARCHAR, i, i, i, 0.3, TIME '10:00' FROM range(20, 2020) r(i)")
        if victim:
            db.execute("INSERT INTO people VALUES (7, 7)")
            db.execute("INSERT INTO visits VALUES (7, '20000-01-01', 'x', 50, 9223372036854775807, "
                       "170141183460469231731687303715884105727::HUGEINT, -0.3, '24:00:00'), (7, '', '', 1, "
                       "-9223372036854775808, '-170141183460469231731687303715884105728'::HUGEINT, 0, NULL), "
                       "(7, '', '', 1, 0, 18446744073709551615::HUGEINT, 0, NULL)")  # fmt: skip
    return Session(open_dataset(folder / f"{name}.yaml"), opened_with={"empty_groups": "show"})


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Session, Session]:
    folder = tmp_path_factory.mktemp("attacks")
    return session(folder, "without", False), session(folder, "with", True)


STATEMENTS = [
    # a double rounds up past the bounds that the integer arithmetic was proven with
    "SELECT SUM(CLIP(CAST(CAST(CASE WHEN pid = 7 THEN 9223372036854774308 ELSE 0 END AS DOUBLE) AS BIGINT) + 1499,"
    " 0, 1)) FROM visits",
    # the same behind a clip, whose own bounds must be the proof
    "SELECT SUM(CLIP(CLIP(CAST(CAST(CASE WHEN pid = 7 THEN 9223372036854774308 ELSE 0 END AS DOUBLE) AS BIGINT),"
    " 0, 9223372036854775807) + 1499, 0, 1)) FROM visits",
    # -2^63 % -1
    "SELECT SUM(CLIP(CLIP(CASE WHEN pid = 7 THEN -9223372036854775807 - 1 ELSE n END, -9223372036854775808, 0)"
    " % CASE WHEN pid = 7 THEN -1 ELSE 5 END, 0, 1)) FROM visits",
    # conditions may be computed in another order than they are written
    "SELECT COUNT(*) FROM (SELECT big FROM visits WHERE big BETWEEN 0 AND 1000) s WHERE big * big * big < 50",
    "SELECT SUM(CASE WHEN big < 1000 THEN CLIP(big * big, 0, 9) END) FROM visits",
    "SELECT SUM(CLIP(CLIP(n, 1e38, 2e38) * 2, 0, 1)) FROM visits",
    "SELECT SUM(CLIP(huge * huge, 0, 1)) FROM visits",
    "SELECT SUM(CLIP(ABS(huge), 0, 1)) FROM visits",
    # 2^127 - 1 and -2^127, compared, counted, as keys and clipped
    "SELECT COUNT(*) FROM visits WHERE huge > 170141183460469231731687303715884105726",
    "SELECT COUNT(*) FROM visits WHERE huge = 170141183460469231731687303715884105728 OR huge < -1e300",
    "SELECT COUNT(*) FROM visits WHERE -huge - 1 < 0 OR huge + 1 > 0 OR huge // -1 = 1 OR huge % -1 = 0",
    "SELECT huge, COUNT(*) FROM visits GROUP BY huge",
    "SELECT huge + 1, COUNT(*) FROM visits GROUP BY 1",
    "SELECT COUNT(DISTINCT huge) FROM visits",
    "SELECT SUM(CLIP(huge, 0, 1)) FROM visits",
    "SELECT AVG(CLIP(-huge, 0, 1)) FROM visits",
    "SELECT MEDIAN(CLIP(huge, -9, 9)) FROM visits",
    "SELECT MIN(CLIP(huge, -170141183460469231731687303715884105728, 5)) FROM visits",
    "SELECT SUM(CLIP(huge, -170141183460469231731687303715884105728, 170141183460469231731687303715884105727)) "
    "FROM visits",
    "SELECT AVG(m) FROM (SELECT pid, CLIP(MIN(huge), 0, 9) AS m FROM visits GROUP BY pid)",
    "SELECT SUM(CLIP(s, 0, 1)) FROM (SELECT pid, SUM(huge) AS s FROM visits GROUP BY pid)",
    "SELECT COUNT(*) FROM visits WHERE huge IN (SELECT huge FROM visits GROUP BY huge)",
    "SELECT COUNT(*) FROM visits WHERE CAST(huge AS decimal(38,0)) = huge OR CAST(huge AS double) > 1e38 OR n < huge",
    "SELECT COUNT(*) FROM (SELECT huge, LAG(huge) OVER (PARTITION BY pid ORDER BY huge) AS b, "
    "SUM(huge) OVER (PARTITION BY pid) AS s, MEDIAN(huge) OVER (PARTITION BY pid) AS m FROM visits) v "
    "WHERE huge > b OR s > 0 OR m > 0",
    "SELECT COUNT(*) FROM (SELECT pid, huge AS v FROM visits UNION SELECT pid, x FROM visits) s WHERE v > 0",
    "SELECT COUNT(*) FROM (SELECT pid, huge AS v FROM visits UNION SELECT pid, n FROM visits) s WHERE v > 0",
    "SELECT GREATEST(huge, n), COALESCE(huge, n), COUNT(*) FROM visits GROUP BY 1, 2",
    "SELECT MODE(huge) FROM visits",
    "SELECT STDDEV(CLIP(huge, 0, 9)) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE big < 0.000000000000000000000000000001",
    "SELECT COUNT(*) FROM visits WHERE n IN (0.5, 9223372036854775808)",
    "SELECT COUNT(*) FROM people JOIN visits USING (pid, code)",
    "SELECT t, COUNT(*) FROM visits GROUP BY t",
    "SELECT CAST(ward AS DATE), COUNT(*) FROM visits GROUP BY 1",
    "SELECT DATE_TRUNC('year', CAST(ward AS TIMESTAMP)), COUNT(*) FROM visits GROUP BY 1",
    "SELECT ROUND(x), COUNT(*) FROM visits GROUP BY 1",
    "SELECT COUNT(*) FROM (SELECT ward || ward AS a FROM visits) s WHERE a || a LIKE '%x'",
    "SELECT CAST(4611686018427387904 AS INTEGER), COUNT(*) FROM visits GROUP BY 1",
]


def outcome(session: Session, sql: str) -> tuple[object, ...]:
    """What an analyst sees besides noisy numbers: keys are compared by their spelling."""
    try:
        answer = session.execute(sql)
    except Error as error:
        return type(error).__name__, str(error)
    return tuple(c.name for c in answer.columns), [repr(row[:-1]) for row in answer.rows], answer.notices[:0]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_both_sides_look_alike(both: tuple[Session, Session], sql: str) -> None:
    assert outcome(both[0], sql) == outcome(both[1], sql)
    assert outcome(both[1], sql)[0] != "EngineFailed"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(" + "CLIP(" * 100 + "n" + ", 0, 9)" * 100 + ") FROM visits",
        "SELECT SUM(CLIP(" + " + ".join(["x"] * 390) + ", 0, 1)) FROM visits",
    ],
    ids=["nested clips", "a long sum"],
)
def test_statements_that_grow_when_rewritten_are_refused_before_the_charge(
    both: tuple[Session, Session], sql: str
) -> None:
    with pytest.raises(LimitExceeded):
        both[0].execute(sql)


def test_explain_does_not_mention_files(tmp_path: Path) -> None:
    """EXPLAIN is free: nothing in it is made from the data's size or time, nor from where the owner keeps it."""
    texts = []
    for name, rows in (("a", 3), ("b", 4)):
        folder = tmp_path / name
        folder.mkdir()
        folder.joinpath("v.csv").write_text("pid,n\n" + "".join(f"{i},{i}\n" for i in range(rows)))
        folder.joinpath("s.yaml").write_text(
            "dpsql: 1\nprivacy: {unit: v.pid, budget: {epsilon: 9, delta: 1e-6}, contributions: {rows: 1}}\n"
            "tables: {v: {source: v.csv, unit: pid, columns: {pid: {type: bigint}, n: {type: bigint}}}}\n"
        )
        explained = Session(open_dataset(folder / "s.yaml")).explain("SELECT COUNT(*) FROM v")
        texts.append(str(explained))
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("data/v.csv", "read_csv(['data/v.csv'])"),
        ("{path: data/v.csv, delimiter: ','}", "read_csv(['data/v.csv'])"),
        ("data/v.json", "read_json(['data/v.json'])"),
        ("data/*.parquet", "read_parquet(['data/*.parquet'], hive_partitioning = false)"),
        ('"${WHERE}/v.csv"', "read_csv(['${WHERE}/v.csv'])"),
        ('"${WHERE}/v.parquet"', "read_parquet(['${WHERE}/v.parquet'], hive_partitioning = false)"),
    ],
)
def test_explain_shows_sources_as_the_schema_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, shown: str
) -> None:
    """No path of the machine, neither in its text nor in its JSON: not the folder, not the ledger's snapshots, not what
    a variable holds."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("WHERE", str(tmp_path / "data"))
    for kind in ("parquet", "csv", "json"):
        duckdb.execute(f"COPY (SELECT 1::BIGINT AS pid) TO '{tmp_path}/data/v.{kind}'")
    (tmp_path / "s.yaml").write_text(
        "dpsql: 1\nprivacy: {unit: v.pid, budget: {epsilon: 9, delta: 1e-6}, contributions: {rows: 1}}\n"
        f"tables: {{v: {{source: {source}, unit: pid, columns: {{pid: {{type: bigint}}}}}}}}\n"
    )
    session = Session(open_dataset(tmp_path / "s.yaml"))
    for option in ("", "(FORMAT JSON)"):
        said = session.execute(f"EXPLAIN {option} SELECT COUNT(*) FROM v").rows
        text = "\n".join(str(row[0]) for row in said)
        assert shown in text and str(tmp_path) not in text and "snapshots" not in text


def test_explain_shows_the_pattern_and_not_the_files_that_match_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        duckdb.execute(f"COPY (SELECT 1::BIGINT AS pid) TO '{tmp_path / name}.parquet'")
    (tmp_path / "s.yaml").write_text(
        "dpsql: 1\nprivacy: {unit: v.pid, budget: {epsilon: 9, delta: 1e-6}, contributions: {rows: 1}}\n"
        "tables: {v: {source: '*.parquet', unit: pid, columns: {pid: {type: bigint}}}}\n"
    )
    session = Session(open_dataset(tmp_path / "s.yaml"))
    explained = session.explain("SELECT COUNT(*) FROM v")
    assert "one.parquet" not in str(explained) and "*.parquet" in explained.releases[0].sql
    assert session.execute("SELECT COUNT(*) FROM v").rows
    monkeypatch.chdir(tmp_path)
    assert duckdb.execute(explained.releases[0].sql).fetchall() == [(65536,)]


def test_files_that_a_reader_raises_on_are_not_registered(tmp_path: Path) -> None:
    path = tmp_path / "v.parquet"
    duckdb.execute(f"COPY (SELECT 1::BIGINT AS pid, 'abcdefgh' AS ward) TO '{path}'")
    damaged = path.read_bytes().replace(b"abcdefgh", b"abc\xff\xfefgh")
    path.write_bytes(damaged)
    (tmp_path / "s.yaml").write_text(
        "dpsql: 1\nprivacy: {unit: v.pid, budget: {epsilon: 9, delta: 1e-6}, contributions: {rows: 1, groups: 1}}\n"
        "tables: {v: {source: v.parquet, unit: pid, columns: {pid: {type: bigint}, ward: {type: text}}}}\n"
    )
    with pytest.raises(OperationalError):
        open_dataset(tmp_path / "s.yaml")


def test_no_analyst_is_the_dataset(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(SCHEMA.format(name="x") + "analysts: {Dataset: {budget: {epsilon: 1, delta: 1e-9}}}\n")
    with pytest.raises(SchemaError, match="another name"):
        load_schema(path)


def test_equal_hashes_mean_equal_plans(both: tuple[Session, Session]) -> None:
    """Aliases may hold any character, and spellings of one question share cells and recipes."""
    session = both[0]
    first, second = (
        session.compile_statement(sql, ()).steps[0].plan_hash
        for sql in (
            'SELECT SUM(CLIP(p, 0, 50)) FROM (SELECT n AS p, big AS "q=[x],p" FROM visits) v',
            'SELECT SUM(CLIP(p, 0, 50)) FROM (SELECT x AS "p=[n],q", big AS p FROM visits) v',
        )
    )
    assert first != second
    spellings = ["n >= 5", "NOT (n < 5)", "n > 4", "5 <= n"]
    found = [session.compile_statement(f"SELECT AVG(n), COUNT(n), SUM(n) FROM visits WHERE {c}", ()) for c in spellings]
    steps = [compiled.steps[0] for compiled in found]
    assert len({step.plan_hash for step in steps}) == 1
    assert len({(step.sql, step.calibrated.grids) for step in steps}) == 1
    assert len({tuple(answer.recipe for answer in compiled.tables[0].measures) for compiled in found}) == 1


def test_the_weight_of_a_kept_key_is_never_above_its_claim() -> None:
    assert ROW_WEIGHT == WEIGHT_ONE
    rows = duckdb.execute(
        f"SELECT t, CAST(floor({ROW_WEIGHT} / sqrt(t) * (1 - pow(2, -40))) AS BIGINT) FROM range(1, 5000) r(t)"
    ).fetchall()
    assert all(weight <= key_weight(t) for t, weight in rows)
