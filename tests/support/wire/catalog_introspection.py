"""What each client asks of the catalog, done with the client itself. Returns what a person would be shown."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.support.wire.hospital import Place
from tests.support.wire.odbc import UNICODE, odbc_connect


def sqlalchemy_inspector(place: Place, driver: str) -> dict[str, Any]:
    """All of the inspector's questions, for one driver: sync ones are asked on a sync engine, asyncpg's on its own."""
    import sqlalchemy as sa

    url = sa.make_url(place.url(f"postgresql+{driver}"))
    if driver != "asyncpg":
        engine = sa.create_engine(url)
        try:
            with engine.connect() as connection:
                return _inspected(connection)
        finally:
            engine.dispose()
    return asyncio.run(_inspected_later(url))


async def _inspected_later(url: Any) -> dict[str, Any]:
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(url)
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(_inspected)
    finally:
        await engine.dispose()


def _inspected(connection: Any) -> dict[str, Any]:
    import sqlalchemy as sa

    found = sa.inspect(connection)
    tables = sorted(found.get_table_names())
    metadata = sa.MetaData()
    metadata.reflect(connection, views=True)
    return {
        "default": found.default_schema_name,
        "schemas": sorted(found.get_schema_names()),
        "tables": tables,
        "views": found.get_view_names(),
        "materialized": found.get_materialized_view_names(),
        "sequences": found.get_sequence_names(),
        "temporary": found.get_temp_table_names(),
        "has": (found.has_table("visits"), found.has_table("nothing"), found.has_table("visits", schema="public")),
        "columns": {
            table: [(one["name"], str(one["type"]), one["nullable"]) for one in found.get_columns(table)]
            for table in (*tables, "planned_visits")
        },
        "primary": {table: found.get_pk_constraint(table)["constrained_columns"] for table in tables},
        "foreign": {table: [_link(one) for one in found.get_foreign_keys(table)] for table in tables},
        "unique": {table: [one["column_names"] for one in found.get_unique_constraints(table)] for table in tables},
        "indexes": {table: [one["column_names"] for one in found.get_indexes(table)] for table in tables},
        "checks": {table: found.get_check_constraints(table) for table in tables},
        "comments": {table: found.get_table_comment(table)["text"] for table in tables},
        "enums": found.get_enums(),
        "domains": found.get_domains(),
        "definition": "SELECT" in (found.get_view_definition("planned_visits") or ""),
        "reflected": sorted(metadata.tables),
        "links": sorted(str(key.target_fullname) for key in metadata.tables["visits"].foreign_keys),
    }


def _link(key: dict[str, Any]) -> tuple[Any, ...]:
    return key["constrained_columns"], key["referred_schema"], key["referred_table"], key["referred_columns"]


def pandas_tables(place: Place) -> dict[str, Any]:
    import pandas as pd
    import sqlalchemy as sa

    engine = sa.create_engine(place.url("postgresql+psycopg"))
    try:
        frame = pd.read_sql_table("wards", engine)
        return {"columns": list(frame.columns), "rows": len(frame)}
    finally:
        engine.dispose()


def psycopg_types(place: Place) -> dict[str, Any]:
    import psycopg
    from psycopg.types import TypeInfo
    from psycopg.types.composite import CompositeInfo
    from psycopg.types.enum import EnumInfo
    from psycopg.types.multirange import MultirangeInfo
    from psycopg.types.range import RangeInfo

    told: dict[str, Any] = {}
    with psycopg.connect(place.url()) as connection:
        for name in ("uuid", "text", "timestamptz", "nothing"):
            info = TypeInfo.fetch(connection, name)
            told[name] = info and (info.name, info.oid, info.array_oid, info.regtype, info.delimiter)
        told["enum"] = EnumInfo.fetch(connection, "mood")
        told["composite"] = CompositeInfo.fetch(connection, "wards") is None
        told["range"] = RangeInfo.fetch(connection, "no_range")
        told["multirange"] = MultirangeInfo.fetch(connection, "no_multirange")
    return told


def asyncpg_types(place: Place) -> dict[str, Any]:
    return asyncio.run(_asyncpg_types(place))


async def _asyncpg_types(place: Place) -> dict[str, Any]:
    import asyncpg

    connection = await asyncpg.connect(place.url())
    try:
        told: dict[str, Any] = {"version": connection.get_server_version()[:2]}
        await connection.set_type_codec("json", encoder=str, decoder=str, schema="pg_catalog")
        await connection.set_type_codec("numeric", encoder=str, decoder=str, schema="pg_catalog", format="text")
        told["numeric"] = await connection.fetchval("SELECT 1.50")
        names = await connection.fetch("SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname = 'public'")
        told["names"] = [row[0] for row in names]
        told["array"] = await connection.fetchval("SELECT $1::text[]", ["a", None, "b c"])
        told["regtype"] = await connection.fetchval("SELECT 'int4'::regtype")
        await connection.reload_schema_state()
        await connection.reset()
        return told
    finally:
        await connection.close()


def pgcli_completion(place: Place) -> dict[str, Any]:
    """The statements of pgcli's background refresh, by its own executor."""
    from pgcli.pgexecute import PGExecute

    one = PGExecute(place.database, place.user, place.password, place.host, place.port)

    def own(rows: Any) -> list[tuple[Any, ...]]:
        return sorted(tuple(row)[:4] for row in rows if row[0] == "public")

    try:
        return {
            "schemata": sorted({"public", "pg_catalog", "information_schema"} & set(one.schemata())),
            "tables": own(one.tables()),
            "views": own(one.views()),
            "table_columns": own(one.table_columns()),
            "view_columns": own(one.view_columns()),
            "foreignkeys": [tuple(row) for row in one.foreignkeys()],
            "databases": place.database in one.databases(),
            "functions": {"count", "sum", "date_trunc"} <= {row.func_name for row in one.functions()},
            "datatypes": own(one.datatypes()),
            "superuser": one.superuser,
            "pid": one.pid > 0,
            "search_path": one.search_path(),
            "view": "FROM visits" in one.view_definition("planned_visits"),
        }
    finally:
        one.conn.close()


def odbc_catalog(place: Place, driver: str = UNICODE) -> dict[str, Any]:
    import pyodbc

    with odbc_connect(place, driver) as connection:
        cursor = connection.cursor()

        def rows(found: Any, *columns: int) -> list[tuple[Any, ...]]:
            return [tuple(row[i] for i in columns) for row in found.fetchall()]

        told = {
            "tables": rows(cursor.tables(), 1, 2, 3),
            "tables of one kind": rows(cursor.tables(table="vis%", schema="public", tableType="TABLE"), 1, 2, 3),
            "views": rows(cursor.tables(tableType="VIEW", schema="public"), 1, 2, 3),
            "catalogs": rows(cursor.tables(catalog="%", schema="", table=""), 0),
            "schemas": rows(cursor.tables(catalog="", schema="%", table=""), 1),
            "columns": rows(cursor.columns(table="wards"), 2, 3, 4, 5, 6, 8, 10, 16),
            "one column": rows(cursor.columns(table="visits", schema="public", column="ward"), 2, 3, 5),
            "primaryKeys": rows(cursor.primaryKeys(table="patients"), 1, 2, 3, 4),
            "foreignKeys": rows(cursor.foreignKeys(foreignTable="visits"), 2, 3, 6, 7),
            "exported keys": rows(cursor.foreignKeys(table="patients"), 2, 3, 6, 7),
            "statistics": rows(cursor.statistics(table="visits", unique=True), 2, 3, 8),
            "rowIdColumns": rows(cursor.rowIdColumns(table="patients"), 1, 3),
            "rowVerColumns": rows(cursor.rowVerColumns(table="patients"), 1),
            "procedures": rows(cursor.procedures(procedure="no_such_procedure"), 2),
            "procedureColumns": rows(cursor.procedureColumns(procedure="no_such_procedure"), 2),
            "getTypeInfo": sorted({row[0] for row in cursor.getTypeInfo().fetchall()}),
            "name": connection.getinfo(pyodbc.SQL_DBMS_NAME),
            "version": connection.getinfo(pyodbc.SQL_DBMS_VER),
            "database": connection.getinfo(pyodbc.SQL_DATABASE_NAME),
            "user": connection.getinfo(pyodbc.SQL_USER_NAME),
        }
        cursor.close()
        return told
