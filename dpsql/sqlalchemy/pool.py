"""Connections that are used again: each checkout finds the settings with which the connection was opened."""

from __future__ import annotations

from typing import cast

from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection, PoolResetState

from dpsql.dbapi.connection import Connection

_SETTINGS_KEY = "dpsql_settings"


def reset_settings_on_return(engine: Engine) -> None:
    event.listen(engine, "checkout", _remember_settings)
    event.listen(engine, "reset", _restore_settings)


def _remember_settings(connection: DBAPIConnection, entry: ConnectionPoolEntry, proxy: PoolProxiedConnection) -> None:
    """Once, when all listeners to `connect` have had their say."""
    if _SETTINGS_KEY not in entry.info:
        entry.info[_SETTINGS_KEY] = _show_settings(cast(Connection, connection))


def _restore_settings(connection: DBAPIConnection, entry: ConnectionPoolEntry, state: PoolResetState) -> None:
    dpsql_connection = cast(Connection, connection)
    if state.terminate_only or dpsql_connection.closed:
        return
    cursor = dpsql_connection.cursor()
    cursor.execute("DISCARD ALL")
    defaults = _show_settings(dpsql_connection)
    for name, value in entry.info.get(_SETTINGS_KEY, defaults).items():
        if defaults[name] != value:
            cursor.execute(f"SET {name} = ?", (value,))


def _show_settings(connection: Connection) -> dict[str, str]:
    return dict(connection.cursor().execute("SHOW ALL").fetchall())
