"""= ANY($1): many values in one parameter, as psycopg and asyncpg send a list."""

from decimal import Decimal

import pytest

from dpsql.interfaces.pgwire.backend_session.protocol_session import ProtocolSession
from dpsql.interfaces.pgwire.protocol import client_codec
from dpsql.interfaces.pgwire.protocol.encode import make_encoder
from dpsql.interfaces.pgwire.protocol.frontend import Bind, Describe, Execute, Parse, Sync
from dpsql.interfaces.pgwire.protocol.types import TYPES_BY_NAME
from tests.support.shop import open_shop
from tests.support.wire_messages import say

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
    wire = TYPES_BY_NAME[name]
    data = make_encoder(wire, binary)(values)
    replies = say(
        ProtocolSession(session), Parse("", ASKED.format(column), (wire.oid,) if told else ()), Describe("S", ""),
        Bind("", "", (int(binary),), (data,)), Execute(""), Sync(),
    )  # fmt: skip
    assert client_codec.ParameterDescription((wire.oid,)) in replies
    marks = ", ".join("?" for _ in values)
    [(count,)] = reference.execute(f"SELECT count(*) FROM orders WHERE {column} IN ({marks})", values).fetchall()
    assert client_codec.DataRow((str(count).encode(),)) in replies and count > 0


@pytest.mark.parametrize("condition", ["kind = ANY($1)", "NOT kind = ANY($1)", "kind <> ALL($1)", "city = ANY($1)"])
@pytest.mark.parametrize("data", [b"{}", b"{ }", b"{web,NULL}", b"{NULL}", b'{web,"NULL"}', b"{Oslo,null,web}"])
def test_none_and_null_among_the_values_mean_what_they_do_in_a_list(shop, data, condition):
    """No value is equal to none of them; what is not found beside NULL is neither in nor out."""
    session, reference = shop
    sql = f"SELECT count(*) FROM orders WHERE {condition}"
    replies = say(ProtocolSession(session), Parse("", sql), Bind("", "", (), (data,)), Execute(""), Sync())
    texts = [one.strip() for one in data.decode().strip("{}").split(",") if one.strip()]
    listed = ", ".join("NULL" if one.upper() == "NULL" else "'" + one.strip('"') + "'" for one in texts)
    place = condition.replace("NOT ", "").split()[0]
    within = f"{place} IN ({listed})" if listed else "FALSE"
    asked = within if condition.endswith("= ANY($1)") and not condition.startswith("NOT") else f"NOT {within}"
    [(count,)] = reference.execute(f"SELECT count(*) FROM orders WHERE {asked}").fetchall()
    assert client_codec.DataRow((str(count).encode(),)) in replies


@pytest.mark.parametrize("data", [b"{a", b"{{a},{b}}", b"{a,}", b"{,}", b"a"])
def test_what_is_no_array_is_refused_before_any_charge(shop, data):
    before = len(shop[0].dataset.ledger.list_entries(shop[0]._account.name))
    replies = say(
        ProtocolSession(shop[0]), Parse("", ASKED.format("kind")), Bind("", "", (), (data,)), Execute(""), Sync()
    )  # fmt: skip
    [error] = [one.fields for one in replies if isinstance(one, client_codec.ErrorResponse)]
    assert error["C"] in ("0A000", "22P02") and "charged" not in error.get("D", "")
    assert len(shop[0].dataset.ledger.list_entries(shop[0]._account.name)) == before


@pytest.mark.parametrize(("condition", "listed"), [
    ("kind IN (VALUES ('web'), ('shop'))", "kind IN ('web', 'shop')"),
    ("kind NOT IN (VALUES ('web'))", "kind NOT IN ('web')"),
    ("qty IN (VALUES (1), (NULL), (7))", "qty IN (1, 7)"),
    ("(kind, qty) IN (VALUES ('web', 1), ('shop', 7))", "kind = 'web' AND qty = 1 OR kind = 'shop' AND qty = 7"),
])  # fmt: skip
def test_values_in_a_list_are_a_list(shop, condition, listed):
    session, reference = shop
    answered = session.execute(f"SELECT count(*) FROM orders WHERE {condition}").rows
    assert answered == reference.execute(f"SELECT count(*) FROM orders WHERE {listed}").fetchall()
