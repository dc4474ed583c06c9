"""CREATE MODEL: options, the study that makes it, and how it is shown.

Rows with NULL in the label or a feature are left out, as are values that are not declared. What noise does to a
coefficient is its standard error. Of a logistic model it is that of the noise alone: how far other rows would have
moved it needs a curvature that is private, and no part of the budget is spent on it. Of a linear one residuals are in
it too, since the moments tell them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.answer import Answer, rows_answer
from dpsql.calibrate import Noise, Share
from dpsql.compiled import Compiled
from dpsql.errors import Error, InvalidParameter, TypeMismatch, Unsupported
from dpsql.explain import Explanation
from dpsql.ledger.base import Made
from dpsql.making import options
from dpsql.making.base import Asked, Making
from dpsql.objects.models import PlainModel, design_of, is_scale, model_of, plain_model
from dpsql.objects.tables import write_axes
from dpsql.option_names import LINEAR_METHODS, LOGISTIC_METHODS, OF_MODELS, names_in
from dpsql.plan.stages import Axis
from dpsql.post.sandbox import OutputColumn
from dpsql.privacy.moments import moments_under_epsilon, moments_under_rho
from dpsql.privacy.objective import objective_under_epsilon, objective_under_rho
from dpsql.privacy.regression import output_under_epsilon, output_under_rho
from dpsql.privacy.release import to_bytes
from dpsql.privacy.tally import Axes, Study, UnitMass
from dpsql.rewrite.tally import Coding
from dpsql.schema.made_models import LINEAR
from dpsql.settings import Settings
from dpsql.span import Span
from dpsql.sql.made_commands import MODEL
from dpsql.sql.options import Option
from dpsql.studying import Studied, compile_study, study_rows
from dpsql.types import DOUBLE, TEXT

OUTPUT, OBJECTIVE, MOMENTS = "output", "objective", "moments"
COLUMNS = (("term", TEXT), ("coefficient", DOUBLE), ("stderr", DOUBLE))
BINS = 1024
"""Steps of a number between its bounds: fine beside any noise, and few enough for a tuple to be one of many rows."""
MOST_WIDTH = 256
"""Coefficients of a model."""
_OWN = names_in(OF_MODELS)


@dataclass(frozen=True)
class Options:
    """A model's own; `given` says where each stands."""

    method: str | None
    strength: Fraction | None
    rows: int | None
    bins: int
    given: Mapping[str, Span]


@dataclass(frozen=True)
class ModelMaker:
    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return rows_answer(COLUMNS, [], "CREATE MODEL").columns

    def compiled(self, asked: Asked) -> Compiled:
        settings, own = _settings(asked)
        return _studied(asked, own, settings).compiled

    def make(self, asked: Asked) -> Making:
        settings, own = _settings(asked)
        studied = _studied(asked, own, settings)
        bought = asked.queries.bought(studied.compiled)
        definition = {
            "statement": asked.statement,
            "method": studied.study.kind,
            "axes": write_axes(studied.axes),
        }
        (number,) = bought.numbers
        made = Made(MODEL, asked.command.name, number, json.dumps(definition), asked.queries.clock())
        answer = self.show(made, to_bytes(bought.releases[0]))
        told = replace(answer, loss=bought.loss, receipts=bought.receipts, settings=settings, notices=_notices(studied))
        return Making(number, definition, told)

    def explain(self, asked: Asked) -> Explanation:
        settings, own = _settings(asked)
        outputs = [(name, str(type_)) for name, type_ in COLUMNS]
        return asked.queries.explained(settings, lambda one: _studied(asked, own, one).compiled, outputs)

    def show(self, made: Made, body: bytes) -> Answer:
        model = model_of(made, body)
        terms = [model.intercept, *model.terms]
        return rows_answer(COLUMNS, [(term.name, term.coefficient, term.error) for term in terms], "SHOW")

    def plain(self, made: Made, body: bytes) -> PlainModel:
        return plain_model(model_of(made, body), json.loads(made.definition))


def _notices(studied: Studied) -> tuple[str, ...]:
    told = studied.compiled.notices
    if studied.study.kind == MOMENTS:
        return told
    return (*told, "stderr is that of the noise; how much other rows would have given is not in it")


# --- options ---------------------------------------------------------------------------------------------------------


def _settings(asked: Asked) -> tuple[Settings, Options]:
    """What the statement may lose, and the model's own options."""
    given = options.read_options(asked, _OWN)
    try:
        return given.settings, _options(given.own, asked.command.family == LINEAR)
    except Error as error:
        error.statement = asked.sql
        raise


def _options(given: Mapping[str, Option], linear: bool) -> Options:
    if linear and "n" in given:
        raise InvalidParameter("a linear model needs no n", span=given["n"].span)
    return Options(
        options.word(given.get("method"), LINEAR_METHODS if linear else LOGISTIC_METHODS),
        options.number(given.get("lambda"), Fraction(1, 10**6), Fraction(1000)),
        options.whole(given.get("n"), 1, 1 << 40),
        options.whole(given.get("bins"), 2, 1 << 16) or BINS,
        {name: option.span for name, option in given.items()},
    )


# --- the study -------------------------------------------------------------------------------------------------------


def _studied(asked: Asked, own: Options, settings: Settings) -> Studied:
    queries, command = asked.queries, asked.command
    rows = queries.own.knowing(
        lambda: study_rows(
            asked.sql, command.query, queries.own.schema, settings, asked.parameters, queries.clock(), queries.who
        )
    )
    try:
        designing = _Designing(own, command.family == LINEAR, dict(zip(rows.names, rows.spans, strict=True)))
        return compile_study(rows, Coding(own.bins, {}, nulls=False), designing)
    except Error as error:
        error.statement = asked.sql
        raise


@dataclass(frozen=True)
class _Designing:
    """What `compile_study` asks for the study."""

    options: Options
    linear: bool
    spans: Mapping[str, Span | None]  # of columns

    def __call__(self, axes: tuple[Axis, ...], ranges: Axes, mass: UnitMass, share: Share) -> Study:
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
        if design.width > MOST_WIDTH:
            raise Unsupported(f"a model has at most {MOST_WIDTH} coefficients", hint="Leave features out.")
        gaussian = share.noise is Noise.GAUSSIAN
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
                return moments_under_rho(design, ranges, mass, ridge, share.rho)
            return moments_under_epsilon(design, ranges, mass, ridge, share.epsilon)
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
                span=self.options.given.get("method"),
            )
        strength = self.options.strength or Fraction(1, 100)
        if method == OBJECTIVE:
            if gaussian:
                # It is pure, and with a large delta its epsilon could be more than was asked for.
                rho = min(share.rho, share.epsilon**2 / 2)
                return objective_under_rho(design, ranges, mass, strength, self.options.rows, rho)
            return objective_under_epsilon(design, ranges, mass, strength, self.options.rows, share.epsilon)
        if gaussian:
            return output_under_rho(design, ranges, mass, strength, self.options.rows, share.rho)
        return output_under_epsilon(design, ranges, mass, strength, self.options.rows, share.epsilon)
