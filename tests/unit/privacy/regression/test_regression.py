"""Models as mechanisms: known answers, what is charged, what is read back; fits without noise are the usual ones."""

import json
from dataclasses import replace
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from dpsql.base.cancellation import cancel_scope
from dpsql.ledger.loss_checker.checker import LossFigures
from dpsql.ledger.loss_checker.studies import (
    noisy_moments_loss,
    objective_perturbation_loss,
    output_perturbation_loss,
    read_mass,
)
from dpsql.privacy import weighted_rows
from dpsql.privacy.noise import Gaussian, Laplace
from dpsql.privacy.regression import output_perturbation
from dpsql.privacy.regression.features import CategoricalAxis, FeatureDesign, NumericAxis, sqrt_rounded_up
from dpsql.privacy.regression.logistic_solver import (
    TOLERANCE,
    ExactProblem,
    LogisticProblem,
    is_certified,
    minimize_exactly,
)
from dpsql.privacy.regression.noisy_moments import (
    NoisyMoments,
    calibrate_moments_by_epsilon,
    calibrate_moments_by_rho,
    moments_from_json,
)
from dpsql.privacy.regression.objective_perturbation import (
    DEFAULT_STRENGTH,
    ObjectivePerturbation,
    calibrate_objective_by_epsilon,
    calibrate_objective_by_rho,
    min_ridge,
    objective_from_json,
    split_row_loss,
)
from dpsql.privacy.regression.output_perturbation import (
    OutputPerturbation,
    build_problem,
    calibrate_output_by_epsilon,
    calibrate_output_by_rho,
    minimizer_sensitivity,
    output_from_json,
)
from dpsql.privacy.regression.ridge import RidgePenalty
from dpsql.privacy.sampling import ExactSampler
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRows
from tests.support.loss_checker import CLOSE, agree
from tests.support.regression_data import AXES, DESIGN, LINEAR_AXES, Silent, tally

ROW = UnitMass(1, 1, True, 1, False)
CHANGED = UnitMass(1, 1, True, 1, True)
WEIGHED = UnitMass(10 << 16, 1 << 16, False, 2, True)


def studies(mass: UnitMass) -> list[Any]:
    found: list[Any] = [
        calibrate_output_by_epsilon(DESIGN, AXES, mass, F(1, 100), None, F(1)),
        calibrate_output_by_epsilon(DESIGN, AXES, mass, F(1, 100), 1000, F(1)),
        calibrate_output_by_rho(DESIGN, AXES, mass, F(1, 100), None, F(1, 50)),
        calibrate_moments_by_epsilon(DESIGN, LINEAR_AXES, mass, F(0), F(1)),
        calibrate_moments_by_rho(DESIGN, LINEAR_AXES, mass, F(1, 7), F(1, 50)),
    ]
    if mass.one_row:
        found.append(calibrate_objective_by_epsilon(DESIGN, AXES, mass, F(1, 100), None, F(1)))
        found.append(calibrate_objective_by_epsilon(DESIGN, AXES, mass, F(1, 100), 1000, F(1)))
        found.append(calibrate_objective_by_epsilon(DESIGN, AXES, mass, F(1, 100), 10, F(1, 10)))
        found.append(calibrate_objective_by_rho(DESIGN, AXES, mass, F(1, 100), 1000, F(1, 50)))
        found.append(calibrate_objective_by_epsilon(DESIGN, AXES, mass, None, None, F(1)))
        found.append(calibrate_objective_by_epsilon(DESIGN, AXES, mass, None, 10, F(1)))
        found.append(calibrate_objective_by_rho(DESIGN, AXES, mass, None, 1000, F(1, 50)))
    return found


ALL = [study for mass in (ROW, CHANGED, WEIGHED) for study in studies(mass)]
READERS = {"output": output_from_json, "objective": objective_from_json, "moments": moments_from_json}
CHECKS = {"output": output_perturbation_loss, "objective": objective_perturbation_loss, "moments": noisy_moments_loss}


# --- known answers ---------------------------------------------------------------------------------------------------


def test_output_perturbation_has_the_textbooks_scale() -> None:
    """n = 1000, lambda = .01, epsilon = 1, rows changed: 2/(n lambda epsilon) = .2."""
    study = calibrate_output_by_epsilon(DESIGN, AXES, CHANGED, F(1, 100), 1000, F(1))
    assert DESIGN.width == 5
    ridge = study.ridge.ridge_at(0, CHANGED)
    far = (minimizer_sensitivity(DESIGN, CHANGED, study.steps).linf - 1) / (study.steps * ridge)
    assert float(far) == pytest.approx(0.2 + 2 * float(TOLERANCE) / 10, abs=1e-6)
    # The textbook's noise has a mean length of 5 * .2 = 1. Laplace in each component is larger by sqrt 2, and a little
    # for the solver.
    assert isinstance(study.noise, Laplace)
    expected = float(study.noise.scale / (study.steps * ridge)) * 2**0.5 * 5**0.5
    assert expected == pytest.approx(2**0.5, rel=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "left", "raised"), [(F(1), 0.950615, 0.0), (F(1, 100), 0.005, 0.0898751)], ids=["1", "0.01"]
)
def test_objective_perturbation_has_the_textbooks_correction(epsilon: F, left: float, raised: float) -> None:
    """n = 1000, Lambda = .01, rows changed: epsilon' and Delta of Chaudhuri, Monteleoni and Sarwate 2011."""
    jacobian, ridge = split_row_loss(epsilon / 2, F(10))
    assert float(epsilon - 2 * jacobian) == pytest.approx(left, abs=1e-6)
    assert float(ridge) / 1000 - 0.01 == pytest.approx(raised, abs=1e-7)


@pytest.mark.parametrize("rows", [None, 1, 1_000, 1 << 30])
@pytest.mark.parametrize("epsilon", [F(1, 100), F(1), F(50)], ids=str)
def test_without_lambda_the_determinant_has_a_tenth_and_the_ridge_is_held_to_it(rows: int | None, epsilon: F) -> None:
    study = calibrate_objective_by_epsilon(DESIGN, AXES, ROW, None, rows, epsilon)
    slope = study.ideal_loss.epsilon - study.jacobian  # type: ignore[operator]
    assert study.jacobian * 9 == pytest.approx(float(slope), rel=1e-4)
    assert study.ridge.least >= min_ridge(study.jacobian) and study.ridge.strength == DEFAULT_STRENGTH
    assert study.loss.epsilon is not None and study.loss.epsilon <= epsilon


def test_without_lambda_coefficients_err_less_than_with_more_of_it() -> None:
    """Of 8,000 rows whose label depends on the first feature, at epsilon 1."""
    rng, sampler = np.random.default_rng(4), ExactSampler()
    codes = np.stack([rng.integers(0, size, 8_000) for size in (5, 3)], axis=1)
    z = DESIGN.feature_numerators(codes) / (1 << 15)
    true = np.zeros(DESIGN.width)
    true[1] = 3.0
    label = (rng.random(8_000) < 1 / (1 + np.exp(-(z @ true)))).astype(np.int64)
    rows = AXES.to_weighted_rows((label, *codes.T, np.ones(8_000, np.int64)))

    def error(strength: F | None) -> float:
        study = calibrate_objective_by_epsilon(DESIGN, AXES, ROW, strength, None, F(1))
        fits = [study.released_model(study.perform(rows, sampler)[0]).coefficients for _ in range(8)]
        return float(np.mean([np.mean((z @ (fit - true)) ** 2) for fit in fits]))

    assert error(None) < error(F(1, 100)) / 4


# --- what is charged -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("study", ALL, ids=lambda study: study.kind)
def test_the_checker_finds_what_is_charged(study: Any) -> None:
    lost = CHECKS[study.kind](study.to_audit_record(), read_mass(study.mass.to_json()))
    assert (study.loss.epsilon is None) == (lost[0] is None) and study.loss.delta == lost[2] == 0
    # Whole steps of the noise that covers the solver are coarse; a count takes a twentieth, and would be missed.
    agree(study.loss, LossFigures(*lost), F(999, 1000) if study.kind == "objective" else CLOSE)


def test_the_checker_charges_for_what_the_solver_leaves() -> None:
    """With half a row on each side, a minimiser moves twice as far; with twice the tolerance, the noise covers less."""
    output = calibrate_output_by_epsilon(DESIGN, AXES, ROW, F(1, 100), 1000, F(1))
    left = output_perturbation_loss({**output.to_audit_record(), "tolerance": "1/2"}, read_mass(ROW.to_json()))[0]
    assert left is not None and float(left) == pytest.approx(2, rel=1e-2)
    objective = calibrate_objective_by_epsilon(DESIGN, AXES, ROW, F(1, 100), 1000, F(1))
    record, mass = objective.to_audit_record(), read_mass(ROW.to_json())
    twice = {**record, "tolerance": str(2 * TOLERANCE)}
    little, more = (objective_perturbation_loss(one, mass)[0] for one in (record, twice))
    assert little is not None and more is not None and float(more - little) == pytest.approx(0.05, rel=1e-2)


def test_a_gradient_of_nothing_is_no_certificate_where_floats_are_too_coarse() -> None:
    w = np.zeros(1)
    for rows, sure in ((2.0**20, True), (2.0**52, False)):
        ones = np.ones((2, 1), np.int64)
        exact = ExactProblem(lambda ones=ones: ones, F(1), np.array([0, 1]), np.full(2, int(rows)), 1, F(1), (F(0),))
        signs, weights = np.array([-1.0, 1.0]), np.full(2, rows)
        posed = LogisticProblem(lambda part: np.ones((2, 1))[part], signs, weights, 1.0, np.zeros(1), exact)
        assert not posed.gradient_at(w).any() and is_certified(posed, w, posed.gradient_at(w), TOLERANCE) == sure


@pytest.mark.parametrize("study", ALL, ids=lambda study: study.kind)
def test_a_study_is_read_as_it_was_written(study: Any) -> None:
    assert READERS[study.kind](json.loads(json.dumps(study.to_json()))) == study


def test_the_requested_epsilon_is_charged() -> None:
    for mass in (ROW, CHANGED, WEIGHED):
        for study in studies(mass):
            if isinstance(study, OutputPerturbation | NoisyMoments) and study.loss.epsilon is None:
                assert F(49, 2500) < study.loss.rho <= F(1, 50)
            elif isinstance(study, OutputPerturbation | NoisyMoments):
                assert F(99, 100) < study.loss.epsilon <= 1
    pure = calibrate_objective_by_rho(DESIGN, AXES, ROW, F(1, 100), 1000, F(1, 50)).loss
    assert pure.epsilon is not None and F(17, 1000) < pure.rho <= F(1, 50)
    small = calibrate_objective_by_epsilon(DESIGN, AXES, ROW, F(1, 100), 1000, F(1)).loss
    assert small.epsilon is not None and F(99, 100) < small.epsilon <= 1


def test_records_that_say_less_than_they_lose_are_not_read() -> None:
    study = calibrate_objective_by_epsilon(DESIGN, AXES, ROW, F(1, 100), 1000, F(1))
    mass = read_mass(ROW.to_json())
    for change in ({"jacobian": "1/1000"}, {"least_ridge": "1/2"}, {"more": "1"}, {"scale": "0"}):
        with pytest.raises(ValueError):
            objective_perturbation_loss({**study.to_audit_record(), **change}, mass)
    with pytest.raises(ValueError):
        objective_perturbation_loss(study.to_audit_record(), read_mass(WEIGHED.to_json()))
    with pytest.raises(ValueError):
        output_perturbation_loss({**ALL[0].to_audit_record(), "noise": {"kind": "uniform", "scale": "1"}}, mass)
    with pytest.raises(ValueError):
        noisy_moments_loss(
            {"parts": "3", "squares": "4", "unit": "1", "noise": {"kind": "laplace", "scale": "1"}}, mass
        )


def test_objective_perturbation_of_units_with_many_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="one row"):
        calibrate_objective_by_epsilon(DESIGN, AXES, WEIGHED, F(1, 100), 1000, F(1))


def test_a_determinant_that_was_not_charged_is_refused() -> None:
    study = calibrate_objective_by_epsilon(DESIGN, AXES, ROW, F(1, 100), 1000, F(1))
    with pytest.raises(ValueError, match="determinant"):
        replace(study, ridge=replace(study.ridge, least=F(1)))


def test_rows_are_public_or_counted() -> None:
    with pytest.raises(ValueError):
        RidgePenalty(F(1), None, None)
    with pytest.raises(ValueError):
        RidgePenalty(F(1), 10, Laplace(F(1)))
    ridge = RidgePenalty(F(1, 100), None, Gaussian(F(1)))
    assert ridge.ridge_at(-50, ROW) == F(1, 64) and ridge.ridge_at(10**6, ROW) == 10**4
    assert ridge.ridge_at(1000 << 16, WEIGHED) == 10


# --- fits ------------------------------------------------------------------------------------------------------------


def test_features_are_in_the_unit_ball() -> None:
    codes = np.array([[a, b] for a in range(5) for b in range(3)])
    assert DESIGN.feature_numerators(codes)[:, 1].tolist()[::3] == [-(1 << 15), -(1 << 14), 0, 1 << 14, 1 << 15]
    assert np.linalg.norm(DESIGN.feature_vectors(codes), axis=1).max() <= 1 + 1e-12
    assert sqrt_rounded_up(4) == 2 and sqrt_rounded_up(3) ** 2 > 3
    assert FeatureDesign((NumericAxis(1),)).feature_numerators(np.array([[0]])).tolist() == [[1 << 15, 0]]
    with pytest.raises(ValueError):
        FeatureDesign(())
    with pytest.raises(ValueError):
        calibrate_output_by_epsilon(FeatureDesign((CategoricalAxis(2),)), AXES, ROW, F(1), 1, F(1))


def rows_of(n: int) -> np.ndarray:
    rng = np.random.default_rng(4)
    codes = np.stack([rng.integers(0, 5, n), rng.integers(0, 3, n)], axis=1)
    z = DESIGN.feature_numerators(codes) / (1 << 15)
    chance = 1 / (1 + np.exp(-(z @ np.array([0.2, 1.5, 1.0, 0.0, -1.0]))))
    return np.concatenate([(rng.random(n) < chance)[:, None].astype(np.int64), codes], axis=1)


@pytest.mark.parametrize("make", [calibrate_output_by_epsilon, calibrate_objective_by_epsilon])
def test_without_noise_a_logistic_model_is_the_usual_one(make: Any) -> None:
    codes = rows_of(500)
    study: OutputPerturbation | ObjectivePerturbation = make(DESIGN, AXES, ROW, F(1, 100), 500, F(1))
    counts: dict[tuple[int, ...], int] = {}
    for row in codes.tolist():
        counts[tuple(row)] = counts.get(tuple(row), 0) + 1
    (cells,) = study.perform(tally(counts), Silent())
    x, y = DESIGN.feature_vectors(codes[:, 1:]), 2 * codes[:, 0] - 1
    ridge = float(study.ridge.ridge_at(0, ROW))
    best = minimize(lambda w: np.logaddexp(0, -y * (x @ w)).sum() + ridge / 2 * w @ w, np.zeros(5), tol=1e-12)
    assert study.released_model(cells).coefficients * float(DESIGN.scale) == pytest.approx(best.x, abs=1e-3)
    assert (study.released_model(cells).errors > 0).all()


def test_without_noise_a_linear_model_is_least_squares() -> None:
    rng = np.random.default_rng(4)
    codes = rows_of(2000)
    codes[:, 0] = np.clip(codes[:, 1] + codes[:, 2] + rng.integers(0, 2, 2000), 0, 8)
    study = calibrate_moments_by_epsilon(DESIGN, LINEAR_AXES, ROW, F(0), F(1000))
    (cells,) = study.perform(
        LINEAR_AXES.to_weighted_rows((*codes.T.astype(np.int64), np.ones(2000, np.int64))), Silent()
    )
    fit = study.released_model(cells)
    z, v = DESIGN.feature_numerators(codes[:, 1:]) / (1 << 15), codes[:, 0] / 4 - 1
    ours = z @ fit.coefficients
    best = z @ np.linalg.lstsq(z, v, rcond=None)[0]
    assert ours == pytest.approx(best, abs=0.01)


def test_errors_of_a_linear_model_are_those_of_its_noise() -> None:
    """Many noisy releases of the same rows scatter as their standard errors say."""
    rng = np.random.default_rng(6)
    design, axes = FeatureDesign((NumericAxis(11), NumericAxis(7))), Axes((0, 0, 0), (21, 11, 7))
    codes = np.stack([rng.integers(0, 11, 4000), rng.integers(0, 7, 4000)], axis=1)
    label = np.clip(codes[:, 0] + codes[:, 1] + rng.integers(0, 3, 4000), 0, 20)
    rows = axes.to_weighted_rows((label.astype(np.int64), *codes.T.astype(np.int64), np.ones(4000, np.int64)))
    study, sampler = calibrate_moments_by_epsilon(design, axes, ROW, F(0), F(1, 4)), ExactSampler()
    fits = [study.released_model(study.perform(rows, sampler)[0]) for _ in range(400)]
    spread = np.std([fit.coefficients for fit in fits], axis=0)
    told = np.sqrt(np.mean([fit.errors**2 for fit in fits], axis=0))
    noiseless = study.released_model(study.perform(rows, Silent())[0]).errors
    assert (spread < 1.2 * told).all() and (told < 2.0 * spread).all() and (noiseless > 0).all()


def test_models_are_close_where_the_budget_is_large() -> None:
    codes = rows_of(20_000)
    counts = AXES.to_weighted_rows((*codes.T, np.ones(len(codes), np.int64)))
    study = calibrate_objective_by_epsilon(DESIGN, AXES, ROW, F(1, 1000), 20_000, F(10))
    quiet, noisy = (
        study.released_model(study.perform(counts, Silent())[0]),
        study.released_model(study.perform(counts, ExactSampler())[0]),
    )
    assert (
        np.abs(quiet.coefficients - noisy.coefficients).max()
        < 8 * study.released_model(study.perform(counts, Silent())[0]).errors.max()
    )


# --- many tuples -----------------------------------------------------------------------------------------------------


@pytest.fixture
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted_rows, "CHUNK_ROWS", 4)
    monkeypatch.setattr(output_perturbation, "MAX_CACHED_COMPONENTS", 0)


@pytest.mark.parametrize("study", ALL, ids=lambda study: study.kind)
def test_in_chunks_or_at_once_a_model_is_the_same(study: Any, request: pytest.FixtureRequest) -> None:
    rng = np.random.default_rng(8)
    sizes = study.axes.sizes
    rows = {tuple(int(rng.integers(0, size)) for size in sizes): int(rng.integers(1, 90)) for _ in range(29)}
    (once,) = study.perform(tally(rows, axes=study.axes), Silent())
    request.getfixturevalue("few_at_once")
    (parts,) = study.perform(tally(rows, axes=study.axes), Silent())
    if isinstance(study, NoisyMoments):
        assert parts.tolist() == once.tolist()
    else:
        assert study.released_model(parts).coefficients == pytest.approx(
            study.released_model(once).coefficients, abs=1e-6
        )


@pytest.mark.parametrize("study", ALL, ids=lambda study: study.kind)
def test_a_model_whose_time_is_over_ends(study: Any, few_at_once: None) -> None:
    rows = {tuple(place % size for size in study.axes.sizes): 1 for place in range(30)}
    with pytest.raises(TimeoutError), cancel_scope(late_after(2)):
        study.perform(tally(rows, axes=study.axes), Silent())


def test_the_exact_solver_whose_time_is_over_ends() -> None:
    """It is slow, and how often it is needed depends on the rows."""
    many = 150
    codes = np.stack([np.ones(many, np.int64), np.arange(many) % 5, np.arange(many) % 3], axis=1)
    posed = build_problem(DESIGN, ROW, WeightedRows(codes, np.ones(many, np.int64)), F(1), np.zeros(DESIGN.width))
    with pytest.raises(TimeoutError), cancel_scope(late_after(2)):
        minimize_exactly(posed.exact, TOLERANCE)


def late_after(looks: int) -> Any:
    """A check that lets so many looks pass."""
    left = [looks]

    def check() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise TimeoutError

    return check
