"""EXPLAIN of a statement whose norms are automatic: two prices, no figures of placeholders, nothing of others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.interfaces.cli.query import explanation_to_json
from dpsql.session.dataset.dataset import Dataset
from dpsql.session.explain import NORMS_NOTE
from tests.support.store import open_store, session_of

SCHEMA = """
privacy:
  unit: payments.user_id
  budget: {epsilon: 1000, delta: 0.1}
  query: {epsilon: 1, delta: 1e-6}
  contributions: auto
analysts:
  ana: {budget: {epsilon: 500, delta: 0.01}}
  bob: {budget: {epsilon: 500, delta: 0.01}}
tables:
  payments:
    unit: user_id
    columns:
      user_id: {type: bigint}
      city: {type: text}
      even: {type: boolean}
      amount: {type: double}
"""
QUESTIONS = ["SELECT COUNT(*) FROM payments", "SELECT city, SUM(amount) FROM payments GROUP BY city"]
DATA = (
    "CREATE TABLE payments AS "
    "SELECT i % 5000 AS user_id, 'c' || (i % 4) AS city, i % 2 = 0 AS even, (i % 100)::DOUBLE AS amount "
    "FROM range(50000) t(i)"
)


@pytest.fixture
def dataset(tmp_path: Path) -> Iterator[Dataset]:
    with open_store(tmp_path, SCHEMA, DATA) as dataset:
        yield dataset


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("sql", QUESTIONS)
def test_before_the_norm_is_charged_no_error_is_shown_and_the_price_has_two_parts(
    dataset: Dataset, sql: str, noise: str
) -> None:
    ana = session_of(dataset, "ana")
    ana.set("noise", noise)
    explained = ana.explain(sql)
    assert explained.norms_undecided and set(explained.expected) == {None}
    assert all(set(offer.expected) == {None} == set(offer.within) for offer in explained.offers)
    questions = [release for release in explained.releases if not release.histogram]
    assert all(release.undecided and not release.bundles and release.units_to_appear is None for release in questions)
    assert any(release.histogram for release in explained.releases)
    text = str(explained)
    assert NORMS_NOTE in text and "in two parts" in text
    assert "standard error" not in text.replace("noise on norm_units: standard error", "")
    # groups that are selected: how the question's share is divided depends on the cap that is chosen, if little
    assert float(explained.offers[0].price.rho) == pytest.approx(float(ana.execute(sql).loss.rho), rel=0.2)


def test_after_the_norm_is_charged_the_error_and_the_norm_are_shown(dataset: Dataset) -> None:
    ana, (sql, _) = session_of(dataset, "ana"), QUESTIONS
    first = ana.explain(sql)
    ana.execute(sql)
    explained = ana.explain(sql)
    assert not explained.norms_undecided and explained.expected[0] is not None
    ((_, norm),) = explained.releases[0].norms
    assert f"norm of rows: {norm} for each unit" in str(explained)
    assert all(explained.paid) and explained.offers[0].rho == first.offers[0].rho  # a fresh one costs what it did


def test_the_price_of_the_next_question_is_what_is_charged(dataset: Dataset) -> None:
    ana = session_of(dataset, "ana")
    ana.set("noise", "laplace")
    ana.execute("SELECT COUNT(*) FROM payments")
    by_even = "SELECT even, COUNT(*) FROM payments GROUP BY even"
    explained = ana.explain(by_even)
    assert explained.offers[0].price == ana.execute(by_even).loss


@pytest.mark.parametrize("sql", QUESTIONS)
def test_what_others_have_paid_for_changes_nothing(dataset: Dataset, sql: str) -> None:
    ana, bob = session_of(dataset, "ana"), session_of(dataset, "bob")
    before = str(bob.explain(sql)), json.dumps(explanation_to_json(bob.explain(sql)))
    ana.execute(sql)
    assert (str(bob.explain(sql)), json.dumps(explanation_to_json(bob.explain(sql)))) == before
    fields = json.loads(before[1])
    assert fields["norms_undecided"] and fields["outputs"][-1]["stderr"] is None
