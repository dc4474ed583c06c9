"""A session whose statements are counted and logged for the owner.

Law: a report has the kind of a statement, its charge and its outcome, and no text, value or row of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

from dpsql.amounts import NO_CHARGE
from dpsql.base.time_zones import TimeZone
from dpsql.errors import EngineFailed, Error, InternalError, QueryCanceled
from dpsql.interfaces.pgwire.backend_session.notices import encode_structured_notice
from dpsql.interfaces.pgwire.backend_session.protocol_session import ProtocolSession
from dpsql.interfaces.pgwire.backend_session.session_interface import PreparedStatementInfo
from dpsql.interfaces.pgwire.protocol import extension
from dpsql.interfaces.pgwire.protocol.frontend import FrontendMessage
from dpsql.interfaces.pgwire.server.databases import ServedDatabase
from dpsql.session.session import Charge, OutputColumn, Parameter, Session, StatementHandle, StatementResult
from dpsql.types import Type


@dataclass(frozen=True)
class StatementReport:
    """`outcome` is one of `metrics.STATEMENT_OUTCOMES`; `kind` the word of a command tag, where it came to one."""

    kind: str | None
    outcome: str
    sqlstate: str | None
    charge: Charge
    seconds: float
    account: str | None = None
    """Who was charged, where it is not the login's own."""


StatementReporter = Callable[[StatementReport], None]


class MonitoredSession:
    """A session that reports each call of `execute`."""

    def __init__(self, session: Session, report: StatementReporter) -> None:
        self._session, self._report_statement = session, report
        self.cancel_next = False
        """Whether a cancel has come before the statement had its turn: it is not begun then, and nothing is charged."""

    @property
    def user(self) -> str | None:
        return self._session.user

    @property
    def database(self) -> str:
        return self._session.database

    @property
    def charged(self) -> Charge:
        return self._session.charged

    @property
    def in_transaction(self) -> bool:
        return self._session.in_transaction

    @property
    def time_zone(self) -> TimeZone:
        return self._session.time_zone

    @property
    def variables(self) -> Sequence[tuple[str, str]]:
        return self._session.variables

    def execute(
        self,
        sql: str,
        parameters: Sequence[Parameter] = (),
        *,
        settings: Mapping[str, str] | None = None,
        handle: StatementHandle | None = None,
    ) -> StatementResult:
        """Run a statement and report it. Without a handle it is the server's own BEGIN or COMMIT: not reported."""
        if handle is None:
            return self._session.execute(sql, parameters, settings=settings)
        if self.cancel_next:
            self._session.cancel(handle)
        account = self._session.acts_for
        start_time, kind, outcome, sqlstate, charge = monotonic(), None, "failed", None, NO_CHARGE
        try:
            answer = self._session.execute(sql, parameters, settings=settings, handle=handle)
            charge = self._session.charged
            kind, outcome = answer.command, "released" if charge else "free"
            return answer
        except Error as error:
            outcome, sqlstate, charge = outcome_of(error), error.sqlstate, error.charge
            raise
        finally:
            self._report_statement(StatementReport(kind, outcome, sqlstate, charge, monotonic() - start_time, account))

    def prepare(
        self, sql: str, types: Sequence[Type | None] = (), *, settings: Mapping[str, str] | None = None
    ) -> PreparedStatementInfo:
        return self._session.prepare(sql, types, settings=settings)

    def describe(
        self, sql: str, parameters: Sequence[Parameter] = (), *, settings: Mapping[str, str] | None = None
    ) -> Sequence[OutputColumn]:
        return self._session.describe(sql, parameters, settings=settings)

    def cancel(self, handle: StatementHandle | None = None) -> None:
        self._session.cancel(handle)

    def left_text(self) -> str | None:
        return self._session.left_text()


def outcome_of(error: Error) -> str:
    match error:
        case QueryCanceled():
            return "canceled"
        case EngineFailed() | InternalError():
            return "failed"
        case _:
            return "refused"


class ClientSession:
    """One client's session, and the protocol session that the client talks to it by."""

    def __init__(
        self, session: Session, report: StatementReporter, log_error: Callable[[BaseException], None], structured: bool
    ) -> None:
        self._monitored_session = MonitoredSession(session, report)
        self._protocol_session = ProtocolSession(self._monitored_session, structured=structured, log=log_error)
        self._reported_progress = (0, 0)
        self.reports_progress = structured
        """Whether the client wants to be told, while a statement runs, how far it is."""

    def next_progress_notice(self) -> bytes:
        """How many releases of the running statement are done, of how many; empty if that has not changed.

        Privacy: a release is there when its run is seen to have ended, which is on the grid of `min_latency`.
        """
        progress = self._protocol_session.progress
        if progress in ((0, 0), self._reported_progress):
            return b""
        self._reported_progress = progress
        return encode_structured_notice(extension.encode_progress_notice(*progress))

    def make_greeting(self) -> bytes:
        return self._protocol_session.make_greeting()

    def handle_message(self, message: FrontendMessage) -> Iterator[bytes]:
        return self._protocol_session.handle_message(message)

    def cancel(self, waiting: bool) -> None:
        """From any thread. `waiting`: the statement that the client has sent last has not begun."""
        if waiting:
            self._monitored_session.cancel_next = True
        else:
            self._protocol_session.cancel()

    def end_turn(self) -> None:
        self._monitored_session.cancel_next = False
        self._reported_progress = (0, 0)


def open_client_session(
    served: ServedDatabase,
    user: str,
    process: int,
    settings: Mapping[str, str],
    parameters: Mapping[str, str],
    report: StatementReporter,
    log_error: Callable[[BaseException], None],
) -> ClientSession:
    """A session on the data that all share. Raises what is wrong with the settings that the client connects with."""
    cache = served.get_session_cache(user, settings.get("role", ""))
    session = Session(served.dataset, user, opened_with=settings, cache=cache, process=process)
    return ClientSession(session, report, log_error, parameters.get(extension.STARTUP_PARAMETER, "").lower() == "on")
