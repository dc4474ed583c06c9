"""URLs, pools and transactions: who asks, with which settings, and that neither comes from who asked before."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Engine, NullPool, StaticPool, create_engine, event, exc, func, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.pool import PoolResetState

import dpsql
from dpsql.errors import InterfaceError, StaleData
from dpsql.interfaces.sqlalchemy import DpsqlDialect, result_metadata
from dpsql.interfaces.sqlalchemy.dialect import _restore_settings

pytestmark = pytest.mark.slow


def shown(engine: Engine, name: str) -> str:
    with engine.connect() as connection:
        return str(connection.execute(text(f"SHOW {name}")).scalar())


# --- URLs ------------------------------------------------------------------------------------------------------------


def test_the_dialect_is_found_by_its_name() -> None:
    dialect = make_url("dpsql:///a.yaml").get_dialect()
    assert dialect is DpsqlDialect and (dialect.name, dialect.driver) == ("dpsql", "dpsql")
    assert dialect.import_dbapi() is dpsql and dialect().paramstyle == "qmark"


@pytest.mark.parametrize(
    ("url", "passed"),
    [
        ("dpsql:///a/b.yaml?user=ana&epsilon=0.5", "dpsql:///a/b.yaml?user=ana&epsilon=0.5"),
        ("dpsql:////srv/b.yaml", "dpsql:////srv/b.yaml"),
        ("dpsql:///a%20b.yaml?user=a%26b", "dpsql:///a%20b.yaml?user=a%26b"),
        ("dpsql:///a%3Fuser%3Dbi.yaml?user=ana", "dpsql:///a%3Fuser%3Dbi.yaml?user=ana"),
        ("dpsql:///a%23b.yaml", "dpsql:///a%23b.yaml"),
    ],
)
def test_a_url_says_to_dpsql_what_it_says_to_sqlalchemy(url: str, passed: str) -> None:
    assert DpsqlDialect().create_connect_args(make_url(url)) == ([passed], {})


@pytest.mark.parametrize(
    ("url", "passed"),
    [
        ("dpsql://ana@host/db", "dpsql://ana@host/db"),
        ("dpsql://j%C3%BCrg:a%40%2Fb@host:6000/db?epsilon=1", "dpsql://j%C3%BCrg:a%40%2Fb@host:6000/db?epsilon=1"),
        ("dpsql://ana:x@[::1]:7/db", "dpsql://ana:x@[::1]:7/db"),
        ("dpsql://host:5432/db?user=ana", "dpsql://host:5432/db?user=ana"),
    ],
)
def test_a_url_of_a_server(url: str, passed: str) -> None:
    assert DpsqlDialect().create_connect_args(make_url(url)) == ([passed], {})


def test_a_server_that_cannot_be_reached_and_no_password_is_reported() -> None:
    with pytest.raises(exc.OperationalError, match="no connection") as caught:
        create_engine("dpsql://ana:secret@127.0.0.1:1/db").connect()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("query", ["?user=ana&user=bi", "?user=ana&USER=bi", "?user=nobody", "", "?epsilon=1&epsilon=2",
                                   "?user=ana&nonsense=1", "?user=ana%26user=bi"])  # fmt: skip
def test_a_url_that_names_no_one_user_is_refused(engines: Callable[..., Engine], query: str) -> None:
    with pytest.raises(exc.DBAPIError):
        engines(query).connect()


def test_settings_of_the_url(engines: Callable[..., Engine]) -> None:
    engine = engines("?user=ana&epsilon=0.5&contributions_rows=2")
    assert (shown(engine, "epsilon"), shown(engine, "contributions.rows")) == ("0.5", "2")


# --- pools -----------------------------------------------------------------------------------------------------------

ODD = ["SET epsilon = 3", "SET delta = 0", "SET noise = laplace", "SET nonnegative = on", "SET derive = off",
       "SET contributions.rows = 1", "SET max_error = 5", "SET confidence = 0.5", "SET statement_timeout = 1000",
       "SET application_name = 'x'", "BEGIN", "SAVEPOINT s", "SET LOCAL epsilon = 4"]  # fmt: skip


@pytest.mark.parametrize("options", [{"pool_size": 1, "max_overflow": 0}, {"poolclass": StaticPool},
                                     {"pool_size": 1, "pool_reset_on_return": None}], ids=str)  # fmt: skip
@pytest.mark.parametrize("end", ["return", "commit", "error"])
def test_no_setting_comes_to_the_next_user_of_the_connection(
    engines: Callable[..., Engine], options: dict[str, Any], end: str
) -> None:
    engine = engines("?user=ana&epsilon=0.5", **options)
    with engine.connect() as connection:
        fresh = connection.execute(text("SHOW ALL")).all()
        driver = connection.connection.driver_connection
    try:
        with engine.connect() as connection:
            for command in ODD:
                connection.exec_driver_sql(command)
            assert connection.execute(text("SHOW ALL")).all() != fresh
            if end == "commit":
                connection.commit()
            elif end == "error":
                raise RuntimeError
    except RuntimeError:
        pass
    with engine.connect() as connection:
        assert connection.connection.driver_connection is driver  # the same one again
        assert connection.execute(text("SHOW ALL")).all() == fresh
        assert connection.execute(text("SHOW epsilon")).scalar() == "0.5"


def test_no_transaction_comes_to_the_next_either(engines: Callable[..., Engine]) -> None:
    """Begun behind SQLAlchemy's back, in a pool that is told not to roll back."""
    engine = engines("?user=ana", pool_size=1, max_overflow=0, pool_reset_on_return=None)
    raw = engine.raw_connection()
    for command in ("BEGIN", "SAVEPOINT s", "SET LOCAL epsilon = 4"):
        raw.cursor().execute(command)
    raw.close()
    raw = engine.raw_connection()
    with pytest.raises(dpsql.ProgrammingError, match="none was begun"):
        raw.cursor().execute("ROLLBACK TO SAVEPOINT s")
    raw.close()


def test_what_a_listener_sets_on_connecting_stays(engines: Callable[..., Engine]) -> None:
    engine = engines("?user=ana", pool_size=1, max_overflow=0)
    event.listen(engine, "connect", lambda connection, _: connection.cursor().execute("SET epsilon = 0.375"))
    for _ in range(2):
        assert shown(engine, "epsilon") == "0.375"


def test_engines_of_two_users_share_nothing_but_the_data(engines: Callable[..., Engine]) -> None:
    ana, bi = engines("?user=ana"), engines("?user=bi")
    statement = text("SELECT sex, COUNT(*) FROM patients GROUP BY sex")
    with ana.connect() as connection:
        assert result_metadata(connection.execute(statement)).receipts[0].account == "ana"
        assert not result_metadata(connection.execute(statement)).loss
    with bi.connect() as connection:
        asked = result_metadata(connection.execute(statement))
        assert asked.loss and asked.receipts[0].account == "bi"


@pytest.mark.parametrize("command", ["SET SESSION AUTHORIZATION bi", "SET ROLE bi", "SET session_authorization = 'bi'",
                                     "SET user = 'bi'"])  # fmt: skip
def test_a_connection_stays_its_users(engine: Engine, command: str) -> None:
    with engine.connect() as connection:
        with pytest.raises(exc.DBAPIError):
            connection.execute(text(command))
        assert connection.execute(text("SELECT current_user")).scalar() == "ana"


@pytest.mark.parametrize("name", ["user", "account", "sampler", "noise_seed", "dpsql_user"])
def test_no_option_of_a_statement_changes_the_user(engine: Engine, name: str) -> None:
    with engine.connect() as connection:
        statement = text("SELECT COUNT(*) FROM patients").execution_options(**{name: "bi"})
        try:
            answer = connection.execute(statement)
        except exc.ArgumentError:
            return
        assert result_metadata(answer).receipts[0].account == "ana"


def test_a_cached_statement_keeps_no_values(engine: Engine, tables: Any) -> None:
    """Compiled once, by its form; each run has the values that it was given."""
    wards = tables["wards"]
    with engine.connect() as connection:
        for name in ("oncology", "cardiology", "nowhere"):
            found = connection.execute(select(wards.c.ward).where(wards.c.ward == name)).scalars().all()
            assert found == ([name] if name != "nowhere" else [])
            several = connection.execute(select(wards.c.ward).where(wards.c.ward.in_([name, "x"]))).scalars().all()
            assert several == found


# --- the life of a connection ----------------------------------------------------------------------------------------


def spent(engine: Engine) -> Any:
    with engine.connect() as connection:
        return connection.connection.driver_connection.budget().spent  # type: ignore[union-attr]


def test_connecting_pinging_and_transactions_are_free(engines: Callable[..., Engine]) -> None:
    engine = engines("?user=ana", pool_pre_ping=True)
    before = spent(engine)
    for _ in range(3):
        with engine.begin() as connection, connection.begin_nested():
            connection.execute(text("SELECT 1"))
    assert spent(engine) == before


def test_a_closed_connection_is_replaced(engines: Callable[..., Engine]) -> None:
    engine = engines("?user=ana", pool_pre_ping=True, pool_size=1, max_overflow=0)
    with engine.connect() as connection:
        first: Any = connection.connection.driver_connection
    first.close()
    with engine.connect() as connection:
        assert connection.connection.driver_connection is not first
        assert connection.execute(text("SELECT 1")).scalar() == 1


def test_data_of_a_newer_version_and_closed_connections_are_disconnects() -> None:
    dialect = DpsqlDialect()
    closed, open_ = type("C", (), {"closed": True})(), type("C", (), {"closed": False})()
    assert dialect.is_disconnect(StaleData("x"), open_, None)
    assert dialect.is_disconnect(InterfaceError("x"), closed, None)
    assert not dialect.is_disconnect(InterfaceError("x"), open_, None)
    assert not dialect.is_disconnect(dpsql.ProgrammingError("x"), open_, None)


def test_transactions_are_of_settings(engine: Engine) -> None:
    with engine.connect() as connection:
        connection.execute(text("SET epsilon = 0.7"))
        connection.rollback()
        assert connection.execute(text("SHOW epsilon")).scalar() == "0.1"
        connection.execute(text("SET epsilon = 0.7"))
        connection.commit()
        with pytest.raises(RuntimeError), connection.begin_nested():
            connection.execute(text("SET epsilon = 0.8"))
            raise RuntimeError
        assert connection.execute(text("SHOW epsilon")).scalar() == "0.7"


def test_a_charge_outlives_a_rollback(engine: Engine) -> None:
    with engine.connect() as connection:
        answer = connection.execute(text("SELECT COUNT(*) FROM patients"))
        assert result_metadata(answer).loss
        connection.rollback()
        assert not result_metadata(connection.execute(text("SELECT COUNT(*) FROM patients"))).loss


def test_there_is_one_isolation_level(engines: Callable[..., Engine]) -> None:
    with engines("?user=ana", isolation_level="AUTOCOMMIT").connect() as connection:
        assert connection.get_isolation_level() == connection.default_isolation_level == "AUTOCOMMIT"
    with pytest.raises(exc.ArgumentError):
        engines("?user=ana", isolation_level="READ COMMITTED").connect()


def test_threads_share_an_engine(engines: Callable[..., Engine]) -> None:
    engine = engines("?user=ana", pool_size=3)
    found: list[Any] = []

    def ask(number: int) -> None:
        with engine.connect() as connection:
            connection.execute(text(f"SET epsilon = 0.{number + 1}"))
            found.append((number, connection.execute(text("SHOW epsilon")).scalar()))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [(number, f"0.{number + 1}") for number in range(6)]


def test_a_connection_without_a_pool(engines: Callable[..., Engine]) -> None:
    engine = engines("?user=ana", poolclass=NullPool)
    assert shown(engine, "session_authorization") == "ana"


def test_errors_are_those_of_dpsql(engine: Engine) -> None:
    with engine.connect() as connection:
        with pytest.raises(exc.ProgrammingError) as caught:
            connection.execute(text("SELECT nothing FROM visits"))
        assert isinstance(caught.value.orig, dpsql.ProgrammingError) and caught.value.orig.sqlstate == "42703"
        with pytest.raises(exc.OperationalError) as too_much:
            connection.execute(select(func.count()).select_from(text("patients")).execution_options(epsilon=100))
        assert too_much.value.orig.sqlstate == "53400"  # type: ignore[union-attr]


def test_the_folder_is_not_read_beside_the_schema(clinic: Path) -> None:
    """What is named must be a schema; a data file is none, and what it holds is not told."""
    with pytest.raises(exc.DBAPIError) as caught:
        create_engine(f"dpsql:///{clinic.parent / 'data' / 'wards.csv'}").connect()
    assert "cardiology" not in str(caught.value)


def test_a_connection_that_is_to_end_gets_no_further_statement() -> None:
    """SQLAlchemy says so where no one may wait for it, as when it is collected in an event loop."""

    class Gone:
        closed = False

        def cursor(self) -> Any:
            raise AssertionError("it was used")

    ending = PoolResetState(transaction_was_reset=False, terminate_only=True, asyncio_safe=False)
    used_again = PoolResetState(transaction_was_reset=False, terminate_only=False, asyncio_safe=True)
    gone: Any = Gone()
    entry: Any = SimpleNamespace(info={})
    _restore_settings(gone, entry, ending)
    with pytest.raises(AssertionError, match="it was used"):
        _restore_settings(gone, entry, used_again)
