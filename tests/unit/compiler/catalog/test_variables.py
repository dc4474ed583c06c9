"""PostgreSQL's settings: those on the list, with values that are true here."""

import pytest

from dpsql.compiler.catalog.variables import MAX_CUSTOM_VARIABLES, VARIABLES, Variables, is_variable
from dpsql.errors import InvalidParameter, LimitExceeded


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("application_name", "psql", "psql"), ("TimeZone", "etc/utc", "Etc/UTC"), ("timezone", "0", "<+00>-00"),
        ("TimeZone", "europe/berlin", "Europe/Berlin"), ("TimeZone", "-3.5", "<-03:30>+03:30"),
        ("client_encoding", "utf-8", "UTF8"), ("client_encoding", "'utf-8'", "UTF8"),
        ("datestyle", "ISO, DMY", "ISO, DMY"), ("DateStyle", "iso", "ISO, MDY"),
        ("extra_float_digits", "3", "3"), ("search_path", "a, b", "a, b"), ("statement_timeout", "30s", "30s"),
        ("statement_timeout", "5000", "5s"), ("statement_timeout", "1500", "1500ms"), ("statement_timeout", "0", "0"),
        ("statement_timeout", " 1.5 min ", "90s"), ("statement_timeout", "999us", "1ms"),
        ("statement_timeout", "48h", "2d"),
        ("standard_conforming_strings", "ON", "on"), ("transaction_isolation", "Read Committed", "read committed"),
    ],
)  # fmt: skip
def test_what_is_set_is_shown(name: str, value: str, shown: str) -> None:
    variables = Variables().set(name, value)
    assert variables.show(name.upper()) == shown
    assert variables.reset(name, Variables()) == Variables()
    assert variables.reset(name, variables) == Variables().reset(name, variables) == variables


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TimeZone", "Europe/Berlino"), ("TimeZone", "CET-1CEST"), ("TimeZone", "200"),
        ("client_encoding", "KLINGON"), ("DateStyle", "German"),
        ("standard_conforming_strings", "off"), ("extra_float_digits", "4"), ("server_version", "16"),
        ("application_name", "x" * 2000), ("application_name", "a\x00b"), ("is_superuser", "on"),
        ("statement_timeout", "soon"), ("statement_timeout", "-1"), ("statement_timeout", "5 parsecs"),
        ("statement_timeout", "2147483648"), ("statement_timeout", "1e3"), ("statement_timeout", ""),
    ],
)  # fmt: skip
def test_what_is_not_true_here_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidParameter):
        Variables().set(name, value)


def test_a_timeout_is_milliseconds() -> None:
    assert Variables().statement_timeout == 0
    assert Variables().set("statement_timeout", "1500").statement_timeout == 1500
    assert Variables().set("statement_timeout", "5s").statement_timeout == 5000


def test_every_default_is_one_of_the_values() -> None:
    for variable in VARIABLES.values():
        default = Variables().show(variable.name)
        assert variable.allowed is None or variable.allowed[default.lower()] == default


def test_transactions_are_as_the_default_says_unless_they_say_otherwise() -> None:
    defaults = Variables().set("default_transaction_isolation", "serializable")
    assert defaults.show("transaction_isolation") == "serializable"
    assert defaults.set("transaction_isolation", "repeatable read").show("transaction_isolation") == "repeatable read"


def test_names_fold_and_others_are_unknown() -> None:
    assert is_variable("SERVER_VERSION") and not is_variable("epsilon") and not is_variable("shared_buffers")
    assert len(Variables().items()) == len(VARIABLES)


def test_a_name_with_a_dot_is_kept_as_it_is_written_until_it_is_reset() -> None:
    variables = Variables().set("App.User_Id", "7 'x'")
    assert variables.show("app.user_id") == "7 'x'" and ("app.user_id", "7 'x'") in variables.items()
    with pytest.raises(InvalidParameter, match="unrecognized"):
        variables.reset("app.user_id", Variables()).show("app.user_id")


@pytest.mark.parametrize(
    "name",
    [
        "contribution.rows",
        "contributions.row",
        "contribution.group",
        "a..b",
        "1.b",
        "a b.c",
        "privacy.budget",
        "privacy.budget.epsilon",
        "limits.seconds",
    ],
)
def test_what_is_nearly_a_setting_of_ours_is_no_custom_one(name: str) -> None:
    assert not is_variable(name)


def test_custom_names_are_bounded() -> None:
    variables = Variables()
    for number in range(MAX_CUSTOM_VARIABLES):
        variables = variables.set(f"app.n{number}", "x")
    with pytest.raises(LimitExceeded):
        variables.set("app.more", "x")
    assert variables.set("app.n1", "y").show("app.n1") == "y"


@pytest.mark.parametrize("name", ["work_mem", "enable_seqscan", "random_page_cost", "max_parallel_workers_per_gather"])
def test_settings_of_the_planner_are_taken_and_shown(name: str) -> None:
    value = "off" if name == "enable_seqscan" else "7"
    assert Variables().set(name, value).show(name) == value
