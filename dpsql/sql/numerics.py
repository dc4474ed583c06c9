"""CAST(x AS numeric) after the noise: PostgreSQL's numeric has as many digits as the value; DuckDB's has 18, three of
them behind the point.

Whole numbers and decimals keep their digits, also those that are written out. A double stays one, as over private
rows; where it is rounded or cut, `ROUND(x::numeric, 2)`, or has a scale, it is a decimal. Its digits are those
that it is shown with, not those of the binary fraction: 1.005 is rounded to 1.01.
"""

from __future__ import annotations

import re

from sqlglot import exp

from dpsql.sql.outputs import infer_type
from dpsql.types import Kind

_PLAIN_NUMBER = re.compile(r"\s*[+-]?(?:\d+(?:\.(\d*))?|\.(\d+))\s*", re.ASCII)
MAX_DECIMAL_DIGITS = 38
ROUNDED_SCALE = 15  # digits behind the point, of a double that is rounded: as many as a double has
UNKNOWN_SCALE = 10


def rewrite_plain_numeric(cast: exp.Expr) -> exp.Expr | None:
    """What is written for a cast to numeric without a precision."""
    inner = cast.this.unnest()
    digits = inner.this if isinstance(inner, exp.Neg) else inner
    if isinstance(digits, exp.Literal):
        return _cast_literal(cast.this, digits)
    type_ = infer_type(cast.this)
    if type_ is None:
        return _cast_by_text(cast.this, _decimal_type(UNKNOWN_SCALE if (scale := _rounding_digits(cast)) is None else scale))
    if type_.is_float:
        scale = _rounding_digits(cast)
        return exp.Paren(this=cast.this.copy()) if scale is None else _cast_by_text(cast.this, _decimal_type(scale))
    if type_.is_integer:
        return _cast_to_decimal(cast.this, 0)
    return exp.Paren(this=cast.this.copy()) if type_.kind is Kind.DECIMAL else _cast_to_decimal(cast.this, UNKNOWN_SCALE)


def rewrite_scaled_numeric(cast: exp.Expr) -> exp.Expr | None:
    """What is written for a cast to numeric(10, 2): of a double, by its digits."""
    if isinstance(cast.this.unnest(), exp.Literal):
        return None
    type_ = infer_type(cast.this)
    return _cast_by_text(cast.this, cast.args["to"]) if type_ is not None and type_.is_float else None


def _rounding_digits(cast: exp.Expr) -> int | None:
    """How many digits behind the point a call around asks for; None where there is none."""
    call = cast.parent
    while isinstance(call, exp.Paren | exp.Neg):
        call = call.parent
    if not isinstance(call, exp.Round | exp.Trunc):
        return None
    digits = call.args.get("decimals") or exp.Literal.number(0)
    exactly = isinstance(call, exp.Round) and isinstance(digits, exp.Literal) and digits.is_int
    return min(int(digits.this), MAX_DECIMAL_DIGITS) if exactly else ROUNDED_SCALE


def _cast_by_text(value: exp.Expr, decimal: exp.DataType) -> exp.Expr:
    """By way of its text, which has all digits of a decimal too: what is a double here may be one to DuckDB."""
    return exp.cast(exp.cast(value.copy(), "text"), decimal.copy())


def _cast_literal(written: exp.Expr, digits: exp.Literal) -> exp.Expr | None:
    matched = _PLAIN_NUMBER.fullmatch(digits.name)
    if matched is None:
        return None if digits.is_string else _cast_to_decimal(written, ROUNDED_SCALE)  # 1e-3
    return _cast_to_decimal(written, min(len(matched[1] or matched[2] or ""), MAX_DECIMAL_DIGITS))


def _cast_to_decimal(value: exp.Expr, scale: int) -> exp.Expr:
    return exp.cast(value.copy(), _decimal_type(scale))


def _decimal_type(scale: int) -> exp.DataType:
    return exp.DataType.build(f"decimal({MAX_DECIMAL_DIGITS}, {scale})")
