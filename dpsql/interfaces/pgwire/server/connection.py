"""One client connection: login, then statements in turn, until the client or the server ends it.

Law: no statement runs on the event loop, and no thread waits for a client: a statement runs on a thread of the pool,
and its bytes are written and drained on the event loop. A client who leaves while a statement runs is detached from
it, and the run goes on. An unforeseen error reaches the client as one fixed text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from os import sep
from pathlib import Path
from time import monotonic
from traceback import extract_tb
from typing import TypeVar

from dpsql.errors import Error, InternalError, OperationalError
from dpsql.interfaces.pgwire.backend_session.notices import error_fields
from dpsql.interfaces.pgwire.protocol import backend
from dpsql.interfaces.pgwire.protocol.framing import ProtocolViolation
from dpsql.interfaces.pgwire.protocol.frontend import (
    CancelRequest,
    Flush,
    FrontendDecoder,
    FrontendMessage,
    MalformedMessage,
    SimpleQuery,
    StartupMessage,
    Sync,
    Terminate,
)
from dpsql.interfaces.pgwire.server.databases import ServedDatabase, ServedDatabases
from dpsql.interfaces.pgwire.server.logging import EventLog, round_up_to_grid
from dpsql.interfaces.pgwire.server.login import (
    LoginFailed,
    LoginRules,
    are_equal,
    authenticate_client,
    generate_cancel_key,
    generate_process_id,
    negotiate_startup,
)
from dpsql.interfaces.pgwire.server.login_throttle import LoginThrottle
from dpsql.interfaces.pgwire.server.metrics import ServerMetrics
from dpsql.interfaces.pgwire.server.monitored_session import ClientSession, StatementReport, open_client_session
from dpsql.interfaces.pgwire.server.scheduler import FairScheduler
from dpsql.interfaces.pgwire.server.startup_parameters import startup_settings_of
from dpsql.interfaces.pgwire.server.stream import ClientGone, ClientStream

WRITE_CHUNK_BYTES = 64 * 1024
"""Bytes of answers that are gathered before they are written."""
MAX_BATCH_MESSAGES = 256
"""Messages that are answered in one turn: a client may send any number at once."""
LISTENING_CHECK_SECONDS = (0.02, 1.0)
"""Between two looks at whether a client that has ended its input still listens: at first, and at most."""
ABORT_SECONDS = 2.0
"""For the last message to a client, at the end of the server's grace."""
PROGRESS_INTERVAL_SECONDS = 0.25
"""Between two looks at how far a statement is."""
UNFINISHED_MESSAGE_SECONDS = 120.0
"""For the next bytes of a message that has begun."""

OWNERS_SQLSTATES = ("XX", "58", "57P03")
"""Statements that fail so are the owner's to look at: logged as errors."""

T = TypeVar("T")


@dataclass(frozen=True)
class ServerLimits:
    """What clients may use. 0 seconds means: no limit."""

    connections: int = 500
    connections_of_user: int = 200
    pending: int = 200  # that have not logged in
    pending_of_address: int = 0  # of one address; 0: half of what the others leave
    login_seconds: float = 60.0
    idle_seconds: float = 0.0
    write_seconds: float = 60.0
    message_bytes: int = 16 * 1024 * 1024
    buffered_bytes: int = 256 * 1024 * 1024  # of all clients together, of messages that have begun
    answer_bytes: int = 1024 * 1024 * 1024  # of all clients together, of answers that they have not read or closed


@dataclass(eq=False)
class ServerContext:
    """What all connections share; used on the event loop only."""

    databases: ServedDatabases
    scheduler: FairScheduler
    pool: Executor
    login_throttle: LoginThrottle
    log: EventLog
    metrics: ServerMetrics
    limits: ServerLimits
    login_rules: Callable[[], LoginRules]

    def __post_init__(self) -> None:
        self.connections: dict[int, ClientConnection] = {}  # those that are logged in, by process number
        self.login_slots = FairScheduler(self.limits.pending, self.limits.pending_of_address)
        self.buffered = 0

    def record_statement(self, connection: ClientConnection, report: StatementReport) -> None:
        self.metrics.statements[connection.database, report.outcome] += 1
        charge = report.charge
        write_event = self.log.error if (report.sqlstate or "").startswith(OWNERS_SQLSTATES) else self.log.info
        write_event(
            "statement",
            user=connection.user,
            account=report.account,
            database=connection.database,
            kind=report.kind,
            outcome=report.outcome,
            sqlstate=report.sqlstate,
            charged_epsilon=float(charge.epsilon) if charge else None,
            charged_delta=float(charge.delta) if charge else None,
            seconds=round_up_to_grid(report.seconds, connection.grid),
        )

    def count_connections(self, database: str | None = None, user: str | None = None) -> int:
        return sum(
            (database is None or connection.database == database) and (user is None or connection.user == user)
            for connection in self.connections.values()
        )


class ClientConnection:
    def __init__(self, stream: ClientStream, context: ServerContext) -> None:
        self.stream, self.context = stream, context
        self.process, self.key = generate_process_id(), generate_cancel_key()
        self.database = self.user = ""
        self.grid = Fraction(0)
        self._loop = asyncio.get_running_loop()
        self._protocol = FrontendDecoder(context.limits.message_bytes)
        self._session: ClientSession | None = None
        self._counted = 0
        self._idle = False
        self._waiting = False  # for a turn
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self._listening_check: asyncio.Task[None] | None = None

    # --- from outside ------------------------------------------------------------------------------------------------

    def start_task(self) -> asyncio.Task[None]:
        self.stream.on_disconnected = self.detach_statement
        self.stream.on_input_ended = self._watch_listening
        self._task = asyncio.get_running_loop().create_task(self._run_connection())
        return self._task

    def detach_statement(self) -> None:
        """Cancel the statement that runs or waits for its turn, if there is one; its run on the engine goes on."""
        if self._session is not None and not self._idle:
            self._session.cancel(self._waiting)

    def request_stop(self) -> None:
        """Close the connection: at once if it is idle, else after the statement that runs."""
        self._stopping = True
        if self._idle and self._task is not None:
            self._task.cancel()

    def abort_connection(self) -> None:
        """Close the connection, and leave the statement that runs. The client is told why, if it reads that soon."""
        self.request_stop()
        self._send_fatal_error(_shutdown_error())
        self.detach_statement()
        self.stream.close()
        self._loop.call_later(ABORT_SECONDS, self.stream.abort)

    def _watch_listening(self) -> None:
        """Of a client that has ended its input while a statement runs."""
        if self._session is not None and not self._idle:
            self._listening_check = self._loop.create_task(self._check_listening())

    async def _check_listening(self) -> None:
        """Tell a client that has said all, and is answered, from one that has left: to whom is gone nothing can be
        written. A parameter may be reported at any time, and this one is as the client knows it."""
        wait, longest = LISTENING_CHECK_SECONDS
        with suppress(ClientGone):
            while not self.stream.gone and not self._idle:
                if self.stream.is_writable:
                    self.stream.write(_LISTENING_PROBE)
                await asyncio.sleep(wait)
                wait = min(2 * wait, longest)

    # --- its life ----------------------------------------------------------------------------------------------------

    async def _run_connection(self) -> None:
        context = self.context
        context.metrics.connections += 1
        try:
            await self._admit_client()
        except ClientGone:
            pass
        except ProtocolViolation as error:
            context.metrics.violations += 1
            context.log.warning("protocol violation", address=self.stream.address, user=self.user or None,
                           reason=error.message, sqlstate=error.sqlstate)  # fmt: skip
            self._send_fatal_error(error)
        except Error as error:
            if not isinstance(error, LoginFailed):  # which is told of by itself
                event = "login refused" if self._session is None else "sent away"
                context.log.warning(event, address=self.stream.address, user=self.user or None,
                               database=self.database or None, sqlstate=error.sqlstate)  # fmt: skip
            self._send_fatal_error(error)
        except asyncio.CancelledError:
            self._send_fatal_error(_shutdown_error())
        except Exception as error:
            self._log_bug(error)
            self._send_fatal_error(InternalError("internal error"))
        finally:
            context.buffered -= self._counted
            self.stream.close()

    async def _admit_client(self) -> None:
        address = self.stream.address
        if not self.context.login_slots.try_acquire(address):
            self.context.metrics.logins["refused"] += 1
            raise _too_many_clients_error("sorry, too many clients already")
        try:
            served = await self._log_in_client()
        finally:
            self.context.login_slots.release_slot(address)
        if served is None:
            return
        try:
            await self._serve_messages()
        finally:
            del self.context.connections[self.process]
            self.context.databases.remove_client(served)
            self.context.log.info("disconnected", user=self.user, database=self.database, address=address)

    async def _log_in_client(self) -> ServedDatabase | None:
        """The database that was logged in to; None for a request to cancel another connection's statement."""
        start_time, outcome = monotonic(), "refused"
        try:
            async with asyncio.timeout(self.context.limits.login_seconds):
                message = await negotiate_startup(self.stream, self._protocol, self.context.login_rules())
                if isinstance(message, CancelRequest):
                    self._handle_cancel_request(message)
                    outcome = ""
                    return None
                served = await self._open_session(message)
                outcome = "accepted"
                return served
        except TimeoutError:
            outcome = "timeout"
            self.context.log.warning("login timeout", address=self.stream.address, user=self.user or None)
            raise ClientGone from None
        except LoginFailed as error:
            outcome = "failed"
            self.context.log.warning("login failed", address=self.stream.address, user=self.user,
                                     database=self.database, sqlstate=error.sqlstate)  # fmt: skip
            raise
        except ClientGone:
            outcome = ""
            raise
        finally:
            if outcome:
                self.context.metrics.record_login(outcome, monotonic() - start_time)

    def _handle_cancel_request(self, message: CancelRequest) -> None:
        """A cancel request is never answered: the sender does not learn whether there was something to cancel."""
        self.context.metrics.cancels += 1
        connection = self.context.connections.get(message.process)
        key = connection.key if connection is not None else self.key
        if are_equal(key, message.secret) and connection is not None:
            self.context.log.info("canceled", user=connection.user, database=connection.database)
            connection.detach_statement()

    async def _open_session(self, message: StartupMessage) -> ServedDatabase:
        context = self.context
        self.user, self.database = message.parameters.get("user", ""), message.parameters.get("database", "")
        request, served = await authenticate_client(
            self.stream, self._protocol, message, context.databases, context.login_throttle
        )
        self.user, self.database = request.user, request.database
        if len(context.connections) >= context.limits.connections:
            raise _too_many_clients_error("sorry, too many clients already")
        if context.count_connections(user=request.user) >= context.limits.connections_of_user:
            raise _too_many_clients_error(f'too many connections for role "{request.user}"')
        context.connections[self.process] = self
        self.grid = served.dataset.schema.limits.min_latency
        context.databases.add_client(served)
        try:
            settings = startup_settings_of(message.parameters, request)
            self._session = await self._run_on_thread(
                lambda: open_client_session(
                    served,
                    request.user,
                    self.process,
                    settings,
                    message.parameters,
                    self._report_statement,
                    self._log_bug,
                )
            )
        except BaseException:
            del context.connections[self.process]
            context.databases.remove_client(served)
            raise
        key = backend.backend_key_data(self.process, self.key)
        self.stream.write(self._session.make_greeting() + key + backend.ready_for_query("I"))
        self._protocol.allow_long_messages()
        context.log.info("connected", user=self.user, database=self.database, address=self.stream.address,
                       tls=self.stream.tls.version if self.stream.tls is not None else None)  # fmt: skip
        return served

    # --- statements --------------------------------------------------------------------------------------------------

    async def _serve_messages(self) -> None:
        while True:
            messages = await self._next_messages()
            session = self._session
            assert session is not None
            work, more = self._answer_messages(session, messages), True
            while more and not self.stream.gone:
                data, more = await self._run_with_progress(session, partial(_gather_chunk, work))
                if data:
                    self.stream.write(data)
                    await self.stream.drain(self.context.limits.write_seconds or None)
            session.end_turn()
            if self.stream.gone or isinstance(messages[-1], Terminate):
                return

    async def _run_with_progress(self, session: ClientSession, work: Callable[[], T]) -> T:
        """Run on a thread; meanwhile send progress to clients that want it. Only whole messages were sent before."""
        reporter = self._loop.create_task(self._report_progress(session)) if session.reports_progress else None
        try:
            return await self._run_on_thread(work)
        finally:
            if reporter is not None:
                reporter.cancel()

    async def _report_progress(self, session: ClientSession) -> None:
        while not self.stream.gone:
            await asyncio.sleep(PROGRESS_INTERVAL_SECONDS)
            if notice := session.next_progress_notice():
                self.stream.write(notice)

    @staticmethod
    def _answer_messages(session: ClientSession, messages: Sequence[FrontendMessage]) -> Iterator[tuple[bytes, bool]]:
        """The replies as bytes, and whether the client waits for them."""
        for message in messages:
            if isinstance(message, Terminate):
                return
            for data in session.handle_message(message):
                yield data, False
            yield b"", isinstance(message, SimpleQuery | Sync | Flush | MalformedMessage)

    async def _next_messages(self) -> list[FrontendMessage]:
        """The messages that were received, at least one; Terminate is the last."""
        messages: list[FrontendMessage] = []
        while True:
            while len(messages) < MAX_BATCH_MESSAGES and (message := self._protocol.next_message()) is not None:
                messages.append(message)
                self.context.metrics.violations += isinstance(message, MalformedMessage)
                if isinstance(message, Terminate):
                    break
            self._count_buffered()
            if messages:
                return messages
            await self._read_data()

    async def _read_data(self) -> None:
        limits = self.context.limits
        begun = self._protocol.buffered_bytes > 0
        seconds = UNFINISHED_MESSAGE_SECONDS if begun else limits.idle_seconds or None
        self._idle = True
        try:
            if self._stopping:
                raise asyncio.CancelledError
            async with asyncio.timeout(seconds):
                data = await self.stream.read(self._protocol.free_bytes)
        except TimeoutError:
            raise OperationalError(
                "terminating connection due to idle-session timeout" if not begun else "a message was left unfinished",
                sqlstate="57P05",
            ) from None
        finally:
            self._idle = False
        self._protocol.receive_data(data)

    def _count_buffered(self) -> None:
        """Count this client's bytes of incomplete messages; raise if all clients together have too many."""
        waiting = self._protocol.buffered_bytes
        self.context.buffered += waiting - self._counted
        self._counted = waiting
        if self.context.buffered > self.context.limits.buffered_bytes and waiting > WRITE_CHUNK_BYTES:
            raise OperationalError("out of memory", detail="Too many long messages at once.", sqlstate="53200")

    async def _run_on_thread(self, work: Callable[[], T]) -> T:
        """Run when it is this account's turn. Waits for the thread always: a session is for one thread at a time."""
        self._waiting = True
        try:
            async with self.context.scheduler.hold_slot(f"{self.database} {self.user}"):
                self._waiting = False
                if self.stream.gone:
                    raise ClientGone
                return await asyncio.get_running_loop().run_in_executor(self.context.pool, work)
        finally:
            self._waiting = False

    def _report_statement(self, report: StatementReport) -> None:
        """Pass a report to the event loop; called on the statement's thread."""
        context, loop = self.context, self._loop
        with suppress(RuntimeError):  # the loop has ended, with all who would read it
            loop.call_soon_threadsafe(context.record_statement, self, report)

    def _log_bug(self, error: BaseException) -> None:
        """Log where it happened, and not its message, which may hold rows."""
        self.context.log.error(
            "internal error", error=type(error).__name__, where=_error_location(error), user=self.user
        )

    def _send_fatal_error(self, error: Error) -> None:
        with suppress(ClientGone):
            self.stream.write(encode_fatal_error(error))


def _gather_chunk(work: Iterator[tuple[bytes, bool]]) -> tuple[bytes, bool]:
    """The bytes to write next, and whether more may follow."""
    parts, size = [], 0
    for data, is_awaited in work:
        parts.append(data)
        size += len(data)
        if is_awaited or size >= WRITE_CHUNK_BYTES:
            return b"".join(parts), True
    return b"".join(parts), False


_LISTENING_PROBE = backend.parameter_status("integer_datetimes", "on")


def _shutdown_error() -> Error:
    return OperationalError("terminating connection due to administrator command", sqlstate="57P01")


def _too_many_clients_error(message: str) -> Error:
    return OperationalError(message, hint="Try again when others have left.", sqlstate="53300")


def _error_location(error: BaseException) -> str:
    """The last of our own lines that it passed."""
    frames = [frame for frame in extract_tb(error.__traceback__) if f"{sep}dpsql{sep}" in frame.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"


def encode_fatal_error(error: Error) -> bytes:
    """An error that ends the connection."""
    return backend.error_response(error_fields(error, "FATAL"))
