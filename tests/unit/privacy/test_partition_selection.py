"""Selections keep their (rho, delta), checked by exact enumeration; planted wrong thresholds are seen to exceed it."""

import itertools
import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dpsql.privacy import partition_selection
from dpsql.privacy.loss import epsilon_to_rho, rho_to_epsilon, round_down
from dpsql.privacy.partition_selection import (
    WEIGHT_ONE,
    GaussianThreshold,
    KeyReach,
    LaplaceThreshold,
    OptimalSelection,
    Selection,
    WeightedGaussian,
    calibrate_selection_by_epsilon,
    calibrate_selection_by_rho,
    keep_keys,
    key_weight,
    units_needed,
)
from dpsql.privacy.sampling import ExactSampler

DELTA = F(1, 10**5)
REACHES = [KeyReach(l0, k, one) for l0 in (1, 2, 3) for k in (1, 2, 3) for one in (False, True)]


class Pmf:
    """The exact pmf of a noise, summed in 40 digits: an independent account of every tail."""

    def __init__(self, selection: Selection) -> None:
        with localcontext() as context:
            context.prec = 40
            match selection:
                case OptimalSelection(scale, bound):
                    reach, exponent = bound, lambda x: -Decimal(abs(x)) / self.decimal(scale)
                case LaplaceThreshold(scale):
                    reach, exponent = int(70 * scale) + 20, lambda x: -Decimal(abs(x)) / self.decimal(scale)
                case GaussianThreshold(sigma):
                    reach, exponent = int(14 * sigma) + 20, lambda x: -((Decimal(x) / self.decimal(sigma)) ** 2) / 2
                case _:
                    raise AssertionError
            half = [exponent(x).exp() for x in range(reach + 1)]
            total = 2 * sum(half) - half[0]
            self.above = {reach: Decimal(0)}
            for x in range(reach, -reach - 1, -1):
                self.above[x - 1] = self.above[x] + half[abs(x)] / total
        self.reach = reach

    @staticmethod
    def decimal(value: F) -> Decimal:
        return Decimal(value.numerator) / Decimal(value.denominator)

    def tail(self, x: int) -> float:
        """P(X > x)."""
        return float(self.above[x]) if -self.reach <= x <= self.reach else float(x < 0)


def vectors(total: int, most: int) -> Iterator[tuple[int, ...]]:
    """The ways to spread at most `total` over keys, at most `most` on each, largest first."""
    yield ()
    for head in range(1, min(total, most) + 1):
        for rest in vectors(total - head, head):
            yield (head, *rest)


def worst_exclusive(pmf: Pmf, limit: int, reach: KeyReach) -> float:
    """The largest probability that some key leaves which only one of two neighbors has."""
    k = reach.group_size
    tails = [0.0] + [pmf.tail(limit - v) for v in range(1, k + 1)]
    return max(-math.expm1(sum(math.log1p(-tails[v]) for v in vs)) for vs in vectors(k * reach.l0, k))


def laplace_for(reach: KeyReach) -> LaplaceThreshold:
    return partition_selection._calibrate_laplace(F(reach.l1, 1), DELTA, reach)


def gaussian_for(reach: KeyReach) -> GaussianThreshold:
    return partition_selection._calibrate_gaussian(F(1, 8), round_down(DELTA), reach)


@pytest.mark.parametrize("make", [laplace_for, gaussian_for])
@pytest.mark.parametrize("reach", REACHES, ids=str)
def test_threshold_delta(make, reach: KeyReach) -> None:
    selection = make(reach)
    pmf = Pmf(selection)
    claimed, worst = float(selection.loss.delta), worst_exclusive(pmf, selection.threshold, reach)
    assert worst <= claimed <= float(DELTA)
    # Tight: the union bound over mixed vectors loses little, and one threshold lower is too low.
    assert claimed <= 1.6 * worst
    if reach.group_size == 1:
        assert worst_exclusive(pmf, selection.threshold - 1, reach) > float(DELTA)


@pytest.mark.parametrize("scale", [F(1, 2), F(1), F(2), F(20)])
def test_continuous_tail_is_seen_to_exceed(scale: F) -> None:
    """Thresholds from continuous tails (noisy count >= T, P(N >= T - 1) <= delta) break delta with discrete noise."""
    reach, m = KeyReach(1), int(3 * scale) + 1
    for planted, continuous in [
        (LaplaceThreshold(scale, m, reach), math.exp(-m / float(scale)) / 2),
        (GaussianThreshold(scale, m, reach), norm.sf(m / float(scale))),
    ]:
        delta = 1.0001 * continuous
        assert worst_exclusive(Pmf(planted), m, reach) > delta
        assert planted.loss.delta > delta


@pytest.mark.parametrize("reach", [KeyReach(1), KeyReach(3, 2), KeyReach(2, 3, True)], ids=str)
@pytest.mark.parametrize("scale", [F(1), F(5, 2), F(10)])
def test_truncated_geometric(scale: F, reach: KeyReach) -> None:
    """Each key is (v/scale, delta(v))-DP for every count and every move v of a group, on both events."""
    selection = partition_selection._calibrate_optimal(scale, DELTA, reach)
    pmf, bound, k = Pmf(selection), selection.bound, reach.group_size
    per_key = float(selection.loss.delta) / (reach.sides * reach.l0)
    leave = [0.0] + [pmf.tail(bound - n) for n in range(1, 3 * bound)]
    for v in range(1, k + 1):
        growth, allowed = math.exp(v / float(scale)), per_key * v / k * (1 + 1e-12) + 1e-13
        for low, high in zip(leave, leave[v:], strict=False):
            assert high <= growth * low + allowed
            assert 1 - low <= growth * (1 - high) + allowed
    assert selection.loss.delta <= DELTA
    assert leave[k] == pytest.approx(per_key, rel=1e-9)
    assert partition_selection._truncated_delta(scale, bound - 1, reach) > DELTA


def test_truncated_geometric_known_answer() -> None:
    """k = 14 at (1, 1e-6), attained delta 3.8e-7; one unit from the optimum of Desfontaines et al."""
    selection = calibrate_selection_by_epsilon(F(1), F(1, 10**6), F(0), l0=1)
    assert isinstance(selection, OptimalSelection)
    assert selection.bound == 14
    assert float(selection.loss.delta) == pytest.approx(3.8e-7, rel=0.02)
    pi, optimum = 0.0, 0
    while pi < 0.5:
        pi = min(math.e * pi + 1e-6, 1 - math.exp(-1) * (1 - pi - 1e-6))
        optimum += 1
    assert optimum <= units_needed(selection, 1) <= optimum + 1


def masses(l0: int, k: int) -> Iterator[list[int]]:
    """The weighted masses that k units can put on exclusive keys, for every choice of key sets."""
    sets = [s for size in range(1, l0 + 1) for s in itertools.combinations(range(k * l0), size)]
    for chosen in itertools.combinations_with_replacement(sets, k):
        mass = [0] * (k * l0)
        for keys in chosen:
            for key in keys:
                mass[key] += key_weight(len(keys))
        yield [m for m in mass if m]


@pytest.mark.parametrize(
    "reach", [KeyReach(2), KeyReach(8), KeyReach(50), KeyReach(2, 2), KeyReach(2, 2, True), KeyReach(1, 3)], ids=str
)
@pytest.mark.parametrize("rho", [F(1, 2), F(1, 100)])
def test_weighted_delta(rho: F, reach: KeyReach) -> None:
    selection = partition_selection._calibrate_weighted(rho, round_down(DELTA), reach)
    sigma = float(selection.sigma)

    def chance(mass: list[int], threshold: int) -> float:
        # Sigma is above 2^15, so the continuous tail differs by less than 1e-7 of itself.
        return -math.expm1(sum(math.log1p(-norm.sf((threshold + 0.5 - m) / sigma)) for m in mass))

    if reach.group_size == 1:
        cases = [[key_weight(t)] * t for t in range(1, reach.l0 + 1)]
    else:
        cases = list(masses(reach.l0, reach.group_size))
    worst = max(chance(mass, selection.threshold) for mass in cases)
    assert worst <= float(selection.loss.delta) <= float(DELTA)
    if reach.group_size == 1 and selection.threshold > 2 * WEIGHT_ONE:
        assert float(selection.loss.delta) <= 1.05 * worst
        assert max(chance(mass, selection.threshold - WEIGHT_ONE) for mass in cases) > float(DELTA)


def test_weighted_claims_nothing_outside_its_proof() -> None:
    assert WeightedGaussian(F(1000), 2 * WEIGHT_ONE - 1, KeyReach(4)).loss.delta == 1
    assert WeightedGaussian(F(10 * WEIGHT_ONE), 11 * WEIGHT_ONE - 1, KeyReach(4)).loss.delta == 1
    assert WeightedGaussian(F(10 * WEIGHT_ONE), 11 * WEIGHT_ONE, KeyReach(4)).loss.delta < 1


def test_weighted_masses_stay_within_the_norm() -> None:
    for t in range(1, 3000):
        assert t * key_weight(t) ** 2 <= WEIGHT_ONE**2 < t * (key_weight(t) + 1) ** 2
    for mass in masses(2, 2):
        assert sum(m * m for m in mass) <= (2 * WEIGHT_ONE) ** 2


@pytest.mark.parametrize("rho", [F(1, 2), F(1, 50)])
def test_gaussian_threshold_is_dp_for_one_key(rho: F) -> None:
    """Keep or drop, for every pair of counts n, n + 1: the hockey stick stays below delta + delta_conv."""
    selection = partition_selection._calibrate_gaussian(rho, round_down(DELTA), KeyReach(1))
    pmf, conversion = Pmf(selection), F(1, 1000)
    growth = math.exp(rho_to_epsilon(selection.loss.rho, conversion))
    leave = [0.0] + [pmf.tail(selection.threshold - n) for n in range(1, 2 * selection.threshold)]
    for low, high in itertools.pairwise(leave):
        for p, q in [(low, high), (high, low), (1 - low, 1 - high), (1 - high, 1 - low)]:
            assert p - growth * q <= float(DELTA + conversion)


@settings(max_examples=60, deadline=None)
@given(
    st.fractions(F(1, 10**5), F(2)),
    st.integers(10, 40),
    st.integers(1, 200),
    st.integers(1, 4),
    st.booleans(),
)
def test_charges_stay_within_what_was_requested(
    rho: F, exponent: int, l0: int, group_size: int, change_one: bool
) -> None:
    delta = F(1, 2**exponent) * F(99, 100)
    chosen = calibrate_selection_by_rho(rho, delta, l0=l0, group_size=group_size, change_one=change_one)
    assert (chosen.loss.epsilon is None) == isinstance(chosen, GaussianThreshold | WeightedGaussian)
    assert chosen.loss.rho <= round_down(rho)
    assert 0 < chosen.loss.delta <= round_down(delta)
    epsilon = F(rho.numerator + rho.denominator, rho.denominator)
    under = calibrate_selection_by_epsilon(epsilon, delta, delta, l0=l0, group_size=group_size, change_one=change_one)
    assert under.loss.delta <= round_down(delta)
    match under:
        case OptimalSelection(scale) | LaplaceThreshold(scale):
            assert under.loss.epsilon is not None
            assert under.reach.l1 / scale <= under.loss.epsilon <= round_down(epsilon)
        case _:
            assert under.loss.rho <= epsilon_to_rho(round_down(epsilon), delta)


@pytest.mark.parametrize("threshold", [1, 2, 5, 40])
@pytest.mark.parametrize("scale", [F(1, 2), F(2), F(30)])
@pytest.mark.parametrize("kind", [LaplaceThreshold, OptimalSelection])
def test_a_key_that_leaves_while_another_enters_is_within_the_epsilon_and_delta(
    threshold: int, scale: F, kind: type[LaplaceThreshold | OptimalSelection]
) -> None:
    """Under change_one a unit leaves one key of its own and enters another: all four outcomes, summed exactly."""
    chosen = kind(scale, threshold, KeyReach(1, change_one=True))
    shown = Pmf(chosen).tail(threshold - 1)
    assert chosen.loss.epsilon is not None
    growth, delta = math.exp(chosen.loss.epsilon), 0.0
    for first in (True, False):
        for second in (True, False):
            here = (shown if first else 1 - shown) * (0.0 if second else 1.0)
            there = (0.0 if first else 1.0) * (shown if second else 1 - shown)
            delta += max(0.0, here - growth * there)
    assert delta <= float(chosen.loss.delta) * (1 + 1e-9)


def test_laplace_noise_selects_by_a_gaussian_where_that_shows_more() -> None:
    half = F(1, 2 * 10**6)
    chosen = calibrate_selection_by_epsilon(F(1), half, half, l0=8, weights=False)
    assert chosen.name == "Gaussian threshold" and chosen.loss.epsilon is None


def test_the_best_for_the_case() -> None:
    """As in the published comparison: truncated geometric for few keys per unit, Gaussian for many."""
    half = F(1, 2 * 10**6)
    chosen = {l0: calibrate_selection_by_epsilon(F(1), half, half, l0=l0) for l0 in (1, 2, 4, 8, 64)}
    assert [chosen[l0].name for l0 in (1, 2)] == ["truncated geometric"] * 2
    assert [chosen[l0].name for l0 in (4, 8, 64)] == ["weighted Gaussian threshold"] * 3
    assert [units_needed(chosen[l0], l0) for l0 in (1, 2, 4, 8, 64)] == [15, 29, 50, 71, 213]
    assert chosen[4].weighted
    assert not chosen[1].weighted


def test_group_size_and_relation_cost_what_they_must() -> None:
    for group_size, change_one in [(1, False), (3, False), (2, True)]:
        factor = group_size**2 * (2 if change_one else 1)
        reach = KeyReach(5, group_size, change_one)
        assert GaussianThreshold(F(16), 100, reach).loss.rho == F(5 * factor, 512)
        assert LaplaceThreshold(F(16), 100, reach).loss.rho == F(5 * factor, 512)
        assert OptimalSelection(F(16), 100, reach).loss.rho == F(5 * factor, 512)
        assert WeightedGaussian(F(WEIGHT_ONE * 16), 10**7, reach).loss.rho == F(factor, 512)


class Extreme:
    """Noise of one size."""

    def __init__(self, value: int) -> None:
        self.value = value

    def laplace(self, n: int, scale: F) -> np.ndarray:
        return np.full(n, self.value, np.int64)

    gaussian = laplace


ALL = [
    OptimalSelection(F(2), 20, KeyReach(1)),
    LaplaceThreshold(F(2), 20, KeyReach(1)),
    GaussianThreshold(F(2), 20, KeyReach(1)),
    WeightedGaussian(F(2 * WEIGHT_ONE), 20, KeyReach(1)),
]


@pytest.mark.parametrize("selection", ALL, ids=lambda s: s.name)
def test_keep_compares_strictly_and_never_invents_keys(selection: Selection) -> None:
    counts = np.array([0, -5, 1, 20, 21, (1 << 63) - 1], np.int64)
    assert keep_keys(selection, counts, Extreme(0)).tolist() == [False, False, False, False, True, True]
    if not isinstance(selection, OptimalSelection):
        most = Extreme((1 << 62) - 1)
        assert keep_keys(selection, counts, most).tolist() == [False, False, True, True, True, True]


def test_truncated_noise_is_truncated() -> None:
    noise = partition_selection._draw_truncated_laplace(50_000, F(3), 4, ExactSampler())
    assert set(np.unique(noise)) == set(range(-4, 5))
    share = np.mean(noise == 4)
    q = math.exp(-1 / 3)
    p = q**4 / (1 + 2 * sum(q**x for x in range(1, 5)))
    assert abs(share - p) < 6 * math.sqrt(p / 50_000)


def test_units_needed_is_an_even_chance() -> None:
    for selection in ALL:
        l0 = 1
        needed = units_needed(selection, l0)
        each = key_weight(l0) if selection.weighted else 1
        for units, least, most in [(needed, 0.5, 1.0), (needed - 1, 0.0, 0.5)]:
            counts = np.full(20_000, units * each, np.int64)
            share = float(np.mean(keep_keys(selection, counts, ExactSampler())))
            assert least - 0.03 <= share <= most + 0.03


@pytest.mark.parametrize(("l0", "group_size"), [(0, 1), (1, 0)])
def test_reach_is_positive(l0: int, group_size: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        KeyReach(l0, group_size)
