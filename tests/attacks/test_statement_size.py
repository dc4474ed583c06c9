"""Very wide and very deep statements: refused or answered in little time and memory, in our words, without a crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dpsql.errors import LimitExceeded
from tests.support.attack_hospital import DATA, build, outcome, schema_text
from tests.support.run_low_memory import LARGE, MEGABYTES, SECONDS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def listed(template: str, count: int, between: str = ", ") -> str:
    return between.join(template.format(i=i, j=i - 1) for i in range(count))


def ctes(first: str, then: str, last: str, depth: int) -> str:
    steps = "".join(f", a{i} AS ({then.format(j=i - 1)})" for i in range(1, depth + 1))
    return f"WITH a0 AS ({first}){steps} {last.format(i=depth)}"


STATEMENTS = {
    "150 parentheses": f"SELECT COUNT(*) FROM visits WHERE {'(' * 150}n > 1{')' * 150}",
    "199 parentheses": f"SELECT COUNT(*) FROM visits WHERE {'(' * 199}n > 1{')' * 199}",
    "250 parentheses": f"SELECT COUNT(*) FROM visits WHERE {'(' * 250}n > 1{')' * 250}",
    "open parentheses": "SELECT " + "(" * 20000,
    "closed parentheses": "SELECT COUNT(*) FROM visits" + ")" * 20000,
    "60 sub-selects": f"SELECT COUNT(*) FROM {'(SELECT * FROM ' * 60}visits{') t' * 60}",
    "190 sub-selects": f"SELECT COUNT(*) FROM {'(SELECT * FROM ' * 190}visits{') t' * 190}",
    "1,000 columns": f"SELECT {listed('COUNT(*) AS c{i}', 1000)} FROM visits",
    "10,000 in a list": f"SELECT COUNT(*) FROM visits WHERE n IN ({listed('{i}', 10000)})",
    "10,000 groups in a list": f"SELECT n, COUNT(*) FROM visits WHERE n IN ({listed('{i}', 10000)}) GROUP BY n",
    "1,000 unions": listed("SELECT COUNT(*) FROM visits WHERE n = {i}", 1000, " UNION ALL "),
    "1,000 unions of owned rows": f"SELECT COUNT(*) FROM ({listed('SELECT pid FROM visits', 1000, ' UNION ALL ')}) t",
    "500 joins": f"SELECT COUNT(*) FROM visits v {listed('JOIN people p{i} ON p{i}.pid = v.pid', 500, ' ')}",
    "300 public joins": f"SELECT COUNT(*) FROM visits v {listed('JOIN wards p{i} ON p{i}.ward = v.ward', 300, ' ')}",
    "50,000 words": "SELECT COUNT(*) FROM visits WHERE n = 1" + " OR n = 2" * 12600,
    "3,000 alternatives": f"SELECT COUNT(*) FROM visits WHERE {listed('n = {i}', 3000, ' OR ')}",
    "1,500 conditions": f"SELECT COUNT(*) FROM visits WHERE {listed('n BETWEEN 1 AND 5', 1500, ' AND ')}",
    "a literal of 900,000": f"SELECT COUNT(*) FROM visits WHERE ward = '{'x' * 900_000}'",
    "a literal of 2,000,000": f"SELECT COUNT(*) FROM visits WHERE ward = '{'x' * 2_000_000}'",
    "a number of 100,000 digits": f"SELECT COUNT(*) FROM visits WHERE n > {'9' * 100_000}",
    "a name of 100,000": f"SELECT COUNT(*) AS {'x' * 100_000} FROM visits",
    "a table of 100,000": f"SELECT COUNT(*) FROM {'x' * 100_000}",
    "190 cases": f"SELECT COUNT(*) FROM visits WHERE {'CASE WHEN n > 1 THEN ' * 190}n > 0{' END' * 190}",
    "400 arms": f"SELECT CASE {listed('WHEN n < {i} THEN {i}', 400, ' ')} END AS k, COUNT(*) FROM visits GROUP BY 1",
    "150 NOT": f"SELECT COUNT(*) FROM visits WHERE {'NOT ' * 150}n > 1",
    "5,000 NOT": f"SELECT COUNT(*) FROM visits WHERE {'NOT ' * 5000}n > 1",
    "5,000 minus": f"SELECT COUNT(*) FROM visits WHERE n > {'- ' * 5000}1",
    "3,000 plus": f"SELECT SUM(CLIP(n{' + 1' * 3000}, 0, 9)) FROM visits",
    "3,000 texts": f"SELECT COUNT(*) FROM visits WHERE ward{' || chr(65)' * 3000} = 'y'",
    "3,000 casts": f"SELECT COUNT(*) FROM visits WHERE n{'::bigint' * 3000} > 1",
    "5,000 plus after the noise": f"SELECT COUNT(*){' + 1' * 5000} FROM visits",
    "joins that double": ctes("SELECT pid FROM people", "SELECT x.pid FROM a{j} x JOIN a{j} y ON x.pid = y.pid",
                              "SELECT COUNT(*) FROM a{i}", 20),
    "unions that double": ctes("SELECT pid FROM people", "SELECT pid FROM a{j} UNION ALL SELECT pid FROM a{j}",
                               "SELECT COUNT(*) FROM a{i}", 20),
    "releases that double": ctes("SELECT COUNT(*) AS c FROM people", "SELECT c FROM a{j} UNION ALL SELECT c FROM a{j}",
                                 "SELECT COUNT(*) FROM a{i}", 15),
    "holes that double": ctes("SELECT i FROM nums", "SELECT x.i FROM a{j} x JOIN a{j} y ON TRUE",
                              "SELECT COUNT(*) FROM visits WHERE n IN (SELECT i FROM a{i})", 12),
    "60 EXISTS": "SELECT COUNT(*) FROM people p0 WHERE "
    + "".join(f"EXISTS (SELECT 1 FROM people p{i} WHERE p{i}.pid = p{i - 1}.pid AND " for i in range(1,
        60)) + "TRUE" + ")" * 59,
    "aliases that double": "SELECT COUNT(*) AS a0" + "".join(f", a{i - 1} + a{i - 1} AS a{i}" for i in range(1,
        30)) + " FROM visits",
    "sums that double": f"SELECT SUM(CLIP(a, 0, 1)) FROM {'(SELECT pid, a + a AS a FROM ' * 30}(SELECT pid, n AS a "
    f"FROM visits) t{') t' * 30}",
    "a long LIKE": f"SELECT COUNT(*) FROM visits WHERE ward LIKE '{'%a' * 20000}'",
    "a nested pattern": f"SELECT COUNT(*) FROM visits WHERE ward ~ '{'(' * 500}a{')*' * 500}'",
    "a repeated pattern": "SELECT COUNT(*) FROM visits WHERE ward ~ '((a{1,100}){1,100}){1,100}'",
    "a long pattern": f"SELECT COUNT(*) FROM visits WHERE ward ~ '{'[a-z]' * 20000}'",
    "a pattern after the noise": "SELECT COUNT(*), regexp_matches('a', '((a{1,100}){1,100}){1,100}') FROM visits",
    "ROLLUP of 20": f"SELECT COUNT(*) FROM visits GROUP BY ROLLUP ({listed('n + {i}', 20)})",
    "CUBE of 20": f"SELECT COUNT(*) FROM visits GROUP BY CUBE ({listed('n + {i}', 20)})",
    "a product of sets": f"SELECT COUNT(*) FROM visits GROUP BY {listed('ROLLUP (kind, n)', 12)}",
    "5,000 sets": f"SELECT COUNT(*) FROM visits GROUP BY GROUPING SETS ({listed('(kind)', 5000)})",
    "200 keys": f"SELECT COUNT(*) FROM visits GROUP BY {listed('n + {i}', 200)}",
    "5,000 fractions": f"SELECT QUANTILE_CONT(n, [{listed('0.{i}', 5000)}]) FROM visits",
    "100 columns of PIVOT": "SELECT * FROM (SELECT kind, n FROM visits) PIVOT (SUM(n) FOR kind IN ("
    + listed("'k{i}'", 100) + "))",
    "public rows of 12 joins": f"SELECT COUNT(*) FROM nums a {listed('CROSS JOIN nums a{i}', 12, ' ')}",
    "a long series": "SELECT (SELECT COUNT(*) FROM visits), COUNT(*) FROM range(100000000000)",
    "no end": "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT COUNT(*), (SELECT MAX(i) FROM "
    "r) FROM visits",
    "3,000 points": "SELECT " + "a." * 3000 + "b FROM visits",
    "30,000 comments": "SELECT " + "/* x */ " * 30000 + "COUNT(*) FROM visits",
    "comments in comments": "/*" * 20000 + " SELECT COUNT(*) FROM visits",
    "20,000 semicolons": "SELECT COUNT(*) FROM visits" + ";" * 20000,
    "80,000 quotes": "SELECT COUNT(*) FROM visits WHERE ward = " + "''" * 40000,
    "lists in lists": f"SELECT COUNT(*), {'[' * 180}1{']' * 180} FROM visits",
    "2,000 intervals": f"SELECT COUNT(*) FROM visits WHERE day + {listed(chr(73) + 'NTERVAL 1 DAY', 2000, ' + ')} > "
    f"DATE '2024-01-01'",
    "EXPLAIN of EXPLAIN": "EXPLAIN " * 3000 + "SELECT COUNT(*) FROM visits",
    "SET to 900,000 digits": "SET epsilon = " + "1" * 900_000,
    "SHOW of a long name": "SHOW " + "x." * 20000 + "y",
}  # fmt: skip
ANSWERED = {"150 parentheses", "199 parentheses", "60 sub-selects", "1,000 columns", "3,000 alternatives", "150 NOT",
    "200 keys",
            "20,000 semicolons", "30,000 comments", "ROLLUP of 20", "190 cases"}  # fmt: skip


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """All in one child process: a crash would end it, and the rest of the list would be missing."""
    folder = tmp_path_factory.mktemp("wide")
    (folder / "statements.json").write_text(json.dumps(STATEMENTS))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.support.run_low_memory", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, timeout=900, check=False)
    found: dict[str, dict[str, Any]] = {}
    for line in done.stdout.splitlines():
        found |= json.loads(line)
    return found


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_of_any_size_ends_well(outcomes: dict[str, dict[str, Any]], name: str) -> None:
    assert name in outcomes, "the process did not live to answer"
    found = outcomes[name]
    said = found["said"]
    assert not said.startswith(("!!!", "InternalError", "EngineFailed")), said
    assert found["seconds"] < SECONDS and found["megabytes"] < (MEGABYTES if name not in LARGE else 1200)
    assert said == "answered" or not found["charges"] or said.startswith(("DataError", "OperationalError"))
    assert said == "answered" or name not in ANSWERED


def test_a_refusal_for_size_says_so(outcomes: dict[str, dict[str, Any]]) -> None:
    limited = [name for name, found in outcomes.items() if found["said"].startswith("LimitExceeded")]
    assert len(limited) > 15


# --- what grows faster than the statement -----------------------------------------------------------------------------


def seconds(folder: Path, sql: str, run: bool) -> float:
    folder.mkdir()
    session = build(folder, "h", schema_text("h"), DATA)
    session.explain("SELECT COUNT(*) FROM visits")
    started = time.process_time()
    if run:
        assert outcome(session, sql) == "answered"
    else:
        session.explain(sql)
    return time.process_time() - started


def least_seconds(folder: Path, sql: str, run: bool) -> float:
    """The least of three times: Python may collect the garbage of all tests before it in one of them."""
    folder.mkdir()
    return min(seconds(folder / str(turn), sql, run) for turn in range(3))


def test_four_times_as_many_sums_take_about_four_times_as_long(tmp_path: Path) -> None:
    few, many = (
        least_seconds(tmp_path / str(k), f"SELECT {listed('SUM(n + {i}) AS c{i}', k)} FROM visits", False)
        for k in (80, 320)
    )
    assert many < 8 * few


def test_thousands_of_sums_are_refused_before_any_work(tmp_path: Path) -> None:
    session = build(tmp_path, "h", schema_text("h"), DATA)
    started = time.process_time()
    with pytest.raises(LimitExceeded, match="more than 400 different aggregates"):
        session.explain(f"SELECT {listed('SUM(n + {i}) AS c{i}', 2000)} FROM visits")
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize("chain", [
    ("n + {i} <> 5", " AND "), ("ward NOT LIKE 'a{i}%'", " AND "), ("ward LIKE '%a{i}%'", " AND "),
    ("n = {i} AND ward = 'a{i}'", " OR "), ("n IS DISTINCT FROM {i}", " AND "), ("n + {i} > 0", " OR "),
])  # fmt: skip
def test_chains_that_an_engine_is_slow_in_are_refused_before_the_charge(tmp_path: Path, chain: tuple[str, str]) -> None:
    """DuckDB's optimizer took 24 to 200 s for 3,000 parts."""
    session = build(tmp_path, "h", schema_text("h"), DATA)
    said = outcome(session, f"SELECT COUNT(*) FROM visits WHERE {listed(chain[0], 3000, chain[1])}")
    assert said.startswith("LimitExceeded") and session.budget().charges == 0
    assert outcome(session, f"SELECT COUNT(*) FROM visits WHERE {listed(chain[0], 100, chain[1])}") == "answered"


def test_four_times_as_many_exceptions_take_about_four_times_as_long(tmp_path: Path) -> None:
    few, many = (
        least_seconds(tmp_path / str(k), f"SELECT COUNT(*) FROM visits WHERE {listed('n <> {i}', k, ' AND ')}", True)
        for k in (80, 320)
    )
    assert many < 8 * few


def test_a_written_list_that_is_too_long_is_refused_before_the_charge(tmp_path: Path) -> None:
    session = build(tmp_path, "h", schema_text("h"), DATA)
    rows = listed("('k{i}')", 1500)
    said = outcome(session, f"SELECT COUNT(*) FROM visits v JOIN (VALUES {rows}) t(k) ON t.k = v.ward")
    assert said.startswith("LimitExceeded") and session.budget().charges == 0
    few = "SELECT COUNT(*) FROM visits v JOIN (VALUES ('k1'), ('k2')) t(k) ON t.k = v.ward"
    assert outcome(session, few) == "answered" and session.budget().charges == 1


@pytest.mark.parametrize("condition", [
    "n = (SELECT i FROM nums)", "n IN (SELECT * FROM generate_series(1, 100000))", "n > (SELECT CAST('x' AS INTEGER))",
    "n = (SELECT MAX(i) FROM nums WHERE CAST('x' || i AS INTEGER) > 0)",
])  # fmt: skip
def test_what_is_wrong_with_public_rows_is_reported_before_the_charge(tmp_path: Path, condition: str) -> None:
    """They are read first: a sub-select that reads no release depends on nothing that is paid for."""
    session = build(tmp_path, "h", schema_text("h"), DATA)
    assert outcome(session, f"SELECT COUNT(*) FROM visits WHERE {condition}") != "answered"
    assert session.budget().charges == 0


GROW = """
import resource, sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from tests.support.attack_hospital import DATA, build, outcome, schema_text
session = build(Path(sys.argv[2]), "h", schema_text("h"), DATA)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    session.describe("SELECT repeat(repeat(repeat('xxxxxxxxxx', 10000), 10000), 10), COUNT(*) FROM visits")
except Exception as error:
    print(error, file=sys.stderr)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_describing_a_statement_does_not_make_its_texts(tmp_path: Path) -> None:
    """`repeat` in `repeat`: EXPLAIN took 29 s and 5.7 GB, which neither timer nor memory limit of DuckDB sees."""
    done = subprocess.run([sys.executable, "-c", GROW, str(ROOT), str(tmp_path)], cwd=ROOT, text=True,
                          capture_output=True, timeout=600, check=True)  # fmt: skip
    assert int(done.stdout) < MEGABYTES
