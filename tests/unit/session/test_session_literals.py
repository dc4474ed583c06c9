"""A text that is no value of its type is told before anything is charged, and an origin of DATE_BIN may be a text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpsql.base.intervals import Interval, format_interval, interval_parts
from dpsql.compiler.parse.parser import parse_query
from dpsql.errors import DataError, Error, InvalidSyntax, LimitExceeded
from dpsql.session.session import Session
from tests.support.shop import open_shop


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    session, reference = open_shop(tmp_path_factory.mktemp("shop"))
    yield session
    session.close()
    reference.close()


@pytest.mark.parametrize(
    ("written", "state", "words"),
    [
        ("'a'::int", "22P02", 'invalid input syntax for type integer: "a"'),
        ("'1.5'::bigint", "22P02", 'invalid input syntax for type bigint: "1.5"'),
        ("'99999999999'::int", "22003", 'value "99999999999" is out of range for type integer'),
        ("'web'::uuid", "22P02", 'invalid input syntax for type uuid: "web"'),
    ],
)
def test_a_wrong_text_costs_nothing(written: str, state: str, words: str, session: Session) -> None:
    with pytest.raises(DataError) as caught:
        session.execute(f"SELECT count(*) + 7001, {written} FROM orders")
    assert (caught.value.sqlstate, caught.value.message) == (state, words)
    assert not session.charged
    assert caught.value.position == 25


def test_right_texts_are_read(session: Session) -> None:
    answer = session.execute("SELECT ' 12 '::int, '-32768'::smallint, '6dbd1b5e1b2c4a359d0b0c1f6ae6c0de'::uuid::text")
    assert list(answer.rows) == [(12, -32768, "6dbd1b5e-1b2c-4a35-9d0b-0c1f6ae6c0de")]


def test_an_origin_may_be_a_text(session: Session) -> None:
    ask = "SELECT date_bin('30 days', made, {}) AS d, count(*) FROM orders GROUP BY d ORDER BY d"
    assert session.execute(ask.format("'2001-01-01'")).rows == session.execute(ask.format("DATE '2001-01-01'")).rows


@pytest.mark.parametrize("written", ["1_", "1__0", "1_a", "0o8"])
def test_a_number_with_something_behind_is_none(written: str) -> None:
    with pytest.raises(InvalidSyntax, match="trailing junk after numeric literal"):
        parse_query(f"SELECT {written}")


def test_a_long_number_is_not_worked_out() -> None:
    with pytest.raises(LimitExceeded):
        parse_query(f"SELECT 0x{'f' * 200_000}")


INTERVALS = [
    ("1 day 02:00:00", "1 day 02:00:00"), ("1 day ago", "-1 days"), ("-1 day 2:00", "-1 days +02:00:00"),
    ("1 mon -02:03:04", "1 mon -02:03:04"), ("1 02:03:04", "1 day 02:03:04"), ("1-2", "1 year 2 mons"),
    ("P0001-02-03T04:05:06", "1 year 2 mons 3 days 04:05:06"), ("1.5 days", "1 day 12:00:00"), ("-90", "-00:01:30"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "meaning"), INTERVALS)
def test_all_of_an_interval_literal_is_read_in_every_spelling(text: str, meaning: str, session: Session) -> None:
    spellings = (
        f"INTERVAL '{text}', '{text}'::interval, CAST('{text}' AS INTERVAL), ('{text}')::interval, INTERVAL E'{text}'"
    )
    rows = list(session.execute(f"SELECT {spellings}").rows)
    texts = [
        [str(part) if isinstance(part, Interval) else format_interval(*interval_parts(part)) for part in row]
        for row in rows
    ]
    assert texts == [[meaning] * 5]


@pytest.mark.parametrize(("written", "plain"), [
    ("INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '14 months'"), ("INTERVAL '3' DAY", "INTERVAL '3 days'"),
    ("INTERVAL '1.5' DAY", "INTERVAL '1 day'"), ("INTERVAL '3' WEEKS", "INTERVAL '21 days'"),
    ("INTERVAL(1) '1.25'", "INTERVAL '1.3 seconds'"), ("INTERVAL '2:03' MINUTE TO SECOND", "INTERVAL '123 seconds'"),
    ("'1-2'::INTERVAL YEAR", "INTERVAL '1 year'"), ("CAST('26:00' AS INTERVAL DAY TO HOUR)", "INTERVAL '26 hours'"),
    ("INTERVAL 3 DAY", "INTERVAL '3 days'"), ("INTERVAL '1 day' + 2 * INTERVAL '1 hour'", "INTERVAL '1 day 2 hours'"),
])  # fmt: skip
def test_fields_and_digits_of_an_interval(written: str, plain: str, session: Session) -> None:
    assert list(session.execute(f"SELECT {written} = {plain}, ({written})::text = ({plain})::text").rows) == [
        (True, True)
    ]


@pytest.mark.parametrize("text", ["1 day foo", "-P1D", "", "1 day 2 day", "P1D2"])
@pytest.mark.parametrize("query", [
    "SELECT INTERVAL '{}'", "SELECT '{}'::interval",
    "SELECT date_bin('{}', made, '2001-01-01'), count(*) FROM orders GROUP BY 1",
    "SELECT count(*) FROM orders WHERE made > TIMESTAMP '2024-01-01' - INTERVAL '{}'",
    "SELECT count(*), CAST('{}' AS INTERVAL) FROM orders",
])  # fmt: skip
def test_what_is_no_interval_is_refused_before_anything_is_charged(text: str, query: str, session: Session) -> None:
    charged = session.charged
    with pytest.raises(DataError) as caught:
        session.execute(query.format(text))
    message = f'invalid input syntax for type interval: "{text}"'
    assert (caught.value.sqlstate, caught.value.message) == ("22007", message)
    assert session.charged == charged and caught.value.position


@pytest.mark.parametrize("text", ["360 days ago", "-360 days", "@ 360 days ago", "P-360D", "-360 00:00", "-8640:00:00"])
def test_an_interval_over_private_rows_is_what_its_text_says(text: str, session: Session) -> None:
    def plan_of(written: str) -> str:
        ask = f"EXPLAIN SELECT count(*) FROM orders WHERE made > TIMESTAMP '2024-01-01' - {written}"
        return "\n".join(str(row[0]) for row in session.execute(ask).rows if "2024" in str(row[0]))

    expected = "2024-12-26"
    assert expected in plan_of(f"INTERVAL '{text}'")
    assert plan_of(f"INTERVAL '{text}'") == plan_of(f"'{text}'::interval") == plan_of("INTERVAL '-360 days'")


@pytest.mark.parametrize("text", ["29 Feb 2024", "20240229", "('2024-02-29 +01')", "Feb 29, 2024", "2/29/2024"])
def test_a_literal_beside_a_date_is_one_in_every_form_of_postgres(text: str, session: Session) -> None:
    """Over rows that are public or released, as over private ones; pgjdbc writes parentheses."""
    literal = text if text.startswith("(") else f"'{text}'"
    days = "(VALUES (DATE '2024-02-28'), (DATE '2024-02-29'), (DATE '2024-03-01')) AS t(d)"
    conditions = [f"d = {literal}", f"{literal} = d", f"d BETWEEN {literal} AND {literal}", f"d IN ({literal})",
                  f"d = {literal}::date", f"d::timestamp = {literal}",
                  f"coalesce(NULL, d) = coalesce({literal}, d)"]  # fmt: skip
    for condition in conditions:
        found = session.execute(f"SELECT d::text FROM {days} WHERE {condition}").rows
        assert list(found) == [("2024-02-29",)], condition
    latest = session.execute(f"SELECT kind FROM orders GROUP BY kind HAVING MAX(made) < {literal} ORDER BY 1").rows
    assert [kind for (kind,) in latest] == ["phone", "shop", "web"]


def test_a_column_of_texts_is_cast_as_postgres_casts_it(session: Session) -> None:
    texts = "('20240229'), ('29 Feb 2024 1:02'), ('2024-02-29 +01'), ('February 29, 2024'), "
    texts += "('2024-02-29T01:02:03Z'), (NULL)"
    ask = f"SELECT x::date::text, x::timestamp::text FROM (VALUES {texts}) t(x)"
    day = "2024-02-29"
    times = ["00:00:00", "01:02:00", "00:00:00", "00:00:00", "01:02:03"]
    assert list(session.execute(ask).rows) == [*((day, f"{day} {time}") for time in times), (None, None)]
    zoned = "SELECT (x::timestamptz AT TIME ZONE 'UTC')::text FROM (VALUES ('29 Feb 2024 1:02+03'), ('20240229')) t(x)"
    assert list(session.execute(zoned).rows) == [("2024-02-28 22:02:00",), ("2024-02-29 00:00:00",)]


def test_a_column_of_texts_becomes_bytes_as_postgres_reads_them(session: Session) -> None:
    ask = r"SELECT x::bytea FROM (VALUES ('\xDEAD'), ('\x de 00'), ('abc'), (NULL)) t(x)"
    assert [value for (value,) in session.execute(ask).rows] == [b"\xde\xad", b"\xde\x00", b"abc", None]
    with pytest.raises(DataError) as caught:
        session.execute(r"SELECT x::bytea FROM (VALUES ('\xDEA')) t(x)")
    assert (caught.value.sqlstate, caught.value.message) == ("22P02", "invalid input syntax for type bytea")


@pytest.mark.parametrize(
    "condition", ["MIN(made) < 'foo'", "MIN(made) BETWEEN '2020-01-01' AND 'never'", "MIN(made) + 'x' > MIN(made)"]
)
def test_a_literal_that_is_no_date_is_refused_before_the_charge(condition: str, session: Session) -> None:
    charged = session.charged
    with pytest.raises(DataError) as caught:
        session.execute(f"SELECT kind, MIN(made), MAX(qty) FROM orders GROUP BY kind HAVING {condition}")
    assert caught.value.sqlstate == "22007" and caught.value.position
    assert session.charged == charged


def test_what_is_added_to_a_timestamp_is_an_interval(session: Session) -> None:
    ask = "SELECT (t + '1 mon 2:00')::text, ('1 day ago' + t)::text, (t - '2024-01-30')::text "
    ask += "FROM (SELECT TIMESTAMP '2024-01-31' AS t) x"
    assert list(session.execute(ask).rows) == [("2024-02-29 02:00:00", "2024-01-30 00:00:00", "1 day")]


@pytest.mark.parametrize(
    ("written", "state", "words"),
    [
        ("'9e999'::float8", "22003", '"9e999" is out of range for type double precision'),
        ("'1e-999'::float8", "22003", '"1e-999" is out of range for type double precision'),
        ("'9e99'::real", "22003", '"9e99" is out of range for type real'),
        ("'x'::float8", "22P02", 'invalid input syntax for type double precision: "x"'),
        ("'zz'::int[]", "22P02", 'malformed array literal: "zz"'),
        ("'{1,x}'::int[]", "22P02", 'invalid input syntax for type integer: "x"'),
        ("TIMESTAMP '2024-01-01' AT TIME ZONE 'Foo'", "22023", 'time zone "Foo" not recognized'),
    ],
)
def test_values_out_of_range_and_wrong_arrays_and_zones_cost_nothing(
    written: str, state: str, words: str, session: Session
) -> None:
    charged = session.charged
    for sql in (f"SELECT count(*) + 7002, {written} FROM orders", f"SELECT {written}"):
        with pytest.raises(Error) as caught:
            session.execute(sql)
        assert (caught.value.sqlstate, caught.value.message) == (state, words)
    assert session.charged == charged


def test_arrays_are_read_as_postgres_writes_them(session: Session) -> None:
    ask = "SELECT count(*) > 0, '{1,2,NULL}'::int[], '{a,b}'::text[], '{}'::int[] FROM orders"
    assert list(session.execute(ask).rows) == [(True, [1, 2, None], ["a", "b"], [])]


def test_letters_of_zones_are_fixed_distances_from_utc(session: Session) -> None:
    ask = "SELECT (TIMESTAMP '2024-01-01 10:00' AT TIME ZONE 'CEST')::text, "
    ask += "(timezone('edt', TIMESTAMPTZ '2024-07-01 Z'))::text"
    assert list(session.execute(ask).rows) == [("2024-01-01 08:00:00+00", "2024-06-30 20:00:00")]
    ask = "SELECT count(*) FROM orders WHERE made AT TIME ZONE '{}' < TIMESTAMPTZ '2022-01-01 00:00+00'"
    assert session.execute(ask.format("CEST")).rows == session.execute(ask.format("UTC-2")).rows


@pytest.mark.parametrize("value", [b"\xde\x00'", b"", bytearray(b"a"), memoryview(b"\\x41")])
def test_bytes_are_bound(value: bytes, session: Session) -> None:
    """As a bytea, whose text is never read as SQL; beside a cast to one it is cast once."""
    for sql in ("SELECT ?", "SELECT ?::bytea", "SELECT CAST($1 AS bytea)", "SELECT x FROM (VALUES (?)) AS t(x)"):
        assert list(session.execute(sql, [value]).rows) == [(bytes(value),)]
    assert list(session.execute("SELECT count(*) > 0, $1 = $1 FROM orders", [value]).rows) == [(True, True)]


def test_bytes_are_no_text_over_private_rows(session: Session) -> None:
    charged = session.charged
    with pytest.raises(Error, match="no cast to bytea over private rows") as caught:
        session.execute("SELECT count(*) FROM orders WHERE note = ?", [b"a"])
    assert session.charged == charged and "decode" in str(caught.value.hint)
