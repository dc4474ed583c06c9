"""What a block over private rows has to offer to error bars: its aggregates and keys, as columns of its release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from dpsql.errors import Unsupported
from dpsql.plan.expr import Expr
from dpsql.plan.measures import (
    Best,
    Blockwise,
    ConjugatePosterior,
    Extreme,
    Frequent,
    Measure,
    Posterior,
    Quantile,
    SharesPosterior,
    Truth,
)
from dpsql.sql.aggregates import is_aggregate, measure_type
from dpsql.sql.dialect import span_of, spelled
from dpsql.sql.errorbars import NoBars
from dpsql.sql.references import References


@dataclass(frozen=True)
class BlockColumns:
    """`register` gives the measure of an aggregate, `as_key` the key that an expression equals."""

    known: dict[str, Measure]  # grows while `register` finds more
    register: Callable[[exp.Expr], Measure]
    as_key: Callable[[exp.Expr], Expr | None]
    value: Callable[[exp.Expr], exp.Expr]
    refer: References
    interval: Callable[[exp.Expr], bool]  # an aggregate that is an interval: there is no arithmetic of its bars

    def measure(self, node: exp.Expr) -> int | None:
        if not is_aggregate(node) or self.interval(node):
            return None
        measure = self.register(node)
        return list(self.known.values()).index(measure) if has_error(measure) else None

    def is_constant(self, node: exp.Expr) -> bool:
        key = self.as_key(node)
        return key is not None and key.type.is_number

    def covariance(self, one: int, other: int) -> exp.Expr:
        measures = list(self.known.values())
        return self.refer.covariance(measures[one], measures[other])

    def factor(self) -> exp.Expr:
        return self.refer.factor()


def has_error(measure: Measure) -> bool:
    """Whether the noise alone tells how far the answer may be off; what was chosen or decided has no such figure."""
    if isinstance(measure, Blockwise):
        return measure.combine == "mean"
    chosen = isinstance(measure, Quantile | Extreme | Frequent | Best | Posterior)
    told = isinstance(measure, Truth | ConjugatePosterior | SharesPosterior)
    return not chosen and not told and measure_type(measure).is_number


def no_bars(found: NoBars, function: str) -> Unsupported:
    if is_aggregate(found.node):
        return Unsupported(
            f"{spelled(found.node)} has no error bar: how far it is off depends on private rows",
            hint="Counts, sums, averages and what is computed from them have one.",
            span=span_of(found.node),
        )
    return Unsupported(
        f"{function} takes an aggregate of this SELECT, or arithmetic of such aggregates",
        hint=f"For example: {function}(SUM(x) / COUNT(*)).",
        span=span_of(found.node),
    )
