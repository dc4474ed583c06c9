"""Which database a login opens, what connections share, and when data is closed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dpsql.errors import Error, InterfaceError, OperationalError, SchemaError
from dpsql.interfaces.cli.demo_hospital import make_hospital
from dpsql.interfaces.pgwire.server.databases import ServedDatabase, ServedDatabases, open_served_database
from dpsql.interfaces.pgwire.server.health_endpoint import _database_state
from dpsql.interfaces.pgwire.server.login import _no_database_error
from dpsql.interfaces.pgwire.server.startup_parameters import StartupRequest
from dpsql.owner.check.check import check_schema
from tests.support.optional_dependencies import no_root
from tests.support.server import give_passwords


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two schemas: ana is in both with two passwords, bob in the second alone."""
    folder = tmp_path_factory.mktemp("two")
    first = make_hospital(folder)
    second = folder / "clinic.yaml"
    second.write_text(first.read_text().replace("hospital.ledger", "clinic.ledger"))
    give_passwords(first, {"ana": "a"})
    give_passwords(second, {"ana": "b", "bob": "c"})
    return folder


@pytest.fixture
def opened(folder: Path) -> Iterator[list[ServedDatabase]]:
    served = [open_served_database(str(folder / name), {}) for name in ("hospital.yaml", "clinic.yaml")]
    yield served
    for one in served:
        one.dataset.close()


def test_a_login_is_that_of_the_database_that_is_named(opened: list[ServedDatabase]) -> None:
    databases = ServedDatabases(opened)
    hospital, clinic = opened
    for one in opened:
        login = databases.find_login(one.name, "ana")
        assert login.is_analyst and login.served is one and login.verifier == one.logins.verifiers["ana"]
    assert hospital.logins.verifiers["ana"] != clinic.logins.verifiers["ana"]
    assert databases.find_login("clinic", "bob").served is clinic


def test_a_login_to_a_database_of_others_checks_the_password_and_opens_nothing(
    opened: list[ServedDatabase],
) -> None:
    databases = ServedDatabases(opened)
    for database in ("hospital", "nothing"):
        login = databases.find_login(database, "bob")
        assert login.is_analyst and login.served is None and login.verifier == opened[1].logins.verifiers["bob"]
    stranger = databases.find_login("nothing", "eve")
    assert not stranger.is_analyst and stranger.served is None


def test_the_challenge_of_an_unknown_user_depends_on_the_name_alone(opened: list[ServedDatabase]) -> None:
    """Not on the database: else two salts under two names would tell what databases there are and who is known."""
    for order in (opened, opened[::-1]):
        databases = ServedDatabases(order)
        for user in ("eve", "mallory", "", "bob"):
            asked = {
                databases.find_login(database, user).verifier for database in ("hospital", "clinic", "nothing", "")
            }
            assert len(asked) == 1, user
        assert databases.find_login("clinic", "eve").verifier != databases.find_login("clinic", "mallory").verifier
    known = opened[1].logins.verifiers["bob"]
    stranger = ServedDatabases(opened).find_login("clinic", "eve").verifier
    assert (stranger.iterations, len(stranger.salt)) == (known.iterations, len(known.salt))


def test_the_owner_sees_which_users_a_login_distinguishes_from_strangers(opened: list[ServedDatabase]) -> None:
    assert ServedDatabases(opened).find_conspicuous_users() == ()
    odd = replace(opened[1].logins.verifiers["bob"], iterations=20_000)
    changed = replace(opened[1].logins, verifiers={**opened[1].logins.verifiers, "bob": odd})
    opened[1].logins = changed
    assert ServedDatabases(opened).find_conspicuous_users() == ("bob",)


def test_no_two_databases_have_one_name(opened: list[ServedDatabase]) -> None:
    with pytest.raises(InterfaceError, match='the database "hospital"'):
        ServedDatabases([opened[0], opened[0]])


def test_what_is_remembered_for_one_analyst_is_not_anothers(opened: list[ServedDatabase]) -> None:
    """That something is answered sooner would tell that someone has asked it."""
    one = opened[1]
    assert (
        one.get_session_cache("ana")
        is one.get_session_cache("ana")
        is one.get_session_cache("ana", "nobody")
        is not one.get_session_cache("bob")
    )
    assert (
        one.get_session_cache("bi", "ana")
        is one.get_session_cache("bi", "ana")
        is not one.get_session_cache("bi", "bob")
    )


def test_data_is_closed_behind_the_last_connection_that_uses_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = (open_served_database(str(folder / "hospital.yaml"), {}) for _ in range(2))
    closed: list[object] = []
    close = type(old.dataset).close
    monkeypatch.setattr(type(old.dataset), "close", lambda self: closed.append(self) or close(self))
    databases = ServedDatabases([old])
    databases.add_client(old)
    databases.add_client(old)
    databases.replace_database(old, new)
    assert list(databases) == [new] and closed == []
    databases.remove_client(old)
    assert closed == []
    databases.remove_client(old)
    databases.close()
    assert closed == [old.dataset, new.dataset]


def test_the_hint_for_an_unknown_database_lists_the_users_own_alone(opened: list[ServedDatabase]) -> None:
    for user, due in (("bob", "Databases: clinic."), ("ana", "Databases: hospital, clinic.")):
        assert _no_database_error(StartupRequest(user, "nothing"), ServedDatabases(opened)).hint == due


def test_settings_that_an_analyst_may_not_have_are_reported_when_a_server_starts(folder: Path) -> None:
    """Not to the analyst, at each of her logins."""
    wrong = folder / "wrong.yaml"
    text = (folder / "hospital.yaml").read_text().replace("hospital.ledger", "w.ledger")
    wrong.write_text(text.replace("ana: {", "ana: {settings: {epsilon: -3}, "))
    with pytest.raises(SchemaError, match=r"analysts\.ana\.settings\.epsilon"):
        open_served_database(str(wrong), {})
    with pytest.raises(SchemaError, match=r"analysts\.ana\.settings\.epsilon"):
        check_schema(wrong, data=False)


def test_a_schema_without_logins_is_refused_and_its_ledger_let_go(folder: Path) -> None:
    lonely = folder / "lonely.yaml"
    before, rest = (folder / "hospital.yaml").read_text().replace("hospital.ledger", "l.ledger").split("analysts:")
    lonely.write_text(f"{before}tables:{rest.split('tables:')[1]}")
    with pytest.raises(Error, match="no analysts") as refused:
        open_served_database(str(lonely), {})
    assert "dpsql user add" in str(refused.value.hint)


def test_a_ledger_that_cannot_be_written_is_reported_at_the_start_and_by_health() -> None:
    with no_root() as folder:
        path = make_hospital(folder)
        give_passwords(path, {"ana": "a"})
        served = open_served_database(str(path), {})
        try:
            ledger = path.with_suffix(".ledger")
            ledger.chmod(0o400)
            assert _database_state(served) == "unwritable"
            with pytest.raises(OperationalError, match='the ledger of "hospital" cannot be written') as refused:
                open_served_database(str(path), {})
            assert "readonly" in str(refused.value.detail)
            ledger.chmod(0o600)
            assert _database_state(served) == "ok"
        finally:
            served.dataset.close()
