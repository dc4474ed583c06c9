"""Reports what other accountants would say of a history, as epsilon at a given delta; nothing is granted by it.

The ledger grants by its filter (`privacy/filters.py`), which holds for questions that are chosen after seeing answers.
Most accountants here hold only for mechanisms that were all fixed first, which a ledger cannot know; that is said of
each. (The others hold for adaptive choices where their figure was the limit from the start.) Figures are floats. Those
of Gaussian noise as such (`compose_exact_gaussian`, and PLD) take it as continuous from 8 grid units on (`curves`).

    basic        sum of e_i, at the sum of d_i
    textbook     sqrt(2 ln(1/d') S) + sum e_i (exp(e_i) - 1), S the sum of e_i^2 (Dwork, Rothblum, Vadhan 2010)
    advanced     sqrt(2 ln(1/d') S) + S/2, for adaptive choices (Whitehouse et al. 2023)
    optimal      of k charges with one (e, d), exactly (Kairouz, Oh, Viswanath 2015)
    zcdp bs16    rho + 2 sqrt(rho ln(1/d')) (Bun, Steinke 2016)
    zcdp         the conversion of Canonne, Kamath, Steinke 2020
    rdp, pld     from the mechanisms themselves (`curves`, by dp-accounting)
    exact        of Gaussian noise alone, which is one Gaussian (Dong, Roth, Su 2022; Balle, Wang 2018; by
                 dp-accounting)

(e_i, d_i) are those of each charge; d' is what is left of delta beside their sum or, where rho is added up, beside the
deltas of selections.
"""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.ledger.loss_checker.checker import (
    BinPick,
    CellNoise,
    LossFigures,
    MechanismRecord,
    SelectionRecord,
    StudyRecord,
    add_losses,
    mechanism_loss,
    read_record,
)
from dpsql.ledger.loss_checker.selections import PtrMedianRecord, ScoreRecord, SmoothMedianRecord, SparseVectorRecord
from dpsql.privacy.loss import rho_to_epsilon

# RDP, PLD and the exact Gaussian of a history are by the package dp-accounting, which is optional:
# `pip install 'dpsql[accountants]'`.
#
# Law: bounded in time and memory, whatever the history holds. Gaussians are joined into one before any curve is made,
# equal mechanisms are composed at once, at most `MAX_CURVES` curves are composed, and each has at most `MAX_POINTS`
# points.
#
# What each mechanism counts as, with the delta of a selection left aside:
# pure, of epsilon e    randomized response, which is the worst of all e-DP mechanisms (Kairouz, Oh, Viswanath 2015);
#                           of discrete Laplace noise on a count it is the noise itself
# Gaussian              the continuous one from COARSE grid units on; else the discrete one, if neighbors differ by 1
#                           in one cell; else nothing is said
#     other picks           rho alone, which RDP knows and PLD does not

CONTINUOUS_SCALE = 8
"""A Gaussian of so many grid units is as good as continuous: lattice and integral differ by z^2/(12 sigma^2) of delta,
3 % at z = 5."""
MAX_CURVES = 32
MAX_POINTS = 1 << 17
_FINEST_STEP, _COARSEST_STEP = 1e-3, 0.1
_STEPS_PER_EPSILON = 16
"""A curve's grid is this much finer than the least epsilon in it, where POINTS allow it."""
_MISSING_PACKAGE = "it needs the package dp-accounting: pip install 'dpsql[accountants]'"

RenyiCurve = npt.NDArray[np.float64]


def rdp_epsilon(mechanisms: Counter[MechanismRecord], delta: float) -> float | str:
    """By Renyi divergence at many orders; or why there is no figure."""
    package = _import_package("dp_accounting.rdp.rdp_privacy_accountant")
    if package is None:
        return _MISSING_PACKAGE
    orders = 1 + np.geomspace(1e-2, 1e9, 4000)
    curve = np.zeros_like(orders)
    for mechanism, count in mechanisms.items():
        curve += count * _renyi_curve(mechanism, orders)
    epsilon, _ = package.compute_epsilon(orders, curve, delta)
    return float(epsilon)


def _renyi_curve(mechanism: MechanismRecord, orders: RenyiCurve) -> RenyiCurve:
    """The smaller of what rho says, and what epsilon says: that of randomized response."""
    by_rho: RenyiCurve = orders * float(mechanism_loss(mechanism).rho)
    epsilon = _pure_epsilon(mechanism)
    if epsilon is None:
        return by_rho
    e = float(epsilon)
    divergence = np.logaddexp(orders * e, (1 - orders) * e) - np.logaddexp(0.0, e)
    result: RenyiCurve = np.minimum(by_rho, np.minimum(divergence / (orders - 1), e))
    return result


def _pure_epsilon(mechanism: MechanismRecord) -> Fraction | None:
    """The epsilon of a mechanism, with a selection's delta left aside."""
    match mechanism:
        case SelectionRecord("laplace" | "truncated"):
            return mechanism.l1 / mechanism.scale
        case CellNoise() | BinPick() | ScoreRecord() | StudyRecord() | SparseVectorRecord():
            return mechanism_loss(mechanism).epsilon
        case SmoothMedianRecord() | PtrMedianRecord():  # in one block, with its delta left aside
            return mechanism.blocks * mechanism.epsilon * (2 if isinstance(mechanism, PtrMedianRecord) else 1)
        case SelectionRecord():
            return None


def pld_epsilon(mechanisms: Counter[MechanismRecord], delta: float) -> float | str:
    """By the distribution of the privacy loss; or why there is no figure."""
    package = _import_package("dp_accounting.pld.privacy_loss_distribution")
    if package is None:
        return _MISSING_PACKAGE
    square, pure, small = 0.0, Counter[float](), Counter[float]()
    for mechanism, count in mechanisms.items():
        epsilon = _pure_epsilon(mechanism)
        if epsilon is not None:
            pure[float(epsilon)] += count
        elif isinstance(
            mechanism, BinPick | ScoreRecord | SmoothMedianRecord | PtrMedianRecord | SparseVectorRecord
        ):  # the last is pure
            return "picks over many groups have no curve of their own"
        elif isinstance(mechanism, StudyRecord):
            return "studies have no curve of their own"
        elif mechanism.scale >= CONTINUOUS_SCALE:
            square += count * float(mechanism.l2_squared / mechanism.scale**2)
        elif mechanism.l2_squared == 1:
            small[float(mechanism.scale)] += count
        else:
            return "noise of a few grid units is not the continuous one"
    if len(pure) + len(small) > MAX_CURVES:
        return f"more than {MAX_CURVES} different mechanisms"
    interval = _grid_step(math.sqrt(square), pure, small)
    if interval > _COARSEST_STEP:
        return "the loss is too large for a curve"
    return _compose_curves(package, math.sqrt(square), pure, small, interval, delta)


def _compose_curves(
    package: Any, mu: float, pure: Mapping[float, int], small: Mapping[float, int], interval: float, delta: float
) -> float:
    grid = {"value_discretization_interval": interval}
    curves = [(package.from_discrete_laplace_mechanism(e, 1, **grid), count) for e, count in pure.items()]
    curves += [(package.from_discrete_gaussian_mechanism(s, 1, **grid), count) for s, count in small.items()]
    if mu:
        curves.append((package.from_gaussian_mechanism(1 / mu, **grid), 1))
    composed = None
    for curve, count in curves:
        several = curve.self_compose(count) if count > 1 else curve
        composed = several if composed is None else composed.compose(several)
    return 0.0 if composed is None else float(composed.get_epsilon_for_delta(delta))


def _grid_step(mu: float, pure: Mapping[float, int], small: Mapping[float, int]) -> float:
    """The step of the grid of losses: fine beside the smallest, and not too many up to where almost no loss lies.

    A coarser grid gives a larger epsilon, never a smaller one.
    """
    gaussians = [(mu, 1)] if mu else []
    gaussians += [(1 / sigma, count) for sigma, count in small.items()]
    # A sum of k losses of randomized response has mean k e tanh(e/2) and at most the variance k e^2.
    max_loss = math.fsum(count * m * m / 2 for m, count in gaussians)
    max_loss += math.fsum(count * e * math.tanh(e / 2) for e, count in pure.items())
    max_loss += 12 * math.sqrt(
        math.fsum(n * m * m for m, n in gaussians) + math.fsum(n * e * e for e, n in pure.items())
    )
    least = min([*pure, *(m for m, _ in gaussians)], default=1.0)
    return max(min(_FINEST_STEP, least / _STEPS_PER_EPSILON), 2 * max_loss / MAX_POINTS)


def _import_package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


MAX_CHARGES = 1 << 20
"""The optimal form sums over as many terms as there are charges."""


MAX_EPSILON = 100
"""Of one charge in the textbook form, which takes its exponential."""


@dataclass(frozen=True)
class HistoryCharge:
    """A charge of the history: the (epsilon, delta) that it stands for, and the records of its mechanisms."""

    epsilon: Fraction | None
    delta: Fraction
    records: tuple[str, ...]


@dataclass(frozen=True)
class AccountantReport:
    """What one accountant says; without an epsilon, `note` says why it says nothing."""

    accountant: str
    adaptive: bool  # it holds also where questions were chosen after seeing answers
    epsilon: float | None
    note: str = ""


class NotComputed(Exception):
    """Why an accountant has no figure for this history."""


@dataclass(frozen=True)
class ChargeHistory:
    """Charges with what is computed from them once."""

    charges: tuple[HistoryCharge, ...]
    delta: Fraction

    @cached_property
    def mechanisms(self) -> Counter[MechanismRecord]:
        records = Counter(chain.from_iterable(charge.records for charge in self.charges))
        result: Counter[MechanismRecord] = Counter()
        for record, count in records.items():
            for mechanism in read_record(record):
                result[mechanism] += count
        return result

    @cached_property
    def total_loss(self) -> LossFigures:
        losses = ((mechanism_loss(mechanism), count) for mechanism, count in self.mechanisms.items())
        return add_losses(_multiply_loss(loss, count) for loss, count in losses)

    @cached_property
    def epsilons(self) -> list[float]:
        if any(charge.epsilon is None for charge in self.charges):
            raise NotComputed("a charge has no epsilon of its own")
        return [float(charge.epsilon) for charge in self.charges if charge.epsilon is not None]

    def delta_beside_charges(self) -> Fraction:
        return self._delta_beside(sum((charge.delta for charge in self.charges), Fraction(0)), "the charges")

    def delta_beside_selections(self) -> Fraction:
        return self._delta_beside(self.total_loss.delta, "selections")

    def _delta_beside(self, spent: Fraction, whose: str) -> Fraction:
        if spent > self.delta:
            raise NotComputed(f"the deltas of {whose} alone pass delta")
        return self.delta - spent


def report_accountants(charges: Sequence[HistoryCharge], delta: Fraction) -> tuple[AccountantReport, ...]:
    """What each accountant would say of these charges at `delta`. Raises checker.Unreadable for unknown mechanisms."""
    history = ChargeHistory(tuple(charges), delta)
    return tuple(_run_accountant(name, adaptive, compute, history) for name, adaptive, compute in ACCOUNTANTS)


def _run_accountant(
    name: str, adaptive: bool, compute: Callable[[ChargeHistory], float], history: ChargeHistory
) -> AccountantReport:
    if not history.charges:
        return AccountantReport(name, adaptive, 0.0)
    try:
        return AccountantReport(name, adaptive, compute(history))
    except NotComputed as reason:
        return AccountantReport(name, adaptive, None, str(reason))


def _multiply_loss(loss: LossFigures, count: int) -> LossFigures:
    return LossFigures(None if loss.epsilon is None else count * loss.epsilon, count * loss.rho, count * loss.delta)


def _require_positive(delta: Fraction) -> float:
    if delta <= 0:
        raise NotComputed("it needs a delta above 0 of its own")
    return float(delta)


def compose_basic(history: ChargeHistory) -> float:
    history.delta_beside_charges()
    return math.fsum(history.epsilons)


def compose_textbook(history: ChargeHistory) -> float:
    root = _advanced_root(history)
    if max(history.epsilons) > MAX_EPSILON:
        raise NotComputed("a charge has too large an epsilon")
    return root + math.fsum(e * math.expm1(e) for e in history.epsilons)


def compose_advanced(history: ChargeHistory) -> float:
    return _advanced_root(history) + math.fsum(e * e for e in history.epsilons) / 2


def _advanced_root(history: ChargeHistory) -> float:
    """sqrt(2 ln(1/d') S)."""
    remaining = _require_positive(history.delta_beside_charges())
    return math.sqrt(2 * math.log(1 / remaining) * math.fsum(e * e for e in history.epsilons))


def compose_optimal(history: ChargeHistory) -> float:
    """The least epsilon at which k charges of one (e, d) are (epsilon, delta)-DP, by bisection.

    The worst mechanism tells all with probability d, and else a bit that is right with odds e^e. With l of k bits wrong
    the losses are (k - 2l) e, so delta(epsilon) = 1 - (1 - d)^k (1 - sum over l of P(l) [1 - e^(epsilon - loss)]+).
    """
    ((epsilon, delta), count), *others = Counter((c.epsilon, c.delta) for c in history.charges).items()
    if others:
        raise NotComputed("the charges differ from each other")
    if epsilon is None:
        raise NotComputed("a charge has no epsilon of its own")
    if count > MAX_CHARGES:
        raise NotComputed("there are too many charges")
    e, target = float(epsilon), float(history.delta)
    wrong = np.arange(count + 1)
    ways = np.concatenate(([0.0], np.cumsum(np.log((count - wrong[1:] + 1) / wrong[1:]))))
    # ln(1 + exp(e)) without overflow
    likely = np.exp(ways + (count - wrong) * e - count * float(np.logaddexp(0.0, e)))
    losses = (count - 2.0 * wrong) * e
    unrevealed = math.exp(count * math.log1p(-float(delta)))

    def misses(bound: float) -> bool:
        revealed = float(np.sum(likely * -np.expm1(np.minimum(bound - losses, 0.0))))
        return -math.expm1(count * math.log1p(-float(delta))) + unrevealed * revealed > target

    if misses(count * e):
        raise NotComputed("the deltas of the charges alone pass delta")
    return _bisect_least(misses, count * e)


def _bisect_least(misses: Callable[[float], bool], high: float) -> float:
    """Where a falling condition begins to hold, from above, to 40 bits of `high`."""
    low = 0.0
    if not misses(low):
        return low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if misses(middle) else (low, middle)
    return high


def compose_zcdp_bs16(history: ChargeHistory) -> float:
    remaining, rho = _require_positive(history.delta_beside_selections()), float(history.total_loss.rho)
    return rho + 2 * math.sqrt(rho * math.log(1 / remaining))


def compose_zcdp(history: ChargeHistory) -> float:
    remaining = history.delta_beside_selections()
    _require_positive(remaining)
    return float(rho_to_epsilon(history.total_loss.rho, remaining))


def compose_exact_gaussian(history: ChargeHistory) -> float:
    """Independent Gaussians are one, with mu^2 the sum of (sensitivity/sigma)^2."""
    remaining, mu = _require_positive(history.delta_beside_selections()), 0.0
    for mechanism, count in history.mechanisms.items():
        if not isinstance(mechanism, CellNoise | SelectionRecord) or mechanism.kind not in ("gaussian", "weighted"):
            raise NotComputed("not all noise is Gaussian")
        if mechanism.scale < CONTINUOUS_SCALE:
            raise NotComputed("noise of a few grid units is not the continuous one")
        mu += count * float(mechanism.l2_squared / mechanism.scale**2)
    if not mu:
        return 0.0
    package = _import_package("dp_accounting.gaussian_mechanism")
    if package is None:
        raise NotComputed(_MISSING_PACKAGE)
    return float(package.get_epsilon_gaussian(1 / math.sqrt(mu), remaining))


def compose_rdp(history: ChargeHistory) -> float:
    return _compose_numerically(rdp_epsilon, history)


def compose_pld(history: ChargeHistory) -> float:
    return _compose_numerically(pld_epsilon, history)


def _compose_numerically(
    compute: Callable[[Counter[MechanismRecord], float], float | str], history: ChargeHistory
) -> float:
    result = compute(history.mechanisms, _require_positive(history.delta_beside_selections()))
    if isinstance(result, str):
        raise NotComputed(result)
    return result


ACCOUNTANTS: tuple[tuple[str, bool, Callable[[ChargeHistory], float]], ...] = (
    ("basic", True, compose_basic),
    ("advanced, textbook", False, compose_textbook),
    ("advanced, adaptive", True, compose_advanced),
    ("optimal (KOV)", False, compose_optimal),
    ("zCDP (BS16)", True, compose_zcdp_bs16),
    ("zCDP (CKS20)", True, compose_zcdp),
    ("RDP", False, compose_rdp),
    ("PLD", False, compose_pld),
    ("exact Gaussian", False, compose_exact_gaussian),
)
"""Name, whether it holds for adaptive choices, and how. Of a Gaussian history alone the last one would hold too (Smith,
Thakurta 2022), but not of one that stays Gaussian by chance."""
