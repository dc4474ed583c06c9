"""= ANY($1): many values in one parameter, as psycopg and asyncpg send a list."""

from decimal import Decimal

import pytest
from support.shop import open_shop
from support.talking import client, say

from dpsql.pgwire.conversation import Conversation
from dpsql.pgwire.encode import encoder
from dpsql.pgwire.messages import Bind, Describe, Execute, Parse, Sync
from dpsql.pgwire.wire_types import BY_NAME

ASKED = "SELECT count(*) FROM orders WHERE {} = ANY($1)"


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    odd = "UPDATE orders SET city = 'a\"b \\ {c},d' WHERE oid = 7;"
    session, reference = open_shop(tmp_path_factory.mktemp("shop"), odd)
    yield session, reference
    session.close()


@pytest.mark.parametrize(
    ("column", "name", "values"),
    [
        ("kind", "_text", ["web", "phone"]),
        ("kind", "_text", ["web"]),
        ("city", "_text", ["New York", "o'Neil", "", 'a"b \\ {c},d', "null"]),
        ("qty", "_int4", [1, -3, 7]),
        ("uid", "_int8", [5, 100]),
        ("price", "_numeric", [Decimal("0.97"), Decimal("1.94")]),
    ],
)
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("told", [False, True])
def test_many_values_are_as_if_listed(shop, column, name, values, binary, told):
    session, reference = shop
    wire = BY_NAME[name]
    data = encoder(wire, binary)(values)
    replies = say(
        Conversation(session), Parse("", ASKED.format(column), (wire.oid,) if told else ()), Describe("S", ""),
        Bind("", "", (int(binary),), (data,)), Execute(""), Sync(),
    )  # fmt: skip
    assert client.ParameterDescription((wire.oid,)) in replies
    marks = ", ".join("?" for _ in values)
    [(count,)] = reference.execute(f"SELECT count(*) FROM orders WHERE {column} IN ({marks})", values).fetchall()
    assert client.DataRow((str(count).encode(),)) in replies and count > 0


@pytest.mark.parametrize("data", [b"{}", b"{a,NULL}", b"{NULL}"])
def test_what_cannot_be_asked_for_is_refused_before_any_charge(shop, data):
    replies = say(
        Conversation(shop[0]), Parse("", ASKED.format("kind")), Bind("", "", (), (data,)), Execute(""), Sync()
    )  # fmt: skip
    [error] = [one.fields for one in replies if isinstance(one, client.ErrorResponse)]
    assert error["C"] == "0A000" and "charged" not in error.get("D", "")
