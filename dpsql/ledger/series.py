"""Tails of discrete noise, summed in decimal arithmetic for the checker.

Not shared with `privacy/tails`, which picks thresholds: those are bounds from above, these are the probabilities
themselves, to a relative error below 1e-9, so that an error there does not repeat here.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction

_DECIMAL_CONTEXT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
_NEGLIGIBLE = Decimal("1e-40")
_MAX_SUMMED_SIGMA = 1024
"""Below this sigma tails are summed term by term; above, the formula of Euler and Maclaurin errs by (m/sigma^2)^4/720
of the tail: less than 1e-9 for m <= 24 sigma, beyond which nothing is charged for."""
_FRACTION_LEVELS = 400
"""Levels of the continued fraction: its error is some exp(-2 z sqrt(2 levels)), below 1e-70 for z >= 3."""


def _to_decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def discrete_laplace_tail(scale: Fraction, m: int) -> Fraction:
    """P(X >= m) where P(x) is proportional to q^|x|, q = exp(-1/scale): a geometric series over another."""
    if m < 1:
        return 1 - discrete_laplace_tail(scale, 1 - m)
    with localcontext(_DECIMAL_CONTEXT):
        return Fraction(_to_decimal(-m / scale).exp() / (1 + _to_decimal(-1 / scale).exp()))


def truncated_laplace_tail(scale: Fraction, bound: int, m: int) -> Fraction:
    """P(X >= m) where P(x) is proportional to q^|x| for |x| <= bound, and 0 beyond."""
    if m > bound:
        return Fraction(0)
    if m <= -bound:
        return Fraction(1)
    if m < 1:
        return 1 - truncated_laplace_tail(scale, bound, 1 - m)
    with localcontext(_DECIMAL_CONTEXT):
        # Both series times 1 - q, which cancels.
        beyond = _to_decimal(-(bound + 1) / scale).exp()
        tail = _to_decimal(-m / scale).exp() - beyond
        return Fraction(tail / (1 + _to_decimal(-1 / scale).exp() - 2 * beyond))


def discrete_gaussian_tail(sigma: Fraction, m: int) -> Fraction:
    """P(X >= m) where P(x) is proportional to exp(-x^2/(2 sigma^2)) over the integers."""
    if m < 1:
        return 1 - discrete_gaussian_tail(sigma, 1 - m)
    with localcontext(_DECIMAL_CONTEXT):
        s = _to_decimal(sigma)
        tail = _sum_gaussian_tail(s, m) / _gaussian_normalizer(s) if sigma < _MAX_SUMMED_SIGMA else _integrate_gaussian_tail(s, m)
        return Fraction(tail)


def _sum_gaussian_tail(sigma: Decimal, m: int) -> Decimal:
    """The sum of exp(-x^2/(2 sigma^2)) for x >= m >= 1; the ratio of neighboring terms falls by a constant factor."""
    step = -1 / (2 * sigma * sigma)
    term, ratio, factor = (step * m * m).exp(), (step * (2 * m + 1)).exp(), (2 * step).exp()
    total = Decimal(0)
    while term > total * _NEGLIGIBLE:
        total += term
        term *= ratio
        ratio *= factor
    return total


def _gaussian_normalizer(sigma: Decimal) -> Decimal:
    """The sum over all integers: term by term, or by Poisson's formula, where the next term is below 1e-130."""
    if sigma < 2:
        return 1 + 2 * _sum_gaussian_tail(sigma, 1)
    return sigma * (2 * _PI).sqrt() * (1 + 2 * (-2 * _PI * _PI * sigma * sigma).exp())


def _integrate_gaussian_tail(sigma: Decimal, m: int) -> Decimal:
    """Euler and Maclaurin: the integral from m, half of the first term, and a twelfth of the slope there."""
    z = m / sigma
    density = (-z * z / 2).exp() / (sigma * (2 * _PI).sqrt())
    return _normal_tail(z) + density * (Decimal("0.5") + m / (12 * sigma * sigma))


def _normal_tail(z: Decimal) -> Decimal:
    """P(Z >= z) of the standard normal distribution, z >= 0."""
    density = (-z * z / 2).exp() / (2 * _PI).sqrt()
    if z >= 3:  # Laplace's continued fraction, from its end
        below = z
        for level in range(_FRACTION_LEVELS, 0, -1):
            below = z + level / below
        return density / below
    term, total, odd = z, Decimal(0), 1
    while term > _NEGLIGIBLE:
        total += term
        odd += 2
        term *= z * z / odd
    return Decimal("0.5") - density * total
