"""What kinds of noise are charged: the whole of what was asked for, never more, whatever the account adds up."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.ledger.audit import run_audit
from dpsql.privacy.loss import epsilon_to_rho
from dpsql.privacy.partition_selection import units_needed
from dpsql.session.dataset.dataset import Dataset
from tests.support.store import open_store, session_of

SCHEMA = """
privacy:
  unit: sales.customer
  budget: {epsilon: 40, delta: 1e-3}
  query: {epsilon: 1, delta: 1e-6}
  contributions: auto
analysts:
  ana: {budget: {epsilon: 4, delta: 1e-4}}
  eve: {budget: {epsilon: 4, delta: 1e-4}, composition: basic}
tables:
  sales:
    unit: customer
    columns:
      customer: {type: bigint}
      shop: {type: text, values: [north, south]}
      city: {type: text}
      amount: {type: double, bounds: [0, 100]}
  people:
    unit: {id: sales.customer}
    unique: [[id]]
    columns:
      id: {type: bigint}
      vip: {type: boolean}
      age: {type: bigint, bounds: [0, 99]}
"""

DATA = """
CREATE TABLE sales AS
SELECT (i % 4000)::BIGINT AS customer, ['north', 'south'][1 + i % 2] AS shop,
  ['Rome', 'Oslo', 'Bern', 'Lima'][1 + i // 4000 % 4] AS city, (i % 50)::DOUBLE AS amount FROM range(20000) t(i);
CREATE TABLE people AS SELECT i::BIGINT AS id, i % 3 = 0 AS vip, (i % 100)::BIGINT AS age FROM range(4000) t(i)
"""

BY_SHOP = "SELECT shop, COUNT(*) AS n FROM sales GROUP BY shop"
BY_CITY = "SELECT city, COUNT(*) AS n FROM sales GROUP BY city"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Dataset]:
    with open_store(tmp_path, SCHEMA, DATA) as dataset:
        yield dataset
        assert not run_audit(dataset.ledger).findings


# --- accounts that add up epsilons -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", ["auto", "8"])
@pytest.mark.parametrize("sql", [BY_SHOP, BY_CITY, "SELECT SUM(amount) FROM sales"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_basic_account_is_charged_what_was_asked_for(noise: str, sql: str, rows: str, store: Dataset) -> None:
    eve = session_of(store, "eve", noise)
    eve.execute(f"SET contributions.rows = {rows}")
    if rows != "auto":
        eve.execute("SET contributions.groups = 8")
    eve.execute(sql)
    spent = eve.budget().spent
    assert spent.basic_epsilon is not None
    assert Fraction(95, 100) <= spent.basic_epsilon <= 1
    assert spent.basic_delta <= Fraction(1, 10**6)
    eve.execute(sql)
    assert eve.budget().spent == spent


def test_the_last_of_a_budget_buys_a_question_with_its_histogram(store: Dataset) -> None:
    eve = session_of(store, "eve", "gaussian")
    eve.execute("SET epsilon = 3")
    eve.execute("SELECT COUNT(*) FROM sales WHERE amount < 40")
    eve.execute("SET epsilon = 1")
    (offer,) = (offer for offer in eve.explain(BY_SHOP).offers if offer.chosen)
    before = eve.budget()
    eve.execute(BY_SHOP)
    assert offer.affordable_count == 1 and eve.budget().charges == before.charges + 2


CHOICES = [
    "SELECT MEDIAN(amount) FROM sales",
    "SELECT shop, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY amount) FROM sales GROUP BY shop",
    "SELECT MIN(amount), MAX(amount) FROM sales",
    "SELECT PRIVATE_ARGMAX(shop, COUNT(*)) FROM sales",
]


@pytest.mark.parametrize("rows", ["auto", "8"])
@pytest.mark.parametrize("sql", CHOICES)
@pytest.mark.parametrize("user", ["ana", "eve"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_choices_lose_what_they_may(noise: str, user: str, sql: str, rows: str, store: Dataset) -> None:
    """Of epsilon where the account adds up epsilons, or the noise is Laplace; else of rho."""
    session = session_of(store, user, noise)
    session.execute(f"SET contributions.rows = {rows}")
    session.execute(sql)
    spent = session.budget().spent
    if noise == "gaussian" and user == "ana":
        whole = epsilon_to_rho(Fraction(1), Fraction(1, 10**6))
        assert whole * Fraction(95, 100) <= spent.rho <= whole
    else:
        lost = spent.epsilon or spent.basic_epsilon  # of L2 norms over groups no epsilon is known but by rho
        assert lost is not None and Fraction(95, 100) <= lost <= 1
        assert spent.basic_delta == (Fraction(1, 10**6) if spent.epsilon is None else 0)
        assert spent.epsilon is not None or (noise == "gaussian" and "GROUP BY" in sql)


MADE = [
    "CREATE MODEL m AS LINEAR REGRESSION ON amount USING shop FROM sales",
    "CREATE MODEL m AS LOGISTIC REGRESSION ON vip USING age FROM people WITH (method = 'output')",
    "CREATE MODEL m AS LOGISTIC REGRESSION ON vip USING age FROM people WITH (method = 'objective')",
    "CREATE MODEL m AS LOGISTIC REGRESSION ON vip USING age FROM people WITH (method = 'objective', n = 4000)",
    "CREATE SYNTHETIC TABLE t AS SELECT shop, amount FROM sales",
    "CREATE SYNTHETIC TABLE t AS SELECT vip, age FROM people WITH (method = 'marginals')",
]


@pytest.mark.parametrize("sql", MADE)
@pytest.mark.parametrize("user", ["ana", "eve"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_models_and_synthetic_tables_lose_what_they_may(noise: str, user: str, sql: str, store: Dataset) -> None:
    session = session_of(store, user, noise)
    session.execute(sql)
    spent = session.budget().spent
    if noise == "gaussian" and user == "ana":
        whole = epsilon_to_rho(Fraction(1), Fraction(1, 10**6))
        assert whole * Fraction(95, 100) <= spent.rho <= whole
    else:
        assert spent.basic_epsilon is not None and Fraction(95, 100) <= spent.basic_epsilon <= 1
        assert spent.basic_delta <= Fraction(1, 10**6)


def test_a_choice_beside_another_release_loses_its_part_of_rho(store: Dataset) -> None:
    eve = session_of(store, "eve", "gaussian")
    eve.execute("SET contributions.rows = 8")
    eve.execute("SELECT MEDIAN(amount), COUNT(*) FROM sales")
    spent = eve.budget().spent
    assert spent.basic_epsilon is not None and Fraction(95, 100) <= spent.basic_epsilon <= 1
    assert spent.basic_delta <= Fraction(1, 10**6)


# --- the price of a selection ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("user", ["ana", "eve"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_price_of_a_selection_does_not_depend_on_the_cap_that_was_chosen(
    noise: str, user: str, store: Dataset
) -> None:
    session = session_of(store, user, noise)
    (offer,) = (offer for offer in session.explain(BY_CITY).offers if offer.chosen)
    answer = session.execute(BY_CITY)
    assert (offer.price.epsilon, offer.price.delta) == (answer.loss.epsilon, answer.loss.delta)
    assert abs(offer.price.rho - answer.loss.rho) <= answer.loss.rho / 10**4


@pytest.mark.parametrize("cap", [1, 2, 4, 16])
def test_laplace_noise_shows_no_fewer_groups_than_gaussian_noise(cap: int, store: Dataset) -> None:
    needed = dict[str, int]()
    for noise in ("laplace", "gaussian"):
        ana = session_of(store, "ana", noise)
        ana.execute("SET contributions.rows = 8")
        ana.execute(f"SET contributions.groups = {cap}")
        selection = ana.compile_statement(BY_CITY).steps[0].calibrated.selection
        assert selection is not None
        needed[noise] = units_needed(selection, cap)
    assert needed["laplace"] <= needed["gaussian"] * 1.01
