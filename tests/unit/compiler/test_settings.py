"""Settings: within the owner's policy, exactly as written, and back again."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.parse.googlesql import Option
from dpsql.compiler.settings import (
    SETTING_NAMES,
    SessionSettings,
    apply_options,
    change_setting,
    default_settings,
    reset_setting,
    show_setting,
)
from dpsql.errors import Error, InvalidParameter, Span
from dpsql.schema.model import Budget, Contributions, Neighbors, Privacy, Resolved

PRIVACY = Privacy(
    Neighbors.ADD_REMOVE,
    "t.id",
    Budget(Fraction(8), Fraction(1, 10**6)),
    Budget(Fraction(1, 10), Fraction(1, 10**9)),
    Contributions(20, 5),
)
UNCAPPED = replace(PRIVACY, contributions=Contributions())


def changed(name: str, value: str, privacy: Privacy = PRIVACY) -> SessionSettings:
    return change_setting(default_settings(privacy), privacy, name, value)


def test_a_statement_starts_with_the_owners_values() -> None:
    statement = default_settings(PRIVACY).statement
    assert (statement.epsilon, statement.delta) == (Fraction(1, 10), Fraction(1, 10**9))
    assert (statement.rows, statement.groups, statement.noise) == (20, 5, None)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("epsilon", "0.1", "0.1"),
        ("epsilon", "1/3", "1/3"),
        ("epsilon", "'2'", "2"),
        ("epsilon", "1e-3", "0.001"),
        ("delta", "0", "0"),
        ("delta", "1e-9", "1E-9"),
        ("contributions.rows", "20", "20"),
        ("contributions.rows", "1", "1"),
        ("contributions.groups", "3", "3"),
        ("noise", "LAPLACE", "laplace"),
        ("noise", "'gaussian'", "gaussian"),
        ("noise", "auto", "auto"),
        ("nonnegative", "on", "on"),
        ("nonnegative", "FALSE", "off"),
        ("derive", "off", "off"),
    ],
)
def test_a_setting_is_shown_as_it_was_set(name: str, value: str, shown: str) -> None:
    assert show_setting(changed(name, value), name) == shown


def test_numbers_are_exact() -> None:
    assert changed("epsilon", "0.1").statement.epsilon == Fraction(1, 10)
    assert changed("delta", "1e-300").statement.delta == Fraction(1, 10**300)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", "0"), ("epsilon", "-1"), ("epsilon", "nan"), ("epsilon", "inf"), ("epsilon", "much"),
        ("epsilon", ""), ("epsilon", "1/0"), ("epsilon", "1e999999"), ("epsilon", "1e-999999"), ("epsilon", "1000001"),
        ("epsilon", "-1/3"), ("delta", "1"), ("delta", "-1e-9"), ("delta", "nan"), ("delta", "x"),
        ("contributions.rows", "0"), ("contributions.rows", "-1"), ("contributions.rows", "1.5"),
        ("contributions.rows", "21"), ("contributions.rows", "none"), ("contributions.rows", "auto"),
        ("contributions.groups", "6"),
        ("noise", "cauchy"), ("noise", ""), ("nonnegative", "maybe"), ("nonnegative", "1"),
    ],
)  # fmt: skip
def test_values_out_of_range_are_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        changed(name, value)
    assert caught.value.sqlstate == "22023"


def test_caps_that_the_owner_does_not_set_may_be_set() -> None:
    assert changed("contributions.rows", "1000", UNCAPPED).statement.rows == 1000
    with pytest.raises(InvalidParameter):
        changed("contributions.rows", str(1 << 30), UNCAPPED)


@pytest.mark.parametrize("word", ["auto", "AUTO", "'auto'", "none"])
@pytest.mark.parametrize("name", ["contributions.rows", "contributions.groups"])
def test_a_cap_of_the_session_resets_to_automatic_where_the_owner_declares_none(name: str, word: str) -> None:
    assert show_setting(default_settings(UNCAPPED), name) == "auto"
    own = changed(name, "3", UNCAPPED)
    assert show_setting(own, name) == "3"
    back = change_setting(own, UNCAPPED, name, word)
    assert show_setting(back, name) == "auto" and back == default_settings(UNCAPPED)


def test_a_declared_cap_does_not_become_automatic() -> None:
    with pytest.raises(InvalidParameter, match="cannot be automatic where the owner declares 20") as caught:
        changed("contributions.rows", "auto")
    assert "RESET contributions.rows" in str(caught.value.hint)


@pytest.mark.parametrize(
    "act",
    [
        lambda: changed("colour", "1"),
        lambda: show_setting(default_settings(PRIVACY), "colour"),
        lambda: reset_setting(default_settings(PRIVACY), PRIVACY, "colour", default_settings(PRIVACY)),
    ],
)
def test_a_setting_that_does_not_exist_is_refused_with_those_that_do(act) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidParameter) as caught:
        act()
    assert caught.value.sqlstate == "42704" and all(name in str(caught.value.hint) for name in SETTING_NAMES)


@pytest.mark.parametrize("privacy", [PRIVACY, UNCAPPED])
@pytest.mark.parametrize("name", SETTING_NAMES)
def test_reset_brings_one_setting_back_and_no_other(name: str, privacy: Privacy) -> None:
    values = {"epsilon": "3", "delta": "1e-8", "contributions.rows": "2", "contributions.groups": "2",
              "noise": "laplace", "nonnegative": "on"}  # fmt: skip
    settings = default_settings(privacy)
    for other, value in values.items():
        settings = change_setting(settings, privacy, other, value)
    back = reset_setting(settings, privacy, name, default_settings(privacy))
    assert show_setting(back, name) == show_setting(default_settings(privacy), name)
    assert all(show_setting(back, other) == show_setting(settings, other) for other in SETTING_NAMES if other != name)


def test_noise_is_gaussian_where_there_is_a_delta_and_laplace_where_there_is_none() -> None:
    assert default_settings(PRIVACY).statement.chosen_noise is NoiseKind.GAUSSIAN
    assert changed("delta", "0").statement.chosen_noise is NoiseKind.LAPLACE
    assert changed("noise", "laplace").statement.chosen_noise is NoiseKind.LAPLACE


# --- options of a statement ------------------------------------------------------------------------------------------


def option(name: str, value: str) -> Option:
    return Option(name, value, Span(3, 7))


def test_options_of_a_statement_are_settings_of_it(clinic: Resolved) -> None:
    start = default_settings(clinic.schema.privacy).statement
    options = (option("epsilon", "0.5"), option("delta", "0"), option("max_rows_contributed", "2"),
               option("max_groups_contributed", "1"), option("privacy_unit_column", "v.Patient_id"))  # fmt: skip
    asked = apply_options(start, clinic.schema, options)
    assert (asked.epsilon, asked.delta, asked.rows, asked.groups) == (Fraction(1, 2), 0, 2, 1)
    assert apply_options(start, clinic.schema, (option("noise", "laplace"),)).noise is NoiseKind.LAPLACE
    assert apply_options(start, clinic.schema, ()) == start


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("max_rows_contributed", "1000", "above the owner's"),
        ("max_groups_contributed", "NULL", "cannot be automatic"),
        ("epsilon", "0", "above 0"), ("delta", "1", "below 1"), ("privacy_unit_column", "ward", "privacy unit is"),
        ("max_error", "0", "above 0"), ("max_error", "many", "must be a number"),
        ("confidence", "1", "at most 0.999999"), ("confidence", "0.4", "at least 0.5"),
        ("max_relative_error", "0.6", "at most 0.5"),
        ("k_threshold", "50", "no option"), ("nonnegative", "on", "no option"), ("rows", "1", "no option"),
    ],
)  # fmt: skip
def test_options_that_do_not_hold_here_are_pointed_at(clinic: Resolved, name: str, value: str, message: str) -> None:
    with pytest.raises(Error, match=message) as caught:
        apply_options(default_settings(clinic.schema.privacy).statement, clinic.schema, (option(name, value),))
    assert caught.value.span == Span(3, 7)


def test_an_error_target_is_set_in_one_way_at_a_time(clinic: Resolved) -> None:
    start = default_settings(clinic.schema.privacy)
    absolute = change_setting(start, clinic.schema.privacy, "max_error", "5")
    relative = change_setting(absolute, clinic.schema.privacy, "max_relative_error", "0.05")
    assert (absolute.statement.max_error, relative.statement.max_error) == (5, None)
    assert relative.statement.max_relative_error == Fraction(1, 20)
    assert change_setting(relative, clinic.schema.privacy, "max_error", "none") == relative
    for one, other in (("epsilon", "max_error"), ("max_error", "max_relative_error")):
        with pytest.raises(Error, match=f"{one} or {other}, not both"):
            apply_options(start.statement, clinic.schema, (option(one, "0.1"), option(other, "0.1")))


def test_a_statements_own_epsilon_goes_before_the_sessions_aim(clinic: Resolved) -> None:
    aiming = change_setting(default_settings(clinic.schema.privacy), clinic.schema.privacy, "max_error", "5").statement
    assert apply_options(aiming, clinic.schema, (option("epsilon", "0.5"),)).max_error is None
    assert apply_options(aiming, clinic.schema, (option("confidence", "0.9"),)).max_error == 5
    both = apply_options(aiming, clinic.schema, (option("max_relative_error", "0.1"), option("epsilon", "0.5")))
    assert (both.epsilon, both.max_error, both.max_relative_error) == (Fraction(1, 2), None, Fraction(1, 10))


@pytest.mark.parametrize(
    ("name", "near"),
    [("epsilno", "epsilon"), ("Detla", "delta"), ("contributions_rows", "contributions.rows"),
     ("max_eror", "max_error"), ("colour", None)],
)  # fmt: skip
def test_a_misspelt_setting_gets_the_nearest_one(name: str, near: str | None) -> None:
    with pytest.raises(InvalidParameter) as caught:
        changed(name, "1")
    assert str(caught.value.hint).startswith(f'Perhaps you meant "{near}".' if near else "Settings: ")
