"""The bundle of one argument, and how its cells give the argument's count, sum, mean and variance.

    SUM(x) alone              →  one cell, v
    COUNT(x) alone            →  one cell, 1 where x is not NULL
    COUNT(*), SUM(x), AVG(x)  →  three cells: v - lower, upper - v, and upper - lower where x is NULL
    VAR(x), and all of those  →  three cells of z = 2v - (lower + upper): W^2 - z^2, z^2, W z

Every argument gets one bundle, whatever is asked of it, so that it is paid once.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsql.plan.bundles import (
    MAX_WIDTH,
    Bundle,
    CountBundle,
    CovarianceBundle,
    MomentBundle,
    SumBundle,
    VarianceBundle,
    step_width,
)
from dpsql.plan.expr import And, Case, Expr, IsNull, Literal, Not, Quantise
from dpsql.plan.recipes import Mean, Moments, Terms, Variance
from dpsql.types import BIGINT

ROWS_CELL = "rows"


@dataclass(frozen=True)
class ArgumentSums:
    """What the cells of one argument add up to; `first` and `second` are about `center`."""

    bundle: Bundle
    count: Terms  # of its values
    first: Terms | None = None
    second: Terms | None = None
    center: Fraction = Fraction(0)
    lower: Fraction = Fraction(0)
    upper: Fraction = Fraction(0)
    rows: Terms | None = None  # of all rows, where the cells tell

    @property
    def total(self) -> Terms:
        assert self.first is not None
        return combine_terms((self.first, Fraction(1)), (self.count, self.center))

    @property
    def mean(self) -> Mean:
        assert self.first is not None
        return Mean(self.count, self.first, self.center, self.lower, self.upper)

    def make_variance(self, sample: bool, root: bool) -> Variance:
        assert self.first is not None and self.second is not None
        half = (self.upper - self.lower) / 2
        return Variance(self.count, self.first, self.second, half**2, sample, root)


def combine_terms(*parts: tuple[Terms, Fraction]) -> Terms:
    """The sum of terms, each times a number; a cell stands there once."""
    result: dict[str, Fraction] = {}
    for terms, factor in parts:
        for cell, coefficient in terms:
            result[cell] = result.get(cell, Fraction(0)) + coefficient * factor
    return tuple((cell, coefficient) for cell, coefficient in result.items() if coefficient)


def cell_term(cell: str) -> Terms:
    return ((cell, Fraction(1)),)


def make_count_sums(arg: Expr, nullable: bool, cell: str) -> ArgumentSums:
    """COUNT of something that is never NULL counts rows."""
    if not nullable:
        return ArgumentSums(CountBundle(ROWS_CELL, None), cell_term(ROWS_CELL), rows=cell_term(ROWS_CELL))
    return ArgumentSums(CountBundle(cell, arg), cell_term(cell))


def make_total_sums(value: Quantise, cell: str) -> ArgumentSums:
    return ArgumentSums(SumBundle(cell, value), (), cell_term(cell), lower=value.lower * value.grid, upper=value.upper * value.grid)


def make_constant_sums(value: Quantise, count: ArgumentSums) -> ArgumentSums:
    """Every value is the same: its sum is a multiple of the count, and it has no variance."""
    number = value.lower * value.grid
    return ArgumentSums(count.bundle, count.count, (), (), number, number, number, count.rows)


def make_mean_sums(value: Quantise, nullable: bool, cell: str, with_rows: bool, null_as: int | None = None) -> ArgumentSums:
    """With `with_rows`, rows without a value are counted too: in a cell of their own, or as `null_as` steps."""
    missing = f"{cell}_missing" if with_rows and nullable and null_as is None else None
    bundle = MomentBundle(f"{cell}_above", f"{cell}_below", missing, value, null_as=null_as)
    lower, upper = value.lower * value.grid, value.upper * value.grid
    count = combine_terms((cell_term(bundle.above) + cell_term(bundle.below), 1 / (upper - lower)))
    rows = combine_terms((count, Fraction(1)), (cell_term(missing) if missing else (), 1 / (upper - lower)))
    return ArgumentSums(bundle, count, cell_term(bundle.above), None, lower, lower, upper,
                rows if with_rows or not nullable else None)  # fmt: skip


def make_variance_sums(value: Quantise, nullable: bool, cell: str) -> ArgumentSums:
    bundle = VarianceBundle(f"{cell}_rest", f"{cell}_square", f"{cell}_linear", value)
    lower, upper = value.lower * value.grid, value.upper * value.grid
    half = (upper - lower) / 2
    count = cell_term(bundle.rest) + cell_term(bundle.square)
    return ArgumentSums(
        bundle,
        count,
        combine_terms((cell_term(bundle.linear), half)),
        combine_terms((cell_term(bundle.square), half**2)),
        (lower + upper) / 2,
        lower,
        upper,
        None if nullable else count,
    )


@dataclass(frozen=True)
class PairSums:
    """What the cells of two arguments add up to, over the rows where both are there."""

    bundle: Bundle
    count: Terms
    moments: tuple[Moments, Moments] | None  # in the order of the bundle; None where only the count is asked
    product: Terms
    rows: Terms | None


def make_pair_count_sums(first: Expr, second: Expr, nullable: bool, cell: str) -> PairSums:
    both = And((Not(IsNull(first)), Not(IsNull(second))))
    count = make_count_sums(Case(((both, Literal(1, BIGINT)),), Literal(None, BIGINT), BIGINT), nullable, cell)
    return PairSums(count.bundle, count.count, None, (), count.rows)


def make_pair_product_sums(first: Quantise, second: Quantise, nullable: bool, cell: str) -> PairSums:
    scales = (MAX_WIDTH // max(1, step_width(first)), MAX_WIDTH // max(1, step_width(second)))
    names = (f"{cell}_rest", f"{cell}_aa", f"{cell}_a", f"{cell}_b", f"{cell}_bb", f"{cell}_ab")
    bundle = CovarianceBundle(names, first, second, scales)
    rest, aa, a, b, bb, ab = names
    # A cell of a constant holds nothing but noise, and is not read.
    unit_a, unit_b = (
        bundle.max_width * value.grid / (2 * scale) if step_width(value) else Fraction(0)
        for value, scale in zip(bundle.values, scales, strict=True)
    )
    count = cell_term(rest) + cell_term(aa)
    return PairSums(
        bundle,
        count,
        (_make_moments(first, a, aa, unit_a), _make_moments(second, b, bb, unit_b)),
        combine_terms((cell_term(ab), unit_a * unit_b)),
        None if nullable else count,
    )


def _make_moments(value: Quantise, linear: str, square: str, unit: Fraction) -> Moments:
    center = (value.lower + value.upper) * value.grid / 2
    return Moments(
        combine_terms((cell_term(linear), unit)), combine_terms((cell_term(square), unit**2)), center, step_width(value) * value.grid / 2
    )
