"""Functions of dates and times. What leaves the years 1 to 9999 is NULL: beyond them calendar functions raise.

Timestamps with a time zone are read in UTC.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from fractions import Fraction

from dpsql.functions.calendar import (
    DAYS,
    EXTRACTIONS,
    MONTH_NAMES,
    TIMES_OF_DAY,
    TRUNCATIONS,
    YEARS,
    days_in,
    extract,
    extract_bounds,
    periods,
    truncate,
    truncated_values,
)
from dpsql.functions.formats import (
    Piece,
    UnknownFormat,
    cycle,
    directives,
    finest,
    postgres_pieces,
    printed,
    printed_form,
    strftime_pieces,
)
from dpsql.functions.record import Domains, Fit, Form, Function, NotWorkedOut, Types, Value, literal_of, text_of
from dpsql.functions.rules import MOST_VALUES, nullable, replace_values
from dpsql.plan.expr import Call
from dpsql.schema.domain import EPOCH, Domain, Scalar, to_number
from dpsql.types import BIGINT, DATE, DOUBLE, TEXT, TIMESTAMP, TIMESTAMPTZ, Kind, Type

MOST_FORMAT = 100
"""Characters of a format."""

LONGEST_PIECE = 10
"""Characters that one character of a format can print."""


def in_calendar(sql: str, type_: Type) -> str:
    """NULL for what is outside of the years 1 to 9999."""
    if type_ == DATE:
        return f"CASE WHEN {sql} BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN {sql} END"
    zone, name = ("+00:00", "TIMESTAMPTZ") if type_ == TIMESTAMPTZ else ("", "TIMESTAMP")
    first = f"CAST('0001-01-01T00:00:00{zone}' AS {name})"
    last = f"CAST('9999-12-31T23:59:59.999999{zone}' AS {name})"
    return f"CASE WHEN {sql} BETWEEN {first} AND {last} THEN {sql} END"


def plain(type_: Type) -> Type:
    """How a function reads dates and timestamps; with a zone, as the same moment in UTC."""
    return DATE if type_ == DATE else TIMESTAMP


def _one_time(result: Type) -> Callable[[Types], Fit | None]:
    return lambda types: Fit((plain(types[0]),), result) if types[0].is_time else None


def _at(value: Value) -> dt.datetime:
    """A date or timestamp as a moment."""
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return value
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)
    raise NotWorkedOut


# --- parts -----------------------------------------------------------------------------------------------------------


def _part_fit(types: Types) -> Fit | None:
    return Fit(types, BIGINT) if types[1].is_time or types[1].kind is Kind.TIME else None


def _check_part(call: Call) -> str | None:
    known = TIMES_OF_DAY if call.args[1].type.kind is Kind.TIME else EXTRACTIONS
    return None if text_of(call, 0) in known else f'a {call.args[1].type} has no part "{text_of(call, 0)}"'


def _part_domain(call: Call, args: Domains) -> Domain:
    lower, upper = extract_bounds(text_of(call, 0), args[1])
    return Domain(BIGINT, nullable(args), lower, upper)


def _part_form(call: Call, args: list[str]) -> str:
    return f"CAST(date_part({args[0]}, {args[1]}) AS BIGINT)"


def _evaluate_part(call: Call, values: list[Value]) -> Value:
    return None if values[1] is None else extract(text_of(call, 0), _at(values[1]))


def _epoch_fit(types: Types) -> Fit | None:
    if types[0].kind is Kind.TIME:
        return Fit(types, DOUBLE)
    return Fit((plain(types[0]),), DOUBLE) if types[0].is_time else None


def _epoch_domain(call: Call, args: Domains) -> Domain:
    if args[0].type.kind is Kind.TIME:
        return Domain(DOUBLE, args[0].nullable, Fraction(0), Fraction(86_400))
    return Domain(DOUBLE, args[0].nullable, *extract_bounds("epoch", args[0]))


def _epoch_form(call: Call, args: list[str]) -> str:
    return f"CAST(date_part('epoch', {args[0]}) AS DOUBLE)"


def _evaluate_epoch(call: Call, values: list[Value]) -> Value:
    if values[0] is None:
        return None
    microseconds = int(to_number(_at(values[0])))
    if abs(microseconds) > 1 << 53:  # such numbers are no doubles themselves
        raise NotWorkedOut
    return microseconds / 1_000_000


def _whole_time(kind: Kind) -> Callable[[Types], Fit | None]:
    return lambda types: Fit(types, BIGINT) if types[0].kind is kind else None


def _moment_fit(types: Types) -> Fit | None:
    return Fit(types, BIGINT) if types[0].kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ) else None


def _same_number(call: Call, args: Domains) -> Domain:
    """Bounds of dates are days, and of moments microseconds, since 1970 already."""
    return Domain(BIGINT, args[0].nullable, args[0].lower, args[0].upper)


def _days_form(call: Call, args: list[str]) -> str:
    return f"CAST(date_diff('day', CAST('1970-01-01' AS DATE), {args[0]}) AS BIGINT)"


def _named_domain(names: tuple[str, ...]) -> Callable[[Call, Domains], Domain]:
    return lambda call, args: Domain(TEXT, args[0].nullable, values=names, length=max(map(len, names)))


def _name_form(call: Call, args: list[str]) -> str:
    return f"{call.function}({args[0]})"


def _evaluate_name(call: Call, values: list[Value]) -> Value:
    if values[0] is None:
        return None
    at = _at(values[0])
    return DAYS[at.weekday()] if call.function == "dayname" else MONTH_NAMES[at.month - 1]


# --- periods ---------------------------------------------------------------------------------------------------------


def _trunc_fit(types: Types) -> Fit | None:
    if not types[1].is_time:
        return None
    return Fit(types, types[1] if types[1] == TIMESTAMPTZ else TIMESTAMP)


def _check_period(call: Call) -> str | None:
    return None if text_of(call, 0) in TRUNCATIONS else f'there is no period "{text_of(call, 0)}"'


def _trunc_domain(call: Call, args: Domains) -> Domain:
    return truncated_values(text_of(call, 0), args[1], call.type, MOST_VALUES)


def _trunc_form(call: Call, args: list[str]) -> str:
    part, arg = text_of(call, 0), args[1]
    if part in ("century", "millennium"):  # PostgreSQL's begin with the year 1, 101, 1001
        since = f"CAST((date_part('year', {arg}) - 1) % {YEARS[part]} AS INTEGER)"
        sql = f"date_trunc('year', {arg}) - to_years({since})"
    elif part == "decade":
        sql = f"CASE WHEN date_part('year', {arg}) >= 10 THEN date_trunc('decade', {arg}) END"
    else:
        sql = f"date_trunc({args[0]}, {arg})"
    return f"CAST({sql} AS TIMESTAMP)" if call.type == TIMESTAMP else sql


def _evaluate_trunc(call: Call, values: list[Value]) -> Value:
    if values[1] is None:
        return None
    at = _at(values[1])
    if at.year < 10:
        raise NotWorkedOut
    return truncate(text_of(call, 0), at)


def _last_day(call: Call, args: Domains) -> Domain:
    last = truncated_values("month", args[0], DATE, MOST_VALUES)
    if last.values is None:
        return Domain(DATE, args[0].nullable)
    found = tuple(_month_end(value) for value in last.values)
    return replace_values(last, (*found, *((None,) if last.nullable else ())))


def _month_end(value: Scalar) -> dt.date:
    assert isinstance(value, dt.date)
    return dt.date(value.year, value.month, days_in(value.year, value.month))


# --- formats ---------------------------------------------------------------------------------------------------------


def _format_fit(types: Types) -> Fit | None:
    return Fit((plain(types[0]), TEXT), TEXT) if types[0].is_time and types[1] == TEXT else None


def format_pieces(call: Call) -> tuple[Piece, ...]:
    read = postgres_pieces if call.function == "to_char" else strftime_pieces
    return read(text_of(call, 1))


def _check_format(call: Call) -> str | None:
    if not isinstance(literal_of(call, 1), str) or len(text_of(call, 1)) > MOST_FORMAT:
        return f"a format is a literal of at most {MOST_FORMAT} characters"
    try:
        pieces = format_pieces(call)
    except UnknownFormat as error:
        return f'the format has an unknown part "{error}"'
    if call.function == "strptime" and directives(pieces) is None:
        return "this format cannot be read back"
    return None


def _format_domain(call: Call, args: Domains) -> Domain:
    pieces = format_pieces(call)
    moments = cycle(pieces)
    found = periods(finest(pieces), args[0], MOST_VALUES)
    moments = found if found is not None else moments
    length = LONGEST_PIECE * len(text_of(call, 1))
    if moments is None:
        return Domain(TEXT, args[0].nullable, length=length)
    values: tuple[Scalar, ...] = tuple(dict.fromkeys(printed(pieces, at) for at in moments))
    return Domain(TEXT, args[0].nullable, values=values, length=length)


def _format_form(call: Call, args: list[str]) -> str:
    return printed_form(format_pieces(call), args[0])


def _evaluate_format(call: Call, values: list[Value]) -> Value:
    return None if values[0] is None else printed(format_pieces(call), _at(values[0]))


def _read_fit(types: Types) -> Fit | None:
    return Fit((TEXT, TEXT), TIMESTAMP) if types == (TEXT, TEXT) else None


def _read_domain(call: Call, args: Domains) -> Domain:
    return Domain(TIMESTAMP, True)


def _read_form(call: Call, args: list[str]) -> str:
    return in_calendar(f"try_strptime({args[0]}, {args[1]})", TIMESTAMP)


_DIGITS = {"%Y": r"(?P<year>\d{4})", "%m": r"(?P<month>\d\d)", "%d": r"(?P<day>\d\d)", "%H": r"(?P<hour>\d\d)",
           "%M": r"(?P<minute>\d\d)", "%S": r"(?P<second>\d\d)", "%f": r"(?P<microsecond>\d{6})"}  # fmt: skip


def _evaluate_read(call: Call, values: list[Value]) -> Value:
    """Numbers with all their digits, as tools write them; other spellings are the engine's to read."""
    if values[0] is None:
        return None
    parts = re.findall(r"%.|[-/.:, T]", text_of(call, 1))
    known = "".join(parts) == text_of(call, 1) and len(set(parts) & {"%Y", "%m", "%d"}) == 3
    repeated = any(parts.count(part) > 1 for part in _DIGITS)
    if not known or repeated or not all(part in _DIGITS or part[0] != "%" for part in parts):
        raise NotWorkedOut
    found = re.fullmatch("".join(_DIGITS.get(part, re.escape(part)) for part in parts), str(values[0]), re.ASCII)
    try:
        if found is not None:
            number = {name: int(digits) for name, digits in found.groupdict().items()}
            time = dt.timedelta(hours=number.get("hour", 0), minutes=number.get("minute", 0),
                                seconds=number.get("second", 0), microseconds=number.get("microsecond", 0))  # fmt: skip
            if time < dt.timedelta(days=1) and max(number.get("minute", 0), number.get("second", 0)) < 60:
                return dt.datetime(number["year"], number["month"], number["day"]) + time
    except ValueError:
        pass
    raise NotWorkedOut


# --- from numbers ----------------------------------------------------------------------------------------------------


def _wholes(types: Types) -> Fit | None:
    return Fit((BIGINT,) * 3, DATE) if all(type_.is_integer for type_ in types) else None


def _date_domain(call: Call, args: Domains) -> Domain:
    return Domain(DATE, True)


def _evaluate_date(call: Call, values: list[Value]) -> Value:
    try:
        return None if None in values else dt.date(*values)  # type: ignore[arg-type]
    except (ValueError, OverflowError):  # such as 30 February
        return None


def _date_form(call: Call, args: list[str]) -> str:
    """Through text, whose cast is total; a year has four digits there, or it would be read as another."""
    year, month, day = args
    padded = f"lpad(CAST({year} AS VARCHAR), 4, '0')"
    sql = f"TRY_CAST({padded} || '-' || CAST({month} AS VARCHAR) || '-' || CAST({day} AS VARCHAR) AS DATE)"
    within = f"{year} BETWEEN 1 AND 9999 AND {month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND 31"
    return f"CASE WHEN {within} THEN {sql} END"


def _from_epoch_fit(types: Types) -> Fit | None:
    return Fit((DOUBLE,), TIMESTAMPTZ) if types[0].is_number else None


def _from_epoch_domain(call: Call, args: Domains) -> Domain:
    return Domain(TIMESTAMPTZ, True)


def _from_epoch_form(call: Call, args: list[str]) -> str:
    first, last = "CAST('-62135596800' AS DOUBLE)", "CAST('253402300799' AS DOUBLE)"
    within = f"CASE WHEN {args[0]} BETWEEN {first} AND {last} THEN {args[0]} END"
    return f"CAST(make_timestamp(TRY_CAST({within} * CAST('1000000.0' AS DOUBLE) AS BIGINT)) AS TIMESTAMPTZ)"


MOST_EPOCH = 4_000_000_000
"""Seconds whose microseconds, and the steps to them, are exact in doubles."""


def _evaluate_from_epoch(call: Call, values: list[Value]) -> Value:
    if values[0] is None:
        return None
    if not isinstance(values[0], float) or not values[0].is_integer() or abs(values[0]) > MOST_EPOCH:
        raise NotWorkedOut
    return (EPOCH + dt.timedelta(seconds=int(values[0]))).replace(tzinfo=dt.UTC)


def _formatted(name: str, example: str) -> Function:
    return Function(name, example, _format_fit, _format_domain, _format_form, 2, 2, frozenset({1}), _check_format,
                    _evaluate_format)  # fmt: skip


_FIRST: Form = _name_form

DATES = (
    Function("extract", "extract(year FROM at)", _part_fit, _part_domain, _part_form, 2, 2, frozenset({0}),
             _check_part, _evaluate_part),
    Function("epoch", "extract(epoch FROM at)", _epoch_fit, _epoch_domain, _epoch_form,
             evaluate=_evaluate_epoch),
    Function("dayname", "dayname(at)", _one_time(TEXT), _named_domain(DAYS), _FIRST, evaluate=_evaluate_name),
    Function("monthname", "monthname(at)", _one_time(TEXT), _named_domain(MONTH_NAMES), _FIRST,
             evaluate=_evaluate_name),
    Function("date_trunc", "date_trunc('month', at)", _trunc_fit, _trunc_domain, _trunc_form, 2, 2, frozenset({0}),
             _check_period, _evaluate_trunc),
    Function("last_day", "last_day(at)", _one_time(DATE), _last_day, _FIRST,
             evaluate=lambda call, values: None if values[0] is None else _month_end(_at(values[0]).date())),
    Function("epoch_days", "", _whole_time(Kind.DATE), _same_number, _days_form, written=False),
    Function("epoch_us", "", _moment_fit, _same_number, _FIRST, written=False),
    _formatted("to_char", "to_char(at, 'YYYY-MM')"),
    _formatted("strftime", "strftime(at, '%Y-%m')"),
    Function("strptime", "strptime(note, '%Y-%m-%d')", _read_fit, _read_domain, _read_form, 2, 2, frozenset({1}),
             _check_format, _evaluate_read),
    Function("make_date", "make_date(nights, 1, 31)", _wholes, _date_domain, _date_form, 3, 3,
             evaluate=_evaluate_date),
    Function("to_timestamp", "to_timestamp(score)", _from_epoch_fit, _from_epoch_domain, _from_epoch_form,
             evaluate=_evaluate_from_epoch, doubles=True),
)  # fmt: skip
