"""The mechanisms to apply to an engine's cells, and the release they give. Nothing here has seen an exact cell."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsql.privacy.exact import Cells, Row
from dpsql.privacy.exponential import Exponential, Pick
from dpsql.privacy.noise import Mechanism
from dpsql.privacy.partition_selection import Selection
from dpsql.privacy.score_selection import PosteriorDraws, Ranking, Scores
from dpsql.privacy.weighted_rows import WeightedRowsMechanism


@dataclass(frozen=True)
class NoiseBundle:
    """Columns, by position, whose joint sensitivity the mechanism was calibrated to."""

    columns: tuple[int, ...]
    mechanism: Mechanism


@dataclass(frozen=True)
class KeySelection:
    """Partition selection on the column at `column`.

    Exact rows come in blocks of consecutive rows that share their first `keys` keys, the unknown part, and so the
    count: one draw decides for all of a block.
    """

    column: int
    mechanism: Selection
    keys: int

    def __post_init__(self) -> None:
        if self.keys < 1:
            raise ValueError("at least one key is selected")


@dataclass(frozen=True)
class BinPicks:
    """Bins chosen in the engine's only column, in which a whole row weighs `whole`.

    The last key of an exact row is its bin. Of a median by its local sensitivity, rows are units, and no answer is the
    bin before the first. Rows come in blocks that share all other keys, with one row for every bin
    from `lower` to `upper`, in ascending order.
    """

    picks: tuple[Pick, ...]
    lower: int
    upper: int
    whole: int

    def __post_init__(self) -> None:
        if not self.picks:
            raise ValueError("at least one bin is chosen")
        if not -(1 << 63) <= self.lower <= self.upper < 1 << 63:
            raise ValueError("bins are 64-bit integers, and at least one")
        if self.whole < 1:
            raise ValueError("a row has a weight")
        local = any(not isinstance(pick.mechanism, Exponential) for pick in self.picks)
        if local and (self.whole != 1 or self.lower == -(1 << 63)):
            raise ValueError("units are counted one by one, and a bin before the first stands for no answer")

    @property
    def bins(self) -> int:
        return self.upper - self.lower + 1


@dataclass(frozen=True)
class ReleaseSpec:
    """What is done to each column that the engine returns: noise, a selection; else a choice of bins or by scores; or
    a study.

    `grids[i]` is what 1 means in column i of the release.
    """

    grids: tuple[Fraction, ...]
    bundles: tuple[NoiseBundle, ...]
    selection: KeySelection | None = None
    choice: BinPicks | None = None
    study: WeightedRowsMechanism | None = None
    scores: Scores | None = None

    def __post_init__(self) -> None:
        if self.scores is not None:
            if self.bundles or self.selection is not None or self.choice is not None or self.study is not None:
                raise ValueError("a choice by scores stands alone")
            if len(self.grids) != count_score_columns(self.scores):
                raise ValueError("a ranking has a grid for its places, a drawing one for each draw")
        elif self.study is not None:
            if self.bundles or self.selection is not None or self.choice is not None or self.grids != self.study.grids:
                raise ValueError("a study stands alone, and has the grids of what it gives")
        elif self.choice is not None:
            # Bins are chosen in every listed group: a draw for a key that a selection hides would be in vain.
            if self.bundles or self.selection is not None or len(self.grids) != len(self.choice.picks):
                raise ValueError("a choice stands alone, and has a grid for each pick")
        elif sorted(self._covered_columns()) != list(range(len(self.grids))):
            raise ValueError("every column belongs to exactly one bundle, or to the selection")
        if any(grid <= 0 for grid in self.grids):
            raise ValueError("a grid is positive")

    def _covered_columns(self) -> list[int]:
        selected = [] if self.selection is None else [self.selection.column]
        return [column for bundle in self.bundles for column in bundle.columns] + selected

    @property
    def columns(self) -> int:
        """How many columns the engine returns behind the keys."""
        if self.study is not None:
            return len(self.study.axes.sizes) + 1
        if self.scores is not None:
            return self.scores.columns
        return len(self.grids) if self.choice is None else 1


def count_score_columns(scores: Scores) -> int:
    """How many columns a release by scores has: the place of each candidate chosen, or one for each draw."""
    match scores:
        case Ranking():
            return 1
        case PosteriorDraws(draws=draws):
            return draws


@dataclass(frozen=True, eq=False)
class Release:
    """Noisy cells, in grid units, of the keys that appear.

    `cells` has one array for each of `spec.grids`. Under noise these are the engine's columns, in order; that of the
    selection, which is not released, holds zeros. Of a choice there is one array for each pick, which holds the bins
    chosen, and `keys` are without the bin. Of a ranking, `keys` are those of the candidates chosen, in blocks, and the
    only array holds their places, from 1; of a drawing there is one array of shares for each draw. Of a study they are
    what it gave, and the keys are empty.
    """

    keys: tuple[Row, ...]
    cells: tuple[Cells, ...]
    spec: ReleaseSpec

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        same = self.spec == other.spec and self.keys == other.keys and len(self.cells) == len(other.cells)
        return same and all(np.array_equal(a, b) for a, b in zip(self.cells, other.cells, strict=True))

    __hash__ = None  # type: ignore[assignment]
