"""What a choice by scores loses, worked out again for the checker.

Law: as `checker`, independent; it imports nothing of privacy.

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
from decimal import ROUND_CEILING, Context, Decimal, localcontext
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
        grid = (_read_score_integer(part["first"]), _read_score_integer(part["steps"]), _read_score_integer(part["fine"]))
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
    """Epsilon and rho."""
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
