"""Bytes to values, in text and binary: parameters as clients send them, and cells as a server sends them.

What a text cannot mean is told as PostgreSQL tells it: invalid input syntax, or out of range. A parameter is never read
as SQL: it becomes a Python value here, and one literal in the statement later.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

from dpsql.base.client_encodings import UTF8, ClientEncoding
from dpsql.base.interval_text import IntervalTextError, read_interval_text
from dpsql.base.intervals import MICROSECONDS_PER_DAY, IntervalParts, make_interval
from dpsql.base.time_zones import UTC, TimeZone
from dpsql.errors import DataError, Error, Unsupported
from dpsql.interfaces.pgwire.protocol.datetime import (
    EPOCH_ORDINAL,
    format_date,
    format_timestamp,
    interval_from_bytes,
)
from dpsql.interfaces.pgwire.protocol.encode import BINARY_FORMAT, TEXT_FORMAT, array_to_text
from dpsql.interfaces.pgwire.protocol.numeric import numeric_from_bytes
from dpsql.interfaces.pgwire.protocol.types import VECTOR_NAMES, WireType

Value = Any
MAX_DIGITS = 1_000
"""Of a number: reading one takes time that grows with the square of its digits."""

_FIRST_DAY, _LAST_DAY = dt.date.min.toordinal() - EPOCH_ORDINAL, dt.date.max.toordinal() - EPOCH_ORDINAL


def decode_value(data: bytes, wire: WireType, format_: int, encoding: ClientEncoding = UTF8) -> Value:
    """One value, which is not NULL."""
    if format_ == TEXT_FORMAT:
        return from_text(_decode_text(data, encoding), wire)
    if format_ != BINARY_FORMAT:
        raise DataError(f"unsupported format code: {format_}", sqlstate="22023")
    try:
        return _from_bytes(data, wire, encoding)
    except (ValueError, struct.error, OverflowError):
        raise DataError("incorrect binary data format", sqlstate="22P03") from None


def decode_parameter(
    data: bytes | None, wire: WireType, format_: int, encoding: ClientEncoding = UTF8, time_zone: TimeZone = UTC
) -> bool | int | float | Decimal | str | Any | None:
    """A value as a statement takes it: arrays are texts there. A moment whose text has no zone is in `time_zone`."""
    if data is None:
        return None
    if wire.name in ("other", "aclitem", "timetz") and format_ == BINARY_FORMAT:
        raise Unsupported(f"a parameter of a type {wire.spelled} cannot be bound", hint="Send it as text.")
    if wire.name == "timestamptz" and format_ == TEXT_FORMAT:
        return _parse_timestamptz(_decode_text(data, encoding), wire, time_zone)
    value = decode_value(data, wire, format_, encoding)
    if isinstance(value, IntervalParts):
        return make_interval(*value)
    if wire.element is not None:
        return value if isinstance(value, str) else array_to_text(value, wire.element)
    return value if wire.name not in ("json", "jsonb") or isinstance(value, str) else json.dumps(value)


def _decode_text(data: bytes, encoding: ClientEncoding) -> str:
    text = encoding.decode(data)
    if "\0" in text:
        raise DataError('invalid byte sequence for encoding "UTF8": 0x00', sqlstate="22021")
    return text


# --- text ------------------------------------------------------------------------------------------------------------


def from_text(text: str, wire: WireType) -> Value:
    if wire.element is not None:
        return _parse_vector(text, wire) if wire.name in VECTOR_NAMES else _parse_array(text, wire)
    read = _TEXT_PARSERS.get(wire.name)
    return text if read is None else read(text, wire)


def _invalid_input_error(text: str, wire: WireType, sqlstate: str = "22P02") -> Error:
    spelled = wire.spelled.removesuffix(" without time zone")
    hint = _ISO_HINT if wire.name in ("date", "timestamp", "timestamptz") else None
    return DataError(f'invalid input syntax for type {spelled}: "{text}"', hint=hint, sqlstate=sqlstate)


def _out_of_range_error(text: str, wire: WireType) -> Error:
    return DataError(f'value "{text}" is out of range for type {wire.spelled}', sqlstate="22003")


_BOOL_WORDS = (
    ("true", True),
    ("false", False),
    ("yes", True),
    ("no", False),
    ("on", True),
    ("off", False),
    ("1", True),
    ("0", False),
)


def _parse_bool(text: str, wire: WireType) -> bool:
    """Any beginning of a word that is no other's."""
    folded = text.strip(" \t\n\r\v\f").lower()
    values = {value for word, value in _BOOL_WORDS if folded and word.startswith(folded)}
    if len(values) != 1:
        raise _invalid_input_error(text, wire)
    return values.pop()


_DECIMAL_INTEGER = re.compile(r"\s*([+-]?)(\d+(?:_\d+)*)\s*", re.ASCII)
_PREFIXED_INTEGER = re.compile(
    r"\s*([+-]?)0(?:x((?:_?[0-9a-f])+)|o((?:_?[0-7])+)|b((?:_?[01])+))\s*", re.ASCII | re.IGNORECASE
)
_INTEGER_RANGES = {"int2": (-(2**15), 2**15 - 1), "int4": (-(2**31), 2**31 - 1), "int8": (-(2**63), 2**63 - 1),
           "oid": (-(2**31), 2**32 - 1), "xid": (0, 2**32 - 1)}  # fmt: skip


def _parse_integer(text: str, wire: WireType) -> int:
    decimal, based = _DECIMAL_INTEGER.fullmatch(text), _PREFIXED_INTEGER.fullmatch(text)
    if decimal is None and based is None:
        raise _invalid_input_error(text, wire)
    if len(text) > MAX_DIGITS:
        raise _out_of_range_error(text, wire)
    number = int(decimal[2]) if decimal is not None else 0
    for group, base in ((2, 16), (3, 8), (4, 2)) if based is not None else ():
        if based is not None and based[group] is not None:
            number = int(based[group].replace("_", ""), base)
    if (decimal or based or [""])[1] == "-":
        number = -number
    low, high = _INTEGER_RANGES[wire.name]
    if not low <= number <= high:
        raise _out_of_range_error(text, wire)
    return number % 2**32 if wire.name == "oid" else number


_FLOAT = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE)
_NON_FINITE = re.compile(r"\s*(nan|[+-]?inf(?:inity)?)\s*", re.ASCII | re.IGNORECASE)
_FLOAT_OVERFLOW = {"float4": 3.4028235677973366e38, "float8": math.inf}
_FLOAT_UNDERFLOW = {"float4": 7.006492321624085e-46, "float8": 0.0}


def _parse_float(text: str, wire: WireType) -> float:
    if _NON_FINITE.fullmatch(text):
        return float(text)
    if not _FLOAT.fullmatch(text):
        raise _invalid_input_error(text, wire)
    number = float(text)
    underflows = not number and re.search(r"[1-9]", re.split("[eE]", text)[0]) is not None
    if underflows or abs(number) >= _FLOAT_OVERFLOW[wire.name] or 0 < abs(number) <= _FLOAT_UNDERFLOW[wire.name]:
        raise DataError(f'"{text}" is out of range for type {wire.spelled}', sqlstate="22003")
    return number if wire.name == "float8" else float(struct.unpack("!f", struct.pack("!f", number))[0])


def _parse_numeric(text: str, wire: WireType) -> Decimal:
    if _NON_FINITE.fullmatch(text):
        return Decimal(text.strip())
    if _DECIMAL_INTEGER.fullmatch(text) or _FLOAT.fullmatch(text):
        number = Decimal(text.strip())
        if abs(number.adjusted()) > MAX_DIGITS or len(number.as_tuple().digits) > MAX_DIGITS:
            raise DataError("value overflows numeric format", sqlstate="22003")
        return number
    raise _invalid_input_error(text, wire)


_DATETIME = re.compile(
    r"\s*(\d{4,6}(?=-)|\d{4})-?(\d\d|\d(?=-))-?(\d\d?)"
    r"(?:(?:\s*T|\s+)(\d\d?):(\d\d)(?::(\d\d)(?:\.(\d*))?)?)?"
    r"\s*(?:(z|utc|gmt|zulu)|([+-])(\d\d?)(?::?(\d\d))?(?::?(\d\d))?)?\s*(bc|ad)?\s*",
    re.ASCII | re.IGNORECASE,
)
_TIME = re.compile(r"\s*T?(\d\d?):(\d\d)(?::(\d\d)(?:\.(\d*))?)?\s*(?:z|utc|gmt|[+-]\d\d(?::?\d\d)?)?\s*",
                   re.ASCII | re.IGNORECASE)  # fmt: skip
_INFINITE = ("infinity", "-infinity", "+infinity")
_ISO_HINT = "Write it as in 2024-12-31 or 2024-12-31 23:59:59."


def _parse_date(text: str, wire: WireType) -> dt.date | str:
    value = _parse_datetime(text, wire)
    return value if isinstance(value, str) else value[0].date()


def _parse_timestamp(text: str, wire: WireType) -> dt.datetime | str:
    """Parse a timestamp without time zone; a zone in the text is ignored."""
    value = _parse_datetime(text, wire)
    return value if isinstance(value, str) else value[0]


def _parse_timestamptz(text: str, wire: WireType, time_zone: TimeZone = UTC) -> dt.datetime | str:
    """Without a zone it is what the session's clocks show."""
    value = _parse_datetime(text, wire)
    if isinstance(value, str):
        return value
    local, ahead = value
    try:
        return time_zone.to_utc(local) if ahead is None else (local - ahead).replace(tzinfo=dt.UTC)
    except OverflowError:
        raise _datetime_range_error(text) from None


def _parse_datetime(text: str, wire: WireType) -> tuple[dt.datetime, dt.timedelta | None] | str:
    """A local time and how far its zone is ahead, if it has one; or a word for what no calendar has."""
    folded = text.strip().lower()
    if folded in _INFINITE:
        return folded.removeprefix("+")
    match = _DATETIME.fullmatch(text)
    if match is None:
        raise _invalid_input_error(text, wire, "22007")
    if (match[13] or "").lower() == "bc":
        raise _datetime_range_error(text)
    year, month, day, hour, minute, second = (int(match[group] or 0) for group in range(1, 7))
    zone = dt.timedelta(hours=int(match[10] or 0), minutes=int(match[11] or 0), seconds=int(match[12] or 0))
    if zone >= dt.timedelta(hours=16):
        raise DataError(f'time zone displacement out of range: "{text}"', sqlstate="22009")
    local = _make_datetime(text, (year, month, day), (hour, minute, second), match[7])
    if match[8] is None and match[9] is None:
        return local, None
    return local, -zone if match[9] == "-" else zone


def _make_datetime(
    text: str, day: tuple[int, int, int], time: tuple[int, int, int], fraction: str | None
) -> dt.datetime:
    hour, minute, second = time
    if minute > 59 or second > 60 or (hour > 23 and (hour, minute, second) != (24, 0, 0)):
        raise _datetime_range_error(text)
    try:
        time_of_day = dt.timedelta(
            hours=hour, minutes=minute, seconds=second, microseconds=_fraction_to_microseconds(fraction)
        )
        return dt.datetime(*day) + time_of_day
    except (ValueError, OverflowError):
        raise _datetime_range_error(text) from None


def _fraction_to_microseconds(fraction: str | None) -> int:
    """Microseconds from the digits behind the point, rounded."""
    return round(float(f"0.{fraction}") * 1_000_000) if fraction else 0


def _datetime_range_error(text: str) -> Error:
    return DataError(f'date/time field value out of range: "{text}"', sqlstate="22008")


def _parse_time(text: str, wire: WireType) -> dt.time:
    match = _TIME.fullmatch(text)
    if match is None:
        raise _invalid_input_error(text, wire, "22007")
    hour, minute, second = (int(match[group] or 0) for group in (1, 2, 3))
    try:
        return dt.time(hour, minute, second, min(_fraction_to_microseconds(match[4]), 999_999))
    except ValueError:
        raise _datetime_range_error(text) from None


def _parse_interval(text: str, wire: WireType) -> IntervalParts:
    try:
        return read_interval_text(text)
    except IntervalTextError as error:
        raise _invalid_input_error(text, wire, error.sqlstate) from None


_UUID = re.compile(r"\{?[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}\}?", re.ASCII | re.IGNORECASE)


def _parse_uuid(text: str, wire: WireType) -> UUID:
    if not _UUID.fullmatch(text) or text.startswith("{") != text.endswith("}"):
        raise _invalid_input_error(text, wire)
    return UUID(hex=text.strip("{}").replace("-", ""))


def _parse_bytea(text: str, wire: WireType) -> bytes:
    try:
        return bytes.fromhex(text[2:]) if text.startswith("\\x") else text.encode("utf-8")
    except ValueError:
        raise _invalid_input_error(text, wire) from None


_SPACE = " \t\n\r\v\f"
_ITEM = re.compile(r'[ \t\n\r\v\f]*(?:"((?:[^"\\]|\\.)*+)"|((?:[^{},"\\]|\\.)++))[ \t\n\r\v\f]*([,}])', re.DOTALL)


def _parse_array(text: str, wire: WireType) -> list[Value]:
    """Of one dimension.

    >>> from dpsql.interfaces.pgwire.protocol.types import TYPES_BY_NAME
    >>> _parse_array('{a,"b \\\\"c",NULL,"NULL"}', TYPES_BY_NAME["_text"])
    ['a', 'b "c', None, 'NULL']
    """
    element, body = wire.element, text.strip(_SPACE)
    assert element is not None
    if body[:1] == "{" and body[1:].strip(_SPACE) == "}":
        return []
    items: list[Value] = []
    at, mark = 1, "," if body.startswith("{") else ""
    while mark == ",":
        item = _ITEM.match(body, at)
        at, mark = (item.end(), item[3]) if item is not None else (at, "")
        if item is not None and (item[1] is not None or item[2].strip(_SPACE)):
            items.append(_parse_element(item, element))
        else:
            mark = ""
    if mark != "}" or at != len(body):
        raise DataError(f'malformed array literal: "{text}"', sqlstate="22P02")
    return items


def _parse_element(item: re.Match[str], element: WireType) -> Value:
    quoted, unquoted = item[1], item[2]
    if quoted is None and unquoted.strip(_SPACE).upper() == "NULL":
        return None
    raw = unquoted.strip(_SPACE) if quoted is None else quoted
    return from_text(re.sub(r"\\(.)", r"\1", raw, flags=re.DOTALL), element)


def _parse_vector(text: str, wire: WireType) -> list[Value]:
    assert wire.element is not None
    return [from_text(item, wire.element) for item in text.split()]


_TEXT_PARSERS: dict[str, Callable[[str, WireType], Value]] = {
    "bool": _parse_bool,
    "bytea": _parse_bytea,
    "int2": _parse_integer,
    "int4": _parse_integer,
    "int8": _parse_integer,
    "oid": _parse_integer,
    "xid": _parse_integer,
    "float4": _parse_float,
    "float8": _parse_float,
    "numeric": _parse_numeric,
    "date": _parse_date,
    "time": _parse_time,
    "timestamp": _parse_timestamp,
    "timestamptz": _parse_timestamptz,
    "interval": _parse_interval,
    "uuid": _parse_uuid,
}


# --- binary ----------------------------------------------------------------------------------------------------------


def _from_bytes(data: bytes, wire: WireType, encoding: ClientEncoding) -> Value:
    if wire.element is not None:
        return _array_from_bytes(data, wire.element, encoding)
    if wire.name == "jsonb":
        return _json_from_bytes(data, encoding)
    read = _BINARY_DECODERS.get(wire.name)
    return _decode_text(data, encoding) if read is None else read(data)


def _bool_from_bytes(data: bytes) -> bool:
    if len(data) != 1:
        raise ValueError("not a boolean")
    return data != b"\0"


def _make_unpacker(form: str) -> Callable[[bytes], Value]:
    return lambda data: struct.unpack(form, data)[0]


def _date_from_bytes(data: bytes) -> dt.date | str:
    days = struct.unpack("!i", data)[0]
    if _FIRST_DAY <= days <= _LAST_DAY:
        return dt.date.fromordinal(days + EPOCH_ORDINAL)
    return {2**31 - 1: "infinity", -(2**31): "-infinity"}.get(days) or format_date(days)


def _timestamp_from_bytes(data: bytes, zone: dt.timezone | None = None) -> dt.datetime | str:
    microseconds = struct.unpack("!q", data)[0]
    days, rest = divmod(microseconds, MICROSECONDS_PER_DAY)
    if _FIRST_DAY <= days <= _LAST_DAY:
        start = dt.datetime.fromordinal(days + EPOCH_ORDINAL) + dt.timedelta(microseconds=rest)
        return start.replace(tzinfo=zone)
    infinite = {2**63 - 1: "infinity", -(2**63): "-infinity"}.get(microseconds)
    return infinite or format_timestamp(microseconds, "" if zone is None else "+00")


def _time_from_bytes(data: bytes) -> dt.time:
    microseconds = struct.unpack("!q", data)[0]
    seconds, part = divmod(microseconds, 1_000_000)
    return dt.time(seconds // 3600, seconds // 60 % 60, seconds % 60, part)


def _uuid_from_bytes(data: bytes) -> UUID:
    return UUID(bytes=data)


def _json_from_bytes(data: bytes, encoding: ClientEncoding) -> str:
    if data[:1] != b"\1":
        raise ValueError("another version of jsonb")
    return _decode_text(data[1:], encoding)


def _array_from_bytes(data: bytes, element: WireType, encoding: ClientEncoding) -> list[Value]:
    """Decode an array of one dimension; its elements may have another type than the array's, as PostgreSQL allows."""
    dimensions, _nulls, oid = struct.unpack("!iiI", data[:12])
    if dimensions == 0 and len(data) == 12:
        return []
    if dimensions != 1 or oid != element.oid:
        raise ValueError("not such an array")
    count, at = struct.unpack("!i", data[12:16])[0], 20
    if not 0 <= count <= len(data) // 4:
        raise ValueError("more elements than bytes")
    items: list[Value] = []
    for _ in range(count):
        size = struct.unpack("!i", data[at : at + 4])[0]
        at += 4
        if size < -1 or at + max(size, 0) > len(data):
            raise ValueError("an element is longer than its array")
        items.append(None if size == -1 else _from_bytes(data[at : at + size], element, encoding))
        at += max(size, 0)
    if at != len(data):
        raise ValueError("more bytes than elements")
    return items


_BINARY_DECODERS: dict[str, Callable[[bytes], Value]] = {
    "bool": _bool_from_bytes, "bytea": bytes,
    "int2": _make_unpacker("!h"), "int4": _make_unpacker("!i"), "int8": _make_unpacker("!q"),
    "oid": _make_unpacker("!I"), "xid": _make_unpacker("!I"),
    "float4": _make_unpacker("!f"), "float8": _make_unpacker("!d"), "numeric": numeric_from_bytes,
    "date": _date_from_bytes, "time": _time_from_bytes,
    "timestamp": _timestamp_from_bytes, "timestamptz": lambda data: _timestamp_from_bytes(data, dt.UTC),
    "interval": interval_from_bytes, "uuid": _uuid_from_bytes,
}  # fmt: skip
