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
    BINDING,
    EARLIER,
    FORMAT,
    KEPT,
    OBJECTS,
    TABLES,
    Row,
    Transaction,
    check_binding,
    damaged,
    no_ledger,
)
from dpsql.ledger.postgres_pool import Pool, open_pool
from dpsql.ledger.postgres_url import Place, read_url

BUSY_SECONDS = 30.0
STATEMENT_SECONDS = 60.0
"""A statement of ours takes milliseconds; whoever waits longer than this waits for a server that is ill."""
IDLE_SECONDS = 60.0
"""The server ends a transaction whose client says nothing for so long: its machine is gone, and others wait."""
LEAST = 130000
"""PostgreSQL 13, in which everyone may make a random id."""

_TABLES = f"""
{TABLES.format(serial="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", blob="BYTEA")}
{OBJECTS}
CREATE TABLE format (number INTEGER NOT NULL);
INSERT INTO format VALUES ({FORMAT});
CREATE FUNCTION never_changed() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'never changed'; END$$;
""" + "".join(
    f"CREATE TRIGGER {table}_{event} BEFORE {event} ON {table} FOR EACH STATEMENT EXECUTE FUNCTION never_changed();\n"
    for table in KEPT
    for event in ("UPDATE", "DELETE", "TRUNCATE")
)
_NAMES = re.findall(r"CREATE TABLE (\w+)", _TABLES)
# Of two commits that a server calls durable, remote_apply waits for more.
_DURABLE = (
    "SELECT set_config('synchronous_commit',"
    " CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)"
)


@dataclass(frozen=True)
class _Transaction:
    db: psycopg.Connection[Row]

    def rows(self, sql: str, *values: object) -> list[Row]:
        cursor = self.db.execute(_translated(sql), values)
        return cursor.fetchall() if cursor.description is not None else []

    def now(self) -> int:
        """The server's clock: those of the proxies may differ."""
        (now,) = _row(self.db, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        return int(now)


@cache
def _translated(sql: str) -> bytes:
    return sql.replace("%", "%%").replace("?", "%s").encode()


@dataclass(frozen=True)
class PostgresDatabase:
    """See `database.Database`."""

    place: Place
    id: str
    identity: Hashable
    pool: Pool
    busy_seconds: float

    def write(self) -> AbstractContextManager[Transaction]:
        # `fsync` is asked each time: the server may have been restarted without it.
        begin = _begin(self.place, self.busy_seconds, "READ COMMITTED READ WRITE")
        return self._transaction(f"{begin} {_DURABLE}; SELECT id, current_setting('fsync') FROM ledger FOR UPDATE")

    def read(self) -> AbstractContextManager[Transaction]:
        begin = _begin(self.place, self.busy_seconds, "REPEATABLE READ READ ONLY")
        return self._transaction(f"{begin} SELECT id, current_setting('fsync') FROM ledger")

    def close(self) -> None:
        self.pool.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Transaction]:
        with _explained(self.place), self.pool.began(begin) as (db, rows):
            if [row[0] for row in rows] != [self.id]:
                raise IntegrityError(f'the ledger "{self.place.name}" was replaced while it was open')
            _check_flushing(self.place, rows[0][1])
            yield _Transaction(db)
            commit(db)


def commit(db: psycopg.Connection[Row]) -> None:
    """Law: told to be committed, it is. Where a statement had failed, PostgreSQL answers COMMIT by undoing all."""
    if db.execute("COMMIT").statusmessage != "COMMIT":
        raise psycopg.InternalError("the transaction had failed, and was undone")


def open_postgres(
    url: str, binding: Binding, busy_seconds: float = BUSY_SECONDS, *, make: bool = True
) -> PostgresDatabase:
    """Open the ledger that `url` names, or with `make` make it where its schema is not there or empty."""
    place = read_url(url)
    pool = open_pool(place.conninfo, busy_seconds, place.prepares)
    try:
        with _explained(place):
            id_, identity = _opened(place, binding, pool, busy_seconds, make)
    except BaseException:
        pool.close()
        raise
    return PostgresDatabase(place, id_, identity, pool, busy_seconds)


def _opened(
    place: Place, binding: Binding, pool: Pool, busy_seconds: float, make: bool
) -> tuple[str, Hashable]:
    begin = _begin(place, busy_seconds, "READ COMMITTED READ WRITE")
    # Two that open a new ledger at once: the second waits here, and finds what the first has made.
    lock = f"SELECT pg_advisory_xact_lock(hashtextextended('dpsql ledger {place.schema}', 0))"
    with pool.began(f"{begin} {_DURABLE}; {lock}") as (db, _):
        _check_server(db, place)
        if _is_new(db, place):
            if not make:
                raise no_ledger(place.name)
            _create(db, place, binding)
        _check_format(db, place)
        _check_private(db, place)
        id_ = check_binding(db.execute(BINDING).fetchall(), place.name, binding)
        server = "SELECT pg_postmaster_start_time(), oid, to_regnamespace(%s)::oid FROM pg_database"
        identity = _row(db, f"{server} WHERE datname = current_database()", place.schema)
        commit(db)
    return id_, (id_, *identity)


def _begin(place: Place, busy_seconds: float, level: str) -> str:
    """For one trip to the server. The path has the ledger's schema first, and tables of a session's own last."""
    return (
        f"BEGIN ISOLATION LEVEL {level}; SET LOCAL search_path = {place.schema}, pg_temp;"
        f" SET LOCAL lock_timeout = {_milliseconds(busy_seconds)};"
        f" SET LOCAL statement_timeout = {_milliseconds(busy_seconds + STATEMENT_SECONDS)};"
        f" SET LOCAL idle_in_transaction_session_timeout = {_milliseconds(IDLE_SECONDS)};"
    )


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))  # 0 is no limit


def _row(db: psycopg.Connection[Row], sql: str, *values: object) -> Row:
    row = db.execute(sql.encode(), values or None).fetchone()
    if row is None:
        raise psycopg.InternalError("a query of one row has none")
    return row


def _check_server(db: psycopg.Connection[Row], place: Place) -> None:
    if db.info.server_version < LEAST:
        raise OperationalError(f'the ledger "{place.name}" needs PostgreSQL 13 or later')
    flushing, encoding = _row(db, "SELECT current_setting('fsync'), current_setting('server_encoding')")
    _check_flushing(place, flushing)
    if encoding != "UTF8":
        raise OperationalError(
            f'the database of the ledger "{place.name}" has the encoding {encoding}',
            hint="Make a database for it: CREATE DATABASE books ENCODING 'UTF8' TEMPLATE template0.",
        )


def _check_flushing(place: Place, flushing: str) -> None:
    if flushing != "on":
        raise OperationalError(
            f'the server of the ledger "{place.name}" does not flush to its disk',
            detail="With fsync off, charges that were answered may be lost with the power, and their budget be back.",
            hint="Set fsync = on.",
        )


def _is_new(db: psycopg.Connection[Row], place: Place) -> bool:
    """An owner may make an empty schema for us, where we may not make one ourselves."""
    (there,) = _row(db, "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace(%s)", place.schema)
    return bool(there == 0)


def _create(db: psycopg.Connection[Row], place: Place, binding: Binding) -> None:
    (there,) = _row(db, "SELECT to_regnamespace(%s) IS NOT NULL", place.schema)
    if not there:
        db.execute(f"CREATE SCHEMA {place.schema}".encode())
    db.execute(_TABLES.encode())
    db.execute(
        "INSERT INTO ledger VALUES (replace(gen_random_uuid()::text, '-', ''), %s, %s, %s)", astuple(binding)
    )


def _check_format(db: psycopg.Connection[Row], place: Place) -> None:
    there = {name for (name,) in db.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'", [place.schema]
    )}  # fmt: skip
    if not {"format", "ledger"} <= there:
        raise IntegrityError(
            f'the schema of "{place.name}" is not a ledger', hint="Name another schema, or restore the ledger."
        )
    formats = db.execute("SELECT number FROM format").fetchall()
    if len(formats) != 1:
        raise damaged(place.name)
    if formats == [(EARLIER,)]:  # it lacks a table
        db.execute(OBJECTS.encode())
        db.execute(f"UPDATE format SET number = {FORMAT}".encode())
        formats, there = [(FORMAT,)], there | {"object"}
    if formats != [(FORMAT,)]:
        raise IntegrityError(
            f'the ledger "{place.name}" has format {formats[0][0]}, and this dpsql reads format {FORMAT}',
            hint="Use the dpsql that made it.",
        )
    if not there.issuperset(_NAMES):
        raise damaged(place.name)


def _check_private(db: psycopg.Connection[Row], place: Place) -> None:
    """As of a file: who may read the ledger reads every answer, without paying."""
    (is_open,) = _row(db, "SELECT has_schema_privilege('public', %s, 'USAGE, CREATE')", place.schema)
    if is_open:
        raise OperationalError(
            f'the ledger "{place.name}" is open to every role of its server',
            hint=f"Write: REVOKE ALL ON SCHEMA {place.schema} FROM PUBLIC",
        )


@contextmanager
def _explained(place: Place) -> Iterator[None]:
    """Tell PostgreSQL's errors in the ledger's words."""
    try:
        yield
    except psycopg.Error as error:
        raise _explain(error, place) from error


def _explain(error: psycopg.Error, place: Place) -> Error:
    match error:
        case psycopg.errors.LockNotAvailable():
            return OperationalError(
                f'the ledger "{place.name}" is locked by another process',
                hint="Ask again, or end the process that holds the ledger.",
            )
        case psycopg.errors.InsufficientPrivilege():
            return OperationalError(
                f'the ledger "{place.name}" cannot be opened or made', detail=_says(error),
                hint=f"As the owner of its database: CREATE SCHEMA {place.schema} AUTHORIZATION the_role_of_the_url",
            )  # fmt: skip
        case (
            psycopg.errors.DataCorrupted()
            | psycopg.errors.IndexCorrupted()
            | psycopg.IntegrityError()
            | psycopg.ProgrammingError()
            | psycopg.errors.RaiseException()
        ):
            return damaged(place.name)
        case _:
            return OperationalError(
                f'the ledger "{place.name}" cannot be read or written',
                detail=_says(error),
                hint="Ask the owner; if a charge was made, asking again redeems it.",
            )


def _says(error: psycopg.Error) -> str:
    """Of what the server says, its first line: the others may quote rows."""
    lines = (error.diag.message_primary or str(error)).splitlines() or ["nothing"]
    return f"PostgreSQL says: {lines[0].strip()}."
