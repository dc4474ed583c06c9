"""What is to be done to the cells of an engine, and what comes of it. Nothing here has seen an exact cell."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsql.exact import Cells, Row
from dpsql.privacy.mechanisms import Mechanism
from dpsql.privacy.selection import Selection


@dataclass(frozen=True)
class Bundle:
    """Columns, by position, whose joint sensitivity the mechanism was calibrated to."""

    columns: tuple[int, ...]
    mechanism: Mechanism


@dataclass(frozen=True)
class KeySelection:
    """Partition selection on the column at `column`.

    Exact rows come in blocks of `repeat` consecutive rows, which share the unknown part of their key (and so the
    count): one draw decides for all of a block.
    """

    column: int
    mechanism: Selection
    repeat: int = 1

    def __post_init__(self) -> None:
        if self.repeat < 1:
            raise ValueError("a block has at least one row")


@dataclass(frozen=True)
class Spec:
    """What is done to each column that the engine returns; `grids[i]` is what 1 means in column i."""

    grids: tuple[Fraction, ...]
    bundles: tuple[Bundle, ...]
    selection: KeySelection | None = None

    def __post_init__(self) -> None:
        covered = [column for bundle in self.bundles for column in bundle.columns]
        if self.selection is not None:
            covered.append(self.selection.column)
        if sorted(covered) != list(range(len(self.grids))):
            raise ValueError("every column belongs to exactly one bundle, or to the selection")
        if any(grid <= 0 for grid in self.grids):
            raise ValueError("a grid is positive")


@dataclass(frozen=True, eq=False)
class Release:
    """Noisy cells, in grid units, of the keys that appear.

    `cells` has one array for each engine column, in order, so positions are those of `spec.grids`; the column of
    the selection, which is not released, holds zeros.
    """

    keys: tuple[Row, ...]
    cells: tuple[Cells, ...]
    spec: Spec

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        same = self.spec == other.spec and self.keys == other.keys and len(self.cells) == len(other.cells)
        return same and all(np.array_equal(a, b) for a, b in zip(self.cells, other.cells, strict=True))

    __hash__ = None  # type: ignore[assignment]
