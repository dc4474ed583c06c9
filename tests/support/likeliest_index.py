"""What a sampler without noise chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.privacy.sampling import Integers


def likeliest_index(penalties: npt.NDArray[Any]) -> Integers:
    """The index of the least penalty in each row; of several, the middle one. What `choose` draws without noise.

    That is the limit of `choose` as the scale goes to 0, but that it would draw one of several equals at random.
    """
    best = penalties == penalties.min(axis=1, keepdims=True)
    first = np.argmax(best, axis=1)
    last = best.shape[1] - 1 - np.argmax(best[:, ::-1], axis=1)
    middle: Integers = (first + last) // 2
    return middle
