"""Mechanisms that a session holds by name: what they are asked, what ends them, and what does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.errors import (
    AccessDenied,
    BudgetExceeded,
    Error,
    InvalidParameter,
    InvalidSyntax,
    LimitExceeded,
    OperationalError,
    ProgrammingError,
    QueryCanceled,
    Unsupported,
)
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.mechanisms import interaction, registry
from dpsql.session.session import Session, StatementHandle
from dpsql.types import BIGINT, DOUBLE, TEXT
from tests.support.controlled_runs import PATIENCE, GatedShop, gated_shop, in_thread, until
from tests.support.shop import SCHEMA, Silence, open_shop

pytestmark = pytest.mark.slow

COUNT = "SELECT COUNT(*) FROM people"  # 240, one row each
VIP = "SELECT SUM(CASE WHEN vip THEN 1 ELSE 0 END) FROM people"  # 80
BUSY = "DECLARE busy THRESHOLD 100 WITH (epsilon = 1.5, answers = 3)"
HOLDOUT = "DECLARE h HOLDOUT WITH (n = 240, threshold = 0.04, sigma = 0.02, budget = 2)"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """Without noise."""
    opened, reference = open_shop(tmp_path)
    reference.close()
    yield opened
    opened.close()


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[GatedShop]:
    with gated_shop(tmp_path) as opened:
        yield opened


def charges(session: Session) -> int:
    return session.budget().charges


# --- asking ----------------------------------------------------------------------------------------------------------


def test_declaring_is_free_and_the_first_question_pays_for_all(session: Session) -> None:
    assert session.execute(BUSY).command == "DECLARE THRESHOLD" and charges(session) == 0
    answer = session.execute(f"ASK busy {COUNT}")
    assert [column.name for column in answer.columns] == ["above", "left"] and answer.command == "ASK"
    assert answer.rows == [(True, 2)] and session.charged.pure_epsilon == answer.loss.epsilon == 1.5
    again = session.execute(f"ASK busy {COUNT} WHERE age < $1", [20])
    assert again.rows == [(False, 2)] and not session.charged and again.loss.epsilon == 0
    assert again.receipts == answer.receipts != () and charges(session) == 1
    session.execute(f"ASK busy {COUNT}")
    assert session.execute(f"ASK busy {COUNT}").rows == [(True, 0)]
    with pytest.raises(BudgetExceeded, match="has given its 3 answers"):
        session.execute(f"ASK busy {COUNT}")
    assert charges(session) == 1


def test_a_holdout_is_queried_against_a_mean(session: Session) -> None:
    session.execute(HOLDOUT)
    answer = session.execute(f"ASK h {VIP} AGAINST 0.34")
    assert [column.name for column in answer.columns] == ["value", "overfit", "left"]
    assert answer.rows == [(0.34, False, 2)] and charges(session) == 1
    ((value, overfit, left),) = session.execute(f"ASK h {VIP} AGAINST ?", [0.9]).rows
    assert overfit and left == 1 and value == pytest.approx(80 / 240, abs=1e-5)
    sums = VIP.replace("FROM people", "FROM people WHERE age > $2")
    ((value, *_),) = session.execute(f"ASK h {sums} AGAINST $1", ["1/12", 60]).rows
    assert value == 1 / 12


def test_a_mean_is_worked_out_where_that_is_free(session: Session) -> None:
    """It is told exactly: public rows, or what was released."""
    session.execute(HOLDOUT)
    with pytest.raises(BudgetExceeded, match="only what is free"):
        session.execute(f"ASK h {VIP} AGAINST (SELECT AVG(age) FROM people)")
    assert charges(session) == 0
    public = "SELECT AVG(x) FROM (VALUES (0.3), (0.4)) t(x) WHERE x > ?"
    assert session.execute(f"ASK h {VIP} AGAINST ({public})", [0]).rows == [(0.35, False, 2)]
    released = "SELECT AVG(CASE WHEN vip THEN 1 ELSE 0 END) FROM people"
    session.execute(released)
    before = charges(session)
    assert not session.execute(f"ASK h {VIP} AGAINST ({released})").rows[0][1] and charges(session) == before


@pytest.mark.parametrize(
    "behind",
    ["", "AGAINST 'high'", "AGAINST 'nan'", "AGAINST '1e999999999'", "AGAINST (SELECT NULL)", "AGAINST (SELECT 'x')",
     "AGAINST (SELECT true)", "AGAINST (SELECT 1, 2)", "AGAINST (VALUES (1), (2))", "AGAINST (SELECT 1 WHERE false)",
     "AGAINST (SHOW epsilon)", "AGAINST (SELECT set_config('epsilon', '1', false))", "AGAINST '1/0'"],
)  # fmt: skip
def test_a_mean_is_one_number(session: Session, behind: str) -> None:
    session.execute(HOLDOUT)
    with pytest.raises(Error):
        session.execute(f"ASK h {VIP} {behind}")
    with pytest.raises(InvalidParameter, match="must be a number"):
        session.execute(f"ASK h {VIP} AGAINST $1", [None])
    assert charges(session) == 0


def test_a_threshold_is_compared_with_nothing(session: Session) -> None:
    session.execute(BUSY)
    with pytest.raises(InvalidSyntax, match='"busy" is a threshold'):
        session.execute(f"ASK busy {COUNT} AGAINST 3")


def test_values_are_counted_over_the_statement(session: Session) -> None:
    session.execute(BUSY)
    for values in ([], [1, 2]):
        with pytest.raises(ProgrammingError, match="1 placeholder"):
            session.execute(f"ASK busy {COUNT} WHERE age > ?", values)
    with pytest.raises(InvalidSyntax, match=r"there is a \$2, but no \$1"):
        session.execute(f"ASK busy {COUNT} WHERE age > $2", [1, 2])


def test_errors_point_into_the_question(session: Session) -> None:
    session.execute(BUSY)
    with pytest.raises(Error) as caught:
        session.execute("ASK busy SELECT COUNT(*) FROM poeple")
    assert caught.value.span is not None and caught.value.span.start == 30
    with pytest.raises(Unsupported, match="one COUNT or SUM"):
        session.execute("ASK busy SELECT AVG(age) FROM people")
    for wrong in ("ASK busy", "ASK busy SHOW epsilon", "ASK nobody SELECT 1", f"EXPLAIN ASK nobody {COUNT}",
                  f"EXPLAIN {BUSY}"):  # fmt: skip
        with pytest.raises(Error):
            session.execute(wrong)
    assert charges(session) == 0


def test_programs_are_reported_exactly(session: Session) -> None:
    session.execute("DECLARE h HOLDOUT WITH (n = 240, threshold = 0.04, epsilon = 1)")
    ((cell,),) = session.execute(f"ASK (FORMAT JSON) h {VIP} AGAINST 0.9").rows
    told = json.loads(cell)
    assert told["left"] == 9 and told["before"] == [] and told["told"]["question"] == VIP
    assert abs(Fraction(told["told"]["value"]) - Fraction(1, 3)) < Fraction(1, 10**5)


def test_the_first_question_may_fix_more_than_its_own(session: Session) -> None:
    session.execute("DECLARE a THRESHOLD 1000000")
    session.execute(f"ASK (SENSITIVITY 120) a {COUNT}")
    assert session.execute("ASK a SELECT SUM(age) FROM people").rows == [(False, 1)]
    session.execute("DECLARE b THRESHOLD 1000000")
    session.execute(f"ASK (SENSITIVITY 0.5) b {COUNT}")  # at least its own
    with pytest.raises(InvalidParameter, match="at most 1"):
        session.execute("ASK b SELECT SUM(age) FROM people")


# --- what is free ----------------------------------------------------------------------------------------------------


def test_explaining_and_preparing_submit_nothing(session: Session) -> None:
    session.execute(BUSY)
    lines = [line for (line,) in session.execute(f"EXPLAIN ASK busy {COUNT} WHERE age > ?", [3]).rows]
    assert lines[0].startswith("charged up front: epsilon 1.5 (rho")
    assert session.execute("EXPLAIN ASK busy").rows[0] == ("charged up front: epsilon 1.5",)
    more = session.execute(f"EXPLAIN (FORMAT JSON, QUESTIONS 1000, CONFIDENCE 0.9) ASK busy {COUNT}").rows[0][0]
    assert json.loads(more)["questions"] == 1000 and not json.loads(more)["paid"]
    prepared = session.prepare(f"ASK busy {COUNT} WHERE age > $1 AND region = $2")
    assert [str(type_) for type_ in prepared.parameters] == ["integer", "text"] and prepared.command == "ASK"
    assert [column.name for column in prepared.columns] == ["above", "left"]
    assert session.execute("SHOW THRESHOLDS").rows == [("busy", 0, 3, "nothing", None)] and charges(session) == 0
    session.execute(f"ASK busy {COUNT}")
    assert session.execute("EXPLAIN ASK busy").rows[0][0].startswith("paid for up front")
    with pytest.raises(BudgetExceeded, match="only what is free"):
        session.execute("DECLARE other THRESHOLD 1")
        session.execute(f"ASK other {COUNT}", handle=StatementHandle(free=True))
    assert session.execute(f"ASK busy {COUNT}", handle=StatementHandle(free=True)).rows == [(True, 1)]


@pytest.mark.parametrize("options", ["QUESTIONS 0", "QUESTIONS 1.5", "CONFIDENCE 1", "CONFIDENCE x", "QUESTIONS 1e99"])
def test_a_forecast_is_for_some_questions(session: Session, options: str) -> None:
    session.execute(BUSY)
    with pytest.raises(InvalidParameter):
        session.execute(f"EXPLAIN ({options}) ASK busy {COUNT}")


def test_types_of_what_a_holdout_is_given(session: Session) -> None:
    session.execute(HOLDOUT)
    where = f"{VIP} WHERE region = $1"
    assert session.prepare(f"ASK h {where} AGAINST $2").parameters == (TEXT, DOUBLE)
    public = "SELECT 0.5 WHERE 3 < $3 AND $2 = 'a'"
    assert session.prepare(f"ASK h {where} AGAINST ({public})").parameters == (TEXT, TEXT, BIGINT)
    assert session.prepare(f"EXPLAIN ASK h {where} AGAINST $2").parameters == (TEXT, DOUBLE)
    assert [one.name for one in session.prepare(f"ASK (FORMAT JSON) h {VIP} AGAINST 1").columns] == ["answer"]
    with pytest.raises(ProgrammingError) as caught:
        session.prepare(f"ASK nobody {COUNT}")
    assert caught.value.sqlstate == "34000" and charges(session) == 0


# --- what is declared ------------------------------------------------------------------------------------------------


def test_numbers_that_no_answer_could_hold_are_refused_before_the_charge(session: Session) -> None:
    """They were charged and judged, and then no double held what was to be told."""
    session.execute("DECLARE h HOLDOUT WITH (n = 1, threshold = 1, epsilon = 1)")
    for sql in (f"ASK (SENSITIVITY '1e310') h {VIP} AGAINST 2", f"ASK h {VIP} AGAINST 2e308",
                f"EXPLAIN ASK (SENSITIVITY '1e310') h {VIP}"):  # fmt: skip
        with pytest.raises(InvalidParameter, match=r"at most 1e18|too large"):
            session.execute(sql)
    assert charges(session) == 0
    wide, own = (session.execute(f"EXPLAIN ASK {wish}h {VIP}").rows for wish in ("(SENSITIVITY 5000) ", ""))
    assert "5000" in str(wide) and "5000" not in str(own)


@pytest.mark.parametrize(
    ("sql", "match"),
    [
        ("DECLARE t THRESHOLD 1 WITH (speed = 1)", 'no option "speed"'),
        ("DECLARE t THRESHOLD 1 WITH (answers = 1.5)", "whole number"),
        ("DECLARE t THRESHOLD 1 WITH (answers = 100000)", "from 1 to 10000"),
        ("DECLARE t THRESHOLD 1 WITH (epsilon = 0)", "epsilon must be above 0"),
        ("DECLARE t THRESHOLD 1 WITH (epsilon = many)", "epsilon must be a number"),
        ("DECLARE t THRESHOLD '1e999999999'", "threshold must be a number"),
        ("DECLARE h HOLDOUT WITH (n = 1, sigma = 1)", "a holdout needs threshold"),
        ("DECLARE h HOLDOUT WITH (n = 1, threshold = 1)", "sigma or epsilon"),
    ],
)
def test_what_makes_no_sense_is_refused(session: Session, sql: str, match: str) -> None:
    with pytest.raises(InvalidParameter, match=match) as caught:
        session.execute(sql)
    assert caught.value.span is not None


def test_names(session: Session) -> None:
    session.execute(BUSY)
    session.execute("DECLARE c CURSOR WITH HOLD FOR SELECT 1")
    for sql in (BUSY, HOLDOUT.replace("h ", "busy "), "DECLARE busy CURSOR WITH HOLD FOR SELECT 1",
                BUSY.replace("busy", "c")):  # fmt: skip
        with pytest.raises(ProgrammingError) as caught:
            session.execute(sql)
        assert caught.value.sqlstate == "42P03"
    with pytest.raises(ProgrammingError, match='cursor "busy" does not exist'):
        session.execute("FETCH busy")
    with pytest.raises(ProgrammingError, match="1 to 63 characters"):
        session.execute(BUSY.replace("busy", "b" * 64))
    assert session.execute("CLOSE busy").command == "CLOSE THRESHOLD"
    session.execute(BUSY)


def test_their_number_is_bounded(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MAX_MECHANISMS", 2)
    session.execute(BUSY)
    session.execute(HOLDOUT)
    with pytest.raises(LimitExceeded):
        session.execute("DECLARE one_more THRESHOLD 1")
    session.execute("CLOSE h")
    session.execute("DECLARE one_more THRESHOLD 1")


# --- what ends them --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["CLOSE busy", "CLOSE ALL", "DISCARD ALL"])
def test_closing_ends_it_and_its_charge_stands(session: Session, command: str) -> None:
    session.execute(BUSY)
    session.execute(f"ASK busy {COUNT}")
    session.execute(command)
    with pytest.raises(ProgrammingError) as caught:
        session.execute(f"ASK busy {COUNT}")
    assert caught.value.sqlstate == "34000" and session.execute("SHOW THRESHOLDS").rows == []
    session.execute(BUSY)
    session.execute(f"ASK busy {COUNT}")
    assert charges(session) == 2  # nothing is redeemed


def test_a_transaction_neither_ends_nor_undoes_it(session: Session) -> None:
    session.execute("BEGIN")
    session.execute(BUSY)
    session.execute("SAVEPOINT a")
    session.execute(f"ASK busy {COUNT}")
    session.execute("ROLLBACK TO a")
    assert session.execute("SHOW THRESHOLDS").rows == [("busy", 1, 2, "epsilon 1.5", None)]
    session.execute("ROLLBACK")
    assert session.execute(f"ASK busy {COUNT}").rows == [(True, 1)] and charges(session) == 1


def test_another_session_has_none_of_it(session: Session) -> None:
    session.execute(BUSY)
    other = Session(session.dataset, sampler=Silence())
    with pytest.raises(ProgrammingError, match="does not exist"):
        other.execute(f"ASK busy {COUNT}")
    assert session.queries.namespace.all_objects == ()  # nor has the ledger a name of it


def test_a_change_of_the_role_ends_it(tmp_path: Path) -> None:
    rich = "budget: {epsilon: 1000, delta: 0.01}"
    text = SCHEMA.replace("tables:", f"analysts:\n  ana: {{{rich}, may_act_for: [bob]}}\n  bob: {{{rich}}}\ntables:")
    first, reference = open_shop(tmp_path)
    reference.close()
    first.close()
    (tmp_path / "two.yaml").write_text(text.replace("shop.ledger", "two.ledger"))
    session = Session(open_dataset(tmp_path / "two.yaml"), "ana", sampler=Silence())
    session.execute(BUSY)
    session.execute(f"ASK busy {COUNT}")
    session.execute("SET ROLE bob")
    for sql in (f"ASK busy {COUNT}", f"EXPLAIN ASK busy {COUNT}"):
        with pytest.raises(AccessDenied, match="another account's"):
            session.execute(sql)
    assert session.execute("SHOW THRESHOLDS").rows == [] and charges(session) == 0
    session.execute(BUSY)  # a name of bob's own
    assert session.execute(f"ASK busy {COUNT}").rows == [(True, 2)] and charges(session) == 1
    session.execute("RESET ROLE")
    with pytest.raises(AccessDenied):
        session.execute(f"ASK busy {COUNT}")
    session.execute(BUSY)
    session.execute("BEGIN")
    session.execute("SET LOCAL ROLE bob")
    session.execute("ROLLBACK")
    with pytest.raises(OperationalError, match="has ended: the role of its connection has changed"):
        session.execute(f"ASK busy {COUNT}")
    assert session.execute("SHOW THRESHOLDS").rows[0][2] == 0
    session.close()


# --- questions that were left ----------------------------------------------------------------------------------------


def test_a_question_that_was_left_is_judged_once(gated: GatedShop) -> None:
    session = gated.session
    session.execute(BUSY)
    session.execute(f"EXPLAIN ASK busy {COUNT}")
    for _ in range(2):
        handle = StatementHandle()
        thread, got = in_thread(lambda handle=handle: session.execute(f"ASK busy {COUNT}", handle=handle))  # type: ignore[misc]
        until(lambda: gated.engine.began)
        session.cancel(handle)
        thread.join(PATIENCE)
        assert isinstance(got[0], QueryCanceled) and charges(session) == 1
    gated.engine.gate.set()
    assert session.execute(f"ASK busy {COUNT}").rows == [(True, 2)] and gated.engine.began == 1
    assert session.execute(f"ASK busy {COUNT}").rows == [(True, 1)] and gated.engine.began == 2  # a question of its own


def test_what_was_left_is_reported_with_the_next_answer(gated: GatedShop) -> None:
    session = gated.session
    session.execute(BUSY)
    thread, _ = in_thread(lambda: session.execute(f"ASK busy {COUNT}"))
    until(lambda: gated.engine.began)
    session.cancel()
    thread.join(PATIENCE)
    gated.engine.gate.set()
    answer = session.execute(f"ASK busy {COUNT} WHERE age < 0")
    assert answer.rows == [(False, 2)]
    assert answer.notices == ("the question that was left before was answered: above",)
    assert session.execute("SHOW THRESHOLDS").rows == [("busy", 2, 2, "epsilon 1.5", None)]


def test_the_last_answer_above_is_not_lost_to_another_query_first(gated: GatedShop) -> None:
    session = gated.session
    session.execute("DECLARE busy THRESHOLD 100 WITH (epsilon = 1, answers = 1)")
    thread, _ = in_thread(lambda: session.execute(f"ASK busy {COUNT}"))
    until(lambda: gated.engine.began)
    session.cancel()
    thread.join(PATIENCE)
    gated.engine.gate.set()
    with pytest.raises(BudgetExceeded):
        session.execute(f"ASK busy {COUNT} WHERE age < 0")
    assert session.execute(f"ASK busy {COUNT}").rows == [(True, 0)] and gated.engine.began == 1


def test_an_answer_whose_delivery_was_canceled_is_given_again(session: Session) -> None:
    """A server sends rows after the session has answered, and can be canceled until the last one."""
    session.execute(BUSY)
    handle = StatementHandle()
    assert session.execute(f"ASK busy {COUNT}", handle=handle).rows == [(True, 2)]
    session.cancel(handle)
    assert session.execute(f"ASK busy {COUNT}").rows == [(True, 2)]
    assert session.execute(f"ASK busy {COUNT}").rows == [(True, 1)]  # that one was told


def test_another_mean_is_another_question(gated: GatedShop) -> None:
    session = gated.session
    session.execute(HOLDOUT)
    thread, _ = in_thread(lambda: session.execute(f"ASK h {VIP} AGAINST 0.9"))
    until(lambda: gated.engine.began)
    session.cancel()
    thread.join(PATIENCE)
    gated.engine.gate.set()
    assert session.execute(f"ASK h {VIP} AGAINST 0.34").rows == [(0.34, False, 1)]


def test_memory_does_not_grow_with_questions(gated: GatedShop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interaction, "MAX_QUESTION_CHARACTERS", 20)
    session = gated.session
    session.execute(BUSY)
    gated.engine.gate.set()
    held = session._named_statements.mechanisms.get_mechanism("busy")
    for age in range(5):
        session.execute(f"ASK busy {COUNT} WHERE age = {age}")
    assert not held._undelivered and held._last is not None and len(held._last[0].text) == 20
    for _ in range(interaction.MAX_UNDELIVERED + 5):
        held._record_answer(held._last[0], b'{"dpsql_answer":1,"number":1,"above":false,"value":null}')
    assert len(held._undelivered) == interaction.MAX_UNDELIVERED
