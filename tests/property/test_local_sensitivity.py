"""Medians by their local sensitivity, on all small databases: the bounds, and what two neighbors can tell apart."""

from __future__ import annotations

import math
from fractions import Fraction as F
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt
import pytest

from dpsql.privacy.median import (
    BlockReach,
    LocalSensitivity,
    ProposeTestRelease,
    SmoothMedian,
    calibrate_propose_test_release,
    calibrate_smooth_median,
    distance_to_instability,
    local_sensitivity,
    smooth_delta,
    smooth_sensitivity,
)
from dpsql.privacy.sampling import MIN_SCALE

Database = tuple[int, ...]
Mass = npt.NDArray[np.float64]
BINS, UNITS = 4, 5
STEPS = (1, 2, 3)
SPAN = np.arange(-3000, 3001)


def databases(most: int) -> list[Database]:
    return [d for n in range(most + 1) for d in combinations_with_replacement(range(BINS), n)]


def one_step(database: Database) -> set[Database]:
    less = {database[:i] + database[i + 1 :] for i in range(len(database))}
    return less | {tuple(sorted((*database, value))) for value in range(BINS)}


def within(database: Database, steps: int) -> set[Database]:
    found = {database}
    for _ in range(steps):
        found |= {other for one in found for other in one_step(one)}
    return found


def median(database: Database) -> int:
    """The lower one; of nobody the least place."""
    return database[(len(database) + 1) // 2 - 1] if database else 0


def counts(database: Database) -> npt.NDArray[np.int64]:
    return np.bincount(np.array(database, np.int64), minlength=BINS).astype(np.int64)


def largest_at(found: LocalSensitivity, j: int) -> int:
    return int(found.largest[np.searchsorted(found.steps, j, side="right") - 1])


# --- local sensitivity -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", STEPS)
def test_the_largest_local_sensitivity_is_that_of_all_databases_within_so_many_steps(steps: int) -> None:
    local: dict[Database, int] = {}
    for database in databases(UNITS):
        found = local_sensitivity(counts(database), steps)
        assert found.median == median(database)
        for j in range(4):
            for other in within(database, j):
                if other not in local:
                    local[other] = max(abs(median(other) - median(far)) for far in within(other, steps))
            assert largest_at(found, j) == max(local[other] for other in within(database, j)), (database, j)


@pytest.mark.parametrize("steps", STEPS)
def test_it_grows_by_a_step_at_most(steps: int) -> None:
    for database in databases(UNITS):
        one = local_sensitivity(counts(database), steps)
        for other in one_step(database):
            two = local_sensitivity(counts(other), steps)
            assert all(largest_at(one, j) <= largest_at(two, j + 1) for j in range(2 * UNITS))
            assert all(
                abs(distance_to_instability(one, s) - distance_to_instability(two, s)) <= 1 for s in range(1, BINS - 1)
            )


def test_it_is_right_where_many_units_share_few_bins() -> None:
    """Against a sorted list, at every distance; what all small databases do not have is long runs of one value."""
    rng = np.random.default_rng(9)
    for _ in range(60):
        cells = rng.choice([0, 0, 1, 3, 17], size=rng.integers(2, 9))
        steps, n, most = int(rng.integers(1, 5)), int(cells.sum()), len(cells) - 1
        values = np.repeat(np.arange(len(cells)), cells)

        def at(i: int, values: Mass = values, n: int = n, most: int = most) -> int:
            return 0 if i <= 0 else most if i > n else int(values[i - 1])

        found = local_sensitivity(cells, steps)
        for j in range(n + steps + 2):
            up = at((n + 1 + j + steps) // 2) - at((n + 1 - j) // 2)
            down = at((n + 1 + j) // 2) - at((n + 1 - j - steps) // 2)
            assert largest_at(found, j) == max(up, down)


# --- smooth sensitivity ----------------------------------------------------------------------------------------------


def textbook(units: int, upper: int) -> LocalSensitivity:
    """A_k of the values 1 to `units` in 0 to `upper`, where one of them is changed and their number is known."""

    def at(i: int) -> int:
        return 0 if i < 1 else upper if i > units else i

    middle = (units + 1) // 2
    largest = [max(at(middle + t) - at(middle + t - k - 1) for t in range(k + 2)) for k in range(units)]
    return LocalSensitivity(middle, np.arange(units), np.array(largest))


@pytest.mark.parametrize(("beta", "known"), [(1 / (2 * math.log(2e6)), 11.04916), (1 / 6, 2.607589)])
def test_known_answers_of_the_textbook(beta: float, known: float) -> None:
    found = smooth_sensitivity(textbook(99, 100), F(beta).limit_denominator(10**20), F(1, 10**9))
    assert float(found) == pytest.approx(known, abs=1e-5)


def test_the_rate_is_that_of_the_textbook_but_for_what_the_proof_takes() -> None:
    mechanism = calibrate_smooth_median(F(1), F(1, 10**6), BlockReach(1, 1), 101)
    assert float(mechanism.rate) == pytest.approx(math.log1p(0.0344622), abs=1e-7)
    assert F(99, 100) * F(1, 10**6) < smooth_delta(mechanism) <= F(1, 10**6)


@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(8)])
@pytest.mark.parametrize("steps", STEPS)
def test_the_bound_is_smooth_and_above_what_neighbors_move(epsilon: F, steps: int) -> None:
    mechanism = calibrate_smooth_median(epsilon, F(1, 1000), BlockReach(steps, 1), BINS)
    grows = 1 + float(epsilon) / (2 * math.log(2000))
    bounds = {
        d: smooth_sensitivity(local_sensitivity(counts(d), steps), mechanism.rate, F(1, 10**9))
        for d in databases(UNITS)
    }
    for one, bound in bounds.items():
        for other in within(one, steps) & bounds.keys():
            assert abs(median(one) - median(other)) <= bound
            assert float(bound / bounds[other]) <= grows * (1 + 1e-12)


def drawn(at: int, scale: float) -> Mass:
    """The median with discrete Laplace noise, not moved into the range: that only hides."""
    q = math.exp(-1 / scale)
    mass: Mass = (1 - q) / (1 + q) * np.exp(-np.abs(SPAN - at) / scale)
    return mass


def told_apart(one: Mass, other: Mass, epsilon: float) -> float:
    """The least delta for this epsilon, exactly."""
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum())


def smoothed(mechanism: SmoothMedian, database: Database, locally: bool = False) -> Mass:
    found = local_sensitivity(counts(database), mechanism.reached.steps)
    bound = F(largest_at(found, 0)) if locally else smooth_sensitivity(found, mechanism.rate, F(1, 10**9))
    scale = max(2 * bound / mechanism.epsilon, MIN_SCALE)
    return drawn(found.median, float(scale))


def worst(laws: dict[Database, Mass], steps: int, epsilon: float) -> float:
    pairs = [(one, other) for one in laws for other in within(one, steps) & laws.keys()]
    return max(told_apart(laws[one], laws[other], epsilon) for one, other in pairs)


@pytest.mark.parametrize(("epsilon", "delta"), [(F(1, 10), F(1, 100)), (F(1), F(1, 1000)), (F(3), F(1, 10**5))])
@pytest.mark.parametrize("steps", [1, 2])
def test_no_two_neighbors_are_distinguished_by_smooth_noise(epsilon: F, delta: F, steps: int) -> None:
    mechanism = calibrate_smooth_median(epsilon, delta, BlockReach(steps, 1), BINS)
    laws = {database: smoothed(mechanism, database) for database in databases(UNITS)}
    assert worst(laws, steps, float(epsilon)) <= float(smooth_delta(mechanism)) <= float(delta)


def test_noise_by_the_local_sensitivity_alone_is_found_out() -> None:
    mechanism = calibrate_smooth_median(F(1), F(1, 1000), BlockReach(1, 1), BINS)
    laws = {database: smoothed(mechanism, database, locally=True) for database in databases(UNITS)}
    assert worst(laws, 1, 1.0) > 0.1


# --- propose, test, release ------------------------------------------------------------------------------------------


def law_of(mechanism: ProposeTestRelease, database: Database, limit: int) -> Mass:
    """The law of the answer; its last place is that there is none."""
    found = local_sensitivity(counts(database), mechanism.reached.steps)
    scale, beyond = float(mechanism.test_scale), limit - distance_to_instability(found, mechanism.proposal)
    q = math.exp(-1 / scale)
    passes = q ** (beyond + 1) / (1 + q) if beyond >= 0 else 1 - q**-beyond / (1 + q)
    return np.append(passes * drawn(found.median, float(mechanism.noise_scale)), 1 - passes)


@pytest.mark.parametrize(("epsilon", "delta"), [(F(1, 2), F(1, 100)), (F(1), F(1, 1000)), (F(3), F(1, 10**5))])
@pytest.mark.parametrize("steps", [1, 2])
def test_no_two_neighbors_are_distinguished_by_ptr(epsilon: F, delta: F, steps: int) -> None:
    mechanism = calibrate_propose_test_release(epsilon, delta, 1, BlockReach(steps, 1))
    laws = {database: law_of(mechanism, database, mechanism.limit) for database in databases(UNITS)}
    assert worst(laws, steps, 2 * float(epsilon)) <= float(mechanism.loss.delta) * (1 + 1e-9) <= float(delta)


def test_a_proposal_without_its_test_is_found_out() -> None:
    mechanism = calibrate_propose_test_release(F(1), F(1, 1000), 1, BlockReach(1, 1))
    laws = {database: law_of(mechanism, database, -100) for database in databases(UNITS)}
    assert worst(laws, 1, 2.0) > 0.1


def test_the_limit_is_that_of_the_discrete_tail() -> None:
    """Continuous noise is above ln(1/delta) = 13.8155 with a probability of 5e-7; a limit of 12 would lose 1.65e-6."""
    mechanism = calibrate_propose_test_release(F(1), F(1, 10**6), 5, BlockReach(1, 1))
    q = math.exp(-float(1 / mechanism.test_scale))
    passes = [sum((1 - q) / (1 + q) * q**k for k in range(limit + 1, 400)) for limit in (12, 13)]
    assert mechanism.limit == 13 and float(mechanism.loss.delta) == pytest.approx(passes[1], rel=1e-6)
    assert passes[1] <= 1e-6 < passes[0]
