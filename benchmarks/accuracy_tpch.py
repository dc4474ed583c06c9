"""Errors of six join queries over TPC-H's tables, nothing declared but types and keys, beside those published for R2T.

    pip install tpchgen-cli
    python -m benchmarks.accuracy_tpch               scale factor 1, as R2T's figures; 100 runs of noise
    python -m benchmarks.accuracy_tpch --quick       20 runs
    python -m benchmarks.accuracy_tpch --scale 0.1   other sizes; errors there have no figures beside them
    python -m benchmarks.accuracy_tpch --data DIR    keeps the generated tables in DIR, and finds them there again

R2T ("race to the top": Dong, Fang, Yi, Tao, Machanavajjhala, SIGMOD 2022) answers counts and sums over joins without a
bound on what one unit adds, as automatic norms do. Its figures are those of the authors' result files: queries in their
form (TPC-H's joins, without its grouping and most conditions), epsilon 0.8, pure differential privacy, scale factor 1,
a unit that may add up to a million, means of 10 runs without the two best and the two worst. Of its ten queries these
are the six that protect one relation: whoever leaves takes all rows that refer to him along.

The noise that is compared is Laplace noise, which is as pure; what Gaussian noise gives at delta 1e-9 is printed as
well. Each run draws fresh noise for histograms and answer (`draws.py`), and nothing is charged. `trimmed` is the mean
without the best and the worst fifth, as R2T's; `worst` is that of all runs.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt

from benchmarks.draws import Drawing
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session

Floats = npt.NDArray[np.float64]

EPSILON = "0.8"
RUNS, QUICK_RUNS = 100, 20
TRIMMED = 0.2
"""On either side, as two of ten."""

TABLES = {
    "customer": "c_custkey, c_nationkey",
    "orders": "o_orderkey, o_custkey, o_orderdate",
    "lineitem": "l_orderkey, l_partkey, l_suppkey, l_quantity, l_shipdate",
    "nation": "n_nationkey",
    "supplier": "s_suppkey, s_nationkey",
    "partsupp": "ps_partkey, ps_suppkey, ps_availqty, ps_supplycost",
}

SCHEMA = """
dpsql: 1
engine: duckdb:///tpch.duckdb
ledger: sqlite:///{unit}.ledger
privacy:
  unit: {key}
  budget: {{epsilon: 100000, delta: 0.5}}
  query: {{epsilon: {epsilon}, delta: 1e-9}}
tables:
"""

PUBLIC_TABLES = """\
  nation:
    public: true
    columns: {n_nationkey: {type: integer}}
"""

OWNED_TABLES = {
    "customer": """\
  customer:
    unit: c_custkey
    unique: [[c_custkey]]
    columns: {c_custkey: {type: bigint}, c_nationkey: {type: integer}}
  orders:
    unit: {o_custkey: customer.c_custkey}
    unique: [[o_orderkey]]
    columns: {o_orderkey: {type: bigint}, o_custkey: {type: bigint}, o_orderdate: {type: date}}
  lineitem:
    unit: {l_orderkey: orders.o_orderkey}
    columns: {l_orderkey: {type: bigint}, l_quantity: {type: "decimal(15,2)"}, l_shipdate: {type: date}}
""",
    "orders": """\
  orders:
    unit: o_orderkey
    unique: [[o_orderkey]]
    columns: {o_orderkey: {type: bigint}}
  lineitem:
    unit: {l_orderkey: orders.o_orderkey}
    columns: {l_orderkey: {type: bigint}}
""",
    "supplier": """\
  supplier:
    unit: s_suppkey
    unique: [[s_suppkey]]
    columns: {s_suppkey: {type: bigint}, s_nationkey: {type: integer}}
  partsupp:
    unit: {ps_suppkey: supplier.s_suppkey}
    unique: [[ps_suppkey, ps_partkey]]
    columns:
      ps_partkey: {type: bigint}
      ps_suppkey: {type: bigint}
      ps_availqty: {type: integer}
      ps_supplycost: {type: "decimal(15,2)"}
  lineitem:
    unit: {l_suppkey: supplier.s_suppkey}
    columns: {l_partkey: {type: bigint}, l_suppkey: {type: bigint}}
""",
}

KEYS = {"customer": "customer.c_custkey", "orders": "orders.o_orderkey", "supplier": "supplier.s_suppkey"}


@dataclass(frozen=True)
class Query:
    """`published` is R2T's error at this epsilon and scale factor 1, in percent."""

    name: str
    unit: str
    sql: str
    published: float


QUERIES = (
    Query(
        "Q3",
        "customer",
        "SELECT COUNT(*) FROM customer JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey "
        "WHERE o_orderdate < DATE '1997-01-01' AND l_shipdate > DATE '1994-01-01'",
        0.254,
    ),
    Query(
        "Q10",
        "customer",
        "SELECT COUNT(*) FROM customer JOIN orders ON o_custkey = c_custkey JOIN nation ON n_nationkey = c_nationkey",
        0.174,
    ),
    Query(
        "Q11",
        "supplier",
        "SELECT SUM(ps_supplycost * ps_availqty / 1000000.0) FROM partsupp JOIN supplier ON s_suppkey = ps_suppkey "
        "JOIN nation ON n_nationkey = s_nationkey",
        1.82,
    ),
    Query("Q12", "orders", "SELECT COUNT(*) FROM orders JOIN lineitem ON l_orderkey = o_orderkey", 0.023),
    Query(
        "Q18",
        "customer",
        "SELECT SUM(l_quantity) FROM customer JOIN orders ON o_custkey = c_custkey "
        "JOIN lineitem ON l_orderkey = o_orderkey",
        0.132,
    ),
    Query(
        "Q20",
        "supplier",
        "SELECT COUNT(*) FROM supplier JOIN partsupp ON ps_suppkey = s_suppkey "
        "JOIN lineitem ON l_suppkey = ps_suppkey AND l_partkey = ps_partkey",
        0.579,
    ),
)


@dataclass(frozen=True)
class Errors:
    """Of one query and kind of noise, in percent of the truth, one for each run that was answered."""

    errors: Floats
    refused: int
    norm: float

    @property
    def trimmed(self) -> float:
        left_out = round(len(self.errors) * TRIMMED)
        return float(np.sort(self.errors)[left_out : len(self.errors) - left_out].mean())


def generate_tables(folder: Path, scale: str) -> None:
    """The database with the columns that queries read; what the generator wrote is not kept."""
    program = shutil.which("tpchgen-cli") or shutil.which("tpchgen-cli", path=Path(sys.executable).parent)
    if program is None:
        raise SystemExit("TPC-H's tables are made by tpchgen-cli, which is not installed: pip install tpchgen-cli")
    with tempfile.TemporaryDirectory(dir=folder) as made:
        options = ["parquet", "-s", scale, "--tables", ",".join(TABLES), "--output-dir", made]
        subprocess.run([program, *options], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with duckdb.connect(str(folder / "tpch.duckdb")) as connection:
            for table, columns in TABLES.items():
                connection.execute(f"CREATE TABLE {table} AS SELECT {columns} FROM '{made}/{table}.parquet'")


def open_session(folder: Path, unit: str) -> Session:
    path = folder / f"{unit}.yaml"
    text = SCHEMA.format(unit=unit, key=KEYS[unit], epsilon=EPSILON)
    path.write_text(text + PUBLIC_TABLES + OWNED_TABLES[unit], encoding="utf-8")
    (folder / f"{unit}.ledger").unlink(missing_ok=True)
    return Session(open_dataset(path))


def measure(session: Session, sql: str, noise: str, runs: int) -> tuple[Errors, float]:
    """The errors, and the truth."""
    session.execute(f"SET noise = {noise}")
    truth = float(session.dataset.engine.execute_public(sql, {})[0][0])
    drawing = Drawing(session, sql)
    draws = [draw for draw in (drawing.draw() for _ in range(runs)) if draw is not None]
    answers = np.array([float(draw.answer.rows[0][0]) for draw in draws])
    norms = [float(norm.norm) for draw in draws for norm in draw.norms.values()]
    norm = float(np.median(norms)) if norms else float("nan")
    return Errors(100 * np.abs(answers / truth - 1), runs - len(draws), norm), truth


def print_table(sessions: Mapping[str, Session], scale: str, runs: int) -> bool:
    print(f"\nscale factor {scale}, epsilon {EPSILON}, nothing declared: errors in %, {runs} runs")
    heads = ("R2T", "trimmed", "median", "worst", "gaussian", "refused", "norm")
    print(f"{'':<5}{'private':<10}{'truth':>13}" + "".join(f"{head:>10}" for head in heads))
    met = True
    for query in QUERIES:
        session = sessions[query.unit]
        found, truth = measure(session, query.sql, "laplace", runs)
        gaussian, _ = measure(session, query.sql, "gaussian", runs)
        missed = scale == "1" and not found.trimmed <= query.published
        met &= not missed
        figures = (query.published, found.trimmed, np.median(found.errors), found.errors.max(), gaussian.trimmed)
        cells = "".join(f"{figure:>10.4f}" for figure in figures)
        line = f"{query.name:<5}{query.unit:<10}{truth:>13,.0f}{cells}{found.refused:>10}{found.norm:>10,.4g}"
        print(line + ("  MISSED" if missed else ""), flush=True)
    print(f"aims: {'met' if met else 'MISSED'}")
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RUNS} runs of noise, not {RUNS}")
    parser.add_argument("--scale", default="1", help="the scale factor; R2T's figures are those of 1")
    parser.add_argument("--data", type=Path, help="a folder for the tables; without one they are made anew")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if options.data is None else options.data / f"scale-{options.scale}"
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "tpch.duckdb").exists():
            generate_tables(folder, options.scale)
        sessions = {unit: open_session(folder, unit) for unit in OWNED_TABLES}
        print_table(sessions, options.scale, QUICK_RUNS if options.quick else RUNS)
        for session in sessions.values():
            session.dataset.close()


if __name__ == "__main__":
    main()
