"""Private rows as tuples of whole numbers with weights, for models and synthetic tables; and what one unit adds.

A study is a mechanism that needs more than sums of its own cells: it looks at one tally as often as it was calibrated
for, and gives out whole numbers that were noised or chosen on the way. Synthetic tables and models are studies.

Law: a tally is made and looked at while a release is perturbed, nowhere else; no tuple of it leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from dpsql.base.cancellation import check_now
from dpsql.privacy.exact import Cells
from dpsql.privacy.loss import Loss
from dpsql.privacy.noise import Sensitivity
from dpsql.privacy.sampling import Sampler

CHUNK_ROWS = 1 << 14
"""Tuples that are worked on at once, so that memory does not grow with their number; a power of 2."""


@dataclass(frozen=True, eq=False, repr=False)
class WeightedRows:
    """Distinct tuples, one in each row of `codes`, and the weight of the rows that have it.

    A code is at least 0 and below the size of its axis; weights are positive. The tuples stand in ascending order, so
    that what is worked out from them does not depend on the order in which an engine returned them.
    """

    codes: npt.NDArray[np.int64]
    weights: Cells

    def __repr__(self) -> str:
        return "Tally(sealed)"

    __str__ = __repr__

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise TypeError("a tally is not to be copied, compared or stored")

    __reduce__ = __reduce_ex__ = __getstate__ = __copy__ = __deepcopy__ = _refuse_copy


@dataclass(frozen=True)
class Axes:
    """The public ranges of the codes: the engine returns whole numbers from `lowers[i]` on, `sizes[i]` of them."""

    lowers: tuple[int, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.lowers) != len(self.sizes) or not self.sizes or any(size < 1 for size in self.sizes):
            raise ValueError("a tally has axes, and each has a place at least")

    def to_weighted_rows(self, columns: tuple[Cells, ...]) -> WeightedRows:
        """The tally of what an engine returned: one column for each axis, and that of weights.

        Stability: codes beyond an axis, which the plan excludes, are moved to its ends, and tuples that are then alike
        are added up; weights below 0 count as 0. A unit's weights keep their sum at most.
        """
        *codes, weights = columns
        ranges = zip(codes, self.lowers, self.sizes, strict=True)
        clipped = [np.clip(codes_of_axis, low, low + size - 1) - low for codes_of_axis, low, size in ranges]
        tuples, indices = np.unique(np.stack(clipped, axis=1), axis=0, return_inverse=True)
        sums = np.zeros(len(tuples), np.int64)
        np.add.at(sums, indices.reshape(-1), np.maximum(weights, 0))
        positive = sums > 0
        return WeightedRows(tuples[positive], sums[positive])


@dataclass(frozen=True)
class UnitMass:
    """What one unit may add to a tally: weights, of which the sum over all tuples is at most `norm`.

    `whole` is what a whole row weighs. With `one_row`, a unit has at most one row, and that is whole.
    """

    norm: int
    whole: int
    one_row: bool
    group_size: int
    change_one: bool

    def __post_init__(self) -> None:
        if min(self.norm, self.whole, self.group_size) < 1 or (self.one_row and self.norm != self.whole):
            raise ValueError("a unit has a mass; of one row, that of a whole row")

    @property
    def max_move(self) -> int:
        """How far neighbors move the weight of any set of tuples.

        Stability: k units add at most k * norm to it; under change_one others of as much leave at the same time. Both
        are at least 0, so the difference is at most the larger.
        """
        return self.group_size * self.norm

    @property
    def l1(self) -> int:
        """How far neighbors move all weights together: what k units bring or take, under change_one both."""
        return self.max_move * (2 if self.change_one else 1)

    @property
    def l2_squared(self) -> int:
        """The square of the L2 norm of the move: |a - b|^2 <= |a|^2 + |b|^2 where no component is negative."""
        return self.max_move**2 * (2 if self.change_one else 1)

    def to_json(self) -> dict[str, Any]:
        return {"norm": str(self.norm), "whole": str(self.whole), "one_row": self.one_row,
                "group_size": str(self.group_size), "change_one": self.change_one}  # fmt: skip

    @classmethod
    def from_json(cls, part: dict[str, Any]) -> UnitMass:
        return cls(int(part["norm"]), int(part["whole"]), part["one_row"], int(part["group_size"]), part["change_one"])


def total_sensitivity(mass: UnitMass) -> Sensitivity:
    """The sensitivity of the weight of all rows, which is one cell."""
    return Sensitivity(mass.max_move, mass.max_move**2, mass.max_move)


def iterate_chunks(count: int) -> Iterator[slice]:
    """Slices of CHUNK_ROWS tuples, in order. Between two of them work ends whose time is over."""
    for start in range(0, count, CHUNK_ROWS):
        check_now()
        yield slice(start, start + CHUNK_ROWS)


class WeightedRowsMechanism(Protocol):
    """A mechanism over a tally. What it is made of is public; all of it is in `to_json`."""

    @property
    def kind(self) -> str:
        """The name under which it is stored, recorded and read again."""

    @property
    def axes(self) -> Axes: ...

    @property
    def mass(self) -> UnitMass:
        """What the loss was worked out for."""

    @property
    def grids(self) -> tuple[Fraction, ...]:
        """What 1 means in each column of what `perform` gives."""

    @property
    def loss(self) -> Loss: ...

    @property
    def noise_sizes(self) -> tuple[float, ...]:
        """How large its draws are beside what one unit may add: smaller is better. Of one length whatever the kind of
        noise, so that two kinds can be compared."""

    def perform(self, tally: WeightedRows, sampler: Sampler) -> tuple[Cells, ...]:
        """Equally long columns of whole numbers, one for each of `grids`.

        Privacy: `loss`, for tallies that neighbors move as `mass` says.
        """

    def explain_lines(self) -> tuple[str, ...]:
        """What EXPLAIN says of it, a line each: of public figures alone."""

    def to_audit_record(self) -> dict[str, Any]:
        """Figures as decimal text, from which `ledger/loss_checker` works out the loss again."""

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON, without the kind; integers and fractions as decimal text."""
