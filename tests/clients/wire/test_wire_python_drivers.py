"""The battery, with each driver of Python, on PostgreSQL and on dpsql: the same is seen."""

from __future__ import annotations

import pytest

from tests.support.wire.adapters import CLIENTS, Client, connected
from tests.support.wire.client_checks import NEEDS, PARTS, PRIVATE, Part
from tests.support.wire.compare import differences
from tests.support.wire.hospital import Place

pytestmark = pytest.mark.slow

EVERY = [
    pytest.param(kind, part, id=f"{kind.name}-{part.__name__}")
    for kind in CLIENTS
    for part in (*PARTS, *PRIVATE)
    if part not in NEEDS or NEEDS[part] in kind.can
]


@pytest.mark.parametrize(("kind", "part"), EVERY)
def test_dpsql_is_seen_as_postgresql_is(kind: type[Client], part: Part, reference: Place, served: Place) -> None:
    with connected(kind, reference) as client:
        due = part(client)
    with connected(kind, served) as client:
        got = part(client)
    assert differences(due, got, noisy=part in PRIVATE) == []
