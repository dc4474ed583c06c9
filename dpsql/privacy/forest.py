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

from dpsql.exact import Cells
from dpsql.privacy.looks import Floats, Marginal
from dpsql.privacy.mwem import Measured
from dpsql.privacy.rounding import shuffled, uniforms, whole_counts
from dpsql.privacy.sampling import Sampler

MOST_AXES = 32
MOST_PAIR = 1 << 16
"""Cells of a two-way marginal that may be an edge."""

_SWEEPS = 50
_FAITH = 1e-3
"""The part of a pair's weight that is spread as if its columns were independent, so that raking reaches every cell."""


@dataclass(frozen=True)
class Forest:
    """One-way marginals, and for each edge a two-way one that agrees with them; all add up to `total`."""

    total: float
    ones: tuple[Floats, ...]
    pairs: Mapping[Marginal, Floats]


def pairs_of(sizes: tuple[int, ...]) -> tuple[Marginal, ...]:
    """The pairs of axes that may be edges."""
    return tuple(pair for pair in combinations(range(len(sizes)), 2) if sizes[pair[0]] * sizes[pair[1]] <= MOST_PAIR)


def edges_of(sizes: tuple[int, ...]) -> int:
    """How many edges a largest forest has."""
    chosen: list[Marginal] = []
    while candidates := joining(pairs_of(sizes), chosen):
        chosen.append(candidates[0])
    return len(chosen)


def joining(pairs: Iterable[Marginal], chosen: Sequence[Marginal]) -> list[Marginal]:
    """The pairs that would join two trees of the forest of those chosen."""
    root: dict[int, int] = {}

    def find(axis: int) -> int:
        while root.get(axis, axis) != axis:
            axis = root[axis]
        return axis

    for one, other in chosen:
        root[find(one)] = find(other)
    return [pair for pair in pairs if find(pair[0]) != find(pair[1])]


def combined_total(measured: Iterable[Measured]) -> float:
    """The total, from what was measured of it, each by how exact it is. (The total itself is a marginal of no axes.)"""
    values = [(float(one.noisy.sum()), one.variance * one.noisy.size) for one in measured]
    weights = sum(1.0 / variance for _, variance in values)
    return sum(value / variance for value, variance in values) / weights


def plant(sizes: tuple[int, ...], measured: Sequence[Measured], total: float) -> Forest:
    """The forest of measured one- and two-way marginals."""
    ones = tuple(_one(axis, measured, total) for axis in range(len(sizes)))
    edges = [one for one in measured if len(one.marginal) == 2]
    return Forest(total, ones, {edge.marginal: _pair(edge, ones, total) for edge in edges})


def _pair(edge: Measured, ones: tuple[Floats, ...], total: float) -> Floats:
    one, other = edge.marginal
    return _rake(onto_simplex(edge.noisy.astype(np.float64), total), ones[one], ones[other], total)


def _one(axis: int, measured: Sequence[Measured], total: float) -> Floats:
    """A one-way marginal from all that tells of it, not negative, with the total of all."""
    found, weight = np.zeros(()), 0.0
    for one in measured:
        if axis in one.marginal:
            others = tuple(place for place, other in enumerate(one.marginal) if other != axis)
            summed = one.noisy.sum(axis=others) if others else one.noisy
            exactness = summed.size / (one.variance * one.noisy.size)
            found, weight = found + summed * exactness, weight + exactness
    return onto_simplex(found / weight, total)


def onto_simplex(values: Floats, total: float) -> Floats:
    """The nearest table, in Euclid's sense, that has no negative cell and adds up to the total (Held et al. 1974)."""
    flat = np.sort(values.reshape(-1))[::-1]
    excess = (np.cumsum(flat) - total) / np.arange(1, flat.size + 1)
    kept = np.flatnonzero(flat > excess)
    level = excess[kept[-1]] if len(kept) else flat[0] - total
    result: Floats = np.maximum(values - level, 0.0)
    return result


def _rake(pair: Floats, rows: Floats, columns: Floats, total: float) -> Floats:
    """The pair with given one-way marginals, multiplied into shape (Deming, Stephan 1940)."""
    if total <= 0:
        return np.zeros_like(pair)
    table = (1.0 - _FAITH) * pair + _FAITH * np.outer(rows, columns) / total
    for _ in range(_SWEEPS):
        table = table * _ratio(columns, table.sum(axis=0))[None, :]
        table = table * _ratio(rows, table.sum(axis=1))[:, None]
    return table


def _ratio(wanted: Floats, have: Floats) -> Floats:
    return np.divide(wanted, have, out=np.zeros_like(wanted), where=have > 0)


def rows_of_forest(forest: Forest, count: int, sampler: Sampler) -> tuple[Cells, ...]:
    """`count` rows, one array of codes per axis: roots first, then each column given the one it hangs on."""
    columns: dict[int, Cells] = {}
    for axis, marginal in enumerate(forest.ones):
        if axis in columns:
            continue
        columns[axis] = _root(marginal, count, sampler)
        waiting = [axis]
        while waiting:
            parent = waiting.pop()
            for pair, table in forest.pairs.items():
                child = pair[1] if pair[0] == parent else pair[0]
                if parent in pair and child not in columns:
                    given = table if pair[0] == parent else table.T
                    columns[child] = _child(columns[parent], given, sampler)
                    waiting.append(child)
    return tuple(columns[axis] for axis in range(len(forest.ones)))


def _root(marginal: Floats, count: int, sampler: Sampler) -> Cells:
    (start,) = uniforms(1, sampler)
    codes = np.repeat(np.arange(len(marginal)), whole_counts(marginal, count, float(start)))
    return codes[shuffled(count, sampler)]


def _child(parents: Cells, given: Floats, sampler: Sampler) -> Cells:
    """Codes in the proportions of the row of each parent's code, in random order among its rows."""
    order = shuffled(len(parents), sampler)
    order = order[np.argsort(parents[order], kind="stable")]
    sizes = np.bincount(parents, minlength=len(given))
    starts = uniforms(len(given), sampler)
    parts = [whole_counts(row, int(n), float(u)) for row, n, u in zip(given, sizes, starts, strict=True)]
    codes = np.empty(len(parents), np.int64)
    codes[order] = np.concatenate([np.repeat(np.arange(given.shape[1]), part) for part in parts])
    return codes


def product_of(forest: Forest, pair: Marginal) -> Floats:
    """What a pair would be if its columns were independent."""
    one, other = (forest.ones[axis] for axis in pair)
    result: Floats = np.outer(one, other) / forest.total if forest.total > 0 else np.zeros((len(one), len(other)))
    return result
