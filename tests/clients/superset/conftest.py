"""One hospital behind `dpsql serve`, one Superset beside it, and its users."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.superset.api import User, log_in
from tests.clients.superset.datasets import made_dataset, register
from tests.clients.superset.hospital import Hospital, served_hospital
from tests.clients.superset.relay import Relay, recorded
from tests.clients.superset.superset_process import Superset, running_superset

ANALYSTS = ("ana", "bob", "eve")  # of whom eve is unknown to dpsql


@pytest.fixture(scope="session")
def hospital() -> Iterator[Hospital]:
    with served_hospital() as hospital:
        yield hospital


@pytest.fixture(scope="session")
def relay(hospital: Hospital, left: Path) -> Iterator[Relay]:
    """Between Superset and dpsql; it tells what was sent."""
    with recorded("127.0.0.1", hospital.server.port) as relay:
        yield relay
    told = "".join(f"{one.strip().removesuffix(';')};\n\n" for one in dict.fromkeys(relay.statements))
    (left / "statements.sql").write_text(told)


@pytest.fixture(scope="session")
def superset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Superset]:
    with running_superset(tmp_path_factory.mktemp("superset"), ANALYSTS) as superset:
        yield superset


@pytest.fixture(scope="session")
def admin(superset: Superset) -> User:
    """Who registers databases. The analysts may use SQL Lab, beside making charts."""
    admin = log_in(superset.address, "admin", superset.passwords["admin"])
    roles = {one["name"]: one["id"] for one in admin.get("/api/v1/security/roles/")["result"]}
    for user in admin.get("/api/v1/security/users/")["result"]:
        if user["username"] in ANALYSTS:
            admin.put(f"/api/v1/security/users/{user['id']}", {"roles": [roles["Alpha"], roles["sql_lab"]]})
    return admin


@pytest.fixture(scope="session")
def ana(admin: User, superset: Superset) -> User:
    return log_in(superset.address, "ana", superset.passwords["ana"])


@pytest.fixture(scope="session")
def bob(admin: User, superset: Superset) -> User:
    return log_in(superset.address, "bob", superset.passwords["bob"])


@pytest.fixture(scope="session")
def eve(admin: User, superset: Superset) -> User:
    return log_in(superset.address, "eve", superset.passwords["eve"])


@pytest.fixture(scope="session")
def database(admin: User, hospital: Hospital, relay: Relay) -> int:
    """Registered by ana's own connection string."""
    return register(admin, "hospital", hospital.address("ana", relay.port))


@pytest.fixture(scope="session")
def dataset(ana: User, database: int) -> int:
    return made_dataset(ana, database)


@pytest.fixture(scope="session")
def shared(admin: User, hospital: Hospital, relay: Relay) -> int:
    """Registered once for all by the service account, which asks for whoever is logged in: docs/superset.md."""
    address = hospital.address("superset", relay.port, host="localhost")
    return register(admin, "hospital for all", address, impersonate_user=True)


@pytest.fixture(scope="session")
def shared_dataset(ana: User, shared: int) -> int:
    """Of the other table: in SQLite, Superset has one dataset of a name, whatever its database."""
    return made_dataset(ana, shared, "patients")


@pytest.fixture(scope="session")
def left(request: pytest.FixtureRequest) -> Path:
    """Where a picture and the statements are left to be looked at: build/, which git ignores."""
    folder = Path(request.config.rootpath) / "build" / "superset"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
