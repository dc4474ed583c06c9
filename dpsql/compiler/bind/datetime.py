"""Dates and times: parts, periods, intervals, differences and formats."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from sqlglot import exp

from dpsql.base.intervals import MICROSECONDS_PER_DAY, IntervalParts
from dpsql.compiler.bind.calls import BindChild, build_call
from dpsql.compiler.bind.coercion import coerce, move_by_offset
from dpsql.compiler.functions.calendar import EXTRACTIONS, FIXED_UNITS, TRUNCATIONS, canonical_part, convert_time
from dpsql.compiler.functions.date_formats import UnknownFormat, parse_to_char_format, strptime_format
from dpsql.compiler.functions.datetime import DIFFERENCE_PARTS, MONTH_MICROSECONDS
from dpsql.compiler.functions.time_zones import (
    UTC_NAMES,
    find_zone_name,
    read_fixed_zone,
    session_zone,
    suggest_zones,
)
from dpsql.compiler.parse.dialect import refuse_other_args, span_of
from dpsql.compiler.parse.function_names import DATE_PART_NODES, FORMAT_NOTE, unwrap_cast_literal
from dpsql.compiler.parse.literals import is_interval, literal_integer, read_interval
from dpsql.compiler.plan.expressions import Arithmetic, Call, Cast, Expr, Literal
from dpsql.errors import TypeMismatch, Unsupported
from dpsql.types import BIGINT, DATE, INTEGER, MICROSECOND_INTERVAL, TEXT, TIMESTAMP, TIMESTAMPTZ

# --- intervals -------------------------------------------------------------------------------------------------------
# Differences of timestamps, literals that they are compared with, and their parts.

_INTERVAL_PARTS_HINT = ("EXTRACT(epoch FROM to - from) gives all seconds; its parts are day, hour, minute and second. "
          "EXTRACT(year FROM AGE(to, from)) counts years.")  # fmt: skip


def interval_to_microseconds(interval: IntervalParts) -> int:
    return interval.months * MONTH_MICROSECONDS + interval.days * MICROSECONDS_PER_DAY + interval.microseconds


def bind_interval_literal(node: exp.Expr) -> Expr:
    """What differences are compared with; a month is 30 days then."""
    return Literal(interval_to_microseconds(read_interval(node)), MICROSECOND_INTERVAL)


def build_difference(end: Expr, start: Expr, node: exp.Expr) -> Expr:
    return build_call("difference", _as_moments([end, start], node), node)


def _as_moments(args: list[Expr], node: exp.Expr) -> list[Expr]:
    """All as times of UTC, if one of them has a zone: what lies between two moments, no clock changes."""
    if session_zone().is_utc or all(arg.type != TIMESTAMPTZ for arg in args):
        return args
    return [_to_utc_time(coerce(arg, TIMESTAMPTZ, node)) for arg in args]


def _to_utc_time(moment: Expr) -> Expr:
    if isinstance(moment, Literal) and isinstance(moment.value, dt.date):
        return Literal(convert_time(moment.value, TIMESTAMP), TIMESTAMP)
    return Cast(moment, TIMESTAMP)


def _by_clock(arg: Expr, node: exp.Expr) -> Expr:
    """A moment as the time that the clocks of the session's zone show then."""
    return arg if session_zone().is_utc or arg.type != TIMESTAMPTZ else coerce(arg, TIMESTAMP, node)


def build_interval_part(part: Literal, arg: Expr, node: exp.Expr) -> Expr:
    """A part of a difference; all of it in seconds is its epoch."""
    if part.value == "epoch":
        if isinstance(arg, Call) and arg.function == "difference":
            return build_call("seconds_between", list(arg.args), node)
        return build_call("span_seconds", [arg], node)
    if part.value not in DIFFERENCE_PARTS:
        raise Unsupported(f"EXTRACT({part.value} FROM a difference) is not supported", hint=_INTERVAL_PARTS_HINT,
                          span=span_of(node))  # fmt: skip
    if part.value == "day" and isinstance(arg, Call) and arg.function == "difference":
        return build_call("date_sub", [part, *reversed(arg.args)], node)
    return build_call("span_part", [part, arg], node)


def bind_comparison_sides(nodes: list[exp.Expr], bind: BindChild) -> list[Expr]:
    """Both sides of a comparison, in which an interval is known by its length: an age too, and a text for one."""
    bound = [_bind_age(node, bind) or bind(node) for node in nodes]
    if not any(arg.type.is_microsecond_interval for arg in bound):
        return bound
    return [_to_interval(arg, node) for arg, node in zip(bound, nodes, strict=True)]


def _to_interval(arg: Expr, node: exp.Expr) -> Expr:
    if isinstance(arg, Literal) and arg.type == TEXT and arg.value is not None:
        return bind_interval_literal(exp.Interval(this=exp.Literal.string(str(arg.value))))
    if arg.type.is_integer and isinstance(arg, Call) and arg.function == "date_diff":
        raise TypeMismatch("the difference of two dates is a number of days, not an interval",
                           hint="Compare it with a number: day - birth_date > 30.", span=span_of(node))  # fmt: skip
    return arg


def _bind_age(node: exp.Expr, bind: BindChild) -> Expr | None:
    inner = node.unnest()
    if not isinstance(inner, exp.Anonymous) or inner.name.lower() != "age" or len(inner.expressions) != 2:
        return None
    return build_call("age_span", [bind(arg) for arg in inner.expressions], node)


# --- aggregates ------------------------------------------------------------------------------------------------------


def interval_to_seconds(arg: Expr, node: exp.Expr) -> Expr:
    """An interval as the number that is summed, averaged or chosen; `seconds_to_interval` makes an interval of it
    again."""
    return build_interval_part(Literal("epoch", TEXT), arg, node)


def seconds_to_interval(released: exp.Expr) -> exp.Expr:
    """Released seconds as days and microseconds, as a difference of timestamps has them."""

    def combine(kind: type[exp.Binary], left: exp.Expr, right: str) -> exp.Expr:
        return kind(this=left.copy(), expression=exp.Literal.number(right))

    days = exp.Trunc(this=combine(exp.Div, released, "86400.0"))
    rest = exp.Paren(this=exp.Sub(this=released.copy(), expression=combine(exp.Mul, days, "86400.0")))
    microseconds = exp.cast(exp.Round(this=combine(exp.Mul, rest, "1000000.0")), "bigint")
    whole_days = exp.TryCast(this=days.copy(), to=exp.DataType.build("int"))
    parts = (exp.Anonymous(this="to_days", expressions=[whole_days]),
             exp.Anonymous(this="to_microseconds", expressions=[microseconds]))  # fmt: skip
    return exp.Paren(this=exp.Add(this=parts[0], expression=parts[1]))


_BUCKET_EXAMPLE = "TIME_BUCKET(INTERVAL '15 minutes', at)."


def _bind_part_name(node: exp.Expr, allowed: tuple[str, ...], what: str) -> Literal:
    name = canonical_part(node.name)
    if name not in allowed:
        span = span_of(node) or (span_of(node.parent) if node.parent is not None else None)
        raise Unsupported(f'{what} of "{node.name.lower()}" is not supported', hint=f"Parts: {', '.join(allowed)}.",
                          span=span)  # fmt: skip
    return Literal(name, TEXT)


def bind_extract(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "expression")
    part, inner = _bind_part_name(node.this, EXTRACTIONS, "EXTRACT"), node.expression.unnest()
    if isinstance(inner, exp.Anonymous) and inner.name.lower() == "age":
        return _bind_age_part(part, inner, bind)
    if isinstance(inner, exp.Sub) and not is_interval(inner.expression):
        days = _bind_days_between(part, inner, bind)
        if days is not None:
            return days
    return build_extract(part, bind(node.expression), node)


def build_extract(part: Literal, arg: Expr, node: exp.Expr) -> Expr:
    if arg.type.is_microsecond_interval:
        return build_interval_part(part, arg, node)
    if part.value == "epoch":
        return build_call("epoch", _as_moments([arg], node), node)
    return build_call("extract", [part, _by_clock(arg, node)], node)


def bind_part_function(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this")
    return build_extract(Literal(DATE_PART_NODES[type(node)], TEXT), bind(node.this), node)


def _bind_age_part(part: Literal, node: exp.Anonymous, bind: BindChild) -> Expr:
    if len(node.expressions) != 2:
        raise Unsupported("AGE takes two dates here", hint="For example: EXTRACT(year FROM AGE(CURRENT_DATE, at)).",
                          span=span_of(node))  # fmt: skip
    return build_call("age", [part, *(bind(arg) for arg in node.expressions)], node)


def _bind_days_between(part: Literal, node: exp.Expr, bind: BindChild) -> Expr | None:
    """EXTRACT(day FROM one date - another): DuckDB has it; the difference is a number in PostgreSQL already."""
    nodes = [node.this, node.expression]
    end, start = coerce_time_operands([bind(n) for n in nodes], nodes)
    if not end.type == start.type == DATE:
        return None
    name, args = ("seconds_between", [end, start]) if part.value == "epoch" else ("date_sub", [part, start, end])
    return build_call(name, args, node) if part.value in ("epoch", "day") else None


def coerce_time_operands(args: list[Expr], nodes: list[exp.Expr]) -> tuple[Expr, Expr]:
    """Both sides; a text takes the type of the other one."""
    left, right = args
    if left.type.is_time and isinstance(right, Literal) and right.type == TEXT:
        right = coerce(right, left.type, nodes[1])
    if right.type.is_time and isinstance(left, Literal) and left.type == TEXT:
        left = coerce(left, right.type, nodes[0])
    return left, right


_PARTS_OF_A_DAY = ("hour", "minute", "second", "millisecond", "microsecond", "milliseconds", "microseconds")
"""Those that begin with UTC's, where a zone is whole hours ahead of it."""


def bind_date_trunc(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "unit")
    part, arg = _bind_part_name(node.args["unit"], TRUNCATIONS, "DATE_TRUNC"), bind(node.this)
    zone = session_zone()
    if arg.type != TIMESTAMPTZ or zone.is_utc or (part.value in _PARTS_OF_A_DAY and zone.has_whole_hours):
        return build_call("date_trunc", [part, arg], node)
    return coerce(build_call("date_trunc", [part, _by_clock(arg, node)], node), TIMESTAMPTZ, node)


# --- adding and subtracting ------------------------------------------------------------------------------------------


def bind_interval_arithmetic(node: exp.Expr, bind: BindChild) -> Expr:
    """date + interval, date - interval, interval + date."""
    refuse_other_args(node, "this", "expression")
    left, right = node.this, node.expression
    if is_interval(left):
        if isinstance(node, exp.Sub) or is_interval(right):
            raise Unsupported("an interval must be added to a date", span=span_of(node))
        left, right = right, left
    grain = _recognize_time_bucket(left, right, bind, node) if isinstance(node, exp.Add) else None
    if grain is not None:
        return grain
    days = _bind_day_count(right, bind)
    if days is not None:
        back = isinstance(node, exp.Sub)
        return _add_days(bind(left), Arithmetic("-", Literal(0, BIGINT), days, BIGINT) if back else days, node)
    return _add_interval(bind(left), read_interval(right), isinstance(node, exp.Sub), node)


_ENCLOSING_PERIODS = {"minute": ("hour", 60), "second": ("minute", 60), "hour": ("day", 24)}
"""What a part is counted within, and how many of it there are."""


def _recognize_time_bucket(period: exp.Expr, added: exp.Expr, bind: BindChild, node: exp.Expr) -> Expr | None:
    """DATE_TRUNC('hour', at) + INTERVAL '5 minutes' * FLOOR(EXTRACT(MINUTE FROM at) / 5), as charts write five minutes.

    The same is a bucket of five minutes, which has a list of values.
    """
    product = added.unnest()
    if not isinstance(product, exp.Mul) or not isinstance(period.unnest(), exp.TimestampTrunc | exp.DateTrunc):
        return None
    sides = (product.this, product.expression)
    factor, span = sides if is_interval(sides[1]) else (sides[1], sides[0])
    start, counted = bind(period), _read_divided_part(bind(factor))
    if counted is None or not isinstance(start, Call) or start.function != "date_trunc":
        return None
    part, timestamp, number = counted
    period_name, units_per_period = _ENCLOSING_PERIODS.get(part, ("", 1))
    width = IntervalParts(0, 0, number * FIXED_UNITS[part]) if period_name and units_per_period % number == 0 else None
    if width is None or start.args != (Literal(period_name, TEXT), timestamp) or read_interval(span) != width:
        return None
    numbers: list[Expr] = [Literal(0, INTEGER), Literal(0, INTEGER), Literal(width.microseconds, BIGINT)]
    bucket = build_call("time_bucket", [*numbers, timestamp], node)
    return bucket if bucket.type == start.type else Cast(bucket, start.type)


def _read_divided_part(number: Expr) -> tuple[str, Expr, int] | None:
    """The part of a moment that is divided by a whole number, rounded down."""
    if isinstance(number, Call) and number.function == "floor":
        number = number.args[0]
    if not isinstance(number, Arithmetic) or number.op not in ("/", "//") or not isinstance(number.right, Literal):
        return None
    part = number.left.arg if isinstance(number.left, Cast) else number.left
    divisor = number.right.value
    if (
        not isinstance(part, Call)
        or part.function != "extract"
        or not isinstance(divisor, int | Decimal)
        or divisor < 1
    ):
        return None
    name = part.args[0]
    whole = isinstance(name, Literal) and isinstance(name.value, str) and divisor == int(divisor)
    return (str(name.value), part.args[1], int(divisor)) if whole and isinstance(name, Literal) else None


def _bind_day_count(node: exp.Expr, bind: BindChild) -> Expr | None:
    """days * INTERVAL '1 day', where the number is no literal: whole days, which are added to a date."""
    product = node.unnest()
    if not isinstance(product, exp.Mul):
        return None
    sides = (product.this, product.expression)
    factor, span = sides if is_interval(sides[1]) else (sides[1], sides[0])
    if literal_integer(factor) is not None or isinstance(factor.unnest(), exp.Literal):
        return None
    number, interval = bind(factor), read_interval(span)
    if isinstance(number, Literal) and isinstance(number.value, int):
        return None
    if not number.type.is_integer or interval.months or interval.microseconds:
        raise Unsupported("a number of intervals is a whole number of days, added to a date",
                          hint="For example: day + nights * INTERVAL '1 day'. TIME_BUCKET(INTERVAL '7 minutes', at) is "
                          "the period that a moment is in.",
                          span=span_of(node))  # fmt: skip
    return number if interval.days == 1 else Arithmetic("*", number, Literal(interval.days, BIGINT), BIGINT)


def _add_days(arg: Expr, days: Expr, node: exp.Expr) -> Expr:
    if not arg.type.is_time:
        raise TypeMismatch(f"an interval is added to a date or timestamp, not to {arg.type}", span=span_of(node))
    sunday = _recognize_sunday_week(arg, days)
    if sunday is not None:
        return sunday
    if arg.type == TIMESTAMPTZ and not session_zone().is_utc:  # a day later the clock shows the same
        return coerce(build_call("add_days", [_by_clock(arg, node), days], node), TIMESTAMPTZ, node)
    moved = build_call("add_days", [arg, days], node)
    return coerce(moved, TIMESTAMP, node) if arg.type == DATE else moved


def _recognize_sunday_week(day: Expr, days: Expr) -> Expr | None:
    """A day less its number in the week is the Sunday before: the week of the next day, which has a list of values."""
    if not (isinstance(day, Call) and day.function == "date_trunc" and day.args[0] == Literal("day", TEXT)):
        return None
    number = days.right if isinstance(days, Arithmetic) and days.op == "-" and days.left == Literal(0, BIGINT) else None
    number = number.arg if isinstance(number, Cast) else number
    timestamp = day.args[1]
    if day.type != TIMESTAMP or number != Call("extract", (Literal("dow", TEXT), timestamp), BIGINT):
        return None
    return _shift_days(Call("date_trunc", (Literal("week", TEXT), _shift_days(timestamp, 1)), TIMESTAMP), -1)


def _shift_days(arg: Expr, days: int) -> Expr:
    return Call("add_interval", (arg, Literal(0, INTEGER), Literal(days, INTEGER), Literal(0, BIGINT)), TIMESTAMP)


def _add_interval(arg: Expr, interval: IntervalParts, back: bool, node: exp.Expr) -> Expr:
    if isinstance(arg, Literal) and arg.type == TEXT:
        arg = coerce(arg, TIMESTAMP, node)
    sign = -1 if back else 1
    parts = [Literal(sign * number, type_) for number, type_ in
             ((interval.months, INTEGER), (interval.days, INTEGER), (interval.microseconds, BIGINT))]  # fmt: skip
    if not arg.type.is_time:
        raise TypeMismatch(f"an interval is added to a date or timestamp, not to {arg.type}", span=span_of(node))
    if arg.type == TIMESTAMPTZ and not session_zone().is_utc and (interval.months or interval.days):
        # Months and days by the clock, and what is less than a day by what has passed, as PostgreSQL does.
        days_later = build_call("add_interval", [_by_clock(arg, node), *parts[:2], Literal(0, BIGINT)], node)
        arg, parts[:2] = coerce(days_later, TIMESTAMPTZ, node), [Literal(0, INTEGER), Literal(0, INTEGER)]
        if not interval.microseconds:
            return arg
    return build_call("add_interval", [arg, *parts], node)


def build_date_arithmetic(op: str, left: Expr, right: Expr, node: exp.Expr) -> Expr:
    """date + days, date - days, date - date; one of both is a date or timestamp."""
    if op == "+" and left.type.is_integer:
        left, right = right, left
    if left.type == right.type == DATE and op == "-":
        return build_call("date_diff", [Literal("day", TEXT), right, left], node)
    if left.type == DATE and right.type.is_integer and op in ("+", "-"):
        if isinstance(right, Literal) and isinstance(right.value, int):
            number = Literal(right.value if op == "+" else -right.value, BIGINT)
            return build_call("add_days", [left, number], node)
        days = right if op == "+" else Arithmetic("-", Literal(0, BIGINT), right, BIGINT)
        return build_call("add_days", [left, days], node)
    if op == "-" and left.type.is_time and right.type.is_time:
        return build_difference(left, right, node)
    hint = "Add an interval: at + INTERVAL '1 day'." if right.type.is_number else None
    raise TypeMismatch(f"{left.type} {op} {right.type} is not supported", hint=hint, span=span_of(node))


def bind_date_add(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "expression", "unit")
    unit, amount = node.args.get("unit"), node.expression
    span = exp.Interval(this=amount.copy(), unit=unit) if unit is not None and not is_interval(amount) else amount
    return _add_interval(bind(node.this), read_interval(span), isinstance(node, exp.DateSub), node)


def bind_sqlserver_dateadd(node: exp.Anonymous, bind: BindChild) -> Expr:
    """DATEADD(day, 7, at), as SQL Server and Redshift have it."""
    if len(node.expressions) != 3:
        raise Unsupported("DATEADD takes a unit, a number and a date", span=span_of(node))
    unit, amount, arg = node.expressions
    return _add_interval(
        bind(arg), read_interval(exp.Interval(this=amount.copy(), unit=exp.var(unit.name))), False, node
    )


def bind_date_diff(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "expression", "unit")
    unit = _bind_part_name(node.args.get("unit") or exp.var("day"), TRUNCATIONS, "DATE_DIFF")
    return build_call("date_diff", [unit, bind(node.expression), bind(node.this)], node)


def bind_date_sub(node: exp.Anonymous, bind: BindChild) -> Expr:
    if len(node.expressions) != 3:
        raise Unsupported("DATE_SUB takes a unit and two dates",
                          hint="For example: DATE_SUB('month', born, CURRENT_DATE).", span=span_of(node))  # fmt: skip
    unit, start, end = node.expressions
    return build_call("date_sub", [_bind_part_name(unit, TRUNCATIONS, "DATE_SUB"), bind(start), bind(end)], node)


def bind_time_bucket(node: exp.Anonymous, bind: BindChild) -> Expr:
    """TIME_BUCKET(INTERVAL '15 minutes', at), from a moment on where a third argument says so."""
    if not 2 <= len(node.expressions) <= 3:
        raise Unsupported("TIME_BUCKET takes an interval and a date", hint="For example: " + _BUCKET_EXAMPLE,
                          span=span_of(node))  # fmt: skip
    return _build_time_bucket(node.expressions[0], bind(node.expressions[1]), node.expressions[2:], bind, node)


def bind_date_bin(node: exp.Expr, bind: BindChild) -> Expr:
    """DATE_BIN('6 hours', at, origin), as PostgreSQL has it."""
    refuse_other_args(node, "this", "expression", "unit")
    origin = node.args.get("unit")
    if origin is None:
        raise Unsupported("DATE_BIN takes an interval, a timestamp and a timestamp to begin at",
                          hint="For example: DATE_BIN('6 hours', at, TIMESTAMP '2001-01-01').",
                          span=span_of(node))  # fmt: skip
    return _build_time_bucket(node.this, bind(node.expression), [origin], bind, node)


def _build_time_bucket(written: exp.Expr, arg: Expr, origins: list[exp.Expr], bind: BindChild, node: exp.Expr) -> Expr:
    if isinstance(written, exp.Literal) and written.is_string:
        written = exp.Interval(this=written.copy())
    width = read_interval(written)
    numbers: list[Expr] = [Literal(width.months, INTEGER), Literal(width.days, INTEGER),
                           Literal(width.microseconds, BIGINT)]  # fmt: skip
    start = build_call("time_bucket", [*numbers, arg, *(_to_timestamp(bind(o), o) for o in origins)], node)
    is_days = arg.type == DATE and not width.microseconds and not origins
    return Cast(start, DATE) if is_days else start  # buckets of days are days


def _to_timestamp(arg: Expr, node: exp.Expr) -> Expr:
    return coerce(arg, TIMESTAMP, node) if isinstance(arg, Literal) and (arg.type == TEXT or arg.type.is_time) else arg


# --- formats and zones -----------------------------------------------------------------------------------------------


def bind_to_char(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "format")
    arg, written = bind(node.this), node.meta.get(FORMAT_NOTE)
    if written is None:
        raise Unsupported("a format must be a literal", hint="For example: to_char(at, 'YYYY-MM').", span=span_of(node))
    if arg.type.is_number:
        raise Unsupported("TO_CHAR of a number is not supported", hint="CAST(x AS text) writes a number as text.",
                          span=span_of(node))  # fmt: skip
    return build_call("to_char", [arg, Literal(written, TEXT)], node)


def bind_to_date(node: exp.Expr, bind: BindChild) -> Expr:
    """A format of PostgreSQL's, read back as strptime does."""
    refuse_other_args(node, "this", "format")
    written = node.meta.get(FORMAT_NOTE)
    if written is None:
        raise Unsupported("a format must be a literal", hint="For example: to_date(note, 'YYYY-MM-DD').",
                          span=span_of(node))  # fmt: skip
    try:
        format_ = strptime_format(parse_to_char_format(written))
    except UnknownFormat as error:
        raise Unsupported(f'the format has an unknown part "{error}"', span=span_of(node)) from None
    if format_ is None:
        raise Unsupported("this format cannot be read back", hint="For example: to_date(note, 'YYYY-MM-DD').",
                          span=span_of(node))  # fmt: skip
    timestamp = build_call("strptime", [bind(node.this), Literal(format_, TEXT)], node)
    return coerce(timestamp, DATE if isinstance(node, exp.StrToDate) else TIMESTAMPTZ, node)


def bind_strftime(node: exp.Anonymous, bind: BindChild) -> Expr:
    args = [bind(part) for part in node.expressions]
    if len(args) == 2 and args[0].type == TEXT and args[1].type.is_time:  # SQLite's order
        args.reverse()
    return build_call("strftime", args, node)


def bind_at_time_zone(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "zone")
    return convert_time_zone(bind(node.this), node.args["zone"], node)


def convert_time_zone(arg: Expr, zone: exp.Expr, node: exp.Expr) -> Expr:
    """With a zone, the local time there; without one, the moment that a local time is. A day is its midnight by the
    clocks of the session's zone."""
    zone = unwrap_cast_literal(zone, exp.DType.VARCHAR, exp.DType.TEXT)
    minutes = _read_offset(zone)
    if minutes is None and not (isinstance(zone, exp.Literal) and zone.is_string):
        raise Unsupported("a time zone must be a literal", hint="For example: admitted AT TIME ZONE 'Europe/Berlin'.",
                          span=span_of(zone) or span_of(node))  # fmt: skip
    if isinstance(arg, Literal) and arg.type == TEXT:
        arg = coerce(arg, TIMESTAMPTZ, node)
    if not arg.type.is_time:
        raise TypeMismatch(f"AT TIME ZONE needs a timestamp, not {arg.type}", span=span_of(node))
    if arg.type == DATE:
        arg = coerce(arg, TIMESTAMPTZ, node)
    if minutes is None and zone.name.strip().lower() in UTC_NAMES:
        minutes = 0
    if minutes is not None:
        offset = dt.timedelta(minutes=minutes)
        if arg.type == TIMESTAMPTZ:
            return move_by_offset(_to_utc_time(arg), offset)
        return _from_utc_time(move_by_offset(arg, -offset))
    name = find_zone_name(zone.name)
    if name is None:
        raise _unknown_zone_error(zone)
    return build_call("timezone", [Literal(name, TEXT), arg], node)


def _from_utc_time(local: Expr) -> Expr:
    if isinstance(local, Literal) and isinstance(local.value, dt.date):
        return Literal(convert_time(local.value, TIMESTAMPTZ), TIMESTAMPTZ)
    return Cast(local, TIMESTAMPTZ)


def _read_offset(zone: exp.Expr) -> int | None:
    """Minutes ahead of UTC: of an interval, which counts to the east, or of POSIX's names, which count to the west."""
    if is_interval(zone):
        interval = read_interval(zone)
        minutes, rest = divmod(interval.microseconds, 60_000_000)
        outside = abs(minutes) >= 24 * 60 or rest or interval.months or interval.days
        return None if outside else minutes
    return read_fixed_zone(zone.name) if isinstance(zone, exp.Literal) and zone.is_string else None


def _unknown_zone_error(zone: exp.Expr) -> Unsupported:
    close = suggest_zones(zone.name)
    names = " or ".join(f"'{name}'" for name in close)
    hint = f"Perhaps you meant {names}." if close else "Zones have the names of IANA's list, such as 'Europe/Berlin'."
    return Unsupported(f'there is no time zone "{zone.name}"', hint=hint, span=span_of(zone))
