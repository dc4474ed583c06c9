"""Models with noise beside models without: accuracy on other rows, and how far coefficients are off.

    python -m benchmarks.accuracy_models              all of it
    python -m benchmarks.accuracy_models --quick      5 runs for each figure, not 40

Rows are made up: 10,000 units of one row for training and as many to try it on, an age, a cost and a sex of two, and a
label that depends on all three; from 1,000 to 100,000 of them for what `lambda` does to coefficients (None: the
default). `accuracy` is the share of the other rows whose label is told rightly at 0.5, in percent; `without` is the
same model with the same ridge and no noise, `free` one with hardly any ridge. For linear models, `error` is the root of
the mean squared difference to the predictions of least squares, as a part of the label's standard deviation. Losses are
pure (delta 0), and again under zCDP at delta 1e-6.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.privacy.loss import epsilon_to_rho
from dpsql.privacy.noise import standard_error
from dpsql.privacy.regression.features import CategoricalAxis, FeatureDesign, NumericAxis
from dpsql.privacy.regression.logistic_solver import minimize_loss
from dpsql.privacy.regression.noisy_moments import (
    calibrate_moments_by_epsilon,
    calibrate_moments_by_rho,
    solve_moments,
    sum_moments,
)
from dpsql.privacy.regression.objective_perturbation import calibrate_objective_by_epsilon, calibrate_objective_by_rho
from dpsql.privacy.regression.output_perturbation import (
    build_problem,
    calibrate_output_by_epsilon,
    calibrate_output_by_rho,
)
from dpsql.privacy.sampling import ExactSampler
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRows

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[Any]

ROWS = 10_000
EPSILONS = ("0.1", "0.3", "1", "3", "10")
DELTA = Fraction(1, 10**6)
DESIGN = FeatureDesign((NumericAxis(71), NumericAxis(1001), CategoricalAxis(2)))
AXES = Axes((0, 0, 0, 0), (2, 71, 1001, 2))
LINEAR = Axes((0, 0, 0, 0), (1001, 71, 1001, 2))
MASS = UnitMass(1, 1, True, 1, False)
RUNS, QUICK_RUNS = 40, 5
SIZES = ((1_000, 1), (10_000, 2), (100_000, 10))
"""Numbers of rows, and by how much fewer runs there are, which take longer."""
COEFFICIENTS = np.array([0.5, 2.0, 1.5, -0.4, 0.4])


def features(rng: np.random.Generator, rows: int = ROWS) -> Codes:
    cost = np.clip(rng.gamma(2.0, 150.0, rows), 0, 1000)
    return np.stack([rng.integers(0, 71, rows), cost.astype(np.int64), rng.integers(0, 2, rows)], axis=1)


def scores(codes: Codes) -> Floats:
    z = DESIGN.feature_numerators(codes) / (1 << 15)
    found: Floats = z @ COEFFICIENTS
    return found


def labels(codes: Codes, rng: np.random.Generator) -> Codes:
    found: Codes = (rng.random(len(codes)) < 1 / (1 + np.exp(-scores(codes)))).astype(np.int64)
    return found


def right(coefficients: Floats, codes: Codes, truth: Codes) -> float:
    z = DESIGN.feature_numerators(codes) / (1 << 15)
    return 100 * float(np.mean((z @ coefficients > 0) == (truth == 1)))


def minimiser(tally: WeightedRows, ridge: Fraction) -> Floats:
    """The model without noise."""
    found = minimize_loss(build_problem(DESIGN, MASS, tally, ridge, np.zeros(DESIGN.width)))
    return np.array([float(one) for one in found])


def logistic(runs: int) -> None:
    rng, sampler = np.random.default_rng(1), ExactSampler()
    codes, others = features(rng), features(rng)
    label, truth = labels(codes, rng), labels(others, rng)
    tally = AXES.to_weighted_rows((label, *codes.T, np.ones(ROWS, np.int64)))
    print(f"logistic, {ROWS} rows, {runs} runs: accuracy in percent (free: "
          f"{right(minimiser(tally, Fraction(1, 64)), others, truth):.1f})")  # fmt: skip
    print(f"{'lambda':>7} {'epsilon':>7} {'without':>8} {'output':>8} {'objective':>10} {'output, zCDP':>13} "
          f"{'objective, zCDP':>16}")  # fmt: skip
    for strength in (Fraction(1, 100), Fraction(1, 1000)):
        without = right(minimiser(tally, strength * ROWS), others, truth)
        for epsilon in EPSILONS:
            pure, rho = Fraction(epsilon), epsilon_to_rho(Fraction(epsilon), DELTA)
            studies = (
                calibrate_output_by_epsilon(DESIGN, AXES, MASS, strength, None, pure),
                calibrate_objective_by_epsilon(DESIGN, AXES, MASS, strength, None, pure),
                calibrate_output_by_rho(DESIGN, AXES, MASS, strength, None, rho),
                calibrate_objective_by_rho(DESIGN, AXES, MASS, strength, None, rho),
            )
            found = [
                np.mean(
                    [
                        right(s.released_model(s.perform(tally, sampler)[0]).coefficients, others, truth)
                        for _ in range(runs)
                    ]
                )
                for s in studies
            ]
            print(f"{float(strength):>7} {epsilon:>7} {without:>8.1f} {found[0]:>8.1f} {found[1]:>10.1f} "
                  f"{found[2]:>13.1f} {found[3]:>16.1f}")  # fmt: skip


def held(runs: int) -> None:
    """What lambda does to the coefficients of objective perturbation, and to probabilities."""
    strengths = (None, Fraction(1, 1000), Fraction(1, 100))
    print("objective, pure: error of log-odds and of probabilities on other rows, root of the mean square, by lambda")
    print(f"{'rows':>7} {'epsilon':>7} " + " ".join(f"{s and float(s)!s:>15}" for s in strengths))
    for rows, fewer in SIZES:
        rng, sampler = np.random.default_rng(1), ExactSampler()
        codes, others = features(rng, rows), features(rng)
        tally = AXES.to_weighted_rows((labels(codes, rng), *codes.T, np.ones(rows, np.int64)))
        z, truth = DESIGN.feature_numerators(others) / (1 << 15), scores(others)
        for epsilon in EPSILONS:
            cells = []
            for strength in strengths:
                study = calibrate_objective_by_epsilon(DESIGN, AXES, MASS, strength, None, Fraction(epsilon))
                fits = (study.released_model(study.perform(tally, sampler)[0]) for _ in range(max(1, runs // fewer)))
                errors = np.array([_prediction_errors(z @ fit.coefficients, truth) for fit in fits])
                cells.append("{:7.3f} {:7.3f}".format(*np.sqrt(errors.mean(axis=0))))
            print(f"{rows:>7} {epsilon:>7} " + " ".join(cells))


def _prediction_errors(found: Floats, truth: Floats) -> tuple[float, float]:
    """Mean squares, of log-odds and of probabilities."""
    odds, true_odds = (np.exp(-np.clip(each, -50, 50)) for each in (found, truth))
    return float(np.mean((found - truth) ** 2)), float(np.mean((1 / (1 + odds) - 1 / (1 + true_odds)) ** 2))


def linear(runs: int) -> None:
    rng, sampler = np.random.default_rng(2), ExactSampler()
    codes, others = features(rng), features(rng)
    label = np.clip(500 + 100 * scores(codes) + rng.normal(0, 80, ROWS), 0, 1000).astype(np.int64)
    tally = LINEAR.to_weighted_rows((label, *codes.T, np.ones(ROWS, np.int64)))
    z, v = DESIGN.feature_numerators(others) / (1 << 15), 2 * label / 1000 - 1
    exact = calibrate_moments_by_epsilon(DESIGN, LINEAR, MASS, Fraction(0), Fraction(1000))
    unit = 1 / (1 << 30 - exact.shift)
    best = solve_moments(DESIGN, np.array(sum_moments(exact, tally)) * unit, 0.0, 1e-12).coefficients
    print(f"linear, {ROWS} rows, {runs} runs: error of predictions, as a part of the label's standard deviation")
    print(f"{'epsilon':>7} {'pure':>8} {'zCDP':>8}   noise of a moment, pure, in rows")
    for epsilon in EPSILONS:
        pure, rho = Fraction(epsilon), epsilon_to_rho(Fraction(epsilon), DELTA)
        studies = (
            calibrate_moments_by_epsilon(DESIGN, LINEAR, MASS, Fraction(0), pure),
            calibrate_moments_by_rho(DESIGN, LINEAR, MASS, Fraction(0), rho),
        )
        errors = []
        for study in studies:
            fits = [study.released_model(study.perform(tally, sampler)[0]).coefficients for _ in range(runs)]
            errors.append(np.sqrt(np.mean([np.mean((z @ (fit - best)) ** 2) for fit in fits])) / np.std(v))
        noise = standard_error(studies[0].noise) / (1 << 30 - studies[0].shift)
        print(f"{epsilon:>7} {errors[0]:>8.4f} {errors[1]:>8.4f}   {noise:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    runs = QUICK_RUNS if parser.parse_args().quick else RUNS
    logistic(runs)
    print()
    held(runs)
    print()
    linear(runs)


if __name__ == "__main__":
    main()
