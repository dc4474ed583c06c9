"""Interval texts mean what PostgreSQL says; `test_interval_text_against_postgres.py` tries many more."""

from __future__ import annotations

import pytest

from dpsql.base.interval_text import IntervalFields, IntervalTextError, read_interval_text

READ = [
    ("1 day 02:00:00", "1 day 02:00:00"), ("1 day ago", "-1 days"), ("@ 1 day ago", "-1 days"),
    ("-1 day 2:00", "-1 days +02:00:00"), ("1 mon -02:03:04", "1 mon -02:03:04"), ("1 02:03:04", "1 day 02:03:04"),
    ("1-2", "1 year 2 mons"), ("-1-2", "-1 years -2 mons"), ("P0001-02-03T04:05:06", "1 year 2 mons 3 days 04:05:06"),
    ("P-1D", "-1 days"), ("P1Y2M3W4DT5H6M7.5S", "1 year 2 mons 25 days 05:06:07.5"), ("PT36H", "36:00:00"),
    ("P00010203T040506", "1 year 2 mons 3 days 04:05:06"), ("3", "00:00:03"), ("1.5", "00:00:01.5"),
    ("1.5 months", "1 mon 15 days"), ("0.7 years", "8 mons"), ("1.5 weeks", "10 days 12:00:00"),
    ("2:3.5", "00:02:03.5"), ("1 day, 2 hours", "1 day 02:00:00"), ("1year 2mon", "1 year 2 mons"),
    ("- 3 days", "-3 days"), ("1 mil 1 c 1 dec", "1110 years"), ("1 quarter", "3 mons"),
    ("1 year 2 mons -3 days 04:05:06.5 ago", "-1 years -2 mons +3 days -04:05:06.5"),
]  # fmt: skip
FIELDS = [
    ("1-2", IntervalFields("year", "month"), "1 year 2 mons"), ("1 02:03:04", IntervalFields("day", "hour"),
     "1 day 02:00:00"), ("2:03", IntervalFields("minute", "second"), "00:02:03"),
    ("1.5", IntervalFields("day", "day"), "1 day"), ("14 mons 3 days", IntervalFields("year", "year"), "1 year"),
    ("3", IntervalFields("hour", "hour"), "03:00:00"), ("1.2345", IntervalFields(precision=3), "00:00:01.235"),
]  # fmt: skip
SYNTAX, FIELD, RANGE = "22007", "22015", "22008"
REFUSED = [
    ("1 day foo", SYNTAX), ("", SYNTAX), ("-P1D", SYNTAX), ("p1d", SYNTAX), ("1 day 2 days", SYNTAX), ("day", SYNTAX),
    ("P1D2", SYNTAX), ("1.2.3 days", SYNTAX), ("1 day 1 ago", SYNTAX),
    ("1year2mon", SYNTAX), ("1 day é", SYNTAX), ("١ day", SYNTAX),
    ("1-13", FIELD), ("1:60", FIELD), ("3000000000 days", FIELD), ("200000000 years", RANGE), ("1" * 2000, SYNTAX),
]  # fmt: skip


@pytest.mark.parametrize(("text", "meaning"), READ)
def test_all_of_a_text_is_read(text: str, meaning: str) -> None:
    assert str(read_interval_text(text)) == meaning


@pytest.mark.parametrize(("text", "fields", "meaning"), FIELDS)
def test_fields_of_the_type_say_what_a_number_is_and_what_is_kept(
    text: str, fields: IntervalFields, meaning: str
) -> None:
    assert str(read_interval_text(text, fields)) == meaning


@pytest.mark.parametrize(("text", "state"), REFUSED)
def test_what_cannot_be_read_is_refused(text: str, state: str) -> None:
    with pytest.raises(IntervalTextError) as caught:
        read_interval_text(text)
    assert caught.value.sqlstate == state
