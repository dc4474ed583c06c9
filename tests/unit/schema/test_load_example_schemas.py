"""The worked schemas load, and describe the data beside them, which the script makes again."""

from __future__ import annotations

import importlib.util
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pytest

from dpsql.schema.load import load_schema
from dpsql.schema.model import Column, Files, ForeignUnit, Neighbors, Schema, Table
from dpsql.types import DATE, parse_type

SCHEMAS = Path(__file__).parents[3] / "schemas"
NAMES = ["clinic", "events", "events_by_row", "poll", "survey"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    script().make(folder)
    return folder


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_data", SCHEMAS / "make_data.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load(name: str) -> Schema:
    return load_schema(SCHEMAS / f"{name}.yaml", {})


def relation(table: Table) -> str:
    source = table.source
    assert isinstance(source, Files)
    (path,) = source.patterns
    if source.format == "parquet":
        return f"read_parquet('{path}')"
    columns = ", ".join(f"'{column.name}': '{column.type}'" for column in table.columns)
    return (
        f"read_csv('{path}', header = {source.header}, delim = '{source.delimiter}', nullstr = '{source.null}', "
        f"columns = {{{columns}}})"
    )


def one(sql: str) -> Any:
    with duckdb.connect() as db:
        ((value,),) = db.sql(sql).fetchall()
    return value


def test_these_are_the_worked_schemas() -> None:
    assert sorted(path.stem for path in SCHEMAS.glob("*.yaml")) == NAMES


def test_the_script_makes_the_data_that_is_checked_in(made: Path) -> None:
    kept = SCHEMAS / "data"
    assert sorted(path.name for path in made.iterdir()) == sorted(path.name for path in kept.iterdir())
    for path in made.iterdir():
        assert (kept / path.name).stat().st_size < 200_000
        if path.suffix == ".csv":
            assert path.read_bytes() == (kept / path.name).read_bytes()
        else:
            with duckdb.connect() as db:
                fresh, old = (db.sql(f"FROM read_parquet('{folder / path.name}')") for folder in (made, kept))
                assert (fresh.columns, fresh.types) == (old.columns, old.types)
                assert fresh.fetchall() == old.fetchall()


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_describes_its_data(name: str) -> None:
    for table in load(name).tables:
        with duckdb.connect() as db:
            rows = db.sql(f"FROM {relation(table)}")
            physical = dict(zip(rows.columns, (parse_type(str(type_)) for type_ in rows.types), strict=True))
        assert physical == {column.name: column.type for column in table.columns}
        for key in table.unique:
            listed = ", ".join(f'"{column}"' for column in key)
            repeats = f"SELECT count(*) - count(DISTINCT ({listed})) FROM {relation(table)}"
            assert one(repeats) == 0


def share_outside(table: Table, column: Column) -> float:
    low, high = column.domain.bounds
    value = f'"{column.name}"'
    if column.type.is_time:
        value = f"({value} - DATE '1970-01-01')" if column.type == DATE else f"epoch_us({value})"
    sql = f"SELECT avg(({value} NOT BETWEEN {float(low)} AND {float(high)})::INTEGER) FROM {relation(table)}"
    return float(one(sql))


@pytest.mark.parametrize("name", NAMES)
def test_bounds_clip_little(name: str) -> None:
    for table in load(name).tables:
        for column in table.columns:
            if column.domain.is_bounded:
                assert share_outside(table, column) < 0.11, f"{table.name}.{column.name}"


def test_the_data_has_what_makes_privacy_hard() -> None:
    clinic, events = load("clinic"), load("events")
    visits, users = clinic.table("visits"), events.table("events")
    assert visits is not None and users is not None
    heaviest = f"SELECT max(n) FROM (SELECT count(*) n FROM {relation(visits)} GROUP BY patient_id)"
    assert one(heaviest) > 3 * (clinic.privacy.contributions.rows or 0)
    heaviest = f"SELECT max(n) FROM (SELECT count(*) n FROM {relation(users)} GROUP BY user_id)"
    assert one(heaviest) > 3 * (events.privacy.contributions.rows or 0)
    assert one(f"SELECT count(*) FROM {relation(visits)} WHERE patient_id IS NULL") > 0


def test_the_clinic() -> None:
    clinic = load("clinic")
    tests = clinic.table("lab_tests")
    assert tests is not None
    assert clinic.find_unit_path(tests) == (
        ForeignUnit("visit_id", "visits", "visit_id"),
        ForeignUnit("patient_id", "patients", "patient_id"),
    )
    assert [analyst.name for analyst in clinic.analysts] == ["ana", "bi"]
    assert sum(analyst.budget.epsilon for analyst in clinic.analysts) <= clinic.privacy.budget.epsilon
    assert clinic.privacy.budget.delta == Fraction(1, 10**6)


def test_the_survey_is_bounded() -> None:
    survey = load("survey")
    assert survey.privacy.neighbors is Neighbors.CHANGE_ONE
    assert survey.tables[0].is_unique("person_id")


def test_events_are_the_same_under_two_ledgers() -> None:
    by_user, by_row = load("events"), load("events_by_row")
    assert by_user.tables[0].columns == by_row.tables[0].columns
    assert by_user.tables[0].source == by_row.tables[0].source
    assert by_user.ledger != by_row.ledger
    assert (by_user.privacy.unit, by_row.privacy.unit) == ("events.user_id", "row")


def test_the_poll_schema_gives_the_true_shares() -> None:
    """Declared by ln 3 and 1: what was recorded gives the shares of which the data was made."""
    (people,) = load("poll").tables
    for name, answer, share in (("evaded", "yes", 0.3), ("party", "red", 0.4)):
        column = people.column(name)
        assert column is not None and column.randomized is not None
        assert column.domain.values == column.randomized.values
        seen = one(f"SELECT avg(({name} = '{answer}')::INTEGER) FROM {relation(people)}")
        found = (seen - column.randomized.other_probability) / column.randomized.signal_weight
        assert abs(found - share) < 5 * 0.5 / column.randomized.signal_weight / 2000**0.5
