"""RDP and PLD of a history, by the package dp-accounting, which is optional: `pip install 'dpsql[accountants]'`.

Law: bounded in time and memory, whatever the history holds. Gaussians are joined into one before any curve is made,
equal mechanisms are composed at once, at most `DISTINCT` curves are composed, and each has at most `POINTS` points.

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

from dpsql.ledger.check_medians import Smoothed, Tested
from dpsql.ledger.check_scores import Scoring
from dpsql.ledger.check_sparse import Sparse
from dpsql.ledger.checker import Mechanism, Noise, Picking, Selecting, Studying, figures_of

COARSE = 8
"""A Gaussian of so many grid units is as good as continuous: lattice and integral differ by z^2/(12 sigma^2) of delta,
3 % at z = 5."""
DISTINCT = 32
POINTS = 1 << 17
_FINE, _ROUGH = 1e-3, 0.1
_STEPS = 16
"""A curve's grid is this much finer than the least epsilon in it, where POINTS allow it."""
_MISSING = "it needs the package dp-accounting: pip install 'dpsql[accountants]'"

Curve = npt.NDArray[np.float64]


def rdp_epsilon(mechanisms: Counter[Mechanism], delta: float) -> float | str:
    """By Renyi divergence at many orders; or why there is no figure."""
    package = _package("dp_accounting.rdp.rdp_privacy_accountant")
    if package is None:
        return _MISSING
    orders = 1 + np.geomspace(1e-2, 1e9, 4000)
    curve = np.zeros_like(orders)
    for mechanism, count in mechanisms.items():
        curve += count * _renyi(mechanism, orders)
    epsilon, _ = package.compute_epsilon(orders, curve, delta)
    return float(epsilon)


def _renyi(mechanism: Mechanism, orders: Curve) -> Curve:
    """The smaller of what rho says, and what epsilon says: that of randomized response."""
    by_rho: Curve = orders * float(figures_of(mechanism).rho)
    epsilon = _pure(mechanism)
    if epsilon is None:
        return by_rho
    e = float(epsilon)
    told = np.logaddexp(orders * e, (1 - orders) * e) - np.logaddexp(0.0, e)
    result: Curve = np.minimum(by_rho, np.minimum(told / (orders - 1), e))
    return result


def _pure(mechanism: Mechanism) -> Fraction | None:
    """The epsilon of a mechanism, with a selection's delta left aside."""
    match mechanism:
        case Selecting("laplace" | "truncated"):
            return mechanism.l1 / mechanism.scale
        case Noise() | Picking() | Scoring() | Studying() | Sparse():
            return figures_of(mechanism).epsilon
        case Smoothed() | Tested():  # in one block, with its delta left aside
            return mechanism.blocks * mechanism.epsilon * (2 if isinstance(mechanism, Tested) else 1)
        case Selecting():
            return None


def pld_epsilon(mechanisms: Counter[Mechanism], delta: float) -> float | str:
    """By the distribution of the privacy loss; or why there is no figure."""
    package = _package("dp_accounting.pld.privacy_loss_distribution")
    if package is None:
        return _MISSING
    square, pure, small = 0.0, Counter[float](), Counter[float]()
    for mechanism, count in mechanisms.items():
        epsilon = _pure(mechanism)
        if epsilon is not None:
            pure[float(epsilon)] += count
        elif isinstance(mechanism, Picking | Scoring | Smoothed | Tested | Sparse):  # the last is pure
            return "picks over many groups have no curve of their own"
        elif isinstance(mechanism, Studying):
            return "studies have no curve of their own"
        elif mechanism.scale >= COARSE:
            square += count * float(mechanism.l2_squared / mechanism.scale**2)
        elif mechanism.l2_squared == 1:
            small[float(mechanism.scale)] += count
        else:
            return "noise of a few grid units is not the continuous one"
    if len(pure) + len(small) > DISTINCT:
        return f"more than {DISTINCT} different mechanisms"
    interval = _interval(math.sqrt(square), pure, small)
    if interval > _ROUGH:
        return "the loss is too large for a curve"
    return _composed(package, math.sqrt(square), pure, small, interval, delta)


def _composed(
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


def _interval(mu: float, pure: Mapping[float, int], small: Mapping[float, int]) -> float:
    """The step of the grid of losses: fine beside the smallest, and not too many up to where almost no loss lies.

    A coarser grid gives a larger epsilon, never a smaller one.
    """
    gaussians = [(mu, 1)] if mu else []
    gaussians += [(1 / sigma, count) for sigma, count in small.items()]
    # A sum of k losses of randomized response has mean k e tanh(e/2) and at most the variance k e^2.
    most = math.fsum(count * m * m / 2 for m, count in gaussians)
    most += math.fsum(count * e * math.tanh(e / 2) for e, count in pure.items())
    most += 12 * math.sqrt(math.fsum(n * m * m for m, n in gaussians) + math.fsum(n * e * e for e, n in pure.items()))
    least = min([*pure, *(m for m, _ in gaussians)], default=1.0)
    return max(min(_FINE, least / _STEPS), 2 * most / POINTS)


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
