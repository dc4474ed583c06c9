"""One unit moves the sums of a release with chosen norms by at most those norms, and a histogram of units by one count.

Whatever its rows hold: values that cancel out, that are huge or tiny, many rows in one group or one in each. The norm
is drawn, since any norm is sound. What DuckDB adds up is compared on two neighbors, in whole steps.

    DPSQL_TRIALS=5000 pytest tests/property/test_clipped_sums.py     more trials
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.compiler.analysis.sensitivity import derive_sensitivity_bounds, neighboring_of
from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.compile import Compiled, ReleaseStep, compile_query
from dpsql.compiler.plan.clipped_sums import NORM_STEPS
from dpsql.compiler.settings import Settings
from dpsql.engines.in_memory import InMemoryEngine
from dpsql.privacy.noise import Laplace
from dpsql.privacy.norm_choice import NormHistogram
from dpsql.schema.model import (
    Budget,
    Column,
    Contributions,
    Domain,
    EngineTable,
    Neighbors,
    OwnUnit,
    Privacy,
    Resolved,
    RowUnit,
    Schema,
    Table,
)
from dpsql.types import BIGINT, DOUBLE, TEXT
from dpsql.verify.paired_engine import reveal_cells
from tests.support.effort import trial_count

pytestmark = pytest.mark.thorough

GROUPS = ("a", "b", "c", "d")
TRIALS = trial_count(160)
STATEMENTS = (
    "SELECT g, COUNT(*) FROM events GROUP BY g",
    "SELECT g, SUM(x) FROM events GROUP BY g",
    "SELECT g, AVG(x) FROM events GROUP BY g",
    "SELECT SUM(x) FROM events",
    "SELECT g, SUM(i), COUNT(x) FROM events GROUP BY g",
    "SELECT g, COUNT(*), AVG(i), SUM(b) FROM events GROUP BY g",
    "SELECT AVG(n), SUM(n) FROM (SELECT uid, SUM(i) AS n FROM events GROUP BY uid) AS t",
    "SELECT g, SUM(x) FROM events GROUP BY ROLLUP (g)",
)


def make_schema(neighbors: Neighbors, group_size: int = 1, *, rows_are_units: bool = False) -> Resolved:
    columns = (
        Column("uid", Domain(BIGINT)),
        Column("g", Domain(TEXT, values=GROUPS), max_length=4),
        Column("x", Domain(DOUBLE)),
        Column("i", Domain(BIGINT)),
        Column("b", Domain(DOUBLE, True, Fraction(-5), Fraction(10))),
    )
    unit = RowUnit() if rows_are_units else OwnUnit("uid")
    table = Table("events", EngineTable(("events",)), unit, (), columns)
    budget = Budget(Fraction(100), Fraction(1, 1000))
    privacy = Privacy(
        neighbors,
        "row" if rows_are_units else "events.uid",
        budget,
        Budget(Fraction(1), Fraction(1, 10**6)),
        Contributions(),
        group_size,
    )
    schema = Schema(Path("events.yaml"), "duckdb://", "sqlite://", privacy, (), (table,))
    physical = {"events": {column.name: column.type for column in columns}}
    return Resolved(schema, 1, {"events": table.source}, physical, "")


def decide(sql: str, resolved: Resolved, settings: Settings, draws: random.Random) -> Compiled:
    """The statement with norms that many units in one bin of each histogram lead to."""
    compiled, norms = compile_query(sql, resolved, settings), dict[str, NormHistogram]()
    while compiled.undecided:
        for norm in compiled.norm_steps:
            near = [j for j in range(norm.bins.count) if abs(norm.bins.first + j) <= 8]
            counts = [0] * norm.bins.count
            counts[draws.choice(near)] = 10**9
            norms[norm.step.plan_hash] = NormHistogram(norm.bins, tuple(counts), Laplace(Fraction(10)))
        compiled = compile_query(sql, resolved, settings, norms=norms)
    return compiled


def random_value(draws: random.Random) -> str:
    kind = draws.randrange(8)
    size = 10.0 ** draws.randint(-30, 30)
    if kind == 0:
        return "NULL"
    if kind == 1:
        return draws.choice(("1e300", "-1e300", "'inf'::DOUBLE", "'-inf'::DOUBLE", "'nan'::DOUBLE", "0"))
    if kind == 2:
        return repr(draws.choice((-1, 1)) * size)
    return repr(draws.choice((-1, 1)) * draws.choice((0.1, 1.0, 3.0, 3e7, 1 / 3)))


def random_unit(draws: random.Random, uid: int) -> list[tuple[str, ...]]:
    """Rows that cancel out, are many, or are far away."""
    rows = draws.choice((1, 1, 3, 20, 120))
    spread, alternate = draws.random() < 0.6, draws.random() < 0.3
    value, group = random_value(draws), draws.choice(GROUPS)
    made = []
    for number in range(rows):
        if draws.random() < 0.3:
            value = random_value(draws)
        x = value if not alternate or number % 2 or value[0] in "'-N" else f"-{value}"
        key = draws.choice((*GROUPS, "z")) if spread else group
        i = draws.choice((-(2**62), 2**62, -3, 0, 1, 7, 10**6))
        made.append((str(uid), f"'{key}'", x, str(i), draws.choice(("-5", "10", "2.5", "NULL", "99"))))
    return made


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[InMemoryEngine, InMemoryEngine]]:
    pair = (InMemoryEngine(1), InMemoryEngine(2))
    yield pair
    for engine in pair:
        engine.close()


COLUMNS = (("uid", "BIGINT"), ("g", "TEXT"), ("x", "DOUBLE"), ("i", "BIGINT"), ("b", "DOUBLE"))


def fill(engine: InMemoryEngine, rows: list[tuple[str, ...]]) -> None:
    engine.fill_table("events", COLUMNS, rows)


def moved(step: ReleaseStep, engines: tuple[InMemoryEngine, InMemoryEngine]) -> dict[str, list[int]]:
    """By how much each cell differs between the neighbors."""
    first, second = (reveal_cells(engine.run_release(step.sql, len(step.keys), {})) for engine in engines)
    assert first.keys == second.keys
    return {
        name: [ours - theirs for ours, theirs in zip(*columns, strict=True)]
        for name, *columns in zip(step.calibrated.columns, first.columns, second.columns, strict=True)
    }


def check_step(step: ReleaseStep, resolved: Resolved, engines: tuple[InMemoryEngine, InMemoryEngine]) -> float:
    """That no claim is exceeded; how near to its claim the nearest cell comes."""
    nearest, cells = 0.0, moved(step, engines)
    for claim in derive_sensitivity_bounds(step.calibrated.gather, neighboring_of(resolved)):
        steps = [difference for cell in claim.cells for difference in cells[cell]]
        l1, l2 = sum(map(abs, steps)), sum(difference**2 for difference in steps)
        assert l1 <= claim.sensitivity.l1, (claim, steps)
        assert l2 <= claim.sensitivity.l2_squared, (claim, steps)
        assert max(map(abs, steps), default=0) <= claim.sensitivity.linf, (claim, steps)
        nearest = max(nearest, (l2 / claim.sensitivity.l2_squared) ** 0.5)
    return nearest


@pytest.mark.parametrize("noise", NoiseKind)
@pytest.mark.parametrize("neighbors", Neighbors)
def test_one_unit_moves_no_cell_beyond_its_norm(
    noise: NoiseKind, neighbors: Neighbors, engines: tuple[InMemoryEngine, InMemoryEngine]
) -> None:
    resolved, nearest = make_schema(neighbors), 0.0
    settings = Settings(Fraction(1), Fraction(1, 10**6), None, None, noise)
    for trial in range(TRIALS):
        draws = random.Random(f"{noise}{neighbors}{trial}")
        crowd = [row for uid in range(2, 6) for row in random_unit(draws, uid)]
        one = random_unit(draws, 1)
        other = random_unit(draws, 1) if neighbors is Neighbors.CHANGE_ONE else []
        fill(engines[0], [*crowd, *one])
        second = [*other, *crowd]
        draws.shuffle(second)
        fill(engines[1], second or [])
        compiled = decide(draws.choice(STATEMENTS), resolved, settings, draws)
        for step in (*compiled.steps, *(norm.step for norm in compiled.norm_steps)):
            nearest = max(nearest, check_step(step, resolved, engines))
    assert nearest > 0.9  # or the trials would prove little


@pytest.mark.parametrize("noise", NoiseKind)
def test_where_rows_are_units_each_is_clipped(noise: NoiseKind, engines: tuple[InMemoryEngine, InMemoryEngine]) -> None:
    resolved = make_schema(Neighbors.ADD_REMOVE, rows_are_units=True)
    settings = Settings(Fraction(1), Fraction(1, 10**6), None, None, noise)
    nearest = 0.0
    for trial in range(TRIALS // 4):
        draws = random.Random(f"rows{noise}{trial}")
        crowd = random_unit(draws, 2)
        fill(engines[0], [*crowd, random_unit(draws, 1)[0]])
        fill(engines[1], crowd[::-1])
        sql = draws.choice(("SELECT g, SUM(x) FROM events GROUP BY g", "SELECT AVG(i) FROM events"))
        compiled = decide(sql, resolved, settings, draws)
        for step in (*compiled.steps, *(norm.step for norm in compiled.norm_steps)):
            nearest = max(nearest, check_step(step, resolved, engines))
    assert nearest > 0.9


def test_a_unit_within_its_norm_counts_in_full(engines: tuple[InMemoryEngine, InMemoryEngine]) -> None:
    """No rounding of light units: three rows are three rows, to the step."""
    resolved, settings = make_schema(Neighbors.ADD_REMOVE), Settings(Fraction(1), Fraction(0), None, None)
    fill(engines[0], [("1", "'a'", "2.5", "7", "1"), ("1", "'b'", "-1.25", "7", "1"), ("2", "'b'", "4", "1", "1")])
    compiled = decide("SELECT g, COUNT(*), SUM(x) FROM events GROUP BY g", resolved, settings, random.Random(3))
    (step,) = compiled.steps
    norms = dict(step.norms)
    cells = reveal_cells(engines[0].run_release(step.sql, 1, {}))
    values = {
        name: dict(zip([key[0] for key in cells.keys], (step.calibrated.grids[place] * n for n in column), strict=True))
        for place, (name, column) in enumerate(zip(step.calibrated.columns, cells.columns, strict=True))
    }
    if norms["rows"].norm >= 2:
        assert [values["rows"][key] for key in GROUPS] == [1, 2, 0, 0]
    assert norms["c1_sum"].norm * NORM_STEPS > 0
    if norms["c1_sum"].norm >= 4:
        assert [float(values["c1_sum"][key]) for key in GROUPS] == pytest.approx([2.5, 2.75, 0, 0], abs=1e-6)
