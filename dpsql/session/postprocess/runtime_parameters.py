"""Values of runtime parameters: released by earlier steps, moved into the types that were promised.

Law: a hole's values never change what a release costs or how much noise it gets (SOUNDNESS 8): its type, its domain and
the most rows that it may hold were fixed when the statement was compiled. Numbers are moved into their bounds, and what
else does not fit becomes NULL.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction
from sys import float_info
from typing import Any
from uuid import UUID

import numpy as np

from dpsql.compiler.plan.steps import MAX_PARAMETER_LENGTH, Hole, Shape
from dpsql.errors import DataError, LimitExceeded
from dpsql.privacy.release_spec import scalar_from_json, scalar_to_json
from dpsql.schema.model import Domain
from dpsql.session.postprocess import sandbox
from dpsql.session.postprocess.sandbox import SandboxTable
from dpsql.types import REAL, Kind, Type, integer_range

ParameterValues = dict[str, Any]

MAX_REAL = 3.4028234e38
_WIDE_CONTEXT = Context(prec=80)


def bind_runtime_parameters(
    holes: Sequence[Hole], tables: Sequence[SandboxTable], timeout: float, time_zone: str = "UTC"
) -> ParameterValues:
    """The values of all holes of one release, from the tables that earlier steps gave."""
    return {hole.name: _bind_parameter(hole, tables, timeout, time_zone) for hole in holes}


def _bind_parameter(hole: Hole, tables: Sequence[SandboxTable], timeout: float, time_zone: str) -> Any:
    rows = sandbox.run_query(hole.sql, tables, timeout, time_zone).rows
    if len(rows) > hole.most:
        if hole.shape is Shape.VALUE:
            raise DataError("a sub-select that stands for one value gave more than one row", sqlstate="21000")
        raise LimitExceeded(
            f"a sub-select that private rows are compared with gave more than {hole.most:,} rows",
            hint="Add ORDER BY and LIMIT to the sub-select.",
        )
    cleaned = [tuple(map(_fit_to_domain, row, hole.domains)) for row in rows]
    match hole.shape:
        case Shape.VALUE:
            return cleaned[0][0] if cleaned else None
        case Shape.LIST:
            return [row[0] for row in cleaned]
        case Shape.ROWS:
            names = [column.name for column in hole.columns]
            return _deduplicate_rows([dict(zip(names, row, strict=True)) for row in cleaned], hole.unique)


def _deduplicate_rows(rows: list[ParameterValues], unique: frozenset[str]) -> list[ParameterValues]:
    """Privacy: where a row of a unit meets one row of a hole at most, its noise rests on that."""
    if not unique:
        return rows
    first_rows: dict[tuple[Any, ...], ParameterValues] = {}
    for row in rows:
        first_rows.setdefault(tuple(row[name] for name in sorted(unique)), row)
    return list(first_rows.values())


def fit_to_type(value: Any, type_: Type) -> Any:
    """The value as the type holds it; NULL where it does not.

    Privacy: an engine looks at a hole's value in the rows that reach it. One that its cast raises on would tell, by an
    error, whether there are such rows.
    """
    try:
        return None if value is None else _convert_to_type(value, type_)
    except (ValueError, OverflowError, InvalidOperation, TypeError):
        return None


def _convert_to_type(value: Any, type_: Type) -> Any:
    kind = type_.kind
    if type_.is_integer:
        lower, upper = integer_range(type_)
        number = round(value)
        return number if lower <= number <= upper else None
    if type_.is_float:
        number = float(value)
        return number if abs(number) <= (MAX_REAL if kind is Kind.REAL else float_info.max) else None
    match kind:
        case Kind.DECIMAL:
            scaled = Decimal(value).quantize(Decimal(1).scaleb(-(type_.scale or 0)), context=_WIDE_CONTEXT)
            return scaled if abs(scaled) < Decimal(10) ** ((type_.precision or 0) - (type_.scale or 0)) else None
        case Kind.TEXT:
            value.encode()  # a lone surrogate is no character
            return value if len(value) <= MAX_PARAMETER_LENGTH else None
        case Kind.DATE:
            return value.date() if isinstance(value, dt.datetime) else _require_type(value, dt.date)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return _to_timestamp(value, kind)
        case Kind.TIME:
            return None if _require_type(value, dt.time).tzinfo else value
        case Kind.BOOLEAN:
            return _require_type(value, bool)
        case Kind.UUID:
            return UUID(str(value))
        case _:
            return None


def _to_timestamp(value: Any, kind: Kind) -> dt.datetime:
    timestamp = (
        _require_type(value, dt.datetime) if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
    )
    zoned = timestamp.astimezone(dt.UTC) if timestamp.tzinfo else timestamp.replace(tzinfo=dt.UTC)
    return zoned if kind is Kind.TIMESTAMPTZ else zoned.replace(tzinfo=None)


def _require_type(value: Any, kind: type) -> Any:
    """What the driver has no Python value for, such as a year past 9999, it hands over as text."""
    if not isinstance(value, kind):
        raise TypeError
    return value


def _fit_to_domain(value: Any, domain: Domain) -> Any:
    converted = fit_to_type(value, domain.type)
    if isinstance(converted, int | float | Decimal) and not isinstance(converted, bool) and domain.is_bounded:
        converted = _clip_to_bounds(converted, *domain.bounds)
    return _round_to_real(float(converted), domain) if domain.type == REAL and converted is not None else converted


def _round_to_real(number: float, domain: Domain) -> float | None:
    """As the engine holds it.

    Privacy: two doubles that are one real are one key, so one row of them is bound, too.
    """
    real = np.float32(number)
    if domain.is_bounded and not domain.bounds[0] <= Fraction(float(real)) <= domain.bounds[1]:
        real = np.nextafter(real, np.float32(-math.inf if Fraction(float(real)) > domain.bounds[1] else math.inf))
    return float(real) if np.isfinite(real) else None


def _clip_to_bounds(value: int | float | Decimal, lower: Fraction, upper: Fraction) -> int | float | Decimal:
    """Privacy: sensitivity and whole-number arithmetic above a hole rest on its bounds, so they hold for any value."""
    if lower <= Fraction(value) <= upper:
        return value
    bound = lower if Fraction(value) < lower else upper
    inward = ROUND_CEILING if bound == lower else ROUND_FLOOR
    if isinstance(value, int):
        return math.ceil(lower) if bound == lower else math.floor(upper)
    if isinstance(value, Decimal):  # of as many digits as the value has
        near = _WIDE_CONTEXT.divide(Decimal(bound.numerator), Decimal(bound.denominator))
        return near.quantize(value, rounding=inward, context=_WIDE_CONTEXT)
    near_float = float(bound)
    past = Fraction(near_float) < lower or Fraction(near_float) > upper
    return math.nextafter(near_float, math.inf if bound == lower else -math.inf) if past else near_float


def values_to_bytes(values: ParameterValues) -> bytes:
    return json.dumps({name: _value_to_json(value) for name, value in values.items()}, sort_keys=True).encode()


def values_from_bytes(data: bytes) -> ParameterValues:
    return {name: _value_from_json(value) for name, value in json.loads(data).items()}


def _value_to_json(value: Any) -> Any:
    if isinstance(value, list):
        return {"list": [_value_to_json(item) for item in value]}
    if isinstance(value, dict):
        return {"row": {name: _value_to_json(item) for name, item in value.items()}}
    return {"value": scalar_to_json(value)}


def _value_from_json(stored: dict[str, Any]) -> Any:
    if "list" in stored:
        return [_value_from_json(item) for item in stored["list"]]
    if "row" in stored:
        return {name: _value_from_json(item) for name, item in stored["row"].items()}
    return scalar_from_json(stored["value"])
