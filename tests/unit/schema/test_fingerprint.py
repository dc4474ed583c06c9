"""The hash changes exactly when a compiled plan could."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.schema.fingerprint import hash_schema
from dpsql.schema.load import load_schema
from dpsql.schema.model import Files, Randomized, Schema, Snap

TEXT = """\
dpsql: 1
engine: duckdb:///x.duckdb
ledger: sqlite:///x.ledger
privacy: {unit: a.id, budget: {epsilon: 8, delta: 1e-7}, query: {epsilon: 1, delta: 1e-9}, contributions: {rows: 2}}
analysts: {ana: {budget: {epsilon: 2, delta: 1e-8}}}
tables:
  a: {unit: id, unique: [id], columns: {id: {type: bigint}, v: {type: text, values: ["1", "2"]}}}
  b: {public: true, columns: {w: {type: double, bounds: [0, 1]}}}
"""


def hash_of(tmp_path: Path, text: str, name: str = "s.yaml") -> str:
    path = tmp_path / name
    path.write_text(text)
    return hash_schema(load_schema(path, {}))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("epsilon: 8", "epsilon: 9"),
        ("{ana: {budget: {epsilon: 2", "{bob: {budget: {epsilon: 3"),
        ("x.ledger", "y.ledger"),
        ("analysts:", "limits: {memory: 1GB, threads: 1, seconds: 5, failures: 9, min_latency: 0.5}\nanalysts:"),
        ("bounds: [0, 1]", "bounds: [0.0, 1e0]"),
        ("epsilon: 1,", "epsilon: 1.0,"),
        ("dpsql: 1\n", "dpsql: 1\n# a comment\n"),
        ("dpsql: 1\n", "dpsql: 1\ndescription: A dataset\n"),
        ("{unit: id,", "{unit: id, description: A table,"),
        ("id: {type: bigint}", "id: {type: bigint, description: A column}"),
    ],
)
def test_what_has_no_meaning_for_plans(tmp_path: Path, old: str, new: str) -> None:
    assert old in TEXT
    assert hash_of(tmp_path, TEXT.replace(old, new)) == hash_of(tmp_path, TEXT)


def test_the_name_of_the_file_and_the_order_of_tables_have_no_meaning(tmp_path: Path) -> None:
    lines = TEXT.splitlines(keepends=True)
    swapped = "".join([*lines[:-2], lines[-1], lines[-2]])
    assert swapped != TEXT
    assert hash_of(tmp_path, swapped, "other.yaml") == hash_of(tmp_path, TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x.duckdb", "y.duckdb"),
        ("{unit: a.id,", "{unit: a.id, neighbors: change_one,"),
        ("{unit: a.id,", "{unit: a.id, group_size: 2,"),
        ("rows: 2", "rows: 3"),
        ("rows: 2", "groups: 2"),
        ("epsilon: 1,", "epsilon: 0.5,"),
        ("unique: [id], ", ""),
        ("unique: [id]", "unique: [[id, v]]"),
        ('["1", "2"]', '["2", "1"]'),
        ('["1", "2"]', '["1", "2"], nullable: true'),
        ('["1", "2"]', '["1", "2"], max_length: 9'),
        ('text, values: ["1", "2"]', "integer, values: [1, 2]"),
        ('values: ["1", "2"]', 'randomized: {epsilon: 1, values: ["1", "2"]}'),
        ("bounds: [0, 1]", "bounds: [0, 2]"),
        ("bounds: [0, 1]", "bounds: [0, 1], grid: 0.1"),
        ("{unit: id,", "{unit: id, source: a.csv,"),
        ("w: {", "W: {"),
    ],
)
def test_what_has_meaning_for_plans(tmp_path: Path, old: str, new: str) -> None:
    assert old in TEXT
    assert hash_of(tmp_path, TEXT.replace(old, new)) != hash_of(tmp_path, TEXT)


def test_every_field_of_a_column_counts(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(TEXT)
    schema = load_schema(path, {})
    table = schema.tables[1]
    changed = [
        replace(table.columns[0], name="x"),
        replace(table.columns[0], grid=Fraction(1, 2)),
        replace(table.columns[0], null_group=True),
        replace(table.columns[0], max_length=3),
        replace(table.columns[0], snap=Snap(1, "day")),
        replace(table.columns[0], randomized=Randomized(Fraction(1), ("a", "b"))),
        replace(table.columns[0], randomized=Randomized(Fraction(2), ("a", "b"))),
        replace(table.columns[0], domain=table.columns[0].domain.with_nullable(False)),
    ]
    hashes = {hash_schema(replace(schema, tables=(replace(table, columns=(column,)),))) for column in changed}
    assert len(hashes) == len(changed)


LARGER = """\
dpsql: 1
engine: duckdb:///x.duckdb
ledger: sqlite:///x.ledger
privacy: {unit: a.id, neighbors: change_one, group_size: 2, budget: {epsilon: 8, delta: 1e-7},
  query: {epsilon: 1, delta: 1e-9}, contributions: {rows: 2, groups: 3}}
tables:
  a: {unit: id, unique: [id], columns: {id: {type: uuid}, v: {type: text, max_length: 9, nullable: true, values: [x]}}}
  b:
    unit: {a_id: a.id}
    unique: [[a_id, at]]
    columns:
      a_id: {type: uuid}
      at: {type: timestamp, bounds: [2024-01-01, 2025-01-01], snap: 1 hour}
      day: {type: date, bounds: [2024-01-01, 2025-01-01]}
      sum: {type: "decimal(10,2)", bounds: [-1, 1.5]}
      cost: {type: double, bounds: [0, 1], grid: 0.1}
      said: {type: text, randomized: {epsilon: 1.5, values: [no, yes]}}
views: {recent: SELECT at FROM b}
"""


def load_anywhere(tmp_path: Path, text: str) -> Schema:
    """With the engine as it is written: a path in it becomes absolute."""
    path = tmp_path / "s.yaml"
    path.write_text(text)
    return replace(load_schema(path, {}), engine="duckdb:///x.duckdb")


def test_hashes_are_those_of_earlier_versions(tmp_path: Path) -> None:
    """Every entry of a ledger names the schema that it was charged under by this hash.

    If this fails, the name of a class or a field in `dpsql/schema/model.py`, `dpsql/schema/domain.py` or
    `dpsql/types.py` has changed, or what is hashed: an owner can then no longer show that an entry belongs to a schema.
    Keep the name, or raise `HASH_VERSION` and say so in the changelog; see `tests/unit/compiler/test_release_key.py`
    for stored releases, which such a name loses too.
    """
    assert (
        hash_schema(load_anywhere(tmp_path, TEXT)) == "bd9dfd023fdbe09faf644c1476106b05cbe5f0667a09c6adc00f9e8e779b6652"
    )
    larger = load_anywhere(tmp_path, LARGER)
    from_files = replace(larger.tables[0], source=Files(("/data/a-*.csv",), "csv", delimiter=";", written=("a-*.csv",)))
    assert (
        hash_schema(replace(larger, tables=(from_files, *larger.tables[1:])))
        == "0bf29d0f3f4e2fb4b85bcdfb06adbd23308b3467366fc5ca2806e2877200e21b"
    )
