"""A lower bound on the loss that many releases of two neighbors prove, against what is claimed.

Events are picked on one half of the draws and judged on the other, both ways, with Clopper-Pearson bounds. What is
claimed: P(S) <= e^epsilon P'(S) + delta for every event S; with a loss (rho, delta) that holds for each epsilon at
delta plus CKS20's delta of rho. Gaussian noise alone is also held to its own curve, which is sharper: the normal
scores of P(S) and P'(S) differ by at most sqrt(2 rho).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.privacy.loss import Loss
from dpsql.verify.invariants import delta_from_rho

# Bounds on a probability from counted hits, by Clopper and Pearson (1934): sound for every n, however rare the event.
#
# The chance of `hits` or more among n falls short of alpha below `probability_lower_bound`, and that of `hits` or fewer
# above `probability_upper_bound`. Found by bisection on the binomial tail in logarithms; the last step goes outward.

_BISECTIONS = 60
_SLACK = 1e-9
"""Relative: far above the rounding of a tail that is summed in doubles."""


def probability_lower_bound(hits: int, n: int, alpha: float) -> float:
    """A lower bound on the probability, wrong with a chance of at most alpha."""
    if hits == 0:
        return 0.0
    low, high = 0.0, hits / n
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _binomial_tail(hits, n, n, middle) > alpha:
            high = middle
        else:
            low = middle
    return low * (1 - _SLACK)


def probability_upper_bound(hits: int, n: int, alpha: float) -> float:
    """An upper bound on the probability, wrong with a chance of at most alpha."""
    return 1.0 - probability_lower_bound(n - hits, n, alpha)


def _binomial_tail(first: int, last: int, n: int, p: float) -> float:
    """The chance of `first` to `last` hits among n."""
    if p <= 0.0:
        return 0.0
    counts = np.arange(first, last + 1, dtype=np.float64)
    logs = _log_binomials(n)[first : last + 1] + counts * math.log(p) + (n - counts) * math.log1p(-p)
    return float(np.exp(logs).sum())


@lru_cache(maxsize=8)
def _log_binomials(n: int) -> npt.NDArray[np.float64]:
    """The logarithms of the binomial coefficients of n."""
    factorials = np.array([math.lgamma(k + 1) for k in range(n + 1)])
    coefficients: npt.NDArray[np.float64] = factorials[n] - factorials - factorials[::-1]
    return coefficients


ALPHA = 1e-6
"""The chance that a sound template is accused."""
_RATIO_LEVELS = 25
_CONTRAST_QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LossBound:
    """What the draws prove: at least `shown`, of the quantity that is claimed to be at most `claimed`."""

    measure: str
    shown: float
    claimed: float

    @property
    def exceeds_claim(self) -> bool:
        return self.shown > self.claimed


@dataclass(frozen=True)
class ReleaseSamples:
    """Of `n` releases: the logarithm of the likelihood ratio of each, which of them have a key, and contrasts.

    A contrast is the sum or the difference of two cells in units of their noise: noise that is drawn once for both, or
    once with another sign, is gone from it.
    """

    ratio: Floats
    keys: dict[tuple[int, tuple[Any, ...]], Flags]
    contrasts: tuple[Floats, ...]

    def take_slice(self, rows: slice) -> ReleaseSamples:
        keys = {key: flags[rows] for key, flags in self.keys.items()}
        return ReleaseSamples(self.ratio[rows], keys, tuple(contrast[rows] for contrast in self.contrasts))


_Event = Callable[["ReleaseSamples"], Flags]
"""A set of releases: which of many are in it."""


def _candidate_events(both: tuple[ReleaseSamples, ReleaseSamples]) -> list[_Event]:
    pooled = np.concatenate([side.ratio for side in both])
    levels = np.unique(np.quantile(pooled, np.linspace(0, 1, _RATIO_LEVELS + 2)[1:-1]))
    events = [_ratio_above(float(level)) for level in levels] + [_ratio_below(float(level)) for level in levels]
    for key in {*both[0].keys, *both[1].keys}:
        events += [_key_present(key), _key_absent(key)]
    for index, (first, second) in enumerate(zip(both[0].contrasts, both[1].contrasts, strict=True)):
        for level in np.unique(np.quantile(np.concatenate([first, second]), _CONTRAST_QUANTILES)):
            events += [_contrast_above(index, float(level)), _contrast_below(index, float(level))]
    return events


def _contrast_above(index: int, level: float) -> _Event:
    return lambda many: many.contrasts[index] >= level


def _contrast_below(index: int, level: float) -> _Event:
    return lambda many: many.contrasts[index] <= level


def _ratio_above(level: float) -> _Event:
    return lambda many: many.ratio >= level


def _ratio_below(level: float) -> _Event:
    return lambda many: many.ratio <= level


def _key_present(key: tuple[int, tuple[Any, ...]]) -> _Event:
    return lambda many: many.keys.get(key, np.zeros(len(many.ratio), np.bool_))


def _key_absent(key: tuple[int, tuple[Any, ...]]) -> _Event:
    return lambda many: ~many.keys.get(key, np.zeros(len(many.ratio), np.bool_))


def bound_empirical_loss(
    both: tuple[ReleaseSamples, ReleaseSamples], loss: Loss, gaussian: bool
) -> tuple[LossBound, ...]:
    """Both ways; the event and the epsilon are picked on the first half of the draws."""
    n = len(both[0].ratio)
    first, second = (tuple(side.take_slice(part) for side in both) for part in (slice(0, n // 2), slice(n // 2, n)))
    alpha = ALPHA / (4 if gaussian else 2)
    bounds = []
    events = _candidate_events((first[0], first[1]))
    for first_index, second_index in ((0, 1), (1, 0)):
        hits = [(int(e(first[first_index]).sum()), int(e(first[second_index]).sum())) for e in events]
        counts = n // 2
        best, epsilon, delta = _worst_event(hits, counts, loss)
        tested = n - counts
        low = probability_lower_bound(int(events[best](second[first_index]).sum()), tested, alpha / 2)
        high = probability_upper_bound(int(events[best](second[second_index]).sum()), tested, alpha / 2)
        bound = math.log((low - delta) / high) if low > delta else -math.inf
        bounds.append(LossBound(f"epsilon at delta {delta:.3g}", bound, epsilon))
        if gaussian:
            bounds.append(_bound_gaussian_loss(hits, events, second, first_index, second_index, alpha, loss))
    return tuple(sorted(bounds, key=lambda bound: bound.claimed - bound.shown)[: 2 if gaussian else 1])


def _worst_event(hits: list[tuple[int, int]], n: int, loss: Loss) -> tuple[int, float, float]:
    """The event, and the epsilon, at which the first half looks worst against the claim."""
    worst = (-math.inf, 0, 0.0, 0.0)
    for epsilon, delta in _claimed_pairs(loss):
        for index, (ours, theirs) in enumerate(hits):
            p, q = ours / n, theirs / n
            over = p - math.exp(epsilon) * q - delta
            spread = math.sqrt((p * (1 - p) + math.exp(2 * epsilon) * q * (1 - q)) / n) + 1 / n
            worst = max(worst, (over / spread, index, epsilon, delta))
    return worst[1], worst[2], worst[3]


def _claimed_pairs(loss: Loss) -> list[tuple[float, float]]:
    """Pairs (epsilon, delta) that the loss says hold."""
    if loss.epsilon is not None and loss.delta == 0:
        return [(float(loss.epsilon), 0.0)]
    rho, delta = float(loss.rho), float(loss.delta)
    epsilons = [rho + factor * math.sqrt(rho) for factor in (0.0, 0.5, 1.0, 2.0, 3.0, 4.0)]
    pairs = [(epsilon, delta + delta_from_rho(rho, epsilon)) for epsilon in epsilons]
    return [(epsilon, claimed_delta) for epsilon, claimed_delta in pairs if claimed_delta < 1.0]


def _bound_gaussian_loss(
    hits: list[tuple[int, int]],
    events: list[_Event],
    second: tuple[ReleaseSamples, ...],
    side: int,
    opposite: int,
    alpha: float,
    loss: Loss,
) -> LossBound:
    """For Gaussian noise: z(P) - z(P') <= sqrt(2 rho), by an event near the middle of both."""
    n = len(second[0].ratio)
    likelier_events = [index for index in range(len(events)) if hits[index][0] > hits[index][1]] or [0]
    middle = min(likelier_events, key=lambda index: abs(hits[index][0] + hits[index][1] - n))
    low = probability_lower_bound(int(events[middle](second[side]).sum()), n, alpha / 2)
    high = probability_upper_bound(int(events[middle](second[opposite]).sum()), n, alpha / 2)
    bound = -math.inf
    if low > 0.0 and high < 1.0:
        bound = NormalDist().inv_cdf(low) - NormalDist().inv_cdf(high)
    return LossBound("sqrt(2 rho) of the noise", bound, math.sqrt(2 * float(loss.rho)))
