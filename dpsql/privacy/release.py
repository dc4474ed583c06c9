"""From exact cells to a release: the one place that opens what an engine returned.

Law: no value leaves but through noise. Group keys are public, or kept by a selection; each cell of a kept key gets
one draw; the column that a selection counts in is never released.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsql.errors import InternalError
from dpsql.exact import Cells, Exact
from dpsql.privacy.mechanisms import Gaussian, Laplace, Mechanism
from dpsql.privacy.sampling import Integers, Sampler
from dpsql.privacy.selection import keep
from dpsql.privacy.spec import Bundle, KeySelection, Release, Spec
from dpsql.privacy.storage import from_bytes, to_bytes

__all__ = ["Bundle", "KeySelection", "Release", "Spec", "from_bytes", "perturb", "to_bytes"]

_MOST = (1 << 62) - 1
"""Cells are clipped to +-_MOST: with noise below 2^62 their sum stays within 64 bits."""


def perturb(exact: Exact, spec: Spec, sampler: Sampler) -> Release:
    """The release of `exact`: keys chosen by the selection, if any, then noise in each cell of the kept keys.

    Privacy: the sum of the losses of the selection and of the bundles, each by its own claim. Clipping cells to
    +-2^62 moves no two of them further apart. The draws are independent, and none is used twice.
    """
    revealed = exact.reveal()
    if len(revealed.cells) != len(spec.grids):
        raise InternalError("the engine returned other columns than the plan has")
    if len(set(revealed.keys)) != len(revealed.keys):
        # Two rows of one key would be two draws for one charge.
        raise InternalError("the engine returned a group twice")
    rows = _rows_kept(revealed.cells, spec.selection, len(revealed.keys), sampler)
    keys = revealed.keys if rows is None else tuple(revealed.keys[row] for row in rows)
    cells: list[Cells] = [np.zeros(len(keys), np.int64) for _ in spec.grids]
    for bundle in spec.bundles:
        noise = _noise(bundle.mechanism, len(keys) * len(bundle.columns), sampler)
        for column, draws in zip(bundle.columns, noise.reshape(len(bundle.columns), len(keys)), strict=True):
            values = revealed.cells[column] if rows is None else revealed.cells[column][rows]
            cells[column] = np.clip(values, -_MOST, _MOST) + draws
    return Release(keys, tuple(cells), spec)


def _noise(mechanism: Mechanism, n: int, sampler: Sampler) -> Integers:
    match mechanism:
        case Laplace(scale):
            return sampler.laplace(n, scale)
        case Gaussian(sigma):
            return sampler.gaussian(n, sigma)


def _rows_kept(
    cells: tuple[Cells, ...], selection: KeySelection | None, rows: int, sampler: Sampler
) -> npt.NDArray[np.intp] | None:
    """The positions of the rows whose keys appear; None for all of them."""
    if selection is None:
        return None
    if rows % selection.repeat:
        raise InternalError("the engine returned an incomplete block of groups")
    blocks = cells[selection.column].reshape(-1, selection.repeat)
    if np.any(blocks != blocks[:, :1]):
        raise InternalError("the engine returned an inconsistent block of groups")
    kept = keep(selection.mechanism, blocks[:, 0], sampler)
    return np.flatnonzero(np.repeat(kept, selection.repeat))
