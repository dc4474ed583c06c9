"""Logistic regression by output perturbation: the minimiser of a regularised sum of losses, with noise.

Stability: neighbors move the minimiser by at most mass.l1 / whole rows' worth of gradient, divided by the ridge
(`minimiser`); the solver is within tau / ridge of it on both sides. So the vectors that are noised differ by at most

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

from dpsql.exact import Cells
from dpsql.privacy.decimals import ExactProblem
from dpsql.privacy.design import ONE, Design, Floats, Whole, root_above
from dpsql.privacy.loss import Loss
from dpsql.privacy.mechanisms import (
    Mechanism,
    Sensitivity,
    calibrate_gaussian,
    calibrate_laplace,
    draw,
    loss,
    standard_error,
)
from dpsql.privacy.minimiser import TOLERANCE, Problem, minimise
from dpsql.privacy.ridge import (
    COUNT_SHARE,
    Ridge,
    read_noise,
    ridge_under_epsilon,
    ridge_under_rho,
    write_noise,
)
from dpsql.privacy.sampling import Integers, Sampler
from dpsql.privacy.tally import Axes, Tally, UnitMass

FINE = 24
"""What a unit may move is about 2^FINE steps: rounding is far below it."""
MOST_HELD = 1 << 24
"""Components of features that are held at once, of 8 bytes each."""
_MOST = (1 << 62) - 1


@dataclass(frozen=True)
class Fit:
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

    design: Design
    axes: Axes
    mass: UnitMass
    ridge: Ridge
    steps: int
    noise: Mechanism

    kind = "output"
    grids = (Fraction(1),)

    def __post_init__(self) -> None:
        check_axes(self.design, self.axes, 2)

    @property
    def loss(self) -> Loss:
        return self.ridge.loss(self.mass) + loss(self.noise, minimiser_move(self.design, self.mass, self.steps))

    def perform(self, tally: Tally, sampler: Sampler) -> tuple[Cells, ...]:
        counted = self.ridge.count(int(tally.weights.sum()), self.mass, sampler)
        ridge = self.ridge.at(counted, self.mass)
        w = minimise(problem(self.design, self.mass, tally, ridge, np.zeros(self.design.width)))
        return released(counted, w, ridge * self.steps, draw(self.noise, self.design.width, sampler))

    def fit(self, cells: Cells) -> Fit:
        """The released model, from what `perform` gave."""
        unit = 1 / (float(self.ridge.at(int(cells[0]), self.mass)) * self.steps * float(self.design.scale))
        return Fit(cells[1:] * unit, np.eye(self.design.width) * (standard_error(self.noise) * unit) ** 2)

    def told(self) -> tuple[str, ...]:
        error = standard_error(self.noise) / (self.steps * float(self.design.scale))
        return ("logistic regression, noise in its coefficients (of features between -1 and 1)", self.ridge.told(error))

    def record(self) -> dict[str, Any]:
        return {
            "cells": str(self.design.width),
            "tolerance": str(TOLERANCE),
            "steps": str(self.steps),
            "noise": write_noise(self.noise),
            **self.ridge.record(),
        }

    def written(self) -> dict[str, Any]:
        return {
            "design": self.design.written(),
            "axes": write_axes(self.axes),
            "mass": self.mass.written(),
            "ridge": self.ridge.written(),
            "steps": str(self.steps),
            "noise": write_noise(self.noise),
        }


def read_output(part: dict[str, Any]) -> OutputPerturbation:
    return OutputPerturbation(
        Design.read(part["design"]),
        read_axes(part["axes"]),
        UnitMass.read(part["mass"]),
        Ridge.read(part["ridge"]),
        int(part["steps"]),
        read_noise(part["noise"]),
    )


def output_under_epsilon(
    design: Design, axes: Axes, mass: UnitMass, strength: Fraction, rows: int | None, epsilon: Fraction
) -> OutputPerturbation:
    """The least noise that is charged at most `epsilon`."""
    steps, share = _steps(mass), Fraction(0) if rows is not None else COUNT_SHARE
    ridge = ridge_under_epsilon(strength, rows, mass, epsilon * COUNT_SHARE)
    noise = calibrate_laplace(minimiser_move(design, mass, steps), epsilon * (1 - share))
    return OutputPerturbation(design, axes, mass, ridge, steps, noise)


def output_under_rho(
    design: Design, axes: Axes, mass: UnitMass, strength: Fraction, rows: int | None, rho: Fraction
) -> OutputPerturbation:
    """The least noise that is charged at most `rho`."""
    steps, share = _steps(mass), Fraction(0) if rows is not None else COUNT_SHARE
    ridge = ridge_under_rho(strength, rows, mass, rho * COUNT_SHARE)
    noise = calibrate_gaussian(minimiser_move(design, mass, steps), rho * (1 - share))
    return OutputPerturbation(design, axes, mass, ridge, steps, noise)


def minimiser_move(design: Design, mass: UnitMass, steps: int) -> Sensitivity:
    """How far neighbors move the coefficients, in steps."""
    d, root = design.width, root_above(design.width)
    far = ceil((Fraction(mass.l1, mass.whole) + 2 * TOLERANCE) * steps)
    return Sensitivity(ceil(root * far) + d, (far + ceil(root)) ** 2, far + 1)


def check_axes(design: Design, axes: Axes, label: int) -> None:
    """The axes of a tally are that of the label, then those of the features."""
    if axes.sizes != (label, *(axis.size for axis in design.axes)):
        raise ValueError("the tally has other axes than the model")


def write_axes(axes: Axes) -> list[list[str]]:
    return [[str(lower), str(size)] for lower, size in zip(axes.lowers, axes.sizes, strict=True)]


def read_axes(part: list[list[str]]) -> Axes:
    return Axes(tuple(int(lower) for lower, _ in part), tuple(int(size) for _, size in part))


def problem(design: Design, mass: UnitMass, tally: Tally, ridge: Fraction, slope: Floats) -> Problem:
    """The loss of a tally whose first code is the label: 0 stands for -1."""
    labels = 2.0 * tally.codes[:, 0] - 1.0
    weights = tally.weights / float(mass.whole)
    features = tally.codes[:, 1:]
    exact = ExactProblem(lambda: design.numerators(features), ONE * design.scale, tally.codes[:, 0], tally.weights,
                         mass.whole, ridge, tuple(Fraction(float(one)) for one in slope))  # fmt: skip
    return Problem(_vectors(design, features), labels, weights, float(ridge), slope, exact)


def _vectors(design: Design, features: Whole) -> Callable[[slice], Floats]:
    """Worked out once where they take little memory, else again for each look at some of them."""
    if len(features) * design.width > MOST_HELD:
        return lambda part: design.vectors(features[part])
    held = design.vectors(features)
    return lambda part: held[part]


def released(counted: int, w: list[Fraction], steps: Fraction, noise: Integers) -> tuple[Cells]:
    """`w` in whole steps, exactly rounded, clipped to +-2^62 (which moves no two further apart), and noised."""
    whole = [max(-_MOST, min(_MOST, round(value * steps))) for value in w]
    return (np.concatenate([np.array([counted], np.int64), np.array(whole, np.int64) + noise]),)


def _steps(mass: UnitMass) -> int:
    rows = -(-mass.l1 // mass.whole)
    return 1 << max(0, FINE + 1 - rows.bit_length())
