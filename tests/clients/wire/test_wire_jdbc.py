"""PostgreSQL's JDBC driver: the same program in Java sees the same on PostgreSQL and on dpsql."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.wire import java
from tests.support.wire.compare import differences
from tests.support.wire.hospital import Place

pytestmark = pytest.mark.clients

# What dpsql has less or other of, by design: its own functions, fewer types, no grants.
OTHER = ("notices", "comments", "getTypeInfo", "getTablePrivileges", "getColumnPrivileges", "getFunctions",
         "getTables system", "getUDTs")  # fmt: skip
STATEMENTS = (
    "version", "select", "application_name", "wards", "wards prepared 0", "wards prepared 1", "wards prepared 2",
    "parameters", "odd text", "null", "described", "counts", "error", "after an error", "several", "large", "copy",
    "batch of queries", "failed transaction", "isolation", "savepoint", "wrong password", "unknown database", "options",
    "simple protocol", "query timeout", "cancel",
)  # fmt: skip
METADATA = (
    "getTables", "getTables any", "getColumns", "getColumns all", "getPrimaryKeys", "getImportedKeys",
    "getExportedKeys", "getCrossReference", "getIndexInfo", "getBestRowIdentifier", "getSchemas", "getCatalogs",
    "getTableTypes", "getProcedures", "getFunctions count", "getMaxColumnNameLength", "getSQLKeywords",
    "getClientInfoProperties", "getStringFunctions", "base column", "array", "setSchema",
)  # fmt: skip


@pytest.fixture(scope="module")
def due(reference: Place) -> dict[str, Any]:
    return java.run(reference)


@pytest.fixture(scope="module")
def got(served: Place) -> dict[str, Any]:
    return java.run(served)


@pytest.mark.parametrize("part", (*STATEMENTS, *METADATA))
def test_dpsql_is_seen_as_postgresql_is(part: str, due: dict[str, Any], got: dict[str, Any]) -> None:
    told, seen = due[part], got[part]
    if isinstance(told, dict) and isinstance(seen, dict):
        told, seen = dict(told, hint=None, detail=None), dict(seen, hint=None, detail=None)
    assert differences(told, seen) == []


def test_the_program_reports_no_more_than_is_compared(due: dict[str, Any]) -> None:
    assert {*STATEMENTS, *METADATA, *OTHER} == set(due)


@pytest.mark.parametrize("part", OTHER)
def test_what_differs_is_reported_without_an_error(part: str, got: dict[str, Any]) -> None:
    assert isinstance(got[part], list)


def test_types_and_functions(got: dict[str, Any]) -> None:
    assert {"bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "date", "time",
            "timestamp", "timestamptz", "interval", "uuid"} <= {name for name, _ in got["getTypeInfo"]}  # fmt: skip
    assert got["getTables system"] == [[[["pg_class"]]]]


def test_comments_say_what_the_schema_says(due: dict[str, Any], got: dict[str, Any]) -> None:
    for table, column in (due["comments"][0], got["comments"][0]):
        assert "One row each" in table[0][0] and "In kilograms" in column[0][0]
    assert "privacy unit" in got["comments"][0][0][0][0]


def test_notices_report_the_loss(got: dict[str, Any]) -> None:
    told = " ".join(message for _, message in got["notices"])
    assert "charged" in told and "left" in told


def test_a_machine_in_another_time_zone(served: Place) -> None:
    """The driver sends its machine's zone when it connects; times stay those of UTC."""
    told = java.run(served, "metadata", zone="Europe/Berlin")
    assert told["getTables any"] == [["public", "visits", "TABLE"]]


@pytest.mark.parametrize("mode", ("verify-full", "verify-ca", "require"))
def test_tls(mode: str, secured: Place) -> None:
    told = java.run(secured, "metadata", f"?sslmode={mode}&sslrootcert={secured.certificate}")
    assert told["getTables any"] == [["public", "visits", "TABLE"]]
