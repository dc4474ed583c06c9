"""Expressions and literals as DuckDB SQL, each in a form that cannot raise on any row.

Literals are written exactly and with their type. No text of the analyst's is ever copied (law 10).
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import assert_never

from dpsql.base.cancellation import checkpoint
from dpsql.base.intervals import MICROSECONDS_PER_DAY
from dpsql.compiler.functions.table import FUNCTIONS
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
)
from dpsql.compiler.plan.relations import ScanColumn
from dpsql.errors import LimitExceeded
from dpsql.schema.model import EPOCH, Domain, Scalar
from dpsql.types import BIGINT, DOUBLE, HUGEINT, TEXT, Kind, Type

TYPE_NAMES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.SMALLINT: "SMALLINT",
    Kind.INTEGER: "INTEGER",
    Kind.BIGINT: "BIGINT",
    Kind.HUGEINT: "HUGEINT",
    Kind.REAL: "REAL",
    Kind.DOUBLE: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIMESTAMPTZ: "TIMESTAMPTZ",
    Kind.TIME: "TIME",
    Kind.INTERVAL: "INTERVAL",
    Kind.UUID: "UUID",
}


def render_type_name(type_: Type) -> str:
    if type_.kind is Kind.DECIMAL:
        return f"DECIMAL({type_.precision},{type_.scale})"
    if type_.is_microsecond_interval:
        return TYPE_NAMES[Kind.BIGINT]
    return TYPE_NAMES[type_.kind]


def quote_identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def render_text(value: str) -> str:
    if "\x00" in value:
        raise ValueError("text with a zero byte has no literal")
    return "'" + value.replace("'", "''") + "'"


def render_literal(value: Scalar | None, type_: Type) -> str:
    if value is None:
        return f"CAST(NULL AS {render_type_name(type_)})"
    match type_.kind:
        case Kind.BOOLEAN:
            return "TRUE" if value else "FALSE"
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT | Kind.HUGEINT:
            return f"CAST({int(_to_fraction(value))} AS {render_type_name(type_)})"
        case Kind.INTERVAL if type_.is_microsecond_interval:
            return f"CAST({int(_to_fraction(value))} AS {render_type_name(type_)})"
        case Kind.DECIMAL:
            text = format_decimal(_to_fraction(value), type_.scale or 0)
            return f"CAST({render_text(text)} AS {render_type_name(type_)})"
        case Kind.REAL | Kind.DOUBLE:
            return render_double(_to_fraction(value))
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            assert isinstance(value, dt.date)
            # Without its zone, the moment would depend on the engine's setting.
            zone = "+00:00" if type_.kind is Kind.TIMESTAMPTZ and getattr(value, "tzinfo", None) is None else ""
            return f"CAST({render_text(value.isoformat() + zone)} AS {render_type_name(type_)})"
        case Kind.TEXT:
            return render_text(str(value))
        case _:
            return f"CAST({render_text(str(value))} AS {render_type_name(type_)})"


def render_double(number: Fraction) -> str:
    """The double nearest to the number; `repr` of a float reads back as the same double."""
    if abs(number) >= 2**1024:
        raise ValueError("no double is that large")
    as_float = float(number)
    return f"CAST({render_text(repr(as_float))} AS DOUBLE)"


def render_timestamp(number: Fraction, type_: Type) -> str:
    """A date or timestamp from its number of days or microseconds."""
    if type_.kind is Kind.DATE:
        return render_literal(EPOCH.date() + dt.timedelta(days=int(number)), type_)
    return render_literal(EPOCH + dt.timedelta(microseconds=int(number)), type_)


def _to_fraction(value: Scalar) -> Fraction:
    if not isinstance(value, int | float | Decimal):
        raise TypeError(f"{type(value).__name__} is not a number")
    return Fraction(value)


def format_decimal(number: Fraction, scale: int) -> str:
    """All digits and no exponent: DuckDB reads 1000…0e-18 as a whole number first, which may have too many digits."""
    scaled = number * 10**scale
    if scaled.denominator != 1:
        raise ValueError("the number has more digits than its type")
    sign, digits = "-" if scaled < 0 else "", str(abs(scaled.numerator)).rjust(scale + 1, "0")
    return f"{sign}{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}" if scale else f"{sign}{digits}"


FIRST_DAY, LAST_DAY = Fraction(-719162), Fraction(2932896)  # 0001-01-01 and 9999-12-31
MAX_DECIMAL_DIGITS = 38
"""Of a DECIMAL."""
MAX_HUGEINT = 2**127 - 1
"""Of a HUGEINT."""
MAX_EXPRESSION_LENGTH = 200_000
"""Characters of one expression's SQL."""


def render_expr(expr: Expr) -> str:
    """The expression as text. Some forms repeat their argument, so nested ones are cut off before they grow large."""
    sql = _render_unchecked(expr)
    if len(sql) > MAX_EXPRESSION_LENGTH:
        raise LimitExceeded("an expression over private rows is too long when it is rewritten")
    return sql


def _render_unchecked(expr: Expr) -> str:
    checkpoint()
    match expr:
        case Column():
            return quote_identifier(expr.name)
        case Literal():
            return render_literal(expr.value, expr.type)
        case Compare():
            return f"({render_expr(expr.left)} {expr.op} {render_expr(expr.right)})"
        case And():
            return "(" + " AND ".join(render_expr(arg) for arg in expr.args) + ")"
        case Or():
            return "(" + " OR ".join(render_expr(arg) for arg in expr.args) + ")"
        case Not():
            return f"(NOT {render_expr(expr.arg)})"
        case IsNull():
            return f"({render_expr(expr.arg)} IS NULL)"
        case InList():
            return f"({render_expr(expr.arg)} IN ({', '.join(render_expr(value) for value in expr.values)}))"
        case Arithmetic():
            return _render_arithmetic(expr)
        case Case():
            whens = " ".join(f"WHEN {render_expr(when)} THEN {render_expr(then)}" for when, then in expr.branches)
            return f"CASE {whens} ELSE {render_expr(expr.otherwise)} END"
        case Cast():
            sql = render_cast(render_expr(expr.arg), expr.type)
            # Text can spell years that a calendar function, or the way out to Python, fails on.
            return _limit_to_python_range(sql, expr.type) if expr.arg.type == TEXT else sql
        case Call():
            return _render_call(expr)
        case Clip():
            clipped = _render_clip(render_expr(expr.arg), Domain(expr.type, True, expr.lower, expr.upper))
            return render_cast(clipped, expr.type) if expr.type.is_integer else clipped
        case Quantise():
            return _render_quantise(expr)
        case HoleValue():
            return _limit_to_python_range(f"TRY_CAST(${expr.hole} AS {render_type_name(expr.type)})", expr.type)
        case InHole():
            listed = f"SELECT unnest(TRY_CAST(${expr.hole} AS {render_type_name(expr.domain.type)}[]))"
            return f"({render_expr(expr.arg)} IN ({listed}))"
        case _:
            assert_never(expr)


def _limit_to_python_range(sql: str, type_: Type) -> str:
    if type_.kind is Kind.TIME:
        return _limit_to_midnight(sql)
    return limit_to_calendar(sql, type_) if type_.is_time else sql


def render_cast(sql: str, type_: Type) -> str:
    return f"TRY_CAST({sql} AS {render_type_name(type_)})"


def _render_arithmetic(expr: Arithmetic) -> str:
    width = expr.type if not expr.type.is_integer else BIGINT if expr.fits else HUGEINT
    left = f"CAST({render_expr(expr.left)} AS {render_type_name(width)})"
    right = f"CAST({render_expr(expr.right)} AS {render_type_name(width)})"
    if expr.op in ("/", "//", "%"):
        right = f"NULLIF({right}, {render_literal(0, width)})"
    sql = f"({left} {expr.op} {right})"
    return render_cast(sql, BIGINT) if width == HUGEINT else sql


def _render_call(expr: Call) -> str:
    return FUNCTIONS[expr.function].duckdb(expr, [render_expr(arg) for arg in expr.args])


# --- numbers into bounds ---------------------------------------------------------------------------------------------


def _render_quantise(expr: Quantise) -> str:
    """Whole steps first; what is not within them is moved to the nearer bound, NULL and what is not finite to NULL."""
    arg, lower, upper = render_expr(expr.arg), expr.lower, expr.upper
    if expr.arg.type.is_integer and expr.grid == 1:
        return (
            f"CASE WHEN {arg} BETWEEN {lower} AND {upper} THEN {render_cast(arg, BIGINT)} "
            f"WHEN {arg} < {lower} THEN CAST({lower} AS BIGINT) WHEN {arg} > {upper} THEN CAST({upper} AS BIGINT) END"
        )
    if not expr.arg.type.is_float:
        arg = render_cast(arg, DOUBLE)
    steps = render_cast(_render_steps(arg, expr.grid), BIGINT)
    middle = render_double((lower + upper) * expr.grid / 2)
    # The integer clip comes last and alone decides: round-off in the multiplication cannot pass the bounds.
    return (
        f"CASE WHEN {steps} BETWEEN {lower} AND {upper} THEN {steps} "
        f"WHEN isfinite({arg}) THEN CASE WHEN {arg} > {middle} "
        f"THEN CAST({upper} AS BIGINT) ELSE CAST({lower} AS BIGINT) END END"
    )


def _render_steps(arg: str, grid: Fraction) -> str:
    return f"({arg} * {render_double(1 / grid)})" if grid.numerator == 1 else f"({arg} / {render_double(grid)})"


def _render_clip(sql: str, domain: Domain) -> str:
    """Into the bounds, by CASE: LEAST and GREATEST skip NULL, so a missing value would count as a bound."""
    if domain.type.is_integer:
        return _render_case_clip(sql, _integer_bound(domain, True), _integer_bound(domain, False), None)
    if domain.type.is_float:
        lower, upper = (None if bound is None else render_double(bound) for bound in (domain.lower, domain.upper))
        return _render_case_clip(render_cast(sql, DOUBLE), lower, upper, "isfinite")
    raise TypeError(f"no clip for {domain.type}")


def _integer_bound(domain: Domain, lower: bool) -> str | None:
    bound = domain.lower if lower else domain.upper
    if bound is None:
        return None
    # A longer number is of a type of its own, whose casts raise; and no value of the column lies beyond.
    return str(max(-MAX_HUGEINT, min(MAX_HUGEINT, bound.__ceil__() if lower else bound.__floor__())))


def _render_case_clip(sql: str, lower: str | None, upper: str | None, finite: str | None) -> str:
    guard = f"{finite}({sql})" if finite else f"{sql} IS NOT NULL"
    if lower is None and upper is None:
        return f"CASE WHEN {guard} THEN {sql} END" if finite else sql
    if lower is None:
        return f"CASE WHEN {guard} THEN CASE WHEN {sql} > {upper} THEN {upper} ELSE {sql} END END"
    if upper is None:
        return f"CASE WHEN {guard} THEN CASE WHEN {sql} < {lower} THEN {lower} ELSE {sql} END END"
    return (
        f"CASE WHEN {sql} BETWEEN {lower} AND {upper} THEN {sql} "
        f"WHEN {guard} THEN CASE WHEN {sql} < {lower} THEN {lower} ELSE {upper} END END"
    )


# --- sanitising ------------------------------------------------------------------------------------------------------


def render_sanitized_column(column: ScanColumn, table: str) -> str:
    """The column as its domain says it is, whatever the rows hold (SOUNDNESS 3)."""
    raw = f"{table}.{quote_identifier(column.source)}"
    domain = column.domain
    if column.is_id:
        return _render_id(raw, column)
    if column.physical != domain.type or domain.type == HUGEINT:  # an engine has several types of that name
        raw = render_cast(raw, domain.type)
    if column.as_stored:
        return raw
    if domain.values is not None and domain.type.kind is not Kind.BOOLEAN:
        listed = ", ".join(render_literal(value, domain.type) for value in domain.values)
        return f"CASE WHEN {raw} IN ({listed}) THEN {raw} END"
    return _clip_to_domain(raw, column)


def _clip_to_domain(raw: str, column: ScanColumn) -> str:
    domain = column.domain
    match domain.type.kind:
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT | Kind.HUGEINT:
            return _cast_if_clipped(_render_clip(raw, domain), domain)
        case Kind.REAL | Kind.DOUBLE:
            # + 0 makes 0.0 of -0.0: equal keys must also look equal.
            return f"({_render_clip(raw, domain)} + {render_double(Fraction(0))})"
        case Kind.DECIMAL:
            return _cast_if_clipped(_render_case_clip(raw, *_decimal_bounds(domain), None), domain)
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return _clip_time(raw, domain)
        case Kind.TEXT:
            return f"CASE WHEN length({raw}) <= {column.max_length} THEN {raw} END"
        case Kind.TIME:
            return _limit_to_midnight(raw)
        case Kind.BOOLEAN | Kind.INTERVAL | Kind.UUID:
            return raw
        case _:
            assert_never(domain.type.kind)


def _limit_to_midnight(raw: str) -> str:
    """DuckDB has 24:00:00, which is no time of day in Python: a key that could not leave would tell."""
    return f"CASE WHEN {raw} < CAST('24:00:00' AS TIME) THEN {raw} END"


def _cast_if_clipped(sql: str, domain: Domain) -> str:
    return sql if domain.lower is None and domain.upper is None else render_cast(sql, domain.type)


def _decimal_bounds(domain: Domain) -> tuple[str | None, str | None]:
    step = Fraction(1, 10 ** (domain.type.scale or 0))
    lower = None if domain.lower is None else (domain.lower / step).__ceil__() * step
    upper = None if domain.upper is None else (domain.upper / step).__floor__() * step
    return _render_decimal(lower, domain.type), _render_decimal(upper, domain.type)


def _render_decimal(number: Fraction | None, type_: Type) -> str | None:
    if number is None:
        return None
    # No value of the column lies beyond what 38 digits hold, so neither need its bounds.
    scale, max_unscaled = type_.scale or 0, 10**MAX_DECIMAL_DIGITS - 1
    unscaled = max(-max_unscaled, min(max_unscaled, int(number * 10**scale)))
    text = format_decimal(Fraction(unscaled, 10**scale), scale)
    return f"CAST({render_text(text)} AS {render_type_name(_widest_decimal(scale))})"


def _widest_decimal(scale: int) -> Type:
    return Type(Kind.DECIMAL, MAX_DECIMAL_DIGITS, scale)


def _clip_time(raw: str, domain: Domain) -> str:
    """Moved into declared bounds; without any, years 1 to 9999, beyond which calendar functions raise."""
    if domain.is_bounded:
        first, last = (render_timestamp(bound, domain.type) for bound in domain.bounds)
        return _render_case_clip(raw, first, last, "isfinite")
    return limit_to_calendar(raw, domain.type)


def _calendar_bounds(type_: Type) -> tuple[Fraction, Fraction]:
    if type_.kind is Kind.DATE:
        return FIRST_DAY, LAST_DAY
    return FIRST_DAY * MICROSECONDS_PER_DAY, (LAST_DAY + 1) * MICROSECONDS_PER_DAY - 1


def limit_to_calendar(sql: str, type_: Type) -> str:
    first, last = (render_timestamp(bound, type_) for bound in _calendar_bounds(type_))
    return f"CASE WHEN {sql} BETWEEN {first} AND {last} THEN {sql} END"


def _render_id(raw: str, column: ScanColumn) -> str:
    """An id is never cast or moved: two units must not become one. What does not fit is NULL.

    Privacy: whole numbers of more than 64 bits are read as HUGEINT. They are whole numbers in the data too
    (`versions.py`), so that the cast gives each the same number, or NULL, and no two the same.
    """
    domain = column.domain
    if domain.type == HUGEINT:
        raw = render_cast(raw, HUGEINT)
    tests: list[str] = []
    if domain.type.kind is Kind.TEXT:
        tests.append(f"length({raw}) <= {column.max_length}")
    if domain.values is not None and domain.type.kind is not Kind.BOOLEAN:
        tests.append(f"{raw} IN ({', '.join(render_literal(value, domain.type) for value in domain.values)})")
    if domain.is_bounded and domain.type.is_integer:
        tests.append(f"{raw} BETWEEN {_integer_bound(domain, True)} AND {_integer_bound(domain, False)}")
    if domain.type.is_time:
        bounds = domain.bounds if domain.is_bounded else _calendar_bounds(domain.type)
        tests.append(
            f"{raw} BETWEEN {render_timestamp(bounds[0], domain.type)} AND {render_timestamp(bounds[1], domain.type)}"
        )
    return f"CASE WHEN {' AND '.join(tests)} THEN {raw} END" if tests else raw
