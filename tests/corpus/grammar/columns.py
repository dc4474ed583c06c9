"""The columns of the hospital that generated statements use, with values worth comparing them to."""

from __future__ import annotations

from dataclasses import dataclass, replace

NUMBER, TEXT, FLAG, DATE, MOMENT = "number", "text", "flag", "date", "moment"


@dataclass(frozen=True)
class Column:
    """`bounded` may be summed; `dense` is a good key: few values, many units each, NULL only if the schema lists it."""

    name: str
    kind: str
    bounded: bool = False
    dense: bool = False
    values: tuple[str, ...] = ()


PATIENTS = (
    Column("sex", TEXT, dense=True, values=("f", "m", "x", "q")),
    Column("language", TEXT, dense=True, values=("en", "de", "xx")),
    Column("city", TEXT, dense=True, values=("Leeds", "Gdańsk", "O''Fallon")),
    Column("insured", FLAG, dense=True),
    Column("smoker", FLAG, dense=True),
    Column("weight", NUMBER, bounded=True, values=("40", "61.5", "99.9")),
    Column("height", NUMBER, bounded=True, values=("120", "150.5")),
    Column("risk", NUMBER, bounded=True, dense=True, values=("0", "3", "8")),
    Column("registered", DATE, values=("2022-03-01", "2022-10-15")),
    Column("birth_date", DATE, values=("1950-06-30", "1990-01-01")),
)
VISITS = (
    Column("ward", TEXT, dense=True, values=("surgery", "urology", "nowhere")),
    Column("kind", TEXT, dense=True, values=("emergency", "follow-up")),
    Column("diagnosis", TEXT, dense=True, values=("I10", "E11")),
    Column("note", TEXT, values=("", "ok", "fell at home")),
    Column("urgent", FLAG, dense=True),
    Column("cost", NUMBER, bounded=True, values=("100", "2500.5", "-3")),
    Column("paid", NUMBER, bounded=True, values=("99.99", "1200", "4000")),
    Column("nights", NUMBER, bounded=True, dense=True, values=("0", "2", "7")),
    Column("rating", NUMBER, bounded=True, dense=True, values=("1", "4")),
    Column("admitted", MOMENT, values=("2023-05-01", "2024-02-29 12:00:00")),
    Column("day", DATE, values=("2023-07-14", "2024-11-11")),
)
PRESCRIPTIONS = (
    Column("drug", TEXT, dense=True, values=("insulin", "statin")),
    Column("dose", NUMBER, bounded=True, values=("50", "700.5")),
    Column("days", NUMBER, bounded=True, values=("10", "60")),
    Column("refills", NUMBER, bounded=True, dense=True, values=("1", "5")),
    Column("price", NUMBER, bounded=True, values=("20", "333.33")),
    Column("generic", FLAG, dense=True),
    Column("started", DATE, values=("2023-09-09", "2024-06-01")),
)
WARDS = (
    Column("floor", NUMBER, bounded=True, dense=True, values=("1", "2")),
    Column("beds", NUMBER, bounded=True, values=("20", "30")),
    Column("building", TEXT, dense=True, values=("main", "east")),
)
PER_PATIENT = (
    Column("n", NUMBER, bounded=True, values=("5", "12")),
    Column("nights", NUMBER, bounded=True, values=("50",)),
    Column("paid", NUMBER, bounded=True, values=("20000",)),
    Column("wards", NUMBER, bounded=True, values=("4",)),
    Column("longest", NUMBER, bounded=True, values=("9",)),
    Column("ever_urgent", FLAG, dense=True),
)
PER_PATIENT_SQL = (
    "COUNT(*) AS n, SUM(nights) AS nights, SUM(paid) AS paid, COUNT(DISTINCT ward) AS wards, MAX(nights) AS longest, "
    "BOOL_OR(urgent) AS ever_urgent"
)
DIAGNOSES = (Column("chapter", TEXT, dense=True, values=("nervous",)), Column("chronic", FLAG, dense=True))


def prefixed(alias: str, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    return tuple(replace(column, name=f"{alias}.{column.name}") for column in columns)
