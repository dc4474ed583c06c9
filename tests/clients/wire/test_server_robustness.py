"""What a server does with clients that are slow, broken or hostile: a clean error or an end, and all others go on."""

from __future__ import annotations

import os
import random
import resource
import socket
import ssl
import struct
import time
from collections.abc import Iterator

import psycopg
import pytest

from dpsql.interfaces.pgwire.protocol import client_codec
from dpsql.interfaces.pgwire.protocol.client_codec import (
    DataRow,
    ErrorResponse,
    NegotiateProtocolVersion,
    ParameterStatus,
)
from tests.support.raw_client import GSS_REQUEST, NONCE, SSL_REQUEST, Raw, Refused
from tests.support.server import USERS, Server, serving
from tests.support.wire_messages import encode_copy_fail, encode_describe, encode_query

pytestmark = pytest.mark.slow

ASKED = "SELECT count(*) FROM patients"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(tls=True) as server:
        yield server
        assert "Traceback" not in server.log() and "internal error" not in server.log()


def raw(server: Server, seconds: float = 30.0) -> Raw:
    return Raw(server.host, server.port, seconds)


def entered(server: Server, user: str = "ana", **parameters: str) -> Raw:
    one = raw(server)
    try:
        one.log_in(user, server.passwords[user], server.database, **parameters)
    except BaseException:
        one.close()
        raise
    return one


def refusal(data: bytes) -> dict[str, str]:
    """The error of an answer that is one and nothing else."""
    replies = client_codec.BackendDecoder()
    replies.receive_data(data)
    found = replies.next_reply()
    assert isinstance(found, ErrorResponse) and replies.next_reply() is None and not replies.buffered_bytes, data
    return dict(found.fields)


def is_well(server: Server) -> None:
    with psycopg.connect(server.dsn("bob"), autocommit=True) as db:
        assert db.execute("SELECT 1").fetchone() == (1,)


def memory(server: Server) -> int:
    """Bytes that the process holds."""
    assert server.process is not None
    with open(f"/proc/{server.process.pid}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


# --- before the login ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\0\0\0\0", b"\0\0\0\7abc", b"\xff\xff\xff\xff",
     b"\x7f\xff\xff\xff\0\3\0\0", struct.pack("!II", 9, 196608) + b"x", struct.pack("!II", 8, 196608),
     struct.pack("!II", 30, 196608) + b"user\0ana" * 3,
     struct.pack("!II", 20, 196608) + b"user\0\xff\xfe\xfd\0\0\0\0"],
)  # fmt: skip
def test_what_is_no_startup_message_is_refused(server: Server, data: bytes) -> None:
    with raw(server, 15) as one:
        one.send(data)
        one.socket.shutdown(socket.SHUT_WR)
        answer = one.rest()
        assert not answer or refusal(answer)["S"] == "FATAL"
    is_well(server)


def test_an_old_protocol_is_refused_in_words(server: Server) -> None:
    with raw(server) as one:
        one.send(struct.pack("!II", 8, 2 << 16))
        assert refusal(one.rest())["C"] in ("0A000", "08P01")


def test_a_later_minor_version_and_unknown_options_are_negotiated(server: Server) -> None:
    body = struct.pack("!I", (3 << 16) + 2) + b"user\0ana\0database\0hospital\0_pq_.wish\0on\0\0"
    with raw(server) as one:
        one.send(struct.pack("!I", len(body) + 4) + body)
        told = one.reply()
        assert told == NegotiateProtocolVersion(3 << 16, ("_pq_.wish",))
        assert isinstance(one.reply(), client_codec.Authentication)


def test_gss_is_declined_and_tls_may_follow(server: Server) -> None:
    context = ssl.create_default_context(cafile=str(server.certificate))
    with raw(server) as one:
        one.send(GSS_REQUEST)
        assert one.read(1) == b"N"
        assert one.start_tls(context) == b"S"
        one.log_in("ana", server.passwords["ana"], server.database)
        assert one.ask("SELECT 1")


@pytest.mark.parametrize("twice", [GSS_REQUEST + GSS_REQUEST])
def test_requesting_encryption_twice_is_refused(server: Server, twice: bytes) -> None:
    with raw(server) as one:
        one.send(twice)
        answer = one.rest()
        assert answer[:1] == b"N" and refusal(answer[1:])["C"] == "08P01"


@pytest.mark.parametrize(
    "stuffed", [b"x", client_codec.encode_startup({"user": "ana", "database": "hospital"}), b"\x16\x03\x01"]
)
def test_bytes_behind_a_request_for_tls_are_never_obeyed(server: Server, stuffed: bytes) -> None:
    """Someone between could put a startup message of her own before the handshake (CVE-2021-23214)."""
    with raw(server) as one:
        one.send(SSL_REQUEST + stuffed)
        answer = one.rest()
        assert not answer.startswith(b"S") and refusal(answer)["C"] == "08P01"


def test_bytes_between_the_request_and_the_handshake_are_not_obeyed_either(server: Server) -> None:
    with raw(server) as one:
        one.send(SSL_REQUEST)
        assert one.read(1) == b"S"
        one.send(client_codec.encode_startup({"user": "ana", "database": "hospital"}))
        answer = one.rest()
        assert b"SCRAM" not in answer


def test_direct_tls_with_its_name(server: Server) -> None:
    context = ssl.create_default_context(cafile=str(server.certificate))
    context.set_alpn_protocols(["postgresql"])
    with raw(server) as one:
        one.socket = context.wrap_socket(one.socket, server_hostname="localhost")
        one.log_in("ana", server.passwords["ana"], server.database)
        assert one.ask("SELECT 1")


@pytest.mark.parametrize("protocols", [(), ("http/1.1",)])
def test_direct_tls_without_its_name_is_refused(server: Server, protocols: tuple[str, ...]) -> None:
    context = ssl.create_default_context(cafile=str(server.certificate))
    if protocols:
        context.set_alpn_protocols(list(protocols))
    with raw(server) as one:
        try:
            one.socket = context.wrap_socket(one.socket, server_hostname="localhost")
            one.send(client_codec.encode_startup({"user": "ana", "database": "hospital"}))
            answer = one.rest()
        except ssl.SSLError:
            answer = b""
        assert b"SCRAM" not in answer


def test_old_tls_is_refused(server: Server) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with raw(server) as one, pytest.raises((ssl.SSLError, ConnectionError)):
        one.start_tls(context)


def test_byte_by_byte(server: Server) -> None:
    with raw(server) as one:
        one.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in client_codec.encode_startup({"user": "ana", "database": server.database}):
            one.send(bytes([byte]))
            time.sleep(0.001)
        assert isinstance(one.reply(), client_codec.Authentication)
        one.prove("ana", server.passwords["ana"])
        one.until_ready()
        for byte in (
            encode_query("SELECT 1")
            + client_codec.encode_parse("", "SELECT 2")
            + client_codec.encode_bind("", "")
            + client_codec.encode_execute()
        ):
            one.send(bytes([byte]))
        one.send(client_codec.SYNC)
        told = [*one.until_ready(), *one.until_ready()]
        assert [reply.values for reply in told if isinstance(reply, DataRow)] == [(b"1",), (b"2",)]


@pytest.mark.parametrize(
    "message",
    [
        encode_query("SELECT 1"),
        client_codec.encode_sasl_initial("SCRAM-SHA-256", b"n,,n=,r="),
        client_codec.encode_sasl_initial("PLAIN", b"x"),
        client_codec.encode_sasl_initial("SCRAM-SHA-256-PLUS", b"p=tls-server-end-point,,n=,r=abc"),
        b"p\0\0\0\4",
        b"p\0\0\0\5\xff",
        client_codec.encode_sasl_initial("SCRAM-SHA-256", b"\xff\xfe"),
        b"p" + struct.pack("!I", 1 << 20),
        b"\0" * 100,
    ],
)
def test_a_login_that_is_none_ends(server: Server, message: bytes) -> None:
    with raw(server) as one:
        one.begin("ana", server.database)
        one.send(message)
        assert refusal(one.rest())["C"] == "08P01"


def test_statements_behind_an_unfinished_login_are_not_run(server: Server) -> None:
    with raw(server) as one:
        one.begin("ana", server.database)
        one.send(client_codec.encode_sasl_initial("SCRAM-SHA-256", f"n,,n=,r={NONCE}".encode()) + encode_query(ASKED))
        answer = one.rest()
        assert b"count" not in answer and b"08P01" in answer


def test_no_password_is_requested_in_clear_or_by_md5(server: Server) -> None:
    with raw(server) as one:
        offered = one.begin("ana", server.database)
        assert offered.code == 10 and offered.mechanisms == ("SCRAM-SHA-256",)
    context = ssl.create_default_context(cafile=str(server.certificate))
    with raw(server) as one:
        one.start_tls(context)
        assert one.begin("ana", server.database).mechanisms == ("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256")


# --- after the login -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [b"\0\0\0\0\4", b"?\0\0\0\4", b"Q\0\0\0\0", b"Q\0\0\0\3", b"Q\xff\xff\xff\xff", b"Q\x7f\xff\xff\xff",
     b"p\0\0\0\10abcd"],
)  # fmt: skip
def test_a_broken_message_ends_the_connection_in_words(server: Server, data: bytes) -> None:
    with entered(server) as one:
        one.send(data)
        assert refusal(one.rest())["C"] == "08P01"
    is_well(server)


@pytest.mark.parametrize(
    ("data", "code"),
    [(b"Q\0\0\0\6xx", "08P01"), (b"Q\0\0\0\6\xff\0", "22021"), (b"S\0\0\0\5x", "08P01"),
     (b"P\0\0\0\4", "08P01"), (b"B\0\0\0\5\0", "08P01"), (b"E\0\0\0\5\0", "08P01"), (b"D\0\0\0\6X\0", "08P01")],
)  # fmt: skip
def test_after_a_message_with_wrong_content_the_session_goes_on(server: Server, data: bytes, code: str) -> None:
    with entered(server) as one:
        one.send(data + (client_codec.SYNC if data[:1] in b"PBED" else b""))
        errors = [reply for reply in one.until_ready() if isinstance(reply, client_codec.ErrorResponse)]
        assert [error.fields["C"] for error in errors] == [code]
        assert one.states("SELECT 1") == []


def test_a_message_that_is_too_long_is_refused_by_its_length_alone(server: Server) -> None:
    with entered(server) as one:
        one.send(b"Q" + struct.pack("!I", 16 * 1024 * 1024 + 1))
        assert refusal(one.rest())["C"] == "08P01"


def test_a_long_statement_is_an_error_and_the_connection_goes_on(server: Server) -> None:
    with entered(server) as one:
        assert one.states("SELECT " + "1 + " * 400_000 + "1") == ["54000"]
        assert one.states("SELECT " + "(" * 20_000 + "1" + ")" * 20_000) == ["54000"]
        assert one.states("SELECT 1") == []


def test_half_a_message_and_then_nothing(server: Server) -> None:
    with entered(server) as one:
        one.send(b"Q\0\0\0\x20SELECT")
    assert server.logged("disconnected")
    is_well(server)


def test_a_client_that_vanishes(server: Server) -> None:
    """The connection is reset, with a statement on its way."""
    for sql in ("SELECT 1", ASKED):
        one = entered(server)
        one.send(encode_query(sql))
        one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.close()
    is_well(server)


def test_random_bytes_never_do_more_than_end_a_connection(server: Server) -> None:
    chance = random.Random(20)
    before = memory(server)
    for number in range(150):
        with raw(server) as one:
            if number % 3:
                one.log_in("bob", server.passwords["bob"], server.database)
            data = chance.randbytes(chance.choice((1, 5, 40, 3000)))
            if number % 3 == 2:  # well-formed frames of nonsense
                data = b"".join(
                    chance.choice(b"QPBDECHSdcfpF").to_bytes() + struct.pack("!I", len(part) + 4) + part
                    for part in (chance.randbytes(chance.choice((0, 1, 9, 60))) for _ in range(20))
                )
            try:
                one.send(data)
                one.socket.shutdown(socket.SHUT_WR)
                one.rest()
            except ConnectionError:
                pass
    is_well(server)
    assert memory(server) - before < 64 * 1024 * 1024


def test_random_messages_in_any_order_get_an_answer_or_an_end(server: Server) -> None:
    chance = random.Random(4)
    known = [
        encode_query("SELECT 1"),
        encode_query(""),
        encode_query("SELECT * FROM visits"),
        client_codec.SYNC,
        client_codec.FLUSH,
        client_codec.encode_parse("s", "SELECT $1::int"),
        client_codec.encode_parse("", "SELECT 1"),
        client_codec.encode_bind("", ""),
        client_codec.encode_bind("p", "s", (b"1",)),
        encode_describe("S", "s"),
        encode_describe("P"),
        client_codec.encode_execute(),
        client_codec.encode_execute("p", 1),
        client_codec.encode_close("S", "s"),
        client_codec.COPY_DONE,
        encode_copy_fail("x"),
        encode_query("BEGIN"),
        encode_query("COMMIT"),
        encode_query("COPY (SELECT 1) TO STDOUT"),
    ]
    for _ in range(25):
        with entered(server, "bob") as one:
            for _ in range(chance.randrange(1, 30)):
                one.send(chance.choice(known))
            one.send(client_codec.SYNC)
            one.send(encode_query("ROLLBACK"))
            one.send(encode_query("SELECT 'the end'"))
            heard = []
            while not any(isinstance(reply, DataRow) and reply.values == (b"the end",) for reply in heard):
                heard.append(one.reply())
    is_well(server)


# --- slow and silent clients -----------------------------------------------------------------------------------------


def test_a_client_that_does_not_read_takes_no_thread_and_little_memory(server: Server) -> None:
    """Ten clients ask for far more than they read."""
    before = memory(server)
    sql = "SELECT repeat('x', 1000) AS x FROM generate_series(1, 20000)"
    slow = [entered(server, "bob") for _ in range(10)]
    for one in slow:
        one.send(encode_query(sql))
    time.sleep(2)
    started = time.monotonic()
    for _ in range(20):
        is_well(server)
    assert time.monotonic() - started < 15
    assert memory(server) - before < 1 << 30
    first = slow[0].until_ready()
    assert sum(isinstance(reply, DataRow) for reply in first) == 20000, "who reads at last gets all"
    for one in slow:
        one.close()


def test_a_client_that_never_reads_is_not_read_from_for_ever(server: Server) -> None:
    """Statements without end whose answers nobody takes: what waits is bounded."""
    sql = "SELECT repeat('x', 1000) AS x FROM generate_series(1, 900)"
    with entered(server, "bob") as one:
        assert one.states(sql) == []
        before = memory(server)
        one.socket.settimeout(3)
        data = encode_query(sql) * 1000
        with pytest.raises(TimeoutError):
            for _ in range(3000):
                one.send(data)
        time.sleep(2)
        assert memory(server) - before < 64 * 1024 * 1024
    is_well(server)


def test_many_half_messages_are_bounded_together(server: Server) -> None:
    """Forty clients of one analyst each begin a message of 16 MB: not all of it is kept."""
    before = memory(server)
    part = b"Q" + struct.pack("!I", 16 * 1024 * 1024) + b" " * (15 * 1024 * 1024)
    ones = [entered(server, "bob") for _ in range(40)]
    for one in ones:
        one.socket.settimeout(5)
        try:
            one.send(part)
        except OSError:
            continue
    time.sleep(1)
    held = memory(server) - before
    assert held < 600 * 1024 * 1024, held
    assert any(b"53200" in one.read() for one in ones[-5:])
    for one in ones:
        one.close()
    is_well(server)


# --- limits ----------------------------------------------------------------------------------------------------------


def test_connections_of_one_and_of_all_are_limited() -> None:
    limits = ("--max-connections", "12", "--max-user-connections", "5")
    with serving(passwords={**USERS, "cleo": "c"}, options=limits) as server:
        held = [entered(server, "ana") for _ in range(5)]
        with pytest.raises(Refused) as one_too_many:
            entered(server, "ana")
        assert one_too_many.value.state == "53300" and '"ana"' in str(one_too_many.value)
        held += [entered(server, "bob") for _ in range(5)]
        held.pop().close()
        held.append(entered_soon(server, "bob"))
        held += [entered(server, "cleo") for _ in range(2)]
        with pytest.raises(Refused) as too_many:
            entered(server, "cleo")
        assert too_many.value.state == "53300" and "too many clients" in str(too_many.value)
        for one in held:
            assert one.states("SELECT 1") == []
            one.close()


def entered_soon(server: Server, user: str) -> Raw:
    """Once the server has seen that another has left."""
    for _ in range(100):
        try:
            return entered(server, user)
        except Refused:
            time.sleep(0.05)
    raise AssertionError("nobody has left")


def test_an_idle_connection_is_ended_with_an_error() -> None:
    with serving(options=("--idle-timeout", "1")) as server, entered(server) as one:
        assert one.states("SELECT 1") == []
        assert refusal(one.rest())["C"] == "57P05"


def test_a_client_that_sends_nothing_is_disconnected(server: Server) -> None:
    with raw(server, 20) as one:
        started = time.monotonic()
        assert one.rest() == b"" and 5 < time.monotonic() - started < 15


def test_a_flood_of_unknown_logins_leaves_capacity_for_others(server: Server) -> None:
    """From one address, half of the places; here a second one has the rest."""
    flood = []
    try:
        for _ in range(250):
            flood.append(socket.create_connection((server.host, server.port), 5))
        time.sleep(0.5)
        with socket.create_connection((server.host, server.port), 5, ("127.0.0.2", 0)) as other:
            other.sendall(client_codec.encode_startup({"user": "ana", "database": server.database}))
            assert other.recv(1) == b"R"
    finally:
        for one in flood:
            one.close()
    end = time.monotonic() + 15
    while time.monotonic() < end:
        try:
            is_well(server)
            return
        except psycopg.OperationalError:
            time.sleep(0.2)
    raise AssertionError("the flood has not gone")


def test_one_proxy_may_have_all_places_for_logins() -> None:
    limits = ("--max-pending", "12", "--max-address-pending", "12")
    with serving(options=limits) as server:
        waiting = [socket.create_connection((server.host, server.port), 5) for _ in range(11)]
        try:
            is_well(server)
            waiting.append(socket.create_connection((server.host, server.port), 5))
            time.sleep(0.2)
            with pytest.raises(psycopg.OperationalError, match="error response during SSL exchange"):
                is_well(server)
        finally:
            for one in waiting:
                one.close()


def test_statements_sent_before_the_input_ended_are_answered(server: Server) -> None:
    with entered(server) as one:
        one.send(encode_query("SELECT count(*) FROM generate_series(1, 3000000)") + encode_query("SELECT 2"))
        one.socket.shutdown(socket.SHUT_WR)
        for answer in (b"3000000", b"2"):
            replies = one.until_ready()
            assert [reply.values for reply in replies if isinstance(reply, DataRow)] == [(answer,)]
            assert not [reply for reply in replies if isinstance(reply, ErrorResponse)]
        # A parameter may be reported at any time; with this one the server tries whether a client still listens.
        assert set(one.remaining_replies()) <= {ParameterStatus("integer_datetimes", "on")}


def test_plain_connections_are_refused_where_tls_is_required() -> None:
    with serving(tls=True, options=("--require-tls",)) as server:
        with raw(server) as one, pytest.raises(Refused) as refused:
            one.begin("ana", server.database)
        assert refused.value.state == "28000" and "TLS" in str(refused.value)
        with psycopg.connect(server.dsn("ana", sslmode="verify-full")) as db:
            assert db.execute("SELECT 1").fetchone() == (1,)


def test_the_folder_of_a_socket(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("s")
    with serving(options=("--socket", str(folder))) as server:
        with psycopg.connect(f"host={folder} port={server.port} dbname=hospital user=ana",
                             password=server.passwords["ana"]) as db:  # fmt: skip
            assert db.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(f"host={folder} port={server.port} dbname=hospital user=ana", password="x")
        (printed,) = [one.split()[1] for one in server.told.splitlines() if "ana@%2F" in one]
        with psycopg.connect(printed, password=server.passwords["ana"]) as db:
            assert db.info.host == str(folder) and db.execute("SELECT 1").fetchone() == (1,)
    assert not os.listdir(folder)
