"""EXPLAIN tells the caller's own price with each kind of noise, and nothing of others."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from support import shop
from support.shop import Silence

from dpsql.dataset import Dataset, open_dataset
from dpsql.errors import BudgetExceeded
from dpsql.explain import Offer
from dpsql.ledger.how_many import MANY, how_many
from dpsql.session import Session

COUNT = "SELECT COUNT(*) AS n FROM people"
TWO = "SELECT (SELECT COUNT(*) FROM people) AS n, (SELECT COUNT(*) FROM people WHERE vip) AS v"
ACCOUNTS = """
  query: {epsilon: 0.5, delta: 1e-9}
  contributions: {rows: 40, groups: 8}
analysts:
  ana: {budget: {epsilon: 4, delta: 1e-6}, largest_query: {epsilon: 2}}
  bob: {budget: {epsilon: 5, delta: 0}}
  eve: {budget: {epsilon: 4, delta: 1e-6}, composition: basic}
tables:"""


@pytest.fixture()
def dataset(tmp_path: Path) -> Iterator[Dataset]:
    start, end = shop.SCHEMA.index("  query:"), shop.SCHEMA.index("tables:")
    text = shop.SCHEMA[:start].rstrip() + ACCOUNTS + shop.SCHEMA[end + len("tables:") :]
    (tmp_path / "shop.yaml").write_text(text, encoding="utf-8")
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute(shop.DATA)
    opened = open_dataset(tmp_path / "shop.yaml")
    yield opened
    opened.close()


@pytest.fixture()
def ana(dataset: Dataset) -> Session:
    return Session(dataset, "ana", Silence())


def offers(session: Session, sql: str) -> dict[str, Offer]:
    return {offer.noise: offer for offer in session.explain(sql).offers}


@pytest.mark.parametrize("most", [0, 1, 2, 3, 7, 8, 99, 1000, MANY - 1, MANY, MANY + 5])
def test_how_many_finds_the_last_one(most: int) -> None:
    assert how_many(lambda number: number <= most) == min(most, MANY)


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
def test_as_many_more_can_be_asked_as_it_says(user: str, noise: str, dataset: Dataset) -> None:
    session = Session(dataset, user, Silence())
    session.execute(f"SET noise = {noise}")
    before = offers(session, "SELECT COUNT(*) FROM people WHERE age < 1000")[noise]
    for number in range(before.covered):
        session.execute(f"SELECT COUNT(*) FROM people WHERE age < {number}")
        left = offers(session, "SELECT COUNT(*) FROM people WHERE age < 1000")[noise]
        assert left.covered == before.covered - number - 1
        if number > 3 and before.covered > 30:  # one by one to the end where they are few
            return
    with pytest.raises(BudgetExceeded):
        session.execute("SELECT COUNT(*) FROM people WHERE age < 1000")
    assert "your budget does not cover it" in str(session.explain("SELECT COUNT(*) FROM people WHERE age < 1000"))


def test_the_words(ana: Session) -> None:
    text = str(ana.explain(COUNT)).splitlines()
    gaussian = offers(ana, COUNT)["gaussian"]
    assert text[1] == "Price: the whole loss"
    assert text[2].startswith(f"  with gaussian noise: standard error {gaussian.expected[0]:.4g}, epsilon 0.5, rho ")
    assert text[2].endswith(f"; you could ask {gaussian.covered - 1} more like this")
    assert text[3].startswith("  or with laplace noise: standard error ")


def test_the_example_in_the_documents_is_what_is_said(ana: Session) -> None:
    ana.execute("SELECT SUM(age) FROM people")
    lines = str(ana.explain(COUNT)).splitlines()[:4]
    assert "\n".join(lines) in (Path(__file__).parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")


def test_what_she_has_paid_for_is_free_and_the_other_noise_is_not(ana: Session) -> None:
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
    assert explained.paid == (True, False) and "Price: 1 of 2 releases" in str(explained)
    (first, second) = explained.releases
    assert explained.offers[0].price.rho == second.rho < first.rho + second.rho


def test_what_is_derived_is_free(ana: Session) -> None:
    ana.execute("SELECT vip, COUNT(*) AS n, SUM(age) AS a FROM people GROUP BY vip")
    part = "SELECT vip, SUM(age) AS a FROM people GROUP BY vip"
    assert offers(ana, part)["gaussian"].paid and ana.explain(part).paid == (True,)
    assert ana.execute(part).loss.rho == 0
    ana.execute("SET derive = off")
    assert ana.explain(part).paid == (False,)


def test_what_others_ask_changes_nothing(dataset: Dataset, ana: Session) -> None:
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
    assert list(found) == ["laplace"] and found["laplace"].covered == 10 and found["laplace"].more == 9


def test_beyond_the_policy_nothing_is_covered(ana: Session) -> None:
    ana.execute("SET epsilon = 3")
    assert {offer.covered for offer in ana.explain(COUNT).offers} == {0}


def test_each_kind_has_its_own_epsilon_where_an_error_is_asked_for(ana: Session) -> None:
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
