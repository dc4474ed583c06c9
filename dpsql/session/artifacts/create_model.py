"""CREATE MODEL: options, the study that makes it, and how it is shown.

Rows with NULL in the label or a feature are left out, as are values that are not declared. What noise does to a
coefficient is its standard error. Of a logistic model it is that of the noise alone: how far other rows would have
moved it needs a curvature that is private, and no part of the budget is spent on it. Of a linear one residuals are in
it too, since the moments tell them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.amounts import format_rounded_up
from dpsql.base.option_names import LINEAR_METHODS, LOGISTIC_METHODS, MODEL_OPTIONS, list_option_names
from dpsql.compiler.calibrate.calibrate import LossShare, NoiseKind, may_lose_epsilon
from dpsql.compiler.compiled import Compiled
from dpsql.compiler.norm_steps import KnownNorms
from dpsql.compiler.parse.create_commands import MODEL
from dpsql.compiler.parse.googlesql import Option
from dpsql.compiler.plan.steps import Axis
from dpsql.compiler.rewrite.weighted_rows import ColumnCoding
from dpsql.compiler.settings import Settings
from dpsql.compiler.weighted_rows import CompiledStudy, StudyRows, compile_study, compile_weighted_rows
from dpsql.errors import Error, InvalidParameter, Span, TypeMismatch, Unsupported
from dpsql.ledger.base import CreatedObject
from dpsql.privacy.regression.noisy_moments import calibrate_moments_by_epsilon, calibrate_moments_by_rho
from dpsql.privacy.regression.objective_perturbation import (
    DEFAULT_STRENGTH,
    calibrate_objective_by_epsilon,
    calibrate_objective_by_rho,
)
from dpsql.privacy.regression.output_perturbation import calibrate_output_by_epsilon, calibrate_output_by_rho
from dpsql.privacy.release import release_to_bytes
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRowsMechanism
from dpsql.schema.model import LINEAR, Resolved
from dpsql.session.artifacts import base
from dpsql.session.artifacts.base import CreatedArtifact, CreateRequest
from dpsql.session.artifacts.model import ModelRecord, design_of, is_scale, load_model, model_to_record
from dpsql.session.artifacts.synthetic_table import axes_to_json
from dpsql.session.explain import Explanation
from dpsql.session.norm_purchase import with_undecided_histograms
from dpsql.session.postprocess.sandbox import OutputColumn
from dpsql.session.query import NO_NORMS
from dpsql.session.result import StatementResult, build_rows_result
from dpsql.types import DOUBLE, TEXT

OUTPUT, OBJECTIVE, MOMENTS = "output", "objective", "moments"
MODEL_COLUMNS = (("term", TEXT), ("coefficient", DOUBLE), ("stderr", DOUBLE))
DEFAULT_BINS = 1024
"""Steps of a number between its bounds: fine beside any noise, and few enough for a tuple to be one of many rows."""
OUTPUT_STRENGTH = Fraction(1, 100)
"""The lambda of logistic models with noise in their coefficients: that noise grows as lambda falls."""
MAX_COEFFICIENTS = 256
"""Coefficients of a model."""
_MODEL_OPTIONS = list_option_names(MODEL_OPTIONS)


@dataclass(frozen=True)
class ModelOptions:
    """A model's own; `option_spans` says where each stands in the statement."""

    method: str | None
    strength: Fraction | None
    rows: int | None
    bins: int
    option_spans: Mapping[str, Span]


@dataclass(frozen=True)
class ModelBuilder:
    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return build_rows_result(MODEL_COLUMNS, [], "CREATE MODEL").columns

    def compile_release(self, request: CreateRequest) -> Compiled:
        settings, model_options = _settle_settings(request)
        return _compile_with_paid_norms(request, model_options, settings)

    def create_artifact(self, request: CreateRequest) -> CreatedArtifact:
        settings, model_options = _settle_settings(request)
        norms = request.queries.buy_norms(
            lambda known: _compile_model(request, model_options, settings, known).compiled
        )
        studied = _compile_model(request, model_options, settings, norms.known)
        bought = request.queries.charge_releases(studied.compiled)
        definition = {
            "statement": request.statement,
            "method": studied.study.kind,
            "axes": axes_to_json(studied.axes),
        }
        (number,) = bought.numbers
        now = request.queries.context.clock()
        stored = CreatedObject(MODEL, request.command.name, number, json.dumps(definition), now)
        answer = self.show(stored, release_to_bytes(bought.releases[0]))
        charged_answer = replace(
            answer,
            loss=bought.loss,
            receipts=bought.receipts,
            settings=settings,
            notices=_model_notices(studied, model_options),
        )
        return CreatedArtifact(number, definition, norms.combine(charged_answer))

    def explain(self, request: CreateRequest) -> Explanation:
        settings, model_options = _read_settings(request)
        outputs = [(name, str(type_)) for name, type_ in MODEL_COLUMNS]
        return request.queries.explain_compiled(
            settings,
            lambda other_settings: _compile_with_paid_norms(request, model_options, other_settings),
            outputs,
        )

    def show(self, stored: CreatedObject, body: bytes) -> StatementResult:
        model = load_model(stored, body)
        terms = [model.intercept, *model.terms]
        return build_rows_result(
            MODEL_COLUMNS, [(term.name, *round_term(term.coefficient, term.error)) for term in terms], "SHOW"
        )

    def to_record(self, stored: CreatedObject, body: bytes) -> ModelRecord:
        return model_to_record(load_model(stored, body), json.loads(stored.definition))


def round_term(coefficient: float, error: float) -> tuple[float, float]:
    """Three digits of the standard error, and those of the coefficient that it leaves. The stored model keeps all.

    >>> round_term(-4.019718762098461, 1.1432785462070676), round_term(12345.678, 0.0)
    ((-4.02, 1.14), (12345.678, 0.0))
    """
    if not (math.isfinite(coefficient) and math.isfinite(error) and error > 0):
        return coefficient, error
    digits = 2 - math.floor(math.log10(error))
    return round(coefficient, digits), round(error, digits)


def _model_notices(studied: CompiledStudy, model_options: ModelOptions) -> tuple[str, ...]:
    notices = studied.compiled.notices
    if studied.study.kind == MOMENTS:
        return notices
    usual = OUTPUT_STRENGTH if studied.study.kind == OUTPUT else DEFAULT_STRENGTH
    strength = format_rounded_up(model_options.strength or usual)
    return (
        *notices,
        f"lambda = {strength} draws the coefficients toward 0; by how much is not in stderr",
        "stderr is that of the noise; how much other rows would have given is not in it",
    )


# --- options ---------------------------------------------------------------------------------------------------------


def _settle_settings(request: CreateRequest) -> tuple[Settings, ModelOptions]:
    """The same with the kind of noise that is chosen, where it is left open."""
    settings, model_options = _read_settings(request)

    def compile_with(other_settings: Settings) -> Compiled:
        return _compile_with_paid_norms(request, model_options, other_settings)

    return request.queries.settle_noise(settings, compile_with), model_options


def _read_settings(request: CreateRequest) -> tuple[Settings, ModelOptions]:
    """What the statement may lose, and the model's own options."""
    create_options = base.read_create_options(request, _MODEL_OPTIONS)
    try:
        return create_options.settings, _read_model_options(create_options.own, request.command.family == LINEAR)
    except Error as error:
        error.statement = request.sql
        raise


def _read_model_options(model_options: Mapping[str, Option], linear: bool) -> ModelOptions:
    if linear and "n" in model_options:
        raise InvalidParameter("a linear model needs no n", span=model_options["n"].span)
    return ModelOptions(
        base.read_choice(model_options.get("method"), LINEAR_METHODS if linear else LOGISTIC_METHODS),
        base.read_number(model_options.get("lambda"), Fraction(1, 10**6), Fraction(1000)),
        base.read_integer(model_options.get("n"), 1, 1 << 40),
        base.read_integer(model_options.get("bins"), 2, 1 << 16) or DEFAULT_BINS,
        {name: option.span for name, option in model_options.items()},
    )


# --- the study -------------------------------------------------------------------------------------------------------


def _compile_with_paid_norms(request: CreateRequest, model_options: ModelOptions, settings: Settings) -> Compiled:
    """The model's release, with the histogram that would be bought first. Free."""
    norms = request.queries.find_paid_norms(
        lambda known: _compile_model(request, model_options, settings, known).compiled
    )
    return with_undecided_histograms(_compile_model(request, model_options, settings, norms.known).compiled)


def _compile_model(
    request: CreateRequest, model_options: ModelOptions, settings: Settings, norms: KnownNorms = NO_NORMS
) -> CompiledStudy:
    namespace, context, command = request.queries.namespace, request.queries.context, request.command

    def compile_rows(resolved: Resolved) -> StudyRows:
        return compile_weighted_rows(
            request.sql, command.query, resolved, settings, request.parameters, context.clock(), context.identity
        )

    rows = namespace.with_refresh(lambda: request.queries.plan_with_counts(compile_rows))
    try:
        designing = _ModelStudyFactory(
            model_options, command.family == LINEAR, dict(zip(rows.names, rows.spans, strict=True))
        )
        return compile_study(rows, ColumnCoding(model_options.bins, {}, nulls=False), designing, norms)
    except Error as error:
        error.statement = request.sql
        raise


@dataclass(frozen=True)
class _ModelStudyFactory:
    """What `compile_study` asks for the study."""

    options: ModelOptions
    linear: bool
    spans: Mapping[str, Span | None]  # of columns

    def __call__(self, axes: tuple[Axis, ...], ranges: Axes, mass: UnitMass, share: LossShare) -> WeightedRowsMechanism:
        label, *features = axes
        if not features:
            raise InvalidParameter("a model has at least one feature")
        for axis in axes:
            if axis.type.is_time:
                raise TypeMismatch(
                    f'"{axis.name}" is a time, and a model takes numbers and categories',
                    hint=f"For example: EXTRACT(YEAR FROM {axis.name}) AS year.",
                    span=self.spans.get(axis.name),
                )
        design = design_of(features)
        if design.width > MAX_COEFFICIENTS:
            raise Unsupported(f"a model has at most {MAX_COEFFICIENTS} coefficients", hint="Leave features out.")
        gaussian = share.noise is NoiseKind.GAUSSIAN
        if gaussian and share.rho <= 0:
            raise InvalidParameter(
                "gaussian noise needs a delta above 0", hint="SET delta = 1e-9, or SET noise = laplace."
            )
        if self.linear:
            if not is_scale(label):
                raise TypeMismatch(f'"{label.name}" is no number', hint="LOGISTIC REGRESSION takes two classes.",
                                   span=self.spans.get(label.name))  # fmt: skip
            ridge = self.options.strength or Fraction(0)
            if gaussian:
                return calibrate_moments_by_rho(design, ranges, mass, ridge, share.rho)
            return calibrate_moments_by_epsilon(design, ranges, mass, ridge, share.epsilon)
        if label.size != 2:
            raise TypeMismatch(
                f'"{label.name}" has {label.size} values, and a logistic model tells two apart',
                hint="Use a boolean, or a comparison such as (nights > 3) AS long_stay.",
                span=self.spans.get(label.name),
            )
        method = self.options.method or (OBJECTIVE if mass.one_row else OUTPUT)
        if method == OBJECTIVE and not mass.one_row:
            raise Unsupported(
                "objective perturbation needs one row for each privacy unit",
                hint="Aggregate per unit in FROM first (GROUP BY the unit), or use method = 'output'.",
                span=self.options.option_spans.get("method"),
            )
        strength = self.options.strength
        if method == OBJECTIVE:
            if gaussian and not may_lose_epsilon(share):
                # It is pure, and with a large delta its epsilon could be more than was asked for.
                limits = share.rho, share.epsilon
                return calibrate_objective_by_rho(design, ranges, mass, strength, self.options.rows, *limits)
            return calibrate_objective_by_epsilon(design, ranges, mass, strength, self.options.rows, share.epsilon)
        strength = strength or OUTPUT_STRENGTH
        if gaussian:
            return calibrate_output_by_rho(design, ranges, mass, strength, self.options.rows, share.rho)
        return calibrate_output_by_epsilon(design, ranges, mass, strength, self.options.rows, share.epsilon)
