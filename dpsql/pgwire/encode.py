"""Released values to bytes: text exactly as PostgreSQL prints it, and its binary forms.

Values are those that the sandbox and the catalog give out: Python's own, and for days and times beyond what Python
counts, DuckDB's text.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any
from uuid import UUID

from dpsql.errors import DataError
from dpsql.intervals import parts_of
from dpsql.pgwire.intervals import Interval, read_interval
from dpsql.pgwire.moments import date_text, datetime_text, days_of, microseconds_of, moment_text, time_of, time_text
from dpsql.pgwire.numerals import double_text, numeric_bytes, numeric_text, single_text
from dpsql.pgwire.wire_types import VECTORS, WireType

TEXT, BINARY = 0, 1
Encoder = Callable[[Any], bytes]

_INFINITE_DAYS = {"infinity": 2**31 - 1, "-infinity": -(2**31)}
_INFINITE_MOMENTS = {"infinity": 2**63 - 1, "-infinity": -(2**63)}


def encoder(wire: WireType, format_: int) -> Encoder:
    """How values of the type are written; NULL is none of its values."""
    if format_ not in (TEXT, BINARY):
        raise DataError(f"unsupported format code: {format_}", sqlstate="22023")
    encode = _binary(wire) if format_ == BINARY else _text(wire)

    def fitting(value: Any) -> bytes:
        try:
            return encode(value)
        except (ValueError, TypeError, LookupError, ArithmeticError, struct.error):
            raise DataError(f"a value of the answer is no {wire.spelled}", sqlstate="22003") from None

    return fitting


# --- text ------------------------------------------------------------------------------------------------------------


def _text(wire: WireType) -> Encoder:
    write = text_writer(wire)
    return lambda value: write(value).encode("utf-8", "replace")


def text_writer(wire: WireType) -> Callable[[Any], str]:
    """How values of the type are written as text."""
    element = wire.element
    if element is None:
        return _TEXTS.get(wire.name, str)
    write = vector_text if wire.name in VECTORS else array_text
    return lambda values: write(values, element)


def _bool_text(value: object) -> str:
    return "t" if value else "f"


def _integer(value: Any) -> int:
    """A whole number, which a number of another type may be."""
    number = int(value)
    if number != value:
        raise ValueError("not a whole number")
    return number


def _integer_text(value: Any) -> str:
    return str(value if isinstance(value, str) else _integer(value))


def _date_text(value: object) -> str:
    days = days_of(value)
    return str(value) if days is None else date_text(days)


def _timestamp_text(value: object) -> str:
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return datetime_text(value)
    moment = microseconds_of(value)
    return str(value) if moment is None else moment_text(moment)


def _timestamptz_text(value: object) -> str:
    if isinstance(value, dt.datetime) and value.tzinfo is dt.UTC:
        return datetime_text(value) + "+00"
    moment = microseconds_of(value)
    return str(value) if moment is None else moment_text(moment, "+00")


def _time_text(value: object) -> str:
    return time_text(time_of(value)) if isinstance(value, dt.time) else str(value)


def _timetz_text(value: object) -> str:
    if not isinstance(value, dt.time):
        return str(value)
    seconds = _offset(value)
    hours, rest = divmod(abs(seconds), 3600)
    minutes, last = divmod(rest, 60)
    parts = f":{minutes:02}" * bool(minutes or last) + f":{last:02}" * bool(last)
    return f"{time_text(time_of(value))}{'-' if seconds < 0 else '+'}{hours:02}{parts}"


def _offset(value: dt.time) -> int:
    offset = value.utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def _interval(value: object) -> Interval:
    if isinstance(value, Interval):
        return value
    return Interval(*parts_of(value)) if isinstance(value, dt.timedelta) else read_interval(str(value))


def _bytea_text(value: object) -> str:
    return "\\x" + value.hex() if isinstance(value, bytes | bytearray) else str(value)


def array_text(values: Sequence[Any], element: WireType) -> str:
    """
    >>> from dpsql.pgwire.wire_types import BY_NAME
    >>> print(array_text(["a", 'b"c', "", None, "null", "d e"], BY_NAME["text"]))
    {a,"b\\"c","",NULL,"null","d e"}
    """
    if isinstance(values, str):
        return values
    write = text_writer(element)
    return "{" + ",".join("NULL" if one is None else _quoted(write(one)) for one in values) + "}"


_PLAIN = re.compile(r'[^{}",\\ \t\n\r\v\f]+')


def _quoted(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.upper() != "NULL":
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def vector_text(values: Sequence[Any], element: WireType) -> str:
    return values if isinstance(values, str) else " ".join(map(text_writer(element), values))


def json_text(value: Any) -> str:
    """Of a structure; a text that is JSON already stays as it is.

    >>> json_text({"a": [1, None, True, float("nan")], "b": Decimal("1.50")})
    '{"a": [1, null, true, "NaN"], "b": 1.50}'
    """
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return double_text(value) if math.isfinite(value) else f'"{double_text(value)}"'
        case Decimal():
            return numeric_text(value) if value.is_finite() else f'"{numeric_text(value)}"'
        case Mapping():
            return "{" + ", ".join(f"{encode_basestring(_key(key))}: {_json(one)}" for key, one in value.items()) + "}"
        case list() | tuple() if not isinstance(value, Interval):
            return "[" + ", ".join(map(_json, value)) + "]"
        case _:
            return encode_basestring(_key(value))


def _key(value: Any) -> str:
    match value:
        case dt.datetime():
            return value.isoformat()
        case dt.timedelta():
            return str(_interval(value))
        case float():
            return double_text(value)
        case Decimal():
            return numeric_text(value)
        case bool():
            return "true" if value else "false"
        case bytes():
            return _bytea_text(value)
        case _:
            return str(value)


_TEXTS: dict[str, Callable[[Any], str]] = {
    "bool": _bool_text, "bytea": _bytea_text,
    "int2": _integer_text, "int4": _integer_text, "int8": _integer_text, "oid": _integer_text, "xid": _integer_text,
    "float4": lambda value: single_text(float(value)), "float8": lambda value: double_text(float(value)),
    "numeric": numeric_text,
    "date": _date_text, "time": _time_text, "timetz": _timetz_text,
    "timestamp": _timestamp_text, "timestamptz": _timestamptz_text,
    "interval": lambda value: str(_interval(value)),
    "json": json_text, "jsonb": json_text,
}  # fmt: skip


# --- binary ----------------------------------------------------------------------------------------------------------


def _binary(wire: WireType) -> Encoder:
    if wire.element is None:
        return _BINARIES.get(wire.name, _text(wire))
    element, first = wire.element, 0 if wire.name in VECTORS else 1
    return lambda values: _array_bytes(values, element, first)


def _array_bytes(values: Sequence[Any], element: WireType, first: int) -> bytes:
    if isinstance(values, str):
        raise ValueError("the text of an array")
    encode, nulls = _binary(element), any(one is None for one in values)
    head = struct.pack("!iiI", 1 if values else 0, nulls, element.oid)
    if not values:
        return head
    parts = [head, struct.pack("!ii", len(values), first)]
    for one in values:
        data = None if one is None else encode(one)
        parts.append(struct.pack("!i", -1) if data is None else struct.pack("!i", len(data)) + data)
    return b"".join(parts)


def _packed(form: str) -> Encoder:
    return lambda value: struct.pack(form, _integer(value))


def _float_bytes(form: str) -> Encoder:
    return lambda value: struct.pack(form, math.nan if value != value else float(value))  # one NaN, not several


def _date_bytes(value: object) -> bytes:
    days = days_of(value)
    return struct.pack("!i", _INFINITE_DAYS[str(value)] if days is None else days)


def _moment_bytes(value: object) -> bytes:
    moment = microseconds_of(value)
    return struct.pack("!q", _INFINITE_MOMENTS[str(value)] if moment is None else moment)


def _time_bytes(value: object) -> bytes:
    if isinstance(value, dt.time):
        return struct.pack("!q", time_of(value))
    return struct.pack("!q", read_interval(str(value)).microseconds)  # 24:00:00 is none of Python's


def _timetz_bytes(value: dt.time) -> bytes:
    return struct.pack("!qi", time_of(value), -_offset(value))


def _uuid_bytes(value: object) -> bytes:
    return value.bytes if isinstance(value, UUID) else UUID(str(value)).bytes


def _number_bytes(value: object) -> bytes:
    """Of a regclass and its like: by number alone."""
    return struct.pack("!I", int(str(value)))


_BINARIES: dict[str, Encoder] = {
    "bool": lambda value: b"\1" if value else b"\0", "bytea": bytes,
    "int2": _packed("!h"), "int4": _packed("!i"), "int8": _packed("!q"), "oid": _packed("!I"), "xid": _packed("!I"),
    "regproc": _number_bytes, "regclass": _number_bytes, "regtype": _number_bytes, "regnamespace": _number_bytes,
    "float4": _float_bytes("!f"), "float8": _float_bytes("!d"), "numeric": numeric_bytes,
    "date": _date_bytes, "time": _time_bytes, "timetz": _timetz_bytes,
    "timestamp": _moment_bytes, "timestamptz": _moment_bytes,
    "interval": lambda value: _interval(value).to_bytes(),
    "uuid": _uuid_bytes,
    "jsonb": lambda value: b"\1" + json_text(value).encode("utf-8", "replace"),
}  # fmt: skip
