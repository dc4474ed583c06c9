"""A statement whose norm is chosen is audited as a whole: its histogram, the norm that follows, and its answer.

The neighbor has one unit more, with far more rows than any norm: it is in a bin of its own, and moves the answer by the
norm itself. The event is fixed beforehand, the one that tells most: its bin is not below 1, and the answer not below
what it is with that unit. The bound is Clopper-Pearson's, so a sound statement is accused with probability at most
ALPHA. Controls: half the noise, and a histogram without noise, must be accused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta

import dpsql.compiler.norm_steps as norm_steps
from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.compile import ReleaseStep, compile_query
from dpsql.compiler.compiled import NormStep
from dpsql.compiler.settings import Settings
from dpsql.engines.in_memory import InMemoryEngine
from dpsql.privacy.exact import Exact
from dpsql.privacy.noise import Laplace
from dpsql.privacy.norm_choice import CellNoise, ChosenNorm, NormBins, NormHistogram, choose_norm
from dpsql.privacy.release import Release, ReleaseSpec, perturb
from dpsql.privacy.sampling import ExactSampler, Integers
from dpsql.schema.model import Neighbors
from dpsql.verify.paired_engine import reveal_cells
from tests.property.test_clipped_sums import fill, make_schema

pytestmark = pytest.mark.stat

ALPHA = 1e-7
DRAWS = 8_000
HEAVY_ROWS = 1_000
SQL = "SELECT COUNT(*) FROM events"
EPSILON = Fraction(1)

Keys = list[tuple[object, ...]]


@dataclass
class Audit:
    """Two neighbors, and the release of a statement on either. `sharper` divides the scales of all noise."""

    engines: tuple[InMemoryEngine, InMemoryEngine]
    sharper: int = 1
    exact_counts: bool = False
    sampler: ExactSampler = field(default_factory=ExactSampler)
    _steps: dict[Fraction, ReleaseStep] = field(default_factory=dict)
    _cells: dict[tuple[str, int], tuple[Keys, Integers]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._resolved = make_schema(Neighbors.ADD_REMOVE)
        self._settings = Settings(EPSILON, Fraction(0), None, None, NoiseKind.LAPLACE)
        (self._norm,) = compile_query(SQL, self._resolved, self._settings).norm_steps
        assert isinstance(self._norm.bins, NormBins)
        self._cell = self._find_cell_noise(self._norm)

    @property
    def claimed(self) -> float:
        """What is charged for the histogram and for the question."""
        losses = [self._norm.step.calibrated.loss, next(iter(self._steps.values())).calibrated.loss]
        return float(sum((loss.epsilon or Fraction(0)) for loss in losses))

    def count_events(self, number: int) -> int:
        """How often the event is seen on one neighbor."""
        seen = 0
        heavy_bin = int(math.log2(HEAVY_ROWS))
        for _ in range(DRAWS):
            histogram = self._draw_histogram(number)
            chosen = self._choose(histogram)
            if chosen is None:
                continue
            step = self._step_of(chosen, histogram)
            answer = self._perturb(step, number).cells[0][0]
            with_heavy_unit = self._read(step, 1)[1][0]
            seen += histogram.counts[heavy_bin] >= 1 and answer >= with_heavy_unit
        return seen

    def _draw_histogram(self, number: int) -> NormHistogram:
        step, bins = self._norm.step, self._norm.bins
        assert isinstance(bins, NormBins)
        (bundle,) = step.calibrated.bundles
        if self.exact_counts:
            counts = tuple(int(count) for count in self._read(step, number)[1])
            return NormHistogram(bins, counts, Laplace(Fraction(1, 16)))
        counts = tuple(int(count) for count in self._perturb(step, number).cells[0])
        return NormHistogram(bins, counts, bundle.mechanism)

    def _choose(self, histogram: NormHistogram) -> ChosenNorm | None:
        return choose_norm(histogram, self._cell)

    def _step_of(self, chosen: ChosenNorm, histogram: NormHistogram) -> ReleaseStep:
        if chosen.norm not in self._steps:
            known = {self._norm.step.plan_hash: histogram}
            (step,) = compile_query(SQL, self._resolved, self._settings, norms=known).steps
            assert dict(step.norms)["rows"].norm == chosen.norm
            self._steps[chosen.norm] = step
        return self._steps[chosen.norm]

    def _perturb(self, step: ReleaseStep, number: int) -> Release:
        keys, cells = self._read(step, number)
        return perturb(Exact(keys, [cells]), self._sharpen(step.calibrated.spec), self.sampler)

    def _sharpen(self, spec: ReleaseSpec) -> ReleaseSpec:
        bundles = []
        for bundle in spec.bundles:
            assert isinstance(bundle.mechanism, Laplace)
            bundles.append(replace(bundle, mechanism=Laplace(bundle.mechanism.scale / self.sharper)))
        return replace(spec, bundles=tuple(bundles))

    def _read(self, step: ReleaseStep, number: int) -> tuple[Keys, Integers]:
        """The groups and the only cell of each, exactly."""
        key = (step.sql, number)
        if key not in self._cells:
            cells = reveal_cells(self.engines[number].run_release(step.sql, len(step.keys), {}))
            self._cells[key] = list(cells.keys), np.array(cells.columns[0], np.int64)
        return self._cells[key]

    def _find_cell_noise(self, norm: NormStep) -> CellNoise:
        found: list[CellNoise] = []

        def note(histogram: NormHistogram, cell: CellNoise, *rest: object, **named: object) -> ChosenNorm | None:
            found.append(cell)
            return choose_norm(histogram, cell)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(norm_steps, "choose_norm", note)
            full = NormHistogram(self._bins_of(norm), (10**6,) * norm.bins.count, Laplace(Fraction(1)))
            compile_query(SQL, self._resolved, self._settings, norms={norm.step.plan_hash: full})
        return found[0]

    @staticmethod
    def _bins_of(norm: NormStep) -> NormBins:
        assert isinstance(norm.bins, NormBins)
        return norm.bins


def epsilon_shown(on: int, off: int) -> float:
    """A lower bound, from how often an event is seen with the unit and without it."""
    least = 0.0 if on == 0 else float(beta.ppf(ALPHA / 2, on, DRAWS - on + 1))
    most = 1.0 if off == DRAWS else float(beta.ppf(1 - ALPHA / 2, off + 1, DRAWS - off))
    return -math.inf if least == 0 else math.log(least / most)


@pytest.fixture(scope="module")
def neighbors() -> tuple[InMemoryEngine, InMemoryEngine]:
    pair = (InMemoryEngine(1), InMemoryEngine(1))
    light = [(str(uid), "'a'", "1", "1", "1") for uid in range(2, 702) for _ in range(1 + uid % 2)]
    heavy = [("1", "'a'", "1", "1", "1")] * HEAVY_ROWS
    fill(pair[0], light)
    fill(pair[1], light + heavy)
    return pair


def audit(neighbors: tuple[InMemoryEngine, InMemoryEngine], **how: object) -> tuple[Audit, tuple[int, int]]:
    made = Audit(neighbors, **how)  # type: ignore[arg-type]
    return made, (made.count_events(1), made.count_events(0))


def test_histogram_norm_and_answer_keep_the_epsilon_that_is_charged(
    neighbors: tuple[InMemoryEngine, InMemoryEngine],
) -> None:
    made, (on, off) = audit(neighbors)
    assert made.claimed <= EPSILON
    assert 0.6 * EPSILON < epsilon_shown(on, off) <= made.claimed


def test_half_the_noise_is_accused(neighbors: tuple[InMemoryEngine, InMemoryEngine]) -> None:
    made, (on, off) = audit(neighbors, sharper=2)
    assert epsilon_shown(on, off) > made.claimed


def test_a_histogram_without_noise_is_accused(neighbors: tuple[InMemoryEngine, InMemoryEngine]) -> None:
    made, (on, off) = audit(neighbors, exact_counts=True)
    assert epsilon_shown(on, off) > 3 * made.claimed
