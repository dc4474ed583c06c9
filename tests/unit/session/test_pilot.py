"""Accuracy first through a session: the epsilon is charged that the error needs; a pilot is paid before it is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpsql.compiler.accuracy import calibrated_noise, interval_half_width, miss_probability
from dpsql.compiler.plan.estimators import Linear
from dpsql.errors import BudgetExceeded, InvalidParameter
from dpsql.privacy.sampling import Integers
from dpsql.session.dataset.dataset import Dataset
from dpsql.session.pilot import aims_from_pilot
from dpsql.session.session import Session
from tests.support import shop
from tests.support.shop import Silence

COUNT = "SELECT COUNT(*) AS n FROM people"
BY_VIP = "SELECT vip, COUNT(*) AS n, COUNT(DISTINCT uid) AS units FROM people GROUP BY vip"
ACCOUNTS = """
  query: {epsilon: 0.5, delta: 1e-9}
  contributions: {rows: 4000, groups: 8}
analysts:
  ana: {budget: {epsilon: 100, delta: 1e-6}, largest_query: {epsilon: 4}}
  bob: {budget: {epsilon: 3, delta: 1e-6}}
  joe: {budget: {epsilon: 100, delta: 1e-6}, largest_query: {epsilon: 4}, parent: team}
groups:
  team: {budget: {epsilon: 100, delta: 1e-6}, largest_query: {epsilon: 2}}
tables:"""


class Shifted(Silence):
    """Every draw is the same."""

    def __init__(self, by: int) -> None:
        self.by = by

    def laplace(self, n: int, scale: Fraction) -> Integers:
        return np.full(n, self.by, np.int64)

    gaussian = laplace


class OneSigma(Silence):
    """Every draw is one standard error above, or thereabouts: better releases say something else."""

    def laplace(self, n: int, scale: Fraction) -> Integers:
        return np.full(n, int(scale), np.int64)

    gaussian = laplace


@pytest.fixture()
def dataset(tmp_path: Path) -> Iterator[Dataset]:
    with shop.opened_with(tmp_path, ACCOUNTS) as opened:
        yield opened


@pytest.fixture()
def ana(dataset: Dataset) -> Session:
    return Session(dataset, "ana", Silence())


def option(text: str, sql: str = COUNT) -> str:
    return sql.replace("SELECT", f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({text})", 1)


# --- max_error -------------------------------------------------------------------------------------------------------


def test_the_epsilon_that_is_charged_is_the_one_that_the_error_needs(ana: Session) -> None:
    sql = option("max_error = 5, noise = laplace, confidence = 0.95")
    answer = ana.execute(sql)
    assert answer.settings is not None and answer.settings.epsilon == Fraction("0.539")
    assert answer.loss.epsilon is not None and abs(answer.loss.epsilon - Fraction("0.539")) < Fraction(1, 10**5)
    assert ana.explain(sql).epsilon == Fraction("0.539")
    assert "epsilon 0.539" in str(ana.explain(sql))


def test_settings_aim_as_options_do(ana: Session) -> None:
    ana.execute("SET noise = laplace")
    ana.execute("SET max_error = 5")
    ana.execute("SET confidence = 0.95")
    assert ana.explain(COUNT).epsilon == Fraction("0.539")
    ana.execute("SET confidence = 0.99")
    assert ana.explain(COUNT).epsilon > Fraction("0.539")
    ana.execute("RESET max_error")
    assert ana.explain(COUNT).epsilon == Fraction("0.5")


def test_a_stored_release_that_is_accurate_enough_is_free(ana: Session) -> None:
    ana.execute(option("max_error = 20"))
    assert ana.execute(option("max_error = 20")).loss.rho == 0
    assert ana.execute(option("max_error = 30")).loss.rho == 0
    assert ana.execute(option("max_error = 10")).loss.rho > 0


@pytest.mark.parametrize(("user", "most"), [("ana", "4"), ("bob", "3"), ("joe", "2")])
def test_a_price_beyond_the_policy_is_refused_with_the_price(user: str, most: str, dataset: Dataset) -> None:
    session = Session(dataset, user, Silence())
    before = session.budget().charges
    message = rf"needs epsilon [0-9.]+, and one query may ask for at most {most}\n"
    with pytest.raises(BudgetExceeded, match=message) as no:
        session.execute(option("max_error = 0.4"))
    assert no.value.hint and session.budget().charges == before
    explained = session.explain(option("max_error = 0.4"))
    assert explained.epsilon > 3  # which is free
    offer = explained.offers[0]
    assert offer.refused and offer.more == 0 and offer.reason == no.value.message


# --- max_relative_error ----------------------------------------------------------------------------------------------


def test_a_pilot_is_charged_first_and_then_the_statement(ana: Session) -> None:
    answer = ana.execute(option("max_relative_error = 0.2", BY_VIP))
    pilot, real = dataset_entries(ana)
    assert answer.loss.rho == pilot + real and real > pilot > 0
    assert answer.settings is not None and answer.settings.epsilon > Fraction("0.5")
    told = ana.charged  # together they are at most what both asked for
    assert (told.rho, told.epsilon) == (answer.loss.rho, answer.settings.epsilon + Fraction("0.5"))
    assert ana.budget().spent_epsilon <= told.epsilon


def test_a_pilot_after_which_the_statement_is_refused_is_reported(ana: Session) -> None:
    with pytest.raises(InvalidParameter, match="too near to 0") as caught:
        ana.execute(option("max_relative_error = 0.2", f"{COUNT} WHERE uid < 0"))
    (pilot,) = dataset_entries(ana)
    assert caught.value.charge == ana.charged and ana.charged.rho == pilot > 0
    assert ana.charged.epsilon == Fraction("0.5")


def test_the_receipts_are_those_of_the_pilot_and_of_the_statement(ana: Session) -> None:
    sql = option("max_relative_error = 0.2", BY_VIP)
    answer = ana.execute(sql)
    pilot, real = (entry.receipt for entry in ana.dataset.ledger.list_entries("ana") if entry.charges)
    assert answer.receipts == (pilot, real) == ana.execute(sql).receipts


def test_a_pilot_that_is_rounded_is_less_exact(ana: Session) -> None:
    """A count of 240 that is shown may have been 239.5 before it was rounded."""
    pilot = ana.compile_statement(option("max_relative_error = 0.05"))
    aims = aims_from_pilot(pilot, ana.execute(COUNT))
    recipe = pilot.tables[0].measures[0].recipe
    assert aims is not None and isinstance(recipe, Linear)
    half = interval_half_width(calibrated_noise(recipe, pilot.steps[0].calibrated), Fraction(1, 40)) + Fraction(1, 2)
    assert [most for _, most in aims.errors] == [Fraction(5, 100) * (240 - half)]


def dataset_entries(session: Session) -> list[Fraction]:
    entries = session.dataset.ledger.list_entries("ana")
    return [sum((loss.rho for loss in entry.losses), Fraction(0)) for entry in entries if entry.charges]


def test_a_repeat_is_free_and_gives_the_same(ana: Session, dataset: Dataset) -> None:
    """Also where the statement's own release, which is the better one, lies beside the pilot's."""
    sql = option("max_relative_error = 0.1")
    noisy = Session(dataset, "ana", Shifted(3))
    first = noisy.execute(sql)
    for session in (noisy, ana):
        again = session.execute(sql)
        assert again.rows == first.rows and again.loss.rho == 0 and again.settings == first.settings


def test_a_pilot_is_not_derived_from_better_answers(dataset: Dataset) -> None:
    """It would say something else once the statement itself is stored, and the price would change."""
    noisy = Session(dataset, "ana", OneSigma())
    noisy.execute(option("epsilon = 1", "SELECT COUNT(*) AS n, SUM(age) AS a FROM people"))
    first = noisy.execute(option("max_relative_error = 0.05"))
    again = noisy.execute(option("max_relative_error = 0.05"))
    assert first.loss.rho > 0 == again.loss.rho and again.settings == first.settings and again.rows == first.rows


def test_other_releases_of_the_account_do_not_decide_the_requested_error(ana: Session) -> None:
    ana.execute(option("epsilon = 4", "SELECT COUNT(*) AS n, SUM(age) AS a FROM people"))
    assert ana.execute(COUNT).loss.rho == 0
    assert ana.execute(option("max_error = 50")).loss.rho > 0


@pytest.mark.parametrize("shift", [-20, 0, 20])
def test_each_error_is_within_its_part_of_the_value(shift: int, dataset: Dataset) -> None:
    """As the theorem has it: the pilot is off by no more than its half-width, and so is the answer."""
    session = Session(dataset, "ana", Shifted(shift))
    sql = option("max_relative_error = 0.05, epsilon = 0.5")
    answer, pilot = session.execute(sql), session.compile_statement(sql)
    assert answer.settings is not None
    recipe = pilot.tables[0].measures[0].recipe
    assert isinstance(recipe, Linear)
    within = interval_half_width(calibrated_noise(recipe, pilot.steps[0].calibrated), Fraction(1, 40))
    assert abs(shift) <= within, "this shift is one of those that the claim is about"
    followed = session.execute(option(f"epsilon = {float(answer.settings.epsilon)}"))
    assert followed.loss.rho == 0
    plain = session.compile_statement(option(f"epsilon = {float(answer.settings.epsilon)}"))
    noise = calibrated_noise(recipe, plain.steps[0].calibrated)
    assert miss_probability(noise, Fraction(5, 100) * 240) <= Fraction(1, 40)


def test_values_beside_their_noise_are_refused_with_the_price_so_far(ana: Session) -> None:
    none = option("max_relative_error = 0.05", "SELECT COUNT(*) AS n FROM people WHERE age > 119")
    with pytest.raises(InvalidParameter, match='a value of "n" is too near to 0') as caught:
        ana.execute(none)
    assert caught.value.detail == "The pilot was charged epsilon 0.5." and caught.value.hint
    with pytest.raises(InvalidParameter) as again:
        ana.execute(none)
    assert again.value.detail == "The pilot was paid for before."
    assert len(dataset_entries(ana)) == 1


def test_a_price_that_the_pilot_finds_too_high_is_refused(ana: Session) -> None:
    with pytest.raises(BudgetExceeded, match="one query may ask for at most 4") as caught:
        ana.execute(option("max_relative_error = 0.00001", BY_VIP))
    assert caught.value.detail == "The pilot was charged epsilon 0.5."


def test_a_pilot_that_is_good_enough_is_the_answer(ana: Session) -> None:
    answer = ana.execute(option("max_relative_error = 0.5, epsilon = 1.5"))
    assert answer.rows == [(240,)] and len(dataset_entries(ana)) == 1


def test_having_leaves_small_groups_out(ana: Session) -> None:
    small = "SELECT region, COUNT(*) AS n FROM people WHERE age > 118 OR region = 'east' GROUP BY region"
    ana.execute("SET empty_groups = show")
    with pytest.raises(InvalidParameter):
        ana.execute(option("max_relative_error = 0.2, epsilon = 1", small))
    answer = ana.execute(option("max_relative_error = 0.2, epsilon = 1", small + " HAVING COUNT(*) > 30"))
    assert answer.rows == [("east", 60)]
    ana.execute("SET empty_groups = hide")
    assert ana.execute(option("max_relative_error = 0.2, epsilon = 1", small)).rows == [("east", 60)]


def test_no_rows_need_no_more_accuracy(ana: Session) -> None:
    answer = ana.execute(option("max_relative_error = 0.2", f"{BY_VIP} HAVING COUNT(*) > 100000000"))
    assert answer.rows == [] and len(dataset_entries(ana)) == 1


def test_describing_and_explaining_run_no_pilot(ana: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*args: object) -> None:
        raise AssertionError("nothing is bought")

    monkeypatch.setattr(type(ana.dataset.ledger), "purchase", asked)
    sql = option("max_relative_error = 0.05")
    assert "pilot" in str(ana.explain(sql)) and ana.describe(sql)[0].name == "n"


# --- what EXPLAIN says of it -----------------------------------------------------------------------------------------


def test_a_price_that_is_not_known_is_not_reported(ana: Session) -> None:
    explained = ana.explain(option("max_relative_error = 0.2"))
    assert explained.undecided and explained.epsilon == Fraction("0.5") and explained.expected == (None,)
    lines = str(explained).splitlines()
    assert lines[0] == "Loss: the pilot's epsilon 0.5, delta 1e-9, and then what it decides"
    assert lines[1] == "Price: that of the pilot, and then of what it decides"
    assert lines[2].startswith("  with gaussian noise: a pilot with standard error ")
    assert lines[2].endswith("; and then what it decides") and "at most" not in lines[0]


@pytest.mark.parametrize("shift", [-20, 0, 20])
def test_once_the_pilot_is_stored_the_true_price_is_reported(shift: int, dataset: Dataset) -> None:
    """The pilot may be stored without what follows: it was asked for another error, or that was too dear."""
    noisy = Session(dataset, "ana", Shifted(shift))
    noisy.execute(option("max_relative_error = 0.5"))
    sql, charges = option("max_relative_error = 0.05"), noisy.budget().charges
    explained = noisy.explain(sql)
    assert not explained.undecided and explained.epsilon > Fraction("0.5") and not explained.offers[0].paid
    assert explained.expected == explained.offers[0].expected != (None,)
    assert noisy.budget().charges == charges
    answer = noisy.execute(sql)
    assert answer.settings is not None and answer.settings.epsilon == explained.epsilon
    assert answer.loss == explained.offers[0].price
    lines = str(explained).splitlines()
    assert lines[0].startswith("Loss: at most epsilon ") and lines[1] == "Price: the whole loss"
    assert "Note: the pilot of max_relative_error was paid for before, and has decided this" in lines
    again = noisy.explain(sql)
    assert again.offers[0].paid and again.epsilon == explained.epsilon
    assert noisy.execute(sql).loss.rho == 0


def test_more_like_it_have_a_pilot_each(ana: Session) -> None:
    ana.execute(option("max_relative_error = 0.5"))
    offer = ana.explain(option("max_relative_error = 0.05")).offers[0]
    plain = ana.explain(option(f"epsilon = {float(offer.epsilon)}", "SELECT COUNT(*) FROM people WHERE vip")).offers[0]
    assert 0 < offer.more < plain.more and offer.rho == plain.rho


def test_a_stored_pilot_that_is_good_enough_is_free(ana: Session) -> None:
    sql = option("max_relative_error = 0.5, epsilon = 1.5")
    ana.execute(sql)
    explained = ana.explain(sql)
    assert explained.offers[0].paid and not explained.undecided and explained.expected[0] is not None
    assert "accurate enough: it is the answer" in str(explained) and "free, and you could ask" in str(explained)


def test_what_the_pilot_has_shown_to_be_refused_is_reported(ana: Session) -> None:
    small = option("max_relative_error = 0.05", "SELECT COUNT(*) AS n FROM people WHERE age > 119")
    with pytest.raises(InvalidParameter) as caught:
        ana.execute(small)
    offer = ana.explain(small).offers[0]
    assert offer.refused and offer.more == 0 and offer.reason == caught.value.message
    dear = option("max_relative_error = 0.00001", BY_VIP)
    with pytest.raises(BudgetExceeded) as too_much:
        ana.execute(dear)
    explained = ana.explain(dear)
    assert explained.offers[0].refused and explained.offers[0].reason == too_much.value.message
    assert explained.epsilon > 4


def test_the_pilot_of_others_decides_nothing(dataset: Dataset, ana: Session) -> None:
    sql = option("max_relative_error = 0.2")
    before = str(ana.explain(sql))
    Session(dataset, "joe", Silence()).execute(option("max_relative_error = 0.5"))
    assert str(ana.explain(sql)) == before


def test_a_stored_answer_is_free_also_where_it_could_not_be_charged_any_more(dataset: Dataset, ana: Session) -> None:
    sql = option("max_error = 2, noise = laplace")
    ana.execute(sql)
    schema = dataset.schema
    poor = tuple(replace(one, policy=replace(one.policy, largest_epsilon=Fraction(1))) for one in schema.analysts)
    later = Session(replace(dataset, resolved=replace(dataset.resolved, schema=replace(schema, analysts=poor))), "ana")
    assert later.explain(sql).offers[0].paid and not later.explain(sql).offers[0].refused
    assert later.execute(sql).loss.rho == 0
