"""Linear regression from noisy moments: the sums of all products of two of (1, features, label).

The features z are those of `design`, the label is one more scale, v. A row's products are whole multiples of 2^-30, and
are divided by 2^shift toward zero as whole numbers, *before* anything is summed: so a row's cells are a public function
of its tuple, at most 2^(30 - shift) =: U each, and a tuple's cells are that times its weight, exactly.

Stability: of two categories of one axis the product is 0, and of one with itself it is that with the intercept; those
cells are left out. In what stays, a row has for each pair of its m + 2 parts (intercept, m axes, label) one cell at
most that is not 0, and one for the square of the intercept and of each scale: N cells, each at most U. A unit's weights
sum to `norm`, so by the triangle inequality it moves the cells by at most norm * U * N in L1 and norm * U * sqrt(N) in
L2; k units k times as far, and under change_one, where signs may differ, twice as far: mass.l1 has both in it. Rounding
toward zero only shrinks a cell. (Sums that were rounded after summing would move by one more for every tuple.)

Privacy: noise in all cells, of that joint sensitivity. All that follows is made of released cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from dpsql.exact import Cells
from dpsql.privacy.design import STEPS, Design, Floats, Scale, Whole
from dpsql.privacy.loss import Loss
from dpsql.privacy.mechanisms import (
    Mechanism,
    Sensitivity,
    calibrate_gaussian,
    calibrate_laplace,
    draw,
    loss,
    root_at_least,
    standard_error,
)
from dpsql.privacy.regression import Fit, check_axes, read_axes, write_axes
from dpsql.privacy.ridge import read_noise, write_noise
from dpsql.privacy.sampling import Sampler
from dpsql.privacy.tally import Axes, Tally, UnitMass, chunks
from dpsql.pulse import beat

_MOST = (1 << 62) - 1
_AIM = 34
"""Products are coarsened until noise is about 2^_AIM steps, but at least 2^_LEAST steps are left to the largest."""
_LEAST = 10

Pair = tuple[int, int]


@dataclass(frozen=True)
class Moments:
    """Noisy sums of products; `ridge` is what is added for each row when they are solved, after the noise."""

    design: Design
    axes: Axes
    mass: UnitMass
    shift: int
    ridge: Fraction
    noise: Mechanism

    kind = "moments"
    grids = (Fraction(1),)

    def __post_init__(self) -> None:
        check_axes(self.design, self.axes, self.axes.sizes[0])
        if not 0 <= self.shift <= 2 * STEPS - _LEAST or self.ridge < 0:
            raise ValueError("products keep some of their digits, and a ridge is not negative")

    @property
    def loss(self) -> Loss:
        return loss(self.noise, moments_move(self.design, self.mass, self.shift))

    def perform(self, tally: Tally, sampler: Sampler) -> tuple[Cells, ...]:
        sums = sums_of(self, tally)
        return (np.array(sums, np.int64) + draw(self.noise, len(sums), sampler),)

    def told(self) -> tuple[str, ...]:
        error = standard_error(self.noise) / ((1 << 2 * STEPS - self.shift) * self.mass.whole)
        return (
            f"linear regression from {len(pairs(self.design))} noisy moments (of features and label between -1 and 1)",
            f"each moment errs by {error:.3g}; what that makes of coefficients depends on the rows",
        )

    def record(self) -> dict[str, Any]:
        return {
            "parts": str(len(self.design.axes) + 2),
            "squares": str(_squares(self.design)),
            "unit": str(1 << 2 * STEPS - self.shift),
            "noise": write_noise(self.noise),
        }

    def written(self) -> dict[str, Any]:
        return {
            "design": self.design.written(),
            "axes": write_axes(self.axes),
            "mass": self.mass.written(),
            "shift": str(self.shift),
            "ridge": str(self.ridge),
            "noise": write_noise(self.noise),
        }

    def fit(self, cells: Cells) -> Fit:
        """The released model, of v (the label between -1 and 1) on z."""
        unit = 1 / ((1 << 2 * STEPS - self.shift) * self.mass.whole)
        return solve(self.design, cells * unit, standard_error(self.noise) * unit, float(self.ridge))


def read_moments(part: dict[str, Any]) -> Moments:
    return Moments(
        Design.read(part["design"]),
        read_axes(part["axes"]),
        UnitMass.read(part["mass"]),
        int(part["shift"]),
        Fraction(part["ridge"]),
        read_noise(part["noise"]),
    )


def moments_under_epsilon(design: Design, axes: Axes, mass: UnitMass, ridge: Fraction, epsilon: Fraction) -> Moments:
    """The least noise that is charged at most `epsilon`."""
    finest = moments_move(design, mass, 0)
    shift = _shift(finest.l1 / epsilon)
    return Moments(design, axes, mass, shift, ridge, calibrate_laplace(moments_move(design, mass, shift), epsilon))


def moments_under_rho(design: Design, axes: Axes, mass: UnitMass, ridge: Fraction, rho: Fraction) -> Moments:
    """The least noise that is charged at most `rho`."""
    finest = moments_move(design, mass, 0)
    shift = _shift(root_at_least(finest.l2_squared / (2 * rho)))
    return Moments(design, axes, mass, shift, ridge, calibrate_gaussian(moments_move(design, mass, shift), rho))


def _shift(scale: Fraction) -> int:
    return min(2 * STEPS - _LEAST, max(0, int(scale).bit_length() - _AIM))


def _squares(design: Design) -> int:
    """Of the intercept, the scales and the label."""
    return 2 + sum(isinstance(axis, Scale) for axis in design.axes)


def moments_move(design: Design, mass: UnitMass, shift: int) -> Sensitivity:
    """How far neighbors move the sums."""
    parts = len(design.axes) + 2
    row = parts * (parts - 1) // 2 + _squares(design)
    far = mass.l1 << 2 * STEPS - shift
    return Sensitivity(far * row, far**2 * row, far)


def pairs(design: Design) -> list[Pair]:
    """Whose products are summed: columns of (intercept, features, label)."""
    blocks, squares, start = [(0, 1)], [0], 1
    for axis in design.axes:
        blocks.append((start, start + axis.width))
        squares += [start] if isinstance(axis, Scale) else []
        start += axis.width
    blocks.append((start, start + 1))
    squares.append(start)
    crossed = [(i, j) for (a, b), (c, d) in combinations(blocks, 2) for i in range(a, b) for j in range(c, d)]
    return [(i, i) for i in squares] + crossed


def sums_of(study: Moments, tally: Tally) -> list[int]:
    """The exact sums, clipped to +-2^62, which moves no two further apart."""
    where = pairs(study.design)
    sums = [0] * len(where)
    for part in chunks(len(tally.weights)):
        label = Scale(study.axes.sizes[0]).numerators(tally.codes[part, 0])
        columns = np.concatenate([study.design.numerators(tally.codes[part, 1:]), label], axis=1)
        # Python's integers where 64 bits might not hold a sum.
        fits = sum(tally.weights[part].tolist()) << (2 * STEPS - study.shift) <= _MOST
        weights = tally.weights[part] if fits else tally.weights[part].astype(object)
        for place, (i, j) in enumerate(where):
            beat()
            sums[place] += int(_products(columns, i, j, study.shift) @ weights)
    return [_clip(one) for one in sums]


def _products(columns: Whole, i: int, j: int, shift: int) -> Whole:
    product = columns[:, i] * columns[:, j]
    shrunk: Whole = np.sign(product) * (np.abs(product) >> shift)
    return shrunk


def _clip(value: int) -> int:
    return max(-_MOST, min(_MOST, value))


# --- after the noise -------------------------------------------------------------------------------------------------


def solve(design: Design, moments: Floats, noise: float, ridge: float) -> Fit:
    """Coefficients from noisy moments, with the standard errors that noise and residuals give.

    Directions that change no prediction are left at 0. The matrix of the features is made positive: eigenvalues below
    what the noise alone may give (its standard error times the root of the width) are raised to that, which is a ridge
    where the rows say too little. The errors take that matrix as given and rows as independent.
    """
    d = design.width
    full = np.zeros((d + 1, d + 1))
    where = pairs(design)
    for (i, j), value in zip(where, moments, strict=True):
        full[i, j] = full[j, i] = value
    _restore_categories(design, full)
    rows = max(1.0, full[0, 0])
    basis = _free_directions(design)
    values, vectors = np.linalg.eigh(basis.T @ full[:d, :d] @ basis)
    vectors = basis @ vectors
    held = np.maximum(values, noise * d**0.5) + ridge * rows
    inverse: Floats = (vectors / held) @ vectors.T
    w = inverse @ full[:d, d]
    residual = max(0.0, full[d, d] - 2 * w @ full[:d, d] + w @ full[:d, :d] @ w) / max(1.0, rows - d)
    spread = _spread(design, where, w)
    matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T
    covariance = inverse @ (noise**2 * spread @ spread.T + residual * matrix) @ inverse
    return Fit(w, covariance)


def _free_directions(design: Design) -> Floats:
    """A basis of the coefficients without those directions that change no prediction.

    The categories of an axis add up to the intercept: to give to it and to take from all of them is nothing.
    """
    d, start = design.width, 1
    idle: list[Floats] = []
    for axis in design.axes:
        if not isinstance(axis, Scale):
            direction = np.zeros(d)
            direction[0], direction[start : start + axis.width] = 1.0, -1.0
            idle.append(direction)
        start += axis.width
    if not idle:
        return np.eye(d)
    whole, _ = np.linalg.qr(np.stack(idle, axis=1), mode="complete")
    free: Floats = whole[:, len(idle) :]
    return free


def _restore_categories(design: Design, full: Floats) -> None:
    """A category's square is its product with the intercept."""
    start = 1
    for axis in design.axes:
        if not isinstance(axis, Scale):
            for i in range(start, start + axis.width):
                full[i, i] = full[0, i]
        start += axis.width


def _spread(design: Design, where: list[Pair], w: Floats) -> Floats:
    """How the noise of each cell enters X'v - X'X w."""
    d = design.width
    scales = {i for i, j in where if i == j}
    spread = np.zeros((d, len(where)))
    for place, (i, j) in enumerate(where):
        if j == d:
            if i < d:
                spread[i, place] = 1.0
            continue
        spread[i, place] -= w[j]
        if i != j:
            spread[j, place] -= w[i]
        if i == 0 and j not in scales:
            spread[j, place] -= w[j]
    return spread
