"""Connections that are used again: each checkout finds the settings with which the connection was opened."""

from __future__ import annotations

from typing import cast

from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection, PoolResetState

from dpsql.dbapi.connection import Connection

_OPENED_WITH = "dpsql_settings"


def forget_settings_on_return(engine: Engine) -> None:
    event.listen(engine, "checkout", _remember)
    event.listen(engine, "reset", _reset)


def _remember(connection: DBAPIConnection, entry: ConnectionPoolEntry, proxy: PoolProxiedConnection) -> None:
    """Once, when all listeners to `connect` have had their say."""
    if _OPENED_WITH not in entry.info:
        entry.info[_OPENED_WITH] = _settings(cast(Connection, connection))


def _reset(connection: DBAPIConnection, entry: ConnectionPoolEntry, state: PoolResetState) -> None:
    opened = cast(Connection, connection)
    if state.terminate_only or opened.closed:
        return
    cursor = opened.cursor()
    cursor.execute("DISCARD ALL")
    defaults = _settings(opened)
    for name, value in entry.info.get(_OPENED_WITH, defaults).items():
        if defaults[name] != value:
            cursor.execute(f"SET {name} = ?", (value,))


def _settings(connection: Connection) -> dict[str, str]:
    return dict(connection.cursor().execute("SHOW ALL").fetchall())
