"""A model in Python: coefficients as scikit-learn names them, predictions with numpy, and an estimator for those who
have scikit-learn. All of it is made of what SHOW MODEL tells."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsql.errors import InterfaceError
from dpsql.plain import told

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class _Term:
    feature: str
    value: Any  # of a category
    coefficient: float
    error: float

    def column(self, values: Sequence[Any]) -> list[float]:
        """What its coefficient is multiplied with, in each row; NaN where the feature is missing."""
        if self.value is None:
            return [np.nan if one is None else float(one) for one in values]
        return [np.nan if one is None else float(one == self.value) for one in values]


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

    def _shaped(self, values: list[float]) -> Floats:
        return np.array([values]) if self.is_logistic else np.array(values)

    @property
    def coef_(self) -> Floats:
        """In the units of the columns: one row for a logistic model, a vector for a linear one."""
        return self._shaped([term.coefficient for term in self._terms])

    @property
    def stderr_(self) -> Floats:
        """The standard errors of `coef_`."""
        return self._shaped([term.error for term in self._terms])

    @property
    def intercept_(self) -> Any:
        value = self._intercept.coefficient
        return np.array([value]) if self.is_logistic else value

    @property
    def intercept_stderr_(self) -> float:
        return self._intercept.error

    def design_matrix(self, rows: Any) -> Floats:
        """The rows as numbers, a column for each of `terms_`. `rows` are in the order of the features, or a frame."""
        columns = self._columns(rows)
        return np.array([term.column(columns[term.feature]) for term in self._terms], dtype=float).T

    def _columns(self, rows: Any) -> dict[str, Sequence[Any]]:
        names = self.feature_names_in_.tolist()
        if hasattr(rows, "columns"):  # a frame of pandas or polars
            return {name: list(rows[name]) for name in names}
        found = [list(row) for row in rows]
        if any(len(row) != len(names) for row in found):
            raise InterfaceError(f"a row has {len(names)} values: {', '.join(names)}")
        return {name: [row[place] for row in found] for place, name in enumerate(names)}

    def decision_function(self, rows: Any) -> Floats:
        found: Floats = self.design_matrix(rows) @ self.coef_.reshape(-1) + self._intercept.coefficient
        return found

    def predict_proba(self, rows: Any) -> Floats:
        """The probabilities of both classes."""
        if not self.is_logistic:
            raise InterfaceError("a linear model has no probabilities")
        yes = 1 / (1 + np.exp(-self.decision_function(rows)))
        return np.stack([1 - yes, yes], axis=1)

    def predict(self, rows: Any) -> npt.NDArray[Any]:
        """The likelier class, or the value of a linear model."""
        found = self.decision_function(rows)
        return self.classes_[(found > 0).astype(int)] if self.is_logistic else found

    def to_sklearn(self) -> Any:
        """A fitted pipeline of scikit-learn, which takes rows as `predict` does."""
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


def read_model(text: str) -> Model:
    """From what SHOW MODEL … (FORMAT JSON) tells."""
    plain = json.loads(text)
    classes = [told(json.loads(one)) for one in plain["classes"]]
    return Model(
        plain["name"],
        plain["family"],
        plain["method"],
        plain["statement"],
        plain["label"],
        np.array(classes, dtype=object if any(isinstance(one, str) for one in classes) else None),
        _term(plain["intercept"]),
        tuple(_term(one) for one in plain["terms"]),
    )


def _term(plain: dict[str, Any]) -> _Term:
    value = None if plain["value"] is None else told(json.loads(plain["value"]))
    return _Term(plain["feature"], value, plain["coefficient"], plain["error"])
