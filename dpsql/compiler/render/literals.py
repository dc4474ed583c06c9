"""Literals as SQL text, exactly and with their type. No text of the analyst's is ever copied (law 10)."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction

from dpsql.schema.domain import EPOCH, Scalar
from dpsql.types import Kind, Type

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
