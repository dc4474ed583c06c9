"""The choice of a norm: how much of one unit's contribution counts, read from a noisy histogram of units by norm; and
of the centre that values are added up about, read from one of units by mean.

A cell adds up values over rows. A unit's norm is that of its own sums over all groups: L1 for Laplace noise, L2 for
Gaussian. Units beyond the chosen norm C are scaled down to it, whatever C is; so C decides how accurate an answer is,
and never whether it is private. A large C means much noise, a small one takes away much of what heavy units hold.

Privacy: everything here is a function of noisy counts that were released and paid for, of the noise's scales, of the
statement and of the schema. Nothing reads exact counts, so the choice and the estimate of what was clipped are
post-processing (docs/soundness.md 4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from dpsql.privacy.noise import Gaussian, Mechanism, scale_of, standard_error

Floats = npt.NDArray[np.float64]

FALSE_SIGHT = 0.002
"""How often a histogram without any unit shows a bin, about."""

FALSE_NEIGHBOR = 0.02
"""How often an empty bin beside one that is seen is taken for seen: that makes a norm twice as large at most, where
missing units there loses all that they hold beyond it."""

SKIP_COST = 2.0
"""What each bin that is skipped adds to the threshold of the next, in logarithms: more than the square of an error
grows from bin to bin, which is ln 4, or lone noise far up would decide how large errors are on average."""

WINDOWS = (1, 2, 4)
"""Bins in a row that are looked at together, where fewer are not seen."""

CHERNOFF_RATES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)

CANDIDATES_PER_DOUBLING = 2
"""Candidates for the norm, at least: bins of whole doublings have some between their edges."""

DIVISOR_LOSS = 0.1
"""The part of what is clipped that an average shows as an error, where units beyond its divisor's norm weigh less."""

MAX_POINTS = 64
"""Whole numbers of a bin that are looked at one by one; beyond, norms are taken to lie anywhere in it."""

CENTER_BITS = 16
"""Of a centre, behind the first."""

MASS_QUANTILE = 1.28
"""Of the normal distribution: the clipped mass is below its upper estimate in nine of ten cases."""


@dataclass(frozen=True)
class NormBins:
    """Bins of norms: bin number j, from `first` to `last`, holds norms from 2^(j / per_doubling) to the next edge.

    The last one is open; a norm below the first edge is in the first. `whole` says that norms are whole numbers.
    """

    first: int
    last: int
    per_doubling: int
    whole: bool

    def __post_init__(self) -> None:
        if self.first > self.last or self.per_doubling < 1:
            raise ValueError("there is at least one bin")

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    def lower_edge(self, index: int) -> float:
        return float(2.0 ** ((self.first + index) / self.per_doubling))

    def upper_edge(self, index: int) -> float:
        """Of the open bin as of the others: a guess that is only used for accuracy."""
        return self.lower_edge(index + 1)


@dataclass(frozen=True)
class NormHistogram:
    """Noisy counts of units, one per bin, and the noise that they have."""

    bins: NormBins
    counts: tuple[int, ...]
    noise: Mechanism

    def __post_init__(self) -> None:
        if len(self.counts) != self.bins.count:
            raise ValueError("there is one count for each bin")


@dataclass(frozen=True)
class MeanBins:
    """Bins of the means of units: bin 0 holds what is nearer to 0 than 2^power, bin number j > 0 the means from
    2^(power + (j - 1) / per_doubling) to the next edge, bin number -j their negatives; up to `last`."""

    last: int
    per_doubling: int
    power: int

    @property
    def count(self) -> int:
        return 2 * self.last + 1

    def edges(self, index: int) -> tuple[float, float]:
        number = index - self.last
        if number == 0:
            return 0.0, 0.0
        low, high = (2.0 ** (self.power + (abs(number) - 1 + end) / self.per_doubling) for end in (0, 1))
        return (low, high) if number > 0 else (-high, -low)


@dataclass(frozen=True)
class MeanHistogram:
    """Noisy counts of units, one per bin of their means, and the noise that they have."""

    bins: MeanBins
    counts: tuple[int, ...]
    noise: Mechanism

    def __post_init__(self) -> None:
        if len(self.counts) != self.bins.count:
            raise ValueError("there is one count for each bin")


UnitHistogram = NormHistogram | MeanHistogram


def make_histogram(bins: NormBins | MeanBins, counts: tuple[int, ...], noise: Mechanism) -> UnitHistogram:
    return NormHistogram(bins, counts, noise) if isinstance(bins, NormBins) else MeanHistogram(bins, counts, noise)


@dataclass(frozen=True)
class CellNoise:
    """The noise of the cell that the norm is for: `per_norm` is its scale where C is 1; `groups` share what is lost.

    `l2` says that the norm is L2. Lost mass then spreads over groups unevenly: a root of fourth degree more is lost.
    """

    per_norm: float
    gaussian: bool
    groups: int
    l2: bool
    signed: bool = False  # whether a unit's sums may be negative
    divides: bool = False  # whether it is only asked for to divide sums of the same weights by it

    def predicted_error(self, norm: float, mass: float, kept: float) -> float:
        """The mean absolute error of one group, with `mass` clipped and `kept` left over all groups.

        What a divisor loses its sums lose as well, so that little of it shows; but less is left to divide by.
        """
        scale = self.per_norm * norm
        bias = max(0.0, mass) / self.groups * (self.groups**0.25 if self.l2 else 1.0)
        if self.divides and kept > 0:
            scale, bias = scale * (1 + max(0.0, mass) / kept), bias * DIVISOR_LOSS
        if not self.gaussian:
            return bias + scale * math.exp(-bias / scale)
        ratio = bias / scale
        return scale * math.sqrt(2 / math.pi) * math.exp(-ratio * ratio / 2) + bias * (1 - 2 * NormalDist().cdf(-ratio))


@dataclass(frozen=True)
class ChosenNorm:
    """A norm, with what is known of the units beyond it.

    `clipped` is the mass that is taken away over all units and groups, about, and `clipped_error` its standard error.
    `kept` is the mass that stays, about. `heavy_tail`: a few units that nobody sees may hold much more.
    """

    norm: Fraction
    clipped: float
    clipped_error: float
    kept: float
    heavy_tail: bool
    l2: bool = False
    signed: bool = False
    scaled: float = 0.0  # the sum, over units beyond the norm, of the part that each loses, about

    @property
    def clipped_above(self) -> float:
        return max(0.0, self.clipped) + MASS_QUANTILE * self.clipped_error

    @property
    def clipped_share(self) -> float:
        """The part of all mass that is clipped, about."""
        clipped = max(0.0, self.clipped)
        return clipped / (clipped + self.kept) if clipped else 0.0

    def group_shifts(
        self, answers: Floats, lost: float | None = None, weights: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """How far the truth may lie below and above the noisy answers of all groups, where `lost` is clipped in all.

        By default that is the upper estimate, which holds in nine of ten cases. It is spread over groups as their
        answers are, and no group has less than an even part. An L2 norm tells less than the sum of what is lost: by
        how much follows from the answers. `weights` tell how answers are spread that may cancel, as about a centre.
        """
        lost = self.clipped_above if lost is None else lost
        groups = max(1, len(answers))
        sizes = np.abs(answers)
        total = float(sizes.sum())
        if self.signed:
            parts = np.full(len(answers), 1.0 / groups)
            if weights is not None and (whole := float(np.maximum(weights, 0.0).sum())) > 0:
                parts = np.maximum(np.maximum(weights, 0.0) / whole, parts)
            either = lost * (groups**0.25 if self.l2 else 1.0) * parts
            return either, either
        spread = min(math.sqrt(groups), max(1.0, total / self.kept)) if self.l2 and self.kept > 0 else 1.0
        parts = np.full(len(answers), 1.0 / groups)  # also where there is no group, or all answers are 0
        if total > 0:
            parts = np.maximum(sizes / total, parts)
        return np.zeros(len(answers)), lost * spread * parts


@dataclass(frozen=True)
class CountBeside:
    """A count that is asked for as well, and that a unit's weight scales down with the sum that a norm is chosen for:
    its norm, and its noise."""

    chosen: ChosenNorm
    cell: CellNoise

    def predicted_error(self, scaled: float) -> float:
        """Where so many units are taken away by the sum's norm, in parts: each has the count's norm, at most."""
        lost = float(self.chosen.norm) * max(0.0, scaled - max(0.0, self.chosen.scaled))
        clipped = max(0.0, self.chosen.clipped) + lost
        return self.cell.predicted_error(float(self.chosen.norm), clipped, max(0.0, self.chosen.kept - lost))


def choose_norm(
    histogram: NormHistogram, cell: CellNoise, largest: Fraction | None = None, beside: CountBeside | None = None
) -> ChosenNorm | None:
    """The norm with the least predicted error; None where no bin is seen to have units.

    `largest` is a bound that the schema proves: no larger norm is of any use. With a count `beside`, the two errors
    count alike, each as a multiple of the least that it could be.
    """
    seen = find_seen_bins(histogram)
    if not seen:
        return None
    first, last = max(0, seen[0] - 1), min(histogram.bins.count - 1, seen[-1] + 1)
    looked_at = range(first, last + 1)
    candidates = _candidates(histogram.bins, looked_at, largest)
    norm = _choose_best(histogram, looked_at, cell, candidates, beside)
    weights = [_mean_excess(histogram.bins, index, norm) for index in looked_at]
    top = seen[-1]
    excess = histogram.counts[top] - histogram.counts[top - 1] / 2  # all units in one bin are no tail
    return ChosenNorm(
        norm,
        _clipped_mass(histogram, looked_at, norm),
        standard_error(histogram.noise) * math.sqrt(sum(weight * weight for weight in weights)),
        _kept_mass(histogram, looked_at, norm),
        (top - 1 in seen and excess > _walk_threshold(histogram, 1)) or top == histogram.bins.count - 1,
        cell.l2,
        cell.signed,
        _scaled_units(histogram, looked_at, norm),
    )


def _choose_best(
    histogram: NormHistogram,
    looked_at: Sequence[int],
    cell: CellNoise,
    candidates: Sequence[Fraction],
    beside: CountBeside | None,
) -> Fraction:
    errors = [_predicted_error(histogram, looked_at, cell, norm) for norm in candidates]
    if beside is not None:
        counts = [beside.predicted_error(_scaled_units(histogram, looked_at, norm)) for norm in candidates]
        least, least_count = min(errors), min(counts)
        errors = [error / least + count / least_count for error, count in zip(errors, counts, strict=True)]
    return min(zip(errors, candidates, strict=True))[1]


def find_seen_bins(histogram: NormHistogram) -> list[int]:
    """From the fullest bin up and down: a bin is seen where its noisy count is beyond noise, the further beyond the
    more bins were skipped.

    Where there are units the fullest bin has some, wherever it is: it must be beyond what any of all bins is by noise
    alone. Its neighbors need less, since a tail of few heavy units is worth seeing. The rise ends a trap: of many empty
    bins one far up may well be beyond a threshold that is the same for all, and an answer would drown in the noise of
    that norm. Where no bin is beyond noise, two or four in a row may be: few units that are spread over several bins.
    """
    for width in WINDOWS:
        start = max(
            range(histogram.bins.count - width + 1), key=lambda index: sum(histogram.counts[index : index + width])
        )
        if sum(histogram.counts[start : start + width]) > _window_threshold(histogram, width):
            upward = _walk(histogram, range(start + width, histogram.bins.count))
            downward = _walk(histogram, range(start - 1, -1, -1))
            return [*reversed(downward), *range(start, start + width), *upward]
    return []


def _walk(histogram: NormHistogram, indices: range) -> list[int]:
    seen: list[int] = []
    skipped = 0
    for index in indices:
        if histogram.counts[index] > _walk_threshold(histogram, skipped):
            seen.append(index)
            skipped = 0
        else:
            skipped += 1
    return seen


def choose_center(histogram: MeanHistogram) -> Fraction | None:
    """The median of the means of units, over the bins that are seen; None where none is.

    A median, since a lone bin of noise far away would move a mean by its distance. Within a bin, units lie evenly.
    """
    threshold = _threshold(histogram)
    seen = [index for index, count in enumerate(histogram.counts) if count > threshold]
    left = sum(histogram.counts[index] for index in seen) / 2
    for index in seen:
        count = histogram.counts[index]
        if left <= count:
            low, high = histogram.bins.edges(index)
            return _round_center(low + (high - low) * left / count)
        left -= count
    return None


def _round_center(center: float) -> Fraction:
    """To about five digits, in powers of two: exact as a double, whatever is added to it."""
    if not center:
        return Fraction(0)
    unit = Fraction(2) ** (math.floor(math.log2(abs(center))) - CENTER_BITS)
    return round(Fraction(center) / unit) * unit


def _window_threshold(histogram: NormHistogram, width: int) -> float:
    """What noise alone is beyond in any window of so many bins hardly ever.

    Of a sum of independent Laplace noises by Chernoff's bound: P(sum > t) <= e^(-x t) / (1 - x^2)^width at scale 1.
    """
    if width == 1:
        return _threshold(histogram)
    log, scale = math.log(histogram.bins.count / FALSE_SIGHT), float(scale_of(histogram.noise))
    if isinstance(histogram.noise, Gaussian):
        return scale * math.sqrt(2 * log * width)
    return scale * min((log - width * math.log(1 - x * x)) / x for x in CHERNOFF_RATES)


def _threshold(histogram: UnitHistogram) -> float:
    """What the noise of no bin is beyond, hardly ever."""
    return _noise_beyond(histogram, math.log(histogram.bins.count / FALSE_SIGHT))


def _walk_threshold(histogram: NormHistogram, skipped: int) -> float:
    return _noise_beyond(histogram, SKIP_COST * skipped - math.log(FALSE_NEIGHBOR))


def _noise_beyond(histogram: UnitHistogram, log: float) -> float:
    """What the noise of one bin is beyond with a probability of about e^-log."""
    scale = float(scale_of(histogram.noise))
    return scale * (math.sqrt(2 * log) if isinstance(histogram.noise, Gaussian) else log)


def _candidates(bins: NormBins, looked_at: Sequence[int], largest: Fraction | None) -> list[Fraction]:
    between = max(1, CANDIDATES_PER_DOUBLING // bins.per_doubling)
    norms: set[Fraction] = set()
    for index in looked_at:
        low, high = bins.lower_edge(index), bins.upper_edge(index)
        norms |= {_round_norm(low + (high - low) * step / between, bins.whole) for step in range(between + 1)}
    return sorted({norm if largest is None else min(norm, largest) for norm in norms})


def _round_norm(norm: float, whole: bool) -> Fraction:
    """To three digits, as people read it; whole numbers up to the next one."""
    if whole:
        return Fraction(max(1, math.ceil(norm)))
    digits = 2 - math.floor(math.log10(norm))
    return Fraction(round(norm * 10.0**digits)) / Fraction(10) ** digits


def _clipped_mass(histogram: NormHistogram, looked_at: Sequence[int], norm: Fraction) -> float:
    """The sum over bins of noisy count times what one unit of the bin loses: noisy counts as they are, negative ones
    too, so that the sum has no bias."""
    return sum(histogram.counts[index] * _mean_excess(histogram.bins, index, norm) for index in looked_at)


def _scaled_units(histogram: NormHistogram, looked_at: Sequence[int], norm: Fraction) -> float:
    return sum(histogram.counts[index] * _mean_part(histogram.bins, index, norm) for index in looked_at)


def _kept_mass(histogram: NormHistogram, looked_at: Sequence[int], norm: Fraction) -> float:
    return sum(max(0, histogram.counts[index]) * _mean_kept(histogram.bins, index, norm) for index in looked_at)


def _predicted_error(histogram: NormHistogram, looked_at: Sequence[int], cell: CellNoise, norm: Fraction) -> float:
    mass, kept = (mass_of(histogram, looked_at, norm) for mass_of in (_clipped_mass, _kept_mass))
    return cell.predicted_error(float(norm), mass, kept)


def _mean_excess(bins: NormBins, index: int, norm: Fraction) -> float:
    """How far the norm of a unit of the bin lies beyond `norm`, on average: norms are spread evenly in logarithms."""
    low, high, cut = bins.lower_edge(index), bins.upper_edge(index), float(norm)
    if high <= cut:
        return 0.0
    points = _whole_norms(bins, index)
    if points is not None:
        excess = sum(max(0.0, point - cut) / point for point in points)
        return excess / sum(1 / point for point in points) if points else 0.0
    start = max(low, cut)
    return (high - start - cut * math.log(high / start)) / math.log(high / low)


def _mean_part(bins: NormBins, index: int, norm: Fraction) -> float:
    """The part of its contribution that a unit of the bin loses, on average."""
    low, high, cut = bins.lower_edge(index), bins.upper_edge(index), float(norm)
    if high <= cut:
        return 0.0
    points = _whole_norms(bins, index)
    if points is not None:
        parts = sum(max(0.0, 1 - cut / point) / point for point in points)
        return parts / sum(1 / point for point in points) if points else 0.0
    start = max(low, cut)
    return (math.log(high / start) - cut * (1 / start - 1 / high)) / math.log(high / low)


def _mean_kept(bins: NormBins, index: int, norm: Fraction) -> float:
    """The mean of min(norm of a unit, `norm`) in the bin."""
    low, high = bins.lower_edge(index), bins.upper_edge(index)
    points = _whole_norms(bins, index)
    if points is None:
        return (high - low) / math.log(high / low) - _mean_excess(bins, index, norm)
    mean = len(points) / sum(1 / point for point in points) if points else 0.0
    return mean - _mean_excess(bins, index, norm)


def _whole_norms(bins: NormBins, index: int) -> range | None:
    """The whole numbers of a bin, where norms are such and they are few."""
    low, high = bins.lower_edge(index), bins.upper_edge(index)
    return range(math.ceil(low), math.ceil(high)) if bins.whole and high - low <= MAX_POINTS else None
