"""How far noise may move an answer, and the least epsilon that keeps it within what was asked for. Pure.

Claim: `missed` is never below the probability that the noise of an answer is beyond a bound, so an epsilon that is
picked by it keeps its promise. Only answers that are sums of noisy cells have such a figure: their noise does not
depend on rows (SOUNDNESS 11).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from dpsql.calibrate import Calibrated
from dpsql.compiled import Chosen, Counted, Ranked, Responses, TableStep
from dpsql.errors import InvalidParameter, Unsupported
from dpsql.plan.measures import Frequent, SharesPosterior
from dpsql.plan.recipes import (
    BetaPosterior,
    BlockMean,
    Debiased,
    DebiasedMean,
    Evidence,
    Linear,
    Mean,
    NormalPosterior,
    Paired,
    Recipe,
    Variance,
)
from dpsql.privacy.mechanisms import Gaussian, Laplace, Mechanism, scale_of, standard_error
from dpsql.privacy.spec import Spec
from dpsql.privacy.tails import gaussian_tail, laplace_tail, least_integer
from dpsql.settings import Settings
from dpsql.sql.block import ErrorBar
from dpsql.types import Kind, Type

Noise = tuple[tuple[Fraction, Mechanism], ...]
"""The noise of an answer: independent draws, each times what one of its steps is worth in the answer's units."""

Floats = npt.NDArray[np.float64]


def noise_of(recipe: Linear, calibrated: Calibrated) -> Noise:
    return noise_in(recipe, calibrated.columns, calibrated.spec)


def noise_in(recipe: Linear | BlockMean, columns: Sequence[str], spec: Spec) -> Noise:
    """The noise of an answer that is worked out from a release with these columns."""
    grids = dict(zip(columns, spec.grids, strict=True))
    mechanisms = {columns[place]: bundle.mechanism for bundle in spec.bundles for place in bundle.columns}
    return tuple((abs(c * grids[cell]), mechanisms[cell]) for cell, c in recipe.terms)


def spread(noise: Noise) -> float:
    """The standard error of an answer."""
    return math.hypot(*(float(worth) * standard_error(mechanism) for worth, mechanism in noise))


# --- tails -----------------------------------------------------------------------------------------------------------


def missed(noise: Noise, most: Fraction) -> Fraction:
    """At least the probability that the noise is beyond `most`, in the units of the answer."""
    if not noise:
        return Fraction(0)
    if len(noise) == 1:
        ((worth, mechanism),) = noise
        return min(Fraction(1), 2 * _tail(mechanism, int(most / worth) + 1))
    return _summed(noise).missed(most)


def half_width(noise: Noise, miss: Fraction) -> Fraction:
    """A bound that the noise is beyond with a probability of at most `miss`."""
    if not noise:
        return Fraction(0)
    if len(noise) == 1:
        ((worth, mechanism),) = noise
        return worth * (least_integer(lambda m: 2 * _tail(mechanism, m) <= miss, 1) - 1)
    return _summed(noise).half_width(miss)


def _tail(mechanism: Mechanism, m: int) -> Fraction:
    if m > 800 * scale_of(mechanism):
        return Fraction(1, 10**300)  # exp(-800) is less, and takes long to work out
    match mechanism:
        case Laplace(scale):
            return laplace_tail(scale, m)
        case Gaussian(sigma):
            return gaussian_tail(sigma, m)


POINTS = 1 << 9
"""Of the lattice on which draws are added up, per standard error: what rounding to it may hide is counted as error."""
REACH = 20
"""Standard errors that the lattice reaches to each side: beyond are less than 1e-9 of any draw."""
FINE = 1 << 10
"""Noise of more steps is as good as continuous: its steps are counted as error too."""
_LOST = Fraction(1, 10**9)
"""Covers what is beyond the lattice, and the rounding of the convolution."""


class _Summed:
    """The distribution of a sum of draws, on a lattice.

    Claim: each draw is moved by at most half a point of the lattice, and noise of more than FINE steps by one of its
    steps more; so the sum is moved by no more than `slack`.
    """

    def __init__(self, noise: Noise) -> None:
        self.point = spread(noise) / POINTS
        self.size = REACH * POINTS
        steps = (float(worth) if scale_of(mechanism) > FINE else 0.0 for worth, mechanism in noise)
        self.slack = sum(steps) + len(noise) * self.point / 2
        length = 1 << (2 * len(noise) * self.size).bit_length()
        product = np.ones(length // 2 + 1, np.complex128)
        for worth, mechanism in noise:
            product = product * np.fft.rfft(self._draw(float(worth), mechanism), length)
        weights = np.clip(np.fft.irfft(product, length)[: 2 * len(noise) * self.size + 1], 0.0, None)
        center = len(noise) * self.size
        beyond = weights[center:] + weights[center::-1]
        self.tails = np.cumsum(beyond[::-1])[::-1]  # from each point on, to both sides

    def _draw(self, worth: float, mechanism: Mechanism) -> Floats:
        scale = float(scale_of(mechanism))
        if scale > FINE:
            edges: Floats = (np.arange(2 * self.size + 2) - self.size - 0.5) * np.float64(self.point / (worth * scale))
            return np.diff(_normal(edges) if isinstance(mechanism, Gaussian) else _laplace(edges))
        steps = np.arange(-int(40 * scale) - 40, int(40 * scale) + 41, dtype=np.float64)
        sizes = 0.5 * (steps / scale) ** 2 if isinstance(mechanism, Gaussian) else np.abs(steps) / scale
        weights = np.exp(-sizes)
        places = np.rint(np.clip(steps * worth / self.point, -self.size, self.size)).astype(np.int64) + self.size
        return np.bincount(places, weights / weights.sum(), 2 * self.size + 1).astype(np.float64)

    def missed(self, most: Fraction) -> Fraction:
        first = math.floor((float(most) - self.slack) / self.point) + 1
        if first <= 0:
            return Fraction(1)
        tail = Fraction(float(self.tails[first])) if first < len(self.tails) else Fraction(0)
        return min(Fraction(1), tail + _LOST)

    def half_width(self, miss: Fraction) -> Fraction:
        within = np.flatnonzero(self.tails <= float(miss - _LOST))
        first = int(within[0]) if len(within) else len(self.tails)
        return Fraction(self.slack + first * self.point)


@lru_cache(maxsize=64)
def _summed(noise: Noise) -> _Summed:
    return _Summed(noise)


def _normal(edges: Floats) -> Floats:
    return np.array([0.5 * math.erfc(-edge / math.sqrt(2.0)) for edge in edges.tolist()])


def _laplace(edges: Floats) -> Floats:
    tails = 0.5 * np.exp(-np.abs(edges))
    return np.where(edges < 0, tails, 1.0 - tails)


# --- the least epsilon -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Goal:
    """An answer's noise, and how far it may move it."""

    noise: Noise
    most: Fraction


def rounding(type_: Type) -> Fraction:
    """The most that an answer is moved by when it is put in its type."""
    if type_.is_integer:
        return Fraction(1, 2)
    return Fraction(1, 2 * 10 ** (type_.scale or 0)) if type_.kind is Kind.DECIMAL else Fraction(0)


def unrounded(most: Fraction, type_: Type) -> Fraction:
    """How far noise may move an answer that is then rounded to its type, for it to be off by at most `most`.

    Whole numbers that are off by at most 5.7 are off by at most 5, so noise may move them by 5.5.
    """
    half = rounding(type_)
    return most if half == 0 else min(most, (most // (2 * half)) * 2 * half + half)


PLACES = 12 * 900
"""Of the grid of epsilons: all numbers of three digits from 0.000001 to 1000000."""


def epsilon_at(place: int) -> Fraction:
    """
    >>> [str(epsilon_at(place)) for place in (0, 1, 900 * 6, 900 * 6 + 1, PLACES)]
    ['1/1000000', '101/100000000', '1', '101/100', '1000000']
    """
    return (100 + place % 900) * Fraction(10) ** (place // 900 - 8)


def least_epsilon(goals_at: Callable[[Fraction], Sequence[Goal]], miss: Fraction) -> Fraction | None:
    """The least epsilon of the grid at which each goal is missed with a probability of at most `miss`; None: no one.

    Noise falls as epsilon grows. A rough figure says where to look, so that tails are worked out a few times only.
    """
    if not _met(goals_at(epsilon_at(PLACES)), miss):  # what is wrong with the statement at any epsilon is told here
        return None

    def holds(place: int, test: Callable[[Sequence[Goal], Fraction], bool]) -> bool:
        try:
            return test(goals_at(epsilon_at(place)), miss)
        except InvalidParameter:
            return False  # an epsilon that is too small for the noise to be drawn

    rough = _bisect(lambda place: holds(place, _roughly_met), -1, PLACES)
    low, high, step = rough - 1, rough, 1
    while high < PLACES and not holds(high, _met):
        low, high, step = high, min(PLACES, high + step), 2 * step
    step = 1
    while low >= 0 and holds(low, _met):
        low, high, step = max(-1, low - step), low, 2 * step
    return epsilon_at(_bisect(lambda place: holds(place, _met), low, high))


def _bisect(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The least place above `low` for which a monotone condition holds, which it does at `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _met(goals: Sequence[Goal], miss: Fraction) -> bool:
    return all(missed(goal.noise, goal.most) <= miss for goal in goals)


def _roughly_met(goals: Sequence[Goal], miss: Fraction) -> bool:
    factor = NormalDist().inv_cdf(1.0 - float(miss) / 2.0)
    return all(factor * spread(goal.noise) <= goal.most for goal in goals)


# --- what was asked for ----------------------------------------------------------------------------------------------

Name = tuple[str, int]
"""An answer: its release, and its place among the release's measures."""


@dataclass(frozen=True)
class Aims:
    """How far answers may be off, each with this confidence."""

    errors: tuple[tuple[Name, Fraction], ...]
    confidence: Fraction


@dataclass(frozen=True)
class Aimed:
    """An answer that is a sum of noisy cells of a step."""

    step: int
    recipe: Linear

    def goal(self, calibrated: Calibrated, most: Fraction) -> Goal:
        return Goal(noise_of(self.recipe, calibrated), unrounded(most, self.recipe.type))


def aimed_at(
    tables: Sequence[TableStep], bars: tuple[ErrorBar | None, ...], settings: Settings
) -> dict[Name, Aimed]:
    """All answers of a statement; refused where the error of one of them would depend on values."""
    setting = "max_error" if settings.max_error is not None else "max_relative_error"
    if any(bar is not None and bar.measure is None for bar in bars):
        raise _depends(setting, "what is computed from them", "Ask for the aggregates, and compute from the answers.")
    found: dict[Name, Aimed] = {}
    for table in tables:
        for number, answer in enumerate(table.measures):
            found[table.name, number] = Aimed(answer.step, _linear(answer.recipe, setting))
    if setting == "max_relative_error" and not any(bars):
        raise Unsupported(
            "max_relative_error is for COUNT and SUM in the outermost SELECT",
            hint="Write SELECT COUNT(*) … without a SELECT around it, or use max_error.",
        )
    return found


def even_aims(answers: dict[Name, Aimed], settings: Settings) -> Aims:
    """Every answer may be off by `max_error`."""
    assert settings.max_error is not None
    return Aims(tuple((name, settings.max_error) for name in answers), settings.confidence)


def _linear(recipe: Recipe | Chosen | Counted | Ranked | Responses, setting: str) -> Linear:
    divide = "Ask for SUM and COUNT, and divide what is answered."
    match recipe:
        case Linear():
            return recipe
        case Counted(SharesPosterior()) | BetaPosterior() | NormalPosterior():
            raise _depends(setting, "posteriors", "SET epsilon instead.")
        case Counted(Frequent(shape="histogram"), Linear() as counts) if setting == "max_error":
            return counts
        case Mean():
            raise _depends(setting, "averages", divide)
        case Variance() | Paired():
            raise _depends(setting, "variances, correlations and their like", divide)
        case Evidence():
            raise _depends(setting, "BOOL_AND and BOOL_OR", "Ask for COUNT(*) FILTER (WHERE …).")
        case Debiased() | DebiasedMean():
            raise _depends(setting, "debiased answers", "SET epsilon instead.")
        case BlockMean():
            raise _depends(setting, "BLOCKWISE", "SET epsilon instead; EXPLAIN shows the error that is noise's.")
        case Responses():
            raise _depends(setting, "randomized answers", "RANDOMIZED has an epsilon of its own.")
        case Chosen():
            hint = "SET epsilon instead; EXPLAIN shows the error in ranks."
            raise _depends(setting, "quantiles, MIN, MAX and draws", hint)
        case Counted():
            raise _depends(setting, "the most frequent values", "Ask for COUNT(*) with GROUP BY.")
        case Ranked():
            raise _depends(setting, "the best values", "Ask for their scores with GROUP BY.")


def _depends(setting: str, what: str, hint: str) -> Unsupported:
    return Unsupported(f"{setting} is for COUNT and SUM; the error of {what} depends on the values", hint=hint)


def out_of_reach(settings: Settings) -> InvalidParameter:
    return InvalidParameter(
        "no epsilon makes the error that small",
        hint="SET max_error to a larger value."
        if settings.max_error is not None
        else "SET max_relative_error to a larger value.",
    )
