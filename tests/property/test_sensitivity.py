"""Removing or replacing the rows of one unit moves the exact cells by at most what the noise was computed from.

Each trial makes a schema, two neighboring databases and some queries, compiles them, runs the SQL of every release on
both databases and compares integers. A failing case prints all of it, after dropping the rows that do not matter.

    DPSQL_TRIALS=20000 pytest tests/property/test_sensitivity.py         more trials
    DPSQL_SEED=1234 DPSQL_TRIALS=1 pytest tests/property/test_sensitivity.py    one of them again
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from random import Random

import duckdb
import pytest
from support import engine
from support.claims import undercharged, violations
from support.columns import Spec, bounded, double
from support.questions import plain_question, random_question
from support.worlds import (
    BUDGET,
    SHAPES,
    Pair,
    Rows,
    TableSpec,
    World,
    an_id,
    random_pair,
    random_world,
    resolve,
    steady_pair,
)

from dpsql.calibrate import Noise
from dpsql.compile import Compiled, Settings, compile_query
from dpsql.errors import Error, InternalError, UnboundedContribution, UnboundedValues
from dpsql.explain import explain
from dpsql.schema.model import Column, Contributions, EngineTable, Neighbors, OwnUnit, Privacy, Table
from dpsql.types import BIGINT, DOUBLE

TRIALS = int(os.environ.get("DPSQL_TRIALS", "200"))
SEED = int(os.environ.get("DPSQL_SEED", "0"))
SHRINK = os.environ.get("DPSQL_SHRINK", "on") == "on"
QUESTIONS = 4
EPSILONS = ("1/1000", "1/50", "1/2", "1", "10")


def random_settings(world: World, rng: Random) -> Settings:
    """Caps as the owner set them or lower; small epsilons make grids coarser."""
    caps = world.schema.privacy.contributions
    return Settings(
        epsilon=Fraction(rng.choice(EPSILONS)),
        delta=Fraction(1, 10 ** rng.randint(3, 9)),
        rows=rng.randint(1, caps.rows or 1),
        groups=rng.randint(1, caps.groups or 1),
        noise=rng.choice((None, Noise.GAUSSIAN, Noise.LAPLACE)),
    )


@dataclass(frozen=True)
class Databases:
    """Three instances that are loaded again for each world."""

    first: duckdb.DuckDBPyConnection
    second: duckdb.DuckDBPyConnection
    third: duckdb.DuckDBPyConnection


@pytest.fixture(scope="module")
def databases() -> Databases:
    return Databases(engine.connect(), engine.connect(), engine.connect())


def compiled_or_refused(sql: str, world: World, settings: Settings) -> Compiled | None:
    try:
        return compile_query(sql, world.resolved, settings)
    except InternalError:
        raise
    except Error:
        return None


def broken(world: World, compiled: Compiled, databases: Databases, strays: bool = True) -> list[str]:
    """What this statement breaks on the databases as they are loaded."""
    found = []
    releases = explain(compiled, "duckdb", ()).releases
    for step, release in zip(compiled.steps, releases, strict=True):
        instances = [databases.first, databases.second, databases.third][: 3 if strays else 2]
        try:
            cells = [engine.run(connection, release.sql, len(release.keys)) for connection in instances]
        except Exception as error:  # what an engine raises on some row tells that the row is there
            return [f"the engine raised {type(error).__name__}: {str(error).splitlines()[0]}"]
        found += violations(step, release, cells[0], cells[1], world.schema.privacy)
        if strays and (cells[0].spelled, cells[0].columns) != (cells[2].spelled, cells[2].columns):
            found.append("rows without a unit matter")
    return found


def load_pair(world: World, pair: Pair, databases: Databases) -> None:
    engine.load(databases.first, world, pair.first)
    engine.load(databases.second, world, pair.second)
    engine.load(databases.third, world, pair.strayed)


def shrunk(world: World, pair: Pair, fails: Callable[[Pair], bool]) -> Pair:
    """Drop rows that are in both databases, and then those that are in one, as long as it still fails."""
    for name in [table.name for table in world.tables]:
        for row in dict.fromkeys((*pair.first[name], *pair.second[name], *pair.strayed[name])):
            smaller = Pair(*(_without(rows, name, row) for rows in (pair.first, pair.second, pair.strayed)))
            if fails(smaller):
                pair = smaller
    return pair


def _without(rows: Rows, table: str, row: tuple[str, ...]) -> Rows:
    return {**rows, table: tuple(r for r in rows[table] if r != row)}


def report(world: World, pair: Pair, compiled: Compiled, found: list[str], seed: int) -> str:
    lines = [*found, f"DPSQL_SEED={seed}", world.describe()]
    for title, rows in (("D", pair.first), ("D'", pair.second), ("strays", pair.strayed)):
        lines += [f"-- {title} {name}: {row}" for name in rows for row in rows[name]]
    lines += [f"-- {compiled.settings}", compiled.statement, *(step.sql for step in compiled.steps)]
    return "\n".join(lines)


def trial(seed: int, databases: Databases, shape: str | None = None) -> Counter[str]:
    """One schema, one pair of neighbors, several questions."""
    rng = Random(seed)
    world = random_world(rng, shape)
    pair = random_pair(world, rng)
    load_pair(world, pair, databases)
    seen: Counter[str] = Counter()
    for place in range(QUESTIONS):
        sql = random_question(world, rng)
        compiled = compiled_or_refused(sql, world, random_settings(world, rng))
        if compiled is None:
            seen["refused"] += 1
            continue
        found = undercharged(compiled) + broken(world, compiled, databases, strays=place == 0)
        if found:
            failing = compiled

            def fails(smaller: Pair, failing: Compiled = failing) -> bool:
                load_pair(world, smaller, databases)
                return bool(broken(world, failing, databases))

            smallest = shrunk(world, pair, fails) if SHRINK else pair
            pytest.fail(report(world, smallest, compiled, found, seed), pytrace=False)
        seen["compared"] += 1
        for release in explain(compiled, "duckdb", ()).releases:
            seen["selected" if release.selection else "listed" if release.keys else "single"] += 1
    return seen


@pytest.mark.parametrize("shape", SHAPES)
def test_one_unit_moves_cells_by_at_most_the_claim(shape: str, databases: Databases) -> None:
    seen: Counter[str] = Counter()
    for seed in range(SEED, SEED + max(1, TRIALS // len(SHAPES))):
        seen += trial(seed, databases, shape)
    if TRIALS >= 200:
        # A generator whose questions are mostly refused would prove nothing.
        assert seen["compared"] > 2 * seen["refused"], seen
        assert min(seen[kind] for kind in ("selected", "listed", "single")) > 5, seen


def test_units_at_the_far_end_move_cells_by_at_most_the_claim(databases: Databases) -> None:
    """The claims are met nearly exactly here, so that one step too much is seen; and they are not far too large."""
    tightest = 0.0
    for seed in range(SEED, SEED + max(1, TRIALS // 2)):
        rng = Random(seed)
        world = random_world(rng, SHAPES[seed % len(SHAPES)], fine=True)
        pair = steady_pair(world, rng)
        load_pair(world, pair, databases)
        for _ in range(2):
            compiled = compiled_or_refused(plain_question(world, rng), world, random_settings(world, rng))
            if compiled is not None:
                found = undercharged(compiled) + broken(world, compiled, databases, strays=False)
                assert not found, report(world, pair, compiled, found, seed)
                tightest = max(tightest, used(compiled, databases))
    assert tightest > 0.99 or TRIALS < 200


@pytest.mark.parametrize("key", ["ROUND(x)", "x * 0", "-x", "CEIL(x)", "x * 1e-300 * 1e-300", "x", "ABS(x) * x"])
def test_a_key_has_one_spelling(key: str, databases: Databases) -> None:
    """0.0 and -0.0 are one group: which of them is shown must not depend on who came first."""
    uid, x = an_id("uid", BIGINT), Spec(Column("x", bounded(DOUBLE, -1, 1)), DOUBLE, "DOUBLE", ())
    table = Table("events", EngineTable(("events",)), OwnUnit("uid"), (), (uid.declared, x.declared))
    spec = TableSpec(table, (uid,), (x,))
    privacy = Privacy(Neighbors.ADD_REMOVE, "events.uid", BUDGET, BUDGET, Contributions(rows=3, groups=3))
    world = World("own", resolve(privacy, [spec]), (spec,), uid)
    crowd = tuple((str(n), double(value)) for n, value in enumerate((0.3, 0.0, 0.2, 0.4), 10))
    for value in (-0.3, -0.0, -5e-324, 0.3):
        first, second = {"events": (("1", double(value)), *crowd)}, {"events": crowd}
        load_pair(world, Pair(first, second, first), databases)
        settings = Settings(Fraction(1), Fraction(1, 10**6), 3, 3)
        compiled = compile_query(f"SELECT {key}, COUNT(*) FROM events GROUP BY {key}", world.resolved, settings)
        assert not broken(world, compiled, databases, strays=False), (key, value)


def used(compiled: Compiled, databases: Databases) -> float:
    """The largest share of a claim that the difference of the databases reaches."""
    shares = [0.0]
    for release in explain(compiled, "duckdb", ()).releases:
        one, other = (engine.run(c, release.sql, len(release.keys)) for c in (databases.first, databases.second))
        if not release.keys:
            places = {column.name: place for place, column in enumerate(release.columns)}
            for bundle in release.bundles:
                steps = [one.columns[places[c]][0] - other.columns[places[c]][0] for c in bundle.columns]
                shares.append(sum(map(abs, steps)) / bundle.l1)
    return max(shares)


def test_order_threads_and_parts_change_nothing() -> None:
    """The same bag of rows gives the same integers, however it lies in the engine."""
    for seed in range(SEED, SEED + max(1, TRIALS // 10)):
        rng = Random(seed)
        world = random_world(rng)
        pair = random_pair(world, rng)
        plain, others = engine.connect(1), [engine.connect(threads) for threads in (1, 2, 4)]
        engine.load(plain, world, pair.first)
        for connection in others:
            engine.load(connection, world, dict.fromkeys(pair.first, ()))
            for name, rows in pair.first.items():
                mixed = list(rows)
                rng.shuffle(mixed)
                half = rng.randint(0, len(mixed))
                engine.insert(connection, name, tuple(mixed[:half]))
                engine.insert(connection, name, tuple(mixed[half:]))
        for _ in range(QUESTIONS):
            compiled = compiled_or_refused(random_question(world, rng), world, random_settings(world, rng))
            for step in compiled.steps if compiled is not None else ():
                expected = engine.run(plain, step.sql, len(step.keys))
                for connection in others:
                    got = engine.run(connection, step.sql, len(step.keys))
                    assert (got.spelled, got.columns) == (expected.spelled, expected.columns), (seed, step.sql)


def test_the_compiled_text_does_not_depend_on_rows_or_order_of_compilation() -> None:
    """Compile is a pure function: the same text, again, whatever was compiled between."""
    for seed in range(SEED, SEED + max(1, TRIALS // 10)):
        rng = Random(seed)
        world = random_world(rng)
        questions = [(random_question(world, rng), random_settings(world, rng)) for _ in range(QUESTIONS)]
        first = [compiled_or_refused(sql, world, settings) for sql, settings in questions]
        again = [compiled_or_refused(sql, world, settings) for sql, settings in reversed(questions)]
        assert first == again[::-1]


def test_without_a_norm_a_heavy_unit_is_refused() -> None:
    """Where nothing bounds what a unit adds, there is no answer."""
    refused = 0
    for seed in range(SEED, SEED + max(1, TRIALS // 5)):
        rng = Random(seed)
        world = random_world(rng, rng.choice(("own", "one hop", "two hops")))
        settings = Settings(Fraction(1), Fraction(1, 10**6), None, None)
        table = world.tables[-1]
        with pytest.raises((UnboundedContribution, UnboundedValues)):
            compile_query(f"SELECT COUNT(*) FROM {table.name}", world.resolved, settings)
        refused += 1
    assert refused
