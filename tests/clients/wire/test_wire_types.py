"""How psycopg and asyncpg learn of types, and pgcli of names: by questions to the catalog, answered as PostgreSQL's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.wire import catalog_introspection
from tests.support.wire.compare import differences
from tests.support.wire.hospital import Place


@pytest.mark.parametrize(
    "ask",
    (catalog_introspection.psycopg_types, catalog_introspection.asyncpg_types, catalog_introspection.pgcli_completion),
)
def test_dpsql_is_seen_as_postgresql_is(ask: Callable[[Place], Any], reference: Place, served: Place) -> None:
    assert differences(ask(reference), ask(served)) == []
