"""Trackers: differences, complements, repeats and averages. The same noise comes back, or each draw is paid for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dpsql.errors import BudgetExceeded
from dpsql.privacy.sampling import Integers
from dpsql.session.session import Session
from tests.support.attack_hospital import (
    DATA,
    VICTIM,
    Pair,
    build,
    build_pair,
    for_free,
    outcome,
    same_outcome,
    schema_text,
    spent,
    told_apart,
)
from tests.support.likeliest_index import likeliest_index

pytestmark = pytest.mark.slow


class Counting:
    """Seeded noise, for tests alone, that remembers the price of every cell it was drawn for: (scale, cells)."""

    def __init__(self, seed: int = 1) -> None:
        self._random = np.random.default_rng(seed)
        self.gaussians: list[tuple[Fraction, int]] = []
        self.laplaces: list[tuple[Fraction, int]] = []

    def gaussian(self, n: int, sigma: Fraction) -> Integers:
        self.gaussians.append((sigma, n))
        return np.rint(self._random.normal(0, float(sigma), n)).astype(np.int64)

    def laplace(self, n: int, scale: Fraction) -> Integers:
        self.laplaces.append((scale, n))
        return np.rint(self._random.laplace(0, float(scale), n)).astype(np.int64)

    def choose(self, penalties: npt.NDArray[Any], scale: Fraction) -> Integers:
        return likeliest_index(penalties)

    def flip(self, penalties: npt.NDArray[Any], scale: Fraction) -> Integers:
        return self.choose(penalties, scale)

    @property
    def draws(self) -> int:
        return len(self.gaussians) + len(self.laplaces)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = build_pair(tmp_path_factory.mktemp("trackers"))
    yield made
    made.close()


@pytest.fixture
def watched(tmp_path: Path) -> tuple[Session, Counting]:
    sampler = Counting()
    return build(tmp_path, "watched", schema_text("watched"), DATA + VICTIM, sampler=sampler), sampler


def paid_at_least(session: Session, sampler: Counting, l2: int) -> None:
    """The ledger's rho covers every cell that Gaussian noise was drawn for, as if each had this sensitivity."""
    cost = sum(n * Fraction(l2**2) / (2 * sigma**2) for sigma, n in sampler.gaussians)
    assert spent(session)[1] >= cost * Fraction(10**9 - 1, 10**9)


# --- differences -----------------------------------------------------------------------------------------------------

DIFFERENCES = [
    ["SELECT COUNT(*) FROM people", "SELECT COUNT(*) FROM people WHERE pid <> 7"],
    ["SELECT COUNT(*) FROM people WHERE age = 33 AND sex = 'f'",
        "SELECT COUNT(*) FROM people WHERE age = 33 AND sex = 'm'",
     "SELECT COUNT(*) FROM people WHERE age = 33"],
    ["SELECT COUNT(*) FROM visits WHERE ward = 'own1'", "SELECT COUNT(*) FROM visits WHERE NOT ward = 'own1'",
     "SELECT COUNT(*) FROM visits WHERE ward IS NOT NULL"],
    ["SELECT SUM(n) FROM visits WHERE pid BETWEEN 0 AND 7", "SELECT SUM(n) FROM visits WHERE pid BETWEEN 0 AND 6"],
    ["SELECT SUM(n) FROM visits WHERE pid = 7"],
    ["SELECT COUNT(*) FROM (SELECT pid FROM people EXCEPT SELECT pid FROM people WHERE pid <> 7) t"],
    ["SELECT COUNT(*) FROM (SELECT pid FROM people INTERSECT SELECT pid FROM visits WHERE ward = 'own1') t"],
    ["SELECT COUNT(*) FILTER (WHERE pid = 7), COUNT(*) FILTER (WHERE pid <> 7), COUNT(*) FROM people"],
    ["SELECT CASE WHEN pid = 7 THEN 'her' ELSE 'others' END AS who, COUNT(*), SUM(age) FROM people GROUP BY 1"],
    ["SELECT pid = 7 AS who, COUNT(*) FROM visits GROUP BY 1"],
    ["SELECT COUNT(*) FROM people a JOIN people b ON a.pid = b.pid WHERE b.pid = 7"],
    ["SELECT COUNT(*) FROM people p WHERE (SELECT COUNT(*) FROM visits v WHERE v.pid = p.pid) > 300"],
    ["SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*) > 0 ORDER BY COUNT(*) LIMIT 1"],
    ["SELECT city, COUNT(*) FROM people GROUP BY city ORDER BY COUNT(*) LIMIT 1"],
    ["SELECT city, COUNT(*) AS c FROM people GROUP BY city QUALIFY ROW_NUMBER() OVER (ORDER BY c) = 1"],
    ["SELECT pid, COUNT(*) FROM visits WHERE pid IN (6, 7, 8) GROUP BY pid"],
    ["SELECT * FROM (SELECT kind, n FROM visits WHERE pid = 7) PIVOT (SUM(n) FOR kind IN ('a', 'b', 'c'))"],
    ["SELECT COUNT(*) FROM people WHERE city = 'nowhere'", "SELECT COUNT(*) FROM people WHERE city >= 'nowhere'",
     "SELECT COUNT(*) FROM people WHERE city > 'nowhere'"],
]  # fmt: skip


@pytest.mark.parametrize("questions", DIFFERENCES, ids=range(len(DIFFERENCES)))
def test_a_difference_of_answers_costs_what_its_parts_cost(pair: Pair, questions: list[str]) -> None:
    """Each question moves by its claim at most, is paid for in full, and shows no key that only the victim has."""
    for sql in questions:
        if same_outcome(pair, sql) != "answered":
            continue
        assert told_apart(pair, sql) == [], sql
        keys = {value for row in pair.with_.execute(sql).rows for value in row if isinstance(value, str)}
        assert not any(key.startswith(("own", "nowhere")) for key in keys), sql
    paid = [spent(session)[1:] for session in pair]
    assert paid[0] == paid[1]


REFUSED = [
    "SELECT pid, COUNT(*) FROM visits GROUP BY pid",
    "SELECT DISTINCT pid FROM visits",
    "SELECT pid FROM people",
    "SELECT * FROM people WHERE pid = 7",
    "SELECT pid, age, COUNT(*) FROM people GROUP BY 1, 2",
    "SELECT ANY_VALUE(city) FROM people WHERE pid = 7",
    "SELECT FIRST(city) FROM people", "SELECT STRING_AGG(city, ',') FROM people", "SELECT ARRAY_AGG(pid) FROM people",
    "SELECT LIST(pid) FROM people", "SELECT ARG_MAX(pid, age) FROM people", "SELECT MAX(pid) FROM people",
    "SELECT MIN(city) FROM people WHERE pid = 7", "SELECT MAX_BY(city, age) FROM people",
    "SELECT (SELECT city FROM people WHERE pid = 7), COUNT(*) FROM visits",
    "SELECT COUNT(*) OVER () FROM people", "SELECT SUM(age) OVER (ORDER BY pid) FROM people",
    "SELECT pid FROM people LIMIT 1", "SELECT pid FROM people FETCH FIRST 1 ROWS ONLY",
    "SELECT pid FROM people EXCEPT SELECT pid FROM visits", "SELECT pid FROM people UNION SELECT 1",
    "PIVOT visits ON pid USING COUNT(*)", "SELECT * FROM visits PIVOT (COUNT(*) FOR pid IN (SELECT pid FROM people))",
    "SELECT COUNT(*), pid FROM people", "SELECT pid + COUNT(*) FROM people GROUP BY pid",
    "SELECT COUNT(*) FROM people HAVING MAX(pid) = 7",
    "SELECT GROUPING(pid), pid, COUNT(*) FROM people GROUP BY CUBE (pid)",
    "SELECT COUNT(*) FROM people ORDER BY pid",
    "SELECT t.n FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid) t",
    "SELECT hash(pid), COUNT(*) FROM people GROUP BY 1 HAVING pid = 7",
    "TABLE people", "FROM people", "DESCRIBE SELECT pid FROM people LIMIT 5 OFFSET 1",
    "SELECT rowid FROM people", "SELECT _uid, COUNT(*) FROM people GROUP BY 1",
]  # fmt: skip


@pytest.mark.parametrize("sql", REFUSED)
def test_a_single_row_is_refused_for_free_or_selected_away(pair: Pair, sql: str) -> None:
    before = [session.budget().charges for session in pair]
    said = same_outcome(pair, sql)
    if said == "answered":
        release = pair.with_.explain(sql).releases[0]
        assert release.selection is not None and told_apart(pair, sql) == []
        rows = pair.with_.execute(sql).rows
        assert rows == [] or not any(7 in row or "nowhere" in row for row in rows)
    else:
        assert [session.budget().charges for session in pair] == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT MIN(age) FROM people",
        "SELECT MAX(n) FROM visits",
        "SELECT MODE(city) FROM people",
        "SELECT APPROX_TOP_K(city, 9) FROM people",
        "SELECT HISTOGRAM(ward) FROM visits",
    ],
)
def test_an_extreme_or_unique_value_of_one_unit_does_not_leave(tmp_path: Path, sql: str) -> None:
    """She is the only one who is 120, who has a value of 100, who lives nowhere."""
    data = DATA + "UPDATE visits SET n = n % 50; DELETE FROM people WHERE age < 5;"
    made = build_pair(tmp_path, data=data, victim=VICTIM.replace("'f', 33", "'f', 120").replace("1000000", "100"))
    seen = [str(session.execute(sql).rows) for session in made]
    assert "nowhere" not in seen[1] and "own" not in seen[1]
    assert told_apart(made, sql) == []
    made.close()


# --- the same question again -----------------------------------------------------------------------------------------

SPELLINGS = [
    "SELECT COUNT(*) FROM visits WHERE n > 10", "select count(*) from visits where n>10",
    "SELECT COUNT(*) FROM visits WHERE 10 < n", "SELECT COUNT(*) FROM visits WHERE n >= 11",
    "SELECT COUNT(*) FROM visits WHERE NOT n <= 10", "SELECT COUNT(1) FROM visits WHERE n > 10",
    "SELECT COUNT(*) FROM visits v WHERE v.n > 10", "SELECT COUNT(*) AS c FROM visits WHERE n > 10 AND n > 10",
    "SELECT COUNT(*) FROM (SELECT * FROM visits) t WHERE n > 10",
    "SELECT COUNT(*) FROM (SELECT * FROM visits WHERE n > 10) t",
    "WITH v AS (SELECT * FROM visits) SELECT COUNT(*) FROM v WHERE n > 10",
    "SELECT COUNT('x') FROM visits WHERE n > 10",
    "SELECT COUNT(*) + 0 FROM visits WHERE n > 10",
    "/* again */ SELECT COUNT(*) FROM public.visits WHERE n > 10 -- again",
    "SELECT COUNT(*) FROM visits WHERE n > 10 ORDER BY 1 LIMIT 5",
    "SELECT COUNT(*) FROM visits WHERE (n > 10) HAVING TRUE",
    "SELECT COUNT(*) FROM visits WHERE n > 10.0", "SELECT COUNT(*) FROM visits WHERE n BETWEEN 11 AND 1000",
    "SELECT COUNT(*) FROM visits WHERE n + 0 > 10", "SELECT COUNT(*) FROM visits WHERE n > 5 + 5",
    "SELECT COUNT(*) FROM visits WHERE CASE WHEN n > 10 THEN TRUE ELSE FALSE END",
    "SELECT COUNT(*) FROM visits WHERE n > 10 AND 1 = 1", "SELECT SUM(1) FROM visits WHERE n > 10",
]  # fmt: skip


def test_other_spellings_give_the_same_noise_or_are_paid_for(watched: tuple[Session, Counting]) -> None:
    session, sampler = watched
    seen: dict[int, tuple[object, ...]] = {}
    for sql in SPELLINGS:
        before, draws = spent(session)[1], sampler.draws
        row = session.execute(sql).rows[0]
        new = sampler.draws - draws
        price = sum(step.loss.rho for step in session.compile_statement(sql, ()).steps)
        assert spent(session)[1] - before == (price if new else 0), sql
        if not new:
            assert row in seen.values(), "what is free was seen before"
        seen[len(seen)] = row
    assert session.budget().charges < len(SPELLINGS) / 2, "most spellings are known for one question"


def test_the_same_question_at_other_epsilons(watched: tuple[Session, Counting]) -> None:
    """Less accuracy is free after more of it; more accuracy is a new draw, paid in full."""
    session, sampler = watched
    sql, total = "SELECT COUNT(*) FROM visits", Fraction(0)
    for epsilon in ("0.5", "0.4", "0.1", "1", "0.9", "2", "0.5"):
        session.set("epsilon", epsilon)
        before, draws = spent(session)[1], sampler.draws
        price = session.compile_statement(sql, ()).steps[0].loss.rho
        session.execute(sql)
        charged = spent(session)[1] - before
        assert charged == (price if sampler.draws > draws else 0)
        total += charged
    assert sampler.draws == 3 and total == spent(session)[1]


ONE_STATEMENT = [
    "SELECT " + ", ".join(["COUNT(*)"] * 50) + " FROM visits",
    "SELECT " + ", ".join(f"COUNT(*) + {i}" for i in range(50)) + " FROM visits",
    "SELECT " + ", ".join(f"COUNT({i})" for i in range(50)) + " FROM visits",
    " UNION ALL ".join(["SELECT COUNT(*) FROM visits"] * 50),
    "SELECT " + ", ".join(["(SELECT COUNT(*) FROM visits)"] * 100),
    "WITH c AS (SELECT COUNT(*) AS k FROM visits) SELECT a.k, b.k FROM c a, c b",
    "SELECT COUNT(*), SUM(1), COUNT(*) FILTER (WHERE TRUE) FROM visits",
    "SELECT t.k, u.k FROM (SELECT COUNT(*) AS k FROM visits) t, (SELECT COUNT(*) AS k FROM visits) u",
    "SELECT COUNT(*) FROM visits GROUP BY GROUPING SETS ((), (), ())",
    "SELECT COUNT(*) FROM visits HAVING COUNT(*) > -1000000 OR COUNT(*) + 0 > 5",
]


@pytest.mark.parametrize("sql", ONE_STATEMENT, ids=range(len(ONE_STATEMENT)))
def test_one_statement_that_repeats_a_query_gets_one_draw_or_pays(watched: tuple[Session, Counting], sql: str) -> None:
    session, sampler = watched
    rows = session.execute(sql).rows
    offset = 50 if "+ 1" in sql else 0
    values = {value for row in rows for value in row if isinstance(value, int | float)}
    release = session.explain(sql).releases[0]
    cells = sum(n for _, n in sampler.gaussians)
    assert cells <= 4 or spent(session)[1] > release.rho
    assert len(values) <= max(cells, offset), "no more values than draws"
    paid_at_least(session, sampler, int(session.explain("SELECT COUNT(*) FROM visits").releases[0].bundles[0].l1))


def test_a_repeated_grouping_set_is_one_cell_or_is_paid_for(watched: tuple[Session, Counting]) -> None:
    """GROUPING SETS ((a), (a)): two noisy copies would need a unit's rows to count twice."""
    session, sampler = watched
    single = session.explain("SELECT kind, COUNT(*) FROM visits GROUP BY kind").releases[0]
    sql = "SELECT kind, COUNT(*) FROM visits GROUP BY GROUPING SETS ((kind), (kind), (kind), (kind))"
    release = session.explain(sql).releases[0]
    rows = session.execute(sql).rows
    copies = [value for key, value in rows if key == "a"]
    if len(set(copies)) > 1:
        # Four draws of one sum: the weight of a heavy unit is shared over the sets, and the noise is that of all.
        assert release.bundles[0].l2 >= single.bundles[0].l2
        made = told_apart(Pair(session, session), sql)
        assert made == []
    assert sampler.draws == 1


def test_repeats_in_lists_and_values_draw_once(watched: tuple[Session, Counting]) -> None:
    session, sampler = watched
    for sql in ("SELECT v.kind, COUNT(*) FROM visits v JOIN (VALUES ('a'), ('a'), ('b'), ('b')) t(k) ON t.k = "
        "v.kind GROUP BY v.kind",
                "SELECT t.k, COUNT(*) FROM (VALUES ('a'), ('a'), ('b')) t(k) LEFT JOIN visits v ON t.k = v.kind "
                "GROUP BY t.k",
                "SELECT kind, COUNT(*) FROM visits WHERE kind IN ('a', 'a', 'b', 'a') GROUP BY kind"):  # fmt: skip
        before = sum(n for _, n in sampler.gaussians)
        rows = session.execute(sql).rows
        assert len(rows) == len({row[0] for row in rows}) == sum(n for _, n in sampler.gaussians) - before, sql


def test_averaging_is_paid_for(tmp_path: Path) -> None:
    """An attacker changes the question a little each time and averages: the ledger stops her before the mean is good.

    With k draws the error of the mean falls like 1/√k while rho grows like k, so whatever she does, the error that she
    reaches is at least what one release for the whole budget would have had.
    """
    sampler = Counting(seed=5)
    session = build(tmp_path, "mean", schema_text("mean", epsilon="2", delta="1e-5"), DATA, sampler=sampler)
    session.set("epsilon", "0.25")
    session.set("delta", "1e-6")
    answers: list[float] = []
    with pytest.raises(BudgetExceeded):
        for number in range(1000):
            sql = f"SELECT COUNT(*) FROM people WHERE age < {1000 + number} OR pid = {-number}"
            answers.append(session.execute(sql).rows[0][0])
    assert 5 < sampler.draws == len(answers)
    assert all(n == 1 for _, n in sampler.gaussians)
    variance = 1 / sum(1 / float(sigma) ** 2 for sigma, _ in sampler.gaussians)  # of the best mean of all draws
    limit = float(session.budget().limit_rho)
    assert variance >= 1 / (2 * limit) * (1 - 1e-9)
    assert abs(float(np.mean(answers)) - 300) < 6 * math.sqrt(variance), "or the noise is not what was charged"


def test_thousands_of_tiny_charges_add_up_to_what_was_drawn(tmp_path: Path) -> None:
    """Losses round up: an epsilon below the ledger's unit is refused, never free."""
    sampler = Counting()
    session = build(tmp_path, "tiny", schema_text("tiny"), DATA, sampler=sampler)
    session.set("epsilon", "0.00001")
    for number in range(25):
        session.execute(f"SELECT COUNT(*) FROM people WHERE age > {-number}")
    cost = sum(Fraction(1) / (2 * sigma**2) for sigma, _ in sampler.gaussians)
    assert len(sampler.gaussians) == 1 or spent(session)[1] >= cost
    session.set("delta", "0")
    for number in range(25):
        session.execute(f"SELECT COUNT(*) FROM people WHERE age > {number % 100} AND pid <> {number}")
    pure = sum(Fraction(1) / scale for scale, _ in sampler.laplaces)
    entries = session.dataset.ledger.list_entries(session._account.name)
    charged = sum((loss.epsilon or Fraction(0)) for entry in entries for loss in entry.losses)
    assert charged >= pure > 0
    for tiny in ("1e-30", "1e-100", "1e-399"):
        session.set("epsilon", tiny)
        with for_free(session):
            assert outcome(session, "SELECT COUNT(*) FROM people WHERE age < 7").startswith("InvalidParameter")


def test_noise_is_fresh_for_every_new_charge(watched: tuple[Session, Counting]) -> None:
    session, sampler = watched
    for number in range(20):
        session.execute(f"SELECT COUNT(*) FROM people WHERE pid <> {-number - 1}")
    assert session.budget().charges == sampler.draws == 20
    assert spent(session)[1] >= sum(Fraction(1) / (2 * sigma**2) for sigma, _ in sampler.gaussians)
