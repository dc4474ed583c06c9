"""What a data version pins (SOUNDNESS 1.3): each file that is read, and each claim that its checks depend on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.errors import StaleData
from dpsql.schema.load import load_schema
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.dataset.file_identity import expand_sources, identify_files

SCHEMA = """
dpsql: 1
engine: duckdb:///d.duckdb
ledger: sqlite:///d.ledger
privacy:
  unit: people.id
  budget: {epsilon: 8, delta: 1e-6}
  contributions: {rows: 4}
tables:
  people:
    unit: id
    unique: [id, other, code, number]
    columns:
      id: {type: bigint}
      other: {type: bigint}
      number: {type: bigint, bounds: [0, 1000]}
      code: {type: text, max_length: 20}
      age: {type: integer, bounds: [0, 99]}
      note: {type: text, max_length: 30}
  visits:
    unit: {person: people.id}
    source: {path: visits.csv, delimiter: ",", "null": "-"}
    columns:
      person: {type: bigint}
      at: {type: date}
  wards:
    public: true
    columns:
      ward: {type: text, max_length: 40}
      floor: {type: integer, bounds: [0, 9]}
      kind: {type: text, values: [a, b]}
"""
TABLES = """
CREATE TABLE people AS
    SELECT i AS id, i AS other, i AS number, 'c' || i AS code, 40 AS age, 'n' AS note FROM range(50) t(i);
CREATE TABLE wards AS SELECT 'w' AS ward, 1 AS floor, 'a' AS kind;
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as db:
        db.execute(TABLES)
    (tmp_path / "visits.csv").write_text("person,at\n1,2024-01-01\n")
    (tmp_path / "d.yaml").write_text(SCHEMA)
    return tmp_path / "d.yaml"


def identity(path: Path) -> str:
    schema = load_schema(path)
    return identify_files(schema, expand_sources(schema))


def insert_beside(path: Path) -> None:
    """A row that is in the write-ahead log alone: the database file stays as it is."""
    with duckdb.connect(str(path.parent / "d.duckdb")) as db:
        db.execute("PRAGMA disable_checkpoint_on_shutdown")
        db.execute("INSERT INTO people VALUES (77, 77, 77, 'c77', 40, 'n')")
    assert (path.parent / "d.duckdb.wal").exists()


def rewrite(path: Path) -> None:
    """As large as before, and written at another time."""
    place = path.parent / "visits.csv"
    place.write_text("person,at\n2,2024-01-01\n")
    os.utime(place, ns=(0, place.stat().st_mtime_ns + 1))


@pytest.mark.parametrize(("change", "said"), [(insert_beside, "database file"), (rewrite, 'data of "visits"')])
def test_no_row_is_served_that_was_not_checked(path: Path, change: Callable[[Path], None], said: str) -> None:
    dpsql.connect(path).close()
    change(path)
    with pytest.raises(StaleData, match=said):
        dpsql.connect(path)


@pytest.mark.parametrize("name", ["d.duckdb.wal", "visits.csv"])
def test_nor_by_open_connections(path: Path, name: str) -> None:
    """Another process may write meanwhile, as it likes."""
    with dpsql.connect(path) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT COUNT(*) FROM people")
        (path.parent / name).write_bytes(b"what is not read")
        with pytest.raises(StaleData):
            cursor.execute("SELECT SUM(age) FROM people")


def test_an_open_dataset_reports_that_its_files_changed(path: Path) -> None:
    """What the health of a server, the prompt and each question to a mechanism ask; no row is read."""
    dataset = open_dataset(path)
    try:
        dataset.check_unchanged()
        rewrite(path)
        with pytest.raises(StaleData):
            dataset.check_unchanged()
    finally:
        dataset.close()


def test_the_log_of_a_database_is_pinned_by_itself(path: Path) -> None:
    """Also where the database file has the same size and time."""
    place = path.parent / "d.duckdb"
    before, first = place.stat(), identity(path)
    insert_beside(path)
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert place.stat().st_size == before.st_size
    second = identity(path)
    assert second != first and "d.duckdb.wal" in second
    (path.parent / "d.duckdb.wal").unlink()
    assert identity(path) == first, "and nothing else differs"


CLAIMS = {
    "the length of a unique key": ("max_length: 20", "max_length: 2"),
    "the bounds of a unique key": ("bounds: [0, 1000]", "bounds: [0, 10]"),
    "the type of a column": ("age: {type: integer", "age: {type: double"),
    "the type of a column of a file": ("at: {type: date}", "at: {type: text}"),
    "a unique key": ("unique: [id, other", "unique: [id, age, other"),
    "a way to the unit": ("unit: {person: people.id}", "unit: {person: people.other}"),
    "a file's delimiter": ('delimiter: ","', 'delimiter: ";"'),
    "a file's NULL": ('"null": "-"', '"null": "x"'),
    "the length of a public column": ("max_length: 40", "max_length: 4"),
    "the bounds of a public column": ("bounds: [0, 9]", "bounds: [0, 8]"),
    "the values of a public column": ("values: [a, b]", "values: [a]"),
    "where a table is": ("  people:\n    unit: id", "  people:\n    source: persons\n    unit: id"),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_that_checks_depend_on_is_pinned(path: Path, claim: str) -> None:
    old, new = CLAIMS[claim]
    before, text = identity(path), path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    assert identity(path) != before


def test_a_shorter_key_is_not_served_unchecked(path: Path) -> None:
    """Keys c10 to c49 are longer than two characters: they would all be NULL, and no longer name their rows."""
    dpsql.connect(path).close()
    path.write_text(path.read_text().replace("max_length: 20", "max_length: 2"))
    with pytest.raises(StaleData, match='schema of "people" is not the one that was checked'):
        dpsql.connect(path)


@pytest.mark.parametrize(("old", "new"), [("bounds: [0, 99]", "bounds: [0, 9]"), ("max_length: 30", "max_length: 3")])
def test_what_no_check_depends_on_may_change(path: Path, old: str, new: str) -> None:
    before = identity(path)
    path.write_text(path.read_text().replace(old, new))
    assert identity(path) == before
