"""One client's statements in turn: the ticket of what is under way, and the transaction around it.

A transaction keeps or drops settings only; what was charged stays charged. A transaction that failed takes nothing
but its end (25P02), and COMMIT ends it as ROLLBACK does. Several statements that are sent together are one transaction
of their own, unless they say otherwise.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dpsql.errors import Error, ProgrammingError, QueryCanceled
from dpsql.figures import NOTHING
from dpsql.pgwire.answering import Answering
from dpsql.pgwire.meta import Wishes
from dpsql.session import Answer, Charge, Parameter, Ticket

_ENDS = ("COMMIT", "ROLLBACK")


class Exchange:
    """`failed`: the client's transaction has failed. `implicit`: it is ours, around what was sent together."""

    def __init__(self, session: Answering) -> None:
        self.session = session
        self.failed = False
        self.implicit = False
        self._guard = threading.Lock()
        self._under_way: Ticket | None = None
        self._paid = NOTHING

    # --- what is under way -------------------------------------------------------------------------------------------

    @contextmanager
    def under_way(self, free: bool = False) -> Iterator[Ticket]:
        """Around a statement, until its last byte: meanwhile it can be canceled."""
        ticket = Ticket(free=free)
        with self._guard:
            self._under_way = ticket
        self._paid = NOTHING
        try:
            yield ticket
        except Error as error:  # also of one whose answer cannot be told
            error.charge = error.charge or self._paid
            raise
        finally:
            with self._guard:
                self._under_way = None

    def cancel(self) -> None:
        """From any thread: the statement under way, if there is one."""
        with self._guard:
            ticket = self._under_way
            if ticket is not None:
                self.session.cancel(ticket)

    @property
    def progress(self) -> tuple[int, int]:
        """From any thread: how many of its releases are there, of how many."""
        ticket = self._under_way
        return (0, 0) if ticket is None else (ticket.delivered, ticket.releases)

    @staticmethod
    def check(ticket: Ticket) -> None:
        """Between chunks of an answer."""
        if ticket.canceled:
            raise QueryCanceled("canceling statement due to user request")

    # --- transactions ------------------------------------------------------------------------------------------------

    @property
    def status(self) -> str:
        """`I` idle, `T` in a transaction, `E` in one that failed."""
        return "E" if self.failed else "T" if self.session.in_transaction and not self.implicit else "I"

    def admitted(self, sql: str) -> str:
        """The statement that is run in its place: where a transaction has failed, its end."""
        if not self.failed:
            return sql
        command = self.session.prepare(sql).command
        self.require_end(command)
        return "ROLLBACK" if command == "COMMIT" else sql

    def require_end(self, command: str) -> None:
        if self.failed and command not in _ENDS:
            raise ProgrammingError(
                "current transaction is aborted, commands ignored until end of transaction block", sqlstate="25P02"
            )

    def execute(self, sql: str, parameters: Sequence[Parameter], wishes: Wishes, ticket: Ticket) -> Answer:
        answer = self.session.execute(
            self.admitted(sql), parameters, settings=dict(wishes.settings) or None, ticket=ticket
        )
        self._paid = self.session.charged
        if answer.command in _ENDS:
            self.failed = False
        if answer.command in ("BEGIN", "START TRANSACTION") or not self.session.in_transaction:
            self.implicit = False
        return answer

    def begin(self) -> None:
        """A transaction of our own, unless there is one."""
        if not self.session.in_transaction:
            self.session.execute("BEGIN")
            self.implicit = True

    def end(self) -> None:
        """Of what was sent together."""
        if self.implicit:
            self.implicit = False
            self.session.execute("COMMIT")

    def after_error(self) -> None:
        if self.implicit:
            self.implicit = False
            self.session.execute("ROLLBACK")
        elif self.session.in_transaction:
            self.failed = True

    def charge_of(self, error: BaseException) -> Charge:
        """What had been charged when it failed. If the ledger cannot tell, nothing is told of it."""
        if isinstance(error, Error):
            return error.charge
        try:
            return self.session.charged
        except Error:
            return NOTHING
