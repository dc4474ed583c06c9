"""A connection: one analyst's session, on an opened schema or on a server."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from dpsql import errors
from dpsql.base.lexer import quote_name
from dpsql.errors import InterfaceError, NotSupportedError
from dpsql.interfaces.dbapi.cursor import Cursor, check_statement
from dpsql.interfaces.dbapi.mechanisms import (
    AboveThreshold,
    Holdout,
    MechanismNames,
    StatementInput,
    TrainingMeans,
    get_ask_forecast,
)
from dpsql.interfaces.dbapi.model import Model, read_model
from dpsql.interfaces.dbapi.result import Answer
from dpsql.interfaces.dbapi.url import Setting, read_address, read_settings
from dpsql.interfaces.remote.connection import ServerConnection, open_server_connection
from dpsql.interfaces.remote.session import RemoteSession
from dpsql.interfaces.remote.url import ServerAddress
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import (
    Balance,
    Explanation,
    Forecast,
    NamedFunction,
    NamedSetting,
    NamedTable,
    Number,
    Parameter,
    Session,
    StatementHandle,
    SubmitQuery,
    read_command,
)

if TYPE_CHECKING:
    from dpsql.amounts import Charge
    from dpsql.session.session import StatementResult

# What a connection asks: a session here, or one on a server. Both have this, and nothing else of them is used.


class AnalystSession(Protocol):
    """One analyst's statements, one at a time; `cancel` and `progress` are for any thread."""

    def execute(
        self,
        sql: str,
        parameters: Sequence[Parameter] = (),
        *,
        settings: Mapping[str, str] | None = None,
        handle: StatementHandle | None = None,
    ) -> StatementResult: ...

    def explain(
        self, sql: str, parameters: Sequence[Parameter] = (), *, settings: Mapping[str, str] | None = None
    ) -> Explanation: ...

    def budget(self) -> Balance: ...
    def tables(self) -> tuple[NamedTable, ...]: ...
    def functions(self) -> tuple[NamedFunction, ...]: ...
    def named_settings(self) -> tuple[NamedSetting, ...]: ...
    def cancel(self, handle: StatementHandle | None = None) -> None: ...
    def close(self) -> None: ...

    @property
    def user(self) -> str | None: ...
    @property
    def database(self) -> str: ...
    @property
    def lost(self) -> bool: ...
    @property
    def charged(self) -> Charge: ...
    @property
    def progress(self) -> tuple[int, int]: ...


def connect(
    schema: str | os.PathLike[str] | Mapping[str, Any],
    user: str | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    **settings: Setting,
) -> Connection:
    """Open a schema, or a server, as an analyst.

    `schema` is a YAML schema's path, a URL `dpsql:///path/schema.yaml?user=ana&epsilon=0.5`, or a dict with the keys of
    the file, whose paths are relative to `folder` (the working folder, if none is given). `user` is an analyst of the
    schema, left out where it declares none.

    With a URL `dpsql://ana@host:5433/clinic?sslmode=verify-full`, or `postgresql://…`, it is a server that answers. The
    password stands in the URL, in PGPASSWORD or in ~/.pgpass.

    Other arguments are settings, as in SQL's SET: `epsilon=0.5`, `delta=1e-9`,
    `contributions_rows=8`, `contributions_groups=4`, `noise="laplace"`, `nonnegative=True`.
    """
    if isinstance(schema, Mapping):
        name, setting_texts = user, read_settings(settings)
        dataset = open_dataset(schema, Path(folder or "."))
    else:
        if folder is not None:
            raise InterfaceError("folder is for a schema that is a dict", hint="Paths in a file are relative to it.")
        address = read_address(schema, user, settings)
        if isinstance(address, ServerAddress):
            return connect_to_server(open_server_connection(address))
        name, setting_texts = address.user, address.settings
        dataset = open_dataset(address.path)
    try:
        return Connection(Session(dataset, name, opened_with=setting_texts))
    except BaseException:
        dataset.close()
        raise


def connect_to_server(server_connection: ServerConnection) -> Connection:
    """A connection to a server that one is logged in to already."""
    return Connection(RemoteSession(server_connection))


class Connection:
    """One analyst's way to ask, as PEP 249 has it; `sql` is a short one for notebooks.

    Charges are durable when they are made, so there is nothing to commit. Threads may share a connection: their
    statements run one after another.
    """

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

    def __init__(self, session: AnalystSession) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._running: StatementHandle | None = None
        self._waiting: set[StatementHandle] = set()  # of statements whose turn has yet to come
        self._names = MechanismNames()
        # Not __del__: a finalizer runs once, and also at the end of the process.
        self._closing = weakref.finalize(self, session.close)

    # --- PEP 249 -----------------------------------------------------------------------------------------------------

    def cursor(self) -> Cursor:
        """A new cursor."""
        self._require_session()
        return Cursor(self)

    def commit(self) -> None:
        """End the transaction that BEGIN began, if there is one: settings of SET LOCAL end. Charges stand anyhow."""
        self._run_command("COMMIT")

    def rollback(self) -> None:
        """Undo the settings since BEGIN, if there is a transaction. Charges stand: what is released is released."""
        self._run_command("ROLLBACK")

    def close(self) -> None:
        """Free the engine; closing again does nothing."""
        with self._lock:
            self._closing()

    @property
    def autocommit(self) -> bool:
        """Always true: a charge is durable as soon as it is made."""
        return True

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        if not value:
            raise NotSupportedError("autocommit is always on", detail="A charge is durable as soon as it is made.")

    def __enter__(self) -> Self:
        self._require_session()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- beyond PEP 249 ----------------------------------------------------------------------------------------------

    def sql(
        self,
        sql: str,
        parameters: Sequence[Parameter] = (),
        *,
        settings: Mapping[str, Setting] | None = None,
        free: bool = False,
    ) -> Answer:
        """Run one statement and give all of its answer: `connection.sql("SELECT …").df()`; see `Cursor.execute`."""
        return self.cursor().execute(sql, parameters, settings=settings, free=free).answer()

    @property
    def closed(self) -> bool:
        """Whether the connection was closed, or that to a server was lost."""
        return not self._closing.alive or self._session.lost

    @property
    def user(self) -> str | None:
        """The analyst who asks; None where the schema declares none."""
        return self._session.user

    @property
    def database(self) -> str:
        """The name of the dataset, as `current_database()` tells it."""
        return self._session.database

    @property
    def server(self) -> str | None:
        """The server that answers, and whether by TLS, for people; None where the schema is opened here."""
        return self._session.server_text if isinstance(self._session, RemoteSession) else None

    def cancel(self) -> None:
        """From any thread: who waits for a statement gets QueryCanceled. The run goes on, is stored, and stays paid.

        Where none has begun, those are canceled that wait for their turn, and nothing is charged for them.
        """
        session, running = self._require_session(), self._running
        for handle in self._waiting.copy() if running is None else (running,):
            session.cancel(handle)

    def progress(self) -> tuple[int, int]:
        """From any thread: how many releases of the statement under way are there, and how many it has."""
        return self._require_session().progress

    def explain(
        self, sql: str, parameters: Sequence[Parameter] = (), *, settings: Mapping[str, Setting] | None = None
    ) -> Explanation:
        """What the statement would be charged and how good it would be; free. `print` it, or read its fields."""
        check_statement(sql, parameters)
        if isinstance(read_command(sql, parameters), SubmitQuery):
            raise NotSupportedError("explain tells of queries", hint='sql("EXPLAIN ASK …") tells of a mechanism.')
        setting_texts = read_settings(settings or {})
        with self._lock:
            return self._require_session().explain(sql, parameters, settings=setting_texts)

    def above_threshold(
        self,
        threshold: Number,
        queries: Iterable[StatementInput] | None = None,
        *,
        epsilon: Number | None = None,
        answers: int = 1,
        sensitivity: Number | None = None,
    ) -> AboveThreshold:
        """Ask of many numbers whether they lie above a threshold, and pay only for those that do (sparse vector).

        Each of `queries`, or of what its `ask` is given, is one COUNT or SUM over private rows. `epsilon`, that of the
        session if none is given, pays for `answers` above the threshold, after which it ends. One unit may move a
        number by `sensitivity`; where it is not given, it is the largest of a list of queries, or the first question's.
        Nothing is charged before the first question.
        """
        return AboveThreshold(self, threshold, queries, epsilon=epsilon, answers=answers, sensitivity=sensitivity)

    def holdout(
        self,
        train: TrainingMeans,
        holdout: str,
        *,
        n: int,
        threshold: Number,
        sigma: Number | None = None,
        epsilon: Number | None = None,
        budget: int = 10,
        sensitivity: Number | None = None,
    ) -> Holdout:
        """A holdout that may be used again and again (Thresholdout): it answers with the training set's mean unless
        private rows tell another one.

        `train` gives the training set's means, which are told exactly: a statement that is free (over public, synthetic
        or released rows) with {q} for the question, or a mapping or function of questions. `holdout` is a statement
        with one sum over private rows, "SELECT SUM({q}) FROM visits", which is divided by `n`, a public number. A mean
        that differs by more than about `threshold` is an overfit: it is answered by the holdout's, with noise of scale
        `sigma` or as `epsilon` allows, `budget` times. All of it is charged with the first question.
        """
        return Holdout(self, train, holdout, n=n, threshold=threshold, sigma=sigma, epsilon=epsilon, budget=budget,
                       sensitivity=sensitivity)  # fmt: skip

    def _get_forecast(self, sql: str) -> Forecast | None:
        """The forecast of an ASK, before a person agrees to it; None for any other statement."""
        return get_ask_forecast(self, sql)

    def budget(self) -> Balance:
        """What this analyst has lost and has left."""
        with self._lock:
            return self._require_session().budget()

    def model(self, name: str) -> Model:
        """A model that CREATE MODEL has made. Free."""
        return read_model(str(self.sql(f"SHOW MODEL {quote_name(name)} (FORMAT JSON)").scalar()))

    def tables(self) -> tuple[NamedTable, ...]:
        """The tables that can be asked, with their columns, declared values and bounds; from the schema alone, free."""
        with self._lock:
            return self._require_session().tables()

    def functions(self) -> tuple[NamedFunction, ...]:
        """The functions that a statement can call, each with an example."""
        return self._require_session().functions()

    def settings(self) -> tuple[NamedSetting, ...]:
        """The settings of SQL's SET, with values that they take."""
        return self._require_session().named_settings()

    def _run_command(self, command: str) -> None:
        with self._lock:
            self._require_session().execute(command)

    def _remaining_budget_text(self) -> str | None:
        """What is left of the budget, as text; None where the ledger cannot be read now, which fails no answer."""
        try:
            return self.budget().left_text
        except errors.Error:
            return None

    def _execute_statement(
        self, cursor: Cursor, sql: str, parameters: Sequence[Parameter], settings: Mapping[str, str], free: bool
    ) -> StatementResult:
        with self._statement_turn(StatementHandle(free=free)) as (session, handle):
            try:
                return session.execute(sql, parameters, settings=settings, handle=handle)
            finally:  # Ctrl-C, too, leaves a charge behind
                cursor._loss = session.charged

    @contextmanager
    def _statement_turn(self, handle: StatementHandle) -> Iterator[tuple[AnalystSession, StatementHandle]]:
        """A statement that waits for its turn, as while a price is worked out, can be canceled already."""
        self._waiting.add(handle)
        try:
            with self._lock:
                session, self._running = self._require_session(), handle
                try:
                    yield session, handle
                finally:
                    self._running = None
        finally:
            self._waiting.discard(handle)

    def _require_session(self) -> AnalystSession:
        if not self._closing.alive:
            raise InterfaceError("the connection is closed", hint="Connect again.")
        if self._session.lost:
            raise InterfaceError("the connection to the server was lost", hint="Connect again.")
        return self._session
