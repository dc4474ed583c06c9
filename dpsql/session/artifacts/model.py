"""A model out of its definition and its release: coefficients in the units of its columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np

from dpsql.base.serialization import dumps
from dpsql.compiler.parse.create_commands import model_column_texts
from dpsql.compiler.plan.steps import Axis
from dpsql.errors import IntegrityError
from dpsql.ledger.base import CreatedObject
from dpsql.privacy.regression.features import CategoricalAxis, FeatureDesign, Floats, NumericAxis
from dpsql.privacy.regression.noisy_moments import NoisyMoments
from dpsql.privacy.regression.objective_perturbation import ObjectivePerturbation
from dpsql.privacy.regression.output_perturbation import FittedModel, OutputPerturbation
from dpsql.privacy.release import release_from_bytes
from dpsql.schema.model import LINEAR, LOGISTIC, MadeModel, Scalar, Term
from dpsql.session.artifacts.synthetic_table import axes_from_json, decode_values
from dpsql.types import Kind


def design_of(axes: Sequence[Axis]) -> FeatureDesign:
    """Numbers that stand evenly spaced are a scale, as are false and true; all else is categories."""
    return FeatureDesign(
        tuple(NumericAxis(axis.size) if is_scale(axis) else CategoricalAxis(axis.size) for axis in axes)
    )


def is_scale(axis: Axis) -> bool:
    if axis.bins is not None:
        return True
    numbers = _as_numbers(axis.values or ())
    return numbers is not None and all(b - a == numbers[1] - numbers[0] > 0 for a, b in pairwise(numbers))


def _as_numbers(values: Sequence[Scalar]) -> list[Any] | None:
    """Values that are all numbers, or booleans, which are 0 and 1; of others None."""
    numbers = [int(v) if isinstance(v, bool) else v for v in values if isinstance(v, int | float | Decimal)]
    return numbers if len(numbers) == len(values) else None


def classes_of(axis: Axis) -> tuple[Scalar, Scalar]:
    """What the two codes of a label stand for."""
    negative, positive = decode_values(axis, [0, 1])
    return negative, positive


def is_reversed(classes: tuple[Scalar, Scalar]) -> bool:
    """Whether the larger of two numbers or booleans comes first; the larger, or the second text, is predicted."""
    numbers = _as_numbers(classes)
    return numbers is not None and bool(numbers[0] > numbers[1])


def load_model(stored: CreatedObject, body: bytes) -> MadeModel:
    definition = json.loads(stored.definition)
    label, *features = axes_from_json(definition["axes"])
    release = release_from_bytes(body)
    study = release.spec.study
    if not isinstance(study, OutputPerturbation | ObjectivePerturbation | NoisyMoments):
        raise IntegrityError("the definition of a model is damaged")
    fit = study.released_model(release.cells[0])
    if isinstance(study, NoisyMoments):
        lower, upper = _axis_range(label)
        middle, half = (lower + upper) / 2, (upper - lower) / 2
        terms = _build_terms(features, fit, half)
        return _build_model(stored, LINEAR, label.name, (), terms, middle)
    classes = classes_of(label)
    sign = -1.0 if is_reversed(classes) else 1.0
    ordered = (classes[1], classes[0]) if sign < 0 else classes
    return _build_model(stored, LOGISTIC, label.name, ordered, _build_terms(features, fit, sign), 0.0)


def _build_model(
    stored: CreatedObject, family: str, label: str, classes: tuple[Scalar, ...], terms: list[Term], middle: float
) -> MadeModel:
    first, *rest = terms
    intercept = Term(first.feature, None, first.coefficient + middle, first.error)
    written = model_column_texts(json.loads(stored.definition)["statement"])
    return MadeModel(stored.name, stored.release, family, label, classes, intercept, tuple(rest), written)


def _build_terms(features: Sequence[Axis], fit: FittedModel, factor: float) -> list[Term]:
    """From coefficients of z, between -1 and 1, to those of columns: z = (x - middle) / half."""
    names: list[tuple[str, Scalar | None, bool]] = [("intercept", None, False)]
    width = len(fit.coefficients)
    matrix: Floats = np.zeros((width, width))
    matrix[0, 0] = 1.0
    for axis in features:
        index = len(names)
        if is_scale(axis):
            lower, upper = _axis_range(axis)
            half = (upper - lower) / 2
            matrix[index, index] = 1 / half if half else 0.0
            matrix[0, index] = -(lower + upper) / 2 / half if half else 0.0
            names.append((axis.name, None, axis.type.kind is Kind.BOOLEAN))
        else:
            values = decode_values(axis, range(axis.size))
            matrix[range(index, index + axis.size), range(index, index + axis.size)] = 1.0
            names += [(axis.name, value, False) for value in values]
    coefficients = factor * (matrix @ fit.coefficients)
    errors = abs(factor) * np.sqrt(np.maximum(0.0, np.diag(matrix @ fit.covariance @ matrix.T)))
    return [
        Term(name, value, float(coefficient), float(error), truth)
        for (name, value, truth), coefficient, error in zip(names, coefficients, errors, strict=True)
    ]


def _axis_range(axis: Axis) -> tuple[float, float]:
    if axis.bins is not None:
        bins = axis.bins
        return float(bins.origin + bins.lower * bins.grid), float(bins.origin + bins.upper * bins.grid)
    numbers = _as_numbers(axis.values or ())
    if not numbers:
        raise IntegrityError("the definition of a model is damaged")
    return float(numbers[0]), float(numbers[-1])


@dataclass(frozen=True)
class ModelTermRecord:
    """`value` is as `serialization.dumps` has it; None where the feature is a number or a boolean (`truth`)."""

    feature: str
    value: Any
    coefficient: float
    error: float
    truth: bool


@dataclass(frozen=True)
class ModelRecord:
    """For programs. `classes` are as `serialization.dumps` has them."""

    name: str
    family: str
    method: str
    statement: str
    label: str
    classes: tuple[Any, ...]
    intercept: ModelTermRecord
    terms: tuple[ModelTermRecord, ...]


def model_to_record(model: MadeModel, definition: dict[str, Any]) -> ModelRecord:
    return ModelRecord(
        model.name,
        model.family,
        definition["method"],
        definition["statement"],
        model.label,
        tuple(dumps(value) for value in model.classes),
        _term_to_record(model.intercept),
        tuple(map(_term_to_record, model.terms)),
    )


def _term_to_record(term: Term) -> ModelTermRecord:
    return ModelTermRecord(term.feature, dumps(term.value), term.coefficient, term.error, term.truth)
