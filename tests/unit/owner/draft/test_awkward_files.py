"""A folder of files as people have them goes through `dpsql init`, `dpsql check` and queries without an edit: each is
served, or left out with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import dpsql
from dpsql.interfaces.cli.main import main
from tests.support.awkward_files import CSV_FILES, PARQUET_COLUMNS, ROWS, AwkwardFile, write_awkward_files

SERVED = [file for file in CSV_FILES if file.columns is not None]
LEFT_OUT = [file for file in CSV_FILES if file.columns is None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("awkward")
    write_awkward_files(folder / "data")
    arguments = ["--unit", "row", "--epsilon", "100000", "-o", str(folder / "s.yaml")]
    assert main(["init", str(folder / "data"), *arguments]) == 0
    return folder


@pytest.fixture(scope="module")
def tables(folder: Path) -> dict[str, Any]:
    tables: dict[str, Any] = yaml.safe_load((folder / "s.yaml").read_text())["tables"]
    return tables


@pytest.fixture(scope="module")
def connection(folder: Path) -> dpsql.Connection:
    connection = dpsql.connect(folder / "s.yaml")
    connection.cursor().execute("SET epsilon = 200")
    return connection


def ask_all_columns(connection: dpsql.Connection, table: str, columns: list[str]) -> tuple[object, ...]:
    quoted = [f'"{column}"' for column in columns]
    (row,) = connection.cursor().execute(f'SELECT COUNT(*), {", ".join(f"COUNT({c})" for c in quoted)} FROM "{table}"')
    return tuple(row)


@pytest.mark.parametrize("file", SERVED, ids=lambda file: file.name)
def test_a_file_is_served(file: AwkwardFile, tables: dict[str, Any], connection: dpsql.Connection) -> None:
    assert file.columns is not None
    declared = {name: column["type"] for name, column in tables[file.table_name]["columns"].items()}
    assert declared == file.columns
    counted = ask_all_columns(connection, file.table_name, list(declared))
    assert counted[0] == pytest.approx(file.rows, abs=1), "with hardly any noise at this epsilon"


@pytest.mark.parametrize("file", LEFT_OUT, ids=lambda file: file.name)
def test_a_file_is_left_out_with_the_reason(file: AwkwardFile, folder: Path, tables: dict[str, Any]) -> None:
    text = (folder / "s.yaml").read_text()
    assert file.table_name not in tables
    (line,) = [line for line in text.splitlines() if file.name in line]
    assert line.startswith(f"#   {file.why}")


def test_odd_types_of_parquet(tables: dict[str, Any], connection: dpsql.Connection, folder: Path) -> None:
    """Lists, structures and the like stand in comments."""
    assert {name: column["type"] for name, column in tables["types"]["columns"].items()} == PARQUET_COLUMNS
    assert ask_all_columns(connection, "types", list(PARQUET_COLUMNS))[0] == pytest.approx(ROWS, abs=1)
    text = (folder / "s.yaml").read_text()
    for name, spelling in (("list", "BIGINT[]"), ("struct", "STRUCT"), ("map", "MAP"), ("span", "INTERVAL")):
        assert f"# {name}: {spelling}" in text
    assert tables["parts"]["source"] == "data/parts/*.parquet"
    assert 'the table "lists_only": none of its columns has a type of dpsql' in text


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("plain", ["id", "price", "twice", "choice"]),
        ("Odd table (1)", ["Größe (cm)", "order", "a.b"]),
        ("select", ["id"]),
        ("raw_plain", ["id"]),
        ("odd schema_odd table", ["id"]),
        ("numbers", ["id", "vast"]),
    ],
)
def test_odd_tables_of_duckdb(
    table: str, columns: list[str], tables: dict[str, Any], connection: dpsql.Connection
) -> None:
    assert list(tables[table]["columns"]) == columns
    assert ask_all_columns(connection, table, columns)[0] == pytest.approx(ROWS, abs=1)


def test_tables_of_duckdb_that_a_schema_cannot_hold(folder: Path) -> None:
    text = (folder / "s.yaml").read_text()
    for reason in (
        'the view "seen"', 'the table "a.b": a schema cannot hold its name', 'the table "lists": none of its columns',
        "name: VARCHAR with a collation",
    ):  # fmt: skip
        assert f"# {reason}" in text or f"#   {reason}" in text


@pytest.mark.slow
def test_check_reads_them_all(folder: Path, tables: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing of the draft cannot be served, and no field of a file is of another type than is drafted."""
    assert main(["check", str(folder / "s.yaml"), "--json"]) in (0, 3)
    report = json.loads(capsys.readouterr().out)
    rows = {table["name"]: table["rows"] for table in report["tables"]}
    assert rows == {name: rows[name] if name in ("nothing", "folded", "header_only") else ROWS for name in tables}
    assert [finding for finding in report["findings"] if finding["level"] == "broken"] == []
    unfit = {
        (table["name"], column["name"]) for table in report["tables"] for column in table["columns"] if column["unfit"]
    }
    assert unfit == {("huge_numbers", "y")}, "infinity"
