"""CPU of a first question whose norms are chosen, over that of the same question with declared contributions.

    python -m benchmarks.overhead_norms              1 M and 5 M rows
    python -m benchmarks.overhead_norms --quick      1 M rows only

One run, interleaved, medians. The declared schema has `contributions` and bounds; the automatic one neither.
`session` is all of `Session.execute`, histograms included, each round with a little more epsilon, so that nothing is
stored. `histogram` and `question` are the SQL of the two steps alone, over the SQL of the declared one.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.draws import Drawing
from benchmarks.overhead import seconds
from benchmarks.workload import EVENT_REGION_NAMES, write_events
from dpsql.compiler.compile import compile_query
from dpsql.compiler.compiled import Compiled
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session

SIZES = (1_000_000, 5_000_000)
ROUNDS = 5
AIM = 1.6

MEASURES = {
    "COUNT": "COUNT(*)",
    "SUM": "SUM(amount)",
    "AVG": "AVG(amount)",
    "COUNT, SUM, AVG": "COUNT(*), SUM(amount), AVG(amount)",
}

SCHEMA = """
dpsql: 1
engine: duckdb:///events.duckdb
ledger: sqlite:///{name}.ledger
privacy:
  unit: events.user_id
  budget: {{epsilon: 100000, delta: 0.5}}
  query: {{epsilon: 1, delta: 1e-6}}{contributions}
tables:
  events:
    unit: user_id
    columns:
      event_id: {{type: bigint}}
      user_id: {{type: bigint}}
      region: {{type: text, max_length: 20, values: [{regions}]}}
      category: {{type: bigint}}
      amount: {{type: double{bounds}}}
"""

DECLARED = {"contributions": "\n  contributions: {rows: 100, groups: 50}", "bounds": ", bounds: [0, 100]"}
AUTOMATIC = {"contributions": "", "bounds": ""}


def open_both(folder: Path, number: int) -> tuple[Session, Session]:
    """With ledgers of their own, so that no histogram of another question serves."""
    sessions = []
    for name, declared in ((f"declared{number}", DECLARED), (f"automatic{number}", AUTOMATIC)):
        path = folder / f"{name}.yaml"
        path.write_text(SCHEMA.format(name=name, regions=", ".join(EVENT_REGION_NAMES), **declared))
        sessions.append(Session(open_dataset(path)))
    return sessions[0], sessions[1]


def measure(sql: str, declared: Session, automatic: Session) -> dict[str, float]:
    """Seconds of CPU by task."""
    drawing = Drawing(automatic, sql)
    drawing.draw()
    histograms, question = drawing.statements()
    plain = compile_query(sql, declared.dataset.resolved, declared.settings.statement)
    tasks: dict[str, Callable[[int], object]] = {
        "declared": lambda number: _ask(declared, sql, number),
        "automatic": lambda number: _ask(automatic, sql, number),
        "plain": lambda _: _run(declared, plain),
        "histogram": lambda _: _run(automatic, histograms),
        "question": lambda _: _run(automatic, question),
    }
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for number in range(ROUNDS + 1):
        for name, work in tasks.items():  # interleaved, so that a busy machine slows all of them
            spent = seconds(lambda work=work, number=number: work(number))  # type: ignore[misc]
            if number:  # the first round warms up
                times[name].append(spent)
    return {name: statistics.median(values) for name, values in times.items()}


def _ask(session: Session, sql: str, number: int) -> object:
    session.execute(f"SET epsilon = {1 + number / 1000}")
    return session.execute(sql)


def _run(session: Session, compiled: Compiled) -> None:
    for step in compiled.steps:
        session.dataset.engine.execute(step.sql, len(step.keys), {})


def print_table(rows: int) -> bool:
    print(f"\n{rows:,} events; CPU of the declared question in ms, then ratios; medians of {ROUNDS}")
    heads = ("declared ms", "session", "aim", "histogram", "question")
    print(f"{'noise':<10}{'asked by region':<18}" + "".join(f"{head:>12}" for head in heads))
    met = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_events(folder / "events.duckdb", rows)
        asked = [(noise, title) for noise in ("gaussian", "laplace") for title in MEASURES]
        for number, (noise, title) in enumerate(asked):
            sessions = open_both(folder, number)
            for session in sessions:
                session.execute(f"SET noise = {noise}")
            found = measure(f"SELECT region, {MEASURES[title]} FROM events GROUP BY region", *sessions)
            ratio = found["automatic"] / found["declared"]
            met &= ratio <= AIM
            cells = [f"{1000 * found['declared']:.0f}", f"{ratio:.2f}", f"{AIM:g}"]
            cells += [f"{found[step] / found['plain']:.2f}" for step in ("histogram", "question")]
            line = f"{noise:<10}{title:<18}" + "".join(f"{cell:>12}" for cell in cells)
            print(line + ("" if ratio <= AIM else "  MISSED"), flush=True)
            for session in sessions:
                session.dataset.close()
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1 M rows only")
    options = parser.parse_args()
    met = [print_table(rows) for rows in (SIZES[:1] if options.quick else SIZES)]
    print(f"aim: {'met' if all(met) else 'MISSED'}")


if __name__ == "__main__":
    main()
