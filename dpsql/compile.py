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

from dpsql.analysis.canon import canonical_plan, canonicalise
from dpsql.analysis.sensitivity import Neighboring
from dpsql.calibrate import Calibrated, Noise, Share, calibrate, calibrate_choice, conversion, shares
from dpsql.catalog.identity import Identity
from dpsql.errors import Error, LimitExceeded
from dpsql.plan.expr import And, IsNull, Not, Or
from dpsql.plan.measures import CountRows, Extreme, Frequent, Quantile
from dpsql.plan.nodes import Aggregate, Gather, Listed, ListedHole, Norm
from dpsql.plan.recipes import Recipe
from dpsql.plan.relations import Field, Filter, Named, PublicTable, RowsHole, Table
from dpsql.plan.stages import Bins, Hole, ReleaseColumn, Shape
from dpsql.plan.walk import measure_args, node_exprs, walk, walk_rows
from dpsql.privacy.loss import Loss, total
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
from dpsql.sql.parse import Parameter, read_query
from dpsql.sql.post import render_post, tables_read
from dpsql.sql.render import holes_read, render
from dpsql.sql.render_rows import render_rows
from dpsql.sql.slips import refuse_slips
from dpsql.sql.split import NOBODY, Split, split

FRAMES = 12_000
"""The parser takes some twenty frames for a parenthesis, and statements may be 200 deep whatever the caller's stack."""

MOST_GROUPS = 10_000
"""Selected groups for which a quantile is chosen."""

MOST_CONDITIONS = 1_000
"""In AND and OR of one release: DuckDB's optimizer takes some seconds for a thousand, minutes for three thousand."""

KEYS_HOLE = "keys"
"""The hole that a choice's groups come from, where they were selected."""


@dataclass(frozen=True)
class ReleaseStep:
    """One release: what the engine runs, and the noise. `after` are the places of the steps that its holes read."""

    name: str
    plan_hash: str
    sql: str
    keys: tuple[Field, ...]  # in the engine's order
    calibrated: Calibrated
    holes: tuple[Hole, ...] = ()
    after: tuple[int, ...] = ()

    @property
    def loss(self) -> Loss:
        return self.calibrated.loss


@dataclass(frozen=True)
class PublicStep:
    """A public table (`sql` reads it, for free) or one of the catalog (its schema is `place`)."""

    name: str
    place: str
    table: str
    columns: tuple[Field, ...]
    sql: str | None


@dataclass(frozen=True)
class Chosen:
    """The bins of a step, one for each fraction asked, read as values."""

    bins: Bins
    container: str | None


@dataclass(frozen=True)
class Counted:
    """A step of counts per group and value, of which the most frequent ones are read."""

    asked: Frequent
    recipe: Recipe


@dataclass(frozen=True)
class Answered:
    """Where a measure comes from: the place of its step, and how it is worked out from the step's release."""

    step: int
    recipe: Recipe | Chosen | Counted


@dataclass(frozen=True)
class TableStep:
    """A release as post-processing reads it: groups and linear measures of `step`, others joined by their groups.

    `step` is None where there is one group and nothing linear is asked of it.
    """

    name: str
    step: int | None
    columns: tuple[ReleaseColumn, ...]
    measures: tuple[Answered, ...]

    @property
    def steps(self) -> frozenset[int]:
        """The places of all steps that it is made of."""
        own = () if self.step is None else (self.step,)
        return frozenset((*own, *(answer.step for answer in self.measures)))


@dataclass(frozen=True)
class Compiled:
    statement: str
    reads: tuple[PublicStep, ...]
    steps: tuple[ReleaseStep, ...]
    tables: tuple[TableStep, ...]
    post_sql: str
    errors: tuple[ErrorBar | None, ...]  # per asked output column; empty where errors are not tracked
    settings: Settings
    notices: tuple[str, ...] = ()

    @property
    def loss(self) -> Loss:
        return total([step.loss for step in self.steps])

    @property
    def conversion(self) -> Fraction:
        """The part of its delta that is for the conversion from rho."""
        return conversion(self.settings.delta, any(step.calibrated.selection is not None for step in self.steps))


def compile_query(
    sql: str,
    resolved: Resolved,
    settings: Settings,
    parameters: Sequence[Parameter] = (),
    now: dt.datetime | None = None,
    who: Identity = NOBODY,
) -> Compiled:
    if sys.getrecursionlimit() < FRAMES:  # a process's limit; it is only ever raised
        sys.setrecursionlimit(FRAMES)
    try:
        parsed = read_query(sql, parameters)
        if not any(parameter is None for parameter in parameters):  # a program may well pass NULL
            refuse_slips(parsed.query)
        settings = with_options(settings, resolved.schema, parsed.options)
        return _Compiler(resolved, settings, who).compile(sql, split(parsed.query, resolved.schema, now, who))
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
    rewritten: Rewritten | None
    choice: Choice | None
    holes: tuple[Hole, ...]
    after: tuple[int, ...]


@dataclass(frozen=True)
class _Compiler:
    resolved: Resolved
    settings: Settings
    who: Identity = NOBODY
    reads: dict[str, PublicRead] = field(default_factory=dict)  # what the names of public tables stand for
    notices: list[str] = field(default_factory=list)

    def compile(self, sql: str, parts: Split) -> Compiled:
        drafts: list[_Draft] = []
        tables: list[TableStep] = []
        self.reads.update((read.name, read) for read in parts.reads)
        for release in parts.releases:
            tables.append(self._draft(release, drafts, tables))
        selects = tuple(d.rewritten is not None and d.rewritten.gather.selection is not None for d in drafts)
        each = shares(self.settings.chosen_noise, self.settings.epsilon, self.settings.delta, selects)
        steps = tuple(self._step(draft, share) for draft, share in zip(drafts, each, strict=True))
        notices = [notice for draft in drafts if draft.rewritten for notice in draft.rewritten.notices]
        notices += self.notices
        notices += [notice for release in parts.releases for notice in release.notices]
        return Compiled(
            statement=sql,
            reads=tuple(self._read(read) for read in parts.reads),
            steps=steps,
            tables=tuple(tables),
            post_sql=render_post(parts.post),
            errors=parts.errors,
            settings=self.settings,
            notices=tuple(dict.fromkeys(notices)),
        )

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
            drafts.append(_Draft(release.name, self._hash(main, holes, sources), rewritten, None, holes, after))
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
                    drafts.append(_Draft(name, self._hash(counts, holes, sources), found, None, holes, after))
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
        return _Draft(name, self._hash(alone, holes, sources), None, choice, holes, after)

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
        return ReleaseStep(draft.name, draft.plan_hash, sql, keys, calibrated, holes, draft.after)

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
        added when it is paid for (`after`).
        """
        schema, settings = self.resolved.schema, self.settings
        names = sorted({n.table for n in walk_rows(aggregate.input) if isinstance(n, Table | PublicTable)})
        tables = [repr(schema.table(name)) for name in names]
        caps = (settings.rows, settings.groups, settings.chosen_noise.value)
        relation = (schema.privacy.unit, schema.privacy.neighbors.value, schema.privacy.group_size)
        filled = [repr((h.name, h.shape.value, h.columns, h.most, h.sql, sorted(h.unique))) for h in holes]
        text = "\n".join([canonical_plan(aggregate), *tables, repr(caps), repr(relation), *filled, sources])
        return hashlib.sha256(text.encode()).hexdigest()


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
