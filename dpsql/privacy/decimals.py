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

from dpsql.privacy.certify import decimal
from dpsql.pulse import beat

Whole = npt.NDArray[np.int64]
Vector = list[Decimal]

_DIGITS = Context(prec=80, Emax=MAX_EMAX, Emin=MIN_EMIN)
_FARTHEST = Decimal(10) ** 6
"""exp(-m) of a margin beyond it is 0 in any sum that matters, and takes long to write out."""


@dataclass(frozen=True)
class ExactProblem:
    """x = numerators / divisor; labels of 0 and 1, 0 standing for -1; weights in units of which `whole` are a row."""

    numerators: Callable[[], Whole]
    divisor: Fraction
    labels: Whole
    weights: Whole
    whole: int
    ridge: Fraction
    slope: tuple[Fraction, ...]


@dataclass(frozen=True)
class _Rows:
    """y_i x_i and the weight of each tuple; what holds and what pulls at w."""

    vectors: list[Vector]
    weights: Vector
    ridge: Decimal
    slope: Vector

    def margins(self, w: Vector) -> Vector:
        return [_dot(x, w) for x in self.vectors]

    def value(self, w: Vector) -> Decimal:
        losses = Decimal(0)
        for a, m in zip(self.weights, self.margins(w), strict=True):
            beat()
            losses += a * _loss(m)
        return losses + self.ridge / 2 * _dot(w, w) + _dot(self.slope, w)

    def gradient(self, w: Vector) -> Vector:
        result = [self.ridge * one + pull for one, pull in zip(w, self.slope, strict=True)]
        for x, a, m in zip(self.vectors, self.weights, self.margins(w), strict=True):
            beat()
            pulled = a * _share(m)
            result = [one - pulled * part for one, part in zip(result, x, strict=True)]
        return result

    def hessian(self, w: Vector) -> list[Vector]:
        d = len(w)
        result = [[self.ridge if i == j else Decimal(0) for j in range(d)] for i in range(d)]
        for x, a, m in zip(self.vectors, self.weights, self.margins(w), strict=True):
            beat()
            curved = a * _share(m) * _share(-m)
            for i in range(d):
                if x[i]:
                    part = curved * x[i]
                    for j in range(d):
                        result[i][j] += part * x[j]
        return result


def descend(problem: ExactProblem, tolerance: Fraction) -> list[Fraction]:
    """A w at which the gradient is at most `tolerance` long."""
    with localcontext(_DIGITS):
        rows = _rows(problem)
        near = (decimal(tolerance) / 2) ** 2
        w = [Decimal(0)] * len(rows.slope)
        gradient = rows.gradient(w)
        while _dot(gradient, gradient) > near:
            w = _lower(rows, w, _solve(rows.hessian(w), gradient), gradient)
            gradient = rows.gradient(w)
        return [Fraction(one) for one in w]


def _lower(rows: _Rows, w: Vector, step: Vector, gradient: Vector) -> Vector:
    value, falls, part = rows.value(w), _dot(gradient, step), Decimal(1)
    while True:
        there = [one - part * move for one, move in zip(w, step, strict=True)]
        if rows.value(there) <= value - part * falls / 4:
            return there
        part /= 2


def _rows(problem: ExactProblem) -> _Rows:
    unit = decimal(1 / problem.divisor)
    signs = [1 if label else -1 for label in problem.labels.tolist()]
    vectors = [[sign * Decimal(one) * unit for one in row]
               for sign, row in zip(signs, problem.numerators().tolist(), strict=True)]  # fmt: skip
    weights = [Decimal(one) / problem.whole for one in problem.weights.tolist()]
    return _Rows(vectors, weights, decimal(problem.ridge), [decimal(one) for one in problem.slope])


def _dot(one: Vector, other: Vector) -> Decimal:
    return sum((a * b for a, b in zip(one, other, strict=True) if a and b), Decimal(0))


def _share(m: Decimal) -> Decimal:
    """1 / (1 + exp(m))."""
    if abs(m) > _FARTHEST:
        return Decimal(0) if m > 0 else Decimal(1)
    small = (-abs(m)).exp()
    return (small if m > 0 else Decimal(1)) / (1 + small)


def _loss(m: Decimal) -> Decimal:
    """ln(1 + exp(-m))."""
    if abs(m) > _FARTHEST:
        return Decimal(0) if m > 0 else -m
    return (1 + (-abs(m)).exp()).ln() + max(-m, Decimal(0))


def _solve(matrix: list[Vector], right: Vector) -> Vector:
    """Gauss, of a matrix that is positive definite: no pivot is 0."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    d = len(rows)
    for i in range(d):
        for k in range(i + 1, d):
            factor = rows[k][i] / rows[i][i]
            if factor:
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    found: Vector = [Decimal(0)] * d
    for i in range(d - 1, -1, -1):
        found[i] = (rows[i][d] - _dot(rows[i][i + 1 : d], found[i + 1 :])) / rows[i][i]
    return found
