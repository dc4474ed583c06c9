"""Sums in which each unit is scaled down to a norm of its own contribution, and histograms of units by that norm.

A cell adds up a number for each row: 1, a value, or its distance from a centre. V is a unit's sums of one cell, one for
each group; its norm is that of V itself, and not of its rows one by one. A unit beyond the cell's norm C is scaled by
C / |V|. So neither the number of a unit's rows nor the size of its values needs a bound (SOUNDNESS 4).

Every cell is counted in steps of which C has `NORM_STEPS`, whatever C is: so a release's noise in steps, and its loss,
do not depend on C.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from dpsql.compiler.plan.expressions import UID, Arithmetic, Cast, Expr, Literal, Quantise
from dpsql.compiler.plan.relations import Rows, has_uid, row_fields
from dpsql.types import DOUBLE

NORM_STEPS = 105 << 18
"""Steps that a cell's norm has: about 2^24.7, so that rounding is far below any noise. It is 3 * 5 * 7 * 2^18, so that
of most norms that are chosen a row is a whole number of steps."""

MAX_VALUE_STEPS = 1 << 45
"""A row's steps on either side of zero. A row beyond has a unit that is scaled to nearly nothing."""

MAX_PARTIAL = 1 << 43
"""A unit's sum in one group is moved to within this on either side before it is squared or multiplied: so the squares
of 2^40 groups add up within 128 bits, whatever the rows hold, and no statement fails for them (rule 5)."""

WEIGHT_STEPS = 1 << 30
"""Steps of a weight: a unit that is not scaled weighs so much."""


class Norm(Enum):
    L1 = "l1"
    L2 = "l2"


@dataclass(frozen=True)
class ClippedCell:
    """One cell of a `ClippedSum`: rows are counted, or those where `arg` is not NULL (`counts`), or `arg` is added up.

    `bounds` are those of the argument, where it has some. `norm` is C, in the units of the cell.
    """

    cell: str
    arg: Expr | None = None
    counts: bool = True
    bounds: tuple[Fraction, Fraction] | None = None
    center: Fraction = Fraction(0)
    norm: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if self.norm <= 0 or (self.arg is None and not self.counts):
            raise ValueError("a norm is positive, and what is added up is an argument")

    @property
    def row_steps(self) -> int:
        """What a counted row is worth. Where the norm does not divide NORM_STEPS, C is a little more than was asked."""
        return max(1, int(NORM_STEPS / self.norm))

    @property
    def grid(self) -> Fraction:
        """What a step is worth."""
        return Fraction(1, self.row_steps) if self.counts else self.norm / NORM_STEPS

    @property
    def value(self) -> Quantise | None:
        """The steps of a row, where values are added up."""
        return (
            None
            if self.arg is None or self.counts
            else quantize_centered(self.arg, self.center, self.bounds, self.grid)
        )

    @property
    def non_negative(self) -> bool:
        value = self.value
        return value is None or value.lower >= 0


def quantize_centered(
    arg: Expr, center: Fraction, bounds: tuple[Fraction, Fraction] | None, grid: Fraction
) -> Quantise:
    """The distance of an argument from `center` in whole steps, within its bounds and 2^45 steps."""
    lower, upper = -MAX_VALUE_STEPS, MAX_VALUE_STEPS
    if bounds is not None:
        lower = max(lower, math.floor((bounds[0] - center) / grid))
        upper = min(upper, math.ceil((bounds[1] - center) / grid))
        lower, upper = min(lower, MAX_VALUE_STEPS), max(upper, -MAX_VALUE_STEPS)
    if center:
        arg = Arithmetic("-", Cast(arg, DOUBLE), Literal(float(center), DOUBLE), DOUBLE)
    return Quantise(arg, grid, lower, upper)


@dataclass(frozen=True)
class ClippedSum:
    """Per group the sums of some cells over rows, each unit scaled down so that no cell's norm is beyond its C.

    The cells share one weight per unit, the least that any of them needs, so that a ratio of two keeps its meaning.
    `spread` are the keys over which a unit's rows may spread. Where rows are units they have no ids: `copies` is how
    many copies of a row joins may make, and each copy is scaled to C / copies on its own.

    Stability: a unit's weight is a function of the bag of its own rows, in integers. In each cell the norm of what it
    adds is at most `NORM_STEPS`, the L1 norm over all groups or the L2 norm; parts are rounded toward zero after a
    unit's sum, which makes no norm larger. Norms count every row that the cell does, NULL groups included, and groups
    that are not released (CONTRIBUTIONS 5, rules 1 to 6).
    """

    input: Rows
    keys: tuple[str, ...]
    spread: tuple[str, ...]
    cells: tuple[ClippedCell, ...]
    norm: Norm
    copies: int | None = None

    def __post_init__(self) -> None:
        names = {f.name for f in row_fields(self.input)}
        if not self.cells or not names.issuperset(self.keys) or not set(self.spread) <= set(self.keys):
            raise ValueError("cells are summed by keys, which are columns")
        if has_uid(self.input) == (self.copies is not None):
            raise ValueError("rows have ids of units, or are units with a known number of copies")

    @property
    def cell_names(self) -> tuple[str, ...]:
        return tuple(cell.cell for cell in self.cells)


@dataclass(frozen=True)
class NormBinning:
    """Bins of norms: bin j holds norms from 2^(j / per_doubling) on, in the units of the cell."""

    first: int
    last: int
    per_doubling: int

    def __post_init__(self) -> None:
        if self.per_doubling < 1 or self.first > self.last:
            raise ValueError("there is at least one bin")


@dataclass(frozen=True)
class CountNorms:
    """Units per bin of their norm: each unit is in one bin, or where its norm is 0 in none.

    A row adds 1, or with `arg` its distance from `center`, in steps of the finest of the public `grids` on which none
    of the unit's rows is cut off. With `distinct`, distinct rows of these columns are counted instead of rows.

    Stability: a unit's bin is a function of the bag of its own rows: sums are of integers, which no order of rows
    changes, and the logarithm is of their sum (rule 1). A unit more or less moves one count by one. Where rows are
    units, all copies of a row may move: `copies` of them.
    """

    input: Rows
    spread: tuple[str, ...]
    norm: Norm
    binning: NormBinning
    bin: str
    cell: str
    arg: Expr | None = None
    center: Fraction = Fraction(0)
    bounds: tuple[Fraction, Fraction] | None = None
    grids: tuple[Fraction, ...] = (Fraction(1),)
    distinct: tuple[str, ...] | None = None
    copies: int | None = None

    def __post_init__(self) -> None:
        names = {f.name for f in row_fields(self.input)}
        if not names.issuperset((*self.spread, *(self.distinct or ()))) or not self.grids:
            raise ValueError("norms are those of columns, on some grid")
        if (UID in names) == (self.copies is not None):
            raise ValueError("rows have ids of units, or are units with a known number of copies")

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.bin,)

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.cell,)

    @property
    def values(self) -> tuple[Quantise, ...]:
        if self.arg is None:
            return ()
        return tuple(quantize_centered(self.arg, self.center, self.bounds, grid) for grid in self.grids)

    @property
    def non_negative(self) -> bool:
        return all(value.lower >= 0 for value in self.values)
