"""Literals that are cast after the noise: a text that is no value of a type is told before anything is charged."""

from __future__ import annotations

import re
import sys

from sqlglot import exp

from dpsql.compiler.parse.dialect import span_of
from dpsql.errors import DataError, Unsupported

_TIME_TYPES = (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ)


def check_cast_literal(cast: exp.Expr) -> None:
    """A text that is no value of a type is told before anything is charged, as PostgreSQL does when it reads one."""
    inner = cast.this
    if not isinstance(inner, exp.Literal) or not inner.is_string:
        return
    type_, text = cast.args["to"].this, inner.name
    if type_ in _TIME_TYPES and text.strip().lower().lstrip("+-") in ("infinity", "inf"):
        raise Unsupported("there is no infinite date or time here", hint="Leave the bound out.", span=span_of(cast))
    if type_ in _INTEGER_TYPES:
        _check_integer_text(cast, type_, text)
    if type_ in _FLOAT_NAMES and not isinstance(cast, exp.TryCast):
        _check_float_text(cast, type_, text)
    if type_ is exp.DType.ARRAY and not isinstance(cast, exp.TryCast):
        _check_array_text(cast, text)
    if type_ is exp.DType.UUID and not _UUID_TEXT.fullmatch(text.strip()):
        _refuse_literal(cast, f'invalid input syntax for type uuid: "{text}"', "22P02")


def _check_integer_text(cast: exp.Expr, type_: exp.DType, text: str) -> None:
    name, bits = _INTEGER_TYPES[type_]
    if not re.fullmatch(r"\s*[+-]?\d+\s*", text, re.ASCII):
        _refuse_literal(cast, f'invalid input syntax for type {name}: "{text}"', "22P02")
    if len(text) > 100 or not -(1 << bits) <= int(text) < 1 << bits:
        _refuse_literal(cast, f'value "{text}" is out of range for type {name}', "22003")


def _check_float_text(cast: exp.Expr, type_: exp.DType, text: str) -> None:
    """A number that the type cannot hold is an error, and neither infinity nor 0."""
    name, least, most = _FLOAT_NAMES[type_]
    if not _FLOAT_TEXT.fullmatch(text):
        _refuse_literal(cast, f'invalid input syntax for type {name}: "{text}"', "22P02")
    if not text.strip()[-1:].isalpha():
        size = abs(float(text))
        if size > most or (size < least and re.search("[1-9]", text.lower().partition("e")[0])):
            _refuse_literal(cast, f'"{text.strip()}" is out of range for type {name}', "22003")


def _check_array_text(cast: exp.Expr, text: str) -> None:
    """One that begins as an array, whose items are whole numbers where it is of these; DuckDB's brackets may stand."""
    if not re.match(r"\s*[{\[]", text):
        _refuse_literal(cast, f'malformed array literal: "{text}"', "22P02")
    element, items = cast.args["to"].expressions[:1], _PLAIN_ITEMS.fullmatch(text)
    type_ = element[0].this if element and isinstance(element[0], exp.DataType) else None
    if type_ in _INTEGER_TYPES and items is not None and items[1].strip():
        for item in items[1].split(","):
            if item.strip().upper() != "NULL":
                _check_integer_text(cast, type_, item.strip())


_PLAIN_ITEMS = re.compile(r"\s*\{([^{}\"\\]*)\}\s*")


def rewrite_array_text(cast: exp.Expr) -> exp.Expr | None:
    """'{1,2}'::int[] as a list, which DuckDB writes in brackets; items in quotes and lists of lists are its own."""
    items = _PLAIN_ITEMS.fullmatch(cast.this.name)
    if items is None or isinstance(cast, exp.TryCast):
        return None
    words = [item.strip() for item in items[1].split(",")] if items[1].strip() else []
    values = [exp.Null() if word.upper() == "NULL" else exp.Literal.string(word) for word in words]
    return exp.cast(exp.Array(expressions=values), cast.args["to"].copy())


def _refuse_literal(cast: exp.Expr, message: str, state: str) -> None:
    raise DataError(message, span=span_of(cast.this) or span_of(cast), sqlstate=state)


_INTEGER_TYPES = {
    exp.DType.SMALLINT: ("smallint", 15),
    exp.DType.INT: ("integer", 31),
    exp.DType.BIGINT: ("bigint", 63),
}
_FLOAT_NAMES = {
    exp.DType.DOUBLE: ("double precision", 5e-324, sys.float_info.max),
    exp.DType.FLOAT: ("real", 1.4e-45, 3.4028235677973366e38),
}
"""With the least and the largest size that each can hold; what lies beyond is rounded to no number of it."""
_FLOAT_TEXT = re.compile(r"\s*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf|infinity)\s*", re.ASCII | re.IGNORECASE)
_UUID_TEXT = re.compile(r"\{?([\da-f]{4}-?){8}\}?", re.IGNORECASE | re.ASCII)


_BYTEA_ESCAPE = re.compile(r"\\\\|\\([0-3][0-7]{2})|\\|[^\\]+")


def read_bytea(cast: exp.Expr, text: str) -> bytes:
    r"""The bytes that a text is of: `\xDEAD`, or signs with `\\` and `\ooo` in their midst."""
    if text.startswith("\\x"):
        digits = re.sub(r"\s", "", text[2:])
        if (wrong := re.search(r"[^0-9a-fA-F]", digits)) is not None:
            _refuse_literal(cast, f'invalid hexadecimal digit: "{wrong[0]}"', "22023")
        if len(digits) % 2:
            _refuse_literal(cast, "invalid hexadecimal data: odd number of digits", "22023")
        return bytes.fromhex(digits)
    parts = []
    for part in _BYTEA_ESCAPE.finditer(text):
        if part[0] == "\\":
            _refuse_literal(cast, "invalid input syntax for type bytea", "22P02")
        parts.append(bytes([int(part[1], 8)]) if part[1] else part[0].replace("\\\\", "\\").encode())
    return b"".join(parts)
