"""Whether a model is there tells nothing of the rows: the minimiser is found for all of them, with any slope."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction as F

import numpy as np
import pytest

from dpsql.privacy.regression.features import FeatureDesign, NumericAxis, sqrt_rounded_up
from dpsql.privacy.regression.logistic_solver import TOLERANCE, ExactProblem, minimize_loss
from dpsql.privacy.regression.objective_perturbation import (
    APPROXIMATION_SHARE,
    calibrate_objective_by_epsilon,
    count_changed_rows,
)
from dpsql.privacy.regression.output_perturbation import build_problem, calibrate_output_by_epsilon
from dpsql.privacy.sampling import ExactSampler
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRows

FAR = 65_536


def _tally(rows: dict[tuple[int, int], int]) -> WeightedRows:
    keys = sorted(rows)
    return WeightedRows(np.array(keys, np.int64).reshape(-1, 2), np.array([rows[key] for key in keys], np.int64))


@pytest.mark.parametrize("last", [2_729_789, 2_729_790, 2**39])
def test_output_perturbation_fails_on_no_rows(last: int) -> None:
    """Labels that a hair's breadth divides, under a ridge for one row: one more row once decided whether there was an
    answer, without any noise."""
    one = UnitMass(1, 1, True, 1, False)
    study = calibrate_output_by_epsilon(
        FeatureDesign((NumericAxis(FAR),)), Axes((0, 0), (2, FAR)), one, F(1, 1000), 1, F(1, 10000)
    )
    rows = _tally({(1, 17_030): 212_825, (0, 16_963): last, (0, 0): 1_731_864})
    posed = build_problem(study.design, one, rows, study.ridge.ridge_at(0, one), np.zeros(2))
    w = minimize_loss(posed)
    assert len(study.perform(rows, ExactSampler())[0]) == 3
    assert exact_gradient(posed.exact, w) <= TOLERANCE**2


@pytest.mark.parametrize("rows", [{}, {(1, 4): 1}, {(1, 4): 1_000_000}])
def test_objective_perturbation_fails_on_no_slope(rows: dict[tuple[int, int], int]) -> None:
    """A ridge at which the determinant takes nearly all that a row may lose: the slope is far out."""
    one = UnitMass(1, 1, True, 1, False)
    strength = F("0.1576581176449915733040857")
    study = calibrate_objective_by_epsilon(
        FeatureDesign((NumericAxis(5),)), Axes((0, 0), (2, 5)), one, strength, 1, F(1)
    )
    assert study.loss.epsilon is not None and study.loss.epsilon <= 1
    assert study.scale <= 16 * sqrt_rounded_up(2) * count_changed_rows(one) / (1 - APPROXIMATION_SHARE) + 1
    for _ in range(50):
        study.perform(_tally(rows), ExactSampler())


def test_what_floats_cannot_certify_is_solved_exactly() -> None:
    one = UnitMass(1, 1, True, 1, False)
    design = FeatureDesign((NumericAxis(9),))
    rows = _tally({(1, 8): 2**45, (0, 0): 2**45 + 1, (1, 3): 7})
    posed = build_problem(design, one, rows, F(1, 64), np.array([1e12, -3e11]))
    assert exact_gradient(posed.exact, minimize_loss(posed)) <= TOLERANCE**2


def exact_gradient(posed: ExactProblem, w: list[F]) -> F:
    """The square of the gradient's length, worked out once more: by fractions, and 60 digits of the logistic."""
    with localcontext(Context(prec=120)):
        total = [posed.ridge * one + pull for one, pull in zip(w, posed.slope, strict=True)]
        rows = zip(posed.numerators().tolist(), posed.labels.tolist(), posed.weights.tolist(), strict=True)
        for numerators, label, weight in rows:
            x = [F(one) / posed.divisor * (1 if label else -1) for one in numerators]
            m = sum((a * b for a, b in zip(x, w, strict=True)), F(0))
            margin = Decimal(m.numerator) / Decimal(m.denominator)
            share = F(0) if margin > 10**5 else F(1) if margin < -(10**5) else F(1 / (1 + margin.exp()))
            total = [one - F(weight, posed.whole) * share * part for one, part in zip(total, x, strict=True)]
        return sum((one * one for one in total), F(0))
