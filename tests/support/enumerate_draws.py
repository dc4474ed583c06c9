"""Every way in which a mechanism's draws can fall, with its probability: the distribution of what it says.

A mechanism draws by `laplace(1, scale)` alone. A run with no draws given finds the first that it makes; each is tried
with every value up to `most`, and so on with those that come after it. Tails beyond `most` are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dpsql.privacy.sampling import Integers


class Prescribed:
    """Draws that are given; `scales` are of those that were asked for."""

    def __init__(self, values: tuple[int, ...]) -> None:
        self.values = values
        self.scales: list[Fraction] = []

    def laplace(self, n: int, scale: Fraction) -> Integers:
        assert n == 1
        self.scales.append(scale)
        place = len(self.scales) - 1
        return np.array([self.values[place] if place < len(self.values) else 0], np.int64)

    def gaussian(self, n: int, sigma: Fraction) -> Integers:
        raise AssertionError("no other noise is drawn")

    def choose(self, penalties: npt.NDArray[Any], scale: Fraction) -> Integers:
        raise AssertionError("nothing is chosen")


def chance_of(scale: Fraction, value: int) -> float:
    """Of the discrete Laplace distribution."""
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * math.exp(-abs(value) / scale)


def chance_from(scale: Fraction, least: int) -> float:
    """That a draw is `least` or more."""
    q = math.exp(-1 / scale)
    return math.exp(-least / scale) / (1 + q) if least >= 1 else 1 - math.exp(-(1 - least) / scale) / (1 + q)


Said = TypeVar("Said", bound=Hashable)


def distribution(says: Callable[[Prescribed], Said], most: int) -> dict[Said, float]:
    """What `says`, which draws from the given sampler, comes to, with probabilities."""
    found: dict[Said, float] = {}

    def runs(before: tuple[int, ...], chance: float) -> Iterator[tuple[Said, float]]:
        sampler = Prescribed(before)
        said = says(sampler)
        if len(sampler.scales) == len(before):
            yield said, chance
            return
        scale = sampler.scales[len(before)]
        for value in range(-most, most + 1):
            yield from runs((*before, value), chance * chance_of(scale, value))

    for said, chance in runs((), 1.0):
        found[said] = found.get(said, 0.0) + chance
    return found
