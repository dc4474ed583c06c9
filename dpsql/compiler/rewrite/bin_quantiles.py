"""Turn a quantile, MIN or MAX into counts per group and bin, of which one bin will be chosen for each group.

    MEDIAN(x) by k  →  rows per (k, bin), bin = x in whole steps, every group and every bin listed

Bins are a key like any other, so the counts have the sensitivity of counts. A unit's weight bounds its rows per group,
over all bins together, since the score of a bin looks at all of its group (SOUNDNESS 6).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from math import prod

from dpsql.compiler.analysis.domains import derive_domains, domain_of
from dpsql.compiler.analysis.units import derive_unit_facts
from dpsql.compiler.plan.aggregate import CountBlocks, Factor, Listed, ListedHole, ListedRange, ListedSets, Sum
from dpsql.compiler.plan.bundles import CountBundle
from dpsql.compiler.plan.clipped_sums import Norm
from dpsql.compiler.plan.expressions import UID, Column, Expr, IsNull, Not, Quantise
from dpsql.compiler.plan.measures import Blockwise, Extreme, Quantile
from dpsql.compiler.plan.relations import (
    Field,
    Filter,
    Named,
    PerUnit,
    Project,
    Rows,
    UnitMeasure,
    has_uid,
    row_fields,
)
from dpsql.compiler.plan.steps import Bins
from dpsql.compiler.rewrite.bound_contributions import ContributionPolicy, weigh_units
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
FEW_GROUPS = 16
"""Groups in which MIN and MAX let a unit count without choosing how many: the choice would cost more than it saves."""

MAX_EXTREME_BINS = 1 << 10
"""MIN and MAX skip rows by the logarithm of the bins, so that noise does not choose among those beyond the data."""


def bin_values(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    """The rows with the bin of their value as a column; those without a value are left out."""
    (written,), (measure,) = plan.asked.measures, plan.measures
    assert isinstance(written, Quantile | Extreme) and isinstance(measure, Quantile | Extreme)
    arg = _to_numeric_arg(measure.arg, written)
    env = derive_domains(plan.rows, context.policy.rows)
    grids = declared_grids(plan.rows)
    declared = grids.get(measure.arg.name) if isinstance(measure.arg, Column) else None
    max_bins = MAX_EXTREME_BINS if isinstance(written, Extreme) else MAX_QUANTILE_BINS
    steps, origin = _quantize_to_bins(
        arg, _require_bounds(domain_of(arg, env), written), declared, context.listed, max_bins
    )
    rows = _bin_rows(plan.rows, steps)
    local = written.local if isinstance(written, Quantile) else None
    if isinstance(written, Quantile) and local is not None:
        _require_one_value(rows, written)
    discrete = isinstance(written, Extreme) or written.discrete or written.arg.type.is_time
    bins = Bins(steps.lower, steps.upper, steps.grid, written.arg.type, discrete, origin)
    return replace(plan.with_rows(rows), bins=bins, targets=_targets_of(written), local=local)


def count_rows_by_bin(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    (measure,), rows, policy = plan.asked.measures, plan.rows, context.policy
    if isinstance(measure, Extreme):
        rows = _keep_outermost(rows, plan.keys, measure.high)
        if isinstance(rows, PerUnit):
            policy = _cap_by_groups(policy, context.listed)
    summed = weigh_units(rows, plan.key_names, (CountBundle(ROWS_CELL, None),), policy)
    part = Sum(summed.input, (*plan.key_names, BIN_KEY), summed.bundles)
    return replace(plan, parts=(part,))


def _keep_outermost(rows: Rows, keys: tuple[Field, ...], high: bool) -> Rows:
    """Of each unit its outermost bin in each group, of which the outermost of all is that of all rows.

    So a unit has one row in a group, whatever it brings, and MAX skips that many units, not rows: without keys, or with
    keys that depend on the unit, a unit moves a count by 1.

    Stability: a unit's bin in a group is a function of its own rows.
    """
    if not has_uid(rows) or derive_unit_facts(rows).rows == 1:
        return rows
    named = tuple(Named(key.name, Column(key.name, key.type)) for key in keys)
    outermost = UnitMeasure(BIN_KEY, "max" if high else "min", Column(BIN_KEY, BIGINT), BIGINT)
    return PerUnit(rows, named, (outermost,))


def _cap_by_groups(policy: ContributionPolicy, listed: Listed | None) -> ContributionPolicy:
    """A unit has one row in a group, so no more of them than there are groups: a larger cap would only add noise.

    Of the L2 norm that is a root, and one more, since weights are rounded down. Few groups need no histogram.
    """
    if listed is None or any(isinstance(factor, ListedHole | ListedSets) for factor in listed.factors):
        return policy
    groups = max(1, listed.count)
    max_rows = groups if policy.norm is Norm.L1 else min(groups, math.isqrt(groups - 1) + 2)
    if policy.rows is None:
        return replace(policy, rows=max_rows) if groups <= FEW_GROUPS else policy
    return replace(policy, rows=min(policy.rows, max_rows))


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
    what = f"CLIP({measure.text}, 0, 100) in its place, with bounds"
    if measure.arg.type.is_time:
        what = f"WHERE {measure.text} BETWEEN '2020-01-01' AND '2029-12-31', with days"
    raise UnboundedValues(
        f"the values of {measure.text} have no bounds",
        hint=f"{declare} {what} of your own.",
        span=measure.span,
    )


def _quantize_to_bins(
    arg: Expr, domain: Domain, declared: Fraction | None, listed: Listed | None, bins: int
) -> tuple[Quantise, Fraction]:
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
