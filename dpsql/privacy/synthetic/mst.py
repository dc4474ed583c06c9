"""Noisy marginals made into a forest of columns, and rows drawn along it (McKenna, Miklau, Sheldon 2021: MST).

The model: each column depends on at most one other. What it needs are one-way marginals and one two-way marginal for
each edge; noise leaves these negative and at odds with each other, so they are first made to fit. All of it is
worked out from noisy values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpsql.privacy.exact import Cells
from dpsql.privacy.sampling import Sampler
from dpsql.privacy.synthetic.measure import Floats, Marginal
from dpsql.privacy.synthetic.mwem import MarginalMeasurement
from dpsql.privacy.synthetic.sample_rows import draw_uniforms, round_counts, shuffle_indices

MAX_AXES = 32
MAX_PAIR_CELLS = 1 << 16
"""Cells of a two-way marginal that may be an edge."""

_RAKING_SWEEPS = 50
_INDEPENDENT_SHARE = 1e-3
"""The part of a pair's weight that is spread as if its columns were independent, so that raking reaches every cell."""


@dataclass(frozen=True)
class MarginalForest:
    """One-way marginals, and for each edge a two-way one that agrees with them; all add up to `total`."""

    total: float
    ones: tuple[Floats, ...]
    pairs: Mapping[Marginal, Floats]


def candidate_edges(sizes: tuple[int, ...]) -> tuple[Marginal, ...]:
    """The pairs of axes that may be edges."""
    return tuple(
        pair for pair in combinations(range(len(sizes)), 2) if sizes[pair[0]] * sizes[pair[1]] <= MAX_PAIR_CELLS
    )


def count_edges(sizes: tuple[int, ...]) -> int:
    """How many edges a largest forest has."""
    chosen: list[Marginal] = []
    while candidates := edges_joining_trees(candidate_edges(sizes), chosen):
        chosen.append(candidates[0])
    return len(chosen)


def edges_joining_trees(pairs: Iterable[Marginal], chosen: Sequence[Marginal]) -> list[Marginal]:
    """The pairs that would join two trees of the forest of those chosen."""
    root: dict[int, int] = {}

    def find(axis: int) -> int:
        while root.get(axis, axis) != axis:
            axis = root[axis]
        return axis

    for first, second in chosen:
        root[find(first)] = find(second)
    return [pair for pair in pairs if find(pair[0]) != find(pair[1])]


def combine_totals(measured: Iterable[MarginalMeasurement]) -> float:
    """The total, from what was measured of it, each by how exact it is. (The total itself is a marginal of no axes.)"""
    values = [
        (float(measurement.noisy.sum()), measurement.variance * measurement.noisy.size) for measurement in measured
    ]
    weights = sum(1.0 / variance for _, variance in values)
    return sum(value / variance for value, variance in values) / weights


def fit_forest(sizes: tuple[int, ...], measured: Sequence[MarginalMeasurement], total: float) -> MarginalForest:
    """The forest of measured one- and two-way marginals."""
    ones = tuple(_fit_one_way(axis, measured, total) for axis in range(len(sizes)))
    edges = [measurement for measurement in measured if len(measurement.marginal) == 2]
    return MarginalForest(total, ones, {edge.marginal: _fit_pair(edge, ones, total) for edge in edges})


def _fit_pair(edge: MarginalMeasurement, ones: tuple[Floats, ...], total: float) -> Floats:
    row_axis, column_axis = edge.marginal
    return _rake_pair(
        project_to_simplex(edge.noisy.astype(np.float64), total), ones[row_axis], ones[column_axis], total
    )


def _fit_one_way(axis: int, measured: Sequence[MarginalMeasurement], total: float) -> Floats:
    """A one-way marginal from all that tells of it, not negative, with the total of all."""
    weighted_sum, weight = np.zeros(()), 0.0
    for measurement in measured:
        if axis in measurement.marginal:
            others = tuple(index for index, other in enumerate(measurement.marginal) if other != axis)
            summed = measurement.noisy.sum(axis=others) if others else measurement.noisy
            precision = summed.size / (measurement.variance * measurement.noisy.size)
            weighted_sum, weight = weighted_sum + summed * precision, weight + precision
    return project_to_simplex(weighted_sum / weight, total)


def project_to_simplex(values: Floats, total: float) -> Floats:
    """The nearest table, in Euclid's sense, that has no negative cell and adds up to the total (Held et al. 1974)."""
    flat = np.sort(values.reshape(-1))[::-1]
    excess = (np.cumsum(flat) - total) / np.arange(1, flat.size + 1)
    positive = np.flatnonzero(flat > excess)
    level = excess[positive[-1]] if len(positive) else flat[0] - total
    result: Floats = np.maximum(values - level, 0.0)
    return result


def _rake_pair(pair: Floats, rows: Floats, columns: Floats, total: float) -> Floats:
    """The pair with given one-way marginals, multiplied into shape (Deming, Stephan 1940)."""
    if total <= 0:
        return np.zeros_like(pair)
    table = (1.0 - _INDEPENDENT_SHARE) * pair + _INDEPENDENT_SHARE * np.outer(rows, columns) / total
    for _ in range(_RAKING_SWEEPS):
        table = table * _divide_or_zero(columns, table.sum(axis=0))[None, :]
        table = table * _divide_or_zero(rows, table.sum(axis=1))[:, None]
    return table


def _divide_or_zero(numerator: Floats, denominator: Floats) -> Floats:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def sample_forest_rows(forest: MarginalForest, count: int, sampler: Sampler) -> tuple[Cells, ...]:
    """`count` rows, one array of codes per axis: roots first, then each column given the one it hangs on."""
    columns: dict[int, Cells] = {}
    for axis, marginal in enumerate(forest.ones):
        if axis in columns:
            continue
        columns[axis] = _sample_root(marginal, count, sampler)
        pending = [axis]
        while pending:
            parent = pending.pop()
            for pair, table in forest.pairs.items():
                child = pair[1] if pair[0] == parent else pair[0]
                if parent in pair and child not in columns:
                    conditional = table if pair[0] == parent else table.T
                    columns[child] = _sample_child(columns[parent], conditional, sampler)
                    pending.append(child)
    return tuple(columns[axis] for axis in range(len(forest.ones)))


def _sample_root(marginal: Floats, count: int, sampler: Sampler) -> Cells:
    (start,) = draw_uniforms(1, sampler)
    codes = np.repeat(np.arange(len(marginal)), round_counts(marginal, count, float(start)))
    return codes[shuffle_indices(count, sampler)]


def _sample_child(parents: Cells, conditional: Floats, sampler: Sampler) -> Cells:
    """Codes in the proportions of the row of each parent's code, in random order among its rows."""
    order = shuffle_indices(len(parents), sampler)
    order = order[np.argsort(parents[order], kind="stable")]
    sizes = np.bincount(parents, minlength=len(conditional))
    starts = draw_uniforms(len(conditional), sampler)
    parts = [round_counts(row, int(n), float(u)) for row, n, u in zip(conditional, sizes, starts, strict=True)]
    codes = np.empty(len(parents), np.int64)
    codes[order] = np.concatenate([np.repeat(np.arange(conditional.shape[1]), part) for part in parts])
    return codes


def independent_product(forest: MarginalForest, pair: Marginal) -> Floats:
    """What a pair would be if its columns were independent."""
    row_marginal, column_marginal = (forest.ones[axis] for axis in pair)
    result: Floats = (
        np.outer(row_marginal, column_marginal) / forest.total
        if forest.total > 0
        else np.zeros((len(row_marginal), len(column_marginal)))
    )
    return result
