"""The minimiser of a regularised logistic loss, with a certificate of how near it is.

    J(w) = sum of a_i ln(1 + exp(-y_i w.x_i)) + (ridge/2) |w|^2 + slope.w,        |x_i| <= 1, y_i = -1 or 1, a_i >= 0.

Stability: J is ridge-strongly convex. A row of weight a has a gradient below a; so rows of weight C that come or go
move the gradient at any place by at most C, and the minimiser by at most C / ridge (Chaudhuri, Monteleoni, Sarwate
2011, Lemma 7, for sums: no count of rows divides it, so none must be public). A w with |grad J(w)| <= tau lies within
tau / ridge of the minimiser. The intercept is among the components of w: left free, it would have no such bound.

Nothing rests on the solver, on the order of its sums or on equal bits on two machines: only on the gradient that is
computed last, at the vector that is returned. Its float error, with u = 2^-53, n tuples and d features:
    features and weights    rounded once each; sigmoid within 8 u, products 3 u: 16 u of each term
    w.x_i                   (d + 2) u |w|, and the sigmoid s errs by as much of s: the slope of ln s is at most 1
    the sum                 in a tree: (log2 n + 1) u of the sum of sizes
    ridge w + slope         4 u of each.
A term is a vector of length a_i s_i at most, so with P the sum of these the errors add up to at most
P u (18 + log2 n + (d + 2) |w|), and twice that is charged.

Law: it never fails, whatever the rows are, but by the owner's limit of time (SOUNDNESS 10): that it did would be an
answer without noise. Where floats cannot certify what they found (very many rows, slopes far out, labels that a hair's
breadth divides), the same steps are made with 80 digits of the exact problem (`decimals`), which certify themselves: J
falls at every step, and is strongly convex.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpsql.base.cancellation import checkpoint
from dpsql.privacy.regression.features import Floats
from dpsql.privacy.sampling import to_decimal
from dpsql.privacy.weighted_rows import iterate_chunks

# The minimiser of a logistic loss with 80 digits: where floats do not certify theirs.
#
# Newton's steps on the exact problem, halved until J falls by a quarter of what its slope promises (Armijo), until the
# gradient is short enough. J is ridge-strongly convex with a Lipschitz Hessian, so the steps end, from every start and
# for all rows. Each operation errs by 10^-79 of its result, and nothing here is larger than 10^30: 80 digits are some
# 40 more than the certificate needs, for as many tuples as there may be.

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


TOLERANCE = Fraction(1, 1 << 12)
"""tau, in weights of whole rows: the minimiser is worth that much less than a row."""

_MAX_STEPS = 200
_MAX_HALVINGS = 50
_ULP = 2.0**-53


@dataclass(frozen=True)
class LogisticProblem:
    """Rows in the unit ball with labels of -1 and 1 and weights in whole rows; what holds and what pulls at w.

    `vectors` gives those of some of the rows.
    """

    vectors: Callable[[slice], Floats]
    labels: Floats
    weights: Floats
    ridge: float
    slope: Floats
    exact: ExactProblem

    def objective_at(self, w: Floats) -> float:
        regularizer = self.ridge / 2 * (w @ w) + self.slope @ w
        return float(regularizer + sum(float(a @ _logistic_losses(y * (x @ w))) for x, y, a in self._iterate_chunks()))

    def gradient_at(self, w: Floats) -> Floats:
        pulls = [_tree_sum(x * (-y * a * _sigmoid(-y * (x @ w)))[:, None]) for x, y, a in self._iterate_chunks()]
        pulled = _tree_sum(np.stack(pulls)) if pulls else np.zeros_like(w)
        return pulled + (self.ridge * w + self.slope)

    def hessian_at(self, w: Floats) -> Floats:
        curvature: Floats = self.ridge * np.eye(len(w))
        for x, _, a in self._iterate_chunks():
            s = _sigmoid(x @ w)
            curvature += (x * (a * s * (1 - s))[:, None]).T @ x
        return curvature

    def _iterate_chunks(self) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Vectors, labels and weights. A chunk has a power of 2 of rows, so sums of sums are still in one tree."""
        for part in iterate_chunks(len(self.labels)):
            yield self.vectors(part), self.labels[part], self.weights[part]

    def gradient_error(self, w: Floats) -> float:
        """A bound on how far `gradient` is off, as a vector."""
        n, d = len(self.labels), len(w)
        size, slope = float(np.linalg.norm(w)), float(np.linalg.norm(self.slope))
        pulls = sum(float(a @ _sigmoid(-y * (x @ w))) for x, y, a in self._iterate_chunks())
        sums = pulls * (18 + math.log2(n + 1) + (d + 2) * size)
        return 2 * _ULP * float(sums + 4 * (self.ridge * size + slope))


def minimize_loss(problem: LogisticProblem, tolerance: Fraction = TOLERANCE) -> list[Fraction]:
    """A w at which the gradient of `problem` is at most `tolerance` long."""
    w = _newton_minimize(problem, tolerance)
    if is_certified(problem, w, problem.gradient_at(w), tolerance):
        return [Fraction(float(component)) for component in w]
    return minimize_exactly(problem.exact, tolerance)


def _newton_minimize(problem: LogisticProblem, tolerance: Fraction) -> Floats:
    """Newton's steps, halved until J falls, or the gradient shrinks where floats no longer tell J's values apart.

    It aims at a tenth of what is certified. Whatever comes of it is certified, or not used.
    """
    w: Floats = np.zeros(len(problem.slope))
    gradient = problem.gradient_at(w)
    with np.errstate(all="ignore"):
        for _ in range(_MAX_STEPS):
            if not float(np.linalg.norm(gradient)) > float(tolerance) / 10:
                break
            try:
                step = np.linalg.solve(problem.hessian_at(w), gradient)
            except np.linalg.LinAlgError:
                break
            moved = _line_search(problem, w, step, gradient)
            if moved is None:
                break
            w, gradient = moved
    return w if np.isfinite(w).all() else np.zeros_like(w)


def is_certified(problem: LogisticProblem, w: Floats, gradient: Floats, tolerance: Fraction) -> bool:
    return bool(float(np.linalg.norm(gradient)) * (1 + 2.0**-40) + problem.gradient_error(w) <= float(tolerance))


def _line_search(problem: LogisticProblem, w: Floats, step: Floats, gradient: Floats) -> tuple[Floats, Floats] | None:
    part, value, length = 1.0, problem.objective_at(w), float(np.linalg.norm(gradient))
    descent = float(gradient @ step)
    for _ in range(_MAX_HALVINGS):
        candidate = w - part * step
        slope = problem.gradient_at(candidate)
        if problem.objective_at(candidate) <= value - part * descent / 4 or float(np.linalg.norm(slope)) < length * (
            1 - part / 10
        ):
            return candidate, slope
        part /= 2
    return None


def _sigmoid(m: Floats) -> Floats:
    """1 / (1 + exp(-m)), which cannot overflow."""
    small = np.exp(-np.abs(m))
    result: Floats = np.where(m >= 0, 1.0, small) / (1 + small)
    return result


def _logistic_losses(margins: Floats) -> Floats:
    """ln(1 + exp(-m)), which cannot overflow."""
    result: Floats = np.log1p(np.exp(-np.abs(margins))) + np.maximum(-margins, 0.0)
    return result


def _tree_sum(terms: Floats) -> Floats:
    """The sum of the rows, two and two, in the order in which they stand."""
    while len(terms) > 1:
        even = len(terms) & ~1
        pairs = terms[:even:2] + terms[1:even:2]
        terms = pairs if even == len(terms) else np.concatenate([pairs, terms[even:]])
    return terms[0] if len(terms) else np.zeros(terms.shape[1])
