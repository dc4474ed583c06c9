"""Randomized answers of all units: what is told differs between neighbors by no more than is charged, exactly.

The mechanism itself runs, with a sampler that notes what a draw would be made from; the distribution of what it gives
is then worked out from that, for every neighbor of every small database.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dpsql.errors import IntegrityError
from dpsql.ledger.loss_checker.checker import UnreadableRecord, recompute_loss
from dpsql.privacy.audit_record import write_study_record
from dpsql.privacy.exact import Exact
from dpsql.privacy.randomized_response import RandomizedResponse
from dpsql.privacy.release import ReleaseSpec, perturb, release_from_bytes, release_to_bytes
from dpsql.privacy.sampling import ExactSampler, Integers
from dpsql.privacy.weighted_rows import Axes, UnitMass

UNITS = 3
Told = dict[tuple[int, ...], float]


@dataclass
class Noting:
    """Draws nothing, and notes the chances of each draw."""

    chances: list[npt.NDArray[np.float64]] = field(default_factory=list)
    bug: int = 1  # what a place beside the own one is punished by

    def choose(self, penalties: npt.NDArray[Any], scale: Fraction) -> Integers:
        weights = np.exp(-(self.bug * penalties).astype(np.float64) / float(scale))
        self.chances += list(weights / weights.sum(axis=1, keepdims=True))
        return np.zeros(len(penalties), np.int64)

    def laplace(self, n: int, scale: Fraction) -> Integers:
        raise AssertionError

    gaussian = flip = laplace  # type: ignore[assignment]


def study(answers: int, epsilon: Fraction, group_size: int = 1) -> RandomizedResponse:
    return RandomizedResponse(Axes((0,), (answers,)), UnitMass(1, 1, True, group_size, True), epsilon)


def distribution(response: RandomizedResponse, rows: tuple[int, ...], bug: int = 1) -> Told:
    """Of the counts that are given out, for units that have these answers."""
    codes, counts = np.unique(np.array(rows), return_counts=True)
    sampler = Noting(bug=bug)
    exact = Exact([()] * len(codes), [codes.astype(np.int64), counts.astype(np.int64)])
    perturb(exact, ReleaseSpec(response.grids, (), study=response), sampler)
    assert len(sampler.chances) == len(rows)
    size = response.axes.sizes[0]
    result: Told = {(0,) * size: 1.0}
    for chances in sampler.chances:
        added: dict[tuple[int, ...], float] = defaultdict(float)
        for told, so_far in result.items():
            for place, chance in enumerate(chances.tolist()):
                added[(*told[:place], told[place] + 1, *told[place + 1 :])] += so_far * chance
        result = dict(added)
    return result


def lost(one: Told, other: Told) -> tuple[float, float]:
    """The largest log-ratio, and the least rho that covers the Renyi divergences of some orders."""
    assert one.keys() == other.keys()
    epsilon = max(abs(math.log(one[told] / other[told])) for told in one)
    orders = (1.01, 1.5, 2.0, 4.0, 16.0, 64.0)
    rho = max(math.log(sum((one[t] / other[t]) ** a * other[t] for t in one)) / (a * (a - 1)) for a in orders)
    return epsilon, rho


def worst(response: RandomizedResponse, changed: int, bug: int = 1) -> tuple[float, float]:
    databases = list(itertools.combinations_with_replacement(range(response.axes.sizes[0]), UNITS))
    told = {rows: distribution(response, rows, bug) for rows in databases}
    neighbors = [(a, b) for a in databases for b in databases if a != b and _apart(a, b) <= changed]
    found = [lost(told[a], told[b]) for a, b in neighbors]
    return max(e for e, _ in found), max(r for _, r in found)


def _apart(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """How many units must change for one database to become the other."""
    return sum(max(0, one.count(answer) - other.count(answer)) for answer in set(one))


@pytest.mark.parametrize(("answers", "epsilon"), [(2, "1.0986"), (3, "0.5"), (4, "1"), (2, "5")])
@pytest.mark.parametrize("changed", [1, 2])
def test_neighbors_differ_by_no_more_than_is_charged(answers: int, epsilon: str, changed: int) -> None:
    response = study(answers, Fraction(epsilon), changed)
    found, rho = worst(response, changed)
    assert response.loss.epsilon is not None and response.loss.delta == 0
    assert found <= float(response.loss.epsilon) * (1 + 1e-12)
    assert rho <= float(response.loss.rho) * (1 + 1e-12)
    assert found >= 0.9 * float(response.loss.epsilon)  # what is charged is what is lost


def test_an_answer_that_is_kept_too_often_is_found() -> None:
    response = study(3, Fraction(1, 2))
    found, rho = worst(response, 1, bug=2)
    assert found > float(response.loss.epsilon or 0) * 1.5 and rho > float(response.loss.rho)


def test_as_many_answers_leave_as_there_are_units() -> None:
    response = study(3, Fraction(1))
    exact = Exact([()] * 3, [np.array([2, 0, 1], np.int64), np.array([1, 500, 7], np.int64)])
    release = perturb(exact, ReleaseSpec(response.grids, (), study=response), ExactSampler())
    assert release.cells[0].sum() == 508 and len(release.cells[0]) == 3
    assert release_from_bytes(release_to_bytes(release)) == release


def test_the_record_gives_the_loss() -> None:
    for group_size in (1, 3):
        response = study(4, Fraction("0.7"), group_size)
        figures = recompute_loss(write_study_record(response))
        assert (figures.epsilon, figures.rho, figures.delta) == (
            Fraction("0.7") * group_size, Fraction("0.49") * group_size / 2, 0)  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [('"change_one":true', '"change_one":false'), ('"one_row":true', '"one_row":false'),
     ('"answers":"4"', '"answers":"1"'),
     ('"epsilon":"7/10"', '"epsilon":"-1"'), ('"answers":"4"', '"answers":"4","more":"1"')],
)  # fmt: skip
def test_a_record_of_answers_whose_number_is_not_public_is_unreadable(old: str, new: str) -> None:
    record = write_study_record(study(4, Fraction("0.7")))
    assert old in record
    with pytest.raises(UnreadableRecord):
        recompute_loss(record.replace(old, new))


def test_what_is_no_response_cannot_be_made() -> None:
    axes, whole = Axes((0,), (2,)), UnitMass(1, 1, True, 1, True)
    for mass in (UnitMass(1, 1, True, 1, False), UnitMass(2, 1, False, 1, True)):
        with pytest.raises(ValueError, match="one row"):
            RandomizedResponse(axes, mass, Fraction(1))
    for wrong, epsilon in ((Axes((0,), (1,)), 1), (axes, 0), (Axes((0, 0), (2, 2)), 1)):
        with pytest.raises(ValueError, match="two or more"):
            RandomizedResponse(wrong, whole, Fraction(epsilon))
    stored = release_to_bytes(
        perturb(
            Exact([()], [np.array([0]), np.array([3])]),
            ReleaseSpec((Fraction(1),), (), study=study(2, Fraction(1))),
            ExactSampler(),
        )
    )
    with pytest.raises(IntegrityError):
        release_from_bytes(stored.replace(b'"change_one":true', b'"change_one":false'))
