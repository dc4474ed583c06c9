"""Errors of COUNT, SUM and AVG by region where nobody declared how much a unit contributes, beside the best norm.

    python -m benchmarks.accuracy_norms              100,000, 10,000 and 1,000 users of the common workload
    python -m benchmarks.accuracy_norms --quick      20 runs of noise for each cell, not 200

The schema has types, the list of regions and `privacy.units`, and neither contributions nor bounds. Each run draws
fresh noise for a question's histograms and for its answers, as a session would that has nothing stored (`draws.py`);
nothing is charged. Error is the mean over regions of |answer - exact| / exact. `best` is the error of the norm that is
best with hindsight, with all of the question's epsilon for the answer: it reads the exact rows, and no private choice
can know it. `found` is how often enough units were seen for an answer; errors are of those runs.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.draws import Draw, Drawing
from benchmarks.workload import REGION_NAMES, REGIONS, USERS, Payments, payments, write_payments
from dpsql.privacy.loss import epsilon_to_rho
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session

Floats = npt.NDArray[np.float64]

MEASURES = {"COUNT": "COUNT(*)", "SUM": "SUM(amount)", "AVG": "AVG(amount)"}
EPSILON, DELTA = 1, Fraction(1, 10**6)
SIZES = {USERS: 1.3, 10_000: 1.5, 1_000: 2.0}
"""Users, and the aim for the ratio to the best norm."""

AIMS = {
    "laplace": {"COUNT": 0.31, "SUM": 0.33, "AVG": 0.6},
    "gaussian": {"COUNT": 0.85, "SUM": 0.88, "AVG": 1.3},
}
"""In percent, with all users."""

TOGETHER = {"laplace": 2.1, "gaussian": 1.6}
"""How many times the aim of a question of its own an error may be, where all three are asked together."""

RUNS, QUICK_RUNS, HINDSIGHT_RUNS = 200, 20, 400

SCHEMA = """
dpsql: 1
engine: duckdb:///payments.duckdb
ledger: sqlite:///automatic.ledger
privacy:
  unit: payments.user_id
  budget: {{epsilon: 100000, delta: 0.5}}
  query: {{epsilon: 1, delta: 1e-6}}
  units: {units}
tables:
  payments:
    unit: user_id
    columns:
      user_id: {{type: bigint}}
      region: {{type: text, max_length: 20, values: [{regions}]}}
      amount: {{type: double}}
"""


@dataclass(frozen=True)
class Found:
    """Of one question: the error of each measure in percent, the norms of its cells (medians), and how often it had an
    answer."""

    error: dict[str, float]
    norms: str
    answered: float


def first_users(data: Payments, users: int) -> Payments:
    kept = data.user < users
    return Payments(data.user[kept], data.region[kept], data.amount[kept])


def open_automatic(folder: Path, data: Payments, users: int) -> Session:
    folder.mkdir(exist_ok=True)
    write_payments(folder / "payments.duckdb", data)
    path = folder / "automatic.yaml"
    path.write_text(SCHEMA.format(units=users, regions=", ".join(REGION_NAMES)))
    return Session(open_dataset(path), opened_with={"empty_groups": "show"})  # every group counts


def exact_answers(data: Payments) -> dict[str, Floats]:
    count = np.bincount(data.region, minlength=REGIONS).astype(np.float64)
    total: Floats = np.bincount(data.region, weights=data.amount, minlength=REGIONS).astype(np.float64)
    return {"COUNT": count, "SUM": total, "AVG": total / np.maximum(count, 1)}


def measure(session: Session, noise: str, names: Sequence[str], exact: dict[str, Floats], runs: int) -> Found:
    session.execute(f"SET noise = {noise}")
    drawing = Drawing(session, f"SELECT region, {', '.join(MEASURES[n] for n in names)} FROM payments GROUP BY region")
    drawn = [drawing.draw() for _ in range(runs)]
    draws = [draw for draw in drawn if draw is not None]
    if not draws:
        return Found(dict.fromkeys(names, math.nan), "", 0.0)
    answers = np.stack([_by_region(draw, len(names)) for draw in draws])
    true = np.stack([exact[name] for name in names])
    each = 100 * np.abs(np.nan_to_num(answers / true - 1, nan=-1.0)).mean(axis=(0, 2))
    norms = [f"{np.median([float(draw.norms[cell].norm) for draw in draws]):,.4g}" for cell in draws[0].norms]
    return Found(dict(zip(names, each.tolist(), strict=True)), " ".join(norms), len(draws) / runs)


def _by_region(draw: Draw, measures: int) -> Floats:
    table = np.full((measures, REGIONS), np.nan)
    for region, *values in draw.answer.rows:
        place = REGION_NAMES.index(str(region))
        table[:, place] = [np.nan if value is None else float(value) for value in values]
    return table


# --- the best norm, with hindsight -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hindsight:
    """Each unit's sums by region, of both cells, and what it takes to find the norm that would have been best."""

    cells: dict[str, Floats]
    noise: str

    def error(self, name: str) -> float:
        """In percent, at the best norm; of AVG at the best two, which share a weight and an even part of the loss."""
        return self._mean_error() if name == "AVG" else self._sum_error(name)

    def _scale(self, cells: int) -> float:
        """Of noise for a norm of 1."""
        if self.noise == "laplace":
            return cells / EPSILON
        return math.sqrt(cells / (2 * float(epsilon_to_rho(Fraction(EPSILON), DELTA))))

    def _norms(self, name: str) -> Floats:
        sums = self.cells[name]
        norms: Floats = sums.sum(axis=1) if self.noise == "laplace" else np.sqrt((sums * sums).sum(axis=1))
        return norms

    def _sum_error(self, name: str) -> float:
        sums, norms = self.cells[name], self._norms(name)
        true = sums.sum(axis=0)
        unit_noise = self._draw((HINDSIGHT_RUNS, REGIONS))
        errors = []
        for norm in _candidates(norms, 8):
            answer = np.minimum(1, norm / np.maximum(norms, 1e-12)) @ sums + unit_noise * self._scale(1) * norm
            errors.append(np.abs(answer / true - 1).mean())
        return 100 * float(min(errors))

    def _mean_error(self) -> float:
        counts, sums = self.cells["COUNT"], self.cells["SUM"]
        count_norms, sum_norms = self._norms("COUNT"), self._norms("SUM")
        true = sums.sum(axis=0) / counts.sum(axis=0)
        unit_noise = self._draw((2, HINDSIGHT_RUNS, REGIONS)) * self._scale(2)
        errors = []
        for count_norm in _candidates(count_norms, 3):
            for sum_norm in _candidates(sum_norms, 3):
                weight = np.minimum(1, count_norm / np.maximum(count_norms, 1e-12))
                weight = np.minimum(weight, sum_norm / np.maximum(sum_norms, 1e-12))
                below = weight @ counts + unit_noise[0] * count_norm
                above = weight @ sums + unit_noise[1] * sum_norm
                with np.errstate(all="ignore"):
                    apart = np.where(below > 1, np.abs(above / below / true - 1), 1.0)
                errors.append(apart.mean())
        return 100 * float(min(errors))

    def _draw(self, shape: tuple[int, ...]) -> Floats:
        rng = np.random.default_rng(1)
        return rng.laplace(size=shape) if self.noise == "laplace" else rng.normal(size=shape)


def _candidates(norms: Floats, per_doubling: int) -> list[float]:
    low, high = np.log2(np.percentile(norms, 30)), np.log2(norms.max())
    return [float(2 ** (low + step / per_doubling)) for step in range(math.ceil((high - low) * per_doubling) + 1)]


def unit_sums(data: Payments, users: int) -> dict[str, Floats]:
    places, size = data.user * REGIONS + data.region, users * REGIONS
    count = np.bincount(places, minlength=size).astype(np.float64)
    total: Floats = np.bincount(places, weights=data.amount, minlength=size).astype(np.float64)
    return {"COUNT": count.reshape(users, REGIONS), "SUM": total.reshape(users, REGIONS)}


# --- the table -------------------------------------------------------------------------------------------------------


def print_tables(folder: Path, data: Payments, runs: int) -> bool:
    print(f"\nNothing declared but types, regions and the number of units: error in %, median norms; {runs} runs")
    heads = (f"{'error':>8}", f"{'best':>8}", f"{'ratio':>7}", f"{'aim':>6}", f"{'found':>7}  norms")
    print(f"{'users':>8} {'noise':<10}{'asked':<18}{''.join(heads)}")
    met = True
    for users, aim in SIZES.items():
        part = first_users(data, users)
        session = open_automatic(folder / str(users), part, users)
        exact, sums = exact_answers(part), unit_sums(part, users)
        for noise in AIMS:
            hindsight = Hindsight(sums, noise)
            for name in MEASURES:
                found, best = measure(session, noise, (name,), exact, runs), hindsight.error(name)
                met &= _print_line(users, noise, name, name, found, best, aim)
            found = measure(session, noise, tuple(MEASURES), exact, runs)
            for name in MEASURES:
                met &= _print_line(users, noise, f"{name} of all", name, found, None, None)
        session.dataset.close()
    print(f"aims: {'met' if met else 'MISSED'}")
    return met


def _print_line(
    users: int, noise: str, title: str, name: str, found: Found, best: float | None, ratio_aim: float | None
) -> bool:
    """Whether its aims are met: the ratio, and with all users the error."""
    error = found.error[name]
    aim = AIMS[noise][name] * (1.0 if best is not None else TOGETHER[noise]) if users == USERS else None
    ratio = None if best is None else error / best
    cells = [f"{error:>8.2f}", f"{best:>8.2f}" if best is not None else f"{'':>8}"]
    cells += [f"{ratio:>7.2f}" if ratio is not None else f"{'':>7}", f"{aim:>6.2f}" if aim else f"{'':>6}"]
    met = (aim is None or error <= aim) and (ratio is None or ratio_aim is None or not ratio > ratio_aim)
    line = f"{users:>8,} {noise:<10}{title:<18}{''.join(cells)}{found.answered:>7.0%}  {found.norms}"
    print(line + ("" if met else "  MISSED"), flush=True)
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RUNS} runs of noise, not {RUNS}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print_tables(Path(folder), payments(), QUICK_RUNS if options.quick else RUNS)


if __name__ == "__main__":
    main()
