"""Attacks through joins, holes and public tables: each must find the same on both sides, or be refused for free."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.compiler.compile import compile_query
from dpsql.compiler.plan.expressions import Literal
from dpsql.compiler.rewrite.pipeline import SETS_APART_NOTICE
from dpsql.errors import DataError, Error, InvalidSyntax, LimitExceeded, OperationalError, ProgrammingError
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.postprocess.runtime_parameters import fit_to_type
from dpsql.session.session import Session
from dpsql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    MICROSECOND_INTERVAL,
    REAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    decimal_type,
)

pytestmark = pytest.mark.slow

SCHEMA = """
dpsql: 1
engine: duckdb:///{name}.duckdb
privacy:
  unit: p.uid
  budget: {{epsilon: 1000000, delta: 0.5}}
  query: {{epsilon: 1, delta: 1e-6}}
  contributions: {{rows: 3, groups: 3}}
tables:
  p:
    unit: uid
    columns:
      uid: {{type: bigint}}
      a: {{type: integer, bounds: [0, 100]}}
      x: {{type: double, bounds: [0, 1]}}
      d: {{type: date, bounds: [2000-01-01, 2030-01-01]}}
      t: {{type: timestamp, bounds: [2000-01-01, 2030-01-01]}}
  one:
    unit: {{uid: p.uid}}
    unique: [uid]
    columns: {{uid: {{type: bigint}}, z: {{type: text}}}}
  puba: {{public: true, columns: {{k: {{type: integer}}}}}}
  pubb: {{public: true, columns: {{k: {{type: integer}}}}}}
"""


def session(folder: Path, name: str, victim: bool) -> Session:
    folder.joinpath(f"{name}.yaml").write_text(SCHEMA.format(name=name))
    with duckdb.connect(str(folder / f"{name}.duckdb")) as db:
        keep = "" if victim else "WHERE i % 50 <> 7"
        db.execute(f"CREATE TABLE p AS SELECT (i % 50)::BIGINT AS uid, (i % 7)::INTEGER AS a, 0.5::DOUBLE AS x, "
                   f"DATE '2020-01-01' AS d, TIMESTAMP '2020-01-01' AS t FROM range(500) r(i) {keep}")  # fmt: skip
        db.execute("CREATE TABLE one AS SELECT i::BIGINT AS uid, ('z' || i % 3) AS z FROM range(30000) r(i)")
        db.execute("CREATE TABLE puba AS SELECT 3::INTEGER AS k; CREATE TABLE pubb AS SELECT 6::INTEGER AS k")
    return Session(open_dataset(folder / f"{name}.yaml"), opened_with={"empty_groups": "show"})


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Session, Session]:
    folder = tmp_path_factory.mktemp("wide_attacks")
    return session(folder, "without", False), session(folder, "with", True)


RELEASED = "(SELECT COUNT(*) AS c FROM p) q"
EXTREMES = [  # values past what a hole's type can hold, as public or released sub-selects make them
    "SELECT DATE '5881580-07-10' AS v",
    f"SELECT DATE '5881580-07-10' AS v FROM {RELEASED}",
    "SELECT CAST('290309-12-22 (BC) 00:00:00' AS timestamp) AS v",
    f"SELECT CAST('290309-12-22 (BC) 00:00:00' AS timestamp) AS v FROM {RELEASED}",
    "SELECT COUNT(*) * 10000000000000000000 AS v FROM puba",
    f"SELECT SUM(c) * 1000000000000000000 AS v FROM {RELEASED}",
    "SELECT CAST('nan' AS double precision) AS v",
    f"SELECT 1e308 * c AS v FROM {RELEASED}",
]
USES = ["d < ({})", "last_day(({})) > d", "date_trunc('month', ({})) > t", "date_diff('microsecond', t, ({})) > 0",
        "extract(year FROM ({})) > 5", "a < ({})", "a + ({}) > 0", "a * ({}) > 0", "x < ({})", "a IN ({})",
        "d IN ({})", "d + ({}) > d"]  # fmt: skip


def outcome(session: Session, sql: str) -> str:
    try:
        session.execute(sql)
    except Error as error:
        return f"{type(error).__name__}: {error}"
    return "answered"


@pytest.mark.parametrize("extreme", EXTREMES)
def test_a_value_that_no_type_holds_does_not_fail_for_some_rows_only(
    both: tuple[Session, Session], extreme: str
) -> None:
    answered = 0
    for use in USES:
        sql = f"SELECT COUNT(*) FROM p WHERE uid = 7 AND {use.format(extreme)}"
        found = outcome(both[0], sql)
        assert found == outcome(both[1], sql) and "EngineFailed" not in found, sql
        answered += found == "answered"
    assert answered  # a test of refusals alone would show nothing


FAR = [
    "t - t < INTERVAL '9999 years' * 30", "t - t > -(INTERVAL '9999 years' * 30)",
    "(t - t) > INTERVAL '1 day' * 9223372036854775807", "(t - t) IN (INTERVAL '9999 years' * 31)",
    "(t - t) BETWEEN INTERVAL '1 day' AND INTERVAL '9999 years' * 31",
    "(t - t) > make_interval(days => 4000000) * 99999999", "d + a * (INTERVAL '1 day' * 9223372036854775808) > t",
    "t - a * (INTERVAL '1 day' * 9223372036854775808) > t", "d - (-9223372036854775807 - 1) > d",
    "a + (9223372036854775807 + 1) > 0", "a > - (-9223372036854775808)", "x > 1e308 * 10",
]  # fmt: skip


@pytest.mark.parametrize("condition", FAR)
def test_a_literal_that_its_type_does_not_hold_is_refused_before_any_row_is_read(
    both: tuple[Session, Session], condition: str
) -> None:
    """An engine casts a literal in the rows that reach it."""
    sql = f"SELECT COUNT(*) FROM p WHERE uid = 7 AND {condition}"
    said = outcome(both[0], sql)
    assert said == outcome(both[1], sql) and "EngineFailed" not in said


def test_no_literal_is_beyond_its_type() -> None:
    for value, type_ in (
        (1 << 63, BIGINT),
        (-(1 << 31) - 1, INTEGER),
        (1 << 63, MICROSECOND_INTERVAL),
        (Decimal(100), decimal_type(3, 1)),
    ):
        with pytest.raises(DataError):
            Literal(value, type_)
    assert Literal(-(1 << 63), BIGINT).value == -(1 << 63)


def test_nor_a_key_that_a_runtime_parameter_brings_in(both: tuple[Session, Session]) -> None:
    far = "(VALUES (DATE '20000-07-10')) h(v)"
    sql = f"SELECT CASE WHEN uid = 7 THEN h.v END AS k, COUNT(*) FROM p CROSS JOIN {far} GROUP BY 1"
    assert outcome(both[0], sql) == outcome(both[1], sql) == "answered"


def test_a_runtime_parameter_is_converted_to_its_type() -> None:
    beyond = {BIGINT: 1 << 63, INTEGER: 1 << 31, DOUBLE: float("inf"), REAL: 1e39, DATE: "20000-01-01",
              TIME: "24:00:00", TIMESTAMP: "20000-01-01 00:00:00", TIMESTAMPTZ: "290309-12-22 (BC)",
              TEXT: "\ud800", BOOLEAN: 1,
              decimal_type(3, 1): 100}  # fmt: skip
    assert {type_: fit_to_type(value, type_) for type_, value in beyond.items()} == dict.fromkeys(beyond)
    assert (
        fit_to_type(Fraction(7), BIGINT) == 7
        and fit_to_type(12.25, decimal_type(3, 1)) is not None
        and fit_to_type("a", TEXT) == "a"
    )


def chain(tables: int) -> str:
    joins = " ".join(f"JOIN p p{n} ON p{n}.uid = p1.uid AND p{n}.a + p1.a >= 0" for n in range(2, tables + 1))
    return f"SELECT COUNT(*) FROM p p1 {joins} WHERE p1.uid = 7"


def test_a_unit_cannot_be_multiplied_by_itself_at_will(both: tuple[Session, Session]) -> None:
    """With eight tables the engine took 26 s for a unit of ten rows, and nothing for its absence."""
    before = both[1].budget().charges
    for session in both:
        with pytest.raises(LimitExceeded, match="meet on the unit alone"):
            session.execute(chain(8))
        with pytest.raises(LimitExceeded):
            session.execute("SELECT COUNT(*) FROM p a WHERE EXISTS (SELECT 1 FROM p b, p c, p d WHERE b.uid = a.uid "
                            "AND c.uid = a.uid AND d.uid = a.uid AND b.a + c.a + d.a > a.a)")  # fmt: skip
        with pytest.raises(LimitExceeded):
            session.execute(f"SELECT COUNT(*) FROM {FOUR_YEARS} AND one.a > 3")
    assert both[1].budget().charges == before
    assert both[1].explain(chain(3)).releases


YEARS = "(SELECT uid, a, SUM(x) AS s FROM p GROUP BY uid, a)"
FOUR_YEARS = f"{YEARS} one, {YEARS} two, {YEARS} three, {YEARS} four " \
    "WHERE two.uid = one.uid AND three.uid = one.uid AND four.uid = one.uid"  # fmt: skip


def test_rows_that_are_looked_up_or_are_one_for_a_unit_do_not_multiply_it(both: tuple[Session, Session]) -> None:
    pairs = "SELECT b.a FROM p b, p c WHERE c.uid = b.uid AND b.x < c.x AND b.uid = a.uid"
    met = f"EXISTS ({pairs} AND b.a = a.a) AND NOT EXISTS ({pairs} AND b.a = a.a)"
    years = "one.a = 1 AND two.a = 2 AND three.a = 3 AND four.a = 4 AND two.s > one.s"
    for sql in (
        f"SELECT COUNT(*) FROM p a, p e WHERE e.uid = a.uid AND {met}",
        f"SELECT COUNT(*) FROM {FOUR_YEARS} AND {years}",
    ):
        assert both[1].explain(sql).releases
        assert outcome(both[0], sql) == outcome(both[1], sql) == "answered"
    # DuckDB tried all pairs of these, n^4 and n^5 of a unit's n rows: NULLs are many, or conditions seldom hold.
    three = "p a, p e, p f WHERE e.uid = a.uid AND f.uid = a.uid"
    for sub_select in (
        f"a.a IN ({pairs})",
        "a.a IN (SELECT b.a FROM p b WHERE b.uid = a.uid AND a.x + e.x + f.x > 3)",
        "EXISTS (SELECT 1 FROM p b WHERE b.uid = a.uid AND b.a = e.a AND a.x + e.x + f.x > 3)",
    ):
        with pytest.raises(LimitExceeded):
            both[0].explain(f"SELECT COUNT(*) FROM {three} AND {sub_select}")


def test_public_tables_behind_a_runtime_parameter_are_part_of_the_query(both: tuple[Session, Session]) -> None:
    """In a hole's SQL they have names by the order in which they are met."""
    shapes = ["SELECT COUNT(*) FROM p WHERE a < (SELECT MAX(x.k) FROM {} x)",
              "SELECT COUNT(*) FROM p JOIN (SELECT x.k, COUNT(*) AS m FROM {} x GROUP BY x.k) h ON h.k = p.a",
              "SELECT MEDIAN(a) FROM p WHERE a IN (SELECT x.k + 0 FROM {} x)"]  # fmt: skip
    session = both[1]
    for shape in shapes:
        one, other = (compile_query(shape.format(name), session.dataset.resolved, session.settings.statement)
                      for name in ("puba", "pubb"))  # fmt: skip
        assert {s.plan_hash for s in one.steps}.isdisjoint(s.plan_hash for s in other.steps), shape


def test_a_type_whose_cast_ends_the_engine_is_refused_when_it_is_registered(tmp_path: Path) -> None:
    schema = SCHEMA.split("  one:")[0].format(name="bignum")
    (tmp_path / "bignum.yaml").write_text(schema)
    with duckdb.connect(str(tmp_path / "bignum.duckdb")) as db:
        db.execute("CREATE TABLE p (uid BIGINT, a BIGNUM, x DOUBLE, d DATE, t TIMESTAMP)")
    with pytest.raises(OperationalError, match="BIGNUM, which cannot be read safely"):
        open_dataset(tmp_path / "bignum.yaml")


@pytest.mark.parametrize("grouping", ["z", "ROLLUP (z)", "CUBE (z, substring(z, 1, 1))"])
def test_groups_of_units_with_one_row_each_are_selected_by_what_is_counted(
    both: tuple[Session, Session], grouping: str
) -> None:
    """Where units are counted without weights, a threshold for weighted ones hid groups of 10,000."""
    answer = both[1].execute(f"SELECT z, COUNT(*) FROM one GROUP BY {grouping}")
    assert {"z0", "z1", "z2"} <= {row[0] for row in answer.rows}


@pytest.mark.parametrize("sql", [
    "SELECT MEDIAN(x) FROM p WHERE x = 0.5",
    "SELECT MAX(CLIP(0.25, 0, 1)) FROM p",
    "SELECT COUNT(*) FROM p WHERE t < timestamptz '0001-01-01 00:00:00+14'",
    "SELECT COUNT(*) FROM p WHERE t < '9999-12-31 23:59:59-14'",
])  # fmt: skip
def test_extreme_literals_get_an_answer_or_an_error_of_ours(both: tuple[Session, Session], sql: str) -> None:
    assert outcome(both[0], sql) == outcome(both[1], sql)


@pytest.mark.parametrize("literal", ["1e300000", "1e30000000", "9" * 5000])
def test_a_literal_in_a_sub_select_is_as_large_as_any_other(both: tuple[Session, Session], literal: str) -> None:
    """Its bounds were once worked out digit by digit: for minutes, and for free."""
    said = outcome(both[0], f"SELECT COUNT(*) FROM p WHERE x > (SELECT AVG(x) * {literal} FROM p)")
    assert said == "answered" or "too large" in said or "DataError" in said


LONG = "initcap(repeat(repeat(left(z, 1) || ' ', 150), 100) || CAST(b.k AS TEXT))"


@pytest.mark.parametrize("condition", [
    f"strpos({LONG.replace('b.k', 'uid')}, 'zz') > 0",
    " AND ".join(["regexp_replace(repeat(z, 90), 'a+', 'b', 'g') <> 'c'"] * 3),
    f"EXISTS (SELECT 1 FROM puba b WHERE strpos({LONG}, 'zz') > 0)",
])  # fmt: skip
def test_the_text_of_one_row_cannot_keep_the_engine_busy(both: tuple[Session, Session], condition: str) -> None:
    """One person's row took 43 s and its absence 0.2 s; with a time limit, the failure told it exactly."""
    before = both[0].budget().charges
    said = outcome(both[0], f"SELECT COUNT(*) FROM one WHERE uid = 7 AND {condition}")
    assert "too long for one private row" in said and both[0].budget().charges == before


def test_ordinary_functions_of_text_are_answered(both: tuple[Session, Session]) -> None:
    condition = "lower(trim(z)) LIKE 'z%' AND initcap(z) <> upper(z) AND regexp_replace(z, '[0-9]', '#') = 'z#'"
    assert outcome(both[0], f"SELECT COUNT(*) FROM one WHERE {condition}") == "answered"


def test_half_of_a_character_is_refused_before_the_charge(both: tuple[Session, Session]) -> None:
    before = both[0].budget().charges
    with pytest.raises(ProgrammingError, match="half of a character"):
        both[0].execute("SELECT COUNT(*) FROM one WHERE z = ?", ("\ud800",))
    with pytest.raises(InvalidSyntax, match="half of a character"):
        both[0].execute("SELECT COUNT(*) FROM one WHERE z = '\ud800'")
    assert both[0].budget().charges == before


def test_the_reported_charge_is_that_of_the_options(tmp_path: Path) -> None:
    session(tmp_path, "options", True).dataset.close()
    with dpsql.connect(tmp_path / "options.yaml") as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.125) COUNT(*) FROM p")
        assert cursor.loss.epsilon == Fraction(1, 8)


def test_a_row_that_counts_often_earns_a_notice(both: tuple[Session, Session]) -> None:
    said = [session.execute("SELECT COUNT(*) FROM p, (VALUES (1), (2)) v(k)").notices for session in both]
    assert said[0][0] == said[1][0] and "a unit counts like at most 3 rows" in said[0][0]


def test_grouping_sets_earn_a_notice(both: tuple[Session, Session]) -> None:
    """A row that is in two of them uses up nothing: each has its own norm, and noise of its own."""
    said = [session.execute("SELECT a, COUNT(*) FROM p GROUP BY ROLLUP (a)").notices for session in both]
    assert said[0][0] == said[1][0] == SETS_APART_NOTICE
    assert not any("at most 3 rows" in notice for notices in said for notice in notices)


def test_a_unit_votes_for_a_row_that_an_outer_join_did_not_find_too(both: tuple[Session, Session]) -> None:
    """Its rows have the other side's value where the condition holds, and NULL elsewhere: two keys, not one."""
    sql = "SELECT one.z, COUNT(*) FROM p LEFT JOIN one ON one.uid = p.uid AND p.a > 3 GROUP BY one.z"
    (step,) = both[1].compile_statement(sql, ()).steps
    assert step.calibrated.selection is not None
    place = step.calibrated.columns.index("selection_units")
    votes = []
    for session in both:
        exact = session.dataset.engine.execute(step.sql, len(step.keys), {}).reveal()
        votes.append({key: int(exact.cells[place][row]) for row, key in enumerate(exact.keys)})
    without, with_ = votes
    moved = [key for key in with_ if with_[key] != without.get(key, 0)]
    assert 1 < len(moved) <= step.calibrated.selection.reach.l0
