"""From SQL to a compiled statement: parse, split, bind, rewrite, analyze, calibrate, render. Pure (law 6).

It reads no data, no clock and no randomness, and spends nothing; so EXPLAIN, describe and prepare are free.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpsql.accuracy import Aims, Goal, aimed_at, even_aims, least_epsilon, out_of_reach
from dpsql.analysis.canon import canonicalise
from dpsql.analysis.sensitivity import Neighboring
from dpsql.calibrate import (
    Calibrated,
    Noise,
    Share,
    Takes,
    calibrate,
    calibrate_choice,
    calibrate_scores,
    respond,
    shares,
    taken,
)
from dpsql.catalog.identity import Identity
from dpsql.compiled import Answered, Chosen, Compiled, Counted, PublicStep, Ranked, ReleaseStep, Responses, TableStep
from dpsql.derive.describe import describe
from dpsql.errors import Error, LimitExceeded
from dpsql.free import LISTED, made_up, needed
from dpsql.medians import by_setting, compared, few_blocks
from dpsql.plan.measures import Best, Blockwise, Extreme, Frequent, Posterior, Quantile, SharesPosterior, stands_apart
from dpsql.plan.nodes import Aggregate, Gather, Listed, ListedHole, Norm
from dpsql.plan.relations import PublicTable, RowsHole
from dpsql.plan.stages import Hole, Shape
from dpsql.rewrite.choose import Choice, choose
from dpsql.rewrite.choose_blocks import choose_blocks
from dpsql.rewrite.debias import debias, debias_counts, recorded
from dpsql.rewrite.limit_work import limit_conditions
from dpsql.rewrite.pipeline import Rewritten, rewrite
from dpsql.rewrite.policy import Policy
from dpsql.rewrite.respond import respond_rows
from dpsql.rewrite.scan_tables import scan_public
from dpsql.rewrite.score import candidates, counts, key_columns, ranked, shares_of, weigh_truth
from dpsql.rewrite.snap_times import snap_times
from dpsql.schema.model import Neighbors, Resolved
from dpsql.settings import Settings, with_options, with_own_loss
from dpsql.sql.block import ErrorBar
from dpsql.sql.blocks import BoundHole, BoundRelease, PublicRead
from dpsql.sql.holes import hole_domain
from dpsql.sql.parameters import Parameter, is_null
from dpsql.sql.parse import read_query
from dpsql.sql.post import render_post, tables_read
from dpsql.sql.predict import expand_predictions
from dpsql.sql.previews import NOTICE as MADE_UP
from dpsql.sql.render import holes_read, render
from dpsql.sql.render_rows import render_rows
from dpsql.sql.slips import refuse_slips
from dpsql.sql.split import NOBODY, Split, split
from dpsql.store_keys import behind_names, declarations, plan_hash

__all__ = [
    "Answered",
    "Chosen",
    "Compiled",
    "Counted",
    "PublicStep",
    "Ranked",
    "ReleaseStep",
    "Responses",
    "Settings",
    "TableStep",
    "compile_query",
    "relation_of",
]

FRAMES = 12_000
"""The parser takes some twenty frames for a parenthesis, and statements may be 200 deep whatever the caller's stack."""

MOST_GROUPS = 10_000
"""Selected groups for which a quantile is chosen."""

KEYS_HOLE = "keys"
"""The hole that a choice's groups come from, where they were selected."""


def compile_query(
    sql: str,
    resolved: Resolved,
    settings: Settings,
    parameters: Sequence[Parameter] = (),
    now: dt.datetime | None = None,
    who: Identity = NOBODY,
    aims: Aims | None = None,
) -> Compiled:
    """`aims` are what a pilot has found the errors may be; without them `max_relative_error` compiles to its pilot."""
    if sys.getrecursionlimit() < FRAMES:  # a process's limit; it is only ever raised
        sys.setrecursionlimit(FRAMES)
    try:
        parsed = read_query(sql, parameters)
        if not any(map(is_null, parameters)):  # a program may well pass NULL
            refuse_slips(parsed.query)
        settings = with_options(settings, resolved.schema, parsed.options)
        query = expand_predictions(parsed.query, resolved.schema)
        parts = split(query, resolved.schema, now, who, settings.ranges)
        return _Compiler(resolved, settings, who, aims).compile(sql, parts)
    except Error as error:
        error.statement = sql
        raise
    except RecursionError:
        raise LimitExceeded("the statement is nested too deeply") from None


@dataclass(frozen=True)
class _Draft:
    """A step before its share of the loss is known."""

    name: str
    plan_hash: str
    aggregate: Aggregate
    rewritten: Rewritten | None
    choice: Choice | None
    holes: tuple[Hole, ...]
    after: tuple[int, ...]
    scored: Best | Posterior | None = None
    study: Calibrated | None = None  # its loss is its own


@dataclass(frozen=True)
class _Groups:
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
    who: Identity = NOBODY
    aims: Aims | None = None
    reads: dict[str, PublicRead] = field(default_factory=dict)  # what the names of public tables stand for
    notices: list[str] = field(default_factory=list)

    def compile(self, sql: str, parts: Split) -> Compiled:
        drafts: list[_Draft] = []
        tables: list[TableStep] = []
        self.reads.update((read.name, read) for read in parts.reads)
        tables += made_up(parts, self.resolved.schema)
        free = needed(parts, self.resolved, self._policy)
        releases = [release for release in parts.releases if release.name in free]
        for release in releases:
            stands = free[release.name]
            if stands is None:
                tables.append(self._draft(release, drafts, tables))
            elif isinstance(stands, TableStep):
                tables.append(stands)
        takes = tuple(self._takes(draft) for draft in drafts)
        settings = self._accurate(drafts, tables, parts.errors, takes)
        each = shares(settings.chosen_noise, settings.epsilon, settings.delta, takes)
        settings = with_own_loss(settings, [d.study.loss.epsilon if d.study else None for d in drafts])
        steps = tuple(self._step(draft, share) for draft, share in zip(drafts, each, strict=True))
        notices = [notice for draft in drafts if draft.rewritten for notice in draft.rewritten.notices]
        notices += self.notices
        notices += [notice for release in releases for notice in release.notices]
        notices += [MADE_UP] * bool(parts.made_up)
        notices += [LISTED] * any(free[release.name] is not None and release.aggregate.keys for release in releases)
        return Compiled(
            statement=sql,
            reads=(*map(self._read, parts.reads), *(one for one in free.values() if isinstance(one, PublicStep))),
            steps=steps,
            tables=tuple(tables),
            post_sql=render_post(parts.post),
            errors=parts.errors,
            settings=settings,
            notices=tuple(dict.fromkeys(notices)),
            warnings=(MADE_UP,) if parts.made_up else (),
            pilot=self._is_pilot and bool(steps),
        )

    def _takes(self, draft: _Draft) -> Takes:
        if draft.choice is not None:
            return Takes.EPSILON if draft.choice.local is None else Takes.DELTA
        if draft.rewritten is None or draft.scored is not None:
            return Takes.EPSILON
        return taken(draft.rewritten.gather, relation_of(self.resolved))

    # --- accuracy first ----------------------------------------------------------------------------------------------

    @property
    def _is_pilot(self) -> bool:
        return self.settings.max_relative_error is not None and self.aims is None

    def _accurate(
        self, drafts: list[_Draft], tables: list[TableStep], bars: tuple[ErrorBar | None, ...], takes: tuple[Takes, ...]
    ) -> Settings:
        """The settings with the least epsilon that keeps what was asked for; as they are, where nothing was."""
        if not self.settings.aiming or not drafts:
            return self.settings
        answers = aimed_at(tables, bars, self.settings)
        if self._is_pilot:
            return self.settings
        aims = self.aims or even_aims(answers, self.settings)
        relation = relation_of(self.resolved)

        def goals_at(epsilon: Fraction) -> list[Goal]:
            each = shares(self.settings.chosen_noise, epsilon, self.settings.delta, takes)
            found: dict[int, Calibrated] = {}
            for place in {answers[name].step for name, _ in aims.errors}:
                rewritten = drafts[place].rewritten
                assert rewritten is not None
                found[place] = calibrate(rewritten.gather, each[place], relation)
            return [answers[name].goal(found[answers[name].step], most) for name, most in aims.errors]

        epsilon = least_epsilon(goals_at, 1 - aims.confidence)
        if epsilon is None:
            raise out_of_reach(self.settings)
        return replace(self.settings, epsilon=epsilon)

    # --- releases ----------------------------------------------------------------------------------------------------

    def _draft(self, release: BoundRelease, drafts: list[_Draft], tables: list[TableStep]) -> TableStep:
        """The steps of a release: one for groups and linear measures, one each for quantiles and counts of values."""
        if release.epsilon is not None:
            return self._response(release, release.epsilon, drafts)
        snapped = snap_times(canonicalise(release.aggregate), self.resolved.schema)
        asked = canonicalise(snapped.aggregate)
        self.notices.extend(snapped.notices)
        limit_conditions(asked)
        holes = tuple(_hole(hole) for hole in release.holes)
        after = _after(release.holes, tables)
        sources = behind_names(release.holes, tables, after, self.reads, self.resolved.schema, self.who)
        linear = tuple(m for m in asked.measures if not stands_apart(m))
        main = replace(asked, measures=linear)
        rewritten = rewrite(main, self.resolved, self._policy)
        place: int | None = None
        if asked.keys or linear or not asked.measures:
            place = len(drafts)
            drafts.append(_Draft(release.name, self._hash(main, holes, sources), main, rewritten, None, holes, after))
        beside = _Groups(None, holes, after, sources)
        groups = self._groups(release.name, place, rewritten.gather, beside)
        debiased = debias(main, rewritten, self.resolved.schema)
        self.notices.extend(debiased.notices)
        recipes = iter(debiased.recipes)
        answers: list[Answered] = []
        counted: dict[str, int] = {}
        for number, measure in enumerate(asked.measures, 1):
            name = f"{release.name}_m{number}"
            match measure:
                case Quantile() | Extreme() | Blockwise() if stands_apart(measure):
                    measure = by_setting(measure, self.settings.median, self.settings.proposal)
                    drafts.append(self._choice(name, measure, asked, groups))
                    self.notices.extend(recorded(drafts[-1].aggregate, self.resolved.schema))
                    choice = drafts[-1].choice
                    assert choice is not None
                    container = measure.container if isinstance(measure, Quantile) else None
                    answers.append(Answered(len(drafts) - 1, Chosen(choice.bins, container)))
                case Frequent() | SharesPosterior():
                    among = counts(asked, measure)
                    found, plan_hash = rewrite(among, self.resolved, self._policy), self._hash(among, holes, sources)
                    if plan_hash not in counted:  # the same counts are paid once, whatever is read of them
                        counted[plan_hash] = len(drafts)
                        drafts.append(_Draft(name, plan_hash, among, found, None, holes, after))
                    told = debias_counts(among, measure, found, self.resolved.schema)
                    self.notices.extend(told.notices)
                    answers.append(Answered(counted[plan_hash], Counted(measure, told.recipes[0])))
                case Best():
                    drafts.append(self._best(name, measure, asked, beside, drafts, tables))
                    answers.append(Answered(len(drafts) - 1, Ranked(measure)))
                case Posterior():
                    alone = replace(asked, measures=(measure,))
                    cells = weigh_truth(alone, groups.listed, self.resolved, self._policy)
                    drafts.append(self._scored(name, measure, asked, groups, cells))
                    answers.append(Answered(len(drafts) - 1, Chosen(shares_of(measure), measure.container)))
                case _:
                    assert place is not None
                    answers.append(Answered(place, next(recipes)))
        return TableStep(release.name, place, release.columns, tuple(answers))

    def _response(self, release: BoundRelease, epsilon: Fraction, drafts: list[_Draft]) -> TableStep:
        """Randomized answers of all units: each release loses its own epsilon."""
        asked = canonicalise(release.aggregate)
        tallied = respond_rows(asked, self.resolved)
        (axis,) = tallied.axes
        study = respond(tallied.tally, axis, epsilon, relation_of(self.resolved))
        found = self._hash(asked, (), repr(("randomized", epsilon, axis)))
        self.notices.extend(recorded(asked, self.resolved.schema))
        drafts.append(_Draft(release.name, found, asked, None, None, (), (), study=study))
        answers = tuple(Answered(len(drafts) - 1, Responses(axis, counts)) for counts in (False, True))
        return TableStep(release.name, len(drafts) - 1, release.columns, answers)

    def _choice(self, name: str, measure: Quantile | Extreme | Blockwise, asked: Aggregate, groups: _Groups) -> _Draft:
        """A quantile is chosen in public groups."""
        alone = replace(asked, measures=(measure,))
        if isinstance(measure, Blockwise):
            choice = choose_blocks(alone, measure, groups.listed, groups.selected, self.resolved, self._policy)
        else:
            choice = choose(alone, measure, groups.listed, self.resolved, self._policy)
        plan_hash = self._hash(alone, groups.holes, groups.sources)
        return _Draft(name, plan_hash, alone, None, choice, groups.holes, groups.after)

    def _groups(self, table: str, place: int | None, main: Gather, beside: _Groups) -> _Groups:
        """Public groups: those listed, or those that the step at `place`, which is `table`, has released."""
        if main.selection is None or place is None:
            return replace(beside, listed=main.listed, selected=main.selection is not None)
        rows = RowsHole(KEYS_HOLE, main.keys, tuple(hole_domain(key.type) for key in main.keys), MOST_GROUPS)
        listed = Listed((ListedHole(main.keys, rows, tuple(key.name for key in main.keys)),))
        columns = ", ".join(f'"{key.name}"' for key in main.keys)
        source = f"SELECT DISTINCT {columns} FROM {table}"
        keys = Hole(KEYS_HOLE, Shape.ROWS, main.keys, MOST_GROUPS, source, rows.domains)
        return _Groups(listed, (*beside.holes, keys), (*beside.after, place), beside.sources, selected=True)

    def _best(
        self, name: str, measure: Best, asked: Aggregate, groups: _Groups, drafts: list[_Draft], tables: list[TableStep]
    ) -> _Draft:
        """The best of public values: those listed, or those that a step of their own selects first."""
        among = candidates(asked, measure)
        found = rewrite(among, self.resolved, self._policy)
        groups = replace(groups, listed=None)
        if found.gather.selection is not None:
            keys, table, place = replace(among, measures=()), f"{name}_keys", len(drafts)
            selected = rewrite(keys, self.resolved, self._policy)
            plan_hash = self._hash(keys, groups.holes, groups.sources)
            drafts.append(_Draft(table, plan_hash, keys, selected, None, groups.holes, groups.after))
            tables.append(TableStep(table, place, key_columns(selected.gather), ()))
            groups = self._groups(table, place, selected.gather, groups)
        return self._scored(name, measure, asked, groups, ranked(found, measure, groups.listed))

    def _scored(
        self, name: str, measure: Best | Posterior, asked: Aggregate, groups: _Groups, cells: Rewritten
    ) -> _Draft:
        alone = replace(asked, measures=(measure,))
        self.notices.extend(recorded(alone, self.resolved.schema))
        plan_hash = self._hash(alone, groups.holes, groups.sources)
        return _Draft(name, plan_hash, alone, cells, None, groups.holes, groups.after, measure)

    def _step(self, draft: _Draft, share: Share) -> ReleaseStep:
        relation = relation_of(self.resolved)
        if draft.study is not None:
            return ReleaseStep(draft.name, draft.plan_hash, render(draft.study.plan), (), draft.study)
        if draft.choice is not None:
            calibrated = calibrate_choice(draft.choice, share, relation)
            self.notices.extend(compared(calibrated.choice, draft.choice.bins, calibrated.weights))
            self.notices.extend(few_blocks(calibrated.choice, draft.aggregate.measures))
        else:
            assert draft.rewritten is not None
            if draft.scored is not None:
                calibrated = calibrate_scores(draft.rewritten.gather, draft.scored, share, relation)
            else:
                calibrated = calibrate(draft.rewritten.gather, share, relation)
        sql, keys = render(calibrated.plan), calibrated.gather.keys
        read = holes_read(sql)
        holes = tuple(hole for hole in draft.holes if hole.name in read)
        described = None
        if not draft.holes and not self._is_pilot:  # a pilot's answer is found again as it was
            context = "\n".join(declarations(draft.aggregate, self.resolved, self.settings))
            described = describe(draft.aggregate, calibrated, context, self.settings.rows)
        return ReleaseStep(draft.name, draft.plan_hash, sql, keys, calibrated, holes, draft.after, described)

    # --- public tables -----------------------------------------------------------------------------------------------

    def _read(self, read: PublicRead) -> PublicStep:
        sql = None
        if not read.place:
            table = PublicTable(read.table, tuple((column.name, column) for column in read.columns))
            sql = render_rows(scan_public(table, self.resolved))
        return PublicStep(read.name, read.place, read.table, read.columns, sql)

    # --- policy and keys of the store --------------------------------------------------------------------------------

    @property
    def _policy(self) -> Policy:
        norm = Norm.L2 if self.settings.chosen_noise is Noise.GAUSSIAN else Norm.L1
        return Policy(self.settings.rows, self.settings.groups, norm)

    def _hash(self, aggregate: Aggregate, holes: tuple[Hole, ...], sources: str) -> str:
        declared = declarations(aggregate, self.resolved, self.settings)
        return plan_hash(aggregate, declared, holes, sources, pilot=self._is_pilot)


def relation_of(resolved: Resolved) -> Neighboring:
    privacy = resolved.schema.privacy
    return Neighboring(privacy.neighbors is Neighbors.CHANGE_ONE, privacy.group_size)


def _hole(hole: BoundHole) -> Hole:
    return Hole(hole.name, hole.shape, hole.columns, hole.most, render_post(hole.source), hole.domains, hole.unique)


def _after(holes: tuple[BoundHole, ...], tables: list[TableStep]) -> tuple[int, ...]:
    """The places of all steps that the holes' sources read."""
    read = {name for hole in holes for name in tables_read(hole.source)}
    return tuple(sorted({place for table in tables if table.name in read for place in table.steps}))
