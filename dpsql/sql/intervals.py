"""INTERVAL literals: text to months, days and microseconds, as PostgreSQL reads it."""

from __future__ import annotations

import re
from fractions import Fraction

from sqlglot import exp

from dpsql.errors import Unsupported
from dpsql.functions.calendar import FIXED, MONTHS, part_name
from dpsql.functions.spans import Interval
from dpsql.sql.dialect import only, span_of

_DAYS = {"day": 1, "week": 7}
_CLOCK = re.compile(r"([+-]?)(\d{1,4}):(\d{2})(?::(\d{2}(?:\.\d{1,6})?))?")
_AMOUNT = re.compile(r"([+-]?\d{1,12}(?:\.\d{1,9})?)\s*([a-zA-Z]+)?")


def is_interval(node: exp.Expr) -> bool:
    """Whether the node is an interval, or a number of them."""
    inner = node.unnest()
    if isinstance(inner, exp.Interval):
        return True
    if isinstance(inner, exp.Cast):
        return bool(inner.to.is_type(exp.DType.INTERVAL))
    if isinstance(inner, exp.Mul):
        return is_interval(inner.this) or is_interval(inner.expression)
    return isinstance(inner, exp.Neg) and is_interval(inner.this)


def read_interval(node: exp.Expr) -> Interval:
    inner = node.unnest()
    if isinstance(inner, exp.Neg):
        return _times(read_interval(inner.this), -1)
    if isinstance(inner, exp.Mul):
        factor, span = (inner.expression, inner.this) if is_interval(inner.this) else (inner.this, inner.expression)
        if isinstance(factor, exp.Literal) and not factor.is_string and factor.name.isdigit():
            return _times(read_interval(span), int(factor.name))
    if isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal):
        only(inner, "this", "to")
        return _read(inner.this.name, None, inner)
    if isinstance(inner, exp.Interval) and isinstance(inner.this, exp.Literal | exp.Neg):
        only(inner, "this", "unit")
        unit = inner.args.get("unit")
        text = inner.this.name if isinstance(inner.this, exp.Literal) else f"-{inner.this.this.name}"
        if unit is None or isinstance(unit, exp.Var):
            return _read(text, unit.name if unit is not None else None, inner)
    raise _unreadable(node)


def _times(interval: Interval, factor: int) -> Interval:
    return Interval(interval.months * factor, interval.days * factor, interval.microseconds * factor)


def _read(text: str, unit: str | None, node: exp.Expr) -> Interval:
    months, days, microseconds = Fraction(0), Fraction(0), Fraction(0)
    rest = text.strip()
    if not rest:
        raise _unreadable(node)
    while rest:
        clock, amount = _CLOCK.match(rest), _AMOUNT.match(rest)
        if clock is not None:
            seconds = int(clock[2]) * 3600 + int(clock[3]) * 60 + Fraction(clock[4] or 0)
            microseconds += seconds * 1_000_000 * (-1 if clock[1] == "-" else 1)
            found = clock
        elif amount is not None:
            number, name = Fraction(amount[1]), part_name(amount[2] or unit or "second")
            if name in MONTHS:
                months += number * MONTHS[name]
            elif name in _DAYS:
                days += number * _DAYS[name]
            elif name in FIXED:
                microseconds += number * FIXED[name]
            else:
                raise _unreadable(node)
            found = amount
        else:
            raise _unreadable(node)
        rest = rest[found.end() :].lstrip(" ,")
    if months.denominator != 1 or days.denominator != 1:
        raise _unreadable(node)
    interval = Interval(int(months), int(days), int(microseconds))
    if not interval.fits:
        raise Unsupported("the interval is longer than 10,000 years", span=span_of(node))
    return interval


def _unreadable(node: exp.Expr) -> Unsupported:
    return Unsupported(
        "this interval is not understood", hint="For example: INTERVAL '1 month', INTERVAL '2 days 12 hours'.",
        span=span_of(node),
    )  # fmt: skip
