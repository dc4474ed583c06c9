"""What a statement compiles to: releases in order, how their tables are made, and the post-processing above them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dpsql.compiler.calibrate.calibrate import CalibratedPlan, NoiseKind, delta_for_conversion
from dpsql.compiler.parse.inline_epsilon import option_templates_of
from dpsql.compiler.plan.estimators import Recipe
from dpsql.compiler.plan.measures import Best, Frequent, SharesPosterior
from dpsql.compiler.plan.relations import Field
from dpsql.compiler.plan.steps import Axis, Bins, Hole, ReleaseColumn
from dpsql.compiler.reuse.describe import DescribedRelease
from dpsql.compiler.settings import Settings
from dpsql.compiler.split.release_block import ErrorBar
from dpsql.privacy.loss import Loss, sum_losses


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
class TableStep:
    """A release as post-processing reads it: groups and linear measures of `step`, others joined by their groups.

    `step` is None where there is one group and nothing linear is asked of it; or where its rows are `known`.
    """

    name: str
    step: int | None
    columns: tuple[ReleaseColumn, ...]
    measures: tuple[MeasureSource, ...]
    known: StaticRows | None = None

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

    @property
    def loss(self) -> Loss:
        return sum_losses([step.loss for step in self.steps])

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

    @property
    def knobs(self) -> tuple[str, str]:
        """How another epsilon and another delta are asked for."""
        return option_templates_of(self.statement)

    @property
    def conversion(self) -> Fraction:
        """The part of its delta that is for the conversion from rho."""
        return delta_for_conversion(self.settings.delta, any(step.calibrated.spends_delta for step in self.steps))
