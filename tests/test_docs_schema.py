"""docs/schema.md names every key, shows schemas that load, and quotes messages that the loader gives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.errors import SchemaError
from dpsql.schema.keys import SCHEMA, Either, Key, ListOf, MapOf, Record, ValueShape
from dpsql.schema.load import load_schema
from dpsql.types import Kind

TEXT = (Path(__file__).parents[1] / "docs" / "schema.md").read_text(encoding="utf-8")
ROWS = {match[1] for match in re.finditer(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)}


def every_key(shape: ValueShape) -> Iterator[Key]:
    match shape:
        case Record(keys=keys):
            for key in keys:
                yield key
                yield from every_key(key.shape)
        case MapOf(item=item) | ListOf(item=item):
            yield from every_key(item)
        case Either(shapes=shapes):
            for option in shapes:
                yield from every_key(option)


def test_every_key_has_a_row_and_every_row_is_a_key() -> None:
    assert {key.name for key in every_key(SCHEMA)} == ROWS


def test_every_type_is_named() -> None:
    for kind in Kind:
        assert f"`{kind.value}" in TEXT


def test_every_key_says_what_it_is_for() -> None:
    for key in every_key(SCHEMA):
        assert key.doc.endswith(".")
        assert key.required or key.default is not None or key.name == "unit"


EXAMPLE = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)[0]


def test_the_example_loads(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(EXAMPLE)
    load_schema(tmp_path / "s.yaml", {})


# What to change in the example, and a message of the page that it must give, but for the number of its line.
QUOTED = [
    ("epsilon: 8", "epsilon: -1", 'privacy.budget.epsilon must be a number above 0, not "-1"'),
    ("duckdb:///hospital.duckdb", "postgresql://h/d", "engine names a PostgreSQL engine, which is not yet served"),
    ("hospital.duckdb", "${DATA}", 'engine needs the environment variable "DATA", which is not set'),
    ("///hospital.duckdb", "//", "tables.visits needs a source, since the engine is only a reader of files"),
    ("sqlite:///hospital.ledger", "'sqlite:///:memory:'", "ledger must be a file: a ledger in memory would"),
    ("delta: 1e-7", "delta: 1", 'privacy.budget.delta must be a number from 0 to below 1, not "1"'),
    ("epsilon: 0.1", "epsilon: 9", 'privacy.query.epsilon must be at most the budget\'s 8, not "9"'),
    ("rows: 20", "rows: 0", 'privacy.contributions.rows must be a whole number from 1 to 1048576, not "0"'),
    ("{rows: 20, groups: 50}", "automatic", 'privacy.contributions must be auto or a mapping, not "automatic"'),
    ("memory: 4GB", "memory: 4 gigabytes", 'limits.memory must be a size such as 4GB, not "4 gigabytes"'),
    ("seconds: 600", "seconds: 0", 'limits.seconds must be a whole number from 1 to 604800, not "0"'),
    ("1e-8}}", "1e-8}, password: abc}", "analysts.ana.password must be a SCRAM-SHA-256 verifier"),
    ("analysts:", "answers: {refresh: 7 hours}\nanalysts:", "answers.refresh must be minutes or hours that divide a"),
    ("1e-8}}", "1e-8}, parent: temas}", 'analysts.ana.parent names "temas", which is not among the groups'),
    ("1e-8}}", "1e-8}, may_act_for: [bob]}", 'analysts.ana.may_act_for[0] names "bob", which is not among the ana'),
    ("1e-8}}", "1e-8}, largest_query: {epsilon: 3}}", "analysts.ana.largest_query.epsilon must be at most the budget"),
    ("1e-8}}", "1e-8}, expires: 2027-02-30}", 'analysts.ana.expires must be a date such as 2027-01-01, not "2027-02'),
    ("analysts:", "groups:\n  team: {budget: {epsilon: 1, delta: 0}, parent: team}\nanalysts:",
     "groups.team must not be its own parent"),
    ("    unit: {", "    source: data/visits.parket\n    unit: {", 'a table\'s name, not "data/visits.parket"'),
    ("    unit: {patient_id: patients.patient_id}", "    unit: patient_id",
     'tables.visits.unit must lead to "patients.patient_id", the privacy unit'),
    ("    public: true\n", "", "tables.wards must have a unit, or public: true"),
    ("unique: [patient_id]", "unique: [patient]", 'tables.patients.unique[0] names "patient", which is not among'),
    ("[0, 5000]", "[5000, 0]", "tables.visits.columns.cost.bounds are reversed: 5000 is above 0"),
    ("grid: 0.01", "grid: 0", 'tables.visits.columns.cost.grid must be a number above 0, not "0"'),
    ("[f, m, x]", "[f, m, f]", 'tables.patients.columns.sex.values[2] repeats the value "f"'),
    ("[f, m, x]", "[f, null]", "tables.patients.columns.sex.values[1] must be a value of the column's type, not empty"),
    ("type: integer, b", "type: integr, b", 'birth_year.type must be a type, and there is no type "integr"'),
    ("sex: {type: text, values: [f, m, x]}", "sex: text", 'tables.patients.columns.sex must be a mapping, not "text"'),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), QUOTED)
def test_quoted_messages_are_given(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in EXAMPLE
    assert message in TEXT
    (tmp_path / "s.yaml").write_text(EXAMPLE.replace(old, new, 1))
    with pytest.raises(SchemaError) as caught:
        load_schema(tmp_path / "s.yaml", {})
    assert message in caught.value.message
