"""Getting more than was paid for: by failing, stopping, racing, or clocks that are turned back."""

from __future__ import annotations

import datetime as dt
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest

from dpsql.session.session import Session
from tests.support import kill_at_step
from tests.support.attack_hospital import DATA, build, for_free, outcome, reopen, schema_text, spent
from tests.support.ledgers import Shelf, bodies, in_schema

pytestmark = pytest.mark.slow

COUNT = "SELECT kind, COUNT(*) FROM visits GROUP BY kind"
STAGED = "SELECT COUNT(*) FROM visits WHERE n > (SELECT AVG(n) FROM visits)"
ROOT = Path(__file__).resolve().parents[2]


def new(folder: Path, name: str = "h", **named: Any) -> Session:
    return build(folder, name, schema_text(name, **named), DATA)


# --- stopping at every step ------------------------------------------------------------------------------------------


# A statement of two stages writes six times: the charge, a lease, a body, the holes, a lease, a body.
IN_WRITES = [(STAGED, step, place) for step in kill_at_step.WRITES for place in range(6)]
KILLS = [
    *(("sqlite", COUNT, step, 0) for step in kill_at_step.STEPS),
    *((database, *kill) for database in ("sqlite", "postgres") for kill in IN_WRITES),
    ("postgres", COUNT, "noise", 0),
]


@pytest.fixture(scope="module")
def warm() -> ForkServerContext:
    """Its processes start with dpsql imported, which takes longer than what they do."""
    context = get_context("forkserver")
    context.set_forkserver_preload([kill_at_step.__name__])
    return context


@pytest.mark.parametrize(("shelf", "sql", "step", "skip"), KILLS, indirect=["shelf"])
def test_killed_at_a_step_the_question_is_paid_for_once_and_answered_once(
    shelf: Shelf, warm: ForkServerContext, tmp_path: Path, sql: str, step: str, skip: int
) -> None:
    with closing_session(build(tmp_path, "h", in_schema(schema_text("h"), shelf.url()), DATA)) as session:
        price = sum(one.loss.rho for one in session.compile_statement(sql, ()).steps)
    process = warm.Process(target=kill_at_step.ask_and_be_killed, args=(tmp_path / "h.yaml", step, sql, skip))
    process.start()
    process.join(timeout=60)
    assert process.exitcode == -signal.SIGKILL
    stored = bodies(shelf.url())
    with closing_session(reopen(tmp_path / "h.yaml")) as session:
        uncharged = step == "before purchase" or (step, skip) == ("in write", 0)
        assert spent(session)[1] == (0 if uncharged else price)
        first = session.execute(sql).rows
        assert spent(session)[1] == price, "asking again redeems the charge"
        after = bodies(shelf.url())
        for id_, body in stored:
            assert body is None or (id_, body) in after, "what was stored is never replaced"
    with closing_session(reopen(tmp_path / "h.yaml")) as session:
        assert session.execute(sql).rows == first
        assert bodies(shelf.url()) == after and spent(session)[1] == price
        assert session.dataset.ledger.verify_chains() == ()


@contextmanager
def closing_session(session: Session) -> Iterator[Session]:
    try:
        yield session
    finally:
        session.dataset.close()


def interrupt() -> None:
    raise KeyboardInterrupt


def fail() -> None:
    raise MemoryError("row 7 is too large")


@pytest.mark.parametrize("stop", [interrupt, fail])
@pytest.mark.parametrize("step", kill_at_step.STEPS)
def test_stopped_at_a_step_the_question_is_paid_for_once_and_answered_once(
    tmp_path: Path, step: str, stop: Callable[[], None]
) -> None:
    session = new(tmp_path)
    price = session.compile_statement(COUNT, ()).steps[0].loss.rho
    with pytest.MonkeyPatch.context() as patch:
        kill_at_step.around(step, stop, patch.setattr)
        with pytest.raises(BaseException) as caught:
            session.execute(COUNT)
    assert "row 7" not in str(caught.value) or step in (
        "post",
        "before purchase",
        "after purchase",
        "before store",
        "after store",
    )
    assert spent(session)[1] in ((0,) if step == "before purchase" else (price,))
    stored = dict(bodies(f"sqlite://{tmp_path}/h.ledger"))
    first = session.execute(COUNT).rows
    assert spent(session)[1] == price
    after = dict(bodies(f"sqlite://{tmp_path}/h.ledger"))
    assert len(after) == 1 and all(after[id_] == body for id_, body in stored.items() if body is not None)
    assert session.execute(COUNT).rows == first and dict(bodies(f"sqlite://{tmp_path}/h.ledger")) == after


def test_an_error_after_the_noise_neither_refunds_nor_draws_again(tmp_path: Path) -> None:
    """An attacker makes post-processing fail on what she does not like, and asks again."""
    session = new(tmp_path)
    sql = "SELECT CASE WHEN COUNT(*) > {} THEN error('again') ELSE COUNT(*) END FROM visits"
    assert "not available" in outcome(session, sql.format(0)) and session.budget().charges == 0
    sql = "SELECT CAST(CASE WHEN COUNT(*) > {} THEN 'x' ELSE '1' END AS INTEGER) FROM visits"
    said = {outcome(session, sql.format(bound)).split(":")[0] for bound in (-100000, 100000, -100000, 0)}
    assert said == {"DataError", "answered"}
    assert session.budget().charges == 1
    assert len(bodies(f"sqlite://{tmp_path}/h.ledger")) == 1
    session.timeout = 0.000001
    outcome(session, "SELECT COUNT(*) * 2 FROM visits")
    session.timeout = 60
    assert session.budget().charges == 1


def test_an_error_between_stages_draws_nothing_again(tmp_path: Path) -> None:
    session = new(tmp_path)
    sql = "SELECT COUNT(*) FROM visits WHERE ward = (SELECT ward FROM visits GROUP BY ward)"
    for _ in range(3):
        assert outcome(session, sql).startswith("DataError")
    assert session.budget().charges == 1
    assert [body is not None for _, body in bodies(f"sqlite://{tmp_path}/h.ledger")] == [True, False]
    price = sum(step.loss.rho for step in session.compile_statement(sql, ()).steps)
    assert spent(session)[1] == price, "both steps are paid for, though the second never ran"


# --- at once ---------------------------------------------------------------------------------------------------------


def test_threads_at_once_get_one_answer_for_one_charge(tmp_path: Path) -> None:
    sessions = [new(tmp_path), *(reopen(tmp_path / "h.yaml") for _ in range(7))]
    start = threading.Barrier(len(sessions))

    def ask(session: Session) -> str:
        start.wait(timeout=30)
        return repr(sorted(session.execute(COUNT).rows))

    with ThreadPoolExecutor(len(sessions)) as pool:
        seen = set(pool.map(ask, sessions))
    assert len(seen) == 1
    assert sessions[0].budget().charges == 1 and len(bodies(f"sqlite://{tmp_path}/h.ledger")) == 1


def test_threads_at_once_do_not_pass_the_budget(tmp_path: Path) -> None:
    session = new(tmp_path, epsilon="3", delta="1e-5")
    others = [reopen(tmp_path / "h.yaml") for _ in range(4)]

    def drain(place: int) -> list[str]:
        return [outcome(others[place], f"SELECT COUNT(*) FROM visits WHERE n <> {place * 100 + i}") for i in range(8)]

    with ThreadPoolExecutor(4) as pool:
        said = [one for found in pool.map(drain, range(4)) for one in found]
    balance = session.budget()
    assert balance.spent_rho <= balance.limit_rho and balance.charges == said.count("answered") < len(said)
    assert session.dataset.ledger.verify_chains() == ()


DRAIN = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.support.attack_hospital import outcome, reopen
from pathlib import Path
session = reopen(Path(sys.argv[2]))
print(sum(outcome(session, f"SELECT COUNT(*) FROM visits WHERE n <> {sys.argv[3]}{i}") == "answered" for i in range(8)))
"""


def test_processes_at_once_do_not_pass_the_budget(tmp_path: Path) -> None:
    session = new(tmp_path, epsilon="3", delta="1e-5")
    runs = [subprocess.Popen([sys.executable, "-c", DRAIN, str(ROOT), str(tmp_path / "h.yaml"), str(n)],
                             stdout=subprocess.PIPE, text=True, cwd=ROOT) for n in (1, 2)]  # fmt: skip
    answered = sum(int(run.communicate(timeout=60)[0]) for run in runs)
    balance = session.budget()
    assert balance.spent_rho <= balance.limit_rho
    assert balance.charges == answered < 16


# --- clocks ----------------------------------------------------------------------------------------------------------

NOW = "SELECT COUNT(*) FROM visits WHERE day < CURRENT_DATE"
MOMENT = "SELECT COUNT(*) FROM visits WHERE CAST(day AS timestamp) < CAST(now() AS timestamp)"


def at(session: Session, *when: int) -> Session:
    session.clock = lambda: dt.datetime(*when, tzinfo=dt.UTC)  # type: ignore[arg-type,misc]
    return session


def test_a_clock_that_is_turned_back_gives_no_second_draw(tmp_path: Path) -> None:
    session = at(new(tmp_path), 2024, 6, 1)
    first = session.execute(NOW).rows
    assert at(session, 2024, 6, 1, 12).execute(NOW).rows == first, "the same day is the same question"
    at(session, 2024, 6, 2).execute(NOW)
    assert at(session, 2024, 6, 1).execute(NOW).rows == first
    assert session.budget().charges == 2
    draws = {tuple(at(session, 2024, 6, 1, 0, 0, second).execute(MOMENT).rows) for second in range(5)}
    assert session.budget().charges == 2 + 5 or len(draws) == 1, "each moment is another question, or the same draw"


@pytest.mark.parametrize("when", [(1, 1, 1), (1969, 12, 31), (9999, 12, 31, 23, 59, 59)])
def test_far_times_are_no_way_around(tmp_path: Path, when: tuple[int, ...]) -> None:
    session = at(new(tmp_path, epsilon="3", delta="1e-5"), *when)
    for sql in (NOW, MOMENT, "SELECT COUNT(*) FROM visits WHERE day > CURRENT_DATE + 3650000",
                "SELECT COUNT(*) FROM visits WHERE day < now() - INTERVAL '9000 years'"):  # fmt: skip
        said = outcome(session, sql)
        assert not said.startswith(("EngineFailed", "InternalError")), said
    session.set("epsilon", "2.9")
    session.set("delta", "1e-6")
    outcome(session, COUNT)
    with for_free(session):
        assert outcome(session, "SELECT SUM(n) FROM visits").startswith("BudgetExceeded")
    assert session.dataset.ledger.verify_chains() == ()
