"""Settings in transactions: kept by COMMIT, dropped by ROLLBACK, local ones dropped by both."""

from fractions import Fraction

import pytest

from dpsql.errors import InvalidParameter, ProgrammingError
from dpsql.schema.model import Budget, Contributions, Neighbors, Privacy
from dpsql.sql.commands import DiscardCommand, Step
from dpsql.state import State, new_state

ONE = Fraction(1)
BUDGET = Budget(8 * ONE, ONE / 10**6)
PRIVACY = Privacy(Neighbors.ADD_REMOVE, "t.id", BUDGET, Budget(ONE, ONE / 10**9), Contributions(20, 5))


def after(*steps: object) -> State:
    """Steps: "epsilon=2", "local epsilon=2", a Step, or (Step, savepoint)."""
    state = new_state(PRIVACY)
    for step in steps:
        match step:
            case str():
                words = step.split()
                name, value = words[-1].split("=")
                state = state.set(PRIVACY, name, value, local=words[0] == "local")
            case Step():
                state = state.step(step, None)
            case (Step() as kind, str() as name):
                state = state.step(kind, name)
    return state


@pytest.mark.parametrize(
    ("steps", "epsilon"),
    [
        (("epsilon=2",), "2"),
        ((Step.BEGIN, "epsilon=2"), "2"),
        ((Step.BEGIN, "epsilon=2", Step.COMMIT), "2"),
        ((Step.BEGIN, "epsilon=2", Step.ROLLBACK), "1"),
        (("epsilon=3", Step.BEGIN, "epsilon=2", Step.ROLLBACK), "3"),
        ((Step.BEGIN, "local epsilon=2"), "2"),
        ((Step.BEGIN, "local epsilon=2", Step.COMMIT), "1"),
        ((Step.BEGIN, "local epsilon=2", Step.ROLLBACK), "1"),
        ((Step.BEGIN, "epsilon=3", "local epsilon=2", Step.COMMIT), "3"),
        ((Step.BEGIN, "local epsilon=2", "epsilon=3"), "3"),
        ((Step.BEGIN, Step.BEGIN, "epsilon=2", Step.ROLLBACK), "1"),
        ((Step.COMMIT,), "1"),
        ((Step.ROLLBACK, "epsilon=2", Step.ROLLBACK), "2"),
        ((Step.BEGIN, (Step.SAVEPOINT, "a"), "epsilon=2", (Step.ROLLBACK_TO, "a")), "1"),
        ((Step.BEGIN, (Step.SAVEPOINT, "a"), "epsilon=2", (Step.RELEASE, "a"), Step.COMMIT), "2"),
        ((Step.BEGIN, (Step.SAVEPOINT, "a"), "local epsilon=2", (Step.ROLLBACK_TO, "a"), (Step.ROLLBACK_TO, "a")), "1"),
        (
            (Step.BEGIN, (Step.SAVEPOINT, "a"), "epsilon=2", (Step.SAVEPOINT, "a"), "epsilon=3", (Step.RELEASE, "a"),
             (Step.ROLLBACK_TO, "a")),
            "1",
        ),
        ((Step.BEGIN, "epsilon=2", Step.COMMIT, Step.ROLLBACK), "2"),
    ],
)  # fmt: skip
def test_what_holds_after(steps: tuple[object, ...], epsilon: str) -> None:
    assert after(*steps).now.show("epsilon") == epsilon


@pytest.mark.parametrize(
    ("steps", "state"),
    [
        (("local epsilon=2",), "25P01"),
        (((Step.SAVEPOINT, "a"),), "25P01"),
        (((Step.RELEASE, "a"),), "25P01"),
        ((Step.BEGIN, (Step.ROLLBACK_TO, "a")), "3B001"),
        ((Step.BEGIN, (Step.SAVEPOINT, "a"), (Step.RELEASE, "a"), (Step.ROLLBACK_TO, "a")), "3B001"),
    ],
)
def test_what_needs_a_transaction_is_refused_outside(steps: tuple[object, ...], state: str) -> None:
    with pytest.raises(ProgrammingError) as caught:
        after(*steps)
    assert caught.value.sqlstate == state


def test_postgres_settings_live_beside_ours() -> None:
    state = after(Step.BEGIN, "application_name=x", "epsilon=2")
    assert dict(state.now.items())["application_name"] == "x"
    assert state.step(Step.ROLLBACK, None).now.show("application_name") == ""
    assert state.reset(PRIVACY, "application_name").now.show("application_name") == ""
    assert state.reset(PRIVACY, None).now == new_state(PRIVACY).now
    assert state.set(PRIVACY, "epsilon", None).now.show("epsilon") == "1"
    with pytest.raises(InvalidParameter, match="there is no setting"):
        after("shared_buffers=1")


OPENED = {"Epsilon": "0.3", "application_name": "nb", "max_error": "5"}


@pytest.mark.parametrize("back", ["RESET", "RESET ALL", "SET TO DEFAULT", "DISCARD ALL"])
def test_a_reset_goes_back_to_what_the_connection_was_opened_with(back: str) -> None:
    opened = new_state(PRIVACY, OPENED)
    names = ("epsilon", "application_name", "max_error", "max_relative_error", "delta")
    state = opened.step(Step.BEGIN, None)
    for name, value in zip(names, ("2", "x", "7", "0.1", "0"), strict=True):
        state = state.set(PRIVACY, name, value)
    match back:
        case "RESET":
            for name in names:
                state = state.reset(PRIVACY, name)
        case "RESET ALL":
            state = state.reset(PRIVACY, None)
        case "SET TO DEFAULT":
            for name in names:
                state = state.set(PRIVACY, name, None)
        case "DISCARD ALL":
            state, _ = state.after(PRIVACY, DiscardCommand())
    state = state.step(Step.COMMIT, None)
    assert state.now == state.kept == opened.now
    assert [state.now.show(name) for name in names] == ["0.3", "nb", "5", "none", "1E-9"]


def test_resetting_an_aim_leaves_the_other_one_that_is_set() -> None:
    state = new_state(PRIVACY).set(PRIVACY, "max_error", "3").reset(PRIVACY, "max_relative_error")
    assert state.now.show("max_error") == "3"
