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
from dpsql.pgwire import tls
from dpsql.pgwire.databases import Databases, Served, open_served, warm
from dpsql.pgwire.failures import Failures
from dpsql.pgwire.link import Link
from dpsql.pgwire.login import Rules
from dpsql.pgwire.logs import Log
from dpsql.pgwire.metrics import Metrics
from dpsql.pgwire.turns import Turns
from dpsql.pgwire.visit import Bounds, House, Visit
from dpsql.session import run_apart

BACKLOG = 512
FORCED_SECONDS = 10.0
"""For threads to leave once nobody waits for them any more."""


@dataclass(frozen=True)
class Options:
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
    bounds: Bounds = field(default_factory=Bounds)


def check(options: Options) -> None:
    """Before anything is opened."""
    if options.require_tls and options.certificate is None:
        raise InterfaceError("TLS can be required only where there is a certificate", hint="Name it by --tls-cert.")
    open_to_all = [host for host in options.hosts if not _is_loopback(host)]
    if open_to_all and options.certificate is None and not options.allow_plain:
        raise InterfaceError(
            f'without TLS, others on the way to "{open_to_all[0]}" could read all answers and change statements',
            hint="Name a certificate by --tls-cert and --tls-key, or say --allow-plain where the network is private.",
        )


class Server:
    """Of one event loop, in which all but `request_stop` is called."""

    def __init__(self, options: Options, served: Sequence[Served], log: Log, metrics: Metrics | None = None) -> None:
        self.options, self.log = options, log
        self.metrics = metrics or Metrics()
        self.databases = Databases(served)
        self._certificate = tls.load(options.certificate, options.key) if options.certificate is not None else None
        self._pool = ThreadPoolExecutor(options.threads, thread_name_prefix="dpsql-statement")
        self.house = House(
            self.databases, Turns(options.threads), self._pool, Failures(), log, self.metrics,
            options.bounds, self._rules,
        )  # fmt: skip
        self.metrics.now = self._gauges
        self.ports: tuple[int, ...] = ()
        self.stopping = self.forced = False
        self._listening: list[asyncio.AbstractServer] = []
        self._visits: dict[asyncio.Task[None], Visit] = {}
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
                listening = await self._loop.create_server(self._link, host, port, backlog=BACKLOG)
            except OSError as error:
                await self._close_listening()
                raise _cannot_listen(f"{host}:{port}", error) from None
            self._listening.append(listening)
            port = port or listening.sockets[0].getsockname()[1]
        self.ports = (port,)
        if self.options.folder is not None:
            self._listening.append(await self._socket(self.options.folder / f".s.PGSQL.{port}"))

    @property
    def port(self) -> int:
        return self.ports[0]

    def also_close(self, listening: asyncio.AbstractServer) -> None:
        """With its own, when it stops."""
        self._listening.append(listening)

    async def _socket(self, path: Path) -> asyncio.AbstractServer:
        if _answers(path):
            raise OperationalError(f'another server listens at "{path}"', sqlstate="55006")
        try:
            listening = await self._loop.create_unix_server(self._link, str(path), backlog=BACKLOG)
            path.chmod(0o777)  # as PostgreSQL does: a password is asked for here too
            return listening
        except OSError as error:
            raise _cannot_listen(str(path), error) from None

    def handle_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._signaled, number)
        if hasattr(signal, "SIGHUP"):
            self._loop.add_signal_handler(signal.SIGHUP, self.reload)

    def _signaled(self, number: int) -> None:
        self.log.info("signal", signal=signal.Signals(number).name)
        (self._force if self._stop.is_set() else self._stop).set()

    def request_stop(self) -> None:
        """From any thread."""
        self._loop.call_soon_threadsafe(self._stop.set)

    async def serve(self) -> None:
        """Until it is stopped; then those who wait for an answer get it, and the others are sent away."""
        warming = [self._loop.run_in_executor(None, warm, one) for one in self.databases]
        await self._stop.wait()
        await asyncio.gather(*warming, return_exceptions=True)
        self.stopping = True
        await self._close_listening()
        self.log.info("stopping", connections=len(self.house.visits))
        for task, visit in list(self._visits.items()):
            if visit.process in self.house.visits:
                visit.stop()
            else:
                task.cancel()
        if not await self._all_left(self.options.grace_seconds):
            self.forced = True
            self.log.warning("ending connections that still wait", connections=len(self._visits))
            for visit in self._visits.values():
                visit.end()
            await self._all_left(FORCED_SECONDS)
        if self._reloading is not None:
            await self._reloading

    def close(self) -> None:
        """When the loop has ended: wait for the runs that go on, and close the data."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.databases.close(self.forced)
        self.log.info("stopped")

    async def _all_left(self, seconds: float) -> bool:
        forced = self._loop.create_task(self._force.wait())
        try:
            end = self._loop.time() + seconds
            while self._visits and not self._force.is_set() and (rest := end - self._loop.time()) > 0:
                await asyncio.wait({*self._visits, forced}, timeout=rest, return_when=asyncio.FIRST_COMPLETED)
            return not self._visits
        finally:
            self._force.clear()
            forced.cancel()

    async def _close_listening(self) -> None:
        for one in self._listening:
            for each in getattr(one, "sockets", ()):
                if each.family == getattr(socket, "AF_UNIX", None):
                    with suppress(OSError):
                        os.unlink(each.getsockname())
            one.close()
        self._listening.clear()

    # --- clients -----------------------------------------------------------------------------------------------------

    def _link(self) -> Link:
        return Link(self._met)

    def _met(self, link: Link) -> None:
        visit = Visit(link, self.house)
        task = visit.begin()
        self._visits[task] = visit
        task.add_done_callback(lambda ended: self._visits.pop(ended, None))

    def _rules(self) -> Rules:
        return Rules(self._certificate, self.options.require_tls)

    def _gauges(self) -> Iterator[tuple[str, dict[str, str], float]]:
        house = self.house
        for name in self.databases.names:
            yield "dpsql_connections", {"database": name}, house.connected(name)
        yield "dpsql_logins_pending", {}, house.pending.taken
        yield "dpsql_statements_running", {}, house.turns.taken
        yield "dpsql_statements_waiting", {}, house.turns.waiting
        yield "dpsql_threads", {}, house.turns.places

    # --- reading again -----------------------------------------------------------------------------------------------

    def reload(self) -> None:
        """Certificate, schemas and data versions. What cannot be read stays as it was."""
        if self._reloading is None or self._reloading.done():
            self._reloading = self._loop.create_task(self._reload())

    async def _reload(self) -> None:
        if self.options.certificate is not None:
            try:
                self._certificate = tls.load(self.options.certificate, self.options.key)
            except Error as error:
                self.log.error("the certificate could not be read again", reason=error.message)
        for old in list(self.databases):
            try:
                new = await asyncio.to_thread(open_served, old.path, os.environ)
            except Exception as error:
                reason = error.message if isinstance(error, Error) else type(error).__name__
                self.log.error("a schema could not be read again", database=old.name, reason=reason)
                continue
            await asyncio.to_thread(warm, new)
            self.databases.replace(old, new)
            for who in new.logins.without:
                self.log.warning("cannot log in", database=new.name, reason=who)
            self.log.info("read again", database=new.name, version=new.dataset.resolved.version)


def run_server(server: Server, ready: Callable[[], Awaitable[None]]) -> None:
    """Until a signal ends it. What its analysts post-process runs in processes of their own."""

    async def main() -> None:
        await server.start()
        server.handle_signals()
        await ready()
        await server.serve()

    apart = run_apart(server.options.bounds.answer_bytes)
    try:
        asyncio.run(main())
    finally:
        server.close()
        apart.close()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _cannot_listen(where: str, error: OSError) -> Error:
    hint = "Another program listens there: name another --port; 0 takes any that is free."
    return OperationalError(f"cannot listen at {where}: {error.strerror}", hint=hint if error.errno == 98 else None)


def _answers(path: Path) -> bool:
    """Whether a socket is another server's that still runs."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trying:
        try:
            trying.connect(str(path))
            return True
        except OSError:
            return False
