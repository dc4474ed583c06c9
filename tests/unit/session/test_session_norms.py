"""Norms that nobody declared: bought before the question, stored, and read by nobody who has not paid for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.compiler.compile import PlannedQuery
from dpsql.compiler.plan.clipped_sums import ClippedSum
from dpsql.errors import BudgetExceeded, InternalError, InvalidParameter
from dpsql.ledger.sqlite import SqliteDatabase
from dpsql.owner.administration import register_data_version
from dpsql.session import query
from dpsql.session.dataset.dataset import Dataset, open_dataset
from dpsql.session.purchase import Purchase
from dpsql.session.session import Session, StatementResult
from tests.support.store import open_store, session_of

SCHEMA = """
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
    with open_store(tmp_path, SCHEMA, DATA) as dataset:
        yield dataset


def test_a_count_is_right_without_any_cap(store: Dataset) -> None:
    result = session_of(store).execute(BY_SHOP)
    assert [row[1] for row in result.rows] == pytest.approx([10_000, 10_000], abs=900)
    assert any("COUNT(*) was scaled down" in notice for notice in result.notices)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_charge_is_that_of_the_statement_and_a_repeat_is_free(store: Dataset, noise: str) -> None:
    session = session_of(store)
    session.execute(f"SET noise = {noise}")
    whole = session.compile_statement(BY_SHOP)
    lost = [step.loss.rho for step in (*whole.steps, *(norm.step for norm in whole.norm_steps))]
    result = session.execute(BY_SHOP)
    assert result.loss.rho == sum(lost) == session.budget().spent_rho and len(lost) == 2
    if noise == "laplace":
        assert result.loss.epsilon is not None and Fraction(999, 1000) < result.loss.epsilon <= 1
    again = session_of(store)
    again.execute(f"SET noise = {noise}")
    repeated = again.execute(BY_SHOP)
    assert repeated.rows == result.rows and repeated.loss.rho == 0
    assert session.budget().charges == 2


def test_rows_with_and_without_a_value_are_paid_as_two_cells(store: Dataset) -> None:
    """The bundle of both has two of three parts of the loss, and all parts are the statement's epsilon."""
    session = session_of(store)
    session.execute("SET noise = laplace")
    sql = "SELECT shop, COUNT(*), AVG(amount) FROM sales GROUP BY shop"
    whole = session.compile_statement(sql)
    (step,) = whole.steps
    parts = {bundle.claim.cells: bundle.loss.epsilon for bundle in step.calibrated.bundles}
    counts, sums = parts["c1_count", "c1_missing"], parts[("c1_sum",)]
    assert counts is not None and sums is not None
    assert counts / (1 - Fraction(1, 10)) == pytest.approx(2 * sums / (1 - Fraction(2, 10)), rel=1e-6)
    result = session.execute(sql)
    assert result.loss.epsilon is not None and Fraction(999, 1000) < result.loss.epsilon <= 1


def test_other_groupings_of_the_same_rows_choose_no_second_norm(store: Dataset) -> None:
    session = session_of(store)
    session.execute("SET noise = laplace")
    first = session.execute(BY_SHOP).loss.epsilon
    total = session.execute("SELECT COUNT(*) FROM sales").loss.epsilon
    assert first is not None and total is not None and total == pytest.approx(float(first) * 0.9, rel=1e-6)
    assert session.budget().charges == 3


def test_a_norm_that_another_account_paid_for_is_not_read(store: Dataset) -> None:
    session_of(store).execute(BY_SHOP)
    bob = session_of(store, "bob")
    assert bob.compile_with_paid_norms(BY_SHOP).undecided
    assert not session_of(store).compile_with_paid_norms(BY_SHOP).undecided
    assert bob.execute(BY_SHOP).loss.rho > 0


def test_a_sum_without_bounds_is_answered(store: Dataset) -> None:
    session = session_of(store)
    session.execute("SET epsilon = 2")
    ((total, mean),) = session.execute("SELECT SUM(amount), AVG(pieces) FROM sales").rows
    assert total == pytest.approx(490_000, rel=0.05) and mean == pytest.approx(1, abs=0.05)


def test_a_cap_on_selected_groups_is_chosen(store: Dataset) -> None:
    session = session_of(store)
    rows = session.execute("SELECT city, COUNT(*) FROM sales GROUP BY city ORDER BY city").rows
    assert [row[0] for row in rows] == ["Oslo", "Rome"]


def test_a_sum_that_is_0_for_nearly_all_units_has_the_norm_of_its_rows(store: Dataset) -> None:
    """Nobody is seen in its histogram; how many rows a unit has is seen, and no value is beyond its bounds."""
    session = session_of(store)
    rare = "SUM(CASE WHEN customer < 3 THEN CLIP(amount, 0, 100) ELSE 0 END)"
    result = session.execute(f"SELECT {rare} AS rare, COUNT(*) AS n FROM sales")
    ((total, count),), (error, _) = result.rows, result.errors[0]
    assert count == pytest.approx(20_000, abs=1000)
    assert abs(total - 300) < 20_000 and 200 < error.stderr < 20_000  # up to some 16 rows of 100 each
    with pytest.raises(InvalidParameter, match="too few") as caught:
        session.execute(f"SELECT {rare} FROM sales")
    assert caught.value.hint is not None and "Ask for COUNT(*) beside the sum" in caught.value.hint


def test_an_average_of_one_value_is_that_value(store: Dataset) -> None:
    """Distances from the centre are 0 in every unit, or the same small number."""
    result = session_of(store).execute(
        "SELECT AVG(n), VAR_POP(n) FROM (SELECT customer, COUNT(*) AS n FROM sales GROUP BY customer) AS t"
    )
    ((mean, variance),) = result.rows
    assert mean == pytest.approx(5, abs=0.3) and variance == pytest.approx(0, abs=1.5)


def test_variances_of_values_without_bounds(store: Dataset) -> None:
    """Of 0 to 49, that is 49.5 squared less 1, by 12."""
    session = session_of(store)
    session.execute("SET epsilon = 4")
    ((deviation, mean),) = session.execute("SELECT STDDEV_POP(amount), AVG(amount) FROM sales").rows
    assert deviation == pytest.approx(14.43, abs=2) and mean == pytest.approx(24.5, abs=1.5)


def test_too_few_units_end_the_statement_and_the_question_is_not_charged(store: Dataset) -> None:
    session = session_of(store)
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
    session = session_of(store)
    session.execute("SET noise = laplace")
    session.execute("SET epsilon = 8.5")
    with pytest.raises(BudgetExceeded):
        session.execute(BY_SHOP)
    assert session.budget().charges == 0


def test_the_analysts_own_cap_needs_no_histogram(store: Dataset) -> None:
    session = session_of(store)
    session.execute("SET contributions.rows = 5")
    compiled = session.compile_statement(BY_SHOP)
    assert not compiled.norm_steps and not compiled.undecided
    assert not any(isinstance(part, ClippedSum) for part in compiled.steps[0].calibrated.gather.parts)


def test_a_statement_whose_norms_are_not_chosen_is_never_run(store: Dataset) -> None:
    session = session_of(store)
    queries = session.queries
    undecided = session.compile_statement(BY_SHOP)
    purchase: Purchase = queries.purchase
    with pytest.raises(InternalError, match="norms"):
        queries.charge_releases(undecided)
    assert purchase.charge_so_far.rho == 0


def test_a_norm_is_chosen_anew_for_other_data(store: Dataset, tmp_path: Path) -> None:
    first = session_of(store).compile_statement(BY_SHOP)
    session_of(store).execute(BY_SHOP)
    store.close()
    with duckdb.connect(str(tmp_path / "store.duckdb")) as connection:
        connection.execute("INSERT INTO sales SELECT * FROM sales LIMIT 5000")
    register_data_version(tmp_path / "store.yaml")
    changed = open_dataset(tmp_path / "store.yaml")
    session = session_of(changed)
    assert session.compile_statement(BY_SHOP).norm_steps[0].step.plan_hash == first.norm_steps[0].step.plan_hash
    assert session.compile_with_paid_norms(BY_SHOP).undecided
    changed.close()


def test_a_norm_is_not_used_for_other_rows(store: Dataset) -> None:
    session = session_of(store)
    session.execute(BY_SHOP)
    other = "SELECT shop, COUNT(*) AS n FROM sales WHERE pieces > 1 GROUP BY shop"
    assert session.compile_with_paid_norms(other).undecided


def test_a_norm_is_part_of_the_key(store: Dataset) -> None:
    session = session_of(store)
    undecided = session.compile_statement(BY_SHOP)
    session.execute(BY_SHOP)
    decided = session.compile_with_paid_norms(BY_SHOP)
    assert undecided.steps[0].plan_hash != decided.steps[0].plan_hash


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
    session = session_of(store)
    session.execute("SET noise = laplace")
    session.execute("SET epsilon = 4")
    ((value,),) = session.execute(f"SELECT {measure} FROM sales").rows
    assert float(value) == pytest.approx(truth, rel=0.1)


def test_a_repeat_is_free_after_a_finer_histogram_was_charged(store: Dataset) -> None:
    session = session_of(store)
    session.execute("SET noise = laplace")
    session.execute("SET epsilon = 0.5")
    first = session.execute(BY_SHOP)
    session.execute("SET epsilon = 6")
    session.execute("SELECT COUNT(*) FROM sales")
    session.execute("SET epsilon = 0.5")
    again = session.execute(BY_SHOP)
    assert again.rows == first.rows and again.loss.rho == 0


def test_what_binds_a_runtime_parameter_is_counted_once(store: Dataset) -> None:
    session = session_of(store)
    session.execute("SET noise = laplace")
    session.execute("SET epsilon = 7.9")
    session.execute("SELECT COUNT(*) FROM sales WHERE amount < (SELECT COUNT(DISTINCT customer) FROM sales)")


def test_a_value_that_is_queried_twice_is_counted_once(store: Dataset) -> None:
    assert session_of(store).compile_statement("SELECT COUNT(DISTINCT (pieces, pieces)) FROM sales").undecided


# --- centres ---------------------------------------------------------------------------------------------------------

MEAN_BY_SHOP = "SELECT shop, AVG(at) FROM sales GROUP BY shop ORDER BY shop"


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_an_average_is_about_a_centre_that_is_charged_with_it(store: Dataset, noise: str) -> None:
    """Centre, two norms, the question and the count of its groups lose no more than was asked for, and what EXPLAIN
    said."""
    session = session_of(store)
    session.execute(f"SET noise = {noise}")
    whole = session.compile_statement(MEAN_BY_SHOP)
    lost = [step.loss.rho for step in (*whole.steps, *(norm.step for norm in whole.norm_steps))]
    (offer,) = [offer for offer in session.explain(MEAN_BY_SHOP).offers if offer.noise == noise]
    result = session.execute(MEAN_BY_SHOP)
    assert result.loss.rho == sum(lost) == session.budget().spent_rho == offer.price.rho and len(lost) == 5
    if noise == "laplace":
        assert result.loss.epsilon is not None and Fraction(999, 1000) < result.loss.epsilon <= 1
    repeated = session.execute(MEAN_BY_SHOP)
    assert repeated.rows == result.rows and repeated.loss.rho == 0


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_an_average_beside_a_sum_of_its_own_costs_the_epsilon_that_was_asked_for(store: Dataset, noise: str) -> None:
    """About 0, before a centre is chosen, both histograms have one text; bought as one, the average's came on top."""
    session = session_of(store)
    session.execute(f"SET noise = {noise}")
    sql = "SELECT (SELECT AVG(amount) FROM sales) AS mean, (SELECT SUM(amount) FROM sales) AS total"
    (offer,) = [offer for offer in session.explain(sql).offers if offer.noise == noise]
    result = session.execute(sql)
    assert result.loss.rho == offer.price.rho == session.budget().spent_rho
    assert session.budget().spent_epsilon <= 1


def test_far_from_zero_a_centre_makes_an_average_accurate(store: Dataset) -> None:
    """The values lie within 20,000 of 1.6e13: about 0 a unit would have a norm of 8e13."""
    session = session_of(store)
    session.execute("SET noise = laplace")
    means = [row[1] for row in session.execute(MEAN_BY_SHOP).rows]
    assert means == pytest.approx([16000000010000] * 2, rel=0.01)
    assert float(session.execute("SELECT shop, AVG(amount) FROM sales GROUP BY shop").rows[0][1]) == pytest.approx(
        24, abs=1
    )


def test_one_centre_serves_all_groupings(store: Dataset) -> None:
    session = session_of(store)
    session.execute("SET noise = laplace")
    session.execute("SET empty_groups = show")  # a count would have a part of the centre's loss as well
    session.execute("SELECT shop, AVG(amount) FROM sales GROUP BY shop")
    charges = session.budget().charges
    session.execute("SELECT AVG(amount) FROM sales")
    assert session.budget().charges == charges + 2  # norms of signed sums are for one grouping


def test_a_centre_that_another_account_paid_for_is_not_read(store: Dataset) -> None:
    session_of(store).execute(MEAN_BY_SHOP)
    bob = session_of(store, "bob").compile_with_paid_norms(MEAN_BY_SHOP)
    assert bob.undecided and not any(norm.decided for norm in bob.norm_steps)
    cells = [
        cell for part in bob.steps[0].calibrated.gather.parts if isinstance(part, ClippedSum) for cell in part.cells
    ]
    assert all(cell.center == 0 for cell in cells)


def test_a_sum_beside_an_average_has_its_centre_added_again(store: Dataset) -> None:
    session = session_of(store)
    session.execute("SET noise = laplace")
    session.execute("SET epsilon = 4")
    ((total, mean, number),) = session.execute("SELECT SUM(amount), AVG(amount), COUNT(amount) FROM sales").rows
    assert float(total) == pytest.approx(490_000, rel=0.03) and float(total) == pytest.approx(mean * number, rel=1e-4)


# --- remembered ------------------------------------------------------------------------------------------------------


@dataclass
class Work:
    plans: int = 0
    compiles: int = 0
    reads: int = 0


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """Plans, compiles, and read transactions of the ledger, of all sessions."""
    counted, plan_query, compile_plan, read = Work(), query.plan_query, PlannedQuery.compile, SqliteDatabase.read

    def counting_plans(*arguments: Any, **named: Any) -> Any:
        counted.plans += 1
        return plan_query(*arguments, **named)

    def counting_compiles(*arguments: Any) -> Any:
        counted.compiles += 1
        return compile_plan(*arguments)

    def counting_reads(database: SqliteDatabase) -> Any:
        counted.reads += 1
        return read(database)

    monkeypatch.setattr(query, "plan_query", counting_plans)
    monkeypatch.setattr(PlannedQuery, "compile", counting_compiles)
    monkeypatch.setattr(SqliteDatabase, "read", counting_reads)
    return counted


def asked_again(session: Session, sql: str) -> StatementResult:
    """Asked, looked up, and remembered."""
    first = session.execute(sql)
    session.execute(sql)
    result = session.execute(sql)
    assert result.rows == first.rows and result.loss.rho == 0 and len(session.cache.decided)
    return result


@pytest.mark.parametrize(("sql", "turns"), [(BY_SHOP, 2), (MEAN_BY_SHOP, 3)])
def test_a_first_question_is_planned_once(store: Dataset, work: Work, sql: str, turns: int) -> None:
    session = session_of(store)
    session.execute(sql)
    assert (work.plans, work.compiles) == (1, turns)
    assert session.compile_statement(sql).undecided  # what was planned knows no histogram


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("sql", [BY_SHOP, MEAN_BY_SHOP])
def test_a_statement_that_is_remembered_is_looked_up_once(store: Dataset, work: Work, noise: str, sql: str) -> None:
    session = session_of(store)
    session.execute(f"SET noise = {noise}")
    before = asked_again(session, sql)
    work.compiles, work.reads = 0, 0
    result = session.execute(sql)
    assert (result.rows, result.receipts, result.notices) == (before.rows, before.receipts, before.notices)
    assert (work.compiles, work.reads) == (0, 1)
    if noise == "gaussian":  # the kind that is looked for first where it is left open
        session.execute("RESET noise")
        assert session.execute(sql).rows == before.rows


def test_a_moving_window_is_remembered_by_what_it_asks(store: Dataset, work: Work) -> None:
    """Another text for the same rows is compiled once, since its norms are known by what it asks."""
    session = session_of(store)
    before = asked_again(session, BY_SHOP)
    work.compiles = 0
    again = session.execute(BY_SHOP.replace("SELECT shop", "select sales.shop"))
    assert work.compiles == 1 and again.rows == before.rows and again.loss.rho == 0
    session.execute("SELECT shop, COUNT(*) AS n FROM sales WHERE pieces < 2 GROUP BY shop ORDER BY shop")
    assert session.charged.rho > 0  # of other rows


def test_what_one_account_remembers_is_no_others(store: Dataset) -> None:
    ana = session_of(store)
    asked_again(ana, BY_SHOP)
    bob = Session(store, user="bob", cache=ana.cache)
    undecided = bob.compile_statement(BY_SHOP)
    assert bob.queries._recall_decided(bob.clock(), undecided.settings, undecided) is None
    for key in list(ana.cache.decided._values):  # nor is it served under his name: the ledger is asked
        ana.cache.decided.put(("bob", *key[1:]), ana.cache.decided._values[key])  # type: ignore[misc]
    assert bob.queries._recall_decided(bob.clock(), undecided.settings, undecided) is None
    assert bob.compile_with_paid_norms(BY_SHOP).undecided
    assert bob.execute(BY_SHOP).loss.rho > 0


def test_what_is_remembered_is_used_with_the_very_histograms_that_chose_its_norms(store: Dataset) -> None:
    session = session_of(store)
    asked_again(session, BY_SHOP)
    (decided,) = session.cache.decided._values.values()
    stored = session.queries.purchase.find_all_stored(decided.statements)
    assert stored is not None and len(stored) == 2 and decided.match(stored) is not None
    (histogram,), question = stored
    assert decided.match(((replace(histogram, release=histogram.release + 100),), question)) is None


def test_what_is_remembered_of_one_version_of_the_data_does_not_answer_another(store: Dataset, tmp_path: Path) -> None:
    session = session_of(store)
    asked_again(session, BY_SHOP)
    store.close()
    with duckdb.connect(str(tmp_path / "store.duckdb")) as connection:
        connection.execute("INSERT INTO sales SELECT * FROM sales LIMIT 5000")
    register_data_version(tmp_path / "store.yaml")
    changed = open_dataset(tmp_path / "store.yaml")
    later = Session(changed, user="ana", cache=session.cache)
    assert later.execute(BY_SHOP).loss.rho == session.compile_statement(BY_SHOP).loss.rho + sum(
        norm.step.loss.rho for norm in session.compile_statement(BY_SHOP).norm_steps
    )
    changed.close()


@pytest.mark.parametrize(
    "change",
    ["SET noise = laplace", "SET epsilon = 0.5", "SET contributions.groups = 1", "SET delta = 1e-8"],
)
def test_what_is_remembered_with_some_settings_does_not_answer_with_others(store: Dataset, change: str) -> None:
    session, name = session_of(store), change.split()[1]
    before = asked_again(session, BY_SHOP)
    session.execute(change)
    undecided = session.compile_statement(BY_SHOP)
    assert session.queries._recall_decided(session.clock(), session.settings.statement, undecided) is None
    fresh = session_of(store)
    fresh.execute(change)
    assert fresh.execute(BY_SHOP).rows == session.execute(BY_SHOP).rows
    session.execute(f"RESET {name}")
    assert session.execute(BY_SHOP).rows == before.rows and session.charged.rho == 0


def test_what_is_remembered_is_of_one_schema_time_zone_and_version(store: Dataset) -> None:
    """The schema's hash covers its relation of neighbors, with the group size."""
    session = session_of(store)

    def key_of(session: Session) -> object:
        return session.queries._decided_key(session.settings.statement, session.compile_statement(BY_SHOP))

    first, resolved = key_of(session), store.resolved
    session.execute("SET TIME ZONE 'Asia/Tokyo'")
    keys = [first, key_of(session)]
    keys += [
        key_of(session_of(replace(store, resolved=changed)))
        for changed in (replace(resolved, version=9), replace(resolved, hash="other"))
    ]
    assert len(set(keys)) == 4 and key_of(session_of(store)) == first


def test_an_answer_shows_times_of_the_zone_that_is_set_now(store: Dataset) -> None:
    session = session_of(store)
    sql = "SELECT COUNT(*), current_setting('TimeZone') FROM sales"
    asked_again(session, sql)
    session.execute("SET TIME ZONE 'Asia/Tokyo'")
    assert asked_again(session, sql).rows[0][1] == "Asia/Tokyo"
