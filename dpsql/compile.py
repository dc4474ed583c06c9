"""From SQL to a compiled statement: parse, split, bind, rewrite, analyze, calibrate, render. Pure (law 6).

It reads no data, no clock and no randomness, and spends nothing; so EXPLAIN, describe and prepare are free.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsql.analysis.canon import canonical_plan, canonicalise
from dpsql.analysis.sensitivity import Neighboring
from dpsql.calibrate import Calibrated, Noise, calibrate, shares
from dpsql.errors import Error, LimitExceeded
from dpsql.plan.nodes import Aggregate, Norm
from dpsql.plan.recipes import Recipe
from dpsql.plan.relations import Field, Table
from dpsql.plan.walk import walk_nodes
from dpsql.privacy.loss import Loss, total
from dpsql.rewrite.pipeline import Rewritten, rewrite
from dpsql.rewrite.policy import Policy
from dpsql.schema.model import Neighbors, Resolved
from dpsql.sql.block import ErrorBar, ReleaseColumn
from dpsql.sql.parse import Parameter, parse
from dpsql.sql.post import render_post
from dpsql.sql.render import render
from dpsql.sql.split import BoundRelease, split

FRAMES = 12_000
"""The parser takes some twenty frames for a parenthesis, and statements may be 200 deep whatever the caller's stack."""


@dataclass(frozen=True)
class Settings:
    """What a statement may lose and how, within the owner's policy."""

    epsilon: Fraction
    delta: Fraction
    rows: int | None
    groups: int | None
    noise: Noise | None = None  # None: Gaussian where delta is above 0

    @property
    def chosen_noise(self) -> Noise:
        if self.noise is not None:
            return self.noise
        return Noise.GAUSSIAN if self.delta > 0 else Noise.LAPLACE


@dataclass(frozen=True)
class Hole:
    """A place in a release's SQL that an earlier step fills; none are made yet."""

    name: str


@dataclass(frozen=True)
class ReleaseStep:
    """One release: what the engine runs, the noise, and how its answers are worked out."""

    name: str
    plan_hash: str
    sql: str
    keys: tuple[Field, ...]  # in the engine's order
    calibrated: Calibrated
    recipes: tuple[Recipe, ...]  # one per measure
    columns: tuple[ReleaseColumn, ...]  # what post-processing reads
    holes: tuple[Hole, ...] = ()

    @property
    def loss(self) -> Loss:
        return self.calibrated.loss


@dataclass(frozen=True)
class Compiled:
    statement: str
    steps: tuple[ReleaseStep, ...]
    post_sql: str
    errors: tuple[ErrorBar | None, ...]  # per asked output column; empty where errors are not tracked
    settings: Settings
    notices: tuple[str, ...] = ()

    @property
    def loss(self) -> Loss:
        return total([step.loss for step in self.steps])


def compile_query(
    sql: str,
    resolved: Resolved,
    settings: Settings,
    parameters: Sequence[Parameter] = (),
    now: dt.datetime | None = None,
) -> Compiled:
    if sys.getrecursionlimit() < FRAMES:  # a process's limit; it is only ever raised
        sys.setrecursionlimit(FRAMES)
    try:
        return _compile(sql, resolved, settings, parameters, now)
    except Error as error:
        error.statement = sql
        raise
    except RecursionError:
        raise LimitExceeded("the statement is nested too deeply") from None


def _compile(
    sql: str, resolved: Resolved, settings: Settings, parameters: Sequence[Parameter], now: dt.datetime | None
) -> Compiled:
    parts = split(parse(sql, parameters), resolved.schema, now)
    asked = [canonicalise(release.aggregate) for release in parts.releases]
    policy = Policy(settings.rows, settings.groups, _norm(settings))
    rewritten = [rewrite(aggregate, resolved, policy) for aggregate in asked]
    selects = tuple(one.gather.selection is not None for one in rewritten)
    each = shares(settings.chosen_noise, settings.epsilon, settings.delta, selects)
    hashes = [_plan_hash(aggregate, resolved, settings) for aggregate in asked]
    noisy = [calibrate(one.gather, share, _relation(resolved)) for one, share in zip(rewritten, each, strict=True)]
    steps = tuple(map(_step, parts.releases, hashes, rewritten, noisy))
    notices = tuple(dict.fromkeys(notice for one in rewritten for notice in one.notices))
    return Compiled(sql, steps, render_post(parts.post), parts.errors, settings, notices)


def _norm(settings: Settings) -> Norm:
    return Norm.L2 if settings.chosen_noise is Noise.GAUSSIAN else Norm.L1


def _relation(resolved: Resolved) -> Neighboring:
    privacy = resolved.schema.privacy
    return Neighboring(privacy.neighbors is Neighbors.CHANGE_ONE, privacy.group_size)


def _step(release: BoundRelease, plan_hash: str, rewritten: Rewritten, calibrated: Calibrated) -> ReleaseStep:
    return ReleaseStep(
        name=release.name,
        plan_hash=plan_hash,
        sql=render(calibrated.gather),
        keys=calibrated.gather.keys,
        calibrated=calibrated,
        recipes=rewritten.recipes,
        columns=release.columns,
    )


def _plan_hash(aggregate: Aggregate, resolved: Resolved, settings: Settings) -> str:
    """What a stored release is found by: the question, the tables' declarations and the caps; not ε.

    The question is the canonical plan that is also rewritten and run, so one hash has one set of cells and recipes.
    """
    privacy = resolved.schema.privacy
    names = sorted({node.table for node in walk_nodes(aggregate) if isinstance(node, Table)})
    tables = [repr(resolved.schema.table(name)) for name in names]
    caps = (settings.rows, settings.groups, settings.chosen_noise.value)
    relation = (privacy.unit, privacy.neighbors.value, privacy.group_size)
    text = "\n".join([canonical_plan(aggregate), *tables, repr(caps), repr(relation)])
    return hashlib.sha256(text.encode()).hexdigest()
