"""Synthetic tables of neighbors, audited from outside: no event tells them apart better than the claim.

The events are fixed beforehand; bounds are Clopper-Pearson, so that a sound table is accused with probability at most
ALPHA per test. Each audit must accuse a table that is broken: with the exact number of rows, or with the noise of one
row where a unit has four.
"""

import math
from collections.abc import Callable
from fractions import Fraction as F

import numpy as np
import pytest
from scipy.stats import beta

from dpsql.privacy.sampling import ExactSampler
from dpsql.privacy.synthetic.synthesis import (
    ROW,
    Synthesis,
    SynthesisMethod,
    SynthesisRequest,
    calibrate_synthesis_by_epsilon,
)
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRows
from tests.support.weighted_rows import tally_of

pytestmark = pytest.mark.stat

ALPHA = 1e-7
RUNS = 3_000
ROWS = 4
SIZES = (2, 2)
CROWD = [[((0, 0), 1)]] * 6 + [[((1, 1), 1)]] * 6
WITH, WITHOUT = tally_of([*CROWD, [((0, 1), ROWS)]], SIZES), tally_of(CROWD, SIZES)

Event = Callable[[np.ndarray], bool]


def study(method: SynthesisMethod, norm: int) -> Synthesis:
    mass = UnitMass(norm, 1, norm == 1, 1, False)
    return calibrate_synthesis_by_epsilon(SynthesisRequest(method, Axes((0, 0), SIZES), mass, ((), ()), 1000, 1), F(1))


def hits(made: Synthesis, tally: WeightedRows, event: Event) -> int:
    found = 0
    for _ in range(RUNS):
        parts, _, first, second = made.perform(tally, ExactSampler())
        found += event(np.stack([first, second], axis=1)[parts == ROW])
    return found


def epsilon_shown(made: Synthesis, event: Event) -> float:
    """A lower bound on epsilon, from how often the event happens with the unit and without it."""
    on, off = hits(made, WITH, event), hits(made, WITHOUT, event)
    least = float(beta.ppf(ALPHA / 2, on, RUNS - on + 1)) if on else 0.0
    most = float(beta.ppf(1 - ALPHA / 2, off + 1, RUNS - off)) if off < RUNS else 1.0
    return math.log(least / most) if least else -math.inf


def many_of_its_kind(rows: np.ndarray) -> bool:
    return int(((rows[:, 0] == 0) & (rows[:, 1] == 1)).sum()) >= 5


def its_rows_are_there(rows: np.ndarray) -> bool:
    return len(rows) >= 16


@pytest.mark.parametrize("method", SynthesisMethod)
@pytest.mark.parametrize("event", [many_of_its_kind, its_rows_are_there])
def test_a_unit_of_four_rows_is_hidden(method: SynthesisMethod, event: Event) -> None:
    made = study(method, ROWS)
    assert made.loss.epsilon is not None
    assert epsilon_shown(made, event) <= float(made.loss.epsilon)


@pytest.mark.parametrize(
    ("method", "event"),
    [
        (SynthesisMethod.MARGINALS, many_of_its_kind),
        (SynthesisMethod.INDEPENDENT, its_rows_are_there),
        (SynthesisMethod.MWEM, its_rows_are_there),
    ],
)
def test_noise_for_one_row_is_found_out(method: SynthesisMethod, event: Event) -> None:
    assert epsilon_shown(study(method, 1), event) > 1.0


def test_the_exact_number_of_rows_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    real = Synthesis.perform

    def perform(self: Synthesis, tally: WeightedRows, sampler: ExactSampler) -> tuple[np.ndarray, ...]:
        seen.append(int(tally.weights.sum()))
        return real(self, tally, sampler)

    monkeypatch.setattr(Synthesis, "perform", perform)
    monkeypatch.setattr(Synthesis, "_count_rows", lambda _, whole: seen[-1])
    assert epsilon_shown(study(SynthesisMethod.INDEPENDENT, ROWS), its_rows_are_there) > 1.0
