"""Who may connect, and with which settings: each driver of Python, on PostgreSQL and on dpsql."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.server import make_certificate
from tests.support.wire.adapters import CLIENTS, Client, Psycopg, Psycopg2, connected, refused
from tests.support.wire.hospital import Place

pytestmark = pytest.mark.slow

each = pytest.mark.parametrize("kind", CLIENTS, ids=lambda kind: kind.name)
FIRST = CLIENTS[0]


@pytest.fixture(autouse=True)
def forgiven(served: Place) -> Iterator[None]:
    """Who fails often from one address waits ever longer, until she succeeds there: no test pays for another."""
    yield
    with connected(FIRST, served):
        pass


@each
def test_a_wrong_password_is_reported_in_postgresqls_words(kind: type[Client], reference: Place, served: Place) -> None:
    for place in (reference, served):
        told = refused(kind, place, password="wrong")
        assert 'password authentication failed for user "ana"' in told
        if kind.name in ("asyncpg", "pg8000"):  # libpq's drivers have no code of a login
            assert "28P01" in told or kind.name == "asyncpg"


@each
def test_an_unknown_user_gets_the_same_error_as_a_wrong_password(kind: type[Client], served: Place) -> None:
    known = refused(kind, served, password="wrong")
    name = f"eve_{CLIENTS.index(kind)}"
    stranger = refused(kind, replace(served, user=name), password="wrong")
    assert stranger == known.replace('"ana"', f'"{name}"')


@each
def test_no_password_and_an_empty_one_do_not_open(kind: type[Client], served: Place) -> None:
    assert refused(kind, served, password="")


@each
def test_an_unknown_database(kind: type[Client], reference: Place, served: Place) -> None:
    for place in (reference, served):
        assert 'database "nothing" does not exist' in refused(kind, place, database="nothing")


def test_a_wrong_password_does_not_show_which_databases_there_are(served: Place) -> None:
    told = refused(FIRST, served, password="wrong", database="nothing")
    assert "nothing" not in told
    assert "password authentication failed" in told


@each
def test_settings_of_the_connection(kind: type[Client], reference: Place, served: Place) -> None:
    for place in (reference, served):
        given = "-c statement_timeout=4321 -c search_path=public"
        with connected(kind, place, options=given, application="a b'c") as client:
            assert client.rows("SHOW statement_timeout") == [("4321ms",)]
            assert client.rows("SHOW application_name") == [("a b'c",)]
            client.rows("SET statement_timeout = 1")
            client.rows("RESET statement_timeout")
            assert client.rows("SHOW statement_timeout") == [("4321ms",)]


@each
def test_dpsqls_own_settings_of_the_connection(kind: type[Client], served: Place) -> None:
    with connected(kind, served, options="-c epsilon=0.25 -c delta=1e-9") as client:
        assert client.rows("SHOW epsilon") == [("0.25",)]
        client.rows("SET epsilon = 0.5")
        assert client.rows("SHOW epsilon") == [("0.5",)]
        client.rows("RESET ALL")
        assert client.rows("SHOW epsilon") == [("0.25",)]


@each
def test_settings_that_there_are_not(kind: type[Client], reference: Place, served: Place) -> None:
    for place in (reference, served):
        told = refused(kind, place, options="-c nothing=1")
        assert '"nothing"' in told and "password" not in told
    assert "epsilon" in refused(kind, served, options="-c epsilon=lots")


@each
def test_tls_with_the_name_of_the_server_checked(kind: type[Client], secured: Place) -> None:
    with connected(kind, secured, tls="verify-full") as client:
        assert client.rows("SELECT count(*) FROM wards") == [(3,)]


@each
def test_an_untrusted_server_certificate_is_refused(kind: type[Client], secured: Place, tmp_path: Path) -> None:
    stranger = make_certificate(tmp_path)
    told = refused(kind, replace(secured, certificate=stranger), tls="verify-full")
    assert "certificate" in told.lower()


@pytest.mark.parametrize("kind", (Psycopg, Psycopg2), ids=lambda kind: kind.name)
@pytest.mark.parametrize("mode", ("require", "verify-ca", "prefer", "allow"))
def test_modes_of_libpq(kind: type[Client], mode: str, secured: Place) -> None:
    with connected(kind, secured, tls=mode) as client:
        assert client.rows("SELECT 1") == [(1,)]


def test_channel_binding(secured: Place) -> None:
    """The password's proof is bound to this TLS connection, so that nobody in between can pass it on."""
    bound = replace(secured, database=secured.database + "?channel_binding=require")
    with connected(Psycopg, bound, tls="verify-full") as client:
        assert client.rows("SELECT 1") == [(1,)]


def test_without_tls_there_is_no_channel_to_bind_to(served: Place) -> None:
    bound = replace(served, database=served.database + "?channel_binding=require&sslmode=disable")
    assert "channel binding" in refused(Psycopg, bound)


def test_the_client_uses_tls(secured: Place) -> None:
    with connected(Psycopg, secured, tls="require") as client:
        assert isinstance(client, Psycopg)
        assert client.db.pgconn.ssl_in_use


@each
def test_reconnecting_many_times(kind: type[Client], served: Place) -> None:
    seen = set()
    for _ in range(5):
        with connected(kind, served) as client:
            seen.add(client.rows("SELECT pg_backend_pid()")[0][0])
    assert len(seen) == 5
