"""Sums of x, x + 3 and 2 * x share their cells: their answers are the engine's, and are more accurate than apart.

What one unit moves is claimed of the cells that run, and compared on neighbors whose values lie at and beyond their
bounds, or have none.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest

from dpsql.compiler.accuracy import calibrated_noise, noise_stderr
from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.compile import compile_query
from dpsql.compiler.plan.estimators import Linear
from dpsql.compiler.plan.expressions import Arithmetic, Case, Cast, Column, Compare, Expr, Literal
from dpsql.compiler.rewrite import form_bundles
from dpsql.compiler.rewrite.linear_arguments import LinearArgument, find_linear_argument
from dpsql.compiler.settings import Settings
from dpsql.engines.in_memory import InMemoryEngine
from dpsql.schema.model import Neighbors, Resolved
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session
from dpsql.types import BIGINT, DOUBLE, INTEGER, SMALLINT
from tests.property.test_clipped_sums import check_step, decide, fill, make_schema, random_unit
from tests.support.effort import trial_count
from tests.support.shop import Silence

pytestmark = pytest.mark.thorough

TRIALS = trial_count(100)
ROWS = [
    (
        i % 700,
        "ab"[i % 3 == 0],
        None if i % 10 == 3 else 900 + i % 200,
        i * 7 % 51,
        None if i % 11 == 0 else i % 77 / 2 - 5,
        None if i % 7 == 0 else i % 240 / 8,
    )
    for i in range(2100)
]
COLUMNS = {
    "uid": {"type": "bigint"},
    "g": {"type": "text", "values": ["a", "b"]},
    "w": {"type": "integer", "bounds": [900, 1100], "nullable": True},
    "n": {"type": "bigint"},
    "f": {"type": "double", "nullable": True},
    "x": {"type": "double", "bounds": [-10, 40], "nullable": True},
}


def linear_schema(contributions: object) -> dict[str, object]:
    return {
        "dpsql": 1,
        "engine": "duckdb:///t.duckdb",
        "ledger": "sqlite:///t.ledger",
        "privacy": {
            "unit": "t.uid",
            "budget": {"epsilon": 1_000_000, "delta": 0.9},
            "query": {"epsilon": 2000, "delta": 1e-3},
            "contributions": contributions,
        },
        "tables": {"t": {"unit": "uid", "columns": COLUMNS}},
    }


@pytest.fixture(scope="module", params=[{"rows": 12, "groups": 2}, "auto"], ids=["declared", "automatic"])
def answers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Session, duckdb.DuckDBPyConnection]]:
    folder = Path(tmp_path_factory.mktemp("linear"))
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE t (uid BIGINT, g TEXT, w INTEGER, n BIGINT, f DOUBLE, x DOUBLE)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", ROWS)
    dataset = open_dataset(linear_schema(request.param), folder)
    with closing(dataset), duckdb.connect(":memory:") as reference:
        reference.execute("CREATE TABLE t (uid BIGINT, g TEXT, w INTEGER, n BIGINT, f DOUBLE, x DOUBLE)")
        reference.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", ROWS)
        yield Session(dataset, sampler=Silence()), reference


def random_aggregates(draws: random.Random) -> str:
    columns = draws.choice((["w", "n"], ["x", "f"]))

    def argument() -> str:
        column, number = draws.choice(columns), draws.choice((1, 3, 1000))
        forms = (f"{column} + {number}", f"{number} - {column}", f"-{column}", f"2 * {column} - {number}",
                 f"({column} + 1) * {number}", f"{column} / 4.0", column)  # fmt: skip
        return draws.choice(forms)

    functions = draws.choice((("SUM",), ("SUM",), ("SUM", "AVG"), ("SUM", "COUNT", "AVG"), ("VAR_POP", "AVG")))
    calls = [f"{draws.choice(functions)}({argument()})" for _ in range(draws.choice((2, 3, 5)))]
    condition = draws.choice(("", "", " FILTER (WHERE n > 3)"))
    return ", ".join([call + condition for call in calls] + draws.choice(([], ["COUNT(*)"])))


def test_answers_are_the_engines(answers: tuple[Session, duckdb.DuckDBPyConnection]) -> None:
    session, reference = answers
    for trial in range(max(12, TRIALS // 4)):
        draws = random.Random(f"identity{trial}")
        by = draws.choice(("", " GROUP BY g", " GROUP BY ROLLUP (g)"))
        sql = f"SELECT {'g, ' if by else ''}{random_aggregates(draws)} FROM t{by} ORDER BY 1"
        ours, theirs = session.execute(sql).rows, reference.execute(sql).fetchall()
        for our_row, row in zip(sorted(ours, key=repr), sorted(theirs, key=repr), strict=True):
            for a, b in zip(our_row, row, strict=True):
                equal = (
                    a == b if isinstance(b, str) or b is None else math.isclose(a, float(b), rel_tol=1e-5, abs_tol=1e-3)
                )
                assert equal, (sql, our_row, row)


def test_ninety_sums_are_two_cells(answers: tuple[Session, duckdb.DuckDBPyConnection]) -> None:
    session, _ = answers
    sql = "SELECT " + ", ".join(f"SUM(w + {k})" for k in range(90)) + ", COUNT(w) FROM t"
    (row,) = session.execute(sql).rows
    assert all(after - before == row[-1] for before, after in pairwise(row[:90]))


@pytest.mark.parametrize("noise", NoiseKind)
@pytest.mark.parametrize("count", ["", ", COUNT(*)", ", AVG(b)"])
def test_sharing_is_no_less_accurate(noise: NoiseKind, count: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of bounded values, each sum has at most the error that it has where nothing is shared."""
    resolved, settings = make_schema(Neighbors.ADD_REMOVE), Settings(Fraction(1), Fraction(1, 10**6), 4, None, noise)
    better = 0
    for trial in range(TRIALS // 4):
        draws = random.Random(f"error{trial}")
        args = [f"{draws.choice((1, 2, -3))} * b + {draws.choice((0, 4, -4, 40))}" for _ in range(draws.choice((2, 4)))]
        sql = f"SELECT {', '.join(f'SUM({arg})' for arg in dict.fromkeys(args))}{count} FROM events"
        together = errors_of(sql, resolved, settings)
        with monkeypatch.context() as patch:
            patch.setattr(form_bundles, "share_arguments", lambda *_: {})
            apart = errors_of(sql, resolved, settings)
        assert all(ours <= theirs * 1.001 for ours, theirs in zip(together, apart, strict=True)), sql
        better += any(ours < theirs * 0.8 for ours, theirs in zip(together, apart, strict=True))
    assert better


def errors_of(sql: str, resolved: Resolved, settings: Settings) -> list[float]:
    """The standard error of each sum."""
    compiled = compile_query(sql, resolved, settings)
    (step,) = compiled.steps
    recipes = [measure.recipe for measure in compiled.tables[0].measures]
    return [noise_stderr(calibrated_noise(r, step.calibrated)) for r in recipes if isinstance(r, Linear)]


def test_a_lone_sum_is_left_as_it_is() -> None:
    """SUM(b + 40) alone has a cell of its own; and where norms are chosen, two sums have two."""
    resolved = make_schema(Neighbors.ADD_REMOVE)
    for rows, sql, cells in (
        (4, "SELECT SUM(b + 40) FROM events", ("c1",)),
        (4, "SELECT SUM(b), SUM(-2 * b) FROM events", ("c1",)),
        (4, "SELECT SUM(b), SUM(b + 1) FROM events", ("c1_above", "c1_below")),
        (None, "SELECT SUM(x), SUM(x - 1000) FROM events", ("c1_sum", "c2_sum")),
        (None, "SELECT SUM(x), SUM(x - 1000), SUM(x + 1) FROM events", ("c1_count", "c1_sum")),
        (None, "SELECT SUM(x), SUM(x / 2) FROM events", ("c1_sum",)),
    ):
        settings = Settings(Fraction(1), Fraction(0), rows, None)
        (step,) = compile_query(sql, resolved, settings).steps
        assert step.calibrated.columns == cells, sql


def test_answers_that_are_formed_otherwise_have_keys_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stored release of an older version has other cells, and must not be read with these recipes."""
    resolved, settings = make_schema(Neighbors.ADD_REMOVE), Settings(Fraction(1), Fraction(0), 4, None)
    sql = "SELECT SUM(b), SUM(b + 1) FROM events"
    (step,) = compile_query(sql, resolved, settings).steps
    monkeypatch.setattr(form_bundles, "share_arguments", lambda *_: {})
    (older,) = compile_query(sql, resolved, settings).steps
    assert step.plan_hash != older.plan_hash


Y, HALF = Column("y", INTEGER), Literal(2, INTEGER)


@pytest.mark.parametrize(
    ("expr", "factor", "offset"),
    [
        (Arithmetic("+", Y, Literal(3, BIGINT), BIGINT), 1, 3),
        (Arithmetic("-", Literal(3, BIGINT), Y, BIGINT), -1, 3),
        (Arithmetic("*", HALF, Arithmetic("-", Y, Literal(3, BIGINT), BIGINT), BIGINT), 2, -6),
        (Arithmetic("/", Cast(Y, DOUBLE), Literal(4.0, DOUBLE), DOUBLE), Fraction(1, 4), 0),
        (Cast(Y, BIGINT), 1, 0),
    ],
)
def test_what_is_linear(expr: Expr, factor: Fraction, offset: Fraction) -> None:
    assert find_linear_argument(expr) == LinearArgument(Y, Fraction(factor), Fraction(offset))


@pytest.mark.parametrize(
    "expr",
    [
        Arithmetic("//", Y, HALF, BIGINT),
        Arithmetic("%", Y, HALF, BIGINT),
        Arithmetic("*", Y, Y, BIGINT),
        Arithmetic("*", Literal(0, BIGINT), Y, BIGINT),
        Arithmetic("+", Y, Literal(None, BIGINT), BIGINT),
        Cast(Y, SMALLINT),
        Case(((Compare(">", Y, HALF), Y),), Literal(0, INTEGER), INTEGER),
    ],
)
def test_what_is_not_linear(expr: Expr) -> None:
    assert find_linear_argument(expr) == LinearArgument(expr)


def test_a_filter_is_part_of_the_base() -> None:
    condition, null = Compare(">", Y, HALF), Literal(None, BIGINT)
    expr = Case(((condition, Arithmetic("+", Y, Literal(3, BIGINT), BIGINT)),), null, BIGINT)
    base = Case(((condition, Y),), Literal(None, INTEGER), INTEGER)
    assert find_linear_argument(expr) == LinearArgument(base, Fraction(1), Fraction(3))


# --- neighbors -------------------------------------------------------------------------------------------------------

STATEMENTS = (
    "SELECT g, SUM(x), SUM(x + 3), AVG(2 * x) FROM events GROUP BY g",
    "SELECT SUM(i), SUM(i + 1), SUM(5 - i), COUNT(*) FROM events",
    "SELECT g, SUM(b), SUM(2 * b), SUM(b / 3) FROM events GROUP BY g",
    "SELECT g, SUM(b + 1), SUM(b - 40), COUNT(*) FROM events GROUP BY ROLLUP (g)",
    "SELECT SUM(x) FILTER (WHERE i > 0), SUM(x + 1) FILTER (WHERE i > 0), AVG(x - 1) FILTER (WHERE i > 0) FROM events",
)


@pytest.mark.parametrize("rows", [None, 3])
@pytest.mark.parametrize("noise", NoiseKind)
@pytest.mark.parametrize("neighbors", Neighbors)
def test_one_unit_moves_no_cell_beyond_its_claim(rows: int | None, noise: NoiseKind, neighbors: Neighbors) -> None:
    resolved, nearest = make_schema(neighbors), 0.0
    settings = Settings(Fraction(1), Fraction(1, 10**6), rows, None, noise)
    with closing(InMemoryEngine(1)) as first, closing(InMemoryEngine(2)) as second:
        for trial in range(TRIALS // 2):
            draws = random.Random(f"{rows}{noise}{neighbors}{trial}")
            crowd = [row for uid in range(2, 5) for row in random_unit(draws, uid)]
            other = random_unit(draws, 1) if neighbors is Neighbors.CHANGE_ONE else []
            fill(first, [*crowd, *random_unit(draws, 1)])
            fill(second, [*other, *crowd[::-1]])
            for step in decide(draws.choice(STATEMENTS), resolved, settings, draws).steps:
                nearest = max(nearest, check_step(step, resolved, (first, second)))
    assert nearest > 0.5
