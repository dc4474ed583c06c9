"""Periods of a calendar: each moment falls into one that is listed, as DuckDB has it."""

import datetime as dt
from fractions import Fraction

import duckdb
import pytest

from dpsql.compiler.functions.calendar import PART_RANGES, TRUNCATIONS, part_bounds, truncate_datetime, truncated_domain
from dpsql.compiler.plan.expressions import Call, Literal
from dpsql.compiler.render.expressions import render_expr
from dpsql.schema.model import Domain, to_number
from dpsql.types import DATE, TEXT, TIMESTAMP, TIMESTAMPTZ

MOMENTS = [
    dt.datetime(2024, 2, 29, 23, 59, 59, 999_999),
    dt.datetime(2023, 12, 31),
    dt.datetime(2024, 12, 30, 1, 2, 3),
    dt.datetime(1969, 12, 31, 12),
    dt.datetime(1, 1, 1),
]


POSTGRES = ("century", "millennium")
"""PostgreSQL's begin with the years 1, 101 and 1001; DuckDB's with 0, 100 and 1000."""


@pytest.mark.parametrize("part", [part for part in TRUNCATIONS if part not in POSTGRES])
def test_periods_begin_where_duckdb_says(part: str) -> None:
    for moment in MOMENTS if part != "decade" else MOMENTS[:-1]:  # the first decade began before the year 1
        assert [(truncate_datetime(part, moment),)] == duckdb.execute(
            "SELECT CAST(date_trunc(?, ?::TIMESTAMP) AS TIMESTAMP)", [part, moment]
        ).fetchall()


@pytest.mark.parametrize(
    ("part", "year", "start"),
    [("century", 2000, 1901), ("century", 2001, 2001), ("century", 1, 1), ("millennium", 2000, 1001),
     ("millennium", 2024, 2001), ("millennium", 1000, 1)],
)  # fmt: skip
def test_centuries_begin_where_postgresql_says(part: str, year: int, start: int) -> None:
    assert truncate_datetime(part, dt.datetime(year, 7, 4, 12)) == dt.datetime(start, 1, 1)
    moment = Call("date_trunc", (Literal(part, TEXT), Literal(dt.datetime(year, 7, 4, 12), TIMESTAMP)), TIMESTAMP)
    assert duckdb.execute(f"SELECT {render_expr(moment)}").fetchall() == [(dt.datetime(start, 1, 1),)]


@pytest.mark.parametrize("part", PART_RANGES)
def test_parts_stay_within_their_cycle(part: str) -> None:
    lower, upper = part_bounds(part, Domain(TIMESTAMP))
    assert lower is not None and upper is not None
    least, most = duckdb.execute(
        f"SELECT min(date_part('{part}', moment)), max(date_part('{part}', moment)) FROM "
        "generate_series(TIMESTAMP '2019-12-25 00:59:00', TIMESTAMP '2025-01-05', INTERVAL '481 minutes') s(moment)"
    ).fetchall()[0]
    assert lower <= least and most <= upper


@pytest.mark.parametrize("part", ["year", "quarter", "month", "week", "day"])
def test_every_day_within_bounds_has_its_period_in_the_list(part: str) -> None:
    first, last = dt.date(2023, 11, 30), dt.date(2025, 1, 1)
    domain = Domain(DATE, False, to_number(first), to_number(last))
    values = truncated_domain(part, domain, TIMESTAMP, 10_000).values
    assert values is not None and len(set(values)) == len(values)
    days = [first + dt.timedelta(days=n) for n in range((last - first).days + 1)]
    assert set(values) == {truncate_datetime(part, dt.datetime(d.year, d.month, d.day)) for d in days}


@pytest.mark.parametrize("part", ["hour", "minute"])
def test_every_minute_within_bounds_has_its_period_in_the_list(part: str) -> None:
    first, last = dt.datetime(2024, 2, 28, 23, 58, 30), dt.datetime(2024, 2, 29, 1, 1, 0)
    domain = Domain(TIMESTAMP, False, to_number(first), to_number(last))
    values = truncated_domain(part, domain, TIMESTAMP, 10_000).values
    moments = [first + dt.timedelta(seconds=n) for n in range(int((last - first).total_seconds()) + 1)]
    assert values is not None and set(values) == {truncate_datetime(part, at) for at in moments}


def test_a_time_zone_has_no_list() -> None:
    zoned = Domain(TIMESTAMPTZ, False, Fraction(0), Fraction(10**12))
    assert truncated_domain("month", zoned, TIMESTAMPTZ, 100).values is None


def test_years_past_the_calendar_have_no_list() -> None:
    far = Domain(DATE, False, Fraction(0), Fraction(10**9))
    assert truncated_domain("year", far, TIMESTAMP, 10_000).values is None
    assert part_bounds("year", far) == (None, None)
