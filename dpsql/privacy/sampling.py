"""Exactly distributed integer noise, vectorised: the only source of randomness in dpsql.

Law: floating point may only decide what it can prove; everything else is decided exactly, by `is_below_exp` and
`pick_weighted_index`. So no float error ever changes a probability, it only costs time (Mironov 2012 and Haney et al.
2022 show what happens otherwise). The idea of deciding from a lazily refined uniform is interval refining (Haney et al.
2022).

Discrete Laplace, P(X = x) ~ q^|x| with q = exp(-1/t). Since P(|X| >= x) = 2 q^x / (1 + q) for x >= 1, one uniform
real R and an independent sign give

    |X| = floor(t (c - ln R)),    c = ln(2 / (1 + q)),

with no rejection, from one 64-bit word: 63 bits start the expansion of R, the last is the sign. (c >= 0, so |X| is
never negative; a zero of either sign is zero.)

Error of a lane. With U the 63 bits, u = U + 1/2 and K = c + 63 ln 2, the computed y = t (K - ln u) stands for
t (c - ln R), R anywhere in [U, U+1] 2^-63. We take numpy's log and exp to be within 4 ulp (0.50 and 0.65 measured).
  ln u    u is rounded twice: 2^-52 in ln u. ln u < 43.7 < 2^6: 4 ulp are 2^-45.
  K       computed in decimal, rounded once: at most 44.4, so 2^-48.
  l       = K - ln u lies in [0, 44.4]: rounded once, 2^-48. Together l errs by less than 1.27 * 2^-45.
  y       = float(t) * l: float(t) is correctly rounded from a Fraction and the product rounds once: l t 2^-52, for
          every t, be it 0.3 or 2^40 (t is between 2^-10 and 2^40, far from underflow).
  prefix  |ln R - ln(u 2^-63)| <= 0.51/u for u >= 1024.
So y errs by at most t (1.27 * 2^-45 + l 2^-52 + 0.51/u), and we charge err = t ((l + 64) 2^-49 + 1/u), where
64 * 2^-49 = 2^-43 alone is 3 times the first term; the rounding of err itself is 2^-50 of it. floor(y) and
y - floor(y) are exact in floating point. A lane whose fraction is within err of an integer, or with u < 1024
(probability 2^-53), is decided exactly. That happens with probability about t * 2^-42: one lane in four
thousand at t = 2^30, where noise scales are aimed; up to 2^40 all stays exact, but a fourth of the lanes are slow.

Discrete Gaussian: Canonne, Kamath, Steinke 2020, Algorithm 3. Y discrete Laplace of the integer scale
t = floor(sigma) + 1 is accepted with probability exp(-g), g = (|Y| - sigma^2/t)^2 / (2 sigma^2). With a = |Y|,
k = sigma^2/t and d = a - k, float d errs by (a + k + 1) 2^-52, so g by 2^-51 ((a + k + 1) |d| / sigma^2 + 2 g); we
charge 2^-48 ((a + k + 1) |d| / sigma^2 + g) =: e, and e < 1 (|d| / sigma < 2^22 for every sigma >= 2^-10). The
computed p then errs by p (2 e + 2^-50), charged p (2 e + 2^-49) + 2^-60; the second uniform has 64 bits, charged
2^-52 u + 2^-60.

Choices. Place i of n has P(i) ~ w_i = exp(-x_i), x_i = (penalty_i - the least) / scale. With c_j the sum of the first
weights and Z of all, a uniform real R chooses the number of inner borders c_j <= R Z: inversion, no rejection. x is a
product of two rounded factors, so errs by x 2^-51; exp adds 2^-50 of w; x w < 0.37. So the weights err by less than
(0.2 n + 1.1) 2^-50 Z together (Z >= 1; those that underflow by 2^-1000), their running sums by n 2^-53 Z more, and R Z,
from the 64 bits that start R, by as much again and 2^-51 Z. All of it is below (0.7 n + 3) 2^-50 Z; we charge
(n + 32) 2^-48 Z. A row with a border that close to R Z is decided exactly: one in 2^30 of 256 places, in 2^18 of
2^14 places at most. Equal penalties have equal weights, exactly.

Permute-and-flip. Place i passes with probability w_i, independently, and one of those that passed is drawn uniformly,
as if they stood in random order and the first that passes were taken (McKenna, Sheldon 2020). The best always passes.
Each place has a word of its own: w errs by less than 1.2 * 2^-50, as above, and the uniform by 2^-53 + 2^-64; a lane
that is closer than 2^-48 is decided exactly. Which of them is drawn is whole-number arithmetic
(`pick_uniform_index`).

Range: |X| < 2^62, so that noise plus a cell within +-2^62 stays within 64 bits. Larger magnitudes are moved to
2^62 - 1: at scale 2^40 that has probability exp(-2^22), below 2^-6000000.

Time: every lane does the same vector work, and slow lanes are chosen by the fraction of y, not by its size; the
number of rejected Gaussian lanes is independent of those returned. Assumptions: the bits are uniform; log and exp
are within 4 ulp; decimal is correctly rounded.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

# Decisions about a uniform real number, exact however close they are.
#
# A uniform real R in (0, 1) is never a float here: it is its binary expansion, of which the first `width` bits are
# known (`prefix`), so that R lies in [prefix, prefix + 1] * 2^-width. A decision is made when both ends of that
# interval agree, each computed in decimal arithmetic and moved outward by a bound on its error; otherwise 64 more
# bits are drawn and the precision grows. Each round decides all but a share of about 2^-64 of what is left, and the
# result is that of infinitely precise arithmetic on an infinitely precise R.
#
# Error: libmpdec rounds exp and ln correctly (IBM's decimal specification), so each operation at P digits errs by
# at most 10^(1-P) relative to its result; a dozen of them stay far below the 10^(12-P) that is charged.

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


Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

MIN_SCALE = Fraction(1, 1 << 10)
MAX_SCALE = Fraction(1 << 40)
MAX_NOISE = (1 << 62) - 1

_CHUNK = 1 << 15
"""Lanes worked on at once: a dozen temporary arrays of them fit the cache, and memory stays flat."""
_SLACK = 2.0**-49
_CLOSE = 2.0**-48


class Sampler(Protocol):
    """Where noise comes from.

    Privacy: several runs draw at once, on threads of their own. A sampler keeps no state between draws, or guards it:
    two releases with the same noise would give away their difference.
    """

    def laplace(self, n: int, scale: Fraction) -> Integers:
        """`n` independent discrete Laplace draws: P(x) proportional to exp(-|x| / scale)."""

    def gaussian(self, n: int, sigma: Fraction) -> Integers:
        """`n` independent discrete Gaussian draws: P(x) proportional to exp(-x^2 / (2 sigma^2))."""

    def choose(self, penalties: npt.NDArray[Any], scale: Fraction) -> Integers:
        """One place in each row, independently: P(place) proportional to exp(-penalty / scale).

        Penalties are whole numbers, of 64 bits or Python's; a row has at least one place.
        """

    def flip(self, penalties: npt.NDArray[Any], scale: Fraction) -> Integers:
        """One place in each row by permute-and-flip: each passes with probability exp(-(penalty - the least) / scale),
        and one of those that passed is drawn uniformly. As for `choose`, a row has at least one place.
        """


@dataclass(frozen=True)
class _LaplaceConstants:
    exact: Fraction
    scale: float
    offset: float


@dataclass(frozen=True)
class _GaussianConstants:
    proposal: _LaplaceConstants
    variance: Fraction
    center: Fraction
    near: float
    half_inverse: float


def _check_scale_range(scale: Fraction) -> None:
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise ValueError("a noise scale must lie between 2^-10 and 2^40 grid units")


@lru_cache(maxsize=256)
def _laplace_constants(scale: Fraction) -> _LaplaceConstants:
    _check_scale_range(scale)
    return _LaplaceConstants(scale, float(scale), float(shifted_offset(scale, 63)))


@lru_cache(maxsize=256)
def _gaussian_constants(sigma: Fraction) -> _GaussianConstants:
    _check_scale_range(sigma)
    variance, proposal = sigma * sigma, int(sigma) + 1
    center = variance / proposal
    return _GaussianConstants(
        _laplace_constants(Fraction(proposal)), variance, center, float(center), float(1 / (2 * variance))
    )


class ExactSampler:
    """Noise and choices from uniform bits, exactly distributed (see above)."""

    def __init__(self, bits: RandomSource = os.urandom) -> None:
        self._bits = bits

    def laplace(self, n: int, scale: Fraction) -> Integers:
        """Privacy: exactly the discrete Laplace distribution, for uniform bits."""
        constants = _laplace_constants(scale)
        result = np.empty(n, np.int64)
        for start in range(0, n, _CHUNK):
            stop = min(start + _CHUNK, n)
            result[start:stop] = self._draw_laplace(stop - start, constants)
        return result

    def gaussian(self, n: int, sigma: Fraction) -> Integers:
        """Privacy: exactly the discrete Gaussian distribution, for uniform bits (Canonne et al. 2020)."""
        constants = _gaussian_constants(sigma)
        result = np.empty(n, np.int64)
        filled = 0
        while filled < n:
            # Three of four proposals are accepted at large sigma; 1.4 times what is missing nearly always does.
            lanes = min(_CHUNK, int((n - filled) * 1.4) + 16)
            proposals = self._draw_laplace(lanes, constants.proposal)
            accepted = proposals[self._accept_gaussian(proposals, constants)][: n - filled]
            result[filled : filled + len(accepted)] = accepted
            filled += len(accepted)
        return result

    def choose(self, penalties: npt.NDArray[Any], scale: Fraction) -> Integers:
        """Privacy: exactly P(place) ~ exp(-penalty / scale), for uniform bits."""
        if scale <= 0:
            raise ValueError("a scale is positive")
        gaps = penalties - penalties.min(axis=1, keepdims=True)
        sums = gaps.astype(np.float64)
        sums *= -float(1 / scale)
        np.exp(sums, out=sums)
        np.cumsum(sums, axis=1, out=sums)
        words = self._draw_words(len(sums))
        inner, totals = sums[:, :-1], sums[:, -1:]
        targets = words.astype(np.float64)[:, None] * 2.0**-64 * totals
        margins = totals * ((sums.shape[1] + 32) * 2.0**-48)
        indices: Integers = np.count_nonzero(inner <= targets - margins, axis=1)
        for row in np.flatnonzero(indices != np.count_nonzero(inner <= targets + margins, axis=1)):
            indices[row] = pick_weighted_index(int(words[row]), 64, gaps[row].tolist(), scale, self._bits)
        return indices

    def flip(self, penalties: npt.NDArray[Any], scale: Fraction) -> Integers:
        """Privacy: exactly the distribution of permute-and-flip, for uniform bits (McKenna, Sheldon 2020)."""
        if scale <= 0:
            raise ValueError("a scale is positive")
        gaps = penalties - penalties.min(axis=1, keepdims=True)
        p = gaps.astype(np.float64)
        p *= -float(1 / scale)
        np.exp(p, out=p)
        words = self._draw_words(p.size).reshape(p.shape)
        u = words.astype(np.float64) * 2.0**-64
        best: Flags = (gaps == 0).astype(np.bool_)
        passed: Flags = (u < p) | best
        for row, lane in np.argwhere((np.abs(u - p) <= _CLOSE) & ~best).tolist():
            exponent = Fraction(int(gaps[row, lane])) / scale
            passed[row, lane] = is_below_exp(int(words[row, lane]), 64, exponent, self._bits)
        numbers = np.cumsum(passed, axis=1)
        heads = self._draw_words(len(p)).tolist()
        drawn = [
            pick_uniform_index(head, 64, n, self._bits) for head, n in zip(heads, numbers[:, -1].tolist(), strict=True)
        ]
        indices: Integers = np.argmax(numbers > np.array(drawn, np.int64)[:, None], axis=1)
        return indices

    def _draw_words(self, n: int) -> Words:
        return np.frombuffer(self._bits(8 * n), dtype="<u8")

    def _draw_laplace(self, n: int, constants: _LaplaceConstants) -> Integers:
        words = self._draw_words(n)
        heads = words >> np.uint64(1)
        u = heads.astype(np.float64)
        u += 0.5
        y = constants.offset - np.log(u)
        error = y + 64.0
        error *= _SLACK
        error += 1.0 / u
        error *= constants.scale
        y *= constants.scale
        whole = np.floor(y)
        magnitudes = whole.astype(np.int64)
        y -= whole
        y -= 0.5
        np.abs(y, out=y)
        y += error
        for lane in np.flatnonzero((y >= 0.5) | (u < 1024.0)):
            exact = laplace_magnitude(int(heads[lane]), 63, constants.exact, self._bits)
            magnitudes[lane] = min(exact, MAX_NOISE)
        signs = (words & np.uint64(1)).astype(np.int64)
        # (m ^ -s) + s is -m where s is 1, and m where it is 0: no branch.
        return (magnitudes ^ -signs) + signs

    def _accept_gaussian(self, proposals: Integers, constants: _GaussianConstants) -> Flags:
        sizes = np.abs(proposals).astype(np.float64)
        distances = np.abs(sizes - constants.near)
        exponents = distances * distances * constants.half_inverse
        sizes += constants.near + 1.0
        errors = sizes * distances * (2.0 * constants.half_inverse) + exponents
        errors *= 2.0**-48
        words = self._draw_words(len(proposals))
        u = words.astype(np.float64) * 2.0**-64
        p = np.exp(-exponents)
        accepted: Flags = u < p
        doubt = p * (2.0 * errors + _SLACK) + u * 2.0**-52 + 2.0**-59
        for lane in np.flatnonzero(np.abs(u - p) <= doubt):
            exponent = (abs(int(proposals[lane])) - constants.center) ** 2 / (2 * constants.variance)
            accepted[lane] = is_below_exp(int(words[lane]), 64, exponent, self._bits)
        return accepted
