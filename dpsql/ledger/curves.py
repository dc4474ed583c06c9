"""RDP and PLD of a history, by the package dp-accounting, which is optional: `pip install 'dpsql[accountants]'`.

Law: bounded in time and memory, whatever the history holds. Gaussians are joined into one before any curve is made,
equal mechanisms are composed at once, at most `MAX_CURVES` curves are composed, and each has at most `MAX_POINTS` points.

What each mechanism counts as, with the delta of a selection left aside:
    pure, of epsilon e    randomized response, which is the worst of all e-DP mechanisms (Kairouz, Oh, Viswanath 2015);
                          of discrete Laplace noise on a count it is the noise itself
    Gaussian              the continuous one from COARSE grid units on; else the discrete one, if neighbors differ by 1
                          in one cell; else nothing is said
    other picks           rho alone, which RDP knows and PLD does not
"""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.ledger.check_medians import SmoothMedianRecord, PtrMedianRecord
from dpsql.ledger.check_scores import ScoreRecord
from dpsql.ledger.check_sparse import SparseVectorRecord
from dpsql.ledger.checker import MechanismRecord, CellNoise, BinPick, SelectionRecord, StudyRecord, mechanism_loss

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
        elif isinstance(mechanism, BinPick | ScoreRecord | SmoothMedianRecord | PtrMedianRecord | SparseVectorRecord):  # the last is pure
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
    max_loss += 12 * math.sqrt(math.fsum(n * m * m for m, n in gaussians) + math.fsum(n * e * e for e, n in pure.items()))
    least = min([*pure, *(m for m, _ in gaussians)], default=1.0)
    return max(min(_FINEST_STEP, least / _STEPS_PER_EPSILON), 2 * max_loss / MAX_POINTS)


def _import_package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
