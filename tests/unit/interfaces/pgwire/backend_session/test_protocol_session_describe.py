"""Columns that values decide: told of a portal as they make them, and nothing is charged that they do not fit."""

import pytest

from dpsql.errors import DataError
from dpsql.interfaces.pgwire.backend_session import results
from dpsql.interfaces.pgwire.backend_session.protocol_session import ProtocolSession
from dpsql.interfaces.pgwire.protocol import client_codec
from dpsql.interfaces.pgwire.protocol.frontend import Bind, Describe, Execute, Parse, SimpleQuery, Sync
from tests.support.shop import open_shop
from tests.support.wire_messages import say

FLOAT8, INT8, TEXT, INTERVAL = 701, 20, 25, 1186
DIVIDED = "SELECT sum(qty) / $1 AS x FROM orders WHERE amount > 123"
MONTHLY = "SELECT to_char(made, $1) AS m, count(*) AS n FROM orders WHERE made >= $2 GROUP BY 1 ORDER BY 1"
"""With its second parameter as text: no sample of a text is a time, and a format cannot be NULL."""


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    opened, reference = open_shop(tmp_path_factory.mktemp("shop"))
    yield opened
    opened.close()
    reference.close()


def types_of(replies):
    [described] = [one for one in replies if isinstance(one, client_codec.RowDescription)]
    return [field.type for field in described.fields]


def rows_of(replies):
    return [one.values for one in replies if isinstance(one, client_codec.DataRow)]


def error_of(replies):
    [error] = [one.fields for one in replies if isinstance(one, client_codec.ErrorResponse)]
    return error


def entries(session):
    return len(session.dataset.ledger.list_entries(session._account.name))


@pytest.mark.parametrize(("given", "value", "told"), [(FLOAT8, b"2.5", FLOAT8), (INT8, b"2", INT8), (0, b"2", INT8)])
def test_the_type_that_is_given_decides(session, given, value, told):
    asked = [Parse("", DIVIDED, (given,)), Bind("", "", (), (value,)), Describe("P", ""), Execute(""), Sync()]
    replies = say(ProtocolSession(session), *asked)
    assert types_of(replies) == [told] and len(rows_of(replies)) == 1


def test_what_no_sample_decides_is_described_by_the_values(session):
    values = (b"YYYY-MM", b"2022-01-01")
    asked = [Parse("", MONTHLY, (0, TEXT)), Bind("", "", (), values), Describe("P", ""), Execute(""), Sync()]
    replies = say(ProtocolSession(session), *asked)
    assert types_of(replies) == [TEXT, INT8] and rows_of(replies)[0][0].startswith(b"20")
    again = say(ProtocolSession(session), *asked[:2], *asked[3:])
    assert rows_of(again) == rows_of(replies), "also if nobody asks for the columns"


def test_only_the_description_of_the_statement_fails(session):
    conversation = ProtocolSession(session)
    error = error_of(say(conversation, Parse("s", "  " + MONTHLY, (0, TEXT)), Describe("S", "s"), Sync()))
    assert error["C"] == "42804" and error["P"] == str(3 + MONTHLY.index("$2"))
    wrong = error_of(say(conversation, Bind("", "s", (), (b"?", b"2022-01-01")), Execute(""), Sync()))
    assert wrong["C"] == "0A000" and "charged" not in wrong.get("D", "")
    assert rows_of(say(conversation, Bind("", "s", (), (b"YYYY", b"2022-01-01")), Execute(""), Sync()))


@pytest.mark.parametrize(
    "sql", ["SELECT count(*) FROM orderz WHERE kind = $1", "SELECT count(nope) FROM orders WHERE qty = $1"]
)
def test_mistakes_are_reported_when_it_is_parsed(session, sql):
    replies = say(ProtocolSession(session), Parse("", sql), Sync())
    assert error_of(replies)["C"] in ("42P01", "42703")


def test_what_was_described_and_cannot_be_sent_is_refused_before_a_charge(session, monkeypatch):
    """A client that read the statement's description reads whole numbers."""
    conversation = ProtocolSession(session)
    sql = "SELECT sum(qty) / $1 AS x FROM orders WHERE amount > 77"
    assert types_of(say(conversation, Parse("s", sql), Describe("S", "s"), Sync())) == [INT8]
    describe, before = session.describe, entries(session)
    monkeypatch.setattr(session, "describe", lambda sql, values, **more: describe(sql, [2.5], **more))
    error = error_of(say(conversation, Bind("", "s", (), (b"2",)), Execute(""), Sync()))
    assert error["C"] == "0A000" and entries(session) == before


@pytest.mark.parametrize("messages", [
    lambda sql: [SimpleQuery(sql)], lambda sql: [Parse("", sql), Bind("", ""), Execute(""), Sync()],
])  # fmt: skip
def test_an_error_behind_the_charge_says_that_it_was_charged(session, monkeypatch, messages):
    def broken(*arguments):
        raise DataError("a value of the answer is no bigint", sqlstate="22003")

    number = entries(session)
    monkeypatch.setattr(results, "_make_data_row_encoder", lambda encoders: broken)
    sql = f"SELECT count(*) FROM orders WHERE amount > {number}.25"
    error = error_of(say(ProtocolSession(session), *messages(sql)))
    assert error["C"] == "22003" and "was charged" in error["D"] and "not charged again" in error["D"]
    monkeypatch.undo()
    assert error_of(say(ProtocolSession(session), Parse("", "SELECT nope"), Sync())).get("D") is None
    assert rows_of(say(ProtocolSession(session), SimpleQuery(sql))) and entries(session) == number + 1


def test_an_interval_is_bound_as_one(session):
    sql = "SELECT count(*) FROM orders WHERE made >= TIMESTAMP '2023-01-01' - {}"
    expected = rows_of(say(ProtocolSession(session), SimpleQuery(sql.format("INTERVAL '1 month 2 days'"))))
    asked = [Parse("", sql.format("$1"), (INTERVAL,)), Bind("", "", (), (b"1 mon 2 days",)), Execute(""), Sync()]
    assert rows_of(say(ProtocolSession(session), *asked)) == expected and expected
