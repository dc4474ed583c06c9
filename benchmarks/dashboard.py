"""A dashboard of 20 charts that 10 analysts refresh 1,000 times: what it costs, and charts a second.

    python -m benchmarks.dashboard                          the ledger in SQLite
    python -m benchmarks.dashboard --ledger postgresql://…  in PostgreSQL
    python -m benchmarks.dashboard --quick                  100 refreshes
    python -m benchmarks.dashboard --profile                and where the time of a refresh goes

The hospital is that of `dpsql demo`. Each analyst has a session; every refresh sends all charts, those of a moving
window with the current time, which `snap` rounds to the day. The first refresh of each analyst pays; all others are
answered from the store. A chart is one release, or some more where its contributions are chosen, for the price of one
statement. The dataset must lose what the first refresh of the first analyst cost, and no analyst more than that.
"""

from __future__ import annotations

import argparse
import cProfile
import datetime as dt
import multiprocessing
import pstats
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from dpsql.interfaces.cli.demo_hospital import SCHEMA, make_hospital
from dpsql.privacy.loss import epsilon_to_rho
from dpsql.session.dataset.accounts import dataset_account
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session

USERS = tuple(f"user{number:02}" for number in range(10))
REFRESHES = 1000
LIMIT = 200.0
"""Charts a second, on two cores."""
START = dt.datetime(2025, 6, 1, 9, 30, tzinfo=dt.UTC)

CHARTS = (
    "SELECT COUNT(*) AS patients FROM patients",
    "SELECT COUNT(*) AS visits, SUM(cost) AS revenue, AVG(cost) AS average FROM visits",
    "SELECT sex, COUNT(*) AS patients FROM patients GROUP BY sex ORDER BY sex",
    "SELECT insured, COUNT(*) AS patients, AVG(birth_year) AS born FROM patients GROUP BY insured",
    "SELECT ward, COUNT(*) AS visits, AVG(cost) AS average FROM visits GROUP BY ward ORDER BY visits DESC",
    "SELECT ward, AVG(nights) AS nights FROM visits WHERE nights > 0 GROUP BY ward",
    "SELECT EXTRACT(YEAR FROM at) AS year, COUNT(*) AS visits, SUM(cost) AS revenue FROM visits GROUP BY year"
    " ORDER BY year",
    "SELECT ward, EXTRACT(YEAR FROM at) AS year, COUNT(*) AS visits FROM visits GROUP BY ward, year ORDER BY 1, 2",
    "SELECT diagnosis, COUNT(*) AS visits, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS percent FROM visits"
    " GROUP BY diagnosis ORDER BY visits DESC LIMIT 6",
    "SELECT CASE WHEN birth_year > 1985 THEN 'young' WHEN birth_year > 1960 THEN 'middle' ELSE 'old' END AS age,"
    " COUNT(*) AS visits, AVG(nights) AS nights FROM patients JOIN visits USING (patient_id) GROUP BY age ORDER BY age",
    "SELECT sex, SUM(cost) AS revenue FROM patients JOIN visits USING (patient_id) GROUP BY sex",
    "SELECT nights, COUNT(*) AS visits FROM visits GROUP BY nights ORDER BY nights",
    "SELECT ward, SUM(cost) AS revenue FROM visits WHERE cost > 1000 GROUP BY ward ORDER BY revenue DESC LIMIT 3",
    "SELECT COUNT(DISTINCT patient_id) AS patients FROM visits WHERE ward = 'emergency'",
    "SELECT ward, COUNT(*) FILTER (WHERE nights = 0) AS same_day, COUNT(*) AS visits FROM visits GROUP BY ward",
    "WITH yearly AS (SELECT EXTRACT(YEAR FROM at) AS year, AVG(cost) AS average FROM visits WHERE ward = 'surgery'"
    " GROUP BY year) SELECT year, average, average - LAG(average) OVER (ORDER BY year) AS change FROM yearly",
    "SELECT COUNT(*) AS visits FROM visits WHERE at >= TIMESTAMP '{now}' - INTERVAL '30 days'",
    "SELECT ward, COUNT(*) AS visits FROM visits WHERE at >= TIMESTAMP '{now}' - INTERVAL '90 days' GROUP BY ward",
    "SELECT SUM(cost) AS revenue FROM visits WHERE at >= TIMESTAMP '{now}' - INTERVAL '365 days' AND at < '{now}'",
    "SELECT AVG(nights) AS nights FROM visits WHERE at < TIMESTAMP '{now}'",
)


@dataclass(frozen=True)
class Bill:
    """What was lost: by the dataset, by each analyst, and by the releases themselves, each counted once."""

    dataset: Fraction
    analysts: tuple[Fraction, ...]
    releases: Fraction
    count: int
    charts: int
    """Different statements that releases were bought for."""
    price: Fraction
    """The most that one statement may lose."""

    @property
    def kept(self) -> bool:
        """Whether each chart was bought once: for no more than its price, and none for an analyst alone."""
        bought_once = self.charts == len(CHARTS) and self.releases <= self.charts * self.price
        return bought_once and self.dataset == self.releases >= max(self.analysts)

    def is_that_of(self, first: Bill) -> bool:
        """Whether the dataset has lost, and the store holds, what they did after the first refresh of all."""
        return self.kept and (self.dataset, self.count) == (first.dataset, first.count)


def write_dashboard(folder: Path, ledger: str | None = None, users: Sequence[str] = USERS) -> Path:
    """The hospital, with these analysts; its schema's path."""
    path = make_hospital(folder)
    analysts = "".join(f"  {user}: {{budget: {{epsilon: 8, delta: 1e-6}}}}\n" for user in users)
    text = SCHEMA.replace("  ana: {budget: {epsilon: 4, delta: 5e-7}}\n", analysts)
    text = text.replace('"2025-12-31 23:59:59"]}', '"2025-12-31 23:59:59"], snap: 1 day}')
    text = text.replace("query: {epsilon: 1, delta: 1e-7}", "query: {epsilon: 0.5, delta: 1e-8}")
    assert "snap" in text and "epsilon: 0.5" in text
    if ledger is not None:
        text = text.replace("sqlite:///hospital.ledger", ledger)
    path.write_text(text, encoding="utf-8")
    return path


def refresh(session: Session, number: int) -> int:
    """Send all charts, at another time of the same day; how many were charged for."""
    now = START + dt.timedelta(seconds=10 * number)
    answers = [session.execute(chart.replace("{now}", now.strftime("%Y-%m-%d %H:%M:%S"))) for chart in CHARTS]
    return sum(answer.loss.rho > 0 for answer in answers)


def bill(session: Session) -> Bill:
    dataset, ledger = session.dataset, session.dataset.ledger
    query = dataset.schema.privacy.query
    stored = ledger.list_releases()
    paid = tuple(
        ledger.get_balance(dataset.find_account(analyst.name)).spent_rho for analyst in dataset.schema.analysts
    )
    rho = sum((one.loss.rho for one in stored), Fraction(0))
    charts = len({one.statement for one in stored})
    spent = ledger.get_balance(dataset_account(dataset.schema)).spent_rho
    return Bill(spent, paid, rho, len(stored), charts, epsilon_to_rho(query.epsilon, query.delta))


# --- measuring -------------------------------------------------------------------------------------------------------


def serve(path: Path, users: Sequence[str], refreshes: int, threads: int) -> float:
    """Charts a second of one process, whose sessions have asked all of it before."""
    dataset = open_dataset(path)
    sessions = [Session(dataset, user) for user in users]
    for session in sessions:
        refresh(session, 0)
    each = refreshes // len(sessions)

    def work(session: Session) -> None:
        for number in range(1, each + 1):
            assert refresh(session, number) == 0

    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, sessions))
    taken = time.perf_counter() - start
    dataset.close()
    return each * len(sessions) * len(CHARTS) / taken


def serve_in_processes(path: Path, refreshes: int, processes: int) -> float:
    """Charts a second of several processes together; each has its own part of the analysts."""
    parts = [USERS[place::processes] for place in range(processes)]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        rates = pool.starmap(serve, [(path, part, refreshes // processes, 1) for part in parts])
    return sum(rates)


def profile(path: Path) -> None:
    session = Session(open_dataset(path), USERS[0])
    refresh(session, 0)
    profiler = cProfile.Profile()
    profiler.enable()
    for number in range(1, 11):
        refresh(session, number)
    profiler.disable()
    pstats.Stats(profiler).sort_stats("cumulative").print_stats(45)
    session.dataset.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100 refreshes")
    parser.add_argument("--ledger", metavar="URL", help="another ledger, which must be new")
    parser.add_argument("--profile", action="store_true", help="where the time of a refresh goes")
    options = parser.parse_args()
    refreshes = REFRESHES // 10 if options.quick else REFRESHES
    with tempfile.TemporaryDirectory() as name:
        path = write_dashboard(Path(name), options.ledger)
        start = time.perf_counter()
        first = Session(open_dataset(path), USERS[0])
        charged = refresh(first, 0)
        once = bill(first)
        print(f"first refresh: {charged} of {len(CHARTS)} charts charged, {time.perf_counter() - start:.1f} s")
        if options.profile:
            profile(path)
        print(f"{len(USERS)} analysts, {refreshes} refreshes, {refreshes * len(CHARTS):,} charts; charts a second")
        rates = {"one process, one thread": serve(path, USERS, refreshes, 1)}
        rates["one process, ten threads"] = serve(path, USERS, refreshes, len(USERS))
        rates["two processes"] = serve_in_processes(path, refreshes, 2)
        for title, rate in rates.items():
            print(f"  {title:<28}{rate:>8.0f}")
        found = bill(first)
        first.dataset.close()
        most = float(max(found.analysts))
        print(f"{found.charts} charts, {found.count} releases, of rho {float(found.releases):.6f} together")
        print(f"the dataset has lost rho {float(found.dataset):.6f}, an analyst at most {most:.6f}")
        fast = max(rates.values()) > LIMIT
        kept = found.is_that_of(once)
        print(f"\ncost: {'kept' if kept else 'BROKEN'}; {LIMIT:g} charts a second: {'met' if fast else 'MISSED'}")
    sys.exit(0 if kept else 3)


if __name__ == "__main__":
    main()
