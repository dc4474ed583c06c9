"""Post-processing means what PostgreSQL means, where DuckDB reads the same text otherwise."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import duckdb
import pytest
import sqlglot

from dpsql.compiler.parse.dialect import AnalystDialect
from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.postprocess.postgres_semantics import has_arithmetic, parse_number_format, render_postprocessing
from dpsql.errors import LimitExceeded, Unsupported
from dpsql.session.postprocess import sandbox


def value(written: str, source: str = "") -> Any:
    ((found,),) = sandbox.run_query(render_postprocessing(parse_query(f"SELECT {written} {source}")), (), 10).rows
    return found


@pytest.mark.parametrize(
    ("written", "due"),
    [
        ("to_char(DATE '2024-02-09', 'Mon DD, YYYY')", "Feb 09, 2024"),
        ("to_char(DATE '2024-02-09', 'Day|FMDay|FMDD')", "Friday   |Friday|9"),
        ("to_char(TIMESTAMP '2024-02-09 13:04:05', 'HH12:MI am')", "01:04 pm"),
        ("to_char(DATE '2024-02-09', 'YYYY-\"Q\"Q')", "2024-Q1"),
        ("to_char(min(d), 'YYYY') || max(d)::text", "20242024-01-02"),
        ("to_date('09.02.2024', 'DD.MM.YYYY')::text", "2024-02-09"),
        ("to_timestamp('09.02.2024', 'DD.MM.YYYY')::text", "2024-02-09 00:00:00+00"),
        ("'a_c' LIKE 'a\\_c'", True), ("'abc' LIKE 'a\\_c'", False), ("'50%' ILIKE '50\\%'", True),
        ("'abc' NOT LIKE 'a\\_c'", True), ("s LIKE p", True), ("'a!_' LIKE 'a!_' ESCAPE '!'", False),
        ("format('%s of %s: 100%%', 'a', 2)", "a of 2: 100%"), ("format('%s|', NULL)", "|"),
        ("format('{} of {}', 'a', 2)", "a of 2"),
        ("(INTERVAL '1 mon' + DATE '2024-01-31')::date::text", "2024-02-29"),
        ("(TIMESTAMP '2024-01-01' + INTERVAL '3 hrs' - INTERVAL '5 mins')::text", "2024-01-01 02:55:00"),
        ("'off'::boolean", False), ("'YES'::boolean", True), ("'t'::boolean", True),
        ("'abc'::varchar(2)", "ab"), ("12345::varchar(3)", "123"), ("'abc'::varchar", "abc"), ("'abc'::char", "a"),
        ("octet_length('ä')", 2), ("every(n > 0)", True), ("every(n > 1)", False),
        ("width_bucket(5, 0, 10, 5)", 3), ("width_bucket(-1, 0, 10, 5)", 0), ("width_bucket(10, 0, 10, 5)", 6),
        ("substr('hello', -1, 3)", "h"), ("'abc' SIMILAR TO '%b%'", True), ("to_hex(255)", "ff"), ("1_000", 1000),
        ("round(2.5::float8)", 2.0), ("round(5 / 2.0)", 3.0),
        ("extract(second FROM TIME '10:00:01.5')::text", "1.500000"),
        ("width_bucket(NULL::integer, 0, 10, 5)", None), ("width_bucket(3.5, 3, 5, 4)", 2),
    ],
)  # fmt: skip
def test_texts_and_times(written: str, due: Any) -> None:
    needs = any(word in written for word in ("(d)", "n >", "s LIKE"))
    rows = "(VALUES (DATE '2024-01-01', 1, '_x', '\\_%'), (DATE '2024-01-02', 2, '_x', '\\_%')) AS t(d, n, s, p)"
    one = "" if not needs else f"FROM {rows}" + (" LIMIT 1" if "s LIKE" in written else "")
    assert value(written, one) == due


@pytest.mark.parametrize(
    ("written", "due"),
    [
        ("1::numeric", "1"), ("1.10::numeric", "1.10"), ("-1.10::numeric", "-1.10"), ("'2.50'::numeric", "2.50"),
        ("'-0.000000001'::numeric", "-1E-9"), ("12345678901234567890.123456789::numeric",
        "12345678901234567890.123456789"), ("(2.50)::numeric * 2", "5.00"),
        ("round(2.675::float8::numeric, 2)", "2.68"),
        ("round((10 / 3.0)::numeric, 4)", "3.3333"), ("round(avg(n)::numeric, 2)", "1.50"), ("count(n)::numeric", "2"),
        ("sum(n)::numeric(10, 1)", "3.0"),
    ],
)  # fmt: skip
def test_numeric_has_the_digits_of_its_value(written: str, due: str) -> None:
    found = value(written, "FROM (VALUES (1), (2)) AS t(n)" if "n)" in written else "")
    assert (type(found), str(found)) == (Decimal, due)


def test_a_double_stays_one_where_nothing_rounds_it() -> None:
    assert value("(1 / 3.0::float8)::numeric") == 1 / 3


@pytest.mark.parametrize(
    "written",
    [
        "to_char(DATE '2024-01-01', 'YYYY TZ')",
        "to_char(INTERVAL '1 day', 'DD')",
        "'infinity'::date",
        "'a' SIMILAR TO p",
        "DATE '-infinity'",
        "x #>> p",
        "'a' SIMILAR TO '('",
        "to_date('x', 'Day')",
        "format('%I', 'a')",
        "to_char(now(), 'a' || 'b')",
    ],
)
def test_what_cannot_be_said_here_is_refused(written: str) -> None:
    with pytest.raises(Unsupported):
        render_postprocessing(parse_query(f"SELECT {written}"))


def test_writing_twice_is_writing_once() -> None:
    tree = parse_query(
        "SELECT x LIKE y, to_char(d, 'Mon'), x::numeric, x::varchar(2), format('%s', x), "
        "x SIMILAR TO 'a%', substr(x, y, z), round(x::float8), x::float8::numeric(9, 2), "
        "round(x::numeric, 2), extract(second FROM d), to_hex(y), date_trunc('century', d), "
        "x #>> '{a}' FROM t"
    )
    once = render_postprocessing(tree)
    assert render_postprocessing(tree) == once


def test_what_is_written_several_times_does_not_multiply() -> None:
    """Of one statement of some hundred words, a server would write gigabytes."""
    nested = "s"
    for _ in range(40):
        nested = f"substr(s, strpos({nested}, 'a'))"
    with pytest.raises(LimitExceeded):
        render_postprocessing(parse_query(f"SELECT {nested} FROM t"))


# As the rules in PostgreSQL's manual have it.
PRINTED = (
    (1234, "999,999", "   1,234"), (-1234, "999,999", "  -1,234"), (1234567, "999,999", " ###,###"),
    (0, "999", "   0"), (7, "000", " 007"), (-7, "FM000", "-007"), (7.5, "FM990.00", "7.50"), (0.5, "9.99", "  .50"),
    (0.5, "0.99", " 0.50"), (1.5, "FM990.99", "1.5"), (1234.5, "FM$999,999.00", "$1,234.50"),
    (12.345, "999.9", "  12.3"),    (45.6, "FM990.0%", "45.6%"), (None, "999", None),
)  # fmt: skip


def post(number: str, fmt: str) -> str:
    tree = sqlglot.parse_one(f"SELECT to_char({number}, '{fmt}') AS t", dialect=AnalystDialect)
    assert isinstance(tree, sqlglot.exp.Query)
    return render_postprocessing(tree)


@pytest.mark.parametrize(("number", "fmt", "expected"), PRINTED)
def test_a_number_is_printed_as_postgres_does(number: float | None, fmt: str, expected: str | None) -> None:
    ((found,),) = duckdb.execute(post("NULL" if number is None else str(number), fmt)).fetchall()
    assert found == expected


@pytest.mark.parametrize("fmt", ["9" * 30, "S999", "RN", "0,000", "$999", "YYYY", "9,9"])
def test_other_formats_are_none(fmt: str) -> None:
    assert parse_number_format(fmt) is None


def test_a_number_with_another_format_is_refused() -> None:
    with pytest.raises(Unsupported, match="TO_CHAR of a number") as caught:
        post("12", "S999")
    assert caught.value.hint == "Write ROUND(x, 2), or format('{:,}', x), of a number x."


def test_dates_are_printed_as_ever() -> None:
    assert "STRFTIME" in post("CURRENT_DATE", "YYYY-MM").upper()


@pytest.mark.parametrize(
    "written",
    ["7 / 0", "7.0 / 0", "0.0 / 0", "7 // 0", "7 % 0", "7.5 % 0", "7::float8 / 0.0", "mod(7, 0)", "fmod(7, 0)",
     "divide(7, 0)", "n / (n - n)", "1.5 / (n - n)", "1e3 / (n * 0.0)", "INTERVAL '1 day' / 0", "1 / NULLIF(n - 1, 5)"],
)  # fmt: skip
def test_dividing_by_zero_gives_null(written: str) -> None:
    assert value(written, "FROM (VALUES (1)) AS t(n)") is None


@pytest.mark.parametrize(
    "written",
    ["ln(n - n)", "ln(-n)", "log(n - n)", "log(2, n - n)", "log(n - n, 2)", "log2(0)", "log10(-n)", "sqrt(-n)",
     "sqrt(-1)", "power(n - n, -1)", "(n - n) ^ (-n)", "acos(n + 1)", "asin(-n - 1)", "ln(sqrt(ln(n) - 1))"],
)  # fmt: skip
def test_outside_of_its_domain_a_function_gives_null(written: str) -> None:
    assert value(written, "FROM (VALUES (1)) AS t(n)") is None


@pytest.mark.parametrize(
    ("written", "due"),
    [("sqrt(0)", 0.0), ("sqrt(n)", 2.0), ("ln(1)", 0.0), ("power(0, n)", 0.0), ("power(n, -1)", 0.25),
     ("log(100)", 2.0), ("power(-n, 2)", 16.0), ("log(2, n)", 2.0), ("acos(1)", 0.0), ("sqrt(abs(-n))", 2.0),
     ("0 ^ (n - n)", 1.0)],
)  # fmt: skip
def test_inside_of_its_domain_it_gives_what_it_did(written: str, due: float) -> None:
    assert value(written, "FROM (VALUES (4)) AS t(n)") == pytest.approx(due)


@pytest.mark.parametrize(
    ("sql", "computes"),
    [
        ("SELECT 'inf'::float8", False), ("SELECT x FROM t WHERE x > 3 AND y IS NULL", False),
        ("SELECT CASE WHEN x > 1 THEN x ELSE COALESCE(y, x) END FROM t", False), ("SELECT x + 1 FROM t", True),
        ("SELECT exp(x) FROM t", True), ("SELECT SUM(x) FROM t", True),
        ("SELECT x FROM (SELECT a / b AS x FROM t) u", True),
    ],
)  # fmt: skip
def test_arithmetic_is_distinguished_from_copying(sql: str, computes: bool) -> None:
    assert has_arithmetic(parse_query(sql)) is computes


def test_overflow_is_null_wherever_it_stands() -> None:
    columns = "1e308 * 10 AS a, [1.0, exp(1000)] AS b, MAP {'x': exp(n)} AS c, 'inf'::float8::text AS d, 2.5 AS e"
    sql = f"SELECT {columns} FROM (SELECT 1e3 AS n)"
    result = sandbox.without_overflow(sandbox.run_query(sql, (), 10))
    assert result.rows == [(None, [1.0, None], {"x": None}, "inf", Decimal("2.5"))]
