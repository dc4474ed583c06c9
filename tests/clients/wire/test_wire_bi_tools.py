"""Statements in the style of tools that are not installed here: Metabase, Tableau, Grafana, Power BI and DBeaver.

No more is claimed than that these run: what a tool sends when it connects and looks around is asked of PostgreSQL and
of dpsql, and the same columns come back; what it asks of data is answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from tests.support.wire.hospital import Place

CONNECTING = {
    "metabase": (
        "SET extra_float_digits = 3", "SET application_name = 'Metabase v0.50'", "SHOW TRANSACTION ISOLATION LEVEL",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "BEGIN READ ONLY", "SELECT 1", "ROLLBACK",
        "SELECT n.nspname AS schema, c.relname AS name, CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'v' THEN 'VIEW' END"
        " AS type, d.description AS description FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
        " ON c.relnamespace = n.oid LEFT JOIN pg_catalog.pg_description d ON c.oid = d.objoid AND d.objsubid = 0"
        " WHERE c.relkind IN ('r', 'v') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 1, 2",
        "SELECT c.column_name AS name, c.udt_name AS \"database-type\", c.ordinal_position - 1 AS \"position\","
        " c.table_schema AS \"table-schema\", c.table_name AS \"table-name\" FROM information_schema.columns c"
        " WHERE c.table_schema = 'public' AND c.table_name = 'wards' ORDER BY 3",
    ),
    "tableau": (
        "SELECT 1", "SELECT version()", "SET DateStyle = 'ISO'", "BEGIN", "SELECT current_schema()", "COMMIT",
        "SELECT n.nspname, c.relname, c.relkind FROM pg_catalog.pg_class c, pg_catalog.pg_namespace n"
        " WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema',"
        " 'pg_toast', 'pg_temp_1') AND n.oid = c.relnamespace ORDER BY n.nspname, c.relname",
    ),
    "grafana": (
        "SELECT 1", "SELECT current_setting('server_version_num')::int/100 AS version",
        "SELECT quote_ident(table_name) AS \"table\" FROM information_schema.tables"
        " WHERE table_schema = 'public' ORDER BY table_name",
        "SELECT quote_ident(column_name) AS \"column\", data_type AS \"type\" FROM information_schema.columns"
        " WHERE table_name = 'visits' ORDER BY ordinal_position",
    ),
    "power bi": (
        "SELECT version()", "DISCARD ALL", "SELECT character_set_name FROM INFORMATION_SCHEMA.character_sets",
        "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM INFORMATION_SCHEMA.tables"
        " WHERE TABLE_SCHEMA NOT IN ('information_schema', 'pg_catalog') ORDER BY TABLE_SCHEMA, TABLE_NAME",
        "SELECT COLUMN_NAME, ORDINAL_POSITION, IS_NULLABLE, CASE WHEN (data_type LIKE '%unsigned%') THEN DATA_TYPE ||"
        " ' unsigned' ELSE DATA_TYPE END AS DATA_TYPE FROM INFORMATION_SCHEMA.columns WHERE TABLE_SCHEMA = 'public'"
        " AND TABLE_NAME = 'visits' ORDER BY ORDINAL_POSITION",
    ),
    "dbeaver": (
        "SET extra_float_digits = 3", "SET application_name = 'DBeaver 24 - Main <hospital>'",
        "SELECT current_schema(),session_user", "SHOW search_path",
        "SELECT n.oid,n.*,d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN pg_catalog.pg_description d"
        " ON d.objoid=n.oid AND d.objsubid=0 AND d.classoid='pg_namespace'::regclass WHERE nspname='public'",
        "SELECT c.relname,a.attname,a.attnum,format_type(a.atttypid,a.atttypmod) AS kind,a.attnotnull"
        " FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON a.attrelid=c.oid"
        " WHERE c.relname='wards' AND NOT a.attisdropped AND a.attnum > 0 ORDER BY a.attnum",
    ),
}  # fmt: skip
OTHER_TEXT = ("version()", "SHOW TRANSACTION", "description", "n.oid", "IS_NULLABLE", "attnotnull", "search_path")
"""What each server says of itself: the columns are compared, the rows are not."""

ASKING = {
    "metabase": "SELECT CAST(DATE_TRUNC('month', \"public\".\"visits\".\"at\") AS date) AS \"at\","
                " COUNT(*) AS \"count\" FROM \"public\".\"visits\""
                " WHERE \"public\".\"visits\".\"at\" < timestamp '2024-04-01 00:00:00.000'"
                " GROUP BY CAST(DATE_TRUNC('month', \"public\".\"visits\".\"at\") AS date)"
                " ORDER BY CAST(DATE_TRUNC('month', \"public\".\"visits\".\"at\") AS date) ASC",
    "tableau": "SELECT \"visits\".\"ward\" AS \"ward\", SUM(1) AS \"cnt:visits:ok\""
               " FROM \"public\".\"visits\" \"visits\" GROUP BY 1 HAVING (COUNT(1) > 0) ORDER BY 1",
    "grafana": "SELECT floor(extract(epoch from at)/2592000)*2592000 AS \"time\", count(*) AS visits FROM visits"
               " WHERE at BETWEEN '2024-01-01T00:00:00Z' AND '2024-03-31T00:00:00Z' GROUP BY 1 ORDER BY 1",
    "power bi": "select \"_\".\"ward\", count(1) as \"a0\" from (select \"$Table\".\"ward\" as \"ward\" from"
                " \"public\".\"visits\" \"$Table\") \"_\" group by \"_\".\"ward\""
                " order by \"_\".\"ward\" limit 1000001",
    "dbeaver": "SELECT sex, count(*) AS n FROM public.patients GROUP BY sex ORDER BY sex",
}  # fmt: skip


@contextmanager
def _cursor(place: Place) -> Iterator[Any]:
    with psycopg.connect(place.url(), autocommit=True) as connection, connection.cursor() as cursor:
        yield cursor


def _told(cursor: Any, statement: str) -> tuple[list[str], list[Any]]:
    cursor.execute(statement)
    if cursor.description is None:
        return [], []
    rows = cursor.fetchall()
    return [one.name for one in cursor.description], [] if any(word in statement for word in OTHER_TEXT) else rows


@pytest.mark.parametrize("tool", CONNECTING)
def test_what_it_sends_when_it_connects(tool: str, reference: Place, served: Place) -> None:
    with _cursor(reference) as due, _cursor(served) as got:
        for statement in CONNECTING[tool]:
            assert _told(got, statement) == _told(due, statement), statement


@pytest.mark.parametrize("tool", ASKING)
def test_its_queries_have_the_same_answers(tool: str, reference: Place, served: Place) -> None:
    with _cursor(reference) as due, _cursor(served) as got:
        names, rows = _told(due, ASKING[tool])
        seen, found = _told(got, ASKING[tool])
    assert seen == names
    assert [row[0] for row in found] == [row[0] for row in rows] != []
    assert all(abs(int(a[1]) - int(b[1])) <= 3 for a, b in zip(found, rows, strict=True))
