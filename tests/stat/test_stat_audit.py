"""Releases of neighboring cells are audited from outside: no event tells them apart better than the claim.

The events are fixed beforehand (the most telling ones); bounds are Clopper-Pearson, so that a sound mechanism is
accused with probability at most ALPHA per test. Each audit must accuse a mechanism with half the noise.
"""

import math
from fractions import Fraction as F

import numpy as np
import pytest
from scipy.stats import beta

from dpsql.privacy.exact import Exact
from dpsql.privacy.loss import rho_to_epsilon
from dpsql.privacy.noise import (
    Gaussian,
    Laplace,
    Mechanism,
    Sensitivity,
    calibrate_gaussian,
    calibrate_laplace,
    noise_loss,
)
from dpsql.privacy.partition_selection import Selection, calibrate_selection_by_epsilon, calibrate_selection_by_rho
from dpsql.privacy.release import KeySelection, NoiseBundle, ReleaseSpec, perturb
from dpsql.privacy.sampling import ExactSampler

pytestmark = pytest.mark.stat

ALPHA = 1e-7
CELLS = 300_000
KEYS = [(i,) for i in range(CELLS)]
ONE = Sensitivity(1, 1, 1)


def share_at_least(hits: int) -> float:
    return 0.0 if hits == 0 else float(beta.ppf(ALPHA / 2, hits, CELLS - hits + 1))


def share_at_most(hits: int) -> float:
    return 1.0 if hits == CELLS else float(beta.ppf(1 - ALPHA / 2, hits + 1, CELLS - hits))


def released(count: int, mechanism: Mechanism) -> np.ndarray:
    """Independent releases of one cell, one for each key."""
    exact = Exact(KEYS, [np.full(CELLS, count, np.int64)])
    return perturb(exact, ReleaseSpec((F(1),), (NoiseBundle((0,), mechanism),)), ExactSampler()).cells[0]


def epsilon_shown(mechanism: Mechanism, least: int, delta: float) -> float:
    """A lower bound on epsilon at delta, from how often a count of 1 and of 0 come out at `least` or more."""
    on = share_at_least(int(np.sum(released(1, mechanism) >= least)))
    off = share_at_most(int(np.sum(released(0, mechanism) >= least)))
    return -math.inf if on <= delta else math.log((on - delta) / off)


@pytest.mark.parametrize("epsilon", [F(1, 2), F(1), F(2)], ids=str)
def test_laplace_keeps_its_epsilon(epsilon: F) -> None:
    mechanism = calibrate_laplace(ONE, epsilon)
    claimed = noise_loss(mechanism, ONE).epsilon
    assert claimed is not None
    assert 0.9 * epsilon < epsilon_shown(mechanism, 1, 0.0) <= claimed
    assert epsilon_shown(Laplace(mechanism.scale / 2), 1, 0.0) > claimed


@pytest.mark.parametrize("rho", [F(1, 8), F(1, 2)], ids=str)
def test_gaussian_keeps_its_epsilon(rho: F) -> None:
    mechanism, delta = calibrate_gaussian(ONE, rho), F(1, 100)
    claimed = float(rho_to_epsilon(noise_loss(mechanism, ONE).rho, delta))

    def telling(sigma: F) -> int:
        # The likelihood ratio passes e^epsilon in this tail.
        return math.ceil(float(sigma) ** 2 * claimed + 0.5)

    assert epsilon_shown(mechanism, telling(mechanism.sigma), float(delta)) <= claimed
    halved = mechanism.sigma / 2
    assert epsilon_shown(Gaussian(halved), telling(halved), float(delta)) > claimed


def times_kept(selection: Selection, count: int) -> int:
    spec = ReleaseSpec((F(1),), (), KeySelection(0, selection, 1))
    return len(perturb(Exact(KEYS, [np.full(CELLS, count, np.int64)]), spec, ExactSampler()).keys)


def shifted(selection: Selection, by: int) -> Selection:
    values = [getattr(selection, name) for name in selection.__dataclass_fields__]
    return type(selection)(values[0], values[1] - by, values[2])


@pytest.mark.parametrize(
    "selection",
    [
        calibrate_selection_by_epsilon(F(1), F(1, 1000), F(0), l0=1),
        calibrate_selection_by_epsilon(F(1, 4), F(1, 1000), F(0), l0=1),
        calibrate_selection_by_rho(F(1, 2), F(1, 1000), l0=1),
    ],
    ids=lambda s: f"{s.name}-{float(s.loss.rho):.3g}",
)
def test_a_key_of_one_unit_stays_hidden(selection: Selection) -> None:
    delta = float(selection.loss.delta)
    assert times_kept(selection, 0) == 0
    kept = times_kept(selection, 1)
    assert share_at_least(kept) <= delta
    assert share_at_most(kept) >= delta / 2
    # A threshold low enough for twice the chance is caught.
    by = 1 + math.ceil(math.log(2) * float(next(iter(vars(selection).values()))))
    assert share_at_least(times_kept(shifted(selection, by), 1)) > delta


def test_one_draw_decides_a_block() -> None:
    """Were each of three rows of a block decided by its own draw, a hidden key would appear three times as often."""
    selection = calibrate_selection_by_epsilon(F(1), F(1, 100), F(0), l0=1)
    blocks = CELLS // 3
    keys = [(block, row) for block in range(blocks) for row in range(3)]
    spec = ReleaseSpec((F(1),), (), KeySelection(0, selection, 1))
    kept = len(perturb(Exact(keys, [np.ones(len(keys), np.int64)]), spec, ExactSampler()).keys)
    assert kept % 3 == 0
    expected = float(selection.loss.delta)
    assert abs(kept / 3 / blocks - expected) < 6 * math.sqrt(expected / blocks)
