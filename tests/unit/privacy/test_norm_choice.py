"""The choice of a norm from a noisy histogram."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from dpsql.privacy.noise import Gaussian, Laplace
from dpsql.privacy.norm_choice import (
    CellNoise,
    ChosenNorm,
    CountBeside,
    MeanBins,
    MeanHistogram,
    NormBins,
    NormHistogram,
    choose_center,
    choose_norm,
    find_seen_bins,
)

BINS = NormBins(0, 40, 1, True)
DOUBLES = NormBins(-40, 80, 1, False)
NOISE = Laplace(Fraction(10))
CELL = CellNoise(1.0, False, 1, False)


def histogram(counts: dict[int, int], bins: NormBins = BINS, noise: Laplace | Gaussian = NOISE) -> NormHistogram:
    """`counts` by the place of the bin."""
    return NormHistogram(bins, tuple(counts.get(index, 0) for index in range(bins.count)), noise)


# --- which bins are seen ---------------------------------------------------------------------------------------------


def test_nothing_is_seen_in_noise_alone() -> None:
    assert find_seen_bins(histogram({3: 60, 20: -70, 30: 80})) == []
    assert choose_norm(histogram({3: 60, 20: -70, 30: 80}), CELL) is None


def test_the_fullest_bin_is_seen_wherever_it_is() -> None:
    for place in range(DOUBLES.count):
        assert find_seen_bins(histogram({place: 150}, DOUBLES)) == [place]
        assert find_seen_bins(histogram({place: 70}, DOUBLES, Gaussian(Fraction(10)))) == [place]


def test_a_lone_bin_far_up_is_not_seen() -> None:
    near, far = histogram({3: 5_000, 4: 130}), histogram({3: 5_000, 33: 130})
    assert find_seen_bins(near) == [3, 4]
    assert find_seen_bins(far) == [3]


def test_bins_below_the_fullest_are_seen_as_well() -> None:
    assert find_seen_bins(histogram({1: 400, 3: 5_000, 4: 300})) == [1, 3, 4]


def test_a_tail_of_few_heavy_units_is_seen_beside_many_light_ones() -> None:
    """Each of these bins alone is not beyond noise, as the fullest must be; but they lie beside it, one by one."""
    assert find_seen_bins(histogram({7: 60})) == []
    assert find_seen_bins(histogram({3: 5_000, 4: 900, 5: 60, 6: 50, 7: 45})) == [3, 4, 5, 6, 7]
    chosen, cut = (choose_norm(histogram({3: 5_000, 4: 900} | tail), CELL) for tail in ({5: 60, 6: 50, 7: 45}, {}))
    assert chosen is not None and cut is not None and chosen.norm > 2 * cut.norm


def test_a_bin_that_is_skipped_makes_the_next_one_harder_to_see() -> None:
    assert find_seen_bins(histogram({3: 5_000, 5: 60})) == [3, 5]
    assert find_seen_bins(histogram({3: 5_000, 6: 60})) == [3]


@pytest.mark.parametrize("gaussian", [False, True])
def test_empty_bins_beside_units_seldom_raise_the_norm(gaussian: bool) -> None:
    rng = np.random.default_rng(9)
    noise: Laplace | Gaussian = Gaussian(Fraction(10)) if gaussian else NOISE
    exact = np.zeros(DOUBLES.count)
    exact[50] = 5_000
    draws = exact + (rng.normal(0, 10, (4_000, len(exact))) if gaussian else rng.laplace(0, 10, (4_000, len(exact))))
    tops = [find_seen_bins(NormHistogram(DOUBLES, tuple(np.rint(d).astype(int).tolist()), noise))[-1] for d in draws]
    assert np.mean(np.array(tops) > 50) < 0.03
    assert np.mean([4.0 ** (top - 50) for top in tops]) < 1.5  # the square of the error's growth


@pytest.mark.parametrize("gaussian", [False, True])
def test_noise_alone_is_hardly_ever_seen(gaussian: bool) -> None:
    rng = np.random.default_rng(5)
    noise: Laplace | Gaussian = Gaussian(Fraction(10)) if gaussian else NOISE
    draws = rng.normal(0, 10, (4_000, DOUBLES.count)) if gaussian else rng.laplace(0, 10, (4_000, DOUBLES.count))
    seen = [bool(find_seen_bins(NormHistogram(DOUBLES, tuple(np.rint(d).astype(int).tolist()), noise))) for d in draws]
    assert sum(seen) <= 4_000 * 0.002 + 5 * math.sqrt(4_000 * 0.002)


def test_units_in_few_bins_do_not_draw_the_norm_far_up() -> None:
    rng = np.random.default_rng(6)
    exact = np.zeros(DOUBLES.count)
    exact[50:54] = 300
    for drawn in exact + rng.laplace(0, 10, (2_000, DOUBLES.count)):
        seen = find_seen_bins(NormHistogram(DOUBLES, tuple(np.rint(drawn).astype(int).tolist()), NOISE))
        assert set(range(50, 54)) <= set(seen) <= set(range(44, 60))


# --- the norm --------------------------------------------------------------------------------------------------------


def test_known_histograms_give_known_norms() -> None:
    # All units have 1 row, so that the bin above, which is looked at, has none.
    chosen = choose_norm(histogram({0: 10_000}), CELL)
    assert chosen is not None and chosen.norm == 1 and chosen.clipped == 0
    # 10,000 units with 8 to 15 rows lose far more at 12 than the noise of 16 is.
    chosen = choose_norm(histogram({3: 10_000}), CELL)
    assert chosen is not None and chosen.norm == 16 and chosen.clipped == 0
    # With so much noise that nothing else matters, the least norm that is looked at.
    chosen = choose_norm(histogram({3: 10_000}), CellNoise(1e6, False, 1, False))
    assert chosen is not None and chosen.norm == 4 and chosen.clipped > 0


def test_a_bound_of_the_schema_holds() -> None:
    chosen = choose_norm(histogram({3: 10_000}), CELL, largest=Fraction(10))
    assert chosen is not None and chosen.norm == 10


def test_more_groups_share_what_is_lost() -> None:
    counts = histogram({3: 10_000, 4: 3_000, 5: 200})
    norms = []
    for groups in (1, 20, 400):
        chosen = choose_norm(counts, CellNoise(20.0, False, groups, False))
        assert chosen is not None
        norms.append(chosen.norm)
    assert norms == sorted(norms, reverse=True) and norms[0] > norms[-1]


def test_a_divisor_is_scaled_down_further() -> None:
    counts = histogram({3: 10_000, 4: 3_000, 5: 200})
    asked, divides = (choose_norm(counts, CellNoise(20.0, False, 5, False, divides=d)) for d in (False, True))
    assert asked is not None and divides is not None
    assert divides.norm < asked.norm


def test_an_error_is_at_least_the_bias_and_the_noise() -> None:
    for gaussian in (False, True):
        cell = CellNoise(2.0, gaussian, 4, False)
        alone = cell.predicted_error(3.0, 0.0, 1e6)
        assert alone == pytest.approx(6.0 * (math.sqrt(2 / math.pi) if gaussian else 1))
        assert cell.predicted_error(3.0, 4e6, 1e6) == pytest.approx(1e6)
        assert cell.predicted_error(3.0, -5.0, 1e6) == alone


def test_the_clipped_mass_has_no_bias_over_noise() -> None:
    """Norms spread evenly in logarithms, as is assumed; the norm is forced by a bound."""
    rng = np.random.default_rng(7)
    exact = np.zeros(DOUBLES.count)
    exact[45:49] = [4_000, 2_000, 1_000, 500]  # from 2^5 to 2^9
    # A unit of the bin [b, 2b) has b / ln 2 on average, so it loses that less 64.
    true = sum(count * (low / math.log(2) - 64) for count, low in ((2_000, 64), (1_000, 128), (500, 256)))
    found = []
    for drawn in exact + rng.laplace(0, 10, (3_000, DOUBLES.count)):
        counts = tuple(np.rint(drawn).astype(int).tolist())
        chosen = choose_norm(NormHistogram(DOUBLES, counts, NOISE), CellNoise(1e-3, False, 1, False), Fraction(64))
        assert chosen is not None and chosen.norm == 64
        found.append((chosen.clipped, chosen.clipped_error))
    clipped, errors = np.array(found).T
    assert abs(clipped.mean() - true) < 4 * clipped.std() / math.sqrt(len(clipped)) + 0.002 * true
    assert errors.mean() == pytest.approx(clipped.std(), rel=0.1)


def test_norms_are_within_the_bins_that_are_looked_at_and_have_three_digits() -> None:
    rng = random.Random(8)
    for _ in range(300):
        per_doubling, whole = rng.choice((1, 4)), rng.random() < 0.5
        first = 0 if whole else -40 * per_doubling
        bins = NormBins(first, 40 * per_doubling, per_doubling, whole)
        counts = [round(rng.gauss(0, 10)) for _ in range(bins.count)]
        middle = rng.randrange(bins.count)
        for index in range(middle, min(bins.count, middle + 6)):
            counts[index] += round(3_000 * 0.4 ** (index - middle))
        made = NormHistogram(bins, tuple(counts), NOISE)
        cell = CellNoise(10 ** rng.uniform(-3, 3), rng.random() < 0.5, rng.choice((1, 7, 100)), rng.random() < 0.5)
        seen, chosen = find_seen_bins(made), choose_norm(made, cell)
        assert chosen is not None
        low, high = bins.lower_edge(max(0, seen[0] - 1)), bins.upper_edge(min(bins.count - 1, seen[-1] + 1))
        assert low * 0.99 <= chosen.norm <= high * 1.01 + whole
        if whole:
            assert chosen.norm.denominator == 1
        else:
            assert float(f"{float(chosen.norm):.3g}") == pytest.approx(float(chosen.norm), rel=1e-12)
        assert choose_norm(made, cell) == chosen


def test_a_sum_beside_a_count_does_not_scale_the_count_down() -> None:
    """Both are worth their part: the sum's own best norm would take away many of the rows that are counted."""
    counts = histogram({3: 10_000, 4: 3_000, 5: 600}, DOUBLES)
    cell = CellNoise(60.0, False, 1, False, signed=True)
    counted = choose_norm(histogram({3: 13_600}), CELL)
    assert counted is not None
    alone, beside = (choose_norm(counts, cell, beside=b) for b in (None, CountBeside(counted, CELL)))
    assert alone is not None and beside is not None
    assert alone.norm < beside.norm and alone.scaled > 2 * beside.scaled
    # A count that is all noise has no part in it.
    drowned = choose_norm(counts, cell, beside=CountBeside(counted, CellNoise(1e9, False, 1, False)))
    assert drowned == alone


# --- what is said of it ----------------------------------------------------------------------------------------------


def chosen_norm(l2: bool = False, signed: bool = False) -> ChosenNorm:
    return ChosenNorm(Fraction(8), 100.0, 0.0, 900.0, False, l2, signed)


def test_the_share_that_is_clipped() -> None:
    assert chosen_norm().clipped_share == pytest.approx(0.1)
    assert ChosenNorm(Fraction(8), -5.0, 1.0, 900.0, False).clipped_share == 0
    assert ChosenNorm(Fraction(8), -5.0, 1.0, 900.0, False).clipped_above == pytest.approx(1.28)


def test_groups_move_by_their_part_and_by_no_less_than_an_even_one() -> None:
    down, up = chosen_norm().group_shifts(np.array([600.0, 300.0, 0.0]))
    assert down.tolist() == [0, 0, 0]
    assert up == pytest.approx([100 * 2 / 3, 100 / 3, 100 / 3])


def test_signed_groups_move_both_ways() -> None:
    down, up = chosen_norm(signed=True).group_shifts(np.array([600.0, -300.0, 0.0, 1.0]))
    assert down.tolist() == up.tolist()
    assert up == pytest.approx([100 / 4] * 4)
    _, unevenly = chosen_norm(l2=True, signed=True).group_shifts(np.array([600.0, -300.0, 0.0, 1.0]))
    assert unevenly == pytest.approx([100 * 4**0.25 / 4] * 4)


def test_signed_groups_lose_by_their_rows_where_these_are_known() -> None:
    down, up = chosen_norm(signed=True).group_shifts(np.array([6.0, -3.0]), 80.0, np.array([300.0, 100.0]))
    assert down == pytest.approx([60, 40]) and up == pytest.approx([60, 40])  # the small one has an even part


def test_units_in_the_bins_beyond_a_norm_are_scaled_by_so_much_in_all() -> None:
    inside = choose_norm(histogram({3: 900}), CELL, Fraction(4))
    assert inside is not None and inside.norm == 4 and inside.scaled > 0


def test_units_exactly_at_a_whole_norm_are_not_scaled() -> None:
    """Of whole norms only 1 lies in the bin from 1 to 2; of others they lie anywhere in it."""
    ones, threes = histogram({0: 4_000}), histogram({0: 4_000, 1: 3_000})
    assert (chosen := choose_norm(ones, CELL, Fraction(1))) is not None and chosen.norm == 1
    assert chosen.scaled == chosen.clipped == 0
    assert (chosen := choose_norm(threes, CELL, Fraction(1))) is not None
    halves, thirds = 1 / 2, 1 / 3  # norms 2 and 3, as often as they are small
    assert chosen.scaled == pytest.approx(3_000 * (halves * (1 - 1 / 2) + thirds * (1 - 1 / 3)) / (halves + thirds))
    assert (chosen := choose_norm(histogram({40: 4_000}, DOUBLES), CELL, Fraction(1))) is not None
    assert chosen.scaled > 1_000


def test_group_shifts_of_an_l2_norm() -> None:
    _, plain = chosen_norm().group_shifts(np.array([900.0, 450.0, 450.0]))
    _, spread = chosen_norm(l2=True).group_shifts(np.array([900.0, 450.0, 450.0]))
    assert spread == pytest.approx(plain * math.sqrt(3))  # 1,800 over 900 is 2, beyond the root of the groups
    _, most = chosen_norm(l2=True).group_shifts(np.array([500.0, 250.0, 150.0]))
    assert most == pytest.approx([100 * 5 / 9, 100 / 3, 100 / 3])


def test_a_heavy_tail_is_reported() -> None:
    steep, heavy = (choose_norm(histogram(counts), CELL) for counts in ({3: 900, 4: 200}, {3: 900, 4: 600}))
    assert steep is not None and not steep.heavy_tail
    assert heavy is not None and heavy.heavy_tail
    noise = choose_norm(histogram({3: 900, 4: 70, 5: 50}), CELL)  # bins that may well have the noise of their neighbors
    assert noise is not None and not noise.heavy_tail


# --- few units that are spread over several bins ---------------------------------------------------------------------


@pytest.mark.parametrize("noise", [Laplace(Fraction(10)), Gaussian(Fraction(24))])
def test_bins_in_a_row_are_seen_together(noise: Laplace | Gaussian) -> None:
    """No bin alone is beyond noise; two, or four, are."""
    for counts, seen in (({3: 85, 4: 90}, [3, 4]), ({10: 60, 11: 70, 12: 70, 13: 60}, [10, 11, 12, 13])):
        assert find_seen_bins(histogram(counts, noise=noise)) == seen
    assert find_seen_bins(histogram({3: 40, 4: 40, 5: 40, 6: 40}, noise=noise)) == []


# --- centres ---------------------------------------------------------------------------------------------------------

MEANS = MeanBins(78, 1, -18)


def means(counts: dict[int, int], bins: MeanBins = MEANS) -> MeanHistogram:
    """`counts` by the number of the bin, which is negative for negative means."""
    return MeanHistogram(bins, tuple(counts.get(j, 0) for j in range(-bins.last, bins.last + 1)), NOISE)


def bin_of(mean: float, bins: MeanBins = MEANS) -> int:
    number = math.floor((math.log2(abs(mean)) - bins.power) * bins.per_doubling) + 1
    return number if mean > 0 else -number


@pytest.mark.parametrize("mean", [23.0, -23.0, 2013.0, 0.001, -1e9])
def test_a_centre_lies_in_the_bin_of_the_means(mean: float) -> None:
    center = choose_center(means({bin_of(mean): 500}))
    assert center is not None and bin_of(float(center)) == bin_of(mean)
    assert float(center) == center  # as it is subtracted in doubles


def test_a_centre_is_a_median_and_lies_evenly_within_its_bin() -> None:
    low, high = bin_of(10), bin_of(20)
    assert choose_center(means({low: 300, high: 500})) == pytest.approx(19.2, rel=1e-4)
    assert choose_center(means({low: 300, high: 500, bin_of(1e15): 140})) == pytest.approx(21.44, rel=1e-4)
    assert choose_center(means({bin_of(-3): 500, 0: 10_000, bin_of(3): 500})) == 0


def test_without_a_bin_that_is_seen_there_is_no_centre() -> None:
    assert choose_center(means({3: 60, -20: -70, 30: 80})) is None
    fine = MeanBins(78 * 8, 8, -18)
    assert choose_center(means({bin_of(23, fine): 500}, fine)) == pytest.approx(23, rel=0.1)


@pytest.mark.parametrize("answers", [[], [0.0, 0.0]])
def test_where_all_answers_are_zero_each_group_has_a_shift(answers: list[float]) -> None:
    down, up = chosen_norm().group_shifts(np.array(answers))
    assert down.shape == up.shape == (len(answers),)
