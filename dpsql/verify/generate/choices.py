"""Choices that a generator makes: from a seed, or again from a record of them that may have been made simpler.

Law: not noise. Nothing here reaches an answer; the one place in this package that knows Python's `random`.

A record is a list of whole numbers, one for each choice, and 0 always stands for the simplest: the first of several,
the least number, no. So a record with numbers deleted or lowered is mostly a simpler statement, which is how failing
ones are shrunk. A record that is too short goes on with zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")

_RESOLUTION = 1 << 20


class ChoiceStream:
    """`seed` may be any number or text; with `record`, choices are those of the record."""

    def __init__(self, seed: int | str = 0, record: Sequence[int] | None = None) -> None:
        self._random = Random(seed)
        self._replayed = None if record is None else list(record)
        self.record: list[int] = []

    def draw_below(self, n: int) -> int:
        if self._replayed is None:
            value = self._random.randrange(n)
        else:
            index = len(self.record)
            value = min(self._replayed[index], n - 1) if index < len(self._replayed) else 0
        self.record.append(value)
        return value

    def draw_between(self, low: int, high: int) -> int:
        return low + self.draw_below(high - low + 1)

    def choice(self, options: Sequence[T]) -> T:
        """One of several; the simplest should come first."""
        return options[self.draw_below(len(options))]

    def draw_bool(self, share: float) -> bool:
        """Yes in this share of all cases."""
        return self.draw_below(_RESOLUTION) >= _RESOLUTION - share * _RESOLUTION

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        remaining = list(options)
        return [remaining.pop(self.draw_below(len(remaining))) for _ in range(min(count, len(remaining)))]

    def shuffle_items(self, items: Sequence[T]) -> list[T]:
        return self.sample(items, len(items))

    def draw_fraction(self) -> float:
        """A number from 0 up to 1."""
        return self.draw_below(_RESOLUTION) / _RESOLUTION

    def random_bytes(self, count: int) -> bytes:
        """Bytes for a sampler whose noise shall be the same again. They are not recorded."""
        return self._random.randbytes(count)
