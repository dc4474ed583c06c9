"""Planning time per query, in milliseconds of CPU: from text to the SQL that runs, warm and uncached.

    python -m benchmarks.compile               one table
    python -m benchmarks.compile --profile     and where the time of each query goes

`prepare` is what a new session takes to describe the query: compile, and the check of post-processing in the sandbox.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from dpsql.compiler import compile as compiler
from dpsql.compiler import planners
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session

REPEATS, ROUNDS = 20, 9
LIMIT = 5.0
"""Milliseconds for the simple count."""

STAGES = {
    "parse": (compiler, "parse_query_with_options"),
    "split": (compiler, "split_query"),
    "rewrite": (planners, "rewrite_plan"),
    "hash": (planners, "hash_plan"),
    "shares": (compiler, "split_loss"),
    "calibrate": (compiler, "calibrate"),
    "render": (compiler, "render_release"),
    "post": (compiler, "render_postprocessing"),
}
"""What a column of the table measures: the function, by the module that calls it."""

SCHEMA = """
dpsql: 1
engine: duckdb:///clinic.duckdb
ledger: sqlite:///clinic.ledger
privacy:
  unit: patients.patient_id
  budget: {epsilon: 1000, delta: 0.01}
  query: {epsilon: 1, delta: 1e-6}
  contributions: {rows: 20, groups: 10}
tables:
  patients:
    unit: patient_id
    unique: [patient_id]
    columns:
      patient_id: {type: bigint}
      birth_year: {type: integer, bounds: [1920, 2026]}
      sex: {type: text, values: [f, m, x]}
  visits:
    unit: {patient_id: patients.patient_id}
    columns:
      patient_id: {type: bigint}
      ward: {type: text, max_length: 40}
      kind: {type: text, values: [planned, urgent, control]}
      cost: {type: double, bounds: [0, 5000], grid: 0.5}
      nights: {type: integer, bounds: [0, 14]}
      at: {type: timestamp, bounds: [2023-01-01, 2027-01-01]}
"""

TABLES = """
CREATE TABLE patients (patient_id BIGINT, birth_year INTEGER, sex VARCHAR);
CREATE TABLE visits (patient_id BIGINT, ward VARCHAR, kind VARCHAR, cost DOUBLE, nights INTEGER, "at" TIMESTAMP);
"""

QUERIES = {
    "count": "SELECT COUNT(*) FROM visits",
    "count, sum, avg by public key": "SELECT kind, COUNT(*), SUM(cost), AVG(cost) FROM visits GROUP BY kind",
    "with selection": "SELECT ward, COUNT(*), AVG(cost) FROM visits WHERE nights > 0 GROUP BY ward",
    "join": (
        "SELECT p.sex, COUNT(*), SUM(v.cost) FROM patients p JOIN visits v ON p.patient_id = v.patient_id "
        "WHERE p.birth_year < 1960 GROUP BY p.sex"
    ),
    "nested": (
        "SELECT MAX(n) FROM (SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind HAVING COUNT(*) > 10) AS counted"
    ),
    "dashboard": (
        "SELECT DATE_TRUNC('month', at) AS __timestamp, kind AS kind, COUNT(*) AS visits, SUM(cost) AS \"SUM(cost)\", "
        'AVG(nights) AS "AVG(nights)" FROM (SELECT * FROM visits) AS virtual_table '
        "WHERE at >= TIMESTAMP '2024-01-01 00:00:00' AND at < TIMESTAMP '2025-01-01 00:00:00' "
        "AND kind IN ('planned', 'urgent') GROUP BY DATE_TRUNC('month', at), kind ORDER BY visits DESC LIMIT 1000"
    ),
}


@contextmanager
def timed_stages() -> Iterator[dict[str, float]]:
    """The stages as `compile_query` calls them, each with a clock around it; rendering is not inside another stage."""
    spent = dict.fromkeys(STAGES, 0.0)
    originals = {stage: getattr(module, name) for stage, (module, name) in STAGES.items()}

    def clocked(stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            start = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                spent[stage] += time.thread_time() - start

        return run

    try:
        for stage, (module, name) in STAGES.items():
            setattr(module, name, clocked(stage, originals[stage]))
        yield spent
    finally:
        for stage, (module, name) in STAGES.items():
            setattr(module, name, originals[stage])


def milliseconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    for _ in range(REPEATS):
        work()
    return 1000 * (time.process_time() - start) / REPEATS


def print_table(session: Session) -> bool:
    settings, resolved = session.settings.statement, session.dataset.resolved
    print(f"{'query':<32}{'compile':>9}" + "".join(f"{stage:>11}" for stage in STAGES) + f"{'prepare':>11}")
    simple = 0.0
    for title, sql in QUERIES.items():

        def compile_it(sql: str = sql) -> compiler.Compiled:
            return compiler.compile_query(sql, resolved, settings)

        compiled = compile_it()
        whole, prepare = [], []
        for _ in range(ROUNDS):
            whole.append(milliseconds(compile_it))
            prepare.append(milliseconds(lambda: Session(session.dataset).describe(sql)))  # noqa: B023
        with timed_stages() as spent:
            for _ in range(REPEATS * ROUNDS):
                compile_it()
        stages = "".join(f"{1000 * spent[stage] / REPEATS / ROUNDS:>11.2f}" for stage in STAGES)
        print(f"{title:<32}{statistics.median(whole):>9.2f}{stages}{statistics.median(prepare):>11.2f}", flush=True)
        assert compiled.steps
        simple = simple or statistics.median(whole)
    met = simple <= LIMIT
    print(f"a simple count takes {simple:.2f} ms, at most {LIMIT:g}: {'met' if met else 'MISSED'}")
    return met


def print_profiles(session: Session) -> None:
    for title, sql in QUERIES.items():
        profile = cProfile.Profile()
        profile.enable()
        for _ in range(REPEATS):
            compiler.compile_query(sql, session.dataset.resolved, session.settings.statement)
        profile.disable()
        print(f"\n{title}")
        pstats.Stats(profile).sort_stats("tottime").print_stats(15)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", action="store_true", help="print the functions that take the time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clinic.yaml"
        path.write_text(SCHEMA)
        with duckdb.connect(str(Path(folder) / "clinic.duckdb")) as connection:
            connection.execute(TABLES)
        session = Session(open_dataset(path))
        print_table(session)
        if options.profile:
            print_profiles(session)
        session.dataset.close()


if __name__ == "__main__":
    main()
