"""The same messages to a real PostgreSQL and to a conversation over a session: the same replies, one by one."""

import pytest

from dpsql.interfaces.pgwire.backend_session.protocol_session import ProtocolSession
from dpsql.interfaces.pgwire.protocol.frontend import (
    Bind,
    Close,
    CopyDone,
    Describe,
    Execute,
    Flush,
    Parse,
    SimpleQuery,
    Sync,
)
from tests.support.shop import open_shop
from tests.support.wire_messages import Real, say, told

pytestmark = pytest.mark.slow

INT4 = 23
ONE = "SELECT 1 AS a"
WRONG = "SELECT count(nope) FROM people"
ROWS = "SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, NULL)) AS t(n, s)"

STORIES = {
    "empty": [SimpleQuery(""), SimpleQuery(" ; ; -- nothing"), SimpleQuery("SELECT 1; ; SELECT 2;")],
    "rows": [
        SimpleQuery(ROWS),
        SimpleQuery("SELECT 1 AS a, 'x'::text AS b, true AS c, NULL::integer AS d, 1.5::double precision AS e"),
    ],
    "no rows": [SimpleQuery("SELECT 1 AS a WHERE false")],
    "settings": [
        SimpleQuery("SET application_name = 'x'"),
        SimpleQuery("SHOW application_name"),
        SimpleQuery("RESET application_name"),
        SimpleQuery("SET application_name = 'y'; SELECT 1 AS a; SHOW application_name"),
    ],
    "a set that is rolled back": [
        SimpleQuery("BEGIN"),
        SimpleQuery("SET application_name = 'x'"),
        SimpleQuery("ROLLBACK"),
        SimpleQuery("SHOW application_name"),
    ],
    "set local": [
        SimpleQuery("BEGIN; SET LOCAL application_name = 'x'"),
        SimpleQuery("SHOW application_name"),
        SimpleQuery("COMMIT"),
        SimpleQuery("SHOW application_name"),
    ],
    "statements together are a transaction": [
        SimpleQuery("SET application_name = 'x'; SELECT count(nope) FROM people"),
        SimpleQuery("SHOW application_name"),
    ],
    "together, with their own transaction": [
        SimpleQuery("BEGIN; SET application_name = 'x'; COMMIT; SELECT count(nope) FROM people"),
        SimpleQuery("SHOW application_name"),
        SimpleQuery("BEGIN; SELECT 1 AS a"),
        SimpleQuery("SELECT 2 AS b"),
        SimpleQuery("ROLLBACK"),
    ],
    "a transaction": [SimpleQuery("BEGIN"), SimpleQuery(ONE), SimpleQuery("COMMIT")],
    "a transaction that is there already, or not": [
        SimpleQuery("COMMIT"),
        SimpleQuery("ROLLBACK"),
        SimpleQuery("BEGIN"),
        SimpleQuery("BEGIN"),
        SimpleQuery("START TRANSACTION"),
        SimpleQuery("END"),
        SimpleQuery("SELECT 1 AS a; COMMIT; ROLLBACK"),
        SimpleQuery("BEGIN"),
        SimpleQuery(WRONG),
        SimpleQuery("COMMIT"),
        SimpleQuery("COMMIT"),
    ],
    "a failed transaction": [
        SimpleQuery("BEGIN"),
        SimpleQuery(WRONG),
        SimpleQuery(ONE),
        SimpleQuery("SET application_name = 'x'"),
        SimpleQuery("COMMIT"),
        SimpleQuery(ONE),
    ],
    "a failed transaction that is rolled back": [
        SimpleQuery("BEGIN WORK"),
        SimpleQuery(WRONG),
        SimpleQuery("ROLLBACK"),
        SimpleQuery(ONE),
    ],
    "several after a failure": [SimpleQuery("BEGIN"), SimpleQuery(WRONG), SimpleQuery("ROLLBACK; SELECT 1 AS a")],
    "savepoints": [
        SimpleQuery("BEGIN"),
        SimpleQuery("SAVEPOINT s"),
        SimpleQuery(WRONG),
        SimpleQuery(ONE),
        SimpleQuery("ROLLBACK TO s"),
        SimpleQuery(ONE),
        SimpleQuery("RELEASE s"),
        SimpleQuery("COMMIT"),
    ],
    "positions": [
        SimpleQuery("SELECT 1 AS a; SELECT count(nope) FROM people"),
        SimpleQuery("  SELECT 'é𝄞' AS x, count(nope) FROM people"),
        SimpleQuery("SELEC 1"),
    ],
    "stops at the first error": [SimpleQuery("SELECT 1 AS a; SELECT count(nope) FROM people; SELECT 2 AS b")],
    "extended": [
        Parse("", ONE),
        Bind("", ""),
        Describe("P", ""),
        Execute(""),
        Sync(),
        Parse("s", "SELECT $1::integer AS a, $2::text AS b"),
        Describe("S", "s"),
        Sync(),
        Bind("", "s", (0, 0), (b"7", b"x"), (1, 0)),
        Describe("P", ""),
        Execute(""),
        Sync(),
        Bind("", "s", (1,), (b"\0\0\0\7", None), (1,)),
        Execute(""),
        Sync(),
        Close("S", "s"),
        Sync(),
    ],
    "types that the client tells": [
        Parse("", "SELECT $1 AS a", (INT4,)),
        Describe("S", ""),
        Bind("", "", (), (b"5",)),
        Execute(""),
        Sync(),
        Parse("", "SELECT $1 AS a"),
        Describe("S", ""),
        Bind("", "", (), (b"5",)),
        Execute(""),
        Sync(),
    ],
    "row limits": [
        Parse("", ROWS),
        Bind("", ""),
        Execute("", 2),
        Execute("", 2),
        Sync(),
        Parse("", ROWS),
        Bind("", ""),
        Execute("", 3),
        Execute("", 3),
        Execute("", 0),
        Sync(),
        Parse("", ROWS),
        Bind("", ""),
        Execute("", 0),
        Execute("", 0),
        Sync(),
    ],
    "portals end with their transaction": [
        Parse("", ROWS),
        Bind("p", ""),
        Execute("p", 1),
        Sync(),
        Execute("p", 1),
        Sync(),
        SimpleQuery("BEGIN"),
        Parse("", ROWS),
        Bind("p", ""),
        Execute("p", 1),
        Sync(),
        Execute("p", 0),
        Close("P", "p"),
        Execute("p", 0),
        Sync(),
        SimpleQuery("ROLLBACK"),
    ],
    "names that are not there, or twice": [
        Bind("", "nope"),
        Sync(),
        Execute("nope"),
        Sync(),
        Describe("S", "nope"),
        Sync(),
        Describe("P", "nope"),
        Sync(),
        Parse("s", ONE),
        Parse("s", ONE),
        Sync(),
        Close("S", "nope"),
        Close("P", "nope"),
        Sync(),
        SimpleQuery("BEGIN"),
        Bind("p", "s"),
        Bind("p", "s"),
        Sync(),
        SimpleQuery("ROLLBACK"),
        SimpleQuery("DEALLOCATE s"),
        Bind("", "s"),
        Sync(),
    ],
    "an error skips to Sync": [
        Parse("", WRONG),
        Bind("", ""),
        Execute(""),
        Parse("t", ONE),
        Flush(),
        Sync(),
        Bind("", "t"),
        Sync(),
    ],
    "empty in the extended protocol": [
        Parse("", ""),
        Describe("S", ""),
        Bind("", ""),
        Describe("P", ""),
        Execute(""),
        Sync(),
    ],
    "two commands in one Parse": [
        Parse("", "SELECT 1 AS a; SELECT 2 AS b"),
        Sync(),
        Parse("", "SELECT 1 AS a;"),
        Sync(),
    ],
    "wrong numbers of values and formats": [
        Parse("s", "SELECT $1::integer AS a"),
        Bind("", "s"),
        Sync(),
        Bind("", "s", (), (b"1", b"2")),
        Sync(),
        Bind("", "s", (0, 0), (b"1",)),
        Sync(),
        Bind("", "s", (), (b"1",), (0, 0)),
        Sync(),
        Bind("", "s", (2,), (b"1",)),
        Sync(),
        Bind("", "s", (), (b"x",)),
        Sync(),
        Bind("", "s", (1,), (b"12345",)),
        Sync(),
        Bind("", "s", (), (b"99999999999",)),
        Sync(),
    ],
    "a failed transaction in the extended protocol": [
        SimpleQuery("BEGIN"),
        Parse("s", ONE),
        Parse("", WRONG),
        Sync(),
        Bind("", "s"),
        Sync(),
        Parse("", ONE),
        Sync(),
        Describe("S", "s"),
        Sync(),
        Parse("", "COMMIT"),
        Bind("", ""),
        Describe("P", ""),
        Execute(""),
        Sync(),
    ],
    "commands in the extended protocol": [
        Parse("", "SET application_name = 'x'"),
        Describe("S", ""),
        Bind("", ""),
        Execute(""),
        Sync(),
        Parse("", "SHOW application_name"),
        Bind("", ""),
        Describe("P", ""),
        Execute(""),
        Sync(),
        Parse("", "BEGIN"),
        Bind("", ""),
        Execute(""),
        Sync(),
        Parse("", "ROLLBACK"),
        Bind("", ""),
        Execute(""),
        Sync(),
    ],
    "what is sent together is a transaction": [
        Parse("", "SET application_name = 'x'"),
        Bind("", ""),
        Execute(""),
        Parse("", WRONG),
        Sync(),
        SimpleQuery("SHOW application_name"),
    ],
    "a query drops what has no name": [Parse("", ONE), Sync(), SimpleQuery(ONE), Bind("", ""), Sync()],
    "copy": [
        SimpleQuery(f"COPY ({ROWS}) TO STDOUT"),
        SimpleQuery(f"COPY ({ROWS}) TO STDOUT WITH (FORMAT csv, HEADER)"),
        SimpleQuery(f"COPY ({ROWS}) TO STDOUT (FORMAT csv, DELIMITER ';', NULL 'nil', FORCE_QUOTE *)"),
        SimpleQuery(f"COPY ({ROWS}) TO STDOUT CSV HEADER QUOTE '''' FORCE QUOTE s"),
        SimpleQuery("COPY (SELECT E'a\\tb\\n\\\\c' AS x, E'q\"r' AS y, '' AS z) TO STDOUT"),
        SimpleQuery("COPY (SELECT E'a,b\\n' AS x, E'q\"r' AS y, '' AS z, '\\.' AS w) TO STDOUT (FORMAT csv)"),
        SimpleQuery("COPY (SELECT '\\.' AS w) TO STDOUT (FORMAT csv)"),
        SimpleQuery("COPY (SELECT count(nope) FROM people) TO STDOUT"),
        SimpleQuery("SELECT 1 AS a; COPY (SELECT count(nope) FROM people) TO STDOUT"),
        Parse("", f"COPY ({ROWS}) TO STDOUT"),
        Bind("", ""),
        Describe("P", ""),
        Execute(""),
        Sync(),
    ],
    "copy messages that nobody asked for": [CopyDone(), SimpleQuery(ONE)],
    "prepared in SQL": [
        SimpleQuery("PREPARE s (integer) AS SELECT $1 AS a"),
        SimpleQuery("EXECUTE s (3)"),
        SimpleQuery("EXECUTE nope (3)"),
        SimpleQuery("DEALLOCATE s"),
        SimpleQuery("DEALLOCATE s"),
        SimpleQuery("DEALLOCATE ALL"),
    ],
    "cursors": [
        SimpleQuery("BEGIN"),
        SimpleQuery(f"DECLARE c CURSOR FOR {ROWS}"),
        SimpleQuery("FETCH 2 FROM c"),
        SimpleQuery("FETCH ALL FROM c"),
        SimpleQuery("FETCH 2 FROM c"),
        SimpleQuery("MOVE BACKWARD 1 FROM c"),
        SimpleQuery("CLOSE c"),
        SimpleQuery("FETCH 1 FROM c"),
        SimpleQuery("COMMIT"),
        SimpleQuery("DECLARE c CURSOR FOR SELECT 1 AS a"),
    ],
    "cursors of SQL are portals": [
        SimpleQuery("BEGIN"),
        SimpleQuery(f'DECLARE "a ""c" CURSOR FOR {ROWS}'),
        Describe("P", 'a "c'),
        Sync(),
        Describe("P", "nope"),
        Sync(),
        SimpleQuery("ROLLBACK"),
    ],
    "arrays as parameters": [
        Parse("", "SELECT count(*) FROM people WHERE uid = ANY($1)"),
        Describe("S", ""),
        Sync(),
        Parse("", "SELECT count(*) FROM people WHERE region <> ALL ($1)"),
        Describe("S", ""),
        Sync(),
        Parse("", "SELECT oid FROM pg_catalog.pg_type WHERE oid = any($1::oid[])"),
        Describe("S", ""),
        Bind("", "", (), (b"{23}",), (1,)),
        Execute(""),
        Sync(),
        Bind("", "", (), (b"{x}",)),
        Sync(),
    ],
    "discard": [Parse("s", ONE), Sync(), SimpleQuery("DISCARD ALL"), Bind("", "s"), Sync()],
    "warnings": [SimpleQuery("SELECT 1 AS a; COMMIT; SELECT 2 AS b")],
}


@pytest.fixture
def conversation(tmp_path):
    session, _ = open_shop(tmp_path)
    yield ProtocolSession(session)
    session.close()


@pytest.fixture
def real(postgres):
    postgres.execute("CREATE TABLE IF NOT EXISTS people (uid bigint, region text)")
    connection = Real(postgres.folder)
    yield connection
    connection.close()


@pytest.mark.parametrize("story", STORIES)
def test_the_replies_are_the_same(conversation, real, story):
    conversation.make_greeting()
    assert told(say(conversation, *STORIES[story])) == told(real.say(*STORIES[story]))


@pytest.mark.parametrize("story", STORIES)
def test_one_message_at_a_time_says_the_same(tmp_path, conversation, story):
    """Chunks depend on sizes alone, not on what was sent together."""
    (tmp_path / "other").mkdir()
    session, _ = open_shop(tmp_path / "other")
    other = ProtocolSession(session)
    apart = [reply for message in STORIES[story] for reply in say(other, message)]
    assert told(apart) == told(say(conversation, *STORIES[story]))
    session.close()
