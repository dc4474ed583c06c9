"""How a synthetic table looks at private rows: noisy totals, noisy marginals, and the marginal that is furthest off.

Law: of the modules that make a synthetic table, this one alone sees a tally, and what it gives out is noisy or chosen.
What it is told, estimates and handicaps, must be public: worked out from what it gave out before.

A marginal is the weight of the rows for each tuple of codes of some axes. Neighbors move the weights of a tally by a
vector d, |d|_1 <= L, |d|_2^2 <= S, and the weight of any set of tuples by at most M (`tally.UnitMass`).

Stability: the total moves by at most M. A marginal adds up the weights of disjoint sets, so that it moves by at most L
in L1; what comes and what leaves are each of norm M at most and not negative, so by at most S in L2, squared. The
distance sum |x_c - e_c| of a marginal x to a public e moves by at most L, by the triangle inequality.

Privacy, of one look each (Laplace or Gaussian noise: `mechanisms.loss`):
    total       Laplace: epsilon = M/b, rho = M^2/(2 b^2);  Gaussian: rho = M^2/(2 sigma^2)
    marginal    Laplace: epsilon = L/b, rho = S/(2 b^2);    Gaussian: rho = S/(2 sigma^2)
    furthest    P(r) ~ exp(distance_r / b): epsilon = 2 L/b, rho = L^2/(2 b^2)  (bounded range: Dong, Durfee, Rogers
                2020; Cesar, Rogers 2021)
Looks are made one after another, each knowing what came before: losses add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from dpsql.privacy.exact import Cells
from dpsql.privacy.loss import Loss
from dpsql.privacy.noise import Mechanism, Sensitivity, draw_noise, noise_loss
from dpsql.privacy.sampling import Sampler
from dpsql.privacy.weighted_rows import UnitMass, WeightedRows, total_sensitivity

Marginal = tuple[int, ...]
"""Axes, in ascending order; without any it is the total."""
Floats = npt.NDArray[np.float64]

_MAX_ESTIMATE = 1 << 60
"""Estimates are clipped to it. Tallies weigh at most 2^56 (2^40 rows of 2^16), so no distance passes 64 bits."""


class MarginalMeasurer:
    """Weighted rows that are seen through noise only."""

    __slots__ = ("__sampler", "__sizes", "__tally")

    def __init__(self, tally: WeightedRows, sizes: tuple[int, ...], sampler: Sampler) -> None:
        self.__tally = tally
        self.__sizes = sizes
        self.__sampler = sampler

    def measure_marginal(self, marginal: Marginal, mechanism: Mechanism) -> Cells:
        """The marginal with noise in each cell, in the shape of its axes; of no axes, the total."""
        exact = np.clip(self.__exact(marginal), -_MAX_ESTIMATE, _MAX_ESTIMATE)
        noise = draw_noise(mechanism, exact.size, self.__sampler)
        noisy: Cells = exact + noise.reshape(exact.shape)
        return noisy

    def compare_marginals(
        self, estimates: Mapping[Marginal, Floats], handicaps: Mapping[Marginal, int]
    ) -> MarginalSelector:
        """The distances of marginals to public estimates, less public handicaps; sealed."""
        distances = {
            marginal: self.__distance(marginal, estimate) - handicaps[marginal]
            for marginal, estimate in estimates.items()
        }
        return MarginalSelector(distances, self.__sampler)

    def __distance(self, marginal: Marginal, estimate: Floats) -> int:
        # Rounded once, and the same on both neighbors: the estimate is public.
        whole = np.rint(np.clip(np.nan_to_num(estimate), 0.0, float(_MAX_ESTIMATE))).astype(np.int64)
        return int(np.abs(self.__exact(marginal) - whole).sum())

    def __exact(self, marginal: Marginal) -> Cells:
        shape = tuple(self.__sizes[axis] for axis in marginal)
        sums = np.zeros(prod(shape), np.int64)
        places = np.zeros(len(self.__tally.weights), np.int64)
        for axis, size in zip(marginal, shape, strict=True):
            places = places * size + self.__tally.codes[:, axis]
        np.add.at(sums, places, self.__tally.weights)  # whole numbers: bincount would add up floats
        return sums.reshape(shape)

    def __repr__(self) -> str:
        return "Looks(sealed)"

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise TypeError("private rows are not to be copied or stored")

    __reduce__ = __reduce_ex__ = __getstate__ = __copy__ = __deepcopy__ = _refuse_copy


class MarginalSelector:
    """How far marginals are off, exactly; nothing but who was chosen leaves."""

    __slots__ = ("__distances", "__sampler")

    def __init__(self, distances: Mapping[Marginal, int], sampler: Sampler) -> None:
        self.__distances = dict(distances)
        self.__sampler = sampler

    def choose_furthest(self, candidates: Sequence[Marginal], scale: Fraction) -> Marginal:
        """One of the candidates, which must be public, by the exponential mechanism: likely one that is far off."""
        penalties = np.array([[-self.__distances[candidate] for candidate in candidates]], dtype=np.int64)
        (index,) = self.__sampler.choose(penalties, scale)
        return candidates[int(index)]

    def __repr__(self) -> str:
        return "Contest(sealed)"

    __reduce__ = __reduce_ex__ = __getstate__ = __copy__ = __deepcopy__ = MarginalMeasurer._refuse_copy


def total_loss(mechanism: Mechanism, mass: UnitMass) -> Loss:
    """The loss of measuring the total once."""
    return noise_loss(mechanism, total_sensitivity(mass))


def marginal_loss(mechanism: Mechanism, mass: UnitMass) -> Loss:
    """The loss of measuring a whole marginal once."""
    return noise_loss(mechanism, marginal_sensitivity(mass))


def furthest_loss(scale: Fraction, mass: UnitMass) -> Loss:
    """The loss of choosing once the marginal that is furthest off."""
    return Loss(2 * mass.l1 / scale, mass.l1**2 / (2 * scale**2), Fraction(0))


def marginal_sensitivity(mass: UnitMass) -> Sensitivity:
    return Sensitivity(mass.l1, mass.l2_squared, mass.max_move)
