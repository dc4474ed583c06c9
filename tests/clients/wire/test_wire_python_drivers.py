"""The battery, with each driver of Python, on PostgreSQL and on dpsql: the same is seen."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pg8000.dbapi
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


REFUSED = (
    ("SELECT * FROM visits WHERE ward = %s", "x", "0A000"),
    ("SELECT count(*) FROM visits WHERE ward > CAST(%s AS int)", 1, "42804"),
    ("SELECT count(*) FROM nothing WHERE ward = %s", "x", "42P01"),
    ("SELECT count(nothing) FROM visits WHERE ward = %s", "x", "42703"),
    ("SELECT count(* FROM visits WHERE ward = %s", "x", "42601"),
    ("SELECT SUM(cost) OVER (PARTITION BY ward) FROM visits WHERE ward = %s", "x", "0A000"),
)


@pytest.mark.parametrize(("sql", "value", "code"), REFUSED, ids=[code for _, _, code in REFUSED[:-1]] + ["window"])
def test_pg8000_is_in_step_after_a_refusal(sql: str, value: object, code: str, served: Place) -> None:
    """It parses and waits, then describes and binds at once: a refusal of the description puts it out of step."""
    with pg8000.dbapi.connect(user=served.user, password=served.password, host=served.host, port=served.port,
                              database=served.database, timeout=20) as connection:  # fmt: skip
        connection.autocommit = True
        cursor = connection.cursor()
        for _ in range(2):
            with pytest.raises(pg8000.dbapi.DatabaseError) as refused:
                cursor.execute(sql, (value,))
            assert refused.value.args[0]["C"] == code
            cursor.execute("SELECT %s::int + 1", (41,))
            assert cursor.fetchone() == [42]


async def _move_in_a_cursor(place: Place) -> list[Any]:
    import asyncpg

    connection = await asyncpg.connect(place.url())
    said: list[Any] = []
    try:
        async with connection.transaction():
            cursor = await connection.cursor("SELECT i FROM generate_series(1, $1::int) AS s(i)", 12)
            said.append(await cursor.forward(1))
            said.append([tuple(row) for row in await cursor.fetch(3)])
            said.append(await cursor.forward(2))
            said.append(tuple(await cursor.fetchrow()))
            said.append(await cursor.forward(100))
            said.append(await cursor.fetch(1))
        async with connection.transaction():
            cursor = await connection.cursor("SELECT ward FROM wards ORDER BY ward")
            name = cursor._portal_name
            said.append([tuple(row) for row in await connection.fetch("SELECT 1 AS before")])
            said.append(await connection.execute(f'FETCH 2 FROM "{name}"'))
            said.append(await connection.execute(f'CLOSE "{name}"'))
            await connection.execute(f'MOVE 1 FROM "{name}"')
    except asyncpg.PostgresError as error:
        said.append(re.sub(r"portal_\w+?__", "portal_n__", str(error)))
    finally:
        await connection.close()
    return said


def test_asyncpg_moves_in_its_cursors(reference: Place, served: Place) -> None:
    got = asyncio.run(_move_in_a_cursor(served))
    assert got == asyncio.run(_move_in_a_cursor(reference))
    assert len(got) == 10 and "does not exist" in got[-1]
