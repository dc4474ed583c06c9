"""From SQL to a compiled statement: parse, split, bind, rewrite, analyze, calibrate, render. Pure (law 6).

It reads no data, no clock and no randomness, and spends nothing; so EXPLAIN, describe and prepare are free.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType

from dpsql.compiler.accuracy import (
    ErrorAims,
    ErrorGoal,
    distinct_count_warnings,
    even_aims,
    find_linear_answers,
    least_epsilon,
    second_unit_notices,
    unreachable_error,
)
from dpsql.compiler.analysis.sensitivity import neighboring_of
from dpsql.compiler.calibrate.calibrate import (
    CalibratedPlan,
    LossNeed,
    LossShare,
    adds_epsilons,
    calibrate,
    calibrate_choice,
    calibrate_scores,
    delta_for_conversion,
    loss_needed,
    scale_share,
    shares_beside_histograms,
    split_loss,
)
from dpsql.compiler.calibrate.local_sensitivity import comparison_notices, extreme_notices, few_blocks_notices
from dpsql.compiler.catalog.variables import Identity
from dpsql.compiler.clipping import clipping_notices, measure_label, unknown_clipping_notices
from dpsql.compiler.compiled import (
    Compiled,
    CountedValues,
    MeasureSource,
    NormStep,
    PublicStep,
    RandomizedResponses,
    RankedValues,
    ReleaseStep,
    SelectedBins,
    TableStep,
    list_declarations,
)
from dpsql.compiler.empty_groups import COUNT_FORM
from dpsql.compiler.functions.time_zones import session_zone_scope
from dpsql.compiler.norm_steps import DecidedDraft, KnownNorms, decide_norms, move_tables, spread_of_norms
from dpsql.compiler.parse.dialect import find_calls
from dpsql.compiler.parse.parameters import Parameter, is_null_parameter
from dpsql.compiler.parse.parser import Tokenizer, parse_query_with_options
from dpsql.compiler.parse.syntax_errors import refuse_null_comparisons
from dpsql.compiler.plan.measures import DistinctValues
from dpsql.compiler.plan.relations import PublicTable
from dpsql.compiler.planners import (
    LISTED_GROUPS_NOTICE,
    StatementDraft,
    StepDraft,
    contribution_policy,
    count_private_groups,
    dummy_tables,
    plan_release,
    refuse_counts_of_selected_keys,
    releases_needed,
)
from dpsql.compiler.postprocess.postgres_semantics import has_arithmetic, render_postprocessing
from dpsql.compiler.render.relations import render_rows
from dpsql.compiler.render.release import find_runtime_parameters, render_release
from dpsql.compiler.reuse.describe import describe_release
from dpsql.compiler.rewrite.scan_tables import scan_public_table
from dpsql.compiler.settings import Settings, apply_options, apply_release_epsilons
from dpsql.compiler.split.blocks import PublicRead
from dpsql.compiler.split.predict import MODEL_FUNCTIONS, expand_predictions
from dpsql.compiler.split.release_block import ErrorBar
from dpsql.compiler.split.row_queries import PREVIEW_NOTICE
from dpsql.compiler.split.split import ANONYMOUS, SplitQuery, split_query
from dpsql.errors import Error, LimitExceeded
from dpsql.schema.model import Resolved

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


def compile_query(
    sql: str,
    resolved: Resolved,
    settings: Settings,
    parameters: Sequence[Parameter] = (),
    now: dt.datetime | None = None,
    identity: Identity = ANONYMOUS,
    aims: ErrorAims | None = None,
    tokenizer: Tokenizer | None = None,
    norms: KnownNorms = MappingProxyType({}),
) -> Compiled:
    """`aims` are what a pilot has found the errors may be; without them `max_relative_error` compiles to its pilot.

    `norms` are the released histograms that norms are chosen from; without one that it needs, a step is undecided.
    """
    piloted = aims is not None
    return plan_query(sql, resolved, settings, parameters, now, identity, tokenizer, piloted=piloted).compile(
        aims, norms
    )


def plan_query(
    sql: str,
    resolved: Resolved,
    settings: Settings,
    parameters: Sequence[Parameter] = (),
    now: dt.datetime | None = None,
    identity: Identity = ANONYMOUS,
    tokenizer: Tokenizer | None = None,
    *,
    piloted: bool = False,
) -> PlannedQuery:
    """What a statement compiles to before its norms and the results of its pilot are known; `piloted` where these will
    be given."""
    with _statement_scope(sql, identity, now):
        parsed = parse_query_with_options(sql, parameters, tokenizer)
        if not any(map(is_null_parameter, parameters)):  # a program may well pass NULL
            refuse_null_comparisons(parsed.query)
        settings = apply_options(settings, resolved.schema, parsed.options)
        query = parsed.query
        if find_calls(query, *MODEL_FUNCTIONS):
            query = expand_predictions(query, resolved.schema)
        parts = split_query(query, resolved.schema, now, identity, settings.ranges, settings.division, sql)
        return _plan_statement(sql, parts, resolved, settings, identity, now, piloted)


@contextmanager
def _statement_scope(sql: str, identity: Identity, now: dt.datetime | None) -> Iterator[None]:
    if sys.getrecursionlimit() < MIN_RECURSION_LIMIT:  # a process's limit; it is only ever raised
        sys.setrecursionlimit(MIN_RECURSION_LIMIT)
    with session_zone_scope(identity.time_zone, now):
        try:
            yield
        except Error as error:
            error.statement = sql
            raise
        except RecursionError:
            raise LimitExceeded("the statement is nested too deeply") from None


@dataclass(frozen=True)
class PlannedQuery:
    """A statement that was parsed, split, bound and rewritten: all that is the same for any norms that are known.

    Nothing of it is changed when it is compiled, so that threads may share it.
    """

    sql: str
    resolved: Resolved
    settings: Settings
    identity: Identity
    now: dt.datetime | None
    pilot: bool
    drafts: tuple[StepDraft, ...]
    tables: tuple[TableStep, ...]
    reads: tuple[PublicStep, ...]
    post_sql: str
    errors: tuple[ErrorBar | None, ...]
    notices: tuple[str, ...]  # of its steps as they were planned
    release_notices: tuple[str, ...]
    warnings: tuple[str, ...]
    listed: bool  # whether it shows groups of which nothing is released
    copies_values: bool

    def compile(self, aims: ErrorAims | None = None, norms: KnownNorms = MappingProxyType({})) -> Compiled:
        with _statement_scope(self.sql, self.identity, self.now):
            return _Compiler(self.resolved, self.settings, aims, self.pilot, norms).compile(self)


def _plan_statement(
    sql: str,
    parts: SplitQuery,
    resolved: Resolved,
    settings: Settings,
    identity: Identity,
    now: dt.datetime | None,
    piloted: bool,
) -> PlannedQuery:
    pilot = settings.max_relative_error is not None and not piloted
    refuse_counts_of_selected_keys(parts, resolved, contribution_policy(settings, resolved))
    parts = count_private_groups(parts, resolved, contribution_policy(settings, resolved))
    reads = {read.name: read for read in parts.reads}
    draft = StatementDraft(resolved, settings, identity, pilot, reads, parts)
    tables = draft.tables
    tables += dummy_tables(parts, resolved.schema)
    static_steps = releases_needed(parts, resolved, contribution_policy(settings, resolved))
    releases = [release for release in parts.releases if release.name in static_steps]
    for release in releases:
        static = static_steps[release.name]
        if static is None:
            tables.append(plan_release(release, draft))
        elif isinstance(static, TableStep):
            tables.append(static)
    public = (_read_public_table(read, resolved) for read in parts.reads)
    static_reads = (step for step in static_steps.values() if isinstance(step, PublicStep))
    return PlannedQuery(
        sql,
        resolved,
        settings,
        identity,
        now,
        pilot,
        tuple(draft.steps),
        tuple(tables),
        (*public, *static_reads),
        render_postprocessing(parts.post),
        parts.errors,
        tuple(draft.notices),
        tuple(notice for release in releases for notice in release.notices),
        (*((PREVIEW_NOTICE,) if parts.made_up else ()), *parts.warnings),
        any(static_steps[release.name] is not None and release.aggregate.keys for release in releases),
        not releases and not has_arithmetic(parts.post),
    )


def _read_public_table(read: PublicRead, resolved: Resolved) -> PublicStep:
    sql = None
    if not read.place:
        table = PublicTable(read.table, tuple((column.name, column) for column in read.columns))
        sql = render_rows(scan_public_table(table, resolved))
    return PublicStep(read.name, read.place, read.table, read.columns, sql)


@dataclass(frozen=True)
class _Compiler:
    resolved: Resolved
    settings: Settings
    aims: ErrorAims | None
    pilot: bool
    norms: KnownNorms

    def compile(self, planned: PlannedQuery) -> Compiled:
        drafts, tables, more_notices = list(planned.drafts), list(planned.tables), list(planned.notices)
        takes = tuple(self._loss_needed(step) for step in drafts)
        decided, norm_part = [DecidedDraft(step) for step in drafts], Fraction(0)
        norm_steps: tuple[NormStep, ...] = ()
        if any(step.norms for step in drafts):
            decided, norm_steps, norm_part = decide_norms(
                drafts,
                self._split_loss(self.settings.epsilon, takes),
                neighboring_of(self.resolved),
                self.settings.epsilon,
                delta_for_conversion(self.settings.delta, LossNeed.DELTA in takes),
                self.resolved,
                self.norms,
            )
            tables = list(move_tables(tables, decided))
        settings = self._settings_for_accuracy(decided, tables, planned.errors, takes, norm_part)
        each = self._shares_of_choices(decided, self._split_loss(settings.epsilon, takes, norm_part))
        settings = apply_release_epsilons(settings, [d.study.loss.epsilon if d.study else None for d in drafts])
        steps = tuple(
            self._calibrate_step(step, share, more_notices) for step, share in zip(decided, each, strict=True)
        )
        notices = [notice for step in drafts if step.rewritten for notice in step.rewritten.notices]
        shown = [step for step in decided if not step.draft.counts_groups]
        notices += [notice for step in shown for notice in clipping_notices(step)]
        wide = [
            warning
            for step, decision in zip(steps, decided, strict=True)
            if decision.draft.rewritten and not decision.undecided and not decision.draft.scored
            if any(isinstance(measure, DistinctValues) for measure in decision.draft.aggregate.measures)
            for warning in distinct_count_warnings(
                decision.draft.aggregate.measures, decision.draft.rewritten.recipes, step.calibrated
            )
        ]
        counted = [s.draft.aggregate.measures for s in shown]
        counted = [measures for measures in counted if any(isinstance(m, DistinctValues) for m in measures)]
        notices += [n for measures in counted for n in second_unit_notices(measures, self.resolved.schema)]
        unknown = (n for s in shown for n in unknown_clipping_notices(s, settings, self.resolved.schema))
        notices += more_notices
        notices += planned.release_notices
        warnings = (*planned.warnings, *wide)
        notices += warnings
        notices += [LISTED_GROUPS_NOTICE] * planned.listed
        return Compiled(
            statement=planned.sql,
            reads=planned.reads,
            steps=steps,
            tables=tuple(tables),
            post_sql=planned.post_sql,
            errors=planned.errors,
            settings=settings,
            notices=tuple(dict.fromkeys(notices)),
            warnings=warnings,
            pilot=self.pilot and bool(steps),
            norm_steps=norm_steps,
            copies_values=planned.copies_values,
            unknown_clipping=tuple(dict.fromkeys(unknown)),
            labels=tuple(
                measure_label(measure)
                for step in decided
                if step.undecided
                for measure in step.draft.aggregate.measures
            ),
        )

    def _split_loss(
        self, epsilon: Fraction, takes: tuple[LossNeed, ...], norm_part: Fraction = Fraction(0)
    ) -> tuple[LossShare, ...]:
        """What each release may lose, beside the histograms that have a part of it."""
        settings, delta_conv = self.settings, delta_for_conversion(self.settings.delta, LossNeed.DELTA in takes)
        shares = split_loss(settings.chosen_noise, epsilon, settings.delta, takes, settings.composition)
        return shares_beside_histograms(shares, epsilon, delta_conv, norm_part)

    def _shares_of_choices(self, decided: list[DecidedDraft], shares: tuple[LossShare, ...]) -> tuple[LossShare, ...]:
        """The shares of several choices, of which each may lose its part of epsilon where all of them can."""
        relation = neighboring_of(self.resolved)
        choices = [draft.draft.choice for draft in decided]
        if len(choices) < 2 or not all(map(adds_epsilons, shares)):
            return shares
        for choice, share in zip(choices, shares, strict=True):
            if choice is None or calibrate_choice(choice, share, relation).loss.epsilon is None:
                return shares
        return tuple(replace(share, alone=True) for share in shares)

    def _loss_needed(self, draft: StepDraft) -> LossNeed:
        if draft.choice is not None:
            return LossNeed.EPSILON if draft.choice.local is None else LossNeed.DELTA
        if draft.rewritten is None or draft.scored is not None:
            return LossNeed.EPSILON
        if draft.counts_groups:
            return LossNeed.COUNT
        return loss_needed(draft.rewritten.gather, neighboring_of(self.resolved))

    # --- accuracy first ----------------------------------------------------------------------------------------------

    def _settings_for_accuracy(
        self,
        decided: list[DecidedDraft],
        tables: list[TableStep],
        bars: tuple[ErrorBar | None, ...],
        takes: tuple[LossNeed, ...],
        norm_part: Fraction,
    ) -> Settings:
        """The settings with the least epsilon that keeps what was asked for; as they are, where nothing was."""
        if not self.settings.has_error_goal or not decided or any(step.undecided for step in decided):
            return self.settings
        answers = find_linear_answers(tables, bars, self.settings)
        if self.pilot:
            return self.settings
        aims = self.aims or even_aims(answers, self.settings)
        relation = neighboring_of(self.resolved)

        def goals_at(epsilon: Fraction) -> list[ErrorGoal]:
            each = self._split_loss(epsilon, takes, norm_part)
            calibrated: dict[int, CalibratedPlan] = {}
            for index in {answers[name].step for name, _ in aims.errors}:
                rewritten = decided[index].draft.rewritten
                assert rewritten is not None
                calibrated[index] = calibrate(rewritten.gather, each[index], relation, decided[index].spent)
            return [
                goal
                for name, max_error in aims.errors
                for goal in answers[name].error_goals(calibrated[answers[name].step], max_error)
            ]

        epsilon = least_epsilon(goals_at, 1 - aims.confidence)
        if epsilon is None:
            raise unreachable_error(self.settings)
        return replace(self.settings, epsilon=epsilon)

    # --- releases ----------------------------------------------------------------------------------------------------

    def _calibrate_step(self, decided: DecidedDraft, share: LossShare, notices: list[str]) -> ReleaseStep:
        relation, draft = neighboring_of(self.resolved), decided.draft
        if draft.study is not None:
            return ReleaseStep(draft.name, draft.plan_hash, render_release(draft.study.plan), (), draft.study)
        if draft.choice is not None:
            calibrated = calibrate_choice(
                draft.choice, share, relation, max(decided.spent.values(), default=Fraction(0))
            )
            notices.extend(comparison_notices(calibrated.choice, draft.choice.bins, calibrated.weights))
            notices.extend(few_blocks_notices(calibrated.choice, draft.aggregate.measures))
            notices.extend(extreme_notices(calibrated.choice, draft.aggregate.measures, decided.undecided))
        else:
            assert draft.rewritten is not None
            if draft.scored is not None:
                left = scale_share(share, 1 - max(decided.spent.values(), default=Fraction(0)))
                calibrated = calibrate_scores(draft.rewritten.gather, draft.scored, left, relation)
            else:
                calibrated = calibrate(draft.rewritten.gather, share, relation, decided.spent)
        sql, keys = render_release(calibrated.plan), calibrated.gather.keys
        read = find_runtime_parameters(sql)
        holes = tuple(hole for hole in draft.holes if hole.name in read)
        described = None
        if not draft.holes and not self.pilot and not decided.spent:  # a pilot's answer is found again as it was
            form = COUNT_FORM if draft.counts_groups else ()
            context = "\n".join((*list_declarations(draft.aggregate, self.resolved, self.settings), *form))
            rows = 1 if draft.counts_groups else self.settings.rows
            described = describe_release(draft.aggregate, calibrated, context, rows)
        return ReleaseStep(
            draft.name, draft.plan_hash, sql, keys, calibrated, holes, draft.after, described,
            decided.chosen, decided.undecided, spread_of_norms(draft) if decided.undecided else 1,
        )  # fmt: skip
