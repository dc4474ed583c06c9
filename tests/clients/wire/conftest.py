"""The servers of the matrix, each started once for each process of the tests: PostgreSQL, and dpsql."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.support.server import serving
from tests.support.wire.hospital import PASSWORD, Place, fill_duckdb
from tests.support.wire.reference_server import running_reference


@pytest.fixture(scope="session")
def reference() -> Iterator[Place]:
    with running_reference() as (place, _):
        yield place


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """It speaks with and without TLS; this one is without."""
    schema = fill_duckdb(tmp_path_factory.mktemp("hospital"))
    with serving(schema, passwords={"ana": PASSWORD, "bo": PASSWORD}, tls=True) as server:
        yield Place(server.host, server.port, private=True, certificate=server.certificate)
        assert "Traceback" not in server.log()


@pytest.fixture(scope="session")
def secured(served: Place) -> Place:
    """The same server by the name that its certificate has."""
    return replace(served, host="localhost")
