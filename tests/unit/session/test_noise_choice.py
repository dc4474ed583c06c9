"""`noise = auto`: the more accurate kind of those that cost no more; what is paid for stays free."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpsql.compiler import compile as compiler
from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.errors import BudgetExceeded
from dpsql.interfaces.repl.status_line import format_statement_cost
from dpsql.ledger.audit import run_audit
from dpsql.session import query
from dpsql.session.dataset.dataset import Dataset, open_dataset
from dpsql.session.noise_choice import ChoiceReason, NoiseOption, choose_noise
from dpsql.session.session import Session
from tests.support.store import write_store
from tests.unit.session.test_session_noise import BY_CITY, BY_SHOP, DATA, SCHEMA

GAUSSIAN, LAPLACE = NoiseKind.GAUSSIAN, NoiseKind.LAPLACE
COUNT = "SELECT COUNT(*) AS n FROM sales"
BASIC = SCHEMA.replace("  query: {", "  composition: basic\n  query: {")
TEAM = BASIC.replace(
    "tables:\n",
    """\
  joe: {budget: {epsilon: 4, delta: 1e-4}, parent: team}
  zoe: {budget: {epsilon: 4, delta: 1e-4}, parent: team}
groups:
  team: {budget: {epsilon: 1.5, delta: 1e-4}}
tables:
""",
)

Open = Callable[[str], Dataset]


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Open]:
    opened: list[Dataset] = []

    def open_with(schema: str) -> Dataset:
        opened.append(open_dataset(write_store(tmp_path, schema, DATA)))
        return opened[-1]

    yield open_with
    for dataset in opened:
        assert not run_audit(dataset.ledger).findings
        dataset.close()


@pytest.fixture
def basic(open_store: Open) -> Session:
    return Session(open_store(BASIC), "ana")


@pytest.fixture
def zcdp(open_store: Open) -> Session:
    return Session(open_store(SCHEMA), "ana")


def ask(session: Session, sql: str) -> NoiseKind:
    """The kind of noise that a statement gets, as EXPLAIN has it and as it is."""
    (explained,) = (offer for offer in session.explain(sql).offers if offer.chosen)
    settings = session.execute(sql).settings
    assert settings is not None and settings.chosen_noise.value == explained.noise
    return settings.chosen_noise


def reason(session: Session, sql: str) -> str:
    return session.explain(sql).noise


# --- the rule --------------------------------------------------------------------------------------------------------

NEW, BEGUN, DEAR = NoiseOption(False, False, True), NoiseOption(False, True, True), NoiseOption(False, False, False)
PAID = NoiseOption(True, False, True)


@pytest.mark.parametrize(("gaussian", "laplace", "error", "same_cost", "kind", "why"), [
    (NEW, NEW, 0.3, True, LAPLACE, ChoiceReason.PRECISE),
    (NEW, NEW, 3.0, True, GAUSSIAN, ChoiceReason.PRECISE),
    (NEW, NEW, 1.0, True, GAUSSIAN, ChoiceReason.PRECISE),
    (NEW, NEW, None, True, GAUSSIAN, ChoiceReason.PRECISE),
    (NEW, NEW, 0.3, False, GAUSSIAN, ChoiceReason.CHEAPER),
    (NEW, BEGUN, 0.3, False, GAUSSIAN, ChoiceReason.CHEAPER),
    (DEAR, NEW, 9.0, False, LAPLACE, ChoiceReason.COVERED),
    (NEW, DEAR, 0.3, True, GAUSSIAN, ChoiceReason.COVERED),
    (NEW, DEAR, 0.3, False, GAUSSIAN, ChoiceReason.CHEAPER),
    (DEAR, DEAR, 0.3, False, GAUSSIAN, ChoiceReason.CHEAPER),
    (PAID, NEW, 0.3, True, GAUSSIAN, ChoiceReason.PAID),
    (NEW, PAID, 9.0, False, LAPLACE, ChoiceReason.PAID),
    (PAID, PAID, 0.3, True, GAUSSIAN, ChoiceReason.PAID),
    (BEGUN, NEW, 0.6, True, GAUSSIAN, ChoiceReason.BEGUN),
    (BEGUN, NEW, 0.4, True, LAPLACE, ChoiceReason.PRECISE),
    (NEW, BEGUN, 1.9, True, LAPLACE, ChoiceReason.BEGUN),
    (NEW, BEGUN, 2.1, True, GAUSSIAN, ChoiceReason.PRECISE),
    (BEGUN, BEGUN, 0.6, True, LAPLACE, ChoiceReason.PRECISE),
])  # fmt: skip
def test_the_choice(
    gaussian: NoiseOption,
    laplace: NoiseOption,
    error: float | None,
    same_cost: bool,
    kind: NoiseKind,
    why: ChoiceReason,
) -> None:
    choice = choose_noise({GAUSSIAN: gaussian, LAPLACE: laplace}, error, same_cost=same_cost)
    assert (choice.kind, choice.reason) == (kind, why)


# --- accounts that add up epsilons -----------------------------------------------------------------------------------


def test_a_basic_account_has_the_kind_with_the_smaller_error(basic: Session) -> None:
    assert "laplace, which is about 3.2 times more precise, at the same cost" in str(basic.explain(COUNT))
    assert ask(basic, COUNT) is LAPLACE
    assert "paid for before" in reason(basic, COUNT)
    spent = basic.budget().spent
    assert ask(basic, COUNT) is LAPLACE and basic.budget().spent == spent
    many = ", ".join(f"COUNT(*) FILTER (WHERE amount > {least})" for least in range(16))
    gaussian, laplace = basic.explain(f"SELECT {many} FROM sales WHERE amount < 40").offers
    assert gaussian.noise == "gaussian" and gaussian.chosen and gaussian.more == laplace.more
    assert ask(basic, f"SELECT {many} FROM sales WHERE amount < 40") is GAUSSIAN


def test_the_line_beneath_the_prompt_names_laplace_noise(basic: Session) -> None:
    assert format_statement_cost(basic.explain(COUNT)).startswith("next: epsilon 1 with laplace noise")
    basic.execute("SET noise = laplace")  # which she knows
    assert format_statement_cost(basic.explain(COUNT)).startswith("next: epsilon 1; its error")


def test_what_was_paid_for_with_the_other_kind_is_free(basic: Session) -> None:
    basic.execute("SET noise = gaussian")
    first = basic.execute(BY_SHOP)
    basic.execute("RESET noise")
    again = Session(basic.dataset, "ana").execute(BY_SHOP)
    assert again.rows == first.rows and not again.loss.rho
    assert "gaussian, with which it was paid for before" in reason(basic, BY_SHOP)
    total = f"SELECT SUM(n) FROM ({BY_SHOP}) AS t"
    assert ask(basic, total) is GAUSSIAN


def test_a_question_whose_histogram_is_paid_for_goes_on_with_its_kind(basic: Session) -> None:
    basic.execute("SET noise = gaussian")
    basic.execute(BY_CITY)
    basic.execute("RESET noise")
    few = "SELECT city, COUNT(*) FILTER (WHERE amount > 10) FROM sales GROUP BY city"
    assert "histogram of units" in reason(basic, few) and ask(basic, few) is GAUSSIAN


def test_the_more_accurate_kind_needs_less_for_an_error(basic: Session) -> None:
    basic.execute("SET contributions.rows = 4")
    basic.execute("SET max_error = 40")
    offers = {offer.noise: offer for offer in basic.explain(COUNT).offers}
    assert offers["laplace"].chosen and offers["laplace"].epsilon < offers["gaussian"].epsilon
    assert ask(basic, COUNT) is LAPLACE


def test_a_pilot_and_what_follows_have_one_kind(basic: Session) -> None:
    basic.execute("SET contributions.rows = 4")
    basic.execute("SET epsilon = 0.05")
    basic.execute("SET max_relative_error = 0.01")
    assert ask(basic, COUNT) is LAPLACE
    charges = basic.budget().charges
    assert charges == 2 and ask(basic, COUNT) is LAPLACE and basic.budget().charges == charges


def test_an_option_may_leave_the_kind_open(basic: Session) -> None:
    basic.execute("SET noise = gaussian")
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (noise = 'auto') {COUNT.removeprefix('SELECT ')}"
    assert ask(basic, sql) is LAPLACE and ask(basic, COUNT) is GAUSSIAN


CREATED = [
    "CREATE MODEL {} AS LINEAR REGRESSION ON amount USING shop FROM sales",
    "CREATE SYNTHETIC TABLE {} AS SELECT shop, amount FROM sales",
    "CREATE SYNTHETIC TABLE {} AS SELECT city, amount FROM sales",
]


@pytest.mark.parametrize("sql", CREATED)
def test_models_and_synthetic_tables_choose_too(basic: Session, sql: str) -> None:
    kind = ask(basic, sql.format("first"))
    assert "with which it was paid for before" in reason(basic, sql.format("second"))
    spent = basic.budget().spent
    assert ask(basic, sql.format("second")) is kind and basic.budget().spent == spent
    assert kind is LAPLACE or "city" in sql


# --- accounts that add up rhos ---------------------------------------------------------------------------------------


def test_under_zcdp_auto_is_gaussian_and_compiled_once(zcdp: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: list[NoiseKind] = []

    def count(*args: object, **named: object) -> object:
        planned = compiler.plan_query(*args, **named)  # type: ignore[arg-type]
        kinds.append(planned.settings.chosen_noise)
        return planned

    monkeypatch.setattr(query, "plan_query", count)
    zcdp.execute("SET contributions.rows = 4")
    zcdp.execute(COUNT)
    zcdp.execute(BY_SHOP)
    assert kinds == [GAUSSIAN, GAUSSIAN]
    zcdp.execute("SET epsilon = 0.5")
    why = reason(zcdp, f"{COUNT} WHERE amount > 3")
    assert re.fullmatch(
        r"gaussian; laplace would be about 3\.\d times more precise and take [\d.]+ % of the budget"
        r" instead of [\d.]+ %: SET noise = laplace",
        why,
    )


def test_under_zcdp_laplace_answers_are_found_again(zcdp: Session) -> None:
    zcdp.execute(COUNT)
    zcdp.execute("SET epsilon = 0.5")
    zcdp.execute("SET noise = laplace")
    zcdp.execute(BY_SHOP)
    zcdp.execute("RESET noise")
    spent = zcdp.budget().spent
    assert ask(zcdp, BY_SHOP) is LAPLACE and zcdp.budget().spent == spent
    assert ask(zcdp, f"{COUNT} WHERE amount > 3") is GAUSSIAN


def test_once_rho_is_used_up_by_pure_charges_auto_is_laplace(zcdp: Session) -> None:
    zcdp.execute("SET noise = laplace")
    zcdp.execute("SET contributions.rows = 4")
    zcdp.execute(COUNT)  # takes epsilon 1 of 4, and more than all of rho
    zcdp.execute("RESET noise")
    assert "laplace, since your budget does not cover it with gaussian noise" in reason(zcdp, BY_SHOP)
    assert ask(zcdp, BY_SHOP) is LAPLACE
    with pytest.raises(BudgetExceeded, match="% is left"):
        zcdp.execute(BY_CITY)  # which finds its groups, and so is not pure
    zcdp.execute("SET noise = gaussian")
    with pytest.raises(BudgetExceeded):
        zcdp.execute("SELECT SUM(amount) FROM sales")


# --- those who pay with her ------------------------------------------------------------------------------------------


def test_a_basic_account_spares_the_rho_of_accounts_above(open_store: Open) -> None:
    eve = Session(open_store(SCHEMA), "eve")
    assert ask(eve, COUNT) is GAUSSIAN and "SET noise = laplace" in reason(eve, BY_SHOP)


def test_what_others_have_spent_makes_no_difference(open_store: Open) -> None:
    store = open_store(TEAM)
    before = Session(store, "zoe").explain(COUNT)
    Session(store, "joe").execute("SELECT COUNT(*) FROM sales WHERE amount > 3")
    zoe = Session(store, "zoe")
    assert str(zoe.explain(COUNT)) == str(before) and "laplace" in before.noise
    with pytest.raises(BudgetExceeded, match=r"above|dataset|team|others") as caught:
        zoe.execute(COUNT)
    assert not zoe.budget().charges and "laplace" not in str(caught.value)
