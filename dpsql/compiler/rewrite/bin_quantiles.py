"""Turn a quantile, MIN or MAX into counts per group and bin, of which one bin will be chosen for each group.

    MEDIAN(x) by k  →  rows per (k, bin), bin = x in whole steps, every group and every bin listed

Bins are a key like any other, so the counts have the sensitivity of counts. A unit's weight bounds its rows per group,
over all bins together, since the score of a bin looks at all of its group (SOUNDNESS 6).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import prod

from dpsql.compiler.analysis.domains import derive_domains, domain_of
from dpsql.compiler.analysis.units import derive_unit_facts
from dpsql.compiler.plan.aggregate import CountBlocks, Factor, Listed, ListedHole, ListedRange, Sum
from dpsql.compiler.plan.bundles import CountBundle
from dpsql.compiler.plan.expressions import UID, Column, Expr, IsNull, Not, Quantise
from dpsql.compiler.plan.measures import Blockwise, Extreme, Quantile
from dpsql.compiler.plan.relations import Field, Filter, Named, Project, Rows, row_fields
from dpsql.compiler.plan.steps import Bins
from dpsql.compiler.rewrite.bound_contributions import weigh_units
from dpsql.compiler.rewrite.form_blocks import blocks_of
from dpsql.compiler.rewrite.form_bundles import ROWS_CELL
from dpsql.compiler.rewrite.grids import declared_grids, natural_grid, quantize_evenly, to_number_expr
from dpsql.compiler.rewrite.release_plan import ReleasePlan, RuleContext
from dpsql.errors import TypeMismatch, UnboundedContribution, UnboundedValues, Unsupported
from dpsql.privacy.exponential import ExtremeTarget, Rank, Target
from dpsql.schema.model import Domain
from dpsql.types import BIGINT, DOUBLE

BIN_KEY = "bin"

MAX_CELLS = 1 << 20
"""Groups times bins: all of them leave the engine."""

MIN_BINS = 64
MAX_QUANTILE_BINS = 1 << 14
MAX_EXTREME_BINS = 1 << 10
"""MIN and MAX skip rows by the logarithm of the bins, so that noise does not choose among those beyond the data."""


def bin_values(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    """The rows with the bin of their value as a column; those without a value are left out."""
    (asked,), (measure,) = plan.asked.measures, plan.measures
    assert isinstance(asked, Quantile | Extreme) and isinstance(measure, Quantile | Extreme)
    arg = _to_numeric_arg(measure.arg, asked)
    env = derive_domains(plan.rows, context.policy.rows)
    grids = declared_grids(plan.rows)
    declared = grids.get(measure.arg.name) if isinstance(measure.arg, Column) else None
    max_bins = MAX_EXTREME_BINS if isinstance(asked, Extreme) else MAX_QUANTILE_BINS
    steps = _quantize_to_bins(arg, _require_bounds(domain_of(arg, env), asked), declared, context.listed, max_bins)
    rows = _bin_rows(plan.rows, steps)
    local = asked.local if isinstance(asked, Quantile) else None
    if isinstance(asked, Quantile) and local is not None:
        _require_one_value(rows, asked)
    discrete = isinstance(asked, Extreme) or asked.discrete or asked.arg.type.is_time
    bins = Bins(steps.lower, steps.upper, steps.grid, asked.arg.type, discrete)
    return replace(plan.with_rows(rows), bins=bins, targets=_targets_of(asked), local=local)


def count_rows_by_bin(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    summed = weigh_units(plan.rows, plan.key_names, (CountBundle(ROWS_CELL, None),), context.policy)
    part = Sum(summed.input, (*plan.key_names, BIN_KEY), summed.bundles)
    return replace(plan, parts=(part,))


def list_bins(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    """Every group and every bin has its count; the bin is a key like any other."""
    assert plan.bins is not None
    bin_ = Field(BIN_KEY, BIGINT)
    factors = context.listed.factors if context.listed is not None else ()
    all_bins = Listed((*factors, ListedRange(bin_, plan.bins.lower, plan.bins.upper)))
    return replace(plan, keys=(*plan.keys, bin_), listed=all_bins)


def _targets_of(measure: Quantile | Extreme) -> tuple[Target, ...]:
    if isinstance(measure, Extreme):
        return (ExtremeTarget(measure.high),)
    return tuple(Rank(f) if 0 < f < 1 else ExtremeTarget(f == 1) for f in measure.fractions)


def _require_one_value(rows: Rows, measure: Quantile) -> None:
    """Distances are counted in units, each with one value: of a unit with many rows, each would be a step."""
    if derive_unit_facts(rows).rows != 1:
        assert measure.local is not None
        raise Unsupported(
            f"a median by {measure.local.by.value} needs one value for each privacy unit",
            hint="Aggregate per unit first: SELECT MEDIAN(v) FROM (SELECT unit, AVG(x) AS v FROM … GROUP BY unit).",
            span=measure.span,
        )


def _to_numeric_arg(arg: Expr, measure: Quantile | Extreme) -> Expr:
    number = to_number_expr(arg)
    if number is None:
        raise TypeMismatch(
            f"quantiles, MIN and MAX are for numbers and dates, not {arg.type}",
            hint="MODE gives the most frequent value of any type.",
            span=measure.span,
        )
    return number


def _require_bounds(domain: Domain, measure: Quantile | Extreme) -> Domain:
    if domain.is_bounded:
        return domain
    origin = measure.arg.origin if isinstance(measure.arg, Column) else None
    declare = f"Declare bounds for {origin} in the schema, or write" if origin else "Write"
    raise UnboundedValues(
        f"the values of {measure.text} have no bounds",
        hint=f"{declare} CLIP({measure.text}, 0, 100) in its place, with bounds of your own.",
        span=measure.span,
    )


def _quantize_to_bins(
    arg: Expr, domain: Domain, declared: Fraction | None, listed: Listed | None, bins: int
) -> Quantise:
    """As many bins as the groups leave room for; whole numbers, and days, have one each where they fit."""
    lower, upper = domain.bounds
    finest = Fraction(1, 1 << 200) if upper > lower else abs(lower) or Fraction(1)
    return quantize_evenly(arg, domain, declared or natural_grid(domain), finest, max_bins_for(listed, bins))


def max_bins_for(listed: Listed | None, bins: int) -> int:
    """How many bins each group may have."""
    groups = 1 if listed is None else max(1, prod(min(f.count, _typical_group_count(f)) for f in listed.factors))
    return max(MIN_BINS, min(bins, MAX_CELLS // groups))


def _typical_group_count(factor: Factor) -> int:
    """How many groups to expect where they are not known yet; counting with the maximum left too few bins."""
    return 256 if isinstance(factor, ListedHole) else factor.count


def _bin_rows(rows: Rows, steps: Quantise) -> Rows:
    columns = [Named(f.name, Column(f.name, f.type)) for f in row_fields(rows) if f.name not in (UID, "x1")]
    binned = Project(rows, (*columns, Named(BIN_KEY, steps)))
    return Filter(binned, Not(IsNull(Column(BIN_KEY, BIGINT))))


# Turn BLOCKWISE with combine => 'median' into counts of blocks per group and bin, of which one bin is chosen.
#
#     BLOCKWISE(mad(cost), 0, 5000, combine => 'median') by k  →  blocks per (k, bin), every group and every bin listed

BLOCKS_CELL = "blocks"

MAX_BLOCK_BINS = 1 << 12
"""Between the bounds: a median of some hundred blocks is hardly known better."""


def count_blocks_by_bin(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    (measure,) = plan.measures
    assert isinstance(measure, Blockwise)
    names = plan.key_names
    if context.selected and not set(names) <= derive_unit_facts(plan.rows).determined:
        raise UnboundedContribution(
            "a privacy unit may be in any number of the groups asked for, and changes a block in each of them",
            hint="Group by keys that depend on the unit alone, or whose values are declared: BLOCKWISE has no cap.",
            span=measure.span,
        )
    steps = max_bins_for(context.listed, MAX_BLOCK_BINS) // 2 * 2
    part = CountBlocks(
        plan.rows, names, BIN_KEY, blocks_of(measure, plan.rows, steps, context.policy.rows), BLOCKS_CELL
    )
    bins = Bins(0, steps, part.blocks.grid, DOUBLE, False, measure.lower)
    return replace(plan, parts=(part,), bins=bins, targets=(Rank(Fraction(1, 2)),))
