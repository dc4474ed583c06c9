"""Logistic regression by objective perturbation, the form of 2011, for a sum of losses (one row for each unit).

    J(w) = sum of ln(1 + exp(-y_i w.x_i)) + (ridge/2) |w|^2 + b.w,        b with independent Laplace(scale) components.

Privacy, of the exact minimiser. It determines b: b(w) = -(sum of gradients) - ridge w, one to one, so that the density
of w is that of b(w) times det A(w), A the Hessian. A row that comes or goes
    moves b(w) by its gradient, below 1 in L2, so below sqrt(d) in L1: the density of b changes by exp(sqrt(d)/scale);
    changes A by c' x x^T with c' <= c = 1/4, and A >= ridge: det A changes by 1 + c' x^T A^-1 x <= 1 + c/ridge.
With k units that come, and under change_one k that leave as well (the rows change one after the other), s = k or 2k:

    epsilon_1 = s (sqrt(d)/scale + jacobian),        jacobian >= ln(1 + c/ridge).

For change_one and k = 1 that is Chaudhuri, Monteleoni, Sarwate 2011, Theorem 9, with n Lambda as the ridge:
2 ln(1 + c/ridge) = ln(1 + 2c/(n Lambda) + c^2/(n Lambda)^2). The form of 2008 forgets the determinant, and is not
private: its densities differ by exp(2.38) at a claimed 1. Where the ridge leaves nothing to b, it is raised until the
determinant takes half (their Delta).

Privacy, of what is released (Iyengar et al. 2019, approximate minima perturbation). The b that is drawn is a whole
multiple of h = scale / 2^30, and the solver stops before the end. Let b be an ideal one, of the same uniform R and
sign: |b|/h = -t ln R and |K| = floor(t (c - ln R)) (`sampling.py`), t = 2^30, with t c between 0 and 1. So |b - hK| <=
h, and with the rounding of hK to a float at most 2h (beyond 2^53 steps it would be more: probability exp(-2^23)). The
minimiser moves by at most |b - b'| / ridge and the solver stops within tau / ridge: what is rounded lies within

    gamma = (tau + 2 h sqrt(d)) / ridge

of the ideal minimiser w. Think of w as released first, at epsilon_1. Given w, what is rounded is a function of the rows
alone (w gives b, b gives R and K), and on any two tables within gamma of w, hence within 2 gamma of each other. Laplace
noise that covers 2 gamma and the rounding to the grid is a second release, at epsilon_2; both together lose
epsilon_1 + epsilon_2, or (epsilon_1^2 + epsilon_2^2)/2 in rho, and only the second leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from math import ceil, isqrt
from typing import Any

import numpy as np

from dpsql.privacy.exact import Cells
from dpsql.privacy.loss import LOSS_DENOMINATOR, Loss, log_rounded_up, round_down
from dpsql.privacy.noise import (
    Laplace,
    Sensitivity,
    calibrate_laplace,
    draw_noise,
    noise_loss,
    require_positive_share,
    round_up_scale,
)
from dpsql.privacy.regression.features import FeatureDesign, sqrt_rounded_up
from dpsql.privacy.regression.logistic_solver import TOLERANCE, minimize_loss
from dpsql.privacy.regression.output_perturbation import (
    FittedModel,
    axes_from_json,
    axes_to_json,
    build_problem,
    check_axes,
    perturb_coefficients,
)
from dpsql.privacy.regression.ridge import (
    COUNT_SHARE,
    RidgePenalty,
    calibrate_ridge_by_epsilon,
    noise_from_json,
    noise_to_json,
)
from dpsql.privacy.sampling import Sampler, to_decimal
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRows

CURVATURE = Fraction(1, 4)
"""c: the second derivative of ln(1 + exp(-m)) is at most this."""
SLOPE_STEPS = 1 << 30
"""t: steps of b to its scale, where the sampler draws best."""
COEFFICIENT_STEPS = 1 << 24
"""Of 1/ridge, on the grid of the coefficients."""
APPROXIMATION_SHARE = Fraction(1, 20)
"""Of the loss, for the noise that covers the solver's error; small, as that noise is."""
MAX_JACOBIAN_SHARE = Fraction(15, 16)
"""Of what a row may lose, for the determinant, before the ridge is raised."""
UNCOUNTED_SHARE = Fraction(1, 10)
"""Of epsilon_1, for the determinant, where the ridge is not known before the rows are counted, or is not given."""
DEFAULT_STRENGTH = Fraction(1, 10_000)
"""Of the ridge, for each row, where none is given: so small that with few rows the determinant's share decides, which
holds coefficients as noise of this size needs it, and with many rows hardly anything draws them toward 0. In
`benchmarks.accuracy_models` coefficients err least with it, or as much as with 0.001 and 0.01."""


@dataclass(frozen=True)
class ObjectivePerturbation:
    """The minimiser of a logistic loss with a random slope, and a little noise.

    What it gives: the noisy weight of all rows (0 where the ridge needs none), then the coefficients in steps.
    """

    design: FeatureDesign
    axes: Axes
    mass: UnitMass
    ridge: RidgePenalty
    jacobian: Fraction
    scale: Fraction
    noise: Laplace

    kind = "objective"
    grids = (Fraction(1),)

    def __post_init__(self) -> None:
        check_axes(self.design, self.axes, 2)
        if not self.mass.one_row:
            raise ValueError("objective perturbation needs one row for each unit")
        if self.scale <= 0 or log_rounded_up(1 + CURVATURE / self.ridge.least) > self.jacobian:
            raise ValueError("the ridge is too small for what its determinant was charged")

    @property
    def ideal_loss(self) -> Loss:
        """What the exact minimiser would lose."""
        epsilon = count_changed_rows(self.mass) * (sqrt_rounded_up(self.design.width) / self.scale + self.jacobian)
        return Loss(epsilon, epsilon**2 / 2, Fraction(0))

    @property
    def loss(self) -> Loss:
        approximation_loss = noise_loss(self.noise, approximation_sensitivity(self.design, self.scale))
        return self.ridge.count_loss(self.mass) + self.ideal_loss + approximation_loss

    @property
    def noise_sizes(self) -> tuple[float, ...]:
        return (float(self.scale),)

    def perform(self, tally: WeightedRows, sampler: Sampler) -> tuple[Cells, ...]:
        noisy_count = self.ridge.count_rows(int(tally.weights.sum()), self.mass, sampler)
        ridge = self.ridge.ridge_at(noisy_count, self.mass)
        draws = draw_noise(Laplace(Fraction(SLOPE_STEPS)), self.design.width, sampler)
        slope = np.array([float(Fraction(int(steps_drawn), SLOPE_STEPS) * self.scale) for steps_drawn in draws])
        w = minimize_loss(build_problem(self.design, self.mass, tally, ridge, slope))
        return perturb_coefficients(
            noisy_count, w, ridge * COEFFICIENT_STEPS, draw_noise(self.noise, self.design.width, sampler)
        )

    def released_model(self, cells: Cells) -> FittedModel:
        """The released model. Its errors are an upper bound: b moves w by b / A, and A is at least the ridge."""
        ridge = float(self.ridge.ridge_at(int(cells[0]), self.mass))
        unit, error = 1 / (ridge * float(self.design.scale)), 2**0.5 * float(self.scale)
        return FittedModel(cells[1:] * (unit / COEFFICIENT_STEPS), np.eye(self.design.width) * (error * unit) ** 2)

    def explain_lines(self) -> tuple[str, ...]:
        error = 2**0.5 * float(self.scale) / float(self.design.scale)
        return (
            "logistic regression, noise in its objective (errors of features between -1 and 1, at most)",
            self.ridge.explain_line(error),
        )

    def to_audit_record(self) -> dict[str, Any]:
        return {
            "cells": str(self.design.width),
            "tolerance": str(TOLERANCE),
            "steps": str(COEFFICIENT_STEPS),
            "slope_steps": str(SLOPE_STEPS),
            "least_ridge": str(self.ridge.least),
            "jacobian": str(self.jacobian),
            "scale": str(self.scale),
            "noise": noise_to_json(self.noise),
            **self.ridge.to_audit_record(),
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "design": self.design.to_json(),
            "axes": axes_to_json(self.axes),
            "mass": self.mass.to_json(),
            "ridge": self.ridge.to_json(),
            "jacobian": str(self.jacobian),
            "scale": str(self.scale),
            "noise": noise_to_json(self.noise),
        }


def objective_from_json(part: dict[str, Any]) -> ObjectivePerturbation:
    noise = noise_from_json(part["noise"])
    if not isinstance(noise, Laplace):
        raise ValueError("the solver's error is covered by Laplace noise")
    return ObjectivePerturbation(
        FeatureDesign.from_json(part["design"]),
        axes_from_json(part["axes"]),
        UnitMass.from_json(part["mass"]),
        RidgePenalty.from_json(part["ridge"]),
        Fraction(part["jacobian"]),
        Fraction(part["scale"]),
        noise,
    )


def count_changed_rows(mass: UnitMass) -> int:
    """How many rows come or go between neighbors: each unit has one."""
    return mass.group_size * (2 if mass.change_one else 1)


def approximation_sensitivity(design: FeatureDesign, scale: Fraction) -> Sensitivity:
    """2 gamma and the rounding to the grid, in steps of the coefficients: between any two tables, given an ideal w."""
    d, root = design.width, sqrt_rounded_up(design.width)
    max_move = ceil(2 * (TOLERANCE + 2 * root * scale / SLOPE_STEPS) * COEFFICIENT_STEPS)
    return Sensitivity(ceil(root * max_move) + d, (max_move + ceil(root)) ** 2, max_move + 1)


def split_row_loss(row_loss: Fraction, ridge: Fraction) -> tuple[Fraction, Fraction]:
    """Split a row's loss: the determinant's part, and the ridge, which is raised where nothing else were left."""
    jacobian = log_rounded_up(1 + CURVATURE / ridge)
    # A slope with next to nothing left would be far out, where only the exact solver goes.
    return (jacobian, ridge) if jacobian <= row_loss * MAX_JACOBIAN_SHARE else (row_loss / 2, min_ridge(row_loss / 2))


def min_ridge(jacobian: Fraction) -> Fraction:
    """The least ridge, rounded up to a multiple of 2^-20, at which a row changes the determinant by exp(jacobian)."""
    with localcontext(Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)):
        exact = Fraction(to_decimal(CURVATURE) / (to_decimal(jacobian).exp() - 1) * (1 + Decimal("1e-9")))
    return Fraction(ceil(exact * (1 << 20)) + 1, 1 << 20)


def calibrate_objective_by_epsilon(
    design: FeatureDesign, axes: Axes, mass: UnitMass, strength: Fraction | None, rows: int | None, epsilon: Fraction
) -> ObjectivePerturbation:
    """The least noise that is charged at most `epsilon`; without `strength` the ridge is as small as noise lets it be.

    Privacy: any strength will do. The determinant is charged by the least ridge that there may be, which `least` keeps.
    """
    share = Fraction(0) if rows is not None else COUNT_SHARE
    ridge = calibrate_ridge_by_epsilon(strength or DEFAULT_STRENGTH, rows, mass, epsilon * COUNT_SHARE)
    row_loss = require_positive_share(epsilon * (1 - share) * (1 - APPROXIMATION_SHARE)) / count_changed_rows(mass)
    if rows is not None and strength is not None:
        jacobian, min_allowed = split_row_loss(row_loss, ridge.ridge_at(0, mass))
    else:
        jacobian, min_allowed = row_loss * UNCOUNTED_SHARE, min_ridge(row_loss * UNCOUNTED_SHARE)
    ridge = replace(ridge, least=max(ridge.least, min_allowed))
    scale = round_up_scale(
        sqrt_rounded_up(design.width) / require_positive_share(row_loss - jacobian - Fraction(1, LOSS_DENOMINATOR))
    )
    noise = calibrate_laplace(approximation_sensitivity(design, scale), epsilon * (1 - share) * APPROXIMATION_SHARE)
    return ObjectivePerturbation(design, axes, mass, ridge, jacobian, scale, noise)


def calibrate_objective_by_rho(
    design: FeatureDesign,
    axes: Axes,
    mass: UnitMass,
    strength: Fraction | None,
    rows: int | None,
    rho: Fraction,
    max_epsilon: Fraction | None = None,
) -> ObjectivePerturbation:
    """As good as pure epsilons whose squares sum to 2 rho: the slope's noise has no better bound here.

    Privacy: the count, the ideal minimiser and what covers the solver's error lose parts p of epsilon, and rhos of at
    most (p epsilon)^2/2 (Bun, Steinke 2016), which add up.
    """
    count = Fraction(0) if rows is not None else COUNT_SHARE
    parts = (count, (1 - count) * (1 - APPROXIMATION_SHARE), (1 - count) * APPROXIMATION_SHARE)
    square = 2 * rho / sum((part**2 for part in parts), Fraction(0))
    epsilon = round_down(Fraction(isqrt(int(square * LOSS_DENOMINATOR * LOSS_DENOMINATOR)), LOSS_DENOMINATOR))
    if max_epsilon is not None:
        epsilon = min(epsilon, max_epsilon)
    return calibrate_objective_by_epsilon(design, axes, mass, strength, rows, epsilon)
