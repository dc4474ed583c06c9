"""A small hospital that does not exist: the data and the schema of the demo. The same rows on every machine."""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

PATIENT_COUNT = 7000
SEED = 20_210_101

SCHEMA = """\
dpsql: 1
ledger: sqlite:///hospital.ledger      # every charge, durably

privacy:
  unit: patients.patient_id            # whom we protect: one patient, with all of her rows
  budget: {epsilon: 8, delta: 1e-6}    # the most that all analysts together may learn of her
  query: {epsilon: 1, delta: 1e-7}     # what one statement is charged, if it asks for no less
  contributions: auto                  # how much of one patient counts: chosen privately
  units: 10000                         # about how many patients there are

analysts:
  ana: {budget: {epsilon: 4, delta: 5e-7}}

tables:
  patients:
    source: patients.csv
    unit: patient_id
    unique: [patient_id]               # checked once, when the data is registered
    columns:
      patient_id: {type: integer}
      birth_year: {type: integer, bounds: [1930, 2025]}
      sex: {type: text, values: [f, m, x]}               # known values: groups cost nothing
      insured: {type: boolean}

  visits:
    source: visits.csv
    unit: {patient_id: patients.patient_id}              # whose visit it is
    columns:
      patient_id: {type: integer}
      ward:
        type: text
        values: [cardiology, emergency, maternity, oncology, pediatrics, surgery]
      diagnosis: {type: text, max_length: 40}            # unknown values: rare ones stay hidden
      at: {type: timestamp, bounds: [2021-01-01, "2025-12-31 23:59:59"]}
      nights: {type: integer, bounds: [0, 14]}
      cost: {type: double, bounds: [0, 2000], grid: 0.5} # a larger cost counts as 2000
"""

_WARDS: dict[str, tuple[int, float, tuple[str, ...]]] = {  # weight, usual cost, diagnoses by frequency
    "emergency": (31, 430.0, ("contusion", "cut", "fever", "allergic reaction", "smoke inhalation")),
    "cardiology": (20, 910.0, ("hypertension", "arrhythmia", "heart failure", "myocarditis", "cardiac sarcoidosis")),
    "surgery": (18, 780.0, ("back pain", "fracture", "arthrosis", "torn ligament", "scoliosis")),
    "pediatrics": (15, 520.0, ("infection", "vaccination", "asthma", "measles", "kawasaki disease")),
    "maternity": (11, 1050.0, ("birth", "check-up", "preeclampsia", "hyperemesis")),
    "oncology": (13, 1250.0, ("chemotherapy", "radiotherapy", "biopsy", "thymoma", "chordoma")),
}
_FIRST_DAY = dt.datetime(2021, 1, 1)
_YEAR_WEIGHTS = (16, 18, 20, 22, 24)  # visits grow from year to year

Row = tuple[Any, ...]


class SplitMix64:
    """Numbers that look random and are always the same (SplitMix64). No secret, and no noise, is drawn from it."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def next_word(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def next_float(self) -> float:
        return (self.next_word() >> 11) / (1 << 53)

    def next_below(self, n: int) -> int:
        return int(self.next_float() * n)

    def next_bool(self, share: float) -> bool:
        return self.next_float() < share

    def pick_index(self, weights: Sequence[float]) -> int:
        remaining = self.next_float() * sum(weights)
        for index, weight in enumerate(weights):
            remaining -= weight
            if remaining < 0:
                return index
        return len(weights) - 1

    def next_normal(self) -> float:
        """About normal, mean 0 and deviation 1: the sum of a word's four parts."""
        word = self.next_word()
        parts = (word & 0xFFFF) + (word >> 16 & 0xFFFF) + (word >> 32 & 0xFFFF) + (word >> 48)
        return (parts / 0x10000 - 2) * 1.732


_MASK = (1 << 64) - 1


def make_hospital(folder: Path) -> Path:
    """Write the schema and its data; the schema's path."""
    stream = SplitMix64(SEED)
    patients = [_make_patient(stream, number) for number in range(1, PATIENT_COUNT + 1)]
    visits = [visit for patient in patients for visit in _make_visits(stream, patient)]
    _write_csv(folder / "patients.csv", ("patient_id", "birth_year", "sex", "insured"), patients)
    _write_csv(folder / "visits.csv", ("patient_id", "ward", "diagnosis", "at", "nights", "cost"), visits)
    schema = folder / "hospital.yaml"
    schema.write_text(SCHEMA, encoding="utf-8")
    return schema


def _make_patient(stream: SplitMix64, number: int) -> Row:
    age = stream.next_below(16) if stream.next_bool(0.2) else min(94, max(16, int(50 + 19 * stream.next_normal())))
    sex = ("f", "m", "x")[stream.pick_index((51, 46, 3))]
    return number, 2025 - age, sex, "true" if stream.next_bool(0.87) else "false"


def _make_visits(stream: SplitMix64, patient: Row) -> Iterable[Row]:
    """Most came a few times, a few came often."""
    number, birth_year, sex, _ = patient
    age = 2025 - birth_year
    count = 2 + int((1.6 + age / 80) * (1 - 0.97 * stream.next_float()) ** -0.35)
    names = list(_WARDS)
    weights = [weight * _ward_affinity(name, age, sex) for name, (weight, _, _) in _WARDS.items()]
    usual = stream.pick_index(weights)  # people come back to the ward that they know
    for _ in range(count):
        ward = names[usual if stream.next_bool(0.35) else stream.pick_index(weights)]
        _, cost, diagnoses = _WARDS[ward]
        diagnosis = diagnoses[
            stream.pick_index([(0.002 if index > 2 else 0.5**index) for index in range(len(diagnoses))])
        ]
        nights = 0 if ward == "emergency" else min(14, max(0, int(1.5 + age / 15 + 1.5 * stream.next_normal())))
        paid = max(20.0, cost * (1 + 0.3 * stream.next_normal()) + 25.0 * nights)
        yield number, ward, diagnosis, _make_timestamp(stream).isoformat(" "), nights, f"{paid:.2f}"


def _ward_affinity(ward: str, age: int, sex: str) -> float:
    match ward:
        case "pediatrics":
            return 9.0 if age < 16 else 0.0
        case "maternity":
            return 8.0 if sex == "f" and 18 <= age < 45 else 0.0
        case "cardiology" | "oncology":
            return 0.3 + age / 50
        case _:
            return 1.0


def _make_timestamp(stream: SplitMix64) -> dt.datetime:
    year = 2021 + stream.pick_index(_YEAR_WEIGHTS)
    return _FIRST_DAY.replace(year=year) + dt.timedelta(days=stream.next_below(365), minutes=stream.next_below(24 * 60))


def _write_csv(path: Path, names: Sequence[str], rows: Iterable[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
