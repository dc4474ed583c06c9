"""What DuckDB says of a wrong statement over public rows and releases: PostgreSQL's codes, words and places."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpsql.errors import Error
from dpsql.session.session import Session
from tests.support.shop import open_shop


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    session, reference = open_shop(tmp_path_factory.mktemp("shop"))
    yield session
    session.close()
    reference.close()


@pytest.mark.parametrize(
    ("wrong", "state", "position"),
    [
        ("SELECT nothing FROM (VALUES (1)) AS t(n)", "42703", 8),
        ("SELECT 'ä€😀', t.nothing FROM (VALUES (1)) AS t(n)", "42703", 15),
        ("SELECT nothing + nothing FROM (VALUES (1)) AS t(n)", "42703", None),  # which of them, nobody knows
        ("SELECT 'nothing', nothing FROM (VALUES (1)) AS t(n)", "42703", 19),
        ("SELECT nofunc(n) FROM (VALUES (1)) AS t(n)", "42883", 8),
        ("SELECT sum(n) FROM (VALUES ('a')) AS t(n)", "42883", 8),
        ("SELECT n FROM (VALUES (1)) AS t(n), (VALUES (1)) AS u(n)", "42702", None),
        ("SELECT n, count(*) FROM (VALUES (1)) AS t(n)", "42803", None),
        ("SELECT n::integer FROM (VALUES ('x')) AS t(n)", "22P02", 33),
        ("SELECT n + true FROM (VALUES (1)) AS t(n)", "42883", 10),
        ("SELECT n LIKE 'a' FROM (VALUES (1)) AS t(n)", "42883", 10),
        ("SELECT sum('a'), 'sum'", "42725", 8),
        ("SELECT 1::nothing", "42704", 11),
        ("SELECT 'é', '2024-02-30'::date", "22008", 13),
        ("SELECT 'x'::date, 'x'", "22007", 8),
        ("SELECT '99999999999'::integer", "22003", 8),
        ("SELECT 2147483647::integer + n FROM (VALUES (1)) AS t(n)", "22003", None),
        ("SELECT extract(nothing FROM DATE '2024-01-01')", "22023", None),
        ("SELECT n FROM (VALUES (1)) AS t(n) LIMIT -1", "2201W", None),
        ("SELECT n::integer FROM (VALUES (99999999999)) AS t(n)", "22003", None),
        ("SELECT (SELECT n FROM (VALUES (1), (2)) AS t(n)) FROM (VALUES (1)) AS u(m)", "21000", None),
        ("SELECT n FROM (VALUES (1)) AS t(n) ORDER BY 7", "42P10", None),
        ("SELECT 1 FROM (VALUES (1)) AS t(n) JOIN (VALUES (1)) AS u(m) USING (store)", "42703", 69),
        ("SELECT 1 FROM (VALUES (1)) AS t(n) NATURAL JOIN (VALUES (1)) AS u(m)", "42703", None),
    ],
)
def test_codes_and_positions(wrong: str, state: str, position: int | None, session: Session) -> None:
    with pytest.raises(Error) as raised:
        session.execute(wrong)
    assert (raised.value.sqlstate, raised.value.position) == (state, position)
    assert "SET scalar" not in str(raised.value)  # DuckDB's advice is not for analysts


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("SELECT upper(n) FROM (VALUES (1)) AS t(n)", "function upper(integer) does not exist"),
        ("SELECT n + true FROM (VALUES (1)) AS t(n)", "operator does not exist: integer + boolean"),
        ("SELECT n LIKE 'a' FROM (VALUES (1)) AS t(n)", "operator does not exist: integer LIKE unknown"),
        ("SELECT 'x'::integer", 'invalid input syntax for type integer: "x"'),
        ("SELECT 2147483647::integer + n FROM (VALUES (1)) AS t(n)", "integer out of range"),
        ("SELECT n::date FROM (VALUES (1)) AS t(n)", "cannot cast type integer to date"),
        ("SELECT n::uuid FROM (VALUES ('x')) AS t(n)", 'invalid input syntax for type uuid: "x"'),
        ("SELECT n::json FROM (VALUES ('x')) AS t(n)", "invalid input syntax for type json"),
        ("SELECT n::bit FROM (VALUES ('x')) AS t(n)", "invalid input syntax for type bit"),
        ("SELECT n::inet FROM (VALUES ('x')) AS t(n)", 'type "inet" does not exist'),
        ("SELECT nothing.n FROM (VALUES (1)) AS t(n)", 'missing FROM-clause entry for table "nothing"'),
        ("SELECT regexp_replace(n, '(', '') FROM (VALUES ('x')) AS t(n)", "invalid regular expression: missing ): ("),
        ("SELECT to_date('x', 'YYYY')", 'the text "x" is not of the format that it is read by'),
    ],
)
def test_words_are_postgresqls(wrong: str, words: str, session: Session) -> None:
    with pytest.raises(Error) as raised:
        session.execute(wrong)
    assert raised.value.message == words
    assert not raised.value.detail or raised.value.detail.startswith("\tCandidate")  # no words of the engine


def test_a_name_that_is_nearly_right_is_offered(session: Session) -> None:
    with pytest.raises(Error) as raised:
        session.execute("SELECT wrd + 1 FROM (VALUES (1)) AS t(ward)")
    assert raised.value.hint == 'Perhaps you meant "ward".'


@pytest.mark.parametrize(
    ("join", "told"),
    [
        ("JOIN (VALUES (1)) AS u(m) USING (n)", 'column "n" specified in USING clause does not exist in right table'),
        ("JOIN (VALUES (1)) AS u(m) USING (m)", 'column "m" specified in USING clause does not exist in left table'),
        ("NATURAL JOIN (VALUES (1)) AS u(m)", "the two sides of NATURAL JOIN have no column in common"),
    ],
)
def test_a_join_on_what_is_not_there_is_reported_in_our_words(join: str, told: str, session: Session) -> None:
    with pytest.raises(Error) as raised:
        session.execute(f"SELECT 1 FROM (VALUES (1)) AS t(n) {join}")
    assert raised.value.message == told and raised.value.hint is not None


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        (r"SELECT '\xDEad'::bytea", b"\xde\xad"),
        (r"SELECT '\x de ad'::bytea", b"\xde\xad"),
        (r"SELECT 'a\\b\001é'::bytea", b"a\\b\x01\xc3\xa9"),
        ("SELECT ''::bytea", b""),
        ("SELECT B'0101'", "0101"),
        ("SELECT X'a5'", "10100101"),
        (r"SELECT encode('\xff'::bytea, 'hex')", "ff"),
        ("SELECT decode('/w==', 'base64')", b"\xff"),
    ],
)
def test_bytes_and_bits_are_postgresqls(sql: str, value: object, session: Session) -> None:
    assert session.execute(sql).rows == [(value,)]
