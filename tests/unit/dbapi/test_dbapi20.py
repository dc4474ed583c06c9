"""PEP 249, clause by clause."""

import datetime as dt
import threading

import pytest

import dpsql

QUERY = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex ORDER BY sex"


def test_module_globals():
    assert (dpsql.apilevel, dpsql.threadsafety, dpsql.paramstyle) == ("2.0", 2, "qmark")


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


def test_exceptions_are_attributes_of_the_connection(connection):
    for name in ("Warning", "Error", "InterfaceError", "DatabaseError", "DataError", "OperationalError",
                 "IntegrityError", "InternalError", "ProgrammingError", "NotSupportedError"):  # fmt: skip
        assert getattr(connection, name) is getattr(dpsql, name)
    with pytest.raises(connection.ProgrammingError):
        connection.cursor().execute("SELECT FROM")


def test_constructors():
    assert dpsql.Date(2002, 12, 25) == dt.date(2002, 12, 25)
    assert dpsql.Time(13, 45, 30) == dt.time(13, 45, 30)
    assert dpsql.Timestamp(2002, 12, 25, 13, 45, 30) == dt.datetime(2002, 12, 25, 13, 45, 30)
    ticks = dt.datetime(2002, 12, 25, 13, 45, 30).timestamp()
    assert dpsql.DateFromTicks(ticks) == dpsql.Date(2002, 12, 25)
    assert dpsql.TimeFromTicks(ticks) == dpsql.Time(13, 45, 30)
    assert dpsql.TimestampFromTicks(ticks) == dpsql.Timestamp(2002, 12, 25, 13, 45, 30)
    assert dpsql.Binary(b"abc") == b"abc"


def test_commit_and_rollback_do_nothing(connection, cursor):
    cursor.execute(QUERY)
    before = connection.budget()
    connection.commit()
    connection.rollback()
    assert connection.budget() == before and len(cursor.fetchall()) == 4


def test_autocommit_is_on_and_cannot_be_turned_off(connection):
    connection.autocommit = True
    assert connection.autocommit is True
    with pytest.raises(dpsql.NotSupportedError):
        connection.autocommit = False


def test_a_closed_connection_refuses(connection):
    cursor = connection.cursor()
    cursor.execute("SELECT 1")
    connection.close()
    connection.close()
    assert connection.closed
    for use in (connection.cursor, connection.commit, connection.rollback, connection.budget, cursor.fetchone,
                lambda: cursor.execute("SELECT 1"), lambda: connection.explain("SELECT 1"), connection.__enter__):
        with pytest.raises(dpsql.InterfaceError, match="connection is closed"):
            use()


def test_a_closed_cursor_refuses(connection):
    cursor = connection.cursor()
    cursor.execute("SELECT 1")
    cursor.close()
    cursor.close()
    for use in (cursor.fetchone, cursor.fetchall, cursor.fetchmany, lambda: cursor.execute("SELECT 1"),
                lambda: cursor.setinputsizes([1]), lambda: cursor.setoutputsize(1), lambda: next(cursor)):
        with pytest.raises(dpsql.InterfaceError, match="cursor is closed"):
            use()


def test_context_managers_close(folder):
    with dpsql.connect(folder / "survey.yaml") as connection:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        with pytest.raises(dpsql.InterfaceError):
            cursor.fetchone()
        assert not connection.closed
    assert connection.closed


def test_cursors_of_a_connection_are_apart(connection):
    one, two = connection.cursor(), connection.cursor()
    assert one.connection is connection
    one.execute("SELECT 1")
    two.execute("SELECT 2")
    assert (one.fetchall(), two.fetchall()) == ([(1,)], [(2,)])


def test_description(cursor):
    assert cursor.description is None
    cursor.execute("SELECT sex, insured, COUNT(*) AS n, AVG(birth_year) AS y FROM patients GROUP BY sex, insured")
    assert [column[0] for column in cursor.description] == ["sex", "insured", "n", "y"]
    assert all(len(column) == 7 for column in cursor.description)
    sex, insured, n, y = (column[1] for column in cursor.description)
    assert sex == dpsql.STRING and dpsql.STRING.__eq__(sex)
    assert insured == dpsql.NUMBER and n == dpsql.NUMBER and y == dpsql.NUMBER
    assert n != dpsql.STRING and sex != dpsql.NUMBER and n != dpsql.DATETIME
    assert str(n) == "bigint"


def test_description_of_dates_and_decimals(cursor):
    cursor.execute("SELECT DATE '2024-02-29' AS d, TIMESTAMP '2024-02-29 12:00:00' AS t, 1.25 AS x")
    date, moment, number = cursor.description
    assert date[1] == dpsql.DATETIME and moment[1] == dpsql.DATETIME
    assert number[1] == dpsql.NUMBER and number[4:6] == (3, 2)
    assert not (date[1] == dpsql.BINARY or date[1] == dpsql.ROWID)


def test_a_statement_without_rows_has_no_description(cursor):
    cursor.execute("SET epsilon = 0.5")
    assert cursor.description is None and cursor.rowcount == -1
    assert cursor.statusmessage == "SET"
    with pytest.raises(dpsql.Error):
        cursor.fetchall()


def test_rowcount(cursor):
    assert cursor.rowcount == -1
    cursor.execute(QUERY)
    assert cursor.rowcount == 4  # f, m, x and NULL are public groups
    assert cursor.statusmessage == "SELECT 4"


def test_fetching(cursor):
    with pytest.raises(dpsql.Error):
        cursor.fetchone()
    cursor.execute("SELECT i FROM generate_series(1, 7) AS s(i) ORDER BY i")
    assert cursor.fetchone() == (1,)
    assert cursor.arraysize == 1 and cursor.fetchmany() == [(2,)]
    cursor.arraysize = 2
    assert cursor.fetchmany() == [(3,), (4,)]
    assert cursor.fetchmany(0) == []
    assert cursor.fetchmany(size=10) == [(5,), (6,), (7,)]
    assert cursor.fetchmany() == [] and cursor.fetchall() == [] and cursor.fetchone() is None
    with pytest.raises(dpsql.InterfaceError):
        cursor.fetchmany(-1)


def test_iteration(cursor):
    cursor.execute("SELECT i FROM generate_series(1, 3) AS s(i) ORDER BY i")
    next(cursor)
    assert [i for (i,) in cursor] == [2, 3]


def test_null_is_none(cursor):
    assert cursor.execute("SELECT NULL AS x").fetchone() == (None,)


def test_execute_forgets_the_last_answer_even_when_it_fails(cursor):
    cursor.execute(QUERY)
    with pytest.raises(dpsql.ProgrammingError):
        cursor.execute("SELECT nothing FROM nowhere")
    assert cursor.description is None and cursor.rowcount == -1 and not cursor.loss
    with pytest.raises(dpsql.ProgrammingError):
        cursor.fetchall()


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


def test_sizes_are_accepted(cursor):
    cursor.setinputsizes([25])
    cursor.setoutputsize(1000)
    cursor.setoutputsize(1000, 0)


def test_one_statement_at_a_time(cursor):
    with pytest.raises(dpsql.ProgrammingError):
        cursor.execute("SELECT 1; SELECT 2")


def test_threads_may_share_a_connection(connection):
    """threadsafety 2: more statements at once, settings among them, than the compile cache holds calmly."""
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
            rows = cursor.execute("SELECT COUNT(*) FROM patients").fetchall()
            answers.append(rows)
        except Exception as error:
            failures.append(error)

    answers = []
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(answers) == 6 and all(rows == answers[0] for rows in answers)  # one release, however many asked
    assert connection.budget().charges == 1


def test_connections_share_the_ledger_only(folder):
    with dpsql.connect(folder / "clinic.yaml", "ana") as one, dpsql.connect(folder / "clinic.yaml", "ana") as two:
        cursor = one.cursor()
        cursor.execute("SET epsilon = 0.25")
        cursor.execute(QUERY)
        assert cursor.loss.epsilon == 0.25
        assert two.cursor().execute("SHOW epsilon").fetchall() != [("0.25",)]
        assert two.budget() == one.budget() and two.budget().charges == 1
