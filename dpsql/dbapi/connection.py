"""A connection: one analyst's session on an opened schema."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from dpsql import errors
from dpsql.dataset import open_dataset
from dpsql.dbapi.address import Setting, read_address
from dpsql.dbapi.cursor import Cursor
from dpsql.errors import InterfaceError, NotSupportedError
from dpsql.session import (
    Answer,
    Balance,
    Explanation,
    NamedFunction,
    NamedSetting,
    NamedTable,
    Parameter,
    Session,
)


def connect(path_or_url: str | os.PathLike[str], user: str | None = None, **settings: Setting) -> Connection:
    """Open a schema as an analyst.

    `path_or_url` is a YAML schema's path or `dpsql:///path/schema.yaml?user=ana&epsilon=0.5`. `user` is an analyst of
    the schema, left out where it declares none. Other arguments are settings, as in SQL's SET: `epsilon=0.5`,
    `delta=1e-9`, `contributions_rows=8`, `contributions_groups=4`, `noise="laplace"`, `nonnegative=True`.
    """
    address = read_address(path_or_url, user, settings)
    dataset = open_dataset(address.path)
    try:
        session = Session(dataset, address.user)
        for name, value in address.settings.items():
            _set(session, name, value)
        return Connection(session)
    except BaseException:
        dataset.close()
        raise


def _set(session: Session, name: str, value: str) -> None:
    session.set(name, value)


class Connection:
    """See PEP 249. Charges are durable when made, so there are no transactions: commit and rollback do nothing."""

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        # Not __del__: a finalizer runs once, and also at the end of the process.
        self._closing = weakref.finalize(self, session.dataset.close)

    # --- PEP 249 -----------------------------------------------------------------------------------------------------

    def cursor(self) -> Cursor:
        self._open_session()
        return Cursor(self)

    def commit(self) -> None:
        self._open_session()

    def rollback(self) -> None:
        self._open_session()

    def close(self) -> None:
        """Free the engine; closing again does nothing."""
        with self._lock:
            self._closing()

    @property
    def autocommit(self) -> bool:
        return True

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        if not value:
            raise NotSupportedError("autocommit is always on", detail="A charge is durable as soon as it is made.")

    def __enter__(self) -> Self:
        self._open_session()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- beyond PEP 249 ----------------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        return not self._closing.alive

    @property
    def user(self) -> str | None:
        return self._session.user

    @property
    def database(self) -> str:
        """The name of the dataset, as `current_database()` tells it."""
        return self._session.dataset.schema.database

    def cancel(self) -> None:
        """From any thread: who waits for a statement gets QueryCanceled. The run goes on, is stored, and stays paid."""
        self._open_session().cancel()

    def progress(self) -> tuple[int, int]:
        """From any thread: how many releases of the statement under way are there, and how many it has."""
        return self._open_session().progress

    def explain(self, sql: str, parameters: Sequence[Parameter] = ()) -> Explanation:
        """What the statement would cost and how good it would be; free. `print` it, or read its fields."""
        with self._lock:
            return self._open_session().explain(sql, parameters)

    def budget(self) -> Balance:
        """What this analyst has lost and has left."""
        with self._lock:
            return self._open_session().budget()

    def tables(self) -> tuple[NamedTable, ...]:
        """The tables that can be asked, with their columns, declared values and bounds; from the schema alone, free."""
        with self._lock:
            return self._open_session().tables()

    def functions(self) -> tuple[NamedFunction, ...]:
        """The functions that a statement can call, each with an example."""
        return self._open_session().functions()

    def settings(self) -> tuple[NamedSetting, ...]:
        """The settings of SQL's SET, with values that they take."""
        return self._open_session().named_settings()

    def _execute(self, cursor: Cursor, sql: str, parameters: Sequence[Parameter]) -> Answer:
        with self._lock:
            session = self._open_session()
            try:
                return session.execute(sql, parameters)
            finally:  # Ctrl-C, too, leaves a charge behind
                cursor._loss = session.charged

    def _open_session(self) -> Session:
        if self.closed:
            raise InterfaceError("the connection is closed", hint="Connect again.")
        return self._session
