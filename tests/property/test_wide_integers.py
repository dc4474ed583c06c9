"""Whole numbers of more than 64 bits, as ids and as columns: each counts, is compared and is a key as it is.

The same rows stand in a DuckDB file, in Parquet and in CSV. Without noise the answers are DuckDB's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.errors import OperationalError
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session
from tests.support.shop import Silence, silent_widths

UNITS = 60

SCHEMA = """
dpsql: 1
{engine}
privacy:
  unit: people.pid
  budget: {{epsilon: 1000000, delta: 0.5}}
  query: {{epsilon: 10, delta: 1e-3}}
  contributions: {{rows: 9, groups: 9}}
tables:
  people:
    {people}
    unit: pid
    unique: [pid]
    columns: {{pid: {{type: hugeint}}, age: {{type: integer, bounds: [0, 100]}}}}
  visits:
    {visits}
    unit: {{pid: people.pid}}
    columns:
      pid: {{type: hugeint}}
      h: {{type: hugeint}}
      listed: {{type: hugeint, values: [9223372036854775808, 18446744073709551615], nullable: true}}
      bounded: {{type: hugeint, bounds: [-5, 100]}}
      n: {{type: bigint}}
"""

# Nearer to each other than doubles are, on both sides of 2^63, up to the last of 64 bits.
WIDE = (0, 7, 2**63 - 1, 2**63, 2**63 + 1, 10**19, 10**19 + 1, 2**64 - 1)

ROWS = f"""
CREATE TABLE people AS
    SELECT (18446744073709551615 - i * 5)::UBIGINT AS pid, (i % 90)::INTEGER AS age FROM range({UNITS}) t(i);
CREATE TABLE visits AS
    SELECT pid, {list(WIDE)}[1 + (i % {len(WIDE)})]::UBIGINT AS h,
        [9223372036854775808, 18446744073709551615, 5][1 + (i % 3)]::UBIGINT AS listed,
        [3, 100, 18446744073709551615][1 + (i % 3)]::UBIGINT AS bounded, i AS n
    FROM (SELECT pid, j + 4 * ((18446744073709551615 - pid)::BIGINT // 5) AS i FROM people CROSS JOIN range(4) r(j));
"""


@pytest.fixture(scope="module", params=["duckdb", "parquet", "csv"])
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Session, duckdb.DuckDBPyConnection]]:
    folder, kind = tmp_path_factory.mktemp("wide"), request.param
    reference = duckdb.connect(str(folder / "data.duckdb"))
    reference.execute(ROWS)
    engine, sources = "engine: duckdb:///data.duckdb", {"people": "", "visits": ""}
    if kind != "duckdb":
        for table in sources:
            reference.execute(f"COPY {table} TO '{folder}/{table}.{kind}' (FORMAT {kind})")
        engine, sources = "", {table: f"source: {table}.{kind}" for table in sources}
    reference.close()
    (folder / "s.yaml").write_text(SCHEMA.format(engine=engine, **sources))
    reference = duckdb.connect()
    reference.execute(ROWS)
    reference.execute(
        "UPDATE visits SET listed = NULL WHERE listed = 5; UPDATE visits SET bounded = 100 WHERE bounded > 100"
    )
    with silent_widths():
        session = Session(open_dataset(folder / "s.yaml"), sampler=Silence())
        yield session, reference
        session.dataset.close()
    reference.close()


STATEMENTS = [
    "SELECT COUNT(*), COUNT(h), COUNT(DISTINCT h), COUNT(DISTINCT pid) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE h IS NULL",
    "SELECT COUNT(*) FROM visits WHERE h IS NOT NULL",
    *(f"SELECT COUNT(*) FROM visits WHERE h {op} {number}"
      for op in ("=", "<>", "<", ">=") for number in (2**63 - 1, 2**63, 10**19 + 1, 2**64 - 1, 2**64, 2**127 - 1)),
    "SELECT COUNT(*) FROM visits WHERE h > -170141183460469231731687303715884105728",
    "SELECT COUNT(*) FROM visits WHERE h IN (10000000000000000001, 9223372036854775808, 5)",
    "SELECT COUNT(*) FROM visits WHERE h NOT IN (10000000000000000001, 9223372036854775808)",
    "SELECT COUNT(*) FROM visits WHERE h = '10000000000000000001'",
    "SELECT COUNT(*) FROM visits WHERE h BETWEEN 9223372036854775808 AND 10000000000000000000",
    "SELECT h, COUNT(*) FROM visits GROUP BY h",
    "SELECT listed, COUNT(*) FROM visits GROUP BY listed",
    "SELECT h, listed, COUNT(*) FROM visits GROUP BY h, listed",
    "SELECT h > 10000000000000000000, COUNT(*) FROM visits GROUP BY 1",
    "SELECT CASE WHEN h > 7 THEN h ELSE n END, COUNT(*) FROM visits WHERE h <> 7 AND h <> 0 GROUP BY 1",
    "SELECT COALESCE(listed, 1), COUNT(*) FROM visits GROUP BY 1",
    "SELECT CAST(h AS varchar), COUNT(*) FROM visits GROUP BY 1",
    "SELECT CAST(h AS decimal(20,0)), COUNT(*) FROM visits GROUP BY 1",
    "SELECT COUNT(*) FROM people JOIN visits USING (pid)",
    "SELECT COUNT(*) FROM visits a JOIN visits b ON a.pid = b.pid AND a.h = b.h",
    "SELECT top, COUNT(*) FROM (SELECT pid, MAX(h) AS top FROM visits GROUP BY pid) GROUP BY top",
    "SELECT kinds, COUNT(*) FROM (SELECT pid, COUNT(DISTINCT h) AS kinds FROM visits GROUP BY pid) GROUP BY kinds",
    "SELECT x, COUNT(*) FROM (SELECT pid, h AS x FROM visits UNION ALL SELECT pid, age FROM people) GROUP BY x "
    "HAVING x > 1000",
    "SELECT COUNT(*) FROM people WHERE pid >= 18446744073709551415",
    "SELECT SUM(bounded), COUNT(bounded) FROM visits",
    "SELECT SUM(CASE WHEN h > 100 THEN 100 WHEN h < 0 THEN 0 ELSE n * 0 + h END) FROM visits WHERE h > 7",
]  # fmt: skip


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_answer_is_the_engines(sql: str, both: tuple[Session, duckdb.DuckDBPyConnection]) -> None:
    session, reference = both
    ours, theirs = session.execute(sql).rows, reference.execute(sql).fetchall()
    assert sorted(map(tuple, ours), key=repr) == sorted(theirs, key=repr)


def test_a_clip_moves_what_is_beyond_64_bits(both: tuple[Session, duckdb.DuckDBPyConnection]) -> None:
    session, reference = both
    expected = reference.execute("SELECT SUM(LEAST(h, 9)) FROM visits").fetchall()
    answer = session.execute("SELECT SUM(CLIP(h, 0, 9)) FROM visits")
    assert [tuple(row) for row in answer.rows] == expected
    assert not any("64 bits" in notice for notice in answer.notices)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(CLIP(h + 1, 0, 9)) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE h % 10 = 7",
        "SELECT COUNT(*) FROM visits WHERE abs(h) = 7",
        "SELECT AVG(CLIP(top - 1, 0, 9)) FROM (SELECT pid, MAX(h) AS top FROM visits GROUP BY pid)",
    ],
)
def test_arithmetic_says_that_it_has_64_bits(sql: str, both: tuple[Session, duckdb.DuckDBPyConnection]) -> None:
    assert any("beyond 64 bits" in notice for notice in both[0].execute(sql).notices)


def test_arithmetic_of_bounded_values_says_nothing(both: tuple[Session, duckdb.DuckDBPyConnection]) -> None:
    session, reference = both
    sql = "SELECT SUM(bounded + 1) FROM visits"
    answer = session.execute(sql)
    assert [tuple(row) for row in answer.rows] == reference.execute(sql).fetchall()
    assert not any("64 bits" in notice for notice in answer.notices)


def open_ids(folder: Path, type_: str, values: list[str]) -> Session:
    (folder / "s.yaml").write_text(
        "dpsql: 1\nengine: duckdb:///data.duckdb\n"
        "privacy: {unit: v.pid, budget: {epsilon: 1000, delta: 0.5}, query: {epsilon: 10, delta: 1e-3}, "
        "contributions: {rows: 9}}\n"
        "tables: {v: {unit: pid, columns: {pid: {type: hugeint}, n: {type: integer, bounds: [0, 9]}}}}\n"
    )
    with duckdb.connect(str(folder / "data.duckdb")) as db:
        db.execute(f"CREATE TABLE v (pid {type_}, n INTEGER)")
        db.execute(f"INSERT INTO v VALUES {', '.join(f'({value}, 1)' for value in values)}")
    return Session(open_dataset(folder / "s.yaml"), sampler=Silence())


@pytest.mark.parametrize("type_", ["HUGEINT", "UHUGEINT", "UBIGINT", "DECIMAL(38,0)", "DECIMAL(20,0)"])
def test_no_two_ids_become_one(tmp_path: Path, type_: str) -> None:
    """Neighbors of a double, and of 64 bits: each is a unit of its own."""
    values = [2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]
    if type_ in ("HUGEINT", "UHUGEINT"):
        values += [2**64, 2**126, 2**126 + 1, 2**127 - 2, 2**127 - 1]
    if type_ == "HUGEINT":
        values += [-(2**63), -(2**63) - 1, -(2**127)]
    with silent_widths():
        session = open_ids(tmp_path, type_, [f"'{value}'::{type_}" for value in values])
        ((units, rows),) = session.execute("SELECT COUNT(DISTINCT pid), COUNT(*) FROM v").rows
        session.dataset.close()
    assert (units, rows) == (len(values), len(values))


def test_an_id_beyond_128_bits_is_none(tmp_path: Path) -> None:
    with silent_widths():
        session = open_ids(tmp_path, "UHUGEINT", [f"'{2**127 - 1}'::UHUGEINT", f"'{2**128 - 1}'::UHUGEINT"])
        ((rows,),) = session.execute("SELECT COUNT(*) FROM v").rows
        session.dataset.close()
    assert rows == 1


@pytest.mark.parametrize("type_", ["DECIMAL(20,2)", "DOUBLE", "VARCHAR"])
def test_an_id_that_a_cast_could_merge_is_not_served(tmp_path: Path, type_: str) -> None:
    with pytest.raises(OperationalError, match="in the data and hugeint in the schema"):
        open_ids(tmp_path, type_, ["'7'", "'7.4'"] if type_ != "VARCHAR" else ["'7'", "' 7'"])


def test_ids_in_csv_keep_their_spelling(tmp_path: Path) -> None:
    """'018446744073709551615' is another id than '18446744073709551615'; neither is its neighbor as a double."""
    (tmp_path / "v.csv").write_text(
        "pid,n\n18446744073709551615,1\n018446744073709551615,1\n18446744073709551614,1\n18446744073709551615.2,1\n"
    )
    (tmp_path / "s.yaml").write_text(
        "dpsql: 1\nprivacy: {unit: v.pid, budget: {epsilon: 1000, delta: 0.5}, query: {epsilon: 10, delta: 1e-3}, "
        "contributions: {rows: 9}}\n"
        "tables: {v: {source: v.csv, unit: pid, columns: {pid: {type: hugeint}, n: {type: integer}}}}\n"
    )
    with silent_widths():
        session = Session(open_dataset(tmp_path / "s.yaml"), sampler=Silence())
        ((units, rows),) = session.execute("SELECT COUNT(DISTINCT pid), COUNT(*) FROM v").rows
        session.dataset.close()
    assert (units, rows) == (2, 2)
