"""Made-up rows keep what the schema declares, and are made of nothing else."""

from __future__ import annotations

import datetime as dt
import inspect
from pathlib import Path

import pytest

from dpsql.errors import SchemaError
from dpsql.schema import dummy_rows
from dpsql.schema.dummy_rows import MAX_ROWS, make_dummy_rows
from dpsql.schema.load import load_schema
from dpsql.schema.model import Column, Schema, Table, to_number

ROOT = Path(__file__).resolve().parents[3]
WORKED = [*sorted((ROOT / "schemas").glob("*.yaml")), ROOT / "tests" / "corpus" / "hospital.yaml",
          ROOT / "tests" / "corpus" / "tpch.yaml"]  # fmt: skip
EVERY_TYPE = """
dpsql: 1
privacy: {unit: t.id, budget: {epsilon: 1, delta: 1e-6}}
preview: dummy
tables:
  t:
    source: t.parquet
    unit: id
    columns:
      id: {type: text, max_length: 6}
      a: {type: smallint, bounds: [-3, 3]}
      b: {type: hugeint, bounds: [-1000000000000000000000, 1000000000000000000000]}
      c: {type: "decimal(20,4)", bounds: [-0.5, 123456789012.25]}
      d: {type: "decimal(3,2)"}
      e: {type: real, bounds: [0, 1], grid: 0.25}
      f: {type: double, bounds: [5, 5]}
      g: {type: double}
      h: {type: boolean, nullable: true}
      i: {type: date}
      j: {type: timestamp}
      k: {type: timestamptz, bounds: [2024-01-01, 2024-01-02]}
      l: {type: time}
      m: {type: interval}
      n: {type: uuid, nullable: true}
      o: {type: text, max_length: 1}
      p: {type: date, bounds: [1900-01-01, 2100-01-01]}
      q: {type: integer, values: [4, 8], nullable: true}
      r: {type: bigint}
"""


@pytest.fixture(params=[*WORKED, EVERY_TYPE], ids=[*(path.stem for path in WORKED), "every type"])
def schema(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Schema:
    monkeypatch.setenv("DPSQL_BI_PASSWORD", "x")
    if isinstance(request.param, Path):
        return load_schema(request.param)
    (tmp_path / "s.yaml").write_text(request.param)
    return load_schema(tmp_path / "s.yaml")


def test_every_value_is_as_declared(schema: Schema) -> None:
    for table in schema.tables:
        rows = make_dummy_rows(schema, table)
        assert len(rows) == MAX_ROWS
        for place, column in enumerate(table.columns):
            for value in (row[place] for row in rows):
                assert _fits(value, column), (table.name, column.name, value)


def test_null_is_there_just_where_it_is_declared(schema: Schema) -> None:
    for table in schema.tables:
        for place, column in enumerate(table.columns):
            nulls = any(row[place] is None for row in make_dummy_rows(schema, table))
            assert nulls == (column.null_group and column.name not in schema.find_id_columns(table)), column.name


def test_unique_columns_are_unique_and_references_find_their_row(schema: Schema) -> None:
    for table in schema.tables:
        for place, column in enumerate(table.columns):
            values = [row[place] for row in make_dummy_rows(schema, table)]
            if table.is_unique(column.name) and not column.domain.is_bounded and column.domain.values is None:
                assert len(set(values)) == len(values)
        for step in schema.find_unit_path(table)[:1]:
            target = schema.table(step.table)
            assert target is not None
            assert set(_values(schema, table, step.column)) <= set(_values(schema, target, step.key))


def test_they_are_the_same_each_time(schema: Schema) -> None:
    before = [repr(make_dummy_rows(schema, table)) for table in schema.tables]
    dummy_rows._make_table_rows.cache_clear()
    assert [repr(make_dummy_rows(schema, table)) for table in schema.tables] == before


def test_they_are_given_declarations_alone() -> None:
    """The signature is the claim: a schema and one of its tables, which hold no data."""
    assert [p.annotation for p in inspect.signature(make_dummy_rows).parameters.values()] == ["Schema", "Table"]


def test_a_public_table_has_no_preview(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "dpsql: 1\nprivacy: {unit: t.id, budget: {epsilon: 1, delta: 0}}\ntables:\n"
        "  t: {source: t.parquet, unit: id, columns: {id: {type: bigint}}}\n"
        "  w: {source: w.parquet, public: true, preview: dummy, columns: {x: {type: text}}}\n"
    )
    with pytest.raises(SchemaError, match="must not stand in a public table"):
        load_schema(tmp_path / "s.yaml")


def _values(schema: Schema, table: Table, name: str) -> list[object]:
    place = [column.name for column in table.columns].index(name)
    return [row[place] for row in make_dummy_rows(schema, table)]


def _fits(value: object, column: Column) -> bool:
    domain = column.domain
    if value is None:
        return True
    if domain.values is not None:
        return value in domain.values
    if isinstance(value, str):
        return 0 < len(value) <= column.max_length
    if domain.is_bounded:
        assert isinstance(value, int | float | dt.date) or hasattr(value, "scaleb")
        number = to_number(value)  # type: ignore[arg-type]
        steps = (number - domain.bounds[0]) / column.grid if column.grid else 0
        return domain.bounds[0] <= number <= domain.bounds[1] and abs(steps - round(steps)) < 1e-9
    return True
