"""Synthetic tables: what is looked at, what it costs, and the rows that are made of it.

Three methods look at the same things (`looks`), in different numbers:

                    total    one-way marginals    rounds: choose, then measure
    mwem            once     -                    any one- or two-way marginal, `rounds` times
    marginals       once     each                 two-way marginals that join trees of columns, until one tree is left
    independent     once     each                 -

Privacy: the sum of the losses of these looks, one after another. What they gave out decides everything else: the fit
(`mwem`, `forest`), the rows drawn from it (`rounding`) and the figures of how good they are (`fidelity`) see no private
row. The number of rows is the noisy total, never the exact one.

What comes of it has one column that says what a row is (PARTS), one with a figure, one of codes for each axis, and one
of places within bins for each axis that has bins. A row of the part ROW is a row of the synthetic table, in random
order. MEASURED and FITTED tell of a marginal: its axes have the code 0, the others -1; the figure is the expected error
of its cells, in rows, or -1 where nothing tells it. TOTAL has the number of rows that the table stands for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from dpsql.exact import Cells
from dpsql.privacy import forest, mwem
from dpsql.privacy.fidelity import Figure, Round, figures, mean_size
from dpsql.privacy.looks import (
    Floats,
    Looks,
    Marginal,
    furthest_loss,
    marginal_loss,
    total_loss,
)
from dpsql.privacy.loss import Loss, total
from dpsql.privacy.mechanisms import (
    Gaussian,
    Laplace,
    Mechanism,
    standard_error,
)
from dpsql.privacy.mwem import Measured
from dpsql.privacy.rounding import offsets, rows_of_cells, shuffled
from dpsql.privacy.sampling import Sampler
from dpsql.privacy.tally import Axes, Tally, UnitMass

ROW, MEASURED, FITTED, TOTAL = 0, 1, 2, 3
"""PARTS of what comes out: a row of the table; a marginal that was measured, itself or within another, or was not; and
the total, in rows, as the noisy values have it."""
FIGURE_GRID = Fraction(1, 1 << 20)

TOTAL_SHARE = Fraction(1, 20)
"""Of the loss, for the total: it needs little, having one cell."""

_MOST_TOTAL = float(1 << 56)


class Method(Enum):
    MWEM = "mwem"
    MARGINALS = "marginals"
    INDEPENDENT = "independent"


@dataclass(frozen=True)
class Synthesis:
    """A synthetic table to be made. `ones` is the noise of one-way marginals that are all measured, `pairs` that of
    the marginal of a round, `choosing` the scale at which it is chosen; None where there is nothing of the kind.

    `widths[axis]` says how many values the bin of each code holds; it is empty where each holds one.
    """

    method: Method
    axes: Axes
    mass: UnitMass
    total: Mechanism
    ones: Mechanism | None
    pairs: Mechanism | None
    choosing: Fraction | None
    rounds: int
    widths: tuple[tuple[int, ...], ...]
    most_rows: int

    kind = "synthesis"

    def __post_init__(self) -> None:
        if self.rounds < 0 or (self.pairs is None) != (self.rounds == 0) or self.most_rows < 1:
            raise ValueError("every round is measured with noise, and there may be rows")
        if self.choosing is not None and (self.choosing <= 0 or not self.rounds):
            raise ValueError("a scale is positive, and of use in rounds only")
        if self.choosing is None and self.rounds > 1:
            raise ValueError("what is measured in a round is chosen")
        if any(widths and len(widths) != size for widths, size in zip(self.widths, self.sizes, strict=True)):
            raise ValueError("every bin has a width")

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.axes.sizes

    @property
    def grids(self) -> tuple[Fraction, ...]:
        wide = sum(1 for widths in self.widths if widths)
        return (Fraction(1), FIGURE_GRID, *(Fraction(1) for _ in self.sizes), *(Fraction(1) for _ in range(wide)))

    @property
    def loss(self) -> Loss:
        """Privacy: looks compose adaptively, so their losses add up."""
        losses = [total_loss(self.total, self.mass)]
        if self.ones is not None:
            losses += [marginal_loss(self.ones, self.mass)] * len(self.sizes)
        if self.pairs is not None:
            losses += [marginal_loss(self.pairs, self.mass)] * self.rounds
        if self.choosing is not None:
            losses += [furthest_loss(self.choosing, self.mass)] * self.rounds
        return total(losses)

    def told(self) -> tuple[str, ...]:
        """The method, and the noise of each look in rows."""
        whole = self.mass.whole
        lines = [f"synthetic table by {self.method.value}, {prod(self.sizes):,} cells, at most {self.most_rows:,} rows"]
        lines.append(f"total: {_said(self.total, whole)}")
        if self.ones is not None:
            lines.append(f"{len(self.sizes)} one-way marginals: {_said(self.ones, whole)} in each cell")
        if self.pairs is not None:
            what = "marginals" if self.method is Method.MWEM else "two-way marginals"
            chosen = "" if self.choosing is None else f", chosen to about {float(self.choosing / whole):,.3g} rows"
            lines.append(f"{self.rounds} {what}{chosen}: {_said(self.pairs, whole)} in each cell")
        return tuple(lines)

    def record(self) -> dict[str, Any]:
        """How often each look is made, and with which noise."""
        looks: list[dict[str, str]] = [_look("total", self.total, 1)]
        if self.ones is not None:
            looks.append(_look("marginal", self.ones, len(self.sizes)))
        if self.pairs is not None:
            looks.append(_look("marginal", self.pairs, self.rounds))
        if self.choosing is not None:
            looks.append({"at": "furthest", "noise": "exponential", "scale": str(self.choosing),
                          "times": str(self.rounds)})  # fmt: skip
        return {"looks": looks}

    def written(self) -> dict[str, Any]:
        return {
            "method": self.method.value,
            "lowers": [str(low) for low in self.axes.lowers],
            "sizes": [str(size) for size in self.sizes],
            "mass": self.mass.written(),
            "total": _written(self.total),
            "ones": _written(self.ones),
            "pairs": _written(self.pairs),
            "choosing": None if self.choosing is None else str(self.choosing),
            "rounds": str(self.rounds),
            "widths": [[str(width) for width in widths] for widths in self.widths],
            "most_rows": str(self.most_rows),
        }

    def perform(self, tally: Tally, sampler: Sampler) -> tuple[Cells, ...]:
        """Rows and figures, as the module says.

        Privacy: `loss`. The tally is seen through `Looks` alone, as often as `loss` counts.
        """
        looks = Looks(tally, self.sizes, sampler)
        first = self._measure(looks, (), self.total)
        if self.method is Method.MWEM:
            return self._enumerate(looks, first, sampler)
        return self._grow(looks, first, sampler)

    # --- methods -----------------------------------------------------------------------------------------------------

    def _enumerate(self, looks: Looks, first: Measured, sampler: Sampler) -> tuple[Cells, ...]:
        candidates = mwem.workload(self.sizes)
        handicaps = self._handicaps(candidates)
        whole = self._total([first])
        estimate = mwem.uniform(self.sizes, whole)
        measured: list[Measured] = []
        rounds: list[Round] = []
        assert self.pairs is not None
        for _ in range(self.rounds):
            estimates = {candidate: mwem.marginal_of(estimate, candidate) for candidate in candidates}
            chosen = candidates[0]
            if self.choosing is not None:
                chosen = looks.contest(estimates, handicaps).furthest(candidates, self.choosing)
            measured.append(self._measure(looks, chosen, self.pairs))
            rounds.append(Round(measured[-1], estimates, handicaps))
            whole = self._total([first, *measured])
            estimate = mwem.fit(estimate * (whole / estimate.sum()), measured, whole)
        columns = rows_of_cells(estimate, self._rows(whole), sampler)
        return self._given(columns, whole, [(one, self.pairs) for one in measured], rounds[-1:], sampler)

    def _grow(self, looks: Looks, first: Measured, sampler: Sampler) -> tuple[Cells, ...]:
        assert self.ones is not None
        ones = [self._measure(looks, (axis,), self.ones) for axis in range(len(self.sizes))]
        whole = self._total([first, *ones])
        grown = forest.plant(self.sizes, ones, whole)
        candidates = forest.pairs_of(self.sizes) if self.rounds else ()
        products = {pair: forest.product_of(grown, pair) for pair in candidates}
        handicaps = self._handicaps(candidates)
        contest = looks.contest(products, handicaps) if self.choosing is not None else None
        chosen: list[Marginal] = []
        compared: list[Mapping[Marginal, Floats]] = []
        for _ in range(self.rounds):
            left = forest.joining(candidates, chosen)
            compared.append({pair: products[pair] for pair in left})
            chosen.append(contest.furthest(left, self.choosing) if contest and self.choosing else left[0])
        pairs = [self._measure(looks, pair, self.pairs) for pair in chosen if self.pairs is not None]
        whole = self._total([first, *ones, *pairs])
        grown = forest.plant(self.sizes, [*ones, *pairs], whole)
        columns = forest.rows_of_forest(grown, self._rows(whole), sampler)
        measured = [(one, self.ones) for one in ones]
        measured += [(pair, self.pairs) for pair in pairs if self.pairs is not None]
        rounds = [Round(pair, against, handicaps) for pair, against in zip(pairs, compared, strict=True)]
        return self._given(columns, whole, measured, rounds, sampler)

    def _measure(self, looks: Looks, marginal: Marginal, mechanism: Mechanism) -> Measured:
        return Measured(marginal, looks.measure(marginal, mechanism), standard_error(mechanism) ** 2)

    def _handicaps(self, candidates: Sequence[Marginal]) -> dict[Marginal, int]:
        """What noise would add to a marginal's distance: measuring it pays only beyond that (McKenna et al. 2022)."""
        size = 0.0 if self.pairs is None else mean_size(self.pairs)
        return {one: int(size * prod(self.sizes[axis] for axis in one)) for one in candidates}

    def _total(self, measured: Sequence[Measured]) -> float:
        """The total in units of weight; never below one row, for a table of nothing has no proportions."""
        return min(max(forest.combined_total(measured), float(self.mass.whole)), _MOST_TOTAL)

    def _rows(self, whole: float) -> int:
        return min(self.most_rows, round(whole / self.mass.whole))

    # --- what is given out -------------------------------------------------------------------------------------------

    def _given(
        self,
        columns: tuple[Cells, ...],
        whole: float,
        measured: Sequence[tuple[Measured, Mechanism]],
        rounds: Sequence[Round],
        sampler: Sampler,
    ) -> tuple[Cells, ...]:
        count = len(columns[0])
        order = shuffled(count, sampler)
        columns = tuple(column[order] for column in columns)
        noise = 0.0 if self.pairs is None else mean_size(self.pairs)
        synthetic = {one: self._counted(columns, one, whole) for one in self._told()}
        found = figures(synthetic, measured, rounds, noise, float(self.choosing or 0), mean_size(self.total))
        within = [offsets(code, widths, sampler) for code, widths in zip(columns, self.widths, strict=True) if widths]
        parts = [np.zeros(count, np.int64), np.full(count, int(1 / FIGURE_GRID), np.int64), *columns, *within]
        told = self._figures(found, whole)
        return tuple(np.concatenate([part, more]) for part, more in zip(parts, told, strict=True))

    def _told(self) -> tuple[Marginal, ...]:
        """The marginals that figures are given for: one-way, and two-way ones that are not huge."""
        ones = tuple((axis,) for axis in range(len(self.sizes)))
        return (*ones, *forest.pairs_of(self.sizes))

    def _counted(self, columns: tuple[Cells, ...], marginal: Marginal, whole: float) -> Floats:
        """A marginal of the synthetic rows, which all together weigh `whole`."""
        shape = tuple(self.sizes[axis] for axis in marginal)
        places = np.ravel_multi_index(tuple(columns[axis] for axis in marginal), shape)
        counts = np.bincount(places, minlength=prod(shape)).reshape(shape)
        result: Floats = counts.astype(np.float64) * (whole / max(1, len(columns[0])))
        return result

    def _figures(self, found: Sequence[Figure], whole: float) -> list[Cells]:
        parts = np.array([*(MEASURED if one.measured else FITTED for one in found), TOTAL], np.int64)
        errors = [-1.0 if one.error is None else one.error / self.mass.whole for one in found]
        errors.append(whole / self.mass.whole)
        values = np.rint(np.array(errors) / float(FIGURE_GRID)).astype(np.int64)
        marginals = [*(one.marginal for one in found), ()]
        codes = [np.array([0 if axis in one else -1 for one in marginals]) for axis in range(len(self.sizes))]
        return [parts, values, *codes, *(np.zeros_like(parts) for widths in self.widths if widths)]


def _said(mechanism: Mechanism, whole: int) -> str:
    return f"{_kind(mechanism)[0]} noise of {standard_error(mechanism) / whole:,.3g} rows"


def _look(at: str, mechanism: Mechanism, times: int) -> dict[str, str]:
    kind, scale = _kind(mechanism)
    return {"at": at, "noise": kind, "scale": scale, "times": str(times)}


def _kind(mechanism: Mechanism) -> tuple[str, str]:
    match mechanism:
        case Laplace(scale):
            return "laplace", str(scale)
        case Gaussian(sigma):
            return "gaussian", str(sigma)


def _written(mechanism: Mechanism | None) -> list[str] | None:
    return None if mechanism is None else list(_kind(mechanism))


def read_synthesis(part: dict[str, Any]) -> Synthesis:
    """What `written` wrote."""
    return Synthesis(
        method=Method(part["method"]),
        axes=Axes(tuple(map(int, part["lowers"])), tuple(map(int, part["sizes"]))),
        mass=UnitMass.read(part["mass"]),
        total=_read(part["total"]),
        ones=None if part["ones"] is None else _read(part["ones"]),
        pairs=None if part["pairs"] is None else _read(part["pairs"]),
        choosing=None if part["choosing"] is None else Fraction(part["choosing"]),
        rounds=int(part["rounds"]),
        widths=tuple(tuple(map(int, widths)) for widths in part["widths"]),
        most_rows=int(part["most_rows"]),
    )


def _read(stored: list[str]) -> Mechanism:
    kind, scale = stored
    made: dict[str, type[Laplace] | type[Gaussian]] = {"laplace": Laplace, "gaussian": Gaussian}
    return made[kind](Fraction(scale))
