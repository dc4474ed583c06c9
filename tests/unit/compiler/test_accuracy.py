"""The error that was asked for is kept, and no smaller epsilon of the grid would keep it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.compiler.accuracy import (
    EPSILON_STEPS,
    NoiseTerms,
    calibrated_noise,
    epsilon_at,
    error_before_rounding,
    interval_half_width,
    least_epsilon,
    miss_probability,
    rounding_error,
)
from dpsql.compiler.calibrate.calibrate import NoiseKind as Kind
from dpsql.compiler.compile import Compiled, compile_query
from dpsql.compiler.compiled import CountedValues
from dpsql.compiler.plan.estimators import Linear
from dpsql.compiler.settings import Settings, default_settings
from dpsql.errors import Error, InvalidParameter, Unsupported
from dpsql.privacy.noise import Gaussian, Laplace, Mechanism, standard_error
from dpsql.schema.model import Resolved
from dpsql.types import BIGINT, DOUBLE, decimal_type

COUNT = "SELECT COUNT(*) FROM patients"
STATEMENTS = [
    COUNT,
    "SELECT COUNT(*) FROM visits",
    "SELECT SUM(cost) FROM visits",
    "SELECT kind, COUNT(*), SUM(nights) FROM visits GROUP BY kind",
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
    "SELECT sex, COUNT(*), SUM(CASE WHEN insured THEN 1 ELSE 0 END) FROM patients GROUP BY sex",
    "SELECT COUNT(DISTINCT ward), COUNT(DISTINCT patient_id) FROM visits",
    "SELECT HISTOGRAM(kind) FROM visits",
    "SELECT (SELECT COUNT(*) FROM patients) AS a, (SELECT SUM(paid) FROM visits) AS b",
]


@pytest.fixture()
def usual(clinic: Resolved) -> Settings:
    return default_settings(clinic.schema.privacy).statement


def pmf(mechanism: Mechanism, x: int) -> float:
    if isinstance(mechanism, Gaussian):
        return math.exp(-0.5 * (x / float(mechanism.sigma)) ** 2)
    return math.exp(-abs(x) / float(mechanism.scale))


def truly_missed(noise: NoiseTerms, most: Fraction) -> float:
    """Summed term by term over all draws that matter, without any of the code that is tried."""
    lines = []
    for worth, mechanism in noise:
        reach = int(30 * standard_error(mechanism)) + 30
        weights = {x: pmf(mechanism, x) for x in range(-reach, reach + 1)}
        whole = math.fsum(weights.values())
        lines.append([(worth * x, weight / whole) for x, weight in weights.items() if weight / whole > 1e-12])
    beyond = 0.0
    for draws in itertools.product(*lines):
        if abs(sum(value for value, _ in draws)) > most:
            beyond += math.prod(weight for _, weight in draws)
    return beyond


# --- tails -----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.fractions(Fraction(1, 8), 8, max_denominator=8),
            st.sampled_from(
                [Laplace(Fraction(1, 2)), Laplace(Fraction(4)), Gaussian(Fraction(3, 4)), Gaussian(Fraction(5))]
            ),
        ),
        min_size=1,
        max_size=2,
    ),
    st.floats(0.3, 4.5),
)
def test_the_chance_to_miss_is_never_understated_and_hardly_overstated(
    terms: list[tuple[Fraction, Mechanism]], factor: float
) -> None:
    noise = tuple(terms)
    spread = math.hypot(*(float(worth) * standard_error(mechanism) for worth, mechanism in noise))
    most = Fraction(factor * spread)
    truth, said = truly_missed(noise, most), float(miss_probability(noise, most))
    assert said >= truth - 1e-9
    # Discrete sums jump: within the slack of the lattice the claim is that of a slightly smaller bound.
    assert said <= truly_missed(noise, most - Fraction(spread * 0.005)) + 1e-6


@pytest.mark.parametrize("mechanism", [Laplace(Fraction(1 << 20)), Gaussian(Fraction(1 << 20))])
def test_noise_of_many_steps_is_as_continuous_noise(mechanism: Mechanism) -> None:
    """Two equal draws: Gaussian ones add up to a Gaussian, Laplace ones have the tail (1 + t/2) exp(-t)."""
    scale = Fraction(1 << 20)
    for factor in (1.0, 2.0, 3.0, 5.0):
        said = float(miss_probability(((Fraction(1), mechanism), (Fraction(1), mechanism)), scale * Fraction(factor)))
        truth = math.erfc(factor / 2) if isinstance(mechanism, Gaussian) else (1 + factor / 2) * math.exp(-factor)
        assert truth <= said <= truth * 1.01


@given(st.sampled_from([Fraction(1, 20), Fraction(1, 100), Fraction(1, 3)]), st.integers(0, 5))
def test_half_widths_are_missed_as_seldom_as_requested(miss: Fraction, which: int) -> None:
    single: NoiseTerms = ((Fraction(1, 3), Laplace(Fraction(7))),)
    fine: NoiseTerms = ((Fraction(1, 1 << 16), Gaussian(Fraction(1 << 18))),)
    noise = [single, fine, single + single, fine + fine, single + fine, fine + fine + single][which]
    half = interval_half_width(noise, miss)
    assert miss_probability(noise, half) <= miss < miss_probability(noise, half * Fraction(96, 100))


def test_nothing_noisy_is_never_off() -> None:
    assert miss_probability((), Fraction(0)) == interval_half_width((), Fraction(1, 20)) == 0


@pytest.mark.parametrize(("most", "type_", "noise"), [
    ("5", BIGINT, "5"), ("5.3", BIGINT, "5.3"), ("5.7", BIGINT, "5.5"), ("0.9", BIGINT, "0.5"), ("5.7", DOUBLE, "5.7"),
    ("0.019", decimal_type(9, 2), "0.015"),
])  # fmt: skip
def test_rounding_to_the_type_is_part_of_the_error(most: str, type_, noise: str) -> None:  # type: ignore[no-untyped-def]
    assert error_before_rounding(Fraction(most), type_) == Fraction(noise)
    assert rounding_error(BIGINT) == Fraction(1, 2) and rounding_error(DOUBLE) == 0


# --- the least epsilon -----------------------------------------------------------------------------------------------


def test_the_grid_holds_all_numbers_of_three_digits() -> None:
    grid = [epsilon_at(place) for place in range(EPSILON_STEPS + 1)]
    assert grid == sorted(set(grid)) and grid[0] == Fraction(1, 10**6) and grid[-1] == 10**6
    assert {Fraction("0.123"), Fraction("4.56"), Fraction("78.9"), Fraction(1)} <= set(grid)


def answers(compiled: Compiled) -> list[tuple[NoiseTerms, Fraction]]:
    """The noise of every answer, and what it may be at most, read from the calibrated mechanisms."""
    most = compiled.settings.max_error
    assert most is not None
    found = []
    for table in compiled.tables:
        for answer in table.measures:
            recipe = answer.recipe.recipe if isinstance(answer.recipe, CountedValues) else answer.recipe
            assert isinstance(recipe, Linear)
            found.append(
                (
                    calibrated_noise(recipe, compiled.steps[answer.step].calibrated),
                    error_before_rounding(most, recipe.type),
                )
            )
    return found


def keeps(compiled: Compiled) -> bool:
    return all(miss_probability(noise, most) <= 1 - compiled.settings.confidence for noise, most in answers(compiled))


@pytest.mark.parametrize("kind", [Kind.GAUSSIAN, Kind.LAPLACE])
@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_error_is_kept_and_by_no_smaller_epsilon(sql: str, kind: Kind, clinic: Resolved, usual: Settings) -> None:
    for most, confidence in (("20", "0.95"), ("3000", "0.99"), ("777.7", "0.6")):
        asked = replace(usual, noise=kind, max_error=Fraction(most), confidence=Fraction(confidence))
        if kind is Kind.GAUSSIAN and "cost" in sql and most == "20":
            continue  # no epsilon gives that
        compiled = compile_query(sql, clinic, asked)
        assert keeps(compiled)
        place = next(p for p in range(EPSILON_STEPS) if epsilon_at(p) == compiled.settings.epsilon)
        for smaller in [p for p in (place - 1, place - 2, place - 7, place - 60, place - 900) if p >= 0]:
            plain = replace(asked, max_error=None, epsilon=epsilon_at(smaller))
            other = compile_query(sql, clinic, plain)
            assert not keeps(replace(other, settings=replace(other.settings, max_error=Fraction(most))))


def test_the_known_answers_of_one_count(clinic: Resolved, usual: Settings) -> None:
    """Laplace: 2 q^6 / (1 + q) <= 0.05 first holds, in three digits, at epsilon 0.539."""
    pure = replace(usual, noise=Kind.LAPLACE, max_error=Fraction(5))
    assert compile_query(COUNT, clinic, pure).settings.epsilon == Fraction("0.539")
    q = math.exp(-0.539), math.exp(-0.538)
    assert 2 * q[0] ** 6 / (1 + q[0]) <= 0.05 < 2 * q[1] ** 6 / (1 + q[1])


def test_more_confidence_or_less_error_costs_more(clinic: Resolved, usual: Settings) -> None:
    def price(most: str, confidence: str) -> Fraction:
        asked = replace(usual, max_error=Fraction(most), confidence=Fraction(confidence))
        return compile_query(COUNT, clinic, asked).settings.epsilon

    assert price("5", "0.95") < price("5", "0.99") and price("5", "0.95") < price("2", "0.95")


def test_no_epsilon_may_be_enough_and_a_small_one_may_be() -> None:
    assert least_epsilon(lambda epsilon: [], Fraction(1, 20)) == epsilon_at(0)


def test_out_of_reach(clinic: Resolved, usual: Settings) -> None:
    with pytest.raises(InvalidParameter, match="no epsilon makes the error that small"):
        compile_query("SELECT SUM(cost) FROM visits", clinic, replace(usual, max_error=Fraction(1, 10**6)))


@pytest.mark.parametrize(("what", "said"), [
    ("AVG(cost)", "averages"), ("STDDEV(cost)", "variances"), ("CORR(cost, nights)", "variances"),
    ("MEDIAN(cost)", "quantiles"), ("MAX(nights)", "quantiles"), ("MODE(kind)", "most frequent"),
    ("BOOL_OR(nights > 3)", "BOOL_AND"), ("SUM(cost) / COUNT(*)", "computed from"), ("2 * COUNT(*)", "computed from"),
])  # fmt: skip
def test_errors_that_depend_on_values_are_refused(what: str, said: str, clinic: Resolved, usual: Settings) -> None:
    for asked in (replace(usual, max_error=Fraction(50)), replace(usual, max_relative_error=Fraction(1, 20))):
        with pytest.raises(Unsupported, match=f"is for COUNT and SUM; the error of .*{said}") as caught:
            compile_query(f"SELECT {what} FROM visits", clinic, asked)
        assert caught.value.hint


def test_a_relative_error_is_for_what_the_statement_gives_out(clinic: Resolved, usual: Settings) -> None:
    asked = replace(usual, max_relative_error=Fraction(1, 20))
    with pytest.raises(Unsupported, match="in the outermost SELECT"):
        compile_query("SELECT n FROM (SELECT COUNT(*) AS n FROM visits) s", clinic, asked)
    assert compile_query(COUNT, clinic, asked).pilot


def test_nothing_private_needs_no_epsilon(clinic: Resolved, usual: Settings) -> None:
    for asked in (replace(usual, max_error=Fraction(1)), replace(usual, max_relative_error=Fraction(1, 20))):
        compiled = compile_query("SELECT 1 + 1", clinic, asked)
        assert compiled.settings == asked and not compiled.pilot


def test_what_is_wrong_at_any_epsilon_is_said_as_it_is(clinic: Resolved, usual: Settings) -> None:
    pure = replace(usual, delta=Fraction(0), max_error=Fraction(50))
    with pytest.raises(Error, match="not public, and finding them needs a delta"):
        compile_query("SELECT ward, COUNT(*) FROM visits GROUP BY ward", clinic, pure)


def test_a_pilot_is_another_question_than_the_statement(clinic: Resolved, usual: Settings) -> None:
    pilot = compile_query(COUNT, clinic, replace(usual, max_relative_error=Fraction(1, 20)))
    assert pilot.settings.epsilon == usual.epsilon
    assert pilot.steps[0].plan_hash != compile_query(COUNT, clinic, usual).steps[0].plan_hash
