"""From SQL to a compiled statement: parse, split, bind, rewrite, analyze, calibrate, render. Pure (law 6).

It reads no data, no clock and no randomness, and spends nothing; so EXPLAIN, describe and prepare are free.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType

from dpsql.compiler.accuracy import (
    ErrorAims,
    ErrorGoal,
    even_aims,
    find_linear_answers,
    least_epsilon,
    unreachable_error,
)
from dpsql.compiler.analysis.sensitivity import neighboring_of
from dpsql.compiler.calibrate.calibrate import (
    CalibratedPlan,
    LossNeed,
    LossShare,
    calibrate,
    calibrate_choice,
    calibrate_scores,
    loss_needed,
    split_loss,
)
from dpsql.compiler.calibrate.local_sensitivity import comparison_notices, few_blocks_notices
from dpsql.compiler.catalog.variables import Identity
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
    list_declarations,
)
from dpsql.compiler.norm_steps import DecidedDraft, KnownNorms, clipping_notices, decide_norms
from dpsql.compiler.parse.dialect import find_calls
from dpsql.compiler.parse.parameters import Parameter, is_null_parameter
from dpsql.compiler.parse.parser import Tokenizer, parse_query_with_options
from dpsql.compiler.parse.syntax_errors import refuse_null_comparisons
from dpsql.compiler.plan.relations import PublicTable
from dpsql.compiler.planners import (
    LISTED_GROUPS_NOTICE,
    StatementDraft,
    StepDraft,
    contribution_policy,
    dummy_tables,
    plan_release,
    releases_needed,
)
from dpsql.compiler.postprocess.postgres_semantics import render_postprocessing
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
    if sys.getrecursionlimit() < MIN_RECURSION_LIMIT:  # a process's limit; it is only ever raised
        sys.setrecursionlimit(MIN_RECURSION_LIMIT)
    try:
        parsed = parse_query_with_options(sql, parameters, tokenizer)
        if not any(map(is_null_parameter, parameters)):  # a program may well pass NULL
            refuse_null_comparisons(parsed.query)
        settings = apply_options(settings, resolved.schema, parsed.options)
        query = parsed.query
        if find_calls(query, *MODEL_FUNCTIONS):
            query = expand_predictions(query, resolved.schema)
        parts = split_query(query, resolved.schema, now, identity, settings.ranges)
        return _Compiler(resolved, settings, identity, aims, norms).compile(sql, parts)
    except Error as error:
        error.statement = sql
        raise
    except RecursionError:
        raise LimitExceeded("the statement is nested too deeply") from None


@dataclass(frozen=True)
class _Compiler:
    resolved: Resolved
    settings: Settings
    identity: Identity = ANONYMOUS
    aims: ErrorAims | None = None
    norms: KnownNorms = field(default_factory=dict)

    def compile(self, sql: str, parts: SplitQuery) -> Compiled:
        reads = {read.name: read for read in parts.reads}
        draft = StatementDraft(self.resolved, self.settings, self.identity, self._is_pilot, reads)
        tables, drafts = draft.tables, draft.steps
        tables += dummy_tables(parts, self.resolved.schema)
        static_steps = releases_needed(parts, self.resolved, contribution_policy(self.settings, self.resolved))
        releases = [release for release in parts.releases if release.name in static_steps]
        for release in releases:
            static = static_steps[release.name]
            if static is None:
                tables.append(plan_release(release, draft))
            elif isinstance(static, TableStep):
                tables.append(static)
        takes = tuple(self._loss_needed(step) for step in drafts)
        before = split_loss(self.settings.chosen_noise, self.settings.epsilon, self.settings.delta, takes)
        decided, norm_steps = decide_norms(
            drafts, before, neighboring_of(self.resolved), self.settings.epsilon, self.resolved, self.norms
        )
        settings = self._settings_for_accuracy(decided, tables, parts.errors, takes)
        each = split_loss(settings.chosen_noise, settings.epsilon, settings.delta, takes)
        settings = apply_release_epsilons(settings, [d.study.loss.epsilon if d.study else None for d in drafts])
        steps = tuple(
            self._calibrate_step(step, share, draft.notices) for step, share in zip(decided, each, strict=True)
        )
        notices = [notice for step in drafts if step.rewritten for notice in step.rewritten.notices]
        notices += [notice for step in decided for notice in clipping_notices(step)]
        notices += draft.notices
        notices += [notice for release in releases for notice in release.notices]
        notices += [PREVIEW_NOTICE] * bool(parts.made_up)
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
            warnings=(PREVIEW_NOTICE,) if parts.made_up else (),
            pilot=self._is_pilot and bool(steps),
            norm_steps=norm_steps,
        )

    def _loss_needed(self, draft: StepDraft) -> LossNeed:
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
        decided: list[DecidedDraft],
        tables: list[TableStep],
        bars: tuple[ErrorBar | None, ...],
        takes: tuple[LossNeed, ...],
    ) -> Settings:
        """The settings with the least epsilon that keeps what was asked for; as they are, where nothing was."""
        if not self.settings.has_error_goal or not decided or any(step.undecided for step in decided):
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
                rewritten = decided[index].draft.rewritten
                assert rewritten is not None
                calibrated[index] = calibrate(rewritten.gather, each[index], relation, decided[index].spent)
            return [
                answers[name].error_goal(calibrated[answers[name].step], max_error) for name, max_error in aims.errors
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
        else:
            assert draft.rewritten is not None
            if draft.scored is not None:
                calibrated = calibrate_scores(draft.rewritten.gather, draft.scored, share, relation)
            else:
                calibrated = calibrate(draft.rewritten.gather, share, relation, decided.spent)
        sql, keys = render_release(calibrated.plan), calibrated.gather.keys
        read = find_runtime_parameters(sql)
        holes = tuple(hole for hole in draft.holes if hole.name in read)
        described = None
        if not draft.holes and not self._is_pilot and not decided.spent:  # a pilot's answer is found again as it was
            context = "\n".join(list_declarations(draft.aggregate, self.resolved, self.settings))
            described = describe_release(draft.aggregate, calibrated, context, self.settings.rows)
        return ReleaseStep(
            draft.name, draft.plan_hash, sql, keys, calibrated, holes, draft.after, described,
            decided.chosen, decided.undecided,
        )  # fmt: skip

    # --- public tables -----------------------------------------------------------------------------------------------

    def _read_public_table(self, read: PublicRead) -> PublicStep:
        sql = None
        if not read.place:
            table = PublicTable(read.table, tuple((column.name, column) for column in read.columns))
            sql = render_rows(scan_public_table(table, self.resolved))
        return PublicStep(read.name, read.place, read.table, read.columns, sql)
