"""Known answers of choices by scores: the exponential mechanism, permute-and-flip, and tempered posteriors."""

import math
from fractions import Fraction as F
from itertools import permutations

import numpy as np
import pytest

from dpsql.privacy.exact import Exact
from dpsql.privacy.noise import Sensitivity
from dpsql.privacy.release import ReleaseSpec, perturb, release_from_bytes, release_to_bytes
from dpsql.privacy.sampling import ExactSampler
from dpsql.privacy.score_selection import (
    LIKELIHOOD_STEPS,
    SHARE_STEPS,
    CellMoves,
    PosteriorDraws,
    Ranking,
    _is_falling_convex,
    calibrate_scale_by_epsilon,
    calibrate_scale_by_rho,
    draw_shares,
    log_penalties,
    penalty_span,
    posterior_penalties,
    rank_candidates,
    score_error,
    score_loss,
)
from tests.support.likeliest_index import likeliest_index

ONE = F(1)


class Best:
    """Takes the best, and remembers how it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[list[int]]]] = []

    def choose(self, penalties: np.ndarray, scale: F) -> np.ndarray:
        self.asked.append(("choose", penalties.tolist()))
        return likeliest_index(penalties)

    def flip(self, penalties: np.ndarray, scale: F) -> np.ndarray:
        self.asked.append(("flip", penalties.tolist()))
        return likeliest_index(penalties)


def exponential(penalties: list[int], scale: float) -> list[float]:
    weights = [math.exp((min(penalties) - p) / scale) for p in penalties]
    return [w / sum(weights) for w in weights]


def permuted(penalties: list[int], scale: float) -> list[float]:
    """Permute-and-flip by its definition: every order, and the first that passes."""
    passes = [math.exp((min(penalties) - p) / scale) for p in penalties]
    result = [0.0] * len(penalties)
    for order in permutations(range(len(penalties))):
        left = 1.0
        for place in order:
            result[place] += left * passes[place] / math.factorial(len(penalties))
            left *= 1 - passes[place]
    return result


def drawn(kind: str, n: int) -> list[float]:
    """Utilities 0, 1, 2 at epsilon 2 and a sensitivity of 1: scale 2 D / epsilon = 1."""
    ranking = Ranking(ONE, 1, kind == "flip", 0)
    chosen = rank_candidates(ranking, np.tile(np.array([0, 1, 2], np.int64), (n, 1)), ExactSampler())
    return (np.bincount(chosen[:, 0], minlength=3) / n).tolist()


def test_known_answers() -> None:
    assert [round(p, 4) for p in exponential([0, -1, -2], 1.0)] == [0.0900, 0.2447, 0.6652]
    assert [round(p, 4) for p in permuted([0, -1, -2], 1.0)] == [0.0594, 0.1756, 0.7650]


def test_draws_have_the_known_answers() -> None:
    assert drawn("choose", 100_000) == pytest.approx([0.0900, 0.2447, 0.6652], abs=0.01)
    assert drawn("flip", 100_000) == pytest.approx([0.0594, 0.1756, 0.7650], abs=0.01)


# --- rankings --------------------------------------------------------------------------------------------------------


def test_candidates_are_peeled() -> None:
    sampler = Best()
    chosen = rank_candidates(Ranking(ONE, 3, False, 0), np.array([[5, 9, 7], [1, 0, 8]]), sampler)
    assert chosen.tolist() == [[1, 2, 0], [2, 0, 1]]
    assert [asked for _, asked in sampler.asked] == [
        [[-5, -9, -7], [-1, 0, -8]],
        [[-5, -7], [-1, 0]],
        [[-5], [0]],
    ]


def test_no_more_candidates_than_there_are() -> None:
    assert rank_candidates(Ranking(ONE, 9, False, 0), np.array([[5, 9]]), Best()).tolist() == [[1, 0]]


def test_cells_at_the_rim_do_not_overflow() -> None:
    cells = np.array([[(1 << 63) - 1, -(1 << 63), 0]])
    assert rank_candidates(Ranking(F(1 << 60), 1, False, 0), cells, ExactSampler()).shape == (1, 1)
    assert rank_candidates(Ranking(ONE, 3, True, 0), cells, ExactSampler()).tolist() == [[0, 2, 1]]


def test_a_release_of_the_best() -> None:
    keys = [("f", "a"), ("f", "b"), ("m", "a"), ("m", "b"), ("m", "c"), ("f", None), ("x", None)]
    exact = Exact(keys, [np.array([3, 8, 5, 4, 9, 100, 1], np.int64)])
    spec = ReleaseSpec((ONE,), (), scores=Ranking(ONE, 2, True, 1))
    sampler = Best()
    release = perturb(exact, spec, sampler)
    assert release.keys == (("f", "b"), ("f", "a"), ("m", "c"), ("m", "a"))
    assert release.cells[0].tolist() == [1, 2, 1, 2]
    assert {kind for kind, _ in sampler.asked} == {"flip"}
    assert release_from_bytes(release_to_bytes(release)) == release


def test_the_candidate_may_stand_anywhere() -> None:
    exact = Exact([("a", 1), ("a", 2), ("b", 1)], [np.array([3, 8, 5], np.int64)])
    release = perturb(exact, ReleaseSpec((ONE,), (), scores=Ranking(ONE, 1, False, 0)), Best())
    assert release.keys == (("b", 1), ("a", 2))


def test_nothing_to_choose_from() -> None:
    empty = Exact([], [np.zeros(0, np.int64)])
    assert perturb(empty, ReleaseSpec((ONE,), (), scores=Ranking(ONE, 1, False, 0)), Best()).keys == ()


# --- what it costs ---------------------------------------------------------------------------------------------------


def moves(one_sided: bool, single: bool = False) -> CellMoves:
    return CellMoves(Sensitivity(12, 60, 5), one_sided, single)


def test_moves_of_scores() -> None:
    assert (moves(True).l1, moves(True).l2_squared) == (12, 60)
    assert (moves(False).l1, moves(False).l2_squared) == (12, 120)
    assert (moves(True, single=True).l1, moves(True, single=True).l2_squared) == (5, 25)
    assert (moves(False, single=True).l1, moves(False, single=True).l2_squared) == (10, 100)
    assert not CellMoves(Sensitivity(1, 1, 1), True, change_one=True).is_one_sided


def test_losses() -> None:
    """The exponential form is charged an eighth, permute-and-flip a half; each round on its own."""
    one = CellMoves(Sensitivity(1, 1, 1), True)
    assert score_loss(Ranking(F(1, 2), 3, False, 0), one).rho == F(3 * 4, 8)
    assert score_loss(Ranking(F(1, 2), 3, True, 0), one).rho == F(3 * 4, 2)
    assert score_loss(Ranking(F(1, 2), 3, True, 0), one).epsilon == 6
    assert calibrate_scale_by_epsilon(3, 1, one, F(6)) == F(1, 2)
    assert calibrate_scale_by_rho(3, 1, one, F(3, 2)) == F(1, 2)
    assert score_error(Ranking(F(2), 1, False, 0), 10) == pytest.approx(2 * math.log(200))


# --- posteriors ------------------------------------------------------------------------------------------------------


def test_logarithms() -> None:
    """For theta in [.05, .95] the bound is 2.99573 for a row, and 11.98293 to change one; ours is the range."""
    assert log_penalties()[50 - 1] / LIKELIHOOD_STEPS == pytest.approx(2.99573, abs=1e-5)
    assert 4 * log_penalties()[50 - 1] / LIKELIHOOD_STEPS == pytest.approx(11.98293, abs=1e-5)
    assert penalty_span(50) / LIKELIHOOD_STEPS == pytest.approx(math.log(19), abs=1e-6)
    assert 2 * penalty_span(50) / LIKELIHOOD_STEPS < 4 * log_penalties()[50 - 1] / LIKELIHOOD_STEPS
    assert log_penalties()[SHARE_STEPS - 1] == 0 and _is_falling_convex(log_penalties())
    assert not _is_falling_convex((5, 4, 2)) and not _is_falling_convex((3, 3, 3))


def mean(drawing: PosteriorDraws, trues: int, falses: int) -> float:
    penalties = posterior_penalties(drawing, np.array([[trues, falses]])).tolist()[0]
    chances = exponential(penalties, float(drawing.scale))
    return sum(p * (drawing.first + place) / SHARE_STEPS for place, p in enumerate(chances))


def test_the_posterior_itself() -> None:
    """Beta(1, 1), 30 of 100: mean .303922 (at a temper of 1, and on a grid that reaches almost 0 and 1)."""
    drawing = PosteriorDraws(F(LIKELIHOOD_STEPS), 1, 1, ONE, ONE, 1)
    assert drawing.likelihood_power == 1
    assert mean(drawing, 30, 70) == pytest.approx(31 / 102, abs=2e-5)
    assert round(31 / 102, 6) == 0.303922


def test_a_prior_is_not_tempered() -> None:
    prior = PosteriorDraws(F(LIKELIHOOD_STEPS) * 50, 1, 1, F(31), F(71), 1)
    assert mean(prior, 0, 0) == pytest.approx(31 / 102, abs=2e-5)
    assert mean(PosteriorDraws(F(LIKELIHOOD_STEPS), 1, 1, F(11), F(21), 1), 20, 50) == pytest.approx(31 / 102, abs=2e-5)


def test_a_weighted_row() -> None:
    heavy = PosteriorDraws(F(LIKELIHOOD_STEPS << 16), 1, 1, ONE, ONE, 1 << 16)
    assert heavy.likelihood_power == 1
    assert mean(heavy, 30 << 16, 70 << 16) == pytest.approx(31 / 102, abs=2e-5)


def test_many_rows_are_exact() -> None:
    drawing = PosteriorDraws(F(LIKELIHOOD_STEPS << 16), 1, 50, ONE, ONE, 1 << 16)
    small, large = np.array([[3 << 10, 7 << 10]]), np.array([[3 << 50, 7 << 50]])
    assert posterior_penalties(drawing, small).dtype == np.int64
    assert (posterior_penalties(drawing, small).astype(object) << 40).tolist() == (
        posterior_penalties(drawing, large).tolist()
    )


def test_a_release_of_draws() -> None:
    exact = Exact([("f",), ("m",)], [np.array([30, 9000]), np.array([70, 0])])
    drawing = PosteriorDraws(F(LIKELIHOOD_STEPS), 3, 50, ONE, ONE, 1)
    spec = ReleaseSpec((F(1, SHARE_STEPS),) * 3, (), scores=drawing)
    release = perturb(exact, spec, Best())
    assert [column.tolist() for column in release.cells] == [[300, 950]] * 3
    assert release_from_bytes(release_to_bytes(release)) == release
    assert [len(column) for column in draw_shares(drawing, np.zeros((0, 2), np.int64), ExactSampler())] == [0, 0, 0]


def test_shares_stay_away_from_the_ends() -> None:
    for first in (0, 500):
        with pytest.raises(ValueError, match="away"):
            PosteriorDraws(ONE, 1, first, ONE, ONE, 1)


def test_scores_stand_alone() -> None:
    with pytest.raises(ValueError, match="grid"):
        ReleaseSpec((ONE, ONE), (), scores=Ranking(ONE, 1, False, 0))
    for change in ({"most": 0}, {"scale": F(0)}, {"place": -1}):
        with pytest.raises(ValueError, match="ranking"):
            Ranking(**{"scale": ONE, "most": 1, "flips": False, "place": 0, **change})  # type: ignore[arg-type]
