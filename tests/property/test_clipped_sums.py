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

import numpy as np
import pytest

from dpsql.compiler.analysis.sensitivity import derive_sensitivity_bounds, neighboring_of
from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.compile import Compiled, ReleaseStep, compile_query
from dpsql.compiler.plan.clipped_sums import NORM_STEPS
from dpsql.compiler.settings import Settings
from dpsql.engines.in_memory import InMemoryEngine
from dpsql.privacy.exponential import UnitContribution
from dpsql.privacy.noise import Laplace
from dpsql.privacy.norm_choice import MeanBins, NormBins, UnitHistogram, make_histogram
from dpsql.privacy.release import Release
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
from dpsql.session.postprocess.estimates import estimate_measure
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
    "SELECT g, VAR_POP(b), COUNT(*) FROM events GROUP BY GROUPING SETS ((g))",
    "SELECT g, COUNT(*), AVG(i) FROM events GROUP BY ROLLUP (g)",
    "SELECT g, i > 0, SUM(b) FROM events GROUP BY CUBE (g, (i > 0))",
    "SELECT g, COUNT(*), COUNT(x) FROM events GROUP BY g",
    "SELECT COUNT(*), AVG(x) FROM events",
    "SELECT g, VAR_POP(x), COUNT(*) FROM events GROUP BY g",
    "SELECT STDDEV(i), AVG(i), VAR_SAMP(x + 1) FROM events",
    "SELECT g, VAR_POP(x) FROM events GROUP BY ROLLUP (g)",
)
SET_STATEMENTS = (
    "SELECT g, COUNT(*) FROM events GROUP BY ROLLUP (g)",
    "SELECT g, i > 0, SUM(b), COUNT(*) FROM events GROUP BY CUBE (g, (i > 0))",
    "SELECT g, VAR_POP(b) FROM events GROUP BY GROUPING SETS ((g), ())",
    "SELECT g, COUNT(DISTINCT i), COUNT(DISTINCT uid) FROM events GROUP BY ROLLUP (g)",
    "SELECT g, VAR_POP(b), COUNT(*) FROM events GROUP BY GROUPING SETS ((g))",
)


def make_schema(
    neighbors: Neighbors,
    group_size: int = 1,
    *,
    rows_are_units: bool = False,
) -> Resolved:
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


def near_bins(bins: NormBins | MeanBins) -> list[int]:
    """Those of norms from 2^-8 to 2^8, and of means of such a size, of either sign and 0."""
    if isinstance(bins, NormBins):
        return [j for j in range(bins.count) if abs(bins.first + j) <= 8]
    return [j for j in range(bins.count) if all(end == 0 or 2.0**-8 <= abs(end) <= 2.0**8 for end in bins.edges(j))]


def decide(sql: str, resolved: Resolved, settings: Settings, draws: random.Random) -> Compiled:
    """The statement with norms and centres that many units in one bin of each histogram lead to."""
    compiled, norms = compile_query(sql, resolved, settings), dict[str, UnitHistogram]()
    while compiled.undecided:
        for norm in compiled.norm_steps:
            if norm.waits or norm.decided:
                continue
            counts = [0] * norm.bins.count
            counts[draws.choice(near_bins(norm.bins))] = 10**9
            norms[norm.step.plan_hash] = make_histogram(norm.bins, tuple(counts), Laplace(Fraction(10)))
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


@pytest.mark.parametrize(
    "sql", ["SELECT g, COUNT(*), AVG(x) FROM events GROUP BY g", "SELECT COUNT(*), COUNT(x) FROM events"]
)
@pytest.mark.parametrize("noise", NoiseKind)
def test_rows_with_and_without_a_value_have_one_norm_together(
    noise: NoiseKind, sql: str, engines: tuple[InMemoryEngine, InMemoryEngine]
) -> None:
    """Half of a unit's rows lie in either cell: a norm for each would be reached twice."""
    resolved, nearest = make_schema(Neighbors.ADD_REMOVE), 0.0
    settings = Settings(Fraction(1), Fraction(1, 10**6), None, None, noise)
    crowd = [("2", "'a'", "1", "1", "1"), ("3", "'b'", "NULL", "1", "1")]
    for trial in range(8):
        draws = random.Random(f"together{trial}")
        rows = draws.choice((8, 2_000))
        missing = [trial % 2 == 1 or n % 4 < 2 for n in range(rows)]  # all rows, or half of them in either group
        one = [("1", f"'{GROUPS[n % 2]}'", "NULL" if missing[n] else "1e-9", "1", "1") for n in range(rows)]
        fill(engines[0], [*crowd, *one])
        fill(engines[1], crowd)
        (step,) = decide(sql, resolved, settings, draws).steps
        assert ("c1_count", "c1_missing") in [bundle.claim.cells for bundle in step.calibrated.bundles]
        nearest = max(nearest, check_step(step, resolved, engines))
    assert nearest > (0.9 if noise is NoiseKind.GAUSSIAN else 0.45)  # an L1 norm is spread over two or four sums


@pytest.mark.parametrize("noise", NoiseKind)
@pytest.mark.parametrize("neighbors", Neighbors)
def test_with_declared_rows_each_grouping_set_has_its_own_part(
    noise: NoiseKind, neighbors: Neighbors, engines: tuple[InMemoryEngine, InMemoryEngine]
) -> None:
    """The norm of all sets together is claimed, and reached: a unit weighs as much in each of them."""
    nearest = 0.0
    for trial in range(TRIALS // 2):
        draws = random.Random(f"sets{noise}{neighbors}{trial}")
        resolved, rows = make_schema(neighbors), draws.choice((1, 3, 20))
        settings = Settings(Fraction(1), Fraction(1, 10**6), rows, None, noise)
        crowd = [row for uid in range(2, 5) for row in random_unit(draws, uid)]
        other = random_unit(draws, 1) if neighbors is Neighbors.CHANGE_ONE else []
        fill(engines[0], [*crowd, *random_unit(draws, 1)])
        fill(engines[1], [*other, *crowd[::-1]])
        for step in compile_query(draws.choice(SET_STATEMENTS), resolved, settings).steps:
            nearest = max(nearest, check_step(step, resolved, engines))
    assert nearest > 0.45


@pytest.mark.parametrize("measure", ["MEDIAN(b)", "MAX(b)"])
@pytest.mark.parametrize("noise", NoiseKind)
def test_bins_of_quantiles_are_moved_in_each_grouping_set(
    noise: NoiseKind, measure: str, engines: tuple[InMemoryEngine, InMemoryEngine]
) -> None:
    resolved, nearest = make_schema(Neighbors.ADD_REMOVE), 0.0
    for trial in range(TRIALS):
        draws = random.Random(f"bins{noise}{trial}")
        settings = Settings(Fraction(1), Fraction(1, 10**6), draws.choice((None, 1, 3, 20)), None, noise)
        crowd = [row for uid in range(2, 5) for row in random_unit(draws, uid)]
        fill(engines[0], [*crowd, *random_unit(draws, 1)])
        fill(engines[1], crowd[::-1])
        compiled = decide(f"SELECT g, {measure} FROM events GROUP BY ROLLUP (g)", resolved, settings, draws)
        step = compiled.steps[-1]
        weights, by_group = step.calibrated.weights, dict[tuple[object, ...], int]()
        assert isinstance(weights, UnitContribution)
        first, second = (reveal_cells(engine.run_release(step.sql, len(step.keys), {})) for engine in engines)
        for key, ours, theirs in zip(first.keys, first.columns[0], second.columns[0], strict=True):
            by_group[key[:-1]] = by_group.get(key[:-1], 0) + abs(int(ours) - int(theirs))
        norm = sum(by_group.values()) if weights.summed else sum(n * n for n in by_group.values()) ** 0.5
        assert norm <= weights.norm
        nearest = max(nearest, norm / weights.norm)
    assert nearest > 0.6


@pytest.mark.parametrize("rows", [None, 40])
@pytest.mark.parametrize("noise", NoiseKind)
def test_no_grouping_set_scales_another_down(
    rows: int | None, noise: NoiseKind, engines: tuple[InMemoryEngine, InMemoryEngine]
) -> None:
    """A unit with 10 rows in each of four groups counts in full, in its groups and in the total."""
    resolved = make_schema(Neighbors.ADD_REMOVE)
    settings = Settings(Fraction(1), Fraction(1, 10**6), rows, None, noise)
    fill(engines[0], [("1", f"'{group}'", "1", "1", "1") for group in GROUPS for _ in range(10)])
    sql = "SELECT g, COUNT(*) FROM events GROUP BY ROLLUP (g)"
    compiled, norms = compile_query(sql, resolved, settings), dict[str, UnitHistogram]()
    for norm in compiled.norm_steps:
        cells = reveal_cells(engines[0].run_release(norm.step.sql, 1, {}))
        counts = tuple(10**9 * int(n) for n in cells.columns[0])
        norms[norm.step.plan_hash] = make_histogram(norm.bins, counts, Laplace(Fraction(1)))
    compiled = compile_query(sql, resolved, settings, norms=norms)
    (step,), (measure,) = compiled.steps, compiled.tables[0].measures
    cells = reveal_cells(engines[0].run_release(step.sql, len(step.keys), {}))
    noiseless = Release(cells.keys, tuple(map(np.array, cells.columns)), step.calibrated.spec)
    values = estimate_measure(measure.recipe, noiseless, step.calibrated.columns).values
    assert dict(zip(cells.keys, values, strict=True)) == {**{(g, 0): 10 for g in GROUPS}, (None, 1): 40}
    if rows is None and noise is NoiseKind.GAUSSIAN:  # an L2 norm: of 10 in each of four groups, and of their total
        assert [norm.norm for _, norm in step.norms] == [pytest.approx(20, rel=0.7), pytest.approx(40, rel=0.7)]
        assert step.norms[0][1].norm < step.norms[1][1].norm


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
        sql = draws.choice(("SELECT g, SUM(x) FROM events GROUP BY g", "SELECT AVG(i), VAR_POP(i) FROM events"))
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


@pytest.mark.parametrize("noise", NoiseKind)
def test_a_row_without_a_value_adds_nothing_to_the_norm(
    noise: NoiseKind, engines: tuple[InMemoryEngine, InMemoryEngine]
) -> None:
    """A unit with NULLs, NaN and infinities beside its values is in the bin of its values."""
    resolved = make_schema(Neighbors.ADD_REMOVE)
    settings = Settings(Fraction(1), Fraction(1, 10**6), None, None, noise)
    values = [("1", "'a'", x, "0", "NULL") for x in ("12000", "NULL", "'nan'::DOUBLE", "'inf'::DOUBLE")]
    missing = [("2", "'a'", "NULL", "0", "NULL")] * 3
    fill(engines[0], values + missing)
    (norm,) = compile_query("SELECT g, SUM(x) FROM events GROUP BY g", resolved, settings).norm_steps
    cells = reveal_cells(engines[0].run_release(norm.step.sql, len(norm.step.keys), {}))
    bins = [key[0] for key, count in zip(cells.keys, cells.columns[0], strict=True) if count]
    assert [norm.bins.lower_edge(number - norm.bins.first) for number in bins] == [8192.0]
