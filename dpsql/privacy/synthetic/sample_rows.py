"""From fractions of rows to whole rows, at random: what is left of a synthetic table's making after the noise.

Nothing here sees a private row, and no claim rests on it. Randomness comes from the injected sampler all the same, in
the form that it has: the low bits of wide Laplace noise are as good as uniform.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpsql.privacy.exact import Cells
from dpsql.privacy.sampling import Sampler
from dpsql.privacy.synthetic.measure import Floats

Indices = npt.NDArray[np.intp]

_WIDE_SCALE = Fraction(1 << 30)
_UNIFORM_BITS = 22
"""Of noise at scale 2^30 the low 22 bits are uniform within 0.4 %."""


def draw_uniforms(n: int, sampler: Sampler) -> Floats:
    """`n` numbers from 0 up to 1, to 22 bits."""
    result: Floats = (sampler.laplace(n, _WIDE_SCALE) & ((1 << _UNIFORM_BITS) - 1)) / (1 << _UNIFORM_BITS)
    return result


def shuffle_indices(n: int, sampler: Sampler) -> Indices:
    """The numbers below `n` in random order: noise that is drawn independently is in any order equally often."""
    return np.argsort(sampler.laplace(n, _WIDE_SCALE), kind="stable")


def round_counts(amounts: Floats, count: int, start: float) -> Cells:
    """Whole numbers in proportion to `amounts` that add up to `count`, each off by 1 at most.

    `start`, from 0 up to 1, shifts where rounding falls; over a uniform one, every number is right on average
    (systematic sampling, Madow 1949).
    """
    total = float(amounts.sum())
    if not amounts.size or count == 0:
        return np.zeros(amounts.size, np.int64)
    shares = amounts / total if total > 0 else np.full(amounts.size, 1.0 / amounts.size)
    borders = np.floor(np.cumsum(shares) * count + start).astype(np.int64)
    borders[-1] = count
    np.clip(borders, 0, count, out=borders)
    return np.diff(borders, prepend=0)


def sample_cell_rows(amounts: Floats, count: int, sampler: Sampler) -> tuple[Cells, ...]:
    """`count` rows, one array of codes per axis, with the distribution of a table of amounts with one axis each.

    Cells are walked in an order that is random within each prefix of codes: so marginals of the first axes are nearly
    exact, and no axis beats time with the steps of rounding.
    """
    indices = np.flatnonzero(amounts)
    if not len(indices):
        indices = np.arange(amounts.size)
    codes = np.unravel_index(indices, amounts.shape)
    keys: list[Cells] = []
    prefix = np.zeros(len(indices), np.int64)
    for axis, size in enumerate(amounts.shape):
        _, prefix = np.unique(prefix * size + codes[axis], return_inverse=True)
        keys.append(sampler.laplace(int(prefix.max()) + 1, _WIDE_SCALE)[prefix])
    order = np.lexsort(keys[::-1])
    (start,) = draw_uniforms(1, sampler)
    counts = round_counts(amounts.reshape(-1)[indices][order], count, float(start))
    return tuple(np.repeat(code[order], counts).astype(np.int64) for code in codes)


def draw_bin_offsets(codes: Cells, widths: tuple[int, ...], sampler: Sampler) -> Cells:
    """A place in the bin of each code, from 0 up to its width, uniformly."""
    bin_widths = np.array(widths, dtype=np.float64)[codes]
    drawn = np.floor(draw_uniforms(len(codes), sampler) * bin_widths).astype(np.int64)
    return np.minimum(drawn, np.array(widths, dtype=np.int64)[codes] - 1)
