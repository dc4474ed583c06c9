"""A model out of its definition and its release: coefficients in the units of its columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
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
    places = _numbers(axis.values or ())
    return places is not None and all(b - a == places[1] - places[0] > 0 for a, b in pairwise(places))


def _numbers(values: Sequence[Scalar]) -> list[Any] | None:
    """Values that are all numbers, or booleans, which are 0 and 1; of others None."""
    found = [int(v) if isinstance(v, bool) else v for v in values if isinstance(v, int | float | Decimal)]
    return found if len(found) == len(values) else None


def classes_of(axis: Axis) -> tuple[Scalar, Scalar]:
    """What the two codes of a label stand for."""
    none, one = values_of(axis, [0, 1])
    return none, one


def is_reversed(classes: tuple[Scalar, Scalar]) -> bool:
    """Of numbers and booleans the larger is what is predicted; of texts the second that is declared."""
    numbers = _numbers(classes)
    return numbers is not None and bool(numbers[0] > numbers[1])


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
    places = _numbers(axis.values or ())
    if not places:
        raise IntegrityError("the definition of a model is damaged")
    return float(places[0]), float(places[-1])


@dataclass(frozen=True)
class PlainTerm:
    """`value` is as `plain.tell` has it; None where the feature is a number or a boolean (`truth`)."""

    feature: str
    value: Any
    coefficient: float
    error: float
    truth: bool


@dataclass(frozen=True)
class PlainModel:
    """For programs. `classes` are as `plain.tell` has them."""

    name: str
    family: str
    method: str
    statement: str
    label: str
    classes: tuple[Any, ...]
    intercept: PlainTerm
    terms: tuple[PlainTerm, ...]


def plain_model(model: MadeModel, definition: dict[str, Any]) -> PlainModel:
    return PlainModel(
        model.name,
        model.family,
        definition["method"],
        definition["statement"],
        model.label,
        tuple(tell(value) for value in model.classes),
        _plain_term(model.intercept),
        tuple(map(_plain_term, model.terms)),
    )


def _plain_term(term: Term) -> PlainTerm:
    return PlainTerm(term.feature, tell(term.value), term.coefficient, term.error, term.truth)
