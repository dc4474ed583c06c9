"""Traps that systems of this kind have fallen into, each by its number: attacked through a session."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import duckdb
import pytest

from dpsql.errors import EngineFailed, Error
from tests.support.neighboring_databases import (
    ROWS,
    Neighbors,
    assert_answered,
    assert_refused,
    exact,
)

pytestmark = pytest.mark.slow

# --- 1, 2: sensitivity and clipping ----------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", [
    "SELECT CORR(w, x) FROM visits", "SELECT COVAR_POP(big, x) FROM visits", "SELECT CORR(x * w, x) FROM visits",
    "SELECT MEDIAN(z) FROM visits",
    "SELECT REGR_SLOPE(i, x) FROM visits", "SELECT CORR(power(x, i), x) FROM visits",
    "SELECT CORR(1 / x, x) FROM visits",
    "SELECT MAX(w) FROM visits", "SELECT CORR(CASE WHEN ok THEN x ELSE w END, x) FROM visits",
    "SELECT CORR(x, w) FROM visits",
    "SELECT CORR(greatest(x, w), x) FROM visits", "SELECT CORR(coalesce(x, big), x) FROM visits",
    "SELECT SUM(DISTINCT w) FROM visits",
    "SELECT SUM(x) OVER () FROM visits", "SELECT SUM(s) FROM (SELECT pid, SUM(w) AS s FROM visits GROUP BY pid) t",
])  # fmt: skip
def test_trap_01_an_unknown_sensitivity_is_refused(both: Neighbors, sql: str) -> None:
    """It is not "no noise"."""
    assert_refused(both, sql)


@pytest.mark.parametrize("measure", [
    "SUM(w)", "AVG(big)", "SUM(x * w)", "SUM(power(x, i))", "SUM(1 / x)", "SUM(CASE WHEN ok THEN x ELSE w END)",
    "SUM(greatest(x, w))", "SUM(coalesce(x, big))",
    "STDDEV(w)", "VARIANCE(big)", "STDDEV(x * w)", "STDDEV(i)", "STDDEV(power(x, i))", "STDDEV(1 / x)",
    "STDDEV(CASE WHEN ok THEN x ELSE w END)", "STDDEV(greatest(x, w))", "STDDEV(coalesce(x, big))",
])  # fmt: skip
def test_trap_01_a_sum_without_bounds_waits_for_its_norm(both: Neighbors, measure: str) -> None:
    """Its sensitivity is that of a norm, which a histogram with noise of its own decides first."""
    compiled = both.without.compile_statement(f"SELECT {measure} FROM visits")
    assert compiled.undecided and all(norm.step.loss.rho > 0 for norm in compiled.norm_steps)


def test_trap_01_whatever_is_answered_has_noise(both: Neighbors) -> None:
    """Also where a bound is 0, or both are equal."""
    for measure in ("COUNT(*)", "SUM(CLIP(w, 0, 0))", "SUM(CLIP(w, 7, 7))", "AVG(CLIP(i, 3, 3))",
    "SUM(CLIP(x, 0, 1e-9))",
                    "COUNT(DISTINCT pid)", "COUNT(*) FILTER (WHERE FALSE)", "SUM(0)", "SUM(1)"):  # fmt: skip
        for release in both.without.explain(f"SELECT {measure} FROM visits").releases:
            assert release.rho > 0 and release.bundles, measure
            assert all(bundle.scale >= bundle.linf / 20 and bundle.l1 >= 1 for bundle in release.bundles), measure


@pytest.mark.parametrize("sql", [
    "SELECT COUNT(*) FROM visits WHERE n > 100 OR n < 0", "SELECT COUNT(*) FROM visits WHERE x > 100 OR x < 0",
    "SELECT COUNT(*) FROM visits WHERE kind NOT IN ('a', 'b', 'c')",
    "SELECT COUNT(*) FROM visits WHERE f > DATE '2024-12-31'",
    "SELECT COUNT(*) FROM visits WHERE c > 1000", "SELECT COUNT(*) FROM visits WHERE w > 1.7e308 AND w / 2 > 1e308",
    "SELECT COUNT(*) FROM people WHERE sex = '?' OR age > 120", "SELECT COUNT(*) FROM visits WHERE length(note) > 2000",
    "SELECT COUNT(*) FROM (SELECT n AS m FROM visits) t WHERE m > 100",
    "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits u WHERE u.pid = v.pid AND u.n > 100)",
    "SELECT COUNT(*) FROM (SELECT pid, MAX(n) AS m FROM visits GROUP BY pid) t WHERE m > 100",
])  # fmt: skip
def test_trap_02_a_clipped_column_is_clipped_everywhere(quiet: Neighbors, sql: str) -> None:
    """In conditions, sub-selects and a unit's own aggregates too: no row lies beyond its bounds."""
    assert quiet.with_victim.execute(sql).rows == [(0,)]


def test_trap_02_keys_and_units_are_sanitised_alike(both: Neighbors) -> None:
    """As a key, as an aggregate's value and as the unit a column holds the same."""
    keys = exact(both.with_victim, "SELECT i, n, COUNT(*) FROM visits WHERE pid = 7 GROUP BY i, n")
    assert {key[1] for key in keys} <= {*range(101), None}
    assert_refused(both, "SELECT pid, COUNT(*) FROM visits GROUP BY pid")
    assert_refused(both, "SELECT pid + 0, COUNT(*) FROM visits GROUP BY 1 HAVING pid = 7")


# --- 3: two lexers ---------------------------------------------------------------------------------------------------

SPELLED = [
    ("'it''s'", "it's"), (r"'a\'", "a\\"), (r"E'\''", "'"), (r"E'\x27 OR 1=1 --'",
    "' OR 1=1 --"),
    (r"E'\047'", "'"), (r"E'a\\'", "a\\"), ("$$a' OR 1=1 --$$", "a' OR 1=1 --"), ("$x$a$$b$x$", "a$$b"), ("'a' 'b'",
    "ab"),
    ("'a'\n'b'", "ab"), ("'/*'", "/*"), ("'--'", "--"), ("'$1'", "$1"), ("'＇'", "＇"), ("'’ OR 1=1'", "’ OR 1=1"),
    ("'a;b'", "a;b"), ("'\"'", '"'), ("'\u2028'", "\u2028"), (r"e'\\\''", "\\'"), ("'%s'", "%s"), ("'?'",
    "?"), ("'{x}'", "{x}"),
]  # fmt: skip


@pytest.mark.parametrize(("spelled", "value"), SPELLED)
def test_trap_03_a_literal_ends_where_it_ends(both: Neighbors, quiet: Neighbors, spelled: str, value: str) -> None:
    """The engine reads the very value that a parameter would have brought, over private rows and after the noise."""
    written = both.without.compile_statement(f"SELECT COUNT(*) FROM visits WHERE note = {spelled}", ()).steps[0]
    bound = both.without.compile_statement("SELECT COUNT(*) FROM visits WHERE note = ?", (value,)).steps[0]
    assert written.sql == bound.sql and written.plan_hash == bound.plan_hash
    assert len(duckdb.extract_statements(written.sql)) == 1
    assert both.without.execute(f"SELECT {spelled}, COUNT(*) FROM visits").rows[0][0] == value
    assert quiet.with_victim.execute(f"SELECT COUNT(*) FROM visits WHERE note = {spelled} || 'x'").rows == [(0,)]


@pytest.mark.parametrize("spelled", [r"U&'\0061'", "x'41'", "b'101'", "n'abc'", "‘a’", "$a$b", "'a", "E'a", "/* '",
"$$a",
                                     "q'[a]'", "r'a'", "`a`", "@a", ":a", "$1", "{a}", "{{a}}", "'\x00'"])  # fmt: skip
def test_trap_03_what_lexers_may_read_in_two_ways_is_refused(both: Neighbors, spelled: str) -> None:
    """Spellings that PostgreSQL and DuckDB, or one version and the next, do not share."""
    assert_refused(both, f"SELECT COUNT(*) FROM visits WHERE note = {spelled}")


@pytest.mark.parametrize("spelled", [r"E'\0'", r"E'\x00'", r"E'\u0000'", r"E'a\000b'", r"E'\ud800'",
                                     r"E'\udc00\ud800'", r"E'\U0000d800'", r"E'\U00110000'", r"E'\u12'"])  # fmt: skip
def test_trap_03_an_escape_that_is_no_character_is_refused(both: Neighbors, spelled: str) -> None:
    """A zero byte, or half of a pair: by an error of ours, before the charge."""
    assert_refused(both, f"SELECT COUNT(*) FROM visits WHERE note = {spelled}")


@pytest.mark.parametrize("sql", [
    "SELECT COUNT(*) FROM visits WHERE n = 1 /* /* nested */ OR pid = 7 */",
    "SELECT COUNT(*) FROM visits -- */ WHERE pid = 7",
    "/* ) */ WITH a AS (SELECT COUNT(*) AS c FROM visits) SELECT * FROM a",
    'SELECT COUNT(*) AS "a""; DROP" FROM visits',
    'SELECT COUNT(*) AS "/*" FROM visits', 'SELECT kind AS "_uid", COUNT(*) AS "_weight" FROM visits GROUP BY kind',
    'SELECT COUNT(*) FROM (SELECT pid AS "_uid", 1 AS "_weight" FROM visits) t WHERE "_uid" > 3',
    "WITH rows1 AS (SELECT pid FROM visits) SELECT COUNT(*) FROM rows1",
    'SELECT COUNT(*) FROM visits AS "t" WHERE t.n > 1',
    'SELECT COUNT(*) FROM visits AS "l" JOIN visits AS "r" USING (pid)',
    'SELECT ward AS "_order", COUNT(*) FROM visits GROUP BY 1',
])  # fmt: skip
def test_trap_03_comments_and_names_of_our_own(both: Neighbors, sql: str) -> None:
    """Comments end where they end, and the names that rewriting uses may be the analyst's too."""
    assert_answered(both, sql)
    for release in both.without.explain(sql).releases:
        assert len(duckdb.extract_statements(release.sql)) == 1 and "nested" not in release.sql


# --- 4, 5: errors and charges ----------------------------------------------------------------------------------------


def test_trap_04_what_an_engine_says_stays_with_the_owner(both: Neighbors, monkeypatch: pytest.MonkeyPatch) -> None:
    """One fixed text, and the engine is not asked before the charge."""
    side = both.small

    def fail(*_: object) -> None:
        raise duckdb.ConversionException("Could not convert string 'Ms Rossi' to INT32")

    monkeypatch.setattr(side.dataset.engine, "_run_select", fail)
    asked = "SELECT COUNT(*) FROM visits WHERE n > 11"
    side.explain(asked), side.describe(asked), side.execute(f"EXPLAIN {asked}"), side.execute("DESCRIBE visits")
    before = side.budget().charges
    with pytest.raises(EngineFailed) as caught:
        side.execute(asked)
    assert "Rossi" not in str(caught.value) and side.budget().charges == before + 1
    side.dataset.ledger.resume_account(side._account)


@pytest.mark.parametrize("broken", [KeyboardInterrupt, MemoryError, RuntimeError("Query interrupted")])
def test_trap_05_a_run_that_is_broken_off_is_paid_for(
    both: Neighbors, monkeypatch: pytest.MonkeyPatch, broken: BaseException | type[BaseException]
) -> None:
    """Whatever ends a run, its charge stays."""
    side, before = both.small, both.small.budget()

    def fail(*_: object) -> None:
        raise broken

    monkeypatch.setattr(side.dataset.engine, "_run_select", fail)
    with pytest.raises((KeyboardInterrupt, Error)):
        side.execute(f"SELECT COUNT(*) FROM visits WHERE n > {before.charges} AND x > 2")
    assert side.budget().charges == before.charges + 1 and side.budget().spent_rho > before.spent_rho
    side.dataset.ledger.resume_account(side._account)


@pytest.mark.parametrize("sql", [
    "SELECT CAST('x' AS integer) + COUNT(*) FROM visits", "SELECT COUNT(*) FROM visits LIMIT -1",
    "SELECT COUNT(*) + nosuch FROM visits", "SELECT COUNT(*) FROM visits ORDER BY nosuch",
    "SELECT COUNT(*) FROM visits; SELECT 1",
])  # fmt: skip
def test_trap_05_a_mistake_after_the_noise_answers_nothing_for_free(both: Neighbors, sql: str) -> None:
    """It is found before the charge, or the charge stays."""
    before = both.without.budget()
    with pytest.raises(Error):
        both.without.execute(sql)
    after = both.without.budget()
    assert after == before or after.spent_rho > before.spent_rho


# --- 6, 7: chance and LIMIT ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["random()", "RANDOM()", '"random"()', "main.random()", "system.main.random()",
"rand()",
                                  "setseed(0.1)", "uuid()", "gen_random_uuid()", "uuidv4()", "uuidv7()"])  # fmt: skip
def test_trap_06_no_chance_but_ours(both: Neighbors, call: str) -> None:
    """The analyst cannot draw, nor seed, in any part of a statement."""
    assert_refused(both, f"SELECT COUNT(*) FROM visits WHERE {call} IS NOT NULL")
    assert_refused(both, f"SELECT {call}, COUNT(*) FROM visits")
    assert_refused(both, f"SELECT COUNT(*) FROM visits ORDER BY {call}")
    assert_refused(both, f"SELECT {call}")


def test_trap_06_noise_is_not_drawn_by_the_engine(both: Neighbors) -> None:
    """No release asks its engine for chance, and the same question on a new session gives other noise."""
    sql = "SELECT kind, ward, COUNT(*), SUM(x), MEDIAN(x) FROM visits GROUP BY kind, ward"
    assert "rand" not in str(both.without.explain(sql)).lower()
    (step,) = both.without.compile_statement("SELECT SUM(x) FROM visits", ()).steps
    drawn = {tuple(both.without.sampler.gaussian(4, Fraction(10**6))) for _ in range(4)}
    assert len(drawn) == 4 and step.calibrated.bundles


@pytest.mark.parametrize("limited", [
    "SELECT * FROM visits LIMIT 5", "SELECT pid FROM visits ORDER BY x LIMIT 5", "SELECT pid FROM visits OFFSET 5",
    "SELECT DISTINCT ON (kind) pid, kind FROM visits", "SELECT pid FROM visits FETCH FIRST 3 ROWS ONLY",
    "(SELECT pid FROM visits LIMIT 5) UNION ALL (SELECT pid FROM visits LIMIT 1)", "SELECT TOP 5 pid FROM visits",
    "SELECT pid, ROW_NUMBER() OVER (ORDER BY x) AS k FROM visits QUALIFY k < 5",
    "SELECT pid FROM visits USING SAMPLE 5",
])  # fmt: skip
def test_trap_07_no_limit_below_a_release(both: Neighbors, limited: str) -> None:
    """One unit more would push another's row out."""
    assert_refused(both, f"SELECT COUNT(*) FROM ({limited}) t")
    assert_refused(both, f"WITH t AS ({limited}) SELECT COUNT(*) FROM t")
    assert_refused(both, f"SELECT COUNT(*) FROM visits WHERE pid IN (SELECT pid FROM ({limited}) t)")


# --- 8, 9, 10: values and sizes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("measure", "most"), [
    ("SUM(x)", 100), ("SUM(n)", 100), ("SUM(c)", 1000), ("SUM(CLIP(w, -5, 5))", 5), ("SUM(CLIP(r, 0, 9))", 9),
    ("COUNT(w)", 1),
    ("SUM(CLIP(w * w, 0, 5))", 5), ("SUM(CLIP(w - w, 0, 5))", 5), ("SUM(CLIP(sqrt(w), 0, 5))", 5),
    ("SUM(CLIP(-w, 0, 5))", 5),
    ("SUM(greatest(least(w, 5), 0))", 5), ("SUM(CLIP(CAST(ward AS double precision), 0, 5))", 5), ("COUNT(*)", 1),
    ("SUM(CASE WHEN w > 5 THEN 5 WHEN w < 0 THEN 0 ELSE w END)", 5), ("SUM(CLIP(huge, -7, 7))", 7),
    ("SUM(CLIP(z, 0, 9))", 9),
])  # fmt: skip
def test_trap_08_nan_and_infinity_do_not_pass_a_clip(quiet: Neighbors, measure: str, most: int) -> None:
    """Without noise the victim moves a sum by at most her rows times the bound, and the sum is a number."""
    sql = f"SELECT {measure} FROM visits"
    ((without,),), ((with_victim,),) = (side.execute(sql).rows for side in (quiet.without, quiet.with_victim))
    assert math.isfinite(with_victim) and abs(with_victim - without) <= ROWS * most * 1.0001
    for aggregate in ("AVG", "MEDIAN", "STDDEV") if measure.startswith("SUM") else ():
        asked = f"SELECT {aggregate}{measure[3:]} FROM visits"
        ((value,),) = quiet.with_victim.execute(asked).rows
        assert value is None or math.isfinite(value)


FREE = [
    "SHOW TABLES", "SHOW ALL", "DESCRIBE visits", "DESCRIBE people", "SHOW COLUMNS FROM visits",
    "DESCRIBE SELECT COUNT(*) FROM visits",
    "SELECT * FROM information_schema.tables", "SELECT * FROM information_schema.columns", "SELECT * FROM pg_class",
    "SELECT relname, reltuples, relpages FROM pg_catalog.pg_class", "SELECT * FROM pg_attribute",
    "SELECT * FROM pg_tables",
    "SELECT * FROM information_schema.table_constraints", "SELECT * FROM pg_namespace",
    "SELECT current_database(), version()",
    "SELECT * FROM pg_stats", "SELECT * FROM pg_stat_user_tables", "SELECT pg_relation_size('visits')",
    "SELECT * FROM visits",
    "EXPLAIN SELECT COUNT(*) FROM visits", "EXPLAIN SELECT ward, COUNT(*), SUM(x) FROM visits GROUP BY ward",
    "EXPLAIN SELECT MEDIAN(x), MIN(f), MAX(q) FROM visits", "EXPLAIN SELECT d, COUNT(*) FROM visits GROUP BY d",
    "EXPLAIN SELECT n, kind, COUNT(*) FROM visits GROUP BY CUBE (n, kind)",
    "EXPLAIN SELECT born, COUNT(*) FROM people GROUP BY born",
    "EXPLAIN SELECT COUNT(*) FROM visits v JOIN kinds USING (kind) WHERE x > (SELECT AVG(x) FROM visits)",
    "SELECT CORR(w, x) FROM visits", "SELECT MIN(w) FROM visits", "SELECT nosuch FROM visits",
    "EXPLAIN SELECT MODE(ward) FROM visits", "SHOW TABLES (FORMAT JSON)", "SHOW SETTINGS (FORMAT JSON)",
]  # fmt: skip


OWN = ("Noise: ", "Price: ", "  with ", "  or with ", "  from: ", "Release ")
"""EXPLAIN's lines about what the caller has paid and could still ask: these sides have accounts of their own."""


@pytest.mark.parametrize("sql", FREE)
def test_trap_09_what_is_free_says_nothing_of_sizes_and_extremes(both: Neighbors, sql: str) -> None:
    """Catalogs, EXPLAIN, DESCRIBE and refusals: the same text for a tenth of the rows and for the worst values."""
    said = []
    for side in (both.without, both.with_victim, both.small):
        try:
            answer = side.execute(sql)
            rows = [row for row in answer.rows if not str(row[0]).startswith(OWN)]
            text = repr((answer.columns, rows)).replace(str(side.dataset.schema.path.parent), "HERE")
            said.append(text.replace("a fresh one: ", ""))
        except Error as error:
            said.append(f"{type(error).__name__} {error}")
    assert said[0] == said[1] == said[2]


@pytest.mark.parametrize("sql", [sql for sql in FREE if sql.startswith("EXPLAIN ")])
def test_trap_09_explain_as_json(both: Neighbors, sql: str) -> None:
    """The same, but for what the caller has paid and could still ask."""
    said = []
    for side in (both.without, both.with_victim, both.small):
        ((text,),) = side.execute(sql.replace("EXPLAIN", "EXPLAIN (FORMAT JSON)")).rows
        told = json.loads(text.replace(str(side.dataset.schema.path.parent), "HERE"))
        said.append({name: value for name, value in told.items() if name not in ("noise", "offers", "paid", "sources")})
    assert said[0] == said[1] == said[2]


@pytest.mark.parametrize("sql", [
    "SELECT COUNT(*) FROM secret", "SELECT * FROM secret", "SELECT word FROM data.main.secret",
    "SELECT COUNT(*) FROM main.secret",
    "SELECT hidden, COUNT(*) FROM people GROUP BY hidden", "SELECT COUNT(*) FROM people WHERE hidden IS NULL",
    "SELECT COUNT(*) FROM visits JOIN secret USING (pid)",
    "SELECT COUNT(*) FROM visits WHERE pid IN (SELECT pid FROM secret)",
    "SELECT * FROM kinds, secret", "SELECT COUNT(*) FROM people p WHERE p.\"hidden\" > ''", "DESCRIBE secret",
])  # fmt: skip
def test_trap_10_what_is_not_listed_does_not_exist(both: Neighbors, sql: str) -> None:
    """A table or column of the engine that the schema does not name is neither public nor private."""
    assert "not in the schema" not in assert_refused(both, sql).text
