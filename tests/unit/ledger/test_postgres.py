"""The place in PostgreSQL: made safely, checked on opening, locked, cut off, forked; and no password in any text."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from dpsql.errors import Error, IntegrityError, OperationalError, SchemaError
from dpsql.ledger import postgres as postgres_pool
from dpsql.ledger.backend import LEDGER_FORMAT
from dpsql.ledger.base import Account, Binding
from dpsql.ledger.open import open_ledger
from dpsql.ledger.postgres import PostgresDatabase, open_postgres, parse_ledger_url
from tests.support.postgres import SETTINGS, Server, find_binaries, start

BINDING = Binding("row", "add_remove", 1)
ADD = "INSERT INTO account (name, entries, head) VALUES (?, 0, '')"
NAMES = "SELECT name FROM account ORDER BY name"


@pytest.fixture
def url(postgres: Server) -> str:
    return postgres.new_schema()


@pytest.fixture
def database(url: str) -> Iterator[PostgresDatabase]:
    database = open_postgres(url, BINDING)
    yield database
    database.close()


@contextmanager
def opened(url: str, busy_seconds: float = 30.0, binding: Binding = BINDING) -> Iterator[PostgresDatabase]:
    database = open_postgres(url, binding, busy_seconds)
    try:
        yield database
    finally:
        database.close()


def refusal(url: str, kind: type[Error] = IntegrityError, binding: Binding = BINDING) -> str:
    with pytest.raises(kind) as caught:
        open_postgres(url, binding)
    return caught.value.message


def names(database: PostgresDatabase) -> list[str]:
    with database.read() as db:
        return [name for (name,) in db.execute(NAMES)]


def add(database: PostgresDatabase, name: str) -> None:
    with database.write() as db:
        db.execute(ADD, name)


class TestUrl:
    @pytest.mark.parametrize(
        ("url", "shown", "schema"),
        [
            ("postgresql://db.example/books", "postgresql://db.example/books", "dpsql_ledger"),
            ("postgres://ana:secret@h:5433/b?schema=two", "postgresql://h:5433/b?schema=two", "two"),
            ("postgresql://ana:s%40c%2Fr@h1:1,h2:2/b?sslmode=require", "postgresql://h1:1,h2:2/b", "dpsql_ledger"),
            ("postgresql:///b?host=/run/pg&password=secret", "postgresql:///run/pg/b", "dpsql_ledger"),
            ("postgresql://%2Frun%2Fpg/b", "postgresql:///run/pg/b", "dpsql_ledger"),
            ("postgresql://[::1]:5432/b", "postgresql://[::1]:5432/b", "dpsql_ledger"),
        ],
    )
    def test_what_is_shown_has_neither_user_nor_password(self, url: str, shown: str, schema: str) -> None:
        place = parse_ledger_url(url)
        assert (place.name, place.schema) == (shown, schema)
        assert "secret" not in repr(place) and "schema" not in place.conninfo

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://ana:secret@part@h/b", "postgresql://ana:secret/part@h/b", "postgresql://ana:secret?part@h/b",
            "postgresql://ana:12?secret=part@h/b", "postgresql://ana:secret#part@h/b", "postgresql://ana:12/secret%40h",
            "postgresql://secret:part/b", "mysql://ana:secret@h/b", "postgresql:secret", "secret",
            "postgresql://h/b?secret", "postgresql://h/b?secret=1", "postgresql://ana:se secret@h/b",
            "postgresql://h/b?schema=secret%22x", "postgresql://h/b?options=-csecret", "postgresql://h/b?schema=public",
            "postgresql://h/b?schema=pg_secret", "postgresql://h/b?prepare=secret",
        ],
    )  # fmt: skip
    def test_a_wrong_url_reveals_nothing_of_the_password(self, url: str) -> None:
        with pytest.raises(SchemaError) as caught:
            open_postgres(url, BINDING)
        assert "secret" not in "".join(traceback.format_exception(caught.value))

    @pytest.mark.parametrize("password", ["secret"])  # so that no line of a traceback has it
    def test_a_server_that_cannot_be_reached_reveals_nothing_of_the_password(self, password: str) -> None:
        with pytest.raises(OperationalError, match=r"postgresql://127\.0\.0\.1:1/b") as caught:
            open_postgres(f"postgresql://ana:{password}@127.0.0.1:1/b", BINDING)
        assert password not in "".join(traceback.format_exception(caught.value))


def test_without_its_driver_a_hint_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dpsql.ledger.postgres", None)
    with pytest.raises(OperationalError, match="needs the package psycopg") as caught:
        open_ledger("postgresql://h/b", BINDING, Account("dataset", Fraction(1), Fraction(0)))
    assert caught.value.hint == "Write: pip install 'dpsql[postgres]'"


def test_without_a_ledger_in_postgres_no_driver_is_needed() -> None:
    blocked = "import sys; sys.modules.update(psycopg=None, psycopg_pool=None); import dpsql.ledger.open"
    subprocess.run([sys.executable, "-c", blocked], check=True, timeout=60)


class TestMaking:
    def test_many_at_once_open_one_ledger(self, url: str) -> None:
        ready = threading.Barrier(8)

        def run(_: int) -> str:
            ready.wait()
            with opened(url) as database:
                return database.id

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(run, range(8)))) == 1

    def test_several_ledgers_in_one_database(self, postgres: Server) -> None:
        with opened(postgres.new_schema()) as one, opened(postgres.new_schema()) as other:
            add(one, "ana")
            assert one.id != other.id and one.identity != other.identity
            assert names(other) == []

    def test_one_ledger_has_one_identity_whatever_its_url(self, url: str, postgres: Server) -> None:
        with opened(url) as one, opened(url.replace("host=", "host=%2F").replace("%2F/", "/")) as other:
            assert one.identity == other.identity and hash(one.identity) == hash(other.identity)

    def test_an_empty_schema_is_filled_for_a_role_that_may_not_make_one(self, postgres: Server) -> None:
        postgres.execute("CREATE ROLE proxy LOGIN")
        url = postgres.new_schema()
        schema = parse_ledger_url(url).schema
        mine = url.replace("postgres@", "proxy@")
        assert "cannot be opened or made" in refusal(mine, OperationalError)
        postgres.execute(f"CREATE SCHEMA {schema} AUTHORIZATION proxy")
        with opened(mine) as database:
            add(database, "ana")
        with opened(mine) as database:
            assert names(database) == ["ana"]

    def test_a_schema_of_something_else_is_not_touched(self, url: str, postgres: Server) -> None:
        schema = parse_ledger_url(url).schema
        postgres.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.ledger (id TEXT)")
        assert refusal(url) == f'the schema of "{parse_ledger_url(url).name}" is not a ledger'

    def test_another_encoding_is_refused(self, postgres: Server) -> None:
        postgres.execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
        assert "has the encoding SQL_ASCII" in refusal(postgres.database("ascii"), OperationalError)


class TestOpening:
    def altered(self, postgres: Server, url: str, sql: str) -> str:
        open_postgres(url, BINDING).close()
        postgres.execute(f"SET search_path = {parse_ledger_url(url).schema}; {sql}")
        return refusal(url).removeprefix(f'the ledger "{parse_ledger_url(url).name}" ')

    @pytest.mark.parametrize(
        "other", [Binding("us.id", "add_remove", 1), Binding("row", "change_one", 1), Binding("row", "add_remove", 2)]
    )
    def test_another_binding(self, url: str, database: PostgresDatabase, other: Binding) -> None:
        assert 'was made for unit "row", neighbors "add_remove", group_size 1, not for' in refusal(url, binding=other)

    @pytest.mark.parametrize(
        "sql",
        [
            "DELETE FROM ledger",
            "INSERT INTO ledger SELECT 'x', unit, neighbors, group_size FROM ledger",
            "DROP TABLE journal",
            "INSERT INTO format VALUES (2)",
            "ALTER TABLE ledger DROP COLUMN unit",
        ],
    )
    def test_damage(self, postgres: Server, url: str, sql: str) -> None:
        assert self.altered(postgres, url, sql) == "is damaged"

    def test_another_format(self, postgres: Server, url: str) -> None:
        said = self.altered(postgres, url, "UPDATE format SET number = number + 1")
        assert said == f"has format {LEDGER_FORMAT + 1}, and this dpsql reads format {LEDGER_FORMAT}"

    @pytest.mark.parametrize("right", ["USAGE", "CREATE"])
    def test_open_to_all_roles(self, postgres: Server, url: str, database: PostgresDatabase, right: str) -> None:
        postgres.execute(f"GRANT {right} ON SCHEMA {database.place.schema} TO PUBLIC")
        assert "is open to every role" in refusal(url, OperationalError)

    def test_no_server_there(self, tmp_path: Path) -> None:
        assert "cannot be read or written" in refusal(f"postgresql:///b?host={tmp_path}", OperationalError)


class TestDurable:
    @pytest.mark.parametrize(("by_default", "used"), [("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")])
    def test_commits_wait_for_the_disk(self, postgres: Server, by_default: str, used: str) -> None:
        url = postgres.new_database()
        postgres.execute(f"ALTER DATABASE {url.split('/')[3].split('?')[0]} SET synchronous_commit = {by_default}")
        with opened(url) as database, database.write() as db:
            assert db.execute("SHOW synchronous_commit") == [(used,)]
            assert db.execute("SHOW transaction_isolation") == [("read committed",)]

    def test_a_server_that_does_not_flush_is_refused_at_once(self) -> None:
        binaries = find_binaries()
        assert binaries is not None
        server = start(binaries, (*SETTINGS, "log_statement=all"))
        try:
            with opened(server.new_schema()) as database:
                add(database, "ana")
                server.execute("ALTER SYSTEM SET fsync = off")
                server.execute("SELECT pg_reload_conf()")
                time.sleep(0.2)
                with pytest.raises(OperationalError, match="does not flush"):
                    add(database, "ben")
                assert "does not flush" in refusal(server.new_schema(), OperationalError)
        finally:
            server.stop()


class TestTransactions:
    @pytest.mark.parametrize("table", ["entry", "journal", "payment"])
    @pytest.mark.parametrize("what", ["UPDATE {} SET account = 'x'", "DELETE FROM {}", "TRUNCATE {}"])
    def test_an_accidental_update_is_stopped(self, postgres: Server, database: PostgresDatabase, table: str,
                                           what: str) -> None:  # fmt: skip
        with pytest.raises(psycopg.errors.RaiseException, match="never changed"):
            postgres.execute(what.format(f"{database.place.schema}.{table}"))

    def test_what_raises_is_undone(self, database: PostgresDatabase) -> None:
        with pytest.raises(KeyError), database.write() as db:
            db.execute(ADD, "ana")
            raise KeyError
        assert names(database) == []

    def test_a_statement_that_failed_cannot_be_passed_over(self, database: PostgresDatabase) -> None:
        """PostgreSQL answers COMMIT with ROLLBACK then, and calls it no error."""
        with pytest.raises(OperationalError, match="cannot be read or written"), database.write() as db:
            db.execute(ADD, "ana")
            with pytest.raises(psycopg.IntegrityError):
                db.execute(ADD, "ana")
        assert names(database) == []

    def test_reading_is_one_snapshot_and_cannot_write(self, database: PostgresDatabase) -> None:
        with database.read() as db:
            assert db.execute(NAMES) == []
            add(database, "ana")
            assert db.execute(NAMES) == []
        with pytest.raises(OperationalError), database.read() as db:
            db.execute(ADD, "ben")
        assert names(database) == ["ana"]

    def test_signs_of_both_kinds_of_placeholders(self, database: PostgresDatabase) -> None:
        add(database, "100%s?")
        with database.read() as db:
            assert db.execute("SELECT name FROM account WHERE name LIKE '100%' AND name = ?", "100%s?") == [("100%s?",)]

    def test_a_waiter_for_the_lock_sees_what_was_charged_meanwhile(self, database: PostgresDatabase) -> None:
        """The filter's check and the entry: with an older snapshot, both would spend the same budget."""
        inside = threading.Event()

        def second() -> list[str]:
            inside.wait(timeout=30)
            with database.write() as db:
                return [name for (name,) in db.execute(NAMES)]

        with ThreadPoolExecutor(1) as pool:
            with database.write() as db:
                waiting = pool.submit(second)
                db.execute(ADD, "ana")
                inside.set()
                until(lambda: locked(database))
            assert waiting.result(timeout=30) == ["ana"]

    def test_a_lock_is_waited_for_so_long_and_no_longer(self, url: str, database: PostgresDatabase) -> None:
        with opened(url, 0.1) as impatient, database.write():
            with pytest.raises(OperationalError, match="is locked by another process"):
                add(impatient, "ana")
            assert names(impatient) == [], "who reads does not wait"

    def test_one_that_was_replaced_while_it_was_open(self, postgres: Server, url: str,
                                                     database: PostgresDatabase) -> None:  # fmt: skip
        postgres.execute(f"DROP SCHEMA {database.place.schema} CASCADE")
        with pytest.raises(IntegrityError, match="is damaged"):
            add(database, "ana")
        with opened(url), pytest.raises(IntegrityError, match="was replaced while it was open"):
            add(database, "ana")


def until(true: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def locked(database: PostgresDatabase) -> bool:
    with database.read() as db:
        sql = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE ?"
        return bool(db.execute(sql, f"%{database.place.schema}%"))


def backend(database: PostgresDatabase) -> int:
    """The server's process behind the connection that is idle."""
    with database.read() as db:
        return int(db.execute("SELECT pg_backend_pid()")[0][0])


OTHERS = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"


class TestConnections:
    @pytest.mark.parametrize(("option", "prepared"), [("", True), ("&prepare=no", False)])
    def test_statements_are_prepared_unless_a_pooler_is_between(self, url: str, option: str, prepared: bool) -> None:
        with opened(url + option) as database:
            for number in range(12):
                add(database, str(number))
            with database.read() as db:
                assert bool(db.execute("SELECT 1 FROM pg_prepared_statements")) == prepared

    def test_one_that_died_while_idle_is_replaced(self, postgres: Server, database: PostgresDatabase) -> None:
        add(database, "ana")
        postgres.execute(f"SELECT pg_terminate_backend(pid) {OTHERS}")
        add(database, "ben")
        assert names(database) == ["ana", "ben"]

    def test_one_that_dies_in_a_transaction_takes_it_along(self, postgres: Server, database: PostgresDatabase) -> None:
        with pytest.raises(OperationalError, match="cannot be read or written"), database.write() as db:
            db.execute(ADD, "ana")
            (number,) = db.execute("SELECT pg_backend_pid()")[0]
            postgres.execute(f"SELECT pg_terminate_backend({number})")
        assert names(database) == []

    def test_more_threads_than_connections(self, postgres: Server, database: PostgresDatabase) -> None:
        with ThreadPoolExecutor(24) as pool:
            list(pool.map(lambda i: add(database, f"{i:02}"), range(48)))
        assert names(database) == [f"{i:02}" for i in range(48)]
        with psycopg.connect(postgres.database()) as db:
            counted = db.execute(f"SELECT count(*) {OTHERS}".encode()).fetchone()
        assert counted is not None and 1 < counted[0] <= postgres_pool.MAX_CONNECTIONS

    def test_all_that_died_while_idle_are_replaced(self, postgres: Server, database: PostgresDatabase) -> None:
        with ThreadPoolExecutor(24) as pool:
            list(pool.map(lambda i: add(database, f"{i:02}"), range(24)))
        postgres.execute(f"SELECT pg_terminate_backend(pid) {OTHERS}")
        add(database, "ana")
        assert names(database)[-1] == "ana"

    def test_why_there_is_no_connection_is_reported_at_once(self, postgres: Server, url: str) -> None:
        start_ = time.monotonic()
        with pytest.raises(OperationalError, match="cannot be read or written") as caught:
            open_postgres(url.replace("postgres@", "nobody_of_that_name@"), BINDING)
        assert 'role "nobody_of_that_name" does not exist' in (caught.value.detail or "")
        assert time.monotonic() - start_ < 10, "it is not tried for as long as a lock is waited for"

    def test_one_that_could_not_be_had_is_tried_again(self, postgres: Server, url: str) -> None:
        postgres.execute("CREATE ROLE sleeper LOGIN")
        postgres.execute(f"CREATE SCHEMA {parse_ledger_url(url).schema} AUTHORIZATION sleeper")
        with opened(url.replace("postgres@", "sleeper@")) as database:
            add(database, "ana")
            postgres.execute("ALTER ROLE sleeper NOLOGIN")
            postgres.execute(f"SELECT pg_terminate_backend(pid) {OTHERS}")
            with pytest.raises(OperationalError, match="cannot be read or written"):
                add(database, "ben")
            postgres.execute("ALTER ROLE sleeper LOGIN")
            add(database, "cem")
            assert names(database) == ["ana", "cem"]

    def test_a_server_without_free_connections_is_waited_for(self, postgres: Server, url: str) -> None:
        postgres.execute("CREATE ROLE narrow LOGIN CONNECTION LIMIT 1")
        postgres.execute(f"CREATE SCHEMA {parse_ledger_url(url).schema} AUTHORIZATION narrow")
        mine = url.replace("postgres@", "narrow@")
        with psycopg.connect(postgres.database().replace("postgres@", "narrow@")) as other:
            with pytest.raises(OperationalError, match="cannot be read or written"):
                open_postgres(mine, BINDING, 0.1)
            threading.Timer(0.3, other.close).start()
            open_postgres(mine, BINDING).close()

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    def test_a_forked_child_has_its_own_and_leaves_its_parents_alone(self, database: PostgresDatabase) -> None:
        add(database, "parent")
        number = backend(database)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                add(database, "child")
                own = backend(database)
                database.close()
                status = 0 if own != number else 2
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        add(database, "parent again")
        assert backend(database) == number, "the parent's connection lived on"
        assert names(database) == ["child", "parent", "parent again"]


# --- the reply to COMMIT is lost -------------------------------------------------------------------------------------


class Wire:
    """Between a client and the server: cut when COMMIT comes by, before or after the server has it."""

    def __init__(self, server: Path, folder: Path, reaches: bool) -> None:
        self.server, self.reaches, self.armed = server, reaches, False
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / ".s.PGSQL.5432"))
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self.server / ".s.PGSQL.5432"))
            threading.Thread(target=self.requests, args=(client, server), daemon=True).start()
            threading.Thread(target=self.replies, args=(client, server), daemon=True).start()

    def requests(self, client: socket.socket, server: socket.socket) -> None:
        with client, server:
            while data := receive(client):
                if self.armed and b"COMMIT" in data and b"BEGIN" not in data:
                    if self.reaches:
                        server.sendall(data)
                        time.sleep(0.3)
                    client.shutdown(socket.SHUT_RDWR)
                    server.shutdown(socket.SHUT_RDWR)
                    return
                server.sendall(data)

    def replies(self, client: socket.socket, server: socket.socket) -> None:
        while (data := receive(server)) and not (self.armed and b"COMMIT" in data):
            client.sendall(data)


def receive(end: socket.socket) -> bytes:
    try:
        return end.recv(65536)
    except OSError:
        return b""


@pytest.mark.parametrize("reaches", [True, False])
def test_a_commit_whose_outcome_is_unknown_raises(postgres: Server, tmp_path: Path, url: str, reaches: bool) -> None:
    folder = Path(os.path.relpath(tmp_path)) if len(str(tmp_path)) > 80 else tmp_path
    wire = Wire(postgres.folder, folder, reaches)
    try:
        with opened(url.replace(str(postgres.folder), quote(str(tmp_path)))) as database, opened(url) as direct:
            add(database, "before")
            wire.armed = True
            with pytest.raises(OperationalError, match="cannot be read or written") as caught:
                add(database, "ana")
            assert caught.value.hint == "Ask the owner; if a charge was made, asking again redeems it."
            wire.armed = False
            assert names(direct) == (["ana", "before"] if reaches else ["before"])
            add(database, "after")
    finally:
        wire.listener.close()
