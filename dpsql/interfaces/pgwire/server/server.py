"""`dpsql serve`: an event loop that carries the bytes of all clients, and a bounded pool of threads for statements.

Law: who shuts it down takes no answer from anyone who waits for one, unless told twice or the grace has passed; and
what was charged is in the ledger and is free to ask for again, however it ends.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dpsql.errors import Error, InterfaceError, OperationalError
from dpsql.interfaces.pgwire.server.connection import ClientConnection, ServerContext, ServerLimits
from dpsql.interfaces.pgwire.server.databases import (
    ServedDatabase,
    ServedDatabases,
    open_served_database,
    warm_up_database,
)
from dpsql.interfaces.pgwire.server.logging import EventLog
from dpsql.interfaces.pgwire.server.login import LoginRules
from dpsql.interfaces.pgwire.server.login_throttle import LoginThrottle
from dpsql.interfaces.pgwire.server.metrics import ServerMetrics
from dpsql.interfaces.pgwire.server.scheduler import FairScheduler
from dpsql.interfaces.pgwire.server.stream import ClientStream, load_certificate
from dpsql.session.session import start_worker_pool

LISTEN_BACKLOG = 512
FORCED_STOP_SECONDS = 10.0
"""For threads to leave once nobody waits for them any more."""


@dataclass(frozen=True)
class ServerOptions:
    """Where to listen, how, and what clients may use. A port of 0 is any that is free."""

    hosts: tuple[str, ...] = ("127.0.0.1",)
    port: int = 5433
    folder: Path | None = None  # for a socket, as PostgreSQL's clients look for it
    certificate: Path | None = None
    key: Path | None = None
    require_tls: bool = False
    allow_plain: bool = False
    threads: int = 64
    grace_seconds: float = 30.0
    limits: ServerLimits = field(default_factory=ServerLimits)


def check_options(options: ServerOptions) -> None:
    """Refuse options that do not fit together, before anything is opened."""
    if options.require_tls and options.certificate is None:
        raise InterfaceError("TLS can be required only where there is a certificate", hint="Name it by --tls-cert.")
    open_to_all = [host for host in options.hosts if not _is_loopback(host)]
    if open_to_all and options.certificate is None and not options.allow_plain:
        raise InterfaceError(
            f'without TLS, others on the way to "{open_to_all[0]}" could read all answers and change statements',
            hint="Name a certificate by --tls-cert and --tls-key, or say --allow-plain where the network is private.",
        )


class Server:
    """The server, on one event loop, in which all methods but `request_stop` are called."""

    def __init__(
        self,
        options: ServerOptions,
        served: Sequence[ServedDatabase],
        log: EventLog,
        metrics: ServerMetrics | None = None,
    ) -> None:
        self.options, self.log = options, log
        self.metrics = metrics or ServerMetrics()
        self.databases = ServedDatabases(served)
        self._certificate = (
            load_certificate(options.certificate, options.key) if options.certificate is not None else None
        )
        self._pool = ThreadPoolExecutor(options.threads, thread_name_prefix="dpsql-statement")
        self.context = ServerContext(
            self.databases, FairScheduler(options.threads), self._pool, LoginThrottle(), log, self.metrics,
            options.limits, self._login_rules,
        )  # fmt: skip
        self.metrics.now = self._read_gauges
        self.ports: tuple[int, ...] = ()
        self.stopping = self.forced = False
        self._listening: list[asyncio.AbstractServer] = []
        self._connections: dict[asyncio.Task[None], ClientConnection] = {}
        self._reloading: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._force: asyncio.Event

    # --- from its start to its end -----------------------------------------------------------------------------------

    async def start(self) -> None:
        """From here on, clients can connect."""
        self._loop = asyncio.get_running_loop()
        self._stop, self._force = asyncio.Event(), asyncio.Event()
        port = self.options.port
        for host in self.options.hosts:
            try:
                listening = await self._loop.create_server(self._make_stream, host, port, backlog=LISTEN_BACKLOG)
            except OSError as error:
                await self._close_listeners()
                raise _listen_error(f"{host}:{port}", error) from None
            self._listening.append(listening)
            port = port or listening.sockets[0].getsockname()[1]
        self.ports = (port,)
        if self.options.folder is not None:
            self._listening.append(await self._listen_on_socket(self.options.folder / f".s.PGSQL.{port}"))

    @property
    def port(self) -> int:
        return self.ports[0]

    def add_listener(self, listening: asyncio.AbstractServer) -> None:
        """With its own, when it stops."""
        self._listening.append(listening)

    async def _listen_on_socket(self, path: Path) -> asyncio.AbstractServer:
        if _is_listening(path):
            raise OperationalError(f'another server listens at "{path}"', sqlstate="55006")
        try:
            listening = await self._loop.create_unix_server(self._make_stream, str(path), backlog=LISTEN_BACKLOG)
            path.chmod(0o777)  # as PostgreSQL does: a password is asked for here too
            return listening
        except OSError as error:
            raise _listen_error(str(path), error) from None

    def handle_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._handle_signal, number)
        if hasattr(signal, "SIGHUP"):
            self._loop.add_signal_handler(signal.SIGHUP, self.reload)

    def _handle_signal(self, number: int) -> None:
        self.log.info("signal", signal=signal.Signals(number).name)
        (self._force if self._stop.is_set() else self._stop).set()

    def request_stop(self) -> None:
        """Stop the server; may be called from any thread."""
        self._loop.call_soon_threadsafe(self._stop.set)

    async def serve(self) -> None:
        """Until it is stopped; then those who wait for an answer get it, and the others are sent away."""
        warming = [self._loop.run_in_executor(None, warm_up_database, database) for database in self.databases]
        await self._stop.wait()
        await asyncio.gather(*warming, return_exceptions=True)
        self.stopping = True
        await self._close_listeners()
        self.log.info("stopping", connections=len(self.context.connections))
        for task, connection in list(self._connections.items()):
            if connection.process in self.context.connections:
                connection.request_stop()
            else:
                task.cancel()
        if not await self._wait_for_clients(self.options.grace_seconds):
            self.forced = True
            self.log.warning("ending connections that still wait", connections=len(self._connections))
            for connection in self._connections.values():
                connection.abort_connection()
            await self._wait_for_clients(FORCED_STOP_SECONDS)
        if self._reloading is not None:
            await self._reloading

    def close(self) -> None:
        """When the loop has ended: wait for the runs that go on, and close the data."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.databases.close(self.forced)
        self.log.info("stopped")

    async def _wait_for_clients(self, seconds: float) -> bool:
        forced = self._loop.create_task(self._force.wait())
        try:
            end = self._loop.time() + seconds
            while self._connections and not self._force.is_set() and (remaining := end - self._loop.time()) > 0:
                await asyncio.wait({*self._connections, forced}, timeout=remaining, return_when=asyncio.FIRST_COMPLETED)
            return not self._connections
        finally:
            self._force.clear()
            forced.cancel()

    async def _close_listeners(self) -> None:
        for listener in self._listening:
            for bound_socket in getattr(listener, "sockets", ()):
                if bound_socket.family == getattr(socket, "AF_UNIX", None):
                    with suppress(OSError):
                        os.unlink(bound_socket.getsockname())
            listener.close()
        self._listening.clear()

    # --- clients -----------------------------------------------------------------------------------------------------

    def _make_stream(self) -> ClientStream:
        return ClientStream(self._accept_client)

    def _accept_client(self, stream: ClientStream) -> None:
        connection = ClientConnection(stream, self.context)
        task = connection.start_task()
        self._connections[task] = connection
        task.add_done_callback(lambda ended: self._connections.pop(ended, None))

    def _login_rules(self) -> LoginRules:
        return LoginRules(self._certificate, self.options.require_tls)

    def _read_gauges(self) -> Iterator[tuple[str, dict[str, str], float]]:
        context = self.context
        for name in self.databases.names:
            yield "dpsql_connections", {"database": name}, context.count_connections(name)
        yield "dpsql_logins_pending", {}, context.login_slots.used_slots
        yield "dpsql_statements_running", {}, context.scheduler.used_slots
        yield "dpsql_statements_waiting", {}, context.scheduler.waiting_count
        yield "dpsql_threads", {}, context.scheduler.slots

    # --- reading again -----------------------------------------------------------------------------------------------

    def reload(self) -> None:
        """Certificate, schemas and data versions. What cannot be read stays as it was."""
        if self._reloading is None or self._reloading.done():
            self._reloading = self._loop.create_task(self._reload_databases())

    async def _reload_databases(self) -> None:
        if self.options.certificate is not None:
            try:
                self._certificate = load_certificate(self.options.certificate, self.options.key)
            except Error as error:
                self.log.error("the certificate could not be read again", reason=error.message)
        for old in list(self.databases):
            try:
                new = await asyncio.to_thread(open_served_database, old.path, os.environ)
            except Exception as error:
                reason = error.message if isinstance(error, Error) else type(error).__name__
                self.log.error("a schema could not be read again", database=old.name, reason=reason)
                continue
            await asyncio.to_thread(warm_up_database, new)
            self.databases.replace_database(old, new)
            for reason_text in new.logins.without:
                self.log.warning("cannot log in", database=new.name, reason=reason_text)
            self.log.info("read again", database=new.name, version=new.dataset.resolved.version)


def run_server(server: Server, ready: Callable[[], Awaitable[None]]) -> None:
    """Until a signal ends it. What its analysts post-process runs in processes of their own."""

    async def main() -> None:
        await server.start()
        server.handle_signals()
        await ready()
        await server.serve()

    worker_processes = start_worker_pool(server.options.limits.answer_bytes)
    try:
        asyncio.run(main())
    finally:
        server.close()
        worker_processes.close()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen_error(where: str, error: OSError) -> Error:
    hint = "Another program listens there: name another --port; 0 takes any that is free."
    return OperationalError(f"cannot listen at {where}: {error.strerror}", hint=hint if error.errno == 98 else None)


def _is_listening(path: Path) -> bool:
    """Whether a socket is another server's that still runs."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
            return True
        except OSError:
            return False
