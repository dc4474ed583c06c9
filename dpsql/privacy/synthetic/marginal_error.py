"""How far a synthetic table's marginals are from the private ones, as far as noisy values and public scales tell.

A figure is a mean over the cells of a marginal, in units of weight, of |synthetic - private|; it bounds the expected
error. Let x be the private marginal, m what was measured of it, with noise of mean size e in each cell, m+ the same
without negative cells, g the synthetic one.

Measured, itself or as a part of a marginal with more axes: x is not negative, so |m+ - x| <= |m - x| in each cell, and

    sum |g - x|  <=  sum |g - m+|  +  cells e        (expected).

Not measured: in some round r lost to s, by the scores d - h (d: distance to the estimate of that round, h: handicap).
The score of who was chosen is below that of any candidate by t with probability at most exp(-t/b), so, over all pairs
of a round and a candidate, Q of them, the largest such t is b (ln Q + 1) at most on average. With the estimates p of
that round,

    sum |g_r - x_r|  <=  sum |g_r - p_r| + h_r - h_s + (sum |m+_s - p_s| + cells_s e) + b (ln Q + 1)    (expected).

(The idea is that of McKenna et al. 2022, AIM.) No marginal is off by more than all weights of both tables: those of the
private one are as many as the noisy total says, and its error. Where no round ever compared a marginal, nothing is
known of it, and there is no figure.

The private marginal is that of weights: what units with too many rows lose to their norm is in no figure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpsql.privacy.noise import Gaussian, Laplace, Mechanism, standard_error
from dpsql.privacy.synthetic.measure import Floats, Marginal
from dpsql.privacy.synthetic.mwem import MarginalMeasurement


@dataclass(frozen=True)
class MarginalError:
    """The expected error of a marginal's cells, in units of weight; None where nothing tells it."""

    marginal: Marginal
    error: float | None
    measured: bool


@dataclass(frozen=True)
class SelectionRound:
    """The marginal that was chosen, the candidates, their estimates and handicaps; and what was measured then."""

    chosen: MarginalMeasurement
    estimates: Mapping[Marginal, Floats]
    handicaps: Mapping[Marginal, int]


def mean_noise_size(mechanism: Mechanism) -> float:
    """The mean of |noise| in a cell, from above."""
    match mechanism:
        case Laplace():
            return standard_error(mechanism)  # its mean size is less by a factor of sqrt 2, but not that of sums
        case Gaussian():
            return standard_error(mechanism) * math.sqrt(2.0 / math.pi)


def estimate_marginal_errors(
    synthetic: Mapping[Marginal, Floats],
    measured: Sequence[tuple[MarginalMeasurement, Mechanism]],
    rounds: Sequence[SelectionRound],
    size_of_noise: float,
    scale: float,
    total_error: float,
) -> list[MarginalError]:
    """One for each marginal of the synthetic table; `size_of_noise` and `scale` are those of the rounds."""
    slack = scale * (math.log(max(1, sum(len(compared_round.estimates) for compared_round in rounds))) + 1.0)
    result = []
    for marginal, cells in synthetic.items():
        max_error = (2.0 * float(cells.sum()) + total_error) / cells.size
        error = _measured_error(marginal, cells, measured)
        is_measured = error is not None
        if error is None:
            comparisons = [compared_round for compared_round in rounds if marginal in compared_round.estimates]
            error = _unmeasured_error(marginal, cells, comparisons[-1], size_of_noise, slack) if comparisons else None
        result.append(MarginalError(marginal, None if error is None else min(error, max_error), is_measured))
    return result


def _measured_error(
    marginal: Marginal, cells: Floats, measured: Sequence[tuple[MarginalMeasurement, Mechanism]]
) -> float | None:
    """By the measurement with the least noise in it: which that is, is public."""
    best, noise = None, math.inf
    for measurement, mechanism in measured:
        if set(marginal) <= set(measurement.marginal):
            size = mean_noise_size(mechanism) * math.sqrt(measurement.noisy.size / cells.size)
            if size < noise:
                best, noise = measurement, size
    if best is None:
        return None
    others = tuple(index for index, axis in enumerate(best.marginal) if axis not in marginal)
    summed = best.noisy.sum(axis=others) if others else best.noisy
    return float(np.abs(cells - np.maximum(summed, 0)).mean()) + noise


def _unmeasured_error(
    marginal: Marginal, cells: Floats, compared_round: SelectionRound, size_of_noise: float, slack: float
) -> float:
    chosen = compared_round.chosen
    winner = np.abs(np.maximum(chosen.noisy, 0) - compared_round.estimates[chosen.marginal]).sum()
    winner += chosen.noisy.size * size_of_noise
    handicap = compared_round.handicaps[marginal] - compared_round.handicaps[chosen.marginal]
    moved = np.abs(cells - compared_round.estimates[marginal]).sum()
    return max(0.0, float(moved + handicap + winner + slack)) / cells.size
