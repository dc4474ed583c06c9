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
from dpsql.exact import Cells, Exact, Row
from dpsql.privacy.choice import choose_bins
from dpsql.privacy.mechanisms import draw
from dpsql.privacy.sampling import Sampler
from dpsql.privacy.scores import Drawing, Ranking, draw_shares, rank
from dpsql.privacy.selection import keep
from dpsql.privacy.spec import Bundle, Choice, KeySelection, Release, Spec
from dpsql.privacy.storage import from_bytes, to_bytes
from dpsql.privacy.threshold import Question, Verdict, Watch

__all__ = ["Bundle", "Choice", "KeySelection", "Release", "Spec", "from_bytes", "judge", "perturb", "to_bytes"]

_MOST = (1 << 62) - 1
"""Cells are clipped to +-_MOST: with noise below 2^62 their sum stays within 64 bits."""


def perturb(exact: Exact, spec: Spec, sampler: Sampler) -> Release:
    """The release of `exact`: keys chosen by the selection, if any, then noise in each cell of the kept keys; or bins.

    Privacy: the sum of the losses of the selection and of the bundles, or of the picks, the scores or the study, by the
    claim of each. Clipping cells to +-2^62 moves no two of them further apart. The draws are independent, and none is
    used twice.
    """
    revealed = exact.reveal()
    if len(revealed.cells) != spec.columns:
        raise InternalError("the engine returned other columns than the plan has")
    if spec.study is not None:
        given = spec.study.perform(spec.study.axes.tally(revealed.cells), sampler)
        return Release(((),) * len(given[0]), given, spec)
    if len(set(revealed.keys)) != len(revealed.keys):
        # Two rows of one key would be two draws for one charge.
        raise InternalError("the engine returned a group twice")
    match spec.scores:
        case Ranking():
            return _ranked(revealed.keys, revealed.cells[0], spec.scores, spec, sampler)
        case Drawing():
            return Release(revealed.keys, draw_shares(spec.scores, np.stack(revealed.cells, axis=1), sampler), spec)
    if spec.choice is not None:
        keys = _groups(revealed.keys, spec.choice)
        weights = revealed.cells[0].reshape(len(keys), spec.choice.bins)
        chosen = tuple(spec.choice.lower + choose_bins(pick, weights, sampler) for pick in spec.choice.picks)
        return Release(keys, chosen, spec)
    rows = _rows_kept(revealed.keys, revealed.cells, spec.selection, sampler)
    keys = revealed.keys if rows is None else tuple(revealed.keys[row] for row in rows)
    cells: list[Cells] = [np.zeros(len(keys), np.int64) for _ in spec.grids]
    for bundle in spec.bundles:
        noise = draw(bundle.mechanism, len(keys) * len(bundle.columns), sampler)
        for column, draws in zip(bundle.columns, noise.reshape(len(bundle.columns), len(keys)), strict=True):
            values = revealed.cells[column] if rows is None else revealed.cells[column][rows]
            cells[column] = np.clip(values, -_MOST, _MOST) + draws
    return Release(keys, tuple(cells), spec)


def judge(exact: Exact, question: Question, watch: Watch, number: int) -> Verdict:
    """On which side of the threshold the only cell of `exact` falls.

    Privacy: that of `watch`, which was paid for before its first question (`privacy/threshold.py`).
    """
    revealed = exact.reveal()
    if revealed.keys != ((),) or len(revealed.cells) != 1:
        raise InternalError("the engine returned other cells than the question has")
    return watch.judge(int(revealed.cells[0][0]), question, number)


def _rows_kept(
    keys: tuple[Row, ...], cells: tuple[Cells, ...], selection: KeySelection | None, sampler: Sampler
) -> npt.NDArray[np.intp] | None:
    """The positions of the rows whose keys appear; None for all of them."""
    if selection is None:
        return None
    length = _block_length([key[: selection.keys] for key in keys])
    blocks = cells[selection.column].reshape(-1, length)
    if np.any(blocks != blocks[:, :1]):
        raise InternalError("the engine returned an inconsistent block of groups")
    kept = keep(selection.mechanism, blocks[:, 0], sampler)
    return np.flatnonzero(np.repeat(kept, length))


def _block_length(parts: list[Row]) -> int:
    """How many consecutive rows share their unknown part: as many for each, and each part in one place.

    A part in two places would be drawn twice, for one charge.
    """
    blocks = len(set(parts))
    length, rest = divmod(len(parts), blocks) if blocks else (1, 0)
    if rest or any(parts[row] != parts[row - row % length] for row in range(len(parts))):
        raise InternalError("the engine returned an incomplete block of groups")
    return length


def _groups(keys: tuple[Row, ...], choice: Choice) -> tuple[Row, ...]:
    """The keys of each block, without the bin; a block has one row for every bin, in ascending order."""
    groups = tuple(key[:-1] for key in keys[:: choice.bins])
    expected = ((*group, bin_) for group in groups for bin_ in range(choice.lower, choice.upper + 1))
    if len(keys) != len(groups) * choice.bins or any(key != wanted for key, wanted in zip(keys, expected, strict=True)):
        raise InternalError("the engine returned an incomplete block of bins")
    return groups


def _ranked(keys: tuple[Row, ...], cells: Cells, ranking: Ranking, spec: Spec, sampler: Sampler) -> Release:
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
        places = rank(ranking, cells[rows_of], sampler)
        chosen |= zip(same, np.take_along_axis(rows_of, places, axis=1).tolist(), strict=True)
    winners = [row for block in blocks for row in chosen[block]]
    numbers = [place for block in blocks for place in range(1, len(chosen[block]) + 1)]
    return Release(tuple(keys[row] for row in winners), (np.array(numbers, np.int64),), spec)
