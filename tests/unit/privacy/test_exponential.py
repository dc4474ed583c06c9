"""The bin chosen is the level's, its draw has the distribution claimed, and the price is the least that allows it."""

import decimal
import math
from decimal import Decimal
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from dpsql.privacy.exact import Exact
from dpsql.privacy.exponential import (
    Exponential,
    ExtremeTarget,
    Pick,
    Rank,
    Target,
    UnitContribution,
    bin_penalties,
    calibrate_picks_by_epsilon,
    calibrate_picks_by_rho,
    choose_bins,
    picks_loss,
    rank_error,
)
from dpsql.privacy.loss import LossTooSmall, round_down
from dpsql.privacy.noise import SCALE_GRID
from dpsql.privacy.release import BinPicks, ReleaseSpec, perturb
from dpsql.privacy.sampling import MIN_SCALE, ExactSampler
from tests.support.likeliest_index import likeliest_index

MEDIAN, MIN, MAX = Rank(F(1, 2)), ExtremeTarget(False), ExtremeTarget(True)
BINS = 12


def block(*values: int, weight: int = 1) -> np.ndarray:
    return np.bincount(values, minlength=BINS).astype(np.int64)[None, :] * weight


def best(target: Target, weights: np.ndarray) -> int:
    return int(likeliest_index(bin_penalties(target, weights))[0])


# --- scores ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1, 1 << 16])
@pytest.mark.parametrize(
    ("target", "values", "expected"),
    [
        (MEDIAN, (2, 8), 5),  # between the two
        (MEDIAN, (2, 5, 8), 5),
        (MEDIAN, (5, 5, 8), 5),
        (MEDIAN, (5, 5, 5, 8, 8), 5),  # and not in the empty bins beside it
        (MEDIAN, (1, 1, 1, 9, 9, 9), 5),
        (MEDIAN, (0,), 0),
        (MEDIAN, (11,), 11),
        (Rank(F(1, 4)), (1, 3, 5, 7, 9), 3),
        (Rank(F(3, 4)), (1, 3, 5, 7, 9), 7),
        (Rank(F(9, 10)), (1, 3, 5, 7, 9), 9),
        (Rank(F(1, 1000)), (4, 7, 9), 4),
        (MIN, (3, 3, 8), 3),
        (MAX, (3, 3, 8), 8),
        (MIN, (0, 11), 0),
        (MAX, (0, 11), 11),
        (MAX, (4,), 4),
    ],
)
def test_without_noise(target: Target, values: tuple[int, ...], expected: int, weight: int) -> None:
    assert best(target, block(*values, weight=weight)) == expected


def test_rows_are_skipped_at_the_ends() -> None:
    weights = block(2, 3, 3, 9, weight=10)
    assert [best(ExtremeTarget(False, rank), weights) for rank in (0, 9, 10, 29, 30, 39)] == [2, 2, 3, 3, 9, 9]
    assert [best(ExtremeTarget(True, rank), weights) for rank in (0, 9, 10, 29, 30, 39)] == [9, 9, 3, 3, 2, 2]


@given(st.lists(st.integers(0, 5), min_size=BINS, max_size=BINS), st.fractions(F(1, 50), F(49, 50), max_denominator=50))
def test_the_best_bin_holds_the_level(weights: list[int], fraction: F) -> None:
    z = best(Rank(fraction), np.array([weights], np.int64))
    level = fraction * sum(weights)
    best_bins = [i for i in range(BINS) if sum(weights[:i]) <= level <= sum(weights[: i + 1])]
    assert sum(weights) == 0 or z in best_bins


@given(st.lists(st.integers(0, 5), min_size=BINS, max_size=BINS), st.booleans(), st.integers(0, 40))
def test_the_best_bin_holds_the_rank(weights: list[int], high: bool, rank: int) -> None:
    z = best(ExtremeTarget(high, rank), np.array([weights], np.int64))
    outward = weights[z + 1 :] if high else weights[:z]
    assert sum(weights) <= rank or sum(outward) <= rank < sum(outward) + weights[z]


WIDE = Rank(F(10**20 + 1, 3 * 10**20))


@pytest.mark.parametrize("target", [MEDIAN, Rank(F(1, 3)), WIDE, MAX, ExtremeTarget(False, 1 << 80)])
def test_scores_do_not_overflow(target: Target) -> None:
    weights = np.array([[(1 << 62) - 1, 3, (1 << 62) - 1, 0, 1]], np.int64)
    exact = bin_penalties(target, weights.astype(object))
    assert bin_penalties(target, weights).tolist() == exact.tolist()
    small = np.array([[3, 1, 4, 1, 5]], np.int64)
    assert bin_penalties(target, small).tolist() == bin_penalties(target, small.astype(object)).tolist()


def test_impossible_targets() -> None:
    for fraction in (F(0), F(1), F(-1, 2), F(3, 2)):
        with pytest.raises(ValueError, match="strictly between"):
            Rank(fraction)
    with pytest.raises(ValueError, match="not negative"):
        ExtremeTarget(True, -1)
    with pytest.raises(ValueError, match="scale"):
        Exponential(F(0))
    with pytest.raises(ValueError, match="positive"):
        UnitContribution(0, True)


# --- draws -----------------------------------------------------------------------------------------------------------


def probabilities(target: Target, weights: np.ndarray, scale: F) -> list[Decimal]:
    """From the definition of the score, in 40 digits."""
    w, whole = [int(x) for x in weights[0]], int(weights.sum())
    scores = []
    for z in range(len(w)):
        before, upto = F(sum(w[:z])), F(sum(w[: z + 1]))
        match target:
            case Rank(fraction):
                level = fraction * whole
            case ExtremeTarget(high, rank):
                level = rank + F(1, 2)
                if high:
                    before, upto = whole - upto, whole - before
        scores.append(max(before - level, level - upto))
    with decimal.localcontext() as context:
        context.prec = 40
        masses = [(Decimal(x.numerator) / Decimal(x.denominator)).exp() for x in (-s / scale for s in scores)]
        return [mass / sum(masses) for mass in masses]


def p_value(chosen: np.ndarray, expected: list[Decimal]) -> float:
    e = np.array([float(p) for p in expected]) * len(chosen)
    o = np.bincount(chosen, minlength=len(e))
    big = e >= 10
    o, e = (np.append(x[big], x[~big].sum()) for x in (o, e))
    o, e = o[e > 0], e[e > 0]
    return float(chi2.sf(((o - e) ** 2 / e).sum(), len(e) - 1))


@pytest.mark.parametrize(
    ("target", "scale"),
    [(MEDIAN, F(2)), (Rank(F(9, 10)), F(3, 2)), (ExtremeTarget(True, 2), F(2)), (ExtremeTarget(False), F(3))],
)
def test_bins_are_drawn_as_claimed(target: Target, scale: F) -> None:
    weights = block(1, 2, 2, 5, 5, 5, 9, 9)
    keys = [(group, bin_) for group in range(30_000) for bin_ in range(BINS)]
    exact = Exact(keys, [np.tile(weights[0], 30_000)])
    spec = ReleaseSpec((F(1),), (), None, BinPicks((Pick(target, Exponential(scale)),), 0, BINS - 1, 1))
    chosen = perturb(exact, spec, ExactSampler()).cells[0]
    assert p_value(chosen, probabilities(target, weights, scale)) > 1e-7
    assert p_value(chosen, probabilities(target, weights, scale * F(11, 10))) < 1e-7


def test_known_answer() -> None:
    """Utilities 0, 1, 2 at epsilon 2 and sensitivity 1: .0900, .2447, .6652."""
    chosen = ExactSampler().choose(np.tile(np.array([2, 1, 0]), (200_000, 1)), F(1))
    assert np.bincount(chosen) / 200_000 == pytest.approx([0.0900, 0.2447, 0.6652], abs=0.008)


def test_every_block_and_pick_has_a_draw_of_its_own() -> None:
    weights = np.ones((2000, 512), np.int64)
    flat = Pick(MEDIAN, Exponential(F(10**9)))
    one, other = (choose_bins(flat, weights, ExactSampler()) for _ in range(2))
    assert len(set(one.tolist())) > 400
    assert np.mean(one == other) < 0.05


def test_chunks_change_nothing() -> None:
    """Blocks are worked on a few at a time, each with its own weights."""
    rng = np.random.default_rng(3)
    weights = rng.integers(0, 9, (700, 1000))
    pick = Pick(MEDIAN, Exponential(F(1, 1 << 20)))
    near = likeliest_index(bin_penalties(MEDIAN, weights))
    assert np.abs(choose_bins(pick, weights, ExactSampler()) - near).max() <= 10


def test_negative_weights_count_as_none() -> None:
    weights = block(5, 7, 7)
    weights[0, 2] = -(1 << 63)
    assert choose_bins(Pick(MAX, Exponential(F(1, 100))), weights, ExactSampler()).tolist() == [7]


# --- price -----------------------------------------------------------------------------------------------------------

contributions = st.builds(
    UnitContribution,
    st.integers(1, 10**7),
    st.booleans(),
    st.booleans(),
    st.integers(1, 4),
    st.booleans(),
)
targets = st.builds(Rank, st.fractions(F(1, 100), F(99, 100), max_denominator=100)) | st.builds(
    ExtremeTarget, st.booleans()
)
several = st.lists(targets, min_size=1, max_size=4).map(tuple)
shares = st.fractions(F(1, 1000), F(20))


@given(several, contributions, shares)
def test_under_epsilon_is_the_least(targets: tuple[Target, ...], contribution: UnitContribution, share: F) -> None:
    if not contribution.summed and not contribution.single:
        with pytest.raises(ValueError, match="sum of a unit's weights"):
            calibrate_picks_by_epsilon(targets, contribution, 64, share)
        return
    picks = calibrate_picks_by_epsilon(targets, contribution, 64, share)
    loss = picks_loss(picks, contribution)
    assert loss.epsilon is not None and loss.epsilon <= round_down(share)
    assert loss.rho <= loss.epsilon**2 / 8 + F(len(picks), 1 << 80) and loss.delta == 0
    for pick in picks:
        if pick.mechanism.scale > MIN_SCALE:
            sharper = Pick(pick.target, Exponential(pick.mechanism.scale - F(1, SCALE_GRID)))
            more = picks_loss((sharper,), contribution).epsilon
            assert more is not None and more > round_down(share / len(targets))


@given(several, contributions, shares)
def test_under_rho_is_the_least(targets: tuple[Target, ...], contribution: UnitContribution, share: F) -> None:
    picks = calibrate_picks_by_rho(targets, contribution, 64, share)
    loss = picks_loss(picks, contribution)
    assert loss.rho <= round_down(share) and loss.delta == 0
    assert (loss.epsilon is None) == (not contribution.summed and not contribution.single)
    for pick in picks:
        if pick.mechanism.scale > MIN_SCALE:
            sharper = Pick(pick.target, Exponential(pick.mechanism.scale - F(1, SCALE_GRID)))
            assert picks_loss((sharper,), contribution).rho > round_down(share / len(targets))


def test_known_prices() -> None:
    """Of the median at C = 60 and epsilon 1: scale 2 * (1/2) * 60; of an extreme and the ninth decile more."""
    by = UnitContribution(60, summed=True)
    scale = {t: calibrate_picks_by_epsilon((t,), by, 1, F(1))[0].mechanism.scale for t in (MEDIAN, Rank(F(9, 10)), MAX)}
    assert scale == {MEDIAN: 60, Rank(F(9, 10)): 108, MAX: 120}
    assert picks_loss((Pick(MEDIAN, Exponential(F(60))),), by).rho == F(1, 8)
    replaced = UnitContribution(60, summed=True, change_one=True)
    assert calibrate_picks_by_epsilon((MEDIAN, MAX), replaced, 1, F(2))[0].mechanism.scale == 120
    assert calibrate_picks_by_epsilon((MEDIAN, MAX), replaced, 1, F(2))[1].mechanism.scale == 240
    alone = UnitContribution(60, summed=False, single=True, change_one=True, group_size=3)
    assert calibrate_picks_by_epsilon((MAX,), alone, 1, F(1))[0].mechanism.scale == 360
    # Under L2 a unit that moves from one group to another costs the root of 2, not 2; the median costs the same.
    spread = UnitContribution(60, summed=False, change_one=True)
    assert spread.score_l2_squared(MAX) == 2 * 60**2
    assert spread.score_l2_squared(MEDIAN) == 60**2
    assert spread.score_l1(MAX) is None


def test_what_is_skipped_follows_the_scale() -> None:
    by = UnitContribution(20 << 16, summed=True)
    (loose,) = calibrate_picks_by_epsilon((MAX,), by, 1024, F(1))
    assert loose.target == ExtremeTarget(True, math.floor(float(loose.mechanism.scale) * math.log(20 * 1024)))
    (sharp,) = calibrate_picks_by_epsilon((MAX,), by, 1024, F(10**9))
    assert sharp.target == ExtremeTarget(True, 0)
    with decimal.localcontext(decimal.Context(prec=3)):
        assert calibrate_picks_by_epsilon((MAX,), by, 1024, F(1)) == (loose,)


def test_a_share_can_be_too_small() -> None:
    with pytest.raises(LossTooSmall):
        calibrate_picks_by_rho((MEDIAN,), UnitContribution(1, True), 8, F(1, 1 << 90))


@pytest.mark.parametrize("target", [MEDIAN, Rank(F(1, 10)), MAX])
def test_rank_errors_hold(target: Target) -> None:
    """Also on the data that the bound is for: few rows where the level is, and many empty bins."""
    rng = np.random.default_rng(5)
    bins, confidence = 4096, 0.95
    (pick,) = calibrate_picks_by_epsilon((target,), UnitContribution(4, True), bins, F(1))
    limit = rank_error(pick, bins, confidence)
    for rows in (np.full(300, 2000), rng.integers(0, bins, 300), rng.integers(1990, 2010, 300)):
        weights = np.bincount(rows, minlength=bins).astype(np.int64)
        chosen = choose_bins(pick, np.tile(weights, (400, 1)), ExactSampler())
        upto = np.cumsum(weights)
        level = 300 * target.fraction if isinstance(target, Rank) else 300
        off = np.maximum(np.append(0, upto)[chosen] - float(level), float(level) - upto[chosen])
        assert np.mean(off > limit) < 0.11
    assert rank_error(pick, bins, 0.99) > limit > float(pick.mechanism.scale)
    with pytest.raises(ValueError, match="confidence"):
        rank_error(pick, bins, 1.0)


def test_an_extreme_rarely_leaves_the_data() -> None:
    """Nine of ten bins lie beyond the data; what is skipped keeps the choice out of them."""
    bins = 4096
    weights = np.tile(np.bincount(np.arange(4000) % 400, minlength=bins).astype(np.int64), (500, 1))
    (pick,) = calibrate_picks_by_epsilon((MAX,), UnitContribution(2, True), bins, F(1))
    # One in 20 of the best bin's own chance, which the bins beside it share: 1.1 % here, so 6 % are 10 deviations off.
    assert np.mean(choose_bins(pick, weights, ExactSampler()) >= 400) < 0.06
    unskipped = Pick(MAX, pick.mechanism)
    assert np.mean(choose_bins(unskipped, weights, ExactSampler()) >= 400) > 0.8
