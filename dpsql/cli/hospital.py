"""A small hospital that does not exist: the data and the schema of the demo. The same rows on every machine."""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

PATIENTS = 7000
SEED = 20_210_101

SCHEMA = """\
dpsql: 1
ledger: sqlite:///hospital.ledger      # every charge, durably

privacy:
  unit: patients.patient_id            # whom we protect: one patient, with all of her rows
  budget: {epsilon: 8, delta: 1e-6}    # the most that all analysts together may learn of her
  query: {epsilon: 1, delta: 1e-7}     # the most that one statement loses, if it asks for no less
  contributions: {rows: 6, groups: 4}  # however often she came, she counts like at most 6 visits

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
      sex: {type: text, values: [f, m, x]}               # known values: all groups are shown
      insured: {type: boolean}

  visits:
    source: visits.csv
    unit: {patient_id: patients.patient_id}              # the way to the patient
    columns:
      patient_id: {type: integer}
      ward:
        type: text
        values: [cardiology, emergency, maternity, oncology, pediatrics, surgery]
      diagnosis: {type: text, max_length: 40}            # unknown values: rare ones stay hidden
      at: {type: timestamp, bounds: [2021-01-01, "2025-12-31 23:59:59"]}
      nights: {type: integer, bounds: [0, 14]}
      cost: {type: double, bounds: [0, 2000], grid: 0.5} # what is above counts as 2000
"""

_WARDS: dict[str, tuple[int, float, tuple[str, ...]]] = {  # weight, usual cost, diagnoses by frequency
    "emergency": (31, 430.0, ("contusion", "cut", "fever", "allergic reaction", "smoke inhalation")),
    "cardiology": (20, 910.0, ("hypertension", "arrhythmia", "heart failure", "myocarditis", "cardiac sarcoidosis")),
    "surgery": (18, 780.0, ("back pain", "fracture", "arthrosis", "torn ligament", "scoliosis")),
    "pediatrics": (15, 520.0, ("infection", "vaccination", "asthma", "measles", "kawasaki disease")),
    "maternity": (11, 1050.0, ("birth", "check-up", "preeclampsia", "hyperemesis")),
    "oncology": (13, 1250.0, ("chemotherapy", "radiotherapy", "biopsy", "thymoma", "chordoma")),
}
_START = dt.datetime(2021, 1, 1)
_YEARS = (16, 18, 20, 22, 24)  # visits grow from year to year

Row = tuple[Any, ...]


class Stream:
    """Numbers that look random and are always the same (SplitMix64). No secret, and no noise, is drawn from it."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def word(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def unit(self) -> float:
        return (self.word() >> 11) / (1 << 53)

    def below(self, n: int) -> int:
        return int(self.unit() * n)

    def chance(self, share: float) -> bool:
        return self.unit() < share

    def pick(self, weights: Sequence[float]) -> int:
        left = self.unit() * sum(weights)
        for place, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return place
        return len(weights) - 1

    def bell(self) -> float:
        """About normal, mean 0 and deviation 1: the sum of a word's four parts."""
        word = self.word()
        parts = (word & 0xFFFF) + (word >> 16 & 0xFFFF) + (word >> 32 & 0xFFFF) + (word >> 48)
        return (parts / 0x10000 - 2) * 1.732


_MASK = (1 << 64) - 1


def make_hospital(folder: Path) -> Path:
    """Write the schema and its data; the schema's path."""
    stream = Stream(SEED)
    patients = [_patient(stream, number) for number in range(1, PATIENTS + 1)]
    visits = [visit for patient in patients for visit in _visits(stream, patient)]
    _write(folder / "patients.csv", ("patient_id", "birth_year", "sex", "insured"), patients)
    _write(folder / "visits.csv", ("patient_id", "ward", "diagnosis", "at", "nights", "cost"), visits)
    schema = folder / "hospital.yaml"
    schema.write_text(SCHEMA, encoding="utf-8")
    return schema


def _patient(stream: Stream, number: int) -> Row:
    age = stream.below(16) if stream.chance(0.2) else min(94, max(16, int(50 + 19 * stream.bell())))
    sex = ("f", "m", "x")[stream.pick((51, 46, 3))]
    return number, 2025 - age, sex, "true" if stream.chance(0.87) else "false"


def _visits(stream: Stream, patient: Row) -> Iterable[Row]:
    """Most came a few times, a few came often."""
    number, birth_year, sex, _ = patient
    age = 2025 - birth_year
    count = 2 + int((1.6 + age / 80) * (1 - 0.97 * stream.unit()) ** -0.35)
    names = list(_WARDS)
    weights = [weight * _affinity(name, age, sex) for name, (weight, _, _) in _WARDS.items()]
    usual = stream.pick(weights)  # people come back to the ward that they know
    for _ in range(count):
        ward = names[usual if stream.chance(0.35) else stream.pick(weights)]
        _, cost, diagnoses = _WARDS[ward]
        diagnosis = diagnoses[stream.pick([(0.002 if place > 2 else 0.5**place) for place in range(len(diagnoses))])]
        nights = 0 if ward == "emergency" else min(14, max(0, int(1.5 + age / 15 + 1.5 * stream.bell())))
        paid = max(20.0, cost * (1 + 0.3 * stream.bell()) + 25.0 * nights)
        yield number, ward, diagnosis, _moment(stream).isoformat(" "), nights, f"{paid:.2f}"


def _affinity(ward: str, age: int, sex: str) -> float:
    match ward:
        case "pediatrics":
            return 9.0 if age < 16 else 0.0
        case "maternity":
            return 8.0 if sex == "f" and 18 <= age < 45 else 0.0
        case "cardiology" | "oncology":
            return 0.3 + age / 50
        case _:
            return 1.0


def _moment(stream: Stream) -> dt.datetime:
    year = 2021 + stream.pick(_YEARS)
    return _START.replace(year=year) + dt.timedelta(days=stream.below(365), minutes=stream.below(24 * 60))


def _write(path: Path, names: Sequence[str], rows: Iterable[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
