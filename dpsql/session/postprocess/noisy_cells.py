"""A release's cells by name, with their noise, and sums of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dpsql.compiler.plan.estimators import Terms
from dpsql.privacy.noise import Laplace, Mechanism, interval_factor, scale_of, standard_error
from dpsql.privacy.release import Release
from dpsql.session.postprocess.autodiff import Dual, Floats
from dpsql.session.postprocess.latent_sums import SumNoise


@dataclass(frozen=True)
class NoisyCells:
    """A release's columns by name, with the standard error of each in the units of its values."""

    release: Release
    cell_indexes: Mapping[str, int]
    mechanisms: dict[str, Mechanism] = field(default_factory=dict)
    noise: dict[str, float | Floats] = field(default_factory=dict)
    factors: dict[str, float] = field(default_factory=dict)  # half of the 95 % interval, in standard errors

    def __post_init__(self) -> None:
        spec = self.release.spec
        mechanisms = {index: bundle.mechanism for bundle in spec.bundles for index in bundle.columns}
        for cell, index in self.cell_indexes.items():
            if index in mechanisms:
                self.mechanisms[cell] = mechanisms[index]
                self.noise[cell] = standard_error(mechanisms[index]) * float(spec.grids[index])
                self.factors[cell] = interval_factor(mechanisms[index])

    def to_dual(self, terms: Terms) -> Dual:
        groups = len(self.release.keys)
        value, gradient = np.zeros(groups), {}
        for cell, coefficient in terms:
            index = self.cell_indexes[cell]
            value = value + self.release.cells[index] * float(coefficient * self.release.spec.grids[index])
            gradient[cell] = np.full(groups, float(coefficient))
        return Dual(value, gradient)

    def exact_sums(self, terms: Terms) -> list[Fraction]:
        indexes = [self.cell_indexes[cell] for cell, _ in terms]
        grids = self.release.spec.grids
        weights = [coefficient * grids[p] for (_, coefficient), p in zip(terms, indexes, strict=True)]
        rows = zip(*(self.release.cells[index].tolist() for index in indexes), strict=True) if indexes else None
        if rows is None:
            return [Fraction(0)] * len(self.release.keys)
        return [sum((w * c for w, c in zip(weights, row, strict=True)), Fraction(0)) for row in rows]

    def widest_factor(self, dual: Dual) -> float:
        return max((self.factors[cell] for cell in dual.gradient), default=0.0)

    def noise_of(self, terms: Terms) -> SumNoise:
        """That of the only cell; of several, a Gaussian of the same variance."""
        if len(terms) == 1:
            cell, coefficient = terms[0]
            mechanism, grid = self.mechanisms[cell], self.release.spec.grids[self.cell_indexes[cell]]
            return SumNoise(isinstance(mechanism, Laplace), float(abs(coefficient) * grid * scale_of(mechanism)))
        grids = self.release.spec.grids
        parts = (float(coefficient * grids[self.cell_indexes[c]]) * standard_error(self.mechanisms[c])
                 for c, coefficient in terms)  # fmt: skip
        return SumNoise(False, math.hypot(*parts))

    def half_width(self, dual: Dual) -> Floats:
        return self.widest_factor(dual) * dual.stderr(self.noise)


def noisy_cells_of(release: Release, columns: tuple[str, ...]) -> NoisyCells:
    return NoisyCells(release, {name: index for index, name in enumerate(columns)})
