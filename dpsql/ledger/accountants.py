"""What each accountant would say of a history, as one epsilon at a given delta: a report, and nothing is granted by it.

The ledger grants by its filter (`privacy/filters`), which holds for questions that are chosen after seeing answers.
Most accountants here hold only for mechanisms that were all fixed first, which a ledger cannot know; that is said of
each. (The others hold for adaptive choices where their figure was the limit from the start.) Figures are floats. Those
of Gaussian noise as such (`exact`, and PLD) take it as continuous from 8 grid units on (`curves`).

    basic        sum of e_i, at the sum of d_i
    textbook     sqrt(2 ln(1/d') S) + sum e_i (exp(e_i) - 1), S the sum of e_i^2 (Dwork, Rothblum, Vadhan 2010)
    advanced     sqrt(2 ln(1/d') S) + S/2, for adaptive choices (Whitehouse et al. 2023)
    optimal      of k charges with one (e, d), exactly (Kairouz, Oh, Viswanath 2015)
    zcdp bs16    rho + 2 sqrt(rho ln(1/d')) (Bun, Steinke 2016)
    zcdp         the conversion of Canonne, Kamath, Steinke 2020
    rdp, pld     from the mechanisms themselves (`curves`, by dp-accounting)
    exact        of Gaussian noise alone, which is one Gaussian (Dong, Roth, Su 2022; Balle, Wang 2018)

(e_i, d_i) are those of each charge; d' is what is left of delta beside their sum or, where rho is added up, beside the
deltas of selections.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain

import numpy as np

from dpsql.ledger.checker import Figures, Mechanism, Noise, Selecting, add, figures_of, read_record
from dpsql.ledger.curves import COARSE, pld_epsilon, rdp_epsilon
from dpsql.privacy.accounting import epsilon_from

MOST_CHARGES = 1 << 20
"""The optimal form sums over as many terms as there are charges."""


MOST_EPSILON = 100
"""Of one charge in the textbook form, which takes its exponential."""


@dataclass(frozen=True)
class Charged:
    """A charge of the history: the (epsilon, delta) that it stands for, and the records of its mechanisms."""

    epsilon: Fraction | None
    delta: Fraction
    records: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """What one accountant says; without an epsilon, `note` says why it says nothing."""

    accountant: str
    adaptive: bool  # it holds also where questions were chosen after seeing answers
    epsilon: float | None
    note: str = ""


class NotComputed(Exception):
    """Why an accountant has no figure for this history."""


@dataclass(frozen=True)
class History:
    """Charges with what is computed from them once."""

    charges: tuple[Charged, ...]
    delta: Fraction

    @cached_property
    def mechanisms(self) -> Counter[Mechanism]:
        records = Counter(chain.from_iterable(charge.records for charge in self.charges))
        result: Counter[Mechanism] = Counter()
        for record, count in records.items():
            for mechanism in read_record(record):
                result[mechanism] += count
        return result

    @cached_property
    def lost(self) -> Figures:
        losses = ((figures_of(mechanism), count) for mechanism, count in self.mechanisms.items())
        return add(_times(loss, count) for loss, count in losses)

    @cached_property
    def epsilons(self) -> list[float]:
        if any(charge.epsilon is None for charge in self.charges):
            raise NotComputed("a charge has no epsilon of its own")
        return [float(charge.epsilon) for charge in self.charges if charge.epsilon is not None]

    def beside_charges(self) -> Fraction:
        return self._beside(sum((charge.delta for charge in self.charges), Fraction(0)), "the charges")

    def beside_selections(self) -> Fraction:
        return self._beside(self.lost.delta, "selections")

    def _beside(self, spent: Fraction, whose: str) -> Fraction:
        if spent > self.delta:
            raise NotComputed(f"the deltas of {whose} alone pass delta")
        return self.delta - spent


def report(charges: Sequence[Charged], delta: Fraction) -> tuple[Verdict, ...]:
    """What each accountant would say of these charges at `delta`. Raises checker.Unreadable for unknown mechanisms."""
    history = History(tuple(charges), delta)
    return tuple(_verdict(name, adaptive, compute, history) for name, adaptive, compute in ACCOUNTANTS)


def _verdict(name: str, adaptive: bool, compute: Callable[[History], float], history: History) -> Verdict:
    if not history.charges:
        return Verdict(name, adaptive, 0.0)
    try:
        return Verdict(name, adaptive, compute(history))
    except NotComputed as reason:
        return Verdict(name, adaptive, None, str(reason))


def _times(loss: Figures, count: int) -> Figures:
    return Figures(None if loss.epsilon is None else count * loss.epsilon, count * loss.rho, count * loss.delta)


def _positive(delta: Fraction) -> float:
    if delta <= 0:
        raise NotComputed("it needs a delta above 0 of its own")
    return float(delta)


def basic(history: History) -> float:
    history.beside_charges()
    return math.fsum(history.epsilons)


def textbook(history: History) -> float:
    root = _root(history)
    if max(history.epsilons) > MOST_EPSILON:
        raise NotComputed("a charge has too large an epsilon")
    return root + math.fsum(e * math.expm1(e) for e in history.epsilons)


def advanced(history: History) -> float:
    return _root(history) + math.fsum(e * e for e in history.epsilons) / 2


def _root(history: History) -> float:
    """sqrt(2 ln(1/d') S)."""
    left = _positive(history.beside_charges())
    return math.sqrt(2 * math.log(1 / left) * math.fsum(e * e for e in history.epsilons))


def optimal(history: History) -> float:
    """The least epsilon at which k charges of one (e, d) are (epsilon, delta)-DP, by bisection.

    The worst mechanism tells all with probability d, and else a bit that is right with odds e^e. With l of k bits wrong
    the losses are (k - 2l) e, so delta(epsilon) = 1 - (1 - d)^k (1 - sum over l of P(l) [1 - e^(epsilon - loss)]+).
    """
    ((epsilon, delta), count), *others = Counter((c.epsilon, c.delta) for c in history.charges).items()
    if others:
        raise NotComputed("the charges differ from each other")
    if epsilon is None:
        raise NotComputed("a charge has no epsilon of its own")
    if count > MOST_CHARGES:
        raise NotComputed("there are too many charges")
    e, target = float(epsilon), float(history.delta)
    wrong = np.arange(count + 1)
    ways = np.concatenate(([0.0], np.cumsum(np.log((count - wrong[1:] + 1) / wrong[1:]))))
    # ln(1 + exp(e)) without overflow
    likely = np.exp(ways + (count - wrong) * e - count * float(np.logaddexp(0.0, e)))
    losses = (count - 2.0 * wrong) * e
    untold = math.exp(count * math.log1p(-float(delta)))

    def misses(bound: float) -> bool:
        told = float(np.sum(likely * -np.expm1(np.minimum(bound - losses, 0.0))))
        return -math.expm1(count * math.log1p(-float(delta))) + untold * told > target

    if misses(count * e):
        raise NotComputed("the deltas of the charges alone pass delta")
    return _least(misses, count * e)


def _least(misses: Callable[[float], bool], high: float) -> float:
    """Where a falling condition begins to hold, from above, to 40 bits of `high`."""
    low = 0.0
    if not misses(low):
        return low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if misses(middle) else (low, middle)
    return high


def zcdp_bs16(history: History) -> float:
    left, rho = _positive(history.beside_selections()), float(history.lost.rho)
    return rho + 2 * math.sqrt(rho * math.log(1 / left))


def zcdp(history: History) -> float:
    left = history.beside_selections()
    _positive(left)
    return float(epsilon_from(history.lost.rho, left))


def exact(history: History) -> float:
    """Independent Gaussians are one, with mu^2 the sum of (sensitivity/sigma)^2."""
    left, mu = _positive(history.beside_selections()), 0.0
    for mechanism, count in history.mechanisms.items():
        if not isinstance(mechanism, Noise | Selecting) or mechanism.kind not in ("gaussian", "weighted"):
            raise NotComputed("not all noise is Gaussian")
        if mechanism.scale < COARSE:
            raise NotComputed("noise of a few grid units is not the continuous one")
        mu += count * float(mechanism.l2_squared / mechanism.scale**2)
    if not mu:
        return 0.0
    mu = math.sqrt(mu)
    high = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / left)) + 1
    return _least(lambda epsilon: _gaussian_delta(mu, epsilon) > left, high)


def _gaussian_delta(mu: float, epsilon: float) -> float:
    """P(Z > epsilon/mu - mu/2) - e^epsilon P(Z > epsilon/mu + mu/2)."""
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    return _above(near) - (math.exp(epsilon + math.log(tail)) if (tail := _above(far)) > 0 else 0.0)


def _above(z: float) -> float:
    return math.erfc(z / math.sqrt(2.0)) / 2


def rdp(history: History) -> float:
    return _numerical(rdp_epsilon, history)


def pld(history: History) -> float:
    return _numerical(pld_epsilon, history)


def _numerical(compute: Callable[[Counter[Mechanism], float], float | str], history: History) -> float:
    found = compute(history.mechanisms, _positive(history.beside_selections()))
    if isinstance(found, str):
        raise NotComputed(found)
    return found


ACCOUNTANTS: tuple[tuple[str, bool, Callable[[History], float]], ...] = (
    ("basic", True, basic),
    ("advanced, textbook", False, textbook),
    ("advanced, adaptive", True, advanced),
    ("optimal (KOV)", False, optimal),
    ("zCDP (BS16)", True, zcdp_bs16),
    ("zCDP (CKS20)", True, zcdp),
    ("RDP", False, rdp),
    ("PLD", False, pld),
    ("exact Gaussian", False, exact),
)
"""Name, whether it holds for adaptive choices, and how. Of a Gaussian history alone the last one would hold too (Smith,
Thakurta 2022), but not of one that stays Gaussian by chance."""
