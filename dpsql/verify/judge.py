"""What many releases of two neighbors prove: at least so much loss, against what is claimed.

Events are picked on one half of the draws and judged on the other, both ways, with Clopper-Pearson bounds. What is
claimed: P(S) <= e^epsilon P'(S) + delta for every event S; with a loss (rho, delta) that holds for each epsilon at
delta plus CKS20's delta of rho. Gaussian noise alone is also held to its own curve, which is sharper: the normal
scores of P(S) and P'(S) differ by at most sqrt(2 rho).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.privacy.loss import Loss
from dpsql.verify.claims import delta_of
from dpsql.verify.intervals import share_at_least, share_at_most

ALPHA = 1e-6
"""The chance that a sound template is accused."""
_LEVELS = 25
_FEW = (0.1, 0.3, 0.5, 0.7, 0.9)

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Shown:
    """What the draws prove: at least `shown`, of the quantity that is claimed to be at most `claimed`."""

    measure: str
    shown: float
    claimed: float

    @property
    def breaks(self) -> bool:
        return self.shown > self.claimed


@dataclass(frozen=True)
class Many:
    """Of `n` releases: the logarithm of the likelihood ratio of each, which of them have a key, and contrasts.

    A contrast is the sum or the difference of two cells in units of their noise: noise that is drawn once for both, or
    once with another sign, is gone from it.
    """

    ratio: Floats
    keys: dict[tuple[int, tuple[Any, ...]], Flags]
    contrasts: tuple[Floats, ...]

    def part(self, places: slice) -> Many:
        keys = {key: flags[places] for key, flags in self.keys.items()}
        return Many(self.ratio[places], keys, tuple(contrast[places] for contrast in self.contrasts))


_Event = Callable[["Many"], Flags]
"""A set of releases: which of many are in it."""


def _events(both: tuple[Many, Many]) -> list[_Event]:
    pooled = np.concatenate([side.ratio for side in both])
    levels = np.unique(np.quantile(pooled, np.linspace(0, 1, _LEVELS + 2)[1:-1]))
    events = [_above(float(level)) for level in levels] + [_below(float(level)) for level in levels]
    for key in {*both[0].keys, *both[1].keys}:
        events += [_with(key), _without(key)]
    for place, (one, other) in enumerate(zip(both[0].contrasts, both[1].contrasts, strict=True)):
        for level in np.unique(np.quantile(np.concatenate([one, other]), _FEW)):
            events += [_contrast_above(place, float(level)), _contrast_below(place, float(level))]
    return events


def _contrast_above(place: int, level: float) -> _Event:
    return lambda many: many.contrasts[place] >= level


def _contrast_below(place: int, level: float) -> _Event:
    return lambda many: many.contrasts[place] <= level


def _above(level: float) -> _Event:
    return (lambda many: many.ratio >= level)


def _below(level: float) -> _Event:
    return (lambda many: many.ratio <= level)


def _with(key: tuple[int, tuple[Any, ...]]) -> _Event:
    return (lambda many: many.keys.get(key, np.zeros(len(many.ratio), np.bool_)))


def _without(key: tuple[int, tuple[Any, ...]]) -> _Event:
    return (lambda many: ~many.keys.get(key, np.zeros(len(many.ratio), np.bool_)))


def judge(both: tuple[Many, Many], loss: Loss, gaussian: bool) -> tuple[Shown, ...]:
    """Both ways; the event and the epsilon are picked on the first half of the draws."""
    n = len(both[0].ratio)
    first, second = (tuple(side.part(part) for side in both) for part in (slice(0, n // 2), slice(n // 2, n)))
    alpha = ALPHA / (4 if gaussian else 2)
    found = []
    events = _events((first[0], first[1]))
    for one, other in ((0, 1), (1, 0)):
        hits = [(int(e(first[one]).sum()), int(e(first[other]).sum())) for e in events]
        counts = n // 2
        best, epsilon, delta = _most_telling(hits, counts, loss)
        tested = n - counts
        low = share_at_least(int(events[best](second[one]).sum()), tested, alpha / 2)
        high = share_at_most(int(events[best](second[other]).sum()), tested, alpha / 2)
        shown = math.log((low - delta) / high) if low > delta else -math.inf
        found.append(Shown(f"epsilon at delta {delta:.3g}", shown, epsilon))
        if gaussian:
            found.append(_on_the_curve(hits, events, second, one, other, alpha, loss))
    return tuple(sorted(found, key=lambda one: one.claimed - one.shown)[: 2 if gaussian else 1])


def _most_telling(hits: list[tuple[int, int]], n: int, loss: Loss) -> tuple[int, float, float]:
    """The event, and the epsilon, at which the first half looks worst against the claim."""
    worst = (-math.inf, 0, 0.0, 0.0)
    for epsilon, delta in _claims(loss):
        for place, (ours, theirs) in enumerate(hits):
            p, q = ours / n, theirs / n
            over = p - math.exp(epsilon) * q - delta
            spread = math.sqrt((p * (1 - p) + math.exp(2 * epsilon) * q * (1 - q)) / n) + 1 / n
            worst = max(worst, (over / spread, place, epsilon, delta))
    return worst[1], worst[2], worst[3]


def _claims(loss: Loss) -> list[tuple[float, float]]:
    """Pairs (epsilon, delta) that the loss says hold."""
    if loss.epsilon is not None and loss.delta == 0:
        return [(float(loss.epsilon), 0.0)]
    rho, delta = float(loss.rho), float(loss.delta)
    epsilons = [rho + factor * math.sqrt(rho) for factor in (0.0, 0.5, 1.0, 2.0, 3.0, 4.0)]
    pairs = [(epsilon, delta + delta_of(rho, epsilon)) for epsilon in epsilons]
    return [(epsilon, at) for epsilon, at in pairs if at < 1.0]


def _on_the_curve(
    hits: list[tuple[int, int]],
    events: list[_Event],
    second: tuple[Many, ...],
    one: int,
    other: int,
    alpha: float,
    loss: Loss,
) -> Shown:
    """For Gaussian noise: z(P) - z(P') <= sqrt(2 rho), by an event near the middle of both."""
    n = len(second[0].ratio)
    telling = [place for place in range(len(events)) if hits[place][0] > hits[place][1]] or [0]
    middle = min(telling, key=lambda place: abs(hits[place][0] + hits[place][1] - n))
    low = share_at_least(int(events[middle](second[one]).sum()), n, alpha / 2)
    high = share_at_most(int(events[middle](second[other]).sum()), n, alpha / 2)
    shown = -math.inf
    if low > 0.0 and high < 1.0:
        shown = NormalDist().inv_cdf(low) - NormalDist().inv_cdf(high)
    return Shown("sqrt(2 rho) of the noise", shown, math.sqrt(2 * float(loss.rho)))
