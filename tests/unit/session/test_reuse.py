"""Answers that cost nothing, told from releases that the account has paid for: through sessions and cursors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.ledger.base import ReleaseRequest
from dpsql.owner.administration import register_data_version
from dpsql.privacy.loss import NO_LOSS
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.reuse import ReusePlan, ReuseSource
from dpsql.session.session import Session, StatementResult
from tests.support.shop import DATA, SCHEMA, Silence

ANALYSTS = """
analysts:
  ana: {budget: {epsilon: 100000, delta: 0.1}}
  bob: {budget: {epsilon: 100000, delta: 0.1}}
"""
FINE, COARSE = "1000", "20"
"""Epsilons: of what is stored, and of what is told from it, whose fresh noise would be larger."""


@contextmanager
def opened(folder: Path, analysts: str = "") -> Iterator[Path]:
    schema = SCHEMA.replace("tables:", f"{analysts}tables:", 1)
    (folder / "shop.yaml").write_text(schema, encoding="utf-8")
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        connection.execute(DATA)
    yield folder / "shop.yaml"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path) as schema:
        dataset = open_dataset(schema)
        yield Session(dataset, sampler=Silence())
        dataset.close()


@pytest.fixture(scope="module")
def rows() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(":memory:")
    connection.execute(DATA)
    yield connection
    connection.close()


def asked(session: Session, sql: str, epsilon: str) -> StatementResult:
    session.set("epsilon", epsilon)
    return session.execute(sql)


PEOPLE = "SELECT region, vip, COUNT(*), SUM(age), COUNT(age) FROM people GROUP BY region, vip"
ORDERS = "SELECT region, paid, COUNT(*), SUM(qty) FROM orders JOIN people USING (uid) GROUP BY region, paid"
DERIVED = [
    # the same cells, some of them, or others that they tell
    (PEOPLE, "SELECT region, vip, COUNT(*) FROM people GROUP BY vip, region"),
    (PEOPLE, "SELECT region, vip, AVG(age) FROM people GROUP BY vip, region HAVING COUNT(*) > 1"),
    (PEOPLE, "SELECT region, vip, 1.0 * SUM(age) / COUNT(age) AS mean FROM people GROUP BY 1, 2 ORDER BY mean, 1, 2"),
    ("SELECT VAR_POP(age) FROM people", "SELECT AVG(age) FROM people"),
    ("SELECT STDDEV(age), SUM(age), COUNT(*) FROM people", "SELECT COUNT(age) FROM people"),
    ("SELECT AVG(price) FROM orders", "SELECT COUNT(price), SUM(price) FROM orders"),
    ("SELECT COUNT(*), COUNT(DISTINCT uid), SUM(qty) FROM orders", "SELECT COUNT(DISTINCT uid) FROM orders"),
    ("SELECT CORR(qty, amount), COUNT(*) FROM orders", "SELECT COVAR_POP(amount, qty) FROM orders"),
    # groups added up
    ("SELECT region, COUNT(*) FROM people GROUP BY region", "SELECT COUNT(*) FROM people"),
    (PEOPLE, "SELECT region, COUNT(*) FROM people WHERE vip IS NOT NULL GROUP BY region"),
    (PEOPLE, "SELECT COUNT(*), SUM(age) FROM people WHERE vip IS NOT NULL"),
    (ORDERS, "SELECT paid, COUNT(*), SUM(qty) FROM orders JOIN people USING (uid) GROUP BY paid"),
    ("SELECT region, COUNT(DISTINCT uid) FROM people GROUP BY region", "SELECT COUNT(DISTINCT uid) FROM people"),
    ("SELECT COALESCE(age, 0) AS a, COUNT(*) FROM people GROUP BY a",
     "SELECT COALESCE(age, 0) // 10 AS decade, COUNT(*) FROM people GROUP BY decade"),
    ("SELECT DATE_TRUNC('month', joined) AS m, COUNT(*) FROM people GROUP BY m",
     "SELECT DATE_TRUNC('year', joined) AS y, COUNT(*) FROM people GROUP BY y"),
    ("SELECT DATE_TRUNC('month', joined) AS m, COUNT(*) FROM people WHERE joined IS NOT NULL GROUP BY m",
     "SELECT DATE_TRUNC('year', joined) AS y, COUNT(*) FROM people WHERE joined IS NOT NULL GROUP BY y"),
    # conditions on keys
    (PEOPLE, "SELECT vip, COUNT(*), AVG(age) FROM people WHERE region = 'north' GROUP BY vip"),
    (PEOPLE, "SELECT COUNT(*) FROM people WHERE vip AND region IN ('north', 'east')"),
    (PEOPLE, "SELECT COUNT(*) FROM people WHERE NOT vip AND region IS NULL"),
    (PEOPLE, "SELECT region, COUNT(*) FROM people WHERE vip AND (region <> 'north' OR region IS NULL) GROUP BY region"),
    (ORDERS, "SELECT paid, COUNT(*) FROM orders JOIN people USING (uid) WHERE region = 'south' GROUP BY paid"),
    ("SELECT city, COUNT(*), SUM(qty) FROM orders GROUP BY city", "SELECT city, COUNT(*) FROM orders GROUP BY city"),
    ("SELECT uid // 80, COUNT(*) FROM people GROUP BY 1", "SELECT COUNT(*) FROM people WHERE uid // 80 = 2"),
    ("SELECT uid // 80, COUNT(*) FROM people GROUP BY 1", "SELECT COUNT(*) FROM people WHERE uid // 80 IN (2, 0)"),
]  # fmt: skip


@pytest.mark.usefixtures("silent_groups")
@pytest.mark.parametrize(("stored", "sql"), DERIVED)
def test_what_is_derived_costs_nothing(stored: str, sql: str, shop: Session, rows: duckdb.DuckDBPyConnection) -> None:
    assert asked(shop, stored, FINE).loss.rho > 0
    before = shop.budget()
    answer = asked(shop, sql, COARSE)
    assert answer.loss == NO_LOSS and shop.budget() == before
    with_count = "SUM(age) / COUNT(age)" in sql  # and that of its groups has the very cells that are stored
    assert with_count != any(notice.startswith("derived from your release of ") for notice in answer.notices)
    expected = rows.execute(sql).fetchall()
    assert len(answer.rows) == len(expected)
    for mine, theirs in zip(sorted(answer.rows, key=repr), sorted(expected, key=repr), strict=True):
        assert all(same(one, other) for one, other in zip(mine, theirs, strict=True)), (mine, theirs)


def same(ours: object, theirs: object) -> bool:
    if isinstance(ours, int | float | Decimal) and isinstance(theirs, int | float | Decimal):
        return math.isclose(ours, theirs, rel_tol=1e-4)  # values that are squared are on a grid
    return ours == theirs


BOUGHT = [
    (PEOPLE, "SELECT region, COUNT(*) FROM people GROUP BY region"),  # people of unknown vip are in no group
    (PEOPLE, "SELECT region, vip, SUM(CLIP(age, 0, 50)) FROM people GROUP BY region, vip"),
    (PEOPLE, "SELECT region, vip, VAR_POP(age) FROM people GROUP BY region, vip"),
    (PEOPLE, "SELECT vip, COUNT(*) FROM people WHERE age > 30 GROUP BY vip"),
    (PEOPLE, "SELECT region, vip, COUNT(*) FROM people WHERE joined > DATE '2021-01-01' GROUP BY region, vip"),
    ("SELECT region, COUNT(*) FROM people WHERE vip GROUP BY 1", "SELECT region, COUNT(*) FROM people GROUP BY region"),
    ("SELECT city, COUNT(*) FROM orders GROUP BY city", "SELECT COUNT(*) FROM orders"),  # not every city was shown
    ("SELECT city, COUNT(*) FROM orders GROUP BY city", "SELECT COUNT(*) FROM orders WHERE city IN ('Oslo', 'Bergen')"),
    ("SELECT uid // 80, COUNT(*) FROM people GROUP BY 1", "SELECT COUNT(*) FROM people WHERE uid // 80 IN (2, 5)"),
    ("SELECT city, COUNT(DISTINCT uid) FROM orders GROUP BY city",
     "SELECT COUNT(DISTINCT uid) FROM orders WHERE city = 'Oslo'"),
    ("SELECT paid, COUNT(*) FROM orders GROUP BY paid", "SELECT COUNT(*) FROM orders WHERE paid"),  # units weigh more
    ("SELECT paid, COUNT(*) FROM orders GROUP BY paid", "SELECT COUNT(*) FROM orders"),  # and are clipped otherwise
    ("SELECT paid, COUNT(DISTINCT uid) FROM orders GROUP BY paid", "SELECT COUNT(DISTINCT uid) FROM orders"),
    ("SELECT paid, COUNT(DISTINCT note) FROM orders GROUP BY paid", "SELECT COUNT(DISTINCT note) FROM orders"),
    ("SELECT region, MEDIAN(age) FROM people GROUP BY region", "SELECT MEDIAN(age) FROM people"),
    ("SELECT region, vip, COUNT(*) FROM people GROUP BY ROLLUP (region, vip)", "SELECT COUNT(*) FROM people"),
    ("SELECT COUNT(*) FROM people", "SELECT region, COUNT(*) FROM people GROUP BY region"),
    ("SELECT DATE_TRUNC('week', joined) AS w, COUNT(*) FROM people GROUP BY w",
     "SELECT DATE_TRUNC('quarter', joined) AS q, COUNT(*) FROM people GROUP BY q"),
]  # fmt: skip


@pytest.mark.parametrize(("stored", "sql"), BOUGHT)
def test_what_is_not_derived_is_charged(stored: str, sql: str, shop: Session) -> None:
    asked(shop, stored, FINE)
    answer = asked(shop, sql, COARSE)
    assert answer.loss.rho > 0
    assert not any("derived" in notice for notice in answer.notices)


def test_it_is_no_less_accurate_than_a_fresh_one(shop: Session) -> None:
    """Four regions added up have twice the noise of one: told at half of epsilon, not at the same."""
    grouped, total = "SELECT region, COUNT(*) FROM people GROUP BY region", "SELECT COUNT(*) FROM people"
    shop.set("noise", "gaussian")
    told: list[tuple[Fraction, bool, float, float]] = []
    asked(shop, grouped, "2")
    for epsilon in ("2", "1.4", "1.1", "0.8", "0.5"):
        shop.set("epsilon", epsilon)
        expected = shop.explain(total).releases[0].bundles[0].stderr
        answer = shop.execute(total)
        error = answer.errors[0][0]
        assert error is not None
        told.append((Fraction(epsilon), answer.loss == NO_LOSS, error.stderr, expected))
    free = [epsilon for epsilon, is_free, _, _ in told if is_free]
    assert free and Fraction(2) not in free
    assert all(stderr <= expected for _, _, stderr, expected in told)


def test_no_answer_worked_out_of_derived_cells_is_less_accurate(shop: Session) -> None:
    """The two cells of an average share noise of the variance's three. Each alone would fit up to an epsilon of 0.57 of
    the stored one, their sum, which is the count, up to half of it."""
    shop.set("noise", "laplace")
    asked(shop, "SELECT VAR_POP(qty) FROM orders", "2000")
    counts = "SELECT COUNT(qty), SUM(qty) FROM orders"
    assert asked(shop, counts, "990").loss == NO_LOSS
    assert asked(shop, counts, "1100").loss.rho > 0


def test_no_group_is_less_likely_to_be_shown(shop: Session) -> None:
    """The stored noise is smaller, but for its delta a group needed more units to appear."""
    cities = "SELECT city, COUNT(*) FROM orders GROUP BY city"
    shop.set("noise", "laplace")
    found = []
    for epsilon, delta in (("1", "1e-6"), ("0.9", "1e-3")):
        shop.set("delta", delta)
        shop.set("epsilon", epsilon)
        (release,) = shop.explain(cities).releases
        found.append((release.bundles[0].stderr, release.units_to_appear))
        assert shop.execute(cities).loss.rho > 0
    (stored, keen), (fresh, keener) = found
    assert stored < fresh and keen is not None and keener is not None and keen > keener


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_most_accurate_release_is_read_whenever_it_was_charged(order: tuple[int, int], shop: Session) -> None:
    """Each of the two tells it alone."""
    bought = [(GROUPED, "500"), ("SELECT region, COUNT(*), SUM(age) FROM people GROUP BY region", "2000")]
    receipts, read = {}, []
    for place in order:
        shop.set("derive", "off")
        receipts[place] = asked(shop, *bought[place]).receipts
        shop.set("derive", "on")
        answer = asked(shop, TOTAL, COARSE)
        assert answer.loss == NO_LOSS
        read.append(answer.receipts)
    assert read == [receipts[order[0]], receipts[1]] and receipts[0] != receipts[1]


def test_derive_is_a_setting(shop: Session) -> None:
    asked(shop, PEOPLE, FINE)
    shop.execute("SET derive = off")
    assert shop.execute("SHOW derive").rows == [("off",)]
    assert asked(shop, "SELECT region, vip, COUNT(*) FROM people GROUP BY region, vip", COARSE).loss.rho > 0
    shop.execute("RESET derive")
    assert asked(shop, "SELECT region, vip, SUM(age) FROM people GROUP BY region, vip", COARSE).loss == NO_LOSS


def test_a_statement_may_be_derived_in_part(shop: Session) -> None:
    asked(shop, "SELECT region, COUNT(*) FROM people GROUP BY region", FINE)
    both = "SELECT (SELECT COUNT(*) FROM people) AS n, (SELECT COUNT(*) FROM orders) AS m"
    shop.set("epsilon", COARSE)
    steps = {step.plan_hash: step.loss for step in shop.compile_statement(both).steps}
    before = shop.budget().spent_rho
    answer = shop.execute(both)
    assert answer.rows == [(240, 2390)] or answer.rows[0][0] == 240
    assert len(steps) == 2 and answer.loss in steps.values()
    assert shop.budget().spent_rho - before == answer.loss.rho


def test_a_release_that_other_steps_read_is_charged(shop: Session) -> None:
    """What fills a hole is part of the name by which the other release is found again."""
    asked(shop, "SELECT region, COUNT(*) FROM people GROUP BY region", FINE)
    nested = "SELECT COUNT(*) FROM people WHERE age > (SELECT COUNT(*) FROM people) / 6"
    answer = asked(shop, nested, COARSE)
    assert answer.loss.rho > 0 and not any("derived" in notice for notice in answer.notices)
    assert asked(shop, nested, COARSE).loss == NO_LOSS


def test_dependencies_are_numbered_among_the_charged_requests() -> None:
    asked_for = [
        ReleaseRequest("a", 1, NO_LOSS, ()),
        ReleaseRequest("b", 1, NO_LOSS, ()),
        ReleaseRequest("c", 1, NO_LOSS, (), (1,)),
    ]
    told = ReusePlan(None, {0: ReuseSource(None, None, None)})  # type: ignore[arg-type]
    bought = [(place, one.plan, one.after) for place, one in told.requests_to_charge(asked_for).items()]
    assert bought == [(1, "b", ()), (2, "c", (0,))]


# --- what EXPLAIN says ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("derive", ["on", "off"])
@pytest.mark.parametrize(("stored", "sql"), [*DERIVED[::6], *BOUGHT[::6]])
def test_the_price_that_explain_shows_is_charged(stored: str, sql: str, derive: str, shop: Session) -> None:
    asked(shop, stored, FINE)
    shop.set("epsilon", COARSE)
    shop.set("derive", derive)
    offer = shop.explain(sql).offers[0]
    before = shop.budget().spent_rho
    assert shop.execute(sql).loss == offer.price
    assert shop.budget().spent_rho - before == offer.price.rho


def test_explain_says_where_an_answer_will_come_from(shop: Session) -> None:
    asked(shop, GROUPED, FINE)
    shop.set("epsilon", COARSE)
    both = "SELECT (SELECT COUNT(*) FROM people) AS n, (SELECT COUNT(*) FROM orders) AS m"
    derived, bought = sorted(shop.explain(both).sources, reverse=True)
    assert derived.startswith("derived from your release of 20") and derived.endswith(", at no cost")
    assert bought == "a run that has to be paid for"
    assert f"  from: {derived}" in str(shop.explain(both)).splitlines()
    (own,) = shop.explain(GROUPED).sources
    assert "Price: nothing, it was paid for before" in str(shop.explain(GROUPED))
    assert own == "your own release, paid for before"
    assert "Price: nothing, it follows from what was paid for" in str(shop.explain("SELECT COUNT(*) FROM people"))


# --- whose releases --------------------------------------------------------------------------------------------------

GROUPED, TOTAL = "SELECT region, COUNT(*) FROM people GROUP BY region", "SELECT COUNT(*) FROM people"


def test_another_accounts_release_reveals_nothing(tmp_path: Path) -> None:
    """Not even whether it exists: bob's price and explanation are the same before and after."""
    with opened(tmp_path, ANALYSTS) as schema:
        dataset = open_dataset(schema)
        ana, bob = (Session(dataset, user=name, sampler=Silence()) for name in ("ana", "bob"))
        bob.set("epsilon", COARSE)
        before = str(bob.explain(TOTAL))
        asked(ana, GROUPED, FINE)
        assert str(bob.explain(TOTAL)) == before
        assert asked(bob, TOTAL, COARSE).loss.rho > 0
        assert asked(ana, TOTAL, COARSE).loss == NO_LOSS
        dataset.close()


def test_what_both_have_paid_for_is_dated_by_ones_own_charge(tmp_path: Path) -> None:
    """When another asked first is not told."""
    with opened(tmp_path, ANALYSTS) as schema:
        dataset = open_dataset(schema)
        ana, bob = (Session(dataset, user=name, sampler=Silence()) for name in ("ana", "bob"))
        long_ago = ana.clock().replace(year=2001)
        ana.clock = lambda: long_ago
        asked(ana, GROUPED, FINE)
        assert asked(bob, GROUPED, FINE).loss.rho > 0
        notices = asked(bob, TOTAL, COARSE).notices
        assert f"derived from your release of {bob.clock():%Y-%m-%d}" in notices[0] and "2001" not in notices[0]
        dataset.close()


def test_an_account_that_has_expired_derives_nothing(tmp_path: Path) -> None:
    expiring = ANALYSTS.replace("delta: 0.1}}", "delta: 0.1}, expires: 2100-01-01}", 1)
    with opened(tmp_path, expiring) as schema:
        dataset = open_dataset(schema)
        ana = Session(dataset, user="ana", sampler=Silence())
        asked(ana, GROUPED, FINE)
        assert asked(ana, TOTAL, COARSE).loss == NO_LOSS
        late = ana.clock().replace(year=2101)
        ana.clock = lambda: late
        with pytest.raises(dpsql.OperationalError, match="expired"):
            asked(ana, TOTAL, COARSE)
        dataset.close()


def test_a_release_of_an_older_version_is_not_reused(tmp_path: Path) -> None:
    with opened(tmp_path) as schema:
        dataset = open_dataset(schema)
        asked(Session(dataset, sampler=Silence()), GROUPED, FINE)
        dataset.close()
        with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
            connection.execute("DELETE FROM people WHERE uid < 100")
        register_data_version(schema)
        dataset = open_dataset(schema)
        answer = asked(Session(dataset, sampler=Silence()), TOTAL, COARSE)
        assert answer.loss.rho > 0 and answer.rows == [(140,)]
        dataset.close()


def test_through_a_cursor(tmp_path: Path) -> None:
    with opened(tmp_path, ANALYSTS) as schema, dpsql.connect(str(schema), user="ana") as connection:
        cursor = connection.cursor()
        cursor.execute(f"SET epsilon = {FINE}")
        cursor.execute(GROUPED)
        cursor.execute(f"SET epsilon = {COARSE}")
        before = connection.budget()
        cursor.execute(TOTAL)
        ((told,),) = cursor.fetchall()
        assert abs(told - 240) < 100 and connection.budget() == before
