"""Caps of rows that nobody declared: of models, synthetic tables, scores, and questions to a mechanism."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.errors import BudgetExceeded, InvalidParameter, UnboundedContribution
from dpsql.session.dataset.dataset import Dataset
from dpsql.session.result import StatementResult
from dpsql.session.session import Session
from tests.support.store import explain_text, open_store, session_of

SCHEMA = """
privacy:
  unit: sales.customer
  budget: {epsilon: 40, delta: 1e-5}
  query: {epsilon: 1, delta: 1e-7}
analysts:
  ana: {budget: {epsilon: 16, delta: 1e-6}}
  bob: {budget: {epsilon: 8, delta: 1e-6}}
tables:
  sales:
    unit: customer
    columns:
      customer: {type: bigint}
      shop: {type: text, values: [north, south]}
      city: {type: text}
      amount: {type: double}
      grade: {type: integer, bounds: [0, 49]}
      paid: {type: boolean}
"""

DATA = """
CREATE TABLE sales AS
SELECT (i % 4000)::BIGINT AS customer, CASE WHEN i % 5 = 0 THEN 'north' ELSE 'south' END AS shop,
  ['Rome', 'Rome', 'Oslo'][1 + i % 3] AS city, (i % 50)::DOUBLE AS amount, (i % 50)::INTEGER AS grade,
  i % 50 > 20 AS paid FROM range(20000) t(i)
"""

MODEL = "CREATE MODEL m AS LINEAR REGRESSION ON grade USING paid FROM sales"
TABLE = "CREATE SYNTHETIC TABLE like_sales AS SELECT shop, paid FROM sales"
BEST = "SELECT PRIVATE_ARGMAX(shop, COUNT(*)) AS busiest FROM sales"
FEW = "WHERE customer = 7"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Dataset]:
    with open_store(tmp_path, SCHEMA, DATA) as dataset:
        yield dataset


# --- models, synthetic tables and scores: a statement that is made of a histogram and a release ----------------------


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("sql", [MODEL, TABLE, BEST])
def test_the_histogram_is_paid_from_what_the_statement_asks_for(store: Dataset, sql: str, noise: str) -> None:
    session = session_of(store, noise=noise)
    result = session.execute(sql)
    assert session.budget().charges == 2 and result.loss.rho == session.budget().spent_rho
    if noise == "laplace":
        assert result.loss.epsilon is not None and Fraction(99, 100) < result.loss.epsilon <= 1
    assert any("a unit counts like at most" in notice for notice in result.notices)


@pytest.mark.parametrize("sql", [MODEL, TABLE, BEST])
def test_a_repeat_is_free(store: Dataset, sql: str) -> None:
    session = session_of(store, noise="laplace")
    first = session.execute(sql)
    repeated = session.execute(sql.replace(" m AS", " m2 AS").replace("like_sales", "like_sales2"))
    assert repeated.rows == first.rows and repeated.loss.rho == 0 and session.budget().charges == 2


def test_one_histogram_serves_all_that_is_made_of_the_same_rows(store: Dataset) -> None:
    session = session_of(store, noise="laplace")
    session.execute(MODEL)
    session.execute(f"{TABLE} WITH (bins = 2)")
    session.execute("SELECT COUNT(*) FROM sales")
    assert session.budget().charges == 4


@pytest.mark.parametrize("sql", [f"{MODEL} {FEW}", f"{TABLE} {FEW}", f"{BEST} {FEW}"])
def test_too_few_units_end_it_and_the_rest_is_not_charged(store: Dataset, sql: str) -> None:
    session = session_of(store, noise="laplace")
    with pytest.raises(InvalidParameter, match="too few privacy units") as caught:
        session.execute(sql)
    assert "question itself was not" in str(caught.value.detail) and "contributions.rows" in str(caught.value.hint)
    assert session.budget().charges == 1
    with pytest.raises(InvalidParameter, match="too few privacy units"):
        session.execute(sql)
    assert session.budget().charges == 1


@pytest.mark.parametrize("sql", [MODEL, TABLE, BEST])
def test_explain_shows_both_prices_and_nothing_of_what_another_account_bought(store: Dataset, sql: str) -> None:
    bob = session_of(store, "bob", "laplace")
    before = explain_text(bob, sql)
    assert "for the histogram of units, and then" in before and "at most epsilon 1" in before
    session_of(store, noise="laplace").execute(sql)
    assert explain_text(bob, sql) == before and bob.budget().charges == 0
    bob.execute(sql.replace(" m AS", " m2 AS"))
    assert "for the histogram of units, and then" not in explain_text(bob, sql.replace(" m AS", " m3 AS"))


@pytest.mark.parametrize("sql", [MODEL, TABLE, BEST])
def test_nothing_is_charged_where_both_parts_cannot_be_paid(store: Dataset, sql: str) -> None:
    session = session_of(store, "bob", "laplace")
    session.execute("SET epsilon = 8.5")
    with pytest.raises(BudgetExceeded):
        session.execute(sql)
    assert session.budget().charges == 0


@pytest.mark.parametrize("sql", [MODEL, TABLE, BEST])
def test_a_cap_of_the_analysts_own_needs_no_histogram(store: Dataset, sql: str) -> None:
    session = session_of(store, noise="laplace")
    session.execute("SET contributions.rows = 5")
    session.execute(sql)
    assert session.budget().charges == 1


def test_values_that_are_released_first_have_their_own_histogram(store: Dataset) -> None:
    session = session_of(store, noise="gaussian")
    sql = "CREATE SYNTHETIC TABLE t AS SELECT city, paid FROM sales WITH (epsilon = 4)"
    assert "the values of city are not declared" in explain_text(session, sql)
    result = session.execute(sql)
    assert result.loss.rho == session.budget().spent_rho and session.budget().charges == 4
    ((rows,),) = session.execute("SELECT COUNT(*) FROM t WHERE city = 'Rome'").rows
    assert rows == pytest.approx(13_333, rel=0.1)


def test_the_best_of_unknown_values_is_found(store: Dataset) -> None:
    session = session_of(store, noise="gaussian")
    session.execute("SET epsilon = 4")
    assert session.execute("SELECT PRIVATE_ARGMAX(city, SUM(grade)) AS best FROM sales").rows == [("Rome",)]


def test_a_draw_from_a_posterior_is_near_the_share(store: Dataset) -> None:
    ((draws,),) = (
        session_of(store, noise="laplace").execute("SELECT POSTERIOR_SAMPLE(paid, draws => 3) FROM sales").rows
    )
    assert all(share == pytest.approx(0.58, abs=0.2) for share in draws)


# --- interactive mechanisms ------------------------------------------------------------------------------------------


def ask(session: Session, question: str, name: str = "busy") -> StatementResult:
    return session.execute(f"ASK {name} {question}")


def declare(session: Session, options: str = "epsilon = 1, answers = 3", name: str = "busy") -> None:
    session.execute(f"DECLARE {name} THRESHOLD 3000 WITH ({options})")


def test_the_first_question_chooses_the_rows_and_so_the_sensitivity(store: Dataset) -> None:
    session = session_of(store, noise="laplace")
    declare(session)
    assert "histogram of units" in explain_text(session, "ASK busy SELECT COUNT(*) FROM sales")
    first = ask(session, "SELECT COUNT(*) FROM sales WHERE shop = 'south'")
    assert first.rows == [(True, 2)] and session.budget().charges == 2
    assert first.loss.rho == session.budget().spent_rho
    assert first.loss.epsilon is not None and Fraction(99, 100) < first.loss.epsilon <= 1
    assert any("a unit counts like at most" in notice for notice in first.notices)
    second = ask(session, "SELECT COUNT(*) FROM sales WHERE shop = 'north'")
    assert second.loss.rho == 0 and second.notices == () and session.budget().charges == 2


def test_its_histogram_serves_the_next_mechanism_and_a_count_of_the_same_rows(store: Dataset) -> None:
    session = session_of(store, noise="laplace")
    declare(session)
    ask(session, "SELECT COUNT(*) FROM sales")
    declare(session, name="again")
    again = ask(session, "SELECT COUNT(*) FROM sales", "again")
    assert again.loss.epsilon == pytest.approx(0.9, rel=1e-3) and session.budget().charges == 3
    assert session.execute("SELECT COUNT(*) FROM sales").loss.epsilon == pytest.approx(0.9, rel=1e-3)


def test_a_declared_sensitivity_says_how_many_rows_count_and_no_histogram_is_bought(store: Dataset) -> None:
    session = session_of(store, noise="laplace")
    declare(session, "epsilon = 4, sensitivity = 98")
    assert ask(session, "SELECT SUM(grade) FROM sales").rows == [(True, 0)]
    assert session.budget().charges == 1
    declare(session, "epsilon = 4", "other")
    session.execute("ASK (SENSITIVITY 6) other SELECT COUNT(*) FROM sales")
    assert session.budget().charges == 2


def test_a_question_never_moves_by_more_than_the_sensitivity(store: Dataset) -> None:
    """Rows are fitted to it: of a sum fewer of them than of a count."""
    session = session_of(store, noise="laplace")
    declare(session, "epsilon = 1, answers = 3, sensitivity = 40")
    with pytest.raises(InvalidParameter, match="one unit moves this number by up to 49"):
        ask(session, "SELECT SUM(grade) FROM sales")
    assert session.budget().charges == 0


def test_a_sum_without_bounds_is_refused_with_a_hint(store: Dataset) -> None:
    session = session_of(store, noise="laplace")
    declare(session)
    with pytest.raises(UnboundedContribution, match="have no bounds") as caught:
        ask(session, "SELECT SUM(amount) FROM sales")
    assert "CLIP" in str(caught.value.hint) and session.budget().charges == 0


def test_too_few_units_end_the_first_question_and_the_mechanism_is_not_charged(store: Dataset) -> None:
    session = session_of(store, noise="laplace")
    declare(session)
    with pytest.raises(InvalidParameter, match="too few privacy units"):
        ask(session, f"SELECT COUNT(*) FROM sales {FEW}")
    assert session.budget().charges == 1
    assert ask(session, "SELECT COUNT(*) FROM sales").rows == [(True, 2)]


def test_a_mechanism_that_the_budget_does_not_cover_buys_no_histogram(store: Dataset) -> None:
    session = session_of(store, "bob", "laplace")
    declare(session, "epsilon = 8.5, answers = 3")
    with pytest.raises(BudgetExceeded):
        ask(session, "SELECT COUNT(*) FROM sales")
    assert session.budget().charges == 0


def test_a_holdout_by_its_noise_pays_for_the_histogram_beside_it(store: Dataset) -> None:
    session = session_of(store, noise="laplace")
    session.execute("DECLARE h HOLDOUT WITH (n = 20000, threshold = 0.1, sigma = 0.05)")
    assert "some epsilon more" in explain_text(session, "ASK h SELECT SUM(grade) FROM sales AGAINST 20.5")
    answer = ask(session, "SELECT SUM(CASE WHEN paid THEN 1 ELSE 0 END) FROM sales AGAINST 0.58", "h")
    assert answer.rows[0][0] == pytest.approx(0.58, abs=0.3) and session.budget().charges == 2
