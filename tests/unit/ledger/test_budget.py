"""Balances and refusals: figures that never promise more than there is."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.amounts import format_rounded_down, format_rounded_up
from dpsql.ledger.base import Account, ChargedStatement
from dpsql.ledger.budget import balance_of, budget_exceeded_error, conversion_delta, shared_budget_error
from dpsql.privacy.filters import NO_CUMULATIVE_LOSS, Composition, Cost, CumulativeLoss, admit_charge, cost_of
from dpsql.privacy.loss import Loss, epsilon_to_rho, rho_to_epsilon, round_down, sum_losses

ANA = Account("ana", Fraction(2), Fraction(1, 10**8))
PURE = Account("pure", Fraction(2), Fraction(0))

amounts = st.fractions(min_value=0, max_value=10**9) | st.fractions(min_value=0, max_value=1, max_denominator=10**15)


@given(amounts)
def test_short_figures_enclose_the_value_within_a_percent(value: Fraction) -> None:
    low, high = Fraction(format_rounded_down(value)), Fraction(format_rounded_up(value))
    assert low <= value <= high * (1 + Fraction(1, 10**11)) and high - low <= value / 100


@pytest.mark.parametrize(
    ("value", "text"),
    [("0", "0"), ("8", "8"), ("1234567", "1230000"), ("0.00123", "0.00123"), ("1e-9", "1e-9"), ("12345678", "1.23e+7")],
)
def test_short_figures_read_well(value: str, text: str) -> None:
    assert format_rounded_down(Fraction(value)) == text


@pytest.mark.parametrize("field", ["name", "epsilon", "delta"])
def test_an_account_is_checked(field: str) -> None:
    values = {"name": "ana", "epsilon": Fraction(1), "delta": Fraction(0)}
    values[field] = {"name": "", "epsilon": Fraction(0), "delta": Fraction(1)}[field]
    with pytest.raises(ValueError, match="an account has"):
        Account(**values)  # type: ignore[arg-type]


class TestBalance:
    def test_of_a_new_account(self) -> None:
        balance = balance_of(ANA, NO_CUMULATIVE_LOSS, 0)
        assert balance.spent_epsilon == 0 and balance.left_epsilon == 2 and balance.fraction_left == 1
        assert (balance.limit_rho, balance.limit_delta) == (ANA.terms.limits.rho, ANA.terms.limits.delta)

    def test_of_pure_charges_is_the_smaller_figure(self) -> None:
        few = balance_of(ANA, CumulativeLoss(Fraction(1), Fraction(1, 2), Fraction(0)), 1)
        assert few.spent_epsilon == few.left_epsilon == 1 and few.fraction_left == Fraction(1, 2)
        many = balance_of(ANA, CumulativeLoss(Fraction(3), Fraction(1, 100), Fraction(0)), 100)
        assert many.spent_epsilon == rho_to_epsilon(Fraction(1, 100), conversion_delta(ANA)) < 2

    def test_of_gaussian_charges_is_converted(self) -> None:
        spent = CumulativeLoss(None, ANA.terms.limits.rho / 2, ANA.terms.limits.delta / 4)
        balance = balance_of(ANA, spent, 2)
        assert balance.pure_epsilon is None and balance.fraction_left == Fraction(1, 2)
        assert balance.spent_epsilon == rho_to_epsilon(spent.rho, conversion_delta(ANA))
        assert balance.left_epsilon == 2 - balance.spent_epsilon > 0

    def test_the_scarcer_of_rho_and_delta_counts(self) -> None:
        spent = CumulativeLoss(None, ANA.terms.limits.rho / 10, ANA.terms.limits.delta * 3 / 4)
        assert balance_of(ANA, spent, 1).fraction_left == Fraction(1, 4)

    def test_never_below_nothing(self) -> None:
        lowered = balance_of(
            Account("ana", Fraction(1, 100), Fraction(0)), CumulativeLoss(None, Fraction(1), Fraction(0)), 1
        )
        assert lowered.left_epsilon == lowered.fraction_left == 0

    def test_for_people(self) -> None:
        text = str(balance_of(ANA, CumulativeLoss(None, Fraction(1, 1000), Fraction(1, 10**10)), 1))
        assert text.splitlines()[:2] == ['account "ana": 1 charge', "budget: epsilon 2, delta 1e-8"]
        assert "rho 0.001 of 0.0" in text and "delta of selections 1e-10 of 9e-9" in text
        assert str(balance_of(PURE, CumulativeLoss(Fraction(1, 3), Fraction(0), Fraction(0)), 2)).splitlines() == [
            'account "pure": 2 charges',
            "budget: epsilon 2, delta 0",
            "spent:  epsilon 0.334",
            "left:   epsilon 1.66 (83.3 %)",
        ]


def figures(text: str) -> list[Fraction]:
    return [Fraction(figure) for figure in re.findall(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?", text)]


epsilons = st.fractions(min_value=Fraction(1, 1000), max_value=3, max_denominator=1000)
deltas = st.sampled_from([Fraction(0), Fraction(1, 10**10), Fraction(1, 10**9), Fraction(1, 10**8), Fraction(1, 10**3)])
accounts = st.builds(
    Account,
    st.just("ana"),
    st.just(Fraction(2)),
    st.sampled_from([Fraction(0), Fraction(1, 10**8), Fraction(1, 10**4)]),
    st.sampled_from(Composition),
)


@dataclass(frozen=True)
class Query:
    """A statement of some releases, which was charged the given part of what it may lose."""

    epsilon: Fraction
    delta: Fraction
    selects: bool
    releases: int
    part: Fraction

    @property
    def statement(self) -> ChargedStatement:
        conversion = self.delta * Fraction(9, 10) if self.selects else self.delta
        return ChargedStatement("SELECT", self.epsilon, self.delta, conversion)

    @property
    def cost(self) -> Cost:
        each = Fraction(1, self.releases) * self.part
        conversion = self.statement.conversion
        if not self.delta:
            one = Loss(round_down(self.epsilon * each), round_down(self.epsilon**2 / 2 * each), Fraction(0))
        else:
            delta = round_down(self.delta / 10 / self.releases) if self.selects else Fraction(0)
            one = Loss(None, round_down(epsilon_to_rho(self.epsilon, conversion) * each), delta)
        return cost_of(sum_losses([one] * self.releases), self.epsilon, conversion)


queries = st.builds(
    Query, epsilons, deltas, st.booleans(), st.integers(1, 5), st.sampled_from([Fraction(1), Fraction(1, 3)])
)


@given(st.lists(queries, max_size=5), queries, accounts)
def test_a_refused_charge_exceeds_what_is_left_and_what_is_proposed_fits(
    history: list[Query], asked: Query, account: Account
) -> None:
    """Whatever the composition, the noise and the statement's delta: the hint can be pasted."""
    most, spent = account.terms.limits, NO_CUMULATIVE_LOSS
    for query in history:
        spent = admit_charge(most, spent, query.cost) or spent
    if admit_charge(most, spent, asked.cost) is not None:
        return
    refusal = budget_exceeded_error(account, spent, asked.cost, asked.statement, asked.releases)
    assert '"ana"' in refusal.message and refusal.hint is not None
    if "is left" in refusal.message:
        *_, wanted, left = figures(refusal.message)
        assert wanted > left
    setting = re.search(r"SET (epsilon|delta) = ([0-9.e-]+)\. ", refusal.hint)
    if setting is not None and setting[1] == "epsilon":
        assert admit_charge(most, spent, replace(asked, epsilon=Fraction(setting[2])).cost) is not None
    pure = re.search(r"Pure charges may fit up to epsilon ([0-9.e-]+): SET delta = 0", refusal.hint)
    if pure is not None:
        fits = Query(Fraction(pure[1]), Fraction(0), False, 1, Fraction(1))
        assert admit_charge(most, spent, fits.cost) is not None


@given(st.fractions(min_value=Fraction(1, 100), max_value=Fraction(9, 10), max_denominator=1000), accounts)
def test_the_proposed_epsilon_is_nearly_the_largest(left: Fraction, account: Account) -> None:
    delta = Fraction(1, 10**9) if account.delta else Fraction(0)
    query = Query(account.epsilon, delta, False, 1, Fraction(1))
    most = account.terms.limits
    spent = admit_charge(most, NO_CUMULATIVE_LOSS, replace(query, epsilon=account.epsilon * (1 - left)).cost)
    if spent is None or admit_charge(most, spent, query.cost) is not None:
        return
    hint = budget_exceeded_error(account, spent, query.cost, query.statement, 1).hint
    assert hint is not None
    setting = re.search(r"SET epsilon = ([0-9.e-]+)\. ", hint)
    assert (
        setting is None
        or admit_charge(most, spent, replace(query, epsilon=Fraction(setting[1]) * 102 / 100).cost) is None
    )
    assert setting is not None or admit_charge(most, spent, replace(query, epsilon=Fraction(1, 10**6)).cost) is None


def test_what_refuses_is_named() -> None:
    most = ANA.terms.limits
    statement = ChargedStatement("SELECT", Fraction(2), Fraction(1, 10**9), Fraction(1, 10**9))
    gone = CumulativeLoss(None, Fraction(0), most.delta / 2)
    delta = budget_exceeded_error(ANA, gone, cost_of(Loss(None, Fraction(0), most.delta)), statement, 1)
    assert 'selection delta of 9e-9, and 4.5e-9 of the delta of "ana" is left' in delta.message
    assert delta.hint is not None and "SET delta = 4.5e-9" in delta.hint
    gone = CumulativeLoss(None, most.rho, Fraction(0))
    rho = budget_exceeded_error(ANA, gone, cost_of(Loss(None, most.rho, Fraction(0))), statement, 1)
    assert 'asks for epsilon 2, which is 100 % of the budget of "ana", and 0 % is left' in rho.message
    assert rho.hint is not None and "SET" not in rho.hint and "is free" in rho.hint
    impure = budget_exceeded_error(
        PURE, NO_CUMULATIVE_LOSS, cost_of(Loss(None, Fraction(1, 100), Fraction(0))), statement, 1
    )
    assert "has a delta of 0" in impure.message


def test_the_parts_of_a_statement_round_up_and_still_fit() -> None:
    spent = CumulativeLoss(Fraction(1), Fraction(1, 2), Fraction(0))
    cost = cost_of(Loss(Fraction(3), Fraction(1), Fraction(0)))
    hint = budget_exceeded_error(PURE, spent, cost, ChargedStatement("SELECT", Fraction(3)), 3).hint
    assert hint is not None
    (epsilon,) = figures(hint)
    third = Loss(epsilon / 3, Fraction(0), Fraction(0))
    assert admit_charge(PURE.terms.limits, spent, cost_of(third + third + third)) is not None


def test_the_datasets_refusal_has_no_figures() -> None:
    assert not figures(str(shared_budget_error()))
