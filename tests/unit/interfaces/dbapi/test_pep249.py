"""PEP 249, clause by clause, in its order; what is optional and absent is in docs/python.md."""

import datetime as dt
import threading
from decimal import Decimal
from uuid import UUID

import pytest

import dpsql
from dpsql.base.intervals import Interval
from dpsql.errors import QueryCanceled
from dpsql.interfaces.dbapi.connection import Connection
from tests.support.controlled_runs import COUNT, PATIENCE, gated_shop, in_thread, until

pytestmark = pytest.mark.slow

QUERY = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex ORDER BY sex"
SERIES = "SELECT i FROM generate_series(1, {}) AS s(i) ORDER BY i"
ERRORS = ("Warning", "Error", "InterfaceError", "DatabaseError", "DataError", "OperationalError", "IntegrityError",
          "InternalError", "ProgrammingError", "NotSupportedError")  # fmt: skip


# --- Module Interface: constructors and globals ----------------------------------------------------------------------


def test_connect_returns_a_connection(folder):
    with dpsql.connect(folder / "survey.yaml") as connection:
        assert isinstance(connection, dpsql.Connection)


def test_globals():
    assert (dpsql.apilevel, dpsql.threadsafety, dpsql.paramstyle) == ("2.0", 2, "qmark")


# --- Module Interface: exceptions ------------------------------------------------------------------------------------


def test_the_exception_tree():
    assert issubclass(dpsql.Warning, Exception) and not issubclass(dpsql.Warning, dpsql.Error)
    assert issubclass(dpsql.Error, Exception)
    for above, below in [
        (dpsql.Error, dpsql.InterfaceError),
        (dpsql.Error, dpsql.DatabaseError),
        (dpsql.DatabaseError, dpsql.DataError),
        (dpsql.DatabaseError, dpsql.OperationalError),
        (dpsql.DatabaseError, dpsql.IntegrityError),
        (dpsql.DatabaseError, dpsql.InternalError),
        (dpsql.DatabaseError, dpsql.ProgrammingError),
        (dpsql.DatabaseError, dpsql.NotSupportedError),
    ]:
        assert issubclass(below, above)
    assert not issubclass(dpsql.InterfaceError, dpsql.DatabaseError)


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT FROM", "ProgrammingError"),
        ("SELECT COUNT(*) FROM nowhere", "ProgrammingError"),
        ("SELECT birth_year FROM patients", "NotSupportedError"),
        ("DELETE FROM patients", "NotSupportedError"),
        ("SELECT CAST('x' AS INTEGER)", "DataError"),
    ],
)
def test_what_goes_wrong_has_its_class(cursor, sql, kind):
    with pytest.raises(getattr(dpsql, kind)):
        cursor.execute(sql)


def test_a_budget_that_is_spent_is_operational(cursor):
    with pytest.raises(dpsql.OperationalError):
        cursor.execute("SET epsilon = 100").execute("SELECT COUNT(*) FROM patients")


# --- Connection Objects ----------------------------------------------------------------------------------------------


def test_connection_close_and_what_is_refused_after_it(connection):
    cursor = connection.cursor()
    cursor.execute("SELECT 1")
    connection.close()
    connection.close()
    assert connection.closed
    for use in (connection.cursor, connection.commit, connection.rollback, connection.budget, connection.tables,
                lambda: connection.sql("SELECT 1"), connection.cancel, cursor.fetchone, cursor.answer,
                lambda: cursor.execute("SELECT 1"), lambda: cursor.scroll(0),
                lambda: cursor.executemany("SET a = ?", []), lambda: connection.explain("SELECT 1"),
                connection.__enter__):  # fmt: skip
        with pytest.raises(dpsql.InterfaceError, match="connection is closed"):
            use()


def test_commit_and_rollback_touch_no_charge(connection, cursor):
    cursor.execute(QUERY)
    before = connection.budget()
    connection.commit()
    connection.rollback()
    assert connection.budget() == before and len(cursor.fetchall()) == 4


def test_commit_and_rollback_end_a_transaction_of_settings(connection, cursor):
    def epsilon():
        return cursor.execute("SHOW epsilon").fetchone()[0]

    first = epsilon()
    cursor.execute("BEGIN").execute("SET epsilon = 0.125")
    connection.rollback()
    assert epsilon() == first
    cursor.execute("BEGIN").execute("SET LOCAL epsilon = 0.125")
    assert epsilon() == "0.125"
    connection.commit()
    assert epsilon() == first
    with pytest.raises(dpsql.ProgrammingError):
        cursor.execute("SET LOCAL epsilon = 0.125")


def test_cursors_of_a_connection_are_apart(connection):
    one, two = connection.cursor(), connection.cursor()
    one.execute("SELECT 1")
    two.execute("SELECT 2")
    assert (one.fetchall(), two.fetchall()) == ([(1,)], [(2,)])


# --- Cursor Objects: attributes --------------------------------------------------------------------------------------


def test_description(cursor):
    assert cursor.description is None
    cursor.execute("SELECT sex, insured, COUNT(*) AS n, AVG(birth_year) AS y FROM patients GROUP BY sex, insured")
    assert [column[0] for column in cursor.description] == ["sex", "insured", "n", "y"]
    assert all(len(column) == 7 for column in cursor.description)


def test_description_of_decimals_has_precision_and_scale(cursor):
    (number,) = cursor.execute("SELECT 1.25 AS x").description
    assert number[4:6] == (3, 2)


def test_a_statement_without_rows_has_no_description(cursor):
    cursor.execute("SET epsilon = 0.5")
    assert cursor.description is None and cursor.rowcount == -1 and cursor.rownumber is None
    assert cursor.statusmessage == "SET"
    for fetch in (cursor.fetchone, cursor.fetchmany, cursor.fetchall, lambda: cursor.scroll(0)):
        with pytest.raises(dpsql.Error):
            fetch()


def test_rowcount(cursor):
    assert cursor.rowcount == -1
    cursor.execute(QUERY)
    assert cursor.rowcount == 4  # f, m, x and NULL are public groups
    assert cursor.statusmessage == "SELECT 4"
    cursor.fetchone()
    assert cursor.rowcount == 4


# --- Cursor Objects: methods -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["callproc", "nextset"])
def test_what_the_database_has_not_is_absent(cursor, name):
    """PEP 249's footnote 3: better no method than one that raises, so that hasattr tells."""
    assert not hasattr(cursor, name)


def test_cursor_close_and_what_is_refused_after_it(connection):
    cursor = connection.cursor()
    cursor.execute("SELECT 1")
    cursor.close()
    cursor.close()
    for use in (cursor.fetchone, cursor.fetchall, cursor.fetchmany, lambda: cursor.execute("SELECT 1"),
                lambda: cursor.setinputsizes([1]), lambda: cursor.setoutputsize(1), lambda: next(cursor),
                lambda: cursor.executemany("SET a = ?", []), lambda: cursor.scroll(0), cursor.fetch_df):  # fmt: skip
        with pytest.raises(dpsql.InterfaceError, match="cursor is closed"):
            use()


def test_execute_takes_parameters_in_the_style_of_the_module(cursor):
    assert cursor.execute("SELECT ? AS a, ? AS b", ("x", 2)).fetchall() == [("x", 2)]
    assert cursor.execute("SELECT $2 AS a, $1 AS b, $2 AS c", ["x", 2]).fetchall() == [(2, "x", 2)]


def test_execute_forgets_the_last_answer_even_when_it_fails(cursor):
    cursor.execute(QUERY)
    with pytest.raises(dpsql.ProgrammingError):
        cursor.execute("SELECT nothing FROM nowhere")
    assert cursor.description is None and cursor.rowcount == -1 and not cursor.loss
    with pytest.raises(dpsql.ProgrammingError):
        cursor.fetchall()


def test_one_statement_at_a_time(cursor):
    with pytest.raises(dpsql.ProgrammingError):
        cursor.execute("SELECT 1; SELECT 2")


def test_executemany_of_a_query_is_refused_and_nothing_is_charged(connection, cursor):
    with pytest.raises(dpsql.ProgrammingError, match="executemany") as caught:
        cursor.executemany("SELECT COUNT(*) FROM patients WHERE sex = ?", [("f",), ("m",)])
    assert "execute" in caught.value.hint and connection.budget().charges == 0


def test_executemany_of_commands(cursor):
    cursor.executemany("SET epsilon = ?", iter([(0.5,), (0.25,)]))
    assert cursor.description is None and cursor.rowcount == -1
    assert cursor.execute("SHOW epsilon").fetchone() == ("0.25",)
    with pytest.raises(dpsql.ProgrammingError):
        cursor.executemany("SET epsilon = ?", [(0.5,), ()])  # a wrong one is found before the first is run
    assert cursor.execute("SHOW epsilon").fetchone() == ("0.25",)
    cursor.executemany("SET epsilon = ?", [])


def test_fetching(cursor):
    with pytest.raises(dpsql.Error):
        cursor.fetchone()
    cursor.execute(SERIES.format(7))
    assert cursor.fetchone() == (1,)
    assert cursor.arraysize == 1 and cursor.fetchmany() == [(2,)]
    cursor.arraysize = 2
    assert cursor.fetchmany() == [(3,), (4,)]
    assert cursor.fetchmany(0) == []
    assert cursor.fetchmany(size=10) == [(5,), (6,), (7,)]
    assert cursor.fetchmany() == [] and cursor.fetchall() == [] and cursor.fetchone() is None
    with pytest.raises(dpsql.InterfaceError):
        cursor.fetchmany(-1)


def test_arraysize_is_each_cursors_own(connection):
    one, two = connection.cursor(), connection.cursor()
    one.arraysize = 5
    assert two.arraysize == dpsql.Cursor.arraysize == 1


def test_sizes_are_accepted(cursor):
    cursor.setinputsizes([25])
    cursor.setoutputsize(1000)
    cursor.setoutputsize(1000, 0)


# --- Type Objects and Constructors -----------------------------------------------------------------------------------


def test_constructors():
    assert dpsql.Date(2002, 12, 25) == dt.date(2002, 12, 25)
    assert dpsql.Time(13, 45, 30) == dt.time(13, 45, 30)
    assert dpsql.Timestamp(2002, 12, 25, 13, 45, 30) == dt.datetime(2002, 12, 25, 13, 45, 30)
    ticks = dt.datetime(2002, 12, 25, 13, 45, 30).timestamp()
    assert dpsql.DateFromTicks(ticks) == dpsql.Date(2002, 12, 25)
    assert dpsql.TimeFromTicks(ticks) == dpsql.Time(13, 45, 30)
    assert dpsql.TimestampFromTicks(ticks) == dpsql.Timestamp(2002, 12, 25, 13, 45, 30)
    assert dpsql.Binary(b"abc") == b"abc"


def test_what_constructors_make_can_be_bound(cursor):
    given = [dpsql.Date(2024, 2, 29), dpsql.Time(1, 2, 3), dpsql.Timestamp(2024, 2, 29, 1, 2, 3)]
    cursor.execute("SELECT CAST(? AS DATE), CAST(? AS TIME), CAST(? AS TIMESTAMP)", given)
    assert cursor.fetchone() == tuple(given)


UTC = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
TYPES = [  # SQL, the value, the object that its type equals, and names that it equals
    ("7::SMALLINT", 7, dpsql.NUMBER, ["smallint", "INT2"]),
    ("7::INTEGER", 7, dpsql.NUMBER, ["INTEGER", "int", "Int4"]),
    ("9007199254740993::BIGINT", 9007199254740993, dpsql.NUMBER, ["BIGINT", "bigint", "int8"]),
    ("170141183460469231731687303715884105727::HUGEINT", 2**127 - 1, dpsql.NUMBER, ["hugeint"]),
    ("2.50::DECIMAL(38,2)", Decimal("2.50"), dpsql.NUMBER, ["DECIMAL(38,2)", "numeric(38, 2)", "decimal", "NUMERIC"]),
    ("0.1::DOUBLE", 0.1, dpsql.NUMBER, ["DOUBLE", "double precision", "float8"]),
    ("0.5::REAL", 0.5, dpsql.NUMBER, ["REAL", "float4"]),
    ("TRUE", True, dpsql.NUMBER, ["BOOLEAN", "bool"]),
    ("'a'::VARCHAR", "a", dpsql.STRING, ["TEXT", "varchar", "VARCHAR(10)"]),
    ("'00000000-0000-0000-0000-000000000005'::UUID", UUID(int=5), dpsql.STRING, ["UUID"]),
    ("DATE '2024-02-29'", dt.date(2024, 2, 29), dpsql.DATETIME, ["date"]),
    ("TIME '01:02:03'", dt.time(1, 2, 3), dpsql.DATETIME, ["TIME"]),
    ("TIMESTAMP '2024-02-29 12:00:00'", dt.datetime(2024, 2, 29, 12), dpsql.DATETIME, ["timestamp"]),
    ("TIMESTAMPTZ '2024-02-29 12:00:00+00'", UTC, dpsql.DATETIME, ["TIMESTAMPTZ", "timestamp with time zone"]),
    ("INTERVAL 26 HOUR - INTERVAL 2 HOUR", Interval.of(0, 0, 86_400_000_000), dpsql.DATETIME, ["interval"]),
    ("INTERVAL 6 HOUR", dt.timedelta(hours=6), dpsql.DATETIME, ["interval"]),
    ("'a'::BLOB", b"a", dpsql.BINARY, ["BLOB", "blob"]),
]
OBJECTS = (dpsql.STRING, dpsql.BINARY, dpsql.NUMBER, dpsql.DATETIME, dpsql.ROWID)
NAMES = {name for *_, names in TYPES for name in names}


@pytest.mark.parametrize(("sql", "value", "object_", "names"), TYPES, ids=[one[0] for one in TYPES])
def test_types(cursor, sql, value, object_, names):
    """A type code equals its type object and the names of its type, and no other."""
    cursor.execute(f"SELECT {sql} AS x")
    code, got = cursor.description[0][1], cursor.fetchone()[0]
    assert got == value and type(got) is type(value)
    assert [one for one in OBJECTS if code == one] == [one for one in OBJECTS if one == code] == [object_]
    assert {name for name in NAMES if code == name} == {name for name in NAMES if name == code} == set(names)
    assert code != "nothing" and code != 5
    assert hash(code) == hash(cursor.execute(f"SELECT {sql} AS x").description[0][1])


def test_decimals_of_other_digits_are_other_types(cursor):
    one, two = (column[1] for column in cursor.execute("SELECT 1.5::DECIMAL(4,1), 1.5::DECIMAL(5,1)").description)
    assert one != two and one == "decimal" and two == "decimal" and one != "DECIMAL(5,1)"


def test_a_type_code_is_found_in_a_dict_by_its_own_name(cursor):
    """It has the hash of one of its names: docs/python.md says how to ask by the others."""
    ((_, code, *_),) = cursor.execute("SELECT 1::BIGINT AS x").description
    assert {code: 1}[code] == {"bigint": 1}[code] == {"bigint": 1}[str(code)] == 1 and hash(code) == hash("bigint")
    assert code == "int8" and next(value for name, value in {"int8": 1}.items() if code == name) == 1


def test_type_objects_are_distinguished():
    assert len(set(OBJECTS)) == 5 and dpsql.STRING != dpsql.NUMBER and dpsql.STRING != "text"
    assert repr(dpsql.NUMBER) == "dpsql.NUMBER"


def test_null_is_none(cursor):
    assert cursor.execute("SELECT NULL AS x").fetchone() == (None,)


def test_lists_have_a_type_code_too(cursor):
    ((_, code, *_),) = cursor.execute("SELECT [1, 2] AS x").description
    assert code == "integer[]" and str(code) == "integer[]" and not any(code == one for one in OBJECTS)


# --- Implementation Hints: threadsafety 2 ----------------------------------------------------------------------------


def test_threads_may_share_a_connection(connection):
    """More statements at once, settings among them, than the compile cache holds calmly."""
    failures = []
    barrier = threading.Barrier(6)

    def ask(number):
        try:
            barrier.wait()
            cursor = connection.cursor()
            for i in range(15):
                cursor.execute("SELECT ? AS a", [number * 100 + i])
                if cursor.fetchall() != [(number * 100 + i,)]:
                    failures.append((number, i))
            cursor.execute("SELECT COUNT(*) FROM patients")
            answers.append(cursor.fetchall())
            losses.append(bool(cursor.loss))
        except Exception as error:
            failures.append(error)

    answers, losses = [], []
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(answers) == 6 and all(rows == answers[0] for rows in answers)  # one release, however many asked
    assert connection.budget().charges == 1 and sorted(losses) == [False] * 5 + [True]  # told to one of them


def test_a_cancel_lets_one_thread_go_and_the_others_are_answered(tmp_path):
    """The first waits for a run that does not end; the others wait for their turn."""
    with gated_shop(tmp_path) as gated:
        connection = Connection(gated.session)
        first, waiting = in_thread(lambda: connection.cursor().execute(COUNT))
        until(lambda: gated.engine.began)
        others = [in_thread(lambda n=n: connection.cursor().execute("SELECT ?", [n]).fetchall()) for n in range(5)]
        connection.cancel()
        for thread in (first, *(thread for thread, _ in others)):
            thread.join(PATIENCE)
        assert isinstance(waiting[0], QueryCanceled)
        assert [got for _, got in others] == [[[(n,)]] for n in range(5)]
        gated.engine.gate.set()


def test_connections_share_the_ledger_only(folder):
    with dpsql.connect(folder / "clinic.yaml", "ana") as one, dpsql.connect(folder / "clinic.yaml", "ana") as two:
        cursor = one.cursor()
        cursor.execute("SET epsilon = 0.25")
        cursor.execute(QUERY)
        assert cursor.loss.epsilon == 0.25
        assert two.cursor().execute("SHOW epsilon").fetchall() != [("0.25",)]
        assert two.budget() == one.budget() and two.budget().charges == 1


# --- Optional DB API Extensions --------------------------------------------------------------------------------------


def test_rownumber(cursor):
    assert cursor.rownumber is None
    cursor.execute(SERIES.format(3))
    seen = [cursor.rownumber]
    for _ in cursor:
        seen.append(cursor.rownumber)
    assert seen == [0, 1, 2, 3]


def test_exceptions_are_attributes_of_the_connection(connection):
    for name in ERRORS:
        assert getattr(connection, name) is getattr(dpsql, name) is getattr(dpsql.Connection, name)
    with pytest.raises(connection.ProgrammingError):
        connection.cursor().execute("SELECT FROM")


def test_the_connection_of_a_cursor(connection, cursor):
    assert cursor.connection is connection


def test_scroll(cursor):
    cursor.execute(SERIES.format(5))
    cursor.scroll(2)
    assert cursor.fetchone() == (3,)
    cursor.scroll(-3)
    assert cursor.fetchone() == (1,)
    cursor.scroll(4, mode="absolute")
    assert cursor.fetchall() == [(5,)]
    for value, mode in ((5, "absolute"), (-1, "absolute"), (1, "relative"), (-6, "relative")):
        with pytest.raises(IndexError):
            cursor.scroll(value, mode)
    assert cursor.rownumber == 5  # it has not moved
    with pytest.raises(dpsql.InterfaceError):
        cursor.scroll(0, "sideways")


def test_messages_are_the_notices(cursor):
    assert cursor.messages == []
    cursor.execute("SELECT EXTRACT(year FROM at) AS y, COUNT(*) AS n FROM visits GROUP BY 1")
    assert cursor.notices and [(kind, str(one)) for kind, one in cursor.messages] == [
        (dpsql.Warning, notice) for notice in cursor.notices
    ]
    cursor.execute("SELECT 1")
    assert cursor.messages == []


def test_iteration(cursor):
    cursor.execute(SERIES.format(3))
    assert iter(cursor) is cursor and next(cursor) == (1,)
    assert [i for (i,) in cursor] == [2, 3]
    with pytest.raises(StopIteration):
        next(cursor)


def test_lastrowid_is_none(cursor):
    cursor.execute(QUERY)
    assert cursor.lastrowid is None


def test_autocommit_is_on_and_cannot_be_turned_off(connection):
    connection.autocommit = True
    assert connection.autocommit is True
    with pytest.raises(dpsql.NotSupportedError):
        connection.autocommit = False


def test_context_managers_close(folder):
    with dpsql.connect(folder / "survey.yaml") as connection:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        with pytest.raises(dpsql.InterfaceError):
            cursor.fetchone()
        assert not connection.closed
    assert connection.closed


@pytest.mark.parametrize("name", ["tpc_begin", "tpc_prepare", "tpc_commit", "tpc_rollback", "tpc_recover", "xid"])
def test_two_phase_commit_is_absent(connection, name):
    assert not hasattr(connection, name)


@pytest.mark.parametrize(
    ("where", "name"),
    [("cursor", "errorhandler"), ("connection", "errorhandler"), ("connection", "messages"), ("cursor", "next")],
)
def test_other_extensions_are_absent(where, name, request):
    assert not hasattr(request.getfixturevalue(where), name)
