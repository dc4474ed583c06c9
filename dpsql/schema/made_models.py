"""A model that an account has made, as statements read it: no part of what the owner declares."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.schema.domain import Scalar

LOGISTIC, LINEAR = "logistic", "linear"


@dataclass(frozen=True)
class Term:
    """A feature and its coefficient; of a category, the `value` for which it counts."""

    feature: str
    value: Scalar | None
    coefficient: float
    error: float
    truth: bool = False  # of a boolean: what true adds

    @property
    def name(self) -> str:
        return self.feature if self.value is None else f"{self.feature}={self.value}"


@dataclass(frozen=True)
class MadeModel:
    """In the units of the columns: a number counts times its coefficient, a category with the coefficient of its value.

    A logistic model's sum is the logarithm of the odds that the label is the second of `classes`.
    """

    name: str
    release: int
    family: str
    label: str
    classes: tuple[Scalar, ...]
    intercept: Term
    terms: tuple[Term, ...]
    written: tuple[str, ...] = ()  # the label and the features, as its statement has them

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(term.feature for term in self.terms))

    def terms_of(self, feature: str) -> tuple[Term, ...]:
        return tuple(term for term in self.terms if term.feature == feature)
