"""Settings in transactions: kept by COMMIT, dropped by ROLLBACK, local ones dropped by both."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.compiler.parse.commands import DiscardCommand, TransactionStep
from dpsql.errors import AccessDenied, InvalidParameter, ProgrammingError, SchemaError
from dpsql.schema.model import Analyst, Budget, Contributions, Neighbors, Privacy, Schema
from dpsql.session.roles import ConnectionRoles, check_settings
from dpsql.session.transaction import SessionState, initial_state

ONE = Fraction(1)
BUDGET = Budget(8 * ONE, ONE / 10**6)
PRIVACY = Privacy(Neighbors.ADD_REMOVE, "t.id", BUDGET, Budget(ONE, ONE / 10**9), Contributions(20, 5))

SMALL = Budget(ONE / 2, ONE / 10**7)
SCHEMA = Schema(
    Path("s.yaml"), "duckdb://", "sqlite://", PRIVACY, tables=(),
    analysts=(
        Analyst("bi", BUDGET, may_act_for=("ana", "eva"), settings=(("noise", "laplace"),)),
        Analyst("ana", BUDGET, settings=(("epsilon", "0.25"),)),
        Analyst("eva", SMALL),
        Analyst("bob", BUDGET),
    ),
)  # fmt: skip


def opened(given: dict[str, str] | None = None, user: str = "bob") -> SessionState:
    return initial_state(ConnectionRoles(SCHEMA, user, given or {}))


def after(*steps: object) -> SessionState:
    """Steps: "epsilon=2", "local epsilon=2", a Step, or (Step, savepoint)."""
    state = opened()
    for step in steps:
        match step:
            case str():
                words = step.split()
                name, value = words[-1].split("=")
                state = state.set_value(name, value, local=words[0] == "local")
            case TransactionStep():
                state = state.apply_step(step, None)
            case (TransactionStep() as kind, str() as name):
                state = state.apply_step(kind, name)
    return state


@pytest.mark.parametrize(
    ("steps", "epsilon"),
    [
        (("epsilon=2",), "2"),
        ((TransactionStep.BEGIN, "epsilon=2"), "2"),
        ((TransactionStep.BEGIN, "epsilon=2", TransactionStep.COMMIT), "2"),
        ((TransactionStep.BEGIN, "epsilon=2", TransactionStep.ROLLBACK), "1"),
        (("epsilon=3", TransactionStep.BEGIN, "epsilon=2", TransactionStep.ROLLBACK), "3"),
        ((TransactionStep.BEGIN, "local epsilon=2"), "2"),
        ((TransactionStep.BEGIN, "local epsilon=2", TransactionStep.COMMIT), "1"),
        ((TransactionStep.BEGIN, "local epsilon=2", TransactionStep.ROLLBACK), "1"),
        ((TransactionStep.BEGIN, "epsilon=3", "local epsilon=2", TransactionStep.COMMIT), "3"),
        ((TransactionStep.BEGIN, "local epsilon=2", "epsilon=3"), "3"),
        ((TransactionStep.BEGIN, TransactionStep.BEGIN, "epsilon=2", TransactionStep.ROLLBACK), "1"),
        ((TransactionStep.COMMIT,), "1"),
        ((TransactionStep.ROLLBACK, "epsilon=2", TransactionStep.ROLLBACK), "2"),
        (
            (TransactionStep.BEGIN, (TransactionStep.SAVEPOINT, "a"), "epsilon=2", (TransactionStep.ROLLBACK_TO, "a")),
            "1",
        ),
        (
            (
                TransactionStep.BEGIN,
                (TransactionStep.SAVEPOINT, "a"),
                "epsilon=2",
                (TransactionStep.RELEASE, "a"),
                TransactionStep.COMMIT,
            ),
            "2",
        ),
        (
            (
                TransactionStep.BEGIN,
                (TransactionStep.SAVEPOINT, "a"),
                "local epsilon=2",
                (TransactionStep.ROLLBACK_TO, "a"),
                (TransactionStep.ROLLBACK_TO, "a"),
            ),
            "1",
        ),
        (
            (
                TransactionStep.BEGIN,
                (TransactionStep.SAVEPOINT, "a"),
                "epsilon=2",
                (TransactionStep.SAVEPOINT, "a"),
                "epsilon=3",
                (TransactionStep.RELEASE, "a"),
                (TransactionStep.ROLLBACK_TO, "a"),
            ),
            "1",
        ),
        ((TransactionStep.BEGIN, "epsilon=2", TransactionStep.COMMIT, TransactionStep.ROLLBACK), "2"),
    ],
)
def test_what_holds_after(steps: tuple[object, ...], epsilon: str) -> None:
    assert after(*steps).now.show_value("epsilon") == epsilon


@pytest.mark.parametrize(
    ("steps", "state"),
    [
        (("local epsilon=2",), "25P01"),
        (((TransactionStep.SAVEPOINT, "a"),), "25P01"),
        (((TransactionStep.RELEASE, "a"),), "25P01"),
        ((TransactionStep.BEGIN, (TransactionStep.ROLLBACK_TO, "a")), "3B001"),
        (
            (
                TransactionStep.BEGIN,
                (TransactionStep.SAVEPOINT, "a"),
                (TransactionStep.RELEASE, "a"),
                (TransactionStep.ROLLBACK_TO, "a"),
            ),
            "3B001",
        ),
    ],
)
def test_what_needs_a_transaction_is_refused_outside(steps: tuple[object, ...], state: str) -> None:
    with pytest.raises(ProgrammingError) as caught:
        after(*steps)
    assert caught.value.sqlstate == state


def test_postgres_settings_live_beside_ours() -> None:
    state = after(TransactionStep.BEGIN, "application_name=x", "epsilon=2")
    assert dict(state.now.items())["application_name"] == "x"
    assert state.apply_step(TransactionStep.ROLLBACK, None).now.show_value("application_name") == ""
    assert state.reset_value("application_name").now.show_value("application_name") == ""
    assert state.reset_value(None).now == opened().now
    assert state.set_value("epsilon", None).now.show_value("epsilon") == "1"
    with pytest.raises(InvalidParameter, match="there is no setting"):
        after("shared_buffers=1")


OPENED = {"Epsilon": "0.3", "application_name": "nb", "max_error": "5"}


@pytest.mark.parametrize("back", ["RESET", "RESET ALL", "SET TO DEFAULT", "DISCARD ALL"])
def test_a_reset_goes_back_to_what_the_connection_was_opened_with(back: str) -> None:
    first = opened(OPENED)
    names = ("epsilon", "application_name", "max_error", "max_relative_error", "delta")
    state = first.apply_step(TransactionStep.BEGIN, None)
    for name, value in zip(names, ("2", "x", "7", "0.1", "0"), strict=True):
        state = state.set_value(name, value)
    match back:
        case "RESET":
            for name in names:
                state = state.reset_value(name)
        case "RESET ALL":
            state = state.reset_value(None)
        case "SET TO DEFAULT":
            for name in names:
                state = state.set_value(name, None)
        case "DISCARD ALL":
            state, _ = state.apply_command(DiscardCommand())
    state = state.apply_step(TransactionStep.COMMIT, None)
    assert state.now == state.kept == first.now
    assert [state.now.show_value(name) for name in names] == ["0.3", "nb", "5", "none", "1E-9"]


def test_resetting_an_aim_leaves_the_other_one_that_is_set() -> None:
    state = opened().set_value("max_error", "3").reset_value("max_relative_error")
    assert state.now.show_value("max_error") == "3"


# --- roles -----------------------------------------------------------------------------------------------------------


def shown(state: SessionState) -> tuple[str, str, str]:
    return state.now.role, state.now.show_value("epsilon"), state.now.show_value("noise")


def test_a_role_brings_its_own_defaults_and_keeps_what_was_set() -> None:
    """eva's budget is smaller than the schema's default statement; ana's settings are the owner's."""
    state = opened(user="bi")
    assert shown(state) == ("none", "1", "laplace")
    assert shown(state.set_value("role", "ana")) == ("ana", "0.25", "auto")
    assert shown(state.set_value("role", "eva")) == ("eva", "0.5", "auto")
    assert shown(state.set_value("epsilon", "0.1").set_value("role", "ana")) == ("ana", "0.1", "auto")
    assert shown(state.set_value("role", "ana").set_value("role", "NONE")) == ("none", "1", "laplace")
    assert shown(state.set_value("role", "ana").set_value("epsilon", "0.1").reset_value(None)) == (
        "ana",
        "0.25",
        "auto",
    )
    assert shown(opened({"epsilon": "0.1", "role": "ana"}, "bi").reset_value("role")) == ("ana", "0.1", "auto")
    assert shown(state.set_value("role", "ana").apply_command(DiscardCommand())[0]) == ("none", "1", "laplace")


def test_a_transaction_gives_a_role_back() -> None:
    begun = opened(user="bi").apply_step(TransactionStep.BEGIN, None)
    for local, step, role in (
        (False, TransactionStep.ROLLBACK, "none"),
        (False, TransactionStep.COMMIT, "ana"),
        (True, TransactionStep.COMMIT, "none"),
    ):
        assert begun.set_value("role", "ana", local).now.role == "ana"
        assert begun.set_value("role", "ana", local).apply_step(step, None).now.role == role


@pytest.mark.parametrize(
    ("user", "name"), [("bi", "bob"), ("bi", "nobody"), ("bi", "ANA"), ("ana", "bi"), ("bob", "ana")]
)
def test_a_forbidden_role_is_not_distinguished_from_an_unknown_one(user: str, name: str) -> None:
    with pytest.raises(AccessDenied, match=f'permission denied to set role "{name}"') as caught:
        opened(user=user).set_value("role", name)
    assert caught.value.sqlstate == "42501"
    with pytest.raises(AccessDenied):
        opened({"role": name}, user)


def test_the_settings_that_the_owner_gives_are_checked() -> None:
    check_settings(SCHEMA)
    wrong = replace(SCHEMA, analysts=(Analyst("ana", BUDGET, settings=(("epsilonn", "1"),)),))
    with pytest.raises(SchemaError, match=r"analysts\.ana\.settings\.epsilonn: there is no setting"):
        check_settings(wrong)
