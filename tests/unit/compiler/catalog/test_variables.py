"""PostgreSQL's settings: those on the list, with values that are true here."""

import pytest

from dpsql.compiler.catalog.variables import VARIABLES, Variables, is_variable
from dpsql.errors import InvalidParameter


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("application_name", "psql", "psql"), ("TimeZone", "etc/utc", "UTC"), ("timezone", "0", "UTC"),
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
        ("TimeZone", "Europe/Berlin"), ("client_encoding", "LATIN1"), ("DateStyle", "German"),
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
