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

from dpsql.base.client_encodings import UTF8, ClientEncoding
from dpsql.base.interval_text import read_interval_text
from dpsql.base.intervals import IntervalParts, format_time, interval_parts
from dpsql.base.time_zones import UTC, TimeZone
from dpsql.errors import DataError
from dpsql.interfaces.pgwire.protocol.datetime import (
    format_date,
    format_datetime,
    format_timestamp,
    interval_to_bytes,
    time_to_microseconds,
    to_days,
    to_microseconds,
)
from dpsql.interfaces.pgwire.protocol.numeric import double_to_text, numeric_to_bytes, numeric_to_text, single_to_text
from dpsql.interfaces.pgwire.protocol.types import VECTOR_NAMES, WireType

TEXT_FORMAT, BINARY_FORMAT = 0, 1
Encoder = Callable[[Any], bytes]

_INFINITE_DAYS = {"infinity": 2**31 - 1, "-infinity": -(2**31)}
_EPOCH = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
_FIRST_MICROSECOND, _LAST_MICROSECOND = (
    (dt.datetime(year, 6, 1, tzinfo=dt.UTC) - _EPOCH) // dt.timedelta(microseconds=1) for year in (1, 9999)
)
_INFINITE_TIMESTAMPS = {"infinity": 2**63 - 1, "-infinity": -(2**63)}


def make_encoder(wire: WireType, format_: int, encoding: ClientEncoding = UTF8, time_zone: TimeZone = UTC) -> Encoder:
    """How values of the type are written; NULL is none of its values. Moments as text are shown in `time_zone`."""
    if format_ not in (TEXT_FORMAT, BINARY_FORMAT):
        raise DataError(f"unsupported format code: {format_}", sqlstate="22023")
    if format_ == BINARY_FORMAT:
        encode = _make_binary_encoder(wire, encoding)
    else:
        encode = _make_text_encoder(wire, encoding, time_zone)

    def encode_checked(value: Any) -> bytes:
        try:
            return encode(value)
        except (ValueError, TypeError, LookupError, ArithmeticError, struct.error):
            raise DataError(f"a value of the answer is no {wire.spelled}", sqlstate="22003") from None

    return encode_checked


# --- text ------------------------------------------------------------------------------------------------------------


def _make_text_encoder(wire: WireType, encoding: ClientEncoding, time_zone: TimeZone = UTC) -> Encoder:
    write = make_text_writer(wire, time_zone)
    return lambda value: encoding.encode(write(value))


def make_text_writer(wire: WireType, time_zone: TimeZone = UTC) -> Callable[[Any], str]:
    """How values of the type are written as text."""
    element = wire.element
    if element is None:
        if wire.name == "timestamptz" and not time_zone.is_utc:
            return lambda value: _moment_to_text(value, time_zone)
        return _TEXT_WRITERS.get(wire.name, str)
    write = vector_to_text if wire.name in VECTOR_NAMES else array_to_text
    return lambda values: write(values, element, time_zone)


def _bool_to_text(value: object) -> str:
    return "t" if value else "f"


def _to_integer(value: Any) -> int:
    """A whole number, which a number of another type may be."""
    number = int(value)
    if number != value:
        raise ValueError("not a whole number")
    return number


def _integer_to_text(value: Any) -> str:
    return str(value if isinstance(value, str) else _to_integer(value))


def _date_to_text(value: object) -> str:
    days = to_days(value)
    return str(value) if days is None else format_date(days)


def _timestamp_to_text(value: object) -> str:
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return format_datetime(value)
    microseconds = to_microseconds(value)
    return str(value) if microseconds is None else format_timestamp(microseconds)


def _timestamptz_to_text(value: object) -> str:
    if isinstance(value, dt.datetime) and value.tzinfo is dt.UTC:
        return format_datetime(value) + "+00"
    microseconds = to_microseconds(value)
    return str(value) if microseconds is None else format_timestamp(microseconds, "+00")


def _moment_to_text(value: object, time_zone: TimeZone) -> str:
    """What the clocks of the zone show, and how far they are ahead of UTC."""
    microseconds = to_microseconds(value)
    if microseconds is None:
        return str(value)
    within = min(max(microseconds, _FIRST_MICROSECOND), _LAST_MICROSECOND)  # what Python's calendar has
    seconds = time_zone.offset_seconds(_EPOCH + dt.timedelta(microseconds=within))
    return format_timestamp(microseconds + seconds * 1_000_000, _format_offset(seconds))


def _format_offset(seconds: int) -> str:
    hours, rest = divmod(abs(seconds), 3600)
    minutes, last = divmod(rest, 60)
    parts = f":{minutes:02}" * bool(minutes or last) + f":{last:02}" * bool(last)
    return f"{'-' if seconds < 0 else '+'}{hours:02}{parts}"


def _time_to_text(value: object) -> str:
    return format_time(time_to_microseconds(value)) if isinstance(value, dt.time) else str(value)


def _timetz_to_text(value: object) -> str:
    if not isinstance(value, dt.time):
        return str(value)
    return format_time(time_to_microseconds(value)) + _format_offset(_utc_offset_seconds(value))


def _utc_offset_seconds(value: dt.time) -> int:
    offset = value.utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def _to_interval(value: object) -> IntervalParts:
    if isinstance(value, IntervalParts):
        return value
    return interval_parts(value) if isinstance(value, dt.timedelta) else read_interval_text(str(value))


def _bytea_to_text(value: object) -> str:
    return "\\x" + value.hex() if isinstance(value, bytes | bytearray) else str(value)


def array_to_text(values: Sequence[Any], element: WireType, time_zone: TimeZone = UTC) -> str:
    """
    >>> from dpsql.interfaces.pgwire.protocol.types import TYPES_BY_NAME
    >>> print(array_to_text(["a", 'b"c', "", None, "null", "d e"], TYPES_BY_NAME["text"]))
    {a,"b\\"c","",NULL,"null","d e"}
    """
    if isinstance(values, str):
        return values
    write = make_text_writer(element, time_zone)
    return "{" + ",".join("NULL" if item is None else _quote_element(write(item)) for item in values) + "}"


_UNQUOTED_ELEMENT = re.compile(r'[^{}",\\ \t\n\r\v\f]+')


def _quote_element(text: str) -> str:
    if _UNQUOTED_ELEMENT.fullmatch(text) and text.upper() != "NULL":
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def vector_to_text(values: Sequence[Any], element: WireType, time_zone: TimeZone = UTC) -> str:
    return values if isinstance(values, str) else " ".join(map(make_text_writer(element, time_zone), values))


def json_to_text(value: Any) -> str:
    """Of a structure; a text that is JSON already stays as it is.

    >>> json_to_text({"a": [1, None, True, float("nan")], "b": Decimal("1.50")})
    '{"a": [1, null, true, "NaN"], "b": 1.50}'
    """
    return value if isinstance(value, str) else _json_value_to_text(value)


def _json_value_to_text(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return double_to_text(value) if math.isfinite(value) else f'"{double_to_text(value)}"'
        case Decimal():
            return numeric_to_text(value) if value.is_finite() else f'"{numeric_to_text(value)}"'
        case Mapping():
            return (
                "{"
                + ", ".join(
                    f"{encode_basestring(_to_json_string(key))}: {_json_value_to_text(item)}"
                    for key, item in value.items()
                )
                + "}"
            )
        case list() | tuple() if not isinstance(value, IntervalParts):
            return "[" + ", ".join(map(_json_value_to_text, value)) + "]"
        case _:
            return encode_basestring(_to_json_string(value))


def _to_json_string(value: Any) -> str:
    match value:
        case dt.datetime():
            return value.isoformat()
        case dt.timedelta():
            return str(_to_interval(value))
        case float():
            return double_to_text(value)
        case Decimal():
            return numeric_to_text(value)
        case bool():
            return "true" if value else "false"
        case bytes():
            return _bytea_to_text(value)
        case _:
            return str(value)


_TEXT_WRITERS: dict[str, Callable[[Any], str]] = {
    "bool": _bool_to_text,
    "bytea": _bytea_to_text,
    "int2": _integer_to_text,
    "int4": _integer_to_text,
    "int8": _integer_to_text,
    "oid": _integer_to_text,
    "xid": _integer_to_text,
    "float4": lambda value: single_to_text(float(value)),
    "float8": lambda value: double_to_text(float(value)),
    "numeric": numeric_to_text,
    "date": _date_to_text,
    "time": _time_to_text,
    "timetz": _timetz_to_text,
    "timestamp": _timestamp_to_text,
    "timestamptz": _timestamptz_to_text,
    "interval": lambda value: str(_to_interval(value)),
    "json": json_to_text,
    "jsonb": json_to_text,
}


# --- binary ----------------------------------------------------------------------------------------------------------


def _make_binary_encoder(wire: WireType, encoding: ClientEncoding) -> Encoder:
    if wire.element is None:
        if wire.name == "jsonb":
            return lambda value: b"\1" + encoding.encode(json_to_text(value))
        return _BINARY_ENCODERS.get(wire.name, _make_text_encoder(wire, encoding))
    element, first = wire.element, 0 if wire.name in VECTOR_NAMES else 1
    return lambda values: _array_to_bytes(values, element, first, encoding)


def _array_to_bytes(values: Sequence[Any], element: WireType, first: int, encoding: ClientEncoding) -> bytes:
    if isinstance(values, str):
        raise ValueError("the text of an array")
    encode, nulls = _make_binary_encoder(element, encoding), any(item is None for item in values)
    head = struct.pack("!iiI", 1 if values else 0, nulls, element.oid)
    if not values:
        return head
    parts = [head, struct.pack("!ii", len(values), first)]
    for item in values:
        data = None if item is None else encode(item)
        parts.append(struct.pack("!i", -1) if data is None else struct.pack("!i", len(data)) + data)
    return b"".join(parts)


def _make_integer_encoder(form: str) -> Encoder:
    return lambda value: struct.pack(form, _to_integer(value))


def _make_float_encoder(form: str) -> Encoder:
    return lambda value: struct.pack(form, math.nan if value != value else float(value))  # one NaN, not several


def _date_to_bytes(value: object) -> bytes:
    days = to_days(value)
    return struct.pack("!i", _INFINITE_DAYS[str(value)] if days is None else days)


def _timestamp_to_bytes(value: object) -> bytes:
    microseconds = to_microseconds(value)
    return struct.pack("!q", _INFINITE_TIMESTAMPS[str(value)] if microseconds is None else microseconds)


def _time_to_bytes(value: object) -> bytes:
    if isinstance(value, dt.time):
        return struct.pack("!q", time_to_microseconds(value))
    return struct.pack("!q", read_interval_text(str(value)).microseconds)  # 24:00:00 is none of Python's


def _timetz_to_bytes(value: dt.time) -> bytes:
    return struct.pack("!qi", time_to_microseconds(value), -_utc_offset_seconds(value))


def _uuid_to_bytes(value: object) -> bytes:
    return value.bytes if isinstance(value, UUID) else UUID(str(value)).bytes


def _oid_to_bytes(value: object) -> bytes:
    """Encode a regclass or its like, which is sent by number alone."""
    return struct.pack("!I", int(str(value)))


_BINARY_ENCODERS: dict[str, Encoder] = {
    "bool": lambda value: b"\1" if value else b"\0",
    "bytea": bytes,
    "int2": _make_integer_encoder("!h"),
    "int4": _make_integer_encoder("!i"),
    "int8": _make_integer_encoder("!q"),
    "oid": _make_integer_encoder("!I"),
    "xid": _make_integer_encoder("!I"),
    "regproc": _oid_to_bytes,
    "regclass": _oid_to_bytes,
    "regtype": _oid_to_bytes,
    "regnamespace": _oid_to_bytes,
    "float4": _make_float_encoder("!f"),
    "float8": _make_float_encoder("!d"),
    "numeric": numeric_to_bytes,
    "date": _date_to_bytes,
    "time": _time_to_bytes,
    "timetz": _timetz_to_bytes,
    "timestamp": _timestamp_to_bytes,
    "timestamptz": _timestamp_to_bytes,
    "interval": lambda value: interval_to_bytes(_to_interval(value)),
    "uuid": _uuid_to_bytes,
}
