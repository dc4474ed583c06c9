"""From a query over private rows to a study of them: parse, bind, code, weigh, calibrate, render. Pure (law 6)."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from dpsql.compiler.analysis.canonical import canonical_plan_text, canonicalize
from dpsql.compiler.analysis.sensitivity import derive_unit_mass, neighboring_of
from dpsql.compiler.calibrate.calibrate import LossNeed, LossShare, calibrate_study, split_loss
from dpsql.compiler.catalog.variables import Identity
from dpsql.compiler.compiled import Compiled, ReleaseStep, list_declarations
from dpsql.compiler.functions.time_zones import session_zone_scope
from dpsql.compiler.norm_steps import KnownNorms
from dpsql.compiler.parse.parameters import Parameter
from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.parse.syntax_errors import refuse_null_comparisons
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.clipped_sums import Norm
from dpsql.compiler.plan.steps import Axis
from dpsql.compiler.render.release import render_release
from dpsql.compiler.rewrite.bound_contributions import ContributionPolicy
from dpsql.compiler.rewrite.debias import recorded_notices
from dpsql.compiler.rewrite.release_plan import RuleContext
from dpsql.compiler.rewrite.weighted_rows import (
    CodableRows,
    ColumnCoding,
    code_weighted_rows,
    has_no_public_values,
    prepare_codable_rows,
)
from dpsql.compiler.row_caps import RowCap, choose_row_cap
from dpsql.compiler.settings import Settings
from dpsql.compiler.split.private_rows import bind_private_rows
from dpsql.compiler.split.split import ANONYMOUS
from dpsql.errors import Error, InvalidParameter, LimitExceeded, Span
from dpsql.privacy.loss import LossTooSmall
from dpsql.privacy.study_codec import study_to_json
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRowsMechanism
from dpsql.schema.model import Resolved

STUDY_STEP = "_s1"
"""The step of a study in its compiled statement."""


@dataclass(frozen=True)
class StudyRows:
    """Private rows that a study may look at: `names` are the columns of the query, in order; `spans` where each is
    written, as far as that is known."""

    statement: str
    aggregate: Aggregate
    found: CodableRows
    names: tuple[str, ...]
    resolved: Resolved
    settings: Settings
    spans: tuple[Span | None, ...] = ()

    @property
    def unknown_columns(self) -> tuple[str, ...]:
        """The columns of which nothing public tells the values: these must be released first."""
        pairs = zip(self.names, self.found.columns, strict=True)
        return tuple(name for name, column in pairs if has_no_public_values(self.found.domains[column.name]))


@dataclass(frozen=True)
class CompiledStudy:
    """A statement of one release, which a study makes; `axes` say what its codes mean.

    Where nobody declared how many rows a unit may count for, it is undecided until a histogram of units is known.
    """

    compiled: Compiled
    study: WeightedRowsMechanism
    axes: tuple[Axis, ...]


StudyDesigner = Callable[[tuple[Axis, ...], Axes, UnitMass, LossShare], WeightedRowsMechanism]
"""Makes the study: from what the codes mean, their ranges, what one unit adds, and what may be lost."""


def compile_weighted_rows(
    statement: str,
    query: str,
    resolved: Resolved,
    settings: Settings,
    parameters: Sequence[Parameter] = (),
    now: dt.datetime | None = None,
    identity: Identity = ANONYMOUS,
) -> StudyRows:
    """The rows that a query over a private table gives out. `query` has the places of `statement`, for errors."""
    try:
        tree = parse_query(query, parameters)
        refuse_null_comparisons(tree)
        with session_zone_scope(identity.time_zone, now):
            private = bind_private_rows(tree, resolved.schema, now, identity)
        aggregate = canonicalize(private.aggregate)
        tally = prepare_codable_rows(aggregate, RuleContext(resolved), private.names, private.spans)
        return StudyRows(statement, aggregate, tally, private.names, resolved, settings, private.spans)
    except Error as error:
        error.statement = statement
        raise
    except RecursionError:
        raise LimitExceeded("the statement is nested too deeply") from None


def compile_study(
    rows: StudyRows, coding: ColumnCoding, design: StudyDesigner, norms: KnownNorms = MappingProxyType({})
) -> CompiledStudy:
    """`coding` names columns as the query does; `norms` are released histograms of units."""
    settings, resolved = rows.settings, rows.resolved
    plan_names = dict(zip(rows.names, (column.name for column in rows.found.columns), strict=True))
    plan_coding = replace(coding, listed={plan_names[name]: values for name, values in coding.listed.items()})
    relation = neighboring_of(resolved)
    (share,) = split_loss(
        settings.chosen_noise, settings.epsilon, settings.delta, (LossNeed.EPSILON,), settings.composition
    )
    cap = RowCap(settings.rows, share)
    if settings.rows is None:
        input_rows = rows.found.rows.input
        cap = choose_row_cap(STUDY_STEP, input_rows, share, settings.epsilon, settings.delta, resolved, norms)
    tallied = code_weighted_rows(rows.found, plan_coding, ContributionPolicy(cap.rows, settings.groups, Norm.L1))
    axes = tuple(replace(axis, name=name) for axis, name in zip(tallied.axes, rows.names, strict=True))
    ranges = Axes(tuple(axis.lower for axis in axes), tuple(axis.size for axis in axes))
    try:
        study = design(axes, ranges, derive_unit_mass(tallied.tally, relation), cap.left)
    except LossTooSmall:
        raise InvalidParameter("epsilon or delta is too small for this statement", hint="Give it more.") from None
    calibrated = calibrate_study(tallied.tally, study, relation)
    sql = render_release(calibrated.plan)
    chosen = () if cap.chosen is None else ((STUDY_STEP, cap.chosen),)
    digest = _hash_study(rows, axes, study, cap)
    step = ReleaseStep(STUDY_STEP, digest, sql, (), calibrated, norms=chosen, undecided=cap.undecided)
    notices = (*_omitted_rows_notices(axes), *cap.notices, *recorded_notices(rows.aggregate, resolved.schema))
    compiled = Compiled(
        rows.statement, (), (step,), (), "SELECT 1", (), settings, notices, norm_steps=cap.steps
    )  # fmt: skip
    return CompiledStudy(compiled, study, axes)


def _omitted_rows_notices(axes: tuple[Axis, ...]) -> tuple[str, ...]:
    """Said of the declarations alone: whether there are such rows is private."""
    names = ", ".join(axis.name for axis in axes if not axis.null)
    if not names:
        return ()
    return (f"rows without a known value in {names} are left out; nullable: true in the schema makes NULL a value",)


def _hash_study(rows: StudyRows, axes: tuple[Axis, ...], study: WeightedRowsMechanism, cap: RowCap) -> str:
    """What a stored release is found by: the rows, what their codes mean, all of the study, its cap's histogram."""
    declared = list_declarations(rows.aggregate, rows.resolved, rows.settings)
    written = json.dumps(study_to_json(study), sort_keys=True)
    parts = ["study", canonical_plan_text(rows.aggregate), *declared, repr(axes), written]
    text = "\n".join([*parts, cap.key] if cap.key else parts)
    return hashlib.sha256(text.encode()).hexdigest()
