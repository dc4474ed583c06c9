"""How near BLOCKWISE comes to the statistic of all rows: MAD and SKEWNESS for epsilon from 0.1 to 10.

    python -m benchmarks.accuracy_blockwise

Made-up costs of 20,000 units, one row each, lognormal and clipped to 0 to 5,000. The exact cells of the release are
read once; its noise is drawn 2,000 times. `bias` is how far the mean of the blocks is from the statistic of all rows
without any noise; under each epsilon stands the root mean square error of what an analyst would get, both as parts of
that statistic.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np

from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.compile import compile_query
from dpsql.compiler.plan.estimators import BlockMean
from dpsql.compiler.settings import Settings
from dpsql.engines.in_memory import InMemoryEngine
from dpsql.privacy.noise import Laplace
from dpsql.privacy.sampling import ExactSampler
from dpsql.schema.model import Budget, Column, Domain, EngineTable, Neighbors, OwnUnit, Privacy, Resolved, Schema, Table
from dpsql.types import BIGINT, DOUBLE

UNITS, DRAWS = 20_000, 2_000
EPSILONS = (Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(10))
BLOCKS = (25, 100, 400)
ASKED = {"mad(cost)": (0, 2000), "skewness(cost)": (0, 5)}


def resolved() -> Resolved:
    columns = (Column("pid", Domain(BIGINT)), Column("cost", Domain(DOUBLE, True, Fraction(0), Fraction(5000))))
    source = EngineTable(("visits",))
    plenty = Budget(Fraction(1000), Fraction(1, 2))
    privacy = Privacy(Neighbors.ADD_REMOVE, "visits.pid", plenty, plenty)
    schema = Schema(Path("bench.yaml"), "duckdb://", "sqlite://", privacy, (), (
        Table("visits", source, OwnUnit("pid"), (), columns),
    ))  # fmt: skip
    return Resolved(schema, 1, {"visits": source}, {"visits": {"pid": BIGINT, "cost": DOUBLE}}, "")


def main() -> None:
    costs = np.clip(np.random.default_rng(7).lognormal(6, 0.8, UNITS), 0, 5000)
    engine = InMemoryEngine(2)
    rows = [(str(pid), repr(float(cost))) for pid, cost in enumerate(costs)]
    engine.fill_table("visits", [("pid", "BIGINT"), ("cost", "DOUBLE")], rows)
    print("| statistic | blocks | bias | " + " | ".join(f"ε = {float(e):g}" for e in EPSILONS) + " |")
    print("|---" * (3 + len(EPSILONS)) + "|")
    for statistic, (low, high) in ASKED.items():
        exact = _exact(statistic, costs)
        for blocks in BLOCKS:
            errors = []
            bias = 0.0
            for epsilon in EPSILONS:
                sql = f"SELECT BLOCKWISE({statistic}, {low}, {high}, blocks => {blocks}) AS b FROM visits"
                compiled = compile_query(sql, resolved(), Settings(epsilon, Fraction(0), None, None, NoiseKind.LAPLACE))
                (step,), recipe = compiled.steps, compiled.tables[0].measures[0].recipe
                mechanism = step.calibrated.bundles[0].mechanism
                assert isinstance(recipe, BlockMean) and isinstance(mechanism, Laplace)
                cell = int(engine.run_release(step.sql, 0, {}).reveal().cells[0][0])
                worth = float(step.calibrated.grids[0] * recipe.terms[0][1])
                found = (cell + ExactSampler().laplace(DRAWS, mechanism.scale)) * worth + float(recipe.center)
                bias = (cell * worth + float(recipe.center)) / exact - 1
                errors.append(float(np.sqrt(np.mean((np.clip(found, low, high) / exact - 1) ** 2))))
            shown = " | ".join(f"{error:.1%}" for error in errors)
            print(f"| {statistic} | {blocks} | {bias:+.1%} | {shown} |")


def _exact(statistic: str, costs: np.ndarray) -> float:
    with duckdb.connect() as db:
        db.register("visits", {"cost": costs})
        row = db.execute(f"SELECT {statistic} FROM visits").fetchone()
    assert row is not None
    return float(row[0])


if __name__ == "__main__":
    main()
