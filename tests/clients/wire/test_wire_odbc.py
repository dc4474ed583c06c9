"""PostgreSQL's ODBC driver, Unicode and ANSI, through pyodbc: the same is seen on PostgreSQL and on dpsql."""

from __future__ import annotations

import pytest

from tests.support.wire import catalog_introspection, client_checks
from tests.support.wire.adapters import connected, refused
from tests.support.wire.client_checks import NEEDS, PARTS, PRIVATE, Part
from tests.support.wire.compare import differences
from tests.support.wire.hospital import Place
from tests.support.wire.odbc import ANSI, UNICODE, Odbc, OdbcAnsi

pytestmark = pytest.mark.clients

LEFT_OUT = (client_checks.transactions,)  # the driver itself rolls back what failed; below
EVERY = [
    pytest.param(kind, part, id=f"{kind.name}-{part.__name__}")
    for kind in (Odbc, OdbcAnsi)
    for part in (*PARTS, *PRIVATE)
    if part not in LEFT_OUT and (part not in NEEDS or NEEDS[part] in kind.can)
]
each = pytest.mark.parametrize("kind", (Odbc, OdbcAnsi), ids=lambda kind: kind.name)


@pytest.mark.parametrize(("kind", "part"), EVERY)
def test_dpsql_is_seen_as_postgresql_is(kind: type[Odbc], part: Part, reference: Place, served: Place) -> None:
    with connected(kind, reference) as client:
        due = part(client)
    with connected(kind, served) as client:
        got = part(client)
    assert differences(due, got, noisy=part in PRIVATE) == []


@each
def test_transactions(kind: type[Odbc], reference: Place, served: Place) -> None:
    for place in (reference, served):
        with connected(kind, place) as client:
            client.db.autocommit = False
            client.rows("SET LOCAL statement_timeout = 2345")
            assert client.rows("SHOW statement_timeout") == [("2345ms",)]
            client.db.commit()
            assert client.rows("SHOW statement_timeout") == [("0",)]
            client.rows("SET statement_timeout = 3456")
            client.db.rollback()
            assert client.rows("SHOW statement_timeout") == [("0",)]
            assert client.error("SELECT nothing FROM wards").state == "42703"
            assert client.rows("SELECT 1") == [(1,)]
            client.db.commit()


@pytest.mark.parametrize("driver", (UNICODE, ANSI))
def test_the_catalog(driver: str, reference: Place, served: Place) -> None:
    due = catalog_introspection.odbc_catalog(reference, driver)
    assert differences(due, catalog_introspection.odbc_catalog(served, driver)) == []


@each
def test_logins(kind: type[Odbc], reference: Place, served: Place) -> None:
    for place in (reference, served):
        assert 'password authentication failed for user "ana"' in refused(kind, place, password="wrong")
        assert 'database "nothing" does not exist' in refused(kind, place, database="nothing")
        with connected(kind, place, options="-c statement_timeout=4321") as client:
            assert client.rows("SHOW statement_timeout") == [("4321ms",)]


@each
def test_tls(kind: type[Odbc], secured: Place) -> None:
    with connected(kind, secured, tls="verify-full") as client:
        assert client.rows("SELECT count(*) FROM wards") == [(3,)]
