"""Divide each row's components by a power of two where the grid is finer than the noise needs (SOUNDNESS 4)."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt

from dpsql.plan.nodes import Gather, Sum

NOISE_SCALE_BITS = 30
"""Noise of about 2^30 grid steps: finer is wasted under it, and slows the sampler."""


def coarsen_bundles(gather: Gather, shifts: dict[str, int]) -> Gather:
    """`shifts` maps the first cell of each bundle to its shift."""

    def change(part: Sum) -> Sum:
        return replace(part, bundles=tuple(replace(b, shift=shifts.get(b.cells[0], 0)) for b in part.bundles))

    return replace(gather, parts=tuple(change(part) if isinstance(part, Sum) else part for part in gather.parts))


def shift_for(scale_squared: int) -> int:
    """The shift that brings noise of this squared scale down to about 2^SCALE_BITS."""
    return max(0, isqrt(scale_squared).bit_length() - 1 - NOISE_SCALE_BITS)
