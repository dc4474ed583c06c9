"""The fast path decides as exact arithmetic does, on the same bits; a planted float version does not."""

import decimal
import math
import os
import random
from collections.abc import Callable
from fractions import Fraction as F

import numpy as np
import pytest
from scipy.stats import chi2

from dpsql.privacy import sampling
from dpsql.privacy.sampling import (
    ExactSampler,
    is_below_exp,
    laplace_magnitude,
    laplace_offset,
    pick_uniform_index,
    pick_weighted_index,
)
from tests.support.likeliest_index import likeliest_index

SCALES = [F(3, 10), F(1), F(7, 2), F(1000), F(2**20) + F(1, 7), F(2**30), F(2**40)]
WORDS = 3000


def replay(seed: int) -> Callable[[int], bytes]:
    return random.Random(seed).randbytes


def exact_laplace(words: np.ndarray, scale: F) -> np.ndarray:
    sizes = [laplace_magnitude(int(word) >> 1, 63, scale, os.urandom) for word in words]
    return np.array([-size if int(word) & 1 else size for size, word in zip(sizes, words, strict=True)])


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_laplace_same_bits(scale: F) -> None:
    words = np.frombuffer(replay(1)(8 * WORDS), "<u8")
    assert np.array_equal(ExactSampler(replay(1)).laplace(WORDS, scale), exact_laplace(words, scale))


def test_same_bits_has_teeth() -> None:
    """A plain float evaluation of the same formula is seen to be wrong by the test above."""
    scale, words = F(2**40), np.frombuffer(replay(1)(8 * WORDS), "<u8")
    u = (words >> np.uint64(1)).astype(np.float64) + 0.5
    naive = np.floor(float(scale) * (63 * math.log(2) - np.log(u)))
    assert np.any(naive != np.abs(exact_laplace(words, scale)))


@pytest.mark.parametrize("scale", [F(3, 10), F(40), F(2**30)], ids=str)
def test_boundary_is_decided_by_more_bits(scale: F) -> None:
    """The word that holds the border between m - 1 and m is decided by the bits that follow it."""
    m = 7
    with decimal.localcontext() as context:
        context.prec = 50
        t = decimal.Decimal(scale.numerator) / scale.denominator
        border = int((laplace_offset(scale) - m / t).exp() * 2**63)
    for word, rest, expected in [
        (border, b"\x00" * 8, m),
        (border, b"\xff" * 8, m - 1),
        (border - 1, b"\xff" * 8, m),
        (border + 1, b"\x00" * 8, m - 1),
    ]:
        stream = iter([(word << 1).to_bytes(8, "little")])
        sampler = ExactSampler(lambda n, stream=stream, rest=rest: next(stream, rest))
        assert sampler.laplace(1, scale)[0] == expected


def test_tiny_words_extend_the_expansion() -> None:
    parts = [bytes(8), bytes(8), (1 << 60).to_bytes(8, "little"), b"\xff" * 8]
    value = ExactSampler(lambda n: parts.pop(0)).laplace(1, F(1000))[0]
    assert value == math.floor(1000 * (float(laplace_offset(F(1000))) + (63 + 64 + 4) * math.log(2)))


@pytest.mark.parametrize("sigma", [F(1, 1024), F(3, 10), F(37, 10), F(1000), F(2**30) + F(1, 3)], ids=str)
def test_gaussian_acceptance_same_bits(sigma: F) -> None:
    constants = sampling._gaussian_constants(sigma)
    proposals = ExactSampler(replay(2)).laplace(WORDS, constants.proposal.exact)
    accepted = ExactSampler(replay(3))._accept_gaussian(proposals, constants)
    words = np.frombuffer(replay(3)(8 * WORDS), "<u8")
    exponents = ((abs(int(y)) - constants.center) ** 2 / (2 * sigma**2) for y in proposals)
    expected = [is_below_exp(int(w), 64, g, os.urandom) for w, g in zip(words, exponents, strict=True)]
    assert accepted.tolist() == expected


def test_doubtful_acceptance_is_decided_by_more_bits() -> None:
    assert is_below_exp(int(math.exp(-1) * 2**10), 10, F(1), lambda n: bytes(n))
    assert not is_below_exp(int(math.exp(-1) * 2**10), 10, F(1), lambda n: b"\xff" * n)


def test_same_bits_same_noise() -> None:
    for draw in (ExactSampler.laplace, ExactSampler.gaussian):
        one, two = (draw(ExactSampler(replay(5)), 100_000, F(5)) for _ in range(2))
        assert np.array_equal(one, two)
        assert one.dtype == np.int64
        assert len(one) == 100_000
        assert len(draw(ExactSampler(), 0, F(5))) == 0


def test_host_decimal_context_does_not_matter() -> None:
    sampling._laplace_constants.cache_clear()
    laplace_offset.cache_clear()
    with decimal.localcontext(decimal.Context(prec=3)):
        coarse = ExactSampler(replay(6)).laplace(1000, F(2**40))
    sampling._laplace_constants.cache_clear()
    laplace_offset.cache_clear()
    assert np.array_equal(coarse, ExactSampler(replay(6)).laplace(1000, F(2**40)))


@pytest.mark.parametrize("scale", [F(0), F(-1), F(1, 1025), F(2**40) + 1])
def test_scale_out_of_range(scale: F) -> None:
    for draw in (ExactSampler().laplace, ExactSampler().gaussian):
        with pytest.raises(ValueError, match="noise scale"):
            draw(1, scale)


def p_value(values: np.ndarray, weights: Callable[[np.ndarray], np.ndarray], reach: int) -> float:
    """Chi-square against P(x) ~ weights(|x|); cells with fewer than 10 expected are joined."""
    support = np.arange(-reach, reach + 1)
    pmf = weights(np.abs(support).astype(float))
    expected = pmf / pmf.sum() * len(values)
    observed = np.bincount(np.clip(values, -reach, reach) + reach, minlength=2 * reach + 1)
    big = expected >= 10
    o, e = (np.append(x[big], x[~big].sum()) for x in (observed, expected))
    o, e = o[e > 0], e[e > 0]
    return float(chi2.sf(((o - e) ** 2 / e).sum(), len(e) - 1))


@pytest.mark.parametrize("scale", [F(3, 10), F(1), F(11, 2)], ids=str)
def test_laplace_pmf(scale: F) -> None:
    values = ExactSampler().laplace(200_000, scale)
    assert p_value(values, lambda x: np.exp(-x / float(scale)), 400) > 1e-7
    assert p_value(values, lambda x: np.exp(-x / (1.05 * float(scale))), 400) < 1e-7


@pytest.mark.parametrize("sigma", [F(3, 10), F(1), F(37, 10)], ids=str)
def test_gaussian_pmf(sigma: F) -> None:
    values = ExactSampler().gaussian(200_000, sigma)
    assert p_value(values, lambda x: np.exp(-((x / float(sigma)) ** 2) / 2), 60) > 1e-7
    assert p_value(values, lambda x: np.exp(-((x / (1.05 * float(sigma))) ** 2) / 2), 60) < 1e-7


# --- choices ---------------------------------------------------------------------------------------------------------

CHOICES = [(F(3, 10), 40), (F(7, 2), 40), (F(10**6), 10**7), (F(2**60), 2**62), (F(1, 1000), 10**6)]


def gaps_of(penalties: np.ndarray) -> list[list[int]]:
    return [[int(x) - int(min(row)) for x in row] for row in penalties]


@pytest.mark.parametrize(("scale", "reach"), CHOICES, ids=str)
@pytest.mark.parametrize("places", [1, 2, 300])
def test_choices_same_bits(scale: F, reach: int, places: int) -> None:
    rng = random.Random(11)
    penalties = np.array([[rng.randrange(-reach, reach + 1) for _ in range(places)] for _ in range(60)])
    words = np.frombuffer(replay(12)(8 * 60), "<u8")
    expected = [
        pick_weighted_index(int(word), 64, gaps, scale, os.urandom)
        for word, gaps in zip(words, gaps_of(penalties), strict=True)
    ]
    for kind in (np.int64, object):
        assert ExactSampler(replay(12)).choose(penalties.astype(kind), scale).tolist() == expected


@pytest.mark.parametrize("place", [1, 7, 250])
def test_a_border_between_choices_is_decided_by_more_bits(place: int) -> None:
    """The word that holds the border before a place is decided by the bits that follow it, and no float is asked."""
    gaps, scale = [i * i % 97 for i in range(300)], F(31)
    with decimal.localcontext() as context:
        context.prec = 50
        weights = [(-decimal.Decimal(gap) / 31).exp() for gap in gaps]
        border = int(sum(weights[:place]) / sum(weights) * 2**64)
    for word, rest, expected in [
        (border, b"\x00" * 8, place - 1),
        (border, b"\xff" * 8, place),
        (border - 1, b"\xff" * 8, place - 1),
        (border + 1, b"\x00" * 8, place),
    ]:
        stream = iter([word.to_bytes(8, "little")])
        sampler = ExactSampler(lambda n, stream=stream, rest=rest: next(stream, rest))
        assert sampler.choose(np.array([gaps]), scale)[0] == expected


def test_a_choice_far_out_is_still_exact() -> None:
    """Weights far below what a float holds are told apart when the bits lead there."""
    far = [0, 2000, 2001, 2002]  # exp(-2000) is below 2^-2885
    with decimal.localcontext() as context:
        context.prec = 1000
        rest = sum((-decimal.Decimal(gap)).exp() for gap in far[1:])
        share = (rest - (-decimal.Decimal(2000)).exp()) / (1 + rest)
        bits = int((1 - share * decimal.Decimal("0.99")) * 2**3200)
    stream = [(bits >> (3200 - 64 * (i + 1)) & (1 << 64) - 1).to_bytes(8, "little") for i in range(50)]
    words = iter(stream)
    assert ExactSampler(lambda n: next(words)).choose(np.array([far]), F(1)).tolist() == [2]


def test_choices_of_equals_are_even() -> None:
    chosen = ExactSampler().choose(np.zeros((200_000, 7), np.int64), F(1, 1000))
    counts = np.bincount(chosen, minlength=7)
    assert chi2.sf(((counts - 200_000 / 7) ** 2 / (200_000 / 7)).sum(), 6) > 1e-7


def test_no_choices() -> None:
    assert ExactSampler().choose(np.zeros((0, 3), np.int64), F(1)).tolist() == []
    with pytest.raises(ValueError, match="scale"):
        ExactSampler().choose(np.zeros((1, 3), np.int64), F(0))


def test_the_likeliest_index() -> None:
    penalties = np.array([[3, 1, 2], [0, 0, 5], [5, 5, 5], [1, 0, 0]])
    assert likeliest_index(penalties).tolist() == [1, 0, 1, 1]
    assert likeliest_index(penalties.astype(object)).tolist() == [1, 0, 1, 1]


# --- permute-and-flip ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "reach"), CHOICES, ids=str)
@pytest.mark.parametrize("places", [1, 2, 50])
def test_flips_same_bits(scale: F, reach: int, places: int) -> None:
    rng = random.Random(11)
    penalties = np.array([[rng.randrange(-reach, reach + 1) for _ in range(places)] for _ in range(60)])
    bits = replay(12)
    words = np.frombuffer(bits(8 * 60 * places), "<u8").reshape(60, places)
    expected = []
    for head, row, gaps in zip(np.frombuffer(bits(8 * 60), "<u8"), words, gaps_of(penalties), strict=True):
        passed = [i for i, gap in enumerate(gaps) if is_below_exp(int(row[i]), 64, gap / scale, os.urandom)]
        expected.append(passed[int(head) * len(passed) >> 64])
    for kind in (np.int64, object):
        assert ExactSampler(replay(12)).flip(penalties.astype(kind), scale).tolist() == expected


def test_a_flip_at_the_border_is_decided_by_more_bits() -> None:
    """Of two places the first is better; the word that holds exp(-gap / scale) is decided by the bits that follow."""
    gap, scale = 5, F(31, 7)
    with decimal.localcontext() as context:
        context.prec = 50
        border = int((-decimal.Decimal(gap) / (decimal.Decimal(31) / 7)).exp() * 2**64)
    last = (2**64 - 1).to_bytes(8, "little")  # of those that passed, the last one
    for word, rest, expected in [(border, b"\x00" * 8, 1), (border, b"\xff" * 8, 0), (border + 1, b"\x00" * 8, 0)]:
        stream = iter([b"\x00" * 8 + word.to_bytes(8, "little")])
        asked = iter([rest] * (word == border) + [last])
        sampler = ExactSampler(lambda n, stream=stream, asked=asked: next(stream, None) or next(asked, b"\x00" * 8))
        assert sampler.flip(np.array([[0, gap]]), scale).tolist() == [expected]


def test_the_best_always_passes() -> None:
    sampler = ExactSampler(lambda n: b"\xff" * n)
    assert sampler.flip(np.array([[9, 3, 8], [4, 4, 4]]), F(1)).tolist()[0] == 1


def test_a_position_among_several_is_uniform() -> None:
    assert [pick_uniform_index(word, 2, 3, lambda n: b"\x00" * n) for word in range(4)] == [0, 0, 1, 2]
    assert [pick_uniform_index(word, 2, 3, lambda n: b"\xff" * n) for word in range(4)] == [0, 1, 2, 2]
    assert pick_uniform_index(5, 3, 1, os.urandom) == 0


def test_no_flips() -> None:
    assert ExactSampler().flip(np.zeros((0, 3), np.int64), F(1)).tolist() == []
    with pytest.raises(ValueError, match="scale"):
        ExactSampler().flip(np.zeros((1, 3), np.int64), F(0))
