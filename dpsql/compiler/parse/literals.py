"""Numbers and intervals that a statement or a setting writes, read exactly.

Law: every text becomes a Fraction here alone.

1e-20000000 is eleven characters, and as a fraction twenty million digits, which no cancel and no timer interrupts. So
how many digits it has, and where they begin, is looked at first.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp

from dpsql.base.intervals import IntervalParts
from dpsql.compiler.functions.calendar import FIXED_UNITS, MONTHS_PER_UNIT, canonical_part
from dpsql.compiler.functions.intervals import is_interval_in_range
from dpsql.compiler.parse.dialect import refuse_other_args, span_of
from dpsql.errors import DataError, Span, Unsupported

MAX_DIGITS = 400
"""Before or behind the point: beyond what a double holds."""


def parse_exact_number(text: str, span: Span | None = None) -> Fraction | None:
    """What the text writes; None: no finite number. Raises where it is out of range.

    >>> parse_exact_number("2.5e-1")
    Fraction(1, 4)
    >>> parse_exact_number("one")
    """
    number = parse_decimal_number(text, span)
    return None if number is None else Fraction(number)


def parse_decimal_number(text: str, span: Span | None = None) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite():
        return None
    if not fits_digit_limit(number):
        raise DataError("a number is out of range", sqlstate="22003", span=span,
                        hint=f"A number has at most {MAX_DIGITS} digits on each side of its point.")  # fmt: skip
    return number


def fits_digit_limit(number: Decimal) -> bool:
    """Whether it takes no more than so many digits to write it out: 0e-20000000 has its point far behind too."""
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -MAX_DIGITS and number.adjusted() < MAX_DIGITS


# Intervals of literals: text to months, days and microseconds, as PostgreSQL reads it.

_DAYS = {"day": 1, "week": 7}
_CLOCK = re.compile(r"([+-]?)(\d{1,4}):(\d{2})(?::(\d{2}(?:\.\d{1,6})?))?")
_AMOUNT = re.compile(r"([+-]?\d{1,12}(?:\.\d{1,9})?)\s*([a-zA-Z]+)?")


def is_interval(node: exp.Expr) -> bool:
    """Whether the node is an interval, or a number of them."""
    inner = node.unnest()
    if isinstance(inner, exp.Interval | exp.MakeInterval):
        return True
    if isinstance(inner, exp.Cast):
        return bool(inner.to.is_type(exp.DType.INTERVAL))
    if isinstance(inner, exp.Mul):
        return is_interval(inner.this) or is_interval(inner.expression)
    return isinstance(inner, exp.Neg) and is_interval(inner.this)


def read_interval(node: exp.Expr) -> IntervalParts:
    inner = node.unnest()
    if isinstance(inner, exp.Neg):
        return _multiply_interval(read_interval(inner.this), -1)
    if isinstance(inner, exp.Mul):
        factor, span = (inner.expression, inner.this) if is_interval(inner.this) else (inner.this, inner.expression)
        number = literal_integer(factor)
        if number is not None:
            return _multiply_interval(read_interval(span), number)
    if isinstance(inner, exp.Cast) and (text := _literal_text(inner.this)) is not None:
        refuse_other_args(inner, "this", "to")
        return _parse_interval_text(text, None, inner)
    if isinstance(inner, exp.Interval) and (text := _literal_text(inner.this)) is not None:
        refuse_other_args(inner, "this", "unit")
        unit = inner.args.get("unit")
        if unit is None or isinstance(unit, exp.Var):
            return _parse_interval_text(text, unit.name if unit is not None else None, inner)
    if isinstance(inner, exp.MakeInterval):
        return _parse_interval_text(
            " ".join(_interval_argument_text(name, value) for name, value in inner.args.items() if value), None, inner
        )
    raise _unreadable_interval_error(node)


def literal_integer(node: exp.Expr) -> int | None:
    """The number that a literal is, with its sign."""
    inner = node.unnest()
    if isinstance(inner, exp.Neg):
        number = literal_integer(inner.this)
        return None if number is None else -number
    plain = isinstance(inner, exp.Literal) and not inner.is_string and inner.name.isdigit()
    return int(inner.name) if plain else None


def _literal_text(node: exp.Expr) -> str | None:
    """What literals spell together: '10 days', 10 || ' days', concat('10', ' days')."""
    inner = node.unnest()
    if isinstance(inner, exp.Literal):
        return str(inner.name)
    if isinstance(inner, exp.Neg):
        text = _literal_text(inner.this) if isinstance(inner.this, exp.Literal) else None
        return None if text is None else f"-{text}"
    if not isinstance(inner, exp.DPipe | exp.Concat):
        return None
    parts = [_literal_text(part) for part in (inner.expressions or (inner.this, inner.expression))]
    return None if None in parts else "".join(part for part in parts if part is not None)


def _interval_argument_text(name: str, node: exp.Expr) -> str:
    """An argument of make_interval: days => 10, or the fourth."""
    if isinstance(node, exp.Kwarg | exp.PropertyEQ):
        name, node = node.this.name, node.expression
    text = _literal_text(node)
    if text is None:
        raise _unreadable_interval_error(node)
    return f"{text} {name}"


def _multiply_interval(interval: IntervalParts, factor: int) -> IntervalParts:
    product = IntervalParts(interval.months * factor, interval.days * factor, interval.microseconds * factor)
    if not is_interval_in_range(product):
        raise interval_too_long_error(None)
    return product


def interval_too_long_error(node: exp.Expr | None) -> Unsupported:
    span = None if node is None else span_of(node)
    return Unsupported("the interval is longer than 10,000 years", span=span)


_ISO_INTERVAL = re.compile(r"P((?:[+-]?\d+[YMWD])*)(?:T((?:[+-]?\d+(?:\.\d+)?[HMS])+))?", re.IGNORECASE)
_ISO_PART = re.compile(r"([+-]?[\d.]+)([A-Z])", re.IGNORECASE)
_ISO_DATE_UNITS = {"Y": "years", "M": "months", "W": "weeks", "D": "days"}
_ISO_TIME_UNITS = {"H": "hours", "M": "minutes", "S": "seconds"}


def _spell_iso_interval(text: str) -> str:
    """ISO 8601's form in words; any other text as it is.

    >>> _spell_iso_interval("P1Y2M-3DT4H5M6.5S"), _spell_iso_interval("1 day")
    ('1 years 2 months -3 days 4 hours 5 minutes 6.5 seconds', '1 day')
    """
    matched = _ISO_INTERVAL.fullmatch(text)
    if matched is None:
        return text
    parts = [f"{amount} {_ISO_DATE_UNITS[unit.upper()]}" for amount, unit in _ISO_PART.findall(matched[1])]
    parts += [f"{amount} {_ISO_TIME_UNITS[unit.upper()]}" for amount, unit in _ISO_PART.findall(matched[2] or "")]
    return " ".join(parts)


def _parse_interval_text(text: str, unit: str | None, node: exp.Expr) -> IntervalParts:
    months, days, microseconds = Fraction(0), Fraction(0), Fraction(0)
    rest = _spell_iso_interval(text.strip())
    if not rest:
        raise _unreadable_interval_error(node)
    while rest:
        clock, amount = _CLOCK.match(rest), _AMOUNT.match(rest)
        if clock is not None:
            seconds = int(clock[2]) * 3600 + int(clock[3]) * 60 + Fraction(clock[4] or 0)
            microseconds += seconds * 1_000_000 * (-1 if clock[1] == "-" else 1)
            matched = clock
        elif amount is not None:
            number, name = Fraction(amount[1]), canonical_part(amount[2] or unit or "second")
            if name in MONTHS_PER_UNIT:
                months += number * MONTHS_PER_UNIT[name]
            elif name in _DAYS:
                days += number * _DAYS[name]
            elif name in FIXED_UNITS:
                microseconds += number * FIXED_UNITS[name]
            else:
                raise _unreadable_interval_error(node)
            matched = amount
        else:
            raise _unreadable_interval_error(node)
        rest = rest[matched.end() :].lstrip(" ,")
    if months.denominator != 1 or days.denominator != 1:
        raise _unreadable_interval_error(node)
    interval = IntervalParts(int(months), int(days), int(microseconds))
    if not is_interval_in_range(interval):
        raise interval_too_long_error(node)
    return interval


def _unreadable_interval_error(node: exp.Expr) -> Unsupported:
    return Unsupported(
        "this interval is not understood", hint="For example: INTERVAL '1 month', INTERVAL '2 days 12 hours'.",
        span=span_of(node),
    )  # fmt: skip
