"""The laws of a conversation, over a session that does as it is told: what runs, what is told, what is held."""

import threading
from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.amounts import NO_CHARGE, CellError, Charge
from dpsql.base.time_zones import UTC, TimeZone
from dpsql.errors import BudgetExceeded, ProgrammingError, QueryCanceled
from dpsql.interfaces.pgwire.backend_session import portals, results
from dpsql.interfaces.pgwire.backend_session.protocol_session import ProtocolSession
from dpsql.interfaces.pgwire.protocol import client_codec, extension
from dpsql.interfaces.pgwire.protocol.framing import ProtocolViolation
from dpsql.interfaces.pgwire.protocol.frontend import (
    Bind,
    Close,
    CopyData,
    CopyDone,
    CopyFail,
    Describe,
    Execute,
    Flush,
    FunctionCall,
    MalformedMessage,
    Parse,
    Password,
    SimpleQuery,
    Sync,
    Terminate,
)
from dpsql.session.session import OutputColumn, PreparedStatement, Receipt, StatementResult
from dpsql.types import BIGINT, DOUBLE, TEXT
from tests.support.wire_messages import read_all, say

CHARGE = Charge(Fraction(1), Fraction(1, 10**7), Fraction(1, 50), Fraction(0), None)
N = OutputColumn("n", BIGINT, "BIGINT")
PAID = Receipt("ana", 1, "ab" * 32)


def rows(*values: int, **others: object) -> StatementResult:
    return StatementResult((N,), [(one,) for one in values], [(None,) for _ in values], **others)


@dataclass
class Fake:
    """Answers `answers[sql]`, or raises it; notes what was asked."""

    answers: dict = field(default_factory=dict)
    user: str = "ana"
    database: str = "shop"
    charged: Charge = NO_CHARGE
    in_transaction: bool = False
    time_zone: TimeZone = UTC
    settings: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)
    prepared: list = field(default_factory=list)
    canceled: list = field(default_factory=list)
    given: list = field(default_factory=list)
    described: dict = field(default_factory=dict)

    @property
    def variables(self):
        return tuple(({"client_min_messages": "notice", "application_name": ""} | self.settings).items())

    def execute(self, sql, parameters=(), *, settings=None, handle=None):
        self.asked.append(sql)
        self.given.append((tuple(parameters), settings, handle))
        word = sql.split()[0].upper() if sql else ""
        if word in ("BEGIN", "COMMIT", "ROLLBACK"):
            self.in_transaction = word == "BEGIN"
            return StatementResult((), [], [], command=word)
        found = self.answers.get(sql, rows(1))
        found = found() if callable(found) else found
        if isinstance(found, BaseException):
            raise found
        return found

    def prepare(self, sql, types=(), *, settings=None):
        self.prepared.append(sql)
        command = sql.split()[0].upper()
        if command == "FETCH":
            raise ProgrammingError("there is no such cursor", sqlstate="34000")
        if command in ("BEGIN", "COMMIT", "ROLLBACK", "SET"):
            return PreparedStatement((), (), command)
        found = self.answers.get(sql)
        columns = found.columns if isinstance(found, StatementResult) else (N,)
        return PreparedStatement(tuple(one or TEXT for one in types) or (TEXT,) * sql.count("$"), columns)

    def describe(self, sql, parameters=(), *, settings=None):
        found = self.answers.get(sql)
        return self.described.get(sql) or (found.columns if isinstance(found, StatementResult) else (N,))

    def cancel(self, handle=None):
        self.canceled.append(handle)
        handle.canceled = True

    def left_text(self):
        return "ana's budget: all of it"


@pytest.fixture
def session():
    return Fake()


@pytest.fixture
def conversation(session):
    return ProtocolSession(session)


def kinds(replies):
    return [reply.name if isinstance(reply, client_codec.SimpleReply) else type(reply).__name__ for reply in replies]


def error_of(replies):
    [error] = [reply.fields for reply in replies if isinstance(reply, client_codec.ErrorResponse)]
    return error


def notices_of(replies):
    return [reply.fields for reply in replies if isinstance(reply, client_codec.NoticeResponse)]


# --- what runs -------------------------------------------------------------------------------------------------------


def test_parsing_binding_and_describing_run_nothing(session, conversation):
    asked = [Parse("s", "SELECT $1"), Describe("S", "s"), Bind("p", "s", (), (b"x",)), Describe("P", "p"), Flush(),
             Close("P", "p"), Close("S", "s"), Sync()]  # fmt: skip
    assert "DataRow" not in kinds(say(conversation, *asked))
    assert session.asked == [] and session.prepared == ["SELECT $1"]


def test_a_portal_runs_once_however_often_it_is_executed(session, conversation):
    session.answers["SELECT 1"] = rows(1, 2, 3)
    replies = say(conversation, Parse("", "SELECT 1"), Bind("", ""), *[Execute("", 1)] * 5, Execute(""), Sync())
    assert session.asked == ["SELECT 1"]
    assert kinds(replies).count("DataRow") == 3


def test_values_go_beside_the_statement_not_into_it(session, conversation):
    say(conversation, Parse("", "SELECT $1, $2", (23, 0)), Bind("", "", (0,), (b"5", b"'; --")), Execute(""), Sync())
    assert session.asked == ["SELECT $1, $2"] and session.given[0][0] == (5, "'; --")


def test_more_types_than_parameters_take_values_that_are_not_read(session, conversation):
    session.prepare = lambda sql, types=(), **_: PreparedStatement((TEXT,), (N,))
    replies = say(conversation, Parse("", "SELECT $1", (25, 23)), Describe("S", ""),
                  Bind("", "", (), (b"a", b"1")), Execute(""), Sync())  # fmt: skip
    assert client_codec.ParameterDescription((25, 23)) in replies and session.given[0][0] == ("a",)


def test_what_is_answered_is_read_as_it_was_described(session, conversation):
    """Values may decide a type; the client has been told another."""
    described = PreparedStatement((), (OutputColumn("x", TEXT, "VARCHAR"), N))
    session.prepare = lambda sql, types=(), **_: described
    columns = (OutputColumn("x", DOUBLE, "DOUBLE"), OutputColumn("n", DOUBLE, "DOUBLE"))
    session.answers["SELECT 1"] = StatementResult(columns, [(0.5, 3.0)], [(None, None)])
    replies = say(conversation, Parse("", "SELECT 1"), Bind("", "", (), (), (0, 1)), Execute(""), Sync())
    assert client_codec.DataRow((b"0.5", b"\0\0\0\0\0\0\0\3")) in replies
    session.answers["SELECT 1"] = StatementResult(columns, [(0.5, 3.5)], [(None, None)])
    assert error_of(say(conversation, Bind("", ""), Execute(""), Sync()))["C"] == "22003"


def test_another_number_of_columns_than_described_is_an_error(session, conversation):
    session.prepare = lambda sql, types=(), **_: PreparedStatement((), (N, N))
    assert error_of(say(conversation, Parse("", "SELECT 1"), Bind("", ""), Execute(""), Sync()))["C"] == "0A000"


# --- what is told ----------------------------------------------------------------------------------------------------


def test_of_an_exception_of_others_nothing_is_reported(session):
    logged = []
    conversation = ProtocolSession(session, log=logged.append)
    secret = KeyError("patient 17 has 3 visits")
    session.answers["SELECT 1"], session.charged = secret, CHARGE
    for asked in ([SimpleQuery("SELECT 1")], [Parse("", "SELECT 1"), Bind("", ""), Execute(""), Sync()]):
        data = b"".join(part for message in asked for part in conversation.handle_message(message))
        fields = error_of(read_all(data))
        assert (fields["C"], fields["M"]) == ("XX000", "internal error")
        assert b"17" not in data and b"KeyError" not in data and "charged" in fields["D"]
    assert logged == [secret, secret]


def test_what_was_charged_is_reported_where_it_fails_after_that(session, conversation):
    failed = QueryCanceled("canceling statement due to user request", detail="It goes on.")
    failed.charge = CHARGE
    session.answers["SELECT 1"] = failed
    told = error_of(say(conversation, SimpleQuery("SELECT 1")))["D"]
    assert told == f"It goes on. The statement was charged: {CHARGE}. What is paid for is not charged again."
    session.answers["SELECT 1"] = BudgetExceeded("no")
    assert "D" not in error_of(say(conversation, SimpleQuery("SELECT 1")))


def test_what_was_charged_and_is_left_is_a_notice(session, conversation):
    session.answers["SELECT 1"], session.charged = rows(1, notices=("wide",), receipts=(PAID,)), CHARGE
    for asked in ([SimpleQuery("SELECT 1")], [Parse("", "SELECT 1"), Bind("", ""), Execute(""), Sync()]):
        found = notices_of(say(conversation, *asked))
        assert [(one["S"], one["C"], one["M"]) for one in found] == [
            ("NOTICE", "00000", "wide"),
            ("NOTICE", "00000", f"charged: {CHARGE}; left of ana's budget: all of it"),
        ]
    session.settings["client_min_messages"] = "warning"
    assert notices_of(say(conversation, SimpleQuery("SELECT 1"))) == []


@pytest.mark.parametrize(
    ("level", "seen"),
    [("debug1", ["made up", "wide"]), ("notice", ["made up", "wide"]), ("WARNING", ["made up"]), ("error", [])],
)
def test_rows_that_are_made_up_are_a_warning(session, conversation, level, seen):
    """Who switches off what is told of charges is told all the same that rows are none of the data's."""
    session.answers["SELECT 1"] = rows(1, notices=("wide", "made up"), warnings=("made up",))
    session.settings["client_min_messages"] = level
    found = notices_of(say(conversation, SimpleQuery("SELECT 1")))
    assert [one["M"] for one in found] == seen
    assert [(one["S"], one["V"], one["C"]) for one in found[:1]] == [("WARNING", "WARNING", "01000")][: len(seen)]


def test_no_budget_is_reported_where_no_private_row_was_read(session, conversation):
    assert notices_of(say(conversation, SimpleQuery("SELECT 1"))) == []


def test_our_own_client_gets_figures(session):
    conversation = ProtocolSession(session, structured=True)
    [server] = [
        one for one in read_all(conversation.make_greeting()) if getattr(one, "name", "") == extension.SERVER_STATUS
    ]
    assert extension.decode_server_info(server.value).user == "ana"
    bars = [(CellError(1.0, -1.0, 3.0),), (None,)]
    session.answers["SELECT 1"] = StatementResult((N,), [(1,), (2,)], bars, notices=("wide",), receipts=(PAID,))
    session.charged = CHARGE
    replies = say(conversation, SimpleQuery("SELECT 1"))
    told = extension.StatementMetadata()
    for one in notices_of(replies):
        assert (one["C"], one["M"]) == (extension.NOTICE_SQLSTATE, extension.NOTICE_MESSAGE)
        told.add_notice(one["D"])
    assert (told.charge, told.left, told.notices) == (CHARGE, "ana's budget: all of it", ("wide",))
    assert told.bars == {(0, 0): bars[0][0]} and told.receipts[0][0] == "ana"
    assert kinds(replies).index("NoticeResponse") > kinds(replies).index("DataRow")


def test_our_own_client_says_what_holds_for_one_statement(session):
    conversation = ProtocolSession(session, structured=True)
    name = extension.encode_statement_name(extension.StatementOptions((("epsilon", "0.1"),), free=True))
    for _ in range(2):
        say(conversation, Parse(name, "SELECT 1"), Bind(name, name), Execute(name), Sync())
    [(_, asked, handle), _] = session.given
    assert asked == {"epsilon": "0.1"} and handle.free
    ordinary = ProtocolSession(session)
    say(ordinary, Parse(name, "SELECT 1"), Bind(name, name), Execute(name), Sync())
    assert session.given[-1][1] is None and not session.given[-1][2].free


def test_settings_are_reported_when_they_change(session, conversation):
    assert client_codec.ParameterStatus("application_name", "") in read_all(conversation.make_greeting())

    def set_it():
        session.settings["application_name"] = "y"
        return StatementResult((), [], [], command="SET")

    session.answers["SET x"] = set_it
    replies = say(conversation, SimpleQuery("SET x"))
    assert replies[-2:] == [client_codec.ParameterStatus("application_name", "y"), client_codec.ReadyForQuery("I")]
    assert "ParameterStatus" not in kinds(say(conversation, SimpleQuery("SELECT 1")))


# --- transactions ----------------------------------------------------------------------------------------------------


def test_in_a_failed_transaction_nothing_runs_but_its_end(session, conversation):
    session.answers["SELECT 2"] = BudgetExceeded("no")
    replies = say(
        conversation, SimpleQuery("BEGIN"), SimpleQuery("SELECT 2"), SimpleQuery("SELECT 1"), SimpleQuery("COMMIT")
    )
    assert session.asked == ["BEGIN", "SELECT 2", "ROLLBACK"]
    assert [one.status for one in replies if isinstance(one, client_codec.ReadyForQuery)] == ["T", "E", "E", "I"]
    assert replies[-2] == client_codec.CommandComplete("ROLLBACK")


def test_statements_together_end_or_fail_together(session, conversation):
    session.answers["SELECT 2"] = BudgetExceeded("no")
    say(conversation, SimpleQuery("SELECT 1; SELECT 3"))
    assert session.asked == ["BEGIN", "SELECT 1", "SELECT 3", "COMMIT"]
    session.asked.clear()
    replies = say(conversation, SimpleQuery("SELECT 1; SELECT 2; SELECT 3"))
    assert session.asked == ["BEGIN", "SELECT 1", "SELECT 2", "ROLLBACK"] and replies[-1].status == "I"


def test_the_charge_of_statements_together_is_reported_for_each(session, conversation):
    charges = {"SELECT 1": CHARGE, "SELECT 2": NO_CHARGE}

    def answered(sql):
        session.charged = charges[sql]
        return rows(1, receipts=(PAID,))

    session.answers |= {sql: (lambda sql=sql: answered(sql)) for sql in charges}
    told = [one["M"] for one in notices_of(say(conversation, SimpleQuery("SELECT 1; SELECT 2")))]
    assert [one.split(";")[0] for one in told] == [f"charged: {CHARGE}", "charged: nothing"]


# --- cancel ----------------------------------------------------------------------------------------------------------


def test_a_cancel_reaches_the_statement_that_waits(session, conversation):
    begun, end = threading.Event(), threading.Event()

    def waits():
        begun.set()
        assert end.wait(10)
        handle = session.given[-1][2]
        return QueryCanceled("canceling statement due to user request") if handle.canceled else rows(1)

    session.answers["SELECT 1"] = waits
    found = []
    thread = threading.Thread(target=lambda: found.extend(say(conversation, SimpleQuery("SELECT 1"))))
    thread.start()
    assert begun.wait(10)
    conversation.cancel()
    end.set()
    thread.join(10)
    assert error_of(found)["C"] == "57014" and session.canceled == [session.given[0][2]]


def test_a_cancel_between_statements_cancels_nothing(session, conversation):
    conversation.cancel()
    say(conversation, SimpleQuery("SELECT 1"))
    conversation.cancel()
    assert session.canceled == [] and "ErrorResponse" not in kinds(say(conversation, SimpleQuery("SELECT 1")))


def test_a_cancel_ends_an_answer_that_is_being_sent(session, conversation):
    session.answers["SELECT 1"] = rows(*range(50_000))
    parts = conversation.handle_message(SimpleQuery("SELECT 1"))
    first = next(parts)
    conversation.cancel()
    rest = b"".join(parts)
    replies = read_all(first + rest)
    assert error_of(replies)["C"] == "57014" and isinstance(replies[-1], client_codec.ReadyForQuery)
    assert kinds(replies).count("DataRow") < 10_000


# --- what is held ----------------------------------------------------------------------------------------------------


class Counted(list):
    """Rows that note how many were looked at."""

    seen = 0

    def __iter__(self):
        for one in super().__iter__():
            self.seen += 1
            yield one

    def __getitem__(self, at):
        self.seen += 1
        return super().__getitem__(at)


@pytest.mark.parametrize("extended", [False, True])
def test_an_answer_is_made_as_it_is_read(session, conversation, extended):
    many = Counted([(number,) for number in range(50_000)])
    session.answers["SELECT 1"] = StatementResult((N,), many, [])
    message = SimpleQuery("SELECT 1")
    if extended:
        say(conversation, Parse("", "SELECT 1"), Bind("", ""))
        message = Execute("")
    parts = conversation.handle_message(message)
    first = next(parts)
    assert results.CHUNK_BYTES <= len(first) < results.CHUNK_BYTES + 100 and many.seen < 6_000
    assert all(len(part) < results.CHUNK_BYTES + 100 for part in parts) and many.seen == 50_000


def test_statements_and_portals_are_counted(session, conversation, monkeypatch):
    monkeypatch.setattr(portals, "MAX_STATEMENTS", 3)
    monkeypatch.setattr(portals, "MAX_PORTALS", 2)
    parsed = [Parse(f"s{at}", "SELECT 1") for at in range(4)]
    assert error_of(say(conversation, *parsed, Sync()))["C"] == "54000"
    bound = [Bind(f"p{at}", "s0") for at in range(3)]
    assert error_of(say(conversation, *bound, Sync()))["C"] == "54000"
    assert "ErrorResponse" not in kinds(say(conversation, Close("S", "s1"), Parse("s9", "SELECT 1"), Sync()))


def test_statements_and_portals_have_a_size_limit(session, conversation, monkeypatch):
    monkeypatch.setattr(portals, "MAX_STORED_BYTES", 10_000)
    parsed = [Parse(f"s{at}", "SELECT $1") for at in range(2)]
    say(conversation, *parsed, Sync())
    assert error_of(say(conversation, Parse("t", "SELECT " + "1" * 9_000), Sync()))["C"] == "53200"
    assert error_of(say(conversation, Bind("", "s0", (), (b"x" * 9_900,)), Sync()))["C"] == "53200"


def test_rows_of_open_portals_are_counted(session, conversation, monkeypatch):
    monkeypatch.setattr(portals, "MAX_OPEN_ROWS", 10)
    session.answers["SELECT 1"] = rows(*range(6))
    asked = [Parse("s", "SELECT 1"), Bind("a", "s"), Execute("a", 1), Bind("b", "s"), Execute("b", 1), Sync()]
    assert error_of(say(conversation, *asked))["C"] == "53200"
    read = [Bind("a", "s"), Execute("a", 0), Bind("b", "s"), Execute("b", 1), Sync()]
    assert "ErrorResponse" not in kinds(say(conversation, *read))


# --- messages in any order -------------------------------------------------------------------------------------------


def test_a_function_is_not_called_by_number(session, conversation):
    replies = say(conversation, FunctionCall())
    assert (
        error_of(replies)["C"] == "0A000"
        and isinstance(replies[-1], client_codec.ReadyForQuery)
        and session.asked == []
    )


def test_a_password_after_the_login_breaks_the_protocol(conversation):
    with pytest.raises(ProtocolViolation):
        list(conversation.handle_message(Password(b"x")))


# --- what cannot be read ---------------------------------------------------------------------------------------------


def ends(replies):
    return [kind for kind in kinds(replies) if kind != "ParameterStatus"]


def raw(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def test_a_query_that_is_not_utf8_is_an_error_and_the_session_goes_on(session, conversation):
    replies = say(conversation, SimpleQuery(raw(b"SELECT '\xff'")))
    assert error_of(replies)["C"] == "22021" and "0xff" in error_of(replies)["M"]
    assert isinstance(replies[-1], client_codec.ReadyForQuery) and session.asked == []
    assert "DataRow" in kinds(say(conversation, SimpleQuery("SELECT 1")))


def test_a_parsed_text_that_is_not_utf8_is_skipped_to_the_end_of_its_batch(session, conversation):
    replies = say(conversation, Parse("", raw(b"SELECT '\xff'")), Bind("", ""), Execute(""), Sync())
    assert ends(replies) == ["ErrorResponse", "ReadyForQuery"] and error_of(replies)["C"] == "22021"
    assert session.prepared == session.asked == []


@pytest.mark.parametrize("kind", ["P", "B", "D", "E", "C"])
def test_a_malformed_extended_message_is_skipped_to_the_end_of_its_batch(session, conversation, kind):
    replies = say(conversation, MalformedMessage(kind, "insufficient data left in message"), Execute(""), Sync())
    assert ends(replies) == ["ErrorResponse", "ReadyForQuery"] and error_of(replies)["C"] == "08P01"
    assert session.asked == []


@pytest.mark.parametrize("kind", ["Q", "S", "F"])
def test_after_any_other_malformed_message_the_next_is_answered(session, conversation, kind):
    broken = MalformedMessage(kind, "invalid message format")
    assert ends(say(conversation, broken)) == ["ErrorResponse", "ReadyForQuery"]
    assert "DataRow" in kinds(say(conversation, SimpleQuery("SELECT 1")))


def test_a_malformed_sync_ends_the_skipping_as_a_whole_one_does(session, conversation):
    session.answers["SELECT 1"] = ProgrammingError("no")
    say(conversation, Parse("", "SELECT 1"), Bind("", ""), Execute(""))
    assert ends(say(conversation, MalformedMessage("S", "x"))) == ["ErrorResponse", "ReadyForQuery"]
    assert "DataRow" in kinds(say(conversation, SimpleQuery("SELECT 2")))


@pytest.mark.parametrize("kind", ["c", "d", "f"])
def test_what_a_failed_copy_still_sends_is_no_matter_however_it_is_written(conversation, kind):
    assert say(conversation, MalformedMessage(kind, "x")) == []


# --- other encodings -------------------------------------------------------------------------------------------------

WORD = OutputColumn("größe", TEXT, "VARCHAR")


def words(*values: str) -> StatementResult:
    return StatementResult((WORD,), [(value,) for value in values], [(None,) for _ in values], notices=("für ana €",))


def sent_bytes(conversation, *messages) -> bytes:
    return b"".join(data for message in messages for data in conversation.handle_message(message))


@pytest.mark.parametrize(
    ("encoding", "codec"), [("LATIN1", "latin-1"), ("WIN1252", "cp1252"), ("SJIS", "cp932"), ("SQL_ASCII", "utf-8")]
)
def test_text_goes_in_and_out_in_the_client_s_encoding(session, encoding, codec):
    session.settings["client_encoding"] = encoding
    text = "ソ表" if encoding == "SJIS" else "zoë"
    session.answers[f"SELECT '{text}'"] = words(text)
    conversation = ProtocolSession(session)
    simple = sent_bytes(conversation, SimpleQuery(raw(f"SELECT '{text}'".encode(codec))))
    assert session.asked == [f"SELECT '{text}'"]
    row = text.encode(codec)
    assert len(row).to_bytes(4, "big") + row in simple
    assert "größe".encode(codec, "replace") in simple and "für ana €".encode(codec, "replace") in simple
    parsed = Parse(raw(row), raw(f"SELECT '{text}'".encode(codec)))
    bound = [Bind(raw(row), raw(row)), Execute(raw(row)), Sync()]
    assert len(row).to_bytes(4, "big") + row in sent_bytes(conversation, parsed, *bound)


@pytest.mark.parametrize("format_", [0, 1])
def test_values_of_parameters_are_in_the_client_s_encoding(session, format_):
    session.settings["client_encoding"] = "WIN1252"
    conversation = ProtocolSession(session)
    say(conversation, Parse("", "SELECT $1"), Bind("", "", (format_,), (b"10 \x80",)), Execute(""), Sync())
    assert session.given[0][0] == ("10 €",)


def test_a_character_that_the_encoding_lacks_is_an_error_in_rows(session):
    session.settings["client_encoding"] = "LATIN1"
    session.answers["SELECT 1"] = words("10 €")
    for sql in ("SELECT 1", "COPY (SELECT 1) TO STDOUT"):
        sent = sent_bytes(ProtocolSession(session), SimpleQuery(sql))
        assert b"C22P05" in sent and b"SET client_encoding" in sent and b"DataRow" not in sent


def test_the_encoding_changes_between_two_statements_of_one_query(session):
    def change():
        session.settings["client_encoding"] = "LATIN1"
        return StatementResult((), [], [], command="SET")

    session.answers |= {"SET client_encoding = latin1": change, "SELECT 2": words("é")}
    conversation = ProtocolSession(session)
    sent = sent_bytes(conversation, SimpleQuery("SELECT 2; SET client_encoding = latin1; SELECT 2"))
    assert sent.count(b"\0\0\0\2\xc3\xa9") == 1 and sent.count(b"\0\0\0\1\xe9") == 1


def test_dpsql_s_own_client_gets_utf8_whatever_is_set(session):
    session.settings["client_encoding"] = "LATIN1"
    session.answers["SELECT 1"] = words("é")
    assert "é".encode() in sent_bytes(ProtocolSession(session, structured=True), SimpleQuery("SELECT 1"))


NAMES = st.sampled_from(
    ["", "", "", "", "a", "a", "b", "dpsql:{", 'dpsql:{"free":1}', 'dpsql:{"settings":[["epsilon","1"]],"free":true}']
)
TEXTS = st.sampled_from(
    ["", "SELECT 1", "SELECT $1", "SELECT 2", "BEGIN", "COMMIT", "ROLLBACK", "SELECT 1; SELECT 2; BEGIN", ";",
     "COPY (SELECT 1) TO STDOUT", "COPY x FROM STDIN", "DEALLOCATE a", "DEALLOCATE ALL", "'", "$$", "/*", "BOOM",
     "DEALLOCATE", "SET x"]
)  # fmt: skip
CODES = st.lists(st.integers(-1, 2), max_size=2).map(tuple)
ANY = st.one_of(
    st.builds(SimpleQuery, TEXTS),
    st.builds(Parse, NAMES, TEXTS, st.lists(st.sampled_from([0, 23, 25, 16, 1007, 17, 99999]), max_size=2).map(tuple)),
    st.builds(Bind, NAMES, NAMES, CODES, st.lists(st.none() | st.binary(max_size=5), max_size=2).map(tuple), CODES),
    st.builds(Describe, st.sampled_from("SP"), NAMES),
    st.builds(Close, st.sampled_from("SP"), NAMES),
    st.builds(Execute, NAMES, st.integers(-1, 2)),
    st.sampled_from([Sync(), Sync(), Flush(), CopyDone(), CopyData(b"x"), CopyFail("x"), FunctionCall(), Terminate()]),
)


@settings(max_examples=600, deadline=None)
@given(st.lists(ANY, max_size=25), st.booleans())
def test_messages_in_any_order_are_answered_or_refused_cleanly(messages, structured):
    session = Fake({"SELECT 2": BudgetExceeded("no"), "BOOM": RuntimeError("a row")})
    conversation, skipping = ProtocolSession(session, structured=structured), False
    for message in messages:
        replies = say(conversation, message)
        ready = [one for one in replies if isinstance(one, client_codec.ReadyForQuery)]
        errors = [one for one in replies if isinstance(one, client_codec.ErrorResponse)]
        ends = isinstance(message, Sync) or (isinstance(message, SimpleQuery | FunctionCall) and not skipping)
        assert len(ready) == ends and len(errors) <= 1 and (not ready or replies[-1] is ready[0])
        assert all("a row" not in text for error in errors for text in error.fields.values())
        if skipping and not isinstance(message, Sync):
            assert replies == []
        skipping = not isinstance(message, Sync) and (skipping or (bool(errors) and not ready))
    last = say(conversation, Sync())[-1]
    assert last == client_codec.ReadyForQuery(conversation.status)
    assert last.status == "E" or last.status == ("T" if session.in_transaction else "I")
