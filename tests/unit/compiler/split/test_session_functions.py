"""What a statement may ask about its surroundings becomes a literal, under the name that PostgreSQL gives it."""

import datetime as dt

import pytest

from dpsql.compiler.catalog.variables import Identity
from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.split.session_functions import replace_session_functions
from dpsql.errors import Error, InvalidParameter, Unsupported

NOW = dt.datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=dt.UTC)
WHO = Identity("ana", "clinic", "1.2.3", (("TimeZone", "UTC"), ("application_name", "psql")))


def written(sql: str, now: dt.datetime | None = NOW) -> str:
    return replace_session_functions(parse_query(sql), now, WHO).sql(dialect="duckdb")


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("version()", "'PostgreSQL 16.2 (dpsql 1.2.3)' AS \"version\""),
        ("pg_catalog.version()", "'PostgreSQL 16.2 (dpsql 1.2.3)' AS \"version\""),
        ("current_user", "'ana' AS \"current_user\""),
        ("session_user", "'ana' AS \"session_user\""),
        ("current_role", "'ana' AS \"current_role\""),
        ("current_database()", "'clinic' AS \"current_database\""),
        ("current_catalog", "'clinic' AS \"current_catalog\""),
        ("current_schema", "'public' AS \"current_schema\""),
        ("current_schema()", "'public' AS \"current_schema\""),
        ("pg_catalog.current_schema()", "'public' AS \"current_schema\""),
        ("current_schemas(true)", "['pg_catalog', 'public'] AS \"current_schemas\""),
        ("current_schemas(false)", "['public'] AS \"current_schemas\""),
        ("pg_backend_pid()", '0 AS "pg_backend_pid"'),
        ("current_date", "CAST('2024-05-06' AS DATE) AS \"current_date\""),
        ("now()", "CAST(CAST('2024-05-06 07:08:09.123456' AS TIMESTAMP) AS TIMESTAMPTZ) AS \"now\""),
        (
            "CURRENT_TIMESTAMP",
            "CAST(CAST('2024-05-06 07:08:09.123456' AS TIMESTAMP) AS TIMESTAMPTZ) AS \"current_timestamp\"",
        ),
        ("now() FROM t", "CAST('2024-05-06 07:08:09.123456' AS TIMESTAMP) AS \"now\" FROM t"),
        ("localtimestamp", "CAST('2024-05-06 07:08:09.123456' AS TIMESTAMP) AS \"localtimestamp\""),
        (
            "clock_timestamp()",
            "CAST(CAST('2024-05-06 07:08:09.123456' AS TIMESTAMP) AS TIMESTAMPTZ) AS \"clock_timestamp\"",
        ),
        ("localtime", "CAST('07:08:09.123456' AS TIME) AS \"localtime\""),
        ("current_setting('timezone')", "'UTC' AS \"current_setting\""),
        ("current_setting('no.such', true)", 'CAST(NULL AS TEXT) AS "current_setting"'),
        ("current_user AS me", "'ana' AS me"),
        ("upper(current_user)", "UPPER('ana')"),
        ('"current_role"', '"current_role"'),
        ("t.current_role", 't."current_role"'),
    ],
)
def test_surroundings_are_literals(asked: str, answer: str) -> None:
    assert written(f"SELECT {asked}") == f"SELECT {answer}"


def test_they_stand_for_themselves_anywhere() -> None:
    sql = written("SELECT a FROM (SELECT current_user FROM t WHERE d < current_date) s ORDER BY now()")
    assert "'ana' AS \"current_user\"" in sql and "CAST('2024-05-06' AS DATE)" in sql and "now" not in sql.lower()


@pytest.mark.parametrize("asked", ["current_date", "now()", "localtime", "statement_timestamp()"])
def test_without_a_clock_there_is_no_time(asked: str) -> None:
    with pytest.raises(Unsupported, match="time of day"):
        written(f"SELECT {asked}", None)


@pytest.mark.parametrize("asked", ["current_setting('no.such')", "current_setting()", "current_setting(a)"])
def test_settings_that_are_none_are_refused(asked: str) -> None:
    with pytest.raises((InvalidParameter, Unsupported)):
        written(f"SELECT {asked}")


def test_an_error_points_at_what_was_written(clinic: object) -> None:
    sql = "SELECT current_setting('nothing')"
    with pytest.raises(Error) as caught:
        written(sql)
    assert caught.value.span is not None and "nothing" in sql[caught.value.span.start : caught.value.span.end]


@pytest.mark.parametrize("asked", [
    "now() AT TIME ZONE 'Europe/Berlin'",
    "(CURRENT_TIMESTAMP) AT TIME ZONE 'Europe/Berlin'",
    "timezone('Europe/Berlin', now())",
])  # fmt: skip
def test_a_time_zone_applies_to_the_timestamp(asked: str) -> None:
    """Of a clock that shows UTC it would move the other way."""
    assert "AS TIMESTAMPTZ)" in written(f"SELECT {asked} AS t FROM x")
    assert "TIMESTAMPTZ" not in written("SELECT localtimestamp AT TIME ZONE 'Europe/Berlin' AS t FROM x")
