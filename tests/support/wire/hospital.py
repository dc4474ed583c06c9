"""The hospital of the client matrix, once behind dpsql and once in PostgreSQL itself, with the same rows.

Law: a test that holds on PostgreSQL says what a client expects; the same test on `dpsql serve` says whether it gets it.
Statements lose so much (epsilon 1,000) that noise rounds away: counts are the same on both, sums within some per cent.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import duckdb
import psycopg

USER, PASSWORD = "ana", "correct horse: battery/staple"
DATABASE = "hospital"
OWNER = "owner"  # of all tables, as dpsql's catalog names who owns the data

SCHEMA = Path(__file__).resolve().parents[2] / "corpus" / "catalog" / "hospital.yaml"

TABLES = (
    """CREATE TABLE patients (patient_id bigint PRIMARY KEY, born date, sex text, insured boolean,
        weight decimal(6,2))""",
    """CREATE TABLE visits (visit_id bigint UNIQUE, patient_id bigint REFERENCES patients(patient_id), ward text,
        "at" timestamp, nights integer, cost double precision, paid decimal(10,2), planned boolean)""",
    """CREATE TABLE wards (ward text UNIQUE, floor smallint, beds integer, number bigint, rating real,
        share double precision, fee decimal(12,3), opened date, inspected timestamp, changed timestamptz, rounds time,
        rest interval, code uuid, open boolean)""",
)
ROWS = (
    """INSERT INTO patients SELECT i, DATE '1930-01-01' + CAST(i * 100 AS integer),
        CASE i % 4 WHEN 0 THEN 'f' WHEN 1 THEN 'm' WHEN 2 THEN 'x' END, i % 3 = 0, 40 + CAST(i AS decimal(6,2)) / 4
        FROM generate_series(1, 300) AS s(i)""",
    """INSERT INTO visits SELECT i, 1 + i % 300, CASE i % 3 WHEN 0 THEN 'cardiology' WHEN 1 THEN 'emergency'
        ELSE 'surgery' END, TIMESTAMP '2024-01-01 06:30:00' + i * INTERVAL '7 hours', CAST(i % 9 AS integer),
        CASE WHEN i % 10 > 0 THEN i * 1.25 END, CAST(i AS decimal(10,2)) * 2.5, i % 2 = 0
        FROM generate_series(1, 900) AS s(i)""",
    """INSERT INTO wards VALUES
        ('cardiology', 1, 20, 9007199254740993, 1.5, 0.1, 1234.500, '1999-12-31', '2001-02-03 04:05:06.789',
            '2024-06-01 12:00:00+00', '07:30:00', INTERVAL '1 year 2 months 3 days 4 hours',
            '0d1f7d1c-5c6b-4f0e-9a53-6d1f4a1c2b3d', true),
        ('emergency', -2, 2147483647, -9223372036854775807, -0.25, 1e-300, -0.001, '2024-02-29',
            '1960-01-01 00:00:00', '1970-01-01 00:00:00+00', '23:59:59.999999', INTERVAL '-1 day',
            'ffffffff-ffff-4fff-bfff-ffffffffffff', false),
        ('O''Brien "ä€😀" \\ ward', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)""",
)
COMMENTS = (
    "COMMENT ON TABLE patients IS 'One row each'",
    "COMMENT ON COLUMN patients.weight IS 'In kilograms'",
)
VIEW = "CREATE VIEW planned_visits AS SELECT * FROM visits WHERE planned"


@dataclass(frozen=True)
class Place:
    """A server that clients connect to; `private` where its answers are released ones."""

    host: str
    port: int
    private: bool
    certificate: Path | None = None  # of the authority that a client may trust
    database: str = DATABASE
    user: str = USER
    password: str = PASSWORD

    def url(self, scheme: str = "postgresql", password: str | None = None, database: str | None = None,
            **options: str) -> str:  # fmt: skip
        word = quote(self.password if password is None else password, safe="")
        asked = "&".join(f"{name}={quote(value)}" for name, value in options.items())
        where = f"{self.host}:{self.port}/{self.database if database is None else database}"
        return f"{scheme}://{self.user}:{word}@{where}" + (f"?{asked}" if asked else "")

    def environment(self) -> dict[str, str]:
        """For programs that read libpq's variables, and nothing else of the caller's."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return {**kept, "PGHOST": self.host, "PGPORT": str(self.port), "PGUSER": self.user, "PGAPPNAME": "matrix",
                "PGPASSWORD": self.password, "PGDATABASE": self.database, "PGCLIENTENCODING": "UTF8"}  # fmt: skip


def fill_duckdb(folder: Path) -> Path:
    """The schema's file, its rows beside it."""
    with duckdb.connect(str(folder / "hospital.duckdb")) as db:
        db.execute("SET TimeZone = 'UTC'")
        for statement in (*TABLES, *ROWS):
            db.execute(statement)
    schema = folder / "hospital.yaml"
    shutil.copy(SCHEMA, schema)
    return schema


def fill_postgres(url: str, folder: Path) -> None:
    """The same rows in a database of its own, for a role that logs in by password only."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
        db.execute(f"CREATE ROLE {OWNER}")
        db.execute(f"CREATE DATABASE {DATABASE} OWNER {OWNER}")
        host = "local all postgres trust\nlocal all all scram-sha-256\nhost all all all scram-sha-256\n"
        (folder / "data" / "pg_hba.conf").write_text(host)
        db.execute("SELECT pg_reload_conf()")
    with psycopg.connect(url, dbname=DATABASE, autocommit=True) as db:
        db.execute(f"SET ROLE {OWNER}")
        db.execute("SET TimeZone = 'UTC'")
        for statement in (*TABLES, *ROWS, *COMMENTS, VIEW, f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {USER}"):
            db.execute(statement)
