"""Times are rounded to the grid of the column that they are compared with; windows keep their widths."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.compiler.analysis.canonical import canonicalize
from dpsql.compiler.compile import compile_query
from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.expressions import Compare, Literal, split_conjuncts
from dpsql.compiler.plan.relations import Filter
from dpsql.compiler.rewrite.snap_times import snap_times
from dpsql.compiler.settings import default_settings
from dpsql.compiler.split.split import split_query
from dpsql.schema.model import Resolved, Snap

NOW = dt.datetime(2024, 3, 1, 12, 0, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
SNAPS = [Snap(15, "minute"), Snap(1, "hour"), Snap(6, "hour"), Snap(1, "day"), Snap(10, "day"), Snap(1, "week"),
         Snap(2, "week")]  # fmt: skip
MOMENTS = st.datetimes(dt.datetime(1, 1, 20), dt.datetime(9999, 12, 1))


@pytest.fixture()
def calls(resolved: Callable[[str], Resolved]) -> Resolved:
    return resolved("snap")


def asked(sql: str, calls: Resolved) -> Aggregate:
    return canonicalize(split_query(parse_query(sql), calls.schema, NOW).releases[0].aggregate)


def ends(aggregate: Aggregate) -> tuple[dt.datetime, dt.datetime]:
    """Of a window: the lower and the upper end."""
    assert isinstance(aggregate.input, Filter)
    lower = upper = None
    for part in split_conjuncts(aggregate.input.condition):
        assert isinstance(part, Compare)
        if isinstance(part.left, Literal):
            lower = part.left.value
        else:
            assert isinstance(part.right, Literal)
            upper = part.right.value
    assert isinstance(lower, dt.datetime) and isinstance(upper, dt.datetime)
    return lower, upper


# --- grids -----------------------------------------------------------------------------------------------------------


@given(MOMENTS, st.sampled_from(SNAPS))
def test_rounding_goes_down_by_less_than_a_step_and_only_once(moment: dt.datetime, snap: Snap) -> None:
    rounded = snap.round_down(moment)
    assert isinstance(rounded, dt.datetime)
    assert dt.timedelta(0) <= moment - rounded < snap.step
    assert snap.round_down(rounded) == rounded and snap.next_step(moment) == rounded + snap.step


@given(MOMENTS, st.sampled_from(SNAPS))
def test_dates_and_aware_timestamps_have_the_same_grid(moment: dt.datetime, snap: Snap) -> None:
    zone = dt.timezone(dt.timedelta(hours=5))
    assert snap.round_down(moment.replace(tzinfo=dt.UTC).astimezone(zone)) == snap.round_down(moment).replace(
        tzinfo=dt.UTC
    )
    midnight = dt.datetime(moment.year, moment.month, moment.day)
    assert snap.round_down(moment.date()) == snap.round_down(midnight).date()


def test_weeks_begin_on_mondays() -> None:
    for days in range(20):
        monday = Snap(1, "week").round_down(dt.date(2024, 2, 25) + dt.timedelta(days=days))
        assert monday.weekday() == 0


def test_what_no_calendar_has_is_left_alone() -> None:
    assert Snap(10, "day").round_down(dt.date.min) == dt.date.min
    assert Snap(1, "day").next_step(dt.date.max) == dt.date.max


# --- windows ---------------------------------------------------------------------------------------------------------


@given(start=st.datetimes(dt.datetime(2023, 12, 1), dt.datetime(2024, 12, 1)), minutes=st.integers(1, 3000),
       upper=st.sampled_from(["<", "<="]))  # fmt: skip
def test_a_window_does_not_become_empty_and_keeps_whole_steps(
    start: dt.datetime, minutes: int, upper: str, resolved: Callable[[str], Resolved]
) -> None:
    end = start + dt.timedelta(minutes=minutes)
    before = asked(f"SELECT COUNT(*) FROM calls WHERE at >= '{start}' AND at {upper} '{end}'", resolved("snap"))
    after = snap_times(before, resolved("snap").schema).aggregate
    low, high = ends(after)
    assert low < high and {low.minute, low.second, high.minute, high.second} == {0}
    assert start - HOUR < low <= start and end - HOUR < high < end + HOUR
    if minutes % 60 == 0:
        assert high - low == end - start
    assert snap_times(after, resolved("snap").schema).aggregate == after


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM calls WHERE at >= now() - INTERVAL '24 hours'",
        "SELECT COUNT(*) FROM calls WHERE NOT (now() < at)",
        "SELECT date_trunc('hour', at), SUM(seconds) FROM calls WHERE at BETWEEN now() - INTERVAL '1 hour' AND now() "
        "GROUP BY 1",
        "SELECT COUNT(*) FROM recent WHERE moment > now()",
        "SELECT COUNT(*) FROM people WHERE joined > current_date - 30",
        "SELECT COUNT(*) FROM (SELECT person, MIN(paid) AS first FROM calls GROUP BY person) s WHERE first >= now()",
    ],
)
def test_within_a_step_it_is_the_same_question(sql: str, calls: Resolved) -> None:
    settings = default_settings(calls.schema.privacy).statement

    def hashes(*minutes: int) -> set[str]:
        times = (NOW + dt.timedelta(minutes=m) for m in minutes)
        return {step.plan_hash for now in times for step in compile_query(sql, calls, settings, (), now).steps}

    assert len(hashes(*range(0, 60, 7), 59)) == 1
    assert hashes(59) != hashes(7 * 24 * 60 + 59)


def test_a_statement_on_the_grid_is_the_same_question_with_and_without_it(calls: Resolved) -> None:
    """Declaring a grid, or another one, asks no paid question anew."""
    settings = default_settings(calls.schema.privacy).statement
    tables = (replace(t, columns=tuple(replace(c, snap=None) for c in t.columns)) for t in calls.schema.tables)
    plain = replace(calls, schema=replace(calls.schema, tables=tuple(tables)))
    on, off = (f"SELECT COUNT(*) FROM calls WHERE at >= '2024-03-01 12:{minute}'" for minute in ("00", "01"))
    hashes = [compile_query(sql, schema, settings).steps[0].plan_hash for sql in (on, off) for schema in (calls, plain)]
    assert hashes[0] == hashes[1] == hashes[2] != hashes[3]
    assert compile_query(on, calls, settings).notices == () != compile_query(off, calls, settings).notices
