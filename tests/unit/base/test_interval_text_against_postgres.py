"""Random interval texts, right ones and wrong ones, mean here what a real PostgreSQL says that they mean."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import psycopg
import pytest

from dpsql.base.interval_text import IntervalFields, IntervalTextError, read_interval_text
from tests.support.postgres import Server

pytestmark = pytest.mark.slow

TEXTS = 6_000
UNITS = ("day", "days", "mon", "month", "year", "yr", "y", "h", "hour", "hrs", "m", "min", "s", "sec", "ms", "us",
         "week", "w", "decade", "century", "mil", "c", "d", "foo", "and")  # fmt: skip
NUMBERS = ("1", "2", "-3", "+4", "1.5", "-0.25", ".5", "-.5", "5.", "100", "2000000", "- 3", "0")
TIMES = ("2:00", "02:03:04", "1:2:3.456789", "2:3.5", "100:00", "1:60", "1:59:60", ":5", "1:", "1::", "00:00:61")
ODD = ("@", ",", "1/2", "1-jan", "day1", "P1D", "x1", "1-2", "-1-2", "+1-11", "1-12", "1-2-3")
FIELDS = ("", "", "", "year", "month", "day", "hour", "minute", "second", "year to month", "day to hour",
          "day to minute", "day to second", "hour to minute", "hour to second", "minute to second")  # fmt: skip
READ = """
CREATE OR REPLACE FUNCTION pg_temp.read(t text, f text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text;
BEGIN
  EXECUTE format('SELECT CAST(%L AS interval %s)::text', t, f) INTO answer; RETURN answer;
EXCEPTION WHEN others THEN RETURN sqlstate;
END $$
"""


def write_words(rng: random.Random) -> str:
    def piece() -> str:
        kind = rng.random()
        if kind < 0.6:
            return rng.choice(NUMBERS) + rng.choice(("", " ")) + rng.choice(UNITS)
        if kind < 0.8:
            return rng.choice(("", "-", "+")) + rng.choice(TIMES)
        return rng.choice(NUMBERS if kind < 0.9 else ODD)

    words = rng.choice((" ", ", ")).join(piece() for _ in range(rng.randint(1, 4)))
    return rng.choice(("", "@ ")) + words + rng.choice(("", " ago"))


def write_iso(rng: random.Random) -> str:
    def numbers(count: int) -> list[str]:
        return [rng.choice(("1", "2", "-3", "1.5", ".5", "0001", "-.5", "+1")) for _ in range(rng.randint(0, count))]

    def half(letters: str, mark: str, digits: str) -> str:
        units = "".join(number + rng.choice(letters) for number in numbers(3))
        return rng.choice((units, units, mark.join(numbers(4)), digits))

    return "P" + half("YMWD", "-", "00010203") + rng.choice(("", "T" + half("HMS", ":", "040506")))


def says(text: str, fields: str) -> str:
    first, _, last = fields.partition(" to ")
    try:
        return str(read_interval_text(text, IntervalFields(first or None, last or first or None)))
    except IntervalTextError as error:
        return error.sqlstate


def is_forgotten(text: str) -> bool:
    """Half a day behind a time: PostgreSQL reads from right to left, and the time takes the place of the half."""
    return re.search(r":.*\.\d* ?(d|day|days|w|week|mon|month)\b", text) is not None


@pytest.mark.parametrize("write", [write_words, write_iso])
def test_texts_mean_what_postgres_says(write: Callable[[random.Random], str], postgres: Server) -> None:
    rng = random.Random(20)
    with psycopg.connect(postgres.database(), autocommit=True) as db:
        db.execute(READ)
        wrong = []
        for _ in range(TEXTS):
            text, fields = write(rng), rng.choice(FIELDS)
            row = db.execute("SELECT pg_temp.read(%s, %s)", (text, fields)).fetchone()
            assert row is not None
            theirs, ours = row[0], says(text, fields)
            refused = len(theirs) == len(ours) == 5 and theirs[:2] == ours[:2] == "22"
            if theirs != ours and not refused and not is_forgotten(text):
                wrong.append((text, fields, theirs, ours))
    assert wrong == []
