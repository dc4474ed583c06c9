"""A sampler that notes every draw that is asked for, and gives noise that can be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.privacy.sampling import Integers

Call = tuple[str, int, Fraction]
"""The kind of draw, for how many cells or blocks, and its scale."""


class Recording:
    """Gives the noise of `given`, call by call, and after that odd numbers, no two alike; it chooses the last place."""

    def __init__(self, *given: Sequence[int]) -> None:
        self.calls: list[Call] = []
        self.drawn: list[Integers] = []
        self._given = iter(given)
        self._next = 1

    def laplace(self, n: int, scale: Fraction) -> Integers:
        return self._noise("laplace", n, scale)

    def gaussian(self, n: int, sigma: Fraction) -> Integers:
        return self._noise("gaussian", n, sigma)

    def choose(self, penalties: npt.NDArray[Any], scale: Fraction) -> Integers:
        return self._last("choose", penalties, scale)

    def flip(self, penalties: npt.NDArray[Any], scale: Fraction) -> Integers:
        return self._last("flip", penalties, scale)

    def _noise(self, kind: str, n: int, scale: Fraction) -> Integers:
        self.calls.append((kind, n, scale))
        given = next(self._given, None)
        if given is None:
            given = [self._next + 2 * place for place in range(n)]
            self._next += 2 * n
        assert len(given) == n
        self.drawn.append(np.array(given, np.int64))
        return self.drawn[-1]

    def _last(self, kind: str, penalties: npt.NDArray[Any], scale: Fraction) -> Integers:
        self.calls.append((kind, len(penalties), scale))
        return np.full(len(penalties), penalties.shape[1] - 1, np.int64)
