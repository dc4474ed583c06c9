"""The session's time zone: over private rows, released values and public ones; compared with a real PostgreSQL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import duckdb
import psycopg
import pytest

from dpsql.errors import Error
from dpsql.session.dataset.dataset import Dataset, open_dataset
from dpsql.session.session import Session
from tests.support import postgres
from tests.support.shop import Silence

# Every 15 minutes around both changes of 2024 in Berlin and New York; at 02:00 on 31 March clocks are set forward
# there, and back at 03:00 on 27 October.
ROWS = """
SELECT CAST(n AS BIGINT) AS id, t.seen, {local} AS shown, CAST({local} AS DATE) AS day
FROM (
  SELECT n, TIMESTAMPTZ '2024-03-08 12:00:00+00' + n * INTERVAL '15 minutes' AS seen FROM generate_series(0, 399) s(n)
  UNION ALL
  SELECT n + 1000, TIMESTAMPTZ '2024-03-29 12:00:00+00' + n * INTERVAL '15 minutes' FROM generate_series(0, 399) s(n)
  UNION ALL
  SELECT n + 2000, TIMESTAMPTZ '2024-10-25 12:00:00+00' + n * INTERVAL '15 minutes' FROM generate_series(0, 399) s(n)
) t
"""
PUBLIC = """
CREATE TABLE changes AS SELECT * FROM (VALUES
  (CAST(1 AS BIGINT), TIMESTAMPTZ '2024-03-31 00:59:59+00'), (2, TIMESTAMPTZ '2024-03-31 01:00:00+00'),
  (3, TIMESTAMPTZ '2024-10-27 00:30:00+00'), (4, TIMESTAMPTZ '2024-10-27 01:30:00+00'), (5, NULL)) t(n, seen)
"""
SCHEMA = """
dpsql: 1
engine: duckdb:///times.duckdb
ledger: sqlite:///times.ledger
privacy:
  unit: visits.id
  budget: {epsilon: 1000000, delta: 1e-3}
  query: {epsilon: 1000, delta: 1e-6}
  contributions: {rows: 1, groups: 1}
tables:
  visits:
    unit: id
    unique: [id]
    columns:
      id: {type: bigint}
      seen: {type: timestamptz, bounds: [2024-01-01T00:00:00Z, 2024-12-31T00:00:00Z]}
      shown: {type: timestamp, bounds: [2024-01-01, 2024-12-31]}
      day: {type: date, bounds: [2024-01-01, 2024-12-31]}
  changes:
    public: true
    columns: {n: {type: bigint}, seen: {type: timestamptz, nullable: true}}
"""
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "<+05:30>-05:30", "UTC-2", "UTC")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    folder = tmp_path_factory.mktemp("times")
    (folder / "times.yaml").write_text(SCHEMA, encoding="utf-8")
    with duckdb.connect(str(folder / "times.duckdb")) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("CREATE TABLE visits AS " + ROWS.format(local="timezone('UTC', t.seen)"))
        connection.execute(PUBLIC)
    dataset = open_dataset(folder / "times.yaml")
    yield dataset
    dataset.close()


@pytest.fixture(scope="module")
def reference() -> Iterator[psycopg.Connection]:
    with postgres.running() as server, psycopg.connect(server.database(), autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("CREATE TABLE visits AS " + ROWS.format(local="timezone('UTC', t.seen)"))
        connection.execute(PUBLIC)
        yield connection


def new_session(dataset: Dataset, zone: str = "UTC") -> Session:
    session = Session(dataset, sampler=Silence())
    session.set("timezone", zone)
    return session


def rounded(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    def plain(value: object) -> object:
        if isinstance(value, dt.datetime) and value.tzinfo is not None:
            return value.astimezone(dt.UTC)
        return value if isinstance(value, dt.date | str) or value is None else round(float(value))  # type: ignore[arg-type]

    return [tuple(map(plain, row)) for row in rows]


PRIVATE = [
    "SELECT CAST(seen AS date) AS d, COUNT(*) FROM visits GROUP BY 1 HAVING COUNT(*) > 0.5 ORDER BY 1",
    "SELECT date_trunc('day', seen) AS d, COUNT(*) FROM visits GROUP BY 1 HAVING COUNT(*) > 0.5 ORDER BY 1",
    "SELECT date_trunc('hour', seen) AS d, COUNT(*) FROM visits GROUP BY 1 HAVING COUNT(*) > 0.5 ORDER BY 1",
    "SELECT extract(hour FROM seen) AS h, COUNT(*) FROM visits GROUP BY 1 HAVING COUNT(*) > 0.5 ORDER BY 1",
    "SELECT to_char(seen, 'YYYY-MM-DD HH24') AS h, COUNT(*) FROM visits GROUP BY 1 HAVING COUNT(*) > 0.5 ORDER BY 1",
    "SELECT COUNT(*) FROM visits WHERE seen >= '2024-03-31 02:30'",
    "SELECT COUNT(*) FROM visits WHERE seen >= '2024-03-31 03:30:00' AND seen < '2024-10-27 02:30'",
    "SELECT COUNT(*) FROM visits WHERE seen >= TIMESTAMPTZ '2024-10-27 02:30'",
    "SELECT COUNT(*) FROM visits WHERE seen >= '2024-10-27 02:30:00+02'",
    "SELECT COUNT(*) FROM visits WHERE seen >= DATE '2024-03-31' AND seen < DATE '2024-04-01'",
    "SELECT COUNT(*) FROM visits WHERE seen >= TIMESTAMP '2024-03-31 02:15'",
    "SELECT COUNT(*) FROM visits WHERE seen > day",
    "SELECT COUNT(*) FROM visits WHERE seen > shown",
    "SELECT COUNT(*) FROM visits WHERE shown > seen",
    "SELECT COUNT(*) FROM visits WHERE day = seen::date",
    "SELECT COUNT(*) FROM visits WHERE seen::time > '12:00'",
    "SELECT COUNT(*) FROM visits WHERE seen::timestamp > '2024-10-27 02:15'",
    "SELECT COUNT(*) FROM visits WHERE shown::timestamptz > '2024-10-27 01:15+00'",
    "SELECT COUNT(*) FROM visits WHERE seen + INTERVAL '1 day' > '2024-10-27 12:00'",
    "SELECT COUNT(*) FROM visits WHERE seen + INTERVAL '1 day 24 hours' > '2024-10-27 12:00'",
    "SELECT COUNT(*) FROM visits WHERE seen - INTERVAL '1 month' > '2024-02-29 02:30'",
    "SELECT COUNT(*) FROM visits WHERE seen - shown > INTERVAL '1 hour'",
    "SELECT COUNT(*) FROM visits WHERE extract(epoch FROM seen) >= 1711846800",
    "SELECT COUNT(*) FROM visits WHERE extract(epoch FROM seen - '2024-03-31 00:00') >= 3600 * 5",
    "SELECT COUNT(*) FROM visits WHERE seen AT TIME ZONE 'UTC' >= '2024-03-31 01:00'",
    "SELECT COUNT(*) FROM visits WHERE seen AT TIME ZONE 'UTC+2' >= '2024-03-31 01:00'",
    "SELECT COUNT(*) FROM visits WHERE seen AT TIME ZONE INTERVAL '+02:00' >= '2024-03-31 01:00'",
    "SELECT COUNT(*) FROM visits WHERE seen AT TIME ZONE 'Asia/Tokyo' >= '2024-03-31 01:00'",
    "SELECT COUNT(*) FROM visits WHERE shown AT TIME ZONE 'Europe/Berlin' >= '2024-03-31 01:00'",
    "SELECT COUNT(*) FROM visits WHERE seen BETWEEN '2024-03-10 02:30' AND '2024-03-31'",
]
"""Those that give groups are filtered to the ones that there are: public groups may be empty."""


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("sql", PRIVATE)
def test_private_rows_are_read_by_the_clocks_of_the_zone(
    sql: str, zone: str, dataset: Dataset, reference: psycopg.Connection
) -> None:
    reference.execute(f"SET TimeZone = '{zone}'")
    expected = reference.execute(sql).fetchall()  # type: ignore[arg-type]
    assert rounded(new_session(dataset, zone).execute(sql).rows) == rounded(expected)


PUBLIC_STATEMENTS = [
    "SELECT n, seen FROM changes ORDER BY n",
    "SELECT n, CAST(seen AS text), CAST(seen AS date), CAST(seen AS timestamp) FROM changes ORDER BY n",
    "SELECT n, date_trunc('hour', seen), date_trunc('day', seen) FROM changes WHERE n <> 3 ORDER BY n",
    "SELECT n, extract(hour FROM seen), to_char(seen, 'YYYY-MM-DD HH24:MI') FROM changes ORDER BY n",
    "SELECT n, seen AT TIME ZONE 'UTC+2', seen AT TIME ZONE INTERVAL '-03:30' FROM changes ORDER BY n",
    "SELECT n, seen AT TIME ZONE '+05' FROM changes ORDER BY n",
    "SELECT CAST('2024-03-31 02:30' AS timestamptz), CAST('2024-10-27 02:30' AS timestamptz)",
    "SELECT CAST(DATE '2024-07-01' AS timestamptz), TIMESTAMP '2024-07-01 12:00' AT TIME ZONE 'America/New_York'",
    "SELECT TIMESTAMPTZ '2024-03-30 12:00+01' + INTERVAL '1 day'",
    "SELECT TIMESTAMPTZ '2024-03-30 12:00+01' + INTERVAL '24 hours'",
    "SELECT MAX(seen), MIN(seen) FROM changes",
]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("sql", PUBLIC_STATEMENTS)
def test_public_and_released_values_are_read_and_shown_by_them_too(
    sql: str, zone: str, dataset: Dataset, reference: psycopg.Connection
) -> None:
    reference.execute(f"SET TimeZone = '{zone}'")
    expected = reference.execute(sql).fetchall()  # type: ignore[arg-type]
    assert rounded(new_session(dataset, zone).execute(sql).rows) == rounded(expected)


NAMES = [
    "'Europe/Berlin'", "'europe/berlin'", "'+02'", "'+02:00'", "'-7'", "2", "-3.5", "'2.5'", "'UTC-2'", "'UTC+2'",
    "'GMT-02:00'", "'<+0530>-05:30'", "'CEST'", "'PST'", "'cet'", "'foo'", "'Mars/Phobos'", "''", "'  Europe/Berlin'",
    "INTERVAL '+02:00' HOUR TO MINUTE", "INTERVAL '-05:30' HOUR TO MINUTE", "INTERVAL '2' HOUR", "'170'", "'utc'",
    "'Z'", "'right/UTC'", "'GMT+5:30'", "'Etc/GMT-2'", "'A5'", "'Europe/Berlin '", "'+14:00'", "'UTC0'", "'gmt'",
    "'Zulu'", "UTC", "INTERVAL '1 day'", "'-00:30'", "0", "EST5EDT", "'Etc/UTC'",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_zone_has_the_names_that_postgresql_knows(name: str, dataset: Dataset, reference: psycopg.Connection) -> None:
    def outcome(run: object, shown: object) -> object:
        try:
            run(f"SET TIME ZONE {name}")  # type: ignore[operator]
        except psycopg.Error as error:
            return error.sqlstate
        except Error as error:
            return error.sqlstate
        return [shown(sql) for sql in ("SHOW TimeZone", "SELECT CAST(TIMESTAMPTZ '2024-07-01 12:00+00' AS text)")]  # type: ignore[operator]

    session = new_session(dataset)
    reference.execute("SET TimeZone = 'UTC'")
    expected = outcome(reference.execute, lambda sql: reference.execute(sql).fetchall())
    assert outcome(session.execute, lambda sql: list(session.execute(sql).rows)) == expected


def test_set_local_reset_and_rollback(dataset: Dataset) -> None:
    session = Session(dataset, opened_with={"timezone": "Asia/Kolkata"})

    def zone() -> object:
        return session.execute("SHOW TIME ZONE").rows[0][0]

    assert zone() == "Asia/Kolkata" == session.time_zone.name
    session.execute("BEGIN")
    session.execute("SET LOCAL TIME ZONE 'Europe/Berlin'")
    assert zone() == "Europe/Berlin"
    session.execute("COMMIT")
    assert zone() == "Asia/Kolkata"
    session.execute("BEGIN")
    session.execute("SET TimeZone = 'Europe/Berlin'")
    session.execute("ROLLBACK")
    assert zone() == "Asia/Kolkata"
    session.execute("SET TIME ZONE 'Europe/Berlin'")
    session.execute("SET TIME ZONE LOCAL")
    assert zone() == "Asia/Kolkata"
    session.execute("SELECT set_config('TimeZone', 'America/New_York', false)")
    assert zone() == "America/New_York"
    session.execute("RESET TimeZone")
    assert zone() == "Asia/Kolkata"


def charged(session: Session, sql: str) -> bool:
    session.execute(sql)
    return bool(session.charged)


def test_a_release_is_found_again_in_the_zones_in_which_it_is_the_same_question(dataset: Dataset) -> None:
    by_day = "SELECT CAST(seen AS date) AS d, COUNT(*) AS asked_by_day FROM visits WHERE id > 7 GROUP BY 1"
    utc, berlin, fixed = (new_session(dataset, zone) for zone in ("UTC", "Europe/Berlin", "+02"))
    assert charged(utc, by_day)
    assert charged(berlin, by_day)  # other days
    assert charged(fixed, by_day)
    assert not charged(new_session(dataset, "Etc/UTC"), by_day)
    assert not charged(new_session(dataset, "europe/berlin"), by_day)
    alike = "SELECT COUNT(*) AS asked_alike FROM visits WHERE id > 8"
    assert charged(utc, alike)
    assert not charged(berlin, alike)  # no clock has a say in it


def test_what_is_remembered_of_a_release_is_shown_by_the_clocks_of_the_zone(dataset: Dataset) -> None:
    """The release is one, and its text is another in each zone."""
    at = "TIMESTAMPTZ '2024-03-31 01:00:00+00'"
    sql = f"SELECT CAST(seen AS text) AS remembered, COUNT(*) FROM visits WHERE seen IN ({at}) GROUP BY seen"
    session, shown = new_session(dataset), dict[str, list[tuple[list[Any], bool]]]()
    for zone in ("UTC", "Europe/Berlin", "Asia/Kolkata", "UTC", "Europe/Berlin"):
        session.execute(f"SET TIME ZONE '{zone}'")
        shown.setdefault(zone, []).append((session.execute(sql).rows, bool(session.charged)))
    texts = {zone: [rows[0][0] for rows, _ in found] for zone, found in shown.items()}
    assert texts["UTC"] == ["2024-03-31 01:00:00+00"] * 2
    assert texts["Europe/Berlin"] == ["2024-03-31 03:00:00+02"] * 2
    assert texts["Asia/Kolkata"] == ["2024-03-31 06:30:00+05:30"]
    assert [charged for _, charged in shown["UTC"]] == [True, False] and not shown["Asia/Kolkata"][0][1]


def test_what_fills_a_hole_depends_on_the_zone_too(dataset: Dataset) -> None:
    sql = "SELECT COUNT(*) FROM visits WHERE day >= (SELECT MAX(CAST(seen AS date)) FROM changes WHERE n < 3)"
    sql = sql.replace("n < 3", "n = 1")  # 00:59:59 on 31 March: the day before in New York
    utc, new_york = new_session(dataset), new_session(dataset, "America/New_York")
    assert charged(utc, sql) and charged(new_york, sql)
    assert new_york.execute(sql).rows[0][0] > utc.execute(sql).rows[0][0] + 50


def test_the_day_is_that_of_the_zone(dataset: Dataset) -> None:
    def days(zone: str) -> list[object]:
        session = new_session(dataset, zone)
        session.clock = lambda: dt.datetime(2024, 10, 27, 0, 30, tzinfo=dt.UTC)
        return list(session.execute("SELECT CURRENT_DATE, LOCALTIMESTAMP, now()").rows[0])

    now = dt.datetime(2024, 10, 27, 0, 30, tzinfo=dt.UTC)
    assert days("America/New_York") == [dt.date(2024, 10, 26), dt.datetime(2024, 10, 26, 20, 30), now]
    # 02:30 comes twice on that day, and this is the first time.
    assert days("Europe/Berlin") == [dt.date(2024, 10, 27), dt.datetime(2024, 10, 27, 2, 30), now]


def test_lists_of_moments_are_in_utc_whatever_the_zone(dataset: Dataset) -> None:
    found = new_session(dataset, "Europe/Berlin").execute("SELECT array_agg(seen ORDER BY n) FROM changes WHERE n < 2")
    assert found.rows == [([dt.datetime(2024, 3, 31, 0, 59, 59, tzinfo=dt.UTC)],)]
    assert found.rows[0][0][0].tzinfo is dt.UTC


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CAST(seen AS text), COUNT(*) FROM visits GROUP BY 1",
        "SELECT COUNT(*) FROM visits WHERE 'seen ' || seen > 'b'",
    ],
)
def test_what_is_not_answered_is_refused_before_a_charge(sql: str, dataset: Dataset) -> None:
    with pytest.raises(Error) as caught:
        new_session(dataset, "Europe/Berlin").execute(sql)
    assert "to_char" in (caught.value.hint or "")
    assert not caught.value.charge
