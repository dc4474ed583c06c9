"""Randomized response: counts of recorded answers are debiased, or a notice says that they are as recorded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpsql.compiler.plan.estimators import Debiased, DebiasedMean, Linear, Mean, map_terms
from dpsql.errors import Unsupported
from dpsql.privacy.noise import Gaussian
from dpsql.privacy.release import NoiseBundle, Release, ReleaseSpec
from dpsql.schema.model import Randomized
from dpsql.session.postprocess.estimates import estimate_measure, invert_response
from dpsql.session.session import Session
from dpsql.types import BIGINT
from tests.support.randomized_survey import polls

COIN = Randomized(Fraction(math.log(3.0)), ("yes", "no"))
FOUR = Randomized(Fraction(1), ("a", "b", "c", "d"))
DEBIASED, RECORDED = "they are debiased", "as they were recorded"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with polls(tmp_path_factory.mktemp("polls")) as opened:
        yield opened


def said(session: Session, sql: str) -> tuple[bool, bool]:
    notices = session.execute(sql).notices
    return any(DEBIASED in notice for notice in notices), any(RECORDED in notice for notice in notices)


# --- known answers ---------------------------------------------------------------------------------------------------


def test_probabilities() -> None:
    assert (COIN.keep_probability, COIN.other_probability, COIN.signal_weight) == pytest.approx((0.75, 0.25, 0.5))
    assert (FOUR.keep_probability, FOUR.other_probability) == pytest.approx((0.475367, 0.174878), abs=1e-6)
    assert FOUR.signal_weight == pytest.approx(FOUR.keep_probability - FOUR.other_probability)
    certain = Randomized(Fraction(10**6), ("yes", "no"))
    assert (certain.keep_probability, certain.other_probability, certain.signal_weight) == (1.0, 0.0, 1.0)


def test_known_counts() -> None:
    undo = invert_response([("yes",), ("no",)], [(0, COIN)])
    assert undo.debias_sums(np.array([600.0, 400.0])) == pytest.approx([700.0, 300.0])
    undo = invert_response([(value,) for value in "abcd"], [(0, FOUR)])
    assert undo.debias_sums(np.array([400.0, 300.0, 200.0, 100.0]))[0] == pytest.approx(749.186, abs=1e-3)


def test_the_chance_of_the_randomizing_is_that_of_the_formula() -> None:
    """Y p(1-p) + (n-Y) q(1-q), over (p-q)^2, at the counts that are expected."""
    truth, n, p, q = np.array([500.0, 300.0, 150.0, 50.0]), 1000.0, FOUR.keep_probability, FOUR.other_probability
    seen = q * n + (p - q) * truth
    undo = invert_response([(value,) for value in "abcd"], [(0, FOUR)])
    expected = (truth * p * (1 - p) + (n - truth) * q * (1 - q)) / (p - q) ** 2
    assert undo.debias_sums(seen) == pytest.approx(truth)
    assert undo.response_variance(seen) == pytest.approx(expected)


def test_the_chance_of_two_randomized_keys_is_that_of_the_product(rounds: int = 4000) -> None:
    """Against draws of the randomizing itself."""
    rng = np.random.default_rng(7)
    groups = [(one, other) for one in ("yes", "no") for other in "abcd"]
    truth = np.array([100, 80, 60, 10, 20, 40, 90, 0])
    undo = invert_response(groups, [(0, COIN), (1, FOUR)])
    chances = np.kron(_matrix(COIN), _matrix(FOUR))
    recorded = sum(rng.multinomial(count, chances[place], rounds) for place, count in enumerate(truth))
    found = np.array([undo.debias_sums(row.astype(float)) for row in np.asarray(recorded)])
    assert found.mean(axis=0) == pytest.approx(truth, abs=6 * found.std(axis=0).max() / math.sqrt(rounds))
    estimated = np.mean([undo.response_variance(row.astype(float)) for row in np.asarray(recorded)[:500]], axis=0)
    assert estimated == pytest.approx(found.var(axis=0), rel=0.15)


def _matrix(how: Randomized) -> np.ndarray:
    size = len(how.values)
    return np.full((size, size), how.other_probability) + np.eye(size) * how.signal_weight


def released(counts: list[list[int]], keys: list[tuple[str | None, ...]], sigma: int = 5) -> Release:
    columns = tuple(np.array(column, np.int64) for column in counts)
    noise = NoiseBundle(tuple(range(len(columns))), Gaussian(Fraction(sigma)))
    return Release(tuple(keys), columns, ReleaseSpec((Fraction(1),) * len(columns), (noise,)))


def test_noise_and_chance_add_up_in_the_error() -> None:
    found = estimate_measure(
        Debiased(Linear((("c", Fraction(1)),), BIGINT), ((0, COIN),), BIGINT),
        released([[600, 400, 20]], [("yes",), ("no",), (None,)]),
        ("c",),
    )
    assert found.values == [700, 300, 20]
    assert found.stderr == pytest.approx([math.sqrt(750 + 25 * (1.5**2 + 0.5**2))] * 2 + [5.0])
    assert found.high[0] - found.values[0] == pytest.approx(2.0 * found.stderr[0])  # of noise in whole steps


def test_a_share_of_many_answers_is_debiased_with_its_chance() -> None:
    mean = Mean((("n", Fraction(1)),), (("s", Fraction(1)),), Fraction(0), Fraction(0), Fraction(1))
    recipe = DebiasedMean(mean, FOUR, Fraction(1), Fraction(1))
    found = estimate_measure(recipe, released([[1000], [400]], [()], sigma=1), ("n", "s"))
    share, p, q = 0.749186, FOUR.keep_probability, FOUR.other_probability
    assert found.values[0] == pytest.approx(share, abs=1e-6)
    chance = (share * p * (1 - p) + (1 - share) * q * (1 - q)) / 1000 / (p - q) ** 2
    noise = (1 + 0.4**2) / 1000**2 / (p - q) ** 2
    assert found.stderr[0] ** 2 == pytest.approx(chance + noise, rel=1e-6)


def test_recipes_over_other_cells_stay_debiased() -> None:
    doubled = Debiased(Linear((("c", Fraction(1)),), BIGINT), ((0, COIN),), BIGINT)
    changed = map_terms(doubled, lambda terms: tuple((cell, 2 * number) for cell, number in terms))
    assert changed == replace(doubled, recipe=Linear((("c", Fraction(2)),), BIGINT))


# --- statements ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT answer, COUNT(*) FROM people GROUP BY answer", [("yes", 700), ("no", 300), (None, 20)]),
        ("SELECT answer, COUNT(DISTINCT pid) FROM people GROUP BY answer", [("yes", 700), ("no", 300), (None, 20)]),
        ("SELECT party, COUNT(*) FROM people GROUP BY 1", [("a", 749), ("b", 84), ("c", 84), ("d", 84)]),
        ("SELECT a, COUNT(*) FROM (SELECT answer AS a FROM people WHERE age >= 0) AS t WHERE a IS NOT NULL GROUP BY a",
         [("yes", 700), ("no", 300)]),
        ("WITH t AS (SELECT * FROM people) SELECT answer, COUNT(age) FROM t GROUP BY answer HAVING COUNT(age) > 400",
         [("yes", 700)]),
        ("SELECT HISTOGRAM(answer) FROM people", [({"yes": 700, "no": 300},)]),
        ("SELECT MODE(party) FROM people", [("a",)]),
        ("SELECT ROUND(AVG(CAST(answer = 'yes' AS INTEGER))::numeric, 6) FROM people", [(0.7,)]),
        ("SELECT ROUND(AVG(CASE WHEN answer = 'yes' THEN 10 ELSE 5 END)::numeric, 6) FROM people "
         "WHERE answer IS NOT NULL", [(8.5,)]),
    ],
)  # fmt: skip
def test_what_is_debiased(session: Session, sql: str, rows: list[tuple[object, ...]]) -> None:
    answer = session.execute(sql, settings={"empty_groups": "show"})
    assert [tuple(float(v) if hasattr(v, "as_tuple") else v for v in row) for row in answer.rows] == rows
    assert said(session, sql) == (True, False)


def test_totals_of_a_rollup_are_left_alone(session: Session) -> None:
    sql = "SELECT region, answer, COUNT(*) FROM people GROUP BY GROUPING SETS ((answer), (region))"
    rows = {row[:2]: row[2] for row in session.execute(sql, settings={"empty_groups": "show"}).rows}
    assert rows[None, "yes"] / rows[None, "no"] == pytest.approx(7 / 3, rel=0.02)
    assert rows["n", None] == rows["s", None]


def test_means_of_groups_are_debiased() -> None:
    """What was recorded is a mixture of two groups of means 20 and 60, and is taken apart."""
    mean = Mean((("n", Fraction(1)),), (("s", Fraction(1)),), Fraction(0), Fraction(0), Fraction(100))
    truth = np.array([[400.0, 600.0], [400 * 20.0, 600 * 60.0]])
    seen = (truth @ _matrix(COIN)).round().astype(int).tolist()
    found = estimate_measure(Debiased(mean, ((0, COIN),), mean.type), released(seen, [("yes",), ("no",)]), ("n", "s"))
    assert found.values == pytest.approx([20.0, 60.0])
    assert all(error > 0 for error in found.stderr)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM people WHERE answer = 'yes'",
        "SELECT COUNT(*) FILTER (WHERE answer = 'yes') FROM people",
        "SELECT COUNT_IF(answer = 'yes') FROM people",
        "SELECT SUM(CASE WHEN answer = 'yes' THEN 1 ELSE 0 END) FROM people",
        "SELECT AVG(CASE WHEN answer = 'yes' THEN 1 ELSE 0 END) FROM people",
        "SELECT AVG(CASE WHEN party = 'a' THEN 1 WHEN party = 'b' THEN 0 END) FROM people",
        "SELECT AVG(CASE WHEN answer = 'yes' THEN age END) FROM people",
        "SELECT answer, COUNT(*) FROM people WHERE answer = 'yes' GROUP BY answer",
        "SELECT answer, COUNT(*) FROM people WHERE answer IN ('yes', 'no') GROUP BY answer",
        "SELECT answer, SUM(age) FROM people GROUP BY answer",
        "SELECT answer, MEDIAN(age) FROM people GROUP BY answer",
        "SELECT answer, COUNT(DISTINCT age) FROM people GROUP BY answer",
        "SELECT answer, BOOL_OR(smokes) FROM people GROUP BY answer",
        "SELECT answer, COUNT(*) FILTER (WHERE answer = 'yes') FROM people GROUP BY answer",
        "SELECT answer = 'yes' AS y, COUNT(*) FROM people GROUP BY y",
        "SELECT UPPER(answer) AS y, COUNT(*) FROM people GROUP BY y",
        "SELECT a.answer, b.answer, COUNT(*) FROM people a JOIN people b ON a.pid = b.pid GROUP BY 1, 2",
        "SELECT a.answer, COUNT(*) FROM people a JOIN people b ON a.pid = b.pid WHERE b.answer = 'yes' GROUP BY 1",
        "SELECT a.answer, COUNT(*) FROM people a WHERE EXISTS (SELECT 1 FROM people b WHERE b.pid = a.pid "
        "AND b.answer = 'yes') GROUP BY 1",
        "SELECT y, COUNT(*) FROM (SELECT pid, MAX(answer) AS y FROM people GROUP BY pid) AS t GROUP BY y",
        "SELECT y, COUNT(*) FROM (SELECT answer AS y FROM people UNION ALL SELECT sport FROM people) AS t GROUP BY y",
        "SELECT COUNT(*) FROM (SELECT pid, answer FROM people GROUP BY pid, answer) AS t",
        "SELECT COUNT(DISTINCT party) FROM people",
        "SELECT kind, COUNT(*) FROM calls c JOIN people p ON c.pid = p.pid WHERE p.sport = 'yes' GROUP BY kind",
    ],
)
def test_what_is_as_it_was_recorded_says_so(session: Session, sql: str) -> None:
    assert said(session, sql) == (False, True)


def test_one_answer_may_be_debiased_and_another_not(session: Session) -> None:
    assert said(session, "SELECT answer, COUNT(*) FROM people WHERE sport = 'yes' GROUP BY answer") == (True, True)
    assert said(session, "SELECT answer, COUNT(*), SUM(age) FROM people GROUP BY answer") == (True, True)
    rows = session.execute("SELECT answer, AVG(CAST(sport = 'yes' AS INTEGER)) FROM people GROUP BY answer")
    assert any(DEBIASED in n and "answer" in n for n in rows.notices)
    assert any(RECORDED in n and "sport" in n for n in rows.notices)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM people",
        "SELECT COUNT(answer) FROM people",
        "SELECT COUNT(*) FROM people WHERE answer IS NOT NULL",
        "SELECT region, AVG(age) FROM people GROUP BY region",
        "SELECT DISTINCT answer FROM people",
        "SELECT region, COUNT(*) FROM (SELECT region, answer FROM people) AS t GROUP BY region",
    ],
)
def test_what_reads_no_answer_says_nothing(session: Session, sql: str) -> None:
    assert said(session, sql) == (False, False)


def test_arithmetic_over_debiased_counts_has_bars_where_they_are_known(session: Session) -> None:
    answer = session.execute("SELECT answer, COUNT(*) * 2, COUNT(*) - COUNT(age) FROM people GROUP BY answer")
    doubled, difference = answer.errors[0][1:]
    assert doubled is not None and doubled.stderr == pytest.approx(2 * math.sqrt(750), rel=0.1)
    assert difference is None or difference.stderr is None


def test_an_error_that_depends_on_the_answers_cannot_be_aimed_at(session: Session) -> None:
    session.execute("SET max_error = 50")
    with pytest.raises(Unsupported, match="debiased answers"):
        session.explain("SELECT answer, COUNT(*) FROM people GROUP BY answer")
    session.execute("RESET max_error")


def test_a_derived_release_is_debiased_too(session: Session) -> None:
    fine = session.execute("SELECT region, answer, COUNT(*) FROM people GROUP BY region, answer").rows
    again = session.execute("SELECT answer, COUNT(*) FROM people WHERE region = 'n' GROUP BY answer")
    assert sorted(again.rows, key=str) == sorted(((row[1], row[2]) for row in fine if row[0] == "n"), key=str)


# --- the declaration lowers nothing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", ["add_remove", "change_one"])
def test_what_runs_and_what_is_charged_are_those_without_the_declaration(tmp_path: Path, neighbors: str) -> None:
    statements = [
        "SELECT answer, COUNT(*), AVG(age), SUM(age) FROM people GROUP BY answer",
        "SELECT AVG(CAST(answer = 'yes' AS INTEGER)) FROM people",
        "SELECT COUNT(*) FROM people WHERE answer = 'yes'",
        "SELECT party, answer, COUNT(DISTINCT pid) FROM people GROUP BY ROLLUP(party, answer)",
        "SELECT answer, MEDIAN(age), HISTOGRAM(party) FROM people GROUP BY answer",
        "SELECT note, answer, COUNT(*) FROM people GROUP BY note, answer",
    ]
    with polls(tmp_path / "with", True, neighbors) as one, polls(tmp_path / "without", False, neighbors) as other:
        for sql in statements:
            assert one.explain(sql).releases == other.explain(sql).releases
            assert (one.explain(sql).epsilon, one.explain(sql).delta) == (
                other.explain(sql).epsilon, other.explain(sql).delta)  # fmt: skip
