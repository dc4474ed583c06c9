"""node-postgres with its pool, cursors and streams: the same program sees the same on PostgreSQL and on dpsql."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.wire import node
from tests.support.wire.compare import differences
from tests.support.wire.hospital import Place

pytestmark = pytest.mark.slow

SAME = (
    "literals", "application_name", "wards", "wards in binary", "lists", "parameters", "odd text", "null", "wrong text",
    "named statements", "counts", "error", "after an error", "several", "nothing", "command tags", "failed transaction",
    "cursor", "cursor left early", "stream", "large", "wrong password", "unknown database", "options",
    "statement timeout", "cancel", "pool",
)  # fmt: skip


@pytest.fixture(scope="module")
def due(reference: Place) -> dict[str, Any]:
    return node.run(reference)


@pytest.fixture(scope="module")
def got(secured: Place) -> dict[str, Any]:
    return node.run(secured)


@pytest.mark.parametrize("part", SAME)
def test_dpsql_is_seen_as_postgresql_is(part: str, due: dict[str, Any], got: dict[str, Any]) -> None:
    told, seen = due[part], got[part]
    if isinstance(told, dict) and isinstance(seen, dict):
        told, seen = dict(told, hint=None, detail=None), dict(seen, hint=None, detail=None)
    assert differences(told, seen) == []


def test_the_program_reports_no_more_than_is_compared(due: dict[str, Any]) -> None:
    assert {*SAME, "notices"} == set(due)


def test_an_error_has_a_hint(got: dict[str, Any]) -> None:
    assert "visit_id" in got["error"]["hint"]


def test_notices_report_the_loss(got: dict[str, Any]) -> None:
    assert all(severity == "NOTICE" for severity, *_ in got["notices"])
    told = " ".join(message for *_, message in got["notices"])
    assert "charged" in told and "left" in told


def test_tls(got: dict[str, Any]) -> None:
    assert got["tls"] == [True, True, [[1]]]
    assert got["tls of a stranger"]["state"] in ("DEPTH_ZERO_SELF_SIGNED_CERT", "SELF_SIGNED_CERT_IN_CHAIN")
    assert got["tls of another name"]["state"] == "ERR_TLS_CERT_ALTNAME_INVALID"
