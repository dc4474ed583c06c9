"""One face for many drivers of Python, so that one battery asks the same of all.

Statements are written with $1, $2…; each adapter spells them as its driver wants.
"""

from __future__ import annotations

import asyncio
import gc
import re
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from tests.support.optional_dependencies import package
from tests.support.wire.hospital import Place

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Told:
    """What a driver says of an error; a field that the driver does not give is None."""

    state: str | None
    message: str
    detail: str | None = None
    hint: str | None = None
    position: int | None = None


@dataclass(frozen=True)
class How:
    """The way of connecting, where it is not the usual one."""

    password: str | None = None
    database: str | None = None
    options: str = ""  # as libpq's: -c name=value
    application: str = ""
    tls: str = ""  # libpq's sslmode, where it is asked for


class Client(ABC):
    """A connection of one driver, with autocommit unless `begin` was said."""

    name: ClassVar[str]
    can: ClassVar[frozenset[str]] = frozenset()  # what a driver offers beside statements
    broken: tuple[type[BaseException], ...]

    @abstractmethod
    def __init__(self, place: Place, how: How) -> None: ...

    @abstractmethod
    def rows(self, sql: str, *parameters: Any) -> Rows:
        """All rows of one statement; none of a statement that has none."""

    @abstractmethod
    def columns(self) -> list[tuple[str, int]]:
        """Names and PostgreSQL's type numbers of the last answer."""

    @abstractmethod
    def told(self, error: BaseException) -> Told: ...

    @abstractmethod
    def close(self) -> None: ...

    def begin(self) -> None:
        self.rows("BEGIN")

    def commit(self) -> None:
        self.rows("COMMIT")

    def rollback(self) -> None:
        self.rows("ROLLBACK")

    def parts(self, sql: str, size: int) -> Iterator[Rows]:
        raise NotImplementedError

    def copy(self, sql: str) -> str:
        raise NotImplementedError

    def cancel(self) -> None:
        raise NotImplementedError

    def notices(self) -> list[Told]:
        raise NotImplementedError

    def error(self, sql: str, *parameters: Any) -> Told:
        try:
            self.rows(sql, *parameters)
        except self.broken as error:
            return self.told(error)
        raise AssertionError(f"no error: {sql}")

    def canceled(self, sql: str, after: float) -> tuple[Told, float]:
        """Runs it, cancels it from another thread, and tells the error and how long it took from the cancel on."""
        moments: list[float] = []

        def stop() -> None:
            time.sleep(after)
            moments.append(time.monotonic())
            self.cancel()

        other = threading.Thread(target=stop)
        other.start()
        try:
            told = self.error(sql)
        finally:
            other.join()
        return told, time.monotonic() - moments[0]


def styled(sql: str, spell: Callable[[str], str]) -> str:
    return re.sub(r"\$(\d+)", lambda found: spell(found[1]), sql.replace("%", "%%"))


class Psycopg(Client):
    """psycopg 3; values come and go as text."""

    name = "psycopg"
    can = frozenset({"nothing", "null", "parts", "copy", "several", "cancel"})
    binary = False

    def __init__(self, place: Place, how: How) -> None:
        driver = package("psycopg")
        self.broken = (driver.Error,)
        given: dict[str, str] = {"application_name": how.application} if how.application else {}
        if how.tls:
            given.update(sslmode=how.tls, sslrootcert=str(place.certificate))
        self.db = driver.connect(place.url(password=how.password, database=how.database), autocommit=True,
                                 options=how.options, connect_timeout=20, **given)  # fmt: skip
        self.heard: list[Told] = []
        self.db.add_notice_handler(lambda one: self.heard.append(_diagnosed(one)))
        self.last: Any = None

    def rows(self, sql: str, *parameters: Any) -> Rows:
        letter = "b" if self.binary else "t"
        asked = styled(sql, lambda _: f"%{letter}") if parameters else sql
        self.last = self.db.cursor(binary=self.binary)
        self.last.execute(asked, parameters or None, prepare=bool(parameters) or None)
        return list(self.last.fetchall()) if self.last.description else []

    def columns(self) -> list[tuple[str, int]]:
        return [(one.name, one.type_code) for one in self.last.description]

    def told(self, error: Any) -> Told:
        if error.diag.sqlstate is None:
            return Told(None, str(error))
        return _diagnosed(error.diag)

    def parts(self, sql: str, size: int) -> Iterator[Rows]:
        with self.db.transaction(), self.db.cursor("parts", binary=self.binary) as cursor:
            cursor.execute(sql)
            while found := cursor.fetchmany(size):
                yield found

    def copy(self, sql: str) -> str:
        with self.db.cursor() as cursor, cursor.copy(sql) as out:
            return b"".join(bytes(one) for one in out).decode()

    def cancel(self) -> None:
        self.db.cancel()

    def notices(self) -> list[Told]:
        return self.heard

    def close(self) -> None:
        self.db.close()


class PsycopgBinary(Psycopg):
    name = "psycopg binary"
    can = Psycopg.can - {"several"}
    binary = True


def _diagnosed(diag: Any) -> Told:
    place = diag.statement_position
    return Told(diag.sqlstate, diag.message_primary, diag.message_detail, diag.message_hint, place and int(place))


class Psycopg2(Client):
    """psycopg 2: the simple protocol, parameters put into the text by the driver."""

    name = "psycopg2"  # no "null": it writes `= NULL`, which dpsql refuses as a slip, with a hint
    can = frozenset({"parts", "copy", "several", "cancel"})

    def __init__(self, place: Place, how: How) -> None:
        driver = package("psycopg2")
        package("psycopg2.extras").register_uuid()
        self.broken = (driver.Error,)
        given = {"sslmode": how.tls, "sslrootcert": str(place.certificate)} if how.tls else {}
        self.db = driver.connect(place.url(password=how.password, database=how.database), options=how.options,
                                 application_name=how.application, connect_timeout=20, **given)  # fmt: skip
        self.db.autocommit = True
        self.last: Any = None

    def rows(self, sql: str, *parameters: Any) -> Rows:
        self.last = self.db.cursor()
        order = [int(one) - 1 for one in re.findall(r"\$(\d+)", sql)]
        asked = styled(sql, lambda _: "%s") if parameters else sql
        self.last.execute(asked, [parameters[one] for one in order] if parameters else None)
        return list(self.last.fetchall()) if self.last.description else []

    def columns(self) -> list[tuple[str, int]]:
        return [(one.name, one.type_code) for one in self.last.description]

    def told(self, error: Any) -> Told:
        if error.pgcode is None:
            return Told(None, str(error))
        return _diagnosed(error.diag)

    def parts(self, sql: str, size: int) -> Iterator[Rows]:
        self.db.autocommit = False
        with self.db, self.db.cursor("parts") as cursor:
            cursor.itersize = size
            cursor.execute(sql)
            while found := cursor.fetchmany(size):
                yield found
        self.db.autocommit = True

    def copy(self, sql: str) -> str:
        io = package("io")
        out = io.StringIO()
        with self.db.cursor() as cursor:
            cursor.copy_expert(sql, out)
        return str(out.getvalue())

    def cancel(self) -> None:
        self.db.cancel()

    def notices(self) -> list[Told]:
        return [Told(None, one.partition(":")[2].strip()) for one in self.db.notices]

    def close(self) -> None:
        self.db.close()


class Asyncpg(Client):
    """asyncpg: prepares, asks for the types of parameters, and speaks binary only. Its loop runs on a thread."""

    name = "asyncpg"
    can = frozenset({"nothing", "null", "parts", "copy", "several", "cancel"})

    def __init__(self, place: Place, how: How) -> None:
        self.driver = package("asyncpg")
        self.broken = (self.driver.PostgresError, self.driver.InterfaceError, OSError, ValueError)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        settings = dict(one.split("=", 1) for one in how.options.replace("-c ", "").split())
        if how.application:
            settings["application_name"] = how.application
        given: dict[str, Any] = {"server_settings": settings}
        if how.tls:
            ssl = package("ssl")
            given["ssl"] = ssl.create_default_context(cafile=str(place.certificate))
        self.heard: list[Told] = []
        self.last: Any = None
        self.running: Any = None
        url = place.url(password=how.password, database=how.database)
        try:
            self.db = self.wait(self.driver.connect(url, timeout=20, **given))
        except BaseException:
            self.end()
            raise
        self.db.add_log_listener(lambda _, one: self.heard.append(self.told(one)))

    def wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def rows(self, sql: str, *parameters: Any) -> Rows:
        return list(self.wait(self.fetch(sql, parameters)))

    async def fetch(self, sql: str, parameters: tuple[Any, ...]) -> Rows:
        self.running = asyncio.current_task()
        if ";" in sql.rstrip("; \n"):
            await self.db.execute(sql)
            return []
        self.last = await self.db.prepare(sql)
        return [tuple(row) for row in await self.last.fetch(*parameters)]

    def columns(self) -> list[tuple[str, int]]:
        return [(one.name, one.type.oid) for one in self.last.get_attributes()]

    def told(self, error: Any) -> Told:
        place = getattr(error, "position", None)
        return Told(getattr(error, "sqlstate", None), getattr(error, "message", None) or str(error),
                    getattr(error, "detail", None), getattr(error, "hint", None), place and int(place))  # fmt: skip

    def parts(self, sql: str, size: int) -> Iterator[Rows]:
        async def all_parts() -> list[Rows]:
            found = []
            async with self.db.transaction():
                cursor = await self.db.cursor(sql)
                while part := await cursor.fetch(size):
                    found.append([tuple(row) for row in part])
            return found

        yield from self.wait(all_parts())

    def copy(self, sql: str) -> str:
        async def out() -> str:
            got: list[bytes] = []

            async def keep(data: bytes) -> None:
                got.append(data)

            query = re.fullmatch(r"COPY \((.*)\) TO STDOUT(?: WITH \(FORMAT csv, HEADER\))?", sql)
            assert query is not None
            extra = {"format": "csv", "header": True} if "csv" in sql else {}
            await self.db.copy_from_query(query[1], output=keep, **extra)
            return b"".join(got).decode()

        return str(self.wait(out()))

    def cancel(self) -> None:
        """asyncpg sends a cancel request when the task that waits is canceled."""
        self.loop.call_soon_threadsafe(self.running.cancel)

    def canceled(self, sql: str, after: float) -> tuple[Told, float]:
        async def run() -> float:
            task = asyncio.ensure_future(self.db.fetch(sql))
            await asyncio.sleep(after)
            start = time.monotonic()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            await self.db.fetch("SELECT 1")  # waits until the server has let go
            return time.monotonic() - start

        return Told("57014", "canceling statement due to user request"), self.wait(run())

    def notices(self) -> list[Told]:
        return self.heard

    def close(self) -> None:
        try:
            self.wait(self.db.close(timeout=10))
        finally:
            self.end()

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class Pg8000(Client):
    """pg8000: pure Python, parameters untyped or by their Python type."""

    name = "pg8000"
    can = frozenset({"nothing", "null", "several", "copy"})

    def __init__(self, place: Place, how: How) -> None:
        native = package("pg8000.native")
        self.broken = (native.Error,)
        settings = {one.split("=", 1)[0]: one.split("=", 1)[1] for one in how.options.replace("-c ", "").split()}
        given: dict[str, Any] = {"startup_params": settings} if settings else {}
        if how.tls:
            given["ssl_context"] = package("ssl").create_default_context(cafile=str(place.certificate))
        self.db = native.Connection(
            place.user, host=place.host, port=place.port, timeout=60,
            password=place.password if how.password is None else how.password,
            database=place.database if how.database is None else how.database,
            application_name=how.application or None, **given)  # fmt: skip

    def rows(self, sql: str, *parameters: Any) -> Rows:
        named = {f"p{number}": value for number, value in enumerate(parameters, 1)}
        asked = re.sub(r"\$(\d+)", r":p\1", sql) if parameters else sql
        return [tuple(row) for row in self.db.run(asked, **named) or []]

    def columns(self) -> list[tuple[str, int]]:
        return [(one["name"], one["type_oid"]) for one in self.db.columns]

    def told(self, error: Any) -> Told:
        fields = error.args[0] if error.args else ""
        if not isinstance(fields, dict):
            return Told(None, str(fields))
        place = fields.get("P")
        return Told(fields["C"], fields["M"], fields.get("D"), fields.get("H"), place and int(place))

    def copy(self, sql: str) -> str:
        out = package("io").BytesIO()
        self.db.run(sql, stream=out)
        return out.getvalue().decode()

    def notices(self) -> list[Told]:
        told = [{key.decode(): value.decode() for key, value in one.items()} for one in self.db.notices]
        return [Told(one["C"], one["M"], one.get("D"), one.get("H")) for one in told]

    def close(self) -> None:
        self.db.close()


CLIENTS: tuple[type[Client], ...] = (Psycopg, PsycopgBinary, Psycopg2, Asyncpg, Pg8000)


@contextmanager
def connected(kind: type[Client], place: Place, **how: str) -> Iterator[Client]:
    client = kind(place, How(**how))
    try:
        yield client
    finally:
        client.close()


def refused(kind: type[Client], place: Place, **how: str) -> str:
    """What the driver says where nobody may connect."""
    told = _told_of_login(kind, place, How(**how))
    with warnings.catch_warnings():  # pg8000 leaves the socket of a refused login to Python
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    return told


def _told_of_login(kind: type[Client], place: Place, how: How) -> str:
    try:
        client = kind(place, how)
    except Exception as error:
        return str(error)
    client.close()
    raise AssertionError("it connected")
