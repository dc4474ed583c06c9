"""No two neighbors tell the candidates apart better than a choice by scores is charged for: exact distributions.

Norms are those of the very units that come, leave or change, so claims are tried at their edge; ratios and divergences
are computed from the whole distributions, in 60 digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction as F
from random import Random

import numpy as np
import pytest

from dpsql.privacy.noise import Sensitivity
from dpsql.privacy.score_selection import (
    LIKELIHOOD_STEPS,
    SHARE_STEPS,
    CellMoves,
    PosteriorDraws,
    Ranking,
    log_penalties,
    posterior_penalties,
    score_loss,
)

TRIALS = 120
ORDERS = (Decimal("1.1"), Decimal(2), Decimal(8), Decimal(100))
TINY = Decimal("1e-40")
Cells = list[list[int]]  # one row for each block


@dataclass(frozen=True)
class Case:
    signed: bool
    single: bool
    group_size: int
    change_one: bool

    def __str__(self) -> str:
        words = ["signed" if self.signed else "counts", "one group" if self.single else "groups"]
        return ", ".join([*words, f"k={self.group_size}", "change_one" if self.change_one else "add_remove"])


CASES = [Case(s, o, k, c) for s in (True, False) for o in (True, False) for k in (1, 2) for c in (False, True)]


def unit(rng: Random, case: Case, blocks: int, columns: int) -> Cells:
    cells = [[0] * columns for _ in range(blocks)]
    spread = rng.randrange(3)
    for block in [rng.randrange(blocks)] if spread < 2 else range(blocks):
        for _ in range(1 + (spread == 1)):
            sign = rng.choice((1, -1)) if case.signed else 1
            cells[block][rng.randrange(columns)] += sign * rng.choice((1, 3, 10))
    return cells


def plus(*worlds: Cells) -> Cells:
    return [[sum(cell) for cell in zip(*rows, strict=True)] for rows in zip(*worlds, strict=True)]


def norms(units: list[Cells], case: Case) -> Sensitivity:
    """As the plan claims them: of one unit, times what neighbors and group size make of it."""
    flat = [[cell for row in cells for cell in row] for cells in units]
    k, signed = case.group_size, case.signed
    first, square, most = (2, 4 if signed else 2, 2 if signed else 1) if case.change_one else (1, 1, 1)
    l1 = max(sum(map(abs, cells)) for cells in flat) * first * k
    l2_squared = max(sum(cell**2 for cell in cells) for cells in flat) * square * k**2
    return Sensitivity(max(1, l1), max(1, l2_squared), max(1, max(max(map(abs, cells)) for cells in flat) * most * k))


def neighbors(rng: Random, case: Case, columns: int) -> tuple[Cells, Cells, CellMoves]:
    blocks = 1 if case.single else rng.randrange(1, 4)
    nothing = [[0] * columns for _ in range(blocks)]
    one = other = [[rng.choice((0, 5, 40)) for _ in range(columns)] for _ in range(blocks)]
    seen = [nothing]
    for _ in range(case.group_size):
        out, into = unit(rng, case, blocks, columns), unit(rng, case, blocks, columns)
        if not case.change_one:
            out, into = (out, nothing) if rng.random() < 0.5 else (nothing, into)
        one, other = plus(one, out), plus(other, into)
        seen += [out, into]
    return one, other, CellMoves(norms(seen, case), not case.signed, case.single, case.group_size, case.change_one)


# --- distributions ---------------------------------------------------------------------------------------------------


def exponential(penalties: list[int], scale: F) -> list[Decimal]:
    weights = [(Decimal(min(penalties) - p) * scale.denominator / scale.numerator).exp() for p in penalties]
    return [weight / sum(weights) for weight in weights]


def permuted(penalties: list[int], scale: F) -> list[Decimal]:
    """P(z) = p_z * integral of prod (1 - t p_y): the coefficients of the product, each divided by its power + 1."""
    passes = [(Decimal(min(penalties) - p) * scale.denominator / scale.numerator).exp() for p in penalties]
    result = []
    for place, own in enumerate(passes):
        product = [Decimal(1)]
        for other, chance in enumerate(passes):
            if other != place:
                product = [a - chance * b for a, b in zip([*product, Decimal(0)], [Decimal(0), *product], strict=True)]
        result.append(own * sum((c / (power + 1) for power, c in enumerate(product)), Decimal(0)))
    assert abs(sum(result) - 1) < TINY
    return result


def distribution(ranking: Ranking, cells: list[int]) -> list[Decimal]:
    return (permuted if ranking.flips else exponential)([-cell for cell in cells], ranking.scale)


def lost(scores: Ranking, one: Cells, other: Cells) -> tuple[Decimal, list[Decimal]]:
    """Over all blocks: the largest log-ratio, and the Renyi divergence at each of ORDERS, over its order."""
    epsilon, rho = Decimal(0), [Decimal(0)] * len(ORDERS)
    for ours, theirs in zip(one, other, strict=True):
        p, q = distribution(scores, ours), distribution(scores, theirs)
        logs = [(a / b).ln() for a, b in zip(p, q, strict=True)]
        epsilon += max(map(abs, logs))
        for number, order in enumerate(ORDERS):
            moment = sum((a * ((order - 1) * log).exp() for a, log in zip(p, logs, strict=True)), Decimal(0))
            rho[number] += moment.ln() / (order - 1) / order
    return epsilon, rho


def compare(scores: Ranking, one: Cells, other: Cells, moves: CellMoves) -> tuple[float, float]:
    """Within the charge; gives the parts of it that are lost."""
    loss = score_loss(scores, moves)
    with localcontext() as context:
        context.prec = 60
        epsilon, divergences = lost(scores, one, other)
        charged = [Decimal(x.numerator) / x.denominator for x in (loss.epsilon or F(0), loss.rho)]
        assert epsilon <= charged[0] + TINY
        assert max(divergences) <= charged[1] + TINY
        return float(epsilon / charged[0]), float(max(divergences) / charged[1])


@pytest.mark.parametrize("flips", [False, True], ids=["exponential", "flips"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_best_candidate_distinguishes_two_neighbors(case: Case, flips: bool) -> None:
    rng, tightest = Random(5), 0.0
    for _ in range(TRIALS):
        one, other, moves = neighbors(rng, case, rng.randrange(2, 6))
        ranking = Ranking(F(rng.choice((1, 3, 20))), 1, flips, 0)
        tightest = max(tightest, compare(ranking, one, other, moves)[0])
    assert tightest > 0.5  # the claim is reached, or nearly


POSTERIORS = [case for case in CASES if not case.signed]


@pytest.mark.parametrize("case", POSTERIORS, ids=str)
def test_no_draw_distinguishes_two_neighbors(case: Case) -> None:
    rng, tightest = Random(6), 0.0
    for _ in range(TRIALS):
        one, other, moves = neighbors(rng, case, 2)
        drawing = PosteriorDraws(LIKELIHOOD_STEPS * F(rng.choice((3, 40))), 1, rng.choice((50, 200)), F(2), F(1, 2), 1)
        loss = score_loss(drawing, moves)
        epsilon, rho = posterior_lost(drawing, one, other)
        assert loss.epsilon is not None and epsilon <= float(loss.epsilon) + 1e-9 and rho <= float(loss.rho) + 1e-9
        tightest = max(tightest, epsilon / float(loss.epsilon))
    assert tightest > 0.5


def posterior_lost(drawing: PosteriorDraws, one: Cells, other: Cells) -> tuple[float, float]:
    """In floating point, as there are many shares: the largest log-ratio, and what ranges say of rho."""
    p, q = (_logs(posterior_penalties(drawing, np.array(cells)) / float(drawing.scale)) for cells in (one, other))
    ratios = p - q
    ranges = ratios.max(axis=1) - ratios.min(axis=1)
    return float(np.abs(ratios).max(axis=1).sum()), float((ranges**2).sum() / 8)


def _logs(scores: np.ndarray) -> np.ndarray:
    scores = scores - scores.min(axis=1, keepdims=True)
    return -scores - np.log(np.exp(-scores).sum(axis=1, keepdims=True))


# --- what the charge rests on ----------------------------------------------------------------------------------------


def test_permute_and_flip_is_not_for_an_eighth() -> None:
    """Charged as the exponential mechanism, an eighth of the square, it would lose more than that."""
    moves = CellMoves(Sensitivity(1, 1, 1), True, True)
    flips, smooth = Ranking(F(1), 1, True, 0), Ranking(F(1), 1, False, 0)
    with localcontext() as context:
        context.prec = 60
        _, rho = lost(flips, [[20, 0]], [[19, 0]])
        worst = max(max(lost(flips, [[a, 0]], [[a + 1, 0]])[1]) for a in range(-3, 4))
    assert float(max(rho[0], worst)) > float(score_loss(smooth, moves).rho)


def test_a_signed_move_is_not_one_sided() -> None:
    """One unit takes from one candidate and gives to another: twice the range of a count."""
    one, other = [[0, 0]], [[1, -1]]
    honest = CellMoves(Sensitivity(2, 2, 1), False, True)
    compare(Ranking(F(1), 1, False, 0), one, other, honest)
    with pytest.raises(AssertionError):
        compare(Ranking(F(1), 1, False, 0), one, other, CellMoves(Sensitivity(2, 2, 1), True, True))


def test_an_untruncated_posterior_is_caught() -> None:
    """Beta(1 + k, 1 + n - k) against one row more, a true one: the ratio of densities is theta (n + 2) / (k + 1), which
    has no bound near 0. On grids that reach further down, one row tells ever more than [.05, .95] is charged for."""
    moves = CellMoves(Sensitivity(1, 1, 1), True, True)
    drawings = [
        PosteriorDraws(F(LIKELIHOOD_STEPS), 1, first, F(1), F(1), 1) for first in (200, 50, 10, 1)
    ]  # tempers of 1
    losses = [posterior_lost(drawing, [[0, 5]], [[1, 5]])[0] for drawing in drawings]
    charged = [float(score_loss(drawing, moves).epsilon or 0) for drawing in drawings]
    assert losses == sorted(losses) and all(a <= b for a, b in zip(losses, charged, strict=True))
    assert losses[-1] > charged[1] > losses[1]
    with localcontext() as context:
        context.prec = 60
        untruncated = [-(7 * Decimal(10) ** -digits).ln() for digits in (3, 30, 300)]  # n = 5, k = 0, at 10^-digits
    assert [round(x) for x in untruncated] == [5, 67, 689]


def test_the_prior_and_the_grid_are_public() -> None:
    """Neither moves with the rows: penalties of neighbors differ by the table alone."""
    drawing = PosteriorDraws(LIKELIHOOD_STEPS * F(7, 3), 1, 50, F(3), F(1, 3), 1)
    one, other = (posterior_penalties(drawing, np.array([cells])) for cells in ([4, 5], [5, 5]))
    assert (other - one).tolist()[0] == list(log_penalties()[49 : SHARE_STEPS - 50])
