"""Functions of dates and times. What leaves the years 1 to 9999 is NULL: beyond them calendar functions raise.

Timestamps with a time zone are read in UTC.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from fractions import Fraction

from dpsql.base.intervals import MICROSECONDS_PER_DAY
from dpsql.compiler.functions.calendar import (
    DAY_NAMES,
    EXTRACTIONS,
    FIXED_UNITS,
    MONTH_NAMES,
    TIME_PARTS,
    TRUNCATIONS,
    YEARS_PER_PART,
    days_in_month,
    extract_part,
    list_periods,
    part_bounds,
    possible_parts,
    truncate_datetime,
    truncated_domain,
)
from dpsql.compiler.functions.date_formats import (
    FormatPiece,
    UnknownFormat,
    finest_unit,
    format_datetime,
    parse_strftime_format,
    parse_to_char_format,
    render_format,
    sample_cycle,
    strptime_format,
)
from dpsql.compiler.functions.function import (
    MAX_VALUES,
    Domains,
    NotEvaluable,
    ScalarFunction,
    Signature,
    SqlRenderer,
    Types,
    Value,
    has_nullable,
    literal_argument,
    replace_values,
    text_argument,
)
from dpsql.compiler.plan.expressions import Call
from dpsql.schema.model import EPOCH, Domain, Scalar, to_number
from dpsql.types import BIGINT, DATE, DOUBLE, MICROSECOND_INTERVAL, TEXT, TIMESTAMP, TIMESTAMPTZ, Kind, Type

MAX_FORMAT_LENGTH = 100
"""Characters of a format."""

MAX_PIECE_LENGTH = 10
"""Characters that one character of a format can print."""


def null_outside_calendar(sql: str, type_: Type) -> str:
    """NULL for what is outside of the years 1 to 9999."""
    if type_ == DATE:
        return f"CASE WHEN {sql} BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN {sql} END"
    zone, name = ("+00:00", "TIMESTAMPTZ") if type_ == TIMESTAMPTZ else ("", "TIMESTAMP")
    first = f"CAST('0001-01-01T00:00:00{zone}' AS {name})"
    last = f"CAST('9999-12-31T23:59:59.999999{zone}' AS {name})"
    return f"CASE WHEN {sql} BETWEEN {first} AND {last} THEN {sql} END"


def without_zone(type_: Type) -> Type:
    """How a function reads dates and timestamps; with a zone, as the same moment in UTC."""
    return DATE if type_ == DATE else TIMESTAMP


def _time_signature(result: Type) -> Callable[[Types], Signature | None]:
    return lambda types: Signature((without_zone(types[0]),), result) if types[0].is_time else None


def _to_datetime(value: Value) -> dt.datetime:
    """A date or timestamp as a moment."""
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return value
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)
    raise NotEvaluable


# --- parts -----------------------------------------------------------------------------------------------------------


def _extract_signature(types: Types) -> Signature | None:
    return Signature(types, BIGINT) if types[1].is_time or types[1].kind is Kind.TIME else None


def _check_extract_part(call: Call) -> str | None:
    parts = TIME_PARTS if call.args[1].type.kind is Kind.TIME else EXTRACTIONS
    return None if text_argument(call, 0) in parts else f'a {call.args[1].type} has no part "{text_argument(call, 0)}"'


def _extract_domain(call: Call, args: Domains) -> Domain:
    lower, upper = part_bounds(text_argument(call, 0), args[1])
    domain = Domain(BIGINT, has_nullable(args), lower, upper)
    values = possible_parts(text_argument(call, 0), args[1])
    return domain if values is None else replace_values(domain, (*values, *((None,) if domain.nullable else ())))


def _render_extract(call: Call, args: list[str]) -> str:
    return f"CAST(date_part({args[0]}, {args[1]}) AS BIGINT)"


def _evaluate_extract(call: Call, values: list[Value]) -> Value:
    return None if values[1] is None else extract_part(text_argument(call, 0), _to_datetime(values[1]))


def _epoch_signature(types: Types) -> Signature | None:
    if types[0].kind is Kind.TIME:
        return Signature(types, DOUBLE)
    return Signature((without_zone(types[0]),), DOUBLE) if types[0].is_time else None


def _epoch_domain(call: Call, args: Domains) -> Domain:
    if args[0].type.kind is Kind.TIME:
        return Domain(DOUBLE, args[0].nullable, Fraction(0), Fraction(86_400))
    return Domain(DOUBLE, args[0].nullable, *part_bounds("epoch", args[0]))


def _render_epoch(call: Call, args: list[str]) -> str:
    return f"CAST(date_part('epoch', {args[0]}) AS DOUBLE)"


def _evaluate_epoch(call: Call, values: list[Value]) -> Value:
    if values[0] is None:
        return None
    microseconds = int(to_number(_to_datetime(values[0])))
    if abs(microseconds) > 1 << 53:  # such numbers are no doubles themselves
        raise NotEvaluable
    return microseconds / 1_000_000


def _kind_signature(kind: Kind) -> Callable[[Types], Signature | None]:
    return lambda types: Signature(types, BIGINT) if types[0].kind is kind else None


def _timestamp_signature(types: Types) -> Signature | None:
    return Signature(types, BIGINT) if types[0].kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ) else None


def _epoch_number_domain(call: Call, args: Domains) -> Domain:
    """Bounds of dates are days, and of moments microseconds, since 1970 already."""
    return Domain(BIGINT, args[0].nullable, args[0].lower, args[0].upper)


def _render_epoch_days(call: Call, args: list[str]) -> str:
    return f"CAST(date_diff('day', CAST('1970-01-01' AS DATE), {args[0]}) AS BIGINT)"


def _names_domain(part: str, names: tuple[str, ...]) -> Callable[[Call, Domains], Domain]:
    """The names of those months, or days of the week from Monday on, that there are between the bounds."""

    def derive(call: Call, args: Domains) -> Domain:
        numbers = possible_parts(part, args[0])
        values = names if numbers is None else tuple(names[number - 1] for number in numbers)
        return Domain(TEXT, args[0].nullable, values=values, length=max(map(len, names)))

    return derive


def _render_call(call: Call, args: list[str]) -> str:
    return f"{call.function}({args[0]})"


def _evaluate_name(call: Call, values: list[Value]) -> Value:
    if values[0] is None:
        return None
    at = _to_datetime(values[0])
    return DAY_NAMES[at.weekday()] if call.function == "dayname" else MONTH_NAMES[at.month - 1]


# --- periods ---------------------------------------------------------------------------------------------------------


def _trunc_signature(types: Types) -> Signature | None:
    if not types[1].is_time:
        return None
    return Signature(types, types[1] if types[1] == TIMESTAMPTZ else TIMESTAMP)


def _check_period(call: Call) -> str | None:
    return None if text_argument(call, 0) in TRUNCATIONS else f'there is no period "{text_argument(call, 0)}"'


def _trunc_domain(call: Call, args: Domains) -> Domain:
    return truncated_domain(text_argument(call, 0), args[1], call.type, MAX_VALUES)


def _render_trunc(call: Call, args: list[str]) -> str:
    part, arg = text_argument(call, 0), args[1]
    if part in ("century", "millennium"):  # PostgreSQL's begin with the year 1, 101, 1001
        since = f"CAST((date_part('year', {arg}) - 1) % {YEARS_PER_PART[part]} AS INTEGER)"
        sql = f"date_trunc('year', {arg}) - to_years({since})"
    elif part == "decade":
        sql = f"CASE WHEN date_part('year', {arg}) >= 10 THEN date_trunc('decade', {arg}) END"
    else:
        sql = f"date_trunc({args[0]}, {arg})"
    return f"CAST({sql} AS TIMESTAMP)" if call.type == TIMESTAMP else sql


def _evaluate_trunc(call: Call, values: list[Value]) -> Value:
    if values[1] is None:
        return None
    at = _to_datetime(values[1])
    if at.year < 10:
        raise NotEvaluable
    return truncate_datetime(text_argument(call, 0), at)


def _last_day_domain(call: Call, args: Domains) -> Domain:
    last = truncated_domain("month", args[0], DATE, MAX_VALUES)
    if last.values is None:
        return Domain(DATE, args[0].nullable)
    month_ends = tuple(_month_end(value) for value in last.values)
    return replace_values(last, (*month_ends, *((None,) if last.nullable else ())))


def _month_end(value: Scalar) -> dt.date:
    assert isinstance(value, dt.date)
    return dt.date(value.year, value.month, days_in_month(value.year, value.month))


# --- formats ---------------------------------------------------------------------------------------------------------


def _format_signature(types: Types) -> Signature | None:
    return Signature((without_zone(types[0]), TEXT), TEXT) if types[0].is_time and types[1] == TEXT else None


def format_pieces(call: Call) -> tuple[FormatPiece, ...]:
    read = parse_to_char_format if call.function == "to_char" else parse_strftime_format
    return read(text_argument(call, 1))


def _check_format(call: Call) -> str | None:
    if not isinstance(literal_argument(call, 1), str) or len(text_argument(call, 1)) > MAX_FORMAT_LENGTH:
        return f"a format is a literal of at most {MAX_FORMAT_LENGTH} characters"
    try:
        pieces = format_pieces(call)
    except UnknownFormat as error:
        return f'the format has an unknown part "{error}"'
    if call.function == "strptime" and strptime_format(pieces) is None:
        return "this format cannot be read back"
    return None


def _format_domain(call: Call, args: Domains) -> Domain:
    pieces = format_pieces(call)
    timestamps = sample_cycle(pieces)
    starts = list_periods(finest_unit(pieces), args[0], MAX_VALUES)
    timestamps = starts if starts is not None else timestamps
    length = MAX_PIECE_LENGTH * len(text_argument(call, 1))
    if timestamps is None:
        return Domain(TEXT, args[0].nullable, length=length)
    values: tuple[Scalar, ...] = tuple(dict.fromkeys(format_datetime(pieces, at) for at in timestamps))
    return Domain(TEXT, args[0].nullable, values=values, length=length)


def _render_format(call: Call, args: list[str]) -> str:
    return render_format(format_pieces(call), args[0])


def _evaluate_format(call: Call, values: list[Value]) -> Value:
    return None if values[0] is None else format_datetime(format_pieces(call), _to_datetime(values[0]))


def _strptime_signature(types: Types) -> Signature | None:
    return Signature((TEXT, TEXT), TIMESTAMP) if types == (TEXT, TEXT) else None


def _strptime_domain(call: Call, args: Domains) -> Domain:
    return Domain(TIMESTAMP, True)


def _render_strptime(call: Call, args: list[str]) -> str:
    return null_outside_calendar(f"try_strptime({args[0]}, {args[1]})", TIMESTAMP)


_DIGITS = {"%Y": r"(?P<year>\d{4})", "%m": r"(?P<month>\d\d)", "%d": r"(?P<day>\d\d)", "%H": r"(?P<hour>\d\d)",
           "%M": r"(?P<minute>\d\d)", "%S": r"(?P<second>\d\d)", "%f": r"(?P<microsecond>\d{6})"}  # fmt: skip


def _evaluate_strptime(call: Call, values: list[Value]) -> Value:
    """Numbers with all their digits, as tools write them; other spellings are the engine's to read."""
    if values[0] is None:
        return None
    parts = re.findall(r"%.|[-/.:, T]", text_argument(call, 1))
    is_supported = "".join(parts) == text_argument(call, 1) and len(set(parts) & {"%Y", "%m", "%d"}) == 3
    repeated = any(parts.count(part) > 1 for part in _DIGITS)
    if not is_supported or repeated or not all(part in _DIGITS or part[0] != "%" for part in parts):
        raise NotEvaluable
    matched = re.fullmatch("".join(_DIGITS.get(part, re.escape(part)) for part in parts), str(values[0]), re.ASCII)
    try:
        if matched is not None:
            number = {name: int(digits) for name, digits in matched.groupdict().items()}
            time = dt.timedelta(hours=number.get("hour", 0), minutes=number.get("minute", 0),
                                seconds=number.get("second", 0), microseconds=number.get("microsecond", 0))  # fmt: skip
            if time < dt.timedelta(days=1) and max(number.get("minute", 0), number.get("second", 0)) < 60:
                return dt.datetime(number["year"], number["month"], number["day"]) + time
    except ValueError:
        pass
    raise NotEvaluable


# --- from numbers ----------------------------------------------------------------------------------------------------


def _make_date_signature(types: Types) -> Signature | None:
    return Signature((BIGINT,) * 3, DATE) if all(type_.is_integer for type_ in types) else None


def _make_date_domain(call: Call, args: Domains) -> Domain:
    return Domain(DATE, True)


def _evaluate_make_date(call: Call, values: list[Value]) -> Value:
    try:
        return None if None in values else dt.date(*values)  # type: ignore[arg-type]
    except (ValueError, OverflowError):  # such as 30 February
        return None


def _render_make_date(call: Call, args: list[str]) -> str:
    """Through text, whose cast is total; a year has four digits there, or it would be read as another."""
    year, month, day = args
    padded = f"lpad(CAST({year} AS VARCHAR), 4, '0')"
    sql = f"TRY_CAST({padded} || '-' || CAST({month} AS VARCHAR) || '-' || CAST({day} AS VARCHAR) AS DATE)"
    within = f"{year} BETWEEN 1 AND 9999 AND {month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND 31"
    return f"CASE WHEN {within} THEN {sql} END"


def _from_epoch_signature(types: Types) -> Signature | None:
    return Signature((DOUBLE,), TIMESTAMPTZ) if types[0].is_number else None


def _from_epoch_domain(call: Call, args: Domains) -> Domain:
    return Domain(TIMESTAMPTZ, True)


def _render_from_epoch(call: Call, args: list[str]) -> str:
    first, last = "CAST('-62135596800' AS DOUBLE)", "CAST('253402300799' AS DOUBLE)"
    within = f"CASE WHEN {args[0]} BETWEEN {first} AND {last} THEN {args[0]} END"
    return f"CAST(make_timestamp(TRY_CAST({within} * CAST('1000000.0' AS DOUBLE) AS BIGINT)) AS TIMESTAMPTZ)"


MAX_EPOCH = 4_000_000_000
"""Seconds whose microseconds, and the steps to them, are exact in doubles."""


def _evaluate_from_epoch(call: Call, values: list[Value]) -> Value:
    if values[0] is None:
        return None
    if not isinstance(values[0], float) or not values[0].is_integer() or abs(values[0]) > MAX_EPOCH:
        raise NotEvaluable
    return (EPOCH + dt.timedelta(seconds=int(values[0]))).replace(tzinfo=dt.UTC)


def _format_function(name: str, example: str) -> ScalarFunction:
    return ScalarFunction(
        name,
        example,
        _format_signature,
        _format_domain,
        _render_format,
        2,
        2,
        frozenset({1}),
        _check_format,
        _evaluate_format,
    )


_RENDER_FIRST: SqlRenderer = _render_call

DATE_FUNCTIONS = (
    ScalarFunction(
        "extract",
        "extract(year FROM at)",
        _extract_signature,
        _extract_domain,
        _render_extract,
        2,
        2,
        frozenset({0}),
        _check_extract_part,
        _evaluate_extract,
    ),
    ScalarFunction(
        "epoch", "extract(epoch FROM at)", _epoch_signature, _epoch_domain, _render_epoch, evaluate=_evaluate_epoch
    ),
    ScalarFunction(
        "dayname",
        "dayname(at)",
        _time_signature(TEXT),
        _names_domain("isodow", DAY_NAMES),
        _RENDER_FIRST,
        evaluate=_evaluate_name,
    ),
    ScalarFunction(
        "monthname",
        "monthname(at)",
        _time_signature(TEXT),
        _names_domain("month", MONTH_NAMES),
        _RENDER_FIRST,
        evaluate=_evaluate_name,
    ),
    ScalarFunction(
        "date_trunc",
        "date_trunc('month', at)",
        _trunc_signature,
        _trunc_domain,
        _render_trunc,
        2,
        2,
        frozenset({0}),
        _check_period,
        _evaluate_trunc,
    ),
    ScalarFunction(
        "last_day",
        "last_day(at)",
        _time_signature(DATE),
        _last_day_domain,
        _RENDER_FIRST,
        evaluate=lambda call, values: None if values[0] is None else _month_end(_to_datetime(values[0]).date()),
    ),
    ScalarFunction(
        "epoch_days", "", _kind_signature(Kind.DATE), _epoch_number_domain, _render_epoch_days, written=False
    ),
    ScalarFunction("epoch_us", "", _timestamp_signature, _epoch_number_domain, _RENDER_FIRST, written=False),
    _format_function("to_char", "to_char(at, 'YYYY-MM')"),
    _format_function("strftime", "strftime(at, '%Y-%m')"),
    ScalarFunction(
        "strptime",
        "strptime(note, '%Y-%m-%d')",
        _strptime_signature,
        _strptime_domain,
        _render_strptime,
        2,
        2,
        frozenset({1}),
        _check_format,
        _evaluate_strptime,
    ),
    ScalarFunction(
        "make_date",
        "make_date(nights, 1, 31)",
        _make_date_signature,
        _make_date_domain,
        _render_make_date,
        3,
        3,
        evaluate=_evaluate_make_date,
    ),
    ScalarFunction(
        "to_timestamp",
        "to_timestamp(score)",
        _from_epoch_signature,
        _from_epoch_domain,
        _render_from_epoch,
        evaluate=_evaluate_from_epoch,
        doubles=True,
    ),
)

# --- differences of timestamps ---------------------------------------------------------------------------------------
# They are intervals: whole microseconds, in which a comparison of intervals is exact.
#
# PostgreSQL compares intervals as days of 24 hours and months of 30 days, so their order is that of these numbers.

MONTH_MICROSECONDS = 30 * MICROSECONDS_PER_DAY

DIFFERENCE_PARTS = ("day", "hour", "minute", "second")
_PARTS_PER_UNIT = {"hour": 24, "minute": 60, "second": 60}


def _difference_signature(types: Types) -> Signature | None:
    if not all(type_.is_time for type_ in types) or all(type_ == DATE for type_ in types):
        return None
    return Signature((TIMESTAMP, TIMESTAMP), MICROSECOND_INTERVAL)


def _difference_domain(call: Call, args: Domains) -> Domain:
    end, start = args
    if not (end.is_bounded and start.is_bounded):
        return Domain(MICROSECOND_INTERVAL, has_nullable(args))
    return Domain(
        MICROSECOND_INTERVAL, has_nullable(args), end.bounds[0] - start.bounds[1], end.bounds[1] - start.bounds[0]
    )


def _render_difference(call: Call, args: list[str]) -> str:
    return f"date_diff('microsecond', {args[1]}, {args[0]})"


# --- ages ------------------------------------------------------------------------------------------------------------


def _age_signature(types: Types) -> Signature | None:
    return Signature((TIMESTAMP, TIMESTAMP), MICROSECOND_INTERVAL) if all(type_.is_time for type_ in types) else None


def _age_domain(call: Call, args: Domains) -> Domain:
    return Domain(MICROSECOND_INTERVAL, has_nullable(args))


def _render_age(call: Call, args: list[str]) -> str:
    """Part by part: the engine's own sum of them takes a year for 365.25 days."""
    age = f"age({args[0]}, {args[1]})"
    sizes = (
        ("year", 12 * MONTH_MICROSECONDS),
        ("month", MONTH_MICROSECONDS),
        ("day", MICROSECONDS_PER_DAY),
        ("hour", FIXED_UNITS["hour"]),
        ("minute", FIXED_UNITS["minute"]),
        ("microsecond", 1),
    )
    return "(" + " + ".join(f"CAST(date_part('{part}', {age}) AS BIGINT) * {size}" for part, size in sizes) + ")"


# --- parts -----------------------------------------------------------------------------------------------------------


def _span_seconds_signature(types: Types) -> Signature | None:
    return Signature(types, DOUBLE) if types[0].is_microsecond_interval else None


def _span_seconds_domain(call: Call, args: Domains) -> Domain:
    if not args[0].is_bounded:
        return Domain(DOUBLE, args[0].nullable)
    lower, upper = args[0].bounds
    return Domain(DOUBLE, args[0].nullable, lower / 1_000_000, upper / 1_000_000)


def _render_span_seconds(call: Call, args: list[str]) -> str:
    return f"(CAST({args[0]} AS DOUBLE) / CAST('1000000.0' AS DOUBLE))"


def _span_part_signature(types: Types) -> Signature | None:
    return Signature(types, BIGINT) if types[1].is_microsecond_interval else None


def _check_span_part(call: Call) -> str | None:
    return (
        None if text_argument(call, 0) in DIFFERENCE_PARTS else f'"{text_argument(call, 0)}" is no part of a difference'
    )


def _render_span_part(call: Call, args: list[str]) -> str:
    """Toward zero, so that all parts have the sign of the difference."""
    part = text_argument(call, 0)
    units = f"({args[1]} // CAST({FIXED_UNITS[part]} AS BIGINT))"
    return f"({units} % CAST({_PARTS_PER_UNIT[part]} AS BIGINT))" if part in _PARTS_PER_UNIT else units


def _span_part_domain(call: Call, args: Domains) -> Domain:
    part, span = text_argument(call, 0), args[1]
    lower, upper = (None if b is None else Fraction(int(b / FIXED_UNITS[part])) for b in (span.lower, span.upper))
    if part in _PARTS_PER_UNIT:
        largest = Fraction(_PARTS_PER_UNIT[part] - 1)
        lower = -largest if lower is None else max(min(lower, Fraction(0)), -largest)
        upper = largest if upper is None else min(max(upper, Fraction(0)), largest)
    return Domain(BIGINT, span.nullable, lower, upper)


DIFFERENCE_FUNCTIONS = (
    ScalarFunction(
        "difference", "now() - at", _difference_signature, _difference_domain, _render_difference, 2, 2, written=False
    ),
    ScalarFunction(
        "age_span",
        "age(CURRENT_DATE, at) > INTERVAL '1 year'",
        _age_signature,
        _age_domain,
        _render_age,
        2,
        2,
        written=False,
    ),
    ScalarFunction(
        "span_seconds", "", _span_seconds_signature, _span_seconds_domain, _render_span_seconds, written=False
    ),
    ScalarFunction(
        "span_part",
        "extract(hour FROM (now() - at))",
        _span_part_signature,
        _span_part_domain,
        _render_span_part,
        2,
        2,
        frozenset({0}),
        _check_span_part,
        written=False,
    ),
)
