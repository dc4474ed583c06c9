"""Numbers and intervals that a statement or a setting writes, read exactly.

Law: every text becomes a Fraction here alone.

1e-20000000 is eleven characters, and as a fraction twenty million digits, which no cancel and no timer interrupts. So
how many digits it has, and where they begin, is looked at first.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp

from dpsql.base.interval_text import ALL_FIELDS, FIELD_RANGES, UNIT_OF_WORD, IntervalFields
from dpsql.base.intervals import IntervalParts
from dpsql.compiler.functions.intervals import is_interval_in_range
from dpsql.compiler.parse.dialect import (
    PARAMETER_MARK,
    build_interval,
    read_checked_interval,
    refuse_other_args,
    span_of,
)
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


# Intervals of literals: months, days and microseconds. Texts are read by `base/interval_text.py`.


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
    """Of at most 10,000 years, as calendars have them that times are moved by."""
    interval = read_interval_literal(node)
    if not is_interval_in_range(interval):
        raise interval_too_long_error(node)
    return interval


def read_interval_literal(node: exp.Expr) -> IntervalParts:
    inner = node.unnest()
    if isinstance(inner, exp.Neg):
        return _multiply_interval(read_interval_literal(inner.this), -1)
    if isinstance(inner, exp.Mul):
        factor, span = (inner.expression, inner.this) if is_interval(inner.this) else (inner.this, inner.expression)
        number = literal_integer(factor)
        if number is not None:
            return _multiply_interval(read_interval_literal(span), number)
    if isinstance(inner, exp.Cast) and (text := _literal_text(inner.this)) is not None:
        refuse_other_args(inner, "this", "to")
        return _parse_interval_text(text, None, inner)
    if isinstance(inner, exp.Interval) and (text := _literal_text(inner.this)) is not None:
        refuse_other_args(inner, "this", "unit")
        unit = inner.args.get("unit")
        if unit is None or isinstance(unit, exp.Var):
            return _parse_interval_text(text, unit.name if unit is not None else None, inner)
    if isinstance(inner, exp.Literal) and inner.is_string:
        return _parse_interval_text(inner.name, None, inner)
    if isinstance(inner, exp.MakeInterval):
        return _parse_interval_text(
            " ".join(_interval_argument_text(name, value) for name, value in inner.args.items() if value), None, inner
        )
    raise _unreadable_interval_error(node)


# Casts of texts to intervals, and texts where a function takes an interval, are read when the statement is.


def check_interval_texts(tree: exp.Expr) -> None:
    """Refuse what is no interval, and leave intervals without fields and digits behind, in place."""
    for node in list(tree.find_all(exp.Cast, exp.Anonymous, exp.DateBin)):
        if not isinstance(node, exp.Cast):
            _read_first_argument(node)
            continue
        fields = _fields_of_type(node)
        if fields is None or isinstance(node, exp.TryCast):
            continue
        text, inner = _literal_text(node.this), node.this.unnest()
        if text is not None and text.startswith(PARAMETER_MARK):
            continue
        if text is not None and isinstance(inner, exp.Literal):
            interval = build_interval(text, fields, inner)
            if fields != ALL_FIELDS:
                node.replace(interval)
        elif fields != ALL_FIELDS:
            raise Unsupported(
                "only a literal is cast to some fields of an interval",
                hint="For example: CAST('1-2' AS INTERVAL YEAR TO MONTH).",
                span=span_of(node),
            )


def _read_first_argument(call: exp.Expr) -> None:
    """Of DATE_BIN and TIME_BUCKET."""
    written: exp.Expr | None = next(iter(call.expressions), None)
    if isinstance(call, exp.DateBin):
        written = call.this
    elif call.name.lower() != "time_bucket":
        return
    if isinstance(written, exp.Literal) and written.is_string and not written.name.startswith(PARAMETER_MARK):
        written.replace(build_interval(written.name, ALL_FIELDS, written))


def _fields_of_type(cast: exp.Cast) -> IntervalFields | None:
    """Those of a cast to an interval; None of another cast."""
    kind = cast.to.this
    if kind is exp.DType.INTERVAL:
        digits = cast.to.expressions
        return IntervalFields(precision=int(digits[0].name)) if digits and digits[0].name.isdigit() else ALL_FIELDS
    if not isinstance(kind, exp.Interval):
        return None
    unit = kind.args.get("unit")
    ends = (unit.this, unit.expression) if isinstance(unit, exp.IntervalSpan) else (unit, unit)
    first, last = (end.name.lower() if isinstance(end, exp.Expr) else "" for end in ends)
    if (first, last) not in FIELD_RANGES:
        raise _unreadable_interval_error(cast)
    return IntervalFields(first, last)


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
    return IntervalParts(interval.months * factor, interval.days * factor, interval.microseconds * factor)


def interval_too_long_error(node: exp.Expr | None) -> Unsupported:
    span = None if node is None else span_of(node)
    return Unsupported("the interval is longer than 10,000 years", span=span)


def _parse_interval_text(text: str, unit: str | None, node: exp.Expr) -> IntervalParts:
    if unit is not None and unit.lower() not in UNIT_OF_WORD:
        raise _unreadable_interval_error(node)
    return read_checked_interval(text if unit is None else f"{text.strip()} {unit}", span_of(node))


def _unreadable_interval_error(node: exp.Expr) -> Unsupported:
    return Unsupported(
        "this interval is not understood", hint="For example: INTERVAL '1 month', INTERVAL '2 days 12 hours'.",
        span=span_of(node),
    )  # fmt: skip
