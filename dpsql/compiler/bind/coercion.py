"""Literals and the types that must meet in an expression."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp

from dpsql.base.datetime_text import read_datetime
from dpsql.compiler.functions.calendar import convert_time
from dpsql.compiler.functions.logical import find_common_type
from dpsql.compiler.functions.time_zones import local_time, session_zone
from dpsql.compiler.parse.dialect import refuse_other_args, span_of
from dpsql.compiler.plan.expressions import Call, Case, Cast, Expr, Literal
from dpsql.errors import InvalidSyntax, TypeMismatch, Unsupported
from dpsql.types import (
    BIGINT,
    DOUBLE,
    HUGEINT,
    INTEGER,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    Type,
    decimal_type,
    integer_range,
)

_WIDE_CONTEXT = Context(prec=80)
_BOOLEAN_WORDS = {"true": True, "t": True, "yes": True, "y": True, "on": True, "1": True,
          "false": False, "f": False, "no": False, "n": False, "off": False, "0": False}  # fmt: skip


def bind_literal(node: exp.Expr) -> Literal:
    refuse_other_args(node, "this", "is_string")
    text = str(node.this)
    if node.args.get("is_string"):
        return Literal(text, TEXT)
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise InvalidSyntax(f'"{text}" is not a number', span=span_of(node)) from None
    if "e" in text.lower():
        return Literal(_require_finite(float(number), node), DOUBLE)
    if number == number.to_integral_value() and "." not in text:
        return whole_number_literal(int(number)) or Literal(_require_finite(float(number), node), DOUBLE)
    digits = len(number.as_tuple().digits)
    scale = -int(number.as_tuple().exponent)
    if max(digits, scale) > 38:
        return Literal(_require_finite(float(number), node), DOUBLE)
    return Literal(number, decimal_type(max(digits, scale, 1), scale))


def whole_number_literal(number: int) -> Literal | None:
    """Of 64 bits, or of 128 where it needs them; None where they are not enough."""
    for type_ in (BIGINT, HUGEINT):
        lowest, highest = integer_range(type_)
        if lowest <= number <= highest:
            return Literal(number, type_)
    return None


def _require_finite(number: float, node: exp.Expr) -> float:
    if number in (float("inf"), float("-inf")):
        raise InvalidSyntax("the number is too large", span=span_of(node))
    return number


# --- types that must meet


def coerce(expr: Expr, type_: Type, node: exp.Expr) -> Expr:
    """The expression as the type; literals are converted here, exactly or not at all.

    Between moments and local times lie the clocks of the session's zone.
    """
    if expr.type == type_:
        return expr
    if isinstance(expr, Literal):
        converted = convert_literal(expr, type_)
        if converted is None:
            raise TypeMismatch(f"this value cannot be read as {type_}", span=span_of(node))
        return converted
    return cast_by_clock(expr, type_, node)


def cast_by_clock(expr: Expr, type_: Type, node: exp.Expr) -> Expr:
    """A cast, which shows moments by the clocks of the session's zone, and reads local times by them.

    Stability: what is cast is a function of the row alone, total on every engine (`timezone`, `add_interval`).
    """
    if session_zone().is_utc or TIMESTAMPTZ not in (expr.type, type_) or not (expr.type.is_time or type_.is_time):
        return _cast_unless(expr, type_)
    if expr.type == TIMESTAMPTZ:
        return _cast_unless(show_in_zone(expr), type_)
    if not expr.type.is_time:
        raise Unsupported(f"no cast from {expr.type} to {type_} by the clocks of {session_zone().name}",
                          hint="SET TIME ZONE 'UTC', or cast to timestamp first.", span=span_of(node))  # fmt: skip
    return read_in_zone(_cast_unless(expr, TIMESTAMP))


def show_in_zone(moment: Expr) -> Expr:
    """The local time that the clocks of the session's zone show at a moment."""
    zone = session_zone()
    if zone.fixed_offset is not None:
        return move_by_offset(Cast(moment, TIMESTAMP), zone.fixed_offset)
    return Call("timezone", (Literal(zone.engine_name, TEXT), moment), TIMESTAMP)


def read_in_zone(local: Expr) -> Expr:
    """The moment at which the clocks of the session's zone show a local time."""
    zone = session_zone()
    if zone.fixed_offset is not None:
        return Cast(move_by_offset(local, -zone.fixed_offset), TIMESTAMPTZ)
    return Call("timezone", (Literal(zone.engine_name, TEXT), local), TIMESTAMPTZ)


def move_by_offset(local: Expr, offset: dt.timedelta) -> Expr:
    """A time without a zone, so much later."""
    microseconds = offset // dt.timedelta(microseconds=1)
    if not microseconds:
        return local
    parts = (Literal(0, INTEGER), Literal(0, INTEGER), Literal(microseconds, BIGINT))
    return Call("add_interval", (local, *parts), TIMESTAMP)


def _cast_unless(expr: Expr, type_: Type) -> Expr:
    return expr if expr.type == type_ else Cast(expr, type_)


def convert_literal(literal: Literal, type_: Type) -> Literal | None:
    value = literal.value
    if value is None or literal.type == type_:
        return Literal(value, type_)
    if isinstance(value, str):
        return _convert_text(value.strip(), type_) if type_ != TEXT else Literal(value, TEXT)
    if literal.type.is_number and type_.is_float:
        return Literal(float(Fraction(value)), type_)  # type: ignore[arg-type]
    if literal.type.is_number and type_.kind is Kind.DECIMAL:
        scaled = Fraction(value) * 10 ** (type_.scale or 0)  # type: ignore[arg-type]
        fits = scaled.denominator == 1 and abs(scaled) < 10 ** (type_.precision or 0)
        return Literal(Decimal(scaled.numerator).scaleb(-(type_.scale or 0), _WIDE_CONTEXT), type_) if fits else None
    if literal.type.is_number and type_.is_integer:
        number = Fraction(value)  # type: ignore[arg-type]
        type_min, type_max = integer_range(type_)
        return Literal(int(number), type_) if number.denominator == 1 and type_min <= number <= type_max else None
    if isinstance(value, dt.date) and type_.is_time:
        try:
            return Literal(_convert_time_by_clock(value, type_), type_)
        except OverflowError:  # at the ends of the calendar
            return None
    if isinstance(value, int) and type_ == TEXT:
        return Literal(str(value).lower(), TEXT)
    return None


def _convert_time_by_clock(value: dt.date, type_: Type) -> dt.date:
    """As `convert_time`, by the clocks of the session's zone."""
    zone = session_zone()
    if zone.is_utc:
        return convert_time(value, type_)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value if type_ == TIMESTAMPTZ else convert_time(zone.to_local(value), type_)
    if type_ == TIMESTAMPTZ:
        return zone.to_utc(value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day))
    return convert_time(value, type_)


def _convert_text(text: str, type_: Type) -> Literal | None:
    try:
        match type_.kind:
            case Kind.BOOLEAN:
                return Literal(_BOOLEAN_WORDS[text.lower()], type_)
            case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
                return convert_literal(Literal(int(text), BIGINT), type_)
            case Kind.HUGEINT:
                number = whole_number_literal(int(text))
                return None if number is None else convert_literal(number, type_)
            case Kind.REAL | Kind.DOUBLE:
                double = float(text)
                return Literal(double, DOUBLE) if abs(double) < float("inf") else None
            case Kind.DECIMAL:
                return Literal(float(Decimal(text)), DOUBLE)
            case Kind.DATE:
                return Literal(_read_local_time(text).date(), type_)
            case Kind.TIMESTAMP:
                return Literal(_read_local_time(text), type_)
            case Kind.TIMESTAMPTZ:
                return Literal(_read_moment(text), type_)
            case Kind.UUID:
                return Literal(str(uuid.UUID(text)), type_)
            case Kind.TIME:
                time = dt.time.fromisoformat(text)
                return Literal(time.isoformat(), type_) if time.tzinfo is None else None
            case _:
                return None
    except (ValueError, KeyError, InvalidOperation, OverflowError):  # the last: a moment that UTC's calendar has not
        return None


def _read_local_time(text: str) -> dt.datetime:
    """A zone in the text is ignored, as in PostgreSQL; ValueError where it is no time."""
    try:
        timestamp = dt.datetime.fromisoformat(text)
    except ValueError:
        written = read_datetime(text, local_time())
        if written is None:
            raise
        return written.local
    return timestamp.replace(tzinfo=None)


def _read_moment(text: str) -> dt.datetime:
    """A local time is one of the session's zone; ValueError where the text is none."""
    try:
        timestamp = dt.datetime.fromisoformat(text)
    except ValueError:
        written = read_datetime(text, local_time())
        if written is None:
            raise
        if written.ahead is not None:
            return (written.local - written.ahead).replace(tzinfo=dt.UTC)
        return session_zone().to_utc(written.local)
    return timestamp.astimezone(dt.UTC) if timestamp.tzinfo else session_zone().to_utc(timestamp)


def unify_types(args: list[Expr], nodes: list[exp.Expr], what: str) -> tuple[list[Expr], Type]:
    """All arguments as one type: untyped literals take the type of the others."""
    typed = [arg.type for arg in args if not (isinstance(arg, Literal) and (arg.type == TEXT or arg.value is None))]
    types = tuple(dict.fromkeys(typed)) or (TEXT,)
    common = find_common_type(types)
    if common is None:
        spans = span_of(nodes[0])
        raise TypeMismatch(
            f"{what} of {' and '.join(str(t) for t in types)}: the types do not fit together",
            hint="Write the literal in the column's type, or cast one side.",
            span=spans.union(span_of(nodes[-1])) if spans else None,
        )
    if common.is_number:
        args = [_read_number_literal(arg, node) for arg, node in zip(args, nodes, strict=True)]
        common = _common_number_type(args)
    elif common.is_time:
        common = _common_time_type(args, common)
    return [coerce(arg, common, node) for arg, node in zip(args, nodes, strict=True)], common


def _common_number_type(args: list[Expr]) -> Type:
    """The type in which numbers are compared without an engine's implicit cast, which may overflow.

    Whole numbers as they are, in 128 bits where a column has them; decimals of one type with literals that it holds
    exactly; else doubles.
    """
    columns = {arg.type for arg in args if not isinstance(arg, Literal)}
    literals = [arg for arg in args if isinstance(arg, Literal)]
    if len(columns) == 1:
        (only_type,) = columns
        if only_type.kind is Kind.DECIMAL or only_type.is_integer:
            fitting = [convert_literal(literal, only_type) for literal in literals]
            if None not in fitting:
                return only_type
    if HUGEINT in columns and all(_is_whole_type(arg.type) for arg in args):
        return HUGEINT
    return BIGINT if all(arg.type.is_integer and arg.type != HUGEINT for arg in args) else DOUBLE


def _is_whole_type(type_: Type) -> bool:
    return type_.is_integer or (type_.kind is Kind.DECIMAL and not type_.scale)


def _common_time_type(args: list[Expr], common: Type) -> Type:
    """The columns' own type where it holds the literals exactly: a condition on the column itself narrows it."""
    columns = {arg.type for arg in args if not isinstance(arg, Literal)}
    if len(columns) != 1:
        return common
    (own,) = columns
    dates = [arg.value for arg in args if isinstance(arg, Literal) and isinstance(arg.value, dt.date)]
    try:
        exact = all(
            _convert_time_by_clock(m, common) == _convert_time_by_clock(_convert_time_by_clock(m, own), common)
            for m in dates
        )
    except OverflowError:  # at the ends of the calendar
        exact = False
    return own if exact else common


def coerce_number_literal(arg: Expr, node: exp.Expr) -> Expr:
    """A number to compute with: a literal past 64 bits is a double."""
    if isinstance(arg, Literal):
        return narrow_integer(_read_number_literal(arg, node))
    return arg


def narrow_integer(arg: Expr) -> Expr:
    """A whole number of 128 bits as arithmetic and functions take it: in 64 bits, NULL where it does not fit.

    Privacy: 128-bit arithmetic could overflow, for some rows only, and then raise.
    """
    if arg.type != HUGEINT:
        return arg
    if not isinstance(arg, Literal):
        return Cast(arg, BIGINT)
    narrow = convert_literal(arg, BIGINT)
    return narrow if narrow is not None else Literal(float(arg.value), DOUBLE)  # type: ignore[arg-type]


def _read_number_literal(arg: Expr, node: exp.Expr) -> Expr:
    if isinstance(arg, Literal) and arg.value is None:
        return Literal(None, BIGINT)
    if not isinstance(arg, Literal) or arg.type != TEXT:
        return arg
    for type_ in (HUGEINT, DOUBLE):
        converted = convert_literal(arg, type_)
        if converted is not None:
            return convert_literal(converted, BIGINT) or converted if type_ == HUGEINT else converted
    raise TypeMismatch("this text is not a number", span=span_of(node))


def null_unless(condition: Expr, arg: Expr) -> Expr:
    """The argument where the condition is true, else NULL: what FILTER and COUNTIF leave of it."""
    return Case(((condition, arg),), Literal(None, arg.type), arg.type)
