"""The losses of selections by scores, medians and sparse vectors, computed again for the checker.

Law: as `checker.py`, independent; it imports nothing of privacy.

A unit's coming, leaving or changing moves the cells by a vector d with the norms of the record, and the scores of the
candidates, which are linear in the cells, with them. What matters is the spread S of these moves in each block: if all
scores move alike, nothing is learned. Of the best of some cells, the scores are the cells: S is at most the difference
of two components of d, |x| + |y| <= |d|_1, and S^2 <= 2 (x^2 + y^2). Where all components have one sign, which is so if
no row adds anything negative and units only come or only leave (or each of a group does the one or the other: spreads
add up), S <= |x|. One block in all: |x|, |y| <= linf.

    epsilon   rounds * sum S / b
    rho       exponential: rounds * sum S^2 / (8 b^2), by bounded range; permute-and-flip: a pure loss e has e^2/2

Draws from a posterior: rows that are true with weight x, false with weight y, move the penalty of theta by
x L(theta) + y L(1 - theta), L = -ln in steps of 1/fine, rounded up. L spans w = L(t) - L(1 - t) over [t, 1 - t], so
S <= w (|x| + |y|); with x >= y >= 0, by convexity, S <= x L(t) + y L(1 - t) - (x + y) L(1 - t) = x w.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class ScoreRecord:
    """`kind` is exponential, flip or posterior; `grid` (first, steps, fine) is of the last only."""

    kind: str
    scale: Fraction
    rounds: int
    l1: int
    l2_squared: int
    linf: int
    group_size: int
    non_negative: bool
    single: bool
    change_one: bool
    grid: tuple[int, int, int] | None


def read_scores(part: dict[str, Any]) -> ScoreRecord:
    """ValueError, KeyError or TypeError if it is not understood to the last name."""
    kind = part["kind"]
    integers, truths = ("rounds", "l1", "l2_squared", "linf", "group_size"), ("non_negative", "single", "change_one")
    names = {"exponential": (), "flip": (), "posterior": ("first", "steps", "fine")}[kind]
    if part.keys() != {"kind", "scale", *integers, *truths, *names}:
        raise ValueError("scores have other names")
    if not all(isinstance(part[name], bool) for name in truths):
        raise ValueError("scores have a figure where they need true or false")
    grid = None
    if names:
        grid = (
            _read_score_integer(part["first"]),
            _read_score_integer(part["steps"]),
            _read_score_integer(part["fine"]),
        )
        if 2 * grid[0] >= grid[1]:
            raise ValueError("the shares of a posterior stay away from 0 and 1")
    if (scale := Fraction(part["scale"])) <= 0:
        raise ValueError("a scale is positive")
    rounds, l1, l2_squared, linf, group_size = (_read_score_integer(part[name]) for name in integers)
    signs, single, change_one = (part[name] for name in truths)
    return ScoreRecord(kind, scale, rounds, l1, l2_squared, linf, group_size, signs, single, change_one, grid)


def _read_score_integer(text: Any) -> int:
    if not isinstance(text, str) or (value := Fraction(text)) < 1 or value.denominator != 1:
        raise ValueError("scores have no whole number where they need one")
    return value.numerator


def score_record_loss(scoring: ScoreRecord) -> tuple[Fraction, Fraction]:
    """The epsilon and rho of a selection by scores."""
    both = scoring.change_one or not scoring.non_negative
    spread = scoring.l1
    if scoring.single:
        spread = min(spread, scoring.linf + scoring.linf if both else scoring.linf)
    square = min(spread * spread, scoring.l2_squared + scoring.l2_squared if both else scoring.l2_squared)
    width = 1 if scoring.grid is None else _penalty_width(*scoring.grid)
    rate = width / scoring.scale
    each = rate * rate * square / 2
    if scoring.kind != "flip":
        each /= 4
    return scoring.rounds * spread * rate, scoring.rounds * each


def _penalty_width(first: int, steps: int, fine: int) -> int:
    with localcontext(Context(prec=60)):
        high, low = (fine * (Decimal(steps) / Decimal(at)).ln() for at in (first, steps - first))
        return int(high.to_integral_value(ROUND_CEILING)) - int(low.to_integral_value(ROUND_CEILING))


# --- medians by their local sensitivity ------------------------------------------------------------------------------
#
# Neighbors differ in at most `blocks` blocks, in each by at most `steps` values that come or go.
#
#     smooth      Noise of scale 2S/epsilon, S a bound on the local sensitivity that falls off by e^-rate for each step:
#                 scales of neighbors are within a factor 1 + h, h = e^(steps rate) - 1. Shifting costs e^(epsilon/2).
#                 Stretching costs e^(epsilon/2) but where |x| > y = b epsilon/(2h), which the wider of both exceeds
#                 with probability 2 q^(floor(y) + 1)/(1 + q) < 2 e^(-y/b) = 2 e^(-epsilon/(2h)). So (epsilon,
#                 delta)-DP, which is delta-approximate (epsilon^2/2)-zCDP: with probability 1 - delta a pure epsilon.
#     ptr         Two Laplace draws of epsilon each, if the median moves by at most what was proposed: rho = epsilon^2.
#                 Else the distance is 0 on both sides, and both are silent unless Y > limit, Y of scale steps/epsilon.

_DECIMAL_CONTEXT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)


@dataclass(frozen=True)
class SmoothMedianRecord:
    epsilon: Fraction
    rate: Fraction
    steps: int
    blocks: int

    @property
    def loss_figures(self) -> tuple[Fraction, Fraction]:
        """The rho and delta that it loses."""
        with localcontext(_DECIMAL_CONTEXT):
            grown = _to_decimal(self.steps * self.rate).exp() - 1
            delta = 2 * (-_to_decimal(self.epsilon) / (2 * grown)).exp()
        return self.blocks * self.epsilon**2 / 2, min(Fraction(1), self.blocks * Fraction(delta))


@dataclass(frozen=True)
class PtrMedianRecord:
    epsilon: Fraction
    proposal: int
    limit: int
    steps: int
    blocks: int

    @property
    def loss_figures(self) -> tuple[Fraction, Fraction]:
        """The rho and delta that it loses."""
        with localcontext(_DECIMAL_CONTEXT):  # q^(limit + 1) / (1 + q): a geometric series over another
            rate = _to_decimal(-self.epsilon / self.steps)
            delta = ((self.limit + 1) * rate).exp() / (1 + rate.exp())
        return self.blocks * self.epsilon**2, min(Fraction(1), self.blocks * Fraction(delta))


LocalMedianRecord = SmoothMedianRecord | PtrMedianRecord


def read_median(part: dict[str, Any], weights: dict[str, Any]) -> LocalMedianRecord:
    """ValueError, KeyError or TypeError if it is not understood to the last name, or says that neighbors differ by less
    than units with these weights, one value in each of `norm` groups, can make them."""
    steps = _read_median_figure(weights["group_size"]) * (2 if weights["change_one"] else 1)
    blocks = Fraction(1) if weights["single"] else max(steps, _read_median_figure(weights["norm"]))
    names = {"smooth": ("rate",), "ptr": ("proposal", "limit")}[part["kind"]]
    if part.keys() != {"kind", "epsilon", "steps", "blocks", *names}:
        raise ValueError("a median has other names")
    figures = {name: _read_median_figure(part[name]) for name in ("epsilon", "steps", "blocks", *names)}
    if any(figures[name].denominator != 1 for name in figures if name not in ("epsilon", "rate")):
        raise ValueError("a median has a fraction where it needs a whole number")
    if figures["steps"] < steps or figures["blocks"] < blocks:
        raise ValueError("a median is said to move less than its neighbors do")
    epsilon, moved = figures["epsilon"], (int(figures["steps"]), int(figures["blocks"]))
    if part["kind"] == "smooth":
        return SmoothMedianRecord(epsilon, figures["rate"], *moved)
    return PtrMedianRecord(epsilon, int(figures["proposal"]), int(figures["limit"]), *moved)


def _read_median_figure(text: Any) -> Fraction:
    if not isinstance(text, str) or (value := Fraction(text)) <= 0:
        raise ValueError("a median has a figure that is no positive number")
    return value


def _to_decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


# --- threshold queries and the holdout -------------------------------------------------------------------------------
#
# One run ends with an answer above the threshold. What is compared moves by at most l1. So does the largest of those
# below, for which the noise of the threshold makes up: l1/threshold_scale. The last one must then come out above a
# threshold that has moved by l1, from a value that has moved by l1: 2 l1/query_scale. A number given with it, of noise
# of its own: l1/answer_scale. Both parts are pure, so their rho is half of their square; all of it for each answer.


@dataclass(frozen=True)
class SparseVectorRecord:
    """Answers above a threshold; `answer_scale` where numbers are given with them."""

    answers: int
    l1: int
    threshold_scale: Fraction
    query_scale: Fraction
    answer_scale: Fraction | None


def read_sparse(part: dict[str, Any]) -> SparseVectorRecord:
    """ValueError, KeyError or TypeError if it is not understood to the last name."""
    gives = {"threshold": False, "thresholdout": True}[part["kind"]]
    names = ["kind", "answers", "l1", "threshold_scale", "query_scale", *["answer_scale"] * gives]
    if part.keys() != set(names):
        raise ValueError("threshold queries have other names")
    answers, l1, threshold, query = (
        _read_sparse_figure(part[name]) for name in ("answers", "l1", "threshold_scale", "query_scale")
    )
    if answers.denominator != 1 or l1.denominator != 1:
        raise ValueError("threshold queries have no whole number where they need one")
    return SparseVectorRecord(
        int(answers), int(l1), threshold, query, _read_sparse_figure(part["answer_scale"]) if gives else None
    )


def sparse_vector_loss(sparse: SparseVectorRecord) -> tuple[Fraction, Fraction]:
    """The epsilon and rho of a sparse vector mechanism."""
    finding = Fraction(sparse.l1) / sparse.threshold_scale + Fraction(2 * sparse.l1) / sparse.query_scale
    telling = Fraction(0) if sparse.answer_scale is None else Fraction(sparse.l1) / sparse.answer_scale
    return sparse.answers * (finding + telling), sparse.answers * (finding**2 + telling**2) / 2


def _read_sparse_figure(text: Any) -> Fraction:
    if not isinstance(text, str) or (value := Fraction(text)) <= 0:
        raise ValueError("threshold queries have no positive number where they need one")
    return value
