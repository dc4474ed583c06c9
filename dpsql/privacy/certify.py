"""Decisions about a uniform real number, exact however close they are.

A uniform real R in (0, 1) is never a float here: it is its binary expansion, of which the first `width` bits are
known (`prefix`), so that R lies in [prefix, prefix + 1] * 2^-width. A decision is made when both ends of that
interval agree, each computed in decimal arithmetic and moved outward by a bound on its error; otherwise 64 more
bits are drawn and the precision grows. Each round decides all but a share of about 2^-64 of what is left, and the
result is that of infinitely precise arithmetic on an infinitely precise R.

Error: libmpdec rounds exp and ln correctly (IBM's decimal specification), so each operation at P digits errs by
at most 10^(1-P) relative to its result; a dozen of them stay far below the 10^(12-P) that is charged.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

RandomSource = Callable[[int], bytes]
"""A source of that many uniform random bytes."""

_FIRST_DIGITS = 50
_MORE_DIGITS = 25  # digits for each further 64 bits, which are worth 19.3 digits


def _decimal_context(digits: int) -> Context:
    return Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN)


def to_decimal(value: Fraction) -> Decimal:
    """`value` rounded to the precision of the current context."""
    return Decimal(value.numerator) / Decimal(value.denominator)


@lru_cache(maxsize=256)
def laplace_offset(scale: Fraction, digits: int = _FIRST_DIGITS) -> Decimal:
    """c = ln(2 / (1 + exp(-1/scale))), to within 10^(2-digits)."""
    with localcontext(_decimal_context(digits)):
        return (2 / (1 + to_decimal(-1 / scale).exp())).ln()


def shifted_offset(scale: Fraction, width: int) -> Decimal:
    """c + width * ln 2, to 45 digits: what ln of an integer of `width` bits is taken from."""
    with localcontext(_decimal_context(_FIRST_DIGITS)):
        return laplace_offset(scale) + width * Decimal(2).ln()


def laplace_magnitude(prefix: int, width: int, scale: Fraction, bits: RandomSource) -> int:
    """floor(scale * (c - ln R)) for the R that starts with `prefix`; `bits` supplies the rest of it as needed."""
    digits = _FIRST_DIGITS
    while True:
        if prefix > 0:
            with localcontext(_decimal_context(digits)):
                t, c, ulp = to_decimal(scale), laplace_offset(scale, digits), Decimal(2) ** -width
                error = Decimal(10) ** (12 - digits) * (t + 1) * (c + width + 10)
                lowest = (t * (c - ((prefix + 1) * ulp).ln()) - error).to_integral_value(ROUND_FLOOR)
                highest = (t * (c - (prefix * ulp).ln()) + error).to_integral_value(ROUND_FLOOR)
            if lowest == highest:
                return int(lowest)
        prefix, width, digits = _extend_prefix(prefix, bits), width + 64, digits + _MORE_DIGITS


def is_below_exp(prefix: int, width: int, exponent: Fraction, bits: RandomSource) -> bool:
    """Whether R < exp(-exponent), for the R that starts with `prefix`; exponent >= 0."""
    digits = _FIRST_DIGITS
    while True:
        with localcontext(_decimal_context(digits)):
            g, ulp = to_decimal(exponent), Decimal(2) ** -width
            p = (-g).exp()
            error = Decimal(10) ** (12 - digits) * (1 + g) * p
            if (prefix + 1) * ulp <= p - error:
                return True
            if prefix * ulp >= p + error:
                return False
        prefix, width, digits = _extend_prefix(prefix, bits), width + 64, digits + _MORE_DIGITS


def pick_weighted_index(prefix: int, width: int, gaps: Sequence[int], scale: Fraction, bits: RandomSource) -> int:
    """The place i with sum_{j<i} w_j <= R Z < sum_{j<=i} w_j, w_j = exp(-gaps[j] / scale), Z their sum; least gap 0."""
    digits = _FIRST_DIGITS
    while True:
        with localcontext(_decimal_context(digits)):
            rate, ulp = to_decimal(1 / scale), Decimal(2) ** -width
            weights = {gap: (-gap * rate).exp() for gap in set(gaps)}
            sums = list(accumulate(weights[gap] for gap in gaps))
            # A weight w = exp(-x) errs by (x + 1) w, and x w < 1, a sum of n by n Z, all times 10^(1-P) and a few.
            error = Decimal(10) ** (12 - digits) * len(gaps) * sums[-1]
            lowest = bisect_right(sums, prefix * ulp * sums[-1] - error, hi=len(sums) - 1)
            highest = bisect_right(sums, (prefix + 1) * ulp * sums[-1] + error, hi=len(sums) - 1)
        if lowest == highest:
            return lowest
        prefix, width, digits = _extend_prefix(prefix, bits), width + 64, digits + _MORE_DIGITS


def pick_uniform_index(prefix: int, width: int, count: int, bits: RandomSource) -> int:
    """floor(R * places) for the R that starts with `prefix`: each of so many places with the same probability."""
    while True:
        lowest, highest = prefix * count >> width, ((prefix + 1) * count - 1) >> width
        if lowest == highest:
            return lowest
        prefix, width = _extend_prefix(prefix, bits), width + 64


def _extend_prefix(prefix: int, bits: RandomSource) -> int:
    return prefix << 64 | int.from_bytes(bits(8), "little")
