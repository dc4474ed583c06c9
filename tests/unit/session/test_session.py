"""The order is the law: pay, run, perturb, store, post-process. Each step is a fake that records its call."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.compiler.catalog.variables import VARIABLES
from dpsql.compiler.settings import SETTING_NAMES
from dpsql.errors import (
    BudgetExceeded,
    DataError,
    EngineFailed,
    Error,
    InternalError,
    InvalidParameter,
    StaleData,
    UnknownColumn,
    UnknownFunction,
    UnknownTable,
    Unsupported,
)
from dpsql.ledger.base import (
    Account,
    AccountTerms,
    AdmitCallback,
    Balance,
    ChargedStatement,
    Entitlement,
    OwnRelease,
    Receipt,
    ReleaseQuote,
    ReleaseRequest,
    RunLease,
)
from dpsql.privacy.exact import Exact, Row
from dpsql.privacy.filters import CumulativeLoss
from dpsql.schema.model import Resolved, Source, View
from dpsql.session import query
from dpsql.session.dataset.dataset import Dataset
from dpsql.session.dataset.runs import Clock, Runs
from dpsql.session.postprocess import sandbox
from dpsql.session.session import Session, SessionCache, StatementResult

NOW = dt.datetime(2024, 5, 6, tzinfo=dt.UTC)
COUNT = "SELECT COUNT(*) AS n FROM patients"
BY_SEX = "SELECT sex, COUNT(*) AS n, AVG(birth_year) AS y FROM patients GROUP BY sex ORDER BY sex"


class Calls(list[str]):
    """What happened, in order."""


@dataclass
class FakeEngine:
    calls: Calls
    fails: Exception | None = None
    name: str = "fake"
    statements: list[str] = field(default_factory=list)

    def execute(self, sql: str, key_columns: int, holes: Mapping[str, object]) -> Exact:
        self.calls.append("execute")
        self.statements.append(sql)
        if self.fails is not None:
            raise self.fails
        keys: list[Row] = [()] if key_columns == 0 else [(sex,) for sex in ("f", "m", "x", None)]
        columns = sql.rsplit("\nFROM", 1)[0].rsplit("SELECT ", 1)[1].count(" AS BIGINT) AS ")
        return Exact(keys, [np.full(len(keys), 1000, np.int64) for _ in range(columns)])

    def execute_public(self, sql: str, holes: Mapping[str, object]) -> list[Row]:
        raise AssertionError("nothing public is asked")

    def describe(self, source: Source) -> dict[str, str]:
        raise AssertionError("a session describes no source")

    def close(self) -> None:
        self.calls.append("close")


class NoObjects:
    """Nobody has made anything."""

    def list_objects(self, account: str) -> tuple[()]:
        return ()


@dataclass
class FakeLedger:
    """Sells a release once for each plan and asked error; keeps what is stored."""

    calls: Calls
    refuses: Error | None = None
    bodies: dict[int, bytes | None] = field(default_factory=dict)
    sold: dict[tuple[str, tuple[Fraction, ...]], int] = field(default_factory=dict)
    asked: list[ReleaseRequest] = field(default_factory=list)
    failures: int = 0
    objects: NoObjects = field(default_factory=NoObjects)

    def purchase(
        self,
        account: Account,
        asked: Sequence[ReleaseRequest],
        statement: ChargedStatement,
        now: dt.datetime,
        admit: AdmitCallback,
    ) -> tuple[Entitlement, ...]:
        self.calls.append("purchase")
        assert account.name == "dataset" and now == NOW
        if self.refuses is not None:
            raise self.refuses
        self.asked += asked
        claims = tuple(self._build_entitlement(one) for one in asked)
        admit(claims)
        return claims

    def _build_entitlement(self, one: ReleaseRequest) -> Entitlement:
        key = (one.plan, one.errors)
        new = key not in self.sold
        release = self.sold.setdefault(key, len(self.sold) + 1)
        self.bodies.setdefault(release, None)
        return Entitlement(
            release, self.bodies[release], new, one.loss, one.errors, Receipt("dataset", release, "hash")
        )

    def read_snapshot(self) -> AbstractContextManager[None]:
        return nullcontext()

    def find_entitlements(
        self, account: Account, asked: Sequence[ReleaseRequest], now: dt.datetime
    ) -> tuple[Entitlement, ...] | None:
        sold = [self.sold.get((one.plan, one.errors)) for one in asked]
        if not all(release is not None and self.bodies[release] is not None for release in sold):
            return None
        self.calls.append("served")
        return tuple(replace(self._build_entitlement(one), charged=False) for one in asked)

    def begin_run(self, release: int, holder: str, seconds: float) -> RunLease:
        return RunLease(holder, 0, None, 1)

    def find_run(self, release: int) -> RunLease | None:
        return None

    def end_run(self, release: int, holder: str) -> None: ...

    def quote_releases(self, account: Account, asked: Sequence[ReleaseRequest]) -> tuple[ReleaseQuote, ...]:
        paid = Receipt("dataset", 1, "hash")
        return tuple(ReleaseQuote(one.loss, paid if (one.plan, one.errors) in self.sold else None) for one in asked)

    def list_own_stored(self, account: Account, rows: Sequence[str], version: int) -> tuple[OwnRelease, ...]:
        return ()

    def may_own_laplace(self, account: Account) -> bool:
        return False

    def read_body(self, release: int) -> bytes | None:
        return self.bodies[release]

    def store_body(self, release: int, body: bytes, errors: tuple[Fraction, ...] | None = None) -> bytes:
        self.calls.append("store")
        if self.bodies[release] is None:
            self.bodies[release] = body
        stored = self.bodies[release]
        assert stored is not None
        return stored

    def count_failure(self, account: Account, release: int) -> None:
        self.calls.append("failed")
        self.failures += 1

    def get_balance(self, account: Account) -> Balance:
        self.calls.append("balance")
        one = Fraction(1)
        terms, spent = AccountTerms(8 * one, one / 10**6), CumulativeLoss(None, one / 100, one * 0)
        return Balance(account.name, terms, spent, one, 7 * one, one / 2, 3)

    def close(self) -> None:
        self.calls.append("close")


@dataclass
class FakeSampler:
    calls: Calls

    def laplace(self, n: int, scale: Fraction) -> np.ndarray:
        self.calls.append("noise")
        return np.zeros(n, np.int64)

    def gaussian(self, n: int, sigma: Fraction) -> np.ndarray:
        self.calls.append("noise")
        return np.zeros(n, np.int64)


@dataclass
class World:
    session: Session
    calls: Calls
    engine: FakeEngine
    ledger: FakeLedger
    unchanged: Callable[[], None]


@pytest.fixture()
def world(clinic: Resolved, monkeypatch: pytest.MonkeyPatch) -> World:
    calls = Calls()
    engine, ledger = FakeEngine(calls), FakeLedger(calls)
    dataset = Dataset(clinic, engine, ledger)  # type: ignore[arg-type]
    monkeypatch.setattr(Dataset, "check_files", lambda self: calls.append("check"))
    monkeypatch.setattr(Dataset, "check_read", lambda self: calls.append("read"))
    monkeypatch.setattr(Dataset, "check_current", lambda self: calls.append("current"))
    run = sandbox.run_query
    monkeypatch.setattr(query.sandbox, "run_query", lambda *args: (calls.append("post"), run(*args))[1])
    opened_with = {"empty_groups": "show"}  # made-up groups have few rows beside the noise
    session = Session(dataset, None, FakeSampler(calls), lambda: NOW, opened_with=opened_with)  # type: ignore[arg-type]
    return World(session, calls, engine, ledger, dataset.check_unchanged)


@pytest.mark.parametrize("fails", [None, EngineFailed("x"), MemoryError("x")])
@pytest.mark.parametrize("took", [0, 1, 3_999_999_999, 4_000_000_000, 4_000_000_001])
def test_every_run_takes_a_multiple_of_min_latency_and_nothing_else_waits(
    took: int, fails: Exception | None, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time between what the session does before a run and what it does next, on a clock that runs alone move."""
    passed = [0]

    def sleep(seconds: float) -> None:
        passed[0] += round(seconds * 10**9)

    def execute(self: FakeEngine, *arguments: Any) -> Exact:
        passed[0] += took
        return run(self, *arguments)

    run = FakeEngine.execute
    monkeypatch.setattr(FakeEngine, "execute", execute)
    runs = Runs(Fraction(4), Clock(lambda: passed[0], sleep))
    world.session.dataset = replace(world.session.dataset, runs=runs)
    world.engine.fails = fails
    multiple = 8 if took > 4_000_000_000 else 4
    two = f"SELECT ({COUNT}), (SELECT SUM(birth_year) FROM patients)"
    if fails is None:
        world.session.execute(two)
        assert passed == [2 * multiple * 10**9]
        world.session.execute(two)  # stored
    else:
        with pytest.raises(EngineFailed):
            world.session.execute(two)
        assert passed == [multiple * 10**9]
    before = list(passed)
    world.session.explain(two + " WHERE 1 = 1")
    for free in ("SELECT 1", "SHOW budget", f"EXPLAIN {BY_SEX}", "SELECT nosuch FROM patients", "SET epsilon = -1"):
        with suppress(Error):
            world.session.execute(free)
    world.ledger.refuses = BudgetExceeded("no")
    with pytest.raises(BudgetExceeded):
        world.session.execute(BY_SEX)
    assert passed == before


# --- the order -------------------------------------------------------------------------------------------------------


def test_pay_then_run_then_perturb_then_store_then_post_process(world: World) -> None:
    answer = world.session.execute(COUNT)
    assert world.calls == [
        "current",
        "balance",
        "check",
        "purchase",
        "current",
        "execute",
        "read",
        "noise",
        "store",
        "post",
    ]
    assert answer.rows == [(1000,)] and [column.name for column in answer.columns] == ["n"]


def test_all_releases_are_paid_for_before_the_first_runs(world: World) -> None:
    world.session.execute("SELECT (SELECT COUNT(*) FROM patients) AS a, (SELECT SUM(birth_year) FROM patients) AS b")
    run = ["execute", "read", "noise", "store"]
    assert world.calls == ["current", "balance", "check", "purchase", "current", *run, *run, "post"]
    assert len(world.ledger.asked) == 2


def test_a_release_that_a_statement_reads_twice_runs_once(world: World) -> None:
    answer = world.session.execute("SELECT (SELECT COUNT(*) FROM patients) AS a, (SELECT COUNT(1) FROM patients) AS b")
    assert world.calls.count("execute") == 1 and answer.rows == [(1000, 1000)]


def test_a_refused_charge_runs_nothing(world: World) -> None:
    world.ledger.refuses = BudgetExceeded("no")
    with pytest.raises(BudgetExceeded):
        world.session.execute(COUNT)
    assert world.calls == ["current", "balance", "check", "purchase"]


def test_data_that_changed_is_neither_paid_nor_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def stale(self: Dataset) -> None:
        raise StaleData("changed")

    monkeypatch.setattr(Dataset, "check_files", stale)
    with pytest.raises(StaleData):
        world.session.execute(COUNT)
    assert world.calls == ["current", "balance"]


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT COUNT(x) FROM patients", UnknownColumn),
        ("SELECT COUNT(*), no_such_function(1) FROM patients", UnknownFunction),
        ("SELECT sex, COUNT(*) || 1 + 'x' FROM patients GROUP BY sex ORDER BY nothing", Error),
    ],
)
def test_a_mistake_shows_before_anything_is_charged(sql: str, error: type[Error], world: World) -> None:
    with pytest.raises(error):
        world.session.execute(sql)
    assert world.calls == []


def test_what_is_delivered_is_what_was_read_back_from_the_store(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may have stored its own run first: that one counts."""
    world.session.execute(COUNT)
    first = world.ledger.bodies[1]
    world.ledger.bodies[1] = None
    monkeypatch.setattr(world.ledger, "store_body", lambda release, body, errors=None: first)
    monkeypatch.setattr(FakeSampler, "gaussian", lambda self, n, sigma: np.full(n, 77, np.int64))
    assert world.session.execute(COUNT).rows == [(1000,)]


# --- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [EngineFailed("the engine could not finish the query"), InternalError("row 7")])
def test_a_failing_engine_counts_against_the_account_and_is_not_refunded(failure: Error, world: World) -> None:
    world.engine.fails = failure
    with pytest.raises(EngineFailed) as caught:
        world.session.execute(COUNT)
    assert caught.value.message == "the engine could not finish the query"
    assert world.calls == ["current", "balance", "check", "purchase", "current", "execute", "failed"]
    assert world.ledger.failures == 1 and len(world.ledger.sold) == 1


def test_a_repeat_redeems_the_charge_of_a_run_that_failed(world: World) -> None:
    world.engine.fails = EngineFailed("the engine could not finish the query")
    with pytest.raises(EngineFailed):
        world.session.execute(COUNT)
    world.engine.fails = None
    answer = world.session.execute(COUNT)
    assert answer.rows == [(1000,)] and answer.loss.rho == 0 and len(world.ledger.sold) == 1


def test_rows_that_do_not_fit_the_plan_count_as_a_failure(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.engine, "execute", lambda *args: Exact([()], []))
    with pytest.raises(EngineFailed, match=r"^the engine could not finish the query") as caught:
        world.session.execute(COUNT)
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    assert world.ledger.failures == 1 and "store" not in world.calls


def test_files_that_are_replaced_while_they_are_read_give_no_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(self: Dataset) -> None:
        raise StaleData("replaced")

    monkeypatch.setattr(Dataset, "check_read", check)
    with pytest.raises(StaleData):
        world.session.execute(COUNT)
    assert "noise" not in world.calls and "store" not in world.calls


def test_an_error_after_the_noise_is_shown_and_a_repeat_is_free(world: World) -> None:
    bad = "SELECT CAST(CAST(COUNT(*) AS text) || 'x' AS integer) FROM patients"
    for _ in range(2):
        with pytest.raises(DataError, match="1000x"):
            world.session.execute(bad)
    assert world.calls.count("execute") == 1 and len(world.ledger.sold) == 1
    assert world.session.execute(COUNT).loss.rho == 0


# --- what is stored --------------------------------------------------------------------------------------------------


def test_a_repeat_is_answered_free_and_without_the_engine(world: World) -> None:
    first = world.session.execute(BY_SEX)
    del world.calls[:]
    again = world.session.execute(BY_SEX)
    assert world.calls == ["current", "served", "balance"]
    assert again.rows == first.rows and first.loss.rho > 0 and again.loss.rho == 0


def test_a_cached_answer_is_computed_once_and_still_looked_up_in_the_ledger(world: World) -> None:
    """That the account may ask, and that the data is what it was, is looked at each time."""
    first = world.session.execute(BY_SEX)
    rows, receipts = list(first.rows), first.receipts
    for answer in (first, world.session.execute(BY_SEX)):
        answer.rows.clear()  # who was given an answer may change it
        del world.calls[:]
        again = world.session.execute(BY_SEX)
        assert world.calls == ["current", "served", "balance"] and again.rows == rows and again.loss.rho == 0
        assert again.receipts == receipts != ()
    del world.calls[:]
    world.session.execute("SET nonnegative = on")
    world.session.execute(BY_SEX)
    assert world.calls == ["current", "served", "balance", "post"], "another answer is made of the same releases"


def test_another_spelling_of_the_same_question_is_free(world: World) -> None:
    world.session.execute("SELECT COUNT(*) FROM patients WHERE birth_year > 1950")
    del world.calls[:]
    world.session.execute("SELECT COUNT(1) AS n FROM patients p WHERE NOT 1951 > p.birth_year")
    assert "execute" not in world.calls


def test_post_processing_of_a_stored_release_is_free(world: World) -> None:
    world.session.execute(BY_SEX)
    del world.calls[:]
    world.session.execute("SELECT AVG(birth_year) / 2, sex, COUNT(*) FROM patients GROUP BY sex HAVING COUNT(*) > 5")
    assert "execute" not in world.calls


def test_other_settings_are_another_charge(world: World) -> None:
    world.session.execute(COUNT)
    world.session.execute("SET epsilon = 0.5")
    assert world.session.execute(COUNT).loss.rho > 0
    assert world.calls.count("execute") == 2


# --- answers ---------------------------------------------------------------------------------------------------------


def test_an_answer_has_rows_columns_errors_and_loss(world: World) -> None:
    answer: StatementResult = world.session.execute(BY_SEX)
    assert [column.name for column in answer.columns] == ["sex", "n", "y"]
    assert [row[0] for row in answer.rows] == ["f", "m", "x", None]
    for row, errors in zip(answer.rows, answer.errors, strict=True):
        assert len(row) == len(errors) == 3 and errors[0] is None
        assert errors[1] is not None and errors[1].low < row[1] < errors[1].high
    assert answer.command == "SELECT" and answer.loss.epsilon is None


def test_noise_wider_than_the_value_earns_a_notice(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert world.session.execute(COUNT).notices == ()
    world.session.execute("SET epsilon = 0.001")
    (notice,) = world.session.execute(COUNT).notices
    assert "1 of 1" in notice


def test_nonnegative_clips_counts_and_costs_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeSampler, "gaussian", lambda self, n, sigma: np.full(n, -5000, np.int64))
    assert world.session.execute(COUNT).rows == [(-4000,)]
    world.session.execute("SET nonnegative = on")
    answer = world.session.execute(COUNT)
    assert answer.rows == [(0,)] and answer.loss.rho == 0


def test_a_statement_without_private_rows_reads_no_ledger_and_no_engine(world: World) -> None:
    answer = world.session.execute("SELECT 1 + 1 AS two")
    assert answer.rows == [(2,)] and world.calls == ["post"] and answer.loss.rho == 0


def test_types_only_are_free(world: World) -> None:
    answer = world.session.execute("SELECT * FROM patients LIMIT 0")
    assert answer.rows == [] and len(answer.columns) == 5 and world.calls == ["post"]


def test_parameters_are_values(world: World) -> None:
    world.session.execute("SELECT COUNT(*) FROM patients WHERE birth_year > ?", [1950])
    assert "1951" in world.engine.statements[0]  # > 1950 of whole numbers, in its one spelling


# --- commands --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    ["SET epsilon = 2", "-- note\nSET epsilon TO '2'", "set Session EPSILON = 2;", "/* tool */ SET epsilon = 2"],
)
def test_set_changes_the_session_and_reads_no_ledger(command: str, world: World) -> None:
    assert world.session.execute(command).command == "SET"
    assert world.session.settings.statement.epsilon == 2 and world.calls == []
    assert world.session.execute("SHOW epsilon").rows == [("2",)]
    world.session.execute("RESET ALL")
    assert world.session.execute("show EPSILON").rows == [("1",)]


def test_a_refused_setting_changes_nothing(world: World) -> None:
    before = world.session.settings
    for command in ("SET epsilon = 0", "SET contributions.rows = 9", "SET colour = red", "RESET colour"):
        with pytest.raises(InvalidParameter):
            world.session.execute(command)
    assert world.session.settings == before


def test_show_all_lists_every_setting(world: World) -> None:
    rows = world.session.execute("SHOW ALL").rows
    assert ("contributions.rows", "8") in rows and ("noise", "auto") in rows and ("TimeZone", "UTC") in rows
    assert [name for name, _ in rows] == [*SETTING_NAMES, *(variable.name for variable in VARIABLES.values())]


def test_show_tables_says_what_is_public(world: World) -> None:
    rows = world.session.execute("SHOW TABLES;").rows
    assert ("visits", "private") in rows and ("Wards", "public") in rows


def test_show_budget_shows_the_account(world: World) -> None:
    answer = world.session.execute("SHOW BUDGET")
    assert 'account "dataset"' in answer.rows[0][0] and world.calls == ["balance"]


@pytest.mark.parametrize("command", ["DESCRIBE patients", "desc PATIENTS;", "describe Patients"])
def test_describe_shows_columns_with_bounds_and_values(command: str, world: World) -> None:
    rows = {row[0]: row[1:] for row in world.session.execute(command).rows}
    assert rows["birth_year"] == ("integer", "[1920, 2026]", "", "") and rows["sex"] == ("text", "", "f, m, x", "")
    assert world.calls == []


def test_describe_of_no_table_is_refused(world: World) -> None:
    with pytest.raises(UnknownTable):
        world.session.execute("DESCRIBE nothing")


def test_explain_is_free_in_sql_and_in_python(world: World) -> None:
    answer = world.session.execute(f"EXPLAIN {BY_SEX}")
    text = "\n".join(row[0] for row in answer.rows)
    assert text == str(world.session.explain(BY_SEX)) and "Release 1" in text
    assert [column.name for column in world.session.describe(BY_SEX)] == ["sex", "n", "y"]
    assert set(world.calls) == {"balance", "served"}  # how many more could be asked is told


def test_an_error_within_explain_points_into_the_whole_statement(world: World) -> None:
    sql = "/* x */ EXPLAIN SELECT COUNT(quux) FROM patients"
    with pytest.raises(UnknownColumn) as caught:
        world.session.execute(sql)
    assert caught.value.position == sql.index("quux") + 1 and caught.value.statement == sql


def test_every_error_knows_its_statement(world: World) -> None:
    for sql in ("SET epsilon", "DESCRIBE nothing", "SELECT cost FROM visits", "DELETE FROM visits"):
        with pytest.raises(Error) as caught:
            world.session.execute(sql)
        assert caught.value.statement == sql


def test_other_statements_are_refused(world: World) -> None:
    with pytest.raises(Unsupported):
        world.session.execute("DELETE FROM patients")
    assert world.calls == []


# --- compiled statements ---------------------------------------------------------------------------------------------


def test_recent_statements_are_compiled_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    original = query.plan_query

    def counting(sql: str, *args: object, **kwargs: object) -> object:
        compiled.append(sql)
        return original(sql, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(query, "plan_query", counting)
    for _ in range(3):
        world.session.execute(COUNT)
        world.session.explain(COUNT)
    assert compiled == [COUNT, COUNT]  # EXPLAIN also tells what it would be with the other kind of noise
    world.session.execute("SET epsilon = 2")
    world.session.execute(COUNT)
    assert compiled == [COUNT] * 3


def test_parameters_of_equal_value_and_other_type_are_compiled_apart(world: World) -> None:
    sql = "SELECT COUNT(*) FROM patients WHERE insured = ?"
    world.session.execute(sql, [True])
    with pytest.raises(Error):
        world.session.execute(sql, [1])


def test_a_session_remembers_a_bounded_number_of_statements(world: World) -> None:
    session = Session(world.session.dataset, cache=SessionCache(3))
    for number in range(6):
        session.describe(f"SELECT COUNT(*) AS n{number} FROM patients")
    assert len(session.cache.compiled) == 3


def test_now_is_read_anew_for_each_statement(world: World) -> None:
    moments = [NOW, NOW + dt.timedelta(days=1)]
    world.session.clock = lambda: moments[0]
    first = world.session.explain("SELECT COUNT(*) FROM visits WHERE at < now()").releases[0].sql
    moments.pop(0)
    assert world.session.explain("SELECT COUNT(*) FROM visits WHERE at < now()").releases[0].sql != first


def test_a_view_reads_the_time_anew_too(world: World) -> None:
    session = world.session
    schema = replace(session.dataset.schema, views=(View("past", "SELECT * FROM visits WHERE at < now()"),))
    session.dataset = replace(session.dataset, resolved=replace(session.dataset.resolved, schema=schema))
    moments = [NOW, NOW + dt.timedelta(days=1)]
    session.clock = lambda: moments[0]
    first = session.explain("SELECT COUNT(*) FROM past").releases[0].sql
    moments.pop(0)
    assert session.explain("SELECT COUNT(*) FROM past").releases[0].sql != first


# --- statements around queries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "tag"),
    [
        ("BEGIN", "BEGIN"), ("start transaction read only;", "START TRANSACTION"), ("COMMIT", "COMMIT"),
        ("END", "COMMIT"),
        ("ROLLBACK", "ROLLBACK"), ("DISCARD ALL", "DISCARD ALL"), ("DEALLOCATE ALL", "DEALLOCATE ALL"),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET"),
        ("SET NAMES 'utf8'", "SET"), ("SET TIME ZONE 'UTC'", "SET"), ("SET search_path TO a, b", "SET"),
        ("UNLISTEN *", "UNLISTEN"), ("CLOSE ALL", "CLOSE CURSOR ALL"), ("SET application_name TO DEFAULT", "SET"),
    ],
)  # fmt: skip
def test_what_clients_send_around_queries_is_accepted_and_free(sql: str, tag: str, world: World) -> None:
    answer = world.session.execute(sql)
    assert answer.command == tag and answer.rows == [] and world.calls == []


def test_a_rolled_back_setting_is_gone_but_charges_stay(world: World) -> None:
    for sql in ("BEGIN", "SAVEPOINT a", "SET epsilon = 2", "ROLLBACK TO a", "RELEASE a", "SET LOCAL epsilon = 3"):
        world.session.execute(sql)
    assert world.session.execute("SHOW epsilon").rows == [("3",)]
    world.session.execute(COUNT)
    world.session.execute("ROLLBACK")
    assert world.session.execute("SHOW epsilon").rows == [("1",)]
    assert world.calls.count("purchase") == 1


def test_settings_of_postgres_are_shown_again(world: World) -> None:
    world.session.execute("SET application_name = 'psql'")
    world.session.execute("set DateStyle = iso, dmy")
    assert world.session.execute("SHOW application_name").rows == [("psql",)]
    assert world.session.execute("SHOW datestyle").rows == [("ISO, DMY",)]
    assert world.session.execute("SHOW TRANSACTION ISOLATION LEVEL").rows == [("read committed",)]
    assert world.session.execute("SHOW SESSION AUTHORIZATION").rows == [("dataset",)]
    world.session.execute("DISCARD ALL")
    assert world.session.execute("SHOW application_name").rows == [("",)]


def test_modes_of_transactions_are_reported_as_they_were_set(world: World) -> None:
    def level() -> str:
        return str(world.session.execute("SHOW transaction_isolation").rows[0][0])

    world.session.execute("BEGIN ISOLATION LEVEL SERIALIZABLE, READ WRITE")
    assert level() == "serializable" and world.session.execute("SHOW transaction_read_only").rows == [("off",)]
    world.session.execute("COMMIT")
    assert level() == "read committed" and world.session.execute("SHOW transaction_read_only").rows == [("on",)]
    world.session.execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    assert level() == "repeatable read"
    world.session.execute("START TRANSACTION")
    world.session.execute("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
    assert level() == "read uncommitted"
    world.session.execute("ROLLBACK")
    world.session.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")  # of no transaction
    assert level() == "repeatable read"
    world.session.execute("DISCARD ALL")
    assert level() == "read committed"


def test_describe_select_gives_names_and_types_for_free(world: World) -> None:
    rows = world.session.execute(f"DESCRIBE {BY_SEX}").rows
    assert rows == [("sex", "text"), ("n", "bigint"), ("y", "double")] and world.calls == []


def test_describe_and_show_columns_take_a_qualified_name(world: World) -> None:
    rows = world.session.execute("DESCRIBE public.patients").rows
    assert rows == world.session.execute("SHOW COLUMNS FROM patients").rows and len(rows) == 5


def test_an_error_in_a_described_statement_points_into_the_whole(world: World) -> None:
    sql = "DESCRIBE SELECT AVG(costs) FROM visits"
    with pytest.raises(UnknownColumn) as caught:
        world.session.execute(sql)
    assert caught.value.span is not None and sql[caught.value.span.start :].startswith("costs")
