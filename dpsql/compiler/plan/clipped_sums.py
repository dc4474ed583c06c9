"""Sums in which each unit is scaled down to a norm of its own contribution, and histograms of units by that norm.

A cell adds up a number for each row: 1, a value, or its distance from a centre. V is a unit's sums of one cell, one for
each group; its norm is that of V itself, and not of its rows one by one. A unit beyond the cell's norm C is scaled by
C / |V|. So neither the number of a unit's rows nor the size of its values needs a bound (SOUNDNESS 4).

Every cell is counted in steps of which C has `NORM_STEPS`, whatever C is: so a release's noise in steps, and its loss,
do not depend on C.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from enum import Enum
from fractions import Fraction

from dpsql.compiler.plan.expressions import Arithmetic, Cast, Expr, Literal, Quantise
from dpsql.compiler.plan.relations import Rows, has_uid, row_fields
from dpsql.types import BIGINT, DOUBLE, INTEGER_BITS, Kind, Type

NORM_STEPS = 105 << 18
"""Steps that a cell's norm has: about 2^24.7, so that rounding is far below any noise. It is 3 * 5 * 7 * 2^18, so that
of most norms that are chosen a row is a whole number of steps."""

MAX_VALUE_STEPS = 1 << 45
"""A row's steps on either side of zero. A row beyond has a unit that is scaled to nearly nothing."""

MAX_PARTIAL = 1 << 43
"""A unit's sum in one group is moved to within this on either side before it is squared or multiplied: so the squares
of two cells in 2^39 groups add up within 128 bits, whatever the rows hold, and no statement fails for them (rule 5)."""

MAX_STEPS = 1 << 62
"""Steps of a row's value, of a sum's size or of its square, in a histogram: of the grid of its magnitude."""

MAGNITUDE_POWER = 50
"""Between two magnitudes: so the least of one has 2^12 steps, fine enough for any bin."""

MAX_BIGINT = (1 << 63) - 1

MAX_SQUARED_COUNT = (1 << 31) - 1
"""Rows of a unit in one group that a histogram tells apart: their squares have 64 bits."""

WEIGHT_STEPS = 1 << 30
"""Steps of a weight: a unit that is not scaled weighs so much."""


class Norm(Enum):
    L1 = "l1"
    L2 = "l2"


@dataclass(frozen=True)
class ClippedCell:
    """One cell of a `ClippedSum`: rows are counted, or those where `arg` is not NULL (`counts`), or `arg` is added up.

    `bounds` are those of the argument, where it has some. `norm` is C, in the units of the cell. Where `count` names
    the cell that counts what this one adds up, the centre may be moved near the mean. A cell that counts `beside`
    another has one norm with it: that of the sums of both, which is at most that of all rows.
    """

    cell: str
    arg: Expr | None = None
    counts: bool = True
    bounds: tuple[Fraction, Fraction] | None = None
    center: Fraction = Fraction(0)
    norm: Fraction = Fraction(1)
    count: str | None = None
    beside: str | None = None
    squared: bool = False  # whether squares of distances from the centre are added up

    def __post_init__(self) -> None:
        if self.beside is not None and not self.counts:
            raise ValueError("a norm of two cells is one of counts")
        if self.norm <= 0 or (self.arg is None and not self.counts) or (self.counts and self.squared):
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
            else quantize_centered(self.arg, self.center, self.bounds, self.grid, self.squared)
        )

    @property
    def non_negative(self) -> bool:
        value = self.value
        return value is None or value.lower >= 0


EXACT_DOUBLES = 1 << 52
"""Whole numbers up to this many steps from 0 are doubles, and so are their halves."""

MAX_DECIMAL_DIGITS = 37
"""Of decimals that are subtracted as such: their difference has one digit more, and an engine has at most 38."""


def subtract_center(arg: Expr, center: Fraction) -> Expr:
    """The distance of a number from `center`; NULL where it is no number of the type.

    As a double, which whole numbers and decimals far from 0 are not: these are subtracted as what they are.
    """
    if not center:
        return arg
    if is_beyond_doubles(arg.type, center):
        if arg.type.is_integer:
            return Arithmetic("-", arg, Literal(int(center), BIGINT), BIGINT)
        return Arithmetic("-", arg, Literal(_to_decimal(center, arg.type.scale or 0), arg.type), arg.type)
    return Arithmetic("-", Cast(arg, DOUBLE), Literal(float(center), DOUBLE), DOUBLE)


def is_beyond_doubles(type_: Type, center: Fraction) -> bool:
    """Whether numbers of the type near `center`, which is one of them, are not told apart as doubles."""
    if type_.is_integer:
        return center.denominator == 1 and EXACT_DOUBLES < abs(center) <= MAX_BIGINT
    if type_.kind is not Kind.DECIMAL or not 0 < (type_.precision or 0) <= MAX_DECIMAL_DIGITS:
        return False
    steps = abs(center) * Fraction(10) ** (type_.scale or 0)
    return steps.denominator == 1 and EXACT_DOUBLES < steps < Fraction(10) ** (type_.precision or 0)


def _to_decimal(number: Fraction, scale: int) -> Decimal:
    return Decimal(int(number * 10**scale)).scaleb(-scale, Context(prec=MAX_DECIMAL_DIGITS + 1))


def quantize_centered(
    arg: Expr, center: Fraction, bounds: tuple[Fraction, Fraction] | None, grid: Fraction, squared: bool = False
) -> Quantise:
    """The distance of an argument from `center`, or its square, in whole steps, within its bounds and 2^45 steps."""
    if squared:
        distance = Cast(subtract_center(arg, center), DOUBLE)
        return Quantise(Arithmetic("*", distance, distance, DOUBLE), grid, 0, MAX_VALUE_STEPS)
    lower, upper = -MAX_VALUE_STEPS, MAX_VALUE_STEPS
    if bounds is not None:
        lower = max(lower, math.floor((bounds[0] - center) / grid))
        upper = min(upper, math.ceil((bounds[1] - center) / grid))
        lower, upper = min(lower, MAX_VALUE_STEPS), max(upper, -MAX_VALUE_STEPS)
    return Quantise(subtract_center(arg, center), grid, lower, upper)


def _check_ids_or_copies(rows: Rows, copies: int | None) -> None:
    if has_uid(rows) == (copies is not None):
        raise ValueError("rows have ids of units, or are units with a known number of copies")


@dataclass(frozen=True)
class ClippedSum:
    """Per group the sums of some cells over rows, each unit scaled down so that no cell's norm is beyond its C.

    The cells share one weight per unit, the least that any of them needs, so that a ratio of two keeps its meaning.
    Cells that count beside each other are a bundle: their sums have one norm together. `spread` are the keys over which
    a unit's rows may spread. Where rows are units they have no ids: `copies` is how many copies of a row joins may
    make, and each copy is scaled to C / copies on its own.

    Stability: a unit's weight is a function of the bag of its own rows, in integers. In each bundle the norm of what it
    adds is at most `NORM_STEPS`, the L1 norm over its cells and all groups or the L2 norm; parts are rounded toward
    zero after a unit's sum, which makes no norm larger. Norms count every row that the cell does, NULL groups included,
    and groups that are not released (docs/soundness.md 4).
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
        if not {cell.count for cell in self.cells if cell.count is not None} <= set(self.cell_names):
            raise ValueError("what a centred cell adds up is counted in a cell of the same weight")
        firsts = {cell.cell: cell for cell in self.cells if cell.counts and cell.beside is None}
        for cell in self.cells:
            if cell.beside is not None and (cell.beside not in firsts or firsts[cell.beside].norm != cell.norm):
                raise ValueError("cells with one norm together count rows in the same steps")
        _check_ids_or_copies(self.input, self.copies)

    @property
    def cell_names(self) -> tuple[str, ...]:
        return tuple(cell.cell for cell in self.cells)

    @property
    def bundles(self) -> tuple[tuple[ClippedCell, ...], ...]:
        """The cells that have one norm together; the first of them is the slot of that norm."""
        firsts = (cell for cell in self.cells if cell.beside is None)
        return tuple((first, *(cell for cell in self.cells if cell.beside == first.cell)) for first in firsts)


MEAN_GRID = Fraction(1, 1 << 18)
"""A public grid for the means of units. What lies beyond 2^60, or nearer to 0 than 2^-18, is not told apart: a centre
may be anywhere."""

MEAN_POWERS = (-18, 60)
"""Bins of means hold sizes from 2^-18 to 2^60; smaller ones are in the bin of 0."""


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
class Magnitude:
    """Sizes from `lower` on and below `upper`, in whole steps of a grid that is a power of two.

    The last one is open: what is 2^62 steps and more is moved to that.
    """

    lower: Fraction | None
    upper: Fraction | None
    grid: Fraction


def split_into_magnitudes(first: int, count: int) -> tuple[Magnitude, ...]:
    """The first one reaches to 2^first, each further one 2^50 times as far."""
    tops = [Fraction(2) ** (first + MAGNITUDE_POWER * index) for index in range(count)]
    return tuple(
        Magnitude(tops[index - 1] if index else None, top if index < count - 1 else None, top / MAX_STEPS)
        for index, top in enumerate(tops)
    )


ROW_MAGNITUDES = split_into_magnitudes(-18, 4)
"""Of values, whatever their type and bounds. From 2^-18 to 2^32 lies nearly all that people count and measure: rows of
one unit that lie in several magnitudes take one group each."""


USUAL_SIZE = Fraction(1)
"""A size whose magnitude holds most of what there is: it is looked for first, and 0 and NULL are in it, too."""


def find_magnitude(magnitudes: tuple[Magnitude, ...], size: Fraction) -> int:
    return next(
        index for index, magnitude in enumerate(magnitudes) if magnitude.upper is None or magnitude.upper > size
    )


def magnitudes_of_sizes(rows: tuple[Magnitude, ...], squared: bool) -> tuple[Magnitude, ...]:
    """Of sums of rows, or of their squares: as far as sums of 2^40 rows reach."""
    least, reach = rows[0].grid, rows[-1].grid * MAX_STEPS * 2**40
    if squared:
        least, reach = least**2, reach**2
    every = split_into_magnitudes(-70, 8) if squared else split_into_magnitudes(-10, 4)
    reached = every[find_magnitude(every, least) : find_magnitude(every, reach) + 1]
    reached = (replace(reached[0], lower=None), *reached[1:])
    return (*reached[:-1], replace(reached[-1], upper=None))


@dataclass(frozen=True)
class CountNorms:
    """Units per bin of their norm: each unit is in one bin, or where its norm is 0 in none.

    A row adds 1, or with `arg` its distance from `center`, in steps of the grid of its magnitude. With `distinct`,
    distinct rows of these columns are counted instead of rows.

    Rows of different magnitudes are summed apart. These are so far apart that the two largest sums decide, and no norm
    has to be exact for its bin to be sound.

    Stability: a unit's bin is a function of the bag of its own rows: all sums are of integers, which no order of rows
    changes, and what is worked out from a sum, in doubles, is a fixed expression of it (rule 1). Neither sums of rows,
    2^62 steps each, nor sums of sizes or of squares pass 128 bits with fewer than 2^64 rows (rule 5). A unit more or
    less moves one count by one. Where rows are units, all copies of a row may move: `copies` of them.
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
    distinct: tuple[str, ...] | None = None
    copies: int | None = None
    squared: bool = False  # whether a row adds the square of that distance

    def __post_init__(self) -> None:
        names = {f.name for f in row_fields(self.input)}
        if not names.issuperset((*self.spread, *(self.distinct or ()))):
            raise ValueError("norms are those of columns")
        _check_ids_or_copies(self.input, self.copies)

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.bin,)

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.cell,)

    @property
    def is_squared(self) -> bool:
        return self.norm is Norm.L2 and bool(self.spread) and self.copies is None

    @property
    def magnitudes(self) -> tuple[Magnitude, ...]:
        """Those that the argument may have: of a small integer there is one."""
        assert self.arg is not None
        reach, type_ = None, self.arg.type
        if self.bounds is not None:
            reach = max(abs(bound - self.center) for bound in self.bounds)
        elif type_.is_integer:
            reach = Fraction(2) ** (INTEGER_BITS[type_.kind] - 1) + abs(self.center)
        if reach is not None and self.squared:
            reach = reach**2
        reached = tuple(m for m in ROW_MAGNITUDES if m.lower is None or reach is None or m.lower <= reach)
        if type_.is_integer and not self.center:
            reached = reached[1:]  # nothing lies between 0 and 1
        return (replace(reached[0], lower=None), *reached[1:])


@dataclass(frozen=True)
class CountMeans:
    """Units per bin of the mean of their values: where a sum is best centred. Each unit with a value is in one bin.

    Bin 0 holds means nearer to 0 than 2^first of `MEAN_POWERS`; bin j > 0 those from 2^(first + (j - 1) / per_doubling)
    on, to the next edge; bin -j their negatives.

    Stability: a unit's bin is a function of the bag of its own rows: of the sum of their whole steps and of how many
    there are (rule 1). A row is moved to within 2^78 steps, so that sums of 2^48 rows have 128 bits (rule 5). A unit
    more or less moves one count by one. Where rows are units, all copies of a row may move: `copies` of them.
    """

    input: Rows
    arg: Expr
    per_doubling: int
    bin: str
    cell: str
    copies: int | None = None

    def __post_init__(self) -> None:
        if self.per_doubling < 1:
            raise ValueError("there is at least one bin for each doubling")
        _check_ids_or_copies(self.input, self.copies)

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.bin,)

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.cell,)

    @property
    def last(self) -> int:
        """The number of the last bin; that of the first is its negative."""
        first, last = MEAN_POWERS
        return (last - first) * self.per_doubling
