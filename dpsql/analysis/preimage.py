"""Which values of a column can make an expression fall into a range, where the expression never decreases with it.

    extract(year FROM day) from 2024 to 2024   →  day from 2024-01-01 to 2024-12-31
    cast(at AS date) from 2024-03-03           →  at from 2024-03-03 00:00:00
    date_trunc('month', at) to 2024-03-15      →  at to 2024-03-31 23:59:59.999999

Numbers are those of `to_number`: days of dates, microseconds of timestamps. A bound that cannot be told is left out.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from dpsql.functions.calendar import FIRST_MODERN_YEAR, DAY_MICROSECONDS, next_period, bound_to_datetime, list_periods, truncate_datetime
from dpsql.functions.dates import format_pieces
from dpsql.functions.formats import finest_unit, format_datetime
from dpsql.functions.record import text_argument, integer_argument
from dpsql.plan.expr import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Clip,
    Column,
    Compare,
    Expr,
    HoleValue,
    InHole,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
    Quantise,
)
from dpsql.schema.domain import Domain, Scalar, to_number
from dpsql.types import Kind, Type

Bound = Fraction | None

MAX_EXACT_SECONDS = 1 << 32
"""Up to here (the year 2106) doubles tell any two microseconds apart, also after a division by whole seconds."""


@dataclass(frozen=True)
class Range:
    """From `lower` to `upper`, both within; nothing is where they have changed places."""

    lower: Bound = None
    upper: Bound = None


def comparison_range(op: str, value: Scalar, type_: Type) -> Range | None:
    """The values of a type that compare so with one of them; None where that is no range."""
    if not (type_.is_number or type_.is_time):
        return None
    number = to_number(value)
    step = 1 if type_.is_integer or type_.is_time else 0  # days and microseconds are whole too
    match op:
        case "=":
            return Range(number, number)
        case ">=" | ">":
            return Range(lower=number + (step if op == ">" else 0))
        case "<=" | "<":
            return Range(upper=number - (step if op == "<" else 0))
    return None


def in_list_range(literals: tuple[Literal, ...], type_: Type) -> Range | None:
    if not (type_.is_number or type_.is_time):
        return None
    numbers = [to_number(literal.value) for literal in literals if literal.value is not None]
    return Range(min(numbers), max(numbers)) if numbers else None


def find_preimage(expr: Expr, within: Range) -> tuple[Expr, Range] | None:
    """What stands one function below the expression, and the range that it is in where the expression is in its own."""
    match expr:
        case Cast(arg) if arg.type.is_time and expr.type.is_time:
            return arg, _range_from_microseconds(_range_to_microseconds(within, expr.type), arg.type)
        case Call("extract", (Literal("year"), arg)) if arg.type.is_time:
            return arg, _timestamp_range(within, arg.type, _year_start, _year_end)
        case Call("epoch", (arg,)) if arg.type.is_time:
            return arg, _range_from_microseconds(Range(_epoch_to_microseconds(within.lower, -1), _epoch_to_microseconds(within.upper, 1)), arg.type)
        case Call("date_trunc", (Literal(), arg)):
            return arg, _truncation_range(text_argument(expr, 0), _range_to_microseconds(within, expr.type), arg.type)
        case Call("add_interval", (arg, *_)) if integer_argument(expr, 1) == 0:
            moved = integer_argument(expr, 2) * DAY_MICROSECONDS + integer_argument(expr, 3)
            return arg, _range_from_microseconds(_shift_range(within, -moved), arg.type)
        case Call("add_days", (arg, Literal(int() as days))):
            return arg, _shift_range(within, -days)
        case Column() | Literal() | Compare() | And() | Or() | Not() | IsNull() | InList() | Arithmetic() | Case():
            return None
        case Cast() | Call() | Clip() | Quantise() | HoleValue() | InHole():
            return None
        case _:
            assert_never(expr)


def _shift_range(within: Range, by: int) -> Range:
    return Range(*(None if bound is None else bound + by for bound in (within.lower, within.upper)))


def _range_to_microseconds(within: Range, type_: Type) -> Range:
    """A range of dates as the moments in its days; moments as they are, zones being UTC's."""
    if type_.kind is not Kind.DATE:
        return within
    lower = None if within.lower is None else within.lower * DAY_MICROSECONDS
    return Range(lower, None if within.upper is None else (within.upper + 1) * DAY_MICROSECONDS - 1)


def _range_from_microseconds(within: Range, type_: Type) -> Range:
    """A range of moments, of which a date is its midnight, as values of the type."""
    if type_.kind is not Kind.DATE:
        return within
    lower = None if within.lower is None else Fraction((within.lower / DAY_MICROSECONDS).__ceil__())
    return Range(lower, None if within.upper is None else Fraction((within.upper / DAY_MICROSECONDS).__floor__()))


def _epoch_to_microseconds(seconds: Bound, outward: int) -> Bound:
    """Microseconds of whole seconds are exact; of others the double may be off by less than one."""
    if seconds is None:
        return None
    if seconds.denominator == 1 and abs(seconds) < MAX_EXACT_SECONDS:
        return seconds * 1_000_000
    return None if abs(seconds) >= MAX_EXACT_SECONDS else Fraction((seconds * 1_000_000).__floor__() + outward)


BoundToTimestamp = Callable[[Fraction], dt.datetime | None]


def _timestamp_range(within: Range, type_: Type, first: BoundToTimestamp, end: BoundToTimestamp) -> Range:
    """The moments from the first one of `lower` until before the end of `upper`."""
    start = None if within.lower is None else first(within.lower)
    stop = None if within.upper is None else end(within.upper)
    lower = None if start is None or not _has_modern_calendar(start, type_) else to_number(start)
    upper = None if stop is None or not _has_modern_calendar(stop, type_) else to_number(stop) - 1
    return _range_from_microseconds(Range(lower, upper), type_)


def _has_modern_calendar(at: dt.datetime, type_: Type) -> bool:
    """Before 1582 engines count the days of timestamps with a zone by another calendar."""
    return at.year >= (FIRST_MODERN_YEAR if type_.kind is Kind.TIMESTAMPTZ else 10)


def _year_start(number: Fraction) -> dt.datetime | None:
    year = number.__ceil__()
    return dt.datetime(year, 1, 1) if dt.MINYEAR <= year <= dt.MAXYEAR else None


def _year_end(number: Fraction) -> dt.datetime | None:
    return _year_start(Fraction(number.__floor__() + 1))


def _truncation_range(part: str, within: Range, type_: Type) -> Range:
    def first(number: Fraction) -> dt.datetime | None:
        at = _to_timestamp(number)
        if at is None:
            return None
        start = truncate_datetime(part, at)
        return start if start == at else next_period(part, start)

    def end(number: Fraction) -> dt.datetime | None:
        at = _to_timestamp(number)
        return None if at is None else next_period(part, truncate_datetime(part, at))

    return _timestamp_range(within, type_, first, end)


def _to_timestamp(number: Fraction) -> dt.datetime | None:
    at = bound_to_datetime(number, Kind.TIMESTAMP)
    return at if at is not None and 10 <= at.year < 9000 else None


# --- formats ---------------------------------------------------------------------------------------------------------

MAX_PERIODS = 1_000
"""Periods that are printed one by one to see which of them a condition means."""

TEXT_COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,  # by code points here and by bytes in engines: in UTF-8 the same order
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def formatted_range(call: Call, domain: Domain, keep: Callable[[str], bool]) -> Range | None:
    """From the first to the last period whose print is kept: to_char(day, 'YYYY-MM') = '2024-03'."""
    if call.function not in ("to_char", "strftime"):
        return None
    pieces = format_pieces(call)
    part = finest_unit(pieces)
    starts = list_periods(part, domain, MAX_PERIODS)
    if starts is None:
        return None
    matching = [at for at in starts if keep(format_datetime(pieces, at))]
    if not matching:
        return Range(Fraction(1), Fraction(0))
    return _range_from_microseconds(Range(to_number(matching[0]), to_number(next_period(part, matching[-1])) - 1), domain.type)
