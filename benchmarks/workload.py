"""The data of the benchmarks, made by a fixed seed: the common workload of accuracy, and events for overhead.

    python -m benchmarks.workload              the common workload's figures beside their targets

Nothing private is in it, so numpy's generator will do; noise never comes from here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SEED = 20_240_517

USERS, ROWS, REGIONS = 100_000, 1_000_000, 20
AMOUNT_MEDIAN, AMOUNT_99TH = math.exp(3), 89.0
REGION_NAMES = tuple(f"region_{number:02}" for number in range(1, REGIONS + 1))

EVENT_REGIONS, CATEGORIES = 25, 10_000
EVENT_REGION_NAMES = tuple(f"region_{number:02}" for number in range(1, EVENT_REGIONS + 1))
SEGMENTS = ("free", "trial", "basic", "team", "company")
ROWS_PER_USER = 16.6


# --- the common workload ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Payments:
    """One entry per row: who paid, in which region (a place in REGION_NAMES), and how much."""

    user: Integers
    region: Integers
    amount: Floats


def payments(seed: int = SEED) -> Payments:
    rng = np.random.default_rng(seed)
    user, region = _pairs(rng)
    rows = _rows_per_pair(rng, user)
    order = rng.permutation(ROWS)  # rows do not come sorted by user
    amount = _amounts(rng, ROWS)
    return Payments(np.repeat(user, rows)[order], np.repeat(region, rows)[order], amount)


def _pairs(rng: np.random.Generator) -> tuple[Integers, Integers]:
    """The regions that each user touches, drawn by their weights without repetition; the first is the user's home."""
    touched = np.minimum(1 + _negative_binomial(rng, USERS, mean=0.795, shape=8), 9)
    weights = _zipf(REGIONS, 1.14)
    keys = np.log(weights) + rng.gumbel(size=(USERS, REGIONS))  # the largest keys are such a draw (Efraimidis 2006)
    ranked = np.argsort(-keys, axis=1)
    taken = np.arange(REGIONS) < touched[:, None]
    return np.nonzero(taken)[0], ranked[taken]


def _rows_per_pair(rng: np.random.Generator, user: Integers) -> Integers:
    """Most rows of a user are in the home region. A few pairs get one row more or less, to make the sum right."""
    home = np.append(True, user[1:] != user[:-1])
    rows = np.where(
        home,
        1 + _negative_binomial(rng, len(user), mean=8.05, shape=1.45),
        1 + _negative_binomial(rng, len(user), mean=0.25, shape=1),
    )
    rows = np.minimum(rows, 75)
    while missing := ROWS - int(rows.sum()):
        places = rng.choice(np.flatnonzero((rows > 1) & (rows < 75)), size=min(abs(missing), 50_000), replace=False)
        rows[places] += np.sign(missing)
    return rows


def _amounts(rng: np.random.Generator, n: int) -> Floats:
    spread = math.log(AMOUNT_99TH / AMOUNT_MEDIAN) / 2.3263478740408408  # the normal's 99th percentile
    return np.clip(rng.lognormal(math.log(AMOUNT_MEDIAN), spread, n), 0, 100)


def _negative_binomial(rng: np.random.Generator, n: int, mean: float, shape: float) -> Integers:
    return rng.poisson(rng.gamma(shape, mean / shape, n))


def _zipf(n: int, power: float) -> Floats:
    weights: Floats = np.arange(1, n + 1, dtype=np.float64) ** -power
    shares: Floats = weights / weights.sum()
    return shares


def write_payments(path: Path, data: Payments) -> None:
    """A DuckDB file with one table, payments(user_id, region, amount)."""
    columns = {"user_id": data.user, "region": data.region, "amount": data.amount}
    sql = f"SELECT user_id, {_name('region')} AS region, amount FROM data"
    _write(path, "payments", sql, columns)


# --- events ----------------------------------------------------------------------------------------------------------


def write_events(path: Path, rows: int, seed: int = SEED) -> None:
    """A DuckDB file with events (one row each, of heavy-tailed users) and users (one row per user).

    About 2 % of the users have more than 100 events, and they have about a sixth of all events.
    """
    rng = np.random.default_rng(seed + rows)
    users = round(rows / ROWS_PER_USER)
    user, home = _event_users(rng, rows, users)
    away = rng.random(rows) < 0.3
    region = np.where(away, rng.choice(EVENT_REGIONS, rows, p=_zipf(EVENT_REGIONS, 1)), home[user])
    events = {
        "event_id": np.arange(rows),
        "user_id": user,
        "region": region,
        "category": rng.choice(CATEGORIES, rows, p=_zipf(CATEGORIES, 0.8)),
        "amount": _amounts(rng, rows),
    }
    sql = f"SELECT event_id, user_id, {_name('region')} AS region, category, amount FROM data"
    _write(path, "events", sql, events)
    segment = rng.choice(len(SEGMENTS), users, p=_zipf(len(SEGMENTS), 0.7))
    listed = ", ".join(f"'{name}'" for name in SEGMENTS)
    sql = f"SELECT user_id, [{listed}][segment + 1] AS segment, birth_year FROM data"
    people = {"user_id": np.arange(users), "segment": segment, "birth_year": rng.integers(1940, 2008, users)}
    _write(path, "users", sql, people)


def _event_users(rng: np.random.Generator, rows: int, users: int) -> tuple[Integers, Integers]:
    """The user of each event, log-normal in how many each has, and each user's home region."""
    activity = rng.lognormal(0, 1.2, users)
    user = rng.choice(users, rows, p=activity / activity.sum())
    return user, rng.choice(EVENT_REGIONS, users, p=_zipf(EVENT_REGIONS, 1))


def _name(column: str) -> str:
    return f"printf('region_%02d', {column} + 1)"


def _write(path: Path, table: str, sql: str, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.register("data", dict(columns))
        connection.execute(f"CREATE TABLE {table} AS {sql}")


# --- figures ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    what: str
    target: float
    achieved: float


def figures(data: Payments) -> tuple[Figure, ...]:
    """The common workload as it came out, beside what it is to be."""
    sizes = np.bincount(data.region, minlength=REGIONS)
    _, rows = np.unique(data.user * REGIONS + data.region, return_counts=True)
    pairs = np.unique(data.user * REGIONS + data.region) // REGIONS
    touched = np.bincount(pairs, minlength=USERS)
    per_user = np.bincount(data.user, minlength=USERS)

    def at(values: npt.NDArray[Any], percent: int) -> float:
        return float(np.percentile(values, percent, method="inverted_cdf"))

    return (
        Figure("rows", ROWS, len(data.user)),
        Figure("users", USERS, len(np.unique(data.user))),
        Figure("regions", REGIONS, len(np.unique(data.region))),
        Figure("rows of the smallest region", 11_000, sizes.min()),
        Figure("rows of the largest region", 310_000, sizes.max()),
        Figure("amount, 99th percentile", AMOUNT_99TH, at(data.amount, 99)),
        Figure("amount, largest", 100, data.amount.max()),
        Figure("regions per user, mean", 1.8, touched.mean()),
        Figure("regions per user, 90th percentile", 3, at(touched, 90)),
        Figure("regions per user, most", 9, touched.max()),
        Figure("rows per user and region, mean", 5.6, rows.mean()),
        Figure("rows per user and region, 90th percentile", 15, at(rows, 90)),
        Figure("rows per user and region, 99th percentile", 30, at(rows, 99)),
        Figure("rows per user and region, most", 75, rows.max()),
        Figure("amount, mean", math.nan, data.amount.mean()),
        Figure("rows per user, 90th percentile", math.nan, at(per_user, 90)),
        Figure("rows per user, 99th percentile", math.nan, at(per_user, 99)),
        Figure("rows per user, most", math.nan, per_user.max()),
    )


def print_figures(data: Payments) -> None:
    print(f"{'common workload':<44}{'target':>12}{'achieved':>12}")
    for figure in figures(data):
        target = "" if math.isnan(figure.target) else f"{figure.target:,.10g}"
        print(f"{figure.what:<44}{target:>12}{figure.achieved:>12,.10g}")


if __name__ == "__main__":
    print_figures(payments())
