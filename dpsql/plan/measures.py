"""What is asked of a group (measures), and the integer cells that answer it (bundles)."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpsql.plan.expr import Expr, Quantise
from dpsql.span import Span


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
    """COUNT(DISTINCT unit)."""

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


Measure = CountRows | CountValues | CountDistinctUnits | SumValues | MeanValues


@dataclass(frozen=True)
class CountBundle:
    """1 for each row, or for each row where `present` is not NULL."""

    cell: str
    present: Expr | None
    shift: int = 0

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.cell,)


@dataclass(frozen=True)
class SumBundle:
    """v for each row."""

    cell: str
    value: Quantise
    shift: int = 0

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.cell,)


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


Bundle = CountBundle | SumBundle | MomentBundle
