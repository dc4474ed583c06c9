"""What CREATE SYNTHETIC TABLE and CREATE MODEL say to who made a mistake: where it is, and what to write instead."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import dpsql
from dpsql.errors import BudgetExceeded, Error, InvalidSyntax, UnboundedValues, UnknownTable
from dpsql.session.session import Session
from tests.support.shop import open_shop

SCHEMAS = Path(__file__).parents[4] / "schemas"


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Without noise; what is told here is told before any charge."""
    session = open_shop(tmp_path_factory.mktemp("shop"))[0]
    session.execute("CREATE SYNTHETIC TABLE seen AS SELECT age, vip FROM people WITH (epsilon = 100)")
    charges = session.budget().charges
    yield session
    assert session.budget().charges == charges
    session.close()


def refused(session: Session, sql: str) -> Error:
    with pytest.raises(Error) as caught:
        session.execute(sql)
    return caught.value


def place(error: Error) -> str:
    assert error.span is not None and error.statement is not None
    return error.statement[error.span.start : error.span.end]


# --- columns ---------------------------------------------------------------------------------------------------------


def test_the_first_thing_that_anybody_types(quiet: Session) -> None:
    error = refused(quiet, "CREATE SYNTHETIC TABLE p AS SELECT * FROM people WITH (epsilon = 2)")
    assert isinstance(error, UnboundedValues) and place(error) == "*"
    assert error.message == 'column "uid" is the id of the privacy unit, and has no values to learn from'
    assert error.hint == "Leave it out, for example: SELECT region, age, vip, joined FROM people."
    quiet.explain("CREATE SYNTHETIC TABLE p AS SELECT region, age, vip, joined FROM people WITH (epsilon = 2)")


@pytest.mark.parametrize(
    ("sql", "at", "what"),
    [
        ("CREATE SYNTHETIC TABLE p AS SELECT age, uid FROM people", "uid", "the id of the privacy unit"),
        ("CREATE SYNTHETIC TABLE p AS SELECT kind, oid AS o FROM orders", "oid AS o", "a key"),
        ("CREATE MODEL p AS LINEAR REGRESSION ON age USING vip, uid FROM people", "uid", "the id of the privacy unit"),
        ("EXPLAIN CREATE MODEL p AS LINEAR REGRESSION ON price USING oid FROM orders", "oid", "a key"),
    ],
)
def test_ids_are_to_be_left_out(quiet: Session, sql: str, at: str, what: str) -> None:
    error = refused(quiet, sql)
    assert what in error.message and place(error) == at
    assert error.hint is not None and error.hint.startswith("Leave it out. Of ") and "joined" not in error.hint


def test_without_columns_that_fit_there_is_no_list(quiet: Session) -> None:
    error = refused(quiet, "CREATE SYNTHETIC TABLE p AS SELECT a.uid, b.oid FROM people a JOIN orders b USING (uid)")
    assert error.hint == "Leave it out."


@pytest.mark.parametrize(
    ("sql", "at", "message"),
    [
        ("CREATE MODEL p AS LINEAR REGRESSION ON region USING age FROM people", "region", '"region" is no number'),
        ("CREATE MODEL p AS LOGISTIC REGRESSION ON kind USING qty FROM orders", "kind", '"kind" has 3 values'),
        ("CREATE MODEL p AS LOGISTIC REGRESSION ON paid USING qty, made AS m FROM orders", "made AS m",
         '"m" is a time'),
        ("CREATE MODEL p AS LOGISTIC REGRESSION ON paid USING note FROM orders", "note", "the values of column"),
        ("CREATE SYNTHETIC TABLE p AS SELECT vip, CAST(note AS double) AS n FROM people JOIN orders USING (uid)",
         "note AS double) AS n", 'column "n" has no bounds'),
        ("CREATE SYNTHETIC TABLE p AS SELECT vip, age, age AS vip FROM people", "age AS vip",
         'column "vip" is there twice'),
    ],
)  # fmt: skip
def test_a_column_is_reported_by_its_position(quiet: Session, sql: str, at: str, message: str) -> None:
    for written in (sql, f"EXPLAIN {sql}"):
        error = refused(quiet, written)
        assert error.message.startswith(message) and place(error) == at


def test_a_time_without_bounds_takes_a_range(quiet: Session) -> None:
    days = "(SELECT CAST(note AS date) AS d FROM orders) AS t"
    error = refused(quiet, f"CREATE SYNTHETIC TABLE p AS SELECT d FROM {days}")
    assert error.hint is not None and "WHERE: d BETWEEN" in error.hint and place(error) == "d"
    ranged = f"{days} WHERE d BETWEEN DATE '2024-01-01' AND DATE '2024-03-01'"
    quiet.explain(f"CREATE SYNTHETIC TABLE p AS SELECT d FROM {ranged}")


@pytest.mark.parametrize("before", ["", "EXPLAIN "])
def test_every_column_of_a_table_has_a_name(quiet: Session, before: str) -> None:
    error = refused(quiet, before + "CREATE SYNTHETIC TABLE p AS SELECT vip, age*2 FROM people")
    assert isinstance(error, InvalidSyntax) and place(error) == "age*2"
    assert error.hint == "Write AS and a name behind it: … AS x."
    quiet.explain("CREATE SYNTHETIC TABLE p AS SELECT vip, (age*2) AS x FROM people")


# --- what one has made -----------------------------------------------------------------------------------------------


def test_a_query_for_rows_is_shown_the_accounts_own_synthetic_table(quiet: Session) -> None:
    error = refused(quiet, "SELECT * FROM people LIMIT 10")
    assert error.hint is not None and error.hint.endswith("For rows like them: SELECT * FROM seen LIMIT 10.")
    other = refused(quiet, "SELECT * FROM orders LIMIT 10")
    assert other.hint is not None and "CREATE SYNTHETIC TABLE orders_like AS SELECT" in other.hint


def test_a_name_that_is_taken_is_not_proposed(tmp_path: Path) -> None:
    session = open_shop(tmp_path)[0]
    made = "CREATE SYNTHETIC TABLE orders_like AS SELECT vip FROM people WHERE age > ? WITH (epsilon = 100)"
    session.execute(made, [5])
    error = refused(session, "SELECT * FROM orders LIMIT 10")
    assert error.hint is not None and "CREATE SYNTHETIC TABLE orders_like2 AS SELECT" in error.hint
    error = refused(session, "SELECT * FROM people LIMIT 10")
    assert error.hint is not None and error.hint.endswith("SELECT * FROM orders_like LIMIT 10.")


def test_a_table_that_is_not_there_is_reported_with_ones_own(quiet: Session) -> None:
    assert refused(quiet, "SELECT * FROM v2").hint == "Tables: people, orders, items, seen."
    assert refused(quiet, "SELECT * FROM sen").hint == 'Perhaps you meant "seen".'


def test_a_table_of_ones_own_is_dropped_by_its_kind(quiet: Session) -> None:
    hint = refused(quiet, "DROP TABLE seen").hint
    assert hint is not None and "DROP SYNTHETIC TABLE" in hint


# --- what is charged -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "knob"),
    [
        ("CREATE SYNTHETIC TABLE p AS SELECT region FROM people WITH (epsilon = 500)", "WITH (epsilon = 7.99)"),
        ("CREATE MODEL p AS LINEAR REGRESSION ON age USING region FROM people WITH (epsilon = 500, bins = 5)",
         "WITH (epsilon = 7.99)"),
        ("SELECT RANDOMIZED(region, 50) FROM people", "RANDOMIZED(…, 7.99)"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 500) COUNT(*) FROM people", "OPTIONS (epsilon = 7.99)"),
    ],
)  # fmt: skip
def test_a_charge_that_does_not_fit_is_reported_with_the_option_to_change(tmp_path: Path, sql: str, knob: str) -> None:
    shutil.copytree(SCHEMAS, tmp_path / "schemas", ignore=shutil.ignore_patterns("*.ledger*"))
    with dpsql.connect(tmp_path / "schemas" / "poll.yaml") as connection:
        with pytest.raises(BudgetExceeded) as caught:
            connection.cursor().execute(sql)
        assert str(caught.value.hint).startswith(f"A smaller charge may fit: {knob}.")
        with pytest.raises(BudgetExceeded, match="asks for epsilon 600") as caught:
            connection.cursor().execute("SELECT COUNT(*) FROM people", settings={"epsilon": "600"})
        assert str(caught.value.hint).startswith("A smaller charge may fit: SET epsilon = 7.99.")


# --- parameters ------------------------------------------------------------------------------------------------------


def test_a_parameter_in_options_is_as_if_it_were_written(tmp_path: Path) -> None:
    session = open_shop(tmp_path)[0]
    sql = "CREATE SYNTHETIC TABLE {} AS SELECT vip, age FROM people WHERE age < {} WITH (epsilon = {}, bins = {})"
    session.execute(sql.format("a", 50, "0.5", 4))
    charges = session.budget().charges
    again = session.execute(sql.format("b", "?", "?", "?"), [50, 0.5, 4])
    assert not again.loss.rho and session.budget().charges == charges
    session.execute(sql.format("c", "$3", "$1", "$2"), ["0.5", 4, 50])
    assert session.budget().charges == charges
    assert session.explain(sql.format("d", 50, "?", 4), [0.25]).epsilon == Fraction(1, 4)
    error = refused(session, sql.format("e", 50, "'x; y'", 4))
    assert error.message == 'epsilon must be a number, not "x; y"'
    with pytest.raises(Error) as caught:
        session.execute(sql.format("e", 50, "?", 4), ["x; y"])
    assert caught.value.message == error.message and place(caught.value) == "epsilon = ?"


# --- names -----------------------------------------------------------------------------------------------------------


def test_public_and_the_database_may_stand_before_a_name(tmp_path: Path) -> None:
    session = open_shop(tmp_path)[0]
    for before in ("public.", "main.", '"public".', "shop.public."):
        session.execute(f"CREATE SYNTHETIC TABLE {before}seen AS SELECT vip FROM people WITH (epsilon = 100)")
        assert session.execute("SELECT COUNT(*) > 0 FROM public.seen").rows == [(True,)]
        assert session.execute(f"SHOW SYNTHETIC TABLE {before}seen").rows
        session.execute(f"DROP SYNTHETIC TABLE IF EXISTS {before}seen")
        assert session.execute("SHOW SYNTHETIC TABLES").rows == []
        session.explain(f"CREATE MODEL {before}m AS LINEAR REGRESSION ON age USING vip FROM people")
    made = "CREATE SYNTHETIC TABLE {} AS SELECT vip FROM people"
    for sql, at in ((made.format("mine.seen"), "mine.seen"), (made.format("no.public.x"), "no.public.x"),
                    ("DROP SYNTHETIC TABLE pg_catalog.x", "pg_catalog.x"), ("SHOW MODEL no.public.m", "no.public.m"),
                    ("EXPLAIN " + made.format("no.public.x"), "no.public.x")):  # fmt: skip
        error = refused(session, sql)
        assert error.message.startswith("there is no schema") and place(error) == at
    assert isinstance(refused(session, made.format("a.shop.public.seen")), InvalidSyntax | UnknownTable)
