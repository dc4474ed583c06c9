"""Values that lie close together and far from 0: steps are counted from a centre, so that they are told apart.

Answers are compared with exact ones, and what one unit moves with what is claimed of it, for values at the bounds,
beyond them and at the ends of the type.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.compiler.analysis.sensitivity import derive_sensitivity_bounds, neighboring_of
from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.compile import compile_query
from dpsql.compiler.rewrite import form_bundles
from dpsql.compiler.rewrite.grids import quantize_arg
from dpsql.compiler.settings import Settings
from dpsql.engines.in_memory import InMemoryEngine
from dpsql.schema.load import schema_from_dict
from dpsql.schema.model import Neighbors, Resolved
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session
from dpsql.types import BIGINT, DOUBLE, TEXT, decimal_type
from dpsql.verify.paired_engine import reveal_cells
from tests.support.effort import trial_count
from tests.support.shop import Silence

pytestmark = pytest.mark.thorough

TRIALS = trial_count(120)
NEAR, FAR, MONEY = 2**50, 2**60, Decimal("90000000000000.00")
COLUMNS = {
    "uid": {"type": "bigint"},
    "g": {"type": "text", "values": ["a", "b"]},
    "near": {"type": "bigint", "bounds": [NEAR, NEAR + 99]},
    "far": {"type": "bigint", "bounds": [FAR, FAR + 99], "nullable": True},
    "below": {"type": "bigint", "bounds": [-FAR - 99, -FAR]},
    "money": {"type": "decimal(18,2)", "bounds": [str(MONEY), str(MONEY + 10)]},
    "x": {"type": "double", "bounds": [1e12, 1e12 + 10]},
    "small": {"type": "integer", "bounds": [0, 99]},
    "made": {"type": "timestamp", "bounds": ["2024-01-01 00:00:00", "2024-01-01 00:00:01"]},
}
ROWS = [
    (i, "ab"[i % 2], NEAR + i % 100, None if i % 10 == 3 else FAR + i % 100, -FAR - i % 100,
     MONEY + Decimal(i % 1000) / 100, 1e12 + i % 80 / 8, i % 100,
     dt.datetime(2024, 1, 1, microsecond=i * 300))
    for i in range(3000)
]  # fmt: skip
TYPES = ["BIGINT", "TEXT", "BIGINT", "BIGINT", "BIGINT", "DECIMAL(18,2)", "DOUBLE", "INTEGER", "TIMESTAMP"]


def far_schema(contributions: object, neighbors: str = "add_remove") -> dict[str, object]:
    return {
        "dpsql": 1,
        "engine": "duckdb:///far.duckdb",
        "ledger": "sqlite:///far.ledger",
        "privacy": {
            "unit": "t.uid",
            "neighbors": neighbors,
            "budget": {"epsilon": 1_000_000, "delta": 0.9},
            "query": {"epsilon": 2000, "delta": 1e-3},
            "contributions": contributions,
        },
        "tables": {"t": {"unit": "uid", "columns": COLUMNS}},
    }


@pytest.fixture(scope="module", params=[{"rows": 4, "groups": 2}, "auto"], ids=["declared", "automatic"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = Path(tmp_path_factory.mktemp("far"))
    with duckdb.connect(str(folder / "far.duckdb")) as connection:
        pairs = ", ".join(f"{name} {type_}" for name, type_ in zip(COLUMNS, TYPES, strict=True))
        connection.execute(f"CREATE TABLE t ({pairs})")
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(COLUMNS))})", ROWS)
    dataset = open_dataset(far_schema(request.param), folder)
    yield Session(dataset, sampler=Silence())
    dataset.close()


def values_of(name: str) -> list[Fraction]:
    index = list(COLUMNS).index(name)
    return [Fraction(row[index]) for row in ROWS if row[index] is not None]  # type: ignore[arg-type]


def variance_of(values: list[Fraction]) -> float:
    mean = sum(values) / len(values)
    return float(sum((value - mean) ** 2 for value in values) / len(values))


FAR_COLUMNS = ("near", "far", "below", "money", "x")
FIRST = {"near": NEAR, "far": FAR, "below": -FAR, "money": MONEY, "x": 10**12}


@pytest.mark.parametrize("name", FAR_COLUMNS)
def test_answers_are_exact(session: Session, name: str) -> None:
    values, first = values_of(name), Fraction(FIRST[name])
    ((variance, mean, count),) = session.execute(f"SELECT VAR_POP({name}), AVG({name}), COUNT({name}) FROM t").rows
    assert variance == pytest.approx(variance_of(values), rel=1e-4)
    assert count == len(values)
    resolution = float(abs(first)) * 2**-52  # of the double that is the answer
    exact = sum(values) / len(values)
    assert float(Fraction(mean) - exact) == pytest.approx(0, abs=resolution)
    ((alone,),) = session.execute(f"SELECT AVG({name}) FROM t").rows
    assert float(Fraction(alone) - exact) == pytest.approx(0, abs=max(resolution, 0.01))
    ((distinct,),) = session.execute(f"SELECT AVG(DISTINCT {name}) FROM t").rows
    assert float(Fraction(distinct) - sum(set(values)) / len(set(values))) == pytest.approx(0, abs=resolution)


@pytest.mark.parametrize("name", FAR_COLUMNS)
def test_ends_and_medians_are_values_of_the_column(session: Session, name: str) -> None:
    """Bins of such columns were beyond what a grid holds: these statements failed."""
    values = sorted(values_of(name))
    ((median, top, bottom),) = session.execute(f"SELECT MEDIAN({name}), MAX({name}), MIN({name}) FROM t").rows
    resolution = max(float(abs(values[0])) * 2**-52, 0.02)
    for answer, exact in ((median, values[len(values) // 2]), (top, values[-1]), (bottom, values[0])):
        assert float(Fraction(answer) - exact) == pytest.approx(0, abs=resolution + (1.0 if answer is median else 0))


def test_a_timestamp_within_a_second_has_a_median(session: Session) -> None:
    ((median,),) = session.execute("SELECT MEDIAN(made) FROM t").rows
    assert abs(median - dt.datetime(2024, 1, 1, microsecond=450_000)) < dt.timedelta(milliseconds=1)


def test_pairs_are_distinguished(session: Session) -> None:
    ((corr, slope, mean),) = session.execute(
        "SELECT CORR(near, small), REGR_SLOPE(near, small), REGR_AVGY(near, small) FROM t"
    ).rows
    assert (corr, slope) == (pytest.approx(1, abs=1e-6), pytest.approx(1, abs=1e-6))
    assert mean == NEAR + 49.5


def test_blocks_are_distinguished(session: Session) -> None:
    ((spread, mean),) = session.execute(
        f"SELECT BLOCKWISE(stddev(near), 0, 100, blocks => 20), "
        f"BLOCKWISE(avg(near), {NEAR}, {NEAR + 99}, blocks => 20) FROM t"
    ).rows
    assert spread == pytest.approx(28.87, abs=0.5) and mean == pytest.approx(NEAR + 49.5, abs=1)


def test_steps_from_a_center_are_part_of_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stored release of an older version counts from 0, and must not be read as if it counted from here."""
    resolved, settings = resolve_far("add_remove"), Settings(Fraction(1), Fraction(0), 2, 2)
    (step,) = compile_query("SELECT AVG(far) FROM t", resolved, settings).steps
    monkeypatch.setattr(form_bundles, "quantize_about_center", lambda *args: (quantize_arg(*args), Fraction(0)))
    (older,) = compile_query("SELECT AVG(far) FROM t", resolved, settings).steps
    assert step.plan_hash != older.plan_hash


# --- neighbors -------------------------------------------------------------------------------------------------------

STATEMENTS = (
    "SELECT g, AVG(far), COUNT(*) FROM t GROUP BY g",
    "SELECT g, VAR_POP(far) FROM t GROUP BY g",
    "SELECT AVG(money), SUM(near) FROM t",
    "SELECT g, CORR(far, x), COUNT(*) FROM t GROUP BY g",
    "SELECT STDDEV(below), AVG(x) FROM t",
    "SELECT g, AVG(DISTINCT far) FROM t GROUP BY g",
)
NEIGHBOR_COLUMNS = (("uid", "BIGINT"), ("g", "TEXT"), ("near", "BIGINT"), ("far", "BIGINT"), ("below", "BIGINT"),
                    ("money", "DECIMAL(18,2)"), ("x", "DOUBLE"))  # fmt: skip


def resolve_far(neighbors: str) -> Resolved:
    schema = schema_from_dict(far_schema({"rows": 2, "groups": 2}, neighbors), Path("."))
    types = [BIGINT, TEXT, BIGINT, BIGINT, BIGINT, decimal_type(18, 2), DOUBLE]
    physical = {"t": dict(zip((name for name, _ in NEIGHBOR_COLUMNS), types, strict=True))}
    return Resolved(schema, 1, {"t": schema.tables[0].source}, physical, "")


def random_rows(draws: random.Random, uid: int) -> list[tuple[str, ...]]:
    ends = ("(-9223372036854775808)", "9223372036854775807", "0", "NULL")

    def whole(first: int) -> str:
        return draws.choice((str(first), str(first + 99), str(first + 100), str(first + draws.randrange(99)), *ends))

    def row() -> tuple[str, ...]:
        money = draws.choice((str(MONEY), str(MONEY + 10), "-9999999999999999.99", "9999999999999999.99", "NULL"))
        x = draws.choice(("1e12", "1e12 + 10", "1e12 + 0.3", "1e300", "-1e300", "'nan'::DOUBLE", "'inf'::DOUBLE"))
        group = draws.choice(("'a'", "'b'", "'z'"))
        return str(uid), group, whole(NEAR), whole(FAR), whole(-FAR - 99), f"{money}::DECIMAL(18,2)", x

    rows = [row() for _ in range(draws.choice((1, 2, 9)))]
    return rows if draws.random() < 0.5 else [rows[0]] * len(rows)


@pytest.mark.parametrize("noise", NoiseKind)
@pytest.mark.parametrize("neighbors", Neighbors)
def test_one_unit_moves_no_cell_beyond_its_claim(noise: NoiseKind, neighbors: Neighbors) -> None:
    resolved = resolve_far(neighbors.value)
    settings, nearest = Settings(Fraction(1), Fraction(1, 10**6), 2, 2, noise), 0.0
    with closing(InMemoryEngine(1)) as first_engine, closing(InMemoryEngine(2)) as second_engine:
        for trial in range(TRIALS):
            draws = random.Random(f"{noise}{neighbors}{trial}")
            crowd = [row for uid in range(2, 5) for row in random_rows(draws, uid)]
            other = random_rows(draws, 1) if neighbors is Neighbors.CHANGE_ONE else []
            first_engine.fill_table("t", NEIGHBOR_COLUMNS, [*crowd, *random_rows(draws, 1)])
            second_engine.fill_table("t", NEIGHBOR_COLUMNS, [*other, *crowd[::-1]])
            for step in compile_query(draws.choice(STATEMENTS), resolved, settings).steps:
                first, second = (
                    reveal_cells(engine.run_release(step.sql, len(step.keys), {}))
                    for engine in (first_engine, second_engine)
                )
                columns = zip(step.calibrated.columns, first.columns, second.columns, strict=True)
                moved = {name: [a - b for a, b in zip(*pair, strict=True)] for name, *pair in columns}
                for claim in derive_sensitivity_bounds(step.calibrated.gather, neighboring_of(resolved)):
                    steps = [int(difference) for cell in claim.cells for difference in moved[cell]]
                    assert sum(map(abs, steps)) <= claim.sensitivity.l1
                    assert sum(n * n for n in steps) <= claim.sensitivity.l2_squared
                    nearest = max(nearest, sum(n * n for n in steps) / claim.sensitivity.l2_squared)
    assert nearest > 0.8
