"""Choices that a generator makes: from a seed, or again from a record of them that may have been made simpler.

Law: not noise. Nothing here reaches an answer; the one place in this room that knows Python's `random`.

A record is a list of whole numbers, one for each choice, and 0 always stands for the simplest: the first of several,
the least number, no. So a record with numbers deleted or lowered is mostly a simpler statement, which is how failing
ones are shrunk. A record that is too short goes on with zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")

_FINE = 1 << 20


class Draws:
    """`seed` may be any number or text; with `record`, choices are those of the record."""

    def __init__(self, seed: int | str = 0, record: Sequence[int] | None = None) -> None:
        self._random = Random(seed)
        self._replayed = None if record is None else list(record)
        self.record: list[int] = []

    def below(self, n: int) -> int:
        if self._replayed is None:
            made = self._random.randrange(n)
        else:
            place = len(self.record)
            made = min(self._replayed[place], n - 1) if place < len(self._replayed) else 0
        self.record.append(made)
        return made

    def between(self, least: int, most: int) -> int:
        return least + self.below(most - least + 1)

    def choice(self, options: Sequence[T]) -> T:
        """One of several; the simplest should come first."""
        return options[self.below(len(options))]

    def chance(self, share: float) -> bool:
        """Yes in this share of all cases."""
        return self.below(_FINE) >= _FINE - share * _FINE

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in range(min(count, len(left)))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        return self.sample(items, len(items))

    def share(self) -> float:
        """A number from 0 up to 1."""
        return self.below(_FINE) / _FINE

    def bits(self, count: int) -> bytes:
        """Bytes for a sampler whose noise shall be the same again. They are not recorded."""
        return self._random.randbytes(count)
