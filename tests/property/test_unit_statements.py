"""What is worked out within each unit first is a function of its rows: statements on neighboring databases.

Every release that such a statement makes must keep what it claims, whichever unit is removed or replaced, and no
value of any row may make the engine raise.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from random import Random

import duckdb
import pytest
from support import engine
from support.claims import undercharged, violations
from support.unit_statements import bounded_statement, picking_statement
from support.worlds import SHAPES, World, random_pair, random_world, steady_pair

from dpsql.compile import Compiled, Settings, compile_query
from dpsql.errors import Error, InternalError
from dpsql.explain import explain

TRIALS = int(os.environ.get("DPSQL_TRIALS", "120"))
SEED = int(os.environ.get("DPSQL_SEED", "0"))
STATEMENTS: dict[str, Callable[[World, Random], str]] = {
    "bounds per group": bounded_statement,
    "picks": picking_statement,
}
Databases = tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection]


@pytest.fixture(scope="module")
def databases() -> Databases:
    return engine.connect(1), engine.connect(4)


def compiled_or_refused(sql: str, world: World, rng: Random) -> Compiled | None:
    caps = world.schema.privacy.contributions
    settings = Settings(Fraction(1), Fraction(1, 10**6), rng.randint(1, caps.rows or 1), caps.groups)
    try:
        return compile_query(sql, world.resolved, settings)
    except InternalError:
        raise
    except Error:
        return None


def broken(world: World, compiled: Compiled, databases: Databases) -> list[str]:
    found = undercharged(compiled)
    for step, release in zip(compiled.steps, explain(compiled, "duckdb", ()).releases, strict=True):
        one, other = (engine.run(database, release.sql, len(release.keys)) for database in databases)
        found += violations(step, release, one, other, world.schema.privacy)
    return found


@pytest.mark.parametrize("kind", STATEMENTS)
def test_one_unit_moves_cells_by_at_most_the_claim(kind: str, databases: Databases) -> None:
    seen: Counter[str] = Counter()
    for seed in range(SEED, SEED + TRIALS):
        rng = Random(seed)
        world = random_world(rng, SHAPES[seed % len(SHAPES)], fine=seed % 2 == 0)
        pair = (steady_pair if seed % 2 == 0 else random_pair)(world, rng)
        engine.load(databases[0], world, pair.first)
        engine.load(databases[1], world, pair.second)
        for _ in range(3):
            sql = STATEMENTS[kind](world, rng)
            compiled = compiled_or_refused(sql, world, rng)
            seen["refused" if compiled is None else "compared"] += 1
            if compiled is not None:
                found = broken(world, compiled, databases)
                assert not found, (seed, found, world.describe(), sql, [step.sql for step in compiled.steps])
    assert seen["compared"] > 3 * seen["refused"] or TRIALS < 100, seen
