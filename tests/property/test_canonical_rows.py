"""The canonical form has the same rows: whatever is asked, NULL and NaN among it, and however it was nested.

Conditions are written at random over the worst rows and computed by the engine as they are and as rewritten; relations
are built from the plan's own nodes and run both ways.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from random import Random

import duckdb
import pytest

from dpsql.compiler.analysis import canonical
from dpsql.compiler.analysis.canonical import (
    canonicalize_condition,
    canonicalize_expr,
    normalize_conditions,
    order_join_sides,
)
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.expressions import (
    FALSE,
    TRUE,
    UID,
    And,
    Call,
    Case,
    Column,
    Compare,
    Expr,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
)
from dpsql.compiler.plan.measures import CountRows
from dpsql.compiler.plan.relations import Filter, Join, JoinKind, Rows, row_fields
from dpsql.compiler.plan.walk import map_rows, walk_rows
from dpsql.compiler.render.relations import render_rows
from dpsql.compiler.rewrite.make_total import make_total, make_unit_aggregates_exact
from dpsql.compiler.rewrite.scan_tables import push_conditions
from dpsql.errors import Error, InternalError
from dpsql.types import BIGINT, BOOLEAN, INTEGER, TEXT
from tests.support import duckdb_tables, expressions
from tests.support.effort import trial_count
from tests.support.random_relations import POOLS, PUBLIC_ROWS, STORED, Builder, random_rows

pytestmark = pytest.mark.thorough

TRIALS = trial_count(150)
SEED = int(os.environ.get("DPSQL_SEED", "0"))
OPS = ("=", "<>", "<", "<=", ">", ">=")

# --- conditions ------------------------------------------------------------------------------------------------------


def condition(rng: Random, depth: int) -> Expr:
    """Mostly truth: columns, literals, and what is said of them."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice((Column("b", BOOLEAN), compared(rng), TRUE, FALSE, Literal(None, BOOLEAN)))
    one, other = condition(rng, depth - 1), condition(rng, depth - 1)
    makers = (
        lambda: And((one, other)),
        lambda: Or((one, other)),
        lambda: Not(one),
        lambda: IsNull(one),
        lambda: Compare(rng.choice(OPS), one, other),
        lambda: Compare(rng.choice(("=", "<>")), one, rng.choice((TRUE, FALSE))),
        lambda: Call("coalesce", (one, rng.choice((TRUE, FALSE))), BOOLEAN),
        lambda: InList(one, rng.choice(((TRUE,), (FALSE,), (TRUE, FALSE)))),
        lambda: Case(((one, other),), rng.choice((FALSE, TRUE, Literal(None, BOOLEAN))), BOOLEAN),
        lambda: compared(rng),
    )
    return rng.choice(makers)()


def compared(rng: Random) -> Expr:
    numbers: list[Expr] = [Column("n", INTEGER), Column("m", INTEGER), Literal(2, INTEGER), Literal(3, INTEGER),
                           Literal(2, BIGINT), Literal(None, INTEGER)]  # fmt: skip
    texts: list[Expr] = [Column("k", TEXT), *(Literal(value, TEXT) for value in ("a", "A", "", "Ab c", None))]
    pool = rng.choice((numbers, texts))
    listed = tuple(part for part in rng.sample(pool, 3) if isinstance(part, Literal) and part.value is not None)
    if listed and rng.random() < 0.3:
        return InList(rng.choice(pool), listed)
    return Compare(rng.choice(OPS), rng.choice(pool), rng.choice(pool))


@pytest.fixture(scope="module")
def worst() -> duckdb.DuckDBPyConnection:
    connection = duckdb_tables.connect()
    expressions.load(connection)
    return connection


def test_conditions_are_the_same_in_every_row(worst: duckdb.DuckDBPyConnection) -> None:
    rng, shorter = Random(SEED), 0
    for _ in range(TRIALS * 10):
        written = condition(rng, rng.randint(0, 4))
        same, kept = canonicalize_expr(written), canonicalize_condition(written)
        shorter += kept != same
        for was, now, rows in expressions.computed((written, same, kept), worst):
            assert was is now, (written, same)
            assert (was is True) == (rows is True), (written, kept)
        assert canonicalize_expr(same) == same, written
        assert canonicalize_condition(kept) == kept, written
    assert shorter > TRIALS / 4  # what holds for NULL too is not all that was tried


# --- relations -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    return duckdb_tables.connect()


def load(database: duckdb.DuckDBPyConnection, rng: Random) -> None:
    units = [random_rows(rng, uid, heavy=uid == 1) for uid in range(1, 5)]
    declared = ", ".join(f"{name} {stored}" for name, stored in STORED.items())
    for table in ("many", "more", "one"):
        database.execute(f"CREATE OR REPLACE TABLE {table} (uid BIGINT, {declared})")
        rows = [row for unit in units for row in unit[table]]
        rows.append(f"(NULL, {', '.join(pool[0] for pool in POOLS.values())})")
        database.execute(f"INSERT INTO {table} VALUES {', '.join(rows)}")
    database.execute(f"CREATE OR REPLACE TABLE public ({declared})")
    database.execute(f"INSERT INTO public (t, i, n, d, m) VALUES {', '.join(PUBLIC_ROWS)}")


def joined(builder: Builder) -> Rows:
    """Inner joins over one another, with filters above, between and below them, and conditions on one side."""
    rng = builder.rng

    def filtered(rows: Rows) -> Rows:
        return Filter(rows, builder.condition(row_fields(rows), 1)) if rng.random() < 0.4 else rows

    def met(left: Rows, right: Rows, kind: JoinKind, by_unit: bool) -> Rows:
        parts = [builder.meeting(left, right)]
        parts += [builder.condition(row_fields(side), 0) for side in (left, right) if rng.random() < 0.5]
        return filtered(Join(left, right, kind, And(tuple(parts)), by_unit))

    rows = filtered(builder.relation(rng.randint(0, 1)))
    if rng.random() < 0.8:
        right = filtered(builder.relation(rng.randint(0, 1)))
        rows = met(rows, right, rng.choice((JoinKind.INNER, JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL)), True)
    for _ in range(rng.randint(0, 2)):
        rows = met(rows, builder.public(), rng.choice((JoinKind.INNER, JoinKind.INNER, JoinKind.LEFT)), False)
    return rows


def canonical_rows(rows: Rows) -> Rows:
    """As `canonicalize` has it; scans stand in the place of tables, and are ordered backwards to turn many of them."""
    rows = map_rows(rows, lambda node: canonical._canonicalize_node(normalize_conditions(node)))
    return order_join_sides(rows, lambda side: "".join(sorted(f.name for f in row_fields(side)))[::-1])


def found(database: duckdb.DuckDBPyConnection, rows: Rows, holes: Mapping[str, object]) -> Counter[str]:
    names = ", ".join(f'"{name}"' for name in sorted(f.name for f in row_fields(rows)))
    total = make_total(make_unit_aggregates_exact(Aggregate(rows, (), (CountRows(),)))).input
    cursor = database.execute(f"SELECT {names} FROM ({render_rows(total)})", dict(holes) or None)
    return Counter(map(repr, cursor.fetchall()))


def test_relations_have_the_same_rows(database: duckdb.DuckDBPyConnection) -> None:
    rng, seen = Random(SEED), Counter[str]()
    for trial in range(TRIALS):
        if trial % 10 == 0:
            load(database, rng)
        builder = Builder(rng)
        rows = joined(builder)
        again = canonical_rows(rows)
        pushed = push_conditions(Aggregate(again, (), (CountRows(),))).input
        try:
            was = found(database, rows, builder.holes)
        except InternalError:
            raise
        except Error:  # the values of a sum have no bounds
            continue
        assert was == found(database, again, builder.holes), (rows, again)
        assert was == found(database, pushed, builder.holes), (rows, pushed)
        seen["some"] += bool(was)
        seen["turned"] += left_of(again) != left_of(rows)
        seen["lifted"] += isinstance(again, Filter) and not isinstance(rows, Filter)
    assert min(seen[what] for what in ("some", "turned", "lifted")) > TRIALS / 20, seen


def left_of(rows: Rows) -> str:
    """The leaf that is first."""
    leaves = [node for node in walk_rows(rows) if not isinstance(node, Filter | Join)]
    return repr([f.name for f in row_fields(leaves[0]) if f.name != UID])
