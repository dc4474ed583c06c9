"""CPU and memory of what is more than sums: models, synthetic tables, blocks and posteriors, over the plain statistic.

    python -m benchmarks.studies              200,000 and 1 M people
    python -m benchmarks.studies --quick      200,000 people only

`plain` is the statistic without privacy, by the tool that one would take for it: scikit-learn's models on rows fetched
from DuckDB, or DuckDB's own aggregate. `dpsql` is all of `Session.execute`: compile, charge, run, noise, store, show.
Each is one run in a process of its own; CPU is that of all its threads, without imports and
opening the data, and memory its peak.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from benchmarks.overhead import peak
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session

SIZES = (200_000, 1_000_000)

SCHEMA = """
dpsql: 1
engine: duckdb:///people.duckdb
ledger: sqlite:///people.ledger
privacy:
  unit: people.id
  budget: {epsilon: 100000, delta: 0.5}
  query: {epsilon: 1, delta: 1e-6}
  contributions: {rows: 1, groups: 1}
tables:
  people:
    unit: id
    unique: [id]
    columns:
      id: {type: bigint}
      age: {type: integer, bounds: [0, 99]}
      income: {type: double, bounds: [0, 1000], grid: 0.01}
      region: {type: integer, bounds: [0, 19]}
      job: {type: text, values: [a, b, c, d, e, f]}
      insured: {type: boolean}
      group_id: {type: integer, bounds: [0, 4999]}
"""

MAKE = """
CREATE TABLE people AS SELECT id, age, income, region, chr(97 + (id * 7919 % 6)::INTEGER) AS job,
    random() < 1 / (1 + exp(1 - age / 40.0 - income / 900)) AS insured, (id % 5000)::INTEGER AS group_id
FROM (SELECT i AS id, (random() * 99)::INTEGER AS age, least(1000, -ln(random() + 1e-9) * 150) AS income,
             (random() * 19)::INTEGER AS region FROM range({rows}) t(i))
"""

NUMBERS = "SELECT insured::INTEGER, age, income, region FROM people"
WIDE = "age, income, region, job"
EIGHT = f"{WIDE}, insured, group_id, age + 1 AS next, income / 2 AS half"


Work = Callable[[], object]


@dataclass(frozen=True)
class Case:
    title: str
    sql: str
    plain: Callable[[duckdb.DuckDBPyConnection], Work]
    before: str | None = None  # a statement that is not measured


def by_sklearn(kind: str) -> Callable[[duckdb.DuckDBPyConnection], Work]:
    def ready(connection: duckdb.DuckDBPyConnection) -> Work:
        from sklearn import linear_model, preprocessing

        model: Any = linear_model.LogisticRegression() if kind == "logistic" else linear_model.LinearRegression()

        def fit() -> object:
            label, *columns = connection.execute(NUMBERS).fetchnumpy().values()
            features = np.stack([column.astype(float) for column in columns], axis=1)
            return model.fit(preprocessing.MinMaxScaler().fit_transform(features), label)

        return fit

    return ready


def by_duckdb(sql: str) -> Callable[[duckdb.DuckDBPyConnection], Work]:
    return lambda connection: lambda: connection.execute(sql).fetchall()


CASES = (
    Case(
        "logistic model, 4 features, objective",
        f"CREATE MODEL m AS LOGISTIC REGRESSION ON insured USING {WIDE} FROM people WITH (method = 'objective')",
        by_sklearn("logistic"),
    ),
    Case(
        "logistic model, 4 features, output",
        f"CREATE MODEL m AS LOGISTIC REGRESSION ON insured USING {WIDE} FROM people WITH (method = 'output')",
        by_sklearn("logistic"),
    ),
    Case(
        "linear model, 4 features",
        "CREATE MODEL m AS LINEAR REGRESSION ON income USING age, region, job, insured FROM people",
        by_sklearn("linear"),
    ),
    Case(
        "synthetic table, 4 columns, mwem",
        "CREATE SYNTHETIC TABLE s AS SELECT age, region, job, insured FROM people WITH (method = 'mwem', bins = 10)",
        by_duckdb("SELECT age // 10, region, job, insured, COUNT(*) FROM people GROUP BY ALL"),
    ),
    Case(
        "synthetic table, 5 columns, marginals",
        f"CREATE SYNTHETIC TABLE s AS SELECT {WIDE}, insured FROM people WITH (method = 'marginals')",
        by_duckdb("SELECT age, income::INTEGER, region, job, insured, COUNT(*) FROM people GROUP BY ALL"),
    ),
    Case(
        "reading a synthetic table, 100,000 x 8",
        "SELECT * FROM s",
        by_duckdb(f"SELECT {EIGHT} FROM people LIMIT 100000"),
        f"CREATE SYNTHETIC TABLE s AS SELECT {EIGHT} FROM people WITH (method = 'marginals')",
    ),
    Case(
        "counting a synthetic table, 100,000 x 8",
        "SELECT COUNT(*), AVG(income) FROM s",
        by_duckdb("SELECT COUNT(*), AVG(income) FROM (SELECT income FROM people LIMIT 100000)"),
        f"CREATE SYNTHETIC TABLE s AS SELECT {EIGHT} FROM people WITH (method = 'marginals')",
    ),
    Case(
        "BLOCKWISE(mad), 100 blocks, by job",
        "SELECT job, BLOCKWISE(mad(income), 0, 500, blocks => 100) FROM people GROUP BY job",
        by_duckdb("SELECT job, mad(income) FROM people GROUP BY job"),
    ),
    Case(
        "BETA_POSTERIOR, 5,000 groups",
        "SELECT group_id, BETA_POSTERIOR(insured) FROM people GROUP BY group_id",
        by_duckdb("SELECT group_id, COUNT(*), SUM(insured::INTEGER) FROM people GROUP BY group_id"),
    ),
    Case(
        "NORMAL_POSTERIOR, 5,000 groups",
        "SELECT group_id, NORMAL_POSTERIOR(income) FROM people GROUP BY group_id",
        by_duckdb("SELECT group_id, COUNT(*), AVG(income), VAR_SAMP(income) FROM people GROUP BY group_id"),
    ),
    Case(
        "PRIVATE_TOP_K(region, 1, 3), by job",
        "SELECT job, PRIVATE_TOP_K(region, 1, 3) FROM people GROUP BY job",
        by_duckdb("SELECT job, region, COUNT(*) FROM people GROUP BY job, region"),
    ),
    Case(
        "MEDIAN by smooth sensitivity",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (mechanism = 'smooth') MEDIAN(income) FROM people",
        by_duckdb("SELECT MEDIAN(income) FROM people"),
    ),
)


def print_one(folder: Path, place: int, which: str) -> None:
    """Seconds of CPU and bytes; in a process of its own."""
    case = CASES[place]
    if which == "plain":
        work = case.plain(duckdb.connect(str(folder / "people.duckdb"), read_only=True))
    else:
        session = Session(open_dataset(folder / "people.yaml"))
        if case.before is not None:
            session.execute(case.before)
        work = partial(session.execute, case.sql)
    start = time.process_time()
    work()
    print(time.process_time() - start, peak())


def measured(folder: Path, place: int, which: str) -> tuple[float, float]:
    command = [sys.executable, "-m", "benchmarks.studies", "--one", str(folder), str(place), which]
    seconds, memory = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), float(memory)


def print_table(rows: int) -> None:
    print(f"\n{rows:,} people; CPU in seconds and peak memory in MB")
    heads = ("plain s", "dpsql s", "ratio", "plain MB", "dpsql MB")
    print(f"{'':<40}" + "".join(f"{head:>10}" for head in heads))
    for place, case in enumerate(CASES):
        with tempfile.TemporaryDirectory() as name:  # a ledger of its own
            folder = Path(name)
            with duckdb.connect(str(folder / "people.duckdb")) as connection:
                connection.execute("SELECT setseed(0.5)")
                connection.execute(MAKE.format(rows=rows))
            (folder / "people.yaml").write_text(SCHEMA)
            (plain, plain_memory), (ours, memory) = (measured(folder, place, which) for which in ("plain", "dpsql"))
        cells = [f"{plain:.2f}", f"{ours:.2f}", f"{ours / plain:.1f}"]
        cells += [f"{one / 1e6:.0f}" for one in (plain_memory, memory)]
        print(f"{case.title:<40}" + "".join(f"{cell:>10}" for cell in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="200,000 people only")
    parser.add_argument("--one", nargs=3, metavar=("FOLDER", "CASE", "WHICH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        folder, place, which = options.one
        print_one(Path(folder), int(place), which)
        return
    for rows in SIZES[:1] if options.quick else SIZES:
        print_table(rows)


if __name__ == "__main__":
    main()
