"""Statistics of a block of units: what `BLOCKWISE` works out on each block, before blocks are put together.

Law: what a block gives is a function of the *bag* of its rows. Aggregates are of whole grid steps or of values that are
compared only, in integers that no order of rows changes; one expression over the finished aggregates makes a number of
them. So a unit moves the number of its own block and of no other (SOUNDNESS 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dpsql.plan.expr import Expr, Quantise

BlockFunction = Literal[
    "count_rows",
    "count",
    "count_distinct",
    "entropy",
    "sum",
    "mean",
    "min",
    "max",
    "median",
    "quantile_cont",
    "quantile_disc",
    "mad",
    "var_pop",
    "var_samp",
    "stddev_pop",
    "stddev_samp",
    "skewness",
    "kurtosis",
    "kurtosis_pop",
]

VALUE_FUNCTIONS: frozenset[str] = frozenset({"count", "count_distinct", "entropy"})
"""Of values of any type, which are only told apart; all others are of numbers, on their grid."""

SQUARED_FUNCTIONS: frozenset[str] = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp"})
CUBED_FUNCTIONS: frozenset[str] = frozenset({"skewness", "kurtosis", "kurtosis_pop"})
CENTRED_FUNCTIONS = SQUARED_FUNCTIONS | CUBED_FUNCTIONS
"""Of powers of distances from the block's mean, rounded to a whole step."""

MAX_SQUARED_WIDTH = 1 << 30
MAX_CUBED_WIDTH = 1 << 20
"""Steps between the bounds: the squares, or fourth powers, of 2^40 rows then add up within 128 bits."""

MAX_BLOCKS = 10_000


@dataclass(frozen=True)
class BlockAggregate:
    """An aggregate of a block's rows, a double; `name` is the column that the statistic's result reads it by."""

    name: str
    function: BlockFunction
    arg: Expr | None
    fraction: Fraction | None = None

    def __post_init__(self) -> None:
        if (self.arg is None) != (self.function == "count_rows"):
            raise ValueError("all but rows are counted, or measured, by an argument")
        if (self.fraction is None) == self.function.startswith("quantile"):
            raise ValueError("quantiles have a fraction, and nothing else has")

    @property
    def steps(self) -> Quantise | None:
        """The argument on its grid, where it is a number."""
        return self.arg if isinstance(self.arg, Quantise) else None


@dataclass(frozen=True)
class Statistic:
    """`result` is an expression over the aggregates' columns and literals."""

    aggregates: tuple[BlockAggregate, ...]
    result: Expr

    def __post_init__(self) -> None:
        if not self.aggregates or len({aggregate.name for aggregate in self.aggregates}) < len(self.aggregates):
            raise ValueError("a statistic is of aggregates with names of their own")


@dataclass(frozen=True)
class Blocks:
    """So many disjoint blocks of units, each a whole number of `steps` between `lower` and `upper`, the middle if not.

    Stability: whatever the rows of a block are, or if there are none, its number is an integer of [0, steps]; a result
    that is NULL or not finite is the middle, steps / 2, as is that of a block without rows. So each group has `count`
    numbers, always.
    """

    count: int
    statistic: Statistic
    lower: Fraction
    upper: Fraction
    steps: int

    def __post_init__(self) -> None:
        if self.count < 2 or not self.lower < self.upper or self.steps < 2 or self.steps % 2:
            raise ValueError("there are at least two blocks, bounds that are apart, and a step in the middle")

    @property
    def grid(self) -> Fraction:
        return (self.upper - self.lower) / self.steps

    @property
    def middle(self) -> int:
        return self.steps // 2
