"""The time zone of a client's machine, and of SET: dpsql and PostgreSQL give the same texts and parameters."""

from __future__ import annotations

import datetime as dt

import psycopg
import pytest

from tests.support.wire import psql
from tests.support.wire.hospital import Place

MOMENTS = """
SELECT TIMESTAMPTZ '2024-03-31 00:59:59+00', CAST('2024-03-31 02:30' AS timestamptz),
       CAST('2024-10-27 02:30' AS timestamptz), TIMESTAMPTZ '1850-01-01 00:00:00+00', CAST(NULL AS timestamptz),
       CAST(TIMESTAMPTZ '2024-12-31 23:30:00+00' AS date), TIMESTAMPTZ '2024-07-01 12:00:00.25-07'
"""
ZONES = ("Europe/Berlin", "america/new_york", "Asia/Kolkata", "UTC-2", "+5", "GMT-05:30", "UTC")


@pytest.mark.parametrize("zone", ZONES)
def test_psql_shows_moments_by_the_clocks_of_its_machine(zone: str, served: Place, reference: Place) -> None:
    script = f"SHOW TimeZone;\n{MOMENTS};"
    assert psql.run(served, script, PGTZ=zone) == psql.run(reference, script, PGTZ=zone)


def talk(place: Place) -> list[object]:
    said: list[object] = []
    with psycopg.connect(place.url(), autocommit=True, options="-c timezone=Asia/Kolkata") as db:
        said.append(db.info.parameter_status("TimeZone"))
        db.execute("SET TIME ZONE 'Europe/Berlin'")
        said.append(db.info.parameter_status("TimeZone"))
        noon = dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC)
        for binary in (False, True):
            row = db.execute("SELECT %s::timestamptz, %s::timestamptz, %s::timestamptz::text",
                             (noon, "2024-10-27 02:30", noon), binary=binary).fetchone()  # fmt: skip
            assert row is not None
            said.append([value.isoformat() if isinstance(value, dt.datetime) else value for value in row])
        with pytest.raises(psycopg.Error) as caught:
            db.execute("SET TIME ZONE 'Mars/Phobos'")
        said.append((caught.value.sqlstate, str(caught.value).partition("\n")[0]))
        db.execute("BEGIN")
        db.execute("SET LOCAL TimeZone TO 'America/New_York'")
        said.append(db.info.parameter_status("TimeZone"))
        db.execute("COMMIT")
        said.append(db.info.parameter_status("TimeZone"))
        db.execute("RESET TimeZone")
        said.append(db.info.parameter_status("TimeZone"))
    return said


def test_psycopg_sees_each_change(served: Place, reference: Place) -> None:
    assert talk(served) == talk(reference)


@pytest.mark.parametrize("zone", ["Mars/Phobos", "CEST"])
def test_a_zone_that_is_none_ends_the_start_as_in_postgresql(zone: str, served: Place, reference: Place) -> None:
    for place in (served, reference):
        with pytest.raises(psycopg.OperationalError, match=f'invalid value for parameter "TimeZone": "{zone}"'):
            psycopg.connect(place.url(), options=f"-c timezone={zone}")


def test_a_zone_that_no_engine_knows_does_not(served: Place) -> None:
    with psycopg.connect(served.url(), options="-c timezone=CET-1CEST,M3.5.0,M10.5.0/3") as db:
        assert db.info.parameter_status("TimeZone") == "UTC"
