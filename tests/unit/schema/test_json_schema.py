"""The JSON Schema is current, and agrees with the loader on the shape of files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from dpsql.errors import SchemaError
from dpsql.schema.json_schema import SCHEMA_FILE, build_json_schema, render_json_schema
from dpsql.schema.load import load_schema

ROOT = Path(__file__).parents[3]
WORKED = sorted((ROOT / "schemas").glob("*.yaml"))

VALID = """\
dpsql: 1
engine: duckdb:///x.duckdb
privacy: {unit: people.id, budget: {epsilon: 8, delta: 1e-7}, contributions: {rows: 20}}
limits: {memory: 4GB, threads: 2, seconds: 60, failures: 3, min_latency: 0.5}
analysts: {ana: {budget: {epsilon: 2, delta: 1e-8}}}
tables:
  people: {unit: id, unique: [id, [id, sex]], columns: {id: {type: bigint}, sex: {type: text, values: [f, m]}}}
  visits: {unit: {person: people.id}, columns: {person: {type: bigint}, cost: {type: double, bounds: [0, 9]}}}
  days: {source: {path: days.csv, delimiter: ";"}, public: true, columns: {day: {type: date}}}
"""

WRONG = [
    ("dpsql: 1", "dpsql: 2"),
    ("dpsql: 1\n", ""),
    ("engine:", "engin:"),
    ("epsilon: 8", "epsilon: -1"),
    ("epsilon: 8", "epsilon: 0"),
    ("epsilon: 8", "epsilon: true"),
    ("epsilon: 8", "epsilon: '-1e-7'"),
    ("epsilon: 8", "epsilon: eight"),
    ("delta: 1e-7", "delta: 1.5"),
    ("{epsilon: 8, delta: 1e-7}", "8"),
    ("{epsilon: 8, delta: 1e-7}", "{epsilon: 8}"),
    ("unit: people.id, ", ""),
    ("rows: 20", "rows: 0"),
    ("rows: 20", "rows: 2.5"),
    ("rows: 20", "row: 2"),
    ("rows: 20", "rows: auto"),
    ("{rows: 20}", "automatic"),
    ("{rows: 20}", "20"),
    ("{unit: people.id, ", "{units: 0, unit: people.id, "),
    ("{unit: people.id, ", "{units: many, unit: people.id, "),
    ("{unit: people.id, ", "{neighbors: both, unit: people.id, "),
    ("{unit: people.id, ", "{group_size: 1001, unit: people.id, "),
    ("{ana:", "{'a b':"),
    ("delta: 1e-8}}", "delta: 1e-8}, password: abc}"),
    ("memory: 4GB", "memory: 0GB"),
    ("memory: 4GB", "memory: 80%"),
    ("threads: 2", "threads: 0"),
    ("seconds: 60", "seconds: 0"),
    ("seconds: 60", "seconds: 1.5"),
    ("failures: 3", "failures: 0"),
    ("min_latency: 0.5", "min_latency: -1"),
    ("min_latency: 0.5", "min_latency: 3600"),
    ("min_latency: 0.5", "latency: 1"),
    ("[id, [id, sex]]", "id"),
    ("[id, [id, sex]]", "[]"),
    ("{type: bigint}, sex", "bigint, sex"),
    ("{type: bigint}, sex", "{}, sex"),
    ("{type: bigint}, sex", "{type: bigint, min: 0}, sex"),
    ("bounds: [0, 9]", "bounds: [0]"),
    ("bounds: [0, 9]", "bounds: [0, 1, 2]"),
    ("bounds: [0, 9]", "bounds: [0, 9], grid: 0"),
    ("values: [f, m]", "values: []"),
    ("values: [f, m]", "values: [f, null]"),
    ("values: [f, m]", "values: [f, m], nullable: maybe"),
    ("{person: people.id}", "{person: people.id, " + ", ".join(f"{c}: people.id" for c in "abcdefgh") + "}"),
    ("{person: people.id}", "{}"),
    ("public: true", "public: 1"),
    ("path: days.csv, ", ""),
    ('delimiter: ";"', 'delimiter: ";;"'),
    ('delimiter: ";"', 'delim: ";"'),
    ("  days:", "  da.ys:"),
    ("columns: {day: {type: date}}", "columns: {}"),
]


def as_json(text: str) -> Any:
    """As an editor sees the file; dates are text to it, and the key `null` too."""
    return json.loads(json.dumps(yaml.safe_load(text), default=str))


def accepts(text: str) -> bool:
    return bool(jsonschema.Draft7Validator(build_json_schema()).is_valid(as_json(text)))


def test_the_file_is_current() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == render_json_schema(), "run: python -m dpsql.schema.json_schema"


def test_it_is_a_json_schema() -> None:
    jsonschema.Draft7Validator.check_schema(build_json_schema())


@pytest.mark.parametrize("path", WORKED, ids=lambda path: path.name)
def test_worked_schemas_are_accepted(path: Path) -> None:
    jsonschema.Draft7Validator(build_json_schema()).validate(as_json(path.read_text()))


@pytest.mark.parametrize("path", WORKED, ids=lambda path: path.name)
def test_worked_schemas_name_it_for_editors(path: Path) -> None:
    match = re.match(r"# yaml-language-server: \$schema=(\S+)\n", path.read_text())
    assert match and (path.parent / match[1]).resolve() == SCHEMA_FILE.resolve()


@pytest.mark.parametrize(("old", "new"), WRONG)
def test_wrong_schemas_are_refused_by_both(tmp_path: Path, old: str, new: str) -> None:
    assert old in VALID
    text = VALID.replace(old, new, 1)
    path = tmp_path / "s.yaml"
    path.write_text(text)
    assert not accepts(text)
    with pytest.raises(SchemaError):
        load_schema(path, {})


@pytest.mark.parametrize("epsilon", ["8", "0.5", "1e-7", "'8'", "'1e-7'", "1_000"])
def test_numbers_may_be_written_in_many_ways(tmp_path: Path, epsilon: str) -> None:
    text = VALID.replace("epsilon: 8", f"epsilon: {epsilon}")
    path = tmp_path / "s.yaml"
    path.write_text(text)
    assert accepts(text)
    load_schema(path, {})
