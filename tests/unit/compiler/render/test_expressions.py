"""Literals as SQL: DuckDB reads back the very same value, of the very same type."""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction

import duckdb
import pytest

from dpsql.compiler.render.expressions import (
    quote_identifier,
    render_double,
    render_literal,
    render_text,
    render_timestamp,
)
from dpsql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Type,
    decimal_type,
)

VALUES: list[tuple[object, Type, str]] = [
    (True, BOOLEAN, "BOOLEAN"),
    (-(2**15), SMALLINT, "SMALLINT"),
    (2**31 - 1, INTEGER, "INTEGER"),
    (-(2**63), BIGINT, "BIGINT"),
    (2**100, HUGEINT, "HUGEINT"),
    (Decimal("-1.50"), decimal_type(10, 2), "DECIMAL(10,2)"),
    (Decimal("0.05"), decimal_type(3, 2), "DECIMAL(3,2)"),
    (0.1, DOUBLE, "DOUBLE"),
    (5e-324, DOUBLE, "DOUBLE"),
    (1.7976931348623157e308, DOUBLE, "DOUBLE"),
    ("it's; -- \\ \n ☃", TEXT, "VARCHAR"),
    ("", TEXT, "VARCHAR"),
    (dt.date(2024, 2, 29), DATE, "DATE"),
    (dt.datetime(2024, 2, 29, 1, 2, 3, 4), TIMESTAMP, "TIMESTAMP"),
]


@pytest.mark.parametrize(("value", "type_", "spelling"), VALUES, ids=[str(v[:2]) for v in VALUES])
def test_a_value_is_read_back_as_it_was(value: object, type_: Type, spelling: str) -> None:
    sql = render_literal(value, type_)  # type: ignore[arg-type]
    assert duckdb.execute(f"SELECT {sql}, typeof({sql})").fetchall() == [(value, spelling)]


@pytest.mark.parametrize("type_", [BOOLEAN, BIGINT, DOUBLE, REAL, TEXT, DATE, TIMESTAMP, decimal_type(5, 1), UUID])
def test_null_has_its_type(type_: Type) -> None:
    sql = render_literal(None, type_)
    value, spelling = duckdb.execute(f"SELECT {sql}, typeof({sql})").fetchall()[0]
    assert value is None and spelling.lower() not in ("null", '"null"')


def test_a_timestamp_without_a_zone_is_utc() -> None:
    assert "+00:00" in render_literal(dt.datetime(2024, 1, 2), TIMESTAMPTZ)


def test_numbers_that_no_double_or_decimal_holds_are_refused() -> None:
    with pytest.raises((ValueError, OverflowError)):
        render_double(Fraction(10) ** 400)
    with pytest.raises(ValueError):
        render_literal(Decimal("1.005"), decimal_type(10, 2))


def test_a_double_is_the_nearest_one() -> None:
    (value,) = duckdb.execute(f"SELECT {render_double(Fraction(1, 3))}").fetchall()[0]
    assert value == 1 / 3 and not math.isnan(value)


def test_names_and_texts_are_quoted() -> None:
    assert quote_identifier('a"b') == '"a""b"' and render_text("a'b") == "'a''b'"
    with pytest.raises(ValueError):
        render_text("a\x00b")


def test_days_and_microseconds_become_timestamps() -> None:
    assert render_timestamp(Fraction(1), DATE) == render_literal(dt.date(1970, 1, 2), DATE)
    assert render_timestamp(Fraction(-1), TIMESTAMP) == render_literal(
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), TIMESTAMP
    )
