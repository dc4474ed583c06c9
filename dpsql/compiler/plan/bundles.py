"""Bundles: the integer cells that answer measures, and the largest that one row can be in them.

Law: every norm that a sensitivity uses is stated here, by the bundle whose components the engine forms, with its proof.
`row_l1`, `row_l2_squared` and `row_linf` bound what one row adds to the bundle's cells, in whole steps; a row that is
missing adds nothing. `grid` is what one step of a cell is worth.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsql.compiler.plan.expressions import Expr, Quantise


@dataclass(frozen=True)
class CountBundle:
    """1 for each row, or for each row where `present` is not NULL."""

    cell: str
    present: Expr | None
    shift: int = 0

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.cell,)

    @property
    def values(self) -> tuple[Quantise, ...]:
        return ()

    @property
    def grid(self) -> Fraction:
        return Fraction(1)

    @property
    def row_l1(self) -> int:
        return 1

    @property
    def row_l2_squared(self) -> int:
        return 1

    @property
    def row_linf(self) -> int:
        return 1

    @property
    def non_negative(self) -> bool:
        return True


@dataclass(frozen=True)
class SumBundle:
    """v for each row."""

    cell: str
    value: Quantise
    shift: int = 0

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.cell,)

    @property
    def values(self) -> tuple[Quantise, ...]:
        return (self.value,)

    @property
    def grid(self) -> Fraction:
        return self.value.grid

    @property
    def row_l1(self) -> int:
        return max(abs(self.value.lower), abs(self.value.upper), 1)

    @property
    def row_l2_squared(self) -> int:
        return self.row_l1**2

    @property
    def row_linf(self) -> int:
        return self.row_l1

    @property
    def non_negative(self) -> bool:
        return self.value.lower >= 0


@dataclass(frozen=True)
class MomentBundle:
    """(v - lower, upper - v), and upper - lower where v is NULL: one row has L1 norm upper - lower in all.

    COUNT, SUM and AVG are all linear in these (Kulesza et al. 2024, with a third part for COUNT(*)). With `null_as`,
    NULL counts as that many steps instead: 0, where only COUNT(*) and SUM are asked, needs no third cell.
    """

    above: str
    below: str
    missing: str | None
    value: Quantise
    shift: int = 0
    null_as: int | None = None

    def __post_init__(self) -> None:
        if self.value.lower == self.value.upper:
            raise ValueError("moments need bounds that are apart")
        if self.null_as is not None and not self.value.lower <= self.null_as <= self.value.upper:
            raise ValueError("what stands for NULL is within the bounds")
        if self.null_as is not None and self.missing is not None:
            raise ValueError("NULL is counted once")

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.above, self.below) if self.missing is None else (self.above, self.below, self.missing)

    @property
    def values(self) -> tuple[Quantise, ...]:
        return (self.value,)

    @property
    def grid(self) -> Fraction:
        return self.value.grid

    @property
    def row_l1(self) -> int:
        return self.value.upper - self.value.lower

    @property
    def row_l2_squared(self) -> int:
        """No component is negative, so the L2 norm is at most the L1 norm; v at a bound reaches it."""
        return self.row_l1**2

    @property
    def row_linf(self) -> int:
        return self.row_l1

    @property
    def non_negative(self) -> bool:
        return True


MAX_WIDTH = 1 << 22
"""Steps between the bounds of a value that is squared: W^2 times a weight of 2^16 is at most 2^60, within BIGINT."""


def step_width(value: Quantise) -> int:
    return value.upper - value.lower


@dataclass(frozen=True)
class VarianceBundle:
    """(W^2 - z^2, z^2, W z) with z = 2v - (lower + upper), so that |z| <= W = upper - lower; NULL adds nothing.

    COUNT(x), SUM, AVG and all variances follow from these. One step is 1/W^2, so a row is (1 - a^2, a^2, a), a = z/W.

    Stability: with |a| <= 1, L1 is 1 + |a| <= 2. L2^2 is (1 - a^2)^2 + a^4 + a^2 = 1 - a^2 + 2 a^4, which is convex
    in a^2 and so largest at an end: 1 at a = 0, 2 at |a| = 1. Hence L1 <= 2 W^2, L2^2 <= 2 W^4, each cell <= W^2.
    """

    rest: str
    square: str
    linear: str
    value: Quantise
    shift: int = 0

    def __post_init__(self) -> None:
        if not 1 <= step_width(self.value) <= MAX_WIDTH:
            raise ValueError("values that are squared have bounds that are apart, by at most 2^22 steps")

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.rest, self.square, self.linear)

    @property
    def values(self) -> tuple[Quantise, ...]:
        return (self.value,)

    @property
    def max_width(self) -> int:
        return step_width(self.value)

    @property
    def grid(self) -> Fraction:
        return Fraction(1, self.max_width**2)

    @property
    def row_l1(self) -> int:
        return 2 * self.max_width**2

    @property
    def row_l2_squared(self) -> int:
        return 2 * self.max_width**4

    @property
    def row_linf(self) -> int:
        return self.max_width**2

    @property
    def non_negative(self) -> bool:
        return False


@dataclass(frozen=True)
class CovarianceBundle:
    """(W^2 - a^2, a^2, W a, W b, b^2, a b) for rows where both values are there; others add nothing.

    Each value is centred, a = scale * (2v - (lower + upper)), and `scales` are whole numbers that bring both to about
    the same width W, the larger of the two, so |a|, |b| <= W. One step is 1/W^2.

    Stability: in units of W, L1 is (1 - a^2) + a^2 + |a| + |b| + b^2 + |a b| <= 5. L2^2 is
    1 - a^2 + 2 a^4 + b^2 + b^4 + a^2 b^2, convex in a^2 for every b and so largest at an end: 1 + b^2 + b^4 <= 3 at
    a = 0, 2 + 2 b^2 + b^4 <= 5 at |a| = 1. Hence L1 <= 5 W^2, L2^2 <= 5 W^4, each cell <= W^2.
    """

    names: tuple[str, str, str, str, str, str]
    first: Quantise
    second: Quantise
    scales: tuple[int, int]
    shift: int = 0

    def __post_init__(self) -> None:
        if min(self.scales) < 1 or self.max_width > MAX_WIDTH:
            raise ValueError("values that are multiplied have bounds that are apart by at most 2^22 steps")

    @property
    def cells(self) -> tuple[str, ...]:
        return self.names

    @property
    def values(self) -> tuple[Quantise, ...]:
        return (self.first, self.second)

    @property
    def max_width(self) -> int:
        return max(self.scales[0] * step_width(self.first), self.scales[1] * step_width(self.second), 1)

    @property
    def grid(self) -> Fraction:
        return Fraction(1, self.max_width**2)

    @property
    def row_l1(self) -> int:
        return 5 * self.max_width**2

    @property
    def row_l2_squared(self) -> int:
        return 5 * self.max_width**4

    @property
    def row_linf(self) -> int:
        return self.max_width**2

    @property
    def non_negative(self) -> bool:
        return False


Bundle = CountBundle | SumBundle | MomentBundle | VarianceBundle | CovarianceBundle
