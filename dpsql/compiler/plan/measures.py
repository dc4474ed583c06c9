"""Measures of a group: one frozen value per aggregate. The integer cells that answer them are in `bundles.py`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import Literal

from dpsql.compiler.plan.expressions import Expr, Quantise
from dpsql.errors import Span

# Statistics of a block of units: what `BLOCKWISE` works out on each block, before blocks are put together.
#
# Law: what a block gives is a function of the *bag* of its rows. Aggregates are of whole grid steps or of values that
# are compared only, in integers that no order of rows changes; one expression over the finished aggregates makes a
# number of them. So a unit moves the number of its own block and of no other (SOUNDNESS 2).

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


@dataclass(frozen=True)
class CountRows:
    """COUNT(*)."""

    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True)
class CountValues:
    """COUNT(x)."""

    arg: Expr
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True)
class CountDistinctUnits:
    """COUNT(DISTINCT unit): units that have a row in the group, and with `where` one for which it holds."""

    where: Expr | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True)
class SumValues:
    arg: Expr
    span: Span | None = field(default=None, compare=False)
    text: str = field(default="…", compare=False)  # the argument as it was written, for hints


@dataclass(frozen=True)
class MeanValues:
    arg: Expr
    span: Span | None = field(default=None, compare=False)
    text: str = field(default="…", compare=False)


@dataclass(frozen=True)
class DistinctValues:
    """COUNT, SUM or AVG(DISTINCT …) of the distinct values of `args`; rows where the first of them is NULL are none.

    Several columns are (1, a, b, …), with NULL in the place of 1 where a row does not count.
    """

    function: Literal["count", "sum", "mean"]
    args: tuple[Expr, ...]
    span: Span | None = field(default=None, compare=False)
    text: str = field(default="…", compare=False)

    def __post_init__(self) -> None:
        if not self.args or (self.function != "count" and len(self.args) != 1):
            raise ValueError("distinct values that are summed are those of one expression")


@dataclass(frozen=True)
class VarianceValues:
    """VAR_POP and VAR_SAMP (`sample`), and with `root` STDDEV_POP and STDDEV_SAMP."""

    arg: Expr
    sample: bool
    root: bool
    span: Span | None = field(default=None, compare=False)
    text: str = field(default="…", compare=False)


class PairFunction(Enum):
    """A statistic of the rows where both values are present; REGR_SLOPE(y, x) and its like take y first."""

    COVAR_POP = "covar_pop"
    COVAR_SAMP = "covar_samp"
    CORR = "corr"
    SLOPE = "regr_slope"
    INTERCEPT = "regr_intercept"
    R2 = "regr_r2"
    COUNT = "regr_count"
    AVGX = "regr_avgx"
    AVGY = "regr_avgy"
    SXX = "regr_sxx"
    SYY = "regr_syy"
    SXY = "regr_sxy"


@dataclass(frozen=True)
class PairValues:
    function: PairFunction
    y: Expr
    x: Expr
    span: Span | None = field(default=None, compare=False)
    texts: tuple[str, str] = field(default=("…", "…"), compare=False)


@dataclass(frozen=True)
class Truth:
    """BOOL_AND (`every`) and BOOL_OR of 0 and 1."""

    arg: Expr
    every: bool
    span: Span | None = field(default=None, compare=False)
    text: str = field(default="…", compare=False)


class MedianBy(Enum):
    """How a median is found: by the exponential mechanism, or with noise by its local sensitivity."""

    EXPONENTIAL = "exponential"
    SMOOTH = "smooth"
    PTR = "ptr"


@dataclass(frozen=True)
class Local:
    """Noise by the local sensitivity; `proposal` is what `ptr` tests for, in the units of the values.

    Dates have a proposal in days, timestamps in seconds. None is a hundredth of the range.
    """

    by: Literal[MedianBy.SMOOTH, MedianBy.PTR]
    proposal: Fraction | None = None

    def __post_init__(self) -> None:
        if self.proposal is not None and (self.by is not MedianBy.PTR or self.proposal <= 0):
            raise ValueError("a proposal is positive, and that of ptr")


@dataclass(frozen=True)
class Quantile:
    """MEDIAN, PERCENTILE_CONT and _DISC (`discrete`), QUANTILE: the values at these fractions of a group's rows."""

    arg: Expr
    fractions: tuple[Fraction, ...]
    discrete: bool
    is_list: bool
    span: Span | None = field(default=None, compare=False)
    text: str = field(default="…", compare=False)
    local: Local | None = None  # of a median alone

    def __post_init__(self) -> None:
        if not self.fractions or any(not 0 <= fraction <= 1 for fraction in self.fractions):
            raise ValueError("fractions lie between 0 and 1")
        if self.local is not None and not self.is_median:
            raise ValueError("the local sensitivity is that of a median")
        if not self.is_list and len(self.fractions) != 1:
            raise ValueError("several fractions make a list")

    @property
    def is_median(self) -> bool:
        return not self.is_list and self.fractions == (Fraction(1, 2),)

    @property
    def container(self) -> Literal["list"] | None:
        return "list" if self.is_list else None


@dataclass(frozen=True)
class Extreme:
    """MIN, or MAX (`high`); `overshoot` is a chance of passing all rows, if the analyst has set it."""

    arg: Expr
    high: bool
    span: Span | None = field(default=None, compare=False)
    text: str = field(default="…", compare=False)
    overshoot: Fraction | None = None

    @property
    def container(self) -> None:
        return None


@dataclass(frozen=True)
class Frequent:
    """MODE, APPROX_TOP_K with its number `most`, and HISTOGRAM."""

    arg: Expr
    most: int | None
    shape: Literal["mode", "top", "histogram"]
    span: Span | None = field(default=None, compare=False)
    text: str = field(default="…", compare=False)

    def __post_init__(self) -> None:
        if (self.most is None) == (self.shape == "top"):
            raise ValueError("the most frequent values have a number, and nothing else has")

    @property
    def container(self) -> Literal["list", "map"] | None:
        return None if self.shape == "mode" else "list" if self.shape == "top" else "map"


@dataclass(frozen=True)
class Blockwise:
    """BLOCKWISE: a statistic of each of `blocks` disjoint blocks of units, clipped, then their mean or median."""

    statistic: Statistic
    lower: Fraction
    upper: Fraction
    blocks: int
    combine: Literal["mean", "median"]
    span: Span | None = field(default=None, compare=False)
    text: str = field(default="…", compare=False)

    def __post_init__(self) -> None:
        if self.blocks < 2 or not self.lower < self.upper:
            raise ValueError("there are at least two blocks, and bounds that are apart")


Score = CountRows | CountValues | CountDistinctUnits | SumValues
"""What candidates are compared by: one unit more or less moves it by what that unit adds, and nothing else."""


@dataclass(frozen=True)
class Best:
    """PRIVATE_ARGMAX and PRIVATE_TOP_K (`is_list`): the values of `arg` with the highest scores, so many at most."""

    arg: Expr
    score: Score
    most: int
    is_list: bool
    span: Span | None = field(default=None, compare=False)
    text: str = field(default="…", compare=False)

    def __post_init__(self) -> None:
        if self.most < 1 or (self.most > 1 and not self.is_list):
            raise ValueError("several values make a list")

    @property
    def container(self) -> Literal["list"] | None:
        return "list" if self.is_list else None


@dataclass(frozen=True)
class Posterior:
    """POSTERIOR_SAMPLE of 1 and 0: draws of the share of ones, within [first, 1000 - first] thousandths."""

    arg: Expr
    draws: int
    is_list: bool
    first: int
    alpha: Fraction
    beta: Fraction
    span: Span | None = field(default=None, compare=False)
    text: str = field(default="…", compare=False)

    @property
    def container(self) -> Literal["list"] | None:
        return "list" if self.is_list else None


@dataclass(frozen=True)
class ConjugatePosterior:
    """BETA_POSTERIOR of 0 and 1, NORMAL_POSTERIOR of numbers: one of the columns that tell it.

    `prior` has what was written, by name; what was not is decided where the bounds are known.
    """

    arg: Expr
    family: Literal["beta", "normal"]
    part: str
    prior: tuple[tuple[str, Fraction], ...]
    confidence: Fraction
    span: Span | None = field(default=None, compare=False)
    text: str = field(default="…", compare=False)

    @property
    def signature(self) -> str:
        return f"{self.family}_posterior_{self.part}:{_format_arguments(self.prior, self.confidence)}"


@dataclass(frozen=True)
class SharesPosterior:
    """DIRICHLET_POSTERIOR: of each value of a group, one of the columns that tell its share."""

    arg: Expr
    part: str
    prior: tuple[tuple[str, Fraction], ...]
    confidence: Fraction
    span: Span | None = field(default=None, compare=False)
    text: str = field(default="…", compare=False)

    @property
    def container(self) -> Literal["map"]:
        return "map"

    @property
    def signature(self) -> str:
        return f"dirichlet_posterior_{self.part}:{_format_arguments(self.prior, self.confidence)}"


def _format_arguments(prior: tuple[tuple[str, Fraction], ...], confidence: Fraction) -> str:
    return ",".join(f"{name}={number}" for name, number in (*prior, ("confidence", confidence)))


Measure = (
    CountRows
    | CountValues
    | CountDistinctUnits
    | SumValues
    | MeanValues
    | DistinctValues
    | VarianceValues
    | PairValues
    | Truth
    | Quantile
    | Extreme
    | Frequent
    | Blockwise
    | Best
    | Posterior
    | ConjugatePosterior
    | SharesPosterior
)


def needs_own_step(measure: Measure) -> bool:
    """Whether a measure is a step of its own, and no cells of the step that has the groups."""
    if isinstance(measure, Blockwise):
        return measure.combine == "median"
    return isinstance(measure, Quantile | Extreme | Frequent | Best | Posterior | SharesPosterior)
