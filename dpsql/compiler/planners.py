"""Which steps a release is made of: one planner for each family of measures. Pure (law 6).

    linear      COUNT, SUM, AVG, VAR, CORR, BLOCKWISE by its mean…: one step for all of them, which has the groups
    selection   quantiles, MIN, MAX, BLOCKWISE by its median: a step each, which chooses a bin in every group
    counted     MODE and other frequent values, posteriors of shares: a step of counts per group and value
    ranked      PRIVATE_ARGMAX: a step of scores per group and value; one before it selects values that are not public
    posterior   POSTERIOR_SAMPLE: a step of draws in every group
    response    RANDOMIZED: a step of weighted rows, with an epsilon of its own

Steps that choose within groups read the groups of the first step, where those are selected, by a hole. A release whose
answer the schema has, such as listed groups, has no step (`releases_needed`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import assert_never

from dpsql.compiler.analysis.canonical import canonicalize, canonicalize_condition, inline_projects
from dpsql.compiler.analysis.domains import derive_domains
from dpsql.compiler.analysis.key_values import evaluate_for_values, list_few_values
from dpsql.compiler.analysis.sensitivity import neighboring_of
from dpsql.compiler.calibrate.calibrate import CalibratedPlan, NoiseKind, calibrate_response
from dpsql.compiler.calibrate.local_sensitivity import apply_median_setting, apply_overshoot
from dpsql.compiler.catalog.variables import Identity
from dpsql.compiler.compiled import (
    CountedValues,
    GroupCount,
    MeasureSource,
    PublicStep,
    RandomizedResponses,
    RankedValues,
    SelectedBins,
    StaticRows,
    TableStep,
    hash_plan,
    list_declarations,
    source_identities,
)
from dpsql.compiler.empty_groups import (
    COUNT_FORM,
    CountedPlan,
    count_alone,
    count_beside,
    find_asked_count,
    find_times,
    may_leave_out,
)
from dpsql.compiler.plan.aggregate import Aggregate, Gather, Listed, ListedHole
from dpsql.compiler.plan.clipped_sums import Norm
from dpsql.compiler.plan.estimators import Recipe
from dpsql.compiler.plan.expressions import Expr, split_conjuncts
from dpsql.compiler.plan.measures import (
    Best,
    Blockwise,
    ConjugatePosterior,
    CountDistinctUnits,
    CountRows,
    CountValues,
    DistinctValues,
    Extreme,
    Frequent,
    MeanValues,
    Measure,
    PairValues,
    Posterior,
    Quantile,
    SharesPosterior,
    SumValues,
    Truth,
    VarianceValues,
    needs_own_step,
)
from dpsql.compiler.plan.relations import (
    Expand,
    Filter,
    Join,
    JoinKind,
    Mark,
    PerUnit,
    Project,
    PublicScan,
    PublicTable,
    Rows,
    RowsHole,
    Scan,
    SetKind,
    SetOperation,
    Table,
    UnitWindow,
    row_fields,
)
from dpsql.compiler.plan.steps import Hole, ReleaseColumn, Shape
from dpsql.compiler.plan.walk import columns_of
from dpsql.compiler.postprocess.postgres_semantics import read_where_positive, render_postprocessing, tables_read_by
from dpsql.compiler.render.release import find_runtime_parameters, render_release
from dpsql.compiler.rewrite.automatic_norms import NormRequest
from dpsql.compiler.rewrite.bound_contributions import ContributionPolicy, capped_units_form
from dpsql.compiler.rewrite.debias import debias, recorded_notices
from dpsql.compiler.rewrite.limit_joins import limit_conditions
from dpsql.compiler.rewrite.list_groups import is_list_only, list_declared_groups, list_form
from dpsql.compiler.rewrite.pipeline import rewrite_bins, rewrite_plan, rewrite_posterior
from dpsql.compiler.rewrite.release_plan import BinSelection, RewrittenPlan, RuleContext
from dpsql.compiler.rewrite.score_candidates import (
    count_by_value,
    rank_candidates,
    release_key_columns,
    score_by_value,
    share_bins_of,
)
from dpsql.compiler.rewrite.snap_times import snap_times
from dpsql.compiler.rewrite.weighted_rows import prepare_randomized_rows
from dpsql.compiler.settings import Settings
from dpsql.compiler.split.blocks import BoundRelease, BoundRuntimeParameter, PublicRead, gives_out_rows
from dpsql.compiler.split.runtime_parameters import parameter_domain, scan_declared_tables
from dpsql.compiler.split.split import SplitQuery
from dpsql.errors import Unsupported
from dpsql.schema.dummy_rows import make_dummy_rows
from dpsql.schema.model import Domain, Resolved, Schema
from dpsql.types import DOUBLE

MAX_SELECTED_GROUPS = 10_000
"""Selected groups for which a quantile is chosen."""

KEYS_PARAMETER = "keys"
"""The hole that a choice's groups come from, where they were selected."""


@dataclass(frozen=True)
class StepDraft:
    """A step before its share of the loss is known."""

    name: str
    plan_hash: str
    aggregate: Aggregate
    rewritten: RewrittenPlan | None
    choice: BinSelection | None
    holes: tuple[Hole, ...]
    after: tuple[int, ...]
    scored: Best | Posterior | None = None
    study: CalibratedPlan | None = None  # its loss is its own
    counts_groups: bool = False  # it is a count by which empty groups are left out, and nothing else
    sources: str = ""  # what stands behind the names in its holes

    @property
    def norms(self) -> tuple[NormRequest, ...]:
        """The histograms that choose what is not declared."""
        if self.choice is not None:
            return self.choice.norms
        return self.rewritten.norms if self.rewritten is not None else ()


@dataclass(frozen=True)
class PublicGroups:
    """The groups of a step, where they are public; its holes, what they read, and what stands behind their names."""

    listed: Listed | None
    holes: tuple[Hole, ...]
    after: tuple[int, ...]
    sources: str
    selected: bool = False


@dataclass(frozen=True)
class StatementDraft:
    """What planners read, and the steps, tables and notices that they add to."""

    resolved: Resolved
    settings: Settings
    identity: Identity
    pilot: bool
    reads: Mapping[str, PublicRead]  # what the names of public tables stand for
    parts: SplitQuery
    steps: list[StepDraft] = field(default_factory=list)
    tables: list[TableStep] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @property
    def context(self) -> RuleContext:
        return RuleContext(self.resolved, contribution_policy(self.settings, self.resolved))

    @property
    def score_context(self) -> RuleContext:
        """Of scores, which one row moves by a known amount: caps of rows are chosen for them, no norms of sums."""
        return replace(self.context, policy=replace(self.context.policy, own_norms=False))

    def add_step(self, step: StepDraft) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def snap_times(self, aggregate: Aggregate) -> Aggregate:
        if not self.resolved.schema.has_snapped_times:
            return aggregate
        snapped = snap_times(aggregate, self.resolved.schema)
        self.notices.extend(snapped.notices)
        return snapped.aggregate

    def debias(self, aggregate: Aggregate, rewritten: RewrittenPlan) -> tuple[Recipe, ...]:
        """The recipe of each measure, debiased where it counts randomized answers."""
        if not self.resolved.schema.has_randomized_answers:
            return rewritten.recipes
        debiased = debias(aggregate, rewritten, self.resolved.schema)
        self.notices.extend(debiased.notices)
        return debiased.recipes

    def note_recorded(self, aggregate: Aggregate) -> None:
        """What must be said of randomized answers where nothing is debiased."""
        if self.resolved.schema.has_randomized_answers:
            self.notices.extend(recorded_notices(aggregate, self.resolved.schema))

    def hash_plan(
        self,
        aggregate: Aggregate,
        holes: tuple[Hole, ...],
        sources: str,
        listed: Listed | None,
        form: tuple[str, ...] = (),
    ) -> str:
        """`listed` are its groups; `form` says how cells are formed, where older versions formed others."""
        declared = [*list_declarations(aggregate, self.resolved, self.settings), *form, *list_form(listed)]
        return hash_plan(aggregate, declared, holes, sources, pilot=self.pilot)


@dataclass(frozen=True)
class _ReleaseDraft:
    """What the measures of one release share."""

    statement: StatementDraft
    aggregate: Aggregate
    ungrouped: PublicGroups  # its holes alone
    groups: PublicGroups
    linear: Iterator[MeasureSource]  # in the order of linear measures
    counted: dict[str, int] = field(default_factory=dict)  # steps of counts, by the hash of their plan

    def with_measure(self, measure: Measure) -> Aggregate:
        return replace(self.aggregate, measures=(measure,))


def contribution_policy(settings: Settings, resolved: Resolved) -> ContributionPolicy:
    norm = Norm.L2 if settings.chosen_noise is NoiseKind.GAUSSIAN else Norm.L1
    return ContributionPolicy(settings.rows, settings.groups, norm, True, resolved.schema.privacy.units)


def plan_release(release: BoundRelease, statement: StatementDraft) -> TableStep:
    """Adds the steps of a release: one for groups and linear measures, one each for quantiles and counts of values."""
    if release.epsilon is not None:
        return plan_response(release, release.epsilon, statement)
    aggregate = canonicalize(statement.snap_times(canonicalize(release.aggregate)))
    limit_conditions(aggregate)
    holes = tuple(_render_parameter(hole) for hole in release.holes)
    after = _steps_read(release.holes, statement.tables)
    sources = source_identities(
        release.holes, statement.tables, after, statement.reads, statement.resolved.schema, statement.identity
    )
    ungrouped = PublicGroups(None, holes, after, sources)
    hides = may_leave_out(release, aggregate, statement.settings)
    main = plan_linear(release.name, aggregate, ungrouped, statement, hides)
    groups = _list_public_groups(release.name, main.index, main.gather, ungrouped)
    draft = _ReleaseDraft(statement, aggregate, ungrouped, groups, main.measures)
    measures = tuple(
        _plan_measure(f"{release.name}_m{number}", measure, draft)
        for number, measure in enumerate(aggregate.measures, 1)
    )
    table = TableStep(release.name, main.index, release.columns, measures)
    return table if main.times is None else _with_group_count(table, aggregate, main)


def _with_group_count(table: TableStep, aggregate: Aggregate, main: _MainStep) -> TableStep:
    """The table with the count that its groups are judged by, if there is one."""
    place, times = find_asked_count(aggregate), main.times
    assert times is not None
    if place is not None:
        return replace(table, counted=GroupCount(place, times, aggregate.sets, asked=True, alone=False, added=False))
    if main.count is None:
        return table
    alone = main.count.step != main.index
    count = GroupCount(len(table.measures), times, aggregate.sets, asked=False, alone=alone, added=main.added)
    return replace(table, measures=(*table.measures, main.count), counted=count)


def _plan_measure(name: str, measure: Measure, draft: _ReleaseDraft) -> MeasureSource:
    match measure:
        case Quantile() | Extreme():
            return plan_selection(name, measure, draft)
        case Blockwise():
            return plan_selection(name, measure, draft) if needs_own_step(measure) else next(draft.linear)
        case Frequent() | SharesPosterior():
            return plan_counted(name, measure, draft)
        case Best():
            return plan_ranked(name, measure, draft)
        case Posterior():
            return plan_posterior(name, measure, draft)
        case (
            CountRows()
            | CountValues()
            | CountDistinctUnits()
            | SumValues()
            | MeanValues()
            | DistinctValues()
            | VarianceValues()
            | PairValues()
            | Truth()
            | ConjugatePosterior()
        ):
            return next(draft.linear)


# --- linear ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _MainStep:
    """The step of groups and linear measures. `index` is None where there is neither."""

    index: int | None
    gather: Gather
    measures: Iterator[MeasureSource]
    times: frozenset[str] | None = None  # of groups that are judged by a count: the keys that these are judged along
    count: MeasureSource | None = None  # that count, where the statement does not ask for one
    added: bool = False  # it has cells beside those that are asked for


def plan_linear(
    name: str, aggregate: Aggregate, ungrouped: PublicGroups, statement: StatementDraft, hides: bool
) -> _MainStep:
    """`hides`: empty groups are to be left out of the listed ones."""
    linear = tuple(m for m in aggregate.measures if not needs_own_step(m))
    main = replace(aggregate, measures=linear)
    rewritten = rewrite_plan(main, statement.context)
    shows_rows = partial(gives_out_rows, statement.parts.post, name)
    times = find_times(aggregate, rewritten.gather, shows_rows) if hides else None
    counted = None
    if times is not None and find_asked_count(main) is None:
        counted = count_beside(main, rewritten, statement.context, neighboring_of(statement.resolved))
    recipes = statement.debias(main, rewritten) if counted is None else _debias_asked(counted, statement)
    if counted is not None and not counted.same:
        main, rewritten = counted.aggregate, counted.rewritten
    index: int | None = None
    if aggregate.keys or linear or not aggregate.measures:
        listed = rewritten.gather.listed
        plan_hash = statement.hash_plan(main, ungrouped.holes, ungrouped.sources, listed, rewritten.form)
        step = StepDraft(name, plan_hash, main, rewritten, None, ungrouped.holes, ungrouped.after)
        index = statement.add_step(replace(step, sources=ungrouped.sources))
    if counted is not None:
        assert index is not None
        count: MeasureSource | None = MeasureSource(index, _debias_count(counted, statement))
    elif times is not None and find_asked_count(main) is None and rewritten.gather.selection is None:
        count = _count_groups(f"{name}_groups", aggregate, ungrouped, statement)
    else:  # beside selected keys, a count of its own would select others
        count = None
    added = count is not None and (counted is None or not counted.same)
    return _MainStep(index, rewritten.gather, _linear_sources(index, recipes), times, count, added)


def _debias_asked(counted: CountedPlan, statement: StatementDraft) -> tuple[Recipe, ...]:
    """The recipes of the measures that were asked for: of the count beside them nothing is told."""
    asked = [index for index in range(len(counted.aggregate.measures)) if index != counted.place]
    aggregate = replace(counted.aggregate, measures=tuple(counted.aggregate.measures[index] for index in asked))
    recipes = tuple(counted.rewritten.recipes[index] for index in asked)
    return statement.debias(aggregate, replace(counted.rewritten, recipes=recipes))


def _debias_count(counted: CountedPlan, statement: StatementDraft) -> Recipe:
    if not statement.resolved.schema.has_randomized_answers:
        return counted.rewritten.recipes[counted.place]
    return debias(counted.aggregate, counted.rewritten, statement.resolved.schema).recipes[counted.place]


def _count_groups(name: str, aggregate: Aggregate, ungrouped: PublicGroups, statement: StatementDraft) -> MeasureSource:
    """A release of its own that counts the rows of groups; releases of the same rows and keys have one."""
    counted = count_alone(aggregate, statement.context)
    form = (*counted.rewritten.form, *COUNT_FORM)
    listed = counted.rewritten.gather.listed
    plan_hash = statement.hash_plan(counted.aggregate, ungrouped.holes, ungrouped.sources, listed, form)
    recipe = _debias_count(counted, statement)
    for index, step in enumerate(statement.steps):
        if step.counts_groups and (step.plan_hash, step.after) == (plan_hash, ungrouped.after):
            return MeasureSource(index, recipe)
    step = StepDraft(
        name, plan_hash, counted.aggregate, counted.rewritten, None, ungrouped.holes, ungrouped.after,
        sources=ungrouped.sources, counts_groups=True,
    )  # fmt: skip
    return MeasureSource(statement.add_step(step), recipe)


def _linear_sources(index: int | None, recipes: tuple[Recipe, ...]) -> Iterator[MeasureSource]:
    for recipe in recipes:
        assert index is not None
        yield MeasureSource(index, recipe)


def _list_public_groups(table: str, index: int | None, main: Gather, base: PublicGroups) -> PublicGroups:
    """Public groups: those listed, or those that the step at `index`, which is `table`, has released."""
    if main.selection is None or index is None:
        return replace(base, listed=main.listed, selected=main.selection is not None)
    rows = RowsHole(
        KEYS_PARAMETER, main.keys, tuple(parameter_domain(key.type) for key in main.keys), MAX_SELECTED_GROUPS
    )
    listed = Listed((ListedHole(main.keys, rows, tuple(key.name for key in main.keys)),))
    columns = ", ".join(f'"{key.name}"' for key in main.keys)
    source = f"SELECT DISTINCT {columns} FROM {table}"
    keys = Hole(KEYS_PARAMETER, Shape.ROWS, main.keys, MAX_SELECTED_GROUPS, source, rows.domains)
    return PublicGroups(listed, (*base.holes, keys), (*base.after, index), base.sources, selected=True)


# --- selection -------------------------------------------------------------------------------------------------------


def plan_selection(name: str, measure: Quantile | Extreme | Blockwise, draft: _ReleaseDraft) -> MeasureSource:
    """A quantile is chosen in public groups."""
    statement, groups = draft.statement, draft.groups
    settings = statement.settings
    measure = apply_overshoot(apply_median_setting(measure, settings.median, settings.proposal), settings.overshoot)
    alone = draft.with_measure(measure)
    choice = rewrite_bins(alone, replace(statement.context, listed=groups.listed, selected=groups.selected))
    plan_hash = statement.hash_plan(alone, groups.holes, groups.sources, groups.listed)
    step = StepDraft(name, plan_hash, alone, None, choice, groups.holes, groups.after, sources=groups.sources)
    index = statement.add_step(step)
    statement.note_recorded(alone)
    statement.notices.extend(choice.notices)
    container = measure.container if isinstance(measure, Quantile) else None
    return MeasureSource(index, SelectedBins(choice.bins, container))


# --- counted ---------------------------------------------------------------------------------------------------------


def plan_counted(name: str, measure: Frequent | SharesPosterior, draft: _ReleaseDraft) -> MeasureSource:
    """The counts of a column's values; the same counts are paid once, whatever is read of them."""
    statement, holes, after = draft.statement, draft.ungrouped.holes, draft.ungrouped.after
    counts = count_by_value(draft.aggregate, measure)
    rewritten = rewrite_plan(counts, statement.context)
    plan_hash = statement.hash_plan(counts, holes, draft.ungrouped.sources, rewritten.gather.listed)
    if plan_hash not in draft.counted:
        step = StepDraft(name, plan_hash, counts, rewritten, None, holes, after, sources=draft.ungrouped.sources)
        draft.counted[plan_hash] = statement.add_step(step)
    if isinstance(measure, SharesPosterior):  # of what was recorded: it knows the release's noise only
        statement.note_recorded(counts)
        (recipe,) = rewritten.recipes
    else:
        (recipe,) = statement.debias(counts, rewritten)
    return MeasureSource(draft.counted[plan_hash], CountedValues(measure, recipe))


# --- ranked, and posteriors ------------------------------------------------------------------------------------------


def plan_ranked(name: str, measure: Best, draft: _ReleaseDraft) -> MeasureSource:
    """The best of public values: those listed, or those that a step of their own selects first."""
    statement, groups, context = draft.statement, draft.ungrouped, draft.statement.score_context
    candidates = score_by_value(draft.aggregate, measure)
    rewritten = rewrite_plan(candidates, context)
    if rewritten.gather.selection is not None:
        keys, table = replace(candidates, measures=()), f"{name}_keys"
        selected = rewrite_plan(keys, context)
        plan_hash = statement.hash_plan(keys, groups.holes, groups.sources, selected.gather.listed)
        index = statement.add_step(StepDraft(table, plan_hash, keys, selected, None, groups.holes, groups.after))
        statement.tables.append(TableStep(table, index, release_key_columns(selected.gather), ()))
        groups = _list_public_groups(table, index, selected.gather, groups)
    cells = rank_candidates(rewritten, measure, groups.listed)
    return MeasureSource(_add_scored(name, measure, draft, groups, cells), RankedValues(measure))


def plan_posterior(name: str, measure: Posterior, draft: _ReleaseDraft) -> MeasureSource:
    context = replace(draft.statement.score_context, listed=draft.groups.listed)
    cells = rewrite_posterior(draft.with_measure(measure), context)
    index = _add_scored(name, measure, draft, draft.groups, cells)
    return MeasureSource(index, SelectedBins(share_bins_of(measure), measure.container))


def _add_scored(
    name: str, measure: Best | Posterior, draft: _ReleaseDraft, groups: PublicGroups, cells: RewrittenPlan
) -> int:
    statement, alone = draft.statement, draft.with_measure(measure)
    statement.note_recorded(alone)
    form = capped_units_form(cells.gather, statement.score_context.policy)
    plan_hash = statement.hash_plan(alone, groups.holes, groups.sources, cells.gather.listed, form)
    return statement.add_step(StepDraft(name, plan_hash, alone, cells, None, groups.holes, groups.after, measure))


# --- randomized response ---------------------------------------------------------------------------------------------


def plan_response(release: BoundRelease, epsilon: Fraction, statement: StatementDraft) -> TableStep:
    """Randomized answers of all units: each release loses its own epsilon."""
    aggregate = canonicalize(release.aggregate)
    tallied = prepare_randomized_rows(aggregate, statement.resolved)
    (axis,) = tallied.axes
    study = calibrate_response(tallied.tally, axis, epsilon, neighboring_of(statement.resolved))
    digest = statement.hash_plan(aggregate, (), repr(("randomized", epsilon, axis)), None)
    statement.note_recorded(aggregate)
    index = statement.add_step(StepDraft(release.name, digest, aggregate, None, None, (), (), study=study))
    answers = tuple(MeasureSource(index, RandomizedResponses(axis, counts)) for counts in (False, True))
    return TableStep(release.name, index, release.columns, answers)


# --- holes -----------------------------------------------------------------------------------------------------------


def _render_parameter(hole: BoundRuntimeParameter) -> Hole:
    return Hole(
        hole.name, hole.shape, hole.columns, hole.most, render_postprocessing(hole.source), hole.domains, hole.unique
    )


def _steps_read(holes: tuple[BoundRuntimeParameter, ...], tables: list[TableStep]) -> tuple[int, ...]:
    """The places of all steps that the holes' sources read."""
    read = {name for hole in holes for name in tables_read_by(hole.source)}
    return tuple(sorted({index for table in tables if table.name in read for index in table.steps}))


# --- answers that need no release ------------------------------------------------------------------------------------
# The schema has them: listed groups and dummy rows.
#
# Law: nothing here reads a private row, and nothing is charged for it. What is `StaticRows` is made when a statement is
# compiled, which is pure; what public tables list is read from them, as any statement over public tables is.


LISTED_GROUPS_NOTICE = "the groups are known without private rows, of which none was read; some of them may have none"

SEEN_GROUPS_NOTICE = (
    "groups in which so few units were counted that there may be none are left out; COUNT(*) shows how many there are"
)
_LOW = ReleaseColumn("m1_low", DOUBLE, "low", 0)

StaticStep = TableStep | PublicStep | None


def releases_needed(parts: SplitQuery, resolved: Resolved, policy: ContributionPolicy) -> dict[str, StaticStep]:
    """The releases that the answer is made of, by name; what stands for those that need not be made, else None.

    A release that only fills holes of one that need not be made is not among them.
    """
    read, in_holes = set(tables_read_by(parts.post)), set[str]()
    static_steps: dict[str, StaticStep] = {}
    for release in reversed(parts.releases):  # a hole's source reads earlier ones
        if release.name not in read | in_holes:
            continue
        # What a hole reads stays a step, by which the release that has the hole is found again.
        free = None if release.name in in_holes else _find_static_groups(release, resolved, policy)
        static_steps[release.name] = free
        if free is None:
            in_holes.update(name for hole in release.holes for name in tables_read_by(hole.source))
    return static_steps


def count_private_groups(parts: SplitQuery, resolved: Resolved, policy: ContributionPolicy) -> SplitQuery:
    """Where rows are asked which public groups they are in, count the units of each, and read the groups that have any.

        SELECT DISTINCT ward FROM visits                    →  the owner's list: nothing is asked of rows
        SELECT DISTINCT ward FROM visits WHERE cost > 900   →  … HAVING DP_LOW(COUNT(DISTINCT patient)) > 0

    Privacy: counts are cells of the release, with its noise and at its price; what is left out depends on them alone.
    """
    counted = {r.name for r in parts.releases if not r.aggregate.measures and _asks_which_groups(r, resolved, policy)}
    if not counted:
        return parts
    releases = tuple(
        replace(
            release,
            holes=tuple(
                replace(hole, source=read_where_positive(hole.source, counted, _LOW.name)) for hole in release.holes
            ),
        )
        for release in (_count_units(r) if r.name in counted else r for r in parts.releases)
    )
    return replace(parts, releases=releases, post=read_where_positive(parts.post, counted, _LOW.name))


def refuse_counts_of_selected_keys(parts: SplitQuery, resolved: Resolved, policy: ContributionPolicy) -> None:
    """Refuse numbers that INTERSECT or EXCEPT would get wrong: keys of few units are on neither side's list.

        SELECT COUNT(*) FROM (SELECT DISTINCT name FROM a EXCEPT SELECT DISTINCT name FROM b)   →  refused
        … with keys that the schema or public rows list                                         →  counted

    Privacy: which keys are selected depends on the schema, the statement and public rows.
    """
    lists = {r.name: r.aggregate for r in parts.releases if r.aggregate.keys and not r.aggregate.measures}
    for counted in parts.counted:
        for name in counted.releases & lists.keys():
            if rewrite_plan(canonicalize(lists[name]), RuleContext(resolved, policy)).gather.selection is not None:
                raise Unsupported(
                    f"{counted.operation} of keys that must be selected cannot be counted",
                    detail="Keys that few units have are left out of each side, so the number would be wrong.",
                    hint="Add the privacy unit's column in the same place on both sides, so that rows of each unit are "
                    "compared, or join the public table that lists the keys.",
                    span=counted.span,
                )


def _count_units(release: BoundRelease) -> BoundRelease:
    return replace(
        release,
        aggregate=replace(release.aggregate, measures=(CountDistinctUnits(),)),
        columns=(*release.columns, _LOW),
        asks_keys=True,
        notices=(*release.notices, SEEN_GROUPS_NOTICE),
    )


def _asks_which_groups(release: BoundRelease, resolved: Resolved, policy: ContributionPolicy) -> bool:
    """Whether some keys are listed, and something else than keys decides which of their groups have rows."""
    asked = inline_projects(release.aggregate)
    names = frozenset(name for key in asked.keys for name in columns_of(key.expr))
    domains = derive_domains(scan_declared_tables(asked.input, resolved.schema))
    of_keys = {name: domain for name, domain in domains.items() if name in names}
    if not asked.keys or not _may_leave_groups_out(asked.input, of_keys):
        return False
    return rewrite_plan(canonicalize(asked), RuleContext(resolved, policy)).gather.listed is not None


def _may_leave_groups_out(node: Rows, keys: Mapping[str, Domain]) -> bool:
    """Whether listed groups may be without a row for another reason than what a table's own columns hold."""
    match node:
        case Filter():
            parts = split_conjuncts(canonicalize_condition(node.condition))
            return not all(_narrows_list(part, keys) for part in parts) or _may_leave_groups_out(node.input, keys)
        case Project() | UnitWindow() | Expand():
            return _may_leave_groups_out(node.input, keys)
        case Join() if node.unmatched is not None:  # all public rows are kept
            return any(f.name in keys for f in row_fields(node.left))
        case Join() if node.kind is JoinKind.LEFT:
            return _may_leave_groups_out(node.left, keys)
        case SetOperation() if node.kind is SetKind.UNION_ALL:
            return _may_leave_groups_out(node.left, keys) or _may_leave_groups_out(node.right, keys)
        case Table() | Scan():
            return False
        case Join() | Mark() | PerUnit() | SetOperation() | PublicTable() | PublicScan() | RowsHole():
            return True
        case _:
            assert_never(node)


def _narrows_list(part: Expr, keys: Mapping[str, Domain]) -> bool:
    """Whether the list of groups has those that meet the condition: it is about one column, and can be tried on it."""
    names = columns_of(part)
    if len(names) > 1 or not names <= keys.keys():
        return False
    (name,) = names or ("",)
    values = list_few_values(keys[name]) if name else None
    return values is None or evaluate_for_values(part, name, values) is not None


def dummy_tables(parts: SplitQuery, schema: Schema) -> list[TableStep]:
    """The rows that stand for the private tables of a preview."""
    tables: list[TableStep] = []
    for name, table_name in parts.made_up:
        table = schema.table(table_name)
        assert table is not None and table.preview
        names = tuple(column.name for column in table.columns)
        columns = tuple(ReleaseColumn(c.name, c.type, "key", index) for index, c in enumerate(table.columns))
        tables.append(TableStep(name, None, columns, (), StaticRows(names, make_dummy_rows(schema, table))))
    return tables


def _find_static_groups(release: BoundRelease, resolved: Resolved, policy: ContributionPolicy) -> StaticStep:
    if release.aggregate.measures:
        return None
    aggregate = canonicalize(release.aggregate)
    if resolved.schema.has_snapped_times:
        aggregate = snap_times(aggregate, resolved.schema).aggregate
    gather = rewrite_plan(canonicalize(aggregate), RuleContext(resolved, policy)).gather
    groups = list_declared_groups(gather)
    if groups is not None:
        return TableStep(release.name, None, release.columns, (), StaticRows(*groups))
    return _read_public_groups(release.name, gather)


def _read_public_groups(name: str, gather: Gather) -> PublicStep | None:
    """Groups that stand in public tables, read from them; None where a release tells them, or none does."""
    sql = render_release(gather) if is_list_only(gather) else ""
    return PublicStep(name, "", "", gather.keys, sql) if sql and not find_runtime_parameters(sql) else None
