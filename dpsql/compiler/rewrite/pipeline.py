"""The rules in order: from the aggregate that was asked to the plan that runs.

Every rule is a function (plan, context) -> plan, and `apply_rules` applies one after the other. A rule that has nothing
to do returns the plan as it is; some only look at it, and refuse what must not run.

    ROW_RULES                     which rows there are: of an `Aggregate`
      scan_tables                 all below knows domains, unique keys and units of the columns that are read
      push_conditions             before the limits: a condition within a join tells how many rows meet
      join_by_unit                before the limits: they look at the joins that run
      limit_public_joins, limit_joins, limit_work
      make_unit_aggregates_exact  before make_total: the arguments that it makes become total, too
      make_total                  last: it marks what the domains of all expressions below prove

    BLOCK_ROW_RULES               the same, where a measure is BLOCKWISE
      refuse_grouping_sets        before any work, as it looks at the statement alone
      carry_row_hash              while tables are tables: it makes every column of them one that is read

    GROUP_RULES                   which groups there are: of a `ReleasePlan`, as all that follow
      find_groups                 reads the keys' expressions, of which narrow_rows leaves the names
      narrow_rows                 makes columns of keys and arguments, for grouping sets to set to NULL
      expand_grouping_sets        last: what follows finds each row once in every set

    LINEAR_RULES                  groups, and cells that answers are worked out from
      bundle_measures             says what the next three count and sum
      sum_bundles, sum_distinct_values, count_distinct_units
      average_blocks
      count_selection_units       a column of its own (SOUNDNESS 5), whatever the parts are
      order_selected_first
      check_block_groups          of the plan with all its parts and its selection
      add_repeated_row_notices
      request_norms               of the plan with all its parts: which histograms choose what is not declared
      drop_needless_clips         last: it must know all that reads a column

    QUANTILE_RULES                a bin is chosen in every group: bin_values, count_rows_by_bin, list_bins,
                                  request_norms
    BLOCK_MEDIAN_RULES            the same of blocks: count_blocks_by_bin, list_bins
    POSTERIOR_RULES               a share is drawn in every group: weigh_truth_values

The best of some values, and the most frequent ones, are LINEAR_RULES with the value as one more key
(`score_candidates`); the rows of a study are those of ROW_RULES, coded (`weighted_rows`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from dpsql.compiler.analysis.public_rows import max_row_multiplication
from dpsql.compiler.plan.aggregate import Aggregate, CountUnits, Sum, SumBlocks, Weigh
from dpsql.compiler.plan.expressions import ROW, Column, Expr
from dpsql.compiler.plan.measures import Blockwise, Measure
from dpsql.compiler.plan.relations import SET_COLUMN, Field, Filter, Named, Project, row_fields
from dpsql.compiler.plan.walk import map_measure, measure_args, origin_of
from dpsql.compiler.rewrite.automatic_norms import clip_units, find_norm_requests
from dpsql.compiler.rewrite.bin_quantiles import bin_values, count_blocks_by_bin, count_rows_by_bin, list_bins
from dpsql.compiler.rewrite.bound_contributions import cap_distinct_values, count_units, select_groups, weigh_units
from dpsql.compiler.rewrite.form_blocks import carry_row_hash, check_groups_reached, refuse_grouping_sets, sum_blocks
from dpsql.compiler.rewrite.form_bundles import DistinctSums, UnitCount, form_bundles
from dpsql.compiler.rewrite.grids import drop_clips
from dpsql.compiler.rewrite.limit_joins import limit_joins, limit_public_joins, limit_work
from dpsql.compiler.rewrite.list_groups import expand_sets, list_groups
from dpsql.compiler.rewrite.make_total import make_total, make_unit_aggregates_exact
from dpsql.compiler.rewrite.release_plan import BinSelection, ReleasePlan, RewrittenPlan, RuleContext
from dpsql.compiler.rewrite.scan_tables import join_by_unit, push_conditions, scan_tables
from dpsql.compiler.rewrite.score_candidates import weigh_truth_values
from dpsql.types import BIGINT

NULLS_DROPPED_NOTICE = "rows for which a computed key is NULL are in no group; COALESCE(…) within the key keeps them"

Plan = TypeVar("Plan", Aggregate, ReleasePlan)
RowRule = Callable[[Aggregate, RuleContext], Aggregate]
ReleaseRule = Callable[[ReleasePlan, RuleContext], ReleasePlan]


def apply_rules(rules: tuple[Callable[[Plan, RuleContext], Plan], ...], plan: Plan, context: RuleContext) -> Plan:
    for rule in rules:
        plan = rule(plan, context)
    return plan


# --- groups ----------------------------------------------------------------------------------------------------------


def find_groups(plan: ReleasePlan, _context: RuleContext) -> ReleasePlan:
    """Which groups are listed, and which keys are to be selected; rows that are in none of them are left out."""
    groups = list_groups(plan.aggregate)
    return replace(
        plan,
        aggregate=groups.aggregate,
        listed=groups.listed,
        selected=groups.selected,
        never_null=groups.never_null,
        notices=(NULLS_DROPPED_NOTICE,) if groups.drops_nulls else (),
    )


def narrow_rows(plan: ReleasePlan, _context: RuleContext) -> ReleasePlan:
    """The rows with the keys and arguments of the release as columns, and nothing else."""
    columns = list(plan.aggregate.keys)
    names: dict[Expr, Column] = {}
    measures: list[Measure] = []
    for measure in plan.measures:
        for arg in measure_args(measure):
            if arg not in names:
                names[arg] = Column(f"x{len(names) + 1}", arg.type, origin_of(arg))
                columns.append(Named(names[arg].name, arg))
        measures.append(map_measure(measure, names.__getitem__))
    columns += [Named(f.name, Column(f.name, f.type)) for f in row_fields(plan.rows) if f.name == ROW]
    fields = tuple(Field(key.name, key.expr.type) for key in plan.aggregate.keys)
    keys = tuple(Named(field.name, Column(field.name, field.type)) for field in fields)
    rows = Project(plan.rows, tuple(columns))
    return replace(plan, aggregate=Aggregate(rows, keys, tuple(measures), plan.aggregate.sets), keys=fields)


def expand_grouping_sets(plan: ReleasePlan, _context: RuleContext) -> ReleasePlan:
    if not plan.aggregate.sets:
        return plan
    rows = expand_sets(plan.rows, plan.keys, plan.aggregate.sets, plan.never_null)
    return replace(plan.with_rows(rows), keys=(*plan.keys, Field(SET_COLUMN, BIGINT)))


# --- linear measures -------------------------------------------------------------------------------------------------


def bundle_measures(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    """Which cells there are, and how measures are worked out from them; blocks are not bundled."""
    linear = tuple(measure for measure in plan.measures if not isinstance(measure, Blockwise))
    bundles = form_bundles(linear, plan.rows, context.policy.rows, automatic=context.policy.automatic)
    return replace(plan, bundles=bundles, recipes=bundles.recipes)


def sum_bundles(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    bundles, policy = plan.bundles.bundles, context.policy
    weighed = [weigh_units(plan.rows, plan.key_names, bundles, policy)] if bundles else []
    return plan.with_parts([*weighed, *clip_units(plan.rows, plan.key_names, plan.bundles.clipped, policy.norm)])


def sum_distinct_values(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    def make_part(sums: DistinctSums) -> Sum:
        pairs = cap_distinct_values(plan.rows, plan.key_names, sums.columns, context.policy)
        return Sum(pairs, plan.key_names, sums.bundles)

    return plan.with_parts(map(make_part, plan.bundles.distinct))


def count_distinct_units(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    def make_part(count: UnitCount) -> CountUnits:
        rows = plan.rows if count.where is None else Filter(plan.rows, count.where)
        return count_units(rows, plan.key_names, count.cell, plan.listed, context.policy)

    return plan.with_parts(map(make_part, plan.bundles.units))


def average_blocks(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    """A part for every BLOCKWISE, whose recipes stand among those of other measures, in the order of all measures."""
    blocks = [
        sum_blocks(measure, plan.rows, plan.key_names, f"b{number}", context.policy.rows)
        for number, measure in enumerate(_blockwise_measures(plan), 1)
    ]
    means, linear = iter([mean for _, mean in blocks]), iter(plan.recipes)
    recipes = tuple(next(means) if isinstance(m, Blockwise) else next(linear) for m in plan.measures)
    return replace(plan.with_parts(part for part, _ in blocks), recipes=recipes)


def _blockwise_measures(plan: ReleasePlan) -> list[Blockwise]:
    return [measure for measure in plan.measures if isinstance(measure, Blockwise)]


def count_selection_units(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    return replace(plan, selection=select_groups(plan.rows, plan.selected, context.policy))


def order_selected_first(plan: ReleasePlan, _context: RuleContext) -> ReleasePlan:
    """Rows come in blocks of one selected key each, which is drawn once."""
    return replace(plan, keys=tuple(sorted(plan.keys, key=lambda key: key.name not in plan.selected)))


def check_block_groups(plan: ReleasePlan, _context: RuleContext) -> ReleasePlan:
    gather = plan.gather
    parts = [part for part in plan.parts if isinstance(part, SumBlocks)]
    for measure, part in zip(_blockwise_measures(plan), parts, strict=True):
        check_groups_reached(measure, part, gather)
    return plan


def add_repeated_row_notices(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    """Said of the statement alone: a row that counts many times uses up what its unit may contribute."""
    if not any(isinstance(part, Sum) and isinstance(part.input, Weigh) for part in plan.parts):
        return plan
    times = [
        (len(plan.aggregate.sets), "is in {} grouping sets"),
        (max_row_multiplication(plan.rows), "may meet {} public rows"),
    ]
    notices = (
        f"each row {words.format(number)}, and a unit counts like at most {context.policy.rows} rows over all of them"
        for number, words in times
        if number > 1
    )
    return replace(plan, notices=(*plan.notices, *notices))


def request_norms(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    """Which histograms choose what is not declared."""
    assert plan.unfiltered is not None
    return replace(plan, norms=find_norm_requests(plan.gather, plan.unfiltered, context.policy.units))


def drop_needless_clips(plan: ReleasePlan, _context: RuleContext) -> ReleasePlan:
    gather = drop_clips(plan.gather)
    return replace(plan, parts=gather.parts, selection=gather.selection)


# --- the order -------------------------------------------------------------------------------------------------------

ROW_RULES: tuple[RowRule, ...] = (
    scan_tables,
    push_conditions,
    join_by_unit,
    limit_public_joins,
    limit_joins,
    limit_work,
    make_unit_aggregates_exact,
    make_total,
)
BLOCK_ROW_RULES: tuple[RowRule, ...] = (refuse_grouping_sets, carry_row_hash, *ROW_RULES)
GROUP_RULES: tuple[ReleaseRule, ...] = (find_groups, narrow_rows, expand_grouping_sets)
LINEAR_RULES: tuple[ReleaseRule, ...] = (
    *GROUP_RULES,
    bundle_measures,
    sum_bundles,
    sum_distinct_values,
    count_distinct_units,
    average_blocks,
    count_selection_units,
    order_selected_first,
    check_block_groups,
    add_repeated_row_notices,
    request_norms,
    drop_needless_clips,
)
QUANTILE_RULES: tuple[ReleaseRule, ...] = (*GROUP_RULES, bin_values, count_rows_by_bin, list_bins, request_norms)
BLOCK_MEDIAN_RULES: tuple[ReleaseRule, ...] = (*GROUP_RULES, count_blocks_by_bin, list_bins)
POSTERIOR_RULES: tuple[ReleaseRule, ...] = (*GROUP_RULES, weigh_truth_values)


def rewrite_plan(aggregate: Aggregate, context: RuleContext) -> RewrittenPlan:
    """Of groups and linear measures."""
    plan = _rewrite(aggregate, LINEAR_RULES, context)
    return RewrittenPlan(plan.gather, plan.recipes, plan.notices, plan.norms)


def rewrite_bins(aggregate: Aggregate, context: RuleContext) -> BinSelection:
    """Of a quantile, an extreme or a median of blocks, which is the only measure: a bin is chosen in every group."""
    (measure,) = aggregate.measures
    plan = _rewrite(aggregate, BLOCK_MEDIAN_RULES if isinstance(measure, Blockwise) else QUANTILE_RULES, context)
    assert plan.bins is not None
    return BinSelection(plan.gather, plan.bins, plan.targets, plan.local, plan.norms)


def rewrite_posterior(aggregate: Aggregate, context: RuleContext) -> RewrittenPlan:
    """Of draws from a posterior, which is the only measure."""
    return RewrittenPlan(_rewrite(aggregate, POSTERIOR_RULES, context).gather, ())


def _rewrite(aggregate: Aggregate, rules: tuple[ReleaseRule, ...], context: RuleContext) -> ReleasePlan:
    in_blocks = any(isinstance(measure, Blockwise) for measure in aggregate.measures)
    rewritten = apply_rules(BLOCK_ROW_RULES if in_blocks else ROW_RULES, aggregate, context)
    return apply_rules(rules, ReleasePlan(aggregate, rewritten, unfiltered=rewritten.input), context)
