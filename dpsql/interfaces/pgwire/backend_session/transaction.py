"""One client's statements in turn: the handle of the one that runs, and the transaction around it.

A transaction keeps or drops settings only; what was charged stays charged. A transaction that failed takes nothing
but its end (25P02), and COMMIT ends it as ROLLBACK does. Several statements that are sent together are one transaction
of their own, unless they say otherwise.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dpsql.amounts import NO_CHARGE
from dpsql.errors import Error, ProgrammingError, QueryCanceled
from dpsql.interfaces.pgwire.backend_session.session_interface import SessionProtocol
from dpsql.interfaces.pgwire.protocol.extension import StatementOptions
from dpsql.session.session import Charge, Parameter, StatementHandle, StatementResult

_END_COMMANDS = ("COMMIT", "ROLLBACK")


class TransactionState:
    """`failed`: the client's transaction has failed. `implicit`: it is ours, around what was sent together."""

    def __init__(self, session: SessionProtocol) -> None:
        self.session = session
        self.failed = False
        self.implicit = False
        self._guard = threading.Lock()
        self._under_way: StatementHandle | None = None
        self._paid = NO_CHARGE

    # --- what is under way -------------------------------------------------------------------------------------------

    @contextmanager
    def statement_scope(self, free: bool = False) -> Iterator[StatementHandle]:
        """Around a statement until its last byte is sent: within, it can be canceled."""
        handle = StatementHandle(free=free)
        with self._guard:
            self._under_way = handle
        self._paid = NO_CHARGE
        try:
            yield handle
        except Error as error:  # also of one whose answer cannot be told
            error.charge = error.charge or self._paid
            raise
        finally:
            with self._guard:
                self._under_way = None

    def cancel(self) -> None:
        """Cancel the running statement, if there is one; may be called from any thread."""
        with self._guard:
            handle = self._under_way
            if handle is not None:
                self.session.cancel(handle)

    @property
    def progress(self) -> tuple[int, int]:
        """From any thread: how many of its releases are there, of how many."""
        handle = self._under_way
        return (0, 0) if handle is None else (handle.delivered, handle.releases)

    @staticmethod
    def check_canceled(handle: StatementHandle) -> None:
        """Raise if the statement was canceled; called between chunks of an answer."""
        if handle.canceled:
            raise QueryCanceled("canceling statement due to user request")

    # --- transactions ------------------------------------------------------------------------------------------------

    @property
    def status(self) -> str:
        """`I` idle, `T` in a transaction, `E` in one that failed."""
        return "E" if self.failed else "T" if self.session.in_transaction and not self.implicit else "I"

    def admit_statement(self, sql: str) -> str:
        """The statement to run. In a failed transaction, COMMIT runs as ROLLBACK; all else but its end is refused."""
        if not self.failed:
            return sql
        command = self.session.prepare(sql).command
        self.require_transaction_end(command)
        return "ROLLBACK" if command == "COMMIT" else sql

    def require_transaction_end(self, command: str) -> None:
        if self.failed and command not in _END_COMMANDS:
            raise ProgrammingError(
                "current transaction is aborted, commands ignored until end of transaction block", sqlstate="25P02"
            )

    def execute(
        self, sql: str, parameters: Sequence[Parameter], options: StatementOptions, handle: StatementHandle
    ) -> StatementResult:
        answer = self.session.execute(
            self.admit_statement(sql), parameters, settings=dict(options.settings) or None, handle=handle
        )
        self._paid = self.session.charged
        if answer.command in _END_COMMANDS:
            self.failed = False
        if answer.command in ("BEGIN", "START TRANSACTION") or not self.session.in_transaction:
            self.implicit = False
        return answer

    def begin_implicit(self) -> None:
        """Begin a transaction around what was sent together, unless the client has one."""
        if not self.session.in_transaction:
            self.session.execute("BEGIN")
            self.implicit = True

    def commit_implicit(self) -> None:
        """Commit the implicit transaction of statements that were sent together."""
        if self.implicit:
            self.implicit = False
            self.session.execute("COMMIT")

    def abort_transaction(self) -> None:
        if self.implicit:
            self.implicit = False
            self.session.execute("ROLLBACK")
        elif self.session.in_transaction:
            self.failed = True

    def charge_of(self, error: BaseException) -> Charge:
        """What had been charged when the statement failed; nothing if the ledger cannot be read."""
        if isinstance(error, Error):
            return error.charge
        try:
            return self.session.charged
        except Error:
            return NO_CHARGE
