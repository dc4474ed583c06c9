"""Undoing randomized response in released figures: linear, so its noise and its own chance are known.

An answer v was recorded as r with probability P(r | v): p where r = v, else q. The inverse of that matrix has
(1 - q)/(p - q) on its diagonal and -q/(p - q) elsewhere. Of several randomized keys it is the product of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsql.errors import InternalError
from dpsql.exact import Row
from dpsql.post.duals import Floats
from dpsql.schema.model import Randomized

Blocks = npt.NDArray[np.intp]
"""Places of groups: in each row those of all answers to one question, the other keys being equal."""


@dataclass(frozen=True)
class Undoing:
    """The inverse of the randomizing of some keys of a release's groups."""

    parts: tuple[tuple[Randomized, Blocks], ...]

    def sums(self, recorded: Floats) -> Floats:
        """Figures that add up over rows, of true answers; unbiased."""
        for how, blocks in self.parts:
            own, others = _inverse(how)
            recorded = _along(recorded, blocks, own, others)
        return recorded

    def squares(self, recorded: Floats) -> Floats:
        """The same with the squares of the inverse's entries: what it makes of variances of independent figures."""
        for how, blocks in self.parts:
            own, others = _inverse(how)
            recorded = _along(recorded, blocks, own * own, others * others)
        return recorded

    def chance(self, counts: Floats) -> Floats:
        """The variance that the randomizing itself gives to each debiased count.

        A row adds the entry A of the inverse at its recorded answer, whose mean is 1 in the group of its true answer
        and 0 in others: together a variance of E(sum of A^2) less the count, and recorded counts estimate both. For one
        key that is Y p(1 - p) + (n - Y) q(1 - q), over (p - q)^2, with Y of n rows in the group.
        """
        seen = np.maximum(counts, 0.0)
        return np.maximum(self.squares(seen) - self.sums(seen), 0.0)


def undoing(groups: Sequence[Row], keys: Sequence[tuple[int, Randomized]]) -> Undoing:
    return Undoing(tuple((how, _blocks(groups, place, len(how.values))) for place, how in keys))


def _blocks(groups: Sequence[Row], place: int, answers: int) -> Blocks:
    """NULL was not randomized; nor is there an answer in the rows of a grouping set without the key."""
    found: dict[Row, list[int]] = {}
    for number, group in enumerate(groups):
        if group[place] is not None:
            found.setdefault((*group[:place], *group[place + 1 :]), []).append(number)
    if any(len(block) != answers for block in found.values()):
        raise InternalError("the groups of a randomized key are not all there")
    return np.array(list(found.values()), np.intp).reshape(-1, answers)


def _inverse(how: Randomized) -> tuple[float, float]:
    return (1.0 - how.other) / how.told, -how.other / how.told


def _along(values: Floats, blocks: Blocks, own: float, others: float) -> Floats:
    result, parts = values.copy(), values[blocks]
    result[blocks] = (own - others) * parts + others * parts.sum(axis=1, keepdims=True)
    return result
