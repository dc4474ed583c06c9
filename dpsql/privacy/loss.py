"""The privacy loss of a release, in exact rationals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache


class LossTooSmall(ValueError):
    """A loss or a probability is asked for that no noise we can draw, and no charge, is fine enough for."""


LOSS_DENOMINATOR = 1 << 80
"""Charges are whole multiples of 1/UNIT, so that sums of any length stay short (SOUNDNESS 7)."""


def round_up(value: Fraction) -> Fraction:
    return Fraction(-(-value.numerator * LOSS_DENOMINATOR // value.denominator), LOSS_DENOMINATOR)


def round_down(value: Fraction) -> Fraction:
    return Fraction(value.numerator * LOSS_DENOMINATOR // value.denominator, LOSS_DENOMINATOR)


@dataclass(frozen=True)
class Loss:
    """A `delta`-approximate `rho`-zCDP loss, and also an (`epsilon`, `delta`)-DP one where `epsilon` is not None.

    With a delta of 0 that is a pure loss.

    Privacy: losses add up under fully adaptive composition (Whitehouse et al. 2023; the epsilons and deltas, by basic
    composition, Rogers et al. 2016); every figure is rounded up to a multiple of 2^-80 when the loss is made.
    """

    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if self.rho < 0 or self.delta < 0 or (self.epsilon is not None and self.epsilon < 0):
            raise ValueError("a loss is never negative")
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", round_up(self.epsilon))
        object.__setattr__(self, "rho", round_up(self.rho))
        object.__setattr__(self, "delta", round_up(self.delta))

    def __add__(self, other: Loss) -> Loss:
        epsilon = None if self.epsilon is None or other.epsilon is None else self.epsilon + other.epsilon
        return Loss(epsilon, self.rho + other.rho, self.delta + other.delta)


NO_LOSS = Loss(Fraction(0), Fraction(0), Fraction(0))


def sum_losses(losses: list[Loss] | tuple[Loss, ...]) -> Loss:
    result = NO_LOSS
    for loss in losses:
        result = result + loss
    return result


# Conversions between (epsilon, delta) and rho.
#
# Law: every figure is an exact rational, and rounds so that privacy is never overstated.
#
# Conversion (Canonne, Kamath, Steinke 2020). A rho-zCDP mechanism is (epsilon, delta)-DP for
#
#     delta = exp((a - 1)(a rho - epsilon)) / (a - 1) * (1 - 1/a)^a,        any order a > 1.
#
# Solved for rho or epsilon at fixed a, each a gives a valid figure; the best a is searched in floating point, and
# the figure at that a is then computed in 80-digit decimal arithmetic and rounded outward. So a poor search costs
# accuracy, never privacy. The search is sound too: the logarithm of the right side is convex in a (its second
# derivative is 2 rho + 1/(a (a - 1))), hence {a : rho(a) >= r} and {a : epsilon(a) <= e} are intervals, and
# golden section finds the optimum. A delta0-approximate rho-zCDP mechanism is (epsilon, delta0 + delta)-DP (Bun,
# Steinke 2016, section 8).

_DIGITS = Context(prec=80, Emax=MAX_EMAX, Emin=MIN_EMIN)
# libmpdec rounds ln correctly, so each of the dozen operations below errs by 1e-79 relative to its operands; an
# order is at most e^45 < 1e20 and multiplies that once. 1e-50 of the operands is more than 1e8 times what can
# go wrong.
_SLACK = Decimal("1e-50")
_SEARCH_RANGE = (-40.0, 45.0)
"""ln(a - 1) is searched here: enough for epsilon from 1e-15 to 1e15."""


def _to_decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _log_fraction(value: Fraction) -> float:
    # Not log(float(value)): a delta below 1e-308 would be zero there.
    return math.log(value.numerator) - math.log(value.denominator)


def _find_best_order(objective: Callable[[float], float]) -> Decimal:
    """The b = a - 1 that minimises a unimodal `objective`, by golden section on ln b."""
    low, high = _SEARCH_RANGE
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = objective(math.exp(left)), objective(math.exp(right))
    while high - low > 1e-9:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = objective(math.exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = objective(math.exp(right))
    return Decimal(math.exp((low + high) / 2))


def _order_excess(b: float, log_delta: float) -> float:
    """(ln delta + ln(a - 1) - a ln(1 - 1/a)) / (a - 1), in floating point, with b = a - 1."""
    return (log_delta + math.log(b) + (b + 1) * math.log1p(1 / b)) / b


def _exact_order_excess(b: Decimal, delta: Fraction) -> tuple[Decimal, Decimal]:
    """The same in decimal, and a bound on the size of the terms in it (1 - 1/a is b/(b + 1))."""
    log_delta, log_b, tail = _to_decimal(delta).ln(), b.ln(), (b + 1) * ((b + 1) / b).ln()
    return (log_delta + log_b + tail) / b, (abs(log_delta) + abs(log_b) + tail) / b


def log_rounded_up(value: Fraction) -> Fraction:
    """The natural logarithm of a number of at least 1, rounded up."""
    with localcontext(_DIGITS):
        return round_up(Fraction(_to_decimal(value).ln() * (1 + _SLACK) + _SLACK))


@lru_cache(maxsize=4096)
def epsilon_to_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho of which rho-zCDP implies (epsilon, delta)-DP, rounded down to a multiple of 2^-80.

    Privacy: rho-zCDP with this rho is (epsilon, delta)-DP (Canonne, Kamath, Steinke 2020).
    """
    if epsilon < 0 or not 0 <= delta < 1:
        raise ValueError("epsilon must not be negative, and delta must lie in [0, 1)")
    if delta == 0:
        return Fraction(0)
    float_epsilon, log_delta = float(epsilon), _log_fraction(delta)
    b = _find_best_order(lambda b: -(float_epsilon + _order_excess(b, log_delta)) / (b + 1))
    with localcontext(_DIGITS):
        excess, size = _exact_order_excess(b, delta)
        eps = _to_decimal(epsilon)
        rho = (eps + excess - _SLACK * (eps + size)) / (b + 1) * (1 - _SLACK)
    return max(Fraction(0), round_down(Fraction(rho)))


@lru_cache(maxsize=4096)
def rho_to_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """The least epsilon of which rho-zCDP implies (epsilon, delta)-DP, rounded up to a multiple of 2^-80.

    Privacy: rho-zCDP is (epsilon, delta)-DP with this epsilon (Canonne, Kamath, Steinke 2020).
    """
    if rho < 0:
        raise ValueError("rho must not be negative")
    if rho == 0:
        return Fraction(0)
    if not 0 < delta < 1:
        raise ValueError("a positive rho has an epsilon only at a delta in (0, 1)")
    float_rho, log_delta = float(rho), _log_fraction(delta)
    b = _find_best_order(lambda b: (b + 1) * float_rho - _order_excess(b, log_delta))
    with localcontext(_DIGITS):
        excess, size = _exact_order_excess(b, delta)
        linear = (b + 1) * _to_decimal(rho)
        epsilon = linear - excess + _SLACK * (linear + size)
    return max(Fraction(0), round_up(Fraction(epsilon)))
