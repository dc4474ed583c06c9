"""Norms that nobody declared: bought before the question, stored, and read by nobody who has not paid for them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.compiler.plan.clipped_sums import ClippedSum
from dpsql.errors import BudgetExceeded, InternalError, InvalidParameter, UnboundedContribution
from dpsql.interfaces.dbapi.connection import Connection
from dpsql.owner.administration import register_data_version
from dpsql.session.dataset.dataset import Dataset, open_dataset
from dpsql.session.purchase import Purchase
from dpsql.session.session import Session

SCHEMA = """
dpsql: 1
engine: duckdb:///store.duckdb
ledger: sqlite:///store.ledger
privacy:
  unit: sales.customer
  budget: {epsilon: 20, delta: 1e-5}
  query: {epsilon: 1, delta: 1e-7}
  contributions: auto
analysts:
  ana: {budget: {epsilon: 8, delta: 1e-6}}
  bob: {budget: {epsilon: 8, delta: 1e-6}}
tables:
  sales:
    unit: customer
    columns:
      customer: {type: bigint}
      shop: {type: text, values: [north, south]}
      city: {type: text}
      amount: {type: double}
      pieces: {type: integer}
      price: {type: "decimal(38,10)"}
      flag: {type: integer, bounds: [0, 1]}
      at: {type: bigint}
      wide: {type: double, bounds: [0, 1e12]}
"""

DATA = """
CREATE TABLE sales AS
SELECT (i % 4000)::BIGINT AS customer, ['north', 'south'][1 + i % 2] AS shop, ['Rome', 'Oslo'][1 + i % 2] AS city,
  (i % 50)::DOUBLE AS amount, (i % 3)::INTEGER AS pieces, i::DECIMAL(38,10) AS price, (i % 2)::INTEGER AS flag,
  16000000000000 + i AS at, (i % 7)::DOUBLE AS wide FROM range(20000) t(i)
"""

BY_SHOP = "SELECT shop, COUNT(*) AS n FROM sales GROUP BY shop ORDER BY shop"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Dataset]:
    (tmp_path / "store.yaml").write_text(SCHEMA, encoding="utf-8")
    with duckdb.connect(str(tmp_path / "store.duckdb")) as connection:
        connection.execute(DATA)
    dataset = open_dataset(tmp_path / "store.yaml")
    yield dataset
    dataset.close()


def asked_by(store: Dataset, name: str = "ana") -> Session:
    return Session(store, user=name)


def test_a_count_is_right_without_any_cap(store: Dataset) -> None:
    result = asked_by(store).execute(BY_SHOP)
    assert [row[1] for row in result.rows] == pytest.approx([10_000, 10_000], abs=900)
    assert any("COUNT(*) was scaled down" in notice for notice in result.notices)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_charge_is_that_of_the_statement_and_a_repeat_is_free(store: Dataset, noise: str) -> None:
    session = asked_by(store)
    session.execute(f"SET noise = {noise}")
    whole = session.compile_statement(BY_SHOP)
    lost = [step.loss.rho for step in (*whole.steps, *(norm.step for norm in whole.norm_steps))]
    result = session.execute(BY_SHOP)
    assert result.loss.rho == sum(lost) == session.budget().spent_rho and len(lost) == 2
    if noise == "laplace":
        assert result.loss.epsilon is not None and Fraction(999, 1000) < result.loss.epsilon <= 1
    again = asked_by(store)
    again.execute(f"SET noise = {noise}")
    repeated = again.execute(BY_SHOP)
    assert repeated.rows == result.rows and repeated.loss.rho == 0
    assert session.budget().charges == 2


def test_other_groupings_of_the_same_rows_choose_no_second_norm(store: Dataset) -> None:
    session = asked_by(store)
    session.execute("SET noise = laplace")
    first = session.execute(BY_SHOP).loss.epsilon
    total = session.execute("SELECT COUNT(*) FROM sales").loss.epsilon
    assert first is not None and total is not None and total == pytest.approx(float(first) * 0.9, rel=1e-6)
    assert session.budget().charges == 3


def test_a_norm_that_another_account_paid_for_is_not_read(store: Dataset) -> None:
    asked_by(store).execute(BY_SHOP)
    bob = asked_by(store, "bob")
    assert bob.compile_with_paid_norms(BY_SHOP).undecided
    assert not asked_by(store).compile_with_paid_norms(BY_SHOP).undecided
    assert bob.execute(BY_SHOP).loss.rho > 0


def test_a_sum_without_bounds_is_answered(store: Dataset) -> None:
    session = asked_by(store)
    session.execute("SET epsilon = 2")
    ((total, mean),) = session.execute("SELECT SUM(amount), AVG(pieces) FROM sales").rows
    assert total == pytest.approx(490_000, rel=0.05) and mean == pytest.approx(1, abs=0.05)


def test_a_cap_on_selected_groups_is_chosen(store: Dataset) -> None:
    session = asked_by(store)
    rows = session.execute("SELECT city, COUNT(*) FROM sales GROUP BY city ORDER BY city").rows
    assert [row[0] for row in rows] == ["Oslo", "Rome"]


def test_too_few_units_end_the_statement_and_the_question_is_not_charged(store: Dataset) -> None:
    session = asked_by(store)
    with pytest.raises(InvalidParameter, match="too few") as caught:
        session.execute("SELECT COUNT(*) FROM sales WHERE customer = 7")
    assert "was not" in str(caught.value.detail)
    spent = session.budget().spent_rho
    whole = session.compile_statement("SELECT COUNT(*) FROM sales WHERE customer = 7")
    assert spent == whole.norm_steps[0].step.loss.rho
    with pytest.raises(InvalidParameter, match="too few"):  # told again, and not charged again
        session.execute("SELECT COUNT(*) FROM sales WHERE customer = 7")
    assert session.budget().spent_rho == spent


def test_nothing_is_charged_where_both_parts_cannot_be_paid(store: Dataset) -> None:
    session = asked_by(store)
    session.execute("SET noise = laplace")
    session.execute("SET epsilon = 8.5")
    with pytest.raises(BudgetExceeded):
        session.execute(BY_SHOP)
    assert session.budget().charges == 0


def test_the_analysts_own_cap_needs_no_histogram(store: Dataset) -> None:
    session = asked_by(store)
    session.execute("SET contributions.rows = 5")
    compiled = session.compile_statement(BY_SHOP)
    assert not compiled.norm_steps and not compiled.undecided
    assert not any(isinstance(part, ClippedSum) for part in compiled.steps[0].calibrated.gather.parts)


def test_a_statement_whose_norms_are_not_chosen_is_never_run(store: Dataset) -> None:
    session = asked_by(store)
    queries = session.queries
    undecided = session.compile_statement(BY_SHOP)
    purchase: Purchase = queries.purchase
    with pytest.raises(InternalError, match="norms"):
        queries.charge_releases(undecided)
    assert purchase.charge_so_far.rho == 0


def test_a_norm_is_chosen_anew_for_other_data(store: Dataset, tmp_path: Path) -> None:
    first = asked_by(store).compile_statement(BY_SHOP)
    asked_by(store).execute(BY_SHOP)
    store.close()
    with duckdb.connect(str(tmp_path / "store.duckdb")) as connection:
        connection.execute("INSERT INTO sales SELECT * FROM sales LIMIT 5000")
    register_data_version(tmp_path / "store.yaml")
    changed = open_dataset(tmp_path / "store.yaml")
    session = asked_by(changed)
    assert session.compile_statement(BY_SHOP).norm_steps[0].step.plan_hash == first.norm_steps[0].step.plan_hash
    assert session.compile_with_paid_norms(BY_SHOP).undecided
    changed.close()


def test_a_norm_is_not_used_for_other_rows(store: Dataset) -> None:
    session = asked_by(store)
    session.execute(BY_SHOP)
    other = "SELECT shop, COUNT(*) AS n FROM sales WHERE pieces > 1 GROUP BY shop"
    assert session.compile_with_paid_norms(other).undecided


def test_a_norm_is_part_of_the_key(store: Dataset) -> None:
    session = asked_by(store)
    undecided = session.compile_statement(BY_SHOP)
    session.execute(BY_SHOP)
    decided = session.compile_with_paid_norms(BY_SHOP)
    assert undecided.steps[0].plan_hash != decided.steps[0].plan_hash


def test_a_mechanism_needs_a_declared_cap(store: Dataset) -> None:
    """Its questions are compared with a threshold: a placeholder's counts would be compared silently."""
    session = asked_by(store)
    connection = Connection(session)
    with pytest.raises(UnboundedContribution, match="declared cap"):
        connection.above_threshold(threshold=100, epsilon=1).ask("SELECT COUNT(*) FROM sales")
    assert session.budget().charges == 0


@pytest.mark.parametrize(
    ("measure", "truth"),
    [
        ("SUM(price)", 199_990_000),
        ("SUM(at)", 3.2e17),
        ("SUM(wide)", 59_994),
        ("AVG(flag)", 0.5),
        ("AVG(CASE WHEN pieces > 1 THEN 1 ELSE 0 END)", 1 / 3),
        ("SUM(CLIP(amount, 5, 5.0000000001))", 100_000),
        ("SUM(amount * 1e30)", 4.9e35),
    ],
)
def test_a_norm_is_found_whatever_the_size_of_values(store: Dataset, measure: str, truth: float) -> None:
    """Decimals of many digits, times in microseconds, bounds far wider than values, distances of a half."""
    session = asked_by(store)
    session.execute("SET noise = laplace")
    session.execute("SET epsilon = 4")
    ((value,),) = session.execute(f"SELECT {measure} FROM sales").rows
    assert float(value) == pytest.approx(truth, rel=0.1)


def test_a_repeat_is_free_after_a_finer_histogram_was_bought(store: Dataset) -> None:
    session = asked_by(store)
    session.execute("SET noise = laplace")
    session.execute("SET epsilon = 0.5")
    first = session.execute(BY_SHOP)
    session.execute("SET epsilon = 6")
    session.execute("SELECT COUNT(*) FROM sales")
    session.execute("SET epsilon = 0.5")
    again = session.execute(BY_SHOP)
    assert again.rows == first.rows and again.loss.rho == 0


def test_what_fills_a_hole_is_counted_once(store: Dataset) -> None:
    session = asked_by(store)
    session.execute("SET noise = laplace")
    session.execute("SET epsilon = 7.9")
    session.execute("SELECT COUNT(*) FROM sales WHERE amount < (SELECT COUNT(DISTINCT customer) FROM sales)")


def test_a_value_that_is_asked_for_twice_is_counted_once(store: Dataset) -> None:
    assert asked_by(store).compile_statement("SELECT COUNT(DISTINCT (pieces, pieces)) FROM sales").undecided
