"""Texts of dates and times, compared with a real PostgreSQL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import psycopg
import pytest

from dpsql.base.datetime_text import read_datetime
from tests.support import postgres

TEXTS = [
    "2024-02-29", "2024-2-9", "20240229", "20240229 123000", "20240229T1230", "2024-02-29 +00", "2024-02-29+05:30",
    "2024-02-29 12:30:00.25-08", "2024-02-29T12:30Z", "2024-02-29 12:30 UTC", "29 Feb 2024", "29 February 2024 9:30",
    "Feb 29, 2024", "Feb 29 2024", "29-Feb-2024", "2024-Feb-29", "2/29/2024", "02/29/2024 23:59", "2024/02/29", "epoch",
    "2023-02-29", "29 Feb 2023", "2024-13-01", "31/12/2024", "2024-02-29 25:00", "2024-02-29 +16", "Febtober 3, 2024",
    "nonsense", "", "29 Feb", "2024-W09",
]  # fmt: skip


@pytest.fixture(scope="module")
def reference() -> Iterator[psycopg.Connection]:
    with postgres.running() as server, psycopg.connect(server.database(), autocommit=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_the_time_that_postgresql_reads(text: str, reference: psycopg.Connection) -> None:
    try:
        row = reference.execute("SELECT %s::timestamptz, %s::timestamp", (text, text)).fetchone()
    except psycopg.Error:
        row = None
    read = read_datetime(text)
    assert (row is None) == (read is None)
    if row is not None and read is not None:
        ahead = read.ahead or dt.timedelta()
        assert (read.local - ahead, read.local) == (row[0].replace(tzinfo=None), row[1])


def test_words_are_those_of_the_clock() -> None:
    now = dt.datetime(2024, 3, 1, 7, 30)
    days = {"today": (2024, 3, 1), "tomorrow": (2024, 3, 2), " Yesterday": (2024, 2, 29)}
    for word, day in days.items():
        read = read_datetime(word, now)
        assert read is not None and read.local == dt.datetime(*day) and read.ahead is None
    assert read_datetime("now", now).local == now  # type: ignore[union-attr]
    assert read_datetime("today") is None
