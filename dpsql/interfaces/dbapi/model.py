"""A model in Python: coefficients as scikit-learn names them, predictions with numpy, and an estimator for those who
have scikit-learn. All of it is made of what SHOW MODEL tells."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.base.serialization import loads
from dpsql.errors import InterfaceError

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class _Term:
    feature: str
    value: Any  # of a category
    coefficient: float
    error: float
    truth: bool = False  # of a boolean: what true adds


@dataclass(frozen=True)
class Model:
    """A model that an account has made. `terms_` names the columns of `coef_`: numbers, and categories one each.

    The standard errors are those of the noise; of a linear model, of residuals too.
    """

    name: str
    family: str
    method: str
    statement: str
    label: str
    classes_: npt.NDArray[Any]
    _intercept: _Term
    _terms: tuple[_Term, ...]

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        return np.array(list(dict.fromkeys(term.feature for term in self._terms)), dtype=object)

    @property
    def terms_(self) -> list[str]:
        return [t.feature if t.value is None else f"{t.feature}={t.value}" for t in self._terms]

    @property
    def is_logistic(self) -> bool:
        return self.family == "logistic"

    def _shape_coefficients(self, values: list[float]) -> Floats:
        return np.array([values]) if self.is_logistic else np.array(values)

    @property
    def coef_(self) -> Floats:
        """In the units of the columns: one row for a logistic model, a vector for a linear one."""
        return self._shape_coefficients([term.coefficient for term in self._terms])

    @property
    def stderr_(self) -> Floats:
        """The standard errors of `coef_`."""
        return self._shape_coefficients([term.error for term in self._terms])

    @property
    def intercept_(self) -> Any:
        value = self._intercept.coefficient
        return np.array([value]) if self.is_logistic else value

    @property
    def intercept_stderr_(self) -> float:
        return self._intercept.error

    def design_matrix(self, rows: Any) -> Floats:
        """The rows as numbers, a column for each of `terms_`. `rows` are in the order of the features, or a frame.

        NaN where a value is missing, or is none that was declared, as PREDICT has NULL there.
        """
        columns = feature_columns_of(rows, self.feature_names_in_.tolist())
        matrix_columns = [
            column for name, values in columns.items() for column in _encode_feature(self._terms_of(name), values)
        ]
        return np.array(matrix_columns, dtype=float).T

    def _terms_of(self, feature: str) -> tuple[_Term, ...]:
        return tuple(term for term in self._terms if term.feature == feature)

    def decision_function(self, rows: Any) -> Floats:
        scores: Floats = self.design_matrix(rows) @ self.coef_.reshape(-1) + self._intercept.coefficient
        return scores

    def predict_proba(self, rows: Any) -> Floats:
        """The probabilities of both classes."""
        if not self.is_logistic:
            raise InterfaceError("a linear model has no probabilities")
        positive = 1 / (1 + np.exp(-self.decision_function(rows)))
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, rows: Any) -> npt.NDArray[Any]:
        """The likelier class, or the value of a linear model. A row without a prediction has None, or NaN."""
        scores = self.decision_function(rows)
        if not self.is_logistic:
            return scores
        classes: npt.NDArray[Any] = self.classes_[(scores > 0).astype(int)]
        if np.isnan(scores).any():
            classes = classes.astype(object)
            classes[np.isnan(scores)] = None
        return classes

    def to_sklearn(self) -> Any:
        """A fitted pipeline of scikit-learn, which takes rows as `predict` does.

        It raises ValueError where a value is missing or was not declared: its estimators take no NaN.
        """
        try:
            from sklearn.linear_model import LinearRegression, LogisticRegression
            from sklearn.pipeline import Pipeline
            from sklearn.preprocessing import FunctionTransformer
        except ImportError:
            raise InterfaceError("this needs scikit-learn", hint="pip install 'dpsql[sklearn]'") from None
        estimator = LogisticRegression() if self.is_logistic else LinearRegression()
        estimator.coef_, estimator.intercept_ = self.coef_, self.intercept_
        estimator.n_features_in_ = len(self._terms)
        if self.is_logistic:
            estimator.classes_ = self.classes_
        return Pipeline([("terms", FunctionTransformer(self.design_matrix)), ("model", estimator)])


def feature_columns_of(rows: Any, names: list[str]) -> dict[str, Sequence[Any]]:
    """The values of each feature."""
    expected = f"{len(names)} values: {', '.join(names)}"
    if hasattr(rows, "columns"):  # a frame of pandas or polars
        missing = [name for name in names if name not in rows.columns]
        if missing:
            raise InterfaceError(f'the frame has no column "{missing[0]}"', hint=f"A row has {expected}.")
        return {name: list(rows[name]) for name in names}
    row_lists = [_to_row(row) for row in rows] if _is_collection(rows) else None
    if row_lists is None or any(row is None or len(row) != len(names) for row in row_lists):
        raise InterfaceError(f"a row has {expected}", hint="Give a list of rows, each of them a list, or a frame.")
    return {name: [row[index] for row in row_lists if row is not None] for index, name in enumerate(names)}


def _to_row(row: Any) -> list[Any] | None:
    return list(row) if _is_collection(row) else None


def _is_collection(value: Any) -> bool:
    """A text, and a mapping, are none: what would be read of them is nobody's row."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _encode_feature(terms: Sequence[_Term], values: Sequence[Any]) -> list[list[float]]:
    """What the coefficients of one feature are multiplied with, in each row."""
    first = terms[0]
    if first.value is None:
        return [[_to_number(first, value) for value in values]]
    declared = [term.value for term in terms]
    is_declared = [any(_is_same_value(value, category) for category in declared) for value in values]
    return [
        [
            float(_is_same_value(value, category)) if fits else np.nan
            for value, fits in zip(values, is_declared, strict=True)
        ]
        for category in declared
    ]


def _is_same_value(value: Any, declared: Any) -> bool:
    return value is declared or (not _is_missing(value) and bool(value == declared))


def _to_number(term: _Term, value: Any) -> float:
    if _is_missing(value):
        return np.nan
    try:
        number = None if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError):
        number = None
    if number is None or (term.truth and number not in (0.0, 1.0)):
        takes = "true or false" if term.truth else "numbers"
        raise InterfaceError(f'feature "{term.feature}" takes {takes}, not {str(value)[:40]!r}')
    return number


def _is_missing(value: Any) -> bool:
    """None, NaN, and what pandas has for them, which does not even compare."""
    nan = isinstance(value, float) and value != value
    return value is None or nan or type(value).__name__ in ("NAType", "NaTType")


def read_model(text: str) -> Model:
    """From what SHOW MODEL … (FORMAT JSON) tells."""
    plain = json.loads(text)
    classes = [loads(item) for item in plain["classes"]]
    return Model(
        plain["name"],
        plain["family"],
        plain["method"],
        plain["statement"],
        plain["label"],
        np.array(classes, dtype=object if any(isinstance(item, str) for item in classes) else None),
        _read_term(plain["intercept"]),
        tuple(_read_term(item) for item in plain["terms"]),
    )


def _read_term(plain: dict[str, Any]) -> _Term:
    return _Term(plain["feature"], loads(plain["value"]), plain["coefficient"], plain["error"], plain["truth"])
