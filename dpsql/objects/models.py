"""A model out of its definition and its release: coefficients in the units of its columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dpsql.errors import IntegrityError
from dpsql.ledger.base import Made
from dpsql.objects.tables import read_axes, values_of
from dpsql.plain import tell
from dpsql.plan.stages import Axis
from dpsql.privacy.design import Categories, Design, Floats, Scale
from dpsql.privacy.moments import Moments
from dpsql.privacy.objective import ObjectivePerturbation
from dpsql.privacy.regression import Fit, OutputPerturbation
from dpsql.privacy.release import from_bytes
from dpsql.schema.domain import Scalar
from dpsql.schema.made_models import LINEAR, LOGISTIC, MadeModel, Term
from dpsql.sql.made_commands import written_columns
from dpsql.types import Kind


def design_of(axes: Sequence[Axis]) -> Design:
    """Numbers that stand evenly spaced are a scale, as are false and true; all else is categories."""
    return Design(tuple(Scale(axis.size) if is_scale(axis) else Categories(axis.size) for axis in axes))


def is_scale(axis: Axis) -> bool:
    if axis.bins is not None:
        return True
    places = _places(axis)
    return places is not None and all(b - a == places[1] - places[0] > 0 for a, b in pairwise(places))


def _places(axis: Axis) -> list[Any] | None:
    """The values of numbers and of booleans, which are 0 and 1."""
    values = axis.values or ()
    return [int(v) if isinstance(v, bool) else v for v in values] if _is_number(values) else None


def _is_number(values: Sequence[Scalar]) -> bool:
    return all(isinstance(value, int | float) or type(value).__name__ in ("Decimal", "Fraction") for value in values)


def classes_of(axis: Axis) -> tuple[Scalar, Scalar]:
    """What the two codes of a label stand for."""
    none, one = values_of(axis, [0, 1])
    return none, one


def is_reversed(classes: tuple[Scalar, Scalar]) -> bool:
    """Of numbers and booleans the larger is what is predicted; of texts the second that is declared."""
    return _is_number(classes) and classes[0] > classes[1]  # type: ignore[operator]


def model_of(made: Made, body: bytes) -> MadeModel:
    definition = json.loads(made.definition)
    label, *features = read_axes(definition["axes"])
    release = from_bytes(body)
    study = release.spec.study
    if not isinstance(study, OutputPerturbation | ObjectivePerturbation | Moments):
        raise IntegrityError("the definition of a model is damaged")
    fit = study.fit(release.cells[0])
    if isinstance(study, Moments):
        lower, upper = _ends(label)
        middle, half = (lower + upper) / 2, (upper - lower) / 2
        terms = _terms(features, fit, half)
        return _model(made, LINEAR, label.name, (), terms, middle)
    classes = classes_of(label)
    sign = -1.0 if is_reversed(classes) else 1.0
    ordered = (classes[1], classes[0]) if sign < 0 else classes
    return _model(made, LOGISTIC, label.name, ordered, _terms(features, fit, sign), 0.0)


def _model(
    made: Made, family: str, label: str, classes: tuple[Scalar, ...], terms: list[Term], middle: float
) -> MadeModel:
    first, *rest = terms
    intercept = Term(first.feature, None, first.coefficient + middle, first.error)
    written = written_columns(json.loads(made.definition)["statement"])
    return MadeModel(made.name, made.release, family, label, classes, intercept, tuple(rest), written)


def _terms(features: Sequence[Axis], fit: Fit, factor: float) -> list[Term]:
    """From coefficients of z, between -1 and 1, to those of columns: z = (x - middle) / half."""
    names: list[tuple[str, Scalar | None, bool]] = [("intercept", None, False)]
    width = len(fit.coefficients)
    matrix: Floats = np.zeros((width, width))
    matrix[0, 0] = 1.0
    for axis in features:
        at = len(names)
        if is_scale(axis):
            lower, upper = _ends(axis)
            half = (upper - lower) / 2
            matrix[at, at] = 1 / half if half else 0.0
            matrix[0, at] = -(lower + upper) / 2 / half if half else 0.0
            names.append((axis.name, None, axis.type.kind is Kind.BOOLEAN))
        else:
            values = values_of(axis, range(axis.size))
            matrix[range(at, at + axis.size), range(at, at + axis.size)] = 1.0
            names += [(axis.name, value, False) for value in values]
    coefficients = factor * (matrix @ fit.coefficients)
    errors = abs(factor) * np.sqrt(np.maximum(0.0, np.diag(matrix @ fit.covariance @ matrix.T)))
    return [
        Term(name, value, float(coefficient), float(error), truth)
        for (name, value, truth), coefficient, error in zip(names, coefficients, errors, strict=True)
    ]


def _ends(axis: Axis) -> tuple[float, float]:
    if axis.bins is not None:
        return float(axis.bins.lower * axis.bins.grid), float(axis.bins.upper * axis.bins.grid)
    places = _places(axis)
    if not places:
        raise IntegrityError("the definition of a model is damaged")
    return float(places[0]), float(places[-1])


@dataclass(frozen=True)
class PlainTerm:
    """`value` is JSON, as `plain.tell` writes it; None where the feature is a number or a boolean (`truth`)."""

    feature: str
    value: str | None
    coefficient: float
    error: float
    truth: bool


@dataclass(frozen=True)
class PlainModel:
    """For programs. `classes` are JSON each."""

    name: str
    family: str
    method: str
    statement: str
    label: str
    classes: tuple[str, ...]
    intercept: PlainTerm
    terms: tuple[PlainTerm, ...]


def plain_model(model: MadeModel, definition: dict[str, Any]) -> PlainModel:
    return PlainModel(
        model.name,
        model.family,
        definition["method"],
        definition["statement"],
        model.label,
        tuple(json.dumps(tell(value)) for value in model.classes),
        _plain_term(model.intercept),
        tuple(map(_plain_term, model.terms)),
    )


def _plain_term(term: Term) -> PlainTerm:
    value = None if term.value is None else json.dumps(tell(term.value))
    return PlainTerm(term.feature, value, term.coefficient, term.error, term.truth)
