"""From SQL to a compiled statement: parse, split, bind, rewrite, analyze, calibrate, render. Pure (law 6).

It reads no data, no clock and no randomness, and spends nothing; so EXPLAIN, describe and prepare are free.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpsql.accuracy import Aims, Goal, aimed_at, even_aims, least_epsilon, out_of_reach
from dpsql.analysis.canon import canonical_plan, canonicalise
from dpsql.analysis.sensitivity import Neighboring
from dpsql.calibrate import Calibrated, Noise, Share, calibrate, calibrate_choice, shares
from dpsql.catalog.identity import Identity
from dpsql.compiled import Answered, Chosen, Compiled, Counted, PublicStep, ReleaseStep, TableStep
from dpsql.derive.describe import describe
from dpsql.errors import Error, LimitExceeded
from dpsql.free import LISTED, made_up, needed
from dpsql.plan.expr import And, IsNull, Not, Or
from dpsql.plan.measures import CountRows, Extreme, Frequent, Quantile
from dpsql.plan.nodes import Aggregate, Gather, Listed, ListedHole, Norm
from dpsql.plan.relations import Filter, Named, PublicTable, RowsHole, Table
from dpsql.plan.stages import Hole, Shape
from dpsql.plan.walk import measure_args, node_exprs, walk, walk_rows
from dpsql.rewrite.choose import Choice, choose
from dpsql.rewrite.pipeline import Rewritten, rewrite
from dpsql.rewrite.policy import Policy
from dpsql.rewrite.scan_tables import scan_public
from dpsql.rewrite.snap_times import snap_times
from dpsql.schema.model import Neighbors, Resolved
from dpsql.settings import Settings, with_options
from dpsql.sql.block import ErrorBar
from dpsql.sql.blocks import BoundHole, BoundRelease, PublicRead
from dpsql.sql.holes import hole_domain
from dpsql.sql.parameters import Parameter, is_null
from dpsql.sql.parse import read_query
from dpsql.sql.post import render_post, tables_read
from dpsql.sql.previews import NOTICE as MADE_UP
from dpsql.sql.render import holes_read, render
from dpsql.sql.render_rows import render_rows
from dpsql.sql.slips import refuse_slips
from dpsql.sql.split import NOBODY, Split, split

__all__ = [
    "Answered",
    "Chosen",
    "Compiled",
    "Counted",
    "PublicStep",
    "ReleaseStep",
    "Settings",
    "TableStep",
    "compile_query",
]

FRAMES = 12_000
"""The parser takes some twenty frames for a parenthesis, and statements may be 200 deep whatever the caller's stack."""

MOST_GROUPS = 10_000
"""Selected groups for which a quantile is chosen."""

MOST_CONDITIONS = 1_000
"""In AND and OR of one release: DuckDB's optimizer takes some seconds for a thousand, minutes for three thousand."""

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
        parts = split(parsed.query, resolved.schema, now, who, settings.ranges)
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
        selects = tuple(d.rewritten is not None and d.rewritten.gather.selection is not None for d in drafts)
        settings = self._accurate(drafts, tables, parts.errors, selects)
        each = shares(settings.chosen_noise, settings.epsilon, settings.delta, selects)
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

    # --- accuracy first ----------------------------------------------------------------------------------------------

    @property
    def _is_pilot(self) -> bool:
        return self.settings.max_relative_error is not None and self.aims is None

    def _accurate(
        self,
        drafts: list[_Draft],
        tables: list[TableStep],
        bars: tuple[ErrorBar | None, ...],
        selects: tuple[bool, ...],
    ) -> Settings:
        """The settings with the least epsilon that keeps what was asked for; as they are, where nothing was."""
        if not self.settings.aiming or not drafts:
            return self.settings
        answers = aimed_at(tables, bars, self.settings)
        if self._is_pilot:
            return self.settings
        aims = self.aims or even_aims(answers, self.settings)
        relation = _relation(self.resolved)

        def goals_at(epsilon: Fraction) -> list[Goal]:
            each = shares(self.settings.chosen_noise, epsilon, self.settings.delta, selects)
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
        snapped = snap_times(canonicalise(release.aggregate), self.resolved.schema)
        asked = canonicalise(snapped.aggregate)
        self.notices.extend(snapped.notices)
        _check_conditions(asked)
        holes = tuple(_hole(hole) for hole in release.holes)
        after = _after(release.holes, tables)
        sources = self._sources(release.holes, tables, after)
        linear = tuple(m for m in asked.measures if not isinstance(m, Quantile | Extreme | Frequent))
        main = replace(asked, measures=linear)
        rewritten = rewrite(main, self.resolved, self._policy)
        place: int | None = None
        if asked.keys or linear or not asked.measures:
            place = len(drafts)
            drafts.append(_Draft(release.name, self._hash(main, holes, sources), main, rewritten, None, holes, after))
        recipes = iter(rewritten.recipes)
        answers: list[Answered] = []
        for number, measure in enumerate(asked.measures, 1):
            name = f"{release.name}_m{number}"
            match measure:
                case Quantile() | Extreme():
                    drafts.append(self._choice(name, measure, asked, rewritten.gather, holes, after, place, sources))
                    choice = drafts[-1].choice
                    assert choice is not None
                    container = measure.container if isinstance(measure, Quantile) else None
                    answers.append(Answered(len(drafts) - 1, Chosen(choice.bins, container)))
                case Frequent():
                    counts = _counts(asked, measure)
                    found = rewrite(counts, self.resolved, self._policy)
                    drafts.append(_Draft(name, self._hash(counts, holes, sources), counts, found, None, holes, after))
                    answers.append(Answered(len(drafts) - 1, Counted(measure, found.recipes[0])))
                case _:
                    assert place is not None
                    answers.append(Answered(place, next(recipes)))
        return TableStep(release.name, place, release.columns, tuple(answers))

    def _choice(
        self,
        name: str,
        measure: Quantile | Extreme,
        asked: Aggregate,
        main: Gather,
        holes: tuple[Hole, ...],
        after: tuple[int, ...],
        place: int | None,
        sources: str,
    ) -> _Draft:
        """A quantile is chosen in public groups: those listed, or those that the main step has released."""
        listed = main.listed
        if main.selection is not None and place is not None:
            rows = RowsHole(KEYS_HOLE, main.keys, tuple(hole_domain(key.type) for key in main.keys), MOST_GROUPS)
            listed = Listed((ListedHole(main.keys, rows, tuple(key.name for key in main.keys)),))
            columns = ", ".join(f'"{key.name}"' for key in main.keys)
            table = name.rsplit("_m", 1)[0]
            source = f"SELECT DISTINCT {columns} FROM {table}"
            keys = Hole(KEYS_HOLE, Shape.ROWS, main.keys, MOST_GROUPS, source, rows.domains)
            holes, after = (*holes, keys), (*after, place)
        alone = replace(asked, measures=(measure,))
        choice = choose(alone, measure, listed, self.resolved, self._policy)
        return _Draft(name, self._hash(alone, holes, sources), alone, None, choice, holes, after)

    def _step(self, draft: _Draft, share: Share) -> ReleaseStep:
        relation = _relation(self.resolved)
        if draft.choice is not None:
            calibrated = calibrate_choice(draft.choice, share, relation)
        else:
            assert draft.rewritten is not None
            calibrated = calibrate(draft.rewritten.gather, share, relation)
        sql, keys = render(calibrated.gather), calibrated.gather.keys
        read = holes_read(sql)
        holes = tuple(hole for hole in draft.holes if hole.name in read)
        described = None
        if not draft.holes and not self._is_pilot:  # a pilot's answer is found again as it was
            context = "\n".join(self._declared(draft.aggregate))
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

    def _sources(self, holes: tuple[BoundHole, ...], tables: list[TableStep], after: tuple[int, ...]) -> str:
        """What stands behind the names in the holes' SQL: public tables, and places among the steps of `after`."""
        names = sorted({name for hole in holes for name in tables_read(hole.source)})
        reads = [self.reads[name] for name in names if name in self.reads]
        public = [(r.name, r.place, r.table, repr(self.resolved.schema.table(r.table))) for r in reads]
        places = {t.name: [after.index(place) for place in sorted(t.steps)] for t in tables if t.name in names}
        who = self.who if any(read.place for read in reads) else None  # a catalog may show who asks
        return repr((public, sorted(places.items()), who))

    def _hash(self, aggregate: Aggregate, holes: tuple[Hole, ...], sources: str) -> str:
        """What a stored release is found by: the question, the tables' declarations and the caps; not ε.

        The question is the canonical plan that is also rewritten and run, so one hash has one set of cells and
        recipes. Its holes count by their SQL and what its names stand for (`sources`); the releases that fill them are
        added when it is paid for (`after`). A pilot's is another: what it said must be found again, and not the better
        release that followed from it.
        """
        filled = [repr((h.name, h.shape.value, h.columns, h.most, h.sql, sorted(h.unique))) for h in holes]
        pilot = ["pilot"] if self._is_pilot else []
        text = "\n".join([canonical_plan(aggregate), *self._declared(aggregate), *filled, sources, *pilot])
        return hashlib.sha256(text.encode()).hexdigest()

    def _declared(self, aggregate: Aggregate) -> list[str]:
        """The declarations of the tables that are read, the caps and the relation of neighbors."""
        schema, settings = self.resolved.schema, self.settings
        names = sorted({n.table for n in walk_rows(aggregate.input) if isinstance(n, Table | PublicTable)})
        tables = [repr(schema.table(name)) for name in names]
        caps = (settings.rows, settings.groups, settings.chosen_noise.value)
        relation = (schema.privacy.unit, schema.privacy.neighbors.value, schema.privacy.group_size)
        return [*tables, repr(caps), repr(relation)]


def _check_conditions(asked: Aggregate) -> None:
    """Engines take time that grows with the square of a chain of AND or OR, and more; lists of values are no chains."""
    rows = [expr for node in walk_rows(asked.input) for expr in node_exprs(node)]
    exprs = [*rows, *(key.expr for key in asked.keys), *(arg for m in asked.measures for arg in measure_args(m))]
    parts = sum(len(part.args) for expr in exprs for part in walk(expr) if isinstance(part, And | Or))
    if parts > MOST_CONDITIONS:
        raise LimitExceeded(f"private rows are tried on more than {MOST_CONDITIONS} conditions",
                            hint="Equalities may be a list: x IN (1, 2, 3), x NOT IN (1, 2, 3).")  # fmt: skip


def _relation(resolved: Resolved) -> Neighboring:
    privacy = resolved.schema.privacy
    return Neighboring(privacy.neighbors is Neighbors.CHANGE_ONE, privacy.group_size)


def _hole(hole: BoundHole) -> Hole:
    return Hole(hole.name, hole.shape, hole.columns, hole.most, render_post(hole.source), hole.domains, hole.unique)


def _after(holes: tuple[BoundHole, ...], tables: list[TableStep]) -> tuple[int, ...]:
    """The places of all steps that the holes' sources read."""
    read = {name for hole in holes for name in tables_read(hole.source)}
    found = [t for t in tables if t.name in read]
    return tuple(sorted({place for table in found for place in table.steps}))


def _counts(asked: Aggregate, measure: Frequent) -> Aggregate:
    """How often each value occurs in each group."""
    value = Named("value", measure.arg)
    rows = Filter(asked.input, Not(IsNull(measure.arg)))
    sets = tuple(names | {value.name} for names in asked.sets)
    return Aggregate(rows, (*asked.keys, value), (CountRows(),), sets)
