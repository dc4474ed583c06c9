"""From SQL to a compiled statement: parse, split, bind, rewrite, analyze, calibrate, render. Pure (law 6).

It reads no data, no clock and no randomness, and spends nothing; so EXPLAIN, describe and prepare are free.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpsql.compiler.accuracy import (
    ErrorAims,
    ErrorGoal,
    even_aims,
    find_linear_answers,
    least_epsilon,
    unreachable_error,
)
from dpsql.compiler.analysis.canonical import canonicalize
from dpsql.compiler.analysis.sensitivity import Neighboring
from dpsql.compiler.calibrate.calibrate import (
    CalibratedPlan,
    LossNeed,
    LossShare,
    NoiseKind,
    calibrate,
    calibrate_choice,
    calibrate_response,
    calibrate_scores,
    loss_needed,
    split_loss,
)
from dpsql.compiler.calibrate.local_sensitivity import apply_median_setting, comparison_notices, few_blocks_notices
from dpsql.compiler.catalog.identity import Identity
from dpsql.compiler.compiled import (
    Compiled,
    CountedValues,
    MeasureSource,
    PublicStep,
    RandomizedResponses,
    RankedValues,
    ReleaseStep,
    SelectedBins,
    TableStep,
)
from dpsql.compiler.parse.parameters import Parameter, is_null_parameter
from dpsql.compiler.parse.parser import Tokenizer, parse_query_with_options
from dpsql.compiler.parse.syntax_errors import refuse_null_comparisons
from dpsql.compiler.plan.aggregate import Aggregate, Gather, Listed, ListedHole, Norm
from dpsql.compiler.plan.measures import (
    Best,
    Blockwise,
    Extreme,
    Frequent,
    Posterior,
    Quantile,
    SharesPosterior,
    needs_own_step,
)
from dpsql.compiler.plan.relations import PublicTable, RowsHole
from dpsql.compiler.plan.steps import Hole, Shape
from dpsql.compiler.postprocess.postgres_semantics import render_postprocessing, tables_read_by
from dpsql.compiler.release_key import hash_plan, list_declarations, source_identities
from dpsql.compiler.render.relations import render_rows
from dpsql.compiler.render.release import find_runtime_parameters, render_release
from dpsql.compiler.reuse.describe import describe_release
from dpsql.compiler.rewrite.bound_contributions import ContributionPolicy
from dpsql.compiler.rewrite.debias import debias, debias_counts, recorded_notices
from dpsql.compiler.rewrite.limit_joins import limit_conditions
from dpsql.compiler.rewrite.pipeline import rewrite_bins, rewrite_plan, rewrite_posterior
from dpsql.compiler.rewrite.release_plan import BinSelection, RewriteContext, RewrittenPlan
from dpsql.compiler.rewrite.scan_tables import scan_public_table
from dpsql.compiler.rewrite.score_candidates import (
    count_by_value,
    rank_candidates,
    release_key_columns,
    score_by_value,
    share_bins_of,
)
from dpsql.compiler.rewrite.snap_times import snap_times
from dpsql.compiler.rewrite.weighted_rows import prepare_randomized_rows
from dpsql.compiler.settings import Settings, apply_options, apply_release_epsilons
from dpsql.compiler.split.blocks import BoundRelease, BoundRuntimeParameter, PublicRead
from dpsql.compiler.split.predict import expand_predictions
from dpsql.compiler.split.release_block import ErrorBar
from dpsql.compiler.split.row_queries import PREVIEW_NOTICE as MADE_UP
from dpsql.compiler.split.runtime_parameters import parameter_domain
from dpsql.compiler.split.split import ANONYMOUS, SplitQuery, split_query
from dpsql.compiler.static_answers import LISTED_GROUPS_NOTICE, dummy_tables, releases_needed
from dpsql.errors import Error, LimitExceeded
from dpsql.schema.model import Neighbors, Resolved

__all__ = [
    "Compiled",
    "CountedValues",
    "MeasureSource",
    "PublicStep",
    "RandomizedResponses",
    "RankedValues",
    "ReleaseStep",
    "SelectedBins",
    "Settings",
    "TableStep",
    "compile_query",
    "neighboring_of",
]

MIN_RECURSION_LIMIT = 12_000
"""The parser takes some twenty frames for a parenthesis, and statements may be 200 deep whatever the caller's stack."""

MAX_SELECTED_GROUPS = 10_000
"""Selected groups for which a quantile is chosen."""

KEYS_PARAMETER = "keys"
"""The hole that a choice's groups come from, where they were selected."""


def compile_query(
    sql: str,
    resolved: Resolved,
    settings: Settings,
    parameters: Sequence[Parameter] = (),
    now: dt.datetime | None = None,
    identity: Identity = ANONYMOUS,
    aims: ErrorAims | None = None,
    tokenizer: Tokenizer | None = None,
) -> Compiled:
    """`aims` are what a pilot has found the errors may be; without them `max_relative_error` compiles to its pilot."""
    if sys.getrecursionlimit() < MIN_RECURSION_LIMIT:  # a process's limit; it is only ever raised
        sys.setrecursionlimit(MIN_RECURSION_LIMIT)
    try:
        parsed = parse_query_with_options(sql, parameters, tokenizer)
        if not any(map(is_null_parameter, parameters)):  # a program may well pass NULL
            refuse_null_comparisons(parsed.query)
        settings = apply_options(settings, resolved.schema, parsed.options)
        query = expand_predictions(parsed.query, resolved.schema)
        parts = split_query(query, resolved.schema, now, identity, settings.ranges)
        return _Compiler(resolved, settings, identity, aims).compile(sql, parts)
    except Error as error:
        error.statement = sql
        raise
    except RecursionError:
        raise LimitExceeded("the statement is nested too deeply") from None


@dataclass(frozen=True)
class _StepDraft:
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


@dataclass(frozen=True)
class _PublicGroups:
    """The groups of a step, where they are public; its holes, what they read, and what stands behind their names."""

    listed: Listed | None
    holes: tuple[Hole, ...]
    after: tuple[int, ...]
    sources: str
    selected: bool = False


@dataclass(frozen=True)
class _Compiler:
    resolved: Resolved
    settings: Settings
    who: Identity = ANONYMOUS
    aims: ErrorAims | None = None
    reads: dict[str, PublicRead] = field(default_factory=dict)  # what the names of public tables stand for
    notices: list[str] = field(default_factory=list)

    def compile(self, sql: str, parts: SplitQuery) -> Compiled:
        drafts: list[_StepDraft] = []
        tables: list[TableStep] = []
        self.reads.update((read.name, read) for read in parts.reads)
        tables += dummy_tables(parts, self.resolved.schema)
        static_steps = releases_needed(parts, self.resolved, self._policy)
        releases = [release for release in parts.releases if release.name in static_steps]
        for release in releases:
            static = static_steps[release.name]
            if static is None:
                tables.append(self._draft_release(release, drafts, tables))
            elif isinstance(static, TableStep):
                tables.append(static)
        takes = tuple(self._loss_needed(draft) for draft in drafts)
        settings = self._settings_for_accuracy(drafts, tables, parts.errors, takes)
        each = split_loss(settings.chosen_noise, settings.epsilon, settings.delta, takes)
        settings = apply_release_epsilons(settings, [d.study.loss.epsilon if d.study else None for d in drafts])
        steps = tuple(self._calibrate_step(draft, share) for draft, share in zip(drafts, each, strict=True))
        notices = [notice for draft in drafts if draft.rewritten for notice in draft.rewritten.notices]
        notices += self.notices
        notices += [notice for release in releases for notice in release.notices]
        notices += [MADE_UP] * bool(parts.made_up)
        notices += [LISTED_GROUPS_NOTICE] * any(
            static_steps[release.name] is not None and release.aggregate.keys for release in releases
        )
        return Compiled(
            statement=sql,
            reads=(
                *map(self._read_public_table, parts.reads),
                *(step for step in static_steps.values() if isinstance(step, PublicStep)),
            ),
            steps=steps,
            tables=tuple(tables),
            post_sql=render_postprocessing(parts.post),
            errors=parts.errors,
            settings=settings,
            notices=tuple(dict.fromkeys(notices)),
            warnings=(MADE_UP,) if parts.made_up else (),
            pilot=self._is_pilot and bool(steps),
        )

    def _loss_needed(self, draft: _StepDraft) -> LossNeed:
        if draft.choice is not None:
            return LossNeed.EPSILON if draft.choice.local is None else LossNeed.DELTA
        if draft.rewritten is None or draft.scored is not None:
            return LossNeed.EPSILON
        return loss_needed(draft.rewritten.gather, neighboring_of(self.resolved))

    # --- accuracy first ----------------------------------------------------------------------------------------------

    @property
    def _is_pilot(self) -> bool:
        return self.settings.max_relative_error is not None and self.aims is None

    def _settings_for_accuracy(
        self,
        drafts: list[_StepDraft],
        tables: list[TableStep],
        bars: tuple[ErrorBar | None, ...],
        takes: tuple[LossNeed, ...],
    ) -> Settings:
        """The settings with the least epsilon that keeps what was asked for; as they are, where nothing was."""
        if not self.settings.has_error_goal or not drafts:
            return self.settings
        answers = find_linear_answers(tables, bars, self.settings)
        if self._is_pilot:
            return self.settings
        aims = self.aims or even_aims(answers, self.settings)
        relation = neighboring_of(self.resolved)

        def goals_at(epsilon: Fraction) -> list[ErrorGoal]:
            each = split_loss(self.settings.chosen_noise, epsilon, self.settings.delta, takes)
            calibrated: dict[int, CalibratedPlan] = {}
            for index in {answers[name].step for name, _ in aims.errors}:
                rewritten = drafts[index].rewritten
                assert rewritten is not None
                calibrated[index] = calibrate(rewritten.gather, each[index], relation)
            return [
                answers[name].error_goal(calibrated[answers[name].step], max_error) for name, max_error in aims.errors
            ]

        epsilon = least_epsilon(goals_at, 1 - aims.confidence)
        if epsilon is None:
            raise unreachable_error(self.settings)
        return replace(self.settings, epsilon=epsilon)

    # --- releases ----------------------------------------------------------------------------------------------------

    def _draft_release(self, release: BoundRelease, drafts: list[_StepDraft], tables: list[TableStep]) -> TableStep:
        """The steps of a release: one for groups and linear measures, one each for quantiles and counts of values."""
        if release.epsilon is not None:
            return self._draft_response(release, release.epsilon, drafts)
        snapped = snap_times(canonicalize(release.aggregate), self.resolved.schema)
        aggregate = canonicalize(snapped.aggregate)
        self.notices.extend(snapped.notices)
        limit_conditions(aggregate)
        holes = tuple(_render_parameter(hole) for hole in release.holes)
        after = _steps_read(release.holes, tables)
        sources = source_identities(release.holes, tables, after, self.reads, self.resolved.schema, self.who)
        linear = tuple(m for m in aggregate.measures if not needs_own_step(m))
        main = replace(aggregate, measures=linear)
        rewritten = rewrite_plan(main, self._context)
        index: int | None = None
        if aggregate.keys or linear or not aggregate.measures:
            index = len(drafts)
            drafts.append(
                _StepDraft(release.name, self._hash_plan(main, holes, sources), main, rewritten, None, holes, after)
            )
        ungrouped = _PublicGroups(None, holes, after, sources)
        groups = self._list_public_groups(release.name, index, rewritten.gather, ungrouped)
        debiased = debias(main, rewritten, self.resolved.schema)
        self.notices.extend(debiased.notices)
        recipes = iter(debiased.recipes)
        answers: list[MeasureSource] = []
        counted: dict[str, int] = {}
        for number, measure in enumerate(aggregate.measures, 1):
            name = f"{release.name}_m{number}"
            match measure:
                case Quantile() | Extreme() | Blockwise() if needs_own_step(measure):
                    measure = apply_median_setting(measure, self.settings.median, self.settings.proposal)
                    drafts.append(self._draft_choice(name, measure, aggregate, groups))
                    self.notices.extend(recorded_notices(drafts[-1].aggregate, self.resolved.schema))
                    choice = drafts[-1].choice
                    assert choice is not None
                    container = measure.container if isinstance(measure, Quantile) else None
                    answers.append(MeasureSource(len(drafts) - 1, SelectedBins(choice.bins, container)))
                case Frequent() | SharesPosterior():
                    counts_plan = count_by_value(aggregate, measure)
                    counts_rewritten, plan_hash = (
                        rewrite_plan(counts_plan, self._context),
                        self._hash_plan(counts_plan, holes, sources),
                    )
                    if plan_hash not in counted:  # the same counts are paid once, whatever is read of them
                        counted[plan_hash] = len(drafts)
                        drafts.append(_StepDraft(name, plan_hash, counts_plan, counts_rewritten, None, holes, after))
                    debiased_counts = debias_counts(counts_plan, measure, counts_rewritten, self.resolved.schema)
                    self.notices.extend(debiased_counts.notices)
                    answers.append(
                        MeasureSource(counted[plan_hash], CountedValues(measure, debiased_counts.recipes[0]))
                    )
                case Best():
                    drafts.append(self._draft_best(name, measure, aggregate, ungrouped, drafts, tables))
                    answers.append(MeasureSource(len(drafts) - 1, RankedValues(measure)))
                case Posterior():
                    alone = replace(aggregate, measures=(measure,))
                    cells = rewrite_posterior(alone, replace(self._context, listed=groups.listed))
                    drafts.append(self._draft_scored(name, measure, aggregate, groups, cells))
                    answers.append(
                        MeasureSource(len(drafts) - 1, SelectedBins(share_bins_of(measure), measure.container))
                    )
                case _:
                    assert index is not None
                    answers.append(MeasureSource(index, next(recipes)))
        return TableStep(release.name, index, release.columns, tuple(answers))

    def _draft_response(self, release: BoundRelease, epsilon: Fraction, drafts: list[_StepDraft]) -> TableStep:
        """Randomized answers of all units: each release loses its own epsilon."""
        aggregate = canonicalize(release.aggregate)
        tallied = prepare_randomized_rows(aggregate, self.resolved)
        (axis,) = tallied.axes
        study = calibrate_response(tallied.tally, axis, epsilon, neighboring_of(self.resolved))
        digest = self._hash_plan(aggregate, (), repr(("randomized", epsilon, axis)))
        self.notices.extend(recorded_notices(aggregate, self.resolved.schema))
        drafts.append(_StepDraft(release.name, digest, aggregate, None, None, (), (), study=study))
        answers = tuple(MeasureSource(len(drafts) - 1, RandomizedResponses(axis, counts)) for counts in (False, True))
        return TableStep(release.name, len(drafts) - 1, release.columns, answers)

    def _draft_choice(
        self, name: str, measure: Quantile | Extreme | Blockwise, aggregate: Aggregate, groups: _PublicGroups
    ) -> _StepDraft:
        """A quantile is chosen in public groups."""
        alone = replace(aggregate, measures=(measure,))
        choice = rewrite_bins(alone, replace(self._context, listed=groups.listed, selected=groups.selected))
        plan_hash = self._hash_plan(alone, groups.holes, groups.sources)
        return _StepDraft(name, plan_hash, alone, None, choice, groups.holes, groups.after)

    def _list_public_groups(self, table: str, index: int | None, main: Gather, base: _PublicGroups) -> _PublicGroups:
        """Public groups: those listed, or those that the step at `place`, which is `table`, has released."""
        if main.selection is None or index is None:
            return replace(base, listed=main.listed, selected=main.selection is not None)
        rows = RowsHole(
            KEYS_PARAMETER, main.keys, tuple(parameter_domain(key.type) for key in main.keys), MAX_SELECTED_GROUPS
        )
        listed = Listed((ListedHole(main.keys, rows, tuple(key.name for key in main.keys)),))
        columns = ", ".join(f'"{key.name}"' for key in main.keys)
        source = f"SELECT DISTINCT {columns} FROM {table}"
        keys = Hole(KEYS_PARAMETER, Shape.ROWS, main.keys, MAX_SELECTED_GROUPS, source, rows.domains)
        return _PublicGroups(listed, (*base.holes, keys), (*base.after, index), base.sources, selected=True)

    def _draft_best(
        self,
        name: str,
        measure: Best,
        aggregate: Aggregate,
        groups: _PublicGroups,
        drafts: list[_StepDraft],
        tables: list[TableStep],
    ) -> _StepDraft:
        """The best of public values: those listed, or those that a step of their own selects first."""
        candidates_plan = score_by_value(aggregate, measure)
        rewritten = rewrite_plan(candidates_plan, self._context)
        groups = replace(groups, listed=None)
        if rewritten.gather.selection is not None:
            keys, table, index = replace(candidates_plan, measures=()), f"{name}_keys", len(drafts)
            selected = rewrite_plan(keys, self._context)
            plan_hash = self._hash_plan(keys, groups.holes, groups.sources)
            drafts.append(_StepDraft(table, plan_hash, keys, selected, None, groups.holes, groups.after))
            tables.append(TableStep(table, index, release_key_columns(selected.gather), ()))
            groups = self._list_public_groups(table, index, selected.gather, groups)
        return self._draft_scored(name, measure, aggregate, groups, rank_candidates(rewritten, measure, groups.listed))

    def _draft_scored(
        self, name: str, measure: Best | Posterior, aggregate: Aggregate, groups: _PublicGroups, cells: RewrittenPlan
    ) -> _StepDraft:
        alone = replace(aggregate, measures=(measure,))
        self.notices.extend(recorded_notices(alone, self.resolved.schema))
        plan_hash = self._hash_plan(alone, groups.holes, groups.sources)
        return _StepDraft(name, plan_hash, alone, cells, None, groups.holes, groups.after, measure)

    def _calibrate_step(self, draft: _StepDraft, share: LossShare) -> ReleaseStep:
        relation = neighboring_of(self.resolved)
        if draft.study is not None:
            return ReleaseStep(draft.name, draft.plan_hash, render_release(draft.study.plan), (), draft.study)
        if draft.choice is not None:
            calibrated = calibrate_choice(draft.choice, share, relation)
            self.notices.extend(comparison_notices(calibrated.choice, draft.choice.bins, calibrated.weights))
            self.notices.extend(few_blocks_notices(calibrated.choice, draft.aggregate.measures))
        else:
            assert draft.rewritten is not None
            if draft.scored is not None:
                calibrated = calibrate_scores(draft.rewritten.gather, draft.scored, share, relation)
            else:
                calibrated = calibrate(draft.rewritten.gather, share, relation)
        sql, keys = render_release(calibrated.plan), calibrated.gather.keys
        read = find_runtime_parameters(sql)
        holes = tuple(hole for hole in draft.holes if hole.name in read)
        described = None
        if not draft.holes and not self._is_pilot:  # a pilot's answer is found again as it was
            context = "\n".join(list_declarations(draft.aggregate, self.resolved, self.settings))
            described = describe_release(draft.aggregate, calibrated, context, self.settings.rows)
        return ReleaseStep(draft.name, draft.plan_hash, sql, keys, calibrated, holes, draft.after, described)

    # --- public tables -----------------------------------------------------------------------------------------------

    def _read_public_table(self, read: PublicRead) -> PublicStep:
        sql = None
        if not read.place:
            table = PublicTable(read.table, tuple((column.name, column) for column in read.columns))
            sql = render_rows(scan_public_table(table, self.resolved))
        return PublicStep(read.name, read.place, read.table, read.columns, sql)

    # --- policy and keys of the store --------------------------------------------------------------------------------

    @property
    def _context(self) -> RewriteContext:
        return RewriteContext(self.resolved, self._policy)

    @property
    def _policy(self) -> ContributionPolicy:
        norm = Norm.L2 if self.settings.chosen_noise is NoiseKind.GAUSSIAN else Norm.L1
        return ContributionPolicy(self.settings.rows, self.settings.groups, norm)

    def _hash_plan(self, aggregate: Aggregate, holes: tuple[Hole, ...], sources: str) -> str:
        declared = list_declarations(aggregate, self.resolved, self.settings)
        return hash_plan(aggregate, declared, holes, sources, pilot=self._is_pilot)


def neighboring_of(resolved: Resolved) -> Neighboring:
    privacy = resolved.schema.privacy
    return Neighboring(privacy.neighbors is Neighbors.CHANGE_ONE, privacy.group_size)


def _render_parameter(hole: BoundRuntimeParameter) -> Hole:
    return Hole(
        hole.name, hole.shape, hole.columns, hole.most, render_postprocessing(hole.source), hole.domains, hole.unique
    )


def _steps_read(holes: tuple[BoundRuntimeParameter, ...], tables: list[TableStep]) -> tuple[int, ...]:
    """The places of all steps that the holes' sources read."""
    read = {name for hole in holes for name in tables_read_by(hole.source)}
    return tuple(sorted({index for table in tables if table.name in read for index in table.steps}))
