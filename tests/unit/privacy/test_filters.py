"""The filters of basic and advanced composition, and how losses count under them."""

from __future__ import annotations

import math
from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.privacy.filters import (
    NO_COST,
    NO_CUMULATIVE_LOSS,
    Composition,
    Cost,
    CumulativeLoss,
    add_cost,
    admit_charge,
    cost_of,
    cumulative_epsilon,
    fraction_remaining,
    is_within_limits,
    limits_for_budget,
)
from dpsql.privacy.loss import Loss, epsilon_to_rho, log_rounded_up, rho_to_epsilon, round_down

NANO = F(1, 10**9)


def gaussian(epsilon: F, delta: F = NANO) -> Cost:
    return cost_of(Loss(None, round_down(epsilon_to_rho(epsilon, delta)), F(0)), epsilon, delta)


def laplace(epsilon: F) -> Cost:
    return cost_of(Loss(round_down(epsilon), round_down(epsilon**2 / 2), F(0)), epsilon)


def granted(composition: Composition, cost: Cost, epsilon: F = F(1), delta: F = F(1, 10**6)) -> int:
    most, spent, count = limits_for_budget(epsilon, delta, composition), NO_CUMULATIVE_LOSS, 0
    while (after := admit_charge(most, spent, cost)) is not None:
        spent, count = after, count + 1
    return count


@pytest.mark.parametrize(
    ("composition", "cost", "count"),
    [
        (Composition.BASIC, laplace(F(1, 10)), 10),
        (Composition.BASIC, laplace(F(1, 100)), 100),
        (Composition.BASIC, gaussian(F(1, 10)), 10),
        (Composition.BASIC, gaussian(F(1, 100)), 100),
        (Composition.ADVANCED, laplace(F(1, 10)), 10),  # by the pure filter
        (Composition.ZCDP, laplace(F(1, 10)), 10),
    ],
)
def test_known_answers(composition: Composition, cost: Cost, count: int) -> None:
    """MECHANISMS 3.3, the columns that are filters."""
    assert granted(composition, cost) == count


@pytest.mark.parametrize("make", [laplace, gaussian])
@pytest.mark.parametrize("epsilon", [F(1, 50), F(1, 100), F(1, 200)])
def test_advanced_composition_is_its_formula(make: object, epsilon: F) -> None:
    cost = make(epsilon)  # type: ignore[operator]
    half = 0.5e-6

    def fits(n: int) -> bool:
        squares = n * float(epsilon) ** 2
        return math.sqrt(2 * math.log(1 / half) * squares) + squares / 2 <= 1 and n * cost.delta <= F(1, 2 * 10**6)

    expected = max(n for n in range(5000) if fits(n) or (cost.loss.epsilon is not None and n * epsilon <= 1))
    assert granted(Composition.ADVANCED, cost) == expected
    assert expected > 1 / epsilon or epsilon > F(1, 50) - F(1, 1000), "more than basic composition grants"


def test_a_delta_of_zero_admits_pure_charges_only() -> None:
    for composition in Composition:
        most = limits_for_budget(F(1), F(0), composition)
        assert admit_charge(most, NO_CUMULATIVE_LOSS, laplace(F(1))) is not None
        assert admit_charge(most, NO_CUMULATIVE_LOSS, gaussian(F(1, 100))) is None


def test_a_loss_without_a_conversion_has_no_epsilon_and_is_not_paid() -> None:
    cost = cost_of(Loss(None, F(1, 10**6), F(0)))
    assert cost.epsilon is None
    for composition in (Composition.BASIC, Composition.ADVANCED):
        most = limits_for_budget(F(8), F(1, 100), composition)
        assert admit_charge(most, NO_CUMULATIVE_LOSS, cost) is None
        assert admit_charge(most, CumulativeLoss(None, F(0), F(0), None), laplace(F(1, 10))) is None, (
            "and nothing after it"
        )


@given(st.fractions(F(1, 1000), F(5)), st.fractions(F(1, 10**12), F(1, 1000)), st.fractions(F(0), F(2)))
def test_a_cost_is_at_least_the_loss(asked: F, conversion: F, part: F) -> None:
    """The asked epsilon counts only where the rho is within it; else what the rho is worth."""
    loss = Loss(None, round_down(epsilon_to_rho(asked, conversion) * part), round_down(conversion / 10))
    cost = cost_of(loss, asked, conversion)
    assert cost.epsilon is not None and cost.delta >= loss.delta + conversion
    assert cost.epsilon >= min(asked, rho_to_epsilon(loss.rho, conversion))
    assert cost.squares >= cost.epsilon**2 - F(1, 10**30)
    if part > 1:
        assert cost.epsilon >= rho_to_epsilon(loss.rho, conversion)


costs = st.one_of(
    st.fractions(F(1, 1000), F(1), max_denominator=1000).map(laplace),
    st.fractions(F(1, 1000), F(1), max_denominator=1000).map(gaussian),
)
every = st.builds(limits_for_budget, st.just(F(1)), st.sampled_from([F(0), F(1, 10**6)]), st.sampled_from(Composition))


@given(every, st.lists(costs, max_size=30))
def test_a_filter_that_admits_a_history_admitted_its_beginnings(most: object, history: list[Cost]) -> None:
    """Spending only grows: the union lemma rests on it."""
    spent, held = NO_CUMULATIVE_LOSS, True
    for cost in history:
        spent = add_cost(spent, cost)
        now = is_within_limits(most, spent)  # type: ignore[arg-type]
        if not now and held:
            held = False
        if spent.epsilon is None:
            assert held or not now


@given(every, st.lists(costs, max_size=30))
def test_what_was_lost_stays_within_the_budget(most: object, history: list[Cost]) -> None:
    spent = NO_CUMULATIVE_LOSS
    for cost in history:
        spent = admit_charge(most, spent, cost) or spent  # type: ignore[arg-type]
    gone = cumulative_epsilon(most, spent, F(1, 10**7) if most.delta else F(0))  # type: ignore[attr-defined, arg-type]
    assert gone is not None and gone <= 1
    assert 0 <= fraction_remaining(most, spent, gone) <= 1  # type: ignore[arg-type]


def test_costs_add_up() -> None:
    one, other = gaussian(F(1, 10)), laplace(F(1, 5))
    both = one + other
    assert one.scaled_by(3) == one + one + one and NO_COST + one == one
    assert both.epsilon == F(1, 10) + other.epsilon and both.loss.epsilon is None  # type: ignore[operator]
    assert both.squares == one.squares + other.squares < both.epsilon**2  # type: ignore[operator]


@given(st.fractions(F(1), F(10**12)))
def test_logarithms_round_up(value: F) -> None:
    assert float(log_rounded_up(value)) >= math.log(value) - 1e-12
    assert float(log_rounded_up(value)) <= math.log(value) + 1e-9
