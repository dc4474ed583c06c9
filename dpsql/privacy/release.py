"""From exact cells to a release: the one place that opens what an engine returned.

Law: no value leaves but through noise. Group keys are public, or kept by a selection; each cell of a kept key gets
one draw; the column that a selection counts in is never released. Where a bin is chosen, nothing but its place leaves,
and where the best candidates are, which are public, nothing but which of them they are. A study's rows are tuples and
weights, of which nothing leaves but what the study gives. Of a question that is put to a threshold, nothing leaves but
on which side it fell, or a number with noise of its own.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsql.errors import InternalError
from dpsql.privacy.exact import Cells, Exact, Row
from dpsql.privacy.exponential import choose_bins
from dpsql.privacy.noise import draw_noise
from dpsql.privacy.partition_selection import keep_keys
from dpsql.privacy.release_spec import (
    BinPicks,
    KeySelection,
    NoiseBundle,
    Release,
    ReleaseSpec,
    release_from_bytes,
    release_to_bytes,
)
from dpsql.privacy.sampling import Sampler
from dpsql.privacy.score_selection import PosteriorDraws, Ranking, draw_shares, rank_candidates
from dpsql.privacy.sparse_vector import SparseVectorState, ThresholdAnswer, ThresholdQuery

__all__ = [
    "BinPicks",
    "KeySelection",
    "NoiseBundle",
    "Release",
    "ReleaseSpec",
    "evaluate_threshold_query",
    "perturb",
    "release_from_bytes",
    "release_to_bytes",
]

_MAX_CELL = (1 << 62) - 1
"""Cells are clipped to +-_MOST: with noise below 2^62 their sum stays within 64 bits."""


def perturb(exact: Exact, spec: ReleaseSpec, sampler: Sampler) -> Release:
    """The release of `exact`: keys chosen by the selection, if any, then noise in each cell of the kept keys; or bins.

    Privacy: the sum of the losses of the selection and of the bundles, or of the picks, the scores or the study, by the
    claim of each. Clipping cells to +-2^62 moves no two of them further apart. The draws are independent, and none is
    used twice.
    """
    revealed = exact.reveal()
    if len(revealed.cells) != spec.columns:
        raise InternalError("the engine returned other columns than the plan has")
    if spec.study is not None:
        columns = spec.study.perform(spec.study.axes.to_weighted_rows(revealed.cells), sampler)
        return Release(((),) * len(columns[0]), columns, spec)
    if len(set(revealed.keys)) != len(revealed.keys):
        # Two rows of one key would be two draws for one charge.
        raise InternalError("the engine returned a group twice")
    match spec.scores:
        case Ranking():
            return _rank_blocks(revealed.keys, revealed.cells[0], spec.scores, spec, sampler)
        case PosteriorDraws():
            return Release(revealed.keys, draw_shares(spec.scores, np.stack(revealed.cells, axis=1), sampler), spec)
    if spec.choice is not None:
        keys = _groups_without_bins(revealed.keys, spec.choice)
        weights = revealed.cells[0].reshape(len(keys), spec.choice.bins)
        chosen = tuple(spec.choice.lower + choose_bins(pick, weights, sampler) for pick in spec.choice.picks)
        return Release(keys, chosen, spec)
    rows = _select_rows(revealed.keys, revealed.cells, spec.selection, sampler)
    keys = revealed.keys if rows is None else tuple(revealed.keys[row] for row in rows)
    cells: list[Cells] = [np.zeros(len(keys), np.int64) for _ in spec.grids]
    for bundle in spec.bundles:
        noise = draw_noise(bundle.mechanism, len(keys) * len(bundle.columns), sampler)
        for column, draws in zip(bundle.columns, noise.reshape(len(bundle.columns), len(keys)), strict=True):
            values = revealed.cells[column] if rows is None else revealed.cells[column][rows]
            cells[column] = np.clip(values, -_MAX_CELL, _MAX_CELL) + draws
    return Release(keys, tuple(cells), spec)


def evaluate_threshold_query(
    exact: Exact, query: ThresholdQuery, state: SparseVectorState, number: int
) -> ThresholdAnswer:
    """On which side of the threshold the only cell of `exact` falls.

    Privacy: that of `state`, which was paid for before its first question (`privacy/sparse_vector.py`).
    """
    revealed = exact.reveal()
    if revealed.keys != ((),) or len(revealed.cells) != 1:
        raise InternalError("the engine returned other cells than the question has")
    return state.evaluate_exact_cell(int(revealed.cells[0][0]), query, number)


def _select_rows(
    keys: tuple[Row, ...], cells: tuple[Cells, ...], selection: KeySelection | None, sampler: Sampler
) -> npt.NDArray[np.intp] | None:
    """The positions of the rows whose keys appear; None for all of them."""
    if selection is None:
        return None
    length = _block_length([key[: selection.keys] for key in keys])
    blocks = cells[selection.column].reshape(-1, length)
    if np.any(blocks != blocks[:, :1]):
        raise InternalError("the engine returned an inconsistent block of groups")
    selected = keep_keys(selection.mechanism, blocks[:, 0], sampler)
    return np.flatnonzero(np.repeat(selected, length))


def _block_length(parts: list[Row]) -> int:
    """How many consecutive rows share their unknown part: as many for each, and each part in one place.

    A part in two places would be drawn twice, for one charge.
    """
    blocks = len(set(parts))
    length, rest = divmod(len(parts), blocks) if blocks else (1, 0)
    if rest or any(parts[row] != parts[row - row % length] for row in range(len(parts))):
        raise InternalError("the engine returned an incomplete block of groups")
    return length


def _groups_without_bins(keys: tuple[Row, ...], choice: BinPicks) -> tuple[Row, ...]:
    """The keys of each block, without the bin; a block has one row for every bin, in ascending order."""
    groups = tuple(key[:-1] for key in keys[:: choice.bins])
    expected = ((*group, bin_) for group in groups for bin_ in range(choice.lower, choice.upper + 1))
    if len(keys) != len(groups) * choice.bins or any(
        key != expected_key for key, expected_key in zip(keys, expected, strict=True)
    ):
        raise InternalError("the engine returned an incomplete block of bins")
    return groups


def _rank_blocks(keys: tuple[Row, ...], cells: Cells, ranking: Ranking, spec: ReleaseSpec, sampler: Sampler) -> Release:
    """The candidates chosen in each block, best first. NULL is no candidate; blocks may have different ones."""
    blocks: dict[Row, list[int]] = {}
    for row, key in enumerate(keys):
        if key[ranking.place] is not None:
            blocks.setdefault(key[: ranking.place] + key[ranking.place + 1 :], []).append(row)
    alike: dict[int, list[Row]] = {}
    for block, rows in blocks.items():
        alike.setdefault(len(rows), []).append(block)
    chosen: dict[Row, list[int]] = {}
    for same in alike.values():
        rows_of = np.array([blocks[block] for block in same])
        indices = rank_candidates(ranking, cells[rows_of], sampler)
        chosen |= zip(same, np.take_along_axis(rows_of, indices, axis=1).tolist(), strict=True)
    winners = [row for block in blocks for row in chosen[block]]
    numbers = [position for block in blocks for position in range(1, len(chosen[block]) + 1)]
    return Release(tuple(keys[row] for row in winners), (np.array(numbers, np.int64),), spec)
