"""A session whose statements run on a server: to a connection, it is as a local one.

What is charged, how good an answer is and what is left, the server tells (`pgwire/protocol/extension.py`). Nothing is
asked twice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dpsql.amounts import NO_CHARGE, Charge
from dpsql.base.serialization import from_json
from dpsql.errors import Error, InvalidSyntax, OperationalError
from dpsql.interfaces.pgwire.protocol.extension import StatementMetadata, StatementOptions, read_json
from dpsql.interfaces.remote.connection import ServerConnection
from dpsql.interfaces.remote.exchange import ReplyCollector, query_json, run_statement
from dpsql.interfaces.remote.values import bind_parameters, make_row_reader
from dpsql.session.session import (
    Balance,
    Explanation,
    NamedFunction,
    NamedSetting,
    NamedTable,
    OutputColumn,
    Parameter,
    Receipt,
    StatementHandle,
    StatementResult,
)
from dpsql.session.status_preview import StatusPreview

EXPLAIN_PREFIX = "EXPLAIN (FORMAT JSON) "
CANCEL_TIMEOUT_SECONDS = 5.0
"""Seconds after Ctrl-C for the server to let go of a statement; after that the connection is left."""
WAIT_SECONDS = 3600.0
"""Seconds of a wait that has no end of its own: with a time it can be interrupted."""

_TABLES_TYPE: Any = tuple[NamedTable, ...]
_FUNCTIONS_TYPE: Any = tuple[NamedFunction, ...]
_SETTINGS_TYPE: Any = tuple[NamedSetting, ...]


class RemoteSession:
    """One login. Threads may share it: their statements go one after another."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        self._lock = threading.RLock()
        self._cancel_lock = threading.Lock()  # between the statement under way and who cancels it
        self._handle: StatementHandle | None = None
        self._collector = ReplyCollector()
        self._charged = NO_CHARGE
        self._left_text: str | None = None
        self._cached: dict[str, Any] = {}

    # --- who and where -----------------------------------------------------------------------------------------------

    @property
    def user(self) -> str | None:
        return self._connection.login.server.user

    @property
    def database(self) -> str:
        return self._connection.login.server.database

    @property
    def server_text(self) -> str:
        """Where the server is and how it is reached, for people."""
        return f"{self._connection.address}, {self._connection.security_text}"

    @property
    def lost(self) -> bool:
        """Whether the connection broke: nothing can be asked any more."""
        return self._connection.broken

    def close(self) -> None:
        self._connection.close()

    # --- statements --------------------------------------------------------------------------------------------------

    def execute(
        self,
        sql: str,
        parameters: Sequence[Parameter] = (),
        *,
        settings: Mapping[str, str] | None = None,
        handle: StatementHandle | None = None,
    ) -> StatementResult:
        """One statement, as a local session has it. `settings`, and whether it must be free, hold for it alone."""
        handle = handle or StatementHandle()
        with self._lock, _attach_statement(sql):
            self._charged, self._collector = NO_CHARGE, ReplyCollector()
            try:
                values = bind_parameters(parameters)
                options = StatementOptions(tuple((settings or {}).items()), handle.free)
                collector = self._run_exchange(
                    lambda collector: run_statement(self._connection, sql, values, options, collector), handle
                )
                self._left_text = collector.metadata.left or self._left_text
                if sql.lstrip()[:6].lower().startswith(("create", "drop")):
                    self._cached.clear()  # there are other names now
                return _build_answer(collector)
            finally:  # Ctrl-C, too, leaves a charge behind
                self._charged = self._collector.metadata.charge

    @property
    def charged(self) -> Charge:
        """What the last statement was charged, as far as the server has told."""
        return self._charged

    @property
    def progress(self) -> tuple[int, int]:
        return self._collector.metadata.progress

    def cancel(self, handle: StatementHandle | None = None) -> None:
        """From any thread; one whose turn has yet to come is not sent.

        Under a lock that the end of a statement needs too: so no cancel is for the one after it.
        """
        with self._cancel_lock:
            running = self._handle
            if handle is not None:
                handle.canceled = True
            if running is not None and handle in (None, running):
                running.canceled = True
                self._connection.cancel()

    def explain(
        self, sql: str, parameters: Sequence[Parameter] = (), *, settings: Mapping[str, str] | None = None
    ) -> Explanation:
        with self._lock, _attach_statement(sql):
            values, options = bind_parameters(parameters), StatementOptions(tuple((settings or {}).items()))
            collector = self._run_exchange(
                lambda collector: run_statement(
                    self._connection, EXPLAIN_PREFIX + sql, values, options, collector, len(EXPLAIN_PREFIX)
                ),
                StatementHandle(),
            )
            explained: Explanation = _decode_as(Explanation, _read_json_cell(collector))
            return explained

    def budget(self) -> Balance:
        balance: Balance = self._query_as(Balance, "SHOW BUDGET (FORMAT JSON)")
        return balance

    def left_text(self) -> str | None:
        """As the server told it with the last answer that had something to tell of it."""
        return self._left_text

    def tables(self) -> tuple[NamedTable, ...]:
        named_tables: tuple[NamedTable, ...] = self._query_cached(_TABLES_TYPE, "SHOW TABLES (FORMAT JSON)")
        return named_tables

    def functions(self) -> tuple[NamedFunction, ...]:
        named_functions: tuple[NamedFunction, ...] = self._query_cached(_FUNCTIONS_TYPE, "SHOW FUNCTIONS (FORMAT JSON)")
        return named_functions

    def named_settings(self) -> tuple[NamedSetting, ...]:
        result: tuple[NamedSetting, ...] = self._query_cached(_SETTINGS_TYPE, "SHOW SETTINGS (FORMAT JSON)")
        return result

    # --- inside ------------------------------------------------------------------------------------------------------

    def _query_cached(self, kind: Any, command: str) -> Any:
        """Ask once for a list that depends on the schema, the server and the account's objects."""
        with self._lock:
            if command not in self._cached:
                self._cached[command] = self._query_as(kind, command)
            return self._cached[command]

    def _query_as(self, kind: Any, command: str) -> Any:
        with self._lock:
            return _decode_as(kind, query_json(self._connection, command))

    def _run_exchange(
        self, work: Callable[[ReplyCollector], ReplyCollector], handle: StatementHandle
    ) -> ReplyCollector:
        """For the main thread, run on another, which Ctrl-C does not interrupt: so no reply is left half read."""
        with self._cancel_lock:
            handle.check_cancellation(0)
            self._handle, self._collector = handle, ReplyCollector()
        try:
            if threading.current_thread() is not threading.main_thread():
                return work(self._collector)
            return self._run_interruptible(work, handle)
        finally:
            with self._cancel_lock:
                self._handle = None

    def _run_interruptible(
        self, work: Callable[[ReplyCollector], ReplyCollector], handle: StatementHandle
    ) -> ReplyCollector:
        errors: list[BaseException] = []
        collector, ended = self._collector, threading.Event()

        def run() -> None:
            try:
                work(collector)
            except BaseException as error:
                errors.append(error)
            finally:
                ended.set()

        threading.Thread(target=run, name="dpsql-remote", daemon=True).start()
        try:
            while not ended.wait(WAIT_SECONDS):
                pass
        except KeyboardInterrupt:
            self._cancel_and_wait(ended, handle)
            raise
        if errors:
            raise errors[0]
        return collector

    def _cancel_and_wait(self, ended: threading.Event, handle: StatementHandle) -> None:
        """Let go of the statement under way: the server does at once. Where it does not, or on a second Ctrl-C, the
        connection is given up."""
        try:
            self.cancel(handle)
            ended.wait(CANCEL_TIMEOUT_SECONDS)
        finally:
            if not ended.is_set():
                self._connection.broken = True
                self._connection.close()


@contextmanager
def _attach_statement(sql: str) -> Iterator[None]:
    """Give errors the statement that they are about."""
    try:
        yield
    except Error as error:
        if error.statement is None:
            error.statement = sql
        raise


def _decode_as(kind: Any, plain: Any) -> Any:
    try:
        return from_json(kind, plain)
    except ValueError:
        raise _unreadable_reply_error() from None


def _unreadable_reply_error() -> OperationalError:
    return OperationalError(
        "the server tells it in another form", hint="Is it of another version of dpsql?", sqlstate="08P01"
    )


def _read_json_cell(collector: ReplyCollector) -> Any:
    try:
        (cell,) = collector.rows[0]
        return read_json(cell or b"")
    except (ValueError, IndexError):
        return None


def _build_answer(collector: ReplyCollector) -> StatementResult:
    metadata = collector.metadata
    if collector.tag is None:
        raise InvalidSyntax("the statement is empty", hint="Write a SELECT, for example: SELECT COUNT(*) FROM visits")
    columns = tuple(OutputColumn(*column) for column in metadata.columns)
    return StatementResult(
        columns,
        _decode_rows(columns, collector),
        [metadata.error_bars_of(row) for row in range(metadata.rows)],
        notices=metadata.notices,
        command=metadata.command or collector.tag,
        receipts=tuple(Receipt(*receipt) for receipt in metadata.receipts),
    )


def _decode_rows(columns: Sequence[OutputColumn], collector: ReplyCollector) -> list[tuple[Any, ...]]:
    read, metadata = make_row_reader(columns), collector.metadata
    try:
        rows = [read(cells) for cells in collector.rows]
    except ValueError:
        raise _unreadable_reply_error() from None
    exact = [index for index, column in enumerate(columns) if column.type is None]
    if exact:
        rows = [_replace_exact_cells(row, index, exact, metadata) for index, row in enumerate(rows)]
    return rows


def _replace_exact_cells(
    row: tuple[Any, ...], row_index: int, exact: Sequence[int], metadata: StatementMetadata
) -> tuple[Any, ...]:
    """Put in the exact values that the protocol has no type for, which the server sends as notices."""
    cells = list(row)
    for column in exact:
        cells[column] = metadata.values.get((row_index, column), cells[column])
    return tuple(cells)


# What a prompt shows of a server at once: its database, and what is left of the account that has logged in.


def preview_remote_status(connection: ServerConnection) -> StatusPreview | None:
    """None where the server cannot tell it now; opening the connection tells the reason."""
    try:
        balance = query_json(connection, "SHOW BUDGET (FORMAT JSON)")
        return from_json(StatusPreview, {"database": connection.login.server.database, "balance": balance})
    except (Error, ValueError):
        return None
