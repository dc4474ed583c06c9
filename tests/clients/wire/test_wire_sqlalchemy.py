"""SQLAlchemy's dialects of PostgreSQL, its inspector, and pandas: the same is seen on PostgreSQL and on dpsql."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.wire import catalog_introspection, sqlalchemy_programs
from tests.support.wire.compare import differences
from tests.support.wire.hospital import Place

pytestmark = pytest.mark.slow

each = pytest.mark.parametrize("driver", sqlalchemy_programs.DRIVERS)


@each
@pytest.mark.parametrize("ask", sqlalchemy_programs.ASKS, ids=lambda ask: ask.__name__)
def test_statements(driver: str, ask: Callable[[Any], Any], reference: Place, served: Place) -> None:
    due = sqlalchemy_programs.asked(reference, driver, ask)
    assert differences(due, sqlalchemy_programs.asked(served, driver, ask)) == []


@each
def test_aggregates_of_private_rows(driver: str, reference: Place, served: Place) -> None:
    due = sqlalchemy_programs.asked(reference, driver, sqlalchemy_programs.private_rows)
    assert (
        differences(due, sqlalchemy_programs.asked(served, driver, sqlalchemy_programs.private_rows), noisy=True) == []
    )


@each
def test_tables_that_are_reflected(driver: str, reference: Place, served: Place) -> None:
    due = sqlalchemy_programs.asked(reference, driver, sqlalchemy_programs.reflected_rows)
    got = sqlalchemy_programs.asked(served, driver, sqlalchemy_programs.reflected_rows)
    assert differences(due, got, noisy=True) == []


@each
def test_the_inspector(driver: str, reference: Place, served: Place) -> None:
    due = catalog_introspection.sqlalchemy_inspector(reference, driver)
    got = catalog_introspection.sqlalchemy_inspector(served, driver)
    comments = got.pop("comments")
    assert due.pop("comments")["patients"] in comments["patients"] and "privacy unit" in comments["patients"]
    assert differences(due, got) == []


def test_pandas_reads_a_public_table(reference: Place, served: Place) -> None:
    assert catalog_introspection.pandas_tables(served) == catalog_introspection.pandas_tables(reference)


def test_a_pool_that_pings_a_connection_first(served: Place) -> None:
    def ask(connection: Any) -> Any:
        return connection.exec_driver_sql("SELECT 1").scalar()

    assert sqlalchemy_programs.asked(served, "psycopg2", ask, pool_pre_ping=True) == 1
