"""Where no two rows of a unit share a value of a declared key, one unit moves the sums by at most what the key proves.

Units have a row in each year, or in some; rows whose year is NULL, or is no listed one and so becomes NULL, are no rows
of the key, and a unit may have any number of them. What DuckDB adds up is compared on two neighbors, in whole steps.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.compiler.analysis.canonical import canonicalize
from dpsql.compiler.analysis.sensitivity import derive_sensitivity_bounds, neighboring_of
from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.compile import ReleaseStep, compile_query
from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.plan.aggregate import Sum, Weigh
from dpsql.compiler.plan.clipped_sums import ClippedSum, Norm
from dpsql.compiler.rewrite.bound_contributions import ContributionPolicy
from dpsql.compiler.rewrite.pipeline import rewrite_plan
from dpsql.compiler.rewrite.release_plan import RuleContext
from dpsql.compiler.settings import Settings
from dpsql.compiler.split.split import split_query
from dpsql.engines.in_memory import InMemoryEngine
from dpsql.schema.model import (
    Budget,
    Column,
    Contributions,
    Domain,
    EngineTable,
    ForeignUnit,
    Neighbors,
    OwnUnit,
    Privacy,
    Resolved,
    Schema,
    Table,
)
from dpsql.types import BIGINT, DOUBLE, TEXT
from dpsql.verify.paired_engine import reveal_cells
from tests.support.effort import trial_count

pytestmark = pytest.mark.thorough

YEARS = (2019, 2020, 2021, 2022, 2023)
TRIALS = trial_count(80)
KEYED = (
    "SELECT year, COUNT(*) FROM panel GROUP BY year",
    "SELECT year, SUM(x), COUNT(x) FROM panel GROUP BY year",
    "SELECT year, AVG(x) FROM panel WHERE year > 2020 GROUP BY year",
    "SELECT COUNT(*) FROM panel WHERE year IS NOT NULL",
    "SELECT SUM(x) FROM panel WHERE year IN (2019, 2022)",
    "SELECT kind, COUNT(*) FROM panel WHERE year IS NOT NULL GROUP BY kind",
    "SELECT year, kind, COUNT(*) FROM panel GROUP BY year, kind",
    "SELECT year - 2, COUNT(*) FROM panel WHERE year IS NOT NULL GROUP BY year - 2",
    "SELECT year / 10, COUNT(*) FROM panel WHERE year IS NOT NULL GROUP BY year / 10",
    "SELECT year, COUNT(*) FROM panel JOIN people ON panel.uid = people.uid GROUP BY year",
    "SELECT year, COUNT(*) FROM panel WHERE EXISTS (SELECT 1 FROM people p WHERE p.uid = panel.uid) GROUP BY year",
    "SELECT kind, AVG(n) FROM (SELECT uid, kind, CLIP(SUM(x), 0, 9) AS n FROM panel GROUP BY uid, kind) t "
    "WHERE kind IS NOT NULL GROUP BY kind",
    "SELECT year, COUNT(*) FROM panel WHERE year IS NOT NULL GROUP BY ROLLUP (year)",
    "SELECT COUNT(*) FROM panel a JOIN panel b ON a.uid = b.uid WHERE a.year = 2019 AND b.year IN (2019, 2020)",
    "SELECT COUNT(*) FROM panel a, panel b, panel c, panel d WHERE a.uid = b.uid AND b.uid = c.uid AND c.uid = d.uid "
    "AND a.year = 2019 AND b.year = 2020 AND c.year = 2021 AND d.year = 2022",
    "WITH t AS (SELECT uid, year AS y, SUM(x) AS total, MAX(kind) AS kind FROM panel GROUP BY uid, year) SELECT b.y, "
    "COUNT(*) FROM t a, t b, t c, t d WHERE a.uid = b.uid AND a.uid = c.uid AND a.uid = d.uid "
    "AND a.y = 2019 AND b.y IN (2020, 2021) AND c.y = 2021 AND d.y = 2022 AND d.total >= c.total GROUP BY b.y",
)  # fmt: skip
UNKEYED = (
    "SELECT COUNT(*) FROM panel",
    "SELECT year, COUNT(*) FROM panel GROUP BY ROLLUP (year)",
    "SELECT kind, COUNT(*) FROM panel GROUP BY kind",
    "SELECT a.year, COUNT(*) FROM panel a JOIN panel b ON a.uid = b.uid GROUP BY a.year",
    "SELECT b.year, COUNT(*) FROM panel a JOIN panel b ON a.uid = b.uid GROUP BY b.year",
    "SELECT COUNT(*) FROM panel a JOIN panel b ON a.uid = b.uid WHERE a.year IN (2019, 2020) AND b.year < 2021",
    "SELECT COUNT(*) FROM panel a LEFT JOIN panel b ON a.uid = b.uid AND b.year = 2019 WHERE a.year = 2020",
    "SELECT year, COUNT(*) FROM (SELECT uid, year FROM panel UNION ALL SELECT uid, year FROM panel) t GROUP BY year",
)


def make_schema(neighbors: Neighbors, group_size: int = 1) -> Resolved:
    panel = Table(
        "panel",
        EngineTable(("panel",)),
        ForeignUnit("uid", "people", "uid"),
        (("uid", "year"),),
        (
            Column("uid", Domain(BIGINT)),
            Column("year", Domain(BIGINT, values=YEARS)),
            Column("kind", Domain(TEXT, values=("a", "b")), max_length=4),
            Column("x", Domain(DOUBLE, True, Fraction(-5), Fraction(10))),
        ),
    )
    people = Table("people", EngineTable(("people",)), OwnUnit("uid"), (("uid",),), (Column("uid", Domain(BIGINT)),))
    budget = Budget(Fraction(100), Fraction(1, 1000))
    query = Budget(Fraction(1), Fraction(1, 10**6))
    privacy = Privacy(neighbors, "people.uid", budget, query, Contributions(), group_size)
    schema = Schema(Path("panel.yaml"), "duckdb://", "sqlite://", privacy, (), (people, panel))
    physical = {table.name: {column.name: column.type for column in table.columns} for table in (people, panel)}
    return Resolved(schema, 1, {table.name: table.source for table in (people, panel)}, physical, "")


def random_unit(draws: random.Random, uid: int) -> list[tuple[str, ...]]:
    years = [str(year) for year in YEARS if draws.random() < 0.8]
    years += ["NULL", "1999"] * draws.choice((0, 0, 3))
    value = draws.choice(("10", "-5", "99", "NULL"))
    return [(str(uid), year, draws.choice(("'a'", "'b'", "'z'")), value) for year in years]


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[InMemoryEngine, InMemoryEngine]]:
    pair = (InMemoryEngine(1), InMemoryEngine(2))
    yield pair
    for engine in pair:
        engine.close()


def fill(engine: InMemoryEngine, rows: list[tuple[str, ...]]) -> None:
    engine.fill_table("panel", (("uid", "BIGINT"), ("year", "BIGINT"), ("kind", "TEXT"), ("x", "DOUBLE")), rows)
    engine.fill_table("people", (("uid", "BIGINT"),), [(uid,) for uid in sorted({row[0] for row in rows})])


def check_step(step: ReleaseStep, resolved: Resolved, engines: tuple[InMemoryEngine, InMemoryEngine]) -> float:
    """That no claim is exceeded; how near to its claim the nearest cell comes."""
    first, second = (reveal_cells(engine.run_release(step.sql, len(step.keys), {})) for engine in engines)
    names, nearest = step.calibrated.columns, 0.0
    for claim in derive_sensitivity_bounds(step.calibrated.gather, neighboring_of(resolved)):
        places = [names.index(cell) for cell in claim.cells]
        steps = [int(a) - int(b) for at in places for a, b in zip(first.columns[at], second.columns[at], strict=True)]
        l1, l2 = sum(map(abs, steps)), sum(moved**2 for moved in steps)
        assert l1 <= claim.sensitivity.l1, (claim, steps)
        assert l2 <= claim.sensitivity.l2_squared, (claim, steps)
        assert max(map(abs, steps), default=0) <= claim.sensitivity.linf, (claim, steps)
        nearest = max(nearest, l2 / claim.sensitivity.l2_squared)
    return nearest


def needs_norm(sql: str, resolved: Resolved, settings: Settings) -> bool:
    compiled = compile_query(sql, resolved, settings)
    parts = [part for step in compiled.steps for part in step.calibrated.gather.parts]
    weighed = any(isinstance(part, Sum) and isinstance(part.input, Weigh) for part in parts)
    return weighed or any(isinstance(part, ClippedSum) for part in parts)


def settings_of(noise: NoiseKind, rows: int | None = None, groups: int | None = None) -> Settings:
    return Settings(Fraction(1), Fraction(1, 10**6), rows, groups, noise)


def max_part_reached(
    sql: str,
    engines: tuple[InMemoryEngine, InMemoryEngine],
    noise: NoiseKind,
    groups: tuple[int | None, ...] = (None,),
    rows: int | None = None,
) -> float:
    """The largest part of a step's claim that random neighbors reach; more than the claim fails."""
    nearest = 0.0
    for trial in range(TRIALS // 2):
        draws = random.Random(f"{sql}{noise}{trial}")
        neighbors = draws.choice(tuple(Neighbors))
        resolved = make_schema(neighbors)
        crowd = [row for uid in range(2, 6) for row in random_unit(draws, uid)]
        other = random_unit(draws, 1) if neighbors is Neighbors.CHANGE_ONE else []
        fill(engines[0], [*crowd, *random_unit(draws, 1)])
        fill(engines[1], [*other, *crowd[::-1]])
        for step in compile_query(sql, resolved, settings_of(noise, rows, draws.choice(groups))).steps:
            nearest = max(nearest, check_step(step, resolved, engines))
    return nearest


@pytest.mark.parametrize("noise", NoiseKind)
@pytest.mark.parametrize("sql", KEYED)
def test_a_key_with_the_unit_in_it_bounds_what_one_unit_moves(
    sql: str, noise: NoiseKind, engines: tuple[InMemoryEngine, InMemoryEngine]
) -> None:
    assert max_part_reached(sql, engines, noise) > 0.1
    assert not needs_norm(sql, make_schema(Neighbors.ADD_REMOVE), settings_of(noise))


@pytest.mark.parametrize("sql", UNKEYED)
def test_where_the_key_says_nothing_a_norm_is_needed(sql: str) -> None:
    """Rows without a year are any number; a row that a join repeats stands twice beside one value of the key."""
    assert needs_norm(sql, make_schema(Neighbors.ADD_REMOVE), settings_of(NoiseKind.LAPLACE))


def test_noise_is_for_the_root_of_the_years() -> None:
    """One row in each of five years: an L2 norm of the root of 5, an L1 norm of 5; of two years 2."""
    resolved = make_schema(Neighbors.ADD_REMOVE)

    def norms(sql: str) -> tuple[int, int, int]:
        (step,) = compile_query(sql, resolved, settings_of(NoiseKind.GAUSSIAN)).steps
        (claim,) = derive_sensitivity_bounds(step.calibrated.gather, neighboring_of(resolved))
        return claim.sensitivity.l1, claim.sensitivity.l2_squared, claim.sensitivity.linf

    assert norms("SELECT year, COUNT(*) FROM panel GROUP BY year") == (5, 5, 1)
    assert norms("SELECT year, COUNT(*) FROM panel WHERE year IN (2019, 2020) GROUP BY year") == (2, 2, 1)
    assert norms("SELECT COUNT(*) FROM panel WHERE year IS NOT NULL") == (5, 25, 5)
    assert norms("SELECT year / 10, COUNT(*) FROM panel WHERE year IS NOT NULL GROUP BY year / 10") == (5, 25, 5)


def test_declared_rows_stay_a_cap() -> None:
    """Of an L2 norm of 2 rows the root of five years is no less accurate; of one row it is less."""
    sql, resolved = "SELECT year, COUNT(*) FROM panel GROUP BY year", make_schema(Neighbors.ADD_REMOVE)
    assert needs_norm(sql, resolved, settings_of(NoiseKind.GAUSSIAN, 2))
    assert not needs_norm(sql, resolved, settings_of(NoiseKind.GAUSSIAN, 3))
    assert needs_norm(sql, resolved, settings_of(NoiseKind.LAPLACE, 3))
    assert not needs_norm(sql, resolved, settings_of(NoiseKind.LAPLACE, 5))


def test_a_year_that_may_be_null_is_no_key_where_null_is_a_group() -> None:
    resolved = make_schema(Neighbors.ADD_REMOVE)
    people, panel = resolved.schema.tables
    columns = tuple(replace(c, null_group=True) if c.name == "year" else c for c in panel.columns)
    schema = replace(resolved.schema, tables=(people, replace(panel, columns=columns)))
    sql = "SELECT year, COUNT(*) FROM panel GROUP BY year"
    assert needs_norm(sql, replace(resolved, schema=schema), settings_of(NoiseKind.LAPLACE))


# --- what a unit has in a group --------------------------------------------------------------------------------------

PER_GROUP = (
    "SELECT year, SUM(x, contribution_bounds_per_group => (0, 9)) FROM panel GROUP BY year",
    "SELECT kind, SUM(x, contribution_bounds_per_group => (-4, 9)), COUNT(*, contribution_bounds_per_group => (0, 2)) "
    "FROM panel GROUP BY kind",
    "SELECT kind, year, AVG(x, contribution_bounds_per_group => (-4, 9)) FROM panel GROUP BY kind, year",
    "SELECT kind, SUM(CLIP(s, 0, 9)) FROM (SELECT uid, kind, SUM(x) AS s FROM panel GROUP BY uid, kind) t "
    "GROUP BY kind",
)


@pytest.mark.parametrize("noise", NoiseKind)
@pytest.mark.parametrize("sql", PER_GROUP)
def test_bounds_per_group_and_a_cap_on_groups_bound_what_one_unit_moves(
    sql: str, noise: NoiseKind, engines: tuple[InMemoryEngine, InMemoryEngine]
) -> None:
    assert max_part_reached(sql, engines, noise, groups=(None, 1, 2, 3)) > 0.1


@pytest.mark.parametrize(("noise", "groups", "norm"), [("laplace", 3, 3), ("gaussian", 3, 2), ("gaussian", 4, 2)])
def test_units_within_the_cap_on_groups_count_in_full(
    noise: str, groups: int, norm: int, engines: tuple[InMemoryEngine, InMemoryEngine]
) -> None:
    """What is clipped is a unit's sum in a group, 9 of 30; a cap of three groups takes nothing from who is in three."""
    sql, resolved = PER_GROUP[0], make_schema(Neighbors.ADD_REMOVE)
    fill(engines[0], [("1", str(year), "'a'", "10") for year in YEARS[:3]])
    compiled = compile_query(sql, resolved, settings_of(NoiseKind(noise), groups=groups))
    (step,) = compiled.steps
    (part,) = step.calibrated.gather.parts
    assert isinstance(part, Sum) and isinstance(part.input, Weigh) and part.input.rows == norm
    cells = reveal_cells(engines[0].run_release(step.sql, 1, {}))
    sums = [float(step.calibrated.grids[0] * int(n)) for n in cells.columns[0]]
    assert sums == pytest.approx([9, 9, 9, 0, 0], abs=1e-3)
    (notice,) = [notice for notice in compiled.notices if "counts in full" in notice]
    assert f"at most {norm if noise == 'laplace' else norm**2} groups (contributions.groups)" in notice


@pytest.mark.parametrize("noise", NoiseKind)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT year, kind, COUNT(DISTINCT uid) FROM panel GROUP BY year, kind",
        "SELECT year, kind, COUNT(DISTINCT uid) FROM panel GROUP BY ROLLUP (year, kind)",
    ],
)
def test_units_are_counted_within_the_smaller_of_both_caps(
    sql: str, noise: NoiseKind, engines: tuple[InMemoryEngine, InMemoryEngine]
) -> None:
    assert max_part_reached(sql, engines, noise, groups=(1, 2, 3), rows=1000) > 0.1
    resolved, sets = make_schema(Neighbors.ADD_REMOVE), "ROLLUP" in sql
    for rows, groups, cap in ((1000, 2, 2), (2, 1000, 2), (None, 2, 2), (1000, 1000, 1000)):
        (step,) = compile_query(sql, resolved, settings_of(noise, rows, groups)).steps
        (claim,) = derive_sensitivity_bounds(step.calibrated.gather, neighboring_of(resolved))
        # A unit has a row in each of 5 years; of the sets of ROLLUP, rows without a year are in 10, 5 and 1 groups.
        expected = sum(min(cap, listed) for listed in ((10, 5, 1) if sets else (5,)))
        assert claim.sensitivity.l2_squared == expected and claim.sensitivity.linf == 1, (rows, groups)


def test_a_cap_on_groups_gives_counts_of_units_a_key_of_their_own() -> None:
    """Those that an older version stored were capped by rows; where these say less, nothing has changed."""
    sql, resolved = (
        "SELECT year, kind, COUNT(DISTINCT uid) FROM panel GROUP BY year, kind",
        make_schema(Neighbors.ADD_REMOVE),
    )

    def form(rows: int, groups: int) -> tuple[str, ...]:
        aggregate = canonicalize(split_query(parse_query(sql), resolved.schema).releases[0].aggregate)
        policy = ContributionPolicy(rows, groups, Norm.L2)
        return rewrite_plan(aggregate, RuleContext(resolved, policy)).form

    assert form(1000, 2) and not form(2, 2) and not form(2, 3) and not form(1000, 999)


def test_what_is_within_a_unit_is_not_bounded_by_declared_rows() -> None:
    """Averages and variances of counts per unit have norms of their own; where that cannot be, it is said."""
    resolved, settings = make_schema(Neighbors.ADD_REMOVE), settings_of(NoiseKind.LAPLACE, rows=5)
    block = "FROM (SELECT uid, COUNT(*) AS n FROM panel GROUP BY uid) AS t"

    def notices(what: str) -> list[str]:
        compiled = compile_query(f"SELECT {what} {block}", resolved, settings)
        assert needs_norm(f"SELECT {what} {block}", resolved, settings) == (what in ("AVG(n), SUM(n)", "VAR_POP(n)"))
        return [notice for notice in compiled.notices if "contributions.rows" in notice]

    assert notices("AVG(n), SUM(n)") == []
    assert notices("AVG(LEAST(n, 9))") == []
    assert notices("VAR_POP(CLIP(n, 0, 9)), COUNT(*)") == []
    assert notices("VAR_POP(n)") == []
    assert len(notices("MEDIAN(n)")) == 1
