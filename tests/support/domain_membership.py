"""Whether a value that an engine gave is one that a domain allows."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction

from dpsql.schema.model import Domain, to_number
from dpsql.types import DATE, Type


def fits(value: object, domain: Domain) -> bool:
    if value is None:
        return domain.nullable
    if isinstance(value, float) and not math.isfinite(value):
        return domain.lower is None or domain.upper is None
    if domain.values is not None:
        return any(_equal(value, known, domain.type) for known in domain.values)
    if isinstance(value, str) or (domain.lower is None and domain.upper is None):
        return True
    number = _number(value, domain.type)
    # A double is rounded where the claim is exact.
    slack = abs(number) / 10**9 + Fraction(1, 10**300) if domain.type.is_float else Fraction(0)
    if domain.lower is not None and number < domain.lower - slack:
        return False
    return domain.upper is None or number <= domain.upper + slack


def _number(value: object, type_: Type) -> Fraction:
    assert isinstance(value, bool | int | float | Decimal | dt.date)
    if type_ == DATE and isinstance(value, dt.datetime):
        value = value.date()
    return to_number(value)


def _equal(value: object, known: object, type_: Type) -> bool:
    if isinstance(value, str) or isinstance(known, str):
        return value == known
    return _number(value, type_) == _number(known, type_)
