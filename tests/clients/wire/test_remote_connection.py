"""The way to a server: TLS, logins, cancels, Ctrl-C, servers that go, and servers that are none of ours."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

import dpsql
from dpsql.errors import AccessDenied, QueryCanceled
from dpsql.interfaces.cli.demo_hospital import make_hospital
from tests.support import postgres
from tests.support.controlled_runs import press_ctrl_c
from tests.support.server import USERS, Server, make_certificate, serving

pytestmark = pytest.mark.slow

COUNT = "SELECT COUNT(*) FROM visits WHERE nights > {}"
TWO = "SELECT (SELECT COUNT(*) FROM patients WHERE birth_year > {0}), (SELECT COUNT(*) FROM visits WHERE nights > {0})"
SECONDS = 2
PATIENCE = 30.0


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Each release is seen to have ended some seconds after it began. It has TLS."""
    folder = tmp_path_factory.mktemp("slow") / "hospital"
    folder.mkdir()
    schema = make_hospital(folder)
    schema.write_text(schema.read_text() + f"\nlimits: {{min_latency: {SECONDS}}}\n")
    with serving(schema, tls=True) as server:
        yield server
        assert "Traceback" not in server.log()


@pytest.fixture
def ana(slow: Server) -> Iterator[dpsql.Connection]:
    with dpsql.connect(slow.dsn("ana"), epsilon=0.05) as connection:
        yield connection


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


# --- logins ----------------------------------------------------------------------------------------------------------


def test_a_wrong_password_and_an_unknown_user_are_refused_alike(slow: Server) -> None:
    said = []
    for user in ("ana", "nobody"):
        with pytest.raises(AccessDenied) as caught:
            dpsql.connect(slow.dsn(user, "wrong"))
        assert caught.value.sqlstate == "28P01" and "wrong" not in str(caught.value)
        said.append(str(caught.value).replace(user, "X"))
    assert said[0] == said[1]


def test_an_unknown_database(slow: Server) -> None:
    with pytest.raises(dpsql.OperationalError, match="nosuch"):
        dpsql.connect(slow.dsn("ana", database="nosuch"))


def test_wrong_settings(slow: Server) -> None:
    with pytest.raises(dpsql.ProgrammingError, match="epsilon"):
        dpsql.connect(slow.dsn("ana"), epsilon=-1)
    with pytest.raises(dpsql.ProgrammingError, match="bogus"):
        dpsql.connect(slow.dsn("ana"), bogus=1)


def test_settings_of_the_url_and_of_options(slow: Server) -> None:
    with dpsql.connect(slow.dsn("ana", options="-c epsilon=0.5", delta="1e-9")) as connection:
        assert connection.sql("SHOW epsilon").scalar() == "0.5"
        connection.sql("SET epsilon = 0.25")
        connection.sql("RESET ALL")
        assert connection.sql("SHOW epsilon").scalar() == "0.5" and connection.sql("SHOW delta").scalar() == "1E-9"


def test_a_password_from_the_environment_and_from_a_file(
    slow: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"dpsql://bob@127.0.0.1:{slow.port}/hospital"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PGPASSWORD", raising=False)
    with pytest.raises(dpsql.InterfaceError, match="no password"):
        dpsql.connect(url)
    monkeypatch.setenv("PGPASSWORD", USERS["bob"])
    dpsql.connect(url).close()
    monkeypatch.delenv("PGPASSWORD")
    (tmp_path / ".pgpass").write_text(f"127.0.0.1:{slow.port}:*:bob:{USERS['bob']}\n")
    (tmp_path / ".pgpass").chmod(0o600)
    dpsql.connect(url).close()


# --- TLS -------------------------------------------------------------------------------------------------------------


def is_encrypted(connection: dpsql.Connection) -> bool:
    return hasattr(connection._session._connection._socket, "version")


@pytest.mark.parametrize("mode", ["disable", "prefer", "require", "verify-ca", "verify-full"])
def test_modes_of_tls(slow: Server, mode: str) -> None:
    with dpsql.connect(slow.dsn("ana", sslmode=mode)) as connection:
        assert is_encrypted(connection) is (mode != "disable")
        assert connection.sql("SELECT 1").scalar() == 1
        how = "without TLS" if mode == "disable" else "with TLS (TLSv1.3)"
        assert connection.server == f"127.0.0.1:{slow.port}, {how}"


def test_a_server_that_is_not_trusted(slow: Server, tmp_path: Path) -> None:
    other = make_certificate(tmp_path, "other")
    for mode in ("require", "verify-ca", "verify-full"):  # who names a root wants it to be looked at
        with pytest.raises(dpsql.OperationalError, match="not trusted"):
            dpsql.connect(slow.dsn("ana", sslmode=mode, sslrootcert=str(other)))
    with pytest.raises(dpsql.OperationalError, match="not trusted"):
        dpsql.connect(f"dpsql://ana:x@127.0.0.1:{slow.port}/hospital?sslmode=verify-full")
    with pytest.raises(dpsql.OperationalError, match="cannot be read"):
        dpsql.connect(slow.dsn("ana", sslmode="verify-ca", sslrootcert=str(tmp_path / "nothing")))


def test_another_hosts_certificate(slow: Server) -> None:
    """127.1 is this machine too, and its certificate does not name it so."""
    address = slow.dsn("ana").replace("127.0.0.1", "127.1")
    dpsql.connect(address).close()  # signed by who is trusted, and that is all that verify-ca asks
    with pytest.raises(dpsql.OperationalError, match="not trusted"):
        dpsql.connect(address.replace("verify-ca", "verify-full"))


@pytest.mark.parametrize("binding", ["disable", "prefer", "require"])
def test_channel_binding(slow: Server, binding: str) -> None:
    dpsql.connect(slow.dsn("ana", channel_binding=binding)).close()


def test_channel_binding_needs_tls(slow: Server) -> None:
    with pytest.raises(dpsql.OperationalError, match="channel binding is required"):
        dpsql.connect(slow.dsn("ana", channel_binding="require", sslmode="disable"))


def test_a_server_without_tls() -> None:
    with serving() as server:
        with dpsql.connect(server.dsn("ana")) as connection:
            assert not is_encrypted(connection)
        with pytest.raises(dpsql.OperationalError, match="it has no TLS"):
            dpsql.connect(server.dsn("ana", sslmode="require"))


def test_a_socket_in_a_folder(tmp_path: Path) -> None:
    with serving(options=("--socket", str(tmp_path))) as server:
        password = quote(USERS["ana"], safe="")
        url = f"dpsql://ana:{password}@/hospital?host={quote(str(tmp_path))}&port={server.port}&sslmode=require"
        with dpsql.connect(url) as connection:
            assert connection.sql("SELECT 1").scalar() == 1 and not is_encrypted(connection)
            assert connection.server == f"{tmp_path}:{server.port}, a socket of this machine"


# --- servers that are none of ours -----------------------------------------------------------------------------------


def test_a_plain_postgresql(tmp_path: Path) -> None:
    with postgres.running() as server:
        server.execute("CREATE ROLE ana LOGIN PASSWORD 'secret'")
        trusting = server.database().replace("postgres@", "ana:secret@")
        with pytest.raises(dpsql.OperationalError, match="did not prove") as caught:
            dpsql.connect(trusting)
        assert "A dpsql server does" in (caught.value.detail or "")
        asking = server.folder / "data" / "pg_hba.conf"
        asking.write_text("local all postgres trust\nlocal all all scram-sha-256\n")
        server.execute("SELECT pg_reload_conf()")
        until(lambda: "no dpsql server" in refusal(trusting))
        assert "It is PostgreSQL" in refusal(trusting) and "secret" not in refusal(trusting)


def refusal(url: str) -> str:
    with pytest.raises(dpsql.OperationalError) as caught:
        dpsql.connect(url)
    return str(caught.value)


def test_nothing_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(dpsql.OperationalError, match=r"no connection to 127\.0\.0\.1"):
        dpsql.connect(f"dpsql://ana:x@127.0.0.1:{port}/hospital")
    with pytest.raises(dpsql.OperationalError, match="no connection to"):
        dpsql.connect("dpsql://ana:x@no.such.host.invalid/hospital")


@pytest.mark.parametrize(("says", "mode"), [(b"", "prefer"), (b"HTTP/1.1 400 Bad\r\n", "disable"), (b"N", "prefer")])
def test_another_program_listens(says: bytes, mode: str) -> None:
    """It says something else, or nothing: it is left within the time that connecting may take."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def serve() -> None:
            talk, _ = listening.accept()
            talk.recv(100)
            talk.sendall(says)
            time.sleep(3)
            talk.close()

        threading.Thread(target=serve, daemon=True).start()
        started = time.monotonic()
        with pytest.raises(dpsql.OperationalError):
            dpsql.connect(f"dpsql://ana:x@127.0.0.1:{port}/hospital?connect_timeout=1&sslmode={mode}")
        assert time.monotonic() - started < 2.5


# --- leaving a statement ---------------------------------------------------------------------------------------------


def canceled_by(connection: dpsql.Connection, sql: str, when: Callable[[], object]) -> QueryCanceled:
    """Cancel it from another thread once `when` is true."""

    def press() -> None:
        until(when)
        connection.cancel()

    pressing = threading.Thread(target=press)
    pressing.start()
    with pytest.raises(QueryCanceled) as caught:
        connection.sql(sql)
    pressing.join()
    return caught.value


@pytest.fixture
def paid(slow: Server, ana: dpsql.Connection) -> Iterator[Callable[[], bool]]:
    """Whether the next statement was charged, after its histogram of units; asked on another connection."""
    before = ana.budget().charges
    with dpsql.connect(slow.dsn("ana")) as other:
        yield lambda: other.budget().charges == before + 2


def test_a_cancel_leaves_the_statement_which_stays_paid(ana: dpsql.Connection, paid: Callable[[], bool]) -> None:
    before = ana.budget().charges
    canceled = canceled_by(ana, COUNT.format(3), paid)
    assert canceled.charge and "asking again waits for it, and is free" in (canceled.hint or "")
    again = ana.sql(COUNT.format(3))
    assert not again.loss and ana.budget().charges == before + 2


def test_a_cancel_while_norms_are_bought_leaves_the_question_uncharged(slow: Server, ana: dpsql.Connection) -> None:
    before = ana.budget().charges
    with dpsql.connect(slow.dsn("ana")) as other:
        canceled = canceled_by(ana, COUNT.format(2), lambda: other.budget().charges > before)
    assert canceled.charge and "asking again is charged for the question alone" in (canceled.hint or "")
    assert ana.budget().charges == before + 1
    assert ana.sql(COUNT.format(2)).loss and ana.budget().charges == before + 2
    assert not ana.sql(COUNT.format(2)).loss


def test_ctrl_c_leaves_the_statement_and_the_connection_goes_on(
    ana: dpsql.Connection, paid: Callable[[], bool]
) -> None:
    cursor = ana.cursor()
    pressing = press_ctrl_c(paid)
    with pytest.raises(KeyboardInterrupt):
        cursor.execute(COUNT.format(4))
    pressing.join()
    assert cursor.loss  # Ctrl-C, too, leaves a charge behind
    assert ana.sql("SELECT 1").scalar() == 1 and not ana.closed
    assert not ana.sql(COUNT.format(4)).loss


def test_a_statement_that_waits_for_its_turn_is_not_sent(ana: dpsql.Connection) -> None:
    charges = ana.budget().charges
    ended: list[BaseException] = []

    def ask() -> None:
        try:
            ana.sql(COUNT.format(5))
        except BaseException as error:
            ended.append(error)

    with ana._lock:
        asking = threading.Thread(target=ask)
        asking.start()
        until(lambda: ana._waiting)
        ana.cancel()
    asking.join()
    assert isinstance(ended[0], QueryCanceled) and ana.budget().charges == charges


def test_a_statement_timeout(ana: dpsql.Connection) -> None:
    ana.sql("SET statement_timeout = '300ms'")
    with pytest.raises(QueryCanceled, match="timeout") as caught:
        ana.sql(COUNT.format(6))
    assert caught.value.charge


def test_progress_is_reported_while_releases_come(ana: dpsql.Connection) -> None:
    seen: set[tuple[int, int]] = set()
    asking = threading.Thread(target=ana.sql, args=(TWO.format(0),))
    asking.start()
    while asking.is_alive():
        seen.add(ana.progress())
        time.sleep(0.05)
    asking.join()
    assert (1, 2) in seen


def test_threads_share_a_connection(ana: dpsql.Connection) -> None:
    asked = [f"SELECT {number} + 0" for number in range(40)]
    given: dict[str, object] = {}

    def ask(sql: str) -> None:
        given[sql] = ana.sql(sql).scalar()

    threads = [threading.Thread(target=ask, args=(sql,)) for sql in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert given == {sql: number for number, sql in enumerate(asked)}


# --- servers that go -------------------------------------------------------------------------------------------------


def test_a_server_that_is_killed_and_comes_back(tmp_path: Path) -> None:
    """The answer was lost, the charge may not be; nothing is asked again by itself, and asking again is free."""
    folder = tmp_path / "hospital"
    folder.mkdir()
    schema = make_hospital(folder)
    schema.write_text(schema.read_text() + f"\nlimits: {{min_latency: {SECONDS}}}\n")
    with serving(schema) as server:
        connection = dpsql.connect(server.dsn("ana"), epsilon=0.5)
        other = dpsql.connect(server.dsn("ana"))
        killing = threading.Thread(
            target=lambda: (until(lambda: other.budget().charges == 2), server.stop(signal.SIGKILL))
        )  # the histogram of units, then the question: charged, and not answered yet
        killing.start()
        with pytest.raises(dpsql.OperationalError, match="lost") as caught:
            connection.sql(COUNT.format(1))
        killing.join()
        assert caught.value.sqlstate == "08006" and "may have been charged" in (caught.value.detail or "")
        assert connection.closed
        with pytest.raises(dpsql.InterfaceError, match="lost"):
            connection.sql("SELECT 1")
        server.start()
        with dpsql.connect(server.dsn("ana"), epsilon=0.5) as again:
            charges = again.budget().charges
            assert charges == 2 and not again.sql(COUNT.format(1)).loss
            assert again.budget().charges == charges
        connection.close()
        other.close()


def test_a_server_that_shuts_down_ends_idle_connections() -> None:
    with serving() as server:
        connection = dpsql.connect(server.dsn("ana"))
        assert server.stop() == 0
        with pytest.raises(dpsql.OperationalError) as caught:
            connection.sql("SELECT COUNT(*) FROM visits")
        assert caught.value.sqlstate in ("57P01", "08006") and connection.closed


# --- the command line ------------------------------------------------------------------------------------------------


def dpsql_command(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dpsql", *words], capture_output=True, text=True, timeout=120,
        stdin=subprocess.DEVNULL, env={**os.environ, **environment}, start_new_session=True,
    )  # fmt: skip


def test_query_explain_budget_and_statements(slow: Server) -> None:
    url, word = f"postgresql://ana@127.0.0.1:{slow.port}/hospital", {"PGPASSWORD": USERS["ana"]}
    asked = dpsql_command("query", url, "SELECT COUNT(*) AS n FROM visits WHERE ward = ?", "-p", "surgery", "--json",
                          "--epsilon", "0.1", **word)  # fmt: skip
    assert asked.returncode == 0 and '"n"' in asked.stdout and "charged: epsilon" in asked.stderr
    same = "SELECT COUNT(*) AS n FROM visits WHERE ward = 'surgery'"
    again = dpsql_command(url, "-c", same, "--epsilon", "0.1", **word)
    assert again.returncode == 0 and "charged: nothing" in again.stdout
    explained = dpsql_command("explain", url, "SELECT COUNT(*) FROM visits", **word)
    assert explained.returncode == 0 and "Price: " in explained.stdout
    budget = dpsql_command("budget", url, **word)
    assert budget.returncode == 0 and 'account "ana"' in budget.stdout
    for told in (asked, again, explained, budget):
        assert USERS["ana"] not in told.stdout + told.stderr
    refused = dpsql_command("check", url)
    assert refused.returncode == 1 and "not with a server" in refused.stderr


def test_without_a_password_and_a_terminal(slow: Server, tmp_path: Path) -> None:
    told = dpsql_command("query", f"dpsql://ana@127.0.0.1:{slow.port}/hospital", "SELECT 1", HOME=str(tmp_path))
    assert told.returncode == 1 and "there is no password" in told.stderr and "PGPASSWORD" in told.stderr
