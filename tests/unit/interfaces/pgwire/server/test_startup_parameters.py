"""What a client says when it connects, as libpq writes it and PostgreSQL reads it."""

from __future__ import annotations

import pytest

from dpsql.errors import AccessDenied, Error
from dpsql.interfaces.pgwire.server.startup_parameters import (
    parse_startup_options,
    read_startup_request,
    startup_settings_of,
)


def test_user_database_and_settings() -> None:
    given = {"user": "ana", "database": "clinic", "application_name": "x", "_pq_.a": "1", "_dpsql.client": "on"}
    opening = read_startup_request(given)
    assert (opening.user, opening.database) == ("ana", "clinic")
    assert opening.settings == {"application_name": "x"} and opening.unknown == ("_pq_.a",)
    assert read_startup_request({"user": "ana"}).database == "ana"
    assert read_startup_request({"user": "ana", "database": ""}).database == "ana"


@pytest.mark.parametrize("given", [{}, {"user": ""}, {"database": "x"}, {"user": "x" * 1000}])
def test_a_startup_without_a_user_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(AccessDenied):
        read_startup_request(given)


# PostgreSQL's pg_split_opts and process_postgres_switches.
@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("", []),
        ("   ", []),
        ("-c epsilon=0.2", [("epsilon", "0.2")]),
        ("-cepsilon=0.2  -c  delta=1e-9", [("epsilon", "0.2"), ("delta", "1e-9")]),
        ("--epsilon=0.2 --statement-timeout=5s", [("epsilon", "0.2"), ("statement_timeout", "5s")]),
        (r"-c application_name=a\ b\\c", [("application_name", r"a b\c")]),
        (r"-c application_name=\ ", [("application_name", " ")]),
        ("-c search_path=a=b", [("search_path", "a=b")]),
        ("-c application_name=", [("application_name", "")]),
        ("-c Contributions.Rows=3", [("contributions.rows", "3")]),
        ("-c a=1\\", [("a", "1\\")]),
    ],
)
def test_options(text: str, settings: list[tuple[str, str]]) -> None:
    assert parse_startup_options(text) == settings


@pytest.mark.parametrize("text", ["-c", "epsilon=1", "-c epsilon", "--epsilon", "-c =1", "-B 12", "--", "-e"])
def test_options_that_are_none(text: str) -> None:
    with pytest.raises(Error) as error:
        parse_startup_options(text)
    assert error.value.sqlstate == "42601"


def test_a_parameter_of_its_own_counts_more_than_options() -> None:
    given = {"user": "ana", "options": "-c epsilon=1 -c delta=0", "EPSILON": "2"}
    assert startup_settings_of(given, read_startup_request(given)) == {"epsilon": "2", "delta": "0"}


@pytest.mark.parametrize(
    ("value", "is_"), [("true", True), ("database", True), ("1", True), ("false", False), ("", False)]
)
def test_replication_is_refused(value: str, is_: bool) -> None:
    given = {"user": "ana", "replication": value}
    if is_:
        with pytest.raises(Error, match="replication"):
            startup_settings_of(given, read_startup_request(given))
    else:
        assert startup_settings_of(given, read_startup_request(given)) == {}


def test_long_options_are_read_in_a_time_that_grows_with_them() -> None:
    assert len(parse_startup_options("-c a=1 " * 1400)) == 1400
