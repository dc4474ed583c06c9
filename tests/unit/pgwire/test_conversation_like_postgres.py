"""The same messages to a real PostgreSQL and to a conversation over a session: the same replies, one by one."""

import pytest

from dpsql.pgwire.conversation import Conversation
from dpsql.pgwire.messages import Bind, Close, CopyDone, Describe, Execute, Flush, Parse, Query, Sync
from tests.support.shop import open_shop
from tests.support.talking import Real, say, told

INT4 = 23
ONE = "SELECT 1 AS a"
WRONG = "SELECT count(nope) FROM people"
ROWS = "SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, NULL)) AS t(n, s)"

STORIES = {
    "empty": [Query(""), Query(" ; ; -- nothing"), Query("SELECT 1; ; SELECT 2;")],
    "rows": [
        Query(ROWS), Query("SELECT 1 AS a, 'x'::text AS b, true AS c, NULL::integer AS d, 1.5::double precision AS e"),
    ],
    "no rows": [Query("SELECT 1 AS a WHERE false")],
    "settings": [
        Query("SET application_name = 'x'"), Query("SHOW application_name"), Query("RESET application_name"),
        Query("SET application_name = 'y'; SELECT 1 AS a; SHOW application_name"),
    ],
    "a set that is rolled back": [
        Query("BEGIN"), Query("SET application_name = 'x'"), Query("ROLLBACK"), Query("SHOW application_name"),
    ],
    "set local": [
        Query("BEGIN; SET LOCAL application_name = 'x'"), Query("SHOW application_name"), Query("COMMIT"),
        Query("SHOW application_name"),
    ],
    "statements together are a transaction": [
        Query("SET application_name = 'x'; SELECT count(nope) FROM people"), Query("SHOW application_name"),
    ],
    "together, with their own transaction": [
        Query("BEGIN; SET application_name = 'x'; COMMIT; SELECT count(nope) FROM people"),
        Query("SHOW application_name"),
        Query("BEGIN; SELECT 1 AS a"), Query("SELECT 2 AS b"), Query("ROLLBACK"),
    ],
    "a transaction": [Query("BEGIN"), Query(ONE), Query("COMMIT")],
    "a transaction that is there already, or not": [
        Query("COMMIT"), Query("ROLLBACK"), Query("BEGIN"), Query("BEGIN"), Query("START TRANSACTION"), Query("END"),
        Query("SELECT 1 AS a; COMMIT; ROLLBACK"), Query("BEGIN"), Query(WRONG), Query("COMMIT"), Query("COMMIT"),
    ],
    "a failed transaction": [
        Query("BEGIN"), Query(WRONG), Query(ONE), Query("SET application_name = 'x'"), Query("COMMIT"), Query(ONE),
    ],
    "a failed transaction that is rolled back": [
        Query("BEGIN WORK"), Query(WRONG), Query("ROLLBACK"), Query(ONE),
    ],
    "several after a failure": [Query("BEGIN"), Query(WRONG), Query("ROLLBACK; SELECT 1 AS a")],
    "savepoints": [
        Query("BEGIN"), Query("SAVEPOINT s"), Query(WRONG), Query(ONE), Query("ROLLBACK TO s"), Query(ONE),
        Query("RELEASE s"), Query("COMMIT"),
    ],
    "positions": [
        Query("SELECT 1 AS a; SELECT count(nope) FROM people"),
        Query("  SELECT 'é𝄞' AS x, count(nope) FROM people"), Query("SELEC 1"),
    ],
    "stops at the first error": [Query("SELECT 1 AS a; SELECT count(nope) FROM people; SELECT 2 AS b")],
    "extended": [
        Parse("", ONE), Bind("", ""), Describe("P", ""), Execute(""), Sync(),
        Parse("s", "SELECT $1::integer AS a, $2::text AS b"), Describe("S", "s"), Sync(),
        Bind("", "s", (0, 0), (b"7", b"x"), (1, 0)), Describe("P", ""), Execute(""), Sync(),
        Bind("", "s", (1,), (b"\0\0\0\7", None), (1,)), Execute(""), Sync(), Close("S", "s"), Sync(),
    ],
    "types that the client tells": [
        Parse("", "SELECT $1 AS a", (INT4,)), Describe("S", ""), Bind("", "", (), (b"5",)), Execute(""), Sync(),
        Parse("", "SELECT $1 AS a"), Describe("S", ""), Bind("", "", (), (b"5",)), Execute(""), Sync(),
    ],
    "row limits": [
        Parse("", ROWS), Bind("", ""), Execute("", 2), Execute("", 2), Sync(),
        Parse("", ROWS), Bind("", ""), Execute("", 3), Execute("", 3), Execute("", 0), Sync(),
        Parse("", ROWS), Bind("", ""), Execute("", 0), Execute("", 0), Sync(),
    ],
    "portals end with their transaction": [
        Parse("", ROWS), Bind("p", ""), Execute("p", 1), Sync(), Execute("p", 1), Sync(),
        Query("BEGIN"), Parse("", ROWS), Bind("p", ""), Execute("p", 1), Sync(), Execute("p", 0), Close("P", "p"),
        Execute("p", 0), Sync(), Query("ROLLBACK"),
    ],
    "names that are not there, or twice": [
        Bind("", "nope"), Sync(), Execute("nope"), Sync(), Describe("S", "nope"), Sync(), Describe("P", "nope"), Sync(),
        Parse("s", ONE), Parse("s", ONE), Sync(), Close("S", "nope"), Close("P", "nope"), Sync(),
        Query("BEGIN"), Bind("p", "s"), Bind("p", "s"), Sync(), Query("ROLLBACK"), Query("DEALLOCATE s"),
        Bind("", "s"), Sync(),
    ],
    "an error skips to Sync": [
        Parse("", WRONG), Bind("", ""), Execute(""), Parse("t", ONE), Flush(), Sync(),
        Bind("", "t"), Sync(),
    ],
    "empty in the extended protocol": [
        Parse("", ""), Describe("S", ""), Bind("", ""), Describe("P", ""), Execute(""), Sync(),
    ],
    "two commands in one Parse": [
        Parse("", "SELECT 1 AS a; SELECT 2 AS b"), Sync(), Parse("", "SELECT 1 AS a;"), Sync(),
    ],
    "wrong numbers of values and formats": [
        Parse("s", "SELECT $1::integer AS a"), Bind("", "s"), Sync(), Bind("", "s", (), (b"1", b"2")), Sync(),
        Bind("", "s", (0, 0), (b"1",)), Sync(), Bind("", "s", (), (b"1",), (0, 0)), Sync(),
        Bind("", "s", (2,), (b"1",)), Sync(), Bind("", "s", (), (b"x",)), Sync(),
        Bind("", "s", (1,), (b"12345",)), Sync(),
        Bind("", "s", (), (b"99999999999",)), Sync(),
    ],
    "a failed transaction in the extended protocol": [
        Query("BEGIN"), Parse("s", ONE), Parse("", WRONG), Sync(), Bind("", "s"), Sync(), Parse("", ONE), Sync(),
        Describe("S", "s"), Sync(), Parse("", "COMMIT"), Bind("", ""), Describe("P", ""), Execute(""), Sync(),
    ],
    "commands in the extended protocol": [
        Parse("", "SET application_name = 'x'"), Describe("S", ""), Bind("", ""), Execute(""), Sync(),
        Parse("", "SHOW application_name"), Bind("", ""), Describe("P", ""), Execute(""), Sync(),
        Parse("", "BEGIN"), Bind("", ""), Execute(""), Sync(), Parse("", "ROLLBACK"), Bind("", ""), Execute(""), Sync(),
    ],
    "what is sent together is a transaction": [
        Parse("", "SET application_name = 'x'"), Bind("", ""), Execute(""), Parse("", WRONG), Sync(),
        Query("SHOW application_name"),
    ],
    "a query drops what has no name": [Parse("", ONE), Sync(), Query(ONE), Bind("", ""), Sync()],
    "copy": [
        Query(f"COPY ({ROWS}) TO STDOUT"), Query(f"COPY ({ROWS}) TO STDOUT WITH (FORMAT csv, HEADER)"),
        Query(f"COPY ({ROWS}) TO STDOUT (FORMAT csv, DELIMITER ';', NULL 'nil', FORCE_QUOTE *)"),
        Query(f"COPY ({ROWS}) TO STDOUT CSV HEADER QUOTE '''' FORCE QUOTE s"),
        Query("COPY (SELECT E'a\\tb\\n\\\\c' AS x, E'q\"r' AS y, '' AS z) TO STDOUT"),
        Query("COPY (SELECT E'a,b\\n' AS x, E'q\"r' AS y, '' AS z, '\\.' AS w) TO STDOUT (FORMAT csv)"),
        Query("COPY (SELECT '\\.' AS w) TO STDOUT (FORMAT csv)"),
        Query("COPY (SELECT count(nope) FROM people) TO STDOUT"),
        Query("SELECT 1 AS a; COPY (SELECT count(nope) FROM people) TO STDOUT"),
        Parse("", f"COPY ({ROWS}) TO STDOUT"), Bind("", ""), Describe("P", ""), Execute(""), Sync(),
    ],
    "copy messages that nobody asked for": [CopyDone(), Query(ONE)],
    "prepared in SQL": [
        Query("PREPARE s (integer) AS SELECT $1 AS a"), Query("EXECUTE s (3)"), Query("EXECUTE nope (3)"),
        Query("DEALLOCATE s"), Query("DEALLOCATE s"), Query("DEALLOCATE ALL"),
    ],
    "cursors": [
        Query("BEGIN"), Query(f"DECLARE c CURSOR FOR {ROWS}"), Query("FETCH 2 FROM c"), Query("FETCH ALL FROM c"),
        Query("FETCH 2 FROM c"), Query("MOVE BACKWARD 1 FROM c"), Query("CLOSE c"), Query("FETCH 1 FROM c"),
        Query("COMMIT"),
        Query("DECLARE c CURSOR FOR SELECT 1 AS a"),
    ],
    "cursors of SQL are portals": [
        Query("BEGIN"), Query(f'DECLARE "a ""c" CURSOR FOR {ROWS}'), Describe("P", 'a "c'), Sync(),
        Describe("P", "nope"), Sync(), Query("ROLLBACK"),
    ],
    "arrays as parameters": [
        Parse("", "SELECT count(*) FROM people WHERE uid = ANY($1)"), Describe("S", ""), Sync(),
        Parse("", "SELECT count(*) FROM people WHERE region <> ALL ($1)"), Describe("S", ""), Sync(),
        Parse("", "SELECT oid FROM pg_catalog.pg_type WHERE oid = any($1::oid[])"), Describe("S", ""),
        Bind("", "", (), (b"{23}",), (1,)), Execute(""), Sync(), Bind("", "", (), (b"{x}",)), Sync(),
    ],
    "discard": [Parse("s", ONE), Sync(), Query("DISCARD ALL"), Bind("", "s"), Sync()],
    "warnings": [Query("SELECT 1 AS a; COMMIT; SELECT 2 AS b")],
}  # fmt: skip

@pytest.fixture
def conversation(tmp_path):
    session, _ = open_shop(tmp_path)
    yield Conversation(session)
    session.close()


@pytest.fixture
def real(postgres):
    postgres.execute("CREATE TABLE IF NOT EXISTS people (uid bigint, region text)")
    connection = Real(postgres.folder)
    yield connection
    connection.close()


@pytest.mark.parametrize("story", STORIES)
def test_the_replies_are_the_same(conversation, real, story):
    conversation.greeting()
    assert told(say(conversation, *STORIES[story])) == told(real.say(*STORIES[story]))


@pytest.mark.parametrize("story", STORIES)
def test_one_message_at_a_time_says_the_same(tmp_path, conversation, story):
    """Chunks depend on sizes alone, not on what was sent together."""
    (tmp_path / "other").mkdir()
    session, _ = open_shop(tmp_path / "other")
    other = Conversation(session)
    apart = [reply for message in STORIES[story] for reply in say(other, message)]
    assert told(apart) == told(say(conversation, *STORIES[story]))
    session.close()
