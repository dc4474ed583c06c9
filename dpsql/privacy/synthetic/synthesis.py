"""Synthetic tables: what is looked at, what it costs, and the rows that are made of it.

Three methods look at the same things (`measure.py`), in different numbers:

                    total    one-way marginals    rounds: choose, then measure
    mwem            once     -                    any one- or two-way marginal, `rounds` times
    marginals       once     each                 two-way marginals that join trees of columns, until one tree is left
    independent     once     each                 -

Privacy: the sum of the losses of these looks, one after another. What they gave out decides everything else: the fit
(`mwem.py`, `mst.py`), the rows drawn from it (`sample_rows.py`) and the figures of how good they are
(`marginal_error.py`) see no private row. The number of rows is the noisy total, never the exact one.

What comes of it has one column that says what a row is (PARTS), one with a figure, one of codes for each axis, and one
of places within bins for each axis that has bins. A row of the part ROW is a row of the synthetic table, in random
order. MEASURED and FITTED tell of a marginal: its axes have the code 0, the others -1; the figure is the expected error
of its cells, in rows, or -1 where nothing tells it. TOTAL has the number of rows that the table stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from dpsql.privacy.exact import Cells
from dpsql.privacy.loss import Loss, sum_losses
from dpsql.privacy.noise import (
    Gaussian,
    Laplace,
    Mechanism,
    Sensitivity,
    calibrate_gaussian,
    calibrate_laplace,
    require_positive_share,
    round_up_scale,
    scale_from_square,
    standard_error,
)
from dpsql.privacy.sampling import Sampler
from dpsql.privacy.synthetic import mst, mwem
from dpsql.privacy.synthetic.marginal_error import (
    MarginalError,
    SelectionRound,
    estimate_marginal_errors,
    mean_noise_size,
)
from dpsql.privacy.synthetic.measure import (
    Floats,
    Marginal,
    MarginalMeasurer,
    furthest_loss,
    marginal_loss,
    marginal_sensitivity,
    total_loss,
)
from dpsql.privacy.synthetic.mwem import MarginalMeasurement
from dpsql.privacy.synthetic.sample_rows import draw_bin_offsets, sample_cell_rows, shuffle_indices
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRows, total_sensitivity

ROW, MEASURED, FITTED, TOTAL = 0, 1, 2, 3
"""PARTS of what comes out: a row of the table; a marginal that was measured, itself or within another, or was not; and
the total, in rows, as the noisy values have it."""
FIGURE_GRID = Fraction(1, 1 << 20)

TOTAL_SHARE = Fraction(1, 20)
"""Of the loss, for the total: it needs little, having one cell."""

_MAX_TOTAL = float(1 << 56)


class SynthesisMethod(Enum):
    MWEM = "mwem"
    MARGINALS = "marginals"
    INDEPENDENT = "independent"


@dataclass(frozen=True)
class Synthesis:
    """A synthetic table to be made. `ones` is the noise of one-way marginals that are all measured, `pairs` that of
    the marginal of a round, `choosing` the scale at which it is chosen; None where there is nothing of the kind.

    `widths[axis]` says how many values the bin of each code holds; it is empty where each holds one.
    """

    method: SynthesisMethod
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
        return sum_losses(losses)

    @property
    def noise_sizes(self) -> tuple[float, ...]:
        looks = (self.total, self.ones, self.pairs)
        return tuple(standard_error(look) / self.mass.norm for look in looks if look is not None)

    def explain_lines(self) -> tuple[str, ...]:
        """The method, and the noise of each look in rows."""
        row_weight = self.mass.whole
        lines = [f"synthetic table by {self.method.value}, {prod(self.sizes):,} cells, at most {self.most_rows:,} rows"]
        lines.append(f"total: {_describe_noise(self.total, row_weight)}")
        if self.ones is not None:
            lines.append(f"{len(self.sizes)} one-way marginals: {_describe_noise(self.ones, row_weight)} in each cell")
        if self.pairs is not None:
            what = "marginals" if self.method is SynthesisMethod.MWEM else "two-way marginals"
            chosen = "" if self.choosing is None else f", chosen to about {float(self.choosing / row_weight):,.3g} rows"
            lines.append(f"{self.rounds} {what}{chosen}: {_describe_noise(self.pairs, row_weight)} in each cell")
        return tuple(lines)

    def to_audit_record(self) -> dict[str, Any]:
        """How often each look is made, and with which noise."""
        measurements: list[dict[str, str]] = [_measurement_record("total", self.total, 1)]
        if self.ones is not None:
            measurements.append(_measurement_record("marginal", self.ones, len(self.sizes)))
        if self.pairs is not None:
            measurements.append(_measurement_record("marginal", self.pairs, self.rounds))
        if self.choosing is not None:
            measurements.append({"at": "furthest", "noise": "exponential", "scale": str(self.choosing),
                          "times": str(self.rounds)})  # fmt: skip
        return {"looks": measurements}

    def to_json(self) -> dict[str, Any]:
        return {
            "method": self.method.value,
            "lowers": [str(low) for low in self.axes.lowers],
            "sizes": [str(size) for size in self.sizes],
            "mass": self.mass.to_json(),
            "total": _noise_to_json(self.total),
            "ones": _noise_to_json(self.ones),
            "pairs": _noise_to_json(self.pairs),
            "choosing": None if self.choosing is None else str(self.choosing),
            "rounds": str(self.rounds),
            "widths": [[str(width) for width in widths] for widths in self.widths],
            "most_rows": str(self.most_rows),
        }

    def perform(self, tally: WeightedRows, sampler: Sampler) -> tuple[Cells, ...]:
        """Rows and figures, as the module says.

        Privacy: `loss`. The tally is seen through `MarginalMeasurer` alone, as often as `loss` counts.
        """
        measurer = MarginalMeasurer(tally, self.sizes, sampler)
        first = self._measure_marginal(measurer, (), self.total)
        if self.method is SynthesisMethod.MWEM:
            return self._run_mwem(measurer, first, sampler)
        return self._run_mst(measurer, first, sampler)

    # --- methods -----------------------------------------------------------------------------------------------------

    def _run_mwem(self, measurer: MarginalMeasurer, first: MarginalMeasurement, sampler: Sampler) -> tuple[Cells, ...]:
        candidates = mwem.marginal_workload(self.sizes)
        handicaps = self._score_handicaps(candidates)
        total_weight = self._estimate_total([first])
        estimate = mwem.uniform_estimate(self.sizes, total_weight)
        measured: list[MarginalMeasurement] = []
        rounds: list[SelectionRound] = []
        assert self.pairs is not None
        for _ in range(self.rounds):
            estimates = {candidate: mwem.marginal_of(estimate, candidate) for candidate in candidates}
            chosen = candidates[0]
            if self.choosing is not None:
                chosen = measurer.compare_marginals(estimates, handicaps).choose_furthest(candidates, self.choosing)
            measured.append(self._measure_marginal(measurer, chosen, self.pairs))
            rounds.append(SelectionRound(measured[-1], estimates, handicaps))
            total_weight = self._estimate_total([first, *measured])
            estimate = mwem.fit_estimate(estimate * (total_weight / estimate.sum()), measured, total_weight)
        columns = sample_cell_rows(estimate, self._count_rows(total_weight), sampler)
        return self._assemble_columns(
            columns, total_weight, [(measurement, self.pairs) for measurement in measured], rounds[-1:], sampler
        )

    def _run_mst(self, measurer: MarginalMeasurer, first: MarginalMeasurement, sampler: Sampler) -> tuple[Cells, ...]:
        assert self.ones is not None
        ones = [self._measure_marginal(measurer, (axis,), self.ones) for axis in range(len(self.sizes))]
        total_weight = self._estimate_total([first, *ones])
        fitted = mst.fit_forest(self.sizes, ones, total_weight)
        candidates = mst.candidate_edges(self.sizes) if self.rounds else ()
        products = {pair: mst.independent_product(fitted, pair) for pair in candidates}
        handicaps = self._score_handicaps(candidates)
        contest = measurer.compare_marginals(products, handicaps) if self.choosing is not None else None
        chosen: list[Marginal] = []
        compared: list[Mapping[Marginal, Floats]] = []
        for _ in range(self.rounds):
            remaining = mst.edges_joining_trees(candidates, chosen)
            compared.append({pair: products[pair] for pair in remaining})
            chosen.append(
                contest.choose_furthest(remaining, self.choosing) if contest and self.choosing else remaining[0]
            )
        pairs = [self._measure_marginal(measurer, pair, self.pairs) for pair in chosen if self.pairs is not None]
        total_weight = self._estimate_total([first, *ones, *pairs])
        fitted = mst.fit_forest(self.sizes, [*ones, *pairs], total_weight)
        columns = mst.sample_forest_rows(fitted, self._count_rows(total_weight), sampler)
        measured = [(measurement, self.ones) for measurement in ones]
        measured += [(pair, self.pairs) for pair in pairs if self.pairs is not None]
        rounds = [SelectionRound(pair, against, handicaps) for pair, against in zip(pairs, compared, strict=True)]
        return self._assemble_columns(columns, total_weight, measured, rounds, sampler)

    def _measure_marginal(
        self, measurer: MarginalMeasurer, marginal: Marginal, mechanism: Mechanism
    ) -> MarginalMeasurement:
        return MarginalMeasurement(
            marginal, measurer.measure_marginal(marginal, mechanism), standard_error(mechanism) ** 2
        )

    def _score_handicaps(self, candidates: Sequence[Marginal]) -> dict[Marginal, int]:
        """What noise would add to a marginal's distance: measuring it pays only beyond that (McKenna et al. 2022)."""
        size = 0.0 if self.pairs is None else mean_noise_size(self.pairs)
        return {marginal: int(size * prod(self.sizes[axis] for axis in marginal)) for marginal in candidates}

    def _estimate_total(self, measured: Sequence[MarginalMeasurement]) -> float:
        """The total in units of weight; never below one row, for a table of nothing has no proportions."""
        return min(max(mst.combine_totals(measured), float(self.mass.whole)), _MAX_TOTAL)

    def _count_rows(self, total_weight: float) -> int:
        return min(self.most_rows, round(total_weight / self.mass.whole))

    # --- what is given out -------------------------------------------------------------------------------------------

    def _assemble_columns(
        self,
        columns: tuple[Cells, ...],
        total_weight: float,
        measured: Sequence[tuple[MarginalMeasurement, Mechanism]],
        rounds: Sequence[SelectionRound],
        sampler: Sampler,
    ) -> tuple[Cells, ...]:
        count = len(columns[0])
        order = shuffle_indices(count, sampler)
        columns = tuple(column[order] for column in columns)
        noise = 0.0 if self.pairs is None else mean_noise_size(self.pairs)
        synthetic = {
            marginal: self._count_marginal(columns, marginal, total_weight) for marginal in self._reported_marginals()
        }
        errors = estimate_marginal_errors(
            synthetic, measured, rounds, noise, float(self.choosing or 0), mean_noise_size(self.total)
        )
        within = [
            draw_bin_offsets(code, widths, sampler) for code, widths in zip(columns, self.widths, strict=True) if widths
        ]
        parts = [np.zeros(count, np.int64), np.full(count, int(1 / FIGURE_GRID), np.int64), *columns, *within]
        error_columns = self._error_columns(errors, total_weight)
        return tuple(np.concatenate([part, more]) for part, more in zip(parts, error_columns, strict=True))

    def _reported_marginals(self) -> tuple[Marginal, ...]:
        """The marginals that figures are given for: one-way, and two-way ones that are not huge."""
        ones = tuple((axis,) for axis in range(len(self.sizes)))
        return (*ones, *mst.candidate_edges(self.sizes))

    def _count_marginal(self, columns: tuple[Cells, ...], marginal: Marginal, total_weight: float) -> Floats:
        """A marginal of the synthetic rows, which all together weigh `whole`."""
        shape = tuple(self.sizes[axis] for axis in marginal)
        indices = np.ravel_multi_index(tuple(columns[axis] for axis in marginal), shape)
        counts = np.bincount(indices, minlength=prod(shape)).reshape(shape)
        result: Floats = counts.astype(np.float64) * (total_weight / max(1, len(columns[0])))
        return result

    def _error_columns(self, marginal_errors: Sequence[MarginalError], total_weight: float) -> list[Cells]:
        parts = np.array([*(MEASURED if error.measured else FITTED for error in marginal_errors), TOTAL], np.int64)
        errors = [-1.0 if e.error is None else e.error / self.mass.whole for e in marginal_errors]
        errors.append(total_weight / self.mass.whole)
        values = np.rint(np.array(errors) / float(FIGURE_GRID)).astype(np.int64)
        marginals = [*(error.marginal for error in marginal_errors), ()]
        codes = [np.array([0 if axis in marginal else -1 for marginal in marginals]) for axis in range(len(self.sizes))]
        return [parts, values, *codes, *(np.zeros_like(parts) for widths in self.widths if widths)]


def _describe_noise(mechanism: Mechanism, row_weight: int) -> str:
    return f"{_kind_and_scale(mechanism)[0]} noise of {standard_error(mechanism) / row_weight:,.3g} rows"


def _measurement_record(at: str, mechanism: Mechanism, times: int) -> dict[str, str]:
    kind, scale = _kind_and_scale(mechanism)
    return {"at": at, "noise": kind, "scale": scale, "times": str(times)}


def _kind_and_scale(mechanism: Mechanism) -> tuple[str, str]:
    match mechanism:
        case Laplace(scale):
            return "laplace", str(scale)
        case Gaussian(sigma):
            return "gaussian", str(sigma)


def _noise_to_json(mechanism: Mechanism | None) -> list[str] | None:
    return None if mechanism is None else list(_kind_and_scale(mechanism))


def synthesis_from_json(part: dict[str, Any]) -> Synthesis:
    """Read what `to_json` wrote."""
    return Synthesis(
        method=SynthesisMethod(part["method"]),
        axes=Axes(tuple(map(int, part["lowers"])), tuple(map(int, part["sizes"]))),
        mass=UnitMass.from_json(part["mass"]),
        total=_noise_from_json(part["total"]),
        ones=None if part["ones"] is None else _noise_from_json(part["ones"]),
        pairs=None if part["pairs"] is None else _noise_from_json(part["pairs"]),
        choosing=None if part["choosing"] is None else Fraction(part["choosing"]),
        rounds=int(part["rounds"]),
        widths=tuple(tuple(map(int, widths)) for widths in part["widths"]),
        most_rows=int(part["most_rows"]),
    )


def _noise_from_json(stored: list[str]) -> Mechanism:
    kind, scale = stored
    kinds: dict[str, type[Laplace] | type[Gaussian]] = {"laplace": Laplace, "gaussian": Gaussian}
    return kinds[kind](Fraction(scale))


# How a synthetic table's loss is divided over its looks, and the noise that follows.


@dataclass(frozen=True)
class SynthesisRequest:
    """A synthetic table before its noise is known; `rounds` is None for as many as are usual."""

    method: SynthesisMethod | None
    axes: Axes
    mass: UnitMass
    widths: tuple[tuple[int, ...], ...]
    most_rows: int
    rounds: int | None = None


def default_method(sizes: tuple[int, ...]) -> SynthesisMethod:
    """The method for a domain where none is asked for."""
    return SynthesisMethod.MWEM if prod(sizes) <= mwem.MAX_CELLS else SynthesisMethod.MARGINALS


def default_rounds(sizes: tuple[int, ...]) -> int:
    """The rounds of mwem: with some more marginals than columns, each column is measured about twice."""
    return 1 if len(sizes) == 1 else len(sizes) + 1


def calibrate_synthesis_by_epsilon(request: SynthesisRequest, epsilon: Fraction) -> Synthesis:
    """The synthetic table with the least noise that is charged at most `epsilon`."""
    return _divide_loss(request, epsilon, calibrate_laplace, lambda share: round_up_scale(2 * request.mass.l1 / share))


def calibrate_synthesis_by_rho(request: SynthesisRequest, rho: Fraction) -> Synthesis:
    """The synthetic table with the least noise that is charged at most `rho`."""
    square = request.mass.l1**2
    return _divide_loss(request, rho, calibrate_gaussian, lambda share: scale_from_square(square / (2 * share)))


def _divide_loss(
    request: SynthesisRequest,
    full_loss: Fraction,
    noise: Callable[[Sensitivity, Fraction], Mechanism],
    scale: Callable[[Fraction], Fraction],
) -> Synthesis:
    sizes, mass = request.axes.sizes, request.mass
    method = request.method or default_method(sizes)
    rounds, choices, parts = _plan_measurements(method, sizes, request.rounds)
    rest = full_loss * (1 - TOTAL_SHARE)
    ones, choosing, pairs = (rest * part for part in parts)
    sensitivity = marginal_sensitivity(mass)
    return Synthesis(
        method=method,
        axes=request.axes,
        mass=mass,
        total=noise(total_sensitivity(mass), full_loss * TOTAL_SHARE),
        ones=noise(sensitivity, ones / len(sizes)) if ones else None,
        pairs=noise(sensitivity, pairs / rounds) if rounds else None,
        choosing=scale(require_positive_share(choosing / rounds)) if choices else None,
        rounds=rounds,
        widths=request.widths,
        most_rows=request.most_rows,
    )


def _plan_measurements(
    method: SynthesisMethod, sizes: tuple[int, ...], requested_rounds: int | None
) -> tuple[int, bool, tuple[Fraction, ...]]:
    """How many rounds, whether anything is chosen in them, and the parts of one-way marginals, choices and rounds."""
    zero, one = Fraction(0), Fraction(1)
    if method is SynthesisMethod.MWEM:
        rounds = requested_rounds or default_rounds(sizes)
        chooses = len(sizes) > 1 or rounds > 1
        return rounds, chooses, (zero, one / 4, 3 * one / 4) if chooses else (zero, zero, one)
    edges = mst.count_edges(sizes) if method is SynthesisMethod.MARGINALS else 0
    if not edges:
        return 0, False, (one, zero, zero)
    chooses = edges < len(mst.candidate_edges(sizes))
    return edges, chooses, (one / 3, one / 3, one / 3) if chooses else (one / 2, zero, one / 2)
