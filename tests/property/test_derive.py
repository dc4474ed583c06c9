"""What is derived from a stored release is what a fresh one would be: cell by cell, over worlds that are made up.

DPSQL_WORLDS=2000 pytest -s tests/property/test_derive.py     more of them
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

from dpsql.compiler.calibrate import calibrate
from dpsql.compiler.reuse import derive, describe, regroup
from dpsql.engines.in_memory import InMemoryEngine
from dpsql.verify.generate.choices import ChoiceStream
from tests.support.derived_releases import (
    ASKED,
    STORED,
    Ground,
    Pair,
    Pairs,
    derived,
    engine_for_worlds,
    ground,
    unlike,
)
from tests.support.effort import example_count

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

WORLDS = int(os.environ.get("DPSQL_WORLDS", example_count(40)))
SOURCES, PAIRS = 4, 5
FINE = ("equal", "not derived", "refused")


@pytest.fixture(scope="module")
def engine() -> Iterator[InMemoryEngine]:
    with engine_for_worlds() as engine:
        yield engine


@pytest.fixture(autouse=True)
def whole_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without coarsening, cells are equal to the last step."""
    monkeypatch.setattr(calibrate, "shift_for", lambda scale: 0)


def test_derived_cells_are_those_of_a_fresh_release(engine: InMemoryEngine) -> None:
    tally: Counter[str] = Counter()
    for seed in range(WORLDS):
        for pair, outcome in tried(engine, seed):
            assert outcome in FINE, f"world {seed}: {pair.stored}\n{pair.asked}\n{outcome}"
            tally[outcome] += 1
            if outcome == "equal":
                tally.update(pair.about)
    print("\n", dict(tally))
    least = {"some": 2, "others": 0.2, "filtered": 0.5, "rolled up": 0.5, "function": 0.2}
    assert all(tally[about] >= WORLDS * share for about, share in least.items()), "nothing was derived"


def tried(engine: InMemoryEngine, seed: int) -> Iterator[tuple[Pair, str]]:
    draws = ChoiceStream(f"derive {seed}")
    made, world = ground(engine, draws, draws.choice(("gaussian", "laplace")), draws.draw_bool(0.4))
    for _ in range(SOURCES):
        pairs = Pairs(draws, world)
        for pair in (pairs.pair() for _ in range(PAIRS)):
            yield pair, outcome_of(pair, made)


def outcome_of(pair: Pair, made: Ground) -> str:
    stored, asked = made.compiled(pair.stored, STORED), made.compiled(pair.asked, ASKED)
    if stored is None or asked is None or len(stored.steps) != 1 or len(asked.steps) != 1:
        return "refused"
    if stored.steps[0].described is None or asked.steps[0].described is None:
        return "not derived"
    found = derived(asked.steps[0], stored.steps[0], made.release(stored.steps[0]))
    if found is None:
        return "not derived"
    return unlike(asked.steps[0], made.release(asked.steps[0]), found, stored.steps[0]) or "equal"


# --- the trial finds what is wrong -----------------------------------------------------------------------------------


def plant_selected(patch: pytest.MonkeyPatch) -> None:
    """Selected keys are added up like listed ones."""
    patch.setattr(regroup, "_check_selected", lambda *_: None)


def plant_nulls(patch: pytest.MonkeyPatch) -> None:
    """Rows that are in no stored group are forgotten."""
    patch.setattr(regroup, "_check_conditions", lambda *_: None)


def plant_condition(patch: pytest.MonkeyPatch) -> None:
    """Conditions on keys are not looked at."""
    real = regroup._map_groups
    patch.setattr(regroup, "_map_groups", lambda keys, extra, groups: real(keys, [], groups))


def plant_weights(patch: pytest.MonkeyPatch) -> None:
    """Everything may be added up and left out."""
    patch.setattr(derive, "_check_additive", lambda *_: None)


def plant_center(patch: pytest.MonkeyPatch) -> None:
    """The centre of a sum is dropped."""
    real = describe.FormBuilder._mean_sums

    def moments(self: describe.FormBuilder, bundle: Any) -> Any:
        above, *rest = real(self, bundle)
        return [{atom: number for atom, number in above.items() if " sum " in atom}, *rest]

    patch.setattr(describe.FormBuilder, "_mean_sums", moments)


def plant_bounds(patch: pytest.MonkeyPatch) -> None:
    """Sums of other bounds pass for the same."""
    patch.setattr(describe.FormBuilder, "_value_text", lambda self, value: self._text(value.arg))


def plant_weighing(patch: pytest.MonkeyPatch) -> None:
    """A distinct value passes for a row."""
    patch.setattr(describe.FormBuilder, "_make_atom", lambda self, name, of: {f"{name} {of}": Fraction(1)})


PLANTS = {
    plant_selected: 8,
    plant_nulls: 10,
    plant_condition: 0,
    plant_weights: 6,
    plant_center: 8,
    plant_bounds: 6,
    plant_weighing: 1,
}
"""Each with a world that finds it, which is tried first; where the generator has changed since, another one will."""


@pytest.mark.parametrize(("plant", "seed"), PLANTS.items())
def test_a_planted_bug_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], seed: int, engine: InMemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert any(outcome not in FINE for number in (seed, *range(300)) for _, outcome in tried(engine, number))
