"""CREATE SYNTHETIC TABLE through a session: what is charged, what comes back, and a table that is one's own."""

import datetime as dt
import json
import shutil
from collections.abc import Iterator
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.compiler.parse.parameters import inline_parameters
from dpsql.compiler.parse.parser import tokenize
from dpsql.compiler.plan.steps import Axis, Bins
from dpsql.errors import (
    BudgetExceeded,
    DataError,
    Error,
    InvalidParameter,
    LimitExceeded,
    ProgrammingError,
    UnboundedValues,
    UnknownTable,
    Unsupported,
)
from dpsql.interfaces.dbapi.connection import Connection
from dpsql.ledger.audit import run_audit
from dpsql.session.artifacts.synthetic_table import build_bin_sampler
from dpsql.session.session import Session
from dpsql.types import DOUBLE, INTEGER
from tests.support.shop import open_shop

SCHEMAS = Path(__file__).parents[4] / "schemas"
LIKE = "CREATE SYNTHETIC TABLE {} AS SELECT sex, birth_year, insured FROM patients WITH (epsilon = 0.5)"


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    shutil.copytree(SCHEMAS, tmp_path / "schemas", ignore=shutil.ignore_patterns("*.ledger*"))
    return tmp_path / "schemas" / "clinic.yaml"


@pytest.fixture
def ana(clinic: Path) -> Iterator[Connection]:
    with dpsql.connect(clinic, user="ana") as connection:
        yield connection


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """For what charges nothing."""
    folder = tmp_path_factory.mktemp("shared") / "schemas"
    shutil.copytree(SCHEMAS, folder, ignore=shutil.ignore_patterns("*.ledger*"))
    with dpsql.connect(folder / "clinic.yaml", user="ana") as connection:
        yield connection
        assert connection.budget().charges == 0


@pytest.fixture
def quiet(tmp_path: Path) -> Session:
    """Without noise."""
    return open_shop(tmp_path)[0]


def asked_of(connection: Connection, sql: str, parameters: tuple[object, ...] = ()) -> dpsql.Cursor:
    cursor = connection.cursor()
    cursor.execute(sql, parameters)
    return cursor


def rows(connection: Connection, sql: str) -> list[Any]:
    cursor = asked_of(connection, sql)
    return cursor.fetchall() if cursor.description else []


# --- what is made ----------------------------------------------------------------------------------------------------


def test_a_synthetic_table_is_charged_once_and_queries_of_it_are_free(ana: Connection) -> None:
    cursor = asked_of(ana, LIKE.format("people"))
    assert [column[0] for column in cursor.description or ()] == ["columns", "kind", "measured", "expected_error"]
    told = cursor.fetchall()
    assert [row[:2] for row in told[:4]] == [("sex", "one-way"), ("birth_year", "one-way"), ("insured", "one-way"),
                                             ("sex, birth_year", "two-way")]  # fmt: skip
    assert len(told) == 6 and all(row[3] > 0 for row in told)
    assert cursor.loss and ana.budget().charges == 1
    some = rows(ana, "SELECT * FROM people LIMIT 10")
    assert len(some) == 10
    assert all(sex in ("f", "m", "x", None) and 1920 <= year <= 2026 for sex, year, _ in some)
    ((count, wards),) = rows(ana, "SELECT COUNT(*), COUNT(DISTINCT floor) FROM people CROSS JOIN wards WHERE sex = 'f'")
    assert count > 500 and wards > 1
    free = asked_of(ana, "SELECT p.sex, COUNT(*) OVER (), a.sex FROM people p JOIN people a USING (birth_year) LIMIT 1")
    assert not free.loss and ana.budget().charges == 1


def test_the_same_again_is_the_same_and_free(ana: Connection) -> None:
    rows(ana, LIKE.format("people"))
    cursor = asked_of(ana, LIKE.format("others"))
    assert not cursor.loss and ana.budget().charges == 1
    assert rows(ana, "SELECT * FROM people EXCEPT ALL SELECT * FROM others") == []


def test_without_noise_it_is_like_the_table(quiet: Session) -> None:
    made = quiet.execute(
        "CREATE SYNTHETIC TABLE p AS SELECT region, vip, age, joined FROM people WHERE age IS NOT NULL"
    )
    assert made.command == "CREATE SYNTHETIC TABLE" and made.notices[-1].startswith('"p" has ')
    exact = dict(quiet.execute("SELECT region, COUNT(*) FROM people WHERE age IS NOT NULL GROUP BY region").rows)
    found = dict(quiet.execute("SELECT region, COUNT(*) FROM p GROUP BY region").rows)
    assert {key: pytest.approx(value, abs=8) for key, value in exact.items()} == found
    ((low, high, first, last),) = quiet.execute("SELECT MIN(age), MAX(age), MIN(joined), MAX(joined) FROM p").rows
    assert 0 <= low < 30 and 60 < high <= 120 and first.year >= 2020 and last.year <= 2023


def test_values_that_are_not_declared_are_released_first(quiet: Session) -> None:
    asked = "CREATE SYNTHETIC TABLE o AS SELECT city, kind FROM orders WITH (epsilon = 1000)"
    explained = str(quiet.explain(asked))
    assert "epsilon 1000" in explained and "the values of city are not declared" in explained
    made = quiet.execute(asked)
    assert len(made.receipts) == 2
    assert made.loss.rho <= dpsql_rho(1000) and made.loss.delta > 0
    cities = {row[0] for row in quiet.execute("SELECT DISTINCT city FROM o").rows}
    assert "Łódź" in cities and "o'Neil" in cities


def dpsql_rho(epsilon: int) -> F:
    return F(epsilon) ** 2 / 2


@pytest.mark.parametrize("method", ["mwem", "marginals", "independent", "auto"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_every_method_with_every_noise(quiet: Session, method: str, noise: str) -> None:
    asked = f"""CREATE SYNTHETIC TABLE o AS SELECT kind, amount, qty, price, paid, made FROM orders
                WITH (epsilon = 100, method = '{method}', noise = {noise}, bins = 5, rows = 300)"""
    lines = str(quiet.explain(asked))
    assert (f"{noise} noise" in lines and "one-way" in lines) or method in ("mwem", "auto")
    made = quiet.execute(asked)
    assert (made.loss.epsilon is None) == (noise == "gaussian")
    assert "its counts must be scaled up" in made.notices[-1]
    ((count, low, high, paid),) = quiet.execute("SELECT COUNT(*), MIN(price), MAX(price), COUNT(paid) FROM o").rows
    assert count == 300 and 0 <= low <= high <= 500 and paid < 300
    assert [str(c.type) for c in quiet.execute("SELECT * FROM o LIMIT 0").columns] == [
        "text", "double", "integer", "decimal(9,2)", "boolean", "timestamp"]  # fmt: skip
    assert all(
        float(value) * 4 % 1 == 0 for (value,) in quiet.execute("SELECT amount FROM o WHERE amount IS NOT NULL").rows
    )


def test_the_ledger_adds_it_up_again(quiet: Session) -> None:
    quiet.execute("CREATE SYNTHETIC TABLE o AS SELECT kind, qty FROM orders WITH (epsilon = 10, rounds = 5)")
    assert run_audit(quiet.dataset.ledger).findings == ()


def test_values_of_a_bin_reach_the_bounds() -> None:
    bins = Bins(0, 3, F(10), INTEGER, True)
    within = build_bin_sampler(Axis("x", INTEGER, None, bins, True), (F(0), F(33)), None)
    assert within is not None
    assert within.firsts == (0, 5, 15, 25, 0) and within.widths == (5, 10, 10, 9, 1)
    assert within.value_at(3, 8, bins) == 33
    assert (
        build_bin_sampler(Axis("x", INTEGER, None, Bins(1, 4, F(1), INTEGER, True), False), (F(1), F(4)), None) is None
    )
    fine = build_bin_sampler(Axis("x", DOUBLE, None, Bins(0, 1, F(1), DOUBLE, False), False), (F(0), F(1)), None)
    assert fine is not None and fine.widths == (512, 513)


# --- names -----------------------------------------------------------------------------------------------------------


def test_listed_described_and_dropped(ana: Connection) -> None:
    rows(ana, LIKE.format("people"))
    assert [row[:2] for row in rows(ana, "SHOW SYNTHETIC TABLES")] == [("people", LIKE.format("people"))]
    assert ("people", "synthetic") in rows(ana, "SHOW TABLES")
    columns = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'people'"
    assert rows(ana, columns) == [("sex", "text"), ("birth_year", "integer"), ("insured", "boolean")]
    assert rows(ana, "SELECT 'people'::regclass::text") == [("people",)]
    rows(ana, "DROP SYNTHETIC TABLE people")
    with pytest.raises(UnknownTable):
        rows(ana, "SELECT * FROM people")
    assert rows(ana, "SHOW SYNTHETIC TABLES") == [] and rows(ana, columns) == []
    assert not asked_of(ana, LIKE.format("people")).loss  # it was paid for


def test_one_is_shown_as_it_was_reported(ana: Connection) -> None:
    told = rows(ana, LIKE.format("people"))
    cursor = asked_of(ana, "SHOW SYNTHETIC TABLE People")
    assert cursor.fetchall() == told and not cursor.loss and ana.budget().charges == 1
    ((text,),) = rows(ana, "SHOW SYNTHETIC TABLE people (FORMAT JSON)")
    assert [tuple(one.values()) for one in json.loads(text)] == told
    with pytest.raises(UnknownTable, match='synthetic table "nothing" does not exist'):
        rows(ana, "SHOW SYNTHETIC TABLE nothing")


def test_names_that_are_there(ana: Connection) -> None:
    rows(ana, LIKE.format("people"))
    charges = ana.budget().charges
    other = "CREATE {} SYNTHETIC TABLE {} people AS SELECT nights FROM visits WITH (epsilon = 0.1)"
    with pytest.raises(Error, match="already exists"):
        rows(ana, other.format("", ""))
    assert rows(ana, other.format("", "IF NOT EXISTS")) == []
    assert ana.budget().charges == charges
    rows(ana, other.format("OR REPLACE", ""))
    assert ana.budget().charges == charges + 1
    assert {0 <= nights <= 14 for (nights,) in rows(ana, "SELECT nights FROM people")} == {True}
    rows(ana, "DROP SYNTHETIC TABLE IF EXISTS nothing")
    with pytest.raises(Error, match="does not exist"):
        rows(ana, "DROP SYNTHETIC TABLE nothing")


@pytest.mark.parametrize("name", ["visits", "VISITS", "wards", "pg_class"])
def test_names_of_others(shared: Connection, name: str) -> None:
    with pytest.raises(Error, match="taken"):
        rows(shared, LIKE.format(name))
    assert shared.budget().charges == 0


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ("SELECT visit_id FROM visits", UnboundedValues),
        ("SELECT COUNT(*) FROM visits", Unsupported),
        ("SELECT ward FROM wards", Unsupported),
        ("SELECT nights FROM visits WITH (method = 'magic')", InvalidParameter),
        ("SELECT nights FROM visits WITH (rounds = 0)", InvalidParameter),
        ("SELECT nights FROM visits WITH (rounds = 1e3)", InvalidParameter),
        ("SELECT nights FROM visits WITH (bins = 1)", InvalidParameter),
        ("SELECT nights FROM visits WITH (rows = 100000000)", InvalidParameter),
        ("SELECT nights FROM visits WITH (max_error = 5)", InvalidParameter),
        ("SELECT nights FROM visits WITH (epsilon = 0)", InvalidParameter),
        ("SELECT nights FROM visits WITH (noise = gaussian, delta = 0)", InvalidParameter),
        ("SELECT ward, nights FROM visits WITH (delta = 0)", InvalidParameter),
        ("SELECT nights FROM visits WITH (colour = 'red')", Unsupported),
        ("SELECT nights, nights FROM visits", Error),
        ("SELECT nothing FROM visits", Error),
        ("SELECT cost, at, nights, insured FROM visits JOIN patients USING (patient_id) "
         "WITH (method = 'mwem', bins = 256)", LimitExceeded),
        ("SELECT ward, cost FROM visits WITH (method = 'mwem', bins = 200)", LimitExceeded),
    ],
)  # fmt: skip
def test_what_is_refused_is_not_charged(shared: Connection, asked: str, error: type[Error]) -> None:
    for sql in (f"CREATE SYNTHETIC TABLE t AS {asked}", f"EXPLAIN CREATE SYNTHETIC TABLE t AS {asked}"):
        with pytest.raises(error):
            rows(shared, sql)
    assert shared.budget().charges == 0


@pytest.mark.parametrize(("composition", "beyond"), [("zcdp", "8"), ("basic", "5.2"), ("advanced", "8")])
def test_values_and_table_are_covered_together_or_none_is_charged(clinic: Path, composition: str, beyond: str) -> None:
    """Whether the account's own budget is short, one query may ask for less, or that of all is short."""
    made = "CREATE SYNTHETIC TABLE t AS SELECT ward, nights FROM visits WITH (epsilon = {})"
    text = clinic.read_text()
    for terms, epsilon, says in [
        ("", beyond, rf'asks for epsilon {beyond}, which is .* of the budget of "ana"'),
        (", largest_query: {epsilon: 0.4, delta: 5e-7}", "0.5", "asks for epsilon 0.5, and one query"),
        (", parent: small", "0.6", "the budget that you share with others does not cover"),
    ]:
        changed = text.replace("5e-7}}", f"5e-7}}, composition: {composition}{terms}}}", 1)
        changed = changed.replace("analysts:", "groups:\n  small: {budget: {epsilon: 0.3, delta: 5e-7}}\n\nanalysts:")
        clinic.write_text(changed.replace("clinic.ledger", f"clinic{epsilon}.ledger"))
        with dpsql.connect(clinic, user="ana") as connection:
            with pytest.raises(BudgetExceeded, match=says):
                rows(connection, made.format(epsilon))
            assert connection.budget().charges == 0


def test_what_was_paid_for_is_made_again_when_nothing_is_left(ana: Connection) -> None:
    made = "CREATE OR REPLACE SYNTHETIC TABLE t AS SELECT ward, nights FROM visits WITH (epsilon = 4.9)"
    assert asked_of(ana, made).loss and ana.budget().charges == 2  # nothing is kept of the charge that was tried
    with pytest.raises(BudgetExceeded):
        rows(ana, made.replace("nights", "cost"))
    charges = ana.budget().charges
    assert not asked_of(ana, made).loss and ana.budget().charges == charges


def test_more_released_values_than_a_method_takes(quiet: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are paid for by then: fewer are used, or the other method."""
    monkeypatch.setattr("dpsql.session.artifacts.create_synthetic_table.MAX_VALUES", 2)
    monkeypatch.setattr("dpsql.privacy.synthetic.mwem.MAX_CELLS", 3)
    made = quiet.execute("CREATE SYNTHETIC TABLE o AS SELECT city, kind FROM orders WITH (epsilon = 1000)")
    _, first, second, scaled, _ = made.notices
    assert first.startswith('"city" has ') and "the first 2 are used" in first
    assert second.startswith("made by marginals: ")
    assert scaled.startswith("a unit counts like at most ")
    assert len(quiet.execute("SELECT DISTINCT city FROM o").rows) == 2


def test_no_value_that_enough_units_have(ana: Connection) -> None:
    asked = "CREATE SYNTHETIC TABLE t AS SELECT ward FROM visits WHERE cost < 0.01 WITH (epsilon = 0.01)"
    with pytest.raises(DataError, match="enough privacy units"):
        rows(ana, asked)


def test_explain_is_free(shared: Connection) -> None:
    lines = "\n".join(str(row[0]) for row in rows(shared, f"EXPLAIN {LIKE.format('people')}"))
    assert "epsilon 0.5" in lines and "synthetic table by mwem" in lines and "total: gaussian noise of" in lines
    assert shared.budget().charges == 0


def test_parameters(ana: Connection) -> None:
    asked_of(
        ana, "CREATE SYNTHETIC TABLE t AS SELECT nights FROM visits WHERE ward = ? WITH (epsilon = 0.1)", ("oncology",)
    )
    assert rows(ana, "SELECT COUNT(*) > 0 FROM t") == [(True,)]
    ((_, statement, _),) = rows(ana, "SHOW SYNTHETIC TABLES")
    assert statement.endswith("WHERE ward = 'oncology' WITH (epsilon = 0.1)")
    rows(ana, "DROP SYNTHETIC TABLE t")
    rows(ana, statement)
    assert ana.budget().charges == 1  # what is shown is what was asked


@pytest.mark.parametrize(
    ("sql", "values", "written"),
    [
        ("x = ? AND y = ?", ("it's", None), "x = 'it''s' AND y = NULL"),
        ("x = $2 AND y=$1,$2", (1, True), "x = TRUE AND y=1,TRUE"),
        ("x -? > ?", (-3, F(1, 2).__float__()), "x - -3 > 0.5"),
        ("'?' = x AND \"?\" = ? -- ?", (dt.date(2020, 1, 2),), "'?' = x AND \"?\" = '2020-01-02' -- ?"),
        ("x - ?", (dt.timedelta(days=2),), "x - INTERVAL '0 months 2 days 0 microseconds'"),
        ("x = 1", (), "x = 1"),
    ],
)
def test_a_statement_with_its_values(sql: str, values: tuple[Any, ...], written: str) -> None:
    assert inline_parameters(sql, tokenize(sql), values) == written


# --- what it shows of itself -----------------------------------------------------------------------------------------


def test_columns_have_the_bounds_and_values_of_what_they_are_made_of(quiet: Session) -> None:
    quiet.execute("CREATE SYNTHETIC TABLE s AS SELECT kind, amount, qty, price, made, paid, city FROM orders")
    described = {row[0]: row[2:4] for row in quiet.execute("DESCRIBE s").rows}
    declared = {row[0]: row[2:4] for row in quiet.execute("DESCRIBE orders").rows}
    assert all(described[name] == declared[name] for name in ("kind", "amount", "qty", "price", "made"))
    assert described["city"][1]  # those that were released
    low, high, least, most = quiet.execute("SELECT MIN(amount), MAX(amount), MIN(qty), MAX(qty) FROM s").rows[0]
    assert -100 <= low <= high <= 1000 and -5 <= least <= most <= 20
    assert {one.name: one.kind for one in quiet.tables()}["s"] == "synthetic"
    (shown,) = (one for one in quiet.tables() if one.name == "s")
    assert shown.is_view and shown.columns[1].bounds == "[-100, 1000]" and shown.columns[0].values is not None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(o.amount - s.m) FROM orders AS o JOIN (SELECT kind, AVG(amount) AS m FROM s GROUP BY kind) AS s"
        " USING (kind)",
        "SELECT SUM(s.amount) FROM orders AS o JOIN (SELECT oid, amount FROM s2 AS t) AS s USING (oid)",
        "SELECT SUM(s2.amount) FROM orders JOIN s2 USING (oid)",
    ],
)
def test_bounds_hold_where_private_rows_are_joined(quiet: Session, sql: str) -> None:
    quiet.execute("CREATE SYNTHETIC TABLE s AS SELECT kind, amount FROM orders")
    quiet.execute("CREATE SYNTHETIC TABLE s2 AS SELECT qty::BIGINT AS oid, amount FROM orders WITH (rows = 500)")
    quiet.execute(sql)
    other = sql.replace("AVG(amount) AS m", "SUM(amount) AS m")
    if other != sql:  # without bounds, a norm has to be chosen first
        assert quiet.compile_statement(other).undecided


# --- two sessions ----------------------------------------------------------------------------------------------------


def test_a_name_that_another_session_took_meanwhile(ana: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    rows(ana, LIKE.format("people"))
    monkeypatch.setattr("dpsql.session.artifacts.create._find_existing", lambda queries, command: None)
    with pytest.raises(ProgrammingError, match="already exists") as caught:
        rows(ana, LIKE.format("people").replace("0.5", "0.25"))
    assert "with another name" in str(caught.value.hint) and "charged" in str(caught.value.detail)
    assert ana.budget().charges == 2
    rows(ana, LIKE.format("others").replace("0.5", "0.25"))
    assert ana.budget().charges == 2 and rows(ana, "SELECT COUNT(*) > 0 FROM others") == [(True,)]


def test_a_rollback_takes_back_neither_the_charge_nor_the_table(ana: Connection) -> None:
    for sql in ("BEGIN", LIKE.format("people"), "ROLLBACK"):
        rows(ana, sql)
    assert rows(ana, "SELECT COUNT(*) > 0 FROM people") == [(True,)] and ana.budget().charges == 1
