"""What a statement compiles to: releases in order, how their tables are made, and the post-processing above them."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from dpsql.compiler.analysis.canonical import canonical_plan_text
from dpsql.compiler.calibrate.calibrate import CalibratedPlan, NoiseKind, delta_for_conversion
from dpsql.compiler.catalog.variables import Identity
from dpsql.compiler.functions.time_zones import session_zone
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.estimators import Recipe
from dpsql.compiler.plan.measures import Best, Frequent, SharesPosterior
from dpsql.compiler.plan.relations import Field, PublicTable, Table
from dpsql.compiler.plan.steps import Axis, Bins, Hole, ReleaseColumn, hole_text
from dpsql.compiler.plan.walk import walk_rows
from dpsql.compiler.postprocess.postgres_semantics import tables_read_by
from dpsql.compiler.reuse.describe import DescribedRelease
from dpsql.compiler.rewrite.scan_tables import columns_before_bounds
from dpsql.compiler.settings import Settings, option_templates_of
from dpsql.compiler.split.blocks import BoundRuntimeParameter, PublicRead
from dpsql.compiler.split.release_block import ErrorBar
from dpsql.privacy.loss import Loss, sum_losses
from dpsql.privacy.norm_choice import ChosenNorm, MeanBins, NormBins
from dpsql.schema.model import Resolved, Schema


@dataclass(frozen=True)
class ReleaseStep:
    """One release: what the engine runs, and the noise. `after` are the places of the steps that its holes read."""

    name: str
    plan_hash: str
    sql: str
    keys: tuple[Field, ...]  # in the engine's order
    calibrated: CalibratedPlan
    holes: tuple[Hole, ...] = ()
    after: tuple[int, ...] = ()
    described: DescribedRelease | None = None  # what else can be derived from it; None where nothing can
    norms: tuple[tuple[str, ChosenNorm], ...] = ()  # that were chosen, by the first cell that each is for
    undecided: bool = False  # whether norms are still to be chosen: it is not run as it stands
    spread: int = 1  # groups that a unit may be in at most, where its L2 norm in these is still to be chosen

    @property
    def loss(self) -> Loss:
        return self.calibrated.loss


@dataclass(frozen=True)
class NormStep:
    """A histogram of units that norms and centres are chosen from. `decided` where it is released, and has been read.

    One that `waits` for a centre is here for its price alone: its text follows from that centre.
    """

    step: ReleaseStep
    bins: NormBins | MeanBins
    decided: bool = False
    waits: bool = False


@dataclass(frozen=True)
class PublicStep:
    """A public table (`sql` reads it, for free) or one of the catalog (its schema is `place`)."""

    name: str
    place: str
    table: str
    columns: tuple[Field, ...]
    sql: str | None


@dataclass(frozen=True)
class StaticRows:
    """Rows that follow from the schema and the statement alone: neither data nor noise is in them."""

    names: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


@dataclass(frozen=True)
class SelectedBins:
    """The bins of a step, one for each fraction asked, read as values."""

    bins: Bins
    container: str | None


@dataclass(frozen=True)
class CountedValues:
    """A step of counts per group and value, of which the most frequent ones are read, or their shares."""

    asked: Frequent | SharesPosterior
    recipe: Recipe


@dataclass(frozen=True)
class RankedValues:
    """A step of the best values of each group, with their places."""

    asked: Best


@dataclass(frozen=True)
class RandomizedResponses:
    """Randomized responses: each response, or how often each was given (`counts`)."""

    axis: Axis
    counts: bool


@dataclass(frozen=True)
class MeasureSource:
    """Where a measure comes from: the place of its step, and how it is worked out from the step's release."""

    step: int
    recipe: Recipe | SelectedBins | CountedValues | RankedValues | RandomizedResponses


@dataclass(frozen=True)
class GroupCount:
    """The noisy count that a table's listed groups are judged by, some of which are then left out.

    `measure` is its place among the table's measures.

    Groups that differ in `times` alone are judged together; those of each grouping set, which are told by its keys,
    apart. `asked`: the count is one that the statement asks for anyway. `alone`: it is a release of its own. `added`:
    it is that, or has cells beside those that are asked for.
    """

    measure: int
    times: frozenset[str]
    sets: tuple[frozenset[str], ...]
    asked: bool
    alone: bool
    added: bool


@dataclass(frozen=True)
class TableStep:
    """A release as post-processing reads it: groups and linear measures of `step`, others joined by their groups.

    `step` is None where there is one group and nothing linear is asked of it; or where its rows are `known`.
    """

    name: str
    step: int | None
    columns: tuple[ReleaseColumn, ...]
    measures: tuple[MeasureSource, ...]
    known: StaticRows | None = None
    counted: GroupCount | None = None  # None: all groups are given out

    @property
    def steps(self) -> frozenset[int]:
        """The places of all steps that it is made of."""
        main_step = () if self.step is None else (self.step,)
        return frozenset((*main_step, *(answer.step for answer in self.measures)))


@dataclass(frozen=True)
class Postprocessing:
    """What a statement makes of its releases and public tables. It is looked up by it: its hash is worked out once."""

    post_sql: str
    reads: tuple[PublicStep, ...]
    tables: tuple[TableStep, ...]
    errors: tuple[ErrorBar | None, ...]
    notices: tuple[str, ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.post_sql, self.reads, self.tables, self.errors, self.notices))

    def __hash__(self) -> int:
        return self._hash


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
    warnings: tuple[str, ...] = ()  # the notices without which an answer would be misread
    pilot: bool = False  # its answers decide how accurate the statement itself must be
    norm_steps: tuple[NormStep, ...] = ()  # that its norms are chosen from
    copies_values: bool = False  # of public tables: it computes nothing, so an infinity is one that is stored there
    unknown_clipping: tuple[str, ...] = ()  # notices of what no histogram tells; each is for one answer of a session
    labels: tuple[str, ...] = ()  # of what undecided steps measure, as notices have them

    @property
    def loss(self) -> Loss:
        return sum_losses([step.loss for step in self.steps])

    @property
    def undecided(self) -> bool:
        """Whether norms are still to be chosen."""
        return any(step.undecided for step in self.steps)

    @property
    def steps_of_judged_groups(self) -> frozenset[int]:
        """The places of releases that it would not have if all groups were listed: counts, and what is filtered by the
        groups that are left."""
        counts = [(table, table.counted) for table in self.tables if table.counted is not None]
        added = {table.measures[count.measure].step for table, count in counts if count.added}
        filtered = {index for index, step in enumerate(self.steps) if step.after} if counts else set[int]()
        return frozenset(added | filtered)

    @property
    def fills_holes(self) -> bool:
        """Whether a release reads others."""
        return any(step.after for step in self.steps)

    def with_all_groups(self) -> Compiled:
        """The statement with its releases, of which all listed groups are given out."""
        if all(table.counted is None for table in self.tables):
            return self
        return replace(self, tables=tuple(replace(table, counted=None) for table in self.tables))

    @property
    def epsilon(self) -> Fraction:
        """At most what all of it loses: what was asked for, or less where choices under rho need no delta after all."""
        loss = self.loss
        if loss.rho > 0 and (loss.epsilon is None or self.settings.chosen_noise is NoiseKind.LAPLACE):
            return self.settings.epsilon
        return loss.epsilon or Fraction(0)

    @cached_property
    def postprocessing(self) -> Postprocessing:
        return Postprocessing(self.post_sql, self.reads, self.tables, self.errors, self.notices)

    @cached_property
    def meaning(self) -> Hashable:
        """What it asks, whatever its text: statements of one schema, identity and settings that are equal in it are
        the same statement with any norms. That of a moving window is, once its times are snapped."""
        steps = [*self.steps, *(norm.step for norm in self.norm_steps)]
        asked = tuple((s.name, s.plan_hash, s.sql, s.holes, s.after, s.calibrated.record) for s in steps)
        flags = (self.pilot, self.copies_values, tuple((norm.bins, norm.waits) for norm in self.norm_steps))
        notices = (self.warnings, self.unknown_clipping, self.labels)
        return self.postprocessing, self.settings, asked, flags, notices

    @property
    def knobs(self) -> tuple[str, str]:
        """How another epsilon and another delta are asked for."""
        return option_templates_of(self.statement)

    @property
    def conversion(self) -> Fraction:
        """The part of its delta that is for the conversion from rho."""
        return delta_for_conversion(self.settings.delta, any(step.calibrated.spends_delta for step in self.steps))


# --- the key of a stored release -------------------------------------------------------------------------------------
# The canonical question, the tables' declarations and the caps; not ε.


def hash_plan(
    aggregate: Aggregate, declared: Sequence[str], holes: Sequence[Hole], sources: str, *, pilot: bool
) -> str:
    """The question is the canonical plan that is also rewritten and run, so one hash has one set of cells and recipes.

    Its holes count by their SQL and what its names stand for (`sources`); the releases that fill them are added when it
    is paid for (`after`). A pilot's is another: what it said must be found again, and not the better release that
    followed from it. What fills a hole is worked out by the clocks of the session's zone. In the plan itself a zone
    stands where it is used.
    """
    filled = [hole_text(hole) for hole in holes]
    # Before version 2 a unit's rows in all grouping sets were scaled down together: those are other answers.
    sets = ["grouping sets 2"] if aggregate.sets else []
    zone = [] if session_zone().is_utc or not holes else [f"time zone {session_zone().engine_name}"]
    lines = [canonical_plan_text(aggregate), *declared, *filled, sources, *sets, *(["pilot"] if pilot else []), *zone]
    text = "\n".join(lines)
    return hashlib.sha256(text.encode()).hexdigest()


def list_declarations(aggregate: Aggregate, resolved: Resolved, settings: Settings) -> list[str]:
    """The declarations of the tables that are read, the caps and the relation of neighbors."""
    schema = resolved.schema
    names = sorted({n.table for n in walk_rows(aggregate.input) if isinstance(n, Table | PublicTable)})
    tables = [repr(schema.table(name)) for name in names]
    # In older versions these columns had the upper bound as a value, and charts of them a group for it.
    tables += [f"before the upper bound: {name}" for name in columns_before_bounds(aggregate, schema)]
    caps = (settings.rows, settings.groups, settings.chosen_noise.value)
    relation = (schema.privacy.unit, schema.privacy.neighbors.value, schema.privacy.group_size)
    return [*tables, repr(caps), repr(relation)]


def _source_of_table(table: TableStep, after: tuple[int, ...]) -> object:
    """The places of its steps among `after`; and how groups are judged, where some are left out of what it gives."""
    steps = [after.index(index) for index in sorted(table.steps)]
    if table.counted is None:
        return steps
    count = table.counted
    sets = [sorted(keys) for keys in count.sets]
    return steps, "without empty groups", sorted(count.times), sets, repr(table.measures[count.measure].recipe)


def source_identities(
    holes: Sequence[BoundRuntimeParameter],
    tables: Sequence[TableStep],
    after: tuple[int, ...],
    reads: Mapping[str, PublicRead],
    schema: Schema,
    identity: Identity,
) -> str:
    """What stands behind the names in the holes' SQL: public tables, and places among the steps of `after`."""
    names = sorted({name for hole in holes for name in tables_read_by(hole.source)})
    read = [reads[name] for name in names if name in reads]
    public = [(r.name, r.place, r.table, repr(schema.table(r.table))) for r in read]
    step_indexes: dict[str, object] = {t.name: _source_of_table(t, after) for t in tables if t.name in names}
    identity_shown = identity if any(public_read.place for public_read in read) else None  # a catalog may show who asks
    return repr((public, sorted(step_indexes.items()), identity_shown))
