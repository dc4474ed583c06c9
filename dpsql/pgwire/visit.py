"""One client from the first byte to the last: login, then statements in turn, until she leaves or is sent away.

Law: no statement runs on the event loop, and no client is waited for on a thread: a statement runs on one of the
pool's, what it gives is written and drained here. A client who leaves while a statement runs is detached from it, and
the run goes on. What goes wrong unforeseen is told as one fixed text.
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
from dpsql.pgwire import replies
from dpsql.pgwire.databases import Databases, Served
from dpsql.pgwire.errors import error_fields
from dpsql.pgwire.failures import Failures
from dpsql.pgwire.frames import ProtocolViolation
from dpsql.pgwire.link import Gone, Link
from dpsql.pgwire.login import Rules, WrongLogin, log_in, start
from dpsql.pgwire.logs import Log, on_grid
from dpsql.pgwire.messages import CancelRequest, Flush, Message, Query, StartupMessage, Sync, Terminate
from dpsql.pgwire.metrics import Metrics
from dpsql.pgwire.nonces import are_equal, cancel_key, process_number
from dpsql.pgwire.protocol import Protocol
from dpsql.pgwire.startup import settings_of
from dpsql.pgwire.talk import Talk, Told, open_talk
from dpsql.pgwire.turns import Turns

CHUNK = 64 * 1024
"""Bytes of answers that are gathered before they are written."""
BATCH = 256
"""Messages that are answered in one turn: a client may send any number at once."""
PROGRESS_SECONDS = 0.25
"""Between two looks at how far a statement is."""
UNFINISHED_SECONDS = 120.0
"""For the next bytes of a message that has begun."""

T = TypeVar("T")


@dataclass(frozen=True)
class Bounds:
    """What clients may use. Seconds that are 0 have no end."""

    connections: int = 500
    connections_of_user: int = 200
    pending: int = 200
    login_seconds: float = 60.0
    idle_seconds: float = 0.0
    write_seconds: float = 60.0
    message_bytes: int = 16 * 1024 * 1024
    buffered_bytes: int = 256 * 1024 * 1024  # of all clients together, of messages that have begun
    answer_bytes: int = 1024 * 1024 * 1024  # of all clients together, of answers that they have not read or closed


@dataclass(eq=False)
class House:
    """What all visits share; of the event loop."""

    databases: Databases
    turns: Turns
    pool: Executor
    failures: Failures
    log: Log
    metrics: Metrics
    bounds: Bounds
    rules: Callable[[], Rules]

    def __post_init__(self) -> None:
        self.visits: dict[int, Visit] = {}  # those that are logged in, by process number
        self.pending = Turns(self.bounds.pending)
        self.buffered = 0

    def told(self, visit: Visit, told: Told) -> None:
        self.metrics.statements[visit.database, told.outcome] += 1
        charge = told.charge
        self.log.info(
            "statement", user=visit.user, account=told.account, database=visit.database, kind=told.kind,
            outcome=told.outcome, sqlstate=told.sqlstate, charged_epsilon=float(charge.epsilon) if charge else None,
            charged_delta=float(charge.delta) if charge else None, seconds=on_grid(told.seconds, visit.grid),
        )  # fmt: skip

    def connected(self, database: str | None = None, user: str | None = None) -> int:
        return sum(
            (database is None or one.database == database) and (user is None or one.user == user)
            for one in self.visits.values()
        )


class Visit:
    def __init__(self, link: Link, house: House) -> None:
        self.link, self.house = link, house
        self.process, self.key = process_number(), cancel_key()
        self.database = self.user = ""
        self.grid = Fraction(0)
        self._loop = asyncio.get_running_loop()
        self._protocol = Protocol(house.bounds.message_bytes)
        self._talk: Talk | None = None
        self._counted = 0
        self._idle = False
        self._waiting = False  # for a turn
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    # --- from outside ------------------------------------------------------------------------------------------------

    def begin(self) -> asyncio.Task[None]:
        self.link.left = self.detach
        self._task = asyncio.get_running_loop().create_task(self._run())
        return self._task

    def detach(self) -> None:
        """From a statement that is under way, if one is, or that waits for its turn."""
        if self._talk is not None and not self._idle:
            self._talk.cancel(self._waiting)

    def stop(self) -> None:
        """Who waits for nothing is sent away; who waits for an answer, after it."""
        self._stopping = True
        if self._idle and self._task is not None:
            self._task.cancel()

    def end(self) -> None:
        """Now."""
        self.stop()
        self.detach()
        self.link.abort()

    # --- its life ----------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        house = self.house
        house.metrics.connections += 1
        try:
            await self._met()
        except Gone:
            pass
        except ProtocolViolation as error:
            house.metrics.violations += 1
            house.log.info("protocol violation", address=self.link.address, user=self.user or None,
                           reason=error.message, sqlstate=error.sqlstate)  # fmt: skip
            self._send_away(error)
        except Error as error:
            if not isinstance(error, WrongLogin):  # which is told of by itself
                event = "login refused" if self._talk is None else "sent away"
                house.log.info(event, address=self.link.address, user=self.user or None,
                               database=self.database or None, sqlstate=error.sqlstate)  # fmt: skip
            self._send_away(error)
        except asyncio.CancelledError:
            self._send_away(OperationalError("terminating connection due to administrator command", sqlstate="57P01"))
        except Exception as error:
            self._tell_bug(error)
            self._send_away(InternalError("internal error"))
        finally:
            house.buffered -= self._counted
            self.link.close()

    async def _met(self) -> None:
        place = self.link.address
        if not self.house.pending.take_now(place):
            self.house.metrics.logins["refused"] += 1
            raise _too_many("sorry, too many clients already")
        try:
            served = await self._logged_in()
        finally:
            self.house.pending.leave(place)
        if served is None:
            return
        try:
            await self._serve()
        finally:
            del self.house.visits[self.process]
            self.house.databases.leave(served)
            self.house.log.info("disconnected", user=self.user, database=self.database, address=place)

    async def _logged_in(self) -> Served | None:
        """None: it was no connection but a request to cancel one."""
        began, outcome = monotonic(), "refused"
        try:
            async with asyncio.timeout(self.house.bounds.login_seconds):
                message = await start(self.link, self._protocol, self.house.rules())
                if isinstance(message, CancelRequest):
                    self._cancel(message)
                    outcome = ""
                    return None
                served = await self._welcomed(message)
                outcome = "accepted"
                return served
        except TimeoutError:
            outcome = "timeout"
            self.house.log.info("login timeout", address=self.link.address, user=self.user or None)
            raise Gone from None
        except WrongLogin as error:
            outcome = "failed"
            self.house.log.warning("login failed", address=self.link.address, user=self.user, database=self.database,
                                   sqlstate=error.sqlstate)  # fmt: skip
            raise
        except Gone:
            outcome = ""
            raise
        finally:
            if outcome:
                self.house.metrics.logged_in(outcome, monotonic() - began)

    def _cancel(self, message: CancelRequest) -> None:
        """Never answered: who asks learns nothing of whether there was something to cancel."""
        self.house.metrics.cancels += 1
        visit = self.house.visits.get(message.process)
        key = visit.key if visit is not None else self.key
        if are_equal(key, message.secret) and visit is not None:
            self.house.log.info("canceled", user=visit.user, database=visit.database)
            visit.detach()

    async def _welcomed(self, message: StartupMessage) -> Served:
        house = self.house
        self.user, self.database = message.parameters.get("user", ""), message.parameters.get("database", "")
        opening, served = await log_in(self.link, self._protocol, message, house.databases, house.failures)
        self.user, self.database = opening.user, opening.database
        if len(house.visits) >= house.bounds.connections:
            raise _too_many("sorry, too many clients already")
        if house.connected(user=opening.user) >= house.bounds.connections_of_user:
            raise _too_many(f'too many connections for role "{opening.user}"')
        house.visits[self.process] = self
        self.grid = served.dataset.schema.limits.min_latency
        house.databases.enter(served)
        try:
            settings = settings_of(message.parameters, opening)
            self._talk = await self._on_thread(
                lambda: open_talk(
                    served, opening.user, self.process, settings, message.parameters, self._tell, self._tell_bug
                )
            )
        except BaseException:
            del house.visits[self.process]
            house.databases.leave(served)
            raise
        key = replies.backend_key_data(self.process, self.key)
        self.link.write(self._talk.greeting() + key + replies.ready_for_query("I"))
        self._protocol.login_is_over()
        house.log.info("connected", user=self.user, database=self.database, address=self.link.address,
                       tls=self.link.tls.version if self.link.tls is not None else None)  # fmt: skip
        return served

    # --- statements --------------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        while True:
            messages = await self._messages()
            talk = self._talk
            assert talk is not None
            work, more = self._answers(talk, messages), True
            while more and not self.link.gone:
                data, more = await self._with_progress(talk, partial(_gathered, work))
                if data:
                    self.link.write(data)
                    await self.link.drain(self.house.bounds.write_seconds or None)
            talk.turn_is_over()
            if self.link.gone or isinstance(messages[-1], Terminate):
                return

    async def _with_progress(self, talk: Talk, work: Callable[[], T]) -> T:
        """On a thread; who wants it is told meanwhile how far it is. What was written before are whole messages."""
        telling = self._loop.create_task(self._tell_progress(talk)) if talk.tells_progress else None
        try:
            return await self._on_thread(work)
        finally:
            if telling is not None:
                telling.cancel()

    async def _tell_progress(self, talk: Talk) -> None:
        while not self.link.gone:
            await asyncio.sleep(PROGRESS_SECONDS)
            if news := talk.progress():
                self.link.write(news)

    @staticmethod
    def _answers(talk: Talk, messages: Sequence[Message]) -> Iterator[tuple[bytes, bool]]:
        """Bytes, and whether the client waits for them."""
        for message in messages:
            if isinstance(message, Terminate):
                return
            for data in talk.answer(message):
                yield data, False
            yield b"", isinstance(message, Query | Sync | Flush)

    async def _messages(self) -> list[Message]:
        """Those that are here, at least one; none stands behind the end."""
        found: list[Message] = []
        while True:
            while len(found) < BATCH and (message := self._protocol.next_message()) is not None:
                found.append(message)
                if isinstance(message, Terminate):
                    break
            self._count_buffered()
            if found:
                return found
            await self._read()

    async def _read(self) -> None:
        bounds = self.house.bounds
        begun = self._protocol.waiting > 0
        seconds = UNFINISHED_SECONDS if begun else bounds.idle_seconds or None
        self._idle = True
        try:
            if self._stopping:
                raise asyncio.CancelledError
            async with asyncio.timeout(seconds):
                data = await self.link.read(self._protocol.room)
        except TimeoutError:
            raise OperationalError(
                "terminating connection due to idle-session timeout" if not begun else "a message was left unfinished",
                sqlstate="57P05",
            ) from None
        finally:
            self._idle = False
        self._protocol.receive(data)

    def _count_buffered(self) -> None:
        """Of all clients, what has come of messages that are not complete."""
        waiting = self._protocol.waiting
        self.house.buffered += waiting - self._counted
        self._counted = waiting
        if self.house.buffered > self.house.bounds.buffered_bytes and waiting > CHUNK:
            raise OperationalError("out of memory", detail="Too many long messages at once.", sqlstate="53200")

    async def _on_thread(self, work: Callable[[], T]) -> T:
        """In this account's turn. Never left before the thread has: two threads in one session would mix it up."""
        self._waiting = True
        try:
            async with self.house.turns.turn(f"{self.database} {self.user}"):
                self._waiting = False
                if self.link.gone:
                    raise Gone
                return await asyncio.get_running_loop().run_in_executor(self.house.pool, work)
        finally:
            self._waiting = False

    def _tell(self, told: Told) -> None:
        """From the statement's thread."""
        house, loop = self.house, self._loop
        with suppress(RuntimeError):  # the loop has ended, with all who would read it
            loop.call_soon_threadsafe(house.told, self, told)

    def _tell_bug(self, error: BaseException) -> None:
        """Where it happened, and no word of what it says: that may hold rows."""
        self.house.log.error("internal error", error=type(error).__name__, where=_where(error), user=self.user)

    def _send_away(self, error: Error) -> None:
        with suppress(Gone):
            self.link.write(fatal(error))


def _gathered(work: Iterator[tuple[bytes, bool]]) -> tuple[bytes, bool]:
    """What is to be written next, and whether more may follow."""
    found, size = [], 0
    for data, wanted in work:
        found.append(data)
        size += len(data)
        if wanted or size >= CHUNK:
            return b"".join(found), True
    return b"".join(found), False


def _too_many(message: str) -> Error:
    return OperationalError(message, hint="Try again when others have left.", sqlstate="53300")


def _where(error: BaseException) -> str:
    """The last of our own lines that it passed."""
    frames = [frame for frame in extract_tb(error.__traceback__) if f"{sep}dpsql{sep}" in frame.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"


def fatal(error: Error) -> bytes:
    """An error that ends the connection."""
    return replies.error_response(error_fields(error, "FATAL"))
