"""A ledger's SQLite file: making it, opening it, and transactions that are durable or did not happen.

Journal: DELETE with `synchronous=EXTRA`, not WAL. After each commit the one file holds every charge, so that a copy
of it, or a lost `-wal` beside it, never gives budget back; and in SQLite 3.7.0 to 3.51.2, which Python still links,
WAL may lose committed pages when connections write and checkpoint at once (sqlite.org/wal.html, the WAL-reset bug).
The price was 1.4 ms against 0.7 ms for a commit.

A connection lives for one transaction: threads and forked processes share nothing, and a file that was removed
or replaced under us is noticed before the next charge, not after.
"""

from __future__ import annotations

import os
import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path

from dpsql.base.private_files import open_private_file, require_private
from dpsql.errors import Error, IntegrityError, OperationalError, SchemaError
from dpsql.ledger.backend import (
    APPEND_ONLY_TABLES,
    BINDING_SQL,
    EARLIER_FORMAT,
    LEDGER_FORMAT,
    OBJECTS_SQL,
    TABLES_SQL,
    Row,
    Transaction,
    check_binding,
    damaged_ledger_error,
    ledger_name,
    missing_ledger_error,
)
from dpsql.ledger.base import Binding

APPLICATION_ID = 0x64707371  # "dpsq", in the file's header
BUSY_SECONDS = 30.0
CHECK_SECONDS = 2.0
"""For the lock, where only is asked whether a charge could be written."""
RETRY_SECONDS = 0.004
"""Between two tries to get the lock. SQLite itself waits ever longer, up to 0.1 s: of 32 processes that charge without
a pause, some waited for more than six seconds while others made a hundred charges."""

_CREATE_TABLES = (
    TABLES_SQL.format(serial="INTEGER PRIMARY KEY AUTOINCREMENT", blob="BLOB")
    + OBJECTS_SQL
    + "".join(
        f"CREATE TRIGGER {table}_{event} BEFORE {event} ON {table} BEGIN SELECT RAISE(ABORT, 'never changed'); END;\n"
        for table in APPEND_ONLY_TABLES
        for event in ("UPDATE", "DELETE")
    )
)
# Not the releases: their bodies may be large, and a damaged one is found when it is read.
_CHECKED_TABLES = ("ledger", "account", "version", "entry", "journal", "payment")


def path_from_url(url: str) -> Path:
    """The absolute path in `sqlite:///path`."""
    scheme, separator, rest = url.partition(":///")
    if scheme != "sqlite" or not separator or not rest.strip("/"):
        # Not quoted: a URL of another kind may hold a password.
        raise SchemaError("the ledger is not a sqlite url", hint="Write sqlite:///path/of/the.ledger.")
    return Path("/" + rest.lstrip("/"))


@dataclass(frozen=True)
class _SqliteTransaction:
    db: sqlite3.Connection

    def execute(self, sql: str, *values: object) -> list[Row]:
        return self.db.execute(sql, values).fetchall()

    def now_microseconds(self) -> int:
        return time.time_ns() // 1000  # a file is used on one machine


@dataclass(frozen=True)
class SqliteDatabase:
    """See `backend.LedgerDatabase`."""

    path: Path
    id: str
    busy_seconds: float = BUSY_SECONDS

    @property
    def identity(self) -> tuple[str, int, int]:
        """The same for every path of one file. A copy has the same `id`, and goes on with other releases."""
        with _translate_errors(None):
            status = self.path.stat()
            return self.id, status.st_dev, status.st_ino

    def write(self) -> AbstractContextManager[Transaction]:
        return self._open_transaction("BEGIN IMMEDIATE")  # takes the lock before anything is read

    def read(self) -> AbstractContextManager[Transaction]:
        return self._open_transaction("BEGIN")

    def check_writable(self) -> None:
        """As a charge would: SQLite notices a file that is read-only, or a full disk, when it keeps the old page."""
        with _translate_errors(None), closing(_connect_file(self.path, CHECK_SECONDS)) as db:
            _begin_with_retry(db, "BEGIN IMMEDIATE", CHECK_SECONDS)
            db.execute("UPDATE ledger SET unit = unit || '?'")  # what changes nothing would keep no page
            db.execute("ROLLBACK")

    def close(self) -> None:
        """Nothing is held open between transactions."""

    @contextmanager
    def _open_transaction(self, begin: str) -> Iterator[Transaction]:
        with _translate_errors(None), closing(_connect_file(self.path, self.busy_seconds)) as db:
            _begin_with_retry(db, begin, self.busy_seconds)
            try:
                if db.execute("SELECT id FROM ledger").fetchall() != [(self.id,)]:
                    raise IntegrityError("the ledger was replaced while it was open")
                yield _SqliteTransaction(db)
                db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # closing rolls back too; the first error is the one to tell
                    db.execute("ROLLBACK")
                raise


def _begin_with_retry(db: sqlite3.Connection, begin: str, busy_seconds: float) -> None:
    """Wait for the lock, if `begin` takes one, by asking often."""
    end = time.monotonic() + busy_seconds
    db.execute("PRAGMA busy_timeout = 0")
    while True:
        try:
            db.execute(begin)
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(RETRY_SECONDS)
    db.execute(f"PRAGMA busy_timeout = {round(busy_seconds * 1000)}")


def open_sqlite(path: Path, binding: Binding, busy_seconds: float, *, make: bool = True) -> SqliteDatabase:
    """Open the ledger at `path`, or with `make` make it where there is nothing."""
    with _translate_errors(path):
        if not path.exists():
            if not make:
                raise missing_ledger_error(str(path))
            _create_ledger(path, binding)
        for ending in ("", "-journal", "-wal", "-shm"):
            require_private(path.with_name(path.name + ending), "the ledger")
        with closing(_connect_file(path, busy_seconds)) as db:
            _upgrade_format(db)
            db.execute("BEGIN")
            _check_format(db, path)
            return SqliteDatabase(
                path, check_binding(db.execute(BINDING_SQL).fetchall(), str(path), binding), busy_seconds
            )


def _connect_file(path: Path, busy_seconds: float) -> sqlite3.Connection:
    # mode=rw: a file that is gone must not come back empty, with all its budget.
    uri = f"{path.as_uri()}?mode=rw"
    db = sqlite3.connect(uri, uri=True, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
    try:
        for pragma in ("synchronous = EXTRA", "fullfsync = ON", "foreign_keys = ON", "trusted_schema = OFF"):
            db.execute(f"PRAGMA {pragma}")
        if db.execute("PRAGMA journal_mode = DELETE").fetchone() != ("delete",):
            raise OperationalError('the journal of the ledger cannot be set to "delete"')
    except BaseException:
        db.close()
        raise
    return db


def _create_ledger(path: Path, binding: Binding) -> None:
    """Make a complete ledger beside `path`, then link it there: no one ever sees a half-made or an empty one.

    If another process is first, its ledger stands and ours is dropped.
    """
    remnant = _find_remnant(path)
    if remnant is not None and path.exists():
        return  # another process made it just now, and what was found belongs to it
    if remnant is not None:
        what_is, name = remnant
        raise IntegrityError(
            f'the ledger "{path}" is gone, but {what_is} there',
            hint=f"Restore the ledger; a new one has all of its budget. If it is wanted, remove {name} too.",
        )
    if not path.parent.is_dir():
        raise OperationalError(f'the folder of the ledger "{path}" does not exist', hint="Make the folder first.")
    draft = path.with_name(f"{path.name}.new-{uuid.uuid4().hex}")
    try:
        os.close(open_private_file(draft, os.O_EXCL | os.O_RDWR))
        _fill_tables(draft, binding)
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _find_remnant(path: Path) -> tuple[str, str] | None:
    """What only a ledger that was there leaves behind: that it is there, and what it is called."""
    if any(path.with_name(path.name + ending).exists() for ending in ("-journal", "-wal")):
        return "its journal is", "the journal"
    if path.with_name(path.name + ".snapshots").exists():
        return "the snapshots of its data are", "the snapshots"
    return None


def _fill_tables(draft: Path, binding: Binding) -> None:
    with closing(_connect_file(draft, 0.0)) as db:
        db.executescript(
            f"BEGIN; {_CREATE_TABLES} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {LEDGER_FORMAT};"
        )
        db.execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", (uuid.uuid4().hex, *astuple(binding)))
        db.execute("COMMIT")


def _sync_folder(folder: Path) -> None:
    """Without this the file's name may be lost with the power, and with it all charges."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _upgrade_format(db: sqlite3.Connection) -> None:
    """A ledger of the format before this one lacks a table."""
    if db.execute("PRAGMA user_version").fetchone() != (EARLIER_FORMAT,):
        return
    db.execute("BEGIN IMMEDIATE")
    ours = db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    if ours and db.execute("PRAGMA user_version").fetchone() == (EARLIER_FORMAT,):  # no other process was first
        db.execute(OBJECTS_SQL)
        db.execute(f"PRAGMA user_version = {LEDGER_FORMAT}")
    db.execute("COMMIT")


def _check_format(db: sqlite3.Connection, path: Path) -> None:
    if db.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
        raise IntegrityError(f'the file "{path}" is not a ledger', hint="Name another file, or restore the ledger.")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version != LEDGER_FORMAT:
        raise IntegrityError(
            f'the ledger "{path}" has format {version}, and this dpsql reads format {LEDGER_FORMAT}',
            hint="Use the dpsql that made it.",
        )
    for table in _CHECKED_TABLES:
        if db.execute(f"PRAGMA integrity_check({table})").fetchall() != [("ok",)]:
            raise damaged_ledger_error(path)


@contextmanager
def _translate_errors(path: Path | None) -> Iterator[None]:
    """Tell SQLite's errors in the ledger's words; without a path once it is open, since analysts are told them too."""
    try:
        yield
    except sqlite3.Error as error:
        raise _to_ledger_error(error, path) from error
    except OSError as error:
        raise OperationalError(
            f"{ledger_name(path)} cannot be opened or made", detail=f"The system says: {error.strerror or error}."
        ) from error


def _to_ledger_error(error: sqlite3.Error, path: Path | None) -> Error:
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF  # extended codes keep the primary one in their low byte
    match primary:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return OperationalError(
                f"{ledger_name(path)} is locked by another process",
                hint="Ask again, or end the process that holds the ledger.",
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_ERROR:
            return damaged_ledger_error(path)
        case _:
            return OperationalError(
                f"{ledger_name(path)} cannot be read or written",
                detail=f"SQLite says: {error}.",
                hint="Ask the owner; if a charge was made, asking again redeems it.",
            )
