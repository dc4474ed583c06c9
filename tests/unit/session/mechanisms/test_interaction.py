"""Threshold queries and the holdout, as an analyst asks them: paid once, before anything runs; stored, then told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.errors import (
    AccountSuspended,
    BudgetExceeded,
    EngineFailed,
    Error,
    IntegrityError,
    InterfaceError,
    InvalidParameter,
    OperationalError,
    QueryCanceled,
    StaleData,
    Unsupported,
)
from dpsql.interfaces.dbapi.connection import Connection
from dpsql.interfaces.dbapi.mechanisms import AboveThreshold
from dpsql.ledger.audit import run_audit
from dpsql.session.dataset.dataset import Dataset, open_dataset
from dpsql.session.mechanisms.interaction import Interaction
from dpsql.session.session import Session
from tests.support.controlled_runs import PATIENCE, SECRET, GatedShop, gated_shop, in_thread, until
from tests.support.shop import SCHEMA, Silence, open_shop

pytestmark = pytest.mark.slow

COUNT = "SELECT COUNT(*) FROM people"  # 240, one row each


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Connection]:
    """Without noise."""
    session, reference = open_shop(tmp_path)
    reference.close()
    with Connection(session) as connection:
        yield connection


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[GatedShop]:
    with gated_shop(tmp_path) as opened:
        yield opened


def dataset_of(connection: Connection) -> Dataset:
    session = connection._session
    assert isinstance(session, Session)
    return session.dataset


def held_by(connection: Connection, asked: AboveThreshold) -> Interaction:
    session = connection._session
    assert isinstance(session, Session)
    return session._named_statements.mechanisms.get_mechanism(asked._name.strip('"'))


# --- threshold queries -----------------------------------------------------------------------------------------------


def test_without_noise_it_compares_exactly(shop: Connection) -> None:
    """Counts, sums of fractions, weighted rows and distinct units, at the value itself and just above it."""
    for sql, value in (
        (COUNT, 240), ("SELECT COUNT(*) FROM orders", 2400), ("SELECT COUNT(DISTINCT uid) FROM orders", 241),
        ("SELECT SUM(age) FROM people WHERE vip", None), ("SELECT SUM(weight) FROM items", None),
    ):  # fmt: skip
        exact = shop.sql(sql).scalar() if value is None else value
        at, over = (shop.above_threshold(limit, epsilon=1) for limit in (exact, exact + Fraction(1, 2)))
        assert at.ask(sql) and not over.ask(sql), sql


def test_it_is_charged_once_with_the_first_question(shop: Connection) -> None:
    asked = shop.above_threshold(1000, epsilon=0.5, answers=2)
    assert not asked.loss and asked.receipt is None and shop.budget().charges == 0
    assert [asked.ask(f"{COUNT} WHERE age > {age}") for age in (20, 30, 40)] == [False] * 3
    assert asked.loss.pure_epsilon == Fraction(1, 2) and asked.loss.rho == 2 * Fraction(1, 4) ** 2 / 2
    assert shop.budget().charges == 1 and asked.receipt is not None
    assert [told.above for told in asked.transcript] == [False] * 3 and asked.left == 2
    long = f"{COUNT} WHERE {' OR '.join(f'age = {age}' for age in range(300))};"
    assert not asked.ask(long) and asked.transcript[-1].question == long


def test_it_ends_with_its_last_answer_above(shop: Connection) -> None:
    asked = shop.above_threshold(100, epsilon=1, answers=2)
    assert asked.ask(COUNT) and asked.left == 1 and asked.ask(COUNT) and asked.left == 0
    with pytest.raises(BudgetExceeded, match="has given its 2 answers above the threshold"):
        asked.ask(COUNT)
    assert shop.budget().charges == 1


def test_statements_are_submitted_lazily(shop: Connection) -> None:
    """The next one may be chosen by the last answer."""
    ages: list[int] = []

    def bisect() -> Iterator[tuple[str, list[int]]]:
        age = 0
        while True:
            ages.append(age)
            yield f"{COUNT} WHERE age < ?", [age]
            age += 20

    asked = shop.above_threshold(100, bisect(), epsilon=1, sensitivity=1)
    assert ages == []
    assert [above for _, above in asked] == [False] * (len(ages) - 1) + [True]
    assert list(asked) == [] and len(ages) == len(asked.transcript)


def test_a_list_is_compiled_before_anything_is_charged(shop: Connection) -> None:
    asked = shop.above_threshold(10**6, [COUNT, "SELECT SUM(age) FROM people", "SELECT AVG(age) FROM people"])
    with pytest.raises(Unsupported):
        asked.explain()
    with pytest.raises(Unsupported):
        next(iter(asked))
    assert shop.budget().charges == 0
    asked = shop.above_threshold(10**6, [COUNT, "SELECT SUM(age) FROM people"])
    assert asked.explain().sensitivity == 120  # the largest of them
    assert [above for _, above in asked] == [False, False]


def test_what_moves_further_than_was_paid_for_is_refused(shop: Connection) -> None:
    asked = shop.above_threshold(10**6, epsilon=1)
    asked.ask(COUNT)
    with pytest.raises(InvalidParameter, match="by up to 120, and above_threshold was made for at most 1"):
        asked.ask("SELECT SUM(age) FROM people")
    assert len(asked.transcript) == 1
    declared = shop.above_threshold(10**6, epsilon=1, sensitivity=200)
    assert not declared.ask("SELECT SUM(age) FROM people") and not declared.ask(COUNT)
    with pytest.raises(InvalidParameter, match=r"was made for at most 0\.5"):
        shop.above_threshold(1, epsilon=1, sensitivity=0.5).ask(COUNT)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) / 2 FROM people", "SELECT region, COUNT(*) FROM people GROUP BY region", "SELECT 1",
        "SELECT AVG(age) FROM people", "SELECT COUNT(*), SUM(age) FROM people", "SELECT MEDIAN(age) FROM people",
        "SELECT COUNT(*) FROM people HAVING COUNT(*) > 1", "SELECT COUNT(*) FROM people LIMIT 0",
        "SELECT COUNT(*) FROM people OPTIONS (epsilon = 3)", "SELECT -COUNT(*) FROM people",
        "SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM orders", "SELECT VARIANCE(age) FROM people",
        "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people)", "SELECT BOOL_OR(vip) FROM people",
        "SELECT COUNT(*) AS a, COUNT(*) AS b FROM people", "SELECT MODE(region) FROM people",
        "SELECT COUNT(*)::text FROM people", "SELECT COUNT(*) FROM people GROUP BY region", "SHOW epsilon",
        "SELECT COUNT(*) FROM people WHERE region IN (SELECT 'a' UNION SELECT 'b')",
    ],
)  # fmt: skip
def test_a_question_is_one_number(shop: Connection, sql: str) -> None:
    asked = shop.above_threshold(100, epsilon=1)
    with pytest.raises(Error):
        asked.ask(sql)
    assert shop.budget().charges == 0 and not asked.loss


def test_explaining_is_free_and_shows_loss_and_error(shop: Connection) -> None:
    asked = shop.above_threshold(100, epsilon=1)
    assert asked.explain().epsilon == 1 and asked.explain().reach is None and "declare it" in str(asked.explain())
    told = asked.explain(COUNT, questions=100)
    assert told.sensitivity == 1 and told.reach == pytest.approx(66.35, abs=0.01) and told.rho == Fraction(1, 2)
    assert "epsilon 1 (rho 0.5), for 1 time" in str(told) and "66.4" in str(told)
    assert shop.budget().charges == 0
    assert asked.explain("SELECT SUM(age) FROM people").sensitivity == 120  # nothing is fixed yet
    asked.ask(COUNT)
    assert asked.explain("SELECT SUM(age) FROM people").sensitivity == 1


def test_explain_of_a_connection_is_for_queries(shop: Connection) -> None:
    shop.sql("DECLARE busy THRESHOLD 100")
    with pytest.raises(dpsql.NotSupportedError, match="explain tells of queries"):
        shop.explain(f"ASK busy {COUNT}")
    with pytest.raises(Unsupported, match="a query is expected here"):
        shop.sql(f"ASK busy ASK busy {COUNT}")


@pytest.mark.parametrize(
    "given", [{"epsilon": 0}, {"epsilon": -1}, {"answers": 0}, {"answers": 1.5}, {"sensitivity": 0},
              {"epsilon": float("nan")}, {"threshold": float("inf")}, {"threshold": "many"}, {"answers": True}],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(shop: Connection, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        shop.above_threshold(given.pop("threshold", 100), **given)


def test_what_the_budget_does_not_cover_is_not_submitted(tmp_path: Path) -> None:
    text = SCHEMA.replace("budget: {epsilon: 1000000, delta: 0.9}", "budget: {epsilon: 2, delta: 0}")
    session, reference = open_shop(tmp_path)
    reference.close()
    session.close()
    text = text.replace("shop.ledger", "poor.ledger").replace("epsilon: 2000, delta: 1e-3", "epsilon: 1, delta: 0")
    (tmp_path / "poor.yaml").write_text(text)
    with dpsql.connect(tmp_path / "poor.yaml") as poor:
        assert poor.above_threshold(10**6).explain().epsilon == 1  # the session's
        assert "it would be refused" in str(poor.above_threshold(10**6, epsilon=3).explain(COUNT))
        with pytest.raises(BudgetExceeded):
            poor.above_threshold(10**6, epsilon=3).ask(COUNT)
        asked = poor.above_threshold(10**9, epsilon=2)
        assert not asked.explain(COUNT).refused
        for _ in range(5):
            asked.ask(COUNT)
        with pytest.raises(BudgetExceeded):
            poor.above_threshold(10**9, epsilon=1).ask(COUNT)
        assert run_audit(dataset_of(poor).ledger).is_clean


# --- what ends it ----------------------------------------------------------------------------------------------------


def test_paid_first_and_stored_before_it_is_delivered(shop: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    dataset = dataset_of(shop)

    class Ledger:
        def __getattr__(self, name: str) -> Any:
            if name in ("purchase", "store_answer", "store_body"):
                events.append(name)
            return getattr(dataset.ledger, name)

    class Engine:
        def __getattr__(self, name: str) -> Any:
            if name == "execute":
                events.append(name)
            return getattr(dataset.engine, name)

    watched: Any = (Ledger(), Engine())
    connection = Connection(Session(replace(dataset, ledger=watched[0], engine=watched[1]), sampler=Silence()))
    asked = connection.above_threshold(10**6, epsilon=1)
    asked.ask(COUNT)
    asked.ask(COUNT)
    assert events == ["purchase", "execute", "store_answer", "execute", "store_answer"]


def test_a_new_process_redeems_nothing(shop: Connection, tmp_path: Path) -> None:
    """The same asked again is another charge."""
    shop.above_threshold(10**6, epsilon=1).ask(COUNT)
    with Connection(Session(open_dataset(tmp_path / "shop.yaml"), sampler=Silence())) as again:
        assert again.budget().charges == 1
        again.above_threshold(10**6, epsilon=1).ask(COUNT)
        assert again.budget().charges == 2 and run_audit(dataset_of(again).ledger).is_clean


def test_an_answer_that_could_not_be_stored_ends_it(shop: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = shop.above_threshold(10**6, epsilon=1)
    asked.ask(COUNT)
    with monkeypatch.context() as patch:

        def full(*_: object) -> bytes:
            raise OperationalError("the disk is full")

        patch.setattr(type(dataset_of(shop).ledger), "store_answer", full)
        with pytest.raises(OperationalError, match="the disk is full"):
            asked.ask(COUNT)
    with pytest.raises(OperationalError, match="has ended: an answer could not be stored"):
        asked.ask(COUNT)
    assert asked.left == 0 and len(asked.transcript) == 1


def test_a_copy_of_the_process_gets_no_second_answer(shop: Connection) -> None:
    """Who goes on with the same noise finds the question's number taken."""
    asked = shop.above_threshold(10**6, epsilon=1)
    asked.ask(COUNT)
    state = held_by(shop, asked)
    assert state._entitlement is not None and state._sparse_vector is not None
    dataset_of(shop).ledger.store_answer(
        state._entitlement.release, state._sparse_vector.queries_evaluated + 1, b"{}"
    )  # as the other one would
    with pytest.raises(IntegrityError, match="another process went on with it"):
        asked.ask(COUNT)
    with pytest.raises(OperationalError, match="has ended"):
        asked.ask(COUNT)


def test_another_data_version_ends_it(shop: Connection) -> None:
    asked = shop.above_threshold(10**6, epsilon=1)
    asked.ask(COUNT)
    dataset_of(shop).ledger.register_version("new files", "facts")
    with pytest.raises(StaleData):
        asked.ask(COUNT)
    with pytest.raises(OperationalError, match="the data has another version than it was begun on"):
        asked.ask(COUNT)


def test_failures_of_the_engine_count_and_it_goes_on(gated: GatedShop) -> None:
    gated.engine.gate.set()
    connection = Connection(gated.session)
    asked = connection.above_threshold(10**6, epsilon=1)
    asked.ask(COUNT)
    gated.engine.fails = MemoryError(SECRET)
    for _ in range(2):
        with pytest.raises(EngineFailed) as caught:
            asked.ask(COUNT)
        assert SECRET not in str(caught.value)
    gated.engine.fails = None
    assert not asked.ask(COUNT) and len(asked.transcript) == 2
    gated.engine.fails = MemoryError(SECRET)
    with pytest.raises(EngineFailed):
        asked.ask(COUNT)
    gated.engine.fails = None
    with pytest.raises(AccountSuspended):
        asked.ask(COUNT)
    assert gated.session.budget().charges == 1


def test_a_cancel_leaves_it_running_and_a_repeat_waits_for_the_answer(gated: GatedShop) -> None:
    connection = Connection(gated.session)
    asked = connection.above_threshold(100, epsilon=1, answers=3)
    asked.explain(COUNT)
    thread, got = in_thread(lambda: asked.ask(COUNT))
    until(lambda: gated.engine.began)
    connection.cancel()
    thread.join(PATIENCE)
    assert isinstance(got[0], QueryCanceled) and gated.session.budget().charges == 1
    thread, got = in_thread(lambda: asked.ask(f"{COUNT} WHERE age < 0"))  # another one has to wait for it
    threading.Event().wait(0.1)
    assert gated.engine.began == 1 and thread.is_alive()
    gated.engine.gate.set()
    thread.join(PATIENCE)
    assert got == [False] and [told.above for told in asked.transcript] == [True, False] and asked.left == 2


def test_the_same_question_after_a_timeout_is_submitted_once(gated: GatedShop) -> None:
    connection = Connection(gated.session)
    asked = connection.above_threshold(100, epsilon=1, answers=3)
    asked.explain(COUNT)
    gated.session.execute("SET statement_timeout = '250ms'")
    for _ in range(4):  # more than the failures that suspend
        with pytest.raises(QueryCanceled, match="statement timeout"):
            asked.ask(COUNT)
    gated.engine.gate.set()
    gated.session.execute("SET statement_timeout = 0")
    assert asked.ask(COUNT) and gated.engine.began == 1 and len(asked.transcript) == 1 and asked.left == 2


def test_it_is_one_accounts(tmp_path: Path) -> None:
    rich = "budget: {epsilon: 1000, delta: 0.01}"
    text = SCHEMA.replace("tables:", f"analysts:\n  ana: {{{rich}, may_act_for: [bob]}}\n  bob: {{{rich}}}\ntables:")
    session, reference = open_shop(tmp_path)
    reference.close()
    session.close()
    (tmp_path / "two.yaml").write_text(text.replace("shop.ledger", "two.ledger"))
    with Connection(Session(open_dataset(tmp_path / "two.yaml"), "ana", sampler=Silence())) as connection:
        asked = connection.above_threshold(10**6, epsilon=1)
        asked.ask(COUNT)
        connection.sql("SET ROLE bob")
        with pytest.raises(dpsql.Error, match="another account's"):
            asked.ask(COUNT)
        assert connection.budget().charges == 0


# --- the holdout -----------------------------------------------------------------------------------------------------

VIP = "CASE WHEN vip THEN 1 ELSE 0 END"  # 80 of 240
OLD = "CASE WHEN age > 60 THEN 1 ELSE 0 END"
SUM = "SELECT SUM({q}) FROM people"


def test_the_holdout_answers_by_the_training_set_unless_it_is_far_off(shop: Connection) -> None:
    means = {VIP: 0.34, OLD: 0.9}
    held = shop.holdout(means, SUM, n=240, threshold=0.04, sigma=0.02, budget=2)
    near, far = held.ask(VIP), held.ask(OLD)
    assert (near.value, near.overfit) == (0.34, False) and float(near) == 0.34
    exact = shop.sql(SUM.replace("{q}", OLD)).scalar() / 240
    assert far.overfit and far.value == pytest.approx(exact, abs=1e-5) and held.left == 1
    assert held.loss.pure_epsilon == pytest.approx(2 * 2 / (0.02 * 240), rel=1e-9) and shop.budget().charges == 2
    held.ask(OLD)
    with pytest.raises(BudgetExceeded, match="the holdout has given its 2 answers"):
        held.ask(VIP)


def test_the_known_answer(shop: Connection) -> None:
    told = shop.holdout({}, SUM, n=10_000, threshold=0.04, sigma=0.02, budget=10).explain(VIP)
    assert told.epsilon == pytest.approx(0.1, rel=1e-12) and "epsilon 0.1 " in str(told)
    given = shop.holdout({}, SUM, n=10_000, threshold=0.04, epsilon=0.1, budget=10).explain(VIP)
    assert given.answer_error == pytest.approx(told.answer_error) and given.epsilon <= Fraction(1, 10)
    assert shop.budget().charges == 0


def test_the_training_set_is_free_or_refused(shop: Connection) -> None:
    """Its means are told exactly: public rows, what was released, or nothing that is charged."""
    held = shop.holdout("SELECT AVG({q}) FROM people", SUM, n=240, threshold=0.04, sigma=0.02)
    with pytest.raises(BudgetExceeded, match="only what is free"):
        held.ask(VIP)
    assert shop.budget().charges == 0
    shop.sql(f"SELECT AVG(({VIP})) FROM people")  # released, and so free from now on
    assert not held.ask(VIP).overfit and shop.budget().charges == 2
    public = shop.holdout("SELECT AVG({q}) FROM (VALUES (true, 70), (false, 20)) t(vip, age)", SUM, n=240,
                          threshold=0.04, sigma=0.02)  # fmt: skip
    assert public.ask(VIP).overfit and shop.budget().charges == 3


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"holdout": "SELECT COUNT(*) FROM people"}, InterfaceError),
        ({"train": "SELECT 1"}, InterfaceError),
        ({"sigma": None}, InvalidParameter),
        ({"epsilon": 1}, InvalidParameter),
        ({"n": 0}, InvalidParameter),
        ({"n": 2.5}, InvalidParameter),
        ({"budget": 0}, InvalidParameter),
        ({"threshold": 0}, InvalidParameter),
        ({"sigma": -1}, InvalidParameter),
    ],
)
def test_a_holdout_that_makes_no_sense_is_refused(shop: Connection, given: dict[str, Any], error: type[Error]) -> None:
    usual: dict[str, Any] = {"train": {}, "holdout": SUM, "n": 240, "threshold": 0.04, "sigma": 0.02}
    with pytest.raises(error):
        shop.holdout(**(usual | given))


@pytest.mark.parametrize("mean", [None, True, float("nan"), "high"])
def test_a_mean_is_a_number(shop: Connection, mean: Any) -> None:
    held = shop.holdout(lambda question: mean, SUM, n=240, threshold=0.04, sigma=0.02)
    with pytest.raises(InvalidParameter):
        held.ask(VIP)
    with pytest.raises(InterfaceError):
        shop.holdout({}, SUM, n=240, threshold=0.04, sigma=0.02).ask(VIP)
    assert shop.budget().charges == 0


def test_rows_of_one_unit_count_together(shop: Connection) -> None:
    """Several orders of a person: her whole norm moves the mean, and is charged."""
    told = shop.holdout({}, "SELECT SUM({q}) FROM orders", n=2400, threshold=0.04, sigma=0.5, budget=1)
    assert told.explain("CASE WHEN paid THEN 1 ELSE 0 END").epsilon == pytest.approx(2 * 4000 / (0.5 * 2400))
