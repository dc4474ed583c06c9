"""Time zones: every name and every hour of the list is DuckDB's; what is not listed is refused with a near name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import duckdb
import pytest

from dpsql.compiler.functions.time_zones import MAX_OFFSET_HOURS, UTC_NAMES, ZONE_OFFSETS, find_zone_name, suggest_zones
from dpsql.errors import Unsupported
from dpsql.schema.model import to_number
from dpsql.types import TIMESTAMP, TIMESTAMPTZ
from tests.support.expressions import bound, claimed
from tests.support.time_zones import hours, known

HOUR = 3_600_000_000


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def test_the_engine_knows_every_zone_and_keeps_its_hours(database: duckdb.DuckDBPyConnection) -> None:
    assert {name for name, _, _ in ZONE_OFFSETS.values()} <= known(database)
    for name, least, most in ZONE_OFFSETS.values():
        found = hours(name, 1970, database)
        assert least <= found[0] and found[1] <= most, name


def test_no_zone_was_ever_farther_than_is_claimed(database: duckdb.DuckDBPyConnection) -> None:
    for name in ("Asia/Manila", "America/Juneau", "Pacific/Kiritimati", "Pacific/Guam", "Europe/Berlin"):
        least, most = hours(name, 1, database)
        assert least > -MAX_OFFSET_HOURS and most < MAX_OFFSET_HOURS


def test_utc_by_any_name_is_utc(database: duckdb.DuckDBPyConnection) -> None:
    for name in UTC_NAMES - {"z"}:
        assert hours(name, 1, database) == (0, 0)


def test_names_in_any_case() -> None:
    assert find_zone_name("europe/BERLIN") == find_zone_name(" Europe/Berlin ") == "Europe/Berlin"
    assert find_zone_name("Berlin") is None and suggest_zones("Berlin") == ["Europe/Berlin"]
    assert "America/New_York" in suggest_zones("new york") and "Europe/Berlin" in suggest_zones("Europe/Berlim")


def test_local_time_and_back() -> None:
    local = bound("o AT TIME ZONE 'Europe/Berlin'")
    assert local.type == TIMESTAMP and bound("p AT TIME ZONE 'Europe/Berlin'").type == TIMESTAMPTZ
    assert bound("f AT TIME ZONE 'Europe/Berlin'").type == TIMESTAMP  # the day's midnight in UTC, as in PostgreSQL
    assert claimed(local).lower is None


def test_bounds_move_by_the_hours_of_the_zone() -> None:
    q = claimed(bound("q"))
    there = claimed(bound("q AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York'"))
    assert there.bounds == (q.bounds[0] - 5 * HOUR, q.bounds[1] - 4 * HOUR)
    back = claimed(bound("q AT TIME ZONE 'America/New_York'"))
    assert back.bounds == (q.bounds[0] + 4 * HOUR, q.bounds[1] + 5 * HOUR)
    days = claimed(bound("CAST(q AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York' AS date)"))
    assert days.bounds[0] == to_number(dt.date(2020, 1, 30))


@pytest.mark.parametrize(("sql", "hint"), [
    ("p AT TIME ZONE 'Berlin'", "Perhaps you meant 'Europe/Berlin'."),
    ("p AT TIME ZONE 'nowhere at all'", "Zones have the names of IANA's list, such as 'Europe/Berlin'."),
    ("p AT TIME ZONE t", "For example: admitted AT TIME ZONE 'Europe/Berlin'."),
])  # fmt: skip
def test_other_zones_are_refused_with_a_hint(sql: str, hint: str) -> None:
    with pytest.raises(Unsupported) as caught:
        bound(sql)
    assert caught.value.hint == hint
