"""CAST(x AS numeric) after the noise: PostgreSQL's numeric has as many digits as the value; DuckDB's has 18, three of
them behind the point.

Whole numbers and decimals keep their digits, also those that are written out. A double stays one, as over private
rows; where it is rounded, `ROUND(x::numeric, 2)`, it is as many digits as that asks for.
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
        return _decimal(cast.this, UNKNOWN)
    if known.is_float:
        rounded = isinstance(cast.parent, exp.Round)
        return _decimal(cast.this, ROUNDED) if rounded else exp.Paren(this=cast.this.copy())
    if known.is_integer:
        return _decimal(cast.this, 0)
    return exp.Paren(this=cast.this.copy()) if known.kind is Kind.DECIMAL else _decimal(cast.this, UNKNOWN)


def _literal(written: exp.Expr, digits: exp.Literal) -> exp.Expr | None:
    found = _NUMBER.fullmatch(digits.name)
    if found is None:
        return None if digits.is_string else _decimal(written, ROUNDED)  # 1e-3
    return _decimal(written, min(len(found[1] or found[2] or ""), MOST_DIGITS))


def _decimal(value: exp.Expr, scale: int) -> exp.Expr:
    return exp.cast(value.copy(), exp.DataType.build(f"decimal({MOST_DIGITS}, {scale})"))
