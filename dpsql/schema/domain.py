"""The domain of an expression: type, nullability, bounds, or a finite set of values."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

from dpsql.types import Kind, Type

Scalar = bool | int | float | Decimal | str | dt.date | dt.datetime
"""A value of a key or literal. `datetime` is naive for timestamp, aware for timestamptz."""

EPOCH = dt.datetime(1970, 1, 1)


def to_number(value: Scalar) -> Fraction:
    """Numbers as they are; dates as days, timestamps as microseconds since 1970."""
    match value:
        case bool():
            return Fraction(int(value))
        case int() | float() | Decimal():
            return Fraction(value)
        case dt.datetime():
            naive = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
            return Fraction((naive - EPOCH) // dt.timedelta(microseconds=1))
        case dt.date():
            return Fraction((value - EPOCH.date()).days)
        case str():
            raise TypeError("text has no order that bounds could use")


@dataclass(frozen=True)
class Domain:
    """`lower` and `upper` are in the scale of `to_number`; `values` holds no NULL and no repeats."""

    type: Type
    nullable: bool = True
    lower: Fraction | None = None
    upper: Fraction | None = None
    values: tuple[Scalar, ...] | None = None
    length: int | None = None  # most characters of a text
    # No double was on the way: only then do bounds prove that integer arithmetic fits.
    exact: bool = field(default=True, compare=False)

    @property
    def is_bounded(self) -> bool:
        return self.lower is not None and self.upper is not None

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        assert self.lower is not None and self.upper is not None
        return self.lower, self.upper

    def with_bounds(self, lower: Fraction | None, upper: Fraction | None) -> Domain:
        return replace(self, lower=lower, upper=upper)

    def with_nullable(self, nullable: bool) -> Domain:
        return replace(self, nullable=nullable)


def boolean_domain(nullable: bool) -> Domain:
    return Domain(Type(Kind.BOOLEAN), nullable, values=(False, True))
