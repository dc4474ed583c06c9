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

import re
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple, dataclass
from functools import cache

import psycopg

from dpsql.errors import Error, IntegrityError, OperationalError
from dpsql.ledger.base import Binding
from dpsql.ledger.database import (
    BINDING_SQL,
    EARLIER_FORMAT,
    LEDGER_FORMAT,
    APPEND_ONLY_TABLES,
    OBJECTS_SQL,
    TABLES_SQL,
    Row,
    Transaction,
    check_binding,
    damaged_ledger_error,
    missing_ledger_error,
)
from dpsql.ledger.postgres_pool import ConnectionPool, open_pool
from dpsql.ledger.postgres_url import LedgerLocation, parse_ledger_url

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
    """See `database.Database`."""

    place: LedgerLocation
    id: str
    identity: Hashable
    pool: ConnectionPool
    busy_seconds: float

    def write(self) -> AbstractContextManager[Transaction]:
        # `fsync` is asked each time: the server may have been restarted without it.
        begin = _begin_statements(self.place, self.busy_seconds, "READ COMMITTED READ WRITE")
        return self._open_transaction(f"{begin} {_DURABLE_COMMIT}; SELECT id, current_setting('fsync') FROM ledger FOR UPDATE")

    def read(self) -> AbstractContextManager[Transaction]:
        begin = _begin_statements(self.place, self.busy_seconds, "REPEATABLE READ READ ONLY")
        return self._open_transaction(f"{begin} SELECT id, current_setting('fsync') FROM ledger")

    def close(self) -> None:
        self.pool.close()

    @contextmanager
    def _open_transaction(self, begin: str) -> Iterator[Transaction]:
        with _translate_errors(self.place), self.pool.begin_transaction(begin) as (db, rows):
            if [row[0] for row in rows] != [self.id]:
                raise IntegrityError(f'the ledger "{self.place.name}" was replaced while it was open')
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
    db.execute(
        "INSERT INTO ledger VALUES (replace(gen_random_uuid()::text, '-', ''), %s, %s, %s)", astuple(binding)
    )


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
def _translate_errors(location: LedgerLocation) -> Iterator[None]:
    """Tell PostgreSQL's errors in the ledger's words."""
    try:
        yield
    except psycopg.Error as error:
        raise _to_ledger_error(error, location) from error


def _to_ledger_error(error: psycopg.Error, location: LedgerLocation) -> Error:
    match error:
        case psycopg.errors.LockNotAvailable():
            return OperationalError(
                f'the ledger "{location.name}" is locked by another process',
                hint="Ask again, or end the process that holds the ledger.",
            )
        case psycopg.errors.InsufficientPrivilege():
            return OperationalError(
                f'the ledger "{location.name}" cannot be opened or made', detail=_first_error_line(error),
                hint=f"As the owner of its database: CREATE SCHEMA {location.schema} AUTHORIZATION the_role_of_the_url",
            )  # fmt: skip
        case (
            psycopg.errors.DataCorrupted()
            | psycopg.errors.IndexCorrupted()
            | psycopg.IntegrityError()
            | psycopg.ProgrammingError()
            | psycopg.errors.RaiseException()
        ):
            return damaged_ledger_error(location.name)
        case _:
            return OperationalError(
                f'the ledger "{location.name}" cannot be read or written',
                detail=_first_error_line(error),
                hint="Ask the owner; if a charge was made, asking again redeems it.",
            )


def _first_error_line(error: psycopg.Error) -> str:
    """Of what the server says, its first line: the others may quote rows."""
    lines = (error.diag.message_primary or str(error)).splitlines() or ["nothing"]
    return f"PostgreSQL says: {lines[0].strip()}."
