"""What `connect` takes, and how it refuses."""

import os
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

import dpsql
from dpsql.interfaces.dbapi.url import read_address
from dpsql.owner.administration import register_data_version


def setting(connection, name):
    return connection.cursor().execute(f"SHOW {name}").fetchone()[0]


def test_a_path_as_text_or_path(folder):
    for where in (folder / "clinic.yaml", str(folder / "clinic.yaml")):
        with dpsql.connect(where, user="ana") as connection:
            assert connection.user == "ana"


def test_a_url_with_user_and_settings(folder):
    with dpsql.connect(f"dpsql:///{folder}/clinic.yaml?user=bi&epsilon=0.5&contributions.rows=4") as connection:
        assert connection.user == "bi"
        assert setting(connection, "epsilon") == "0.5" and setting(connection, "contributions.rows") == "4"


def test_a_relative_url(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with dpsql.connect("dpsql:///clinic.yaml?user=ana") as connection:
        assert connection.user == "ana"


def test_arguments_win_over_the_url(folder):
    url = f"dpsql:///{folder}/clinic.yaml?user=bi&epsilon=0.5"
    with dpsql.connect(url, user="ana", epsilon=0.25) as connection:
        assert connection.user == "ana" and setting(connection, "epsilon") == "0.25"


@pytest.mark.parametrize(
    ("settings", "name", "value"),
    [
        ({"epsilon": 0.1}, "epsilon", "0.1"),  # as written, not as the nearest double
        ({"epsilon": Decimal("0.30")}, "epsilon", "0.3"),
        ({"epsilon": Fraction(1, 3)}, "epsilon", "1/3"),
        ({"delta": 0}, "delta", "0"),
        ({"contributions_rows": 4}, "contributions.rows", "4"),
        ({"contributions_groups": 2}, "contributions.groups", "2"),
        ({"noise": "laplace"}, "noise", "laplace"),
        ({"nonnegative": True}, "nonnegative", "on"),
        ({"nonnegative": False}, "nonnegative", "off"),
    ],
)
def test_settings(folder, settings, name, value):
    with dpsql.connect(folder / "clinic.yaml", user="ana", **settings) as connection:
        assert setting(connection, name) == value


@pytest.mark.parametrize("back", ["RESET epsilon", "RESET ALL", "SET epsilon TO DEFAULT", "DISCARD ALL"])
@pytest.mark.parametrize("by", ["argument", "url"])
def test_no_reset_goes_below_what_was_opened(folder, back, by):
    """Who opens with a small epsilon is never charged the schema's unasked."""
    url = f"dpsql:///{folder}/clinic.yaml?user=ana" + ("&epsilon=0.125" if by == "url" else "")
    with dpsql.connect(url, **({"epsilon": 0.125} if by == "argument" else {})) as connection:
        cursor = connection.cursor()
        cursor.execute("SET epsilon = 2")
        cursor.execute(back)
        assert setting(connection, "epsilon") == "0.125"
        answer = connection.sql("SELECT COUNT(*) FROM visits")
        assert 0 < answer.loss.epsilon <= Fraction(126, 1000)


@pytest.mark.parametrize(
    "settings",
    [{"epsilon": 0}, {"epsilon": "nan"}, {"epsilon": "1; RESET ALL"}, {"epsilon": "1' OR '1"}, {"delta": 1},
     {"contributions_rows": 10**6}, {"bogus": 1}, {"epsilon = 1 --": 1}],
)  # fmt: skip
def test_wrong_settings(folder, settings):
    with pytest.raises(dpsql.ProgrammingError):
        dpsql.connect(folder / "clinic.yaml", user="ana", **settings)


@pytest.mark.parametrize("value", [None, [1], b"1"])
def test_settings_of_a_wrong_type(folder, value):
    with pytest.raises(dpsql.InterfaceError):
        dpsql.connect(folder / "clinic.yaml", user="ana", epsilon=value)


def test_three_slashes_are_not_the_root(folder, tmp_path, monkeypatch):
    """A file at the root is another schema than the one in the working folder that was meant."""
    with pytest.raises(dpsql.InterfaceError) as caught:
        dpsql.connect(f"dpsql://{folder}/clinic.yaml?user=ana")
    assert f"dpsql:///{folder}/clinic.yaml" in caught.value.hint
    with dpsql.connect(f"dpsql:///{folder}/clinic.yaml?user=ana") as connection:
        assert connection.user == "ana"
    monkeypatch.chdir(folder)
    with pytest.raises(dpsql.Error) as caught:
        dpsql.connect("dpsql:///clinc.yaml?user=ana")
    assert "Did you mean" in caught.value.hint and "clinic.yaml" in caught.value.hint


@pytest.mark.parametrize("url", ["mysql://ana:secret@localhost/x", "https://host/a?key=secret", "duckdb:///a.db"])
def test_other_urls_are_not_taken_for_files(url):
    with pytest.raises(dpsql.NotSupportedError) as caught:
        dpsql.connect(url)
    assert "secret" not in str(caught.value) and "dpsql:///path/schema.yaml" in caught.value.hint
    assert url.split(":")[0] in str(caught.value)


@pytest.mark.parametrize("url", ["dpsql://", "dpsql:///", "dpsql:///a.yaml?user", "dpsql:///a.yaml?user=a&user=b"])
def test_wrong_urls(url):
    with pytest.raises(dpsql.InterfaceError):
        dpsql.connect(url)


def test_a_url_is_unquoted():
    address = read_address("dpsql:////srv/my%20data/a.yaml?user=j%C3%BCrg", None, {})
    assert (address.path, address.user) == (Path("/srv/my data/a.yaml"), "jürg")


def test_not_a_path():
    with pytest.raises(dpsql.InterfaceError):
        dpsql.connect(42)


def test_a_schema_that_is_not_there(tmp_path):
    with pytest.raises(dpsql.Error, match="no such file"):
        dpsql.connect(tmp_path / "nothing.yaml")


def test_users(folder):
    with pytest.raises(dpsql.OperationalError, match="a user must be named"):
        dpsql.connect(folder / "clinic.yaml")
    with pytest.raises(dpsql.OperationalError, match="no analyst"):
        dpsql.connect(folder / "clinic.yaml", user="mallory")
    with dpsql.connect(folder / "survey.yaml") as connection:
        assert connection.user is None


def test_a_connection_that_was_open_while_the_data_changed(folder):
    """It must not answer for the version that it knows with the rows of another."""
    with dpsql.connect(folder / "clinic.yaml", user="ana") as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT COUNT(*) FROM patients")
        os.utime(folder / "data" / "patients.parquet", ns=(1, 1))
        register_data_version(folder / "clinic.yaml")
        with pytest.raises(dpsql.OperationalError):
            cursor.execute("SELECT COUNT(*) FROM patients WHERE insured")
    with dpsql.connect(folder / "clinic.yaml", user="ana") as connection:
        assert connection.cursor().execute("SELECT COUNT(*) FROM patients WHERE insured").rowcount == 1
