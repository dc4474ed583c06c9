"""Turn a quantile, MIN or MAX into counts per group and bin, of which one bin will be chosen for each group.

    MEDIAN(x) by k  →  rows per (k, bin), bin = x in whole steps, every group and every bin listed

Bins are a key like any other, so the counts have the sensitivity of counts. A unit's weight bounds its rows per group,
over all bins together, since the score of a bin looks at all of its group (SOUNDNESS 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

from dpsql.analysis.domains import node_domains
from dpsql.analysis.units import unit_facts
from dpsql.analysis.values import domain_of
from dpsql.errors import TypeMismatch, UnboundedValues, Unsupported
from dpsql.plan.bundles import CountBundle
from dpsql.plan.expr import UID, Call, Column, Expr, IsNull, Not, Quantise
from dpsql.plan.measures import Extreme, Local, Quantile
from dpsql.plan.nodes import Aggregate, Factor, Gather, Listed, ListedHole, ListedRange, Sum
from dpsql.plan.relations import Field, Filter, Named, Project, Rows, row_fields
from dpsql.plan.stages import Bins
from dpsql.privacy.choice import Extreme as ExtremeTarget
from dpsql.privacy.choice import Rank, Target
from dpsql.rewrite.grids import declared_grids
from dpsql.rewrite.pipeline import prepare
from dpsql.rewrite.policy import Policy
from dpsql.rewrite.weigh_units import weigh_units
from dpsql.schema.domain import Domain
from dpsql.schema.model import Resolved
from dpsql.types import BIGINT, Kind

BIN = "bin"
CELL = "rows"

MOST_CELLS = 1 << 20
"""Groups times bins: all of them leave the engine."""

LEAST_BINS = 64
MOST_BINS = 1 << 14
EXTREME_BINS = 1 << 10
"""MIN and MAX skip rows by the logarithm of the bins, so that noise does not choose among those beyond the data."""


@dataclass(frozen=True)
class Choice:
    """Counts per group and bin, what the bins mean, and which bins are wanted of each group."""

    gather: Gather
    bins: Bins
    targets: tuple[Target, ...]
    local: Local | None = None


def choose(
    aggregate: Aggregate, measure: Quantile | Extreme, listed: Listed | None, resolved: Resolved, policy: Policy
) -> Choice:
    """`listed` are the groups, known or from a hole; the aggregate has this measure alone."""
    prepared = prepare(aggregate, resolved)
    (asked,) = prepared.measures
    assert isinstance(asked, Quantile | Extreme)
    arg = _number(asked.arg, measure)
    env = node_domains(prepared.rows, policy.rows)
    grids = declared_grids(prepared.rows)
    declared = grids.get(asked.arg.name) if isinstance(asked.arg, Column) else None
    most = EXTREME_BINS if isinstance(measure, Extreme) else MOST_BINS
    steps = _steps(arg, _bounded(domain_of(arg, env), measure), declared, listed, most)
    names = tuple(key.name for key in prepared.keys)
    rows = _binned(prepared.rows, steps)
    if isinstance(measure, Quantile) and measure.local is not None:
        _need_one_value(rows, measure)
    summed = weigh_units(rows, names, (CountBundle(CELL, None),), policy)
    part = Sum(summed.input, (*names, BIN), summed.bundles)
    bin_ = Field(BIN, BIGINT)
    factors = listed.factors if listed is not None else ()
    every = Listed((*factors, ListedRange(bin_, steps.lower, steps.upper)))
    gather = Gather((*prepared.keys, bin_), every, None, (part,))
    discrete = isinstance(measure, Extreme) or measure.discrete or measure.arg.type.is_time
    bins = Bins(steps.lower, steps.upper, steps.grid, measure.arg.type, discrete)
    return Choice(gather, bins, _targets(measure), measure.local if isinstance(measure, Quantile) else None)


def _targets(measure: Quantile | Extreme) -> tuple[Target, ...]:
    if isinstance(measure, Extreme):
        return (ExtremeTarget(measure.high),)
    return tuple(Rank(f) if 0 < f < 1 else ExtremeTarget(f == 1) for f in measure.fractions)


def _need_one_value(rows: Rows, measure: Quantile) -> None:
    """Distances are counted in units, each with one value: of a unit with many rows, each would be a step."""
    if unit_facts(rows).rows != 1:
        assert measure.local is not None
        raise Unsupported(
            f"a median by {measure.local.by.value} needs one value for each privacy unit",
            hint="Aggregate per unit first: SELECT MEDIAN(v) FROM (SELECT unit, AVG(x) AS v FROM … GROUP BY unit).",
            span=measure.span,
        )


def _number(arg: Expr, measure: Quantile | Extreme) -> Expr:
    """The argument as a number: days of a date, microseconds of a moment."""
    match arg.type.kind:
        case Kind.DATE:
            return Call("epoch_days", (arg,), BIGINT)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return Call("epoch_us", (arg,), BIGINT)
        case _ if arg.type.is_number:
            return arg
        case _:
            raise TypeMismatch(
                f"quantiles, MIN and MAX are for numbers and dates, not {arg.type}",
                hint="MODE gives the most frequent value of any type.",
                span=measure.span,
            )


def _bounded(domain: Domain, measure: Quantile | Extreme) -> Domain:
    if domain.bounded:
        return domain
    origin = measure.arg.origin if isinstance(measure.arg, Column) else None
    declare = f"Declare bounds for {origin} in the schema, or write" if origin else "Write"
    raise UnboundedValues(
        f"the values of {measure.text} have no bounds",
        hint=f"{declare} CLIP({measure.text}, 0, 100) in its place, with bounds of your own.",
        span=measure.span,
    )


def _steps(arg: Expr, domain: Domain, declared: Fraction | None, listed: Listed | None, bins: int) -> Quantise:
    """As many bins as the groups leave room for; whole numbers, and days, have one each where they fit."""
    lower, upper = domain.bounds
    most = room_for(listed, bins)
    natural = declared or (Fraction(1) if domain.type.is_integer else None)
    if domain.type.kind is Kind.DECIMAL:
        natural = natural or Fraction(1, 10 ** (domain.type.scale or 0))
    grid = natural or (Fraction(1, 1 << 200) if upper > lower else abs(lower) or Fraction(1))
    if (upper - lower) / grid >= most:
        wide = (upper - lower) / (most - 1) or Fraction(1)
        grid = -(-wide // natural) * natural if natural is not None else wide
    least, last = (lower / grid).__ceil__(), (upper / grid).__floor__()
    if least > last:
        least = last = round((lower + upper) / 2 / grid)
    return Quantise(arg, grid, least, last)


def room_for(listed: Listed | None, bins: int) -> int:
    """How many bins each group may have."""
    groups = 1 if listed is None else max(1, prod(min(f.count, _typical(f)) for f in listed.factors))
    return max(LEAST_BINS, min(bins, MOST_CELLS // groups))


def _typical(factor: Factor) -> int:
    """Of groups that are not known yet, as many as most answers have; bins for the most there could be were too few."""
    return 256 if isinstance(factor, ListedHole) else factor.count


def _binned(rows: Rows, steps: Quantise) -> Rows:
    kept = [Named(f.name, Column(f.name, f.type)) for f in row_fields(rows) if f.name not in (UID, "x1")]
    binned = Project(rows, (*kept, Named(BIN, steps)))
    return Filter(binned, Not(IsNull(Column(BIN, BIGINT))))
