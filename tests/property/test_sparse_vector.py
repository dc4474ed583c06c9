"""Threshold queries and the holdout keep their epsilon, by exact probabilities of all that they can say on neighbors.

The code is tried by enumerating every draw on a small grid; it says what the formulas below say, and these hold the
claim for more questions and finer noise. Variants that were published as private and are not (Lyu, Su, Li 2017) must be
caught by the same formulas.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction as F
from functools import cache, partial

import numpy as np
import numpy.typing as npt
import pytest

from dpsql.privacy import sparse_vector
from dpsql.privacy.exact import Exact
from dpsql.privacy.release import evaluate_threshold_query
from dpsql.privacy.sparse_vector import (
    SparseVector,
    SparseVectorState,
    ThresholdAnswer,
    ThresholdQuery,
    calibrate_above_threshold,
    calibrate_thresholdout,
)
from tests.support.enumerate_draws import Prescribed, chance_from, chance_of, distribution

Values = tuple[int, ...]
Pattern = tuple[bool, ...]
Draws = npt.NDArray[np.int64]
Chances = npt.NDArray[np.float64]
COUNT = ThresholdQuery(F(1), 1)
MANY = 2000
"""Questions below the threshold."""


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step to the sensitivity: few draws matter, and all can be tried."""
    monkeypatch.setattr(sparse_vector, "SENSITIVITY_STEPS", 1)


def epsilon_of(spec: SparseVector) -> float:
    assert spec.loss.epsilon is not None
    return float(spec.loss.epsilon)


# --- what should be said ---------------------------------------------------------------------------------------------


@cache
def around(scale: F) -> tuple[Draws, Chances]:
    """The draws of the threshold's noise, but for e^-60 of them, and their chances."""
    most = math.ceil(60 * scale)
    draws = np.arange(-most, most + 1)
    return draws, np.array([chance_of(scale, x) for x in draws.tolist()])


@cache
def above(spec: SparseVector, value: int) -> Chances:
    """The chances of an answer above, for each draw of the threshold's noise."""
    draws = around(spec.threshold_scale)[0].tolist()
    return np.array([chance_from(spec.query_scale, math.floor(spec.threshold) + x - value) for x in draws])


def segments(pattern: Pattern) -> list[tuple[int, int]]:
    """From after one answer above to the next, or to the end."""
    ends = [place + 1 for place, said in enumerate(pattern) if said]
    ends += [] if ends and ends[-1] == len(pattern) else [len(pattern)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def one_noise(spec: SparseVector, values: Sequence[int], pattern: Sequence[bool]) -> float:
    """The chance of a pattern if one noise of the threshold is for all of it."""
    chances = around(spec.threshold_scale)[1]
    for value, said in zip(values, pattern, strict=False):
        chances = chances * (above(spec, value) if said else 1 - above(spec, value))
    return float(chances.sum())


def safe(spec: SparseVector, values: Values, pattern: Pattern) -> float:
    """The threshold's noise is drawn anew after each answer above."""
    return math.prod(one_noise(spec, values[a:b], pattern[a:b]) for a, b in segments(pattern))


def patterns(asked: int, answers: int) -> list[Pattern]:
    """All that can be said of so many questions, up to the last answer."""
    return list({_ended(pattern, answers) for pattern in itertools.product((False, True), repeat=asked)})


def _ended(pattern: Pattern, answers: int) -> Pattern:
    total = itertools.accumulate(pattern)
    return tuple(said for said, so_far in zip(pattern, total, strict=True) if so_far - said < answers)


def neighbors(asked: int, change_one: bool) -> list[tuple[Values, Values]]:
    """Values of questions, and what they are with a unit more or less; or with another one in its place."""
    moves = itertools.product((-1, 0, 1), repeat=asked)
    pairs = [((1,) * asked, tuple(1 + by for by in move)) for move in moves if any(move)]
    return pairs if change_one else [(a, b) for a, b in pairs if min(b) >= 1 or max(b) <= 1]


def worst(
    chance: Callable[[Values, Pattern], float], pairs: Sequence[tuple[Values, Values]], said: list[Pattern]
) -> float:
    """The largest log-ratio of anything that can be said."""
    ratios = [
        abs(math.log(one / other)) if one > 0 and other > 0 else math.inf
        for a, b in pairs
        for pattern in said
        for one, other in [(chance(a, pattern), chance(b, pattern))]
        if one > 1e-300 or other > 1e-300
    ]
    return max(ratios)


# --- the code says that ----------------------------------------------------------------------------------------------


def transcript(
    spec: SparseVector, values: Values, question: ThresholdQuery, sampler: Prescribed
) -> tuple[ThresholdAnswer, ...]:
    """All that leaves, until it ends."""
    watch, said = SparseVectorState(spec, sampler), []
    for number, value in enumerate(values, 1):
        verdict = evaluate_threshold_query(Exact([()], [np.array([value], np.int64)]), question, watch, number)
        said.append(verdict)
        if sum(one.above for one in said) == spec.answers:
            break
    return tuple(said)


@pytest.mark.parametrize(("answers", "epsilon", "most"), [(1, 6, 7), (2, 24, 4)])
def test_the_code_says_what_the_formula_says(answers: int, epsilon: int, most: int) -> None:
    for values, limit in (((0, 1), F(1)), ((2, 1), F(3, 2))):
        spec = calibrate_above_threshold(limit, F(1), F(epsilon), answers)
        found = distribution(partial(transcript, spec, values, COUNT), most)
        said = {tuple(one.above for one in verdicts): chance for verdicts, chance in found.items()}
        left_out = 1 - math.fsum(said.values())
        assert 0 <= left_out < 1e-3 and set(said) == set(patterns(2, answers))
        for pattern, chance in said.items():
            assert chance - 1e-12 <= safe(spec, values, pattern) <= chance + left_out + 1e-12


@pytest.mark.parametrize("moved", [-1, 1])
def test_the_holdout_keeps_its_epsilon(moved: int) -> None:
    """By its code: means on both sides of the training set's, with the numbers that are given."""
    for mean, limit in itertools.product((-2, 0, 2), (F(1), F(3, 2))):
        spec, question = calibrate_thresholdout(limit, F(1), F(12), 1), ThresholdQuery(F(1), 1, F(mean))
        one, other = (distribution(partial(transcript, spec, (value,), question), 7) for value in (0, moved))
        missing = max(1 - math.fsum(found.values()) for found in (one, other))
        assert missing < 1e-4
        for a, b in ((one, other), (other, one)):
            excess = sum(max(0.0, p - math.exp(epsilon_of(spec)) * b.get(said, 0.0)) for said, p in a.items())
            assert excess <= missing
        # The noise of the answer alone costs half of it: what it says is not free.
        assert sum(max(0.0, p - math.exp(2) * other.get(said, 0.0)) for said, p in one.items()) > 10 * missing


# --- and that keeps the claim ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("change_one", [False, True], ids=["add_remove", "change_one"])
@pytest.mark.parametrize(("answers", "asked", "epsilon"), [(1, 4, F(1)), (2, 4, F(2)), (1, 3, F(1, 4)), (3, 4, F(6))])
def test_no_transcript_reveals_more_than_epsilon(answers: int, asked: int, epsilon: F, change_one: bool) -> None:
    """Questions that move in the same direction, in opposite ones, and not at all; thresholds beside and on them."""
    for limit in (F(0), F(3, 2), F(6)):
        spec = calibrate_above_threshold(limit, F(1), epsilon, answers)
        ratio = worst(partial(safe, spec), neighbors(asked, change_one), patterns(asked, answers))
        assert ratio <= epsilon_of(spec) * (1 + 1e-9) <= float(epsilon) * (1 + 1e-9)


def far_apart(spec: SparseVector) -> float:
    low, high, pattern = (*(0,) * MANY, 1), (*(1,) * MANY, 0), (*(False,) * MANY, True)
    return math.log(safe(spec, low, pattern) / safe(spec, high, pattern))


def test_the_claim_is_nearly_reached() -> None:
    """Many questions below, and one above, that move against each other: no smaller epsilon would do."""
    assert 0.85 < far_apart(calibrate_above_threshold(F(0), F(1), F(1), 1)) <= 1


def test_values_of_any_grid_move_no_further_than_their_steps() -> None:
    """Rounded down to steps, values that are a sensitivity apart are at most STEPS apart."""
    for steps, worth, cell in itertools.product((1, 3, 64), (F(1, 7), F(2, 3), F(1)), range(-20, 20)):
        l1 = math.floor(1 / worth)
        moved = (math.floor((cell + by) * worth * steps) - math.floor(cell * worth * steps) for by in (-l1, l1))
        assert all(abs(move) <= steps for move in moved)


# --- negative controls: each claims what one answer costs ------------------------------------------------------------

AGAINST = ((*(0,) * 8, *(1,) * 8), (*(1,) * 8, *(0,) * 8))
HALVES = (*(False,) * 8, *(True,) * 8)


def no_noise_on_questions(spec: SparseVector, values: Values, pattern: Pattern) -> float:
    """Stoddard et al. 2014: only the threshold has noise."""
    draws, chances = around(spec.threshold_scale)
    for value, said in zip(values, pattern, strict=True):
        chances = chances * ((value >= draws + math.floor(spec.threshold)) == said)
    return float(chances.sum())


def never_drawn_anew(spec: SparseVector, values: Values, pattern: Pattern) -> float:
    """Chen et al. 2015: any number of answers above, for the price of one, with one noise of the threshold."""
    return one_noise(spec, values, pattern)


def no_noise_on_the_threshold(spec: SparseVector, values: Values, pattern: Pattern) -> float:
    none = len(around(spec.threshold_scale)[0]) // 2
    chances = [float(above(spec, value)[none]) for value in values]
    return math.prod(chance if said else 1 - chance for chance, said in zip(chances, pattern, strict=True))


def gives_the_compared_value(spec: SparseVector, values: Values, pattern: Pattern) -> float:
    """Roth's notes of 2011: after answers below, the noisy number that was compared is given out; here, 1."""
    draws, chances = around(spec.threshold_scale)
    for value in values[:-1]:
        chances = chances * (1 - above(spec, value))
    return float(chances[draws + math.floor(spec.threshold) <= 1].sum()) * chance_of(spec.query_scale, 1 - values[-1])


@pytest.mark.parametrize(
    ("variant", "pair", "pattern"),
    [
        (no_noise_on_questions, ((0, 1), (1, 0)), (False, True)),
        (never_drawn_anew, AGAINST, HALVES),
        (no_noise_on_the_threshold, AGAINST, HALVES),
        (gives_the_compared_value, ((*(1,) * 40, 0), (*(0,) * 40, 0)), (*(False,) * 40, True)),
    ],
)
def test_broken_variants_are_caught(
    variant: Callable[[SparseVector, Values, Pattern], float], pair: tuple[Values, Values], pattern: Pattern
) -> None:
    spec = calibrate_above_threshold(F(1), F(1), F(1), 1)
    assert worst(partial(variant, spec), [pair], [pattern]) > 1.2 * epsilon_of(spec)
    # The safe form, on the same questions, is not.
    ended = _ended(pattern, 1)
    assert worst(lambda values, said: safe(spec, values[: len(said)], said), [pair], [ended]) <= epsilon_of(spec)


@pytest.mark.parametrize("halved", ["threshold_scale", "query_scale"])
def test_half_of_the_noise_is_caught(halved: str) -> None:
    spec = calibrate_above_threshold(F(0), F(1), F(1), 1)
    assert far_apart(replace(spec, **{halved: getattr(spec, halved) / 2})) > 1
