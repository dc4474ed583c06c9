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

AnswerBlocks = npt.NDArray[np.intp]
"""Places of groups: in each row those of all answers to one question, the other keys being equal."""


@dataclass(frozen=True)
class ResponseInverse:
    """The inverse of the randomizing of some keys of a release's groups."""

    parts: tuple[tuple[Randomized, AnswerBlocks], ...]

    def debias_sums(self, recorded: Floats) -> Floats:
        """Figures that add up over rows, of true answers; unbiased."""
        for response, blocks in self.parts:
            diagonal, others = _inverse_entries(response)
            recorded = _apply_inverse(recorded, blocks, diagonal, others)
        return recorded

    def propagate_variance(self, recorded: Floats) -> Floats:
        """The same with the squares of the inverse's entries: what it makes of variances of independent figures."""
        for response, blocks in self.parts:
            diagonal, others = _inverse_entries(response)
            recorded = _apply_inverse(recorded, blocks, diagonal * diagonal, others * others)
        return recorded

    def response_variance(self, counts: Floats) -> Floats:
        """The variance that the randomizing itself gives to each debiased count.

        A row adds the entry A of the inverse at its recorded answer, whose mean is 1 in the group of its true answer
        and 0 in others: together a variance of E(sum of A^2) less the count, and recorded counts estimate both. For one
        key that is Y p(1 - p) + (n - Y) q(1 - q), over (p - q)^2, with Y of n rows in the group.
        """
        seen = np.maximum(counts, 0.0)
        return np.maximum(self.propagate_variance(seen) - self.debias_sums(seen), 0.0)


def invert_response(groups: Sequence[Row], keys: Sequence[tuple[int, Randomized]]) -> ResponseInverse:
    return ResponseInverse(tuple((response, _group_blocks(groups, index, len(response.values))) for index, response in keys))


def _group_blocks(groups: Sequence[Row], index: int, answers: int) -> AnswerBlocks:
    """NULL was not randomized; nor is there an answer in the rows of a grouping set without the key."""
    blocks: dict[Row, list[int]] = {}
    for number, group in enumerate(groups):
        if group[index] is not None:
            blocks.setdefault((*group[:index], *group[index + 1 :]), []).append(number)
    if any(len(block) != answers for block in blocks.values()):
        raise InternalError("the groups of a randomized key are not all there")
    return np.array(list(blocks.values()), np.intp).reshape(-1, answers)


def _inverse_entries(response: Randomized) -> tuple[float, float]:
    return (1.0 - response.other_probability) / response.signal_weight, -response.other_probability / response.signal_weight


def _apply_inverse(values: Floats, blocks: AnswerBlocks, diagonal: float, others: float) -> Floats:
    result, parts = values.copy(), values[blocks]
    result[blocks] = (diagonal - others) * parts + others * parts.sum(axis=1, keepdims=True)
    return result
