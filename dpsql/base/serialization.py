"""Values as JSON and back, exactly: what one process sends, another reads as the same value.

Two ways. Of a frozen dataclass the fields are told by their names, and read back by the types that they declare.
A released value, whose type nobody declared, tells its type where JSON has none for it.
"""

from __future__ import annotations

import datetime as dt
import re
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache
from operator import index
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from dpsql.base.intervals import Interval, make_interval

T = TypeVar("T")

_FRACTION = re.compile(r"-?\d{1,4000}(/\d{1,4000})?", re.ASCII)
"""As `str` writes it. Not what Fraction reads: that "1e999999999" has a billion digits."""

# --- dataclasses -----------------------------------------------------------------------------------------------------


def to_json(value: object) -> Any:
    """
    >>> to_json((Fraction(1, 3), None, True, 2.5))
    ['1/3', None, True, 2.5]
    """
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Fraction():
            return str(value)
        case dt.date():
            return value.isoformat()
        case tuple() | list():
            return [to_json(item) for item in value]
        case dict():  # a released value, as it was told
            return {str(name): to_json(item) for name, item in value.items()}
        case _:
            raise TypeError(f"{type(value).__name__} has no plain form")


def from_json(kind: type[T], plain: Any) -> T:
    """A value of this type from what `to_json` made of it; ValueError where it cannot be one.

    >>> from_json(Fraction, "1/3")
    Fraction(1, 3)
    """
    read: T = _decode_value(kind, plain)
    return read


def _decode_value(kind: Any, plain: Any) -> Any:
    origin, inside = get_origin(kind), get_args(kind)
    if origin is tuple:
        return _decode_tuple(inside, plain)
    if origin in (Union, types.UnionType):
        return (
            None
            if plain is None
            else _decode_value(next(member for member in inside if member is not types.NoneType), plain)
        )
    if origin is Literal:
        return _decode_literal(inside, plain)
    if is_dataclass(kind):
        return _decode_dataclass(kind, plain)
    return _decode_scalar(kind, plain)


def _decode_tuple(inside: tuple[Any, ...], plain: Any) -> tuple[Any, ...]:
    if not isinstance(plain, list):
        raise ValueError("a list is expected")
    if len(inside) == 2 and inside[1] is Ellipsis:
        return tuple(_decode_value(inside[0], item) for item in plain)
    return tuple(_decode_value(kind, item) for kind, item in zip(inside, plain, strict=True))


def _decode_literal(choices: tuple[Any, ...], plain: Any) -> Any:
    if plain not in choices:
        raise ValueError("a value is none of those that there are")
    return plain


@cache
def _field_types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _decode_dataclass(kind: Any, plain: Any) -> Any:
    """A field that is missing has its default; one that is not known was told by a newer version, and is left out."""
    if not isinstance(plain, dict):
        raise ValueError("an object is expected")
    hints = _field_types(kind)
    values = {
        field.name: _decode_value(hints[field.name], plain[field.name]) for field in fields(kind) if field.name in plain
    }
    try:
        return kind(**values)
    except TypeError:
        raise ValueError(f"a field of {kind.__name__} is missing") from None


def _decode_scalar(kind: Any, plain: Any) -> Any:
    if kind is float and type(plain) in (int, float):
        return float(plain)
    if kind in (bool, int, str) and type(plain) is kind:
        return plain
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(plain)
    if kind is Fraction and isinstance(plain, str) and _FRACTION.fullmatch(plain):
        return _parse_fraction(plain)
    if kind is dt.date and isinstance(plain, str):
        return dt.date.fromisoformat(plain)
    raise ValueError(f"a {getattr(kind, '__name__', kind)} is expected")


def _parse_fraction(text: str) -> Fraction:
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise ValueError("a Fraction is expected") from None


# --- released values -------------------------------------------------------------------------------------------------


def dumps(value: object) -> Any:
    """
    >>> dumps([1, None, "a", Decimal("1.50"), {"x": dt.date(2020, 1, 2)}])
    [1, None, 'a', {'decimal': '1.50'}, {'map': [['x', {'date': '2020-01-02'}]]}]
    """
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list():
            return [dumps(item) for item in value]
        case tuple():
            return {"tuple": [dumps(item) for item in value]}
        case dict():
            return {"map": [[dumps(key), dumps(item)] for key, item in value.items()]}
        case Decimal() | UUID():
            return {type(value).__name__.lower(): str(value)}
        case dt.datetime() | dt.date() | dt.time():
            return {type(value).__name__: value.isoformat()}
        case Interval():
            return {"interval": list(value.parts)}
        case dt.timedelta():
            return {"timedelta": [value.days, value.seconds, value.microseconds]}
        case bytes():
            return {"bytes": value.hex()}
        case _:
            raise TypeError(f"{type(value).__name__} is no released value")


_DECODERS: dict[str, Callable[[Any], object]] = {
    "decimal": Decimal,
    "uuid": UUID,
    "datetime": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "timedelta": lambda parts: dt.timedelta(*parts),
    "interval": lambda parts: make_interval(*map(index, parts)),
    "bytes": bytes.fromhex,
    "tuple": lambda items: tuple(map(loads, items)),
    "map": lambda pairs: {loads(key): loads(value) for key, value in pairs},
}


def loads(plain: Any) -> Any:
    """What `dumps` told; ValueError where it told no such thing."""
    match plain:
        case list():
            return [loads(item) for item in plain]
        case dict() if len(plain) == 1:
            (name, inner), *_ = plain.items()
            if name not in _DECODERS:
                raise ValueError("a value of a type that is not known")
            try:
                return _DECODERS[name](inner)
            except (TypeError, ArithmeticError):
                raise ValueError(f"this is no {name}") from None
        case dict():
            raise ValueError("a value of a type that is not known")
        case _:
            return plain
