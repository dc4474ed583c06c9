"""CPU of a private query over the raw query in DuckDB, measured in one run, interleaved, medians.

    python -m benchmarks.overhead              1 M and 5 M rows
    python -m benchmarks.overhead --quick      1 M rows only
    python -m benchmarks.overhead --sql        and the SQL that the engine runs

`engine` is the SQL of the release on the engine, over the raw query on the same engine. `session` is all of
`Session.execute` over the raw query: compile, charge, run, noise, store, post-process; each round asks for a little
more epsilon, so that no stored release serves. Peak memory is that of a process of its own, which opens the
dataset and runs one query.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.workload import EVENT_REGION_NAMES, SEGMENTS, write_events
from dpsql.compiler.compile import compile_query
from dpsql.session.dataset.dataset import Dataset, open_dataset
from dpsql.session.session import Session

SIZES = (1_000_000, 5_000_000)
ROUNDS = 7

HEAD = """
dpsql: 1
engine: duckdb:///events.duckdb
ledger: sqlite:///{name}.ledger
privacy:
  unit: {unit}
  budget: {{epsilon: 100000, delta: 0.5}}
  query: {{epsilon: 1, delta: 1e-6}}
  contributions: {{rows: 100, groups: 50}}
tables:
"""

EVENTS = """
  events:
    unit: {unit}{unique}
    columns:
      event_id: {{type: bigint}}
      user_id: {{type: bigint}}
      region: {{type: text, max_length: 20{values}}}
      category: {{type: bigint}}
      amount: {{type: double, bounds: [0, 100]}}
"""

USERS = """
  users:
    unit: user_id
    unique: [user_id]
    columns:
      user_id: {{type: bigint}}
      segment: {{type: text, values: [{segments}]}}
      birth_year: {{type: integer, bounds: [1930, 2030]}}
"""


@dataclass(frozen=True)
class Case:
    title: str
    schema: str  # "row", "unique", "users", or "unknown": users, with regions that are not declared
    sql: str
    limit: float | None
    raw: str | None = None  # where the question differs from the raw query

    @property
    def raw_sql(self) -> str:
        return self.raw or self.sql


GROUPED = "SELECT region, COUNT(*), SUM(amount), AVG(amount) FROM events GROUP BY region"

CASES = (
    Case("row unit, COUNT, SUM, AVG by region", "row", GROUPED, 3),
    Case("unique unit, COUNT, SUM, AVG by region", "unique", GROUPED, 3),
    Case("row unit, bare SUM", "row", "SELECT SUM(amount) FROM events", 6),
    Case("per user, COUNT, SUM, AVG by region", "users", GROUPED, 15),
    Case("per user, bare COUNT", "users", "SELECT COUNT(*) FROM events", None),
    Case("per user, bare SUM", "users", "SELECT SUM(amount) FROM events", None),
    Case("per user, COUNT, SUM, AVG by region, selected", "unknown", GROUPED, 40),
    Case(
        "per user, COUNT by category, selected", "users", "SELECT category, COUNT(*) FROM events GROUP BY category", 40
    ),
    Case(
        "per user, COUNT, SUM by category, selected",
        "users",
        "SELECT category, COUNT(*), SUM(amount) FROM events GROUP BY category",
        40,
    ),
    Case("distinct users by region", "users", "SELECT region, COUNT(DISTINCT user_id) FROM events GROUP BY region", 15),
    Case(
        "join, COUNT, SUM by segment",
        "users",
        "SELECT u.segment, COUNT(*), SUM(e.amount) FROM users u JOIN events e ON u.user_id = e.user_id "
        "GROUP BY u.segment",
        15,
    ),
)


@dataclass(frozen=True)
class Measured:
    raw: float  # seconds of CPU
    engine: float
    session: float
    plain_memory: int  # bytes
    memory: int


def write_dataset(folder: Path, rows: int) -> None:
    write_events(folder / "events.duckdb", rows)
    regions, per_user = f", values: [{', '.join(EVENT_REGION_NAMES)}]", "{user_id: users.user_id}"
    users = USERS.format(segments=", ".join(SEGMENTS))
    schemas = {
        "row": ("row", EVENTS.format(unit="row", unique="", values=regions)),
        "unique": (
            "events.event_id",
            EVENTS.format(unit="event_id", unique="\n    unique: [event_id]", values=regions),
        ),
        "users": ("users.user_id", EVENTS.format(unit=per_user, unique="", values=regions) + users),
        "unknown": ("users.user_id", EVENTS.format(unit=per_user, unique="", values="") + users),
    }
    for name, (unit, tables) in schemas.items():
        text = HEAD.format(name=name, unit=unit) + tables
        (folder / f"{name}.yaml").write_text(text)


# --- one case --------------------------------------------------------------------------------------------------------


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(case: Case, session: Session, folder: Path) -> Measured:
    dataset = session.dataset
    (step,) = compile_query(case.sql, dataset.resolved, session.settings.statement).steps
    tasks: dict[str, Callable[[int], object]] = {
        "raw": lambda _: dataset.engine.execute_public(case.raw_sql, {}),
        "engine": lambda _: dataset.engine.execute(step.sql, len(step.keys), {}),
        "session": lambda number: _ask(session, case.sql, number),
    }
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for number in range(ROUNDS + 1):
        for name, work in tasks.items():  # interleaved, so that a busy machine slows all of them
            spent = seconds(lambda work=work, number=number: work(number))  # type: ignore[misc]
            if number:  # the first round warms up
                times[name].append(spent)
    middle = {name: statistics.median(values) for name, values in times.items()}
    place = str(CASES.index(case))
    plain, private = (_memory(folder, place, which) for which in ("raw", "private"))
    return Measured(middle["raw"], middle["engine"], middle["session"], plain, private)


def _ask(session: Session, sql: str, number: int) -> object:
    session.execute(f"SET epsilon = {1 + number / 1000}")
    return session.execute(sql)


def _memory(folder: Path, place: str, which: str) -> int:
    command = [sys.executable, "-m", "benchmarks.overhead", "--peak", str(folder), place, which]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_peak(folder: Path, place: int, which: str) -> None:
    """Runs in a process of its own."""
    case = CASES[place]
    dataset = open_dataset(folder / f"{case.schema}.yaml")
    if which == "raw":
        dataset.engine.execute_public(case.raw_sql, {})
    else:
        session = Session(dataset)
        (step,) = compile_query(case.sql, dataset.resolved, session.settings.statement).steps
        dataset.engine.execute(step.sql, len(step.keys), {})
    print(peak())
    dataset.close()


def peak() -> int:
    """Where Linux tells it, the peak of this program alone: `ru_maxrss` may be that of the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


# --- the table -------------------------------------------------------------------------------------------------------


def print_table(rows: int, show_sql: bool) -> bool:
    print(f"\n{rows:,} events; CPU of the raw query in ms, then ratios to it; peak memory in MB; medians of {ROUNDS}")
    heads = ("raw ms", "engine", "session", "limit", "raw MB", "private MB")
    print(f"{'query':<46}" + "".join(f"{head:>11}" for head in heads))
    met = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_dataset(folder, rows)
        sessions = {schema: Session(_open(folder, schema)) for schema in ("row", "unique", "users", "unknown")}
        for case in CASES:
            found = measure(case, sessions[case.schema], folder)
            ratio = found.engine / found.raw
            missed = case.limit is not None and ratio > case.limit
            met = met and not missed
            limit = "" if case.limit is None else f"{case.limit:g}"
            cells = [f"{1000 * found.raw:.1f}", f"{ratio:.1f}", f"{found.session / found.raw:.1f}", limit]
            cells += [f"{found.plain_memory / 1e6:.0f}", f"{found.memory / 1e6:.0f}"]
            line = f"{case.title:<46}" + "".join(f"{cell:>11}" for cell in cells)
            print(line + (" MISSED" if missed else ""), flush=True)
            if show_sql:
                (step,) = sessions[case.schema].explain(case.sql).releases
                print(step.sql + "\n")
        for session in sessions.values():
            session.dataset.close()
    return met


def _open(folder: Path, schema: str) -> Dataset:
    return open_dataset(folder / f"{schema}.yaml")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1 M rows only")
    parser.add_argument("--sql", action="store_true", help="print the SQL that the engine runs")
    parser.add_argument("--peak", nargs=3, metavar=("FOLDER", "CASE", "WHICH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        folder, place, which = options.peak
        print_peak(Path(folder), int(place), which)
        return
    met = [print_table(rows, options.sql) for rows in (SIZES[:1] if options.quick else SIZES)]
    print(f"\nall limits: {'met' if all(met) else 'MISSED'}")


if __name__ == "__main__":
    main()
