"""Logistic regression by output perturbation: the minimiser of a regularised sum of losses, with noise.

Stability: neighbors move the minimiser by at most mass.l1 / whole rows' worth of gradient, divided by the ridge
(`logistic_solver.py`); the solver is within tau / ridge of it on both sides. So the vectors that are noised differ by
at most

    D = (mass.l1 / whole + 2 tau) / ridge        in L2, and by sqrt(d) D in L1.

They are rounded to a grid of `steps` steps to 1/ridge, which moves each component by half a step, both together by
sqrt(d) steps in L2 and d steps in L1. Counted in steps D does not depend on the ridge: so the noise, and what it costs,
are known before the ridge is. (Chaudhuri, Monteleoni 2008 and 2011, Algorithm 1: there D = 2 / (n lambda), rows are
changed and n is public. Their noise has a density that falls with |b|_2; Laplace noise in each component is sqrt 2
times as large and can be drawn exactly; under zCDP Gaussian noise is smaller than either.)

Privacy: noise in the steps of d cells, after the noisy count that the ridge follows from: adaptive composition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from dpsql.privacy.exact import Cells
from dpsql.privacy.loss import Loss
from dpsql.privacy.noise import (
    Mechanism,
    Sensitivity,
    calibrate_gaussian,
    calibrate_laplace,
    draw_noise,
    noise_loss,
    standard_error,
)
from dpsql.privacy.regression.features import FEATURE_ONE, FeatureDesign, Floats, IntegerArray, sqrt_rounded_up
from dpsql.privacy.regression.logistic_solver import TOLERANCE, ExactProblem, LogisticProblem, minimize_loss
from dpsql.privacy.regression.ridge import (
    COUNT_SHARE,
    RidgePenalty,
    calibrate_ridge_by_epsilon,
    calibrate_ridge_by_rho,
    noise_from_json,
    noise_to_json,
)
from dpsql.privacy.sampling import Integers, Sampler
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRows

MOVE_BITS = 24
"""What a unit may move is about 2^FINE steps: rounding is far below it."""
MAX_CACHED_COMPONENTS = 1 << 24
"""Components of features that are held at once, of 8 bytes each."""
_MAX_COEFFICIENT = (1 << 62) - 1


@dataclass(frozen=True)
class FittedModel:
    """A model as it was released: the coefficients of z (`design`), and the covariance of their errors."""

    coefficients: Floats
    covariance: Floats

    @property
    def errors(self) -> Floats:
        roots: Floats = np.sqrt(np.maximum(0.0, np.diag(self.covariance)))
        return roots


@dataclass(frozen=True)
class OutputPerturbation:
    """The minimiser of a logistic loss with noise in each component.

    What it gives: the noisy weight of all rows (0 where the ridge needs none), then the coefficients in steps.
    """

    design: FeatureDesign
    axes: Axes
    mass: UnitMass
    ridge: RidgePenalty
    steps: int
    noise: Mechanism

    kind = "output"
    grids = (Fraction(1),)

    def __post_init__(self) -> None:
        check_axes(self.design, self.axes, 2)

    @property
    def loss(self) -> Loss:
        return self.ridge.count_loss(self.mass) + noise_loss(
            self.noise, minimizer_sensitivity(self.design, self.mass, self.steps)
        )

    @property
    def noise_sizes(self) -> tuple[float, ...]:
        return (standard_error(self.noise) * self.mass.whole / (self.steps * self.mass.norm),)

    def perform(self, tally: WeightedRows, sampler: Sampler) -> tuple[Cells, ...]:
        noisy_count = self.ridge.count_rows(int(tally.weights.sum()), self.mass, sampler)
        ridge = self.ridge.ridge_at(noisy_count, self.mass)
        w = minimize_loss(build_problem(self.design, self.mass, tally, ridge, np.zeros(self.design.width)))
        return perturb_coefficients(
            noisy_count, w, ridge * self.steps, draw_noise(self.noise, self.design.width, sampler)
        )

    def released_model(self, cells: Cells) -> FittedModel:
        """The released model, from what `perform` gave."""
        unit = 1 / (float(self.ridge.ridge_at(int(cells[0]), self.mass)) * self.steps * float(self.design.scale))
        return FittedModel(cells[1:] * unit, np.eye(self.design.width) * (standard_error(self.noise) * unit) ** 2)

    def explain_lines(self) -> tuple[str, ...]:
        error = standard_error(self.noise) / (self.steps * float(self.design.scale))
        return (
            "logistic regression, noise in its coefficients (of features between -1 and 1)",
            self.ridge.explain_line(error),
        )

    def to_audit_record(self) -> dict[str, Any]:
        return {
            "cells": str(self.design.width),
            "tolerance": str(TOLERANCE),
            "steps": str(self.steps),
            "noise": noise_to_json(self.noise),
            **self.ridge.to_audit_record(),
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "design": self.design.to_json(),
            "axes": axes_to_json(self.axes),
            "mass": self.mass.to_json(),
            "ridge": self.ridge.to_json(),
            "steps": str(self.steps),
            "noise": noise_to_json(self.noise),
        }


def output_from_json(part: dict[str, Any]) -> OutputPerturbation:
    return OutputPerturbation(
        FeatureDesign.from_json(part["design"]),
        axes_from_json(part["axes"]),
        UnitMass.from_json(part["mass"]),
        RidgePenalty.from_json(part["ridge"]),
        int(part["steps"]),
        noise_from_json(part["noise"]),
    )


def calibrate_output_by_epsilon(
    design: FeatureDesign, axes: Axes, mass: UnitMass, strength: Fraction, rows: int | None, epsilon: Fraction
) -> OutputPerturbation:
    """The least noise that is charged at most `epsilon`."""
    steps, share = _choose_steps(mass), Fraction(0) if rows is not None else COUNT_SHARE
    ridge = calibrate_ridge_by_epsilon(strength, rows, mass, epsilon * COUNT_SHARE)
    noise = calibrate_laplace(minimizer_sensitivity(design, mass, steps), epsilon * (1 - share))
    return OutputPerturbation(design, axes, mass, ridge, steps, noise)


def calibrate_output_by_rho(
    design: FeatureDesign, axes: Axes, mass: UnitMass, strength: Fraction, rows: int | None, rho: Fraction
) -> OutputPerturbation:
    """The least noise that is charged at most `rho`."""
    steps, share = _choose_steps(mass), Fraction(0) if rows is not None else COUNT_SHARE
    ridge = calibrate_ridge_by_rho(strength, rows, mass, rho * COUNT_SHARE)
    noise = calibrate_gaussian(minimizer_sensitivity(design, mass, steps), rho * (1 - share))
    return OutputPerturbation(design, axes, mass, ridge, steps, noise)


def minimizer_sensitivity(design: FeatureDesign, mass: UnitMass, steps: int) -> Sensitivity:
    """How far neighbors move the coefficients, in steps."""
    d, root = design.width, sqrt_rounded_up(design.width)
    max_move = ceil((Fraction(mass.l1, mass.whole) + 2 * TOLERANCE) * steps)
    return Sensitivity(ceil(root * max_move) + d, (max_move + ceil(root)) ** 2, max_move + 1)


def check_axes(design: FeatureDesign, axes: Axes, label: int) -> None:
    """The axes of a tally are that of the label, then those of the features."""
    if axes.sizes != (label, *(axis.size for axis in design.axes)):
        raise ValueError("the tally has other axes than the model")


def axes_to_json(axes: Axes) -> list[list[str]]:
    return [[str(lower), str(size)] for lower, size in zip(axes.lowers, axes.sizes, strict=True)]


def axes_from_json(part: list[list[str]]) -> Axes:
    return Axes(tuple(int(lower) for lower, _ in part), tuple(int(size) for _, size in part))


def build_problem(
    design: FeatureDesign, mass: UnitMass, tally: WeightedRows, ridge: Fraction, slope: Floats
) -> LogisticProblem:
    """The loss of a tally whose first code is the label: 0 stands for -1."""
    labels = 2.0 * tally.codes[:, 0] - 1.0
    weights = tally.weights / float(mass.whole)
    features = tally.codes[:, 1:]
    exact = ExactProblem(
        lambda: design.feature_numerators(features),
        FEATURE_ONE * design.scale,
        tally.codes[:, 0],
        tally.weights,
        mass.whole,
        ridge,
        tuple(Fraction(float(component)) for component in slope),
    )
    return LogisticProblem(_lazy_feature_vectors(design, features), labels, weights, float(ridge), slope, exact)


def _lazy_feature_vectors(design: FeatureDesign, features: IntegerArray) -> Callable[[slice], Floats]:
    """Worked out once where they take little memory, else again for each look at some of them."""
    if len(features) * design.width > MAX_CACHED_COMPONENTS:
        return lambda part: design.feature_vectors(features[part])
    vectors = design.feature_vectors(features)
    return lambda part: vectors[part]


def perturb_coefficients(noisy_count: int, w: list[Fraction], steps: Fraction, noise: Integers) -> tuple[Cells]:
    """`w` in whole steps, exactly rounded, clipped to +-2^62 (which moves no two further apart), and noised."""
    rounded = [max(-_MAX_COEFFICIENT, min(_MAX_COEFFICIENT, round(value * steps))) for value in w]
    return (np.concatenate([np.array([noisy_count], np.int64), np.array(rounded, np.int64) + noise]),)


def _choose_steps(mass: UnitMass) -> int:
    rows = -(-mass.l1 // mass.whole)
    return 1 << max(0, MOVE_BITS + 1 - rows.bit_length())
