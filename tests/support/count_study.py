"""A study that is as small as can be: noisy counts of the first column's codes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpsql.compiler.calibrate.calibrate import LossShare
from dpsql.compiler.plan.steps import Axis
from dpsql.privacy.exact import Cells
from dpsql.privacy.loss import Loss
from dpsql.privacy.noise import Laplace, Sensitivity, noise_loss, round_up_scale
from dpsql.privacy.sampling import Sampler
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRows


@dataclass(frozen=True)
class Counts:
    axes: Axes
    mass: UnitMass
    scale: Fraction
    kind: str = "counts"

    @property
    def grids(self) -> tuple[Fraction, ...]:
        return (Fraction(1), Fraction(1, self.mass.whole))

    @property
    def loss(self) -> Loss:
        return noise_loss(Laplace(self.scale), Sensitivity(self.mass.l1, self.mass.l2_squared, self.mass.max_move))

    def perform(self, tally: WeightedRows, sampler: Sampler) -> tuple[Cells, ...]:
        size = self.axes.sizes[0]
        counts = np.bincount(tally.codes[:, 0], tally.weights, minlength=size).astype(np.int64)
        return np.arange(size), counts + sampler.laplace(size, self.scale)

    noise_sizes = ()

    def explain_lines(self) -> tuple[str, ...]:
        return ("counts of the first column",)

    def to_audit_record(self) -> dict[str, Any]:
        return {"scale": str(self.scale)}

    def to_json(self) -> dict[str, Any]:
        return {"lowers": list(self.axes.lowers), "sizes": list(self.axes.sizes), "mass": self.mass.to_json(),
                "scale": str(self.scale)}  # fmt: skip


def read_counts(part: dict[str, Any]) -> Counts:
    axes = Axes(tuple(part["lowers"]), tuple(part["sizes"]))
    return Counts(axes, UnitMass.from_json(part["mass"]), Fraction(part["scale"]))


def counts(axes: tuple[Axis, ...], ranges: Axes, mass: UnitMass, share: LossShare) -> Counts:
    return Counts(ranges, mass, round_up_scale(mass.l1 / share.epsilon))
