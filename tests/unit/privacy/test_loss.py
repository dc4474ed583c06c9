"""Conversions are certified, and the filter never grants more than the budget."""

from decimal import Decimal, localcontext
from fractions import Fraction as F

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.privacy.filters import (
    NO_CUMULATIVE_LOSS,
    CumulativeLoss,
    FilterLimits,
    admit_charge,
    cost_of,
    limits_for_budget,
)
from dpsql.privacy.loss import LOSS_DENOMINATOR, Loss, epsilon_to_rho, rho_to_epsilon

MICRO = F(1, 10**6)


def pure(epsilon: F) -> Loss:
    return Loss(epsilon, epsilon**2 / 2, F(0))


def gaussian(sigma: F) -> Loss:
    return Loss(None, 1 / (2 * sigma**2), F(0))


def granted(limit: FilterLimits, loss: Loss) -> int:
    spent, count = NO_CUMULATIVE_LOSS, 0
    while (after := admit_charge(limit, spent, cost_of(loss))) is not None:
        spent, count = after, count + 1
    return count


def exact_delta(rho: F, epsilon: F) -> Decimal:
    """The CKS20 bound, with the best order found by solving for a zero of its derivative, in 100 digits."""
    with localcontext() as context:
        context.prec = 100
        r, e = (Decimal(x.numerator) / Decimal(x.denominator) for x in (rho, epsilon))
        low, high = Decimal(1), Decimal(10) ** 30
        for _ in range(400):
            a = (low + high) / 2
            slope = (2 * a - 1) * r - e + (1 - 1 / a).ln()
            low, high = (low, a) if slope > 0 else (a, high)
        a = high
        return ((a - 1) * (a * r - e)).exp() / (a - 1) * (a * (1 - 1 / a).ln()).exp()


def test_known_answer() -> None:
    assert float(epsilon_to_rho(F(1), MICRO)) == pytest.approx(0.024356, abs=5e-7)


def test_without_delta_there_is_no_rho() -> None:
    assert epsilon_to_rho(F(1), F(0)) == 0
    assert rho_to_epsilon(F(0), F(0)) == 0
    with pytest.raises(ValueError, match="only at a delta"):
        rho_to_epsilon(F(1), F(0))


@pytest.mark.parametrize(("epsilon", "delta"), [(F(-1), MICRO), (F(1), F(1)), (F(1), F(-1, 10))])
def test_out_of_range(epsilon: F, delta: F) -> None:
    with pytest.raises(ValueError, match="delta must lie"):
        epsilon_to_rho(epsilon, delta)


@pytest.mark.parametrize("epsilon", [F(1, 1000), F(1, 10), F(1), F(8), F(100)])
@pytest.mark.parametrize("delta", [F(1, 10), MICRO, F(1, 10**12), F(1, 10**320)])
def test_rho_is_certified_and_tight(epsilon: F, delta: F) -> None:
    rho = epsilon_to_rho(epsilon, delta)
    target = Decimal(delta.numerator) / Decimal(delta.denominator)
    assert (rho * LOSS_DENOMINATOR).denominator == 1
    assert exact_delta(rho, epsilon) <= target
    assert exact_delta(rho * (1 + F(1, 10**7)), epsilon) > target
    back = rho_to_epsilon(rho, delta)
    assert abs(back - epsilon) <= epsilon / 10**7
    assert exact_delta(rho, back) <= target


@settings(max_examples=60, deadline=None)
@given(st.fractions(F(1, 10**4), F(50)), st.fractions(F(1, 10**4), F(50)), st.integers(2, 200))
def test_rho_grows_with_epsilon_and_delta(one: F, other: F, exponent: int) -> None:
    low, high = sorted((one, other))
    delta = F(1, 2**exponent)
    assert epsilon_to_rho(low, delta) <= epsilon_to_rho(high, delta)
    assert epsilon_to_rho(low, delta / 2) <= epsilon_to_rho(low, delta)
    rho = epsilon_to_rho(high, delta)
    assert rho_to_epsilon(rho, delta) >= rho_to_epsilon(rho / 2, delta)


def test_how_many_counts_fit() -> None:
    """The answers of a filter at (1, 1e-6) with all of delta for the conversion."""
    limit = FilterLimits(F(1), epsilon_to_rho(F(1), MICRO), F(0))
    assert granted(limit, pure(F(1, 8))) == 8
    assert granted(limit, pure(F(1, 128))) == int(limit.rho * 2 * 128**2) == 798
    assert granted(limit, gaussian(F("50.21"))) == 122
    assert granted(limit, gaussian(F("458.5"))) == 10240


def test_a_tenth_rounds_up() -> None:
    """A loss of exactly 1/10 is charged a little more, so only nine fit in 1; calibration asks for a little less."""
    limit = FilterLimits(F(1), F(0), F(0))
    assert granted(limit, pure(F(1, 10))) == 9
    assert granted(limit, pure(F(LOSS_DENOMINATOR // 10, LOSS_DENOMINATOR))) == 10


def test_an_account_splits_its_delta() -> None:
    limit = limits_for_budget(F(1), MICRO)
    assert limit == FilterLimits(F(1), epsilon_to_rho(F(1), MICRO / 10), MICRO * 9 / 10)
    assert float(exact_delta(limit.rho, F(1))) == pytest.approx(1e-7)
    assert granted(limit, gaussian(F("50.21"))) == int(limit.rho * 2 * F("50.21") ** 2) == 101
    assert limits_for_budget(F(1), F(0)) == FilterLimits(F(1), F(0), F(0))


def test_pure_filter_ends_with_the_first_other_loss() -> None:
    limit = FilterLimits(F(1), F(1, 100), F(0))
    spent = admit_charge(limit, NO_CUMULATIVE_LOSS, cost_of(pure(F(1, 2))))
    assert spent is not None
    assert spent.rho > limit.rho
    assert admit_charge(limit, spent, cost_of(gaussian(F(100)))) is None
    assert admit_charge(limit, spent, cost_of(pure(F(1, 2)))) is not None


def test_delta_is_never_pure() -> None:
    limit = FilterLimits(F(1), F(0), F(0))
    assert admit_charge(limit, NO_CUMULATIVE_LOSS, cost_of(Loss(F(1, 2), F(0), F(1, 10**9)))) is None


def test_selection_delta_is_limited() -> None:
    limit = FilterLimits(F(1), F(1), F(1, 1024))
    assert granted(limit, Loss(None, F(1, 1024), F(1, 4096))) == 4


losses = st.builds(
    lambda epsilon, rho, delta: Loss(epsilon, rho, delta),
    st.none() | st.fractions(F(0), F(1, 4)),
    st.fractions(F(0), F(1, 50)),
    st.sampled_from([F(0), F(0), MICRO / 4]),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(losses, max_size=30))
def test_some_filter_always_holds(asked: list[Loss]) -> None:
    """What was granted fits one of the two filters as a whole; a refusal changes nothing."""
    limit, spent, taken = limits_for_budget(F(1), MICRO), NO_CUMULATIVE_LOSS, []
    for loss in asked:
        after = admit_charge(limit, spent, cost_of(loss))
        if after is not None:
            spent = after
            taken.append(loss)
    by_epsilon = all(x.epsilon is not None and not x.delta for x in taken) and sum(x.epsilon or 0 for x in taken) <= 1
    by_rho = sum(x.rho for x in taken) <= limit.rho and sum(x.delta for x in taken) <= limit.delta
    assert by_epsilon or by_rho
    assert spent.rho == sum(x.rho for x in taken)
    assert spent.delta == sum(x.delta for x in taken)


def test_admit_is_exact_at_the_limit() -> None:
    limit = FilterLimits(F(0), F(3, LOSS_DENOMINATOR), F(0))
    step = Loss(None, F(1, LOSS_DENOMINATOR), F(0))
    assert granted(limit, step) == 3
    assert admit_charge(limit, CumulativeLoss(None, F(3, LOSS_DENOMINATOR), F(0)), cost_of(step)) is None
