"""A ledger in PostgreSQL, for proxies on several machines: making it, opening it, and transactions.

Privacy: write transactions are serial, in the order of one lock. Each begins with `SELECT … FROM ledger FOR UPDATE`, on
the one row that there is, under READ COMMITTED. (1) Of two, the later has the lock only when the earlier has committed
or was undone, and PostgreSQL makes a commit visible before it lets go of its locks. (2) Under READ COMMITTED each
statement has a snapshot of its own, taken when it begins; so every statement after the lock sees all earlier charges.
(3) Nobody else writes until it has ended. So what the filter is asked about is what the entry is appended to. Under
REPEATABLE READ or SERIALIZABLE this would fail: the snapshot is that of the first statement, which waits for the lock,
and is older than the charge that it waited for; the transaction would have to be begun again, many times under load.

A commit is on the server's disk, and on that of its synchronous standbys, before it is told; a server that does not
flush (`fsync = off`) is refused. A connection that is lost at COMMIT leaves the outcome unknown: that raises, nothing
is delivered, and asking again finds the charge if it was made.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import astuple, dataclass, field
from functools import cache
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlencode
from weakref import WeakMethod

import psycopg
import psycopg_pool
from psycopg.conninfo import conninfo_to_dict

from dpsql.errors import Error, IntegrityError, OperationalError, SchemaError
from dpsql.ledger.backend import (
    APPEND_ONLY_TABLES,
    BINDING_SQL,
    EARLIER_FORMAT,
    LEDGER_FORMAT,
    OBJECTS_SQL,
    POSTGRES_SCHEMES,
    TABLES_SQL,
    Row,
    Transaction,
    check_binding,
    damaged_ledger_error,
    ledger_name,
    missing_ledger_error,
)
from dpsql.ledger.base import Binding

# The URL of a ledger in PostgreSQL: what of it may be shown, and what of it is ours.
#
# Law: no text holds the password, nor what may be a part of it because a sign was not written as %40.

DEFAULT_SCHEMA = "dpsql_ledger"
# The connection is given these by us, or by nobody: with them a session would not be one of a ledger.
_RESERVED_OPTIONS = ("options", "client_encoding", "fallback_application_name", "replication")
_URL_HINT = (
    "Write postgresql://user:password@host/database?schema=name; of user and password, write @ : / ? # % and spaces"
    " as %40 %3A %2F %3F %23 %25 %20, or leave the password to PGPASSWORD or ~/.pgpass."
)


@dataclass(frozen=True)
class LedgerLocation:
    """Where a ledger is: `conninfo` is for the driver alone, `name` for people."""

    conninfo: str = field(repr=False)
    schema: str
    name: str
    prepares: bool = True  # statements are prepared, which a pooler between us and the server may not allow


def parse_ledger_url(url: str) -> LedgerLocation:
    """The place that `postgresql://user:password@host:port/database?schema=name&sslmode=…` names.

    Without `schema`, it is "dpsql_ledger": a ledger has a schema of its own, and a database may hold several.
    `prepare=no` is for a pooler that gives every transaction to another session.
    """
    match = re.fullmatch(r"(\w+)://(?:([^@/?#]*)@)?([^@/?#]*)(?:/([^@/?#]*))?(?:\?([^#]*))?", url)
    if match is None or match[1] not in POSTGRES_SCHEMES:
        raise wrong_url_error()
    _, user, hosts, database, query = match.groups()
    options = dict(parse_qsl(query or "", keep_blank_values=True))
    schema = options.pop("schema", DEFAULT_SCHEMA)
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema) or schema.startswith("pg_") or schema == "public":
        raise SchemaError(
            "the ledger's schema in PostgreSQL has no name that can be used",
            hint='Write ?schema=name, of small letters, digits and "_"; a ledger has a schema of its own.',
        )
    prepare = options.pop("prepare", "yes")
    if prepare not in ("yes", "no"):
        raise SchemaError('"prepare" in the ledger\'s url is neither yes nor no', hint="Leave it out, or write no.")
    _check_visible_parts(hosts, database or "", options)
    rest = f"?{urlencode(options)}" if options else ""
    conninfo = f"postgresql://{f'{user}@' if user else ''}{hosts}/{database or ''}{rest}"
    return LedgerLocation(conninfo, schema, _display_name(hosts, database or "", options, schema), prepare == "yes")


def _check_visible_parts(hosts: str, database: str, options: Mapping[str, str]) -> None:
    """Refuse URLs in which part of a password may have ended up in a part that is shown."""
    for host in hosts.split(","):
        if not re.fullmatch(r"((\[[0-9A-Fa-f:.]+\]|[\w.-]*|%2[Ff][\w.%-]*)(:\d*)?)", host):
            raise wrong_url_error()
    if "%40" in database or any(not re.fullmatch(r"\w+", option) for option in options):
        raise wrong_url_error()
    for option in _RESERVED_OPTIONS:
        if option in options:
            raise SchemaError(f'the ledger\'s url must not hold "{option}"', hint="Leave it out.")


def _display_name(hosts: str, database: str, options: Mapping[str, str], schema: str) -> str:
    """Host and database, without the user and all options but the schema."""
    host = hosts or options.get("host", "")
    database = database or options.get("dbname", "")
    ending = "" if schema == DEFAULT_SCHEMA else f"?schema={schema}"
    return f"postgresql://{unquote(host)}/{unquote(database)}{ending}"


def wrong_url_error() -> SchemaError:
    return SchemaError("the ledger is not a postgresql url that can be read", hint=_URL_HINT)


# Connections to the ledger's PostgreSQL: kept between transactions, since to make one takes longer than a charge.
#
# Law: a connection serves one transaction at a time, in the process that made it. After an error it is used again only
# if the server has undone the transaction; a forked child makes its own, and does not touch its parent's.

PostgresConnection = psycopg.Connection[Row]

MAX_CONNECTIONS = 4
"""Connections of a process. Charges are serial anyway, and a server has a hundred for all, unless it is told more."""
# Before there is a session, psycopg knows no SQLSTATE, only the server's words.
_TRANSIENT_ERRORS = (
    "too many clients",
    "too many connections",
    "connection slots are reserved",
    "system is starting up",
)
# A server that has vanished is noticed: by the system, since a socket alone would wait for hours.
_NETWORK_SETTINGS = {
    "connect_timeout": 10,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_FIXED_SETTINGS = {
    "autocommit": True,  # BEGIN and COMMIT are said
    "client_encoding": "utf8",
    "target_session_attrs": "read-write",  # of several hosts, the one that takes charges
    "fallback_application_name": "dpsql",
}

# What psycopg's pool logs is raised by us as well; a program that sets up logging of its own still gets it.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())

ConnectReport = Callable[[psycopg.OperationalError | None], None]


class _ReportingConnection(psycopg.Connection[Row]):
    """psycopg's pool connects on a thread of its own, and only logs why it could not: this reports it."""

    @classmethod
    def connect(  # type: ignore[override]
        cls, conninfo: str = "", *, report: WeakMethod[ConnectReport], **settings: Any
    ) -> Self:
        error: psycopg.OperationalError | None = None
        try:
            return super().connect(conninfo, **settings)
        except psycopg.OperationalError as failure:
            error = failure
            raise
        finally:
            if (record := report()) is not None:
                record(error)


class _ProcessPool(psycopg_pool.ConnectionPool[PostgresConnection]):
    """psycopg's pool, which raises at once why it cannot connect: as it is, it would try until `patience` is over."""

    def __init__(self, settings: Mapping[str, Any], patience: float) -> None:
        self._connect_error: psycopg.OperationalError | None = None
        super().__init__(
            connection_class=_ReportingConnection,
            kwargs={**settings, "report": WeakMethod(self._record_connect)},
            min_size=0,
            max_size=MAX_CONNECTIONS,
            timeout=patience,
            reconnect_timeout=patience,
            num_workers=1,
            open=True,
        )

    def borrow_connection(self) -> PostgresConnection:
        try:
            return self.getconn()
        except (psycopg_pool.PoolTimeout, psycopg_pool.PoolClosed) as error:
            if self._connect_error is not None:
                raise self._connect_error from None
            if isinstance(error, psycopg_pool.PoolTimeout):
                raise psycopg.errors.LockNotAvailable("all connections are in use") from None
            raise
        except BaseException:  # Ctrl-C: the pool would keep a connection for who waits no more
            self._close_aside()
            raise

    def return_connection(self, db: PostgresConnection) -> None:
        """It is kept if it is at rest; closing undoes what is left."""
        with suppress(psycopg.Error):
            db.rollback()  # nothing where the transaction has ended
        self.putconn(db)

    def _record_connect(self, error: psycopg.OperationalError | None) -> None:
        """Called on the pool's thread. Closing the pool ends the wait of all who wait for a connection."""
        self._connect_error = error
        if error is not None and not any(words in str(error) for words in _TRANSIENT_ERRORS):
            self._close_aside()

    def _close_aside(self) -> None:
        """On another thread: closing waits for the pool's own."""
        threading.Thread(target=self.close, name=f"{self.name}-close", daemon=True).start()


_PARENT_POOLS: list[_ProcessPool] = []
"""Of a process that has forked: collecting them here would touch the parent's connections."""


class ConnectionPool:
    """Connections to one place, kept by psycopg's pool; `begin_transaction` lends one.

    A forked child has a pool of its own, and so has who comes after the server could not be reached.
    """

    def __init__(self, settings: Mapping[str, Any], patience: float) -> None:
        self._settings = settings
        self._patience = patience
        self._reset_pool()

    def _reset_pool(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._pool: _ProcessPool | None = None

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()

    def close(self) -> None:
        """Connections in use are closed when they come back."""
        self._detach_after_fork()
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    @contextmanager
    def begin_transaction(self, begin: str) -> Iterator[tuple[PostgresConnection, list[Row]]]:
        """A connection on which the statements of `begin` have run, with the last one's rows.

        What is not committed when the block is left is undone.
        """
        self._detach_after_fork()
        pool = self._get_pool()
        db, rows = _begin_on_connection(pool, begin)
        try:
            yield db, rows
        finally:
            pool.return_connection(db)

    def _detach_after_fork(self) -> None:
        if self._process != os.getpid():
            if self._pool is not None:
                _PARENT_POOLS.append(self._pool)
            self._reset_pool()

    def _get_pool(self) -> _ProcessPool:
        with self._lock:
            if self._pool is None or self._pool.closed:
                self._pool = _ProcessPool(self._settings, self._patience)
            return self._pool


def _begin_on_connection(pool: _ProcessPool, begin: str) -> tuple[PostgresConnection, list[Row]]:
    """Where a connection turns out to be dead, nothing was asked on it yet, so another may be.

    So no question to the server is needed before each transaction, whether it is still there.
    """
    for is_last in (*(False,) * MAX_CONNECTIONS, True):  # all that were idle may have died
        db = pool.borrow_connection()
        try:
            return db, _fetch_last_rows(db, begin)
        except BaseException as error:
            died = isinstance(error, psycopg.OperationalError) and db.closed
            pool.return_connection(db)
            if is_last or not died:
                raise
    raise AssertionError("the last round returns or raises")


def open_pool(conninfo: str, patience: float, prepares: bool) -> ConnectionPool:
    """Nothing is connected yet; a URL that the driver cannot read is refused."""
    try:
        parameters = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        # Not its text, and not from it: it quotes what may be a part of the password.
        raise wrong_url_error() from None
    return ConnectionPool(
        {**_NETWORK_SETTINGS, **parameters, **_FIXED_SETTINGS, "prepare_threshold": 5 if prepares else None}, patience
    )


def _fetch_last_rows(db: PostgresConnection, sql: str) -> list[Row]:
    cursor = db.execute(sql.encode())
    while cursor.nextset():
        pass
    return cursor.fetchall()


BUSY_SECONDS = 30.0
STATEMENT_SECONDS = 60.0
"""A statement of ours takes milliseconds; whoever waits longer than this waits for a server that is ill."""
IDLE_SECONDS = 60.0
"""The server ends a transaction whose client says nothing for so long: its machine is gone, and others wait."""
MIN_SERVER_VERSION = 130000
"""PostgreSQL 13, in which everyone may make a random id."""

_CREATE_TABLES = f"""
{TABLES_SQL.format(serial="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", blob="BYTEA")}
{OBJECTS_SQL}
CREATE TABLE format (number INTEGER NOT NULL);
INSERT INTO format VALUES ({LEDGER_FORMAT});
CREATE FUNCTION never_changed() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'never changed'; END$$;
""" + "".join(
    f"CREATE TRIGGER {table}_{event} BEFORE {event} ON {table} FOR EACH STATEMENT EXECUTE FUNCTION never_changed();\n"
    for table in APPEND_ONLY_TABLES
    for event in ("UPDATE", "DELETE", "TRUNCATE")
)
_TABLE_NAMES = re.findall(r"CREATE TABLE (\w+)", _CREATE_TABLES)
# Of two commits that a server calls durable, remote_apply waits for more.
_DURABLE_COMMIT = (
    "SELECT set_config('synchronous_commit',"
    " CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)"
)


@dataclass(frozen=True)
class _PostgresTransaction:
    db: psycopg.Connection[Row]

    def execute(self, sql: str, *values: object) -> list[Row]:
        cursor = self.db.execute(_translate_placeholders(sql), values)
        return cursor.fetchall() if cursor.description is not None else []

    def now_microseconds(self) -> int:
        """The server's clock: those of the proxies may differ."""
        (now,) = _fetch_row(self.db, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        return int(now)


@cache
def _translate_placeholders(sql: str) -> bytes:
    return sql.replace("%", "%%").replace("?", "%s").encode()


@dataclass(frozen=True)
class PostgresDatabase:
    """See `backend.LedgerDatabase`."""

    place: LedgerLocation
    id: str
    identity: Hashable
    pool: ConnectionPool
    busy_seconds: float

    def write(self) -> AbstractContextManager[Transaction]:
        # `fsync` is asked each time: the server may have been restarted without it.
        begin = _begin_statements(self.place, self.busy_seconds, "READ COMMITTED READ WRITE")
        return self._open_transaction(
            f"{begin} {_DURABLE_COMMIT}; SELECT id, current_setting('fsync') FROM ledger FOR UPDATE"
        )

    def read(self) -> AbstractContextManager[Transaction]:
        begin = _begin_statements(self.place, self.busy_seconds, "REPEATABLE READ READ ONLY")
        return self._open_transaction(f"{begin} SELECT id, current_setting('fsync') FROM ledger")

    def check_writable(self) -> None:
        with self.write():
            pass  # the row is locked, which a server that is read-only refuses

    def close(self) -> None:
        self.pool.close()

    @contextmanager
    def _open_transaction(self, begin: str) -> Iterator[Transaction]:
        with _translate_errors(self.place, opened=True), self.pool.begin_transaction(begin) as (db, rows):
            if [row[0] for row in rows] != [self.id]:
                raise IntegrityError("the ledger was replaced while it was open")
            _check_flushing(self.place, rows[0][1])
            yield _PostgresTransaction(db)
            commit_transaction(db)


def commit_transaction(db: psycopg.Connection[Row]) -> None:
    """Law: told to be committed, it is. Where a statement had failed, PostgreSQL answers COMMIT by undoing all."""
    if db.execute("COMMIT").statusmessage != "COMMIT":
        raise psycopg.InternalError("the transaction had failed, and was undone")


def open_postgres(
    url: str, binding: Binding, busy_seconds: float = BUSY_SECONDS, *, make: bool = True
) -> PostgresDatabase:
    """Open the ledger that `url` names, or with `make` make it where its schema is not there or empty."""
    location = parse_ledger_url(url)
    pool = open_pool(location.conninfo, busy_seconds, location.prepares)
    try:
        with _translate_errors(location):
            id_, identity = _open_or_create(location, binding, pool, busy_seconds, make)
    except BaseException:
        pool.close()
        raise
    return PostgresDatabase(location, id_, identity, pool, busy_seconds)


def _open_or_create(
    location: LedgerLocation, binding: Binding, pool: ConnectionPool, busy_seconds: float, make: bool
) -> tuple[str, Hashable]:
    begin = _begin_statements(location, busy_seconds, "READ COMMITTED READ WRITE")
    # Two that open a new ledger at once: the second waits here, and finds what the first has made.
    lock = f"SELECT pg_advisory_xact_lock(hashtextextended('dpsql ledger {location.schema}', 0))"
    with pool.begin_transaction(f"{begin} {_DURABLE_COMMIT}; {lock}") as (db, _):
        _check_server(db, location)
        if _is_new_schema(db, location):
            if not make:
                raise missing_ledger_error(location.name)
            _create_tables(db, location, binding)
        _check_format(db, location)
        _check_private(db, location)
        id_ = check_binding(db.execute(BINDING_SQL).fetchall(), location.name, binding)
        server = "SELECT pg_postmaster_start_time(), oid, to_regnamespace(%s)::oid FROM pg_database"
        identity = _fetch_row(db, f"{server} WHERE datname = current_database()", location.schema)
        commit_transaction(db)
    return id_, (id_, *identity)


def _begin_statements(location: LedgerLocation, busy_seconds: float, level: str) -> str:
    """For one trip to the server. The path has the ledger's schema first, and tables of a session's own last."""
    return (
        f"BEGIN ISOLATION LEVEL {level}; SET LOCAL search_path = {location.schema}, pg_temp;"
        f" SET LOCAL lock_timeout = {_to_milliseconds(busy_seconds)};"
        f" SET LOCAL statement_timeout = {_to_milliseconds(busy_seconds + STATEMENT_SECONDS)};"
        f" SET LOCAL idle_in_transaction_session_timeout = {_to_milliseconds(IDLE_SECONDS)};"
    )


def _to_milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))  # 0 is no limit


def _fetch_row(db: psycopg.Connection[Row], sql: str, *values: object) -> Row:
    row = db.execute(sql.encode(), values or None).fetchone()
    if row is None:
        raise psycopg.InternalError("a query of one row has none")
    return row


def _check_server(db: psycopg.Connection[Row], location: LedgerLocation) -> None:
    if db.info.server_version < MIN_SERVER_VERSION:
        raise OperationalError(f'the ledger "{location.name}" needs PostgreSQL 13 or later')
    flushing, encoding = _fetch_row(db, "SELECT current_setting('fsync'), current_setting('server_encoding')")
    _check_flushing(location, flushing)
    if encoding != "UTF8":
        raise OperationalError(
            f'the database of the ledger "{location.name}" has the encoding {encoding}',
            hint="Make a database for it: CREATE DATABASE books ENCODING 'UTF8' TEMPLATE template0.",
        )


def _check_flushing(location: LedgerLocation, flushing: str) -> None:
    if flushing != "on":
        raise OperationalError(
            f'the server of the ledger "{location.name}" does not flush to its disk',
            detail="With fsync off, charges that were answered may be lost with the power, and their budget be back.",
            hint="Set fsync = on.",
        )


def _is_new_schema(db: psycopg.Connection[Row], location: LedgerLocation) -> bool:
    """An owner may make an empty schema for us, where we may not make one ourselves."""
    (there,) = _fetch_row(db, "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace(%s)", location.schema)
    return bool(there == 0)


def _create_tables(db: psycopg.Connection[Row], location: LedgerLocation, binding: Binding) -> None:
    (there,) = _fetch_row(db, "SELECT to_regnamespace(%s) IS NOT NULL", location.schema)
    if not there:
        db.execute(f"CREATE SCHEMA {location.schema}".encode())
    db.execute(_CREATE_TABLES.encode())
    db.execute("INSERT INTO ledger VALUES (replace(gen_random_uuid()::text, '-', ''), %s, %s, %s)", astuple(binding))


def _check_format(db: psycopg.Connection[Row], location: LedgerLocation) -> None:
    there = {name for (name,) in db.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'", [location.schema]
    )}  # fmt: skip
    if not {"format", "ledger"} <= there:
        raise IntegrityError(
            f'the schema of "{location.name}" is not a ledger', hint="Name another schema, or restore the ledger."
        )
    formats = db.execute("SELECT number FROM format").fetchall()
    if len(formats) != 1:
        raise damaged_ledger_error(location.name)
    if formats == [(EARLIER_FORMAT,)]:  # it lacks a table
        db.execute(OBJECTS_SQL.encode())
        db.execute(f"UPDATE format SET number = {LEDGER_FORMAT}".encode())
        formats, there = [(LEDGER_FORMAT,)], there | {"object"}
    if formats != [(LEDGER_FORMAT,)]:
        raise IntegrityError(
            f'the ledger "{location.name}" has format {formats[0][0]}, and this dpsql reads format {LEDGER_FORMAT}',
            hint="Use the dpsql that made it.",
        )
    if not there.issuperset(_TABLE_NAMES):
        raise damaged_ledger_error(location.name)


def _check_private(db: psycopg.Connection[Row], location: LedgerLocation) -> None:
    """As of a file: who may read the ledger reads every answer, without paying."""
    (is_open,) = _fetch_row(db, "SELECT has_schema_privilege('public', %s, 'USAGE, CREATE')", location.schema)
    if is_open:
        raise OperationalError(
            f'the ledger "{location.name}" is open to every role of its server',
            hint=f"Write: REVOKE ALL ON SCHEMA {location.schema} FROM PUBLIC",
        )


@contextmanager
def _translate_errors(location: LedgerLocation, opened: bool = False) -> Iterator[None]:
    """Tell PostgreSQL's errors in the ledger's words; without its place once it is open, for analysts."""
    try:
        yield
    except psycopg.Error as error:
        raise _to_ledger_error(error, location, opened) from error


def _to_ledger_error(error: psycopg.Error, location: LedgerLocation, opened: bool) -> Error:
    name = None if opened else location.name
    detail = None if opened and error.diag.message_primary is None else _first_error_line(error)
    match error:
        case psycopg.errors.LockNotAvailable():
            return OperationalError(
                f"{ledger_name(name)} is locked by another process",
                hint="Ask again, or end the process that holds the ledger.",
            )
        case psycopg.errors.InsufficientPrivilege():
            return OperationalError(
                f"{ledger_name(name)} cannot be opened or made", detail=detail,
                hint=f"As the owner of its database: CREATE SCHEMA {location.schema} AUTHORIZATION the_role_of_the_url",
            )  # fmt: skip
        case (
            psycopg.errors.DataCorrupted()
            | psycopg.errors.IndexCorrupted()
            | psycopg.IntegrityError()
            | psycopg.ProgrammingError()
            | psycopg.errors.RaiseException()
        ):
            return damaged_ledger_error(name)
        case _:
            return OperationalError(
                f"{ledger_name(name)} cannot be read or written",
                detail=detail,
                hint="Ask the owner; if a charge was made, asking again redeems it.",
            )


def _first_error_line(error: psycopg.Error) -> str:
    """The first line of the server's message: the others may quote rows."""
    lines = (error.diag.message_primary or str(error)).splitlines() or ["nothing"]
    return f"PostgreSQL says: {lines[0].strip()}."
