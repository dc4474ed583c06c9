"""Error of variances, correlations and distinct counts by region on the common workload, at epsilon 1 and delta 1e-6.

    python -m benchmarks.moments               200 runs of noise for each line
    python -m benchmarks.moments --quick       20

Error is the mean over regions of |answer - exact unbounded answer| / exact, as in `benchmarks.accuracy`; of a
correlation it is the plain difference, times 100. The last columns say whether error bars are honest: the standard
error that is claimed, beside that of the runs, and how many of the runs' 95 % intervals hold their mean answer.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt

from benchmarks.accuracy import open_sessions
from benchmarks.workload import payments
from dpsql.compiler.compile import compile_query
from dpsql.compiler.plan.estimators import Recipe
from dpsql.privacy.release import perturb
from dpsql.session.postprocess.estimates import estimate_measure
from dpsql.session.session import Session

Floats = npt.NDArray[np.float64]

RUNS, QUICK_RUNS, ROWS = 200, 20, 60
MEASURES = (
    "VAR_POP(amount)",
    "STDDEV(amount)",
    "CORR(amount, amount * LEAST(GREATEST(user_id % 2, 0), 1))",
    "REGR_SLOPE(amount, amount * LEAST(GREATEST(user_id % 2, 0), 1))",
    "COUNT(DISTINCT ROUND(amount, 1))",
    "AVG(DISTINCT ROUND(amount, 1))",
)


@dataclass(frozen=True)
class Figures:
    error: float  # in percent
    claimed: float  # the mean of the standard errors that are given, over that of the runs
    covered: float  # of the 95 % intervals, in percent


def exact_answers(path: Path, measure: str) -> Floats:
    """Of the engine itself, to the statement as it stands; regions in their order."""
    with duckdb.connect(str(path), read_only=True) as connection:
        rows = connection.execute(f"SELECT {measure} FROM payments GROUP BY region ORDER BY region").fetchall()
    return np.array([row[0] for row in rows], dtype=np.float64)


def measure_errors(session: Session, measure: str, exact: Floats, runs: int) -> Figures:
    sql = f"SELECT region, {measure} FROM payments GROUP BY region"
    compiled = compile_query(sql, session.dataset.resolved, session.settings.statement)
    (step,), (table,) = compiled.steps, compiled.tables
    recipe = table.measures[0].recipe
    assert isinstance(recipe, Recipe)
    cells = session.dataset.engine.execute(step.sql, len(step.keys), {})
    values, errors, inside = [], [], []
    for _ in range(runs):
        release = perturb(cells, step.calibrated.spec, session.sampler)
        found = estimate_measure(recipe, release, step.calibrated.columns)
        columns = (found.values, found.stderr, found.low, found.high)
        value, error, low, high = (np.array(column, dtype=np.float64) for column in columns)
        values.append(value)
        errors.append(error)
        inside.append((low, high))
    answers = np.stack(values)
    middle = np.nanmean(answers, axis=0)
    held = np.mean([(low <= middle) & (middle <= high) for low, high in inside])
    scale = np.ones_like(exact) if measure.startswith("CORR") else np.abs(exact)
    apart = np.nan_to_num(np.abs(answers - exact) / scale, nan=1.0)
    claimed = float(np.mean(np.nanmean(np.stack(errors), axis=0) / np.nanstd(answers, axis=0)))
    return Figures(100 * float(apart.mean()), claimed, 100 * float(held))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RUNS} runs of noise, not {RUNS}")
    runs = QUICK_RUNS if parser.parse_args().quick else RUNS
    with tempfile.TemporaryDirectory() as folder:
        sessions = open_sessions(Path(folder), payments())
        session = sessions["public"]
        exact = {measure: exact_answers(Path(folder) / "payments.duckdb", measure) for measure in MEASURES}
        print(f"{ROWS} rows for each user, public regions, each measure alone; {runs} runs")
        print(f"{'noise':<10}{'measure':<46}{'error %':>9}{'claimed / seen':>16}{'covered %':>11}")
        for noise in ("laplace", "gaussian"):
            session.execute(f"SET noise = {noise}")
            session.execute(f"SET contributions.rows = {ROWS}")
            for measure in MEASURES:
                found = measure_errors(session, measure, exact[measure], runs)
                figures = f"{found.error:>9.2f}{found.claimed:>16.2f}{found.covered:>11.1f}"
                print(f"{noise:<10}{measure:<46}{figures}", flush=True)
        for each in sessions.values():
            each.dataset.close()


if __name__ == "__main__":
    main()
