"""CAST(x AS numeric) after the noise: PostgreSQL's numeric has as many digits as the value; DuckDB's has 18, three of
them behind the point.

Whole numbers and decimals keep their digits, also those that are written out. A double stays one, as over private
rows; where it is rounded or cut, `ROUND(x::numeric, 2)`, or has a scale, it is a decimal. Its digits are those
that it is shown with, not those of the binary fraction: 1.005 is rounded to 1.01.
"""

from __future__ import annotations

import re

from sqlglot import exp

from dpsql.sql.outputs import type_of
from dpsql.types import Kind

_NUMBER = re.compile(r"\s*[+-]?(?:\d+(?:\.(\d*))?|\.(\d+))\s*", re.ASCII)
MOST_DIGITS = 38
ROUNDED = 15  # digits behind the point, of a double that is rounded: as many as a double has
UNKNOWN = 10


def plain_numeric(cast: exp.Expr) -> exp.Expr | None:
    """What is written for a cast to numeric without a precision."""
    inner = cast.this.unnest()
    digits = inner.this if isinstance(inner, exp.Neg) else inner
    if isinstance(digits, exp.Literal):
        return _literal(cast.this, digits)
    known = type_of(cast.this)
    if known is None:
        return _of_digits(cast.this, _of_scale(UNKNOWN if (scale := _rounded_to(cast)) is None else scale))
    if known.is_float:
        scale = _rounded_to(cast)
        return exp.Paren(this=cast.this.copy()) if scale is None else _of_digits(cast.this, _of_scale(scale))
    if known.is_integer:
        return _decimal(cast.this, 0)
    return exp.Paren(this=cast.this.copy()) if known.kind is Kind.DECIMAL else _decimal(cast.this, UNKNOWN)


def scaled_numeric(cast: exp.Expr) -> exp.Expr | None:
    """What is written for a cast to numeric(10, 2): of a double, by its digits."""
    if isinstance(cast.this.unnest(), exp.Literal):
        return None
    known = type_of(cast.this)
    return _of_digits(cast.this, cast.args["to"]) if known is not None and known.is_float else None


def _rounded_to(cast: exp.Expr) -> int | None:
    """How many digits behind the point a call around asks for; None where there is none."""
    call = cast.parent
    while isinstance(call, exp.Paren | exp.Neg):
        call = call.parent
    if not isinstance(call, exp.Round | exp.Trunc):
        return None
    digits = call.args.get("decimals") or exp.Literal.number(0)
    exactly = isinstance(call, exp.Round) and isinstance(digits, exp.Literal) and digits.is_int
    return min(int(digits.this), MOST_DIGITS) if exactly else ROUNDED


def _of_digits(value: exp.Expr, decimal: exp.DataType) -> exp.Expr:
    """By way of its text, which has all digits of a decimal too: what is a double here may be one to DuckDB."""
    return exp.cast(exp.cast(value.copy(), "text"), decimal.copy())


def _literal(written: exp.Expr, digits: exp.Literal) -> exp.Expr | None:
    found = _NUMBER.fullmatch(digits.name)
    if found is None:
        return None if digits.is_string else _decimal(written, ROUNDED)  # 1e-3
    return _decimal(written, min(len(found[1] or found[2] or ""), MOST_DIGITS))


def _decimal(value: exp.Expr, scale: int) -> exp.Expr:
    return exp.cast(value.copy(), _of_scale(scale))


def _of_scale(scale: int) -> exp.DataType:
    return exp.DataType.build(f"decimal({MOST_DIGITS}, {scale})")
