"""Traps 11 to 20: budgets, caps, prices, formulas and order; see `test_known_pitfalls.py`."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pytest

import dpsql
from dpsql.errors import Error, SchemaError
from dpsql.privacy.loss import sum_losses
from dpsql.schema.load import load_schema
from tests.support.neighboring_databases import (
    CROWD,
    GROUPS,
    ROWS,
    SCHEMA,
    Neighbors,
    assert_alike,
    assert_refused,
    exact,
    open_side,
)

pytestmark = pytest.mark.slow

# --- 11: epsilon and delta -------------------------------------------------------------------------------------------

EPSILONS = ["0", "-1", "-0", "nan", "inf", "-inf", "1e999", "1e-999", "''", "NULL", "none", "1/0", "-1/3", "0x10",
"1000001", "1e400",
            "infinity", "sNaN", "1e", "--1", "1;2", "ε"]  # fmt: skip
DELTAS = [
    "1",
    "-1",
    "1.5",
    "nan",
    "inf",
    "-1e-9",
    "1e999",
    "1e-999",
    "2",
    "3/2",
    "''",
    "0.9999999999999999999999999999e1",
]


@pytest.mark.parametrize(("name", "value"), [*(("epsilon", e) for e in EPSILONS), *(("delta", d) for d in DELTAS)])
def test_trap_11_epsilon_and_delta_have_a_range(both: Neighbors, tmp_path: Path, name: str, value: str) -> None:
    """By SET, by OPTIONS, as an argument and in the URL; the setting stays as it was."""
    side, text = both.without, value.strip("'")
    shown = side.execute(f"SHOW {name}").rows
    with pytest.raises(Error):
        side.execute(f"SET {name} = '{text}'")
    with pytest.raises(Error):
        side.execute(f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({name} = '{text}') COUNT(*) FROM visits")
    with pytest.raises(Error):
        side.set(name, text)
    assert side.execute(f"SHOW {name}").rows == shown
    path = side.dataset.schema.path
    with pytest.raises(Error):
        dpsql.connect(path, **{name: text})
    with pytest.raises(Error):
        dpsql.connect(f"dpsql:///{path}?{name}={text}")


@pytest.mark.parametrize("change", [
    ("budget: {epsilon: 1000000, delta: 0.9}", "budget: {epsilon: 0, delta: 0.9}"),
    ("budget: {epsilon: 1000000, delta: 0.9}", "budget: {epsilon: .inf, delta: 0.9}"),
    ("budget: {epsilon: 1000000, delta: 0.9}", "budget: {epsilon: .nan, delta: 0.9}"),
    ("budget: {epsilon: 1000000, delta: 0.9}", "budget: {epsilon: -1, delta: 0.9}"),
    ("budget: {epsilon: 1000000, delta: 0.9}", "budget: {epsilon: 1, delta: 1}"),
    ("budget: {epsilon: 1000000, delta: 0.9}", "budget: {epsilon: 1, delta: .nan}"),
    ("budget: {epsilon: 1000000, delta: 0.9}", "budget: {epsilon: 1, delta: -1e-9}"),
    ("query: {epsilon: 1,", "query: {epsilon: -1,"), ("query: {epsilon: 1,", "query: {epsilon: .inf,"),
    ("query: {epsilon: 1, delta: 1e-6}", "query: {epsilon: 1, delta: 1.0}"),
    ("contributions: {rows: 3,", "contributions: {rows: 0,"), ("contributions: {rows: 3,", "contributions: {rows: -3,"),
    ("contributions: {rows: 3,", "contributions: {rows: 1.5,"), ("contributions: {rows: 3,",
    "contributions: {rows: .inf,"),
    ("groups: 3}", "groups: 0}"), ("bounds: [0, 100]}", "bounds: [.nan, 100]}"), ("bounds: [0, 100]}",
    "bounds: [0, .inf]}"),
    ("bounds: [0, 100]}", "bounds: [100, 0]}"), ("unit: people.pid", "unit: people.pid\n  group_size: 0"),
    ("unit: people.pid", "unit: people.pid\n  neighbors: none"),
])  # fmt: skip
def test_trap_11_and_in_the_schema(tmp_path: Path, change: tuple[str, str]) -> None:
    """What cannot be promised cannot be declared."""
    assert change[0] in SCHEMA
    (tmp_path / "s.yaml").write_text(SCHEMA.replace(change[0], change[1], 1))
    with pytest.raises(SchemaError):
        load_schema(tmp_path / "s.yaml")


# --- 12, 13, 14: what is capped, dropped and joined ------------------------------------------------------------------


@pytest.mark.parametrize("sql", [
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward", "SELECT ward, n, SUM(x) FROM visits GROUP BY ward, n",
    "SELECT COUNT(DISTINCT ward) FROM visits", "SELECT kind, COUNT(DISTINCT n) FROM visits GROUP BY kind",
    "SELECT MODE(ward) FROM visits", "SELECT x, COUNT(*) FROM visits GROUP BY ROLLUP (x)",
])  # fmt: skip
def test_trap_12_a_cap_chooses_the_same_rows_each_time_it_is_read(both: Neighbors, quiet: Neighbors, sql: str) -> None:
    """A unit's rows are kept by a hash: a CTE that is worked out twice, or by other threads, keeps the same."""
    first = exact(both.with_victim, sql)
    assert first == exact(both.with_victim, sql) == exact(quiet.with_victim, sql)
    assert "random" not in both.with_victim.explain(sql).releases[0].sql.lower()


def test_trap_13_nothing_is_dropped_silently(both: Neighbors, quiet: Neighbors) -> None:
    """DISTINCT, FILTER, OVER and the group of NULL count, or are refused."""
    side = quiet.without
    ((rows, some, different),) = side.execute(
        "SELECT COUNT(*), COUNT(*) FILTER (WHERE ok), COUNT(DISTINCT kind) FROM visits"
    ).rows
    assert rows == 1200 and some == 600 and different == 3
    kinds = [row[0] for row in both.with_victim.execute("SELECT kind, COUNT(*) FROM visits GROUP BY kind").rows]
    assert kinds == ["a", "b", "c", None]
    assert side.execute("SELECT COUNT(*) FROM visits WHERE kind IS NULL").rows == [(0,)]
    assert side.execute("SELECT kind, COUNT(*) FROM visits GROUP BY kind HAVING COUNT(*) < 0").rows == []


@pytest.mark.parametrize("sql", [
    "SELECT COUNT(*) OVER () FROM visits", "SELECT SUM(x ORDER BY x) FROM visits",
    "SELECT MEDIAN(DISTINCT n) FROM visits",
    "SELECT STDDEV(DISTINCT n) FROM visits", "SELECT COUNT(*) IGNORE NULLS FROM visits",
    "SELECT COUNT(n) OVER w FROM visits",
    "SELECT MODE(DISTINCT kind) FROM visits", "SELECT SUM(x) WITHIN GROUP (ORDER BY n) FROM visits",
    "SELECT COUNT(*) FROM visits GROUP BY kind WITH TOTALS",
    "SELECT kind, COUNT(*) FROM visits GROUP BY kind COLLATE NOCASE",
    "SELECT COUNT(*) FROM visits NATURAL LEFT JOIN people p(a, b, c, d)",
    "SELECT COUNT(*) FROM ONLY visits WINDOW w AS ()",
])  # fmt: skip
def test_trap_13_clauses_that_mean_something_are_refused(both: Neighbors, sql: str) -> None:
    """Rather than answered without them."""
    assert_refused(both, sql)


@pytest.mark.parametrize("call", [
    "mod(n, 2, 3)", "now(n)", "current_date(n)", "uuid(note, 'a')", "today(1, 2)", "user(n)", "session_user(n)",
    "current_user(n)", "version(n)", "pg_catalog.now(n)", "floor(x, 1, 2)", "ceil(x, 1, 2)",
    "position(note, 'a', 1, 2)",
    "log10(x, 2)", "lpad(note, 3, 'a', 'b')", "length(note, 'a', 'b')", "to_char(day, 'YYYY', n)", "var_map(n)",
    "div(n, 2, 3)", "initcap(note, 'a', 'b')", "max_by(n, x, 1, 2)", "current_timestamp(n)",
    "like(note, 'a', 'b', 'c')",
])  # fmt: skip
def test_trap_13_arguments_too_many_are_refused(both: Neighbors, call: str) -> None:
    """Law 3: nothing that was written is left out."""
    assert assert_alike(both, f"EXPLAIN SELECT COUNT(*) FROM visits WHERE {call} IS NOT NULL").kind != "answered"


@pytest.mark.parametrize("condition", [
    "EXISTS (SELECT 1 FROM visits u WHERE u.pid = v.pid AND u.x > v.x)",
    "pid IN (SELECT pid FROM people WHERE age > 5)",
    "NOT EXISTS (SELECT 1 FROM people p WHERE p.pid = v.pid AND p.age > 500)",
    "pid NOT IN (SELECT pid FROM people WHERE age > 500)",
    "pid = ANY (SELECT pid FROM visits)", "n > ALL (SELECT rank FROM kinds)", "kind IN (SELECT kind FROM kinds)",
    "n >= (SELECT MIN(u.n) FROM visits u WHERE u.pid = v.pid)",
])  # fmt: skip
def test_trap_14_a_semi_join_looks_at_the_units_own_rows(quiet: Neighbors, condition: str) -> None:
    """Without noise one unit moves the count by its norm at most."""
    sql = f"SELECT COUNT(*) FROM visits v WHERE {condition}"
    ((without,),), ((with_victim,),) = (side.execute(sql).rows for side in (quiet.without, quiet.with_victim))
    assert abs(with_victim - without) <= ROWS


@pytest.mark.parametrize("condition", [
    "EXISTS (SELECT 1 FROM visits u WHERE u.pid = 7)",
    "EXISTS (SELECT 1 FROM visits u WHERE u.pid <> v.pid AND u.n = v.n)",
    "n IN (SELECT n FROM visits WHERE pid = 7)",
    "NOT EXISTS (SELECT 1 FROM visits u WHERE u.n = v.n AND u.pid > v.pid)",
    "n > ANY (SELECT n FROM visits)", "n = (SELECT MAX(u.n) FROM visits u WHERE u.pid > v.pid)",
    "n NOT IN (SELECT i FROM visits)",
    "(n, i) IN (SELECT n, i FROM visits)", "EXISTS (SELECT pid FROM visits INTERSECT SELECT 7)",
    "v.n IN (SELECT u.n FROM visits u OFFSET 1)",
])  # fmt: skip
def test_trap_14_or_is_refused(both: Neighbors, condition: str) -> None:
    """Else one unit would let every other unit's rows through, or stop them."""
    assert_refused(both, f"SELECT COUNT(*) FROM visits v WHERE {condition}")


# --- 15 to 18: answers, prices, formulas -----------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["COUNT(*)", "SUM(x)", "AVG(x)", "MEDIAN(x)", "MIN(f)", "COUNT(DISTINCT ward)",
"MODE(kind)",
                                     "STDDEV(x)", "CORR(x, n)", "BOOL_OR(ok)", "COUNT(DISTINCT pid)", "MODE(ward)",
                                     "HISTOGRAM(ward)", "QUANTILE_CONT(x, [0.1, 0.9])",
                                     "APPROX_TOP_K(ward, 2)"])  # fmt: skip
def test_trap_15_a_scalar_aggregate_is_one_row(both: Neighbors, measure: str) -> None:
    """However few rows there are: none, the victim's, or all."""
    for where in ("FALSE", "pid = 7", "pid = 7 AND n = 9", "TRUE"):
        for side in (both.without, both.with_victim):
            answer = side.execute(f"SELECT {measure} FROM visits WHERE {where}")
            assert len(answer.rows) == 1 and len(answer.rows[0]) == 1


PRICED = [
    "SELECT COUNT(*) FROM visits WHERE n > 1", "SELECT COUNT(*), SUM(x), AVG(n) FROM visits WHERE n > 2",
    "SELECT MEDIAN(x) FROM visits",
    "SELECT ward, COUNT(*) FROM visits WHERE n > 3 GROUP BY ward",
    "SELECT kind, ward, SUM(x) FROM visits GROUP BY ROLLUP (kind, ward)",
    "SELECT COUNT(*) FROM visits WHERE x > (SELECT AVG(x) FROM visits WHERE n > 4)", "SELECT kind, rank FROM kinds",
    "SELECT (SELECT COUNT(*) FROM visits WHERE n > 5) - (SELECT COUNT(*) FROM people WHERE age > 5) AS d",
    "WITH a AS (SELECT COUNT(*) AS c FROM visits WHERE n > 6) SELECT x.c, y.c FROM a x, a y",
    "SELECT MODE(ward), MAX(f) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE n > 7 UNION ALL SELECT COUNT(*) FROM visits WHERE n > 7",
    "SELECT CORR(x, n) FROM visits",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.25, delta = 1e-9) kind, COUNT(*) FROM visits GROUP BY kind",
]  # fmt: skip


@pytest.mark.parametrize("noise", ["laplace", "gaussian", "auto"])
@pytest.mark.parametrize("sql", PRICED)
def test_trap_16_the_price_that_is_shown_is_the_charge(both: Neighbors, sql: str, noise: str) -> None:
    """Asked the first time; and the second time it is free."""
    side, epsilon = both.small, {"laplace": "0.5", "gaussian": "0.75", "auto": "1.5"}[noise]
    sql = sql.replace("epsilon = 0.25", f"epsilon = {epsilon}1")
    side.execute(f"SET noise = {noise}")
    side.execute(f"SET epsilon = {epsilon}")
    try:
        shown, before = side.explain(sql), side.budget()
        distinct = {(step.plan_hash): step.loss for step in side.compile_statement(sql, ()).steps}
        answer, after = side.execute(sql), side.budget()
        assert after.spent_rho - before.spent_rho == sum(loss.rho for loss in distinct.values()) == answer.loss.rho
        assert after.spent_delta - before.spent_delta == sum(loss.delta for loss in distinct.values())
        assert sum(release.rho for release in shown.releases) >= answer.loss.rho
        assert answer.loss == sum_losses(list(distinct.values()))
        assert side.execute(sql).loss.rho == 0 and side.budget() == after
    finally:
        side.execute("RESET ALL")


def _gaussian_delta(ratio: float, epsilon: float) -> float:
    """The exact delta of Gaussian noise with this sigma over sensitivity (Balle, Wang 2018)."""
    phi = lambda t: math.erfc(-t / math.sqrt(2)) / 2  # noqa: E731
    a, b = 1 / (2 * ratio), epsilon * ratio
    return phi(a - b) - math.exp(epsilon) * phi(-a - b)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3", "10", "50"])
def test_trap_17_gaussian_noise_is_enough_above_epsilon_one(both: Neighbors, epsilon: str) -> None:
    """The textbook formula is too small there, as the negative control shows."""
    asked = (f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = {epsilon}, delta = 1e-6, noise = 'gaussian')"
             " COUNT(*) FROM visits")  # fmt: skip
    (release,) = both.without.explain(asked).releases
    (bundle,) = release.bundles
    assert bundle.mechanism == "gaussian"
    assert _gaussian_delta(float(bundle.scale) / bundle.l2, float(epsilon)) <= 1e-6
    textbook = math.sqrt(2 * math.log(1.25 / 1e-6)) / 50
    assert _gaussian_delta(textbook, 50.0) > 1e-6


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("delta", ["1e-6", "1e-9"])
def test_trap_18_a_key_of_one_unit_hides_behind_its_threshold(both: Neighbors, noise: str, delta: str) -> None:
    """It does not appear, and a delta is charged for the chance that it could: `test_soundness_noise.py` sums tails."""
    side = both.with_victim
    sql = (f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = {delta}, noise = '{noise}')"
           " note, COUNT(*) FROM visits GROUP BY note")  # fmt: skip
    compiled = side.compile_statement(sql, ())
    (step,) = compiled.steps
    assert 0 < sum(release.delta for release in side.explain(sql).releases) <= Fraction(delta)
    assert step.calibrated.selection is not None and step.calibrated.selection.reach.l0 == GROUPS
    keys = {row[0] for row in side.execute(sql).rows}
    assert keys <= {f"fine {k}" for k in range(5)}, "a note of the victim's alone was released"


# --- 19, 20: caps and order ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [ROWS - 1, ROWS, ROWS + 1, 10 * ROWS])
def test_trap_19_a_cap_is_not_off_by_one(tmp_path: Path, rows: int) -> None:
    """A unit with the norm's rows counts in full, and one with a row more counts no more."""
    crowd = CROWD.format(110)
    mine = ("INSERT INTO visits (vid, pid, kind, ward, x, n)"
            f" SELECT i, 7, 'a', 'own' || i, 100, 100 FROM range({rows}) r(i)")  # fmt: skip
    without = open_side(tmp_path / "without", crowd, quiet=True)
    with_rows = open_side(tmp_path / "with", f"{crowd} INSERT INTO people (pid) VALUES (7); {mine}", quiet=True)
    for sql, most in (("SELECT COUNT(*) FROM visits", 1), ("SELECT SUM(x) FROM visits", 100)):
        ((before,),), ((after,),) = (side.execute(sql).rows for side in (without, with_rows))
        assert 0.999 * most * min(rows, ROWS) <= after - before <= most * min(rows, ROWS)
    keys = [exact(side, "SELECT ward, COUNT(*) FROM visits GROUP BY ward") for side in (without, with_rows)]
    assert len(keys[1].keys() - keys[0].keys()) == min(rows, GROUPS)
    moved = [key for key in keys[0] if keys[0][key][0] != keys[1][key][0]]
    assert not moved
    without.dataset.close(), with_rows.dataset.close()


@pytest.mark.parametrize(
    "order", ["x", "vid", "note", "pid", "CORR(w, x)", "MAX(w) OVER ()", "first(n)", "arg_max(n, x)"]
)
def test_trap_20_no_order_by_exact_values(both: Neighbors, order: str) -> None:
    """An order by what was not released would tell of it."""
    assert_refused(both, f"SELECT kind, COUNT(*) FROM visits GROUP BY kind ORDER BY {order}")
    assert_refused(both, f"SELECT COUNT(*) FROM visits ORDER BY {order}")


def test_trap_20_what_is_ordered_by_is_released(both: Neighbors, quiet: Neighbors) -> None:
    """Rows stand in the order of the noisy values that they show, and ties in that of their keys."""
    answer = both.with_victim.execute("SELECT kind, COUNT(*) AS c FROM visits GROUP BY kind ORDER BY c DESC")
    assert [row[1] for row in answer.rows] == sorted((row[1] for row in answer.rows), reverse=True)
    hidden = "SELECT kind FROM visits GROUP BY kind ORDER BY SUM(x) DESC LIMIT 1"
    assert both.without.explain(hidden).releases[0].bundles
    tied = "SELECT kind, COUNT(*) AS c FROM visits WHERE FALSE GROUP BY kind ORDER BY c"
    orders = [[row[0] for row in side.execute(tied).rows] for side in (quiet.without, quiet.with_victim)]
    assert orders[0] == orders[1] == ["a", "b", "c", None]


def test_trap_20_selected_keys_come_in_their_own_order(both: Neighbors) -> None:
    """Not in that of the engine's hash table, nor of their counts."""
    for side in (both.without, both.with_victim):
        wards = [row[0] for row in side.execute("SELECT ward, COUNT(*) FROM visits GROUP BY ward").rows]
        assert wards == sorted(wards)
        keys = [row[0] for row in side.execute("SELECT w, COUNT(*) FROM visits GROUP BY w").rows]
        assert keys == sorted(keys, key=lambda key: (key is None, key))
