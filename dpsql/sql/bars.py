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
from dpsql.sql.dialect import span_of, sql_name_of
from dpsql.sql.errorbars import NoErrorBar
from dpsql.sql.references import ReleaseReferences


@dataclass(frozen=True)
class BlockColumns:
    """`register` gives the measure of an aggregate, `as_key` the key that an expression equals."""

    known: dict[str, Measure]  # grows while `register` finds more
    register: Callable[[exp.Expr], Measure]
    as_key: Callable[[exp.Expr], Expr | None]
    value: Callable[[exp.Expr], exp.Expr]
    refer: ReleaseReferences
    interval: Callable[[exp.Expr], bool]  # an aggregate that is an interval: there is no arithmetic of its bars

    def find_measure(self, node: exp.Expr) -> int | None:
        if not is_aggregate(node) or self.interval(node):
            return None
        measure = self.register(node)
        return list(self.known.values()).index(measure) if has_error_bar(measure) else None

    def is_constant(self, node: exp.Expr) -> bool:
        key = self.as_key(node)
        return key is not None and key.type.is_number

    def covariance_of(self, first: int, second: int) -> exp.Expr:
        measures = list(self.known.values())
        return self.refer.covariance_column(measures[first], measures[second])

    def interval_factor(self) -> exp.Expr:
        return self.refer.factor_column()


def has_error_bar(measure: Measure) -> bool:
    """Whether the noise alone tells how far the answer may be off; what was chosen or decided has no such figure."""
    if isinstance(measure, Blockwise):
        return measure.combine == "mean"
    chosen = isinstance(measure, Quantile | Extreme | Frequent | Best | Posterior)
    decided = isinstance(measure, Truth | ConjugatePosterior | SharesPosterior)
    return not chosen and not decided and measure_type(measure).is_number


def no_error_bar_error(missing: NoErrorBar, function: str) -> Unsupported:
    if is_aggregate(missing.node):
        return Unsupported(
            f"{sql_name_of(missing.node)} has no error bar: how far it is off depends on private rows",
            hint="Counts, sums, averages and what is computed from them have one.",
            span=span_of(missing.node),
        )
    return Unsupported(
        f"{function} takes an aggregate of this SELECT, or arithmetic of such aggregates",
        hint=f"For example: {function}(SUM(x) / COUNT(*)).",
        span=span_of(missing.node),
    )
