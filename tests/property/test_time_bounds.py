"""A timestamp's upper bound at the start of a month is an end: no chart has a group for that moment, and no row is
lost.

Rows lie at the bounds, a microsecond beside them and far beyond. Their charts, made without noise, are compared with
the periods of the calendar; a column of a key keeps its bound, since uniqueness was checked with it.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from itertools import product

import duckdb
import pytest

from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session
from tests.support.shop import Silence

SCHEMA = """
dpsql: 1
engine: duckdb:///visits.duckdb
privacy:
  unit: visits.patient
  budget: {epsilon: 1000000, delta: 0.9}
  query: {epsilon: 1, delta: 1e-6}
  contributions: {rows: 1000, groups: 1000}
tables:
  visits:
    unit: patient
    unique: [[patient, keyed]]
    columns:
      patient: {type: integer}
      seen: {type: timestamp, bounds: [2023-01-01, 2024-01-01]}
      zoned: {type: timestamptz, bounds: [2023-01-01, 2024-01-01]}
      late: {type: timestamp, bounds: [2023-01-01, 2023-12-31]}
      day: {type: date, bounds: [2023-01-01, 2023-12-31]}
      keyed: {type: timestamp, bounds: [2023-01-01, 2024-01-01]}
"""
END, STEP = dt.datetime(2024, 1, 1), dt.timedelta(microseconds=1)
MOMENTS = [END + STEP * n for n in (-2, -1, 0, 1)] + [
    END + dt.timedelta(days=n) for n in (-366, -365, -40, -1, 9, 4000)
]
PERIODS = {"year": 1, "quarter": 4, "month": 12, "week": 53, "day": 365}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder, draws = tmp_path_factory.mktemp("visits"), random.Random(1)
    (folder / "visits.yaml").write_text(SCHEMA, encoding="utf-8")
    with duckdb.connect(str(folder / "visits.duckdb")) as db:
        db.execute(
            "CREATE TABLE visits (patient INTEGER, seen TIMESTAMP, zoned TIMESTAMPTZ, late TIMESTAMP, day DATE, "
            "keyed TIMESTAMP)"
        )
        for patient, keyed in product(range(60), (END - STEP, END + STEP)):
            seen = draws.choice(MOMENTS)
            db.execute("INSERT INTO visits VALUES (?, ?, ? AT TIME ZONE 'UTC', ?, ?, ?)",
                       [patient, seen, seen, seen, seen.date(), keyed])  # fmt: skip
    opened = Session(open_dataset(folder / "visits.yaml"), sampler=Silence())
    yield opened
    opened.dataset.close()


@pytest.mark.parametrize("part", PERIODS)
@pytest.mark.parametrize("column", ["seen", "(zoned AT TIME ZONE 'UTC')", "late", "day"])
def test_charts_have_the_periods_before_the_bound_and_all_rows(session: Session, column: str, part: str) -> None:
    rows = session.execute(f"SELECT DATE_TRUNC('{part}', {column}), COUNT(*) FROM visits GROUP BY 1").rows
    assert len(rows) == PERIODS[part] and sum(count for _, count in rows) == 120
    assert session.execute(f"SELECT COUNT(*) FROM visits WHERE {column} >= '2024-01-01'").rows == [(0,)]


@pytest.mark.parametrize(("part", "groups"), [("year", 1), ("quarter", 4), ("month", 12), ("week", 52), ("doy", 365)])
def test_parts_are_those_of_the_time_before_the_bound(session: Session, part: str, groups: int) -> None:
    rows = session.execute(f"SELECT EXTRACT({part} FROM seen), COUNT(*) FROM visits GROUP BY 1").rows
    assert len(rows) == groups and sum(count for _, count in rows) == 120


def test_rows_at_the_bound_and_beyond_are_in_the_last_period(session: Session) -> None:
    path = session.dataset.schema.path.parent / "visits.duckdb"
    with duckdb.connect(str(path), read_only=True) as db:
        (expected,) = db.execute("SELECT COUNT(*) FROM visits WHERE seen >= '2023-12-31'").fetchall()
    chart = dict(session.execute("SELECT CAST(seen AS DATE), COUNT(*) FROM visits GROUP BY 1").rows)
    assert chart[dt.date(2023, 12, 31)] == expected[0] > 0


def test_a_column_of_a_key_keeps_its_bound_as_a_value(session: Session) -> None:
    """A patient has a row just before the bound and one just behind it: with one value they would be two rows of a
    key."""
    rows = session.execute("SELECT EXTRACT(year FROM keyed), COUNT(*) FROM visits GROUP BY 1 ORDER BY 1").rows
    assert [year for year, _ in rows] == [2023, 2024]
