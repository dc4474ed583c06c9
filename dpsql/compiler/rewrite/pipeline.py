"""The rules in order: from the aggregate that was asked to the plan that runs.

Every rule is a function (plan, context) -> plan, and `apply_rules` applies one after the other. A rule that has nothing
to do returns the plan as it is; some only look at it, and refuse what must not run.

    ROW_RULES                     which rows there are: of an `Aggregate`
      scan_tables                 all below knows domains, unique keys and units of the columns that are read
      push_conditions             before the limits: a condition within a join tells how many rows meet
      join_by_unit                before the limits: they look at the joins that run
      count_joined_rows           before the limits: it says how many public rows a private one meets
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
      add_repeated_row_notices, add_grouping_set_notice, add_group_cap_notice, add_assumed_bound_notice
      request_norms               of the plan with all its parts: which histograms choose what is not declared
      drop_needless_clips         last: it must know all that reads a column

    QUANTILE_RULES                a bin is chosen in every group: bin_values, count_rows_by_bin, list_bins,
                                  request_norms
    BLOCK_MEDIAN_RULES            the same of blocks: count_blocks_by_bin, list_bins
    POSTERIOR_RULES               a share is drawn in every group: weigh_truth_values, request_norms

The best of some values, and the most frequent ones, are LINEAR_RULES with the value as one more key
(`score_candidates`); the rows of a study are those of ROW_RULES, coded (`weighted_rows`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from dpsql.compiler.analysis.domains import count_distinct_domain, derive_domains, domain_of
from dpsql.compiler.analysis.public_rows import max_row_multiplication
from dpsql.compiler.analysis.units import rows_are_groups
from dpsql.compiler.plan.aggregate import (
    Aggregate,
    CountUnits,
    ListedHole,
    ListedSets,
    Sum,
    SumBlocks,
    Weigh,
    needs_norm,
)
from dpsql.compiler.plan.clipped_sums import ClippedCell, ClippedSum, Norm
from dpsql.compiler.plan.estimators import BySet, Recipe, map_terms, recipe_cells
from dpsql.compiler.plan.expressions import ROW, Column, Expr
from dpsql.compiler.plan.measures import Blockwise, Extreme, Measure
from dpsql.compiler.plan.relations import SET_COLUMN, Field, Filter, Named, Project, row_fields
from dpsql.compiler.plan.walk import has_joins, map_measure, measure_args, origin_of
from dpsql.compiler.rewrite.automatic_norms import clip_units, find_norm_requests
from dpsql.compiler.rewrite.bin_quantiles import bin_values, count_blocks_by_bin, count_rows_by_bin, list_bins
from dpsql.compiler.rewrite.bound_contributions import (
    cap_by_domain,
    cap_distinct_values,
    cap_groups,
    capped_units_form,
    count_units,
    select_groups,
    weigh_units,
)
from dpsql.compiler.rewrite.count_matches import count_matches
from dpsql.compiler.rewrite.form_blocks import carry_row_hash, check_groups_reached, refuse_grouping_sets, sum_blocks
from dpsql.compiler.rewrite.form_bundles import DistinctSums, UnitCount, form_bundles
from dpsql.compiler.rewrite.grids import drop_clips
from dpsql.compiler.rewrite.limit_joins import limit_joins, limit_public_joins, limit_work
from dpsql.compiler.rewrite.list_groups import expand_sets, list_groups, rows_of_set
from dpsql.compiler.rewrite.make_total import make_total, make_unit_aggregates_exact
from dpsql.compiler.rewrite.release_plan import BinSelection, ReleasePlan, RewrittenPlan, RuleContext
from dpsql.compiler.rewrite.scan_tables import join_by_unit, push_conditions, scan_tables
from dpsql.compiler.rewrite.score_candidates import weigh_truth_values
from dpsql.privacy.exponential import OVERSHOOT
from dpsql.types import BIGINT

SETS_APART_NOTICE = "each grouping set has noise of its own: a total need not be the sum of its parts"
NULLS_DROPPED_NOTICE = "rows for which a computed key is NULL are in no group; COALESCE(…) within the key keeps them"

Plan = TypeVar("Plan", Aggregate, ReleasePlan)
RowRule = Callable[[Aggregate, RuleContext], Aggregate]
ReleaseRule = Callable[[ReleasePlan, RuleContext], ReleasePlan]


def apply_rules(rules: tuple[Callable[[Plan, RuleContext], Plan], ...], plan: Plan, context: RuleContext) -> Plan:
    for rule in rules:
        plan = rule(plan, context)
    return plan


def count_joined_rows(aggregate: Aggregate, context: RuleContext) -> Aggregate:
    return count_matches(aggregate, context) if has_joins(aggregate.input) else aggregate


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
    automatic = context.policy.automatic and context.policy.own_norms
    bundles = form_bundles(linear, plan.rows, context.policy.rows, automatic=automatic)
    return replace(plan, bundles=bundles, recipes=bundles.recipes)


def sum_bundles(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    bundles, policy = plan.bundles.bundles, context.policy
    weighed = [weigh_units(plan.rows, plan.key_names, bundles, policy)] if bundles else []
    if plan.aggregate.sets and plan.bundles.clipped:
        return _clip_in_each_set(plan.with_parts(weighed), policy.norm)
    if not plan.bundles.clipped:
        return plan.with_parts(weighed)
    return plan.with_parts([*weighed, *clip_units(plan.rows, plan.key_names, plan.bundles.clipped, policy.norm)])


def _clip_in_each_set(plan: ReleasePlan, norm: Norm) -> ReleasePlan:
    """Cells of each grouping set, with norms of their own: what a unit has in a total may be far more, by an L2 norm,
    than what it has in the parts, and no set scales another down.

    Stability: a set's cells are sums over the rows of that set alone, and 0 in the groups of others.
    """
    sets, clipped = plan.aggregate.sets, plan.bundles.clipped
    names = {cell.cell for cells in clipped for cell in cells}

    def name_in_set(cell: str, number: int) -> str:
        return f"{cell}_set{number}" if cell in names else cell

    def rename_in_set(cell: ClippedCell, number: int) -> ClippedCell:
        count, beside = (None if name is None else name_in_set(name, number) for name in (cell.count, cell.beside))
        return replace(cell, cell=name_in_set(cell.cell, number), count=count, beside=beside)

    parts: list[ClippedSum] = []
    for number in range(len(sets)):
        rows = rows_of_set(plan.rows, plan.keys, sets, plan.never_null, number)
        renamed = tuple(tuple(rename_in_set(c, number) for c in cells) for cells in clipped)
        parts += clip_units(rows, plan.key_names, renamed, norm)

    def recipe_by_set(recipe: Recipe) -> Recipe:
        if not recipe_cells(recipe) & names:
            return recipe
        of_sets = tuple(
            map_terms(recipe, lambda terms, n=number: tuple((name_in_set(c, n), x) for c, x in terms))  # type: ignore[misc]
            for number in range(len(sets))
        )
        return BySet(of_sets, recipe.type)

    return replace(plan.with_parts(parts), recipes=tuple(map(recipe_by_set, plan.recipes)))


def sum_distinct_values(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    def make_part(sums: DistinctSums) -> Sum:
        policy = cap_by_domain(context.policy, _count_pairs(plan, sums.columns))
        pairs = cap_distinct_values(plan.rows, plan.key_names, sums.columns, policy)
        return Sum(pairs, plan.key_names, sums.bundles)

    return plan.with_parts(map(make_part, plan.bundles.distinct))


def _count_pairs(plan: ReleasePlan, columns: tuple[str, ...]) -> int | None:
    """How many pairs of a group and a value there can be, where groups are listed and values have a domain."""
    values = count_distinct_domain(plan.rows, columns)
    if values is None or plan.selected or (plan.listed is None and plan.keys):
        return None
    if plan.listed is not None and any(isinstance(factor, ListedHole | ListedSets) for factor in plan.listed.factors):
        return None
    return values * (plan.listed.count if plan.listed is not None else 1)


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
    times = max_row_multiplication(plan.rows) if has_joins(plan.rows) else 1
    if times == 1:
        return plan
    notice = (
        f"each row may meet {times} public rows, and a unit counts like at most {context.policy.rows} rows over all of "
        "them"
    )
    return replace(plan, notices=(*plan.notices, notice))


def add_group_cap_notice(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    """Said of the plan alone: a unit with more groups than are counted in full is scaled down in all of them."""
    policy = cap_groups(plan.rows, plan.key_names, context.policy)
    weighed = [part.input for part in plan.parts if isinstance(part, Sum) and isinstance(part.input, Weigh)]
    if not weighed or policy.rows is None or not rows_are_groups(plan.rows, plan.key_names):
        return plan
    groups = policy.rows if policy.norm is Norm.L1 else policy.rows**2
    setting = "contributions.rows" if policy.rows == context.policy.rows else "contributions.groups"
    notice = (
        f"a unit counts in full in at most {groups} groups ({setting}); with more, it is scaled down in all of them"
    )
    return replace(plan, notices=(*plan.notices, notice))


def add_assumed_bound_notice(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    """Said of the plan alone: where no norm takes the place of declared rows, they bound counts and sums per unit."""
    rows = context.policy.rows
    if rows is None:
        return plan
    clipped = {cell.arg for part in plan.parts if isinstance(part, ClippedSum) for cell in part.cells}
    clipped |= {arg for arg, of in plan.bundles.shared.items() if of.base in clipped}
    args = [arg for measure in plan.measures for arg in measure_args(measure) if arg not in clipped]
    assumed, own = derive_domains(plan.rows, rows), derive_domains(plan.rows)
    if not any(
        arg.type.is_number and domain_of(arg, assumed).is_bounded and not domain_of(arg, own).is_bounded for arg in args
    ):
        return plan
    notice = (
        f"counts and sums of one unit's rows are moved to what {rows} rows can give (contributions.rows); "
        "CLIP(…) gives them bounds of their own"
    )
    return replace(plan, notices=(*plan.notices, notice))


def add_grouping_set_notice(plan: ReleasePlan, _context: RuleContext) -> ReleasePlan:
    if len(plan.aggregate.sets) < 2 or not plan.measures:
        return plan
    return replace(plan, notices=(*plan.notices, SETS_APART_NOTICE))


def request_norms(plan: ReleasePlan, context: RuleContext) -> ReleasePlan:
    """Which histograms choose what is not declared."""
    assert plan.unfiltered is not None
    if not any(map(needs_norm, plan.gather.all_parts)):
        return plan
    return replace(plan, norms=find_norm_requests(plan.gather, plan.unfiltered, context.policy.units))


def drop_needless_clips(plan: ReleasePlan, _context: RuleContext) -> ReleasePlan:
    gather = drop_clips(plan.gather)
    return replace(plan, parts=gather.parts, selection=gather.selection)


# --- the order -------------------------------------------------------------------------------------------------------

ROW_RULES: tuple[RowRule, ...] = (
    scan_tables,
    push_conditions,
    join_by_unit,
    count_joined_rows,
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
    add_grouping_set_notice,
    add_group_cap_notice,
    add_assumed_bound_notice,
    request_norms,
    drop_needless_clips,
)
QUANTILE_RULES: tuple[ReleaseRule, ...] = (
    *GROUP_RULES, add_assumed_bound_notice, bin_values, count_rows_by_bin, list_bins, request_norms,
)  # fmt: skip
BLOCK_MEDIAN_RULES: tuple[ReleaseRule, ...] = (*GROUP_RULES, count_blocks_by_bin, list_bins)
POSTERIOR_RULES: tuple[ReleaseRule, ...] = (*GROUP_RULES, weigh_truth_values, request_norms)


def rewrite_plan(aggregate: Aggregate, context: RuleContext) -> RewrittenPlan:
    """Of groups and linear measures."""
    plan = _rewrite(aggregate, LINEAR_RULES, context)
    form = (*plan.bundles.form, *capped_units_form(plan.gather, context.policy))
    return RewrittenPlan(plan.gather, plan.recipes, plan.notices, plan.norms, form)


def rewrite_bins(aggregate: Aggregate, context: RuleContext) -> BinSelection:
    """Of a quantile, an extreme or a median of blocks, which is the only measure: a bin is chosen in every group."""
    (measure,) = aggregate.measures
    plan = _rewrite(aggregate, BLOCK_MEDIAN_RULES if isinstance(measure, Blockwise) else QUANTILE_RULES, context)
    assert plan.bins is not None
    overshoot = (measure.overshoot if isinstance(measure, Extreme) else None) or OVERSHOOT
    return BinSelection(plan.gather, plan.bins, plan.targets, plan.local, plan.norms, overshoot, plan.notices)


def rewrite_posterior(aggregate: Aggregate, context: RuleContext) -> RewrittenPlan:
    """Of draws from a posterior, which is the only measure."""
    plan = _rewrite(aggregate, POSTERIOR_RULES, context)
    return RewrittenPlan(plan.gather, (), norms=plan.norms)


def _rewrite(aggregate: Aggregate, rules: tuple[ReleaseRule, ...], context: RuleContext) -> ReleasePlan:
    in_blocks = any(isinstance(measure, Blockwise) for measure in aggregate.measures)
    rewritten = apply_rules(BLOCK_ROW_RULES if in_blocks else ROW_RULES, aggregate, context)
    return apply_rules(rules, ReleasePlan(aggregate, rewritten, unfiltered=rewritten.input), context)
