"""Every literal reads back as exactly the same value of the same type: in the engine's SQL, and in the analyst's."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsql.compiler.parse.parameters import Parameter
from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.expressions import Compare, Literal
from dpsql.compiler.plan.relations import Filter
from dpsql.compiler.render.expressions import quote_identifier, render_double, render_literal, render_type_name
from dpsql.compiler.split.split import split_query
from dpsql.errors import Error, ProgrammingError
from dpsql.session.session import Session
from dpsql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Type,
    decimal_type,
)
from tests.support import duckdb_tables
from tests.support.effort import example_count
from tests.support.shop import open_shop

pytestmark = pytest.mark.thorough

MANY = settings(max_examples=example_count(150), deadline=None, derandomize=True)
NASTY = ("", "'", "''", "\\", "\\'", "a\nb", "\t", "\r\n", "--", "/* */", ";", "%", "_", "$1", "?", "é", "\U0001f600",
         "'; DROP TABLE t; --", "\u202e", "\ufeff", "e'\\x41'", "$$x$$", "{}", "\x7f", "\x01", "ﬀ", "NULL")  # fmt: skip
TEXTS = st.one_of(st.sampled_from(NASTY), st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00")))
DOUBLES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from((-0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1, 1e22, 1e23)),
)
BIGINTS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from((-(2**63), 2**63 - 1, 0, -1)))
MOMENTS = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999))
DAYS = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))


@st.composite
def decimals(draw: st.DrawFn) -> tuple[Decimal, Type]:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    unscaled = draw(st.integers(-(10**precision) + 1, 10**precision - 1))
    sign, digits = int(unscaled < 0), tuple(map(int, str(abs(unscaled))))
    return Decimal((sign, digits, -scale)), decimal_type(precision, scale)


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    return duckdb_tables.connect()


def read_back(database: duckdb.DuckDBPyConnection, value: object, type_: Type) -> tuple[object, str]:
    sql = render_literal(value, type_)  # type: ignore[arg-type]
    found = database.execute(f"SELECT v, typeof(v) FROM (SELECT {sql} AS v)").fetchone()
    assert found is not None
    return found[0], found[1]


def bits(value: float) -> bytes:
    return struct.pack(">d", value)


@MANY
@given(TEXTS)
def test_text(database: duckdb.DuckDBPyConnection, value: str) -> None:
    assert read_back(database, value, TEXT) == (value, "VARCHAR")


@MANY
@given(DOUBLES)
@example(-0.0)
def test_doubles_keep_every_bit(database: duckdb.DuckDBPyConnection, value: float) -> None:
    if value == 0 and math.copysign(1, value) < 0:
        value = 0.0  # a Fraction has one zero, and so do the keys
    found, type_ = read_back(database, value, DOUBLE)
    assert isinstance(found, float)
    assert (bits(found), type_) == (bits(value), "DOUBLE")


@MANY
@given(st.fractions())
def test_a_rational_becomes_the_nearest_double(database: duckdb.DuckDBPyConnection, number: Fraction) -> None:
    (found,) = database.execute(f"SELECT {render_double(number)}").fetchone() or (None,)
    assert found == float(number)


@MANY
@given(BIGINTS)
def test_whole_numbers(database: duckdb.DuckDBPyConnection, value: int) -> None:
    assert read_back(database, value, BIGINT) == (value, "BIGINT")
    assert read_back(database, value, HUGEINT) == (value, "HUGEINT")
    if -(2**31) <= value < 2**31:
        assert read_back(database, value, INTEGER) == (value, "INTEGER")


@MANY
@given(st.integers(-(2**127), 2**127 - 1))
def test_128_bits(database: duckdb.DuckDBPyConnection, value: int) -> None:
    assert read_back(database, value, HUGEINT) == (value, "HUGEINT")


@MANY
@given(decimals())
def test_decimals(database: duckdb.DuckDBPyConnection, given_: tuple[Decimal, Type]) -> None:
    value, type_ = given_
    assert read_back(database, value, type_) == (value, render_type_name(type_))


@MANY
@given(MOMENTS, DAYS, st.booleans())
def test_times_and_booleans(database: duckdb.DuckDBPyConnection, at: dt.datetime, day: dt.date, truth: bool) -> None:
    assert read_back(database, at, TIMESTAMP) == (at, "TIMESTAMP")
    assert read_back(database, day, DATE) == (day, "DATE")
    assert read_back(database, truth, BOOLEAN) == (truth, "BOOLEAN")
    zoned, type_ = read_back(database, at.replace(tzinfo=dt.UTC), TIMESTAMPTZ)
    assert isinstance(zoned, dt.datetime)
    assert (zoned.replace(tzinfo=None), type_) == (at, "TIMESTAMP WITH TIME ZONE")


@pytest.mark.parametrize("type_", [TEXT, DOUBLE, BIGINT, BOOLEAN, DATE, TIMESTAMP, decimal_type(9, 2)], ids=str)
def test_null_keeps_its_type(database: duckdb.DuckDBPyConnection, type_: Type) -> None:
    assert read_back(database, None, type_) == (None, render_type_name(type_))


@MANY
@given(TEXTS.filter(bool))
def test_identifiers(database: duckdb.DuckDBPyConnection, name: str) -> None:
    found = database.execute(f"SELECT 7 AS {quote_identifier(name)}").description
    assert found is not None
    assert found[0][0] == name


# --- what the analyst writes -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    session, reference = open_shop(Path(tmp_path_factory.mktemp("shop")))
    yield session
    session.dataset.close()
    reference.close()


def bound_literal(session: Session, condition: str, parameters: tuple[Parameter, ...] = ()) -> Literal:
    """The literal that a comparison binds to."""
    tree = parse_query(f"SELECT COUNT(*) FROM orders WHERE {condition}", parameters)
    (release,) = split_query(tree, session.dataset.schema).releases
    assert isinstance(release.aggregate, Aggregate)
    assert isinstance(release.aggregate.input, Filter)
    compared = release.aggregate.input.condition
    assert isinstance(compared, Compare)
    (found,) = (side for side in (compared.left, compared.right) if isinstance(side, Literal))
    return found


@MANY
@given(TEXTS)
def test_text_in_a_statement(session: Session, value: str) -> None:
    written = "'" + value.replace("'", "''") + "'"
    assert bound_literal(session, f"note = {written}") == Literal(value, TEXT)


@MANY
@given(TEXTS)
def test_a_text_parameter_is_never_read_as_sql(session: Session, value: str) -> None:
    assert bound_literal(session, "note = ?", (value,)) == Literal(value, TEXT)


@MANY
@given(DOUBLES)
def test_a_double_parameter(session: Session, value: float) -> None:
    assert bound_literal(session, "amount = ?", (value,)).value == value


@MANY
@given(BIGINTS)
def test_an_integer_parameter(session: Session, value: int) -> None:
    found = bound_literal(session, "oid = ?", (value,))
    assert (found.value, type(found.value)) == (value, int)


@MANY
@given(MOMENTS, DAYS)
def test_parameters_of_time(session: Session, at: dt.datetime, day: dt.date) -> None:
    assert bound_literal(session, "made = ?", (at,)) == Literal(at, TIMESTAMP)
    assert bound_literal(session, "made = ?", (day,)).value == dt.datetime(day.year, day.month, day.day)


@MANY
@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9))
def test_a_decimal_parameter(session: Session, value: Decimal) -> None:
    """By its exact value, or by the double that it is compared as."""
    found = bound_literal(session, "price = ?", (value,)).value
    assert isinstance(found, int | float | Decimal)
    assert found == value or found == float(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, Decimal("NaN"), Decimal("-Infinity"), "zero\x00byte", [1]])
def test_what_cannot_be_bound(session: Session, value: object) -> None:
    with pytest.raises(ProgrammingError):
        parse_query("SELECT COUNT(*) FROM orders WHERE note = ?", (value,))  # type: ignore[arg-type]


def test_bytes_are_compared_with_no_text(session: Session) -> None:
    with pytest.raises(Error, match="bytea"):
        session.compile_statement("SELECT COUNT(*) FROM orders WHERE note = ?", (b"x",))


def test_parameters_are_counted_and_quotes_hide_them(session: Session) -> None:
    assert bound_literal(session, "note = '?'") == Literal("?", TEXT)
    for parameters in ((), (1, 2)):
        with pytest.raises(ProgrammingError):
            parse_query("SELECT COUNT(*) FROM orders WHERE qty = ?", parameters)
