"""Schemas of the golden files as they are resolved against an engine, without any data; and a PostgreSQL server."""

import signal
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from dpsql.schema.load import load_schema
from dpsql.schema.model import PublicFacts, Resolved
from dpsql.types import INTEGER
from tests.support.ledgers import Shelf
from tests.support.postgres import Server, running
from tests.support.shop import silent_widths
from tests.support.temporary_folder import use_memory

settings.register_profile("dpsql", deadline=None)  # how long an example takes is the machine's business
settings.load_profile("dpsql")

use_memory()

signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background may have begun with it ignored

SCHEMAS = Path(__file__).parent / "golden"

PUBLIC = {"Wards": PublicFacts(3, {"ward": ("cardiology", "maternity", "surgery"), "floor": (1, 2, None)})}
"""What registering would have found in the public tables."""


@cache
def resolve(name: str) -> Resolved:
    """Every column has its declared type in the engine, but visits.nights, which is an integer there."""
    schema = load_schema(SCHEMAS / f"{name}.yaml")
    physical = {table.name: {column.name: column.type for column in table.columns} for table in schema.tables}
    if "visits" in physical:
        physical["visits"]["nights"] = INTEGER
    sources = {table.name: table.source for table in schema.tables}
    public = {table.name: PUBLIC[table.name] for table in schema.tables if table.public}
    return Resolved(schema, 1, sources, physical, name, public)


@pytest.fixture(scope="session")
def resolved() -> Callable[[str], Resolved]:
    return resolve


@pytest.fixture(scope="session")
def clinic() -> Resolved:
    """Patients, their visits, and lab tests two hops away."""
    return resolve("schema")


@pytest.fixture(scope="session")
def survey() -> Resolved:
    """One row per person and calls of each; change_one, two persons at once."""
    return resolve("survey")


@pytest.fixture(scope="session")
def by_row() -> Resolved:
    """Each row is its own unit."""
    return resolve("rows")


@pytest.fixture(scope="module")
def silent_groups() -> Iterator[None]:
    """For sessions without noise: the groups that are left out are those that have no row, as in SQL."""
    with silent_widths():
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """One for each process of the tests, started for the first that asks."""
    with running() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    """A place for ledgers: of each kind, one after the other."""
    shelf = Shelf(tmp_path, request.getfixturevalue("postgres") if request.param == "postgres" else None)
    yield shelf
    shelf.close()
