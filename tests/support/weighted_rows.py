"""Tallies to try studies on, neighbors among them, and what a study looks at on both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.privacy.exact import Cells
from dpsql.privacy.noise import Laplace, Mechanism, scale_of
from dpsql.privacy.sampling import ExactSampler, Integers, Sampler
from dpsql.privacy.synthetic import synthesis
from dpsql.privacy.synthetic.measure import Floats, Marginal, MarginalMeasurer, MarginalSelector
from dpsql.privacy.synthetic.synthesis import Synthesis
from dpsql.privacy.weighted_rows import Axes, WeightedRows
from tests.support.likeliest_index import likeliest_index

Unit = Sequence[tuple[tuple[int, ...], int]]
"""What one unit adds: tuples of codes, each with a weight."""


def tally_of(units: Sequence[Unit], sizes: tuple[int, ...]) -> WeightedRows:
    rows = [row for unit in units for row in unit]
    columns = [np.array([codes[axis] for codes, _ in rows], np.int64) for axis in range(len(sizes))]
    return Axes((0,) * len(sizes), sizes).to_weighted_rows(
        (*columns, np.array([weight for _, weight in rows], np.int64))
    )


class Still:
    """A sampler that draws nothing: what is measured is exact, what is furthest off is chosen."""

    def laplace(self, n: int, scale: Fraction) -> Integers:
        return np.zeros(n, np.int64)

    gaussian = laplace

    def choose(self, penalties: Any, scale: Fraction) -> Integers:
        return likeliest_index(penalties)


class _Penalties(Still):
    def __init__(self) -> None:
        self.seen: list[Cells] = []

    def choose(self, penalties: Any, scale: Fraction) -> Integers:
        self.seen.append(penalties[0])
        return np.zeros(1, np.int64)


@dataclass
class Looked:
    """One look at both neighbors: what kind, its noise, and what it saw (of a choice: penalties)."""

    at: str
    mechanism: Mechanism | Fraction
    one: Cells
    other: Cells
    given: Cells | int

    @property
    def moved(self) -> Cells:
        return (self.other - self.one).reshape(-1)

    @property
    def ratio(self) -> float:
        """ln of how much likelier what was given is on the first."""
        if isinstance(self.mechanism, Fraction):
            return _log_share(self.one, self.given, self.mechanism) - _log_share(self.other, self.given, self.mechanism)
        scale = float(scale_of(self.mechanism))
        first, second = (np.abs((self.given - exact).astype(np.float64)) / scale for exact in (self.one, self.other))
        if isinstance(self.mechanism, Laplace):
            return float((second - first).sum())
        return float((second**2 - first**2).sum()) / 2

    @property
    def rho(self) -> float:
        """What zCDP this pair of inputs shows, at most, in this look."""
        if isinstance(self.mechanism, Fraction):
            ratios = [_log_share(self.one, place, self.mechanism) - _log_share(self.other, place, self.mechanism)
                      for place in range(len(self.one))]  # fmt: skip
            return (max(*ratios, 0.0) - min(*ratios, 0.0)) ** 2 / 8
        return float(np.square(self.moved.astype(np.float64)).sum()) / (2 * float(scale_of(self.mechanism)) ** 2)


def _log_share(penalties: Cells, place: Any, scale: Fraction) -> float:
    exponents = -(penalties - penalties.min()).astype(np.float64) / float(scale)
    return float(exponents[place] - math.log(np.exp(exponents).sum()))


@dataclass
class Twin:
    """Stands where a study's `Looks` stands: gives out what the first neighbor gives, and keeps what both were asked.

    What follows is the same as if the second had given the same: record and replay.
    """

    pair: tuple[WeightedRows, WeightedRows]
    looked: list[Looked] = field(default_factory=list)

    def __call__(self, tally: WeightedRows, sizes: tuple[int, ...], sampler: Sampler) -> Twin:
        self.sizes, self.real = sizes, MarginalMeasurer(tally, sizes, sampler)
        return self

    def measure_marginal(self, marginal: Marginal, mechanism: Mechanism) -> Cells:
        one, other = (
            MarginalMeasurer(tally, self.sizes, Still()).measure_marginal(marginal, mechanism) for tally in self.pair
        )
        given = self.real.measure_marginal(marginal, mechanism)
        self.looked.append(Looked("marginal" if marginal else "total", mechanism, one, other, given))
        return given

    def compare_marginals(self, estimates: Mapping[Marginal, Floats], handicaps: Mapping[Marginal, int]) -> TwinContest:
        spies = (_Penalties(), _Penalties())
        contests = [MarginalMeasurer(tally, self.sizes, spy).compare_marginals(estimates, handicaps)
                    for tally, spy in zip(self.pair, spies, strict=True)]  # fmt: skip
        return TwinContest(self, self.real.compare_marginals(estimates, handicaps), contests, spies)


@dataclass
class TwinContest:
    twin: Twin
    real: MarginalSelector
    contests: list[MarginalSelector]
    spies: tuple[_Penalties, _Penalties]

    def choose_furthest(self, candidates: Sequence[Marginal], scale: Fraction) -> Marginal:
        for contest in self.contests:
            contest.choose_furthest(candidates, scale)
        chosen = self.real.choose_furthest(candidates, scale)
        one, other = (spy.seen[-1] for spy in self.spies)
        self.twin.looked.append(Looked("furthest", scale, one, other, candidates.index(chosen)))
        return chosen


def looks_at(study: Synthesis, one: WeightedRows, other: WeightedRows, sampler: Sampler | None = None) -> list[Looked]:
    """All looks of one run on the first tally, with what the second would have shown."""
    twin = Twin((one, other))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthesis, "MarginalMeasurer", twin)
        study.perform(one, sampler or ExactSampler())
    return twin.looked
