"""Statements, without a server: replies in, answers and errors out; and a socket whose other end the test holds."""

from __future__ import annotations

import datetime as dt
import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import pytest

import dpsql
from dpsql import errors
from dpsql.amounts import NO_CHARGE, CellError, Charge
from dpsql.errors import Span
from dpsql.interfaces.pgwire.protocol import backend, client_codec, extension
from dpsql.interfaces.pgwire.protocol.encode import make_encoder
from dpsql.interfaces.pgwire.protocol.frontend import Bind, FrontendDecoder, Parse
from dpsql.interfaces.pgwire.protocol.types import column_wire_type
from dpsql.interfaces.remote import connection
from dpsql.interfaces.remote.connection import ServerConnection
from dpsql.interfaces.remote.errors import read_error
from dpsql.interfaces.remote.login import LoginResult
from dpsql.interfaces.remote.session import RemoteSession
from dpsql.interfaces.remote.transport import OpenedSocket
from dpsql.interfaces.remote.url import ServerAddress
from dpsql.interfaces.remote.values import bind_parameters, make_row_reader
from dpsql.session.session import OutputColumn, Receipt, StatementHandle, StatementResult, to_literals
from dpsql.types import parse_type

CHARGE = Charge(Fraction(1, 3), Fraction(1, 10**7), Fraction(2, 7), Fraction(0), None)
ADDRESS = ServerAddress("h", 1, "clinic", "ana", "x")


# --- a server that the test plays ------------------------------------------------------------------------------------


class Stage:
    """The other end of a connection."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        here, self.there = socket.socketpair()
        login = LoginResult(extension.ServerInfo("1", "clinic", "ana"), 7, b"keys")
        monkeypatch.setattr(connection, "log_in_to_server", lambda *_: login)
        self.link = ServerConnection(ADDRESS, OpenedSocket(here))
        self.session = RemoteSession(self.link)
        self.heard: list[bytes] = []

    def plays(self, *said: bytes, hang_up: bool = False) -> None:
        """Hear one statement to its Sync, then say this."""

        def play() -> None:
            data = b""
            while not data.endswith(client_codec.SYNC):
                if not (more := self.there.recv(65536)):
                    return
                data += more
            self.heard.append(data)
            self.there.sendall(b"".join(said))
            if hang_up:
                self.there.close()

        threading.Thread(target=play, daemon=True).start()

    def messages(self) -> list[object]:
        protocol = FrontendDecoder()
        protocol.allow_long_messages()
        protocol.receive_data(self.heard[-1])
        return list(iter(protocol.next_message, None))


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    stage = Stage(monkeypatch)
    yield stage
    stage.link.close()
    stage.there.close()


READY = backend.ready_for_query("I")


def notice(detail: str) -> bytes:
    return backend.notice_response(
        {"S": "NOTICE", "C": extension.NOTICE_SQLSTATE, "M": extension.NOTICE_MESSAGE, "D": detail}
    )


COLUMNS = (
    OutputColumn("n", parse_type("bigint"), "BIGINT"),
    OutputColumn("h", None, "MAP(VARCHAR, UBIGINT)"),
    OutputColumn("big", parse_type("hugeint"), "HUGEINT"),
)
ANSWER = StatementResult(
    COLUMNS,
    [(i, {"a": i}, 2**100 + i) for i in range(1201)],
    [(CellError(0.1 + i, -1.0, float("inf"), 0.3 * i if i % 3 else None), None, None) for i in range(1201)],
    notices=("☃ is cold",),
    receipts=(Receipt("ana", 3, "f" * 64),),
)


def sent(answer: StatementResult, charge: Charge = CHARGE) -> list[bytes]:
    encoders = [make_encoder(column_wire_type(column)[0], 0) for column in answer.columns]
    rows = [
        backend.data_row([encode(value) for encode, value in zip(encoders, row, strict=True)]) for row in answer.rows
    ]
    told = [notice(text) for text in extension.encode_answer_notices(answer, charge, "60 %")]
    return [*rows, *told, backend.command_complete(f"{answer.command} {len(rows)}")]


def test_an_answer_comes_back_as_it_was(stage: Stage) -> None:
    """Its error bars and its lists in several notices, exactly; and what was charged, to the last bit."""
    assert len(list(extension.encode_answer_notices(ANSWER, CHARGE, None))) > 5
    stage.plays(*sent(ANSWER), READY)
    answer = stage.session.execute("SELECT 1")
    assert answer == ANSWER
    assert stage.session.charged == CHARGE and stage.session.left_text() == "60 %"


def test_byte_by_byte(stage: Stage) -> None:
    short = replace(ANSWER, rows=ANSWER.rows[:3], errors=ANSWER.errors[:3])
    told = b"".join([*sent(short), READY])

    def play() -> None:
        stage.there.recv(65536)
        for at in range(len(told)):
            stage.there.sendall(told[at : at + 1])

    threading.Thread(target=play, daemon=True).start()
    assert stage.session.execute("SELECT 1") == short


def test_what_is_sent(stage: Stage) -> None:
    """Values as values, never in the SQL; what holds for this statement alone, in the names."""
    stage.plays(*sent(ANSWER), READY)
    given = ("'; DROP TABLE x --", 7, 2**70, 1.5, 1e-07, Decimal("2.50"), None, True, dt.date(2020, 1, 2))
    stage.session.execute("SELECT ?", given, settings={"epsilon": "0.1"}, handle=StatementHandle(free=True))
    parse = next(one for one in stage.messages() if isinstance(one, Parse))
    bind = next(one for one in stage.messages() if isinstance(one, Bind))
    assert parse.sql == "SELECT ?" and parse.types == (0, 20, 1700, 1700, 701, 1700, 0, 16, 0)
    assert bind.values == (b"'; DROP TABLE x --", b"7", b"1180591620717411303424", b"1.5", b"1e-07", b"2.50", None,
                           b"t", b"2020-01-02")  # fmt: skip
    for name in (parse.name, bind.portal, bind.statement):
        assert extension.decode_statement_name(name) == extension.StatementOptions((("epsilon", "0.1"),), free=True)


def test_an_error_and_then_another_statement(stage: Stage) -> None:
    error = errors.NotPrivate("this would return single private rows", detail="One row.", span=Span(7, 8))
    fields = {"S": "ERROR", "C": "0A000", "M": error.message, "D": "One row. It was charged.", "P": "8", "H": "Sum."}
    stage.plays(notice(extension.encode_error_notice(error, CHARGE)), backend.error_response(fields), READY)
    with pytest.raises(errors.NotPrivate) as caught:
        stage.session.execute("SELECT * FROM visits")
    found = caught.value
    assert (found.detail, found.hint, found.span, found.charge) == ("One row.", "Sum.", Span(7, 8), CHARGE)
    assert found.statement == "SELECT * FROM visits" and stage.session.charged == CHARGE
    stage.plays(*sent(ANSWER, NO_CHARGE), READY)
    assert stage.session.execute("SELECT 1").rows == ANSWER.rows and stage.session.charged == NO_CHARGE


def test_what_is_wrong_here_is_not_sent_and_was_not_charged(stage: Stage) -> None:
    stage.plays(*sent(ANSWER), READY)
    stage.session.execute("SELECT 1")
    with pytest.raises(dpsql.ProgrammingError):
        stage.session.execute("SELECT ?", [float("nan")])
    assert stage.session.charged == NO_CHARGE and not stage.session.lost


# --- connections that end --------------------------------------------------------------------------------------------


def test_a_lost_connection_is_reported_and_nothing_is_sent_again(stage: Stage) -> None:
    stage.plays(hang_up=True)
    with pytest.raises(dpsql.OperationalError, match="lost") as caught:
        stage.session.execute("SELECT COUNT(*) FROM visits")
    assert caught.value.sqlstate == "08006" and "may have been charged" in (caught.value.detail or "")
    assert "not charged twice" in (caught.value.hint or "") and stage.session.lost
    assert len(stage.heard) == 1
    with pytest.raises(dpsql.OperationalError, match="lost") as caught:
        stage.session.execute("SELECT COUNT(*) FROM visits")
    assert caught.value.detail is None


def test_what_a_server_says_before_it_hangs_up(stage: Stage) -> None:
    fields = {"S": "FATAL", "C": "57P01", "M": "terminating connection due to administrator command"}
    stage.plays(backend.error_response(fields), hang_up=True)
    with pytest.raises(dpsql.OperationalError, match="administrator") as caught:
        stage.session.execute("SELECT 1")
    assert caught.value.sqlstate == "57P01" and stage.session.lost


HUGE = json.dumps({"columns": [], "command": "SELECT", "left": None, "notices": [], "receipts": [], "rows": 10**5})


@pytest.mark.parametrize(
    "said",
    [
        b"!\0\0\0\4", b"T\xff\xff\xff\xff", b"D\0\0\0\6\0\1", notice("no JSON"), notice('{"bars": [1], "column": 0}'),
        notice('{"progress": [1]}'), notice(HUGE) + backend.command_complete("SELECT 1"), notice("[" * 100_000),
        backend.AUTHENTICATION_OK, notice('{"charge": {"epsilon": "many"}}'),
        b"N" + (100 << 20).to_bytes(4, "big"), b"D" + (2**31 - 1).to_bytes(4, "big"),  # nobody waits for so much
    ],
)  # fmt: skip
def test_a_server_that_makes_no_sense_is_left(stage: Stage, said: bytes) -> None:
    stage.plays(said, READY)
    with pytest.raises(dpsql.OperationalError, match="lost"):
        stage.session.execute("SELECT 1")
    assert stage.session.lost


def test_what_a_server_says_of_rows_takes_no_memory() -> None:
    """A notice of some kilobytes: rows and columns are counted in memory only when they have come."""
    columns = [["c", None, "T"]] * 2_000
    told = extension.StatementMetadata()
    tracemalloc.start()
    try:
        told.add_notice(json.dumps({**json.loads(HUGE), "columns": columns, "rows": 10**5}))
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    for place, column in ((10**5, 0), (-1, 0), (0, 2_000), (0, -1)):
        for kind in ("bars", "values"):
            with pytest.raises(ValueError):
                told.add_notice(json.dumps({kind: [["1", "1", "1"]], "from": place, "column": column}))
    assert (told.bars, told.values) == ({}, {})


def test_a_server_that_announces_more_rows_than_it_sends_is_left(stage: Stage) -> None:
    stage.plays(*sent(ANSWER)[1:], READY)
    with pytest.raises(dpsql.OperationalError, match="lost"):
        stage.session.execute("SELECT 1")


def test_a_login_that_drips_ends_in_time() -> None:
    """The time is that of the whole login, not between two messages."""
    here, there = socket.socketpair()
    here.settimeout(0.5)
    gone = threading.Event()

    def drip() -> None:
        with suppress(OSError):
            while not gone.wait(0.05):
                there.sendall(backend.parameter_status("a", "b"))

    dripping = threading.Thread(target=drip, daemon=True)
    dripping.start()
    began = time.monotonic()
    try:
        with pytest.raises(dpsql.OperationalError, match="does not answer"):
            ServerConnection(replace(ADDRESS, timeout=0.5), OpenedSocket(here))
        assert time.monotonic() - began < 10
    finally:
        gone.set()
        dripping.join(10)
        here.close()
        there.close()


def test_rows_of_another_width_are_no_answer(stage: Stage) -> None:
    one = replace(ANSWER, rows=ANSWER.rows[:1], errors=ANSWER.errors[:1])
    stage.plays(backend.data_row([b"1"]), *sent(one)[1:], READY)
    with pytest.raises(dpsql.OperationalError, match="another form"):
        stage.session.execute("SELECT 1")


def test_a_closed_connection(stage: Stage) -> None:
    stage.session.close()
    stage.session.close()
    with pytest.raises(dpsql.OperationalError):
        stage.session.execute("SELECT 1")
    assert stage.there.recv(100) == client_codec.TERMINATE


# --- cancel ----------------------------------------------------------------------------------------------------------


def test_a_cancel_is_for_the_statement_under_way_alone(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    canceled: list[str] = []
    monkeypatch.setattr(ServerConnection, "cancel", lambda self: canceled.append("sent"))
    stage.session.cancel()
    assert canceled == []
    done, handle = StatementHandle(), StatementHandle()
    stage.plays(*sent(ANSWER), READY)
    stage.session.execute("SELECT 1", handle=done)
    stage.session.cancel(done)
    assert canceled == []  # it has ended: the server would cancel the next one
    handle.canceled = True
    stage.plays(*sent(ANSWER), READY)
    with pytest.raises(errors.QueryCanceled):
        stage.session.execute("SELECT 1", handle=handle)
    assert len(stage.heard) == 1  # it was not sent
    stage.session.execute("SELECT 1")


def test_progress(stage: Stage) -> None:
    seen: list[tuple[int, int]] = []

    def play() -> None:
        stage.there.recv(65536)
        stage.there.sendall(notice(extension.encode_progress_notice(1, 3)))
        while stage.session.progress == (0, 0):
            pass
        seen.append(stage.session.progress)
        stage.there.sendall(b"".join([*sent(ANSWER), READY]))

    playing = threading.Thread(target=play, daemon=True)
    playing.start()
    stage.session.execute("SELECT 1")
    playing.join(10)
    assert seen == [(1, 3)]


# --- values and errors -----------------------------------------------------------------------------------------------

VALUES = [
    ("boolean", True), ("smallint", -3), ("integer", 7), ("bigint", 2**62), ("hugeint", -(2**120)),
    ("decimal(9,2)", Decimal("1.50")), ("real", 0.10000000149011612), ("double", 0.1), ("double", float("-inf")),
    ("text", "a\n☃"), ("date", dt.date(2020, 2, 29)), ("time", dt.time(1, 2, 3, 4)),
    ("timestamp", dt.datetime(2020, 1, 2, 3, 4, 5, 6)), ("timestamptz", dt.datetime(2020, 1, 2, tzinfo=dt.UTC)),
    ("interval", dt.timedelta(days=-3, hours=5, microseconds=1)), ("uuid", UUID(int=5)), ("text", None),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "value"), VALUES)
def test_a_cell_comes_back_with_its_type(type_: str, value: object) -> None:
    column = OutputColumn("x", parse_type(type_), type_)
    cell = None if value is None else make_encoder(column_wire_type(column)[0], 0)(value)
    (back,) = make_row_reader([column])((cell,))
    assert repr(back) == repr(value)


@pytest.mark.parametrize("value", [5, -(2**80), 1.5, -0.0, 1e300, 5e-324, Decimal("1E+3"), Decimal("0.000"), "x", True])
def test_a_parameter_is_the_same_literal_on_the_server(value: object) -> None:
    from dpsql.interfaces.pgwire.protocol.decode import decode_parameter as parameter
    from dpsql.interfaces.pgwire.protocol.types import TEXT_TYPE
    from dpsql.interfaces.pgwire.protocol.types import parameter_wire_type as parameter_type

    ((oid, data),) = bind_parameters([value])
    there = parameter(data, parameter_type(oid) or TEXT_TYPE, 0)
    assert to_literals([there]) == to_literals([value])


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("53400", errors.BudgetExceeded), ("57014", errors.QueryCanceled), ("42P01", errors.UnknownTable),
        ("28P01", errors.AccessDenied), ("0A000", errors.NotSupportedError), ("XX000", errors.InternalError),
        ("58000", errors.OperationalError), ("22P02", errors.DataError), ("99999", errors.DatabaseError),
        ("25P02", errors.ProgrammingError), ("3D000", errors.AccessDenied), ("", errors.DatabaseError),
    ],
)  # fmt: skip
def test_an_error_by_its_sqlstate(state: str, kind: type[errors.Error]) -> None:
    error = read_error({"C": state, "M": "no", "P": "3"})
    assert type(error) is kind and error.span == Span(2, 3)


def test_an_error_in_what_the_client_put_in_front_points_nowhere() -> None:
    assert read_error({"C": "42601", "M": "no", "P": "3"}, before=8).span is None
    assert read_error({"C": "42601", "M": "no", "P": "11"}, before=8).span == Span(2, 3)
    assert read_error({"C": "42601", "M": "no", "P": "x"}).span is None


def test_an_error_in_another_text() -> None:
    error = read_error({"C": "42601", "M": "no", "p": "8", "q": "SELECT nope"})
    assert error.statement == "SELECT nope" and error.span == Span(7, 8)


def test_the_name_of_a_class_that_is_none_counts_nothing() -> None:
    for name in ("Warning", "Span", "Exception", "nosuch"):
        assert type(read_error({"C": "53400"}, extension.StatementMetadata(error=name))) is errors.BudgetExceeded
