"""What bounds leave of the parts of dates: no group is listed that no row can be in, and none is missing."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.compiler.functions.calendar import DAY_PARTS, PART_RANGES, extract_part, possible_parts
from dpsql.schema.model import Domain, to_number
from dpsql.types import DATE, TIMESTAMP, TIMESTAMPTZ, Type


def domain(first: dt.date, last: dt.date, type_: Type = TIMESTAMP) -> Domain:
    return Domain(type_, True, Fraction(to_number(first)), Fraction(to_number(last)))


@pytest.mark.parametrize(
    ("part", "first", "last", "due"),
    [
        ("month", "2024-03-05", "2024-04-20", (3, 4)), ("month", "2023-11-30", "2024-01-01", (1, 11, 12)),
        ("quarter", "2024-03-31", "2024-04-01", (1, 2)), ("week", "2020-12-31", "2021-01-04", (1, 53)),
        ("doy", "2023-12-31", "2024-01-01", (1, 365)), ("dow", "2024-01-06", "2024-01-07", (0, 6)),
        ("isodow", "2024-01-06", "2024-01-07", (6, 7)), ("day", "2024-02-28", "2024-03-01", (1, 28, 29)),
        ("month", "2024-01-01", "2024-12-01", None), ("month", "1990-01-01", "2024-12-01", None),
        ("minute", "2024-01-01", "2024-01-01", None), ("hour", "2024-01-01", "2024-01-02", None),
    ],
)  # fmt: skip
def test_parts_between_bounds(part: str, first: str, last: str, due: tuple[int, ...] | None) -> None:
    bounds = dt.datetime.fromisoformat(first), dt.datetime.fromisoformat(last)
    assert possible_parts(part, domain(*bounds)) == due
    if part in DAY_PARTS:
        assert possible_parts(part, domain(bounds[0].date(), bounds[1].date(), DATE)) == due


def test_hours_of_one_day() -> None:
    first = dt.datetime(2024, 3, 5, 8, 30)
    assert possible_parts("hour", domain(first, first.replace(hour=10, minute=0))) == (8, 9, 10)


def test_nothing_is_ruled_out_without_bounds_or_with_a_zone() -> None:
    first = dt.datetime(2024, 3, 5)
    assert possible_parts("month", Domain(TIMESTAMP)) is None
    assert possible_parts("month", domain(first, first, TIMESTAMPTZ)) is None
    assert possible_parts("month", domain(first, first - dt.timedelta(days=1))) is None


@given(
    st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
    st.timedeltas(dt.timedelta(0), dt.timedelta(days=2_000)),
    st.fractions(0, 1),
    st.sampled_from([*DAY_PARTS, "hour"]),
)
def test_every_moment_between_the_bounds_has_a_listed_part(
    first: dt.datetime, width: dt.timedelta, where: Fraction, part: str
) -> None:
    last = first + width
    moment = first + dt.timedelta(microseconds=int(where * (width // dt.timedelta(microseconds=1))))
    lowest, highest = PART_RANGES[part]
    values = possible_parts(part, domain(first, last)) or range(lowest, highest + 1)
    assert {extract_part(part, at) for at in (first, moment, last)} <= set(values)
