"""The dialect. It connects through `dpsql.connect`, and sees released rows and the schema's declarations only.

PostgreSQL's dialect itself asks a catalog on connecting, so only its compilers are used; reflection reads the schema.

Privacy: whom a connection acts for is settled when it is opened and cannot be changed. A connection that goes back to
its pool forgets what was set on it, so no statement runs with the settings of who had the connection before.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, cast
from urllib.parse import quote, urlencode

from sqlalchemy import event, exc, types
from sqlalchemy.dialects.postgresql.base import PGCompiler, PGIdentifierPreparer, PGTypeCompiler
from sqlalchemy.engine import URL, Engine
from sqlalchemy.engine.base import Connection as EngineConnection
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.engine.interfaces import (
    BindTyping,
    ConnectArgsType,
    DBAPIConnection,
    DBAPICursor,
    ExecutionContext,
    IsolationLevel,
    ReflectedCheckConstraint,
    ReflectedColumn,
    ReflectedForeignKeyConstraint,
    ReflectedIndex,
    ReflectedPrimaryKeyConstraint,
    ReflectedTableComment,
    ReflectedUniqueConstraint,
)
from sqlalchemy.engine.reflection import cache
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection, PoolResetState
from sqlalchemy.sql.elements import Cast

import dpsql
from dpsql.errors import InterfaceError, OperationalError, StaleData
from dpsql.interfaces.dbapi.connection import Connection
from dpsql.interfaces.sqlalchemy.execution import DpsqlExecutionContext, statement_settings_of
from dpsql.interfaces.sqlalchemy.types import COLSPECS, to_sqlalchemy_type
from dpsql.session.session import NamedTable

__all__ = ["DpsqlCompiler", "DpsqlTypeCompiler", "PGIdentifierPreparer"]

# SQLAlchemy's statements as SQL that dpsql reads: PostgreSQL's, by its own compilers, where the two agree.


class DpsqlCompiler(PGCompiler):
    def visit_truediv_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """In doubles: NUMERIC without a precision, which PostgreSQL's own casts say, has three digits here."""
        right = binary.right
        if right.type._type_affinity not in (types.Numeric, types.Float):
            right = Cast(right, types.DOUBLE_PRECISION())
        return f"{self.process(binary.left, **kw)} / {self.process(right, **kw)}"


class DpsqlTypeCompiler(PGTypeCompiler):
    def visit_INTERVAL(self, type_: Any, **kw: Any) -> str:
        """To the microsecond, whatever precision is asked for."""
        return "INTERVAL"


# What an inspector shows: the tables of the schema, as `Connection.tables()` names them. Free; never from the data.


def reflect_columns(table: NamedTable) -> list[ReflectedColumn]:
    """All are nullable: what does not fit its declaration becomes NULL."""
    return [
        {
            "name": column.name,
            "type": to_sqlalchemy_type(column.type),
            "nullable": True,
            "default": None,
            "comment": column.comment,
        }
        for column in table.columns
    ]


def reflect_primary_key(table: NamedTable) -> ReflectedPrimaryKeyConstraint:
    """The first unique key that is declared: it is checked when data is registered, and mappers want one."""
    if not table.unique:
        return {"constrained_columns": [], "name": None}
    return {"constrained_columns": list(table.unique[0].columns), "name": table.unique[0].name}


def reflect_unique_keys(table: NamedTable) -> list[ReflectedUniqueConstraint]:
    return [{"name": key.name, "column_names": list(key.columns)} for key in table.unique[1:]]


def reflect_foreign_keys(table: NamedTable, schema: str | None) -> list[ReflectedForeignKeyConstraint]:
    """The declared way to the privacy unit."""
    return [
        {
            "name": key.name,
            "constrained_columns": list(key.columns),
            "referred_schema": schema,
            "referred_table": key.table,
            "referred_columns": list(key.keys),
            "options": {},
        }
        for key in table.foreign
    ]


# Connections that are used again: each checkout finds the settings with which the connection was opened.

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


SCHEMA_NAME = "public"


class DpsqlDialect(DefaultDialect):
    name = "dpsql"
    driver = "dpsql"
    default_paramstyle = "qmark"
    supports_statement_cache = True

    statement_compiler = DpsqlCompiler
    type_compiler_cls = DpsqlTypeCompiler
    preparer = PGIdentifierPreparer
    execution_ctx_cls = DpsqlExecutionContext
    colspecs = COLSPECS
    bind_typing = BindTyping.RENDER_CASTS
    _backslash_escapes = False  # which PostgreSQL's compiler asks for
    _supports_jsonb_subscripting = False

    default_schema_name = SCHEMA_NAME
    default_isolation_level = "AUTOCOMMIT"
    server_version_info = (15, 0)
    max_identifier_length = 63

    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_uuid = True
    supports_comments = True
    tuple_in_values = True

    # Nothing is written.
    supports_alter = False
    supports_sane_rowcount = False
    supports_sane_multi_rowcount = False
    supports_empty_insert = False
    postfetch_lastrowid = False
    use_insertmanyvalues = False

    # --- connecting --------------------------------------------------------------------------------------------------

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        return dpsql

    @classmethod
    def engine_created(cls, engine: Engine) -> None:
        reset_settings_on_return(engine)

    def create_connect_args(self, url: URL) -> ConnectArgsType:
        """One URL, which `dpsql.connect` reads: what it may hold and what it means is said there alone."""
        query = [(name, value) for name in url.query for value in url.normalized_query[name]]
        return [f"dpsql://{_render_server(url)}/{quote(url.database or '')}?{urlencode(query)}".rstrip("?")], {}

    def initialize(self, connection: EngineConnection) -> None:
        """Nothing is asked: all that there is to know is known."""

    def is_disconnect(self, e: Exception, connection: DBAPIConnection | Any | None, cursor: DBAPICursor | None) -> bool:
        """Also where the data has a newer version: who connects again is served it."""
        closed = isinstance(e, InterfaceError | OperationalError) and bool(getattr(connection, "closed", False))
        return closed or isinstance(e, StaleData)

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Free, and asks no rows; a server that is gone is found out."""
        dbapi_connection.cursor().execute("SHOW epsilon")
        return True

    # --- transactions: of settings. A charge is durable as soon as it is made ----------------------------------------

    def do_begin(self, dbapi_connection: Any) -> None:
        dbapi_connection.cursor().execute("BEGIN")

    def do_commit(self, dbapi_connection: Any) -> None:
        dbapi_connection.cursor().execute("COMMIT")

    def do_rollback(self, dbapi_connection: Any) -> None:
        dbapi_connection.cursor().execute("ROLLBACK")

    def get_isolation_level_values(self, dbapi_conn: DBAPIConnection) -> Sequence[IsolationLevel]:
        return ("AUTOCOMMIT",)

    def get_default_isolation_level(self, dbapi_conn: DBAPIConnection) -> IsolationLevel:
        return "AUTOCOMMIT"

    def get_isolation_level(self, dbapi_connection: DBAPIConnection) -> IsolationLevel:
        return "AUTOCOMMIT"

    def set_isolation_level(self, dbapi_connection: DBAPIConnection, level: IsolationLevel) -> None:
        """Accept AUTOCOMMIT, the only isolation level."""

    def detect_autocommit_setting(self, dbapi_conn: DBAPIConnection) -> bool:
        return True

    # --- statements --------------------------------------------------------------------------------------------------

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: ExecutionContext | None = None) -> None:
        cursor.execute(statement, parameters, settings=statement_settings_of(context))

    def do_execute_no_params(self, cursor: Any, statement: str, context: ExecutionContext | None = None) -> None:
        self.do_execute(cursor, statement, (), context)

    # --- reflection --------------------------------------------------------------------------------------------------

    @cache
    def _load_tables(self, connection: EngineConnection, **kw: Any) -> dict[str, NamedTable]:
        driver: Any = connection.connection.dbapi_connection
        return {table.name: table for table in driver.tables()}

    def _list_tables(
        self, connection: EngineConnection, schema: str | None, kw: dict[str, Any]
    ) -> dict[str, NamedTable]:
        tables: dict[str, NamedTable] = self._load_tables(connection, info_cache=kw.get("info_cache"))
        return tables if schema in (None, SCHEMA_NAME) else {}

    def _get_table(self, connection: EngineConnection, name: str, schema: str | None, kw: dict[str, Any]) -> NamedTable:
        table = self._list_tables(connection, schema, kw).get(name)
        if table is None:
            raise exc.NoSuchTableError(f"{schema}.{name}" if schema else name)
        return table

    def has_table(self, connection: EngineConnection, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        return table_name in self._list_tables(connection, schema, kw)

    def has_schema(self, connection: EngineConnection, schema_name: str, **kw: Any) -> bool:
        return schema_name == SCHEMA_NAME

    def has_index(
        self, connection: EngineConnection, table_name: str, index_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        return False

    def has_sequence(
        self, connection: EngineConnection, sequence_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        return False

    def get_schema_names(self, connection: EngineConnection, **kw: Any) -> list[str]:
        return [SCHEMA_NAME]

    def get_table_names(self, connection: EngineConnection, schema: str | None = None, **kw: Any) -> list[str]:
        return [name for name, table in self._list_tables(connection, schema, kw).items() if not table.is_view]

    def get_view_names(self, connection: EngineConnection, schema: str | None = None, **kw: Any) -> list[str]:
        return [name for name, table in self._list_tables(connection, schema, kw).items() if table.is_view]

    def get_materialized_view_names(
        self, connection: EngineConnection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        return []

    def get_temp_table_names(self, connection: EngineConnection, schema: str | None = None, **kw: Any) -> list[str]:
        return []

    def get_temp_view_names(self, connection: EngineConnection, schema: str | None = None, **kw: Any) -> list[str]:
        return []

    def get_sequence_names(self, connection: EngineConnection, schema: str | None = None, **kw: Any) -> list[str]:
        return []

    def get_view_definition(
        self, connection: EngineConnection, view_name: str, schema: str | None = None, **kw: Any
    ) -> str:
        definition = self._get_table(connection, view_name, schema, kw).definition
        if definition is None:
            raise exc.NoSuchTableError(view_name)
        return definition

    def get_columns(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedColumn]:
        return reflect_columns(self._get_table(connection, table_name, schema, kw))

    def get_pk_constraint(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedPrimaryKeyConstraint:
        return reflect_primary_key(self._get_table(connection, table_name, schema, kw))

    def get_foreign_keys(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedForeignKeyConstraint]:
        return reflect_foreign_keys(self._get_table(connection, table_name, schema, kw), schema)

    def get_unique_constraints(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedUniqueConstraint]:
        return reflect_unique_keys(self._get_table(connection, table_name, schema, kw))

    def get_indexes(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedIndex]:
        self._get_table(connection, table_name, schema, kw)
        return []

    def get_check_constraints(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedCheckConstraint]:
        self._get_table(connection, table_name, schema, kw)
        return []

    def get_table_comment(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedTableComment:
        return {"text": self._get_table(connection, table_name, schema, kw).comment}


def _render_server(url: URL) -> str:
    """`user:password@host:port`; nothing where the URL is of a schema."""
    host = url.host or ""
    host_and_port = (f"[{host}]" if ":" in host else host) + ("" if url.port is None else f":{url.port}")
    if url.username is None:
        return host_and_port
    password = "" if url.password is None else f":{quote(str(url.password), safe='')}"
    return f"{quote(url.username, safe='')}{password}@{host_and_port}"
