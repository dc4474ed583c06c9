"""One unit moves every look of a synthetic table by at most the claim, and all looks together cost at most the loss."""

import math
from collections import Counter
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.privacy.noise import Laplace, scale_of
from dpsql.privacy.synthetic.synthesis import (
    Synthesis,
    SynthesisMethod,
    SynthesisRequest,
    calibrate_synthesis_by_epsilon,
    calibrate_synthesis_by_rho,
)
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRows
from tests.support.weighted_rows import Looked, Unit, looks_at, tally_of

SIZES = (2, 3, 4)
NORMS = ((1, 1), (3, 1), (2 * 65536, 65536))


@st.composite
def a_unit(draw: st.DrawFn, norm: int) -> Unit:
    """Rows of a unit: all of its weight in one tuple, spread, or less."""
    tuples = st.tuples(*(st.integers(0, size - 1) for size in SIZES))
    many = draw(st.lists(tuples, min_size=1, max_size=4))
    share = norm // len(many)
    return [(codes, share) for codes in many] if share else [(many[0], norm)]


@st.composite
def neighbors(draw: st.DrawFn) -> tuple[UnitMass, WeightedRows, WeightedRows]:
    norm, whole = draw(st.sampled_from(NORMS))
    mass = UnitMass(norm, whole, norm == whole == 1, draw(st.integers(1, 2)), draw(st.booleans()))
    crowd = draw(st.lists(a_unit(norm), max_size=6))
    units = [draw(a_unit(norm)) for _ in range(2 * mass.group_size)]
    left, right = units[: mass.group_size], units[mass.group_size :]
    return mass, tally_of([*crowd, *left], SIZES), tally_of([*crowd, *(right if mass.change_one else [])], SIZES)


def study(method: SynthesisMethod, mass: UnitMass, pure: bool, rounds: int | None = None) -> Synthesis:
    wanted = SynthesisRequest(method, Axes((0,) * len(SIZES), SIZES), mass, ((),) * len(SIZES), 50, rounds)
    return calibrate_synthesis_by_epsilon(wanted, F(1)) if pure else calibrate_synthesis_by_rho(wanted, F(1, 8))


def claimed_moves(looked: Looked, mass: UnitMass) -> None:
    moved = np.abs(looked.moved)
    assert moved.max() <= (mass.l1 if looked.at == "furthest" else mass.max_move)
    if looked.at == "marginal":
        assert moved.sum() <= mass.l1
        assert np.square(moved).sum() <= mass.l2_squared


@pytest.mark.parametrize("method", SynthesisMethod)
@pytest.mark.parametrize("pure", [True, False], ids=["laplace", "gaussian"])
@settings(max_examples=30)
@given(pair=neighbors(), rounds=st.sampled_from([None, 1, 5]))
def test_one_unit_moves_every_measurement_by_at_most_the_claim(
    method: SynthesisMethod, pure: bool, pair: tuple[UnitMass, WeightedRows, WeightedRows], rounds: int | None
) -> None:
    mass, one, other = pair
    made = study(method, mass, pure, rounds)
    for first, second in ((one, other), (other, one)):
        looks = looks_at(made, first, second)
        for looked in looks:
            claimed_moves(looked, mass)
        assert _times(looks) == _recorded(made)
        loss = made.loss
        assert sum(looked.rho for looked in looks) <= float(loss.rho) * (1 + 1e-9)
        assert (loss.epsilon is not None) == pure
        if loss.epsilon is not None:
            assert sum(looked.ratio for looked in looks) <= float(loss.epsilon) * (1 + 1e-9)


def _times(looks: list[Looked]) -> Counter[tuple[str, str]]:
    scales = [look.mechanism if isinstance(look.mechanism, F) else scale_of(look.mechanism) for look in looks]
    return Counter((look.at, str(scale)) for look, scale in zip(looks, scales, strict=True))


def _recorded(made: Synthesis) -> Counter[tuple[str, str]]:
    counted: Counter[tuple[str, str]] = Counter()
    for look in made.to_audit_record()["looks"]:
        counted[look["at"], look["scale"]] += int(look["times"])
    return counted


@pytest.mark.parametrize("change_one", [False, True])
@pytest.mark.parametrize("norm", [1, 3])
def test_the_loss_of_a_tiny_table_is_what_is_charged(norm: int, change_one: bool) -> None:
    """Over all totals that are likely, all choices, and the worst measured cells: exactly, for one round of mwem."""
    shown = worst_epsilon(norm, UnitMass(norm, 1, norm == 1, 1, change_one), change_one)
    made = tiny(UnitMass(norm, 1, norm == 1, 1, change_one))
    assert made.loss.epsilon is not None
    assert shown <= float(made.loss.epsilon) * (1 + 1e-9)
    assert shown >= 0.6 * float(made.loss.epsilon)


def test_a_norm_of_three_rows_is_not_that_of_one() -> None:
    """The negative control: sensitivity 1, where a unit has three rows."""
    one_row = UnitMass(1, 1, True, 1, False)
    assert worst_epsilon(3, one_row, False) > 2 * float(tiny(one_row).loss.epsilon or 0)


def tiny(mass: UnitMass) -> Synthesis:
    return calibrate_synthesis_by_epsilon(
        SynthesisRequest(SynthesisMethod.MWEM, Axes((0, 0), (2, 2)), mass, ((), ()), 50, 1), F(2)
    )


def worst_epsilon(rows: int, mass: UnitMass, change_one: bool) -> float:
    """The largest log-ratio of a transcript between neighbors that differ in one unit of `rows` rows."""
    made, crowd = tiny(mass), [[((0, 0), 2)], [((1, 1), 3)]]
    pair = ([[((0, 0), rows)]], [[((1, 1), rows)]] if change_one else [])
    one, other = (tally_of([*crowd, *units], (2, 2)) for units in pair)
    worst = 0.0
    for total in range(-3, 12):
        for first, second in ((one, other), (other, one)):
            noise, choice, marginals = _tiny_looks(made, first, second, total)
            worst = max(worst, noise + max(a + b for a, b in zip(choice, marginals, strict=True)))
    return worst


class _Total:
    """A total that comes out as wished, then the first marginal; what follows is not looked at."""

    def __init__(self, noise: int, place: int) -> None:
        self.noise: list[int] = [noise]
        self.place = place

    def laplace(self, n: int, scale: F) -> np.ndarray:
        return np.full(n, self.noise.pop() if self.noise else 0, np.int64)

    gaussian = laplace

    def choose(self, penalties: np.ndarray, scale: F) -> np.ndarray:
        return np.array([self.place])


def _tiny_looks(
    made: Synthesis, one: WeightedRows, other: WeightedRows, total: int
) -> tuple[float, list[float], list[float]]:
    choices, marginals = [], []
    for place in range(3):
        noise = total - int(one.weights.sum())
        first, chosen, measured = looks_at(made, one, other, _Total(noise, place))
        choices.append(chosen.ratio)
        assert isinstance(measured.mechanism, Laplace)
        marginals.append(float(np.abs(measured.moved).sum()) / float(measured.mechanism.scale))
    return first.ratio, choices, marginals


def test_what_is_charged_is_at_most_what_was_requested() -> None:
    mass = UnitMass(3, 1, False, 2, True)
    for method in SynthesisMethod:
        epsilon = study(method, mass, True).loss.epsilon
        assert epsilon is not None
        assert 0.99 < epsilon <= 1
        rho = study(method, mass, False).loss.rho
        assert 0.99 / 8 < rho <= F(1, 8)
        assert math.isclose(float(study(method, mass, True).loss.delta), 0.0)
