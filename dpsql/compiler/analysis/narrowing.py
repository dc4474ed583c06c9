"""What a condition says about the columns of the rows for which it is true."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import assert_never

from dpsql.base.intervals import MICROSECONDS_PER_DAY
from dpsql.compiler.functions.calendar import (
    FIRST_MODERN_YEAR,
    bound_to_datetime,
    list_periods,
    next_period,
    truncate_datetime,
)
from dpsql.compiler.functions.date_formats import finest_unit, format_datetime
from dpsql.compiler.functions.datetime import format_pieces
from dpsql.compiler.functions.function import integer_argument, text_argument, union_of_domains
from dpsql.compiler.plan.expressions import (
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
    split_conjuncts,
)
from dpsql.compiler.plan.walk import columns_of
from dpsql.schema.model import Domain, Scalar, to_number
from dpsql.types import DOUBLE, INTEGER_BITS, TEXT, Kind, Type

Environment = Mapping[str, Domain]


class EnforcedDomains(dict[str, Domain]):
    """Domains that hold for every row that an engine may look at, also those that a condition drops.

    Engines reorder conditions, so an expression may meet rows that another condition is about to drop.
    """


def narrow_where(env: Environment, condition: Expr) -> dict[str, Domain]:
    """The domains of the rows for which the condition is true."""
    if isinstance(env, EnforcedDomains):
        return env
    result = dict(env)
    for part in split_conjuncts(condition):
        if isinstance(part, Or):
            result = _narrow_disjunction(result, part)
            continue
        constraint = _column_constraint(part, env) or _constraint_through_functions(part, env)
        if constraint is not None:
            column, change = constraint
            result[column.name] = change(result[column.name].with_nullable(False))
    return result


def _narrow_disjunction(env: dict[str, Domain], condition: Or) -> dict[str, Domain]:
    """What the rows of all branches can be; a branch that no row can meet has none."""
    names = columns_of(condition) & env.keys()
    branches = [_narrow_branch(env, part) for part in disjuncts(condition) if not _is_never_true(part)]
    possible = [b for b in branches if not any(b[name].values == () and not b[name].nullable for name in names)]
    if len(possible) < 2:
        return (possible or branches or [env])[0]
    return env | {name: union_of_domains(tuple(branch[name] for branch in possible), env[name].type) for name in names}


def _narrow_branch(env: dict[str, Domain], part: Expr) -> dict[str, Domain]:
    if isinstance(part, IsNull) and isinstance(part.arg, Column):
        return env | {part.arg.name: replace(env[part.arg.name], values=())}
    return narrow_where(env, part)


def _is_never_true(part: Expr) -> bool:
    return isinstance(part, Literal) and part.value is not True


def narrow_unless(env: Environment, condition: Expr) -> dict[str, Domain]:
    """The domains of the rows for which the condition is not true: false, or NULL because the column is."""
    if isinstance(env, EnforcedDomains):
        return env
    result = dict(env)
    for part in disjuncts(condition):
        negation = part.arg if isinstance(part, Not) else negate_condition(part)
        constraint = _column_constraint(negation, env)
        if constraint is not None:
            column, change = constraint
            before = result[column.name]
            keeps_null = before.nullable and not isinstance(part, IsNull)
            result[column.name] = change(before).with_nullable(keeps_null)
    return result


def disjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The parts of a condition of which none is true where it is not."""
    if isinstance(condition, Or):
        return tuple(part for arg in condition.args for part in disjuncts(arg))
    return (condition,)


def negate_condition(condition: Expr) -> Expr:
    if isinstance(condition, Compare):
        return Compare(NEGATED_OPERATORS[condition.op], condition.left, condition.right)
    return Not(condition)


DomainChange = Callable[[Domain], Domain]


def _column_constraint(part: Expr, env: Environment) -> tuple[Column, DomainChange] | None:
    """The column that a condition is about, and what it leaves of the column's domain."""
    match part:
        case Compare(op, left, Literal() as literal) if (column := _compared_column(left, env)) is not None:
            return None if literal.value is None else (column, lambda domain: narrow_domain(domain, op, literal))
        case Compare(op, Literal() as literal, right) if (column := _compared_column(right, env)) is not None:
            flipped = FLIPPED_OPERATORS[op]
            return None if literal.value is None else (column, lambda domain: narrow_domain(domain, flipped, literal))
        case Not(InList(arg, values)) if (column := _compared_column(arg, env)) is not None:
            return column, lambda domain: _exclude_values(domain, tuple(v.value for v in values if v.value is not None))
        case InList(Column() as column, values):
            return column, lambda domain: _restrict_to_values(
                domain, tuple(v.value for v in values if v.value is not None)
            )
        case Not(IsNull(Column() as column)):
            return column, lambda domain: domain
        case Column() as column:
            return column, lambda domain: _restrict_to_values(domain, (True,))
        case Not(Column() as column):
            return column, lambda domain: _restrict_to_values(domain, (False,))
        case Literal() | Compare() | And() | Or() | Not() | IsNull() | InList() | Arithmetic() | Case() | Cast():
            return None
        case Call() | Clip() | Quantise() | HoleValue() | InHole():
            return None
        case _:
            assert_never(part)


def _constraint_through_functions(part: Expr, env: Environment) -> tuple[Column, DomainChange] | None:
    """The same where functions that never decrease stand around the column.

    Only for rows for which the condition is true: where it is not, the function may be NULL though its column is not.
    """
    match part:
        case Compare(op, Call(args=(Column() as printed, Literal())) as call, Literal(str() as text)):
            return _range_constraint(
                printed, formatted_range(call, env[printed.name], lambda value: TEXT_COMPARISONS[op](value, text))
            )
        case InList(Call(args=(Column() as printed, Literal())) as call, values) if call.type == TEXT:
            texts = [value.value for value in values]
            return _range_constraint(printed, formatted_range(call, env[printed.name], lambda value: value in texts))
        case Not(InList(Call(args=(Column() as printed, Literal())) as call, values)) if call.type == TEXT:
            excluded = [value.value for value in values]
            return _range_constraint(
                printed, formatted_range(call, env[printed.name], lambda value: value not in excluded)
            )
        case Compare(op, left, Literal(value)) if value is not None:
            return _constraint_by_preimage(left, comparison_range(op, value, left.type), env)
        case Compare(op, Literal(value), right) if value is not None:
            return _constraint_by_preimage(right, comparison_range(FLIPPED_OPERATORS[op], value, right.type), env)
        case InList(arg, values):
            return _constraint_by_preimage(arg, in_list_range(values, arg.type), env)
        case Column() | Literal() | Compare() | And() | Or() | Not() | IsNull() | Arithmetic() | Case() | Cast():
            return None
        case Call() | Clip() | Quantise() | HoleValue() | InHole():
            return None
        case _:
            assert_never(part)


def _constraint_by_preimage(expr: Expr, within: Range | None, env: Environment) -> tuple[Column, DomainChange] | None:
    column = _compared_column(expr, env)
    while within is not None and column is None:
        below = find_preimage(expr, within)
        if below is None:
            return None
        expr, within = below
        column = _compared_column(expr, env)
    return None if column is None else _range_constraint(column, within)


def _range_constraint(column: Column, within: Range | None) -> tuple[Column, DomainChange] | None:
    return None if within is None else (column, lambda domain: _narrow_to_range(domain, within))


def _narrow_to_range(domain: Domain, within: Range) -> Domain:
    for op, bound in ((">=", within.lower), ("<=", within.upper)):
        domain = domain if bound is None else _narrow_bounds(domain, op, bound)
    return domain


def _compared_column(expr: Expr, env: Environment) -> Column | None:
    """The column that a comparison is about; also where it is read as a wider type that holds it exactly."""
    if isinstance(expr, Column):
        return expr
    if not isinstance(expr, Cast) or not isinstance(expr.arg, Column) or not expr.arg.type.is_integer:
        return None
    if expr.type.is_integer and INTEGER_BITS[expr.type.kind] >= INTEGER_BITS[expr.arg.type.kind]:
        return expr.arg
    if expr.type == DOUBLE:
        domain = env[expr.arg.name]
        narrow_type = INTEGER_BITS[expr.arg.type.kind] <= 32
        if narrow_type or (domain.is_bounded and max(abs(bound) for bound in domain.bounds) <= 2**53):
            return expr.arg
    return None


FLIPPED_OPERATORS = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
NEGATED_OPERATORS = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}

_COMPARISONS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _exclude_values(domain: Domain, values: tuple[Scalar, ...]) -> Domain:
    if domain.values is None:
        return domain
    excluded = frozenset(values)
    return replace(domain, values=tuple(value for value in domain.values if value not in excluded))


def narrow_domain(domain: Domain, op: str, literal: Literal) -> Domain:
    """What a comparison with a literal leaves of a domain, NULL aside."""
    if literal.value is None:
        return domain
    if op == "=":
        return _restrict_to_values(domain, (literal.value,))
    if op == "<>":
        return _exclude_values(domain, (literal.value,))
    if not (domain.type.is_number or domain.type.is_time):
        return domain
    return _narrow_bounds(domain, op, to_number(literal.value))


def _narrow_bounds(domain: Domain, op: str, number: Fraction) -> Domain:
    lower, upper = domain.lower, domain.upper
    if op in (">", ">="):
        lower = number if lower is None else max(lower, number)
    else:
        upper = number if upper is None else min(upper, number)
    if domain.type.is_integer or domain.type.is_time:  # days and microseconds are whole too
        lower = _round_inward(lower, op == ">" and lower == number, 1)
        upper = _round_inward(upper, op == "<" and upper == number, -1)
    values = domain.values
    if values is not None:
        values = tuple(value for value in values if _COMPARISONS[op](to_number(value), number))
    if lower is not None and upper is not None and lower > upper:  # no row is left; any bounds hold
        lower = upper = next((bound for bound in (domain.lower, domain.upper) if bound is not None), Fraction(0))
        values = ()
    return replace(domain, lower=lower, upper=upper, values=values)


def _round_inward(bound: Fraction | None, strict: bool, inward: int) -> Fraction | None:
    """The bound of whole numbers that are past it (or strictly past it)."""
    if bound is None:
        return None
    rounded = Fraction(bound.__ceil__() if inward > 0 else bound.__floor__())
    return rounded + inward if strict and rounded == bound else rounded


def _restrict_to_values(domain: Domain, values: tuple[Scalar, ...]) -> Domain:
    # As values of the column's type: 0.1 and 1e-1 are one double, and must be one group.
    allowed = tuple(
        dict.fromkeys(value_as_type(value, domain.type) for value in values if _is_possible_value(domain, value))
    )
    lower, upper = domain.lower, domain.upper
    if allowed and (domain.type.is_number or domain.type.is_time):
        numbers = [to_number(value) for value in allowed]
        lower, upper = min(numbers), max(numbers)
    return replace(domain, values=allowed, lower=lower, upper=upper)


def value_as_type(value: Scalar, type_: Type) -> Scalar:
    if type_.is_float and isinstance(value, int | float | Decimal):
        return float(value) + 0.0
    if type_.is_integer and isinstance(value, int | float | Decimal):
        return int(value)
    return value


def _is_possible_value(domain: Domain, value: Scalar) -> bool:
    if domain.values is not None:
        return value in domain.values
    if domain.type.is_number or domain.type.is_time:
        number = to_number(value)
        steps = number * 10 ** (domain.type.scale or 0)
        if (domain.type.is_integer or domain.type.kind is Kind.DECIMAL) and steps.denominator != 1:
            return False
        if domain.type.is_float:  # rows are clipped to the doubles nearest to the bounds
            lower, upper = (None if b is None else Fraction(float(b)) for b in (domain.lower, domain.upper))
            number = Fraction(float(number))
        else:
            lower, upper = domain.lower, domain.upper
        return (lower is None or lower <= number) and (upper is None or number <= upper)
    return True


# Which values of a column can make an expression fall into a range, where the expression never decreases with it.
#
#     extract(year FROM day) from 2024 to 2024   →  day from 2024-01-01 to 2024-12-31
#     cast(at AS date) from 2024-03-03           →  at from 2024-03-03 00:00:00
#     date_trunc('month', at) to 2024-03-15      →  at to 2024-03-31 23:59:59.999999
#
# Numbers are those of `to_number`: days of dates, microseconds of timestamps. A bound that cannot be told is left out.

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
            return arg, _range_from_microseconds(
                Range(_epoch_to_microseconds(within.lower, -1), _epoch_to_microseconds(within.upper, 1)), arg.type
            )
        case Call("date_trunc", (Literal(), arg)):
            return arg, _truncation_range(text_argument(expr, 0), _range_to_microseconds(within, expr.type), arg.type)
        case Call("add_interval", (arg, *_)) if integer_argument(expr, 1) == 0:
            moved = integer_argument(expr, 2) * MICROSECONDS_PER_DAY + integer_argument(expr, 3)
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
    lower = None if within.lower is None else within.lower * MICROSECONDS_PER_DAY
    return Range(lower, None if within.upper is None else (within.upper + 1) * MICROSECONDS_PER_DAY - 1)


def _range_from_microseconds(within: Range, type_: Type) -> Range:
    """A range of moments, of which a date is its midnight, as values of the type."""
    if type_.kind is not Kind.DATE:
        return within
    lower = None if within.lower is None else Fraction((within.lower / MICROSECONDS_PER_DAY).__ceil__())
    return Range(lower, None if within.upper is None else Fraction((within.upper / MICROSECONDS_PER_DAY).__floor__()))


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
    return _range_from_microseconds(
        Range(to_number(matching[0]), to_number(next_period(part, matching[-1])) - 1), domain.type
    )
