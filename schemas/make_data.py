"""Makes the small data of the worked schemas: `python schemas/make_data.py [FOLDER]`.

The same rows on every machine: all randomness comes from `random.Random(seed).random()`, whose sequence Python
keeps stable between versions, and from arithmetic on it. No person in it exists.
"""

from __future__ import annotations

import csv
import datetime as dt
import random
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb

WARDS = [("cardiology", 3, 42), ("emergency", 0, 30), ("geriatrics", 4, 36), ("maternity", 2, 28),
         ("neurology", 5, 24), ("oncology", 5, 32), ("orthopedics", 1, 40), ("pediatrics", 2, 26)]  # fmt: skip
WARD_WEIGHTS = [18, 30, 9, 8, 7, 6, 14, 8]
WARD_COST = [900, 260, 640, 1100, 820, 1500, 700, 300]
TESTS = [("glucose", 5.4, 1.6), ("hemoglobin", 13.6, 1.7), ("potassium", 4.2, 0.5), ("sodium", 139.0, 3.5)]
REGIONS = ["north", "east", "south", "west", "center"]
KINDS = ["view", "search", "cart", "purchase", "return"]
COUNTRIES = ["DE", "ES", "FR", "IT", "NO", "PL", "PT", "SE", "IS", "MT"]
START, DAYS = dt.datetime(2023, 1, 1), 1200  # to April 2026

Row = tuple[Any, ...]


class Source:
    """Choices built on `random()` alone: other methods of `Random` may change between Python versions."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def unit(self) -> float:
        return self._random.random()

    def below(self, n: int) -> int:
        return int(self.unit() * n)

    def chance(self, share: float) -> bool:
        return self.unit() < share

    def pick(self, items: Sequence[Any], weights: Sequence[int]) -> Any:
        left = self.unit() * sum(weights)
        for item, weight in zip(items, weights, strict=True):
            left -= weight
            if left < 0:
                return item
        return items[-1]

    def bell(self) -> float:
        """About normal, mean 0 and deviation 1: sums of uniforms need no function that rounds by platform."""
        return sum(self.unit() for _ in range(12)) - 6.0

    def heavy(self, most: int) -> int:
        """1, 2, 3… with a tail like 1/n²: most are small, a few come near `most`."""
        return min(most, int(1.0 / (1.0 - self.unit())))

    def moment(self) -> dt.datetime:
        # Squared: more of it is recent.
        share = 1.0 - self.unit() * self.unit()
        return START + dt.timedelta(days=int(share * DAYS), minutes=self.below(24 * 60))


def patients(count: int = 2500) -> list[Row]:
    source = Source(1)
    rows = []
    for patient_id in range(1, count + 1):
        birth_year = 2024 - min(97, max(0, int(48 + 22 * source.bell())))
        sex = source.pick(["f", "m", "x", None], [50, 46, 2, 2])
        insured = None if source.chance(0.03) else source.chance(0.85)
        rows.append((patient_id, birth_year, sex, insured))
    return rows


def visits(people: Sequence[Row]) -> list[Row]:
    source = Source(2)
    rows: list[Row] = []
    for patient_id, *_ in people:
        for _ in range(source.below(3) + source.heavy(60)):
            ward = source.pick(range(8), WARD_WEIGHTS)
            cost = WARD_COST[ward] * (0.4 + 1.2 * source.unit() * source.unit()) * min(9, source.heavy(9))
            at = source.moment()
            rows.append((
                len(rows) + 1,
                patient_id,
                None if source.chance(0.01) else WARDS[ward][0],
                None if source.chance(0.02) else int(cost / 5) * 5 + 0.5 * source.below(2),
                at,
                None if source.chance(0.3) else source.below(15),
            ))  # fmt: skip
    # Visits of nobody, and of people who are not in the table of patients: both happen in real data.
    for n, patient_id in enumerate([None] * 15 + [90001, 90002, 90002, 90003]):
        rows.append((len(rows) + 1, patient_id, "emergency", 120.0, START + dt.timedelta(days=n), None))
    return rows


def lab_tests(seen: Sequence[Row]) -> list[Row]:
    source = Source(3)
    rows: list[Row] = []
    for visit_id, _, _, _, at, _ in seen:
        if not source.chance(0.2):
            continue
        for _ in range(min(6, source.heavy(6))):
            name, mean, deviation = source.pick(TESTS, [4, 3, 2, 2])
            value = None if source.chance(0.02) else round(mean + deviation * source.bell(), 1)
            rows.append((visit_id, name, value, at.date() + dt.timedelta(days=source.below(3))))
    return rows


def survey(count: int = 3500) -> list[Row]:
    source = Source(4)
    rows: list[Row] = []
    for person_id in range(1, count + 1):
        age = min(99, max(16, int(44 + 17 * source.bell())))
        income = None if source.chance(0.08) else 100 * int(3 + 18 * source.unit() + 12 * min(12, source.heavy(12) - 1))
        region = source.pick(REGIONS, [30, 18, 22, 16, 14])
        score = None if source.chance(0.05) else source.pick([1, 2, 3, 4, 5], [6, 11, 24, 37, 22])
        moved = None if source.chance(0.04) else source.chance(0.12)
        day = dt.date(2025, 3, 1) + dt.timedelta(days=source.below(60))
        rows.append((person_id, region, age, income, score, moved, day))
    return rows


def poll(count: int = 2000) -> list[Row]:
    """Three in ten evaded taxes, and asked a coin; a party was kept with probability e/(e + 3), some 0.475."""
    source = Source(6)
    parties = ["red", "green", "blue", "none"]
    rows: list[Row] = []
    for person_id in range(1, count + 1):
        age = min(99, max(16, int(44 + 17 * source.bell())))
        region = source.pick(REGIONS, [30, 18, 22, 16, 14])
        evaded = source.chance(0.3) if source.chance(0.5) else source.chance(0.5)
        party = source.pick(parties, [40, 25, 20, 15])
        told = party if source.chance(0.475) else [one for one in parties if one != party][source.below(3)]
        rows.append((person_id, region, age, None if source.chance(0.03) else "yes" if evaded else "no", told))
    return rows


def events(count: int = 9000) -> list[Row]:
    """Some 700 users; the busiest have hundreds of events each."""
    source = Source(5)
    rows: list[Row] = []
    user = 0
    while len(rows) < count:
        user += 1
        country = source.pick(COUNTRIES, [30, 14, 20, 12, 6, 8, 4, 5, 1, 1])
        for _ in range(min(count - len(rows), 400, source.heavy(60) * source.heavy(12))):
            kind = source.pick(KINDS, [62, 22, 9, 6, 1])
            seconds = None if source.chance(0.03) else min(3600, source.heavy(400) * 3 + source.below(40))
            amount = None if kind not in ("purchase", "return") else 5 * (1 + source.heavy(60)) - 0.01
            rows.append((f"u{user:05d}", source.moment(), kind, country, seconds, amount))
    return rows


FILES: dict[str, dict[str, str]] = {
    "patients.parquet": {"patient_id": "bigint", "birth_year": "integer", "sex": "varchar", "insured": "boolean"},
    "visits.parquet": {"visit_id": "bigint", "patient_id": "bigint", "ward": "varchar", "cost": "double",
                       "at": "timestamp", "nights": "smallint"},
    "lab_tests.parquet": {"visit_id": "bigint", "test": "varchar", "value": "double", "day": "date"},
    "events.parquet": {"user_id": "varchar", "happened": "timestamp", "kind": "varchar", "country": "varchar",
                       "seconds": "integer", "amount": "decimal(9,2)"},
    "wards.csv": {"ward": "varchar", "floor": "integer", "beds": "integer"},
    "survey.csv": {"person_id": "integer", "region": "varchar", "age": "integer", "income": "integer",
                   "score": "smallint", "moved": "boolean", "day": "date"},
    "poll.csv": {"person_id": "integer", "region": "varchar", "age": "integer", "evaded": "varchar",
                 "party": "varchar"},
}  # fmt: skip


def rows_of() -> dict[str, list[Row]]:
    people = patients()
    seen = visits(people)
    return {
        "patients.parquet": people,
        "visits.parquet": seen,
        "lab_tests.parquet": lab_tests(seen),
        "events.parquet": events(),
        "wards.csv": list(WARDS),
        "survey.csv": survey(),
        "poll.csv": poll(),
    }


def write_csv(path: Path, names: Sequence[str], rows: Iterable[Row], delimiter: str, null: str) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([null if value is None else _text(value) for value in row] for row in rows)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def write_parquet(path: Path, types: dict[str, str], rows: Iterable[Row]) -> None:
    """By way of a CSV file, which DuckDB reads with the types given."""
    columns = ", ".join(f"'{name}': '{type_}'" for name, type_ in types.items())
    read = f"read_csv(?, header = true, delim = ',', quote = '\"', nullstr = '', columns = {{{columns}}})"
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        plain = Path(folder) / "rows.csv"
        write_csv(plain, list(types), rows, ",", "")
        connection.execute(f"COPY (FROM {read}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)", [str(plain)])


def make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in rows_of().items():
        types = FILES[name]
        if name.endswith(".parquet"):
            write_parquet(folder / name, types, rows)
        elif name == "survey.csv":
            write_csv(folder / name, list(types), rows, ";", "NA")
        else:
            write_csv(folder / name, list(types), rows, ",", "")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "data")
