"""The dialect. It connects through `dpsql.connect`, and sees released rows and the schema's declarations only.

PostgreSQL's dialect itself asks a catalog on connecting, so only its compilers are used; reflection reads the schema.

Privacy: whom a connection acts for is settled when it is opened and cannot be changed. A connection that goes back to
its pool forgets what was set on it, so no statement runs with the settings of who had the connection before.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any
from urllib.parse import quote, urlencode

from sqlalchemy import exc
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

import dpsql
from dpsql.errors import InterfaceError, OperationalError, StaleData
from dpsql.session import NamedTable
from dpsql.sqlalchemy import pool, reflection
from dpsql.sqlalchemy.compiler import DpsqlCompiler, DpsqlTypeCompiler, PGIdentifierPreparer
from dpsql.sqlalchemy.context import DpsqlExecutionContext, statement_settings_of
from dpsql.sqlalchemy.types import COLSPECS

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
        pool.reset_settings_on_return(engine)

    def create_connect_args(self, url: URL) -> ConnectArgsType:
        """One URL, which `dpsql.connect` reads: what it may hold and what it means is said there alone."""
        query = [(name, value) for name in url.query for value in url.normalized_query[name]]
        return [f"dpsql://{_render_server(url)}/{quote(url.database or '')}?{urlencode(query)}".rstrip("?")], {}

    def initialize(self, connection: EngineConnection) -> None:
        """Nothing is asked: all that there is to know is known."""

    def is_disconnect(
        self, e: Exception, connection: DBAPIConnection | Any | None, cursor: DBAPICursor | None
    ) -> bool:
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
        """The one level there is."""

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

    def _list_tables(self, connection: EngineConnection, schema: str | None, kw: dict[str, Any]) -> dict[str, NamedTable]:
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
        return reflection.reflect_columns(self._get_table(connection, table_name, schema, kw))

    def get_pk_constraint(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedPrimaryKeyConstraint:
        return reflection.reflect_primary_key(self._get_table(connection, table_name, schema, kw))

    def get_foreign_keys(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedForeignKeyConstraint]:
        return reflection.reflect_foreign_keys(self._get_table(connection, table_name, schema, kw), schema)

    def get_unique_constraints(
        self, connection: EngineConnection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedUniqueConstraint]:
        return reflection.reflect_unique_keys(self._get_table(connection, table_name, schema, kw))

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
