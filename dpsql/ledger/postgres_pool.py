"""Connections to the ledger's PostgreSQL: kept between transactions, since to make one takes longer than a charge.

Law: a connection serves one transaction at a time, in the process that made it. After an error it is used again only
if the server has undone the transaction; a forked child makes its own, and does not touch its parent's.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from dpsql.ledger.database import Row
from dpsql.ledger.postgres_url import wrong_url_error

PostgresConnection = psycopg.Connection[Row]

MAX_CONNECTIONS = 4
"""Connections of a process. Charges are serial anyway, and a server has a hundred for all, unless it is told more."""
RETRY_SECONDS = 0.05
# Before there is a session, psycopg knows no SQLSTATE, only the server's words.
_TRANSIENT_ERRORS = ("too many clients", "too many connections", "connection slots are reserved", "system is starting up")
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
_PARENT_CONNECTIONS: list[PostgresConnection] = []
"""Of a process that has forked: collecting them here would say goodbye to the server in the parent's name."""


class ConnectionPool:
    """Idle connections to one place; `began` lends one."""

    def __init__(self, settings: Mapping[str, Any], patience: float) -> None:
        self._settings = settings
        self._patience = patience
        self._reset_pool()

    def _reset_pool(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._idle: list[PostgresConnection] = []

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()

    def close(self) -> None:
        self._detach_after_fork()
        with self._lock:
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()

    @contextmanager
    def begin_transaction(self, begin: str) -> Iterator[tuple[PostgresConnection, list[Row]]]:
        """A connection on which the statements of `begin` have run, with the last one's rows.

        What is not committed when the block is left is undone.
        """
        self._detach_after_fork()
        semaphore = self._room
        if not semaphore.acquire(timeout=self._patience):
            raise psycopg.errors.LockNotAvailable("all connections are in use")
        try:
            db, rows = self._begin_on_connection(begin)
            try:
                yield db, rows
            finally:
                self._return_connection(db)
        finally:
            semaphore.release()

    def _detach_after_fork(self) -> None:
        if self._process != os.getpid():
            _PARENT_CONNECTIONS.extend(self._idle)
            self._reset_pool()

    def _begin_on_connection(self, begin: str) -> tuple[PostgresConnection, list[Row]]:
        """On an idle connection, unless it turns out to be dead: nothing was asked on it yet, so another may be."""
        while True:
            with self._lock:
                db = self._idle.pop() if self._idle else None
            if db is None:
                break
            try:
                return db, _fetch_last_rows(db, begin)
            except psycopg.OperationalError:
                alive = not db.closed
                self._return_connection(db)
                if alive:
                    raise
            except BaseException:
                self._return_connection(db)
                raise
        db = self._connect_with_retry()
        try:
            return db, _fetch_last_rows(db, begin)
        except BaseException:
            self._return_connection(db)
            raise

    def _connect_with_retry(self) -> PostgresConnection:
        end = time.monotonic() + self._patience
        while True:
            try:
                return psycopg.connect(**self._settings)
            except psycopg.OperationalError as error:
                if time.monotonic() > end or not any(words in str(error) for words in _TRANSIENT_ERRORS):
                    raise
                time.sleep(RETRY_SECONDS)

    def _return_connection(self, db: PostgresConnection) -> None:
        """Keep it if it is at rest; closing undoes what is left."""
        with suppress(psycopg.Error):
            if not db.closed and db.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                db.execute("ROLLBACK")
        if db.closed or db.info.transaction_status is not TransactionStatus.IDLE:
            db.close()
            return
        with self._lock:
            self._idle.append(db)


def open_pool(conninfo: str, patience: float, prepares: bool) -> ConnectionPool:
    """Nothing is connected yet; a URL that the driver cannot read is refused."""
    try:
        parameters = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        # Not its text, and not from it: it quotes what may be a part of the password.
        raise wrong_url_error() from None
    return ConnectionPool({**_NETWORK_SETTINGS, **parameters, **_FIXED_SETTINGS, "prepare_threshold": 5 if prepares else None}, patience)


def _fetch_last_rows(db: PostgresConnection, sql: str) -> list[Row]:
    cursor = db.execute(sql.encode())
    while cursor.nextset():
        pass
    return cursor.fetchall()
