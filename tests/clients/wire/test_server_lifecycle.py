"""A server's life: logins that tell nothing, statements that wait for nobody else, cancels, reloads, and its end."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from dpsql.interfaces.cli.demo_hospital import make_hospital
from dpsql.interfaces.pgwire.protocol import client_codec
from dpsql.interfaces.pgwire.protocol.client_codec import CommandComplete, DataRow, ErrorResponse
from dpsql.interfaces.pgwire.server.login_throttle import FREE_FAILURES
from dpsql.session.dataset.dataset import open_dataset
from tests.support.raw_client import Raw, Refused
from tests.support.server import Server, give_passwords, make_certificate, serving
from tests.support.wire_messages import encode_query

pytestmark = pytest.mark.slow

LATENCY = 2.0
"""Seconds that each new release takes here, whatever the engine needs."""
FRESH = "SELECT count(*) FROM visits WHERE nights > {}"


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Whose releases take their time; with budgets that hold many."""
    schema = make_hospital(tmp_path_factory.mktemp("hospital"))
    text = schema.read_text().replace("{epsilon: 8, delta: 1e-6}", "{epsilon: 1000, delta: 1e-3}")
    text = text.replace("{epsilon: 4, delta: 5e-7}", "{epsilon: 100, delta: 1e-4}")
    text = text.replace("contributions: auto ", "contributions: {rows: 6, groups: 4} ")  # one run for each question
    schema.write_text(f"{text}\nlimits: {{min_latency: {LATENCY}}}\n")
    return schema


@pytest.fixture(scope="module")
def slow(hospital: Path) -> Iterator[Server]:
    with serving(hospital, options=("--metrics-port", "0")) as server:
        yield server
        assert "Traceback" not in server.log() and "internal error" not in server.log()


def entered(server: Server, user: str = "ana", **parameters: str) -> Raw:
    one = Raw(server.host, server.port)
    try:
        one.log_in(user, server.passwords[user], server.database, epsilon="0.01", **parameters)
    except BaseException:
        one.close()
        raise
    return one


def charges(server: Server) -> int:
    with closing(sqlite3.connect(server.schema.with_suffix(".ledger"), timeout=30)) as db:
        return int(db.execute("SELECT count(*) FROM payment").fetchone()[0])


def charged(server: Server, one: Raw, sql: str) -> None:
    """Ask, and go on as soon as it is paid for: it runs for as long as the latency says."""
    before = charges(server)
    one.send(encode_query(sql))
    end = time.monotonic() + 20
    while charges(server) == before:
        assert time.monotonic() < end
        time.sleep(0.02)


def rows(replies: list[object]) -> list[tuple[bytes | None, ...]]:
    return [one.values for one in replies if isinstance(one, DataRow)]


def states(replies: list[object]) -> list[str]:
    return [one.fields["C"] for one in replies if isinstance(one, ErrorResponse)]


# --- logins ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quick() -> Iterator[Server]:
    with serving() as server:
        yield server


def exchange(server: Server, user: str, database: str, password: str = "wrong") -> tuple[list[bytes], dict[str, str]]:
    """What the server says in a login that fails: its offer, its challenge without what is random, its error."""
    with Raw(server.host, server.port) as raw:
        offer = raw.begin(user, database)
        challenge = raw.challenge(user)
        fields = dict(part.split("=", 1) for part in challenge.split(","))
        assert len(fields["r"]) == 48
        with pytest.raises(Refused) as refused:
            raw.send(client_codec.encode_sasl_response(f"c=biws,r={fields['r']},p={'A' * 43}=".encode()))
            raw._authentication()
        return [offer.data, str(len(fields["s"])).encode(), fields["i"].encode()], refused.value.fields


def test_user_names_are_not_revealed_before_login(quick: Server) -> None:
    """The same bytes but for the name, the nonce and the salt."""
    known, error = exchange(quick, "ana", "hospital")
    assert error["C"] == "28P01" and error["M"] == 'password authentication failed for user "ana"'
    for user, database in (("eve", "hospital"), ("ana", "nothing"), ("eve", "nothing"), ("dataset", "hospital")):
        other, told = exchange(quick, user, database)
        assert other == known
        assert told == {**error, "M": f'password authentication failed for user "{user}"'}


def test_a_strangers_salt_stays_as_an_analysts_does(quick: Server) -> None:
    def salt(user: str) -> str:
        with Raw(quick.host, quick.port) as raw:
            raw.begin(user, "hospital")
            return dict(part.split("=", 1) for part in raw.challenge(user).split(","))["s"]

    before = {user: salt(user) for user in ("ana", "eve", "mallory")}
    assert len(set(before.values())) == 3
    quick.stop()
    quick.start()
    assert {user: salt(user) for user in before} == before


def test_repeated_login_failures_slow_down_and_end_in_a_refusal() -> None:
    with serving() as server:
        started = time.monotonic()
        for _ in range(FREE_FAILURES + 3):
            assert exchange(server, "ana", "hospital")[1]["C"] == "28P01"
        assert time.monotonic() - started > 0.25 + 0.5

        def guess(_: int) -> str:
            return exchange(server, "ana", "hospital")[1]["C"]

        with ThreadPoolExecutor(20) as pool:
            told = list(pool.map(guess, range(20)))
        assert told.count("28000") > 10 and "28P01" in told


def test_wrong_settings_at_login_are_reported_after_authentication(quick: Server) -> None:
    for wrong, state in (({"options": "-c epsilon=lots"}, "22023"), ({"epsilon": "-1"}, "22023"),
                         ({"options": "--nothing=1"}, "42704"), ({"options": "epsilon=1"}, "42601"),
                         ({"replication": "true"}, "0A000")):  # fmt: skip
        with Raw(quick.host, quick.port) as raw, pytest.raises(Refused) as refused:
            raw.log_in("ana", quick.passwords["ana"], "hospital", **wrong)
        assert (refused.value.state, refused.value.fields["S"]) == (state, "FATAL"), wrong
        with Raw(quick.host, quick.port) as raw, pytest.raises(Refused) as refused:
            raw.log_in("ana", "wrong", "hospital", **wrong)
        assert refused.value.state == "28P01"
        with psycopg.connect(quick.dsn("ana")):
            pass


def test_a_user_without_a_password_cannot_log_in() -> None:
    with serving(passwords={"bob": "b"}) as server:
        for password in ("", "b", "ana"):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(server.dsn("ana", password or " "))
        with psycopg.connect(server.dsn("bob")) as db:
            assert db.execute("SELECT 1").fetchone() == (1,)
        assert server.logged("cannot log in")


# --- statements at once ----------------------------------------------------------------------------------------------


def test_three_hundred_idle_and_sixty_four_active(slow: Server) -> None:
    idle: list[Raw] = []
    active: list[Raw] = []
    try:
        idle += [entered(slow, "ana" if number % 2 else "bob") for number in range(300)]
        active += [entered(slow, "ana" if number % 2 else "bob") for number in range(64)]
        started = time.monotonic()
        for number, one in enumerate(active):
            old = f"birth_year > {1940 + number % 8}"
            one.send(encode_query(f"SELECT {number} AS n, count(*) FROM patients WHERE {old}"))
        for number, one in enumerate(active):
            told = one.until_ready()
            assert states(told) == [] and rows(told)[0][0] == str(number).encode()
        assert time.monotonic() - started < 30
        for one in idle[::25]:
            assert rows(one.ask("SELECT 1")) == [(b"1",)]
    finally:
        for one in (*idle, *active):
            one.close()


def test_an_account_with_many_statements_does_not_stall_another(hospital: Path) -> None:
    """Of four threads, ana's statements take two: hers last six times LATENCY; bob's have a thread at once."""
    with serving(hospital, options=("--threads", "4")) as server:
        hogs = [entered(server, "ana") for _ in range(12)]
        with entered(server, "bob") as other:
            for number, one in enumerate(hogs):
                one.send(encode_query(FRESH.format(f"{number % 14} AND cost > {number}")))
            time.sleep(0.3)
            started = time.monotonic()
            assert rows(other.ask("SELECT 1")) == [(b"1",)]
            assert time.monotonic() - started < 2 * LATENCY
            assert states(other.ask(FRESH.format(3))) == []
            assert time.monotonic() - started < 4 * LATENCY
        for one in hogs:
            assert states(one.until_ready()) == []
            one.close()


# --- cancels ---------------------------------------------------------------------------------------------------------


def cancel(server: Server, process: int, secret: bytes) -> bytes:
    with Raw(server.host, server.port) as raw:
        raw.send(client_codec.encode_cancel_request(process, secret))
        return raw.rest()


def test_a_cancel_detaches_and_the_run_goes_on(slow: Server) -> None:
    sql = FRESH.format("1 AND cost < 77")
    with entered(slow) as one:
        assert one.key is not None
        charged(slow, one, sql)
        started = time.monotonic()
        assert cancel(slow, one.key.process, one.key.secret) == b""
        told = one.until_ready()
        assert states(told) == ["57014"] and time.monotonic() - started < LATENCY / 2
        details = [reply.fields.get("D", "") for reply in told if isinstance(reply, ErrorResponse)]
        assert "charged" in details[0]
        time.sleep(LATENCY)
        with psycopg.connect(slow.dsn("ana"), autocommit=True) as db:
            notices: list[str] = []
            db.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
            db.execute("SET epsilon = 0.01")
            db.execute(sql)
            assert any("charged: nothing" in text for text in notices), notices


def test_a_cancel_needs_the_key_and_reaches_that_connection_alone(slow: Server) -> None:
    with entered(slow) as one, entered(slow) as other:
        assert one.key is not None and other.key is not None
        charged(slow, one, FRESH.format("2 AND cost < 78"))
        wrong = bytes([one.key.secret[0] ^ 1]) + one.key.secret[1:]
        for process, secret in ((one.key.process, wrong), (one.key.process, other.key.secret), (1, one.key.secret),
                                (one.key.process, one.key.secret + b"x"), (one.key.process, b"\0" * 4),
                                (other.key.process, other.key.secret)):  # fmt: skip
            assert cancel(slow, process, secret) == b""
        assert states(one.until_ready()) == []
        assert states(other.ask("SELECT 1")) == []


def test_a_cancel_of_nothing_does_not_reach_what_comes_later(slow: Server) -> None:
    with entered(slow) as one:
        assert one.key is not None
        assert states(one.ask("SELECT 1")) == []
        cancel(slow, one.key.process, one.key.secret)
        time.sleep(0.1)
        assert states(one.ask("SELECT 1")) == []


def test_a_statement_that_waits_for_its_turn_is_canceled_uncharged(hospital: Path) -> None:
    with serving(hospital, options=("--threads", "1")) as server, entered(server) as first, entered(server) as second:
        assert second.key is not None
        charged(server, first, FRESH.format("4 AND cost < 80"))
        second.send(encode_query(FRESH.format("5 AND cost < 81")))
        time.sleep(0.2)
        cancel(server, second.key.process, second.key.secret)
        told = second.until_ready()
        assert states(told) == ["57014"]
        assert not any("charged" in reply.fields.get("D", "") for reply in told if isinstance(reply, ErrorResponse))
        assert states(first.until_ready()) == []
        assert states(second.ask("SELECT 1")) == []


def test_a_client_that_leaves_while_a_statement_runs_frees_its_thread(hospital: Path) -> None:
    with serving(hospital, options=("--threads", "1")) as server:
        with entered(server) as gone:
            charged(server, gone, FRESH.format("6 AND cost < 90"))
        started = time.monotonic()
        with entered(server) as one:
            assert states(one.ask("SELECT 1")) == []
        assert time.monotonic() - started < LATENCY / 2


# --- figures for the owner -------------------------------------------------------------------------------------------


def got(address: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_health_and_metrics(slow: Server) -> None:
    assert slow.metrics is not None
    with entered(slow) as one:
        one.ask("SELECT 1")
        one.ask("SELECT * FROM visits")
        code, text = got(slow.metrics + "/health")
        assert code == 200 and json.loads(text) == {"status": "ok", "databases": {"hospital": "ok"}}
        code, text = got(slow.metrics + "/metrics")
    figures = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert code == 200 and float(figures['dpsql_connections{database="hospital"}']) >= 1
    assert float(figures['dpsql_statements_total{database="hospital",outcome="free"}']) >= 1
    assert float(figures['dpsql_statements_total{database="hospital",outcome="refused"}']) >= 1
    assert {name.partition("{")[0] for name in figures if "seconds" in name} == {
        "dpsql_login_seconds_bucket", "dpsql_login_seconds_sum", "dpsql_login_seconds_count",
    }, "no clock of statements"  # fmt: skip
    assert got(slow.metrics + "/nothing")[0] == 404


def test_budgets_are_shown_with_the_owners_token(slow: Server, tmp_path: Path) -> None:
    assert slow.metrics is not None
    text = got(slow.metrics + "/metrics")[1]
    assert "budget" not in text and "ana" not in text and "bob" not in text
    assert got(slow.metrics + "/metrics", Authorization="Bearer anything")[0] == 401, "there is no token file"
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123456789abcdef\n")
    token.chmod(0o600)
    with serving(options=("--metrics-port", "0", "--metrics-token-file", str(token))) as server:
        assert server.metrics is not None
        place = server.metrics + "/metrics"
        with psycopg.connect(server.dsn("ana"), autocommit=True) as db:
            db.execute("SELECT count(*) FROM patients")
        assert "budget" not in got(place)[1]
        for wrong in ("Bearer 0123456789abcdef0123456789abcdeF", "Bearer ", "Basic eDp5", "Bearer"):
            assert got(place, Authorization=wrong)[0] == 401
        code, text = got(place, Authorization="Bearer 0123456789abcdef0123456789abcdef")
        figures = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        assert code == 200
        assert float(figures['dpsql_budget_spent_epsilon{account="ana",database="hospital"}']) > 0
        assert float(figures['dpsql_budget_spent_epsilon{account="bob",database="hospital"}']) == 0
        assert 'dpsql_budget_left_epsilon{account="dataset",database="hospital"}' in figures


def test_a_user_sees_no_figure_of_another(slow: Server) -> None:
    with (
        psycopg.connect(slow.dsn("ana"), autocommit=True) as ana,
        psycopg.connect(slow.dsn("bob"), autocommit=True) as bob,
    ):
        before = bob.execute("SHOW BUDGET").fetchall()
        told: list[str] = []
        bob.add_notice_handler(lambda notice: told.append(str(notice.message_primary)))
        ana.execute("SET epsilon = 0.05")
        ana.execute("SELECT count(*) FROM visits WHERE nights > 7")
        assert bob.execute("SHOW BUDGET").fetchall() == before
        shown = str(before) + str(bob.execute("SHOW ALL").fetchall()) + str(told)
        assert "ana" not in shown.replace("analyst", "")
        assert "ana" in str(ana.execute("SHOW BUDGET").fetchall())


def test_the_log_has_no_word_of_statements_or_values(slow: Server) -> None:
    with psycopg.connect(slow.dsn("ana"), autocommit=True) as db:
        db.execute("SELECT 'needle-in-text'")
        db.execute("SELECT %s::text", ("needle-in-parameter",))
        with pytest.raises(psycopg.Error):
            db.execute("SELECT needle_in_error FROM visits WHERE ward = 'needle-in-literal'")
        with pytest.raises(psycopg.Error):
            db.execute("SELECT 'needle-in-cast'::int")
    assert slow.logged('"refused"')
    lines = [json.loads(line) for line in slow.log().splitlines()]
    assert "needle" not in slow.log() and "surgery" not in slow.log()
    statements = [line for line in lines if line["event"] == "statement"]
    assert {line["outcome"] for line in statements} >= {"free", "refused"}
    for line in statements:
        assert line["seconds"] % LATENCY == 0, "of time, what the grid lets be seen"


def test_the_log_has_every_charge_and_every_refused_login(hospital: Path) -> None:
    schema = hospital.parent / "acting.yaml"
    text = hospital.read_text().replace("hospital.ledger", "acting.ledger")
    bob = "bob: {budget: {epsilon: 2, delta: 1e-7}, may_act_for: [ana]}"
    schema.write_text(text.replace("analysts:\n", f"analysts:\n  {bob}\n"))
    with serving(schema) as server:
        with psycopg.connect(server.dsn("bob", options="-c role=ana"), autocommit=True) as db:
            db.execute("SELECT count(*) FROM visits")
            assert db.execute("SELECT current_user, session_user").fetchone() == ("ana", "bob")
        with psycopg.connect(server.dsn("bob"), autocommit=True) as db:
            db.execute("SELECT count(*) FROM patients")
        with pytest.raises(psycopg.OperationalError, match="permission denied"):
            psycopg.connect(server.dsn("ana", options="-c role=bob"))
        assert server.logged("login refused")
        lines = [json.loads(line) for line in server.log().splitlines()]
        paid = [line for line in lines if line.get("charged_epsilon")]
        assert [(line["user"], line.get("account")) for line in paid] == [("bob", "ana"), ("bob", None)]
        (refused,) = [line for line in lines if line["event"] == "login refused"]
        assert (refused["user"], refused["sqlstate"]) == ("ana", "42501")
        server.stop()
        with closing(open_dataset(server.schema)) as dataset:
            entries = {name: len(dataset.ledger.list_entries(name)) for name in ("ana", "bob")}
            assert entries == {"ana": 2, "bob": 2}, "that it was opened, and one charge"


# --- reading again, and the end --------------------------------------------------------------------------------------


def test_a_reload_has_new_users_passwords_and_certificates_and_disturbs_nobody() -> None:
    with serving(tls=True) as server:
        assert server.certificate is not None
        with psycopg.connect(server.dsn("ana"), autocommit=True) as old:
            counted = old.execute("SELECT count(*) FROM patients").fetchone()
            give_passwords(server.schema, {"ana": "new", "cleo": "c"})
            made = make_certificate(server.folder, "another")
            shutil.copy(made, server.certificate)
            shutil.copy(made.with_suffix(".key"), server.certificate.with_suffix(".key"))
            server.send(signal.SIGHUP)
            assert server.logged("read again")
            with psycopg.connect(server.dsn("cleo", "c")) as db:
                assert db.execute("SELECT current_user").fetchone() == ("cleo",)
            with psycopg.connect(server.dsn("ana", "new"), autocommit=True) as db:
                assert db.execute("SELECT count(*) FROM patients").fetchone() == counted, "stored, and paid for"
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                psycopg.connect(server.dsn("ana"))
            assert old.execute("SELECT 1").fetchone() == (1,)
            assert old.execute("SELECT count(*) FROM patients").fetchone() == counted


def test_a_schema_that_is_wrong_stays_as_it_was() -> None:
    with serving() as server:
        server.schema.write_text("dpsql: 2\n")
        server.send(signal.SIGHUP)
        assert server.logged("a schema could not be read again")
        with psycopg.connect(server.dsn("ana")) as db:
            assert db.execute("SELECT 1").fetchone() == (1,)


def test_the_end_lets_running_answers_finish_and_a_new_start_has_lost_nothing(hospital: Path) -> None:
    with serving(hospital) as server:
        sql = FRESH.format("8 AND cost < 55")
        with entered(server) as running, entered(server) as idle:
            charged(server, running, sql)
            ending = threading.Thread(target=server.stop)
            ending.start()
            last = idle.reply()
            assert isinstance(last, ErrorResponse) and (last.fields["S"], last.fields["C"]) == ("FATAL", "57P01")
            told = running.until_ready()
            assert len(rows(told)) == 1 and states(told) == []
            last = running.reply()
            assert isinstance(last, ErrorResponse) and last.fields["C"] == "57P01"
            with pytest.raises(OSError):
                entered(server)
            ending.join()
        assert server.process is not None and server.process.returncode == 0
        server.start()
        with entered(server) as again:
            started = time.monotonic()
            assert rows(again.ask(sql)) == rows(told)
            assert time.monotonic() - started < LATENCY, "stored: it is not run again"
        assert server.logged('"outcome": "free"')


def test_a_second_signal_does_not_wait_and_what_was_charged_is_redeemed(hospital: Path) -> None:
    with serving(hospital) as server:
        sql = FRESH.format("9 AND cost < 54")
        with entered(server) as running:
            charged(server, running, sql)
            server.send(signal.SIGTERM)
            assert server.logged("stopping")
            started = time.monotonic()
            server.stop()
            assert time.monotonic() - started < 10
            last = running.reply()
            assert isinstance(last, ErrorResponse) and (last.fields["S"], last.fields["C"]) == ("FATAL", "57P01")
        server.start()
        with psycopg.connect(server.dsn("ana", options="-c epsilon=0.01"), autocommit=True) as db:
            told: list[str] = []
            db.add_notice_handler(lambda notice: told.append(str(notice.message_primary)))
            db.execute(sql)
            assert any("charged: nothing" in text for text in told), told


def test_killed_and_started_again_nothing_is_paid_twice(hospital: Path) -> None:
    with serving(hospital) as server:
        with entered(server) as running:
            charged(server, running, FRESH.format("10 AND cost < 53"))
            server.stop(signal.SIGKILL)
        server.start()
        with entered(server) as one:
            told = one.ask(FRESH.format("10 AND cost < 53"))
            assert CommandComplete("SELECT 1") in told
        assert server.logged('"outcome": "free"') and "charged_epsilon" not in server.log()
