"""BETA_POSTERIOR, NORMAL_POSTERIOR and DIRICHLET_POSTERIOR, from SQL to answers: columns, charges, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import dpsql
from dpsql.errors import Error, InvalidParameter, InvalidSyntax, TypeMismatch, Unsupported
from dpsql.session.session import Session
from tests.support.shop import Silence, open_shop, opened_with


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Session]:
    session, reference = open_shop(tmp_path)
    yield session
    session.dataset.close()
    reference.close()


@pytest.fixture(scope="module")
def unpaid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """One for all tests that are not to pay for anything."""
    session, reference = open_shop(tmp_path_factory.mktemp("unpaid"))
    before = session.budget()
    yield session
    assert session.budget() == before
    session.dataset.close()
    reference.close()


def columns(session: Session, sql: str) -> list[str]:
    return [column.name for column in session.describe(sql)]


# --- columns ---------------------------------------------------------------------------------------------------------


def test_one_posterior_is_a_column_of_each_part(unpaid: Session) -> None:
    assert columns(unpaid, "SELECT region, BETA_POSTERIOR(vip) FROM people GROUP BY region") == [
        "region", "alpha", "beta", "mean", "low", "high",
    ]  # fmt: skip
    assert columns(unpaid, 'SELECT BETA_POSTERIOR(vip) AS p, NORMAL_POSTERIOR(age) AS "A" FROM people') == [
        "p_alpha", "p_beta", "p_mean", "p_low", "p_high",
        "A_mean", "A_sd", "A_sigma", "A_n", "A_low", "A_high",
    ]  # fmt: skip
    described = unpaid.describe("SELECT DIRICHLET_POSTERIOR(kind) AS k, BETA_POSTERIOR(paid) FROM orders")
    assert [(c.name, c.spelling) for c in described[:5]] == [
        *((f"k_{part}", "MAP(VARCHAR, DOUBLE)") for part in ("alpha", "mean", "low", "high")), ("alpha", "DOUBLE"),
    ]  # fmt: skip


def test_answers_without_noise_are_the_conjugate_ones(shop: Session) -> None:
    """The shop's noise is drawn as 0; what is told of its scale is small beside 240 rows."""
    rows = shop.execute("SELECT region, BETA_POSTERIOR(vip) AS p FROM people GROUP BY region ORDER BY region").rows
    for row in rows:
        assert row[1:4] == pytest.approx((21, 41, 21 / 62), rel=1e-3)
        assert row[4] < row[3] < row[5]
    ((mean, average, n, count),) = shop.execute(
        "SELECT NORMAL_POSTERIOR_MEAN(age), AVG(age), NORMAL_POSTERIOR_N(age), COUNT(age) FROM people"
    ).rows
    assert mean == pytest.approx(average, abs=1e-3) and n == pytest.approx(count, rel=1e-2)


def test_parts_stand_in_expressions_having_and_order(shop: Session) -> None:
    sql = """SELECT region, BETA_POSTERIOR_HIGH(vip) - BETA_POSTERIOR_LOW(vip) AS wide FROM people GROUP BY region
             HAVING BETA_POSTERIOR_LOW(vip, alpha => 2) > 0.01 ORDER BY BETA_POSTERIOR_MEAN(vip), region"""
    assert len(shop.execute(sql).rows) == 4
    outer = "SELECT MAX(p_mean) AS most FROM (SELECT region, BETA_POSTERIOR(vip) AS p FROM people GROUP BY region) AS t"
    assert shop.execute(outer).rows[0][0] == pytest.approx(21 / 62, rel=1e-3)


def test_filters_joins_sub_selects_and_integers(shop: Session) -> None:
    asked = ("BETA_POSTERIOR(age > 20) FILTER (WHERE region = 'north')", "BETA_POSTERIOR(vip::int)",
             "BETA_POSTERIOR(age > 20 AND uid IN (SELECT uid FROM orders))", "BETA_POSTERIOR(1 = 1)",
             "NORMAL_POSTERIOR(3)", "NORMAL_POSTERIOR(age, sigma => 17, prior_n => 2, prior_mean => -5)")  # fmt: skip
    for one in asked:
        (row,) = shop.execute(f"SELECT {one} FROM people").rows
        assert all(isinstance(value, float) for value in row)
    joined = "SELECT region, NORMAL_POSTERIOR(amount) FROM orders JOIN people USING (uid) GROUP BY ROLLUP (region)"
    assert len(shop.execute(joined).rows) == 5


def test_shares_of_declared_and_of_selected_values(shop: Session) -> None:
    ((kinds,),) = shop.execute("SELECT DIRICHLET_POSTERIOR_MEAN(kind) FROM orders").rows
    assert kinds == pytest.approx(dict.fromkeys(("web", "shop", "phone"), 1 / 3), abs=0.05)
    ((cities, counts),) = shop.execute("SELECT DIRICHLET_POSTERIOR_LOW(city), HISTOGRAM(city) FROM orders").rows
    assert cities.keys() == counts.keys() and all(0 < low < 1 / 7 for low in cities.values())


# --- charges ---------------------------------------------------------------------------------------------------------


def cells(session: Session, sql: str) -> list[tuple[str, ...]]:
    return [bundle.columns for release in session.explain(sql).releases for bundle in release.bundles]


def test_a_posterior_costs_what_the_sums_cost(unpaid: Session) -> None:
    for one, other in (
        ("BETA_POSTERIOR(vip)", "AVG(vip::int)"),
        ("NORMAL_POSTERIOR(age)", "VAR_POP(age)"),
        ("BETA_POSTERIOR(vip), COUNT(*)", "AVG(vip::int), COUNT(*)"),
    ):
        posterior, plain = (unpaid.explain(f"SELECT {asked} FROM people") for asked in (one, other))
        assert posterior.releases[0].rho == plain.releases[0].rho
        assert posterior.releases[0].sql == plain.releases[0].sql


def test_what_is_selected_beside_it_shares_its_sums(unpaid: Session) -> None:
    beside = "AVG(vip::int), BETA_POSTERIOR_LOW(vip, alpha => 9)"
    assert len(cells(unpaid, f"SELECT BETA_POSTERIOR(vip), {beside} FROM people")) == 1
    assert len(cells(unpaid, "SELECT NORMAL_POSTERIOR(age), STDDEV(age), AVG(age), COUNT(age) FROM people")) == 1
    assert len(cells(unpaid, "SELECT DIRICHLET_POSTERIOR(kind), HISTOGRAM(kind), MODE(kind) FROM orders")) == 1


def test_another_prior_or_part_follows_from_what_was_paid_for(shop: Session) -> None:
    first = shop.execute("SELECT region, BETA_POSTERIOR(vip) FROM people GROUP BY region")
    assert first.loss.rho > 0
    for asked in ("BETA_POSTERIOR(vip, alpha => 5, confidence => 0.8)", "BETA_POSTERIOR_MEAN(vip)", "AVG(vip::int)"):
        assert shop.execute(f"SELECT region, {asked} FROM people GROUP BY region").loss.rho == 0
    kinds = shop.execute("SELECT HISTOGRAM(kind) FROM orders")
    assert kinds.loss.rho > 0
    assert shop.execute("SELECT DIRICHLET_POSTERIOR(kind, concentration => 2) FROM orders").loss.rho == 0


def test_it_follows_from_finer_groups(shop: Session) -> None:
    """Groups that are added up have the noise of all of them, and the posterior knows."""
    shop.set("epsilon", "2000")
    shop.execute("SELECT region, BETA_POSTERIOR(vip) FROM people GROUP BY region")
    shop.set("epsilon", "20")
    whole = shop.execute("SELECT BETA_POSTERIOR(vip) FROM people")
    assert whole.loss.rho == 0
    assert whole.rows[0][2] == pytest.approx(81 / 242, abs=0.01)


# --- refusals, all before a charge -----------------------------------------------------------------------------------

REFUSED = [
    ("BETA_POSTERIOR(vip) + 1", Unsupported, "stands alone in the SELECT list"),
    ("BETA_POSTERIOR(age)", TypeMismatch, "0 or 1"),
    ("BETA_POSTERIOR(region)", TypeMismatch, "truth values"),
    ("NORMAL_POSTERIOR(region)", TypeMismatch, "numbers"),
    ("BETA_POSTERIOR()", InvalidSyntax, "one argument"),
    ("BETA_POSTERIOR(vip, 2)", InvalidSyntax, "one argument"),
    ("BETA_POSTERIOR(DISTINCT vip)", Unsupported, "expression"),
    ("BETA_POSTERIOR(alpha => 1, vip)", InvalidSyntax, "one argument"),
    ("BETA_POSTERIOR(vip, alpha => 1, alpha := 2)", InvalidSyntax, "twice"),
    ("BETA_POSTERIOR(vip, gamma => 1)", InvalidSyntax, "no argument"),
    ("BETA_POSTERIOR(vip, alpha => 1, alpha => 2)", InvalidSyntax, "twice"),
    ("BETA_POSTERIOR(vip, alpha => -1)", InvalidParameter, "alpha must be"),
    ("BETA_POSTERIOR(vip, alpha => 0)", InvalidParameter, "alpha must be"),
    ("BETA_POSTERIOR(vip, alpha => 1e300)", InvalidParameter, "alpha must be"),
    ("BETA_POSTERIOR(vip, alpha => 1e-20000000)", Error, "out of range"),
    ("BETA_POSTERIOR(vip, alpha => age)", InvalidParameter, "alpha must be a literal"),
    ("BETA_POSTERIOR(vip, alpha => (SELECT 1))", InvalidParameter, "alpha must be a literal"),
    ("BETA_POSTERIOR(vip, alpha => '1')", InvalidParameter, "alpha must be a literal"),
    ("BETA_POSTERIOR(vip, confidence => 1)", InvalidParameter, "confidence must be"),
    ("BETA_POSTERIOR(vip, confidence => 0)", InvalidParameter, "confidence must be"),
    ("NORMAL_POSTERIOR(age, sigma => 0)", InvalidParameter, "sigma must be"),
    ("NORMAL_POSTERIOR(age, prior_mean => 3)", InvalidParameter, "prior_n"),
    ("NORMAL_POSTERIOR(age, sigma => 1, prior_sd => 1, prior_n => 1)", InvalidParameter, "no prior_sd"),
    ("DIRICHLET_POSTERIOR(region, alpha => 1)", InvalidSyntax, "concentration"),
    ("POSTERIOR_SAMPLE(age)", TypeMismatch, "0 or 1"),
    ("POSTERIOR_SAMPLE(region)", TypeMismatch, "truth values"),
    ("POSTERIOR_SAMPLE(vip, prior_alpha => 1)", InvalidSyntax, 'no argument "prior_alpha"'),
    ("POSTERIOR_SAMPLE(vip, draws := 3, draws => 3)", InvalidSyntax, "twice"),
    ("POSTERIOR_SAMPLE(vip, draws := 2.5)", InvalidParameter, "draws must be a whole number"),
    ("POSTERIOR_SAMPLE(vip, draws => 1001)", InvalidParameter, "between 1 and 1000"),
    ("POSTERIOR_SAMPLE(vip, beta => 0)", InvalidParameter, "beta must be"),
    ("DP_STDERR(BETA_POSTERIOR_MEAN(vip))", Unsupported, "no error bar"),
]


@pytest.mark.parametrize(("asked", "error", "said"), REFUSED)
def test_what_is_wrong_is_refused_with_its_position(unpaid: Session, asked: str, error: type[Error], said: str) -> None:
    with pytest.raises(error) as raised:
        unpaid.execute(f"SELECT {asked} FROM people")
    assert said in str(raised.value) and raised.value.span is not None and raised.value.hint


def test_it_is_no_aggregate_of_one_unit_and_none_of_public_rows(unpaid: Session) -> None:
    for sql in ("SELECT uid, BETA_POSTERIOR(paid) FROM orders GROUP BY uid",
                "SELECT AVG(m) FROM (SELECT uid, BETA_POSTERIOR_MEAN(paid) AS m FROM orders GROUP BY uid) AS t",
                "SELECT BETA_POSTERIOR(x) FROM (VALUES (true)) AS v(x)"):  # fmt: skip
        with pytest.raises(Error):
            unpaid.execute(sql)


def test_accuracy_first_is_for_sums(shop: Session) -> None:
    shop.set("max_error", "5")
    with pytest.raises(Unsupported, match="posteriors"):
        shop.execute("SELECT BETA_POSTERIOR(vip) FROM people")


@pytest.mark.parametrize("asked", ["BETA_POSTERIOR(vip, alpha => 1e9, beta => 0.001, confidence => 0.999)",
                                   "NORMAL_POSTERIOR(age, prior_mean => -1e15, prior_n => 1e9, prior_sd => 1e-15)",
                                   "DIRICHLET_POSTERIOR(region, concentration => 1e9)"])  # fmt: skip
def test_what_is_extreme_loses_no_answer(shop: Session, asked: str) -> None:
    assert len(shop.execute(f"SELECT COUNT(*), {asked} FROM people").rows) == 1


# --- interfaces -------------------------------------------------------------------------------------------------------


def test_cursors_have_typed_columns(shop: Session, tmp_path: Path) -> None:
    with dpsql.connect(tmp_path / "shop.yaml") as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT region, BETA_POSTERIOR(vip, confidence => ?) AS p FROM people GROUP BY region", (0.9,))
        names = [column[0] for column in cursor.description or ()]
        assert names == ["region", "p_alpha", "p_beta", "p_mean", "p_low", "p_high"]
        assert all(isinstance(value, float) for row in cursor.fetchall() for value in row[1:])


def test_the_engine_sees_no_argument_by_name(unpaid: Session) -> None:
    explained = unpaid.explain("SELECT BETA_POSTERIOR(vip, alpha => 123.456, confidence => 0.777) FROM people")
    assert "123.456" not in str(explained) and "0.777" not in str(explained)


def test_rows_without_a_flag_are_none_of_its_rows(tmp_path: Path) -> None:
    change = "INSERT INTO people SELECT 1000 + i, NULL, NULL, NULL, NULL FROM range(50) t(i);"
    session, reference = open_shop(tmp_path, change)
    (row,) = session.execute("SELECT BETA_POSTERIOR(vip) FROM people").rows
    assert row[0] + row[1] == pytest.approx(242, rel=1e-2)
    session.dataset.close()
    reference.close()


def test_arguments_have_their_names_with_either_sign(unpaid: Session) -> None:
    asked = ("BETA_POSTERIOR({}, alpha {} 2, confidence {} 0.9)", "POSTERIOR_SAMPLE({}, draws {} 2, alpha {} 3)",
             "BLOCKWISE(avg({}::int), 0, 1, blocks {} 10, combine {} 'median')")  # fmt: skip
    for one in asked:
        written = [f"SELECT {one.format('vip', sign, sign)} FROM people" for sign in ("=>", ":=")]
        arrow, equals = (unpaid.compile_statement(sql, ()) for sql in written)
        assert [step.plan_hash for step in arrow.steps] == [step.plan_hash for step in equals.steps]
        assert arrow.post_sql == equals.post_sql


def test_a_flag_is_a_truth_value_or_0_and_1_for_both(unpaid: Session) -> None:
    for called in ("BETA_POSTERIOR_MEAN", "POSTERIOR_SAMPLE"):
        unpaid.compile_statement(
            f"SELECT {called}(vip::int), {called}(CASE WHEN age > 40 THEN 1 ELSE 0 END) FROM people", ()
        )


def test_shares_of_grouping_sets_are_those_of_each_set(tmp_path: Path) -> None:
    """With chosen norms each set has cells of its own: a total is told from its own, and not from its parts'."""
    rows = "(SELECT paid, kind FROM orders WHERE kind <> 'web' OR paid) AS t"
    accounts = "\n  query: {epsilon: 2000, delta: 1e-3}\n\ntables:"
    with opened_with(tmp_path, accounts) as dataset:
        session = Session(dataset, sampler=Silence())
        sql = f"SELECT paid, DIRICHLET_POSTERIOR_MEAN(kind) AS p FROM {rows} GROUP BY "
        told = session.execute(f"{sql} GROUPING SETS ((paid), (paid), ()) ORDER BY GROUPING(paid)").rows
        alone = session.execute(f"{sql} paid").rows
        whole = session.execute(f"SELECT NULL AS paid, DIRICHLET_POSTERIOR_MEAN(kind) AS p FROM {rows}").rows
        assert len(told) == 7
        for (paid, shares), (other_paid, others) in zip(
            sorted(told, key=repr), sorted([*alone, *alone, *whole], key=repr), strict=True
        ):
            assert paid == other_paid and shares == pytest.approx(others, abs=1e-3)
