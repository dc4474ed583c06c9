"""What stands in a release's holes: values that earlier steps released, moved into the types that were promised.

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

from dpsql.errors import DataError, LimitExceeded
from dpsql.plan.stages import MOST_LENGTH, Hole, Shape
from dpsql.post import sandbox
from dpsql.post.sandbox import Table
from dpsql.privacy.storage import read_scalar, write_scalar
from dpsql.schema.domain import Domain
from dpsql.types import Kind, Type, integer_range

Values = dict[str, Any]

MOST_REAL = 3.4028234e38
_WIDE = Context(prec=80)


def fill(holes: Sequence[Hole], tables: Sequence[Table], timeout: float) -> Values:
    """The values of all holes of one release, from the tables that earlier steps gave."""
    return {hole.name: _filled(hole, tables, timeout) for hole in holes}


def _filled(hole: Hole, tables: Sequence[Table], timeout: float) -> Any:
    rows = sandbox.run(hole.sql, tables, timeout).rows
    if len(rows) > hole.most:
        if hole.shape is Shape.VALUE:
            raise DataError("a sub-select that stands for one value gave more than one row", sqlstate="21000")
        raise LimitExceeded(
            f"a sub-select that private rows are compared with gave more than {hole.most:,} rows",
            hint="Add ORDER BY and LIMIT to the sub-select.",
        )
    cleaned = [tuple(map(_cleaned, row, hole.domains)) for row in rows]
    match hole.shape:
        case Shape.VALUE:
            return cleaned[0][0] if cleaned else None
        case Shape.LIST:
            return [row[0] for row in cleaned]
        case Shape.ROWS:
            names = [column.name for column in hole.columns]
            return _once([dict(zip(names, row, strict=True)) for row in cleaned], hole.unique)


def _once(rows: list[Values], unique: frozenset[str]) -> list[Values]:
    """Privacy: where a row of a unit meets one row of a hole at most, its noise rests on that."""
    if not unique:
        return rows
    found: dict[tuple[Any, ...], Values] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in sorted(unique)), row)
    return list(found.values())


def moved(value: Any, type_: Type) -> Any:
    """The value as the type holds it; NULL where it does not.

    Privacy: an engine looks at a hole's value in the rows that reach it. One that its cast raises on would tell, by an
    error, whether there are such rows.
    """
    try:
        return None if value is None else _moved(value, type_)
    except (ValueError, OverflowError, InvalidOperation, TypeError):
        return None


def _moved(value: Any, type_: Type) -> Any:
    kind = type_.kind
    if type_.is_integer:
        least, most = integer_range(type_)
        number = round(value)
        return number if least <= number <= most else None
    if type_.is_float:
        number = float(value)
        return number if abs(number) <= (MOST_REAL if kind is Kind.REAL else float_info.max) else None
    match kind:
        case Kind.DECIMAL:
            scaled = Decimal(value).quantize(Decimal(1).scaleb(-(type_.scale or 0)), context=_WIDE)
            return scaled if abs(scaled) < Decimal(10) ** ((type_.precision or 0) - (type_.scale or 0)) else None
        case Kind.TEXT:
            value.encode()  # a lone surrogate is no character
            return value if len(value) <= MOST_LENGTH else None
        case Kind.DATE:
            return value.date() if isinstance(value, dt.datetime) else _only(value, dt.date)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return _moment(value, kind)
        case Kind.TIME:
            return None if _only(value, dt.time).tzinfo else value
        case Kind.BOOLEAN:
            return _only(value, bool)
        case Kind.UUID:
            return UUID(str(value))
        case _:
            return None


def _moment(value: Any, kind: Kind) -> dt.datetime:
    at = _only(value, dt.datetime) if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
    zoned = at.astimezone(dt.UTC) if at.tzinfo else at.replace(tzinfo=dt.UTC)
    return zoned if kind is Kind.TIMESTAMPTZ else zoned.replace(tzinfo=None)


def _only(value: Any, kind: type) -> Any:
    """What the driver has no Python value for, such as a year past 9999, it hands over as text."""
    if not isinstance(value, kind):
        raise TypeError
    return value


def _cleaned(value: Any, domain: Domain) -> Any:
    found = moved(value, domain.type)
    if isinstance(found, int | float | Decimal) and not isinstance(found, bool) and domain.bounded:
        return _clipped(found, *domain.bounds)
    return found


def _clipped(value: int | float | Decimal, lower: Fraction, upper: Fraction) -> int | float | Decimal:
    """Privacy: sensitivity and whole-number arithmetic above a hole rest on its bounds, so they hold for any value."""
    if lower <= Fraction(value) <= upper:
        return value
    bound = lower if Fraction(value) < lower else upper
    inward = ROUND_CEILING if bound == lower else ROUND_FLOOR
    if isinstance(value, int):
        return math.ceil(lower) if bound == lower else math.floor(upper)
    if isinstance(value, Decimal):  # of as many digits as the value has
        near = _WIDE.divide(Decimal(bound.numerator), Decimal(bound.denominator))
        return near.quantize(value, rounding=inward, context=_WIDE)
    near_float = float(bound)
    past = Fraction(near_float) < lower or Fraction(near_float) > upper
    return math.nextafter(near_float, math.inf if bound == lower else -math.inf) if past else near_float


def values_to_bytes(values: Values) -> bytes:
    return json.dumps({name: _written(value) for name, value in values.items()}, sort_keys=True).encode()


def values_from_bytes(data: bytes) -> Values:
    return {name: _read(value) for name, value in json.loads(data).items()}


def _written(value: Any) -> Any:
    if isinstance(value, list):
        return {"list": [_written(item) for item in value]}
    if isinstance(value, dict):
        return {"row": {name: _written(item) for name, item in value.items()}}
    return {"value": write_scalar(value)}


def _read(stored: dict[str, Any]) -> Any:
    if "list" in stored:
        return [_read(item) for item in stored["list"]]
    if "row" in stored:
        return {name: _read(item) for name, item in stored["row"].items()}
    return read_scalar(stored["value"])
