"""Models of neighboring rows are audited from outside: no event tells them apart better than the claim.

The events are fixed beforehand; bounds are Clopper-Pearson, so that a sound mechanism is accused with probability at
most ALPHA per test. What is broken must be accused by the same event: the form of objective perturbation of 2008, which
forgets the determinant, and half the noise in coefficients and in moments.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction as F

import numpy as np
import pytest
from scipy.stats import beta

from dpsql.privacy.noise import Laplace
from dpsql.privacy.regression import output_perturbation
from dpsql.privacy.regression.features import FeatureDesign, NumericAxis
from dpsql.privacy.regression.logistic_solver import LogisticProblem, minimize_loss
from dpsql.privacy.regression.noisy_moments import NoisyMoments, calibrate_moments_by_epsilon
from dpsql.privacy.regression.objective_perturbation import ObjectivePerturbation, calibrate_objective_by_epsilon
from dpsql.privacy.regression.output_perturbation import OutputPerturbation, calibrate_output_by_epsilon
from dpsql.privacy.sampling import ExactSampler
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRows
from tests.support.regression_data import Silent, tally

pytestmark = pytest.mark.stat

ALPHA = 1e-7
RUNS = 20_000
NEAR = 1.0
DESIGN = FeatureDesign((NumericAxis(3),))
AXES = Axes((0, 0), (2, 3))
MASS = UnitMass(1, 1, True, 1, False)


@dataclass(frozen=True)
class Of2008(ObjectivePerturbation):
    """All of epsilon for the slope, and no word of the determinant."""

    def __post_init__(self) -> None:
        pass


Study = ObjectivePerturbation | OutputPerturbation | NoisyMoments
Event = Callable[[np.ndarray], bool]


def epsilon_shown(study: Study, rows: tuple[WeightedRows, WeightedRows], event: Event, runs: int = RUNS) -> float:
    """A lower bound on epsilon, from how often a release is in the event with the row and without it."""
    sampler = ExactSampler()
    on, off = (sum(event(study.perform(one, sampler)[0]) for _ in range(runs)) for one in rows)
    least = float(beta.ppf(ALPHA / 2, on, runs - on + 1)) if on else 0.0
    most = float(beta.ppf(1 - ALPHA / 2, off + 1, runs - off)) if off < runs else 1.0
    return math.log(least / most) if least else -math.inf


def with_half_the_noise(study: Study) -> Study:
    assert isinstance(study.noise, Laplace)
    return replace(study, noise=Laplace(study.noise.scale / 2))


# --- objective -------------------------------------------------------------------------------------------------------


def test_objective_perturbation_keeps_its_epsilon_and_the_form_of_2008_does_not() -> None:
    """One event for both: coefficients near 0, along the feature of the row that comes."""
    sound = calibrate_objective_by_epsilon(DESIGN, AXES, MASS, F(1, 64), 1, F(1))
    pure = Of2008(DESIGN, AXES, MASS, sound.ridge.__class__(F(1, 64), 1, None), F(0), F(3, 2), sound.noise)
    rows = tally({(1, 2): 1}), tally(axes=AXES)
    shown = [
        epsilon_shown(
            study, rows, lambda cells, study=study: abs(study.released_model(cells).coefficients.sum()) < NEAR
        )
        for study in (sound, pure)
    ]
    assert shown[0] <= 1 < shown[1]


# --- output ----------------------------------------------------------------------------------------------------------


def test_output_perturbation_keeps_its_epsilon_and_half_the_noise_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row against a crowd that is sure of itself, and stands nearly at a right angle: it moves 9/10 of the claim.

    The event is that both components are beyond the minimiser with the row, where the densities are furthest apart.
    """
    found: dict[bytes, np.ndarray] = {}

    def minimise_once(posed: LogisticProblem) -> np.ndarray:
        key = posed.weights.tobytes()
        return found[key] if key in found else found.setdefault(key, minimize_loss(posed))

    monkeypatch.setattr(output_perturbation, "minimize_loss", minimise_once)
    design, axes, crowd = FeatureDesign((NumericAxis(5),)), Axes((0, 0), (2, 5)), {(0, 1): 10**8}
    study = calibrate_output_by_epsilon(design, axes, MASS, F(1), 1, F(1))
    rows = tally(crowd, {(1, 4): 1}), tally(crowd)
    beyond = study.perform(rows[0], Silent())[0][1:]
    shown = [
        epsilon_shown(one, rows, lambda cells: bool((cells[1:] > beyond).all()))
        for one in (study, with_half_the_noise(study))
    ]
    assert 0.5 < shown[0] <= 1 < shown[1]


# --- moments ---------------------------------------------------------------------------------------------------------


def test_moments_keep_their_epsilon_and_those_with_half_the_noise_do_not() -> None:
    """A row at the end of its scale moves all moments by as much as is claimed: the event is that all are above it."""
    axes = Axes((0, 0), (3, 3))
    study = calibrate_moments_by_epsilon(DESIGN, axes, MASS, F(0), F(1))
    rows = tally({(2, 2): 1}), tally(axes=axes)
    above = study.perform(rows[0], Silent())[0]
    assert len(set(above.tolist())) == 1
    shown = [
        epsilon_shown(one, rows, lambda cells: bool((cells >= above).all()), 5 * RUNS)
        for one in (study, with_half_the_noise(study))
    ]
    assert 0.3 < shown[0] <= 1 < shown[1]
