"""From a query over private rows to a study of them: parse, bind, code, weigh, calibrate, render. Pure (law 6)."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dpsql.analysis.canon import canonical_plan, canonicalise
from dpsql.analysis.sensitivity import unit_mass
from dpsql.calibrate import Share, Takes, calibrate_study, shares
from dpsql.catalog.identity import Identity
from dpsql.compile import relation_of
from dpsql.compiled import Compiled, ReleaseStep
from dpsql.errors import Error, InvalidParameter, LimitExceeded
from dpsql.plan.nodes import Aggregate, Norm
from dpsql.plan.stages import Axis
from dpsql.privacy.loss import TooSmall
from dpsql.privacy.studies import write_study
from dpsql.privacy.tally import Axes, Study, UnitMass
from dpsql.rewrite.debias import recorded
from dpsql.rewrite.policy import Policy
from dpsql.rewrite.tally import Coding, TallyRows, is_unknown, tally, tally_rows
from dpsql.schema.model import Resolved
from dpsql.settings import Settings
from dpsql.span import Span
from dpsql.sql.parameters import Parameter
from dpsql.sql.parse import parse
from dpsql.sql.render import render
from dpsql.sql.slips import refuse_slips
from dpsql.sql.split import NOBODY
from dpsql.sql.tallied import private_rows
from dpsql.store_keys import declarations

STEP = "_s1"
"""The step of a study in its compiled statement."""


@dataclass(frozen=True)
class Rows:
    """Private rows that a study may look at: `names` are the columns of the query, in order; `spans` where each is
    written, as far as that is known."""

    statement: str
    aggregate: Aggregate
    found: TallyRows
    names: tuple[str, ...]
    resolved: Resolved
    settings: Settings
    spans: tuple[Span | None, ...] = ()

    @property
    def unknown(self) -> tuple[str, ...]:
        """The columns of which nothing public tells the values: these must be released first."""
        pairs = zip(self.names, self.found.columns, strict=True)
        return tuple(name for name, column in pairs if is_unknown(self.found.domains[column.name]))


@dataclass(frozen=True)
class Studied:
    """A statement of one release, which a study makes; `axes` say what its codes mean."""

    compiled: Compiled
    study: Study
    axes: tuple[Axis, ...]


Design = Callable[[tuple[Axis, ...], Axes, UnitMass, Share], Study]
"""Makes the study: from what the codes mean, their ranges, what one unit adds, and what may be lost."""


def study_rows(
    statement: str,
    query: str,
    resolved: Resolved,
    settings: Settings,
    parameters: Sequence[Parameter] = (),
    now: dt.datetime | None = None,
    who: Identity = NOBODY,
) -> Rows:
    """The rows that a query over a private table gives out. `query` has the places of `statement`, for errors."""
    try:
        tree = parse(query, parameters)
        refuse_slips(tree)
        private = private_rows(tree, resolved.schema, now, who)
        aggregate = canonicalise(private.aggregate)
        found = tally_rows(aggregate, resolved, private.names, private.spans)
        return Rows(statement, aggregate, found, private.names, resolved, settings, private.spans)
    except Error as error:
        error.statement = statement
        raise
    except RecursionError:
        raise LimitExceeded("the statement is nested too deeply") from None


def compile_study(rows: Rows, coding: Coding, design: Design) -> Studied:
    """`coding` names columns as the query does."""
    settings, resolved = rows.settings, rows.resolved
    places = dict(zip(rows.names, (column.name for column in rows.found.columns), strict=True))
    own = replace(coding, listed={places[name]: values for name, values in coding.listed.items()})
    relation = relation_of(resolved)
    tallied = tally(rows.found, own, Policy(settings.rows, settings.groups, Norm.L1))
    axes = tuple(replace(axis, name=name) for axis, name in zip(tallied.axes, rows.names, strict=True))
    ranges = Axes(tuple(axis.lower for axis in axes), tuple(axis.size for axis in axes))
    (share,) = shares(settings.chosen_noise, settings.epsilon, settings.delta, (Takes.EPSILON,))
    try:
        study = design(axes, ranges, unit_mass(tallied.tally, relation), share)
    except TooSmall:
        raise InvalidParameter("epsilon or delta is too small for this statement", hint="Give it more.") from None
    calibrated = calibrate_study(tallied.tally, study, relation)
    sql = render(calibrated.plan)
    step = ReleaseStep(STEP, _hash(rows, axes, study), sql, (), calibrated)
    notices = (*_left_out(axes), *recorded(rows.aggregate, resolved.schema))
    return Studied(Compiled(rows.statement, (), (step,), (), "SELECT 1", (), settings, notices), study, axes)


def _left_out(axes: tuple[Axis, ...]) -> tuple[str, ...]:
    """Said of the declarations alone: whether there are such rows is private."""
    names = ", ".join(axis.name for axis in axes if not axis.null)
    if not names:
        return ()
    return (f"rows without a known value in {names} are left out; nullable: true in the schema makes NULL a value",)


def _hash(rows: Rows, axes: tuple[Axis, ...], study: Study) -> str:
    """What a stored release is found by: the rows, what their codes mean, and all of the study."""
    declared = declarations(rows.aggregate, rows.resolved, rows.settings)
    written = json.dumps(write_study(study), sort_keys=True)
    text = "\n".join(["study", canonical_plan(rows.aggregate), *declared, repr(axes), written])
    return hashlib.sha256(text.encode()).hexdigest()
