"""EXPLAIN tells the caller's own price with each kind of noise, and nothing of others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.errors import AccessDenied, BudgetExceeded
from dpsql.ledger.budget import MAX_COUNTED, count_admitted
from dpsql.session.dataset.accounts import DATASET, dataset_account, paying_accounts
from dpsql.session.dataset.dataset import Dataset
from dpsql.session.explain import Offer
from dpsql.session.session import Session
from tests.support import shop
from tests.support.shop import Silence

COUNT = "SELECT COUNT(*) AS n FROM people"
TWO = "SELECT (SELECT COUNT(*) FROM people) AS n, (SELECT COUNT(*) FROM people WHERE vip) AS v"
ACCOUNTS = """
  query: {epsilon: 0.5, delta: 1e-9}
  contributions: {rows: 40, groups: 8}
analysts:
  ana: {budget: {epsilon: 4, delta: 1e-6}, largest_query: {epsilon: 2}}
  bob: {budget: {epsilon: 5, delta: 0}}
  eve: {budget: {epsilon: 4, delta: 1e-6}, composition: basic}
  joe: {budget: {epsilon: 4, delta: 1e-6}, parent: team}
  old: {budget: {epsilon: 4, delta: 1e-6}, expires: 2020-01-01}
groups:
  team: {budget: {epsilon: 4, delta: 1e-6}, parent: house}
  house: {budget: {epsilon: 4, delta: 1e-6}, largest_query: {epsilon: 0.15}}
tables:"""


@pytest.fixture()
def dataset(tmp_path: Path) -> Iterator[Dataset]:
    with shop.opened_with(tmp_path, ACCOUNTS) as opened:
        yield opened


@pytest.fixture()
def ana(dataset: Dataset) -> Session:
    return Session(dataset, "ana", Silence())


def offers(session: Session, sql: str) -> dict[str, Offer]:
    return {offer.noise: offer for offer in session.explain(sql).offers}


@pytest.mark.parametrize("most", [0, 1, 2, 3, 7, 8, 99, 1000, MAX_COUNTED - 1, MAX_COUNTED, MAX_COUNTED + 5])
def test_how_many_finds_the_last_one(most: int) -> None:
    assert count_admitted(lambda number: number <= most) == min(most, MAX_COUNTED)


def test_laplace_is_the_more_accurate_and_gaussian_the_cheaper(ana: Session) -> None:
    found = offers(ana, COUNT)
    gaussian, laplace = found["gaussian"], found["laplace"]
    assert list(found) == ["gaussian", "laplace"] and gaussian.chosen and not laplace.chosen
    assert laplace.expected[0] is not None and gaussian.expected[0] is not None
    assert laplace.expected[0] < gaussian.expected[0] and gaussian.rho < laplace.rho
    assert gaussian.more > laplace.more > 0
    assert ana.explain(COUNT).expected == gaussian.expected


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("user", ["ana", "eve"])
def test_as_many_more_can_be_charged_as_it_says(user: str, noise: str, dataset: Dataset) -> None:
    session = Session(dataset, user, Silence())
    session.execute(f"SET noise = {noise}")
    before = offers(session, "SELECT COUNT(*) FROM people WHERE age < 1000")[noise]
    for number in range(before.affordable_count):
        session.execute(f"SELECT COUNT(*) FROM people WHERE age < {number}")
        left = offers(session, "SELECT COUNT(*) FROM people WHERE age < 1000")[noise]
        assert left.affordable_count == before.affordable_count - number - 1
        if number > 3 and before.affordable_count > 30:  # one by one to the end where they are few
            return
    with pytest.raises(BudgetExceeded):
        session.execute("SELECT COUNT(*) FROM people WHERE age < 1000")
    assert "your budget does not cover it" in str(session.explain("SELECT COUNT(*) FROM people WHERE age < 1000"))


def test_the_words(ana: Session) -> None:
    text = str(ana.explain(COUNT)).splitlines()
    gaussian = offers(ana, COUNT)["gaussian"]
    assert text[1] == "Price: the whole loss"
    assert text[2].startswith("  with gaussian noise: standard error 11.3, epsilon 0.5, rho ")
    assert text[2].endswith(f"; you could ask {gaussian.affordable_count - 1} more like this")
    assert text[3].startswith("  or with laplace noise: standard error ")


def test_the_example_in_the_documents_is_what_is_said(ana: Session) -> None:
    ana.execute("SELECT SUM(age) FROM people")
    lines = str(ana.explain(COUNT)).splitlines()[:4]
    assert "\n".join(lines) in (Path(__file__).parents[3] / "docs" / "sql.md").read_text(encoding="utf-8")


def test_what_is_paid_for_is_free_and_the_other_noise_is_not(ana: Session) -> None:
    ana.execute(COUNT)
    found = offers(ana, COUNT)
    assert found["gaussian"].paid and found["gaussian"].price.rho == 0 and found["gaussian"].rho > 0
    assert not found["laplace"].paid and found["laplace"].price.rho == found["laplace"].rho
    assert "Price: nothing, it was paid for before" in str(ana.explain(COUNT))
    assert "free, and you could ask" in str(ana.explain(COUNT))
    for epsilon, paid in (("0.25", True), ("0.9", False)):  # a stored release serves whoever asks for no less error
        ana.execute(f"SET epsilon = {epsilon}")
        assert ana.explain(COUNT).paid == (paid,)


def test_a_part_may_be_paid(ana: Session) -> None:
    ana.execute(COUNT)
    explained = ana.explain(TWO)
    (first, second), (offer, _) = explained.releases, explained.offers
    assert explained.paid == (True, False) and offer.price.rho == second.rho < offer.rho == first.rho + second.rho
    lines = str(explained).splitlines()
    assert lines[1] == "Price: rho 0.00198; 1 of 2 releases was paid for before"
    assert "epsilon 0.5, rho 0.00198 of 0.00396; you could ask " in lines[2]
    assert "Release 1 (owned rows, aggregated on duckdb): nothing to pay" in lines
    assert "Release 2 (owned rows, aggregated on duckdb): rho 0.00198" in lines
    assert ana.execute(TWO).loss.rho == offer.price.rho


@pytest.mark.parametrize("user", ["ana", "eve"])
def test_what_is_partly_paid_for_leaves_as_many_more_as_it_says(user: str, dataset: Dataset) -> None:
    """As many of the whole price as the budget covers beside the part that is due."""
    session = Session(dataset, user, Silence())
    session.execute("SET noise = laplace")
    session.execute("SET epsilon = 1.5")
    session.execute(COUNT)
    before = session.explain(TWO).offers[0]
    assert before.price.epsilon is not None and not before.paid and before.more == 1  # 4 - 1.5 - 0.75 - 1.5
    assert session.execute(TWO).loss == before.price
    for number in range(before.more):
        assert session.explain(TWO).offers[0].more == before.more - number
        session.execute(f"SELECT COUNT(*) FROM people WHERE age < {number}")
    with pytest.raises(BudgetExceeded):
        session.execute("SELECT COUNT(*) FROM people WHERE age < 1000")


@pytest.mark.parametrize(
    "twice",
    [
        "SELECT (SELECT COUNT(*) FROM people) AS a, (SELECT COUNT(*) FROM people) AS b",
        "SELECT (SELECT COUNT(*) FROM people) AS a, COUNT(*) FROM people WHERE age > (SELECT COUNT(*) / 6 FROM people)",
    ],
)
def test_what_is_selected_twice_is_paid_for_once(twice: str, ana: Session) -> None:
    for sql in (twice, f"{twice} LIMIT 1"):
        offer = ana.explain(sql).offers[0]
        before = ana.budget().spent_rho
        assert ana.execute(sql).loss == offer.price
        assert ana.budget().spent_rho - before == offer.price.rho


def bars(session: Session, sql: str) -> list[float | None]:
    (errors,) = session.execute(sql).errors
    return [None if error is None else error.stderr for error in errors]


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_the_error_is_that_of_the_stored_release(kind: str, ana: Session) -> None:
    ana.execute(f"SET noise = {kind}")
    ana.execute("SET epsilon = 1")
    ana.execute(COUNT)
    ana.execute("SET epsilon = 0.25")
    explained = ana.explain(COUNT)
    fresh = ana.explain("SELECT COUNT(*) FROM people WHERE vip").expected[0]
    assert explained.expected[0] is not None and fresh is not None and explained.expected[0] < fresh / 3
    assert explained.expected == explained.offers[0].expected and list(explained.expected) == bars(ana, COUNT)
    fresh_one = f"  a fresh one: {kind} noise on {explained.releases[0].columns[0].name}: standard error "
    assert any(line.startswith(fresh_one) for line in str(explained).splitlines())


def test_the_error_is_that_of_the_stored_release_also_where_a_part_is_paid(ana: Session) -> None:
    two = "SELECT vip, COUNT(*) AS n, MEDIAN(age) AS m FROM people GROUP BY vip"
    ana.execute("SET epsilon = 2")
    ana.execute("SELECT vip, COUNT(*) AS n FROM people GROUP BY vip")
    ana.execute("SET epsilon = 0.25")
    ana.execute("SET derive = off")
    explained = ana.explain(two)
    assert sorted(explained.paid) == [False, True]
    answer = ana.execute(two)
    (vip, count, middle) = explained.expected
    assert vip is None and middle is None and answer.loss == explained.offers[0].price
    assert {error.stderr for _, error, _ in answer.errors if error is not None} == {count}


def test_the_error_is_that_of_the_derived_release(ana: Session) -> None:
    ana.execute("SET epsilon = 2")
    ana.execute("SELECT region, COUNT(*) FROM people GROUP BY region")
    ana.execute("SET epsilon = 0.25")
    expected = ana.explain(COUNT).expected
    assert list(expected) == pytest.approx(bars(ana, COUNT)) and ana.budget().charges == 1
    ana.execute("SET derive = off")
    (fresh,) = ana.explain(COUNT).expected
    assert fresh is not None and expected[0] is not None and expected[0] < fresh


def test_what_is_derived_is_free(ana: Session) -> None:
    ana.execute("SET epsilon = 2")
    ana.execute("SELECT vip, COUNT(*) AS n, SUM(age) AS a FROM people GROUP BY vip")
    ana.execute("SET epsilon = 0.25")
    part = "SELECT COUNT(*) AS n, SUM(age) AS a FROM people WHERE vip IS NOT NULL"
    assert offers(ana, part)["gaussian"].paid and ana.explain(part).paid == (True,)
    assert ana.execute(part).loss.rho == 0
    ana.execute("SET derive = off")
    assert ana.explain(part).paid == (False,)


def test_what_others_run_changes_nothing(dataset: Dataset, ana: Session) -> None:
    """Neither that another has the release already, nor that the dataset's budget has shrunk (SOUNDNESS 9)."""
    before = str(ana.explain(COUNT)), ana.explain(COUNT)
    other = Session(dataset, "eve", Silence())
    other.execute(COUNT)
    other.execute("SELECT COUNT(*) FROM orders")
    assert (str(ana.explain(COUNT)), ana.explain(COUNT)) == before


def test_explaining_is_free(ana: Session) -> None:
    before = ana.budget()
    ana.execute(f"EXPLAIN {TWO}")
    assert ana.budget() == before


def test_pure_accounts_have_one_kind(dataset: Dataset) -> None:
    bob = Session(dataset, "bob", Silence())
    bob.execute("SET delta = 0")
    found = offers(bob, COUNT)
    assert list(found) == ["laplace"] and found["laplace"].affordable_count == 10 and found["laplace"].more == 9


def refusal(session: Session, sql: str) -> str:
    before = session.budget().charges
    with pytest.raises((BudgetExceeded, AccessDenied)) as caught:
        session.execute(sql)
    assert session.budget().charges == before
    return caught.value.message


def test_beyond_the_policy_nothing_is_covered(ana: Session) -> None:
    ana.execute("SET epsilon = 3")
    assert {(offer.affordable_count, offer.more, offer.refused) for offer in ana.explain(COUNT).offers} == {
        (0, 0, True)
    }
    lines = str(ana.explain(COUNT)).splitlines()
    assert lines[2].endswith(f"it would be refused, and you could ask 0 more like this: {refusal(ana, COUNT)}")
    assert "may ask for at most 2" in lines[2] and "your budget" not in lines[2]


def test_the_policies_of_all_payers_count(dataset: Dataset) -> None:
    joe = Session(dataset, "joe", Silence())
    schema, own = dataset.schema, dataset.find_account("ana")
    assert [one.name for one in paying_accounts(schema, dataset.find_account("joe"))] == [
        "joe",
        "team",
        "house",
        DATASET,
    ]
    assert (
        paying_accounts(schema, own)
        == (own, dataset_account(schema))
        != paying_accounts(schema, dataset_account(schema))
    )
    assert paying_accounts(schema, dataset_account(schema)) == (dataset_account(schema),)
    joe.execute("SET epsilon = 0.16")
    offer = joe.explain(COUNT).offers[0]
    assert (offer.affordable_count, offer.more, offer.refused) == (0, 0, True)
    assert offer.reason == refusal(joe, COUNT) and '"house" may ask for at most 0.15' in offer.reason
    joe.execute("SET epsilon = 0.15")
    assert joe.explain(COUNT).offers[0].more > 0
    joe.execute(COUNT)
    joe.execute("SET epsilon = 0.16")
    assert joe.explain(COUNT).offers[0].refused
    joe.execute("SET epsilon = 0.15")
    assert joe.explain(COUNT).offers[0].paid and not joe.explain(COUNT).offers[0].refused


def test_what_is_free_stays_free_where_no_more_is_allowed(dataset: Dataset) -> None:
    Session(dataset, "ana", Silence()).execute(COUNT)
    schema = dataset.schema
    poor = tuple(replace(one, policy=replace(one.policy, largest_epsilon=Fraction(1, 10))) for one in schema.analysts)
    ana = Session(replace(dataset, resolved=replace(dataset.resolved, schema=replace(schema, analysts=poor))), "ana")
    ana.execute("SET epsilon = 0.5")
    offer = ana.explain(COUNT).offers[0]
    assert offer.paid and not offer.refused and offer.more == 0
    line = str(ana.explain(COUNT)).splitlines()[2]
    assert "free, and you could ask 0 more like this" in line and "may ask for at most 0.1" in line


def test_an_expired_account_may_run_nothing(dataset: Dataset) -> None:
    old = Session(dataset, "old", Silence())
    offer = old.explain(COUNT).offers[0]
    assert (offer.affordable_count, offer.more, offer.refused) == (0, 0, True)
    assert offer.reason == 'the account "old" expired on 2020-01-01' == refusal(old, COUNT)
    then = Session(dataset, "old", Silence(), lambda: datetime(2019, 12, 31, tzinfo=UTC))
    assert then.explain(COUNT).offers[0].more > 0
    then.execute(COUNT)
    assert then.explain(COUNT).offers[0].paid and not then.explain(COUNT).offers[0].refused
    assert old.explain(COUNT).offers[0].paid and old.explain(COUNT).offers[0].refused
    assert "free" not in str(old.explain(COUNT)).splitlines()[2]


def test_a_suspended_account_may_run_nothing(dataset: Dataset, ana: Session) -> None:
    ana.execute(COUNT)
    for _ in range(dataset.schema.limits.failures):
        dataset.ledger.count_failure(dataset.find_account("ana"), 1)
    offer = ana.explain(COUNT).offers[0]
    assert offer.refused and offer.more == 0 and offer.reason is not None and "suspended" in offer.reason


def test_each_kind_has_its_own_epsilon_where_an_error_is_requested(ana: Session) -> None:
    ana.execute("SET max_error = 10")
    found = offers(ana, COUNT)
    assert found["laplace"].epsilon < found["gaussian"].epsilon == ana.explain(COUNT).epsilon
    errors = [offer.expected[0] for offer in found.values()]
    assert all(error is not None and 4 < error < 5.5 for error in errors)


def test_nothing_private_has_no_price(ana: Session) -> None:
    explained = ana.explain("SELECT 1")
    assert explained.offers == () and explained.paid == () and "Price" not in str(explained)


def test_an_option_of_the_statement_stays(ana: Session) -> None:
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (noise = laplace, epsilon = 1) COUNT(*) FROM people"
    (offer,) = ana.explain(sql).offers
    assert (offer.noise, offer.epsilon, offer.chosen) == ("laplace", Fraction(1), True)
