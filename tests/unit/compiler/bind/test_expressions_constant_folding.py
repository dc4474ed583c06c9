"""Expressions of literals become literals when they are bound, where Python and the engine agree."""

import datetime as dt

import duckdb
import pytest

from dpsql.compiler.plan.expressions import Call, Literal
from dpsql.compiler.render.expressions import render_expr
from dpsql.errors import Error
from dpsql.types import BIGINT, DATE, TEXT, TIMESTAMP, TIMESTAMPTZ
from tests.support.expressions import bound


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("DATE '2024-01-31' + INTERVAL '1 month'", Literal(dt.datetime(2024, 2, 29), TIMESTAMP)),
        ("TIMESTAMP '2024-01-01 12:00' - INTERVAL '1 day 13 hours'", Literal(dt.datetime(2023, 12, 30, 23), TIMESTAMP)),
        ("TIMESTAMP '2024-03-05' + make_interval(days => 10, hours => -1)",
         Literal(dt.datetime(2024, 3, 14, 23), TIMESTAMP)),
        ("TIMESTAMP '2024-03-05' + make_interval(0, 1)", Literal(dt.datetime(2024, 4, 5), TIMESTAMP)),
        ("DATE '2024-03-05' + make_interval(mins := 5)", Literal(dt.datetime(2024, 3, 5, 0, 5), TIMESTAMP)),
        ("TIMESTAMP '2024-03-05' + (-59 || ' month')::interval", Literal(dt.datetime(2019, 4, 5), TIMESTAMP)),
        ("TIMESTAMP '2024-03-05' - concat('2', ' ', 'days')::interval", Literal(dt.datetime(2024, 3, 3), TIMESTAMP)),
        ("DATE '2024-03-05' - CAST('10 days' AS interval)", Literal(dt.datetime(2024, 2, 24), TIMESTAMP)),
        ("TIMESTAMP '2024-03-05' + (-3) * INTERVAL '1 day'", Literal(dt.datetime(2024, 3, 2), TIMESTAMP)),
        ("date_trunc('month', DATE '2024-03-05') - INTERVAL '1 day'", Literal(dt.datetime(2024, 2, 29), TIMESTAMP)),
        ("(SELECT date_trunc('year', TIMESTAMP '2024-03-05 01:00'))", Literal(dt.datetime(2024, 1, 1), TIMESTAMP)),
        ("((SELECT (SELECT 1 AS one)) + 2)", Literal(3, BIGINT)),
        ("DATE '2024-01-01' + 31", Literal(dt.date(2024, 2, 1), DATE)),
        ("DATE '2024-01-01' - 3000000", Literal(None, DATE)),
        ("make_date(2024, 12, 1)", Literal(dt.date(2024, 12, 1), DATE)),
        ("make_date(2023, 2, 29)", Literal(None, DATE)),
        ("to_timestamp(1704067200)", Literal(dt.datetime(2024, 1, 1, tzinfo=dt.UTC), TIMESTAMPTZ)),
        ("to_timestamp(1704067200) - INTERVAL '1 month'",
         Literal(dt.datetime(2023, 12, 1, tzinfo=dt.UTC), TIMESTAMPTZ)),
        ("extract(year FROM DATE '2024-03-05') - 1", Literal(2023, BIGINT)),
        ("'%' || 'fell' || '%'", Literal("%fell%", TEXT)),
        ("concat('%', 'é', 7)", Literal("%é7", TEXT)),
        ("upper(left('emergency', 3))", Literal("EME", TEXT)),
        ("to_char(DATE '2024-03-05', 'YYYY-MM')", Literal("2024-03", TEXT)),
        ("-7 / 2", Literal(-3, BIGINT)),
        ("7 % 0", Literal(None, BIGINT)),
        ("2 * 3 + 7 % 4", Literal(9, BIGINT)),
    ],
)  # fmt: skip
def test_literals_make_a_literal(sql: str, value: Literal) -> None:
    assert bound(sql) == value


@pytest.mark.parametrize(
    "sql",
    [
        "to_timestamp(0.1)",  # the last microsecond is the engine's
        "to_timestamp(99999999999)",
        "to_timestamp(1704067200) - INTERVAL '1 month 1 day'",  # in another order with a zone
        "TIMESTAMP '9999-12-31' + INTERVAL '1 month'",
        "upper('é')",
        "repeat(repeat('x', 100), 1000)",  # long text is not made here
    ],
)
def test_the_rest_is_left_to_the_engine(sql: str) -> None:
    assert isinstance(bound(sql), Call)


ADDED = [f"{at} {op} INTERVAL '{span}'" for at in ("TIMESTAMP '2024-02-29 23:59:59.999999'", "DATE '1900-12-31'",
         "TIMESTAMPTZ '2024-03-31 00:00:00+00:00'", "TIMESTAMPTZ '1600-12-31 23:00:00+00:00'") for op in "+-"
         for span in ("1 month", "11 months", "4 years", "1 day", "100 days", "25 hours", "00:00:00.000001",
                      "1 year 2 months 3 days 04:05:06")]  # fmt: skip


CONSTANTS = [*ADDED, "make_date(2024, 2, 29)", "to_timestamp(1704067201)", "to_timestamp(-1)", "'a' || 'é'",
             "DATE '0001-01-01' + 3652058"]  # fmt: skip


def test_the_engine_says_the_same() -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for sql in CONSTANTS:
            folded = bound(sql)
            ((same,),) = connection.execute(f"SELECT ({sql}) IS NOT DISTINCT FROM ({render_expr(folded)})").fetchall()
            assert same, (sql, folded)


def test_a_select_of_rows_or_of_an_aggregate_is_none() -> None:
    for sql in ("(SELECT 1 WHERE false)", "(SELECT count(*))", "(SELECT 1, 2)", "(SELECT 1 LIMIT 0)"):
        with pytest.raises(Error, match="sub-select"):
            bound(sql)
