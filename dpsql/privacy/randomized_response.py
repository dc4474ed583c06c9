"""Randomized response: each answer is kept, or replaced by another, by a draw of its own (Warner 1965)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpsql.privacy.exact import Cells
from dpsql.privacy.loss import Loss
from dpsql.privacy.sampling import Integers, Sampler
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRows

_CHUNK_CELLS = 1 << 14
"""Answers that are drawn for at once, at most: memory stays flat."""


def randomize_responses(true_answers: Integers, answers: int, epsilon: Fraction, sampler: Sampler) -> Integers:
    """For each place among the answers, the place that is told.

    Privacy: an answer is told as it is with p = e^epsilon / (e^epsilon + k - 1), as each other one with p e^-epsilon:
    the exponential mechanism of a penalty that is 0 for the own answer and 1 for others, so exact. Whatever is told,
    its probabilities for two true answers differ by a factor of at most e^epsilon; draws of rows are independent.
    """
    if answers < 2 or epsilon <= 0:
        raise ValueError("an answer is one of two or more, and epsilon is positive")
    reported = np.empty(len(true_answers), np.int64)
    rows = max(1, _CHUNK_CELLS // answers)
    for start in range(0, len(true_answers), rows):
        chunk = true_answers[start : start + rows]
        penalties = np.ones((len(chunk), answers), np.int64)
        penalties[np.arange(len(chunk)), chunk] = 0
        reported[start : start + rows] = sampler.choose(penalties, 1 / epsilon)
    return reported


@dataclass(frozen=True)
class RandomizedResponse:
    """One randomized answer for each unit: the study of a tally with one axis, in which every unit has one row.

    What is given out is how often each answer was told. In which order units told them is not: it says nothing more.
    """

    axes: Axes
    mass: UnitMass
    epsilon: Fraction

    def __post_init__(self) -> None:
        if len(self.axes.sizes) != 1 or self.axes.sizes[0] < 2 or self.epsilon <= 0:
            raise ValueError("an answer is one of two or more, and epsilon is positive")
        if not (self.mass.one_row and self.mass.change_one):
            # Else the number of answers would tell how many rows a unit has, or whether it is there.
            raise ValueError("every unit has one row, and changes what it says")

    @property
    def kind(self) -> str:
        return "response"

    @property
    def grids(self) -> tuple[Fraction, ...]:
        return (Fraction(1),)

    @property
    def loss(self) -> Loss:
        """Privacy: neighbors differ in the answers of k rows, k the size of a group. Each of their draws is
        epsilon-private, so (epsilon^2)/2-zCDP (Bun, Steinke 2016); draws are independent, so both add up."""
        changed = self.mass.group_size
        return Loss(changed * self.epsilon, changed * self.epsilon**2 / 2, Fraction(0))

    @property
    def noise_sizes(self) -> tuple[float, ...]:
        return ()  # it follows from an epsilon of its own, whatever the kind of noise

    def perform(self, tally: WeightedRows, sampler: Sampler) -> tuple[Cells, ...]:
        """Privacy: what was told by all units, and then counted."""
        true_answers = np.repeat(tally.codes[:, 0], tally.weights)
        reported = randomize_responses(true_answers, self.axes.sizes[0], self.epsilon, sampler)
        return (np.bincount(reported, minlength=self.axes.sizes[0]).astype(np.int64),)

    def explain_lines(self) -> tuple[str, ...]:
        answers = self.axes.sizes[0]
        keep_probability = 1.0 / (1.0 + (answers - 1) * math.exp(-float(self.epsilon)))
        return (f"randomized response among {answers} answers: each is kept with probability {keep_probability:.4g}",)

    def to_audit_record(self) -> dict[str, Any]:
        return {"epsilon": str(self.epsilon), "answers": str(self.axes.sizes[0])}

    def to_json(self) -> dict[str, Any]:
        (lower,), (size,) = self.axes.lowers, self.axes.sizes
        return {"lower": str(lower), "size": str(size), "mass": self.mass.to_json(), "epsilon": str(self.epsilon)}

    @classmethod
    def from_json(cls, part: dict[str, Any]) -> RandomizedResponse:
        axes = Axes((int(part["lower"]),), (int(part["size"]),))
        return cls(axes, UnitMass.from_json(part["mass"]), Fraction(part["epsilon"]))
