"""The minimiser of a logistic loss with 80 digits: where floats do not certify theirs.

Newton's steps on the exact problem, halved until J falls by a quarter of what its slope promises (Armijo), until the
gradient is short enough. J is ridge-strongly convex with a Lipschitz Hessian, so the steps end, from every start and
for all rows. Each operation errs by 10^-79 of its result, and nothing here is larger than 10^30: 80 digits are some 40
more than the certificate needs, for as many tuples as there may be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpsql.privacy.certify import to_decimal
from dpsql.pulse import checkpoint

IntegerArray = npt.NDArray[np.int64]
Vector = list[Decimal]

_EXACT_DIGITS = Context(prec=80, Emax=MAX_EMAX, Emin=MIN_EMIN)
_MAX_MARGIN = Decimal(10) ** 6
"""exp(-m) of a margin beyond it is 0 in any sum that matters, and takes long to write out."""


@dataclass(frozen=True)
class ExactProblem:
    """x = numerators / divisor; labels of 0 and 1, 0 standing for -1; weights in units of which `whole` are a row."""

    numerators: Callable[[], IntegerArray]
    divisor: Fraction
    labels: IntegerArray
    weights: IntegerArray
    whole: int
    ridge: Fraction
    slope: tuple[Fraction, ...]


@dataclass(frozen=True)
class _ExactRows:
    """y_i x_i and the weight of each tuple; what holds and what pulls at w."""

    vectors: list[Vector]
    weights: Vector
    ridge: Decimal
    slope: Vector

    def margins_at(self, w: Vector) -> Vector:
        return [_dot_product(x, w) for x in self.vectors]

    def objective_at(self, w: Vector) -> Decimal:
        losses = Decimal(0)
        for a, m in zip(self.weights, self.margins_at(w), strict=True):
            checkpoint()
            losses += a * _exact_logistic_loss(m)
        return losses + self.ridge / 2 * _dot_product(w, w) + _dot_product(self.slope, w)

    def gradient_at(self, w: Vector) -> Vector:
        result = [self.ridge * component + pull for component, pull in zip(w, self.slope, strict=True)]
        for x, a, m in zip(self.vectors, self.weights, self.margins_at(w), strict=True):
            checkpoint()
            factor = a * _negated_sigmoid(m)
            result = [component - factor * part for component, part in zip(result, x, strict=True)]
        return result

    def hessian_at(self, w: Vector) -> list[Vector]:
        d = len(w)
        result = [[self.ridge if i == j else Decimal(0) for j in range(d)] for i in range(d)]
        for x, a, m in zip(self.vectors, self.weights, self.margins_at(w), strict=True):
            checkpoint()
            curvature = a * _negated_sigmoid(m) * _negated_sigmoid(-m)
            for i in range(d):
                if x[i]:
                    part = curvature * x[i]
                    for j in range(d):
                        result[i][j] += part * x[j]
        return result


def minimize_exactly(problem: ExactProblem, tolerance: Fraction) -> list[Fraction]:
    """A w at which the gradient is at most `tolerance` long."""
    with localcontext(_EXACT_DIGITS):
        rows = _build_exact_rows(problem)
        squared_tolerance = (to_decimal(tolerance) / 2) ** 2
        w = [Decimal(0)] * len(rows.slope)
        gradient = rows.gradient_at(w)
        while _dot_product(gradient, gradient) > squared_tolerance:
            w = _exact_line_search(rows, w, _solve_exactly(rows.hessian_at(w), gradient), gradient)
            gradient = rows.gradient_at(w)
        return [Fraction(component) for component in w]


def _exact_line_search(rows: _ExactRows, w: Vector, step: Vector, gradient: Vector) -> Vector:
    value, slope, part = rows.objective_at(w), _dot_product(gradient, step), Decimal(1)
    while True:
        candidate = [component - part * move for component, move in zip(w, step, strict=True)]
        if rows.objective_at(candidate) <= value - part * slope / 4:
            return candidate
        part /= 2


def _build_exact_rows(problem: ExactProblem) -> _ExactRows:
    unit = to_decimal(1 / problem.divisor)
    signs = [1 if label else -1 for label in problem.labels.tolist()]
    vectors = [[sign * Decimal(value) * unit for value in row]
               for sign, row in zip(signs, problem.numerators().tolist(), strict=True)]  # fmt: skip
    weights = [Decimal(value) / problem.whole for value in problem.weights.tolist()]
    return _ExactRows(vectors, weights, to_decimal(problem.ridge), [to_decimal(value) for value in problem.slope])


def _dot_product(left: Vector, right: Vector) -> Decimal:
    return sum((a * b for a, b in zip(left, right, strict=True) if a and b), Decimal(0))


def _negated_sigmoid(m: Decimal) -> Decimal:
    """1 / (1 + exp(m))."""
    if abs(m) > _MAX_MARGIN:
        return Decimal(0) if m > 0 else Decimal(1)
    small = (-abs(m)).exp()
    return (small if m > 0 else Decimal(1)) / (1 + small)


def _exact_logistic_loss(m: Decimal) -> Decimal:
    """ln(1 + exp(-m))."""
    if abs(m) > _MAX_MARGIN:
        return Decimal(0) if m > 0 else -m
    return (1 + (-abs(m)).exp()).ln() + max(-m, Decimal(0))


def _solve_exactly(matrix: list[Vector], right: Vector) -> Vector:
    """Gauss, of a matrix that is positive definite: no pivot is 0."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    d = len(rows)
    for i in range(d):
        for k in range(i + 1, d):
            factor = rows[k][i] / rows[i][i]
            if factor:
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    solution: Vector = [Decimal(0)] * d
    for i in range(d - 1, -1, -1):
        solution[i] = (rows[i][d] - _dot_product(rows[i][i + 1 : d], solution[i + 1 :])) / rows[i][i]
    return solution
