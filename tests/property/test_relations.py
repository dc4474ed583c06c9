"""Every relation over private rows is owned: what a unit has in it is a function of the unit's own rows.

Relations are built from the plan's nodes at random, rewritten and rendered as for a release, and run on neighboring
databases: the rows of all other units must be the same, whatever order and threads the engine works in. Claims about
units and domains are checked on the rows that come out.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from random import Random

import duckdb
import pytest

from dpsql.compiler.analysis.domains import derive_domains
from dpsql.compiler.analysis.units import derive_unit_facts
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.expressions import UID
from dpsql.compiler.plan.measures import CountRows
from dpsql.compiler.plan.relations import Rows, row_fields
from dpsql.compiler.plan.walk import walk_rows
from dpsql.compiler.render.relations import render_rows
from dpsql.compiler.rewrite.make_total import make_total, make_unit_aggregates_exact
from dpsql.errors import Error, InternalError
from dpsql.types import parse_type
from tests.support import duckdb_tables
from tests.support.domain_membership import fits
from tests.support.effort import trial_count
from tests.support.random_relations import POOLS, PUBLIC_ROWS, STORED, random_relation, random_rows

pytestmark = pytest.mark.thorough

TRIALS = trial_count(120)
SEED = int(os.environ.get("DPSQL_SEED", "0"))

Found = list[tuple[object, ...]]


@pytest.fixture(scope="module")
def databases() -> list[duckdb.DuckDBPyConnection]:
    return [duckdb_tables.connect(1), duckdb_tables.connect(1), duckdb_tables.connect(4)]


def load(database: duckdb.DuckDBPyConnection, units: list[dict[str, list[str]]], rng: Random) -> None:
    declared = ", ".join(f"{name} {stored}" for name, stored in STORED.items())
    for table in ("many", "more", "one", "rows"):
        uid = "" if table == "rows" else "uid BIGINT, "
        database.execute(f"CREATE OR REPLACE TABLE {table} ({uid}{declared})")
        rows = [row for unit in units for row in unit[table]]
        if table != "rows":  # rows that belong to no unit must never matter
            rows += [f"(NULL, {', '.join(pool[0] for pool in POOLS.values())})"]
        rng.shuffle(rows)
        database.execute(f"INSERT INTO {table} VALUES {', '.join(rows)}") if rows else None
    database.execute(f"CREATE OR REPLACE TABLE public ({declared})")
    database.execute(f"INSERT INTO public (t, i, n, d, m) VALUES {', '.join(PUBLIC_ROWS)}")


def run(database: duckdb.DuckDBPyConnection, node: Rows, holes: Mapping[str, object]) -> Found:
    names = ", ".join(f'"{f.name}"' for f in row_fields(node)) or "1"
    cursor = database.execute(f"SELECT {names} FROM ({render_rows(node)})", dict(holes) or None)
    types = [parse_type(str(column[1])) for column in cursor.description or ()]
    assert not row_fields(node) or types == [f.type for f in row_fields(node)], node
    return cursor.fetchall()


def runs(node: Rows) -> Rows | None:
    """As it runs: exact and total; None where the values of a sum have no bounds."""
    try:
        return make_total(make_unit_aggregates_exact(Aggregate(node, (), (CountRows(),)))).input
    except InternalError:
        raise
    except Error:
        return None


def by_unit(rows: Found, place: int | None) -> dict[object, Counter[str]]:
    """The rows of each unit as they print, so that -0.0 and 0.0 are two."""
    found: dict[object, Counter[str]] = {}
    for row in rows:
        found.setdefault(None if place is None else row[place], Counter())[repr(row)] += 1
    return found


def check_claims(node: Rows, rows: Found, seed: int) -> None:
    fields = row_fields(node)
    domains = derive_domains(node)
    for f, values in zip(fields, zip(*rows, strict=True), strict=True) if rows else ():
        if f.name != UID:
            for value in values:
                assert fits(value, domains[f.name]), (seed, f, value, domains[f.name], render_rows(node))
    if fields[0].name != UID:
        return
    facts = derive_unit_facts(node)
    places = [place for place, f in enumerate(fields) if f.name in facts.determined]
    for unit in {row[0] for row in rows}:
        own = [row for row in rows if row[0] == unit]
        assert facts.rows is None or len(own) <= facts.rows, (seed, facts, own, render_rows(node))
        for place in places:
            assert len({repr(row[place]) for row in own}) == 1, (seed, fields[place], own, render_rows(node))


@pytest.mark.parametrize("row_units", [False, True], ids=["units", "rows"])
def test_a_unit_moves_no_row_of_another(row_units: bool, databases: list[duckdb.DuckDBPyConnection]) -> None:
    first, second, mixed = databases
    seen: Counter[str] = Counter()
    for seed in range(SEED, SEED + (TRIALS // 4 if row_units else TRIALS)):
        rng = Random(seed)
        if seed % 8 == 0 or seed == SEED:
            crowd = [random_rows(rng, 10 + n, heavy=rng.random() < 0.3) for n in range(6)]
            unit, other = (random_rows(rng, 1, heavy=True) for _ in range(2))
            neighbor = [*crowd, other] if rng.random() < 0.5 else crowd
            load(first, [unit, *crowd], rng)
            load(second, neighbor, rng)
            load(mixed, [*crowd, unit], rng)
        asked, holes = random_relation(rng, row_units)
        node = runs(asked)
        seen["refused" if node is None else "compared"] += 1
        if node is None:
            continue
        seen.update(type(part).__name__ for part in walk_rows(node))
        one, two, again = (run(database, node, holes) for database in (first, second, mixed))
        place = None if row_units else 0
        ours, theirs = by_unit(one, place), by_unit(two, place)
        assert ours == by_unit(again, place), (seed, "order or threads change a row", render_rows(node))
        if row_units:
            gone = ours.get(None, Counter()) - theirs.get(None, Counter())
            most = derive_unit_facts(node).rows
            assert most is not None and sum(gone.values()) <= most, (seed, most, gone, render_rows(node))
        else:
            units = {*ours, *theirs} - {1}
            assert {u: ours.get(u) for u in units} == {u: theirs.get(u) for u in units}, (seed, render_rows(node))
            assert None not in ours, (seed, render_rows(node))
        check_claims(node, one, seed)
        check_claims(node, two, seed)
    assert seen["compared"] > 3 * seen["refused"], seen
    assert row_units or TRIALS < 120 or min(seen[name] for name in NODES) > 5, seen


NODES = ("Join", "Mark", "PerUnit", "UnitWindow", "SetOperation", "Expand", "PublicScan", "RowsHole")
