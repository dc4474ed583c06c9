"""A connection to a server is as one to the schema: the same battery on both, compared in all that Connection offers.

The server releases, and stores what it has released; the schema is then opened here on the same ledger and asked the
same. What is stored never changes, so both must give the same values, to the last digit and type.
"""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from uuid import UUID

import pytest

import dpsql
from dpsql.interfaces.dbapi.types import TypeCode
from tests.support.server import Server, serving

pytestmark = pytest.mark.slow

BUDGET = """
privacy:
  unit: patients.patient_id
  budget: {epsilon: 800, delta: 1e-4}
  query: {epsilon: 1, delta: 1e-7}
  contributions: {rows: 6, groups: 4}
analysts:
  ana: {budget: {epsilon: 400, delta: 5e-5}}
"""


@dataclass(frozen=True)
class Both:
    """`fresh` is the schema as it was before the server was asked anything."""

    remote: dpsql.Connection
    here: dpsql.Connection
    server: Server
    fresh: Path


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("remote")
    with serving(_rich(folder)) as server:
        fresh = folder / "fresh"
        shutil.copytree(server.folder, fresh)
        url = server.dsn("ana", application_name="").replace("postgresql:", "dpsql:")  # as a local one has it
        with dpsql.connect(url) as remote, dpsql.connect(server.schema, "ana") as here:
            yield Both(remote, here, server, fresh / server.schema.name)
        assert "Traceback" not in server.log()


def _rich(folder: Path) -> Path:
    """The demo's hospital, with more to spend."""
    from dpsql.interfaces.cli.demo_hospital import make_hospital

    place = folder / "hospital"
    place.mkdir()
    schema = make_hospital(place)
    text = schema.read_text()
    start, end = text.index("privacy:"), text.index("tables:")
    schema.write_text(text[:start] + BUDGET + "\n" + text[end:])
    return schema


STATEMENTS = [
    ("SELECT COUNT(*) FROM visits", ()),
    ("SELECT ward, COUNT(*) AS n, AVG(cost) AS cost, SUM(nights) FROM visits GROUP BY ward ORDER BY ward", ()),
    ("SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis ORDER BY 2 DESC LIMIT 5", ()),
    ("SELECT MEDIAN(cost), MIN(at), MAX(at), quantile_disc(nights, [0.25, 0.75]) FROM visits", ()),
    ("SELECT HISTOGRAM(ward), MODE(ward) FROM visits", ()),
    ("SELECT date_trunc('year', at) AS year, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1", ()),
    ("SELECT sex, insured, COUNT(DISTINCT patient_id) FROM patients GROUP BY sex, insured ORDER BY 1, 2", ()),
    ("SELECT ward, dp_stderr(AVG(cost)), AVG(cost) / 3 FROM visits GROUP BY ward ORDER BY 1", ()),
    ("SELECT COUNT(*) FROM visits WHERE ward = ? AND cost > ? AND at >= ?", ("surgery", 12.5, dt.date(2022, 1, 1))),
    ("SELECT COUNT(*) FROM visits WHERE ward = $2 AND nights >= $1", (Decimal("2"), "oncology")),
    ("SELECT COUNT(*) FROM visits WHERE cost > ? OR ward IS NOT DISTINCT FROM ?", (1e-07, None)),
    ("SELECT COUNT(*) FROM patients WHERE insured = ? AND birth_year < ?", (True, 1980)),
    ("SELECT COUNT(*) FROM visits WHERE at > ? AND diagnosis <> ?", (dt.datetime(2023, 4, 5, 6, 7, 8), "é 'x' \\ ☃")),
    ("SELECT 1, 2::smallint, 3::bigint, 170141183460469231731687303715884105727::hugeint, 1.50::decimal(9,2)", ()),
    ("SELECT 0.1::real, 0.1::double, 1e300::double, 'nan'::double, '-inf'::double, true, NULL, 'x' || chr(10)", ()),
    ("SELECT date '2020-02-29', time '01:02:03.000004', timestamp '2020-01-02 03:04:05.6'", ()),
    ("SELECT timestamptz '2020-01-02 03:04:05+02', interval '1 year 2 months 3 days 4 hours', uuid '"
     + str(UUID(int=7)) + "'", ()),
    ("SELECT [1, 2, NULL], ['a', 'b,\"c'], [1.5::decimal(3,1)], {'a': 1, 'b': date '2020-01-01'}, map {'x': 2}", ()),
    ("WITH one AS (SELECT COUNT(*) AS n FROM visits) SELECT [[n], []], [date '2020-01-01'], 'x'::blob FROM one", ()),
    ("SHOW epsilon", ()),
    ("SHOW ALL", ()),
    ("SHOW TABLES", ()),
    ("SHOW SCHEMAS", ()),
    ("DESCRIBE visits", ()),
    ("DESCRIBE SELECT ward, COUNT(*) FROM visits GROUP BY ward", ()),
    ("EXPLAIN SELECT COUNT(*) FROM visits", ()),
    ("SET nonnegative = on", ()),
    ("RESET nonnegative", ()),
    ("SELECT COUNT(*) FROM visits WHERE ward = 'nowhere'", ()),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "parameters"), STATEMENTS, ids=[sql[:60] for sql, _ in STATEMENTS])
def test_a_statement(both: Both, sql: str, parameters: tuple) -> None:
    there = both.remote.cursor().execute(sql, parameters)
    here = both.here.cursor().execute(sql, parameters)
    assert not here.loss  # it was paid for, and stored: what follows compares the same releases
    assert [(name, str(code)) for name, code, *_ in there.description or ()] == [
        (name, str(code)) for name, code, *_ in here.description or ()
    ]
    assert there.description == here.description
    assert there.statusmessage == here.statusmessage and there.rowcount == here.rowcount
    assert there.notices == here.notices
    assert there.receipts == here.receipts
    if here.description is not None:
        assert there.errors == here.errors
        rows = here.fetchall()
        fetched = there.fetchall()
        assert repr(fetched) == repr(rows)  # types too; and NaN, which equals nothing
    left = there.answer()
    assert isinstance(left.types, tuple) and all(isinstance(code, TypeCode) for code in left.types)
    assert left.left == here.answer().left


def test_frames_charts_and_text(both: Both) -> None:
    sql = "SELECT ward, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY ward ORDER BY ward"
    there, here = both.remote.sql(sql), both.here.sql(sql)
    assert there.df(errors=True).equals(here.df(errors=True))
    assert there.arrow(errors=True).equals(here.arrow(errors=True))
    there, here = both.remote.sql(sql), both.here.sql(sql)  # what a session says once was said
    assert repr(there) == repr(here) and there._repr_html_() == here._repr_html_()


@pytest.mark.parametrize(
    ("sql", "settings"),
    [
        ("SELECT AVG(cost) FROM visits WHERE nights > 4", {}),
        ("SELECT ward, SUM(cost) FROM visits WHERE nights > 5 GROUP BY ward", {"epsilon": 0.125}),
        ("SELECT SUM(nights) FROM visits WHERE cost > 6", {"noise": "laplace", "epsilon": Fraction(1, 3)}),
        ("SELECT diagnosis, COUNT(*) FROM visits WHERE nights > 7 GROUP BY diagnosis", {"delta": "1e-8"}),
        ("SELECT SUM(nights) FROM visits WHERE cost > 8", {"delta": 0}),
    ],
)
def test_what_is_charged(both: Both, sql: str, settings: dict) -> None:
    """To the last bit of the fractions; and asked again, nothing."""
    with dpsql.connect(both.fresh, "ana") as fresh:
        expected = fresh.sql(sql, settings=settings).loss
    asked = both.remote.cursor().execute(sql, settings=settings)
    assert asked.loss == expected and expected
    assert not both.remote.sql(sql, settings=settings).loss


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT nope FROM visits", ()),
        ("SELECT\n  ward,\n  nope, COUNT(*) FROM visits GROUP BY ward", ()),
        ("SELECT '☃☃', nope FROM visits", ()),
        ("SELECT * FROM visits", ()),
        ("SELECT ward FROM visits", ()),
        ("SELECT COUNT(*) FROM nowhere", ()),
        ("SELECT COUNT(*) FROM visits WHERE", ()),
        ("SELECT nosuch(cost) FROM visits", ()),
        ("SELECT SUM(diagnosis) FROM visits", ()),
        ("SELECT COUNT(*) FROM visits WHERE cost > ?", ()),
        ("SELECT COUNT(*) FROM visits WHERE cost > ?", (float("nan"),)),
        ("SELECT COUNT(*) FROM visits WHERE cost > ?", ([1],)),
        ("SELECT COUNT(*) FROM visits WHERE ward = ?", ("a\0b",)),
        ("SELECT COUNT(*) FROM visits WHERE ward = %s", ("a",)),
        ("SET epsilon = 0", ()),
        ("SET nosuch = 1", ()),
        ("SHOW nosuch", ()),
        ("INSERT INTO visits VALUES (1)", ()),
        ("COPY (SELECT COUNT(*) FROM visits WHERE nights > 13) TO STDOUT", ()),
        ("EXPLAIN SELECT nope FROM visits", ()),
        ("EXPLAIN ANALYZE SELECT COUNT(*) FROM visits", ()),
        ("SELECT CAST('x' AS integer)", ()),
        ("", ()),
        ("  -- nothing\n", ()),
    ],
)
def test_an_error(both: Both, sql: str, parameters: tuple) -> None:
    """The same class, text, SQLSTATE, detail, hint, and place in the statement."""
    with pytest.raises(dpsql.Error) as there:
        both.remote.sql(sql, parameters)
    with pytest.raises(dpsql.Error) as here:
        both.here.sql(sql, parameters)
    assert said(there.value) == said(here.value)


def said(error: dpsql.Error) -> tuple:
    fields = (error.message, error.sqlstate, error.detail, error.hint, error.span, error.statement, error.charge)
    return (type(error), str(error), *fields)


def test_a_statement_beyond_the_budget(both: Both) -> None:
    sql, settings = "SELECT SUM(cost) FROM visits WHERE nights > {}", {"epsilon": 1.5, "delta": 0}
    with dpsql.connect(both.server.dsn("bob")) as there, dpsql.connect(both.server.schema, "bob") as here:
        there.sql(sql.format(1), settings=settings)
        with pytest.raises(dpsql.OperationalError) as refused:
            there.sql(sql.format(2), settings=settings)
        with pytest.raises(dpsql.OperationalError) as expected:
            here.sql(sql.format(2), settings=settings)
    assert refused.value.sqlstate == "53400" and said(refused.value) == said(expected.value)


@pytest.mark.parametrize(
    ("sql", "parameters", "settings"),
    [
        ("SELECT COUNT(*) FROM visits", (), {}),
        ("SELECT ward, AVG(cost), MEDIAN(cost) FROM visits WHERE nights > ? GROUP BY ward", (2,), {"epsilon": 0.2}),
        ("SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis", (), {"noise": "laplace"}),
        ("SELECT 1", (), {}),
    ],
)
def test_explain(both: Both, sql: str, parameters: tuple, settings: dict) -> None:
    there = both.remote.explain(sql, parameters, settings=settings)
    here = both.here.explain(sql, parameters, settings=settings)
    assert there == here and str(there) == str(here)


def test_explain_of_what_is_wrong(both: Both) -> None:
    for sql in ("SELECT nope FROM visits", "SELECT\n * FROM visits", "nonsense", "SET epsilon = 1"):
        with pytest.raises(dpsql.Error) as there:
            both.remote.explain(sql)
        with pytest.raises(dpsql.Error) as here:
            both.here.explain(sql)
        assert said(there.value) == said(here.value)


def test_schema_and_account_as_the_server_reports_them(both: Both) -> None:
    assert both.remote.budget() == both.here.budget() and str(both.remote.budget()) == str(both.here.budget())
    assert both.remote.tables() == both.here.tables()
    assert both.remote.functions() == both.here.functions()
    assert both.remote.settings() == both.here.settings()
    assert both.remote.user == both.here.user == "ana"
    assert both.remote.database == both.here.database
    assert both.remote.autocommit is True


def test_one_statement_at_a_time(both: Both) -> None:
    with pytest.raises(dpsql.ProgrammingError) as caught:
        both.remote.sql("SELECT 1; SELECT 2")
    assert caught.value.sqlstate == "42601"


def test_a_setting_of_one_statement_holds_before_it_runs(both: Both) -> None:
    """With a delta of 0 no unknown group could be selected: it is the statement's own that counts."""
    sql = "SELECT diagnosis, COUNT(*) FROM visits WHERE cost > ? GROUP BY diagnosis"
    with dpsql.connect(both.server.dsn("ana", delta="0")) as remote:
        with pytest.raises(dpsql.Error):
            remote.sql(sql, [9])
        assert remote.sql(sql, [9], settings={"delta": "1e-7"}).rows
        assert remote.explain(sql, [9], settings={"delta": "1e-7"}).paid == (True,)


def test_free(both: Both) -> None:
    sql = "SELECT COUNT(*) FROM visits WHERE nights = 13"
    before = both.remote.budget()
    with pytest.raises(dpsql.OperationalError, match="only what is free") as caught:
        both.remote.sql(sql, free=True)
    assert caught.value.sqlstate == "53400" and both.remote.budget() == before
    asked = both.remote.sql(sql)
    assert both.remote.sql(sql, free=True).rows == asked.rows


def test_settings_of_one_statement_do_not_stay(both: Both) -> None:
    both.remote.sql("SELECT COUNT(*) FROM visits WHERE nights = 12", settings={"epsilon": 0.01})
    assert both.remote.sql("SHOW epsilon").scalar() == "1"
    with pytest.raises(dpsql.ProgrammingError):
        both.remote.sql("SELECT 1", settings={"epsilon": -1})
    assert both.remote.sql("SELECT 1", settings={"epsilon": 2}).scalar() == 1


def test_a_transaction_keeps_settings(both: Both) -> None:
    remote = both.remote
    remote.sql("BEGIN")
    remote.sql("SET epsilon = 0.5")
    assert remote.sql("SHOW epsilon").scalar() == "0.5"
    remote.rollback()
    assert remote.sql("SHOW epsilon").scalar() == "1"
    remote.commit()


def test_executemany_is_for_commands(both: Both) -> None:
    cursor = both.remote.cursor()
    cursor.executemany("SET epsilon = ?", [[0.5], [0.25]])
    assert both.remote.sql("SHOW epsilon").scalar() == "0.25"
    cursor.execute("RESET epsilon")
    with pytest.raises(dpsql.ProgrammingError):
        cursor.executemany("SELECT COUNT(*) FROM visits WHERE nights > ?", [[1], [2]])


def test_a_long_answer(both: Both) -> None:
    """Of more than one notice of error bars, and more than one read of the socket."""
    sql = "SELECT i, COUNT(*) AS n FROM visits, range(?) r(i) GROUP BY i ORDER BY i"
    many = "WITH one AS (SELECT COUNT(*) AS n FROM visits) SELECT n + i AS n, [i] AS list FROM one, range(20000) r(i)"
    there, here = both.remote.sql(many), both.here.sql(many)
    assert there.rows == here.rows and len(there) == 20_000 and there.errors == here.errors
    with pytest.raises(dpsql.Error):
        both.remote.sql(sql, [10**7])


def test_sqlalchemy(both: Both) -> None:
    """Statements, settings, error bars and reflection, by the dialect that a schema is opened with."""
    from sqlalchemy import MetaData, create_engine, func, select

    from dpsql.interfaces.sqlalchemy import told

    url = both.server.dsn("ana").replace("postgresql:", "dpsql:")
    engine = create_engine(url, pool_pre_ping=True, pool_size=1, max_overflow=0)
    metadata = MetaData()
    metadata.reflect(engine)
    assert set(metadata.tables) == {table.name for table in both.here.tables()}
    visits = metadata.tables["visits"]
    asked = select(visits.c.ward, func.count().label("n")).where(visits.c.nights > 11).group_by(visits.c.ward)
    with engine.connect() as connection:
        result = connection.execute(asked, execution_options={"epsilon": 0.25, "empty_groups": "show"})
        rows = result.all()
        assert len(rows) == 6 and told(result).loss.epsilon == Fraction(1, 4)
        assert told(result).errors[0][1].stderr > 0
        connection.exec_driver_sql("SET epsilon = 0.5")
        assert connection.exec_driver_sql("SHOW epsilon").scalar() == "0.5"
    with engine.connect() as connection:  # it went back to its pool, and forgot
        assert connection.exec_driver_sql("SHOW epsilon").scalar() == "1"
        again = connection.execute(asked, execution_options={"epsilon": 0.25, "empty_groups": "show"})
        assert again.all() == rows
    engine.dispose()
