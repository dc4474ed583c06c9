"""What rewriting rules change, step by step, and what they may read beside it.

A rule is a function (plan, context) -> plan, and `pipeline` says in which order they are applied. Rules of rows change
an `Aggregate`; rules of a release change a `ReleasePlan`, which has what the cells of the release are made of.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.compiler.plan.aggregate import Aggregate, CountUnits, Gather, Listed, Part
from dpsql.compiler.plan.clipped_sums import Norm
from dpsql.compiler.plan.estimators import Recipe
from dpsql.compiler.plan.measures import Local, Measure
from dpsql.compiler.plan.relations import Field, Rows
from dpsql.compiler.plan.steps import Bins
from dpsql.compiler.rewrite.automatic_norms import NormRequest
from dpsql.compiler.rewrite.bound_contributions import ContributionPolicy
from dpsql.compiler.rewrite.form_bundles import FormedBundles
from dpsql.privacy.exponential import OVERSHOOT, Target
from dpsql.schema.model import Resolved

NO_CAPS = ContributionPolicy(None, None, Norm.L2)
"""A plan that needs a cap is refused."""

NO_BUNDLES = FormedBundles((), (), (), ())


@dataclass(frozen=True)
class RuleContext:
    """What rules read: the resolved schema, the caps, and the groups that a quantile or posterior is chosen in."""

    resolved: Resolved
    policy: ContributionPolicy = NO_CAPS
    listed: Listed | None = None  # known, or from a hole that an earlier release fills
    selected: bool = False  # whether that release selected them


@dataclass(frozen=True)
class ReleasePlan:
    """A release between the aggregate that was asked and the plan that runs; rules fill it from top to bottom."""

    asked: Aggregate  # before any rule
    aggregate: Aggregate  # its rows, keys and measures as rules have left them
    keys: tuple[Field, ...] = ()  # of the release: those of the aggregate, and what rules add
    listed: Listed | None = None  # the groups, or those values of the keys, that are public
    selected: tuple[str, ...] = ()  # the keys whose values are selected
    never_null: tuple[str, ...] = ()  # of grouping sets: keys for which NULL is no group
    bundles: FormedBundles = NO_BUNDLES
    parts: tuple[Part, ...] = ()
    selection: CountUnits | None = None
    recipes: tuple[Recipe, ...] = ()  # one per measure
    bins: Bins | None = None  # of a release that chooses bins: what they mean
    targets: tuple[Target, ...] = ()  # and which are wanted of each group
    local: Local | None = None
    notices: tuple[str, ...] = ()
    unfiltered: Rows | None = None  # before rows without a listed group were left out
    norms: tuple[NormRequest, ...] = ()

    @property
    def rows(self) -> Rows:
        return self.aggregate.input

    @property
    def measures(self) -> tuple[Measure, ...]:
        return self.aggregate.measures

    @property
    def key_names(self) -> tuple[str, ...]:
        return tuple(key.name for key in self.keys)

    def with_rows(self, rows: Rows) -> ReleasePlan:
        return replace(self, aggregate=replace(self.aggregate, input=rows))

    def with_parts(self, parts: Iterable[Part]) -> ReleasePlan:
        """With more of them, behind those that there are."""
        return replace(self, parts=(*self.parts, *parts))

    @property
    def gather(self) -> Gather:
        return Gather(self.keys, self.listed, self.selection, self.parts)


@dataclass(frozen=True)
class RewrittenPlan:
    gather: Gather
    recipes: tuple[Recipe, ...]  # one per measure of the aggregate
    notices: tuple[str, ...] = ()
    norms: tuple[NormRequest, ...] = ()  # that the plan has slots for
    form: tuple[str, ...] = ()  # how cells are formed, where older versions formed others


@dataclass(frozen=True)
class BinSelection:
    """Counts per group and bin, what the bins mean, and which bins are wanted of each group."""

    gather: Gather
    bins: Bins
    targets: tuple[Target, ...]
    local: Local | None = None
    norms: tuple[NormRequest, ...] = ()
    overshoot: Fraction = OVERSHOOT
    notices: tuple[str, ...] = ()
