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

from dpsql.base.cancellation import checkpoint
from dpsql.privacy.exact import Cells
from dpsql.privacy.loss import Loss
from dpsql.privacy.noise import (
    Mechanism,
    Sensitivity,
    calibrate_gaussian,
    calibrate_laplace,
    draw_noise,
    noise_loss,
    scale_from_square,
    standard_error,
)
from dpsql.privacy.regression.features import FEATURE_BITS, FeatureDesign, Floats, IntegerArray, NumericAxis
from dpsql.privacy.regression.output_perturbation import FittedModel, axes_from_json, axes_to_json, check_axes
from dpsql.privacy.regression.ridge import noise_from_json, noise_to_json
from dpsql.privacy.sampling import Sampler
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRows, iterate_chunks

_MAX_SUM = (1 << 62) - 1
_TARGET_NOISE_BITS = 34
"""Products are coarsened until noise is about 2^_AIM steps, but at least 2^_LEAST steps are left to the largest."""
_MIN_PRODUCT_BITS = 10

ColumnPair = tuple[int, int]


@dataclass(frozen=True)
class NoisyMoments:
    """Noisy sums of products; `ridge` is what is added for each row when they are solved, after the noise."""

    design: FeatureDesign
    axes: Axes
    mass: UnitMass
    shift: int
    ridge: Fraction
    noise: Mechanism

    kind = "moments"
    grids = (Fraction(1),)

    def __post_init__(self) -> None:
        check_axes(self.design, self.axes, self.axes.sizes[0])
        if not 0 <= self.shift <= 2 * FEATURE_BITS - _MIN_PRODUCT_BITS or self.ridge < 0:
            raise ValueError("products keep some of their digits, and a ridge is not negative")

    @property
    def loss(self) -> Loss:
        return noise_loss(self.noise, moments_sensitivity(self.design, self.mass, self.shift))

    @property
    def noise_sizes(self) -> tuple[float, ...]:
        return (standard_error(self.noise) / ((1 << 2 * FEATURE_BITS - self.shift) * self.mass.norm),)

    def perform(self, tally: WeightedRows, sampler: Sampler) -> tuple[Cells, ...]:
        sums = sum_moments(self, tally)
        return (np.array(sums, np.int64) + draw_noise(self.noise, len(sums), sampler),)

    def explain_lines(self) -> tuple[str, ...]:
        error = standard_error(self.noise) / ((1 << 2 * FEATURE_BITS - self.shift) * self.mass.whole)
        return (
            f"linear regression from {len(moment_pairs(self.design))} noisy moments (of features and label "
            "between -1 and 1)",
            f"each moment errs by {error:.3g}; what that makes of coefficients depends on the rows",
        )

    def to_audit_record(self) -> dict[str, Any]:
        return {
            "parts": str(len(self.design.axes) + 2),
            "squares": str(_count_squares(self.design)),
            "unit": str(1 << 2 * FEATURE_BITS - self.shift),
            "noise": noise_to_json(self.noise),
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "design": self.design.to_json(),
            "axes": axes_to_json(self.axes),
            "mass": self.mass.to_json(),
            "shift": str(self.shift),
            "ridge": str(self.ridge),
            "noise": noise_to_json(self.noise),
        }

    def released_model(self, cells: Cells) -> FittedModel:
        """The released model, of v (the label between -1 and 1) on z."""
        unit = 1 / ((1 << 2 * FEATURE_BITS - self.shift) * self.mass.whole)
        return solve_moments(self.design, cells * unit, standard_error(self.noise) * unit, float(self.ridge))


def moments_from_json(part: dict[str, Any]) -> NoisyMoments:
    return NoisyMoments(
        FeatureDesign.from_json(part["design"]),
        axes_from_json(part["axes"]),
        UnitMass.from_json(part["mass"]),
        int(part["shift"]),
        Fraction(part["ridge"]),
        noise_from_json(part["noise"]),
    )


def calibrate_moments_by_epsilon(
    design: FeatureDesign, axes: Axes, mass: UnitMass, ridge: Fraction, epsilon: Fraction
) -> NoisyMoments:
    """The least noise that is charged at most `epsilon`."""
    finest = moments_sensitivity(design, mass, 0)
    shift = _choose_shift(finest.l1 / epsilon)
    return NoisyMoments(
        design, axes, mass, shift, ridge, calibrate_laplace(moments_sensitivity(design, mass, shift), epsilon)
    )


def calibrate_moments_by_rho(
    design: FeatureDesign, axes: Axes, mass: UnitMass, ridge: Fraction, rho: Fraction
) -> NoisyMoments:
    """The least noise that is charged at most `rho`."""
    finest = moments_sensitivity(design, mass, 0)
    shift = _choose_shift(scale_from_square(finest.l2_squared / (2 * rho)))
    return NoisyMoments(
        design, axes, mass, shift, ridge, calibrate_gaussian(moments_sensitivity(design, mass, shift), rho)
    )


def _choose_shift(scale: Fraction) -> int:
    return min(2 * FEATURE_BITS - _MIN_PRODUCT_BITS, max(0, int(scale).bit_length() - _TARGET_NOISE_BITS))


def _count_squares(design: FeatureDesign) -> int:
    """How many squares there are: of the intercept, of each numeric feature and of the label."""
    return 2 + sum(isinstance(axis, NumericAxis) for axis in design.axes)


def moments_sensitivity(design: FeatureDesign, mass: UnitMass, shift: int) -> Sensitivity:
    """How far neighbors move the sums."""
    parts = len(design.axes) + 2
    row_cells = parts * (parts - 1) // 2 + _count_squares(design)
    max_cell = mass.l1 << 2 * FEATURE_BITS - shift
    return Sensitivity(max_cell * row_cells, max_cell**2 * row_cells, max_cell)


def moment_pairs(design: FeatureDesign) -> list[ColumnPair]:
    """Whose products are summed: columns of (intercept, features, label)."""
    blocks, squares, start = [(0, 1)], [0], 1
    for axis in design.axes:
        blocks.append((start, start + axis.width))
        squares += [start] if isinstance(axis, NumericAxis) else []
        start += axis.width
    blocks.append((start, start + 1))
    squares.append(start)
    crossed = [(i, j) for (a, b), (c, d) in combinations(blocks, 2) for i in range(a, b) for j in range(c, d)]
    return [(i, i) for i in squares] + crossed


def sum_moments(mechanism: NoisyMoments, tally: WeightedRows) -> list[int]:
    """The exact sums, clipped to +-2^62, which moves no two further apart."""
    cell_pairs = moment_pairs(mechanism.design)
    sums = [0] * len(cell_pairs)
    for part in iterate_chunks(len(tally.weights)):
        label = NumericAxis(mechanism.axes.sizes[0]).feature_numerators(tally.codes[part, 0])
        columns = np.concatenate([mechanism.design.feature_numerators(tally.codes[part, 1:]), label], axis=1)
        # Python's integers where 64 bits might not hold a sum.
        fits = sum(tally.weights[part].tolist()) << (2 * FEATURE_BITS - mechanism.shift) <= _MAX_SUM
        weights = tally.weights[part] if fits else tally.weights[part].astype(object)
        for index, (i, j) in enumerate(cell_pairs):
            checkpoint()
            sums[index] += int(_shifted_products(columns, i, j, mechanism.shift) @ weights)
    return [_clip_sum(value) for value in sums]


def _shifted_products(columns: IntegerArray, i: int, j: int, shift: int) -> IntegerArray:
    product = columns[:, i] * columns[:, j]
    shrunk: IntegerArray = np.sign(product) * (np.abs(product) >> shift)
    return shrunk


def _clip_sum(value: int) -> int:
    return max(-_MAX_SUM, min(_MAX_SUM, value))


# --- after the noise -------------------------------------------------------------------------------------------------


def solve_moments(design: FeatureDesign, moments: Floats, noise: float, ridge: float) -> FittedModel:
    """Coefficients from noisy moments, with the standard errors that noise and residuals give.

    Directions that change no prediction are left at 0. The matrix of the features is made positive: eigenvalues below
    what the noise alone may give (its standard error times the root of the width) are raised to that, which is a ridge
    where the rows say too little. The errors take that matrix as given and rows as independent.
    """
    d = design.width
    full = np.zeros((d + 1, d + 1))
    cell_pairs = moment_pairs(design)
    for (i, j), value in zip(cell_pairs, moments, strict=True):
        full[i, j] = full[j, i] = value
    _restore_categories(design, full)
    rows = max(1.0, full[0, 0])
    basis = _free_directions(design)
    values, vectors = np.linalg.eigh(basis.T @ full[:d, :d] @ basis)
    vectors = basis @ vectors
    regularized = np.maximum(values, noise * d**0.5) + ridge * rows
    inverse: Floats = (vectors / regularized) @ vectors.T
    w = inverse @ full[:d, d]
    residual = max(0.0, full[d, d] - 2 * w @ full[:d, d] + w @ full[:d, :d] @ w) / max(1.0, rows - d)
    spread = _noise_spread(design, cell_pairs, w)
    matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T
    covariance = inverse @ (noise**2 * spread @ spread.T + residual * matrix) @ inverse
    return FittedModel(w, covariance)


def _free_directions(design: FeatureDesign) -> Floats:
    """A basis of the coefficients without those directions that change no prediction.

    The categories of an axis add up to the intercept: to give to it and to take from all of them is nothing.
    """
    d, start = design.width, 1
    idle: list[Floats] = []
    for axis in design.axes:
        if not isinstance(axis, NumericAxis):
            direction = np.zeros(d)
            direction[0], direction[start : start + axis.width] = 1.0, -1.0
            idle.append(direction)
        start += axis.width
    if not idle:
        return np.eye(d)
    full_basis, _ = np.linalg.qr(np.stack(idle, axis=1), mode="complete")
    free: Floats = full_basis[:, len(idle) :]
    return free


def _restore_categories(design: FeatureDesign, full: Floats) -> None:
    """A category's square is its product with the intercept."""
    start = 1
    for axis in design.axes:
        if not isinstance(axis, NumericAxis):
            for i in range(start, start + axis.width):
                full[i, i] = full[0, i]
        start += axis.width


def _noise_spread(design: FeatureDesign, cell_pairs: list[ColumnPair], w: Floats) -> Floats:
    """How the noise of each cell enters X'v - X'X w."""
    d = design.width
    scales = {i for i, j in cell_pairs if i == j}
    spread = np.zeros((d, len(cell_pairs)))
    for index, (i, j) in enumerate(cell_pairs):
        if j == d:
            if i < d:
                spread[i, index] = 1.0
            continue
        spread[i, index] -= w[j]
        if i != j:
            spread[j, index] -= w[i]
        if i == 0 and j not in scales:
            spread[j, index] -= w[j]
    return spread
