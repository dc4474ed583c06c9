"""SOUNDNESS 8 to 11: stages, answers, failures and accuracy. One test for each counterexample; the docstring says what
broke."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.errors import BudgetExceeded, QueryCanceled
from dpsql.ledger.base import Account, Binding, ChargedStatement, Entitlement, ReleaseRequest
from dpsql.ledger.ledger import SqlLedger
from dpsql.ledger.open import open_ledger
from dpsql.owner.administration import register_data_version
from dpsql.privacy.loss import Loss
from dpsql.session.dataset.accounts import dataset_account
from dpsql.session.session import Session
from tests.support.attack_hospital import (
    DATA,
    TABLES,
    VICTIM,
    Pair,
    build,
    build_pair,
    for_free,
    outcome,
    reopen,
    replace_data,
    same_outcome,
    schema_text,
    spent,
)
from tests.support.shop import Silence

pytestmark = pytest.mark.slow

ANALYSTS = """
analysts:
  ana: {budget: {epsilon: 20, delta: 1e-3}}
  ben: {budget: {epsilon: 30, delta: 1e-3}}
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = build_pair(tmp_path_factory.mktemp("answers"))
    yield made
    made.close()


# --- 8. stages -------------------------------------------------------------------------------------------------------

STAGED = [
    "SELECT COUNT(*) FROM visits WHERE n > (SELECT AVG(n) FROM visits)",
    "SELECT SUM(CLIP(n - (SELECT COUNT(*) FROM people), 0, 10)) FROM visits",
    "SELECT ward, COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits GROUP BY ward) GROUP BY ward",
    "SELECT kind, COUNT(*) FROM visits v WHERE n > (SELECT AVG(x.n) FROM visits x WHERE x.kind = v.kind) GROUP BY kind",
]


@pytest.mark.parametrize("sql", STAGED)
def test_rule_8_price_and_noise_do_not_depend_on_the_value_of_a_runtime_parameter(pair: Pair, sql: str) -> None:
    compiled = [session.compile_statement(sql, ()) for session in pair]
    assert len(compiled[0].steps) == 2
    for one, other in zip(compiled[0].steps, compiled[1].steps, strict=True):
        assert (one.loss, one.calibrated.spec) == (other.loss, other.calibrated.spec)
    charged = [session.execute(sql).loss for session in pair]
    assert charged[0] == charged[1]


def test_rule_8_a_correlation_with_a_count_needs_bounds(pair: Pair) -> None:
    """A hole's domain is that of its source, else unbounded: a correlation of it then needs CLIP."""
    with for_free(*pair):
        said = same_outcome(pair, "SELECT CORR(n * (SELECT COUNT(*) FROM people), n) FROM visits")
        assert said.startswith("UnboundedValues")


@pytest.mark.parametrize("sql", [
    "SELECT COUNT(*) FROM visits WHERE ward LIKE (SELECT MODE(ward) FROM visits)",
    "SELECT QUANTILE_CONT(n, (SELECT AVG(x) FROM visits)) FROM visits",
    "SELECT SUM(CLIP(n, 0, (SELECT AVG(n) FROM visits))) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE substring(ward, 1, (SELECT COUNT(*) FROM people)) = 'w'",
    "SELECT DATE_TRUNC((SELECT MODE(ward) FROM visits), day), COUNT(*) FROM visits GROUP BY 1",
    "SELECT COUNT(*) FROM visits WHERE regexp_matches(ward, (SELECT MODE(ward) FROM visits))",
])  # fmt: skip
def test_rule_8_a_runtime_parameter_never_stands_where_a_literal_is_required(pair: Pair, sql: str) -> None:
    with for_free(*pair):
        assert same_outcome(pair, sql) != "answered"


def test_rule_8_the_whole_statement_is_paid_before_its_first_step(tmp_path: Path) -> None:
    session = build(tmp_path, "paid", schema_text("paid"), DATA)
    wards, average = "(SELECT ward FROM visits GROUP BY ward)", "(SELECT AVG(n) FROM visits)"
    sql = f"SELECT COUNT(*) FROM visits WHERE ward IN {wards} AND n > {average}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session.dataset.engine, "_run_select", lambda *_: pytest.fail("stop"))
        with pytest.raises(BaseException):  # noqa: B017
            session.execute(sql)
    prices = [step.loss.rho for step in session.compile_statement(sql, ()).steps]
    assert spent(session)[1] == sum(prices) and len(prices) == 3


def test_rule_8_errors_between_steps_speak_of_released_values_only(pair: Pair) -> None:
    """What stops a statement between two steps is a function of releases; asking again is the same, and free."""
    sql = "SELECT COUNT(*) FROM visits WHERE ward = (SELECT ward FROM visits GROUP BY ward)"
    session = pair.with_
    before = session.budget().charges
    said = outcome(session, sql)
    assert said.startswith("DataError") and "nowhere" not in said
    assert session.budget().charges == before + 1
    assert outcome(session, sql) == said and session.budget().charges == before + 1


# --- 9. who may have which answer ------------------------------------------------------------------------------------

COUNT = "SELECT kind, COUNT(*) FROM visits GROUP BY kind"


@pytest.fixture
def two(tmp_path: Path) -> tuple[Session, Session]:
    schema = schema_text("two", TABLES + ANALYSTS, epsilon="25", delta="1e-3")
    return build(tmp_path, "two", schema, DATA, "ana"), reopen(tmp_path / "two.yaml", "ben")


def test_rule_9_a_second_analyst_pays_from_their_own_budget(two: tuple[Session, Session]) -> None:
    ana, ben = two
    first = ana.execute(COUNT)
    whole = dataset_account(ana.dataset.schema)
    before = ana.dataset.ledger.get_balance(whole)
    second = ben.execute(COUNT)
    assert ana.dataset.ledger.get_balance(whole) == before, "the dataset has paid"
    assert second.rows == first.rows and second.loss == first.loss
    assert spent(ana) == spent(ben)
    assert ana.execute(COUNT).loss.rho == ben.execute(COUNT).loss.rho == 0


def test_rule_9_a_price_does_not_reveal_what_others_have_run(two: tuple[Session, Session]) -> None:
    """EXPLAIN shows her price, whether or not others have asked, and she is charged that."""
    ana, ben = two
    ana.set("epsilon", "4")
    ana.execute(COUNT)
    free = str(ben.explain(COUNT))
    fresh = "SELECT kind, COUNT(*) FROM visits WHERE n < 77 GROUP BY kind"
    assert free.splitlines()[0] == str(ben.explain(fresh)).splitlines()[0]
    assert ben.execute(COUNT).loss.rho == ben.execute(fresh).loss.rho > 0, "not ana's better release, and not for free"


def test_rule_9_a_refusal_for_the_datasets_budget_is_one_fixed_text(two: tuple[Session, Session]) -> None:
    ana, ben = two
    ana.set("epsilon", "19")
    ana.set("delta", "1e-4")
    ana.execute(COUNT)
    said = set()
    for epsilon, sql in itertools.product(("16", "20", "29"), (COUNT, "SELECT SUM(n) FROM visits")):
        ben.set("epsilon", epsilon)
        ben.set("delta", "1e-4")
        with for_free(ana, ben):
            said.add(outcome(ben, sql))
    assert len(said) == 1 and "share with others" in said.pop()
    shown = "\n".join(str(row[0]) for row in ben.execute("SHOW BUDGET").rows)
    assert "ana" not in shown and "dataset" not in shown and "0 charges" in shown


def test_rule_9_data_versions_do_not_change_by_themselves(tmp_path: Path) -> None:
    """The price of a repeated question would tell when someone's row arrived."""
    session = build(tmp_path, "price", schema_text("price"), DATA)
    first = session.execute(COUNT)
    replace_data(tmp_path, "price", DATA + VICTIM)
    assert session.execute(COUNT).rows == first.rows, "what is stored is about the version that was registered"
    new = outcome(session, "SELECT SUM(n) FROM visits")
    assert new.startswith("StaleData"), "not answered, and not charged, until the owner acts"
    assert session.budget().charges == 1
    register_data_version(tmp_path / "price.yaml")
    again = reopen(tmp_path / "price.yaml")
    assert again.execute(COUNT).loss.rho > 0, "another version is another question, whoever's rows changed"


BINDING = Binding("row", "add_remove", 1)
WHO = Account("dataset", Fraction(100), Fraction(1, 1000))
ASKED = ReleaseRequest("plan", 1, Loss(None, Fraction(1, 100), Fraction(0)), (Fraction(1),))


def interleavings(left: int, right: int) -> list[tuple[int, ...]]:
    """Every order of the steps of two processes."""
    first = itertools.combinations(range(left + right), left)
    return [tuple(int(step not in chosen) for step in range(left + right)) for chosen in first]


def test_rule_9_two_processes_get_one_answer_for_one_charge(tmp_path: Path) -> None:
    """Other protocols give two answers for one charge in 60 of 70 interleavings of pay, bind, run and store."""
    orders = interleavings(4, 4)
    assert len(orders) == 70
    ledger = open_ledger(f"sqlite://{tmp_path}/all.ledger", BINDING, WHO)
    ledger.register_version("files", "facts")
    for number, order in enumerate(orders):
        delivered, released = two_processes(ledger, replace(ASKED, plan=f"plan {number}"), order)
        assert len(delivered) == 1, f"two answers in the order {order}"
        assert len(released) == 1
    assert ledger.get_balance(WHO).spent_rho == 70 * ASKED.loss.rho, "each of the 70 questions is paid for once"
    assert ledger.verify_chains() == ()


def two_processes(ledger: SqlLedger, asked: ReleaseRequest, order: tuple[int, ...]) -> tuple[set[bytes], set[int]]:
    """Two runs of one question whose noise, and whose holes, differ; what each delivers."""
    claims: dict[int, Entitlement] = {}
    bound: dict[int, bytes] = {}
    bodies: dict[int, bytes] = {}
    delivered: set[bytes] = set()
    steps = [0, 0]
    for process in order:
        match steps[process]:
            case 0:
                (claims[process],) = ledger.purchase(WHO, [asked], ChargedStatement("SELECT"), datetime.now(UTC))
            case 1:
                bound[process] = ledger.bind_runtime_parameters(claims[process].release, b"holes %d" % process)
            case 2:
                bodies[process] = b"noise of %d over %s" % (process, bound[process])
            case 3:
                done = claims[process].body
                delivered.add(ledger.store_body(claims[process].release, bodies[process]) if done is None else done)
        steps[process] += 1
    assert len(set(bound.values())) == 1, "both ran the same question"
    return delivered, {claim.release for claim in claims.values()}


# --- 10. what may fail, and when -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["statement_timeout", "cancel"])
def test_rule_10_a_run_that_was_cut_off_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Cancel and redeem: a free timing oracle. The wait ends, the run does not; asking again waits for the same run."""
    session = build(tmp_path, "cut", schema_text("cut"), DATA)
    engine, go, runs = session.dataset.engine, threading.Event(), list[str]()
    real = engine.execute

    def gated(sql: str, keys: int, holes: dict[str, object]) -> object:
        runs.append(sql)
        assert go.wait(20)
        return real(sql, keys, holes)

    monkeypatch.setattr(engine, "execute", gated)
    for _ in range(3):
        if way == "cancel":
            threading.Timer(0.2, session.cancel).start()
        else:
            session.execute("SET statement_timeout = 200")
        with pytest.raises(QueryCanceled):
            session.execute(COUNT)
    assert len(runs) == 1 and spent(session)[0] == 1
    session.execute("RESET statement_timeout")
    go.set()
    rows = session.execute(COUNT).rows
    assert session.execute(COUNT).rows == rows == reopen(tmp_path / "cut.yaml").execute(COUNT).rows
    assert len(runs) == 1 and spent(session)[0] == 1


def test_rule_10_failures_are_counted_and_end_an_account(tmp_path: Path) -> None:
    session = build(tmp_path, "fails", schema_text("fails"), DATA)
    real = session.dataset.engine._run_select

    def fail(*_: object) -> None:
        raise RuntimeError("row 7 is not a number")

    said = set()
    session.dataset.engine._run_select = fail  # type: ignore[method-assign,assignment]
    for number in range(3):
        said.add(outcome(session, f"SELECT COUNT(*) FROM visits WHERE n > {number}").replace(f"> {number}", "> …"))
    session.dataset.engine._run_select = real  # type: ignore[method-assign]
    assert len(said) == 1 and "7" not in said.pop()
    assert outcome(session, COUNT).startswith("AccountSuspended")
    assert session.budget().charges == 3


# --- 11. accuracy claims ---------------------------------------------------------------------------------------------


def test_rule_11_error_bars_come_from_noise_alone(tmp_path: Path) -> None:
    """No figure about clipping, suppression or norms reaches an analyst."""
    pair = build_pair(tmp_path)
    quiet = Pair(*(Session(side.dataset, sampler=Silence()) for side in pair))
    for sql in ("SELECT kind, COUNT(*) AS c, SUM(n) AS s FROM visits GROUP BY kind", "SELECT SUM(x) FROM visits"):
        bars = [[[bar and bar.stderr for bar in row] for row in session.execute(sql).errors] for session in quiet]
        assert bars[0] == bars[1], "with or without her clipped rows"
    with for_free(*pair):
        assert same_outcome(pair, "SELECT DP_STDERR(MEDIAN(n)) FROM visits") != "answered"
        for option in ("max_error = 5", "max_relative_error = 0.1"):
            for what in ("AVG(n)", "MEDIAN(n)", "SUM(n) / COUNT(*)"):
                sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({option}) {what} FROM visits"
                assert same_outcome(pair, sql).startswith("Unsupported")
            sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({option}) COUNT(*) FROM visits"
            prices = {side.explain(sql).epsilon for side in pair}
            assert len(prices) == 1, "the epsilon that an error needs is known before any row is read"
    pair.close()


def test_rule_11_extremes_are_not_read_off_the_bounds(pair: Pair) -> None:
    """Declared bounds answer MIN and MAX for free only without WHERE, GROUP BY or join."""
    for sql in ("SELECT MAX(n) FROM visits WHERE pid = 7", "SELECT kind, MIN(n) FROM visits GROUP BY kind",
                "SELECT MAX(v.n) FROM visits v JOIN people p USING (pid)"):  # fmt: skip
        said = [session.execute(sql).loss.rho for session in pair]
        assert said[0] == said[1] > 0


def test_the_budget_is_what_stops_the_analyst(two: tuple[Session, Session]) -> None:
    ana, _ = two
    ana.set("epsilon", "18")
    ana.set("delta", "1e-4")
    ana.execute(COUNT)
    with pytest.raises(BudgetExceeded, match="ana"):
        ana.execute("SELECT kind, SUM(n) FROM visits GROUP BY kind")
