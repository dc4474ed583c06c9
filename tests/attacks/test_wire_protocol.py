"""What a client could hope to get for nothing, or to learn, from the order and the kinds of its messages."""

import pytest

from dpsql.interfaces.pgwire.backend_session.protocol_session import ProtocolSession
from dpsql.interfaces.pgwire.protocol import client_codec
from dpsql.interfaces.pgwire.protocol.frontend import Bind, Close, Describe, Execute, Parse, SimpleQuery, Sync
from tests.support.shop import open_shop
from tests.support.wire_messages import say

pytestmark = pytest.mark.slow

ASKED = "SELECT kind, count(*) AS n FROM orders WHERE qty > $1 GROUP BY kind ORDER BY kind"


@pytest.fixture
def session(tmp_path):
    session, _ = open_shop(tmp_path)
    yield session
    session.close()


@pytest.fixture
def reads(session, monkeypatch):
    """How often the engine is asked for private rows."""
    asked: list[str] = []
    kind = type(session.dataset.engine)
    execute = kind.execute

    def noted(self, sql, *given):
        asked.append(sql)
        return execute(self, sql, *given)

    monkeypatch.setattr(kind, "execute", noted)
    return asked


def spent(session) -> object:
    return session.budget()


def test_parse_bind_and_describe_read_no_row_and_charge_nothing(session, reads):
    before, conversation = spent(session), ProtocolSession(session)
    for value in (b"1", b"2", None):
        replies = say(conversation, Parse("s", ASKED), Describe("S", "s"), Bind("p", "s", (), (value,)),
                      Describe("P", "p"), Close("P", "p"), Close("S", "s"), Sync())  # fmt: skip
        assert not any(isinstance(one, client_codec.DataRow | client_codec.ErrorResponse) for one in replies)
    assert reads == [] and spent(session) == before
    say(conversation, Parse("", ASKED), Bind("", "", (), (b"1",)), Execute(""), Sync())
    assert len(reads) == 1 and spent(session) != before


def test_row_limits_and_second_executions_run_nothing_again(session, reads):
    conversation = ProtocolSession(session)
    replies = say(conversation, Parse("", ASKED), Bind("", "", (), (b"1",)), *[Execute("", 1)] * 6, Execute(""), Sync())
    assert len(reads) == 1 and sum(isinstance(one, client_codec.DataRow) for one in replies) == 3
    after = spent(session)
    again = say(conversation, SimpleQuery(ASKED.replace("$1", "1")))
    assert spent(session) == after and [one for one in again if isinstance(one, client_codec.DataRow)] == [
        one for one in replies if isinstance(one, client_codec.DataRow)
    ]


def test_a_rollback_gives_no_charge_back(session):
    conversation = ProtocolSession(session)
    say(conversation, SimpleQuery("BEGIN"))
    say(conversation, SimpleQuery("SELECT count(*) FROM orders"))
    charged = spent(session)
    say(conversation, SimpleQuery("ROLLBACK"))
    say(conversation, SimpleQuery("SELECT count(*) FROM items; SELECT count(nope) FROM items"))
    assert spent(session) != charged  # the first of the two was charged, though both are undone together
    after = spent(session)
    say(conversation, SimpleQuery("SELECT count(*) FROM items"))
    assert spent(session) == after


def test_nothing_runs_behind_an_error_before_sync(session, reads):
    before, conversation = spent(session), ProtocolSession(session)
    say(conversation, Parse("s", ASKED), Bind("p", "s", (), (b"1",)), Parse("", "SELECT nope FROM orders"),
        Execute("p"), SimpleQuery("SELECT count(*) FROM orders"), Sync())  # fmt: skip
    assert reads == [] and spent(session) == before


def test_errors_of_the_wire_do_not_depend_on_rows(tmp_path):
    """The same wrong messages on data that differs: the same replies, byte for byte."""
    wrong = [
        Parse("", ASKED),
        Bind("", "", (), (b"x",)),
        Sync(),
        Bind("", "", (1,), (b"x",)),
        Sync(),
        Execute("p"),
        Sync(),
        SimpleQuery("SELECT city FROM orders"),
        SimpleQuery("COPY orders TO STDOUT"),
        SimpleQuery("COPY (SELECT city FROM orders) TO STDOUT"),
        SimpleQuery("DECLARE c CURSOR WITH HOLD FOR SELECT * FROM orders"),
        SimpleQuery("FETCH c"),
        SimpleQuery("EXECUTE s"),
    ]
    told = []
    for name, change in (("one", ""), ("other", "DELETE FROM orders WHERE uid % 2 = 0; UPDATE orders SET city = 'x';")):
        (tmp_path / name).mkdir()
        session, _ = open_shop(tmp_path / name, change)
        conversation = ProtocolSession(session)
        told.append(b"".join(part for message in wrong for part in conversation.handle_message(message)))
        session.close()
    assert told[0] == told[1] and told[0].count(b"ERROR") >= 9
