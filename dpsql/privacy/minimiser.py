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
from fractions import Fraction

import numpy as np

from dpsql.privacy.decimals import ExactProblem, minimize_exactly
from dpsql.privacy.design import Floats
from dpsql.privacy.tally import iterate_chunks

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
        if problem.objective_at(candidate) <= value - part * descent / 4 or float(np.linalg.norm(slope)) < length * (1 - part / 10):
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
