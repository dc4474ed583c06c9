"""Balances and refusals: figures that never promise more than there is."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.figures import short_down, short_up
from dpsql.ledger.base import Account
from dpsql.ledger.budget import balance_of, conversion_delta, limits_of, refuse_account, refuse_dataset
from dpsql.privacy.accounting import NOTHING, Spent, admit, epsilon_from, rho_from
from dpsql.privacy.loss import Loss, round_down

ANA = Account("ana", Fraction(2), Fraction(1, 10**8))
PURE = Account("pure", Fraction(2), Fraction(0))

amounts = st.fractions(min_value=0, max_value=10**9) | st.fractions(min_value=0, max_value=1, max_denominator=10**15)


@given(amounts)
def test_short_figures_enclose_the_value_within_a_percent(value: Fraction) -> None:
    low, high = Fraction(short_down(value)), Fraction(short_up(value))
    assert low <= value <= high * (1 + Fraction(1, 10**11)) and high - low <= value / 100


@pytest.mark.parametrize(
    ("value", "text"),
    [("0", "0"), ("8", "8"), ("1234567", "1230000"), ("0.00123", "0.00123"), ("1e-9", "1e-9"), ("12345678", "1.23e+7")],
)
def test_short_figures_read_well(value: str, text: str) -> None:
    assert short_down(Fraction(value)) == text


@pytest.mark.parametrize("field", ["name", "epsilon", "delta"])
def test_an_account_is_checked(field: str) -> None:
    values = {"name": "ana", "epsilon": Fraction(1), "delta": Fraction(0)}
    values[field] = {"name": "", "epsilon": Fraction(0), "delta": Fraction(1)}[field]
    with pytest.raises(ValueError, match="an account has"):
        Account(**values)  # type: ignore[arg-type]


class TestBalance:
    def test_of_a_new_account(self) -> None:
        balance = balance_of(ANA, NOTHING, 0)
        assert balance.spent_epsilon == 0 and balance.left_epsilon == 2 and balance.fraction_left == 1
        assert (balance.limit_rho, balance.limit_delta) == (limits_of(ANA).rho, limits_of(ANA).delta)

    def test_of_pure_charges_is_the_smaller_figure(self) -> None:
        few = balance_of(ANA, Spent(Fraction(1), Fraction(1, 2), Fraction(0)), 1)
        assert few.spent_epsilon == few.left_epsilon == 1 and few.fraction_left == Fraction(1, 2)
        many = balance_of(ANA, Spent(Fraction(3), Fraction(1, 100), Fraction(0)), 100)
        assert many.spent_epsilon == epsilon_from(Fraction(1, 100), conversion_delta(ANA)) < 2

    def test_of_gaussian_charges_is_converted(self) -> None:
        spent = Spent(None, limits_of(ANA).rho / 2, limits_of(ANA).delta / 4)
        balance = balance_of(ANA, spent, 2)
        assert balance.pure_epsilon is None and balance.fraction_left == Fraction(1, 2)
        assert balance.spent_epsilon == epsilon_from(spent.rho, conversion_delta(ANA))
        assert balance.left_epsilon == 2 - balance.spent_epsilon > 0

    def test_the_scarcer_of_rho_and_delta_counts(self) -> None:
        spent = Spent(None, limits_of(ANA).rho / 10, limits_of(ANA).delta * 3 / 4)
        assert balance_of(ANA, spent, 1).fraction_left == Fraction(1, 4)

    def test_never_below_nothing(self) -> None:
        lowered = balance_of(Account("ana", Fraction(1, 100), Fraction(0)), Spent(None, Fraction(1), Fraction(0)), 1)
        assert lowered.left_epsilon == lowered.fraction_left == 0

    def test_for_people(self) -> None:
        text = str(balance_of(ANA, Spent(None, Fraction(1, 1000), Fraction(1, 10**10)), 1))
        assert text.splitlines()[:2] == ['account "ana": 1 charge', "budget: epsilon 2, delta 1e-8"]
        assert "rho 0.001 of 0.0" in text and "delta of selections 1e-10 of 9e-9" in text
        assert str(balance_of(PURE, Spent(Fraction(1, 3), Fraction(0), Fraction(0)), 2)).splitlines() == [
            'account "pure": 2 charges',
            "budget: epsilon 2, delta 0",
            "spent:  epsilon 0.334",
            "left:   epsilon 1.66 (83.3 %)",
        ]


def figures(text: str) -> list[Fraction]:
    return [Fraction(figure) for figure in re.findall(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?", text)]


losses = st.tuples(
    st.booleans(),
    st.fractions(min_value=Fraction(1, 1000), max_value=3, max_denominator=1000),
    st.sampled_from([Fraction(0), Fraction(1, 10**9), Fraction(1, 10**8)]),
)


def loss_of(pure: bool, epsilon: Fraction, delta: Fraction) -> Loss:
    return Loss(epsilon, epsilon**2 / 2, Fraction(0)) if pure else Loss(None, epsilon**2 / 50, delta)


@given(st.lists(losses, max_size=5), losses, st.sampled_from([ANA, PURE]))
def test_a_refusal_asks_for_more_than_it_says_is_left(
    history: list[tuple[bool, Fraction, Fraction]], asked: tuple[bool, Fraction, Fraction], account: Account
) -> None:
    spent = NOTHING
    for item in history:
        spent = admit(limits_of(account), spent, loss_of(*item)) or spent
    loss = loss_of(*asked)
    if admit(limits_of(account), spent, loss) is not None:
        return
    refusal = refuse_account(account, spent, loss, 1)
    assert '"ana"' in refusal.message or '"pure"' in refusal.message
    if "is left" in refusal.message:
        wanted, left = figures(refusal.message)
        assert wanted > left


@given(st.fractions(min_value=Fraction(1, 1000), max_value=1, max_denominator=1000))
def test_the_epsilon_in_a_hint_fits(share: Fraction) -> None:
    """Under Gaussian noise, for a statement whose delta is at most that of the account's conversion."""
    most = limits_of(ANA)
    spent = Spent(None, round_down(most.rho * (1 - share)), Fraction(0))
    hint = refuse_account(ANA, spent, Loss(None, most.rho, Fraction(0)), 1).hint
    assert hint is not None
    setting = re.search(r"SET epsilon = ([0-9.e-]+)\. ", hint)
    assert setting is not None
    for delta in (conversion_delta(ANA), conversion_delta(ANA) / 100):
        rho = rho_from(Fraction(setting[1]), delta)
        assert admit(most, spent, Loss(None, rho, Fraction(0))) is not None


def test_what_refuses_is_named() -> None:
    most = limits_of(ANA)
    delta = refuse_account(ANA, Spent(None, Fraction(0), most.delta / 2), Loss(None, Fraction(0), most.delta), 1)
    assert "selection delta of 9e-9, but only 4.5e-9" in delta.message
    assert delta.hint is not None and "SET delta = 4.5e-9" in delta.hint
    rho = refuse_account(ANA, Spent(None, most.rho, Fraction(0)), Loss(None, most.rho, Fraction(0)), 1)
    assert "counts as epsilon 2" in rho.message and "but only 0 of" in rho.message
    assert rho.hint is not None and "SET" not in rho.hint and "is free" in rho.hint
    impure = refuse_account(PURE, NOTHING, Loss(None, Fraction(1, 100), Fraction(0)), 1)
    assert "has a delta of 0" in impure.message


def test_the_parts_of_a_statement_round_up_and_still_fit() -> None:
    spent = Spent(Fraction(1), Fraction(1, 2), Fraction(0))
    hint = refuse_account(PURE, spent, Loss(Fraction(3), Fraction(1), Fraction(0)), 3).hint
    assert hint is not None
    (epsilon,) = figures(hint)
    third = Loss(epsilon / 3, Fraction(0), Fraction(0))
    assert admit(limits_of(PURE), spent, third + third + third) is not None


def test_the_datasets_refusal_has_no_figures() -> None:
    assert not figures(str(refuse_dataset()))
