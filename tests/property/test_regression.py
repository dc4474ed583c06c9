"""No two neighbors move a model by more than it was charged for: minimisers, densities and moments, exactly."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction as F
from itertools import combinations_with_replacement
from random import Random

import numpy as np
import pytest

from dpsql.privacy.noise import Sensitivity
from dpsql.privacy.regression.features import FeatureDesign, NumericAxis
from dpsql.privacy.regression.logistic_solver import TOLERANCE, minimize_loss
from dpsql.privacy.regression.noisy_moments import calibrate_moments_by_epsilon, moments_sensitivity, sum_moments
from dpsql.privacy.regression.objective_perturbation import (
    CURVATURE,
    SLOPE_STEPS,
    ObjectivePerturbation,
    approximation_sensitivity,
    calibrate_objective_by_epsilon,
    count_changed_rows,
    min_ridge,
    split_row_loss,
)
from dpsql.privacy.regression.output_perturbation import (
    build_problem,
    calibrate_output_by_epsilon,
    minimizer_sensitivity,
)
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRows
from tests.support.regression_data import AXES, DESIGN, LINEAR_AXES, Silent, Unit, Wrong, crowd, tally, unit

MASSES = [
    UnitMass(1, 1, True, 1, False),
    UnitMass(1, 1, True, 2, True),
    UnitMass(3 << 16, 1 << 16, False, 1, False),
    UnitMass(3 << 16, 1 << 16, False, 2, False),
    UnitMass(3 << 16, 1 << 16, False, 1, True),
]
NAMES = ["row", "row k=2 change_one", "norm 3", "norm 3 k=2", "norm 3 change_one"]
over_masses = pytest.mark.parametrize("mass", MASSES, ids=NAMES)


def neighbors(rng: Random, mass: UnitMass, axes=AXES) -> tuple[WeightedRows, WeightedRows]:
    others = crowd(rng, mass.whole, axes)
    come = [unit(rng, mass, axes) for _ in range(mass.group_size)]
    leave = [unit(rng, mass, axes) for _ in range(mass.group_size)] if mass.change_one else []
    return tally(others, *come), tally(others, *leave)


def within(moved: np.ndarray, claim: Sensitivity) -> bool:
    steps = [abs(int(step)) for step in moved]
    squares = sum(step * step for step in steps)
    return sum(steps) <= claim.l1 and squares <= claim.l2_squared and max(steps) <= claim.linf


# --- output ----------------------------------------------------------------------------------------------------------


@over_masses
def test_neighbors_move_a_minimiser_by_at_most_the_claim(mass: UnitMass) -> None:
    rng, widest = Random(1), F(0)
    for trial in range(60):
        ridge = rng.choice((F(1, 50), F(1), F(20)))
        study = calibrate_output_by_epsilon(DESIGN, AXES, mass, ridge, 1, F(1))
        claim = minimizer_sensitivity(DESIGN, mass, study.steps)
        one, other = neighbors(rng, mass)
        moved = study.perform(one, Silent())[0][1:] - study.perform(other, Silent())[0][1:]
        assert within(moved, claim), trial
        widest = max(widest, F(sum(int(step) ** 2 for step in moved), claim.l2_squared))
    # A logistic loss pulls with half its bound at 0, and where it pulls harder the crowd that made it so resists.
    assert widest > F(3, 10) ** 2


def test_a_pull_against_a_crowd_reaches_the_claim_of_change_one() -> None:
    """One unit against the crowd becomes its opposite, which is against it too: nearly 2/ridge.

    The crowd is in the middle of eight scales, so that both ends of them are as wrong as it is sure, and what the unit
    moves is at a right angle to the crowd, which does not resist. The intercept, a ninth of a row, does not move.
    """
    mass, design = UnitMass(1, 1, True, 1, True), FeatureDesign((NumericAxis(3),) * 8)
    axes = Axes((0,) * 9, (2, *(3,) * 8))
    study = calibrate_output_by_epsilon(design, axes, mass, F(1), 1, F(1))
    claim = minimizer_sensitivity(design, mass, study.steps)
    middle: Unit = {(0, *(1,) * 8): 10**6}
    one, other = ({(1, *(end,) * 8): 1} for end in (0, 2))
    moved = study.perform(tally(middle, one), Silent())[0][1:] - study.perform(tally(middle, other), Silent())[0][1:]
    assert within(moved, claim) and sum(int(step) ** 2 for step in moved) > F(9, 10) ** 2 * claim.l2_squared


def test_the_solver_keeps_its_tolerance_where_it_is_hard() -> None:
    """Separable crowds of very different sizes, weak ridges, steep slopes: gradients are worked out in 60 digits."""
    rng = Random(3)
    for _ in range(40):
        mass = UnitMass(1, 1, True, 1, False)
        rows: Unit = {}
        for code in [(0, 0, 0), (1, 4, 0), (1, 2, 1), (0, 2, 2), (0, 4, 2)]:
            rows[code] = rng.choice((1, 10**3, 10**6, 10**8))
        ridge = rng.choice((F(1, 64), F(1), F(1000)))
        slope = np.array([rng.choice((0.0, -5.0, 40.0, 1e4)) for _ in range(DESIGN.width)])
        posed = build_problem(DESIGN, mass, tally(rows), ridge, slope)
        w = np.array([float(one) for one in minimize_loss(posed)])
        assert exact_gradient(tally(rows), w, ridge, slope) <= _decimal(TOLERANCE)


def exact_gradient(rows: WeightedRows, w: np.ndarray, ridge: F, slope: np.ndarray) -> Decimal:
    """The length of the gradient, in 60 digits."""
    numerators = DESIGN.feature_numerators(rows.codes[:, 1:]).tolist()
    with localcontext(Context(prec=60)):
        at = [Decimal(float(one)) for one in w]
        total = [_decimal(ridge) * a + Decimal(float(b)) for a, b in zip(at, slope, strict=True)]
        for row, label, weight in zip(numerators, rows.codes[:, 0], rows.weights, strict=True):
            assert sum(F(one, 1 << 15) ** 2 for one in row) <= DESIGN.scale**2
            x = [Decimal(one) / (1 << 15) / _decimal(DESIGN.scale) for one in row]
            sign = 2 * int(label) - 1
            pull = 1 / (1 + (sign * sum(a * b for a, b in zip(x, at, strict=True))).exp())
            total = [t - sign * int(weight) * pull * one for t, one in zip(total, x, strict=True)]
        return sum(t * t for t in total).sqrt()


def _decimal(value: F) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


# --- objective -------------------------------------------------------------------------------------------------------


def log_density(study: ObjectivePerturbation, rows: WeightedRows, w: np.ndarray, ridge: F) -> float:
    """Of the exact minimiser at w, but for a constant."""
    posed = build_problem(DESIGN, study.mass, rows, ridge, np.zeros(DESIGN.width))
    slope = -posed.gradient_at(w)
    return float(-np.abs(slope).sum() / float(study.scale) + np.linalg.slogdet(posed.hessian_at(w))[1])


@pytest.mark.parametrize("rows", [1, 50, None])
@pytest.mark.parametrize("mass", [m for m in MASSES if m.one_row], ids=["k=1", "k=2 change_one"])
def test_no_neighbors_have_densities_further_apart_than_is_charged(mass: UnitMass, rows: int | None) -> None:
    rng, draws = Random(5), np.random.default_rng(5)
    for epsilon in (F(1, 10), F(1), F(4)):
        study = calibrate_objective_by_epsilon(DESIGN, AXES, mass, F(1, 50), rows, epsilon)
        claimed = study.ideal_loss.epsilon
        assert claimed is not None and claimed < epsilon
        for _ in range(40):
            one, other = neighbors(rng, mass)
            ridge = study.ridge.ridge_at(int(one.weights.sum()), mass)
            w = draws.normal(size=DESIGN.width) * 10.0 ** draws.uniform(-2, 3)
            apart = log_density(study, one, w, ridge) - log_density(study, other, w, ridge)
            assert abs(apart) <= float(claimed) + 1e-9


def ratio_in_one_dimension(n: int, lam: float, eps: float, form: int) -> float:
    """The largest log-ratio of densities of the minimiser, over tables of n rows that differ in one.

    (1/n) sum of losses + lam w^2/2 + b w/n, with b of density exp(-eps' |b|/2): as the textbooks have it.
    """
    if form == 2008:
        ridge, rate = F(n) * F(str(lam)), eps / 2
    else:
        jacobian, ridge = split_row_loss(F(str(eps)) / 2, F(n) * F(str(lam)))
        rate = eps / 2 - float(jacobian)
    w = np.concatenate([np.linspace(-400, 400, 40_001), np.linspace(-5, 5, 5_001)])
    values = [-1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1]
    pulls = {x: x / (1 + np.exp(x * w)) for x in values}
    curves = {x: pulls[x] * (x - pulls[x]) for x in values}
    worst = 0.0
    for rest in combinations_with_replacement(values, n - 1):
        b = sum((pulls[x] for x in rest), -float(ridge) * w)
        a = sum((curves[x] for x in rest), np.full_like(w, float(ridge)))
        logs = np.array([-rate * np.abs(b + pulls[x]) + np.log(a + curves[x]) for x in values])
        worst = max(worst, float((logs.max(axis=0) - logs.min(axis=0)).max()))
    return worst


@pytest.mark.parametrize(
    ("n", "lam", "eps", "old", "new"),
    [(2, 0.01, 1, 2.37520, 0.36053), (3, 0.01, 1, 2.01025, 0.36656), (2, 0.1, 0.5, 0.76255, 0.18790)],
)
def test_the_form_of_2008_is_caught_and_that_of_2011_is_not(
    n: int, lam: float, eps: float, old: float, new: float
) -> None:
    caught, kept = (ratio_in_one_dimension(n, lam, eps, form) for form in (2008, 2011))
    assert caught == pytest.approx(old, abs=1e-4) and caught > eps
    assert kept == pytest.approx(new, abs=1e-4) and kept < eps


def test_the_ideal_minimiser_is_within_gamma_of_what_is_rounded() -> None:
    """The slope that is drawn and the real one of the same uniform number, at seven places of the solver's."""
    rng, mass = Random(9), MASSES[0]
    for _ in range(30):
        study = calibrate_objective_by_epsilon(DESIGN, AXES, mass, F(1, 50), 500, F(1))
        rows = tally(crowd(rng, 1), unit(rng, mass))
        t, q = float(SLOPE_STEPS), math.exp(-1 / SLOPE_STEPS)
        shift = t * math.log(2 / (1 + q))
        sizes = [-t * math.log(rng.random()) for _ in range(DESIGN.width)]
        signs = [rng.choice((-1, 1)) for _ in range(DESIGN.width)]
        drawn = [sign * math.floor(size + shift) for sign, size in zip(signs, sizes, strict=True)]
        ideal = np.array([sign * size / t * float(study.scale) for sign, size in zip(signs, sizes, strict=True)])
        ridge = study.ridge.ridge_at(0, mass)
        aim = F(1, 1 << 30) if rows.weights.sum() < 1e5 else TOLERANCE
        best = np.array([float(one) for one in minimize_loss(build_problem(DESIGN, mass, rows, ridge, ideal), aim)])
        got = study.perform(rows, Wrong(drawn))[0][1:]
        far = float(np.linalg.norm(best * float(ridge) * (1 << 24) - got))
        assert far <= math.sqrt(approximation_sensitivity(DESIGN, study.scale).l2_squared)


def test_a_ridge_that_leaves_nothing_is_raised_until_the_determinant_takes_half() -> None:
    jacobian, ridge = split_row_loss(F(1, 10), F(1, 2))
    assert jacobian == F(1, 20) and ridge == min_ridge(F(1, 20))
    assert math.log(1 + float(CURVATURE / ridge)) <= float(jacobian) < math.log(1 + float(CURVATURE / ridge)) * 1.001
    assert count_changed_rows(UnitMass(1, 1, True, 3, True)) == 6


# --- moments ---------------------------------------------------------------------------------------------------------


@over_masses
def test_neighbors_move_moments_by_at_most_the_claim(mass: UnitMass) -> None:
    rng, widest = Random(2), F(0)
    for trial in range(200):
        study = calibrate_moments_by_epsilon(DESIGN, LINEAR_AXES, mass, F(0), rng.choice((F(1, 100), F(1))))
        claim = moments_sensitivity(DESIGN, mass, study.shift)
        one, other = neighbors(rng, mass, LINEAR_AXES)
        moved = np.array(sum_moments(study, one), object) - np.array(sum_moments(study, other), object)
        assert within(moved, claim), trial
        widest = max(widest, F(sum(int(step) ** 2 for step in moved), claim.l2_squared))
    assert widest > F(1, 8) if mass.change_one else widest == 1


def test_a_sum_that_64_bits_do_not_hold_is_exact() -> None:
    study = calibrate_moments_by_epsilon(DESIGN, LINEAR_AXES, MASSES[0], F(0), F(1))
    small, large = tally({(8, 4, 0): 3}), tally({(8, 4, 0): 3 << 40})
    assert [one << 40 for one in sum_moments(study, small)] == [
        one if abs(one) < (1 << 62) - 1 else small_one << 40
        for one, small_one in zip(sum_moments(study, large), sum_moments(study, small), strict=True)
    ]
    assert max(sum_moments(study, large)) == (1 << 62) - 1
