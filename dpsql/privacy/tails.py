"""Tails of discrete noise, as upper bounds.

Law: what is returned is never below the true probability. A continuous tail is no bound for discrete noise (it was
seen to be 6 times too small), so none is used without a proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from dpsql.privacy.loss import LossTooSmall
from dpsql.privacy.sampling import to_decimal

_DIGITS = Context(prec=50, Emax=MAX_EMAX, Emin=MIN_EMIN)
_OUTWARD = 1 + Fraction(1, 10**30)
"""Covers a dozen decimal operations of 50 digits, also where a dozen digits are lost by 1 - q at large scales."""

_FLOAT_OUTWARD = 1 + Fraction(1, 1 << 20)
"""Covers exp and erfc of the C library (a few ulp) and their rounded arguments (x^2 2^-50 for x below 40)."""
_MIN_FLOAT_TAIL = 1e-290
"""Floats below are near underflow; a tail is never said to be smaller."""
_MAX_SUMMED_SIGMA = 16
"""Below this sigma the tail is summed term by term; above, the integral bound is within 1 % of it."""


def find_least_integer(holds: Callable[[int], bool], least: int) -> int:
    """The least integer >= `least` for which a monotone condition holds, by doubling and bisection."""
    if holds(least):
        return least
    step = 1
    while not holds(least + step):
        step *= 2
        if step > 1 << 70:
            raise LossTooSmall("the probability asked for is too small")
    low, high = least + step // 2, least + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _round_outward(value: Decimal) -> Fraction:
    return Fraction(value) * _OUTWARD


def laplace_tail(scale: Fraction, m: int) -> Fraction:
    """At least P(X >= m) = q^m / (1 + q) of discrete Laplace noise, q = exp(-1/scale), m >= 1."""
    if m < 1:
        return Fraction(1)
    with localcontext(_DIGITS):
        return _round_outward(to_decimal(-m / scale).exp() / (1 + to_decimal(-1 / scale).exp()))


def truncated_tail(scale: Fraction, bound: int, width: int) -> Fraction:
    """At least P(X > bound - width) for discrete Laplace noise conditioned on |X| <= bound; width <= bound.

    The sum of `width` terms over the normalizer: q^(bound - width + 1) (1 - q^width) / (1 + q - 2 q^(bound + 1)).
    """
    if not 1 <= width <= bound:
        return Fraction(1)
    with localcontext(_DIGITS):
        q = to_decimal(-1 / scale).exp()
        tail = to_decimal((width - bound - 1) / scale).exp() * (1 - to_decimal(-width / scale).exp())
        return _round_outward(tail / (1 + q - 2 * to_decimal((-bound - 1) / scale).exp()))


def _round_float_outward(value: float) -> Fraction:
    return Fraction(max(value, _MIN_FLOAT_TAIL)) * _FLOAT_OUTWARD


@lru_cache(maxsize=64)
def _gaussian_normalizer(sigma: float) -> float:
    """The sum of exp(-x^2/(2 sigma^2)) over all integers."""
    return 1.0 + 2.0 * math.fsum(math.exp(-0.5 * (x / sigma) ** 2) for x in range(1, int(40 * sigma) + 2))


def gaussian_tail(sigma: Fraction, m: int) -> Fraction:
    """At least P(X >= m) of discrete Gaussian noise, m >= 1.

    Privacy: f(x) = exp(-x^2/(2 sigma^2)) is convex for x >= sigma, so f(x) is at most its integral over
    [x - 1/2, x + 1/2] (Hermite-Hadamard), and the tail sum at most the integral from m - 1/2. The normalizer is at
    least sigma sqrt(2 pi) (Poisson summation). So P(X >= m) <= P(N(0, sigma^2) >= m - 1/2) where m - 1/2 >= sigma.
    """
    if m < 1:
        return Fraction(1)
    s = float(sigma)
    if sigma < _MAX_SUMMED_SIGMA:
        # What is left out is below exp(-50) of the first term.
        terms = (math.exp(-0.5 * (x / s) ** 2) for x in range(m, m + int(10 * s) + 3))
        return _round_float_outward(math.fsum(terms) / _gaussian_normalizer(s))
    # Below sigma the integral from m - 1 bounds the sum of any falling function.
    start = m - 0.5 if m - 0.5 >= s else m - 1.0
    return _round_float_outward(0.5 * math.erfc(start / (s * math.sqrt(2.0))))
